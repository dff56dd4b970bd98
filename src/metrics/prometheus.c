/*
 * Metrics as text, in Prometheus' format 0.0.4 and in OpenMetrics 1.0. All queues
 * are looked at first, each in one short hold of its lock; the text is made from
 * those pictures alone. A metric is a line of the table below.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <wq/metrics.h>

#include "base/alloc.h"

enum kind { DEPTH, GAUGE, GAUGE_SECONDS, COUNTER, HISTOGRAM };

struct metric {
	const char *name; /* a counter's without _total */
	const char *help;
	enum kind kind;
	size_t at; /* where in the snapshot */
};

#define AT(field) offsetof(wq_snapshot, field)

static const struct metric metrics[] = {
    {"workqueue_depth", "Keys that are queued or dirty", DEPTH, AT(queued)},
    {"workqueue_adds", "Adds that did not merge", COUNTER, AT(adds)},
    {"workqueue_queue_duration_seconds", "From the add to the get", HISTOGRAM, AT(queue)},
    {"workqueue_work_duration_seconds", "From the get to the done", HISTOGRAM, AT(work)},
    {"workqueue_unfinished_work_seconds", "Sum of the ages of the keys that are held",
     GAUGE_SECONDS, AT(unfinished_ns)},
    {"workqueue_longest_running_processor_seconds", "Age of the key that has been held longest",
     GAUGE_SECONDS, AT(longest_running.age_ns)},
    {"workqueue_retries", "Delayed and limited adds, and retries", COUNTER, AT(retries)},
    {"wq_waiting", "Keys that wait for their due time", GAUGE, AT(waiting)},
    {"wq_running", "Keys that are held", GAUGE, AT(running)},
    {"wq_left", "Keys left over after a shutdown", GAUGE, AT(left)},
    {"wq_oldest_queued_seconds", "Age of the head of the queue", GAUGE_SECONDS,
     AT(oldest_queued.age_ns)},
    {"wq_delay_lateness_seconds", "From the due time of a key until it was queued", HISTOGRAM,
     AT(late)},
    {"wq_merged", "Adds that merged", COUNTER, AT(merged)},
    {"wq_refused", "Adds that were refused", COUNTER, AT(refused)},
    {"wq_marked", "Adds of held keys", COUNTER, AT(marked)},
    {"wq_dropped", "Keys dropped by a verdict", COUNTER, AT(dropped)},
    {"wq_dead", "Keys that died", COUNTER, AT(dead)},
    {"wq_stale", "Stale items passed to a call that ends a hold", COUNTER, AT(stale)},
    {"wq_slow_handlers", "Slow handlers", COUNTER, AT(slow_handlers)},
};

enum { NMETRICS = sizeof metrics / sizeof metrics[0], NAME_BYTES = 256 };

struct picture {
	struct picture *next;
	char label[NAME_BYTES * 2]; /* the name, escaped */
	wq_snapshot s;
};

struct out {
	struct picture *first, **last;
	bool open; /* OpenMetrics */
	wq_write_fn write;
	void *ctx;
	int rc;
	char text[4096];
	size_t n;
};

/* ---- collecting ----------------------------------------------------------- */

/* In a label's value a backslash, a quote and a line feed are escaped. A name here is UTF-8. */
static void escape(char *to, const char *name)
{
	for (; *name; name++) {
		char c = *name;

		if (c == '\\' || c == '"' || c == '\n')
			*to++ = '\\';
		if (c == '\n')
			c = 'n';
		*to++ = c;
	}
	*to = '\0';
}

static int collect(void *ctx, const char *name, wq_queue *q)
{
	struct out *o = ctx;
	struct picture *p = wq__alloc(&wq__default_allocator, sizeof *p, 8);

	if (!p)
		return WQ_ENOMEM;
	/* One that cannot be looked at (its engine fails, or a parent's queue) does not hide others. */
	if (wq_snapshot_take(q, &p->s) < 0) {
		wq__free(&wq__default_allocator, p, sizeof *p);
		return WQ_OK;
	}
	p->next = NULL;
	escape(p->label, name);
	*o->last = p;
	o->last = &p->next;
	return WQ_OK;
}

static void release(struct out *o)
{
	while (o->first) {
		struct picture *p = o->first;

		o->first = p->next;
		wq__free(&wq__default_allocator, p, sizeof *p);
	}
}

/* ---- writing -------------------------------------------------------------- */

static void flush(struct out *o)
{
	if (o->rc == WQ_OK && o->n > 0)
		o->rc = o->write(o->ctx, o->text, o->n);
	o->n = 0;
}

static void print(struct out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* No line is longer than half the buffer. */
static void print(struct out *o, const char *format, ...)
{
	va_list args;

	if (o->n > sizeof o->text / 2)
		flush(o);
	va_start(args, format);
	o->n += (size_t)vsnprintf(o->text + o->n, sizeof o->text - o->n, format, args);
	va_end(args);
}

/* Nanoseconds as seconds, all digits, whatever the locale makes of a decimal point. */
#define SECONDS "%" PRIu64 ".%09" PRIu64
#define IN_SECONDS(ns) (uint64_t)(ns) / 1000000000, (uint64_t)(ns) % 1000000000

static void write_histogram(struct out *o, const char *name, const char *label,
                            const wq_histogram *h)
{
	static const char *const bounds[WQ_BUCKETS] = {"1e-08", "1e-07", "1e-06", "1e-05", "0.0001",
	                                               "0.001", "0.01",  "0.1",   "1",     "10",
	                                               "100",   "1000",  "+Inf"};
	uint64_t sum = 0;

	for (unsigned i = 0; i < WQ_BUCKETS; i++) {
		const char *bound = bounds[i];

		/* OpenMetrics wants them to look like floating-point numbers. */
		if (o->open && strchr(bound, '.') == NULL && bound[0] != '+' && !strchr(bound, 'e'))
			print(o, "%s_bucket{name=\"%s\",le=\"%s.0\"} %" PRIu64 "\n", name, label,
			      bound, sum += h->count[i]);
		else
			print(o, "%s_bucket{name=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, label,
			      bound, sum += h->count[i]);
	}
	print(o, "%s_sum{name=\"%s\"} " SECONDS "\n", name, label, IN_SECONDS(h->sum_ns));
	print(o, "%s_count{name=\"%s\"} %" PRIu64 "\n", name, label, sum);
}

/*
 * By priority, as controller-runtime has it, if priorities are in use. There are at most WQ_LEVELS
 * and two series, whatever priorities are given. The priorities of dirty keys are not known.
 */
static void write_levels(struct out *o, const struct metric *m, const struct picture *p)
{
	const wq_snapshot *s = &p->s;

	for (uint32_t i = 0; i < s->nlevels && i < WQ_LEVELS; i++)
		print(o, "%s{name=\"%s\",priority=\"%" PRId32 "\"} %" PRIu64 "\n", m->name,
		      p->label, s->level[i].priority, s->level[i].queued);
	if (s->queued_lower > 0)
		print(o, "%s{name=\"%s\",priority=\"lower\"} %" PRIu64 "\n", m->name, p->label,
		      s->queued_lower);
	if (s->dirty > 0)
		print(o, "%s{name=\"%s\",priority=\"dirty\"} %" PRIu64 "\n", m->name, p->label,
		      s->dirty);
}

static void write_value(struct out *o, const struct metric *m, const struct picture *p)
{
	const void *at = (const char *)&p->s + m->at;
	int64_t age = m->kind == GAUGE_SECONDS ? *(const int64_t *)at : 0;

	if (age < 0)
		return; /* nobody knows: no value is better than one that looks healthy */
	if (m->kind == DEPTH && p->s.nlevels > 0)
		write_levels(o, m, p);
	else if (m->kind == HISTOGRAM)
		write_histogram(o, m->name, p->label, at);
	else if (m->kind == GAUGE_SECONDS)
		print(o, "%s{name=\"%s\"} " SECONDS "\n", m->name, p->label, IN_SECONDS(age));
	else
		print(o, "%s%s{name=\"%s\"} %" PRIu64 "\n", m->name,
		      m->kind == COUNTER ? "_total" : "", p->label, *(const uint64_t *)at);
}

static void write_metric(struct out *o, const struct metric *m)
{
	static const char *const types[] = {"gauge", "gauge", "gauge", "counter", "histogram"};
	/* OpenMetrics names a family without the suffix of its counter. */
	const char *suffix = m->kind == COUNTER && !o->open ? "_total" : "";

	print(o, "# HELP %s%s %s\n", m->name, suffix, m->help);
	print(o, "# TYPE %s%s %s\n", m->name, suffix, types[m->kind]);
	for (const struct picture *p = o->first; p; p = p->next)
		write_value(o, m, p);
}

const char *wq_metrics_type(enum wq_metrics_format format)
{
	return format == WQ_OPENMETRICS
	           ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	           : "text/plain; version=0.0.4; charset=utf-8";
}

/* What the metrics say in other words than the snapshot. */
static void put_as_metrics(wq_snapshot *s)
{
	/* Where there is no key the oldest has no age; where there are, -1 is not known. */
	if (s->queued == 0)
		s->oldest_queued.age_ns = 0;
	if (s->running == 0)
		s->longest_running.age_ns = 0;
	/* The depth is what will be handed out: in line, or to come back. */
	s->queued += s->dirty;
}

int wq_metrics_write(wq_registry *r, enum wq_metrics_format format, wq_write_fn write, void *ctx)
{
	struct out o = {.open = format == WQ_OPENMETRICS, .write = write, .ctx = ctx};
	int rc;

	if (!r || !write || (unsigned)format > WQ_OPENMETRICS)
		return WQ_EINVAL;
	o.last = &o.first;
	rc = wq_registry_each(r, collect, &o);
	for (struct picture *p = o.first; p; p = p->next)
		put_as_metrics(&p->s);
	if (rc == WQ_OK) {
		for (size_t i = 0; i < NMETRICS; i++)
			write_metric(&o, &metrics[i]);
		if (o.open)
			print(&o, "# EOF\n");
		flush(&o);
		rc = o.rc;
	}
	release(&o);
	return rc;
}
