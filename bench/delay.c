/*
 * Rows of keys that wait for a time: what adding one and taking it back costs.
 *
 *   add_after      1M keys, 1 to 60 s away, to a fresh queue
 *   add_after@N    the same with N keys
 *   add_after_1k .. cancel_10m     what a key costs among so many others that wait
 */
#include "bench.h"

#include <stdlib.h>

/* ---- add_after ------------------------------------------------------------- */

struct after {
	int64_t *spans;
	struct bench_course now, later;
};

static void *after_setup(const void *arg)
{
	struct after *a = bench_alloc(1, sizeof *a);

	(void)arg;
	bench_pool();
	a->spans = bench_spans(bench_sizes.keys, WQ_SECOND, WQ_MINUTE);
	return a;
}

/* As bulk_add, which is what it is judged by. */
static void add_now(struct bench_course *c, size_t n)
{
	const struct bench_keys *pool = bench_pool();
	wq_queue *q = bench_seeded_queue(NULL, NULL);
	int bad = 0;

	bench_course_begin(c);
	for (size_t s = 0; s < BENCH_SLICES; s++) {
		for (size_t i = bench_course_at(n, s); i < bench_course_at(n, s + 1); i++)
			bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;
		bench_course_lap(c);
	}
	bench_check(!bad, "add_after: a key was not queued");
	bench_queue_free(q, n);
}

/* On a slow machine the first come due before the last is added; that is in the figure then. */
static void add_later(struct bench_course *c, const struct bench_keys *keys, size_t n,
                      const int64_t *spans)
{
	wq_queue *q = bench_seeded_queue(NULL, NULL);
	int bad = 0;

	bench_course_begin(c);
	for (size_t s = 0; s < BENCH_SLICES; s++) {
		for (size_t i = bench_course_at(n, s); i < bench_course_at(n, s + 1); i++)
			bad |= wq_add_after(q, bench_key(keys, i), KEY_LEN, spans[i]) != WQ_DELAYED;
		bench_course_lap(c);
	}
	bench_check(!bad, "add_after: a key does not wait");
	bench_check(wq_free(q) >= 0, "add_after: the queue is busy");
}

static void after_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct after *a = state;
	size_t n = bench_sizes.keys;

	(void)arg;
	add_now(&a->now, n);
	add_later(&a->later, bench_pool(), n, a->spans);
	samples[0].value = a->later.sum / (double)n;
	samples[0].limit = bench_course_best(&a->now) / (double)n;
}

static void after_combine(const void *state, struct bench_sample *samples)
{
	const struct after *a = state;

	samples[0].value = bench_course_best(&a->later) / (double)bench_sizes.keys;
}

static void after_teardown(void *state)
{
	struct after *a = state;

	free(a->spans);
	free(a);
}

/* ---- add_after@N ------------------------------------------------------------ */

struct after_at {
	struct bench_keys keys;
	int64_t *spans;
};

static void *after_at_setup(const void *arg)
{
	struct after_at *a = bench_alloc(1, sizeof *a);
	size_t n = bench_point(arg);

	a->keys = bench_keys_make(n);
	a->spans = bench_spans(n, WQ_SECOND, WQ_MINUTE);
	return a;
}

static void after_at_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct after_at *a = state;
	size_t n = a->keys.n, times = bench_again(n);
	double took[BENCH_AGAIN_MAX];

	(void)arg;
	for (size_t i = 0; i < times; i++) {
		struct bench_course c = {.sum = 0};

		add_later(&c, &a->keys, n, a->spans);
		took[i] = c.sum / (double)n;
	}
	samples[0].value = bench_low(took, times);
}

static void after_at_teardown(void *state)
{
	struct after_at *a = state;

	bench_keys_release(&a->keys);
	free(a->spans);
	free(a);
}

/* ---- cost against size ------------------------------------------------------ */

enum { BATCH_MAX = 2000, LEAST = 1000 };

struct crowd {
	wq_queue *q;
	size_t n, batch;
	size_t next; /* the next to be moved */
	uint64_t random;
	char keys[BATCH_MAX][KEY_STRIDE];
	int64_t spans[BATCH_MAX];
};

struct crowds {
	struct crowd small, large;
};

static int64_t far_span(struct crowd *c)
{
	return bench_span(&c->random, WQ_HOUR, WQ_HOUR + WQ_MINUTE);
}

static void crowd_init(struct crowd *c, size_t n)
{
	char key[KEY_LEN + 1];
	int bad = 0;

	*c = (struct crowd){.q = bench_seeded_queue(NULL, NULL), .n = n, .random = BENCH_SEED};
	c->batch = n / 2 < BATCH_MAX ? n / 2 : BATCH_MAX;
	for (size_t i = 0; i < n; i++) {
		bench_key_format(key, i);
		bad |= wq_add_after(c->q, key, KEY_LEN, far_span(c)) != WQ_DELAYED;
	}
	bench_check(!bad, "crowd: a key does not wait");
}

/*
 * Takes some keys back, from all over the crowd, and adds them again; the
 * crowd stays as large as it is. The stride has no divisor in common with n,
 * a power of ten (or half of one).
 */
static void crowd_slice(struct crowd *c, double *add_ns, double *cancel_ns)
{
	int64_t start;
	int bad = 0;

	for (size_t i = 0; i < c->batch; i++) {
		bench_key_format(c->keys[i], c->next);
		c->spans[i] = far_span(c);
		c->next = (c->next + 618033) % c->n;
	}
	start = bench_now();
	for (size_t i = 0; i < c->batch; i++)
		bad |= wq_cancel(c->q, c->keys[i], KEY_LEN, NULL) != WQ_CANCELLED;
	*cancel_ns = (double)(bench_now() - start) / (double)c->batch;
	start = bench_now();
	for (size_t i = 0; i < c->batch; i++)
		bad |= wq_add_after(c->q, c->keys[i], KEY_LEN, c->spans[i]) != WQ_DELAYED;
	*add_ns = (double)(bench_now() - start) / (double)c->batch;
	bench_check(!bad, "crowd: a call failed");
}

static void *crowds_setup(const void *arg)
{
	size_t n = *(const size_t *)arg;
	struct crowds *c = bench_alloc(1, sizeof *c);

	crowd_init(&c->small, LEAST);
	crowd_init(&c->large, bench_sizes.quick && n > (size_t)10 * LEAST ? (size_t)10 * LEAST : n);
	return c;
}

static void crowds_run(const void *arg, void *state, struct bench_sample *samples)
{
	enum { ADD_SMALL, CANCEL_SMALL, ADD, TAKE_BACK, MISS, SERIES };
	struct crowds *c = state;
	size_t n = bench_sizes.slices;
	double *took = bench_alloc(SERIES * n, sizeof *took);

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		took[MISS * n + i] = bench_slice(&bench_random_access);
		/* The last time counts: random access has left cold caches. */
		for (int warm = 0; warm < 8; warm++)
			crowd_slice(&c->small, &took[ADD_SMALL * n + i],
			            &took[CANCEL_SMALL * n + i]);
		for (int warm = 0; warm < 2; warm++)
			crowd_slice(&c->large, &took[ADD * n + i], &took[TAKE_BACK * n + i]);
	}

	double miss = bench_low(took + MISS * n, n);

	samples[0].value = bench_low(took + ADD * n, n);
	samples[0].limit = bench_low(took + ADD_SMALL * n, n) + miss;
	samples[1].value = bench_low(took + TAKE_BACK * n, n);
	samples[1].limit = bench_low(took + CANCEL_SMALL * n, n) + miss;
	free(took);
}

static void crowds_teardown(void *state)
{
	struct crowds *c = state;

	bench_check(wq_free(c->small.q) >= 0 && wq_free(c->large.q) >= 0, "crowd: busy");
	free(c);
}

/* ---- the rows -------------------------------------------------------------- */

static const size_t crowd_1k = 1000, crowd_10k = 10000, crowd_100k = 100000, crowd_1m = 1000000,
		    crowd_10m = 10000000;

#define CROWD(size_)                                                                               \
	{                                                                                          \
		.rows = {{"add_after_" #size_, "ns", BAR_TIMES, 1, "among_1k + random_access"},    \
		         {"cancel_" #size_, "ns", BAR_TIMES, 1, "among_1k + random_access"}},      \
		.nrows = 2, .reps = 5, .arg = &crowd_##size_, .setup = crowds_setup,               \
		.run = crowds_run, .teardown = crowds_teardown,                                    \
	}

#define AFTER_AT(n_)                                                                               \
	{                                                                                          \
		.rows = {{"add_after@" #n_, "ns", BAR_NONE, 0, NULL}}, .nrows = 1, .reps = 3,      \
		.arg = &(const size_t){n_}, .setup = after_at_setup, .run = after_at_run,          \
		.teardown = after_at_teardown,                                                     \
	}

static const struct bench_group groups[] = {
    {
	.rows = {{"add_after", "ns", BAR_TIMES, 2, "bulk_add"}},
	.nrows = 1,
	.reps = 9,
	.setup = after_setup,
	.run = after_run,
	.combine = after_combine,
	.teardown = after_teardown,
    },
    CROWD(1k),
    CROWD(10k),
    CROWD(100k),
    CROWD(1m),
    CROWD(10m),
    AFTER_AT(1000),
    AFTER_AT(10000),
    AFTER_AT(100000),
    AFTER_AT(1000000),
    AFTER_AT(10000000),
};

const struct bench_groups bench_delay = {groups, sizeof groups / sizeof groups[0]};
