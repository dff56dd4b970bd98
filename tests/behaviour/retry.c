/*
 * C1 and C2 of the rules, on a queue that is open: retry counts, lets the key
 * wait and ends the hold in one step. What it does in each state is in
 * states.c, in a shutdown in retry_stop.c, after the last attempt in dead.c.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	RD = R | WQ_STATE_DIRTY,
	T = WQ_STATE_RETRYING,
};

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

/* The delays of the keys below: 10, 20, 40 ... */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	fixture_open(f, &(wq_options){.limiter = wq_limiter_exponential(10, 1000)});
	*state = f;
	return 0;
}

#define WITH_DELAYS(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

/* [RETRY] Attempt after attempt, each as long after the last as the limiter says. */
static void C2_attempt_after_attempt(void **state)
{
	struct fixture *f = *state;
	int64_t delay = 10;
	wq_item it, old;

	wq_add_str(f->q, "a");
	for (uint32_t i = 1; i <= 6; i++, delay *= 2) {
		get_is(f->q, &it, "a");
		IS(it.attempts, i);
		old = it;
		IS(wq_retry(f->q, &it), WQ_DELAYED);
		assert_memory_equal(&it, &old, sizeof it);
		IS(wq_retry(f->q, &it), WQ_ESTALE); /* [STALE] it counts once */
		IS(wq_done(f->q, &it), WQ_ESTALE);
		IS(requeues(f->q, "a"), i);
		IS(state_of(f->q, "a"), W | T);
		wq_manual_clock_advance(f->mc, delay - 1);
		IS(wq_len(f->q), 0);
		wq_manual_clock_advance(f->mc, 1);
		IS(wq_len(f->q), 1);
	}
	get_is(f->q, &it, "a");
	IS(wq_settle(f->q, &it, WQ_DONE), WQ_OK);
	IS(requeues(f->q, "a"), 0);
}

/* [RETRY] Added again meanwhile: the key is in line at once, and the failure counts once. */
static void C2_added_meanwhile(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	wq_add_str(f->q, "b");
	wq_manual_clock_advance(f->mc, 3);
	wq_add_str(f->q, "a");
	wq_add_str(f->q, "a");
	wq_manual_clock_advance(f->mc, 4);
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	IS(requeues(f->q, "a"), 1);
	take_is(f->q, "b", WQ_OK); /* it went to the tail */
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(it.added_ns, START_NS + 3); /* when it was added again */
	IS(wq_done(f->q, &it), WQ_OK);
	IS(wq_next_deadline(f->q), WQ_NEVER);
}

/* No copy is left that comes later, and no count: also where the limiter asks for no delay. */
static void C2_dirty_is_counted_once(void **state)
{
	static const int64_t delays[] = {0, 10};

	(void)state;
	for (size_t i = 0; i < LENGTH(delays); i++) {
		struct fixture f;
		wq_report r;
		wq_item it;

		fixture_open(&f, &(wq_options){.limiter =
		                                   wq_limiter_fast_slow(delays[i], delays[i], 1)});
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		wq_manual_clock_advance(f.mc, 2);
		wq_add_str(f.q, "a");
		wq_manual_clock_advance(f.mc, 2);
		IS(wq_retry(f.q, &it), WQ_QUEUED);
		IS(count_keys(f.q), 1);
		get_is(f.q, &it, "a");
		IS(it.added_ns, START_NS + 2);
		IS(wq_drain_until(f.q, 0, NULL, &r), WQ_ETIMEDOUT);
		IS((int64_t)r.running, 1);
		IS((int64_t)r.dirty, 0);
		IS((int64_t)(r.retries + r.delayed), 0);
		IS(wq_done(f.q, &it), WQ_OK);
		fixture_close(&f, 0);
	}
}

/* A copy waits already: the earlier time counts. */
static void C2_a_copy_waits(void **state)
{
	static const int64_t other[] = {4, 10, 60, WQ_NEVER};

	for (size_t i = 0; i < LENGTH(other); i++) {
		struct fixture *f = *state;
		int64_t due = other[i] < 10 ? other[i] : 10;
		wq_item it;

		wq_add_str(f->q, "a");
		get_is(f->q, &it, "a");
		IS(wq_add_after(f->q, "a", 1, other[i]), WQ_DELAYED);
		IS(wq_retry(f->q, &it), WQ_DELAYED);
		IS(requeues(f->q, "a"), 1);
		wq_manual_clock_advance(f->mc, due - 1);
		IS(wq_len(f->q), 0);
		wq_manual_clock_advance(f->mc, 1);
		IS(wq_len(f->q), 1);
		take_is(f->q, "a", WQ_OK);
		IS(wq_forget(f->q, "a", 1), WQ_OK);
		wq_manual_clock_advance(f->mc, WQ_HOUR);
		IS(wq_len(f->q), 0);
	}
}

/* The copy has come due meanwhile: that was an add. */
static void C2_a_copy_came_due(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(wq_add_after(f->q, "a", 1, 5), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 6);
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(it.added_ns, START_NS + 5);
	IS(wq_done(f->q, &it), WQ_OK);
}

/* A reminder lives on beside it. */
static void C2_a_reminder_stays(void **state)
{
	struct fixture *f = *state;
	wq_add_options o = {.after_ns = 50, .policy = WQ_REMIND};
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(wq_add_with(f->q, "a", 1, &o), WQ_DELAYED);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(state_of(f->q, "a"), R | W);
	IS(wq_done(f->q, &it), WQ_OK);
	wq_manual_clock_advance(f->mc, 40);
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_done(f->q, &it), WQ_OK);
}

/* [RETRY] Without memory for a due time the key is tried again at once: not lost. */
static void C2_no_memory_for_the_delay(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	f->mem.fail_at = f->mem.calls;
	f->mem.fail_on = true;
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	assert_true(f->mem.failed > 0);
	f->mem.fail_at = -1;
	IS(wq_retry(f->q, &it), WQ_ESTALE);
	IS(requeues(f->q, "a"), 1);
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(wq_next_deadline(f->q), START_NS + 20);
}

/* The same, and a copy waits for a time that is further off: that is no reason to wait so long. */
static void C2_no_memory_to_come_earlier(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(wq_add_after(f->q, "a", 1, WQ_NEVER), WQ_DELAYED);
	f->mem.fail_at = f->mem.calls;
	f->mem.fail_on = true;
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	f->mem.fail_at = -1;
	IS(state_of(f->q, "a"), Q);
}

/* Somebody sleeps for longer than the key waits: it is woken in time. [WAKE] */
static void C2_wakes_who_waits(void **state)
{
	struct fixture *f = *state;
	struct getter g;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	wq_add_after(f->q, "b", 1, WQ_HOUR);
	getter_block(&g, f->q, WQ_NEVER);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	IS(getter_join(&g), WQ_OK);
	assert_memory_equal(g.item.key, "a", 2);
	/* and at once, if it was added meanwhile */
	it = g.item;
	getter_block(&g, f->q, WQ_NEVER);
	wq_add_str(f->q, "a");
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	IS(getter_join(&g), WQ_OK);
	assert_memory_equal(g.item.key, "a", 2);
	IS(g.item.attempts, 3);
	IS(wq_done(f->q, &g.item), WQ_OK);
}

struct ending {
	wq_queue *q;
	wq_item item;
};

static int end_by_retry(struct ending *e)
{
	return wq_retry(e->q, &e->item);
}

static int end_by_turn(struct ending *e)
{
	int settled = WQ_EINVAL;

	IS(wq_settle_next_until(e->q, &e->item, WQ_RETRY, WQ_NOWAIT, &settled), WQ_EAGAIN);
	return settled;
}

/* The same on the real clock, where nobody wakes the sleeper but the retry. [WAKE] */
static void C2_wakes_who_sleeps_too_long(void **state)
{
	static int (*const ends[])(struct ending * e) = {end_by_retry, end_by_turn};

	(void)state;
	for (size_t i = 0; i < LENGTH(ends); i++) {
		struct ending e;
		struct getter g;

		/* Longer than a thread is likely to be held up between its two steps. */
		wq_limiter *l = wq_limiter_exponential(200 * WQ_MILLISECOND, 200 * WQ_MILLISECOND);

		IS(wq_new(&e.q, &(wq_options){.limiter = l}), WQ_OK);
		wq_add_str(e.q, "a");
		get_is(e.q, &e.item, "a");
		wq_add_after(e.q, "b", 1, WQ_HOUR);
		getter_block(&g, e.q, WQ_NEVER);
		IS(ends[i](&e), WQ_DELAYED);
		IS(getter_join(&g), WQ_OK);
		assert_memory_equal(g.item.key, "a", 2);
		IS(g.item.attempts, 2);
		IS(wq_done(e.q, &g.item), WQ_OK);
		IS(wq_free(e.q), 1);
	}
}

/* ---- C1: cancelled while held ----------------------------------------------------- */

static void C1_retry_of_a_cancelled_hold(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	wq_add_str(f->q, "a");
	IS(cancel_key(f->q, "a", 1), RD);
	IS(wq_retry(f->q, &it), WQ_CANCELLED);
	IS(wq_retry(f->q, &it), WQ_ESTALE);
	IS(state_of(f->q, "a"), 0);
	IS(requeues(f->q, "a"), 0); /* no failure */
	IS(wq_next_deadline(f->q), WQ_NEVER);

	/* earlier failures stay */
	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	get_is(f->q, &it, "a");
	IS(cancel_key(f->q, "a", 1), R);
	IS(wq_retry(f->q, &it), WQ_CANCELLED);
	IS(requeues(f->q, "a"), 1);

	/* the mark was the hold's: the next one is retried */
	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(requeues(f->q, "a"), 2);
}

/* An add after the cancel counts normally. */
static void C1_added_after_the_cancel(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	IS(cancel_key(f->q, "a", 1), R);
	IS(wq_add_str(f->q, "a"), WQ_MARKED);
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	IS(requeues(f->q, "a"), 0);
	get_is(f->q, &it, "a");
	IS(it.attempts, 1);
	IS(cancel_key(f->q, "a", 1), R);
	IS(wq_add_after(f->q, "a", 1, 30), WQ_DELAYED);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 29); /* not in 10, as a retry would */
	IS(wq_len(f->q), 0);
	wq_manual_clock_advance(f->mc, 1);
	get_is(f->q, &it, "a");
	IS(cancel_key(f->q, "a", 1), R);
	IS(wq_add_limited(f->q, "a", 1), WQ_DELAYED);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(requeues(f->q, "a"), 1);
	IS(cancel_key(f->q, "a", 1), W);
}

/* Who waits for the end of the hold sees a retry as one. */
static int64_t cancel_until(void *arg)
{
	return cancel_key_until(arg, "a", 1, WQ_NEVER);
}

static int64_t wait_key(void *arg)
{
	return wq_wait_key_until(arg, "a", 1, WQ_NEVER);
}

static int64_t wait_idle(void *arg)
{
	return wq_wait_idle_until(arg, WQ_NEVER);
}

static void C1_the_end_of_a_hold(void **state)
{
	static const actor_fn calls[] = {cancel_until, wait_key, wait_idle};

	for (size_t i = 0; i < LENGTH(calls); i++) {
		struct fixture *f = *state;
		struct actor a;
		wq_item it;

		wq_add_str(f->q, "a");
		get_is(f->q, &it, "a");
		actor_start(&a, calls[i], f->q);
		actor_blocks(&a);
		IS(wq_retry(f->q, &it), i == 0 ? WQ_CANCELLED : WQ_DELAYED);
		IS(actor_join(&a), i == 0 ? R : WQ_OK);
		cancel_key(f->q, "a", 1);
		wq_forget(f->q, "a", 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DELAYS(C2_attempt_after_attempt),
	    WITH_DELAYS(C2_added_meanwhile),
	    cmocka_unit_test(C2_dirty_is_counted_once),
	    WITH_DELAYS(C2_a_copy_waits),
	    WITH_DELAYS(C2_a_copy_came_due),
	    WITH_DELAYS(C2_a_reminder_stays),
	    WITH_DELAYS(C2_no_memory_for_the_delay),
	    WITH_DELAYS(C2_no_memory_to_come_earlier),
	    WITH_DELAYS(C2_wakes_who_waits),
	    cmocka_unit_test(C2_wakes_who_sleeps_too_long),
	    WITH_DELAYS(C1_retry_of_a_cancelled_hold),
	    WITH_DELAYS(C1_added_after_the_cancel),
	    WITH_DELAYS(C1_the_end_of_a_hold),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
