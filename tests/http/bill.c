/* What the server charges a walk with: its own time while it waits, the clock's when it was stopped. */
#define _GNU_SOURCE
#include "support/support.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "http/bill.h"

static long stops(void)
{
	struct rusage u;

	IS(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nivcsw;
}

/* Who waits does not hold a lock. A wait during which the thread is stopped says nothing: again. */
static void test_waiting_is_free(void **state)
{
	struct wq__bill b;
	long before;

	(void)state;
	do {
		before = stops();
		wq__bill_open(&b);
		poll(NULL, 0, 100);
		wq__bill_cut(&b);
	} while (stops() != before);
	assert_in_range(b.sum_ns, 0, 50 * WQ_MILLISECOND);
}

static int64_t own_time(void)
{
	struct timespec t;

	IS(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

static void work(void)
{
	int64_t until = own_time() + WQ_MILLISECOND / 5;

	while (own_time() < until)
		;
}

/* Both pieces, and nothing else. */
static void test_work_is_charged(void **state)
{
	struct wq__bill b;
	int64_t own_ns;
	long before;

	(void)state;
	do {
		before = stops();
		own_ns = -own_time();
		wq__bill_open(&b);
		work();
		wq__bill_cut(&b);
		work();
		wq__bill_cut(&b);
		own_ns += own_time();
	} while (stops() != before);
	assert_in_range(b.sum_ns, 2 * (WQ_MILLISECOND / 5), own_ns);
}

static atomic_bool ending;

static void *compete(void *arg)
{
	(void)arg;
	while (!atomic_load(&ending))
		;
	return NULL;
}

/* All threads that are started from now on share one CPU with this one. */
static void stay_on_one_cpu(void)
{
	cpu_set_t mine, one;
	size_t cpu = 0;

	IS(sched_getaffinity(0, sizeof mine, &mine), 0);
	while (!CPU_ISSET(cpu, &mine))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	IS(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The time that another thread took is charged too, but for stops that hit a cut itself: those are few. */
static void test_being_stopped_is_not(void **state)
{
	struct wq__bill b;
	pthread_t other;
	int64_t clock_ns, own_ns;
	long before;

	(void)state;
	stay_on_one_cpu();
	IS(pthread_create(&other, NULL, compete, NULL), 0);
	before = stops();
	clock_ns = -wq_clock_monotonic();
	own_ns = -own_time();
	wq__bill_open(&b);
	while (stops() < before + 20) {
		work();
		wq__bill_cut(&b);
	}
	clock_ns += wq_clock_monotonic();
	own_ns += own_time();
	atomic_store(&ending, true);
	pthread_join(other, NULL);
	/* The two clocks are not read in the same instant: a stop in between may count twice. */
	assert_in_range(b.sum_ns, own_ns + (clock_ns - own_ns) / 2, clock_ns + clock_ns / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waiting_is_free),
	    cmocka_unit_test(test_work_is_charged),
	    cmocka_unit_test(test_being_stopped_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
