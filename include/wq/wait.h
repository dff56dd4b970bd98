/*
 * Waiting until work is finished. wq_shutdown(), wq_drain_for() and wq_drain_until(), which end a
 * queue, are in wq/queue.h; these calls leave it open.
 *
 *     wq_add_str(q, "config");
 *     if (wq_wait_key_for(q, "config", 6, 10 * WQ_SECOND) == WQ_OK &&
 *         wq_failures(q, "config", 6) == 0)
 *         puts("the configuration has been loaded");
 *
 * WQ_OK says that an attempt has ended, not that it succeeded. A key that failed waits for its
 * retry and is not waited for. The worker of this example settles by verdicts, so a success leaves
 * no failures.
 *
 * wq/queue.h includes this header; threads, states and times are described there.
 */
#ifndef WQ_WAIT_H
#define WQ_WAIT_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Tell whether a shutdown or a drain has begun.
 *
 * Returns 1 if it has, 0 if not.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no.
 */
WQ_API int wq_shutting_down(wq_queue *q);

/*
 * Wait until the queue is idle: no key is queued and none is held. The queue goes on accepting
 * keys, so it may not be idle any more when the call returns. wq_wait_idle_until() takes a
 * deadline, wq_wait_idle_for() a timeout. Keys that wait, retries included, do not count.
 *
 * A worker that holds an item and calls this waits for itself: do not.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_ETIMEDOUT  the time passed
 *   WQ_EDEADLK    called by a handler of a pool of this queue
 *   WQ_EINVAL     q is NULL, or deadline_ns < 0
 *
 * Blocks: yes. Allocates: no.
 */
WQ_API int wq_wait_idle_until(wq_queue *q, int64_t deadline_ns);
WQ_API int wq_wait_idle_for(wq_queue *q, int64_t timeout_ns);

/*
 * [KEYWAIT] Wait until the attempts that were asked of one key before this call have ended. That
 * is: a queued key has been held and its hold has ended; the hold of a held key has ended; and for
 * a dirty key the hold after that, too. Later adds do not prolong the wait. For a key that is
 * absent, or only waits for its due time or its retry, the call returns at once.
 * wq_wait_key_until() takes a deadline, wq_wait_key_for() a timeout.
 *
 * WQ_OK says that an attempt has ended, not that it succeeded: a key that failed waits for its
 * retry, which is not waited for.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_ETIMEDOUT  the time passed
 *   WQ_EDEADLK    called by a pool's handler for the key that it handles
 *   WQ_EINVAL     q is NULL, key is NULL and len is not 0, or deadline_ns < 0
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *
 * Blocks: yes. Allocates: no.
 */
WQ_API int wq_wait_key_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns);
WQ_API int wq_wait_key_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
