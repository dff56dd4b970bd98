/*
 * Rows of the other parts that a program may use by themselves; to compare.
 *
 *   heap_add_pop     the first of 1M out, and back at a later place
 *   delayqueue_1_1   600k values that are due, from one thread to another
 */
#include "bench.h"

#include <stdlib.h>

struct heap {
	wq_heap *h;
	uint64_t random;
	struct bench_work work;
};

/* The first is taken out and comes back at a later place: the heap stays as large as it is. */
static void heap_slice(void *state, size_t n)
{
	struct heap *h = state;
	int64_t priority;
	void *value;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_heap_pop(h->h, &priority, &value);
		priority += bench_span(&h->random, 0, WQ_MINUTE);
		bad |= wq_heap_add(h->h, priority, value, NULL);
	}
	bench_check(!bad, "heap: a call failed");
}

static void *heap_setup(const void *arg)
{
	struct heap *h = bench_alloc(1, sizeof *h);
	int bad = 0;

	(void)arg;
	*h = (struct heap){.random = BENCH_SEED, .work = {heap_slice, h, 2000}};
	bench_check(wq_heap_new(&h->h, NULL) == WQ_OK, "no heap");
	for (size_t i = 0; i < bench_sizes.keys; i++)
		bad |= wq_heap_add(h->h, bench_span(&h->random, 0, WQ_MINUTE), h, NULL);
	bench_check(!bad, "heap: a call failed");
	return h;
}

static void heap_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct heap *h = state;

	(void)arg;
	bench_in_turn(&h->work, &bench_random_access, &samples[0]);
}

static void heap_teardown(void *state)
{
	struct heap *h = state;

	bench_check(wq_heap_free(h->h) == (int64_t)bench_sizes.keys, "the heap has lost something");
	free(h);
}

/* All values are due: what is left is the way from one thread to another. */
static void *offer_all(void *arg)
{
	int bad = 0;

	for (size_t i = 0; i < bench_sizes.short_keys; i++)
		bad |= wq_delayqueue_offer(arg, arg, 1);
	bench_check(!bad, "delayqueue: an offer failed");
	return NULL;
}

static void delayqueue_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.short_keys;
	wq_delayqueue *dq;
	uint64_t thread;
	void *value;
	int bad = 0;

	(void)arg;
	(void)state;
	bench_check(wq_delayqueue_new(&dq, NULL) == WQ_OK, "no delay queue");

	int64_t start = bench_now();

	bench_thread(&thread, offer_all, dq);
	for (size_t i = 0; i < n; i++)
		bad |= wq_delayqueue_take(dq, &value);
	samples[0].value = (double)(bench_now() - start) / (double)n;
	samples[0].limit = bench_alone(&bench_mutex);
	bench_join(thread);
	bench_check(!bad && wq_delayqueue_free(dq) == 0, "delayqueue: a call failed");
}

/* ---- the rows -------------------------------------------------------------- */

static const struct bench_group groups[] = {
    {
	.rows = {{"heap_add_pop", "ns", BAR_NONE, 0, "random_access"}},
	.nrows = 1,
	.reps = 5,
	.setup = heap_setup,
	.run = heap_run,
	.teardown = heap_teardown,
    },
    {
	.rows = {{"delayqueue_1_1", "ns", BAR_NONE, 0, "mutex"}},
	.nrows = 1,
	.reps = 5,
	.threads = true,
	.run = delayqueue_run,
    },
};

const struct bench_groups bench_parts = {groups, sizeof groups / sizeof groups[0]};
