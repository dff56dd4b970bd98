/*
 * Stamps by the CPU's counter. The clock they are held against is the test's own and made of
 * that counter, two ticks to a nanosecond, so that it can be stopped, hastened or slowed down.
 */
#include "../support/support.h"

#include <limits.h>

#include "base/sync.h"
#include "time/ticks.h"

#if defined(__x86_64__)

enum {
	NEAR_NS =
	    300, /* two looks of up to 400 ticks are off by 100 ns each, and 1 ms of learning */
	SLOW_TICKS = 1000,
};

#define MS INT64_C(1000000)

static struct {
	uint64_t from; /* the counter at from_ns */
	int64_t from_ns;
	int64_t percent; /* of its usual speed */
	bool slow;       /* as if the kernel had to be called */
	long looks;
} fake;

int64_t __wrap_wq__clock_now(void); /* NOLINT(bugprone-reserved-identifier): the linker's name */

int64_t __wrap_wq__clock_now(void) /* NOLINT(bugprone-reserved-identifier) */
{
	uint64_t gone = wq__ticks_read() - fake.from;

	fake.looks++;
	while (fake.slow && wq__ticks_read() - fake.from < gone + SLOW_TICKS)
		;
	return fake.from_ns + (int64_t)gone * fake.percent / 200;
}

static void set_speed(int64_t percent)
{
	uint64_t at = wq__ticks_read();

	fake.from_ns += (int64_t)(at - fake.from) * fake.percent / 200;
	fake.from = at;
	fake.percent = percent;
}

static int begin(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof fake);
	fake.from = wq__ticks_read();
	fake.from_ns = 1000 * MS;
	fake.percent = 100;
	return 0;
}

/* Stamps for so many ms of ticks; how far the worst one was from the clock, looked at before and after. */
static int64_t stamp_for(struct wq__ticks *t, int64_t ms)
{
	uint64_t begun = wq__ticks_read();
	int64_t worst = 0;

	while (wq__ticks_read() - begun < (uint64_t)(2 * ms * MS)) {
		int64_t before = wq__clock_now(), stamp = wq__ticks_now(t), after = wq__clock_now();
		int64_t off = stamp < before ? before - stamp : stamp > after ? stamp - after : 0;

		worst = off > worst ? off : worst;
	}
	return worst;
}

/* Until the counter is trusted; it takes 10 ms of learning, more on a busy machine. */
static void learn(struct wq__ticks *t)
{
	for (int i = 0; i < 1000 && t->span == 0; i++)
		stamp_for(t, 1);
	assert_true(t->span > 0);
}

static void stamps_are_near_the_clock(void **state)
{
	struct wq__ticks t = {0};

	(void)state;
	assert_true(stamp_for(&t, 1) == 0);
	learn(&t);
	assert_true(stamp_for(&t, 100) <= NEAR_NS);
	/* 1 ms, in ticks. */
	assert_true(t.span > 2 * MS - MS / 100 && t.span < 2 * MS + MS / 100);
}

/* Or nothing is won. */
static void between_two_looks_it_is_not_asked(void **state)
{
	struct wq__ticks t = {0};
	long before, fewest = LONG_MAX;

	(void)state;
	learn(&t);
	for (int i = 0; i < 1000; i++) {
		before = fake.looks;
		for (int k = 0; k < 100; k++)
			wq__ticks_now(&t);
		fewest = fake.looks - before < fewest ? fake.looks - before : fewest;
	}
	assert_int_equal(fewest, 0);
}

/* The machine sleeps: the clock stands still, the counter does not. */
static void a_clock_that_stands_still(void **state)
{
	struct wq__ticks t = {0};

	(void)state;
	learn(&t);
	set_speed(0);
	assert_true(stamp_for(&t, 30) <= 2 * MS);
	set_speed(100);
	assert_true(stamp_for(&t, 30) <= 2 * MS);
	learn(&t);
	stamp_for(&t, 30); /* what was learned half in the one, half in the other, is forgotten */
	learn(&t);
	assert_true(stamp_for(&t, 30) <= NEAR_NS);
}

/* On another machine, say. What was learned is wrong from one moment to the next. */
static void a_clock_of_another_speed(void **state)
{
	struct wq__ticks t = {0};
	bool doubted = false;

	(void)state;
	learn(&t);
	set_speed(150);
	for (int i = 0; i < 100 && !doubted; i++) {
		assert_true(stamp_for(&t, 1) <= MS);
		doubted = t.span == 0;
	}
	assert_true(doubted);
	learn(&t);
	assert_true(stamp_for(&t, 30) <= NEAR_NS);
}

static void a_counter_that_goes_back(void **state)
{
	struct wq__ticks t = {0};

	(void)state;
	learn(&t);
	t.at += 1000 * (uint64_t)MS;

	int64_t before = wq__clock_now(), stamp = wq__ticks_now(&t), after = wq__clock_now();

	assert_true(before <= stamp && stamp <= after);
}

/* Where the kernel does not trust the counter, it takes long to answer. */
static void a_slow_clock_is_looked_at_each_time(void **state)
{
	struct wq__ticks t = {0};

	(void)state;
	fake.slow = true;
	assert_true(stamp_for(&t, 50) == 0);
	assert_true(t.span == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(stamps_are_near_the_clock, begin),
	    cmocka_unit_test_setup(between_two_looks_it_is_not_asked, begin),
	    cmocka_unit_test_setup(a_clock_that_stands_still, begin),
	    cmocka_unit_test_setup(a_clock_of_another_speed, begin),
	    cmocka_unit_test_setup(a_counter_that_goes_back, begin),
	    cmocka_unit_test_setup(a_slow_clock_is_looked_at_each_time, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77;
}

#endif
