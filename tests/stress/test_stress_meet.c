/*
 * Handlers that wait for each other. In each round as many keys become ready
 * as there are workers, and every worker waits until all of them are held. A
 * wake-up that is only late elsewhere, because some busy worker comes round
 * and takes the key, is a hang here: a key in line beside a sleeping worker
 * stays there.
 *
 *     test_stress_meet [--spin ...] [--one-cpu] [--seed N] [--scale X]
 *
 * Keys become ready in every way there is: added one by one or in one call,
 * marked and then done, or requeued. In between, all workers are interrupted.
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	WORKERS = 10, /* more than one call wakes by itself */
	ROUNDS = 15000,
};

enum how { ADD, ADD_MANY, DONE, DONE_MANY, REQUEUE, HOWS };

static struct stress st;
static wq_queue *q;
static atomic_long current_round, complete;
static atomic_int met;
static atomic_long interrupted;
static wq_item held[WORKERS];

/* Takes one key or two, at most; two must not keep others from their one. */
static int get(wq_item *items, uint64_t *random)
{
	if (stress_random(random) % 2)
		return wq_get_many_until(q, items, 2, WQ_NEVER);
	int rc = wq_get(q, items);

	return rc == WQ_OK ? 1 : rc;
}

static void work(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	wq_item items[2];
	int rc;

	while ((rc = get(items, &random)) != WQ_ESHUTDOWN) {
		if (rc == WQ_EINTERRUPTED) {
			atomic_fetch_add(&interrupted, 1);
			continue;
		}
		CHECK(rc == 1 || rc == 2);
		long r = atomic_load(&current_round);

		for (int i = 0; i < rc; i++) {
			int k;

			CHECK_EQ(items[i].len, sizeof k);
			memcpy(&k, items[i].key, sizeof k);
			CHECK(k >= 0 && k < WORKERS);
			held[k] = items[i];
			if (atomic_fetch_add(&met, 1) + 1 == WORKERS)
				atomic_store(&complete, r);
		}
		while (atomic_load(&complete) < r)
			sched_yield();
	}
}

static void add_all(int want)
{
	for (int k = 0; k < WORKERS; k++)
		CHECK_EQ(wq_add(q, &k, sizeof k), want);
}

static void begin(long r)
{
	atomic_store(&met, 0);
	atomic_store(&current_round, r);
}

/* The items of the round before are held; makes all keys ready again. */
static void ready(long r, enum how how, uint64_t *random)
{
	int numbers[WORKERS];
	wq_key keys[WORKERS];

	switch (how) {
	case ADD:
	case ADD_MANY:
		if (r > 1)
			CHECK_EQ(wq_done_many(q, held, WORKERS, NULL), WORKERS);
		begin(r);
		if (how == ADD) {
			add_all(WQ_QUEUED);
			return;
		}
		for (int k = 0; k < WORKERS; k++) {
			numbers[k] = k;
			keys[k] = (wq_key){&numbers[k], sizeof numbers[k]};
		}
		CHECK_EQ(wq_add_many(q, keys, WORKERS, NULL), WORKERS);
		return;
	case DONE:
	case DONE_MANY:
	case REQUEUE:
	case HOWS:
		break;
	}

	/* held[] is written again as soon as the first key is ready. */
	wq_item items[WORKERS];

	memcpy(items, held, sizeof items);
	if (how != REQUEUE)
		add_all(WQ_MARKED);
	begin(r);
	if (how == DONE_MANY)
		CHECK_EQ(wq_done_many(q, items, WORKERS, NULL), WORKERS);
	for (int k = 0; how == DONE && k < WORKERS; k++)
		CHECK_EQ(wq_done(q, &items[k]), WQ_QUEUED);
	for (int k = 0; how == REQUEUE && k < WORKERS; k++)
		CHECK_EQ(wq_requeue(q, &items[k], stress_random(random) & 1 ? WQ_HEAD : WQ_TAIL),
		         WQ_QUEUED);
}

static void lead(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	long rounds = stress_ops(&st, ROUNDS), asked = 0;

	for (long r = 1; r <= rounds; r++) {
		ready(r, r == 1 ? ADD : (enum how)(stress_random(&random) % HOWS), &random);
		while (atomic_load(&complete) < r)
			sched_yield();
		if (stress_random(&random) % 4 != 0)
			continue;
		CHECK(wq_interrupt(q, WORKERS) >= 0);
		asked += WORKERS;
		while (atomic_load(&interrupted) < asked)
			sched_yield();
	}
	CHECK_EQ(wq_done_many(q, held, WORKERS, NULL), WORKERS);
	CHECK_EQ(wq_drain_for(q, WQ_NEVER, NULL, NULL), WQ_OK);
	CHECK_EQ(atomic_load(&interrupted), asked);
}

int main(int argc, char **argv)
{
	static struct crew crew;

	stress_init(&st, argc, argv, NULL);
	q = stress_queue(&st, NULL);
	for (int i = 0; i < WORKERS; i++)
		crew_add(&crew, work, (void *)(uintptr_t)(10 + i));
	crew_add(&crew, lead, (void *)(uintptr_t)1);
	crew_start(&crew);
	crew_join(&crew);
	printf("%ld rounds, %ld interrupted\n", atomic_load(&complete), atomic_load(&interrupted));
	CHECK_EQ(wq_free(q), 0);
	return 0;
}
