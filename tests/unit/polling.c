/*
 * How long a Get polls before it sleeps follows how long it has to wait. Clock, CPU and
 * sleep are the test's: a key comes when the clock says so, in the midst of the poll or of
 * the sleep, added by this one thread.
 */
#include "../support/support.h"

#include "base/sync.h"

#include <sched.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int64_t __real_wq__clock_now(void);
int64_t __wrap_wq__clock_now(void);
bool __wrap_wq__one_cpu(void);
int __wrap_sched_getcpu(void);
bool __real_wq__parker_poll(wq__parker *p, uint32_t pauses);
bool __wrap_wq__parker_poll(wq__parker *p, uint32_t pauses);
bool __real_wq__parker_sleep(wq__parker *p, int64_t deadline_ns);
bool __wrap_wq__parker_sleep(wq__parker *p, int64_t deadline_ns);

enum { WAKE_NS = 25000 }; /* from the wake-up to the sleeper's next step */

static struct {
	wq_queue *q;
	int64_t clock_ns; /* 0: the real one */
	int64_t key_ns;   /* when the key comes */
	int key_cpu, cpu; /* where it is added; where whoever asks runs */
	int64_t polled_ns;
	int sleeps;
} world;

int64_t __wrap_wq__clock_now(void)
{
	return world.clock_ns ? world.clock_ns : __real_wq__clock_now();
}

bool __wrap_wq__one_cpu(void)
{
	return false;
}

int __wrap_sched_getcpu(void)
{
	return world.cpu;
}

static void bring_key(void)
{
	world.cpu = world.key_cpu;
	IS(wq_add_str(world.q, "k"), WQ_QUEUED);
	world.cpu = 0;
}

bool __wrap_wq__parker_poll(wq__parker *p, uint32_t pauses)
{
	int64_t ns = (int64_t)pauses * 1000 / wq__pauses_for(1000);

	world.polled_ns = ns;
	/* On the CPU of the poll nobody else runs meanwhile. */
	if (world.key_cpu != 0 && world.key_ns <= world.clock_ns + ns) {
		world.clock_ns = world.key_ns;
		bring_key();
	} else {
		world.clock_ns += ns;
	}
	return __real_wq__parker_poll(p, 1);
}

bool __wrap_wq__parker_sleep(wq__parker *p, int64_t deadline_ns)
{
	world.sleeps++;
	if (deadline_ns < world.key_ns) {
		world.clock_ns = deadline_ns + WAKE_NS;
		return false;
	}
	if (world.clock_ns < world.key_ns)
		world.clock_ns = world.key_ns;
	bring_key();
	world.clock_ns += world.key_cpu != 0 ? WAKE_NS : 1000;
	return __real_wq__parker_sleep(p, deadline_ns);
}

/* NOLINTEND(bugprone-reserved-identifier) */

static void open_world(int64_t spin_ns)
{
	world.clock_ns = 0;
	world.key_cpu = 1;
	IS(wq_new(&world.q, &(wq_options){.spin_ns = spin_ns}), WQ_OK);
	world.clock_ns = WQ_SECOND;
}

static void close_world(void)
{
	IS(wq_free(world.q), 0);
}

/* A Get whose key comes after so long: how long it polled. */
static int64_t wait_for_key(int64_t ns)
{
	wq_item it;

	world.key_ns = world.clock_ns + ns;
	world.polled_ns = 0;
	IS(wq_get(world.q, &it), WQ_OK);
	IS(wq_done(world.q, &it), WQ_OK);
	return world.polled_ns;
}

static void the_first_poll(void **state)
{
	(void)state;
	open_world(0);
	assert_in_range(wait_for_key(WQ_MILLISECOND), 29 * WQ_MICROSECOND, 31 * WQ_MICROSECOND);
	close_world();
}

static void shrink(void)
{
	for (int i = 0; i < 10; i++)
		wait_for_key(WQ_MILLISECOND);
	assert_int_equal(wait_for_key(WQ_MILLISECOND), 0);
}

static void long_waits_shrink_the_poll(void **state)
{
	int64_t before, now;

	(void)state;
	open_world(0);
	wait_for_key(10 * WQ_MICROSECOND);
	before = wait_for_key(WQ_MILLISECOND);
	assert_true(before > 45 * WQ_MICROSECOND && before < 55 * WQ_MICROSECOND);
	now = wait_for_key(WQ_MILLISECOND);
	assert_in_range(now, before / 2 - WQ_MICROSECOND, before / 2 + WQ_MICROSECOND);
	shrink();
	close_world();
}

/* The poll that missed was short; the longest would have met the key, so the next one does. */
static void one_short_wait_restores_it(void **state)
{
	static const int64_t waits_ns[] = {5 * WQ_MICROSECOND, 20 * WQ_MICROSECOND,
	                                   45 * WQ_MICROSECOND};

	(void)state;
	open_world(0);
	for (size_t i = 0; i < sizeof waits_ns / sizeof waits_ns[0]; i++) {
		shrink();
		wait_for_key(waits_ns[i]);
		world.sleeps = 0;
		for (int n = 0; n < 100; n++)
			assert_true(wait_for_key(waits_ns[i]) > 45 * WQ_MICROSECOND);
		assert_int_equal(world.sleeps, 0);
	}
	close_world();
}

/* Whether the poll is long or short now: what the longest misses leaves it short. */
static void waits_beyond_the_longest_poll(void **state)
{
	(void)state;
	open_world(0);
	for (int64_t us = 60; us < 1000; us += 50) {
		wait_for_key(WQ_MICROSECOND);
		for (int n = 0; n < 8; n++)
			wait_for_key(us * WQ_MICROSECOND);
		assert_int_equal(wait_for_key(us * WQ_MICROSECOND), 0);
	}
	close_world();
}

/* Who adds the key waits for the CPU that the poll occupies: the sleep is short, a poll in vain. */
static void one_cpu_for_both(void **state)
{
	(void)state;
	open_world(0);
	wait_for_key(WQ_MICROSECOND);
	world.key_cpu = 0;
	for (int i = 0; i < 8; i++)
		wait_for_key(WQ_MICROSECOND);
	assert_int_equal(wait_for_key(WQ_MICROSECOND), 0);
	world.key_cpu = 1; /* it moves to another */
	wait_for_key(20 * WQ_MICROSECOND);
	assert_true(wait_for_key(20 * WQ_MICROSECOND) > 45 * WQ_MICROSECOND);
	close_world();
}

static void a_deadline_is_no_key(void **state)
{
	wq_item it;

	(void)state;
	open_world(0);
	wait_for_key(WQ_MICROSECOND);
	world.key_ns = WQ_NEVER;
	for (int i = 0; i < 10; i++)
		IS(wq_get_until(world.q, &it, wq_now(world.q) + 30 * WQ_MICROSECOND), WQ_ETIMEDOUT);
	assert_int_equal(wait_for_key(WQ_MILLISECOND), 0);
	close_world();
}

static void a_fixed_poll_stays(void **state)
{
	(void)state;
	open_world(20 * WQ_MICROSECOND);
	for (int i = 0; i < 20; i++)
		assert_in_range(wait_for_key(i % 2 ? WQ_MICROSECOND : WQ_MILLISECOND),
		                19 * WQ_MICROSECOND, 21 * WQ_MICROSECOND);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_poll),
	    cmocka_unit_test(long_waits_shrink_the_poll),
	    cmocka_unit_test(one_short_wait_restores_it),
	    cmocka_unit_test(waits_beyond_the_longest_poll),
	    cmocka_unit_test(one_cpu_for_both),
	    cmocka_unit_test(a_deadline_is_no_key),
	    cmocka_unit_test(a_fixed_poll_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
