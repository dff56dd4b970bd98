/*
 * A heap of values by expiry, and the threads that wait for its head: leader
 * and followers, as in Java's DelayQueue.
 *
 * The invariant at every unlock: values and waiting threads imply a leader that
 * sleeps no longer than until the head's time, or a thread that was woken and
 * will see to it. Whoever leaves with values behind it and no leader wakes a
 * follower.
 */
#include <wq/delayqueue.h>
#include <wq/heap.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/sync.h"
#include "time/clock.h"

/* A thread inside take, on its stack; guarded by the lock but for the parker. */
struct taker {
	struct taker *next, *prev;
	wq__parker parker;
};

struct wq_delayqueue {
	wq__lock lock;
	wq_heap *heap;             /* L */
	struct taker *takers;      /* L */
	struct taker *leader;      /* L: one of them, or NULL */
	uint32_t inside;           /* L: threads that wait */
	bool closed;               /* L */
	wq_clock clock;            /* I */
	wq_allocator allocator;    /* I */
	struct wq__fork_link fork; /* the process's */
	bool forked;               /* I: this is a child, and the queue its parent's */
};

static void forked(struct wq__fork_link *link)
{
	wq__container_of(link, wq_delayqueue, fork)->forked = true;
}

static void clock_moved(void *arg)
{
	wq_delayqueue_clock_changed(arg);
}

static int check_options(const wq_delayqueue_options *o)
{
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		if (o->reserved[i] != 0)
			return wq__fail(WQ_EINVAL,
			                "a reserved word of wq_delayqueue_options is not zero");
	if (o->allocator && !wq__allocator_good(o->allocator))
		return wq__fail_allocator(o->allocator);
	return o->clock && !wq__clock_good(o->clock) ? wq__fail_clock(o->clock) : WQ_OK;
}

int wq_delayqueue_new(wq_delayqueue **out, const wq_delayqueue_options *options)
{
	wq_delayqueue_options o = options ? *options : (wq_delayqueue_options){0};
	const wq_allocator *a = o.allocator ? o.allocator : &wq__default_allocator;
	wq_delayqueue *dq;
	int rc = WQ_ENOMEM;

	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	if (check_options(&o) < 0)
		return WQ_EINVAL;
	dq = wq__alloc(a, sizeof *dq, 64);
	if (!dq)
		return wq__fail_memory();
	*dq = (wq_delayqueue){.clock = o.clock ? *o.clock : wq__clock_real, .allocator = *a};
	wq__lock_init_own(&dq->lock);
	/* Before the clock knows it. */
	wq__fork_join(&dq->fork, forked);
	if (wq_heap_new(&dq->heap, a) < 0)
		goto no_heap;
	if (dq->clock.watch) {
		rc = dq->clock.watch(dq->clock.ctx, clock_moved, dq, 1);
		if (rc < 0) {
			wq__fail_text("the clock cannot be watched: %s", wq_strerror(rc));
			goto no_watch;
		}
	}
	*out = dq;
	return WQ_OK;
no_watch:
	wq_heap_free(dq->heap);
no_heap:
	wq__fork_leave(&dq->fork);
	wq__lock_end(&dq->lock);
	wq__free(a, dq, sizeof *dq);
	return rc;
}

int64_t wq_delayqueue_free(wq_delayqueue *dq)
{
	/* In a child of a fork its memory stays: a thread that is not here may have been changing it. */
	if (!dq || dq->forked)
		return WQ_OK;

	wq_allocator a = dq->allocator;
	int64_t left;

	wq__lock_acquire(&dq->lock);

	bool busy = dq->inside > 0;

	wq__lock_release(&dq->lock);
	if (busy)
		return WQ_EBUSY;
	if (dq->clock.watch)
		dq->clock.watch(dq->clock.ctx, clock_moved, dq, 0);
	wq__fork_leave(&dq->fork);
	left = wq_heap_free(dq->heap);
	wq__lock_end(&dq->lock);
	wq__free(&a, dq, sizeof *dq);
	return left;
}

static void unlink_taker(wq_delayqueue *dq, struct taker *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		dq->takers = t->next;
	if (t->next)
		t->next->prev = t->prev;
	if (dq->leader == t)
		dq->leader = NULL;
}

/* Marks one thread as woken; the answer is for wake(), after unlocking. */
static struct taker *rouse(wq_delayqueue *dq, struct taker *t)
{
	if (!t)
		return NULL;
	unlink_taker(dq, t);
	return wq__parker_set(&t->parker) ? t : NULL;
}

static void wake(struct taker *t)
{
	if (t)
		wq__parker_wake(&t->parker);
}

static void rouse_all(wq_delayqueue *dq)
{
	while (dq->takers)
		wake(rouse(dq, dq->takers));
}

static int64_t head_ns(const wq_delayqueue *dq)
{
	int64_t due;

	return wq_heap_peek(dq->heap, &due, NULL) == WQ_OK ? due : WQ_NEVER;
}

static bool has_head(const wq_delayqueue *dq)
{
	return wq_heap_size(dq->heap) > 0;
}

int wq_delayqueue_offer(wq_delayqueue *dq, void *value, int64_t expiry_ns)
{
	struct taker *w = NULL;
	int rc = WQ_ESHUTDOWN;

	if (!dq || expiry_ns < 0)
		return WQ_EINVAL;
	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);

	int64_t before = has_head(dq) ? head_ns(dq) : WQ_NEVER;

	if (!dq->closed)
		rc = wq_heap_add(dq->heap, expiry_ns, value, NULL);
	/* A new head, or the first value: the leader looks again; if there is none, somebody. */
	if (rc == WQ_OK && (expiry_ns < before || !dq->leader) && !WQ__BUG(OFFER_NO_WAKE))
		w = rouse(dq, dq->leader ? dq->leader : dq->takers);
	wq__lock_release(&dq->lock);
	wake(w);
	return rc;
}

/* Sleep until woken, or until the head's time as the leader, or until the deadline. */
static void wait_turn(wq_delayqueue *dq, int64_t deadline_ns)
{
	struct taker t = {.next = dq->takers};
	int64_t until = deadline_ns;

	wq__parker_init(&t.parker);
	if (dq->takers)
		dq->takers->prev = &t;
	/* cppcheck-suppress autoVariables ; it is taken off before this call returns */
	dq->takers = &t;
	dq->inside++;
	if (!dq->leader && has_head(dq)) {
		/* cppcheck-suppress autoVariables ; it is taken off before this call returns */
		dq->leader = &t;
		if (head_ns(dq) < until)
			until = head_ns(dq);
	}
	until = wq__clock_deadline(&dq->clock, until);
	wq__lock_release(&dq->lock);

	bool in_time = wq__parker_sleep(&t.parker, until);

	wq__lock_acquire(&dq->lock);
	dq->inside--;
	/* It may be woken after its time was up: then it is off the list already. */
	if (!wq__parker_is_set(&t.parker) || (WQ__BUG(TAKE_UNLINKS_TWICE) && !in_time))
		unlink_taker(dq, &t);
}

static int take(wq_delayqueue *dq, void **value, int64_t deadline_ns)
{
	struct taker *w = NULL;
	int rc;

	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);
	for (;;) {
		int64_t now = dq->clock.now(dq->clock.ctx);

		/* Never is never due, even at the end of time. */
		if (has_head(dq) && head_ns(dq) <= now && head_ns(dq) != WQ_NEVER) {
			rc = wq_heap_pop(dq->heap, NULL, value);
			break;
		}
		if (dq->closed) {
			rc = WQ_ESHUTDOWN;
			break;
		}
		if (deadline_ns < 0 || (deadline_ns != WQ_NEVER && now >= deadline_ns)) {
			rc = deadline_ns < 0 ? WQ_EAGAIN : WQ_ETIMEDOUT;
			break;
		}
		wait_turn(dq, deadline_ns);
	}
	if (!dq->leader && has_head(dq) && !WQ__BUG(LEADER_NOT_PASSED))
		w = rouse(dq, dq->takers);
	wq__lock_release(&dq->lock);
	wake(w);
	return rc;
}

int wq_delayqueue_take(wq_delayqueue *dq, void **value)
{
	return wq_delayqueue_take_until(dq, value, WQ_NEVER);
}

int wq_delayqueue_take_until(wq_delayqueue *dq, void **value, int64_t deadline_ns)
{
	return dq && value && deadline_ns >= 0 ? take(dq, value, deadline_ns) : WQ_EINVAL;
}

int wq_delayqueue_take_for(wq_delayqueue *dq, void **value, int64_t timeout_ns)
{
	int64_t now = wq_delayqueue_now(dq);

	if (now < 0)
		return (int)now;
	return wq_delayqueue_take_until(dq, value,
	                                wq_time_add(now, timeout_ns > 0 ? timeout_ns : 0));
}

int wq_delayqueue_poll(wq_delayqueue *dq, void **value)
{
	return dq && value ? take(dq, value, -1) : WQ_EINVAL;
}

int64_t wq_delayqueue_size(wq_delayqueue *dq)
{
	if (!dq)
		return WQ_EINVAL;
	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);

	int64_t n = wq_heap_size(dq->heap);

	wq__lock_release(&dq->lock);
	return n;
}

int64_t wq_delayqueue_next(wq_delayqueue *dq)
{
	if (!dq)
		return WQ_EINVAL;
	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);

	int64_t next = head_ns(dq);

	wq__lock_release(&dq->lock);
	return next;
}

int wq_delayqueue_close(wq_delayqueue *dq)
{
	if (!dq)
		return WQ_EINVAL;
	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);
	dq->closed = true;
	if (WQ__BUG(CLOSE_WAKES_ONE))
		wake(rouse(dq, dq->takers));
	else
		rouse_all(dq);
	wq__lock_release(&dq->lock);
	return WQ_OK;
}

int64_t wq_delayqueue_now(wq_delayqueue *dq)
{
	if (!dq)
		return WQ_EINVAL;
	return dq->forked ? WQ_EFORKED : dq->clock.now(dq->clock.ctx);
}

int wq_delayqueue_clock_changed(wq_delayqueue *dq)
{
	if (!dq)
		return WQ_EINVAL;
	if (dq->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&dq->lock);
	rouse_all(dq);
	wq__lock_release(&dq->lock);
	return WQ_OK;
}
