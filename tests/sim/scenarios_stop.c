/* Stopping: shutdowns, drains, and freeing a queue that threads are leaving. */
#include "world.h"

/* ---- shutdown ------------------------------------------------------------------- */

static void stopper(void *arg)
{
	(void)arg;
	do_shutdown();
}

static void add_two(void *arg)
{
	(void)arg;
	add_some(2, 2);
}

/* Adds beside the shutdown are refused or handed out, never lost. */
static void setup_shutdown(void)
{
	world_open(NULL);
	for (uint32_t n = 1 + sim_random(4); n > 0; n--)
		sim_spawn("worker", plain_worker, NULL);
	sim_spawn("stopper", stopper, NULL);
	if (sim_chance(2))
		sim_spawn("stopper", stopper, NULL);
	sim_spawn("producer", add_two, NULL);
}

static bool both_hold(void *arg)
{
	(void)arg;
	return w.nheld == 2 || w.b > 0;
}

/* Marks keys while they are held, then shuts down: they come back all the same. */
static void marker(void *arg)
{
	(void)arg;
	do_add(0);
	do_add(1);
	sim_until(both_hold, NULL);
	do_add(0);
	do_add(1);
	do_shutdown();
	w.b = 1;
}

static bool marked(void *arg)
{
	(void)arg;
	return w.b > 0;
}

static void patient_worker(void *arg)
{
	wq_item it;

	(void)arg;
	for (;;) {
		int rc = do_get(&it, WQ_NEVER);

		if (rc == WQ_ESHUTDOWN)
			return;
		sim_until(marked, NULL);
		do_done(&it);
	}
}

static void finish_dirty(void)
{
	SIM_CHECK(w.holds[0] == 2 && w.holds[1] == 2);
}

static void setup_dirty(void)
{
	world_open(NULL);
	sim_spawn("marker", marker, NULL);
	sim_spawn("worker", patient_worker, NULL);
	sim_spawn("worker", patient_worker, NULL);
}

/* ---- drain ------------------------------------------------------------------------- */

static void drainer(void *arg)
{
	wq_report r;

	(void)arg;
	SIM_CHECK(do_drain(WQ_NEVER, NULL, &r) == WQ_OK);
	SIM_CHECK(sim_locked() || world_len() == 0);
}

static void few_adds(void *arg)
{
	(void)arg;
	add_some(4, 3);
}

static void setup_drain(void)
{
	world_open(NULL);
	w.a = 3;
	for (uint32_t n = 1 + sim_random(3); n > 0; n--)
		sim_spawn("drainer", drainer, NULL);
	sim_spawn("producer", few_adds, NULL);
	sim_spawn("producer", few_adds, NULL);
	sim_spawn("worker", busy_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", busy_worker, NULL);
}

/* The first w.c tasks. */
static bool all_sleep(void *arg)
{
	int n = w.b; /* have returned */

	(void)arg;
	for (int i = 0; i < w.c; i++)
		n += sim_sleeping(i);
	return n == w.c;
}

static wq_item last_item;

/*
 * All drainers sleep before the last hold ends, and nothing happens after it:
 * each must be woken by that one.
 */
static void last_holder(void *arg)
{
	(void)arg;
	sim_until(all_sleep, NULL);
	do_done(&last_item);
}

static void setup_drain_last(void)
{
	world_open(NULL);
	sim_quiet_begin();
	do_add(1);
	do_get(&last_item, WQ_NOWAIT);
	sim_quiet_end();
	w.c = 2 + (int)sim_random(2);
	for (int i = 0; i < w.c; i++)
		sim_spawn("drainer", drainer, NULL);
	sim_spawn("holder", last_holder, NULL);
}

static void hasty_drainer(void *arg)
{
	wq_report r;

	(void)arg;
	do_drain(soon(), NULL, &r);
}

static void setup_drain_deadline(void)
{
	setup_drain();
	sim_spawn("hasty", hasty_drainer, NULL);
	sim_spawn("hasty", hasty_drainer, NULL);
}

/* Nobody works: only a shutdown ends this drain. */
static void released_drainer(void *arg)
{
	wq_report r;
	int rc = do_drain(WQ_NEVER, NULL, &r);

	(void)arg;
	SIM_CHECK(rc == WQ_EINTERRUPTED);
	SIM_CHECK(r.queued + r.running == 1);
	w.b++;
}

static void releaser(void *arg)
{
	(void)arg;
	/* One that comes before the drains does not count for them. */
	if (sim_chance(2))
		do_shutdown();
	sim_until(all_sleep, NULL);
	do_shutdown();
}

static void finish_released(void)
{
	SIM_CHECK(w.b == w.c);
	if (w.nheld)
		do_done(&last_item);
}

static void setup_drain_released(void)
{
	world_open(NULL);
	sim_quiet_begin();
	do_add(1);
	if (sim_chance(2))
		do_get(&last_item, WQ_NOWAIT);
	sim_quiet_end();
	w.c = 1 + (int)sim_random(3);
	for (int i = 0; i < w.c; i++)
		sim_spawn("drainer", released_drainer, NULL);
	sim_spawn("releaser", releaser, NULL);
}

/* A drain that gives up lists what it leaves, while workers go on. */
static int show_left(void *ctx, const wq_key_info *info)
{
	wq_item fake = {.key = info->key, .len = info->len};

	(void)key_of(&fake);
	SIM_CHECK(info->state != 0 && info->age_ns >= 0);
	++*(int *)ctx;
	sim_yield();
	return 0;
}

static void listing_drainer(void *arg)
{
	wq_report r;
	int shown = 0;
	int rc = do_drain(soon(), &(wq_drain_options){.left = show_left, .ctx = &shown}, &r);

	(void)arg;
	SIM_CHECK((uint64_t)shown <= r.queued + r.running);
	SIM_CHECK(rc == WQ_ETIMEDOUT || shown == 0);
}

static void setup_drain_lists(void)
{
	world_open(NULL);
	sim_quiet_begin();
	for (int k = 0; k < 4; k++)
		do_add(k);
	sim_quiet_end();
	sim_spawn("drainer", listing_drainer, NULL);
	sim_spawn("worker", plain_worker, NULL);
}

/*
 * Keys wait, one is held, and each hold of the lock queues a few, if they are to run. A drain
 * and a shutdown meet at every point of that. The calls are the library's own: the history
 * knows nothing of keys that wait.
 */
static void closing_drainer(void *arg)
{
	wq_drain_options o = {.mode = (enum wq_drain_mode)sim_random(3)};
	wq_report r;

	(void)arg;
	w.a = o.mode == WQ_DRAIN_RUN ? 4 : 0;
	/* Nobody ends the hold. */
	SIM_CHECK(wq_drain_until(w.q, WQ_NEVER, &o, &r) == WQ_EINTERRUPTED);
	SIM_CHECK(r.running == 1 && r.retries == 0);
	SIM_CHECK(r.queued == (uint64_t)w.a && r.delayed == 4 - (uint64_t)w.a);
}

/* A drain has begun. */
static bool is_closing(void *arg)
{
	bool closing;

	(void)arg;
	if (sim_locked())
		return false;
	sim_quiet_begin();
	closing = wq_shutting_down(w.q) == 1;
	sim_quiet_end();
	return closing;
}

static void closing_releaser(void *arg)
{
	(void)arg;
	sim_until(is_closing, NULL);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void closing_late(void *arg)
{
	wq_report r;
	int rc;

	(void)arg;
	sim_until(is_closing, NULL);
	rc = wq_drain_until(w.q, 0, NULL, &r);
	SIM_CHECK(rc == WQ_ETIMEDOUT || rc == WQ_EINTERRUPTED);
	SIM_CHECK(r.running == 1);
}

static void closing_keys(void)
{
	wq__hold_limit = 1 + sim_random(3);
	world_open(NULL);
	sim_quiet_begin();
	SIM_CHECK(wq_add_str(w.q, "held") == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &last_item) == WQ_OK);
	for (int k = 0; k < 4; k++)
		SIM_CHECK(wq_add_after(w.q, &k, sizeof k, WQ_SECOND) == WQ_DELAYED);
	sim_quiet_end();
}

static void setup_closing(void)
{
	closing_keys();
	sim_spawn("drainer", closing_drainer, NULL);
	sim_spawn("releaser", closing_releaser, NULL);
	if (sim_chance(2))
		sim_spawn("late", closing_late, NULL);
}

static void finish_closing(void)
{
	wq_item it;
	wq_report r;
	int taken = 0;

	wq__hold_limit = 0;
	SIM_CHECK(wq_done(w.q, &last_item) == WQ_OK);
	for (; wq_try_get(w.q, &it) == WQ_OK; taken++)
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
	SIM_CHECK(taken == w.a);
	SIM_CHECK(wq_drain_until(w.q, 0, NULL, &r) == (taken == 4 ? WQ_OK : WQ_LEFT));
	SIM_CHECK(r.delayed == 4 - (uint64_t)taken);
	SIM_CHECK(wq_free(w.q) == 4 - taken);
	w.q = NULL;
}

/*
 * Nothing is held, and the first that is due is a dead reference: one hold of the lock may be
 * spent on it, and nothing is in line or held after that. A drain returns when all that is to
 * run has run, or because of the shutdown, whoever else is at it.
 */
static void beside_drainer(void *arg)
{
	wq_report r;
	int rc = wq_drain_until(w.q, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_RUN}, &r);

	SIM_CHECK(rc == WQ_OK || rc == WQ_LEFT || (arg && rc == WQ_EINTERRUPTED));
	SIM_CHECK((rc == WQ_LEFT) == (rc >= 0 && r.delayed > 0));
	SIM_CHECK(rc < 0 || r.queued + r.running == 0);
	/* The shutdown comes first and leaves all over, or all run. */
	SIM_CHECK(r.retries == 0 && (r.delayed == 0 || (arg && r.delayed == 4)));
	SIM_CHECK(rc < 0 || r.delayed + (uint64_t)w.a == 4);
}

static void beside_shutdown(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void beside_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (wq_get(w.q, &it) == WQ_OK) {
		w.a++;
		sim_yield();
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
	}
}

static void setup_beside(void)
{
	const int first = 0;

	closing_keys();
	wq__hold_limit = 1;
	sim_quiet_begin();
	SIM_CHECK(wq_done(w.q, &last_item) == WQ_OK);
	SIM_CHECK(wq_reschedule(w.q, &first, sizeof first, sim_now() + 2 * WQ_SECOND) == WQ_MOVED);
	sim_quiet_end();
	bool shuts = sim_chance(2);

	sim_spawn("drainer", beside_drainer, shuts ? &last_item : NULL);
	sim_spawn("other", shuts ? beside_shutdown : beside_drainer, NULL);
	sim_spawn("worker", beside_worker, NULL);
}

static void finish_beside(void)
{
	wq__hold_limit = 0;
	SIM_CHECK(w.a == 4 || w.a == 0);
	SIM_CHECK(wq_free(w.q) == 4 - w.a);
	w.q = NULL;
}

/* ---- free ---------------------------------------------------------------------------- */

static void inside(void *arg)
{
	wq_item it;

	if (arg)
		SIM_CHECK(wq_drain_until(w.q, WQ_NEVER, NULL, NULL) == WQ_OK);
	else
		SIM_CHECK(wq_get(w.q, &it) == WQ_ESHUTDOWN);
}

/* Frees the queue as soon as it may, which is while the others are on their way out. */
static void liberator(void *arg)
{
	int rc;

	(void)arg;
	sim_until(all_sleep, NULL);
	SIM_CHECK(wq_free(w.q) == WQ_EBUSY);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
	while ((rc = wq_free(w.q)) == WQ_EBUSY)
		sim_pass(1 +
		         sim_random(100)); /* or the schedule of fixed priorities tries for ever */
	SIM_CHECK(rc == 0);
	w.q = NULL;
}

static void setup_free(void)
{
	world_open(NULL);
	w.c = 1 + (int)sim_random(3);
	for (int i = 0; i < w.c; i++)
		sim_spawn("inside", inside, NULL);
	sim_spawn("liberator", liberator, NULL);
}

const struct scenario scenarios_stop[] = {
    {"shutdown", "shutdowns beside adds and gets", 60, setup_shutdown, NULL, NULL},
    {"shutdown-dirty", "keys that were marked before come back", 30, setup_dirty, finish_dirty,
     NULL},
    {"drain", "several drains beside producers and workers", 60, setup_drain, NULL, NULL},
    {"drain-last", "one done ends all drains", 20, setup_drain_last, NULL, NULL},
    {"drain-deadline", "drains that give up", 40, setup_drain_deadline, NULL, NULL},
    {"drain-released", "shutdowns release drains", 30, setup_drain_released, finish_released, NULL},
    {"drain-lists", "a drain lists what it leaves", 20, setup_drain_lists, NULL, NULL},
    {"closing", "a shutdown meets a drain that deals with what waits", 30, setup_closing,
     finish_closing, NULL},
    {"closing-beside", "two that line up what waits", 20, setup_beside, finish_beside, NULL},
    {"free", "a queue is freed while threads leave it", 20, setup_free, NULL, NULL},
    {0},
};
