/* The Gets with and without a deadline, many at once, and interrupt. */
#include "../support/support.h"

#include <sched.h>

static const wq_item untouched = {.token = 0x1234567, .len = 99};

static void try_get_does_not_wait(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it = untouched;

	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_get_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
	assert_memory_equal(&it, &untouched, sizeof it);
	wq_add_str(q, "k");
	get_is(q, &it, "k");
	IS(wq_done(q, &it), WQ_OK);
	wq_shutdown(q);
	it = untouched;
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
	IS(wq_get(q, &it), WQ_ESHUTDOWN);
	assert_memory_equal(&it, &untouched, sizeof it);
}

static void get_until_ends_at_its_deadline_not_before(void **state)
{
	struct fixture *f = *state;
	struct getter early, late;

	getter_block(&early, f->q, START_NS + 5 * WQ_SECOND);
	getter_block(&late, f->q, START_NS + 6 * WQ_SECOND);
	wq_manual_clock_advance(f->mc, 5 * WQ_SECOND - 1);
	actor_blocks(&early.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(getter_join(&early), WQ_ETIMEDOUT);
	actor_blocks(&late.actor);
	wq_add_str(f->q, "k"); /* who timed out takes no wake-up along */
	IS(getter_join(&late), WQ_OK);
	IS(wq_done(f->q, &late.item), WQ_OK);
}

static void get_until_a_time_that_has_passed_looks_once(void **state)
{
	struct fixture *f = *state;
	wq_item it = untouched;

	IS(wq_get_until(f->q, &it, 0), WQ_ETIMEDOUT);
	IS(wq_get_until(f->q, &it, START_NS), WQ_ETIMEDOUT);
	IS(wq_get_for(f->q, &it, 0), WQ_ETIMEDOUT);
	IS(wq_get_for(f->q, &it, -1), WQ_ETIMEDOUT);
	IS(wq_get_for(f->q, &it, INT64_MIN), WQ_ETIMEDOUT);
	assert_memory_equal(&it, &untouched, sizeof it);
	wq_add_str(f->q, "a");
	wq_add_str(f->q, "b");
	IS(wq_get_until(f->q, &it, 0), WQ_OK);
	IS(wq_done(f->q, &it), WQ_OK);
	IS(wq_get_for(f->q, &it, -5), WQ_OK);
	IS(wq_done(f->q, &it), WQ_OK);
	wq_shutdown(f->q);
	IS(wq_get_for(f->q, &it, -5), WQ_ESHUTDOWN);
}

static void get_until_refuses_negative_times(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it = untouched;

	wq_add_str(q, "k");
	IS(wq_get_until(q, &it, -2), WQ_EINVAL);
	IS(wq_get_until(q, &it, INT64_MIN), WQ_EINVAL);
	IS(wq_get_many_until(q, &it, 1, -2), WQ_EINVAL);
	assert_memory_equal(&it, &untouched, sizeof it);
	check_whole(q, 1, 0);
}

static int64_t get_for_main(void *arg)
{
	struct getter *g = arg;

	return wq_get_for(g->q, &g->item, g->deadline_ns);
}

static void get_for_counts_from_now(void **state)
{
	struct fixture *f = *state;
	struct getter g = {.q = f->q, .deadline_ns = 2 * WQ_SECOND};
	struct getter ever = {.q = f->q, .deadline_ns = WQ_NEVER};

	actor_start(&ever.actor, get_for_main, &ever);
	actor_start(&g.actor, get_for_main, &g);
	actor_blocks(&g.actor);
	wq_manual_clock_advance(f->mc, 2 * WQ_SECOND - 1);
	actor_blocks(&g.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	actor_blocks(&ever.actor);
	wq_manual_clock_advance(f->mc, 1000 * WQ_HOUR);
	actor_blocks(&ever.actor);
	wq_add_str(f->q, "k");
	IS(getter_join(&ever), WQ_OK);
	IS(wq_done(f->q, &ever.item), WQ_OK);
}

static void get_many_takes_what_is_ready(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item items[8];

	IS(wq_get_many_until(q, items, 8, WQ_NOWAIT), WQ_EAGAIN);
	IS(wq_get_many_until(q, items, 8, 0), WQ_ETIMEDOUT);
	for (const char *k = "abcde"; *k; k++)
		wq_add(q, k, 1);
	IS(wq_get_many_until(q, items, 2, WQ_NEVER), 2);
	IS(wq_get_many_until(q, items + 2, 6, WQ_NEVER), 3); /* does not wait for 6 */
	for (int i = 0; i < 5; i++) {
		IS(*(const char *)items[i].key, 'a' + i); /* [FIFO] */
		IS(((const char *)items[i].key)[1], 0);
		IS((int64_t)items[i].len, 1);
		IS(items[i].attempts, 1);
		for (int j = 0; j < i; j++)
			assert_true(items[i].token != items[j].token);
		IS(wq_done(q, &items[i]), WQ_OK);
	}
	wq_shutdown(q);
	IS(wq_get_many_until(q, items, 8, WQ_NEVER), WQ_ESHUTDOWN);
}

static int64_t get_many_main(void *arg)
{
	struct getter *g = arg;

	return wq_get_many_until(g->q, &g->item, 1, g->deadline_ns);
}

static void get_many_blocks_for_the_first(void **state)
{
	struct fixture *f = *state;
	struct getter g = {.q = f->q, .deadline_ns = WQ_NEVER};
	struct getter h = {.q = f->q, .deadline_ns = START_NS + 1};

	actor_start(&h.actor, get_many_main, &h);
	actor_blocks(&h.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(actor_join(&h.actor), WQ_ETIMEDOUT);
	actor_start(&g.actor, get_many_main, &g);
	actor_blocks(&g.actor);
	wq_add_str(f->q, "k");
	IS(actor_join(&g.actor), 1);
	IS(wq_done(f->q, &g.item), WQ_OK);
}

/* [INTR] So many blocked Gets return, and no more. */
static void interrupt_returns_n_blocked_gets(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g[4];
	int interrupted = 0;

	for (size_t i = 0; i < LENGTH(g); i++)
		getter_block(&g[i], q, WQ_NEVER);
	IS(wq_interrupt(q, 3), 0);
	while (interrupted < 3) { /* bounded by the test's time limit */
		sched_yield();
		interrupted = 0;
		for (size_t i = 0; i < LENGTH(g); i++)
			interrupted += actor_finished(&g[i].actor);
	}
	IS(interrupted, 3);
	IS(wq_interrupt(q, 0), 0); /* none was left over */
	for (size_t i = 0; i < LENGTH(g); i++)
		if (!actor_finished(&g[i].actor))
			actor_blocks(&g[i].actor);
	wq_add_str(q, "k");

	int got = 0;

	for (size_t i = 0; i < LENGTH(g); i++) {
		int rc = getter_join(&g[i]);

		assert_true(rc == WQ_EINTERRUPTED || rc == WQ_OK);
		if (rc == WQ_OK) {
			got++;
			IS(wq_done(q, &g[i].item), WQ_OK);
		}
	}
	IS(got, 1);
}

/* [INTR] What finds nobody is kept for Gets that would block, and can be taken back. */
static void interrupt_is_kept_for_the_next_gets(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it = untouched;

	IS(wq_interrupt(q, 2), 0);
	IS(wq_interrupt(q, 3), 2);
	IS(wq_get(q, &it), WQ_EINTERRUPTED);
	IS(wq_get_for(q, &it, WQ_HOUR), WQ_EINTERRUPTED);
	IS(wq_get_many_until(q, &it, 1, WQ_NEVER), WQ_EINTERRUPTED);
	assert_memory_equal(&it, &untouched, sizeof it);
	IS(wq_try_get(q, &it), WQ_EAGAIN); /* would not block */
	wq_add_str(q, "k");
	IS(wq_get(q, &it), WQ_OK); /* a Get that finds a key is not interrupted */
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_interrupt(q, 0), 2); /* takes back what was kept */
	IS(wq_interrupt(q, 0), 0);
	IS(wq_get_until(q, &it, START_NS), WQ_ETIMEDOUT);
	check_whole(q, 0, 0);
}

static void interrupt_splits_between_blocked_and_next(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;
	wq_item it;

	getter_block(&g, q, WQ_NEVER);
	IS(wq_interrupt(q, 2), 0);
	IS(getter_join(&g), WQ_EINTERRUPTED);
	IS(wq_get(q, &it), WQ_EINTERRUPTED);
	IS(wq_interrupt(q, 0), 0);
	IS(wq_interrupt(q, -1), WQ_EINVAL);
	IS(wq_interrupt(q, INT32_MIN), WQ_EINVAL);
	IS(wq_interrupt(q, 0), 0);
}

/* What made a blocked Get return was not kept, so it cannot be taken back. */
static void interrupt_of_a_blocked_get_is_not_taken_back(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (int round = 0; round < 20; round++) {
		struct getter g;

		getter_block(&g, q, WQ_NEVER);
		IS(wq_interrupt(q, 1), 0);
		IS(wq_interrupt(q, 0), 0);
		IS(getter_join(&g), WQ_EINTERRUPTED);
	}
}

static void interrupt_many_times_over(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	/* sums that do not fit are not allowed to wrap into a negative answer */
	IS(wq_interrupt(q, INT32_MAX), 0);
	IS(wq_interrupt(q, INT32_MAX), INT32_MAX);

	int kept = wq_interrupt(q, 0);

	IS(kept, INT32_MAX);
	IS(wq_interrupt(q, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(try_get_does_not_wait),
	    WITH_FIXTURE(get_until_ends_at_its_deadline_not_before),
	    WITH_FIXTURE(get_until_a_time_that_has_passed_looks_once),
	    WITH_FIXTURE(get_until_refuses_negative_times),
	    WITH_FIXTURE(get_for_counts_from_now),
	    WITH_FIXTURE(get_many_takes_what_is_ready),
	    WITH_FIXTURE(get_many_blocks_for_the_first),
	    WITH_FIXTURE(interrupt_returns_n_blocked_gets),
	    WITH_FIXTURE(interrupt_is_kept_for_the_next_gets),
	    WITH_FIXTURE(interrupt_splits_between_blocked_and_next),
	    WITH_FIXTURE(interrupt_of_a_blocked_get_is_not_taken_back),
	    WITH_FIXTURE(interrupt_many_times_over),
	};

	return cmocka_run_group_tests_name("get", tests, NULL, NULL);
}
