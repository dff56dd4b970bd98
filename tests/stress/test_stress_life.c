/*
 * A thousand short lives: queues that are made, used by threads, stopped in
 * one of several ways and freed while others live beside them.
 *
 *     test_stress_life [--spin ...] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <stdio.h>

enum {
	QUEUES = 1000,
	MAKERS = 4,
	WORKERS = 2,
	KEYS = 40,
};

static struct stress st;
static atomic_long lives, left_over;

struct life {
	wq_queue *q;
	atomic_int got;
	bool stay; /* workers that hold nothing and leave at once are part of it */
};

static void *work(void *ctx)
{
	struct life *l = ctx;
	wq_item it;

	for (int rc = wq_get(l->q, &it); rc == WQ_OK; rc = wq_next(l->q, &it)) {
		atomic_fetch_add(&l->got, 1);
		if (!l->stay) {
			CHECK_EQ(wq_done(l->q, &it), WQ_OK);
			return NULL;
		}
	}
	return NULL;
}

static void live(uint64_t *random)
{
	struct life l = {.stay = stress_random(random) % 4 != 0};
	pthread_t workers[WORKERS];
	uint32_t how = stress_random(random);
	int left = 0;

	l.q = stress_queue(&st, NULL);
	if (how & 1)
		CHECK(wq_fd(l.q) >= 0);
	/* Workers that leave would otherwise wait for a key that never comes. */
	int n = WORKERS + (int)(how >> 8) % KEYS;

	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&workers[i], NULL, work, &l) == 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(wq_add(l.q, &i, sizeof i), WQ_QUEUED);
	if (l.stay && how & 2)
		CHECK_EQ(wq_drain_for(l.q, WQ_NEVER, NULL, NULL), WQ_OK);
	else
		CHECK_EQ(wq_shutdown(l.q), WQ_OK);
	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_join(workers[i], NULL) == 0);
	left = wq_free(l.q);
	CHECK_EQ(atomic_load(&l.got) + left, n);
	if (l.stay)
		CHECK_EQ(left, 0);
	atomic_fetch_add(&left_over, left);
	atomic_fetch_add(&lives, 1);
}

static void make(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;

	for (long n = stress_ops(&st, QUEUES) / MAKERS; n > 0; n--)
		live(&random);
}

int main(int argc, char **argv)
{
	static struct crew crew;

	stress_init(&st, argc, argv, NULL);
	/* A thousand in every build: that is what is promised. */
	if (st.scale < 1)
		st.scale = 1;
	for (int i = 0; i < MAKERS; i++)
		crew_add(&crew, make, (void *)(uintptr_t)(1 + i));
	crew_start(&crew);
	crew_join(&crew);
	printf("%ld queues, %ld keys given up\n", atomic_load(&lives), atomic_load(&left_over));
	return 0;
}
