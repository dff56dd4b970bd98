/*
 * The ends of a hold that are more than done: retry, once more later, give up;
 * and a worker's turn, which is such an end and the next Get under one lock.
 */
#include "queue/limit_ask.h"
#include "queue/queue.h"

/* The hold ends; a cancelled one says so, unless the key comes back by a later add. */
static int end_cancelled(struct wq__memory *m, const wq_item *item, struct wq__entry *e)
{
	int rc = wq__end_hold(m, item, e);

	return rc == WQ_OK ? WQ_CANCELLED : rc;
}

/* It goes to the tail of the line when the hold ends. */
static void mark(struct wq__memory *m, struct wq__entry *e, int64_t now)
{
	if (e->bits & WQ_STATE_WAITING)
		wq__unwait(m, e);
	wq__entry_set_state(e, wq__entry_state(e) | WQ_STATE_DIRTY);
	e->added_ns = now;
	m->ndirty++;
	wq__metered(m, WQ_MARKED);
}

/*
 * The hold ends, and the key comes back at due_ns, if it does not come sooner
 * anyway. ask: the question to the limiter that this is about, or NULL.
 */
static int end_later(struct wq__memory *m, const wq_item *item, struct wq__entry *e, int64_t now,
                     int64_t due_ns, const struct wq__ask *ask)
{
	struct wq__later later = {.now_ns = now,
	                          .due_ns = due_ns,
	                          .policy = WQ_MIN,
	                          .retry = ask != NULL};
	int rc = WQ_MARKED;

	if (m->flags & WQ__RICH)
		wq__keep_hold(m, e);
	if (e->bits & WQ_STATE_DIRTY)
		rc = WQ_MERGED;
	else if (due_ns > now)
		rc = wq__add_later_known(m, e, item->slot, &later);
	if (ask)
		wq__ask_end(m, ask, rc);
	/* At once; also if there is no memory to let it wait: it is not lost for that. */
	if (rc == WQ_MARKED || rc == WQ_ENOMEM)
		mark(m, e, now);
	else
		wq__metered(m, rc);
	if (m->flags & WQ__METERED)
		wq__meter_retried(m);
	return wq__end_hold(m, item, e);
}

/*
 * The queue is shut, and the key does not come back: it waits for ever, so that drains report it.
 * That needs no memory.
 */
static int leave_over(struct wq__memory *m, const wq_item *item, struct wq__entry *e, bool retry)
{
	struct wq__later never = {.due_ns = WQ_NEVER,
	                          .policy = WQ_MIN,
	                          .retry = retry && !WQ__BUG(LEFT_AS_DELAYED)};

	if (m->flags & WQ__RICH)
		wq__keep_hold(m, e);
	if (!WQ__BUG(LEFT_FORGOTTEN))
		wq__add_later_known(m, e, item->slot, &never);
	wq__end_hold(m, item, e);
	return WQ_LEFT;
}

/* Was this the last attempt? */
static bool is_dead(const struct wq__memory *m, struct wq__entry *e)
{
	return m->max_attempts > 0 && wq__requeues_of(m, e) + 1 >= m->max_attempts;
}

/* It stays held, by this item alone: no copy of it can bury it a second time. */
static int die(struct wq__memory *m, wq_item *item, struct wq__entry *e)
{
	if (item->token == m->sample)
		wq__sample_end(m);
	/* The new token has no place among the lane's holds. */
	wq__hold_over(m, item);
	m->nrunning++;
	if (m->flags & WQ__RANKED)
		wq__rank_hold(m, e, 1);
	item->token = e->u.hold.token = m->token += WQ__HOLDS;
	m->ndead++;
	return WQ_DEAD;
}

static int retry(struct wq__memory *m, wq_item *item, struct wq__entry *e, int64_t least_ns)
{
	bool refused = (m->flags & (WQ__SHUT | WQ__PATIENT)) == WQ__SHUT;
	int64_t now = wq__now(m);
	struct wq__ask ask;

	if (is_dead(m, e))
		return die(m, item, e);
	wq__ask_begin(m, &ask, e, e->key, wq__entry_len(e), now);
	wq__ask_store(m, &ask, e);
	if (refused && !(e->bits & WQ_STATE_DIRTY)) {
		wq__limiter_give_back(m->limiter, &ask.s);
		if (!(m->flags & WQ__HASTY) || e->failures_high & WQ__LAST_TRY)
			return leave_over(m, item, e, true);
		e->failures_high |= WQ__LAST_TRY;
		return end_later(m, item, e, now, now, NULL);
	}
	if (least_ns < ask.delay_ns)
		least_ns = ask.delay_ns;
	return end_later(m, item, e, now, wq_time_add(now, least_ns), &ask);
}

/* Once more after a while; in a queue that is shut, only if it comes back anyway. */
static int again(struct wq__memory *m, const wq_item *item, struct wq__entry *e, int64_t after_ns)
{
	int64_t now = wq__now(m);

	if (!(m->flags & WQ__SHUT))
		return end_later(m, item, e, now, wq_time_add(now, after_ns), NULL);
	if (e->bits & WQ_STATE_DIRTY ||
	    (e->bits & WQ_STATE_WAITING && m->flags & WQ__PATIENT && e->added_ns != WQ_NEVER)) {
		if (m->flags & WQ__RICH)
			wq__keep_hold(m, e);
		return wq__end_hold(m, item, e);
	}
	return leave_over(m, item, e, false);
}

static wq__cold int drop(struct wq__memory *m, const wq_item *item)
{
	int rc = wq__done_well(m, item);

	m->ndropped += rc >= 0;
	return rc;
}

/* A verdict by which the key comes back. */
static int settle_later(struct wq__memory *m, wq_item *item, wq_verdict verdict)
{
	int rc;
	struct wq__entry *e = wq__held(m, item, &rc);

	if (e) {
		/* What is due goes first, perhaps the key's own copy. The lock is let go of. */
		wq__promote_all(m);
		e = wq__held(m, item, &rc);
	}
	if (!e && m->flags & WQ__METERED)
		m->meter->stale++;
	if (!e)
		return rc;
	if (e->bits & WQ__CANCELLED && wq__verdict_fails(verdict))
		return end_cancelled(m, item, e);
	if (verdict.kind == WQ_VERDICT_FATAL)
		return die(m, item, e);
	if (verdict.kind == WQ_VERDICT_RETRY)
		return retry(m, item, e, verdict.delay_ns);
	wq__forget_failures(m, e);
	return e->bits & WQ__CANCELLED ? end_cancelled(m, item, e)
	                               : again(m, item, e, verdict.delay_ns);
}

static int settle(struct wq__memory *m, wq_item *item, wq_verdict verdict)
{
	if (wq__likely(verdict.kind == WQ_VERDICT_DONE))
		return wq__done_well(m, item);
	return verdict.kind == WQ_VERDICT_DROP ? drop(m, item) : settle_later(m, item, verdict);
}

/* A key that died is forgotten and done; if it was added meanwhile, it is in line afresh. */
static int bury(struct wq__memory *m, const wq_item *item)
{
	int rc = wq__done_well(m, item);

	return rc < 0 ? rc : WQ_DEAD;
}

static int get(struct wq__memory *m, wq_item *item, const wq_turn *t)
{
	int rc = WQ_OK;

	if (t->gate && t->gate->changes != t->seen && !WQ__BUG(TURN_PAST_GATE))
		return WQ_EINTERRUPTED;
	if (!wq__ready_now(m)) {
		/* A retry may be due before anybody would wake up; this Get may sleep for long. */
		wq__wake(wq__rouse_leader(m));
		rc = wq__await_ready(m, t->deadline_ns, t->gate, t->seen);
	}
	if (rc == WQ_OK)
		wq__take(m, item);
	return rc;
}

/* The end of a hold that needs no more than the lane; back lock held. */
static bool settle_in_lane(struct wq__memory *m, struct wq__lane *l, const wq_item *item,
                           wq_turn *t)
{
	if (!(t->steps & WQ_TURN_SETTLE) || t->verdict.kind != WQ_VERDICT_DONE ||
	    !wq__lane_done(m, l, item))
		return false;
	t->settled = WQ_OK;
	if (t->on_settled)
		t->on_settled(t->arg, t->settled);
	return true;
}

/* The queue is whole. What is left of the turn, and the locks are let go of. */
static int turn_whole(struct wq__memory *m, wq_item *item, wq_turn *t, bool settled)
{
	struct wq__wakes wakes;
	struct wq__waiter *w;
	bool go_on = true;
	int rc = WQ_OK;

	wq__keep_time(m);
	if (settled) {
		go_on = true;
	} else if (t->steps & WQ_TURN_SETTLE) {
		t->settled = settle(m, item, t->verdict);
		go_on = t->settled != WQ_DEAD;
	} else if (t->steps & WQ_TURN_BURY) {
		t->settled = bury(m, item);
	} else {
		t->settled = WQ_OK;
	}
	if (t->on_settled && go_on && !settled && t->steps & (WQ_TURN_SETTLE | WQ_TURN_BURY))
		t->on_settled(t->arg, t->settled);
	if (t->settled < 0)
		rc = t->settled;
	else if (go_on && t->steps & WQ_TURN_GET)
		rc = get(m, item, t);
	wq__pick_many(m, &wakes);
	w = wq__rouse_leader(m);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
	wq__wake(w);
	return rc;
}

int wq__mem_turn(void *state, wq_item *item, wq_turn *t)
{
	struct wq__memory *m = state;
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);
	bool settled;

	if (!l) {
		wq__whole_lock(m);
		return turn_whole(m, item, t, false);
	}
	wq__lock_acquire(&l->lock);
	settled = settle_in_lane(m, l, item, t);
	if (settled && !(t->steps & WQ_TURN_GET)) {
		wq__lock_release(&l->lock);
		return WQ_OK;
	}
	if (settled || t->steps == WQ_TURN_GET) {
		t->settled = WQ_OK;
		if (wq__lane_get(m, l, item, t->deadline_ns, t->gate, t->seen) == WQ_OK)
			return WQ_OK;
		return turn_whole(m, item, t, true);
	}
	wq__whole_up(m, l);
	return turn_whole(m, item, t, false);
}
