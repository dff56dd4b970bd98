/*
 * Time: nanoseconds of a clock that never goes back. The default is
 * CLOCK_MONOTONIC, which stands still while the machine is suspended.
 *
 * Tests bring a manual clock, which moves only when told to:
 *
 *     wq_manual_clock *mc;
 *     wq_manual_clock_new(&mc, 0);
 *     wq_clock clock = wq_manual_clock_clock(mc);
 *     wq_new(&q, &(wq_options){.clock = &clock});
 *     ...
 *     wq_manual_clock_advance(mc, 5 * WQ_SECOND);   // wakes who waits for that
 *     ...
 *     wq_free(q);
 *     wq_manual_clock_free(mc);                     // after its queues
 */
#ifndef WQ_CLOCK_H
#define WQ_CLOCK_H

#include <stdint.h>

#include <wq/status.h>
#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plain numbers of type int64_t, so that binding generators can read them. */
#define WQ_NANOSECOND 1L
#define WQ_MICROSECOND 1000L
#define WQ_MILLISECOND 1000000L
#define WQ_SECOND 1000000000L
#define WQ_MINUTE 60000000000L
#define WQ_HOUR 3600000000000L

/* A deadline that never comes, a delay without end. */
#define WQ_NEVER 9223372036854775807L

/*
 * A clock of one's own.
 *
 * now:   the time in nanoseconds, >= 0, never less than before. Called by any
 *        thread, several at once, also under the queue's lock; it may not call
 *        the queue.
 * watch: NULL for a clock that runs by itself at about the pace of real
 *        time: a sleeper sleeps for the difference and looks again, and
 *        after a jump wq_clock_changed() makes all sleepers look at once.
 *        Given, it says that the clock moves only in steps: it is called
 *        with on = 1 by wq_new() and on = 0 by a wq_free() that succeeds (and likewise by
 *        delay queues, timers and pools), never under the queue's lock, and the
 *        clock promises to call changed(arg)
 *        after each step for each that is watched. Sleepers then wait for that alone. It returns
 *        WQ_OK, or an error that wq_new() passes on.
 *
 * The struct is copied by wq_new(); `ctx` must outlive the queue.
 */
typedef struct wq_clock {
	int64_t (*now)(void *ctx);
	int (*watch)(void *ctx, void (*changed)(void *arg), void *arg, int on);
	void *ctx;
	uint64_t reserved[2]; /* must be zero */
} wq_clock;

/* CLOCK_MONOTONIC in nanoseconds, the default clock. Threads: any. Blocks: no. */
WQ_API int64_t wq_clock_monotonic(void);

/* base + delta for times: stops at WQ_NEVER and at 0 instead of wrapping. Threads: any. */
WQ_API int64_t wq_time_add(int64_t base_ns, int64_t delta_ns);

typedef struct wq_manual_clock wq_manual_clock;

/*
 * A clock that stands at `start_ns` until it is moved. Any number of queues
 * may run on it.
 *
 * Returns WQ_OK, WQ_EINVAL (NULL, or start_ns < 0) or WQ_ENOMEM.
 */
WQ_API int wq_manual_clock_new(wq_manual_clock **out, int64_t start_ns);

/* Frees the clock, or WQ_EBUSY while a queue runs on it. NULL: WQ_OK. */
WQ_API int wq_manual_clock_free(wq_manual_clock *mc);

/* What goes into wq_options.clock. Valid as long as the manual clock is. */
WQ_API wq_clock wq_manual_clock_clock(wq_manual_clock *mc);

/* The time it stands at; WQ_EINVAL for NULL. Threads: any. */
WQ_API wq_value wq_manual_clock_now(const wq_manual_clock *mc);

/*
 * Moves the clock on by `by_ns` (0 is allowed) and makes every sleeper of
 * its queues look again. Saturates at WQ_NEVER.
 *
 * Returns WQ_OK, or WQ_EINVAL (NULL, or by_ns < 0: time does not go back).
 * Threads: any, one step at a time. Not from a callback of one of its queues.
 */
WQ_API int wq_manual_clock_advance(wq_manual_clock *mc, int64_t by_ns);

/* Moves the clock to `now_ns`; WQ_EINVAL if that lies before where it stands. */
WQ_API int wq_manual_clock_set(wq_manual_clock *mc, int64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif
