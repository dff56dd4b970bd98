/* Looking: walks beside changes, the descriptor for event loops, and what a metered queue counts. */
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

static void grouped_producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		do_add_rich(2 + 2 * (int)sim_random(3), 0, "");
		if (sim_chance(2))
			sim_pass(sim_random(1000));
	}
	producer_ends();
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

/* Does not come back for what it has blocked. */
static void one_key(void *arg)
{
	wq_item it;

	(void)arg;
	if (do_get(&it, WQ_NEVER) != WQ_OK)
		return;
	work(&it);
	do_done(&it);
}

/* The group of all keys but one is full while a worker has one of them. */
static void setup_fd_groups(void)
{
	w.order = RANKED;
	w.grouped = true;
	w.limit = 1;
	world_open(NULL);
	fd = -1;
	w.producers = 1 + (int)sim_random(2);
	for (int i = 0; i < w.producers; i++)
		sim_spawn("producer", grouped_producer, NULL);
	sim_spawn("loop", event_loop, NULL);
	sim_spawn("worker", one_key, NULL);
	sim_spawn("worker", one_key, NULL);
}

/* Everybody waits, the loop among them: nothing may be ready. */
static void quiet_fd(void)
{
	sim_quiet_begin();

	int64_t ready = world_ready();

	sim_quiet_end();
	if (fd >= 0 && ready > 0)
		sim_fail("keys are ready, the descriptor is not readable, and everybody waits");
}

/* ---- metrics ---------------------------------------------------------------------------- */

/* Keys come due all the while, so that calls let go of the lock in their middle. */
static struct {
	wq_queue *q;
	wq_item twice;    /* several hand it back */
	int stale, taken; /* of them: were told so, were not */
	int dropped;
	int64_t shortest_ns; /* all holds that ended, from after the get until before the end */
	int64_t longest_ns;  /* from before the get until after the end */
	int64_t begun_ns;
	wq_snapshot before;
} meter;

static void delay_some(int n)
{
	while (n-- > 0) {
		uint32_t key = 100 + (uint32_t)sim_random(1000);

		wq_add_after(meter.q, &key, sizeof key, 1 + (int64_t)sim_random(2000));
	}
}

static void hands_back(void *arg)
{
	int rc;

	(void)arg;
	delay_some(2);
	sim_pass((int64_t)sim_random(2000));
	switch (sim_random(4)) {
	case 0:
		rc = wq_requeue(meter.q, &meter.twice, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
		break;
	case 1:
		rc = wq_retry(meter.q, &meter.twice);
		break;
	case 2:
		/* Comes back, so it asks what is due, and lets go of the lock. */
		wq_add_str(meter.q, "twice");
		rc = wq_settle(meter.q, &meter.twice, WQ_DROP);
		meter.dropped += rc >= 0;
		break;
	default:
		rc = wq_done(meter.q, &meter.twice);
	}
	SIM_CHECK(rc >= 0 || rc == WQ_ESTALE);
	meter.stale += rc < 0;
	meter.taken += rc >= 0;
}

/* Ends the holds of some items, each by itself or all at once. */
static void ends(wq_item *items, int n)
{
	if (sim_chance(2)) {
		SIM_CHECK(wq_done_many(meter.q, items, (size_t)n, NULL) == n);
		return;
	}
	for (int i = 0; i < n; i++)
		SIM_CHECK((sim_chance(2) ? wq_done(meter.q, &items[i])
		                         : wq_settle(meter.q, &items[i], WQ_RETRY)) >= 0);
}

static void timed_worker(void *arg)
{
	(void)arg;
	for (int round = 0; round < 4; round++) {
		wq_item items[2];
		int64_t before = sim_now(), got, ended;
		int n = wq_get_many_until(meter.q, items, 2, WQ_NOWAIT);

		got = sim_now();
		sim_pass((int64_t)sim_random(1000));
		for (int i = 0; i < n; i++)
			if (sim_chance(2))
				wq_add(meter.q, items[i].key, items[i].len);
		if (n <= 0)
			continue;
		ended = sim_now();
		ends(items, n);
		meter.shortest_ns += n * (ended - got);
		meter.longest_ns += n * (sim_now() - before);
	}
}

static void setup_meter(void)
{
	world_open(&(wq_options){.name = "meter"});
	meter.q = w.q;
	w.q = NULL;
	meter.stale = meter.taken = meter.dropped = 0;
	meter.shortest_ns = meter.longest_ns = 0;
	sim_quiet_begin();
	SIM_CHECK(wq_add_str(meter.q, "twice") == WQ_QUEUED);
	SIM_CHECK(wq_try_get(meter.q, &meter.twice) == WQ_OK);
	for (uint32_t key = 0; key < 6; key++)
		SIM_CHECK(wq_add(meter.q, &key, sizeof key) == WQ_QUEUED);
	SIM_CHECK(wq_snapshot_take(meter.q, &meter.before) == WQ_OK);
	sim_quiet_end();
	meter.begun_ns = sim_now();
	for (int i = 0; i < 2; i++) {
		sim_spawn("hands back", hands_back, NULL);
		sim_spawn("worker", timed_worker, NULL);
	}
}

static void finish_meter(void)
{
	wq_snapshot s;

	SIM_CHECK(wq_snapshot_take(meter.q, &s) == WQ_OK);

	/* The item that was handed back twice may have been held for as long as it all took. */
	int64_t work = (int64_t)(s.work.sum_ns - meter.before.work.sum_ns);
	int64_t most = meter.longest_ns + sim_now() - meter.begun_ns;

	SIM_CHECK(meter.taken == 1);
	if (s.stale != (uint64_t)meter.stale)
		sim_fail("%d items were stale, %d were counted", meter.stale, (int)s.stale);
	SIM_CHECK(s.dropped == (uint64_t)meter.dropped);
	if (work < meter.shortest_ns || work > most)
		sim_fail("%lld ns of work, at least %lld, at most %lld", (long long)work,
		         (long long)meter.shortest_ns, (long long)most);
	SIM_CHECK(wq_free(meter.q) >= 0);
}

const struct scenario scenarios_look[] = {
    {"meter", "what a metered queue counts while keys come due", 40, setup_meter, finish_meter,
     NULL},
    {"walk", "walks beside changes", 20, setup_walk, finish_walk, NULL},
    {"look", "lengths and states beside changes", 40, setup_look, NULL, NULL},
    {"fd", "an event loop on the descriptor", 20, setup_fd, NULL, quiet_fd},
    {"fd-groups", "the same, and a group is full now and then", 20, setup_fd_groups, NULL,
     quiet_fd},
    {0},
};
