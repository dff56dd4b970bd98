/*
 * Token buckets, one for all keys or one for each. Tokens are a fraction, as in
 * golang.org/x/time/rate, so that no rate is rounded; a count below 0 is what
 * has been promised. Time that goes back is taken as standing still: the bucket
 * keeps the latest time it has seen, so no stretch of time is counted twice.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "limit/limiter.h"

/* Nanoseconds that do not fit are never. */
static int64_t nanoseconds(double ns)
{
	return ns < 9.2e18 ? (int64_t)(ns + 0.5) : WQ_NEVER;
}

static double tokens_at(const wq_limiter *l, const struct wq__tokens *t, int64_t now_ns)
{
	double n = t->n;

	if (now_ns > t->last_ns)
		n += (double)(now_ns - t->last_ns) * l->u.bucket.per_ns;
	return n < l->u.bucket.burst ? n : l->u.bucket.burst;
}

/* Takes one token; none is taken that never comes. */
static int64_t reserve(wq_limiter *l, struct wq__tokens *t, int64_t now_ns)
{
	double n;

	l->u.bucket.reserved = false;
	if (wq__unlikely(l->u.bucket.token_ns == 0))
		return 0;
	n = tokens_at(l, t, now_ns) - 1;
	if (l->u.bucket.burst < 1 || (n < 0 && l->u.bucket.rate <= 0))
		return WQ_NEVER;
	t->n = n;
	if (now_ns > t->last_ns)
		t->last_ns = now_ns;
	l->u.bucket.reserved = true;
	/* From the latest time on, which is later than now if time has gone back. */
	return wq_time_add(t->last_ns - now_ns, n < 0 ? nanoseconds(-n * l->u.bucket.token_ns) : 0);
}

static void put_back(wq_limiter *l, struct wq__tokens *t)
{
	if (l->u.bucket.reserved)
		t->n += 1;
	l->u.bucket.reserved = false;
}

int64_t wq__bucket_pause(wq_limiter *l)
{
	l->u.bucket.reserved = false;
	if (l->u.bucket.token_ns == 0)
		return 0;
	return l->u.bucket.burst < 1 ? WQ_NEVER : nanoseconds(l->u.bucket.token_ns);
}

static int64_t shared_when(wq_limiter *l, const struct wq__subject *s)
{
	return reserve(l, &l->u.bucket.tokens, s->now_ns);
}

static void shared_give_back(wq_limiter *l, const struct wq__subject *s)
{
	(void)s;
	put_back(l, &l->u.bucket.tokens);
}

/*
 * A key's bucket, of which what is missing is kept: room that is all zero is a
 * full bucket.
 */
static struct wq__tokens load(const wq_limiter *l, const struct wq__subject *s)
{
	struct wq__tokens t = *(const struct wq__tokens *)wq__limiter_room_of(l, s);

	t.n = l->u.bucket.burst - t.n;
	return t;
}

static void store(const wq_limiter *l, const struct wq__subject *s, struct wq__tokens t)
{
	t.n = l->u.bucket.burst - t.n;
	*(struct wq__tokens *)wq__limiter_room_of(l, s) = t;
}

static int64_t keyed_when(wq_limiter *l, const struct wq__subject *s)
{
	struct wq__tokens t = load(l, s);
	int64_t delay = reserve(l, &t, s->now_ns);

	store(l, s, t);
	return delay;
}

static void keyed_give_back(wq_limiter *l, const struct wq__subject *s)
{
	struct wq__tokens t = load(l, s);

	put_back(l, &t);
	store(l, s, t);
}

static bool keyed_blank(const wq_limiter *l, const struct wq__subject *s)
{
	struct wq__tokens t = load(l, s);

	return tokens_at(l, &t, s->now_ns) >= l->u.bucket.burst;
}

static const struct wq__limiter_kind shared = {.when = shared_when, .give_back = shared_give_back};
static const struct wq__limiter_kind keyed = {.when = keyed_when,
                                              .give_back = keyed_give_back,
                                              .blank = keyed_blank};

static wq_limiter *make(const wq_allocator *a, const struct wq__limiter_kind *kind, const char *who,
                        double rate, int burst)
{
	wq_limiter *l;

	/* NaN is not >= 0 either. */
	if (!(rate >= 0))
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "%s: rate is %g: it must be 0 or more", who, rate));
	if (burst < 0)
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "%s: burst is %d, below 0", who, burst));
	l = wq__limiter_new(a, kind);
	if (l->status < 0)
		return l;
	l->u.bucket.rate = rate;
	l->u.bucket.burst = burst;
	l->u.bucket.per_ns = rate * 1e-9;
	l->u.bucket.token_ns = 1e9 / rate;
	l->u.bucket.tokens.n = burst;
	return l;
}

wq_limiter *wq__limiter_bucket(const wq_allocator *a, double rate, int burst)
{
	return make(a, &shared, "wq_limiter_bucket", rate, burst);
}

wq_limiter *wq_limiter_bucket(double rate, int burst)
{
	return wq__limiter_bucket(&wq__default_allocator, rate, burst);
}

wq_limiter *wq__limiter_keyed(const char *who, double rate, int burst)
{
	wq_limiter *l = make(&wq__default_allocator, &keyed, who, rate, burst);

	if (l->status >= 0)
		l->room = sizeof(struct wq__tokens);
	return l;
}

wq_limiter *wq_limiter_bucket_per_key(double rate, int burst)
{
	return wq__limiter_keyed("wq_limiter_bucket_per_key", rate, burst);
}
