/* As in bench/primitives.c. */
#define _GNU_SOURCE
#include "peer.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

char peer_over[1];

int64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void bench_check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "glib-peer: %s\n", what);
	exit(1);
}

void *bench_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	bench_check(p != NULL, "out of memory");
	return p;
}

void *bench_alloc_lines(size_t size)
{
	void *p = aligned_alloc(BENCH_LINE, size);

	bench_check(p != NULL, "out of memory");
	return memset(p, 0, size);
}

void bench_rest(int64_t ns)
{
	struct timespec span = {.tv_sec = (time_t)(ns / 1000000000),
	                        .tv_nsec = (long)(ns % 1000000000)};
	_Atomic uint32_t word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0);
}

void bench_spin(int64_t ns)
{
	int64_t end = bench_now() + ns;

	while (bench_now() < end)
		;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_percentile(double *samples, size_t n, double p)
{
	size_t at = (size_t)((double)n * p);

	qsort(samples, n, sizeof *samples, by_value);
	return samples[at < n ? at : n - 1];
}

/* As in bench/workers.c. */
void bench_steps(size_t n)
{
	uint64_t x = n;

	for (size_t i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

static void steps_run(void *state, size_t n)
{
	(void)state;
	bench_steps(n);
}

size_t bench_count_steps(void)
{
	struct bench_work steps = {steps_run, NULL, 500000};

	return (size_t)(1000 / bench_alone(&steps));
}

size_t peer_count(size_t n)
{
	return bench_sizes.quick && n > 100000 ? 100000 : n;
}

size_t peer_times(size_t n)
{
	size_t times = bench_sizes.keys / n;

	return times < 1 ? 1 : times > bench_sizes.slices ? bench_sizes.slices : times;
}
