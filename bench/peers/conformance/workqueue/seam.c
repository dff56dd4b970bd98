/* See seam.h. Each function hands on what it is given, and nothing more. */
#include "seam.h"

#include <string.h>

#include "_cgo_export.h"

static uint64_t number(const void *key)
{
	uint64_t n;

	memcpy(&n, key, sizeof n);
	return n;
}

static int64_t clock_now(void *ctx)
{
	return goNow((uintptr_t)ctx);
}

/* The queue is told of steps by wq_clock_changed(), so nothing has to be written down. */
static int clock_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	(void)ctx;
	(void)changed;
	(void)arg;
	(void)on;
	return WQ_OK;
}

static void order_push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)
	    where; /* keys are given back to the head by wq_requeue() alone, which Go does not have */
	goPush((uintptr_t)ctx, number(wq_node_key(node, NULL)), node);
}

static wq_node *order_pop(void *ctx)
{
	return goPop((uintptr_t)ctx);
}

static void order_touch(void *ctx, wq_node *node)
{
	goTouch((uintptr_t)ctx, number(wq_node_key(node, NULL)));
}

static void metrics_add(void *ctx, enum wq_metric metric, int64_t delta)
{
	goCount((uintptr_t)ctx, (int)metric, delta);
}

static void metrics_observe(void *ctx, enum wq_metric metric, int64_t ns)
{
	goObserve((uintptr_t)ctx, (int)metric, ns);
}

int seam_new(wq_queue **out, uintptr_t handle, unsigned parts, wq_limiter *limiter)
{
	void *ctx = (void *)handle;
	wq_clock clock = {.now = clock_now, .watch = clock_watch, .ctx = ctx};
	wq_order order = {.push = order_push, .pop = order_pop, .touch = order_touch, .ctx = ctx};
	wq_metrics_provider provider = {.add = metrics_add, .observe = metrics_observe, .ctx = ctx};

	return wq_new(out, &(wq_options){
			       .clock = parts & SEAM_CLOCK ? &clock : NULL,
			       .order = parts & SEAM_ORDER ? &order : NULL,
			       .provider = parts & SEAM_METRICS ? &provider : NULL,
			       /* Go's metrics know the queue's real name. */
			       .name = parts & SEAM_METRICS ? "go" : NULL,
			       .limiter = limiter,
			   });
}

int seam_add_after(wq_queue *q, uint64_t key, int64_t delay_ns)
{
	return wq_add_with(q, &key, sizeof key,
	                   &(wq_add_options){.after_ns = delay_ns, .policy = WQ_REMIND});
}

int seam_add_limited(wq_queue *q, uint64_t key)
{
	return wq_add_with(q, &key, sizeof key,
	                   &(wq_add_options){.limited = 1, .policy = WQ_REMIND});
}

static int64_t limiter_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)len;
	(void)now_ns; /* Go's limiters look at the time themselves */
	return goWhen((uintptr_t)ctx, number(key));
}

static void limiter_forget(void *ctx, const void *key, size_t len)
{
	(void)len;
	goForget((uintptr_t)ctx, number(key));
}

static uint32_t limiter_failures(void *ctx, const void *key, size_t len)
{
	(void)len;
	return goNumRequeues((uintptr_t)ctx, number(key));
}

static void limiter_free(void *ctx)
{
	goLetGo((uintptr_t)ctx);
}

wq_limiter *seam_limiter(uintptr_t handle)
{
	return wq_limiter_custom(&(wq_limiter_functions){
	    .when = limiter_when,
	    .forget = limiter_forget,
	    .failures = limiter_failures,
	    .free = limiter_free,
	    .ctx = (void *)handle,
	});
}

static int piece(void *ctx, size_t i)
{
	return goPiece((uintptr_t)ctx, i);
}

int64_t seam_parallel(size_t pieces, uintptr_t handle, uint32_t workers, size_t chunk)
{
	return wq_parallel(pieces, piece, (void *)handle,
	                   &(wq_parallel_options){.workers = workers, .chunk = chunk});
}
