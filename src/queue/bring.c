/* See bring.h. */
#include "queue/bring.h"

#include <string.h>

#include "queue/memory.h"

/* ---- values --------------------------------------------------------------- */

uint32_t wq__value_new(struct wq__memory *m, const void *bytes, size_t len)
{
	uint32_t id;
	struct wq__value *v = wq__slab_alloc(&m->slab, sizeof *v + len + 1, &id);

	if (!v)
		return 0;
	wq__value_set(v, bytes, len);
	return id;
}

/* *merged is one of the two, or a new one. WQ_OK, or why not: nothing has changed. */
static int merge(struct wq__memory *m, const struct wq__entry *e, uint32_t old, uint32_t add,
                 uint32_t *merged)
{
	const struct wq__value *a, *b;
	int64_t len;

	*merged = add ? add : old;
	if (!old || !add || m->merge == wq_merge_last)
		return WQ_OK;
	*merged = old;
	if (m->merge == wq_merge_first)
		return WQ_OK;
	a = wq__value_at(m, e, old);
	b = wq__value_at(m, e, add);
	len = m->merge(m->merge_ctx, a->bytes, a->len, b->bytes, b->len, m->merge_out);
	if (len < 0)
		return len > INT_MIN ? (int)len : WQ_EINVAL;
	if (len > WQ_VALUE_MAX)
		return WQ_ETOOLONG;
	*merged = wq__value_new(m, m->merge_out, (size_t)len);
	return *merged ? WQ_OK : WQ_ENOMEM;
}

/* ---- adds ----------------------------------------------------------------- */

int wq__bring_begin(struct wq__memory *m, struct wq__bring *b, const wq_add_options *o,
                    const wq_key *group)
{
	int rc = WQ_OK;

	*b = (struct wq__bring){.priority = (int16_t)o->priority};
	if (o->value) {
		b->value = wq__value_new(m, o->value, o->value_len);
		if (!b->value)
			return WQ_ENOMEM;
	}
	if (m->rank)
		rc = wq__rank_prepare(m, group, o->priority, &b->group);
	if (rc < 0) {
		wq__value_free(m, &b->value);
		return rc;
	}
	m->bring = b;
	return WQ_OK;
}

/* What the value of the entry's copy will be. WQ_OK, or why it cannot be. */
static int prepare_value(struct wq__memory *m, struct wq__bring *b, struct wq__entry *e)
{
	b->merged = b->value;
	if (!(m->flags & WQ__VALUED) || !b->had)
		return WQ_OK;

	uint32_t old = wq__carried_by(m, e)->value;
	int rc = merge(m, e, old, b->value, &b->merged);

	b->made = rc == WQ_OK && b->merged != old && b->merged != b->value;
	return rc;
}

static bool has_copy(const struct wq__entry *e)
{
	return e->bits & (WQ_STATE_QUEUED | WQ_STATE_DIRTY | WQ_STATE_WAITING);
}

int wq__bring_prepare(struct wq__memory *m, struct wq__entry *e)
{
	struct wq__bring *b = m->bring;

	b->had = has_copy(e);
	/* It is the same group, unless the user's function has changed its mind. */
	if (m->rank && !wq__rank_reserve(m, e, b->group, b->priority))
		return WQ_ENOMEM;
	return prepare_value(m, b, e);
}

static void take_value(struct wq__memory *m, struct wq__bring *b, struct wq__carried *c)
{
	if (c->value != b->merged)
		wq__value_free(m, &c->value);
	c->value = b->merged;
	if (b->value == b->merged)
		b->value = 0;
	b->made = false;
}

void wq__bring_apply(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	struct wq__bring *b = m->bring;

	if (m->flags & WQ__VALUED && b->merged)
		take_value(m, b, wq__carried_by(m, e));
	if (WQ__BUG(MERGE_DROPS) && b->had)
		wq__drop_copy(m, e);
	if (!m->rank)
		return;

	struct wq__standing *s = wq__standing_of(m, e);

	if (b->had && (b->priority <= s->priority || WQ__BUG(RAISE_LOST))) {
		/* If it waits and is queued by this add, it has its place already. */
		m->rank->keep = m->rank->keeps_places && (e->bits & WQ__PUBLIC) == WQ_STATE_WAITING;
		return;
	}
	if (e->bits & WQ_STATE_QUEUED) {
		wq__rank_raise(m, e, id, b->priority);
		return;
	}
	s->priority = b->priority;
	if (!(e->bits & WQ_STATE_RUNNING))
		wq__rank_place(m, e);
}

void wq__bring_new(struct wq__memory *m, struct wq__entry *e)
{
	struct wq__bring *b = m->bring;

	if (m->rank) {
		*wq__standing_of(m, e) =
		    (struct wq__standing){.group = b->group, .priority = b->priority};
		wq__group_use(m, b->group);
		wq__rank_place(m, e);
	}
	if (m->flags & WQ__VALUED) {
		*wq__carried_by(m, e) = (struct wq__carried){.value = b->value};
		b->value = 0;
	}
}

void wq__bring_end(struct wq__memory *m, struct wq__bring *b)
{
	/* A merge for nothing: the add was refused. */
	if (b->made)
		wq__value_free(m, &b->merged);
	wq__value_free(m, &b->value);
	wq__group_drop(m, b->group);
	if (m->rank)
		m->rank->keep = false;
	m->bring = NULL;
}

/* That the key has once its reminder is due: it keeps that of a hold. There is memory for it. */
static int16_t reminder_priority(struct wq__memory *m, const struct wq__standing *reminder,
                                 struct wq__entry *key)
{
	const struct wq__standing *s = wq__standing_of(m, key);
	bool held = key->bits & WQ_STATE_RUNNING;
	int16_t own = s->priority;

	if (held && !(has_copy(key) && s->priority > s->held))
		own = s->held;
	/* Of another group, if the user's function has changed its mind. */
	if ((held && reminder->priority <= own) ||
	    !wq__rank_reserve(m, key, reminder->group, reminder->priority))
		return own;
	return reminder->priority;
}

void wq__bring_reminder(struct wq__memory *m, struct wq__entry *reminder, struct wq__entry *key,
                        uint32_t id)
{
	struct wq__bring b = {.had = has_copy(key)}, *before = m->bring;

	if (m->rank)
		b.priority = reminder_priority(m, wq__standing_of(m, reminder), key);
	if (m->flags & WQ__VALUED) {
		b.value = wq__carried_by(m, reminder)->value;
		wq__carried_by(m, reminder)->value = 0;
	}
	m->bring = &b;
	if (prepare_value(m, &b, key) < 0) {
		m->merge_failed++;
		b.merged = 0;
	}
	wq__bring_apply(m, key, id);
	if (m->rank)
		m->rank->keep = false;
	wq__value_free(m, &b.value);
	m->bring = before;
}

void wq__bring_popped(struct wq__memory *m, struct wq__entry *reminder, struct wq__entry *key)
{
	unsigned bits = key->bits;

	/* As if it was dirty: a copy that is not in line. */
	wq__entry_set_bits(key, (bits & ~(unsigned)WQ_STATE_QUEUED) | WQ_STATE_DIRTY);
	wq__bring_reminder(m, reminder, key, 0);
	wq__entry_set_bits(key, bits);
}

/* ---- holds ---------------------------------------------------------------- */

static void keep_value(struct wq__memory *m, const struct wq__entry *e, struct wq__carried *c)
{
	uint32_t merged, held = c->held;

	if (merge(m, e, held, c->value, &merged) < 0) {
		/* What came since stays; the hold's goes with it. */
		m->merge_failed++;
		return;
	}
	if (merged != c->value)
		wq__value_free(m, &c->value);
	if (merged == held)
		c->held = 0;
	c->value = merged;
}

void wq__keep_hold(struct wq__memory *m, struct wq__entry *e)
{
	bool had = e->bits & (WQ_STATE_DIRTY | WQ_STATE_WAITING);

	if (m->rank) {
		struct wq__standing *s = wq__standing_of(m, e);

		if (!had || s->priority < s->held)
			s->priority = WQ__BUG(RETRY_LOSES_RANK) ? 0 : s->held;
	}
	if (m->flags & WQ__VALUED && !WQ__BUG(RETRY_LOSES_VALUE))
		keep_value(m, e, wq__carried_by(m, e));
}

void wq__drop_held(struct wq__memory *m, struct wq__entry *e)
{
	/* A copy that waits has its place from now on; until now that was the hold's memory. */
	if (m->rank)
		wq__rank_place(m, e);
	if (m->flags & WQ__VALUED)
		wq__value_free(m, &wq__carried_by(m, e)->held);
	if (WQ__BUG(DIRTY_LOSES_VALUE))
		wq__drop_copy(m, e);
}

void wq__drop_copy(struct wq__memory *m, struct wq__entry *e)
{
	if (m->flags & WQ__VALUED)
		wq__value_free(m, &wq__carried_by(m, e)->value);
}

void wq__rich_gone(struct wq__memory *m, struct wq__entry *e)
{
	if (m->flags & WQ__VALUED) {
		wq__value_free(m, &wq__carried_by(m, e)->value);
		wq__value_free(m, &wq__carried_by(m, e)->held);
	}
	if (m->rank)
		wq__group_drop(m, wq__standing_of(m, e)->group);
}

void wq__show_rich(const struct wq__memory *m, struct wq__entry *e, wq_key_info *info)
{
	bool copy = has_copy(e);

	if (m->rank) {
		const struct wq__standing *s = wq__standing_of(m, e);

		info->priority = copy ? s->priority : s->held;
		wq__group_name(m, s->group, &info->group);
	}
	if (m->flags & WQ__VALUED) {
		const struct wq__carried *c = wq__carried_by(m, e);
		uint32_t id = copy ? c->value : c->held;

		if (id) {
			info->value = wq__value_at(m, e, id)->bytes;
			info->value_len = wq__value_at(m, e, id)->len;
		}
	}
}
