/* Bounded limiters: what has been idle for longer than allowed is forgotten, and nothing else. */
#include "limiter_rig.h"

#define IDLE (10 * SEC)

static wq_limiter *bounded_exponential(void)
{
	return wq_limiter_bounded(wq_limiter_exponential(1, 1000), IDLE);
}

/* At the nanosecond: as long as allowed is not longer than allowed. */
static void idle_for_longer_is_forgotten(void **state)
{
	wq_limiter *l = bounded_exponential();
	int64_t now = 5 * SEC;

	(void)state;
	IS(when(l, "k", now), 1);
	IS(when(l, "k", now += IDLE), 2);
	IS(when(l, "k", now += IDLE), 4);
	IS(requeues(l, "k"), 3);
	IS(when(l, "k", now += IDLE + 1), 1);
	IS(requeues(l, "k"), 1);
	IS(wq_limiter_free(l), WQ_OK);
}

/* One key's use does not keep another alive. */
static void each_key_has_its_own_time(void **state)
{
	wq_limiter *l = bounded_exponential();

	(void)state;
	IS(when(l, "a", 0), 1);
	for (int64_t now = 0; now <= 2 * IDLE; now += IDLE / 2)
		when(l, "b", now);
	IS(wq_limiter_size(l), 1);
	IS(requeues(l, "a"), 0);
	IS(requeues(l, "b"), 5);
	IS(when(l, "a", 2 * IDLE), 1);
	IS(wq_limiter_free(l), WQ_OK);
}

/* The size comes down as calls are made, and down to nothing. */
static void what_was_left_goes(void **state)
{
	enum { KEYS = 1000 };
	wq_limiter *l = bounded_exponential();

	(void)state;
	for (int i = 0; i < KEYS; i++)
		IS(wq_limiter_when(l, &i, sizeof i, i), 1);
	IS(wq_limiter_size(l), KEYS);
	for (int i = 0; i < KEYS; i++)
		when(l, "k", IDLE + 2 * KEYS);
	IS(wq_limiter_size(l), 1);
	IS(forget(l, "k"), WQ_OK);
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_free(l), WQ_OK);
}

/* A program that never forgets: as many are kept as come within the bound, and a few. */
static void it_does_not_fill_the_memory(void **state)
{
	wq_limiter *l = bounded_exponential();
	int64_t most = 0;

	(void)state;
	for (int i = 0; i < 50000; i++) { /* 100 within the bound */
		IS(wq_limiter_when(l, &i, sizeof i, i * (IDLE / 100)), 1);
		if (wq_limiter_size(l) > most)
			most = wq_limiter_size(l);
	}
	assert_in_range(most, 100, 110);
	IS(wq_limiter_free(l), WQ_OK);
}

/* The number of an idle key is 0, whether or not its memory has been freed yet. */
static void an_idle_key_has_no_number(void **state)
{
	wq_limiter *l = bounded_exponential();
	char key[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "%d", i);
		IS(when(l, key, 0), 1);
	}
	IS(when(l, "k", IDLE + 1), 1); /* from here on it knows the time */
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "%d", i);
		IS(requeues(l, key), 0);
	}
	IS(wq_limiter_free(l), WQ_OK);
}

/* Time that goes back makes no key idle, and none younger. */
static void time_that_goes_back(void **state)
{
	wq_limiter *l = bounded_exponential();

	(void)state;
	IS(when(l, "a", 100 * SEC), 1);
	IS(when(l, "a", 0), 2);
	IS(when(l, "b", 0), 1);
	IS(when(l, "a", 100 * SEC + IDLE), 4);
	IS(when(l, "b", 100 * SEC + IDLE), 2);
	IS(when(l, "a", INT64_MAX), 1);
	IS(wq_limiter_free(l), WQ_OK);
}

static void never_is_no_bound(void **state)
{
	wq_limiter *l = wq_limiter_bounded(wq_limiter_exponential(1, 1000), WQ_NEVER);

	(void)state;
	IS(when(l, "k", 0), 1);
	IS(when(l, "k", INT64_MAX), 2);
	IS(wq_limiter_free(l), WQ_OK);
}

/* Inside another it bounds the whole, and the shortest of several counts. */
static void it_bounds_the_whole(void **state)
{
	wq_limiter *inner[] = {bounded_exponential(), wq_limiter_fast_slow(0, 50, 2)};
	wq_limiter *parts[] = {
	    wq_limiter_max_wait(wq_limiter_max_of(inner, 2), WQ_NEVER),
	    wq_limiter_bounded(wq_limiter_fast_slow(3, 5, 1), 100 * IDLE),
	    wq_limiter_jittered(1, 1, WQ_JITTER_DECORRELATED, 1),
	};
	wq_limiter *l = wq_limiter_bounded(wq_limiter_max_of(parts, 3), 200 * IDLE);

	(void)state;
	DELAYS_ARE(l, "k", 3, 5, 50);
	IS(when(l, "k", IDLE), 50);
	IS(requeues(l, "k"), 4);
	IS(when(l, "k", 2 * IDLE + 1), 3);
	IS(requeues(l, "k"), 1);
	IS(wq_limiter_free(l), WQ_OK);
}

/* A bucket's tokens are no memory of a key: the bound gives none back. */
static void a_shared_bucket_is_not_bounded(void **state)
{
	wq_limiter *l = wq_limiter_bounded(wq_limiter_bucket(1, 1), 1);

	(void)state;
	DELAYS_ARE(l, "k", 0, 1 * SEC);
	IS(wq_limiter_size(l), 0);
	assert_true(near(when(l, "x", 2), 2 * SEC - 2));
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- around one's own --------------------------------------------------------------- */

/* It is told to forget, once for each key, and its own number says what is left. */
static void ones_own_is_told_to_forget(void **state)
{
	struct own o = {.answer = 7};
	wq_limiter *l = wq_limiter_bounded(own_limiter(&o), IDLE);

	(void)state;
	for (char key = 'a'; key <= 'z'; key++)
		IS(wq_limiter_when(l, &key, 1, 0), 7);
	IS(wq_limiter_size(l), 26);
	IS(o.forgets, 0);
	for (int i = 0; i < 26; i++)
		IS(wq_limiter_when(l, "A", 1, IDLE + 1), 7);
	IS(o.forgets, 26);
	for (char key = 'a'; key <= 'z'; key++)
		IS(o.count[(int)key], 0);
	IS(o.count['A'], 26);
	IS(requeues(l, "A"), 26);
	IS(wq_limiter_size(l), 1);
	IS(when(l, "A", 10 * IDLE), 7); /* this very key was idle */
	IS(o.forgets, 27);
	IS(requeues(l, "A"), 1);
	IS(forget(l, "A"), WQ_OK);
	IS(wq_limiter_size(l), 0);
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.frees, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(idle_for_longer_is_forgotten),
	    cmocka_unit_test(each_key_has_its_own_time),
	    cmocka_unit_test(what_was_left_goes),
	    cmocka_unit_test(it_does_not_fill_the_memory),
	    cmocka_unit_test(an_idle_key_has_no_number),
	    cmocka_unit_test(time_that_goes_back),
	    cmocka_unit_test(never_is_no_bound),
	    cmocka_unit_test(it_bounds_the_whole),
	    cmocka_unit_test(a_shared_bucket_is_not_bounded),
	    cmocka_unit_test(ones_own_is_told_to_forget),
	};

	return cmocka_run_group_tests_name("limiter_bounded", tests, NULL, NULL);
}
