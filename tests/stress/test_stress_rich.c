/*
 * Priorities, groups and values with real threads. Producers add keys of a few groups, now and
 * later, each time with a value of their own; workers of every style hold them, some fail or give
 * them back; others walk and look.
 *
 *     test_stress_rich [rate] [--spin ...] [--one-cpu] [--seed N] [--scale X]
 *
 * Checked: no two hold a key; no group has more holds than its limit; each value that was accepted
 * is part of the value of some hold; with `rate`, no group starts faster than its tokens come.
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	GROUPS = 6,
	KEYS = 48,
	LIMIT = 2,
	PRODUCERS = 3,
	BATCH = 4,
	ADDS = 100000,
	RATED_ADDS = 10000,
	WALKS = 200,
	RATE = 20000,
	BURST = 3,
};

/* A value: who added it, and which one it was. */
struct token {
	uint32_t producer, number;
};

static struct stress st;
static wq_queue *q;
static long adds;
static bool rated;
static _Atomic unsigned char *seen[PRODUCERS];
static _Atomic int holders[KEYS], running[GROUPS];
static atomic_long starts[GROUPS], holds;
static uint32_t plain[KEYS]; /* written by who holds the key alone: for the thread sanitizer */

/* The group is the first byte. */
static wq_separator slash = {.byte = '/', .n = 1};

static void key_name(uint32_t k, char *name)
{
	name[0] = (char)('a' + k % GROUPS);
	name[1] = '/';
	name[2] = (char)(1 + k);
}

static uint32_t begin(const wq_item *it)
{
	uint32_t k;

	CHECK_EQ(it->len, 3);
	k = (uint32_t)((const char *)it->key)[2] - 1;
	CHECK(k < KEYS);
	CHECK_EQ(atomic_fetch_add_explicit(&holders[k], 1, memory_order_relaxed), 0);
	CHECK(atomic_fetch_add_explicit(&running[k % GROUPS], 1, memory_order_relaxed) < LIMIT);
	plain[k]++;
	CHECK_EQ(it->value_len % sizeof(struct token), 0);
	for (size_t at = 0; at < it->value_len; at += sizeof(struct token)) {
		struct token t;

		memcpy(&t, (const char *)it->value + at, sizeof t);
		CHECK(t.producer < PRODUCERS && t.number < adds);
		atomic_store_explicit(&seen[t.producer][t.number], 1, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&starts[k % GROUPS], 1, memory_order_relaxed);
	return k;
}

/* Before the call that ends the hold. */
static void end(uint32_t k)
{
	atomic_fetch_sub_explicit(&running[k % GROUPS], 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&holders[k], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&holds, 1, memory_order_relaxed);
}

static wq_verdict handler(void *ctx, const wq_item *it)
{
	uint32_t k = begin(it);

	(void)ctx;
	end(k);
	return plain[k] % 64 == 0 ? wq_again_after(1000) : plain[k] % 32 == 0 ? WQ_RETRY : WQ_DONE;
}

/* What waits in line is worked off before more comes: values do not grow for ever. */
static void let_work(void)
{
	long before = atomic_load_explicit(&holds, memory_order_relaxed);

	while (atomic_load_explicit(&holds, memory_order_relaxed) == before && wq_len(q) > 0)
		sched_yield();
}

static void produce(void *ctx)
{
	uint32_t me = (uint32_t)(uintptr_t)ctx;
	uint64_t rng = st.seed * 31 + me;

	for (long i = 0; i < adds; i++) {
		uint32_t k = stress_random(&rng) % (stress_random(&rng) % 2 ? 4 : KEYS);
		struct token t = {.producer = me, .number = (uint32_t)i};
		wq_add_options o = {.priority = (int)(stress_random(&rng) % 20) - 10,
		                    .value = &t,
		                    .value_len = sizeof t};
		char name[3];
		int rc;

		if (i % 16 == 0)
			let_work();
		if (stress_random(&rng) % 8 == 0) {
			o.after_ns = 1 + stress_random(&rng) % 20000;
			o.policy = stress_random(&rng) % 2 ? WQ_REMIND : WQ_MIN;
		}
		key_name(k, name);
		while ((rc = wq_add_with(q, name, sizeof name, &o)) == WQ_ETOOLONG)
			let_work();
		CHECK(rc > 0);
	}
}

static void work_single(void *ctx)
{
	uint64_t rng = st.seed * 77 + (uintptr_t)ctx;
	wq_item it;

	while (wq_get(q, &it) == WQ_OK) {
		end(begin(&it));
		switch (stress_random(&rng) % 16) {
		case 0:
			CHECK(wq_requeue(q, &it, WQ_HEAD) == WQ_QUEUED);
			break;
		case 1:
			CHECK(wq_retry(q, &it) >= 0);
			break;
		default:
			CHECK(wq_done(q, &it) >= 0);
		}
	}
}

static void work_next(void *ctx)
{
	wq_item it;
	int rc;

	(void)ctx;
	for (rc = wq_get(q, &it); rc == WQ_OK; rc = wq_next(q, &it))
		end(begin(&it));
}

static void work_many(void *ctx)
{
	wq_item it[BATCH];
	int n;

	(void)ctx;
	while ((n = wq_get_many_until(q, it, BATCH, WQ_NEVER)) > 0) {
		uint32_t k[BATCH];

		for (int i = 0; i < n; i++)
			k[i] = begin(&it[i]);
		for (int i = 0; i < n; i++)
			end(k[i]);
		CHECK_EQ(wq_done_many(q, it, (size_t)n, NULL), n);
	}
}

static int show(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	CHECK_EQ(info->len, 3);
	CHECK(info->group.len == 1 &&
	      ((const char *)info->group.key)[0] == ((const char *)info->key)[0]);
	CHECK_EQ(info->value_len % sizeof(struct token), 0);
	return 0;
}

static void look(void *ctx)
{
	wq_snapshot s;

	(void)ctx;
	for (long i = 0; i < stress_ops(&st, WALKS); i++) {
		CHECK(wq_walk(q, show, NULL) >= 0);
		CHECK(wq_snapshot_take(q, &s) == WQ_OK);
		CHECK(s.running <= GROUPS * LIMIT);
		CHECK(s.blocked <= s.queued);
		sched_yield();
	}
}

static bool word(const char *w)
{
	rated = strcmp(w, "rate") == 0;
	return rated;
}

int main(int argc, char **argv)
{
	static struct crew producers, workers;
	wq_options o = {.priorities = 1,
	                .aging_ns = 50 * WQ_MICROSECOND,
	                .values = 1,
	                .merge = wq_merge_append,
	                .merge_ctx = "",
	                .group = wq_group_before,
	                .group_ctx = &slash,
	                .group_limit = LIMIT};
	wq_pool *pool;
	int64_t began;
	int drained;

	stress_init(&st, argc, argv, word);
	adds = stress_ops(&st, rated ? RATED_ADDS : ADDS);
	if (rated) {
		o.group_rate = RATE;
		o.group_burst = BURST;
	}
	o.limiter = wq_limiter_exponential(1000, 50000);
	q = stress_queue(&st, &o);
	began = wq_now(q);
	for (uintptr_t i = 0; i < PRODUCERS; i++) {
		seen[i] = calloc((size_t)adds, 1);
		CHECK(seen[i] != NULL);
		crew_add(&producers, produce, (void *)i);
	}
	crew_add(&producers, look, NULL);
	crew_add(&workers, work_single, (void *)1);
	crew_add(&workers, work_single, (void *)2);
	crew_add(&workers, work_next, NULL);
	crew_add(&workers, work_many, NULL);
	CHECK(wq_pool_start(&pool, q, &(wq_pool_options){.workers = 2, .handler = handler}) ==
	      WQ_OK);
	crew_start(&workers);
	crew_start(&producers);
	crew_join(&producers);
	drained = wq_drain_until(q, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL);
	/* A handler that asks to be called again during the drain leaves its key over. */
	CHECK(drained == WQ_OK || drained == WQ_LEFT);
	crew_join(&workers);
	CHECK(wq_pool_free(pool) == WQ_OK);
	for (int g = 0; g < GROUPS; g++) {
		double most = BURST + 1 + (double)(wq_now(q) - began) * RATE / 1e9;

		CHECK_EQ(running[g], 0);
		CHECK(!rated || (double)starts[g] <= most);
	}
	for (int i = 0; i < PRODUCERS; i++) {
		for (long n = 0; n < adds; n++)
			CHECK(seen[i][n]);
		free((void *)seen[i]);
	}
	CHECK((wq_free(q) == 0) == (drained == WQ_OK));
	return 0;
}
