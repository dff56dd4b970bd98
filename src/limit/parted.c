/*
 * A token bucket for each part of a key: what stands before its n-th separator. Buckets of parts
 * are those of a limiter for each key, which knows parts as its keys; it is no part of the tree,
 * as it is never asked about whole keys.
 */
#include <wq/queue.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/part.h"
#include "limit/memo.h"

static size_t part_len(const wq_limiter *l, const struct wq__subject *s)
{
	return wq__part_len(s->key, s->len, l->u.parted.separator, l->u.parted.n);
}

static int64_t parted_when(wq_limiter *l, const struct wq__subject *s)
{
	wq_limiter *b = l->u.parted.buckets;
	struct wq__note *n;

	wq__memo_trim(b->memo, b, s->now_ns);
	n = wq__memo_open(b->memo, b, s->key, part_len(l, s), s->now_ns);
	if (!n)
		return wq__bucket_pause(b);

	struct wq__subject part = wq__note_subject(n, s->now_ns);
	int64_t delay = wq__limiter_when(b, &part);

	wq__memo_close(b->memo, n, b, &part);
	return delay;
}

static void parted_give_back(wq_limiter *l, const struct wq__subject *s)
{
	wq_limiter *b = l->u.parted.buckets;
	struct wq__note *n = wq__memo_find(b->memo, b, s->key, part_len(l, s));

	if (!n)
		return;

	struct wq__subject part = wq__note_subject(n, wq__memo_now(b->memo));

	wq__limiter_give_back(b, &part);
	wq__memo_close(b->memo, n, b, &part);
}

static size_t parted_size(const wq_limiter *l)
{
	return wq__memo_size(l->u.parted.buckets->memo);
}

static void parted_release(wq_limiter *l)
{
	wq__limiter_release(l->u.parted.buckets);
}

static const struct wq__limiter_kind parted = {
    .when = parted_when,
    .give_back = parted_give_back,
    .size = parted_size,
    .release = parted_release,
};

wq_limiter *wq_limiter_bucket_per_part(double rate, int burst, char separator, unsigned n)
{
	static const char who[] = "wq_limiter_bucket_per_part";
	wq_limiter *l, *b;

	if (n == 0)
		return wq__limiter_error(
		    wq__fail(WQ_EINVAL, "%s: n is 0: a part ends at a separator", who));
	b = wq__limiter_keyed(who, rate, burst);
	if (b->status < 0)
		return b;
	wq__limiter_lay_out(b);
	b->memo = wq__memo_new(&b->allocator);
	l = b->memo ? wq__limiter_new(&wq__default_allocator, &parted)
	            : wq__limiter_error(wq__fail_memory());
	if (l->status < 0) {
		wq__limiter_release(b);
		return l;
	}
	l->u.parted.buckets = b;
	l->u.parted.n = n;
	l->u.parted.separator = separator;
	return l;
}
