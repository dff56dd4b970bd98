/*
 * wq_last_error(): for every cause for which a call that takes options, or makes something, fails,
 * the text that says so. It belongs to the thread, and what succeeds leaves it alone.
 */
#include "../support/support.h"

#include <math.h>

#include <errno.h>
#include <math.h>

static const char before[] = "what was there before";

/* There is no thread as long as it says so. */
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

static bool no_threads;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(id, attr, run, arg);
}

/* The call answers this, and says why. */
#define SAYS(call, status, text)                                                                   \
	do {                                                                                       \
		wq_fail(WQ_EIO, before);                                                           \
		IS(call, status);                                                                  \
		assert_string_equal(wq_last_error(), text);                                        \
	} while (0)

/* It answers this, and leaves the text as it was. */
#define SILENT(call, status) SAYS(call, status, before)

/* ---- the text itself ------------------------------------------------------ */

static int64_t first_words(void *arg)
{
	(void)arg;
	IS((int64_t)strlen(wq_last_error()), 0); /* nothing has failed in this thread yet */
	IS(wq_new(NULL, NULL), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "out is NULL");
	return 0;
}

static void each_thread_has_its_own(void **state)
{
	struct actor a;

	(void)state;
	IS(wq_fail(WQ_EFULL, "mine"), WQ_EFULL);
	actor_start(&a, first_words, NULL);
	IS(actor_join(&a), 0);
	assert_string_equal(wq_last_error(), "mine");
}

static void successes_leave_it_alone(void **state)
{
	wq_queue *q = NULL;
	wq_item it;

	(void)state;
	SILENT(wq_new(&q, NULL), WQ_OK);
	SILENT(wq_add_with(q, "a", 1, &(wq_add_options){.after_ns = 0}), WQ_QUEUED);
	SILENT(wq_try_get(q, &it), WQ_OK);
	SILENT(wq_retry(q, &it), WQ_DELAYED);
	SILENT(wq_limiter_status(NULL), WQ_ENOMEM); /* asks, and fails at nothing */
	SILENT(wq_drain_until(q, 0, NULL, NULL), WQ_LEFT);
	SILENT(wq_free(q), 1);
	/* Nor do calls whose status says it all. */
	SILENT(wq_add(NULL, "a", 1), WQ_EINVAL);
	SILENT(wq_done(NULL, &it), WQ_EINVAL);
	SILENT(wq_get(NULL, &it), WQ_EINVAL);
}

static void others_may_set_it(void **state)
{
	char text[2 * WQ_ERROR_MAX];

	(void)state;
	IS(wq_fail(WQ_EIO, "the disk is full"), WQ_EIO);
	assert_string_equal(wq_last_error(), "the disk is full");
	IS(wq_fail(WQ_EFULL, NULL), WQ_EFULL);
	assert_string_equal(wq_last_error(), wq_strerror(WQ_EFULL));
	IS(wq_fail(WQ_EIO, "%s%n"), WQ_EIO); /* is no format */
	assert_string_equal(wq_last_error(), "%s%n");
	IS(wq_fail(WQ_EIO, wq_last_error()), WQ_EIO); /* its own text */
	assert_string_equal(wq_last_error(), "%s%n");
	/* What is too long is cut off. */
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	IS(wq_fail(WQ_EIO, text), WQ_EIO);
	text[WQ_ERROR_MAX - 1] = '\0';
	assert_string_equal(wq_last_error(), text);
	errno = ERANGE;
	IS(wq_fail(WQ_EIO, before), WQ_EIO);
	IS(errno, ERANGE);
}

/* ---- wq_new() ------------------------------------------------------------- */

static int64_t now_0(void *ctx)
{
	(void)ctx;
	return 0;
}

static int no_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	(void)ctx, (void)changed, (void)arg, (void)on;
	return WQ_EIO;
}

static const wq_clock no_clock, unwatched = {.now = now_0, .watch = no_watch};
static const wq_allocator no_allocator;

static void of_a_queue(void **state)
{
	static char long_name[257];
	static const wq_order no_order;
	static const struct wq_metrics_provider spoilt = {.reserved = {1}};
	wq_registry *r = NULL;
	wq_queue *q = NULL;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	memset(long_name, 'n', sizeof long_name - 1);
	const struct {
		wq_options o;
		const char *text;
	} cases[] = {
	    {{.reserved = {1}}, "a reserved word of wq_options is not zero"},
	    {{.reserved = {0, 1}}, "a reserved word of wq_options is not zero"},
	    {{.within = 2}, "within is 2, neither 0 nor 1"},
	    {{.spin_ns = -2}, "spin_ns is negative, and not WQ_SPIN_NEVER"},
	    {{.spin_ns = 2000000}, "spin_ns is 2000000, more than WQ_MILLISECOND"},
	    {{.max_attempts = WQ_FAILURES_MAX + 1},
	     "max_attempts is 4194304, more than WQ_FAILURES_MAX"},
	    {{.max_attempts = 1, .limiter = wq_limiter_bucket(1, 1)},
	     "max_attempts needs a limiter that counts failures"},
	    {{.registry = r}, "a queue with a registry or a provider needs a name"},
	    {{.registry = r, .name = ""}, "a queue with a registry or a provider needs a name"},
	    {{.provider = &spoilt}, "a queue with a registry or a provider needs a name"},
	    {{.provider = &spoilt, .name = "q"}, "a reserved word of the provider is not zero"},
	    {{.name = long_name}, "the name is longer than 255 bytes"},
	    {{.registry = r, .name = "\xff"}, "the name is not UTF-8"},
	    {{.registry = r, .name = "."}, "the name is \".\", which no URL can have as a part"},
	    {{.registry = r, .name = ".."}, "the name is \"..\", which no URL can have as a part"},
	    {{.clock = &no_clock}, "the clock has no function now"},
	    {{.allocator = &no_allocator}, "the allocator has no function alloc or free"},
	    {{.order = &no_order}, "the order has no function push or pop"},
	    {{.engine_options = r}, "engine_options are given without an engine"},
	    {{.limiter = wq_limiter_exponential(0, 1)},
	     "wq_limiter_exponential: base_ns is 0, not above 0"},
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		print_message("%s\n", cases[i].text);
		SAYS(wq_new(&q, &cases[i].o), WQ_EINVAL, cases[i].text);
		assert_null(q);
	}
	SAYS(wq_new(NULL, NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_new(&q, &(wq_options){.clock = &unwatched}), WQ_EIO,
	     "the clock cannot be watched: storage, network or the system failed: no descriptor, "
	     "thread or port");
	SILENT(wq_new(&q, &(wq_options){.registry = r, .name = "q"}), WQ_OK);
	wq_queue *other = NULL;

	SAYS(wq_new(&other, &(wq_options){.registry = r, .name = "q"}), WQ_EEXIST,
	     "the registry has a queue of the name \"q\"");
	IS(wq_free(q), 0);
	IS(wq_registry_free(r), WQ_OK);
}

static wq_separator slash = {.byte = '/', .n = 1};

static void no_push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)ctx, (void)node, (void)where;
}

static wq_node *no_pop(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void any_settings(void *ctx, const wq_key *group, wq_group_settings *s)
{
	(void)ctx, (void)group, (void)s;
}

/* [PRIORITY] [AGING] [GROUP] [VALUE] What does not go together, and what is out of range. */
static void of_riches(void **state)
{
	static const char order_given[] = "an order is given with priorities or groups",
			  no_group[] = "settings of groups are given without group",
			  no_aging[] = "aging needs priorities = 1 and aging_ns",
			  no_values[] = "merge is given, but values is 0";
	const wq_order order = {.push = no_push, .pop = no_pop};
	const struct {
		wq_options o;
		const char *text;
	} cases[] = {
	    {{.priorities = 2}, "priorities is 2, neither 0 nor 1"},
	    {{.priorities = UINT32_MAX}, "priorities is 4294967295, neither 0 nor 1"},
	    {{.values = 2}, "values is 2, neither 0 nor 1"},
	    {{.priorities = 1, .order = &order}, order_given},
	    {{.group = wq_group_before, .group_ctx = &slash, .order = &order}, order_given},
	    {{.priorities = 1, .aging_ns = -1}, "aging_ns is -1, not 0 to WQ_AGING_MAX"},
	    {{.priorities = 1, .aging_ns = WQ_AGING_MAX + 1},
	     "aging_ns is 43200000000001, not 0 to WQ_AGING_MAX"},
	    {{.priorities = 1, .aging_ns = 1, .aging_max = WQ_PRIORITY_MAX + 1},
	     "aging_max is 32768, which is no priority"},
	    {{.priorities = 1, .aging_ns = 1, .aging_max = WQ_PRIORITY_MIN - 1},
	     "aging_max is -32769, which is no priority"},
	    {{.aging_ns = 1}, no_aging},
	    {{.priorities = 1, .aging_max = 1}, no_aging},
	    {{.aging_max = -1}, no_aging},
	    {{.group_ctx = &slash}, no_group},
	    {{.group_limit = 1}, no_group},
	    {{.group_rate = 1}, no_group},
	    {{.group_burst = 1}, no_group},
	    {{.group_setup = any_settings}, no_group},
	    {{.setup_ctx = &slash}, no_group},
	    {{.group = wq_group_before, .group_ctx = &slash, .group_rate = -1},
	     "group_rate is -1, not 0 to 1e9"},
	    {{.group = wq_group_before, .group_ctx = &slash, .group_rate = 2e9},
	     "group_rate is 2e+09, not 0 to 1e9"},
	    {{.group = wq_group_before, .group_ctx = &slash, .group_rate = (double)INFINITY},
	     "group_rate is inf, not 0 to 1e9"},
	    {{.merge = wq_merge_first}, no_values},
	    {{.merge_ctx = &slash}, no_values},
	    {{.priorities = 1, .merge = wq_merge_first}, no_values},
	    {{.reserved0 = 1}, "a reserved word of wq_options is not zero"},
	};
	wq_queue *q = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		print_message("%s\n", cases[i].text);
		SAYS(wq_new(&q, &cases[i].o), WQ_EINVAL, cases[i].text);
		assert_null(q);
	}
	IS(wq_new(&q, &(wq_options){.group = wq_group_before,
	                            .group_ctx = &slash,
	                            .group_rate = (double)NAN}),
	   WQ_EINVAL);
	assert_null(q);
}

/* The ends of what is allowed. */
static void of_no_riches(void **state)
{
	const wq_order order = {.push = no_push, .pop = no_pop};
	const wq_options good[] = {
	    {.priorities = 1, .aging_ns = WQ_AGING_MAX, .aging_max = WQ_PRIORITY_MIN},
	    {.priorities = 1, .aging_ns = 1, .aging_max = WQ_PRIORITY_MAX},
	    {.group = wq_group_before, .group_ctx = &slash, .group_rate = 1e9},
	    {.group = wq_group_before, .group_ctx = &slash, .group_burst = UINT32_MAX},
	    {.group = wq_group_before, .group_ctx = &slash, .group_limit = UINT32_MAX},
	    {.values = 1, .order = &order},
	    {.values = 1, .merge_ctx = &slash},
	};
	wq_queue *q = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		SILENT(wq_new(&q, &good[i]), WQ_OK);
		IS(wq_free(q), 0);
	}
}

/* Adds that bring something along: nothing has changed. */
static void of_a_rich_add(void **state)
{
	static char longest[WQ_VALUE_MAX + 1];
	static const struct {
		wq_add_options o;
		int status;
		bool plain; /* of a queue without priorities and values */
		const char *text;
	} cases[] = {
	    {{.reserved0 = 1}, WQ_EINVAL, false, "a reserved word of wq_add_options is not zero"},
	    {{.reserved = {0, 1}},
	     WQ_EINVAL,
	     false,
	     "a reserved word of wq_add_options is not zero"},
	    {{.priority = WQ_PRIORITY_MAX + 1},
	     WQ_EINVAL,
	     false,
	     "priority is 32768, not -32768 to 32767"},
	    {{.priority = WQ_PRIORITY_MIN - 1},
	     WQ_EINVAL,
	     false,
	     "priority is -32769, not -32768 to 32767"},
	    {{.priority = INT32_MIN, .after_ns = 1},
	     WQ_EINVAL,
	     true,
	     "priority is -2147483648, not -32768 to 32767"},
	    {{.priority = 1},
	     WQ_EINVAL,
	     true,
	     "a priority is given, but wq_options.priorities is 0: set it to 1 in wq_new()"},
	    {{.priority = -1, .limited = 1},
	     WQ_EINVAL,
	     true,
	     "a priority is given, but wq_options.priorities is 0: set it to 1 in wq_new()"},
	    {{.value_len = 1}, WQ_EINVAL, false, "value is NULL, and value_len is not 0"},
	    {{.value_len = 1}, WQ_EINVAL, true, "value is NULL, and value_len is not 0"},
	    {{.value = "v", .value_len = 1},
	     WQ_EINVAL,
	     true,
	     "a value is given, but wq_options.values is 0: set it to 1 in wq_new()"},
	    {{.value = ""},
	     WQ_EINVAL,
	     true,
	     "a value is given, but wq_options.values is 0: set it to 1 in wq_new()"},
	    {{.value = longest, .value_len = WQ_VALUE_MAX + 1},
	     WQ_ETOOLONG,
	     false,
	     "the value has 65537 bytes, more than 65536"},
	    {{.value = longest, .value_len = SIZE_MAX, .after_ns = 1},
	     WQ_ETOOLONG,
	     false,
	     "the value has 18446744073709551615 bytes, more than 65536"},
	};
	wq_queue *rich = NULL, *plain = NULL;

	(void)state;
	IS(wq_new(&rich, &(wq_options){.priorities = 1, .values = 1}), WQ_OK);
	IS(wq_new(&plain, NULL), WQ_OK);
	for (size_t i = 0; i < LENGTH(cases); i++) {
		wq_queue *q = cases[i].plain ? plain : rich;

		SAYS(wq_add_with(q, "a", 1, &cases[i].o), cases[i].status, cases[i].text);
		IS(state_of(q, "a"), 0);
		IS(wq_add_str(q, "a"), WQ_QUEUED);
		SAYS(wq_add_with(q, "a", 1, &cases[i].o), cases[i].status, cases[i].text);
		take_is(q, "a", WQ_OK);
	}
	IS(wq_free(rich), 0);
	IS(wq_free(plain), 0);
}

/* Each allocation of a new queue fails: the text is not that of something else. */
static void of_a_queue_without_memory(void **state)
{
	struct memory mem;
	wq_queue *q = NULL;
	int n = 0, rc;

	(void)state;
	do {
		memory_init(&mem);
		mem.fail_at = n++;
		wq_allocator a = memory_allocator(&mem);

		wq_fail(WQ_EIO, before);
		rc = wq_new(&q, &(wq_options){.allocator = &a,
		                              .name = "q",
		                              .priorities = 1,
		                              .values = 1,
		                              .merge = wq_merge_or,
		                              .group = wq_group_before,
		                              .group_ctx = &slash});
		assert_string_equal(wq_last_error(), rc < 0 ? "out of memory" : before);
		if (rc == WQ_OK)
			IS(wq_free(q), 0);
		memory_balanced(&mem);
	} while (rc == WQ_ENOMEM);
	IS(rc, WQ_OK);
	assert_true(n > 3);
}

/* ---- calls on a queue ------------------------------------------------------ */

static void of_an_add(void **state)
{
	static const struct {
		wq_add_options o;
		const char *text;
	} cases[] = {
	    {{.reserved = {0, 1}}, "a reserved word of wq_add_options is not zero"},
	    {{.limited = 2}, "limited is 2, neither 0 nor 1"},
	    {{.after_ns = 1, .policy = (enum wq_policy)5}, "policy is 5: there is no such policy"},
	    {{.at_ns = -1}, "at_ns is negative"},
	    {{.at_ns = 1, .after_ns = 1}, "after_ns and at_ns are both given"},
	    {{.at_ns = 1, .after_ns = -1}, "after_ns and at_ns are both given"},
	    {{.limited = 1, .at_ns = 1}, "at_ns is given, and limited is 1"},
	    {{.limited = 1, .after_ns = -1}, "after_ns is given, and limited is 1"},
	    {{.after_ns = 1, .within_ns = -1}, "within_ns is negative"},
	    {{.limited = 1, .within_ns = 1}, "within_ns is given with limited"},
	    {{.after_ns = 1, .within_ns = 1, .policy = WQ_REMIND},
	     "within_ns is given with WQ_REMIND"},
	};
	wq_queue *q = NULL, *plain = NULL;

	(void)state;
	IS(wq_new(&q, &(wq_options){.within = 1}), WQ_OK);
	IS(wq_new(&plain, NULL), WQ_OK);
	for (size_t i = 0; i < LENGTH(cases); i++) {
		SAYS(wq_add_with(q, "a", 1, &cases[i].o), WQ_EINVAL, cases[i].text);
		IS(state_of(q, "a"), 0);
	}
	SAYS(wq_add_with(plain, "a", 1, &(wq_add_options){.after_ns = 1, .within_ns = 1}),
	     WQ_EINVAL, "within_ns is given, but wq_options.within is 0: set it to 1 in wq_new()");
	IS(wq_free(q), 0);
	IS(wq_free(plain), 0);
}

static void of_a_drain(void **state)
{
	wq_queue *q = NULL;
	wq_drain_options o = {.mode = (enum wq_drain_mode)3};

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	SAYS(wq_drain_until(NULL, 0, NULL, NULL), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_drain_for(NULL, 0, NULL, NULL), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_drain_until(q, -1, NULL, NULL), WQ_EINVAL, "the deadline is negative");
	SAYS(wq_drain_until(q, 0, &o, NULL), WQ_EINVAL, "mode is 3: there is no such mode");
	SAYS(wq_drain_for(q, 0, &o, NULL), WQ_EINVAL, "mode is 3: there is no such mode");
	o = (wq_drain_options){.reserved0 = 1};
	SAYS(wq_drain_until(q, 0, &o, NULL), WQ_EINVAL,
	     "a reserved word of wq_drain_options is not zero");
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o = (wq_drain_options){0};
		o.reserved[i] = 1;
		SAYS(wq_drain_until(q, 0, &o, NULL), WQ_EINVAL,
		     "a reserved word of wq_drain_options is not zero");
	}
	IS(wq_shutting_down(q), 0);
	IS(wq_free(q), 0);
}

static int free_inside(void *ctx, const wq_key_info *info)
{
	(void)info;
	SAYS(wq_free(ctx), WQ_EBUSY, "a thread waits in the queue or walks over it");
	return 1;
}

static wq_verdict finish(void *ctx, const wq_item *it)
{
	(void)ctx, (void)it;
	return WQ_DONE;
}

static void of_a_free(void **state)
{
	wq_pool_options one = {.workers = 1, .handler = finish};
	wq_registry *r = NULL;
	wq_queue *q = NULL;
	wq_pool *p = NULL;
	wq_item a, b;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_new(&q, &(wq_options){.name = "q", .registry = r}), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_add_str(q, "b"), WQ_QUEUED);
	IS(wq_walk(q, free_inside, q), 1);
	IS(wq_try_get(q, &a), WQ_OK);
	SAYS(wq_free(q), WQ_EBUSY, "1 key is held");
	IS(wq_try_get(q, &b), WQ_OK);
	SAYS(wq_free(q), WQ_EBUSY, "2 keys are held");
	IS(wq_done(q, &a), WQ_OK);
	IS(wq_done(q, &b), WQ_OK);
	IS(wq_pool_start(&p, q, &one), WQ_OK);
	SAYS(wq_free(q), WQ_EBUSY, "the queue has a pool");
	IS(wq_pool_stop_for(p, WQ_NEVER), WQ_OK);
	SAYS(wq_pool_resize(p, 2), WQ_ESHUTDOWN, "the pool is stopped");
	IS(wq_pool_free(p), WQ_OK);
	SAYS(wq_registry_free(r), WQ_EBUSY, "the registry lists a queue");
	SILENT(wq_free(q), 0);
	IS(wq_registry_hold(r), WQ_OK);
	SAYS(wq_registry_free(r), WQ_EBUSY, "the registry is held by wq_registry_hold()");
	IS(wq_registry_release(r), WQ_OK);
	SILENT(wq_registry_free(r), WQ_OK);
}

static void of_a_verdict(void **state)
{
	static const struct {
		wq_verdict v;
		const char *text;
	} cases[] = {
	    {{.kind = 5}, "kind is 5: there is no such verdict"},
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = -1}, "delay_ns of the verdict is negative"},
	    {{.reserved0 = 1}, "a reserved word of wq_verdict is not zero"},
	};
	wq_queue *q = NULL;
	wq_item it, spoilt;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	for (size_t i = 0; i < LENGTH(cases); i++) {
		SAYS(wq_settle(q, &it, cases[i].v), WQ_EINVAL, cases[i].text);
		SAYS(wq_settle_next_until(q, &it, cases[i].v, 0, NULL), WQ_EINVAL, cases[i].text);
	}
	SAYS(wq_settle(NULL, &it, WQ_DONE), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_settle(q, NULL, WQ_DONE), WQ_EINVAL, "the item is NULL");
	SAYS(wq_retry(q, NULL), WQ_EINVAL, "the item is NULL");
	spoilt = it;
	spoilt.reserved[1] = 1;
	SAYS(wq_settle(q, &spoilt, WQ_DONE), WQ_EINVAL, "a reserved word of wq_item is not zero");
	SAYS(wq_settle_next_until(q, &it, WQ_DONE, -2, NULL), WQ_EINVAL,
	     "the deadline is negative, and not WQ_NOWAIT");
	SAYS(wq_settle_next_for(NULL, &it, WQ_DONE, 0, NULL), WQ_EINVAL, "the queue is NULL");
	SILENT(wq_settle(q, &it, WQ_DONE), WQ_OK);
	SILENT(wq_settle(q, &it, WQ_DONE), WQ_ESTALE);
	IS(wq_free(q), 0);
}

static void of_a_delayed_add(void **state)
{
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	SAYS(wq_add_at(q, "a", 1, -1), WQ_EINVAL, "due_ns is negative");
	SAYS(wq_add_at(NULL, "a", 1, 1), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_add_at(q, NULL, 1, 1), WQ_EINVAL, "key is NULL, and len is not 0");
	SAYS(wq_add_with(NULL, "a", 1, NULL), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_add_with(q, NULL, 1, NULL), WQ_EINVAL, "key is NULL, and len is not 0");
	SILENT(wq_add_after(NULL, "a", 1, 1), WQ_EINVAL);
	SILENT(wq_add_at(q, "a", WQ_KEY_MAX + 1, 1), WQ_ETOOLONG);
	IS(wq_free(q), 0);
}

static void of_set_failures(void **state)
{
	wq_queue *q = NULL, *uncounted = NULL;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_new(&uncounted, &(wq_options){.limiter = wq_limiter_bucket(1, 1)}), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_add_str(uncounted, "a"), WQ_QUEUED);
	SAYS(wq_set_failures(NULL, "a", 1, 1), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_set_failures(q, NULL, 1, 1), WQ_EINVAL, "key is NULL, and len is not 0");
	SAYS(wq_set_failures(q, "a", 1, 0), WQ_EINVAL, "failures is 0: use wq_forget()");
	SAYS(wq_set_failures(q, "a", 1, WQ_FAILURES_MAX + 1), WQ_EINVAL,
	     "failures is 4194304, more than WQ_FAILURES_MAX");
	SAYS(wq_set_failures(uncounted, "a", 1, 1), WQ_ENOTSUP,
	     "the limiter counts no failures, or its own");
	SILENT(wq_set_failures(q, "b", 1, 1), WQ_ENOTFOUND);
	SILENT(wq_set_failures(q, "a", 1, 1), WQ_OK);
	IS(wq_free(q), 1);
	IS(wq_free(uncounted), 1);
}

static void fire(void *ctx, const wq_timer_event *event)
{
	(void)ctx, (void)event;
}

static void of_timers(void **state)
{
	wq_wheel *w = NULL;
	wq_timer *t = NULL;

	(void)state;
	IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
	SAYS(wq_wheel_add(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_wheel_after(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_wheel_every(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_wheel_add(w, -1, fire, NULL, NULL), WQ_EINVAL, "due_ns is negative");
	SAYS(wq_wheel_after(w, 1, NULL, NULL, NULL), WQ_EINVAL, "fn is NULL");
	SAYS(wq_wheel_every(w, 0, fire, NULL, NULL), WQ_EINVAL, "period_ns is 0, not above 0");
	IS(wq_wheel_stop(w), WQ_OK);
	SAYS(wq_wheel_add(w, 1, fire, NULL, NULL), WQ_ESHUTDOWN, "the timing wheel is stopped");
	IS(wq_wheel_free(w), 0);

	IS(wq_timer_new(&t, NULL), WQ_OK);
	SAYS(wq_timer_add(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_timer_after(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_timer_every(NULL, 1, fire, NULL, NULL), WQ_EINVAL, "the timing wheel is NULL");
	SAYS(wq_timer_add(t, -1, fire, NULL, NULL), WQ_EINVAL, "due_ns is negative");
	SAYS(wq_timer_add(t, 1, NULL, NULL, NULL), WQ_EINVAL, "fn is NULL");
	SAYS(wq_timer_after(t, 1, NULL, NULL, NULL), WQ_EINVAL, "fn is NULL");
	SAYS(wq_timer_every(t, 1, NULL, NULL, NULL), WQ_EINVAL, "fn is NULL");
	SAYS(wq_timer_every(t, -1, fire, NULL, NULL), WQ_EINVAL, "period_ns is -1, not above 0");
	SILENT(wq_timer_after(t, WQ_HOUR, fire, NULL, NULL), WQ_OK);
	IS(wq_timer_stop(t), WQ_OK);
	SAYS(wq_timer_after(t, 1, fire, NULL, NULL), WQ_ESHUTDOWN, "the timing wheel is stopped");
	SAYS(wq_timer_every(t, 1, fire, NULL, NULL), WQ_ESHUTDOWN, "the timing wheel is stopped");
	IS(wq_timer_free(t), 1);
}

static void of_a_clock(void **state)
{
	wq_manual_clock *mc = NULL;
	wq_queue *q = NULL;

	(void)state;
	IS(wq_manual_clock_new(&mc, 15), WQ_OK);
	SAYS(wq_manual_clock_set(NULL, 1), WQ_EINVAL, "the clock is NULL");
	SAYS(wq_manual_clock_set(mc, -1), WQ_EINVAL, "now_ns is negative");
	SAYS(wq_manual_clock_set(mc, 14), WQ_EINVAL,
	     "now_ns is 14, but the clock is at 15 already");
	SAYS(wq_manual_clock_advance(NULL, 1), WQ_EINVAL, "the clock is NULL");
	SAYS(wq_manual_clock_advance(mc, -1), WQ_EINVAL, "by_ns is negative");
	SILENT(wq_manual_clock_set(mc, 15), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(mc);

	IS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_OK);
	SAYS(wq_manual_clock_free(mc), WQ_EBUSY, "a queue, pool or timer uses the clock");
	IS(wq_free(q), 0);
	SILENT(wq_manual_clock_free(mc), WQ_OK);

	/* Without a manual clock there is none: a queue refuses it. */
	clock = wq_manual_clock_clock(NULL);
	SAYS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_EINVAL,
	     "the clock has no function now");
}

static wq_verdict drain_inside(void *ctx, const wq_item *it)
{
	wq_queue *q = ctx;

	(void)it;
	SAYS(wq_drain_for(q, 0, NULL, NULL), WQ_EDEADLK,
	     "a handler of a pool of this queue would wait for itself");
	return WQ_DONE;
}

static void of_a_drain_in_a_handler(void **state)
{
	wq_queue *q = NULL;
	wq_pool *p = NULL;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_pool_start(&p, q,
	                 &(wq_pool_options){.workers = 1, .handler = drain_inside, .ctx = q}),
	   WQ_OK);
	IS(wq_pool_drain_until(p, WQ_NEVER, NULL, NULL), WQ_OK);
	IS(wq_pool_free(p), WQ_OK);
	IS(wq_free(q), 0);
}

/* ---- threads --------------------------------------------------------------- */

static void of_a_pool(void **state)
{
	static const struct {
		wq_pool_options o;
		const char *text;
	} cases[] = {
	    {{.workers = 1}, "there is no handler"},
	    {{.handler = drain_inside}, "workers is 0, not from 1 to 4096"},
	    {{.handler = drain_inside, .workers = 4097}, "workers is 4097, not from 1 to 4096"},
	    {{.handler = drain_inside, .workers = 1, .paused = 2}, "paused is 2, neither 0 nor 1"},
	    {{.handler = drain_inside, .workers = 1, .slow_ns = -1}, "slow_ns is negative"},
	    {{.handler = drain_inside, .workers = 1, .reserved = {1}},
	     "a reserved word of wq_pool_options is not zero"},
	};
	wq_pool_options good = {.handler = drain_inside, .workers = 2};
	wq_queue *q = NULL;
	wq_pool *p = NULL;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	for (size_t i = 0; i < LENGTH(cases); i++)
		SAYS(wq_pool_start(&p, q, &cases[i].o), WQ_EINVAL, cases[i].text);
	SAYS(wq_pool_start(NULL, q, &good), WQ_EINVAL, "out is NULL");
	SAYS(wq_pool_start(&p, NULL, &good), WQ_EINVAL, "the queue is NULL");
	SAYS(wq_pool_start(&p, q, NULL), WQ_EINVAL, "the options are NULL");
	no_threads = true;
	SAYS(wq_pool_start(&p, q, &good), WQ_EIO,
	     "the thread of a worker cannot be started: Resource temporarily unavailable");
	good.slow_ns = WQ_SECOND;
	SAYS(wq_pool_start(&p, q, &good), WQ_EIO,
	     "the thread of the timer cannot be started: Resource temporarily unavailable");
	no_threads = false;
	assert_null(p);
	SILENT(wq_pool_start(&p, q, &good), WQ_OK);
	SAYS(wq_pool_resize(p, 0), WQ_EINVAL, "workers is 0, not from 1 to 4096");
	SAYS(wq_pool_resize(NULL, 1), WQ_EINVAL, "the pool is NULL");
	SAYS(wq_pool_drain_until(NULL, 0, NULL, NULL), WQ_EINVAL, "the pool is NULL");
	SAYS(wq_pool_drain_for(NULL, 0, NULL, NULL), WQ_EINVAL, "the pool is NULL");
	SAYS(wq_pool_drain_until(p, -1, NULL, NULL), WQ_EINVAL, "the deadline is negative");
	SILENT(wq_pool_free(p), WQ_OK);
	SILENT(wq_pool_free(NULL), WQ_OK);
	IS(wq_free(q), 0);
}

static int nothing(void *ctx, size_t piece)
{
	(void)ctx, (void)piece;
	return 0;
}

static void of_a_loop(void **state)
{
	(void)state;
	SAYS(wq_parallel(1, NULL, NULL, &(wq_parallel_options){.workers = 1}), WQ_EINVAL,
	     "fn is NULL");
	SAYS(wq_parallel(1, nothing, NULL, NULL), WQ_EINVAL, "the options are NULL");
	SAYS(wq_parallel(1, nothing, NULL, &(wq_parallel_options){0}), WQ_EINVAL,
	     "workers is 0, not from 1 to 4096");
	SAYS(wq_parallel(1, nothing, NULL, &(wq_parallel_options){.workers = 4097}), WQ_EINVAL,
	     "workers is 4097, not from 1 to 4096");
	SAYS(wq_parallel(1, nothing, NULL, &(wq_parallel_options){.workers = 1, .reserved0 = 1}),
	     WQ_EINVAL, "a reserved word of wq_parallel_options is not zero");
	SAYS(wq_parallel(1, nothing, NULL, &(wq_parallel_options){.workers = 1, .reserved = {1}}),
	     WQ_EINVAL, "a reserved word of wq_parallel_options is not zero");
	SAYS(wq_parallel(SIZE_MAX, nothing, NULL, &(wq_parallel_options){.workers = 1}), WQ_EINVAL,
	     "there are more pieces than INT64_MAX");
	SILENT(wq_parallel(3, nothing, NULL, &(wq_parallel_options){.workers = 1}), 3);
}

/* ---- limiters --------------------------------------------------------------- */

static int64_t when_0(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)ctx, (void)key, (void)len, (void)now_ns;
	return 0;
}

static void forget_nothing(void *ctx, const void *key, size_t len)
{
	(void)ctx, (void)key, (void)len;
}

static int64_t made(wq_limiter *l)
{
	int status = wq_limiter_status(l);

	IS(wq_limiter_free(l), WQ_OK);
	return status;
}

static wq_limiter *plain(void)
{
	return wq_limiter_exponential(1, 1);
}

static wq_limiter *many(wq_limiter *(*make)(void), size_t n)
{
	wq_limiter *parts[16];

	for (size_t i = 0; i < n; i++)
		parts[i] = make();
	return wq_limiter_max_of(parts, n);
}

static wq_limiter *two_buckets(void)
{
	wq_limiter *parts[] = {wq_limiter_bucket_per_key(1, 1), wq_limiter_bucket_per_key(2, 2)};

	return wq_limiter_max_of(parts, 2);
}

static void of_a_limiter(void **state)
{
	wq_limiter_functions f = {0};

	(void)state;
	SAYS(made(wq_limiter_exponential(0, 1)), WQ_EINVAL,
	     "wq_limiter_exponential: base_ns is 0, not above 0");
	SAYS(made(wq_limiter_exponential(-5, 1)), WQ_EINVAL,
	     "wq_limiter_exponential: base_ns is -5, not above 0");
	SAYS(made(wq_limiter_exponential(5, 4)), WQ_EINVAL,
	     "wq_limiter_exponential: max_ns is 4, less than base_ns, which is 5");
	SAYS(made(wq_limiter_exponential(INT64_MAX, INT64_MIN)), WQ_EINVAL,
	     "wq_limiter_exponential: max_ns is -9223372036854775808, less than base_ns, which is "
	     "9223372036854775807");
	SAYS(made(wq_limiter_jittered(0, 1, WQ_JITTER_FULL, 1)), WQ_EINVAL,
	     "wq_limiter_jittered: base_ns is 0, not above 0");
	SAYS(made(wq_limiter_jittered(2, 1, WQ_JITTER_NONE, 1)), WQ_EINVAL,
	     "wq_limiter_jittered: max_ns is 1, less than base_ns, which is 2");
	SAYS(made(wq_limiter_jittered(1, 1, (enum wq_jitter)99, 1)), WQ_EINVAL,
	     "wq_limiter_jittered: jitter is 99: there is no such jitter");
	SAYS(made(wq_limiter_fast_slow(-1, 1, 1)), WQ_EINVAL,
	     "wq_limiter_fast_slow: fast_ns is negative");
	SAYS(made(wq_limiter_fast_slow(1, -1, 1)), WQ_EINVAL,
	     "wq_limiter_fast_slow: slow_ns is negative");
	SAYS(made(wq_limiter_bucket(-1.5, 1)), WQ_EINVAL,
	     "wq_limiter_bucket: rate is -1.5: it must be 0 or more");
	SAYS(made(wq_limiter_bucket((double)NAN, 1)), WQ_EINVAL,
	     "wq_limiter_bucket: rate is nan: it must be 0 or more");
	SAYS(made(wq_limiter_bucket(1, -1)), WQ_EINVAL, "wq_limiter_bucket: burst is -1, below 0");
	SAYS(made(wq_limiter_bucket_per_key(1, -1)), WQ_EINVAL,
	     "wq_limiter_bucket_per_key: burst is -1, below 0");
	SAYS(made(wq_limiter_bucket_per_part(1, -1, '/', 1)), WQ_EINVAL,
	     "wq_limiter_bucket_per_part: burst is -1, below 0");
	SAYS(made(wq_limiter_bucket_per_part(1, 1, '/', 0)), WQ_EINVAL,
	     "wq_limiter_bucket_per_part: n is 0: a part ends at a separator");
	SAYS(made(wq_limiter_max_of(NULL, 3)), WQ_EINVAL, "wq_limiter_max_of: parts is NULL");
	SAYS(made(wq_limiter_max_of(&(wq_limiter *){NULL}, 0)), WQ_EINVAL,
	     "wq_limiter_max_of: there are no components: n is 0");
	SAYS(made(wq_limiter_max_of(&(wq_limiter *){NULL}, 1)), WQ_ENOMEM,
	     "wq_limiter_max_of: a component is NULL");
	SAYS(made(many(plain, 9)), WQ_EINVAL,
	     "wq_limiter_max_of: there are 9 components, more than WQ_PARTS_MAX");
	SAYS(made(many(two_buckets, 5)), WQ_EINVAL,
	     "wq_limiter_max_of: the components keep 160 bytes of a key, more than 128");
	SAYS(made(wq_limiter_max_wait(plain(), -1)), WQ_EINVAL,
	     "wq_limiter_max_wait: max_ns is negative");
	SAYS(made(wq_limiter_max_wait(NULL, 1)), WQ_ENOMEM,
	     "wq_limiter_max_wait: a component is NULL");
	SAYS(made(wq_limiter_bounded(plain(), 0)), WQ_EINVAL,
	     "wq_limiter_bounded: idle_ns is 0, not above 0");
	SAYS(made(wq_limiter_bounded(NULL, 1)), WQ_ENOMEM,
	     "wq_limiter_bounded: a component is NULL");
	SAYS(made(wq_limiter_custom(NULL)), WQ_EINVAL, "wq_limiter_custom: f is NULL");
	SAYS(made(wq_limiter_custom(&f)), WQ_EINVAL,
	     "wq_limiter_custom: there is no function when");
	f.when = when_0;
	SAYS(made(wq_limiter_custom(&f)), WQ_EINVAL,
	     "wq_limiter_custom: there is no function forget");
	f.forget = forget_nothing;
	SAYS(made(wq_limiter_custom(&f)), WQ_EINVAL,
	     "wq_limiter_custom: there is no function failures");
	f.reserved[3] = 1;
	SAYS(made(wq_limiter_custom(&f)), WQ_EINVAL,
	     "wq_limiter_custom: a reserved word of wq_limiter_functions is not zero");
	SILENT(made(wq_limiter_controller()), WQ_OK);
}

/* Whatever takes one that failed fails with it, and its reason stays. */
static void of_a_limiter_inside_another(void **state)
{
	wq_limiter *taken = plain();
	wq_queue *q = NULL, *none = NULL;

	(void)state;
	SAYS(wq_new(&none,
	            &(wq_options){.limiter = wq_limiter_bounded(
				      wq_limiter_max_wait(wq_limiter_bucket(1, -7), 5), WQ_HOUR)}),
	     WQ_EINVAL, "wq_limiter_bucket: burst is -7, below 0");
	IS(wq_new(&q, &(wq_options){.limiter = taken}), WQ_OK);
	SAYS(wq_new(&none, &(wq_options){.limiter = taken}), WQ_EBUSY,
	     "the limiter belongs to another limiter or queue already");
	SAYS(made(wq_limiter_max_wait(taken, 5)), WQ_EBUSY,
	     "wq_limiter_max_wait: a component belongs to another limiter or queue already");
	/* Of two causes the first is answered, and told. */
	wq_limiter *parts[] = {wq_limiter_bounded(plain(), 0), taken};

	SAYS(made(wq_limiter_max_of(parts, 2)), WQ_EINVAL,
	     "wq_limiter_bounded: idle_ns is 0, not above 0");
	SAYS(wq_new(NULL, &(wq_options){.limiter = taken}), WQ_EINVAL, "out is NULL");
	assert_null(none);
	IS(wq_free(q), 0);
}

/* Of several bad components the first is told, whichever was made last, and from deep inside. */
static void of_several_limiters(void **state)
{
	wq_limiter *first = wq_limiter_bucket(1, -1), *second = wq_limiter_bucket(1, -2);
	wq_limiter *bad[WQ_PARTS_MAX];
	wq_queue *q = NULL;
	char text[64];

	(void)state;
	SAYS(made(wq_limiter_max_of((wq_limiter *[]){first, second}, 2)), WQ_EINVAL,
	     "wq_limiter_bucket: burst is -1, below 0");
	SAYS(made(wq_limiter_max_of((wq_limiter *[]){second, first}, 2)), WQ_EINVAL,
	     "wq_limiter_bucket: burst is -2, below 0");
	SAYS(wq_new(&q, &(wq_options){.limiter = wq_limiter_max_of(
					  (wq_limiter *[]){plain(), wq_limiter_max_wait(first, 5),
	                                                   wq_limiter_bounded(second, 0)},
					  3)}),
	     WQ_EINVAL, "wq_limiter_bucket: burst is -1, below 0");
	assert_null(q);
	for (int i = 0; i < WQ_PARTS_MAX; i++)
		bad[i] = wq_limiter_bucket(1, -10 - i);
	for (int i = 0; i < WQ_PARTS_MAX; i++) {
		snprintf(text, sizeof text, "wq_limiter_bucket: burst is %d, below 0", -10 - i);
		SAYS(made(wq_limiter_max_of(&bad[i], (size_t)(WQ_PARTS_MAX - i))), WQ_EINVAL, text);
	}
}

static int64_t takes_it(void *arg)
{
	wq_limiter *l = arg;

	SILENT(made(wq_limiter_max_wait(l, 5)), WQ_EINVAL);
	return 0;
}

/* Another thread gets the status, but has no text of it. */
static void of_a_limiter_of_another_thread(void **state)
{
	struct actor a;

	(void)state;
	actor_start(&a, takes_it, wq_limiter_bucket(1, -1));
	IS(actor_join(&a), 0);
}

/* ---- what knows the time ---------------------------------------------------- */

static void of_times(void **state)
{
	static const char no_now[] = "the clock has no function now";
	static const char no_alloc[] = "the allocator has no function alloc or free";
	wq_manual_clock *mc = NULL;
	wq_registry *r = NULL;
	wq_delayqueue *dq = NULL;
	wq_wheel *w = NULL;
	wq_timer *t = NULL;
	wq_heap *h = NULL;

	(void)state;
	SAYS(wq_manual_clock_new(NULL, 0), WQ_EINVAL, "out is NULL");
	SAYS(wq_manual_clock_new(&mc, -1), WQ_EINVAL, "start_ns is negative");
	SAYS(wq_registry_new(NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_heap_new(NULL, NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_heap_new(&h, &no_allocator), WQ_EINVAL, no_alloc);

	SAYS(wq_delayqueue_new(NULL, NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_delayqueue_new(&dq, &(wq_delayqueue_options){.allocator = &no_allocator}),
	     WQ_EINVAL, no_alloc);
	SAYS(wq_delayqueue_new(&dq, &(wq_delayqueue_options){.clock = &no_clock}), WQ_EINVAL,
	     no_now);
	SAYS(wq_delayqueue_new(&dq, &(wq_delayqueue_options){.reserved = {1}}), WQ_EINVAL,
	     "a reserved word of wq_delayqueue_options is not zero");
	SAYS(wq_delayqueue_new(&dq, &(wq_delayqueue_options){.clock = &unwatched}), WQ_EIO,
	     "the clock cannot be watched: storage, network or the system failed: no descriptor, "
	     "thread or port");

	SAYS(wq_wheel_new(NULL, 0, NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_wheel_new(&w, -1, NULL), WQ_EINVAL, "now_ns is negative");
	SAYS(wq_wheel_new(&w, 0, &(wq_wheel_options){.tick_ns = -1}), WQ_EINVAL,
	     "tick_ns is negative");
	SAYS(wq_wheel_new(&w, 0, &(wq_wheel_options){.tick_ns = INT64_MAX}), WQ_EINVAL,
	     "tick_ns is 9223372036854775807, more than 1099511627776");
	SAYS(wq_wheel_new(&w, 0, &(wq_wheel_options){.size = 3}), WQ_EINVAL,
	     "size is 3, not a power of 2 from 2 to 64");
	SAYS(wq_wheel_new(&w, 0, &(wq_wheel_options){.reserved = {1}}), WQ_EINVAL,
	     "a reserved word of wq_wheel_options is not zero");
	SAYS(wq_wheel_new(&w, 0, &(wq_wheel_options){.allocator = &no_allocator}), WQ_EINVAL,
	     no_alloc);

	SAYS(wq_timer_new(NULL, NULL), WQ_EINVAL, "out is NULL");
	SAYS(wq_timer_new(&t, &(wq_timer_options){.size = 65}), WQ_EINVAL,
	     "size is 65, not a power of 2 from 2 to 64");
	SAYS(wq_timer_new(&t, &(wq_timer_options){.clock = &no_clock}), WQ_EINVAL, no_now);
	SAYS(wq_timer_new(&t, &(wq_timer_options){.allocator = &no_allocator}), WQ_EINVAL,
	     no_alloc);
	SAYS(wq_timer_new(&t, &(wq_timer_options){.reserved = {1}}), WQ_EINVAL,
	     "a reserved word of wq_timer_options is not zero");
	no_threads = true;
	SAYS(wq_timer_new(&t, NULL), WQ_EIO,
	     "the thread of the timer cannot be started: Resource temporarily unavailable");
	no_threads = false;
	assert_true(!mc && !r && !dq && !w && !t && !h);
}

/* Each free accepts NULL, as free() does. */
static void nothing_is_freed(void **state)
{
	(void)state;
	SILENT(wq_free(NULL), 0);
	SILENT(wq_limiter_free(NULL), WQ_OK);
	SILENT(wq_pool_free(NULL), WQ_OK);
	SILENT(wq_registry_free(NULL), WQ_OK);
	SILENT(wq_manual_clock_free(NULL), WQ_OK);
	SILENT(wq_heap_free(NULL), 0);
	SILENT(wq_delayqueue_free(NULL), 0);
	SILENT(wq_wheel_free(NULL), 0);
	SILENT(wq_timer_free(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_thread_has_its_own),
	    cmocka_unit_test(successes_leave_it_alone),
	    cmocka_unit_test(others_may_set_it),
	    cmocka_unit_test(of_a_queue),
	    cmocka_unit_test(of_riches),
	    cmocka_unit_test(of_no_riches),
	    cmocka_unit_test(of_a_rich_add),
	    cmocka_unit_test(of_a_queue_without_memory),
	    cmocka_unit_test(of_an_add),
	    cmocka_unit_test(of_a_drain),
	    cmocka_unit_test(of_a_drain_in_a_handler),
	    cmocka_unit_test(of_a_pool),
	    cmocka_unit_test(of_a_loop),
	    cmocka_unit_test(of_a_limiter),
	    cmocka_unit_test(of_a_limiter_inside_another),
	    cmocka_unit_test(of_several_limiters),
	    cmocka_unit_test(of_a_limiter_of_another_thread),
	    cmocka_unit_test(of_a_free),
	    cmocka_unit_test(of_a_verdict),
	    cmocka_unit_test(of_a_delayed_add),
	    cmocka_unit_test(of_set_failures),
	    cmocka_unit_test(of_timers),
	    cmocka_unit_test(of_a_clock),
	    cmocka_unit_test(of_times),
	    cmocka_unit_test(nothing_is_freed),
	};

	return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
