/*
 * A hierarchical timing wheel, driven by hand: callbacks at given times, at
 * O(1) for adding and cancelling, with no thread, no lock and no clock of its
 * own. `now` is a parameter. (wq/timer.h runs one in a thread.)
 *
 *     static void fire(void *ctx, const wq_timer_event *ev);
 *
 *     wq_wheel *w;
 *     wq_timer_id id;
 *     wq_wheel_new(&w, now, NULL);
 *     wq_wheel_after(w, 5 * WQ_SECOND, fire, job, &id);
 *     wq_wheel_every(w, WQ_SECOND, beat, NULL, NULL);
 *     ...
 *     for (;;) {
 *         wait_until(wq_wheel_next_deadline(w));       // epoll, say
 *         wq_wheel_advance(w, clock_now());            // calls what is due
 *     }
 *
 * A timer fires at its own nanosecond or later, never earlier, and timers fire
 * in the order of their nanoseconds, equal ones in the order they were added:
 * tick and size shape the wheel and round nothing.
 *
 * A callback may add, cancel and reschedule timers, its own included if that is periodic
 * (one that fires once is gone by then: WQ_ESTALE), and may
 * stop the wheel; it may not advance or free it. It must not throw or longjmp.
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

/* Names one timer, from add until it has fired or was cancelled; never 0. A stale one is detected. */
typedef uint64_t wq_timer_id;

/* What a callback is told. */
typedef struct wq_timer_event {
	wq_timer_id id;
	int64_t due_ns;  /* when it should have fired */
	int64_t now_ns;  /* when it does */
	int64_t skipped; /* every: periods that were missed since the last time */
	uint64_t reserved[4];
} wq_timer_event;

typedef void (*wq_timer_fn)(void *ctx, const wq_timer_event *event);

/* All zero is a good wheel. */
typedef struct wq_wheel_options {
	/*
	 * The span of a bucket on the lowest level, 1 ns to 2^40 ns (18 minutes),
	 * rounded up to a power of two; 0: 2^18 ns, a quarter of a millisecond.
	 * Finer levels are made only where a bucket is crowded.
	 */
	int64_t tick_ns;
	/* Buckets a level: 2, 4, 8, 16, 32 or 64; 0: 64. */
	size_t size;
	const wq_allocator *allocator; /* NULL: malloc, and mmap for blocks; copied */
	uint64_t reserved[4];          /* must be zero */
} wq_wheel_options;

/*
 * Make a wheel whose time is now_ns. options may be NULL.
 * Returns WQ_OK, WQ_ENOMEM, or WQ_EINVAL: out is NULL, now_ns < 0, tick or
 * size out of range, a reserved word not zero, an allocator without functions.
 */
WQ_API int wq_wheel_new(wq_wheel **out, int64_t now_ns, const wq_wheel_options *options);

/* Returns how many timers were left (0 for NULL), or WQ_EBUSY (inside a callback). */
WQ_API wq_value wq_wheel_free(wq_wheel *w);

/*
 * Call fn(ctx) at due_ns; if that has passed, at the next advance. WQ_NEVER
 * never fires but can be rescheduled. id may be NULL.
 * Returns WQ_OK, WQ_ENOMEM, WQ_ESHUTDOWN (stopped), or WQ_EINVAL (w or fn is
 * NULL, due_ns < 0).
 */
WQ_API int wq_wheel_add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id);

/* The same, delay_ns after the wheel's time, which is that of the last advance. <= 0: at the next one. */
WQ_API int wq_wheel_after(wq_wheel *w, int64_t delay_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);

/*
 * Call fn(ctx) every period_ns (> 0), the first time one period from the
 * wheel's time. The times are multiples of the period from there: they do not
 * drift. Times that were missed altogether are skipped, and the event says how
 * many. It goes on until it is cancelled.
 */
WQ_API int wq_wheel_every(wq_wheel *w, int64_t period_ns, wq_timer_fn fn, void *ctx,
                          wq_timer_id *id);

/*
 * Take a timer back. Its memory is free at once.
 * Returns WQ_OK: in time, it will not fire (again); WQ_ESTALE: it has fired,
 * or was cancelled before, or never was; WQ_EINVAL: w is NULL.
 */
WQ_API int wq_wheel_cancel(wq_wheel *w, wq_timer_id id);

/*
 * Give a timer another time; a periodic one keeps its period from there on.
 * Among equal times it counts as the one added last.
 * Returns as wq_wheel_cancel(), or WQ_ENOMEM: it keeps its time; WQ_EINVAL also
 * for due_ns < 0.
 */
WQ_API int wq_wheel_reschedule(wq_wheel *w, wq_timer_id id, int64_t due_ns);

/* How many timers wait; WQ_EINVAL for NULL. */
WQ_API wq_value wq_wheel_size(const wq_wheel *w);

/*
 * When to advance next: no timer is due before. WQ_NEVER: none is. It may be
 * too early if the first timer was cancelled; advancing then does nothing.
 */
WQ_API wq_value wq_wheel_next_deadline(const wq_wheel *w);

/*
 * The time is now_ns: call everything that is due, and what callbacks add that
 * is due too. A time before the last one fires nothing early and loses nothing.
 *
 * Returns how many callbacks were made, WQ_EBUSY (called from a callback), or
 * WQ_EINVAL (w is NULL, now_ns < 0).
 */
WQ_API wq_value wq_wheel_advance(wq_wheel *w, int64_t now_ns);

/* No more callbacks, no more timers; an advance that is under way returns. Returns WQ_OK, WQ_EINVAL. */
WQ_API int wq_wheel_stop(wq_wheel *w);

#ifdef __cplusplus
}
#endif
#endif
