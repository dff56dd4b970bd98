/*
 * A pool on an engine that fails: here the memory engine, whose turns answer
 * WQ_EIO when they are told to. The workers live on, and a key that they hold is
 * settled once, as soon as that goes.
 */
#include "pool_rig.h"

#include "queue/memory.h"

static struct {
	struct rig *r;
	_Atomic unsigned fail; /* steps of turns, see wq_turn_steps; 0: none fails */
} engine;

static int turn(void *state, wq_item *item, wq_turn *t)
{
	unsigned fail = atomic_load(&engine.fail) & t->steps;
	int rc;

	if (fail == 0)
		return wq__memory_engine.turn(state, item, t);
	if (fail & WQ_TURN_SETTLE || !(t->steps & WQ_TURN_SETTLE)) {
		rc = t->settled = WQ_EIO;
	} else {
		/* The hold has ended, and only the get fails. */
		t->steps = WQ_TURN_SETTLE;
		rc = wq__memory_engine.turn(state, item, t);
		if (rc == WQ_OK)
			rc = WQ_EIO;
	}
	rig_note(engine.r, &engine.r->noted);
	return rc;
}

static void flaky_open(struct rig *r)
{
	static wq_engine flaky;

	flaky = wq__memory_engine;
	flaky.turn = turn;
	engine.r = r;
	atomic_store(&engine.fail, 0);
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
	    cmocka_unit_test(a_settle_fails),
	    cmocka_unit_test(a_get_after_a_settle_fails),
	    cmocka_unit_test(a_settle_fails_while_it_is_paused),
	    cmocka_unit_test(a_settle_fails_while_it_is_stopped),
	};

	return cmocka_run_group_tests_name("pool_engine", tests, NULL, NULL);
}
