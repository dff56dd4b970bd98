/*
 * A timing wheel with a thread: the thread sleeps exactly until the next timer
 * is due and calls it. For programs without a loop of their own.
 *
 *     wq_timer *t;
 *     wq_timer_new(&t, NULL);                            // starts the thread
 *     wq_timer_after(t, 5 * WQ_SECOND, fire, job, &id);
 *     if (wq_timer_cancel(t, id) == WQ_OK) ...           // in time
 *     wq_timer_free(t);                                  // stops it
 *
 * Timers, exactness, callbacks and errors are those of wq/wheel.h; callbacks run
 * in the thread, one after another, outside all locks, and may call every
 * function here but free. "After" counts from the time of the call.
 *
 * Threads: any, for all functions; none may start once free has been entered.
 * The thread is named "wq-timer", blocks the signals that the caller of wq_timer_new() blocks, and
 * asks the kernel for exact timers while it sleeps (PR_SET_TIMERSLACK), but not in callbacks: what
 * they start as another process is like what the program starts. In the child of a fork() all calls
 * answer WQ_EFORKED, but free, which is 0 and gives nothing back; a child of a callback that returns
 * from it is stopped by abort().
 */
#ifndef WQ_TIMER_H
#define WQ_TIMER_H

#include <wq/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_timer wq_timer;

typedef struct wq_timer_options {
	int64_t tick_ns; /* as wq_wheel_options */
	size_t size;
	const wq_allocator *allocator;
	const wq_clock *clock; /* NULL: CLOCK_MONOTONIC */
	uint64_t reserved[4];  /* must be zero */
} wq_timer_options;

/* Returns WQ_OK, WQ_EINVAL, WQ_ENOMEM, WQ_EIO (no thread), or what the clock's watch answered. */
WQ_API int wq_timer_new(wq_timer **out, const wq_timer_options *options);

/*
 * Stop, wait for the callback that is under way, and free. Returns how many
 * timers were left (0 for NULL), or WQ_EDEADLK (called from a callback; nothing changed).
 */
WQ_API wq_value wq_timer_free(wq_timer *t);

/* As the functions of wq/wheel.h; none of them blocks. */
WQ_API int wq_timer_add(wq_timer *t, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id);
WQ_API int wq_timer_after(wq_timer *t, int64_t delay_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);
WQ_API int wq_timer_every(wq_timer *t, int64_t period_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);
WQ_API int wq_timer_cancel(wq_timer *t, wq_timer_id id);
WQ_API int wq_timer_reschedule(wq_timer *t, wq_timer_id id, int64_t due_ns);
WQ_API wq_value wq_timer_size(wq_timer *t);
WQ_API wq_value wq_timer_next_deadline(wq_timer *t);
WQ_API wq_value wq_timer_now(wq_timer *t);

/*
 * No more callbacks and no more timers. Waits for a callback that is under
 * way, unless it is called from one. Returns WQ_OK or WQ_EINVAL.
 */
WQ_API int wq_timer_stop(wq_timer *t);

/* The clock has jumped, as wq_clock_changed(). */
WQ_API int wq_timer_clock_changed(wq_timer *t);

#ifdef __cplusplus
}
#endif
#endif
