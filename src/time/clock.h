/* The default clock, as the queue knows it. */
#ifndef WQ_TIME_CLOCK_H
#define WQ_TIME_CLOCK_H

#include <wq/clock.h>

/* CLOCK_MONOTONIC. A queue on this one lets the kernel time its sleepers. */
extern const wq_clock wq__clock_real;

#endif
