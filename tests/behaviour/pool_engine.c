/*
 * A pool on an engine that fails: here the memory engine, whose turns answer
 * WQ_EIO, or another error, when they are told to. The workers live on, and a key that they hold is
 * settled once, as soon as that goes.
 */
#include "pool_rig.h"

#include "queue/memory.h"

static struct {
	struct rig *r;
	_Atomic unsigned fail; /* steps of turns, see wq_turn_steps; 0: none fails */
	int status;            /* with which they fail */
	_Atomic bool hurried;  /* one failed again too soon */
} engine;

/* 100 ms, and no doubt about the precision of clocks. */
static const int64_t rest_ns = 90 * WQ_MILLISECOND;

static void note_failure(void)
{
	static _Thread_local int64_t last_ns;
	struct timespec t;
	int64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now_ns = t.tv_sec * WQ_SECOND + t.tv_nsec;
	if (last_ns > 0 && now_ns - last_ns < rest_ns)
		atomic_store(&engine.hurried, true);
	last_ns = now_ns;
	rig_note(engine.r, &engine.r->noted);
}

static int turn(void *state, wq_item *item, wq_turn *t)
{
	unsigned fail = atomic_load(&engine.fail) & t->steps;
	int rc;

	if (fail == 0)
		return wq__memory_engine.turn(state, item, t);
	if (fail & WQ_TURN_SETTLE || !(t->steps & WQ_TURN_SETTLE)) {
		rc = t->settled = engine.status;
	} else {
		/* The hold has ended, and only the get fails. */
		t->steps = WQ_TURN_SETTLE;
		rc = wq__memory_engine.turn(state, item, t);
		if (rc == WQ_OK)
			rc = engine.status;
	}
	note_failure();
	return rc;
}

static void flaky_open(struct rig *r)
{
	static wq_engine flaky;

	flaky = wq__memory_engine;
	flaky.turn = turn;
	engine.r = r;
	engine.status = WQ_EIO;
	atomic_store(&engine.fail, 0);
	atomic_store(&engine.hurried, false);
	rig_open(r, &(wq_options){.engine = &flaky}, &(wq_pool_options){.workers = 2});
}

/* It works again; the workers are told to look at once. */
static void mend(struct rig *r)
{
	atomic_store(&engine.fail, 0);
	IS(wq_pool_resize(r->p, 2), WQ_OK);
}

static void a_get_fails(void **state)
{
	struct rig r;

	(void)state;
	flaky_open(&r);
	rig_sleeps(&r);
	atomic_store(&engine.fail, WQ_TURN_GET);
	IS(wq_pool_resize(r.p, 2), WQ_OK); /* both come back and fail */
	rig_wait(&r, &r.noted, 2);
	rig_add(&r, "done", WQ_QUEUED);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.begun), 0);
	mend(&r);
	rig_idle(&r);
	COUNTS_ARE(r.p, .done = 1);
	IS(counts_of(r.p).workers, 2);
	rig_close(&r);
}

/* Whatever the error, the engine is left alone for a while before it is asked again. */
static void an_engine_that_fails_has_a_rest(void **state)
{
	static const int statuses[] = {WQ_EIO, WQ_ENOMEM, WQ_ENOTSUP};

	(void)state;
	for (size_t i = 0; i < LENGTH(statuses); i++) {
		struct rig r;

		flaky_open(&r);
		rig_sleeps(&r);
		engine.status = statuses[i];
		atomic_store(&engine.fail, WQ_TURN_GET);
		IS(wq_pool_resize(r.p, 2), WQ_OK);
		rig_wait(&r, &r.noted, 4); /* one of the two has failed twice */
		assert_false(atomic_load(&engine.hurried));
		mend(&r);
		rig_add(&r, "done", WQ_QUEUED);
		rig_idle(&r);
		rig_close(&r);
	}
}

/* [POOL] The handler is not called again for that. */
static void a_settle_fails(void **state)
{
	struct rig r;

	(void)state;
	flaky_open(&r);
	rig_gate(&r, true);
	rig_add(&r, "gate+drop", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 1);
	atomic_store(&engine.fail, WQ_TURN_SETTLE);
	rig_gate(&r, false);
	rig_wait(&r, &r.noted, 1);
	IS(state_of(r.f.q, "gate+drop"), WQ_STATE_RUNNING);
	COUNTS_ARE(r.p, .done = 0);
	mend(&r);
	rig_idle(&r);
	COUNTS_ARE(r.p, .dropped = 1);
	IS(rig_read(&r, &r.begun), 1);
	rig_close(&r);
}

static void a_get_after_a_settle_fails(void **state)
{
	struct rig r;

	(void)state;
	flaky_open(&r);
	rig_gate(&r, true);
	rig_add(&r, "gate+done", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 1);
	atomic_store(&engine.fail, WQ_TURN_GET);
	rig_gate(&r, false);
	rig_idle(&r); /* it is settled all the same */
	COUNTS_ARE(r.p, .done = 1);
	rig_wait(&r, &r.noted, 1);
	rig_add(&r, "done", WQ_QUEUED);
	mend(&r);
	rig_idle(&r);
	COUNTS_ARE(r.p, .done = 2);
	rig_close(&r);
}

/* Also a pool that is told to stop meanwhile settles what it holds. */
static void a_settle_fails_while_it_is_stopped(void **state)
{
	struct rig r;

	(void)state;
	flaky_open(&r);
	rig_gate(&r, true);
	rig_add(&r, "gate+done", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 1);
	atomic_store(&engine.fail, WQ_TURN_SETTLE);
	IS(wq_pool_stop_until(r.p, START_NS), WQ_ETIMEDOUT);
	rig_gate(&r, false);
	rig_wait(&r, &r.noted, 1);
	atomic_store(&engine.fail, 0);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	IS(state_of(r.f.q, "gate+done"), 0);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

/* A paused one settles it, too, and takes no other. */
static void a_settle_fails_while_it_is_paused(void **state)
{
	struct rig r;

	(void)state;
	flaky_open(&r);
	rig_gate(&r, true);
	rig_add(&r, "gate+done", WQ_QUEUED);
	rig_wait(&r, &r.at_gate, 1);
	atomic_store(&engine.fail, WQ_TURN_SETTLE);
	IS(wq_pool_pause(r.p), WQ_OK);
	rig_add(&r, "done", WQ_QUEUED);
	rig_gate(&r, false);
	rig_wait(&r, &r.noted, 1);
	mend(&r);
	IS(wq_wait_key_until(r.f.q, "gate+done", 9, WQ_NEVER), WQ_OK);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.begun), 1);
	IS(wq_len(r.f.q), 1);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_get_fails),
	    cmocka_unit_test(an_engine_that_fails_has_a_rest),
	    cmocka_unit_test(a_settle_fails),
	    cmocka_unit_test(a_get_after_a_settle_fails),
	    cmocka_unit_test(a_settle_fails_while_it_is_paused),
	    cmocka_unit_test(a_settle_fails_while_it_is_stopped),
	};

	return cmocka_run_group_tests_name("pool_engine", tests, NULL, NULL);
}
