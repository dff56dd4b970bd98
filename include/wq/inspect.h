/*
 * Looking into a queue: the state of one key, a walk over all keys, the queue's time. Counts and
 * ages at one instant are in wq/snapshot.h.
 *
 *     static int show(void *ctx, const wq_key_info *info)
 *     {
 *         printf("%s: state %u, %u failures\n", (const char *)info->key, info->state,
 *                info->failures);
 *         return 0;
 *     }
 *
 *     wq_walk(q, show, NULL);
 *
 * wq/queue.h includes this header; threads and states are described there.
 */
#ifndef WQ_INSPECT_H
#define WQ_INSPECT_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Look up the state of a key.
 *
 * Returns its WQ_STATE_... bits; 0 if the queue does not know the key.
 *
 * Errors: WQ_EINVAL, WQ_ETOOLONG.
 *
 * Blocks: no.
 */
WQ_API int wq_state(wq_queue *q, const void *key, size_t len);

/*
 * Show every key to fn, in no particular order, with its priority, value and group. At most 256
 * keys are copied under the lock at a time; fn runs outside it and may use the queue. [WALK] A key
 * that exists from the beginning of the walk to its end is shown exactly once; one that comes or
 * goes meanwhile, at most once for each time that it is in the queue.
 *
 * Returns how many keys were shown, including the one for which fn stopped the walk.
 *
 * Errors:
 *   WQ_EINVAL  q or fn is NULL
 *   WQ_ENOMEM  no memory for a key of over 4,000 bytes, value and group included
 *
 * Blocks: no. Allocates: a buffer, if there is memory.
 */
WQ_API wq_number wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx);

/*
 * Read the queue's clock.
 *
 * Returns the time in nanoseconds.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no.
 */
WQ_API wq_number wq_now(wq_queue *q);

#ifdef __cplusplus
}
#endif
#endif
