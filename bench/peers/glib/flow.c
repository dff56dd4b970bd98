/*
 * Rows of producers and consumers, as in bench/threads.c: a GAsyncQueue that passes
 * pointers to the keys, and for work_1us a GThreadPool.
 *
 * The queue merges nothing, so there are no rows of duplicates, and it has no end: the last
 * producer puts something into it for each consumer that is no key.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <sched.h>
#include <stdlib.h>

enum { SIDE_MAX = 8, BACKLOG = 1024, CLAIM = 128 };

/* A thread of a row; each on lines of its own. */
struct side {
	alignas(BENCH_LINE) struct flow *flow;
	int index;
	GThread *thread;
	int64_t start_ns;
	int64_t end_ns;
	uint64_t count;
	alignas(BENCH_LINE) _Atomic uint64_t seen; /* A: consumers' progress, for short_ */
};

struct shape {
	int producers;
	int consumers;
	void (*produce)(struct side *self);
	void (*consume)(struct side *self);
};

/* Padded on purpose: each of these is written by other threads than its neighbours. */
struct flow {
	const struct shape *shape;
	GAsyncQueue *q;
	GThreadPool *pool; /* work_: instead of the queue */
	size_t nkeys;
	size_t steps;                                 /* work_: that take 1 µs */
	alignas(BENCH_LINE) _Atomic int waiting;      /* A: threads that have yet to come */
	alignas(BENCH_LINE) _Atomic int adding;       /* A: producers that are not finished */
	alignas(BENCH_LINE) _Atomic uint64_t claimed; /* A: short_, keys added or about to be */
	alignas(BENCH_LINE) _Atomic int next;         /* A: work_, gives each thread its side */
	struct side producers[SIDE_MAX];
	struct side consumers[SIDE_MAX];
};

/* ---- what producers do ----------------------------------------------------- */

static void part_of(const struct side *self, size_t *from, size_t *to)
{
	size_t n = self->flow->nkeys, parts = (size_t)self->flow->shape->producers;

	*from = n * (size_t)self->index / parts;
	*to = n * ((size_t)self->index + 1) / parts;
}

static void produce_all(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	GAsyncQueue *q = self->flow->q;
	size_t from, to;

	part_of(self, &from, &to);
	for (size_t i = from; i < to; i++)
		g_async_queue_push(q, peer_key(pool, i));
	self->count = to - from;
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

/* The right to add a few keys, see bench/threads.c. */
static void claim(struct flow *f, uint64_t n)
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

static void produce_short(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	GAsyncQueue *q = self->flow->q;
	size_t from, to;

	part_of(self, &from, &to);
	for (size_t i = from; i < to;) {
		size_t n = to - i < CLAIM ? to - i : CLAIM;

		claim(self->flow, n);
		for (size_t end = i + n; i < end; i++)
			g_async_queue_push(q, peer_key(pool, i));
	}
	self->count = to - from;
}

static void produce_work(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	size_t from, to;

	part_of(self, &from, &to);
	for (size_t i = from; i < to; i++)
		g_thread_pool_push(self->flow->pool, peer_key(pool, i), NULL);
	self->count = to - from;
}

/* ---- what consumers do ----------------------------------------------------- */

static void consume_all(struct side *self)
{
	GAsyncQueue *q = self->flow->q;
	uint64_t n = 0;

	while (g_async_queue_pop(q) != peer_over)
		n++;
	self->count = n;
}

static void consume_short(struct side *self)
{
	GAsyncQueue *q = self->flow->q;
	uint64_t n = 0;

	while (g_async_queue_pop(q) != peer_over)
		/* relaxed: only the number is passed on */
		atomic_store_explicit(&self->seen, ++n, memory_order_relaxed);
	self->count = n;
}

/* The threads are the pool's own, and end with it. */
static void handle(gpointer key, gpointer arg)
{
	static _Thread_local struct side *self;
	struct flow *f = arg;

	(void)key;
	if (!self)
		self = &f->consumers[atomic_fetch_add(&f->next, 1)];
	bench_steps(f->steps);
	self->count++;
}

/* ---- the run of a row ------------------------------------------------------ */

static void wait_for_start(struct side *self)
{
	struct flow *f = self->flow;

	atomic_fetch_sub(&f->waiting, 1);
	while (atomic_load(&f->waiting) > 0)
		sched_yield();
	self->start_ns = bench_now();
}

static gpointer producer(gpointer arg)
{
	struct side *self = arg;
	struct flow *f = self->flow;

	wait_for_start(self);
	f->shape->produce(self);
	if (atomic_fetch_sub(&f->adding, 1) == 1) {
		for (int i = 0; f->q && i < f->shape->consumers; i++)
			g_async_queue_push(f->q, peer_over);
		if (f->pool)
			g_thread_pool_free(f->pool, FALSE, TRUE); /* all keys are worked on first */
	}
	self->end_ns = bench_now();
	return NULL;
}

static gpointer consumer(gpointer arg)
{
	struct side *self = arg;

	wait_for_start(self);
	self->flow->shape->consume(self);
	self->end_ns = bench_now();
	return NULL;
}

static void start_sides(struct flow *f, struct side *sides, int n, GThreadFunc fn)
{
	for (int i = 0; i < n; i++) {
		sides[i].flow = f;
		sides[i].index = i;
		sides[i].thread = g_thread_new(NULL, fn, &sides[i]);
	}
}

static void join_sides(struct side *sides, int n, int64_t *first_ns, int64_t *last_ns)
{
	for (int i = 0; i < n; i++) {
		g_thread_join(sides[i].thread);
		*first_ns = MIN(*first_ns, sides[i].start_ns);
		*last_ns = MAX(*last_ns, sides[i].end_ns);
	}
}

static uint64_t sum_of(const struct side *sides)
{
	uint64_t sum = 0;

	for (int i = 0; i < SIDE_MAX; i++)
		sum += sides[i].count;
	return sum;
}

static size_t count_keys(const struct shape *s)
{
	if (s->produce == produce_work)
		return bench_sizes.keys / 10;
	return s->produce == produce_short ? bench_sizes.short_keys : bench_pool()->n;
}

/* All threads, the pool's as well, are there before time runs. */
static void flow_run(const void *arg, double *values)
{
	const struct shape *s = arg;
	struct flow *f = bench_alloc_lines(sizeof *f);
	int64_t first_ns = INT64_MAX, last_ns = 0;
	bool works = s->produce == produce_work;

	f->shape = s;
	f->nkeys = count_keys(s);
	bench_pool();
	if (works) {
		f->steps = bench_count_steps();
		f->pool = g_thread_pool_new(handle, f, s->consumers, TRUE, NULL);
	} else {
		f->q = g_async_queue_new();
	}
	atomic_store(&f->waiting, s->producers + (works ? 0 : s->consumers));
	atomic_store(&f->adding, s->producers);
	if (!works)
		start_sides(f, f->consumers, s->consumers, consumer);
	start_sides(f, f->producers, s->producers, producer);
	join_sides(f->producers, s->producers, &first_ns, &last_ns);
	if (!works) {
		join_sides(f->consumers, s->consumers, &first_ns, &last_ns);
		g_async_queue_unref(f->q);
	}
	bench_check(sum_of(f->producers) == f->nkeys && sum_of(f->consumers) == f->nkeys,
	            "keys were lost");
	values[0] = (double)f->nkeys / ((double)(last_ns - first_ns) * 1e-9);
	free(f);
}

/* ---- to and fro ------------------------------------------------------------ */

struct player {
	GAsyncQueue *from, *to;
	bool serves;
	int64_t took_ns;
};

static gpointer play(gpointer arg)
{
	struct player *p = arg;
	gpointer key = peer_key(bench_pool(), 1);
	int64_t start = bench_now();

	if (p->serves)
		g_async_queue_push(p->to, key);
	for (size_t i = 0; i < bench_sizes.round_trips; i++) {
		key = g_async_queue_pop(p->from);
		/* The one who began also keeps the key in the end. */
		if (!p->serves || i + 1 < bench_sizes.round_trips)
			g_async_queue_push(p->to, key);
	}
	p->took_ns = bench_now() - start;
	return NULL;
}

static void pingpong_run(const void *arg, double *values)
{
	GAsyncQueue *a = g_async_queue_new(), *b = g_async_queue_new();
	struct player left = {.from = a, .to = b, .serves = true};
	struct player right = {.from = b, .to = a};
	GThread *threads[2];

	(void)arg;
	bench_pool();
	threads[0] = g_thread_new(NULL, play, &right);
	threads[1] = g_thread_new(NULL, play, &left);
	for (int i = 0; i < 2; i++)
		g_thread_join(threads[i]);
	bench_check(g_async_queue_length(a) == 0 && g_async_queue_length(b) == 0,
	            "pingpong: a key is left");
	g_async_queue_unref(a);
	g_async_queue_unref(b);
	values[0] = (double)left.took_ns / (double)bench_sizes.round_trips;
}

/* ---- the rows -------------------------------------------------------------- */

#define FLOW(name_, p_, c_, produce_, consume_)                                                    \
	{                                                                                          \
		.names = {name_}, .unit = "keys/s",                                                \
		.arg = &(const struct shape){p_, c_, produce_, consume_}, .run = flow_run,         \
	}

static const struct peer_group groups[] = {
    FLOW("pc_1_1", 1, 1, produce_all, consume_all),
    FLOW("pc_4_4", 4, 4, produce_all, consume_all),
    FLOW("threads@1", 1, 1, produce_all, consume_all),
    FLOW("threads@2", 2, 2, produce_all, consume_all),
    FLOW("threads@4", 4, 4, produce_all, consume_all),
    FLOW("threads@8", 8, 8, produce_all, consume_all),
    FLOW("short_1_1", 1, 1, produce_short, consume_short),
    FLOW("short_2_2", 2, 2, produce_short, consume_short),
    FLOW("short_4_4", 4, 4, produce_short, consume_short),
    FLOW("work_1us", 4, 4, produce_work, NULL),
    {.names = {"pingpong"}, .unit = "ns", .run = pingpong_run},
};

const struct peer_groups peer_flow = {groups, sizeof groups / sizeof groups[0]};
