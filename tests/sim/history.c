/*
 * See history.h. The promises of wq/queue.h that are judged here:
 *
 *   [ONE]   a key that is got stands in line, so nobody holds it
 *   [KEEP]  what was accepted is got, or still there in the end
 *   [BACK]  done of a key that was added meanwhile puts it in line
 *   [FIFO]  the key that is got is the first of the line
 *   [WHOLE] what answered an error is skipped, and all later answers fit
 */
#include "history.h"

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
} m;

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

static void model_got(const struct note *n)
{
	if (m.nline == 0 || !(m.state[n->key] & WQ_STATE_QUEUED))
		sim_fail("section %u: got key %d, which is not in line", n->section, n->key);

	int key = model_pop();

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
	if (m.nline)
		sim_fail("section %u: get answered %s, but key %d is in line", n->section,
		         wq_status_name(n->rc), m.line[0]);
	if (n->rc == WQ_ETIMEDOUT || n->rc == WQ_EINTERRUPTED)
		return;
	if ((n->rc == WQ_ESHUTDOWN) != m.shut)
		disagree(n, m.shut ? WQ_ESHUTDOWN : WQ_EAGAIN);
}

/* A key that is given back unfinished owes one hold, whatever was asked of it before. */
static void fold_waits(int key)
{
	for (int i = 0; i < nwaits; i++) {
		if (m.waits[i].key == key && m.waits[i].wanted > m.finished[key])
			m.waits[i].wanted = m.finished[key] + 1;
	}
}

static void model_end_hold(const struct note *n)
{
	int key = n->key;
	bool held = (m.state[key] & WQ_STATE_RUNNING) && m.token[key] == n->value;
	int expected = WQ_ESTALE;

	if (held) {
		bool back = n->kind == REQUEUE || (m.state[key] & WQ_STATE_DIRTY);

		expected = back ? WQ_QUEUED : WQ_OK;
		m.nrunning--;
		m.finished[key] += n->kind == DONE_;
		if (n->kind == REQUEUE)
			fold_waits(key);
		if (back) {
			model_push(key,
			           n->kind == REQUEUE && n->where == WQ_HEAD && w.order == FIFO);
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
	if (w.order != FIFO && touches != m.touches)
		sim_fail("the order was touched %d times, expected %d", touches, m.touches);

	int kept = wq_interrupt(w.q, 0);

	if (kept != w.credit)
		sim_fail("%d interrupts are kept, expected %d", kept, w.credit);
	sim_quiet_end();
	return m.nline;
}
