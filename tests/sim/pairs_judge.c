/*
 * What must hold, see pairs.h:
 *
 *   at each release   the queue's counts are those of its keys; ready keys and
 *                     sleeping Gets imply one that is under way
 *   everybody waits   each call that waits has something to wait for: a drain
 *                     none if a shutdown began after it
 *   a call answers    only what its header says, given what the others did
 *   in the end        what was accepted was handed out, cancelled or left over, and
 *                     is reported so, key by key
 */
#include "pairs.h"

#include <string.h>

#include "queue/memory.h"
#include "queue/queue.h"

static struct wq__memory *inside(void)
{
	return run.q->state;
}

/* ---- the ledger ---------------------------------------------------------------- */

void pairs_added(int key, int64_t rc, uint32_t section)
{
	if (rc == WQ_QUEUED || rc == WQ_MARKED || rc == WQ_MERGED)
		run.wanted[key] = run.sure[key] = 2 * section;
	else if (rc == WQ_DELAYED || rc == WQ_MOVED || rc == WQ_KEPT)
		run.waited[key] = 2 * section;
}

void pairs_got(const wq_item *it)
{
	int key = pairs_key_of(it);

	if (run.holding[key])
		sim_fail("key %s is with two workers", pairs_key(key));
	run.holding[key] = true;
	run.item[key] = *it;
	run.ending[key] = 0;
	run.got[key] = 2 * sim_call_last() + 1;
	run.sure[key] = 2 * sim_call_first() + 1;
}

void pairs_ends(int key)
{
	run.holding[key] = false;
	run.ending[key]++;
}

void pairs_hold_ended(int key, int64_t rc, uint32_t section)
{
	if (rc == WQ_ESTALE) {
		if (run.ending[key] < 2 && run.got[key] == 0)
			sim_fail("key %s is held, but its item was called stale", pairs_key(key));
		return;
	}
	if (rc < 0)
		sim_fail("a hold of %s was not ended: %s", pairs_key(key), wq_status_name((int)rc));
	if (rc == WQ_DELAYED && run.cut && sim_call_first() > run.cut)
		sim_fail("key %s is said to come due, but is left over", pairs_key(key));
	if (rc == WQ_LEFT && !run.stopped)
		sim_fail("key %s is left over, but nobody has shut the queue", pairs_key(key));
	if (rc == WQ_LEFT)
		run.waited[key] = 2 * section;
	else if (rc == WQ_QUEUED || rc == WQ_DELAYED)
		pairs_added(key, rc, section);
}

void pairs_retried(int key, int64_t rc, uint32_t section)
{
	if (rc == WQ_LEFT || rc == WQ_DELAYED || rc == WQ_MOVED || rc == WQ_KEPT)
		run.retry[key] = 2 * section;
}

/* ---- answers ------------------------------------------------------------------- */

static bool allowed(const struct call *c)
{
	const int *a = c->op->answers;

	for (; *a != LAST; a++) {
		if (*a == c->rc || (*a == VALUE && c->rc >= 0))
			return true;
	}
	return false;
}

static bool any(unsigned flags, const struct call *but)
{
	for (int i = 0; i < run.ncalls; i++) {
		if (&run.call[i] != but && run.call[i].begun && run.call[i].op->flags & flags)
			return true;
	}
	return false;
}

/* Does a call that stops not wait for what waits? */
static bool any_hurries(void)
{
	for (int i = 0; i < run.ncalls; i++) {
		const struct call *c = &run.call[i];

		if (c->begun && (c->op->flags & (STOPS | WAITS)) == STOPS)
			return true;
	}
	return false;
}

static void judge_drain(const struct call *c)
{
	const wq_report *r = &c->report;

	if (c->rc == WQ_EINTERRUPTED && !any(RELEASES, c) && !run.finishing)
		sim_fail("%s was interrupted by nobody", c->op->name);
	if (c->rc < 0)
		return;
	if (r->queued || r->running || r->dirty)
		sim_fail("%s answered %s and reports %llu queued, %llu held, %llu dirty",
		         c->op->name, wq_status_name((int)c->rc), (unsigned long long)r->queued,
		         (unsigned long long)r->running, (unsigned long long)r->dirty);
	if ((c->rc == WQ_LEFT) != (r->retries + r->delayed > 0))
		sim_fail("%s answered %s and reports %llu retries, %llu delayed", c->op->name,
		         wq_status_name((int)c->rc), (unsigned long long)r->retries,
		         (unsigned long long)r->delayed);
	/* Nobody cuts it short: two keys may never come due, and one is to come again. */
	if (!run.finishing && !any_hurries() && (r->retries > 0 || r->delayed > 3))
		sim_fail("%s has waited, and reports %llu retries, %llu delayed", c->op->name,
		         (unsigned long long)r->retries, (unsigned long long)r->delayed);
}

void pairs_answered(struct call *c)
{
	bool is_add = strncmp(c->op->name, "add", 3) == 0;

	if (!allowed(c))
		sim_fail("%s answered %s (%lld)", c->op->name,
		         c->rc <= 0 ? wq_status_name((int)c->rc) : "a value", (long long)c->rc);
	if (is_add && c->rc > 0 && c->shut_before)
		sim_fail("%s was accepted after a shutdown", c->op->name);
	/* A pool may have been stopped. */
	if (c->rc == WQ_ESHUTDOWN && !run.finishing && !any(STOPS | (c->op->flags & WANTS_POOL), c))
		sim_fail("%s answered WQ_ESHUTDOWN, but nobody has shut the queue", c->op->name);
	if (c->rc == WQ_EINTERRUPTED && c->op->kind == GETS && !run.finishing) {
		bool by_somebody = false;

		for (int i = 0; i < run.ncalls; i++)
			by_somebody |= strncmp(run.call[i].op->name, "interrupt", 9) == 0;
		if (!by_somebody)
			sim_fail("%s was interrupted by nobody", c->op->name);
	}
	if (c->op->kind == DRAINS || (c->op->kind == ENDS_POOL && c->op->flags & STOPS))
		judge_drain(c);
	if (c->op->flags & FREES && c->rc >= 0)
		run.q = NULL;
}

/* ---- at each release ------------------------------------------------------------ */

/* Done, and still in the table for a while. */
static bool is_finished(const struct wq__entry *e)
{
	return (e->bits & WQ__FINISHED) == WQ__FINISHED;
}

/* A group has no more holds than its limit, and knows how many it has. */
static void look_at_groups(const struct wq__memory *m)
{
	wq__iter groups = wq__table_iter(&m->rank->groups, 0);
	uint64_t group, slot;

	while ((group = wq__iter_next(&groups)) != 0) {
		const struct wq__keygroup *g = wq__slab_at(&m->slab, (uint32_t)group);
		wq__iter it = wq__table_iter(&m->table, 0);
		uint32_t queued = 0, running = 0;

		while ((slot = wq__iter_next(&it)) != 0) {
			struct wq__entry *e = wq__entry_at(m, (uint32_t)slot);

			if (wq__standing_of(m, e)->group != (uint32_t)group)
				continue;
			queued += (e->bits & WQ_STATE_QUEUED) != 0;
			running += (e->bits & WQ_STATE_RUNNING) != 0;
		}
		if (queued != g->queued || running != g->running)
			sim_fail("group %s counts %u/%u queued, %u/%u held", g->name, g->queued,
			         queued, g->running, running);
		if (g->limit > 0 && running > g->limit)
			sim_fail("%u keys of group %s are held", running, g->name);
	}
}

/* Gets wait. */
static void look_at_leader(const struct wq__memory *m)
{
	if (!m->inflight && m->next_due_ns != WQ_NEVER && !m->leader && !(m->flags & WQ__SHUT))
		sim_fail("a Get waits beside keys that come due, and none leads");
	if (!m->inflight && m->flags & WQ__PACED && m->nblocked > 0 &&
	    (!m->leader || m->leader_until_ns > m->rank->wake_ns))
		sim_fail("a Get waits beside a group that has a token soon, and none leads");
}

void pairs_look(void)
{
	if (!run.q)
		return;

	struct wq__memory *m = inside();
	wq__iter it = wq__table_iter(&m->table, 0);
	uint32_t queued = 0, running = 0, dirty = 0, waiting = 0, never = 0, retrying = 0, gets = 0;
	uint64_t slot;

	while ((slot = wq__iter_next(&it)) != 0) {
		const struct wq__entry *e = wq__entry_at(m, (uint32_t)slot);

		if (wq__entry_is_ghost(e) || is_finished(e))
			continue;
		queued += (e->bits & WQ_STATE_QUEUED) != 0;
		running += (e->bits & WQ_STATE_RUNNING) != 0;
		dirty += (e->bits & WQ_STATE_DIRTY) != 0;
		waiting += (e->bits & WQ_STATE_WAITING) != 0;
		never += e->bits & WQ_STATE_WAITING && e->added_ns == WQ_NEVER;
		retrying += (e->failures_high & WQ__RETRYING) != 0;
		if (e->failures_high & WQ__RETRYING && !(e->bits & WQ_STATE_WAITING))
			sim_fail("key %s does not wait, but does so for a retry", e->key);
	}
	uint32_t ready = wq__about_ready(m);

	if (queued != ready + m->nblocked || running != m->nrunning || dirty != m->ndirty ||
	    waiting != m->nwaiting || never != m->nnever || retrying != m->nretrying)
		sim_fail("the counts are wrong: %u/%u queued, %u/%u held, %u/%u dirty, "
		         "%u/%u waiting, %u/%u never, %u/%u for a retry",
		         ready + m->nblocked, queued, m->nrunning, running, m->ndirty, dirty,
		         m->nwaiting, waiting, m->nnever, never, m->nretrying, retrying);
	for (const struct wq__waiter *g = m->gets; g; g = g->next)
		gets += g->gate == NULL;
	if (gets && ready && !m->inflight)
		sim_fail("%u keys are ready, %u Gets wait and none is under way", ready, gets);
	/* A pool's worker that led and was interrupted picks another one on its way out. */
	if (gets && !run.pool)
		look_at_leader(m);
	if (m->rank && m->rank->grouped)
		look_at_groups(m);
}

/* ---- everybody waits ------------------------------------------------------------ */

static unsigned bits_of(int key)
{
	struct wq__memory *m = inside();
	const char *k = pairs_key(key);
	uint32_t id = wq__find(m, wq__hash_of(m, k, strlen(k)), k, strlen(k));

	return id && !is_finished(wq__entry_at(m, id)) ? wq__entry_at(m, id)->bits : 0;
}

/* Did a shutdown begin after this drain had, and return? */
static bool released(const struct call *d)
{
	/* With pools, the first section resumes them. */
	uint32_t began = sim_section_of(d->task, run.pool ? 2 : 1);

	for (int i = 0; i < run.ncalls; i++) {
		const struct call *c = &run.call[i];

		if (c->op->flags & RELEASES && c->returned && began && c->first > began)
			return true;
	}
	return false;
}

static const char *needless(const struct call *c)
{
	const struct wq__memory *m = inside();
	uint32_t ready = wq__about_ready(m);
	int64_t due_until = m->flags & WQ__CUT ? m->cut_ns : sim_now();
	bool empty = ready + m->nblocked == 0;
	bool idle = empty && m->nrunning == 0 && m->next_due_ns > due_until;
	bool over = idle && (!(m->flags & WQ__PATIENT) || m->nwaiting == m->nnever);

	switch (c->op->kind) {
	case GETS:
		if (ready > 0)
			return "beside a ready key";
		if (m->interrupts > 0)
			return "though an interrupt is kept for it";
		if (m->flags & WQ__SHUT && empty && (!(m->flags & WQ__PATIENT) || over))
			return "though the queue is shut and empty";
		return NULL;
	case AWAITS_IDLE:
		return idle ? "though the queue is idle" : NULL;
	case AWAITS_KEY:
		return bits_of(c->op->key) & (WQ_STATE_QUEUED | WQ_STATE_RUNNING)
		           ? NULL
		           : "though the key is neither queued nor held";
	case AWAITS_HOLD:
		return bits_of(c->op->key) & WQ_STATE_RUNNING ? NULL
		                                              : "though nobody holds the key";
	case DRAINS:
		if (over)
			return "though nothing is left";
		return released(c) ? "though a shutdown began after it" : NULL;
	case ENDS_POOL:
		return run.handlers == 0 && over ? "though no handler runs" : NULL;
	case PASSES:
		break;
	}
	return "though it is not to wait at all";
}

void pairs_judge_waits(void)
{
	if (run.q && inside()->gets)
		look_at_leader(inside());
	for (int i = 0; i < run.ncalls; i++) {
		const struct call *c = &run.call[i];

		if (!c->begun || c->returned || !run.q)
			continue;

		const char *why = needless(c);

		if (why)
			sim_fail("%s waits %s", c->op->name, why);
	}
}

/* ---- in the end ------------------------------------------------------------------ */

/* The last thing of its kind that happened to the key. */
static bool is_last(int key, uint32_t when)
{
	return when > run.got[key] && when > run.gone[key] && when > run.wanted[key];
}

/*
 * A copy that waited, and after which its key was neither added, got nor cancelled, is left
 * over; one after which it surely was is not. The same for what it waits for.
 */
static int judge_left(int key)
{
	const char *name = pairs_key(key);
	int state = wq_state(run.q, name, strlen(name));
	bool left = state & WQ_STATE_LEFT, retrying = state & WQ_STATE_RETRYING;
	uint32_t waited = run.waited[key], retry = run.retry[key];

	if (state & ~(WQ_STATE_LEFT | WQ_STATE_RETRYING))
		sim_fail("in the end key %s has the state %d", name, state);
	if (is_last(key, waited) && !left)
		sim_fail("key %s waited, and is not left over", name);
	if (left && !(waited > run.sure[key]))
		sim_fail("key %s is left over, but did not wait", name);
	if (left && is_last(key, retry) && !retrying)
		sim_fail("key %s is left over, but not as a retry", name);
	if (retrying && !(retry > run.sure[key]))
		sim_fail("key %s is left over as a retry, but did not fail", name);
	return state;
}

/* Once a drain is over nothing happens to what it has reported, but for cancels. */
static void judge_reports(const wq_report *r)
{
	uint64_t cancelled = 0;

	for (int k = 0; k < PAIRS_KEYS; k++)
		cancelled += run.gone[k] > 0;
	for (int i = 0; i < run.ncalls; i++) {
		const struct call *c = &run.call[i];
		const wq_report *was = &c->report;

		if (c->op->kind != DRAINS || !c->returned || c->rc < 0)
			continue;
		if (r->retries > was->retries || r->delayed > was->delayed ||
		    was->retries + was->delayed - r->retries - r->delayed > cancelled)
			sim_fail("%s reports %llu retries and %llu delayed, but it were %llu and "
			         "%llu",
			         c->op->name, (unsigned long long)was->retries,
			         (unsigned long long)was->delayed, (unsigned long long)r->retries,
			         (unsigned long long)r->delayed);
	}
}

int pairs_judge_end(const wq_report *r)
{
	uint64_t left = 0, retries = 0;

	for (int k = 0; k < PAIRS_KEYS; k++) {
		int state = judge_left(k);

		left += (state & WQ_STATE_LEFT) != 0;
		retries += (state & WQ_STATE_RETRYING) != 0;
		if (run.wanted[k] > run.got[k] && run.wanted[k] > run.gone[k])
			sim_fail("key %s was accepted and never handed out", pairs_key(k));
	}
	if (r->queued || r->running || r->dirty)
		sim_fail("in the end %llu keys are queued, %llu held, %llu dirty",
		         (unsigned long long)r->queued, (unsigned long long)r->running,
		         (unsigned long long)r->dirty);
	/* Each key has at most one copy that waits. */
	if (r->retries != retries || r->delayed != left - retries)
		sim_fail("%llu retries and %llu delayed are reported, but it were %llu and %llu",
		         (unsigned long long)r->retries, (unsigned long long)r->delayed,
		         (unsigned long long)retries, (unsigned long long)(left - retries));
	judge_reports(r);
	return (int)left;
}
