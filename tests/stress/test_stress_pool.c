/*
 * Pools that are resized, paused, resumed and stopped at random while keys are
 * added, cancelled and waited for, on the real clock.
 *
 *     test_stress_pool [--one-cpu] [--spin ...] [--seed N] [--scale X]
 *
 * Rounds: in each a queue with two pools is made, used, drained in one of the
 * three ways, and freed. Handlers answer everything there is to answer.
 *
 * Checked:
 *   [ONE]    a flag in each key that its handler holds
 *   [KEEP]   each key has a version, raised before each add and read by the
 *            handler: in the end the last one was read, unless it was cancelled
 *   [POOL]   the counts of both pools are all handlers that were called; what was
 *            left over, died or was dropped is what the drain's report says
 *   everyone returns, nothing is left, every thread that started has ended
 */
#define _POSIX_C_SOURCE 200809L
#include "../support/cancel.h"
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	ROUNDS = 120,
	KEYS = 64,
	PRODUCERS = 2,
	OPS = 6000, /* of each producer in a round */
	MOST_WORKERS = 6,
};

struct key {
	_Atomic int busy;
	_Atomic uint64_t added, seen; /* versions */
	_Atomic bool cancelled;
};

static struct stress st;
static struct key keys[KEYS];
static wq_queue *q;
static wq_pool *pools[2];
static atomic_long called, answered[5], started, ended, letters, slow_handlers;
static atomic_int producing;

enum { DONE, RETRY, AGAIN, DROP, FAIL };

static uint64_t chance(void)
{
	static _Thread_local uint64_t random;

	if (random == 0)
		random = st.seed + (uint64_t)(uintptr_t)&random;
	return stress_random(&random);
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	struct key *k;
	uint32_t number;
	int how = (int)(chance() % 8);

	CHECK_EQ(it->len, sizeof number);
	memcpy(&number, it->key, sizeof number);
	CHECK(number < KEYS);
	k = &keys[number];
	CHECK_EQ(atomic_exchange(&k->busy, 1), 0);
	CHECK((uintptr_t)ctx < 2);
	atomic_store(&k->seen, atomic_load(&k->added));
	atomic_fetch_add(&called, 1);
	if (chance() % 64 == 0)
		sched_yield();
	if (chance() % 1024 == 0)
		CHECK_EQ(wq_wait_idle_until(q, WQ_NEVER), WQ_EDEADLK);
	atomic_store(&k->busy, 0);
	if (how > FAIL)
		how = DONE;
	atomic_fetch_add(&answered[how], 1);
	switch (how) {
	case RETRY:
		return WQ_RETRY;
	case FAIL:
		return wq_retry_after((int64_t)(chance() % 20000));
	case AGAIN:
		return wq_again_after((int64_t)(chance() % 20000));
	case DROP:
		return WQ_DROP;
	}
	return WQ_DONE;
}

static void on_start(void *ctx, uint32_t worker)
{
	(void)ctx;
	CHECK(worker < WQ_WORKERS_MAX);
	atomic_fetch_add(&started, 1);
}

static void on_end(void *ctx, uint32_t worker)
{
	(void)ctx;
	(void)worker;
	atomic_fetch_add(&ended, 1);
}

static void on_slow(void *ctx, const wq_slow_handler *o)
{
	(void)ctx;
	CHECK_EQ(o->len, sizeof(uint32_t));
	atomic_fetch_add(&slow_handlers, 1);
}

static void dead_letter(void *ctx, const wq_item *it)
{
	(void)ctx;
	CHECK(wq_state(q, it->key, it->len) & WQ_STATE_RUNNING);
	atomic_fetch_add(&letters, 1);
}

static void produce(void *ctx)
{
	uint64_t random = st.seed + (uintptr_t)ctx;

	for (long i = 0; i < OPS; i++) {
		uint32_t number = stress_random(&random) % KEYS;
		struct key *k = &keys[number];
		uint32_t what = stress_random(&random) % 32;

		if (what == 0 && number % 2) { /* the others are never lost */
			atomic_store(&k->cancelled, true);
			cancel_key(q, &number, sizeof number);
		} else if (what == 1) {
			CHECK(wq_wait_key_for(q, &number, sizeof number, WQ_MICROSECOND) <= 0);
		} else if (what < 5) {
			CHECK(wq_add_after(q, &number, sizeof number,
			                   stress_random(&random) % 50000) > 0);
		} else {
			atomic_fetch_add(&k->added, 1);
			CHECK(wq_add(q, &number, sizeof number) > 0);
		}
	}
	atomic_fetch_sub(&producing, 1);
}

/* Long enough, at times, for all its workers to rest. */
static void pause_a_while(uintptr_t i)
{
	wq_pool_counts c = {.busy = 1};

	CHECK_EQ(wq_pool_pause(pools[i]), WQ_OK);
	while (chance() % 32 && c.busy > 0) {
		CHECK_EQ(wq_pool_count(pools[i], &c), WQ_OK);
		sched_yield();
	}
	CHECK_EQ(wq_pool_resume(pools[i]), WQ_OK);
}

static void disturb(void *ctx)
{
	uintptr_t i = (uintptr_t)ctx;
	wq_pool_counts c;

	while (atomic_load(&producing) > 0) {
		switch (chance() % 4) {
		case 0:
			pause_a_while(i);
			break;
		case 1:
			CHECK_EQ(wq_pool_count(pools[i], &c), WQ_OK);
			CHECK(c.busy <= c.workers);
			break;
		default:
			CHECK_EQ(wq_pool_resize(pools[i], 1 + (uint32_t)(chance() % MOST_WORKERS)),
			         WQ_OK);
		}
		sched_yield();
	}
}

static void close_round(long round)
{
	wq_drain_options o = {.mode = (enum wq_drain_mode)(round % 3)};
	wq_pool_counts sum = {0}, c;
	wq_report r;
	uint64_t left, copies;
	int rc;

	/* The first pool may be stopped before, and the other one does the rest. */
	if (round % 2)
		CHECK_EQ(wq_pool_stop_until(pools[0], WQ_NEVER), WQ_OK);
	rc = wq_pool_drain_until(pools[1], WQ_NEVER, &o, &r);
	CHECK_EQ(r.queued + r.running, 0);
	left = r.retries + r.delayed;
	CHECK_EQ(rc, left > 0 ? WQ_LEFT : WQ_OK);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(wq_pool_stop_for(pools[i], 100 * WQ_SECOND), WQ_OK);
		CHECK_EQ(wq_pool_count(pools[i], &c), WQ_OK);
		CHECK_EQ(c.workers + c.busy, 0);
		sum.done += c.done;
		sum.retried += c.retried;
		sum.again += c.again;
		sum.dropped += c.dropped;
		sum.dead += c.dead;
		sum.left += c.left;
		sum.cancelled += c.cancelled;
		sum.stale += c.stale;
		CHECK_EQ(wq_pool_free(pools[i]), WQ_OK);
	}
	/* A key that is done or given up is left over if a copy of it waits in a queue that is shut. */
	CHECK(sum.done <= (uint64_t)atomic_load(&answered[DONE]));
	CHECK(sum.dropped <= (uint64_t)atomic_load(&answered[DROP]));
	copies = (uint64_t)(atomic_load(&answered[DONE]) + atomic_load(&answered[DROP])) -
	         sum.done - sum.dropped;
	CHECK(copies <= sum.left);
	CHECK(sum.again <= (uint64_t)atomic_load(&answered[AGAIN]));
	CHECK(sum.retried + sum.dead <=
	      (uint64_t)(atomic_load(&answered[RETRY]) + atomic_load(&answered[FAIL])));
	CHECK_EQ(sum.stale, 0);
	CHECK_EQ(sum.retried + sum.again + sum.dead + (sum.left - copies) + sum.cancelled,
	         atomic_load(&answered[RETRY]) + atomic_load(&answered[FAIL]) +
	             atomic_load(&answered[AGAIN]));
	/* A key that is left over does not come back; others have waited when the queue was shut. */
	CHECK(sum.left <= left);
	if (o.mode != WQ_DRAIN_LEAVE)
		CHECK_EQ(sum.left, left);
	if (o.mode == WQ_DRAIN_WAIT)
		CHECK_EQ(r.retries, 0);
	CHECK_EQ(r.dead, sum.dead);
	CHECK_EQ(atomic_load(&letters), sum.dead);
	CHECK_EQ(atomic_load(&started), atomic_load(&ended));
	for (uint32_t i = 0; i < KEYS; i++)
		if (!atomic_load(&keys[i].cancelled))
			CHECK_EQ(atomic_load(&keys[i].seen), atomic_load(&keys[i].added));
	CHECK_EQ(wq_free(q), left);
}

int main(int argc, char **argv)
{
	static struct crew crew;
	long rounds, total = 0;

	stress_init(&st, argc, argv, NULL);
	rounds = stress_ops(&st, ROUNDS);
	for (long r = 0; r < rounds; r++, st.seed++) {
		memset(keys, 0, sizeof keys);
		memset(answered, 0, sizeof answered);
		atomic_store(&called, 0);
		atomic_store(&letters, 0);
		atomic_store(&producing, PRODUCERS);
		q = stress_queue(&st,
		                 &(wq_options){
				     .limiter = wq_limiter_jittered(1000, 50000, WQ_JITTER_FULL,
		                                                    1 + st.seed),
				     .max_attempts = 6,
				     .dead_letter = dead_letter,
				 });
		for (uintptr_t i = 0; i < 2; i++)
			CHECK_EQ(wq_pool_start(&pools[i], q,
			                       &(wq_pool_options){
						   .workers = 1 + (uint32_t)i,
						   .paused = (uint32_t)i,
						   .handler = handle,
						   .ctx = (void *)i,
						   .on_start = on_start,
						   .on_end = on_end,
						   .slow_ns = i ? 20 * WQ_MICROSECOND : 0,
						   .on_slow = on_slow,
					       }),
			         WQ_OK);
		for (uintptr_t i = 0; i < PRODUCERS; i++)
			crew_add(&crew, produce, (void *)(10 + i));
		for (uintptr_t i = 0; i < 2; i++)
			crew_add(&crew, disturb, (void *)i);
		crew_start(&crew);
		crew_join(&crew);
		total += atomic_load(&called);
		close_round(r);
	}
	printf("%ld handlers in %ld rounds, %ld threads, %ld slow_handlers\n", total, rounds,
	       atomic_load(&started), atomic_load(&slow_handlers));
	return 0;
}
