/*
 * See history.h. The promises of wq/queue.h that are judged here:
 *
 *   [ONE]   a key that is got stands in line, so nobody holds it
 *   [KEEP]  what was accepted is got, or still there in the end
 *   [BACK]  done of a key that was added meanwhile puts it in line
 *   [FIFO]  the key that is got is the first of the line
 *   [WHOLE] what answered an error is skipped, and all later answers fit
 *   [LEVEL] or by priority the first of the highest level; with groups, of one that may start a key
 *   [TURNS] no group has two turns while another one of its level could have had one
 *   [RATE]  no group starts keys faster than its tokens come
 *   [CARRY] the value is what the adds brought since the last hold, and what a requeue put back
 */
#include "history.h"

#include <limits.h>
#include <string.h>

enum { MAX_NOTES = 4096, MAX_WAITS = 256 };

static const char *const kind_names[] = {"add",      "get",      "get",   "done",
                                         "requeue",  "shutdown", "drain", "wait_idle",
                                         "wait_key", "wait_key", "len",   "state"};

static struct note notes[MAX_NOTES];
static int nnotes;
static int nwaits; /* for one key */

struct note *note(enum kind kind, uint32_t section, int key, int rc, uint64_t value)
{
	if (nnotes == MAX_NOTES)
		sim_fail("too many notes");

	struct note *n = &notes[nnotes++];

	*n = (struct note){.section = section ? section : sim_section(),
	                   .from = sim_call_first(),
	                   .kind = kind,
	                   .key = key,
	                   .rc = rc,
	                   .value = value};
	return n;
}

uint64_t note_wait(void)
{
	if (nwaits == MAX_WAITS)
		sim_fail("too many waits");
	return (uint64_t)nwaits++;
}

void history_reset(void)
{
	nnotes = nwaits = 0;
}

/* The stupid queue. */
static struct {
	int line[NKEYS];
	int nline;
	unsigned state[NKEYS];
	uint64_t token[NKEYS];
	uint64_t last_token;
	int finished[NKEYS]; /* holds that were done */
	int nlive, nrunning;
	bool shut;
	int touches;
	struct {
		int key;    /* -1: over */
		int wanted; /* finished[key] must have come so far */
	} waits[MAX_WAITS];
	uint32_t last_idle; /* section in which nothing was live for the last time */
	/* RANKED: of the copy that is queued or dirty, and of the hold. */
	int priority[NKEYS], held_priority[NKEYS];
	char text[NKEYS][TEXT_MAX], held_text[NKEYS][TEXT_MAX];
	struct group {
		uint32_t running;
		int level;       /* of its first key when we looked last; INT_MIN: it has no turn */
		unsigned passed; /* groups that had a turn since then */
		bool started;
		int64_t started_ns; /* no earlier than then */
	} group[NGROUPS];
} m;

static int group_of(int key)
{
	return w.grouped ? group_of_key(key) : 0;
}

static bool is_full(int group)
{
	return w.limit > 0 && m.group[group].running >= w.limit;
}

/* The first key of a group; -1: none. */
static int first_of(int group)
{
	int first = -1;

	for (int i = 0; i < m.nline; i++) {
		int key = m.line[i];

		if (group_of(key) == group && (first < 0 || m.priority[key] > m.priority[first]))
			first = key;
	}
	return first;
}

/* Who may have a turn, and on which level? Whoever comes to another level begins anew. */
static void look_at_groups(void)
{
	for (int i = 0; i < NGROUPS; i++) {
		struct group *g = &m.group[i];
		int first = first_of(i);
		int level = first < 0 || is_full(i) ? INT_MIN : m.priority[first];

		if (level != g->level)
			g->passed = 0;
		g->level = level;
	}
}

/* A key that may be handed out, or -1. With rates that depends on the time. */
static int some_ready(void)
{
	for (int i = 0; i < m.nline; i++) {
		if (w.order != RANKED || (!w.paced && !is_full(group_of(m.line[i]))))
			return m.line[i];
	}
	return -1;
}

static void model_push(int key, bool head)
{
	m.state[key] = WQ_STATE_QUEUED;
	if (head)
		memmove(m.line + 1, m.line, (size_t)m.nline * sizeof *m.line);
	m.line[head ? 0 : m.nline] = key;
	m.nline++;
}

static int model_pop(void)
{
	int at = 0;

	if (w.order == LIFO)
		at = m.nline - 1;
	if (w.order == SMALLEST) {
		for (int i = 1; i < m.nline; i++)
			at = m.line[i] < m.line[at] ? i : at;
	}

	int key = m.line[at];

	m.nline--;
	memmove(m.line + at, m.line + at + 1, (size_t)(m.nline - at) * sizeof *m.line);
	return key;
}

static void append(char *text, const char *more)
{
	if (strlen(text) + strlen(more) >= TEXT_MAX)
		sim_fail("the test adds too long values");
	strcat(text, more);
}

/* The copy that is queued or dirty takes what an add brings; one that is raised goes to the tail. */
static void model_bring(int key, int priority, const char *text)
{
	bool had = m.state[key] & (WQ_STATE_QUEUED | WQ_STATE_DIRTY);

	if (!had)
		m.text[key][0] = '\0';
	append(m.text[key], text);
	if (had && priority <= m.priority[key])
		return;
	m.priority[key] = priority;
	for (int i = 0, found = 0; m.state[key] & WQ_STATE_QUEUED && i < m.nline; i++) {
		found |= m.line[i] == key;
		if (found)
			m.line[i] = i + 1 < m.nline ? m.line[i + 1] : key;
	}
}

static int model_add(int key)
{
	if (m.shut)
		return WQ_ESHUTDOWN;
	if (m.state[key] & (WQ_STATE_QUEUED | WQ_STATE_DIRTY)) {
		m.touches += (m.state[key] & WQ_STATE_QUEUED) != 0;
		return WQ_MERGED;
	}
	if (m.state[key]) {
		m.state[key] |= WQ_STATE_DIRTY;
		return WQ_MARKED;
	}
	if (w.max_keys && (size_t)m.nlive == w.max_keys)
		return WQ_EFULL;
	m.nlive++;
	model_push(key, false);
	return WQ_QUEUED;
}

static _Noreturn void disagree(const struct note *n, int expected)
{
	sim_fail("section %u: %s of key %d answered %s, expected %s", n->section,
	         kind_names[n->kind], n->key,
	         n->rc < 0 || n->rc <= WQ_MARKED ? wq_status_name(n->rc) : "a number",
	         wq_status_name(expected));
}

/* A key of a group that may start one, in its turn. */
static void judge_start(const struct note *n)
{
	int of = group_of(n->key), level = m.priority[n->key];
	struct group *g = &m.group[of];

	if (is_full(of))
		sim_fail("section %u: got key %d, but its group is full", n->section, n->key);
	if (first_of(of) != n->key)
		sim_fail("section %u: got key %d, but key %d of its group stands before it",
		         n->section, n->key, first_of(of));
	if (w.token_ns > 0 && g->started && n->to_ns < g->started_ns + w.token_ns)
		sim_fail("section %u: got key %d, before its group had a token", n->section,
		         n->key);
	for (int i = 0; !w.paced && i < NGROUPS; i++) {
		struct group *other = &m.group[i];

		if (i == of || other->level < level)
			continue;
		if (other->level > level)
			sim_fail("section %u: got key %d of level %d, but one of level %d is ready",
			         n->section, n->key, level, other->level);
		if (other->passed >> of & 1)
			sim_fail("section %u: got key %d, but it is the turn of group %d",
			         n->section, n->key, i);
		other->passed |= 1u << of;
	}
	g->passed = 0;
	g->started = true;
	g->started_ns = n->from_ns;
	g->running++;
	if (n->priority != m.priority[n->key] || strcmp(n->text, m.text[n->key]) != 0)
		sim_fail("section %u: got key %d with priority %d and value '%s', expected %d and "
		         "'%s'",
		         n->section, n->key, n->priority, n->text, m.priority[n->key],
		         m.text[n->key]);
	m.held_priority[n->key] = n->priority;
	strcpy(m.held_text[n->key], n->text);
}

static int model_take(int key)
{
	int at = 0;

	while (m.line[at] != key)
		at++;
	m.nline--;
	memmove(m.line + at, m.line + at + 1, (size_t)(m.nline - at) * sizeof *m.line);
	return key;
}

static void model_got(const struct note *n)
{
	if (m.nline == 0 || !(m.state[n->key] & WQ_STATE_QUEUED))
		sim_fail("section %u: got key %d, which is not in line", n->section, n->key);
	if (w.order == RANKED)
		judge_start(n);

	int key = w.order == RANKED ? model_take(n->key) : model_pop();

	if (key != n->key)
		sim_fail("section %u: got key %d, but key %d stands before it", n->section, n->key,
		         key);
	if (n->value == m.last_token)
		sim_fail("section %u: token %llu was given before", n->section,
		         (unsigned long long)n->value);
	m.last_token = m.token[key] = n->value;
	m.state[key] = WQ_STATE_RUNNING;
	m.nrunning++;
}

static void model_got_nothing(const struct note *n)
{
	bool slept = n->section != n->from;

	/* One that slept may go home beside a key: it has passed the wake-up on. */
	if (slept && (n->rc == WQ_ETIMEDOUT || n->rc == WQ_EINTERRUPTED))
		return;
	if (some_ready() >= 0)
		sim_fail("section %u: get answered %s, but key %d is in line", n->section,
		         wq_status_name(n->rc), some_ready());
	if (n->rc == WQ_ETIMEDOUT || n->rc == WQ_EINTERRUPTED)
		return;

	/* Blocked keys are waited for. */
	bool over = m.shut && m.nline == 0;

	if ((n->rc == WQ_ESHUTDOWN) != over)
		disagree(n, over ? WQ_ESHUTDOWN : WQ_EAGAIN);
}

/* A key that is given back unfinished owes one hold, whatever was asked of it before. */
static void fold_waits(int key)
{
	for (int i = 0; i < nwaits; i++) {
		if (m.waits[i].key == key && m.waits[i].wanted > m.finished[key])
			m.waits[i].wanted = m.finished[key] + 1;
	}
}

/* The priority and the value of the hold come back, under what was added since. */
static void model_keep(int key)
{
	bool had = m.state[key] & WQ_STATE_DIRTY;
	char since[TEXT_MAX];

	strcpy(since, had ? m.text[key] : "");
	strcpy(m.text[key], m.held_text[key]);
	append(m.text[key], since);
	if (!had || m.priority[key] < m.held_priority[key])
		m.priority[key] = m.held_priority[key];
}

static void model_end_hold(const struct note *n)
{
	int key = n->key;
	bool held = (m.state[key] & WQ_STATE_RUNNING) && m.token[key] == n->value;
	int expected = WQ_ESTALE;

	if (held) {
		bool back = n->kind == REQUEUE || (m.state[key] & WQ_STATE_DIRTY);

		m.group[group_of(key)].running--;
		if (n->kind == REQUEUE)
			model_keep(key);
		expected = back ? WQ_QUEUED : WQ_OK;
		m.nrunning--;
		m.finished[key] += n->kind == DONE_;
		if (n->kind == REQUEUE)
			fold_waits(key);
		if (back) {
			model_push(key, n->kind == REQUEUE && n->where == WQ_HEAD &&
			                    (w.order == FIFO || w.order == RANKED));
		} else {
			m.state[key] = 0;
			m.nlive--;
		}
	}
	if (n->rc == UNTOLD ? !held : n->rc != expected)
		disagree(n, expected);
}

static void must_have_been_idle(const struct note *n, const char *what)
{
	if (m.nlive && m.last_idle < n->from)
		sim_fail("section %u: %s returned, but the queue was not idle meanwhile",
		         n->section, what);
}

static void model_drain_end(const struct note *n)
{
	if (n->rc == WQ_OK) {
		must_have_been_idle(n, "drain");
		if (n->report.queued || n->report.running || n->report.dirty)
			sim_fail("section %u: drain succeeded and reports what was left",
			         n->section);
		return;
	}

	uint64_t dirty = 0;

	for (int k = 0; k < NKEYS; k++)
		dirty += (m.state[k] & WQ_STATE_DIRTY) != 0;
	if (n->report.queued != (uint64_t)m.nline || n->report.running != (uint64_t)m.nrunning ||
	    n->report.dirty != dirty)
		sim_fail(
		    "section %u: drain reports %llu queued, %llu running, %llu dirty; expected %d, "
		    "%d, %llu",
		    n->section, (unsigned long long)n->report.queued,
		    (unsigned long long)n->report.running, (unsigned long long)n->report.dirty,
		    m.nline, m.nrunning, (unsigned long long)dirty);
}

/* How many more holds of the key must be done before a wait for it may end. */
static int owed(int key)
{
	return m.state[key] == 0 ? 0 : (m.state[key] & WQ_STATE_DIRTY) ? 2 : 1;
}

static void play(struct note *n)
{
	int expected;

	switch (n->kind) {
	case ADD:
		if (n->rc > 0 && w.order == RANKED)
			model_bring(n->key, n->priority, n->text);
		expected = model_add(n->key);
		if (n->rc != expected)
			disagree(n, expected);
		break;
	case GOT:
		model_got(n);
		break;
	case GOT_NOTHING:
		model_got_nothing(n);
		break;
	case DONE_:
	case REQUEUE:
		model_end_hold(n);
		break;
	case SHUT:
		m.shut = true;
		break;
	case DRAIN_END:
		model_drain_end(n);
		break;
	case IDLE:
		if (n->rc == WQ_OK)
			must_have_been_idle(n, "wait_idle");
		break;
	case KEY_BEGIN:
		m.waits[n->value].key = n->key;
		m.waits[n->value].wanted = m.finished[n->key] + owed(n->key);
		break;
	case KEY_END:
		if (n->rc == WQ_OK && m.finished[n->key] < m.waits[n->value].wanted)
			sim_fail("section %u: wait_key returned before the work on key %d was done",
			         n->section, n->key);
		m.waits[n->value].key = -1;
		break;
	case LEN:
		if (n->value != (uint64_t)m.nline)
			sim_fail("section %u: length %llu, expected %d", n->section,
			         (unsigned long long)n->value, m.nline);
		break;
	case STATE:
		if (n->rc != (int)m.state[n->key])
			sim_fail("section %u: state %d of key %d, expected %u", n->section, n->rc,
			         n->key, m.state[n->key]);
		break;
	}
	if (m.nlive == 0)
		m.last_idle = n->section;
	look_at_groups();
}

/* Notes are written when calls return; they are nearly in order. */
static void sort_notes(void)
{
	for (int i = 1; i < nnotes; i++) {
		struct note n = notes[i];
		int j = i;

		for (; j > 0 && notes[j - 1].section > n.section; j--)
			notes[j] = notes[j - 1];
		notes[j] = n;
	}
}

int history_judge(int touches)
{
	memset(&m, 0, sizeof m);
	for (int i = 0; i < MAX_WAITS; i++)
		m.waits[i].key = -1;
	sort_notes();
	for (int i = 0; i < nnotes; i++) {
		/* Idle until this section began; what follows may change it. */
		if (m.nlive == 0 && notes[i].section > 0)
			m.last_idle = notes[i].section - 1;
		play(&notes[i]);
	}
	sim_quiet_begin();
	for (int k = 0; k < NKEYS; k++) {
		size_t len;
		const char *key = key_bytes(k, &len);

		if (wq_state(w.q, key, len) != (int)m.state[k])
			sim_fail("in the end key %d has the state %d, expected %u", k,
			         wq_state(w.q, key, len), m.state[k]);
	}
	if (wq_len(w.q) != m.nline)
		sim_fail("in the end the length is %lld, expected %d", (long long)wq_len(w.q),
		         m.nline);
	if (w.order != FIFO && w.order != RANKED && touches != m.touches)
		sim_fail("the order was touched %d times, expected %d", touches, m.touches);

	int kept = wq_interrupt(w.q, 0);

	if (kept != w.credit)
		sim_fail("%d interrupts are kept, expected %d", kept, w.credit);
	sim_quiet_end();
	return m.nline;
}
