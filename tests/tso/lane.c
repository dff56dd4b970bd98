/*
 * The two sides of a lane (src/queue/lane.h) on a machine with store buffers: what an add and a
 * Get or done do to a key's bits and to the line, each under its own lock.
 *
 * With TSO_X86 the header believes that the CPU is an x86: then the barrier of an add that finds
 * its key queued is that of the front lock. Such a program is to be run with the model tso.
 */
#include "tso/redirect.h"

#include "base/sync.h"
#ifdef TSO_X86
#define __x86_64__ 1
#endif
#define WQ_SMALL_LANE
#include "queue/lane.h"
#include "tso/program.h"

enum { ADDS, GETS, IDS = 3 };

static struct wq__lane lane;
static wq__lock front;
static _Atomic uint8_t bits;
static _Atomic uint32_t data[IDS + 1]; /* what a caller wrote before its add */
static int outcome;                    /* of the add */
static uint32_t seen[IDS + 1];         /* by who held the key */
static int ngot;
static bool finished;

static void clear(unsigned state)
{
	for (int i = 0; i < WQ__LOT_PLACES; i++)
		atomic_init(&wq__lot[i].place, 0);
	memset(&lane, 0, sizeof lane);
	wq__lock_init(&front);
	wq__lock_init(&lane.lock);
	atomic_init(&front.inside, tso_kernel == TSO_NO_BARRIERS ? WQ__NO_BARRIER : WQ__OUT);
	atomic_init(&lane.lock.inside, tso_kernel == TSO_NO_BARRIERS ? WQ__NO_BARRIER : WQ__OUT);
	atomic_init(&bits, state);
	for (int i = 0; i <= IDS; i++) {
		atomic_init(&data[i], 0);
		seen[i] = 0;
	}
	outcome = ngot = 0;
	finished = false;
	tso_name(&front.word, "front");
	tso_name(&lane.lock.word, "back");
	tso_name(&bits, "bits");
	tso_name(&data[1], "data");
	tso_name(&lane.line[0], "line 0");
	tso_name(&lane.line[1], "line 1");
	tso_name(&lane.head, "head");
}

/* ---- an add that merges, and the Get that takes the key ------------------------------ */

static void setup_queued(void)
{
	clear(WQ_STATE_QUEUED);
}

static uint32_t look_at(uint32_t id)
{
	return atomic_load_explicit(&data[id], memory_order_relaxed);
}

static void write_to(uint32_t id)
{
	atomic_store_explicit(&data[id], 1, memory_order_relaxed);
}

/* As add_known() in lane.c. */
static void add_known(uint32_t id)
{
	write_to(id);
	wq__lock_acquire(&front);

	uint8_t now = wq__bits_look(&bits);

	while (!outcome) {
		switch (now) {
		case WQ_STATE_QUEUED:
		case WQ_STATE_RUNNING | WQ_STATE_DIRTY:
			outcome = WQ_MERGED;
			break;
		case WQ__FINISHED:
			atomic_store_explicit(&bits, WQ_STATE_QUEUED, memory_order_relaxed);
			wq__line_put(&lane, id);
			outcome = WQ_QUEUED;
			break;
		case WQ_STATE_RUNNING:
			if (wq__bits_mark(&bits, &now))
				outcome = WQ_MARKED;
			break;
		default:
			tso_fail("a key with the bits %u", now);
		}
	}
	wq__lock_release(&front);
}

static void take_it(uint32_t id)
{
	wq__lock_acquire(&lane.lock);
	wq__bits_take(&bits, WQ_STATE_RUNNING);
	seen[id] = look_at(id);
	wq__lock_release(&lane.lock);
}

static void merges(int me)
{
	if (me == ADDS)
		add_known(1);
	else
		take_it(1);
}

static void merged_is_seen(void)
{
	if (outcome == WQ_MERGED && !seen[1])
		tso_fail(
		    "an add merged, and who took the key has not seen what was written before");
}

/* ---- an add of a held key, and its done ---------------------------------------------- */

static void setup_held(void)
{
	clear(WQ_STATE_RUNNING);
}

/* The hold ends; a key that was marked is in line again, for which the queue is whole. */
static void end_it(uint32_t id)
{
	wq__lock_acquire(&lane.lock);
	finished = wq__bits_finish(&bits, WQ_STATE_RUNNING, WQ__FINISHED);
	if (finished) {
		wq__dones_put(&lane, 1, id);
	} else {
		wq__lock_acquire(&front);
		if (atomic_load_explicit(&bits, memory_order_relaxed) !=
		    (WQ_STATE_RUNNING | WQ_STATE_DIRTY))
			tso_fail("a hold cannot be ended, and the key is not marked");
		atomic_store_explicit(&bits, WQ_STATE_QUEUED, memory_order_relaxed);
		wq__line_put(&lane, id);
		wq__lock_release(&front);
	}
	wq__lock_release(&lane.lock);
}

/* Then one more Get takes what is in line. */
static void marks(int me)
{
	if (me == ADDS) {
		add_known(1);
		return;
	}
	end_it(1);
	wq__lock_acquire(&lane.lock);
	if (wq__line_at(&lane, 0)) {
		if (atomic_load_explicit(&bits, memory_order_relaxed) != WQ_STATE_QUEUED)
			tso_fail("a key in line is not queued");
		wq__bits_take(&bits, WQ_STATE_RUNNING);
		wq__line_pop(&lane);
		seen[1] = look_at(1);
		ngot++;
	}
	wq__lock_release(&lane.lock);
}

static void nothing_is_lost(void)
{
	if (finished == (outcome == WQ_MARKED))
		tso_fail("%s", finished ? "a key was marked and is finished"
		                        : "a hold was not ended, and nobody has marked the key");
	if (ngot == 0 && !wq__line_at(&lane, 0))
		tso_fail("the key was added and is not in line");
	if (ngot > 0 && !seen[1])
		tso_fail("who holds the key has not seen what was written before its add");
}

/* ---- the line ------------------------------------------------------------------------ */

static void setup_line(void)
{
	clear(0);
}

/* Three ids through a line of two places. */
static void passes_ids(int me)
{
	if (me == ADDS) {
		for (uint32_t id = 1; id <= IDS; id++) {
			wq__lock_acquire(&front);
			write_to(id);
			outcome += wq__line_put(&lane, id);
			wq__lock_release(&front);
			if (outcome != (int)id)
				return; /* full */
		}
		return;
	}
	wq__lock_acquire(&lane.lock);
	for (uint32_t id; ngot < IDS && (id = wq__line_at(&lane, 0)) != 0; ngot++) {
		if (id != (uint32_t)ngot + 1)
			tso_fail("the ids come in another order");
		if (!look_at(id))
			tso_fail("an id is in line, and its entry is not complete");
		wq__line_pop(&lane);
	}
	wq__lock_release(&lane.lock);
}

static void ids_are_in_line(void)
{
	for (int i = ngot; i < outcome; i++) {
		if (wq__line_at(&lane, (uint32_t)(i - ngot)) != (uint32_t)i + 1)
			tso_fail("an id that was put in line is not there");
	}
}

/* ---- a queue that gets its lane ------------------------------------------------------ */

static _Atomic(struct wq__lane *) lane_of;
static _Atomic uint32_t alone; /* guarded by the front lock while there is no lane */
static int nalone;

static void setup_made(void)
{
	clear(0);
	if (tso_kernel != TSO_NO_BARRIERS)
		wq__lock_init_own(&front);
	atomic_init(&lane_of, NULL);
	atomic_init(&alone, 0);
	nalone = 0;
	tso_name(&lane_of, "lane");
	tso_name(&alone, "alone");
}

static void count_alone(void)
{
	if (atomic_load_explicit(&alone, memory_order_relaxed) != (uint32_t)nalone)
		tso_fail("what was done with one lock is not seen by who has both");
	atomic_store_explicit(&alone, (uint32_t)++nalone, memory_order_relaxed);
}

/* As wq__mem_add() and wq__whole_lock(): the owner adds, another one makes the lane. */
static void gets_a_lane(int me)
{
	struct wq__lane *l;

	for (int i = 0; i < 2 && me == ADDS; i++) {
		wq__lock_acquire(&front);
		if (!atomic_load_explicit(&lane_of, memory_order_relaxed))
			count_alone();
		wq__lock_release(&front);
	}
	if (me == ADDS)
		return;
	wq__lock_acquire(&front);
	atomic_store_explicit(&lane_of, &lane, memory_order_release);
	wq__lock_release(&front);
	l = atomic_load_explicit(&lane_of, memory_order_acquire);
	wq__lock_acquire(&l->lock);
	wq__lock_acquire(&front);
	count_alone();
	wq__lock_release(&front);
	wq__lock_release(&l->lock);
}

const struct tso_plan tso_plans[] = {
    {"merge", 2, setup_queued, merges, merged_is_seen},
    {"mark", 2, setup_held, marks, nothing_is_lost},
    {"line", 2, setup_line, passes_ids, ids_are_in_line},
    {"made", 2, setup_made, gets_a_lane, NULL},
};
const int tso_nplans = sizeof tso_plans / sizeof *tso_plans;

void tso_begin(void)
{
	wq__lock_init(&front);
}
