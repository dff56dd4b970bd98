#define _POSIX_C_SOURCE 200809L
#include "parts.h"

#include <stdlib.h>
#include <string.h>

/* The queue may rely on nothing in fresh memory, and on nothing it gave back. */
enum { FRESH = 0xA5, DEAD = 0xDB };

static void *books_alloc(void *ctx, size_t size, size_t align)
{
	struct books *b = ctx;
	void *p;

	if (size == 0 || align == 0 || (align & (align - 1)) != 0 || align > 65536)
		abort();
	if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
		return NULL;
	memset(p, FRESH, size);
	b->bytes += size;
	b->blocks++;
	return p;
}

static void books_free(void *ctx, void *p, size_t size)
{
	struct books *b = ctx;

	if (!p || size == 0 || size > b->bytes || b->blocks == 0)
		abort();
	memset(p, DEAD, size);
	b->bytes -= size;
	b->blocks--;
	free(p);
}

wq_allocator books_allocator(struct books *b)
{
	*b = (struct books){0};
	return (wq_allocator){.alloc = books_alloc, .free = books_free, .ctx = b};
}

/* ---- orders: link[0] is the next node, link[1] the one before ------------- */

struct room {
	uint64_t touches;
};

static void insert(struct line *l, wq_node *n, enum wq_where where)
{
	n->link[0] = where == WQ_HEAD ? l->head : NULL;
	n->link[1] = where == WQ_HEAD ? NULL : l->tail;
	if (n->link[0])
		((wq_node *)n->link[0])->link[1] = n;
	else
		l->tail = n;
	if (n->link[1])
		((wq_node *)n->link[1])->link[0] = n;
	else
		l->head = n;
}

static void unlink_node(struct line *l, wq_node *n)
{
	wq_node *next = n->link[0], *prev = n->link[1];

	if (next)
		next->link[1] = prev;
	else
		l->tail = prev;
	if (prev)
		prev->link[0] = next;
	else
		l->head = next;
	/* The links are nobody's now: the queue must not have put its own there. */
	memset(n->link, DEAD, sizeof n->link);
}

static void check_node(wq_node *n)
{
	size_t len = 0;
	const char *key = wq_node_key(n, &len);

	if (!key || key[len] != '\0' || wq_node_added_ns(n) < 0)
		abort();
}

static void lifo_push(void *ctx, wq_node *n, enum wq_where where)
{
	(void)where;
	check_node(n);
	insert(ctx, n, WQ_HEAD);
}

static wq_node *lifo_pop(void *ctx)
{
	struct line *l = ctx;
	wq_node *n = l->head;

	if (!n)
		abort();
	unlink_node(l, n);
	return n;
}

static void busiest_push(void *ctx, wq_node *n, enum wq_where where)
{
	check_node(n);
	insert(ctx, n, where);
}

static uint64_t touches(wq_node *n)
{
	return ((struct room *)wq_node_room(n))->touches;
}

static wq_node *busiest_pop(void *ctx)
{
	struct line *l = ctx;
	wq_node *best = l->head;

	if (!best)
		abort();
	for (wq_node *n = best->link[0]; n; n = n->link[0])
		if (touches(n) > touches(best))
			best = n;
	unlink_node(l, best);
	return best;
}

static void busiest_touch(void *ctx, wq_node *n)
{
	(void)ctx;
	check_node(n);
	((struct room *)wq_node_room(n))->touches++;
}

static void busiest_remove(void *ctx, wq_node *n)
{
	unlink_node(ctx, n);
}

static void line_free(void *ctx)
{
	struct line *l = ctx;

	l->freed++;
}

wq_order line_order(struct line *l, enum model_order order)
{
	*l = (struct line){0};
	if (order == MODEL_LIFO)
		return (wq_order){.push = lifo_push, .pop = lifo_pop, .free = line_free, .ctx = l};
	return (wq_order){
	    .push = busiest_push,
	    .pop = busiest_pop,
	    .touch = busiest_touch,
	    .remove = busiest_remove,
	    .free = line_free,
	    .ctx = l,
	    .room = sizeof(struct room),
	};
}

/* ---- limiters ------------------------------------------------------------ */

enum { PLAIN_KINDS = 4, BUCKET = 4, PER_KEY = 6 };

/* Powers of two, so that delays meet; buckets and chance come last. */
static wq_limiter *limiter_of(unsigned kind)
{
	wq_limiter *doubling = wq_limiter_exponential(1 << 20, INT64_C(1) << 34), *parts[2];

	parts[0] = doubling;
	switch (kind) {
	case 0:
		return doubling;
	case 1:
		wq_limiter_free(doubling);
		return wq_limiter_fast_slow(0, 1 << 22, 2);
	case 2:
		parts[1] = wq_limiter_fast_slow(3 << 20, 1 << 30, 1);
		return wq_limiter_max_of(parts, 2);
	case 3:
		return wq_limiter_max_wait(doubling, 5 << 20);
	case BUCKET:
		wq_limiter_free(doubling);
		return wq_limiter_bucket(700, 3);
	case 5:
		parts[1] = wq_limiter_bucket(150, 4);
		return wq_limiter_max_of(parts, 2);
	case PER_KEY:
		parts[1] = wq_limiter_bucket_per_key(300, 2);
		return wq_limiter_max_of(parts, 2);
	default:
		wq_limiter_free(doubling);
		return wq_limiter_jittered(1 << 20, INT64_C(1) << 34, WQ_JITTER_DECORRELATED, 7);
	}
}

/* A limiter of one's own that asks another. */
static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	return wq_limiter_when(ctx, key, len, now_ns);
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	wq_limiter_forget(ctx, key, len);
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	return (uint32_t)wq_limiter_failures(ctx, key, len);
}

static void own_give_back(void *ctx, const void *key, size_t len)
{
	wq_limiter_give_back(ctx, key, len);
}

static void own_free(void *ctx)
{
	if (wq_limiter_free(ctx) != WQ_OK)
		abort();
}

wq_limiter *limits_make(unsigned b, bool plain, struct model_limits *model)
{
	static const uint32_t most[] = {0, 0, 1, 3};
	unsigned kind = plain ? b % PLAIN_KINDS : b % 8;
	bool own = !plain && b & 0x40;
	wq_limiter *l = limiter_of(kind);

	*model = (struct model_limits){
	    .limiter = limiter_of(kind),
	    /* A key's bucket would be forgotten with the key. */
	    .idle_ns = b & 8 && kind != PER_KEY ? WQ_SECOND : 0,
	    .max_attempts = kind == BUCKET ? 0 : most[b >> 4 & 3],
	    .keeps = kind == PER_KEY,
	    .exact = plain,
	};
	if (own)
		l = wq_limiter_custom(&(wq_limiter_functions){
		    .when = own_when,
		    .forget = own_forget,
		    .failures = custom_failures,
		    .give_back = own_give_back,
		    .free = own_free,
		    .ctx = l,
		});
	return model->idle_ns > 0 ? wq_limiter_bounded(l, model->idle_ns) : l;
}
