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
 * What table.h promises of an array: the hashes are those between `low` and `high`, every
 * bucket between a slot and its home is full, an empty slot has no id, and the last bucket
 * has room. Returns the number of slots.
 */
static size_t check_array(const struct wq__array *a, uint32_t from, uint32_t low, uint32_t high)
{
	uint32_t last = from, gap = from; /* gap: behind the last bucket with room */
	size_t n = 0;

	for (uint32_t i = from; i < a->ready; i = wq__bucket_next(a, i)) {
		const struct wq__table_bucket *b = wq__bucket_at(a, i);
		bool full = true;

		last = i;
		for (uint32_t k = 0; k < WQ__BUCKET; k++) {
			uint32_t hash = b->hash[k];

			if (hash == 0) {
				assert_int_equal(b->id[k], 0);
				full = false;
				continue;
			}
			assert_int_not_equal(b->id[k], 0);
			assert_in_range(hash, low, high);
			assert_in_range(wq__home(a, hash), gap, i);
			n++;
		}
		assert_int_equal(full, wq__bucket_full(b));
		if (!full)
			gap = wq__bucket_next(a, i);
	}
	assert_false(wq__bucket_full(wq__bucket_at(a, last)));
	assert_true(a->nsegments <= a->capacity);
	return n;
}

static void check_table(const wq__table *t)
{
	size_t n = check_array(&t->now, 0, 1, t->edge);
	bool moving = t->old.nhomes > 0;

	assert_int_equal(moving, t->edge != UINT32_MAX);
	if (moving)
		n += check_array(&t->old, t->moved, t->edge + 1, UINT32_MAX);
	assert_int_equal(n, t->n);
	assert_true(moving ? t->limit == 0 : t->n <= t->limit);
	assert_true(moving || t->n >= t->floor);
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

static uint32_t low_corner(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 1 << 20);
}

static uint32_t high_corners(uint64_t *rng)
{
	return (uint32_t)rng_below(rng, 4) << 30 | UINT32_C(0x3e000000) |
	       (uint32_t)rng_below(rng, 1 << 25);
}

/* All behind the last home. */
static uint32_t last_hash(uint64_t *rng)
{
	(void)rng;
	return UINT32_MAX;
}

static uint32_t one_hash(uint64_t *rng)
{
	(void)rng;
	return 1;
}

static void check_all(const wq__table *t, const uint64_t *model, size_t n)
{
	check_table(t);
	check_iteration(t, model, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(holds(t, model[i]));
		assert_false(holds(t, model[i] ^ 0x80000000)); /* another id */
	}
}

static uint64_t slot_of(uint32_t hash, uint32_t id)
{
	return (uint64_t)(hash ? hash : 1) << 32 | id;
}

static void run_tape(hash_fn hash, size_t most, int steps, uint64_t tape)
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
			uint64_t slot = slot_of(hash(&rng), next_id++);

			assert_false(holds(&b.table, slot));
			assert_int_equal(insert(&b.table, slot), 0);
			assert_true(holds(&b.table, slot));
			model[n++] = slot;
		} else if (n > 0) {
			size_t i = rng_below(&rng, n);
			uint64_t slot = model[i];

			take_out(&b.table, slot);
			assert_false(holds(&b.table, slot));
			model[i] = model[--n];
		}
		assert_int_equal(b.table.n, n);
		if (step % 997 == 0 || step == steps - 1)
			check_all(&b.table, model, n);
	}
	while (n > 0)
		take_out(&b.table, model[--n]);
	check_table(&b.table);
	free(model);
	bench_close(&b);
}

static void tape_spread(void **state)
{
	(void)state;
	run_tape(spread, 10, 3000, seed);
	run_tape(spread, 5000, 50000, seed + 1);
}

static void tape_one_page(void **state)
{
	(void)state;
	run_tape(one_page, 3000, 30000, seed);
}

static void tape_last_ones(void **state)
{
	(void)state;
	run_tape(last_ones, 400, 20000, seed);
}

static void tape_first_ones(void **state)
{
	(void)state;
	run_tape(first_ones, 400, 20000, seed);
}

static void tape_two_heaps(void **state)
{
	(void)state;
	run_tape(two_heaps, 500, 20000, seed);
}

static void tape_few_bits(void **state)
{
	(void)state;
	run_tape(few_bits, 2000, 30000, seed);
}

static void tape_low_corner(void **state)
{
	(void)state;
	run_tape(low_corner, 1500, 9000, seed);
}

static void tape_high_corners(void **state)
{
	(void)state;
	run_tape(high_corners, 1500, 9000, seed);
}

static void tape_one_hash(void **state)
{
	(void)state;
	run_tape(last_hash, 1200, 9000, seed);
	run_tape(one_hash, 1200, 9000, seed);
}

/* 0 is no slot, though an empty place holds it: in a new table, a full one, an emptied one. */
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
		slots[i] = slot_of((uint32_t)rng_next(&rng) >> (i % 3 ? 0 : 20), i + 1);
		assert_int_equal(insert(&b.table, slots[i]), 0);
		assert_false(holds(&b.table, 0));
	}
	for (uint32_t i = 0; i < N; i++) {
		take_out(&b.table, slots[i]);
		assert_false(holds(&b.table, 0));
	}
	bench_close(&b);
}

/* ---- walks ---------------------------------------------------------------- */

/*
 * A walk in steps, between which keys come and go, so many that the table grows and shrinks
 * under it: what is there all the time is seen once, and nothing is seen twice.
 */
static uint32_t walk_once(struct bench *b, const uint64_t *stay, size_t nstay, uint64_t *rng)
{
	enum { OTHERS = 20000 };
	static uint64_t others[OTHERS];
	size_t n = 0, seen = 0;
	uint64_t from = 0, slot;
	uint32_t next_id = 1 << 30, nmoves = b->table.nmoves;
	bool in = true;

	for (;;) {
		wq__iter it = wq__table_iter(&b->table, from);
		uint64_t some = 1 + rng_below(rng, 20);

		for (slot = 1; some > 0 && (slot = wq__iter_next(&it)) != 0; some--) {
			assert_true(slot >= from);
			from = slot + 1;
			if ((uint32_t)slot < 1 << 30)
				assert_true(slot == stay[seen++]);
		}
		if (slot == 0)
			break;
		for (uint64_t k = rng_below(rng, 2000); k > 0; k--) {
			if (in && n < OTHERS) {
				others[n] = slot_of((uint32_t)rng_next(rng), next_id++);
				assert_int_equal(insert(&b->table, others[n++]), 0);
			} else if (n > 0) {
				take_out(&b->table, others[--n]);
			}
			in = n == 0 || (in && n < OTHERS);
		}
	}
	assert_int_equal(seen, nstay);
	while (n > 0)
		take_out(&b->table, others[--n]);
	return b->table.nmoves - nmoves;
}

static void walks_while_the_table_moves(void **state)
{
	enum { STAY = 1500, WALKS = 20 };
	static uint64_t stay[STAY];
	uint64_t rng = seed;
	uint32_t nmoves = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (uint32_t i = 0; i < STAY; i++) {
		/* some of one hash */
		stay[i] = slot_of(i % 5 ? (uint32_t)rng_next(&rng) : 7 << 20, i + 1);
		assert_int_equal(insert(&b.table, stay[i]), 0);
	}
	qsort(stay, STAY, sizeof stay[0], compare);
	for (int i = 0; i < WALKS; i++)
		nmoves += walk_once(&b, stay, STAY, &rng);
	print_message("%d walks, while the table changed its size %u times\n", WALKS, nmoves);
	assert_true(nmoves > WALKS);
	check_all(&b.table, stay, STAY);
	bench_close(&b);
}

/* ---- growing and shrinking ------------------------------------------------ */

/* Two buckets, and a chain of full ones behind them: whatever the size of the table. */
enum { MOVED_MAX = 32 * WQ__BUCKET };

static void starts_small(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	print_message("a new table takes %lld bytes\n", (long long)b.mem.bytes);
	assert_true(b.mem.bytes <= 256);
	for (uint32_t i = 1; i <= 40; i++)
		assert_int_equal(insert(&b.table, slot_of(i << 26, i)), 0);
	print_message("one with 40 keys, %lld\n", (long long)b.mem.bytes);
	assert_true(b.mem.bytes <= 1024);
	bench_close(&b);
}

static void grows_and_shrinks_to_almost_nothing(void **state)
{
	enum { N = 300000 };
	uint64_t *slots = calloc(N, sizeof *slots), rng = seed;
	struct bench b;
	int64_t most = 0, calls = 0;

	(void)state;
	assert_non_null(slots);
	bench_open(&b);
	for (uint32_t i = 0; i < N; i++) {
		int64_t before = b.mem.calls;

		slots[i] = slot_of((uint32_t)rng_next(&rng), i + 1);
		assert_int_equal(insert(&b.table, slots[i]), 0);
		calls = b.mem.calls - before > calls ? b.mem.calls - before : calls;
		if (i > 20000 && b.mem.bytes * 100 / (int64_t)b.table.n > most)
			most = b.mem.bytes * 100 / (int64_t)b.table.n;
	}
	check_table(&b.table);
	print_message("%d slots: %.1f bytes each (at most %.1f), %u sizes, moved %u, %lld calls\n",
	              N, (double)b.mem.bytes / N, (double)most / 100, b.table.nmoves,
	              b.table.moved_max, (long long)calls);
	/* No call does work that grows with the table: few slots move, few allocations. */
	assert_true(b.table.moved_max <= MOVED_MAX);
	assert_true(calls <= 8);
	assert_true(most <= 2200);
	for (uint32_t i = N; i-- > 0;) {
		uint32_t j = (uint32_t)rng_below(&rng, i + 1);

		take_out(&b.table, slots[j]);
		slots[j] = slots[i];
		if (i == N / 2 || i == N / 100)
			check_table(&b.table);
	}
	assert_true(b.table.moved_max <= MOVED_MAX);
	assert_int_equal(b.table.n, 0);
	check_table(&b.table);
	print_message("afterwards %lld bytes of %lld, %u homes\n", (long long)b.mem.bytes,
	              (long long)b.mem.peak, b.table.now.nhomes);
	assert_int_equal(b.table.now.nhomes, 1);
	/* the idle runs */
	assert_true(b.mem.bytes <= (16 + 4) * (16 << 10));
	/* and it still works */
	assert_int_equal(insert(&b.table, UINT64_C(5) << 32 | 6), 0);
	assert_true(holds(&b.table, UINT64_C(5) << 32 | 6));
	free(slots);
	bench_close(&b);
}

/*
 * All behind the last home, and while the table moves to it, still more: there is room for
 * those, too. As many homes as this have more of them than a segment has slots.
 */
static void a_chain_goes_on_while_the_table_moves(void **state)
{
	enum { HOMES = 4500 };
	uint32_t id = 1;
	struct bench b;

	(void)state;
	bench_open(&b);
	while (b.table.edge == UINT32_MAX || b.table.now.nhomes < HOMES * 5 / 4)
		assert_int_equal(wq__table_push_in(&b.table, slot_of(UINT32_MAX, id++)), 0);
	while (b.table.edge != UINT32_MAX)
		assert_int_equal(wq__table_push_in(&b.table, slot_of(UINT32_MAX, id++)), 0);
	check_table(&b.table);
	bench_close(&b);
}

/* Inserts while all allocations fail but the first few of this call. */
static int insert_without_memory(struct bench *b, uint64_t slot, int64_t but)
{
	b->mem.fail_at = b->mem.calls + but;
	b->mem.fail_on = true;

	int rc = insert(&b->table, slot);

	b->mem.fail_at = -1;
	return rc;
}

/* Each allocation fails in turn: the slot is not in, all others are, and then it can be. */
static void out_of_memory_changes_nothing(void **state)
{
	enum { N = 6000, MORE = 60000 };
	static uint64_t slots[MORE];
	uint64_t rng = seed;
	uint32_t n = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (; n < N; n++) {
		int rc = -1;

		slots[n] = slot_of((uint32_t)rng_next(&rng), n + 1);
		for (int64_t but = 0; rc < 0; but++) {
			rc = insert_without_memory(&b, slots[n], but);
			assert_int_equal(b.table.n, n + (rc == 0));
			assert_true(holds(&b.table, slots[n]) == (rc == 0));
			assert_false(holds(&b.table, 0));
			if (rc == 0)
				continue;
			check_table(&b.table);
			for (uint32_t j = 0; j < n; j++)
				assert_true(holds(&b.table, slots[j]));
		}
	}
	assert_true(b.mem.failed > 0);
	check_all(&b.table, slots, N);
	/* Without any it refuses, before it is so full that it is slow. */
	do {
		assert_true(n < MORE);
		slots[n] = slot_of((uint32_t)rng_next(&rng), n + 1);
	} while (insert_without_memory(&b, slots[n], 0) == 0 && ++n);
	assert_in_range(n, N, 12 * b.table.now.nhomes);
	check_all(&b.table, slots, n);
	bench_close(&b);
}

/* Shrinking needs memory, too: without any, slots go all the same, and the table shrinks later. */
static void removals_need_no_memory(void **state)
{
	enum { N = 40000, LEFT = 100 };
	static uint64_t slots[N];
	uint64_t rng = seed;
	uint32_t n = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	/* It has just begun to grow. */
	while (n < N / 2 || b.table.edge == UINT32_MAX || b.table.moved > 20) {
		assert_true(n < N);
		slots[n] = slot_of((uint32_t)rng_next(&rng), n + 1);
		assert_int_equal(insert(&b.table, slots[n++]), 0);
	}
	b.mem.fail_at = b.mem.calls;
	b.mem.fail_on = true;
	while (n > LEFT) {
		take_out(&b.table, slots[--n]);
		assert_false(holds(&b.table, slots[n]));
		if (n % 1000 == 0)
			check_iteration(&b.table, slots, n);
	}
	assert_true(b.mem.failed > 0);
	assert_true(b.table.edge != UINT32_MAX);
	for (uint64_t from = 0; from < 1000; from++) {
		wq__iter it = wq__table_iter(&b.table, from << 54);
		uint64_t next = wq__iter_next(&it);

		assert_true(next == 0 || (next >= from << 54 && holds(&b.table, next)));
	}
	b.mem.fail_at = -1;
	/* a key comes and goes, each time two buckets move */
	for (uint32_t i = 0; i < N / 2; i++) {
		assert_int_equal(insert(&b.table, slots[LEFT]), 0);
		take_out(&b.table, slots[LEFT]);
	}
	check_all(&b.table, slots, LEFT);
	assert_true(b.table.now.nhomes <= LEFT);
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
	    cmocka_unit_test(tape_one_hash),
	    cmocka_unit_test(finds_no_slot_0),
	    cmocka_unit_test(walks_while_the_table_moves),
	    cmocka_unit_test(starts_small),
	    cmocka_unit_test(grows_and_shrinks_to_almost_nothing),
	    cmocka_unit_test(a_chain_goes_on_while_the_table_moves),
	    cmocka_unit_test(out_of_memory_changes_nothing),
	    cmocka_unit_test(removals_need_no_memory),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
