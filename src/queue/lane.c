/* Adds, Gets and dones that take one of the two locks. See lane.h. */
#include "queue/memory.h"

#include <assert.h>

enum {
	AHEAD = 16,     /* ids of the line that are looked at together */
	KEY_MAX = 1024, /* a longer key is not left in the table when it is done */
#ifdef WQ_SIM
	PACE = 4, /* few adds see a lot */
	AT_ONCE = 1,
	MOVE_UP = 2,
#else
	PACE = 16,   /* adds from one look at the records to the next */
	AT_ONCE = 2, /* records that an add sees to */
	MOVE_UP = 8, /* keys that an add moves up into the line */
#endif
	FETCH_AHEAD = 8, /* records whose memory is asked for */
	/*
	 * With so many keys in line, an add in so many gives its CPU to whoever else wants it.
	 * Gets and dones of a key take longer than its add: with more threads than CPUs, of which
	 * all get the same time, the line would grow until it is in no cache any more.
	 */
	DEEP = 4096,
	YIELD_PACE = 64,
	UNKNOWN = -1, /* a time that was not asked for yet */
};

static const unsigned no_len = 0xffu & ~(unsigned)WQ__LEN_HIGH;

/* ---- add: front lock ------------------------------------------------------ */

static wq__forced void fetch_record(const struct wq__memory *m, const struct wq__lane *l,
                                    uint32_t at)
{
	uint64_t slot = l->done[at % WQ__DONES].slot;

	wq__prefetch_to_write(wq__entry_at(m, (uint32_t)slot));
	wq__table_prefetch(&m->table, (uint32_t)(slot >> 32));
}

/*
 * See to a few records. Nothing is read here that was not asked for some adds ago, as a
 * locked instruction waits for reads that came before it, but not for prefetches.
 */
void wq__lane_sweep(struct wq__memory *m, struct wq__lane *l)
{
	uint32_t at = atomic_load_explicit(&l->done_head, memory_order_relaxed);
	uint32_t n = l->adds++ % PACE;

	if (at != l->done_known) {
		for (int i = 0; i < AT_ONCE && at != l->done_known; i++, at++) {
			if (l->done_known - at > FETCH_AHEAD)
				fetch_record(m, l, at + FETCH_AHEAD);
			wq__see_to_done(m, &l->done[at % WQ__DONES]);
		}
		/* release: pairs with the acquire of who needs the place */
		atomic_store_explicit(&l->done_head, at, memory_order_release);
	} else if (n == PACE - PACE / 4) {
		wq__prefetch(&l->done_tail);
	} else if (n == 0 && l->done_next == at) {
		/* acquire: pairs with the release in wq__dones_put() */
		l->done_next = atomic_load_explicit(&l->done_tail, memory_order_acquire);
		for (uint32_t i = at; (int32_t)(l->done_next - i) > 0; i += 4)
			wq__prefetch(&l->done[i % WQ__DONES]);
	} else if (n == PACE / 4 && l->done_next != at) {
		l->done_known = l->done_next;
		for (uint32_t i = at; i != l->done_known && i - at < FETCH_AHEAD; i++)
			fetch_record(m, l, i);
	}
}

/*
 * Keys are ready behind the line: move some of them up, so that no Get has to. How far the
 * Gets have come is looked at now and then only, as it means to take a line from their cache.
 */
static wq__apart void move_up(struct wq__memory *m, struct wq__lane *l)
{
	if (l->tail - l->head_seen == WQ__LINE && l->adds % (PACE / 2) == 0)
		l->head_seen = atomic_load_explicit(&l->head, memory_order_acquire);
	for (int i = 0; i < MOVE_UP && m->head && l->tail - l->head_seen < WQ__LINE; i++)
		wq__line_move(m, l);
}

/* May this add be made beside Gets and dones? If so, *when is the time, or not known yet. */
static bool is_plain(const struct wq__memory *m, int64_t *when)
{
	const uint32_t plain = WQ__EXACT | WQ__TIMED | WQ__NEVER | WQ__LANES | WQ__LANED;

	*when = UNKNOWN;
	if (wq__unlikely(m->flags & ~plain))
		return false;
	if (wq__likely(!(m->flags & WQ__TIMED)))
		return true;
	*when = wq__now(m);
	if (WQ__BUG(LANE_ADD_EARLY))
		return true;
	return *when < m->next_due_ns && !m->due_left;
}

static void put(struct wq__memory *m, struct wq__entry *e, uint32_t id, unsigned bits)
{
	struct wq__lane *l = wq__lane_of(m);

	assert(l);
	wq__entry_set_bits(e, (bits & WQ__LEN_HIGH) | WQ_STATE_QUEUED);
	m->nready++;
	if (!wq__lane_takes(m, l, id, WQ_TAIL))
		wq__list_push(m, e, id, WQ_TAIL);
	wq__effect();
}

static int add_known(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t when)
{
	uint8_t bits = wq__bits_look(&e->bits);

	for (;;) {
		switch (bits & no_len) {
		case WQ_STATE_QUEUED:
		case WQ_STATE_RUNNING | WQ_STATE_DIRTY:
			wq__effect();
			return WQ_MERGED;
		case WQ__FINISHED:
			e->added_ns = when == UNKNOWN ? wq__stamp(m) : when;
			put(m, e, id, bits);
			return WQ_QUEUED;
		case WQ_STATE_RUNNING:
			if (!wq__bits_mark(&e->bits, &bits))
				continue;
			wq__effect();
			/* Whoever ends the hold finds the mark and needs the front lock first. */
			e->added_ns = when == UNKNOWN ? wq__stamp(m) : when;
			m->ndirty++;
			return WQ_MARKED;
		default:
			return WQ__WHOLE;
		}
	}
}

/* There is no memory; but finished keys that are in the table still may have some. */
static wq__cold int no_memory(const struct wq__lane *l)
{
	return atomic_load_explicit(&l->done_head, memory_order_relaxed) ==
	               atomic_load_explicit(&l->done_tail, memory_order_relaxed)
	           ? WQ_ENOMEM
	           : WQ__WHOLE;
}

/* The front lock is held. WQ__WHOLE: nothing has changed. */
int wq__lane_add_one(struct wq__memory *m, uint32_t hash, const void *key, size_t len)
{
	wq__probe p = wq__table_probe(&m->table, hash);
	struct wq__entry *e;
	int64_t when;
	uint32_t id;

	if (!is_plain(m, &when))
		return WQ__WHOLE;
	while ((id = wq__probe_next(&p)) != 0) {
		e = wq__entry_at(m, id);
		if (wq__entry_is(e, key, len))
			return add_known(m, e, id, when);
	}
	e = wq__new_entry(m, wq__probe_end(&p), hash, key, len, 0, 0, &id);
	if (wq__unlikely(!e))
		return no_memory(wq__lane_of(m));
	e->added_ns = when == UNKNOWN ? wq__stamp(m) : when;
	put(m, e, id, e->bits);
	return WQ_QUEUED;
}

/* The front lock is held, and let go of. WQ__WHOLE: it was not, and both are held now. */
int wq__lane_add(struct wq__memory *m, struct wq__lane *l, uint32_t hash, const void *key,
                 size_t len)
{
	int rc = wq__lane_add_one(m, hash, key, len);
	struct wq__waiter *w;

	if (wq__unlikely(rc == WQ__WHOLE)) {
		wq__whole_anew(m);
		return rc;
	}
	w = rc == WQ_QUEUED && !WQ__BUG(ADD_NO_WAKE) ? wq__pick(m) : NULL;
	wq__lane_sweep(m, l);

	bool deep = false;

	if (wq__unlikely(m->head != 0)) {
		move_up(m, l);
		deep = l->adds % YIELD_PACE == 0 && wq__about_ready(m) > DEEP;
	}
	wq__lock_release(&m->lock);
	wq__wake(w);
	if (wq__unlikely(deep))
		wq__yield();
	return rc;
}

/* ---- get: back lock ------------------------------------------------------- */

static inline bool is_plain_out(const struct wq__memory *m)
{
	const uint32_t plain = WQ__EXACT | WQ__TIMED | WQ__NEVER | WQ__LANES | WQ__LANED;

	return wq__likely((m->flags & ~plain) == 0);
}

/* Is there anything in line? Looks at several places together, and asks for their memory. */
static inline bool some(struct wq__memory *m, struct wq__lane *l)
{
	uint32_t id;

	if (wq__likely(l->known > 0))
		return true;
	while (l->known < AHEAD && (id = wq__line_at(l, l->known)) != 0) {
		wq__prefetch_to_write(wq__entry_at(m, id));
		l->known++;
	}
	return l->known > 0;
}

/* The back lock is held. False: nothing is in line, or the queue has to be whole for it. */
bool wq__lane_take(struct wq__memory *m, struct wq__lane *l, wq_item *item)
{
	if (!is_plain_out(m) || !some(m, l))
		return false;

	uint32_t id = wq__line_at(l, 0);
	struct wq__entry *e = wq__entry_at(m, id);
	unsigned bits = atomic_load_explicit(&e->bits, memory_order_relaxed);
	uint64_t token;

	if (wq__unlikely((bits & no_len) != WQ_STATE_QUEUED))
		return false;
	token = wq__hold_new(l, m->token += WQ__HOLDS, id);
	wq__item_fill(m, e, id, bits, token, e->added_ns, item);
	e->u.hold.token = token;
	e->u.hold.since_ns = e->added_ns;
	l->known--;
	wq__line_pop(l);
	atomic_store_explicit(&l->taken, atomic_load_explicit(&l->taken, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	m->nrunning++;
	/* From here on an add may mark it, and write to added_ns. */
	wq__bits_take(&e->bits, (uint8_t)((bits & WQ__LEN_HIGH) | WQ_STATE_RUNNING));
	wq__effect();
	if (WQ__BUG(LANE_LATE_STAMP)) {
		wq__point();
		item->added_ns = e->added_ns;
	}
	if (wq__unlikely(token / WQ__HOLDS % WQ__SAMPLE == 0))
		wq__sample_begin(m, token);
	return true;
}

/* ---- done: back lock ------------------------------------------------------ */

/* True: the key is finished. False: nothing has changed, and the queue has to be whole for it. */
bool wq__lane_done(struct wq__memory *m, struct wq__lane *l, const wq_item *item)
{
	if (wq__unlikely((!is_plain_out(m) && !WQ__BUG(LANE_DONE_UNWATCHED)) || item->owner != m ||
	                 !wq__hold_is(l, item->token, (uint32_t)item->slot)))
		return false;

	struct wq__entry *e = wq__entry_at(m, (uint32_t)item->slot);
	unsigned bits = atomic_load_explicit(&e->bits, memory_order_relaxed);
	uint8_t held = (uint8_t)bits, finished = (uint8_t)((bits & WQ__LEN_HIGH) | WQ__FINISHED);

	if (wq__unlikely((bits & no_len) != WQ_STATE_RUNNING ||
	                 e->hash != (uint32_t)(item->slot >> 32) || e->failures_low ||
	                 e->failures_high || wq__entry_len(e) > KEY_MAX || !wq__dones_have_room(l)))
		return false;
	if (WQ__BUG(LANE_RECORD_FIRST))
		wq__dones_put(l, item->token, (uint64_t)item->slot);
	if (!wq__bits_finish(&e->bits, held, finished))
		return false;
	wq__effect();
	/* The entry is the adds' now. */
	if (!WQ__BUG(LANE_RECORD_FIRST))
		wq__dones_put(l, item->token, (uint64_t)item->slot);
	wq__hold_free(l, item->token);
	m->nrunning--;
	if (wq__unlikely(item->token == m->sample))
		wq__sample_end(m);
	return true;
}

/* ---- waiting -------------------------------------------------------------- */

static void poll(struct wq__lane *l, uint32_t place, uint32_t pauses)
{
	uint32_t looks = wq__poll_looks(pauses);

	for (uint32_t i = 0; i < looks; i++) {
		uint64_t word =
		    atomic_load_explicit(&l->line[place % WQ__LINE], memory_order_relaxed);

		/* That one, or one that came since. */
		if ((word && (int32_t)((uint32_t)(word >> 32) - (place + 1)) >= 0) ||
		    atomic_load_explicit(&l->come, memory_order_relaxed))
			return;
		WQ__PAUSE();
	}
}

/* How long this Get polls for a key; 0: not at all. */
static uint32_t may_poll(struct wq__memory *m, const struct wq__lane *l, int64_t deadline_ns)
{
	if (!is_plain_out(m) || m->flags & WQ__TIMED || l->polls || deadline_ns == WQ_NOWAIT ||
	    atomic_load_explicit(&l->come, memory_order_relaxed))
		return 0;
	return wq__spin_budget(m, deadline_ns);
}

/*
 * Nothing is in line; both locks are let go of and taken again. If others sleep, this Get
 * counts as under way, so that they are not woken meanwhile; then it makes the queue whole
 * before it leaves, and wakes the next. True: it has made it whole.
 */
static bool poll_line(struct wq__memory *m, struct wq__lane *l, uint32_t pauses)
{
	uint32_t place = atomic_load_explicit(&l->head, memory_order_relaxed);
	bool counted = atomic_load_explicit(&m->gets, memory_order_relaxed) != NULL;

	if (counted)
		atomic_fetch_add_explicit(&m->inflight, 1, memory_order_seq_cst);
	l->polls = true;
	l->inside++;
	wq__lock_release(&l->lock);
	poll(l, place, pauses);
	wq__lock_acquire(&l->lock);
	l->inside--;
	l->polls = false;
	if (!counted)
		return false;
	if (WQ__BUG(LANE_POLLER_SLIPS)) {
		m->inflight--;
		return false;
	}
	wq__whole_up(m, l);
	atomic_fetch_sub_explicit(&m->inflight, 1, memory_order_seq_cst);
	return true;
}

/* Nothing was in line. Wait for a while, if that may pay. *whole: the queue is whole now. */
void wq__lane_await(struct wq__memory *m, struct wq__lane *l, int64_t deadline_ns, bool *whole)
{
	uint32_t pauses = may_poll(m, l, deadline_ns);

	*whole = pauses > 0 && poll_line(m, l, pauses);
	if (pauses > 0 && some(m, l))
		wq__spin_paid(m);
}

/* A Get has what it wanted. The locks are let go of, and others woken if it has to be. */
void wq__lane_leave(struct wq__memory *m, struct wq__lane *l, bool whole)
{
	struct wq__wakes wakes;

	if (wq__likely(!whole)) {
		wq__lock_release(&l->lock);
		return;
	}
	wakes.n = 0;
	if (!WQ__BUG(LANE_POLLER_KEEPS))
		wq__pick_many(m, &wakes);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
}

/* A Get needs more than the lane: make the queue whole, if it is not. */
void wq__lane_give_up(struct wq__memory *m, struct wq__lane *l, bool whole)
{
	if (!whole)
		wq__lock_acquire(&m->lock);
	/* Also if it was whole: the lane may have taken some keys since. */
	wq__make_whole(m, l);
	if (!m->head)
		atomic_store_explicit(&l->come, false, memory_order_relaxed);
}

/*
 * The back lock is held. WQ_OK: *item is filled, and the lock was let go of. WQ__WHOLE: nothing
 * is in line, or the gate has changed, and the queue is whole.
 */
int wq__lane_get(struct wq__memory *m, struct wq__lane *l, wq_item *item, int64_t deadline_ns,
                 const wq_gate *gate, uint32_t seen)
{
	bool whole = false;

	for (int tries = 0; tries < 2; tries++) {
		if (wq__unlikely(gate && gate->changes != seen) && !WQ__BUG(LANE_GATE_OPEN))
			break;
		if (wq__likely(wq__lane_take(m, l, item))) {
			wq__lane_leave(m, l, whole);
			return WQ_OK;
		}
		if (tries == 0)
			wq__lane_await(m, l, deadline_ns, &whole);
	}
	wq__lane_give_up(m, l, whole);
	return WQ__WHOLE;
}
