/*
 * Keys go in, are worked on, and come back.
 *
 * In the "together" scenarios the handlers wait for each other: all keys of a
 * round must be with a worker at the same time before any of them is done. A
 * wake-up that is merely late would pass all other checks, because the worker
 * who is awake takes the second key when it is done with the first; here it
 * never is. Whoever else takes part leaves after a while, so that nobody's
 * time-out repairs what was lost.
 */
#include "world.h"

/* ---- producers and workers ------------------------------------------------- */

static void next_worker(void *arg)
{
	wq_item it;
	int rc;

	(void)arg;
	for (rc = do_get(&it, WQ_NEVER); rc == WQ_OK; rc = do_next(&it, WQ_NEVER))
		work(&it);
}

static void open_producers(void (*first)(void *arg), void (*second)(void *arg))
{
	world_open(NULL);
	w.producers = 2;
	sim_spawn("producer 1", first, NULL);
	sim_spawn("producer 2", second, NULL);
}

static void two_or_three(void (*worker)(void *arg))
{
	for (uint32_t n = 2 + sim_random(2); n > 0; n--)
		sim_spawn("worker", worker, NULL);
}

static void setup_workers(void)
{
	open_producers(plain_producer, plain_producer);
	two_or_three(plain_worker);
}

static void setup_next(void)
{
	open_producers(plain_producer, plain_producer);
	sim_spawn("worker", next_worker, NULL);
	sim_spawn("worker", next_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", plain_worker, NULL);
}

/* ---- keys that come back ---------------------------------------------------- */

static void readding_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			do_add(key_of(&it));
		}
		work(&it);
		do_done(&it);
	}
}

static void setup_readd(void)
{
	open_producers(plain_producer, plain_producer);
	w.a = 6;
	two_or_three(readding_worker);
}

static bool key_is_back(void *arg)
{
	(void)arg;
	return w.handled >= 2;
}

static bool key_is_held(void *arg)
{
	(void)arg;
	return w.nheld > 0 || w.handled > 0;
}

/* Holds the key, gives it back dirty or unfinished, and leaves it to the others. */
static void first_worker(void *arg)
{
	wq_item it;

	if (do_get(&it, WQ_NEVER) != WQ_OK)
		return;
	do_add(key_of(&it));
	work(&it);
	if (arg)
		do_requeue(&it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
	else
		do_done(&it);
	sim_until(key_is_back, NULL);
	do_shutdown();
}

/* Comes when the key is with the first: sleeps until it is given back. */
static void second_worker(void *arg)
{
	sim_until(key_is_held, NULL);
	plain_worker(arg);
}

static void setup_handover(void)
{
	bool requeue = sim_chance(2);

	world_open(NULL);
	sim_quiet_begin();
	do_add(1);
	sim_quiet_end();
	sim_spawn("first", first_worker, requeue ? &w : NULL);
	sim_spawn("second", second_worker, NULL);
	if (sim_chance(2))
		sim_spawn("third", second_worker, NULL);
}

static void requeueing_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		work(&it);
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			do_requeue(&it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
		} else {
			do_done(&it);
		}
	}
}

static void setup_requeue(void)
{
	open_producers(plain_producer, plain_producer);
	w.a = 6;
	two_or_three(requeueing_worker);
}

/* ---- items that are handed back twice --------------------------------------- */

static void careless_worker(void *arg)
{
	wq_item it, copy;
	bool have = false;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		if (have && sim_chance(2))
			do_done_stale(&copy);
		copy = it;
		have = true;
		work(&it);
		do_done(&it);
		if (sim_chance(2))
			do_done_stale(&it);
	}
	if (have)
		do_done_stale(&copy);
}

static void setup_stale(void)
{
	open_producers(plain_producer, plain_producer);
	sim_spawn("worker", careless_worker, NULL);
	sim_spawn("worker", careless_worker, NULL);
}

/* ---- many at once ------------------------------------------------------------ */

static void batch_producer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		int keys[MAX_BATCH];
		int n = 1 + (int)sim_random(5);

		for (int j = 0; j < n; j++)
			keys[j] = (int)sim_random(8);
		do_add_many(keys, n);
	}
	producer_ends();
}

static void batch_worker(void *arg)
{
	wq_item items[MAX_BATCH];
	int n, most = sim_chance(2) ? 3 : MAX_BATCH;

	(void)arg;
	while ((n = do_get_many(items, 1 + (int)sim_random((uint32_t)most), WQ_NEVER)) > 0) {
		while (n > 0 && sim_chance(2)) {
			int room = MAX_BATCH - n < 2 ? MAX_BATCH - n : 2;

			work(items);
			n = do_next_many(items, n, n + (int)sim_random((uint32_t)room + 1),
			                 WQ_NEVER);
		}
		if (n < 0)
			break;
		work(items);
		do_done_many(items, n);
	}
}

static void setup_many(void)
{
	open_producers(batch_producer, batch_producer);
	two_or_three(batch_worker);
	if (sim_chance(2))
		sim_spawn("worker", plain_worker, NULL);
}

/* ---- together ---------------------------------------------------------------- */

/* w.a: keys asked for; w.b: keys that have reached their handler; w.c: keys done. */

static bool all_are_here(void *arg)
{
	(void)arg;
	return w.b == w.a;
}

static bool all_are_done(void *arg)
{
	(void)arg;
	return w.c == w.a;
}

static void meet(int n)
{
	w.b += n;
	sim_until(all_are_here, NULL);
}

static void meeting_producer(void *arg)
{
	int n = *(int *)arg;

	for (int round = 0; round < 3; round++) {
		int keys[MAX_BATCH];

		for (int i = 0; i < n; i++)
			keys[i] = i;
		w.a += n;
		if (n > 2 || sim_chance(3)) {
			do_add_many(keys, n);
		} else {
			for (int i = 0; i < n; i++)
				do_add(keys[i]);
		}
		sim_until(all_are_done, NULL);
	}
	do_shutdown();
}

static void meeting_worker(void *arg)
{
	wq_item it;
	int rc = do_get(&it, WQ_NEVER);

	(void)arg;
	while (rc == WQ_OK || rc == WQ_EINTERRUPTED) {
		if (rc == WQ_EINTERRUPTED) {
			rc = do_get(&it, WQ_NEVER);
			continue;
		}
		meet(1);
		w.c++;
		if (sim_chance(2)) {
			rc = do_next(&it, WQ_NEVER);
		} else {
			do_done(&it);
			rc = do_get(&it, WQ_NEVER);
		}
	}
}

/* Takes two of three keys; the third is left to somebody else. */
static void meeting_batch_worker(void *arg)
{
	wq_item items[2];
	int n = do_get_many(items, 2, WQ_NEVER);

	(void)arg;
	while (n > 0) {
		meet(n);
		w.c += n;
		if (sim_chance(2)) {
			n = do_next_many(items, n, 2, WQ_NEVER);
		} else {
			do_done_many(items, n);
			n = do_get_many(items, 2, WQ_NEVER);
		}
	}
}

/* Snatches keys from those who were woken for them, and gives them back. */
static void thief(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++) {
		wq_item it;

		if (do_get(&it, WQ_NOWAIT) == WQ_OK)
			do_requeue(&it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
		else
			sim_yield();
	}
}

/* Waits for a while; the wake-up that it gets is not for it to keep. */
static void impatient(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		wq_item it;

		if (do_get(&it, soon()) == WQ_OK)
			do_requeue(&it, WQ_HEAD);
	}
}

static void interrupter(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		do_interrupt(sim_chance(4) ? 0 : 1 + (int)sim_random(2));
}

/*
 * More keys than the line of a lane has places, and some go back to its head: what stands
 * behind the line moves up, and back.
 */
static void crowd_worker(void *arg)
{
	wq_item it, other;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		bool two = sim_chance(2) && do_get(&other, WQ_NOWAIT) == WQ_OK;

		work(&it);
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			do_requeue(&it, sim_chance(4) ? WQ_TAIL : WQ_HEAD);
		} else {
			do_done(&it);
		}
		if (two)
			do_requeue(&other, WQ_HEAD);
	}
}

static void crowd_producer(void *arg)
{
	(void)arg;
	add_some(9, NKEYS);
	if (sim_chance(2))
		add_some(4, NKEYS);
	producer_ends();
}

static void setup_crowd(void)
{
	world_open(NULL);
	w.a = 6;
	w.producers = 2;
	sim_spawn("producer", crowd_producer, NULL);
	sim_spawn("producer", crowd_producer, NULL);
	sim_spawn("worker", crowd_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", crowd_worker, NULL);
}

static int round_size;

static void setup_together(void)
{
	world_open(NULL);
	round_size = 2;
	sim_spawn("producer", meeting_producer, &round_size);
	sim_spawn("worker 1", meeting_worker, NULL);
	sim_spawn("worker 2", meeting_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker 3", meeting_worker, NULL);
}

static void setup_together_many(void)
{
	world_open(NULL);
	round_size = 3;
	sim_spawn("producer", meeting_producer, &round_size);
	sim_spawn("worker 1", meeting_batch_worker, NULL);
	sim_spawn("worker 2", meeting_batch_worker, NULL);
	/* Beside a lane a Get may come while the batch is added, and find one key only. */
	if (sim_lanes || sim_chance(2))
		sim_spawn("worker 3", meeting_worker, NULL);
}

static void setup_together_thief(void)
{
	setup_together();
	sim_spawn("thief", thief, NULL);
	if (sim_chance(2))
		sim_spawn("thief", thief, NULL);
}

static void setup_together_impatient(void)
{
	setup_together();
	sim_spawn("impatient", impatient, NULL);
	if (sim_chance(2))
		sim_spawn("impatient", impatient, NULL);
}

static void setup_together_interrupt(void)
{
	setup_together();
	sim_spawn("interrupter", interrupter, NULL);
}

static void setup_together_all(void)
{
	setup_together();
	sim_spawn("thief", thief, NULL);
	sim_spawn("impatient", impatient, NULL);
	sim_spawn("interrupter", interrupter, NULL);
}

/* Ten keys for ten sleeping workers: more than one call wakes itself. */
static void wide_producer(void *arg)
{
	int keys[MAX_BATCH];

	(void)arg;
	w.a = 10;
	for (int i = 0; i < MAX_BATCH; i++)
		keys[i] = i;
	do_add_many(keys, MAX_BATCH);
	keys[0] = MAX_BATCH;
	keys[1] = MAX_BATCH + 1;
	do_add_many(keys, 2);
	sim_until(all_are_done, NULL);
	do_shutdown();
}

static void setup_wide(void)
{
	world_open(NULL);
	sim_spawn("producer", wide_producer, NULL);
	for (int i = 0; i < 10; i++)
		sim_spawn("worker", meeting_worker, NULL);
}

/* ---- other orders, and a bound ------------------------------------------------ */

static void many_keys_producer(void *arg)
{
	(void)arg;
	add_some(6, 6);
	producer_ends();
}

static void setup_order(void)
{
	w.order = sim_chance(2) ? LIFO : SMALLEST;
	open_producers(many_keys_producer, many_keys_producer);
	w.a = 3;
	sim_spawn("worker", requeueing_worker, NULL);
	sim_spawn("worker", next_worker, NULL);
}

static void setup_full(void)
{
	w.max_keys = 2 + sim_random(2);
	open_producers(many_keys_producer, batch_producer);
	w.a = 2;
	sim_spawn("worker", readding_worker, NULL);
	sim_spawn("worker", next_worker, NULL);
}

/* ---- anything ------------------------------------------------------------------ */

static void hand_back(wq_item *it, int n)
{
	work(it);
	if (n > 1 || sim_chance(4))
		do_done_many(it, n);
	else if (sim_chance(4) && w.c-- > 0)
		do_requeue(it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
	else
		do_done(it);
}

static void try_anything(void)
{
	wq_item items[MAX_BATCH];
	int keys[3] = {(int)sim_random(4), (int)sim_random(4), (int)sim_random(4)};
	int n;

	switch (sim_random(12)) {
	case 0:
	case 1:
	case 2:
		do_add(keys[0]);
		break;
	case 3:
		do_add_many(keys, 3);
		break;
	case 4:
		if (do_get(items, WQ_NOWAIT) == WQ_OK)
			hand_back(items, 1);
		break;
	case 5:
		if (do_get(items, soon()) == WQ_OK)
			hand_back(items, 1);
		break;
	case 6:
		n = do_get_many(items, 3, soon());
		if (n > 0)
			hand_back(items, n);
		break;
	case 7:
		do_wait_key(keys[0], sim_chance(2) ? WQ_NEVER : soon());
		break;
	case 8:
		do_wait_idle(sim_chance(2) ? WQ_NEVER : soon());
		break;
	case 9:
		do_len();
		break;
	case 10:
		do_state(keys[0]);
		break;
	case 11:
		if (do_get(items, WQ_NOWAIT) == WQ_OK && do_next(items, soon()) == WQ_OK)
			hand_back(items, 1);
		break;
	}
}

static void anyone(void *arg)
{
	(void)arg;
	for (int i = 0; i < 6; i++)
		try_anything();
	producer_ends();
}

static void setup_anything(void)
{
	world_open(NULL);
	w.producers = 3;
	w.a = 3;
	w.c = 4;
	sim_spawn("anyone 1", anyone, NULL);
	sim_spawn("anyone 2", anyone, NULL);
	sim_spawn("anyone 3", anyone, NULL);
	sim_spawn("worker", sim_chance(2) ? plain_worker : next_worker, NULL);
	if (sim_chance(2))
		sim_spawn("worker", readding_worker, NULL);
}

const struct scenario scenarios_work[] = {
    {"workers", "producers, workers, a shutdown", 100, setup_workers, NULL, NULL},
    {"next", "workers that are done and get in one step", 60, setup_next, NULL, NULL},
    {"readd", "handlers add their own key", 60, setup_readd, NULL, NULL},
    {"handover", "a key comes back for somebody who sleeps", 50, setup_handover, NULL, NULL},
    {"requeue", "keys are given back, to the head or the tail", 50, setup_requeue, NULL, NULL},
    {"stale", "items are handed back twice", 40, setup_stale, NULL, NULL},
    {"many", "batches in, batches out", 60, setup_many, NULL, NULL},
    {"crowd", "more keys than a line has places, and some go back", 40, setup_crowd, NULL, NULL},
    {"together", "handlers wait for each other", 80, setup_together, NULL, NULL},
    {"together-many", "the same with batches", 50, setup_together_many, NULL, NULL},
    {"together-thief", "the same, and keys are snatched", 60, setup_together_thief, NULL, NULL},
    {"together-impatient", "the same beside gets that time out", 60, setup_together_impatient, NULL,
     NULL},
    {"together-interrupt", "the same beside interrupts", 40, setup_together_interrupt, NULL, NULL},
    {"together-all", "the same with all of these", 50, setup_together_all, NULL, NULL},
    {"wide", "ten keys for ten workers", 10, setup_wide, NULL, NULL},
    {"order", "other orders than first in, first out", 40, setup_order, NULL, NULL},
    {"full", "a bound on the number of keys", 30, setup_full, NULL, NULL},
    {"anything", "every call, by chance", 80, setup_anything, NULL, NULL},
    {0},
};
