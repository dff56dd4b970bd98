/*
 * Rows of one thread: 1M keys in, 1M keys out.
 *
 *   bulk_add        1M Adds to a fresh queue, its memory included
 *   bulk_get_done   then Get+Done of all of them
 *   ..._many        the same in batches of 32
 *   ..._priority    the same with 3 priorities in turn
 *
 * A repetition takes about a quarter of a second, and no machine with
 * neighbours is left alone for so long: it is a course of slices (see
 * slices.c). Repetitions as a whole are printed as well.
 */
#include "bench.h"

#include <stdlib.h>

enum { BATCH = 32, WAYS = 2, REPS_MAX = 200 };

/* Random access, once every so many slices; at other positions in the next repetition. */
enum { PRIMITIVE_EVERY = 5, PRIMITIVES = WAYS * BENCH_SLICES / PRIMITIVE_EVERY };

struct bulk {
	wq_queue *q;
	size_t reps;
	struct bench_course courses[WAYS]; /* in and out */
	double primitives[REPS_MAX * PRIMITIVES];
	size_t nprimitives;
};

/* Keys `from` to `to`; each returns whether all went well. */
struct ways {
	bool (*move[WAYS])(wq_queue *q, size_t from, size_t to);
	bool ranked;
};

static bool add_each(wq_queue *q, size_t from, size_t to)
{
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	for (size_t i = from; i < to; i++)
		bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;
	return !bad;
}

static bool add_ranked(wq_queue *q, size_t from, size_t to)
{
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	for (size_t i = from; i < to; i++) {
		wq_add_options o = {.priority = (int32_t)(i % 3)};

		bad |= wq_add_with(q, bench_key(pool, i), KEY_LEN, &o) != WQ_QUEUED;
	}
	return !bad;
}

static bool get_done_each(wq_queue *q, size_t from, size_t to)
{
	wq_item item;
	int bad = 0;

	for (size_t i = from; i < to; i++) {
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	return !bad;
}

static bool add_many(wq_queue *q, size_t from, size_t to)
{
	const struct bench_keys *pool = bench_pool();
	wq_key keys[BATCH];
	int bad = 0;

	for (size_t i = from; i < to;) {
		size_t n = 0;

		for (; n < BATCH && i < to; n++, i++)
			keys[n] = (wq_key){.key = bench_key(pool, i), .len = KEY_LEN};
		bad |= wq_add_many(q, keys, n, NULL) != (int)n;
	}
	return !bad;
}

static bool get_done_many(wq_queue *q, size_t from, size_t to)
{
	wq_item items[BATCH];
	bool ok = true;

	for (size_t i = from; i < to && ok;) {
		size_t most = to - i < BATCH ? to - i : BATCH;
		int n = wq_get_many_until(q, items, most, WQ_NOWAIT);

		ok = n > 0 && wq_done_many(q, items, (size_t)n, NULL) == n;
		i += (size_t)n;
	}
	return ok;
}

static void *bulk_setup(const void *arg)
{
	struct bulk *b = bench_alloc(1, sizeof *b);

	(void)arg;
	bench_pool();
	return b;
}

/*
 * Random access leaves cold caches to the slice after it. It comes after other
 * slices in other repetitions, so each position is mostly measured warm.
 */
static void take_turns(struct bulk *b, size_t slice)
{
	if ((slice + b->reps) % PRIMITIVE_EVERY == 0)
		b->primitives[b->nprimitives++] = bench_slice(&bench_random_access);
}

static void bulk_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct ways *ways = arg;
	struct bulk *b = state;
	size_t n = bench_sizes.keys, first = b->nprimitives;

	b->q = ways->ranked ? bench_ranked_queue() : bench_seeded_queue(NULL, NULL);
	for (int way = 0; way < WAYS; way++) {
		struct bench_course *c = &b->courses[way];

		bench_course_begin(c);
		for (size_t s = 0; s < BENCH_SLICES; s++) {
			bool ok =
			    ways->move[way](b->q, bench_course_at(n, s), bench_course_at(n, s + 1));

			bench_course_lap(c);
			bench_check(ok, "bulk: a call failed");
			take_turns(b, s);
			bench_course_resume(c);
		}
		samples[way].value = c->sum / (double)n;
	}
	bench_queue_free(b->q, 0);
	b->reps++;
	samples[0].limit = samples[1].limit =
	    bench_low(b->primitives + first, b->nprimitives - first);
}

static void bulk_combine(const void *state, struct bench_sample *samples)
{
	const struct bulk *b = state;

	for (int way = 0; way < WAYS; way++)
		samples[way].value = bench_course_best(&b->courses[way]) / (double)bench_sizes.keys;
}

static const struct ways one_by_one = {.move = {add_each, get_done_each}};
static const struct ways in_batches = {.move = {add_many, get_done_many}};
static const struct ways ranked = {.move = {add_ranked, get_done_each}, .ranked = true};

#define BULK(suffix_, ways_, add_, get_)                                                           \
	{                                                                                          \
		.rows = {{"bulk_add" suffix_, "ns", BAR_TIMES, add_, "random_access"},             \
		         {"bulk_get_done" suffix_, "ns", BAR_TIMES, get_, "random_access"}},       \
		.nrows = WAYS, .reps = 21, .arg = ways_, .setup = bulk_setup, .run = bulk_run,     \
		.combine = bulk_combine, .teardown = free,                                         \
	}

static const struct bench_group groups[] = {
    BULK("", &one_by_one, 0.65, 0.45),
    BULK("_many", &in_batches, 0.5, 0.25),
    BULK("_priority", &ranked, 1, 0.7),
};

const struct bench_groups bench_bulk = {groups, sizeof groups / sizeof groups[0]};
