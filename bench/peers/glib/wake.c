/*
 * Rows of sleeping workers, as in bench/wake.c, without the bare futex beside them.
 *
 *   wake_idle, wake_busy   from the push to the worker's return from its pop, when the
 *                          thread that pushed then sleeps, or works
 *   waiters@W              wake_idle_p50 with W threads that wait for the key
 *   second_start           two keys for two sleeping workers whose handlers take 100 µs: from
 *                          the first push to the start of the second handler
 */
#include "peer.h"

#include <stdlib.h>

enum { WAITERS_MAX = 64 };

struct way {
	size_t waiters;
	void (*pass)(int64_t ns);
};

struct wakes {
	GAsyncQueue *q;
	alignas(BENCH_LINE) _Atomic size_t handled; /* A: release by the worker, with got_ns */
	int64_t got_ns; /* one key is under way at a time, and so is one writer */
};

static gpointer woken(gpointer arg)
{
	struct wakes *w = arg;

	while (g_async_queue_pop(w->q) != peer_over) {
		w->got_ns = bench_now();
		atomic_fetch_add_explicit(&w->handled, 1, memory_order_release);
	}
	return NULL;
}

static double wake_once(struct wakes *w, size_t i, const struct way *way, gpointer key)
{
	int64_t start = bench_now();

	g_async_queue_push(w->q, key);
	/* At least half of the rest lies behind the worker's return to its wait. */
	do
		way->pass(bench_sizes.rest_ns);
	while (atomic_load_explicit(&w->handled, memory_order_acquire) != i + 1 ||
	       bench_now() - w->got_ns < bench_sizes.rest_ns / 2);
	return (double)(w->got_ns - start);
}

static void wake_run(const void *arg, double *values)
{
	const struct way *way = arg;
	size_t n = bench_sizes.wakes;
	double *took = bench_alloc(n, sizeof *took);
	struct wakes *w = bench_alloc_lines(sizeof *w);
	gpointer key = peer_key(bench_pool(), 1);
	GThread *threads[WAITERS_MAX];

	w->q = g_async_queue_new();
	for (size_t i = 0; i < way->waiters; i++)
		threads[i] = g_thread_new(NULL, woken, w);
	/* As many wait as there are pops without a key. */
	while (g_async_queue_length(w->q) > -(gint)way->waiters)
		bench_rest(bench_sizes.rest_ns);
	way->pass(bench_sizes.rest_ns);
	for (size_t i = 0; i < n; i++)
		took[i] = wake_once(w, i, way, key);
	for (size_t i = 0; i < way->waiters; i++)
		g_async_queue_push(w->q, peer_over);
	for (size_t i = 0; i < way->waiters; i++)
		g_thread_join(threads[i]);
	bench_check(atomic_load(&w->handled) == n, "wake: a key was lost");
	g_async_queue_unref(w->q);
	values[0] = bench_percentile(took, n, 0.5);
	values[1] = bench_percentile(took, n, 0.99);
	free(w);
	free(took);
}

/* ---- the second worker ----------------------------------------------------- */

enum { WORKERS = 2, HANDLER_NS = 100000 };

struct handlers {
	GAsyncQueue *q, *finished;
	_Atomic uint32_t started; /* A: relaxed, it only gives each handler its place */
	_Atomic uint32_t ended;   /* A: acq_rel, the last one sees both places */
	int64_t start_ns[WORKERS];
};

static gpointer handle_keys(gpointer arg)
{
	struct handlers *h = arg;
	gpointer key;

	while ((key = g_async_queue_pop(h->q)) != peer_over) {
		int64_t now = bench_now();
		uint32_t at = atomic_fetch_add_explicit(&h->started, 1, memory_order_relaxed);

		h->start_ns[at % WORKERS] = now;
		bench_spin(HANDLER_NS);
		if (atomic_fetch_add_explicit(&h->ended, 1, memory_order_acq_rel) % WORKERS ==
		    WORKERS - 1)
			g_async_queue_push(h->finished, key);
	}
	return NULL;
}

static double start_two(struct handlers *h)
{
	int64_t start = bench_now();

	for (size_t i = 0; i < WORKERS; i++)
		g_async_queue_push(h->q, peer_key(bench_pool(), i));
	/* Asleep: with two CPUs both belong to the handlers now. */
	g_async_queue_pop(h->finished);
	return (double)(MAX(h->start_ns[0], h->start_ns[1]) - start);
}

static void second_run(const void *arg, double *values)
{
	struct handlers h = {.q = g_async_queue_new(), .finished = g_async_queue_new()};
	size_t n = bench_sizes.wakes / 2;
	double *took = bench_alloc(n, sizeof *took);
	GThread *threads[WORKERS];

	(void)arg;
	bench_pool();
	for (int i = 0; i < WORKERS; i++)
		threads[i] = g_thread_new(NULL, handle_keys, &h);
	for (size_t i = 0; i < n; i++) {
		bench_spin(bench_sizes.rest_ns);
		took[i] = start_two(&h);
	}
	for (int i = 0; i < WORKERS; i++)
		g_async_queue_push(h.q, peer_over);
	for (int i = 0; i < WORKERS; i++)
		g_thread_join(threads[i]);
	bench_check(atomic_load(&h.ended) == n * WORKERS, "second_start: a key was lost");
	g_async_queue_unref(h.q);
	g_async_queue_unref(h.finished);
	values[0] = bench_percentile(took, n, 0.5);
	free(took);
}

/* ---- the rows -------------------------------------------------------------- */

#define WAITERS(n_)                                                                                \
	{                                                                                          \
		.names = {"waiters@" #n_}, .unit = "ns",                                           \
		.arg = &(const struct way){n_, bench_rest}, .run = wake_run,                       \
	}

static const struct peer_group groups[] = {
    {.names = {"second_start"}, .unit = "ns", .run = second_run},
    {
	.names = {"wake_idle_p50", "wake_idle_p99"},
	.unit = "ns",
	.arg = &(const struct way){1, bench_rest},
	.run = wake_run,
    },
    {
	.names = {"wake_busy_p50", "wake_busy_p99"},
	.unit = "ns",
	.arg = &(const struct way){1, bench_spin},
	.run = wake_run,
    },
    WAITERS(1),
    WAITERS(2),
    WAITERS(4),
    WAITERS(8),
    WAITERS(16),
    WAITERS(32),
    WAITERS(64),
};

const struct peer_groups peer_wake = {groups, sizeof groups / sizeof groups[0]};
