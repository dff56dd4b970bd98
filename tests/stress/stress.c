#define _GNU_SOURCE
#include "stress.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWER 0.2
#elif __has_feature(address_sanitizer)
#define SLOWER 0.5
#endif
#endif
#if !defined(SLOWER) && defined(__SANITIZE_THREAD__)
#define SLOWER 0.2
#elif !defined(SLOWER) && defined(__SANITIZE_ADDRESS__)
#define SLOWER 0.5
#elif !defined(SLOWER)
#define SLOWER 1.0
#endif

void stress_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

static void on_alarm(int sig)
{
	static const char text[] = "hangs: some thread never returned\n";

	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	abort();
}

static void one_cpu(void)
{
	cpu_set_t all, one;

	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	if (sched_setaffinity(0, sizeof one, &one) != 0) {
		puts("the CPU cannot be chosen here: skipped");
		exit(77);
	}
}

static bool spin(struct stress *st, const char *how)
{
	if (strcmp(how, "never") == 0)
		st->spin_ns = WQ_SPIN_NEVER;
	else if (strcmp(how, "fixed") == 0)
		st->spin_ns = 20 * WQ_MICROSECOND;
	else if (strcmp(how, "adaptive") == 0)
		st->spin_ns = 0;
	else
		return false;
	return true;
}

void stress_init(struct stress *st, int argc, char **argv, bool (*word)(const char *))
{
	const char *is_long = getenv("WQ_LONG");
	unsigned limit = STRESS_HANG_S;
	bool ok = true;

	*st = (struct stress){.seed = (uint64_t)time(NULL), .scale = SLOWER};
	if (is_long && strcmp(is_long, "1") == 0) {
		st->scale *= 4;
		limit *= 4;
	}
	for (int i = 1; ok && i < argc; i++) {
		if (strcmp(argv[i], "--one-cpu") == 0)
			one_cpu();
		else if (argv[i][0] != '-')
			ok = word && word(argv[i]);
		else if (i + 1 == argc)
			ok = false;
		else if (strcmp(argv[i], "--seed") == 0)
			st->seed = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--scale") == 0)
			st->scale *= strtod(argv[++i], NULL);
		else if (strcmp(argv[i], "--spin") == 0)
			ok = spin(st, argv[++i]);
		else
			ok = false;
	}
	if (!ok) {
		fprintf(stderr, "%s: bad arguments\n", argv[0]);
		exit(2);
	}
	printf("seed %llu, scale %g\n", (unsigned long long)st->seed, st->scale);
	fflush(stdout);
	signal(SIGALRM, on_alarm);
	alarm(limit);
}

long stress_ops(const struct stress *st, long n)
{
	double scaled = (double)n * st->scale;

	return scaled < 1 ? 1 : (long)scaled;
}

wq_queue *stress_queue(const struct stress *st, const wq_options *options)
{
	wq_options o = options ? *options : (wq_options){0};
	wq_queue *q = NULL;

	o.spin_ns = st->spin_ns;
	CHECK_EQ(wq_new(&q, &o), WQ_OK);
	return q;
}

uint32_t stress_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void *crew_main(void *arg)
{
	struct crew_job *j = arg;

	pthread_barrier_wait(&j->crew->start);
	j->run(j->ctx);
	return NULL;
}

void crew_add(struct crew *c, void (*run)(void *), void *ctx)
{
	CHECK(c->n < CREW_MAX);
	c->job[c->n++] = (struct crew_job){c, run, ctx};
}

void crew_start(struct crew *c)
{
	CHECK(pthread_barrier_init(&c->start, NULL, (unsigned)c->n) == 0);
	for (int i = 0; i < c->n; i++)
		CHECK(pthread_create(&c->thread[i], NULL, crew_main, &c->job[i]) == 0);
}

void crew_join(struct crew *c)
{
	for (int i = 0; i < c->n; i++)
		CHECK(pthread_join(c->thread[i], NULL) == 0);
	pthread_barrier_destroy(&c->start);
	c->n = 0;
}
