/*
 * The queue: keys go in, each is handed to one worker at a time.
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
 *   retry     | stale   | stale         | stale   | waiting  | queued, tail  | waiting, earlier time
 *   shutdown  | –       | left over     | kept    | kept     | kept          | left over
 *
 * An add absorbs the waiting copy of its key; no add makes a queued or dirty key
 * wait again: who wants that cancels first.
 *
 * Promises that hold for every call (tests name the tags):
 *   [ONE]    a key is never with two workers at once
 *   [KEEP]   an accepted key is handed out, or given up by a call that says so
 *   [BACK]   a key added while it is held is handed out once more afterwards
 *   [FIFO]   with the default order, keys are handed out as they were queued
 *   [WHOLE]  a call that answers an error has changed nothing, unless it says so
 *   [STALE]  an item that is not held any more is told from one that is
 *   [WAKE]   no ready key is left beside a sleeping Get, unless one that is awake takes it
 *
 * Threads: every function may be called by any thread at any time, with two
 * exceptions: nothing may run beside wq_new() on the same pointer, and no
 * call may start once wq_free() has been entered. No function is a
 * cancellation point, is safe in a signal handler, or returns for EINTR.
 * The queue starts no thread.
 *
 * [FORK] In the child of a fork() every call on a queue that its parent made answers WQ_EFORKED and
 * does nothing else; wq_free() closes the queue's descriptors, gives back nothing else, and is WQ_OK.
 * None of them waits, or takes events from the parent. So do pools, timers and delay queues. Queues
 * that the child makes itself work. What has no thread and no waiting calls (heaps, wheels, limiters
 * alone, registries, manual clocks) may be used in the child if no other thread was in a call on it. A
 * callback's child must exec or _exit: the library would go on in it without its threads. Not
 * noticed are processes made without fork(): by vfork(), clone() or _Fork().
 *
 * Tools: a program that is built with a sanitizer, or run by valgrind, needs no other library.
 *
 *   tool                              | what it sees, besides the program's own mistakes
 *   ----------------------------------+---------------------------------------------------------
 *   AddressSanitizer, HWASan, memcheck| keys that are read after the item was handed back, or
 *                                     | beyond their NUL, with the place where it was handed back
 *   ThreadSanitizer                   | adds, Gets and dones as synchronisation
 *   helgrind, DRD                     | the same; --suppressions=PREFIX/share/wq/helgrind.supp
 *
 * For that the library takes part: keys of items are copies from malloc, locks are pthread mutexes,
 * and both make it slower. It finds out when it is loaded; in other processes nothing changes.
 *
 * Hooks (clock, allocator, order, custom limiter, metrics provider) run under the queue's lock.
 * [REENTER] A hook that calls its own queue stops the process with abort(), in every build.
 *
 * A queue is open, then closing, then shut, and never goes back:
 *
 *   call                    | open          | closing or shut
 *   ------------------------+---------------+------------------------------------------
 *   add, add_after ...      | accepts keys  | WQ_ESHUTDOWN
 *   get, next, settle_next  | waits for one | a key that is in line; none: WQ_ESHUTDOWN
 *   done, requeue, cancel,  | as described  | the same
 *   state, len, walk ...    |               |
 *   reschedule              | moves a key   | WQ_ESHUTDOWN (in a drain that waits: moves it)
 *   retry                   | waits         | WQ_LEFT (for drains see wq_retry())
 *   shutdown                | closes it     | releases the drains that have begun
 *   drain                   | closes it     | waits for what the first one waits for
 *   shutting_down           | 0             | 1
 *
 * It is closing while keys that are due enter the line, or waiting keys are run or waited for. Other
 * calls do not wait for that: long work hands the lock to whoever waits for it, at least every
 * 1,000 keys. Keys that wait in a queue that is shut never come due: they are left over. They are
 * listed by drains and walks until they are cancelled or the queue is freed.
 *
 * Statuses: >= 0 is a value or an outcome, < 0 an error, see wq/status.h. An
 * engine that lives elsewhere may answer WQ_EIO to any call that returns a
 * status; the memory engine never does (but for wq_fd()).
 *
 * Times are nanoseconds of the queue's clock: calls named ..._until take an
 * absolute time, calls named ..._for a span from now. WQ_NEVER waits for ever;
 * a time that has passed looks once, does not wait, and is WQ_ETIMEDOUT.
 */
#ifndef WQ_QUEUE_H
#define WQ_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/order.h>
#include <wq/status.h>
#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_queue wq_queue;
typedef struct wq_item wq_item;
typedef struct wq_registry wq_registry;
struct wq_engine;
struct wq_metrics_provider;

/* Given to a Get instead of a deadline: do not wait, WQ_EAGAIN if nothing is ready. */
#define WQ_NOWAIT -1L

/* The longest key, in bytes. A longer one is answered with WQ_ETOOLONG. */
#define WQ_KEY_MAX 65536

/* ---- life ---------------------------------------------------------------- */

/* For wq_options.spin_ns: a waiting Get goes to sleep at once. */
#define WQ_SPIN_NEVER -1L

/*
 * All zero is a good queue: FIFO, unbounded, no name, memory engine. Strings
 * and structs that are pointed to are copied.
 */
typedef struct wq_options {
	/* The name that metrics carry; NULL or "": no metrics. At most 255 bytes. */
	const char *name;
	/* NULL: keys live in this process's memory. */
	const struct wq_engine *engine;
	/* Handed to the engine as it is; the memory engine wants NULL. */
	const void *engine_options;
	/* NULL: malloc, and mmap for blocks. */
	const wq_allocator *allocator;
	/* NULL: CLOCK_MONOTONIC. */
	const wq_clock *clock;
	/* NULL: first in, first out. */
	const wq_order *order;
	/* Seed of the key hash; 0: random. A fixed one is for tests. */
	uint64_t seed;
	/*
	 * How long a Get with nothing to do polls before it sleeps. 0: adaptive,
	 * up to about 50 µs. WQ_SPIN_NEVER: never. > 0: this long, at most
	 * WQ_MILLISECOND. One thread polls at a time, not past its deadline, and
	 * none in a process that may run on one CPU only.
	 */
	int64_t spin_ns;
	/*
	 * [BOUND] How many keys may live at once, in whatever state; 0: no bound. A new
	 * key beyond it is refused with WQ_EFULL; done, requeue and merges
	 * always succeed.
	 */
	size_t max_keys;
	/*
	 * How long failed keys wait; it belongs to the queue in every case. NULL:
	 * wq_limiter_exponential(5 * WQ_MILLISECOND, 1000 * WQ_SECOND).
	 */
	wq_limiter *limiter;
	/*
	 * [DEAD] After so many attempts a key that is to be retried is given up instead:
	 * dead_letter is called and the key is forgotten and done. 0: no maximum.
	 */
	uint32_t max_attempts;
	uint32_t within; /* 1: adds may give within_ns; costs 8 bytes a key */
	/*
	 * Called in the thread that calls wq_retry(), outside the lock, while the
	 * item is held still: it may use the queue, but not hand the item back.
	 * NULL: nobody is told, it is only counted.
	 */
	void (*dead_letter)(void *ctx, const wq_item *item);
	void *dead_ctx;
	/*
	 * Where the queue's metrics are to be found, see wq/metrics.h; it needs a name of its own
	 * there, in UTF-8. The registry outlives the queue.
	 */
	wq_registry *registry;
	/* Told of what happens, see wq/metrics.h; copied. It needs a name. */
	const struct wq_metrics_provider *provider;
	uint64_t reserved[2]; /* must be zero */
} wq_options;

/*
 * Make a queue. `options` may be NULL. On success the queue is in *out; on
 * an error *out is untouched. What the options hand over (order, limiter)
 * belongs to the queue in every case, failure included.
 *
 * Returns WQ_OK, or:
 *   WQ_EINVAL    out is NULL; a reserved word is not zero; within > 1; name too long;
 *                spin_ns out of range; a clock, allocator or order without
 *                its functions; engine_options without an engine; max_attempts
 *                above WQ_FAILURES_MAX, or with a limiter that counts no failures; a
 *                registry or a provider without a name; a registry with one that is no UTF-8, or
 *                is "." or "..", which no address on the web can have as a part; a provider whose
 *                reserved words are not zero
 *   WQ_EVERSION  the engine's table is of another version
 *   WQ_EBUSY     the limiter belongs to another
 *   WQ_EEXIST    the registry has a queue of this name
 *   WQ_ENOMEM
 *   or the status of the limiter, if its constructor failed
 *
 * Blocks: no; with a registry, while somebody looks at its queues (wq_registry_each()).
 * Allocates: yes.
 */
WQ_API int wq_new(wq_queue **out, const wq_options *options);

/*
 * Free a queue. Keys that are still queued or wait, or were left over, are given
 * up, and the answer says how many: 0 after a drain that left nothing. A key and
 * its reminder are one.
 *
 * Returns that number (at most INT_MAX; 0 for NULL), or:
 *   WQ_EBUSY   an item is held, a thread is waiting or walking inside, or a
 *              pool works on it; the queue is unchanged. wq_shutdown() wakes
 *              Gets and drains
 * In the child of a fork() it is WQ_OK, whatever the queue holds, see [FORK] above.
 *
 * A thread whose call is about to start, or that waits for the queue's lock,
 * is not seen: make sure that no call begins once this one has.
 * Blocks: no; with a registry, while somebody looks at its queues (wq_registry_each()), or at
 * this one (wq_registry_visit(), a listing over HTTP).
 */
WQ_API int wq_free(wq_queue *q);

/* The queue's time now. WQ_EINVAL if q is NULL. Blocks: no. */
WQ_API wq_value wq_now(wq_queue *q);

/*
 * The clock that was given to wq_new() has jumped: everyone who sleeps until
 * some time looks at it again. Needed only with a clock of one's own.
 * Returns WQ_OK, or WQ_EINVAL if q is NULL. Blocks: no.
 */
WQ_API int wq_clock_changed(wq_queue *q);

/* ---- add ----------------------------------------------------------------- */

/*
 * Add a key. Already in line: it merges. Held by a worker: it comes back when
 * that worker is done. Otherwise it goes to the tail of the line, and a worker
 * that sleeps is woken, unless one that is awake will take it.
 *
 * The key is copied. Any bytes are a key; NULL with length 0 is the empty
 * key. Keys are equal if their bytes are.
 *
 * Returns WQ_QUEUED, WQ_MERGED or WQ_MARKED, or:
 *   WQ_EINVAL     q is NULL, or key is NULL and len is not 0
 *   WQ_ETOOLONG   len > WQ_KEY_MAX
 *   WQ_ESHUTDOWN  shutting down; the key was not added
 *   WQ_EFULL      the key is new and max_keys are alive; it was not added
 *   WQ_ENOMEM     the key was not added: no memory, or the queue has 32 GiB
 *                 (<wq/alloc.h>)
 *
 * Blocks: no. Allocates: yes, a new key.
 */
WQ_API int wq_add(wq_queue *q, const void *key, size_t len);

/* wq_add() of a C string, without its NUL. NULL: WQ_EINVAL. */
WQ_API int wq_add_str(wq_queue *q, const char *key);

/* What an add with a delay does to a copy of the key that waits already. */
enum wq_policy {
	WQ_MIN = 0,     /* the earlier of both times */
	WQ_MAX = 1,     /* the later */
	WQ_REPLACE = 2, /* the new one */
	WQ_KEEP = 3,    /* the old one */
	/*
	 * A copy of its own, that lives beside the key in whatever state and that
	 * other adds neither absorb nor move: when its time comes it is an add.
	 * Two such copies of a key merge to the earlier time. It counts as a key
	 * of its own for max_keys.
	 */
	WQ_REMIND = 4
};

/* All zero: add now. */
typedef struct wq_add_options {
	int64_t after_ns;      /* so long from now; < 0: now, as wq_add_after(); 0: as wq_add() */
	int64_t at_ns;         /* or at this time of the queue's clock; 0: not given. Not both */
	enum wq_policy policy; /* for an add with a delay */
	uint32_t limited;      /* 1: after as long as the limiter says; no time is given then */
	/*
	 * [WITHIN] > 0: however later adds move it, the copy that waits comes due no later than so
	 * long after this add. Of several the first counts, until the copy waits no more. With
	 * WQ_REPLACE, a debounce whose events may never stop. Only where wq_options.within is 1;
	 * not with WQ_REMIND or `limited`.
	 */
	int64_t within_ns;
	uint64_t reserved[5]; /* must be zero */
} wq_add_options;

/*
 * Add a key when its time has come. A time that has passed is an add now. The
 * key stands in line by its due time: before every key that was added later
 * than that. Equal times keep the order of the calls (a key that was moved or
 * cancelled and comes back to a time it had before may keep its former place).
 * WQ_NEVER waits until it is moved or cancelled.
 *
 * A bound by within_ns belongs to the copy that waits: whatever the policy says, of this add or
 * a later one with or without a bound, limited ones and retries included, it comes due by then.
 * A copy that waited without one gets it from the first add that gives one, and is moved if it
 * waited for longer. The bound ends with the wait: when the copy has come due, or was cancelled,
 * left over, or absorbed by an add; and wq_reschedule() lifts it. One that would lie behind
 * WQ_NEVER is none. An add that does not wait needs none, and merges as ever.
 *
 * options may be NULL: an add now.
 *
 * Returns WQ_DELAYED (it waits now), WQ_MOVED or WQ_KEPT (it waited already),
 * WQ_QUEUED, WQ_MERGED or WQ_MARKED as wq_add(), or an error of wq_add(); also
 * WQ_EINVAL: more than one of both times and `limited` given, at_ns < 0, an
 * unknown policy, a reserved word not zero; within_ns < 0, or > 0 where it may not be given.
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_with(wq_queue *q, const void *key, size_t len, const wq_add_options *options);

/* The same with a span from now, or a time, and WQ_MIN. */
WQ_API int wq_add_after(wq_queue *q, const void *key, size_t len, int64_t delay_ns);
WQ_API int wq_add_at(wq_queue *q, const void *key, size_t len, int64_t due_ns);

/*
 * [LIMITED] Add a key as long from now as the limiter says, with WQ_MIN: 0 is an add
 * now. The limiter counts every call that is accepted, merged or not; if the
 * key turned out to be in line or to come sooner anyway, what the limiter
 * reserved for it is given back, but the count stays. A refused call
 * counts nothing (a limiter of one's own may have been asked all the same).
 *
 * Answers like wq_add_after().
 */
WQ_API int wq_add_limited(wq_queue *q, const void *key, size_t len);

/*
 * Clear the limiter's memory of the key, whatever its state, and nothing else:
 * a held key is still to be done. [FORGET] Nothing else clears it: failures outlive
 * wq_done() and wq_cancel(), until this or the idle bound of the limiter.
 *
 * Returns WQ_OK, also if nothing was remembered; or WQ_EINVAL, WQ_ETOOLONG.
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_forget(wq_queue *q, const void *key, size_t len);

/* The same by the item that is held; WQ_ESTALE, WQ_EOTHERQUEUE as wq_done(). */
WQ_API int wq_forget_item(wq_queue *q, const wq_item *item);

/* How many failures the limiter remembers of the key; or WQ_EINVAL, WQ_ETOOLONG. Blocks: no. */
WQ_API wq_value wq_failures(wq_queue *q, const void *key, size_t len);

/* The same by the item that is held; WQ_ESTALE, WQ_EOTHERQUEUE as wq_done(). */
WQ_API wq_value wq_failures_item(wq_queue *q, const wq_item *item);

/*
 * [SET] The limiter remembers so many failures of the key, whatever it remembered before: for a
 * program that saves its keys, with wq_key_info.failures, and adds them again after a restart.
 * The next attempt of the key has the number failures + 1; one that is held keeps the number that
 * it has. What a limiter remembers besides (a bucket for each key, the last delay of decorrelated
 * jitter) stays as it is. wq_forget() is the call for 0 failures.
 *
 * Returns WQ_OK, or:
 *   WQ_EINVAL    q is NULL, or key is NULL and len is not 0; failures is 0 or above WQ_FAILURES_MAX
 *   WQ_ETOOLONG  len > WQ_KEY_MAX
 *   WQ_ENOTFOUND the queue does not know the key: it is added first
 *   WQ_ENOTSUP   the limiter counts no failures, or a custom limiter counts its own; or the engine
 *                cannot do it
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_set_failures(wq_queue *q, const void *key, size_t len, uint32_t failures);

/*
 * Give a key that waits another time, whatever policy it came with; a time that
 * has passed makes it ready. A bound by within_ns is lifted: later adds may move it beyond, and
 * give a new one. Nothing is counted as an add.
 *
 * Returns WQ_MOVED, or WQ_ENOTFOUND: it does not wait; WQ_EINVAL (also for
 * due_ns < 0), WQ_ETOOLONG, WQ_ENOMEM: it keeps its time; or WQ_ESHUTDOWN: it is left over, or
 * a drain that waited for all but WQ_NEVER is over.
 */
WQ_API int wq_reschedule(wq_queue *q, const void *key, size_t len, int64_t due_ns);

/*
 * Take a key back, in whatever state. Waiting copies and a queued key are gone;
 * one that is held is not dirty any more and does not come back by itself, nor
 * by a retry of this hold. An add after the cancel counts as always. What the limiter
 * remembers of it stays.
 *
 * Returns WQ_CANCELLED, and in *was (unless it is NULL) the WQ_STATE_ bits that it found, QUEUED,
 * RUNNING, DIRTY and WAITING (also of a copy that was left over); or WQ_ENOTFOUND; WQ_EINVAL,
 * WQ_ETOOLONG: *was is untouched. Blocks: no. Allocates: no.
 */
WQ_API int wq_cancel(wq_queue *q, const void *key, size_t len, unsigned *was);

/*
 * The same, and if a worker holds the key, wait until that hold has ended; it
 * does not wait for holds that begin later. WQ_ETIMEDOUT: the key is cancelled
 * all the same, and *was is written. Do not call it while holding the key; in a pool's handler,
 * for the key that it handles: WQ_EDEADLK, and nothing has changed.
 */
WQ_API int wq_cancel_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns,
                           unsigned *was);
WQ_API int wq_cancel_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns,
                         unsigned *was);

/*
 * When the next waiting key comes due; WQ_NEVER: none does. It may be too early
 * after a cancel. WQ_EINVAL if q is NULL. For event loops that cannot poll wq_fd(), which
 * is readable at that time by itself, or that run on a clock of their own.
 */
WQ_API wq_value wq_next_deadline(wq_queue *q);

/* A key for wq_add_many(). */
typedef struct wq_key {
	const void *key;
	size_t len;
} wq_key;

/*
 * Add n keys, as wq_add() one after another but in few lock rounds: the lock
 * is let go of at least every 256 keys. Not atomic: each key has its own
 * outcome, stored in outcomes[i] unless outcomes is NULL. One refused key does
 * not keep the others out.
 *
 * Returns how many keys were accepted (queued, merged or marked), or
 * WQ_EINVAL: q is NULL, keys is NULL with n > 0, or n > INT_MAX; no key was
 * added and no outcome written. The bad argument of one key is its outcome.
 *
 * Blocks: no. Allocates: yes.
 */
WQ_API int wq_add_many(wq_queue *q, const wq_key *keys, size_t n, int *outcomes);

/* ---- get ----------------------------------------------------------------- */

/*
 * A held key. Filled by the Get calls; handed back, unchanged, to wq_done()
 * or wq_requeue(), by any thread. It may be copied: the first copy that is
 * handed back counts, the others are stale, which is detected.
 *
 * The key's bytes belong to the queue and are valid until the item is handed
 * back. A NUL follows them. (Sanitizers and valgrind report who reads them later: see Tools above.)
 */
struct wq_item {
	const void *key;
	size_t len;
	uint64_t token; /* unique to this hold within its queue */
	int64_t
	    added_ns; /* when the key was added or came due, in the queue's time; without metrics
	                         by the coarse clock, up to some milliseconds early */
	uint32_t attempts;  /* 1, and 1 more for each failure that has not been forgotten */
	uint32_t reserved0; /* must be zero */
	const void *owner;  /* the queue's own, as is the next */
	uint64_t slot;
	uint64_t reserved[2]; /* must be zero */
};

/*
 * Take the key at the head of the line and hold it, waiting until there is
 * one. Several waiting Gets: one of them gets the key.
 *
 * Returns WQ_OK and fills *item, or, leaving *item alone:
 *   WQ_EINVAL        q or item is NULL
 *   WQ_ESHUTDOWN     shut down, and nothing is queued (in a drain that waits:
 *                    nor waiting or held). A key that was marked while held may
 *                    still come back: another Get may find it
 *   WQ_EINTERRUPTED  wq_interrupt() took effect on this call
 *
 * Blocks: until a key is ready. Allocates: no.
 */
WQ_API int wq_get(wq_queue *q, wq_item *item);

/* The same, but waits no longer than until deadline_ns: WQ_ETIMEDOUT. A deadline < WQ_NOWAIT: WQ_EINVAL. */
WQ_API int wq_get_until(wq_queue *q, wq_item *item, int64_t deadline_ns);

/* The same with a span from now. A span <= 0 looks once. */
WQ_API int wq_get_for(wq_queue *q, wq_item *item, int64_t timeout_ns);

/* The same, without waiting: WQ_EAGAIN if nothing is ready. Blocks: no. */
WQ_API int wq_try_get(wq_queue *q, wq_item *item);

/*
 * Get up to `max` keys at once: waits like wq_get_until() for the first and
 * takes those that are ready with it; it does not wait for `max`. The lock is let go of at least
 * every 256 keys.
 *
 * deadline_ns: WQ_NEVER waits like wq_get(), WQ_NOWAIT does not wait.
 *
 * Returns how many items were filled, at least 1, or an error of
 * wq_get_until(); also WQ_EINVAL for max 0 or above INT_MAX.
 */
WQ_API int wq_get_many_until(wq_queue *q, wq_item *items, size_t max, int64_t deadline_ns);
WQ_API int wq_get_many_for(wq_queue *q, wq_item *items, size_t max, int64_t timeout_ns);

/*
 * [INTR] Make n blocked Gets return WQ_EINTERRUPTED. If fewer are blocked, the rest
 * is kept for the next Gets that would block: no Get that is about to wait is
 * missed. A Get that finds a key without waiting takes it and is not
 * interrupted. n = 0 takes back what was kept.
 *
 * Returns how many were kept before the call (0 in most cases), or WQ_EINVAL
 * for a NULL queue or n < 0. Blocks: no.
 */
WQ_API int wq_interrupt(wq_queue *q, int n);

/* ---- done ---------------------------------------------------------------- */

/*
 * The work on a held key is finished. If the key was added meanwhile it goes
 * to the tail of the line, also during a shutdown; otherwise it is gone. Failures of the
 * key that the limiter remembers stay until wq_forget(): who retries forgets after success, or
 * settles with WQ_DONE, which does both.
 *
 * Returns WQ_OK (gone), WQ_QUEUED (back in line), WQ_DELAYED (a copy waits
 * for its due time) or WQ_LEFT (the same, but the queue is shut down), or:
 *   WQ_EINVAL       q or item is NULL, or a reserved word is not zero
 *   WQ_ESTALE       the item is not held: done before, or an earlier hold
 *   WQ_EOTHERQUEUE  the item was got from another queue
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_done(wq_queue *q, const wq_item *item);

/*
 * wq_done() for n items. Not atomic: outcomes[i] (unless outcomes is NULL) is
 * what wq_done() would have answered. The lock is let go of at least every
 * 256 keys.
 *
 * Returns how many of the items were held and are done now, or WQ_EINVAL as
 * in wq_get_many_until() (n = 0 is allowed), or if a reserved word of one of them is
 * not zero; nothing is done then, and no outcome written.
 */
WQ_API int wq_done_many(wq_queue *q, const wq_item *items, size_t n, int *outcomes);

/*
 * wq_done(item) and wq_get(item) in one step: the worker's loop in one round
 * of the lock, and the fastest way to work through a queue.
 *
 *     for (rc = wq_get(q, &it); rc == WQ_OK; rc = wq_next(q, &it))
 *         work(it.key, it.len);
 *
 * Answers like wq_get(); *item then holds the next key. WQ_EINVAL, WQ_ESTALE
 * and WQ_EOTHERQUEUE are as in wq_done(), and nothing was got. After any
 * other answer the old item is done: WQ_ESHUTDOWN and WQ_EINTERRUPTED
 * included.
 *
 * Blocks: until a key is ready. Allocates: no.
 */
WQ_API int wq_next(wq_queue *q, wq_item *item);

/* The same with a deadline or a timeout, as wq_get_until() and wq_get_for(). */
WQ_API int wq_next_until(wq_queue *q, wq_item *item, int64_t deadline_ns);
WQ_API int wq_next_for(wq_queue *q, wq_item *item, int64_t timeout_ns);

/*
 * wq_done_many() of the first n items and wq_get_many_until() into the same array,
 * which has room for max (n <= max). If an item is stale or another queue's,
 * the others are done, nothing is got, and the answer is that error. n = 0 is
 * a plain wq_get_many_until().
 *
 * Returns how many items were filled, or an error of wq_next_until() or
 * wq_get_many_until().
 */
WQ_API int wq_next_many_until(wq_queue *q, wq_item *items, size_t n, size_t max,
                        int64_t deadline_ns);
WQ_API int wq_next_many_for(wq_queue *q, wq_item *items, size_t n, size_t max, int64_t timeout_ns);

/*
 * Give a held key back unfinished, to the tail of the line (WQ_TAIL) or to
 * its head (WQ_HEAD). No failure is counted. If it was added meanwhile, that
 * merges, and a waiting copy is absorbed. Allowed during a shutdown: the key can still be got. The key keeps
 * the time at which it was added.
 *
 * Returns WQ_QUEUED, or WQ_EINVAL, WQ_ESTALE, WQ_EOTHERQUEUE as wq_done().
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_requeue(wq_queue *q, const wq_item *item, enum wq_where where);

/*
 * [RETRY] The work on a held key has failed: count that, and try again when the limiter
 * says, in one step with the end of the hold. The failure counts once, even if
 * the key was added meanwhile.
 *
 * Returns what has become of the key, which is held no more:
 *   WQ_DELAYED    it waits for its next attempt, or for an earlier time it had
 *   WQ_QUEUED     it is back in line at once: it was added meanwhile, the limiter
 *                 asked for no delay, a drain runs what waits (once for a
 *                 key), or there was no memory to let it wait
 *   WQ_CANCELLED  it was cancelled during this hold: no failure is counted, and
 *                 it is done (an add after the cancel counts: WQ_QUEUED, WQ_DELAYED)
 *   WQ_DEAD       it has failed max_attempts times: dead_letter was called, and
 *                 it is forgotten and done; if it was added meanwhile it is in line
 *                 afresh
 *   WQ_LEFT       the queue is shut down: it is left over, for drains to report. A drain that
 *                 waits for waiting keys accepts retries
 * or WQ_EINVAL, WQ_ESTALE, WQ_EOTHERQUEUE as wq_done(), and nothing has changed.
 *
 * Blocks: no, but for dead_letter. Allocates: perhaps.
 */
WQ_API int wq_retry(wq_queue *q, const wq_item *item);

/*
 * A verdict: what becomes of a held key. A pool's handler returns one; wq_settle() takes one.
 *
 *   WQ_DONE               finished: the key is forgotten and done
 *   WQ_RETRY              failed: tried again after the limiter's delay, as wq_retry()
 *   wq_retry_after(d)     failed: the same, but after d nanoseconds at the least
 *   wq_again_after(d)     finished for now: forgotten, and added again after d nanoseconds
 *   WQ_DROP               given up: forgotten and done, and counted as dropped
 *   WQ_FATAL              [FATAL] failed for good: dead, as after max_attempts, however many
 *                         attempts are left; dead_letter is called, in every phase of the queue
 *
 * wq_again_after() is a delayed add with WQ_MIN: it merges with an add that came meanwhile,
 * or with a waiting copy of the key. A delay <= 0 is an add now.
 */
enum wq_verdict_kind {
	WQ_VERDICT_DONE = 0,
	WQ_VERDICT_RETRY = 1,
	WQ_VERDICT_AGAIN = 2,
	WQ_VERDICT_DROP = 3,
	WQ_VERDICT_FATAL = 4
};

typedef struct wq_verdict {
	int64_t delay_ns; /* RETRY: at the least; AGAIN: exactly; otherwise 0 */
	uint32_t kind;    /* of enum wq_verdict_kind */
	uint32_t reserved0; /* must be zero */
} wq_verdict;

static const wq_verdict WQ_DONE = {0, WQ_VERDICT_DONE, 0};
static const wq_verdict WQ_RETRY = {0, WQ_VERDICT_RETRY, 0};
static const wq_verdict WQ_DROP = {0, WQ_VERDICT_DROP, 0};
static const wq_verdict WQ_FATAL = {0, WQ_VERDICT_FATAL, 0};

WQ_API wq_verdict wq_again_after(int64_t delay_ns);
WQ_API wq_verdict wq_retry_after(int64_t delay_ns);

/*
 * End a hold by a verdict.
 *
 * Returns as wq_done() or wq_retry(); also WQ_EINVAL for a verdict with an unknown kind, a delay
 * below 0, or a reserved word that is not zero. wq_again_after() of a key that was cancelled during
 * this hold: forgotten, and WQ_CANCELLED. In a queue that is shut down: WQ_LEFT, and a drain
 * reports the key as delayed; a drain that waits for waiting keys does so, too, or keys that
 * come again and again would never let it end.
 */
WQ_API int wq_settle(wq_queue *q, const wq_item *item, wq_verdict verdict);

/*
 * wq_settle() and wq_get_until() in one step, as wq_next_until() is for wq_done(): for a
 * worker's own loop.
 *
 * Answers like wq_next_until(). *settled, unless it is NULL, is what
 * wq_settle() would have answered; it is written whenever the hold has ended.
 */
WQ_API int wq_settle_next_until(wq_queue *q, wq_item *item, wq_verdict verdict,
                                int64_t deadline_ns, int *settled);
WQ_API int wq_settle_next_for(wq_queue *q, wq_item *item, wq_verdict verdict, int64_t timeout_ns,
                              int *settled);

/*
 * Ask to hold the item for span_ns more from now. In the memory engine a hold
 * lasts until it is handed back, and this only checks the item; where holds
 * are leases it renews one.
 *
 * Returns WQ_OK, or WQ_EINVAL (also span_ns <= 0), WQ_ESTALE, WQ_EOTHERQUEUE.
 */
WQ_API int wq_extend(wq_queue *q, const wq_item *item, int64_t span_ns);

/*
 * Was this hold lost, so that another worker may have the key? 1 yes, 0 no.
 * In the memory engine a hold is never lost: an item that is held answers 0,
 * one that was handed back WQ_ESTALE. Other errors as wq_done().
 */
WQ_API int wq_lost(wq_queue *q, const wq_item *item);

/* ---- wait ---------------------------------------------------------------- */

/*
 * Wait until the queue is idle: nothing queued, nothing held. It goes on
 * taking keys, so it may not be idle any more when this returns.
 *
 * Returns WQ_OK, WQ_ETIMEDOUT, or WQ_EINVAL (q is NULL, deadline < 0).
 * A worker that holds an item waits for itself: do not; in a handler of a pool of this
 * queue: WQ_EDEADLK.
 * Blocks: yes. Allocates: no.
 */
WQ_API int wq_wait_idle_until(wq_queue *q, int64_t deadline_ns);
WQ_API int wq_wait_idle_for(wq_queue *q, int64_t timeout_ns);

/*
 * [KEYWAIT] Wait until what had been asked of one key before this call is finished: a
 * queued key until it has been held and done, a held one until that hold is
 * done, a held and dirty one until its next hold is done too. Adds that come
 * later do not prolong the wait. A key that is absent, or only waits for its
 * time: WQ_OK at once.
 *
 * Returns as wq_wait_idle_until(); also WQ_ETOOLONG. WQ_EDEADLK only for the key
 * that the handler handles.
 */
WQ_API int wq_wait_key_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns);
WQ_API int wq_wait_key_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns);

/* ---- stop ---------------------------------------------------------------- */

/*
 * Refuse further adds. Queued keys can still be got; when none is left, every Get answers
 * WQ_ESHUTDOWN. Waiting keys that are not due are left over: they never come due, and wq_free() and
 * drains count them. Blocked Gets wake up. Every drain that has begun returns WQ_EINTERRUPTED. May
 * be called again, to release drains that have begun since.
 *
 * Returns WQ_OK, or WQ_EINVAL if q is NULL. Blocks: no, but it takes time in proportion to
 * the number of keys that are due and not in line yet.
 */
WQ_API int wq_shutdown(wq_queue *q);

/* Has a shutdown or a drain begun? 1 or 0; WQ_EINVAL if q is NULL. */
WQ_API int wq_shutting_down(wq_queue *q);

/* The bits of a key's state. 0: the queue does not know the key. */
enum wq_state_bits {
	WQ_STATE_QUEUED = 1,  /* in line */
	WQ_STATE_RUNNING = 2, /* held by a worker */
	WQ_STATE_DIRTY = 4,   /* held, and added again meanwhile */
	WQ_STATE_WAITING = 8, /* waits for its due time, alone or beside the others */
	WQ_STATE_LEFT = 16,   /* the same in a queue that is shut down: it will not come due */
	WQ_STATE_RETRYING = 32 /* beside WAITING or LEFT: for a retry or a limited add, not for a delay */
};

/* One key as walk and drain show it. The bytes are valid during the callback. */
typedef struct wq_key_info {
	const void *key;
	size_t len;
	unsigned state;     /* WQ_STATE_... bits */
	uint32_t failures;  /* that the limiter remembers of it */
	int64_t age_ns;     /* since it was added, when the walk began; 0 while it only waits */
	int64_t due_ns;     /* when the waiting copy comes due; 0: none waits */
	int64_t running_ns; /* held: since it was got, if the queue has a name; else 0 */
	uint64_t reserved[2];
} wq_key_info;

/*
 * Called for one key, outside the lock: it may use the queue. 0 goes on, any
 * other value stops the walk.
 */
typedef int (*wq_walk_fn)(void *ctx, const wq_key_info *info);

/*
 * The keys that a drain did not finish, by reason, as one consistent cut. All but dead are 0 after
 * WQ_OK. A key whose copy waits while it is queued or held counts in both places.
 */
typedef struct wq_report {
	uint64_t queued;      /* in line */
	uint64_t running;     /* held, dirty or not */
	uint64_t dirty;       /* of those, added again meanwhile */
	uint64_t retries;     /* copies that wait or are left over, RETRYING: failed, or limited adds */
	uint64_t delayed;     /* the other copies that wait or are left over: delayed adds, reminders */
	uint64_t dead;        /* died: max_attempts or WQ_FATAL, since wq_new() */
	uint64_t reserved[2]; /* zero */
} wq_report;

/* What a drain does with waiting keys. The first drain or shutdown decides. */
enum wq_drain_mode {
	WQ_DRAIN_LEAVE = 0, /* leave them over: finish what is queued, report what waits, stop */
	WQ_DRAIN_RUN = 1,   /* queue them all at once, in the order of their due times */
	WQ_DRAIN_WAIT = 2   /* wait until each has come due, but for those with WQ_NEVER */
};

typedef struct wq_drain_options {
	/*
	 * Called for every unfinished key, once the drain is over: its state says why it was not
	 * finished: QUEUED, RUNNING, WAITING or LEFT (a delayed add), and these two with RETRYING
	 * (a failed key). NULL: nobody is told, the report counts them.
	 */
	wq_walk_fn left;
	void *ctx;
	enum wq_drain_mode mode;
	uint32_t reserved0;   /* must be zero */
	uint64_t reserved[3]; /* must be zero */
} wq_drain_options;

/*
 * [DRAIN] Refuse further adds, as wq_shutdown(), and wait until nothing is queued and nothing held.
 * The workers go on and finish what is queued; paused pools of this queue are resumed. Waiting
 * keys are left over, run or waited for, as options->mode says. Keys that fail meanwhile are left
 * over; in mode RUN after one more attempt, and in mode WAIT they are retried. Any number of
 * threads may drain; all of them return.
 *
 * options and report may be NULL. *report is filled, and options->left called,
 * on WQ_OK, WQ_LEFT, WQ_ETIMEDOUT and WQ_EINTERRUPTED alike.
 *
 * Returns:
 *   WQ_OK            every key is finished
 *   WQ_LEFT          nothing is queued or held, but some keys are left over
 *   WQ_ETIMEDOUT     the deadline passed; the queue stays shut, and what is
 *                    queued can still be got
 *   WQ_EINTERRUPTED  a wq_shutdown() released this drain before it was over
 *   WQ_ENOMEM        the unfinished keys could not be listed; the counts
 *                    are right and the drain itself is over
 *   WQ_EINVAL        q is NULL, deadline < 0, an unknown mode, a reserved word is not zero;
 *                    the queue is not shut
 *   WQ_EDEADLK       called by a handler of a pool of this queue; the queue is not shut
 *
 * Whoever holds an item and drains waits for itself: do not.
 * Blocks: yes.
 */
WQ_API int wq_drain_until(wq_queue *q, int64_t deadline_ns, const wq_drain_options *options,
                          wq_report *report);

/* The same with a timeout from now (<= 0: does not wait). */
WQ_API int wq_drain_for(wq_queue *q, int64_t timeout_ns, const wq_drain_options *options,
                        wq_report *report);

/* ---- look ---------------------------------------------------------------- */

/* How many keys are queued; held and waiting ones do not count. WQ_EINVAL if q is NULL. Blocks: no. */
WQ_API wq_value wq_len(wq_queue *q);

/* The state of one key as WQ_STATE_... bits, 0 if absent; WQ_EINVAL, WQ_ETOOLONG. Blocks: no. */
WQ_API int wq_state(wq_queue *q, const void *key, size_t len);

/*
 * Show every key to `fn`, in no particular order. At most 256 keys are copied
 * under the lock at a time; `fn` runs outside it and may use the queue. [WALK] A
 * key that lives from the beginning of the walk to its end is seen exactly once;
 * one that comes or goes meanwhile, at most once for each life.
 *
 * Returns how many keys were shown (the one that stopped it included), WQ_EINVAL (q or fn is
 * NULL), or WQ_ENOMEM (no buffer for a key of over 4,000 bytes). Allocates: a buffer, if it can.
 */
WQ_API wq_value wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx);

/* ---- event loops --------------------------------------------------------- */

/*
 * [FD] A descriptor for poll, select or epoll: readable when a key is ready, when one that
 * waits comes due (on the real clock), or when the queue is shut down. For programs without threads:
 *
 *     poll(wq_fd(q)) readable:  while (wq_try_get(q, &it) == WQ_OK) work(it), wq_done(q, &it);
 *
 * Made on first request, the same one ever after; close-on-exec; closed by
 * wq_free(). It stays readable until a Get without waiting finds nothing, so
 * it may be readable although another thread took the key. Nobody reads from
 * it or closes it.
 *
 * Returns the descriptor, or WQ_EINVAL, or WQ_EIO if none could be made.
 */
WQ_API int wq_fd(wq_queue *q);

#ifdef __cplusplus
}
#endif
#endif
