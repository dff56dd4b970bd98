/* The timing wheel: every tick and size, every budget, inserts in the middle of an opening. */
#include "timing_wheel_bench.h"

static uint64_t seed;

/* ---- every tick, every size --------------------------------------------------- */

/* A time of any magnitude, often at the edge of a bucket. */
static int64_t some_time(struct bench *b, uint64_t *rng, int64_t now_ns, uint32_t tick_shift)
{
	uint64_t delta = rng_next(rng) >> (1 + rng_below(rng, 63)), edge;

	switch (rng_below(rng, 8)) {
	case 0: /* an edge of the tick, and its neighbours */
		edge = UINT64_C(1) << tick_shift;
		delta = ((uint64_t)now_ns / edge + 1 + rng_below(rng, 3)) * edge;
		delta += rng_below(rng, 3) - 1;
		return delta > INT64_MAX ? INT64_MAX : (int64_t)delta;
	case 1: /* any edge */
		delta = (UINT64_C(1) << rng_below(rng, 63)) + rng_below(rng, 3) - 1;
		break;
	case 2: /* one that is there already */
		if (waiting(b) > 0)
			return b->line[b->first + rng_below(rng, waiting(b))].due_ns;
		break;
	case 3: /* it has passed */
		return (int64_t)rng_below(rng, (uint64_t)now_ns + 1);
	case 4: /* the end of time */
		return INT64_MAX - (int64_t)rng_below(rng, 3);
	default:
		break;
	}
	return wq_time_add(now_ns, (int64_t)(delta & INT64_MAX));
}

/* One of those that live, or the first of them. */
static void kill_some(struct bench *b, uint64_t *rng)
{
	size_t at = b->first + (rng_below(rng, 2) ? 0 : rng_below(rng, waiting(b)));

	for (uint64_t n = 1 + rng_below(rng, 20); n > 0 && at < b->end; at++)
		if (!b->dead[b->line[at].what]) {
			kill_ref(b, b->line[at].what);
			n--;
		}
}

/* deaths: some die before their time. */
static void random_ops(struct bench *b, uint64_t *rng, uint32_t tick_shift, bool deaths)
{
	int64_t now = b->tw.time_ns;

	for (int op = 0; op < 300; op++) {
		if (deaths && waiting(b) > 0 && rng_below(rng, 3) == 0)
			kill_some(b, rng);
		if (deaths && rng_below(rng, 2) == 0)
			check_first(b);
		switch (rng_below(rng, 8)) {
		case 0: { /* a crowd in one place */
			int64_t from = some_time(b, rng, now, tick_shift);
			uint64_t span = UINT64_C(1) << rng_below(rng, 40);

			for (uint64_t n = 20 + rng_below(rng, 60); n > 0; n--)
				insert(b, now, wq_time_add(from, (int64_t)rng_below(rng, span)));
			break;
		}
		case 1: /* step on */
			now =
			    wq_time_add(now, (int64_t)(rng_next(rng) >> (2 + rng_below(rng, 62))));
			break;
		case 2: /* to the next one */
			if (waiting(b) > 0 && first_live(b) > now)
				now = first_live(b);
			break;
		case 3:
			pop_all(b, now, 1 + rng_below(rng, 50));
			break;
		case 4: /* back */
			if (rng_below(rng, 8) == 0)
				now = (int64_t)rng_below(rng, (uint64_t)now + 1);
			break;
		case 5:
			pop(b, now, rng_below(rng, 20));
			break;
		default:
			insert(b, now, some_time(b, rng, now, tick_shift));
		}
		check_next(b);
	}
}

/* [H3] [H4] Order and next deadline do not depend on tick and size. */
static void every_tick_and_size_against_a_sorted_array(void **state)
{
	uint64_t rng = seed;
	struct bench b;

	(void)state;
	for (uint32_t tick_shift = 0; tick_shift <= 62; tick_shift++)
		for (uint32_t slot_bits = 1; slot_bits <= 6; slot_bits++) {
			int64_t now = (int64_t)(rng_next(&rng) >> (1 + rng_below(&rng, 63)));

			bench_open(&b, now, tick_shift, slot_bits);
			random_ops(&b, &rng, tick_shift, false);
			bench_finish(&b);
			bench_open(&b, now, tick_shift, slot_bits);
			random_ops(&b, &rng, tick_shift, true);
			bench_finish(&b);
		}
}

/* Levels are as the header says: one begins at the tick, and they reach to the end of time. */
static void levels_cover_all_of_time(void **state)
{
	struct bench b;

	(void)state;
	for (uint32_t tick_shift = 0; tick_shift <= 62; tick_shift++)
		for (uint32_t slot_bits = 1; slot_bits <= 6; slot_bits++) {
			bool at_tick = false;

			bench_open(&b, 0, tick_shift, slot_bits);
			assert_true(b.tw.nlevels <= WQ__TW_LEVELS);
			for (uint32_t l = 0; l < b.tw.nlevels; l++) {
				uint32_t above = l + 1 < b.tw.nlevels ? b.tw.shift[l + 1] : 63;

				at_tick |= b.tw.shift[l] == tick_shift;
				assert_true(above > b.tw.shift[l]);
				assert_true(above - b.tw.shift[l] <= slot_bits);
			}
			assert_true(at_tick);
			IS(b.tw.shift[0], 0);
			insert(&b, 0, 0);
			insert(&b, 0, INT64_MAX);
			insert(&b, 0, INT64_MAX - 1);
			for (uint32_t bit = 0; bit < 63; bit++)
				insert(&b, 0, INT64_C(1) << bit);
			bench_finish(&b);
		}
}

/* ---- deaths ---------------------------------------------------------------------- */

/* The first n, which all live, die, and nobody sweeps. */
static void kill_unswept(struct bench *b, uint64_t n)
{
	for (uint64_t what = 1; what <= n; what++) {
		b->dead[what] = true;
		b->deaths++;
		b->live--;
		b->tw.ndead++;
	}
}

/* More dead ones stand before the first that lives than one search looks at. */
static void a_search_is_bounded(void **state)
{
	enum { REFS = 4 * WQ__TW_DEAD };
	struct bench b;

	(void)state;
	for (int equal = 0; equal < 2; equal++) {
		bench_open(&b, 0, 18, 6);
		for (int i = 0; i < REFS; i++)
			insert(&b, 0, INT64_C(1) << 40 | (equal ? 0 : i));
		insert(&b, 0, INT64_C(1) << 41);
		/* No sweep, as nothing else would be left to search. */
		kill_unswept(&b, REFS);
		for (int searches = 0; searches < 4; searches++) {
			size_t n = b.tw.n;

			assert_true(wq__tw_next(&b.tw) < INT64_C(1) << 41);
			check_first(&b);
			IS((int64_t)(n - b.tw.n), WQ__TW_DEAD);
		}
		IS((int64_t)b.tw.ndead, 0);
		check_first(&b);
		IS(wq__tw_next(&b.tw), INT64_C(1) << 41);
		bench_finish(&b);
	}
}

/* A bucket of one instant whose end a sweep has emptied takes new ones as any other. */
static void a_bucket_that_was_swept(bool popped)
{
	const int64_t due = INT64_C(1) << 30;
	struct bench b;

	for (uint64_t n = 100; n < 3000; n += 97)
		for (uint64_t left = 1; left < n; left += 31) {
			bench_open(&b, 0, 18, 6);
			for (uint64_t i = 0; i < n; i++)
				insert(&b, 0, due);
			for (uint64_t what = n; what > left; what--)
				kill_ref(&b, what);
			if (popped)
				pop_all(&b, due, SIZE_MAX);
			else
				kill_unswept(&b, left);
			while (b.tw.n > 0)
				check_first(&b);
			IS((int64_t)b.live, 0);
			insert(&b, 0, due);
			check_next(&b);
			IS(wq__tw_next(&b.tw), due);
			bench_finish(&b);
		}
}

static void buckets_that_were_swept_and_emptied(void **state)
{
	(void)state;
	a_bucket_that_was_swept(true);
	a_bucket_that_was_swept(false);
}

/*
 * A crowded bucket of one instant has chunks ahead of its last reference. A sweep that stops
 * among them, when all references are gone, leaves a bucket that is empty for a pop.
 */
static void a_sweep_that_stops_behind_the_last_one(void **state)
{
	const int64_t due = INT64_C(1) << 30;
	struct bench b;

	(void)state;
	for (uint64_t n = 2000; n < 12000; n += 397) {
		bench_open(&b, 0, 18, 6);
		for (uint64_t i = 0; i < n; i++)
			insert(&b, 0, due);
		for (uint64_t i = 0; i < n; i++)
			insert(&b, 0, due << 10);
		/* The first bucket is swept first. */
		for (uint64_t what = 1; b.tw.n > n; what++)
			kill_ref(&b, what);
		IS(pop(&b, due, SIZE_MAX), WQ__TW_NONE);
		insert(&b, 0, due);
		check_first(&b);
		bench_finish(&b);
	}
}

/* ---- equal times ---------------------------------------------------------------- */

/* They come in while their time is far, near, nearer and past: on every level, in the heap. */
static void equal_times_keep_their_order_across_cascades(void **state)
{
	const int64_t due = (INT64_C(1) << 50) + 12345;
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	for (size_t each = 1; each <= 60; each += 59)
		for (uint32_t slot_bits = 1; slot_bits <= 6; slot_bits++) {
			bench_open(&b, 0, 18, slot_bits);
			for (int64_t before = due; before > 0; before -= before / 3 + 1) {
				int64_t now = due - before;

				for (size_t i = 0; i < each; i++) {
					insert(&b, now, due);
					/* others: the wheel turns, its buckets are crowded */
					insert(&b, now, due + (int64_t)rng_below(&rng, 3) - 1);
					insert(&b, now, now);
				}
				pop_all(&b, now, 7);
			}
			insert(&b, due, due);
			bench_finish(&b);
		}
}

/* ---- budgets ------------------------------------------------------------------- */

static void every_budget(void **state)
{
	enum { N = 130 };
	struct bench b;

	(void)state;
	for (size_t budget = 0; budget <= 2 * N; budget++) {
		const int64_t due = INT64_C(1) << 40;
		int calls = 0;

		bench_open(&b, 0, 18, 6);
		IS(pop(&b, INT64_MAX, budget), WQ__TW_NONE); /* nothing is there */
		for (int i = 0; i < N; i++)
			insert(&b, 0, due + i % 10 * 1000);
		IS(pop(&b, due - 1, budget), WQ__TW_NONE); /* nothing is due */
		if (budget == 0) {
			for (int i = 0; i < 3; i++)
				IS(pop(&b, due + 10000, 0), WQ__TW_AGAIN);
			IS((int64_t)b.tw.n, N);
			check_next(&b);
			bench_finish(&b);
			continue;
		}
		while (pop(&b, due + 10000, budget) != WQ__TW_NONE)
			calls++;
		IS((int64_t)b.tw.n, 0);
		/* Each reference moves once a level at most, and is popped once. */
		assert_true(calls <= N + (int)(N * b.tw.nlevels / budget) + 1);
		bench_finish(&b);
	}
}

/* Only so many are moved under the owner's lock, whatever is due. */
static void a_budget_bounds_what_is_moved(void **state)
{
	enum { N = 5000, BUDGET = 64 };
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	bench_open(&b, 0, 18, 6);
	for (int i = 0; i < N; i++)
		insert(&b, 0, WQ_SECOND + (int64_t)rng_below(&rng, WQ_MILLISECOND));
	for (int calls = 0; b.tw.n > 0; calls++) {
		size_t left = BUDGET, before = waiting(&b);
		wq__ref ref;
		enum wq__tw_pop got;

		/* as an owner does: until the budget of this hold is used up */
		while ((got = wq__tw_pop(&b.tw, 2 * WQ_SECOND, &left, &ref)) == WQ__TW_POPPED)
			was_popped(&b, ref, 2 * WQ_SECOND);
		assert_true(before - waiting(&b) <= BUDGET);
		assert_true(got == WQ__TW_NONE || left == 0);
		assert_true(calls < N * 12 / BUDGET);
	}
	bench_finish(&b);
}

/* Of so many that memory for more is no question: the run is popped without a look at the rest. */
static void inserts_before_the_rest_of_a_long_run(void **state)
{
	enum { N = 5000 };
	struct bench b;
	uint64_t rng = seed;
	int64_t now = WQ_SECOND + WQ_MILLISECOND;

	(void)state;
	bench_open(&b, 0, 18, 6);
	for (int i = 0; i < N; i++)
		insert(&b, 0, WQ_SECOND + (int64_t)rng_below(&rng, WQ_MILLISECOND));
	for (int i = 0; i < N / 2; i++) {
		IS(pop(&b, now, 2 * N), WQ__TW_POPPED);
		if (i % 50 == 10)
			insert(&b, 0, (int64_t)rng_below(&rng, WQ_SECOND)); /* to the heap */
		if (i % 50 == 20)
			insert(&b, 0, first_live(&b)); /* to a level below, or to the run's end */
		if (i % 50 == 30)
			insert(&b, 0, now - 1);
	}
	bench_finish(&b);
}

/* ---- inserts while a bucket is being opened --------------------------------------- */

static void insert_around_an_opening(size_t n, size_t moved)
{
	const int64_t start = INT64_C(1) << 40, end = start + (INT64_C(1) << 36) - 1;
	struct bench b;
	uint64_t rng = seed + n + moved;

	/* A tick of 2^36, so buckets of 2^36 on a level; the first level of all is far below. */
	bench_open(&b, 1, 36, 4);
	insert(&b, 1, start);
	for (size_t i = 1; i < n; i++)
		insert(&b, 1, start + (int64_t)(1 + rng_below(&rng, 1 << 20)) * (INT64_C(1) << 15));

	int64_t first = first_live(&b), last = b.line[b.end - 1].due_ns;

	/* Few go to the heap, more to the levels below, which are opened in turn. */
	enum wq__tw_pop got = pop(&b, first, moved);

	if (n > 1)
		assert_true(moved <= n ? got == WQ__TW_AGAIN : got != WQ__TW_NONE);
	assert_true(n == 1 || moved >= n || b.tw.opening != NULL);
	check_next(&b);
	/* twice, so that they meet each other too */
	for (int round = 0; round < 2; round++) {
		for (size_t i = b.first; i < b.end && i < b.first + 20; i += 3)
			insert(&b, first, b.line[i].due_ns); /* equal to one moved, or not yet */
		insert(&b, first, 0);
		insert(&b, first, start - 1);
		insert(&b, first, start);
		insert(&b, first, first);
		insert(&b, first, last);
		insert(&b, first, end);
		insert(&b, first, end + 1);
		insert(&b, first, INT64_MAX);
		check_next(&b);
		pop(&b, first, 1);
	}
	pop_all(&b, last, 3);
	bench_finish(&b);
}

/* All of one nanosecond need not be opened; until others come into their bucket. */
static void inserts_into_a_burst_of_one_instant(void **state)
{
	enum { N = 70 };
	const int64_t due = (INT64_C(1) << 40) + 1000;
	struct bench b;

	(void)state;
	for (size_t popped = 0; popped <= N; popped++)
		for (int others = 0; others < 16; others++) {
			bench_open(&b, 0, 18, 6);
			for (int i = 0; i < N; i++)
				insert(&b, 0, due);
			for (size_t i = 0; i < popped; i++)
				IS(pop(&b, due, 1), WQ__TW_POPPED);
			check_next(&b);
			if (others & 1)
				insert(&b, due, due);
			if (others & 2)
				insert(&b, due, due - 1);
			if (others & 4)
				insert(&b, due, due + 1);
			if (others & 8)
				insert(&b, due, due - 900);
			insert(&b, due, due);
			check_next(&b);
			pop_all(&b, due, 9);
			bench_finish(&b);
		}
}

static void inserts_while_a_bucket_is_being_opened(void **state)
{
	static const size_t sizes[] = {2, 3, 31, 32, 33, 100, 520};

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (size_t moved = 0; moved <= sizes[i] + 1; moved++)
			insert_around_an_opening(sizes[i], moved);
}

/* So many times in a tick, each of them often. */
static int64_t in_the_tick(uint64_t *rng, int64_t tick_ns)
{
	return tick_ns + (int64_t)rng_below(rng, 64) * 4099;
}

/*
 * A run is on, or is being made: those that come in meanwhile are due before it,
 * at the very times that are in it, and after it; few of them, or so many that
 * they cannot all go to the heap.
 */
static void insert_around_a_run(uint64_t *rng, size_t n, size_t moved, size_t crowd)
{
	const int64_t start = INT64_C(1) << 40, tick = start + (INT64_C(1) << 18);
	struct bench b;

	bench_open(&b, 0, 18, 6);
	insert(&b, 0, start);
	for (size_t i = 0; i < n; i++)
		insert(&b, 0, in_the_tick(rng, tick));
	for (int i = 0; i < 50; i++)
		insert(&b, 0, 2 * start);
	/* The tick has its bucket now. */
	pop_all(&b, start, SIZE_MAX);
	pop(&b, 2 * tick, moved);
	for (size_t i = 0; i < crowd; i++) {
		insert(&b, start, in_the_tick(rng, tick));
		insert(&b, start, tick + (int64_t)rng_below(rng, 64) * (i % 2 ? 1 : 8192));
		check_next(&b);
		if (i % 100 == 99)
			pop(&b, tick + (int64_t)rng_below(rng, 1 << 18), 1 + rng_below(rng, 600));
	}
	pop_all(&b, 2 * tick, 1 + rng_below(rng, 100));
	bench_finish(&b);
}

static void inserts_while_a_run_is_on(void **state)
{
	static const size_t sizes[] = {2, 20, 33, 100, WQ__RUN_MAX, WQ__RUN_MAX + 1};
	static const size_t crowds[] = {1, 5, 40, 600};
	uint64_t rng = seed;

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (size_t j = 0; j < LENGTH(crowds); j++)
			for (size_t moved = 0; moved <= 2 * sizes[i]; moved += 1 + sizes[i] / 7)
				insert_around_a_run(&rng, sizes[i], moved, crowds[j]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_tick_and_size_against_a_sorted_array),
	    cmocka_unit_test(levels_cover_all_of_time),
	    cmocka_unit_test(a_search_is_bounded),
	    cmocka_unit_test(buckets_that_were_swept_and_emptied),
	    cmocka_unit_test(a_sweep_that_stops_behind_the_last_one),
	    cmocka_unit_test(equal_times_keep_their_order_across_cascades),
	    cmocka_unit_test(every_budget),
	    cmocka_unit_test(a_budget_bounds_what_is_moved),
	    cmocka_unit_test(inserts_before_the_rest_of_a_long_run),
	    cmocka_unit_test(inserts_into_a_burst_of_one_instant),
	    cmocka_unit_test(inserts_while_a_bucket_is_being_opened),
	    cmocka_unit_test(inserts_while_a_run_is_on),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("timing wheel", tests, NULL, NULL);
}
