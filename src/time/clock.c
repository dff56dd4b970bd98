/*
 * The real clock, and one that moves when told to.
 *
 * The manual clock keeps a list of its queues under a lock of its own. That
 * lock is taken before a queue's lock (a step tells each of them), never after:
 * under a queue's lock only the time is read, which is an atomic.
 */
#include "time/clock.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <wq/status.h>

#include "base/fail.h"
#include "base/sync.h"

static int64_t real_now(void *ctx)
{
	(void)ctx;
	return wq__clock_now();
}

const wq_clock wq__clock_real = {.now = real_now};

int64_t wq__clock_deadline(const wq_clock *c, int64_t deadline_ns)
{
	if (c->now == real_now || deadline_ns == WQ_NEVER)
		return deadline_ns;
	/* A clock that moves in steps wakes the sleepers itself. */
	if (c->watch)
		return WQ_NEVER;
	return wq_time_add(wq__clock_now(), deadline_ns - c->now(c->ctx));
}

int64_t wq_clock_monotonic(void)
{
	return wq__clock_now();
}

int64_t wq_time_add(int64_t base_ns, int64_t delta_ns)
{
	int64_t sum;

	if (__builtin_add_overflow(base_ns, delta_ns, &sum))
		return delta_ns > 0 ? WQ_NEVER : 0;
	return sum < 0 ? 0 : sum;
}

int64_t wq__deadline_after(int64_t now_ns, int64_t timeout_ns)
{
	/* At the end of all times nothing is later, and every time has passed. */
	if (now_ns == WQ_NEVER && timeout_ns != WQ_NEVER)
		return WQ_NEVER - 1;
	return wq_time_add(now_ns, timeout_ns > 0 ? timeout_ns : 0);
}

/* Who is told of each step: one queue, say. */
struct watcher {
	void (*changed)(void *arg);
	void *arg;
};

struct wq_manual_clock {
	_Atomic int64_t now_ns; /* A: written under the lock */
	wq__lock lock;
	struct watcher *list; /* L */
	size_t n, cap;        /* L */
};

static int64_t manual_now(void *ctx)
{
	return wq_manual_clock_now(ctx);
}

static int add_watcher(wq_manual_clock *mc, struct watcher w)
{
	if (mc->n == mc->cap) {
		size_t cap = mc->cap ? mc->cap * 2 : 4;
		struct watcher *list = realloc(mc->list, cap * sizeof *list);

		if (!list)
			return WQ_ENOMEM;
		mc->list = list;
		mc->cap = cap;
	}
	mc->list[mc->n++] = w;
	return WQ_OK;
}

static void remove_watcher(wq_manual_clock *mc, const void *arg)
{
	for (size_t i = 0; i < mc->n; i++) {
		if (mc->list[i].arg == arg) {
			mc->list[i] = mc->list[--mc->n];
			return;
		}
	}
}

static int manual_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	wq_manual_clock *mc = ctx;
	int rc = WQ_OK;

	wq__lock_acquire(&mc->lock);
	if (on)
		rc = add_watcher(mc, (struct watcher){.changed = changed, .arg = arg});
	else
		remove_watcher(mc, arg);
	wq__lock_release(&mc->lock);
	return rc;
}

int wq_manual_clock_new(wq_manual_clock **out, int64_t start_ns)
{
	wq_manual_clock *mc;

	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	if (start_ns < 0)
		return wq__fail(WQ_EINVAL, "start_ns is negative");
	mc = calloc(1, sizeof *mc);
	if (!mc)
		return wq__fail_memory();
	atomic_init(&mc->now_ns, start_ns);
	wq__lock_init(&mc->lock);
	*out = mc;
	return WQ_OK;
}

int wq_manual_clock_free(wq_manual_clock *mc)
{
	size_t n;

	if (!mc)
		return WQ_OK;
	wq__lock_acquire(&mc->lock);
	n = mc->n;
	wq__lock_release(&mc->lock);
	if (n > 0)
		return wq__fail(WQ_EBUSY, "a queue, pool or timer uses the clock");
	wq__lock_end(&mc->lock);
	free(mc->list);
	free(mc);
	return WQ_OK;
}

wq_clock wq_manual_clock_clock(wq_manual_clock *mc)
{
	/* A clock without functions is refused by whoever takes it. */
	if (!mc)
		return (wq_clock){0};
	return (wq_clock){.now = manual_now, .watch = manual_watch, .ctx = mc};
}

int64_t wq_manual_clock_now(const wq_manual_clock *mc)
{
	if (!mc)
		return WQ_EINVAL;
	/* acquire: pairs with the release in step() */
	return atomic_load_explicit(&mc->now_ns, memory_order_acquire);
}

/* A sleeper reads the time under its queue's lock, which changed() takes: none is missed. */
static int step(wq_manual_clock *mc, int64_t by_ns, int64_t to_ns)
{
	int64_t now;
	bool forward;

	wq__lock_acquire(&mc->lock);
	now = wq_manual_clock_now(mc);
	if (to_ns < 0)
		to_ns = wq_time_add(now, by_ns);
	forward = to_ns >= now;
	if (forward) {
		atomic_store_explicit(&mc->now_ns, to_ns, memory_order_release);
		for (size_t i = 0; i < mc->n; i++)
			mc->list[i].changed(mc->list[i].arg);
	}
	wq__lock_release(&mc->lock);
	return forward ? WQ_OK
	               : wq__fail(WQ_EINVAL,
	                          "now_ns is %" PRId64 ", but the clock is at %" PRId64 " already",
	                          to_ns, now);
}

int wq_manual_clock_advance(wq_manual_clock *mc, int64_t by_ns)
{
	if (!mc || by_ns < 0)
		return wq__fail(WQ_EINVAL, "%s", mc ? "by_ns is negative" : "the clock is NULL");
	return step(mc, by_ns, -1);
}

int wq_manual_clock_set(wq_manual_clock *mc, int64_t now_ns)
{
	if (!mc || now_ns < 0)
		return wq__fail(WQ_EINVAL, "%s", mc ? "now_ns is negative" : "the clock is NULL");
	return step(mc, 0, now_ns);
}
