/*
 * Limiters alone: client-go's own tests by their names, R2 to R6 of the rules,
 * keys, and [LIMIT]. Jitter is in limiter_jitter.c, buckets in limiter_bucket.c,
 * the idle bound in limiter_bounded.c, one's own in limiter_own.c, ownership and
 * bad input in limiter_given.c, recorded answers in limiter_vectors.c.
 */
#include "limiter_rig.h"

#include <inttypes.h>

/* Millions of calls of one thread are nothing to see there, and take half a minute. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* ---- client-go's own tests ----------------------------------------------------- */

static void Exponential(void **state)
{
	wq_limiter *l = wq_limiter_exponential(1 * MS, 1 * SEC);

	(void)state;
	DELAYS_ARE(l, "one", 1 * MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS);
	IS(requeues(l, "one"), 5);
	DELAYS_ARE(l, "two", 1 * MS, 2 * MS);
	IS(requeues(l, "two"), 2);
	IS(forget(l, "one"), WQ_OK);
	IS(requeues(l, "one"), 0);
	DELAYS_ARE(l, "one", 1 * MS);
	IS(requeues(l, "two"), 2);
	IS(wq_limiter_free(l), WQ_OK);
}

static void ExponentialOverflow(void **state)
{
	wq_limiter *l = wq_limiter_exponential(1 * MS, 1000 * SEC);

	(void)state;
	for (int i = 0; i < 5; i++)
		when(l, "one", 0);
	IS(when(l, "one", 0), 32 * MS);
	for (int i = 0; i < 1000; i++)
		when(l, "overflow1", 0);
	IS(when(l, "overflow1", 0), 1000 * SEC);
	IS(wq_limiter_free(l), WQ_OK);

	l = wq_limiter_exponential(60 * SEC, 3600 * 1000 * SEC);
	DELAYS_ARE(l, "two", 60 * SEC, 120 * SEC, 240 * SEC);
	for (int i = 0; i < 1000; i++)
		when(l, "overflow2", 0);
	IS(when(l, "overflow2", 0), 3600 * 1000 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

static void FastSlow(void **state)
{
	wq_limiter *l = wq_limiter_fast_slow(5 * MS, 10 * SEC, 3);

	(void)state;
	DELAYS_ARE(l, "one", 5 * MS, 5 * MS, 5 * MS, 10 * SEC, 10 * SEC);
	IS(requeues(l, "one"), 5);
	DELAYS_ARE(l, "two", 5 * MS, 5 * MS);
	IS(requeues(l, "two"), 2);
	IS(forget(l, "one"), WQ_OK);
	IS(requeues(l, "one"), 0);
	DELAYS_ARE(l, "one", 5 * MS, 5 * MS, 5 * MS, 10 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

static wq_limiter *two(wq_limiter *a, wq_limiter *b)
{
	return wq_limiter_max_of((wq_limiter *[]){a, b}, 2);
}

static void MaxOf(void **state)
{
	wq_limiter *l =
	    two(wq_limiter_fast_slow(5 * MS, 3 * SEC, 3), wq_limiter_exponential(1 * MS, 1 * SEC));

	(void)state;
	DELAYS_ARE(l, "one", 5 * MS, 5 * MS, 5 * MS, 3 * SEC, 3 * SEC);
	IS(requeues(l, "one"), 5);
	DELAYS_ARE(l, "two", 5 * MS, 5 * MS);
	IS(requeues(l, "two"), 2);
	IS(forget(l, "one"), WQ_OK);
	IS(requeues(l, "one"), 0);
	DELAYS_ARE(l, "one", 5 * MS);
	IS(wq_limiter_free(l), WQ_OK);
}

static void WithMaxWait(void **state)
{
	wq_limiter *l = wq_limiter_max_wait(wq_limiter_fast_slow(5 * MS, 1000 * SEC, 3), 100 * SEC);

	(void)state;
	for (int i = 0; i < 200; i++)
		IS(when(l, "one", 0), i < 3 ? 5 * MS : 100 * SEC);
	IS(requeues(l, "one"), 200);
	IS(forget(l, "one"), WQ_OK);
	DELAYS_ARE(l, "one", 5 * MS);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- R2: exponential ----------------------------------------------------------- */

/* Twice the last, unless that is more than max; and then max for ever. */
static void doubles(int64_t base, int64_t max, int attempts)
{
	wq_limiter *l = wq_limiter_exponential(base, max);
	int64_t want = base;

	for (int i = 0; i < attempts; i++) {
		int64_t d = when(l, "k", 0);

		if (d != want)
			fail_msg("base %" PRId64 ", max %" PRId64 ", attempt %d: %" PRId64
			         ", not %" PRId64,
			         base, max, i, d, want);
		want = want > max / 2 ? max : 2 * want;
	}
	IS(requeues(l, "k"), attempts);
	IS(wq_limiter_free(l), WQ_OK);
}

/* [LIMIT] Around every power of two, with every kind of maximum, up to 10,000 attempts. */
static void R2_never_overflows(void **state)
{
	(void)state;
	for (int k = 0; k < 63; k++)
		for (int off = -1; off <= 1; off++) {
			int64_t base = (INT64_C(1) << k) + off, twice;

			if (base <= 0)
				continue;
			twice = base > INT64_MAX / 2 ? INT64_MAX : 2 * base;
			doubles(base, INT64_MAX, 10000);
			doubles(base, base > 1000 * SEC ? base : 1000 * SEC, 10000);
			doubles(base, base, 100);
			doubles(base, base + 1, 100);
			doubles(base, twice - 1, 100);
			doubles(base, twice, 100);
			doubles(base, INT64_MAX - 1, 100);
			doubles(base, base > INT64_C(1) << 62 ? base : INT64_C(1) << 62, 100);
		}
	doubles(INT64_MAX, INT64_MAX, 100);
	doubles(INT64_MAX - 1, INT64_MAX, 100);
}

/* The number stops; the delay stays what it was. */
static void failures_are_counted_up_to_a_limit(void **state)
{
	wq_limiter *l;

	(void)state;
	if (UNDER_TSAN)
		skip();
	l = two(wq_limiter_exponential(1, 1 * SEC),
	        wq_limiter_fast_slow(0, 2 * SEC, WQ_FAILURES_MAX));
	for (uint32_t i = 0; i < WQ_FAILURES_MAX; i++)
		assert_true(when(l, "k", 0) <= 1 * SEC);
	IS(requeues(l, "k"), WQ_FAILURES_MAX);
	DELAYS_ARE(l, "k", 2 * SEC, 2 * SEC);
	IS(requeues(l, "k"), WQ_FAILURES_MAX);
	IS(forget(l, "k"), WQ_OK);
	DELAYS_ARE(l, "k", 1, 2, 4);
	IS(requeues(l, "k"), 3);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- R3 to R6, as a table ------------------------------------------------------ */

static wq_limiter *make_item(void)
{
	return wq_limiter_item_based();
}

static wq_limiter *make_default(void)
{
	return wq_limiter_controller();
}

static wq_limiter *make_always_slow(void)
{
	return wq_limiter_fast_slow(5, 7, 0);
}

static wq_limiter *make_always_fast(void)
{
	return wq_limiter_fast_slow(5, 7, UINT32_MAX);
}

static wq_limiter *make_slower_first(void)
{
	return wq_limiter_fast_slow(INT64_MAX, 0, 1);
}

static wq_limiter *make_no_wait(void)
{
	return wq_limiter_max_wait(wq_limiter_exponential(1, 1000), 0);
}

static wq_limiter *make_wait_of_never(void)
{
	return wq_limiter_max_wait(wq_limiter_fast_slow(1, WQ_NEVER, 1), WQ_NEVER);
}

static wq_limiter *make_capped_never(void)
{
	return wq_limiter_max_wait(wq_limiter_bucket(0, 1), 9);
}

static wq_limiter *make_caps_in_caps(void)
{
	return wq_limiter_max_wait(wq_limiter_max_wait(wq_limiter_exponential(1, 100), 5), 3);
}

static wq_limiter *make_max_of_one(void)
{
	return wq_limiter_max_of((wq_limiter *[]){wq_limiter_exponential(3, 9)}, 1);
}

static wq_limiter *make_nested(void)
{
	return two(wq_limiter_max_wait(two(wq_limiter_exponential(1, 1000),
	                                   wq_limiter_fast_slow(2, 3, 2)),
	                               9),
	           two(wq_limiter_fast_slow(0, 20, 5), wq_limiter_fast_slow(0, 4, 2)));
}

static wq_limiter *make_never_wins(void)
{
	return two(wq_limiter_bucket(0, 1), wq_limiter_exponential(1, 1000));
}

static wq_limiter *make_plain_jitter(void)
{
	return wq_limiter_jittered(1, 7, WQ_JITTER_NONE, 5);
}

static wq_limiter *make_bounded(void)
{
	return wq_limiter_bounded(wq_limiter_exponential(2, 9), 1);
}

static const struct row {
	const char *name;
	wq_limiter *(*make)(void);
	int64_t delays[6];
	int64_t again; /* the first one after forget */
} rows[] = {
    {"default_item", make_item, {1 * MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS, 32 * MS}, 1 * MS},
    {"default", make_default, {5 * MS, 10 * MS, 20 * MS, 40 * MS, 80 * MS, 160 * MS}, 5 * MS},
    {"always slow", make_always_slow, {7, 7, 7, 7, 7, 7}, 7},
    {"always fast", make_always_fast, {5, 5, 5, 5, 5, 5}, 5},
    {"slower first", make_slower_first, {INT64_MAX, 0, 0, 0, 0, 0}, INT64_MAX},
    {"max_wait 0", make_no_wait, {0, 0, 0, 0, 0, 0}, 0},
    {"max_wait never",
     make_wait_of_never,
     {1, WQ_NEVER, WQ_NEVER, WQ_NEVER, WQ_NEVER, WQ_NEVER},
     1},
    {"never, capped", make_capped_never, {0, 9, 9, 9, 9, 9}, 9},
    {"max_wait of max_wait", make_caps_in_caps, {1, 2, 3, 3, 3, 3}, 1},
    {"max_of one", make_max_of_one, {3, 6, 9, 9, 9, 9}, 3},
    {"nested", make_nested, {2, 2, 4, 8, 9, 20}, 2},
    {"never is the longest",
     make_never_wins,
     {1, WQ_NEVER, WQ_NEVER, WQ_NEVER, WQ_NEVER, WQ_NEVER},
     WQ_NEVER},
    {"jitter none", make_plain_jitter, {1, 2, 4, 7, 7, 7}, 1},
    {"bounded", make_bounded, {2, 4, 8, 9, 9, 9}, 2},
};

/* [LIMIT] */
static void R3_to_R6_as_a_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		wq_limiter *l = rows[i].make();

		print_message("%s\n", rows[i].name);
		IS(wq_limiter_status(l), WQ_OK);
		delays_are(l, "k", rows[i].delays, LENGTH(rows[i].delays));
		IS(forget(l, "k"), WQ_OK);
		IS(requeues(l, "k"), 0);
		IS(when(l, "k", 0), rows[i].again);
		IS(wq_limiter_free(l), WQ_OK);
	}
}

/* R3: the keys share the bucket, and each has its own failures. */
static void R3_default_is_the_longer_of_two(void **state)
{
	wq_limiter *l = wq_limiter_controller();
	char key[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "%d", i);
		IS(when(l, key, 0), 5 * MS);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof key, "n%d", i);
		IS(when(l, key, 0), (i + 1) * 100 * MS);
	}
	IS(requeues(l, "n3"), 1);
	for (int i = 0; i < 30; i++)
		when(l, "old", 3600 * SEC);
	IS(when(l, "old", 3600 * SEC), 1000 * SEC);
	IS(requeues(l, "old"), 31);
	IS(wq_limiter_free(l), WQ_OK);
}

/* R5: parts are all asked each time, also those that do not decide. */
static void R5_every_part_is_asked(void **state)
{
	struct own a = {.answer = 3}, b = {.answer = 9};
	wq_limiter *l = two(own_limiter(&a), own_limiter(&b));

	(void)state;
	IS(when(l, "k", 77), 9);
	IS(a.whens, 1);
	IS(b.whens, 1);
	IS(a.now_ns, 77);
	a.count['k'] = 41;
	IS(requeues(l, "k"), 41);
	b.count['k'] = 42;
	IS(requeues(l, "k"), 42);
	a.answer = b.answer = -5;
	IS(when(l, "k", 78), 0);
	IS(forget(l, "k"), WQ_OK);
	IS(a.forgets, 1);
	IS(b.forgets, 1);
	IS(requeues(l, "k"), 0);
	IS(wq_limiter_free(l), WQ_OK);
	IS(a.frees, 1);
	IS(b.frees, 1);
}

/* ---- keys ---------------------------------------------------------------------- */

/* Any bytes are a key, the empty one is, and the longest. */
static void keys_are_bytes(void **state)
{
	wq_limiter *l = wq_limiter_exponential(1, 1000);
	char *bytes = calloc(1, WQ_KEY_MAX + 1);

	(void)state;
	assert_non_null(bytes);
	for (int64_t i = 0; i < 3; i++) {
		IS(wq_limiter_when(l, NULL, 0, 0), 1 << i);
		IS(wq_limiter_when(l, "\0", 1, 0), 1 << i);
		IS(wq_limiter_when(l, "\0\0", 2, 0), 1 << i);
		IS(wq_limiter_when(l, "a", 1, 0), 1 << i);
		IS(wq_limiter_when(l, "a\0b", 3, 0), 1 << i);
		IS(wq_limiter_when(l, bytes, WQ_KEY_MAX, 0), 1 << i);
	}
	IS(wq_limiter_failures(l, "", 0), 3); /* the same as NULL */
	IS(wq_limiter_size(l), 6);
	IS(wq_limiter_forget(l, "a\0b", 3), WQ_OK);
	IS(wq_limiter_forget(l, bytes, WQ_KEY_MAX), WQ_OK);
	IS(wq_limiter_forget(l, "never seen", 10), WQ_OK);
	IS(wq_limiter_size(l), 4);
	IS(wq_limiter_failures(l, "a", 1), 3);
	IS(wq_limiter_failures(l, "a\0b", 3), 0);
	bytes[0] = 'a'; /* the key was copied */
	IS(wq_limiter_failures(l, bytes, 1), 3);
	IS(wq_limiter_free(l), WQ_OK);
	free(bytes);
}

static void many_keys(void **state)
{
	enum { KEYS = 20000 };
	wq_limiter *l = two(wq_limiter_exponential(1, 1 << 20),
	                    wq_limiter_jittered(1, 1 << 20, WQ_JITTER_DECORRELATED, 1));

	(void)state;
	for (int round = 1; round <= 3; round++)
		for (int i = 0; i < KEYS; i++) {
			assert_true(wq_limiter_when(l, &i, sizeof i, 0) >= 0);
			if (wq_limiter_failures(l, &i, sizeof i) != round)
				fail_msg("key %d, round %d", i, round);
		}
	IS(wq_limiter_size(l), KEYS);
	for (int i = 0; i < KEYS; i += 2)
		IS(wq_limiter_forget(l, &i, sizeof i), WQ_OK);
	IS(wq_limiter_size(l), KEYS / 2);
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_failures(l, &i, sizeof i), i % 2 ? 3 : 0);
	for (int i = 1; i < KEYS; i += 2)
		IS(wq_limiter_forget(l, &i, sizeof i), WQ_OK);
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_free(l), WQ_OK);
}

/* Among so many keys some ten pairs share their 32 bits of hash, whatever the hash is. */
static void keys_of_the_same_hash(void **state)
{
	enum { KEYS = 300000 };
	wq_limiter *l;

	(void)state;
	if (UNDER_TSAN)
		skip();
	l = wq_limiter_exponential(1, 1000);
	for (int i = 0; i < KEYS; i++)
		if (wq_limiter_when(l, &i, sizeof i, 0) != 1)
			fail_msg("key %d is taken for another", i);
	IS(wq_limiter_size(l), KEYS);
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_forget(l, &i, sizeof i), WQ_OK);
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_free(l), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(Exponential),
	    cmocka_unit_test(ExponentialOverflow),
	    cmocka_unit_test(FastSlow),
	    cmocka_unit_test(MaxOf),
	    cmocka_unit_test(WithMaxWait),
	    cmocka_unit_test(R2_never_overflows),
	    cmocka_unit_test(failures_are_counted_up_to_a_limit),
	    cmocka_unit_test(R3_to_R6_as_a_table),
	    cmocka_unit_test(R3_default_is_the_longer_of_two),
	    cmocka_unit_test(R5_every_part_is_asked),
	    cmocka_unit_test(keys_are_bytes),
	    cmocka_unit_test(many_keys),
	    cmocka_unit_test(keys_of_the_same_hash),
	};

	return cmocka_run_group_tests_name("limiter", tests, NULL, NULL);
}
