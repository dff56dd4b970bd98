/* The reserved words of hooks: one that is not zero is refused, not ignored; see docs/abi.md. */
#include "../support/support.h"

#include <wq/delayqueue.h>
#include <wq/heap.h>
#include <wq/timer.h>
#include <wq/wheel.h>

static int64_t now(void *ctx)
{
	(void)ctx;
	return 1;
}

static void an_allocator(void **state)
{
	struct memory mem;
	wq_queue *q = NULL;
	wq_heap *h = NULL;
	wq_wheel *w = NULL;
	wq_timer *t = NULL;
	wq_delayqueue *d = NULL;

	(void)state;
	memory_init(&mem);
	for (size_t i = 0; i < LENGTH(((wq_allocator *)0)->reserved); i++) {
		wq_allocator a = memory_allocator(&mem);

		a.reserved[i] = 1;
		IS(wq_new(&q, &(wq_options){.allocator = &a}), WQ_EINVAL);
		IS(wq_heap_new(&h, &a), WQ_EINVAL);
		IS(wq_wheel_new(&w, 0, &(wq_wheel_options){.allocator = &a}), WQ_EINVAL);
		IS(wq_timer_new(&t, &(wq_timer_options){.allocator = &a}), WQ_EINVAL);
		IS(wq_delayqueue_new(&d, &(wq_delayqueue_options){.allocator = &a}), WQ_EINVAL);
	}
	assert_true(!q && !h && !w && !t && !d);
	IS(mem.calls, 0);
}

static void a_clock(void **state)
{
	wq_queue *q = NULL;
	wq_timer *t = NULL;
	wq_delayqueue *d = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(((wq_clock *)0)->reserved); i++) {
		wq_clock c = {.now = now};

		c.reserved[i] = 1;
		IS(wq_new(&q, &(wq_options){.clock = &c}), WQ_EINVAL);
		IS(wq_timer_new(&t, &(wq_timer_options){.clock = &c}), WQ_EINVAL);
		IS(wq_delayqueue_new(&d, &(wq_delayqueue_options){.clock = &c}), WQ_EINVAL);
	}
	assert_true(!q && !t && !d);
}

static void push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)ctx;
	(void)node;
	(void)where;
}

static wq_node *pop(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

/* It is the queue's all the same, and freed. */
static void an_order(void **state)
{
	int freed = 0;
	wq_queue *q = NULL;

	(void)state;
	for (int i = 0; i < (int)LENGTH(((wq_order *)0)->reserved); i++) {
		wq_order o = {.push = push, .pop = pop, .free = count, .ctx = &freed};

		o.reserved[i] = 1;
		IS(wq_new(&q, &(wq_options){.order = &o}), WQ_EINVAL);
		IS(freed, i + 1);
	}
	assert_null(q);
}

static int64_t when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)ctx;
	(void)key;
	(void)len;
	return now_ns;
}

static void forget(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
}

static uint32_t failures(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	return 0;
}

static void a_limiter(void **state)
{
	int freed = 0;

	(void)state;
	for (int i = 0; i < (int)LENGTH(((wq_limiter_functions *)0)->reserved); i++) {
		wq_limiter_functions f = {.when = when,
		                          .forget = forget,
		                          .failures = failures,
		                          .free = count,
		                          .ctx = &freed};
		wq_limiter *l;

		f.reserved[i] = 1;
		l = wq_limiter_custom(&f);
		IS(wq_limiter_status(l), WQ_EINVAL);
		IS(wq_limiter_free(l), WQ_OK);
		IS(freed, i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_allocator),
	    cmocka_unit_test(a_clock),
	    cmocka_unit_test(an_order),
	    cmocka_unit_test(a_limiter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
