/*
 * Rows of timers, as in bench/wheel.c: GLib's timeout sources in a context of their own.
 *
 * Adding one and destroying it is O(1), for nothing keeps them in order: whenever the loop
 * turns it looks at each of them. No row shows that, as wheel_expire needs a single turn.
 */
#include "peer.h"

#include <stdlib.h>

static const int64_t soon_ns = 10 * WQ_MILLISECOND;

struct timers {
	GMainContext *context;
	GSource **sources;
	size_t n, fired;
};

static gboolean fire(gpointer arg)
{
	struct timers *t = arg;

	t->fired++;
	return G_SOURCE_REMOVE;
}

/* It knows milliseconds only. */
static void insert(struct timers *t, const int64_t *spans)
{
	for (size_t i = 0; i < t->n; i++) {
		GSource *s = g_timeout_source_new((guint)(spans[i] / WQ_MILLISECOND) + 1);

		g_source_set_callback(s, fire, t, NULL);
		g_source_attach(s, t->context);
		t->sources[i] = s;
	}
}

static void release_sources(struct timers *t)
{
	for (size_t i = 0; i < t->n; i++)
		g_source_unref(t->sources[i]);
}

static struct timers begin(size_t n)
{
	return (struct timers){.context = g_main_context_new(),
	                       .sources = bench_alloc(n, sizeof(GSource *)),
	                       .n = n};
}

static void end(struct timers *t)
{
	g_main_context_unref(t->context);
	free(t->sources);
}

/* The name of a timer is its pointer: cancelling brings the last reference. */
static double cancel(struct timers *t)
{
	uint32_t *order = bench_order(t->n);
	GSource **shuffled = bench_alloc(t->n, sizeof *shuffled);
	int64_t start;

	for (size_t i = 0; i < t->n; i++)
		shuffled[i] = t->sources[order[i]];
	start = bench_now();
	for (size_t i = 0; i < t->n; i++) {
		g_source_destroy(shuffled[i]);
		g_source_unref(shuffled[i]);
	}

	double took = (double)(bench_now() - start) / (double)t->n;

	free(shuffled);
	free(order);
	return took;
}

static double insert_far(struct timers *t)
{
	int64_t *spans = bench_spans(t->n, WQ_SECOND, WQ_MINUTE);
	int64_t start = bench_now();

	insert(t, spans);

	double took = (double)(bench_now() - start) / (double)t->n;

	free(spans);
	return took;
}

static double expire(struct timers *t)
{
	int64_t *spans = bench_spans(t->n, 1, soon_ns);
	int64_t start;

	insert(t, spans);
	release_sources(t); /* the context has its own reference */
	bench_rest(2 * soon_ns);
	start = bench_now();
	while (t->fired < t->n)
		bench_check(g_main_context_iteration(t->context, FALSE), "timers: none is due");

	double took = (double)(bench_now() - start) / (double)t->n;

	free(spans);
	return took;
}

static void timers_run(const void *arg, double *values)
{
	struct timers far = begin(bench_sizes.keys), soon = begin(bench_sizes.keys);

	(void)arg;
	values[0] = insert_far(&far);
	values[1] = cancel(&far);
	values[2] = expire(&soon);
	end(&far);
	end(&soon);
}

static void insert_run(const void *arg, double *values)
{
	size_t n = bench_point(arg), times = bench_again(n);
	double *took = bench_alloc(times, sizeof *took);

	for (size_t i = 0; i < times; i++) {
		struct timers t = begin(n);

		took[i] = insert_far(&t);
		cancel(&t);
		end(&t);
	}
	values[0] = bench_low(took, times);
	free(took);
}

/* ---- the rows -------------------------------------------------------------- */

#define INSERT(n_)                                                                                 \
	{                                                                                          \
		.names = {"wheel_insert@" #n_}, .unit = "ns", .arg = &(const size_t){n_},          \
		.run = insert_run,                                                                 \
	}

static const struct peer_group groups[] = {
    {.names = {"wheel_insert", "wheel_cancel", "wheel_expire"}, .unit = "ns", .run = timers_run},
    INSERT(1000),
    INSERT(10000),
    INSERT(100000),
    INSERT(1000000),
    INSERT(10000000),
};

const struct peer_groups peer_timeout = {groups, sizeof groups / sizeof groups[0]};
