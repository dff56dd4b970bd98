/* Keys come in: one look-up decides between queued, merged and marked. */
#include <string.h>

#include "queue/memory.h"

enum {
	AHEAD = 16,            /* add_many hashes and prefetches so many keys at a time */
	HOLD_BYTES = 64 << 10, /* of keys that are copied in one hold of the lock */
	UNKNOWN = -1,          /* a time that was not asked for yet */
};

/* The time of the adds under one hold of the lock: asked for once, and only if needed. */
static inline int64_t stamp(const struct wq__memory *m, int64_t *when)
{
	if (*when == UNKNOWN)
		*when = wq__stamp(m);
	return *when;
}

/* The key is there, and not only as a reminder. */
static int add_known(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t *when)
{
	unsigned state = wq__entry_state(e);

	if (wq__unlikely(m->bring != NULL)) {
		int rc = wq__bring_prepare(m, e);

		if (rc < 0)
			return rc;
	}
	if (state & (WQ_STATE_QUEUED | WQ_STATE_DIRTY)) {
		if (state & WQ_STATE_QUEUED && wq__unlikely(m->order.touch != NULL))
			m->order.touch(m->order.ctx, &e->u.node);
		if (wq__unlikely(m->bring != NULL))
			wq__bring_apply(m, e, id);
		return WQ_MERGED;
	}
	if (wq__entry_absent(e)) {
		/* It was only remembered. */
		if (wq__full(m))
			return WQ_EFULL;
		wq__revive(m, e);
	}
	if (wq__unlikely(m->bring != NULL))
		wq__bring_apply(m, e, id);
	if (state & WQ_STATE_WAITING && !WQ__BUG(ABSORB_NOTHING)) {
		/* The waiting copy is absorbed. */
		wq__unwait(m, e);
		state &= ~(unsigned)WQ_STATE_WAITING;
	}
	e->added_ns = stamp(m, when);
	if (state & WQ_STATE_RUNNING) {
		wq__entry_set_state(e, state | WQ_STATE_DIRTY);
		m->ndirty++;
		return WQ_MARKED;
	}
	wq__line_up(m, e, id, *when);
	return WQ_QUEUED;
}

/* A new key of a queue that is not like most; it is in the table. */
static wq__apart void enter_special(struct wq__memory *m, struct wq__entry *e, uint32_t id,
                                    size_t len, uint32_t reminder, int64_t when)
{
	/* What is behind the order's and the limiter's is written before it is read. */
	if (m->meter_at > 0)
		memset((char *)e + wq__entry_room_offset(len), 0, m->meter_at);
	if (reminder)
		wq__pair(m, e, wq__entry_at(m, reminder));
	if (reminder || m->nghosts > 0)
		wq__inherit(m, e, reminder);
	if (m->bring)
		wq__bring_new(m, e);
	wq__line_up(m, e, id, when);
}

static int add_new(struct wq__memory *m, wq__place at, uint32_t hash, const void *key, size_t len,
                   uint32_t reminder, int64_t *when)
{
	struct wq__entry *e;
	uint32_t id;

	if (wq__full(m))
		return WQ_EFULL;
	e = wq__new_entry(m, at, hash, key, len, m->room, 0, &id);
	if (!e)
		return WQ_ENOMEM;
	e->added_ns = stamp(m, when);
	if (wq__special(m))
		enter_special(m, e, id, len, reminder, *when);
	else
		wq__ready_push(m, e, id, WQ_TAIL);
	return WQ_QUEUED;
}

static bool is_due(const struct wq__memory *m, const struct wq__entry *e, uint32_t reminder,
                   int64_t now)
{
	if (e && e->bits & WQ_STATE_WAITING && e->added_ns <= now)
		return true;
	if (e && e->bits & WQ__BESIDE)
		reminder = wq__find_copy(m, e->hash, e->key, wq__entry_len(e), WQ__REMINDER);
	return reminder && wq__entry_at(m, reminder)->added_ns <= now;
}

/*
 * More is due than is in line. WQ_MERGED: this key is among it, and will stand
 * there before the add would. WQ_EAGAIN: the rest had to be moved, look again.
 * WQ_OK: it makes no difference.
 */
static wq__cold int amid_burst(struct wq__memory *m, const struct wq__entry *e, uint32_t reminder,
                               int64_t *when)
{
	bool due = is_due(m, e, reminder, *when);

	if (due && !m->order.touch)
		return WQ_MERGED;
	/* Reminders that merge with their keys may make room, also for one only remembered. */
	if (!due && ((e && !wq__entry_absent(e)) || !wq__full(m)))
		return WQ_OK;
	wq__promote_all(m);
	*when = wq__tick(m);
	return WQ_EAGAIN;
}

/* What a look-up finds of a key. */
struct found {
	struct wq__entry *e; /* NULL: it is not there, or only as a reminder */
	uint32_t id;         /* e's */
	uint32_t reminder;   /* 0: none was met */
	wq__place at;        /* without e: where a new one goes */
};

static wq__forced struct found look_up(const struct wq__memory *m, uint32_t hash, const void *key,
                                       size_t len)
{
	wq__probe p = wq__table_probe(&m->table, hash);
	struct found f = {.e = NULL};
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		struct wq__entry *same = wq__entry_at(m, id);

		if (!wq__entry_is(same, key, len))
			continue;
		if (wq__likely(!wq__entry_apart(same))) {
			f.e = same;
			f.id = id;
			return f;
		}
		if (!wq__entry_is_ghost(same))
			f.reminder = id;
	}
	f.at = wq__probe_end(&p);
	return f;
}

static inline int enter_known(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t *when)
{
	if (WQ__BUG(TWO_WORKERS) && wq__entry_state(e) == WQ_STATE_RUNNING) {
		m->nrunning--;
		wq__ready_push(m, e, id, WQ_TAIL);
		return WQ_QUEUED;
	}
	return add_known(m, e, id, when);
}

/* Does an add change nothing? */
static inline bool merges(const struct wq__entry *e)
{
	return e && e->bits & (WQ_STATE_QUEUED | WQ_STATE_DIRTY);
}

/* What has come due goes first. WQ_OK: go on; WQ_EAGAIN: look again; else this is the answer. */
static wq__apart int before_add(struct wq__memory *m, const struct found *f, bool timed,
                                int64_t *when)
{
	if (timed && !merges(f->e)) {
		int64_t next_due = m->next_due_ns;

		*when = wq__tick(m);
		if (*when >= next_due)
			return WQ_EAGAIN;
	}
	return m->due_left ? amid_burst(m, f->e, f->reminder, when) : WQ_OK;
}

/*
 * One look-up; another one if keys have come due, which may have changed everything.
 * timed: find out whether any have.
 */
static int add_locked(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                      int64_t *when, bool timed)
{
	for (;; timed = false) {
		struct found f = look_up(m, hash, key, len);

		if (wq__special(m)) {
			int rc =
			    m->flags & WQ__SHUT ? WQ_ESHUTDOWN : before_add(m, &f, timed, when);

			if (rc == WQ_EAGAIN)
				continue;
			if (rc != WQ_OK)
				return rc;
		}
		return f.e ? enter_known(m, f.e, f.id, when)
		           : add_new(m, f.at, hash, key, len, f.reminder, when);
	}
}

/* All that is due at `now` is in line already: the lock is not let go of. */
int wq__add_at(struct wq__memory *m, uint32_t hash, const void *key, size_t len, int64_t now)
{
	return add_locked(m, hash, key, len, &now, false);
}

/* The same for a key that is there. */
int wq__add_known_at(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now)
{
	return add_known(m, e, id, &now);
}

/* The queue is whole, and let go of. */
static wq__apart int add_special(struct wq__memory *m, uint32_t hash, const void *key, size_t len)
{
	struct wq__wakes wakes = {.n = 0};
	struct wq__waiter *w = NULL;
	int64_t when = UNKNOWN;
	int rc = wq__metered(m, add_locked(m, hash, key, len, &when, m->flags & WQ__TIMED));

	/* A time is known for sure only where keys may have come due. */
	if (wq__unlikely(m->flags & WQ__TIMED || m->due_left))
		wq__pick_many(m, &wakes);
	else if (rc == WQ_QUEUED && !WQ__BUG(ADD_NO_WAKE))
		w = wq__pick(m);
	wq__whole_unlock(m);
	wq__wake(w);
	wq__wake_many(&wakes);
	return rc;
}

static wq__forced int leave(struct wq__memory *m, int rc)
{
	struct wq__waiter *w = rc == WQ_QUEUED && !WQ__BUG(ADD_NO_WAKE) ? wq__pick(m) : NULL;

	wq__lock_release(&m->lock);
	wq__wake(w);
	return rc;
}

/*
 * The same for a queue like most, in which the key is not in line yet. These two are no part of
 * wq__mem_add(), which so has little to save and restore when there is nothing to do.
 */
static wq__apart int add_unknown(struct wq__memory *m, wq__place at, uint32_t hash, const void *key,
                                 size_t len)
{
	uint32_t id;
	struct wq__entry *e = wq__new_entry(m, at, hash, key, len, 0, WQ_STATE_QUEUED, &id);

	if (wq__unlikely(!e))
		return leave(m, WQ_ENOMEM);
	e->added_ns = wq__stamp(m);
	m->nready++;
	wq__list_push(m, e, id, WQ__BUG(PUSH_TO_HEAD) ? WQ_HEAD : WQ_TAIL);
	return leave(m, WQ_QUEUED);
}

static wq__apart int add_again(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	int64_t when = UNKNOWN;

	return leave(m, enter_known(m, e, id, &when));
}

int wq__mem_add(void *state, const void *key, size_t len)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len);

	wq__lock_acquire(&m->lock);
	if (wq__special(m)) {
		int rc = wq__laned(m) ? wq__lane_add(m, m->lane, hash, key, len) : WQ__WHOLE;

		return rc == WQ__WHOLE ? add_special(m, hash, key, len) : rc;
	}

	struct found f = look_up(m, hash, key, len);

	if (!f.e)
		return add_unknown(m, f.at, hash, key, len);
	if (!merges(f.e))
		return add_again(m, f.e, f.id);
	wq__lock_release(&m->lock);
	return WQ_MERGED;
}

/* Where a new key goes, in a queue with priorities or groups. */
struct spot {
	struct wq__line *line;  /* of its level: of keys, or of groups */
	struct wq__line *own;   /* of its level in its group */
	struct wq__keygroup *g; /* NULL: no groups */
	uint32_t group;
};

/* False: the level is not reserved, or the group is not there, or sleeps for the sake of nobody. */
static inline bool find_spot(const struct wq__memory *m, const wq_key *group, uint32_t group_hash,
                             int priority, struct spot *s)
{
	struct wq__rank *r = m->rank;

	s->line = wq__levels_line(&r->levels, priority);
	s->g = NULL;
	s->group = 0;
	if (!r->grouped)
		return s->line != NULL;
	s->group = wq__rank_find(m, group_hash, group);
	if (!s->line || !s->group)
		return false;
	s->g = wq__slab_at(&m->slab, s->group);
	s->own = wq__levels_line(&s->g->levels, priority);
	return s->own != NULL && s->g->token_ns == 0;
}

static inline void enter_spot(struct wq__memory *m, const struct spot *s, struct wq__entry *e,
                              uint32_t id)
{
	s->line->keys++;
	if (s->g) {
		wq__group_push(m, s->g, s->group, s->own, id, &e->u.line);
		return;
	}
	m->nready++;
	wq__line_append(&m->rank->of, &m->rank->levels, s->line, id, &e->u.line, ++m->rank->places);
}

/* A new key of a queue with riches and nothing else; all other cases are rich.c's. */
int wq__light_add(struct wq__memory *m, const void *key, size_t len, const wq_add_options *o,
                  const wq_key *group)
{
	uint32_t hash = wq__hash_of(m, key, len);
	uint32_t group_hash = group ? wq__hash_of(m, group->key, group->len) : 0;
	size_t room = m->room;
	uint32_t id, value = 0;
	struct wq__entry *e;
	struct found f;
	struct spot s = {.line = NULL};

	wq__lock_acquire(&m->lock);
	if (!wq__light(m))
		return wq__rich_add(m, hash, key, len, o, group);
	f = look_up(m, hash, key, len);
	if (f.e || f.reminder || (m->rank && !find_spot(m, group, group_hash, o->priority, &s)))
		return wq__rich_add(m, hash, key, len, o, group);
	if (o->value && o->value_len <= WQ__INLINE_MAX) {
		value = (uint32_t)WQ__INLINE;
		room += sizeof(struct wq__value) + o->value_len + 1;
	} else if (o->value && !(value = wq__value_new(m, o->value, o->value_len))) {
		return leave(m, WQ_ENOMEM);
	}
	e = wq__new_entry(m, f.at, hash, key, len, room, WQ_STATE_QUEUED, &id);
	if (wq__unlikely(!e)) {
		wq__value_free(m, &value);
		return leave(m, WQ_ENOMEM);
	}
	if (value == (uint32_t)WQ__INLINE)
		wq__value_set(wq__value_inline(m, e, len), o->value, o->value_len);
	e->added_ns = wq__stamp(m);
	if (m->flags & WQ__VALUED)
		*wq__carried_by(m, e) = (struct wq__carried){.value = value};
	if (s.line) {
		*wq__standing_of(m, e) =
		    (struct wq__standing){.group = s.group, .priority = (int16_t)o->priority};
		enter_spot(m, &s, e, id);
	} else {
		m->nready++;
		wq__list_push(m, e, id, WQ_TAIL);
	}
	return leave(m, WQ_QUEUED);
}

static int check_key(const wq_key *k)
{
	if (!k->key && k->len > 0)
		return WQ_EINVAL;
	return k->len > WQ_KEY_MAX ? WQ_ETOOLONG : WQ_OK;
}

/* How many of the next keys go into one hold of the lock: bounded in keys and in bytes. */
static size_t batch_of(const wq_key *keys, size_t n)
{
	size_t bytes = 0, i = 0;

	while (i < n && i < wq__per_hold(WQ__HOLD_MAX) && (i == 0 || bytes < HOLD_BYTES)) {
		if (check_key(&keys[i]) == WQ_OK)
			bytes += keys[i].len;
		i++;
	}
	return i;
}

static void hash_batch(const struct wq__memory *m, const wq_key *keys, size_t n, uint32_t *hash)
{
	for (size_t i = 0; i < n; i++)
		if (check_key(&keys[i]) == WQ_OK)
			hash[i] = wq__hash_of(m, keys[i].key, keys[i].len);
}

/*
 * A batch of keys. The front lock is held; in a queue with a lane, the queue may be whole
 * afterwards: *whole says so, and is told it by who made it so before.
 */
static int add_batch(struct wq__memory *m, const wq_key *keys, size_t n, const uint32_t *hash,
                     int *outcomes, bool *whole)
{
	struct wq__lane *l = wq__lane_of(m);
	int64_t when = UNKNOWN;
	int accepted = 0;

	for (size_t i = 0; i < n; i++) {
		const wq_key *k = &keys[i];
		int rc = check_key(k);

		/* Ask for the memory of the next few look-ups at once, not one by one. */
		if (i % AHEAD == 0)
			for (size_t j = i; j < n && j < i + AHEAD; j++)
				wq__table_prefetch(&m->table, hash[j]);
		if (rc == WQ_OK && !*whole) {
			rc = wq__lane_add_one(m, hash[i], k->key, k->len);
			if (rc == WQ__WHOLE) {
				wq__whole_anew(m);
				*whole = true;
				rc = WQ_OK;
			} else {
				wq__lane_sweep(m, l);
			}
		}
		if (rc == WQ_OK)
			rc = wq__metered(m, add_locked(m, hash[i], k->key, k->len, &when,
			                               m->flags & WQ__TIMED));
		accepted += rc > 0;
		if (outcomes)
			outcomes[i] = rc;
	}
	return accepted;
}

int wq__mem_add_many(void *state, const wq_key *keys, size_t n, int *outcomes)
{
	struct wq__memory *m = state;
	struct wq__wakes wakes;
	wq__passed passed = {.given = false};
	int accepted = 0;

	for (size_t done = 0; done < n;) {
		uint32_t hash[WQ__HOLD_MAX] = {0};
		size_t batch = batch_of(keys + done, n - done);
		int *told = outcomes ? outcomes + done : NULL;
		bool whole;

		hash_batch(m, keys + done, batch, hash);
		wq__lock_retake(&m->lock, passed);
		whole = !wq__laned(m);
		if (done > 0)
			m->inside--;
		accepted += add_batch(m, keys + done, batch, hash, told, &whole);
		done += batch;
		wq__pick_many(m, &wakes);
		m->inside += done < n;
		if (whole && wq__laned(m)) {
			wq__whole_unlock(m);
			passed.given = false;
		} else if (done < n) {
			passed = wq__lock_pass(&m->lock);
		} else {
			wq__lock_release(&m->lock);
		}
		wq__wake_many(&wakes);
	}
	return accepted;
}
