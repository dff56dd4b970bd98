/*
 * Keys that wait for their time. Their slots stand in the timing wheel; one that is
 * popped counts only if the table still holds it, waiting, with that due time:
 * whoever moves or cancels a key just lets the old reference die.
 *
 * A key that comes due takes its place in line by its due time. FIFO holds only
 * if all that is due is in line before anything else enters. One hold of the
 * lock moves a bounded number of references. While more are due than that, a
 * key that is added becomes a reference due now, so adds stay short; all other
 * calls that have to know what is due move the rest first, in several holds.
 */
#include "queue/limit_ask.h"

/* References moved in one hold of the lock; tests make a few of them a burst. */
#ifndef WQ__PROMOTE_MAX
#define WQ__PROMOTE_MAX 1000
#endif

/* The timing wheel has changed: when is the next one due, and who has to know? */
static void look_ahead(struct wq__memory *m)
{
	int64_t next = wq__tw_next(&m->tw);

	if (next == m->next_due_ns)
		return;
	m->next_due_ns = next;
	if (next == WQ_NEVER) {
		m->flags &= ~(uint32_t)WQ__TIMED;
		m->due_left = false;
	} else {
		m->flags |= WQ__TIMED;
	}
	if (m->flags & WQ__FD)
		wq__fd_due(m);
}

/* ---- waiting ------------------------------------------------------------- */

static bool is_waiting_for(const struct wq__memory *m, wq__ref ref)
{
	if (!wq__table_has(&m->table, ref.what))
		return false;

	const struct wq__entry *e = wq__entry_at(m, (uint32_t)ref.what);

	return (e->bits & WQ_STATE_WAITING) && e->added_ns == ref.due_ns;
}

static size_t keep(const void *owner, wq__ref *ref, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (is_waiting_for(owner, ref[i]))
			ref[kept++] = ref[i];
	return kept;
}

/* The latest time of a copy that waits; 0: it has none. */
static int64_t *latest_of(const struct wq__memory *m, struct wq__entry *e)
{
	return (int64_t *)(void *)((char *)e + wq__entry_room_offset(wq__entry_len(e)) +
	                           m->latest_at);
}

/* A time, or the latest one if that is sooner. */
static int64_t no_later(int64_t due_ns, int64_t latest_ns)
{
	return latest_ns > 0 && latest_ns < due_ns ? latest_ns : due_ns;
}

/* The bound that an add gives; 0: none, or one that is never up. */
static int64_t latest(const struct wq__later *l)
{
	int64_t at = l->within_ns > 0 ? wq_time_add(l->now_ns, l->within_ns) : WQ_NEVER;

	return at == WQ_NEVER ? 0 : at;
}

/* Whatever ended its last wait has left the bound. */
static wq__cold void lift_old_bound(const struct wq__memory *m, struct wq__entry *e)
{
	if (!(e->bits & WQ_STATE_WAITING))
		*latest_of(m, e) = 0;
}

void wq__lift_bound(const struct wq__memory *m, struct wq__entry *e)
{
	if (m->flags & WQ__WITHIN)
		*latest_of(m, e) = 0;
}

/* So many more copies wait for WQ_NEVER, or fewer. */
static void count_never(struct wq__memory *m, int by)
{
	m->nnever += (uint32_t)by;
	if (m->nnever > 0)
		m->flags |= WQ__NEVER;
	else
		m->flags &= ~(uint32_t)WQ__NEVER;
}

/* It waits from now on. False: out of memory, and nothing has changed. */
static bool begin_wait(struct wq__memory *m, struct wq__entry *e, uint64_t slot, int64_t due_ns,
                       int64_t now)
{
	wq__ref ref = {.due_ns = due_ns, .what = slot};

	if (due_ns != WQ_NEVER && wq__tw_insert(&m->tw, now, ref) < 0)
		return false;
	if (wq__unlikely(m->flags & WQ__WITHIN))
		lift_old_bound(m, e);
	if (wq__unlikely(m->flags & WQ__METERED))
		wq__meter_park(m, e, false);
	wq__entry_set_state(e, wq__entry_state(e) | WQ_STATE_WAITING);
	e->added_ns = due_ns;
	m->nwaiting++;
	if (wq__unlikely(due_ns == WQ_NEVER))
		count_never(m, 1);
	look_ahead(m);
	return true;
}

/* The copy that waits does so for a retry. */
static void mark_retrying(struct wq__memory *m, struct wq__entry *e)
{
	if (!(e->failures_high & WQ__RETRYING))
		m->nretrying++;
	e->failures_high |= WQ__RETRYING;
}

static void count_off(struct wq__memory *m, struct wq__entry *e)
{
	m->nwaiting--;
	if (e->failures_high & WQ__RETRYING) {
		e->failures_high &= (uint8_t)~WQ__RETRYING;
		m->nretrying--;
	}
	if (wq__unlikely(e->added_ns == WQ_NEVER))
		count_never(m, -1);
}

/* It waits no more; its reference dies. */
void wq__unwait(struct wq__memory *m, struct wq__entry *e)
{
	count_off(m, e);
	wq__entry_set_state(e, wq__entry_state(e) & ~(unsigned)WQ_STATE_WAITING);
	if (e->added_ns != WQ_NEVER) {
		wq__tw_died(&m->tw, keep, m);
		look_ahead(m);
	}
}

/* It waits for another time. */
int wq__rewait(struct wq__memory *m, struct wq__entry *e, uint64_t slot, int64_t due_ns,
               int64_t now)
{
	int64_t old = e->added_ns;

	if (due_ns == old)
		return WQ_MOVED;
	if (!begin_wait(m, e, slot, due_ns, now))
		return WQ_ENOMEM;
	m->nwaiting--;
	if (old == WQ_NEVER)
		count_never(m, -1);
	else
		wq__tw_died(&m->tw, keep, m);
	look_ahead(m);
	return WQ_MOVED;
}

/* ---- coming due ---------------------------------------------------------- */

/* To the tail of the line; behind what is due already, even if that is not in line yet. */
void wq__line_up(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now)
{
	if (m->due_left) {
		int64_t added = e->added_ns;

		wq__entry_set_state(e, wq__entry_state(e) & WQ__BESIDE);
		if (begin_wait(m, e, (uint64_t)e->hash << 32 | id, now, now)) {
			if (m->meter)
				wq__meter_park(m, e, true);
			return;
		}
		e->added_ns = added;
	}
	wq__ready_push(m, e, id, WQ_TAIL);
}

static void key_due(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t due_ns)
{
	unsigned state = wq__entry_state(e) & ~(unsigned)WQ_STATE_WAITING;

	e->added_ns = due_ns;
	wq__metered(m, state & WQ_STATE_RUNNING ? WQ_MARKED : WQ_QUEUED);
	if (state & WQ_STATE_RUNNING) {
		wq__entry_set_state(e, state | WQ_STATE_DIRTY);
		m->ndirty++;
	} else {
		wq__ready_push(m, e, id, WQ_TAIL);
	}
}

/* A reminder's time has come: it becomes the key, or an add of it. */
static void reminder_due(struct wq__memory *m, struct wq__entry *e, uint64_t slot, int64_t due_ns)
{
	if (!(e->bits & WQ__BESIDE)) {
		wq__entry_set_state(e, 0);
		key_due(m, e, (uint32_t)slot, due_ns);
		return;
	}

	uint32_t id = wq__find(m, e->hash, e->key, wq__entry_len(e));
	struct wq__entry *key = wq__entry_at(m, id);

	if (m->flags & WQ__RICH)
		wq__bring_reminder(m, e, key, id);
	wq__forget_key(m, e, slot);
	if (key->bits & WQ_STATE_WAITING) {
		wq__unwait(m, key);
		key_due(m, key, id, due_ns);
	} else if (key->bits & WQ_STATE_QUEUED) {
		if (m->order.touch)
			m->order.touch(m->order.ctx, &key->u.node);
		wq__metered(m, WQ_MERGED);
	} else if (key->bits & WQ_STATE_DIRTY) {
		wq__metered(m, WQ_MERGED);
	} else {
		if (wq__entry_absent(key))
			wq__revive(m, key);
		key_due(m, key, id, due_ns);
	}
}

static void come_due(struct wq__memory *m, wq__ref ref, int64_t now)
{
	struct wq__entry *e = wq__entry_at(m, (uint32_t)ref.what);
	int64_t due = ref.due_ns < now ? ref.due_ns : now;

	count_off(m, e);
	if (m->flags & WQ__METERED)
		wq__meter_due(m, e, now - due);
	if (wq__unlikely(m->flags & WQ__RANKED))
		m->rank->due_ns = due;
	if (e->bits & WQ__REMINDER)
		reminder_due(m, e, ref.what, due);
	else
		key_due(m, e, (uint32_t)ref.what, due);
}

/*
 * The next few that are due, in their order; how many. Asks for the memory of all of
 * them at once, instead of waiting for one after another.
 */
static size_t pop_some(struct wq__memory *m, int64_t until, size_t *budget, wq__ref *some,
                       enum wq__tw_pop *pop)
{
	size_t n = 0;

	while (n < WQ__TW_AHEAD &&
	       (*pop = wq__tw_pop(&m->tw, until, budget, &some[n])) == WQ__TW_POPPED) {
		wq__table_prefetch(&m->table, (uint32_t)(some[n].what >> 32));
		wq__prefetch(wq__entry_at(m, (uint32_t)some[n].what));
		n++;
	}
	return n;
}

/*
 * Everything that is due until `until` enters the line, in its order; of
 * more than one hold may move, the first ones. Whoever calls this calls
 * wq__pick_many() before it unlocks.
 */
void wq__promote(struct wq__memory *m, int64_t until)
{
	int64_t now = m->flags & (WQ__HASTY | WQ__PACED) ? wq__now(m) : until;
	size_t budget = wq__per_hold(WQ__PROMOTE_MAX), n;
	enum wq__tw_pop pop;
	wq__ref some[WQ__TW_AHEAD];

	while ((n = pop_some(m, until, &budget, some, &pop)) > 0) {
		for (size_t i = 0; i < n; i++) {
			/* Now, because one of those before it may have changed that. */
			if (is_waiting_for(m, some[i]))
				come_due(m, some[i], now);
			else
				wq__tw_buried(&m->tw);
		}
	}
	if (wq__unlikely(m->flags & WQ__RANKED))
		m->rank->due_ns = -1;
	m->due_left = pop == WQ__TW_AGAIN;
	look_ahead(m);
}

/*
 * The next keys that are due enter the line, or the next groups that have a token: each at its
 * time, whoever looks when. False: there are none.
 */
static wq__cold bool promote_paced(struct wq__memory *m)
{
	int64_t until = WQ_NEVER, due = WQ_NEVER, wake = WQ_NEVER;

	if (m->flags & WQ__TIMED && m->next_due_ns <= (until = wq__due_until(m)))
		due = m->next_due_ns;
	if (m->rank->wake_ns <= wq__now(m))
		wake = m->rank->wake_ns;
	if (wake < due)
		wq__rank_wake(m, due);
	else if (due != WQ_NEVER)
		wq__promote(m, wake < until ? wake : until);
	return wake < due || due != WQ_NEVER;
}

/* The same; without groups that sleep only keys come due. */
static inline bool promote_next(struct wq__memory *m)
{
	int64_t until;

	if (wq__unlikely(m->flags & WQ__PACED))
		return promote_paced(m);
	if (!(m->flags & WQ__TIMED) || m->next_due_ns > (until = wq__due_until(m)))
		return false;
	wq__promote(m, until);
	return true;
}

/*
 * The same for all of it, in as many holds as it takes: nothing is due and not
 * in line when this returns. It ends, because keys come to wait more slowly than
 * this moves them.
 */
void wq__promote_all(struct wq__memory *m)
{
	while (promote_next(m))
		wq__breathe(m);
}

/* Is a key ready? A FIFO wants the first of those that are due, any other order all of them. */
bool wq__ready(struct wq__memory *m)
{
	if (m->flags & (WQ__ORDERED | WQ__RANKED))
		wq__promote_all(m);
	while (m->nready == 0 && wq__tick(m) >= 0 && m->nready == 0 && m->due_left)
		wq__breathe(m);
	return m->nready > 0;
}

/* A key in line is taken: its reminder merges with it if that is due, in line or not. */
void wq__merge_reminder(struct wq__memory *m, struct wq__entry *e)
{
	uint32_t id = wq__find_copy(m, e->hash, e->key, wq__entry_len(e), WQ__REMINDER);
	struct wq__entry *reminder = wq__entry_at(m, id);

	if (reminder->added_ns > wq__due_until(m))
		return;
	if (m->flags & WQ__METERED) {
		wq__meter_due(m, reminder, wq__now(m) - reminder->added_ns);
		wq__meter_added(m, WQ_MERGED);
	}
	if (m->flags & WQ__RICH)
		wq__bring_popped(m, reminder, e);
	wq__unwait(m, reminder);
	wq__forget_key(m, reminder, (uint64_t)e->hash << 32 | id);
}

/* ---- add_with ------------------------------------------------------------ */

static wq__cold bool wait_bounded(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                                  const struct wq__later *l)
{
	if (!begin_wait(m, e, slot, no_later(l->due_ns, latest(l)), l->now_ns))
		return false;
	*latest_of(m, e) = latest(l);
	return true;
}

/* Its first add that waits. False: out of memory, and nothing has changed. */
static inline bool wait_first(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                              const struct wq__later *l)
{
	if (wq__unlikely(l->within_ns > 0))
		return wait_bounded(m, e, slot, l);
	return begin_wait(m, e, slot, l->due_ns, l->now_ns);
}

static int64_t by_policy(enum wq_policy policy, int64_t old_ns, int64_t due_ns)
{
	if (policy == WQ_REPLACE)
		return due_ns;
	if (policy == WQ_KEEP)
		return old_ns;
	return (policy == WQ_MAX) == (due_ns > old_ns) ? due_ns : old_ns;
}

/* A copy waits already, where there are latest times: its own counts before the add's. */
static wq__cold int merge_bounded(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                                  const struct wq__later *l)
{
	int64_t bound = *latest_of(m, e) > 0 ? *latest_of(m, e) : latest(l);
	int64_t due = no_later(by_policy(l->policy, e->added_ns, l->due_ns), bound);
	int rc = WQ_KEPT;

	if (due != e->added_ns || l->policy == WQ_REPLACE)
		rc = wq__rewait(m, e, slot, due, l->now_ns);
	if (rc >= 0)
		*latest_of(m, e) = bound;
	return rc;
}

/* The same in any queue. */
static int merge(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                 const struct wq__later *l)
{
	int64_t due = by_policy(l->policy, e->added_ns, l->due_ns);

	if (wq__unlikely(m->flags & WQ__WITHIN))
		return merge_bounded(m, e, slot, l);
	if (due == e->added_ns && l->policy != WQ_REPLACE)
		return WQ_KEPT;
	return wq__rewait(m, e, slot, due, l->now_ns);
}

/* The copies of a key: the one that an add is about, and the other one; and where they stand. */
struct copies {
	uint32_t id, other; /* 0: there is none */
	wq__place at;       /* where a new one goes */
};

static inline struct copies find_copies(const struct wq__memory *m, uint32_t hash, const void *key,
                                        size_t len, unsigned apart)
{
	wq__probe p = wq__table_probe(&m->table, hash);
	struct copies c = {.id = 0};
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		const struct wq__entry *e = wq__entry_at(m, id);

		if (wq__entry_is_ghost(e) || !wq__entry_is(e, key, len))
			continue;
		if ((e->bits & WQ__REMINDER) == apart)
			c.id = id;
		else
			c.other = id;
	}
	c.at = wq__probe_end(&p);
	return c;
}

/* A new entry that waits: the key, or its reminder beside the key. */
static int wait_new(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                    const struct wq__later *l, unsigned apart, struct copies c)
{
	struct wq__entry *e;
	uint64_t slot;
	uint32_t id, beside = c.other;

	if (wq__full(m))
		return WQ_EFULL;
	e = wq__new_entry(m, c.at, hash, key, len, m->room, apart, &id);
	if (!e)
		return WQ_ENOMEM;
	slot = (uint64_t)hash << 32 | id;
	if (m->room > 0)
		memset((char *)e + wq__entry_room_offset(len), 0, m->room);
	if (!wait_first(m, e, slot, l)) {
		wq__table_remove(&m->table, slot);
		wq__slab_free(&m->slab, id);
		return WQ_ENOMEM;
	}
	if (beside)
		wq__pair(m, e, wq__entry_at(m, beside));
	if (beside || m->nghosts > 0)
		wq__inherit(m, e, beside);
	if (m->bring)
		wq__bring_new(m, e);
	if (l->retry)
		mark_retrying(m, e);
	return WQ_DELAYED;
}

/* A key that was only remembered waits from now on, as itself or as its reminder. */
static int wait_again(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                      const struct wq__later *l, unsigned apart)
{
	if (wq__full(m))
		return WQ_EFULL;
	if (m->bring && apart && wq__bring_prepare(m, e) < 0)
		return WQ_ENOMEM;
	wq__revive(m, e);
	if (!wait_first(m, e, slot, l)) {
		wq__remember(m, e, (uint32_t)slot, l->now_ns);
		return WQ_ENOMEM;
	}
	if (m->bring && apart)
		wq__bring_apply(m, e, (uint32_t)slot);
	wq__entry_add_bits(e, apart);
	if (l->retry)
		mark_retrying(m, e);
	return WQ_DELAYED;
}

static int add_later_known(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                           const struct wq__later *l)
{
	if (e->bits & WQ_STATE_WAITING)
		return merge(m, e, slot, l);
	if (e->bits & (WQ_STATE_QUEUED | WQ_STATE_DIRTY)) {
		if (e->bits & WQ_STATE_QUEUED && m->order.touch)
			m->order.touch(m->order.ctx, &e->u.node);
		return WQ_MERGED;
	}
	if (wq__entry_absent(e))
		return wait_again(m, e, slot, l, 0);
	return wait_first(m, e, slot, l) ? WQ_DELAYED : WQ_ENOMEM;
}

static wq__cold int add_later_rich(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                                   const struct wq__later *l)
{
	int rc = wq__bring_prepare(m, e);

	if (rc == WQ_OK)
		rc = add_later_known(m, e, slot, l);
	if (rc >= 0)
		wq__bring_apply(m, e, (uint32_t)slot);
	return rc;
}

/* The copy that the policy is about is there. */
int wq__add_later_known(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                        const struct wq__later *l)
{
	int rc = wq__unlikely(m->bring != NULL) ? add_later_rich(m, e, slot, l)
	                                        : add_later_known(m, e, slot, l);

	if (rc >= 0 && l->retry && e->bits & WQ_STATE_WAITING)
		mark_retrying(m, e);
	return rc;
}

static int add_later(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                     const struct wq__later *l)
{
	unsigned apart = l->policy == WQ_REMIND ? WQ__REMINDER : 0;
	struct copies c = find_copies(m, hash, key, len, apart);

	if (c.id)
		return wq__add_later_known(m, wq__entry_at(m, c.id), (uint64_t)hash << 32 | c.id,
		                           l);
	if (c.other && wq__entry_absent(wq__entry_at(m, c.other)))
		return wait_again(m, wq__entry_at(m, c.other), (uint64_t)hash << 32 | c.other, l,
		                  apart);
	return wait_new(m, hash, key, len, l, apart, c);
}

/* As long from now as the limiter says: one look-up, if the key is there. */
static wq__forced int add_limited(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                                  enum wq_policy policy, int64_t now)
{
	struct wq__ask ask;
	uint32_t id;
	struct wq__entry *e = wq__bearer(m, hash, key, len, &id);
	bool known = e && !wq__entry_apart(e) && policy != WQ_REMIND;
	struct wq__later l = {.now_ns = now, .policy = policy, .retry = true};
	int rc;

	wq__ask_begin(m, &ask, e, key, len, now);
	l.due_ns = wq_time_add(now, ask.delay_ns);
	if (l.due_ns <= now)
		rc = known ? wq__add_known_at(m, e, id, now) : wq__add_at(m, hash, key, len, now);
	else if (known)
		rc = wq__add_later_known(m, e, (uint64_t)hash << 32 | id, &l);
	else
		rc = add_later(m, hash, key, len, &l);
	if (rc < 0) {
		wq__ask_undo(m, &ask);
		return rc;
	}
	wq__ask_end(m, &ask, rc);
	wq__ask_store(m, &ask, known ? e : wq__bearer(m, hash, key, len, &id));
	return rc;
}

/* rich: the queue has priorities, groups or values; group: the key's, if it has groups. */
static wq__forced int add_with(struct wq__memory *m, const void *key, size_t len,
                               const wq_add_options *o, bool rich, const wq_key *group)
{
	struct wq__wakes wakes;
	struct wq__bring bring;
	struct wq__waiter *w;
	struct wq__later l = {.within_ns = o->within_ns, .policy = o->policy};
	uint32_t hash = wq__hash_of(m, key, len);
	int64_t now;
	int rc;

	wq__whole_lock(m);
	now = wq__now(m);
	l.due_ns = o->limited ? WQ_NEVER : o->at_ns > 0 ? o->at_ns : wq_time_add(now, o->after_ns);
	/* A queue that is closing moves nothing that came due since, and refuses the add. */
	while (m->flags & (WQ__TIMED | (rich ? WQ__PACED : 0u)) && !(m->flags & WQ__SHUT) &&
	       (rich ? wq__next_wake(m) : m->next_due_ns) <= now) {
		wq__promote_all(m);
		/* That may have taken a while. */
		now = wq__now(m);
	}
	l.now_ns = now;
	rc = m->flags & WQ__SHUT ? WQ_ESHUTDOWN : WQ_OK;
	if (rich && rc == WQ_OK)
		rc = wq__bring_begin(m, &bring, o, group);
	if (rc < 0) {
		wq__metered(m, rc);
		wq__whole_unlock(m);
		return rc;
	}
	if (o->limited)
		rc = add_limited(m, hash, key, len, o->policy, now);
	else if (l.due_ns <= now)
		rc = wq__add_at(m, hash, key, len, now);
	else
		rc = add_later(m, hash, key, len, &l);
	if (rich)
		wq__bring_end(m, &bring);
	if (m->flags & WQ__METERED) {
		wq__meter_added(m, rc);
		if (rc >= 0)
			wq__meter_retried(m);
	}
	wq__pick_many(m, &wakes);
	w = wq__rouse_leader(m);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
	wq__wake(w);
	return rc;
}

int wq__mem_add_with(void *state, const void *key, size_t len, const wq_add_options *o)
{
	return add_with(state, key, len, o, false, NULL);
}

int wq__rich_add_later(struct wq__memory *m, const void *key, size_t len, const wq_add_options *o,
                       const wq_key *group)
{
	return add_with(m, key, len, o, true, group);
}

/*
 * When the next one comes due. References that have died before it are dropped, as
 * many as one hold may; if there are more, none comes due before.
 */
int64_t wq__next_due(struct wq__memory *m)
{
	int64_t next = WQ_NEVER;

	if (m->nwaiting > m->nnever && !(m->flags & WQ__CUT)) {
		next = wq__tw_first(&m->tw, keep, m);
		look_ahead(m);
	}
	return next;
}

int64_t wq__mem_next_deadline(void *state)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);

	int64_t next = wq__next_wake(m);

	wq__whole_unlock(m);
	return next;
}
