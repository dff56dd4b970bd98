/*
 * The promises of wq/delayqueue.h: order, waiting, deadlines, closing, freeing.
 * Values are pointers to letters: V("a").
 */
#include "../support/support.h"

enum { TAKERS = 4 };

struct delay {
	wq_delayqueue *dq;
	wq_manual_clock *mc;
	struct memory mem;
};

static int setup(void **state)
{
	struct delay *f = calloc(1, sizeof *f);

	assert_non_null(f);
	memory_init(&f->mem);
	IS(wq_manual_clock_new(&f->mc, START_NS), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(f->mc);
	wq_allocator allocator = memory_allocator(&f->mem);
	wq_delayqueue_options o = {.clock = &clock, .allocator = &allocator};

	IS(wq_delayqueue_new(&f->dq, &o), WQ_OK);
	*state = f;
	return 0;
}

/* A test that frees the queue itself leaves dq as NULL. */
static int teardown(void **state)
{
	struct delay *f = *state;

	if (f->dq)
		assert_true(wq_delayqueue_free(f->dq) >= 0);
	memory_balanced(&f->mem);
	IS(wq_manual_clock_free(f->mc), WQ_OK);
	free(f);
	return 0;
}

#define WITH_DELAY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* ---- helpers ---------------------------------------------------------------- */

static void *V(const char *letter)
{
	return (void *)(uintptr_t)letter;
}

static void offer(struct delay *f, const char *letter, int64_t after_ns)
{
	IS(wq_delayqueue_offer(f->dq, V(letter), START_NS + after_ns), WQ_OK);
}

static void value_is(const void *value, const char *letter)
{
	assert_non_null(value);
	assert_string_equal(value, letter);
}

static void poll_is(struct delay *f, const char *letter)
{
	void *value = NULL;

	IS(wq_delayqueue_poll(f->dq, &value), WQ_OK);
	value_is(value, letter);
}

/* Nothing can be taken; nothing is written either. */
static void poll_nothing(struct delay *f, int status)
{
	void *value = f;

	IS(wq_delayqueue_poll(f->dq, &value), status);
	assert_ptr_equal(value, f);
}

/* A thread in one take; a deadline of WQ_NEVER is take() itself. */
struct taker {
	struct actor actor;
	wq_delayqueue *dq;
	int64_t deadline_ns;
	void *value;
};

static int64_t taker_main(void *arg)
{
	struct taker *t = arg;

	if (t->deadline_ns == WQ_NEVER)
		return wq_delayqueue_take(t->dq, &t->value);
	return wq_delayqueue_take_until(t->dq, &t->value, t->deadline_ns);
}

static void taker_block(struct taker *t, struct delay *f, int64_t deadline_ns)
{
	t->dq = f->dq;
	t->deadline_ns = deadline_ns;
	t->value = NULL;
	actor_start(&t->actor, taker_main, t);
	actor_blocks(&t->actor);
}

static void takers_block(struct taker *t, int n, struct delay *f)
{
	for (int i = 0; i < n; i++)
		taker_block(&t[i], f, WQ_NEVER);
}

static void taker_got(struct taker *t, const char *letter)
{
	IS(actor_join(&t->actor), WQ_OK);
	value_is(t->value, letter);
}

static void taker_got_nothing(struct taker *t, int status)
{
	IS(actor_join(&t->actor), status);
	assert_null(t->value);
}

/* ---- order ------------------------------------------------------------------ */

static void the_earliest_comes_first(void **state)
{
	struct delay *f = *state;

	offer(f, "c", 30);
	offer(f, "a", 10);
	offer(f, "d", 40);
	offer(f, "b", 20);
	wq_manual_clock_advance(f->mc, 100);
	poll_is(f, "a");
	poll_is(f, "b");
	offer(f, "e", 35); /* expired already; it has its place all the same */
	poll_is(f, "c");
	poll_is(f, "e");
	poll_is(f, "d");
	poll_nothing(f, WQ_EAGAIN);
}

static void equal_ones_come_as_they_were_offered(void **state)
{
	static char letters[200][12];
	struct delay *f = *state;

	for (int i = 0; i < 200; i++) {
		snprintf(letters[i], sizeof letters[i], "%d", i);
		offer(f, letters[i], i % 3);
	}
	wq_manual_clock_advance(f->mc, 3);
	for (int time = 0; time < 3; time++)
		for (int i = time; i < 200; i += 3)
			poll_is(f, letters[i]);
	poll_nothing(f, WQ_EAGAIN);
}

/* Random offers, polls and steps against a sorted array. */
static uint64_t seed;

static void random_tape(void **state)
{
	enum { OPS = 20000, MOST = 300 };
	static struct {
		int64_t expiry_ns;
		int number;
	} line[MOST];
	static int numbers[OPS];
	struct delay *f = *state;
	uint64_t rng = seed;
	int n = 0;

	for (int op = 0; op < OPS; op++) {
		int64_t now = wq_manual_clock_now(f->mc);
		void *value = NULL;

		switch (rng_below(&rng, 5)) {
		case 0:
		case 1:
			if (n == MOST)
				break;

			int64_t expiry = now - 20 + (int64_t)rng_below(&rng, 100);
			int at = n++;

			numbers[op] = op;
			IS(wq_delayqueue_offer(f->dq, &numbers[op], expiry), WQ_OK);
			for (; at > 0 && line[at - 1].expiry_ns > expiry; at--)
				line[at] = line[at - 1];
			line[at].expiry_ns = expiry;
			line[at].number = op;
			break;
		case 2:
		case 3:
			if (n > 0 && line[0].expiry_ns <= now) {
				IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_OK);
				IS(*(int *)value, line[0].number);
				memmove(line, line + 1, (size_t)--n * sizeof *line);
			} else {
				IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_ETIMEDOUT);
				assert_null(value);
			}
			break;
		default:
			wq_manual_clock_advance(f->mc, (int64_t)rng_below(&rng, 20));
		}
		IS(wq_delayqueue_size(f->dq), n);
		IS(wq_delayqueue_next(f->dq), n ? line[0].expiry_ns : WQ_NEVER);
	}
}

/* ---- times ------------------------------------------------------------------ */

static void a_value_is_there_at_its_nanosecond(void **state)
{
	struct delay *f = *state;

	offer(f, "a", 1000);
	poll_nothing(f, WQ_EAGAIN);
	wq_manual_clock_advance(f->mc, 999);
	poll_nothing(f, WQ_EAGAIN);
	IS(wq_delayqueue_size(f->dq), 1);
	wq_manual_clock_advance(f->mc, 1);
	poll_is(f, "a");
	poll_nothing(f, WQ_EAGAIN);
}

static void a_time_that_has_passed_is_due_at_once(void **state)
{
	struct delay *f = *state;
	void *value;

	IS(wq_delayqueue_offer(f->dq, V("zero"), 0), WQ_OK);
	IS(wq_delayqueue_offer(f->dq, V("now"), START_NS), WQ_OK);
	IS(wq_delayqueue_offer(f->dq, V("before"), START_NS - 1), WQ_OK);
	IS(wq_delayqueue_take(f->dq, &value), WQ_OK);
	value_is(value, "zero");
	IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_OK);
	value_is(value, "before");
	poll_is(f, "now");
}

static void size_and_next(void **state)
{
	struct delay *f = *state;

	IS(wq_delayqueue_size(f->dq), 0);
	IS(wq_delayqueue_next(f->dq), WQ_NEVER);
	offer(f, "b", 20);
	IS(wq_delayqueue_next(f->dq), START_NS + 20);
	offer(f, "a", 10);
	offer(f, "c", 30);
	IS(wq_delayqueue_next(f->dq), START_NS + 10);
	IS(wq_delayqueue_size(f->dq), 3);
	wq_manual_clock_advance(f->mc, 15);
	IS(wq_delayqueue_now(f->dq), START_NS + 15);
	IS(wq_delayqueue_size(f->dq), 3); /* expired ones count */
	IS(wq_delayqueue_next(f->dq), START_NS + 10);
	poll_is(f, "a");
	IS(wq_delayqueue_size(f->dq), 2);
	IS(wq_delayqueue_next(f->dq), START_NS + 20);
}

static void never_is_never_due(void **state)
{
	struct delay *f = *state;

	IS(wq_delayqueue_offer(f->dq, V("never"), WQ_NEVER), WQ_OK);
	IS(wq_delayqueue_next(f->dq), WQ_NEVER);
	IS(wq_delayqueue_size(f->dq), 1);
	offer(f, "a", WQ_HOUR);
	IS(wq_delayqueue_offer(f->dq, V("last"), WQ_NEVER - 1), WQ_OK);
	IS(wq_delayqueue_next(f->dq), START_NS + WQ_HOUR);
	wq_manual_clock_set(f->mc, WQ_NEVER);
	poll_is(f, "a");
	poll_is(f, "last");
	poll_nothing(f, WQ_EAGAIN);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_free(f->dq), 1);
	f->dq = NULL;
}

static void an_offer_wakes_who_waits_beside_a_never(void **state)
{
	struct delay *f = *state;
	struct taker t;

	IS(wq_delayqueue_offer(f->dq, V("never"), WQ_NEVER), WQ_OK);
	taker_block(&t, f, WQ_NEVER);
	IS(wq_delayqueue_offer(f->dq, V("never too"), WQ_NEVER), WQ_OK);
	actor_blocks(&t.actor);
	offer(f, "a", 0);
	taker_got(&t, "a");
}

static void never_does_not_come_even_at_the_end_of_time(void **state)
{
	struct delay *f = *state;
	struct taker t;

	taker_block(&t, f, WQ_NEVER);
	wq_manual_clock_set(f->mc, WQ_NEVER);
	actor_blocks(&t.actor);
	IS(wq_delayqueue_offer(f->dq, V("a"), WQ_NEVER - 1), WQ_OK);
	taker_got(&t, "a");
}

/* ---- waiting ---------------------------------------------------------------- */

static void take_waits_for_the_time(void **state)
{
	struct delay *f = *state;
	struct taker t;

	offer(f, "a", 50);
	taker_block(&t, f, WQ_NEVER);
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

	taker_block(&t, f, WQ_NEVER);
	offer(f, "later", 50);
	actor_blocks(&t.actor);
	offer(f, "now", 0);
	taker_got(&t, "now");
	taker_block(&t, f, WQ_NEVER);
	wq_manual_clock_advance(f->mc, 50);
	taker_got(&t, "later");
}

static void an_earlier_value_is_waited_for_instead(void **state)
{
	struct delay *f = *state;
	struct taker t;

	offer(f, "late", 100);
	taker_block(&t, f, WQ_NEVER);
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
		taker_block(&t, f, now + 10);
		wq_manual_clock_advance(f->mc, 9);
		actor_blocks(&t.actor);
		wq_manual_clock_advance(f->mc, 1);
		taker_got_nothing(&t, WQ_ETIMEDOUT);
	}
	IS(wq_delayqueue_size(f->dq), 2);
}

static void take_until_takes_what_comes_in_time(void **state)
{
	struct delay *f = *state;
	struct taker t;
	void *value = f;

	offer(f, "a", 10);
	taker_block(&t, f, START_NS + 10);
	wq_manual_clock_advance(f->mc, 10); /* both times have come: the value wins */
	taker_got(&t, "a");
	offer(f, "b", 20);
	taker_block(&t, f, START_NS + 100);
	wq_manual_clock_advance(f->mc, 10);
	taker_got(&t, "b");
	taker_block(&t, f, START_NS + 100);
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

	takers_block(t, TAKERS, f);
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

	takers_block(t, TAKERS, f);
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
	leader = (struct taker){.dq = dq, .deadline_ns = now + 20 * WQ_MILLISECOND};
	actor_start(&leader.actor, taker_main, &leader);
	follower = (struct taker){.dq = dq, .deadline_ns = WQ_NEVER};
	actor_start(&follower.actor, taker_main, &follower);
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

	takers_block(t, 2, f);
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

/* ---- closing ---------------------------------------------------------------- */

static void close_wakes_everybody(void **state)
{
	struct delay *f = *state;
	struct taker t[TAKERS], timed;

	offer(f, "far", WQ_HOUR);
	takers_block(t, TAKERS, f);
	taker_block(&timed, f, START_NS + WQ_MINUTE);
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
	takers_block(t, 2, f);
	IS(wq_delayqueue_free(f->dq), WQ_EBUSY);
	/* Nothing has changed: it still watches the clock, takes offers, and wakes. */
	actor_blocks(&t[0].actor);
	actor_blocks(&t[1].actor);
	IS(wq_delayqueue_size(f->dq), 1);
	offer(f, "b", 10);
	wq_manual_clock_advance(f->mc, 10);
	IS(actor_join(&t[0].actor), WQ_OK);
	IS(actor_join(&t[1].actor), WQ_OK);
	taker_block(&t[0], f, START_NS + 20);
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

/* ---- clocks ----------------------------------------------------------------- */

struct own {
	_Atomic int64_t now_ns;
	int ons, offs, answer;
};

static int64_t own_now(void *ctx)
{
	return atomic_load(&((struct own *)ctx)->now_ns);
}

static int own_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	struct own *o = ctx;

	(void)changed;
	(void)arg;
	o->ons += on != 0;
	o->offs += on == 0;
	return o->answer;
}

static void a_clock_that_jumps(void **state)
{
	struct own own = {.now_ns = 1000};
	wq_clock clock = {.now = own_now, .ctx = &own};
	wq_delayqueue_options o = {.clock = &clock};
	struct delay f = {0};
	struct taker t[3];

	(void)state;
	IS(wq_delayqueue_new(&f.dq, &o), WQ_OK);
	IS(wq_delayqueue_now(f.dq), 1000);
	IS(wq_delayqueue_offer(f.dq, V("a"), 1000 + WQ_HOUR), WQ_OK);
	takers_block(t, 2, &f);
	taker_block(&t[2], &f, 1000 + WQ_HOUR - 1);
	IS(wq_delayqueue_clock_changed(f.dq), WQ_OK); /* it has not */
	for (int i = 0; i < 3; i++)
		actor_blocks(&t[i].actor);
	atomic_store(&own.now_ns, 1000 + WQ_HOUR - 1);
	IS(wq_delayqueue_clock_changed(f.dq), WQ_OK);
	taker_got_nothing(&t[2], WQ_ETIMEDOUT);
	atomic_store(&own.now_ns, 1000 + WQ_HOUR);
	IS(wq_delayqueue_clock_changed(f.dq), WQ_OK);
	IS(wq_delayqueue_offer(f.dq, V("a"), 0), WQ_OK);
	taker_got(&t[0], "a");
	taker_got(&t[1], "a");
	IS(wq_delayqueue_free(f.dq), 0);
}

static void a_clock_is_watched_from_new_to_free(void **state)
{
	struct own own = {.now_ns = 5};
	wq_clock clock = {.now = own_now, .watch = own_watch, .ctx = &own};
	wq_delayqueue_options o = {.clock = &clock};
	struct delay f = {0};
	struct taker t;

	(void)state;
	IS(wq_delayqueue_new(&f.dq, &o), WQ_OK);
	IS(own.ons, 1);
	IS(own.offs, 0);
	taker_block(&t, &f, WQ_NEVER);
	IS(wq_delayqueue_free(f.dq), WQ_EBUSY);
	IS(own.ons - own.offs, 1);
	IS(wq_delayqueue_offer(f.dq, V("a"), 5), WQ_OK);
	taker_got(&t, "a");
	IS(wq_delayqueue_free(f.dq), 0);
	IS(own.ons - own.offs, 0);
}

static void what_the_watch_answers_is_passed_on(void **state)
{
	struct own own = {.now_ns = 5, .answer = WQ_EIO};
	wq_clock clock = {.now = own_now, .watch = own_watch, .ctx = &own};
	struct memory mem;
	wq_delayqueue *dq = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);
	wq_delayqueue_options o = {.clock = &clock, .allocator = &a};

	IS(wq_delayqueue_new(&dq, &o), WQ_EIO);
	assert_null(dq);
	memory_balanced(&mem);
}

static void the_default_clock_is_monotonic(void **state)
{
	static char letters[20][12];
	wq_delayqueue *dq;
	void *value = NULL;

	(void)state;
	IS(wq_delayqueue_new(&dq, NULL), WQ_OK);

	int64_t before = wq_clock_monotonic(), now = wq_delayqueue_now(dq);

	assert_true(before <= now && now <= wq_clock_monotonic());
	IS(wq_delayqueue_take_until(dq, &value, now + 2 * WQ_MILLISECOND), WQ_ETIMEDOUT);
	assert_true(wq_clock_monotonic() >= now + 2 * WQ_MILLISECOND);
	now = wq_clock_monotonic();
	for (int i = 19; i >= 0; i--) {
		snprintf(letters[i], sizeof letters[i], "%d", i);
		IS(wq_delayqueue_offer(dq, letters[i], now + i * WQ_MILLISECOND / 2), WQ_OK);
	}
	for (int i = 0; i < 20; i++) {
		IS(wq_delayqueue_take(dq, &value), WQ_OK);
		assert_true(wq_clock_monotonic() >= now + i * WQ_MILLISECOND / 2);
		value_is(value, letters[i]);
	}
	IS(wq_delayqueue_free(dq), 0);
}

/* ---- bad input -------------------------------------------------------------- */

static void bad_options(void **state)
{
	struct memory mem;
	wq_delayqueue *dq = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator good = memory_allocator(&mem), bad = good;
	wq_clock no_now = {.now = NULL};
	wq_delayqueue_options o = {.allocator = &good};

	IS(wq_delayqueue_new(NULL, NULL), WQ_EINVAL);
	IS(wq_delayqueue_new(NULL, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o.reserved[i] = 1;
		IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
		o.reserved[i] = 0;
	}
	o.clock = &no_now;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	o.clock = NULL;
	bad.alloc = NULL;
	o.allocator = &bad;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	bad = good;
	bad.free = NULL;
	IS(wq_delayqueue_new(&dq, &o), WQ_EINVAL);
	assert_null(dq);
	IS(mem.calls, 0);
	o.allocator = NULL;
	IS(wq_delayqueue_new(&dq, &o), WQ_OK); /* all zero is a good one */
	IS(wq_delayqueue_free(dq), 0);
}

static void bad_arguments(void **state)
{
	struct delay *f = *state;
	void *value = f;

	IS(wq_delayqueue_free(NULL), WQ_EINVAL);
	IS(wq_delayqueue_offer(NULL, f, 0), WQ_EINVAL);
	IS(wq_delayqueue_offer(f->dq, f, -1), WQ_EINVAL);
	IS(wq_delayqueue_offer(f->dq, f, INT64_MIN), WQ_EINVAL);
	IS(wq_delayqueue_size(f->dq), 0);
	offer(f, "a", 0);
	IS(wq_delayqueue_take(NULL, &value), WQ_EINVAL);
	IS(wq_delayqueue_take(f->dq, NULL), WQ_EINVAL);
	IS(wq_delayqueue_take_until(NULL, &value, 0), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, NULL, 0), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, &value, -1), WQ_EINVAL);
	IS(wq_delayqueue_take_until(f->dq, &value, INT64_MIN), WQ_EINVAL);
	IS(wq_delayqueue_poll(NULL, &value), WQ_EINVAL);
	IS(wq_delayqueue_poll(f->dq, NULL), WQ_EINVAL);
	assert_ptr_equal(value, f);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_size(NULL), WQ_EINVAL);
	IS(wq_delayqueue_next(NULL), WQ_EINVAL);
	IS(wq_delayqueue_close(NULL), WQ_EINVAL);
	IS(wq_delayqueue_now(NULL), WQ_EINVAL);
	IS(wq_delayqueue_clock_changed(NULL), WQ_EINVAL);
	poll_is(f, "a");
}

/* ---- memory ----------------------------------------------------------------- */

/* The n-th allocation fails; true if there was an n-th. */
static bool run_without_memory(int64_t n, bool and_later)
{
	enum { VALUES = 200 };
	static int numbers[VALUES];
	struct memory mem;
	wq_delayqueue *dq = NULL;
	void *value;
	bool failed;

	memory_init(&mem);
	mem.fail_at = n;
	mem.fail_on = and_later;

	wq_allocator a = memory_allocator(&mem);
	wq_delayqueue_options o = {.allocator = &a};
	int rc = wq_delayqueue_new(&dq, &o);

	if (rc != WQ_OK) {
		IS(rc, WQ_ENOMEM);
		assert_null(dq);
		memory_balanced(&mem);
		return true;
	}
	for (int i = 0; i < VALUES; i++) {
		numbers[i] = i;
		rc = wq_delayqueue_offer(dq, &numbers[i], VALUES - i);
		if (rc != WQ_OK) {
			IS(rc, WQ_ENOMEM);
			IS(wq_delayqueue_size(dq), i);
			IS(wq_delayqueue_next(dq), i ? VALUES - i + 1 : WQ_NEVER);
			mem.fail_at = -1;
			IS(wq_delayqueue_offer(dq, &numbers[i], VALUES - i), WQ_OK);
		}
	}
	failed = mem.failed > 0;
	mem.fail_at = 0; /* taking needs none */
	mem.fail_on = true;
	for (int i = VALUES - 1; i >= 0; i--) {
		IS(wq_delayqueue_take(dq, &value), WQ_OK);
		IS(*(int *)value, i);
	}
	IS(wq_delayqueue_close(dq), WQ_OK);
	IS(wq_delayqueue_free(dq), 0);
	memory_balanced(&mem);
	return failed;
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	for (int and_later = 0; and_later < 2; and_later++) {
		int64_t n = 0;

		while (run_without_memory(n, and_later))
			n++;
		assert_true(n >= 4);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    WITH_DELAY(the_earliest_comes_first),
	    WITH_DELAY(equal_ones_come_as_they_were_offered),
	    WITH_DELAY(random_tape),
	    WITH_DELAY(a_value_is_there_at_its_nanosecond),
	    WITH_DELAY(a_time_that_has_passed_is_due_at_once),
	    WITH_DELAY(size_and_next),
	    WITH_DELAY(never_is_never_due),
	    WITH_DELAY(an_offer_wakes_who_waits_beside_a_never),
	    WITH_DELAY(never_does_not_come_even_at_the_end_of_time),
	    WITH_DELAY(take_waits_for_the_time),
	    WITH_DELAY(take_waits_for_an_offer),
	    WITH_DELAY(an_earlier_value_is_waited_for_instead),
	    WITH_DELAY(take_until_gives_up),
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
	    cmocka_unit_test(a_clock_that_jumps),
	    cmocka_unit_test(a_clock_is_watched_from_new_to_free),
	    cmocka_unit_test(what_the_watch_answers_is_passed_on),
	    cmocka_unit_test(the_default_clock_is_monotonic),
	    WITH_DELAY(bad_options),
	    WITH_DELAY(bad_arguments),
	    cmocka_unit_test(each_allocation_fails_once),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("delayqueue", tests, NULL, NULL);
}
