/* What all limiters share: life, ownership, and going through the parts. */
#include "limit/limiter.h"

#include <stdio.h>
#include <string.h>
#include <wq/engine.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "limit/memo.h"

/* ---- life ---------------------------------------------------------------- */

/*
 * Limiters that carry an error. They hold nothing, are never freed, and may be taken any number of
 * times. Those with WQ_EINVAL differ in their number, by which the thread that made one finds its
 * reason again. There are as many as one limiter may have components; then the oldest text goes.
 */
#define INVALID(number) (&(wq_limiter){.status = WQ_EINVAL, .room_at = (number)})

static wq_limiter *const invalid[WQ_PARTS_MAX] = {
    INVALID(0), INVALID(1), INVALID(2), INVALID(3), INVALID(4), INVALID(5), INVALID(6), INVALID(7),
};

static _Thread_local struct {
	char text[WQ_PARTS_MAX][128]; /* "": made by another thread, or not at all */
	uint32_t next;
} reasons;

wq_limiter *wq__limiter_error(int status)
{
	static wq_limiter busy = {.status = WQ_EBUSY};
	static wq_limiter no_memory = {.status = WQ_ENOMEM};
	uint32_t i = reasons.next % WQ_PARTS_MAX;

	if (status != WQ_EINVAL)
		return status == WQ_EBUSY ? &busy : &no_memory;
	strncpy(reasons.text[i], wq_last_error(), sizeof reasons.text[i] - 1);
	reasons.next++;
	return invalid[i];
}

/* Why its constructor failed, although others may have failed since. */
static wq__cold void tell(const wq_limiter *l)
{
	if (l->status == WQ_ENOMEM)
		wq__fail_text("out of memory");
	else if (l->status == WQ_EBUSY)
		wq__fail_text("a component belongs to another limiter or queue already");
	else if (reasons.text[l->room_at][0])
		wq__fail_text("%s", reasons.text[l->room_at]);
}

static size_t size_of(size_t nparts)
{
	return sizeof(wq_limiter) + nparts * sizeof(wq_limiter *);
}

static wq_limiter *make(const wq_allocator *a, const struct wq__limiter_kind *kind, size_t nparts)
{
	wq_limiter *l = wq__alloc(a, size_of(nparts), 8);

	if (!l)
		return wq__limiter_error(wq__fail_memory());
	memset(l, 0, size_of(nparts));
	l->kind = kind;
	l->forgets = kind->forget != NULL;
	l->gives_back = kind->give_back != NULL;
	l->idle_ns = WQ_NEVER;
	l->allocator = *a;
	wq__lock_init_own(&l->lock);
	l->nparts = (uint32_t)nparts;
	return l;
}

wq_limiter *wq__limiter_new(const wq_allocator *a, const struct wq__limiter_kind *kind)
{
	return make(a, kind, 0);
}

int wq_limiter_status(const wq_limiter *l)
{
	return l ? l->status : WQ_ENOMEM;
}

/* Its status; or another has it. Taken from here on. */
static int take(wq_limiter *l)
{
	int rc = wq_limiter_status(l);

	if (rc < 0)
		return rc;
	if (l->given)
		return WQ_EBUSY;
	l->given = true;
	return WQ_OK;
}

/* Why it was not taken. */
static wq__cold int refuse(int status, const wq_limiter *l, const char *what)
{
	if (!l)
		return wq__fail(status, "%s is NULL", what);
	if (l->status == WQ_OK)
		return wq__fail(status, "%s belongs to another limiter or queue already", what);
	tell(l);
	return status;
}

static int check_parts(const char *who, wq_limiter *const *parts, size_t n)
{
	if (!parts)
		return wq__fail(WQ_EINVAL, "%s: parts is NULL", who);
	return n > 0 ? WQ_OK : wq__fail(WQ_EINVAL, "%s: there are no components: n is 0", who);
}

static void adopt(wq_limiter *l, wq_limiter *part)
{
	l->counts |= part->counts;
	l->asks |= part->asks;
	l->forgets |= part->forgets;
	l->gives_back |= part->gives_back;
	if (part->idle_ns < l->idle_ns)
		l->idle_ns = part->idle_ns;
	/* It has no keys of its own any more. */
	wq__memo_free(part->memo, &part->allocator);
	part->memo = NULL;
}

wq_limiter *wq__limiter_over(const struct wq__limiter_kind *kind, const char *who,
                             wq_limiter *const *parts, size_t n)
{
	wq_limiter *l, *bad = NULL, *ours[WQ_PARTS_MAX] = {NULL};
	size_t nours = 0;
	int rc = check_parts(who, parts, n);
	uint32_t room = 0;
	char what[64];

	/* All are taken, whatever becomes of the first error. */
	for (size_t i = 0; parts && i < n; i++) {
		int taken = take(parts[i]);

		if (taken == WQ_OK && nours < WQ_PARTS_MAX) {
			ours[nours++] = parts[i];
			room += wq__limiter_room(parts[i]);
		} else if (taken == WQ_OK) {
			wq__limiter_release(parts[i]);
			if (rc == WQ_OK)
				rc = wq__fail(WQ_EINVAL,
				              "%s: there are %zu components, more than "
				              "WQ_PARTS_MAX",
				              who, n);
		} else if (rc == WQ_OK) {
			snprintf(what, sizeof what, "%s: a component", who);
			rc = refuse(taken, parts[i], what);
			/* One that carries an error goes on to the top, with its reason. */
			bad = parts[i] && parts[i]->status < 0 ? parts[i] : NULL;
		}
	}
	if (rc == WQ_OK && room > WQ__LIMIT_ROOM_MAX)
		rc = wq__fail(WQ_EINVAL, "%s: the components keep %u bytes of a key, more than %d",
		              who, room, WQ__LIMIT_ROOM_MAX);
	if (rc < 0)
		l = bad ? bad : wq__limiter_error(rc);
	else
		l = make(&ours[0]->allocator, kind, n);
	for (size_t i = 0; i < nours; i++) {
		if (l->status < 0) {
			wq__limiter_release(ours[i]);
			continue;
		}
		l->part[i] = ours[i];
		adopt(l, ours[i]);
	}
	return l;
}

void wq__limiter_release(wq_limiter *l)
{
	for (uint32_t i = 0; i < l->nparts; i++)
		wq__limiter_release(l->part[i]);
	if (l->kind->release)
		l->kind->release(l);
	wq__memo_free(l->memo, &l->allocator);
	wq__lock_end(&l->lock);

	wq_allocator a = l->allocator;

	wq__free(&a, l, size_of(l->nparts));
}

int wq_limiter_free(wq_limiter *l)
{
	if (wq_limiter_status(l) < 0)
		return WQ_OK;
	if (l->given)
		return WQ_EBUSY;
	wq__limiter_release(l);
	return WQ_OK;
}

static uint32_t lay_out(wq_limiter *l, uint32_t at)
{
	l->room_at = at;
	at += l->room;
	for (uint32_t i = 0; i < l->nparts; i++)
		at = lay_out(l->part[i], at);
	return at;
}

uint32_t wq__limiter_lay_out(wq_limiter *l)
{
	return lay_out(l, 0);
}

uint32_t wq__limiter_room(const wq_limiter *l)
{
	uint32_t room = l->room;

	for (uint32_t i = 0; i < l->nparts; i++)
		room += wq__limiter_room(l->part[i]);
	return room;
}

int wq__limiter_take(wq_limiter *l)
{
	int rc = take(l);

	if (rc < 0)
		return refuse(rc, l, "the limiter");
	wq__limiter_lay_out(l);
	wq__memo_free(l->memo, &l->allocator);
	l->memo = NULL;
	return WQ_OK;
}

/* ---- going through the parts --------------------------------------------- */

int64_t wq__limiter_when(wq_limiter *l, struct wq__subject *s)
{
	int64_t delay = l->kind->when(l, s);

	s->failures += l->counts && s->failures < WQ_FAILURES_MAX;
	return delay;
}

int64_t wq_engine_ask(wq_limiter *l, const void *key, size_t len, int64_t now_ns,
                      uint32_t *failures)
{
	struct wq__subject s = {.key = key, .len = len, .now_ns = now_ns};
	int64_t delay;

	if (!l || !failures || *failures > WQ_FAILURES_MAX)
		return WQ_EINVAL;
	if (l->status < 0)
		return l->status;
	if (wq__limiter_room(l) > 0)
		return WQ_ENOTSUP;
	s.failures = *failures;
	delay = wq__limiter_when(l, &s);
	*failures = s.failures;
	return delay;
}

void wq__limiter_give_back(wq_limiter *l, const struct wq__subject *s)
{
	if (l->kind->give_back)
		l->kind->give_back(l, s);
	for (uint32_t i = 0; i < l->nparts; i++)
		if (l->part[i]->gives_back)
			wq__limiter_give_back(l->part[i], s);
}

static void forget_parts(wq_limiter *l, const struct wq__subject *s)
{
	if (l->kind->forget)
		l->kind->forget(l, s);
	for (uint32_t i = 0; i < l->nparts; i++)
		forget_parts(l->part[i], s);
}

void wq__limiter_forget(wq_limiter *l, struct wq__subject *s)
{
	s->failures = 0;
	if (l->forgets)
		forget_parts(l, s);
}

size_t wq__limiter_size(const wq_limiter *l)
{
	size_t n = l->kind->size ? l->kind->size(l) : 0;

	for (uint32_t i = 0; i < l->nparts; i++)
		n += wq__limiter_size(l->part[i]);
	return n;
}

bool wq__limiter_numbers(const wq_limiter *l)
{
	return l->counts || l->asks;
}

static uint32_t most_asked(const wq_limiter *l, const struct wq__subject *s)
{
	uint32_t most = 0;

	if (l->nparts == 0)
		return l->u.custom.failures(l->u.custom.ctx, s->key, s->len);
	for (uint32_t i = 0; i < l->nparts; i++) {
		uint32_t n = l->part[i]->asks ? most_asked(l->part[i], s) : 0;

		most = n > most ? n : most;
	}
	return most;
}

uint32_t wq__limiter_failures(const wq_limiter *l, const struct wq__subject *s)
{
	uint32_t asked = l->asks ? most_asked(l, s) : 0;

	/* One more is an attempt, and must not wrap. */
	if (asked == UINT32_MAX)
		asked--;
	return asked > s->failures ? asked : s->failures;
}

static bool parts_blank(const wq_limiter *l, const struct wq__subject *s)
{
	if (l->kind->blank && !l->kind->blank(l, s))
		return false;
	for (uint32_t i = 0; i < l->nparts; i++)
		if (!parts_blank(l->part[i], s))
			return false;
	return true;
}

bool wq__limiter_blank(const wq_limiter *l, const struct wq__subject *s)
{
	if (s->failures > 0 || !parts_blank(l, s))
		return false;
	/* The user's own limiter keeps its own count, of which only a bound has to be reminded. */
	return !l->asks || l->idle_ns == WQ_NEVER || most_asked(l, s) == 0;
}
