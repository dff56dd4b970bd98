/* [PART] A token bucket for each part of a key. */
#include "limiter_rig.h"

#include <errno.h>
#include <math.h>
#include <wq/engine.h>

/* No memory from now on, where the limiter asks for it. */
static bool no_memory;
int __real_posix_memalign(void **out, size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
	return no_memory ? ENOMEM : __real_posix_memalign(out, align, size);
}

static int64_t ask(wq_limiter *l, const char *key, size_t len)
{
	return wq_limiter_when(l, key, len, 0);
}

static void keys_up_to_the_separator_share_a_bucket(void **state)
{
	static const struct {
		char separator;
		unsigned n;
		const char *a, *b;
		bool share;
	} rows[] = {
	    {'/', 1, "a.org/x", "a.org/y", true},
	    {'/', 1, "a.org/x", "a.org/y/z", true},
	    {'/', 1, "a.org", "a.org/y", true}, /* a key without a separator is a part as a whole */
	    {'/', 1, "a.org/", "a.org", true},
	    {'/', 1, "a.org/x", "b.org/x", false},
	    {'/', 1, "a.org/x", "a.or/gx", false},
	    {'/', 1, "/x", "/y", true}, /* the part is empty */
	    {'/', 1, "/x", "", true},
	    {'/', 1, "//x", "/", true},
	    {'/', 1, "a", "b", false},
	    {'/', 2, "a/b/c", "a/b/d", true},
	    {'/', 2, "a/b", "a/b/d", true},
	    {'/', 2, "a/b/c", "a/c/c", false},
	    {'/', 2, "a/b", "a/c", false},
	    {'/', 2, "a", "a/b", false},
	    {'/', 3, "http://a.org/x", "http://a.org/y?q=/", true},
	    {'/', 3, "http://a.org/x", "https://a.org/x", false},
	    {'/', 3, "http://a.org", "http://a.org/", true},
	    {':', 1, "tenant:1", "tenant:2", true},
	    {'/', 4294967295u, "a/b/c", "a/b/c", true},
	    {'/', 4294967295u, "a/b/c", "a/b/d", false},
	    {(char)0xff, 1,
	     "t\xff"
	     "1",
	     "t\xff"
	     "2",
	     true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		wq_limiter *l = wq_limiter_bucket_per_part(1, 1, rows[i].separator, rows[i].n);

		IS(wq_limiter_status(l), WQ_OK);
		IS(when(l, rows[i].a, 0), 0);
		if (when(l, rows[i].b, 0) != (rows[i].share ? SEC : 0))
			fail_msg("row %zu: \"%s\" and \"%s\"", i, rows[i].a, rows[i].b);
		IS(wq_limiter_size(l), rows[i].share ? 1 : 2);
		IS(wq_limiter_free(l), WQ_OK);
	}
}

static void the_separator_may_be_any_byte(void **state)
{
	wq_limiter *l = wq_limiter_bucket_per_part(1, 1, '\0', 1);

	(void)state;
	IS(ask(l, "a\0b", 3), 0);
	IS(ask(l, "a\0c", 3), SEC);
	IS(ask(l, "a", 1), 2 * SEC);
	IS(ask(l, "ab", 2), 0);
	IS(ask(l, NULL, 0), 0);
	IS(ask(l, "\0", 1), SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

/* As one for all keys answers, for the keys of one part. */
static void a_part_has_a_bucket_like_any_other(void **state)
{
	wq_limiter *all = wq_limiter_bucket(10, 3);
	wq_limiter *l = wq_limiter_bucket_per_part(10, 3, '/', 1);
	char key[32];

	(void)state;
	for (int i = 0; i < 200; i++) {
		int64_t now = i / 7 * 137 * MS;

		snprintf(key, sizeof key, "host/%d", i);
		IS(when(l, key, now), when(all, key, now));
		if (i % 5 == 0) {
			IS(give_back(l, key), WQ_OK);
			IS(give_back(all, key), WQ_OK);
		}
		/* Another one does not matter. */
		if (i % 3 == 0)
			when(l, "other", now);
	}
	IS(wq_limiter_free(all), WQ_OK);
	IS(wq_limiter_free(l), WQ_OK);
}

static void limits_of_rate_and_burst(void **state)
{
	static const struct {
		double rate;
		int burst;
		int64_t first, second;
	} rows[] = {
	    {0, 1, 0, WQ_NEVER},
	    {INFINITY, 0, 0, 0},
	    {1, 0, WQ_NEVER, WQ_NEVER},
	    {2, 1, 0, SEC / 2},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		wq_limiter *l = wq_limiter_bucket_per_part(rows[i].rate, rows[i].burst, '/', 1);

		IS(when(l, "a/1", 0), rows[i].first);
		IS(when(l, "a/2", 0), rows[i].second);
		IS(wq_limiter_free(l), WQ_OK);
	}
}

static void bad_arguments(void **state)
{
	(void)state;
	IS(wq_limiter_status(wq_limiter_bucket_per_part(1, 1, '/', 0)), WQ_EINVAL);
	IS(wq_limiter_status(wq_limiter_bucket_per_part(-1, 1, '/', 1)), WQ_EINVAL);
	IS(wq_limiter_status(wq_limiter_bucket_per_part(NAN, 1, '/', 1)), WQ_EINVAL);
	IS(wq_limiter_status(wq_limiter_bucket_per_part(1, -1, '/', 1)), WQ_EINVAL);
}

/* It counts no failures, and forget does not fill a bucket. */
static void it_remembers_no_key(void **state)
{
	wq_limiter *l = wq_limiter_bucket_per_part(1, 1, '/', 1);

	(void)state;
	IS(when(l, "a/1", 0), 0);
	IS(when(l, "a/1", 0), SEC);
	IS(requeues(l, "a/1"), 0);
	IS(forget(l, "a/1"), WQ_OK);
	IS(when(l, "a/1", 0), 2 * SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

/* A bucket that is full again goes: with 100 new parts a second, of 1 s each, few are kept. */
static void buckets_that_are_full_are_dropped(void **state)
{
	wq_limiter *l = wq_limiter_bucket_per_part(1, 1, '/', 1);
	char key[32];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		snprintf(key, sizeof key, "host%d/%d", i, i);
		IS(when(l, key, i * 10 * MS), 0);
		assert_true(wq_limiter_size(l) <= 210);
	}
	/* What was full when it was dropped is full when it comes back. */
	IS(when(l, "host1/1", 1000000 * MS), 0);
	IS(when(l, "host1/2", 1000000 * MS), SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

static void without_memory_a_key_waits_for_one_token(void **state)
{
	static char key[70000];
	wq_limiter *l;

	(void)state;
	no_memory = true;
	IS(wq_limiter_status(wq_limiter_bucket_per_part(4, 1, '/', 1)), WQ_ENOMEM);
	no_memory = false;
	l = wq_limiter_bucket_per_part(4, 1, '/', 1);
	IS(when(l, "a/1", 0), 0);
	no_memory = true;
	/* Of a size that it has no memory for yet. */
	memset(key, 'x', 600);
	IS(ask(l, key, 600), SEC / 4);
	IS(ask(l, key, 600), SEC / 4);
	IS(wq_limiter_give_back(l, key, 600), WQ_OK);
	IS(when(l, "a/2", 0), SEC / 4);
	no_memory = false;
	IS(ask(l, key, 600), 0);
	IS(ask(l, key, 600), SEC / 4);
	IS(wq_limiter_free(l), WQ_OK);
}

static void engines_may_ask_it(void **state)
{
	wq_limiter *l = wq_limiter_bucket_per_part(1, 1, '/', 1);
	uint32_t failures = 0;

	(void)state;
	IS(wq_engine_ask(l, "a/1", 3, 0, &failures), 0);
	IS(wq_engine_ask(l, "a/2", 3, 0, &failures), SEC);
	IS(failures, 0);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- inside others, and in a queue ----------------------------------------- */

static wq_limiter *polite(void)
{
	return wq_limiter_bounded(
	    wq_limiter_max_of((wq_limiter *[]){wq_limiter_bucket_per_part(1, 1, '/', 1),
	                                       wq_limiter_exponential(100 * MS, 10 * SEC)},
	                      2),
	    3600 * SEC);
}

static void inside_other_limiters(void **state)
{
	wq_limiter *l = polite();

	(void)state;
	IS(when(l, "a/1", 0), 100 * MS);
	IS(when(l, "a/2", 0), SEC);
	IS(when(l, "b/1", 0), 100 * MS);
	IS(when(l, "a/1", 100 * SEC), 200 * MS);
	IS(requeues(l, "a/1"), 2);
	/* Three keys, and the bucket of a, which is not full; and perhaps that of b still. */
	assert_in_range(wq_limiter_size(l), 4, 5);
	IS(wq_limiter_free(l), WQ_OK);
	l = wq_limiter_max_wait(wq_limiter_bucket_per_part(1, 1, '/', 1), 300 * MS);
	IS(when(l, "a/1", 0), 0);
	IS(when(l, "a/2", 0), 300 * MS);
	IS(wq_limiter_free(l), WQ_OK);
}

static void tokens_that_were_taken_stay_taken(void **state)
{
	wq_limiter *part = wq_limiter_bucket_per_part(1, 1, '/', 1), *l;

	(void)state;
	IS(when(part, "a/1", 0), 0);
	l = wq_limiter_max_of(&part, 1);
	IS(when(part, "a/1", 0), WQ_EBUSY);
	IS(when(l, "a/2", 0), SEC);
	IS(wq_limiter_free(l), WQ_OK);
}

static void in_a_queue(void **state)
{
	wq_manual_clock *mc;
	wq_clock clock;
	wq_queue *q;
	wq_item it;

	(void)state;
	IS(wq_manual_clock_new(&mc, 1000 * SEC), WQ_OK);
	clock = wq_manual_clock_clock(mc);
	IS(wq_new(&q, &(wq_options){.clock = &clock,
	                            .limiter = wq_limiter_bucket_per_part(1, 1, '/', 1)}),
	   WQ_OK);
	IS(wq_add_limited(q, "a/1", 3), WQ_QUEUED);
	IS(wq_add_limited(q, "a/2", 3), WQ_DELAYED);
	/* It merges, and its token goes back. */
	IS(wq_add_limited(q, "a/1", 3), WQ_MERGED);
	IS(wq_add_limited(q, "b/1", 3), WQ_QUEUED);
	IS(wq_add_limited(q, "a/3", 3), WQ_DELAYED);
	IS(wq_next_deadline(q), 1001 * SEC);
	take_is(q, "a/1", WQ_OK);
	get_is(q, &it, "b/1");
	IS(wq_retry(q, &it), WQ_DELAYED);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_manual_clock_advance(mc, SEC), WQ_OK);
	get_is(q, &it, "a/2");
	IS(wq_done(q, &it), WQ_OK);
	take_is(q, "b/1", WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_manual_clock_advance(mc, SEC), WQ_OK);
	take_is(q, "a/3", WQ_OK);
	/* All buckets are full again. */
	IS(wq_manual_clock_advance(mc, SEC), WQ_OK);
	IS(wq_add_limited(q, "a/4", 3), WQ_QUEUED);
	IS(wq_free(q), 1);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_up_to_the_separator_share_a_bucket),
	    cmocka_unit_test(the_separator_may_be_any_byte),
	    cmocka_unit_test(a_part_has_a_bucket_like_any_other),
	    cmocka_unit_test(limits_of_rate_and_burst),
	    cmocka_unit_test(bad_arguments),
	    cmocka_unit_test(it_remembers_no_key),
	    cmocka_unit_test(buckets_that_are_full_are_dropped),
	    cmocka_unit_test(without_memory_a_key_waits_for_one_token),
	    cmocka_unit_test(engines_may_ask_it),
	    cmocka_unit_test(inside_other_limiters),
	    cmocka_unit_test(tokens_that_were_taken_stay_taken),
	    cmocka_unit_test(in_a_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
