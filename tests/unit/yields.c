/*
 * Long work lets others in. Every call that needs several holds of the lock gives it to a
 * thread that waits, at each release but the last: a bystander waits for one hold, however
 * long the call takes. In a queue with a lane this goes for both locks. All tests run twice, on
 * a queue with one lock and on one with a lane.
 *
 * No race is waited for. The queue believes that somebody waits for each of its locks, and each
 * release calls wq__lock_wake(), which the linker replaces (--wrap): there the lock is seen to
 * be given, and is taken and released in the place of the one who waits.
 */
#include "../support/support.h"

#include "../support/cancel.h"

#include "queue/memory.h"

#include <wq/metrics.h>
#include <wq/snapshot.h>

void __real_wq__lock_wake(_Atomic uint32_t *place);
void __wrap_wq__lock_wake(_Atomic uint32_t *place);

enum { MANY = 3000 };

enum { FRONT, BACK, LOCKS };

static struct fixture f;
static bool laned;
static int nlocks;
static wq__lock *lock[LOCKS];
static bool watching;
static int given[LOCKS], released;
static wq_item items[MANY];
static wq_key keys[MANY];
static uint32_t numbers[MANY];

static void somebody_waits(int i)
{
	atomic_fetch_add(&lock[i]->came, 1);
	atomic_fetch_or(lock[i]->place, 1);
}

void __wrap_wq__lock_wake(_Atomic uint32_t *place)
{
	bool was_given = false;

	if (!watching) {
		__real_wq__lock_wake(place);
		return;
	}
	for (int i = 0; i < nlocks; i++) {
		if (atomic_load(&lock[i]->word) != WQ__GIVEN)
			continue;
		given[i]++;
		atomic_fetch_add(&lock[i]->went, 1);
		atomic_store(&lock[i]->word, WQ__FREE);
		somebody_waits(i);
		was_given = true;
	}
	if (!was_given) {
		released++;
		atomic_fetch_or(place, 1);
	}
}

static int64_t use(void *arg)
{
	(void)arg;
	return wq_len(f.q);
}

/*
 * A queue that several threads use; `n` keys wait, and are due as soon as it is said. One
 * with a bound has no lane.
 */
static void open_with(int n)
{
	struct wq__memory *m;
	struct actor a;
	wq_item it;

	fixture_open(&f, &(wq_options){.max_keys = laned ? 0 : UINT32_MAX});
	IS(wq_add_str(f.q, "first"), WQ_QUEUED);
	get_is(f.q, &it, "first");
	m = (struct wq__memory *)(uintptr_t)it.owner;
	IS(wq_done(f.q, &it), WQ_OK);
	/* The clock is a test's, for which it would have none; and as if many had waited. */
	if (laned)
		m->flags |= WQ__LANES;
	atomic_store(&m->lock.came, 100);
	atomic_store(&m->lock.went, 100);
	actor_start(&a, use, NULL);
	actor_join(&a);
	lock[FRONT] = &m->lock;
	lock[BACK] = laned ? &m->lane->lock : NULL;
	nlocks = laned ? 2 : 1;
	IS(wq__laned(m), laned);
	/* The second thread of the back lock ends its ownership. */
	IS(wq_len(f.q), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		numbers[i] = i;
		keys[i] = (wq_key){&numbers[i], sizeof numbers[i]};
		if (i < (uint32_t)n)
			IS(wq_add_at(f.q, &i, sizeof i, START_NS + 1 + i), WQ_DELAYED);
	}
	given[FRONT] = given[BACK] = released = 0;
}

static void watch(void)
{
	for (int i = 0; i < nlocks; i++)
		somebody_waits(i);
	watching = true;
}

/* At least so many times each lock was given; they were released once, at the end. */
static void were_given(int front, int back, int releases)
{
	watching = false;
	for (int i = 0; i < nlocks; i++)
		atomic_store(&lock[i]->came, (uint16_t)atomic_load(&lock[i]->went));
	assert_true(given[FRONT] >= front);
	assert_true(!laned || given[BACK] >= back);
	IS(released, releases);
	given[FRONT] = given[BACK] = released = 0;
}

/* By a call for which the queue is whole. */
static void was_given(int times)
{
	were_given(times, times, nlocks);
}

static void all_due(void)
{
	wq_manual_clock_advance(f.mc, MANY + 1);
}

/* So many keys are left over. */
static void close_with(int left)
{
	wq_item it;

	IS(wq_shutdown(f.q), WQ_OK);
	while (wq_try_get(f.q, &it) == WQ_OK)
		wq_done(f.q, &it);
	fixture_close(&f, left);
}

static void close_it(void)
{
	close_with(0);
}

/* ---- what comes due ----------------------------------------------------------- */

enum { HOLDS = MANY / 1000 };

#define AMID_A_BURST(name, answer, call) AMID_A_BURST_LEFT(name, answer, call, 0)
#define AMID_A_BURST_LEFT(name, answer, call, left)                                                \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		open_with(MANY);                                                                   \
		all_due();                                                                         \
		watch();                                                                           \
		IS(call, answer);                                                                  \
		was_given(HOLDS);                                                                  \
		close_with(left);                                                                  \
	}

AMID_A_BURST(len_yields, MANY, wq_len(f.q))
AMID_A_BURST(state_yields, WQ_STATE_QUEUED, wq_state(f.q, &numbers[0], sizeof numbers[0]))
AMID_A_BURST(snapshot_yields, WQ_OK, wq_snapshot_take(f.q, &(wq_snapshot){0}))
AMID_A_BURST(cancel_yields, WQ_STATE_QUEUED, cancel_key(f.q, &numbers[0], sizeof numbers[0]))
AMID_A_BURST(reschedule_yields, WQ_ENOTFOUND, wq_reschedule(f.q, "none", 4, START_NS))
AMID_A_BURST_LEFT(add_after_yields, WQ_DELAYED, wq_add_after(f.q, "key", 3, WQ_SECOND), 1)
AMID_A_BURST(wait_idle_yields, WQ_ETIMEDOUT, wq_wait_idle_until(f.q, 0))
AMID_A_BURST(shutdown_promotes_and_yields, WQ_OK, wq_shutdown(f.q))

/* ---- what is run or left over -------------------------------------------------- */

static const wq_drain_options run = {.mode = WQ_DRAIN_RUN};

static void drain_that_runs_yields(void **state)
{
	(void)state;
	open_with(MANY);
	watch();
	IS(wq_drain_until(f.q, 0, &run, NULL), WQ_ETIMEDOUT);
	was_given(HOLDS);
	close_it();
}

/* What waits is left where it is, however much that is. */
static void one_hold_leaves_all_over(void **state)
{
	(void)state;
	for (int call = 0; call < 4; call++) {
		bool never = call & 1, drains = call & 2;

		open_with(never ? 0 : MANY);
		for (int i = 0; never && i < MANY; i++)
			IS(wq_add_at(f.q, &numbers[i], sizeof numbers[i], WQ_NEVER), WQ_DELAYED);
		watch();
		IS(drains ? wq_drain_until(f.q, 0, NULL, NULL) : wq_shutdown(f.q),
		   drains ? WQ_LEFT : WQ_OK);
		IS(given[FRONT] + given[BACK], 0);
		were_given(0, 0, nlocks);
		close_with(MANY);
	}
}

/* ---- many keys ---------------------------------------------------------------- */

enum { BATCHES = (MANY + 255) / 256 };

static int count_key(void *ctx, const wq_key_info *info)
{
	(void)info;
	++*(int *)ctx;
	return 0;
}

static void drain_that_lists_yields(void **state)
{
	int n = 0;

	(void)state;
	open_with(MANY);
	watch();
	IS(wq_drain_until(f.q, 0, &(wq_drain_options){.left = count_key, .ctx = &n}, NULL),
	   WQ_LEFT);
	IS(n, MANY);
	was_given(BATCHES);
	close_with(MANY);
}

/*
 * In a queue with a lane, adds pass the front lock. Gets and dones pass the back lock as long as
 * the line and the holds of the lane go, and then both.
 */
static void calls_on_many_keys_yield(void **state)
{
	enum {
		IN_LINE = WQ__LINE / 256,
		BEHIND = (MANY - WQ__LINE) / 256,
		HELD = (MANY - WQ__HOLDS) / 256,
	};
	int n = 0;

	(void)state;
	open_with(0);
	watch();
	IS(wq_add_many(f.q, keys, MANY, NULL), MANY);
	were_given(BATCHES - 1, 0, 1);

	watch();
	IS(wq_get_many_until(f.q, items, MANY, WQ_NOWAIT), MANY);
	were_given(laned ? BEHIND : BATCHES - 1, IN_LINE + BEHIND, nlocks);

	watch();
	IS(wq_walk(f.q, count_key, &n), MANY);
	IS(n, MANY);
	was_given(BATCHES);

	watch();
	IS(wq_done_many(f.q, items, MANY, NULL), MANY);
	were_given(laned ? HELD : BATCHES - 1, HELD, nlocks);
	close_it();
}

/* As many as the lane can do alone: the front lock is not touched. */
static void calls_on_the_lane_yield(void **state)
{
	(void)state;
	if (!laned)
		return;
	open_with(0);
	IS(wq_add_many(f.q, keys, WQ__LINE, NULL), WQ__LINE);
	watch();
	IS(wq_get_many_until(f.q, items, WQ__LINE, WQ_NOWAIT), WQ__LINE);
	were_given(0, WQ__LINE / 256 - 1, 1);
	IS(wq_done_many(f.q, items, WQ__LINE, NULL), WQ__LINE);
	close_it();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(len_yields),
	    cmocka_unit_test(state_yields),
	    cmocka_unit_test(snapshot_yields),
	    cmocka_unit_test(cancel_yields),
	    cmocka_unit_test(reschedule_yields),
	    cmocka_unit_test(add_after_yields),
	    cmocka_unit_test(wait_idle_yields),
	    cmocka_unit_test(shutdown_promotes_and_yields),
	    cmocka_unit_test(drain_that_runs_yields),
	    cmocka_unit_test(one_hold_leaves_all_over),
	    cmocka_unit_test(drain_that_lists_yields),
	    cmocka_unit_test(calls_on_many_keys_yield),
	    cmocka_unit_test(calls_on_the_lane_yield),
	};
	int failed = cmocka_run_group_tests_name("yields, one lock", tests, NULL, NULL);

	laned = true;
	return failed + cmocka_run_group_tests_name("yields, a lane", tests, NULL, NULL);
}
