/*
 * Rows of a queue in use whose metrics are read: 1M keys are in line, a thread adds
 * without pause, and takes a key out after each add so that the queue stays as long.
 *
 *   scrape_1m    one scrape: all metrics as text
 *   scrape_held  the longest add that overlaps a scrape
 *   scrape_quiet the longest add in a span as long as that scrape in which nobody
 *                reads; to compare
 *
 * A scrape begins while the thread adds: it waits until some more adds are made. The
 * thread is at the lock nearly all the time, so what holds adds up holds one up in
 * every scrape. What only the machine does, taking a CPU away for a while, happens in a
 * few. So each value is what nine scrapes of ten stay under, and scrape_quiet
 * tells how much of it is the machine's. Both are pinned, each to a CPU of its own: on one
 * CPU no add would overlap a scrape.
 */
#include "bench.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { SCRAPES = 400, ADDS_BEFORE = 20 };

struct span {
	double took;    /* a scrape, or the quiet after it */
	double longest; /* add meanwhile; the adding thread's */
};

/* Padded on purpose: both threads write here. */
struct scrape { /* NOLINT(clang-analyzer-optin.performance.Padding): see above */
	wq_registry *registry;
	wq_queue *q;
	size_t next;                                /* key to add, of the pool */
	size_t text;                                /* bytes that were written */
	struct span spans[2 * SCRAPES];             /* in turn: a scrape, quiet */
	alignas(BENCH_LINE) _Atomic uint32_t span;  /* A: the one that goes on; from 1 */
	alignas(BENCH_LINE) _Atomic uint64_t added; /* A: keys, by the thread */
};

/* ---- the thread that adds --------------------------------------------------- */

static void note(struct scrape *s, uint32_t before, uint32_t after, double took)
{
	for (uint32_t i = before; i <= after; i++) {
		struct span *span = i > 0 && i <= 2 * SCRAPES ? &s->spans[i - 1] : NULL;
		bool quiet = i % 2 == 0;

		/* One that reaches into a scrape says nothing about the quiet. */
		if (span && took > span->longest && !(quiet && before != after))
			span->longest = took;
	}
}

static void *add_on(void *arg)
{
	struct scrape *s = arg;
	const struct bench_keys *pool = bench_pool();
	wq_item item;
	uint32_t after = 0;
	uint64_t added = 0;
	int bad = 0;

	bench_pin(1);
	while (after <= 2 * SCRAPES) {
		uint32_t before = atomic_load_explicit(&s->span, memory_order_acquire);
		int64_t start = bench_now();

		bad |= wq_add(s->q, bench_key(pool, s->next), KEY_LEN) != WQ_QUEUED;

		int64_t end = bench_now();

		after = atomic_load_explicit(&s->span, memory_order_acquire);
		note(s, before, after, (double)(end - start));
		atomic_store_explicit(&s->added, ++added, memory_order_relaxed);
		bad |= wq_try_get(s->q, &item) != WQ_OK;
		bad |= wq_done(s->q, &item) != WQ_OK;
		s->next = (s->next + 1) % pool->n;
	}
	bench_check(!bad, "scrape: a call failed");
	return NULL;
}

/* ---- the one who reads ------------------------------------------------------ */

static int take_text(void *ctx, const char *text, size_t n)
{
	struct scrape *s = ctx;

	(void)text;
	s->text += n;
	return 0;
}

/* Its thread is running: it adds a few more keys. */
static void await_adds(const struct scrape *s)
{
	uint64_t enough = atomic_load_explicit(&s->added, memory_order_relaxed) + ADDS_BEFORE;

	while (atomic_load_explicit(&s->added, memory_order_relaxed) < enough)
		sched_yield();
}

static void scrape_once(struct scrape *s, uint32_t i)
{
	s->text = 0;
	await_adds(s);
	atomic_store_explicit(&s->span, i + 1, memory_order_release);

	int64_t start = bench_now();

	bench_check(wq_metrics_write(s->registry, WQ_PROMETHEUS, take_text, s) == WQ_OK,
	            "scrape: not written");

	double took = (double)(bench_now() - start);

	atomic_store_explicit(&s->span, i + 2, memory_order_release);
	bench_check(s->text > 0, "scrape: nothing was written");
	s->spans[i].took = s->spans[i + 1].took = took;
	bench_spin((int64_t)took);
}

static void *scrape_all(void *arg)
{
	struct scrape *s = arg;

	bench_pin(0);
	for (uint32_t i = 0; i < 2 * SCRAPES; i += 2)
		scrape_once(s, i);
	atomic_store(&s->span, 2 * SCRAPES + 1);
	return NULL;
}

static void *scrape_setup(const void *arg)
{
	struct scrape *s = bench_alloc_lines(sizeof *s);
	const struct bench_keys *pool = bench_pool();

	(void)arg;
	bench_check(wq_registry_new(&s->registry) == WQ_OK, "no registry");
	s->q = bench_named_queue(s->registry);
	for (; s->next < bench_sizes.keys; s->next++)
		bench_check(wq_add(s->q, bench_key(pool, s->next), KEY_LEN) == WQ_QUEUED,
		            "a new key was not queued");
	return s;
}

static double usual(const struct scrape *s, size_t first, bool longest)
{
	double values[SCRAPES];

	for (size_t i = 0; i < SCRAPES; i++) {
		const struct span *span = &s->spans[first + 2 * i];

		values[i] = longest ? span->longest : span->took;
	}
	return bench_percentile(values, SCRAPES, 0.9);
}

static void scrape_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct scrape *s = state;
	uint64_t adds, reads;

	(void)arg;
	memset(s->spans, 0, sizeof s->spans);
	atomic_store(&s->span, 0);
	atomic_store(&s->added, 0);
	bench_thread(&adds, add_on, s);
	bench_thread(&reads, scrape_all, s);
	bench_join(reads);
	bench_join(adds);
	samples[0].value = usual(s, 0, false);
	samples[1].value = usual(s, 0, true);
	samples[2].value = usual(s, 1, true);
	samples[2].limit = samples[1].value;
}

static void scrape_teardown(void *state)
{
	struct scrape *s = state;

	bench_queue_free(s->q, bench_sizes.keys);
	bench_check(wq_registry_free(s->registry) == WQ_OK, "the registry is in use");
	free(s);
}

/* ---- the rows -------------------------------------------------------------- */

static const struct bench_group groups[] = {
    {
	.rows = {{"scrape_1m", "ns", BAR_FIXED, 5e6, "5 ms"},
                 {"scrape_held", "ns", BAR_FIXED, 50e3, "50 us"},
                 {"scrape_quiet", "ns", BAR_NONE, 0, "scrape_held"}},
	.nrows = 3,
	.reps = 9,
	.threads = true,
	.setup = scrape_setup,
	.run = scrape_run,
	.teardown = scrape_teardown,
    },
};

const struct bench_groups bench_scrape = {groups, sizeof groups / sizeof groups[0]};
