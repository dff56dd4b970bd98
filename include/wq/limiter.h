/*
 * Limiters: how long a key has to wait before it is tried again.
 *
 *     wq_limiter *l = wq_limiter_max_of(
 *         (wq_limiter *[]){wq_limiter_exponential(5 * WQ_MILLISECOND, 1000 * WQ_SECOND),
 *                          wq_limiter_bucket(10, 100)},
 *         2);
 *     wq_new(&q, &(wq_options){.limiter = l});     // l belongs to the queue from here on
 *     wq_add_limited(q, key, len);
 *
 *   limiter      | when(key) answers                          | counts | forget
 *   -------------+--------------------------------------------+--------+------------------
 *   exponential  | base, 2 base, 4 base ... up to max         | yes    | starts anew
 *   jittered     | the same, scattered by chance              | yes    | starts anew
 *   fast_slow    | fast the first n times, slow from then on  | yes    | starts anew
 *   bucket       | until a token is there; all keys share it  | no     | nothing
 *   bucket_per_key | the same, a bucket for each key          | no     | nothing
 *   bucket_per_part | the same, one for keys that begin alike | no     | nothing
 *   max_of       | the longest of its parts                   | as they do | asks all
 *   max_wait     | what its part says, but not above max      | as it does | asks it
 *   bounded      | what its part says                         | as it does | asks it
 *   own          | what your function says                    | yours  | yours
 *
 * Time is given to every call, in nanoseconds: limiters have no clock of their
 * own. In a queue it is the queue's.
 *
 * [LIMIT] No limiter answers less than 0 or more than its maximum. WQ_NEVER: not at all.
 *
 * What is remembered of a key is one thing: a number of failures, shared by the
 * parts of one limiter, and what jitter and buckets need besides. It lasts
 * until forget, or until the key has been idle for as long as a bounded limiter allows;
 * a bucket of a key is given up when it is full again. The number
 * stops at WQ_FAILURES_MAX.
 *
 * [GIVEN] Ownership: a limiter that is given to another one or to wq_new() belongs to
 * it, in every case, failure included; it is freed with it, and calls on it answer WQ_EBUSY.
 * What it remembered of keys is forgotten then; tokens that were taken from a bucket stay taken.
 * Giving it twice is WQ_EBUSY for the second taker.
 *
 * Errors: a constructor never returns NULL. One that fails returns a limiter
 * that carries the reason, and whatever takes that one fails with it, up to
 * wq_new(); so constructors nest without checks between. wq_limiter_status()
 * tells. NULL given to one counts as WQ_ENOMEM.
 *
 * Threads: any, each call is atomic; but not beside wq_limiter_free() or the call that takes
 * the limiter. Blocks: no.
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

/* Failures of a key are counted up to here. */
#define WQ_FAILURES_MAX 0x3fffffu

/* ---- constructors -------------------------------------------------------- */

/*
 * base, 2 base, 4 base ... , never above max. WQ_EINVAL: base <= 0 or max < base.
 */
WQ_API wq_limiter *wq_limiter_exponential(int64_t base_ns, int64_t max_ns);

/* How a delay is scattered, so that keys that failed together do not come back together. */
enum wq_jitter {
	WQ_JITTER_NONE = 0,  /* d */
	WQ_JITTER_FULL = 1,  /* between 0 and d */
	WQ_JITTER_EQUAL = 2, /* between d/2 and d */
	WQ_JITTER_DECORRELATED =
	    3, /* between base and three times the key's last delay, at most max */
};

/*
 * wq_limiter_exponential() with jitter. The same seed gives the same delays; 0
 * asks the kernel for one. WQ_EINVAL as there, or an unknown jitter.
 */
WQ_API wq_limiter *wq_limiter_jittered(int64_t base_ns, int64_t max_ns, enum wq_jitter jitter,
                                       uint64_t seed);

/*
 * The first nfast calls for a key answer fast_ns, later ones slow_ns; with nfast above
 * WQ_FAILURES_MAX none does. WQ_EINVAL: a
 * delay < 0.
 */
WQ_API wq_limiter *wq_limiter_fast_slow(int64_t fast_ns, int64_t slow_ns, uint32_t nfast);

/*
 * A token bucket: it starts full, with `burst` tokens, and gets `rate` more a
 * second up to that many. Each call takes one token, perhaps one that has yet
 * to come, and answers how long until it is there.
 *
 *   rate 0         the burst, then WQ_NEVER
 *   rate infinite  always 0, whatever the burst
 *   burst 0        always WQ_NEVER, unless the rate is infinite
 *
 * Time that goes back counts as standing still: the answer is as long as it takes from now on to
 * get past the latest time that was told. WQ_EINVAL: a rate that is
 * negative or NaN, burst < 0.
 */
WQ_API wq_limiter *wq_limiter_bucket(double rate, int burst);

/* A bucket for each key. */
WQ_API wq_limiter *wq_limiter_bucket_per_key(double rate, int burst);

/*
 * [PART] A bucket for each part of a key: for each host, tenant, directory. The part is what stands
 * before the n-th separator; a key with fewer separators is a part as a whole. So with '/' and 1 the
 * keys "a.org", "a.org/x" and "a.org/y" share a bucket, and with '/' and 3 all of
 * "http://a.org/..." do, as does "http://a.org" itself. The separator may be any byte.
 *
 *     // one request a second to each host, and failures of a page double its own delay
 *     wq_limiter_max_of((wq_limiter *[]){wq_limiter_bucket_per_part(1, 1, '/', 1),
 *                                        wq_limiter_exponential(WQ_SECOND, WQ_HOUR)}, 2);
 *
 * It keeps buckets that are not full, each with a copy of its part: about 100 bytes and the part's
 * own. One that is full again is dropped, two or more at each call, so there are at most about as many as were
 * asked for in burst / rate seconds; with rate 0 they are kept for ever. wq_limiter_bounded()
 * does not drop them. If there is no memory for a bucket, the key waits as long as one token takes
 * (1 / rate), and no token is taken.
 *
 * WQ_EINVAL: as wq_limiter_bucket(), or n is 0.
 */
WQ_API wq_limiter *wq_limiter_bucket_per_part(double rate, int burst, char separator, unsigned n);

/*
 * Asks all its parts, each time, and answers the longest delay; forget goes to
 * all. WQ_EINVAL: n is 0, or more than WQ_PARTS_MAX, or parts is NULL, or they
 * keep more than 128 bytes a key (a bucket per key 16, decorrelated jitter 8).
 */
#define WQ_PARTS_MAX 8
WQ_API wq_limiter *wq_limiter_max_of(wq_limiter *const *parts, size_t n);

/* No longer than max_ns. WQ_EINVAL: max_ns < 0. */
WQ_API wq_limiter *wq_limiter_max_wait(wq_limiter *part, int64_t max_ns);

/*
 * Forgets a key that has been idle for longer than idle_ns, so that a program
 * that forgets to forget does not fill the memory. Idle is a key for which
 * nothing has been asked; in a queue, one that is neither queued, held nor waiting.
 * Inside another limiter it bounds the whole: there is one memory of a key. A key's own bucket is
 * full again once it is forgotten, so a bound should be longer than burst / rate.
 * WQ_EINVAL: idle_ns <= 0.
 */
WQ_API wq_limiter *wq_limiter_bounded(wq_limiter *part, int64_t idle_ns);

/*
 * client-go's default for controllers: the longer of exponential(5 ms, 1000 s) and bucket(10 a
 * second, 100). The bucket is shared: all keys together are retried ten times a second. A queue
 * that is given no limiter has exponential(5 ms, 1000 s) alone.
 */
WQ_API wq_limiter *wq_limiter_controller(void);

/* client-go's default for items: exponential(1 ms, 1000 s). */
WQ_API wq_limiter *wq_limiter_item_based(void);

/*
 * A limiter of one's own. The functions are called one at a time, with the time
 * in `now_ns`, in a queue under its lock: they may not block or call the queue, and must
 * not throw, longjmp or end the thread.
 *
 * when:         how long the key has to wait; < 0 counts as 0.
 * forget:       clear what is remembered of the key.
 * failures: how often `when` was asked for the key since it was forgotten; below UINT32_MAX.
 * give_back:    undo the last `when` as far as it reserved something that the
 *               key turned out not to need: a token, not a count. Optional.
 * free:         called once, when the limiter is freed. Optional.
 *
 * The struct is copied. What its constructor is given belongs to it in every case.
 * WQ_EINVAL: f is NULL, or one of the first three is.
 */
typedef struct wq_limiter_functions {
	int64_t (*when)(void *ctx, const void *key, size_t len, int64_t now_ns);
	void (*forget)(void *ctx, const void *key, size_t len);
	uint32_t (*failures)(void *ctx, const void *key, size_t len);
	void (*give_back)(void *ctx, const void *key, size_t len);
	void (*free)(void *ctx);
	void *ctx;
} wq_limiter_functions;

WQ_API wq_limiter *wq_limiter_custom(const wq_limiter_functions *f);

/* WQ_OK; the status of a constructor that failed; WQ_ENOMEM for NULL. */
WQ_API int wq_limiter_status(const wq_limiter *l);

/* Frees it and its parts. WQ_OK, also for one that failed; WQ_EBUSY: it belongs to another. */
WQ_API int wq_limiter_free(wq_limiter *l);

/* ---- a limiter alone ----------------------------------------------------- */

/*
 * How long the key has to wait from now_ns on: nanoseconds >= 0, or WQ_NEVER.
 * Counts as a failure of the key.
 *
 * Errors of these calls: WQ_EINVAL (key is NULL and len is not 0; now_ns < 0),
 * WQ_ETOOLONG, WQ_EBUSY (it belongs to another), WQ_ENOMEM (nothing was counted),
 * or the status of one that failed.
 */
WQ_API wq_value wq_limiter_when(wq_limiter *l, const void *key, size_t len, int64_t now_ns);

/* Clears what is remembered of the key; a key that is not known is fine. WQ_OK, or an error. */
WQ_API int wq_limiter_forget(wq_limiter *l, const void *key, size_t len);

/* How many failures are remembered of the key; or an error. */
WQ_API wq_value wq_limiter_failures(wq_limiter *l, const void *key, size_t len);

/*
 * The last wq_limiter_when() turned out needless, and was for this key (the caller sees to
 * that): gives its token back. Once; the failure stays counted. WQ_OK, or an error.
 */
WQ_API int wq_limiter_give_back(wq_limiter *l, const void *key, size_t len);

/* How many keys it remembers, and buckets of parts; or an error. */
WQ_API wq_value wq_limiter_size(wq_limiter *l);

#ifdef __cplusplus
}
#endif
#endif
