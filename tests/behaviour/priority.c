/*
 * Priorities: the levels, the table of priority.h and the table of states of queue.h, each cell
 * with priorities; what is kept by the ends of a hold; reminders, policies, requeues.
 */
#include "rich_rig.h"

static const wq_options ranked = {.priorities = 1};

static struct fixture *open_ranked(void)
{
	static struct fixture one;

	fixture_open(&one, &ranked);
	return &one;
}

/* ---- levels ----------------------------------------------------------------- */

/* [LEVEL] [PRIORITY] The highest level goes first; inside a level the first that came. */
static void higher_is_sooner(void **state)
{
	struct fixture *f = open_ranked();

	(void)state;
	add_at(f->q, "a0", 0);
	add_at(f->q, "a5", 5);
	add_at(f->q, "low", WQ_PRIORITY_MIN);
	add_at(f->q, "b5", 5);
	add_at(f->q, "high", WQ_PRIORITY_MAX);
	IS(wq_add_str(f->q, "b0"), WQ_QUEUED); /* an add without one has 0 */
	add_at(f->q, "neg", -1);
	add_at(f->q, "c5", 5);
	IS(wq_len(f->q), 8);
	out_is(f->q, "high", WQ_PRIORITY_MAX);
	out_is(f->q, "a5", 5);
	add_at(f->q, "d5", 5);
	out_is(f->q, "b5", 5);
	out_is(f->q, "c5", 5);
	out_is(f->q, "d5", 5);
	out_is(f->q, "a0", 0);
	out_is(f->q, "b0", 0);
	out_is(f->q, "neg", -1);
	out_is(f->q, "low", WQ_PRIORITY_MIN);
	nothing_is_ready(f->q);
	fixture_close(f, 0);
}

/* [LEVEL] Of every level there is one key, added in an order that jumps about. */
static void every_level(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	for (unsigned i = 0; i < 65536; i++) {
		int32_t p = (int32_t)(i * 40503u % 65536u) + WQ_PRIORITY_MIN;

		IS(wq_add_with(f->q, &p, sizeof p, &(wq_add_options){.priority = p}), WQ_QUEUED);
	}
	for (int32_t p = WQ_PRIORITY_MAX; p >= WQ_PRIORITY_MIN; p--) {
		IS(wq_try_get(f->q, &it), WQ_OK);
		IS(it.priority, p);
		assert_memory_equal(it.key, &p, sizeof p);
		IS(wq_done(f->q, &it), WQ_OK);
	}
	fixture_close(f, 0);
}

/* [LEVEL] With every key in another order than those before it: cancels, and levels that empty. */
static void levels_come_and_go(void **state)
{
	struct fixture *f = open_ranked();
	char key[16];

	(void)state;
	for (int levels = 1; levels < 40; levels += 7) {
		for (int i = 0; i < levels * 3; i++) {
			snprintf(key, sizeof key, "%d", i);
			IS(add_at(f->q, key, i % levels - levels / 2), WQ_QUEUED);
		}
		for (int i = 0; i < levels * 3; i += 2) {
			snprintf(key, sizeof key, "%d", i);
			IS(wq_cancel(f->q, key, strlen(key), NULL), WQ_CANCELLED);
		}
		for (int l = levels - 1; l >= 0; l--)
			for (int i = l; i < levels * 3; i += levels) {
				snprintf(key, sizeof key, "%d", i);
				if (i % 2 == 1)
					out_is(f->q, key, l - levels / 2);
			}
		nothing_is_ready(f->q);
	}
	fixture_close(f, 0);
}

/* ---- the tables ---------------------------------------------------------------- */

/* The states in which a call finds the key. What is held has priority 5. */
enum start { ABSENT, WAITING, QUEUED, RUNNING, DIRTY, HELD_WAITING, STARTS };

enum call {
	ADD,
	AFTER,
	LIMITED,
	DUE,
	CANCEL,
	DONE,
	TAIL,
	HEAD,
	RETRY,
	RETRY_AFTER,
	AGAIN,
	AGAIN_LATER,
	SHUTDOWN
};

/* GONE: it is not handed out again; a new add has the priority that it gives. */
enum { GONE = 99999 };

struct cell {
	enum call call;
	int copy;           /* the priority of the copy that is there */
	int given;          /* by the call */
	int answer[STARTS]; /* < -1000: the cell is empty */
	int then[STARTS];   /* the priority with which it is handed out at last */
};

enum { NO = -9999 };

static const struct cell cells[] = {
    /* add: absent, waiting, queued, running, dirty, held with a waiting copy */
    {ADD,
     3,
     4,
     {WQ_QUEUED, WQ_QUEUED, WQ_MERGED, WQ_MARKED, WQ_MERGED, WQ_MARKED},
     {4, 4, 4, 4, 4, 4}},
    {ADD,
     3,
     3,
     {WQ_QUEUED, WQ_QUEUED, WQ_MERGED, WQ_MARKED, WQ_MERGED, WQ_MARKED},
     {3, 3, 3, 3, 3, 3}},
    {ADD,
     3,
     -2,
     {WQ_QUEUED, WQ_QUEUED, WQ_MERGED, WQ_MARKED, WQ_MERGED, WQ_MARKED},
     {-2, 3, 3, -2, 3, 3}},
    {AFTER,
     3,
     4,
     {WQ_DELAYED, WQ_MOVED, WQ_MERGED, WQ_DELAYED, WQ_MERGED, WQ_MOVED},
     {4, 4, 4, 4, 4, 4}},
    {AFTER,
     3,
     2,
     {WQ_DELAYED, WQ_MOVED, WQ_MERGED, WQ_DELAYED, WQ_MERGED, WQ_MOVED},
     {2, 3, 3, 2, 3, 3}},
    {LIMITED,
     3,
     4,
     {WQ_DELAYED, WQ_MOVED, WQ_MERGED, WQ_DELAYED, WQ_MERGED, WQ_MOVED},
     {4, 4, 4, 4, 4, 4}},
    {LIMITED,
     3,
     -4,
     {WQ_DELAYED, WQ_MOVED, WQ_MERGED, WQ_DELAYED, WQ_MERGED, WQ_MOVED},
     {-4, 3, 3, -4, 3, 3}},
    {DUE, 3, 0, {NO, 0, NO, NO, NO, 0}, {0, 3, 0, 0, 0, 3}},
    {DUE, 7, 0, {NO, 0, NO, NO, NO, 0}, {0, 7, 0, 0, 0, 7}},
    {CANCEL,
     3,
     0,
     {WQ_ENOTFOUND, WQ_CANCELLED, WQ_CANCELLED, WQ_CANCELLED, WQ_CANCELLED, WQ_CANCELLED},
     {GONE, GONE, GONE, GONE, GONE, GONE}},
    /* Done ends it; what came since the get has its own. */
    {DONE, 3, 0, {NO, NO, NO, WQ_OK, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, GONE, 3, 3}},
    {DONE, 7, 0, {NO, NO, NO, WQ_OK, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, GONE, 7, 7}},
    /* [KEPT] The others keep that of the hold, unless there is a higher one. */
    {TAIL, 3, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 5, 5}},
    {TAIL, 7, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 7, 7}},
    {HEAD, 3, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 5, 5}},
    {HEAD, 7, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 7, 7}},
    {RETRY, 3, 0, {NO, NO, NO, WQ_DELAYED, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, 5, 5, 5}},
    {RETRY, 7, 0, {NO, NO, NO, WQ_DELAYED, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, 5, 7, 7}},
    {RETRY_AFTER, 3, 0, {NO, NO, NO, WQ_DELAYED, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, 5, 5, 5}},
    {AGAIN, 3, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 5, 5}},
    {AGAIN, 7, 0, {NO, NO, NO, WQ_QUEUED, WQ_QUEUED, WQ_QUEUED}, {0, 0, 0, 5, 7, 7}},
    {AGAIN_LATER, 3, 0, {NO, NO, NO, WQ_DELAYED, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, 5, 5, 5}},
    {AGAIN_LATER, 7, 0, {NO, NO, NO, WQ_DELAYED, WQ_QUEUED, WQ_DELAYED}, {0, 0, 0, 5, 7, 7}},
    {SHUTDOWN, 3, 0, {WQ_OK, WQ_OK, WQ_OK, WQ_OK, WQ_OK, WQ_OK}, {GONE, GONE, 3, GONE, 3, GONE}},
};

/* True: it is held. */
static bool bring_about(struct fixture *f, enum start start, int copy, wq_item *it)
{
	bool held = start == RUNNING || start == DIRTY || start == HELD_WAITING;

	if (held) {
		IS(add_at(f->q, "k", 5), WQ_QUEUED);
		hold_is(f->q, it, "k", 5, NULL);
	}
	if (start == QUEUED || start == DIRTY)
		assert_true(add_at(f->q, "k", copy) > 0);
	if (start == WAITING || start == HELD_WAITING)
		IS(add_full(f->q, "k", copy, NULL, 50 * MS), WQ_DELAYED);
	return held;
}

static int make_call(struct fixture *f, const struct cell *c, wq_item *it, bool *held)
{
	wq_add_options limited = {.limited = 1, .priority = c->given};

	*held = *held && (c->call < DONE || c->call == SHUTDOWN);
	switch (c->call) {
	case ADD:
		return add_at(f->q, "k", c->given);
	case AFTER:
		return add_full(f->q, "k", c->given, NULL, 40 * MS);
	case LIMITED:
		return wq_add_with(f->q, "k", 1, &limited);
	case DUE:
		return wq_manual_clock_advance(f->mc, 50 * MS) < 0;
	case CANCEL:
		return wq_cancel(f->q, "k", 1, NULL);
	case DONE:
		return wq_done(f->q, it);
	case TAIL:
		return wq_requeue(f->q, it, WQ_TAIL);
	case HEAD:
		return wq_requeue(f->q, it, WQ_HEAD);
	case RETRY:
		return wq_retry(f->q, it);
	case RETRY_AFTER:
		return wq_settle(f->q, it, wq_retry_after(10 * MS));
	case AGAIN:
		return wq_settle(f->q, it, wq_again_after(0));
	case AGAIN_LATER:
		return wq_settle(f->q, it, wq_again_after(10 * MS));
	case SHUTDOWN:
		return wq_shutdown(f->q);
	}
	return NO;
}

static void check_cell(const struct cell *c, enum start start)
{
	struct fixture *f = open_ranked();
	wq_item it;
	bool held = bring_about(f, start, c->copy, &it);
	struct shown before = look(f->q, "k");

	IS(make_call(f, c, &it, &held), c->answer[start]);
	if (c->call == CANCEL && start != ABSENT)
		IS(before.priority, start == RUNNING ? 5 : c->copy);
	if (c->then[start] != GONE)
		IS(look(f->q, "k").priority, c->then[start]);
	if (held)
		assert_true(wq_done(f->q, &it) >= 0);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	if (c->then[start] != GONE) {
		if (c->call != SHUTDOWN) {
			/* It is on that very level. */
			add_at(f->q, "above", c->then[start] + 1);
			add_at(f->q, "below", c->then[start] - 1);
			out_is(f->q, "above", c->then[start] + 1);
		}
		out_is(f->q, "k", c->then[start]);
		if (c->call != SHUTDOWN)
			out_is(f->q, "below", c->then[start] - 1);
	}
	nothing_is_ready(f->q);
	if (c->call != SHUTDOWN) {
		/* [KEPT] The next add begins anew. */
		add_at(f->q, "k", -30);
		out_is(f->q, "k", -30);
	}
	fixture_close(f, -1);
}

static void the_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(cells); i++)
		for (enum start s = ABSENT; s < STARTS; s++)
			if (cells[i].answer[s] != NO)
				check_cell(&cells[i], s);
}

/* Each policy moves the time by its own rule, and all raise. */
static void policies_raise(void **state)
{
	static const struct {
		enum wq_policy policy;
		int64_t after, due;
		int answer;
	} p[] = {{WQ_MIN, 30, 30, WQ_MOVED},     {WQ_MIN, 70, 50, WQ_KEPT},
	         {WQ_MAX, 70, 70, WQ_MOVED},     {WQ_MAX, 30, 50, WQ_KEPT},
	         {WQ_REPLACE, 70, 70, WQ_MOVED}, {WQ_KEEP, 30, 50, WQ_KEPT}};

	(void)state;
	for (size_t i = 0; i < LENGTH(p); i++)
		for (int given = 1; given < 6; given += 2) {
			struct fixture *f = open_ranked();
			wq_add_options o = {.after_ns = p[i].after * MS,
			                    .policy = p[i].policy,
			                    .priority = given};
			int then = given > 3 ? given : 3;

			add_full(f->q, "k", 3, NULL, 50 * MS);
			IS(wq_add_with(f->q, "k", 1, &o), p[i].answer);
			IS(look(f->q, "k").priority, then);
			IS(look(f->q, "k").due_ns, START_NS + p[i].due * MS);
			wq_manual_clock_advance(f->mc, p[i].due * MS);
			out_is(f->q, "k", then);
			fixture_close(f, 0);
		}
}

/* ---- places ------------------------------------------------------------------------ */

/* [LEVEL] A key that is raised goes to the tail of its new level; lowered, it stays. */
static void raised_to_the_tail(void **state)
{
	struct fixture *f = open_ranked();

	(void)state;
	add_at(f->q, "a", 1);
	add_at(f->q, "b", 2);
	add_at(f->q, "c", 2);
	add_at(f->q, "d", 1);
	IS(add_at(f->q, "a", 2), WQ_MERGED);
	IS(add_at(f->q, "b", 2), WQ_MERGED); /* the same: it stays where it is */
	IS(add_at(f->q, "b", -5), WQ_MERGED);
	IS(add_full(f->q, "d", 0, NULL, MS), WQ_MERGED);
	add_at(f->q, "e", 2);
	keys_are(f->q, "b c a e d");
	fixture_close(f, 0);
}

/* [LEVEL] Keys that come due enter their levels by their due times. */
static void due_into_levels(void **state)
{
	struct fixture *f = open_ranked();

	(void)state;
	add_full(f->q, "late1", 1, NULL, 30 * MS);
	add_full(f->q, "soon1", 1, NULL, 10 * MS);
	add_full(f->q, "late2", 2, NULL, 40 * MS);
	add_full(f->q, "mid1", 1, NULL, 20 * MS);
	add_full(f->q, "raised", 0, NULL, 25 * MS);
	add_full(f->q, "raised", 1, NULL, 60 * MS);
	wq_manual_clock_advance(f->mc, 35 * MS);
	add_at(f->q, "now1", 1); /* what is due stands before it */
	keys_are(f->q, "soon1 mid1 raised late1 now1");
	wq_manual_clock_advance(f->mc, 5 * MS);
	out_is(f->q, "late2", 2);
	fixture_close(f, 0);
}

/* [LEVEL] A due key goes before one of a lower level that is ready, without anybody looking. */
static void due_before_lower(void **state)
{
	struct fixture *f = open_ranked();
	wq_item items[4];

	(void)state;
	add_at(f->q, "low", -1);
	add_full(f->q, "high", 1, NULL, MS);
	wq_manual_clock_advance(f->mc, MS);
	IS(wq_get_many_until(f->q, items, 4, WQ_NOWAIT), 2);
	assert_string_equal(items[0].key, "high");
	assert_string_equal(items[1].key, "low");
	IS(wq_done_many(f->q, items, 2, NULL), 2);
	fixture_close(f, 0);
}

/* [KEPT] To the head or tail of the level, not of the line. */
static void requeued_in_its_level(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	add_at(f->q, "a", 1);
	add_at(f->q, "b", 1);
	add_at(f->q, "c", 1);
	add_at(f->q, "low", 0);
	hold_is(f->q, &it, "a", 1, NULL);
	add_at(f->q, "top", 2);
	IS(wq_requeue(f->q, &it, WQ_HEAD), WQ_QUEUED);
	out_is(f->q, "top", 2);
	hold_is(f->q, &it, "a", 1, NULL);
	IS(wq_requeue(f->q, &it, WQ_TAIL), WQ_QUEUED);
	keys_are(f->q, "b c a low");
	/* twice to the head */
	add_at(f->q, "a", 1);
	add_at(f->q, "b", 1);
	for (int i = 0; i < 3; i++) {
		hold_is(f->q, &it, "a", 1, NULL);
		IS(wq_requeue(f->q, &it, WQ_HEAD), WQ_QUEUED);
	}
	keys_are(f->q, "a b");
	fixture_close(f, 0);
}

/*
 * A waiting key that is added takes the place of the add that made it wait, however far from the
 * tail, as in controller-runtime: unless it is raised.
 */
static void absorbed_by_its_first_add(void **state)
{
	struct fixture *f = open_ranked();
	char key[16];

	(void)state;
	for (int beside = 0; beside < 2; beside++) {
		add_full(f->q, "old", 1, NULL, WQ_SECOND);
		add_full(f->q, "up", 0, NULL, WQ_SECOND);
		if (beside)
			add_remind(f->q, "old", 1, NULL, WQ_NEVER);
		for (int i = 0; i < 60; i++) {
			snprintf(key, sizeof key, "%d", i);
			add_at(f->q, key, 1);
		}
		IS(add_at(f->q, "old", 1), WQ_QUEUED);
		IS(add_at(f->q, "up", 1), WQ_QUEUED);
		out_is(f->q, "old", 1);
		for (int i = 0; i < 60; i++) {
			snprintf(key, sizeof key, "%d", i);
			out_is(f->q, key, 1);
		}
		out_is(f->q, "up", 1);
		nothing_is_ready(f->q);
	}
	IS(wq_cancel(f->q, "old", 3, NULL), WQ_CANCELLED);
	fixture_close(f, 0);
}

/* The same with many of them, which are cancelled, raised and got in any order. */
static void absorbed_in_any_order(void **state)
{
	struct fixture *f = open_ranked();
	char key[16];

	(void)state;
	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "%d", i);
		if (i % 3 == 0)
			add_full(f->q, key, i % 2, NULL, WQ_SECOND);
		else
			add_at(f->q, key, i % 2);
	}
	for (int i = 297; i >= 0; i -= 3) {
		snprintf(key, sizeof key, "%d", i);
		IS(add_at(f->q, key, -9), WQ_QUEUED);
	}
	for (int i = 0; i < 300; i += 30) {
		snprintf(key, sizeof key, "%d", i);
		IS(wq_cancel(f->q, key, strlen(key), NULL), WQ_CANCELLED);
	}
	for (int i = 3; i < 300; i += 30) {
		snprintf(key, sizeof key, "%d", i);
		IS(add_at(f->q, key, 7), WQ_MERGED);
	}
	for (int i = 3; i < 300; i += 30) {
		snprintf(key, sizeof key, "%d", i);
		out_is(f->q, key, 7);
	}
	for (int level = 1; level >= 0; level--)
		for (int i = level; i < 300; i += 2) {
			snprintf(key, sizeof key, "%d", i);
			if (i % 30 != 0 && i % 30 != 3)
				out_is(f->q, key, level);
		}
	nothing_is_ready(f->q);
	fixture_close(f, 0);
}

/* ---- reminders ------------------------------------------------------------------------ */

/* A reminder has its own priority; if it comes due beside its key, the higher counts. */
static void reminders(void **state)
{
	static const struct {
		enum start beside;
		int copy, given, then;
	} r[] = {
	    {ABSENT, 0, 4, 4},
	    {WAITING, 3, 4, 4},
	    {WAITING, 6, 4, 6},
	    {QUEUED, 3, 4, 4},
	    {QUEUED, 6, 4, 6},
	    /* [KEPT] that of the hold is 5 */
	    {RUNNING, 0, 4, 5},
	    {RUNNING, 0, 6, 6},
	    {DIRTY, 3, 4, 5},
	    {DIRTY, 8, 6, 8},
	    {DIRTY, 3, 6, 6},
	    {HELD_WAITING, 3, 4, 5},
	    {HELD_WAITING, 3, 9, 9},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(r); i++) {
		struct fixture *f = open_ranked();
		wq_item it;
		bool held = bring_about(f, r[i].beside, r[i].copy, &it);

		IS(add_remind(f->q, "k", r[i].given, NULL, 20 * MS), WQ_DELAYED);
		wq_manual_clock_advance(f->mc, 20 * MS);
		IS(look(f->q, "k").priority, r[i].then);
		if (held)
			IS(wq_done(f->q, &it), WQ_QUEUED);
		out_is(f->q, "k", r[i].then);
		nothing_is_ready(f->q);
		fixture_close(f, 0);
	}
}

/* A reminder that waits on after the key is done has the priority that it was given. */
static void a_reminder_that_stays(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	add_at(f->q, "k", 5);
	IS(add_remind(f->q, "k", 2, NULL, 20 * MS), WQ_DELAYED);
	IS(add_remind(f->q, "k", 3, NULL, 30 * MS), WQ_KEPT); /* raised */
	IS(add_remind(f->q, "k", 1, NULL, 30 * MS), WQ_KEPT);
	hold_is(f->q, &it, "k", 5, NULL);
	IS(wq_done(f->q, &it), WQ_OK);
	IS(look(f->q, "k").priority, 3);
	wq_manual_clock_advance(f->mc, 20 * MS);
	out_is(f->q, "k", 3);
	fixture_close(f, 0);
}

/* ---- shutdown, drains, failures ---------------------------------------------------------- */

/* A drain that runs what waits does so level by level. */
static void drained_by_level(void **state)
{
	struct fixture *f = open_ranked();
	wq_drain_options o = {.mode = WQ_DRAIN_RUN};
	wq_report report;

	(void)state;
	add_full(f->q, "w1", 1, NULL, WQ_SECOND);
	add_full(f->q, "w2", 2, NULL, 2 * WQ_SECOND);
	add_at(f->q, "q0", 0);
	add_full(f->q, "x1", 1, NULL, WQ_SECOND / 2);
	IS(wq_drain_until(f->q, 0, &o, &report), WQ_ETIMEDOUT);
	IS((int64_t)report.queued, 4);
	keys_are(f->q, "w2 x1 w1 q0");
	IS(wq_drain_until(f->q, 0, &o, NULL), WQ_OK);
	fixture_close(f, 0);
}

static void retried_in_a_drain(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	add_at(f->q, "k", 5);
	hold_is(f->q, &it, "k", 5, NULL);
	IS(wq_drain_until(f->q, 0, &(wq_drain_options){.mode = WQ_DRAIN_RUN}, NULL), WQ_ETIMEDOUT);
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	hold_is(f->q, &it, "k", 5, NULL);
	IS(wq_retry(f->q, &it), WQ_LEFT);
	IS(look(f->q, "k").priority, 5);
	IS(look(f->q, "k").state, L | WQ_STATE_RETRYING);
	fixture_close(f, 1);
}

/* A key that is only remembered for its failures begins anew. */
static void remembered_keys_begin_anew(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	add_at(f->q, "k", 5);
	hold_is(f->q, &it, "k", 5, NULL);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(wq_cancel(f->q, "k", 1, NULL), WQ_CANCELLED);
	IS(wq_failures(f->q, "k", 1), 1);
	add_at(f->q, "k", -2);
	hold_is(f->q, &it, "k", -2, NULL);
	IS(it.attempts, 2);
	IS(wq_done(f->q, &it), WQ_OK);
	IS(add_full(f->q, "k", -4, NULL, MS), WQ_DELAYED);
	IS(look(f->q, "k").priority, -4);
	IS(wq_cancel(f->q, "k", 1, NULL), WQ_CANCELLED);
	IS(add_remind(f->q, "k", -6, NULL, MS), WQ_DELAYED);
	IS(look(f->q, "k").priority, -6);
	wq_manual_clock_advance(f->mc, MS);
	out_is(f->q, "k", -6);
	fixture_close(f, 0);
}

static void the_hold_of_a_cancelled_key(void **state)
{
	struct fixture *f = open_ranked();
	wq_item it;

	(void)state;
	add_at(f->q, "k", 5);
	hold_is(f->q, &it, "k", 5, NULL);
	add_at(f->q, "k", 9);
	IS(wq_cancel(f->q, "k", 1, NULL), WQ_CANCELLED);
	IS(look(f->q, "k").priority, 5);
	add_at(f->q, "k", 1);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	out_is(f->q, "k", 1);
	fixture_close(f, 0);
}

/* [BOUND] A raise of a key that is there needs no room. */
static void raises_in_a_full_queue(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.priorities = 1, .max_keys = 2});
	add_at(f.q, "a", 1);
	add_at(f.q, "b", 0);
	IS(add_at(f.q, "c", 9), WQ_EFULL);
	IS(wq_state(f.q, "c", 1), 0);
	IS(add_at(f.q, "b", 2), WQ_MERGED);
	keys_are(f.q, "b a");
	fixture_close(&f, 0);
}

/* ---- many, pools, looking --------------------------------------------------------------- */

static void calls_on_many(void **state)
{
	struct fixture *f = open_ranked();
	wq_key keys[] = {{"m1", 2}, {"a", 1}, {"m2", 2}};
	wq_item items[8];
	int settled;

	(void)state;
	add_at(f->q, "a", 3);
	IS(wq_add_many(f->q, keys, 3, NULL), 3); /* "a" stays on its level */
	add_at(f->q, "z", 1);
	add_at(f->q, "y", -1);
	IS(wq_get_many_until(f->q, items, 2, WQ_NOWAIT), 2);
	assert_string_equal(items[0].key, "a");
	assert_string_equal(items[1].key, "z");
	IS(wq_next_many_until(f->q, items, 2, 2, WQ_NOWAIT), 2);
	assert_string_equal(items[0].key, "m1");
	assert_string_equal(items[1].key, "m2");
	IS(wq_next_until(f->q, &items[0], WQ_NOWAIT), WQ_OK);
	assert_string_equal(items[0].key, "y");
	IS(items[0].priority, -1);
	add_at(f->q, "n", 4);
	IS(wq_settle_next_until(f->q, &items[0], wq_again_after(0), WQ_NOWAIT, &settled), WQ_OK);
	IS(settled, WQ_QUEUED);
	assert_string_equal(items[0].key, "n");
	IS(wq_done(f->q, &items[0]), WQ_OK);
	IS(wq_done(f->q, &items[1]), WQ_OK);
	out_is(f->q, "y", -1);
	fixture_close(f, 0);
}

static void counted_by_level(void **state)
{
	struct fixture *f = open_ranked();
	char key[16];
	wq_snapshot s = snapshot(f->q);

	(void)state;
	IS(s.nlevels, 0);
	IS((int64_t)s.queued_lower, 0);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "%d", i);
		add_at(f->q, key, i % 20 * 1000 - 10000);
	}
	add_full(f->q, "waits", 32000, NULL, WQ_SECOND);
	s = snapshot(f->q);
	IS(s.nlevels, WQ_LEVELS);
	for (int i = 0; i < WQ_LEVELS; i++) {
		IS(s.level[i].priority, 9000 - 1000 * i);
		IS((int64_t)s.level[i].queued, 5);
	}
	IS((int64_t)s.queued_lower, 20);
	assert_string_equal(s.oldest_queued.key, "19");
	IS((int64_t)s.blocked, 0);
	IS((int64_t)s.groups, 0);
	IS(s.nbusiest, 0);
	add_at(f->q, "0", 500);
	s = snapshot(f->q);
	IS(s.level[9].priority, 500);
	IS((int64_t)s.level[9].queued, 1);
	IS((int64_t)s.queued_lower, 24);
	fixture_close(f, 101);
}

/* What a queue without priorities shows. */
static void without_priorities(void **state)
{
	struct fixture *f = *state;
	wq_snapshot s;

	wq_add_str(f->q, "k");
	IS(add_at(f->q, "k", 1), WQ_EINVAL);
	s = snapshot(f->q);
	IS(s.nlevels, 0);
	IS((int64_t)s.queued_lower, 0);
	IS(look(f->q, "k").priority, 0);
	take_is(f->q, "k", WQ_OK);
}

struct worker {
	char order[64];
	size_t n;
};

static wq_verdict note(void *ctx, const wq_item *item)
{
	struct worker *w = ctx;

	w->order[w->n++] = *(const char *)item->key;
	IS(item->priority, *(const char *)item->key - 'a');
	return WQ_DONE;
}

static void a_pool_takes_the_highest(void **state)
{
	struct fixture *f = open_ranked();
	struct worker w = {.n = 0};
	wq_pool *p = NULL;

	(void)state;
	for (const char *k = "cadb"; *k; k++)
		add_at(f->q, (char[]){*k, '\0'}, *k - 'a');
	IS(wq_pool_start(&p, f->q, &(wq_pool_options){.workers = 1, .handler = note, .ctx = &w}),
	   WQ_OK);
	IS(wq_wait_idle_until(f->q, WQ_NEVER), WQ_OK);
	IS(wq_pool_stop_until(p, WQ_NEVER), WQ_OK);
	IS(wq_pool_free(p), WQ_OK);
	assert_string_equal(w.order, "dcba");
	fixture_close(f, 0);
}

/* Time stands still for the thread that made it, and an hour passes before others look again. */
struct leap {
	pthread_t maker;
	_Atomic int64_t now_ns;
	_Atomic bool on;
};

static int64_t leap_now(void *ctx)
{
	struct leap *l = ctx;

	if (l->on && !pthread_equal(pthread_self(), l->maker))
		l->now_ns = WQ_HOUR;
	return l->now_ns;
}

/* A get is woken by an add. What has come due until it looks goes first, if it is higher. */
static void due_while_it_woke(void **state)
{
	struct leap leap = {.maker = pthread_self()};
	wq_clock clock = {.now = leap_now, .ctx = &leap};
	struct getter g;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.priorities = 1, .clock = &clock, .spin_ns = WQ_SPIN_NEVER}),
	   WQ_OK);
	IS(add_full(q, "high", 1, NULL, WQ_HOUR), WQ_DELAYED);
	getter_block(&g, q, WQ_NEVER);
	leap.on = true;
	IS(add_at(q, "low", 0), WQ_QUEUED);
	IS(getter_join(&g), WQ_OK);
	assert_string_equal(g.item.key, "high");
	IS(wq_done(q, &g.item), WQ_OK);
	keys_are(q, "low");
	IS(wq_free(q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(higher_is_sooner),
	    cmocka_unit_test(every_level),
	    cmocka_unit_test(levels_come_and_go),
	    cmocka_unit_test(the_tables),
	    cmocka_unit_test(policies_raise),
	    cmocka_unit_test(raised_to_the_tail),
	    cmocka_unit_test(due_into_levels),
	    cmocka_unit_test(due_before_lower),
	    cmocka_unit_test(requeued_in_its_level),
	    cmocka_unit_test(absorbed_by_its_first_add),
	    cmocka_unit_test(absorbed_in_any_order),
	    cmocka_unit_test(reminders),
	    cmocka_unit_test(a_reminder_that_stays),
	    cmocka_unit_test(drained_by_level),
	    cmocka_unit_test(retried_in_a_drain),
	    cmocka_unit_test(remembered_keys_begin_anew),
	    cmocka_unit_test(the_hold_of_a_cancelled_key),
	    cmocka_unit_test(raises_in_a_full_queue),
	    cmocka_unit_test(calls_on_many),
	    cmocka_unit_test(counted_by_level),
	    WITH_FIXTURE(without_priorities),
	    cmocka_unit_test(a_pool_takes_the_highest),
	    cmocka_unit_test(due_while_it_woke),
	};

	return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
