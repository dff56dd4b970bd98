/*
 * Each queue is looked at once for a picture, in one short hold of its lock; the text is
 * made outside all locks, and kept for whoever asks within the next 100 ms.
 *
 * A hold takes a microsecond or two, however many keys there are, and 30 of them a second less than
 * 0.01 % of the time. A busy machine stops a thread that has a lock like any other: the
 * share grows with the number of threads that each CPU has to run, and stays far from 1 %.
 */
#include "http/pictures.h"

#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

#include "http/query.h"

static const int64_t fresh_ns = 100 * WQ_MILLISECOND;

struct look {
	char name[WQ__NAME_MAX + 1];
	wq_snapshot s;
};

struct looks {
	struct look *at;
	size_t n;
	size_t room;
};

static bool is_fresh(const struct wq__picture *p, int64_t now)
{
	return p->r && now - p->taken_ns < fresh_ns;
}

/* What cannot be taken leaves the old one where it is, but is not passed off as new. */
static struct wq__answer replace(struct wq__picture *p, struct MHD_Response *r, int64_t now)
{
	if (!r)
		return wq__answer_later("out of memory", 0);
	if (p->r)
		MHD_destroy_response(p->r);
	*p = (struct wq__picture){.r = r, .taken_ns = now};
	return (struct wq__answer){.code = MHD_HTTP_OK, .r = r};
}

struct wq__answer wq__pictures_metrics(struct wq__pictures *ps, wq_registry *r,
                                       enum wq_metrics_format format, int64_t now_ns)
{
	struct wq__picture *p = &ps->metrics[format];
	struct wq__buffer t = {0};

	if (is_fresh(p, now_ns))
		return (struct wq__answer){.code = MHD_HTTP_OK, .r = p->r};
	if (wq_metrics_write(r, format, wq__buffer_write, &t) != WQ_OK)
		t.failed = true;
	return replace(p, wq__response_of(&t, wq_metrics_type(format)), now_ns);
}

static int collect(void *ctx, const char *name, wq_queue *q)
{
	struct looks *l = ctx;

	if (l->n == l->room) {
		size_t room = 2 * l->room + 8;
		struct look *more = realloc(l->at, room * sizeof *more);

		if (!more)
			return WQ_ENOMEM;
		l->at = more;
		l->room = room;
	}
	memcpy(l->at[l->n].name, name, strlen(name) + 1);
	/* One that cannot be looked at does not hide others. */
	l->n += wq_snapshot_take(q, &l->at[l->n].s) >= 0;
	return WQ_OK;
}

static void write_queues(struct wq__buffer *t, const struct looks *l)
{
	wq__buffer_add(t, "{\"queues\":[");
	for (size_t i = 0; i < l->n; i++) {
		if (i > 0)
			wq__buffer_add(t, ",\n");
		/* A failure is in the text. */
		(void)wq_snapshot_json(&l->at[i].s, l->at[i].name, wq__buffer_write, t);
	}
	wq__buffer_add(t, "]}\n");
}

struct wq__answer wq__pictures_queues(struct wq__pictures *ps, wq_registry *r, int64_t now_ns)
{
	struct wq__picture *p = &ps->queues;
	struct wq__buffer t = {0};
	struct looks l = {0};

	if (is_fresh(p, now_ns))
		return (struct wq__answer){.code = MHD_HTTP_OK, .r = p->r};
	if (wq_registry_each(r, collect, &l) == WQ_OK)
		write_queues(&t, &l);
	else
		t.failed = true;
	free(l.at);
	return replace(p, wq__response_of(&t, WQ__TYPE_JSON), now_ns);
}

void wq__pictures_release(struct wq__pictures *ps)
{
	struct wq__picture *all[] = {&ps->metrics[0], &ps->metrics[1], &ps->queues};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i]->r)
			MHD_destroy_response(all[i]->r);
}
