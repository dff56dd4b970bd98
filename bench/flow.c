/* Threads of producers and consumers, see flow.h. */
#define _GNU_SOURCE
#include "flow.h"

#include <sched.h>
#include <stdlib.h>

enum { BACKLOG = 1024 };

void flow_part(const struct side *self, size_t *from, size_t *to)
{
	size_t n = self->flow->nkeys, parts = (size_t)self->flow->shape->producers;

	*from = n * (size_t)self->index / parts;
	*to = n * ((size_t)self->index + 1) / parts;
}

static void pause_some(int n)
{
	for (int i = 0; i < n; i++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("isb");
#endif
	}
}

void flow_claim(struct flow *f, uint64_t n)
{
	for (;;) {
		uint64_t claimed = atomic_load_explicit(&f->claimed, memory_order_relaxed);
		uint64_t seen = 0;

		for (int i = 0; i < f->shape->consumers; i++)
			seen += atomic_load_explicit(&f->consumers[i].seen, memory_order_relaxed);
		if (claimed + n < seen + BACKLOG) {
			if (atomic_compare_exchange_strong_explicit(&f->claimed, &claimed,
			                                            claimed + n,
			                                            memory_order_relaxed,
			                                            memory_order_relaxed))
				return;
			continue;
		}
		pause_some(32);
		sched_yield();
	}
}

static void wait_for_start(struct side *self)
{
	struct flow *f = self->flow;

	atomic_fetch_sub(&f->waiting, 1);
	while (atomic_load(&f->waiting) > 0)
		sched_yield();
	self->start_ns = bench_now();
}

static void *producer(void *arg)
{
	struct side *self = arg;
	struct flow *f = self->flow;

	wait_for_start(self);
	f->shape->produce(self);
	if (atomic_fetch_sub(&f->adding, 1) == 1)
		f->shape->finish(self);
	self->end_ns = bench_now();
	return NULL;
}

static void *consumer(void *arg)
{
	struct side *self = arg;

	wait_for_start(self);
	self->flow->shape->consume(self);
	self->end_ns = bench_now();
	return NULL;
}

static void start_sides(struct flow *f, struct side *sides, int n, void *(*fn)(void *))
{
	for (int i = 0; i < n; i++) {
		sides[i].flow = f;
		sides[i].index = i;
		bench_thread(&sides[i].thread, fn, &sides[i]);
	}
}

static uint64_t join_sides(struct side *sides, int n, int64_t *first_ns, int64_t *last_ns)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		bench_join(sides[i].thread);
		bench_check(!sides[i].bad, "producers and consumers: a call failed");
		sum += sides[i].count;
		if (sides[i].start_ns < *first_ns)
			*first_ns = sides[i].start_ns;
		if (sides[i].end_ns > *last_ns)
			*last_ns = sides[i].end_ns;
	}
	return sum;
}

struct flow *flow_new(const struct shape *shape, size_t nkeys)
{
	struct flow *f = bench_alloc_lines(sizeof *f);

	f->shape = shape;
	f->nkeys = nkeys;
	if (shape->work)
		f->steps = bench_count_steps();
	bench_pool();
	return f;
}

struct flow_result flow_go(struct flow *f)
{
	const struct shape *s = f->shape;
	int64_t first_ns = INT64_MAX, last_ns = 0;
	struct flow_result result;

	atomic_store(&f->waiting, s->producers + s->consumers);
	atomic_store(&f->adding, s->producers);
	atomic_store(&f->stop, false);
	atomic_store(&f->claimed, 0);
	for (int i = 0; i < SIDE_MAX; i++)
		atomic_store(&f->consumers[i].seen, 0);
	start_sides(f, f->consumers, s->consumers, consumer);
	start_sides(f, f->producers, s->producers, producer);
	if (s->hot) {
		bench_rest(bench_sizes.hot_ns);
		atomic_store(&f->stop, true);
	}
	result.added = join_sides(f->producers, s->producers, &first_ns, &last_ns);
	result.got = join_sides(f->consumers, s->consumers, &first_ns, &last_ns);
	result.seconds = (double)(last_ns - first_ns) * 1e-9;
	return result;
}
