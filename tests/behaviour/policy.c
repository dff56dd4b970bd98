/*
 * D3 and D4 of the rules: what an add with a delay does to a copy that waits
 * already, for each policy, and reminders, cell by cell beside each state.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	RD = R | WQ_STATE_DIRTY,
	W = WQ_STATE_WAITING,
	L = WQ_STATE_LEFT
};

#define MS WQ_MILLISECOND

/* ---- D3, D4: policies -------------------------------------------------------- */

struct policy_case {
	const char *name;
	enum wq_policy policy;
	int64_t second_ms; /* after a first add with 50 */
	int answer;
	int64_t due_ms;
};

static const struct policy_case policy_cases[] = {
    {"MIN, earlier", WQ_MIN, 30, WQ_MOVED, 30},
    {"MIN, the same", WQ_MIN, 50, WQ_KEPT, 50},
    {"MIN, later", WQ_MIN, 70, WQ_KEPT, 50},
    {"MAX, earlier", WQ_MAX, 30, WQ_KEPT, 50},
    {"MAX, the same", WQ_MAX, 50, WQ_KEPT, 50},
    {"MAX, later", WQ_MAX, 70, WQ_MOVED, 70},
    {"REPLACE, earlier", WQ_REPLACE, 30, WQ_MOVED, 30},
    {"REPLACE, the same", WQ_REPLACE, 50, WQ_MOVED, 50},
    {"REPLACE, later", WQ_REPLACE, 70, WQ_MOVED, 70},
    {"KEEP, earlier", WQ_KEEP, 30, WQ_KEPT, 50},
    {"KEEP, the same", WQ_KEEP, 50, WQ_KEPT, 50},
    {"KEEP, later", WQ_KEEP, 70, WQ_KEPT, 50},
    {"REMIND, earlier", WQ_REMIND, 30, WQ_MOVED, 30},
    {"REMIND, the same", WQ_REMIND, 50, WQ_KEPT, 50},
    {"REMIND, later", WQ_REMIND, 70, WQ_KEPT, 50},
};

/* The copy that waits came with any policy of its kind; alone, and beside a hold. */
static void check_policy(void **state)
{
	const struct policy_case *c = *state;

	for (enum wq_policy first = WQ_MIN; first <= WQ_REMIND; first++)
		for (int held = 0; held < 2; held++) {
			struct fixture f;
			wq_item it;
			int bits = W | (held ? R : 0);

			if ((first == WQ_REMIND) != (c->policy == WQ_REMIND))
				continue;
			fixture_open(&f, NULL);
			if (held) {
				wq_add_str(f.q, "k");
				get_is(f.q, &it, "k");
			}
			IS(after(f.q, "k", 50 * MS, first), WQ_DELAYED);
			IS(after(f.q, "k", c->second_ms * MS, c->policy), c->answer);
			IS(count_keys(f.q), 1);
			wq_manual_clock_advance(f.mc, c->due_ms * MS - 1);
			IS(state_of(f.q, "k"), bits);
			wq_manual_clock_advance(f.mc, 1);
			IS(state_of(f.q, "k"), held ? RD : Q);
			if (held)
				IS(wq_done(f.q, &it), WQ_QUEUED);
			get_is(f.q, &it, "k");
			IS(it.added_ns, START_NS + c->due_ms * MS);
			IS(wq_done(f.q, &it), WQ_OK);
			wq_manual_clock_advance(f.mc, WQ_SECOND); /* once, not twice */
			check_whole(f.q, 0, 0);
			fixture_close(&f, 0);
		}
}

/* Whatever the policy: a key that is ready or dirty does not wait again. */
static void D4_no_add_makes_a_ready_key_wait(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_item it;

	for (enum wq_policy policy = WQ_MIN; policy <= WQ_KEEP; policy++) {
		wq_add_str(q, "k");
		IS(after(q, "k", MS, policy), WQ_MERGED);
		IS(state_of(q, "k"), Q);
		get_is(q, &it, "k");
		wq_add_str(q, "k");
		IS(after(q, "k", MS, policy), WQ_MERGED);
		IS(state_of(q, "k"), RD);
		IS(wq_done(q, &it), WQ_QUEUED);
		take_is(q, "k", WQ_OK);
		wq_manual_clock_advance(f->mc, WQ_SECOND);
		check_whole(q, 0, 0);
	}
}

/* ---- D4: a reminder beside its key --------------------------------------------- */

enum call { ADD, AFTER, REMIND, DUE, CANCEL, DONE, TAIL, SHUTDOWN };

struct cell {
	const char *name;
	enum call call;
	int beside; /* the state of the key beside which it waits; W: a copy that is no reminder */
	int answer;
	int after;
};

/* The reminder is due at 50 ms; AFTER and REMIND say 40 ms; the copy beside it (W) says 60 ms. */
static const struct cell cells[] = {
    {"reminder: add, alone", ADD, 0, WQ_QUEUED, Q | W},
    {"reminder: add, queued", ADD, Q, WQ_MERGED, Q | W},
    {"reminder: add, running", ADD, R, WQ_MARKED, RD | W},
    {"reminder: add, running and dirty", ADD, RD, WQ_MERGED, RD | W},
    {"reminder: add, waiting", ADD, W, WQ_QUEUED, Q | W},

    {"reminder: add_after, alone", AFTER, 0, WQ_DELAYED, W},
    {"reminder: add_after, queued", AFTER, Q, WQ_MERGED, Q | W},
    {"reminder: add_after, running", AFTER, R, WQ_DELAYED, R | W},
    {"reminder: add_after, running and dirty", AFTER, RD, WQ_MERGED, RD | W},
    {"reminder: add_after, waiting", AFTER, W, WQ_MOVED, W},

    {"reminder: remind, alone", REMIND, 0, WQ_MOVED, W},
    {"reminder: remind, queued", REMIND, Q, WQ_MOVED, Q | W},
    {"reminder: remind, running", REMIND, R, WQ_MOVED, R | W},
    {"reminder: remind, running and dirty", REMIND, RD, WQ_MOVED, RD | W},
    {"reminder: remind, waiting", REMIND, W, WQ_MOVED, W},

    {"reminder: comes due, alone", DUE, 0, WQ_OK, Q},
    {"reminder: comes due, queued", DUE, Q, WQ_OK, Q},
    {"reminder: comes due, running", DUE, R, WQ_OK, RD},
    {"reminder: comes due, running and dirty", DUE, RD, WQ_OK, RD},
    {"reminder: comes due, waiting", DUE, W, WQ_OK, Q},

    {"reminder: cancel, alone", CANCEL, 0, W, 0},
    {"reminder: cancel, queued", CANCEL, Q, Q | W, 0},
    {"reminder: cancel, running", CANCEL, R, R | W, R},
    {"reminder: cancel, running and dirty", CANCEL, RD, RD | W, R},
    {"reminder: cancel, waiting", CANCEL, W, W, 0},

    {"reminder: done, running", DONE, R, WQ_OK, W},
    {"reminder: done, running and dirty", DONE, RD, WQ_QUEUED, Q | W},
    {"reminder: requeue, running", TAIL, R, WQ_QUEUED, Q | W},
    {"reminder: requeue, running and dirty", TAIL, RD, WQ_QUEUED, Q | W},

    {"reminder: shutdown, alone", SHUTDOWN, 0, WQ_OK, L},
    {"reminder: shutdown, queued", SHUTDOWN, Q, WQ_OK, Q | L},
    {"reminder: shutdown, running", SHUTDOWN, R, WQ_OK, R | L},
    {"reminder: shutdown, running and dirty", SHUTDOWN, RD, WQ_OK, RD | L},
    {"reminder: shutdown, waiting", SHUTDOWN, W, WQ_OK, L},
};

static int make_call(struct fixture *f, enum call call, const wq_item *it)
{
	switch (call) {
	case ADD:
		return wq_add_str(f->q, "k");
	case AFTER:
		return wq_add_after(f->q, "k", 1, 40 * MS);
	case REMIND:
		return after(f->q, "k", 40 * MS, WQ_REMIND);
	case DUE:
		return wq_manual_clock_advance(f->mc, 50 * MS);
	case CANCEL:
		return cancel_key(f->q, "k", 1);
	case DONE:
		return wq_done(f->q, it);
	case TAIL:
		return wq_requeue(f->q, it, WQ_TAIL);
	case SHUTDOWN:
		return wq_shutdown(f->q);
	}
	return WQ_EINVAL;
}

/* The first part of a cell: the key in its state, the reminder beside it. */
static void set_up(struct fixture *f, const struct cell *c, bool reminder_first, wq_item *it)
{
	if (c->beside & R) {
		wq_add_str(f->q, "k");
		get_is(f->q, it, "k");
	}
	for (int i = 0; i < 2; i++) {
		if ((i == 0) == reminder_first)
			IS(after(f->q, "k", 50 * MS, WQ_REMIND), WQ_DELAYED);
		else if (c->beside == Q || c->beside == RD)
			IS(wq_add_str(f->q, "k"), c->beside == Q ? WQ_QUEUED : WQ_MARKED);
		else if (c->beside == W)
			IS(wq_add_after(f->q, "k", 1, 60 * MS), WQ_DELAYED);
	}
	IS(state_of(f->q, "k"), c->beside | W);
	IS(count_keys(f->q), 1); /* a walk shows them as one */
}

/* Everything that is owed for the key is handed out; how often, until nothing comes any more. */
static int hand_out(struct fixture *f)
{
	int times = 0;
	wq_item it;

	for (int i = 0; i < 2; i++) {
		while (wq_try_get(f->q, &it) == WQ_OK) {
			times++;
			IS(wq_done(f->q, &it), WQ_OK);
		}
		wq_manual_clock_advance(f->mc, WQ_SECOND);
	}
	return times;
}

static void check_reminder(void **state)
{
	const struct cell *c = *state;

	for (int reminder_first = 0; reminder_first < 2; reminder_first++) {
		struct fixture f;
		wq_item it = {0};

		fixture_open(&f, NULL);
		set_up(&f, c, reminder_first, &it);
		IS(make_call(&f, c->call, &it), c->answer);
		IS(state_of(f.q, "k"), c->after);
		IS(count_keys(f.q), c->after != 0);

		bool over = c->call == DONE || c->call == TAIL;

		/* The key's own copy of AFTER and the reminder are of one time: they merge then. */
		if (c->beside & R && !over) {
			int wanted = c->after & WQ_STATE_DIRTY          ? WQ_QUEUED
			             : c->call == AFTER && c->after & W ? WQ_DELAYED
			                                                : WQ_OK;

			IS(wq_done(f.q, &it), wanted);
		}

		bool ready = c->after & (Q | WQ_STATE_DIRTY);
		bool waits = c->after & W, left = c->after & L;

		/* AFTER at 40 ms, the reminder at 50 ms: both become ready within the second step */
		IS(hand_out(&f), ready + waits);
		if (left)
			IS(state_of(f.q, "k"), L); /* both copies, as one key */
		else
			check_whole(f.q, 0, 0);
		fixture_close(&f, left);
	}
}

static void D4_a_reminder_is_a_delivery_of_its_own(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	IS(after(q, "k", 10 * MS, WQ_REMIND), WQ_DELAYED);
	IS(wq_add_after(q, "k", 1, 20 * MS), WQ_DELAYED);
	IS(wq_next_deadline(q), START_NS + 10 * MS);
	wq_manual_clock_advance(f->mc, 10 * MS);
	/* When its time comes it is an add, which absorbs the copy that waits. */
	line_is(q, "k");
	wq_manual_clock_advance(f->mc, 10 * MS);
	line_is(q, "");

	/* The other way about: the copy fires, the reminder lives on. */
	IS(after(q, "k", 20 * MS, WQ_REMIND), WQ_DELAYED);
	IS(wq_add_after(q, "k", 1, 10 * MS), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10 * MS);
	IS(state_of(q, "k"), Q | W);
	line_is(q, "k");
	IS(state_of(q, "k"), W);
	wq_manual_clock_advance(f->mc, 10 * MS);
	line_is(q, "k");
	check_whole(q, 0, 0);
}

/*
 * One that never comes due, which no clock is looked at for, in a queue that has
 * nothing else special: it stays apart from its key, whichever of both is older.
 */
static void never_comes_due(wq_queue *q, bool beside_older)
{
	wq_item it;

	if (beside_older) {
		/* Its entry takes the place of one that was made before the key's. */
		IS(wq_add_str(q, "x"), WQ_QUEUED);
		IS(wq_add_str(q, "k"), WQ_QUEUED);
		get_is(q, &it, "x");
		IS(wq_done(q, &it), WQ_OK);
		IS(remind(q, "k", WQ_NEVER), WQ_DELAYED);
	} else {
		IS(remind(q, "k", WQ_NEVER), WQ_DELAYED);
		IS(wq_add_str(q, "k"), WQ_QUEUED);
	}
	IS(state_of(q, "k"), Q | W);
	IS(wq_add_str(q, "k"), WQ_MERGED);
	get_is(q, &it, "k");
	IS(state_of(q, "k"), R | W);
	IS(wq_add_str(q, "k"), WQ_MARKED);
	IS(state_of(q, "k"), RD | W);
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(state_of(q, "k"), Q | W);
	get_is(q, &it, "k");
	IS(wq_done(q, &it), WQ_OK);
	IS(state_of(q, "k"), W);
	IS(count_keys(q), 1);
	/* Its time comes after all: it is an add of the key. */
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	get_is(q, &it, "k");
	IS(wq_reschedule(q, "k", 1, 0), WQ_MOVED);
	IS(state_of(q, "k"), RD);
	IS(wq_done(q, &it), WQ_QUEUED);
	get_is(q, &it, "k");
	IS(wq_done(q, &it), WQ_OK);
	check_whole(q, 0, 0);
}

static void D4_a_reminder_that_never_comes_due(void **state)
{
	struct fixture *f = *state;

	for (int older = 0; older < 2; older++) {
		wq_queue *q;

		never_comes_due(f->q, older);
		IS(wq_new(&q, NULL), WQ_OK);
		never_comes_due(q, older);
		IS(wq_free(q), 0);
	}
}

int main(void)
{
	const struct CMUnitTest plain[] = {
	    WITH_FIXTURE(D4_a_reminder_that_never_comes_due),
	    WITH_FIXTURE(D4_no_add_makes_a_ready_key_wait),
	    WITH_FIXTURE(D4_a_reminder_is_a_delivery_of_its_own),
	};
	struct CMUnitTest tests[LENGTH(plain) + LENGTH(policy_cases) + LENGTH(cells)];
	size_t n = 0;

	for (size_t i = 0; i < LENGTH(plain); i++)
		tests[n++] = plain[i];
	for (size_t i = 0; i < LENGTH(policy_cases); i++)
		tests[n++] = (struct CMUnitTest){
		    .name = policy_cases[i].name,
		    .test_func = check_policy,
		    .initial_state = (void *)(uintptr_t)&policy_cases[i],
		};
	for (size_t i = 0; i < LENGTH(cells); i++)
		tests[n++] = (struct CMUnitTest){
		    .name = cells[i].name,
		    .test_func = check_reminder,
		    .initial_state = (void *)(uintptr_t)&cells[i],
		};
	return _cmocka_run_group_tests("policy", tests, n, NULL, NULL);
}
