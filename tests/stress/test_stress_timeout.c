/*
 * Time-outs that race with wake-ups.
 *
 *     test_stress_timeout [--spin ...] [--one-cpu] [--seed N] [--scale X]
 *
 * In each round some threads make one Get with a deadline of a few
 * microseconds and then stay away until the next round, and one key is added
 * at about that time. One more thread sits in a Get without a deadline. If a
 * Get that times out takes the wake-up with it, the key lies in line beside
 * that sleeper for ever: the program hangs. Each key must come exactly once.
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	TIMED = 3,
	ROUNDS = 10000,
	SPAN_NS = 40000,      /* deadlines lie within this, from the round's begin */
	ADD_NS = 4 * SPAN_NS, /* and the add within this: some after all time-outs */
};

static struct stress st;
static wq_queue *q;
static atomic_long current_round, consumed, timed_out, in_time;
static atomic_int away; /* timed threads that are through with this round */

static void take(const wq_item *it, long *last)
{
	long number;

	CHECK_EQ(it->len, sizeof number);
	memcpy(&number, it->key, sizeof number);
	/* One key a round, and the round ends when it is consumed. */
	CHECK_EQ(number, atomic_load(&current_round));
	CHECK(number > *last);
	*last = number;
	CHECK_EQ(wq_done(q, it), WQ_OK);
	CHECK_EQ(atomic_fetch_add(&consumed, 1), number - 1);
}

static void forever(void *ctx)
{
	wq_item it;
	long last = 0;
	int rc;

	(void)ctx;
	while ((rc = wq_get(q, &it)) == WQ_OK)
		take(&it, &last);
	CHECK_EQ(rc, WQ_ESHUTDOWN);
}

static void timed(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	long rounds = stress_ops(&st, ROUNDS), last = 0;

	for (long r = 1; r <= rounds; r++) {
		wq_item it;

		while (atomic_load(&current_round) < r)
			sched_yield();
		int rc = wq_get_for(q, &it, stress_random(&random) % SPAN_NS);

		if (rc == WQ_OK) {
			atomic_fetch_add(&in_time, 1);
			take(&it, &last);
		} else {
			CHECK_EQ(rc, WQ_ETIMEDOUT);
			atomic_fetch_add(&timed_out, 1);
		}
		atomic_fetch_add(&away, 1);
	}
}

static void produce(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	long rounds = stress_ops(&st, ROUNDS);

	for (long r = 1; r <= rounds; r++) {
		atomic_store(&away, 0);
		atomic_store(&current_round, r);

		int64_t at = wq_now(q) + stress_random(&random) % ADD_NS;

		while (wq_now(q) < at)
			;
		CHECK_EQ(wq_add(q, &r, sizeof r), WQ_QUEUED);
		while (atomic_load(&consumed) < r || atomic_load(&away) < TIMED)
			sched_yield();
	}
	CHECK_EQ(wq_shutdown(q), WQ_OK);
}

int main(int argc, char **argv)
{
	static struct crew crew;

	stress_init(&st, argc, argv, NULL);
	q = stress_queue(&st, NULL);
	crew_add(&crew, forever, NULL);
	for (int i = 0; i < TIMED; i++)
		crew_add(&crew, timed, (void *)(uintptr_t)(10 + i));
	crew_add(&crew, produce, (void *)(uintptr_t)1);
	crew_start(&crew);
	crew_join(&crew);
	CHECK_EQ(atomic_load(&consumed), stress_ops(&st, ROUNDS));
	printf("%ld keys, %ld of them by timed Gets; %ld time-outs\n", atomic_load(&consumed),
	       atomic_load(&in_time), atomic_load(&timed_out));
	CHECK_EQ(wq_free(q), 0);
	return 0;
}
