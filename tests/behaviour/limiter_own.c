/* A limiter of one's own (R8), and what an engine asks of any. */
#include "limiter_rig.h"

/* ---- one's own ------------------------------------------------------------------ */

static void what_it_is_asked(void **state)
{
	struct own o = {.answer = 5};
	wq_limiter_functions f = own_functions(&o);
	wq_limiter *l = wq_limiter_custom(&f);

	(void)state;
	memset(&f, 0, sizeof f); /* it was copied */
	IS(wq_limiter_status(l), WQ_OK);
	IS(when(l, "k", 12), 5);
	IS(o.now_ns, 12);
	IS(o.last, 'k');
	IS(requeues(l, "k"), 1);
	o.count['k'] = UINT32_MAX;
	IS(requeues(l, "k"), UINT32_MAX - 1); /* an attempt is one more, and fits as well */
	IS(give_back(l, "k"), WQ_OK);
	IS(o.gives, 1);
	IS(forget(l, "x"), WQ_OK); /* of what it never heard */
	IS(forget(l, "k"), WQ_OK);
	IS(o.forgets, 2);
	IS(o.last, 'k');
	IS(wq_limiter_size(l), 0); /* what it remembers is its own */
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.frees, 1);
}

/* [LIMIT] */
static void what_it_answers(void **state)
{
	static const int64_t rows[][2] = {{0, 0},
	                                  {1, 1},
	                                  {WQ_NEVER - 1, WQ_NEVER - 1},
	                                  {WQ_NEVER, WQ_NEVER},
	                                  {-1, 0},
	                                  {WQ_EINVAL, 0},
	                                  {INT64_MIN, 0}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct own a = {.answer = rows[i][0]}, b = a, c = a;
		wq_limiter *part = own_limiter(&c);
		wq_limiter *all[] = {
		    own_limiter(&a),
		    wq_limiter_max_wait(own_limiter(&b), WQ_NEVER),
		    wq_limiter_bounded(wq_limiter_max_of(&part, 1), 1),
		};

		for (size_t j = 0; j < LENGTH(all); j++) {
			IS(when(all[j], "k", 0), rows[i][1]);
			IS(wq_limiter_free(all[j]), WQ_OK);
		}
	}
}

/* Beside one that counts, the larger number wins; forget and give_back reach it. */
static void as_a_part(void **state)
{
	struct own o = {.answer = 100};
	wq_limiter *parts[] = {wq_limiter_exponential(1, 1000), own_limiter(&o),
	                       wq_limiter_bucket_per_key(1e9, 9)};
	wq_limiter *l = wq_limiter_max_wait(wq_limiter_max_of(parts, 3), 500);

	(void)state;
	IS(when(l, "k", 3), 100);
	IS(when(l, "k", 4), 100);
	o.answer = WQ_NEVER;
	IS(when(l, "k", 5), 500);
	IS(o.now_ns, 5);
	IS(requeues(l, "k"), 3);
	o.count['k'] = 2;
	IS(requeues(l, "k"), 3);
	o.count['k'] = 50;
	IS(requeues(l, "k"), 50);
	IS(requeues(l, "x"), 0);
	o.count['x'] = 4;
	IS(requeues(l, "x"), 4);
	IS(give_back(l, "k"), WQ_OK);
	IS(o.gives, 1);
	IS(forget(l, "k"), WQ_OK);
	IS(forget(l, "x"), WQ_OK);
	IS(o.forgets, 2);
	IS(requeues(l, "k") + requeues(l, "x"), 0);
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.frees, 1);
}

static void give_back_and_free_are_optional(void **state)
{
	struct own o = {.answer = 5};
	wq_limiter_functions f = own_functions(&o);
	wq_limiter *l;

	(void)state;
	f.give_back = NULL;
	f.free = NULL;
	l = wq_limiter_custom(&f);
	IS(when(l, "k", 0), 5);
	IS(give_back(l, "k"), WQ_OK);
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.gives + o.frees, 0);
}

/* ---- for engines ----------------------------------------------------------------- */

/* The engine keeps the failures; the limiter may be a part of anything. */
static void an_engine_asks(void **state)
{
	struct own o = {.answer = 9};
	wq_limiter *parts[] = {wq_limiter_exponential(1, 1000), own_limiter(&o)};
	wq_limiter *l = wq_limiter_max_of(parts, 2), *bucket = wq_limiter_bucket(1, 1);
	uint32_t failures = 3;

	(void)state;
	IS(wq_engine_ask(l, "k", 1, 7, &failures), 9);
	IS(failures, 4);
	IS(o.now_ns, 7);
	IS(wq_engine_ask(l, "k", 1, 7, &failures), 16);
	IS(failures, 5);
	IS(wq_limiter_size(l), 0);
	failures = WQ_FAILURES_MAX;
	IS(wq_engine_ask(l, "k", 1, 0, &failures), 1000);
	IS(failures, WQ_FAILURES_MAX);
	IS(wq_engine_ask(bucket, "k", 1, 0, &failures), 0);
	failures = 5;
	IS(wq_engine_ask(bucket, "k", 1, 0, &failures), 1 * SEC);
	IS(failures, 5);
	IS(wq_limiter_free(l), WQ_OK);
	IS(wq_limiter_free(bucket), WQ_OK);
}

static void what_an_engine_may_not_ask(void **state)
{
	wq_limiter *l = wq_limiter_exponential(1, 1000);
	wq_limiter *rich[] = {
	    wq_limiter_bucket_per_key(1, 1),
	    wq_limiter_max_wait(wq_limiter_jittered(1, 2, WQ_JITTER_DECORRELATED, 1), 5),
	};
	uint32_t failures = WQ_FAILURES_MAX + 1;

	(void)state;
	IS(wq_engine_ask(l, "k", 1, 0, &failures), WQ_EINVAL);
	IS(failures, WQ_FAILURES_MAX + 1);
	failures = 2;
	IS(wq_engine_ask(NULL, "k", 1, 0, &failures), WQ_EINVAL);
	IS(wq_engine_ask(l, "k", 1, 0, NULL), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(rich); i++) {
		IS(wq_engine_ask(rich[i], "k", 1, 0, &failures), WQ_ENOTSUP);
		IS(wq_limiter_free(rich[i]), WQ_OK);
	}
	IS(wq_engine_ask(wq_limiter_bucket(-1, 1), "k", 1, 0, &failures), WQ_EINVAL);
	IS(wq_engine_ask(wq_limiter_max_wait(NULL, 1), "k", 1, 0, &failures), WQ_ENOMEM);
	IS(failures, 2);
	IS(wq_limiter_free(l), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_it_is_asked), cmocka_unit_test(what_it_answers),
	    cmocka_unit_test(as_a_part),        cmocka_unit_test(give_back_and_free_are_optional),
	    cmocka_unit_test(an_engine_asks),   cmocka_unit_test(what_an_engine_may_not_ask),
	};

	return cmocka_run_group_tests_name("limiter_own", tests, NULL, NULL);
}
