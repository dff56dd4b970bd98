/*
 * Rows of one thread: what a call costs when nobody else is there.
 *
 *   cycle_empty   Add+Get+Done on an empty queue that no other thread has used
 *   cycle_shared  the same on one that another thread has used
 *   cycle_waiting cycle_empty while one key waits far away
 *   cycle_metrics cycle_empty on a queue with a name, which counts and times every step
 *   cycle_1m      the same behind 1M other keys: Add a new key, Get the head,
 *                 Done, so the queue stays as long as it was
 *   cycle_1k, cycle_100k   the same behind 1,000 and 100,000 other keys
 *   cycle@N       the same behind N other keys
 *   dup_hot       Add of the one key that is queued already
 *   dup_1m        Add of a random one among 1M that are
 */
#include "bench.h"

#include <stdlib.h>

enum { CYCLE_KEYS = 1024 }; /* used in turn: a queue in use sees different keys */

static void add_first(wq_queue *q, const struct bench_keys *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bench_check(wq_add(q, bench_key(keys, i), KEY_LEN) == WQ_QUEUED,
		            "a new key was not queued");
}

/* ---- cycle ----------------------------------------------------------------- */

struct cycle {
	wq_queue *q;
	struct bench_keys keys, own; /* own: cycle@N, the same; else the pool's */
	size_t others;               /* keys that stay queued */
	size_t range;                /* keys are used in turn: the first `range` of them */
	size_t next;
	struct bench_work work;
	const struct bench_work *primitive;
};

static void cycle_slice(void *state, size_t n)
{
	struct cycle *c = state;
	size_t next = c->next;
	int bad = 0;
	wq_item item;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_add(c->q, bench_key(&c->keys, next), KEY_LEN) != WQ_QUEUED;
		bad |= wq_get(c->q, &item) != WQ_OK;
		bad |= wq_done(c->q, &item) != WQ_OK;
		if (++next == c->range)
			next = 0;
	}
	bench_check(!bad, "cycle: a call failed");
	c->next = next;
}

static struct cycle *cycle_begin(struct bench_keys keys, size_t others, size_t range,
                                 size_t slice_ops)
{
	struct cycle *c = bench_alloc(1, sizeof *c);

	c->q = bench_queue();
	c->keys = keys;
	c->others = c->next = others;
	c->range = range;
	c->work = (struct bench_work){cycle_slice, c, slice_ops};
	c->primitive = &bench_mutex;
	add_first(c->q, &c->keys, others);
	return c;
}

static void *cycle_setup(const void *arg)
{
	const struct bench_keys *pool = bench_pool();
	struct cycle *c;

	if (!*(const bool *)arg)
		return cycle_begin(*pool, 0, CYCLE_KEYS, 20000);
	c = cycle_begin(*pool, bench_sizes.keys, pool->n, 5000);
	c->primitive = &bench_random_access;
	return c;
}

/* Beside the mutex, which leaves the caches as they are. */
static void *cycle_at_setup(const void *arg)
{
	size_t n = bench_point(arg), spare = n < bench_sizes.keys ? n : bench_sizes.keys;
	struct bench_keys own = bench_keys_make(n + spare);
	struct cycle *c = cycle_begin(own, n, own.n, 5000);

	c->own = own;
	return c;
}

static void cycle_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct cycle *c = state;

	(void)arg;
	bench_in_turn(&c->work, c->primitive, &samples[0]);
}

static void cycle_teardown(void *state)
{
	struct cycle *c = state;

	bench_queue_free(c->q, c->others);
	bench_keys_release(&c->own);
	free(c);
}

/* ---- cycle, on a queue that another thread has used --------------------------- */

static const bool empty = false, full_of_keys = true;

static void *use(void *arg)
{
	wq_queue *q = arg;
	wq_item item;

	bench_check(wq_try_get(q, &item) == WQ_EAGAIN, "cycle_shared: the queue is not empty");
	return NULL;
}

static void *shared_setup(const void *arg)
{
	struct cycle *c = cycle_setup(arg);
	uint64_t thread;

	/* This one first, or the other one would be the only one. */
	use(c->q);
	bench_thread(&thread, use, c->q);
	bench_join(thread);
	return c;
}

/* ---- cycle, while a key waits ----------------------------------------------- */

static void waiting_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.slices;
	double *waiting = bench_alloc(n, sizeof *waiting), *plain = bench_alloc(n, sizeof *plain);
	double *clock = bench_alloc(n, sizeof *clock);
	struct cycle *with = cycle_setup(&empty), *without = cycle_setup(&empty);

	(void)arg;
	(void)state;
	bench_check(wq_add_after(with->q, "far away", 8, WQ_HOUR) == WQ_DELAYED,
	            "cycle_waiting: the key does not wait");
	for (size_t i = 0; i < n; i++) {
		clock[i] = bench_slice(&bench_clock);
		plain[i] = bench_slice(&without->work);
		waiting[i] = bench_slice(&with->work);
	}
	bench_check(wq_cancel(with->q, "far away", 8, NULL) == WQ_CANCELLED,
	            "cycle_waiting: the key is gone");
	cycle_teardown(with);
	cycle_teardown(without);
	samples[0].value = bench_low(waiting, n);
	samples[0].limit = bench_low(plain, n) + 1.2 * bench_low(clock, n);
	free(waiting);
	free(plain);
	free(clock);
}

/* ---- cycle, with metrics ---------------------------------------------------- */

static void metrics_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct cycle *with = cycle_setup(&empty), *without = cycle_setup(&empty);
	wq_snapshot seen;

	(void)arg;
	(void)state;
	bench_queue_free(with->q, 0);
	with->q = bench_named_queue(NULL);
	bench_in_turn(&with->work, &without->work, &samples[0]);
	bench_check(wq_snapshot_take(with->q, &seen) == WQ_OK && seen.adds > 0 &&
	                seen.work.sum_ns > 0 && seen.running == 0,
	            "cycle_metrics: nothing was counted");
	cycle_teardown(with);
	cycle_teardown(without);
}

/* ---- duplicates ------------------------------------------------------------ */

struct dup {
	wq_queue *q;
	struct bench_keys keys; /* all of them are queued */
	size_t next;
	struct bench_work work;
	const struct bench_work *primitive;
};

static void dup_slice(void *state, size_t n)
{
	struct dup *d = state;
	size_t next = d->next;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_add(d->q, bench_key(&d->keys, next), KEY_LEN) != WQ_MERGED;
		if (++next == d->keys.n)
			next = 0;
	}
	bench_check(!bad, "dup: an Add did not merge");
	d->next = next;
}

static void *dup_setup(const void *arg)
{
	bool full = *(const bool *)arg;
	struct dup *d = bench_alloc(1, sizeof *d);

	d->q = bench_queue();
	d->keys = bench_shuffled(full ? bench_sizes.keys : 1);
	d->work = (struct bench_work){dup_slice, d, full ? 8000 : 50000};
	d->primitive = full ? &bench_random_access : &bench_mutex;
	add_first(d->q, bench_pool(), d->keys.n);
	return d;
}

static void dup_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct dup *d = state;

	(void)arg;
	bench_in_turn(&d->work, d->primitive, &samples[0]);
}

static void dup_teardown(void *state)
{
	struct dup *d = state;

	bench_queue_free(d->q, d->keys.n);
	bench_keys_release(&d->keys);
	free(d);
}

/* ---- the rows -------------------------------------------------------------- */

#define SINGLE(name_, factor_, limit_, arg_, setup_, run_, teardown_)                              \
	{                                                                                          \
		.rows = {{name_, "ns", BAR_TIMES, factor_, limit_}}, .nrows = 1, .reps = 9,        \
		.arg = arg_, .setup = setup_, .run = run_, .teardown = teardown_,                  \
	}

#define CYCLE_AT(n_)                                                                               \
	{                                                                                          \
		.rows = {{"cycle@" #n_, "ns", BAR_NONE, 0, "mutex"}}, .nrows = 1, .reps = 3,       \
		.arg = &(const size_t){n_}, .setup = cycle_at_setup, .run = cycle_run,             \
		.teardown = cycle_teardown,                                                        \
	}

#define CYCLE_BEHIND(name_, n_, most_ns_)                                                          \
	{                                                                                          \
		.rows = {{name_, "ns", BAR_FIXED, most_ns_, "ns"}}, .nrows = 1, .reps = 9,         \
		.arg = &(const size_t){n_}, .setup = cycle_at_setup, .run = cycle_run,             \
		.teardown = cycle_teardown,                                                        \
	}

static const struct bench_group groups[] = {
    SINGLE("cycle_empty", 4.5, "mutex", &empty, cycle_setup, cycle_run, cycle_teardown),
    SINGLE("cycle_shared", 4.5, "mutex", &empty, shared_setup, cycle_run, cycle_teardown),
    {
	.rows = {{"cycle_waiting", "ns", BAR_TIMES, 1, "cycle_empty + 1.2 x clock"}},
	.nrows = 1,
	.reps = 9,
	.run = waiting_run,
    },
    {
	.rows = {{"cycle_metrics", "ns", BAR_TIMES, 2, "cycle_empty"}},
	.nrows = 1,
	.reps = 9,
	.run = metrics_run,
    },
    CYCLE_BEHIND("cycle_1k", 1000, 30),
    CYCLE_BEHIND("cycle_100k", 100000, 50),
    SINGLE("cycle_1m", 1, "random_access", &full_of_keys, cycle_setup, cycle_run, cycle_teardown),
    SINGLE("dup_hot", 2, "mutex", &empty, dup_setup, dup_run, dup_teardown),
    SINGLE("dup_1m", 1, "random_access", &full_of_keys, dup_setup, dup_run, dup_teardown),
    CYCLE_AT(1000),
    CYCLE_AT(10000),
    CYCLE_AT(100000),
    CYCLE_AT(1000000),
    CYCLE_AT(10000000),
};

const struct bench_groups bench_single = {groups, sizeof groups / sizeof groups[0]};
