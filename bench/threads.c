/*
 * Rows of several threads: P producers and C consumers at full speed.
 *
 *   pc_P_C       2M keys once; nothing holds the producers back
 *   threads@T    the same with T of either
 *   pc_next_P_C  the consumers use wq_next()
 *   pc_many_P_C  both sides work in batches of 32
 *   pc_priority_P_C  keys have 3 priorities in turn
 *   short_P_C    the producers keep the backlog under 1,024 keys
 *   hot_P_C      1,000 keys, some much more often than others; for a fixed
 *                time; what counts is Adds + 2 × Gets (a Get brings a Done)
 *   work_1us     4 producers add 100k keys, and 4 consumers work for 1 µs on each; to
 *                compare, beside what the CPUs could do if nothing else were to be done
 *   pingpong     two queues, two threads, one key to and fro
 *
 * Repetitions are short, 50 to 100 ms where the row does not ask for more, and
 * there are many: some of them find the machine undisturbed (see slices.c).
 *
 * No thread is pinned. Every key that went in must come out, or there is no
 * figure. Time runs from the first thread's start to the last one's end.
 */
#define _GNU_SOURCE
#include "flow.h"

#include <stdlib.h>
#include <unistd.h>

enum { WORK_SIDES = 4, BATCH = 32 };

/* ---- what producers do ----------------------------------------------------- */

static void produce_all(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	wq_queue *q = self->flow->q;
	size_t from, to;
	int bad = 0;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to; i++)
		bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;
	self->bad = bad;
	self->count = to - from;
}

static void produce_ranked(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	wq_queue *q = self->flow->q;
	size_t from, to;
	int bad = 0;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to; i++) {
		wq_add_options o = {.priority = (int32_t)(i % 3)};

		bad |= wq_add_with(q, bench_key(pool, i), KEY_LEN, &o) != WQ_QUEUED;
	}
	self->bad = bad;
	self->count = to - from;
}

static void produce_many(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	wq_queue *q = self->flow->q;
	wq_key keys[BATCH];
	size_t from, to;
	int bad = 0;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to;) {
		size_t batch = 0;

		for (; batch < BATCH && i < to; batch++, i++)
			keys[batch] = (wq_key){.key = bench_key(pool, i), .len = KEY_LEN};
		bad |= wq_add_many(q, keys, batch, NULL) != (int)batch;
	}
	self->bad = bad;
	self->count = to - from;
}

static void produce_short(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	wq_queue *q = self->flow->q;
	size_t from, to;
	int bad = 0;

	flow_part(self, &from, &to);
	for (size_t i = from; i < to;) {
		size_t n = to - i < CLAIM ? to - i : CLAIM;

		flow_claim(self->flow, n);
		for (size_t end = i + n; i < end; i++)
			bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;
	}
	self->bad = bad;
	self->count = to - from;
}

enum { HOT_KEYS = 1000, HOT_DRAWS = 1 << 16, HOT_SIDES = 4 };

static void produce_hot(struct side *self)
{
	const struct bench_keys *pool = bench_pool();
	struct flow *f = self->flow;
	size_t at = (size_t)self->index * (HOT_DRAWS / HOT_SIDES);
	uint64_t n = 0;
	int bad = 0;

	while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
		bad |= wq_add(f->q, bench_key(pool, f->draws[at]), KEY_LEN) < 0;
		at = (at + 1) % HOT_DRAWS;
		n++;
	}
	self->bad = bad;
	self->count = n;
}

/* Consumers end when it is empty. */
static void shut(struct side *self)
{
	self->bad |= wq_shutdown(self->flow->q) != WQ_OK;
}

/* ---- what consumers do ----------------------------------------------------- */

static inline __attribute__((always_inline)) void consume(struct side *self, bool shows, bool works)
{
	wq_queue *q = self->flow->q;
	size_t steps = self->flow->steps;
	uint64_t n = 0;
	wq_item item;
	int bad = 0, rc;

	while ((rc = wq_get(q, &item)) == WQ_OK) {
		if (works)
			bench_steps(steps);
		bad |= wq_done(q, &item) < 0;
		n++;
		if (shows) /* relaxed: only the number is passed on */
			atomic_store_explicit(&self->seen, n, memory_order_relaxed);
	}
	self->bad = bad | (rc != WQ_ESHUTDOWN);
	self->count = n;
}

static void consume_all(struct side *self)
{
	consume(self, false, false);
}

static void consume_short(struct side *self)
{
	consume(self, true, false);
}

static void consume_work(struct side *self)
{
	consume(self, false, true);
}

static void consume_next(struct side *self)
{
	wq_queue *q = self->flow->q;
	uint64_t n = 0;
	wq_item item;
	int rc;

	for (rc = wq_get(q, &item); rc == WQ_OK; rc = wq_next(q, &item))
		n++;
	self->bad = rc != WQ_ESHUTDOWN;
	self->count = n;
}

static void consume_many(struct side *self)
{
	wq_queue *q = self->flow->q;
	wq_item items[BATCH];
	uint64_t n = 0;
	int rc = 0;

	while ((rc = wq_next_many_until(q, items, (size_t)rc, BATCH, WQ_NEVER)) > 0)
		n += (uint64_t)rc;
	self->bad = rc != WQ_ESHUTDOWN;
	self->count = n;
}

/* ---- the run of a row ------------------------------------------------------ */

static size_t count_keys(const struct shape *s)
{
	if (s->work)
		return bench_sizes.keys / 10;
	return s->produce == produce_short ? bench_sizes.short_keys : bench_pool()->n;
}

static void *flow_setup(const void *arg)
{
	const struct shape *shape = arg;
	struct flow *f = flow_new(shape, count_keys(shape));

	if (shape->hot)
		f->draws = bench_zipf(HOT_DRAWS, HOT_KEYS, 1.1);
	return f;
}

/* Keys of 1 µs in a second, if the CPUs did nothing else. */
static double most_work(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return 1e6 * (double)(cpus < WORK_SIDES ? cpus : WORK_SIDES);
}

static void flow_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct shape *s = arg;
	struct flow *f = state;
	struct flow_result r;

	f->q = s->ranked ? bench_ranked_queue() : bench_queue();
	r = flow_go(f);
	bench_queue_free(f->q, 0);
	samples[0].limit = most_work(); /* work_: the others have a floor */
	if (s->hot) {
		bench_check(r.got > 0 && r.got <= r.added, "hot keys: more came out than went in");
		samples[0].value = (double)(r.added + 2 * r.got) / r.seconds;
	} else {
		bench_check(r.added == f->nkeys && r.got == r.added, "keys were lost");
		samples[0].value = (double)r.got / r.seconds;
	}
}

static void flow_teardown(void *state)
{
	struct flow *f = state;

	free((void *)(uintptr_t)f->draws);
	free(f);
}

/* ---- to and fro ------------------------------------------------------------ */

struct player {
	wq_queue *from, *to;
	bool serves;
	uint64_t thread;
	int64_t took_ns;
	int bad;
};

static void *play(void *arg)
{
	struct player *p = arg;
	char key[KEY_LEN + 1];
	int bad = 0;
	wq_item item;

	bench_key_format(key, 1);

	int64_t start = bench_now();

	if (p->serves)
		bad |= wq_add(p->to, key, KEY_LEN) != WQ_QUEUED;
	for (size_t i = 0; i < bench_sizes.round_trips; i++) {
		bad |= wq_get(p->from, &item) != WQ_OK;
		bad |= wq_done(p->from, &item) != WQ_OK;
		/* The one who began also keeps the key in the end. */
		if (!p->serves || i + 1 < bench_sizes.round_trips)
			bad |= wq_add(p->to, key, KEY_LEN) != WQ_QUEUED;
	}
	p->took_ns = bench_now() - start;
	p->bad = bad;
	return NULL;
}

static void pingpong_run(const void *arg, void *state, struct bench_sample *samples)
{
	wq_queue *a = bench_queue(), *b = bench_queue();
	struct player left = {.from = a, .to = b, .serves = true};
	struct player right = {.from = b, .to = a};

	(void)arg;
	(void)state;

	double before = bench_line_trip();

	bench_thread(&right.thread, play, &right);
	bench_thread(&left.thread, play, &left);
	bench_join(left.thread);
	bench_join(right.thread);
	bench_check(!left.bad && !right.bad, "pingpong: a call failed");
	bench_queue_free(a, 0);
	bench_queue_free(b, 0);
	samples[0].value = (double)left.took_ns / (double)bench_sizes.round_trips;
	samples[0].limit = before + bench_line_trip(); /* two ways, of the mean trip */
}

/* ---- the rows -------------------------------------------------------------- */

#define FLOW(name_, unit_, reps_, floor_, p_, c_, produce_, consume_, hot_)                        \
	{                                                                                          \
		.rows = {{name_, unit_, BAR_FLOOR, floor_, "floor"}}, .nrows = 1, .reps = reps_,   \
		.threads = true,                                                                   \
		.arg = &(const struct shape){.producers = p_,                                      \
		                             .consumers = c_,                                      \
		                             .produce = produce_,                                  \
		                             .consume = consume_,                                  \
		                             .finish = shut,                                       \
		                             .hot = hot_},                                         \
		.setup = flow_setup, .run = flow_run, .teardown = flow_teardown,                   \
	}

#define THREADS_AT(t_)                                                                             \
	{                                                                                          \
		.rows = {{"threads@" #t_, "keys/s", BAR_NONE, 0, NULL}}, .nrows = 1, .reps = 3,    \
		.threads = true,                                                                   \
		.arg = &(const struct shape){t_, t_, produce_all, consume_all, .finish = shut},    \
		.setup = flow_setup, .run = flow_run, .teardown = flow_teardown,                   \
	}

static const struct bench_group groups[] = {
    FLOW("pc_1_1", "keys/s", 9, 7.5e6, 1, 1, produce_all, consume_all, false),
    FLOW("pc_4_4", "keys/s", 9, 7e6, 4, 4, produce_all, consume_all, false),
    FLOW("pc_next_1_1", "keys/s", 9, 12e6, 1, 1, produce_all, consume_next, false),
    FLOW("pc_next_4_4", "keys/s", 9, 10e6, 4, 4, produce_all, consume_next, false),
    FLOW("pc_many_1_1", "keys/s", 9, 20e6, 1, 1, produce_many, consume_many, false),
    FLOW("short_1_1", "keys/s", 15, 11.5e6, 1, 1, produce_short, consume_short, false),
    FLOW("short_2_2", "keys/s", 15, 11e6, 2, 2, produce_short, consume_short, false),
    FLOW("short_4_4", "keys/s", 15, 9e6, 4, 4, produce_short, consume_short, false),
    FLOW("hot_1_1", "ops/s", 15, 50e6, 1, 1, produce_hot, consume_all, true),
    FLOW("hot_4_4", "ops/s", 15, 30e6, 4, 4, produce_hot, consume_all, true),
    {
	.rows = {{"pc_priority_1_1", "keys/s", BAR_FLOOR, 4e6, "floor"}},
	.nrows = 1,
	.reps = 9,
	.threads = true,
	.arg = &(const struct shape){1, 1, produce_ranked, consume_all, .finish = shut,
                                     .ranked = true},
	.setup = flow_setup,
	.run = flow_run,
	.teardown = flow_teardown,
    },
    {
	.rows = {{"work_1us", "keys/s", BAR_NONE, 0, "1 us a key on all CPUs"}},
	.nrows = 1,
	.reps = 9,
	.threads = true,
	.arg = &(const struct shape){WORK_SIDES, WORK_SIDES, produce_all, consume_work,
                                     .finish = shut, .work = true},
	.setup = flow_setup,
	.run = flow_run,
	.teardown = flow_teardown,
    },
    {
	.rows = {{"pingpong", "ns", BAR_TIMES, 8, "line_round_trip"}},
	.nrows = 1,
	.reps = 25,
	.threads = true,
	.paired = true,
	.run = pingpong_run,
    },
    THREADS_AT(1),
    THREADS_AT(2),
    THREADS_AT(4),
    THREADS_AT(8),
    THREADS_AT(16),
    THREADS_AT(32),
};

const struct bench_groups bench_threads = {groups, sizeof groups / sizeof groups[0]};
