/* Looking: walks beside changes, and the descriptor for event loops. */
#include <poll.h>

#include "world.h"

/* ---- walks ------------------------------------------------------------------------- */

enum { HELD_FROM = 8, HELD_KEYS = 3 };

static wq_item kept[HELD_KEYS];

struct seen {
	int times[NKEYS];
};

static int see(void *ctx, const wq_key_info *info)
{
	wq_item fake = {.key = info->key, .len = info->len};
	int key = key_of(&fake);

	SIM_CHECK(info->age_ns >= 0);
	SIM_CHECK(info->state == WQ_STATE_QUEUED || info->state == WQ_STATE_RUNNING ||
	          info->state == (WQ_STATE_RUNNING | WQ_STATE_DIRTY));
	((struct seen *)ctx)->times[key]++;
	sim_yield();
	if (sim_chance(8))
		do_len(); /* the callback may use the queue */
	return 0;
}

/* Keys that live throughout are seen once. */
static void walker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		struct seen seen = {{0}};
		int64_t n = wq_walk(w.q, see, &seen), total = 0;

		for (int k = 0; k < NKEYS; k++) {
			total += seen.times[k];
			SIM_CHECK(seen.times[k] <= 1 || k < HELD_FROM);
		}
		for (int k = HELD_FROM; k < HELD_FROM + HELD_KEYS; k++)
			SIM_CHECK(seen.times[k] == 1);
		SIM_CHECK(n == total);
	}
	producer_ends();
}

static void mover(void *arg)
{
	(void)arg;
	add_some(4, HELD_FROM);
	producer_ends();
}

static void finish_walk(void)
{
	for (int i = 0; i < HELD_KEYS; i++)
		do_done(&kept[i]);
}

static void setup_walk(void)
{
	world_open(NULL);
	sim_quiet_begin();
	for (int i = 0; i < HELD_KEYS; i++) {
		do_add(HELD_FROM + i);
		do_get(&kept[i], WQ_NOWAIT);
	}
	sim_quiet_end();
	w.producers = 3;
	sim_spawn("walker", walker, NULL);
	sim_spawn("walker", walker, NULL);
	sim_spawn("producer", mover, NULL);
	sim_spawn("worker", plain_worker, NULL);
}

/* ---- states and lengths --------------------------------------------------------------- */

static void onlooker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6; i++) {
		if (sim_chance(2))
			do_len();
		else
			do_state((int)sim_random(3));
	}
	producer_ends();
}

static void few_adds(void *arg)
{
	(void)arg;
	add_some(5, 3);
	producer_ends();
}

static void setup_look(void)
{
	world_open(NULL);
	w.producers = 3;
	sim_spawn("onlooker", onlooker, NULL);
	sim_spawn("producer", few_adds, NULL);
	sim_spawn("producer", few_adds, NULL);
	sim_spawn("worker", plain_worker, NULL);
	sim_spawn("worker", plain_worker, NULL);
}

/* ---- the descriptor --------------------------------------------------------------------- */

static int fd;

static bool readable(void *arg)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)arg;
	return poll(&p, 1, 0) == 1;
}

/* An event loop: sleeps on the descriptor, takes everything, sleeps again. */
static void event_loop(void *arg)
{
	(void)arg;
	fd = wq_fd(w.q);
	SIM_CHECK(fd >= 0);
	for (;;) {
		wq_item it;
		int rc;

		sim_until(readable, NULL);
		while ((rc = do_get(&it, WQ_NOWAIT)) == WQ_OK) {
			work(&it);
			do_done(&it);
		}
		if (rc == WQ_ESHUTDOWN)
			break;
	}
	SIM_CHECK(readable(NULL));
	SIM_CHECK(wq_fd(w.q) == fd);
}

static void marking_producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		do_add((int)sim_random(2));
		if (sim_chance(2))
			sim_pass(sim_random(1000));
	}
	if (--w.producers == 0) {
		if (sim_chance(2))
			sim_pass(1000000);
		do_shutdown();
	}
}

static void setup_fd(void)
{
	world_open(NULL);
	fd = -1;
	w.producers = 1 + (int)sim_random(2);
	for (int i = 0; i < w.producers; i++)
		sim_spawn("producer", marking_producer, NULL);
	sim_spawn("loop", event_loop, NULL);
	if (sim_chance(2))
		sim_spawn("worker", plain_worker, NULL);
}

/* Everybody waits, the loop among them: nothing may be ready. */
static void quiet_fd(void)
{
	if (fd >= 0 && world_len() > 0)
		sim_fail("keys are ready, the descriptor is not readable, and everybody waits");
}

const struct scenario scenarios_look[] = {
    {"walk", "walks beside changes", 20, setup_walk, finish_walk, NULL},
    {"look", "lengths and states beside changes", 40, setup_look, NULL, NULL},
    {"fd", "an event loop on the descriptor", 20, setup_fd, NULL, quiet_fd},
    {0},
};
