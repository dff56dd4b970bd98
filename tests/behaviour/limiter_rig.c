#include "limiter_rig.h"

#include <inttypes.h>

int64_t when(wq_limiter *l, const char *key, int64_t now_ns)
{
	return wq_limiter_when(l, key, strlen(key), now_ns);
}

int64_t requeues(wq_limiter *l, const char *key)
{
	return wq_limiter_failures(l, key, strlen(key));
}

int forget(wq_limiter *l, const char *key)
{
	return wq_limiter_forget(l, key, strlen(key));
}

int give_back(wq_limiter *l, const char *key)
{
	return wq_limiter_give_back(l, key, strlen(key));
}

void delays_are(wq_limiter *l, const char *key, const int64_t *delays, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t d = when(l, key, 0);

		if (d != delays[i])
			fail_msg("delay %zu of \"%s\" is %" PRId64 ", not %" PRId64, i, key, d,
			         delays[i]);
	}
}

bool near(int64_t a, int64_t b)
{
	int64_t off = 2 + b / (INT64_C(1) << 50);

	return a == b || (a != WQ_NEVER && b != WQ_NEVER && a - b <= off && b - a <= off);
}

/* ---- a limiter of one's own -------------------------------------------------- */

static uint32_t *count_of(struct own *o, const void *key, size_t len)
{
	assert_int_equal(len, 1);
	o->last = *(const char *)key;
	assert_in_range(o->last, 0, LENGTH(o->count) - 1);
	return &o->count[(int)o->last];
}

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	struct own *o = ctx;

	o->whens++;
	o->now_ns = now_ns;
	++*count_of(o, key, len);
	return o->answer;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	struct own *o = ctx;

	o->forgets++;
	*count_of(o, key, len) = 0;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	return *count_of(ctx, key, len);
}

static void own_give_back(void *ctx, const void *key, size_t len)
{
	struct own *o = ctx;

	o->gives++;
	count_of(o, key, len);
}

static void own_free(void *ctx)
{
	((struct own *)ctx)->frees++;
}

wq_limiter_functions own_functions(struct own *o)
{
	return (wq_limiter_functions){
	    .when = own_when,
	    .forget = own_forget,
	    .failures = custom_failures,
	    .give_back = own_give_back,
	    .free = own_free,
	    .ctx = o,
	};
}

wq_limiter *own_limiter(struct own *o)
{
	wq_limiter_functions f = own_functions(o);

	return wq_limiter_custom(&f);
}
