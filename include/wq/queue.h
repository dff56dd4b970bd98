/*
 * The queue: threads add keys, and each key is with one worker at a time.
 *
 *     wq_queue *q;
 *     wq_item it;
 *
 *     if (wq_new(&q, NULL) < 0)
 *         return 1;
 *     wq_add_str(q, "default/pod-17");            // any thread
 *     while (wq_get(q, &it) == WQ_OK)             // a worker; WQ_ESHUTDOWN: shut down and empty
 *         wq_settle(q, &it, reconcile(it.key, it.len) == 0 ? WQ_DONE : WQ_RETRY);
 *
 * Ten calls are enough for most programs; this header declares them:
 *
 *   wq_new         make a queue
 *   wq_add         add a key now                     (wq_add_str(): a C string)
 *   wq_add_after   add a key after a delay
 *   wq_get         wait for a key and hold it
 *   wq_settle      end the hold by a verdict: WQ_DONE, or WQ_RETRY to try again later
 *   wq_done        end the hold as finished, for programs that never retry
 *   wq_len         how many keys are queued
 *   wq_shutdown    refuse adds, let workers finish
 *   wq_drain_for   the same, wait until they have finished, and report unfinished keys
 *   wq_free        free the queue
 *
 * The other calls are in headers of their own, which this one includes:
 *
 *   wq/types.h      options, items, verdicts, states, reports
 *   wq/get.h        get with a deadline; done and get in one call; requeue; interrupt
 *   wq/delay.h      delayed adds and their policies; reschedule; cancel
 *   wq/retry.h      retry, verdicts with a delay, limited adds, failures
 *   wq/priority.h   keys that are handed out before others, and aging
 *   wq/group.h      groups of keys: turns, limits, rates
 *   wq/value.h      values that travel with keys, and how they merge
 *   wq/many.h       many keys in one call
 *   wq/wait.h       wait until idle or for one key; whether the queue is shut down
 *   wq/inspect.h    the state of a key, a walk over all keys
 *   wq/eventloop.h  a descriptor for poll and epoll
 *
 * Lifecycle of a key:
 *
 *             wq_add               wq_get              wq_done
 *   absent ──────────► QUEUED ──────────► RUNNING ──────────► absent
 *      │                 ▲  ▲                │ wq_add
 *      │ wq_add_after    │  │   wq_done      ▼
 *      └───► WAITING ────┘  └─────────── RUNNING|DIRTY
 *                     due
 *
 *   call      | absent  | waiting       | queued  | running  | running,dirty | running,waiting
 *   ----------+---------+---------------+---------+----------+---------------+----------------
 *   add       | queued  | queued        | merged  | marked   | merged        | marked
 *   add_after | waiting | by the policy | merged  | +waiting | merged        | by the policy
 *   comes due | –       | queued        | –       | –        | –             | dirty
 *   cancel    | –       | gone          | gone    | –        | dirty off     | waiting off
 *   done      | stale   | stale         | stale   | gone     | queued, tail  | waiting
 *   requeue   | stale   | stale         | stale   | queued   | queued        | queued
 *   retry     | stale   | stale         | stale   | waiting  | queued, tail  | waiting, earlier
 *   shutdown  | –       | left over     | kept    | kept     | kept          | left over
 *
 * An add absorbs the waiting copy of its key. No add makes a queued or dirty key wait again: to
 * do that, cancel the key first. A queued key may be blocked by its group (wq/group.h): that
 * changes nothing in this table.
 *
 * In queues with priorities or values, the queued, waiting or dirty copy of a key has its own, and
 * so have the hold and a reminder:
 *
 *   call                        | priority                    | value
 *   ----------------------------+-----------------------------+-------------------------------
 *   add of an absent key        | that of the add             | that of the add, or none
 *   add that finds a copy       | the higher one              | merged (wq/value.h)
 *   first add of a held key     | that of the add             | that of the add, or none
 *   comes due                   | kept                        | kept
 *   reminder comes due          | as an add with its own      | as an add with its own
 *   get                         | goes to the hold            | goes to the hold
 *   done, WQ_DROP, dead         | that of the hold ends       | that of the hold ends
 *   retry, requeue, again_after | the higher of hold and copy | hold and copy, merged
 *   cancel                      | that of the copy ends       | that of the copy ends
 *
 * Promises of every call (tests name the tags):
 *   [ONE]    a key is never with two workers at once
 *   [KEEP]   an accepted key is handed out, unless a call removes it and says so
 *   [BACK]   a key that is added while it is held is handed out once more afterwards
 *   [FIFO]   with the default order, keys are handed out in the order they were queued; with
 *            priorities or groups, those of one level and group (wq/priority.h, wq/group.h)
 *   [WHOLE]  a call that answers an error has changed nothing, unless its text says otherwise
 *   [STALE]  an item whose hold has ended is detected
 *   [WAKE]   if a key is ready and a get sleeps, the get is woken, unless another get takes the key
 *
 * Threads: any thread may call any function at any time, with two exceptions: nothing may run
 * beside wq_new() on the same pointer, and no call may start once wq_free() has been entered. No
 * function is a cancellation point, is safe in a signal handler, or returns because of EINTR.
 * The queue starts no thread.
 *
 * [FORK] In the child of a fork() every call on a queue that the parent made answers WQ_EFORKED
 * and does nothing else. wq_free() closes the queue's descriptors there, frees nothing else, and
 * answers WQ_OK. No call waits, or takes events from the parent. The same holds for pools, timers
 * and delay queues. Queues that the child itself makes can be used. Heaps, wheels, limiters alone,
 * registries and manual clocks may be used in the child if no other thread was in a call on them.
 * The child of a callback must call exec or _exit. Processes made by vfork(), clone() or _Fork()
 * are not detected.
 *
 * Tools: a program that is built with a sanitizer, or run by valgrind, needs no other library.
 *
 *   tool                               | what it reports, besides the program's own errors
 *   -----------------------------------+----------------------------------------------------------
 *   AddressSanitizer, HWASan, memcheck | reads of a key after its hold has ended, or beyond its NUL
 *   ThreadSanitizer                    | nothing: adds, gets and dones synchronise
 *   helgrind, DRD                      | the same; --suppressions=PREFIX/share/wq/helgrind.supp
 *
 * Under such a tool, the keys of items are copies from malloc and locks are pthread mutexes, which
 * is slower. The library detects the tool when it is loaded; in other processes nothing changes.
 *
 * Hooks (clock, allocator, order, custom limiter, metrics provider, group_setup, merge) run under
 * the queue's lock. [REENTER] A hook that calls its own queue stops the process with abort(), in
 * every build.
 *
 * A queue is open, then closing, then shut, and never goes back:
 *
 *   call                    | open            | closing or shut
 *   ------------------------+-----------------+------------------------------------------
 *   add, add_after ...      | accepts keys    | WQ_ESHUTDOWN
 *   get, next, settle_next  | waits for a key | a queued key, waits for blocked ones; none is
 *                           |                 | queued: WQ_ESHUTDOWN
 *   done, requeue, cancel,  | as described    | the same
 *   state, len, walk ...    |                 |
 *   reschedule              | moves a key     | WQ_ESHUTDOWN (in a drain that waits: moves it)
 *   retry                   | the key waits   | WQ_LEFT (for drains see wq_retry())
 *   shutdown                | closes it       | releases the drains that have begun
 *   drain                   | closes it       | waits for what the first one waits for
 *   shutting_down           | 0               | 1
 *
 * It is closing while due keys are queued, or while a drain runs waiting keys or waits for them.
 * Other calls do not wait for that: long work passes the lock to waiting threads at least every
 * 1,000 keys. Keys that wait in a queue that is shut never come due: they are left over. Drains
 * and walks list them until they are cancelled or the queue is freed.
 *
 * Statuses: >= 0 is a value or an outcome, < 0 an error, see wq/status.h. An engine that stores
 * keys elsewhere may answer WQ_EIO to any call that returns a status. The memory engine does not,
 * except in wq_fd().
 *
 * Times are nanoseconds of the queue's clock. Calls named ..._until take an absolute deadline,
 * calls named ..._for a timeout from now. WQ_NEVER waits without end. With a time that has passed
 * a call tries once; if nothing is ready it answers WQ_ETIMEDOUT.
 */
#ifndef WQ_QUEUE_H
#define WQ_QUEUE_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make a queue. options may be NULL. On success *out is the queue; on an error *out is untouched.
 *
 * Ownership: the queue owns the order and the limiter of the options in every case, failure
 * included. Strings and structs are copied.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL    out is NULL; a reserved word is not zero; within > 1; the name is too long;
 *                spin_ns is out of range; a clock, allocator or order lacks a function; the
 *                room of an order is above WQ_ORDER_ROOM_MAX; engine_options without an engine;
 *                max_attempts above WQ_FAILURES_MAX, or with a limiter that counts no failures;
 *                priorities or values > 1; an order with priorities or groups; aging_ns or
 *                aging_max out of range, aging_ns without priorities, aging_max without aging_ns;
 *                group_rate < 0 or > 1e9; an option of groups without group; merge or merge_ctx
 *                without values;
 *                a registry or a provider without a name; a registry and a name that is not
 *                UTF-8, or is "." or "..", which cannot be part of a URL path; a provider whose
 *                reserved words are not zero
 *   WQ_EVERSION  the engine's table has another version, or no open or close
 *   WQ_ENOTSUP   the engine has no priorities, groups or values (wq_engine.features)
 *   WQ_EBUSY     the limiter has another owner
 *   WQ_EEXIST    the registry has a queue of this name
 *   WQ_ENOMEM    out of memory
 *   others       the status of the limiter, if its constructor failed; that of the clock's watch
 *
 * Blocks: no; with a registry, while another thread visits its queues (wq_registry_each()).
 * Allocates: yes.
 */
WQ_API WQ_MUST_CHECK int wq_new(wq_queue **out, const wq_options *options);

/*
 * Free a queue. Keys that are queued, waiting or left over are discarded and counted; after a
 * drain that answered WQ_OK there are none. A key and its reminder count once. NULL is allowed.
 *
 * Returns the number of keys discarded, at most INT_MAX; in the child of a fork() 0, see [FORK].
 *
 * Errors:
 *   WQ_EBUSY  a key is held, a thread waits in the queue or walks over it, or the queue has a
 *             pool; wq_last_error() says which. The queue is unchanged. wq_shutdown() wakes gets
 *             and drains
 *
 * Threads: wq_free() does not see a call that is about to start, or that waits for the queue's
 * lock: make sure that no call begins once this one has. Blocks: no; with a registry, while
 * another thread visits its queues (wq_registry_each()) or this one (wq_registry_visit(), a
 * listing over HTTP).
 */
WQ_API int wq_free(wq_queue *q);

/*
 * Add a key. If it is queued, the add merges with it. If a worker holds it, it is marked dirty
 * and queued again when the hold ends. Otherwise it goes to the tail (of its level, of its group),
 * and a sleeping worker is woken unless one that is awake takes the key. In queues with priorities
 * or values it is an add with priority 0 and without a value.
 *
 * A key is any bytes; equal bytes are the same key; NULL with length 0 is the empty key.
 * wq_add_str() adds a C string, without its NUL.
 *
 * Ownership: the key is copied.
 *
 * Returns WQ_QUEUED, WQ_MERGED or WQ_MARKED.
 *
 * Errors:
 *   WQ_EINVAL     q is NULL, or key is NULL and len is not 0; wq_add_str(): key is NULL
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *   WQ_ESHUTDOWN  the queue is shut down
 *   WQ_EFULL      the key is new and the queue has max_keys keys
 *   WQ_ENOMEM     out of memory, or the queue has 32 GiB of keys (wq/alloc.h)
 *   others        the status of wq_options.group; WQ_EINVAL if the group that it found is not a
 *                 part of the key
 *
 * Blocks: no; while more than 4,096 keys are queued and several threads use the queue, it may yield
 * the CPU. Allocates: yes, for a new key.
 */
WQ_API int wq_add(wq_queue *q, const void *key, size_t len);
WQ_API int wq_add_str(wq_queue *q, const char *key);

/*
 * Add a key after a delay. The key waits until now + delay_ns, then it is queued. A delay <= 0
 * adds it now. If the key already waits, the earlier time counts (WQ_MIN). wq_add_at() takes a due
 * time on the queue's clock instead of a delay. wq_add_with() has other policies; it explains
 * order, WQ_NEVER and merging.
 *
 * Returns WQ_DELAYED: it waits now; WQ_MOVED or WQ_KEPT: it was waiting, and its time was or was
 * not changed; or WQ_QUEUED, WQ_MERGED, WQ_MARKED as wq_add().
 *
 * Errors: those of wq_add(); wq_add_at() also WQ_EINVAL if due_ns < 0.
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_after(wq_queue *q, const void *key, size_t len, int64_t delay_ns);
WQ_API int wq_add_at(wq_queue *q, const void *key, size_t len, int64_t due_ns);

/*
 * Get the next key and hold it. Waits until a key is ready: queued, and not blocked by its group.
 * If several threads wait, one of them gets the key. wq/get.h has forms with a deadline and without
 * waiting.
 *
 * Returns WQ_OK and fills *item.
 *
 * Errors (*item is untouched):
 *   WQ_EINVAL        q or item is NULL
 *   WQ_ESHUTDOWN     shut down, and no key is queued, blocked keys included (in a drain that
 *                    waits: nor waiting or held). A dirty key may still be queued by its done: a
 *                    later get finds it
 *   WQ_EINTERRUPTED  wq_interrupt() interrupted this call
 *
 * Blocks: until a key is ready. Allocates: no.
 */
WQ_API WQ_MUST_CHECK int wq_get(wq_queue *q, wq_item *item);

/*
 * End a hold as finished. A dirty key goes to the tail, also during a shutdown; any other key is
 * gone. Unlike the verdict WQ_DONE it does not forget failures: they add up over the life of the
 * key. A worker that retries calls wq_settle().
 *
 * Returns WQ_OK: gone; WQ_QUEUED: it was dirty and is queued again; WQ_DELAYED: a copy of it
 * waits for its due time; or WQ_LEFT: the same, but the queue is shut down. A reminder does not
 * count: it waits on after WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL       q or item is NULL, or a reserved word is not zero
 *   WQ_ESTALE       this hold has ended
 *   WQ_EOTHERQUEUE  the item belongs to another queue
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_done(wq_queue *q, const wq_item *item);

/*
 * End a hold by a verdict:
 *
 *   WQ_DONE            success: forget the failures, then as wq_done()
 *   WQ_RETRY           failed: retry after the limiter's delay, as wq_retry()
 *   wq_retry_after(d)  failed: the same, but after at least d nanoseconds
 *   wq_again_after(d)  success: forget the failures, and add the key again after d nanoseconds
 *   WQ_DROP            not worth a retry: forget, done, and count the key as dropped
 *   WQ_FATAL           failed for good: the key is dead, and dead_letter is called
 *
 * wq_again_after() of a key that was cancelled during this hold forgets it and answers
 * WQ_CANCELLED. In a queue that is shut down it answers WQ_LEFT, and drains report the key as
 * delayed; so does a drain that waits for waiting keys, because keys that are added again and
 * again would never let it end.
 *
 * Returns as wq_done() or wq_retry().
 *
 * Errors: those of wq_done(); WQ_EINVAL also for a verdict with an unknown kind, a delay < 0, or
 * a reserved word that is not zero.
 *
 * Blocks: no, except for dead_letter. Allocates: perhaps.
 */
WQ_API int wq_settle(wq_queue *q, const wq_item *item, wq_verdict verdict);

/*
 * Count the queued keys, blocked ones included. Held and waiting keys are not counted; keys that
 * are due are queued first.
 *
 * Returns the number of queued keys.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no.
 */
WQ_API wq_number wq_len(wq_queue *q);

/*
 * Shut the queue down: refuse adds. Queued keys can still be got; when there are none, every get
 * answers WQ_ESHUTDOWN. Waiting keys that are not due are left over: they never come due, and
 * wq_free() and drains count them. Blocked gets wake up. Every drain that has begun returns
 * WQ_EINTERRUPTED. A second call releases the drains that have begun since the first.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no, but it takes time in proportion to the number of keys that are due and not yet
 * queued.
 */
WQ_API int wq_shutdown(wq_queue *q);

/*
 * [DRAIN] Shut the queue down and wait until no key is queued or held. Workers go on and finish
 * the queued keys; paused pools of this queue are resumed. options->mode says what happens to
 * waiting keys: they are left over, run or waited for. Keys that fail meanwhile are left over; in
 * mode RUN after one more attempt; in mode WAIT they are retried. Any number of threads may drain;
 * all of them return.
 *
 * options and report may be NULL. *report is filled, and options->left called, on WQ_OK, WQ_LEFT,
 * WQ_ETIMEDOUT and WQ_EINTERRUPTED. wq_drain_until() takes a deadline. A timeout <= 0, or a
 * deadline that has passed, begins the drain and does not wait.
 *
 * A thread that holds an item and drains waits for itself: do not.
 *
 * Returns WQ_OK: every key is finished; or WQ_LEFT: no key is queued or held, but some are left
 * over.
 *
 * Errors:
 *   WQ_ETIMEDOUT     the time passed; the queue stays shut, and queued keys can still be got
 *   WQ_EINTERRUPTED  wq_shutdown() released this drain before it was over
 *   WQ_ENOMEM        the unfinished keys could not be listed; the counts are right and the drain
 *                    itself is over
 *   WQ_EINVAL        q is NULL, deadline < 0, an unknown mode, a reserved word is not zero; the
 *                    queue is not shut
 *   WQ_EDEADLK       called by a handler of a pool of this queue; the queue is not shut
 *
 * Blocks: yes.
 */
WQ_API WQ_MUST_CHECK int wq_drain_for(wq_queue *q, int64_t timeout_ns,
                                      const wq_drain_options *options, wq_report *report);
WQ_API WQ_MUST_CHECK int wq_drain_until(wq_queue *q, int64_t deadline_ns,
                                        const wq_drain_options *options, wq_report *report);

#ifdef __cplusplus
}
#endif

#include <wq/delay.h>
#include <wq/eventloop.h>
#include <wq/get.h>
#include <wq/group.h>
#include <wq/inspect.h>
#include <wq/many.h>
#include <wq/priority.h>
#include <wq/retry.h>
#include <wq/value.h>
#include <wq/wait.h>

#endif
