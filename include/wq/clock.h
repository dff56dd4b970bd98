/*
 * Clocks. Time is nanoseconds of a clock that never goes back. The default is CLOCK_MONOTONIC,
 * which stands still while the machine is suspended.
 *
 * Tests use a manual clock, which moves only when it is told to:
 *
 *     wq_manual_clock *mc;
 *     if (wq_manual_clock_new(&mc, 0) < 0)
 *         return 1;
 *     wq_clock clock = wq_manual_clock_clock(mc);
 *     if (wq_new(&q, &(wq_options){.clock = &clock}) < 0)
 *         return 1;
 *     ...
 *     wq_manual_clock_advance(mc, 5 * WQ_SECOND);   // wakes threads that wait for that time
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

/* A deadline that never passes, a delay without end. */
#define WQ_NEVER 9223372036854775807L

/*
 * A custom clock.
 *
 * now:   returns the time in nanoseconds, >= 0, never less than before. Any thread calls it,
 *        several at once, also under the queue's lock; it may not call the queue.
 * watch: NULL for a clock that runs by itself at about the speed of real time: a thread sleeps
 *        for the difference and reads the clock again. After a jump, wq_clock_changed() makes
 *        all sleeping threads read it at once.
 *        Not NULL for a clock that moves only in steps: wq_new() calls it with on = 1, and a
 *        wq_free() that succeeds with on = 0 (delay queues, timers and pools do the same), never
 *        under the queue's lock. From then on the clock must call changed(arg) after each step,
 *        for each arg that is watched; sleeping threads wait for that alone. It returns WQ_OK,
 *        or an error that wq_new() returns.
 *
 * wq_new() copies the struct; `ctx` must outlive the queue.
 */
typedef struct wq_clock {
	int64_t (*now)(void *ctx);
	int (*watch)(void *ctx, void (*changed)(void *arg), void *arg, int on);
	void *ctx;
	uint64_t reserved[2]; /* must be zero */
} wq_clock;

/*
 * Read CLOCK_MONOTONIC, the default clock.
 *
 * Returns the time in nanoseconds.
 *
 * Threads: any. Blocks: no.
 */
WQ_API int64_t wq_clock_monotonic(void);

/*
 * Add a time span to a time without overflow.
 *
 * Returns base_ns + delta_ns, but at least 0 and at most WQ_NEVER.
 *
 * Threads: any. Blocks: no.
 */
WQ_API int64_t wq_time_add(int64_t base_ns, int64_t delta_ns);

typedef struct wq_manual_clock wq_manual_clock;

/*
 * Make a manual clock. It stands at start_ns until it is moved. Any number of queues may use it.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if out is NULL or start_ns < 0; WQ_ENOMEM.
 */
WQ_API WQ_MUST_CHECK int wq_manual_clock_new(wq_manual_clock **out, int64_t start_ns);

/*
 * Free a manual clock. NULL is allowed.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EBUSY while a queue, a pool or a timer uses it; nothing has changed.
 */
WQ_API int wq_manual_clock_free(wq_manual_clock *mc);

/*
 * Get the clock for wq_options.clock.
 *
 * Returns the clock; it is valid as long as the manual clock is. For NULL the clock is all zero,
 * and wq_new() refuses it: "the clock has no function now".
 */
WQ_API wq_clock wq_manual_clock_clock(wq_manual_clock *mc);

/*
 * Read a manual clock.
 *
 * Returns the time in nanoseconds.
 *
 * Errors: WQ_EINVAL if mc is NULL.
 *
 * Threads: any.
 */
WQ_API wq_number wq_manual_clock_now(const wq_manual_clock *mc);

/*
 * Move a manual clock forward. wq_manual_clock_advance() moves it by by_ns (0 is allowed) and
 * stops at WQ_NEVER; wq_manual_clock_set() moves it to now_ns. Every thread that sleeps in a queue
 * of this clock reads it again.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if mc is NULL, or the clock would go back.
 *
 * Threads: any, one step at a time. Do not call it from a callback of one of its queues.
 */
WQ_API int wq_manual_clock_advance(wq_manual_clock *mc, int64_t by_ns);
WQ_API int wq_manual_clock_set(wq_manual_clock *mc, int64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif
