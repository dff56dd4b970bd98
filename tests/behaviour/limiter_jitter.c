/* Jitter: where delays lie, what a seed repeats, and that chance is spread evenly. */
#include "limiter_rig.h"

enum { BINS = 16, DRAWS = 16000 };

static const enum wq_jitter kinds[] = {WQ_JITTER_NONE, WQ_JITTER_FULL, WQ_JITTER_EQUAL,
                                       WQ_JITTER_DECORRELATED};

/* [LIMIT] Where attempt number n may lie, by the header; last is the key's delay before, or 0. */
static void within(enum wq_jitter jitter, int64_t base, int64_t max, int64_t plain, int64_t last,
                   int64_t d)
{
	int64_t low = plain, high = plain;

	if (jitter == WQ_JITTER_FULL)
		low = 0;
	if (jitter == WQ_JITTER_EQUAL)
		low = plain / 2;
	if (jitter == WQ_JITTER_DECORRELATED) {
		low = base;
		last = last > 0 ? last : base;
		high = last > max / 3 ? max : 3 * last;
	}
	if (d < low || d > high)
		fail_msg("jitter %d, base %lld, max %lld: %lld is not in %lld to %lld", (int)jitter,
		         (long long)base, (long long)max, (long long)d, (long long)low,
		         (long long)high);
}

static void delays_lie_within(void **state)
{
	static const struct {
		int64_t base, max;
	} rows[] = {
	    {1, 1},
	    {1, 2},
	    {3, 100},
	    {1 * MS, 1 * SEC},
	    {5 * MS, 1000 * SEC},
	    {1, INT64_MAX},
	    {7, INT64_MAX - 1},
	    {INT64_MAX, INT64_MAX},
	    {INT64_MAX / 3, INT64_MAX},
	    {INT64_MAX / 3 + 1, INT64_MAX},
	};

	(void)state;
	for (size_t k = 0; k < LENGTH(kinds); k++)
		for (size_t r = 0; r < LENGTH(rows); r++)
			for (uint64_t seed = 1; seed <= 50; seed++) {
				int64_t base = rows[r].base, max = rows[r].max, last = 0;
				int64_t plain = base;
				wq_limiter *l = wq_limiter_jittered(base, max, kinds[k], seed);

				for (int i = 0; i < 100; i++) {
					int64_t d = when(l, "k", 0);

					within(kinds[k], base, max, plain, last, d);
					last = d;
					plain = plain > max / 2 ? max : 2 * plain;
				}
				IS(requeues(l, "k"), 100);
				IS(forget(l, "k"), WQ_OK);
				within(kinds[k], base, max, base, 0, when(l, "k", 0));
				IS(wq_limiter_free(l), WQ_OK);
			}
}

/* ---- seeds ----------------------------------------------------------------------- */

/* How many of 64 delays are the same for two limiters, two keys in turn. */
static int same(enum wq_jitter jitter, uint64_t seed1, uint64_t seed2)
{
	wq_limiter *a = wq_limiter_jittered(1 * SEC, 1000 * SEC, jitter, seed1);
	wq_limiter *b = wq_limiter_jittered(1 * SEC, 1000 * SEC, jitter, seed2);
	int n = 0;

	for (int i = 0; i < 64; i++)
		n += when(a, i % 2 ? "x" : "y", 0) == when(b, i % 2 ? "x" : "y", i);
	IS(wq_limiter_free(a), WQ_OK);
	IS(wq_limiter_free(b), WQ_OK);
	return n;
}

static void a_seed_repeats(void **state)
{
	(void)state;
	for (size_t k = 0; k < LENGTH(kinds); k++)
		for (uint64_t seed = 1; seed < 20; seed++) {
			IS(same(kinds[k], seed, seed), 64);
			IS(same(kinds[k], UINT64_MAX - seed, UINT64_MAX - seed), 64);
		}
}

/* Of delays of a second or more hardly ever two are the same by chance. */
static void other_seeds_differ(void **state)
{
	(void)state;
	for (size_t k = 1; k < LENGTH(kinds); k++)
		for (uint64_t seed = 1; seed < 20; seed++) {
			IS(same(kinds[k], seed, seed + 1), 0);
			IS(same(kinds[k], seed, UINT64_MAX - seed), 0);
		}
}

/* 0 asks for a new one each time. */
static void seed_0_is_drawn(void **state)
{
	(void)state;
	for (size_t k = 1; k < LENGTH(kinds); k++)
		assert_true(same(kinds[k], 0, 0) < 4);
	IS(same(WQ_JITTER_NONE, 0, 0), 64);
}

/* ---- chance ---------------------------------------------------------------------- */

/*
 * The first delays of many keys, in BINS equal parts of low to high. With 15
 * degrees of freedom chance exceeds 45 once in ten thousand times, and the seed is fixed.
 */
static void is_even(enum wq_jitter jitter, int64_t low, int64_t high)
{
	wq_limiter *l = wq_limiter_jittered(1 * SEC, 1000 * SEC, jitter, 4);
	int bins[BINS] = {0};
	double chi2 = 0, expected = (double)DRAWS / BINS;

	for (int i = 0; i < DRAWS; i++) {
		int64_t d = when(l, "k", 0);
		double at = (double)(d - low) / (double)(high - low) * BINS;

		assert_true(at >= 0 && at <= BINS);
		bins[at < BINS ? (int)at : BINS - 1]++;
		IS(forget(l, "k"), WQ_OK);
	}
	for (int i = 0; i < BINS; i++)
		chi2 += (bins[i] - expected) * (bins[i] - expected) / expected;
	if (chi2 > 45)
		fail_msg("jitter %d: chi-square is %.1f", (int)jitter, chi2);
	IS(wq_limiter_free(l), WQ_OK);
}

static void chance_is_even(void **state)
{
	(void)state;
	is_even(WQ_JITTER_FULL, 0, 1 * SEC);
	is_even(WQ_JITTER_EQUAL, SEC / 2, 1 * SEC);
	is_even(WQ_JITTER_DECORRELATED, 1 * SEC, 3 * SEC);
}

/* Both ends of the range are drawn, and everything between. */
static void the_ends_are_drawn(void **state)
{
	static const struct {
		enum wq_jitter jitter;
		int64_t low, high;
	} rows[] = {
	    {WQ_JITTER_NONE, 4, 4},
	    {WQ_JITTER_FULL, 0, 4},
	    {WQ_JITTER_EQUAL, 2, 4},
	    {WQ_JITTER_DECORRELATED, 4, 12},
	};

	(void)state;
	for (size_t r = 0; r < LENGTH(rows); r++) {
		wq_limiter *l = wq_limiter_jittered(4, 100, rows[r].jitter, 1);
		bool seen[101] = {false};

		for (int i = 0; i < 1000; i++) {
			int64_t d = when(l, "k", 0);

			assert_in_range(d, rows[r].low, rows[r].high);
			seen[d] = true;
			IS(forget(l, "k"), WQ_OK);
		}
		for (int64_t d = rows[r].low; d <= rows[r].high; d++)
			assert_true(seen[d]);
		IS(wq_limiter_free(l), WQ_OK);
	}
}

/* It grows from the key's own last delay, also where several keep theirs beside each other. */
static void decorrelated_remembers_each_key(void **state)
{
	enum { KEYS = 50 };
	wq_limiter *parts[] = {
	    wq_limiter_jittered(1 * MS, INT64_MAX, WQ_JITTER_DECORRELATED, 2),
	    wq_limiter_bucket_per_key(1e9, 1000),
	    wq_limiter_jittered(1, 10, WQ_JITTER_DECORRELATED, 3),
	};
	wq_limiter *l = wq_limiter_max_of(parts, LENGTH(parts));
	int64_t last[KEYS] = {0}, most = 0;

	(void)state;
	for (int round = 0; round < 60; round++)
		for (int key = 0; key < KEYS; key++) {
			int64_t d = wq_limiter_when(l, &key, sizeof key, round);

			within(WQ_JITTER_DECORRELATED, 1 * MS, INT64_MAX, 0, last[key], d);
			last[key] = d;
			most = d > most ? d : most;
			if (round == 50 && key % 2) {
				IS(wq_limiter_forget(l, &key, sizeof key), WQ_OK);
				last[key] = 0;
			}
		}
	assert_true(most > 3600 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(delays_lie_within),
	    cmocka_unit_test(a_seed_repeats),
	    cmocka_unit_test(other_seeds_differ),
	    cmocka_unit_test(seed_0_is_drawn),
	    cmocka_unit_test(chance_is_even),
	    cmocka_unit_test(the_ends_are_drawn),
	    cmocka_unit_test(decorrelated_remembers_each_key),
	};

	return cmocka_run_group_tests_name("limiter_jitter", tests, NULL, NULL);
}
