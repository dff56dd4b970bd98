/* Calls on many keys: add_many is in add.c. Each hold of a lock is bounded. */
#include "queue/memory.h"

enum { AHEAD = 16 }; /* so many keys are prefetched at a time */

/* Some keys are ready. Takes what there is, at most max; the lock is held before and after. */
static int take_many(struct wq__memory *m, wq_item *items, size_t max)
{
	size_t n = 0;

	while (n < max && (m->nready > 0 || wq__ready(m))) {
		wq__take(m, &items[n]);
		if (++n % wq__per_hold(WQ__HOLD_MAX) == 0 && n < max)
			wq__breathe(m);
	}
	return (int)n;
}

/* Asks for the table's memory for the next few items at once, instead of one after another. */
static inline __attribute__((always_inline)) void
prefetch_slots(const struct wq__memory *m, const wq_item *items, size_t from, size_t n)
{
	for (size_t i = from; i < n && i < from + AHEAD; i++)
		wq__table_prefetch(&m->table, (uint32_t)(items[i].slot >> 32));
}

/* How many are done; *first_error is set by the first that is not. */
static int done_some(struct wq__memory *m, const wq_item *items, size_t n, int *outcomes,
                     int *first_error)
{
	int done = 0;

	for (size_t i = 0; i < n; i++) {
		if (i % AHEAD == 0)
			prefetch_slots(m, items, i, n);

		const wq_item *item = &items[i];
		int rc = wq__done(m, item);

		if (outcomes)
			outcomes[i] = rc;
		if (rc >= 0)
			done++;
		else if (*first_error == WQ_OK)
			*first_error = rc;
		if ((i + 1) % wq__per_hold(WQ__HOLD_MAX) == 0 && i + 1 < n)
			wq__breathe(m);
	}
	return done;
}

static int get_some(struct wq__memory *m, wq_item *items, size_t max, int64_t deadline_ns)
{
	int rc = wq__ready_now(m) ? WQ_OK : wq__await_ready(m, deadline_ns, NULL, 0);

	return rc == WQ_OK ? take_many(m, items, max) : rc;
}

/* The end of every call on many keys. */
static void leave(struct wq__memory *m, bool got)
{
	struct wq__wakes wakes = {.n = 0};
	struct wq__waiter *w = NULL;

	if (!(got && WQ__BUG(MANY_NOT_PASSED)))
		wq__pick_many(m, &wakes);
	/* A group that was started may sleep for less than the leader does. */
	if (m->flags & WQ__PACED)
		w = wq__rouse_leader(m);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
	wq__wake(w);
}

/* Let go of the back lock in the midst of long work. */
static void breathe_back(struct wq__lane *l)
{
	l->inside++;
	wq__lock_retake(&l->lock, wq__lock_pass(&l->lock));
	l->inside--;
}

/* So many of the first items as the lane can end the holds of; the back lock is held. */
static size_t lane_done_some(struct wq__memory *m, struct wq__lane *l, const wq_item *items,
                             size_t n, int *outcomes)
{
	size_t i = 0;

	while (i < n && wq__lane_done(m, l, &items[i])) {
		if (outcomes)
			outcomes[i] = WQ_OK;
		if (++i % wq__per_hold(WQ__HOLD_MAX) == 0 && i < n)
			breathe_back(l);
	}
	return i;
}

/* What is in the lane's line, at most max; the back lock is held. */
static size_t lane_take_some(struct wq__memory *m, struct wq__lane *l, wq_item *items, size_t max)
{
	size_t i = 0;

	while (i < max) {
		wq_item *item = &items[i];

		if (!wq__lane_take(m, l, item))
			break;
		if (++i % wq__per_hold(WQ__HOLD_MAX) == 0 && i < max)
			breathe_back(l);
	}
	return i;
}

/* The queue is whole, and let go of. */
static int get_many_whole(struct wq__memory *m, wq_item *items, size_t max, int64_t deadline_ns)
{
	wq__keep_time(m);

	int rc = get_some(m, items, max, deadline_ns);

	leave(m, true);
	return rc;
}

/* Is there, or may there be, a key that the lane did not take? */
static bool more_behind(const struct wq__memory *m, struct wq__lane *l)
{
	return m->flags & WQ__TIMED || wq__line_at(l, 0) ||
	       atomic_load_explicit(&l->come, memory_order_relaxed);
}

/* The back lock is held, and let go of. Takes what is in line; waits if there is nothing. */
static int get_many_laned(struct wq__memory *m, struct wq__lane *l, wq_item *items, size_t max,
                          int64_t deadline_ns)
{
	size_t n = lane_take_some(m, l, items, max);
	bool whole = false;

	if (n == 0)
		wq__lane_await(m, l, deadline_ns, &whole);
	/* Not by the lane what is whole: its counts would be wrong, and back goes before front. */
	if (n == 0 && !whole)
		n = lane_take_some(m, l, items, max);
	if (n > 0 && (n == max || !more_behind(m, l))) {
		wq__lock_release(&l->lock);
		return (int)n;
	}
	wq__lane_give_up(m, l, whole);

	int rc = get_many_whole(m, &items[n], max - n, n > 0 ? WQ_NOWAIT : deadline_ns);

	return n > 0 ? (int)n + (rc > 0 ? rc : 0) : rc;
}

int wq__mem_get_many(void *state, wq_item *items, size_t max, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l) {
		wq__lock_acquire(&l->lock);
		return get_many_laned(m, l, items, max, deadline_ns);
	}
	wq__whole_lock(m);
	return get_many_whole(m, items, max, deadline_ns);
}

int wq__mem_done_many(void *state, const wq_item *items, size_t n, int *outcomes)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);
	int error = WQ_OK;
	size_t first = 0;

	if (l) {
		wq__lock_acquire(&l->lock);
		first = lane_done_some(m, l, items, n, outcomes);
		if (first == n) {
			wq__lock_release(&l->lock);
			return (int)n;
		}
		wq__whole_up(m, l);
	} else {
		wq__whole_lock(m);
	}
	wq__keep_time(m);

	int done =
	    done_some(m, &items[first], n - first, outcomes ? outcomes + first : NULL, &error);

	leave(m, false);
	return (int)first + done;
}

int wq__mem_next_many(void *state, wq_item *items, size_t n, size_t max, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);
	int rc = WQ_OK;
	size_t first = 0;

	if (l) {
		wq__lock_acquire(&l->lock);
		first = lane_done_some(m, l, items, n, NULL);
		if (first == n)
			return get_many_laned(m, l, items, max, deadline_ns);
		wq__whole_up(m, l);
	} else {
		wq__whole_lock(m);
	}
	wq__keep_time(m);
	done_some(m, &items[first], n - first, NULL, &rc);
	if (rc == WQ_OK)
		rc = get_some(m, items, max, deadline_ns);
	leave(m, true);
	return rc;
}
