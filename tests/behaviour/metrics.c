/*
 * What each call counts, in each state of its key. STEP compares all counters before
 * and after, so each line also says what does not count; the provider is held
 * against them at every step.
 */
#include "../support/cancel.h"
#include "metrics_rig.h"

enum { LATER = 1000 };

static int add(struct meter_rig *r, const char *key)
{
	return wq_add_str(r->f.q, key);
}

static int later(struct meter_rig *r, const char *key, int64_t ns)
{
	return wq_add_after(r->f.q, key, strlen(key), ns);
}

static int take_back(struct meter_rig *r, const char *key)
{
	return cancel_key(r->f.q, key, strlen(key));
}

static int got(struct meter_rig *r, wq_item *it)
{
	return wq_try_get(r->f.q, it);
}

/* ---- add ----------------------------------------------------------------- */

static void an_add_in_each_state(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	STEP(&r, add(&r, "a"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, add(&r, "a"), WQ_MERGED, .merged = 1);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, add(&r, "a"), WQ_MARKED, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, add(&r, "a"), WQ_MERGED, .merged = 1);
	STEP(&r, wq_done(r.f.q, &it), WQ_QUEUED, .adds = 0);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, later(&r, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, add(&r, "a"), WQ_MARKED, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, wq_done(r.f.q, &it), WQ_QUEUED, .adds = 0);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, wq_done(r.f.q, &it), WQ_OK, .adds = 0);
	STEP(&r, later(&r, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, add(&r, "a"), WQ_QUEUED, .adds = 1, .depth = 1); /* the copy is absorbed */
	meter_close(&r);
}

/* D1: every accepted one is a retry, whatever the delay and whether or not it merged. */
static void a_delayed_add_in_each_state(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	STEP(&r, later(&r, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, later(&r, "a", LATER / 2), WQ_MOVED, .retries = 1);
	STEP(&r, later(&r, "a", LATER), WQ_KEPT, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, LATER / 2), WQ_OK, .adds = 1, .depth = 1);
	STEP(&r, later(&r, "a", LATER), WQ_MERGED, .retries = 1, .merged = 1);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, later(&r, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, later(&r, "a", LATER / 2), WQ_MOVED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, LATER / 2), WQ_OK, .adds = 1, .depth = 1,
	     .marked = 1);
	STEP(&r, later(&r, "a", LATER), WQ_MERGED, .retries = 1, .merged = 1);
	STEP(&r, wq_done(r.f.q, &it), WQ_QUEUED, .adds = 0);
	meter_close(&r);
}

static void a_delay_of_nothing_is_an_add_and_a_retry(void **state)
{
	static const int64_t delays[] = {0, -1, INT64_MIN};
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	for (size_t i = 0; i < LENGTH(delays); i++) {
		/* Among options 0 is no delay; others are as wq_add_after()'s. */
		STEP(&r, after(r.f.q, "a", delays[i], WQ_MIN), WQ_QUEUED, .adds = 1, .depth = 1,
		     .retries = delays[i] != 0);
		STEP(&r, take_back(&r, "a"), WQ_STATE_QUEUED, .depth = -1);
		STEP(&r, later(&r, "a", delays[i]), WQ_QUEUED, .adds = 1, .depth = 1, .retries = 1);
		STEP(&r, later(&r, "a", delays[i]), WQ_MERGED, .merged = 1, .retries = 1);
		STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
		STEP(&r, later(&r, "a", delays[i]), WQ_MARKED, .adds = 1, .depth = 1, .retries = 1,
		     .marked = 1);
		STEP(&r, take_back(&r, "a"), WQ_STATE_RUNNING | WQ_STATE_DIRTY, .depth = -1);
		STEP(&r, wq_done(r.f.q, &it), WQ_OK, .adds = 0);
	}
	STEP(&r, wq_add_at(r.f.q, "a", 1, START_NS), WQ_QUEUED, .adds = 1, .depth = 1,
	     .retries = 1);
	meter_close(&r);
}

static void other_ways_to_add(void **state)
{
	struct meter_rig r;
	int64_t now;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_exponential(LATER, WQ_SECOND)});
	now = wq_now(r.f.q);
	STEP(&r, wq_add_at(r.f.q, "a", 1, now + 1), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_add_limited(r.f.q, "b", 1), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_add_limited(r.f.q, "b", 1), WQ_KEPT, .retries = 1);
	STEP(&r, after(r.f.q, "a", 9, WQ_REPLACE), WQ_MOVED, .retries = 1);
	STEP(&r, wq_reschedule(r.f.q, "a", 1, now + 5), WQ_MOVED, .retries = 0);
	STEP(&r, wq_reschedule(r.f.q, "a", 1, now), WQ_MOVED, .adds = 1, .depth = 1);
	STEP(&r, after(r.f.q, "c", WQ_NEVER, WQ_MIN), WQ_DELAYED, .retries = 1);
	STEP(&r, cancel_key(r.f.q, "b", 1), WQ_STATE_WAITING, .adds = 0);
	meter_close(&r);
}

static void many_adds_at_once(void **state)
{
	wq_key keys[] = {{"a", 1}, {"b", 1}, {"a", 1}, {"held", 4}, {"held", 4}, {NULL, 1}};
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	STEP(&r, add(&r, "held"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, wq_add_many(r.f.q, keys, 6, NULL), 5, .adds = 3, .depth = 3, .merged = 2,
	     .marked = 1);
	IS(wq_done(r.f.q, &it), WQ_QUEUED);
	meter_close(&r);
}

/* A reminder is an add when its time comes. */
static void reminders(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	STEP(&r, remind(r.f.q, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, add(&r, "a"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, remind(r.f.q, "a", LATER / 2), WQ_MOVED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, LATER / 2), WQ_OK, .merged = 1);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, remind(r.f.q, "a", 1), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, 1), WQ_OK, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, remind(r.f.q, "a", 1), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, 1), WQ_OK, .merged = 1);
	STEP(&r, wq_done(r.f.q, &it), WQ_QUEUED, .adds = 0);
	STEP(&r, remind(r.f.q, "b", 1), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, 1), WQ_OK, .adds = 1, .depth = 1);
	meter_close(&r);
}

static void refusals(void **state)
{
	struct meter_rig r;
	wq_key keys[] = {{"a", 1}, {"b", 1}, {NULL, 1}};

	(void)state;
	meter_open(&r, &(wq_options){.max_keys = 1});
	STEP(&r, add(&r, "a"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, add(&r, "b"), WQ_EFULL, .refused = 1);
	STEP(&r, later(&r, "b", LATER), WQ_EFULL, .refused = 1);
	STEP(&r, wq_add_limited(r.f.q, "b", 1), WQ_EFULL, .refused = 1);
	STEP(&r, wq_add_many(r.f.q, keys, 3, NULL), 1, .merged = 1, .refused = 1);
	STEP(&r, wq_add(r.f.q, NULL, 1), WQ_EINVAL, .refused = 0);
	IS(wq_shutdown(r.f.q), WQ_OK);
	STEP(&r, add(&r, "a"), WQ_ESHUTDOWN, .refused = 1);
	STEP(&r, later(&r, "a", 0), WQ_ESHUTDOWN, .refused = 1);
	STEP(&r, later(&r, "b", LATER), WQ_ESHUTDOWN, .refused = 1);
	STEP(&r, wq_add_limited(r.f.q, "b", 1), WQ_ESHUTDOWN, .refused = 1);
	meter_close(&r);
}

static void no_memory_is_a_refusal(void **state)
{
	struct meter_rig r;
	uint32_t key = 0;

	(void)state;
	meter_open(&r, NULL);
	r.f.mem.fail_at = r.f.mem.calls;
	r.f.mem.fail_on = true;
	while (wq_add(r.f.q, &key, sizeof key) == WQ_QUEUED)
		key++;
	IS((int64_t)look(r.f.q).adds, key);
	IS((int64_t)look(r.f.q).refused, 1);
	STEP(&r, later(&r, "new", LATER), WQ_ENOMEM, .refused = 1);
	r.f.mem.fail_at = -1;
	STEP(&r, add(&r, "new"), WQ_QUEUED, .adds = 1, .depth = 1);
	meter_close(&r);
}

/* ---- the ends of a hold --------------------------------------------------- */

static void a_key_that_is_given_back(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_requeue(r.f.q, &it, WQ_TAIL), WQ_QUEUED, .depth = 1);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, add(&r, "a"), WQ_MARKED, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, wq_requeue(r.f.q, &it, WQ_HEAD), WQ_QUEUED, .depth = 0);
	STEP(&r, got(&r, &it), WQ_OK, .depth = -1);
	STEP(&r, later(&r, "a", LATER), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_requeue(r.f.q, &it, WQ_HEAD), WQ_QUEUED, .depth = 1);
	IS((int64_t)total(look(r.f.q).work), 0); /* it was not finished */
	meter_close(&r);
}

static void retries(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_fast_slow(0, LATER, 1)});
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	/* At once: an add while it was held. */
	STEP(&r, wq_retry(r.f.q, &it), WQ_QUEUED, .retries = 1, .adds = 1, .depth = 1, .marked = 1);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_retry(r.f.q, &it), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, LATER), WQ_OK, .adds = 1, .depth = 1);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, add(&r, "a"), WQ_MARKED, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, wq_retry(r.f.q, &it), WQ_QUEUED, .retries = 1, .merged = 1);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_settle(r.f.q, &it, wq_again_after(LATER)), WQ_DELAYED, .retries = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, LATER), WQ_OK, .adds = 1, .depth = 1);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, take_back(&r, "a"), WQ_STATE_RUNNING, .depth = 0);
	STEP(&r, wq_retry(r.f.q, &it), WQ_CANCELLED, .retries = 0);
	IS((int64_t)total(look(r.f.q).work), 5);
	meter_close(&r);
}

static void verdicts_that_end_it(void **state)
{
	const wq_verdict verdicts[] = {WQ_DONE, WQ_DROP};
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		IS(add(&r, "a"), WQ_QUEUED);
		IS(got(&r, &it), WQ_OK);
		STEP(&r, wq_settle(r.f.q, &it, verdicts[i]), WQ_OK,
		     .dropped = verdicts[i].kind == WQ_VERDICT_DROP);
		STEP(&r, wq_settle(r.f.q, &it, verdicts[i]), WQ_ESTALE, .stale = 1);
	}
	IS((int64_t)total(look(r.f.q).work), 2);
	meter_close(&r);
}

static void dead_letters(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1), .max_attempts = 2});
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_retry(r.f.q, &it), WQ_QUEUED, .retries = 1, .adds = 1, .depth = 1, .marked = 1);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_retry(r.f.q, &it), WQ_DEAD, .dead = 1);
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, wq_settle(r.f.q, &it, WQ_FATAL), WQ_DEAD, .dead = 1);
	IS((int64_t)total(look(r.f.q).work), 3);
	meter_close(&r);
}

static void stale_items(void **state)
{
	struct meter_rig r;
	wq_item it, next, many[2];

	(void)state;
	meter_open(&r, NULL);
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	next = it;
	STEP(&r, wq_done(r.f.q, &it), WQ_OK, .stale = 0);
	STEP(&r, wq_done(r.f.q, &it), WQ_ESTALE, .stale = 1);
	STEP(&r, wq_next_until(r.f.q, &next, WQ_NOWAIT), WQ_ESTALE, .stale = 1);
	STEP(&r, wq_retry(r.f.q, &it), WQ_ESTALE, .stale = 1);
	STEP(&r, wq_settle(r.f.q, &it, WQ_DONE), WQ_ESTALE, .stale = 1);
	STEP(&r, wq_settle(r.f.q, &it, wq_again_after(LATER)), WQ_ESTALE, .stale = 1);
	STEP(&r, wq_requeue(r.f.q, &it, WQ_TAIL), WQ_ESTALE, .stale = 1);
	many[0] = many[1] = it;
	STEP(&r, wq_done_many(r.f.q, many, 2, NULL), 0, .stale = 2);
	/* Those only ask. */
	STEP(&r, wq_extend(r.f.q, &it, 1), WQ_ESTALE, .stale = 0);
	STEP(&r, wq_lost(r.f.q, &it), WQ_ESTALE, .stale = 0);
	STEP(&r, wq_forget_item(r.f.q, &it), WQ_ESTALE, .stale = 0);
	meter_close(&r);
}

static void cancels(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	STEP(&r, take_back(&r, "a"), WQ_ENOTFOUND, .depth = 0);
	IS(add(&r, "a"), WQ_QUEUED);
	IS(remind(r.f.q, "a", LATER), WQ_DELAYED);
	STEP(&r, take_back(&r, "a"), WQ_STATE_QUEUED | WQ_STATE_WAITING, .depth = -1);
	IS(add(&r, "a"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	STEP(&r, take_back(&r, "a"), WQ_STATE_RUNNING, .depth = 0);
	STEP(&r, add(&r, "a"), WQ_MARKED, .adds = 1, .depth = 1, .marked = 1);
	STEP(&r, take_back(&r, "a"), WQ_STATE_RUNNING | WQ_STATE_DIRTY, .depth = -1);
	STEP(&r, wq_done(r.f.q, &it), WQ_OK, .depth = 0);
	meter_close(&r);
}

/* ---- bursts and stops ------------------------------------------------------ */

enum { BURST = 3500 }; /* more than one hold of the lock moves */

static void a_burst_counts_once(void **state)
{
	struct meter_rig r;
	uint32_t key;

	(void)state;
	meter_open(&r, NULL);
	for (key = 0; key < BURST; key++)
		IS(wq_add_after(r.f.q, &key, sizeof key, 1 + key), WQ_DELAYED);
	wq_manual_clock_advance(r.f.mc, BURST);
	/* Those that come while it is half moved stand behind it. */
	IS(add(&r, "new"), WQ_QUEUED);
	IS(add(&r, "gone"), WQ_QUEUED);
	assert_true(take_back(&r, "gone") > 0);
	IS((int64_t)look(r.f.q).adds, BURST + 2);
	IS((int64_t)look(r.f.q).queued, BURST + 1);
	IS((int64_t)look(r.f.q).retries, BURST);
	IS((int64_t)look(r.f.q).late.sum_ns, (int64_t)BURST * (BURST - 1) / 2);
	meter_close(&r);
}

static void a_shutdown_leaves_what_waits(void **state)
{
	struct meter_rig r;
	wq_item it, last;

	(void)state;
	meter_open(&r, NULL);
	IS(add(&r, "held"), WQ_QUEUED);
	IS(add(&r, "again"), WQ_QUEUED);
	IS(got(&r, &it), WQ_OK);
	IS(got(&r, &last), WQ_OK);
	IS(later(&r, "held", LATER), WQ_DELAYED);
	IS(later(&r, "a", LATER), WQ_DELAYED);
	IS(add(&r, "b"), WQ_QUEUED);
	IS(remind(r.f.q, "b", LATER), WQ_DELAYED);
	IS((int64_t)look(r.f.q).waiting, 3);
	IS(look(r.f.q).next_due_ns, START_NS + LATER);
	STEP(&r, wq_shutdown(r.f.q), WQ_OK, .left = 3);
	IS((int64_t)look(r.f.q).waiting, 0);
	IS(look(r.f.q).next_due_ns, WQ_NEVER);
	STEP(&r, wq_shutdown(r.f.q), WQ_OK, .left = 0);
	/* Its copy was left over before. */
	STEP(&r, wq_retry(r.f.q, &it), WQ_LEFT, .retries = 0, .left = 0);
	STEP(&r, wq_settle(r.f.q, &last, wq_again_after(LATER)), WQ_LEFT, .left = 1);
	STEP(&r, wq_manual_clock_advance(r.f.mc, WQ_HOUR), WQ_OK, .adds = 0);
	IS((int64_t)look(r.f.q).waiting, 0);
	STEP(&r, take_back(&r, "a"), WQ_STATE_WAITING, .left = -1);
	STEP(&r, take_back(&r, "again"), WQ_STATE_WAITING, .left = -1);
	IS((int64_t)look(r.f.q).left, 2);
	IS((int64_t)total(look(r.f.q).work), 2);
	meter_close(&r);
}

static void a_drain_may_run_what_waits(void **state)
{
	struct meter_rig r;
	wq_drain_options o = {.mode = WQ_DRAIN_RUN};

	(void)state;
	meter_open(&r, NULL);
	IS(later(&r, "a", LATER), WQ_DELAYED);
	IS(later(&r, "b", 2 * LATER), WQ_DELAYED);
	STEP(&r, wq_drain_until(r.f.q, 0, &o, NULL), WQ_ETIMEDOUT, .adds = 2, .depth = 2);
	IS((int64_t)look(r.f.q).late.sum_ns, 0); /* they came early, not late */
	meter_close(&r);
}

/* ---- without a name -------------------------------------------------------- */

static void a_queue_without_a_name(void **state)
{
	struct fixture *f = *state;
	wq_snapshot s;
	wq_item it;

	IS(wq_add_str(f->q, "a"), WQ_QUEUED);
	IS(wq_add_str(f->q, "b"), WQ_QUEUED);
	IS(wq_add_str(f->q, "b"), WQ_MERGED);
	IS(wq_add_after(f->q, "c", 1, LATER), WQ_DELAYED);
	get_is(f->q, &it, "a");
	IS(wq_add_str(f->q, "a"), WQ_MARKED);
	wq_manual_clock_advance(f->mc, LATER / 2);
	s = look(f->q);
	/* Keys by state are there; */
	IS((int64_t)s.queued, 1);
	IS((int64_t)s.running, 1);
	IS((int64_t)s.dirty, 1);
	IS((int64_t)s.waiting, 1);
	IS(s.next_due_ns, START_NS + LATER);
	IS(s.now_ns, START_NS + LATER / 2);
	assert_string_equal(s.oldest_queued.key, "b");
	IS(s.oldest_queued.age_ns, LATER / 2);
	/* the rest nobody asked for. */
	IS((int64_t)(s.adds + s.merged + s.retries + s.marked), 0);
	IS((int64_t)(total(s.queue) + total(s.work) + total(s.late)), 0);
	IS(s.unfinished_ns, 0);
	IS(s.longest_running.age_ns, -1);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	IS(wq_done(f->q, &it), WQ_ESTALE);
	IS((int64_t)look(f->q).stale, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_add_in_each_state),
	    cmocka_unit_test(a_delayed_add_in_each_state),
	    cmocka_unit_test(a_delay_of_nothing_is_an_add_and_a_retry),
	    cmocka_unit_test(other_ways_to_add),
	    cmocka_unit_test(many_adds_at_once),
	    cmocka_unit_test(reminders),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(no_memory_is_a_refusal),
	    cmocka_unit_test(a_key_that_is_given_back),
	    cmocka_unit_test(retries),
	    cmocka_unit_test(verdicts_that_end_it),
	    cmocka_unit_test(dead_letters),
	    cmocka_unit_test(stale_items),
	    cmocka_unit_test(cancels),
	    cmocka_unit_test(a_burst_counts_once),
	    cmocka_unit_test(a_shutdown_leaves_what_waits),
	    cmocka_unit_test(a_drain_may_run_what_waits),
	    WITH_FIXTURE(a_queue_without_a_name),
	};

	return cmocka_run_group_tests_name("what metrics count", tests, NULL, NULL);
}
