/*
 * Rows that look for cliffs: one cycle (Add, Get, Done of a key that is alone in line) at
 * every number of held keys, and at lengths up to the longest. The value is the worst point
 * of the sweep; it is judged by the sweep's own median.
 *
 *   cycle_any_keys    the worst cycle, with 0, 1, 2 .. 60,000 held keys
 *   cycle_any_length  the worst cycle for 1,000 bytes of key, of 2,000 to 65,536 bytes, with
 *                     0 to 8 held keys of that length
 *
 * A point is the best of a few tries of some cycles: the sweep looks for what is slow each
 * time. One that looks slow is tried again, so that an interrupt is not taken for a cliff.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum {
	KEYS_MOST = 60000,
	LENGTH_LEAST = 2000,
	BESIDE = 9,      /* numbers of held keys at each length */
	CYCLES = 8,      /* of a try */
	TRIES = 3,       /* of a point ... */
	TRIES_MOST = 50, /* ... that looks slow */
};

static void cycles(wq_queue *q, const char *key, size_t len)
{
	wq_item item;
	int bad = 0;

	for (int i = 0; i < CYCLES; i++) {
		bad |= wq_add(q, key, len) != WQ_QUEUED;
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	bench_check(!bad, "sweep: a call failed");
}

/* One more key that is held. */
static void hold(wq_queue *q, const char *key, size_t len, wq_item *item)
{
	bench_check(wq_add(q, key, len) == WQ_QUEUED && wq_get(q, item) == WQ_OK,
	            "sweep: a key is not held");
}

/* A cycle, in ns. More than twice as long as usual looks slow; usual 0: not known yet. */
static double point(wq_queue *q, const char *key, size_t len, double usual)
{
	double best = 0;

	for (int i = 0; i < TRIES || (i < TRIES_MOST && usual > 0 && best > 2 * usual); i++) {
		int64_t start = bench_now();

		cycles(q, key, len);

		double took = (double)(bench_now() - start) / CYCLES;

		if (i == 0 || took < best)
			best = took;
	}
	return best;
}

/* Sorts the points. The limit is their median, the value the worst. */
static void judge_points(double *points, size_t n, struct bench_sample *sample)
{
	sample->limit = bench_percentile(points, n, 0.5);
	sample->value = points[n - 1];
}

static void release(wq_queue *q, wq_item *held, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bench_check(wq_done(q, &held[i]) == WQ_OK, "sweep: a key is not done");
}

/* ---- held keys --------------------------------------------------------------- */

static void keys_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.keys < KEYS_MOST ? bench_sizes.keys : KEYS_MOST;
	const struct bench_keys *pool = bench_pool();
	double *points = bench_alloc(n, sizeof *points), sum = 0;
	wq_item *held = bench_alloc(n, sizeof *held);
	wq_queue *q = bench_queue();

	(void)arg;
	(void)state;
	for (size_t i = 0; i < n; i++) {
		points[i] = point(q, bench_key(pool, n), KEY_LEN, i ? sum / (double)i : 0);
		sum += points[i];
		hold(q, bench_key(pool, i), KEY_LEN, &held[i]);
	}
	judge_points(points, n, samples);
	release(q, held, n);
	bench_queue_free(q, 0);
	free(held);
	free(points);
}

/* ---- lengths ------------------------------------------------------------------ */

static void length_run(const void *arg, void *state, struct bench_sample *samples)
{
	enum { MOST = 200 * BESIDE };
	static char key[WQ_KEY_MAX];
	double *points = bench_alloc(MOST, sizeof *points), sum = 0;
	wq_item held[BESIDE];
	size_t n = 0;
	wq_queue *q = bench_queue();

	(void)arg;
	(void)state;
	for (size_t len = LENGTH_LEAST; len <= sizeof key; len += len / 32) {
		double thousands = (double)len / 1000;

		for (unsigned i = 0; i < BESIDE; i++, n++) {
			memset(key, 0, sizeof i);
			bench_check(n < MOST, "sweep: there are more points");
			points[n] =
			    point(q, key, len, n ? thousands * sum / (double)n : 0) / thousands;
			sum += points[n];
			memcpy(key, &(unsigned){i + 1}, sizeof i);
			hold(q, key, len, &held[i]);
		}
		release(q, held, BESIDE);
	}
	judge_points(points, n, samples);
	bench_queue_free(q, 0);
	free(points);
}

static const struct bench_group groups[] = {
    {
	.rows = {{"cycle_any_keys", "ns", BAR_TIMES, 5, "its median"}},
	.nrows = 1,
	.reps = 3,
	.paired = true,
	.run = keys_run,
    },
    {
	.rows = {{"cycle_any_length", "ns", BAR_TIMES, 5, "its median"}},
	.nrows = 1,
	.reps = 3,
	.paired = true,
	.run = length_run,
    },
};

const struct bench_groups bench_sweep = {groups, sizeof groups / sizeof groups[0]};
