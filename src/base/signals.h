/* The signals that a thread blocks. */
#ifndef WQ_BASE_SIGNALS_H
#define WQ_BASE_SIGNALS_H

/* A sigset_t, which strict C has no name for. */
typedef struct wq__signals {
	unsigned long words[1024 / 8 / sizeof(unsigned long)];
} wq__signals;

/* What this thread blocks. */
void wq__signals_now(wq__signals *s);

/* All but those of faults, which a thread has to take itself. */
void wq__signals_all(wq__signals *s);

/*
 * This thread blocks these, too, from now on; *before: what it did before. What it starts inherits
 * that. None is unblocked meanwhile, which might deliver one that the thread's owner waits for.
 */
void wq__signals_block(const wq__signals *s, wq__signals *before);

/* This thread blocks these and no others from now on. */
void wq__signals_set(const wq__signals *s);

#endif
