/*
 * The pool. Its lock guards what the workers are to do (how many, paused,
 * stopped); a worker looks at that before each run of turns, and the gate of
 * the engine ends the run whenever it has changed: every change is one
 * gate_change(), and no Get that began before it hands out another key.
 *
 * Locks: the queue's list of pools, then a pool's, then a worker's or the engine's.
 */
#include <wq/pool.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/fail.h"
#include "pool/pool.h"
#include "time/clock.h"

static const int64_t failed_rest_ns = 100 * WQ_MILLISECOND;

/* ---- a worker ------------------------------------------------------------ */

/* The handler handed the item back itself. */
static bool is_stale(int settled)
{
	return settled == WQ_ESTALE || settled == WQ_EOTHERQUEUE || settled == WQ_EINVAL;
}

/* The counter of what has become of a key. */
static _Atomic uint64_t *counter_of(struct wq__worker *w, wq_verdict verdict, int settled)
{
	if (is_stale(settled))
		return &w->stale;
	if (settled == WQ_DEAD)
		return &w->dead;
	/* One that is done or dropped is so, though a copy of its key may be left over. */
	if (settled == WQ_LEFT && wq__verdict_comes_back(verdict))
		return &w->left;
	if (settled == WQ_CANCELLED)
		return &w->cancelled;
	if (verdict.kind == WQ_VERDICT_DONE)
		return &w->done;
	if (wq__verdict_fails(verdict))
		return &w->retried;
	if (verdict.kind == WQ_VERDICT_DROP)
		return &w->dropped;
	return &w->again;
}

/*
 * Only the worker writes its counters, and it does so while the engine's lock is held:
 * whoever then sees the key settled sees it counted.
 */
static void count(void *worker, int settled)
{
	struct wq__worker *w = worker;
	_Atomic uint64_t *c;

	/* The engine failed: it is tried again. */
	if (settled < 0 && !is_stale(settled))
		return;
	c = counter_of(w, w->verdict, settled);

	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

static void add_counts(const struct wq__worker *w, wq_pool_counts *sum)
{
	sum->done += atomic_load_explicit(&w->done, memory_order_relaxed);
	sum->retried += atomic_load_explicit(&w->retried, memory_order_relaxed);
	sum->again += atomic_load_explicit(&w->again, memory_order_relaxed);
	sum->dropped += atomic_load_explicit(&w->dropped, memory_order_relaxed);
	sum->dead += atomic_load_explicit(&w->dead, memory_order_relaxed);
	sum->left += atomic_load_explicit(&w->left, memory_order_relaxed);
	sum->cancelled += atomic_load_explicit(&w->cancelled, memory_order_relaxed);
	sum->stale += atomic_load_explicit(&w->stale, memory_order_relaxed);
}

/*
 * Turn after turn, until the gate changes, the queue is at its end, or the
 * engine fails: which of them. What the worker holds then is settled next time.
 */
static int work(struct wq__worker *w, uint32_t seen)
{
	wq_pool *p = w->pool;
	wq_turn t = {
	    .gate = &p->gate, .seen = seen, .deadline_ns = WQ_NEVER, .on_settled = count, .arg = w};
	int rc;

	for (;;) {
		t.steps = WQ_TURN_GET | (w->holds ? WQ_TURN_SETTLE : 0);
		t.verdict = w->verdict;
		rc = wq__settle_next(p->q, &w->item, &t);
		if (w->holds && t.settled < 0 && !is_stale(t.settled))
			return t.settled;
		w->holds = rc == WQ_OK;
		if (rc < 0 && !is_stale(rc))
			return rc;
		if (!w->holds)
			continue;
		atomic_store_explicit(&w->busy, true, memory_order_relaxed);
		if (p->slow_ns > 0)
			wq__slow_begin(w);
		w->verdict = p->handler(p->ctx, &w->item);
		if (wq__unlikely(!wq__verdict_ok(w->verdict)))
			w->verdict = WQ_RETRY;
		if (p->slow_ns > 0)
			wq__slow_end(w);
		atomic_store_explicit(&w->busy, false, memory_order_relaxed);
	}
}

/* Sleep until something changes, or until then. The lock is held before and after. */
static void rest(struct wq__worker *w, int64_t until_ns)
{
	wq_pool *p = w->pool;

	wq__parker_init(&w->parker);
	w->resting = true;
	wq__lock_release(&p->lock);
	wq__parker_sleep(&w->parker, until_ns);
	wq__lock_acquire(&p->lock);
	w->resting = false;
}

static bool is_to_go(const wq_pool *p)
{
	return p->stopped || p->nworkers > p->wanted;
}

static void run(void *arg)
{
	struct wq__worker *w = arg;
	wq_pool *p = w->pool;
	int rc = WQ_OK;

	/* Who has resized the pool may block others. */
	wq__signals_set(&p->signals);
	*wq__self() = &w->handling;
	if (p->on_start)
		p->on_start(p->ctx, w->number);
	w->handling.q = p->q;
	wq__lock_acquire(&p->lock);
	/* What it holds it settles first, however long that takes. */
	while (w->holds || (rc != WQ_ESHUTDOWN && !is_to_go(p))) {
		/* A number of the gate that is over lets it settle, but get no more. */
		uint32_t seen = p->paused || is_to_go(p) ? p->seen - 1 : p->seen;

		if (rc == WQ_EIO || (p->paused && !w->holds)) {
			/* An engine that fails is left alone for a while. */
			rest(w, rc == WQ_EIO ? wq__clock_now() + failed_rest_ns : WQ_NEVER);
			rc = WQ_OK;
			continue;
		}
		wq__lock_release(&p->lock);
		rc = work(w, seen);
		if (rc == WQ_EFORKED)
			wq__fork_came_back();
		if (rc != WQ_EINTERRUPTED && rc != WQ_ESHUTDOWN)
			rc = WQ_EIO;
		wq__lock_acquire(&p->lock);
	}
	/* It counts as gone, so that no other leaves in its place; its thread has yet to end. */
	if (!WQ__BUG(POOL_TOO_MANY_GO))
		p->nworkers--;
	wq__lock_release(&p->lock);
	w->handling.q = NULL;
	if (p->on_end)
		p->on_end(p->ctx, w->number);
	*wq__self() = NULL;
	wq__lock_acquire(&p->lock);
	w->ended = true;
	if (WQ__BUG(POOL_TOO_MANY_GO))
		p->nworkers--;
	if (--p->nthreads == 0)
		wq__pool_release_stoppers(p);
	wq__lock_release(&p->lock);
}

/* ---- changes, lock held -------------------------------------------------- */

void wq__pool_changed(wq_pool *p)
{
	p->seen = p->q->engine.gate_change(p->q->state, &p->gate);
	for (struct wq__worker *w = p->workers; w; w = w->next) {
		if (!w->resting || WQ__BUG(POOL_REST_NO_WAKE))
			continue;
		w->resting = false;
		if (wq__parker_set(&w->parker))
			wq__parker_wake(&w->parker);
	}
}

static void resume(wq_pool *p)
{
	if (!p->paused)
		return;
	p->paused = false;
	wq__pool_changed(p);
}

static void resume_link(struct wq__pool_link *link)
{
	wq_pool *p = wq__container_of(link, wq_pool, link);

	wq__lock_acquire(&p->lock);
	resume(p);
	wq__lock_release(&p->lock);
}

/* Where the smallest number is missing: the list is in their order. */
static struct wq__worker **first_gap(wq_pool *p, uint32_t *number)
{
	struct wq__worker **at = &p->workers;

	for (*number = 0; *at && (*at)->number == *number; ++*number)
		at = &(*at)->next;
	return at;
}

static int add_worker(wq_pool *p)
{
	struct wq__worker *w = wq__alloc(&p->allocator, sizeof *w, 64), **at;
	wq__signals before;
	char name[16];
	bool started;

	if (!w)
		return wq__fail_memory();
	memset(w, 0, sizeof *w);
	w->pool = p;
	at = first_gap(p, &w->number);
	w->handling = (struct wq__handling){.item = &w->item, .pool = p};
	wq__lock_init(&w->lock);
	snprintf(name, sizeof name, "%.10s-%u", p->name, w->number);
	/* Its first step that matters is to take the lock, and then it is one of the workers. */
	wq__signals_block(&p->signals, &before);
	started = wq__thread_start(&w->thread, run, w, name, p->stack_size);
	wq__signals_set(&before);
	if (!started) {
		wq__fail_system(WQ_EIO, "the thread of a worker cannot be started");
		wq__lock_end(&w->lock);
		wq__free(&p->allocator, w, sizeof *w);
		return WQ_EIO;
	}
	w->next = *at;
	*at = w;
	p->nworkers++;
	p->nthreads++;
	return WQ_OK;
}

/* Joins the workers that have ended; it does not wait, but for their very last steps. */
void wq__pool_reap(wq_pool *p)
{
	for (struct wq__worker **at = &p->workers; *at;) {
		struct wq__worker *w = *at;

		if (!w->ended) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		add_counts(w, &p->past);
		/* Its last step was to take and to release the lock. */
		wq__lock_release(&p->lock);
		wq__thread_join(&w->thread);
		wq__slow_release(w);
		wq__lock_end(&w->lock);
		wq__free(&p->allocator, w, sizeof *w);
		wq__lock_acquire(&p->lock);
		at = &p->workers;
	}
}

/* As many as are wanted; after an error, as many as before. */
static int grow(wq_pool *p, uint32_t n)
{
	uint32_t before = p->wanted;
	int rc = WQ_OK;

	p->wanted = n;
	while (rc == WQ_OK && p->nworkers < n)
		rc = add_worker(p);
	if (rc < 0)
		p->wanted = before;
	wq__pool_changed(p);
	return rc;
}

/* ---- public -------------------------------------------------------------- */

static int check_workers(uint32_t n)
{
	if (n > 0 && n <= WQ_WORKERS_MAX)
		return WQ_OK;
	return wq__fail(WQ_EINVAL, "workers is %u, not from 1 to %d", n, WQ_WORKERS_MAX);
}

static int check(wq_pool *const *out, const wq_queue *q, const wq_pool_options *o)
{
	if (!out || !q || !o)
		return wq__fail(WQ_EINVAL, "%s",
		                !out ? "out is NULL"
		                : !q ? "the queue is NULL"
		                     : "the options are NULL");
	if (!o->handler)
		return wq__fail(WQ_EINVAL, "there is no handler");
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		if (o->reserved[i] != 0)
			return wq__fail(WQ_EINVAL,
			                "a reserved word of wq_pool_options is not zero");
	if (o->reserved0 != 0)
		return wq__fail(WQ_EINVAL, "a reserved word of wq_pool_options is not zero");
	if (o->paused > 1)
		return wq__fail(WQ_EINVAL, "paused is %u, neither 0 nor 1", o->paused);
	if (o->block_signals > 1)
		return wq__fail(WQ_EINVAL, "block_signals is %u, neither 0 nor 1",
		                o->block_signals);
	if (o->slow_ns < 0)
		return wq__fail(WQ_EINVAL, "slow_ns is negative");
	if (check_workers(o->workers) < 0)
		return WQ_EINVAL;
	return q->forked ? wq_fail(WQ_EFORKED, NULL) : WQ_OK;
}

static void forked(struct wq__fork_link *link)
{
	wq__container_of(link, wq_pool, fork)->forked = true;
}

/* The timer's thread is one of the pool's. */
static int watch_handlers(wq_pool *p)
{
	wq__signals before;
	int rc;

	wq__signals_block(&p->signals, &before);
	rc = wq__slow_start(p);
	wq__signals_set(&before);
	return rc;
}

int wq_pool_start(wq_pool **out, wq_queue *q, const wq_pool_options *o)
{
	int rc = check(out, q, o);
	wq_pool *p;

	if (rc < 0)
		return rc;
	p = wq__alloc(&q->allocator, sizeof *p, 64);
	if (!p)
		return wq__fail_memory();
	memset(p, 0, sizeof *p);
	p->q = q;
	p->handler = o->handler;
	p->ctx = o->ctx;
	p->on_start = o->on_start;
	p->on_end = o->on_end;
	p->on_slow = o->on_slow;
	p->slow_ns = o->slow_ns;
	p->stack_size = o->stack_size;
	p->allocator = q->allocator;
	if (o->block_signals)
		wq__signals_all(&p->signals);
	else
		wq__signals_now(&p->signals);
	p->paused = o->paused;
	strncpy(p->name, o->name ? o->name : "wq", sizeof p->name - 1);
	wq__lock_init(&p->lock);
	/* Before the clock knows it. */
	wq__fork_join(&p->fork, forked);
	rc = wq__pool_watch_clock(p);
	if (rc == WQ_OK && p->slow_ns > 0)
		rc = watch_handlers(p);
	if (rc == WQ_OK) {
		/* The queue knows it before its workers do anything. */
		p->link.resume = resume_link;
		p->link.clock_changed = wq__pool_clock_changed;
		wq__pool_join(q, &p->link);
		wq__lock_acquire(&p->lock);
		rc = grow(p, o->workers);
		wq__lock_release(&p->lock);
	}
	if (rc < 0) {
		wq_pool_free(p);
		return rc;
	}
	*out = p;
	return WQ_OK;
}

int wq_pool_resize(wq_pool *p, uint32_t n)
{
	int rc;

	if (!p)
		return wq__fail(WQ_EINVAL, "the pool is NULL");
	if (check_workers(n) < 0)
		return WQ_EINVAL;
	if (p->forked)
		return wq_fail(WQ_EFORKED, NULL);
	wq__lock_acquire(&p->lock);
	rc = p->stopped ? wq__fail(WQ_ESHUTDOWN, "the pool is stopped") : grow(p, n);
	wq__pool_reap(p);
	wq__lock_release(&p->lock);
	return rc;
}

int wq_pool_pause(wq_pool *p)
{
	if (!p)
		return WQ_EINVAL;
	if (p->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&p->lock);
	if (!p->paused) {
		p->paused = true;
		wq__pool_changed(p);
	}
	wq__lock_release(&p->lock);
	return WQ_OK;
}

int wq_pool_resume(wq_pool *p)
{
	if (!p)
		return WQ_EINVAL;
	if (p->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&p->lock);
	resume(p);
	wq__lock_release(&p->lock);
	return WQ_OK;
}

int wq_pool_count(wq_pool *p, wq_pool_counts *out)
{
	if (!p || !out)
		return WQ_EINVAL;
	if (p->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&p->lock);
	*out = p->past;
	for (struct wq__worker *w = p->workers; w; w = w->next) {
		add_counts(w, out);
		out->busy += atomic_load_explicit(&w->busy, memory_order_relaxed);
	}
	out->workers = p->nthreads;
	out->slow_handlers = atomic_load_explicit(&p->slow_handlers, memory_order_relaxed);
	wq__lock_release(&p->lock);
	return WQ_OK;
}
