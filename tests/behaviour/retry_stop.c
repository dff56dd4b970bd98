/*
 * C2 of the rules, in a queue that stops: what a retry becomes after a shutdown
 * and in each kind of drain, and how what was left over is reported.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	RD = R | WQ_STATE_DIRTY,
	RW = R | W,
	T = WQ_STATE_RETRYING,
	LEFT = WQ_STATE_LEFT | T,
};

/* How the queue was stopped; the drains do not wait. */
enum stop { SHUTDOWN, LEAVE, RUN, WAIT };

static const int64_t delay_ns = 10;

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

static void open_queue(struct fixture *f)
{
	fixture_open(f, &(wq_options){.limiter = wq_limiter_exponential(delay_ns, 1000)});
}

static void report_of(wq_queue *q, wq_report *r)
{
	memset(r, 0xee, sizeof *r);
	assert_true(wq_drain_until(q, 0, NULL, r) != WQ_EINVAL);
	IS((int64_t)r->dead, 0);
	IS((int64_t)r->reserved[0], 0);
}

static void stop(wq_queue *q, enum stop how)
{
	wq_drain_options o = {.mode = how == RUN    ? WQ_DRAIN_RUN
	                              : how == WAIT ? WQ_DRAIN_WAIT
	                                            : WQ_DRAIN_LEAVE};

	if (how == SHUTDOWN)
		IS(wq_shutdown(q), WQ_OK);
	else
		IS(wq_drain_until(q, 0, &o, NULL), WQ_ETIMEDOUT);
	IS(wq_shutting_down(q), 1);
}

struct seen {
	char keys[8];
	unsigned state[8];
	uint32_t failures[8];
	int64_t due_ns[8];
	size_t n;
};

static int see(void *ctx, const wq_key_info *info)
{
	struct seen *s = ctx;

	assert_true(s->n < LENGTH(s->keys));
	IS((int64_t)info->len, 1);
	s->keys[s->n] = *(const char *)info->key;
	s->state[s->n] = info->state;
	s->failures[s->n] = info->failures;
	s->due_ns[s->n++] = info->due_ns;
	IS(info->age_ns, 0); /* it only waits */
	return 0;
}

/* ---- every state of a hold, every way to stop -------------------------------------- */

struct cell {
	int before; /* when the queue stops */
	enum stop stop;
	int answer; /* of the retry */
	int after;
};

static const struct cell cells[] = {
    {R, SHUTDOWN, WQ_LEFT, LEFT},  {RD, SHUTDOWN, WQ_QUEUED, Q},
    {RW, SHUTDOWN, WQ_LEFT, LEFT}, {R, LEAVE, WQ_LEFT, LEFT},
    {RD, LEAVE, WQ_QUEUED, Q},     {RW, LEAVE, WQ_LEFT, LEFT},
    {R, RUN, WQ_QUEUED, Q},        {RD, RUN, WQ_QUEUED, Q},
    {RW, RUN, WQ_QUEUED, Q}, /* what waits is due: dirty */
    {R, WAIT, WQ_DELAYED, W | T},  {RD, WAIT, WQ_QUEUED, Q},
    {RW, WAIT, WQ_DELAYED, W | T},
};

static void C2_every_state_and_stop(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(cells); i++) {
		const struct cell *c = &cells[i];
		bool left = c->after == LEFT;
		struct fixture f;
		wq_report r;
		wq_item it;

		open_queue(&f);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		if (c->before == RD)
			wq_add_str(f.q, "a");
		if (c->before == RW)
			wq_add_after(f.q, "a", 1, 500);
		stop(f.q, c->stop);
		IS(wq_retry(f.q, &it), c->answer);
		IS(wq_retry(f.q, &it), WQ_ESTALE);
		IS(state_of(f.q, "a"), c->after);
		IS(requeues(f.q, "a"), 1); /* it counts in any case */
		report_of(f.q, &r);
		IS((int64_t)r.retries, (c->after & T) != 0); /* the copy of RW has become one */
		IS((int64_t)r.delayed, 0);
		IS((int64_t)r.queued, c->after == Q);
		IS((int64_t)r.running, 0);
		IS((int64_t)r.dirty, 0);
		wq_manual_clock_advance(f.mc, 3);
		if (left) {
			struct seen s = {.n = 0};

			IS(wq_walk(f.q, see, &s), 1);
			IS(s.state[0], LEFT);
			IS(s.failures[0], 1);
			IS(s.due_ns[0], c->before == RW ? START_NS + 500 : WQ_NEVER);
		}
		if (c->after & W)
			wq_manual_clock_advance(f.mc, delay_ns);
		if (c->after & (Q | W)) {
			get_is(f.q, &it, "a");
			IS(it.attempts, 2);
			IS(wq_done(f.q, &it), WQ_OK);
		}
		wq_manual_clock_advance(f.mc, WQ_HOUR); /* what is left never comes due */
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		IS(wq_drain_until(f.q, 0, NULL, &r), left ? WQ_LEFT : WQ_OK);
		IS((int64_t)r.retries, left);
		IS((int64_t)r.delayed, 0);
		fixture_close(&f, left);
	}
}

/* A hold that ends well: the copy that waits is left over, where it does not come due any more. */
static void Q2_done_of_a_key_with_a_copy(void **state)
{
	static const struct {
		enum stop stop;
		int answer;
		int after;
	} rows[] = {
	    {SHUTDOWN, WQ_LEFT, WQ_STATE_LEFT},
	    {LEAVE, WQ_LEFT, WQ_STATE_LEFT},
	    {RUN, WQ_QUEUED, Q},
	    {WAIT, WQ_DELAYED, W},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		for (int way = 0; way < 5; way++) {
			struct fixture f;
			wq_report r;
			wq_item it;
			int rc = WQ_EINVAL;
			bool retrying = way == 4;

			open_queue(&f);
			wq_add_str(f.q, "a");
			get_is(f.q, &it, "a");
			if (retrying)
				IS(wq_add_limited(f.q, "a", 1), WQ_DELAYED);
			else
				IS(wq_add_after(f.q, "a", 1, 500), WQ_DELAYED);
			stop(f.q, rows[i].stop);
			switch (way) {
			case 1:
				IS(wq_done_many(f.q, &it, 1, &rc), 1);
				break;
			case 2:
				rc = wq_settle(f.q, &it, WQ_DONE);
				break;
			case 3:
				rc = wq_settle(f.q, &it, WQ_DROP);
				break;
			default:
				rc = wq_done(f.q, &it);
				break;
			}
			IS(rc, rows[i].answer);
			IS(wq_done(f.q, &it), WQ_ESTALE);
			IS(state_of(f.q, "a"),
			   rows[i].after | (retrying && rows[i].after != Q ? T : 0));
			report_of(f.q, &r);
			IS((int64_t)r.retries, rows[i].after != Q && retrying);
			IS((int64_t)r.delayed, rows[i].after != Q && !retrying);
			fixture_close(&f, 1);
		}
	}
}

/* ---- a drain that runs what waits: once more, and no more --------------------------- */

static void C2_run_retries_once(void **state)
{
	struct fixture f;
	wq_report r;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_after(f.q, "a", 1, 100);
	wq_add_str(f.q, "b");
	stop(f.q, RUN);
	get_is(f.q, &it, "b");
	IS(wq_retry(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "a");
	IS(wq_retry(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "b");
	IS(it.attempts, 2);
	IS(wq_retry(f.q, &it), WQ_LEFT);
	get_is(f.q, &it, "a");
	IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED); /* is no retry */
	get_is(f.q, &it, "a");
	IS(wq_done(f.q, &it), WQ_OK);
	IS(wq_drain_until(f.q, WQ_NEVER, NULL, &r), WQ_LEFT);
	IS((int64_t)r.retries, 1);
	IS((int64_t)r.delayed, 0);
	IS(requeues(f.q, "b"), 2);
	fixture_close(&f, 1);
}

/* Forgetting the failures does not make it the first time. */
static void C2_run_retries_once_whatever_is_forgotten(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	stop(f.q, RUN);
	get_is(f.q, &it, "a");
	IS(wq_retry(f.q, &it), WQ_QUEUED);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	get_is(f.q, &it, "a");
	IS(it.attempts, 1);
	IS(wq_retry(f.q, &it), WQ_LEFT);
	fixture_close(&f, 1);
}

/* A key that is retried immediately goes to the tail, and its add is the retry. */
static void C2_run_to_the_tail(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	get_is(f.q, &it, "a");
	wq_manual_clock_advance(f.mc, 7);
	stop(f.q, RUN);
	IS(wq_retry(f.q, &it), WQ_QUEUED);
	take_is(f.q, "b", WQ_OK);
	get_is(f.q, &it, "a");
	IS(it.added_ns, START_NS + 7);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

/* wq_retry_after(): a stop asks for no time, but where it waits. */
static void C2_at_least_in_a_stop(void **state)
{
	static const enum stop how[] = {SHUTDOWN, LEAVE, RUN, WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(how); i++) {
		struct fixture f;
		wq_item it;

		open_queue(&f);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		stop(f.q, how[i]);
		IS(wq_settle(f.q, &it, wq_retry_after(700)), how[i] == RUN    ? WQ_QUEUED
		                                             : how[i] == WAIT ? WQ_DELAYED
		                                                              : WQ_LEFT);
		IS(requeues(f.q, "a"), 1);
		IS(wq_next_deadline(f.q), how[i] == WAIT ? START_NS + 700 : WQ_NEVER);
		fixture_close(&f, 1);
	}
}

/* To be left over needs no memory. */
static void C2_left_over_without_memory(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		struct fixture f;
		wq_item it;

		open_queue(&f);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		IS(wq_shutdown(f.q), WQ_OK);
		f.mem.fail_at = f.mem.calls;
		f.mem.fail_on = true;
		IS(wq_settle(f.q, &it, again ? wq_again_after(5) : WQ_RETRY), WQ_LEFT);
		IS(f.mem.failed, 0);
		f.mem.fail_at = -1;
		IS(state_of(f.q, "a"), again ? WQ_STATE_LEFT : LEFT);
		fixture_close(&f, 1);
	}
}

/* ---- a drain that waits: accepted ------------------------------------------------------ */

static int64_t drain_patiently(void *arg)
{
	return wq_drain_until(arg, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL);
}

static void C2_wait_accepts(void **state)
{
	struct fixture f;
	struct actor a;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	actor_start(&a, drain_patiently, f.q);
	actor_blocks(&a);
	for (int64_t delay = delay_ns; delay < 100; delay *= 2) {
		IS(wq_retry(f.q, &it), WQ_DELAYED);
		IS(wq_try_get(f.q, &it), WQ_EAGAIN); /* not over: something waits */
		actor_blocks(&a);
		wq_manual_clock_advance(f.mc, delay);
		get_is(f.q, &it, "a");
	}
	IS(wq_done(f.q, &it), WQ_OK);
	IS(actor_join(&a), WQ_OK);
	fixture_close(&f, 0);
}

/* What a limiter puts off for ever is not waited for. */
static void C2_wait_but_not_for_ever(void **state)
{
	struct fixture f;
	struct actor a;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_fast_slow(WQ_NEVER, 0, 1)});
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	actor_start(&a, drain_patiently, f.q);
	actor_blocks(&a);
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(actor_join(&a), WQ_LEFT);
	IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
	fixture_close(&f, 1);
}

/* A shutdown ends the patience: what waits is left over, and so is what fails then. */
static void C2_wait_then_shutdown(void **state)
{
	struct fixture f;
	struct actor a;
	wq_report r;
	wq_item it, other;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	get_is(f.q, &it, "a");
	get_is(f.q, &other, "b");
	actor_start(&a, drain_patiently, f.q);
	actor_blocks(&a);
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(actor_join(&a), WQ_EINTERRUPTED);
	IS(wq_retry(f.q, &other), WQ_LEFT);
	report_of(f.q, &r);
	IS((int64_t)r.retries, 2);
	IS((int64_t)r.delayed, 0);
	IS(state_of(f.q, "a"), LEFT);
	IS(state_of(f.q, "b"), LEFT);
	IS(requeues(f.q, "a"), 1);
	IS(requeues(f.q, "b"), 1);
	fixture_close(&f, 2);
}

/* The first drain decides; a retry asks what the queue was shut by. */
static void C2_the_first_drain_decides(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	stop(f.q, LEAVE);
	stop(f.q, WAIT);
	stop(f.q, RUN);
	IS(wq_retry(f.q, &it), WQ_LEFT);
	fixture_close(&f, 1);
}

/* ---- left over --------------------------------------------------------------------------- */

static void check_seen(const struct seen *s)
{
	IS((int64_t)s->n, 2);
	for (size_t i = 0; i < s->n; i++) {
		IS(s->state[i], LEFT);
		IS(s->failures[i], 1);
		IS(s->due_ns[i], WQ_NEVER);
	}
	assert_int_not_equal(s->keys[0], s->keys[1]);
}

/* A drain that waits for nothing any more lists them too, with what is needed to add them again. */
static void C2_left_over_keys_are_listed(void **state)
{
	struct fixture f;
	struct seen in_walk = {.n = 0}, in_drain = {.n = 0};
	wq_drain_options o = {.left = see, .ctx = &in_drain};
	wq_report r;
	wq_item a, b;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	wq_manual_clock_advance(f.mc, 3);
	wq_add_str(f.q, "b");
	wq_manual_clock_advance(f.mc, 5);
	get_is(f.q, &a, "a");
	get_is(f.q, &b, "b");
	wq_shutdown(f.q);
	IS(wq_retry(f.q, &a), WQ_LEFT);
	wq_manual_clock_advance(f.mc, 100);
	IS(wq_retry(f.q, &b), WQ_LEFT);
	IS(wq_len(f.q), 0);
	IS(wq_wait_idle_until(f.q, 0), WQ_OK);
	IS(wq_wait_key_until(f.q, "a", 1, 0), WQ_OK);
	IS(wq_walk(f.q, see, &in_walk), 2);
	check_seen(&in_walk);
	wq_manual_clock_advance(f.mc, 2);
	IS(wq_drain_until(f.q, WQ_NEVER, &o, &r), WQ_LEFT);
	check_seen(&in_drain);
	IS((int64_t)r.retries, 2);
	IS((int64_t)(r.queued | r.running | r.delayed), 0);
	/* it is nobody's any more */
	IS(wq_done(f.q, &a), WQ_ESTALE);
	IS(wq_requeue(f.q, &a, WQ_TAIL), WQ_ESTALE);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(requeues(f.q, "a"), 0);
	IS(state_of(f.q, "a"), LEFT);
	IS(wq_add_str(f.q, "a"), WQ_ESHUTDOWN);
	IS(wq_add_limited(f.q, "a", 1), WQ_ESHUTDOWN);
	IS(wq_reschedule(f.q, "a", 1, 0), WQ_ESHUTDOWN);
	IS(cancel_key(f.q, "a", 1), W);
	IS(wq_drain_until(f.q, WQ_NEVER, NULL, &r), WQ_LEFT);
	IS((int64_t)r.retries, 1);
	fixture_close(&f, 1);
}

/* The drain that waits for the hold ends with the retry, and reports it. */
static void C2_left_over_ends_a_drain(void **state)
{
	struct fixture f;
	struct drainer d;
	struct getter g;
	wq_item it;

	(void)state;
	open_queue(&f);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	drainer_block(&d, f.q, WQ_NEVER);
	IS(wq_retry(f.q, &it), WQ_LEFT);
	IS(drainer_join(&d), WQ_LEFT);
	IS((int64_t)d.report.retries, 1);
	IS((int64_t)d.report.delayed, 0);
	IS((int64_t)d.report.running, 0);
	getter_start(&g, f.q, WQ_NEVER);
	IS(getter_join(&g), WQ_ESHUTDOWN);
	fixture_close(&f, 1);
}

/* A cancelled hold is not left over: nobody wants it. */
static void C1_cancelled_in_a_shutdown(void **state)
{
	static const enum stop how[] = {SHUTDOWN, LEAVE, RUN, WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(how); i++) {
		struct fixture f;
		wq_report r;
		wq_item it;

		open_queue(&f);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		stop(f.q, how[i]);
		IS(cancel_key(f.q, "a", 1), R);
		IS(wq_retry(f.q, &it), WQ_CANCELLED);
		report_of(f.q, &r);
		IS((int64_t)r.retries, 0);
		IS((int64_t)r.delayed, 0);
		fixture_close(&f, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(C2_every_state_and_stop),
	    cmocka_unit_test(Q2_done_of_a_key_with_a_copy),
	    cmocka_unit_test(C2_at_least_in_a_stop),
	    cmocka_unit_test(C2_left_over_without_memory),
	    cmocka_unit_test(C2_run_retries_once),
	    cmocka_unit_test(C2_run_retries_once_whatever_is_forgotten),
	    cmocka_unit_test(C2_run_to_the_tail),
	    cmocka_unit_test(C2_wait_accepts),
	    cmocka_unit_test(C2_wait_but_not_for_ever),
	    cmocka_unit_test(C2_wait_then_shutdown),
	    cmocka_unit_test(C2_the_first_drain_decides),
	    cmocka_unit_test(C2_left_over_keys_are_listed),
	    cmocka_unit_test(C2_left_over_ends_a_drain),
	    cmocka_unit_test(C1_cancelled_in_a_shutdown),
	};

	return cmocka_run_group_tests_name("retry and stop", tests, NULL, NULL);
}
