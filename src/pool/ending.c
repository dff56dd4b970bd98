/* Ending a pool: stop, drain, free. */
#include "base/alloc.h"
#include "base/bug.h"
#include "base/fail.h"
#include "pool/pool.h"
#include "time/clock.h"

/* A stopper stays in the list until it has the lock again. */
void wq__pool_release_stoppers(wq_pool *p)
{
	for (struct wq__pool_stopper *s = p->stoppers; s; s = s->next) {
		if (wq__parker_set(&s->parker))
			wq__parker_wake(&s->parker);
		if (WQ__BUG(POOL_STOP_WAKES_ONE))
			return;
	}
}

static void clock_moved(void *arg)
{
	wq_pool *p = arg;

	/* The clock may be used in the child of a fork, where nobody waits. */
	if (p->forked)
		return;
	wq__lock_acquire(&p->lock);
	wq__pool_release_stoppers(p);
	wq__lock_release(&p->lock);
}

/* For a clock that is not watched, and whose owner says so; the timer watches by itself. */
void wq__pool_clock_changed(struct wq__pool_link *link)
{
	wq_pool *p = wq__container_of(link, wq_pool, link);

	clock_moved(p);
	if (p->timer)
		wq_timer_clock_changed(p->timer);
}

int wq__pool_watch_clock(wq_pool *p)
{
	const wq_clock *c = &p->q->clock;
	int rc = c->watch ? c->watch(c->ctx, clock_moved, p, 1) : WQ_OK;

	p->clock_watched = c->watch && rc == WQ_OK;
	return rc < 0 ? wq__fail(rc, "the clock cannot be watched: %s", wq_strerror(rc)) : rc;
}

/* Sleep until something has changed, or until the deadline. The lock is held before and after. */
static void await_change(wq_pool *p, int64_t deadline_ns)
{
	struct wq__pool_stopper s = {.next = p->stoppers};

	wq__parker_init(&s.parker);
	if (p->stoppers)
		p->stoppers->prev = &s;
	/* cppcheck-suppress autoVariables ; it is taken off before this call returns */
	p->stoppers = &s;
	wq__lock_release(&p->lock);
	wq__parker_sleep(&s.parker, wq__clock_deadline(&p->q->clock, deadline_ns));
	wq__lock_acquire(&p->lock);
	if (s.prev)
		s.prev->next = s.next;
	else
		p->stoppers = s.next;
	if (s.next)
		s.next->prev = s.prev;
}

static bool is_mine(const wq_pool *p)
{
	const struct wq__handling *h = *wq__self();

	return h && h->pool == p;
}

int wq_pool_stop_until(wq_pool *p, int64_t deadline_ns)
{
	int rc = WQ_OK;

	if (!p || deadline_ns < 0)
		return WQ_EINVAL;
	if (p->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&p->lock);
	if (!p->stopped) {
		p->stopped = true;
		wq__pool_changed(p);
	}
	if (is_mine(p))
		rc = WQ_EDEADLK;
	while (rc == WQ_OK && p->nthreads > 0) {
		if (deadline_ns != WQ_NEVER && wq_now(p->q) >= deadline_ns)
			rc = WQ_ETIMEDOUT;
		else
			await_change(p, deadline_ns);
	}
	wq__pool_reap(p);
	wq__lock_release(&p->lock);
	return rc;
}

int wq_pool_stop_for(wq_pool *p, int64_t timeout_ns)
{
	if (!p)
		return WQ_EINVAL;
	return wq_pool_stop_until(p, wq__deadline_after(wq_now(p->q), timeout_ns));
}

int wq_pool_drain_until(wq_pool *p, int64_t deadline_ns, const wq_drain_options *options,
                        wq_report *report)
{
	int drained, stopped;

	if (!p)
		return wq__fail(WQ_EINVAL, "the pool is NULL");
	if (p->forked)
		return WQ_EFORKED;
	drained = wq_drain_until(p->q, deadline_ns, options, report);
	/* Nothing was begun: a bad argument, or it would wait for itself. */
	if (drained == WQ_EINVAL || drained == WQ_EDEADLK)
		return drained;
	stopped = wq_pool_stop_until(p, deadline_ns);
	return drained < 0 || stopped == WQ_OK ? drained : stopped;
}

int wq_pool_drain_for(wq_pool *p, int64_t timeout_ns, const wq_drain_options *options,
                      wq_report *report)
{
	if (!p)
		return wq__fail(WQ_EINVAL, "the pool is NULL");
	return wq_pool_drain_until(p, wq__deadline_after(wq_now(p->q), timeout_ns), options,
	                           report);
}

int wq_pool_free(wq_pool *p)
{
	if (!p)
		return WQ_OK;
	/* The workers are not here, and what they guard may be half changed: it stays. */
	if (p->forked)
		return WQ_OK;
	if (is_mine(p))
		return WQ_EDEADLK;
	wq_pool_stop_until(p, WQ_NEVER);
	/* Nobody comes by the queue any more; one whose start has failed never could. */
	if (p->link.resume)
		wq__pool_leave(p->q, &p->link);
	if (p->clock_watched)
		p->q->clock.watch(p->q->clock.ctx, clock_moved, p, 0);
	wq__slow_stop(p);
	wq__fork_leave(&p->fork);
	wq__lock_end(&p->lock);

	wq_allocator a = p->allocator;

	wq__free(&a, p, sizeof *p);
	return WQ_OK;
}
