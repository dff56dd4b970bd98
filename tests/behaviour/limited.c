/*
 * R1 and R8 of the rules: limited adds, what the queue remembers of failures
 * and for how long, and what is given back to the limiter. Where the failures
 * stand while a key has several copies is in bearer.c.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	D = WQ_STATE_DIRTY,
	T = WQ_STATE_RETRYING
};

static const int64_t ms = WQ_MILLISECOND;

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

static int limited(wq_queue *q, const char *key)
{
	return wq_add_limited(q, key, strlen(key));
}

static void open_with(struct fixture *f, wq_limiter *l)
{
	fixture_open(f, &(wq_options){.limiter = l});
}

/* ---- R1: how long, how often ----------------------------------------------- */

/* [LIMITED] In every state of the key: the answer, and that it counts. */
static void R1_each_call_counts(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_exponential(ms, 1000 * ms));
	IS(requeues(f.q, "a"), 0);
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(requeues(f.q, "a"), 1);
	IS(wq_next_deadline(f.q), START_NS + ms);
	IS(limited(f.q, "a"), WQ_KEPT); /* 2 ms: it comes sooner anyway */
	IS(requeues(f.q, "a"), 2);
	IS(wq_next_deadline(f.q), START_NS + ms);
	wq_manual_clock_advance(f.mc, ms - 1);
	IS(wq_len(f.q), 0);
	wq_manual_clock_advance(f.mc, 1);
	IS(wq_len(f.q), 1);
	IS(limited(f.q, "a"), WQ_MERGED);
	IS(requeues(f.q, "a"), 3);

	get_is(f.q, &it, "a");
	IS(it.attempts, 4);
	IS(limited(f.q, "a"), WQ_DELAYED); /* 8 ms */
	IS(state_of(f.q, "a"), R | W | T);
	IS(wq_next_deadline(f.q), START_NS + ms + 8 * ms);
	IS(requeues(f.q, "a"), 4);
	IS(wq_failures_item(f.q, &it), 4);
	IS(wq_add_str(f.q, "a"), WQ_MARKED);
	IS(limited(f.q, "a"), WQ_MERGED);
	IS(wq_failures_item(f.q, &it), 5);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "a");
	IS(it.attempts, 6);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(requeues(f.q, "a"), 5);
	IS(requeues(f.q, "b"), 0); /* keys are apart */
	IS(limited(f.q, "b"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + 2 * ms);
	IS(cancel_key(f.q, "b", 1), W);
	fixture_close(&f, 0);
}

/* No delay is an add now; in a held key it is a mark. */
static void R1_no_delay_is_an_add(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_fast_slow(0, 5 * ms, 2));
	IS(limited(f.q, "a"), WQ_QUEUED);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(limited(f.q, "a"), WQ_MARKED);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "a");
	IS(wq_done(f.q, &it), WQ_OK);
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + 5 * ms);
	/* a waiting copy is absorbed by one that is due at once */
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(state_of(f.q, "a"), Q); /* no copy of it waits */
	fixture_close(&f, 1);
}

/* All the policies, with the delay of the limiter. */
static void R1_policies(void **state)
{
	static const struct {
		enum wq_policy policy;
		int answer;
		int64_t due_ms;
	} rows[] = {
	    {WQ_MIN, WQ_KEPT, 1},  {WQ_MAX, WQ_MOVED, 2},      {WQ_REPLACE, WQ_MOVED, 2},
	    {WQ_KEEP, WQ_KEPT, 1}, {WQ_REMIND, WQ_DELAYED, 1},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct fixture f;
		wq_add_options o = {.limited = 1, .policy = rows[i].policy};

		open_with(&f, wq_limiter_exponential(ms, 1000 * ms));
		IS(limited(f.q, "a"), WQ_DELAYED);
		IS(wq_add_with(f.q, "a", 1, &o), rows[i].answer);
		IS(requeues(f.q, "a"), 2);
		/* next_deadline may be too early after a move: what counts is when it comes */
		wq_manual_clock_advance(f.mc, rows[i].due_ms * ms - 1);
		IS(wq_len(f.q), 0);
		wq_manual_clock_advance(f.mc, 1);
		IS(wq_len(f.q), 1);
		fixture_close(&f, 1);
	}
}

/* A delay without end waits, and the time does not wrap. */
static void R1_delays_without_end(void **state)
{
	struct fixture f;

	(void)state;
	open_with(&f, wq_limiter_bucket(0, 1));
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(limited(f.q, "b"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), WQ_NEVER);
	wq_manual_clock_set(f.mc, WQ_NEVER - 1);
	IS(wq_len(f.q), 1);
	fixture_close(&f, 2);

	open_with(&f, wq_limiter_exponential(WQ_NEVER - 1, WQ_NEVER));
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), WQ_NEVER);
	fixture_close(&f, 1);
}

/* The default, for a queue that was given none: 5 ms, 10 ms ... for each key alone, 1000 s at most. */
static void R3_the_default(void **state)
{
	struct fixture *f = *state;
	int64_t delay = 5 * ms;
	wq_snapshot s;
	char key[16];

	for (int i = 0; i < 30; i++) {
		IS(limited(f->q, "a"), WQ_DELAYED);
		IS(wq_snapshot_take(f->q, &s), WQ_OK);
		IS(s.next_due_ns, START_NS + delay);
		IS(cancel_key(f->q, "a", 1), W);
		delay = delay * 2 < 1000 * WQ_SECOND ? delay * 2 : 1000 * WQ_SECOND;
	}
	/* however many other keys there are: no bucket is shared */
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "%d", i);
		IS(limited(f->q, key), WQ_DELAYED);
	}
	wq_manual_clock_advance(f->mc, 5 * ms - 1);
	IS(wq_len(f->q), 0);
	wq_manual_clock_advance(f->mc, 1);
	IS(wq_len(f->q), 1000);
}

/* ---- R1: for how long ------------------------------------------------------- */

/* [FORGET] Failures outlive everything but forget. */
static void R1_failures_outlive_the_key(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_exponential(ms, 1000 * ms));
	limited(f.q, "a");
	wq_manual_clock_advance(f.mc, ms);
	get_is(f.q, &it, "a");
	IS(wq_done(f.q, &it), WQ_OK);
	IS(state_of(f.q, "a"), 0);
	IS(count_keys(f.q), 0);
	IS(requeues(f.q, "a"), 1);
	wq_add_str(f.q, "a");
	IS(cancel_key(f.q, "a", 1), Q);
	IS(requeues(f.q, "a"), 1);
	wq_add_after(f.q, "a", 1, ms);
	IS(cancel_key(f.q, "a", 1), W);
	IS(requeues(f.q, "a"), 1);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(cancel_key(f.q, "a", 1), R);
	IS(wq_done(f.q, &it), WQ_OK);
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED); /* counts nothing */
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_next_until(f.q, &it, WQ_NOWAIT), WQ_EAGAIN);
	IS(requeues(f.q, "a"), 1);
	limited(f.q, "a");
	wq_shutdown(f.q); /* it is left over */
	IS(state_of(f.q, "a"), WQ_STATE_LEFT | T);
	IS(requeues(f.q, "a"), 2);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(requeues(f.q, "a"), 0);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(state_of(f.q, "a"), WQ_STATE_LEFT | T);
	fixture_close(&f, 1);
}

/* Forget clears the number, and the key is where it was. */
static void R1_forget_clears_nothing_else(void **state)
{
	static const int states[] = {0, Q, W, R, R | D, R | W};

	(void)state;
	for (size_t i = 0; i < LENGTH(states); i++) {
		for (int by_item = 0; by_item <= (states[i] & R ? 1 : 0); by_item++) {
			struct fixture f;
			wq_item it;

			open_with(&f, wq_limiter_fast_slow(0, 5 * ms, 1));
			limited(f.q, "a");
			get_is(f.q, &it, "a");
			if (!(states[i] & R))
				IS(wq_done(f.q, &it), WQ_OK);
			if (states[i] & (Q | D))
				wq_add_str(f.q, "a");
			if (states[i] & W)
				wq_add_after(f.q, "a", 1, 7);
			IS(state_of(f.q, "a"), states[i]);
			IS(requeues(f.q, "a"), 1);
			IS(by_item ? wq_forget_item(f.q, &it) : wq_forget(f.q, "a", 1), WQ_OK);
			IS(requeues(f.q, "a"), 0);
			IS(state_of(f.q, "a"), states[i]);
			if (states[i] & W)
				IS(wq_next_deadline(f.q), START_NS + 7);
			if (states[i] & R)
				IS(wq_done(f.q, &it), states[i] & D   ? WQ_QUEUED
				                      : states[i] & W ? WQ_DELAYED
				                                      : WQ_OK);
			fixture_close(&f, states[i] == 0 || states[i] == R ? 0 : 1);
		}
	}
}

/* By an item: what is held now, and nobody else's. */
static void R1_by_the_item(void **state)
{
	struct fixture f, g;
	wq_item it, old;

	(void)state;
	open_with(&f, wq_limiter_fast_slow(0, 0, 1));
	open_with(&g, wq_limiter_fast_slow(0, 0, 1));
	limited(f.q, "a");
	get_is(f.q, &it, "a");
	IS(wq_failures_item(f.q, &it), 1);
	IS(wq_failures_item(g.q, &it), WQ_EOTHERQUEUE);
	IS(wq_forget_item(g.q, &it), WQ_EOTHERQUEUE);
	old = it;
	IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
	IS(wq_failures_item(f.q, &old), WQ_ESTALE);
	IS(wq_forget_item(f.q, &old), WQ_ESTALE);
	get_is(f.q, &it, "a");
	IS(wq_forget_item(f.q, &old), WQ_ESTALE);
	IS(wq_failures_item(f.q, &it), 1);
	IS(wq_forget_item(f.q, &it), WQ_OK);
	IS(wq_failures_item(f.q, &it), 0);
	IS(it.attempts, 2); /* as it was when it was got */
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
	fixture_close(&g, 0);
}

/* Keys that are only remembered are not keys: no walk, no bound, no number of wq_free(). */
static void R1_remembered_keys_are_not_alive(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1), .max_keys = 2});
	for (int i = 0; i < 50; i++) {
		IS(wq_add_limited(f.q, &i, sizeof i), WQ_QUEUED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	IS(count_keys(f.q), 0);
	IS(wq_wait_idle_until(f.q, 0), WQ_OK);
	for (int i = 0; i < 50; i++)
		IS(wq_failures(f.q, &i, sizeof i), 1);
	/* they count again when they come back, as new ones do */
	IS(wq_add(f.q, &(int){7}, sizeof(int)), WQ_QUEUED);
	IS(wq_add_after(f.q, &(int){8}, sizeof(int), 5), WQ_DELAYED);
	IS(wq_add(f.q, &(int){9}, sizeof(int)), WQ_EFULL);
	IS(wq_add_after(f.q, &(int){9}, sizeof(int), 5), WQ_EFULL);
	IS(wq_add_limited(f.q, &(int){9}, sizeof(int)), WQ_EFULL);
	IS(wq_add(f.q, &(int){77}, sizeof(int)), WQ_EFULL);
	IS(wq_failures(f.q, &(int){9}, sizeof(int)), 1);
	IS(count_keys(f.q), 2);
	IS(cancel_key(f.q, &(int){9}, sizeof(int)), WQ_ENOTFOUND);
	IS(wq_reschedule(f.q, &(int){9}, sizeof(int), 5), WQ_ENOTFOUND);
	fixture_close(&f, 2);
}

/* What is forgotten gives its memory back. */
static void R1_forget_gives_memory_back(void **state)
{
	enum { N = 100000 };
	struct fixture f;
	int64_t most;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_fast_slow(0, 0, 1));
	for (int i = 0; i < N; i++) {
		wq_add_limited(f.q, &i, sizeof i);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	most = f.mem.bytes;
	assert_true(most > 40 * N);
	for (int i = 0; i < N; i++)
		IS(wq_forget(f.q, &i, sizeof i), WQ_OK);
	assert_true(f.mem.bytes < most / 4);
	fixture_close(&f, 0);
}

/* ---- bounded ----------------------------------------------------------------- */

static void bounded_forgets_idle_keys(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_bounded(wq_limiter_fast_slow(0, 0, 1), WQ_SECOND));
	limited(f.q, "a");
	wq_manual_clock_advance(f.mc, WQ_HOUR); /* in line: not idle */
	IS(requeues(f.q, "a"), 1);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	wq_manual_clock_advance(f.mc, WQ_HOUR); /* held */
	IS(requeues(f.q, "a"), 1);
	IS(wq_done(f.q, &it), WQ_OK);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	IS(requeues(f.q, "a"), 1);
	wq_add_after(f.q, "a", 1, 2 * WQ_HOUR);
	wq_manual_clock_advance(f.mc, WQ_HOUR); /* it waits */
	IS(requeues(f.q, "a"), 1);
	IS(cancel_key(f.q, "a", 1), W);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	IS(requeues(f.q, "a"), 1); /* asking is no use of the key, in a queue */
	wq_manual_clock_advance(f.mc, 1);
	IS(requeues(f.q, "a"), 0);
	fixture_close(&f, 0);
}

/* Whichever call finds the key again: it begins anew. */
static void bounded_whoever_comes_first(void **state)
{
	enum { ADD, AFTER, REMIND, LIMITED, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct fixture f;
		wq_add_options remind = {.after_ns = 1, .policy = WQ_REMIND};
		wq_item it;

		open_with(&f, wq_limiter_bounded(wq_limiter_fast_slow(0, 1, 3), WQ_SECOND));
		for (int i = 0; i < 2; i++) {
			limited(f.q, "a");
			take_is(f.q, "a", WQ_OK);
		}
		wq_manual_clock_advance(f.mc, WQ_SECOND + 1);
		if (way == ADD)
			IS(wq_add_str(f.q, "a"), WQ_QUEUED);
		else if (way == AFTER)
			IS(wq_add_after(f.q, "a", 1, 1), WQ_DELAYED);
		else if (way == REMIND)
			IS(wq_add_with(f.q, "a", 1, &remind), WQ_DELAYED);
		else
			IS(limited(f.q, "a"), WQ_QUEUED);
		wq_manual_clock_advance(f.mc, 1);
		IS(requeues(f.q, "a"), way == LIMITED);
		get_is(f.q, &it, "a");
		IS(it.attempts, 1 + (way == LIMITED));
		IS(wq_done(f.q, &it), WQ_OK);
		fixture_close(&f, 0);
	}
}

/* What a key's bucket lacks is forgotten with its failures. */
static void bounded_forgets_buckets(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	/* full after 1 s, which is later than it is forgotten */
	open_with(&f, wq_limiter_bounded(wq_limiter_bucket_per_key(1, 1), 100 * ms));
	IS(limited(f.q, "a"), WQ_QUEUED);
	take_is(f.q, "a", WQ_OK);
	wq_manual_clock_advance(f.mc, 100 * ms + 1);
	IS(limited(f.q, "a"), WQ_QUEUED);
	take_is(f.q, "a", WQ_OK);
	wq_manual_clock_advance(f.mc, 100 * ms + 1);
	IS(wq_add_str(f.q, "a"), WQ_QUEUED); /* asks the limiter nothing, but ends the idle time */
	get_is(f.q, &it, "a");
	IS(limited(f.q, "a"), WQ_MARKED);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	take_is(f.q, "a", WQ_OK);
	wq_manual_clock_advance(f.mc, 100 * ms); /* not yet */
	IS(limited(f.q, "a"), WQ_DELAYED);
	fixture_close(&f, 1);
}

/* A program that never forgets: the memory stays that of the keys that are not idle. */
static void bounded_memory(void **state)
{
	enum { N = 100000, BEFORE = 2000 };
	struct fixture f;
	int64_t early = 0;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_bounded(wq_limiter_fast_slow(0, 0, 1), 1000 * ms));
	for (int i = 0; i < N; i++) {
		wq_add_limited(f.q, &i, sizeof i);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
		wq_manual_clock_advance(f.mc, ms);
		if (i == BEFORE)
			early = f.mem.bytes;
	}
	assert_true(f.mem.peak <= 2 * early);
	IS(wq_failures(f.q, &(int){N - 1}, sizeof(int)), 1);
	IS(wq_failures(f.q, &(int){N - 1100}, sizeof(int)), 0);
	fixture_close(&f, 0);
}

/* A bucket of a key that is full again is nothing to remember. */
static void buckets_of_keys_are_given_up(void **state)
{
	enum { N = 50000, BEFORE = 2000 };
	struct fixture f;
	int64_t early = 0;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_bucket_per_key(10, 1)); /* full after 100 ms */
	for (int i = 0; i < N; i++) {
		IS(wq_add_limited(f.q, &i, sizeof i), WQ_QUEUED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
		wq_manual_clock_advance(f.mc, ms);
		if (i == BEFORE)
			early = f.mem.bytes;
	}
	assert_true(f.mem.peak <= 2 * early);
	/* the last one's is not full, that of an early one is */
	IS(wq_add_limited(f.q, &(int){N - 1}, sizeof(int)), WQ_DELAYED);
	IS(wq_add_limited(f.q, &(int){1}, sizeof(int)), WQ_QUEUED);
	fixture_close(&f, 2);
}

/* ---- set from outside ------------------------------------------------------ */

static int set(wq_queue *q, const char *key, uint32_t n)
{
	return wq_set_failures(q, key, strlen(key), n);
}

/* [SET] In every state: the next attempt, the next delay, and what a walk shows. */
static void set_failures_counts(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_with(&f, wq_limiter_exponential(ms, 1000 * ms));
	IS(set(f.q, "a", 3), WQ_ENOTFOUND);
	IS(requeues(f.q, "a"), 0);
	IS(wq_add_after(f.q, "a", 1, ms), WQ_DELAYED);
	IS(set(f.q, "a", 7), WQ_OK);
	IS(set(f.q, "a", 3), WQ_OK); /* not the larger one: what was said last */
	IS(requeues(f.q, "a"), 3);
	wq_manual_clock_advance(f.mc, ms);
	get_is(f.q, &it, "a");
	IS(it.attempts, 4);
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + ms + 8 * ms);
	wq_manual_clock_advance(f.mc, 8 * ms);
	get_is(f.q, &it, "a");
	IS(it.attempts, 5);
	/* held: this hold keeps its number */
	IS(set(f.q, "a", 1), WQ_OK);
	IS(it.attempts, 5);
	IS(wq_failures_item(f.q, &it), 1);
	IS(wq_done(f.q, &it), WQ_OK);
	/* remembered only */
	IS(set(f.q, "a", WQ_FAILURES_MAX), WQ_OK);
	IS(requeues(f.q, "a"), WQ_FAILURES_MAX);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(set(f.q, "a", 2), WQ_ENOTFOUND);
	fixture_close(&f, 0);
}

/* [SET] A key that has used up its attempts in an earlier life dies with the next failure. */
static void set_failures_and_max_attempts(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f,
	             &(wq_options){.limiter = wq_limiter_exponential(ms, ms), .max_attempts = 3});
	IS(wq_add_str(f.q, "a"), WQ_QUEUED);
	IS(wq_add_str(f.q, "b"), WQ_QUEUED);
	IS(set(f.q, "a", 2), WQ_OK);
	IS(set(f.q, "b", 9), WQ_OK);
	get_is(f.q, &it, "a");
	IS(wq_retry(f.q, &it), WQ_DEAD);
	get_is(f.q, &it, "b");
	IS(wq_retry(f.q, &it), WQ_DEAD);
	IS(requeues(f.q, "b"), 0);
	fixture_close(&f, 0);
}

/* [SET] Where nothing is counted nothing can be set. */
static void set_failures_without_a_count(void **state)
{
	struct fixture f;

	(void)state;
	open_with(&f, wq_limiter_bucket(10, 1));
	IS(wq_add_str(f.q, "a"), WQ_QUEUED);
	IS(set(f.q, "a", 1), WQ_ENOTSUP);
	fixture_close(&f, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(R1_each_call_counts),
	    cmocka_unit_test(R1_no_delay_is_an_add),
	    cmocka_unit_test(R1_policies),
	    cmocka_unit_test(R1_delays_without_end),
	    WITH_FIXTURE(R3_the_default),
	    cmocka_unit_test(R1_failures_outlive_the_key),
	    cmocka_unit_test(R1_forget_clears_nothing_else),
	    cmocka_unit_test(R1_by_the_item),
	    cmocka_unit_test(R1_remembered_keys_are_not_alive),
	    cmocka_unit_test(R1_forget_gives_memory_back),
	    cmocka_unit_test(bounded_forgets_idle_keys),
	    cmocka_unit_test(bounded_whoever_comes_first),
	    cmocka_unit_test(bounded_forgets_buckets),
	    cmocka_unit_test(bounded_memory),
	    cmocka_unit_test(buckets_of_keys_are_given_up),
	    cmocka_unit_test(set_failures_counts),
	    cmocka_unit_test(set_failures_and_max_attempts),
	    cmocka_unit_test(set_failures_without_a_count),
	};

	return cmocka_run_group_tests_name("limited adds", tests, NULL, NULL);
}
