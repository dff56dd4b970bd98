/*
 * A key may have several entries: itself, a reminder, and what a cancel left in
 * an order without remove. Its failures, and what the limiter keeps for it
 * besides, are the key's, whichever of them there is. [FORGET]
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, W = WQ_STATE_WAITING };

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

static int limited(wq_queue *q, const char *key)
{
	return wq_add_limited(q, key, strlen(key));
}

static int remind_limited(wq_queue *q, const char *key)
{
	wq_add_options o = {.limited = 1, .policy = WQ_REMIND};

	return wq_add_with(q, key, strlen(key), &o);
}

static void open_counting(struct fixture *f)
{
	fixture_open(f, &(wq_options){.limiter = wq_limiter_fast_slow(0, 10, 2)});
}

/* ---- reminders ------------------------------------------------------------------- */

static void the_key_goes_and_its_reminder_stays(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_counting(&f);
	limited(f.q, "a");
	IS(remind(f.q, "a", 50), WQ_DELAYED);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(state_of(f.q, "a"), W); /* the reminder alone */
	IS(requeues(f.q, "a"), 1);
	wq_manual_clock_advance(f.mc, 50);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(requeues(f.q, "a"), 1);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	fixture_close(&f, 0);
}

static void the_reminder_comes_first(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_exponential(10, 1000)});
	IS(remind_limited(f.q, "a"), WQ_DELAYED);
	IS(remind_limited(f.q, "a"), WQ_KEPT);
	IS(requeues(f.q, "a"), 2);
	IS(wq_add_str(f.q, "a"), WQ_QUEUED); /* the key beside it */
	IS(requeues(f.q, "a"), 2);
	IS(remind_limited(f.q, "a"), WQ_KEPT);
	get_is(f.q, &it, "a");
	IS(it.attempts, 4);
	IS(wq_failures_item(f.q, &it), 3);
	wq_manual_clock_advance(f.mc, 10);
	IS(wq_len(f.q), 0);
	IS(state_of(f.q, "a"), R | WQ_STATE_DIRTY);
	IS(wq_failures_item(f.q, &it), 3);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	get_is(f.q, &it, "a");
	IS(it.attempts, 4);
	IS(remind_limited(f.q, "a"), WQ_DELAYED); /* 80 */
	IS(wq_retry(f.q, &it), WQ_DELAYED);       /* 160, a copy of its own */
	IS(requeues(f.q, "a"), 5);
	wq_manual_clock_advance(f.mc, 80);
	get_is(f.q, &it, "a");
	IS(it.attempts, 6);
	IS(wq_done(f.q, &it), WQ_OK); /* the reminder has absorbed the other */
	fixture_close(&f, 0);
}

/* A key that is only remembered comes back as a reminder. */
static void remembered_and_reminded(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_counting(&f);
	limited(f.q, "a");
	take_is(f.q, "a", WQ_OK);
	IS(remind(f.q, "a", 50), WQ_DELAYED);
	IS(requeues(f.q, "a"), 1);
	IS(wq_add_str(f.q, "a"), WQ_QUEUED);
	IS(wq_add_after(f.q, "a", 1, 20), WQ_MERGED);
	IS(requeues(f.q, "a"), 1);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_forget_item(f.q, &it), WQ_OK);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(requeues(f.q, "a"), 0);
	wq_manual_clock_advance(f.mc, 50);
	get_is(f.q, &it, "a");
	IS(it.attempts, 1);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

/* Taken back or left over, with every combination of copies: the number stays, once. */
static void cancel_and_shutdown_of_both(void **state)
{
	(void)state;
	for (int how = 0; how < 16; how++) {
		struct fixture f;
		wq_item it;
		bool held = how & 1, waits = how & 2, reminded = how & 4, shut = how & 8;
		bool left = shut && (waits || reminded);

		open_counting(&f);
		limited(f.q, "a");
		get_is(f.q, &it, "a");
		if (!held)
			IS(wq_done(f.q, &it), WQ_OK);
		if (reminded)
			IS(remind(f.q, "a", 50), WQ_DELAYED);
		if (waits)
			IS(wq_add_after(f.q, "a", 1, 20), WQ_DELAYED);
		IS(requeues(f.q, "a"), 1);
		if (shut)
			IS(wq_shutdown(f.q), WQ_OK);
		else
			IS(cancel_key(f.q, "a", 1),
			   held || waits || reminded ? (held ? R : 0) | (waits || reminded ? W : 0)
			                             : WQ_ENOTFOUND);
		IS(state_of(f.q, "a"), (held ? R : 0) | (left ? WQ_STATE_LEFT : 0));
		IS(requeues(f.q, "a"), 1);
		if (held)
			IS(wq_done(f.q, &it), shut && waits ? WQ_LEFT : WQ_OK);
		IS(requeues(f.q, "a"), 1);
		IS(count_keys(f.q), left);
		IS(wq_forget(f.q, "a", 1), WQ_OK);
		IS(requeues(f.q, "a"), 0);
		fixture_close(&f, left);
	}
}

/* ---- an order without remove ---------------------------------------------------- */

/* A stack with room of its own, in which it counts pushes; 12 is no multiple of 8. */
struct mine {
	uint32_t pushes, mark, guard;
};

static wq_node *top;
static int lives; /* keys whose room was all zero when they were pushed */

static void stack_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct mine *m = wq_node_room(node);

	(void)ctx;
	(void)where;
	if (m->pushes == 0) {
		assert_int_equal(m->mark, 0);
		assert_int_equal(m->guard, 0);
		lives++;
	} else {
		assert_int_equal(m->mark, m->pushes * 7);
		assert_int_equal(m->guard, 0xcafe);
	}
	m->pushes++;
	m->mark = m->pushes * 7;
	m->guard = 0xcafe;
	node->link[0] = top;
	top = node;
}

static wq_node *stack_pop(void *ctx)
{
	wq_node *node = top;
	const struct mine *m = wq_node_room(node);

	(void)ctx;
	assert_int_equal(m->mark, m->pushes * 7);
	assert_int_equal(m->guard, 0xcafe);
	top = node->link[0];
	return node;
}

static const wq_order stack = {.push = stack_push, .pop = stack_pop, .room = sizeof(struct mine)};

static void open_stack(struct fixture *f, wq_limiter *l)
{
	top = NULL;
	lives = 0;
	fixture_open(f, &(wq_options){.limiter = l, .order = &stack});
}

static void a_ghost_bears_it(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_stack(&f, wq_limiter_fast_slow(0, 10, 5));
	limited(f.q, "a");
	IS(cancel_key(f.q, "a", 1), Q);
	IS(state_of(f.q, "a"), 0);
	IS(count_keys(f.q), 0);
	IS(requeues(f.q, "a"), 1);
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(requeues(f.q, "a"), 2);
	get_is(f.q, &it, "a");
	IS(it.attempts, 3);
	IS(wq_try_get(f.q, &(wq_item){0}), WQ_EAGAIN);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(requeues(f.q, "a"), 2);

	/* what a ghost bears can be forgotten, is remembered when it is popped, and reminded */
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(cancel_key(f.q, "a", 1), Q);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(requeues(f.q, "a"), 0);
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(cancel_key(f.q, "a", 1), Q);
	wq_add_str(f.q, "b");
	take_is(f.q, "b", WQ_OK);
	IS(requeues(f.q, "a"), 1);
	IS(remind(f.q, "a", 50), WQ_DELAYED);
	IS(requeues(f.q, "a"), 1);
	wq_manual_clock_advance(f.mc, 50);
	get_is(f.q, &it, "a");
	IS(it.attempts, 2);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

/* Of several ghosts of one key, only the last bears anything. Slots differ, so many keys. */
static void many_ghosts_of_one_key(void **state)
{
	enum { KEYS = 50, ROUNDS = 5 };
	struct fixture f;
	wq_item it;

	(void)state;
	open_stack(&f, wq_limiter_fast_slow(0, 0, 1));
	for (int key = 0; key < KEYS; key++)
		for (int i = 1; i <= ROUNDS; i++) {
			IS(wq_add_limited(f.q, &key, sizeof key), WQ_QUEUED);
			IS(wq_failures(f.q, &key, sizeof key), i);
			IS(cancel_key(f.q, &key, sizeof key), Q);
			IS(wq_failures(f.q, &key, sizeof key), i);
		}
	IS(count_keys(f.q), 0);
	IS(wq_try_get(f.q, &it), WQ_EAGAIN);
	/* they are popped when something is got from below them */
	for (int key = 0; key < KEYS; key++)
		IS(wq_failures(f.q, &key, sizeof key), ROUNDS);
	for (int key = 0; key < KEYS; key++)
		IS(wq_add(f.q, &key, sizeof key), WQ_QUEUED);
	for (int i = 0; i < KEYS; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(it.attempts, ROUNDS + 1);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	fixture_close(&f, 0);
}

/* Ghosts that are popped one after the other: what one bears is not lost with another. */
static void ghosts_are_popped(void **state)
{
	struct fixture f;

	(void)state;
	open_stack(&f, wq_limiter_fast_slow(0, 0, 1));
	for (int key = 0; key < 20; key++) {
		wq_add_str(f.q, "bottom");
		for (int i = 0; i < 3; i++) {
			IS(wq_add_limited(f.q, &key, sizeof key), WQ_QUEUED);
			IS(cancel_key(f.q, &key, sizeof key), Q);
		}
		take_is(f.q, "bottom", WQ_OK);
		IS(wq_failures(f.q, &key, sizeof key), 3);
		IS(wq_state(f.q, &key, sizeof key), 0);
	}
	IS(count_keys(f.q), 0);
	fixture_close(&f, 0);
}

/* ---- what the limiter keeps besides --------------------------------------------- */

static wq_limiter *scattered(void)
{
	wq_limiter *parts[] = {
	    wq_limiter_jittered(1000, WQ_SECOND, WQ_JITTER_DECORRELATED, 42),
	    wq_limiter_bucket_per_key(1000, 1),
	};

	return wq_limiter_max_of(parts, 2);
}

/* A queue's keys wait as long as a limiter alone says, with an order that has room of its own. */
static void room_of_order_and_limiter(void **state)
{
	enum { KEYS = 7, ROUNDS = 2000 };
	int expected = 0;
	wq_limiter *alone = scattered();
	uint64_t rng = 99;
	struct fixture f;
	wq_item it;

	(void)state;
	open_stack(&f, scattered());
	for (int round = 0; round < ROUNDS; round++) {
		int key = (int)rng_below(&rng, KEYS);
		int64_t now = wq_manual_clock_now(f.mc), delay;

		if (rng_below(&rng, 10) == 0) {
			IS(wq_forget(f.q, &key, sizeof key), WQ_OK);
			IS(wq_limiter_forget(alone, &key, sizeof key), WQ_OK);
		}
		delay = wq_limiter_when(alone, &key, sizeof key, now);
		IS(wq_add_limited(f.q, &key, sizeof key), delay > 0 ? WQ_DELAYED : WQ_QUEUED);
		wq_manual_clock_advance(f.mc, delay - 1);
		IS(wq_len(f.q), 0);
		wq_manual_clock_advance(f.mc, 1);
		IS(wq_len(f.q), 1);
		switch (rng_below(&rng, 4)) {
		case 0: /* a ghost */
			IS(cancel_key(f.q, &key, sizeof key), Q);
			break;
		case 1: /* by way of a reminder, which is another entry */
			expected++;
			IS(wq_add_with(f.q, &key, sizeof key,
			               &(wq_add_options){.after_ns = 5, .policy = WQ_REMIND}),
			   WQ_DELAYED);
			IS(wq_try_get(f.q, &it), WQ_OK);
			IS(wq_done(f.q, &it), WQ_OK);
			wq_manual_clock_advance(f.mc, 5);
			/* fall through */
		default:
			IS(wq_try_get(f.q, &it), WQ_OK);
			IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
			IS(wq_try_get(f.q, &it), WQ_OK);
			IS(it.attempts, 1 + wq_limiter_failures(alone, &key, sizeof key));
			IS(wq_done(f.q, &it), WQ_OK);
		}
	}
	IS(lives, ROUNDS + expected); /* each time the key came anew, the order began anew */
	IS(wq_limiter_free(alone), WQ_OK);
	fixture_close(&f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_key_goes_and_its_reminder_stays),
	    cmocka_unit_test(the_reminder_comes_first),
	    cmocka_unit_test(remembered_and_reminded),
	    cmocka_unit_test(cancel_and_shutdown_of_both),
	    cmocka_unit_test(a_ghost_bears_it),
	    cmocka_unit_test(many_ghosts_of_one_key),
	    cmocka_unit_test(ghosts_are_popped),
	    cmocka_unit_test(room_of_order_and_limiter),
	};

	return cmocka_run_group_tests_name("bearer", tests, NULL, NULL);
}
