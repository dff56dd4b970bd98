/*
 * The memory engine of queues with priorities, groups or values. Adds bring something along
 * (bring.h), and a done may free a place in a group; all other calls are those of every queue.
 */
#include "base/fail.h"
#include "queue/memory.h"

bool wq__asks_rich(const wq_options *o)
{
	return o->priorities || o->group || o->values;
}

/* The group of a key, in a queue with groups. Outside the lock: it is the user's function. */
static int group_of(const struct wq__rank *r, const void *key, size_t len, wq_key *group)
{
	uintptr_t from = (uintptr_t)key, at;
	int rc;

	*group = (wq_key){0};
	rc = r->group(r->group_ctx, key, len, group);
	if (rc < 0)
		return rc;
	at = (uintptr_t)group->key;
	if (group->len > 0 && (at < from || at - from > len || group->len > len - (at - from)))
		return wq__fail(WQ_EINVAL, "the group is not a part of the key");
	return WQ_OK;
}

/* All of these: the lock is held, and let go of. */

int wq__rich_add(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                 const wq_add_options *o, const wq_key *group)
{
	struct wq__waiter *w = NULL;
	struct wq__wakes wakes = {.n = 0};
	struct wq__bring bring;
	int64_t when = -1;
	int rc;

	while (m->flags & (WQ__TIMED | WQ__PACED) && !(m->flags & WQ__SHUT) &&
	       wq__next_wake(m) <= (when = wq__now(m)))
		wq__promote_all(m);
	rc = m->flags & WQ__SHUT ? WQ_ESHUTDOWN : wq__bring_begin(m, &bring, o, group);
	if (rc == WQ_OK) {
		rc = wq__add_at(m, hash, key, len, when);
		wq__bring_end(m, &bring);
	}
	rc = wq__metered(m, rc);
	if (wq__unlikely(m->flags & WQ__TIMED))
		wq__pick_many(m, &wakes);
	else if (rc == WQ_QUEUED && !WQ__BUG(ADD_NO_WAKE))
		w = wq__pick(m);
	/* Its group may have slept for its bucket to be full, and wakes for a token now. */
	if (!w && m->flags & WQ__PACED && !WQ__BUG(GROUP_LEADER_SLEEPS))
		w = wq__rouse_leader(m);
	wq__whole_unlock(m);
	wq__wake(w);
	wq__wake_many(&wakes);
	return rc;
}

static int add_grouped(struct wq__memory *m, const void *key, size_t len, const wq_add_options *o,
                       const wq_key *group)
{
	return o->limited || o->after_ns != 0 || o->at_ns > 0
	           ? wq__rich_add_later(m, key, len, o, group)
	           : wq__light_add(m, key, len, o, group);
}

static int rich_add_with(void *state, const void *key, size_t len, const wq_add_options *o)
{
	struct wq__memory *m = state;
	wq_key group;
	int rc;

	if (!m->rank || !m->rank->grouped)
		return add_grouped(m, key, len, o, NULL);
	rc = group_of(m->rank, key, len, &group);
	return wq__likely(rc >= 0) ? add_grouped(m, key, len, o, &group) : rc;
}

static int rich_add(void *state, const void *key, size_t len)
{
	static const wq_add_options plain;

	return rich_add_with(state, key, len, &plain);
}

/* Also between two holds of the lock the queue is not to be freed. */
static void count_inside(struct wq__memory *m, int by)
{
	wq__whole_lock(m);
	m->inside += (uint32_t)by;
	wq__whole_unlock(m);
}

static int rich_add_many(void *state, const wq_key *keys, size_t n, int *outcomes)
{
	int accepted = 0;

	if (n > 1)
		count_inside(state, 1);
	for (size_t i = 0; i < n; i++) {
		const wq_key *k = &keys[i];
		int rc = !k->key && k->len > 0 ? WQ_EINVAL
		         : k->len > WQ_KEY_MAX ? WQ_ETOOLONG
		                               : rich_add(state, k->key, k->len);

		accepted += rc > 0;
		if (outcomes)
			outcomes[i] = rc;
	}
	if (n > 1)
		count_inside(state, -1);
	return accepted;
}

/* A Get that has started a group may have to wake who waits for its next token. */
static void leave(struct wq__memory *m)
{
	struct wq__wakes wakes;
	struct wq__waiter *w = NULL;

	wq__pick_many(m, &wakes);
	if (m->flags & WQ__PACED && !WQ__BUG(GROUP_LEADER_SLEEPS))
		w = wq__rouse_leader(m);
	wq__let_time_go(m);
	wq__whole_unlock(m);
	wq__wake_many(&wakes);
	wq__wake(w);
}

static int get(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	int rc = WQ_OK;

	if (!wq__ready_now(m))
		rc = wq__await_ready(m, deadline_ns, NULL, 0);
	if (rc == WQ_OK)
		wq__take(m, item);
	return rc;
}

int wq__rich_get(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	int rc = get(m, item, deadline_ns);

	leave(m);
	return rc;
}

int wq__rich_done(struct wq__memory *m, const wq_item *item)
{
	int rc = wq__done(m, item);

	leave(m);
	return rc;
}

int wq__rich_next(struct wq__memory *m, wq_item *item, int64_t deadline_ns)
{
	int rc;

	wq__keep_time(m);
	rc = wq__done(m, item);
	if (rc >= 0)
		rc = get(m, item, deadline_ns);
	leave(m);
	return rc;
}

wq_engine wq__rich(wq_engine e)
{
	e.add = rich_add;
	e.add_with = rich_add_with;
	e.add_many = rich_add_many;
	e.get = wq__light_get;
	e.done = wq__light_done;
	e.next = wq__light_next;
	return e;
}
