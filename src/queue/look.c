/*
 * Looking without touching: counts, one key, all keys.
 *
 * A walk goes through the table in the order of the hashes and remembers only
 * the last hash, so the table may change as it likes between two batches.
 * Keys of one hash are copied in one batch, or the cursor could not tell which
 * of them it has shown.
 */
#include <string.h>

#include "queue/memory.h"

int64_t wq__mem_len(void *state)
{
	struct wq__memory *m = state;

	wq__lock_acquire(&m->lock);

	int64_t n = m->nready;

	wq__lock_release(&m->lock);
	return n;
}

int wq__mem_state(void *state, const void *key, size_t len)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len);

	wq__lock_acquire(&m->lock);

	uint32_t id = wq__find(m, hash, key, len);
	unsigned bits = id ? wq__entry_state(wq__entry_at(m, id)) : 0;

	wq__lock_release(&m->lock);
	return (int)bits;
}

struct shown {
	size_t offset; /* of the key in bytes[] */
	size_t len;
	int64_t age_ns;
	uint32_t hash;
	unsigned state;
};

struct batch {
	struct shown key[WQ__HOLD_MAX];
	size_t n;
	size_t used, size; /* of bytes[] */
	bool more;
	char bytes[];
};

static struct batch *batch_new(struct wq__memory *m, size_t size)
{
	struct batch *b = wq__alloc(&m->allocator, sizeof *b + size, 8);

	if (b)
		b->size = size;
	return b;
}

static void batch_free(struct wq__memory *m, struct batch *b)
{
	wq__free(&m->allocator, b, sizeof *b + b->size);
}

static int64_t age_of(const struct wq__entry *e, int64_t now)
{
	unsigned state = wq__entry_state(e);
	int64_t since = state & WQ_STATE_RUNNING ? e->u.hold.since_ns : e->added_ns;

	return now > since ? now - since : 0;
}

static bool batch_push(struct batch *b, const struct wq__entry *e, int64_t now)
{
	size_t len = wq__entry_len(e);

	if (b->n == WQ__HOLD_MAX || b->size - b->used < len + 1)
		return false;
	b->key[b->n++] = (struct shown){
	    .offset = b->used,
	    .len = len,
	    .age_ns = age_of(e, now),
	    .hash = e->hash,
	    .state = wq__entry_state(e),
	};
	memcpy(b->bytes + b->used, e->key, len + 1);
	b->used += len + 1;
	return true;
}

/* Copies keys from *hash on. False: not even the keys of the first hash fit. */
static bool batch_fill(struct wq__memory *m, struct batch *b, uint32_t *hash)
{
	wq__iter it = wq__table_iter(&m->table, *hash);
	int64_t now = wq__now(m);
	uint64_t slot;

	b->n = b->used = 0;
	b->more = false;
	while ((slot = wq__iter_next(&it)) != 0) {
		if (batch_push(b, wq__entry_at(m, (uint32_t)slot), now))
			continue;
		/* Full: this hash begins the next batch, with all its keys. */
		*hash = (uint32_t)(slot >> 32);
		while (b->n > 0 && b->key[b->n - 1].hash == *hash)
			b->n--;
		b->more = true;
		return b->n > 0;
	}
	return true;
}

/* The lock is held before and after; NULL: out of memory. */
static struct batch *batch_grow(struct wq__memory *m, struct batch *b)
{
	size_t size = b->size * 2;

	batch_free(m, b);
	return batch_new(m, size);
}

static bool batch_show(const struct batch *b, wq_walk_fn fn, void *ctx, int64_t *shown)
{
	for (size_t i = 0; i < b->n; i++) {
		wq_key_info info = {
		    .key = b->bytes + b->key[i].offset,
		    .len = b->key[i].len,
		    .state = b->key[i].state,
		    .age_ns = b->key[i].age_ns,
		};

		++*shown;
		if (fn(ctx, &info) != 0)
			return false;
	}
	return true;
}

int64_t wq__mem_walk(void *state, wq_walk_fn fn, void *ctx)
{
	struct wq__memory *m = state;
	uint32_t hash = 0;
	int64_t shown = 0;
	bool go_on = true;

	wq__lock_acquire(&m->lock);

	struct batch *b = batch_new(m, WQ_KEY_MAX + 1);

	m->inside++;
	while (b && go_on) {
		if (!batch_fill(m, b, &hash)) {
			b = batch_grow(m, b);
			continue;
		}
		go_on = b->more;
		wq__lock_release(&m->lock);
		go_on = batch_show(b, fn, ctx, &shown) && go_on;
		wq__lock_acquire(&m->lock);
	}
	m->inside--;
	if (b)
		batch_free(m, b);
	wq__lock_release(&m->lock);
	return b ? shown : WQ_ENOMEM;
}
