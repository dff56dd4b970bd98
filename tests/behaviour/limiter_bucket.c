/*
 * Token buckets: R7 of the rules, which are those of golang.org/x/time/rate but
 * for time that goes back; tokens that are given back (R8); a bucket for each key.
 */
#include "limiter_rig.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { STEPS = 12, END = -1 };

#define N WQ_NEVER

static const struct row {
	const char *name;
	double rate;
	int burst;
	struct {
		int64_t at, delay;
	} step[STEPS]; /* up to the one at END */
} rows[] = {
    {"starts full; then one after the other",
     10,
     2,
     {{0, 0}, {0, 0}, {0, 100 * MS}, {0, 200 * MS}, {0, 300 * MS}, {END, 0}}},
    {"what was promised has to come in first",
     10,
     2,
     {{0, 0},
      {0, 0},
      {0, 100 * MS},
      {50 * MS, 150 * MS},
      {300 * MS, 0},
      {300 * MS, 100 * MS},
      {END, 0}}},
    {"refill up to the burst and not beyond",
     10,
     2,
     {{0, 0},
      {0, 0},
      {100 * MS, 0},
      {100 * MS, 100 * MS},
      {3600 * SEC, 0},
      {3600 * SEC, 0},
      {3600 * SEC, 100 * MS},
      {END, 0}}},
    {"a part of a token is kept",
     10,
     1,
     {{0, 0}, {30 * MS, 70 * MS}, {160 * MS, 40 * MS}, {350 * MS, 0}, {END, 0}}},
    {"first used late: full, not more", 1, 1, {{1000 * SEC, 0}, {1000 * SEC, 1 * SEC}, {END, 0}}},
    {"at the end of time", 1, 1, {{INT64_MAX, 0}, {INT64_MAX, 1 * SEC}, {END, 0}}},
    {"from the beginning to the end of time",
     1,
     1,
     {{0, 0}, {INT64_MAX, 0}, {INT64_MAX, 1 * SEC}, {END, 0}}},
    {"burst 0", 10, 0, {{0, N}, {1 * SEC, N}, {3600 * SEC, N}, {INT64_MAX, N}, {END, 0}}},
    {"rate 0", 0, 2, {{0, 0}, {0, 0}, {0, N}, {3600 * SEC, N}, {INT64_MAX, N}, {END, 0}}},
    {"rate -0", -0.0, 1, {{0, 0}, {0, N}, {3600 * SEC, N}, {END, 0}}},
    {"rate 0, burst 0", 0, 0, {{0, N}, {3600 * SEC, N}, {END, 0}}},
    {"infinite", INFINITY, 1, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {0, 0}, {END, 0}}},
    {"infinite, burst 0", INFINITY, 0, {{0, 0}, {0, 0}, {0, 0}, {1, 0}, {END, 0}}},
    {"one in ten minutes", 1. / 600, 1, {{0, 0}, {0, 600 * SEC}, {300 * SEC, 900 * SEC}, {END, 0}}},
    {"one in a billion seconds; ten are never",
     1e-9,
     1,
     {{0, 0}, {0, 1000000000 * SEC}, {0, 2000000000 * SEC}, {END, 0}}},
    {"one in 2.9 centuries: just in time", 1.1e-10, 1, {{0, 0}, {INT64_MAX, 0}, {END, 0}}},
    {"tiny: too far away", 1e-12, 2, {{0, 0}, {0, 0}, {0, N}, {INT64_MAX, N}, {END, 0}}},
    {"the tiniest", 5e-324, 1, {{0, 0}, {0, N}, {INT64_MAX, N}, {END, 0}}},
    {"a million a second",
     1e6,
     1,
     {{0, 0}, {0, 1000}, {0, 2000}, {1000, 2000}, {4000, 0}, {END, 0}}},
    {"one a nanosecond", 1e9, 1, {{0, 0}, {0, 1}, {0, 2}, {10, 0}, {10, 1}, {END, 0}}},
    {"huge", 1e18, 1, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {END, 0}}},
    {"the hugest", DBL_MAX, 1, {{0, 0}, {0, 0}, {0, 0}, {INT64_MAX, 0}, {INT64_MAX, 0}, {END, 0}}},
    {"the largest burst", 1, INT32_MAX, {{0, 0}, {0, 0}, {0, 0}, {INT64_MAX, 0}, {END, 0}}},
};

static void replay(const struct row *r, wq_limiter *l)
{
	IS(wq_limiter_status(l), WQ_OK);
	for (size_t i = 0; i < STEPS && r->step[i].at != END; i++) {
		int64_t d = when(l, "k", r->step[i].at);

		if (!near(d, r->step[i].delay))
			fail_msg("%s: step %zu is %" PRId64 ", not %" PRId64, r->name, i, d,
			         r->step[i].delay);
		IS(requeues(l, "k"), 0);
	}
	IS(wq_limiter_free(l), WQ_OK);
}

/* [LIMIT] The shared one, one for each key, and either as a part. */
static void R7_as_a_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct row *r = &rows[i];
		wq_limiter *l;

		replay(r, wq_limiter_bucket(r->rate, r->burst));
		replay(r, wq_limiter_bucket_per_key(r->rate, r->burst));
		l = wq_limiter_bucket_per_key(r->rate, r->burst);
		replay(r, wq_limiter_max_wait(wq_limiter_max_of(&l, 1), WQ_NEVER));
		l = wq_limiter_bucket(r->rate, r->burst);
		replay(r, wq_limiter_max_wait(wq_limiter_max_of(&l, 1), WQ_NEVER));
	}
}

/* All keys share one; or each has its own. */
static void keys_share_or_do_not(void **state)
{
	wq_limiter *l = wq_limiter_bucket(1, 2), *k = wq_limiter_bucket_per_key(1, 2);

	(void)state;
	for (int i = 0; i < 10; i++) {
		char key[2] = {(char)('a' + i), 0};

		IS(when(l, key, 0), i < 2 ? 0 : (i - 1) * SEC);
		DELAYS_ARE(k, key, 0, 0, 1 * SEC);
	}
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_size(k), 10);
	IS(wq_limiter_free(l), WQ_OK);
	IS(wq_limiter_free(k), WQ_OK);
}

/* R7: forget is not a way to more tokens, and nothing is counted. */
static void forget_does_nothing(void **state)
{
	wq_limiter *all[] = {wq_limiter_bucket(1, 1), wq_limiter_bucket_per_key(1, 1)};

	(void)state;
	for (size_t i = 0; i < LENGTH(all); i++) {
		DELAYS_ARE(all[i], "k", 0, 1 * SEC);
		IS(requeues(all[i], "k"), 0);
		IS(forget(all[i], "k"), WQ_OK);
		DELAYS_ARE(all[i], "k", 2 * SEC);
		IS(wq_limiter_free(all[i]), WQ_OK);
	}
}

/* ---- any window ---------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Among grants[], no window of any length holds more than burst + rate * time.
 * Delays are whole nanoseconds, so a window may be one too short.
 */
static void check_windows(int64_t *grants, int n, double rate, int burst)
{
	qsort(grants, (size_t)n, sizeof grants[0], by_time);
	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++) {
			double span = (double)(grants[j] - grants[i] + 2) * 1e-9;

			if (j - i + 1 > burst + rate * span + 1e-6)
				fail_msg("rate %g, burst %d: %d tokens in %" PRId64 " ns", rate,
				         burst, j - i + 1, grants[j] - grants[i]);
		}
}

/* Some thousand random calls, in bursts and with pauses; back: the time goes back as well. */
static void random_calls(uint64_t *rng, double rate, int burst, bool back)
{
	enum { CALLS = 600 };
	wq_limiter *l = wq_limiter_bucket(rate, burst);
	int64_t grants[CALLS], now = 0, token = (int64_t)(1e9 / rate);
	int n = 0;

	for (int i = 0; i < CALLS; i++) {
		int64_t d;

		if (rng_below(rng, 4) == 0)
			now += (int64_t)rng_below(rng, (uint64_t)token * 4 + 2);
		if (rng_below(rng, 50) == 0)
			now += token * burst;
		if (back && rng_below(rng, 8) == 0) {
			int64_t by = (int64_t)rng_below(rng, (uint64_t)token * 8 + 2);

			now = by < now ? now - by : 0;
		}
		d = when(l, "k", now);
		assert_true(d >= 0);
		if (d != WQ_NEVER)
			grants[n++] = now + d;
	}
	check_windows(grants, n, rate, burst);
	IS(wq_limiter_free(l), WQ_OK);
}

static uint64_t seed;

static void any_window(bool back)
{
	static const double rates[] = {1e-3, 0.5, 1, 3, 33.3, 1000, 1e6, 1e8, 1e9, 3e9};
	static const int bursts[] = {1, 2, 7, 100};
	uint64_t rng = seed;

	for (size_t r = 0; r < LENGTH(rates); r++)
		for (size_t b = 0; b < LENGTH(bursts); b++)
			for (int round = 0; round < 3; round++)
				random_calls(&rng, rates[r], bursts[b], back);
}

static void no_window_has_too_many(void **state)
{
	(void)state;
	any_window(false);
}

/* ---- time ------------------------------------------------------------------------ */

/* R7: time that goes back counts as standing still: nothing comes in twice, or before its time. */
static void going_back_grants_no_more(void **state)
{
	wq_limiter *l = wq_limiter_bucket(10, 2);

	(void)state;
	IS(when(l, "k", 100 * MS), 0);
	IS(when(l, "k", 100 * MS), 0);
	/* x/time/rate answers 100 ms, which would be a third token at 100 ms. */
	assert_true(near(when(l, "k", 0), 200 * MS));
	assert_true(near(when(l, "k", 0), 300 * MS));
	assert_true(near(when(l, "k", 100 * MS), 300 * MS));
	assert_true(near(when(l, "k", 200 * MS), 300 * MS));
	IS(wq_limiter_free(l), WQ_OK);
	any_window(true);
}

static void standing_still_brings_nothing(void **state)
{
	wq_limiter *l = wq_limiter_bucket(1000, 1);

	(void)state;
	IS(when(l, "k", 5 * SEC), 0);
	for (int64_t i = 1; i < 100; i++)
		assert_true(near(when(l, "k", 5 * SEC), i * MS));
	IS(wq_limiter_free(l), WQ_OK);
}

/* [LIMIT] Promises pile up until they lie beyond the end of time; never is never negative. */
static void promises_saturate(void **state)
{
	wq_limiter *l = wq_limiter_bucket(1e-9, 1);
	int64_t last = -1;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t d = when(l, "k", 0);

		assert_true(d >= last);
		IS(d == WQ_NEVER, i > 9);
		last = d;
	}
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- R8: given back ---------------------------------------------------------------- */

static void given_back(wq_limiter *l)
{
	IS(give_back(l, "k"), WQ_OK); /* nothing was taken */
	DELAYS_ARE(l, "k", 0, 0, 1 * SEC);
	IS(give_back(l, "k"), WQ_OK);
	DELAYS_ARE(l, "k", 1 * SEC);
	IS(give_back(l, "k"), WQ_OK);
	IS(give_back(l, "k"), WQ_OK); /* once */
	DELAYS_ARE(l, "k", 1 * SEC, 2 * SEC);
	IS(when(l, "k", 3600 * SEC), 0);
	IS(give_back(l, "k"), WQ_OK);
	IS(when(l, "k", 3600 * SEC), 0); /* no more than full */
	IS(when(l, "k", 3600 * SEC), 0);
	IS(when(l, "k", 3600 * SEC), 1 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

static void R8_a_token_is_given_back_once(void **state)
{
	wq_limiter *parts[] = {wq_limiter_bucket(1, 2), wq_limiter_bucket_per_key(1, 2)};

	(void)state;
	given_back(wq_limiter_bucket(1, 2));
	given_back(wq_limiter_bucket_per_key(1, 2));
	given_back(
	    wq_limiter_bounded(wq_limiter_max_wait(wq_limiter_max_of(parts, 2), WQ_NEVER), 1));
}

/* A call that took none has none to give, whatever the one before it took. */
static void R8_never_gives_nothing_back(void **state)
{
	wq_limiter *l = wq_limiter_bucket(0, 2);

	(void)state;
	DELAYS_ARE(l, "k", 0, 0, WQ_NEVER);
	IS(give_back(l, "k"), WQ_OK);
	DELAYS_ARE(l, "k", WQ_NEVER);
	IS(wq_limiter_free(l), WQ_OK);
	l = wq_limiter_bucket(0, 2);
	DELAYS_ARE(l, "k", 0, 0);
	IS(give_back(l, "k"), WQ_OK);
	DELAYS_ARE(l, "k", 0, WQ_NEVER);
	IS(wq_limiter_free(l), WQ_OK);
}

static void R8_the_failure_stays_counted(void **state)
{
	wq_limiter *parts[] = {wq_limiter_bucket(1, 1), wq_limiter_exponential(1, 1 * SEC)};
	wq_limiter *l = wq_limiter_max_of(parts, 2);

	(void)state;
	IS(when(l, "k", 0), 1);
	IS(give_back(l, "k"), WQ_OK);
	IS(requeues(l, "k"), 1);
	IS(when(l, "k", 0), 2);
	IS(when(l, "k", 0), 1 * SEC);
	IS(give_back(l, "k"), WQ_OK);
	IS(requeues(l, "k"), 3);
	IS(when(l, "k", 0), 1 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- a bucket for each key ----------------------------------------------------------- */

/* A full bucket is nothing to remember. */
static void full_buckets_are_given_up(void **state)
{
	enum { KEYS = 1000 };
	wq_limiter *l = wq_limiter_bucket_per_key(1, 2);

	(void)state;
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_when(l, &i, sizeof i, 0), 0);
	IS(wq_limiter_size(l), KEYS);
	/* Not yet full again */
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_when(l, &i, sizeof i, 1 * SEC - 1000), 0);
	IS(wq_limiter_size(l), KEYS);
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_when(l, "x", 1, (10 + i) * SEC), 0);
	IS(wq_limiter_size(l), 1);
	for (int i = 0; i < KEYS; i++) /* they begin anew, with a full one */
		IS(wq_limiter_when(l, &i, sizeof i, 2000 * SEC), 0);
	IS(wq_limiter_free(l), WQ_OK);
}

/* What is used again in good time never grows beyond the keys of a burst's length. */
static void keys_that_come_and_go_do_not_pile_up(void **state)
{
	wq_limiter *l = wq_limiter_bucket_per_key(1000, 5);
	int64_t most = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) { /* a new key each 100 us, each full again after 1 ms */
		IS(wq_limiter_when(l, &i, sizeof i, i * 100 * WQ_MICROSECOND), 0);
		if (wq_limiter_size(l) > most)
			most = wq_limiter_size(l);
	}
	assert_in_range(most, 5, 40);
	IS(wq_limiter_free(l), WQ_OK);
}

/* A key that owes much stays; those that were used after it do not wait for it. */
static void a_debtor_does_not_keep_others(void **state)
{
	enum { KEYS = 1000 };
	wq_limiter *l = wq_limiter_bucket_per_key(1, 1);

	(void)state;
	for (int i = 0; i < 5000; i++)
		assert_true(near(when(l, "debtor", 0), i * SEC));
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_when(l, &i, sizeof i, 1), 0);
	for (int i = 0; i < KEYS + 10; i++)
		when(l, "x", 10 * SEC);
	IS(wq_limiter_size(l), 2);
	assert_true(near(when(l, "debtor", 10 * SEC), 4990 * SEC));
	IS(wq_limiter_free(l), WQ_OK);
}

/* Those that never come in are never given up; those that are not needed are not kept. */
static void what_is_kept_at_the_ends(void **state)
{
	wq_limiter *zero = wq_limiter_bucket_per_key(0, 2);
	wq_limiter *none = wq_limiter_bucket_per_key(1, 0);
	wq_limiter *all = wq_limiter_bucket_per_key(INFINITY, 3);

	(void)state;
	for (int i = 0; i < 100; i++) {
		IS(wq_limiter_when(zero, &i, sizeof i, i * SEC), 0);
		IS(wq_limiter_when(none, &i, sizeof i, i * SEC), WQ_NEVER);
		IS(wq_limiter_when(all, &i, sizeof i, i * SEC), 0);
	}
	IS(wq_limiter_size(zero), 100);
	IS(wq_limiter_size(none), 0);
	IS(wq_limiter_size(all), 0);
	IS(wq_limiter_free(zero), WQ_OK);
	IS(wq_limiter_free(none), WQ_OK);
	IS(wq_limiter_free(all), WQ_OK);
}

/* Failures and bucket of a key: forget takes the one, time the other. */
static void failures_and_bucket_go_apart(void **state)
{
	wq_limiter *parts[] = {wq_limiter_bucket_per_key(1, 1), wq_limiter_exponential(1, 1000)};
	wq_limiter *l = wq_limiter_max_of(parts, 2);

	(void)state;
	IS(when(l, "k", 0), 1);
	IS(forget(l, "k"), WQ_OK);
	IS(requeues(l, "k"), 0);
	IS(wq_limiter_size(l), 1); /* its bucket is empty */
	IS(when(l, "k", 0), 1 * SEC);
	IS(requeues(l, "k"), 1);
	IS(when(l, "x", 100 * SEC), 1);
	IS(wq_limiter_size(l), 2); /* k's bucket is full, but it has failed */
	IS(forget(l, "k"), WQ_OK);
	IS(wq_limiter_size(l), 1);
	IS(wq_limiter_free(l), WQ_OK);
}

/* [RATE] Alone, a bucket's keys come due a token apart; beside a longer backoff they may meet. */
static void alone_it_keeps_its_rate(void **state)
{
	wq_limiter *parts[] = {wq_limiter_bucket(10, 1), wq_limiter_exponential(1 * SEC, 8 * SEC)};
	wq_limiter *both = wq_limiter_max_of(parts, 2), *alone = wq_limiter_bucket(10, 1);

	(void)state;
	IS(when(alone, "a", 0), 0);
	IS(when(alone, "b", 0), 100 * MS);
	IS(when(alone, "c", 0), 200 * MS);
	/* Tokens at 0, 100 and 200 ms; all three run after a second. */
	IS(when(both, "a", 0), 1 * SEC);
	IS(when(both, "b", 0), 1 * SEC);
	IS(when(both, "c", 0), 1 * SEC);
	IS(wq_limiter_free(both), WQ_OK);
	IS(wq_limiter_free(alone), WQ_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(R7_as_a_table),
	    cmocka_unit_test(keys_share_or_do_not),
	    cmocka_unit_test(forget_does_nothing),
	    cmocka_unit_test(no_window_has_too_many),
	    cmocka_unit_test(going_back_grants_no_more),
	    cmocka_unit_test(standing_still_brings_nothing),
	    cmocka_unit_test(promises_saturate),
	    cmocka_unit_test(R8_a_token_is_given_back_once),
	    cmocka_unit_test(R8_never_gives_nothing_back),
	    cmocka_unit_test(R8_the_failure_stays_counted),
	    cmocka_unit_test(full_buckets_are_given_up),
	    cmocka_unit_test(keys_that_come_and_go_do_not_pile_up),
	    cmocka_unit_test(a_debtor_does_not_keep_others),
	    cmocka_unit_test(what_is_kept_at_the_ends),
	    cmocka_unit_test(failures_and_bucket_go_apart),
	    cmocka_unit_test(alone_it_keeps_its_rate),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("limiter_bucket", tests, NULL, NULL);
}
