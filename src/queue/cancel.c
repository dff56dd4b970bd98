/* Taking keys back, and moving those that wait. */
#include "queue/memory.h"

/* A key and its reminder are both there from now on. */
void wq__pair(struct wq__memory *m, struct wq__entry *e, struct wq__entry *other)
{
	wq__entry_add_bits(e, WQ__BESIDE);
	wq__entry_add_bits(other, WQ__BESIDE);
	m->npairs++;
}

/* It goes; what stands beside it learns that. */
static void part(struct wq__memory *m, const struct wq__entry *e)
{
	uint32_t other = wq__find_copy(m, e->hash, e->key, wq__entry_len(e),
	                               (e->bits & WQ__REMINDER) ^ WQ__REMINDER);

	wq__entry_clear_bits(wq__entry_at(m, other), WQ__BESIDE);
	m->npairs--;
}

/* Out of the table and gone. It is in no line or list. */
void wq__forget_key(struct wq__memory *m, struct wq__entry *e, uint64_t slot)
{
	if (e->bits & WQ__BESIDE)
		part(m, e);
	if (m->flags & WQ__RICH)
		wq__rich_gone(m, e);
	wq__table_remove(&m->table, slot);
	wq__slab_free(&m->slab, (uint32_t)slot);
}

static void unlink_line(struct wq__memory *m, const struct wq__entry *e, uint32_t id)
{
	uint32_t next = e->u.line.next, prev = id == m->head ? 0 : e->u.line.prev;

	if (prev)
		wq__entry_at(m, prev)->u.line.next = next;
	else
		m->head = next;
	if (next)
		wq__entry_at(m, next)->u.line.prev = prev;
	else
		m->tail = prev;
	/* The scout starts anew: it may stand on this very key. */
	m->scout_ahead = 0;
}

static void cancel_queued(struct wq__memory *m, struct wq__entry *e, uint64_t slot)
{
	if (m->flags & WQ__RANKED)
		wq__rank_remove(m, e, (uint32_t)slot);
	else
		m->nready--;
	if (m->flags & WQ__RICH)
		wq__drop_copy(m, e);
	if (m->flags & WQ__METERED)
		wq__meter_depth(m, -1);
	if (m->flags & WQ__ORDERED && !m->order.remove) {
		/* Its memory stays until the order pops it. */
		if (e->bits & WQ__BESIDE)
			part(m, e);
		wq__entry_set_state(e, WQ_STATE_QUEUED | WQ__CANCELLED);
		m->nghosts++;
		return;
	}
	if (m->flags & WQ__ORDERED)
		m->order.remove(m->order.ctx, &e->u.node);
	else if (!m->rank && !wq__line_remove(m, (uint32_t)slot))
		unlink_line(m, e, (uint32_t)slot);
	wq__vanish(m, e, slot);
}

static void cancel_held(struct wq__memory *m, struct wq__entry *e)
{
	if (e->bits & WQ_STATE_DIRTY) {
		m->ndirty--;
		if (m->flags & WQ__METERED)
			wq__meter_depth(m, -1);
	}
	if (e->bits & WQ_STATE_WAITING)
		wq__unwait(m, e);
	if (m->flags & WQ__RICH)
		wq__drop_copy(m, e);
	wq__entry_set_state(e, WQ_STATE_RUNNING | WQ__CANCELLED | (e->bits & WQ__BESIDE));
}

/* The bits that it found in the key and its reminder; 0: nothing is there. */
static unsigned cancel_all(struct wq__memory *m, uint32_t hash, uint32_t id, uint32_t reminder)
{
	unsigned found = 0;

	if (reminder) {
		struct wq__entry *r = wq__entry_at(m, reminder);

		found |= WQ_STATE_WAITING;
		wq__unwait(m, r);
		if (m->flags & WQ__RICH)
			wq__drop_copy(m, r);
		wq__vanish(m, r, (uint64_t)hash << 32 | reminder);
	}
	if (!id)
		return found;

	struct wq__entry *e = wq__entry_at(m, id);
	uint64_t slot = (uint64_t)hash << 32 | id;

	found |= wq__entry_state(e) & WQ__PUBLIC;
	if (e->bits & WQ_STATE_RUNNING) {
		cancel_held(m, e);
	} else if (e->bits & WQ_STATE_QUEUED) {
		cancel_queued(m, e, slot);
	} else {
		wq__unwait(m, e);
		if (m->flags & WQ__RICH)
			wq__drop_copy(m, e);
		wq__vanish(m, e, slot);
	}
	return found;
}

int wq__mem_cancel(void *state, const void *key, size_t len, int64_t deadline_ns, unsigned *was)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len);
	unsigned found = 0;
	int rc = WQ_ENOTFOUND;

	wq__whole_lock(m);
	wq__promote_all(m);

	uint32_t id = wq__find(m, hash, key, len);
	uint32_t reminder = wq__find_copy(m, hash, key, len, WQ__REMINDER);

	if (id && wq__entry_absent(wq__entry_at(m, id)))
		id = 0;
	if (id || reminder) {
		found = cancel_all(m, hash, id, reminder);
		rc = WQ_CANCELLED;
		if (m->flags & (WQ__WATCHED | WQ__PATIENT | (WQ__BUG(GATE_CANCEL) ? 0 : WQ__GATED)))
			wq__watch_hold_end(m, id, WQ__TAKEN_BACK, !(found & WQ_STATE_RUNNING));
	}
	if (found & WQ_STATE_RUNNING && deadline_ns != WQ_NOWAIT) {
		int waited = wq__watch_hold(m, id, deadline_ns);

		rc = waited < 0 ? waited : rc;
	}
	if (was && found)
		*was = found;
	/* It makes no key ready, so there is nobody to wake. */
	wq__whole_unlock(m);
	return rc;
}

int wq__mem_reschedule(void *state, const void *key, size_t len, int64_t due_ns)
{
	struct wq__memory *m = state;
	struct wq__wakes wakes;
	uint32_t hash = wq__hash_of(m, key, len), id;
	int rc = WQ_ENOTFOUND;

	wq__whole_lock(m);
	wq__promote_all(m);
	id = wq__find(m, hash, key, len);
	if (!id || !(wq__entry_at(m, id)->bits & WQ_STATE_WAITING))
		id = wq__find_copy(m, hash, key, len, WQ__REMINDER);
	/* Nobody may be left to take it. */
	if (id && wq__leaves(m))
		rc = WQ_ESHUTDOWN;
	else if (id)
		rc = wq__rewait(m, wq__entry_at(m, id), (uint64_t)hash << 32 | id, due_ns,
		                wq__now(m));
	if (rc == WQ_MOVED)
		wq__lift_bound(m, wq__entry_at(m, id));
	/* It may be due at once, or earlier than the leader sleeps, or never. */
	wq__tick(m);
	if (m->flags & WQ__PATIENT)
		wq__watch_hold_end(m, 0, WQ__ENDED, false);
	wq__pick_many(m, &wakes);

	struct wq__waiter *w = wq__rouse_leader(m);

	wq__whole_unlock(m);
	wq__wake_many(&wakes);
	wq__wake(w);
	return rc;
}
