/*
 * A delay queue: values that can be taken once their time has come, the earliest first; equal
 * times keep the order of the offers.
 *
 *     wq_delayqueue *dq;
 *     if (wq_delayqueue_new(&dq, NULL) < 0)
 *         return 1;
 *     wq_delayqueue_offer(dq, job, wq_delayqueue_now(dq) + 5 * WQ_SECOND);
 *     ...
 *     while (wq_delayqueue_take(dq, &job) == WQ_OK)     // any number of threads
 *         run(job);
 *
 * Of the threads that wait in take, one (the leader) sleeps until the first value's time; the
 * others sleep until they are woken. One value wakes one thread. A new first value wakes the
 * leader.
 *
 * Threads: any, for all functions; no call may start once wq_delayqueue_free() has been entered.
 * It starts no thread. Times are nanoseconds of its clock. In the child of a fork() all calls
 * answer WQ_EFORKED; wq_delayqueue_free() answers 0 there and frees nothing.
 */
#ifndef WQ_DELAYQUEUE_H
#define WQ_DELAYQUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_delayqueue wq_delayqueue;

/* Options of wq_delayqueue_new(). All zero asks for the defaults. Structs are copied. */
typedef struct wq_delayqueue_options {
	const wq_allocator *allocator; /* NULL: malloc */
	const wq_clock *clock;         /* NULL: CLOCK_MONOTONIC */
	uint64_t reserved[4];          /* must be zero */
} wq_delayqueue_options;

/*
 * Make a delay queue. options may be NULL.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL, WQ_ENOMEM, or what the clock's watch answered.
 */
WQ_API WQ_MUST_CHECK int wq_delayqueue_new(wq_delayqueue **out,
                                           const wq_delayqueue_options *options);

/*
 * Free a delay queue. NULL is allowed.
 *
 * Ownership: the values are the caller's.
 *
 * Returns how many values were left.
 *
 * Errors: WQ_EBUSY if a thread waits in it; nothing has changed.
 */
WQ_API wq_number wq_delayqueue_free(wq_delayqueue *dq);

/*
 * Offer a value that can be taken at expiry_ns, or at once if that has passed. With WQ_NEVER it
 * never expires.
 *
 * Ownership: the pointer is kept, not what it points to.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL     dq is NULL, or expiry_ns < 0
 *   WQ_ENOMEM     out of memory
 *   WQ_ESHUTDOWN  the delay queue is closed
 *
 * Blocks: no.
 */
WQ_API int wq_delayqueue_offer(wq_delayqueue *dq, void *value, int64_t expiry_ns);

/*
 * Take the first value. wq_delayqueue_take() waits until it has expired;
 * wq_delayqueue_take_until() waits until deadline_ns (>= 0) at most, wq_delayqueue_take_for() for
 * timeout_ns at most (<= 0: does not wait); wq_delayqueue_poll() does not wait.
 *
 * Returns WQ_OK and the value in *value.
 *
 * Errors:
 *   WQ_ESHUTDOWN  closed, and no value has expired
 *   WQ_ETIMEDOUT  wq_delayqueue_take_until(), wq_delayqueue_take_for(): the time is up
 *   WQ_EAGAIN     wq_delayqueue_poll(): no value has expired
 *   WQ_EINVAL     dq or value is NULL, or deadline_ns < 0
 *
 * Blocks: wq_delayqueue_poll(): no.
 */
WQ_API int wq_delayqueue_take(wq_delayqueue *dq, void **value);
WQ_API int wq_delayqueue_take_until(wq_delayqueue *dq, void **value, int64_t deadline_ns);
WQ_API int wq_delayqueue_take_for(wq_delayqueue *dq, void **value, int64_t timeout_ns);
WQ_API int wq_delayqueue_poll(wq_delayqueue *dq, void **value);

/*
 * Count the values, expired or not.
 *
 * Returns the number of values.
 *
 * Errors: WQ_EINVAL if dq is NULL.
 */
WQ_API wq_number wq_delayqueue_size(wq_delayqueue *dq);

/*
 * Tell when the first value expires.
 *
 * Returns the time; WQ_NEVER if there is no value, or it never expires.
 *
 * Errors: WQ_EINVAL if dq is NULL.
 */
WQ_API wq_number wq_delayqueue_next(wq_delayqueue *dq);

/*
 * Close a delay queue: offers are refused, and threads that wait in take return. Expired values
 * can still be taken. It may be called again.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if dq is NULL.
 */
WQ_API int wq_delayqueue_close(wq_delayqueue *dq);

/*
 * Read the clock of a delay queue.
 *
 * Returns the time in nanoseconds.
 *
 * Errors: WQ_EINVAL if dq is NULL.
 */
WQ_API wq_number wq_delayqueue_now(wq_delayqueue *dq);

/*
 * Tell a delay queue that its clock has jumped, as wq_clock_changed().
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if dq is NULL.
 */
WQ_API int wq_delayqueue_clock_changed(wq_delayqueue *dq);

#ifdef __cplusplus
}
#endif
#endif
