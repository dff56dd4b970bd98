/*
 * Rows of sleeping workers.
 *
 *   wake_idle     from the Add to the worker's return from Get, when the
 *                 thread that added then sleeps itself
 *   wake_busy     the same when it goes on working
 *   waiters@W     wake_idle, p50, when W workers wait for the one key; beside no bell
 *   second_start  two keys for two sleeping workers whose handlers take 100 µs:
 *                 from the first Add to the start of the second handler
 *   second_bare   the same with two bells instead of the queue: what the
 *                 kernel makes of two wake-ups; to compare
 *
 * All others are judged by a bare futex in the same pattern: the same threads, and
 * every other wake-up goes by the bell instead of the queue, so that whatever
 * the machine does meanwhile it does to both. Between wake-ups lies enough
 * time for a Get to have given up spinning. Value and limit are each the best
 * repetition's: one in which other work delayed the bells would be no limit.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <sched.h>
#include <stdlib.h>

struct wakes {       /* NOLINT(clang-analyzer-optin.performance.Padding): two threads, two lines */
	wq_queue *q; /* NULL: bells only */
	bool busy;
	size_t n; /* wake-ups in all */
	struct bench_bell bell;
	alignas(BENCH_LINE) _Atomic size_t handled; /* A: release by the worker, with got_ns */
	int64_t got_ns;
	int got_cpu;
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
			w->got_cpu = sched_getcpu();
			w->bad |= rc != WQ_OK || wq_done(w->q, &item) != WQ_OK;
		} else {
			bench_bell_wait(&w->bell);
			w->got_ns = bench_now();
			w->got_cpu = sched_getcpu();
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

static struct wakes *wakes_start(wq_queue *q, bool busy, size_t n, uint64_t *thread)
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
	wq_queue *q = bench_queue();
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

/* ---- more waiters than keys ------------------------------------------------- */

enum { WAITERS_MAX = 64 };

struct waiters {
	wq_queue *q;
	_Atomic int64_t got_ns; /* A: when the last key was got */
	_Atomic size_t handled; /* A: keys that are done */
	_Atomic int bad;
};

static void *wait_for_keys(void *arg)
{
	struct waiters *w = arg;
	wq_item item;

	while (wq_get(w->q, &item) == WQ_OK) {
		atomic_store(&w->got_ns, bench_now());
		if (wq_done(w->q, &item) != WQ_OK)
			atomic_store(&w->bad, 1);
		atomic_fetch_add(&w->handled, 1);
	}
	return NULL;
}

static double wake_one_of(struct waiters *w, size_t i, const char *key)
{
	int64_t start = bench_now();

	bench_check(wq_add(w->q, key, KEY_LEN) == WQ_QUEUED, "waiters: a key was not queued");
	do
		bench_rest(bench_sizes.rest_ns);
	while (atomic_load(&w->handled) != i + 1 ||
	       bench_now() - atomic_load(&w->got_ns) < bench_sizes.rest_ns / 2);
	return (double)(atomic_load(&w->got_ns) - start);
}

static void waiters_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t nwaiters = bench_point(arg), n = bench_sizes.wakes;
	struct waiters w = {.q = bench_queue()};
	double *took = bench_alloc(n, sizeof *took);
	uint64_t threads[WAITERS_MAX];
	char key[KEY_LEN + 1];

	(void)state;
	bench_key_format(key, 1);
	for (size_t i = 0; i < nwaiters; i++)
		bench_thread(&threads[i], wait_for_keys, &w);
	bench_rest((int64_t)nwaiters * bench_sizes.rest_ns); /* all are asleep by then */
	for (size_t i = 0; i < n; i++)
		took[i] = wake_one_of(&w, i, key);
	bench_check(wq_shutdown(w.q) == WQ_OK, "waiters: shutdown failed");
	for (size_t i = 0; i < nwaiters; i++)
		bench_join(threads[i]);
	bench_check(!atomic_load(&w.bad), "waiters: a call failed");
	bench_queue_free(w.q, 0);
	samples[0].value = bench_percentile(took, n, 0.5);
	free(took);
}

/* ---- the second worker ----------------------------------------------------- */

enum { WORKERS = 2, HANDLER_NS = 100000 };

struct handlers {
	wq_queue *q; /* NULL: bells only */
	struct bench_bell bells[WORKERS];
	struct bench_bell finished;
	_Atomic uint32_t next;    /* A: relaxed, it only gives each thread its bell */
	_Atomic uint32_t started; /* A: relaxed, it only gives each handler its place */
	_Atomic uint32_t ended;   /* A: acq_rel, the last one sees both places */
	int64_t start_ns[WORKERS];
	_Atomic bool stop; /* A: bells only */
	_Atomic int bad;
	uint64_t threads[WORKERS];
	char keys[WORKERS][KEY_LEN + 1];
};

static void handle_one(struct handlers *h)
{
	int64_t now = bench_now();
	uint32_t at = atomic_fetch_add_explicit(&h->started, 1, memory_order_relaxed);

	h->start_ns[at % WORKERS] = now;
	bench_spin(HANDLER_NS);
}

static void handled_one(struct handlers *h)
{
	if (atomic_fetch_add_explicit(&h->ended, 1, memory_order_acq_rel) % WORKERS == WORKERS - 1)
		bench_bell_ring(&h->finished);
}

static void *handle_keys(void *arg)
{
	struct handlers *h = arg;
	wq_item item;

	while (wq_get(h->q, &item) == WQ_OK) {
		handle_one(h);
		if (wq_done(h->q, &item) != WQ_OK)
			atomic_store(&h->bad, 1);
		handled_one(h);
	}
	return NULL;
}

static void *handle_bells(void *arg)
{
	struct handlers *h = arg;
	uint32_t mine = atomic_fetch_add_explicit(&h->next, 1, memory_order_relaxed);

	for (;;) {
		bench_bell_wait(&h->bells[mine]);
		if (atomic_load(&h->stop))
			return NULL;
		handle_one(h);
		handled_one(h);
	}
}

static void handlers_start(struct handlers *h, wq_queue *q)
{
	*h = (struct handlers){.q = q};
	for (int i = 0; i < WORKERS; i++) {
		bench_key_format(h->keys[i], (uint64_t)i);
		bench_thread(&h->threads[i], q ? handle_keys : handle_bells, h);
	}
}

static void handlers_end(struct handlers *h)
{
	atomic_store(&h->stop, true);
	if (h->q)
		bench_check(wq_shutdown(h->q) == WQ_OK, "second_start: shutdown failed");
	for (int i = 0; i < WORKERS; i++)
		bench_bell_ring(&h->bells[i]);
	for (int i = 0; i < WORKERS; i++)
		bench_join(h->threads[i]);
	bench_check(!atomic_load(&h->bad), "second_start: a call failed");
	if (h->q)
		bench_queue_free(h->q, 0);
}

/* Wakes both; the time from the first Add, or ring, to the start of the second handler. */
static double start_two(struct handlers *h)
{
	int64_t start = bench_now();
	int bad = 0;

	for (int i = 0; i < WORKERS; i++) {
		if (h->q)
			bad |= wq_add(h->q, h->keys[i], KEY_LEN) != WQ_QUEUED;
		else
			bench_bell_ring(&h->bells[i]);
	}
	/* Asleep: with two CPUs both belong to the handlers now. */
	bench_bell_wait(&h->finished);
	bench_check(!bad, "second_start: a key was not queued");
	return (double)((h->start_ns[0] > h->start_ns[1] ? h->start_ns[0] : h->start_ns[1]) -
	                start);
}

/*
 * The limit is a wake-up whose waker goes on. The kernel may also put the woken
 * thread in the waker's place, above all while the other CPUs are taken: that
 * is ten times as fast, for no CPU has to be roused, but the waker stands
 * still and nothing is gained for a second worker. Those are left out.
 */
static void second_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct handlers queue, bare;
	size_t n = bench_sizes.wakes / 2;
	double *wake = bench_alloc(n, sizeof *wake), *keys = bench_alloc(n, sizeof *keys);
	double *bells = bench_alloc(n, sizeof *bells), *gone_on = bench_alloc(n, sizeof *gone_on);
	size_t ngone_on = 0;
	uint64_t thread;
	struct wakes *w = wakes_start(NULL, true, n, &thread);

	(void)arg;
	(void)state;
	handlers_start(&queue, bench_queue());
	handlers_start(&bare, NULL);
	for (size_t i = 0; i < n; i++) {
		bench_spin(bench_sizes.rest_ns);

		int cpu = sched_getcpu();

		wake[i] = wake_once(w, i, NULL);
		if (w->got_cpu != cpu)
			gone_on[ngone_on++] = wake[i];
		bench_spin(bench_sizes.rest_ns);
		keys[i] = start_two(&queue);
		bench_spin(bench_sizes.rest_ns);
		bells[i] = start_two(&bare);
	}
	wakes_end(w, thread);
	handlers_end(&queue);
	handlers_end(&bare);
	samples[0].value = bench_percentile(keys, n, 0.5);
	samples[1].value = bench_percentile(bells, n, 0.5);
	/* A few may be chance. With too few, all must do, and the limit is strict. */
	if (ngone_on > n / 10)
		samples[0].limit = bench_percentile(gone_on, ngone_on, 0.5);
	else
		samples[0].limit = bench_percentile(wake, n, 0.5);
	samples[1].limit = samples[0].limit;
	free(wake);
	free(gone_on);
	free(keys);
	free(bells);
}

/* ---- the rows -------------------------------------------------------------- */

static const bool then_sleeps = false, goes_on = true;

#define WAITERS_AT(w_)                                                                             \
	{                                                                                          \
		.rows = {{"waiters@" #w_, "ns", BAR_NONE, 0, NULL}}, .nrows = 1, .reps = 3,        \
		.threads = true, .arg = &(const size_t){w_}, .run = waiters_run,                   \
	}

static const struct bench_group groups[] = {
    {
	.rows = {{"second_start", "ns", BAR_TIMES, 2, "futex_wake_busy_p50"},
                 {"second_bare", "ns", BAR_NONE, 0, "futex_wake_busy_p50"}},
	.nrows = 2,
	.reps = 9,
	.threads = true,
	.run = second_run,
    },
    {
	.rows = {{"wake_idle_p50", "ns", BAR_PLUS, 4000, "futex_wake_idle_p50"},
                 {"wake_idle_p99", "ns", BAR_TIMES, 1.3, "futex_wake_idle_p99"}},
	.nrows = 2,
	.reps = 9,
	.threads = true,
	.arg = &then_sleeps,
	.run = wake_run,
    },
    {
	.rows = {{"wake_busy_p50", "ns", BAR_PLUS, 4000, "futex_wake_busy_p50"},
                 {"wake_busy_p99", "ns", BAR_TIMES, 1.3, "futex_wake_busy_p99"}},
	.nrows = 2,
	.reps = 9,
	.threads = true,
	.arg = &goes_on,
	.run = wake_run,
    },
    WAITERS_AT(1),
    WAITERS_AT(2),
    WAITERS_AT(4),
    WAITERS_AT(8),
    WAITERS_AT(16),
    WAITERS_AT(32),
    WAITERS_AT(64),
};

const struct bench_groups bench_wake = {groups, sizeof groups / sizeof groups[0]};
