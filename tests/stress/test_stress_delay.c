/*
 * A delay queue between producers and takers of all kinds, on the real clock:
 * takes that wait, takes that give up after some microseconds, and polls.
 * Values expire at once or within SPAN_NS, many at the same nanosecond. Each is
 * taken exactly once and never early; a wake-up that is lost is a hang.
 *
 *     test_stress_delay [--one-cpu] [--seed N] [--scale X]
 *
 * Rounds: in each a queue is made, used, closed and freed; in every other one it
 * is closed while values are left, which free must then count.
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ROUNDS = 40,
	PRODUCERS = 3,
	TAKERS = 3,
	TIMED = 2,
	POLLERS = 1,
	VALUES = 4000, /* of each producer in a round */
	SPAN_NS = 100000,
};

struct value {
	int64_t expiry_ns;
	atomic_int taken;
};

static struct stress st;
static wq_delayqueue *dq;
static struct value *values;
static atomic_long offered, taken, timed_out;
static atomic_int producing;
static long each; /* values of a producer */
static bool early_close;

static void got(void *p)
{
	struct value *v = p;

	CHECK(wq_clock_monotonic() >= v->expiry_ns);
	CHECK_EQ(atomic_fetch_add(&v->taken, 1), 0);
	atomic_fetch_add(&taken, 1);
}

static int64_t some_expiry(uint64_t *random, int64_t last)
{
	switch (stress_random(random) % 4) {
	case 0:
		return 0;
	case 1:
		return last;
	default:
		return wq_delayqueue_now(dq) + stress_random(random) % SPAN_NS;
	}
}

static void produce(void *ctx)
{
	uintptr_t number = (uintptr_t)ctx;
	uint64_t random = st.seed + number;
	int64_t last = 0;

	for (long i = 0; i < each; i++) {
		struct value *v = &values[(long)number * each + i];

		last = v->expiry_ns = some_expiry(&random, last);

		int rc = wq_delayqueue_offer(dq, v, v->expiry_ns);

		if (rc == WQ_ESHUTDOWN && early_close)
			break;
		CHECK_EQ(rc, WQ_OK);
		atomic_fetch_add(&offered, 1);
		/* Let it run dry now and then, so that takers sleep. */
		if (stress_random(&random) % 256 == 0)
			while (atomic_load(&taken) < atomic_load(&offered) &&
			       !(early_close && atomic_load(&producing) < PRODUCERS))
				sched_yield();
		if (early_close && number == 0 && i == each / 2)
			CHECK_EQ(wq_delayqueue_close(dq), WQ_OK);
	}
	if (atomic_fetch_sub(&producing, 1) > 1 || early_close)
		return;
	while (atomic_load(&taken) < atomic_load(&offered))
		sched_yield();
	CHECK_EQ(wq_delayqueue_close(dq), WQ_OK);
}

static void take(void *ctx)
{
	void *v;
	int rc;

	(void)ctx;
	while ((rc = wq_delayqueue_take(dq, &v)) == WQ_OK)
		got(v);
	CHECK_EQ(rc, WQ_ESHUTDOWN);
}

static void take_timed(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	void *v;
	int rc;

	for (;;) {
		int64_t deadline = wq_delayqueue_now(dq) + stress_random(&random) % (SPAN_NS / 2);

		rc = wq_delayqueue_take_until(dq, &v, deadline);
		if (rc == WQ_OK) {
			got(v);
			continue;
		}
		if (rc == WQ_ESHUTDOWN)
			return;
		CHECK_EQ(rc, WQ_ETIMEDOUT);
		CHECK(wq_clock_monotonic() >= deadline);
		atomic_fetch_add(&timed_out, 1);
	}
}

static void poll(void *ctx)
{
	void *v;
	int rc;

	(void)ctx;
	while ((rc = wq_delayqueue_poll(dq, &v)) != WQ_ESHUTDOWN) {
		if (rc == WQ_OK)
			got(v);
		else
			CHECK_EQ(rc, WQ_EAGAIN);
		CHECK(wq_delayqueue_size(dq) >= 0);
		CHECK(wq_delayqueue_next(dq) >= 0);
		sched_yield();
	}
}

/* What has expired since the close is still there for the taking; the rest is counted. */
static void close_round(void)
{
	long left = 0;
	void *v;

	while (wq_delayqueue_poll(dq, &v) == WQ_OK)
		got(v);
	for (long i = 0; i < PRODUCERS * each; i++)
		CHECK(atomic_load(&values[i].taken) <= 1);
	left = atomic_load(&offered) - atomic_load(&taken);
	CHECK_EQ(wq_delayqueue_size(dq), left);
	CHECK_EQ(wq_delayqueue_free(dq), left);
	if (!early_close)
		CHECK_EQ(left, 0);
}

int main(int argc, char **argv)
{
	static struct crew crew;
	long total = 0, rounds;

	stress_init(&st, argc, argv, NULL);
	rounds = stress_ops(&st, ROUNDS);
	each = VALUES;
	values = malloc(PRODUCERS * (size_t)each * sizeof *values);
	CHECK(values != NULL);
	for (long r = 0; r < rounds; r++, st.seed++) {
		for (long i = 0; i < PRODUCERS * each; i++)
			values[i] = (struct value){0};
		early_close = r % 2 == 1;
		atomic_store(&offered, 0);
		atomic_store(&taken, 0);
		atomic_store(&producing, PRODUCERS);
		CHECK_EQ(wq_delayqueue_new(&dq, NULL), WQ_OK);
		for (int i = 0; i < PRODUCERS; i++)
			crew_add(&crew, produce, (void *)(uintptr_t)i);
		for (int i = 0; i < TAKERS; i++)
			crew_add(&crew, take, NULL);
		for (int i = 0; i < TIMED; i++)
			crew_add(&crew, take_timed, (void *)(uintptr_t)(100 + i));
		for (int i = 0; i < POLLERS; i++)
			crew_add(&crew, poll, NULL);
		crew_start(&crew);
		crew_join(&crew);
		total += atomic_load(&taken);
		close_round();
	}
	printf("%ld values in %ld rounds, %ld time-outs\n", total, rounds, atomic_load(&timed_out));
	free(values);
	return 0;
}
