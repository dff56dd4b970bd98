/*
 * A timing wheel with a thread, for programs without an event loop. The thread sleeps until the
 * next timer is due and calls it.
 *
 *     wq_timer *t;
 *     wq_timer_id id;
 *     if (wq_timer_new(&t, NULL) < 0)                    // starts the thread
 *         return 1;
 *     wq_timer_after(t, 5 * WQ_SECOND, fire, job, &id);
 *     if (wq_timer_cancel(t, id) == WQ_OK)
 *         puts("cancelled in time");
 *     wq_timer_free(t);                                  // stops it
 *
 * Timers, precision, callbacks and errors are those of wq/wheel.h. Callbacks run in the thread,
 * one after another, outside all locks, and may call every function here except wq_timer_free().
 * Delays count from the time of the call.
 *
 * Threads: any, for all functions; no call may start once wq_timer_free() has been entered. The
 * thread is named "wq-timer" and blocks the signals that the caller of wq_timer_new() blocks. It
 * asks the kernel for exact timers (PR_SET_TIMERSLACK) while it sleeps, but not in callbacks, so a
 * process that a callback starts has the program's timer slack. In the child of a fork() all calls
 * answer WQ_EFORKED; wq_timer_free() answers 0 there and frees nothing. If the child of a callback
 * returns from it, abort() stops it.
 */
#ifndef WQ_TIMER_H
#define WQ_TIMER_H

#include <wq/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_timer wq_timer;

/* Options of wq_timer_new(). All zero asks for the defaults. */
typedef struct wq_timer_options {
	int64_t tick_ns; /* as in wq_wheel_options, as are the next two */
	size_t size;
	const wq_allocator *allocator;
	const wq_clock *clock; /* NULL: CLOCK_MONOTONIC */
	uint64_t reserved[4];  /* must be zero */
} wq_timer_options;

/*
 * Make a timing wheel and start its thread. options may be NULL.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL, WQ_ENOMEM, WQ_EIO (no thread), or what the clock's watch answered.
 */
WQ_API WQ_MUST_CHECK int wq_timer_new(wq_timer **out, const wq_timer_options *options);

/*
 * Stop a timing wheel, wait for the callback that runs, and free it. NULL is allowed.
 *
 * Returns how many timers were left.
 *
 * Errors: WQ_EDEADLK if called from a callback; nothing has changed.
 *
 * Blocks: until the callback has returned.
 */
WQ_API wq_number wq_timer_free(wq_timer *t);

/*
 * Start, cancel, move and count timers, as the functions of wq/wheel.h with the same names.
 * wq_timer_now() reads the clock.
 *
 * Returns as those of wq/wheel.h.
 *
 * Errors: those of wq/wheel.h.
 *
 * Threads: any. Blocks: no.
 */
WQ_API int wq_timer_add(wq_timer *t, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id);
WQ_API int wq_timer_after(wq_timer *t, int64_t delay_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);
WQ_API int wq_timer_every(wq_timer *t, int64_t period_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);
WQ_API int wq_timer_cancel(wq_timer *t, wq_timer_id id);
WQ_API int wq_timer_reschedule(wq_timer *t, wq_timer_id id, int64_t due_ns);
WQ_API wq_number wq_timer_size(wq_timer *t);
WQ_API wq_number wq_timer_next_deadline(wq_timer *t);
WQ_API wq_number wq_timer_now(wq_timer *t);

/*
 * Stop a timing wheel: no more callbacks and no more timers. It waits for a callback that runs,
 * unless it is called from one.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if t is NULL.
 *
 * Blocks: until the callback has returned.
 */
WQ_API int wq_timer_stop(wq_timer *t);

/*
 * Tell a timing wheel that its clock has jumped, as wq_clock_changed().
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if t is NULL.
 */
WQ_API int wq_timer_clock_changed(wq_timer *t);

#ifdef __cplusplus
}
#endif
#endif
