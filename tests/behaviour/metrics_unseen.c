/*
 * Nobody looks between the steps: what is counted does not depend on who looks, and a
 * hold of the lock asks for the time once.
 */
#include "../support/cancel.h"
#include "metrics_rig.h"

static void forward(struct meter_rig *r, int64_t ns)
{
	IS(wq_manual_clock_advance(r->f.mc, ns), WQ_OK);
}

/* ---- reminders ------------------------------------------------------------- */

/* A key in line with a reminder that is due, and the item to hand back. */
static void due_reminder(struct meter_rig *r, wq_item *held)
{
	meter_open(r, NULL);
	IS(wq_add_str(r->f.q, "held"), WQ_QUEUED);
	get_is(r->f.q, held, "held");
	IS(wq_add_str(r->f.q, "a"), WQ_QUEUED);
	IS(remind(r->f.q, "a", 5), WQ_DELAYED);
	forward(r, 12);
}

static int by_get(wq_queue *q, wq_item *it)
{
	wq_item held = *it;
	int rc = wq_try_get(q, it);

	IS(wq_done(q, &held), WQ_OK);
	return rc;
}

static int by_get_many(wq_queue *q, wq_item *it)
{
	wq_item held = *it;
	int rc = wq_get_many_until(q, it, 1, WQ_NOWAIT);

	IS(wq_done(q, &held), WQ_OK);
	return rc - 1;
}

static int by_next(wq_queue *q, wq_item *it)
{
	return wq_next_until(q, it, WQ_NOWAIT);
}

static int by_next_many(wq_queue *q, wq_item *it)
{
	return wq_next_many_until(q, it, 1, 1, WQ_NOWAIT) - 1;
}

static int by_settle_next(wq_queue *q, wq_item *it)
{
	int settled;

	return wq_settle_next_until(q, it, WQ_DONE, WQ_NOWAIT, &settled);
}

static int (*const ways_to_get[])(wq_queue *, wq_item *) = {by_get, by_get_many, by_next,
                                                            by_next_many, by_settle_next};

/* It merges with its key, and was so late, whether or not somebody looked before. */
static void a_reminder_that_is_due_when_its_key_is_got(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(ways_to_get); i++)
		for (int looked = 0; looked < 2; looked++) {
			struct meter_rig r;
			wq_snapshot s;
			wq_item it;

			due_reminder(&r, &it);
			if (looked)
				look(r.f.q);
			IS(ways_to_get[i](r.f.q, &it), WQ_OK);
			assert_string_equal(it.key, "a");
			s = look(r.f.q);
			IS((int64_t)s.merged, 1);
			IS((int64_t)s.adds, 2);
			IS((int64_t)s.retries, 1);
			IS((int64_t)total(s.late), 1);
			IS((int64_t)s.late.sum_ns, 7);
			IS((int64_t)s.waiting, 0);
			IS(wq_done(r.f.q, &it), WQ_OK);
			meter_close(&r);
		}
}

/* A drain that runs what waits makes it come early: that is not late. */
static void a_reminder_that_a_drain_brings(void **state)
{
	wq_drain_options o = {.mode = WQ_DRAIN_RUN};
	struct meter_rig r;
	wq_snapshot s;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	IS(remind(r.f.q, "a", 5), WQ_DELAYED);
	IS(wq_drain_until(r.f.q, 0, &o, NULL), WQ_ETIMEDOUT);
	s = look(r.f.q);
	IS((int64_t)s.merged, 1);
	IS((int64_t)total(s.late), 1);
	IS((int64_t)s.late.sum_ns, 0);
	meter_close(&r);
}

/* One that is not due yet stays. */
static void a_reminder_of_later(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	IS(remind(r.f.q, "a", 5), WQ_DELAYED);
	forward(&r, 4);
	get_is(r.f.q, &it, "a");
	IS((int64_t)look(r.f.q).merged, 0);
	IS((int64_t)total(look(r.f.q).late), 0);
	IS((int64_t)look(r.f.q).waiting, 1);
	IS(wq_done(r.f.q, &it), WQ_OK);
	meter_close(&r);
}

/* ---- lateness -------------------------------------------------------------- */

/* With a backlog a delayed key enters the line when the next key is got. */
static void lateness_is_known_by_gets(void **state)
{
	enum { KEYS = 100, STEP_NS = 100 };

	(void)state;
	for (size_t i = 0; i < LENGTH(ways_to_get); i++) {
		struct meter_rig r;
		wq_snapshot s;
		wq_item it;

		meter_open(&r, NULL);
		for (int k = 0; k < KEYS; k++)
			IS(wq_add(r.f.q, &k, sizeof k), WQ_QUEUED);
		IS(wq_add_after(r.f.q, "late", 4, 10), WQ_DELAYED);
		IS(wq_try_get(r.f.q, &it), WQ_OK);
		for (int k = 1; k < KEYS; k++) {
			forward(&r, STEP_NS);
			IS(ways_to_get[i](r.f.q, &it), WQ_OK);
		}
		forward(&r, STEP_NS);
		IS(ways_to_get[i](r.f.q, &it), WQ_OK);
		assert_string_equal(it.key, "late"); /* in its place all the same */
		s = look(r.f.q);
		IS((int64_t)total(s.late), 1);
		IS((int64_t)s.late.sum_ns, STEP_NS - 10);
		IS(wq_done(r.f.q, &it), WQ_OK);
		meter_close(&r);
	}
}

enum { BURST = 3500 }; /* more than one hold of the lock moves */

static void burst(struct meter_rig *r)
{
	for (uint32_t key = 0; key < BURST; key++)
		IS(wq_add_after(r->f.q, &key, sizeof key, 1), WQ_DELAYED);
	forward(r, 1);
}

/* An add that stands behind a burst waited for nothing. */
static void adds_amid_a_burst_are_not_late(void **state)
{
	wq_key keys[] = {{"c", 1}, {"d", 1}};
	struct meter_rig r;
	wq_snapshot s;

	(void)state;
	meter_open(&r, NULL);
	burst(&r);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	forward(&r, 50);
	IS(wq_add_str(r.f.q, "b"), WQ_QUEUED);
	IS(wq_add_many(r.f.q, keys, 2, NULL), 2);
	s = look(r.f.q);
	IS((int64_t)total(s.late), BURST);
	IS((int64_t)s.adds, BURST + 4);
	IS((int64_t)s.queued, BURST + 4);
	meter_close(&r);
}

/* The reminder of the key that is got is among the rest of a burst. */
static void a_reminder_behind_a_burst(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(ways_to_get); i++) {
		struct meter_rig r;
		wq_snapshot s;
		wq_item it;

		meter_open(&r, NULL);
		IS(wq_add_str(r.f.q, "held"), WQ_QUEUED);
		get_is(r.f.q, &it, "held");
		IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
		IS(remind(r.f.q, "a", 5), WQ_DELAYED);
		burst(&r);
		forward(&r, 11);
		IS(ways_to_get[i](r.f.q, &it), WQ_OK);
		assert_string_equal(it.key, "a");
		s = look(r.f.q);
		IS((int64_t)s.merged, 1);
		IS((int64_t)total(s.late), BURST + 1);
		IS((int64_t)s.late.sum_ns, BURST * 11 + 7);
		IS(wq_done(r.f.q, &it), WQ_OK);
		meter_close(&r);
	}
}

/* What was once such an add, and what was held, is late as ever the next time. */
static void what_was_parked_may_be_late(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1)});
	IS(wq_add_limited(r.f.q, "a", 1), WQ_QUEUED);
	get_is(r.f.q, &it, "a");
	IS(wq_done(r.f.q, &it), WQ_OK); /* it is remembered */
	burst(&r);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	assert_true(cancel_key(r.f.q, "a", 1) > 0);
	IS((int64_t)look(r.f.q).remembered, 1);
	IS((int64_t)total(look(r.f.q).late), BURST);
	IS(wq_add_after(r.f.q, "a", 1, 10), WQ_DELAYED);
	forward(&r, 13);
	IS(wq_len(r.f.q), BURST + 1);
	IS((int64_t)total(look(r.f.q).late), BURST + 1);
	/* Beside a hold that began at any time. */
	IS(wq_try_get(r.f.q, &it), WQ_OK);
	IS(wq_add_after(r.f.q, it.key, it.len, 10), WQ_DELAYED);
	forward(&r, 13);
	IS(wq_done(r.f.q, &it), WQ_QUEUED);
	IS((int64_t)total(look(r.f.q).late), BURST + 2);
	meter_close(&r);
}

/* ---- looks at the clock ----------------------------------------------------- */

struct counting {
	int64_t now_ns, looks;
};

static int64_t count(void *ctx)
{
	struct counting *c = ctx;

	c->looks++;
	return c->now_ns;
}

struct clocked {
	struct counting clock;
	wq_queue *q;
};

static void clocked_open(struct clocked *c, int nkeys)
{
	wq_clock clock = {.now = count, .ctx = &c->clock};

	c->clock = (struct counting){.now_ns = 1000};
	IS(wq_new(&c->q, &(wq_options){.name = "q", .clock = &clock}), WQ_OK);
	for (int i = 0; i < nkeys; i++)
		IS(wq_add(c->q, &i, sizeof i), WQ_QUEUED);
}

/* The call answers that, and looks at the clock so often. */
#define LOOKS(c, call, expected, n)                                                                \
	do {                                                                                       \
		(c)->clock.looks = 0;                                                              \
		IS(call, expected);                                                                \
		IS((c)->clock.looks, n);                                                           \
	} while (0)

/* timed: keys wait, and one of them comes due with each step. */
static void one_look_for_a_hold(bool timed)
{
	struct clocked c;
	wq_item it, items[100];
	int settled;

	clocked_open(&c, 500);
	for (int i = 1000; timed && i < 1100; i++)
		IS(wq_add_after(c.q, &i, sizeof i, WQ_SECOND), WQ_DELAYED);
	LOOKS(&c, wq_add_str(c.q, "new"), WQ_QUEUED, 1);
	LOOKS(&c, wq_try_get(c.q, &it), WQ_OK, 1);
	LOOKS(&c, wq_done(c.q, &it), WQ_OK, 1);
	IS(wq_try_get(c.q, &it), WQ_OK);
	LOOKS(&c, wq_next_until(c.q, &it, WQ_NOWAIT), WQ_OK, 1);
	LOOKS(&c, wq_settle_next_until(c.q, &it, WQ_DONE, WQ_NOWAIT, &settled), WQ_OK, 1);
	IS(settled, WQ_OK);
	LOOKS(&c, wq_settle_next_until(c.q, &it, WQ_DROP, WQ_NOWAIT, &settled), WQ_OK, 1);
	LOOKS(&c, wq_settle_next_until(c.q, &it, WQ_RETRY, WQ_NOWAIT, &settled), WQ_OK, 1);
	IS(settled, WQ_DELAYED);
	LOOKS(&c,
	      wq_settle_next_until(c.q, &it, wq_again_after(5 * WQ_SECOND), WQ_NOWAIT, &settled),
	      WQ_OK, 1);
	LOOKS(&c, wq_retry(c.q, &it), WQ_DELAYED, 1);
	LOOKS(&c, wq_get_many_until(c.q, items, 100, WQ_NOWAIT), 100, 1);
	LOOKS(&c, wq_next_many_until(c.q, items, 100, 100, WQ_NOWAIT), 100, 1);
	LOOKS(&c, wq_done_many(c.q, items, 100, NULL), 100, 1);
	/* Keys that come back ask whether anything is due. */
	IS(wq_get_many_until(c.q, items, 100, WQ_NOWAIT), 100);
	for (int i = 0; i < 100; i++)
		IS(wq_add(c.q, items[i].key, items[i].len), WQ_MARKED);
	LOOKS(&c, wq_done_many(c.q, items, 100, NULL), 100, 1);
	LOOKS(&c, wq_add_after(c.q, "z", 1, WQ_SECOND), WQ_DELAYED, 1);
	assert_true(wq_free(c.q) > 0);
}

static void a_hold_looks_once(void **state)
{
	(void)state;
	one_look_for_a_hold(false);
	one_look_for_a_hold(true);
}

/* The lock is let go of after 256 keys, and then it is another time. */
static void each_hold_looks_anew(void **state)
{
	enum { KEYS = 600, HOLDS = 3 };
	static wq_item items[KEYS];
	struct clocked c;

	(void)state;
	clocked_open(&c, KEYS);
	LOOKS(&c, wq_get_many_until(c.q, items, KEYS, WQ_NOWAIT), KEYS, HOLDS);
	LOOKS(&c, wq_done_many(c.q, items, KEYS, NULL), KEYS, HOLDS);
	/* And what comes after the call does not see its time. */
	for (int i = 0; i < KEYS; i++)
		IS(wq_add(c.q, &i, sizeof i), WQ_QUEUED);
	IS(wq_get_many_until(c.q, items, KEYS, WQ_NOWAIT), KEYS);
	c.clock.now_ns += 7;
	IS(wq_done(c.q, &items[0]), WQ_OK);
	IS((int64_t)look(c.q).work.sum_ns, 7);
	LOOKS(&c, wq_next_many_until(c.q, items + 1, KEYS - 1, KEYS - 1, WQ_NOWAIT), WQ_EAGAIN,
	      HOLDS);
	IS((int64_t)look(c.q).work.sum_ns, 7 * KEYS);
	IS(wq_free(c.q), 0);
}

/* Promotion lets go of the lock too. */
static void a_promotion_ends_the_time_of_a_hold(void **state)
{
	struct clocked c;
	wq_item it;
	int settled;

	(void)state;
	clocked_open(&c, 2);
	IS(wq_try_get(c.q, &it), WQ_OK);
	IS(wq_add_after(c.q, "due", 3, 1), WQ_DELAYED);
	c.clock.now_ns += 5;
	LOOKS(&c, wq_settle_next_until(c.q, &it, WQ_RETRY, WQ_NOWAIT, &settled), WQ_OK, 2);
	IS((int64_t)look(c.q).late.sum_ns, 4);
	IS(wq_done(c.q, &it), WQ_OK);
	assert_true(wq_free(c.q) > 0);
}

/* ---- very long sums --------------------------------------------------------- */

/* 2^63 ns are 51 h of 50,000 keys each; 2^64 are 102 h. */
static void unfinished_work_of_centuries(void **state)
{
	enum { MANY = 50000 };
	wq_item *items = calloc(MANY, sizeof *items);
	struct fixture f;

	(void)state;
	assert_non_null(items);
	fixture_open(&f, &(wq_options){.name = "q"});
	IS(wq_manual_clock_advance(f.mc, 100 * 8760 * WQ_HOUR), WQ_OK); /* nor is it early */
	for (int i = 0; i < MANY; i++)
		IS(wq_add(f.q, &i, sizeof i), WQ_QUEUED);
	IS(wq_get_many_until(f.q, items, MANY, WQ_NOWAIT), MANY);
	IS(look(f.q).unfinished_ns, 0);
	IS(wq_manual_clock_advance(f.mc, 51 * WQ_HOUR), WQ_OK);
	IS(look(f.q).unfinished_ns, 51 * WQ_HOUR * MANY);
	for (int i = 0; i < 30; i++) {
		IS(wq_manual_clock_advance(f.mc, 7 * WQ_HOUR), WQ_OK);
		IS(look(f.q).unfinished_ns, INT64_MAX);
	}
	/* The others keep their exact sum, */
	IS(wq_done_many(f.q, items, MANY - 3, NULL), MANY - 3);
	IS(look(f.q).unfinished_ns, 3 * 261 * WQ_HOUR);
	IS(look(f.q).longest_running.age_ns, 261 * WQ_HOUR);
	/* and those that are done took longer than can be added up. */
	IS((int64_t)total(look(f.q).work), MANY - 3);
	assert_true(look(f.q).work.sum_ns == UINT64_MAX);
	IS(wq_done_many(f.q, items + MANY - 3, 3, NULL), 3);
	assert_true(look(f.q).work.sum_ns == UINT64_MAX);
	free(items);
	fixture_close(&f, 0);
}

/* ---- the next to come due ----------------------------------------------------- */

static int64_t next_due(wq_queue *q)
{
	wq_snapshot s = look(q);

	return s.next_due_ns == WQ_NEVER ? WQ_NEVER : s.next_due_ns - s.now_ns;
}

static void the_next_due_is_one_that_waits(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_after(r.f.q, "a", 1, 5 * WQ_SECOND), WQ_DELAYED);
	IS(cancel_key(r.f.q, "a", 1), WQ_STATE_WAITING);
	IS(next_due(r.f.q), WQ_NEVER);
	for (int i = 0; i < 5; i++)
		IS(wq_add_after(r.f.q, &i, sizeof i, (i + 10) * WQ_SECOND), WQ_DELAYED);
	IS(wq_add_after(r.f.q, "a", 1, WQ_SECOND), WQ_DELAYED);
	IS(next_due(r.f.q), WQ_SECOND);
	IS(cancel_key(r.f.q, "a", 1), WQ_STATE_WAITING);
	IS(next_due(r.f.q), 10 * WQ_SECOND);
	IS(wq_add_after(r.f.q, "a", 1, WQ_SECOND), WQ_DELAYED);
	IS(wq_reschedule(r.f.q, "a", 1, WQ_NEVER), WQ_MOVED);
	IS(next_due(r.f.q), 10 * WQ_SECOND);
	/* An add absorbs it, held or not. */
	IS(wq_add(r.f.q, &(int){0}, sizeof(int)), WQ_QUEUED);
	IS(next_due(r.f.q), 11 * WQ_SECOND);
	IS(wq_try_get(r.f.q, &it), WQ_OK);
	IS(wq_add_after(r.f.q, it.key, it.len, WQ_SECOND), WQ_DELAYED);
	IS(next_due(r.f.q), WQ_SECOND);
	IS(wq_add(r.f.q, it.key, it.len), WQ_MARKED);
	IS(next_due(r.f.q), 11 * WQ_SECOND);
	IS(wq_done(r.f.q, &it), WQ_QUEUED);
	for (int i = 1; i < 5; i++)
		IS(cancel_key(r.f.q, &i, sizeof i), WQ_STATE_WAITING);
	IS((int64_t)look(r.f.q).waiting, 1);
	IS(next_due(r.f.q), WQ_NEVER);
	/* Nothing is lost by it. */
	IS(wq_reschedule(r.f.q, "a", 1, wq_now(r.f.q) + 3), WQ_MOVED);
	IS(next_due(r.f.q), 3);
	forward(&r, 3);
	IS(wq_len(r.f.q), 2);
	meter_close(&r);
}

/* More than one look goes through: none comes due before what it says, and others go on. */
static void very_many_cancelled(void **state)
{
	enum { KEYS = 5000 };
	struct meter_rig r;
	int64_t next = 0;
	int looks = 0;

	(void)state;
	meter_open(&r, NULL);
	for (int i = 0; i < 2 * KEYS; i++)
		IS(wq_add_after(r.f.q, &i, sizeof i, WQ_HOUR + i * WQ_SECOND), WQ_DELAYED);
	for (int i = 0; i < KEYS; i++)
		IS(cancel_key(r.f.q, &i, sizeof i), WQ_STATE_WAITING);
	do {
		int64_t before = next;

		next = next_due(r.f.q);
		assert_true(next >= before && next <= WQ_HOUR + KEYS * WQ_SECOND);
	} while (next < WQ_HOUR + KEYS * WQ_SECOND && ++looks < 20);
	IS(next, WQ_HOUR + KEYS * WQ_SECOND);
	forward(&r, next - 1);
	IS(wq_len(r.f.q), 0);
	forward(&r, 1);
	IS(wq_len(r.f.q), 1);
	meter_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_reminder_that_is_due_when_its_key_is_got),
	    cmocka_unit_test(a_reminder_that_a_drain_brings),
	    cmocka_unit_test(a_reminder_of_later),
	    cmocka_unit_test(lateness_is_known_by_gets),
	    cmocka_unit_test(a_reminder_behind_a_burst),
	    cmocka_unit_test(adds_amid_a_burst_are_not_late),
	    cmocka_unit_test(what_was_parked_may_be_late),
	    cmocka_unit_test(a_hold_looks_once),
	    cmocka_unit_test(each_hold_looks_anew),
	    cmocka_unit_test(a_promotion_ends_the_time_of_a_hold),
	    cmocka_unit_test(unfinished_work_of_centuries),
	    cmocka_unit_test(the_next_due_is_one_that_waits),
	    cmocka_unit_test(very_many_cancelled),
	};

	return cmocka_run_group_tests_name("metrics that nobody looks at", tests, NULL, NULL);
}
