/*
 * Timers with their thread (wq/timer.h): adds, cancels and stops beside it.
 *
 * Each call is noted with the section of the lock in which it took effect, each
 * callback with the section in which it was chosen, and the notes are played
 * through a stupid list of timers: nothing fires early, twice, out of order,
 * or after a cancel or a stop that came before, and every status is right. And
 * whenever everybody waits, the thread sleeps no longer than until the first
 * timer's time.
 */
#include <string.h>

#include "clocks.h"
#include "world.h"

enum { MAX_TIMERS = 48, MAX_NOTES = 2048 };

enum kind { ADD, CANCEL, MOVE, FIRE, STOP, SIZE, NEXT };

struct note {
	uint32_t section;
	enum kind kind;
	int timer;
	int64_t rc;
	int64_t due_ns; /* of an add or a move */
	wq_timer_event event;
};

struct timer {
	wq_timer_id id;
	int64_t period_ns; /* 0: fires once */
	bool mortal;       /* will fire some day, unless it is cancelled */
};

static struct {
	wq_timer *t;
	int runner; /* the task that is its thread */
	struct note note[MAX_NOTES];
	int nnotes;
	struct timer timer[MAX_TIMERS];
	int ntimers;
	int mortal;    /* timers that are so, and have neither fired nor been cancelled */
	int users;     /* tasks that are still at work */
	bool calls;    /* a callback is under way */
	int stops;     /* under way */
	bool over;     /* a stop has returned */
	bool halt;     /* the clock is to stand still */
	bool rough;    /* callbacks stop, and timers are moved to never: not all of them fire */
	int64_t freed; /* what free answered, if a task called it; else -1 */
} s;

/* ---- the judge ---------------------------------------------------------------- */

static struct {
	bool waits[MAX_TIMERS];
	bool periods[MAX_TIMERS]; /* in a later period: no promise among equal ones */
	int64_t due_ns[MAX_TIMERS];
	int order[MAX_TIMERS]; /* in which they were added */
	int n, added;
	bool stopped, inexact;
} m;

static int64_t model_next(void)
{
	int64_t next = WQ_NEVER;

	for (int i = 0; i < s.ntimers; i++) {
		if (m.waits[i] && m.due_ns[i] < next)
			next = m.due_ns[i];
	}
	return next;
}

static void expect(const struct note *n, const char *what, int64_t expected)
{
	if (n->rc != expected)
		sim_fail("section %u: %s answered %lld, expected %lld", n->section, what,
		         (long long)n->rc, (long long)expected);
}

static void model_add(const struct note *n)
{
	expect(n, "add", m.stopped ? WQ_ESHUTDOWN : WQ_OK);
	if (m.stopped)
		return;
	m.waits[n->timer] = true;
	m.due_ns[n->timer] = n->due_ns;
	m.order[n->timer] = m.added++;
	m.n++;
}

static void model_fire(const struct note *n)
{
	const wq_timer_event *e = &n->event;
	int i = n->timer;
	int64_t period = s.timer[i].period_ns, missed = 0;

	if (m.stopped || !m.waits[i])
		sim_fail("section %u: timer %d fired after %s", n->section, i,
		         m.stopped ? "the stop" : "it was cancelled or had fired");
	if (e->due_ns != m.due_ns[i] || e->now_ns < e->due_ns || e->id != s.timer[i].id)
		sim_fail("section %u: timer %d is due at %lld; it fired at %lld, for %lld",
		         n->section, i, (long long)m.due_ns[i], (long long)e->now_ns,
		         (long long)e->due_ns);
	for (int k = 0; k < s.ntimers; k++) {
		if (m.waits[k] && (m.due_ns[k] < e->due_ns ||
		                   (m.due_ns[k] == e->due_ns && m.order[k] < m.order[i] &&
		                    !m.periods[k] && !m.periods[i])))
			sim_fail("section %u: timer %d fired before timer %d", n->section, i, k);
	}
	if (period)
		missed = (e->now_ns - e->due_ns) / period;
	if (e->skipped != missed)
		sim_fail("section %u: timer %d skipped %lld, not %lld", n->section, i,
		         (long long)missed, (long long)e->skipped);
	if (period) {
		m.due_ns[i] += (missed + 1) * period;
		m.periods[i] = true;
	} else {
		m.waits[i] = false;
		m.n--;
	}
}

static void model_change(const struct note *n)
{
	bool waits = m.waits[n->timer];

	expect(n, n->kind == MOVE ? "reschedule" : "cancel", waits ? WQ_OK : WQ_ESTALE);
	if (!waits)
		return;
	m.inexact = true;
	if (n->kind == MOVE) {
		m.due_ns[n->timer] = n->due_ns;
		m.order[n->timer] = m.added++;
		m.periods[n->timer] = false;
	} else {
		m.waits[n->timer] = false;
		m.n--;
	}
}

static void model_next_deadline(const struct note *n)
{
	int64_t next = model_next();

	if (n->rc > next || (n->rc < next && !m.inexact))
		expect(n, "next_deadline", next);
}

static void judge(void)
{
	memset(&m, 0, sizeof m);
	for (int i = 0; i < s.nnotes; i++) {
		const struct note *n = &s.note[i];

		switch (n->kind) {
		case ADD:
			model_add(n);
			break;
		case CANCEL:
		case MOVE:
			model_change(n);
			break;
		case FIRE:
			model_fire(n);
			break;
		case STOP:
			m.stopped = true;
			break;
		case SIZE:
			expect(n, "size", m.n);
			break;
		case NEXT:
			model_next_deadline(n);
			break;
		}
	}
}

static void note(struct note n)
{
	int at = s.nnotes;

	if (s.nnotes == MAX_NOTES)
		sim_fail("too many notes");
	for (; at > 0 && s.note[at - 1].section > n.section; at--)
		s.note[at] = s.note[at - 1];
	s.note[at] = n;
	s.nnotes++;
}

/* Everybody waits. What a stop that waits has done is not noted yet. */
static void quiet_timer(void)
{
	if (!s.t || s.stops || !sim_sleeping(s.runner))
		return;
	judge();

	int64_t next = model_next();

	if (m.stopped)
		sim_fail("the thread sleeps though it was stopped");
	if (next == WQ_NEVER)
		return;
	if (next <= clock_now())
		sim_fail("a timer is due since %lld, and the thread sleeps", (long long)next);
	if (clock_runs() && clock_sleeps_until(s.runner) > next)
		sim_fail("the thread sleeps until %lld, but a timer is due at %lld",
		         (long long)clock_sleeps_until(s.runner), (long long)next);
}

/* ---- calls ---------------------------------------------------------------------- */

static void fire(void *ctx, const wq_timer_event *e);

static void gone(struct timer *t)
{
	s.mortal -= t->mortal;
	t->mortal = false;
}

static int add_timer(int64_t due_ns, int64_t period_ns)
{
	int i = s.ntimers++, rc;

	if (i == MAX_TIMERS)
		sim_fail("too many timers");

	struct timer *t = &s.timer[i];

	*t = (struct timer){.period_ns = period_ns, .mortal = due_ns != WQ_NEVER && !period_ns};
	s.mortal += t->mortal; /* it may fire before we are back */
	sim_call_begin();
	if (period_ns) {
		rc = wq_timer_every(s.t, period_ns, fire, t, &t->id);
		due_ns = clock_said() + period_ns;
	} else if (due_ns > clock_now() && due_ns != WQ_NEVER && sim_chance(2)) {
		rc = wq_timer_after(s.t, due_ns - clock_now(), fire, t, &t->id);
	} else {
		rc = wq_timer_add(s.t, due_ns, fire, t, &t->id);
	}
	if (rc != WQ_OK)
		gone(t);
	note((struct note){sim_call_last(), ADD, i, rc, due_ns, {0}});
	if (sim_tracing)
		sim_trace("timer %d for %lld, every %lld -> %s", i, (long long)due_ns,
		          (long long)period_ns, wq_status_name(rc));
	return rc;
}

static int cancel_timer(int i)
{
	struct timer *t = &s.timer[i];

	sim_call_begin();

	int rc = wq_timer_cancel(s.t, t->id);

	if (rc == WQ_OK)
		gone(t);
	note((struct note){sim_call_last(), CANCEL, i, rc, 0, {0}});
	if (sim_tracing)
		sim_trace("cancel %d -> %s", i, wq_status_name(rc));
	return rc;
}

static int move_timer(int i, int64_t due_ns)
{
	sim_call_begin();

	int rc = wq_timer_reschedule(s.t, s.timer[i].id, due_ns);

	if (due_ns == WQ_NEVER)
		gone(&s.timer[i]);
	note((struct note){sim_call_last(), MOVE, i, rc, due_ns, {0}});
	if (sim_tracing)
		sim_trace("move %d to %lld -> %s", i, (long long)due_ns, wq_status_name(rc));
	return rc;
}

static void look(void)
{
	bool size = sim_chance(2);

	sim_call_begin();

	int64_t rc = size ? wq_timer_size(s.t) : wq_timer_next_deadline(s.t);

	note((struct note){sim_call_last(), size ? SIZE : NEXT, 0, rc, 0, {0}});
}

static void stop_timer(void)
{
	bool inside = sim_self() == s.runner;

	sim_trace("stop");
	s.stops++;
	sim_call_begin();
	SIM_CHECK(wq_timer_stop(s.t) == WQ_OK);
	note((struct note){sim_call_first(), STOP, 0, WQ_OK, 0, {0}});
	s.stops--;
	s.over = true;
	if (s.calls && !inside)
		sim_fail("stop returned beside a callback");
}

static void free_timer(void)
{
	sim_trace("free");
	s.stops++;
	sim_call_begin();
	s.freed = wq_timer_free(s.t);
	s.t = NULL;
	note((struct note){sim_call_first(), STOP, 0, WQ_OK, 0, {0}});
	s.over = true;
	if (s.calls)
		sim_fail("free returned beside a callback");
}

/* ---- tasks ------------------------------------------------------------------------ */

static int64_t some_due(void)
{
	switch (sim_random(8)) {
	case 0:
		return sim_random(3);
	case 1:
		return clock_now();
	case 2: /* far away: the thread sleeps long, unless it is woken for an earlier one */
		return clock_now() + 300000 + sim_random(2);
	case 3:
		return sim_chance(4) ? WQ_NEVER : clock_soon();
	default:
		return clock_soon();
	}
}

static int64_t some_move(void)
{
	return s.rough ? some_due() : clock_soon();
}

/* One that was added, and whose name is known. */
static int some_timer(void)
{
	int i = s.ntimers ? (int)sim_random((uint32_t)s.ntimers) : -1;

	return i >= 0 && s.timer[i].id ? i : -1;
}

static void in_callback(int self)
{
	switch (sim_random(s.rough ? 10 : 8)) {
	case 0:
		sim_pass(clock_span());
		break;
	case 1:
		if (s.ntimers < MAX_TIMERS / 2)
			add_timer(some_due(), 0);
		break;
	case 2: /* itself: gone already, unless it is periodic */
		if (s.timer[self].id)
			cancel_timer(self);
		break;
	case 3:
		if (s.timer[self].id)
			move_timer(self, clock_soon());
		break;
	case 4:
		SIM_CHECK(wq_timer_free(s.t) == WQ_EDEADLK);
		break;
	case 5:
		look();
		break;
	case 8:
		stop_timer();
		break;
	default:
		sim_yield();
	}
}

static void fire(void *ctx, const wq_timer_event *e)
{
	struct timer *t = ctx;
	int i = (int)(t - s.timer);

	/* The section in which it was chosen is the thread's last one. */
	note((struct note){sim_call_last(), FIRE, i, 0, 0, *e});
	if (sim_tracing)
		sim_trace("timer %d fires for %lld", i, (long long)e->due_ns);
	if (sim_self() != s.runner || s.calls)
		sim_fail("a callback beside another, or in another thread");
	if (s.over)
		sim_fail("timer %d fires though stop has returned", i);
	if (e->now_ns > clock_now())
		sim_fail("timer %d was told %lld, a time to come", i, (long long)e->now_ns);
	s.calls = true;
	gone(t);
	in_callback(i);
	/* A periodic one ends some day. */
	if (t->period_ns && t->id && sim_chance(4))
		cancel_timer(i);
	s.calls = false;
}

static bool none_mortal(void *arg)
{
	(void)arg;
	return s.mortal == 0;
}

static bool last_one(void *arg)
{
	(void)arg;
	return s.users == 1;
}

/* The last one stops, or frees, once everything has fired. */
static void user(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6 && !s.over; i++) {
		int other = some_timer();

		switch (sim_random(6)) {
		case 0:
			if (other >= 0)
				cancel_timer(other);
			break;
		case 1:
			if (other >= 0)
				move_timer(other, some_move());
			break;
		case 2:
			if (sim_chance(4) && s.ntimers < MAX_TIMERS / 2)
				add_timer(0, 5000 + clock_span());
			break;
		case 3:
			sim_pass(clock_span());
			break;
		default:
			if (s.ntimers < MAX_TIMERS / 2)
				add_timer(some_due(), 0);
		}
	}
	if (s.users > 1) {
		s.users--;
		return;
	}
	sim_until(last_one, NULL);
	if (!s.rough)
		sim_until(none_mortal, NULL);
	if (sim_chance(2)) {
		s.halt = true;
		sim_until(clock_is_still, NULL);
		free_timer();
	} else {
		stop_timer();
		s.halt = true;
	}
}

/* Beside a callback, if there still is one to come. */
static bool callback_or_end(void *arg)
{
	(void)arg;
	return s.calls || s.over || s.mortal == 0;
}

static void stopper(void *arg)
{
	(void)arg;
	switch (sim_random(4)) {
	case 0:
		break;
	case 1:
		sim_pass(clock_span());
		break;
	default:
		sim_until(callback_or_end, NULL);
	}
	stop_timer();
	if (--s.users == 0)
		s.halt = true;
}

static void changed(void)
{
	SIM_CHECK(wq_timer_clock_changed(s.t) == WQ_OK);
}

static void open_timer(enum clock_kind kind)
{
	memset(&s, 0, sizeof s);
	s.freed = -1;

	wq_timer_options o = {.allocator = world_allocator(),
	                      .clock = clock_open(kind, changed),
	                      .tick_ns = sim_chance(2) ? 1 << sim_random(20) : 0,
	                      .size = sim_chance(2) ? (size_t)2 << sim_random(6) : 0};

	s.runner = sim_tasks();
	SIM_CHECK(wq_timer_new(&s.t, &o) == WQ_OK);
}

static void spawn_users(int n)
{
	s.users += n;
	for (int i = 0; i < n; i++)
		sim_spawn("user", user, NULL);
}

static void finish_timer(void)
{
	judge();
	if (s.freed < 0)
		s.freed = wq_timer_free(s.t);
	if (s.freed != m.n)
		sim_fail("free answered %lld, but %d timers were left", (long long)s.freed, m.n);
	clock_close();
}

/* ---- scenarios --------------------------------------------------------------------- */

static void setup_timer(void)
{
	open_timer(REAL_CLOCK);
	spawn_users(1 + (int)sim_random(3));
}

static void setup_timer_clocks(void)
{
	open_timer(sim_chance(2) ? STEPPED_CLOCK : JUMPING_CLOCK);
	clock_spawn(&s.halt);
	spawn_users(1 + (int)sim_random(2));
}

/* The thread sleeps for long; whoever adds an earlier timer wakes it. */
static void earlier(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		add_timer(clock_soon(), 0);
		if (sim_chance(2))
			sim_until(none_mortal, NULL);
	}
	if (--s.users == 0) {
		sim_until(none_mortal, NULL);
		stop_timer();
	}
}

static void setup_timer_earlier(void)
{
	open_timer(REAL_CLOCK);
	sim_quiet_begin();
	add_timer(sim_chance(2) ? WQ_NEVER : sim_now() + 400000, 0);
	gone(&s.timer[0]);
	sim_quiet_end();
	s.users = 1 + (int)sim_random(2);
	for (int i = 0; i < s.users; i++)
		sim_spawn("adder", earlier, NULL);
}

/* Stops from everywhere, callbacks among them. */
static void setup_timer_stop(void)
{
	open_timer(sim_random(CLOCKS));
	s.rough = true;
	clock_spawn(&s.halt);
	sim_quiet_begin();
	for (int i = 0; i < 2; i++)
		add_timer(clock_soon(), 0);
	sim_quiet_end();
	s.users = 1 + (int)sim_random(3);
	for (int i = 0; i < s.users; i++)
		sim_spawn("stopper", stopper, NULL);
	spawn_users(1 + (int)sim_random(2));
}

/* One timer that is due, and somebody who wants it back. */
static void canceller(void *arg)
{
	(void)arg;
	if (sim_chance(2))
		sim_pass(900 + sim_random(200));
	if (cancel_timer(0) == WQ_OK && s.calls)
		sim_fail("a cancel came in time for a callback that is under way");
	if (--s.users == 0) {
		sim_until(none_mortal, NULL);
		free_timer();
	}
}

/* Here the thread may be at work before new has returned. */
static void opener(void *arg)
{
	(void)arg;
	open_timer(REAL_CLOCK);
	add_timer(sim_now() + 1000, 0);
	s.users = 1 + (int)sim_random(3);
	for (int i = 0; i < s.users; i++)
		sim_spawn("canceller", canceller, NULL);
}

static void setup_timer_cancel(void)
{
	memset(&s, 0, sizeof s);
	sim_spawn("opener", opener, NULL);
}

const struct scenario scenarios_timer[] = {
    {"timer", "timers that are added, moved and cancelled", 60, setup_timer, finish_timer,
     quiet_timer},
    {"timer-clocks", "the same on clocks that jump or step", 30, setup_timer_clocks, finish_timer,
     quiet_timer},
    {"timer-earlier", "earlier timers wake the thread", 20, setup_timer_earlier, finish_timer,
     quiet_timer},
    {"timer-cancel", "cancels beside the firing", 20, setup_timer_cancel, finish_timer,
     quiet_timer},
    {"timer-stop", "stops beside callbacks", 50, setup_timer_stop, finish_timer, quiet_timer},
    {0},
};
