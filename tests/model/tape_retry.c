#include "tape_inside.h"

#include <string.h>

/*
 * A key that was moved or taken back and comes to a time it had before may keep
 * its place among those of that time: so time goes on a little first.
 */
static bool step_aside(struct tape *t, const struct side *s, int key)
{
	return !s->m.keys[key].stirred || tape_advance(t, 1);
}

/* ---- by the key ----------------------------------------------------------- */

bool tape_forget(struct tape *t, struct side *s, int key)
{
	size_t len;
	const void *bytes = keys_bytes(key, &len);

	SAME("requeues", wq_failures(s->q, bytes, len), model_requeues(&s->m, key));
	SAME("forget", wq_forget(s->q, bytes, len), WQ_OK);
	model_forget(&s->m, key);
	SAME("requeues afterwards", wq_failures(s->q, bytes, len), model_requeues(&s->m, key));
	return true;
}

static bool add_limited(struct tape *t, struct side *s, int key, enum wq_policy policy)
{
	wq_add_options o = {.limited = 1, .policy = policy};
	size_t len;
	const void *bytes = keys_bytes(key, &len);
	int want, rc;

	if (!step_aside(t, s, key))
		return false;

	struct model_load with = tape_some_load(t, s);

	want = model_add_limited(&s->m, key, policy, &with);
	rc = policy == WQ_MIN && !tape_brings(&with) ? wq_add_limited(s->q, bytes, len)
	                                             : tape_add_with(s, bytes, len, &o, &with);
	SAME("answer", rc, want);
	return true;
}

/* Policies in the low bits, so that most are adds; some forget, and all are asked about. */
bool op_limited(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	int key = tape_some_key(t);
	size_t len;
	const void *bytes = keys_bytes(key, &len);

	if (b % 16 == 15)
		return tape_forget(t, s, key);
	if (b % 16 < 12 && !add_limited(t, s, key, (enum wq_policy)(b / 16 % 5)))
		return false;
	SAME("requeues", wq_failures(s->q, bytes, len), model_requeues(&s->m, key));
	return true;
}

/* ---- by the item ---------------------------------------------------------- */

/* Every copy of the item is stale, and the key can be added. */
static bool dies(struct tape *t, struct side *s, const struct dying *d, const wq_item *item)
{
	const struct held *h = d->held;
	size_t len;
	const void *bytes = keys_bytes(h->key, &len);

	if (item->len != len || memcmp(item->key, bytes, len) != 0)
		return tape_fail(t, "dead letter: the wrong key");
	SAME("dead letter: an old copy", wq_done(s->q, &h->item), WQ_ESTALE);
	SAME("dead letter: lost", wq_lost(s->q, item), 0);
	SAME("dead letter: state", wq_state(s->q, bytes, len), model_state(&s->m, h->key));
	SAME("dead letter: requeues", wq_failures_item(s->q, item), model_requeues(&s->m, h->key));
	if (d->adds && !tape_add(t, s, h->key))
		return false;
	model_bury(&s->m, h->key);
	return true;
}

void tape_dead_letter(void *ctx, const wq_item *item)
{
	struct dying *d = ctx;

	d->calls++;
	d->ok = d->held ? dies(d->t, d->s, d, item) : tape_fail(d->t, "a dead letter");
	d->held = NULL;
}

/* A delay of a verdict: none, a short one, one that ends, or hardly ever does. */
static int64_t some_delay(unsigned b)
{
	switch (b / 16 % 4) {
	case 0:
		return 0;
	case 1:
		return b & 0x80 ? WQ_NEVER : -1;
	case 2:
		return 1000 * (int64_t)(1 + b);
	default:
		return b & 0x80 ? WQ_NEVER - 1 : (int64_t)(1 + b) << 20;
	}
}

static wq_verdict some_verdict(struct tape *t)
{
	unsigned b = tape_byte(t);

	switch (b % 16) {
	case 0:
		return WQ_DONE;
	case 1:
		return WQ_DROP;
	case 2:
	case 5:
		return wq_again_after(some_delay(b));
	case 3:
	case 4:
		return wq_again_after((int64_t)(1 + b / 16) << 20);
	case 6:
	case 8:
		return wq_retry_after(some_delay(b));
	case 9:
		return wq_retry_after((int64_t)(1 + b / 16) << 20);
	case 7:
		return b & 0x80 ? WQ_FATAL : WQ_RETRY;
	default:
		return WQ_RETRY;
	}
}

/* What is no verdict changes nothing. */
static bool no_verdict(struct tape *t, struct side *s, const struct held *h, unsigned b)
{
	wq_verdict bad[] = {{.kind = WQ_VERDICT_FATAL + 1 + b},
	                    {.kind = b % 5, .delay_ns = -1},
	                    {.kind = b % 5, .reserved0 = 1 + b}};
	wq_verdict v = bad[b % 3];
	wq_item it = h->item;
	int settled = 77;

	SAME("settle: no verdict", wq_settle(s->q, &it, v), WQ_EINVAL);
	SAME("settle_next: no verdict", wq_settle_next_until(s->q, &it, v, WQ_NOWAIT, &settled),
	     WQ_EINVAL);
	SAME("settled", settled, 77);
	SAME("item was written", memcmp(&it, &h->item, sizeof it), 0);
	SAME("lost", wq_lost(s->q, &h->item), 0);
	return true;
}

/* The item is handed to a queue that it does not belong to, or not any more. */
static bool settle_wrongly(struct tape *t, struct side *s, const struct held *h, int want)
{
	wq_item it = h->item;
	int settled = 77;

	SAME("settle", wq_settle(s->q, &it, WQ_DONE), want);
	SAME("retry", wq_retry(s->q, &it), want);
	SAME("settle_next", wq_settle_next_until(s->q, &it, WQ_RETRY, WQ_NOWAIT, &settled), want);
	SAME("settled", settled, 77);
	SAME("forget_item", wq_forget_item(s->q, &it), want);
	SAME("failures_item", wq_failures_item(s->q, &it), want);
	SAME("item was written", memcmp(&it, &h->item, sizeof it), 0);
	return true;
}

static bool settle_alone(struct tape *t, struct side *s, const struct held *h, wq_verdict verdict,
                         int want)
{
	bool plain = verdict.kind == WQ_VERDICT_RETRY && verdict.delay_ns == 0;
	int rc = plain ? wq_retry(s->q, &h->item) : wq_settle(s->q, &h->item, verdict);

	if (!s->dying.ok)
		return false;
	SAME("answer", rc, want);
	return true;
}

static bool settle_and_get(struct tape *t, struct side *s, const struct held *h, wq_verdict verdict,
                           int want)
{
	wq_item it = h->item;
	int64_t deadline_ns = WQ_NOWAIT;
	enum model_wait wait = MODEL_NOWAIT;
	int settled = 77, rc, key, got;

	/* What a dead key leaves behind is known only afterwards. */
	if (want != WQ_DEAD)
		wait = tape_some_wait(t, s, &deadline_ns);
	rc = wq_settle_next_until(s->q, &it, verdict, deadline_ns, &settled);
	if (!s->dying.ok)
		return false;
	SAME("settled", settled, want);
	got = model_get(&s->m, wait, &key);
	SAME("answer", rc, got);
	tape_note_answer(s, rc);
	if (rc != WQ_OK) {
		SAME("item was written", memcmp(&it, &h->item, sizeof it), 0);
		return true;
	}
	if (!tape_same_item(t, s, &it, key))
		return false;
	tape_hold(t, s, &it, key);
	return true;
}

bool op_settle(struct tape *t, struct side *s)
{
	struct held h;
	int calls, want;
	unsigned b;

	if (!tape_pick(t, &h, &s))
		return true;
	want = h.home == s ? model_held(&s->m, h.key, h.hold) : WQ_EOTHERQUEUE;
	if (want < 0)
		return settle_wrongly(t, s, &h, want);
	b = tape_byte(t);
	SAME("requeues of the item", wq_failures_item(s->q, &h.item), model_requeues(&s->m, h.key));
	if (b % 16 == 15) {
		SAME("forget_item", wq_forget_item(s->q, &h.item), WQ_OK);
		model_forget(&s->m, h.key);
		return true;
	}
	if (b % 16 == 14)
		return no_verdict(t, s, &h, b / 16);
	if (!step_aside(t, s, h.key))
		return false;

	wq_verdict verdict = some_verdict(t);

	calls = s->dying.calls;
	want = model_settle(&s->m, h.key, h.hold, verdict);
	tape_handed_back(t, &h);
	s->dying.held = want == WQ_DEAD ? &h : NULL;
	s->dying.adds = b & 0x80;
	if (!(b & 1 ? settle_and_get(t, s, &h, verdict, want)
	            : settle_alone(t, s, &h, verdict, want)))
		return false;
	SAME("dead letters", s->dying.calls, calls + (want == WQ_DEAD));
	return true;
}
