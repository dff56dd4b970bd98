/*
 * R9 of the rules: the verdicts by which a hold ends; and wq_settle_next_until(), which
 * is wq_settle() and a Get in one step.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, W = WQ_STATE_WAITING, T = WQ_STATE_RETRYING };

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

static void open_queue(struct fixture *f)
{
	fixture_open(f,
	             &(wq_options){.limiter = wq_limiter_exponential(10, 1000), .max_attempts = 4});
}

/* "a" is held, and has failed before. */
static void hold_failed(struct fixture *f, wq_item *it)
{
	IS(wq_add_limited(f->q, "a", 1), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	get_is(f->q, it, "a");
	IS(it->attempts, 2);
}

/* ---- verdicts ------------------------------------------------------------------------------ */

static void R9_verdicts(void **state)
{
	static const struct {
		wq_verdict verdict;
		int answer;
		int after;
		int64_t requeues;
		int64_t due_ns; /* from the verdict on; 0: it does not wait */
	} rows[] = {
	    {{.kind = WQ_VERDICT_DONE}, WQ_OK, 0, 0, 0},
	    {{.kind = WQ_VERDICT_DROP}, WQ_OK, 0, 0, 0},
	    {{.kind = WQ_VERDICT_FATAL}, WQ_DEAD, 0, 0, 0},
	    {{.kind = WQ_VERDICT_RETRY}, WQ_DELAYED, W | T, 2, 20},
	    /* at least so long; the limiter says 20 */
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = 1}, WQ_DELAYED, W | T, 2, 20},
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = 20}, WQ_DELAYED, W | T, 2, 20},
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = 21}, WQ_DELAYED, W | T, 2, 21},
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = WQ_HOUR}, WQ_DELAYED, W | T, 2, WQ_HOUR},
	    {{.kind = WQ_VERDICT_RETRY, .delay_ns = WQ_NEVER}, WQ_DELAYED, W | T, 2, WQ_NEVER},
	    /* exactly so long; any time is one */
	    {{.kind = WQ_VERDICT_AGAIN}, WQ_QUEUED, Q, 0, 0},
	    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = 1}, WQ_DELAYED, W, 0, 1},
	    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = 999}, WQ_DELAYED, W, 0, 999},
	    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = WQ_SECOND}, WQ_DELAYED, W, 0, WQ_SECOND},
	    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = WQ_NEVER}, WQ_DELAYED, W, 0, WQ_NEVER},
	    /* these have no use for a time */
	    {{.kind = WQ_VERDICT_DONE, .delay_ns = 5}, WQ_OK, 0, 0, 0},
	    {{.kind = WQ_VERDICT_DROP, .delay_ns = 5}, WQ_OK, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fixture f;
		int64_t now;
		wq_item it;

		open_queue(&f);
		hold_failed(&f, &it);
		now = wq_manual_clock_now(f.mc);
		IS(wq_settle(f.q, &it, rows[i].verdict), rows[i].answer);
		IS(wq_settle(f.q, &it, rows[i].verdict), WQ_ESTALE);
		IS(state_of(f.q, "a"), rows[i].after);
		IS(requeues(f.q, "a"), rows[i].requeues);
		if (rows[i].due_ns > 0)
			IS(wq_next_deadline(f.q), wq_time_add(now, rows[i].due_ns));
		fixture_close(&f, rows[i].after ? 1 : 0);
	}
}

static void verdict_is(wq_verdict v, uint32_t kind, int64_t delay_ns)
{
	IS(v.kind, kind);
	IS(v.delay_ns, delay_ns);
	IS(v.reserved0, 0);
}

/* What the functions make of a time; below 0 it is 0, and so a good verdict. */
static void R9_the_makers_of_verdicts(void **state)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, 1, 999, 1000, WQ_HOUR, WQ_NEVER};

	(void)state;
	for (size_t i = 0; i < LENGTH(times); i++) {
		int64_t time = times[i] > 0 ? times[i] : 0;

		verdict_is(wq_again_after(times[i]), WQ_VERDICT_AGAIN, time);
		verdict_is(wq_retry_after(times[i]), WQ_VERDICT_RETRY, time);
	}
	verdict_is(WQ_DONE, WQ_VERDICT_DONE, 0);
	verdict_is(WQ_RETRY, WQ_VERDICT_RETRY, 0);
	verdict_is(WQ_DROP, WQ_VERDICT_DROP, 0);
	verdict_is(WQ_FATAL, WQ_VERDICT_FATAL, 0);
	verdict_is((wq_verdict){0}, WQ_VERDICT_DONE, 0);
}

/* At once, to the tail; forgotten, and not a retry. */
static void R9_again_at_once(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	hold_failed(&f, &it);
	wq_add_str(f.q, "b");
	wq_manual_clock_advance(f.mc, 3);
	IS(wq_settle(f.q, &it, wq_again_after(0)), WQ_QUEUED);
	take_is(f.q, "b", WQ_OK);
	get_is(f.q, &it, "a");
	IS(it.attempts, 1);
	IS(it.added_ns, START_NS + 13);
	/* it absorbs a copy that waits, as an add does */
	IS(wq_add_after(f.q, "a", 1, 50), WQ_DELAYED);
	IS(wq_settle(f.q, &it, wq_again_after(0)), WQ_QUEUED);
	IS(state_of(f.q, "a"), Q);
	take_is(f.q, "a", WQ_OK);
	fixture_close(&f, 0);
}

/* [RETRY] The time that the failure itself asked for, attempt after attempt, beside the limiter's. */
static void R9_retry_after(void **state)
{
	static const int64_t least[] = {15, 15, 15}, waits[] = {20, 40, 80};
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_exponential(10, 1000)});
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	IS(wq_settle(f.q, &it, wq_retry_after(15)), WQ_DELAYED); /* the limiter says 10 */
	wq_manual_clock_advance(f.mc, 14);
	IS(wq_try_get(f.q, &it), WQ_EAGAIN);
	wq_manual_clock_advance(f.mc, 1);
	get_is(f.q, &it, "a");
	for (size_t i = 0; i < LENGTH(waits); i++) { /* it has counted, and backs off */
		IS(it.attempts, (int64_t)i + 2);
		IS(wq_settle(f.q, &it, wq_retry_after(least[i])), WQ_DELAYED);
		wq_manual_clock_advance(f.mc, waits[i] - 1);
		IS(wq_try_get(f.q, &it), WQ_EAGAIN);
		wq_manual_clock_advance(f.mc, 1);
		get_is(f.q, &it, "a");
	}
	/* a copy that comes earlier comes earlier, as with every retry */
	IS(wq_add_after(f.q, "a", 1, 5), WQ_DELAYED);
	IS(wq_settle(f.q, &it, wq_retry_after(WQ_HOUR)), WQ_DELAYED);
	IS(state_of(f.q, "a"), W | T);
	wq_manual_clock_advance(f.mc, 5);
	take_is(f.q, "a", WQ_OK);
	fixture_close(&f, 0);
}

/* [WHOLE] A verdict that is none: nothing has changed, the item is held as before. */
static void R9_bad_verdicts(void **state)
{
	static const wq_verdict bad[] = {
	    {.kind = WQ_VERDICT_FATAL + 1},
	    {.kind = 17},
	    {.kind = 1000, .delay_ns = 1000},
	    {.kind = UINT32_MAX},
	    {.kind = WQ_VERDICT_DONE, .delay_ns = -1},
	    {.kind = WQ_VERDICT_RETRY, .delay_ns = -1},
	    {.kind = WQ_VERDICT_RETRY, .delay_ns = INT64_MIN},
	    {.kind = WQ_VERDICT_AGAIN, .delay_ns = -1},
	    {.kind = WQ_VERDICT_DROP, .delay_ns = -1},
	    {.kind = WQ_VERDICT_FATAL, .delay_ns = INT64_MIN},
	    {.kind = WQ_VERDICT_DONE, .reserved0 = 1},
	    {.kind = WQ_VERDICT_RETRY, .reserved0 = 1},
	    {.kind = WQ_VERDICT_AGAIN, .delay_ns = 5000, .reserved0 = UINT32_MAX},
	    {.kind = WQ_VERDICT_DROP, .reserved0 = 1},
	    {.kind = WQ_VERDICT_FATAL, .reserved0 = 1},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		for (int shut = 0; shut < 2; shut++) {
			struct fixture f;
			wq_item it, before;
			wq_snapshot s;
			int settled = 77;

			open_queue(&f);
			hold_failed(&f, &it);
			wq_add_str(f.q, "b");
			if (shut)
				IS(wq_shutdown(f.q), WQ_OK);
			before = it;
			IS(wq_settle(f.q, &it, bad[i]), WQ_EINVAL);
			IS(wq_settle_next_until(f.q, &it, bad[i], WQ_NEVER, &settled), WQ_EINVAL);
			IS(wq_settle_next_for(f.q, &it, bad[i], WQ_NEVER, &settled), WQ_EINVAL);
			IS(settled, 77);
			assert_memory_equal(&it, &before, sizeof it);
			IS(state_of(f.q, "a"), R);
			IS(state_of(f.q, "b"), Q); /* nor was it got */
			IS(requeues(f.q, "a"), 1);
			IS(wq_snapshot_take(f.q, &s), WQ_OK);
			IS((int64_t)(s.dead + s.dropped + s.waiting + s.left), 0);
			IS(wq_settle(f.q, &it, WQ_DONE), WQ_OK);
			fixture_close(&f, 1);
		}
	}
}

/* Added meanwhile: it comes back whatever the verdict, once. */
static void R9_verdicts_of_a_dirty_key(void **state)
{
	const wq_verdict verdicts[] = {
	    WQ_DONE,
	    WQ_DROP,
	    WQ_RETRY,
	    wq_retry_after(5),
	    wq_again_after(5),
	    wq_again_after(0),
	    wq_again_after(5000),
	    wq_again_after(WQ_NEVER),
	    wq_retry_after(WQ_NEVER),
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		struct fixture f;
		wq_item it;

		open_queue(&f);
		hold_failed(&f, &it);
		wq_add_str(f.q, "a");
		IS(wq_settle(f.q, &it, verdicts[i]), WQ_QUEUED);
		IS(state_of(f.q, "a"), Q);
		IS(requeues(f.q, "a"), verdicts[i].kind == WQ_VERDICT_RETRY ? 2 : 0);
		take_is(f.q, "a", WQ_OK);
		IS(count_keys(f.q), 0);
		fixture_close(&f, 0);
	}
}

/* Once more, beside a copy that waits: the earlier time. */
static void R9_again_beside_a_copy(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	hold_failed(&f, &it);
	IS(wq_add_after(f.q, "a", 1, 50000), WQ_DELAYED);
	IS(wq_settle(f.q, &it, wq_again_after(70000)), WQ_DELAYED);
	wq_manual_clock_advance(f.mc, 50000);
	get_is(f.q, &it, "a");
	IS(wq_add_after(f.q, "a", 1, 50000), WQ_DELAYED);
	IS(wq_settle(f.q, &it, wq_again_after(30000)), WQ_DELAYED);
	wq_manual_clock_advance(f.mc, 30000);
	take_is(f.q, "a", WQ_OK);
	/* done leaves the copy that waits */
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	IS(wq_add_after(f.q, "a", 1, 50000), WQ_DELAYED);
	IS(wq_settle(f.q, &it, WQ_DONE), WQ_DELAYED);
	fixture_close(&f, 1);
}

/* Once more, and there is no memory to let it wait. */
static void R9_again_without_memory(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	f.mem.fail_at = f.mem.calls;
	f.mem.fail_on = true;
	IS(wq_settle(f.q, &it, wq_again_after(50000)), WQ_QUEUED);
	f.mem.fail_at = -1;
	take_is(f.q, "a", WQ_OK);
	fixture_close(&f, 0);
}

/* A cancelled hold does not come back, whatever is asked for. */
static void R9_verdicts_of_a_cancelled_hold(void **state)
{
	const struct {
		wq_verdict verdict;
		int answer;
		int64_t requeues;
	} rows[] = {
	    {WQ_DONE, WQ_OK, 0},
	    {WQ_DROP, WQ_OK, 0},
	    {WQ_RETRY, WQ_CANCELLED, 1},
	    {wq_retry_after(5), WQ_CANCELLED, 1},
	    {WQ_FATAL, WQ_CANCELLED, 1},
	    {wq_again_after(0), WQ_CANCELLED, 0},
	    {wq_again_after(5000), WQ_CANCELLED, 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fixture f;
		wq_item it;

		open_queue(&f);
		hold_failed(&f, &it);
		IS(cancel_key(f.q, "a", 1), R);
		IS(wq_settle(f.q, &it, rows[i].verdict), rows[i].answer);
		IS(state_of(f.q, "a"), 0);
		IS(requeues(f.q, "a"), rows[i].requeues);
		IS(count_keys(f.q), 0);
		fixture_close(&f, 0);
	}
}

/* In a shutdown, and in every drain, "once more" is left over, unless it comes anyway. */
static void R9_again_in_a_shutdown(void **state)
{
	static const int before[] = {R, R | WQ_STATE_DIRTY, R | W};
	static const int64_t times[] = {0, 5000, 500000, WQ_NEVER};

	(void)state;
	for (int how = -1; how <= WQ_DRAIN_WAIT; how++) {
		for (size_t i = 0; i < LENGTH(before) * LENGTH(times); i++) {
			int bits = before[i % LENGTH(before)];
			struct fixture f;
			wq_drain_options o = {.mode = (enum wq_drain_mode)how};
			wq_report r;
			wq_item it;
			bool dirty = bits & WQ_STATE_DIRTY, waits = bits & W;
			bool kept = waits && how == WQ_DRAIN_WAIT;
			bool queued = dirty || (waits && how == WQ_DRAIN_RUN);

			open_queue(&f);
			hold_failed(&f, &it);
			if (dirty)
				wq_add_str(f.q, "a");
			if (waits)
				wq_add_after(f.q, "a", 1, 50000);
			if (how < 0)
				IS(wq_shutdown(f.q), WQ_OK);
			else
				IS(wq_drain_until(f.q, 0, &o, NULL), WQ_ETIMEDOUT);
			IS(wq_settle(f.q, &it, wq_again_after(times[i / LENGTH(before)])),
			   queued ? WQ_QUEUED
			   : kept ? WQ_DELAYED
			          : WQ_LEFT);
			IS(requeues(f.q, "a"), 0);
			IS(wq_drain_until(f.q, 0, NULL, &r),
			   queued || kept ? WQ_ETIMEDOUT : WQ_LEFT);
			/* a copy that waited, and this: one */
			IS((int64_t)r.delayed, !queued);
			IS((int64_t)r.retries, 0);
			IS((int64_t)r.queued, queued);
			IS(state_of(f.q, "a"), queued ? Q : kept ? W : WQ_STATE_LEFT);
			fixture_close(&f, 1);
		}
	}
}

/* ---- settle and get ----------------------------------------------------------------------- */

/* In one step as in two: what it answers, what it leaves, what is got. */
static void settle_next_is_settle_and_get(void **state)
{
	const wq_verdict verdicts[] = {WQ_DONE,
	                               WQ_DROP,
	                               WQ_RETRY,
	                               WQ_FATAL,
	                               wq_retry_after(500),
	                               wq_again_after(0),
	                               wq_again_after(5000)};

	(void)state;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		for (int how = 0; how < 8; how++) {
			struct fixture one, two;
			struct fixture *both[] = {&one, &two};
			wq_item it[2];
			int settled[2] = {77, 77}, got[2];

			for (int j = 0; j < 2; j++) {
				open_queue(both[j]);
				hold_failed(both[j], &it[j]);
				if (how & 1)
					wq_add_str(both[j]->q, "a");
				if (how & 2)
					wq_add_str(both[j]->q, "b");
				if (how & 4)
					IS(wq_shutdown(both[j]->q), WQ_OK);
			}
			got[0] = wq_settle_next_until(one.q, &it[0], verdicts[i], WQ_NOWAIT,
			                              &settled[0]);
			settled[1] = wq_settle(two.q, &it[1], verdicts[i]);
			got[1] = wq_try_get(two.q, &it[1]);
			IS(settled[0], settled[1]);
			IS(got[0], got[1]);
			IS((int64_t)it[0].len, (int64_t)it[1].len);
			/* Without another one it is the item that has been handed back. */
			if (got[0] == WQ_OK)
				assert_memory_equal(it[0].key, it[1].key, it[0].len + 1);
			IS(it[0].attempts, it[1].attempts);
			IS(it[0].added_ns, it[1].added_ns);
			IS(state_of(one.q, "a"), state_of(two.q, "a"));
			IS(state_of(one.q, "b"), state_of(two.q, "b"));
			IS(requeues(one.q, "a"), requeues(two.q, "a"));
			IS(wq_next_deadline(one.q), wq_next_deadline(two.q));
			IS(wq_done(one.q, &it[0]), wq_done(two.q, &it[1]));
			fixture_close(&one, -1);
			fixture_close(&two, -1);
		}
	}
}

/* Nothing was got, but the hold has ended; *item is as it was. */
static void settle_next_that_gets_nothing(void **state)
{
	static const struct {
		int64_t deadline_ns;
		int answer;
		bool shut, interrupt;
	} rows[] = {
	    {WQ_NOWAIT, WQ_EAGAIN, false, false},
	    {0, WQ_ETIMEDOUT, false, false},
	    {WQ_NEVER, WQ_ESHUTDOWN, true, false},
	    {WQ_NEVER, WQ_EINTERRUPTED, false, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fixture f;
		wq_item it, before;
		int settled = 77;

		open_queue(&f);
		hold_failed(&f, &it);
		before = it;
		if (rows[i].shut)
			wq_shutdown(f.q);
		if (rows[i].interrupt)
			wq_interrupt(f.q, 1);
		IS(wq_settle_next_until(f.q, &it, WQ_DONE, rows[i].deadline_ns, &settled),
		   rows[i].answer);
		IS(settled, WQ_OK);
		assert_memory_equal(&it, &before, sizeof it);
		IS(wq_done(f.q, &it), WQ_ESTALE);
		IS(state_of(f.q, "a"), 0);
		/* *settled may be NULL */
		if (!rows[i].shut) {
			wq_add_str(f.q, "a");
			get_is(f.q, &it, "a");
			IS(wq_settle_next_until(f.q, &it, WQ_RETRY, WQ_NOWAIT, NULL), WQ_EAGAIN);
			IS(state_of(f.q, "a"), W | T);
		}
		fixture_close(&f, -1);
	}
}

/* An item that is not held: nothing is got, nothing written. */
static void settle_next_of_a_stale_item(void **state)
{
	struct fixture f, g;
	wq_item it, before;
	int settled = 77;

	(void)state;
	open_queue(&f);
	open_queue(&g);
	hold_failed(&f, &it);
	wq_add_str(f.q, "b");
	wq_add_str(g.q, "b");
	before = it;
	IS(wq_settle_next_until(g.q, &it, WQ_DONE, WQ_NEVER, &settled), WQ_EOTHERQUEUE);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(wq_settle_next_until(f.q, &it, WQ_DONE, WQ_NEVER, &settled), WQ_ESTALE);
	IS(wq_settle_next_until(f.q, &it, WQ_RETRY, WQ_NEVER, &settled), WQ_ESTALE);
	IS(wq_settle_next_until(f.q, &it, wq_again_after(5000), WQ_NEVER, &settled), WQ_ESTALE);
	IS(settled, 77);
	assert_memory_equal(&it, &before, sizeof it);
	IS(wq_len(f.q), 1);
	IS(wq_len(g.q), 1);
	IS(requeues(f.q, "a"), 1);
	fixture_close(&f, 1);
	fixture_close(&g, 1);
}

static void count_letter(void *ctx, const wq_item *item)
{
	(void)item;
	++*(int *)ctx;
}

/* A key that dies: its letter is sent, and the next key is got. */
static void settle_next_of_a_dead_key(void **state)
{
	struct fixture f;
	int letters = 0, settled = 77;
	wq_item it, before;

	(void)state;
	fixture_open(&f, &(wq_options){.max_attempts = 1,
	                               .dead_letter = count_letter,
	                               .dead_ctx = &letters});
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	get_is(f.q, &it, "a");
	IS(wq_settle_next_until(f.q, &it, WQ_RETRY, WQ_NEVER, &settled), WQ_OK);
	IS(settled, WQ_DEAD);
	IS(letters, 1);
	assert_memory_equal(it.key, "b", 2);
	IS(state_of(f.q, "a"), 0);
	before = it;
	IS(wq_settle_next_until(f.q, &it, WQ_RETRY, WQ_NOWAIT, &settled), WQ_EAGAIN);
	IS(settled, WQ_DEAD);
	IS(letters, 2);
	assert_memory_equal(&it, &before, sizeof it);
	IS(state_of(f.q, "b"), 0);
	/* dirty: the very key is the next */
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	wq_add_str(f.q, "a");
	IS(wq_settle_next_until(f.q, &it, WQ_RETRY, WQ_NEVER, &settled), WQ_OK);
	IS(settled, WQ_DEAD);
	IS(letters, 3);
	assert_memory_equal(it.key, "a", 2);
	IS(it.attempts, 1);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

struct next {
	wq_queue *q;
	wq_item item;
	wq_verdict verdict;
	int settled;
};

static int64_t next_main(void *arg)
{
	struct next *n = arg;

	return wq_settle_next_until(n->q, &n->item, n->verdict, WQ_NEVER, &n->settled);
}

/* It waits for its own retry, and wakes up for it. */
static void settle_next_waits(void **state)
{
	struct fixture f;
	struct next n = {.verdict = WQ_RETRY};
	struct actor a;

	(void)state;
	open_queue(&f);
	n.q = f.q;
	hold_failed(&f, &n.item);
	actor_start(&a, next_main, &n);
	actor_blocks(&a);
	IS(state_of(f.q, "a"), W | T);
	wq_manual_clock_advance(f.mc, 19);
	actor_blocks(&a);
	wq_manual_clock_advance(f.mc, 1);
	IS(actor_join(&a), WQ_OK);
	IS(n.settled, WQ_DELAYED);
	IS(n.item.attempts, 3);
	/* another's key ends the wait as well */
	n.verdict = WQ_DONE;
	actor_start(&a, next_main, &n);
	actor_blocks(&a);
	wq_add_str(f.q, "b");
	IS(actor_join(&a), WQ_OK);
	assert_memory_equal(n.item.key, "b", 2);
	IS(n.settled, WQ_OK);
	IS(wq_done(f.q, &n.item), WQ_OK);
	fixture_close(&f, 0);
}

/* While a thread sleeps for a far time, another's turn puts a key off for a shorter one. [WAKE] */
static void settle_next_wakes_who_leads(void **state)
{
	struct fixture f;
	struct next n = {.verdict = WQ_RETRY};
	struct getter g;
	struct actor a;

	(void)state;
	open_queue(&f);
	n.q = f.q;
	hold_failed(&f, &n.item);
	wq_add_after(f.q, "b", 1, WQ_HOUR);
	getter_block(&g, f.q, WQ_NEVER); /* sleeps until then */
	actor_start(&a, next_main, &n);
	actor_blocks(&a);
	wq_manual_clock_advance(f.mc, 20);
	/* one of both has it; the other gets the next */
	wq_add_str(f.q, "c");
	IS(actor_join(&a), WQ_OK);
	IS(getter_join(&g), WQ_OK);
	assert_true((*(const char *)n.item.key == 'a') + (*(const char *)g.item.key == 'a') == 1);
	IS(wq_done(f.q, &n.item), WQ_OK);
	IS(wq_done(f.q, &g.item), WQ_OK);
	fixture_close(&f, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(R9_verdicts),
	    cmocka_unit_test(R9_the_makers_of_verdicts),
	    cmocka_unit_test(R9_again_at_once),
	    cmocka_unit_test(R9_retry_after),
	    cmocka_unit_test(R9_bad_verdicts),
	    cmocka_unit_test(R9_verdicts_of_a_dirty_key),
	    cmocka_unit_test(R9_again_beside_a_copy),
	    cmocka_unit_test(R9_again_without_memory),
	    cmocka_unit_test(R9_verdicts_of_a_cancelled_hold),
	    cmocka_unit_test(R9_again_in_a_shutdown),
	    cmocka_unit_test(settle_next_is_settle_and_get),
	    cmocka_unit_test(settle_next_that_gets_nothing),
	    cmocka_unit_test(settle_next_of_a_stale_item),
	    cmocka_unit_test(settle_next_of_a_dead_key),
	    cmocka_unit_test(settle_next_waits),
	    cmocka_unit_test(settle_next_wakes_who_leads),
	};

	return cmocka_run_group_tests_name("settle", tests, NULL, NULL);
}
