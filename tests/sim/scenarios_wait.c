/* Waiting: interrupts, time-outs, other clocks, waits for idleness and for one key. */
#include <string.h>

#include "world.h"

/* ---- interrupts ---------------------------------------------------------------- */

/* Works until it is interrupted. Every interrupt sends one home, whenever it comes. */
static void worker_until_interrupted(void *arg)
{
	wq_item it;
	int rc;

	(void)arg;
	while ((rc = do_get(&it, WQ_NEVER)) == WQ_OK) {
		work(&it);
		do_done(&it);
	}
	SIM_CHECK(rc == WQ_EINTERRUPTED);
}

static bool all_sleep(void *arg)
{
	(void)arg;
	for (int i = 0; i < w.workers; i++) {
		if (!sim_sleeping(i))
			return false;
	}
	return true;
}

static void interrupt_all(void *arg)
{
	if (arg && sim_chance(2)) {
		/* All of them are blocked: nothing is kept, and nothing can be taken back. */
		sim_until(all_sleep, NULL);
		SIM_CHECK(do_interrupt(w.workers) == 0);
		SIM_CHECK(do_interrupt(0) == 0);
		return;
	}
	for (int left = w.workers; left > 0;) {
		int n = sim_chance(2) ? left : 1 + (int)sim_random((uint32_t)left);

		do_interrupt(n);
		left -= n;
	}
}

static void few_adds(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		do_add((int)sim_random(2));
}

static void setup_interrupt(void)
{
	world_open(NULL);
	w.workers = 1 + (int)sim_random(3);
	for (int i = 0; i < w.workers; i++)
		sim_spawn("worker", worker_until_interrupted, NULL);
	sim_spawn("interrupter", interrupt_all, NULL);
	if (sim_chance(2))
		sim_spawn("producer", few_adds, NULL);
}

/* More sleepers than one call wakes itself. */
static void setup_interrupt_wide(void)
{
	world_open(NULL);
	w.workers = 10;
	for (int i = 0; i < w.workers; i++)
		sim_spawn("worker", worker_until_interrupted, NULL);
	sim_spawn("interrupter", interrupt_all, &w);
}

/* ---- time-outs ------------------------------------------------------------------ */

static void timed_worker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		wq_item it;

		if (do_get(&it, soon()) != WQ_OK)
			continue;
		work(&it);
		if (sim_chance(3) && do_next(&it, soon()) != WQ_OK)
			continue;
		work(&it);
		do_done(&it);
	}
}

static bool nothing_live(void *arg)
{
	(void)arg;
	return w.nheld == 0 && !sim_locked() && world_len() == 0;
}

/* Adds now and then; shuts down only when the workers have finished everything. */
static void slow_producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		do_add((int)sim_random(3));
		if (sim_chance(2))
			sim_pass(sim_random(30000));
	}
	if (--w.producers == 0) {
		sim_until(nothing_live, NULL);
		do_shutdown();
	}
}

static void setup_timed(void)
{
	world_open(NULL);
	w.producers = 1 + (int)sim_random(2);
	for (int i = 0; i < w.producers; i++)
		sim_spawn("producer", slow_producer, NULL);
	sim_spawn("worker", plain_worker, NULL);
	sim_spawn("timed", timed_worker, NULL);
	if (sim_chance(2))
		sim_spawn("timed", timed_worker, NULL);
}

/* ---- other clocks ---------------------------------------------------------------- */

static int64_t deadlines[SIM_MAX_TASKS]; /* of those who wait; 0: does not wait */

/* Waits on the queue's clock; only the clock's steps end the wait. */
static void sleeper(void *arg)
{
	wq_item it;
	int self = sim_self();
	int64_t at = (int64_t)w.c + (int64_t)sim_random(40);

	deadlines[self] = at;
	if (arg) {
		int rc = sim_chance(2) ? do_wait_idle(at) : do_wait_key(1, at);

		SIM_CHECK(rc == WQ_ETIMEDOUT);
	} else if (do_get(&it, at) == WQ_OK) {
		do_done(&it);
	}
	deadlines[self] = 0;
}

static void stepper(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		SIM_CHECK(wq_manual_clock_advance(w.manual, sim_random(15)) == WQ_OK);
	SIM_CHECK(wq_manual_clock_set(w.manual, 1000) == WQ_OK);
}

static void nobody_overslept(void)
{
	for (int i = 0; i < SIM_MAX_TASKS; i++) {
		if (deadlines[i] && deadlines[i] <= world_now())
			sim_fail("everybody sleeps, one of them past its deadline %lld",
			         (long long)deadlines[i]);
	}
}

static wq_item kept;

static void setup_manual(void)
{
	memset(deadlines, 0, sizeof deadlines);
	SIM_CHECK(wq_manual_clock_new(&w.manual, 5) == WQ_OK);

	wq_clock clock = wq_manual_clock_clock(w.manual);

	world_open(&(wq_options){.clock = &clock});
	w.c = 5;
	sim_spawn("stepper", stepper, NULL);
	sim_spawn("sleeper", sleeper, NULL);
	sim_spawn("sleeper", sleeper, NULL);
	if (sim_chance(2)) {
		sim_spawn("producer", few_adds, NULL);
		return;
	}
	/* A key that nobody finishes, for those who wait for that. */
	sim_quiet_begin();
	do_add(1);
	do_get(&kept, WQ_NOWAIT);
	sim_quiet_end();
	sim_spawn("watcher", sleeper, &w);
	sim_spawn("watcher", sleeper, &w);
}

static void finish_manual(void)
{
	SIM_CHECK(wq_manual_clock_free(w.manual) == WQ_EBUSY);
	if (w.nheld)
		do_done(&kept);
}

static int64_t own_now(void *ctx)
{
	return sim_now() + *(const int64_t *)ctx;
}

static int64_t own_offset;

static void jumper(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		own_offset += sim_random(20);
		SIM_CHECK(wq_clock_changed(w.q) == WQ_OK);
		if (sim_chance(2))
			sim_pass(sim_random(20));
	}
}

/* A clock that runs by itself, and jumps: sleepers time themselves by the real one. */
static void setup_own_clock(void)
{
	static const wq_clock clock = {.now = own_now, .ctx = &own_offset};

	own_offset = 100000;
	world_open(&(wq_options){.clock = &clock});
	memset(deadlines, 0, sizeof deadlines);
	w.c = (int)world_now();
	sim_spawn("jumper", jumper, NULL);
	sim_spawn("sleeper", sleeper, NULL);
	sim_spawn("sleeper", sleeper, NULL);
	sim_spawn("producer", few_adds, NULL);
}

/* ---- idleness and single keys ------------------------------------------------------ */

static void idle_waiter(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		do_wait_idle(sim_chance(3) ? soon() : WQ_NEVER);
	producer_ends();
}

static void open_waiters(void (*waiter)(void *arg))
{
	world_open(NULL);
	w.producers = 3 + (int)sim_random(2);
	w.a = 3;
	sim_spawn("producer", plain_producer, NULL);
	for (int i = 1; i < w.producers; i++)
		sim_spawn("waiter", waiter, NULL);
	sim_spawn("worker", busy_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", busy_worker, NULL);
}

static void setup_idle(void)
{
	open_waiters(idle_waiter);
}

static void key_waiter(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		do_wait_key((int)sim_random(3), sim_chance(3) ? soon() : WQ_NEVER);
	producer_ends();
}

static void setup_key(void)
{
	open_waiters(key_waiter);
}

/*
 * Adds that come later do not prolong the wait: the worker adds its own key
 * again in every hold, and the waiter owes at most two of them.
 */
enum { WAITER = 0 };

static bool waits_or_waited(void *arg)
{
	(void)arg;
	return w.a > 0 || sim_sleeping(WAITER);
}

static void untiring_worker(void *arg)
{
	wq_item it;
	int beside = 0;

	(void)arg;
	sim_until(waits_or_waited, NULL);
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		if (sim_sleeping(WAITER))
			do_add(1);
		do_done(&it);
		if (sim_sleeping(WAITER) && ++beside > 2)
			sim_fail("a wait for a key is prolonged by later adds");
	}
}

static void key_waiter_once(void *arg)
{
	(void)arg;
	do_wait_key(1, WQ_NEVER);
	w.a = 1;
	do_shutdown();
}

static void setup_key_busy(void)
{
	world_open(NULL);
	sim_quiet_begin();
	do_add(1);
	sim_quiet_end();
	sim_spawn("waiter", key_waiter_once, NULL);
	sim_spawn("worker", untiring_worker, NULL);
}

const struct scenario scenarios_wait[] = {
    {"interrupt", "each interrupt ends one get", 50, setup_interrupt, NULL, NULL},
    {"interrupt-wide", "ten interrupts for ten gets", 10, setup_interrupt_wide, NULL, NULL},
    {"timed", "gets with and without deadlines", 60, setup_timed, NULL, NULL},
    {"manual", "a clock that is stepped beside sleepers", 40, setup_manual, finish_manual,
     nobody_overslept},
    {"own-clock", "a clock of one's own that jumps", 20, setup_own_clock, NULL, nobody_overslept},
    {"wait-idle", "waits for idleness", 40, setup_idle, NULL, NULL},
    {"wait-key", "waits for one key", 40, setup_key, NULL, NULL},
    {"wait-key-busy", "a wait for a key that never rests", 10, setup_key_busy, NULL, NULL},
    {0},
};
