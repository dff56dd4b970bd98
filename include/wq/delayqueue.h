/*
 * A delay queue: values that can be taken once their time has come, the one
 * with the earliest time first, equal ones in the order they were offered.
 *
 *     wq_delayqueue_offer(dq, job, wq_delayqueue_now(dq) + 5 * WQ_SECOND);
 *     ...
 *     while (wq_delayqueue_take(dq, &job) == WQ_OK)     // any number of threads
 *         run(job);
 *
 * Of the threads that wait in take, one (the leader) sleeps until the first
 * value's time and the others until they are woken: no herd wakes up for one
 * value. A value that becomes the first wakes the leader.
 *
 * Threads: any, for all functions; none may start once free has been entered.
 * It starts no thread. Times are nanoseconds of its clock. In the child of a fork() all calls
 * answer WQ_EFORKED, but free, which is 0 and gives nothing back.
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

/* All zero is a good one. The structs that are pointed to are copied. */
typedef struct wq_delayqueue_options {
	const wq_allocator *allocator; /* NULL: malloc */
	const wq_clock *clock;         /* NULL: CLOCK_MONOTONIC */
	uint64_t reserved[4];          /* must be zero */
} wq_delayqueue_options;

/* Returns WQ_OK, WQ_EINVAL, WQ_ENOMEM, or what the clock's watch answered. options may be NULL. */
WQ_API int wq_delayqueue_new(wq_delayqueue **out, const wq_delayqueue_options *options);

/*
 * Free it; the values in it are the caller's. Returns how many were left,
 * or WQ_EBUSY (a thread waits inside; nothing changed). NULL: 0.
 */
WQ_API wq_value wq_delayqueue_free(wq_delayqueue *dq);

/*
 * Offer a value that can be taken at expiry_ns, or at once if that has passed.
 * WQ_NEVER is never due. The pointer is kept, not what it points to.
 * Returns WQ_OK, WQ_EINVAL (dq is NULL, expiry < 0), WQ_ENOMEM, or
 * WQ_ESHUTDOWN: closed. Blocks: no.
 */
WQ_API int wq_delayqueue_offer(wq_delayqueue *dq, void *value, int64_t expiry_ns);

/*
 * Take the first value, waiting until its time has come.
 * Returns WQ_OK and the value, or WQ_ESHUTDOWN: closed, and nothing has
 * expired; or WQ_EINVAL.
 */
WQ_API int wq_delayqueue_take(wq_delayqueue *dq, void **value);

/* The same, but no longer than until deadline_ns (>= 0): WQ_ETIMEDOUT. */
WQ_API int wq_delayqueue_take_until(wq_delayqueue *dq, void **value, int64_t deadline_ns);

/* Take only what has expired: WQ_EAGAIN if nothing has (closed: WQ_ESHUTDOWN). Blocks: no. */
WQ_API int wq_delayqueue_poll(wq_delayqueue *dq, void **value);

/* All values, expired or not. WQ_EINVAL for NULL. */
WQ_API wq_value wq_delayqueue_size(wq_delayqueue *dq);

/* When the first value expires; WQ_NEVER: there is none, or it never does. WQ_EINVAL for NULL. */
WQ_API wq_value wq_delayqueue_next(wq_delayqueue *dq);

/*
 * Close: offers are refused, and who waits in take returns. What has expired
 * can still be taken. May be called again. Returns WQ_OK or WQ_EINVAL.
 */
WQ_API int wq_delayqueue_close(wq_delayqueue *dq);

/* Its time now; the clock has jumped, as wq_clock_changed(). */
WQ_API wq_value wq_delayqueue_now(wq_delayqueue *dq);
WQ_API int wq_delayqueue_clock_changed(wq_delayqueue *dq);

#ifdef __cplusplus
}
#endif
#endif
