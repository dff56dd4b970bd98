/*
 * Groups: keys of one tenant, host or directory share a limit, and groups take turns.
 *
 *     static wq_separator host = {.byte = '/', .n = 1};   // "example.org/a" is of "example.org"
 *
 *     wq_options o = {.group = wq_group_before, .group_ctx = &host, .group_limit = 2,
 *                     .group_rate = 1};                   // a start per second and host
 *
 * wq/queue.h includes this header.
 *
 * [TURNS] A key belongs to one group, which is a part of its bytes. Groups take turns: a turn
 * starts one key of the group, or as many as the group's weight; then the next group has its turn.
 * Inside a group keys are first in, first out. So a million keys of one group do not delay ten keys
 * of another. With priorities, a group is in the level of its highest ready key, and the groups of
 * one level take turns. A group that comes to a level, or may start a key again, goes behind the
 * others. A start is a get of the key, the first one or after a retry.
 *
 * [LIMIT] At most `limit` keys of a group are held at once, over all workers. Other keys of the
 * group are blocked: they are queued, wq_len() counts them, but no get takes them until a hold of
 * the group ends. Gets do not look at blocked keys one by one, however many there are.
 *
 * [TOKENS] At most `rate` keys of a group are started per second: by a token bucket for each group,
 * with a token every 1 / rate seconds and at most `burst` of them. The bucket starts full. A group
 * without a token is blocked until it has one; a waiting get wakes up then, and wq_next_deadline()
 * and the descriptor of wq_fd() tell event loops. wq_requeue() gives the token back.
 * (wq_limiter_bucket_per_part() delays retries and limited adds only.)
 *
 * After a shutdown, blocked keys can still be got: a get waits for them instead of answering
 * WQ_ESHUTDOWN, wq_try_get() answers WQ_EAGAIN, and drains wait for them. A thread that holds as
 * many keys of a group as its limit, and waits for another key of the group, waits for itself.
 *
 * Cost: 8 bytes per key, which priorities share. A group takes about 320 bytes and its name while
 * it has keys in any state (also if the limiter only remembers them) or its bucket is not full. Up
 * to 1,024 groups without keys are kept for their next key.
 */
#ifndef WQ_GROUP_H
#define WQ_GROUP_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For wq_group_before(). */
typedef struct wq_separator {
	char byte;  /* the separator */
	uint32_t n; /* which one ends the group, from 1 */
} wq_separator;

/*
 * Find the group of a key: the bytes before the n-th separator; the whole key if it has fewer. It
 * is a wq_group_fn, for wq_options.group; ctx points to a wq_separator, which must outlive the
 * queue.
 *
 * Returns WQ_OK. *group is a part of the key.
 *
 * Errors: WQ_EINVAL if ctx or group is NULL, key is NULL and len is not 0, or n is 0.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int wq_group_before(void *ctx, const void *key, size_t len, wq_key *group);

#ifdef __cplusplus
}
#endif
#endif
