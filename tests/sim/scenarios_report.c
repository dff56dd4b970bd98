/*
 * What a drain reports is what was there, in whatever order it meets the ends of
 * holds. One hold of the lock deals with a single key that waits, so that holds end
 * in the midst of it.
 */
#include <string.h>

#include "world.h"

enum { FAR_NS = 1000000000, OTHERS = 3 };

static struct {
	wq_pool *p;
	wq_item held;
	uint64_t copies; /* that waited when all began, and none of them comes due; 0: some do */
	bool done;       /* the holder does not fail */
	int handled;
	int left; /* keys, as a drain has shown them */
} r;

/* The key with a number, by its bytes. */
#define KEY(number) key_bytes(number, &(size_t){0}), key_len(number)

static size_t key_len(int number)
{
	size_t len;

	key_bytes(number, &len);
	return len;
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	sim_yield();
	return ++r.handled < 30 && sim_chance(2) ? WQ_RETRY : WQ_DONE;
}

static void begin(void)
{
	const wq_options o = {.limiter = wq_limiter_exponential(FAR_NS, FAR_NS)};
	const wq_pool_options workers = {.workers = 2, .handler = handle};

	memset(&r, 0, sizeof r);
	world_open(&o);
	wq__hold_limit = 1;
	sim_quiet_begin();
	SIM_CHECK(wq_add(w.q, KEY(1)) == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &r.held) == WQ_OK);
	for (int i = 0; i < OTHERS; i++)
		SIM_CHECK(wq_add_after(w.q, KEY(2 + i), FAR_NS + i) == WQ_DELAYED);
	sim_quiet_end();
	SIM_CHECK(wq_pool_start(&r.p, w.q, &workers) == WQ_OK);
}

static void holder(void *arg)
{
	(void)arg;
	sim_yield();
	SIM_CHECK(wq_retry(w.q, &r.held) >= 0);
}

/* Keys with this bit, or with this one and not the other. */
static uint64_t count(int with, int without)
{
	uint64_t n = 0;

	for (int key = 1; key <= 1 + OTHERS; key++) {
		int state = wq_state(w.q, KEY(key));

		SIM_CHECK((state & ~(WQ_STATE_LEFT | WQ_STATE_RETRYING)) == 0);
		n += (state & with) != 0 && (state & without) == 0;
	}
	return n;
}

static int count_shown(void *ctx, const wq_key_info *info)
{
	++*(uint64_t *)ctx;
	SIM_CHECK(info->state & WQ_STATE_LEFT);
	return 0;
}

static void drain(enum wq_drain_mode mode)
{
	uint64_t shown = 0, retries, delayed;
	wq_drain_options o = {.mode = mode, .left = count_shown, .ctx = &shown};
	wq_report report;
	int rc = wq_drain_until(w.q, WQ_NEVER, &o, &report);

	SIM_CHECK(report.queued + report.running + report.dirty == 0);
	SIM_CHECK(rc == (report.retries + report.delayed > 0 ? WQ_LEFT : WQ_OK));
	SIM_CHECK(shown == count(WQ_STATE_LEFT, 0));
	retries = count(WQ_STATE_RETRYING, 0);
	delayed = count(WQ_STATE_LEFT, WQ_STATE_RETRYING);
	if (report.retries != retries)
		sim_fail("%llu keys wait for a retry, %llu reported", (unsigned long long)retries,
		         (unsigned long long)report.retries);
	/* A key with a retry may have a reminder beside it. */
	if (report.delayed != delayed &&
	    !(wq_state(w.q, KEY(1)) & WQ_STATE_RETRYING && report.delayed == delayed + 1))
		sim_fail("%llu keys are delayed, %llu reported", (unsigned long long)delayed,
		         (unsigned long long)report.delayed);
	/* Everything has run; who is left has failed. */
	SIM_CHECK(mode != WQ_DRAIN_RUN || report.delayed == 0);
	if (r.copies && (report.retries != !r.done || report.delayed != r.copies - !r.done))
		sim_fail("%llu copies waited, %d for a retry; reported were %llu and %llu",
		         (unsigned long long)r.copies, !r.done, (unsigned long long)report.delayed,
		         (unsigned long long)report.retries);
	SIM_CHECK(wq_pool_free(r.p) == WQ_OK);
	r.left = (int)shown;
}

static void leaver(void *arg)
{
	(void)arg;
	drain(WQ_DRAIN_LEAVE);
}

static void runner(void *arg)
{
	(void)arg;
	drain(WQ_DRAIN_RUN);
}

/* The end of the hold says whether the copy will come due. */
static void ender(void *arg)
{
	(void)arg;
	sim_yield();

	int shut = wq_shutting_down(w.q);
	int rc = r.done ? wq_done(w.q, &r.held) : wq_retry(w.q, &r.held);

	SIM_CHECK(rc == WQ_LEFT || (rc == WQ_DELAYED && !shut));
}

/* The held key waits as well, and its retry merges with that copy, before the drain or after. */
static void setup_waiting(void)
{
	begin();
	sim_quiet_begin();
	SIM_CHECK(wq_add_after(w.q, KEY(1), FAR_NS) == WQ_DELAYED);
	sim_quiet_end();
	r.copies = OTHERS + 1;
	r.done = sim_chance(2);
	sim_spawn("holder", ender, NULL);
	sim_spawn("drainer", leaver, NULL);
}

/* To a time that has passed: it is due at once. */
static void rescheduler(void *arg)
{
	(void)arg;
	sim_yield();
	wq_reschedule(w.q, KEY(1), 1);
}

/* It has a reminder, which may come due after the key was left over: then it comes back. */
static void setup_left(void)
{
	wq_add_options remind = {.after_ns = FAR_NS + OTHERS, .policy = WQ_REMIND};

	begin();
	sim_quiet_begin();
	SIM_CHECK(wq_add_with(w.q, KEY(1), &remind) == WQ_DELAYED);
	sim_quiet_end();
	sim_spawn("holder", holder, NULL);
	sim_spawn("rescheduler", rescheduler, NULL);
	sim_spawn("drainer", sim_chance(2) ? runner : leaver, NULL);
}

/* The queue was drained before it was shut down, whoever notices that first. */
static void done_then_shut(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_done(w.q, &r.held) == WQ_OK);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void plain_drainer(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_drain_until(w.q, WQ_NEVER, NULL, NULL) == WQ_OK);
}

static void setup_ended(void)
{
	memset(&r, 0, sizeof r);
	world_open(NULL);
	sim_quiet_begin();
	SIM_CHECK(wq_add(w.q, KEY(1)) == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &r.held) == WQ_OK);
	sim_quiet_end();
	sim_spawn("holder", done_then_shut, NULL);
	sim_spawn("drainer", plain_drainer, NULL);
}

static void finish(void)
{
	SIM_CHECK(wq_free(w.q) == r.left);
	w.q = NULL;
}

const struct scenario scenarios_report[] = {
    {"report-waiting", "each copy that waits is reported once", 10, setup_waiting, finish, NULL},
    {"report-left", "keys that fail, and a copy that comes due meanwhile", 10, setup_left, finish,
     NULL},
    {"report-ended", "a shutdown does not interrupt a drain that has ended", 5, setup_ended, finish,
     NULL},
    {0},
};
