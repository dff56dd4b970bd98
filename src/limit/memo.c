/* See memo.h. */
#include "limit/memo.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/slab.h"
#include "base/table.h"

enum { TRIM = 2 }; /* looked at for each call that may make one: faster than they come */

struct wq__note {
	uint32_t prev, next; /* ids; 0: none */
	uint32_t hash, id;
	uint32_t failures, len;
	int64_t used_ns;
	uint32_t room, pad;
	char bytes[]; /* the parts' room, then the key */
};

struct wq__memo {
	wq__slab slab;
	wq__table table;
	uint32_t first, last; /* the longest idle, the one used last */
	int64_t now_ns;
	wq__hash_key hash_key;
	wq_allocator allocator;
};

wq__memo *wq__memo_new(const wq_allocator *a)
{
	wq__memo *m = wq__alloc(a, sizeof *m, 64);

	if (!m)
		return NULL;
	memset(m, 0, sizeof *m);
	m->allocator = *a;
	wq__hash_init(&m->hash_key, 0);
	wq__slab_init(&m->slab, &m->allocator);
	if (wq__table_init(&m->table, &m->slab, &m->allocator) < 0) {
		wq__slab_release(&m->slab);
		wq__free(a, m, sizeof *m);
		return NULL;
	}
	return m;
}

void wq__memo_free(wq__memo *m, const wq_allocator *a)
{
	if (!m)
		return;
	wq__table_release(&m->table);
	wq__slab_release(&m->slab);
	wq__free(a, m, sizeof *m);
}

static struct wq__note *note_at(const wq__memo *m, uint32_t id)
{
	return wq__slab_at(&m->slab, id);
}

/* ---- the list ------------------------------------------------------------ */

static void unlink_note(wq__memo *m, const struct wq__note *n)
{
	if (n->prev)
		note_at(m, n->prev)->next = n->next;
	else
		m->first = n->next;
	if (n->next)
		note_at(m, n->next)->prev = n->prev;
	else
		m->last = n->prev;
}

static void link_last(wq__memo *m, struct wq__note *n)
{
	n->next = 0;
	n->prev = m->last;
	if (m->last)
		note_at(m, m->last)->next = n->id;
	else
		m->first = n->id;
	m->last = n->id;
}

/* ---- the table ----------------------------------------------------------- */

static uint32_t hash_of(const wq__memo *m, const void *key, size_t len)
{
	return wq__hash_fold(wq__hash(&m->hash_key, key, len));
}

static struct wq__note *find(const wq__memo *m, const void *key, size_t len)
{
	uint32_t hash = hash_of(m, key, len);
	wq__probe p = wq__table_probe(&m->table, hash);
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		struct wq__note *n = note_at(m, id);

		if (n->len == len && (len == 0 || memcmp(n->bytes + n->room, key, len) == 0))
			return n;
	}
	return NULL;
}

static struct wq__note *note_new(wq__memo *m, const void *key, size_t len, uint32_t room)
{
	uint32_t id, hash = hash_of(m, key, len);
	struct wq__note *n = wq__slab_alloc(&m->slab, sizeof *n + room + len, &id);

	if (!n)
		return NULL;
	memset(n, 0, sizeof *n + room);
	n->hash = hash;
	n->id = id;
	n->len = (uint32_t)len;
	n->room = room;
	if (len > 0)
		memcpy(n->bytes + room, key, len);

	wq__probe p = wq__table_probe(&m->table, hash);

	while (wq__probe_next(&p) != 0)
		;
	if (wq__table_insert(&m->table, wq__probe_end(&p), (uint64_t)hash << 32 | id) < 0) {
		wq__slab_free(&m->slab, id);
		return NULL;
	}
	link_last(m, n);
	return n;
}

static void drop(wq__memo *m, struct wq__note *n)
{
	unlink_note(m, n);
	wq__table_remove(&m->table, (uint64_t)n->hash << 32 | n->id);
	wq__slab_free(&m->slab, n->id);
}

struct wq__subject wq__note_subject(struct wq__note *n, int64_t now_ns)
{
	return (struct wq__subject){
	    .key = n->bytes + n->room,
	    .len = n->len,
	    .now_ns = now_ns,
	    .failures = n->failures,
	    .room = n->bytes,
	};
}

/* Has it been idle for too long? Then it is gone. */
static bool expire(wq__memo *m, wq_limiter *l, struct wq__note *n, int64_t now_ns)
{
	struct wq__subject s = wq__note_subject(n, now_ns);

	if (now_ns - n->used_ns <= l->idle_ns)
		return false;
	wq__limiter_forget(l, &s);
	drop(m, n);
	return true;
}

struct wq__note *wq__memo_open(wq__memo *m, wq_limiter *l, const void *key, size_t len,
                               int64_t now_ns)
{
	struct wq__note *n = find(m, key, len);

	if (n && !expire(m, l, n, now_ns))
		return n;
	return note_new(m, key, len, wq__limiter_room(l));
}

struct wq__note *wq__memo_find(wq__memo *m, wq_limiter *l, const void *key, size_t len)
{
	struct wq__note *n = find(m, key, len);

	return n && !expire(m, l, n, m->now_ns) ? n : NULL;
}

void wq__memo_close(wq__memo *m, struct wq__note *n, const wq_limiter *l,
                    const struct wq__subject *s)
{
	if (wq__limiter_blank(l, s)) {
		drop(m, n);
		return;
	}
	if (s->now_ns > m->now_ns)
		m->now_ns = s->now_ns;
	n->failures = s->failures;
	n->used_ns = m->now_ns;
	unlink_note(m, n);
	link_last(m, n);
}

void wq__memo_trim(wq__memo *m, wq_limiter *l, int64_t now_ns)
{
	for (int i = 0; i < TRIM && m->first; i++) {
		struct wq__note *n = note_at(m, m->first);
		struct wq__subject s = wq__note_subject(n, now_ns);

		if (expire(m, l, n, now_ns))
			continue;
		if (wq__limiter_blank(l, &s)) {
			drop(m, n);
		} else if (n->room > 0) {
			/* Its bucket is not full yet; others behind it may be. */
			unlink_note(m, n);
			link_last(m, n);
		}
	}
}

size_t wq__memo_size(const wq__memo *m)
{
	return m->table.n;
}

int64_t wq__memo_now(const wq__memo *m)
{
	return m->now_ns;
}
