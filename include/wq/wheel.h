/*
 * A hierarchical timing wheel without thread, lock or clock: callbacks at given times, O(1) to add
 * and to cancel. The caller passes the time in. wq/timer.h runs a wheel in a thread.
 *
 *     static void fire(void *ctx, const wq_timer_event *ev);
 *
 *     wq_wheel *w;
 *     wq_timer_id id;
 *     if (wq_wheel_new(&w, clock_now(), NULL) < 0)
 *         return 1;
 *     wq_wheel_after(w, 5 * WQ_SECOND, fire, job, &id);
 *     wq_wheel_every(w, WQ_SECOND, beat, NULL, NULL);
 *     ...
 *     for (;;) {
 *         wait_until(wq_wheel_next_deadline(w));       // for example with epoll
 *         wq_wheel_advance(w, clock_now());            // calls what is due
 *     }
 *
 * A timer fires at its own nanosecond or later, never earlier. Timers fire in the order of their
 * times, equal times in the order of the adds. The tick sizes buckets and rounds nothing.
 *
 * A callback may add, cancel and reschedule timers, its own included if it is periodic (one that
 * fires once is gone by then: WQ_ESTALE), and may stop the wheel. It may not advance or free it.
 * It must not throw or longjmp.
 *
 * Threads: the caller serialises all calls on one wheel. Nothing blocks.
 */
#ifndef WQ_WHEEL_H
#define WQ_WHEEL_H

#include <stddef.h>
#include <stdint.h>

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_wheel wq_wheel;

/* A handle of one timer, until it has fired or was cancelled; never 0. Stale ones are detected. */
typedef uint64_t wq_timer_id;

/* The argument of a timer's callback. */
typedef struct wq_timer_event {
	wq_timer_id id;
	int64_t due_ns;  /* when it was due */
	int64_t now_ns;  /* when it fires */
	int64_t skipped; /* periodic timers: periods missed since the last time */
	uint64_t reserved[4];
} wq_timer_event;

typedef void (*wq_timer_fn)(void *ctx, const wq_timer_event *event);

/* Options of wq_wheel_new(). All zero asks for the defaults. */
typedef struct wq_wheel_options {
	/*
	 * The span of a bucket on the lowest level, 1 ns to 2^40 ns (18 minutes), rounded up to
	 * a power of two; 0: 2^18 ns, a quarter of a millisecond. Finer levels are made only
	 * where a bucket is crowded.
	 */
	int64_t tick_ns;
	/* Buckets per level: 2, 4, 8, 16, 32 or 64; 0: 64. */
	size_t size;
	const wq_allocator *allocator; /* NULL: malloc, and mmap for blocks; copied */
	uint64_t reserved[4];          /* must be zero */
} wq_wheel_options;

/*
 * Make a wheel whose time is now_ns. options may be NULL.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL  out is NULL, now_ns < 0, tick or size is out of range, a reserved word is not
 *              zero, or the allocator lacks a function
 *   WQ_ENOMEM  out of memory
 */
WQ_API WQ_MUST_CHECK int wq_wheel_new(wq_wheel **out, int64_t now_ns,
                                      const wq_wheel_options *options);

/*
 * Free a wheel. NULL is allowed.
 *
 * Returns how many timers were left.
 *
 * Errors: WQ_EBUSY inside a callback.
 */
WQ_API wq_number wq_wheel_free(wq_wheel *w);

/*
 * Start a timer. wq_wheel_add() calls fn(ctx) at due_ns; if that has passed, at the next advance.
 * wq_wheel_after() calls it delay_ns after the wheel's time, which is that of the last advance; a
 * delay <= 0 fires at the next advance. A timer with WQ_NEVER never fires but can be rescheduled.
 *
 * wq_wheel_every() calls fn(ctx) every period_ns (> 0), first one period after the wheel's time.
 * The times are multiples of the period from there: they do not drift. Missed periods are skipped,
 * and the event says how many. It fires until it is cancelled.
 *
 * *id, unless id is NULL, receives the handle.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_ENOMEM     out of memory
 *   WQ_ESHUTDOWN  the wheel is stopped
 *   WQ_EINVAL     w or fn is NULL, due_ns < 0, or period_ns <= 0
 */
WQ_API int wq_wheel_add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id);
WQ_API int wq_wheel_after(wq_wheel *w, int64_t delay_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);
WQ_API int wq_wheel_every(wq_wheel *w, int64_t period_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);

/*
 * Cancel a timer. Its memory is free at once.
 *
 * Returns WQ_OK: it was in time, and the timer does not fire (again).
 *
 * Errors:
 *   WQ_ESTALE  the timer has fired, was cancelled before, or never existed
 *   WQ_EINVAL  w is NULL
 */
WQ_API int wq_wheel_cancel(wq_wheel *w, wq_timer_id id);

/*
 * Give a timer another time. A periodic one keeps its period from there on. Among equal times it
 * comes last.
 *
 * Returns WQ_OK.
 *
 * Errors: those of wq_wheel_cancel(); WQ_ENOMEM: it keeps its time; WQ_EINVAL also if due_ns < 0.
 */
WQ_API int wq_wheel_reschedule(wq_wheel *w, wq_timer_id id, int64_t due_ns);

/*
 * Count the timers.
 *
 * Returns the number of timers that have not fired.
 *
 * Errors: WQ_EINVAL if w is NULL.
 */
WQ_API wq_number wq_wheel_size(const wq_wheel *w);

/*
 * Tell when to advance next: no timer is due before that time. It may be too early if the first
 * timer was cancelled; advancing then does nothing.
 *
 * Returns the time; WQ_NEVER if no timer is due.
 *
 * Errors: WQ_EINVAL if w is NULL.
 */
WQ_API wq_number wq_wheel_next_deadline(const wq_wheel *w);

/*
 * Advance the time of a wheel to now_ns: call everything that is due, including timers that
 * callbacks add and that are due, too. A time before the last one fires nothing early and loses
 * nothing.
 *
 * Returns how many callbacks were made.
 *
 * Errors: WQ_EBUSY if called from a callback; WQ_EINVAL if w is NULL or now_ns < 0.
 */
WQ_API wq_number wq_wheel_advance(wq_wheel *w, int64_t now_ns);

/*
 * Stop a wheel: no more callbacks and no more timers. An advance that is in progress returns.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if w is NULL.
 */
WQ_API int wq_wheel_stop(wq_wheel *w);

#ifdef __cplusplus
}
#endif
#endif
