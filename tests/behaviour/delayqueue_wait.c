/* The promises of wq/delayqueue.h about takers: waiting, deadlines, closing, freeing. */
#include "delayqueue_rig.h"

enum { TAKERS = 4 };

static void take_waits_for_the_time(void **state)
{
	struct delay *f = *state;
	struct taker t;

	offer(f, "a", 50);
	taker_block(&t, f->dq, WQ_NEVER);
	wq_manual_clock_advance(f->mc, 49);
	actor_blocks(&t.actor);
	IS(wq_delayqueue_size(f->dq), 1);
	wq_manual_clock_advance(f->mc, 1);
	taker_got(&t, "a");
	IS(wq_delayqueue_size(f->dq), 0);
}

static void take_waits_for_an_offer(void **state)
{
	struct delay *f = *state;
	struct taker t;

	taker_block(&t, f->dq, WQ_NEVER);
	offer(f, "later", 50);
	actor_blocks(&t.actor);
	offer(f, "now", 0);
	taker_got(&t, "now");
	taker_block(&t, f->dq, WQ_NEVER);
	wq_manual_clock_advance(f->mc, 50);
	taker_got(&t, "later");
}

static void an_earlier_value_is_waited_for_instead(void **state)
{
	struct delay *f = *state;
	struct taker t;

	offer(f, "late", 100);
	taker_block(&t, f->dq, WQ_NEVER);
	offer(f, "soon", 10);
	actor_blocks(&t.actor);
	offer(f, "middle", 20);
	actor_blocks(&t.actor);
	wq_manual_clock_advance(f->mc, 10);
	taker_got(&t, "soon");
}

static void take_until_gives_up(void **state)
{
	struct delay *f = *state;
	struct taker t;

	/* Empty, with a value that comes later, and with one that never does. */
	for (int i = 0; i < 3; i++) {
		int64_t now = wq_manual_clock_now(f->mc);

		if (i > 0)
			IS(wq_delayqueue_offer(f->dq, V("x"), i == 1 ? now + 1000 : WQ_NEVER),
			   WQ_OK);
		taker_block(&t, f->dq, now + 10);
		wq_manual_clock_advance(f->mc, 9);
		actor_blocks(&t.actor);
		wq_manual_clock_advance(f->mc, 1);
		taker_got_nothing(&t, WQ_ETIMEDOUT);
	}
	IS(wq_delayqueue_size(f->dq), 2);
}

static int64_t take_for_main(void *arg)
{
	void *value;

	return wq_delayqueue_take_for(arg, &value, 10);
}

/* A timeout counts from the call on; none that is not above 0 waits. */
static void take_for_counts_from_now(void **state)
{
	struct delay *f = *state;
	static const int64_t none[] = {0, -1, INT64_MIN};
	struct actor a;
	void *value;

	offer(f, "later", 1000);
	for (size_t i = 0; i < LENGTH(none); i++)
		IS(wq_delayqueue_take_for(f->dq, &value, none[i]), WQ_ETIMEDOUT);
	actor_start(&a, take_for_main, f->dq);
	actor_blocks(&a);
	wq_manual_clock_advance(f->mc, 9);
	actor_blocks(&a);
	wq_manual_clock_advance(f->mc, 1);
	IS(actor_join(&a), WQ_ETIMEDOUT);
	wq_manual_clock_advance(f->mc, 990);
	IS(wq_delayqueue_take_for(f->dq, &value, WQ_NEVER), WQ_OK);
	assert_string_equal(value, "later");
}

static void take_until_takes_what_comes_in_time(void **state)
{
	struct delay *f = *state;
	struct taker t;
	void *value = f;

	offer(f, "a", 10);
	taker_block(&t, f->dq, START_NS + 10);
	wq_manual_clock_advance(f->mc, 10); /* both times have come: the value wins */
	taker_got(&t, "a");
	offer(f, "b", 20);
	taker_block(&t, f->dq, START_NS + 100);
	wq_manual_clock_advance(f->mc, 10);
	taker_got(&t, "b");
	taker_block(&t, f->dq, START_NS + 100);
	offer(f, "c", 0);
	taker_got(&t, "c");
	/* A deadline that has passed: what is there, and no waiting. */
	IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_ETIMEDOUT);
	IS(wq_delayqueue_take_until(f->dq, &value, START_NS + 20), WQ_ETIMEDOUT);
	assert_ptr_equal(value, f);
	offer(f, "d", 0);
	IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_OK);
	value_is(value, "d");
}

static void each_value_goes_to_one_taker(void **state)
{
	static const char *const letters[TAKERS] = {"a", "b", "c", "d"};
	struct delay *f = *state;
	struct taker t[TAKERS];
	int seen[TAKERS] = {0};

	takers_block(t, TAKERS, f->dq);
	/* All at one instant: the leader takes one and passes on, and so do the others. */
	for (int i = 0; i < TAKERS; i++)
		offer(f, letters[i], 10);
	wq_manual_clock_advance(f->mc, 10);
	for (int i = 0; i < TAKERS; i++) {
		IS(actor_join(&t[i].actor), WQ_OK);
		for (int k = 0; k < TAKERS; k++)
			seen[k] += strcmp(t[i].value, letters[k]) == 0;
	}
	for (int k = 0; k < TAKERS; k++)
		IS(seen[k], 1);
}

static void one_value_ends_one_wait(void **state)
{
	struct delay *f = *state;
	struct taker t[TAKERS];
	int finished = 0, who = -1;

	takers_block(t, TAKERS, f->dq);
	offer(f, "a", 10);
	wq_manual_clock_advance(f->mc, 10);
	while (finished == 0) {
		for (int i = 0; i < TAKERS; i++) {
			if (actor_finished(&t[i].actor)) {
				finished++;
				who = i;
			}
		}
	}
	IS(finished, 1);
	taker_got(&t[who], "a");
	for (int i = 0; i < TAKERS; i++)
		if (i != who)
			actor_blocks(&t[i].actor);
	IS(wq_delayqueue_close(f->dq), WQ_OK);
	for (int i = 0; i < TAKERS; i++)
		if (i != who)
			taker_got_nothing(&t[i], WQ_ESHUTDOWN);
}

/* On the real clock nobody but the leader is woken by the time of a value. */
static void a_leader_that_gives_up_is_followed(void **state)
{
	wq_delayqueue *dq;
	struct taker leader, follower;

	(void)state;
	IS(wq_delayqueue_new(&dq, NULL), WQ_OK);

	int64_t now = wq_clock_monotonic();

	IS(wq_delayqueue_offer(dq, V("a"), now + 60 * WQ_MILLISECOND), WQ_OK);
	taker_start(&leader, dq, now + 20 * WQ_MILLISECOND);
	taker_start(&follower, dq, WQ_NEVER);
	taker_got_nothing(&leader, WQ_ETIMEDOUT);
	assert_true(wq_clock_monotonic() >= now + 20 * WQ_MILLISECOND);
	taker_got(&follower, "a");
	assert_true(wq_clock_monotonic() >= now + 60 * WQ_MILLISECOND);
	IS(wq_delayqueue_free(dq), 0);
}

static void a_poll_beside_takers_leaves_nobody_behind(void **state)
{
	struct delay *f = *state;
	struct taker t[2];

	takers_block(t, 2, f->dq);
	offer(f, "a", 10);
	offer(f, "b", 20);
	offer(f, "c", 30);
	actor_blocks(&t[0].actor);
	actor_blocks(&t[1].actor);
	poll_nothing(f, WQ_EAGAIN);
	wq_manual_clock_advance(f->mc, 30);
	IS(actor_join(&t[0].actor), WQ_OK);
	IS(actor_join(&t[1].actor), WQ_OK);
	IS(wq_delayqueue_size(f->dq), 1);
	poll_is(f, "c");
}

static void null_is_a_value(void **state)
{
	struct delay *f = *state;
	void *value = f;

	IS(wq_delayqueue_offer(f->dq, NULL, 0), WQ_OK);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_take(f->dq, &value), WQ_OK);
	assert_null(value);
}

static void an_offer_wakes_who_waits_beside_a_never(void **state)
{
	struct delay *f = *state;
	struct taker t;

	IS(wq_delayqueue_offer(f->dq, V("never"), WQ_NEVER), WQ_OK);
	taker_block(&t, f->dq, WQ_NEVER);
	IS(wq_delayqueue_offer(f->dq, V("never too"), WQ_NEVER), WQ_OK);
	actor_blocks(&t.actor);
	offer(f, "a", 0);
	taker_got(&t, "a");
}

static void never_does_not_come_even_at_the_end_of_time(void **state)
{
	struct delay *f = *state;
	struct taker t;

	taker_block(&t, f->dq, WQ_NEVER);
	wq_manual_clock_set(f->mc, WQ_NEVER);
	actor_blocks(&t.actor);
	IS(wq_delayqueue_offer(f->dq, V("a"), WQ_NEVER - 1), WQ_OK);
	taker_got(&t, "a");
}

/* ---- closing ---------------------------------------------------------------- */

static void close_wakes_everybody(void **state)
{
	struct delay *f = *state;
	struct taker t[TAKERS], timed;

	offer(f, "far", WQ_HOUR);
	takers_block(t, TAKERS, f->dq);
	taker_block(&timed, f->dq, START_NS + WQ_MINUTE);
	IS(wq_delayqueue_close(f->dq), WQ_OK);
	for (int i = 0; i < TAKERS; i++)
		taker_got_nothing(&t[i], WQ_ESHUTDOWN);
	taker_got_nothing(&timed, WQ_ESHUTDOWN);
	IS(wq_delayqueue_size(f->dq), 1);
}

static void a_closed_queue_refuses_offers(void **state)
{
	struct delay *f = *state;

	offer(f, "a", 0);
	IS(wq_delayqueue_close(f->dq), WQ_OK);
	IS(wq_delayqueue_offer(f->dq, V("b"), 0), WQ_ESHUTDOWN);
	IS(wq_delayqueue_offer(f->dq, V("b"), START_NS + WQ_HOUR), WQ_ESHUTDOWN);
	IS(wq_delayqueue_offer(f->dq, V("b"), WQ_NEVER), WQ_ESHUTDOWN);
	IS(wq_delayqueue_offer(f->dq, V("b"), -1), WQ_EINVAL);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_next(f->dq), START_NS);
	IS(wq_delayqueue_close(f->dq), WQ_OK); /* again */
	poll_is(f, "a");
}

static void what_has_expired_is_taken_from_a_closed_queue(void **state)
{
	struct delay *f = *state;
	void *value;

	offer(f, "a", 1);
	offer(f, "b", 2);
	offer(f, "c", 3);
	offer(f, "d", 100);
	offer(f, "e", WQ_HOUR);
	wq_manual_clock_advance(f->mc, 10);
	IS(wq_delayqueue_close(f->dq), WQ_OK);
	IS(wq_delayqueue_take(f->dq, &value), WQ_OK);
	value_is(value, "a");
	IS(wq_delayqueue_take_until(f->dq, &value, START_NS + WQ_HOUR), WQ_OK);
	value_is(value, "b");
	poll_is(f, "c");
	/* Nothing more has expired: nobody waits for what is left. */
	value = f;
	IS(wq_delayqueue_take(f->dq, &value), WQ_ESHUTDOWN);
	IS(wq_delayqueue_take_until(f->dq, &value, START_NS + WQ_HOUR), WQ_ESHUTDOWN);
	IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_ESHUTDOWN);
	poll_nothing(f, WQ_ESHUTDOWN);
	assert_ptr_equal(value, f);
	wq_manual_clock_advance(f->mc, 90);
	poll_is(f, "d");
	IS(wq_delayqueue_close(f->dq), WQ_OK);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_free(f->dq), 1);
	f->dq = NULL;
}

/* ---- freeing ---------------------------------------------------------------- */

static void free_is_refused_while_somebody_waits(void **state)
{
	struct delay *f = *state;
	struct taker t[2];

	offer(f, "a", 10);
	takers_block(t, 2, f->dq);
	IS(wq_delayqueue_free(f->dq), WQ_EBUSY);
	/* Nothing has changed: it still watches the clock, takes offers, and wakes. */
	actor_blocks(&t[0].actor);
	actor_blocks(&t[1].actor);
	IS(wq_delayqueue_size(f->dq), 1);
	offer(f, "b", 10);
	wq_manual_clock_advance(f->mc, 10);
	IS(actor_join(&t[0].actor), WQ_OK);
	IS(actor_join(&t[1].actor), WQ_OK);
	taker_block(&t[0], f->dq, START_NS + 20);
	IS(wq_delayqueue_free(f->dq), WQ_EBUSY);
	wq_manual_clock_advance(f->mc, 10);
	taker_got_nothing(&t[0], WQ_ETIMEDOUT);
	IS(wq_delayqueue_free(f->dq), 0);
	f->dq = NULL;
}

static void free_counts_what_is_left(void **state)
{
	struct delay *f = *state;

	offer(f, "a", 0);
	offer(f, "b", 10);
	IS(wq_delayqueue_offer(f->dq, V("c"), WQ_NEVER), WQ_OK);
	IS(wq_manual_clock_free(f->mc), WQ_EBUSY);
	IS(wq_delayqueue_free(f->dq), 3);
	memory_balanced(&f->mem);
	f->dq = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DELAY(an_offer_wakes_who_waits_beside_a_never),
	    WITH_DELAY(never_does_not_come_even_at_the_end_of_time),
	    WITH_DELAY(take_waits_for_the_time),
	    WITH_DELAY(take_waits_for_an_offer),
	    WITH_DELAY(an_earlier_value_is_waited_for_instead),
	    WITH_DELAY(take_until_gives_up),
	    WITH_DELAY(take_for_counts_from_now),
	    WITH_DELAY(take_until_takes_what_comes_in_time),
	    WITH_DELAY(each_value_goes_to_one_taker),
	    WITH_DELAY(one_value_ends_one_wait),
	    cmocka_unit_test(a_leader_that_gives_up_is_followed),
	    WITH_DELAY(a_poll_beside_takers_leaves_nobody_behind),
	    WITH_DELAY(null_is_a_value),
	    WITH_DELAY(close_wakes_everybody),
	    WITH_DELAY(a_closed_queue_refuses_offers),
	    WITH_DELAY(what_has_expired_is_taken_from_a_closed_queue),
	    WITH_DELAY(free_is_refused_while_somebody_waits),
	    WITH_DELAY(free_counts_what_is_left),
	};

	return cmocka_run_group_tests_name("delayqueue, waiting", tests, NULL, NULL);
}
