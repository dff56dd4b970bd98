/*
 * No call is a cancellation point: a thread whose cancellation is pending makes each of them to its
 * end. Among them are all that use descriptors, random bytes or threads, where libc has such points.
 */
#include "../support/support.h"

#include <wq/delayqueue.h>
#include <wq/parallel.h>
#include <wq/pool.h>
#include <wq/timer.h>

static wq_verdict fine(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	return WQ_DONE;
}

static int piece(void *ctx, size_t i)
{
	(void)ctx;
	(void)i;
	return 0;
}

static void make_and_free(wq_queue *q)
{
	wq_queue *another;

	(void)q;
	IS(wq_new(&another, NULL), WQ_OK);
	assert_true(wq_fd(another) >= 0);
	IS(wq_free(another), WQ_OK);
}

static void add(wq_queue *q)
{
	IS(wq_add_str(q, "a"), WQ_QUEUED);
}

static void add_later(wq_queue *q)
{
	IS(wq_add_after(q, "a", 1, WQ_HOUR), WQ_DELAYED);
	IS(wq_reschedule(q, "a", 1, 0), WQ_MOVED);
}

static void get(wq_queue *q)
{
	wq_item it;

	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_get(q, &it), WQ_OK);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_get_for(q, &it, WQ_MILLISECOND), WQ_ETIMEDOUT);
}

static void stop(wq_queue *q)
{
	IS(wq_shutdown(q), WQ_OK);
	IS(wq_drain_for(q, 0, NULL, NULL), WQ_OK);
}

static void pool(wq_queue *q)
{
	wq_pool *p;

	IS(wq_pool_start(
	       &p, q, &(wq_pool_options){.workers = 3, .handler = fine, .slow_ns = WQ_MILLISECOND}),
	   WQ_OK);
	IS(wq_pool_resize(p, 1), WQ_OK);
	IS(wq_pool_stop_for(p, WQ_NEVER), WQ_OK);
	IS(wq_pool_free(p), WQ_OK);
}

static void timer(wq_queue *q)
{
	wq_timer *t;

	(void)q;
	IS(wq_timer_new(&t, NULL), WQ_OK);
	IS(wq_timer_free(t), WQ_OK);
}

static void parallel(wq_queue *q)
{
	(void)q;
	IS(wq_parallel(100, piece, NULL, &(wq_parallel_options){.workers = 3}), 100);
}

static void limiter(wq_queue *q)
{
	(void)q;
	IS(wq_limiter_free(wq_limiter_jittered(1, 100, WQ_JITTER_FULL, 0)), WQ_OK);
}

struct call {
	void (*make)(wq_queue *q);
	wq_queue *q;
	bool over;
};

static void *cancelled(void *arg)
{
	struct call *c = arg;

	pthread_cancel(pthread_self());
	c->make(c->q);
	c->over = true;
	return NULL;
}

static void test_no_call_is_a_cancellation_point(void **state)
{
	static void (*const calls[])(wq_queue *) = {make_and_free, add,   add_later, get,    stop,
	                                            pool,          timer, parallel,  limiter};

	(void)state;
	for (size_t i = 0; i < LENGTH(calls); i++) {
		struct call c = {.make = calls[i]};
		pthread_t t;

		IS(wq_new(&c.q, NULL), WQ_OK);
		assert_true(wq_fd(c.q) >= 0);
		assert_int_equal(pthread_create(&t, NULL, cancelled, &c), 0);
		pthread_join(t, NULL);
		if (!c.over)
			fail_msg("call %zu was cancelled", i);
		/* Nothing was left locked. */
		assert_true(wq_free(c.q) >= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_no_call_is_a_cancellation_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
