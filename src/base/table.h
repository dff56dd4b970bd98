/*
 * The table of live keys: from a hash to the entries that have it.
 *
 * An extendible hash table whose pages are sorted. The directory is indexed
 * by the top bits of the 32-bit hash; each page covers one prefix and spreads
 * the hashes over its slots in order, so that
 *
 *   - a search ends at the first larger hash, and looks at about three slots
 *     even at 7/8 full;
 *   - growing or splitting a page copies slots from left to right and never
 *     touches an entry;
 *   - no operation moves more slots than one page has, about 500 (and now and
 *     then the directory, 16 bytes a page): no add waits for a rehash of all;
 *   - walking in the order of the slots needs no cursor but the last slot,
 *     and survives every change in between.
 *
 * A slot is hash << 32 | id; 0 is an empty one. Slots are sorted by their whole
 * value. The caller serialises.
 */
#ifndef WQ_BASE_TABLE_H
#define WQ_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"

struct wq__page {
	uint32_t n;     /* slots in use */
	uint32_t limit; /* more than this: grow */
	uint32_t cap;   /* hashes are spread over slots 0 to cap - 1 ... */
	uint32_t total; /* ... and may overflow up to this; slot[total] is always 0 */
	uint32_t id;    /* its own, in the slab */
	uint16_t depth; /* bits of the prefix that it covers */
	uint16_t floor; /* less than this: look whether it can be merged; 0: it is the first page */
	uint64_t slot[];
};

/* With what a look-up needs of the page, so that it touches one line of it only. */
struct wq__dirent {
	struct wq__page *page;
	uint32_t cap, depth;
};

typedef struct wq__table {
	struct wq__dirent *dir;
	struct wq__page *first; /* the smallest page, kept for when the table is empty again */
	uint32_t depth;         /* bits that index dir */
	uint32_t dir_depth;     /* dir has room for so many bits */
	size_t npages;
	size_t n;              /* keys */
	uint32_t at_depth[33]; /* pages by depth */
	uint32_t moved_max;    /* the most slots that one call has moved */
	wq__slab *slab;        /* I: pages come from here */
	const wq_allocator *allocator;
} wq__table;

/*
 * Where a slot is, or where a new one goes. Only find and a probe make one; it is
 * valid until the table changes. The fields are the table's own.
 */
typedef struct wq__place {
	struct wq__page *page;
	uint32_t index;
} wq__place;

/* Goes through the ids of one hash. Valid until the table changes. */
typedef struct wq__probe {
	wq__place at;
	uint32_t hash;
} wq__probe;

/* 0, or -1: out of memory. */
int wq__table_init(wq__table *t, wq__slab *slab, const wq_allocator *a);
void wq__table_release(wq__table *t);

static inline const struct wq__dirent *wq__table_dirent(const wq__table *t, uint32_t hash)
{
	return &t->dir[(uint64_t)hash >> (32 - t->depth)];
}

static inline uint32_t wq__home(uint32_t cap, uint32_t depth, uint32_t hash)
{
	return (uint32_t)(((uint64_t)(uint32_t)(hash << depth) * cap) >> 32);
}

/* Where the search for a hash begins. */
static inline wq__place wq__table_home(const wq__table *t, uint32_t hash)
{
	const struct wq__dirent *d = wq__table_dirent(t, hash);

	return (wq__place){.page = d->page, .index = wq__home(d->cap, d->depth, hash)};
}

/*
 * Ask for the memory that a look-up of this hash will touch. Forced inline: gcc
 * takes a function that only prefetches for one without effects, and drops the
 * call.
 */
static inline __attribute__((always_inline)) void wq__table_prefetch(const wq__table *t,
                                                                     uint32_t hash)
{
	wq__place at = wq__table_home(t, hash);

	/* The slot is one of the next few, often on the next line. */
	wq__prefetch_to_write(&at.page->slot[at.index]);
	wq__prefetch_to_write(&at.page->slot[at.index + 7]);
	wq__prefetch_to_write(at.page);
}

/* The first slot that is not smaller, or the empty one before it. */
static inline wq__place wq__table_seek(const wq__table *t, uint64_t slot)
{
	wq__place at = wq__table_home(t, (uint32_t)(slot >> 32));

	while (at.page->slot[at.index] != 0 && at.page->slot[at.index] < slot)
		at.index++;
	return at;
}

/* The slot with exactly this value. True: found. The object it names is not looked at. */
static inline bool wq__table_find(const wq__table *t, uint64_t slot, wq__place *out)
{
	*out = wq__table_seek(t, slot);
	/* 0 is no slot, though an empty one holds it. */
	return slot != 0 && out->page->slot[out->index] == slot;
}

static inline bool wq__table_has(const wq__table *t, uint64_t slot)
{
	wq__place at;

	return wq__table_find(t, slot, &at);
}

/* All ids with this hash, in no order: call wq__probe_next() until it returns 0. */
static inline wq__probe wq__table_probe(const wq__table *t, uint32_t hash)
{
	return (wq__probe){.at = wq__table_seek(t, (uint64_t)hash << 32), .hash = hash};
}

static inline uint32_t wq__probe_next(wq__probe *p)
{
	uint64_t slot = p->at.page->slot[p->at.index];

	if (slot == 0 || (uint32_t)(slot >> 32) != p->hash)
		return 0;
	p->at.index++;
	return (uint32_t)slot;
}

/* Where a new slot of this hash goes, once wq__probe_next() has returned 0. */
static inline wq__place wq__probe_end(const wq__probe *p)
{
	return p->at;
}

/*
 * Put a new slot in; `at` is the end of a probe for its hash.
 * 0, or -1: out of memory, and the table holds what it held.
 */
int wq__table_push_in(wq__table *t, wq__place at, uint64_t slot);

static inline int wq__table_insert(wq__table *t, wq__place at, uint64_t slot)
{
	struct wq__page *p = at.page;

	if (wq__likely(p->n < p->limit && p->slot[at.index] == 0 && at.index < p->total &&
	               (at.index == 0 || p->slot[at.index - 1] < slot))) {
		p->slot[at.index] = slot;
		p->n++;
		t->n++;
		return 0;
	}
	return wq__table_push_in(t, at, slot);
}

void wq__table_close_gap(struct wq__page *p, uint32_t gap);
void wq__table_shrink(wq__table *t, uint32_t hash, struct wq__page *p);

/* Takes a slot out that wq__table_find() has found. Never fails. */
static inline void wq__table_remove_at(wq__table *t, wq__place at)
{
	struct wq__page *p = at.page;
	uint32_t hash = (uint32_t)(p->slot[at.index] >> 32);

	p->slot[at.index] = 0;
	p->n--;
	t->n--;
	if (p->slot[at.index + 1])
		wq__table_close_gap(p, at.index);
	if (wq__unlikely(p->n < p->floor && p->n % 8 == 0))
		wq__table_shrink(t, hash, p);
}

/* The same; the slot is there. */
static inline void wq__table_remove(wq__table *t, uint64_t slot)
{
	wq__place at;

	wq__table_find(t, slot, &at);
	wq__table_remove_at(t, at);
}

/* Goes through the slots in their order. Valid until the table changes. */
typedef struct wq__iter {
	const wq__table *table;
	const struct wq__page *page;
	uint32_t index;
	uint64_t end; /* the first hash after this page, 33 bits */
} wq__iter;

/* From the first slot that is not smaller than this. */
wq__iter wq__table_iter(const wq__table *t, uint64_t from);

/* The next slot, or 0 at the end. */
uint64_t wq__iter_next(wq__iter *it);

#endif
