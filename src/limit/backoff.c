/*
 * base * 2^failures, as it is or scattered. Decorrelated jitter grows from the
 * key's last delay instead of from its failures, so it keeps that for each key.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "limit/limiter.h"

static int64_t doubled(const wq_limiter *l, uint32_t failures)
{
	int64_t base = l->u.backoff.base_ns, max = l->u.backoff.max_ns;

	return failures < 63 && base <= max >> failures ? base << failures : max;
}

/* From low to high, both included. */
static int64_t between(wq_limiter *l, int64_t low, int64_t high)
{
	uint64_t span = (uint64_t)(high - low) + 1;

	return low + (int64_t)(wq__random_next(&l->u.backoff.random) % span);
}

static int64_t plain_when(wq_limiter *l, const struct wq__subject *s)
{
	return doubled(l, s->failures);
}

static int64_t full_when(wq_limiter *l, const struct wq__subject *s)
{
	return between(l, 0, doubled(l, s->failures));
}

static int64_t equal_when(wq_limiter *l, const struct wq__subject *s)
{
	int64_t delay = doubled(l, s->failures);

	return between(l, delay / 2, delay);
}

static int64_t decorrelated_when(wq_limiter *l, const struct wq__subject *s)
{
	int64_t *last = wq__limiter_room_of(l, s), base = l->u.backoff.base_ns;
	int64_t max = l->u.backoff.max_ns, from = *last > 0 ? *last : base;

	*last = between(l, base, from <= max / 3 ? from * 3 : max);
	return *last;
}

static void decorrelated_forget(wq_limiter *l, const struct wq__subject *s)
{
	*(int64_t *)wq__limiter_room_of(l, s) = 0;
}

static const struct wq__limiter_kind plain = {.when = plain_when};
static const struct wq__limiter_kind full = {.when = full_when};
static const struct wq__limiter_kind equal = {.when = equal_when};
static const struct wq__limiter_kind decorrelated = {.when = decorrelated_when,
                                                     .forget = decorrelated_forget};

static wq_limiter *make(const wq_allocator *a, const struct wq__limiter_kind *kind, const char *who,
                        int64_t base_ns, int64_t max_ns)
{
	wq_limiter *l;

	if (base_ns <= 0)
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "%s: base_ns is %" PRId64 ", not above 0", who, base_ns));
	if (max_ns < base_ns)
		return wq__limiter_error(wq__fail(WQ_EINVAL,
		                                  "%s: max_ns is %" PRId64
		                                  ", less than base_ns, which is %" PRId64,
		                                  who, max_ns, base_ns));
	l = wq__limiter_new(a, kind);
	if (l->status < 0)
		return l;
	l->counts = true;
	l->u.backoff.base_ns = base_ns;
	l->u.backoff.max_ns = max_ns;
	return l;
}

wq_limiter *wq__limiter_exponential(const wq_allocator *a, int64_t base_ns, int64_t max_ns)
{
	return make(a, &plain, "wq_limiter_exponential", base_ns, max_ns);
}

wq_limiter *wq_limiter_exponential(int64_t base_ns, int64_t max_ns)
{
	return wq__limiter_exponential(&wq__default_allocator, base_ns, max_ns);
}

wq_limiter *wq_limiter_jittered(int64_t base_ns, int64_t max_ns, enum wq_jitter jitter,
                                uint64_t seed)
{
	static const struct wq__limiter_kind *const kinds[] = {
	    [WQ_JITTER_NONE] = &plain,
	    [WQ_JITTER_FULL] = &full,
	    [WQ_JITTER_EQUAL] = &equal,
	    [WQ_JITTER_DECORRELATED] = &decorrelated,
	};
	static const char who[] = "wq_limiter_jittered";
	wq_limiter *l;

	if ((unsigned)jitter >= sizeof kinds / sizeof kinds[0])
		return wq__limiter_error(wq__fail(WQ_EINVAL,
		                                  "%s: jitter is %u: there is no such jitter", who,
		                                  (unsigned)jitter));
	l = make(&wq__default_allocator, kinds[jitter], who, base_ns, max_ns);
	if (l->status < 0)
		return l;
	l->u.backoff.random = wq__random_seed(seed);
	if (jitter == WQ_JITTER_DECORRELATED)
		l->room = sizeof(int64_t);
	return l;
}

wq_limiter *wq_limiter_item_based(void)
{
	return wq_limiter_exponential(WQ_MILLISECOND, 1000 * WQ_SECOND);
}
