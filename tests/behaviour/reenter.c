/* [REENTER] Each hook that runs under the lock, and calls the queue it belongs to, stops the process. */
#include "../support/support.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq/metrics.h>

static wq_queue *q;
static bool armed;

/* Once, so that a queue which lets it pass goes on to its end. */
static void call_the_queue(void)
{
	if (armed) {
		armed = false;
		wq_len(q);
	}
}

static int64_t now(void *ctx)
{
	(void)ctx;
	call_the_queue();
	return 1000;
}

static void *take_memory(void *ctx, size_t size, size_t align)
{
	void *p = NULL;

	(void)ctx;
	call_the_queue();
	return posix_memalign(&p, align < sizeof p ? sizeof p : align, size) == 0 ? p : NULL;
}

static void give_memory(void *ctx, void *p, size_t size)
{
	(void)ctx;
	(void)size;
	call_the_queue();
	free(p);
}

static wq_node *only;

static void push(void *ctx, wq_node *n, enum wq_where where)
{
	(void)ctx;
	(void)where;
	only = n;
	call_the_queue();
}

static wq_node *pop(void *ctx)
{
	(void)ctx;
	call_the_queue();
	return only;
}

static void touch(void *ctx, wq_node *n)
{
	(void)ctx;
	(void)n;
	call_the_queue();
}

static int64_t when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)ctx;
	(void)key;
	(void)len;
	(void)now_ns;
	call_the_queue();
	return 1;
}

static void forget(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	call_the_queue();
}

static uint32_t nothing(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	return 0;
}

static void count_metric(void *ctx, enum wq_metric metric, int64_t delta)
{
	(void)ctx;
	(void)metric;
	(void)delta;
	call_the_queue();
}

/* ---- one hook each ---------------------------------------------------------- */

static const wq_clock clock_hook = {.now = now};
static const wq_allocator memory_hook = {.alloc = take_memory, .free = give_memory};
static const wq_order order_hook = {.push = push, .pop = pop, .touch = touch};

static void add(void)
{
	wq_add_str(q, "key");
}

static void add_and_get(void)
{
	wq_item it;

	(void)!wq_try_get(q, &it); /* the hook ends the process */
}

static void add_later(void)
{
	wq_add_after(q, "later", 5, WQ_SECOND);
}

static void add_limited(void)
{
	wq_add_limited(q, "key", 3);
}

static void forget_key(void)
{
	wq_forget(q, "key", 3);
}

/* More than is at hand, so that memory is asked for. */
static void add_much(void)
{
	for (int i = 0; i < 100000 && armed; i++)
		wq_add(q, &i, sizeof i);
}

static void finish_much(void)
{
	wq_item it;

	armed = false;
	for (int i = 0; i < 100000; i++)
		wq_add(q, &i, sizeof i);
	armed = true;
	while (armed && wq_try_get(q, &it) == WQ_OK)
		wq_done(q, &it);
}

static int64_t use_once(void *arg)
{
	(void)arg;
	return wq_len(q);
}

/* How a process ends in which the call meets the hook. */
static int end_of(const wq_options *o, bool first_add, bool shared, void (*call)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		alarm(60);
		if (wq_new(&q, o) != WQ_OK)
			_exit(2);
		if (first_add)
			wq_add_str(q, "key");
		if (shared) {
			struct actor a;

			actor_start(&a, use_once, NULL);
			actor_join(&a);
		}
		armed = true;
		call();
		_exit(armed ? 3 : 0);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* In a queue that one thread has used, and in one that two have. */
static void stops(const wq_options *o, bool first_add, void (*call)(void))
{
	for (int shared = 0; shared < 2; shared++)
		IS(end_of(o, first_add, shared, call), -SIGABRT);
}

static void a_clock_may_not_call(void **state)
{
	(void)state;
	stops(&(wq_options){.clock = &clock_hook}, false, add_later);
}

static void an_allocator_may_not_call(void **state)
{
	(void)state;
	stops(&(wq_options){.allocator = &memory_hook}, false, add_much);
	stops(&(wq_options){.allocator = &memory_hook}, false, finish_much);
}

static void an_order_may_not_call(void **state)
{
	(void)state;
	stops(&(wq_options){.order = &order_hook}, false, add);
	stops(&(wq_options){.order = &order_hook}, true, add);
	stops(&(wq_options){.order = &order_hook}, true, add_and_get);
}

static void limiter_stops(void (*call)(void))
{
	for (int shared = 0; shared < 2; shared++) {
		wq_limiter_functions f = {.when = when, .forget = forget, .failures = nothing};
		wq_limiter *l = wq_limiter_custom(&f);

		IS(end_of(&(wq_options){.limiter = l}, true, shared, call), -SIGABRT);
		wq_limiter_free(l);
	}
}

static void a_limiter_may_not_call(void **state)
{
	(void)state;
	limiter_stops(add_limited);
	limiter_stops(forget_key);
}

static void a_provider_may_not_call(void **state)
{
	wq_metrics_provider p = {.add = count_metric};

	(void)state;
	stops(&(wq_options){.name = "q", .provider = &p}, false, add);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_clock_may_not_call),    cmocka_unit_test(an_allocator_may_not_call),
	    cmocka_unit_test(an_order_may_not_call),   cmocka_unit_test(a_limiter_may_not_call),
	    cmocka_unit_test(a_provider_may_not_call),
	};

	return cmocka_run_group_tests_name("reenter", tests, NULL, NULL);
}
