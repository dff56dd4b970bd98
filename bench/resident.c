/*
 * Rows of single calls while a queue grows: is any of them long?
 *
 *   cycle_any_10m  the longest step on the way from 1 to 10M resident keys: one Add of a key
 *                  that stays, then Add, Get and Done
 *   hold_100m      the longest call on the way from 0 to 100M keys and back, which is the
 *                  longest time for which one call can hold the lock. With --long, or if it is
 *                  asked for: it needs 9 GiB of memory and some minutes
 *
 * A call that was interrupted is not long by itself. cycle_any_10m goes the way three times
 * with a queue that does the same each time; the least time of each step counts. hold_100m
 * goes it once, and does not count a call during which the kernel ran another thread here.
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WAYS = 3 };

static const size_t long_keys = 100000000;
static const double slow_ns = 20000; /* what is shorter is not looked at again */

static size_t resident_keys(void)
{
	return bench_sizes.quick ? bench_sizes.keys : 10 * bench_sizes.keys;
}

/* ---- cycle_any_10m ------------------------------------------------------------- */

/* The way once. least: the least time of each step so far; 0: it was not gone yet. */
static void grow(float *least, size_t n)
{
	wq_queue *q = bench_seeded_queue(NULL, NULL);
	char stays[KEY_LEN + 1], goes[KEY_LEN + 1];
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		wq_item item;

		bench_key_format(stays, 2 * i);
		bench_key_format(goes, 2 * i + 1);

		int64_t start = bench_now();

		bad |= wq_add(q, stays, KEY_LEN) != WQ_QUEUED;
		bad |= wq_add(q, goes, KEY_LEN) != WQ_QUEUED;
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;

		float took = (float)(bench_now() - start);

		if (least[i] == 0 || took < least[i])
			least[i] = took;
	}
	bench_check(!bad, "cycle_any_10m: a call failed");
	bench_queue_free(q, n);
}

static void any_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = resident_keys();
	float *least = bench_alloc(n, sizeof *least), worst = 0;

	(void)arg;
	(void)state;
	for (int way = 0; way < WAYS; way++)
		grow(least, n);
	for (size_t i = 0; i < n; i++)
		worst = least[i] > worst ? least[i] : worst;
	samples[0].value = worst;
	free(least);
}

/* ---- hold_100m ------------------------------------------------------------------ */

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

struct longest {
	double ns;
	long switches; /* of this thread, when it was last looked at */
	int64_t start_ns;
};

static void call_ends(struct longest *l)
{
	double took = (double)(bench_now() - l->start_ns);

	if (took > slow_ns && took > l->ns) {
		long now = switches();

		if (now == l->switches)
			l->ns = took;
		l->switches = now;
	}
}

static void hold_run(const void *arg, void *state, struct bench_sample *samples)
{
	const double need = 9.0 * (1 << 30);
	size_t n = bench_sizes.quick ? bench_sizes.keys : long_keys;
	struct longest l = {.switches = switches()};
	wq_queue *q = bench_queue();
	char key[KEY_LEN + 1];
	wq_item item;
	int bad = 0;

	(void)arg;
	(void)state;
	bench_check(bench_sizes.quick ||
	                (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) > need,
	            "hold_100m needs 9 GiB of free memory");
	for (size_t i = 0; i < n; i++) {
		bench_key_format(key, i);
		l.start_ns = bench_now();
		bad |= wq_add(q, key, KEY_LEN) != WQ_QUEUED;
		call_ends(&l);
	}
	for (size_t i = 0; i < n; i++) {
		l.start_ns = bench_now();
		bad |= wq_get(q, &item) != WQ_OK;
		call_ends(&l);
		l.start_ns = bench_now();
		bad |= wq_done(q, &item) != WQ_OK;
		call_ends(&l);
	}
	bench_check(!bad, "hold_100m: a call failed");
	bench_queue_free(q, 0);
	/* None that is worth looking at: it is no longer than that. */
	samples[0].value = l.ns > 0 ? l.ns : slow_ns;
}

static const struct bench_group groups[] = {
    {
	.rows = {{"cycle_any_10m", "ns", BAR_FIXED, 5000, "ns"}},
	.nrows = 1,
	.reps = 1,
	.run = any_run,
    },
    {
	.rows = {{"hold_100m", "ns", BAR_FIXED, 100000, "ns"}},
	.nrows = 1,
	.reps = 1,
	.on_request = true,
	.run = hold_run,
    },
};

const struct bench_groups bench_resident = {groups, sizeof groups / sizeof groups[0]};
