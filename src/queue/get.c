/*
 * Keys go out and come back: get, done, both in one step, requeue.
 *
 * An item names its slot in the table, hash and id. Done looks for exactly
 * this slot, without touching the memory behind it; if it is there the entry
 * is live, and its token tells whether this hold is the current one.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "queue/memory.h"

enum {
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
	assert(l);

	uint32_t id = wq__line_at(l, 0);

	if (!id) {
		wq__line_refill(m, l);
		id = wq__line_at(l, 0);
	}
	wq__line_pop(l);
	l->known -= l->known > 0;
	m->nready--;
	return id;
}

static wq__forced uint32_t pop_fifo(struct wq__memory *m)
{
	uint32_t id = m->head;

	m->head = wq__entry_at(m, id)->u.line.next;
	if (m->head == 0) {
		m->tail = m->scout = m->scout_ahead = 0;
	} else {
		if (m->scout_ahead == 0)
			m->scout = m->head;
		else
			m->scout_ahead--;
		scout_on(m);
	}
	m->nready--;
	return id;
}

/* Cancelled keys that the order could not remove are skipped, and gone then. */
static uint32_t pop_order(struct wq__memory *m)
{
	for (;;) {
		struct wq__entry *e =
		    wq__container_of(m->order.pop(m->order.ctx), struct wq__entry, u.node);
		uint32_t id = id_of(m, e);

		if (!wq__entry_is_ghost(e)) {
			m->nready--;
			return id;
		}
		wq__vanish_ghost(m, e, (uint64_t)e->hash << 32 | id);
	}
}

static wq__apart uint32_t pop_special(struct wq__memory *m)
{
	if (m->flags & WQ__RANKED)
		return wq__rank_pop(m);
	return m->flags & WQ__ORDERED ? pop_order(m) : pop_lane(m, wq__lane_of(m));
}

/* Where an entry names its holder's copies of the key, and of the value. */
static char **copy_of(const struct wq__memory *m, struct wq__entry *e)
{
	return (char **)(void *)((char *)e + wq__entry_room_offset(wq__entry_len(e)) + m->copy_at);
}

/*
 * A tool watches memory. The item's key and value are copies that live as long as the hold: whoever
 * reads them afterwards is told where they were given back, instead of reading another key. They
 * are malloc's, whatever the allocator: that is what tools know.
 */
static wq__cold void copy_key(const struct wq__memory *m, struct wq__entry *e, wq_item *item)
{
	char **copies = copy_of(m, e);

	copies[0] = malloc(item->len + 1);
	if (copies[0])
		item->key = memcpy(copies[0], e->key, item->len + 1);
	if (!(m->flags & WQ__VALUED))
		return;
	copies[1] = item->value ? malloc(item->value_len + 1) : NULL;
	if (copies[1])
		item->value = memcpy(copies[1], item->value, item->value_len + 1);
}

/* The hold ends. */
static wq__cold void free_copy(const struct wq__memory *m, struct wq__entry *e)
{
	free(copy_of(m, e)[0]);
	if (m->flags & WQ__VALUED)
		free(copy_of(m, e)[1]);
}

/* What the hold had beside the key. */
static wq__cold void free_held(struct wq__memory *m, struct wq__entry *e)
{
	if (m->flags & WQ__COPIES)
		free_copy(m, e);
	if (m->flags & WQ__RICH)
		wq__drop_held(m, e);
}

/* It is held, in a queue that counts or asks. */
static wq__apart void started(struct wq__memory *m, struct wq__entry *e, wq_item *item)
{
	if (m->flags & WQ__METERED)
		wq__meter_start(m, e, (uint32_t)item->slot);
	if (wq__likely(!(m->flags & (WQ__ASKS | WQ__COPIES | WQ__RICH))))
		return;
	if (m->flags & WQ__ASKS)
		item->attempts = wq__requeues_of(m, e) + 1;
	if (m->flags & WQ__RICH)
		wq__hold_rich(m, e, item);
	if (m->flags & WQ__COPIES)
		copy_key(m, e, item);
}

/* The key with these bits has left the line, and is held from now on. The queue is whole. */
static wq__forced void hold(struct wq__memory *m, struct wq__entry *e, uint32_t id, unsigned bits,
                            uint64_t token, wq_item *item)
{
	int64_t added_ns = e->added_ns;

	m->nrunning++;
	wq__entry_set_bits(e, WQ_STATE_RUNNING | (bits & (WQ__BESIDE | WQ__LEN_HIGH)));
	e->u.hold.token = token;
	e->u.hold.since_ns = added_ns;
	wq__item_fill(m, e, id, bits, token, added_ns, item);
}

/*
 * Some holds are timed, and then it is time to see whether the queue needs a lane. The caller
 * releases the front lock and not, as wq__whole_unlock() would, the new lane's.
 */
static wq__apart void sample_alone(struct wq__memory *m, uint64_t token)
{
	wq__sample_begin(m, token);
	wq__lane_consider(m);
}

static inline bool is_sampled(const struct wq__memory *m)
{
	return wq__unlikely(m->token / WQ__HOLDS % WQ__SAMPLE == 0);
}

/* Hand out the next ready key; there is one. The queue is whole. */
static wq__forced void take(struct wq__memory *m, wq_item *item)
{
	const uint32_t flags = m->flags;
	uint32_t id = wq__unlikely(flags & (WQ__ORDERED | WQ__LANED | WQ__RANKED)) ? pop_special(m)
	                                                                           : pop_fifo(m);
	struct wq__entry *e = wq__entry_at(m, id);

	if (wq__unlikely(e->bits & WQ__BESIDE))
		wq__merge_reminder(m, e);
	hold(m, e, id, e->bits, wq__new_token(m, id), item);
	if (wq__unlikely(flags & (WQ__METERED | WQ__ASKS | WQ__COPIES | WQ__RICH)))
		started(m, e, item);
	if (is_sampled(m))
		wq__sample_begin(m, item->token);
}

/* The same in a queue like most: see wq__special(). */
static wq__forced void take_plain(struct wq__memory *m, wq_item *item)
{
	uint32_t id = pop_fifo(m);
	struct wq__entry *e = wq__entry_at(m, id);

	m->token += WQ__HOLDS;
	hold(m, e, id, e->bits, m->token, item);
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
static wq__cold struct wq__entry *catch_up(struct wq__memory *m, const wq_item *item, wq__place *at,
                                           int *why)
{
	wq__promote_all(m);
	return held(m, item, at, why);
}

/* The hold ends, and the key comes back, or something is remembered of it. */
static wq__apart int end_hold_kept(struct wq__memory *m, const wq_item *item, struct wq__entry *e)
{
	if (wq__unlikely(m->flags & (WQ__COPIES | WQ__RICH)))
		free_held(m, e);
	if (e->bits & WQ_STATE_DIRTY) {
		m->ndirty--;
		if (!WQ__BUG(LOST_READD) &&
		    !(WQ__BUG(SHUTDOWN_DROPS_DIRTY) && m->flags & WQ__SHUT)) {
			wq__ready_push(m, e, (uint32_t)item->slot, WQ_TAIL);
			return WQ_QUEUED;
		}
	} else if (e->bits & WQ_STATE_WAITING) {
		wq__entry_set_state(e, WQ_STATE_WAITING | (e->bits & WQ__BESIDE));
		return m->flags & WQ__CUT && !WQ__BUG(LEFT_UNSAID) ? WQ_LEFT : WQ_DELAYED;
	}
	wq__vanish(m, e, item->slot);
	return WQ_OK;
}

/* The hold ends: WQ_OK, WQ_QUEUED, WQ_DELAYED or WQ_LEFT. What is due has been seen to. */
static inline int end_hold(struct wq__memory *m, const wq_item *item, struct wq__entry *e,
                           wq__place at)
{
	uint32_t watched =
	    WQ__WATCHED | WQ__PATIENT | (WQ__BUG(GATE_NOT_WOKEN) ? 0u : (uint32_t)WQ__GATED);
	int rc = WQ_OK;

	if (item->token == m->sample)
		wq__sample_end(m);
	if (m->flags & WQ__METERED)
		wq__meter_end(m, e, true);
	wq__hold_over(m, item);
	if (e->bits & COMES_BACK || wq__bears(m, e)) {
		rc = end_hold_kept(m, item, e);
	} else {
		if (m->flags & WQ__RICH)
			wq__rich_gone(m, e);
		wq__table_remove_at(&m->table, at);
		wq__slab_free(&m->slab, (uint32_t)item->slot);
	}
	if (m->flags & watched)
		wq__watch_hold_end(m, (uint32_t)item->slot, WQ__ENDED, rc != WQ_QUEUED);
	return rc;
}

/* An item was handed back that is not held. */
static wq__cold int stale(struct wq__memory *m, int why)
{
	if (m->flags & WQ__METERED)
		m->meter->stale++;
	return why;
}

/* Will something enter the line, or be looked at, behind what is due before? */
static bool is_behind(const struct wq__memory *m, const struct wq__entry *e)
{
	if (!(m->flags & (WQ__TIMED | WQ__PACED)))
		return false;
	return m->flags & WQ__WATCHED || e->bits & COMES_BACK || (m->rank && m->rank->grouped);
}

/* Of a queue or a key that is not like most. */
static wq__apart int done_special(struct wq__memory *m, const wq_item *item, struct wq__entry *e,
                                  wq__place at, bool well)
{
	int rc;

	if (is_behind(m, e)) {
		e = catch_up(m, item, &at, &rc);
		if (!e)
			return stale(m, rc);
	}
	if (well && wq__bears(m, e))
		wq__forget_failures(m, e);
	return end_hold(m, item, e, at);
}

/* What a done in the common case has found. */
enum found { DONE, HELD, UNKNOWN };

/*
 * The common case: a queue with no other flags than these, and a key of which nothing stays: DONE.
 * HELD: in such a queue a key of which something stays; *e and *at are set. UNKNOWN: any other.
 * Unless it is DONE nothing has changed. The queue is whole.
 */
static wq__forced enum found done_simple(struct wq__memory *m, const wq_item *item,
                                         struct wq__entry **e, wq__place *at, uint32_t flags)
{
	if (wq__unlikely(m->flags & ~flags || item->owner != m ||
	                 !wq__table_find(&m->table, item->slot, at)))
		return UNKNOWN;
	*e = wq__entry_at(m, (uint32_t)item->slot);

	unsigned bits = (*e)->bits & ~(unsigned)WQ__LEN_HIGH;

	if (wq__unlikely(!(bits & WQ_STATE_RUNNING) || (*e)->u.hold.token != item->token))
		return UNKNOWN;
	if (wq__unlikely(bits != WQ_STATE_RUNNING || item->token == m->sample ||
	                 (*e)->failures_low || (*e)->failures_high))
		return HELD;
	m->nrunning--;
	if (flags & WQ__RICH) {
		if (m->flags & WQ__VALUED)
			wq__value_free(m, &wq__carried_by(m, *e)->held);
		if (m->flags & WQ__RANKED && m->rank->grouped)
			wq__group_done(m, wq__standing_of(m, *e)->group);
	}
	wq__table_remove_at(&m->table, *at);
	wq__slab_free(&m->slab, (uint32_t)item->slot);
	return DONE;
}

/* The same for a queue like most, though keys may wait. */
static wq__forced enum found done_plain(struct wq__memory *m, const wq_item *item,
                                        struct wq__entry **e, wq__place *at)
{
	return done_simple(m, item, e, at, WQ__EXACT | WQ__LANES | WQ__TIMED);
}

/* Any case. The queue is whole. well: nothing is to be remembered of its failures. */
static int done_any(struct wq__memory *m, const wq_item *item, bool well)
{
	wq__place at;
	int rc;
	struct wq__entry *e = held(m, item, &at, &rc);

	return e ? done_special(m, item, e, at, well) : stale(m, rc);
}

static wq__forced int done(struct wq__memory *m, const wq_item *item, bool well)
{
	struct wq__entry *e;
	wq__place at;
	enum found found = done_plain(m, item, &e, &at);

	if (wq__likely(found == DONE))
		return WQ_OK;
	return found == HELD ? done_special(m, item, e, at, well) : done_any(m, item, well);
}

/* ---- for other files ------------------------------------------------------- */

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

	wq__table_find(&m->table, item->slot, &at);
	return end_hold(m, item, e, at);
}

void wq__take(struct wq__memory *m, wq_item *item)
{
	if (wq__special(m)) {
		take(m, item);
		return;
	}
	take_plain(m, item);
	if (is_sampled(m))
		wq__sample_begin(m, item->token);
}

/* The queue is whole. */
int wq__done(struct wq__memory *m, const wq_item *item)
{
	return done(m, item, false);
}

/* Done, and nothing is remembered of its failures. */
int wq__done_well(struct wq__memory *m, const wq_item *item)
{
	return done(m, item, true);
}

/*
 * By priority or in an order of the user's a key that has come due may go before those in line.
 * A metered queue knows the time anyway: keys enter the line when they come due,
 * and how late they did does not depend on who looked at the queue.
 */
bool wq__ready_now(struct wq__memory *m)
{
	if (wq__unlikely(m->flags & (WQ__TIMED | WQ__PACED))) {
		if (m->flags & (WQ__ORDERED | WQ__RANKED))
			wq__promote_all(m);
		else if (m->flags & WQ__METERED)
			wq__tick(m);
	}
	return m->nready > 0;
}

/* ---- calls ----------------------------------------------------------------- */

/*
 * A Get that may have slept wakes the next if keys are left, whatever it answers itself: it
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

/* Is the first in line the one to hand out, whatever may have come due? See wq__ready_now(). */
static inline bool may_hand_out(const struct wq__memory *m)
{
	return m->nready > 0 &&
	       (!(m->flags & WQ__TIMED) ||
	        !(m->flags & (WQ__ORDERED | WQ__METERED | WQ__RANKED))) &&
	       !(m->flags & WQ__PACED);
}

/* The queue is whole, and let go of. */
static wq__apart int get_whole(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	struct wq__waiter *w;
	int rc = WQ_OK;

	if (!wq__ready_now(m))
		rc = wq__await_ready(m, deadline_ns, NULL, 0);
	if (rc == WQ_OK)
		take(m, item);
	w = pass_on(m, rc);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

/*
 * Each call has a common case, which holds one lock and calls nothing: no lane, and a queue like
 * most. A Get that has not slept wakes nobody: if others sleep beside keys, one of them is under
 * way already and wakes the next. Everything else is in a function of its own, called last.
 */

static wq__apart int get_laned(struct wq__memory *m, struct wq__lane *l, wq_item *item,
                               int64_t deadline_ns)
{
	wq__lock_acquire(&l->lock);
	if (wq__lane_get(m, l, item, deadline_ns, NULL, 0) == WQ_OK)
		return WQ_OK;
	if (m->flags & WQ__TIMED)
		wq__keep_time(m);
	return get_whole(m, item, deadline_ns);
}

/* The front lock is held. */
static wq__apart int get_special(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	wq__whole_from_front(m);
	if (may_hand_out(m)) {
		take(m, item);
		wq__whole_unlock(m);
		return WQ_OK;
	}
	/* Whether anything is due, and the stamp, are one look at the clock. */
	if (m->flags & WQ__TIMED)
		wq__keep_time(m);
	return get_whole(m, item, deadline_ns);
}

int wq__mem_get(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l)
		return get_laned(m, l, item, deadline_ns);
	wq__lock_acquire(&m->lock);
	if (wq__unlikely(wq__special(m) || m->nready == 0))
		return get_special(m, item, deadline_ns);
	take_plain(m, item);
	if (is_sampled(m))
		sample_alone(m, item->token);
	wq__lock_release(&m->lock);
	return WQ_OK;
}

/* A done has answered this. The queue is whole, and let go of. */
static int leave(struct wq__memory *m, int rc)
{
	struct wq__waiter *w = NULL;

	if (rc != WQ_OK && !WQ__BUG(READD_NO_WAKE))
		w = wq__pick(m);
	wq__whole_unlock(m);
	wq__wake(w);
	return rc;
}

static wq__apart int done_held(struct wq__memory *m, const wq_item *item, struct wq__entry *e,
                               wq__place at)
{
	return leave(m, done_special(m, item, e, at, false));
}

static wq__apart int done_whole(struct wq__memory *m, const wq_item *item)
{
	return leave(m, done_any(m, item, false));
}

static wq__apart int done_laned(struct wq__memory *m, struct wq__lane *l, const wq_item *item)
{
	wq__lock_acquire(&l->lock);
	if (wq__lane_done(m, l, item)) {
		wq__lock_release(&l->lock);
		return WQ_OK;
	}
	wq__whole_up(m, l);
	return done_whole(m, item);
}

/* The front lock is held. */
static wq__apart int done_front(struct wq__memory *m, const wq_item *item)
{
	wq__whole_from_front(m);
	return done_whole(m, item);
}

int wq__mem_done(void *state, const wq_item *item)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l)
		return done_laned(m, l, item);
	wq__lock_acquire(&m->lock);

	struct wq__entry *e;
	wq__place at;
	enum found found = done_plain(m, item, &e, &at);

	if (wq__unlikely(found != DONE))
		return found == HELD ? done_held(m, item, e, at) : done_front(m, item);
	wq__lock_release(&m->lock);
	return WQ_OK;
}

/* The queue is whole, and let go of. */
static wq__apart int next_whole(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	int rc;

	wq__keep_time(m);
	rc = done_any(m, item, false);
	if (rc >= 0)
		return get_whole(m, item, deadline_ns);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	return rc;
}

static wq__apart int next_laned(struct wq__memory *m, struct wq__lane *l, wq_item *item,
                                int64_t deadline_ns)
{
	wq__lock_acquire(&l->lock);
	if (!wq__lane_done(m, l, item)) {
		wq__whole_up(m, l);
		return next_whole(m, item, deadline_ns);
	}
	if (wq__lane_get(m, l, item, deadline_ns, NULL, 0) == WQ_OK)
		return WQ_OK;
	return get_whole(m, item, deadline_ns);
}

/* The front lock is held. */
static wq__apart int next_front(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	wq__whole_from_front(m);
	return next_whole(m, item, deadline_ns);
}

int wq__mem_next(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	if (l)
		return next_laned(m, l, item, deadline_ns);
	wq__lock_acquire(&m->lock);

	struct wq__entry *e;
	wq__place at;

	if (wq__unlikely(wq__special(m) || done_plain(m, item, &e, &at) != DONE))
		return next_front(m, item, deadline_ns);
	if (wq__unlikely(m->nready == 0))
		return get_whole(m, item, deadline_ns);
	take_plain(m, item);
	if (is_sampled(m))
		sample_alone(m, item->token);
	wq__lock_release(&m->lock);
	return WQ_OK;
}

/* ---- queues with riches and nothing else ------------------------------------ */

static wq__forced uint32_t pop_ranked(struct wq__memory *m)
{
	struct wq__rank *r = m->rank;
	struct wq__line *line;
	uint32_t id;

	if (wq__unlikely(r->grouped || r->levels.nearly > 0))
		return wq__rank_pop(m);
	line = (struct wq__line *)wq__levels_top(&r->levels);
	assert(line);
	id = line->head;

	const struct wq__entry *e = wq__entry_at(m, id);

	/* Ask for the memory of those that come next, as scout_on() does. */
	if (e->u.line.next) {
		const struct wq__entry *next = wq__entry_at(m, e->u.line.next);

		if (next->u.line.next)
			wq__prefetch_to_write(wq__entry_at(m, next->u.line.next));
		wq__table_prefetch(&m->table, next->hash);
	}
	wq__line_shift(&r->of, &r->levels, line, &e->u.line);
	line->keys--;
	m->nready--;
	return id;
}

static wq__forced void take_light(struct wq__memory *m, wq_item *item)
{
	uint32_t id = m->flags & WQ__RANKED ? pop_ranked(m) : pop_fifo(m);
	struct wq__entry *e = wq__entry_at(m, id);

	/* There is no reminder beside it: nothing waits. */
	m->token += WQ__HOLDS;
	hold(m, e, id, e->bits, m->token, item);
	wq__hold_rich(m, e, item);
	if (is_sampled(m))
		wq__sample_begin(m, item->token);
}

int wq__light_get(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;

	wq__lock_acquire(&m->lock);
	if (wq__unlikely(!wq__light(m) || m->nready == 0))
		return wq__rich_get(m, item, deadline_ns);
	take_light(m, item);
	wq__lock_release(&m->lock);
	return WQ_OK;
}

/* A group may have a place for its next key. */
static wq__forced void leave_light(struct wq__memory *m)
{
	struct wq__waiter *w = WQ__BUG(GROUP_FREED_NO_WAKE) ? NULL : wq__pick(m);

	wq__lock_release(&m->lock);
	wq__wake(w);
}

static wq__forced bool done_light(struct wq__memory *m, const wq_item *item)
{
	struct wq__entry *e;
	wq__place at;

	return done_simple(m, item, &e, &at, WQ__LIGHT) == DONE;
}

int wq__light_done(void *state, const wq_item *item)
{
	struct wq__memory *m = state;

	wq__lock_acquire(&m->lock);
	if (wq__unlikely(!done_light(m, item)))
		return wq__rich_done(m, item);
	leave_light(m);
	return WQ_OK;
}

int wq__light_next(void *state, wq_item *item, int64_t deadline_ns)
{
	struct wq__memory *m = state;

	wq__lock_acquire(&m->lock);
	if (wq__unlikely(!done_light(m, item)))
		return wq__rich_next(m, item, deadline_ns);
	if (wq__unlikely(m->nready == 0))
		return wq__rich_get(m, item, deadline_ns);
	take_light(m, item);
	leave_light(m);
	return WQ_OK;
}

static int requeue_locked(struct wq__memory *m, const wq_item *item, enum wq_where where)
{
	wq__place at;
	int64_t since_ns;
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
	since_ns = e->u.hold.since_ns;
	if (m->flags & WQ__RICH)
		wq__keep_hold(m, e);
	if (wq__unlikely(m->flags & (WQ__COPIES | WQ__RICH)))
		free_held(m, e);
	if (e->bits & WQ_STATE_DIRTY)
		m->ndirty--;
	if (e->bits & WQ_STATE_WAITING)
		wq__unwait(m, e);
	if (m->flags & WQ__RANKED)
		wq__rank_give_back(m, e);
	wq__hold_over(m, item);
	e->added_ns = since_ns;
	wq__ready_push(m, e, (uint32_t)item->slot, where);
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
