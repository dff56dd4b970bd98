/*
 * Rows of a burst: 1M keys wait for one instant, and it comes.
 *
 *   fire_burst     until all are got and done, by one worker
 *   hold_max       the most keys that enter the line in one hold of the lock meanwhile
 *   hold_p999      how long the holds that move keys last; to compare
 *   get_longest    the longest Get, which may be many holds; to compare
 *   bystander_max  the longest wq_shutting_down() of another thread while a drain puts them in line
 */
#include "bench.h"

#include <stdatomic.h>
#include <stdlib.h>

struct burst {
	wq_manual_clock *manual;
	wq_queue *q;
	size_t n;
	struct bench_course course;
};

/* All keys wait for one instant. */
static void burst_begin(struct burst *b)
{
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	b->n = bench_sizes.keys;
	bench_check(wq_manual_clock_new(&b->manual, WQ_SECOND) == WQ_OK, "no clock");

	wq_clock clock = wq_manual_clock_clock(b->manual);

	b->q = bench_seeded_queue(&clock, NULL);
	for (size_t i = 0; i < b->n; i++)
		bad |= wq_add_at(b->q, bench_key(pool, i), KEY_LEN, WQ_MINUTE) != WQ_DELAYED;
	bench_check(!bad, "burst: a key does not wait");
}

static void burst_end(struct burst *b)
{
	bench_queue_free(b->q, 0);
	bench_check(wq_manual_clock_free(b->manual) == WQ_OK, "the clock is in use");
}

static void *burst_setup(const void *arg)
{
	(void)arg;
	return bench_alloc(1, sizeof(struct burst));
}

static void burst_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct burst *b = state;
	struct bench_course *c = &b->course;
	wq_item item;
	int bad = 0;

	(void)arg;
	burst_begin(b);
	bench_course_begin(c);
	bad |= wq_manual_clock_set(b->manual, WQ_MINUTE) != WQ_OK;
	for (size_t s = 0; s < BENCH_SLICES; s++) {
		for (size_t i = bench_course_at(b->n, s); i < bench_course_at(b->n, s + 1); i++) {
			bad |= wq_try_get(b->q, &item) != WQ_OK;
			bad |= wq_done(b->q, &item) != WQ_OK;
		}
		bench_course_lap(c);
	}
	bench_check(!bad, "burst: a call failed");
	burst_end(b);
	samples[0].value = c->sum / (double)WQ_MILLISECOND;
}

static void burst_combine(const void *state, struct bench_sample *samples)
{
	const struct burst *b = state;

	samples[0].value = bench_course_best(&b->course) / (double)WQ_MILLISECOND;
}

/* ---- how long a hold is ----------------------------------------------------- */

/*
 * Seen from the hooks that run under the lock. Each hold that moves keys reads
 * the clock first: so it lasts, at most, from there to the next reading or to
 * the end of the call. The order counts what enters the line meanwhile.
 */
struct holds {
	wq_node *head, *tail; /* first in, first out */
	int64_t time_ns;      /* the queue's */
	int64_t since_ns;     /* the hold's begin, in real time; 0: none in this call */
	bool counting;
	size_t pushed, most;
	double *took;
	size_t n, room;
};

static void hold_ended(struct holds *h)
{
	int64_t now = bench_now();

	if (h->since_ns == 0)
		return;
	bench_check(h->n < h->room, "hold: too many");
	h->took[h->n++] = (double)(now - h->since_ns);
	if (h->pushed > h->most)
		h->most = h->pushed;
}

static int64_t holds_now(void *ctx)
{
	struct holds *h = ctx;

	if (h->counting) {
		hold_ended(h);
		h->pushed = 0;
		h->since_ns = bench_now();
	}
	return h->time_ns;
}

static void holds_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct holds *h = ctx;

	(void)where; /* no key is given back */
	node->link[0] = NULL;
	if (h->head)
		h->tail->link[0] = node;
	else
		h->head = node;
	h->tail = node;
	h->pushed++;
}

static wq_node *holds_pop(void *ctx)
{
	struct holds *h = ctx;
	wq_node *node = h->head;

	h->head = node->link[0];
	return node;
}

static void hold_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct bench_keys *pool = bench_pool();
	size_t n = bench_sizes.keys;
	struct holds h = {.time_ns = WQ_SECOND, .room = n};
	wq_clock clock = {.now = holds_now, .ctx = &h};
	wq_order order = {.push = holds_push, .pop = holds_pop, .ctx = &h};
	wq_queue *q = bench_seeded_queue(&clock, &order);
	int64_t longest = 0;
	wq_item item;
	int bad = 0;

	(void)arg;
	(void)state;
	h.took = bench_alloc(h.room, sizeof *h.took);
	for (size_t i = 0; i < n; i++)
		bad |= wq_add_at(q, bench_key(pool, i), KEY_LEN, WQ_MINUTE) != WQ_DELAYED;
	h.time_ns = WQ_MINUTE;
	h.counting = true;
	for (size_t i = 0; i < n; i++) {
		int64_t start = bench_now();

		h.since_ns = 0;
		bad |= wq_try_get(q, &item) != WQ_OK;
		hold_ended(&h);
		if (bench_now() - start > longest)
			longest = bench_now() - start;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	bench_check(!bad && h.n > 0, "hold: a call failed");
	bench_queue_free(q, 0);
	samples[0].value = (double)h.most;
	samples[1].value = bench_percentile(h.took, h.n, 0.999);
	samples[1].limit = bench_percentile(h.took, h.n, 0.5);
	samples[2].value = (double)longest;
	samples[2].limit = samples[1].value;
	free(h.took);
}

/* ---- a bystander ----------------------------------------------------------- */

struct bystander {
	wq_queue *q;
	_Atomic bool over;
	int64_t longest;
};

static void *stand_by(void *arg)
{
	struct bystander *b = arg;

	while (!atomic_load(&b->over)) {
		int64_t start = bench_now();
		int closed = wq_shutting_down(b->q);
		int64_t took = bench_now() - start;

		if (closed == 1 && took > b->longest)
			b->longest = took;
	}
	return NULL;
}

/* How long the shortest of calls takes while a drain runs what waits. */
static void bystander_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct bench_keys *pool = bench_pool();
	const wq_drain_options all = {.mode = WQ_DRAIN_RUN};
	struct bystander b = {.q = bench_queue()};
	size_t n = bench_sizes.keys;
	uint64_t thread;
	int bad = 0;

	(void)arg;
	(void)state;
	for (size_t i = 0; i < n; i++)
		bad |= wq_add_after(b.q, bench_key(pool, i), KEY_LEN, WQ_HOUR) != WQ_DELAYED;
	bench_thread(&thread, stand_by, &b);
	bad |= wq_drain_until(b.q, 0, &all, NULL) != WQ_ETIMEDOUT;
	atomic_store(&b.over, true);
	bench_join(thread);
	bench_check(!bad, "bystander: a call failed");
	samples[0].value = (double)b.longest;
	bench_queue_free(b.q, n);
}

/* ---- the rows -------------------------------------------------------------- */

static const struct bench_group groups[] = {
    {
	.rows = {{"fire_burst", "ms", BAR_FIXED, 120, "ms"}},
	.nrows = 1,
	.reps = 9,
	.setup = burst_setup,
	.run = burst_run,
	.combine = burst_combine,
	.teardown = free,
    },
    {
	.rows = {{"hold_max", "keys", BAR_FIXED, 1024, "keys"},
                 {"hold_p999", "ns", BAR_NONE, 0, "hold_p50"},
                 {"get_longest", "ns", BAR_NONE, 0, "hold_p999"}},
	.nrows = 3,
	.reps = 5,
	.run = hold_run,
    },
    {
	.rows = {{"bystander_max", "ns", BAR_NONE, 0, NULL}},
	.nrows = 1,
	.reps = 5,
	.run = bystander_run,
    },
};

const struct bench_groups bench_burst = {groups, sizeof groups / sizeof groups[0]};
