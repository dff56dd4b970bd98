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
 * [TURNS] A key belongs to one group, which is a part of its bytes. Inside a level groups take
 * turns: each starts one key (or as many as its weight), then the next group has its turn. Inside
 * a group keys are first in, first out. So a million keys of one group do not delay ten keys of
 * another.
 *
 * [LIMIT] At most `limit` keys of a group are held at once, over all workers. Other keys of the
 * group are blocked: they are queued, wq_len() counts them, but no get sees them until a hold of
 * the group ends. Gets do not look at blocked keys one by one, however many there are.
 *
 * [RATE] At most `rate` keys of a group are started per second: by a token bucket for each group,
 * with a token every 1 / rate seconds and at most `burst` of them. A group without a token is
 * blocked until it has one; a waiting get wakes up then, and wq_next_deadline() and the
 * descriptor of wq_fd() tell event loops.
 *
 * A shutdown or drain waits for blocked keys as for all that are queued, and a get waits for them
 * instead of answering WQ_ESHUTDOWN.
 *
 * A group takes about 250 bytes and its name while it has keys in any state (also if the limiter
 * only remembers them) or its bucket is not full. At most 2^30 groups.
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
 * The group of a key is what stands before the n-th separator; a key with fewer separators is a
 * group of its own. It is a wq_group_fn: ctx points to a wq_separator, which must outlive the
 * queue.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if ctx or group is NULL, key is NULL and len is not 0, or n is 0.
 *
 * Threads: any. Blocks: no.
 */
WQ_API int wq_group_before(void *ctx, const void *key, size_t len, wq_key *group);

#ifdef __cplusplus
}
#endif
#endif
