/*
 * Stamps at half the price of a look at the clock: between two looks at
 * CLOCK_MONOTONIC the CPU's own counter tells how much time went by, for 1 ms
 * at most. How long a tick is, is learned from the looks themselves.
 *
 * A stamp may differ from the clock by some nanoseconds, and so go back by as
 * much: for durations, not for due times. Guarded by whoever holds it.
 */
#ifndef WQ_TIME_TICKS_H
#define WQ_TIME_TICKS_H

#include <stdint.h>

#include "base/compiler.h"

struct wq__ticks {
	uint64_t at; /* the counter at the last look */
	int64_t at_ns;
	uint64_t span;  /* ticks from there that may be counted; 0: none */
	uint64_t scale; /* nanoseconds of 2^32 ticks; 0: not known yet */
	uint64_t since; /* the look from which a tick's length is being learned */
	int64_t since_ns;
};

/* All zero at first. */
int64_t wq__ticks_look(struct wq__ticks *t);

#if defined(__x86_64__) && !defined(WQ_SIM)

static inline uint64_t wq__ticks_read(void)
{
	return __builtin_ia32_rdtsc();
}

static inline int64_t wq__ticks_now(struct wq__ticks *t)
{
	uint64_t gone = wq__ticks_read() - t->at;

	/* A counter that went back has gone very far. */
	if (wq__unlikely(gone >= t->span))
		return wq__ticks_look(t);
	return t->at_ns + (int64_t)(gone * t->scale >> 32);
}

#else

static inline int64_t wq__ticks_now(struct wq__ticks *t)
{
	return wq__ticks_look(t);
}

#endif
#endif
