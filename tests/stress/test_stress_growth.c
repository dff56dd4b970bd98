/*
 * Waves: thousands of keys come and go, so that the table grows and shrinks
 * and blocks are taken and given back, while other threads look keys up and
 * walk. Some keys are held throughout: each walk must show each of them
 * exactly once, and their bytes must stay where they are.
 *
 *     test_stress_growth [--spin ...] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PRODUCERS = 3,
	WORKERS = 3,
	WALKERS = 2,
	WAVE = 20000, /* keys of each producer in a wave */
	WAVES = 20,
	BATCH = 64,
	PINNED = 100,
	KEY_SIZE = 2200,
};

static struct stress st;
static wq_queue *q;
static wq_item pinned[PINNED];
static const char pin_mark[] = "pin";
static atomic_long runs, keys_added, walks;
static atomic_bool rising, over;
static pthread_barrier_t tide;

/* ---- memory ---------------------------------------------------------------- */

static atomic_long bytes, peak;

static void *take(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size) != 0)
		return NULL;
	long now = atomic_fetch_add(&bytes, (long)size) + (long)size, old = atomic_load(&peak);

	while (old < now && !atomic_compare_exchange_weak(&peak, &old, now))
		;
	return p;
}

static void give(void *ctx, void *p, size_t size)
{
	(void)ctx;
	atomic_fetch_sub(&bytes, (long)size);
	free(p);
}

/* ---- threads --------------------------------------------------------------- */

/* One key in 64 is long: stored alone instead of in a block. */
static size_t key_bytes(unsigned producer, long i, char *buf)
{
	size_t len = (size_t)sprintf(buf, "p%u/%ld/", producer, i);
	size_t more = i % 64 == 0 ? 1000 + (size_t)i % 1000 : (size_t)i % 60;

	memset(buf + len, 'x', more);
	return len + more;
}

static void wave(unsigned producer, long size)
{
	static _Thread_local char buf[BATCH][KEY_SIZE];
	wq_key keys[BATCH];
	int outcomes[BATCH];

	for (long i = 0; i < size;) {
		size_t n = 0;

		for (; n < BATCH && i < size; n++, i++)
			keys[n] = (wq_key){buf[n], key_bytes(producer, i, buf[n])};
		CHECK_EQ(wq_add_many(q, keys, n, outcomes), n);
		/* A worker may hold a key of the wave before: then it is marked, or merged even. */
		for (size_t k = 0; k < n; k++)
			atomic_fetch_add(&keys_added, outcomes[k] != WQ_MERGED);
	}
}

static void produce(void *ctx)
{
	unsigned producer = (unsigned)(uintptr_t)ctx;
	char buf[KEY_SIZE];
	long size = stress_ops(&st, WAVE);

	for (int w = 0; w < WAVES; w++) {
		/* Only when everybody's last wave has gone: the workers rest meanwhile. */
		pthread_barrier_wait(&tide);
		atomic_store(&rising, true);
		wave(producer, size);
		pthread_barrier_wait(&tide);
		atomic_store(&rising, false);
		/* Until the wave has gone: FIFO, so its last key is the end of it. */
		size_t len = key_bytes(producer, size - 1, buf);

		CHECK_EQ(wq_wait_key_until(q, buf, len, WQ_NEVER), WQ_OK);
	}
}

static void work(void *ctx)
{
	wq_item items[BATCH];
	size_t n = 0, max = (uintptr_t)ctx % 2 ? BATCH : 1;
	int rc;

	while ((rc = wq_next_many_until(q, items, n, max, WQ_NEVER)) > 0) {
		n = (size_t)rc;
		atomic_fetch_add(&runs, rc);
		for (size_t i = 0; i < n; i++) {
			const char *key = items[i].key;

			CHECK(key[0] == 'p' && key[items[i].len] == '\0');
		}
		/* Let the water rise, or the table would never be large. */
		while (atomic_load(&rising))
			sched_yield();
	}
	CHECK_EQ(rc, WQ_ESHUTDOWN);
}

static int show(void *ctx, const wq_key_info *info)
{
	int *shown = ctx, i;

	if (info->len == sizeof pin_mark + sizeof i &&
	    memcmp(info->key, pin_mark, sizeof pin_mark) == 0) {
		memcpy(&i, (const char *)info->key + sizeof pin_mark, sizeof i);
		CHECK(i >= 0 && i < PINNED);
		CHECK(info->state & WQ_STATE_RUNNING);
		shown[i]++;
	}
	return 0;
}

static void walk(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;

	while (!atomic_load(&over)) {
		int shown[PINNED] = {0};
		char buf[KEY_SIZE];

		CHECK(wq_walk(q, show, shown) >= PINNED);
		for (int i = 0; i < PINNED; i++)
			CHECK_EQ(shown[i], 1);
		for (int i = 0; i < 100; i++) {
			size_t len = key_bytes(stress_random(&random) % PRODUCERS,
			                       stress_random(&random) % WAVE, buf);

			CHECK(wq_state(q, buf, len) >= 0);
		}
		atomic_fetch_add(&walks, 1);
		sched_yield();
	}
}

/* ---- the program ----------------------------------------------------------- */

static void pin(void)
{
	char key[sizeof pin_mark + sizeof(int)];

	memcpy(key, pin_mark, sizeof pin_mark);
	for (int i = 0; i < PINNED; i++) {
		memcpy(key + sizeof pin_mark, &i, sizeof i);
		CHECK_EQ(wq_add(q, key, sizeof key), WQ_QUEUED);
		CHECK_EQ(wq_try_get(q, &pinned[i]), WQ_OK);
	}
}

static void unpin(void)
{
	for (int i = 0; i < PINNED; i++) {
		const char *key = pinned[i].key;

		CHECK_EQ(pinned[i].len, sizeof pin_mark + sizeof i);
		CHECK(memcmp(key, pin_mark, sizeof pin_mark) == 0);
		CHECK(memcmp(key + sizeof pin_mark, &i, sizeof i) == 0);
		CHECK_EQ(wq_done(q, &pinned[i]), WQ_OK);
	}
}

int main(int argc, char **argv)
{
	static struct crew producers, workers, walkers;
	wq_allocator allocator = {.alloc = take, .free = give};

	stress_init(&st, argc, argv, NULL);
	q = stress_queue(&st, &(wq_options){.allocator = &allocator});
	CHECK(pthread_barrier_init(&tide, NULL, PRODUCERS) == 0);
	pin();
	for (int i = 0; i < PRODUCERS; i++)
		crew_add(&producers, produce, (void *)(uintptr_t)i);
	for (int i = 0; i < WORKERS; i++)
		crew_add(&workers, work, (void *)(uintptr_t)i);
	for (int i = 0; i < WALKERS; i++)
		crew_add(&walkers, walk, (void *)(uintptr_t)i);
	crew_start(&workers);
	crew_start(&walkers);
	crew_start(&producers);
	crew_join(&producers);
	atomic_store(&over, true);
	crew_join(&walkers);
	unpin();
	CHECK_EQ(wq_drain_for(q, WQ_NEVER, NULL, NULL), WQ_OK);
	crew_join(&workers);
	CHECK_EQ(atomic_load(&runs), atomic_load(&keys_added));
	printf("%ld keys, %ld walks, %ld bytes at most, %ld kept\n", atomic_load(&runs),
	       atomic_load(&walks), atomic_load(&peak), atomic_load(&bytes));
	CHECK_EQ(wq_free(q), 0);
	CHECK_EQ(atomic_load(&bytes), 0);
	pthread_barrier_destroy(&tide);
	return 0;
}
