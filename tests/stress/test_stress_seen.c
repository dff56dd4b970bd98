/*
 * What was written before an add is seen by who holds the key: the promise that merging rests
 * on. Producers write the next value of a key, then add it; workers read the value while they
 * hold the key. When all is quiet, the last value of each key was seen by a hold that began
 * after it was written; no two ever held the same key. Adds, batches, delays and cancels come in,
 * single keys, batches, wq_next() and a pool go out.
 *
 *     test_stress_seen [--spin ...] [--one-cpu] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "../support/cancel.h"
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 64, BATCH = 5, ADDS = 60000, PRODUCERS = 3, ROUNDS = 3 };

static struct stress st;
static wq_queue *q;
static long adds;
/* Relaxed on purpose: only the queue orders a producer's write and a worker's read. */
static _Atomic uint32_t value[KEYS], seen[KEYS];
static uint32_t plain[KEYS]; /* written by who holds the key alone: for the thread sanitizer */
static _Atomic int holders[KEYS];
static atomic_long holds;

static void hold(const wq_item *it)
{
	uint32_t k, now, before;

	CHECK_EQ(it->len, sizeof k);
	memcpy(&k, it->key, sizeof k);
	CHECK(k < KEYS);
	CHECK_EQ(atomic_fetch_add_explicit(&holders[k], 1, memory_order_relaxed), 0);
	plain[k]++;
	now = atomic_load_explicit(&value[k], memory_order_relaxed);
	before = atomic_load_explicit(&seen[k], memory_order_relaxed);
	/* Values of one key only grow, and so does what its holders see of them. */
	CHECK((int32_t)(now - before) >= 0);
	atomic_store_explicit(&seen[k], now, memory_order_relaxed);
	atomic_fetch_sub_explicit(&holders[k], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&holds, 1, memory_order_relaxed);
}

static wq_verdict handler(void *ctx, const wq_item *it)
{
	(void)ctx;
	hold(it);
	return WQ_DONE;
}

static void write_value(uint32_t k)
{
	atomic_fetch_add_explicit(&value[k], 1, memory_order_relaxed);
}

/* Somebody is to hold keys meanwhile, else all adds merge. */
static void let_work(void)
{
	long before = atomic_load_explicit(&holds, memory_order_relaxed);

	while (atomic_load_explicit(&holds, memory_order_relaxed) == before && wq_len(q) > 0)
		sched_yield();
}

static void produce(void *ctx)
{
	uint64_t rng = st.seed * 31 + (uintptr_t)ctx;
	uint32_t number[BATCH];
	wq_key keys[BATCH];

	for (long i = 0; i < adds; i++) {
		/* A few keys are hot: they are merged, marked and revived all the time. */
		uint32_t k = stress_random(&rng) % (stress_random(&rng) % 2 ? 4 : KEYS);

		if (i % 16 == 0)
			let_work();
		switch (stress_random(&rng) % 16) {
		case 0:
			for (uint32_t j = 0; j < BATCH; j++) {
				number[j] = (k + j) % KEYS;
				write_value(number[j]);
				keys[j] = (wq_key){&number[j], sizeof number[j]};
			}
			CHECK_EQ(wq_add_many(q, keys, BATCH, NULL), BATCH);
			break;
		case 1:
			write_value(k);
			CHECK(wq_add_after(q, &k, sizeof k, 1 + stress_random(&rng) % 20000) > 0);
			break;
		case 2:
			/* What is cancelled is added again, so that nothing is left unseen. */
			CHECK(cancel_key(q, &k, sizeof k) >= WQ_ENOTFOUND);
			write_value(k);
			CHECK(wq_add(q, &k, sizeof k) > 0);
			break;
		default:
			write_value(k);
			CHECK(wq_add(q, &k, sizeof k) > 0);
		}
	}
}

static void work_single(void *ctx)
{
	wq_item it;

	(void)ctx;
	while (wq_get(q, &it) == WQ_OK) {
		hold(&it);
		CHECK(wq_done(q, &it) >= 0);
	}
}

static void work_next(void *ctx)
{
	wq_item it;
	int rc;

	(void)ctx;
	for (rc = wq_get(q, &it); rc == WQ_OK; rc = wq_next(q, &it))
		hold(&it);
	CHECK_EQ(rc, WQ_ESHUTDOWN);
}

static void work_many(void *ctx)
{
	wq_item items[BATCH];
	int n;

	(void)ctx;
	while ((n = wq_get_many_until(q, items, BATCH, WQ_NEVER)) > 0) {
		for (int i = 0; i < n; i++)
			hold(&items[i]);
		CHECK_EQ(wq_done_many(q, items, (size_t)n, NULL), n);
	}
}

static void look_on(void *ctx)
{
	(void)ctx;
	for (long i = 0; i < adds / 200; i++) {
		CHECK(wq_len(q) >= 0);
		CHECK(wq_wait_idle_until(q, 0) <= 0);
	}
}

static void all_were_seen(void)
{
	for (uint32_t k = 0; k < KEYS; k++)
		if (atomic_load(&seen[k]) != atomic_load(&value[k]))
			stress_fail(__FILE__, __LINE__,
			            "key %u: %u was written before its last add, but %u was seen",
			            k, atomic_load(&value[k]), atomic_load(&seen[k]));
}

static void round_of(void (*work)(void *), int workers, bool pooled)
{
	struct crew in = {.n = 0}, out = {.n = 0};
	wq_pool *pool = NULL;

	atomic_store(&holds, 0);
	q = stress_queue(&st, NULL);
	if (pooled)
		CHECK_EQ(wq_pool_start(&pool, q,
		                       &(wq_pool_options){.workers = (uint32_t)workers,
		                                          .handler = handler}),
		         WQ_OK);
	for (int i = 0; i < workers && !pooled; i++)
		crew_add(&out, work, NULL);
	for (uintptr_t i = 1; i <= PRODUCERS; i++)
		crew_add(&in, produce, (void *)i);
	crew_add(&in, look_on, NULL);
	if (!pooled)
		crew_start(&out);
	crew_start(&in);
	crew_join(&in);
	CHECK_EQ(wq_drain_until(q, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_RUN}, NULL),
	         WQ_OK);
	if (pooled)
		CHECK_EQ(wq_pool_free(pool), WQ_OK);
	else
		crew_join(&out);
	all_were_seen();
	CHECK_EQ(wq_free(q), 0);
	printf("%d workers: %ld holds\n", workers, atomic_load(&holds));
}

int main(int argc, char **argv)
{
	stress_init(&st, argc, argv, NULL);
	adds = stress_ops(&st, ADDS);
	round_of(work_single, 1, false);
	round_of(work_single, ROUNDS, false);
	round_of(work_next, 2, false);
	round_of(work_many, 2, false);
	round_of(NULL, 2, true);
	return 0;
}
