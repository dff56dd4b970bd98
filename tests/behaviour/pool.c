/*
 * R9 of the rules: what becomes of a key by what its handler answers, how that is
 * counted, and what else may work on the queue beside a pool. What a
 * pool is told to do is in pool_control.c, its threads in pool_threads.c.
 */
#include "../support/cancel.h"
#include "pool_rig.h"

enum { FAST = AGAIN_NS };

/* The same time after every failure, and that of "again". */
static wq_options patient(uint32_t max_attempts)
{
	return (wq_options){.limiter = wq_limiter_fast_slow(FAST, FAST, 1),
	                    .max_attempts = max_attempts};
}

/* ---- verdicts --------------------------------------------------------------- */

static void R9_verdicts(void **state)
{
	static const struct {
		const char *key;
		int after;    /* the key's state */
		int failures; /* that are remembered then; one was before */
		wq_pool_counts counts;
	} rows[] = {
	    {"done", 0, 0, {.done = 1}},
	    {"retry", WQ_STATE_WAITING | WQ_STATE_RETRYING, 2, {.retried = 1}},
	    {"bad", WQ_STATE_WAITING | WQ_STATE_RETRYING, 2, {.retried = 1}},
	    {"again", WQ_STATE_WAITING, 0, {.again = 1}},
	    {"drop", 0, 0, {.dropped = 1}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *key = rows[i].key;
		wq_options o = patient(0);
		struct rig r;

		rig_open(&r, &o, NULL);
		IS(wq_add_limited(r.f.q, key, strlen(key)), WQ_DELAYED);
		wq_manual_clock_advance(r.f.mc, FAST);
		rig_wait(&r, &r.ended, 1);
		rig_idle(&r);
		IS(r.attempts[0], 2);
		IS(state_of(r.f.q, key), rows[i].after);
		IS(wq_failures(r.f.q, key, strlen(key)), rows[i].failures);
		counts_are(r.p, &rows[i].counts, __FILE__, __LINE__);
		/* after that time each of those that wait comes again, and no other one */
		wq_manual_clock_advance(r.f.mc, AGAIN_NS - 1);
		rig_sleeps(&r);
		IS(rig_read(&r, &r.begun), 1);
		wq_manual_clock_advance(r.f.mc, 1);
		if (rows[i].after)
			rig_wait(&r, &r.ended, 2);
		rig_sleeps(&r);
		IS(rig_read(&r, &r.begun), rows[i].after ? 2 : 1);
		IS(r.attempts[1], rows[i].after ? 1 + rows[i].failures : 0);
		rig_close(&r);
	}
}

static const struct {
	wq_verdict verdict;
	int failures;
	int64_t due_ns; /* from now on */
	wq_pool_counts counts;
} verdicts[] = {
    /* An unknown kind, a time that is none, a word that is not zero: failures. */
    {{.kind = WQ_VERDICT_FATAL + 1}, 1, FAST, {.retried = 1}},
    {{.kind = UINT32_MAX}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_DONE, .delay_ns = -1}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = -1}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_RETRY, .delay_ns = INT64_MIN}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_DONE, .reserved0 = 1}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_DROP, .reserved0 = 1}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_FATAL, .reserved0 = UINT32_MAX}, 1, FAST, {.retried = 1}},
    /* At least that long; the limiter asks for FAST. */
    {{.kind = WQ_VERDICT_RETRY, .delay_ns = FAST - 1}, 1, FAST, {.retried = 1}},
    {{.kind = WQ_VERDICT_RETRY, .delay_ns = FAST + 1}, 1, FAST + 1, {.retried = 1}},
    {{.kind = WQ_VERDICT_RETRY, .delay_ns = WQ_NEVER}, 1, WQ_NEVER, {.retried = 1}},
    /* Any time is one. */
    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = 1}, 0, 1, {.again = 1}},
    {{.kind = WQ_VERDICT_AGAIN, .delay_ns = WQ_HOUR}, 0, WQ_HOUR, {.again = 1}},
};

static wq_verdict act_verdict(struct rig *r, const wq_item *it)
{
	(void)r;
	return verdicts[atoi((const char *)it->key + strlen("act-"))].verdict;
}

/* What a handler returns, good and bad: what becomes of the key, and how it is counted. */
static void R9_verdicts_of_all_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		int retrying = verdicts[i].failures ? WQ_STATE_RETRYING : 0;
		wq_options o = patient(0);
		char key[16];
		struct rig r;

		snprintf(key, sizeof key, "act-%zu", i);
		rig_open(&r, &o, NULL);
		r.act = act_verdict;
		rig_add(&r, key, WQ_QUEUED);
		rig_idle(&r);
		IS(state_of(r.f.q, key), WQ_STATE_WAITING | retrying);
		IS(wq_failures(r.f.q, key, strlen(key)), verdicts[i].failures);
		IS(wq_next_deadline(r.f.q), wq_time_add(START_NS, verdicts[i].due_ns));
		counts_are(r.p, &verdicts[i].counts, __FILE__, __LINE__);
		rig_close(&r);
	}
}

/* [POOL] Whoever sees that the queue is idle finds all that was handled in the counts. */
static void counts_are_there_once_it_is_idle(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	COUNTS_ARE(r.p, .done = 0);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 3; k++)
			rig_add(&r, (const char *[]){"done-1", "done-2", "drop-3"}[k], WQ_QUEUED);
		rig_idle(&r);
		COUNTS_ARE(r.p, .done = (uint64_t)(2 * i + 2), .dropped = (uint64_t)(i + 1));
	}
	IS(counts_of(r.p).workers, 3);
	rig_close(&r);
}

static void busy_counts_handlers_that_run(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	rig_gate(&r, true);
	IS(counts_of(r.p).busy, 0);
	rig_add(&r, "gate+done-1", WQ_QUEUED);
	rig_add(&r, "gate+done-2", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 2);
	IS(counts_of(r.p).busy, 2);
	IS(counts_of(r.p).workers, 3);
	COUNTS_ARE(r.p, .done = 0);
	rig_gate(&r, false);
	rig_idle(&r);
	rig_sleeps(&r);
	IS(counts_of(r.p).busy, 0);
	rig_close(&r);
}

/* A key that is added while it is handled is handled once more, whatever the verdict. */
static void a_key_added_meanwhile_comes_back(void **state)
{
	static const char *const keys[] = {"gate+done", "gate+retry", "gate+again", "gate+drop"};

	(void)state;
	for (size_t i = 0; i < LENGTH(keys); i++) {
		wq_options o = patient(0);
		struct rig r;

		rig_open(&r, &o, &(wq_pool_options){.workers = 2});
		rig_gate(&r, true);
		rig_add(&r, keys[i], WQ_QUEUED);
		rig_wait(&r, &r.at_gate, 1);
		rig_add(&r, keys[i], WQ_MARKED);
		rig_sleeps(&r); /* [ONE] the other worker does not take it */
		IS(rig_read(&r, &r.begun), 1);
		rig_gate(&r, false);
		rig_wait(&r, &r.ended, 2);
		rig_close(&r);
	}
}

static void R9_cancelled_meanwhile(void **state)
{
	static const struct {
		const char *key;
		wq_pool_counts counts;
	} rows[] = {
	    {"gate+done", {.done = 1}},
	    {"gate+drop", {.dropped = 1}},
	    {"gate+retry", {.cancelled = 1}},
	    {"gate+again", {.cancelled = 1}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *key = rows[i].key;
		struct rig r;

		rig_open(&r, NULL, NULL);
		rig_gate(&r, true);
		rig_add(&r, key, WQ_QUEUED);
		rig_wait(&r, &r.at_gate, 1);
		IS(cancel_key(r.f.q, key, strlen(key)), WQ_STATE_RUNNING);
		rig_gate(&r, false);
		rig_idle(&r);
		IS(state_of(r.f.q, key), 0);
		IS(wq_failures(r.f.q, key, strlen(key)), 0);
		counts_are(r.p, &rows[i].counts, __FILE__, __LINE__);
		rig_close(&r);
	}
}

/* ---- failures ---------------------------------------------------------------- */

static struct {
	char key[16];
	uint32_t attempts;
	pthread_t thread;
	int state; /* of its key meanwhile */
	int n;
} letter;

static void dead_letter(void *ctx, const wq_item *it)
{
	letter.n++;
	letter.attempts = it->attempts;
	letter.thread = pthread_self();
	snprintf(letter.key, sizeof letter.key, "%s", (const char *)it->key);
	letter.state = wq_state(*(wq_queue **)ctx, it->key, it->len);
}

/* [DEAD] The third failure is the last. */
static void R9_dead_letters(void **state)
{
	wq_options o = patient(3);
	struct rig r;

	(void)state;
	memset(&letter, 0, sizeof letter);
	o.dead_letter = dead_letter;
	o.dead_ctx = &r.f.q;
	rig_open(&r, &o, NULL);
	rig_add(&r, "retry", WQ_QUEUED);
	for (int i = 1; i <= 3; i++) {
		rig_wait(&r, &r.ended, i);
		rig_idle(&r);
		IS(r.attempts[i - 1], i);
		wq_manual_clock_advance(r.f.mc, FAST);
	}
	rig_sleeps(&r);
	IS(rig_read(&r, &r.begun), 3);
	COUNTS_ARE(r.p, .retried = 2, .dead = 1);
	IS(letter.n, 1);
	IS(letter.attempts, 3);
	IS(letter.state, WQ_STATE_RUNNING);
	assert_string_equal(letter.key, "retry");
	assert_false(pthread_equal(letter.thread, pthread_self()));
	IS(state_of(r.f.q, "retry"), 0);
	IS(wq_failures(r.f.q, "retry", 5), 0); /* forgotten: it starts anew */
	rig_add(&r, "retry", WQ_QUEUED);
	rig_wait(&r, &r.ended, 4);
	IS(r.attempts[3], 1);
	rig_close(&r);
}

/*
 * C2: what fails after a shutdown is left over, and what is to come again. What is done or
 * dropped is so, whatever is left of its key.
 */
static void R9_left_over(void **state)
{
	static const char *const keys[] = {"gate+retry",  "gate+again",  "gate+bad",
	                                   "gate+done-1", "gate+done-2", "gate+drop"};
	wq_options o = patient(0);
	struct rig r;
	wq_report report;

	(void)state;
	rig_open(&r, &o, &(wq_pool_options){.workers = LENGTH(keys)});
	rig_gate(&r, true);
	for (size_t i = 0; i < LENGTH(keys); i++)
		rig_add(&r, keys[i], WQ_QUEUED);
	rig_wait(&r, &r.at_gate, LENGTH(keys));
	for (size_t i = 4; i < LENGTH(keys); i++)
		IS(wq_add_after(r.f.q, keys[i], strlen(keys[i]), WQ_HOUR), WQ_DELAYED);
	IS(wq_shutdown(r.f.q), WQ_OK);
	rig_gate(&r, false);
	rig_wait(&r, &r.gone, LENGTH(keys)); /* nothing is left to do */
	COUNTS_ARE(r.p, .left = 3, .done = 2, .dropped = 1);
	IS(state_of(r.f.q, "gate+retry"), WQ_STATE_LEFT | WQ_STATE_RETRYING);
	IS(state_of(r.f.q, "gate+bad"), WQ_STATE_LEFT | WQ_STATE_RETRYING);
	IS(state_of(r.f.q, "gate+again"), WQ_STATE_LEFT);
	IS(state_of(r.f.q, "gate+done-1"), 0);
	IS(state_of(r.f.q, "gate+done-2"), WQ_STATE_LEFT);
	IS(wq_drain_until(r.f.q, WQ_NEVER, NULL, &report), WQ_LEFT);
	IS((int64_t)report.retries, 2);
	IS((int64_t)report.delayed, 3);
	rig_close(&r);
}

static wq_verdict hand_back(struct rig *r, const wq_item *it)
{
	wq_item mine = *it;

	r->answer[0] = wq_done(r->f.q, &mine);
	return WQ_DONE;
}

static void a_handler_that_hands_the_item_back_itself(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	r.act = hand_back;
	rig_add(&r, "act", WQ_QUEUED);
	rig_wait(&r, &r.ended, 1);
	rig_add(&r, "done", WQ_QUEUED); /* the pool lives on */
	rig_wait(&r, &r.ended, 2);
	rig_idle(&r);
	IS(r.answer[0], WQ_OK);
	COUNTS_ARE(r.p, .done = 1, .stale = 1);
	rig_close(&r);
}

/* ---- a pool is not alone ------------------------------------------------------- */

/* [POOL] One of two is stopped, and the other goes on. */
static void several_pools_on_one_queue(void **state)
{
	struct rig r;
	wq_pool *other;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	other = rig_pool(&r, &(wq_pool_options){.workers = 1});
	rig_gate(&r, true);
	for (int i = 0; i < 3; i++) /* all three of them are at it */
		rig_add(&r, (const char *[]){"gate+done-1", "gate+done-2", "gate+done-3"}[i],
		        WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 3);
	IS(counts_of(r.p).busy, 2);
	IS(counts_of(other).busy, 1);
	rig_gate(&r, false);
	rig_idle(&r);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	IS(wq_shutting_down(r.f.q), 0);
	COUNTS_ARE(r.p, .done = 2);
	for (int i = 0; i < 5; i++) {
		rig_add(&r, "done", WQ_QUEUED);
		rig_idle(&r);
	}
	COUNTS_ARE(r.p, .done = 2);
	COUNTS_ARE(other, .done = 6);
	IS(wq_pool_free(r.p), WQ_OK);
	IS(wq_free(r.f.q), WQ_EBUSY);
	r.p = other;
	rig_close(&r);
}

/* [INTR] An interrupt is for Gets, and no Get of a pool's is disturbed by it. */
static void interrupts_do_not_concern_workers(void **state)
{
	struct rig r;
	struct getter g;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	rig_sleeps(&r);
	IS(wq_interrupt(r.f.q, 2), 0);
	IS(wq_interrupt(r.f.q, 0), 2); /* nobody took them */
	getter_block(&g, r.f.q, WQ_NEVER);
	IS(wq_interrupt(r.f.q, 3), 0);
	IS(getter_join(&g), WQ_EINTERRUPTED);
	/* nor those that come to wait while some are kept */
	rig_add(&r, "done", WQ_QUEUED);
	rig_idle(&r);
	rig_sleeps(&r);
	IS(wq_interrupt(r.f.q, 0), 2);
	IS(rig_read(&r, &r.gone), 0);
	rig_close(&r);
}

/* A Get of one's own has its share: it is in line with the workers. */
static void a_get_beside_a_pool(void **state)
{
	struct rig r;
	struct getter g;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 1});
	rig_gate(&r, true);
	rig_add(&r, "gate+done", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 1);
	getter_block(&g, r.f.q, WQ_NEVER);
	rig_add(&r, "mine", WQ_QUEUED);
	IS(getter_join(&g), WQ_OK);
	assert_string_equal(g.item.key, "mine");
	IS(wq_done(r.f.q, &g.item), WQ_OK);
	rig_close(&r);
}

/* Q5: what another holder brings back after a shutdown is the pool's to take. */
static void a_shutdown_waits_for_other_holders(void **state)
{
	struct rig r;
	wq_item it;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3, .paused = 1});
	rig_add(&r, "done", WQ_QUEUED);
	get_is(r.f.q, &it, "done");
	rig_add(&r, "done", WQ_MARKED);
	IS(wq_pool_resume(r.p), WQ_OK);
	IS(wq_shutdown(r.f.q), WQ_OK);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.gone), 0);
	IS(wq_done(r.f.q, &it), WQ_QUEUED);
	rig_wait(&r, &r.gone, 3);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

/* The same, and nothing comes back: the workers end all the same. */
static void a_shutdown_ends_with_the_last_hold(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct rig r;
		wq_item it;

		rig_open(&r, NULL, &(wq_pool_options){.workers = 3, .paused = 1});
		rig_add(&r, "done", WQ_QUEUED);
		get_is(r.f.q, &it, "done");
		IS(wq_pool_resume(r.p), WQ_OK);
		IS(wq_shutdown(r.f.q), WQ_OK);
		rig_sleeps(&r);
		if (way == 0)
			IS(wq_done(r.f.q, &it), WQ_OK);
		else if (way == 1)
			IS(wq_retry(r.f.q, &it), WQ_LEFT);
		else
			IS(wq_settle(r.f.q, &it, wq_again_after(5000)), WQ_LEFT);
		rig_wait(&r, &r.gone, 3);
		rig_close(&r);
	}
}

static void a_pool_on_a_queue_that_is_shut(void **state)
{
	struct rig r;
	wq_pool *late;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.paused = 1});
	rig_add(&r, "done-1", WQ_QUEUED);
	rig_add(&r, "done-2", WQ_QUEUED);
	IS(wq_shutdown(r.f.q), WQ_OK);
	late = rig_pool(&r, &(wq_pool_options){.workers = 2});
	rig_wait(&r, &r.gone, 2);
	COUNTS_ARE(late, .done = 2);
	IS(counts_of(late).busy, 0);
	IS(wq_pool_free(late), WQ_OK);
	IS(rig_read(&r, &r.gone), 2); /* the paused one still is */
	rig_close(&r);
}

static void a_queue_is_not_freed_under_its_pool(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	IS(wq_free(r.f.q), WQ_EBUSY);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	IS(wq_free(r.f.q), WQ_EBUSY); /* a stopped one is one, too */
	check_whole(r.f.q, 0, 0);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(R9_verdicts),
	    cmocka_unit_test(R9_verdicts_of_all_kinds),
	    cmocka_unit_test(counts_are_there_once_it_is_idle),
	    cmocka_unit_test(busy_counts_handlers_that_run),
	    cmocka_unit_test(a_key_added_meanwhile_comes_back),
	    cmocka_unit_test(R9_cancelled_meanwhile),
	    cmocka_unit_test(R9_dead_letters),
	    cmocka_unit_test(R9_left_over),
	    cmocka_unit_test(a_handler_that_hands_the_item_back_itself),
	    cmocka_unit_test(several_pools_on_one_queue),
	    cmocka_unit_test(interrupts_do_not_concern_workers),
	    cmocka_unit_test(a_get_beside_a_pool),
	    cmocka_unit_test(a_shutdown_waits_for_other_holders),
	    cmocka_unit_test(a_shutdown_ends_with_the_last_hold),
	    cmocka_unit_test(a_pool_on_a_queue_that_is_shut),
	    cmocka_unit_test(a_queue_is_not_freed_under_its_pool),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
