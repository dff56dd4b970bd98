#include "tape_inside.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static wq_item items[MODEL_KEYS];
static wq_key add_keys[MODEL_KEYS];
static int outcomes[MODEL_KEYS];

/* ---- add ---------------------------------------------------------------- */

bool tape_add(struct tape *t, struct side *s, int key)
{
	size_t len;
	const void *bytes = keys_bytes(key, &len);
	unsigned char *copy = malloc(len > 0 ? len : 1);

	if (!copy)
		abort();
	/* Of the key's exact size, and gone afterwards: the queue may not keep it. */
	memcpy(copy, bytes, len);

	struct model_load with = tape_some_load(t, s);
	int rc = tape_brings(&with) ? tape_add_with(s, copy, len, &(wq_add_options){0}, &with)
	                            : wq_add(s->q, len > 0 ? copy : NULL, len);

	free(copy);
	SAME("answer", rc, model_add(&s->m, key, &with));
	return true;
}

bool op_add(struct tape *t, struct side *s)
{
	return tape_add(t, s, (int)(tape_byte(t) % KEYS_SMALL));
}

bool op_add_plain(struct tape *t, struct side *s)
{
	return tape_add(t, s, tape_plain_key(tape_word(t)));
}

bool op_add_str(struct tape *t, struct side *s)
{
	static const int strings[] = {0, 3, 6, 8, 9, 10};
	int key = strings[tape_byte(t) % (sizeof strings / sizeof *strings)];
	size_t len;
	char text[32] = {0};
	const void *bytes = keys_bytes(key, &len);

	memcpy(text, bytes, len);
	SAME("answer", wq_add_str(s->q, text), model_add(&s->m, key, &model_plain));
	return true;
}

static bool add_batch(struct tape *t, struct side *s, size_t n, const int *want, bool tell)
{
	int accepted = 0;

	for (size_t i = 0; i < n; i++) {
		accepted += want[i] >= 0;
		outcomes[i] = INT_MIN;
	}
	SAME("accepted", wq_add_many(s->q, add_keys, n, tell ? outcomes : NULL), accepted);
	for (size_t i = 0; tell && i < n; i++)
		SAME("outcome", outcomes[i], want[i]);
	return true;
}

/* Where each key has to have a time of its own: now. */
static bool add_alone(struct tape *t, struct side *s, int key, size_t i)
{
	int want, outcome = INT_MIN;

	if (!s->ticks)
		return true;
	if (!tape_tick(t))
		return false;
	want = model_add(&s->m, key, &model_plain);
	SAME("accepted", wq_add_many(s->q, &add_keys[i], 1, &outcome), want >= 0);
	SAME("outcome", outcome, want);
	return true;
}

bool op_add_many(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	size_t n = b % (BATCH_MAX + 1);
	int want[BATCH_MAX];

	for (size_t i = 0; i < n; i++) {
		unsigned kind = b >= 0xc0 ? tape_byte(t) & 15 : 2;

		if (kind == 0) {
			add_keys[i] = (wq_key){"", WQ_KEY_MAX + 1};
			want[i] = WQ_ETOOLONG;
		} else if (kind == 1) {
			add_keys[i] = (wq_key){NULL, 1};
			want[i] = WQ_EINVAL;
		} else {
			int key = tape_some_key(t);

			add_keys[i].key = keys_bytes(key, &add_keys[i].len);
			if (!add_alone(t, s, key, i))
				return false;
			if (!s->ticks)
				want[i] = model_add(&s->m, key, &model_plain);
		}
		if (s->ticks)
			want[i] = 0;
	}
	if (s->ticks)
		return true;
	return add_batch(t, s, n, want, b % 3 != 0);
}

/*
 * How many keys at once: mostly some, sometimes very many. Choosing the
 * busiest is a linear search, as are priorities, so their lines are kept short.
 */
static size_t burst(const struct side *s, unsigned b)
{
	return b < 224 || s->m.order == MODEL_BUSIEST || model_ranked(&s->m) ? b : (b - 223) * 64;
}

bool op_add_burst(struct tape *t, struct side *s)
{
	size_t n = burst(s, tape_byte(t));
	unsigned first = tape_word(t), step = 1 + tape_byte(t) % 7;
	static int want[MODEL_KEYS];

	for (size_t i = 0; i < n; i++) {
		int key = tape_plain_key(first + (unsigned)i * step);

		add_keys[i].key = keys_bytes(key, &add_keys[i].len);
		if (!add_alone(t, s, key, i))
			return false;
		if (!s->ticks)
			want[i] = model_add(&s->m, key, &model_plain);
	}
	if (s->ticks)
		return true;
	return add_batch(t, s, n, want, true);
}

/* ---- get ---------------------------------------------------------------- */

void tape_hold(struct tape *t, struct side *s, const wq_item *it, int key)
{
	t->held[t->nheld++] = (struct held){*it, s, key, s->m.keys[key].hold};
}

enum model_wait tape_some_wait(struct tape *t, const struct side *s, int64_t *deadline_ns)
{
	unsigned b = tape_byte(t);

	switch (b & 3) {
	case 3:
		if (!model_blocks(&s->m)) {
			*deadline_ns = b & 4 ? WQ_NEVER : t->now_ns + 1 + b;
			return MODEL_LONG;
		}
		/* fall through */
	case 2:
		*deadline_ns = b & 4 ? 0 : t->now_ns;
		return MODEL_PASSED;
	default:
		*deadline_ns = WQ_NOWAIT;
		return MODEL_NOWAIT;
	}
}

bool op_get(struct tape *t, struct side *s)
{
	int64_t deadline_ns;
	enum model_wait wait = tape_some_wait(t, s, &deadline_ns);
	wq_item it, before;
	int key, want = model_get(&s->m, wait, &key), rc;

	memset(&it, 0x5a, sizeof it);
	before = it;
	if (wait == MODEL_NOWAIT)
		rc = wq_try_get(s->q, &it);
	else if (deadline_ns == WQ_NEVER)
		rc = wq_get(s->q, &it);
	else if (deadline_ns == t->now_ns)
		rc = wq_get_for(s->q, &it, -(int64_t)(t->step % 3));
	else
		rc = wq_get_until(s->q, &it, deadline_ns);
	SAME("answer", rc, want);
	tape_note_answer(s, rc);
	if (rc != WQ_OK) {
		SAME("item was written", memcmp(&it, &before, sizeof it), 0);
		return true;
	}
	if (!tape_same_item(t, s, &it, key))
		return false;
	tape_hold(t, s, &it, key);
	return true;
}

/* What get_many and next_many put into items[]: want keys, or an error. */
static bool same_items(struct tape *t, struct side *s, size_t max, enum model_wait wait, int rc)
{
	for (size_t i = 0; i < max; i++) {
		wq_item it;
		int key, want = model_get(&s->m, wait, &key);

		/* Only the first can fail: the loop ends when nothing is left. */
		if (want != WQ_OK) {
			SAME("answer", rc, want);
			tape_note_answer(s, rc);
			return true;
		}
		if (s->m.nready == 0)
			max = i + 1;
		if (rc <= (int)i)
			return tape_differ(t, "items", rc, (int64_t)i + 1);
		it = items[i];
		if (!tape_same_item(t, s, &it, key))
			return false;
		tape_hold(t, s, &it, key);
	}
	SAME("items", rc, max);
	return true;
}

bool op_get_many(struct tape *t, struct side *s)
{
	size_t max = 1 + (s->ticks ? 0 : tape_byte(t) % BATCH_MAX);
	int64_t deadline_ns;
	enum model_wait wait = tape_some_wait(t, s, &deadline_ns);

	memset(items, 0, max * sizeof *items);
	return same_items(t, s, max, wait, wq_get_many_until(s->q, items, max, deadline_ns));
}

/* A worker in a hurry: many keys are got and done at once. */
bool op_work_off(struct tape *t, struct side *s)
{
	size_t max = 1 + (s->ticks ? 0 : burst(s, tape_byte(t))), first = t->nheld;

	memset(items, 0, max * sizeof *items);
	int rc = wq_get_many_until(s->q, items, max, WQ_NOWAIT);

	if (!same_items(t, s, max, MODEL_NOWAIT, rc))
		return false;
	if (rc < 0)
		return true;
	SAME("done", wq_done_many(s->q, items, (size_t)rc, outcomes), rc);
	for (size_t i = 0; i < (size_t)rc; i++) {
		struct held *h = &t->held[first + i];

		SAME("outcome", outcomes[i], model_done(&s->m, h->key, h->hold));
	}
	t->nheld = first;
	return true;
}

bool op_interrupt(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	int n = b == 0xff ? INT_MAX : (int)(b % 5);

	SAME("kept before", wq_interrupt(s->q, n), model_interrupt(&s->m, n));
	return true;
}

/* ---- done --------------------------------------------------------------- */

/* From the held ones, if it is there, to the copies that are kept. */
void tape_handed_back(struct tape *t, const struct held *h)
{
	struct held copy = *h;

	for (size_t i = 0; i < t->nheld; i++)
		if (t->held[i].home == copy.home && t->held[i].hold == copy.hold) {
			t->held[i] = t->held[--t->nheld];
			break;
		}
	t->kept[t->kept_at] = copy;
	t->kept_at = (t->kept_at + 1) % KEPT_MAX;
	if (t->nkept < KEPT_MAX)
		t->nkept++;
}

bool tape_pick(struct tape *t, struct held *h, struct side **s)
{
	unsigned b = tape_byte(t);

	if (b < 0xc0 && t->nheld > 0)
		*h = t->held[(t->nheld < 64 ? b : b << 8 | tape_byte(t)) % t->nheld];
	else if (t->nkept > 0)
		*h = t->kept[b % t->nkept];
	else
		return false;
	*s = h->home;
	if (b % 16 == 15)
		*s = h->home == &t->side[0] ? &t->side[1] : &t->side[0];
	return true;
}

static int model_answer(const struct held *h, struct side *s)
{
	return h->home == s ? model_done(&s->m, h->key, h->hold) : WQ_EOTHERQUEUE;
}

bool op_done(struct tape *t, struct side *s)
{
	struct held h;

	if (!tape_pick(t, &h, &s))
		return true;
	int want = model_answer(&h, s);

	SAME("answer", wq_done(s->q, &h.item), want);
	if (want >= 0)
		tape_handed_back(t, &h);
	return true;
}

/* Fills items[] with what is to be handed back; the same item twice is welcome. */
static size_t pick_many(struct tape *t, struct side *s, struct held *h)
{
	size_t n = tape_byte(t) % (BATCH_MAX + 1), got = 0;
	struct side *ignored;

	memset(items, 0, (BATCH_MAX + 1) * sizeof *items);
	for (size_t i = 0; i < n; i++) {
		if (!tape_pick(t, &h[got], &ignored))
			continue;
		/* Only now and then another queue's: it ends a next_many. */
		if (h[got].home != s && tape_byte(t) % 4 != 0)
			continue;
		items[got] = h[got].item;
		got++;
	}
	return got;
}

bool op_done_many(struct tape *t, struct side *s)
{
	struct held h[BATCH_MAX];
	size_t n = pick_many(t, s, h);
	bool tell = tape_byte(t) % 4 != 0;
	int want[BATCH_MAX], count = 0;

	for (size_t i = 0; i < n; i++) {
		want[i] = model_answer(&h[i], s);
		count += want[i] >= 0;
		if (want[i] >= 0)
			tape_handed_back(t, &h[i]);
	}
	SAME("done", wq_done_many(s->q, items, n, tell ? outcomes : NULL), count);
	for (size_t i = 0; tell && i < n; i++)
		SAME("outcome", outcomes[i], want[i]);
	return true;
}

bool op_next(struct tape *t, struct side *s)
{
	struct held h;

	if (!tape_pick(t, &h, &s))
		return true;

	wq_item it = h.item;
	int want = model_answer(&h, s), key = -1, rc;

	if (want < 0) {
		SAME("answer", wq_next_until(s->q, &it, t->now_ns), want);
		SAME("item was written", memcmp(&it, &h.item, sizeof it), 0);
		return true;
	}
	tape_handed_back(t, &h);

	int64_t deadline_ns;
	enum model_wait wait = tape_some_wait(t, s, &deadline_ns);

	want = model_get(&s->m, wait, &key);
	rc = deadline_ns == WQ_NEVER ? wq_next(s->q, &it) : wq_next_until(s->q, &it, deadline_ns);
	SAME("answer", rc, want);
	tape_note_answer(s, rc);
	if (rc != WQ_OK) {
		SAME("item was written", memcmp(&it, &h.item, sizeof it), 0);
		return true;
	}
	if (!tape_same_item(t, s, &it, key))
		return false;
	tape_hold(t, s, &it, key);
	return true;
}

bool op_next_many(struct tape *t, struct side *s)
{
	struct held h[BATCH_MAX];

	if (s->ticks)
		return op_next(t, s);

	size_t n = pick_many(t, s, h), max = n + tape_byte(t) % 4;
	int want = WQ_OK;

	if (max == 0)
		max = 1;
	for (size_t i = 0; i < n; i++) {
		int rc = model_answer(&h[i], s);

		if (rc >= 0)
			tape_handed_back(t, &h[i]);
		else if (want == WQ_OK)
			want = rc;
	}

	int64_t deadline_ns;
	enum model_wait wait = tape_some_wait(t, s, &deadline_ns);
	int rc = wq_next_many_until(s->q, items, n, max, deadline_ns);

	if (want == WQ_OK)
		return same_items(t, s, max, wait, rc);
	SAME("answer", rc, want);
	return true;
}

bool op_requeue(struct tape *t, struct side *s)
{
	struct held h;

	if (!tape_pick(t, &h, &s))
		return true;
	enum wq_where where = tape_byte(t) & 1 ? WQ_HEAD : WQ_TAIL;

	/* It may go before others of other levels, too: that is not promised. */
	if (s->m.overtook)
		where = WQ_TAIL;
	/* An order of one's own learns of what is due when somebody looks, and this does not look. */
	if (where == WQ_HEAD && s->m.order != MODEL_FIFO)
		SAME("len", wq_len(s->q), s->m.nqueued);

	int want = h.home == s ? model_requeue(&s->m, h.key, h.hold, where) : WQ_EOTHERQUEUE;

	SAME("answer", wq_requeue(s->q, &h.item, where), want);
	if (want >= 0)
		tape_handed_back(t, &h);
	return true;
}

bool op_extend(struct tape *t, struct side *s)
{
	struct held h;

	if (!tape_pick(t, &h, &s))
		return true;
	int want = h.home == s ? model_held(&s->m, h.key, h.hold) : WQ_EOTHERQUEUE;

	SAME("extend", wq_extend(s->q, &h.item, WQ_SECOND), want);
	SAME("lost", wq_lost(s->q, &h.item), want);
	return true;
}
