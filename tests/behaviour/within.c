/*
 * [WITHIN] A copy that waits comes due no later than the first add said that gave
 * it a bound, however others move it: in every state, with every policy, until
 * that wait has ended.
 *
 * Times are milliseconds from the beginning; the second add of a case comes at 10.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, RD = R | WQ_STATE_DIRTY, W = WQ_STATE_WAITING };

enum { NEVER_MS = -1, SECOND_ADD = 10 };

#define MS WQ_MILLISECOND

/* ---- helpers ----------------------------------------------------------------- */

static void open_within(struct fixture *f)
{
	fixture_open(f, &(wq_options){.within = 1});
}

static int64_t at_ms(int64_t ms)
{
	return ms == NEVER_MS ? WQ_NEVER : START_NS + ms * MS;
}

/* Add "k" for a time; within_ms from now, 0: no bound is given. */
static int add(wq_queue *q, int64_t due_ms, int64_t within_ms, enum wq_policy policy)
{
	wq_add_options o = {.at_ns = at_ms(due_ms), .within_ns = within_ms * MS, .policy = policy};

	return wq_add_with(q, "k", 1, &o);
}

/* It is held from now on. */
static void hold(wq_queue *q, wq_item *it)
{
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	get_is(q, it, "k");
}

static int note(void *ctx, const wq_key_info *info)
{
	if (info->len == 1 && *(const char *)info->key == 'k')
		*(wq_key_info *)ctx = *info;
	return 0;
}

/* "k" as a walk shows it. */
static wq_key_info shown(wq_queue *q)
{
	wq_key_info info = {0};

	IS(wq_walk(q, note, &info) >= 0, 1);
	return info;
}

/* When it comes due; 0: it does not wait. */
static int64_t due_of(wq_queue *q)
{
	return shown(q).due_ns;
}

/* A far move shows whether there is a bound: where the copy stops; NEVER_MS: nowhere. */
static void bound_is(wq_queue *q, int64_t ms)
{
	IS(add(q, NEVER_MS, 0, WQ_REPLACE), WQ_MOVED);
	IS(due_of(q), at_ms(ms));
}

/* ---- two adds, each with or without a bound ---------------------------------- */

struct pair {
	enum wq_policy policy;
	int64_t first_within;  /* of the first add, for 50; 0: none */
	int64_t second;        /* the time of the second */
	int64_t second_within; /* from 10 on */
	int answer;
	int64_t due;
	int64_t bound; /* that the copy has then */
};

static const struct pair pairs[] = {
    /* the first has one: 60 */
    {WQ_MIN, 60, 30, 0, WQ_MOVED, 30, 60},
    {WQ_MIN, 60, 90, 0, WQ_KEPT, 50, 60},
    {WQ_MAX, 60, 30, 0, WQ_KEPT, 50, 60},
    {WQ_MAX, 60, 55, 0, WQ_MOVED, 55, 60},
    {WQ_MAX, 60, 90, 0, WQ_MOVED, 60, 60},
    {WQ_MAX, 60, NEVER_MS, 0, WQ_MOVED, 60, 60},
    {WQ_REPLACE, 60, 30, 0, WQ_MOVED, 30, 60},
    {WQ_REPLACE, 60, 60, 0, WQ_MOVED, 60, 60},
    {WQ_REPLACE, 60, 90, 0, WQ_MOVED, 60, 60},
    {WQ_REPLACE, 60, NEVER_MS, 0, WQ_MOVED, 60, 60},
    {WQ_KEEP, 60, 30, 0, WQ_KEPT, 50, 60},
    {WQ_KEEP, 60, 90, 0, WQ_KEPT, 50, 60},

    /* and it is sooner than the time */
    {WQ_MIN, 40, 30, 0, WQ_MOVED, 30, 40},
    {WQ_MIN, 40, 45, 0, WQ_KEPT, 40, 40},
    {WQ_MAX, 40, 90, 0, WQ_KEPT, 40, 40},
    {WQ_REPLACE, 40, 90, 0, WQ_MOVED, 40, 40},
    {WQ_KEEP, 40, 30, 0, WQ_KEPT, 40, 40},

    /* both have one: the first counts */
    {WQ_MIN, 60, 90, 20, WQ_KEPT, 50, 60},
    {WQ_MIN, 60, 30, 10, WQ_MOVED, 30, 60},
    {WQ_MAX, 60, 90, 20, WQ_MOVED, 60, 60},
    {WQ_MAX, 60, 90, 500, WQ_MOVED, 60, 60},
    {WQ_REPLACE, 60, 55, 20, WQ_MOVED, 55, 60},
    {WQ_REPLACE, 60, 90, 20, WQ_MOVED, 60, 60},
    {WQ_REPLACE, 60, 90, 500, WQ_MOVED, 60, 60},
    {WQ_KEEP, 60, 90, 20, WQ_KEPT, 50, 60},
    {WQ_KEEP, 60, 90, 500, WQ_KEPT, 50, 60},

    /* the second: it counts from there */
    {WQ_MIN, 0, 20, 20, WQ_MOVED, 20, 30},
    {WQ_MIN, 0, 90, 20, WQ_MOVED, 30, 30},
    {WQ_MIN, 0, 90, 60, WQ_KEPT, 50, 70},
    {WQ_MAX, 0, 20, 20, WQ_MOVED, 30, 30},
    {WQ_MAX, 0, 90, 20, WQ_MOVED, 30, 30},
    {WQ_MAX, 0, 90, 60, WQ_MOVED, 70, 70},
    {WQ_MAX, 0, 60, 60, WQ_MOVED, 60, 70},
    {WQ_REPLACE, 0, 20, 20, WQ_MOVED, 20, 30},
    {WQ_REPLACE, 0, 90, 20, WQ_MOVED, 30, 30},
    {WQ_REPLACE, 0, 90, 60, WQ_MOVED, 70, 70},
    {WQ_KEEP, 0, 20, 20, WQ_MOVED, 30, 30},
    {WQ_KEEP, 0, 90, 60, WQ_KEPT, 50, 70},

    /* none */
    {WQ_MIN, 0, 90, 0, WQ_KEPT, 50, NEVER_MS},
    {WQ_MAX, 0, 90, 0, WQ_MOVED, 90, NEVER_MS},
    {WQ_REPLACE, 0, 90, 0, WQ_MOVED, 90, NEVER_MS},
    {WQ_KEEP, 0, 90, 0, WQ_KEPT, 50, NEVER_MS},
};

static void first_and_second(struct fixture *f, const struct pair *p, bool held, wq_item *it)
{
	open_within(f);
	if (held)
		hold(f->q, it);
	IS(add(f->q, 50, p->first_within, p->policy), WQ_DELAYED);
	IS(wq_manual_clock_advance(f->mc, SECOND_ADD * MS), WQ_OK);
	IS(add(f->q, p->second, p->second_within, p->policy), p->answer);
	IS(due_of(f->q), at_ms(p->due));
	IS(state_of(f->q, "k"), held ? R | W : W);
}

/* It comes due just then, and once. */
static void comes_due(struct fixture *f, const struct pair *p, bool held, wq_item *it)
{
	wq_manual_clock_advance(f->mc, (p->due - SECOND_ADD) * MS - 1);
	IS(state_of(f->q, "k"), held ? R | W : W);
	wq_manual_clock_advance(f->mc, 1);
	IS(state_of(f->q, "k"), held ? RD : Q);
	if (held)
		IS(wq_done(f->q, it), WQ_QUEUED);
	get_is(f->q, it, "k");
	IS(it->added_ns, at_ms(p->due));
	IS(wq_done(f->q, it), WQ_OK);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	check_whole(f->q, 0, 0);
}

static void WITHIN_policies(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(pairs); i++)
		for (int held = 0; held < 2; held++) {
			struct fixture f;
			wq_item it;

			first_and_second(&f, &pairs[i], held, &it);
			comes_due(&f, &pairs[i], held, &it);
			fixture_close(&f, 0);

			first_and_second(&f, &pairs[i], held, &it);
			bound_is(f.q, pairs[i].bound);
			if (held)
				IS(wq_done(f.q, &it), WQ_DELAYED);
			bound_is(f.q, pairs[i].bound); /* it does not matter who holds the key */
			fixture_close(&f, 1);
		}
}

/* ---- the first wait, from each state ------------------------------------------ */

static void WITHIN_from_each_state(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_within(&f);

	/* absent; a time after the bound, and one before */
	IS(add(f.q, 50, 20, WQ_MIN), WQ_DELAYED);
	IS(due_of(f.q), at_ms(20));
	IS(cancel_key(f.q, "k", 1), W);
	IS(add(f.q, NEVER_MS, 20, WQ_MAX), WQ_DELAYED);
	IS(due_of(f.q), at_ms(20));
	IS(cancel_key(f.q, "k", 1), W);
	IS(add(f.q, 10, 20, WQ_REPLACE), WQ_DELAYED);
	IS(due_of(f.q), at_ms(10));
	bound_is(f.q, 20);
	IS(cancel_key(f.q, "k", 1), W);

	/* only remembered: it has failed once */
	hold(f.q, &it);
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(cancel_key(f.q, "k", 1), W);
	IS(wq_failures(f.q, "k", 1), 1);
	IS(add(f.q, 50, 20, WQ_KEEP), WQ_DELAYED);
	IS(due_of(f.q), at_ms(20));
	bound_is(f.q, 20);
	IS(wq_failures(f.q, "k", 1), 1);
	IS(cancel_key(f.q, "k", 1), W);

	/* held */
	hold(f.q, &it);
	IS(add(f.q, 50, 20, WQ_MIN), WQ_DELAYED);
	IS(due_of(f.q), at_ms(20));
	bound_is(f.q, 20);
	IS(cancel_key(f.q, "k", 1), R | W);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

/* In line or dirty already, or added at once: it merges, and what it waits for later is free. */
static void WITHIN_says_nothing_of_a_key_that_does_not_wait(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_within(&f);
	for (enum wq_policy policy = WQ_MIN; policy <= WQ_KEEP; policy++) {
		wq_add_options now = {.within_ns = 20 * MS, .policy = policy};

		IS(wq_add_with(f.q, "k", 1, &now), WQ_QUEUED);
		IS(add(f.q, 50, 20, policy), WQ_MERGED);
		IS(wq_add_with(f.q, "k", 1, &now), WQ_MERGED);
		get_is(f.q, &it, "k");
		now.at_ns = 1; /* has passed */
		IS(wq_add_with(f.q, "k", 1, &now), WQ_MARKED);
		IS(add(f.q, 50, 20, policy), WQ_MERGED);
		IS(wq_done(f.q, &it), WQ_QUEUED);
		get_is(f.q, &it, "k");
		IS(add(f.q, 50, 0, policy), WQ_DELAYED);
		bound_is(f.q, NEVER_MS);
		IS(cancel_key(f.q, "k", 1), R | W);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	fixture_close(&f, 0);
}

/* Beside a reminder, which no bound moves; and its time is an add, which ends the wait. */
static void WITHIN_beside_a_reminder(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_within(&f);
	IS(remind(f.q, "k", 30 * MS), WQ_DELAYED);
	IS(add(f.q, 50, 20, WQ_REPLACE), WQ_DELAYED);
	bound_is(f.q, 20);
	wq_manual_clock_advance(f.mc, 20 * MS);
	get_is(f.q, &it, "k");
	IS(due_of(f.q), at_ms(30));
	IS(add(f.q, 90, 40, WQ_REPLACE), WQ_DELAYED); /* by 60 */
	wq_manual_clock_advance(f.mc, 10 * MS);
	IS(state_of(f.q, "k"), RD);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "k");
	IS(it.added_ns, at_ms(30));
	IS(add(f.q, 90, 0, WQ_REPLACE), WQ_DELAYED);
	bound_is(f.q, NEVER_MS);
	IS(wq_done(f.q, &it), WQ_DELAYED);
	fixture_close(&f, 1);
}

/* ---- the end of a bound -------------------------------------------------------- */

enum end { DUE, ABSORBED, CANCELLED, MOVED, SAME_TIME, GIVEN_BACK, RETRIED_AT_ONCE, ENDS };

/* The copy is bound by 60 and waits for 50; afterwards the key is held once more. */
static void end_wait(struct fixture *f, enum end end, wq_item *it)
{
	switch (end) {
	case DUE:
		wq_manual_clock_advance(f->mc, 50 * MS);
		IS(wq_done(f->q, it), WQ_QUEUED);
		break;
	case ABSORBED:
		IS(wq_add_str(f->q, "k"), WQ_MARKED);
		IS(wq_done(f->q, it), WQ_QUEUED);
		break;
	case CANCELLED:
		IS(cancel_key(f->q, "k", 1), R | W);
		return;
	case MOVED:
		IS(wq_reschedule(f->q, "k", 1, at_ms(90)), WQ_MOVED); /* beyond it */
		IS(due_of(f->q), at_ms(90));
		return;
	case SAME_TIME:
		IS(wq_reschedule(f->q, "k", 1, at_ms(50)), WQ_MOVED);
		return;
	case GIVEN_BACK:
		IS(wq_requeue(f->q, it, WQ_TAIL), WQ_QUEUED);
		break;
	case RETRIED_AT_ONCE:
		IS(wq_retry(f->q, it), WQ_QUEUED);
		break;
	case ENDS:
		break;
	}
	get_is(f->q, it, "k");
}

/* The next wait of the same hold or of the next: without a bound, or with its own. */
static void WITHIN_ends_with_the_wait(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++)
		for (enum end end = DUE; end < ENDS; end++) {
			struct fixture f;
			wq_item it;
			wq_limiter *at_once = wq_limiter_bucket(1e9, 1000);
			int64_t now = end == DUE ? 50 : 0;
			bool waits = end == MOVED || end == SAME_TIME;

			fixture_open(&f, &(wq_options){.within = 1, .limiter = at_once});
			hold(f.q, &it);
			IS(add(f.q, 50, 60, WQ_REPLACE), WQ_DELAYED);
			end_wait(&f, end, &it);
			IS(add(f.q, 200, again ? 70 : 0, WQ_REPLACE),
			   waits ? WQ_MOVED : WQ_DELAYED);
			bound_is(f.q, again ? now + 70 : NEVER_MS);
			IS(cancel_key(f.q, "k", 1), R | W);
			IS(wq_done(f.q, &it), WQ_OK);
			fixture_close(&f, 0);
		}
}

/* The same without a hold: the key is in line, or gone, in between. */
static void WITHIN_ends_with_the_key(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_within(&f);
	hold(f.q, &it); /* so that it has failures, and keeps its memory */
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(add(f.q, 50, 60, WQ_REPLACE), WQ_MOVED);
	IS(cancel_key(f.q, "k", 1), W);
	IS(add(f.q, 50, 0, WQ_REPLACE), WQ_DELAYED);
	bound_is(f.q, NEVER_MS);
	IS(cancel_key(f.q, "k", 1), W);
	IS(add(f.q, 50, 60, WQ_REPLACE), WQ_DELAYED);
	IS(wq_add_str(f.q, "k"), WQ_QUEUED);
	take_is(f.q, "k", WQ_OK);
	IS(wq_failures(f.q, "k", 1), 1);
	IS(add(f.q, 50, 0, WQ_REPLACE), WQ_DELAYED);
	bound_is(f.q, NEVER_MS);
	fixture_close(&f, 1);
}

/* ---- failures ------------------------------------------------------------------ */

static void WITHIN_and_retries(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.within = 1,
	                               .limiter = wq_limiter_exponential(100 * MS, WQ_HOUR)});

	/* a retry beside a copy with a bound: the earlier time, and the bound stays */
	hold(f.q, &it);
	IS(add(f.q, 50, 60, WQ_REPLACE), WQ_DELAYED);
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(due_of(f.q), at_ms(50));
	bound_is(f.q, 60);
	IS(wq_forget(f.q, "k", 1), WQ_OK);
	wq_manual_clock_advance(f.mc, 60 * MS);
	get_is(f.q, &it, "k");
	IS(it.added_ns, at_ms(60));

	/* one that waits alone has none, until an add gives it one */
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(due_of(f.q), at_ms(160));
	IS(add(f.q, 400, 0, WQ_MAX), WQ_MOVED);
	IS(due_of(f.q), at_ms(400));
	IS(add(f.q, 500, 70, WQ_MAX), WQ_MOVED);
	IS(due_of(f.q), at_ms(130));
	wq_manual_clock_advance(f.mc, 70 * MS);
	get_is(f.q, &it, "k");

	/* once more later, as a retry */
	IS(add(f.q, 150, 60, WQ_REPLACE), WQ_DELAYED);
	IS(wq_settle(f.q, &it, wq_again_after(10 * MS)), WQ_DELAYED);
	IS(due_of(f.q), at_ms(140));
	bound_is(f.q, 190);
	IS(cancel_key(f.q, "k", 1), W);
	fixture_close(&f, 0);
}

/* Limited adds give no bound, but are held to it. */
static void WITHIN_and_limited_adds(void **state)
{
	static const struct {
		enum wq_policy policy;
		int answer;
		int64_t due_ms;
	} rows[] = {
	    {WQ_MIN, WQ_KEPT, 50},
	    {WQ_MAX, WQ_MOVED, 60},
	    {WQ_REPLACE, WQ_MOVED, 60},
	    {WQ_KEEP, WQ_KEPT, 50},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fixture f;
		wq_add_options o = {.limited = 1, .policy = rows[i].policy};

		fixture_open(&f,
		             &(wq_options){.within = 1,
		                           .limiter = wq_limiter_exponential(WQ_HOUR, WQ_HOUR)});
		IS(add(f.q, 50, 60, WQ_MIN), WQ_DELAYED);
		IS(wq_add_with(f.q, "k", 1, &o), rows[i].answer);
		IS(due_of(f.q), at_ms(rows[i].due_ms));
		IS(wq_failures(f.q, "k", 1), 1);
		fixture_close(&f, 1);
	}
}

/* ---- stop ------------------------------------------------------------------------ */

static void WITHIN_shutdown_and_drain(void **state)
{
	(void)state;
	for (enum wq_drain_mode waiting = WQ_DRAIN_LEAVE; waiting <= WQ_DRAIN_WAIT; waiting++) {
		struct fixture f;
		wq_drain_options o = {.mode = waiting};
		wq_report report;
		wq_item it;
		bool runs = waiting == WQ_DRAIN_RUN, waits = waiting == WQ_DRAIN_WAIT;
		bool leaves = waiting == WQ_DRAIN_LEAVE;

		open_within(&f);
		IS(add(f.q, NEVER_MS, 60, WQ_REPLACE), WQ_DELAYED);
		/* It has a time, so a drain that waits waits for it. */
		IS(wq_drain_until(f.q, 0, &o, &report), leaves ? WQ_LEFT : WQ_ETIMEDOUT);
		IS((int64_t)report.delayed, leaves || waits);
		IS((int64_t)report.retries, 0);
		IS((int64_t)report.queued, runs);
		IS(add(f.q, 90, 10, WQ_REPLACE), WQ_ESHUTDOWN);
		if (waits) {
			IS(due_of(f.q), at_ms(60));
			wq_manual_clock_advance(f.mc, 60 * MS);
		}
		if (runs || waits) {
			get_is(f.q, &it, "k");
			IS(wq_done(f.q, &it), WQ_OK);
		}
		IS(wq_drain_until(f.q, 0, &o, &report), leaves ? WQ_LEFT : WQ_OK);
		fixture_close(&f, leaves);
	}

	struct fixture f;

	open_within(&f);
	IS(add(f.q, 90, 60, WQ_REPLACE), WQ_DELAYED);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(state_of(f.q, "k"), WQ_STATE_LEFT);
	IS(due_of(f.q), at_ms(60)); /* a walk still tells its time */
	wq_manual_clock_advance(f.mc, 60 * MS);
	IS(state_of(f.q, "k"), WQ_STATE_LEFT);
	fixture_close(&f, 1);
}

/* ---- what it is for ---------------------------------------------------------------- */

/* An event each millisecond, for ever: the key is handled 20 ms after the first of a series. */
static void WITHIN_debounce_without_end(void **state)
{
	struct fixture f;
	int64_t first = -1;
	int handled = 0;

	(void)state;
	open_within(&f);
	for (int64_t ms = 0; ms < 990; ms++) {
		wq_item it;

		if (wq_try_get(f.q, &it) == WQ_OK) {
			IS(ms, first + 20);
			IS(it.added_ns, at_ms(ms));
			IS(wq_done(f.q, &it), WQ_OK);
			handled++;
			first = -1;
		}
		IS(add(f.q, ms + 5, 20, WQ_REPLACE), first < 0 ? WQ_DELAYED : WQ_MOVED);
		if (first < 0)
			first = ms;
		wq_manual_clock_advance(f.mc, MS);
	}
	IS(handled, 49);
	/* The events stop: 5 ms after the last. */
	IS(due_of(f.q), at_ms(989 + 5));
	fixture_close(&f, 1);
}

/* Many keys are due at one time, which is more than a hold of the lock moves. */
static void WITHIN_burst(void **state)
{
	enum { N = 2500 };
	struct fixture f;
	wq_item it;

	(void)state;
	open_within(&f);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < N; i++) {
			wq_add_options o = {.at_ns = at_ms(100 + i),
			                    .within_ns = round == 0 ? 50 * MS : 0,
			                    .policy = WQ_REPLACE};

			IS(wq_add_with(f.q, &i, sizeof i, &o), round == 0 ? WQ_DELAYED : WQ_MOVED);
		}
	wq_manual_clock_advance(f.mc, 50 * MS);
	IS(wq_add_str(f.q, "new"), WQ_QUEUED);
	for (int i = 0; i < N; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_memory_equal(it.key, &i,
		                    sizeof i); /* equal times keep the order of the calls */
		IS(it.added_ns, at_ms(50));
		IS(wq_done(f.q, &it), WQ_OK);
	}
	take_is(f.q, "new", WQ_OK);
	fixture_close(&f, 0);
}

/* A Get sleeps until a later time, on the real clock, which nobody moves: the bound wakes it. */
static void WITHIN_wakes_who_sleeps(void **state)
{
	wq_add_options o = {.after_ns = WQ_HOUR, .policy = WQ_KEEP};
	struct getter g;
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, &(wq_options){.within = 1}), WQ_OK);
	IS(wq_add_with(q, "k", 1, &o), WQ_DELAYED);
	getter_block(&g, q, WQ_NEVER);
	o.within_ns = 1;
	IS(wq_add_with(q, "k", 1, &o), WQ_MOVED);
	IS(getter_join(&g), WQ_OK);
	IS(wq_done(q, &g.item), WQ_OK);
	IS(wq_free(q), 0);
}

/* ---- arguments and memory ---------------------------------------------------------- */

/* Beyond the end of time is no bound; so a later one counts. */
static void WITHIN_saturates(void **state)
{
	struct fixture f;
	wq_add_options o = {.after_ns = 50 * MS, .within_ns = WQ_NEVER, .policy = WQ_REPLACE};

	(void)state;
	open_within(&f);
	IS(wq_add_with(f.q, "k", 1, &o), WQ_DELAYED);
	IS(due_of(f.q), at_ms(50));
	bound_is(f.q, NEVER_MS);
	o.within_ns = WQ_NEVER - START_NS; /* the least that is too far */
	IS(wq_add_with(f.q, "k", 1, &o), WQ_MOVED);
	bound_is(f.q, NEVER_MS);
	o.within_ns--;
	IS(wq_add_with(f.q, "k", 1, &o), WQ_MOVED);
	IS(add(f.q, NEVER_MS, 0, WQ_REPLACE), WQ_MOVED);
	IS(due_of(f.q), WQ_NEVER - 1);
	IS(wq_reschedule(f.q, "k", 1, at_ms(50)), WQ_MOVED);
	o.within_ns = 1;
	IS(wq_add_with(f.q, "k", 1, &o), WQ_MOVED);
	IS(due_of(f.q), START_NS + 1);
	fixture_close(&f, 1);
}

static void WITHIN_bad_arguments(void **state)
{
	const wq_add_options bad[] = {
	    {.after_ns = MS, .within_ns = -1},
	    {.after_ns = MS, .within_ns = INT64_MIN},
	    {.within_ns = -1},
	    {.at_ns = 1, .within_ns = -1},
	    {.after_ns = MS, .within_ns = 1, .policy = WQ_REMIND},
	    {.within_ns = 1, .policy = WQ_REMIND},
	    {.within_ns = 1, .limited = 1},
	    {.after_ns = MS, .within_ns = 1, .reserved = {1}},
	};
	const wq_add_options good[] = {
	    {.after_ns = MS, .within_ns = 1},
	    {.within_ns = 1},
	    {.after_ns = MS, .within_ns = WQ_NEVER},
	};
	struct fixture f;
	wq_queue *none = NULL;

	(void)state;
	for (uint32_t within = 2; within != 0; within <<= 1)
		IS(wq_new(&none, &(wq_options){.within = within}), WQ_EINVAL);
	assert_null(none);
	for (uint32_t within = 0; within < 2; within++) {
		fixture_open(&f, &(wq_options){.within = within});
		for (size_t i = 0; i < LENGTH(bad); i++)
			IS(wq_add_with(f.q, "k", 1, &bad[i]), WQ_EINVAL);
		/* Where it was not asked for there is no room for it. */
		for (size_t i = 0; i < LENGTH(good); i++)
			if (!within)
				IS(wq_add_with(f.q, "k", 1, &good[i]), WQ_EINVAL);
		IS(state_of(f.q, "k"), 0);
		check_whole(f.q, 0, 0);
		fixture_close(&f, 0);
	}
}

/* 8 bytes, behind whatever else is kept of a key, which it leaves alone. */
static int64_t bytes_of(const wq_options *options, int n)
{
	struct fixture f;
	int64_t bytes;

	fixture_open(&f, options);
	for (int i = 0; i < n; i++) {
		char key[16] = {0}; /* as long as is usual */

		memcpy(key, &i, sizeof i);
		IS(wq_add(f.q, key, sizeof key), WQ_QUEUED);
	}
	bytes = f.mem.bytes;
	fixture_close(&f, n);
	return bytes;
}

static void WITHIN_costs_8_bytes_a_key(void **state)
{
	enum { N = 1 << 19, BLOCK = 2 << 20 };
	int64_t more = bytes_of(&(wq_options){.seed = 1, .within = 1}, N) -
	               bytes_of(&(wq_options){.seed = 1}, N);

	(void)state;
	print_message("%.2f bytes more a key\n", (double)more / N);
	assert_true(more >= 8 * N - BLOCK && more <= 8 * N + BLOCK);
}

/* Beside a bucket of its own and a stint: each keeps what it has. */
static void WITHIN_beside_other_room(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.within = 1,
	                               .name = "q",
	                               .limiter = wq_limiter_bucket_per_key(1, 1)});
	hold(f.q, &it);
	wq_manual_clock_advance(f.mc, 10 * MS);
	IS(add(f.q, 100, 50, WQ_REPLACE), WQ_DELAYED);
	IS(wq_retry(f.q, &it), WQ_QUEUED); /* its one token */
	get_is(f.q, &it, "k");
	IS(add(f.q, 100, 50, WQ_REPLACE), WQ_DELAYED);
	IS(due_of(f.q), at_ms(60));
	IS(wq_add_limited(f.q, "k", 1), WQ_KEPT); /* no token, for a second */
	wq_manual_clock_advance(f.mc, 5 * MS);
	IS(shown(f.q).running_ns, 5 * MS);
	IS(wq_done(f.q, &it), WQ_DELAYED);
	bound_is(f.q, 60);
	wq_manual_clock_advance(f.mc, 45 * MS);
	take_is(f.q, "k", WQ_OK);
	IS(wq_add_limited(f.q, "k", 1), WQ_DELAYED);
	fixture_close(&f, 1);
}

/* [WHOLE] No memory to move it sooner: it has its time still, and no bound. */
static void WITHIN_without_memory(void **state)
{
	enum { N = 20000 };
	struct fixture f;
	wq_add_options o = {.at_ns = WQ_NEVER, .policy = WQ_KEEP};
	int refused = 0;

	(void)state;
	open_within(&f);
	for (int i = 0; i < N; i++)
		IS(wq_add_with(f.q, &i, sizeof i, &o), WQ_DELAYED);
	IS(add(f.q, NEVER_MS, 0, WQ_MIN), WQ_DELAYED);
	f.mem.fail_at = f.mem.calls;
	f.mem.fail_on = true;
	for (int i = 0; i < N && refused == 0; i++) {
		o.within_ns = (1 + i) * MS;

		int rc = wq_add_with(f.q, &i, sizeof i, &o);

		refused += rc == WQ_ENOMEM;
		if (rc != WQ_ENOMEM)
			IS(rc, WQ_MOVED);
	}
	IS(refused, 1);
	IS(add(f.q, NEVER_MS, 20, WQ_KEEP), WQ_ENOMEM);
	f.mem.fail_at = -1;
	f.mem.fail_on = false;
	IS(due_of(f.q), WQ_NEVER);
	IS(add(f.q, 50, 0, WQ_REPLACE), WQ_MOVED);
	bound_is(f.q, NEVER_MS);
	IS(add(f.q, NEVER_MS, 20, WQ_KEEP), WQ_MOVED);
	bound_is(f.q, 20);
	fixture_close(&f, N + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(WITHIN_policies),
	    cmocka_unit_test(WITHIN_from_each_state),
	    cmocka_unit_test(WITHIN_says_nothing_of_a_key_that_does_not_wait),
	    cmocka_unit_test(WITHIN_beside_a_reminder),
	    cmocka_unit_test(WITHIN_ends_with_the_wait),
	    cmocka_unit_test(WITHIN_ends_with_the_key),
	    cmocka_unit_test(WITHIN_and_retries),
	    cmocka_unit_test(WITHIN_and_limited_adds),
	    cmocka_unit_test(WITHIN_shutdown_and_drain),
	    cmocka_unit_test(WITHIN_debounce_without_end),
	    cmocka_unit_test(WITHIN_burst),
	    cmocka_unit_test(WITHIN_wakes_who_sleeps),
	    cmocka_unit_test(WITHIN_saturates),
	    cmocka_unit_test(WITHIN_bad_arguments),
	    cmocka_unit_test(WITHIN_costs_8_bytes_a_key),
	    cmocka_unit_test(WITHIN_beside_other_room),
	    cmocka_unit_test(WITHIN_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
