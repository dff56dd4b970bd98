/*
 * Who wakes whom around due times: a pool whose handlers let keys wait, beside
 * Gets that leave by a time-out or an interrupt. Whenever everybody waits, one of
 * those who wait for a key sleeps no longer than until the next one comes due.
 *
 * And wake-ups that are seldom needed: a hold that is handed back ends a wait for
 * it; handlers that have become long wake more workers at a time.
 */
#include <string.h>

#include "../support/cancel.h"
#include "queue/lane.h"
#include "world.h"

static struct {
	wq_pool *p;
	bool inside[SIM_MAX_TASKS]; /* in a Get */
	int handled, getters, gone;
	int left; /* keys, as a drain has reported */
	bool stopping;
	int64_t began_ns;
} d;

static void quiet_due(void)
{
	int asleep = 0;
	int64_t first_ns = WQ_NEVER, next_ns;

	for (int i = 0; i < sim_tasks(); i++) {
		if (!d.inside[i] || !sim_sleeping(i))
			continue;
		asleep++;
		if (sim_sleeps_until(i) < first_ns)
			first_ns = sim_sleeps_until(i);
	}
	if (!asleep || !w.q)
		return;
	sim_quiet_begin();
	next_ns = wq_next_deadline(w.q);
	sim_quiet_end();
	if (first_ns > next_ns)
		sim_fail("%d wait for a key, none of them only until %lld, when one is due", asleep,
		         (long long)next_ns);
}

/* ---- a pool that retries ------------------------------------------------------------- */

static int64_t some_time(void)
{
	return 1000 + sim_random(1u << (4 + sim_random(14)));
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	d.inside[sim_self()] = false;
	sim_yield();
	if (sim_chance(4))
		sim_pass(sim_random(3000));
	d.inside[sim_self()] = true;
	if (++d.handled > 20 || d.stopping)
		return WQ_DONE;
	return sim_chance(3) ? WQ_RETRY : sim_chance(2) ? wq_again_after(some_time()) : WQ_DONE;
}

static void on_start(void *ctx, uint32_t worker)
{
	(void)ctx;
	(void)worker;
	d.inside[sim_self()] = true;
}

static void on_end(void *ctx, uint32_t worker)
{
	(void)ctx;
	(void)worker;
	d.inside[sim_self()] = false;
}

/* Comes and goes: by a key, a time-out or an interrupt. */
static void getter(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(4); n > 0; n--) {
		wq_item it;

		d.inside[sim_self()] = true;

		int rc = wq_get_until(w.q, &it, sim_chance(2) ? soon() : WQ_NEVER);

		d.inside[sim_self()] = false;
		if (rc == WQ_ESHUTDOWN)
			break;
		if (rc == WQ_OK) {
			sim_yield();
			SIM_CHECK((sim_chance(2) ? wq_done(w.q, &it) : wq_retry(w.q, &it)) >= 0);
		} else {
			SIM_CHECK(rc == WQ_ETIMEDOUT || rc == WQ_EINTERRUPTED);
		}
	}
	d.getters--;
}

static bool getters_gone(void *arg)
{
	(void)arg;
	return d.getters == 0;
}

static void adder(void *arg)
{
	(void)arg;
	for (uint32_t n = 2 + sim_random(5); n > 0; n--) {
		size_t len;
		const char *bytes = key_bytes((int)sim_random(5), &len);

		switch (sim_random(6)) {
		case 0:
			SIM_CHECK(wq_add(w.q, bytes, len) >= 0);
			break;
		case 1:
			cancel_key(w.q, bytes, len);
			break;
		case 2:
			sim_pass(some_time());
			break;
		default:
			SIM_CHECK(wq_add_after(w.q, bytes, len, some_time()) >= 0);
		}
	}
	w.producers--;
}

static bool producers_gone(void *arg)
{
	(void)arg;
	return w.producers == 0;
}

/* Resizes, which wakes the pool's workers alone, and interrupts, which wake the others. */
static void due_boss(void *arg)
{
	wq_drain_options o = {.mode = (enum wq_drain_mode)sim_random(3)};
	wq_report r;
	int rc;

	(void)arg;
	for (uint32_t n = sim_random(4); n > 0; n--) {
		if (sim_chance(2))
			wq_interrupt(w.q, 1 + (int)sim_random(2));
		else
			SIM_CHECK(wq_pool_resize(d.p, 1 + sim_random(2)) == WQ_OK);
		if (sim_chance(2))
			sim_pass(some_time());
	}
	sim_until(producers_gone, NULL);
	while (!getters_gone(NULL)) {
		wq_interrupt(w.q, d.getters);
		sim_pass(1000);
		wq_interrupt(w.q, 0);
	}
	d.stopping = true;
	rc = wq_drain_until(w.q, WQ_NEVER, &o, &r);
	SIM_CHECK(r.queued + r.running == 0);
	SIM_CHECK(rc == (r.retries + r.delayed > 0 ? WQ_LEFT : WQ_OK));
	/* Nobody waits for ever, and who fails or comes again meanwhile is left over. */
	d.left = (int)(r.retries + r.delayed);
	SIM_CHECK(wq_pool_free(d.p) == WQ_OK);
}

static void setup_due(void)
{
	const wq_options o = {.limiter = wq_limiter_fast_slow(500, 30000, 1)};
	const wq_pool_options workers = {.workers = 1 + sim_random(3),
	                                 .handler = handle,
	                                 .on_start = on_start,
	                                 .on_end = on_end};

	memset(&d, 0, sizeof d);
	world_open(&o);
	SIM_CHECK(wq_pool_start(&d.p, w.q, &workers) == WQ_OK);
	d.getters = (int)sim_random(3);
	for (int i = 0; i < d.getters; i++)
		sim_spawn("getter", getter, NULL);
	w.producers = 1 + (int)sim_random(2);
	for (int i = 0; i < w.producers; i++)
		sim_spawn("adder", adder, NULL);
	sim_spawn("boss", due_boss, NULL);
}

static void finish_due_pool(void)
{
	SIM_CHECK(wq_free(w.q) == d.left);
	w.q = NULL;
}

static void finish_due(void)
{
	SIM_CHECK(wq_free(w.q) >= 0);
	w.q = NULL;
}

/* ---- a hold that is handed back -------------------------------------------------------- */

static wq_item held;

static void giver(void *arg)
{
	(void)arg;
	sim_yield();
	SIM_CHECK(wq_requeue(w.q, &held, WQ_TAIL) == WQ_QUEUED);
}

/* Nobody gets the key again: the end of that hold has to do. */
static void synchronous_canceller(void *arg)
{
	size_t len;
	const char *bytes = key_bytes(1, &len);

	(void)arg;
	SIM_CHECK(cancel_key_until(w.q, bytes, len, WQ_NEVER) > 0);
}

static void setup_given_back(void)
{
	size_t len;
	const char *bytes = key_bytes(1, &len);

	world_open(NULL);
	sim_quiet_begin();
	SIM_CHECK(wq_add(w.q, bytes, len) == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &held) == WQ_OK);
	sim_quiet_end();
	sim_spawn("giver", giver, NULL);
	sim_spawn("canceller", synchronous_canceller, NULL);
}

/* ---- handlers that have become long ------------------------------------------------------ */

enum { LONG_KEYS = 6, LONG_NS = 200000 };

static void long_worker(void *arg)
{
	wq_item it;
	int rc;

	(void)arg;
	for (rc = wq_get(w.q, &it); rc == WQ_OK; rc = wq_next(w.q, &it)) {
		/* It takes long while one who was woken has not come yet. */
		sim_yield();
		if (sim_chance(2))
			sim_advance(LONG_NS);
		d.handled++;
	}
	SIM_CHECK(rc == WQ_ESHUTDOWN);
}

static bool all_handled(void *arg)
{
	(void)arg;
	return d.handled == LONG_KEYS;
}

static void crowd(void *arg)
{
	(void)arg;
	for (int i = 0; i < LONG_KEYS; i++) {
		size_t len;
		const char *bytes = key_bytes(i, &len);

		SIM_CHECK(wq_add(w.q, bytes, len) == WQ_QUEUED);
	}
	sim_until(all_handled, NULL);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

/* One hold in 64 is timed, and the next one is. If it is long, a Get wakes more at a time. */
static void setup_width(void)
{
	wq_item it = {.token = 0};

	memset(&d, 0, sizeof d);
	world_open(NULL);
	sim_quiet_begin();
	do {
		SIM_CHECK(wq_add_str(w.q, "short") == WQ_QUEUED);
		SIM_CHECK(wq_try_get(w.q, &it) == WQ_OK);
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
	} while (it.token / WQ__HOLDS % 64 != 63);
	sim_quiet_end();
	for (int i = 0; i < 4; i++)
		sim_spawn("worker", long_worker, NULL);
	sim_spawn("producer", crowd, NULL);
}

/* ---- idle, though something is due ------------------------------------------------------- */

enum { FAR_NS = 1000000000 };

static void dead_holder(void *arg)
{
	(void)arg;
	sim_pass(200);
	SIM_CHECK(wq_done(w.q, &held) == WQ_OK);
}

static void plain_getter(void *arg)
{
	wq_item it;

	(void)arg;
	while (wq_get(w.q, &it) == WQ_OK) {
		sim_yield();
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
	}
}

static void idler(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_wait_idle_until(w.q, WQ_NEVER) == WQ_OK);
	/* No key was ready or held, and none was due, long before. */
	SIM_CHECK(sim_now() - d.began_ns < FAR_NS / 2);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

/*
 * A copy that was moved has left a dead reference. Where one hold of the lock moves
 * few due keys (--hold 1), it may be the last that is due: whoever finds it dead says
 * that the queue is idle.
 */
static void setup_dead(void)
{
	wq_add_options far = {.after_ns = FAR_NS};

	memset(&d, 0, sizeof d);
	world_open(NULL);
	d.began_ns = sim_now();
	sim_quiet_begin();
	SIM_CHECK(wq_add_str(w.q, "held") == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &held) == WQ_OK);
	for (char k[] = "0"; k[0] < '4'; k[0]++)
		SIM_CHECK(wq_add_with(w.q, k, 1, &far) == WQ_DELAYED);
	SIM_CHECK(wq_add_after(w.q, "due", 3, 100) == WQ_DELAYED);
	SIM_CHECK(wq_add_after(w.q, "moved", 5, 110) == WQ_DELAYED);
	SIM_CHECK(wq_reschedule(w.q, "moved", 5, sim_now() + FAR_NS) == WQ_MOVED);
	sim_quiet_end();
	sim_spawn("worker", plain_getter, NULL);
	sim_spawn("holder", dead_holder, NULL);
	sim_spawn("idler", idler, NULL);
}

/* ---- keys come due while a shutdown leaves them over ---------------------------------------------- */

static wq_verdict handle_once(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	sim_yield();
	return WQ_DONE;
}

static void on_end_count(void *ctx, uint32_t worker)
{
	(void)ctx;
	(void)worker;
	d.gone++;
}

static void time_passes(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		sim_yield();
		sim_advance(sim_random(300));
	}
}

static void shut_down(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

/* Not of the pool: its Gets and ends of holds are steps of their own. */
static void passer_by(void *arg)
{
	wq_item got[2];
	int n = 0;

	(void)arg;
	for (int tries = 0; n < 2 && tries < 40; tries++)
		if (wq_try_get(w.q, &got[n]) == WQ_OK)
			n++;
		else
			sim_yield();
	SIM_CHECK(wq_done(w.q, &held) == WQ_OK);
	while (n > 0)
		SIM_CHECK(wq_done(w.q, &got[--n]) >= 0);
}

static bool workers_gone(void *arg)
{
	(void)arg;
	return d.gone == w.workers;
}

/* They end by themselves, also those who fell asleep before the last key was in line. */
static void drop_boss(void *arg)
{
	(void)arg;
	sim_until(workers_gone, NULL);
	SIM_CHECK(wq_pool_free(d.p) == WQ_OK);
}

static void setup_drop_due(void)
{
	const wq_pool_options workers = {.workers = 2,
	                                 .handler = handle_once,
	                                 .on_end = on_end_count};

	memset(&d, 0, sizeof d);
	world_open(NULL);
	w.workers = 2;
	sim_quiet_begin();
	SIM_CHECK(wq_add_str(w.q, "held") == WQ_QUEUED);
	SIM_CHECK(wq_try_get(w.q, &held) == WQ_OK);
	for (int key = 1; key < NKEYS; key++) {
		size_t len;
		const char *bytes = key_bytes(key, &len);

		SIM_CHECK(wq_add_after(w.q, bytes, len, 40 * key) > 0);
	}
	sim_quiet_end();
	SIM_CHECK(wq_pool_start(&d.p, w.q, &workers) == WQ_OK);
	sim_spawn("passer-by", passer_by, NULL);
	sim_spawn("time", time_passes, NULL);
	sim_spawn("shutter", shut_down, NULL);
	sim_spawn("boss", drop_boss, NULL);
}

/* ---- what is due stands before what is added ------------------------------------------- */

static void due_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (wq_get(w.q, &it) == WQ_OK) {
		d.handled += strcmp(it.key, "due") == 0;
		if (strcmp(it.key, "added") == 0 && d.handled == 0)
			sim_fail("a key that was added goes before one that was due by then");
		sim_yield();
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
	}
}

static void due_producer(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_add_str(w.q, "one") == WQ_QUEUED);
	SIM_CHECK(wq_add_after(w.q, "due", 3, 1000) == WQ_DELAYED);
	sim_yield();
	sim_advance(2000);
	SIM_CHECK(wq_add_str(w.q, "added") == WQ_QUEUED);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void setup_due_first(void)
{
	memset(&d, 0, sizeof d);
	world_open(NULL);
	sim_spawn("worker", due_worker, NULL);
	sim_spawn("producer", due_producer, NULL);
}

/* ---- a batch that needs more than the lane in its midst ----------------------------------- */

static void batch_worker(void *arg)
{
	wq_item it;

	(void)arg;
	for (;;) {
		sim_getting(true);

		int rc = wq_get(w.q, &it);

		sim_getting(false);
		if (rc != WQ_OK)
			return;
		SIM_CHECK(wq_done(w.q, &it) == WQ_OK);
		d.handled++;
	}
}

static bool batch_handled(void *arg)
{
	(void)arg;
	return d.handled == 2;
}

static void batch_producer(void *arg)
{
	const wq_key keys[] = {{"new", 3}, {"waits", 5}};

	/* Never: the worker sleeps without a deadline then, and nothing but a wake-up ends that. */
	int64_t after_ns = sim_chance(2) ? FAR_NS : WQ_NEVER;

	(void)arg;
	SIM_CHECK(wq_add_after(w.q, "waits", 5, after_ns) == WQ_DELAYED);
	SIM_CHECK(wq_add_many(w.q, keys, 2, NULL) == 2);
	sim_until(batch_handled, NULL);
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void bystander(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6; i++) {
		SIM_CHECK(wq_len(w.q) >= 0);
		world_beside();
	}
}

static void setup_batch_beside(void)
{
	memset(&d, 0, sizeof d);
	world_open(NULL);
	sim_spawn("worker", batch_worker, NULL);
	sim_spawn("producer", batch_producer, NULL);
	sim_spawn("bystander", bystander, NULL);
}

const struct scenario scenarios_due[] = {
    {"due-pool", "who wakes for the next due time: retries, time-outs, interrupts", 60, setup_due,
     finish_due_pool, quiet_due},
    {"given-back", "a requeue ends a wait for the hold", 5, setup_given_back, finish_due, NULL},
    {"width", "handlers become long while keys come", 10, setup_width, finish_due, NULL},
    {"idle-dead", "a queue is idle when the last due reference is dead", 5, setup_dead, finish_due,
     NULL},
    {"due-first", "what is due stands before what is added", 10, setup_due_first, finish_due, NULL},
    {"batch-beside", "a batch lets go of the lock in its midst", 10, setup_batch_beside, finish_due,
     NULL},
    {"drop-due", "keys come due while a shutdown leaves them over", 20, setup_drop_due, finish_due,
     NULL},
    {0},
};
