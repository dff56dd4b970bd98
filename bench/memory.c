/*
 * Rows of bytes, in a child process of their own in which nothing else grows.
 *
 *   bytes_per_key     resident memory with 1M keys queued, per key: the key,
 *                     its entry, its place in the table
 *   bytes_kept_after  what is still resident when all have been got and done,
 *                     in percent of the growth at the peak
 *   bytes_kept_few    the same with 5M keys of which 136 are not done, spread over all of them
 *   bytes_waiting     resident memory with 1M keys that wait for a time, per key
 *
 * Before: no queue has been made. The child makes its keys one at a time.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after `prefix` in the first line that begins with it; -1 if there is none. */
static long number_after(const char *path, const char *prefix)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long n = -1;

	while (n < 0 && f && fgets(line, sizeof line, f))
		if (strncmp(line, prefix, strlen(prefix)) == 0)
			n = strtol(line + strlen(prefix), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

/* Resident bytes. The roll-up is exact; VmRSS may lag behind by some pages a CPU. */
static long resident(void)
{
	long kb = number_after("/proc/self/smaps_rollup", "Rss:");

	if (kb < 0)
		kb = number_after("/proc/self/status", "VmRSS:");
	bench_check(kb >= 0, "the resident size cannot be read");
	return kb * 1024;
}

/* The resident size when all of them are there. */
static long add_keys(wq_queue *q, size_t n)
{
	char key[KEY_LEN + 1];

	for (size_t i = 0; i < n; i++) {
		bench_key_format(key, i);
		bench_check(wq_add(q, key, KEY_LEN) == WQ_QUEUED, "memory: a key was not queued");
	}
	return resident();
}

int bench_memory_child(void)
{
	size_t nkeys = bench_sizes.keys;
	wq_item item;

	resident(); /* what reading it costs is there before, too */

	long before = resident();
	wq_queue *q = bench_queue();
	long peak = add_keys(q, nkeys);

	for (size_t i = 0; i < nkeys; i++)
		bench_check(wq_get(q, &item) == WQ_OK && wq_done(q, &item) == WQ_OK,
		            "memory: a call failed");

	long after = resident();

	bench_queue_free(q, 0);
	printf("%ld %ld %ld\n", before, peak, after);
	return 0;
}

/* What a child has grown by at its peak; *kept: what is left of that, in percent. */
static long child_grew(const char *option, double *kept)
{
	char line[128], *at = line;

	bench_child(option, line, sizeof line);

	long before = strtol(at, &at, 10);
	long peak = strtol(at, &at, 10);
	long after = strtol(at, &at, 10);

	bench_check(before > 0 && peak > before && after > 0, "the memory rows' child failed");
	*kept = after > before ? 100.0 * (double)(after - before) / (double)(peak - before) : 0;
	return peak - before;
}

static void memory_run(const void *arg, void *state, struct bench_sample *samples)
{
	(void)arg;
	(void)state;
	samples[0].value =
	    (double)child_grew("--memory-child", &samples[1].value) / (double)bench_sizes.keys;
}

static void few_run(const void *arg, void *state, struct bench_sample *samples)
{
	(void)arg;
	(void)state;
	child_grew("--few-child", &samples[0].value);
}

/* The keys that stay are held, as by workers that hang. */
int bench_few_child(void)
{
	enum { FEW = 136, TIMES = 5 };
	size_t nkeys = TIMES * bench_sizes.keys, apart = nkeys / FEW, nheld = 0;
	wq_item held[FEW], item;

	resident();

	long before = resident();
	wq_queue *q = bench_queue();
	long peak = add_keys(q, nkeys);

	for (size_t i = 0; i < nkeys; i++) {
		bench_check(wq_get(q, &item) == WQ_OK, "memory: a call failed");
		if (i % apart == 0 && nheld < FEW)
			held[nheld++] = item;
		else
			bench_check(wq_done(q, &item) == WQ_OK, "memory: a call failed");
	}

	long after = resident();

	for (size_t i = 0; i < nheld; i++)
		bench_check(wq_done(q, &held[i]) == WQ_OK, "memory: a call failed");
	bench_queue_free(q, 0);
	printf("%ld %ld %ld\n", before, peak, after);
	return 0;
}

int bench_waiting_child(void)
{
	uint64_t random = BENCH_SEED;
	char key[KEY_LEN + 1];

	resident();

	long before = resident();
	wq_queue *q = bench_queue();

	for (size_t i = 0; i < bench_sizes.keys; i++) {
		bench_key_format(key, i);
		bench_check(wq_add_after(q, key, KEY_LEN,
		                         bench_span(&random, WQ_SECOND, WQ_MINUTE)) == WQ_DELAYED,
		            "bytes_waiting: a key does not wait");
	}
	printf("%ld %ld\n", before, resident());
	bench_check(wq_free(q) >= 0, "bytes_waiting: the queue is busy");
	return 0;
}

static void waiting_run(const void *arg, void *state, struct bench_sample *samples)
{
	char line[128], *at = line;

	(void)arg;
	(void)state;
	bench_child("--waiting-child", line, sizeof line);

	long before = strtol(at, &at, 10);
	long with = strtol(at, &at, 10);

	bench_check(before > 0 && with > before, "the child of bytes_waiting failed");
	samples[0].value = (double)(with - before) / (double)bench_sizes.keys;
}

static const struct bench_group groups[] = {
    {
	.rows = {{"bytes_per_key", "bytes", BAR_FIXED, 96, "bytes"},
                 {"bytes_kept_after", "%", BAR_FIXED, 2, "percent_of_peak"}},
	.nrows = 2,
	.reps = 5,
	.run = memory_run,
    },
    {
	.rows = {{"bytes_kept_few", "%", BAR_FIXED, 3, "percent_of_peak"}},
	.nrows = 1,
	.reps = 1,
	.run = few_run,
    },
    {
	.rows = {{"bytes_waiting", "bytes", BAR_FIXED, 120, "bytes"}},
	.nrows = 1,
	.reps = 3,
	.run = waiting_run,
    },
};

const struct bench_groups bench_memory = {groups, sizeof groups / sizeof groups[0]};
