/*
 * The runner: one thread that sleeps until the wheel's next deadline, and calls.
 * The wheel is guarded by the lock; a callback runs outside it.
 */
#include <wq/timer.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/sync.h"
#include "base/tools.h"
#include "time/clock.h"
#include "time/wheel.h"

/* A thread that waits in stop for a callback to end, on its stack. */
struct stopper {
	struct stopper *next;
	wq__parker parker;
};

struct wq_timer {
	wq__lock lock;
	wq_wheel *wheel;           /* L */
	wq__parker *sleeper;       /* L: where the thread sleeps; NULL: it does not */
	int64_t sleeps_until_ns;   /* L: on the clock */
	bool stopped;              /* L */
	bool calling;              /* L: a callback is under way */
	struct stopper *stoppers;  /* L */
	wq__thread thread;         /* I */
	wq_clock clock;            /* I */
	wq_allocator allocator;    /* I */
	struct wq__fork_link fork; /* the process's */
	bool forked;               /* I: this is a child, and the timer its parent's */
};

static void forked(struct wq__fork_link *link)
{
	wq__container_of(link, wq_timer, fork)->forked = true;
}

static int64_t now(const wq_timer *t)
{
	return t->clock.now(t->clock.ctx);
}

/* The thread has to look again. */
static void rouse(wq_timer *t)
{
	wq__parker *p = t->sleeper;

	t->sleeper = NULL;
	if (p && wq__parker_set(p))
		wq__parker_wake(p);
}

static void doze(wq_timer *t)
{
	wq__parker parker;

	wq__parker_init(&parker);
	t->sleeper = &parker;
	t->sleeps_until_ns = wq_wheel_next_deadline(t->wheel);

	int64_t until = wq__clock_deadline(&t->clock, t->sleeps_until_ns);

	wq__lock_release(&t->lock);
	wq__parker_sleep(&parker, until);
	wq__lock_acquire(&t->lock);
	t->sleeper = NULL;
}

/* A stopper is gone once it is set: read its successor first. */
static void release_stoppers(wq_timer *t)
{
	while (t->stoppers) {
		struct stopper *s = t->stoppers;

		t->stoppers = s->next;
		if (wq__parker_set(&s->parker))
			wq__parker_wake(&s->parker);
		if (WQ__BUG(STOP_WAKES_ONE))
			return;
	}
}

static void run(void *arg)
{
	wq_timer *t = arg;
	struct wq__due due;

	wq__lock_acquire(&t->lock);
	while (!t->stopped) {
		if (!wq__wheel_pop(t->wheel, now(t), &due)) {
			doze(t);
			continue;
		}
		t->calling = !WQ__BUG(CALLING_TOO_LATE);
		wq__lock_release(&t->lock);
		if (WQ__BUG(CALLING_TOO_LATE))
			t->calling = true;
		due.fn(due.ctx, &due.event);
		if (t->forked)
			wq__fork_came_back();
		wq__lock_acquire(&t->lock);
		t->calling = false;
		release_stoppers(t);
	}
	wq__lock_release(&t->lock);
}

static void clock_moved(void *arg)
{
	wq_timer_clock_changed(arg);
}

int wq_timer_new(wq_timer **out, const wq_timer_options *options)
{
	wq_timer_options o = options ? *options : (wq_timer_options){0};
	const wq_allocator *a = o.allocator ? o.allocator : &wq__default_allocator;
	wq_wheel_options wheel = {.tick_ns = o.tick_ns, .size = o.size, .allocator = o.allocator};
	wq_timer *t;
	int rc;

	for (size_t i = 0; i < sizeof o.reserved / sizeof o.reserved[0]; i++)
		if (o.reserved[i] != 0)
			return wq__fail(WQ_EINVAL,
			                "a reserved word of wq_timer_options is not zero");
	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	if (o.clock && !wq__clock_good(o.clock))
		return wq__fail_clock(o.clock);
	if (!wq__allocator_good(a))
		return wq__fail_allocator(a);
	t = wq__alloc(a, sizeof *t, 64);
	if (!t)
		return wq__fail_memory();
	*t = (wq_timer){.clock = o.clock ? *o.clock : wq__clock_real, .allocator = *a};
	wq__lock_init(&t->lock);
	/* Before the clock knows it. */
	wq__fork_join(&t->fork, forked);
	rc = wq_wheel_new(&t->wheel, now(t), &wheel);
	if (rc < 0)
		goto no_wheel;
	if (t->clock.watch) {
		rc = t->clock.watch(t->clock.ctx, clock_moved, t, 1);
		if (rc < 0) {
			wq__fail_text("the clock cannot be watched: %s", wq_strerror(rc));
			goto no_watch;
		}
	}
	/* Under the lock: the thread's first step is to take it, and then it knows itself. */
	wq__lock_acquire(&t->lock);
	rc = wq__thread_start(&t->thread, run, t, "wq-timer", 0)
	         ? WQ_OK
	         : wq__fail_system(WQ_EIO, "the thread of the timer cannot be started");
	wq__lock_release(&t->lock);
	if (rc < 0)
		goto no_thread;
	*out = t;
	return WQ_OK;
no_thread:
	if (t->clock.watch)
		t->clock.watch(t->clock.ctx, clock_moved, t, 0);
no_watch:
	wq_wheel_free(t->wheel);
no_wheel:
	wq__fork_leave(&t->fork);
	wq__lock_end(&t->lock);
	wq__free(a, t, sizeof *t);
	return rc;
}

int64_t wq_timer_free(wq_timer *t)
{
	if (!t)
		return WQ_OK;
	/* The thread is not here, and what it guards may be half changed: it stays. */
	if (t->forked)
		return WQ_OK;
	if (wq__thread_is_me(&t->thread))
		return WQ_EDEADLK;

	wq_allocator a = t->allocator;
	int64_t left;

	wq_timer_stop(t);
	wq__thread_join(&t->thread);
	if (t->clock.watch)
		t->clock.watch(t->clock.ctx, clock_moved, t, 0);
	wq__fork_leave(&t->fork);
	left = wq_wheel_free(t->wheel);
	wq__lock_end(&t->lock);
	wq__free(&a, t, sizeof *t);
	return left;
}

int wq_timer_stop(wq_timer *t)
{
	struct stopper s;
	bool wait;

	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&t->lock);
	t->stopped = true;
	wq_wheel_stop(t->wheel);
	rouse(t);
	wait = t->calling && !wq__thread_is_me(&t->thread);
	if (wait) {
		wq__parker_init(&s.parker);
		s.next = t->stoppers;
		/* cppcheck-suppress autoVariables ; it is taken off before this call returns */
		t->stoppers = &s;
	}
	wq__lock_release(&t->lock);
	if (wait)
		wq__parker_sleep(&s.parker, WQ_NEVER);
	/* For tools that see the lock, but not what woke this thread: the callback comes before. */
	if (wait && wq__tools() & WQ__TOOL_THREADS) {
		wq__lock_acquire(&t->lock);
		wq__lock_release(&t->lock);
	}
	return WQ_OK;
}

/* Lock, and let the thread look again if its next deadline has become earlier. */
static void enter(wq_timer *t)
{
	wq__lock_acquire(&t->lock);
}

static int leave(wq_timer *t, int rc)
{
	if (rc == WQ_OK && t->sleeper && wq_wheel_next_deadline(t->wheel) < t->sleeps_until_ns &&
	    !WQ__BUG(TIMER_NO_WAKE))
		rouse(t);
	wq__lock_release(&t->lock);
	return rc;
}

int wq_timer_add(wq_timer *t, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!t)
		return wq__wheel_is_null();
	if (t->forked)
		return wq_fail(WQ_EFORKED, NULL);
	enter(t);
	return leave(t, wq_wheel_add(t->wheel, due_ns, fn, ctx, id));
}

int wq_timer_after(wq_timer *t, int64_t delay_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!t)
		return wq__wheel_is_null();
	if (t->forked)
		return wq_fail(WQ_EFORKED, NULL);
	return wq_timer_add(t, wq_time_add(now(t), delay_ns > 0 ? delay_ns : 0), fn, ctx, id);
}

int wq_timer_every(wq_timer *t, int64_t period_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!t)
		return wq__wheel_is_null();
	if (t->forked)
		return wq_fail(WQ_EFORKED, NULL);
	enter(t);
	return leave(t, wq__wheel_every_at(t->wheel, wq_time_add(now(t), period_ns), period_ns, fn,
	                                   ctx, id));
}

int wq_timer_cancel(wq_timer *t, wq_timer_id id)
{
	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	enter(t);
	return leave(t, wq_wheel_cancel(t->wheel, id));
}

int wq_timer_reschedule(wq_timer *t, wq_timer_id id, int64_t due_ns)
{
	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	enter(t);
	return leave(t, wq_wheel_reschedule(t->wheel, id, due_ns));
}

int64_t wq_timer_size(wq_timer *t)
{
	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&t->lock);

	int64_t n = wq_wheel_size(t->wheel);

	wq__lock_release(&t->lock);
	return n;
}

int64_t wq_timer_next_deadline(wq_timer *t)
{
	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&t->lock);

	int64_t next = wq_wheel_next_deadline(t->wheel);

	wq__lock_release(&t->lock);
	return next;
}

int64_t wq_timer_now(wq_timer *t)
{
	if (!t)
		return WQ_EINVAL;
	return t->forked ? WQ_EFORKED : now(t);
}

int wq_timer_clock_changed(wq_timer *t)
{
	if (!t)
		return WQ_EINVAL;
	if (t->forked)
		return WQ_EFORKED;
	wq__lock_acquire(&t->lock);
	rouse(t);
	wq__lock_release(&t->lock);
	return WQ_OK;
}
