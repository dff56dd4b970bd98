/*
 * Rows of the limiter, in one thread, with the limiter that a queue has if it is given none.
 *
 *   limited_cycle  add_limited, failures, forget: of keys that wait already, so each
 *                  call finds its key and nothing is made or freed
 *   limited_fresh  the same of keys that the queue does not know, and a cancel
 *                  that makes it forget them again; to compare
 *
 * Both beside five mutexes and a clock: three calls take the lock, one of them the time.
 */
#include "bench.h"

#include <stdlib.h>

enum { LIMITED_KEYS = 1024, MUTEXES = 5 }; /* keys are used in turn, as in single.c */

struct limited {
	wq_queue *q;
	size_t next;
	struct bench_work work;
};

static void cycle_slice(void *state, size_t n)
{
	struct limited *l = state;
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		const char *key = bench_key(pool, l->next);

		bad |= wq_add_limited(l->q, key, KEY_LEN) < 0;
		bad |= wq_failures(l->q, key, KEY_LEN) != 1;
		bad |= wq_forget(l->q, key, KEY_LEN) != WQ_OK;
		l->next = (l->next + 1) % LIMITED_KEYS;
	}
	bench_check(!bad, "limited_cycle: a call failed");
}

static void fresh_slice(void *state, size_t n)
{
	struct limited *l = state;
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		const char *key = bench_key(pool, l->next);

		bad |= wq_add_limited(l->q, key, KEY_LEN) != WQ_DELAYED;
		bad |= wq_failures(l->q, key, KEY_LEN) != 1;
		bad |= wq_forget(l->q, key, KEY_LEN) != WQ_OK;
		bad |= wq_cancel(l->q, key, KEY_LEN, NULL) != WQ_CANCELLED;
		l->next = (l->next + 1) % LIMITED_KEYS;
	}
	bench_check(!bad, "limited_fresh: a call failed");
}

static const bool known = false, fresh = true;

static void *limited_setup(const void *arg)
{
	bool is_fresh = *(const bool *)arg;
	struct limited *l = bench_alloc(1, sizeof *l);

	l->q = bench_queue();
	l->work =
	    (struct bench_work){is_fresh ? fresh_slice : cycle_slice, l, is_fresh ? 3000 : 10000};
	/* Most keys come to wait for seconds: the bucket has long been empty. */
	if (!is_fresh)
		cycle_slice(l, LIMITED_KEYS);
	return l;
}

static void limited_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct limited *l = state;
	struct bench_sample clock;

	(void)arg;
	bench_in_turn(&l->work, &bench_mutex, &samples[0]);
	bench_in_turn(&bench_clock, &bench_clock, &clock);
	samples[0].limit = MUTEXES * samples[0].limit + clock.value;
}

static void limited_teardown(void *state)
{
	struct limited *l = state;

	bench_check(wq_free(l->q) >= 0, "a queue could not be freed");
	free(l);
}

/* ---- the rows -------------------------------------------------------------- */

static const struct bench_group groups[] = {
    {
	.rows = {{"limited_cycle", "ns", BAR_TIMES, 1, "5_mutex_and_clock"}},
	.nrows = 1,
	.reps = 9,
	.arg = &known,
	.setup = limited_setup,
	.run = limited_run,
	.teardown = limited_teardown,
    },
    {
	.rows = {{"limited_fresh", "ns", BAR_NONE, 0, "5_mutex_and_clock"}},
	.nrows = 1,
	.reps = 5,
	.arg = &fresh,
	.setup = limited_setup,
	.run = limited_run,
	.teardown = limited_teardown,
    },
};

const struct bench_groups bench_limit = {groups, sizeof groups / sizeof groups[0]};
