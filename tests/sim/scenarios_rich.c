/*
 * Priorities, groups and values, with several workers: what the judge of the history says about
 * levels, turns, tokens and values (history.c), and who has to wake whom.
 *
 * A hold that ends may give its group a place: somebody who sleeps beside blocked keys has to wake.
 * A group that gets a token has nobody who says so: one of the sleepers has to know the time. And a
 * get of a shut queue waits for blocked keys, but no longer than they are in line.
 */
#include "../support/cancel.h"
#include "world.h"

/* Of this scenario's adds: a letter, so that each value tells which adds it is of. */
static void add_letter(int nkeys)
{
	char text[2] = {(char)('A' + w.c++ % 26), '\0'};

	do_add_rich((int)sim_random((uint32_t)nkeys), (int)sim_random(3),
	            sim_chance(4) ? "" : text);
}

static void rich_producer(void *arg)
{
	(void)arg;
	for (uint32_t n = 3 + sim_random(4); n > 0; n--)
		add_letter(7);
	producer_ends();
}

/* Adds its key again, gives it back, or takes a second one without waiting for it. */
static void rich_worker(void *arg)
{
	wq_item it, other;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		bool two = sim_chance(4) && do_get(&other, WQ_NOWAIT) == WQ_OK;

		work(&it);
		if (two)
			do_done(&other);
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			if (sim_chance(2)) {
				do_requeue(&it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
				continue;
			}
			do_add_rich(key_of(&it), (int)sim_random(3), "z");
		}
		do_done(&it);
	}
}

static void rich_next_worker(void *arg)
{
	wq_item it;
	int rc;

	(void)arg;
	for (rc = do_get(&it, WQ_NEVER); rc == WQ_OK; rc = do_next(&it, WQ_NEVER))
		work(&it);
}

static void rich_batch_worker(void *arg)
{
	wq_item items[MAX_BATCH];
	int n;

	(void)arg;
	/* Where groups have a rate, it may take several holds of the lock to get more than one. */
	while ((n = do_get_many(items, w.paced ? 1 : 1 + (int)sim_random(3), WQ_NEVER)) > 0) {
		work(items);
		do_done_many(items, n);
	}
}

static void open_rich(bool grouped, uint32_t limit, int64_t token_ns)
{
	w.order = RANKED;
	w.grouped = grouped;
	w.limit = limit;
	w.token_ns = token_ns;
	world_open(NULL);
}

static void spawn_workers(void)
{
	sim_spawn("worker", rich_worker, NULL);
	sim_spawn("worker", sim_chance(2) ? rich_worker : rich_next_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", sim_chance(2) ? rich_worker : rich_batch_worker, NULL);
}

/* A key that waits for ever so long, so that adds look at the time; and it is gone in the end. */
static const char late_key[] = "late";

static void let_one_wait(void)
{
	sim_quiet_begin();
	SIM_CHECK(wq_add_after(w.q, late_key, 4, WQ_HOUR) == WQ_DELAYED);
	sim_quiet_end();
}

static void finish_late(void)
{
	cancel_key(w.q, late_key, 4);
}

static void setup_ranks(void)
{
	open_rich(false, 0, 0);
	if (sim_chance(2))
		let_one_wait();
	w.a = 5;
	w.producers = 2;
	sim_spawn("producer 1", rich_producer, NULL);
	sim_spawn("producer 2", rich_producer, NULL);
	spawn_workers();
}

static void setup_groups(void)
{
	open_rich(true, sim_random(3), 0);
	if (sim_chance(4))
		let_one_wait();
	w.a = 5;
	w.producers = 2;
	sim_spawn("producer 1", rich_producer, NULL);
	sim_spawn("producer 2", rich_producer, NULL);
	spawn_workers();
}

/* ---- a place that becomes free ---------------------------------------------------------- */

static bool second_is_done(void *arg)
{
	(void)arg;
	return w.handled >= w.b;
}

/* Fills the group, empties it, and does not come back: others have to take what was blocked. */
static void leaving_worker(void *arg)
{
	wq_item it[2];
	int n = 0;

	(void)arg;
	while (n < (int)w.limit && do_get(&it[n], WQ_NEVER) == WQ_OK)
		n++;
	sim_yield();
	for (int i = 0; i < n; i++) {
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			w.b++;
			do_requeue(&it[i], sim_chance(2) ? WQ_HEAD : WQ_TAIL);
		} else {
			do_done(&it[i]);
		}
	}
	sim_until(second_is_done, NULL);
	do_shutdown();
}

static bool group_is_full(void *arg)
{
	(void)arg;
	return w.nheld == (int)w.limit || w.handled > 0;
}

static void late_worker(void *arg)
{
	sim_until(group_is_full, NULL);
	rich_worker(arg);
}

static void setup_handover(void)
{
	open_rich(true, 1 + sim_random(2), 0);
	w.b = (int)w.limit + 2;
	w.producers = 1;
	sim_quiet_begin();
	for (int i = 0; i < w.b; i++)
		do_add_rich(2 + 2 * i, 0, "k");
	sim_quiet_end();
	w.a = 0;
	sim_spawn("first", leaving_worker, NULL);
	sim_spawn("second", late_worker, NULL);
	if (sim_chance(2))
		sim_spawn("third", late_worker, NULL);
}

/* The same, but what is held comes back: by a requeue. */
static void setup_back(void)
{
	setup_handover();
	w.a = 1;
}

/* ---- tokens ------------------------------------------------------------------------------ */

/* Whoever sleeps beside a group knows when it has a token. */
static void quiet_tokens(void)
{
	int asleep, under_way;
	int64_t first_ns = INT64_MAX, next_ns;

	if (!w.q)
		return;
	sim_sleepers(&asleep, &under_way);
	for (int i = 0; i < sim_tasks(); i++) {
		if (sim_dozing(i) && sim_sleeps_until(i) < first_ns)
			first_ns = sim_sleeps_until(i);
	}
	sim_quiet_begin();
	next_ns = wq_next_deadline(w.q);
	if (wq_len(w.q) == 0)
		next_ns = INT64_MAX;
	sim_quiet_end();
	/* Whoever was set and not woken sleeps on, too. */
	asleep += under_way;
	if (asleep > 0 && first_ns > next_ns)
		sim_fail(
		    "%d wait for a key, none of them only until %lld, when a group has a token",
		    asleep, (long long)next_ns);
}

static void slow_producer(void *arg)
{
	(void)arg;
	for (uint32_t n = 3 + sim_random(3); n > 0; n--) {
		add_letter(5);
		if (sim_chance(2))
			sim_pass(sim_random(1u << (4 + sim_random(10))));
	}
	producer_ends();
}

/* Comes and goes, by a key or its time. */
static void passer_by(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		wq_item it;
		int rc = sim_chance(2) ? do_get(&it, soon()) : do_get_many(&it, 1, soon());

		if (rc == WQ_ESHUTDOWN)
			return;
		if (rc >= 0)
			do_done(&it);
	}
}

static void paced_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		work(&it);
		do_done(&it);
	}
}

static void setup_rates(void)
{
	open_rich(true, sim_random(3), 1000 + sim_random(9000));
	w.producers = 2;
	sim_spawn("producer 1", slow_producer, NULL);
	sim_spawn("producer 2", slow_producer, NULL);
	sim_spawn("worker 1", paced_worker, NULL);
	sim_spawn("worker 2", sim_chance(2) ? paced_worker : rich_batch_worker, NULL);
	if (sim_chance(2))
		sim_spawn("passer-by", passer_by, NULL);
}

/*
 * A bucket that is not full outlives its keys. The leader sleeps until it is, and has to be told
 * when a key comes that may start sooner.
 */
static void bursts(void *arg)
{
	(void)arg;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			do_add_rich(2 + 2 * (int)sim_random(3), 0, "k");
		sim_pass(sim_random(12000));
	}
	producer_ends();
}

static void setup_bursts(void)
{
	w.order = RANKED;
	w.grouped = true;
	world_open(&(wq_options){.group_rate = 250000, .group_burst = 2 + sim_random(2)});
	w.producers = 1;
	sim_spawn("producer", bursts, NULL);
	sim_spawn("worker 1", sim_chance(2) ? paced_worker : rich_batch_worker, NULL);
	sim_spawn("worker 2", sim_chance(2) ? paced_worker : passer_by, NULL);
	sim_spawn("passer-by", passer_by, NULL);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* w.b: workers that are still there. */

static bool am_alone(void *arg)
{
	(void)arg;
	return w.b == 1;
}

/* Whoever has the last key keeps it until all others have left: they must not wait for it. */
static void last_worker(void *arg)
{
	wq_item it;
	int rc = do_get(&it, WQ_NEVER);

	(void)arg;
	while (rc == WQ_OK) {
		work(&it);
		if (w.producers == 0 && w.nheld == 1 && !sim_locked() && world_len() == 0)
			sim_until(am_alone, NULL);
		do_done(&it);
		rc = do_get(&it, WQ_NEVER);
	}
	w.b--;
}

static void setup_last(void)
{
	open_rich(true, 1, 0);
	w.producers = 1;
	w.b = 2 + (int)sim_random(2);
	for (int i = 0; i < w.b; i++)
		sim_spawn("worker", last_worker, NULL);
	sim_spawn("producer", rich_producer, NULL);
}

static void drainer(void *arg)
{
	(void)arg;
	do_drain(sim_chance(2) ? WQ_NEVER : soon(), NULL, NULL);
	w.producers = 0;
}

static bool producers_gone(void *arg)
{
	(void)arg;
	return w.producers == 0;
}

static void stopper(void *arg)
{
	sim_yield();
	if (sim_chance(2))
		drainer(arg);
	else
		do_shutdown();
	sim_until(producers_gone, NULL);
}

static void adding(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6; i++)
		add_letter(7);
	if (w.producers > 0)
		w.producers--;
}

static void setup_stop(void)
{
	open_rich(true, 1 + sim_random(2), 0);
	w.a = 3;
	w.producers = 2;
	sim_spawn("adder 1", adding, NULL);
	sim_spawn("adder 2", adding, NULL);
	sim_spawn("stopper", stopper, NULL);
	spawn_workers();
}

const struct scenario scenarios_rich[] = {
    {"ranks", "priorities and values", 30, setup_ranks, finish_late, NULL},
    {"groups", "groups with and without a limit", 40, setup_groups, finish_late, NULL},
    {"group-handover", "a hold that ends lets others take what was blocked", 20, setup_handover,
     NULL, NULL},
    {"group-back", "the same, and a key comes back", 20, setup_back, NULL, NULL},
    {"group-rates", "groups with a rate", 30, setup_rates, NULL, quiet_tokens},
    {"group-bursts", "buckets that are not full outlive their keys", 20, setup_bursts, NULL,
     quiet_tokens},
    {"group-last", "gets of a shut queue wait for blocked keys, and no longer", 20, setup_last,
     NULL, NULL},
    {"group-stop", "shutdown and drain beside full groups", 30, setup_stop, NULL, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL},
};
