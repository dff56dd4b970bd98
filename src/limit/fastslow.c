/* Fast the first times, slow from then on. */
#include "base/alloc.h"
#include "base/fail.h"
#include "limit/limiter.h"

static int64_t fast_slow_when(wq_limiter *l, const struct wq__subject *s)
{
	return s->failures < l->u.fast_slow.nfast ? l->u.fast_slow.fast_ns : l->u.fast_slow.slow_ns;
}

static const struct wq__limiter_kind fast_slow = {.when = fast_slow_when};

wq_limiter *wq_limiter_fast_slow(int64_t fast_ns, int64_t slow_ns, uint32_t nfast)
{
	wq_limiter *l;

	if (fast_ns < 0 || slow_ns < 0)
		return wq__limiter_error(wq__fail(WQ_EINVAL, "wq_limiter_fast_slow: %s is negative",
		                                  fast_ns < 0 ? "fast_ns" : "slow_ns"));
	l = wq__limiter_new(&wq__default_allocator, &fast_slow);
	if (l->status < 0)
		return l;
	l->counts = true;
	l->u.fast_slow.fast_ns = fast_ns;
	l->u.fast_slow.slow_ns = slow_ns;
	l->u.fast_slow.nfast = nfast;
	return l;
}
