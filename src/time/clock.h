/* The default clock, as the queue knows it. */
#ifndef WQ_TIME_CLOCK_H
#define WQ_TIME_CLOCK_H

#include <stdbool.h>

#include <wq/clock.h>

/* CLOCK_MONOTONIC. A queue on this one lets the kernel time its sleepers. */
extern const wq_clock wq__clock_real;

/* Is it complete, and of a version that this library knows? */
static inline bool wq__clock_good(const wq_clock *c)
{
	return c->now && (c->reserved[0] | c->reserved[1]) == 0;
}

/* Until when to sleep, in CLOCK_MONOTONIC, so as to wake at deadline_ns of the clock c. */
int64_t wq__clock_deadline(const wq_clock *c, int64_t deadline_ns);

/* So long from now; 0 if it is negative. It passes, though the clock stand at WQ_NEVER. */
int64_t wq__deadline_after(int64_t now_ns, int64_t timeout_ns);

#endif
