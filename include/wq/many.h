/*
 * Calls on many keys, which take the lock once for up to 256 of them.
 *
 *     wq_item items[64];
 *     int n = wq_get_many_until(q, items, 64, WQ_NEVER);
 *
 *     for (; n > 0; n = wq_next_many_until(q, items, (size_t)n, 64, WQ_NEVER))
 *         for (int i = 0; i < n; i++)
 *             work(items[i].key, items[i].len);
 *
 * None of these calls is atomic: each key has an outcome of its own. In a queue with priorities,
 * groups or values, wq_add_many() takes the lock for each key. wq/queue.h includes this header;
 * threads, states and times are described there.
 */
#ifndef WQ_MANY_H
#define WQ_MANY_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Add n keys, as wq_add() one after another. The lock is released at least every 256 keys.
 * outcomes[i], unless outcomes is NULL, receives the outcome of key i, also the error of a key
 * with a bad argument. A refused key does not stop the others.
 *
 * Returns how many keys were accepted: queued, merged or marked.
 *
 * Errors: WQ_EINVAL if q is NULL, keys is NULL and n > 0, or n > INT_MAX; no key was added and no
 * outcome written.
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_many(wq_queue *q, const wq_key *keys, size_t n, int *outcomes);

/*
 * Get up to max keys. Waits as wq_get_until() for the first key and takes those that are ready
 * with it; it does not wait for max keys. Limits and rates of groups hold. The lock is released at
 * least every 256 keys. With the deadline WQ_NEVER it waits as wq_get(), with WQ_NOWAIT not at
 * all. wq_get_many_for() takes a timeout.
 *
 * Returns how many items were filled, at least 1.
 *
 * Errors: those of wq_get_until(); WQ_EINVAL also if max is 0 or above INT_MAX.
 *
 * Blocks: until a key is ready or the time has passed. Allocates: no.
 */
WQ_API WQ_MUST_CHECK int wq_get_many_until(wq_queue *q, wq_item *items, size_t max,
                                           int64_t deadline_ns);
WQ_API WQ_MUST_CHECK int wq_get_many_for(wq_queue *q, wq_item *items, size_t max,
                                         int64_t timeout_ns);

/*
 * End n holds, as wq_done() one after another. The lock is released at least every 256 keys.
 * outcomes[i], unless outcomes is NULL, receives what wq_done() would have answered for item i.
 *
 * Returns how many of the items were held and are done now.
 *
 * Errors: WQ_EINVAL if q is NULL, items is NULL and n > 0, n > INT_MAX, or a reserved word of an
 * item is not zero; nothing is done then, and no outcome written.
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_done_many(wq_queue *q, const wq_item *items, size_t n, int *outcomes);

/*
 * End n holds and get up to max keys, as wq_done_many() of the first n items and
 * wq_get_many_until() into the same array. n <= max; with n = 0 it is wq_get_many_until(). If an
 * item is stale or belongs to another queue, the others are done, no key is got, and the answer is
 * that error. wq_next_many_for() takes a timeout.
 *
 * Returns how many items were filled.
 *
 * Errors: those of wq_next_until() and wq_get_many_until().
 *
 * Blocks: until a key is ready or the time has passed. Allocates: no.
 */
WQ_API WQ_MUST_CHECK int wq_next_many_until(wq_queue *q, wq_item *items, size_t n, size_t max,
                                            int64_t deadline_ns);
WQ_API WQ_MUST_CHECK int wq_next_many_for(wq_queue *q, wq_item *items, size_t n, size_t max,
                                          int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
