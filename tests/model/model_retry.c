/* Limited adds, and the ends of a hold that are more than done. */
#include "model.h"

#include <stdlib.h>

void model_limit(struct model *m, const struct model_limits *limits)
{
	m->limits = *limits;
}

void model_release(struct model *m)
{
	for (int key = 0; m->rich.values && key < MODEL_KEYS; key++) {
		model_drop_value(&m->keys[key].load);
		model_drop_value(&m->keys[key].held);
		model_drop_value(&m->keys[key].reminds);
	}
	if (wq_limiter_free(m->limits.limiter) != WQ_OK)
		abort();
}

/* ---- what the limiter remembers ------------------------------------------ */

static int64_t when(struct model *m, int key)
{
	int64_t delay = wq_limiter_when(m->limits.limiter, &key, sizeof key, m->now_ns);

	if (delay < 0)
		abort();
	m->asked = true;
	return delay;
}

static void give_back(struct model *m, int key)
{
	wq_limiter_give_back(m->limits.limiter, &key, sizeof key);
}

/* A refused add counts nothing: as often as before is asked once more. */
static void unask(struct model *m, int key, int64_t before)
{
	if (!m->limits.exact)
		abort();
	model_forget(m, key);
	while (before-- > 0)
		when(m, key);
}

void model_expire(struct model *m, int key)
{
	struct model_key *k = &m->keys[key];

	if (m->limits.idle_ns == 0 || model_state(m, key) != 0 ||
	    m->now_ns - k->idle_since_ns <= m->limits.idle_ns)
		return;
	model_forget(m, key);
	k->idle_since_ns = m->now_ns; /* it may be asked about before it comes back */
}

int64_t model_requeues(struct model *m, int key)
{
	model_expire(m, key);
	return wq_limiter_failures(m->limits.limiter, &key, sizeof key);
}

void model_forget(struct model *m, int key)
{
	wq_limiter_forget(m->limits.limiter, &key, sizeof key);
}

/* ---- calls ---------------------------------------------------------------- */

int model_add_limited(struct model *m, int key, enum wq_policy policy,
                      const struct model_load *with)
{
	int64_t before, due;
	int rc;

	if (m->shut)
		return WQ_ESHUTDOWN;
	before = model_requeues(m, key);
	due = wq_time_add(m->now_ns, when(m, key));
	model_expire(m, key);
	rc = due <= m->now_ns ? model_add(m, key, with)
	                      : model_wait_for(m, key, due, 0, policy, true, with);
	if (rc < 0)
		unask(m, key, before);
	else if (rc == WQ_MERGED || rc == WQ_KEPT)
		give_back(m, key);
	return rc;
}

/* It waits for ever, or as long as a copy of it does that will not come due either. */
static int leave_over(struct model *m, int key, uint64_t hold, bool retry)
{
	model_keep(m, key);
	model_wait_for(m, key, WQ_NEVER, 0, WQ_MIN, retry, NULL);
	model_done(m, key, hold);
	return WQ_LEFT;
}

static int retry(struct model *m, int key, uint64_t hold, int64_t least_ns)
{
	struct model_key *k = &m->keys[key];
	bool dirty = k->state & WQ_STATE_DIRTY, refused = m->shut && !m->patient;
	uint32_t most = m->limits.max_attempts;
	int64_t due, delay;

	if (most > 0 && model_requeues(m, key) + 1 >= most) {
		m->ndead++;
		return WQ_DEAD;
	}
	delay = when(m, key);
	due = wq_time_add(m->now_ns, delay > least_ns ? delay : least_ns);
	if (dirty || refused)
		give_back(m, key);
	if (refused && !dirty) {
		if (!m->hurried || k->last_try)
			return leave_over(m, key, hold, true);
		k->last_try = true;
		due = m->now_ns;
	}
	model_keep(m, key);
	if (due <= m->now_ns)
		model_enter(m, key, m->now_ns, NULL);
	else if (!dirty && model_wait_for(m, key, due, 0, WQ_MIN, true, NULL) == WQ_KEPT)
		give_back(m, key);
	return model_done(m, key, hold);
}

/* Once more after a while; in a queue that is shut it is left over, unless it comes back anyway. */
static int again(struct model *m, int key, uint64_t hold, int64_t after_ns)
{
	const struct model_key *k = &m->keys[key];
	bool dirty = k->state & WQ_STATE_DIRTY, waits = k->state & WQ_STATE_WAITING;

	if (m->shut && !dirty && !(waits && m->patient))
		return leave_over(m, key, hold, false);
	model_keep(m, key);
	if (!m->shut && after_ns == 0)
		model_enter(m, key, m->now_ns, NULL);
	else if (!m->shut)
		model_wait_for(m, key, wq_time_add(m->now_ns, after_ns), 0, WQ_MIN, false, NULL);
	return model_done(m, key, hold);
}

int model_settle(struct model *m, int key, uint64_t hold, wq_verdict verdict)
{
	bool fails = verdict.kind == WQ_VERDICT_RETRY || verdict.kind == WQ_VERDICT_FATAL;
	bool comes_back = fails || verdict.kind == WQ_VERDICT_AGAIN;
	int rc;

	if (model_held(m, key, hold) != WQ_OK)
		return WQ_ESTALE;
	if (comes_back && m->keys[key].cancelled) {
		if (!fails)
			model_forget(m, key);
		rc = model_done(m, key, hold);
		return rc == WQ_OK ? WQ_CANCELLED : rc;
	}
	if (verdict.kind == WQ_VERDICT_FATAL) {
		m->ndead++;
		return WQ_DEAD;
	}
	if (fails)
		return retry(m, key, hold, verdict.delay_ns);
	model_forget(m, key);
	if (comes_back)
		return again(m, key, hold, verdict.delay_ns);
	m->ndropped += verdict.kind == WQ_VERDICT_DROP;
	return model_done(m, key, hold);
}

void model_bury(struct model *m, int key)
{
	model_forget(m, key);
	model_done(m, key, m->keys[key].hold);
}
