/*
 * Rows of sleeping workers.
 *
 *   wake_idle     from the Add to the worker's return from Get, when the
 *                 thread that added then sleeps itself
 *   wake_busy     the same when it goes on working
 *   second_start  two keys for two sleeping workers whose handlers take 100 µs:
 *                 from the first Add to the start of the second handler
 *
 * All are judged by a bare futex in the same pattern: the same threads, and
 * every other wake-up goes by the bell instead of the queue, so that whatever
 * the machine does meanwhile it does to both. Between wake-ups lies enough
 * time for a Get to have given up spinning.
 */
#include "bench.h"

#include <stdlib.h>

struct wakes { /* NOLINT(clang-analyzer-optin.performance.Padding): two threads, two lines */
	wq *q; /* NULL: bells only */
	bool busy;
	size_t n; /* wake-ups in all */
	struct bench_bell bell;
	alignas(BENCH_LINE) _Atomic size_t handled; /* A: release by the worker, with got_ns */
	int64_t got_ns;
	int bad;
};

static bool by_queue(const struct wakes *w, size_t i)
{
	return w->q && i % 2 == 1;
}

static void *woken(void *arg)
{
	struct wakes *w = arg;
	wq_item item;

	for (size_t i = 0; i < w->n; i++) {
		if (by_queue(w, i)) {
			int rc = wq_get(w->q, &item);

			w->got_ns = bench_now();
			w->bad |= rc != WQ_OK || wq_done(w->q, &item) != WQ_OK;
		} else {
			bench_bell_wait(&w->bell);
			w->got_ns = bench_now();
		}
		atomic_store_explicit(&w->handled, i + 1, memory_order_release);
	}
	return NULL;
}

static void let_pass(const struct wakes *w, int64_t ns)
{
	if (w->busy)
		bench_spin(ns);
	else
		bench_rest(ns);
}

/* The time from one wake-up to the worker's next instruction. */
static double wake_once(struct wakes *w, size_t i, const char *key)
{
	int bad = 0;
	int64_t start = bench_now();

	if (by_queue(w, i))
		bad = wq_add(w->q, key, KEY_LEN) != WQ_QUEUED;
	else
		bench_bell_ring(&w->bell);
	bench_check(!bad, "wake: a key was not queued");
	/* At least half of the rest lies behind the worker's return to its wait. */
	do
		let_pass(w, bench_sizes.rest_ns);
	while (atomic_load_explicit(&w->handled, memory_order_acquire) != i + 1 ||
	       bench_now() - w->got_ns < bench_sizes.rest_ns / 2);
	return (double)(w->got_ns - start);
}

static struct wakes *wakes_start(wq *q, bool busy, size_t n, uint64_t *thread)
{
	struct wakes *w = bench_alloc_lines(sizeof *w);

	w->q = q;
	w->busy = busy;
	w->n = n;
	bench_thread(thread, woken, w);
	let_pass(w, bench_sizes.rest_ns);
	return w;
}

static void wakes_end(struct wakes *w, uint64_t thread)
{
	bench_join(thread);
	bench_check(!w->bad, "wake: a call failed");
	free(w);
}

void bench_futex_wake(bool busy, size_t n, double *p50, double *p99)
{
	double *bell = bench_alloc(n, sizeof *bell);
	uint64_t thread;
	struct wakes *w = wakes_start(NULL, busy, n, &thread);

	for (size_t i = 0; i < n; i++)
		bell[i] = wake_once(w, i, NULL);
	wakes_end(w, thread);
	*p50 = bench_percentile(bell, n, 0.5);
	*p99 = bench_percentile(bell, n, 0.99);
	free(bell);
}

static void wake_run(const void *arg, void *state, struct bench_sample *samples)
{
	bool busy = *(const bool *)arg;
	size_t n = bench_sizes.wakes;
	double *bell = bench_alloc(n, sizeof *bell), *queue = bench_alloc(n, sizeof *queue);
	char key[KEY_LEN + 1];
	wq *q = bench_queue();
	uint64_t thread;
	struct wakes *w = wakes_start(q, busy, 2 * n, &thread);

	(void)state;
	bench_key_format(key, 1);
	for (size_t i = 0; i < n; i++) {
		bell[i] = wake_once(w, 2 * i, key);
		queue[i] = wake_once(w, 2 * i + 1, key);
	}
	wakes_end(w, thread);
	bench_queue_free(q, 0);
	samples[0].value = bench_percentile(queue, n, 0.5);
	samples[0].limit = bench_percentile(bell, n, 0.5);
	samples[1].value = bench_percentile(queue, n, 0.99);
	samples[1].limit = bench_percentile(bell, n, 0.99);
	free(bell);
	free(queue);
}

/* ---- the second worker ----------------------------------------------------- */

enum { WORKERS = 2, HANDLER_NS = 100000 };

struct handlers {
	wq *q;
	struct bench_bell finished;
	_Atomic uint32_t started; /* A: relaxed, it only gives each handler its place */
	_Atomic uint32_t ended;   /* A: acq_rel, the last one sees both places */
	int64_t start_ns[WORKERS];
	_Atomic int bad;
};

static void *handle(void *arg)
{
	struct handlers *h = arg;
	wq_item item;

	while (wq_get(h->q, &item) == WQ_OK) {
		int64_t now = bench_now();
		uint32_t at = atomic_fetch_add_explicit(&h->started, 1, memory_order_relaxed);

		h->start_ns[at % WORKERS] = now;
		bench_spin(HANDLER_NS);
		if (wq_done(h->q, &item) != WQ_OK)
			atomic_store(&h->bad, 1);
		if (atomic_fetch_add_explicit(&h->ended, 1, memory_order_acq_rel) % WORKERS ==
		    WORKERS - 1)
			bench_bell_ring(&h->finished);
	}
	return NULL;
}

/* Two keys at once; the time from the first Add to the start of the second handler. */
static double start_two(struct handlers *h, char keys[WORKERS][KEY_LEN + 1])
{
	int64_t start = bench_now();
	int bad = 0;

	for (int k = 0; k < WORKERS; k++)
		bad |= wq_add(h->q, keys[k], KEY_LEN) != WQ_QUEUED;
	/* Asleep: with two CPUs both belong to the handlers now. */
	bench_bell_wait(&h->finished);
	bench_check(!bad, "second_start: a key was not queued");
	return (double)((h->start_ns[0] > h->start_ns[1] ? h->start_ns[0] : h->start_ns[1]) -
	                start);
}

static void second_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct handlers h = {.q = bench_queue()};
	size_t n = bench_sizes.wakes / 2;
	double *bell = bench_alloc(n, sizeof *bell), *second = bench_alloc(n, sizeof *second);
	char keys[WORKERS][KEY_LEN + 1];
	uint64_t threads[WORKERS], bell_thread;
	struct wakes *w = wakes_start(NULL, true, n, &bell_thread);

	(void)arg;
	(void)state;
	for (int i = 0; i < WORKERS; i++) {
		bench_key_format(keys[i], (uint64_t)i);
		bench_thread(&threads[i], handle, &h);
	}
	for (size_t i = 0; i < n; i++) {
		bell[i] = wake_once(w, i, NULL);
		bench_rest(bench_sizes.rest_ns);
		second[i] = start_two(&h, keys);
		bench_rest(bench_sizes.rest_ns);
	}
	wakes_end(w, bell_thread);
	bench_check(wq_shutdown(h.q) == WQ_OK, "second_start: shutdown failed");
	for (int i = 0; i < WORKERS; i++)
		bench_join(threads[i]);
	bench_check(!atomic_load(&h.bad), "second_start: a call failed");
	bench_queue_free(h.q, 0);
	samples[0].value = bench_percentile(second, n, 0.5);
	samples[0].limit = bench_percentile(bell, n, 0.5);
	free(bell);
	free(second);
}

/* ---- the rows -------------------------------------------------------------- */

static const bool then_sleeps = false, goes_on = true;

static const struct bench_group groups[] = {
    {
	.rows = {{"second_start", "ns", BAR_TIMES, 2, "futex_wake_busy_p50"}},
	.nrows = 1,
	.threads = true,
	.paired = true,
	.run = second_run,
    },
    {
	.rows = {{"wake_idle_p50", "ns", BAR_PLUS, 4000, "futex_wake_idle_p50"},
                 {"wake_idle_p99", "ns", BAR_TIMES, 1.3, "futex_wake_idle_p99"}},
	.nrows = 2,
	.threads = true,
	.paired = true,
	.arg = &then_sleeps,
	.run = wake_run,
    },
    {
	.rows = {{"wake_busy_p50", "ns", BAR_PLUS, 4000, "futex_wake_busy_p50"},
                 {"wake_busy_p99", "ns", BAR_TIMES, 1.3, "futex_wake_busy_p99"}},
	.nrows = 2,
	.threads = true,
	.paired = true,
	.arg = &goes_on,
	.run = wake_run,
    },
};

const struct bench_groups bench_wake = {groups, sizeof groups / sizeof groups[0]};
