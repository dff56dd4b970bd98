/*
 * Dead keys: those that failed for good of late; for `wq wait`, `wq ls --state=dead`, `wq retry`.
 *
 * A key is either in the queue or here, never in both: giving it again takes it out, and a key
 * that was given while its last attempt ran does not come in. Of late: the last DEAD_KEYS keys, or
 * fewer if they have more than DEAD_BYTES in all. The oldest goes first. There is no age: what
 * was once told is told again until the key is given, retried or forgotten.
 *
 * Cost: a look-up is a search in a tree of at most DEAD_KEYS; with none there it is free.
 */
#ifndef CLI_QUEUE_DEAD_H
#define CLI_QUEUE_DEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq/types.h>

enum { DEAD_KEYS = 10000, DEAD_BYTES = 4 << 20 };

struct dead_key {
	struct dead_key *older, *newer;
	int64_t at_ns;     /* of the queue's clock: when it died */
	uint32_t failures; /* how many attempts there were */
	int32_t priority;  /* of the last one */
	const char *value; /* behind the key; NULL: none */
	size_t value_len;
	size_t len;
	const char *key; /* behind it, or the caller's while it is looked for */
	char bytes[];
};

struct dead {
	void *tree;
	struct dead_key *oldest, *newest;
	size_t n, bytes;
};

/* A key that died; one that is here already becomes the newest. */
void dead_put(struct dead *d, const wq_item *item, int64_t now_ns);
/* NULL: it is not here. */
const struct dead_key *dead_find(const struct dead *d, const void *key, size_t len);
/* False: it was not here. */
bool dead_remove(struct dead *d, const void *key, size_t len);
void dead_release(struct dead *d);

#endif
