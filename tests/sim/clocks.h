/*
 * The clock of a run of the delay queue or of timers: the default one, one of
 * our own that also jumps, or a manual one that moves in steps only. What the
 * library was told by it is known to the nanosecond, so that the judge can
 * decide what each call had to answer.
 */
#ifndef WQ_SIM_CLOCKS_H
#define WQ_SIM_CLOCKS_H

#include <stdbool.h>
#include <wq.h>

enum clock_kind { REAL_CLOCK, JUMPING_CLOCK, STEPPED_CLOCK, CLOCKS };

/* For the options of what is made; NULL for the default clock. changed: how it is told of a jump. */
const wq_clock *clock_open(enum clock_kind kind, void (*changed)(void));
void clock_close(void);

/* Its time now. */
int64_t clock_now(void);

/* What it said when the running task asked last, under the lock (the default one: in its last section). */
int64_t clock_said(void);

/* Until when the task sleeps, on this clock; WQ_NEVER: until it is woken. */
int64_t clock_sleeps_until(int task);

/* Do sleepers wake by themselves? Not on a clock of steps. */
bool clock_runs(void);

/* A time not far away, and how far away it is. */
int64_t clock_soon(void);
int64_t clock_span(void);

/* A task that lets the clock jump or step until *over, if it is one that does. */
void clock_spawn(const bool *over);
bool clock_is_still(void *arg); /* it has returned, or there is none; for sim_until() */

#endif
