#include "model.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct model_load model_plain;

void model_init(struct model *m, enum model_order order, size_t max_keys)
{
	memset(m, 0, sizeof *m);
	m->order = order;
	m->max_keys = max_keys;
}

/* since_ns: when the add was made, or the key came due; only aging asks. */
static void push(struct model *m, int key, enum wq_where where, bool keeps_place, int64_t since_ns)
{
	size_t at = where == WQ_HEAD || m->order == MODEL_LIFO ? 0 : m->nqueued;

	memmove(&m->line[at + 1], &m->line[at], (m->nqueued - at) * sizeof m->line[0]);
	m->line[at] = key;
	m->nqueued++;
	m->pushes++;
	m->keys[key].state = WQ_STATE_QUEUED;
	if (model_ranked(m))
		model_rank_push(m, key, where, keeps_place, since_ns);
	else
		m->nready++;
}

static void take_out(struct model *m, int key)
{
	size_t at = 0;

	while (m->line[at] != key)
		at++;
	m->nqueued--;
	memmove(&m->line[at], &m->line[at + 1], (m->nqueued - at) * sizeof m->line[0]);
}

static void leave_line(struct model *m, int key)
{
	take_out(m, key);
	if (model_ranked(m))
		model_rank_removed(m, key);
	else
		m->nready--;
}

/* The first in line[], but for the busiest. */
static int pop(struct model *m)
{
	int key = model_ranked(m) ? model_first(m) : m->line[0];

	for (size_t i = 1; m->order == MODEL_BUSIEST && i < m->nqueued; i++)
		if (m->keys[m->line[i]].touches > m->keys[key].touches)
			key = m->line[i];
	take_out(m, key);
	if (model_ranked(m))
		model_rank_started(m, key);
	else
		m->nready--;
	return key;
}

/* A new copy: the key itself or its reminder. */
static bool room(struct model *m)
{
	if (m->max_keys > 0 && m->nkeys >= m->max_keys)
		return false;
	m->nkeys++;
	return true;
}

static void new_life(struct model *m, int key)
{
	struct model_key *k = &m->keys[key];

	k->touches = 0;
	k->lives++;
}

/* A copy is gone; with the last one the key is idle. */
static void end_life(struct model *m, int key)
{
	m->nkeys--;
	if (model_state(m, key) == 0)
		m->keys[key].idle_since_ns = m->now_ns;
}

/* ---- waiting ------------------------------------------------------------- */

static void wait_for(struct model *m, struct model_wait_for *copy, int64_t due_ns)
{
	copy->due_ns = due_ns;
	copy->turn = ++m->turns;
	m->nwaiting++;
	m->nnever += due_ns == WQ_NEVER;
}

static void wait_ends(struct model *m, struct model_wait_for *copy)
{
	m->nwaiting--;
	m->nnever -= copy->due_ns == WQ_NEVER;
	m->nretries -= copy->retry;
	copy->due_ns = 0;
	copy->retry = false;
}

static void set_retry(struct model *m, struct model_wait_for *copy)
{
	m->nretries += !copy->retry;
	copy->retry = true;
}

/* The key's own copy waits no more, but for another reason than its time. */
static void take_back(struct model *m, int key)
{
	struct model_key *k = &m->keys[key];

	if (!(k->state & WQ_STATE_WAITING))
		return;
	k->state &= ~(unsigned)WQ_STATE_WAITING;
	k->stirred = m->stirred = true;
	wait_ends(m, &k->own);
}

enum { COPY = WQ_STATE_QUEUED | WQ_STATE_DIRTY | WQ_STATE_WAITING };

/* The key itself takes what an add brings. */
static int bring(struct model *m, int key, const struct model_load *with, int64_t since_ns)
{
	struct model_key *k = &m->keys[key];
	bool had = k->state & COPY;
	int rc = model_merge_value(m, &k->load, with->value, with->len);

	if (rc < 0 || (had && with->priority <= k->load.priority))
		return rc;
	if (k->state & WQ_STATE_QUEUED) {
		bool aged = model_aged_place(m, key, with->priority, since_ns);

		leave_line(m, key);
		k->load.priority = with->priority;
		push(m, key, WQ_TAIL, aged, since_ns);
	} else {
		k->load.priority = with->priority;
		k->place = model_new_place(m, with->priority, since_ns);
	}
	return WQ_OK;
}

static int enter(struct model *m, int key, int64_t since_ns, const struct model_load *with,
                 bool keeps_place)
{
	struct model_key *k = &m->keys[key];
	int rc = with ? bring(m, key, with, since_ns) : WQ_OK;

	if (rc < 0)
		return rc;
	if (k->state & WQ_STATE_QUEUED) {
		k->touches++;
		return WQ_MERGED;
	}
	if (k->state & WQ_STATE_DIRTY)
		return WQ_MERGED;
	take_back(m, key);
	if (k->state & WQ_STATE_RUNNING) {
		k->state |= WQ_STATE_DIRTY;
		k->readded_ns = since_ns;
		m->ndirty++;
		return WQ_MARKED;
	}
	k->added_ns = since_ns;
	push(m, key, WQ_TAIL, keeps_place, since_ns);
	return WQ_QUEUED;
}

/*
 * One that waits and is not raised has the place of its first add, if priorities are asked for.
 * With aging a place is a time, and what waits does not age.
 */
int model_enter(struct model *m, int key, int64_t since_ns, const struct model_load *with)
{
	bool waits = m->keys[key].state == WQ_STATE_WAITING;
	bool keeps = waits && m->rich.priorities && m->rich.aging_ns == 0;

	return enter(m, key, since_ns, with, keeps);
}

/* It becomes the key, or an add of it. That counts even if the values do not merge. */
static void reminder_due(struct model *m, int key, int64_t since_ns)
{
	struct model_key *k = &m->keys[key];
	struct model_load load = k->reminds;

	k->reminds = model_plain;
	if (k->state == 0) {
		new_life(m, key);
		k->load = load;
		enter(m, key, since_ns, NULL, false);
		return;
	}
	m->nkeys--;
	/* It keeps the priority of the hold. */
	if (k->state & WQ_STATE_RUNNING && k->held.priority > load.priority)
		load.priority = k->held.priority;
	if (enter(m, key, since_ns, &load, false) < 0) {
		m->merge_failed++;
		model_drop_value(&load);
		enter(m, key, since_ns, &load, false);
	}
	model_drop_value(&load);
}

static void own_due(struct model *m, int key, int64_t since_ns)
{
	m->keys[key].state &= ~(unsigned)WQ_STATE_WAITING;
	enter(m, key, since_ns, NULL, false);
}

struct coming {
	struct model_wait_for copy;
	int key;
	bool is_reminder;
};

static int by_time(const void *a, const void *b)
{
	const struct coming *x = a, *y = b;

	if (x->copy.due_ns != y->copy.due_ns)
		return x->copy.due_ns < y->copy.due_ns ? -1 : 1;
	return x->copy.turn < y->copy.turn ? -1 : 1;
}

/* Groups get what they wait for, in its order. */
static void tokens_until(struct model *m, int64_t until_ns)
{
	int64_t at;
	int group;

	while ((group = model_next_token(m, until_ns, &at)) >= 0) {
		m->moment_ns = at;
		model_token(m, group);
	}
}

/* Everything that is due until then, in its order; and groups, each at its time. */
static void come_due(struct model *m, int64_t until_ns)
{
	static struct coming coming[2 * MODEL_KEYS];
	size_t n = 0;

	for (int key = 0; m->nwaiting > 0 && key < MODEL_KEYS; key++) {
		const struct model_key *k = &m->keys[key];

		if (k->own.due_ns > 0 && k->own.due_ns <= until_ns)
			coming[n++] = (struct coming){k->own, key, false};
		if (k->reminder.due_ns > 0 && k->reminder.due_ns <= until_ns)
			coming[n++] = (struct coming){k->reminder, key, true};
	}
	if (n > 1)
		qsort(coming, n, sizeof coming[0], by_time);
	for (size_t i = 0; i < n; i++) {
		int key = coming[i].key;
		struct model_key *k = &m->keys[key];
		struct model_wait_for *copy = coming[i].is_reminder ? &k->reminder : &k->own;
		int64_t since =
		    coming[i].copy.due_ns < m->now_ns ? coming[i].copy.due_ns : m->now_ns;

		if (copy->due_ns == 0)
			continue; /* one that came before has absorbed it */
		tokens_until(m, since - 1);
		m->moment_ns = since > m->moment_ns ? since : m->moment_ns;
		wait_ends(m, copy);
		if (coming[i].is_reminder)
			reminder_due(m, key, since);
		else
			own_due(m, key, since);
	}
	tokens_until(m, m->now_ns);
	m->moment_ns = m->now_ns;
}

void model_clock(struct model *m, int64_t now_ns)
{
	m->now_ns = now_ns;
	come_due(m, model_cut(m) ? 0 : now_ns);
}

static void move(struct model *m, int key, struct model_wait_for *copy, int64_t due_ns)
{
	bool retry = copy->retry;

	m->keys[key].stirred = m->stirred = true;
	wait_ends(m, copy);
	wait_for(m, copy, due_ns);
	if (retry)
		set_retry(m, copy);
	come_due(m, m->now_ns);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Of bounds the first one counts. */
static int merge(struct model *m, int key, struct model_wait_for *copy, int64_t due_ns,
                 int64_t latest_ns, enum wq_policy policy)
{
	int64_t want = copy->due_ns;

	switch (policy) {
	case WQ_KEEP:
		break;
	case WQ_REPLACE:
		want = due_ns;
		break;
	case WQ_MAX:
		want = due_ns > want ? due_ns : want;
		break;
	case WQ_MIN:
	case WQ_REMIND:
		want = earlier(due_ns, want);
		break;
	}
	if (copy->latest_ns == 0)
		copy->latest_ns = latest_ns;
	if (copy->latest_ns > 0)
		want = earlier(want, copy->latest_ns);
	if (want == copy->due_ns)
		return policy == WQ_REPLACE ? WQ_MOVED : WQ_KEPT;
	move(m, key, copy, want);
	return WQ_MOVED;
}

/* ---- add ------------------------------------------------------------------ */

int model_add(struct model *m, int key, const struct model_load *with)
{
	if (m->shut)
		return WQ_ESHUTDOWN;
	model_expire(m, key);
	if (m->keys[key].state == 0) {
		if (!room(m))
			return WQ_EFULL;
		new_life(m, key);
	}
	return model_enter(m, key, m->now_ns, with);
}

int model_add_at(struct model *m, int key, int64_t due_ns, int64_t latest_ns, enum wq_policy policy,
                 const struct model_load *with)
{
	if (due_ns <= m->now_ns)
		return model_add(m, key, with);
	if (m->shut)
		return WQ_ESHUTDOWN;
	model_expire(m, key);
	return model_wait_for(m, key, due_ns, latest_ns, policy, false, with);
}

/* A reminder has a priority and a value of its own. */
static int remind(struct model *m, int key, int64_t due_ns, const struct model_load *with)
{
	struct model_key *k = &m->keys[key];
	bool had = k->reminder.due_ns > 0;
	int rc;

	if (!had && !room(m))
		return WQ_EFULL;
	rc = model_merge_value(m, &k->reminds, with->value, with->len);
	if (rc < 0)
		return rc;
	if (!had || with->priority > k->reminds.priority)
		k->reminds.priority = with->priority;
	if (had)
		return merge(m, key, &k->reminder, due_ns, 0, WQ_REMIND);
	if (k->state == 0)
		new_life(m, key);
	wait_for(m, &k->reminder, due_ns);
	return WQ_DELAYED;
}

static int wait_or_merge(struct model *m, int key, int64_t due_ns, int64_t latest_ns,
                         enum wq_policy policy, const struct model_load *with)
{
	struct model_key *k = &m->keys[key];
	struct model_wait_for *copy = &k->own;
	int rc;

	if (policy == WQ_REMIND)
		return remind(m, key, due_ns, with);
	if (k->state == 0) {
		if (!room(m))
			return WQ_EFULL;
		new_life(m, key);
	}
	rc = with ? bring(m, key, with, m->now_ns) : WQ_OK;
	if (rc < 0)
		return rc;
	if (copy->due_ns > 0)
		return merge(m, key, copy, due_ns, latest_ns, policy);
	if (k->state & WQ_STATE_QUEUED)
		k->touches++;
	if (k->state & (WQ_STATE_QUEUED | WQ_STATE_DIRTY))
		return WQ_MERGED;
	k->state |= WQ_STATE_WAITING;
	copy->latest_ns = latest_ns;
	wait_for(m, copy, latest_ns > 0 ? earlier(due_ns, latest_ns) : due_ns);
	return WQ_DELAYED;
}

/* A retry that merges with a copy that waits makes that one a retry. */
int model_wait_for(struct model *m, int key, int64_t due_ns, int64_t latest_ns,
                   enum wq_policy policy, bool retry, const struct model_load *with)
{
	struct model_key *k = &m->keys[key];
	struct model_wait_for *copy = policy == WQ_REMIND ? &k->reminder : &k->own;
	int rc = wait_or_merge(m, key, due_ns, latest_ns, policy, with);

	if (retry && rc >= 0 && copy->due_ns > 0)
		set_retry(m, copy);
	return rc;
}

int model_reschedule(struct model *m, int key, int64_t due_ns)
{
	struct model_key *k = &m->keys[key];
	struct model_wait_for *copy = k->own.due_ns > 0 ? &k->own : &k->reminder;

	if (copy->due_ns == 0)
		return WQ_ENOTFOUND;
	if (model_leaves(m))
		return WQ_ESHUTDOWN;
	copy->latest_ns = 0;
	if (due_ns != copy->due_ns)
		move(m, key, copy, due_ns);
	return WQ_MOVED;
}

int model_cancel(struct model *m, int key)
{
	struct model_key *k = &m->keys[key];
	unsigned own = k->state;
	unsigned found = own | (k->reminder.due_ns > 0 ? (unsigned)WQ_STATE_WAITING : 0);

	if (k->reminder.due_ns > 0) {
		wait_ends(m, &k->reminder);
		model_drop_value(&k->reminds);
		k->stirred = m->stirred = true;
		end_life(m, key);
	}
	take_back(m, key);
	model_drop_value(&k->load);
	if (k->state & WQ_STATE_RUNNING) {
		m->ndirty -= (k->state & WQ_STATE_DIRTY) != 0;
		k->state = WQ_STATE_RUNNING;
		k->cancelled = true;
	} else {
		if (k->state & WQ_STATE_QUEUED)
			leave_line(m, key);
		k->state = 0;
		if (own != 0)
			end_life(m, key);
	}
	return found ? (int)found : WQ_ENOTFOUND;
}

/* ---- get ------------------------------------------------------------------ */

bool model_leaves(const struct model *m)
{
	return m->shut && (!m->patient || model_finished(m));
}

/* Blocked keys are waited for. */
bool model_over(const struct model *m)
{
	return model_leaves(m) && m->nqueued == m->nready;
}

bool model_blocks(const struct model *m)
{
	return m->nready == 0 && !model_over(m) && m->kept == 0;
}

int model_get(struct model *m, enum model_wait wait, int *key)
{
	if (m->nready > 0) {
		*key = pop(m);
		m->keys[*key].held = m->keys[*key].load;
		m->keys[*key].load.value = NULL;
		m->keys[*key].load.len = 0;
		m->keys[*key].state = WQ_STATE_RUNNING;
		m->keys[*key].hold = ++m->gets;
		m->keys[*key].cancelled = false;
		m->nrunning++;
		return WQ_OK;
	}
	if (model_over(m))
		return WQ_ESHUTDOWN;
	if (wait == MODEL_NOWAIT)
		return WQ_EAGAIN;
	if (wait == MODEL_PASSED)
		return WQ_ETIMEDOUT;
	m->kept--; /* the caller has asked model_blocks() */
	return WQ_EINTERRUPTED;
}

int model_held(const struct model *m, int key, uint64_t hold)
{
	return m->keys[key].hold == hold ? WQ_OK : WQ_ESTALE;
}

static bool leave(struct model *m, int key)
{
	bool dirty = m->keys[key].state & WQ_STATE_DIRTY;

	m->nrunning--;
	m->ndirty -= dirty;
	m->keys[key].hold = 0;
	m->keys[key].state &= WQ_STATE_WAITING;
	model_drop_value(&m->keys[key].held);
	m->keys[key].place = model_new_place(m, m->keys[key].load.priority, m->now_ns);
	model_rank_ended(m, key);
	return dirty;
}

void model_keep(struct model *m, int key)
{
	struct model_key *k = &m->keys[key];
	struct model_load back = k->held;

	if (k->state & COPY && k->load.priority > back.priority)
		back.priority = k->load.priority;
	k->held.value = NULL;
	k->held.len = 0;
	if (model_merge_value(m, &back, k->load.value, k->load.len) < 0) {
		/* What came since stays. */
		m->merge_failed++;
		model_drop_value(&back);
		back.value = k->load.value;
		back.len = k->load.len;
	} else {
		model_drop_value(&k->load);
	}
	k->load = back;
}

int model_done(struct model *m, int key, uint64_t hold)
{
	if (model_held(m, key, hold) != WQ_OK)
		return WQ_ESTALE;
	if (!leave(m, key)) {
		if (m->keys[key].state & WQ_STATE_WAITING)
			return model_cut(m) ? WQ_LEFT : WQ_DELAYED;
		end_life(m, key);
		return WQ_OK;
	}
	m->keys[key].added_ns = m->keys[key].readded_ns;
	push(m, key, WQ_TAIL, false, m->now_ns);
	return WQ_QUEUED;
}

int model_requeue(struct model *m, int key, uint64_t hold, enum wq_where where)
{
	if (model_held(m, key, hold) != WQ_OK)
		return WQ_ESTALE;
	model_keep(m, key);
	take_back(m, key);
	model_give_back(m, key);
	leave(m, key);
	push(m, key, where, false, m->now_ns);
	return WQ_QUEUED;
}

int model_interrupt(struct model *m, int n)
{
	int before = m->kept;

	m->kept = n == 0 ? 0 : n > INT_MAX - before ? INT_MAX : before + n;
	return before;
}

bool model_idle(const struct model *m)
{
	return m->nqueued == 0 && m->nrunning == 0;
}

bool model_finished(const struct model *m)
{
	return model_idle(m) && m->nwaiting == m->nnever;
}

bool model_cut(const struct model *m)
{
	return m->shut && !m->patient;
}

int model_drain(const struct model *m)
{
	if (m->patient ? !model_finished(m) : !model_idle(m))
		return WQ_ETIMEDOUT;
	return m->nwaiting > 0 ? WQ_LEFT : WQ_OK;
}

unsigned model_state(const struct model *m, int key)
{
	const struct model_key *k = &m->keys[key];
	unsigned state = k->state & ~(unsigned)WQ_STATE_WAITING;

	if (k->own.due_ns > 0 || k->reminder.due_ns > 0)
		state |= model_leaves(m) ? WQ_STATE_LEFT : WQ_STATE_WAITING;
	if (k->own.retry || k->reminder.retry)
		state |= WQ_STATE_RETRYING;
	return state;
}

const struct model_load *model_shown(const struct model *m, int key)
{
	const struct model_key *k = &m->keys[key];

	if (k->state & COPY)
		return &k->load;
	return k->state & WQ_STATE_RUNNING ? &k->held : &k->reminds;
}

size_t model_live(const struct model *m)
{
	size_t n = 0;

	for (int key = 0; key < MODEL_KEYS; key++)
		n += model_state(m, key) != 0;
	return n;
}

int64_t model_due(const struct model *m, int key)
{
	const struct model_key *k = &m->keys[key];

	return k->own.due_ns > 0 ? k->own.due_ns : k->reminder.due_ns;
}

int64_t model_deadline(const struct model *m)
{
	int64_t first = WQ_NEVER;

	if (model_cut(m))
		return WQ_NEVER;
	for (int key = 0; key < MODEL_KEYS; key++) {
		const struct model_key *k = &m->keys[key];

		if (k->own.due_ns > 0 && k->own.due_ns < first)
			first = k->own.due_ns;
		if (k->reminder.due_ns > 0 && k->reminder.due_ns < first)
			first = k->reminder.due_ns;
	}
	return first;
}

/* ---- stop ----------------------------------------------------------------- */

void model_shut(struct model *m, enum wq_drain_mode mode)
{
	if (m->shut)
		return;
	m->shut = true;
	m->patient = mode == WQ_DRAIN_WAIT;
	m->hurried = mode == WQ_DRAIN_RUN;
	if (m->hurried)
		come_due(m, WQ_NEVER - 1);
}

/* What waits is left over from now on. */
void model_shutdown(struct model *m)
{
	model_shut(m, WQ_DRAIN_LEAVE);
	m->patient = false;
}
