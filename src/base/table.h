/*
 * The table of live keys: from a hash to the entries that have it.
 *
 * Slots (hash and id) stand in buckets of 16, two cache lines each: 16 hashes, which
 * one comparison of vectors looks through, and 16 ids.
 *
 *   - A hash has a home bucket, by multiplication: buckets are in the order of the
 *     hashes. A full bucket continues in the next one.
 *   - Invariant: between the home of a slot and its bucket all buckets are full. A removal
 *     from a full bucket pulls a slot back from a later one; there are no tombstones.
 *   - The table grows by 5/4 (a small one doubles) and shrinks by half. Meanwhile it
 *     has two arrays of buckets: hashes up to `edge` are in the new one, all others in
 *     the old one. Every insertion and removal moves two buckets' slots, and
 *     on to the end of a chain of full ones. It never touches an entry, and nothing is done
 *     to all of the table at once.
 *   - A walk goes through the slots in their order (hash, then id) and needs no cursor but
 *     the last slot, whatever changes in between.
 *
 * 11 to 15 bytes a key; a new table takes less than 200. Equal hashes make chains: they cost
 * time, and need a secret to be found (hash.h), but nothing breaks.
 *
 * A slot is hash << 32 | id; neither is ever 0. The caller serialises.
 */
#ifndef WQ_BASE_TABLE_H
#define WQ_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__) && !defined(WQ_PORTABLE)
#include <emmintrin.h>
#endif

#include "base/compiler.h"
#include "base/slab.h"

enum {
	WQ__BUCKET = 16,   /* slots in a bucket */
	WQ__SEGMENT = 128, /* buckets in a segment, which is a small run */
};

struct wq__table_bucket {
	uint32_t hash[WQ__BUCKET]; /* 0: the slot is empty, and its id is 0, too */
	uint32_t id[WQ__BUCKET];
};

_Static_assert(sizeof(struct wq__table_bucket) * WQ__SEGMENT == WQ__RUN_SMALL_BYTES, "a run each");

/*
 * Buckets are numbered; bucket i is in segment i / SEGMENT. Those from nhomes on take what
 * does not fit before. Segments are taken, and buckets cleared, only when they are reached.
 */
struct wq__array {
	struct wq__table_bucket **segment;
	struct wq__run **run; /* of each segment; in the memory of `segment`, too */
	uint32_t nhomes;      /* hashes are spread over so many buckets; 0: there is no array */
	uint32_t first;       /* buckets of segment 0: SEGMENT, but fewer in a small array */
	uint32_t ready;     /* buckets below this number can be used; the last one is never full */
	uint32_t nsegments; /* segments 0 to nsegments - 1 are there */
	uint32_t capacity;  /* of segment[] and run[] */
};

typedef struct wq__table {
	struct wq__array now; /* the only one, or the one to which slots are moved */
	uint32_t edge;        /* hashes up to this one are in `now`; UINT32_MAX: all */
	uint32_t moved;       /* buckets of `old` below this number have been moved */
	size_t n;             /* keys */
	size_t limit;         /* an insertion has more to do if n is not below; 0 while moving */
	size_t floor;         /* a removal has if n is below; SIZE_MAX while moving */
	struct wq__array old;
	uint32_t moved_max; /* the most slots that one call has moved */
	uint32_t nmoves;    /* how often the size has changed */
	wq__slab *slab;     /* I: segments are runs of it */
	const wq_allocator *allocator;
} wq__table;

/*
 * Where a slot is, or where a new one goes; bucket NULL: insert has to look for it. Only
 * find and a probe make one. It is valid until the table changes, and its fields are the
 * table's own.
 */
typedef struct wq__place {
	struct wq__table_bucket *bucket;
	size_t index;
} wq__place;

/* Goes through the ids of one hash. Valid until the table changes. */
typedef struct wq__probe {
	const struct wq__array *array;
	struct wq__table_bucket *bucket;
	uint32_t number; /* of the bucket */
	uint32_t hash;
	uint32_t matches; /* a bit for each slot of the bucket that is still to be shown */
	uint32_t empty;   /* at the end: the bucket's empty slots */
} wq__probe;

/* 0, or -1: out of memory. */
int wq__table_init(wq__table *t, wq__slab *slab, const wq_allocator *a);
/* The segments stay: they go with the slab. */
void wq__table_release(wq__table *t);

/* A bit for each slot with this hash. */
static inline uint32_t wq__bucket_match(const struct wq__table_bucket *b, uint32_t hash)
{
#if defined(__SSE2__) && !defined(WQ_PORTABLE)
	const __m128i *v = (const __m128i *)(const void *)b->hash, x = _mm_set1_epi32((int)hash);
	__m128i low = _mm_packs_epi32(_mm_cmpeq_epi32(v[0], x), _mm_cmpeq_epi32(v[1], x));
	__m128i high = _mm_packs_epi32(_mm_cmpeq_epi32(v[2], x), _mm_cmpeq_epi32(v[3], x));

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
#else
	uint32_t bits = 0;

	for (uint32_t i = 0; i < WQ__BUCKET; i++)
		bits |= (uint32_t)(b->hash[i] == hash) << i;
	return bits;
#endif
}

/* Slots are filled from the first on: so one look is mostly enough. */
static inline bool wq__bucket_full(const struct wq__table_bucket *b)
{
	return wq__unlikely(b->hash[WQ__BUCKET - 1]) && !wq__bucket_match(b, 0);
}

static inline const struct wq__array *wq__array_of(const wq__table *t, uint32_t hash)
{
	return wq__likely(hash <= t->edge) ? &t->now : &t->old;
}

static inline uint32_t wq__home(const struct wq__array *a, uint32_t hash)
{
	return (uint32_t)((uint64_t)hash * a->nhomes >> 32);
}

static inline struct wq__table_bucket *wq__bucket_at(const struct wq__array *a, uint32_t number)
{
	return a->segment[number / WQ__SEGMENT] + number % WQ__SEGMENT;
}

/* The first segment of a small array is shorter: the numbers behind it are left out. */
static inline uint32_t wq__bucket_next(const struct wq__array *a, uint32_t number)
{
	return number + 1 == a->first ? WQ__SEGMENT : number + 1;
}

/*
 * Ask for the memory that a look-up of this hash will touch. Forced inline: gcc
 * takes a function that only prefetches for one without effects, and drops the
 * call.
 */
static inline __attribute__((always_inline)) void wq__table_prefetch(const wq__table *t,
                                                                     uint32_t hash)
{
	const struct wq__array *a = wq__array_of(t, hash);
	struct wq__table_bucket *b = wq__bucket_at(a, wq__home(a, hash));

	wq__prefetch_to_write(b->hash);
	wq__prefetch_to_write(b->id);
}

/* All ids with this hash, in no order: call wq__probe_next() until it returns 0. */
static inline wq__probe wq__table_probe(const wq__table *t, uint32_t hash)
{
	const struct wq__array *a = wq__array_of(t, hash);
	uint32_t number = wq__home(a, hash);
	struct wq__table_bucket *b = wq__bucket_at(a, number);

	wq__prefetch(b->id);
	return (wq__probe){
	    .array = a,
	    .bucket = b,
	    .number = number,
	    .hash = hash,
	    .matches = wq__bucket_match(b, hash),
	};
}

static inline uint32_t wq__probe_next(wq__probe *p)
{
	while (wq__likely(!p->matches)) {
		p->empty = wq__bucket_match(p->bucket, 0);
		if (wq__likely(p->empty))
			return 0;
		p->number = wq__bucket_next(p->array, p->number);
		p->bucket = wq__bucket_at(p->array, p->number);
		p->matches = wq__bucket_match(p->bucket, p->hash);
	}

	uint32_t index = (uint32_t)__builtin_ctz(p->matches);

	p->matches &= p->matches - 1;
	return p->bucket->id[index];
}

/*
 * Where a new slot of this hash goes, once wq__probe_next() has returned 0. Filling up
 * a bucket is left to wq__table_push_in().
 */
static inline wq__place wq__probe_end(const wq__probe *p)
{
	if (wq__unlikely(!(p->empty & (p->empty - 1))))
		return (wq__place){.bucket = NULL, .index = 0};
	return (wq__place){.bucket = p->bucket, .index = (size_t)__builtin_ctz(p->empty)};
}

/* Where exactly this slot is, wherever that is; bucket NULL: nowhere. */
wq__place wq__table_search(const wq__table *t, uint64_t slot);

/*
 * The slot with exactly this value. True: found. The object it names is not looked at.
 * Mostly it is the first one of its hash in its home bucket.
 */
static inline bool wq__table_find(const wq__table *t, uint64_t slot, wq__place *out)
{
	uint32_t hash = (uint32_t)(slot >> 32), id = (uint32_t)slot;
	const struct wq__array *a = wq__array_of(t, hash);
	struct wq__table_bucket *b = wq__bucket_at(a, wq__home(a, hash));
	uint32_t matches = wq__bucket_match(b, hash);

	*out = (wq__place){.bucket = b};
	if (wq__likely(matches)) {
		out->index = (size_t)__builtin_ctz(matches);
		/* 0 is no slot, though an empty one holds it. */
		if (wq__likely(b->id[out->index] == id))
			return id != 0;
	}
	*out = wq__table_search(t, slot);
	return out->bucket != NULL;
}

static inline bool wq__table_has(const wq__table *t, uint64_t slot)
{
	wq__place at;

	return wq__table_find(t, slot, &at);
}

/* wq__table_insert() where the table is moving, or has to grow, or the place is not known. */
int wq__table_push_in(wq__table *t, uint64_t slot);

/*
 * Put a new slot in; `at` is the end of a probe for its hash.
 * 0, or -1: out of memory, and the table holds what it held.
 */
static inline int wq__table_insert(wq__table *t, wq__place at, uint64_t slot)
{
	if (wq__unlikely(t->n >= t->limit || !at.bucket))
		return wq__table_push_in(t, slot);
	at.bucket->hash[at.index] = (uint32_t)(slot >> 32);
	at.bucket->id[at.index] = (uint32_t)slot;
	t->n++;
	return 0;
}

/* A slot of this hash went from a bucket that was full. */
void wq__table_pull_back(wq__table *t, uint32_t hash, wq__place hole);
/* The table is moving, or too large. */
void wq__table_shrink(wq__table *t);

/* Takes a slot out that wq__table_find() has found. Never fails. */
static inline void wq__table_remove_at(wq__table *t, wq__place at)
{
	struct wq__table_bucket *b = at.bucket;
	uint32_t hash = b->hash[at.index];
	bool was_full = wq__bucket_full(b);

	b->hash[at.index] = 0;
	b->id[at.index] = 0;
	t->n--;
	if (wq__unlikely(was_full))
		wq__table_pull_back(t, hash, at);
	if (wq__unlikely(t->n < t->floor))
		wq__table_shrink(t);
}

/* The same; the slot is there. */
static inline void wq__table_remove(wq__table *t, uint64_t slot)
{
	wq__place at;

	if (wq__table_find(t, slot, &at))
		wq__table_remove_at(t, at);
}

/* Goes through the slots in their order. The table may change between two steps. */
typedef struct wq__iter {
	const wq__table *table;
	uint64_t from; /* what is smaller has been seen */
} wq__iter;

/* From the first slot that is not smaller than this. */
static inline wq__iter wq__table_iter(const wq__table *t, uint64_t from)
{
	return (wq__iter){.table = t, .from = from};
}

/* The next slot, or 0 at the end. */
uint64_t wq__iter_next(wq__iter *it);

#endif
