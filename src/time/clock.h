/* The default clock, as the queue knows it. */
#ifndef WQ_TIME_CLOCK_H
#define WQ_TIME_CLOCK_H

#include <wq/clock.h>

/* CLOCK_MONOTONIC. A queue on this one lets the kernel time its sleepers. */
extern const wq_clock wq__clock_real;

/* Until when to sleep, in CLOCK_MONOTONIC, so as to wake at deadline_ns of the clock c. */
int64_t wq__clock_deadline(const wq_clock *c, int64_t deadline_ns);

#endif
