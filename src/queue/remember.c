/*
 * What the limiter remembers of keys, and the calls that ask it.
 *
 * It stands in the key's own entry, so a limited add costs one look-up. Where
 * a key has several entries, one of them bears it:
 *
 *   the key itself  |  else its reminder  |  else a ghost that the order has yet to pop
 *
 * and it moves when a better bearer comes or the bearer goes. A key that has no
 * state any more but something to remember keeps its entry, in a list, the
 * longest idle first; such an entry is the only one of its key, ghosts aside.
 */
#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "queue/limit_ask.h"

enum { TRIM = 2 }; /* looked at whenever one is remembered: faster than they come */

/* ---- what an entry bears ------------------------------------------------- */

static bool blank(const struct wq__memory *m, struct wq__entry *e, int64_t now)
{
	struct wq__subject s = wq__subject_of(m, e, now);

	return wq__limiter_blank(m->limiter, &s);
}

static void hand_over(struct wq__memory *m, struct wq__entry *from, struct wq__entry *to)
{
	wq__entry_set_failures(to, wq__entry_failures(from));
	wq__entry_set_failures(from, 0);
	if (m->limit_room > 0) {
		memcpy(wq__limit_room_of(m, to), wq__limit_room_of(m, from), m->limit_room);
		memset(wq__limit_room_of(m, from), 0, m->limit_room);
	}
}

static bool bears(const struct wq__memory *m, struct wq__entry *e)
{
	static const char zero[WQ__LIMIT_ROOM_MAX];

	return wq__entry_failures(e) > 0 ||
	       (m->limit_room > 0 && memcmp(wq__limit_room_of(m, e), zero, m->limit_room) != 0);
}

/* The ghost of the key that bears something, of perhaps several; 0: none does. */
static uint32_t find_ghost(const struct wq__memory *m, uint32_t hash, const void *key, size_t len)
{
	wq__probe p = wq__table_probe(&m->table, hash);
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		struct wq__entry *e = wq__entry_at(m, id);

		if (wq__entry_is_ghost(e) && wq__entry_is(e, key, len) && bears(m, e))
			return id;
	}
	return 0;
}

static wq__cold uint32_t find_apart(const struct wq__memory *m, uint32_t hash, const void *key,
                                    size_t len)
{
	uint32_t id = 0;

	if (m->nwaiting > 0)
		id = wq__find_copy(m, hash, key, len, WQ__REMINDER);
	if (!id && m->nghosts > 0)
		id = find_ghost(m, hash, key, len);
	return id;
}

static uint32_t find_bearer(const struct wq__memory *m, uint32_t hash, const void *key, size_t len)
{
	uint32_t id = wq__find(m, hash, key, len);

	return wq__likely(id) ? id : find_apart(m, hash, key, len);
}

/* A new entry of a key: what another one bears is its now. A reminder leaves it to the key. */
void wq__inherit(struct wq__memory *m, struct wq__entry *e, uint32_t beside)
{
	uint32_t from = beside;

	if (e->bits & WQ__REMINDER && beside)
		return;
	if (!from && m->nghosts > 0)
		from = find_ghost(m, e->hash, e->key, wq__entry_len(e));
	if (from)
		hand_over(m, wq__entry_at(m, from), e);
}

/* ---- the list of remembered keys ----------------------------------------- */

static void link_last(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	e->u.line.next = 0;
	e->u.line.prev = m->memo_last;
	if (m->memo_last)
		wq__entry_at(m, m->memo_last)->u.line.next = id;
	else
		m->memo_first = id;
	m->memo_last = id;
	m->nmemo++;
}

static void unlink_memo(struct wq__memory *m, struct wq__entry *e)
{
	uint32_t next = e->u.line.next, prev = e->u.line.prev;

	if (prev)
		wq__entry_at(m, prev)->u.line.next = next;
	else
		m->memo_first = next;
	if (next)
		wq__entry_at(m, next)->u.line.prev = prev;
	else
		m->memo_last = prev;
	m->nmemo--;
}

static void erase(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	unlink_memo(m, e);
	wq__forget_key(m, e, (uint64_t)e->hash << 32 | id);
}

/* A remembered key that has been idle for too long is forgotten. */
static bool forget_idle(struct wq__memory *m, struct wq__entry *e, int64_t now)
{
	if (now - e->added_ns <= m->limiter->idle_ns)
		return false;
	wq__forget_failures(m, e);
	if (m->limit_room > 0)
		memset(wq__limit_room_of(m, e), 0, m->limit_room);
	return true;
}

static bool expire(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now)
{
	if (!forget_idle(m, e, now))
		return false;
	erase(m, e, id);
	return true;
}

/* A key that was only remembered is about to have a state again. */
void wq__revive(struct wq__memory *m, struct wq__entry *e)
{
	if (m->limiter->idle_ns != WQ_NEVER)
		forget_idle(m, e, wq__now(m));
	unlink_memo(m, e);
}

static void trim(struct wq__memory *m, int64_t now)
{
	for (int i = 0; i < TRIM && m->memo_first; i++) {
		uint32_t id = m->memo_first;
		struct wq__entry *e = wq__entry_at(m, id);

		if (expire(m, e, id, now) || m->limit_room == 0)
			continue;
		if (blank(m, e, now)) {
			erase(m, e, id);
		} else {
			/* Its bucket is not full yet; others behind it may be. */
			unlink_memo(m, e);
			link_last(m, e, id);
		}
	}
}

/* It has no state, and is kept. A ghost or a reminder is the key itself from now on. */
void wq__remember(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now)
{
	wq__entry_set_state(e, 0);
	e->added_ns = now;
	/* The order begins anew with it. */
	if (m->limit_at > 0)
		memset((char *)e + wq__entry_room_offset(wq__entry_len(e)), 0, m->limit_at);
	link_last(m, e, id);
}

/*
 * The entry has no state any more, and is in no line: what it bears goes to the
 * reminder beside it, or it is remembered, or it is gone.
 */
void wq__vanish(struct wq__memory *m, struct wq__entry *e, uint64_t slot)
{
	int64_t now = 0;

	if (e->bits & WQ__BESIDE) {
		if (!(e->bits & WQ__REMINDER)) {
			uint32_t other =
			    wq__find_copy(m, e->hash, e->key, wq__entry_len(e), WQ__REMINDER);

			hand_over(m, e, wq__entry_at(m, other));
		}
		wq__forget_key(m, e, slot);
		return;
	}
	if (m->limit_room > 0 || m->limiter->idle_ns != WQ_NEVER)
		now = wq__now(m);
	if (blank(m, e, now)) {
		wq__forget_key(m, e, slot);
		return;
	}
	trim(m, now);
	wq__remember(m, e, (uint32_t)slot, now);
}

/* A ghost was popped. What it bears is remembered, unless its key has come again meanwhile. */
void wq__vanish_ghost(struct wq__memory *m, struct wq__entry *e, uint64_t slot)
{
	size_t len = wq__entry_len(e);

	m->nghosts--;
	if (wq__find(m, e->hash, e->key, len) ||
	    wq__find_copy(m, e->hash, e->key, len, WQ__REMINDER))
		wq__forget_key(m, e, slot);
	else
		wq__vanish(m, e, slot);
}

uint32_t wq__requeues_of(const struct wq__memory *m, struct wq__entry *e)
{
	struct wq__subject s;

	if (!m->limiter->asks)
		return wq__entry_failures(e);
	s = wq__subject_of(m, e, 0);
	return wq__limiter_failures(m->limiter, &s);
}

void wq__forget_failures(struct wq__memory *m, struct wq__entry *e)
{
	if (m->limiter->forgets) {
		struct wq__subject s = wq__subject_of(m, e, 0);

		wq__limiter_forget(m->limiter, &s);
	}
	wq__entry_set_failures(e, 0);
}

/* ---- calls --------------------------------------------------------------- */

/*
 * A key that is remembered goes if nothing is left of it, or if it has been idle
 * too long. True: it is gone.
 */
static bool tidy(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	int64_t now;

	if (!wq__entry_absent(e) || wq__entry_apart(e))
		return false;
	now = m->limit_room > 0 || m->limiter->idle_ns != WQ_NEVER ? wq__now(m) : 0;
	if (expire(m, e, id, now))
		return true;
	if (!blank(m, e, now))
		return false;
	erase(m, e, id);
	return true;
}

/* The entry that bears what is asked about: the held one's, or the key's. 0, and why. */
static uint32_t bearer_of(struct wq__memory *m, const wq_item *item, uint32_t hash, const void *key,
                          size_t len, int *why)
{
	*why = WQ_OK;
	if (item)
		return wq__held(m, item, why) ? (uint32_t)item->slot : 0;
	return find_bearer(m, hash, key, len);
}

/* The user's own limiter may know keys that the queue does not. */
static struct wq__subject stranger(const void *key, size_t len, void *room)
{
	return (struct wq__subject){.key = key, .len = len, .room = room};
}

int wq__mem_forget(void *state, const wq_item *item, const void *key, size_t len)
{
	struct wq__memory *m = state;
	uint32_t hash = item ? 0 : wq__hash_of(m, key, len);
	int rc;

	wq__whole_lock(m);

	uint32_t id = bearer_of(m, item, hash, key, len, &rc);

	if (id) {
		wq__forget_failures(m, wq__entry_at(m, id));
		tidy(m, wq__entry_at(m, id), id);
	} else if (rc == WQ_OK && m->limiter->asks) {
		int64_t room[WQ__LIMIT_ROOM_MAX / 8] = {0};
		struct wq__subject s = stranger(key, len, room);

		wq__limiter_forget(m->limiter, &s);
	}
	wq__whole_unlock(m);
	return rc;
}

int64_t wq__mem_failures(void *state, const wq_item *item, const void *key, size_t len)
{
	struct wq__memory *m = state;
	uint32_t hash = item ? 0 : wq__hash_of(m, key, len);
	int why;
	int64_t n = 0;

	wq__whole_lock(m);

	uint32_t id = bearer_of(m, item, hash, key, len, &why);

	if (id && tidy(m, wq__entry_at(m, id), id))
		id = 0;
	if (why < 0) {
		n = why;
	} else if (id) {
		n = wq__requeues_of(m, wq__entry_at(m, id));
	} else if (m->limiter->asks) {
		struct wq__subject s = stranger(key, len, NULL);

		n = wq__limiter_failures(m->limiter, &s);
	}
	wq__whole_unlock(m);
	return n;
}

int wq__mem_set_failures(void *state, const void *key, size_t len, uint32_t failures)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len);
	int rc = WQ_OK;

	wq__whole_lock(m);

	uint32_t id = find_bearer(m, hash, key, len);

	if (!m->limiter->counts || m->limiter->asks)
		rc = wq__fail(WQ_ENOTSUP, "the limiter counts no failures, or its own");
	else if (!id)
		rc = WQ_ENOTFOUND;
	else
		wq__entry_set_failures(wq__entry_at(m, id), failures);
	wq__whole_unlock(m);
	return rc;
}

/* The entry that a limited add is about, or NULL. */
struct wq__entry *wq__bearer(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                             uint32_t *id)
{
	*id = find_bearer(m, hash, key, len);
	if (*id && m->limiter->idle_ns != WQ_NEVER) {
		struct wq__entry *e = wq__entry_at(m, *id);

		if (tidy(m, e, *id))
			*id = 0;
	}
	return *id ? wq__entry_at(m, *id) : NULL;
}
