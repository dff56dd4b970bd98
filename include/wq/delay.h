/*
 * Delayed adds with a policy, another due time for a waiting key, and cancel.
 *
 *     // debounce: run 100 ms after the last event, at the latest 2 s after the first
 *     if (wq_new(&q, &(wq_options){.within = 1}) < 0)      // within_ns needs it
 *         return 1;
 *     wq_add_options o = {.after_ns = 100 * WQ_MILLISECOND,
 *                         .policy = WQ_REPLACE,
 *                         .within_ns = 2 * WQ_SECOND};
 *     wq_add_with(q, path, strlen(path), &o);
 *
 * wq_add_after() and wq_add_at() are in wq/queue.h, which includes this header; threads, states
 * and times are described there.
 */
#ifndef WQ_DELAY_H
#define WQ_DELAY_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Add a key with options: now, after a delay, at a due time, or after the limiter's delay. NULL
 * options add it now.
 *
 * A due time that has passed adds the key now. When a key comes due, it is queued by its due time:
 * before every key that was added after that time. Equal due times keep the order of the calls (a
 * key that was moved or cancelled and gets back a due time it had before may keep its former
 * place). With WQ_NEVER the key waits until it is moved or cancelled.
 *
 * A bound by within_ns belongs to the waiting copy. The copy comes due by then, whatever the
 * policy of this add or of later ones, with or without a bound, limited adds and retries included.
 * A copy that waits without a bound gets it from the first add that gives one, and is moved if its
 * due time is later. The bound ends when the copy comes due, is cancelled, left over, or absorbed
 * by an add, and wq_reschedule() removes it. A bound beyond WQ_NEVER is no bound. An add that does
 * not wait ignores within_ns.
 *
 * A priority applies to every add, delayed or not (wq/priority.h), and so does a value
 * (wq/value.h): also if the answer is WQ_MERGED, WQ_MARKED or WQ_KEPT.
 *
 * Ownership: key and value are copied.
 *
 * Returns WQ_DELAYED: it waits now; WQ_MOVED or WQ_KEPT: it was waiting, and its time was or was
 * not changed; or WQ_QUEUED, WQ_MERGED, WQ_MARKED as wq_add().
 *
 * Errors: those of wq_add(); others are
 *   WQ_EINVAL    more than one of after_ns, at_ns and limited is given; at_ns < 0; the policy is
 *                unknown; a reserved word is not zero; within_ns is < 0, or is > 0 where it is not
 *                allowed: without wq_options.within = 1, with WQ_REMIND or with limited; priority
 *                is out of range, or not 0 without wq_options.priorities = 1; a value is given
 *                without wq_options.values = 1; value is NULL and value_len is not 0
 *   WQ_ETOOLONG  value_len > WQ_VALUE_MAX, or the merged value is longer
 *   others       the status of wq_options.merge
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_with(wq_queue *q, const void *key, size_t len, const wq_add_options *options);

/*
 * Give a waiting key another due time, whatever policy it was added with. With a time that has
 * passed the key is queued. A bound by within_ns is removed: later adds may move the key beyond
 * it, and give a new one. The call is not counted as an add.
 *
 * Returns WQ_MOVED.
 *
 * Errors:
 *   WQ_ENOTFOUND  the key does not wait
 *   WQ_ENOMEM     out of memory; the key keeps its due time
 *   WQ_ESHUTDOWN  the key is left over, or a drain that waited for waiting keys is over
 *   WQ_EINVAL     q is NULL, key is NULL and len is not 0, or due_ns < 0
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *
 * Blocks: no.
 */
WQ_API int wq_reschedule(wq_queue *q, const void *key, size_t len, int64_t due_ns);

/*
 * Cancel a key in any state. A queued key and waiting copies are removed. A held key is no longer
 * dirty: neither its done nor a retry of this hold brings it back. An add after the cancel counts
 * as usual. The limiter keeps what it remembers of the key.
 *
 * wq_cancel_until() and wq_cancel_for() also wait until the hold has ended, if a worker holds the
 * key. They do not wait for later holds. Do not call them while holding the key.
 *
 * Returns WQ_CANCELLED. *was, unless was is NULL, receives the WQ_STATE_... bits that were found:
 * QUEUED, RUNNING, DIRTY and WAITING (also for a copy that is left over).
 *
 * Errors:
 *   WQ_ENOTFOUND  the queue does not know the key
 *   WQ_ETIMEDOUT  the time passed before the hold ended; the key is cancelled, and *was is
 *                 written
 *   WQ_EDEADLK    called by a pool's handler for the key that it handles; nothing has changed
 *   WQ_EINVAL     q is NULL, key is NULL and len is not 0, or deadline_ns < 0
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *
 * Blocks: wq_cancel(): no. Allocates: no.
 */
WQ_API int wq_cancel(wq_queue *q, const void *key, size_t len, unsigned *was);
WQ_API int wq_cancel_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns,
                           unsigned *was);
WQ_API int wq_cancel_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns,
                         unsigned *was);

#ifdef __cplusplus
}
#endif
#endif
