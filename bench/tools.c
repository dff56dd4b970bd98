/* What measuring takes, without the library: the peers that are written in C use it, too. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
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

void bench_thread(uint64_t *thread, void *(*fn)(void *), void *arg)
{
	pthread_t id;

	bench_check(pthread_create(&id, NULL, fn, arg) == 0, "a thread could not be started");
	*thread = (uint64_t)id;
}

void bench_join(uint64_t thread)
{
	pthread_join((pthread_t)thread, NULL);
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

void bench_pin(int nth)
{
	cpu_set_t set, one;

	bench_check(sched_getaffinity(0, sizeof set, &set) == 0, "no affinity mask");
	nth %= CPU_COUNT(&set);
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && nth-- == 0)
			CPU_SET(cpu, &one);
	bench_check(sched_setaffinity(0, sizeof one, &one) == 0, "a thread could not be pinned");
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

/* ---- a microsecond of work -------------------------------------------------- */

/* Each step waits for the one before, so a neighbour on the same core hardly matters. */
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

	return (size_t)((double)WQ_MICROSECOND / bench_alone(&steps));
}
