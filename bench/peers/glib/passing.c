/*
 * Rows of producers and consumers, as in bench/threads.c: a GAsyncQueue that passes
 * pointers to the keys, and for work_1us a GThreadPool.
 *
 * The queue merges nothing, so there are no rows of duplicates, and it has no end: the last
 * producer puts something into it for each consumer that is no key.
 */
#include "flow.h"

#include <stdlib.h>

#include "peer.h"

enum { WORKERS = 4 };

/* ---- what producers do ----------------------------------------------------- */

static void produce_all(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	GAsyncQueue *q = self->flow->q;
	size_t from, to;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to; i++)
		g_async_queue_push(q, peer_key(pool, i));
	self->count = to - from;
}

static void produce_short(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	GAsyncQueue *q = self->flow->q;
	size_t from, to;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to;) {
		size_t n = to - i < CLAIM ? to - i : CLAIM;

		flow_claim(self->flow, n);
		for (size_t end = i + n; i < end; i++)
			g_async_queue_push(q, peer_key(pool, i));
	}
	self->count = to - from;
}

static void produce_work(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	size_t from, to;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to; i++)
		g_thread_pool_push(self->flow->q, peer_key(pool, i), NULL);
	self->count = to - from;
}

static void end_queue(struct side *self)
{
	for (int i = 0; i < self->flow->shape->consumers; i++)
		g_async_queue_push(self->flow->q, peer_over);
}

/* All keys are worked on first. */
static void end_pool(struct side *self)
{
	g_thread_pool_free(self->flow->q, FALSE, TRUE);
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
	static _Atomic int next; /* A: gives each thread its side */
	static _Thread_local struct side *self;
	struct flow *f = arg;

	(void)key;
	if (!self)
		self = &f->consumers[atomic_fetch_add(&next, 1)];
	bench_steps(f->steps);
	self->count++;
}

/* ---- the run of a row ------------------------------------------------------ */

static void finish(struct flow *f, const struct flow_result *r, double *values)
{
	bench_check(r->added == f->nkeys && r->got == f->nkeys, "keys were lost");
	values[0] = (double)f->nkeys / r->seconds;
	free(f);
}

static void flow_run(const void *arg, double *values)
{
	const struct shape *s = arg;
	size_t nkeys = s->produce == produce_short ? bench_sizes.short_keys : bench_pool()->n;
	struct flow *f = flow_new(s, nkeys);
	struct flow_result r;

	f->q = g_async_queue_new();
	r = flow_go(f);
	g_async_queue_unref(f->q);
	finish(f, &r, values);
}

/* All threads, the pool's as well, are there before time runs. */
static void work_run(const void *arg, double *values)
{
	struct flow *f = flow_new(arg, bench_sizes.keys / 10);
	struct flow_result r;

	f->q = g_thread_pool_new(handle, f, WORKERS, TRUE, NULL);
	r = flow_go(f);
	for (int i = 0; i < WORKERS; i++)
		r.got += f->consumers[i].count;
	finish(f, &r, values);
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
		.arg = &(const struct shape){p_, c_, produce_, consume_, .finish = end_queue},     \
		.run = flow_run,                                                                   \
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
    {
	.names = {"work_1us"},
	.unit = "keys/s",
	.arg = &(const struct shape){WORKERS, .produce = produce_work, .finish = end_pool,
                                     .work = true},
	.run = work_run,
    },
    {.names = {"pingpong"}, .unit = "ns", .run = pingpong_run},
};

const struct peer_groups peer_flow = {groups, sizeof groups / sizeof groups[0]};
