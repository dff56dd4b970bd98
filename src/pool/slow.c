/*
 * Reports handlers that take longer than they may. A timer of the pool's looks
 * at all workers, and next when the first of them is due, or after a whole
 * limit: whoever begins after a look cannot be slow before that. So reports
 * come in time though workers set no timers.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "pool/pool.h"

/* Room for the key's copy; false: there is none, and nobody watches this time. */
static bool make_room(struct wq__worker *w)
{
	const wq_allocator *a = &w->pool->allocator;
	size_t cap = w->item.len < 127 ? 128 : w->item.len + 1;

	if (w->key && w->item.len < w->key_cap)
		return true;
	wq__slow_release(w);
	w->key = wq__alloc(a, cap, 8);
	w->key_cap = w->key ? cap : 0;
	return w->key != NULL;
}

void wq__slow_release(struct wq__worker *w)
{
	wq__free(&w->pool->allocator, w->key, w->key_cap);
	w->key = NULL;
	w->key_cap = 0;
}

void wq__slow_begin(struct wq__worker *w)
{
	int64_t now = wq_now(w->pool->q);

	if (!make_room(w))
		return;
	/* A NUL follows it. */
	memcpy(w->key, w->item.key, w->item.len + 1);
	wq__lock_acquire(&w->lock);
	w->watched = true;
	w->reported = false;
	w->started_ns = now;
	wq__lock_release(&w->lock);
}

static void report(wq_pool *p, const wq_slow_handler *o)
{
	atomic_fetch_add_explicit(&p->slow_handlers, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->q->slow_handlers, 1, memory_order_relaxed);
	if (p->on_slow)
		p->on_slow(p->ctx, o);
}

/* One that ends after its time, but before the watcher has looked, reports itself. */
void wq__slow_end(struct wq__worker *w)
{
	int64_t took;
	bool over;

	/* In a child of the handler's, the watcher may have held the lock for good. */
	if (wq__unlikely(w->pool->forked))
		wq__fork_came_back();
	took = wq_now(w->pool->q) - w->started_ns;
	wq__lock_acquire(&w->lock);
	over = w->watched && !w->reported && took >= w->pool->slow_ns;
	w->watched = false;
	wq__lock_release(&w->lock);
	if (over)
		report(w->pool, &(wq_slow_handler){.key = w->key,
		                                   .len = w->item.len,
		                                   .attempts = w->item.attempts,
		                                   .worker = w->number,
		                                   .running_ns = took});
}

/* Copies what is to be reported of the worker; false: nothing, but *next may be earlier. */
static bool examine(wq_pool *p, struct wq__worker *w, int64_t now, int64_t *next,
                    wq_slow_handler *out)
{
	bool over = false;

	wq__lock_acquire(&w->lock);
	if (w->watched && !w->reported) {
		int64_t due = wq_time_add(w->started_ns, p->slow_ns);

		over = due <= now;
		if (!over && due < *next)
			*next = due;
	}
	if (over) {
		w->reported = true;
		memcpy(p->key, w->key, w->item.len + 1);
		*out = (wq_slow_handler){.key = p->key,
		                         .len = w->item.len,
		                         .attempts = w->item.attempts,
		                         .worker = w->number,
		                         .running_ns = now - w->started_ns};
	}
	wq__lock_release(&w->lock);
	return over;
}

/* The next one to report. The pool may change between two calls. */
static bool find(wq_pool *p, int64_t now, int64_t *next, wq_slow_handler *out)
{
	bool found = false;

	wq__lock_acquire(&p->lock);
	for (struct wq__worker *w = p->workers; w && !found; w = w->next)
		found = examine(p, w, now, next, out);
	wq__lock_release(&p->lock);
	return found;
}

static void look(void *ctx, const wq_timer_event *event)
{
	wq_pool *p = ctx;
	struct wq__handling me = {.pool = p};
	int64_t now = wq_timer_now(p->timer), next = wq_time_add(now, p->slow_ns);
	wq_slow_handler o;

	*wq__self() = &me;
	while (find(p, now, &next, &o))
		report(p, &o);
	*wq__self() = NULL;
	/* Without memory for that it comes by its period, which is late by a limit at most. */
	wq_timer_reschedule(p->timer, event->id, next);
}

int wq__slow_start(wq_pool *p)
{
	wq_timer_options o = {.allocator = &p->allocator, .clock = &p->q->clock};
	int rc;

	p->key = wq__alloc(&p->allocator, WQ_KEY_MAX + 1, 8);
	if (!p->key)
		return wq__fail_memory();
	rc = wq_timer_new(&p->timer, &o);
	if (rc == WQ_OK)
		rc = wq_timer_every(p->timer, p->slow_ns, look, p, NULL);
	return rc == WQ_ENOMEM ? wq__fail_memory() : rc;
}

void wq__slow_stop(wq_pool *p)
{
	if (p->timer)
		wq_timer_free(p->timer);
	wq__free(&p->allocator, p->key, WQ_KEY_MAX + 1);
}
