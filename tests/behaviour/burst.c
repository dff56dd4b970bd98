/*
 * D5 of the rules when so many keys come due at once that one hold of the lock
 * does not move them all: they are ready all the same, and their order is kept.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED };

enum { BURST = 3500 }; /* more than one hold of the lock moves */

static void add_burst(struct fixture *f)
{
	for (uint32_t i = 0; i < BURST; i++) {
		uint32_t key = (i * 7919) % BURST; /* not in the order of their times */

		IS(wq_add_at(f->q, &key, sizeof key, START_NS + 1 + key / 2), WQ_DELAYED);
	}
	IS(wq_len(f->q), 0);
}

/* Key i/2 at one time, of equal ones the first added; then `more` keys from BURST on. */
static void burst_in_order(wq_queue *q, uint32_t more)
{
	uint32_t last_pair = 0;

	for (uint32_t i = 0; i < BURST + more; i++) {
		wq_item it;
		uint32_t key = UINT32_MAX;

		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, sizeof key);
		memcpy(&key, it.key, sizeof key);
		if (i < BURST) {
			IS(key / 2, i / 2);
			assert_true(key / 2 >= last_pair);
			last_pair = key / 2;
			IS(it.added_ns, START_NS + 1 + key / 2);
		} else {
			IS(key, i);
		}
		IS(wq_done(q, &it), WQ_OK);
	}
	check_whole(q, 0, 0);
}

static void D5_len_counts_a_whole_burst(void **state)
{
	struct fixture *f = *state;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_len(f->q), BURST);
	burst_in_order(f->q, 0);
}

static void D5_state_sees_the_last_of_a_burst(void **state)
{
	struct fixture *f = *state;
	uint32_t last = BURST - 1;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_state(f->q, &last, sizeof last), Q);
	burst_in_order(f->q, 0);
}

static int is_queued(void *ctx, const wq_key_info *info)
{
	int *wrong = ctx;

	*wrong += info->state != Q || info->due_ns != 0;
	return 0;
}

static void D5_walk_shows_a_burst_as_queued(void **state)
{
	struct fixture *f = *state;
	int wrong = 0;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_walk(f->q, is_queued, &wrong), BURST);
	IS(wrong, 0);
	burst_in_order(f->q, 0);
}

struct later {
	struct fixture *f;
	int waiting, queued;
};

static int see_later(void *ctx, const wq_key_info *info)
{
	struct later *l = ctx;

	l->waiting += info->state == WQ_STATE_WAITING;
	l->queued += info->state == Q && info->due_ns == 0;
	if (l->waiting + l->queued == 1)
		wq_manual_clock_advance(l->f->mc, WQ_SECOND);
	return 0;
}

/* What was copied before the clock moved is shown as it was, and nothing after that. */
static void D5_walk_sees_a_burst_that_comes_meanwhile(void **state)
{
	struct later l = {.f = *state};

	add_burst(l.f);
	IS(wq_walk(l.f->q, see_later, &l), BURST);
	assert_true(l.waiting <= 256);
	IS(l.queued, BURST - l.waiting);
	burst_in_order(l.f->q, 0);
}

/* Adds and Dones that come while the burst enters the line stand behind all of it. */
static void D5_adds_amid_a_burst_stand_behind_it(void **state)
{
	struct fixture *f = *state;
	uint32_t key = BURST;
	wq_key many[2];
	uint32_t many_keys[2];
	wq_item it;

	IS(wq_add(f->q, &key, sizeof key), WQ_QUEUED);
	IS(wq_try_get(f->q, &it), WQ_OK);
	IS(wq_add(f->q, &key, sizeof key), WQ_MARKED);
	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	key++;
	IS(wq_add(f->q, &key, sizeof key), WQ_QUEUED);
	for (uint32_t i = 0; i < 2; i++) {
		many_keys[i] = ++key;
		many[i] = (wq_key){&many_keys[i], sizeof many_keys[i]};
	}
	IS(wq_add_many(f->q, many, 2, NULL), 2);
	IS(wq_add(f->q, many_keys, sizeof many_keys[0]), WQ_MERGED);
	burst_in_order(f->q, 4);
}

/* A key whose time has come is ready, for every call, even if it cannot be in line yet. */
static void D5_calls_amid_a_burst_find_a_key_ready(void **state)
{
	uint32_t last = BURST - 1;

	(void)state;
	for (int added = 0; added < 2; added++) /* the last of the burst, or one added behind it */
		for (int call = 0; call < 6; call++) {
			struct fixture f;
			const void *key = added ? (const void *)"key" : &last;
			size_t len = added ? 3 : sizeof last;
			wq_add_options o = {.after_ns = WQ_HOUR, .policy = WQ_REPLACE};

			fixture_open(&f, NULL);
			add_burst(&f);
			wq_manual_clock_advance(f.mc, WQ_SECOND);
			if (added)
				IS(wq_add_str(f.q, "key"), WQ_QUEUED);
			if (call == 0)
				IS(wq_add(f.q, key, len), WQ_MERGED);
			if (call == 1)
				IS(wq_add_after(f.q, key, len, WQ_HOUR), WQ_MERGED);
			if (call == 2)
				IS(wq_add_with(f.q, key, len, &o), WQ_MERGED);
			if (call == 3)
				IS(wq_reschedule(f.q, key, len, START_NS + WQ_HOUR), WQ_ENOTFOUND);
			if (call == 4)
				IS(cancel_key(f.q, key, len), Q);
			if (call == 5)
				IS(wq_state(f.q, key, len), Q);
			IS(wq_state(f.q, key, len), call == 4 ? 0 : Q);
			IS(wq_len(f.q), BURST + added - (call == 4));
			IS(wq_next_deadline(f.q), WQ_NEVER);
			fixture_close(&f, BURST + added - (call == 4));
		}
}

static int add_reminder(wq_queue *q, const char *key, int64_t due_ns)
{
	wq_add_options o = {.at_ns = due_ns, .policy = WQ_REMIND};

	return wq_add_with(q, key, strlen(key), &o);
}

/* The keys of the burst are got and done; what stands behind them is left. */
static void work_off_burst(wq_queue *q)
{
	static wq_item items[BURST];

	IS(wq_get_many_until(q, items, BURST, WQ_NOWAIT), BURST);
	for (uint32_t i = 0; i < BURST; i++)
		IS((int64_t)items[i].len, sizeof i);
	IS(wq_done_many(q, items, BURST, NULL), BURST);
}

/* Q4, D2: what comes back while the burst enters the line keeps the time of its add. */
static void D2_what_comes_back_amid_a_burst_keeps_its_time(void **state)
{
	struct fixture *f = *state;
	wq_item again, back, it;

	IS(wq_add_str(f->q, "again"), WQ_QUEUED);
	IS(wq_add_str(f->q, "back"), WQ_QUEUED);
	get_is(f->q, &again, "again");
	get_is(f->q, &back, "back");
	add_burst(f);
	IS(wq_add_str(f->q, "again"), WQ_MARKED);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_done(f->q, &again), WQ_QUEUED);
	IS(wq_requeue(f->q, &back, WQ_TAIL), WQ_QUEUED);
	work_off_burst(f->q);
	get_is(f->q, &it, "again");
	IS(it.added_ns, START_NS);
	IS(wq_done(f->q, &it), WQ_OK);
	get_is(f->q, &it, "back");
	IS(it.added_ns, START_NS);
	IS(wq_done(f->q, &it), WQ_OK);
	check_whole(f->q, 0, 0);
}

/* A copy of a held key that is due has made it dirty, even if it was not its turn yet. */
static void D2_done_amid_a_burst_brings_back_what_is_due(void **state)
{
	struct fixture *f = *state;
	wq_item copy, reminder, it;

	IS(wq_add_str(f->q, "copy"), WQ_QUEUED);
	IS(wq_add_str(f->q, "reminder"), WQ_QUEUED);
	get_is(f->q, &copy, "copy");
	get_is(f->q, &reminder, "reminder");
	add_burst(f);
	IS(wq_add_at(f->q, "copy", 4, START_NS + BURST), WQ_DELAYED);
	IS(add_reminder(f->q, "reminder", START_NS + BURST), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_done(f->q, &reminder), WQ_QUEUED);
	IS(wq_done(f->q, &copy), WQ_QUEUED);
	work_off_burst(f->q);
	get_is(f->q, &it, "reminder");
	IS(it.added_ns, START_NS + BURST);
	IS(wq_done(f->q, &it), WQ_OK);
	take_is(f->q, "copy", WQ_OK);
	check_whole(f->q, 0, 0);
}

/* D4: an add of a key whose reminder is due merges with it: one delivery, by the reminder's time. */
static void D4_add_amid_a_burst_merges_with_a_due_reminder(void **state)
{
	struct fixture *f = *state;
	wq_item held, it;

	IS(wq_add_str(f->q, "held"), WQ_QUEUED);
	get_is(f->q, &held, "held");
	add_burst(f);
	IS(add_reminder(f->q, "alone", START_NS + BURST), WQ_DELAYED);
	IS(add_reminder(f->q, "waits", START_NS + BURST), WQ_DELAYED);
	IS(wq_add_after(f->q, "waits", 5, WQ_HOUR), WQ_DELAYED);
	IS(add_reminder(f->q, "held", START_NS + BURST), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_add_str(f->q, "alone"), WQ_MERGED);
	IS(wq_add_str(f->q, "waits"), WQ_MERGED);
	IS(wq_add_str(f->q, "held"), WQ_MERGED);
	IS(wq_len(f->q), BURST + 2);
	work_off_burst(f->q);
	get_is(f->q, &it, "alone");
	IS(it.added_ns, START_NS + BURST);
	IS(wq_done(f->q, &it), WQ_OK);
	take_is(f->q, "waits", WQ_OK);
	IS(wq_done(f->q, &held), WQ_QUEUED);
	take_is(f->q, "held", WQ_OK);
	check_whole(f->q, 0, 0);
}

/* [BOUND] A reminder that is due has merged with its key, and counts no more. */
static void D4_a_due_reminder_amid_a_burst_makes_room(void **state)
{
	(void)state;
	for (int remembered = 0; remembered < 2; remembered++) {
		struct fixture f;
		wq_item it;

		fixture_open(&f, &(wq_options){.max_keys = BURST + 2});
		if (remembered) {
			IS(wq_add_str(f.q, "new"), WQ_QUEUED);
			get_is(f.q, &it, "new");
			IS(wq_set_failures(f.q, "new", 3, 1), WQ_OK);
			IS(wq_done(f.q, &it), WQ_OK);
		}
		add_burst(&f);
		IS(wq_add_str(f.q, "key"), WQ_QUEUED);
		IS(add_reminder(f.q, "key", START_NS + BURST), WQ_DELAYED);
		IS(wq_add_str(f.q, "new"), WQ_EFULL);
		wq_manual_clock_advance(f.mc, WQ_SECOND);
		IS(wq_add_str(f.q, "new"), WQ_QUEUED);
		IS(wq_add_str(f.q, "more"), WQ_EFULL);
		fixture_close(&f, BURST + 2);
	}
}

/* D4: a key in line takes its due reminder along, wherever in the burst that stands. */
static void D4_get_amid_a_burst_merges_with_a_due_reminder(void **state)
{
	struct fixture *f = *state;

	add_burst(f);
	IS(wq_add_str(f->q, "key"), WQ_QUEUED);
	IS(add_reminder(f->q, "key", START_NS + BURST), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	take_is(f->q, "key", WQ_OK);
	work_off_burst(f->q);
	check_whole(f->q, 0, 0);
}

/* Q10: any other order has to know all that is due before it pops; here the last in is first out. */
static wq_node *last_pushed;

static void lifo_push(void *ctx, wq_node *n, enum wq_where where)
{
	(void)ctx;
	(void)where;
	n->link[0] = last_pushed;
	last_pushed = n;
}

static wq_node *lifo_pop(void *ctx)
{
	wq_node *n = last_pushed;

	(void)ctx;
	last_pushed = n->link[0];
	return n;
}

static void Q10_an_order_knows_a_whole_burst(void **state)
{
	enum { NOTHING_IN_LINE, SOMETHING_IN_LINE, A_GET_WAITS, CASES };
	wq_order lifo = {.push = lifo_push, .pop = lifo_pop};

	(void)state;
	for (int before = NOTHING_IN_LINE; before < CASES; before++) {
		struct fixture f;
		struct getter g;

		last_pushed = NULL;
		fixture_open(&f, &(wq_options){.order = &lifo});
		add_burst(&f);
		if (before == SOMETHING_IN_LINE)
			IS(wq_add_str(f.q, "first"), WQ_QUEUED);
		IS(wq_add_at(f.q, "last", 4, START_NS + BURST), WQ_DELAYED);
		if (before == A_GET_WAITS)
			getter_block(&g, f.q, WQ_NEVER);
		wq_manual_clock_advance(f.mc, WQ_SECOND);
		if (before == A_GET_WAITS)
			IS(getter_join(&g), WQ_OK);
		else
			IS(wq_try_get(f.q, &g.item), WQ_OK);
		assert_memory_equal(g.item.key, "last", 4);
		IS(wq_done(f.q, &g.item), WQ_OK);
		fixture_close(&f, BURST + (before == SOMETHING_IN_LINE));
	}
}

/* D6: a stop puts in line what is due, however many holds that takes, and leaves the rest. */
static void D6_a_stop_amid_a_burst(void **state)
{
	enum { DUE_PAIRS = 1001, DUE = 2 * DUE_PAIRS };

	(void)state;
	for (int by_drain = 0; by_drain < 2; by_drain++) {
		struct fixture f;
		wq_report r;
		wq_item it;

		fixture_open(&f, NULL);
		add_burst(&f);
		wq_manual_clock_advance(f.mc, DUE_PAIRS);
		if (by_drain)
			IS(wq_drain_until(f.q, 0, NULL, NULL), WQ_ETIMEDOUT);
		else
			IS(wq_shutdown(f.q), WQ_OK);
		wq_manual_clock_advance(f.mc, WQ_HOUR);
		IS(wq_drain_until(f.q, 0, NULL, &r), WQ_ETIMEDOUT);
		IS((int64_t)r.queued, DUE);
		IS((int64_t)r.delayed, BURST - DUE);
		IS((int64_t)r.retries, 0);
		for (uint32_t i = 0; i < DUE; i++) {
			uint32_t key;

			IS(wq_try_get(f.q, &it), WQ_OK);
			memcpy(&key, it.key, sizeof key);
			IS(key / 2, i / 2);
			IS(it.added_ns, START_NS + 1 + key / 2);
			IS(wq_done(f.q, &it), WQ_OK);
		}
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		IS(wq_drain_until(f.q, 0, NULL, &r), WQ_LEFT);
		IS((int64_t)r.delayed, BURST - DUE);
		fixture_close(&f, BURST - DUE);
	}
}

/* ---- two ends of one hold ---------------------------------------------------- */

/* Who ends the same hold as the test; it begins when the first key of the burst enters the line. */
struct rival {
	struct fixture f;
	wq_node *first, **last;
	wq_item item;
	struct actor actor;
	bool awaited;
};

static int64_t end_too(void *arg)
{
	struct rival *r = arg;

	return wq_done(r->f.q, &r->item);
}

static void push_beside(void *ctx, wq_node *n, enum wq_where where)
{
	struct rival *r = ctx;

	(void)where;
	n->link[0] = NULL;
	*r->last = n;
	r->last = (wq_node **)&n->link[0];
	if (!r->awaited)
		return;
	/* The lock is held here: it waits for that, and is the next to have it. */
	r->awaited = false;
	actor_start(&r->actor, end_too, r);
	actor_blocks(&r->actor);
}

static wq_node *pop_first(void *ctx)
{
	struct rival *r = ctx;
	wq_node *n = r->first;

	r->first = n->link[0];
	if (!r->first)
		r->last = &r->first;
	return n;
}

/* [WHOLE] of a settle that lets go of the lock, and finds its item stale afterwards. */
static void a_settle_that_comes_too_late_forgets_nothing(void **state)
{
	struct rival r = {.awaited = false};
	wq_order order = {.push = push_beside, .pop = pop_first, .ctx = &r};
	wq_options o = {.order = &order};
	int mine;

	(void)state;
	r.last = &r.first;
	fixture_open(&r.f, &o);
	IS(wq_add_str(r.f.q, "k"), WQ_QUEUED);
	IS(wq_set_failures(r.f.q, "k", 1, 3), WQ_OK);
	get_is(r.f.q, &r.item, "k");
	IS(wq_add_str(r.f.q, "k"), WQ_MARKED);
	/* The test moves 1,000, the rival as many, the test the rest; then it is the rival's turn. */
	for (uint32_t i = 0; i < 2500; i++)
		IS(wq_add_at(r.f.q, &i, sizeof i, START_NS + 1), WQ_DELAYED);
	IS(wq_manual_clock_advance(r.f.mc, 1), WQ_OK);
	r.awaited = true;
	mine = wq_settle(r.f.q, &r.item, WQ_DONE);
	IS(actor_join(&r.actor), mine == WQ_ESTALE ? WQ_QUEUED : WQ_ESTALE);
	IS(wq_failures(r.f.q, "k", 1), mine == WQ_ESTALE ? 3 : 0);
	fixture_close(&r.f, 2501);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(D5_len_counts_a_whole_burst),
	    WITH_FIXTURE(D5_state_sees_the_last_of_a_burst),
	    WITH_FIXTURE(D5_walk_shows_a_burst_as_queued),
	    WITH_FIXTURE(D5_walk_sees_a_burst_that_comes_meanwhile),
	    WITH_FIXTURE(D5_adds_amid_a_burst_stand_behind_it),
	    cmocka_unit_test(D5_calls_amid_a_burst_find_a_key_ready),
	    WITH_FIXTURE(D2_what_comes_back_amid_a_burst_keeps_its_time),
	    WITH_FIXTURE(D2_done_amid_a_burst_brings_back_what_is_due),
	    WITH_FIXTURE(D4_add_amid_a_burst_merges_with_a_due_reminder),
	    WITH_FIXTURE(D4_get_amid_a_burst_merges_with_a_due_reminder),
	    cmocka_unit_test(D4_a_due_reminder_amid_a_burst_makes_room),
	    cmocka_unit_test(Q10_an_order_knows_a_whole_burst),
	    cmocka_unit_test(D6_a_stop_amid_a_burst),
	    cmocka_unit_test(a_settle_that_comes_too_late_forgets_nothing),
	};

	return cmocka_run_group_tests_name("burst", tests, NULL, NULL);
}
