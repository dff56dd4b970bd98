/* Limiters over others, the default one, and the user's own. */
#include "base/alloc.h"
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
	return wq__limiter_over(&max_of, parts, n);
}

wq_limiter *wq_limiter_max_wait(wq_limiter *part, int64_t max_ns)
{
	wq_limiter *l = wq__limiter_over(&max_wait, &part, 1);

	if (l->status < 0)
		return l;
	if (max_ns < 0) {
		wq__limiter_release(l);
		return wq__limiter_error(WQ_EINVAL);
	}
	l->u.max_wait_ns = max_ns;
	return l;
}

wq_limiter *wq_limiter_bounded(wq_limiter *part, int64_t idle_ns)
{
	wq_limiter *l = wq__limiter_over(&bounded, &part, 1);

	if (l->status < 0)
		return l;
	if (idle_ns <= 0) {
		wq__limiter_release(l);
		return wq__limiter_error(WQ_EINVAL);
	}
	if (idle_ns < l->idle_ns)
		l->idle_ns = idle_ns;
	return l;
}

wq_limiter *wq__limiter_default(const wq_allocator *a)
{
	wq_limiter *parts[] = {
	    wq__limiter_exponential(a, 5 * WQ_MILLISECOND, 1000 * WQ_SECOND),
	    wq__limiter_bucket(a, 10, 100),
	};

	return wq_limiter_max_of(parts, 2);
}

wq_limiter *wq_limiter_default(void)
{
	return wq__limiter_default(&wq__default_allocator);
}

/* ---- the user's own ------------------------------------------------------ */

static int64_t own_when(wq_limiter *l, const struct wq__subject *s)
{
	int64_t delay = l->u.own.when(l->u.own.ctx, s->key, s->len, s->now_ns);

	return delay > 0 ? delay : 0;
}

static void own_give_back(wq_limiter *l, const struct wq__subject *s)
{
	if (l->u.own.give_back)
		l->u.own.give_back(l->u.own.ctx, s->key, s->len);
}

static void own_forget(wq_limiter *l, const struct wq__subject *s)
{
	l->u.own.forget(l->u.own.ctx, s->key, s->len);
}

static void own_release(wq_limiter *l)
{
	if (l->u.own.free)
		l->u.own.free(l->u.own.ctx);
}

static const struct wq__limiter_kind own = {
    .when = own_when,
    .give_back = own_give_back,
    .forget = own_forget,
    .release = own_release,
};

wq_limiter *wq_limiter_own(const wq_limiter_functions *f)
{
	wq_limiter *l;

	if (!f)
		return wq__limiter_error(WQ_EINVAL);
	l = f->when && f->forget && f->num_requeues ? wq__limiter_new(&wq__default_allocator, &own)
	                                            : wq__limiter_error(WQ_EINVAL);
	/* What was handed over is ours even if there is no limiter to own it. */
	if (l->status < 0 && f->free)
		f->free(f->ctx);
	if (l->status < 0)
		return l;
	l->u.own = *f;
	l->asks = true;
	return l;
}
