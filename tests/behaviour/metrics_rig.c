#include "metrics_rig.h"

#include <inttypes.h>

static void told_add(void *ctx, enum wq_metric metric, int64_t delta)
{
	struct told *t = ctx;

	if (metric == WQ_METRIC_DEPTH) {
		t->depth += delta;
		t->odd += (delta != 1 && delta != -1 && !t->freeing) || t->depth < 0;
		return;
	}
	t->odd += delta != 1;
	if (metric == WQ_METRIC_ADDS)
		t->adds++;
	else if (metric == WQ_METRIC_RETRIES)
		t->retries++;
	else
		t->odd++;
}

static void told_observe(void *ctx, enum wq_metric metric, int64_t ns)
{
	struct told *t = ctx;

	t->odd += ns < 0;
	if (metric == WQ_METRIC_QUEUE_DURATION) {
		t->queue_n++;
		t->queue_ns += ns;
	} else if (metric == WQ_METRIC_WORK_DURATION) {
		t->work_n++;
		t->work_ns += ns;
	} else {
		t->odd++;
	}
}

wq_metrics_provider told_provider(struct told *told)
{
	*told = (struct told){0};
	return (wq_metrics_provider){.add = told_add, .observe = told_observe, .ctx = told};
}

void meter_open(struct meter_rig *r, const wq_options *options)
{
	wq_metrics_provider provider = told_provider(&r->told);
	wq_options o = options ? *options : (wq_options){0};

	o.name = "test";
	o.provider = &provider;
	fixture_open(&r->f, &o);
	memset(&provider, 0xee, sizeof provider); /* it was copied */
}

void meter_close(struct meter_rig *r)
{
	told_agrees(&r->told, r->f.q);
	r->told.freeing = true;
	fixture_close(&r->f, -1);
	IS(r->told.depth, 0);
	IS(r->told.odd, 0);
}

wq_snapshot look(wq_queue *q)
{
	wq_snapshot s;

	memset(&s, 0xee, sizeof s);
	IS(wq_snapshot_take(q, &s), WQ_OK);
	return s;
}

uint64_t total(wq_histogram h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < WQ_BUCKETS; i++)
		n += h.count[i];
	return n;
}

void told_agrees(const struct told *told, wq_queue *q)
{
	wq_snapshot s = look(q);

	IS(told->odd, 0);
	IS(told->depth, (int64_t)(s.queued + s.dirty));
	IS(told->adds, (int64_t)s.adds);
	IS(told->retries, (int64_t)s.retries);
	IS(told->queue_n, (int64_t)total(s.queue));
	IS(told->queue_ns, (int64_t)s.queue.sum_ns);
	IS(told->work_n, (int64_t)total(s.work));
	IS(told->work_ns, (int64_t)s.work.sum_ns);
}

void step_is(const wq_snapshot *from, const wq_snapshot *to, const struct step *expected,
             const char *what, const char *file, int line)
{
	const struct {
		const char *name;
		uint64_t from, to;
		int64_t expected;
	} counts[] = {
	    {"depth", from->queued + from->dirty, to->queued + to->dirty, expected->depth},
	    {"adds", from->adds, to->adds, expected->adds},
	    {"retries", from->retries, to->retries, expected->retries},
	    {"merged", from->merged, to->merged, expected->merged},
	    {"refused", from->refused, to->refused, expected->refused},
	    {"marked", from->marked, to->marked, expected->marked},
	    {"left", from->left, to->left, expected->left},
	    {"dead", from->dead, to->dead, expected->dead},
	    {"stale", from->stale, to->stale, expected->stale},
	    {"slow_handlers", from->slow_handlers, to->slow_handlers, expected->slow_handlers},
	    {"dropped", from->dropped, to->dropped, expected->dropped},
	};
	bool same = true;

	for (size_t i = 0; i < LENGTH(counts); i++) {
		int64_t by = (int64_t)(counts[i].to - counts[i].from);

		if (by == counts[i].expected)
			continue;
		print_error("%s:%d: %s\n    %s went up by %" PRId64 ", not %" PRId64 "\n", file,
		            line, what, counts[i].name, by, counts[i].expected);
		same = false;
	}
	if (!same)
		_fail(file, line);
}

int text_write(void *ctx, const char *bytes, size_t n)
{
	struct text *t = ctx;
	char *more;

	if (++t->calls == t->stop_at)
		return t->answer;
	more = realloc(t->bytes, t->n + n + 1);
	assert_non_null(more);
	memcpy(more + t->n, bytes, n);
	t->bytes = more;
	t->n += n;
	t->bytes[t->n] = '\0';
	return 0;
}

void text_free(struct text *t)
{
	free(t->bytes);
	*t = (struct text){0};
}
