/*
 * wq_machine: what this machine asks for the steps that the rows consist of. It prints a
 * table for docs/performance.md.
 *
 *   wq_machine [--quick]
 *
 * Values are the best of many short slices (slices.c), or of some rounds of two threads on
 * two CPUs; what needs two CPUs is left out on one. The library is not measured here.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct bench_sizes bench_sizes = {
    .keys = 1000,
    .slices = 200,
    .wakes = 2000,
    .rest_ns = 200000,
    .random_lines = 1 << 23,
    .trip_chunks = 1000,
};

static void tell(const char *what, double ns)
{
	if (ns >= 10000)
		printf("| %s | %.1f µs |\n", what, ns / 1000);
	else
		printf("| %s | %.1f ns |\n", what, ns);
}

/* ---- one thread ------------------------------------------------------------- */

static alignas(BENCH_LINE) _Atomic uint64_t word;

static void locked_run(void *state, size_t n)
{
	(void)state;
	for (size_t i = 0; i < n; i++)
		atomic_fetch_add_explicit(&word, 1, memory_order_relaxed);
}

static void clock_run(void *state, size_t n)
{
	const clockid_t *id = state;
	struct timespec ts;

	for (size_t i = 0; i < n; i++)
		clock_gettime(*id, &ts);
}

#if defined(__x86_64__)
static void counter_run(void *state, size_t n)
{
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		sum += __rdtsc();
	atomic_store_explicit(&word, sum, memory_order_relaxed);
}
#endif

/* The first touch of pages that were mapped just now. */
static double page_fault(void)
{
	enum { PAGES = 512, ROUNDS = 50 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	double took[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
		               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		bench_check(p != MAP_FAILED, "no memory");
		madvise(p, PAGES * page, MADV_NOHUGEPAGE);

		int64_t start = bench_now();

		for (size_t i = 0; i < PAGES; i++)
			*(volatile char *)(p + i * page) = 1;
		took[r] = (double)(bench_now() - start) / PAGES;
		munmap(p, PAGES * page);
	}
	return bench_low(took, ROUNDS);
}

static void one_thread(void)
{
	clockid_t exact = CLOCK_MONOTONIC, coarse = CLOCK_MONOTONIC_COARSE;

	tell("a locked instruction, the line in this CPU's cache",
	     bench_alone(&(struct bench_work){locked_run, NULL, 50000}));
	tell("lock and unlock of a free pthread mutex", bench_alone(&bench_mutex));
	tell("CLOCK_MONOTONIC", bench_alone(&(struct bench_work){clock_run, &exact, 20000}));
	tell("CLOCK_MONOTONIC_COARSE",
	     bench_alone(&(struct bench_work){clock_run, &coarse, 50000}));
#if defined(__x86_64__)
	tell("the CPU's counter", bench_alone(&(struct bench_work){counter_run, NULL, 50000}));
#endif
	tell("a dependent load out of 512 MB", bench_alone(&bench_random_access));
	tell("a page fault: the first touch of 4 KiB", page_fault());
}

/* ---- two CPUs --------------------------------------------------------------- */

enum {
	LINES = 256,
	HANDOVERS = 300,
	TURNS = 200,
	HELP_NOTHING = 0,
	HELP_READ,
	HELP_COUNT,
	HELP_END
};

static struct {
	alignas(BENCH_LINE) _Atomic int job; /* what the helper is to do; it answers HELP_NOTHING */
	alignas(BENCH_LINE) _Atomic int stop; /* HELP_COUNT ends */
	alignas(BENCH_LINE) double took[2];   /* HELP_READ: dependent, independent */
	alignas(BENCH_LINE) struct {
		_Atomic uint64_t next;
		char rest[56];
	} line[LINES];
} shared;

/* The lines that the other CPU has written. Dependent: each says where the next one is. */
static double read_lines(bool dependent)
{
	uint64_t at = 0, sum = 0;
	int64_t start = bench_now();

	for (uint64_t i = 0; i < LINES; i++) {
		at = atomic_load_explicit(&shared.line[dependent ? at : i].next,
		                          memory_order_relaxed);
		sum += at;
	}
	atomic_store_explicit(&word, sum, memory_order_relaxed);
	return (double)(bench_now() - start) / LINES;
}

static void *helper(void *arg)
{
	(void)arg;
	bench_pin(1);
	for (int turn = 0;;) {
		int job = atomic_load_explicit(&shared.job, memory_order_acquire);

		if (job == HELP_END)
			return NULL;
		if (job == HELP_READ) {
			turn ^= 1;
			shared.took[turn] = read_lines(turn == 0);
		} else if (job == HELP_COUNT) {
			while (!atomic_load_explicit(&shared.stop, memory_order_relaxed))
				locked_run(NULL, 100);
		}
		if (job != HELP_NOTHING)
			atomic_store_explicit(&shared.job, HELP_NOTHING, memory_order_release);
	}
}

static void ask(int job)
{
	atomic_store_explicit(&shared.job, job, memory_order_release);
}

static void answered(void)
{
	while (atomic_load_explicit(&shared.job, memory_order_acquire) != HELP_NOTHING)
		;
}

static void handed_lines(void)
{
	static double took[2][HANDOVERS];

	for (int i = 0; i < 2 * HANDOVERS; i++) {
		for (uint64_t l = 0; l < LINES; l++)
			atomic_store_explicit(&shared.line[l].next, (l * 37 + 11) % LINES,
			                      memory_order_relaxed);
		ask(HELP_READ);
		answered();
		took[(i + 1) % 2][i / 2] = shared.took[(i + 1) % 2];
	}
	tell("a line that the other CPU wrote, each load waits for the last",
	     bench_percentile(took[0], HANDOVERS, 0.5));
	tell("the same, loads side by side", bench_percentile(took[1], HANDOVERS, 0.5));
}

static void contended(void)
{
	double took[TURNS];

	atomic_store(&shared.stop, 0);
	ask(HELP_COUNT);
	for (int i = 0; i < TURNS; i++) {
		int64_t start = bench_now();

		locked_run(NULL, 5000);
		took[i] = (double)(bench_now() - start) / 5000;
	}
	atomic_store(&shared.stop, 1);
	answered();
	/* The worst: while one of the two does not run, it is not contended. */
	tell("a locked instruction that two CPUs fight for", bench_percentile(took, TURNS, 0.9));
}

/* Makes every CPU of the process pass a barrier; false: the kernel has no such call. */
static bool barrier(double *ns)
{
	double took[HANDOVERS];

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		return false;
	for (int i = 0; i < HANDOVERS; i++) {
		int64_t start = bench_now();

		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		took[i] = (double)(bench_now() - start);
	}
	*ns = bench_percentile(took, HANDOVERS, 0.5);
	return true;
}

static void two_cpus(void)
{
	uint64_t thread;
	double idle50, idle99, busy50, busy99, ns;

	tell("a line's way to the other CPU, at its fastest", bench_line_trip());
	if (barrier(&ns))
		tell("membarrier, no other thread runs", ns);
	bench_pin(0);
	bench_thread(&thread, helper, NULL);
	handed_lines();
	contended();
	if (barrier(&ns))
		tell("membarrier, a thread runs on the other CPU", ns);
	ask(HELP_END);
	bench_join(thread);
	bench_futex_wake(false, bench_sizes.wakes, &idle50, &idle99);
	bench_futex_wake(true, bench_sizes.wakes, &busy50, &busy99);
	tell("futex wake until the thread runs, the waker then sleeps: p50", idle50);
	tell("p99", idle99);
	tell("futex wake until the thread runs, the waker goes on: p50", busy50);
	tell("p99", busy99);
}

int main(int argc, char **argv)
{
	cpu_set_t set;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--quick") != 0)) {
		fprintf(stderr, "usage: wq_machine [--quick]\n");
		return 2;
	}
	if (argc == 2) {
		bench_sizes.quick = true;
		bench_sizes.slices = 10;
		bench_sizes.wakes = 50;
		bench_sizes.random_lines = 1 << 16;
		bench_sizes.trip_chunks = 10;
	}
	bench_check(sched_getaffinity(0, sizeof set, &set) == 0, "no affinity mask");
	bench_threads_begin();
	printf("| primitive | time |\n| --- | ---: |\n");
	one_thread();
	if (CPU_COUNT(&set) > 1)
		two_cpus();
	return 0;
}
