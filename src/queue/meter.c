/* See meter.h. */
#include "queue/meter.h"

#include <string.h>

#include "queue/memory.h"

static const int64_t first_bound_ns = 10;

int64_t wq_histogram_bound(unsigned bucket)
{
	int64_t bound = first_bound_ns;

	if (bucket >= WQ_BUCKETS - 1)
		return WQ_NEVER;
	while (bucket-- > 0)
		bound *= 10;
	return bound;
}

static void observe(wq_histogram *h, int64_t ns)
{
	int64_t bound = first_bound_ns;
	unsigned i = 0;

	if (ns < 0)
		ns = 0; /* a stamp of another clock, or a clock that went back */
	for (; i < WQ_BUCKETS - 1 && ns > bound; i++)
		bound *= 10;
	h->count[i]++;
	if (wq__unlikely(__builtin_add_overflow(h->sum_ns, (uint64_t)ns, &h->sum_ns)))
		h->sum_ns = UINT64_MAX;
}

static void tell(const struct wq__meter *t, enum wq_metric metric, int64_t delta)
{
	if (t->provider.add)
		t->provider.add(t->provider.ctx, metric, delta);
}

static void tell_duration(const struct wq__meter *t, enum wq_metric metric, int64_t ns)
{
	if (t->provider.observe)
		t->provider.observe(t->provider.ctx, metric, ns > 0 ? ns : 0);
}

int64_t wq__meter_now(const struct wq__memory *m, bool exact)
{
	struct wq__meter *t = m->meter;

	if (t->now_ns < 0 || (exact && !t->exact)) {
		t->exact = exact || !(m->flags & WQ__TICKING);
		t->now_ns = t->exact ? m->clock.now(m->clock.ctx) : wq__ticks_now(&t->ticks);
	}
	return t->now_ns;
}

void wq__meter_added(struct wq__memory *m, int outcome)
{
	struct wq__meter *t = m->meter;

	bool counts = (outcome == WQ_QUEUED && !t->parked) || outcome == WQ_MARKED;

	t->parked = false;

	t->adds += counts;
	if (counts) {
		tell(t, WQ_METRIC_ADDS, 1);
		tell(t, WQ_METRIC_DEPTH, 1);
	}
	t->marked += outcome == WQ_MARKED;
	t->merged += outcome == WQ_MERGED;
	t->refused += outcome < 0;
}

void wq__meter_retried(struct wq__memory *m)
{
	m->meter->retries++;
	tell(m->meter, WQ_METRIC_RETRIES, 1);
}

void wq__meter_depth(struct wq__memory *m, int64_t by)
{
	tell(m->meter, WQ_METRIC_DEPTH, by);
}

static struct wq__stint *stint_of(const struct wq__memory *m, struct wq__entry *e)
{
	return (struct wq__stint *)(void *)((char *)e + wq__entry_room_offset(wq__entry_len(e)) +
	                                    m->meter_at);
}

/* Of a key that is not held its stint says whether it is parked. */
enum { PARKED = -1 };

void wq__meter_park(struct wq__memory *m, struct wq__entry *e, bool parked)
{
	m->meter->parked = parked;
	if (!(e->bits & WQ_STATE_RUNNING))
		stint_of(m, e)->started_ns = parked ? PARKED : 0;
}

void wq__meter_due(struct wq__memory *m, struct wq__entry *e, int64_t late_ns)
{
	if (e->bits & WQ_STATE_RUNNING || stint_of(m, e)->started_ns != PARKED)
		observe(&m->meter->late, late_ns);
}

static struct wq__stint *stint_at(const struct wq__memory *m, uint32_t id)
{
	return stint_of(m, wq__entry_at(m, id));
}

void wq__meter_start(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	struct wq__meter *t = m->meter;
	int64_t now = wq__stamp(m);
	struct wq__stint *s = stint_of(m, e);

	observe(&t->queue, now - e->added_ns);
	tell(t, WQ_METRIC_DEPTH, -1);
	tell_duration(t, WQ_METRIC_QUEUE_DURATION, now - e->added_ns);
	*s = (struct wq__stint){.started_ns = now, .prev = t->newest};
	if (t->newest)
		stint_at(m, t->newest)->next = id;
	else
		t->oldest = id;
	t->newest = id;
	t->started_sum += (uint64_t)now;
}

void wq__meter_end(struct wq__memory *m, struct wq__entry *e, int done)
{
	struct wq__meter *t = m->meter;
	const struct wq__stint *s = stint_of(m, e);

	if (done) {
		int64_t took = wq__stamp(m) - s->started_ns;

		observe(&t->work, took);
		tell_duration(t, WQ_METRIC_WORK_DURATION, took);
	}
	t->started_sum -= (uint64_t)s->started_ns;
	if (s->prev)
		stint_at(m, s->prev)->next = s->next;
	else
		t->oldest = s->next;
	if (s->next)
		stint_at(m, s->next)->prev = s->prev;
	else
		t->newest = s->prev;
}

int64_t wq__meter_running(const struct wq__memory *m, struct wq__entry *e, int64_t now)
{
	if (!(m->flags & WQ__METERED) || !(e->bits & WQ_STATE_RUNNING))
		return 0;

	int64_t took = now - stint_of(m, e)->started_ns;

	return took > 0 ? took : 0;
}

/* ---- looking ------------------------------------------------------------- */

static void sample(wq_sample *out, const struct wq__entry *e, int64_t age_ns)
{
	size_t len = wq__entry_len(e), n = len < sizeof out->key ? len : sizeof out->key - 1;

	memcpy(out->key, e->key, n);
	out->key[n] = '\0';
	out->len = len;
	out->age_ns = age_ns > 0 ? age_ns : 0;
}

/* 0: the clock went back. */
static int64_t unfinished(const struct wq__memory *m, int64_t now)
{
	wq__u128 all = (wq__u128)m->nrunning * (uint64_t)now, sum = m->meter->started_sum;

	if (all < sum)
		return 0;
	return all - sum < INT64_MAX ? (int64_t)(all - sum) : INT64_MAX;
}

static void look_at_times(const struct wq__memory *m, wq_snapshot *out)
{
	const struct wq__meter *t = m->meter;

	out->adds = t->adds;
	out->retries = t->retries;
	out->merged = t->merged;
	out->refused = t->refused;
	out->marked = t->marked;
	out->stale = t->stale;
	out->queue = t->queue;
	out->work = t->work;
	out->late = t->late;
	out->unfinished_ns = unfinished(m, out->now_ns);
	if (t->oldest)
		sample(&out->longest_running, wq__entry_at(m, t->oldest),
		       out->now_ns - stint_at(m, t->oldest)->started_ns);
}

int wq__mem_snapshot(void *state, wq_snapshot *out)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);
	wq__promote_all(m);
	*out = (wq_snapshot){
	    .now_ns = wq__now(m),
	    .queued = wq__queued(m),
	    .running = m->nrunning,
	    .dirty = m->ndirty,
	    .waiting = wq__leaves(m) ? 0 : m->nwaiting,
	    .left = wq__leaves(m) ? m->nwaiting : 0,
	    .remembered = m->nmemo,
	    .next_due_ns = wq__next_due(m),
	    .dead = m->ndead,
	    .dropped = m->ndropped,
	    .merge_failed = m->merge_failed,
	    .oldest_queued.age_ns = -1,
	    .longest_running.age_ns = -1,
	};
	if (m->flags & WQ__METERED)
		look_at_times(m, out);
	if (m->rank)
		wq__rank_snapshot(m, out);
	/* Of orders of one's own only they know who is the head. */
	if (m->nready > 0 && !(m->flags & WQ__ORDERED)) {
		const struct wq__entry *e = wq__entry_at(m, wq__first_ready(m));

		sample(&out->oldest_queued, e, out->now_ns - e->added_ns);
	}
	wq__whole_unlock(m);
	return WQ_OK;
}
