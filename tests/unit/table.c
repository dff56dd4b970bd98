/* The table of keys against a plain array, on random tapes; and how it grows and shrinks. */
#include "../support/support.h"

#include "base/table.h"

static uint64_t seed;

struct bench {
	struct memory mem;
	wq_allocator allocator;
	wq__slab slab;
	wq__table table;
};

static void bench_open(struct bench *b)
{
	memory_init(&b->mem);
	b->allocator = memory_allocator(&b->mem);
	wq__slab_init(&b->slab, &b->allocator);
	assert_int_equal(wq__table_init(&b->table, &b->slab, &b->allocator), 0);
}

static void bench_close(struct bench *b)
{
	wq__table_release(&b->table);
	wq__slab_release(&b->slab);
	memory_balanced(&b->mem);
}

/* As an add does: after a look at all slots of the same hash. */
static int insert(wq__table *t, uint64_t slot)
{
	wq__probe p = wq__table_probe(t, (uint32_t)(slot >> 32));

	while (wq__probe_next(&p) != 0)
		;
	return wq__table_insert(t, wq__probe_end(&p), slot);
}

/* All ways to look for a slot agree. */
static bool holds(const wq__table *t, uint64_t slot)
{
	wq__probe p = wq__table_probe(t, (uint32_t)(slot >> 32));
	bool has = wq__table_has(t, slot);
	uint32_t id, met = 0;

	while ((id = wq__probe_next(&p)) != 0)
		met += id == (uint32_t)slot;
	assert_int_equal(met, has);
	return has;
}

static void take_out(wq__table *t, uint64_t slot)
{
	wq__place at;

	assert_true(wq__table_find(t, slot, &at));
	if (slot & 1)
		wq__table_remove_at(t, at);
	else
		wq__table_remove(t, slot);
}

/*
 * What table.h promises of every page: it is found under all its prefixes, its
 * slots belong to its prefix, stand in order and not before their home, and
 * the counts are right.
 */
static void check_pages(const wq__table *t)
{
	size_t n = 0, npages = 0, at_depth[33] = {0};
	const struct wq__page *before = NULL;

	for (size_t i = 0; i < (size_t)1 << t->depth; i++) {
		const struct wq__page *p = t->dir[i].page;
		uint32_t used = 0;
		uint64_t last = 0;

		assert_true(p->depth <= t->depth);
		if (p == before)
			continue;
		before = p;
		npages++;
		at_depth[p->depth]++;
		/* all entries of its prefix, and no others */
		assert_int_equal(i & (((size_t)1 << (t->depth - p->depth)) - 1), 0);
		for (size_t j = 0; j < (size_t)1 << (t->depth - p->depth); j++)
			assert_ptr_equal(t->dir[i + j].page, p);
		for (uint32_t s = 0; s < p->total; s++) {
			uint32_t hash = (uint32_t)(p->slot[s] >> 32);

			if (p->slot[s] == 0)
				continue;
			assert_int_equal((uint64_t)hash >> (32 - p->depth),
			                 i >> (t->depth - p->depth));
			assert_true(p->slot[s] > last);
			assert_true(wq__home(p->cap, p->depth, hash) <= s);
			last = p->slot[s];
			used++;
		}
		assert_true(p->slot[p->total] == 0);
		assert_int_equal(used, p->n);
		n += used;
	}
	assert_int_equal(n, t->n);
	assert_int_equal(npages, t->npages);
	for (int d = 0; d <= 32; d++)
		assert_int_equal(at_depth[d], t->at_depth[d]);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* An iteration shows exactly the slots of the model, in their order, from wherever it starts. */
static void check_iteration(const wq__table *t, const uint64_t *model, size_t n)
{
	uint64_t *sorted = malloc((n + 1) * sizeof *sorted);
	wq__iter it = wq__table_iter(t, 0);
	size_t got = 0;
	uint64_t slot;

	assert_non_null(sorted);
	memcpy(sorted, model, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare);
	while ((slot = wq__iter_next(&it)) != 0) {
		assert_true(got < n);
		assert_true(slot == sorted[got]);
		got++;
	}
	assert_int_equal(got, n);
	for (size_t from = 0; from < n; from += 1 + n / 50) {
		it = wq__table_iter(t, sorted[from]);
		assert_true(wq__iter_next(&it) == sorted[from]);
		it = wq__table_iter(t, sorted[from] + 1);
		assert_true(wq__iter_next(&it) == (from + 1 < n ? sorted[from + 1] : 0));
	}
	free(sorted);
}

/* ---- tapes --------------------------------------------------------------- */

typedef uint32_t (*hash_fn)(uint64_t *rng);

static uint32_t spread(uint64_t *rng)
{
	return (uint32_t)rng_next(rng);
}

static uint32_t one_page(uint64_t *rng) /* share the top 16 bits, at the end of all hashes */
{
	return UINT32_C(0xffff0000) | (uint32_t)rng_below(rng, 65536);
}

static uint32_t last_ones(uint64_t *rng)
{
	return UINT32_MAX - (uint32_t)rng_below(rng, 300);
}

static uint32_t first_ones(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 300);
}

static uint32_t two_heaps(uint64_t *rng)
{
	return (rng_below(rng, 2) ? UINT32_C(0x7fffff00) : UINT32_C(0x80000000)) +
	       (uint32_t)rng_below(rng, 256);
}

static uint32_t few_bits(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 64) << 26;
}

/* All in one corner: pages split on one side only, until the directory may not grow for it. */
static uint32_t low_corner(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 1 << 20);
}

/* At the end of the page that covers them, where merging finds no room. */
static uint32_t high_corners(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 4) << 30 | UINT32_C(0x3e000000) |
	       (uint32_t)rng_below(rng, 1 << 25);
}

/*
 * `sure`: so many slots must find room, whatever their hashes. Beyond, where
 * hashes agree in more bits than the directory may look at, a page that cannot
 * grow any more may refuse one, which must leave everything as it was.
 */
static void run_tape(hash_fn hash, size_t most, size_t sure, int steps, uint64_t tape)
{
	struct bench b;
	uint64_t *model = calloc(most, sizeof *model), rng = tape;
	uint32_t next_id = 1;
	size_t n = 0;

	assert_non_null(model);
	bench_open(&b);
	for (int step = 0; step < steps; step++) {
		/* the tide: mostly in, then mostly out, and so on */
		bool in = rng_below(&rng, 8) < (step / (int)(2 * most) % 2 ? 2u : 6u);

		if (in && n < most) {
			uint64_t slot = (uint64_t)hash(&rng) << 32 | next_id++;

			assert_false(holds(&b.table, slot));
			if (insert(&b.table, slot) == 0) {
				assert_true(holds(&b.table, slot));
				model[n++] = slot;
			} else {
				assert_true(n >= sure);
				assert_false(holds(&b.table, slot));
			}
		} else if (n > 0) {
			size_t i = rng_below(&rng, n);
			uint64_t slot = model[i];

			take_out(&b.table, slot);
			assert_false(holds(&b.table, slot));
			model[i] = model[--n];
		}
		assert_int_equal(b.table.n, n);
		if (step % 997 == 0 || step == steps - 1) {
			check_pages(&b.table);
			check_iteration(&b.table, model, n);
			for (size_t i = 0; i < n; i++) {
				assert_true(holds(&b.table, model[i]));
				assert_false(
				    holds(&b.table, model[i] ^ 0x80000000)); /* another id */
			}
		}
	}
	while (n > 0)
		take_out(&b.table, model[--n]);
	check_pages(&b.table);
	free(model);
	bench_close(&b);
}

static void tape_spread(void **state)
{
	(void)state;
	run_tape(spread, 10, 10, 3000, seed);
	run_tape(spread, 5000, 5000, 50000, seed + 1);
}

static void tape_one_page(void **state)
{
	(void)state;
	run_tape(one_page, 3000, 400, 30000, seed);
}

static void tape_last_ones(void **state)
{
	(void)state;
	run_tape(last_ones, 400, 400, 20000, seed);
}

static void tape_first_ones(void **state)
{
	(void)state;
	run_tape(first_ones, 400, 400, 20000, seed);
}

static void tape_two_heaps(void **state)
{
	(void)state;
	run_tape(two_heaps, 500, 500, 20000, seed);
}

static void tape_few_bits(void **state)
{
	(void)state;
	run_tape(few_bits, 2000, 400, 30000, seed);
}

static void tape_low_corner(void **state)
{
	(void)state;
	run_tape(low_corner, 1500, 400, 9000, seed);
}

static void tape_high_corners(void **state)
{
	(void)state;
	run_tape(high_corners, 1500, 400, 9000, seed);
}

/*
 * k slots close to the end of all hashes fit into the last page but not into
 * the one that would cover twice as much, for some k: then the pages stay two.
 */
static void merging_that_finds_no_room(void **state)
{
	enum { OTHERS = 900 };
	uint64_t slots[OTHERS], rng = seed;

	(void)state;
	for (uint32_t k = 15; k < 60; k++) {
		struct bench b;

		bench_open(&b);
		for (uint32_t i = 0; i < OTHERS; i++) {
			slots[i] = rng_next(&rng) << 32 | (1000 + i);
			assert_int_equal(insert(&b.table, slots[i]), 0);
		}
		for (uint32_t i = 0; i < k; i++)
			assert_int_equal(
			    insert(&b.table, (uint64_t)(UINT32_MAX - i * 700000) << 32 | (i + 1)),
			    0);
		for (uint32_t i = 0; i < OTHERS; i++)
			take_out(&b.table, slots[i]);
		check_pages(&b.table);
		for (uint32_t i = 0; i < k; i++)
			take_out(&b.table, (uint64_t)(UINT32_MAX - i * 700000) << 32 | (i + 1));
		check_pages(&b.table);
		assert_int_equal(b.table.n, 0);
		bench_close(&b);
	}
}

/* 0 is no slot, though it is what an empty place holds: in a new table, a full one, an emptied one. */
static void finds_no_slot_0(void **state)
{
	enum { N = 3000 };
	static uint64_t slots[N];
	uint64_t rng = seed;
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_false(holds(&b.table, 0));
	for (uint32_t i = 0; i < N; i++) {
		/* hashes that are near 0, too */
		slots[i] = rng_next(&rng) >> (i % 3 ? 0 : 32) << 32 | (i + 1);
		assert_int_equal(insert(&b.table, slots[i]), 0);
		assert_false(holds(&b.table, 0));
	}
	for (uint32_t i = 0; i < N; i++) {
		take_out(&b.table, slots[i]);
		assert_false(holds(&b.table, 0));
	}
	bench_close(&b);
}

/* ---- growing and shrinking ------------------------------------------------ */

static void grows_and_shrinks_to_almost_nothing(void **state)
{
	enum { N = 300000 };
	uint64_t *slots = calloc(N, sizeof *slots), rng = seed;
	struct bench b;
	size_t longest = 0;

	(void)state;
	assert_non_null(slots);
	bench_open(&b);
	for (uint32_t i = 0; i < N; i++) {
		slots[i] = rng_next(&rng) << 32 | (i + 1);
		assert_int_equal(insert(&b.table, slots[i]), 0);
	}
	check_pages(&b.table);
	/* ENGINE: no call holds the lock for more than about a thousand moved keys */
	assert_true(b.table.moved_max <= 1024);
	for (size_t i = 0; i < (size_t)1 << b.table.depth; i++) {
		const struct wq__page *p = b.table.dir[i].page;

		for (uint32_t s = 0; s < p->total; s++)
			if (p->slot[s]) {
				size_t far =
				    s - wq__home(p->cap, p->depth, (uint32_t)(p->slot[s] >> 32));

				longest = far > longest ? far : longest;
			}
	}
	print_message("%d slots: %.1f bytes each, longest way from home %zu, %zu pages, moved %u\n",
	              N, (double)b.mem.bytes / N, longest, b.table.npages, b.table.moved_max);
	assert_true(longest < 200);
	/* three slots a key, with what is left of runs */
	assert_true(b.mem.bytes <= 32 * (int64_t)N);
	for (uint32_t i = N; i-- > 0;) {
		uint32_t j = (uint32_t)rng_below(&rng, i + 1);

		take_out(&b.table, slots[j]);
		slots[j] = slots[i];
		if (i == N / 2 || i == N / 100)
			check_pages(&b.table);
	}
	assert_true(b.table.moved_max <= 1024);
	assert_int_equal(b.table.n, 0);
	check_pages(&b.table);
	print_message("afterwards %lld bytes of %lld, %zu pages, depth %u\n",
	              (long long)b.mem.bytes, (long long)b.mem.peak, b.table.npages, b.table.depth);
	assert_true(b.table.npages <= 4);
	assert_true(b.mem.bytes <= WQ__SLAB_SPARES * (64 << 10) + (1 << 17));
	/* and it still works */
	assert_int_equal(insert(&b.table, UINT64_C(5) << 32 | 6), 0);
	assert_true(holds(&b.table, UINT64_C(5) << 32 | 6));
	free(slots);
	bench_close(&b);
}

/* Each allocation fails in turn: the slot is not in, all others are, and then it can be. */
static void out_of_memory_changes_nothing(void **state)
{
	enum { N = 6000 };
	static uint64_t slots[N];
	uint64_t rng = seed;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (uint32_t i = 0; i < N; i++) {
		slots[i] = rng_next(&rng) << 32 | (i + 1);
		b.mem.fail_at = b.mem.calls;
		b.mem.fail_on = true;

		int rc = insert(&b.table, slots[i]);

		b.mem.fail_at = -1;
		assert_int_equal(b.table.n, i + (rc == 0));
		assert_true(holds(&b.table, slots[i]) == (rc == 0));
		if (rc != 0) {
			check_pages(&b.table);
			for (uint32_t j = 0; j < i; j++)
				assert_true(holds(&b.table, slots[j]));
			assert_int_equal(insert(&b.table, slots[i]), 0);
		}
	}
	assert_true(b.mem.failed > 0);
	check_pages(&b.table);
	check_iteration(&b.table, slots, N);
	bench_close(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tape_spread),
	    cmocka_unit_test(tape_one_page),
	    cmocka_unit_test(tape_last_ones),
	    cmocka_unit_test(tape_first_ones),
	    cmocka_unit_test(tape_two_heaps),
	    cmocka_unit_test(tape_few_bits),
	    cmocka_unit_test(tape_low_corner),
	    cmocka_unit_test(tape_high_corners),
	    cmocka_unit_test(merging_that_finds_no_room),
	    cmocka_unit_test(finds_no_slot_0),
	    cmocka_unit_test(grows_and_shrinks_to_almost_nothing),
	    cmocka_unit_test(out_of_memory_changes_nothing),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
