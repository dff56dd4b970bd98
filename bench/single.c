/*
 * Rows of one thread: what a call costs when nobody else is there.
 *
 *   cycle_empty     Add+Get+Done on an empty queue
 *   cycle_1m        the same behind 1M other keys: Add a new key, Get the head,
 *                   Done, so the queue stays as long as it was
 *   dup_hot         Add of the one key that is queued already
 *   dup_1m          Add of a random one among 1M that are
 *   bulk_add        1M Adds to a fresh queue, its memory included
 *   bulk_get_done   then Get+Done of all of them
 *   ..._many        the same in batches of 32
 */
#include "bench.h"

#include <stdlib.h>

enum {
	CYCLE_KEYS = 1024, /* used in turn: a queue in use sees different keys */
	BATCH = 32,
};

static void add_first(wq *q, size_t n)
{
	const struct bench_keys *pool = bench_pool();

	for (size_t i = 0; i < n; i++)
		bench_check(wq_add(q, bench_key(pool, i), KEY_LEN) == WQ_QUEUED,
		            "a new key was not queued");
}

/* ---- cycle ----------------------------------------------------------------- */

struct cycle {
	wq *q;
	size_t others; /* keys that stay queued */
	size_t range;  /* keys are used in turn: the first `range` of the pool */
	size_t next;
	size_t ops;
	double (*primitive)(void);
};

static void *cycle_setup(const void *arg)
{
	bool full = *(const bool *)arg;
	struct cycle *c = bench_alloc(1, sizeof *c);

	c->q = bench_queue();
	c->others = full ? bench_sizes.keys : 0;
	c->range = full ? bench_pool()->n : CYCLE_KEYS;
	c->next = c->others;
	c->ops = full ? bench_sizes.keys : bench_sizes.ops;
	c->primitive = full ? bench_random_access : bench_mutex;
	add_first(c->q, c->others);
	return c;
}

static void cycle_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct cycle *c = state;
	const struct bench_keys *pool = bench_pool();
	size_t next = c->next;
	int bad = 0;
	wq_item item;

	(void)arg;
	samples[0].limit = c->primitive();

	int64_t start = bench_now();

	for (size_t i = 0; i < c->ops; i++) {
		bad |= wq_add(c->q, bench_key(pool, next), KEY_LEN) != WQ_QUEUED;
		bad |= wq_get(c->q, &item) != WQ_OK;
		bad |= wq_done(c->q, &item) != WQ_OK;
		if (++next == c->range)
			next = 0;
	}

	int64_t took = bench_now() - start;

	bench_check(!bad, "cycle: a call failed");
	c->next = next;
	samples[0].value = (double)took / (double)c->ops;
}

static void cycle_teardown(void *state)
{
	struct cycle *c = state;

	bench_queue_free(c->q, c->others);
	free(c);
}

/* ---- duplicates ------------------------------------------------------------ */

struct dup {
	wq *q;
	struct bench_keys keys; /* all of them are queued */
	size_t ops;
	double (*primitive)(void);
};

static void *dup_setup(const void *arg)
{
	bool full = *(const bool *)arg;
	struct dup *d = bench_alloc(1, sizeof *d);

	d->q = bench_queue();
	d->keys = bench_shuffled(full ? bench_sizes.keys : 1);
	d->ops = full ? bench_sizes.keys : bench_sizes.ops;
	d->primitive = full ? bench_random_access : bench_mutex;
	add_first(d->q, d->keys.n);
	return d;
}

static void dup_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct dup *d = state;
	size_t next = 0;
	int bad = 0;

	(void)arg;
	samples[0].limit = d->primitive();

	int64_t start = bench_now();

	for (size_t i = 0; i < d->ops; i++) {
		bad |= wq_add(d->q, bench_key(&d->keys, next), KEY_LEN) != WQ_MERGED;
		if (++next == d->keys.n)
			next = 0;
	}

	int64_t took = bench_now() - start;

	bench_check(!bad, "dup: an Add did not merge");
	samples[0].value = (double)took / (double)d->ops;
}

static void dup_teardown(void *state)
{
	struct dup *d = state;

	bench_queue_free(d->q, d->keys.n);
	bench_keys_release(&d->keys);
	free(d);
}

/* ---- bulk ------------------------------------------------------------------ */

static void bulk_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct bench_keys *pool = bench_pool();
	size_t n = bench_sizes.keys;
	wq *q = bench_queue();
	int bad = 0;
	wq_item item;

	(void)arg;
	(void)state;
	samples[0].limit = samples[1].limit = bench_random_access();

	int64_t start = bench_now();

	for (size_t i = 0; i < n; i++)
		bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;

	int64_t added = bench_now();

	for (size_t i = 0; i < n; i++) {
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}

	int64_t end = bench_now();

	bench_check(!bad, "bulk: a call failed");
	bench_queue_free(q, 0);
	samples[0].value = (double)(added - start) / (double)n;
	samples[1].value = (double)(end - added) / (double)n;
}

static void bulk_many_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct bench_keys *pool = bench_pool();
	size_t n = bench_sizes.keys, got = 0;
	wq *q = bench_queue();
	wq_key keys[BATCH];
	wq_item items[BATCH];
	int bad = 0;

	(void)arg;
	(void)state;
	samples[0].limit = samples[1].limit = bench_random_access();

	int64_t start = bench_now();

	for (size_t i = 0; i < n;) {
		size_t batch = 0;

		for (; batch < BATCH && i < n; batch++, i++)
			keys[batch] = (wq_key){.key = bench_key(pool, i), .len = KEY_LEN};
		bad |= wq_add_many(q, keys, batch, NULL) != (int)batch;
	}

	int64_t added = bench_now();

	while (got < n && !bad) {
		int batch = wq_get_many(q, items, sizeof *items, BATCH, WQ_NOWAIT);

		bad |= batch < 1 ||
		       wq_done_many(q, items, sizeof *items, (size_t)batch, NULL) != batch;
		got += (size_t)batch;
	}

	int64_t end = bench_now();

	bench_check(!bad, "bulk, in batches: a call failed");
	bench_queue_free(q, 0);
	samples[0].value = (double)(added - start) / (double)n;
	samples[1].value = (double)(end - added) / (double)n;
}

/* ---- the rows -------------------------------------------------------------- */

static const bool empty = false, full_of_keys = true;

static const struct bench_group groups[] = {
    {
	.rows = {{"cycle_empty", "ns", BAR_TIMES, 4.5, "mutex"}},
	.nrows = 1,
	.arg = &empty,
	.setup = cycle_setup,
	.run = cycle_run,
	.teardown = cycle_teardown,
    },
    {
	.rows = {{"cycle_1m", "ns", BAR_TIMES, 1, "random_access"}},
	.nrows = 1,
	.arg = &full_of_keys,
	.setup = cycle_setup,
	.run = cycle_run,
	.teardown = cycle_teardown,
    },
    {
	.rows = {{"dup_hot", "ns", BAR_TIMES, 2, "mutex"}},
	.nrows = 1,
	.arg = &empty,
	.setup = dup_setup,
	.run = dup_run,
	.teardown = dup_teardown,
    },
    {
	.rows = {{"dup_1m", "ns", BAR_TIMES, 1, "random_access"}},
	.nrows = 1,
	.arg = &full_of_keys,
	.setup = dup_setup,
	.run = dup_run,
	.teardown = dup_teardown,
    },
    {
	.rows = {{"bulk_add", "ns", BAR_TIMES, 0.65, "random_access"},
                 {"bulk_get_done", "ns", BAR_TIMES, 0.45, "random_access"}},
	.nrows = 2,
	.run = bulk_run,
    },
    {
	.rows = {{"bulk_add_many", "ns", BAR_TIMES, 0.5, "random_access"},
                 {"bulk_get_done_many", "ns", BAR_TIMES, 0.25, "random_access"}},
	.nrows = 2,
	.run = bulk_many_run,
    },
};

const struct bench_groups bench_single = {groups, sizeof groups / sizeof groups[0]};
