/* Time: the manual clock, clocks of one's own, and the arithmetic of times. */
#include "../support/support.h"

#include <wq/pool.h>

static wq_verdict finish(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	return WQ_DONE;
}

static void manual_clock_moves_only_when_told(void **state)
{
	wq_manual_clock *mc = NULL;
	wq_clock clock;

	(void)state;
	IS(wq_manual_clock_new(&mc, 5), WQ_OK);
	clock = wq_manual_clock_clock(mc);
	IS(wq_manual_clock_now(mc), 5);
	IS(clock.now(clock.ctx), 5);
	IS(wq_manual_clock_advance(mc, 0), WQ_OK);
	IS(wq_manual_clock_now(mc), 5);
	IS(wq_manual_clock_advance(mc, 10), WQ_OK);
	IS(wq_manual_clock_now(mc), 15);
	IS(wq_manual_clock_set(mc, 15), WQ_OK);
	IS(wq_manual_clock_set(mc, 14), WQ_EINVAL);
	IS(wq_manual_clock_set(mc, -1), WQ_EINVAL);
	IS(wq_manual_clock_advance(mc, -1), WQ_EINVAL);
	IS(wq_manual_clock_now(mc), 15);
	IS(wq_manual_clock_set(mc, 100), WQ_OK);
	IS(clock.now(clock.ctx), 100);
	IS(wq_manual_clock_advance(mc, WQ_NEVER), WQ_OK); /* saturates */
	IS(wq_manual_clock_now(mc), WQ_NEVER);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

static void manual_clock_bad_arguments(void **state)
{
	wq_manual_clock *mc = NULL;

	(void)state;
	IS(wq_manual_clock_new(NULL, 0), WQ_EINVAL);
	IS(wq_manual_clock_new(&mc, -1), WQ_EINVAL);
	assert_null(mc);
	IS(wq_manual_clock_free(NULL), WQ_OK);
	IS(wq_manual_clock_advance(NULL, 1), WQ_EINVAL);
	IS(wq_manual_clock_set(NULL, 1), WQ_EINVAL);
	IS(wq_manual_clock_now(NULL), WQ_EINVAL);

	wq_clock none = wq_manual_clock_clock(NULL);
	wq_queue *q = NULL;

	assert_true(!none.now && !none.watch && !none.ctx);
	IS(wq_new(&q, &(wq_options){.clock = &none}), WQ_EINVAL);
	assert_null(q);
}

static void manual_clock_is_busy_while_a_queue_runs_on_it(void **state)
{
	wq_manual_clock *mc;
	wq_queue *a, *b;

	(void)state;
	IS(wq_manual_clock_new(&mc, 0), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(mc);

	IS(wq_new(&a, &(wq_options){.clock = &clock}), WQ_OK);
	IS(wq_new(&b, &(wq_options){.clock = &clock}), WQ_OK);
	IS(wq_manual_clock_free(mc), WQ_EBUSY);
	IS(wq_free(a), 0);
	IS(wq_manual_clock_free(mc), WQ_EBUSY);
	IS(wq_manual_clock_advance(mc, 7), WQ_OK);
	IS(wq_now(b), 7);
	IS(wq_free(b), 0);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

static void manual_clock_wakes_the_sleepers_of_all_its_queues(void **state)
{
	wq_manual_clock *mc;
	enum { QUEUES = 5 };
	wq_queue *q[QUEUES];
	struct getter g[2 * QUEUES];

	(void)state;
	IS(wq_manual_clock_new(&mc, 0), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(mc);

	for (int i = 0; i < QUEUES; i++)
		IS(wq_new(&q[i], &(wq_options){.clock = &clock}), WQ_OK);
	for (int i = 0; i < 2 * QUEUES; i++)
		getter_block(&g[i], q[i % QUEUES], 100 + i);
	IS(wq_manual_clock_set(mc, 99), WQ_OK);
	for (int i = 0; i < 2 * QUEUES; i++)
		actor_blocks(&g[i].actor);
	for (int i = 0; i < 2 * QUEUES; i++) { /* one step, one of them */
		IS(wq_manual_clock_advance(mc, 1), WQ_OK);
		IS(getter_join(&g[i]), WQ_ETIMEDOUT);
		if (i + 1 < 2 * QUEUES)
			actor_blocks(&g[i + 1].actor);
	}
	for (int i = 0; i < QUEUES; i++)
		IS(wq_free(q[i]), 0);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

/* A clock of one's own that is a variable. */
struct own {
	_Atomic int64_t now_ns;
	void (*changed)(void *arg);
	void *arg;
	int ons, offs;
};

static int64_t own_now(void *ctx)
{
	return atomic_load(&((struct own *)ctx)->now_ns);
}

static int own_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	struct own *o = ctx;

	if (on)
		o->ons++;
	else
		o->offs++;
	o->changed = changed;
	o->arg = arg;
	return WQ_OK;
}

static void clock_without_watch_jumps(void **state)
{
	struct own own = {.now_ns = 1000};
	wq_clock clock = {.now = own_now, .ctx = &own};
	struct getter g;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_OK);
	IS(wq_now(q), 1000);
	/* sleeps for an hour of real time, unless it is told of the jump */
	getter_block(&g, q, 1000 + WQ_HOUR);
	IS(wq_clock_changed(q), WQ_OK); /* it has not jumped: goes back to sleep */
	actor_blocks(&g.actor);
	atomic_store(&own.now_ns, 1000 + WQ_HOUR);
	IS(wq_clock_changed(q), WQ_OK);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	IS(wq_free(q), 0);
}

static void clock_without_watch_is_looked_at_again(void **state)
{
	struct own own = {.now_ns = 0};
	wq_clock clock = {.now = own_now, .ctx = &own};
	struct getter g;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.clock = &clock, .spin_ns = WQ_SPIN_NEVER}), WQ_OK);
	/*
	 * The clock stands still, so each millisecond of sleep ends too early,
	 * and the sleeper must not believe that its time has come.
	 */
	getter_start(&g, q, WQ_MILLISECOND);
	for (int64_t start = wq_clock_monotonic();
	     wq_clock_monotonic() - start < 3 * WQ_MILLISECOND;)
		assert_false(actor_finished(&g.actor));
	atomic_store(&own.now_ns, WQ_MILLISECOND); /* nobody is told */
	IS(getter_join(&g), WQ_ETIMEDOUT);
	IS(wq_free(q), 0);
}

static void clock_with_watch_is_told_and_tells(void **state)
{
	struct own own = {.now_ns = 0};
	wq_clock clock = {.now = own_now, .watch = own_watch, .ctx = &own};
	struct getter g;
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_OK);
	IS(own.ons, 1);
	getter_block(&g, q, 1); /* one nanosecond: it sleeps until it is told all the same */
	actor_blocks(&g.actor);
	atomic_store(&own.now_ns, 1);
	own.changed(own.arg);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	wq_add_str(q, "k");
	wq_item it;

	get_is(q, &it, "k");
	IS(wq_free(q), WQ_EBUSY);
	IS(own.ons - own.offs, 1); /* still watched */
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 0);
	IS(own.ons - own.offs, 0);
}

static int refuse_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	(void)ctx;
	(void)changed;
	(void)arg;
	return on ? WQ_EBUSY : WQ_OK;
}

static void clock_that_refuses_to_be_watched(void **state)
{
	struct own own = {.now_ns = 0};
	wq_clock clock = {.now = own_now, .watch = refuse_watch, .ctx = &own};
	struct memory mem;
	wq_queue *q = NULL;

	(void)state;
	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	IS(wq_new(&q, &(wq_options){.clock = &clock, .allocator = &a}), WQ_EBUSY);
	assert_null(q);
	memory_balanced(&mem);
}

static void default_clock_is_monotonic(void **state)
{
	wq_queue *q;
	wq_item it;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);

	int64_t before = wq_clock_monotonic(), now = wq_now(q), after = wq_clock_monotonic();

	assert_true(before <= now && now <= after);
	/* real deadlines pass, and not before their time */
	before = wq_clock_monotonic();
	IS(wq_get_for(q, &it, 2 * WQ_MILLISECOND), WQ_ETIMEDOUT);
	assert_true(wq_clock_monotonic() - before >= 2 * WQ_MILLISECOND);
	before = wq_clock_monotonic();
	IS(wq_get_until(q, &it, before + WQ_MILLISECOND), WQ_ETIMEDOUT);
	assert_true(wq_clock_monotonic() - before >= WQ_MILLISECOND);
	wq_add_str(q, "k");
	IS(wq_wait_idle_for(q, WQ_MILLISECOND), WQ_ETIMEDOUT);
	IS(wq_wait_key_for(q, "k", 1, WQ_MILLISECOND), WQ_ETIMEDOUT);
	/* stamped by the coarse clock: up to some milliseconds early, never late */
	before = wq_clock_monotonic();
	IS(wq_get(q, &it), WQ_OK);
	assert_true(it.added_ns <= before && it.added_ns > before - WQ_SECOND);
	IS(wq_drain_for(q, WQ_MILLISECOND, NULL, NULL), WQ_ETIMEDOUT);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 0);
}

static void times_saturate(void **state)
{
	struct fixture *f = *state;

	IS(wq_time_add(0, 0), 0);
	IS(wq_time_add(5, 7), 12);
	IS(wq_time_add(5, -5), 0);
	IS(wq_time_add(5, -6), 0);
	IS(wq_time_add(5, INT64_MIN), 0);
	IS(wq_time_add(INT64_MAX, INT64_MIN), 0);
	IS(wq_time_add(WQ_NEVER, 1), WQ_NEVER);
	IS(wq_time_add(1, WQ_NEVER), WQ_NEVER);
	IS(wq_time_add(WQ_NEVER, WQ_NEVER), WQ_NEVER);
	IS(wq_time_add(WQ_NEVER - 5, 4), WQ_NEVER - 1);
	IS(wq_time_add(WQ_NEVER - 5, 5), WQ_NEVER);
	IS(wq_time_add(WQ_NEVER - 5, 6), WQ_NEVER);

	/* a span beyond the end of time is for ever */
	struct getter g;

	wq_manual_clock_set(f->mc, WQ_NEVER - 10);
	getter_start(&g, f->q, WQ_NEVER - 5);
	wq_manual_clock_advance(f->mc, 5);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	getter_block(&g, f->q, WQ_NEVER);
	wq_manual_clock_advance(f->mc, WQ_NEVER);
	actor_blocks(&g.actor); /* never does not come, even then */
	IS(wq_interrupt(f->q, 1), 0);
	IS(getter_join(&g), WQ_EINTERRUPTED);
}

/* A manual clock may be moved to WQ_NEVER: timeouts pass there, too, and drains end. */
static void calls_end_at_the_end_of_time(void **state)
{
	static const enum wq_drain_mode modes[] = {WQ_DRAIN_LEAVE, WQ_DRAIN_RUN, WQ_DRAIN_WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(modes); i++) {
		wq_drain_options o = {.mode = modes[i]};
		struct fixture f;
		wq_report report;
		wq_item it;
		wq_pool *p;

		fixture_open(&f, NULL);
		IS(wq_add_at(f.q, "late", 4, WQ_NEVER - 1), WQ_DELAYED);
		IS(wq_add_at(f.q, "never", 5, WQ_NEVER), WQ_DELAYED);
		IS(wq_manual_clock_advance(f.mc, WQ_NEVER), WQ_OK);
		get_is(f.q, &it, "late");
		IS(wq_get_for(f.q, &it, WQ_SECOND), WQ_ETIMEDOUT);
		IS(wq_wait_idle_for(f.q, 0), WQ_ETIMEDOUT);
		IS(wq_drain_for(f.q, 0, &o, &report), WQ_ETIMEDOUT);
		IS((int64_t)report.running, 1);
		IS(wq_done(f.q, &it), WQ_OK);
		IS(wq_drain_for(f.q, WQ_SECOND, &o, &report), WQ_LEFT);
		IS((int64_t)report.delayed, 1);
		IS(wq_pool_start(&p, f.q, &(wq_pool_options){.workers = 1, .handler = finish}),
		   WQ_OK);
		IS(wq_pool_drain_for(p, WQ_NEVER, NULL, NULL), WQ_LEFT);
		IS(wq_pool_stop_for(p, WQ_SECOND), WQ_OK);
		IS(wq_pool_free(p), WQ_OK);
		fixture_close(&f, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(manual_clock_moves_only_when_told),
	    cmocka_unit_test(manual_clock_bad_arguments),
	    cmocka_unit_test(manual_clock_is_busy_while_a_queue_runs_on_it),
	    cmocka_unit_test(manual_clock_wakes_the_sleepers_of_all_its_queues),
	    cmocka_unit_test(clock_without_watch_jumps),
	    cmocka_unit_test(clock_without_watch_is_looked_at_again),
	    cmocka_unit_test(clock_with_watch_is_told_and_tells),
	    cmocka_unit_test(clock_that_refuses_to_be_watched),
	    cmocka_unit_test(default_clock_is_monotonic),
	    WITH_FIXTURE(times_saturate),
	    cmocka_unit_test(calls_end_at_the_end_of_time),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
