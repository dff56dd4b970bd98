/* The promises of wq/delayqueue.h on other clocks, on bad input, and without memory. */
#include "delayqueue_rig.h"

/* ---- clocks ----------------------------------------------------------------- */

static void a_clock_that_jumps(void **state)
{
	struct own_clock own = {.now_ns = 1000};
	wq_clock clock = own_clock(&own, false);
	wq_delayqueue_options o = {.clock = &clock};
	wq_delayqueue *dq;
	struct taker t[3];

	(void)state;
	IS(wq_delayqueue_new(&dq, &o), WQ_OK);
	IS(wq_delayqueue_now(dq), 1000);
	IS(wq_delayqueue_offer(dq, V("a"), 1000 + WQ_HOUR), WQ_OK);
	takers_block(t, 2, dq);
	taker_block(&t[2], dq, 1000 + WQ_HOUR - 1);
	IS(wq_delayqueue_clock_changed(dq), WQ_OK); /* it has not */
	for (int i = 0; i < 3; i++)
		actor_blocks(&t[i].actor);
	atomic_store(&own.now_ns, 1000 + WQ_HOUR - 1);
	IS(wq_delayqueue_clock_changed(dq), WQ_OK);
	taker_got_nothing(&t[2], WQ_ETIMEDOUT);
	atomic_store(&own.now_ns, 1000 + WQ_HOUR);
	IS(wq_delayqueue_clock_changed(dq), WQ_OK);
	IS(wq_delayqueue_offer(dq, V("a"), 0), WQ_OK);
	taker_got(&t[0], "a");
	taker_got(&t[1], "a");
	IS(wq_delayqueue_free(dq), 0);
}

static void a_clock_is_watched_from_new_to_free(void **state)
{
	struct own_clock own = {.now_ns = 5};
	wq_clock clock = own_clock(&own, true);
	wq_delayqueue_options o = {.clock = &clock};
	wq_delayqueue *dq;
	struct taker t;

	(void)state;
	IS(wq_delayqueue_new(&dq, &o), WQ_OK);
	IS(own.ons, 1);
	IS(own.offs, 0);
	taker_block(&t, dq, WQ_NEVER);
	IS(wq_delayqueue_free(dq), WQ_EBUSY);
	IS(own.ons - own.offs, 1);
	IS(wq_delayqueue_offer(dq, V("a"), 5), WQ_OK);
	taker_got(&t, "a");
	IS(wq_delayqueue_free(dq), 0);
	IS(own.ons - own.offs, 0);
}

static void what_the_watch_answers_is_passed_on(void **state)
{
	struct own_clock own = {.now_ns = 5, .answer = WQ_EIO};
	wq_clock clock = own_clock(&own, true);
	struct memory mem;
	wq_delayqueue *dq = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);
	wq_delayqueue_options o = {.clock = &clock, .allocator = &a};

	IS(wq_delayqueue_new(&dq, &o), WQ_EIO);
	assert_null(dq);
	memory_balanced(&mem);
}

static void the_default_clock_is_monotonic(void **state)
{
	static char letters[20][12];
	wq_delayqueue *dq;
	void *value = NULL;

	(void)state;
	IS(wq_delayqueue_new(&dq, NULL), WQ_OK);

	int64_t before = wq_clock_monotonic(), now = wq_delayqueue_now(dq);

	assert_true(before <= now && now <= wq_clock_monotonic());
	IS(wq_delayqueue_take_until(dq, &value, now + 2 * WQ_MILLISECOND), WQ_ETIMEDOUT);
	assert_true(wq_clock_monotonic() >= now + 2 * WQ_MILLISECOND);
	now = wq_clock_monotonic();
	for (int i = 19; i >= 0; i--) {
		snprintf(letters[i], sizeof letters[i], "%d", i);
		IS(wq_delayqueue_offer(dq, letters[i], now + i * WQ_MILLISECOND / 2), WQ_OK);
	}
	for (int i = 0; i < 20; i++) {
		IS(wq_delayqueue_take(dq, &value), WQ_OK);
		assert_true(wq_clock_monotonic() >= now + i * WQ_MILLISECOND / 2);
		value_is(value, letters[i]);
	}
	IS(wq_delayqueue_free(dq), 0);
}

/* ---- bad input -------------------------------------------------------------- */

static void bad_options(void **state)
{
	struct memory mem;
	wq_delayqueue *dq = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator good = memory_allocator(&mem), bad = good;
	wq_clock no_now = {.now = NULL};
	wq_delayqueue_options o = {.allocator = &good};

	IS(wq_delayqueue_new(NULL, NULL), WQ_EINVAL);
	IS(wq_delayqueue_new(NULL, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o.reserved[i] = 1;
		IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
		o.reserved[i] = 0;
	}
	o.clock = &no_now;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	o.clock = NULL;
	bad.alloc = NULL;
	o.allocator = &bad;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	bad = good;
	bad.free = NULL;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	assert_null(dq);
	IS(mem.calls, 0);
	o.allocator = NULL;
	IS(wq_delayqueue_new(&dq, &o), WQ_OK); /* all zero is a good one */
	IS(wq_delayqueue_free(dq), 0);
}

static void bad_arguments(void **state)
{
	struct delay *f = *state;
	void *value = f;

	IS(wq_delayqueue_free(NULL), 0);
	IS(wq_delayqueue_offer(NULL, f, 0), WQ_EINVAL);
	IS(wq_delayqueue_offer(f->dq, f, -1), WQ_EINVAL);
	IS(wq_delayqueue_offer(f->dq, f, INT64_MIN), WQ_EINVAL);
	IS(wq_delayqueue_size(f->dq), 0);
	offer(f, "a", 0);
	IS(wq_delayqueue_take(NULL, &value), WQ_EINVAL);
	IS(wq_delayqueue_take(f->dq, NULL), WQ_EINVAL);
	IS(wq_delayqueue_take_until(NULL, &value, 0), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, NULL, 0), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, &value, -1), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, &value, INT64_MIN), WQ_EINVAL);
	IS(wq_delayqueue_take_for(NULL, &value, 0), WQ_EINVAL);
	IS(wq_delayqueue_take_for(f->dq, NULL, 0), WQ_EINVAL);
	IS(wq_delayqueue_poll(NULL, &value), WQ_EINVAL);
	IS(wq_delayqueue_poll(f->dq, NULL), WQ_EINVAL);
	assert_ptr_equal(value, f);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_size(NULL), WQ_EINVAL);
	IS(wq_delayqueue_next(NULL), WQ_EINVAL);
	IS(wq_delayqueue_close(NULL), WQ_EINVAL);
	IS(wq_delayqueue_now(NULL), WQ_EINVAL);
	IS(wq_delayqueue_clock_changed(NULL), WQ_EINVAL);
	poll_is(f, "a");
}

/* ---- memory ----------------------------------------------------------------- */

/* The n-th allocation fails; true if there was an n-th. */
static bool run_without_memory(int64_t n, bool and_later)
{
	enum { VALUES = 200 };
	static int numbers[VALUES];
	struct memory mem;
	wq_delayqueue *dq = NULL;
	void *value;
	bool failed;

	memory_init(&mem);
	mem.fail_at = n;
	mem.fail_on = and_later;

	wq_allocator a = memory_allocator(&mem);
	wq_delayqueue_options o = {.allocator = &a};
	int rc = wq_delayqueue_new(&dq, &o);

	if (rc != WQ_OK) {
		IS(rc, WQ_ENOMEM);
		assert_null(dq);
		memory_balanced(&mem);
		return true;
	}
	for (int i = 0; i < VALUES; i++) {
		numbers[i] = i;
		rc = wq_delayqueue_offer(dq, &numbers[i], VALUES - i);
		if (rc != WQ_OK) {
			IS(rc, WQ_ENOMEM);
			IS(wq_delayqueue_size(dq), i);
			IS(wq_delayqueue_next(dq), i ? VALUES - i + 1 : WQ_NEVER);
			mem.fail_at = -1;
			IS(wq_delayqueue_offer(dq, &numbers[i], VALUES - i), WQ_OK);
		}
	}
	failed = mem.failed > 0;
	mem.fail_at = 0; /* taking needs none */
	mem.fail_on = true;
	for (int i = VALUES - 1; i >= 0; i--) {
		IS(wq_delayqueue_take(dq, &value), WQ_OK);
		IS(*(int *)value, i);
	}
	IS(wq_delayqueue_close(dq), WQ_OK);
	IS(wq_delayqueue_free(dq), 0);
	memory_balanced(&mem);
	return failed;
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	memory_fail_each(run_without_memory, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_clock_that_jumps),
	    cmocka_unit_test(a_clock_is_watched_from_new_to_free),
	    cmocka_unit_test(what_the_watch_answers_is_passed_on),
	    cmocka_unit_test(the_default_clock_is_monotonic),
	    WITH_DELAY(bad_options),
	    WITH_DELAY(bad_arguments),
	    cmocka_unit_test(each_allocation_fails_once),
	};

	return cmocka_run_group_tests_name("delayqueue, clocks and memory", tests, NULL, NULL);
}
