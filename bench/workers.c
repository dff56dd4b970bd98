/*
 * Rows of the pool and of the parallel loop, two threads each unless they say otherwise.
 *
 *   pool_1us   keys through a pool of 2 whose handler works for 1 µs; all are in line
 *              before it starts, and time runs from when both workers have come
 *   pool_bare  two threads that do the same work on as many keys, with no queue
 *              between; to compare
 *   parallel   1M empty pieces in chunks of 1, as ten loops, each of which pays for its
 *              threads; _16, _256, _4096: in larger chunks, as four loops
 *   parallel_alone   the same in chunks of 1 by one thread: what a piece costs it; to compare
 *
 * The 1 µs is a chain of multiplications, counted out at the beginning; how long it takes
 * is measured again in every repetition, alone, and the ideal is two of it at a time.
 *
 * A run takes some milliseconds, and there are many: in a few of them both CPUs are left alone.
 */
#include "bench.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 2 };

static void pieces_of_work_run(void *state, size_t n)
{
	const size_t *steps = state;

	for (size_t i = 0; i < n; i++)
		bench_steps(*steps);
}

/* ---- a pool ----------------------------------------------------------------- */

enum { POOL_RUNS = 24 };

struct crew { /* NOLINT(clang-analyzer-optin.performance.Padding): lines of their own */
	wq_queue *q;
	size_t nkeys;
	size_t steps;
	const char *last;                        /* key in line */
	_Atomic int64_t start_ns;                /* A: when both threads were there */
	_Atomic int64_t end_ns;                  /* A: when the last key was finished */
	alignas(BENCH_LINE) _Atomic int waiting; /* A: threads that have yet to come to the start */
};

/* Whoever comes last says when it began. */
static void wait_for_start(struct crew *c)
{
	if (atomic_fetch_sub(&c->waiting, 1) == 1)
		atomic_store(&c->start_ns, bench_now());
	while (atomic_load(&c->waiting) > 0)
		sched_yield();
}

/* The first keys only bring the workers together. */
static wq_verdict handle(void *ctx, const wq_item *item)
{
	struct crew *c = ctx;

	if (atomic_load_explicit(&c->waiting, memory_order_relaxed) > 0) {
		wait_for_start(c);
		return WQ_DONE;
	}
	bench_steps(c->steps);
	if (memcmp(item->key, c->last, KEY_LEN) == 0)
		atomic_store(&c->end_ns, bench_now());
	return WQ_DONE;
}

static void *crew_setup(const void *arg)
{
	struct crew *c = bench_alloc_lines(sizeof *c);

	(void)arg;
	c->nkeys = bench_sizes.quick ? 2000 : 5000;
	c->steps = bench_count_steps();
	c->last = bench_key(bench_pool(), WORKERS + c->nkeys - 1);
	c->q = bench_queue();
	return c;
}

static double keys_a_second(const struct crew *c)
{
	return (double)c->nkeys * 1e9 / (double)(c->end_ns - c->start_ns);
}

/* New threads each time, as below: the kernel spreads those, and may leave old ones on one CPU. */
static double pool_pass(struct crew *c)
{
	wq_pool_options o = {.workers = WORKERS, .handler = handle, .ctx = c};
	const struct bench_keys *keys = bench_pool();
	wq_pool_counts counts;
	wq_pool *pool;
	int bad = 0;

	atomic_store(&c->waiting, WORKERS);
	for (size_t i = 0; i < WORKERS + c->nkeys; i++)
		bad |= wq_add(c->q, bench_key(keys, i), KEY_LEN) != WQ_QUEUED;
	bench_check(wq_pool_start(&pool, c->q, &o) == WQ_OK, "no pool");
	bad |= wq_wait_idle_until(c->q, WQ_NEVER) != WQ_OK;
	bad |= wq_pool_count(pool, &counts) != WQ_OK || counts.done != WORKERS + c->nkeys;
	bad |= wq_pool_free(pool) != WQ_OK;
	bench_check(!bad, "pool_1us: a call failed, or keys were lost");
	return keys_a_second(c);
}

/* ---- the same without a queue ------------------------------------------------ */

static void *work_bare(void *arg)
{
	struct crew *c = arg;

	wait_for_start(c);
	pieces_of_work_run(&c->steps, c->nkeys / WORKERS);
	/* The later one stays. */
	atomic_store(&c->end_ns, bench_now());
	return NULL;
}

static double bare_pass(struct crew *c)
{
	uint64_t threads[WORKERS];

	atomic_store(&c->waiting, WORKERS);
	for (size_t i = 0; i < WORKERS; i++)
		bench_thread(&threads[i], work_bare, c);
	for (size_t i = 0; i < WORKERS; i++)
		bench_join(threads[i]);
	return keys_a_second(c);
}

static void crew_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct crew *c = state;
	struct bench_work work = {pieces_of_work_run, &c->steps, 1000};
	int runs = bench_sizes.quick ? 1 : POOL_RUNS;

	(void)arg;
	for (int i = 0; i < runs; i++) {
		double pooled = pool_pass(c), bare = bare_pass(c);

		samples[0].value = pooled > samples[0].value ? pooled : samples[0].value;
		samples[1].value = bare > samples[1].value ? bare : samples[1].value;
	}
	samples[0].limit = samples[1].limit = WORKERS * 1e9 / bench_alone(&work);
}

static void crew_teardown(void *state)
{
	struct crew *c = state;

	bench_queue_free(c->q, 0);
	free(c);
}

/* ---- the parallel loop -------------------------------------------------------- */

/* In the order of the rows. A loop takes 1 ms at most. */
static const struct loop {
	wq_parallel_options options;
	size_t parts; /* of 1M pieces, in loops of their own */
} loops[] = {
    {{.workers = WORKERS, .chunk = 1}, 10},  {{.workers = WORKERS, .chunk = 16}, 4},
    {{.workers = WORKERS, .chunk = 256}, 4}, {{.workers = WORKERS, .chunk = 4096}, 1},
    {{.workers = 1, .chunk = 1}, 10},
};

enum { LOOPS = sizeof loops / sizeof loops[0], PARALLEL_RUNS = 20 };

static void atomic_add_run(void *state, size_t n)
{
	static _Atomic uint64_t sum;

	(void)state;
	for (size_t i = 0; i < n; i++)
		atomic_fetch_add_explicit(&sum, 1, memory_order_relaxed);
}

static int nothing(void *ctx, size_t piece)
{
	(void)ctx;
	(void)piece;
	return 0;
}

/* What the fastest of its parts needs for a piece. */
static double parallel_pass(const struct loop *l)
{
	size_t n = bench_sizes.keys / l->parts;
	double best = INFINITY;

	for (size_t i = 0; i < l->parts; i++) {
		int64_t start = bench_now(), done = wq_parallel(n, nothing, NULL, &l->options);
		double ns = (double)(bench_now() - start) / (double)n;

		bench_check(done == (int64_t)n, "pieces were left out");
		best = ns < best ? ns : best;
	}
	return best;
}

/* Larger chunks may not cost more than chunks of 1, nor still larger ones more than those. */
static void parallel_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct bench_work add = {atomic_add_run, NULL, 150000};
	int runs = bench_sizes.quick ? 1 : PARALLEL_RUNS;

	(void)arg;
	(void)state;
	for (int i = 0; i < runs; i++)
		for (size_t k = 0; k < LOOPS; k++) {
			double ns = parallel_pass(&loops[k]);

			if (i == 0 || ns < samples[k].value)
				samples[k].value = ns;
		}
	samples[0].limit = samples[4].limit = bench_alone(&add);
	samples[1].limit = samples[0].value;
	samples[2].limit = samples[3].limit = samples[1].value;
}

/* ---- the rows -------------------------------------------------------------- */

static const struct bench_group groups[] = {
    {
	.rows = {{"pool_1us", "keys/s", BAR_SHARE, 0.85, "ideal"},
                 {"pool_bare", "keys/s", BAR_NONE, 0, "ideal"}},
	.nrows = 2,
	.reps = 9,
	.threads = true,
	.setup = crew_setup,
	.run = crew_run,
	.teardown = crew_teardown,
    },
    {
	.rows = {{"parallel", "ns", BAR_TIMES, 2, "atomic_add"},
                 {"parallel_16", "ns", BAR_TIMES, 1, "parallel"},
                 {"parallel_256", "ns", BAR_TIMES, 1.25, "parallel_16"},
                 {"parallel_4096", "ns", BAR_TIMES, 1.25, "parallel_16"},
                 {"parallel_alone", "ns", BAR_NONE, 0, "atomic_add"}},
	.nrows = 5,
	.reps = 9,
	.run = parallel_run,
    },
};

const struct bench_groups bench_workers = {groups, sizeof groups / sizeof groups[0]};
