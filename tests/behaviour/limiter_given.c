/* Who a limiter belongs to ([GIVEN]), how errors are carried, and bad input of every call. */
#include "limiter_rig.h"

#include <math.h>

/* ---- [GIVEN] --------------------------------------------------------------------- */

/* Every call on one that belongs to another. */
static void calls_are_busy(wq_limiter *l)
{
	wq_limiter *again;

	IS(wq_limiter_status(l), WQ_OK);
	IS(when(l, "k", 0), WQ_EBUSY);
	IS(forget(l, "k"), WQ_EBUSY);
	IS(requeues(l, "k"), WQ_EBUSY);
	IS(give_back(l, "k"), WQ_EBUSY);
	IS(wq_limiter_size(l), WQ_EBUSY);
	IS(wq_limiter_free(l), WQ_EBUSY);
	again = wq_limiter_max_wait(l, 5);
	IS(wq_limiter_status(again), WQ_EBUSY);
	IS(wq_limiter_status(wq_limiter_bounded(l, 5)), WQ_EBUSY);
	IS(wq_limiter_status(wq_limiter_max_of(&l, 1)), WQ_EBUSY);
	IS(wq_new(&(wq_queue *){NULL}, &(wq_options){.limiter = l}), WQ_EBUSY);
	IS(wq_limiter_free(again), WQ_OK);
}

/* [GIVEN] It lives as long as what it was given to; the first taker keeps it. */
static void given_to_another(void **state)
{
	struct own o[3] = {{.answer = 1}, {.answer = 2}, {.answer = 3}};
	wq_limiter *parts[] = {own_limiter(&o[0]), own_limiter(&o[1]), own_limiter(&o[2])};
	wq_limiter *max_of = wq_limiter_max_of(parts, 3);
	wq_limiter *capped = wq_limiter_max_wait(max_of, 100);
	wq_limiter *l = wq_limiter_bounded(capped, 100);

	(void)state;
	for (int i = 0; i < 3; i++)
		calls_are_busy(parts[i]);
	calls_are_busy(max_of);
	calls_are_busy(capped);
	IS(when(l, "k", 0), 3);
	for (int i = 0; i < 3; i++)
		IS(o[i].frees, 0);
	IS(wq_limiter_free(l), WQ_OK);
	for (int i = 0; i < 3; i++)
		IS(o[i].frees, 1);
}

/* [GIVEN] A queue is a taker as well. */
static void given_to_a_queue(void **state)
{
	struct own o = {.answer = 1};
	wq_limiter *part = own_limiter(&o), *l = wq_limiter_max_wait(part, 5);
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, &(wq_options){.limiter = l}), WQ_OK);
	calls_are_busy(part);
	calls_are_busy(l);
	IS(o.frees, 0);
	IS(wq_free(q), 0);
	IS(o.frees, 1);
	/* It is freed as well if there will be no queue. */
	o.frees = 0;
	q = NULL;
	IS(wq_new(&q, &(wq_options){.limiter = own_limiter(&o), .spin_ns = -77}), WQ_EINVAL);
	assert_null(q);
	IS(o.frees, 1);
}

/* [GIVEN] Twice in one call is twice: the taker fails, and it is freed once. */
static void the_same_one_twice(void **state)
{
	struct own o[2] = {{.answer = 1}, {.answer = 2}};
	wq_limiter *a = own_limiter(&o[0]), *b = own_limiter(&o[1]);
	wq_limiter *l = wq_limiter_max_of((wq_limiter *[]){a, b, a}, 3);

	(void)state;
	IS(wq_limiter_status(l), WQ_EBUSY);
	IS(o[0].frees, 1);
	IS(o[1].frees, 1);
	IS(when(l, "k", 0), WQ_EBUSY);
	IS(wq_limiter_free(l), WQ_OK);
}

/* [GIVEN] One that is another's stays the other's; what else was given is freed. */
static void one_of_them_is_anothers(void **state)
{
	struct own o[3] = {{.answer = 1}, {.answer = 2}, {.answer = 3}};
	wq_limiter *mine = own_limiter(&o[0]), *owner = wq_limiter_max_wait(mine, 100);
	wq_limiter *parts[] = {own_limiter(&o[1]), mine, own_limiter(&o[2])};

	(void)state;
	IS(wq_limiter_status(wq_limiter_max_of(parts, 3)), WQ_EBUSY);
	IS(o[0].frees, 0);
	IS(o[1].frees, 1);
	IS(o[2].frees, 1);
	IS(when(owner, "k", 0), 1);
	IS(wq_limiter_free(owner), WQ_OK);
	IS(o[0].frees, 1);
}

/* What a limiter has remembered alone does not follow it. */
static void given_after_use(void **state)
{
	wq_limiter *part = wq_limiter_exponential(1, 1000);
	wq_limiter *bucket = wq_limiter_bucket(0, 2), *l;

	(void)state;
	DELAYS_ARE(part, "k", 1, 2, 4);
	l = wq_limiter_max_wait(part, 100);
	IS(wq_limiter_size(l), 0);
	DELAYS_ARE(l, "k", 1, 2, 4);
	IS(wq_limiter_free(l), WQ_OK);

	DELAYS_ARE(bucket, "k", 0);
	l = wq_limiter_max_wait(bucket, WQ_NEVER); /* a token that is gone is gone */
	DELAYS_ARE(l, "k", 0, WQ_NEVER);
	IS(wq_limiter_free(l), WQ_OK);
}

/* ---- errors are carried ---------------------------------------------------------- */

/* Whatever is done with one that failed, the reason stays, and any number may take it. */
static void carries(wq_limiter *l, int status)
{
	wq_queue *q = NULL;

	assert_non_null(l);
	IS(wq_limiter_status(l), status);
	IS(when(l, "k", 0), status);
	IS(forget(l, "k"), status);
	IS(requeues(l, "k"), status);
	IS(give_back(l, "k"), status);
	IS(wq_limiter_size(l), status);
	for (int i = 0; i < 3; i++) {
		IS(wq_limiter_status(wq_limiter_max_of((wq_limiter *[]){l, l}, 2)), status);
		IS(wq_limiter_status(wq_limiter_max_wait(l, 5)), status);
		IS(wq_limiter_status(wq_limiter_bounded(l, 5)), status);
		IS(wq_limiter_status(wq_limiter_bounded(wq_limiter_max_wait(l, 5), 5)), status);
		IS(wq_new(&q, &(wq_options){.limiter = l}), status);
		assert_null(q);
	}
	IS(wq_limiter_free(l), WQ_OK);
	IS(wq_limiter_free(l), WQ_OK);
}

/* Bad numbers, each by its constructor. */
static void bad_numbers(void **state)
{
	static const int64_t pairs[][2] = {{0, 1}, {-1, 1}, {INT64_MIN, 1}, {2, 1},
	                                   {1, 0}, {1, -1}, {1, INT64_MIN}, {0, 0}};
	static const double rates[] = {-1, -1e-300, -INFINITY, NAN, -NAN};

	(void)state;
	for (size_t i = 0; i < LENGTH(pairs); i++) {
		carries(wq_limiter_exponential(pairs[i][0], pairs[i][1]), WQ_EINVAL);
		for (int j = WQ_JITTER_NONE; j <= WQ_JITTER_DECORRELATED; j++)
			carries(wq_limiter_jittered(pairs[i][0], pairs[i][1], (enum wq_jitter)j, 1),
			        WQ_EINVAL);
	}
	carries(wq_limiter_jittered(1, 1, (enum wq_jitter)4, 1), WQ_EINVAL);
	carries(wq_limiter_jittered(1, 1, (enum wq_jitter) - 1, 1), WQ_EINVAL);
	carries(wq_limiter_fast_slow(-1, 1, 1), WQ_EINVAL);
	carries(wq_limiter_fast_slow(1, -1, 1), WQ_EINVAL);
	carries(wq_limiter_fast_slow(INT64_MIN, INT64_MIN, 0), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(rates); i++) {
		carries(wq_limiter_bucket(rates[i], 1), WQ_EINVAL);
		carries(wq_limiter_bucket_per_key(rates[i], 1), WQ_EINVAL);
	}
	carries(wq_limiter_bucket(1, -1), WQ_EINVAL);
	carries(wq_limiter_bucket(INFINITY, -1), WQ_EINVAL);
	carries(wq_limiter_bucket_per_key(1, INT32_MIN), WQ_EINVAL);
	carries(wq_limiter_max_wait(wq_limiter_controller(), -1), WQ_EINVAL);
	carries(wq_limiter_max_wait(wq_limiter_controller(), INT64_MIN), WQ_EINVAL);
	carries(wq_limiter_bounded(wq_limiter_controller(), 0), WQ_EINVAL);
	carries(wq_limiter_bounded(wq_limiter_controller(), -1), WQ_EINVAL);
}

/* NULL counts as one for which there was no memory. */
static void null_is_no_memory(void **state)
{
	(void)state;
	IS(wq_limiter_status(NULL), WQ_ENOMEM);
	IS(when(NULL, "k", 0), WQ_ENOMEM);
	IS(forget(NULL, "k"), WQ_ENOMEM);
	IS(requeues(NULL, "k"), WQ_ENOMEM);
	IS(give_back(NULL, "k"), WQ_ENOMEM);
	IS(wq_limiter_size(NULL), WQ_ENOMEM);
	IS(wq_limiter_free(NULL), WQ_OK);
	carries(wq_limiter_max_wait(NULL, 1), WQ_ENOMEM);
	carries(wq_limiter_bounded(NULL, 1), WQ_ENOMEM);
	carries(wq_limiter_max_of((wq_limiter *[]){NULL}, 1), WQ_ENOMEM);
}

/* The first error is the one that is carried; parts that are fine are freed all the same. */
static void errors_inside(void **state)
{
	struct own o[3] = {{.answer = 1}, {.answer = 2}, {.answer = 3}};
	wq_limiter *parts[] = {own_limiter(&o[0]), wq_limiter_bucket(-1, 1), own_limiter(&o[1]),
	                       NULL, own_limiter(&o[2])};

	(void)state;
	carries(wq_limiter_max_of(parts, 5), WQ_EINVAL);
	for (int i = 0; i < 3; i++)
		IS(o[i].frees, 1);
	carries(wq_limiter_max_of((wq_limiter *[]){wq_limiter_controller(), NULL,
	                                           wq_limiter_bucket(-1, 1)},
	                          3),
	        WQ_ENOMEM);
	/* A bad number beside a good part: it was given, so it is freed. */
	carries(wq_limiter_max_wait(own_limiter(&o[0]), -1), WQ_EINVAL);
	IS(o[0].frees, 2);
	carries(wq_limiter_bounded(own_limiter(&o[0]), 0), WQ_EINVAL);
	IS(o[0].frees, 3);
}

static void bad_parts(void **state)
{
	struct own o = {.answer = 1};
	wq_limiter *nine[WQ_PARTS_MAX + 1], *l;

	(void)state;
	carries(wq_limiter_max_of(NULL, 1), WQ_EINVAL);
	carries(wq_limiter_max_of(NULL, 0), WQ_EINVAL);
	carries(wq_limiter_max_of((wq_limiter *[]){NULL}, 0), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(nine); i++)
		nine[i] = own_limiter(&o);
	carries(wq_limiter_max_of(nine, LENGTH(nine)), WQ_EINVAL);
	IS(o.frees, WQ_PARTS_MAX + 1);
	for (size_t i = 0; i < LENGTH(nine); i++)
		nine[i] = own_limiter(&o);
	l = wq_limiter_max_of(nine, WQ_PARTS_MAX);
	IS(when(l, "k", 0), 1);
	IS(wq_limiter_free(nine[WQ_PARTS_MAX]), WQ_OK);
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.frees, 2 * WQ_PARTS_MAX + 2);
}

/* n limiters of 16 bytes a key and m of 8, in a tree. */
static wq_limiter *with_room(int n, int m)
{
	wq_limiter *parts[2 * WQ_PARTS_MAX], *halves[2];
	size_t k = 0, half;

	while (n-- > 0)
		parts[k++] = wq_limiter_bucket_per_key(0, 3);
	while (m-- > 0)
		parts[k++] = wq_limiter_jittered(5, 50, WQ_JITTER_DECORRELATED, 1);
	half = k / 2;
	halves[0] = wq_limiter_max_of(parts, half);
	halves[1] = wq_limiter_max_of(parts + half, k - half);
	return wq_limiter_max_of(halves, 2);
}

/* What parts keep for a key is limited, as a whole. */
static void too_much_for_a_key(void **state)
{
	static const int good[][2] = {{8, 0}, {7, 2}, {2, 12}, {0, 16}};
	static const int bad[][2] = {{9, 0}, {8, 1}, {7, 3}, {2, 13}};

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		wq_limiter *l = with_room(good[i][0], good[i][1]);

		/* Each part has its own place: none of the buckets is used up early. */
		for (int n = 0; n < 4; n++) {
			int64_t d = when(l, "k", 0);

			assert_true(d <= 50 || (d == WQ_NEVER && n == 3 && good[i][0] > 0));
			IS(when(l, "x", 0) == WQ_NEVER, n == 3 && good[i][0] > 0);
		}
		IS(wq_limiter_free(l), WQ_OK);
	}
	for (size_t i = 0; i < LENGTH(bad); i++)
		carries(with_room(bad[i][0], bad[i][1]), WQ_EINVAL);
}

static void bad_own(void **state)
{
	(void)state;
	carries(wq_limiter_custom(NULL), WQ_EINVAL);
	for (int missing = 0; missing < 3; missing++) {
		struct own o = {.answer = 1};
		wq_limiter_functions f = own_functions(&o);

		if (missing == 0)
			f.when = NULL;
		else if (missing == 1)
			f.forget = NULL;
		else
			f.failures = NULL;
		carries(wq_limiter_custom(&f), WQ_EINVAL);
		IS(o.frees, 1); /* what it was given is its own all the same */
		f.free = NULL;
		carries(wq_limiter_custom(&f), WQ_EINVAL);
	}
}

/* Bad keys and times of every call change nothing. */
static void bad_keys_and_times(void **state)
{
	struct own o = {.answer = 1};
	wq_limiter *all[] = {wq_limiter_exponential(1, 100), wq_limiter_bucket(0, 1),
	                     wq_limiter_bucket_per_key(0, 1), own_limiter(&o)};
	char *bytes = calloc(1, WQ_KEY_MAX + 1);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < LENGTH(all); i++) {
		wq_limiter *l = all[i];

		IS(wq_limiter_when(l, NULL, 1, 0), WQ_EINVAL);
		IS(wq_limiter_forget(l, NULL, 1), WQ_EINVAL);
		IS(wq_limiter_failures(l, NULL, 1), WQ_EINVAL);
		IS(wq_limiter_give_back(l, NULL, 1), WQ_EINVAL);
		IS(wq_limiter_when(l, bytes, WQ_KEY_MAX + 1, 0), WQ_ETOOLONG);
		IS(wq_limiter_forget(l, bytes, WQ_KEY_MAX + 1), WQ_ETOOLONG);
		IS(wq_limiter_failures(l, bytes, SIZE_MAX), WQ_ETOOLONG);
		IS(wq_limiter_give_back(l, bytes, WQ_KEY_MAX + 1), WQ_ETOOLONG);
		IS(when(l, "k", -1), WQ_EINVAL);
		IS(when(l, "k", INT64_MIN), WQ_EINVAL);
		IS(wq_limiter_size(l), 0);
		IS(requeues(l, "k"), 0);
		IS(when(l, "k", 0), i % 3 == 0 ? 1 : 0); /* the token is still there */
		IS(wq_limiter_free(l), WQ_OK);
	}
	IS(o.whens, 1);
	IS(o.forgets + o.gives, 0);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(given_to_another),
	    cmocka_unit_test(given_to_a_queue),
	    cmocka_unit_test(the_same_one_twice),
	    cmocka_unit_test(one_of_them_is_anothers),
	    cmocka_unit_test(given_after_use),
	    cmocka_unit_test(bad_numbers),
	    cmocka_unit_test(null_is_no_memory),
	    cmocka_unit_test(errors_inside),
	    cmocka_unit_test(bad_parts),
	    cmocka_unit_test(too_much_for_a_key),
	    cmocka_unit_test(bad_own),
	    cmocka_unit_test(bad_keys_and_times),
	};

	return cmocka_run_group_tests_name("limiter_given", tests, NULL, NULL);
}
