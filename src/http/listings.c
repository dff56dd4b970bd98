/*
 * A listing is taken by a thread of its own (walker.h), as often as the queue can bear it
 * (ration.h). Who asks for one waits until it is there, but not for long: then what is there is
 * shown again, however old, and what is not there is refused with 503.
 */
#include "http/listings.h"

#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

enum { LISTINGS_MAX = 64, BYTES_MAX = 16 << 20 };

static const int64_t fresh_ns = WQ_SECOND;

/* All lists of one queue, limit and match. */
struct wq__listing {
	struct wq__listing *next;
	struct MHD_Response *r[WQ__LISTS];
	size_t bytes;
	int64_t taken_ns; /* the walk began */
	int64_t ended_ns;
	unsigned limit;
	size_t match_len;
	char match[WQ__MATCH_MAX];
	char name[WQ__NAME_MAX + 1];
};

/* ---- what is kept ------------------------------------------------------------ */

/* What is found comes to the front. */
static struct wq__listing *find(struct wq__listings *ls, const char *name,
                                const struct wq__query *q)
{
	for (struct wq__listing **at = &ls->first; *at; at = &(*at)->next) {
		struct wq__listing *l = *at;

		if (l->limit == q->limit && l->match_len == q->match_len &&
		    memcmp(l->match, q->match, q->match_len) == 0 && strcmp(l->name, name) == 0) {
			*at = l->next;
			l->next = ls->first;
			ls->first = l;
			return l;
		}
	}
	return NULL;
}

static void listing_free(struct wq__listing *l)
{
	for (int i = 0; i < WQ__LISTS; i++)
		if (l->r[i])
			MHD_destroy_response(l->r[i]);
	free(l);
}

static void drop(struct wq__listings *ls, struct wq__listing **at)
{
	struct wq__listing *l = *at;

	*at = l->next;
	ls->n--;
	ls->bytes -= l->bytes;
	listing_free(l);
}

/* The first stays, whatever its size: somebody waits for it. */
static void make_room(struct wq__listings *ls)
{
	while (ls->first->next && (ls->n > LISTINGS_MAX || ls->bytes > BYTES_MAX)) {
		struct wq__listing **at = &ls->first->next;

		while ((*at)->next)
			at = &(*at)->next;
		drop(ls, at);
	}
}

/* The walk's texts are gone afterwards. */
static struct wq__listing *listing_new(struct wq__walk *w)
{
	struct wq__listing *l = calloc(1, sizeof *l);
	bool failed = !l;

	for (int i = 0; i < WQ__LISTS; i++) {
		if (failed) {
			wq__buffer_release(&w->text[i]);
			continue;
		}
		l->bytes += w->text[i].room;
		l->r[i] = wq__response_of(&w->text[i], WQ__TYPE_JSON);
		failed = !l->r[i];
	}
	if (failed) {
		if (l)
			listing_free(l);
		return NULL;
	}
	memcpy(l->name, w->name, strlen(w->name) + 1);
	l->limit = w->q.limit;
	l->match_len = w->q.match_len;
	memcpy(l->match, w->q.match, w->q.match_len);
	return l;
}

/* ---- taking ----------------------------------------------------------------- */

static struct wq__answer no_queue(void)
{
	return wq__answer_error(MHD_HTTP_NOT_FOUND, "no such queue");
}

static struct wq__answer no_memory(void)
{
	return wq__answer_later("out of memory", 0);
}

static int is_named(void *name, const char *has, wq_queue *q)
{
	(void)q;
	return strcmp(has, name) == 0;
}

static struct wq__answer show(const struct wq__listing *l, const struct wq__query *q)
{
	return (struct wq__answer){.code = MHD_HTTP_OK, .r = l->r[q->list]};
}

/* False: no memory. */
static bool begin(struct wq__listings *ls, const char *name, const struct wq__query *q, int64_t now)
{
	ls->debt = wq__ration_take(&ls->ration, name, now);
	if (!ls->debt)
		return false;
	ls->began_ns = now;
	wq__walker_begin(&ls->walker, name, q);
	return true;
}

static void keep(struct wq__listings *ls, struct wq__listing *l)
{
	l->next = ls->first;
	ls->first = l;
	ls->n++;
	ls->bytes += l->bytes;
	make_room(ls);
}

bool wq__listings_collect(struct wq__listings *ls, int64_t now_ns)
{
	struct wq__walk *w = wq__walker_collect(&ls->walker);
	struct wq__listing *l = NULL;

	if (!w)
		return false;
	wq__ration_charge(&ls->ration, ls->debt, w->held_ns);
	ls->debt = NULL;
	if (w->rc == WQ_OK)
		l = listing_new(w);
	if (l) {
		l->taken_ns = ls->began_ns;
		l->ended_ns = now_ns;
		if (find(ls, w->name, &w->q))
			drop(ls, &ls->first);
		keep(ls, l);
	} else if (w->rc != WQ_ENOTFOUND) {
		ls->failed_ns = now_ns;
	}
	return true;
}

struct wq__answer wq__listings_ask(struct wq__listings *ls, const char *name,
                                   const struct wq__query *q, int64_t asked_ns, int64_t now_ns,
                                   bool patient)
{
	struct wq__listing *l = find(ls, name, q);
	int64_t wait_ns;

	if (wq_registry_each(ls->walker.registry, is_named, (void *)(uintptr_t)name) != 1) {
		if (l)
			drop(ls, &ls->first);
		return no_queue();
	}
	/* One that has come meanwhile will do, however long it took. */
	if (l && (now_ns - l->taken_ns < fresh_ns || l->ended_ns >= asked_ns))
		return show(l, q);
	if (ls->failed_ns >= asked_ns)
		return no_memory();
	wait_ns = wq__ration_wait(&ls->ration, name, now_ns);
	if (wait_ns == 0 && !ls->debt && !begin(ls, name, q, now_ns))
		return no_memory();
	if (wait_ns == 0 && patient)
		return (struct wq__answer){.wait = true};
	if (l)
		return show(l, q);
	return wq__answer_later(wait_ns > 0
	                            ? "the keys of this queue were listed too often recently"
	                            : "another listing is in progress",
	                        wait_ns);
}

int wq__listings_init(struct wq__listings *ls, wq_registry *r)
{
	*ls = (struct wq__listings){0};
	return wq__walker_init(&ls->walker, r);
}

void wq__listings_release(struct wq__listings *ls)
{
	wq__walker_release(&ls->walker);
	while (ls->first)
		drop(ls, &ls->first);
	free(ls->debt);
	wq__ration_release(&ls->ration);
}
