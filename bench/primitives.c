/*
 * What a row is judged by. Each is the least that the machine asks for the
 * thing, measured in the same run and close to the row:
 *
 *   mutex          one uncontended lock and unlock of a pthread mutex
 *   random access  one dependent load over 512 MB of ordinary pages
 *   line trip      a cache line's way from one CPU to another, at its fastest
 *   futex wake     from the wake to the first instruction of the woken thread
 *   clock          one reading of CLOCK_MONOTONIC
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- tools ---------------------------------------------------------------- */

void bench_child(const char *option, char *line, size_t size)
{
	char *argv[] = {"wq_bench", bench_sizes.quick ? "--quick" : (char *)(uintptr_t)option,
	                (char *)(uintptr_t)option, NULL};
	posix_spawn_file_actions_t actions;
	int pipe_fds[2], status = -1;
	pid_t pid;

	if (!bench_sizes.quick)
		argv[2] = NULL;
	bench_check(pipe2(pipe_fds, O_CLOEXEC) == 0, "no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
	bench_check(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ) == 0,
	            "a child could not be started");
	posix_spawn_file_actions_destroy(&actions);
	close(pipe_fds[1]);

	FILE *out = fdopen(pipe_fds[0], "r");

	bench_check(out && fgets(line, (int)size, out), "a child said nothing");
	fclose(out);
	bench_check(waitpid(pid, &status, 0) == pid && status == 0, "a child failed");
}

wq_queue *bench_queue(void)
{
	wq_queue *q = NULL;

	bench_check(wq_new(&q, NULL) == WQ_OK, "wq_new failed");
	return q;
}

wq_queue *bench_seeded_queue(const wq_clock *clock, const wq_order *order)
{
	wq_queue *q = NULL;

	bench_check(wq_new(&q, &(wq_options){.seed = 1, .clock = clock, .order = order}) == WQ_OK,
	            "wq_new failed");
	return q;
}

wq_queue *bench_ranked_queue(void)
{
	wq_queue *q = NULL;

	bench_check(wq_new(&q, &(wq_options){.priorities = 1, .seed = 1}) == WQ_OK,
	            "no queue with priorities");
	return q;
}

wq_queue *bench_named_queue(wq_registry *r)
{
	wq_queue *q = NULL;

	bench_check(wq_new(&q, &(wq_options){.name = "bench", .registry = r}) == WQ_OK,
	            "wq_new failed");
	return q;
}

void bench_queue_free(wq_queue *q, size_t left)
{
	bench_check(wq_free(q) == (int)left, "the queue does not hold what it should");
}

/* ---- futex ---------------------------------------------------------------- */

void bench_bell_wait(struct bench_bell *bell)
{
	/* acquire: pairs with the release in bench_bell_ring() */
	while (atomic_exchange_explicit(&bell->word, 0, memory_order_acquire) == 0)
		syscall(SYS_futex, &bell->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

void bench_bell_ring(struct bench_bell *bell)
{
	/* release: pairs with the acquire in bench_bell_wait() */
	atomic_store_explicit(&bell->word, 1, memory_order_release);
	syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- mutex and clock ------------------------------------------------------ */

static void *sleep_for_ever(void *arg)
{
	for (;;)
		bench_bell_wait(arg);
	return NULL;
}

/*
 * glibc leaves the atomics out of a mutex in a process that never had a second
 * thread, which makes it three times as fast. This thread makes sure that mutex
 * and rows are all measured in a process of several threads: it sleeps to the
 * end, for a C library might notice that its last thread was joined.
 */
void bench_threads_begin(void)
{
	static struct bench_bell never;
	uint64_t thread;

	bench_thread(&thread, sleep_for_ever, &never);
	pthread_detach((pthread_t)thread);
}

static void mutex_run(void *state, size_t n)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void clock_run(void *state, size_t n)
{
	(void)state;
	for (size_t i = 0; i < n; i++)
		bench_now();
}

const struct bench_work bench_mutex = {.run = mutex_run, .slice_ops = 50000};
const struct bench_work bench_clock = {.run = clock_run, .slice_ops = 30000};

/* ---- random access -------------------------------------------------------- */

struct line {
	uint32_t next;
	char rest[60];
};

/*
 * A chain through all lines. A linear congruence of full period makes it: the
 * page of each step is as good as random, and it is written in one pass.
 */
static struct line *make_chain(void)
{
	size_t n = bench_sizes.random_lines;
	struct line *lines = mmap(NULL, n * sizeof *lines, PROT_READ | PROT_WRITE,
	                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bench_check(lines != MAP_FAILED, "no memory for random access");
	/* Ordinary pages, as the queue's own are. */
	madvise(lines, n * sizeof *lines, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		lines[i].next = (uint32_t)((i * 1664525 + 1013904223) % n);
	return lines;
}

/* Each call goes on where the last one stopped, over lines that are cold. */
static void random_run(void *state, size_t n)
{
	static struct line *lines;
	static uint32_t at;
	uint32_t i = at;

	(void)state;
	if (!lines)
		lines = make_chain();
	for (size_t step = 0; step < n; step++)
		i = lines[i].next;
	at = i;
}

const struct bench_work bench_random_access = {.run = random_run, .slice_ops = 8000};

/* ---- the way between two CPUs --------------------------------------------- */

enum { TRIP_CHUNKS_MAX = 1000, TRIP_CHUNKS_LEAST = 5, TRIP_ROUNDS = 200 };

#define TRIP_OVER UINT32_MAX

struct trip {
	alignas(BENCH_LINE) _Atomic uint32_t ball; /* A: odd on its way out, even on its way back */
	alignas(BENCH_LINE) double chunks[TRIP_CHUNKS_MAX];
	size_t nchunks;
};

/* No pause in these loops: it is longer than a trip. */
static void *trip_back(void *arg)
{
	struct trip *t = arg;

	bench_pin(1);
	for (uint32_t expected = 1;; expected += 2) {
		uint32_t ball;

		while ((ball = atomic_load_explicit(&t->ball, memory_order_acquire)) != expected)
			if (ball == TRIP_OVER)
				return NULL;
		atomic_store_explicit(&t->ball, expected + 1, memory_order_release);
	}
}

/* On a busy machine both ends seldom run at once: then few chunks must do. */
static void *trip_out(void *arg)
{
	struct trip *t = arg;
	uint32_t ball = 0;
	int64_t begin = bench_now();

	bench_pin(0);
	for (t->nchunks = 0; t->nchunks < bench_sizes.trip_chunks; t->nchunks++) {
		int64_t start = bench_now();

		if (t->nchunks >= TRIP_CHUNKS_LEAST && start - begin > 50 * WQ_MILLISECOND)
			break;
		for (int i = 0; i < TRIP_ROUNDS; i++) {
			atomic_store_explicit(&t->ball, ++ball, memory_order_release);
			++ball;
			while (atomic_load_explicit(&t->ball, memory_order_acquire) != ball)
				;
		}
		t->chunks[t->nchunks] = (double)(bench_now() - start) / (2.0 * TRIP_ROUNDS);
	}
	atomic_store_explicit(&t->ball, TRIP_OVER, memory_order_release);
	return NULL;
}

double bench_line_trip(void)
{
	static struct trip t;
	cpu_set_t set;
	uint64_t threads[2];

	/* Both ends run in threads of their own: the caller's affinity stays. */
	bench_check(sched_getaffinity(0, sizeof set, &set) == 0, "no affinity mask");
	if (CPU_COUNT(&set) < 2)
		return 0;
	atomic_store(&t.ball, 0);
	bench_thread(&threads[0], trip_back, &t);
	bench_thread(&threads[1], trip_out, &t);
	bench_join(threads[0]);
	bench_join(threads[1]);
	/*
	 * The fastest chunks: they tell how far apart the CPUs are. How busy they
	 * were meanwhile, with other guests or with other threads, is in the rest.
	 */
	return bench_low(t.chunks, t.nchunks);
}
