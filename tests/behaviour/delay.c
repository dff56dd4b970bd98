/*
 * Adds with a delay: D1, D2, D5, D7 and D8 of the rules. The table of states is
 * in states.c, policies and reminders in policy.c, D6 in drain_waiting.c, many
 * keys at once in burst.c.
 */
#include "../support/cancel.h"
#include "../support/support.h"

#include <poll.h>

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, RD = R | WQ_STATE_DIRTY, W = WQ_STATE_WAITING };

#define MS WQ_MILLISECOND

static int at(wq_queue *q, const char *key, int64_t at_ns, enum wq_policy policy)
{
	wq_add_options o = {.at_ns = at_ns, .policy = policy};

	return wq_add_with(q, key, strlen(key), &o);
}

/* ---- D1, D7: the time that is asked for ------------------------------------ */

static void D1_no_delay_is_an_add(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (enum wq_policy policy = WQ_MIN; policy <= WQ_REMIND; policy++) {
		IS(after(q, "a", 0, policy), WQ_QUEUED);
		IS(after(q, "b", -1, policy), WQ_QUEUED);
		IS(after(q, "c", INT64_MIN, policy), WQ_QUEUED);
		IS(at(q, "d", 1, policy), WQ_QUEUED);
		IS(at(q, "e", START_NS, policy), WQ_QUEUED);
		IS(after(q, "e", 0, policy), WQ_MERGED);
		line_is(q, "abcde");
	}
	IS(wq_add_after(q, "a", 1, 0), WQ_QUEUED);
	IS(wq_add_at(q, "b", 1, START_NS), WQ_QUEUED);
	line_is(q, "ab");
	IS(wq_next_deadline(q), WQ_NEVER);
}

static void D1_refused_after_shutdown(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	wq_shutdown(q);
	for (enum wq_policy policy = WQ_MIN; policy <= WQ_REMIND; policy++) {
		IS(after(q, "a", MS, policy), WQ_ESHUTDOWN);
		IS(after(q, "a", 0, policy), WQ_ESHUTDOWN);
	}
	check_whole(q, 0, 0);
}

static void D7_times_saturate(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	IS(wq_add_after(q, "a", 1, WQ_NEVER), WQ_DELAYED);
	IS(wq_add_after(q, "b", 1, WQ_NEVER - 1), WQ_DELAYED); /* now + this is beyond it */
	IS(wq_add_at(q, "c", 1, WQ_NEVER), WQ_DELAYED);
	IS(wq_next_deadline(q), WQ_NEVER);
	IS(wq_add_at(q, "d", 1, WQ_NEVER - 1), WQ_DELAYED); /* a time like any other */
	IS(wq_next_deadline(q), WQ_NEVER - 1);
	wq_manual_clock_set(f->mc, WQ_NEVER - 2);
	IS(wq_len(q), 0);
	wq_manual_clock_set(f->mc, WQ_NEVER - 1);
	line_is(q, "d");
	IS(wq_next_deadline(q), WQ_NEVER);
	IS(state_of(q, "a") | state_of(q, "b") | state_of(q, "c"), W);
	IS(wq_add_str(q, "b"), WQ_QUEUED); /* moved, cancelled or added: it is not lost */
	IS(wq_reschedule(q, "a", 1, 5), WQ_MOVED);
	IS(cancel_key(q, "c", 1), W);
	line_is(q, "ba");
	check_whole(q, 0, 0);
}

static void bad_arguments_change_nothing(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_add_options o = {.after_ns = MS, .at_ns = START_NS + MS};

	IS(wq_add_with(q, "a", 1, &o), WQ_EINVAL);
	IS(at(q, "a", -1, WQ_MIN), WQ_EINVAL);
	IS(after(q, "a", MS, (enum wq_policy)5), WQ_EINVAL);
	o = (wq_add_options){.after_ns = MS, .limited = 2};
	IS(wq_add_with(q, "a", 1, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o = (wq_add_options){.after_ns = MS};
		o.reserved[i] = 1;
		IS(wq_add_with(q, "a", 1, &o), WQ_EINVAL);
	}
	IS(wq_reschedule(q, "a", 1, -1), WQ_EINVAL);
	IS(state_of(q, "a"), 0);
	IS(wq_next_deadline(NULL), WQ_EINVAL);
	check_whole(q, 0, 0);
}

/* ---- D2: order ------------------------------------------------------------------ */

static void D2_by_the_nanosecond_then_by_call(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	wq_add_at(q, "d", 1, START_NS + 1002);
	wq_add_at(q, "b", 1, START_NS + 1001);
	wq_add_at(q, "c", 1, START_NS + 1001);
	wq_add_at(q, "e", 1, START_NS + 1002);
	wq_add_at(q, "a", 1, START_NS + 1000);
	wq_add_after(q, "f", 1, 1002);
	after(q, "g", 1002, WQ_REMIND);
	wq_manual_clock_advance(f->mc, 999);
	IS(wq_len(q), 0);
	IS(wq_next_deadline(q), START_NS + 1000);
	wq_manual_clock_advance(f->mc, 1);
	IS(wq_len(q), 1);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	line_is(q, "abcdefg");
}

/*
 * A key that is moved away from a time and back, or taken back and added anew:
 * it comes once, at that time, and those that stayed keep their order.
 */
static void D2_equal_times_away_and_back(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	for (int way = 0; way < 3; way++) {
		int64_t due = wq_now(q) + 100;
		char got[4] = "";

		for (const char *k = "xabc"; *k; k++)
			wq_add_at(q, k, 1, due);
		if (way == 0) {
			IS(wq_reschedule(q, "x", 1, due + 100), WQ_MOVED);
			IS(wq_reschedule(q, "x", 1, due), WQ_MOVED);
		} else if (way == 1) {
			IS(at(q, "x", due + 100, WQ_REPLACE), WQ_MOVED);
			IS(at(q, "x", due, WQ_REPLACE), WQ_MOVED);
		} else {
			IS(cancel_key(q, "x", 1), W);
			IS(wq_add_at(q, "x", 1, due), WQ_DELAYED);
		}
		wq_manual_clock_advance(f->mc, 99);
		IS(wq_len(q), 0);
		wq_manual_clock_advance(f->mc, 1);
		IS(wq_len(q), 4);
		for (int n = 0, others = 0; n < 4; n++) {
			wq_item it;

			IS(wq_try_get(q, &it), WQ_OK);
			if (*(const char *)it.key != 'x')
				got[others++] = *(const char *)it.key;
			assert_true(others < 4);
			IS(wq_done(q, &it), WQ_OK);
		}
		assert_string_equal(got, "abc");
		wq_manual_clock_advance(f->mc, 100);
		check_whole(q, 0, 0);
	}
}

static void D2_due_before_another_was_added(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_key keys[] = {{"f", 1}, {"g", 1}};
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	wq_add_str(q, "a");
	wq_add_after(q, "b", 1, 10);
	wq_add_after(q, "d", 1, 20);
	wq_manual_clock_advance(f->mc, 15); /* nobody looks */
	wq_add_str(q, "c");
	wq_manual_clock_advance(f->mc, 15);
	wq_add_str(q, "e");
	IS(wq_add_many(q, keys, 2, NULL), 2);
	wq_add_after(q, "h", 1, 10);
	wq_manual_clock_advance(f->mc, 15);
	IS(wq_done(q, &it), WQ_QUEUED); /* to the tail at Done */
	line_is(q, "bcdefgha");
}

/* Though nobody has looked at the clock since: at Done it is dirty, and goes behind what is due. */
static void D2_due_while_it_runs_goes_to_the_tail(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	for (int remind = 0; remind < 2; remind++) {
		wq_item it;

		wq_add_str(q, "a");
		get_is(q, &it, "a");
		IS(after(q, "a", 10, remind ? WQ_REMIND : WQ_MIN), WQ_DELAYED);
		wq_add_after(q, "b", 1, 20);
		wq_manual_clock_advance(f->mc, 30);
		IS(wq_done(q, &it), WQ_QUEUED);
		line_is(q, "ba");
	}
}

static void D2_requeue_goes_behind_what_is_due(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	wq_add_after(q, "b", 1, 10);
	wq_add_after(q, "c", 1, 20);
	wq_manual_clock_advance(f->mc, 15);
	IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
	wq_manual_clock_advance(f->mc, 15);
	line_is(q, "bac");
}

static void D2_added_ns_is_the_due_time(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_item it;

	wq_add_after(q, "a", 1, 10);
	after(q, "b", 20, WQ_REMIND);
	wq_manual_clock_advance(f->mc, 100);
	get_is(q, &it, "a");
	IS(it.added_ns, START_NS + 10);
	wq_add_after(q, "a", 1, 7);
	wq_manual_clock_advance(f->mc, 100);
	IS(wq_done(q, &it), WQ_QUEUED); /* it came due while it ran */
	get_is(q, &it, "b");
	IS(it.added_ns, START_NS + 20);
	IS(wq_done(q, &it), WQ_OK);
	get_is(q, &it, "a");
	IS(it.added_ns, START_NS + 107);
	IS(wq_done(q, &it), WQ_OK);
}

/* Whether or not a worker was waiting at the time. */
static void D2_a_blocked_get_wakes_at_the_due_time(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	struct getter g[2];

	getter_block(&g[0], q, WQ_NEVER);
	getter_block(&g[1], q, WQ_NEVER);
	wq_add_after(q, "b", 1, 20);
	wq_add_after(q, "a", 1, 10); /* earlier than anybody sleeps for */
	wq_manual_clock_advance(f->mc, 9);
	actor_blocks(&g[0].actor);
	actor_blocks(&g[1].actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(wq_state(q, "b", 1), W);
	wq_manual_clock_advance(f->mc, 10);
	IS(getter_join(&g[0]), WQ_OK);
	IS(getter_join(&g[1]), WQ_OK);
	IS(*(const char *)g[0].item.key + *(const char *)g[1].item.key, 'a' + 'b');
	IS(wq_done(q, &g[0].item), WQ_OK);
	IS(wq_done(q, &g[1].item), WQ_OK);
}

/* On the real clock: no earlier than its time, and without anybody's help. */
static void D8_a_get_sleeps_until_a_key_is_due(void **state)
{
	wq_queue *q;
	wq_item it;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	for (int i = 0; i < 5; i++) {
		int64_t due = wq_now(q) + (i + 1) * MS;

		IS(wq_add_at(q, "k", 1, due), WQ_DELAYED);
		IS(wq_next_deadline(q), due);
		IS(wq_get(q, &it), WQ_OK);
		assert_true(wq_now(q) >= due);
		IS(it.added_ns, due);
		IS(wq_done(q, &it), WQ_OK);
	}
	IS(wq_add_after(q, "k", 1, WQ_HOUR), WQ_DELAYED);
	IS(wq_get_for(q, &it, MS), WQ_ETIMEDOUT);
	IS(cancel_key(q, "k", 1), W);
	IS(wq_free(q), 0);
}

/* ---- D5: looking promotes ----------------------------------------------------- */

static int look(void *ctx, const wq_key_info *info)
{
	*(wq_key_info *)ctx = *info;
	return 0;
}

static void walk_shows_what_waits(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_key_info info;
	wq_item it;

	wq_add_after(q, "k", 1, 10);
	wq_manual_clock_advance(f->mc, 3);
	IS(wq_walk(q, look, &info), 1);
	IS(info.state, W);
	IS(info.age_ns, 0);
	IS(info.due_ns, START_NS + 10);
	wq_manual_clock_advance(f->mc, 10);
	IS(wq_walk(q, look, &info), 1);
	IS(info.state, Q);
	IS(info.age_ns, 3); /* since it was due */
	IS(info.due_ns, 0);
	get_is(q, &it, "k");
	wq_add_after(q, "k", 1, 10);
	wq_manual_clock_advance(f->mc, 2);
	IS(wq_walk(q, look, &info), 1);
	IS(info.state, R | W);
	IS(info.age_ns, 5);
	IS(info.due_ns, START_NS + 23);
	IS(wq_done(q, &it), WQ_DELAYED);
	IS(cancel_key(q, "k", 1), W);
	wq_add_str(q, "k");
	after(q, "k", 5, WQ_REMIND);
	IS(wq_walk(q, look, &info), 1);
	IS(info.state, Q | W);
	IS(info.due_ns, START_NS + 20);
}

static void waiting_keys_do_not_keep_waiters(void **state)
{
	struct fixture *f = *state;

	wq_add_after(f->q, "k", 1, WQ_HOUR);
	IS(wq_wait_idle_until(f->q, 0), WQ_OK);
	IS(wq_wait_key_until(f->q, "k", 1, 0), WQ_OK);
	wq_manual_clock_advance(f->mc, WQ_HOUR);
	IS(wq_wait_idle_until(f->q, 0), WQ_ETIMEDOUT); /* it is due: it is ready */
	IS(wq_wait_key_until(f->q, "k", 1, 0), WQ_ETIMEDOUT);
	line_is(f->q, "k");
}

static int64_t wait_idle(void *arg)
{
	return wq_wait_idle_until(arg, WQ_NEVER);
}

/* D5: a key that is due is ready, though nobody has looked when the last hold ends. */
static void D5_what_is_due_keeps_waiters(void **state)
{
	struct fixture *f = *state;
	struct actor a;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	wq_add_after(f->q, "k", 1, 10);
	actor_start(&a, wait_idle, f->q);
	actor_blocks(&a);
	wq_manual_clock_advance(f->mc, 10);
	IS(wq_done(f->q, &it), WQ_OK);
	actor_blocks(&a);
	take_is(f->q, "k", WQ_OK);
	IS(actor_join(&a), WQ_OK);
}

/* ---- bounds ---------------------------------------------------------------------- */

static void max_keys_counts_waiting_keys_and_reminders(void **state)
{
	struct fixture f;
	wq_queue *q;

	(void)state;
	fixture_open(&f, &(wq_options){.max_keys = 3});
	q = f.q;
	IS(wq_add_after(q, "a", 1, 10), WQ_DELAYED);
	IS(wq_add_after(q, "b", 1, WQ_NEVER), WQ_DELAYED);
	IS(after(q, "a", 20, WQ_REMIND), WQ_DELAYED); /* a key of its own */
	IS(wq_add_str(q, "c"), WQ_EFULL);
	IS(wq_add_after(q, "c", 1, 10), WQ_EFULL);
	IS(after(q, "c", 10, WQ_REMIND), WQ_EFULL);
	IS(after(q, "b", 10, WQ_REMIND), WQ_EFULL);
	IS(after(q, "a", 15, WQ_REMIND), WQ_MOVED); /* merges always succeed */
	IS(after(q, "b", 30, WQ_MIN), WQ_MOVED);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_len(q), 1);
	IS(count_keys(q), 2);
	IS(wq_add_str(q, "c"), WQ_EFULL);
	wq_manual_clock_advance(f.mc, 15); /* the reminder merges with the queued key */
	IS(state_of(q, "a"), Q);
	IS(wq_add_str(q, "c"), WQ_QUEUED);
	IS(wq_add_str(q, "d"), WQ_EFULL);
	IS(cancel_key(q, "b", 1), W);
	IS(wq_add_after(q, "d", 1, 10), WQ_DELAYED);
	line_is(q, "ac");
	IS(cancel_key(q, "d", 1), W);
	check_whole(q, 0, 0);
	fixture_close(&f, 0);
}

/* One key is given up, whatever copies of it there are, due or not. */
static void free_counts_a_key_and_its_reminder_once(void **state)
{
	enum { ALONE, QUEUED, WAITING, GONE, CANCELLED, CASES };

	(void)state;
	for (int what = ALONE; what < CASES; what++)
		for (int due = 0; due < 2; due++) {
			struct fixture f;

			fixture_open(&f, NULL);
			IS(after(f.q, "k", 10, WQ_REMIND), WQ_DELAYED);
			if (what == WAITING)
				IS(wq_add_after(f.q, "k", 1, 10), WQ_DELAYED);
			else if (what != ALONE)
				IS(wq_add_str(f.q, "k"), WQ_QUEUED);
			if (what == GONE)
				take_is(f.q, "k", WQ_OK);
			if (what == CANCELLED)
				IS(cancel_key(f.q, "k", 1), Q | W);
			if (due)
				wq_manual_clock_advance(f.mc, 10);
			fixture_close(&f, what != CANCELLED);
		}
}

static void next_deadline_is_the_earliest(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	IS(wq_next_deadline(q), WQ_NEVER);
	wq_add_at(q, "a", 1, START_NS + 100);
	IS(wq_next_deadline(q), START_NS + 100);
	wq_add_at(q, "b", 1, START_NS + 200);
	IS(wq_next_deadline(q), START_NS + 100);
	wq_add_at(q, "b", 1, START_NS + 50);
	IS(wq_next_deadline(q), START_NS + 50);
	wq_manual_clock_advance(f->mc, 50);
	line_is(q, "b");
	/* too early is allowed after a cancel, too late is not */
	IS(wq_reschedule(q, "a", 1, START_NS + 300), WQ_MOVED);
	assert_true(wq_next_deadline(q) <= START_NS + 300);
	wq_manual_clock_advance(f->mc, 249);
	line_is(q, "");
	IS(wq_next_deadline(q), START_NS + 300);
	wq_manual_clock_advance(f->mc, 1);
	line_is(q, "a");
	IS(wq_next_deadline(q), WQ_NEVER);
	wq_add_at(q, "c", 1, WQ_NEVER);
	IS(wq_next_deadline(q), WQ_NEVER);
}

/* ---- [FD] ------------------------------------------------------------------------- */

static int readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

/* Made before or after the add; the real clock makes it readable, a Get that finds nothing clears it. */
static void fd_becomes_readable_at_the_due_time(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		wq_queue *q;
		wq_item it;
		int fd = -1;

		IS(wq_new(&q, NULL), WQ_OK);
		if (!late)
			fd = wq_fd(q);
		for (int round = 0; round < 3; round++) {
			int64_t due = wq_now(q) + 5 * MS;

			IS(wq_add_after(q, "far", 3, WQ_HOUR), round ? WQ_KEPT : WQ_DELAYED);
			IS(wq_add_at(q, "k", 1, due), WQ_DELAYED);
			fd = wq_fd(q);
			IS(readable(fd, 30000), 1);
			while (wq_try_get(q, &it) == WQ_EAGAIN) /* readable too early is allowed */
				IS(readable(fd, 30000), 1);
			assert_true(wq_now(q) >= due);
			IS(wq_done(q, &it), WQ_OK);
			IS(wq_try_get(q, &it), WQ_EAGAIN);
			IS(readable(fd, 0), 0);
		}
		/* one that was moved to an earlier time */
		IS(wq_reschedule(q, "far", 3, wq_now(q) + MS), WQ_MOVED);
		do
			IS(readable(fd, 30000), 1);
		while (wq_try_get(q, &it) == WQ_EAGAIN);
		IS(wq_done(q, &it), WQ_OK);
		IS(wq_try_get(q, &it), WQ_EAGAIN);
		IS(readable(fd, 0), 0);
		IS(wq_free(q), 0);
	}
}

/* ---- Q10: an order of one's own ------------------------------------------------------ */

/* Last in, first out, with a doubly linked list. */
struct lifo {
	wq_node *top;
	int pushes, pops, removes;
};

static void lifo_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct lifo *l = ctx;

	(void)where;
	l->pushes++;
	node->link[0] = l->top;
	node->link[1] = NULL;
	if (l->top != NULL)
		l->top->link[1] = node;
	l->top = node;
}

static void lifo_remove(void *ctx, wq_node *node)
{
	struct lifo *l = ctx;
	wq_node *below = node->link[0], *above = node->link[1];

	l->removes++;
	if (below != NULL)
		below->link[1] = above;
	if (above != NULL)
		above->link[0] = below;
	else
		l->top = below;
}

static wq_node *lifo_pop(void *ctx)
{
	struct lifo *l = ctx;
	wq_node *node = l->top;

	if (node == NULL)
		abort(); /* called while it holds none */
	l->pops++;
	l->top = node->link[0];
	if (l->top != NULL)
		l->top->link[1] = NULL;
	return node;
}

/* Get promotes what is due before it pops; what is cancelled is taken out, or skipped. */
static void Q10_an_order_of_ones_own(void **state)
{
	(void)state;
	for (int removes = 0; removes < 2; removes++) {
		struct lifo l = {.top = NULL};
		wq_order order = {
		    .push = lifo_push,
		    .pop = lifo_pop,
		    .remove = removes ? lifo_remove : NULL,
		    .ctx = &l,
		};
		struct fixture f;
		wq_queue *q;

		fixture_open(&f, &(wq_options){.order = &order, .max_keys = 4});
		q = f.q;
		wq_add_str(q, "a");
		wq_add_after(q, "b", 1, 10);
		wq_add_after(q, "c", 1, 10);
		wq_manual_clock_advance(f.mc, 10);
		take_is(q, "c", WQ_OK);
		IS(cancel_key(q, "b", 1), Q);
		IS(l.removes, removes);
		IS(cancel_key(q, "b", 1), WQ_ENOTFOUND);
		IS(state_of(q, "b"), 0);
		IS(wq_len(q), 1);
		IS(count_keys(q), 1);
		/* it counts no more, and can be added anew beside its ghost */
		IS(wq_add_str(q, "b"), WQ_QUEUED);
		IS(wq_add_after(q, "d", 1, 10), WQ_DELAYED);
		IS(after(q, "b", 20, WQ_REMIND), WQ_DELAYED);
		IS(wq_add_str(q, "e"), WQ_EFULL);
		IS(wq_add_str(q, "b"), WQ_MERGED);
		IS(cancel_key(q, "b", 1), Q | W);
		IS(wq_add_after(q, "b", 1, 5), WQ_DELAYED);
		wq_manual_clock_advance(f.mc, 10);
		line_is(q, "dba");
		/* the last one is a ghost: nothing is ready */
		wq_item it;

		wq_add_str(q, "x");
		IS(cancel_key(q, "x", 1), Q);
		IS(wq_try_get(q, &it), WQ_EAGAIN);
		IS(wq_wait_idle_until(q, 0), WQ_OK);
		check_whole(q, 0, 0);
		wq_add_str(q, "y");
		wq_add_str(q, "z");
		IS(cancel_key(q, "y", 1), Q);
		fixture_close(&f, 1); /* ghosts are not given up */
	}
}

/* ---- [WHOLE] no memory ---------------------------------------------------------------- */

static void no_memory_changes_nothing(void **state)
{
	int64_t refused = 0;

	(void)state;
	for (int64_t n = 0; n < 12; n++) {
		for (int remind = 0; remind < 2; remind++) {
			struct fixture f;
			enum wq_policy policy = remind ? WQ_REMIND : WQ_MIN;
			int rc;

			fixture_open(&f, NULL);
			f.mem.fail_at = f.mem.calls + n;
			f.mem.fail_on = true;
			for (uint32_t i = 0; i < 20000 && f.mem.failed == 0; i++) {
				wq_add_options o = {.after_ns = 1000 + i * MS * 977,
				                    .policy = policy};

				rc = wq_add_with(f.q, &i, sizeof i, &o);
				if (rc == WQ_DELAYED)
					continue;
				IS(rc, WQ_ENOMEM);
				refused++;
				IS(wq_state(f.q, &i, sizeof i), 0);
				f.mem.fail_at = -1;
				IS(count_keys(f.q), i);
				IS(wq_add_with(f.q, &i, sizeof i, &o), WQ_DELAYED);
				IS(count_keys(f.q), i + 1);
			}
			fixture_close(&f, -1);
		}
	}
	assert_true(refused > 0);
}

static void no_memory_to_move_keeps_the_time(void **state)
{
	int64_t refused = 0;

	(void)state;
	for (int way = 0; way < 3; way++) {
		struct fixture f;
		int64_t due = START_NS + WQ_HOUR;
		int rc = WQ_OK;
		wq_item it;

		fixture_open(&f, NULL);
		wq_add_str(f.q, "k");
		get_is(f.q, &it, "k");
		if (way < 2)
			IS(wq_add_at(f.q, "k", 1, due), WQ_DELAYED);
		f.mem.fail_at = f.mem.calls;
		f.mem.fail_on = true;
		/* to ever new times, until the references need memory */
		for (int64_t i = 1; i < 200000 && rc != WQ_ENOMEM; i++) {
			int64_t next = START_NS + WQ_HOUR - i * MS;

			if (way == 2 && i > 1)
				IS(cancel_key(f.q, "k", 1), R | W);
			rc = way == 0 ? wq_reschedule(f.q, "k", 1, next)
			              : wq_add_at(f.q, "k", 1, next);
			if (rc != WQ_ENOMEM)
				due = next;
		}
		if (rc == WQ_ENOMEM) {
			refused++;
			f.mem.fail_at = -1;
			IS(state_of(f.q, "k"), way == 2 ? R : R | W);
			if (way == 2)
				IS(wq_add_at(f.q, "k", 1, due), WQ_DELAYED);
		}
		wq_manual_clock_set(f.mc, due - 1);
		IS(state_of(f.q, "k"), R | W);
		wq_manual_clock_set(f.mc, due);
		IS(state_of(f.q, "k"), RD);
		IS(wq_done(f.q, &it), WQ_QUEUED);
		line_is(f.q, "k");
		fixture_close(&f, 0);
	}
	IS(refused, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(D1_no_delay_is_an_add),
	    WITH_FIXTURE(D1_refused_after_shutdown),
	    WITH_FIXTURE(D7_times_saturate),
	    WITH_FIXTURE(bad_arguments_change_nothing),
	    WITH_FIXTURE(D2_by_the_nanosecond_then_by_call),
	    WITH_FIXTURE(D2_equal_times_away_and_back),
	    WITH_FIXTURE(D2_due_before_another_was_added),
	    WITH_FIXTURE(D2_due_while_it_runs_goes_to_the_tail),
	    WITH_FIXTURE(D2_requeue_goes_behind_what_is_due),
	    WITH_FIXTURE(D2_added_ns_is_the_due_time),
	    WITH_FIXTURE(D2_a_blocked_get_wakes_at_the_due_time),
	    cmocka_unit_test(D8_a_get_sleeps_until_a_key_is_due),
	    WITH_FIXTURE(walk_shows_what_waits),
	    WITH_FIXTURE(waiting_keys_do_not_keep_waiters),
	    WITH_FIXTURE(D5_what_is_due_keeps_waiters),
	    cmocka_unit_test(max_keys_counts_waiting_keys_and_reminders),
	    cmocka_unit_test(free_counts_a_key_and_its_reminder_once),
	    WITH_FIXTURE(next_deadline_is_the_earliest),
	    cmocka_unit_test(fd_becomes_readable_at_the_due_time),
	    cmocka_unit_test(Q10_an_order_of_ones_own),
	    cmocka_unit_test(no_memory_changes_nothing),
	    cmocka_unit_test(no_memory_to_move_keeps_the_time),
	};

	return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
