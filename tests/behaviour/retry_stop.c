/*
 * C2 of the rules, in a queue that stops: what a retry becomes after a shutdown
 * and in each kind of drain, and how what was left over is reported.
 */
#include "../support/support.h"
#include "../support/cancel.h"

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	RD = R | WQ_STATE_DIRTY,
	RW = R | W,
	LEFT = WQ_STATE_LEFT,
};

/* How the queue was stopped; the drains do not wait. */
enum stop { SHUTDOWN, DROP, RUN, WAIT };

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
	int64_t age_ns[8];
	size_t n;
};

static int see(void *ctx, const wq_key_info *info)
{
	struct seen *s = ctx;

	assert_true(s->n < LENGTH(s->keys));
	IS((int64_t)info->len, 1);
	s->keys[s->n] = *(const char *)info->key;
	s->state[s->n] = info->state;
	s->age_ns[s->n++] = info->age_ns;
	IS(info->due_ns, 0);
	return 0;
}

/* ---- every state of a hold, every way to stop -------------------------------------- */

struct cell {
	int before; /* when the queue stops */
	enum stop stop;
	int answer; /* of the retry */
	int after;
	int discarded; /* waiting copies */
};

static const struct cell cells[] = {
    {R, SHUTDOWN, WQ_LEFT, LEFT, 0},  {RD, SHUTDOWN, WQ_QUEUED, Q, 0},
    {RW, SHUTDOWN, WQ_LEFT, LEFT, 1}, {R, DROP, WQ_LEFT, LEFT, 0},
    {RD, DROP, WQ_QUEUED, Q, 0},      {RW, DROP, WQ_LEFT, LEFT, 1},
    {R, RUN, WQ_QUEUED, Q, 0},        {RD, RUN, WQ_QUEUED, Q, 0},
    {RW, RUN, WQ_QUEUED, Q, 0}, /* what waits is due: dirty */
    {R, WAIT, WQ_DELAYED, W, 0},      {RD, WAIT, WQ_QUEUED, Q, 0},
    {RW, WAIT, WQ_DELAYED, W, 0},
};

static void C2_every_state_and_stop(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(cells); i++) {
		const struct cell *c = &cells[i];
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
		IS((int64_t)r.left, c->after == LEFT);
		IS((int64_t)r.queued, c->after == Q);
		IS((int64_t)r.waiting, c->after == W);
		IS((int64_t)r.running, 0);
		IS((int64_t)r.dirty, 0);
		IS((int64_t)r.discarded, c->discarded);
		wq_manual_clock_advance(f.mc, 3);
		if (c->after == LEFT) {
			struct seen s = {.n = 0};

			IS(wq_walk(f.q, see, &s), 1);
			IS(s.age_ns[0], 3); /* since the add that the hold served */
		}
		if (c->after == W)
			wq_manual_clock_advance(f.mc, delay_ns);
		if (c->after & (Q | W)) {
			get_is(f.q, &it, "a");
			IS(it.attempts, 2);
			IS(wq_done(f.q, &it), WQ_OK);
		}
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		IS(wq_drain_until(f.q, 0, NULL, &r), WQ_OK);
		IS((int64_t)r.left, c->after == LEFT);
		fixture_close(&f, c->after == LEFT);
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
	IS(wq_drain_until(f.q, WQ_NEVER, NULL, &r), WQ_OK);
	IS((int64_t)r.left, 1);
	IS((int64_t)r.discarded, 0);
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
	IS(actor_join(&a), WQ_OK);
	IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
	fixture_close(&f, 1);
}

/* A shutdown ends the patience: what waits is discarded, what fails then is left over. */
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
	IS((int64_t)r.discarded, 1);
	IS((int64_t)r.left, 1);
	IS(requeues(f.q, "a"), 1);
	IS(requeues(f.q, "b"), 1);
	fixture_close(&f, 1);
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
	stop(f.q, DROP);
	stop(f.q, WAIT);
	stop(f.q, RUN);
	IS(wq_retry(f.q, &it), WQ_LEFT);
	fixture_close(&f, 1);
}

/* ---- left over --------------------------------------------------------------------------- */

static void check_seen(const struct seen *s, int64_t now)
{
	IS((int64_t)s->n, 2);
	for (size_t i = 0; i < s->n; i++) {
		IS(s->state[i], LEFT);
		IS(s->age_ns[i], now - (START_NS + (s->keys[i] == 'a' ? 0 : 3)));
	}
	assert_int_not_equal(s->keys[0], s->keys[1]);
}

/* A drain that succeeds lists them too, with their ages since they were added. */
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
	check_seen(&in_walk, START_NS + 108);
	wq_manual_clock_advance(f.mc, 2);
	IS(wq_drain_until(f.q, WQ_NEVER, &o, &r), WQ_OK);
	check_seen(&in_drain, START_NS + 110);
	IS((int64_t)r.left, 2);
	IS((int64_t)(r.queued | r.running | r.waiting | r.discarded), 0);
	/* it is nobody's any more */
	IS(wq_done(f.q, &a), WQ_ESTALE);
	IS(wq_requeue(f.q, &a, WQ_TAIL), WQ_ESTALE);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(requeues(f.q, "a"), 0);
	IS(state_of(f.q, "a"), LEFT);
	IS(cancel_key(f.q, "a", 1), WQ_ENOTFOUND);
	IS(wq_add_str(f.q, "a"), WQ_ESHUTDOWN);
	IS(wq_add_limited(f.q, "a", 1), WQ_ESHUTDOWN);
	fixture_close(&f, 2);
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
	IS(drainer_join(&d), WQ_OK);
	IS((int64_t)d.report.left, 1);
	IS((int64_t)d.report.running, 0);
	getter_start(&g, f.q, WQ_NEVER);
	IS(getter_join(&g), WQ_ESHUTDOWN);
	fixture_close(&f, 1);
}

/* A cancelled hold is not left over: nobody wants it. */
static void C1_cancelled_in_a_shutdown(void **state)
{
	static const enum stop how[] = {SHUTDOWN, DROP, RUN, WAIT};

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
		IS((int64_t)r.left, 0);
		IS((int64_t)r.discarded, 0);
		fixture_close(&f, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(C2_every_state_and_stop),
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
