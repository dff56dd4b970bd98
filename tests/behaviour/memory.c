/*
 * Memory of a burst: a million keys come and go. No more than an allocation a
 * key, a few in all to get and be done, as the table shrinks in steps, and at most 2 % of
 * the peak stays, in whatever order the keys are done and whatever their hashes are; 3 % if
 * some of them stay. And a key that comes and goes takes no memory, however many others
 * there are.
 */
#include "../support/support.h"

enum { N = 1000000, BATCH = 64 };

static uint64_t seed;

static void add_keys(wq_queue *q)
{
	for (uint32_t i = 0; i < N; i++) {
		char key[24];
		int len = snprintf(key, sizeof key, "ns-%03u/pod-%08u", i % 1000, i);

		IS(wq_add(q, key, (size_t)len), WQ_QUEUED);
	}
}

/* Done as they are got. */
static void work_in_order(wq_queue *q, uint64_t *rng)
{
	wq_item items[BATCH];

	(void)rng;
	for (int64_t left = N; left > 0;) {
		int n = wq_get_many_until(q, items, BATCH, WQ_NOWAIT);

		assert_true(n > 0);
		IS(wq_done_many(q, items, (size_t)n, NULL), n);
		left -= n;
	}
}

/* All are got, and then done in a random order. */
static void work_shuffled(wq_queue *q, uint64_t *rng)
{
	wq_item *items = malloc(N * sizeof *items);

	assert_non_null(items);
	for (size_t got = 0; got < N;) {
		int n =
		    wq_get_many_until(q, items + got, N - got < BATCH ? N - got : BATCH, WQ_NOWAIT);

		assert_true(n > 0);
		got += (size_t)n;
	}
	for (size_t i = N; i > 1; i--) {
		size_t j = (size_t)rng_below(rng, i);
		wq_item it = items[j];

		items[j] = items[i - 1];
		items[i - 1] = it;
	}
	for (size_t i = 0; i < N / 2; i++)
		IS(wq_done(q, &items[i]), WQ_OK);
	IS(wq_done_many(q, items + N / 2, N - N / 2, NULL), N - N / 2);
	free(items);
}

static void burst(void (*work)(wq_queue *q, uint64_t *rng), uint64_t hash_seed)
{
	uint64_t rng = hash_seed;
	struct fixture f;

	fixture_open(&f, &(wq_options){.seed = hash_seed});
	add_keys(f.q);
	IS(wq_len(f.q), N); /* has a lane by now, if it is to have one */

	int64_t calls = f.mem.calls;

	assert_true(calls <= N);
	work(f.q, &rng);
	assert_in_range(f.mem.calls, calls, calls + 32);
	print_message("seed %llu: peak %.1f bytes a key; %.2f %% stay\n",
	              (unsigned long long)hash_seed, (double)f.mem.peak / N,
	              100.0 * (double)f.mem.bytes / (double)f.mem.peak);
	assert_true(f.mem.peak <= 96 * (int64_t)N);
	assert_true(f.mem.bytes * 50 <= f.mem.peak);
	check_whole(f.q, 0, 0);
	fixture_close(&f, 0);
}

static void memory_of_keys_done_in_order(void **state)
{
	(void)state;
	burst(work_in_order, seed);
}

static void memory_of_keys_done_in_any_order(void **state)
{
	const char *is_long = getenv("WQ_LONG");
	uint64_t seeds = is_long && strcmp(is_long, "1") == 0 ? 20 : 1;

	(void)state;
	for (uint64_t i = 0; i < seeds; i++)
		burst(work_shuffled, seed + i);
}

/* Of 5 million 136 would be held for long; so many here. They stay where they are. */
static void memory_of_all_but_a_few_keys(void **state)
{
	enum { FEW = 27 };
	wq_item held[FEW], it;
	struct fixture f;
	size_t nheld = 0;

	(void)state;
	fixture_open(&f, &(wq_options){.seed = seed});
	add_keys(f.q);
	for (size_t i = 0; i < N; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		if (i % (N / FEW) == 7 && nheld < FEW)
			held[nheld++] = it;
		else
			IS(wq_done(f.q, &it), WQ_OK);
	}
	print_message("%zu keys left: %.2f %% of the peak stay\n", nheld,
	              100.0 * (double)f.mem.bytes / (double)f.mem.peak);
	assert_true(f.mem.bytes * 100 <= f.mem.peak * 3);
	for (size_t i = 0; i < nheld; i++)
		IS(wq_done(f.q, &held[i]), WQ_OK);
	fixture_close(&f, 0);
}

/* Memory that was asked for and given back during some cycles of one key. */
static int64_t calls_of_cycles(struct fixture *f, const char *key, size_t len)
{
	int64_t calls = 0, live = 0;
	wq_item it;

	/* The first two may find that there is too little, or that a size is left behind. */
	for (int i = 0; i < 5; i++) {
		if (i == 2) {
			calls = f->mem.calls;
			live = f->mem.live;
		}
		IS(wq_add(f->q, key, len), WQ_QUEUED);
		IS(wq_try_get(f->q, &it), WQ_OK);
		IS(wq_done(f->q, &it), WQ_OK);
	}
	return f->mem.calls - calls + llabs(f->mem.live - live);
}

/* The same after so many cycles as it takes, at most. */
static int64_t calls_in_the_end(struct fixture *f, const char *key, size_t len, size_t tries)
{
	int64_t calls = 1;

	for (size_t i = 0; i <= tries && calls != 0; i++)
		calls = calls_of_cycles(f, key, len);
	return calls;
}

/*
 * Whatever is exactly full is so at some number of keys. Those are held, so each cycle is
 * alone. A table that grows takes a segment for some hundred keys, and comes to an end.
 */
static void a_cycle_takes_no_memory_with_any_number_of_keys(void **state)
{
	size_t most = getenv("WQ_LONG") ? 400000 : 60000;
	wq_item *held = calloc(most, sizeof *held);
	struct fixture f;
	char key[24];

	(void)state;
	assert_non_null(held);
	fixture_open(&f, &(wq_options){.seed = seed});
	for (size_t n = 0; n < most; n++) {
		size_t tries = 8 + n / 500;
		int64_t calls = calls_in_the_end(&f, "a key of twenty byte", 20, tries);
		int len = snprintf(key, sizeof key, "ns-%03zu/pod-%09zu", n % 1000, n);

		if (calls != 0)
			fail_msg("with %zu keys, %zu times three cycles asked the allocator, now "
			         "%d times",
			         n, tries, (int)calls);
		IS(wq_add(f.q, key, (size_t)len), WQ_QUEUED);
		IS(wq_try_get(f.q, &held[n]), WQ_OK);
	}
	for (size_t n = 0; n < most; n++)
		IS(wq_done(f.q, &held[n]), WQ_OK);
	fixture_close(&f, 0);
	free(held);
}

/*
 * Of each length, with a few others of that length beside it. A queue with a lane has
 * finished keys in its table, up to some number: that may make it grow once.
 */
static void a_cycle_takes_no_memory_with_any_length(void **state)
{
	static char key[WQ_KEY_MAX];
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.seed = seed});
	for (size_t len = 8; len <= sizeof key; len += 1 + len / 32) {
		wq_item others[9];

		for (uint32_t n = 0; n < LENGTH(others); n++) {
			int64_t calls = calls_in_the_end(&f, key, len, 8);

			if (calls != 0)
				fail_msg("with %u keys of %zu bytes, three cycles asked the "
				         "allocator %d times",
				         n, len, (int)calls);
			memcpy(key, &(uint32_t){n + 1}, 4);
			IS(wq_add(f.q, key, len), WQ_QUEUED);
			IS(wq_try_get(f.q, &others[n]), WQ_OK);
			memset(key, 0, 4);
		}
		for (size_t n = 0; n < LENGTH(others); n++)
			IS(wq_done(f.q, &others[n]), WQ_OK);
	}
	fixture_close(&f, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(memory_of_keys_done_in_order),
	    cmocka_unit_test(memory_of_keys_done_in_any_order),
	    cmocka_unit_test(memory_of_all_but_a_few_keys),
	    cmocka_unit_test(a_cycle_takes_no_memory_with_any_number_of_keys),
	    cmocka_unit_test(a_cycle_takes_no_memory_with_any_length),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
