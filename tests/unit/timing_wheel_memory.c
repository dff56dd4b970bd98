/* The timing wheel: dead references are swept, and what it asks of the allocator. */
#include "timing_wheel_bench.h"

static uint64_t seed;

static void no_memory_from_now_on(struct bench *b)
{
	b->mem.fail_at = b->mem.calls;
	b->mem.fail_on = true;
}

/* ---- dead references ---------------------------------------------------------------- */

/* See timing_wheel_dead.c: so many dead ones are left alone, and a round of a sweep takes a while. */
enum { OVER_MAX = 512 };

enum spread { ONE_BUCKET, ONE_NANOSECOND, SECONDS, ALL_LEVELS, PAST, SPREADS };
enum victims { FIRST_FIRST, LAST_FIRST, RANDOM, EVERY_OTHER, VICTIMS };

static int64_t spread_time(uint64_t *rng, enum spread spread, int64_t now)
{
	switch (spread) {
	case ONE_BUCKET:
		return now + (INT64_C(1) << 44) + (int64_t)rng_below(rng, 1 << 30);
	case ONE_NANOSECOND:
		return now + WQ_HOUR;
	case SECONDS:
		return now + WQ_SECOND + (int64_t)rng_below(rng, 59 * WQ_SECOND);
	case ALL_LEVELS:
		return wq_time_add(now, (int64_t)(rng_next(rng) >> (2 + rng_below(rng, 61))));
	default:
		return (int64_t)rng_below(rng, (uint64_t)now);
	}
}

static void shuffle(uint64_t *rng, uint64_t *at, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		size_t j = rng_below(rng, i + 1);
		uint64_t was = at[i];

		at[i] = at[j];
		at[j] = was;
	}
}

/* Most of them die, in some order; the others come out as they should. */
static void kill_most(enum spread spread, enum victims victims, size_t n)
{
	const int64_t now = INT64_C(1) << 45;
	uint64_t *order = malloc(n * sizeof *order);
	uint64_t rng = seed;
	struct bench b;

	assert_non_null(order);
	bench_open(&b, 0, 18, 6);
	if (spread == PAST) { /* the wheel's time is past them: they are in the heap */
		insert(&b, 0, now);
		pop_all(&b, now, SIZE_MAX);
	}
	for (size_t i = 0; i < n; i++) {
		insert(&b, now, spread_time(&rng, spread, now));
		order[i] = b.whats;
	}
	if (victims == LAST_FIRST)
		for (size_t i = 0; i < n / 2; i++) {
			uint64_t was = order[i];

			order[i] = order[n - 1 - i];
			order[n - 1 - i] = was;
		}
	if (victims == RANDOM)
		shuffle(&rng, order, n);
	for (size_t i = 0; i < n; i++)
		if (victims != EVERY_OTHER || i % 2 == 0)
			if (i % 97 != 0)
				kill_ref(&b, order[i]);
	check_next(&b);
	assert_in_range(b.most_over, 0, OVER_MAX);
	free(order);
	bench_finish(&b);
}

/* [H5] 2 x live + a constant. */
static void dead_references_are_swept(void **state)
{
	static const size_t sizes[] = {10, 129, 1000, 6000};

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (unsigned spread = 0; spread < SPREADS; spread++)
			for (unsigned victims = 0; victims < VICTIMS; victims++)
				kill_most(spread, victims, sizes[i]);
}

/* The longest round of a sweep, and what dies next is always what it comes to last. */
static void a_crowd_dies_from_behind(void **state)
{
	(void)state;
	kill_most(ONE_NANOSECOND, LAST_FIRST, 400000);
}

/* As timeouts are used: each is cancelled and a later one comes, for ever. */
static void timeouts_that_never_fire_take_no_room(void **state)
{
	enum { LIVE = 500, ROUNDS = 60000 };
	static uint64_t current[LIVE];
	struct bench b;
	int64_t now = 0;
	uint64_t rng = seed;

	(void)state;
	bench_open(&b, 0, 18, 6);
	for (int i = 0; i < LIVE; i++) {
		insert(&b, now, now + WQ_MINUTE);
		current[i] = b.whats;
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t i = rng_below(&rng, LIVE);

		now += WQ_MICROSECOND;
		pop(&b, now, 10);
		insert(&b, now, now + WQ_MINUTE);
		kill_ref(&b, current[i]);
		current[i] = b.whats;
	}
	assert_in_range(b.most_over, 0, OVER_MAX);
	IS((int64_t)b.live, LIVE);
	assert_true(b.mem.bytes < 1 << 20);
	bench_finish(&b);
}

/*
 * A bucket is half opened when most of what it gave to lower levels dies and is
 * swept: the rest, few now, still has its way down.
 */
static void deaths_in_the_middle_of_an_opening(void **state)
{
	const int64_t start = INT64_C(1) << 40;
	struct bench b;

	(void)state;
	for (uint64_t crowd = 33; crowd <= 513; crowd += 30)
		for (int rest = 1; rest <= 40; rest += 3) {
			bench_open(&b, 0, 18, 6);
			for (uint64_t i = 0; i < crowd; i++)
				insert(&b, 0, start);
			for (int i = 0; i < rest; i++) /* each to a bucket of its own */
				insert(&b, 0, start + 1 + ((INT64_C(1) << i % 34) | i));
			IS(pop(&b, start, crowd), WQ__TW_AGAIN);
			for (uint64_t what = 1; what <= crowd; what++)
				kill_ref(&b, what);
			check_next(&b);
			/* and some come in besides */
			for (int i = 0; i < rest % 4; i++)
				insert(&b, start, start + i * WQ_SECOND);
			no_memory_from_now_on(&b);
			pop_all(&b, start + WQ_MILLISECOND, 5);
			bench_finish(&b);
		}
}

/* Deaths, inserts, openings and pops in any order. */
static void sweeps_amid_everything(void **state)
{
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	for (int tape = 0; tape < 60; tape++) {
		int64_t now = 0;
		/* few places, so that buckets fill and chunks are many */
		uint64_t places = 1 + rng_below(&rng, 8);
		uint64_t weight = 1 + rng_below(&rng, 6);

		bench_open(&b, 0, 18, 1 + (uint32_t)rng_below(&rng, 6));
		for (int op = 0; op < 2500; op++) {
			uint64_t what = 1 + rng_below(&rng, b.whats + 1);
			uint64_t r = rng_below(&rng, 8);

			if (r < weight) {
				for (uint64_t i = rng_below(&rng, 16); i > 0; i--) {
					uint64_t place = rng_below(&rng, places);

					insert(&b, now,
					       now + (int64_t)(place << 20) + (int64_t)place);
				}
			} else if (r == 7) {
				now += (int64_t)rng_below(&rng, 1 << 19);
				pop(&b, now, rng_below(&rng, 100));
			} else {
				/* one that is still in the line */
				for (uint64_t i = rng_below(&rng, 40); i > 0 && waiting(&b); i--) {
					what = b.line[b.first + rng_below(&rng, waiting(&b))].what;
					if (!b.dead[what])
						kill_ref(&b, what);
				}
			}
			if (op % 16 == 0)
				check_next(&b);
		}
		bench_finish(&b);
	}
}

/* ---- memory --------------------------------------------------------------------------- */

/* Whatever it must open, pop has reserved. */
static void pop_never_allocates(void **state)
{
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	for (int tape = 0; tape < 120; tape++) {
		size_t n = 1 + rng_below(&rng, tape % 3 == 0 ? 40 : 3000);
		uint64_t span = UINT64_C(1) << (10 + rng_below(&rng, 50));
		uint64_t budget = 1 + rng_below(&rng, 200);
		int64_t now = 0;

		bench_open(&b, 0, (uint32_t)rng_below(&rng, 63), 1 + (uint32_t)rng_below(&rng, 6));
		for (size_t i = 0; i < n; i++) {
			insert(&b, now, wq_time_add(now, (int64_t)rng_below(&rng, span)));
			if (rng_below(&rng, 8) == 0)
				now += (int64_t)rng_below(&rng, span / 64 + 1);
			if (rng_below(&rng, 4) == 0)
				pop(&b, now, rng_below(&rng, 10));
		}
		no_memory_from_now_on(&b);

		int64_t calls = b.mem.calls;

		while (b.live > 0) {
			now = wq_time_add(now, (int64_t)rng_below(&rng, span / 16 + 1));
			pop_all(&b, now, budget);
		}
		IS(b.mem.calls, calls);
		bench_finish(&b);
	}
}

/* A crowd that stood in few chunks: each of it needs one of its own on the way down. */
static void each_to_a_bucket_of_its_own(void **state)
{
	const int64_t start = INT64_C(1) << 40;
	struct bench b;

	(void)state;
	for (int n = 2; n <= 700; n++)
		for (int ahead = 0; ahead < 40; ahead += 13) {
			bench_open(&b, 0, 0, 6);
			/* some have come and gone */
			for (int i = 0; i < ahead; i++)
				insert(&b, 0, 1);
			pop_all(&b, 1, SIZE_MAX);
			for (int i = 0; i < n; i++)
				insert(&b, 1,
				       start + ((int64_t)(i % 64) << 24) + ((int64_t)i << 12));
			no_memory_from_now_on(&b);
			pop_all(&b, 2 * start, 10);
			bench_finish(&b);
		}
}

/* Each insert is refused once, at its first allocation, its second, ...: nothing has changed. */
static void a_refused_insert_changes_nothing(void **state)
{
	struct bench b;
	uint64_t rng = seed;
	int refused = 0;

	(void)state;
	for (int tape = 0; tape < 10; tape++) {
		int64_t now = 0;

		bench_open(&b, 0, 18, 1 + (uint32_t)rng_below(&rng, 6));
		for (int i = 0; i < 3000; i++) {
			int64_t due = now + (int64_t)(rng_next(&rng) >> (2 + rng_below(&rng, 60)));

			for (int skip = 0;; skip++) {
				size_t n = b.tw.n;
				int64_t next = wq__tw_next(&b.tw);

				b.mem.fail_at = b.mem.calls + skip;
				b.mem.fail_on = true;
				if (try_insert(&b, now, due))
					break;
				refused++;
				IS((int64_t)b.tw.n, (int64_t)n);
				IS(wq__tw_next(&b.tw), next);
				/* with no memory at all everything else goes on */
				if (rng_below(&rng, 4) == 0)
					pop(&b, now, rng_below(&rng, 100));
			}
			if (rng_below(&rng, 16) == 0)
				now += (int64_t)(rng_next(&rng) >> (8 + rng_below(&rng, 50)));
			if (rng_below(&rng, 8) == 0)
				pop_all(&b, now, 1 + rng_below(&rng, 100));
		}
		bench_finish(&b);
	}
	assert_true(refused > 100);
}

/* Who counted himself in `spare` comes back in, memory or not. */
static void reinsert_cannot_fail(void **state)
{
	enum { PERIODIC = 100, OTHERS = 300 };
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	for (size_t others = 0; others <= OTHERS; others += 50) {
		size_t fired[PERIODIC + 1] = {0};
		size_t rounds = 0, budget = SIZE_MAX;
		int64_t now = 0;

		bench_open(&b, 0, 18, 6);
		for (size_t i = 0; i < PERIODIC; i++) {
			assert_true(wq__tw_spare(&b.tw));
			assert_int_equal(wq__tw_insert(&b.tw, 0,
			                               (wq__ref){.due_ns = 1000, .what = i + 1}),
			                 0);
		}
		for (size_t i = 0; i < others; i++) {
			int64_t due = (int64_t)rng_below(&rng, 100 * WQ_MILLISECOND);

			assert_int_equal(
			    wq__tw_insert(&b.tw, 0, (wq__ref){.due_ns = due, .what = PERIODIC + 1}),
			    0);
		}
		no_memory_from_now_on(&b);
		for (size_t left = others; rounds < 200 || left > 0; rounds++) {
			wq__ref ref;
			int64_t before = 0;

			now += WQ_MILLISECOND;
			while (wq__tw_pop(&b.tw, now, &budget, &ref) == WQ__TW_POPPED) {
				assert_true(ref.due_ns >= before && ref.due_ns <= now);
				before = ref.due_ns;
				if (ref.what > PERIODIC) {
					left--;
					continue;
				}
				fired[ref.what]++;
				ref.due_ns = now + 1 + (int64_t)rng_below(&rng, 1000);
				wq__tw_reinsert(&b.tw, ref);
			}
		}
		for (size_t i = 1; i <= PERIODIC; i++)
			IS((int64_t)fired[i], (int64_t)rounds);
		IS((int64_t)b.tw.n, PERIODIC);
		bench_close(&b);
	}
}

static void memory_is_given_back(void **state)
{
	enum { N = 200000 };
	struct bench b;
	wq__ref ref;
	size_t budget = SIZE_MAX;

	(void)state;
	bench_open(&b, 0, 18, 6);
	for (int round = 0; round < 3; round++) {
		int64_t now = round * WQ_HOUR, last = 0;
		uint64_t rng = seed;

		for (uint64_t i = 1; i <= N; i++) {
			int64_t due = now + WQ_SECOND + (int64_t)rng_below(&rng, 59 * WQ_SECOND);

			assert_int_equal(wq__tw_insert(&b.tw, now,
			                               (wq__ref){.due_ns = due, .what = i}),
			                 0);
		}
		assert_true(b.mem.bytes > N * 16);
		/* Little beyond the references themselves: 17 bytes each, in blocks of 2 MiB. */
		assert_true(b.mem.bytes < N * 18 + (4 << 20));
		for (int i = 0; i < N; i++) {
			IS(wq__tw_pop(&b.tw, now + WQ_HOUR, &budget, &ref), WQ__TW_POPPED);
			assert_true(ref.due_ns >= last);
			last = ref.due_ns;
		}
		/* The levels stay, and a few blocks. */
		assert_true(b.mem.bytes < 1 << 20);
	}
	bench_finish(&b);
}

/* A wheel that holds one reference at a time asks for nothing once it is warm. */
static void one_reference_to_and_fro(void **state)
{
	struct bench b;
	int64_t now = 0, calls = 0;

	(void)state;
	bench_open(&b, 0, 18, 6);
	for (int i = 0; i < 20000; i++) {
		insert(&b, now, now + WQ_SECOND);
		now += WQ_SECOND;
		IS(pop(&b, now, 2), WQ__TW_POPPED);
		b.first = b.end = b.scan = 0;
		if (i == 10000)
			calls = b.mem.calls;
	}
	IS(b.mem.calls, calls);
	bench_finish(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(dead_references_are_swept),
	    cmocka_unit_test(a_crowd_dies_from_behind),
	    cmocka_unit_test(timeouts_that_never_fire_take_no_room),
	    cmocka_unit_test(deaths_in_the_middle_of_an_opening),
	    cmocka_unit_test(sweeps_amid_everything),
	    cmocka_unit_test(pop_never_allocates),
	    cmocka_unit_test(each_to_a_bucket_of_its_own),
	    cmocka_unit_test(a_refused_insert_changes_nothing),
	    cmocka_unit_test(reinsert_cannot_fail),
	    cmocka_unit_test(memory_is_given_back),
	    cmocka_unit_test(one_reference_to_and_fro),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("timing wheel memory", tests, NULL, NULL);
}
