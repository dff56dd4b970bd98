#include "tape_inside.h"

#include <poll.h>
#include <string.h>

/* ---- wait and stop ------------------------------------------------------ */

bool op_wait(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	int64_t deadline_ns = b & 1 ? t->now_ns : 0;

	if (b & 2) {
		int key = tape_some_key(t);
		size_t len;
		const void *bytes = keys_bytes(key, &len);
		bool asked = s->m.keys[key].state & (WQ_STATE_QUEUED | WQ_STATE_RUNNING);
		int want = asked ? WQ_ETIMEDOUT : WQ_OK;

		if (want == WQ_OK && b & 4)
			deadline_ns = WQ_NEVER;
		SAME("wait_key", wq_wait_key_until(s->q, bytes, len, deadline_ns), want);
	} else {
		int want = model_idle(&s->m) ? WQ_OK : WQ_ETIMEDOUT;

		if (want == WQ_OK && b & 4)
			deadline_ns = WQ_NEVER;
		SAME("wait_idle", wq_wait_idle_until(s->q, deadline_ns), want);
	}
	return true;
}

bool op_shutdown(struct tape *t, struct side *s)
{
	/* Seldom, for little happens on a queue that is shut. */
	if (tape_byte(t) % 8 == 7) {
		model_shutdown(&s->m);
		SAME("shutdown", wq_shutdown(s->q), WQ_OK);
	}
	SAME("shutting_down", wq_shutting_down(s->q), s->m.shut);
	return true;
}

/* ---- look --------------------------------------------------------------- */

/* What a walk over a queue that stands still must show. */
struct still {
	struct tape *t;
	struct side *s;
	size_t n, stop_at;
	bool ok;
};

static bool same_info(struct tape *t, struct side *s, const wq_key_info *info)
{
	int key = keys_find(info->key, info->len);

	if (key < 0)
		return tape_fail(t, "walk: shows an unknown key of %zu bytes", info->len);
	if (t->shown[key]++ > 0)
		return tape_fail(t, "walk: shows key %d twice", key);

	unsigned state = model_state(&s->m, key);
	bool only_waits = !(state & (WQ_STATE_QUEUED | WQ_STATE_RUNNING));
	int64_t age = only_waits ? 0 : t->now_ns - s->m.keys[key].added_ns;

	SAME("walk: state", info->state, state);
	SAME("walk: age", info->age_ns, age);
	SAME("walk: due", info->due_ns, model_due(&s->m, key));
	if (!tape_same_load(t, "walk", info->priority, info->value, info->value_len,
	                    model_shown(&s->m, key)) ||
	    !tape_same_group(t, s, &info->group, key))
		return false;
	SAME("walk: state by wq_state", wq_state(s->q, info->key, info->len), state);
	return true;
}

static int show_still(void *ctx, const wq_key_info *info)
{
	struct still *w = ctx;

	w->n++;
	w->ok = w->ok && same_info(w->t, w->s, info);
	return !w->ok || w->n == w->stop_at;
}

/* One picture of it all; what was told adds up to it. */
static bool same_picture(struct tape *t, struct side *s)
{
	wq_snapshot p;

	SAME("look", wq_snapshot_take(s->q, &p), WQ_OK);
	SAME("look: now", p.now_ns, t->now_ns);
	SAME("look: queued", p.queued, s->m.nqueued);
	SAME("look: running", p.running, s->m.nrunning);
	SAME("look: dirty", p.dirty, s->m.ndirty);
	SAME("look: waiting", p.waiting, model_leaves(&s->m) ? 0 : s->m.nwaiting);
	SAME("look: left", p.left, model_leaves(&s->m) ? s->m.nwaiting : 0);
	SAME("look: dead", p.dead, s->m.ndead);
	SAME("look: dropped", p.dropped, s->m.ndropped);
	if (s->m.order == MODEL_FIFO && s->m.nready > 0) {
		int head = model_ranked(&s->m) ? model_first(&s->m) : s->m.line[0];

		SAME("look: the head's age", p.oldest_queued.age_ns,
		     t->now_ns - s->m.keys[head].added_ns);
	}
	if (!tape_same_riches(t, s, &p))
		return false;
	SAME("look: somebody holds a key", s->named && p.running > 0,
	     p.longest_running.age_ns >= 0);
	SAME("told: depth", s->depth, s->named ? p.queued + p.dirty : 0);
	SAME("told: adds", s->adds, p.adds);
	SAME("told: a depth below 0", s->below, false);
	return true;
}

bool tape_walk(struct tape *t, struct side *s, size_t stop_at)
{
	struct still w = {t, s, 0, stop_at, true};
	size_t live = model_live(&s->m);

	memset(t->shown, 0, sizeof t->shown);
	int64_t n = wq_walk(s->q, show_still, &w);

	if (!w.ok || !same_picture(t, s))
		return false;
	SAME("walk: keys", n, stop_at > 0 && stop_at < live ? stop_at : live);
	SAME("walk: calls", w.n, n);
	return true;
}

bool op_walk(struct tape *t, struct side *s)
{
	return tape_walk(t, s, tape_byte(t));
}

/*
 * A walk whose callback changes the queue, so that the table grows or shrinks
 * under it. A key that lives throughout is shown once, the others at most
 * once for each of their lives.
 */
struct moving {
	struct tape *t;
	struct side *s;
	uint32_t random;
	int changes;
	unsigned add_of_8; /* how many of 8 changes are adds */
	bool ok;
};

static bool change(struct tape *t, struct side *s, uint32_t random, bool add)
{
	wq_item it;
	int key, want;

	if (!tape_tick(t))
		return false;
	if (add)
		return tape_add(t, s, tape_plain_key(random >> 8));
	want = model_get(&s->m, MODEL_NOWAIT, &key);
	SAME("get in a walk", wq_try_get(s->q, &it), want);
	tape_note_answer(s, want);
	if (want != WQ_OK)
		return true;
	if (!tape_same_item(t, s, &it, key))
		return false;
	want = model_done(&s->m, key, s->m.keys[key].hold);
	SAME("done in a walk", wq_done(s->q, &it), want);
	return true;
}

static int show_moving(void *ctx, const wq_key_info *info)
{
	struct moving *w = ctx;
	int key = keys_find(info->key, info->len);

	if (key < 0)
		w->ok = tape_fail(w->t, "walk: shows an unknown key of %zu bytes", info->len);
	else
		w->t->shown[key]++;
	for (int i = 0; w->ok && w->changes > 0 && i < 4; i++, w->changes--) {
		w->random = w->random * 1664525 + 1013904223;
		w->ok = change(w->t, w->s, w->random, (w->random >> 4) % 8 < w->add_of_8);
	}
	return !w->ok;
}

bool op_walk_moving(struct tape *t, struct side *s)
{
	static unsigned lives[MODEL_KEYS];
	static bool lived[MODEL_KEYS], beside[MODEL_KEYS];
	struct moving w = {.t = t, .s = s, .ok = true};

	w.random = tape_byte(t);
	w.changes = (int)tape_byte(t) * 8;
	w.add_of_8 = tape_byte(t) % 9;
	memset(t->shown, 0, sizeof t->shown);
	for (int key = 0; key < MODEL_KEYS; key++) {
		lives[key] = s->m.keys[key].lives;
		lived[key] = model_state(&s->m, key) != 0;
		beside[key] = s->m.keys[key].reminder.due_ns > 0;
	}
	int64_t n = wq_walk(s->q, show_moving, &w), shown = 0;

	if (!w.ok)
		return false;
	for (int key = 0; key < MODEL_KEYS; key++) {
		/* A reminder lives for itself once its key is gone. */
		unsigned most = s->m.keys[key].lives - lives[key] + lived[key] + beside[key];
		bool throughout = lived[key] && !beside[key] && model_state(&s->m, key) != 0 &&
		                  s->m.keys[key].lives == lives[key];

		shown += t->shown[key];
		if (t->shown[key] > most || t->shown[key] < throughout)
			return tape_fail(t, "key %d of %u lives was shown %u times", key, most,
			                 t->shown[key]);
	}
	SAME("walk: keys", n, shown);
	return true;
}

bool op_drain(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	struct still w = {t, s, 0, 0, true};
	wq_drain_options options = {.left = show_still, .ctx = &w};
	wq_report r;
	int want, rc;

	if (b % 8 != 7) {
		options.reserved[b % 3] = 1;
		SAME("bad options", wq_drain_until(s->q, 0, &options, &r), WQ_EINVAL);
		SAME("shutting_down", wq_shutting_down(s->q), s->m.shut);
		return true;
	}
	memset(&r, 0x5a, sizeof r);
	memset(t->shown, 0, sizeof t->shown);
	options.mode = b & 8 ? WQ_DRAIN_LEAVE : (enum wq_drain_mode)((b >> 4) % 3);
	model_shut(&s->m, options.mode);
	want = model_drain(&s->m);
	if (b & 8)
		rc = wq_drain_for(s->q, 0, NULL, &r);
	else
		rc = wq_drain_until(s->q, want >= 0 ? WQ_NEVER : t->now_ns, &options, &r);
	SAME("answer", rc, want);
	SAME("report: queued", r.queued, s->m.nqueued);
	SAME("report: running", r.running, s->m.nrunning);
	SAME("report: dirty", r.dirty, s->m.ndirty);
	SAME("report: retries", r.retries, s->m.nretries);
	SAME("report: delayed", r.delayed, s->m.nwaiting - s->m.nretries);
	SAME("report: dead", r.dead, s->m.ndead);
	SAME("report: reserved", r.reserved[0] | r.reserved[1], 0);
	if (!w.ok)
		return false;
	SAME("report: keys", w.n, b & 8 ? 0 : model_live(&s->m));
	return true;
}

bool op_state(struct tape *t, struct side *s)
{
	int key = tape_some_key(t);
	size_t len;
	const void *bytes = keys_bytes(key, &len);

	SAME("state", wq_state(s->q, bytes, len), model_state(&s->m, key));
	SAME("len", wq_len(s->q), s->m.nqueued);
	return true;
}

bool op_fd(struct tape *t, struct side *s)
{
	struct pollfd p = {.fd = wq_fd(s->q), .events = POLLIN};

	if (p.fd < 0)
		return tape_differ(t, "fd", p.fd, 0);
	if (s->fd < 0)
		s->fd = p.fd;
	SAME("the same fd as before", p.fd, s->fd);
	/* On a clock like this one the descriptor knows what is due once somebody looks. */
	SAME("len", wq_len(s->q), s->m.nqueued);

	int n = poll(&p, 1, 0);

	if (s->m.nready > 0 || model_over(&s->m))
		SAME("readable", n, 1);
	else if (!s->m.shut && s->quiet && s->quiet_since == s->m.pushes)
		SAME("readable", n, 0);
	return true;
}

bool op_bad(struct tape *t, struct side *s)
{
	wq_item zero = {0};
	wq_add_options o = {.after_ns = 1};
	int rc;

	switch (tape_byte(t) % 9) {
	case 0:
		SAME("too long", wq_add(s->q, "", WQ_KEY_MAX + 1), WQ_ETOOLONG);
		break;
	case 1:
		SAME("no key", wq_add(s->q, NULL, 1), WQ_EINVAL);
		break;
	case 2:
		rc = wq_done(s->q, &zero);
		if (rc != WQ_ESTALE && rc != WQ_EOTHERQUEUE)
			return tape_differ(t, "done of a zeroed item", rc, WQ_ESTALE);
		break;
	case 3:
		zero.reserved[0] = 1;
		SAME("reserved word", wq_done(s->q, &zero), WQ_EINVAL);
		break;
	case 4:
		SAME("deadline", wq_get_until(s->q, &zero, -2), WQ_EINVAL);
		break;
	case 5:
		SAME("max 0", wq_get_many_until(s->q, &zero, 0, WQ_NOWAIT), WQ_EINVAL);
		break;
	case 6:
		o.within_ns = -1;
		SAME("within < 0", wq_add_with(s->q, "", 0, &o), WQ_EINVAL);
		break;
	case 7:
		o = (wq_add_options){.within_ns = 1, .policy = WQ_REMIND};
		SAME("a reminder within", wq_add_with(s->q, "", 0, &o), WQ_EINVAL);
		break;
	case 8:
		o.within_ns = 1;
		if (!s->within)
			SAME("within", wq_add_with(s->q, "", 0, &o), WQ_EINVAL);
		break;
	}
	return true;
}

/* The queue notices what is due when somebody looks, the model at once: no call may show it. */
bool tape_advance(struct tape *t, int64_t by_ns)
{
	t->now_ns += by_ns;
	SAME("advance", wq_manual_clock_advance(t->mc, by_ns), WQ_OK);
	for (int i = 0; i < 2; i++)
		model_clock(&t->side[i].m, t->now_ns);
	return true;
}

bool tape_tick(struct tape *t)
{
	return !(t->side[0].ticks || t->side[1].ticks) || tape_advance(t, 1);
}

bool op_clock(struct tape *t, struct side *s)
{
	static const int64_t steps[] = {0,         1,      WQ_MICROSECOND, 3 * WQ_MILLISECOND,
	                                WQ_SECOND, WQ_HOUR};
	unsigned b = tape_byte(t);

	if (!tape_advance(t, steps[b % 6] * (1 + b / 6)))
		return false;
	SAME("now", wq_now(s->q), t->now_ns);
	return true;
}
