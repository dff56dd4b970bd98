/*
 * How many Gets are woken at a time follows how long holds take, by whichever call
 * they end: short ones one by one, long ones all. The clock is the test's.
 */
#include "../support/support.h"

#include "queue/memory.h"
#include "queue/queue.h"

static int64_t clock_ns = 1000000;
static int looks;

int64_t __wrap_wq__clock_now(void); /* NOLINT(bugprone-reserved-identifier): the linker's name */

int64_t __wrap_wq__clock_now(void) /* NOLINT(bugprone-reserved-identifier) */
{
	looks++;
	return clock_ns;
}

enum ending { DONE, NEXT, DONE_MANY, REQUEUE, SETTLE, RETRY, ENDINGS };

/* One hold of the only key, which is in line before and after; or held, with NEXT. */
static void hold(wq_queue *q, enum ending how, int64_t ns)
{
	wq_item it;

	if (how != REQUEUE && how != RETRY)
		IS(wq_add_str(q, "k"), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	clock_ns += ns;
	switch (how) {
	case DONE:
		IS(wq_done(q, &it), WQ_OK);
		break;
	case NEXT:
		IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
		break;
	case DONE_MANY:
		IS(wq_done_many(q, &it, 1, NULL), 1);
		break;
	case REQUEUE:
		IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
		break;
	case SETTLE:
		IS(wq_settle(q, &it, WQ_DONE), WQ_OK);
		break;
	case RETRY:
		IS(wq_retry(q, &it), WQ_DELAYED);
		break;
	case ENDINGS:
		break;
	}
	/* Between two holds: that counts for nothing. */
	clock_ns += 1000000;
}

static void follows(const wq_options *o, enum ending how)
{
	wq_queue *q;
	const struct wq__memory *m;

	IS(wq_new(&q, o), WQ_OK);
	m = q->state;
	if (how == REQUEUE || how == RETRY)
		IS(wq_add_str(q, "k"), WQ_QUEUED);
	for (int i = 0; i < 400; i++) {
		hold(q, how, 100);
		/* Nothing is known before the first that is timed. */
		if (i > WQ__SAMPLE)
			assert_int_equal(m->width, 1);
	}
	/* One hold in 64 is timed: the next of those decides. */
	for (int i = 0; i < 2 * WQ__SAMPLE; i++)
		hold(q, how, 1000000);
	assert_int_equal(m->width, UINT32_MAX);
	for (int i = 0; i < 30 * WQ__SAMPLE; i++)
		hold(q, how, 100);
	assert_int_equal(m->width, 1);
	IS(wq_free(q), how == REQUEUE || how == RETRY);
}

static void width_follows_the_length_of_holds(void **state)
{
	(void)state;
	for (enum ending how = DONE; how < ENDINGS; how++) {
		follows(&(wq_options){.limiter = wq_limiter_exponential(1, 1)}, how);
		follows(&(wq_options){.name = "q", .limiter = wq_limiter_exponential(1, 1)}, how);
	}
}

/* Holds that begin in the call that ends another are timed, too. */
static void width_follows_turns(void **state)
{
	wq_queue *q;
	const struct wq__memory *m;
	wq_item it;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	m = q->state;
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	for (int i = 0; i < 400; i++) {
		IS(wq_add_str(q, i % 2 ? "a" : "b"), WQ_QUEUED);
		clock_ns += 100;
		IS(wq_settle_next_until(q, &it, WQ_DONE, WQ_NOWAIT, NULL), WQ_OK);
		if (i > 2 * WQ__SAMPLE)
			assert_int_equal(m->width, 1);
	}
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 0);
}

/* One that was timed and has not ended after a while is long. */
static void width_of_holds_that_do_not_end(void **state)
{
	wq_queue *q;
	const struct wq__memory *m;
	wq_item held[2 * WQ__SAMPLE];

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	m = q->state;
	for (uint32_t i = 0; i < 2 * WQ__SAMPLE; i++) {
		IS(wq_add(q, &i, sizeof i), WQ_QUEUED);
		IS(wq_try_get(q, &held[i]), WQ_OK);
		clock_ns += 1000000;
	}
	assert_int_equal(m->width, UINT32_MAX);
	IS(wq_done_many(q, held, 2 * WQ__SAMPLE, NULL), 2 * WQ__SAMPLE);
	IS(wq_free(q), 0);
}

/* The clock is asked for the holds that are timed, when they begin and end, and for no other. */
static void holds_ask_the_clock_seldom(void **state)
{
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	looks = 0;
	for (int i = 0; i < 10 * WQ__SAMPLE; i++)
		hold(q, DONE, 100);
	assert_int_equal(looks, 20);
	IS(wq_free(q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(width_follows_the_length_of_holds),
	    cmocka_unit_test(width_follows_turns),
	    cmocka_unit_test(width_of_holds_that_do_not_end),
	    cmocka_unit_test(holds_ask_the_clock_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
