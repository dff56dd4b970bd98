/* What all limiters share: life, ownership, and going through the parts. */
#include "limit/limiter.h"

#include <string.h>
#include <wq/engine.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "limit/memo.h"

/* ---- life ---------------------------------------------------------------- */

/* They hold nothing, are never freed, and may be taken any number of times. */
wq_limiter *wq__limiter_error(int status)
{
	static wq_limiter invalid = {.status = WQ_EINVAL};
	static wq_limiter busy = {.status = WQ_EBUSY};
	static wq_limiter no_memory = {.status = WQ_ENOMEM};

	return status == WQ_EINVAL ? &invalid : status == WQ_EBUSY ? &busy : &no_memory;
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

/* Why it was not taken. One that carries a status has said so when it was made. */
static int refuse(int status, const wq_limiter *l)
{
	if (!l)
		return wq__fail(status, "a limiter is NULL");
	return l->status < 0 ? status : wq__fail(status, "a limiter belongs to another already");
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

wq_limiter *wq__limiter_over(const struct wq__limiter_kind *kind, wq_limiter *const *parts,
                             size_t n)
{
	wq_limiter *l, *ours[WQ_PARTS_MAX] = {NULL};
	size_t nours = 0;
	int rc = parts && n > 0 ? WQ_OK : wq__fail(WQ_EINVAL, "there are no parts");
	uint32_t room = 0;

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
				              "there are %zu parts, more than WQ_PARTS_MAX", n);
		} else if (rc == WQ_OK) {
			rc = refuse(taken, parts[i]);
		}
	}
	if (rc == WQ_OK && room > WQ__LIMIT_ROOM_MAX)
		rc = wq__fail(WQ_EINVAL, "the parts keep %u bytes of a key, more than %d", room,
		              WQ__LIMIT_ROOM_MAX);
	l = rc < 0 ? wq__limiter_error(rc) : make(&ours[0]->allocator, kind, n);
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
		return refuse(rc, l);
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
