/*
 * Keys go out and come back: get, done, both in one step, requeue.
 *
 * An item names its slot in the table, hash and id. Done looks for exactly
 * this slot, without touching the memory behind it; if it is there the entry
 * is live, and its token tells whether this hold is the current one.
 */
#include <assert.h>
#include <string.h>

#include "queue/memory.h"

enum {
	AHEAD = 16,      /* done_many prefetches so many keys at a time */
	SCOUT_AHEAD = 6, /* keys between the head and the scout */
	/* A held key with one of these may go back into line when it is done. */
	COMES_BACK = WQ_STATE_DIRTY | WQ_STATE_WAITING | WQ__BESIDE,
};

/* A node of the user's order, back to the id that names it. */
static uint32_t id_of(const struct wq__memory *m, const struct wq__entry *e)
{
	wq__probe p = wq__table_probe(&m->table, e->hash);
	uint32_t id;

	/* An order that pops what it was not given is broken beyond help. */
	while ((id = wq__probe_next(&p)) != 0 && wq__entry_at(m, id) != e)
		;
	assert(id != 0);
	return id;
}

/*
 * A scout walks some keys ahead of the head and asks for the memory that their
 * pop and done will touch, so that it is there when they come.
 */
static inline void scout_on(struct wq__memory *m)
{
	for (int step = 0; step < 2 && m->scout_ahead < SCOUT_AHEAD; step++) {
		uint32_t next = wq__entry_at(m, m->scout)->u.line.next;

		if (next == 0)
			return;

		const struct wq__entry *e = wq__entry_at(m, next);

		m->scout = next;
		m->scout_ahead++;
		wq__table_prefetch(&m->table, e->hash);
		if (e->u.line.next)
			wq__prefetch_to_write(wq__entry_at(m, e->u.line.next));
	}
}

/* From the lane's line; what stands behind it moves up. */
static wq__apart uint32_t pop_lane(struct wq__memory *m, struct wq__lane *l)
{
	uint32_t id = wq__line_at(l, 0);

	if (!id) {
		wq__line_refill(m, l);
		id = wq__line_at(l, 0);
	}
	wq__line_pop(l);
	l->known -= l->known > 0;
	return id;
}

static wq__forced uint32_t pop_fifo(struct wq__memory *m)
{
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_relaxed);
	uint32_t id = m->head;

	if (wq__unlikely(l != NULL))
		return pop_lane(m, l);

	m->head = wq__entry_at(m, id)->u.line.next;
	if (m->head == 0) {
		m->tail = m->scout = m->scout_ahead = 0;
		return id;
	}
	if (m->scout_ahead == 0)
		m->scout = m->head;
	else
		m->scout_ahead--;
	scout_on(m);
	return id;
}

/* Cancelled keys that the order could not remove are skipped, and gone then. */
static uint32_t pop_order(struct wq__memory *m)
{
	for (;;) {
		struct wq__entry *e =
		    wq__container_of(m->order.pop(m->order.ctx), struct wq__entry, u.node);
		uint32_t id = id_of(m, e);

		if (!wq__entry_is_ghost(e))
			return id;
		wq__vanish_ghost(m, e, (uint64_t)e->hash << 32 | id);
	}
}

/* Hand out the next ready key; there is one. */
static wq__forced void take(struct wq__memory *m, bool plain, wq_item *item, size_t item_size)
{
	uint32_t id;
	struct wq__entry *e;

	if (wq__unlikely(wq__flags_of(m, plain) & WQ__ORDERED)) {
		id = pop_order(m);
		e = wq__entry_at(m, id);
	} else {
		id = pop_fifo(m);
		e = wq__entry_at(m, id);
	}
	if (wq__unlikely(e->bits & WQ__BESIDE))
		wq__merge_reminder(m, e);
	m->nready--;
	m->nrunning++;
	wq__entry_set_state(e, WQ_STATE_RUNNING | (e->bits & WQ__BESIDE));
	e->u.hold.token = wq__new_token(m, id);
	e->u.hold.since_ns = e->added_ns;
	if (wq__unlikely(wq__flags_of(m, plain) & WQ__METERED))
		wq__meter_start(m, e, id);
	if (wq__unlikely(m->token / WQ__HOLDS % WQ__SAMPLE == 0))
		wq__sample_begin(m, e->u.hold.token);
	*item = (wq_item){
	    .key = e->key,
	    .len = wq__entry_len(e),
	    .token = e->u.hold.token,
	    .added_ns = e->added_ns,
	    .attempts = wq__entry_failures(e) + 1,
	    .owner = m,
	    .slot = (uint64_t)e->hash << 32 | id,
	};
	if (wq__unlikely(wq__flags_of(m, plain) & WQ__ASKS))
		item->attempts = wq__requeues_of(m, e) + 1;
	if (wq__unlikely(item_size > sizeof *item))
		memset(item + 1, 0, item_size - sizeof *item);
}

/* The entry of a held item and where it stands, or NULL and why. */
static inline struct wq__entry *held(struct wq__memory *m, const wq_item *item, wq__place *at,
                                     int *why)
{
	struct wq__entry *e;

	if (wq__unlikely(item->owner != m)) {
		*why = item->owner ? WQ_EOTHERQUEUE : WQ_ESTALE;
		return NULL;
	}
	*why = WQ_ESTALE;
	if (wq__unlikely(!wq__table_find(&m->table, item->slot, at)))
		return NULL;
	e = wq__entry_at(m, (uint32_t)item->slot);
	if (!(wq__entry_state(e) & WQ_STATE_RUNNING))
		return NULL;
	if (e->u.hold.token != item->token && !WQ__BUG(STALE_DONE))
		return NULL;
	return e;
}

/*
 * Before a held key goes back into line: what is due goes first. A copy of the
 * key itself may be among it. The key still counts as held, or the queue would
 * seem idle meanwhile. But the lock is let go of, and somebody else may hand
 * the item back: NULL then, as held().
 */
static struct wq__entry *catch_up(struct wq__memory *m, const wq_item *item, wq__place *at,
                                  int *why)
{
	wq__promote_all(m);
	return held(m, item, at, why);
}

/* The hold ends: WQ_OK, WQ_QUEUED or WQ_WAITING. What is due has been seen to. */
static wq__forced int end_hold(struct wq__memory *m, bool plain, const wq_item *item,
                               struct wq__entry *e, wq__place at)
{
	uint32_t id = (uint32_t)item->slot;
	uint32_t watched =
	    WQ__WATCHED | WQ__PATIENT | (WQ__BUG(GATE_NOT_WOKEN) ? 0u : (uint32_t)WQ__GATED);
	int rc = WQ_OK;

	if (wq__unlikely(wq__flags_of(m, plain) & WQ__METERED))
		wq__meter_end(m, e, true);
	wq__hold_over(m, item);
	if (wq__unlikely(e->bits & WQ_STATE_DIRTY)) {
		m->ndirty--;
		if (!WQ__BUG(LOST_READD) &&
		    !(WQ__BUG(SHUTDOWN_DROPS_DIRTY) && m->flags & WQ__SHUT)) {
			wq__ready_push(m, plain, e, id, WQ_TAIL);
			rc = WQ_QUEUED;
		}
	} else if (wq__unlikely(e->bits & WQ_STATE_WAITING)) {
		wq__entry_set_state(e, WQ_STATE_WAITING | (e->bits & WQ__BESIDE));
		rc = WQ_WAITING;
	}
	if (wq__unlikely(rc == WQ_OK && (e->bits & WQ__BESIDE || wq__bears(m, e)))) {
		wq__vanish(m, e, item->slot);
	} else if (wq__likely(rc == WQ_OK)) {
		wq__table_remove_at(&m->table, at);
		wq__slab_free(&m->slab, id);
	}
	if (wq__unlikely(wq__flags_of(m, plain) & watched))
		wq__watch_hold_end(m, id, WQ__ENDED, rc != WQ_QUEUED);
	return rc;
}

/* An item was handed back that is not held. */
static wq__cold int stale(struct wq__memory *m, int why)
{
	if (m->flags & WQ__METERED)
		m->meter->stale++;
	return why;
}

/* The same, or an error. */
static wq__apart int done_special(struct wq__memory *m, const wq_item *item)
{
	wq__place at;
	int rc;
	struct wq__entry *e = held(m, item, &at, &rc);

	if (wq__unlikely(!e))
		return stale(m, rc);
	if (wq__unlikely(item->token == m->sample))
		wq__sample_end(m);
	if (m->flags & WQ__TIMED && (m->flags & WQ__WATCHED || e->bits & COMES_BACK)) {
		e = catch_up(m, item, &at, &rc);
		if (!e)
			return stale(m, rc);
	}
	return end_hold(m, false, item, e, at);
}

/* The hold ends, of a queue with nothing but keys that wait. */
static wq__forced int end_plain(struct wq__memory *m, const wq_item *item, struct wq__entry *e,
                                wq__place at)
{
	if (wq__unlikely(e->bits & COMES_BACK && m->flags & WQ__TIMED))
		return done_special(m, item);
	if (wq__unlikely(item->token == m->sample))
		wq__sample_end(m);
	return end_hold(m, true, item, e, at);
}

static wq__forced int done_plain(struct wq__memory *m, const wq_item *item)
{
	wq__place at;
	int rc;
	struct wq__entry *e = held(m, item, &at, &rc);

	return wq__likely(e != NULL) ? end_plain(m, item, e, at) : rc;
}

/* ---- for turn.c and remember.c ------------------------------------------- */

struct wq__entry *wq__held(struct wq__memory *m, const wq_item *item, int *why)
{
	wq__place at;
	struct wq__entry *e = held(m, item, &at, why);

	if (e)
		*why = WQ_OK;
	return e;
}

/* Without letting go of the lock: what is due has been promoted. */
int wq__end_hold(struct wq__memory *m, const wq_item *item, struct wq__entry *e)
{
	wq__place at;

	if (item->token == m->sample)
		wq__sample_end(m);
	wq__table_find(&m->table, item->slot, &at);
	return end_hold(m, false, item, e, at);
}

/* Done, and nothing is remembered of its failures. */
int wq__done_well(struct wq__memory *m, const wq_item *item)
{
	wq__place at;
	int rc;
	struct wq__entry *e = held(m, item, &at, &rc);

	if (wq__unlikely(!e))
		return stale(m, rc);
	if (wq__unlikely(wq__bears(m, e)))
		wq__forget_failures(m, e);
	return wq__plain_out(m) ? end_plain(m, item, e, at) : done_special(m, item);
}

void wq__take(struct wq__memory *m, wq_item *item)
{
	if (wq__plain_out(m))
		take(m, true, item, sizeof *item);
	else
		take(m, false, item, sizeof *item);
}

/*
 * In an order of the user's a key that has come due may go before those in line.
 * A metered queue knows the time anyway: keys enter the line when they come due,
 * and how late they did does not depend on who looked at the queue.
 */
static inline void before_pop(struct wq__memory *m)
{
	if (wq__likely(!(m->flags & WQ__TIMED)))
		return;
	if (m->flags & WQ__ORDERED)
		wq__promote_all(m);
	else if (m->flags & WQ__METERED)
		wq__tick(m);
}

/*
 * Every Get wakes the next if keys are left, whatever it answers itself: it
 * may have been picked for a key and found its time up.
 */
static inline struct wq__waiter *pass_on(struct wq__memory *m, int rc)
{
	if (WQ__BUG(WAKE_NOT_PASSED) || (WQ__BUG(TIMEOUT_EATS_WAKE) && rc == WQ_ETIMEDOUT))
		return NULL;
	return wq__pick(m);
}

#ifdef WQ_SIM
#define pass_on(m, rc) (WQ__LOST("pass_on") ? NULL : (pass_on)(m, rc))
#endif

bool wq__ready_now(struct wq__memory *m)
{
	before_pop(m);
	return m->nready > 0;
}

static inline int get_one(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	int rc = WQ_OK;

	before_pop(m);
	if (m->nready == 0)
		rc = wq__await_ready(m, deadline_ns, NULL, 0);
	if (wq__likely(rc == WQ_OK))
		take(m, false, item, sizeof *item);
	return rc;
}

/* Whether anything is due, and the stamp, are one look at the clock. */
static wq__cold int get_one_timed(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	wq__keep_time(m);

	int rc = get_one(m, item, deadline_ns);

	wq__let_time_go(m);
	return rc;
}

/* The lock is held, and let go of. */
static wq__apart int get_special(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	struct wq__waiter *w;
	int rc;

	if (wq__unlikely(m->flags & WQ__TIMED) && m->flags & WQ__METERED)
		rc = get_one_timed(m, item, deadline_ns);
	else
		rc = get_one(m, item, deadline_ns);
	w = pass_on(m, rc);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

/* The lock is held, and let go of. A key is ready. */
static wq__forced int get_plain(struct wq__memory *m, wq_item *item)
{
	struct wq__waiter *w;

	take(m, true, item, sizeof *item);
	w = pass_on(m, WQ_OK);
	wq__whole_unlock(m);
	wq__wake(w);
	return WQ_OK;
}

int wq__mem_get(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l) {
		wq__lock_acquire(&l->lock);
		if (wq__lane_get(m, l, item, deadline_ns, NULL, 0) == WQ_OK)
			return WQ_OK;
		return get_special(m, item, deadline_ns);
	}
	wq__whole_lock(m);
	if (wq__plain_out(m) && wq__likely(m->nready > 0))
		return get_plain(m, item);
	return get_special(m, item, deadline_ns);
}

/* The queue is whole, and let go of. */
static wq__forced int done_whole(struct wq__memory *m, const wq_item *item)
{
	struct wq__waiter *w = NULL;
	int rc = wq__plain_out(m) ? done_plain(m, item) : done_special(m, item);

	if (rc != WQ_OK && !WQ__BUG(READD_NO_WAKE))
		w = wq__pick(m);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

int wq__mem_done(void *state, const wq_item *item)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l) {
		wq__lock_acquire(&l->lock);
		if (wq__lane_done(m, l, item)) {
			wq__lock_release(&l->lock);
			return WQ_OK;
		}
		wq__whole_up(m, l);
	} else {
		wq__whole_lock(m);
	}
	return done_whole(m, item);
}

/* The lock is held, and let go of. */
static wq__apart int next_special(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	struct wq__waiter *w = NULL;

	wq__keep_time(m);

	int rc = done_special(m, item);

	if (wq__likely(rc >= 0)) {
		rc = get_one(m, item, deadline_ns);
		w = pass_on(m, rc);
	}
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

static int next_whole(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	if (!wq__plain_out(m))
		return next_special(m, item, deadline_ns);

	int rc = done_plain(m, item);

	if (wq__likely(rc >= 0 && m->nready > 0))
		return get_plain(m, item);
	if (rc >= 0)
		return get_special(m, item, deadline_ns);
	wq__whole_unlock(m);
	return rc;
}

int wq__mem_next(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (!l) {
		wq__whole_lock(m);
		return next_whole(m, item, deadline_ns);
	}
	wq__lock_acquire(&l->lock);
	if (!wq__lane_done(m, l, item)) {
		wq__whole_up(m, l);
		return next_whole(m, item, deadline_ns);
	}
	if (wq__lane_get(m, l, item, deadline_ns, NULL, 0) == WQ_OK)
		return WQ_OK;
	return get_special(m, item, deadline_ns);
}

static wq_item *item_at(const wq_item *items, size_t item_size, size_t i)
{
	return (wq_item *)(uintptr_t)((const char *)items + i * item_size);
}

/* Some keys are ready. Takes what there is, at most max; the lock is held before and after. */
static int take_many(struct wq__memory *m, wq_item *items, size_t item_size, size_t max)
{
	size_t n = 0;

	while (n < max && (m->nready > 0 || wq__ready(m))) {
		if (wq__plain_out(m))
			take(m, true, item_at(items, item_size, n), item_size);
		else
			take(m, false, item_at(items, item_size, n), item_size);
		if (++n % wq__per_hold(WQ__HOLD_MAX) == 0 && n < max)
			wq__breathe(m);
	}
	return (int)n;
}

/* Asks for the table's memory for the next few items at once, instead of one after another. */
static inline __attribute__((always_inline)) void prefetch_slots(const struct wq__memory *m,
                                                                 const wq_item *items,
                                                                 size_t item_size, size_t from,
                                                                 size_t n)
{
	for (size_t i = from; i < n && i < from + AHEAD; i++)
		wq__table_prefetch(&m->table, (uint32_t)(item_at(items, item_size, i)->slot >> 32));
}

/* How many are done; *first_error is set by the first that is not. */
static int done_some(struct wq__memory *m, const wq_item *items, size_t item_size, size_t n,
                     int *outcomes, int *first_error)
{
	int done = 0;

	for (size_t i = 0; i < n; i++) {
		if (i % AHEAD == 0)
			prefetch_slots(m, items, item_size, i, n);

		const wq_item *item = item_at(items, item_size, i);
		int rc = wq__plain_out(m) ? done_plain(m, item) : done_special(m, item);

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

static int get_some(struct wq__memory *m, wq_item *items, size_t item_size, size_t max,
                    int64_t deadline_ns)
{
	before_pop(m);

	int rc = m->nready > 0 ? WQ_OK : wq__await_ready(m, deadline_ns, NULL, 0);

	return rc == WQ_OK ? take_many(m, items, item_size, max) : rc;
}

/* The end of every call on many keys. */
static void leave(struct wq__memory *m, bool got)
{
	struct wq__wakes wakes = {.n = 0};

	if (!(got && WQ__BUG(MANY_NOT_PASSED)))
		wq__pick_many(m, &wakes);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
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
                             size_t item_size, size_t n, int *outcomes)
{
	size_t i = 0;

	while (i < n && wq__lane_done(m, l, item_at(items, item_size, i))) {
		if (outcomes)
			outcomes[i] = WQ_OK;
		if (++i % wq__per_hold(WQ__HOLD_MAX) == 0 && i < n)
			breathe_back(l);
	}
	return i;
}

/* What is in the lane's line, at most max; the back lock is held. */
static size_t lane_take_some(struct wq__memory *m, struct wq__lane *l, wq_item *items,
                             size_t item_size, size_t max)
{
	size_t i = 0;

	while (i < max) {
		wq_item *item = item_at(items, item_size, i);

		if (!wq__lane_take(m, l, item))
			break;
		if (wq__unlikely(item_size > sizeof *item))
			memset(item + 1, 0, item_size - sizeof *item);
		if (++i % wq__per_hold(WQ__HOLD_MAX) == 0 && i < max)
			breathe_back(l);
	}
	return i;
}

/* The queue is whole, and let go of. */
static int get_many_whole(struct wq__memory *m, wq_item *items, size_t item_size, size_t max,
                          int64_t deadline_ns)
{
	wq__keep_time(m);

	int rc = get_some(m, items, item_size, max, deadline_ns);

	leave(m, true);
	return rc;
}

/* The back lock is held, and let go of. Takes what is in line; waits if there is nothing. */
static int get_many_laned(struct wq__memory *m, struct wq__lane *l, wq_item *items,
                          size_t item_size, size_t max, int64_t deadline_ns)
{
	size_t n = lane_take_some(m, l, items, item_size, max);

	if (n > 0 && (n == max || !atomic_load_explicit(&l->come, memory_order_relaxed))) {
		wq__lock_release(&l->lock);
		return (int)n;
	}
	if (n == 0 && wq__lane_get(m, l, items, deadline_ns, NULL, 0) == WQ_OK) {
		if (item_size > sizeof *items)
			memset(items + 1, 0, item_size - sizeof *items);
		return 1;
	}
	if (n > 0)
		wq__whole_up(m, l);

	int rc = get_many_whole(m, item_at(items, item_size, n), item_size, max - n,
	                        n > 0 ? WQ_NOWAIT : deadline_ns);

	return n > 0 ? (int)n + (rc > 0 ? rc : 0) : rc;
}

int wq__mem_get_many(void *state, wq_item *items, size_t item_size, size_t max, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l) {
		wq__lock_acquire(&l->lock);
		return get_many_laned(m, l, items, item_size, max, deadline_ns);
	}
	wq__whole_lock(m);
	return get_many_whole(m, items, item_size, max, deadline_ns);
}

int wq__mem_done_many(void *state, const wq_item *items, size_t item_size, size_t n, int *outcomes)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);
	int error = WQ_OK;
	size_t first = 0;

	if (l) {
		wq__lock_acquire(&l->lock);
		first = lane_done_some(m, l, items, item_size, n, outcomes);
		if (first == n) {
			wq__lock_release(&l->lock);
			return (int)n;
		}
		wq__whole_up(m, l);
	} else {
		wq__whole_lock(m);
	}
	wq__keep_time(m);

	int done = done_some(m, item_at(items, item_size, first), item_size, n - first,
	                     outcomes ? outcomes + first : NULL, &error);

	leave(m, false);
	return (int)first + done;
}

int wq__mem_next_many(void *state, wq_item *items, size_t item_size, size_t n, size_t max,
                      int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);
	int rc = WQ_OK;
	size_t first = 0;

	if (l) {
		wq__lock_acquire(&l->lock);
		first = lane_done_some(m, l, items, item_size, n, NULL);
		if (first == n)
			return get_many_laned(m, l, items, item_size, max, deadline_ns);
		wq__whole_up(m, l);
	} else {
		wq__whole_lock(m);
	}
	wq__keep_time(m);
	done_some(m, item_at(items, item_size, first), item_size, n - first, NULL, &rc);
	if (rc == WQ_OK)
		rc = get_some(m, items, item_size, max, deadline_ns);
	leave(m, true);
	return rc;
}

static int requeue_locked(struct wq__memory *m, const wq_item *item, enum wq_where where)
{
	wq__place at;
	int rc;
	struct wq__entry *e = held(m, item, &at, &rc);

	if (!e)
		return stale(m, rc);
	if (item->token == m->sample)
		wq__sample_end(m);
	e = catch_up(m, item, &at, &rc);
	if (!e)
		return stale(m, rc);
	if (m->flags & WQ__METERED) {
		wq__meter_end(m, e, false);
		if (!(e->bits & WQ_STATE_DIRTY))
			wq__meter_depth(m, 1);
	}
	if (e->bits & WQ_STATE_DIRTY)
		m->ndirty--;
	if (e->bits & WQ_STATE_WAITING)
		wq__unwait(m, e);
	wq__hold_over(m, item);
	e->added_ns = e->u.hold.since_ns;
	wq__ready_push(m, false, e, (uint32_t)item->slot, where);
	if (m->flags & WQ__WATCHED)
		wq__watch_hold_end(m, (uint32_t)item->slot, WQ__GIVEN_BACK, false);
	return WQ_QUEUED;
}

int wq__mem_requeue(void *state, const wq_item *item, enum wq_where where)
{
	struct wq__memory *m = state;
	struct wq__waiter *w = NULL;

	wq__whole_lock(m);

	int rc = requeue_locked(m, item, where);

	if (rc == WQ_QUEUED && !WQ__BUG(REQUEUE_NO_WAKE))
		w = wq__pick(m);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

/* Holds have no end of their own here, so extend and lost only look. */
static int look_at_hold(struct wq__memory *m, const wq_item *item)
{
	wq__place at;
	int rc;

	wq__whole_lock(m);
	if (held(m, item, &at, &rc))
		rc = WQ_OK;
	wq__whole_unlock(m);
	return rc;
}

int wq__mem_extend(void *state, const wq_item *item, int64_t span_ns)
{
	(void)span_ns;
	return look_at_hold(state, item);
}

int wq__mem_lost(void *state, const wq_item *item)
{
	return look_at_hold(state, item);
}
