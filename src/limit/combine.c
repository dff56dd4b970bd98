/* Limiters over others, the default one, and custom. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "limit/limiter.h"

/* ---- max_of, max_wait, bounded ------------------------------------------- */

static int64_t longest(wq_limiter *l, const struct wq__subject *s)
{
	int64_t longest_ns = 0;

	for (uint32_t i = 0; i < l->nparts; i++) {
		int64_t delay = l->part[i]->kind->when(l->part[i], s);

		if (delay > longest_ns)
			longest_ns = delay;
	}
	return longest_ns;
}

static int64_t capped(wq_limiter *l, const struct wq__subject *s)
{
	int64_t delay = l->part[0]->kind->when(l->part[0], s);

	return delay < l->u.max_wait_ns ? delay : l->u.max_wait_ns;
}

static int64_t same(wq_limiter *l, const struct wq__subject *s)
{
	return l->part[0]->kind->when(l->part[0], s);
}

static const struct wq__limiter_kind max_of = {.when = longest};
static const struct wq__limiter_kind max_wait = {.when = capped};
static const struct wq__limiter_kind bounded = {.when = same};

wq_limiter *wq_limiter_max_of(wq_limiter *const *parts, size_t n)
{
	return wq__limiter_over(&max_of, "wq_limiter_max_of", parts, n);
}

wq_limiter *wq_limiter_max_wait(wq_limiter *part, int64_t max_ns)
{
	wq_limiter *l = wq__limiter_over(&max_wait, "wq_limiter_max_wait", &part, 1);

	if (l->status < 0)
		return l;
	if (max_ns < 0) {
		wq__limiter_release(l);
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "wq_limiter_max_wait: max_ns is negative"));
	}
	l->u.max_wait_ns = max_ns;
	return l;
}

wq_limiter *wq_limiter_bounded(wq_limiter *part, int64_t idle_ns)
{
	wq_limiter *l = wq__limiter_over(&bounded, "wq_limiter_bounded", &part, 1);

	if (l->status < 0)
		return l;
	if (idle_ns <= 0) {
		wq__limiter_release(l);
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "wq_limiter_bounded: idle_ns is %" PRId64 ", not above 0",
		             idle_ns));
	}
	if (idle_ns < l->idle_ns)
		l->idle_ns = idle_ns;
	return l;
}

wq_limiter *wq__limiter_default(const wq_allocator *a)
{
	return wq__limiter_exponential(a, 5 * WQ_MILLISECOND, 1000 * WQ_SECOND);
}

wq_limiter *wq_limiter_controller(void)
{
	wq_limiter *parts[] = {
	    wq__limiter_default(&wq__default_allocator),
	    wq__limiter_bucket(&wq__default_allocator, 10, 100),
	};

	return wq_limiter_max_of(parts, 2);
}

/* ---- custom ------------------------------------------------------ */

static int64_t custom_when(wq_limiter *l, const struct wq__subject *s)
{
	int64_t delay = l->u.custom.when(l->u.custom.ctx, s->key, s->len, s->now_ns);

	return delay > 0 ? delay : 0;
}

static void custom_give_back(wq_limiter *l, const struct wq__subject *s)
{
	if (l->u.custom.give_back)
		l->u.custom.give_back(l->u.custom.ctx, s->key, s->len);
}

static void custom_forget(wq_limiter *l, const struct wq__subject *s)
{
	l->u.custom.forget(l->u.custom.ctx, s->key, s->len);
}

static void custom_release(wq_limiter *l)
{
	if (l->u.custom.free)
		l->u.custom.free(l->u.custom.ctx);
}

static const struct wq__limiter_kind custom = {
    .when = custom_when,
    .give_back = custom_give_back,
    .forget = custom_forget,
    .release = custom_release,
};

static bool functions_good(const wq_limiter_functions *f)
{
	const char *missing = !f->when ? "when" : !f->forget ? "forget" : "failures";

	for (size_t i = 0; i < sizeof f->reserved / sizeof f->reserved[0]; i++)
		if (f->reserved[i] != 0)
			return wq__fail(WQ_EINVAL, "wq_limiter_custom: a reserved word of "
			                           "wq_limiter_functions is not zero") >= 0;
	if (f->when && f->forget && f->failures)
		return true;
	wq__fail_text("wq_limiter_custom: there is no function %s", missing);
	return false;
}

wq_limiter *wq_limiter_custom(const wq_limiter_functions *f)
{
	wq_limiter *l;

	if (!f)
		return wq__limiter_error(wq__fail(WQ_EINVAL, "wq_limiter_custom: f is NULL"));
	if (!functions_good(f))
		l = wq__limiter_error(WQ_EINVAL);
	else
		l = wq__limiter_new(&wq__default_allocator, &custom);
	/* What was handed over is ours even if there is no limiter to own it. */
	if (l->status < 0 && f->free)
		f->free(f->ctx);
	if (l->status < 0)
		return l;
	l->u.custom = *f;
	l->asks = true;
	return l;
}
