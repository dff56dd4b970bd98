/*
 * Getting keys and ending holds, beyond wq_get() and wq_done(): deadlines, done and get in one
 * call, giving a key back, interrupting gets.
 *
 *     int rc = wq_get_for(q, &it, 5 * WQ_SECOND);
 *
 *     for (; rc == WQ_OK; rc = wq_next_for(q, &it, 5 * WQ_SECOND))
 *         work(it.key, it.len);
 *
 * wq/queue.h includes this header; threads, states and times are described there.
 */
#ifndef WQ_GET_H
#define WQ_GET_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Get the next key and hold it, as wq_get(), with a limit on the wait. wq_get_until() takes a
 * deadline, wq_get_for() a timeout; a timeout <= 0 tries once. wq_try_get() does not wait, nor
 * does wq_get_until() with WQ_NOWAIT.
 *
 * Returns WQ_OK and fills *item.
 *
 * Errors (*item is untouched):
 *   WQ_ETIMEDOUT  the time passed and no key was ready
 *   WQ_EAGAIN     wq_try_get(), WQ_NOWAIT: no key is ready
 *   WQ_EINVAL     q or item is NULL, or the deadline is below WQ_NOWAIT
 *   others        WQ_ESHUTDOWN and WQ_EINTERRUPTED as wq_get()
 *
 * Blocks: until a key is ready or the time has passed; wq_try_get(): no. Allocates: no.
 */
WQ_API WQ_MUST_CHECK int wq_get_until(wq_queue *q, wq_item *item, int64_t deadline_ns);
WQ_API WQ_MUST_CHECK int wq_get_for(wq_queue *q, wq_item *item, int64_t timeout_ns);
WQ_API WQ_MUST_CHECK int wq_try_get(wq_queue *q, wq_item *item);

/*
 * End a hold and get the next key, as wq_done() and wq_get() in one step. It takes the lock once:
 * the fastest loop of a worker.
 *
 *     for (int rc = wq_get(q, &it); rc == WQ_OK; rc = wq_next(q, &it))
 *         work(it.key, it.len);
 *
 * wq_next_until() and wq_next_for() limit the wait as wq_get_until() and wq_get_for().
 *
 * Returns WQ_OK; *item is the next key.
 *
 * Errors: WQ_EINVAL, WQ_ESTALE and WQ_EOTHERQUEUE as wq_done(): nothing was done, and no key was
 * got. After any other error of wq_get() or wq_get_until() the old item is done, WQ_ESHUTDOWN and
 * WQ_EINTERRUPTED included.
 *
 * Blocks: until a key is ready. Allocates: no.
 */
WQ_API WQ_MUST_CHECK int wq_next(wq_queue *q, wq_item *item);
WQ_API WQ_MUST_CHECK int wq_next_until(wq_queue *q, wq_item *item, int64_t deadline_ns);
WQ_API WQ_MUST_CHECK int wq_next_for(wq_queue *q, wq_item *item, int64_t timeout_ns);

/*
 * End a hold and queue the key again, unfinished. The key goes to the tail (WQ_TAIL) or to the
 * head (WQ_HEAD), with priorities or groups to that of its level and group. No failure is counted.
 * A dirty key is queued once, and a waiting copy is absorbed. Allowed during a shutdown: the key
 * can still be got. The key keeps the time at which it was added.
 *
 * Returns WQ_QUEUED.
 *
 * Errors: those of wq_done(); WQ_EINVAL also for an unknown `where`.
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_requeue(wq_queue *q, const wq_item *item, enum wq_where where);

/*
 * [INTR] Interrupt n blocked gets: they answer WQ_EINTERRUPTED. If fewer gets are blocked, the
 * rest is kept for the next gets that would block, so no get that is about to wait is missed. A
 * get that finds a key without waiting takes it and is not interrupted. n = 0 discards what was
 * kept.
 *
 * Returns how many interrupts were kept before the call; 0 in most cases.
 *
 * Errors: WQ_EINVAL if q is NULL or n < 0.
 *
 * Blocks: no.
 */
WQ_API int wq_interrupt(wq_queue *q, int n);

/*
 * Extend a hold to span_ns from now. Engines whose holds are leases renew the lease. In the memory
 * engine a hold has no end of its own, and this call only checks the item.
 *
 * Returns WQ_OK.
 *
 * Errors: those of wq_done(); WQ_EINVAL also for span_ns <= 0.
 */
WQ_API int wq_extend(wq_queue *q, const wq_item *item, int64_t span_ns);

/*
 * Tell whether a hold was lost, so that another worker may hold the key. In the memory engine no
 * hold is lost: the answer is 0 for a held item.
 *
 * Returns 1 if the hold was lost, 0 if not.
 *
 * Errors: those of wq_done(); WQ_ESTALE if the hold has ended.
 */
WQ_API int wq_lost(wq_queue *q, const wq_item *item);

#ifdef __cplusplus
}
#endif
#endif
