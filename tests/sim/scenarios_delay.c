/*
 * The delay queue (wq/delayqueue.h): offers, takes, polls and closes.
 *
 * As with the queue of keys, each call is noted with the section of the lock in
 * which it took effect and with what the clock said there, and the notes are
 * played through a stupid delay queue: nothing lost, doubled, early or out of
 * order, and every status right. And whenever everybody waits: no value is due,
 * one taker sleeps no longer than until the first one's time, and no other
 * taker's sleep ends before its own deadline.
 */
#include <string.h>

#include "clocks.h"
#include "world.h"

enum { MAX_VALUES = 64, MAX_NOTES = 1024, POLL = -1, NOT_INSIDE = -2 };

enum kind { OFFER, TAKE, SHUT, SIZE, NEXT };

struct note {
	uint32_t section;
	enum kind kind;
	int value;           /* which was offered or taken; -1: none */
	int64_t rc;          /* or what was answered */
	int64_t deadline_ns; /* of a take, or POLL */
	int64_t said_ns;     /* by the clock */
};

static struct {
	wq_delayqueue *dq;
	struct note note[MAX_NOTES];
	int nnotes;
	int64_t expiry_ns[MAX_VALUES];
	bool taken[MAX_VALUES];
	int nvalues;
	int mortal;                    /* accepted values that will be due, and are not taken yet */
	int64_t inside[SIM_MAX_TASKS]; /* the deadline of the take that the task is in */
	int producers;
	bool over;     /* closed */
	bool left;     /* a taker has given up */
	int64_t freed; /* what free answered, if a task called it; else -1 */
} d;

/* ---- the judge ---------------------------------------------------------------- */

/* The stupid delay queue: values by number, that is, in the order of their offers' notes. */
static struct {
	int line[MAX_VALUES];
	int n;
	bool closed;
} m;

static int model_head(void)
{
	int at = -1;

	for (int i = 0; i < m.n; i++) {
		if (at < 0 || d.expiry_ns[m.line[i]] < d.expiry_ns[m.line[at]])
			at = i;
	}
	return at;
}

static int64_t model_next(void)
{
	return m.n ? d.expiry_ns[m.line[model_head()]] : WQ_NEVER;
}

static void expect(const struct note *n, const char *what, int64_t expected)
{
	if (n->rc != expected)
		sim_fail("section %u: %s answered %lld, expected %lld", n->section, what,
		         (long long)n->rc, (long long)expected);
}

static void model_take(const struct note *n)
{
	int64_t next = model_next();

	if (next == WQ_NEVER || next > n->said_ns) {
		if (n->rc == WQ_OK)
			sim_fail("section %u: value %d was taken at %lld; the first is due at %lld",
			         n->section, n->value, (long long)n->said_ns, (long long)next);
		if (m.closed)
			expect(n, "take", WQ_ESHUTDOWN);
		else if (n->deadline_ns == POLL)
			expect(n, "poll", WQ_EAGAIN);
		else if (n->deadline_ns == WQ_NEVER || n->said_ns < n->deadline_ns)
			sim_fail("section %u: take answered %lld, before its deadline and without "
			         "a value",
			         n->section, (long long)n->rc);
		else
			expect(n, "take", WQ_ETIMEDOUT);
		return;
	}

	int at = model_head();

	expect(n, "take", WQ_OK);
	if (n->value != m.line[at])
		sim_fail("section %u: value %d was taken, but value %d comes first", n->section,
		         n->value, m.line[at]);
	m.n--;
	memmove(m.line + at, m.line + at + 1, (size_t)(m.n - at) * sizeof *m.line);
}

/* Play everything so far. */
static void judge(void)
{
	memset(&m, 0, sizeof m);
	for (int i = 0; i < d.nnotes; i++) {
		const struct note *n = &d.note[i];

		switch (n->kind) {
		case OFFER:
			expect(n, "offer", m.closed ? WQ_ESHUTDOWN : WQ_OK);
			if (!m.closed)
				m.line[m.n++] = n->value;
			break;
		case TAKE:
			model_take(n);
			break;
		case SHUT:
			expect(n, "close", WQ_OK);
			m.closed = true;
			break;
		case SIZE:
			expect(n, "size", m.n);
			break;
		case NEXT:
			expect(n, "next", model_next());
			break;
		}
	}
}

/* In the order of the sections; those of setup are 0 and come first. */
static void note(struct note n)
{
	int at = d.nnotes;

	if (d.nnotes == MAX_NOTES)
		sim_fail("too many notes");
	n.section = sim_call_last();
	n.said_ns = clock_said();
	for (; at > 0 && d.note[at - 1].section > n.section; at--)
		d.note[at] = d.note[at - 1];
	d.note[at] = n;
	d.nnotes++;
}

/* Everybody waits. */
static void quiet_delay(void)
{
	int asleep = 0, timed = 0;
	int64_t first_ns = WQ_NEVER, next;

	if (!d.dq)
		return;
	judge();
	next = model_next();
	for (int i = 0; i < sim_tasks(); i++) {
		if (d.inside[i] == NOT_INSIDE || !sim_sleeping(i))
			continue;

		int64_t until = clock_sleeps_until(i);

		asleep++;
		timed += until < d.inside[i];
		if (until < first_ns)
			first_ns = until;
	}
	if (!asleep)
		return;
	if (m.closed)
		sim_fail("the queue is closed, and %d takers sleep", asleep);
	if (next <= clock_now() && next != WQ_NEVER)
		sim_fail("a value is due since %lld, and %d takers sleep", (long long)next, asleep);
	if (!clock_runs())
		return;
	if (first_ns > next)
		sim_fail("%d takers sleep, and none of them only until %lld, when a value is due",
		         asleep, (long long)next);
	if (timed > 1)
		sim_fail("%d takers wait for the time of one value", timed);
}

/* ---- calls ---------------------------------------------------------------------- */

static int offer(int64_t expiry_ns)
{
	int value = d.nvalues++;

	if (value == MAX_VALUES)
		sim_fail("too many values");
	d.expiry_ns[value] = expiry_ns;
	d.mortal += expiry_ns != WQ_NEVER;
	sim_call_begin();

	int rc = wq_delayqueue_offer(d.dq, &d.taken[value], expiry_ns);

	if (rc != WQ_OK)
		d.mortal -= expiry_ns != WQ_NEVER;
	note((struct note){.kind = OFFER, .value = value, .rc = rc});
	if (sim_tracing)
		sim_trace("offer %d for %lld -> %s", value, (long long)expiry_ns,
		          wq_status_name(rc));
	return rc;
}

/* A time, WQ_NEVER or POLL. */
static int take(int64_t deadline_ns)
{
	void *p = NULL;
	int rc, value = -1;

	sim_call_begin();
	d.inside[sim_self()] = deadline_ns;
	if (deadline_ns == POLL)
		rc = wq_delayqueue_poll(d.dq, &p);
	else if (deadline_ns == WQ_NEVER)
		rc = wq_delayqueue_take(d.dq, &p);
	else
		rc = wq_delayqueue_take_until(d.dq, &p, deadline_ns);
	d.inside[sim_self()] = NOT_INSIDE;
	if (rc == WQ_OK) {
		value = (int)((bool *)p - d.taken);
		if (value < 0 || value >= d.nvalues)
			sim_fail("a value from nowhere");
		if (d.taken[value])
			sim_fail("value %d was taken twice", value);
		d.taken[value] = true;
		d.mortal--;
		if (d.expiry_ns[value] > clock_now())
			sim_fail("value %d was taken early", value);
	} else if (p) {
		sim_fail("take answered %s and a value", wq_status_name(rc));
	}
	note((struct note){.kind = TAKE, .value = value, .rc = rc, .deadline_ns = deadline_ns});
	if (sim_tracing)
		sim_trace("take until %lld -> %s, value %d", (long long)deadline_ns,
		          wq_status_name(rc), value);
	return rc;
}

static void shut(void)
{
	sim_call_begin();

	int rc = wq_delayqueue_close(d.dq);

	d.over = true;
	note((struct note){.kind = SHUT, .rc = rc});
	sim_trace("close");
}

static void look(void)
{
	bool size = sim_chance(2);

	sim_call_begin();

	int64_t rc = size ? wq_delayqueue_size(d.dq) : wq_delayqueue_next(d.dq);

	note((struct note){.kind = size ? SIZE : NEXT, .rc = rc});
}

/* ---- tasks ------------------------------------------------------------------------ */

static void changed(void)
{
	SIM_CHECK(wq_delayqueue_clock_changed(d.dq) == WQ_OK);
}

static void open_delay(enum clock_kind kind)
{
	memset(&d, 0, sizeof d);
	d.freed = -1;
	for (int i = 0; i < SIM_MAX_TASKS; i++)
		d.inside[i] = NOT_INSIDE;

	wq_delayqueue_options o = {.allocator = world_allocator(),
	                           .clock = clock_open(kind, changed)};

	SIM_CHECK(wq_delayqueue_new(&d.dq, &o) == WQ_OK);
}

static int64_t some_expiry(void)
{
	switch (sim_random(8)) {
	case 0: /* long ago, often as long ago as another one */
		return sim_random(3);
	case 1:
		return clock_now();
	case 2: /* with another one, which may be taken already */
		return d.nvalues ? d.expiry_ns[sim_random((uint32_t)d.nvalues)] : 0;
	case 3:
		return sim_chance(2) ? WQ_NEVER : clock_soon();
	default:
		return clock_soon();
	}
}

static bool all_taken(void *arg)
{
	(void)arg;
	return d.mortal == 0;
}

/* The last one closes, once everything that is ever due has been taken. */
static void producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		offer(some_expiry());
		if (sim_chance(3))
			sim_pass(clock_span());
		if (sim_chance(4))
			look();
	}
	if (--d.producers == 0) {
		sim_until(all_taken, NULL);
		shut();
	}
}

static void work_a_little(void)
{
	if (sim_chance(4))
		sim_pass(clock_span());
}

static void taker(void *arg)
{
	int rc;

	(void)arg;
	while ((rc = take(WQ_NEVER)) == WQ_OK)
		work_a_little();
	SIM_CHECK(rc == WQ_ESHUTDOWN);
}

/* Gives up, works elsewhere and comes back; it is the leader as often as others. */
static void impatient_taker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		int rc = take(sim_chance(8) ? 0 : clock_soon());

		if (rc == WQ_ESHUTDOWN)
			return;
		work_a_little();
	}
}

static void poller(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		take(POLL);
		work_a_little();
	}
}

static void spawn_some(const char *name, void (*fn)(void *), uint32_t least, uint32_t most)
{
	for (uint32_t n = least + sim_random(most - least + 1); n > 0; n--)
		sim_spawn(name, fn, NULL);
}

static void spawn_producers(int n)
{
	d.producers = n;
	spawn_some("producer", producer, (uint32_t)n, (uint32_t)n);
}

/* Also when a task has freed it. */
static void finish_delay(void)
{
	judge();
	if (d.freed < 0)
		d.freed = wq_delayqueue_free(d.dq);
	if (d.freed != m.n)
		sim_fail("free answered %lld, but %d values were left", (long long)d.freed, m.n);
	clock_close();
}

/* ---- scenarios --------------------------------------------------------------------- */

static void setup_delay(void)
{
	open_delay(REAL_CLOCK);
	spawn_producers(1 + (int)sim_random(3));
	spawn_some("taker", taker, 1, 4);
}

static void setup_impatient(void)
{
	open_delay(REAL_CLOCK);
	spawn_producers(1 + (int)sim_random(2));
	spawn_some("taker", taker, 1, 2);
	spawn_some("impatient", impatient_taker, 1, 3);
	spawn_some("poller", poller, 0, 1);
}

/* Steps, or jumps, beside all of these. */
static void setup_clocks(void)
{
	open_delay(sim_chance(2) ? STEPPED_CLOCK : JUMPING_CLOCK);
	clock_spawn(&d.over);
	spawn_producers(1 + (int)sim_random(2));
	spawn_some("taker", taker, 1, 2);
	spawn_some("impatient", impatient_taker, 0, 2);
	spawn_some("poller", poller, 0, 1);
}

/*
 * A value that is due later, a leader that gives up before, and a follower
 * that has nobody else to wake it: nothing is offered any more.
 */
static bool both_sleep_or_one_left(void *arg)
{
	(void)arg;
	return d.left || (sim_sleeping(0) && sim_sleeping(1));
}

static void leaver(void *arg)
{
	(void)arg;
	take(clock_soon());
	d.left = true;
}

static void closes_in_the_end(void *arg)
{
	(void)arg;
	sim_until(all_taken, NULL);
	shut();
}

static void offers_behind(void *arg)
{
	/* Either is the leader: who comes first, or who is roused by the first value. */
	if (sim_chance(2))
		sim_until(both_sleep_or_one_left, NULL);
	for (int i = 0; i < 2; i++)
		offer(clock_soon() + (sim_chance(2) ? 70000 : 0));
	closes_in_the_end(arg);
}

static void setup_handover(void)
{
	open_delay(REAL_CLOCK);
	sim_spawn("leaver", leaver, NULL);
	sim_spawn("taker", taker, NULL);
	sim_spawn("producer", offers_behind, NULL);
	spawn_some("leaver", leaver, 0, 2);
}

/* Closed at any moment: everyone returns, and what has expired is still taken. */
static void offers_beside_close(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		offer(some_expiry());
		if (sim_chance(4))
			sim_pass(clock_span());
	}
}

static void closer(void *arg)
{
	(void)arg;
	if (sim_chance(2))
		sim_pass(clock_span());
	shut();
	if (sim_chance(2))
		shut();
	if (sim_chance(2))
		take(sim_chance(2) ? POLL : WQ_NEVER);
}

static void setup_close(void)
{
	open_delay(sim_random(CLOCKS));
	clock_spawn(&d.over);
	spawn_some("closer", closer, 1, 2);
	spawn_some("producer", offers_beside_close, 1, 2);
	spawn_some("taker", taker, 1, 4);
	spawn_some("impatient", impatient_taker, 0, 1);
}

/* Nobody but the close wakes them. */
static bool takers_sleep(void *arg)
{
	(void)arg;
	for (int i = 0; i < d.producers; i++) {
		if (!sim_sleeping(i))
			return false;
	}
	return true;
}

/* Free is refused as long as somebody is inside, woken or not. */
static void freer(void *arg)
{
	(void)arg;
	sim_until(takers_sleep, NULL);
	SIM_CHECK(wq_delayqueue_free(d.dq) == WQ_EBUSY);
	offer(WQ_NEVER);
	shut();
	while ((d.freed = wq_delayqueue_free(d.dq)) == WQ_EBUSY)
		sim_pass(1000);
	d.dq = NULL;
}

static void setup_free(void)
{
	open_delay(REAL_CLOCK);
	if (sim_chance(2)) {
		sim_quiet_begin();
		offer(sim_now() + WQ_HOUR);
		sim_quiet_end();
	}
	d.producers = 1 + (int)sim_random(4);
	for (int i = 0; i < d.producers; i++)
		sim_spawn("taker", taker, NULL);
	sim_spawn("freer", freer, NULL);
}

const struct scenario scenarios_delay[] = {
    {"delay", "a delay queue: producers and takers", 60, setup_delay, finish_delay, quiet_delay},
    {"delay-impatient", "the same beside takes that time out, and polls", 60, setup_impatient,
     finish_delay, quiet_delay},
    {"delay-handover", "a leader that gives up", 30, setup_handover, finish_delay, quiet_delay},
    {"delay-clocks", "takers on clocks that jump or step", 40, setup_clocks, finish_delay,
     quiet_delay},
    {"delay-close", "a close beside offers and takes", 50, setup_close, finish_delay, quiet_delay},
    {"delay-free", "a delay queue is freed while takers leave it", 20, setup_free, finish_delay,
     quiet_delay},
    {0},
};
