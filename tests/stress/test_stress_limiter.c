/*
 * Several threads use one limiter: shared keys and their own, counts, tokens,
 * forgetting, a bound. Nothing is counted twice or lost, and the bucket hands
 * out just what it has.
 *
 *     test_stress_limiter [--one-cpu] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <stdio.h>

enum {
	USERS = 4,
	OPS = 40000, /* of each */
	SHARED = 7,  /* keys that all use */
	OWN = 50,    /* keys of each */
	LEAST = 2000,
};

static struct stress st;
static wq_limiter *l;
static long nops;
static atomic_long granted, never, asked;

/* Not atomic: the functions are called one at a time, for the thread sanitizer to see. */
static long own_calls;

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)ctx;
	(void)key;
	(void)len;
	(void)now_ns;
	own_calls++;
	return 0;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	own_calls++;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	own_calls++;
	return 0;
}

/* ---- counts: what each thread did to its own keys is what it finds ---------------- */

static void count(void *ctx)
{
	uint32_t number = (uint32_t)(uintptr_t)ctx;
	uint64_t random = st.seed + number;
	uint32_t mine[OWN] = {0};

	for (long i = 0; i < nops; i++) {
		uint32_t r = stress_random(&random), k = r % OWN;
		uint32_t key = 1000 + number * OWN + k;

		switch (r / OWN % 8) {
		case 0:
			CHECK_EQ(wq_limiter_forget(l, &key, sizeof key), WQ_OK);
			mine[k] = 0;
			break;
		case 1:
			CHECK_EQ(wq_limiter_failures(l, &key, sizeof key), mine[k]);
			break;
		case 2:
			key = r % SHARED;
			CHECK(wq_limiter_when(l, &key, sizeof key, 0) > 0);
			atomic_fetch_add(&asked, 1);
			break;
		case 3:
			CHECK(wq_limiter_size(l) <= SHARED + USERS * OWN);
			break;
		default:
			CHECK_EQ(wq_limiter_when(l, &key, sizeof key, 0),
			         INT64_C(1) << (mine[k] < 10 ? mine[k] : 10));
			mine[k]++;
			break;
		}
	}
	for (uint32_t k = 0; k < OWN; k++) {
		uint32_t key = 1000 + number * OWN + k;

		CHECK_EQ(wq_limiter_failures(l, &key, sizeof key), mine[k]);
		CHECK_EQ(wq_limiter_forget(l, &key, sizeof key), WQ_OK);
	}
}

static void run_counts(void)
{
	static struct crew crew;
	wq_limiter_functions f = {.when = own_when,
	                          .forget = own_forget,
	                          .failures = custom_failures};
	int64_t sum = 0;

	l = wq_limiter_bounded(wq_limiter_max_of((wq_limiter *[]){wq_limiter_exponential(1, 1024),
	                                                          wq_limiter_custom(&f)},
	                                         2),
	                       WQ_SECOND);
	CHECK_EQ(wq_limiter_status(l), WQ_OK);
	for (int i = 0; i < USERS; i++)
		crew_add(&crew, count, (void *)(uintptr_t)i);
	crew_start(&crew);
	crew_join(&crew);
	for (uint32_t key = 0; key < SHARED; key++)
		sum += wq_limiter_failures(l, &key, sizeof key);
	CHECK_EQ(sum, atomic_load(&asked));
	CHECK_EQ(wq_limiter_size(l), SHARED);
	CHECK(own_calls > nops);
	CHECK_EQ(wq_limiter_free(l), WQ_OK);
}

/* ---- tokens: as many as there are, to whoever comes -------------------------------- */

static void take(void *ctx)
{
	uint64_t random = st.seed + (uintptr_t)ctx;

	for (long i = 0; i < nops; i++) {
		uint32_t key = stress_random(&random) % SHARED;
		int64_t d = wq_limiter_when(l, &key, sizeof key, i);

		/* To a thread that is behind the others the time goes back. */
		CHECK(d == WQ_NEVER || (d >= 0 && d < nops));
		atomic_fetch_add(d == WQ_NEVER ? &never : &granted, 1);
	}
}

static void run_tokens(wq_limiter *limiter, long tokens)
{
	static struct crew crew;

	l = limiter;
	atomic_store(&granted, 0);
	CHECK_EQ(wq_limiter_status(l), WQ_OK);
	for (int i = 0; i < USERS; i++)
		crew_add(&crew, take, (void *)(uintptr_t)i);
	crew_start(&crew);
	crew_join(&crew);
	CHECK_EQ(atomic_load(&granted), tokens);
	CHECK_EQ(wq_limiter_free(l), WQ_OK);
}

int main(int argc, char **argv)
{
	stress_init(&st, argc, argv, NULL);
	nops = stress_ops(&st, OPS);
	if (nops < LEAST)
		nops = LEAST; /* all tokens are to be taken */
	run_counts();
	run_tokens(wq_limiter_bucket(0, (int)nops), nops);
	run_tokens(wq_limiter_bucket_per_key(0, 100), SHARED * 100);
	printf("%ld operations by each of %d threads, %ld tokens refused\n", nops, USERS,
	       atomic_load(&never));
	return 0;
}
