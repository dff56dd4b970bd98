/*
 * Limiters: how long a key waits before its next attempt.
 *
 *     wq_limiter *l = wq_limiter_max_of(
 *         (wq_limiter *[]){wq_limiter_exponential(5 * WQ_MILLISECOND, 1000 * WQ_SECOND),
 *                          wq_limiter_bucket(10, 100)},
 *         2);
 *     if (wq_new(&q, &(wq_options){.limiter = l}) < 0)    // the queue owns l in every case
 *         fprintf(stderr, "%s\n", wq_last_error());
 *
 *   limiter         | delay of a key                            | counts        | forget
 *   ----------------+-------------------------------------------+---------------+---------------
 *   exponential     | base, 2 base, 4 base ... up to max        | yes           | starts again
 *   jittered        | the same, with a random part              | yes           | starts again
 *   fast_slow       | fast the first n times, slow from then on | yes           | starts again
 *   bucket          | until a token is there; all keys share it | no            | no effect
 *   bucket_per_key  | the same, a bucket for each key           | no            | no effect
 *   bucket_per_part | the same, a bucket for each part of a key | no            | no effect
 *   max_of          | the longest of its components             | as components | all components
 *   max_wait        | that of its component, at most max        | as component  | its component
 *   bounded         | that of its component                     | as component  | its component
 *   custom          | by a function of yours                    | yours         | yours
 *
 * "counts": whether it counts failures, so that max_attempts can be used and an item has its
 * attempt. A limiter delays retries and wq_add_limited(); wq_add() is never delayed.
 *
 * [RATE] A bucket counts when a delay is asked for, not when the key runs. Beside a longer backoff
 * (wq_limiter_max_of()), several keys can run at the same moment; the mean rate holds. A bucket
 * alone keeps its rate: keys come due one token apart.
 *
 *     wq_limiter *steady = wq_limiter_bucket(10, 1);   // retries come due 100 ms apart
 *
 * Every call takes the time, in nanoseconds: limiters have no clock. In a queue it is the queue's.
 *
 * [LIMIT] No limiter answers less than 0 or more than its maximum. WQ_NEVER: no further attempt.
 *
 * A limiter remembers of a key a number of failures, which its components share, and what jitter
 * and buckets need. It remembers until the key is forgotten, or has been idle as long as a bounded
 * limiter allows; the bucket of a key is discarded when it is full again. The number of failures
 * stops at WQ_FAILURES_MAX.
 *
 * [GIVEN] Ownership: a limiter that is passed to another one or to wq_new() belongs to it in every
 * case, failure included. It is freed with its owner, and calls on it answer WQ_EBUSY. It then
 * forgets all keys; tokens taken from a bucket stay taken. Passing it twice is WQ_EBUSY for the
 * second owner.
 *
 * Errors: a constructor never returns NULL. If it fails, it returns a limiter that carries the
 * status, and every constructor that takes this limiter fails with the same status, up to
 * wq_new(); so constructors nest without checks between them. wq_limiter_status() returns the
 * status. NULL in place of a limiter counts as WQ_ENOMEM.
 *
 * Threads: any; each call is atomic. No call may run beside wq_limiter_free() or the call that
 * takes the limiter. Blocks: no.
 */
#ifndef WQ_LIMITER_H
#define WQ_LIMITER_H

#include <stddef.h>
#include <stdint.h>

#include <wq/clock.h>
#include <wq/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_limiter wq_limiter;

/* The largest number of failures that is counted. */
#define WQ_FAILURES_MAX 0x3fffffu

/* ---- constructors -------------------------------------------------------- */

/*
 * Make a limiter with exponential backoff: base_ns, 2 base_ns, 4 base_ns ..., never above max_ns.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if base_ns <= 0 or max_ns < base_ns; WQ_ENOMEM.
 */
WQ_API wq_limiter *wq_limiter_exponential(int64_t base_ns, int64_t max_ns);

/* The random part of a delay d, so that keys that failed together are not retried together. */
enum wq_jitter {
	WQ_JITTER_NONE = 0,         /* d */
	WQ_JITTER_FULL = 1,         /* between 0 and d */
	WQ_JITTER_EQUAL = 2,        /* between d/2 and d */
	WQ_JITTER_DECORRELATED = 3, /* between base and 3 times the last delay, at most max */
};

/*
 * Make a limiter with exponential backoff and jitter. Equal seeds give equal delays; 0 takes a
 * random seed from the kernel.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): those of wq_limiter_exponential(); WQ_EINVAL also for an unknown
 * jitter.
 */
WQ_API wq_limiter *wq_limiter_jittered(int64_t base_ns, int64_t max_ns, enum wq_jitter jitter,
                                       uint64_t seed);

/*
 * Make a limiter with two delays: fast_ns for the first nfast failures of a key, then slow_ns.
 * With nfast above WQ_FAILURES_MAX the delay is always fast_ns.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if a delay is < 0; WQ_ENOMEM.
 */
WQ_API wq_limiter *wq_limiter_fast_slow(int64_t fast_ns, int64_t slow_ns, uint32_t nfast);

/*
 * Make a token bucket. It starts full, with burst tokens, and gets rate tokens a second, up to
 * burst. Each call takes one token, perhaps one that is not there yet, and answers how long until
 * it is. wq_limiter_bucket() is shared by all keys; wq_limiter_bucket_per_key() has a bucket for
 * each key.
 *
 *   rate 0         the burst, then WQ_NEVER
 *   rate infinite  always 0, whatever the burst
 *   burst 0        always WQ_NEVER, unless the rate is infinite
 *
 * If the time goes back, it counts as standing still: the delay reaches from now to beyond the
 * latest time that was passed.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if the rate is negative or NaN, or burst < 0; WQ_ENOMEM.
 */
WQ_API wq_limiter *wq_limiter_bucket(double rate, int burst);
WQ_API wq_limiter *wq_limiter_bucket_per_key(double rate, int burst);

/*
 * Make a token bucket for each part of a key: for each host, tenant or directory. [PART] The part
 * is what stands before the n-th separator; a key with fewer separators is a part as a whole. With
 * '/' and 1, the keys "a.org", "a.org/x" and "a.org/y" share a bucket. With '/' and 3, all of
 * "http://a.org/..." share one, "http://a.org" included. The separator may be any byte.
 *
 *     // keys of one host come due a second apart: add them by wq_add_limited()
 *     wq_limiter *polite = wq_limiter_bucket_per_part(1, 1, '/', 1);
 *
 *     // failures of a page double its own delay, too: a second apart on average only, see above
 *     wq_limiter *growing = wq_limiter_max_of(
 *         (wq_limiter *[]){wq_limiter_bucket_per_part(1, 1, '/', 1),
 *                          wq_limiter_exponential(WQ_SECOND, WQ_HOUR)},
 *         2);
 *
 * It keeps only buckets that are not full, each with a copy of its part: about 100 bytes and the
 * part. Each call removes two or more that are full again, so there are at most about as many as
 * were asked for in burst / rate seconds. With rate 0 they are kept. wq_limiter_bounded() does not
 * remove them. Without memory for a bucket, the key waits for one token (1 / rate), and takes
 * none.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): those of wq_limiter_bucket(); WQ_EINVAL if n is 0.
 */
WQ_API wq_limiter *wq_limiter_bucket_per_part(double rate, int burst, char separator, unsigned n);

/* The most components of wq_limiter_max_of(). */
#define WQ_PARTS_MAX 8

/*
 * Make a limiter that answers the longest delay of its components. It asks every component each
 * time; forget goes to every component. With a bucket and a longer backoff see [RATE] above.
 *
 * Ownership: it owns the components.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if n is 0 or more than WQ_PARTS_MAX, parts is NULL, or
 * the components keep more than 128 bytes per key (a bucket per key 16, decorrelated jitter 8);
 * WQ_ENOMEM; or the status of the first component that failed, with its wq_last_error().
 */
WQ_API wq_limiter *wq_limiter_max_of(wq_limiter *const *parts, size_t n);

/*
 * Make a limiter that answers the delay of its component, but not more than max_ns.
 *
 * Ownership: it owns the component.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if max_ns < 0; WQ_ENOMEM; or the status of the
 * component.
 */
WQ_API wq_limiter *wq_limiter_max_wait(wq_limiter *part, int64_t max_ns);

/*
 * Make a limiter that forgets keys which have been idle for longer than idle_ns, so that a program
 * that does not call wq_forget() does not fill the memory. A key is idle if nothing was asked for
 * it; in a queue, if it is not queued, held or waiting.
 *
 * Inside another limiter it bounds the whole, because the components share what is remembered of a
 * key.
 * The bucket of a key is full again once the key is forgotten, so a bound should be longer than
 * burst / rate.
 *
 * Ownership: it owns the component.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if idle_ns <= 0; WQ_ENOMEM; or the status of the
 * component.
 */
WQ_API wq_limiter *wq_limiter_bounded(wq_limiter *part, int64_t idle_ns);

/*
 * Make client-go's default limiters. wq_limiter_controller() is the longer of exponential(5 ms,
 * 1000 s) and bucket(10 a second, burst 100). Its bucket is shared: all keys together are retried
 * ten times a second on average. wq_limiter_item_based() is exponential(1 ms, 1000 s). A queue
 * without a limiter uses neither: it has exponential(5 ms, 1000 s).
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_ENOMEM.
 */
WQ_API wq_limiter *wq_limiter_controller(void);
WQ_API wq_limiter *wq_limiter_item_based(void);

/*
 * The functions of a custom limiter. They are called one at a time, with the time in now_ns; in a
 * queue under its lock. They may not block or call the queue, and must not throw, longjmp or end
 * the thread.
 *
 * when:      how long the key waits; < 0 counts as 0.
 * forget:    clear what is remembered of the key.
 * failures:  how often `when` was asked for the key since it was forgotten; below UINT32_MAX.
 * give_back: undo what the last `when` reserved for a key that did not need it: a token, not a
 *            count. Optional.
 * free:      called once, when the limiter is freed. Optional.
 */
typedef struct wq_limiter_functions {
	int64_t (*when)(void *ctx, const void *key, size_t len, int64_t now_ns);
	void (*forget)(void *ctx, const void *key, size_t len);
	uint32_t (*failures)(void *ctx, const void *key, size_t len);
	void (*give_back)(void *ctx, const void *key, size_t len);
	void (*free)(void *ctx);
	void *ctx;
	uint64_t reserved[4]; /* must be zero */
} wq_limiter_functions;

/*
 * Make a custom limiter. The struct is copied.
 *
 * Ownership: it owns ctx in every case: free(ctx) is called also if the constructor fails.
 *
 * Returns the limiter.
 *
 * Errors (wq_limiter_status()): WQ_EINVAL if f is NULL, or when, forget or failures is; WQ_ENOMEM.
 */
WQ_API wq_limiter *wq_limiter_custom(const wq_limiter_functions *f);

/*
 * Get the status of a limiter.
 *
 * Returns WQ_OK, or the status of the constructor that failed; WQ_ENOMEM for NULL.
 */
WQ_API int wq_limiter_status(const wq_limiter *l);

/*
 * Free a limiter and its components. NULL is allowed.
 *
 * Returns WQ_OK, also for a limiter whose constructor failed.
 *
 * Errors: WQ_EBUSY if it has an owner.
 */
WQ_API int wq_limiter_free(wq_limiter *l);

/* ---- a limiter without a queue ------------------------------------------- */

/*
 * Ask a limiter how long a key waits from now_ns on. The call counts as a failure of the key.
 *
 * Returns nanoseconds >= 0, or WQ_NEVER.
 *
 * Errors:
 *   WQ_EINVAL    key is NULL and len is not 0; now_ns < 0
 *   WQ_ETOOLONG  len > WQ_KEY_MAX
 *   WQ_EBUSY     the limiter has an owner
 *   WQ_ENOMEM    out of memory; nothing was counted. Also for a NULL limiter
 *   others       the status of a limiter whose constructor failed
 */
WQ_API wq_number wq_limiter_when(wq_limiter *l, const void *key, size_t len, int64_t now_ns);

/*
 * Forget the failures of a key. An unknown key is allowed.
 *
 * Returns WQ_OK.
 *
 * Errors: those of wq_limiter_when().
 */
WQ_API int wq_limiter_forget(wq_limiter *l, const void *key, size_t len);

/*
 * Count the failures that a limiter remembers of a key.
 *
 * Returns the number of failures.
 *
 * Errors: those of wq_limiter_when().
 */
WQ_API wq_number wq_limiter_failures(wq_limiter *l, const void *key, size_t len);

/*
 * Give back the token of the last wq_limiter_when(), which turned out not to be needed. The caller
 * makes sure that it was for this key. It works once; the failure stays counted.
 *
 * Returns WQ_OK.
 *
 * Errors: those of wq_limiter_when().
 */
WQ_API int wq_limiter_give_back(wq_limiter *l, const void *key, size_t len);

/*
 * Count the keys that a limiter remembers, and the buckets of parts.
 *
 * Returns the number.
 *
 * Errors: those of wq_limiter_when().
 */
WQ_API wq_number wq_limiter_size(wq_limiter *l);

#ifdef __cplusplus
}
#endif
#endif
