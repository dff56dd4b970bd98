/*
 * Growing, shrinking and moving; see table.h.
 *
 * What needs memory comes before what changes the table: an insertion that finds
 * none changes nothing, and a removal that finds none leaves moving to the
 * next call.
 */
#include "base/table.h"

#include <assert.h>
#include <string.h>

enum {
	FULL = 11,                   /* slots a bucket, in the mean, above which the table grows */
	ALL = (1 << WQ__BUCKET) - 1, /* a bit for each slot of a bucket */
	KNOWN = 12,                  /* buckets whose empty slots are known while slots move */
	AT_ONCE = 2, /* buckets that one call moves, if no chain goes on behind them */
};

/* ---- arrays of buckets ------------------------------------------------------ */

/* In a small array the buckets of segment 0 come first, then segment[] and run[]. */
static size_t array_bytes(const struct wq__array *a)
{
	size_t few = a->first < WQ__SEGMENT ? a->first : 0;

	return few * sizeof(struct wq__table_bucket) +
	       a->capacity * (sizeof(struct wq__table_bucket *) + sizeof(struct wq__run *));
}

static void *array_block(const struct wq__array *a)
{
	return a->first < WQ__SEGMENT ? (void *)a->segment[0] : (void *)a->segment;
}

/* No bucket is ready yet. False: no memory. */
static bool array_new(const wq__table *t, struct wq__array *a, uint32_t nhomes)
{
	/*
	 * All slots may be in a chain behind the last home, if their hashes are chosen so: FULL
	 * for each home, and what comes in until the last home has been moved.
	 */
	uint32_t most = nhomes + (uint32_t)((uint64_t)nhomes * (FULL + 1) / WQ__BUCKET) + AT_ONCE;
	bool small = nhomes + AT_ONCE < WQ__SEGMENT;
	char *block;

	*a = (struct wq__array){
	    .nhomes = nhomes,
	    .first = small ? nhomes + (nhomes > 1) : WQ__SEGMENT,
	    .capacity = most / WQ__SEGMENT + 1 + small,
	};
	block = wq__alloc(t->allocator, array_bytes(a), 64);
	if (!block)
		return false;
	if (small) {
		struct wq__table_bucket *few = (struct wq__table_bucket *)(void *)block;

		a->segment = (struct wq__table_bucket **)(void *)(few + a->first);
		a->segment[0] = few;
		a->nsegments = 1;
	} else {
		a->segment = (struct wq__table_bucket **)(void *)block;
	}
	a->run = (struct wq__run **)(void *)(a->segment + a->capacity);
	if (small)
		a->run[0] = NULL;
	return true;
}

static bool segment_new(const wq__table *t, struct wq__array *a)
{
	struct wq__run *run;

	if (a->nsegments == a->capacity)
		return false;
	run = wq__run_take(&t->slab->runs, WQ__RUN_SMALL);
	if (!run)
		return false;
	run->live = 0;
	a->run[a->nsegments] = run;
	a->segment[a->nsegments] = (struct wq__table_bucket *)(void *)run->base;
	a->nsegments++;
	return true;
}

static void segments_free(const wq__table *t, struct wq__array *a, uint32_t from, uint32_t end)
{
	for (uint32_t i = from; i < end; i++)
		if (a->run[i])
			wq__run_give(&t->slab->runs, a->run[i]);
}

/* False: no memory; fewer may be ready then. */
static bool make_ready(const wq__table *t, struct wq__array *a, uint32_t number)
{
	while (a->ready <= number) {
		if (a->ready / WQ__SEGMENT == a->nsegments && !segment_new(t, a))
			return false;
		memset(wq__bucket_at(a, a->ready), 0, sizeof(struct wq__table_bucket));
		a->ready = wq__bucket_next(a, a->ready);
	}
	return true;
}

static uint32_t nempty(const struct wq__table_bucket *b)
{
	return (uint32_t)__builtin_popcount(wq__bucket_match(b, 0));
}

/* The first bucket for this hash that is not full. */
static uint32_t bucket_for(const struct wq__array *a, uint32_t hash)
{
	uint32_t number = wq__home(a, hash);

	while (wq__bucket_full(wq__bucket_at(a, number)))
		number = wq__bucket_next(a, number);
	return number;
}

static void put(struct wq__table_bucket *b, uint32_t hash, uint32_t id)
{
	uint32_t index = (uint32_t)__builtin_ctz(wq__bucket_match(b, 0));

	b->hash[index] = hash;
	b->id[index] = id;
}

/* ---- moving ----------------------------------------------------------------- */

static bool is_moving(const wq__table *t)
{
	return t->old.nhomes > 0;
}

static void set_limits(wq__table *t)
{
	size_t most = (size_t)t->now.nhomes * FULL;

	t->limit = is_moving(t) ? 0 : most;
	t->floor = is_moving(t) ? SIZE_MAX : t->now.nhomes > 1 ? most / 4 : 0;
}

int wq__table_init(wq__table *t, wq__slab *slab, const wq_allocator *a)
{
	memset(t, 0, sizeof *t);
	t->slab = slab;
	t->allocator = a;
	if (!array_new(t, &t->now, 1))
		return -1;
	make_ready(t, &t->now, 0); /* a small array: it has the memory */
	t->edge = UINT32_MAX;
	set_limits(t);
	return 0;
}

void wq__table_release(wq__table *t)
{
	wq__free(t->allocator, array_block(&t->now), array_bytes(&t->now));
	if (is_moving(t))
		wq__free(t->allocator, array_block(&t->old), array_bytes(&t->old));
	t->now = t->old = (struct wq__array){.nhomes = 0};
}

/* All slots are going to move to an array of this size. */
static bool move_start(wq__table *t, uint32_t nhomes)
{
	struct wq__array a;

	if (!array_new(t, &a, nhomes))
		return false;
	/* Whoever looks for slot 0, which nobody has, looks there from now on. */
	if (!make_ready(t, &a, 0)) {
		wq__free(t->allocator, array_block(&a), array_bytes(&a));
		return false;
	}
	t->old = t->now;
	t->now = a;
	t->edge = t->moved = 0;
	t->nmoves++;
	set_limits(t);
	return true;
}

static void move_end(wq__table *t)
{
	struct wq__array *old = &t->old;

	segments_free(t, old, t->moved / WQ__SEGMENT, old->nsegments);
	wq__free(t->allocator, array_block(old), array_bytes(old));
	*old = (struct wq__array){.nhomes = 0};
	set_limits(t);
}

/*
 * Room for n more slots in and behind the home of `hash`, and for one more: whatever
 * chain they make, the last bucket is not full then.
 */
static bool make_room(wq__table *t, uint32_t hash, uint32_t n)
{
	uint32_t number = wq__home(&t->now, hash), room = 0;

	for (; room <= n; number = wq__bucket_next(&t->now, number)) {
		if (!make_ready(t, &t->now, number))
			return false;
		room += nempty(wq__bucket_at(&t->now, number));
	}
	return true;
}

/* What the next call will move, and where to. */
static void prefetch_next(const wq__table *t)
{
	/* The last bucket is not full: there is one behind it. */
	const struct wq__table_bucket *from = wq__bucket_at(&t->old, t->moved);
	const struct wq__table_bucket *to = wq__bucket_at(&t->now, wq__home(&t->now, t->edge));

	for (int i = 0; i < AT_ONCE; i++) {
		wq__prefetch(from[i].hash);
		wq__prefetch(from[i].id);
		wq__prefetch_to_write(to[i + 1].hash);
		wq__prefetch_to_write(to[i + 1].id);
	}
}

/*
 * Puts the slots of the next buckets, up to `end`, into the new array. They all go to a
 * few buckets, whose empty slots it knows; what goes further (a long chain) is put one by one.
 */
static void pour(wq__table *t, uint32_t end)
{
	const struct wq__array *old = &t->old, *now = &t->now;
	uint32_t first = wq__home(now, t->edge + 1), nknown = 0;
	struct wq__table_bucket *to[KNOWN];
	uint32_t empty[KNOWN];

	for (uint32_t i = first; nknown < KNOWN && i < now->ready; i = wq__bucket_next(now, i)) {
		to[nknown] = wq__bucket_at(now, i);
		empty[nknown] = wq__bucket_match(to[nknown], 0);
		nknown++;
	}
	for (uint32_t i = t->moved; i != end; i = wq__bucket_next(old, i)) {
		const struct wq__table_bucket *b = wq__bucket_at(old, i);

		for (uint32_t used = ~wq__bucket_match(b, 0) & ALL; used; used &= used - 1) {
			size_t k = (size_t)__builtin_ctz(used);
			size_t home = wq__home(now, b->hash[k]) - first;

			while (home < nknown && !empty[home])
				home++;
			if (wq__likely(home < nknown)) {
				size_t index = (size_t)__builtin_ctz(empty[home]);

				empty[home] &= empty[home] - 1;
				to[home]->hash[index] = b->hash[k];
				to[home]->id[index] = b->id[k];
			} else {
				put(wq__bucket_at(now, bucket_for(now, b->hash[k])), b->hash[k],
				    b->id[k]);
			}
		}
	}
}

/*
 * Moves the next buckets, up to one that is not full: no slot behind it has its home
 * before. False: no memory, and nothing has moved.
 */
static bool move_on(wq__table *t)
{
	struct wq__array *old = &t->old;
	uint32_t end = t->moved, nbuckets = 0, edge = UINT32_MAX, n = 0;
	bool full;

	do {
		uint32_t empty = nempty(wq__bucket_at(old, end));

		full = empty == 0;
		n += WQ__BUCKET - empty;
		end = wq__bucket_next(old, end);
		nbuckets++;
	} while (full || (nbuckets < AT_ONCE && end < old->nhomes));
	/* The last hash whose home is before `end`. */
	if (end < old->nhomes)
		edge = (uint32_t)((((uint64_t)end << 32) - 1) / old->nhomes);
	if (!make_room(t, edge, n))
		return false;
	pour(t, end);
	if (n > t->moved_max)
		t->moved_max = n;
	segments_free(t, old, t->moved / WQ__SEGMENT, end / WQ__SEGMENT);
	t->moved = end;
	t->edge = edge;
	if (edge == UINT32_MAX)
		move_end(t);
	else
		prefetch_next(t);
	return true;
}

/* ---- changes ---------------------------------------------------------------- */

static bool grow(wq__table *t)
{
	uint32_t nhomes = t->now.nhomes;

	return move_start(t, nhomes < WQ__SEGMENT ? nhomes * 2 : nhomes + nhomes / 4);
}

int wq__table_push_in(wq__table *t, uint64_t slot)
{
	uint32_t hash = (uint32_t)(slot >> 32), number;
	struct wq__array *a;

	assert(hash != 0 && (uint32_t)slot != 0);
	if (!is_moving(t) && t->n >= t->limit && !grow(t))
		return -1;
	if (is_moving(t) && !move_on(t))
		return -1;
	a = hash <= t->edge ? &t->now : &t->old;
	number = bucket_for(a, hash);

	struct wq__table_bucket *b = wq__bucket_at(a, number);
	uint32_t empty = wq__bucket_match(b, 0);

	/* The last bucket is never full. */
	if (!(empty & (empty - 1)) && !make_ready(t, a, wq__bucket_next(a, number)))
		return -1;
	put(b, hash, (uint32_t)slot);
	t->n++;
	return 0;
}

/*
 * The hole is filled by a slot from behind whose home is not behind it; then that
 * slot's place is the hole, if its bucket was full.
 */
wq__cold void wq__table_pull_back(wq__table *t, uint32_t hash, wq__place hole)
{
	const struct wq__array *a = wq__array_of(t, hash);
	uint32_t at = wq__home(a, hash), number;
	bool full = true;

	while (wq__bucket_at(a, at) != hole.bucket)
		at = wq__bucket_next(a, at);
	for (number = at; full;) {
		number = wq__bucket_next(a, number);

		struct wq__table_bucket *b = wq__bucket_at(a, number);

		full = wq__bucket_full(b);
		for (uint32_t k = 0; k < WQ__BUCKET; k++) {
			if (!b->hash[k] || wq__home(a, b->hash[k]) > at)
				continue;
			hole.bucket->hash[hole.index] = b->hash[k];
			hole.bucket->id[hole.index] = b->id[k];
			b->hash[k] = b->id[k] = 0;
			hole = (wq__place){.bucket = b, .index = k};
			at = number;
			break;
		}
	}
}

wq__cold void wq__table_shrink(wq__table *t)
{
	if (is_moving(t) || move_start(t, t->now.nhomes / 2))
		move_on(t);
}

/* ---- looking ---------------------------------------------------------------- */

wq__place wq__table_search(const wq__table *t, uint64_t slot)
{
	uint32_t hash = (uint32_t)(slot >> 32);
	const struct wq__array *a = wq__array_of(t, hash);
	uint32_t number = wq__home(a, hash);

	for (;;) {
		struct wq__table_bucket *b = wq__bucket_at(a, number);
		uint32_t matches = hash ? wq__bucket_match(b, hash) : 0;

		for (; matches; matches &= matches - 1) {
			size_t index = (size_t)__builtin_ctz(matches);

			if (b->id[index] == (uint32_t)slot)
				return (wq__place){.bucket = b, .index = index};
		}
		if (!wq__bucket_full(b))
			return (wq__place){.bucket = NULL, .index = 0};
		number = wq__bucket_next(a, number);
	}
}

/* ---- walking ---------------------------------------------------------------- */

/* The smallest slot that is not below `from`, or 0. */
static uint64_t next_in(const struct wq__array *a, uint64_t from)
{
	uint64_t next = UINT64_MAX;

	/* Behind a bucket that is not full there are larger ones only. */
	for (uint32_t i = wq__home(a, (uint32_t)(from >> 32)); i < a->ready;
	     i = wq__bucket_next(a, i)) {
		const struct wq__table_bucket *b = wq__bucket_at(a, i);

		for (uint32_t k = 0; k < WQ__BUCKET; k++) {
			uint64_t slot = (uint64_t)b->hash[k] << 32 | b->id[k];

			if (slot >= from && slot < next && slot)
				next = slot;
		}
		if (next != UINT64_MAX && !wq__bucket_full(b))
			return next;
	}
	return next == UINT64_MAX ? 0 : next;
}

uint64_t wq__iter_next(wq__iter *it)
{
	const wq__table *t = it->table;
	uint64_t slot = 0, moved = (uint64_t)t->edge << 32 | UINT32_MAX;

	if (it->from <= moved)
		slot = next_in(&t->now, it->from);
	if (!slot && is_moving(t))
		slot = next_in(&t->old, it->from > moved ? it->from : moved + 1);
	if (slot)
		it->from = slot + 1;
	return slot;
}
