/*
 * Failures and retries: verdicts with a delay, adds after the limiter's delay, and what the limiter
 * remembers.
 *
 *     static wq_verdict work(const wq_item *it)
 *     {
 *         switch (fetch(it->key)) {
 *         case 200: return WQ_DONE;
 *         case 429: return wq_retry_after(30 * WQ_SECOND);
 *         case 404: return WQ_DROP;
 *         default:  return WQ_RETRY;
 *         }
 *     }
 *
 *     while (wq_get(q, &it) == WQ_OK)
 *         wq_settle(q, &it, work(&it));
 *
 * wq_settle() is in wq/queue.h, which includes this header; limiters are in wq/limiter.h.
 */
#ifndef WQ_RETRY_H
#define WQ_RETRY_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make a verdict with a delay. wq_again_after() is the verdict of a success: the failures are
 * forgotten, and the key is added again after delay_ns. It acts as wq_add_after(): it merges with
 * an add that came meanwhile, or with a waiting copy of the key. wq_retry_after() is the verdict
 * of a failure, as WQ_RETRY, with a delay of at least delay_ns. A delay <= 0 is 0.
 *
 * Returns the verdict.
 *
 * Threads: any. Blocks: no.
 */
WQ_API wq_verdict wq_again_after(int64_t delay_ns);
WQ_API wq_verdict wq_retry_after(int64_t delay_ns);

/*
 * [RETRY] End a hold as failed. Counts a failure and adds the key again after the limiter's delay,
 * in one step with the end of the hold. The failure counts once, also if the key is dirty. It is
 * the same as wq_settle() with WQ_RETRY.
 *
 * Returns what became of the key:
 *   WQ_DELAYED    it waits for its next attempt, or for an earlier due time it had
 *   WQ_QUEUED     it is queued at once: it was dirty, the limiter asked for no delay, a drain
 *                 runs waiting keys (once per key), or there was no memory to let it wait
 *   WQ_CANCELLED  it was cancelled during this hold: no failure is counted, and it is done (an
 *                 add after the cancel counts: WQ_QUEUED, WQ_DELAYED)
 *   WQ_DEAD       it has failed max_attempts times: dead_letter was called, and it is forgotten
 *                 and done; if it was dirty, it is queued with no failures
 *   WQ_LEFT       the queue is shut down: it is left over, and drains report it. A drain that
 *                 waits for waiting keys (WQ_DRAIN_WAIT) accepts retries
 *
 * Errors: those of wq_done(); nothing has changed.
 *
 * Blocks: no, except for dead_letter. Allocates: perhaps.
 */
WQ_API int wq_retry(wq_queue *q, const wq_item *item);

/*
 * End a hold by a verdict and get the next key, as wq_settle() and wq_get_until() in one step. It
 * is for workers with a loop of their own. wq_settle_next_for() takes a timeout.
 *
 * Returns as wq_next_until(). *settled, unless settled is NULL, receives what wq_settle() would
 * have answered; it is written whenever the hold has ended.
 *
 * Errors: those of wq_next_until() and wq_settle().
 *
 * Blocks: until a key is ready or the time has passed.
 */
WQ_API WQ_MUST_CHECK int wq_settle_next_until(wq_queue *q, wq_item *item, wq_verdict verdict,
                                              int64_t deadline_ns, int *settled);
WQ_API WQ_MUST_CHECK int wq_settle_next_for(wq_queue *q, wq_item *item, wq_verdict verdict,
                                            int64_t timeout_ns, int *settled);

/*
 * [LIMITED] Add a key after the limiter's delay, with policy WQ_MIN. A delay of 0 adds it now. The
 * limiter counts every accepted call, merged or not. If the key is queued, or comes due sooner
 * anyway, the token that the limiter reserved is given back, but the count stays. A refused call
 * is not counted (a custom limiter may have been asked nevertheless).
 *
 * The call counts as a failure, as client-go's AddRateLimited: the first attempt of the key then
 * has the number 2. To limit the rate only, use a limiter without backoff, such as a bucket.
 *
 * Returns as wq_add_after().
 *
 * Errors: those of wq_add().
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_limited(wq_queue *q, const void *key, size_t len);

/*
 * Forget the failures of a key, in any state. Nothing else changes: a hold goes on until it is
 * ended. [FORGET] Nothing else clears failures: they outlive wq_done() and wq_cancel(), until this
 * call or the idle bound of the limiter. wq_forget_item() names the key by a held item.
 *
 * Returns WQ_OK, also if there was nothing to forget.
 *
 * Errors: WQ_EINVAL, WQ_ETOOLONG; wq_forget_item() those of wq_done().
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_forget(wq_queue *q, const void *key, size_t len);
WQ_API int wq_forget_item(wq_queue *q, const wq_item *item);

/*
 * Count the failures that the limiter remembers of a key. wq_failures_item() names the key by a
 * held item.
 *
 * Returns the number of failures.
 *
 * Errors: WQ_EINVAL, WQ_ETOOLONG; wq_failures_item() those of wq_done().
 *
 * Blocks: no.
 */
WQ_API wq_number wq_failures(wq_queue *q, const void *key, size_t len);
WQ_API wq_number wq_failures_item(wq_queue *q, const wq_item *item);

/*
 * [SET] Set the failures that the limiter remembers of a key. It is for a program that saves its
 * keys, with wq_key_info.failures, and adds them again after a restart. The next attempt of the
 * key has the number failures + 1; a held key keeps its number. Other things that a limiter
 * remembers (a bucket per key, the last delay of decorrelated jitter) do not change. Use
 * wq_forget() for 0 failures.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL     q is NULL, or key is NULL and len is not 0; failures is 0 or above
 *                 WQ_FAILURES_MAX
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *   WQ_ENOTFOUND  the queue does not know the key: add it first
 *   WQ_ENOTSUP    the limiter counts no failures, or is a custom limiter, which counts its own;
 *                 or the engine cannot do it
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_set_failures(wq_queue *q, const void *key, size_t len, uint32_t failures);

#ifdef __cplusplus
}
#endif
#endif
