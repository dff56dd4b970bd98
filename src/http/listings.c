/*
 * A walk costs the queue's lock in proportion to its keys, so walks are rationed. Each leaves the
 * queue a debt of 250 times as long as it may have had the lock (bill.h); while that is more
 * than half a second away from being paid off, what is there is shown again, however old, and
 * what is not there is refused with 503. All walks of a queue so hold its lock for at most 0.4 %
 * of the time, whatever is asked for, by how many, and whatever else the machine does.
 */
#include "http/listings.h"

#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

#include "http/keys.h"

enum { RATION = 250, LISTINGS_MAX = 64, BYTES_MAX = 16 << 20 };

static const int64_t fresh_ns = WQ_SECOND;
static const int64_t ahead_ns = WQ_SECOND / 2;

/* All lists of one queue, limit and match. */
struct wq__listing {
	struct wq__listing *next;
	struct MHD_Response *r[WQ__LISTS];
	size_t bytes;
	int64_t taken_ns;
	unsigned limit;
	size_t match_len;
	char match[WQ__MATCH_MAX];
	char name[WQ__NAME_MAX + 1];
};

/* Forgotten when it is paid off. */
struct wq__debt {
	struct wq__debt *next;
	int64_t paid_ns; /* when */
	char name[WQ__NAME_MAX + 1];
};

/* ---- debts ------------------------------------------------------------------ */

static struct wq__debt *debt_of(struct wq__listings *ls, const char *name, int64_t now)
{
	struct wq__debt *found = NULL;

	for (struct wq__debt **at = &ls->debts; *at;) {
		struct wq__debt *d = *at;

		if (d->paid_ns <= now) {
			*at = d->next;
			free(d);
			continue;
		}
		if (strcmp(d->name, name) == 0)
			found = d;
		at = &d->next;
	}
	return found;
}

/* Made before the walk: one that could not be written down must not happen. */
static struct wq__debt *debt_open(struct wq__listings *ls, const char *name, int64_t now)
{
	struct wq__debt *d = debt_of(ls, name, now);

	if (d)
		return d;
	d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	memcpy(d->name, name, strlen(name) + 1);
	d->paid_ns = now;
	d->next = ls->debts;
	ls->debts = d;
	return d;
}

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

/* The first stays, whatever its size: it is about to be shown. */
static void make_room(struct wq__listings *ls)
{
	while (ls->first->next && (ls->n > LISTINGS_MAX || ls->bytes > BYTES_MAX)) {
		struct wq__listing **at = &ls->first->next;

		while ((*at)->next)
			at = &(*at)->next;
		drop(ls, at);
	}
}

static struct wq__listing *listing_new(const char *name, const struct wq__query *q,
                                       struct wq__text text[WQ__LISTS], int64_t now)
{
	struct wq__listing *l = calloc(1, sizeof *l);
	bool failed = !l;

	for (int i = 0; i < WQ__LISTS; i++) {
		if (failed) {
			wq__text_release(&text[i]);
			continue;
		}
		l->bytes += text[i].room;
		l->r[i] = wq__response_of(&text[i], WQ__TYPE_JSON);
		failed = !l->r[i];
	}
	if (failed) {
		if (l)
			listing_free(l);
		return NULL;
	}
	memcpy(l->name, name, strlen(name) + 1);
	l->limit = q->limit;
	l->match_len = q->match_len;
	memcpy(l->match, q->match, q->match_len);
	l->taken_ns = now;
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

static int is_named(void *name, const char *has, wq *q)
{
	(void)q;
	return strcmp(has, name) == 0;
}

static struct wq__answer show(const struct wq__listing *l, const struct wq__query *q)
{
	return (struct wq__answer){.code = MHD_HTTP_OK, .r = l->r[q->list]};
}

/* `old`, if there is one, is the first. */
static struct wq__answer take(struct wq__listings *ls, wq_registry *r, const char *name,
                              const struct wq__query *q, int64_t now, struct wq__listing *old)
{
	struct wq__text text[WQ__LISTS];
	struct wq__debt *d = debt_open(ls, name, now);
	struct wq__listing *l;
	int64_t held_ns = 0;
	int rc;

	if (!d)
		return no_memory();
	rc = wq__keys_take(r, name, q, text, &held_ns);
	d->paid_ns += RATION * held_ns;
	if (rc == WQ_ENOTFOUND)
		return no_queue();
	l = rc == WQ_OK ? listing_new(name, q, text, now) : NULL;
	if (!l)
		return no_memory();
	if (old)
		drop(ls, &ls->first);
	l->next = ls->first;
	ls->first = l;
	ls->n++;
	ls->bytes += l->bytes;
	make_room(ls);
	return show(l, q);
}

struct wq__answer wq__listings_ask(struct wq__listings *ls, wq_registry *r, const char *name,
                                   const struct wq__query *q, int64_t now_ns)
{
	struct wq__listing *l = find(ls, name, q);
	const struct wq__debt *d;

	if (l && now_ns - l->taken_ns < fresh_ns)
		return show(l, q);
	d = debt_of(ls, name, now_ns);
	if (!d || d->paid_ns - now_ns <= ahead_ns)
		return take(ls, r, name, q, now_ns, l);
	if (wq_registry_each(r, is_named, (void *)(uintptr_t)name) != 1)
		return no_queue();
	if (l)
		return show(l, q);
	return wq__answer_later("the queue has been looked through too often of late",
	                        d->paid_ns - now_ns - ahead_ns);
}

void wq__listings_release(struct wq__listings *ls)
{
	while (ls->first)
		drop(ls, &ls->first);
	while (ls->debts) {
		struct wq__debt *d = ls->debts;

		ls->debts = d->next;
		free(d);
	}
}
