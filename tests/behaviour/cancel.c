/*
 * C1 of the rules: taking keys back, waiting for a hold to end, and moving keys
 * that wait. What cancel and reschedule do in each state is in states.c, beside
 * a reminder in policy.c.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, RD = R | WQ_STATE_DIRTY, W = WQ_STATE_WAITING };

/* Out of the line's head, middle and tail; the others keep their places. */
static void C1_cancel_anywhere_in_line(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	static const char *const left[] = {"bcde", "acde", "abde", "abce", "abcd"};

	for (int i = 0; i < 5; i++) {
		for (const char *k = "abcde"; *k; k++)
			wq_add(q, k, 1);
		IS(cancel_key(q, &"abcde"[i], 1), Q);
		IS(cancel_key(q, &"abcde"[i], 1), WQ_ENOTFOUND);
		IS(count_keys(q), 4);
		line_is(q, left[i]);
	}
	/* all of them, from behind, from before, and what is added then goes to the tail */
	for (int way = 0; way < 2; way++) {
		for (const char *k = "abc"; *k; k++)
			wq_add(q, k, 1);
		for (int i = 0; i < 3; i++)
			IS(cancel_key(q, &"abc"[way ? i : 2 - i], 1), Q);
		IS(wq_len(q), 0);
		wq_add_str(q, "x");
		wq_add_str(q, "y");
		line_is(q, "xy");
	}
	check_whole(q, 0, 0);
}

/* Gets prefetch along the line: a cancel of what stands ahead must not leave them there. */
static void C1_cancel_between_gets(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	enum { N = 500 };
	int seen = 0;

	for (int i = 0; i < N; i++)
		wq_add(q, &i, sizeof i);
	for (int i = 0; i < N; i++) {
		wq_item it;
		int key, far = i + 1 + (i * 7) % 20;

		if (wq_try_get(q, &it) != WQ_OK)
			break;
		memcpy(&key, it.key, sizeof key);
		assert_true(key >= i);
		i = key;
		seen++;
		if (far > key && far < N)
			seen += cancel_key(q, &far, sizeof far) == Q;
		if (i % 3 == 0)
			IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
		if (i % 3 == 0)
			IS(wq_try_get(q, &it), WQ_OK);
		IS(wq_done(q, &it), WQ_OK);
	}
	IS(seen, N);
	check_whole(q, 0, 0);
}

static void C1_cancel_then_add(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_item it;

	/* queued: the add goes to the tail */
	wq_add_str(q, "a");
	wq_add_str(q, "b");
	IS(cancel_key(q, "a", 1), Q);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	line_is(q, "ba");

	/* waiting: the new time counts, also a later one */
	wq_add_after(q, "a", 1, 10);
	IS(cancel_key(q, "a", 1), W);
	IS(wq_add_after(q, "a", 1, 20), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	line_is(q, "");
	wq_manual_clock_advance(f->mc, 10);
	line_is(q, "a");

	/* held: what is added after the cancel comes back */
	wq_add_str(q, "a");
	get_is(q, &it, "a");
	wq_add_str(q, "a");
	IS(cancel_key(q, "a", 1), RD);
	IS(state_of(q, "a"), R);
	IS(cancel_key(q, "a", 1), R);
	IS(wq_add_str(q, "a"), WQ_MARKED);
	IS(state_of(q, "a"), RD);
	IS(wq_done(q, &it), WQ_QUEUED);
	get_is(q, &it, "a");
	IS(cancel_key(q, "a", 1), R);
	IS(wq_add_after(q, "a", 1, 10), WQ_DELAYED);
	IS(wq_done(q, &it), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 10);
	line_is(q, "a");

	/* held: and nothing comes back by itself */
	wq_add_str(q, "a");
	get_is(q, &it, "a");
	wq_add_str(q, "a");
	remind(q, "a", 10);
	IS(cancel_key(q, "a", 1), RD | W);
	IS(wq_done(q, &it), WQ_OK);
	wq_manual_clock_advance(f->mc, WQ_HOUR);
	line_is(q, "");
	check_whole(q, 0, 0);
}

/* A key that never comes due, and one whose reference was moved about, are gone as well. */
static void C1_cancel_what_waits(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	IS(cancel_key(q, "a", 1), WQ_ENOTFOUND);
	wq_add_after(q, "a", 1, WQ_NEVER);
	IS(cancel_key(q, "a", 1), W);
	remind(q, "a", WQ_NEVER);
	wq_add_after(q, "a", 1, 10);
	IS(cancel_key(q, "a", 1), W);
	wq_add_after(q, "a", 1, 10);
	wq_reschedule(q, "a", 1, START_NS + 30);
	wq_reschedule(q, "a", 1, START_NS + 20);
	IS(cancel_key(q, "a", 1), W);
	IS(state_of(q, "a"), 0);
	wq_manual_clock_advance(f->mc, 10);
	IS(wq_add_after(q, "a", 1, 100), WQ_DELAYED); /* the old references do not fire it */
	wq_manual_clock_advance(f->mc, 20);
	line_is(q, "");
	wq_manual_clock_advance(f->mc, 79);
	line_is(q, "");
	wq_manual_clock_advance(f->mc, 1);
	line_is(q, "a");
	IS(wq_next_deadline(q), WQ_NEVER);
	check_whole(q, 0, 0);
}

/* Cancelled by the hundred thousand: the dead references are swept. */
static void C1_cancelled_keys_give_their_memory_back(void **state)
{
	struct fixture *f = *state;
	int64_t peak = 0;

	for (int round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			wq_add_after(f->q, &i, sizeof i, WQ_HOUR + i * WQ_MILLISECOND);
			IS(cancel_key(f->q, &i, sizeof i), W);
		}
		if (round == 1)
			peak = f->mem.peak;
	}
	IS(count_keys(f->q), 0);
	assert_true(f->mem.peak <= peak + (1 << 20));
	check_whole(f->q, 0, 0);
}

static void C1_cancel_of_the_last_key_ends_a_drain(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct drainer d;

	wq_add_str(q, "a");
	drainer_block(&d, q, WQ_NEVER);
	IS(cancel_key(q, "a", 1), Q); /* also while it is shut */
	IS(drainer_join(&d), WQ_OK);
	IS((int64_t)(d.report.queued + d.report.running + d.report.delayed), 0);
}

static int64_t wait_key_main(void *arg)
{
	return wq_wait_key_until(arg, "k", 1, WQ_NEVER);
}

static int64_t wait_idle_main(void *arg)
{
	return wq_wait_idle_until(arg, WQ_NEVER);
}

static void C1_cancel_ends_waits(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct actor key, idle, dirty;
	wq_item it;

	wq_add_str(q, "k");
	actor_start(&key, wait_key_main, q);
	actor_start(&idle, wait_idle_main, q);
	actor_blocks(&key);
	actor_blocks(&idle);
	IS(cancel_key(q, "k", 1), Q);
	IS(actor_join(&key), WQ_OK);
	IS(actor_join(&idle), WQ_OK);

	/* held and dirty: the hold to come is cancelled, the hold that is goes on */
	wq_add_str(q, "k");
	get_is(q, &it, "k");
	wq_add_str(q, "k");
	actor_start(&dirty, wait_key_main, q);
	actor_blocks(&dirty);
	IS(cancel_key(q, "k", 1), RD);
	actor_blocks(&dirty);
	IS(wq_done(q, &it), WQ_OK);
	IS(actor_join(&dirty), WQ_OK);
}

/* The time of a cancelled key passes while another one is on its way back into the line. */
static void C1_a_dead_time_does_not_end_a_wait(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct fixture f;
		struct actor idle;
		wq_item it;

		fixture_open(&f, NULL);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		wq_add_after(f.q, "b", 1, 10);
		wq_add_after(f.q, "c", 1, WQ_HOUR);
		IS(cancel_key(f.q, "b", 1), W);
		if (way == 0)
			wq_add_str(f.q, "a");
		actor_start(&idle, wait_idle_main, f.q);
		actor_blocks(&idle);
		wq_manual_clock_advance(f.mc, 10);
		IS(way == 0 ? wq_done(f.q, &it) : wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
		actor_blocks(&idle); /* a is in line */
		IS(actor_finished(&idle), 0);
		line_is(f.q, "a");
		IS(actor_join(&idle), WQ_OK);
		IS(cancel_key(f.q, "c", 1), W);
		fixture_close(&f, 0);
	}
}

/* A dirty hold that was cancelled does not come back, and a drain counts so. */
static void C1_cancel_is_seen_by_a_drain(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_report r;
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	wq_add_str(q, "a");
	wq_add_after(q, "b", 1, 10);
	IS(cancel_key(q, "a", 1), RD);
	IS(cancel_key(q, "b", 1), W);
	IS(wq_drain_until(q, 0, NULL, &r), WQ_ETIMEDOUT);
	IS((int64_t)r.running, 1);
	IS((int64_t)r.dirty, 0);
	IS((int64_t)(r.queued + r.retries + r.delayed), 0);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_drain_until(q, 0, NULL, &r), WQ_OK);
}

/* A key that a shutdown left over is taken back as one that waits: nobody reports it any more. */
static void C1_cancel_of_left_over_keys(void **state)
{
	(void)state;
	for (int by_drain = 0; by_drain < 2; by_drain++) {
		struct fixture f;
		wq_report r;
		unsigned was = 0;
		wq_item held, failed;

		fixture_open(&f, NULL);
		for (const char *k = "hfq"; *k; k++)
			wq_add(f.q, k, 1);
		get_is(f.q, &held, "h");
		get_is(f.q, &failed, "f");
		wq_add_after(f.q, "a", 1, 10);
		wq_add_after(f.q, "n", 1, WQ_NEVER);
		wq_add_after(f.q, "h", 1, 10);
		IS(remind(f.q, "q", 10), WQ_DELAYED);
		IS(remind(f.q, "r", 10), WQ_DELAYED);
		IS(wq_add_limited(f.q, "l", 1), WQ_DELAYED);
		if (by_drain)
			IS(wq_drain_until(f.q, 0, NULL, NULL), WQ_ETIMEDOUT);
		else
			IS(wq_shutdown(f.q), WQ_OK);
		IS(wq_retry(f.q, &failed), WQ_LEFT);
		IS(wq_settle(f.q, &failed, WQ_DONE), WQ_ESTALE);
		IS(count_keys(f.q), 7);
		assert_true(wq_drain_until(f.q, 0, NULL, &r) != WQ_EINVAL);
		IS((int64_t)r.delayed, 5);
		IS((int64_t)r.retries, 2);

		for (const char *k = "anrlf"; *k; k++) {
			IS(wq_cancel(f.q, k, 1, &was), WQ_CANCELLED);
			IS(was, W);
			IS(wq_state(f.q, k, 1), 0);
			IS(cancel_key(f.q, k, 1), WQ_ENOTFOUND);
			IS(wq_reschedule(f.q, k, 1, START_NS), WQ_ENOTFOUND);
		}
		IS(wq_failures(f.q, "f", 1), 1); /* what the limiter remembers stays */
		IS(wq_reschedule(f.q, "q", 1, START_NS), WQ_ESHUTDOWN);
		IS(cancel_key(f.q, "q", 1), Q | W);
		IS(cancel_key(f.q, "h", 1), R | W);
		IS(state_of(f.q, "h"), R);
		IS(wq_done(f.q, &held), WQ_OK); /* its copy is gone */
		IS(wq_drain_until(f.q, WQ_NEVER, NULL, &r), WQ_OK);
		IS((int64_t)(r.retries + r.delayed), 0);
		fixture_close(&f, 0);
	}
}

/* Held, with a copy that is left over: the cancel waits for the hold, and the copy is gone. */
static int64_t cancel_left_main(void *arg)
{
	unsigned was = 0;

	IS(wq_cancel_for(arg, "k", 1, WQ_HOUR, &was), WQ_CANCELLED);
	return was;
}

static void C1_cancel_for_of_a_left_over_key(void **state)
{
	struct fixture *f = *state;
	unsigned was = 77;
	struct actor a;
	wq_item it;

	wq_add_str(f->q, "k");
	get_is(f->q, &it, "k");
	wq_add_after(f->q, "k", 1, 10);
	wq_add_after(f->q, "l", 1, 10);
	IS(wq_shutdown(f->q), WQ_OK);
	IS(wq_cancel_for(f->q, "none", 4, WQ_NEVER, &was), WQ_ENOTFOUND);
	IS(wq_cancel_for(f->q, "l", 1, WQ_NEVER, NULL), WQ_CANCELLED); /* nothing to wait for */
	IS(was, 77);
	actor_start(&a, cancel_left_main, f->q);
	actor_blocks(&a);
	IS(wq_settle(f->q, &it, wq_again_after(5)), WQ_CANCELLED);
	IS(actor_join(&a), R | W);
	IS(wq_drain_until(f->q, WQ_NEVER, NULL, NULL), WQ_OK);
	IS(count_keys(f->q), 0);
}

/* ---- cancel_until -------------------------------------------------------------- */

struct canceller {
	struct actor actor;
	wq_queue *q;
	int64_t deadline_ns;
};

static int64_t cancel_main(void *arg)
{
	struct canceller *c = arg;

	return cancel_key_until(c->q, "k", 1, c->deadline_ns);
}

static void canceller_block(struct canceller *c, wq_queue *q, int64_t deadline_ns)
{
	*c = (struct canceller){.q = q, .deadline_ns = deadline_ns};
	actor_start(&c->actor, cancel_main, c);
	actor_blocks(&c->actor);
}

static void C1_cancel_until_without_a_hold_does_not_wait(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	IS(cancel_key_until(q, "k", 1, WQ_NEVER), WQ_ENOTFOUND);
	wq_add_str(q, "k");
	IS(cancel_key_until(q, "k", 1, WQ_NEVER), Q);
	wq_add_after(q, "k", 1, 10);
	IS(cancel_key_until(q, "k", 1, WQ_NEVER), W);
	wq_add_str(q, "k");
	remind(q, "k", 10);
	IS(cancel_key_until(q, "k", 1, 0), Q | W);
	IS(cancel_key_until(q, "k", 1, -1), WQ_EINVAL);
	check_whole(q, 0, 0);
}

static void C1_cancel_until_waits_for_that_hold_only(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct canceller c[2];
	wq_item it, other;

	wq_add_str(q, "k");
	wq_add_str(q, "other");
	get_is(q, &it, "k");
	get_is(q, &other, "other");
	wq_add_str(q, "k");
	canceller_block(&c[0], q, WQ_NEVER);
	IS(state_of(q, "k"), R); /* cancelled before the wait */
	canceller_block(&c[1], q, WQ_NEVER);
	IS(wq_done(q, &other), WQ_OK); /* another key's hold */
	actor_blocks(&c[0].actor);
	IS(wq_add_str(q, "k"), WQ_MARKED); /* a hold that begins later */
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	IS(actor_join(&c[0].actor), RD);
	IS(actor_join(&c[1].actor), R);
	IS(wq_done(q, &it), WQ_OK);
	check_whole(q, 0, 0);
}

/* Every way in which a hold ends: all of them end the wait. */
static void C1_cancel_until_ends_however_the_hold_ends(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (int way = 0; way < 3; way++) {
		struct canceller c;
		wq_item it;

		wq_add_str(q, "k");
		get_is(q, &it, "k");
		canceller_block(&c, q, WQ_NEVER);
		if (way == 0)
			IS(wq_done(q, &it), WQ_OK);
		if (way == 1)
			IS(wq_done_many(q, &it, 1, NULL), 1);
		if (way == 2)
			IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
		IS(actor_join(&c.actor), R);
	}
	check_whole(q, 0, 0);
}

/* Unfinished, but that hold has ended. */
static void C1_cancel_until_ends_when_the_key_is_given_back(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct canceller c;
	wq_item it;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	canceller_block(&c, q, WQ_NEVER);
	IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
	IS(actor_join(&c.actor), R);
	take_is(q, "k", WQ_OK);
}

static void C1_cancel_until_times_out(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	struct canceller c;
	wq_item it;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	wq_add_str(q, "k");
	IS(cancel_key_until(q, "k", 1, START_NS), WQ_ETIMEDOUT);
	IS(state_of(q, "k"), R); /* cancelled all the same */
	wq_add_after(q, "k", 1, 100);
	canceller_block(&c, q, START_NS + 10);
	IS(state_of(q, "k"), R);
	wq_manual_clock_advance(f->mc, 9);
	actor_blocks(&c.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(actor_join(&c.actor), WQ_ETIMEDOUT);
	IS(wq_done(q, &it), WQ_OK);
	check_whole(q, 0, 0);
}

static void C1_free_is_refused_while_a_cancel_waits(void **state)
{
	struct fixture f;
	struct canceller c;
	wq_item it;

	(void)state;
	fixture_open(&f, NULL);
	wq_add_str(f.q, "k");
	get_is(f.q, &it, "k");
	canceller_block(&c, f.q, WQ_NEVER);
	IS(wq_free(f.q), WQ_EBUSY);
	wq_shutdown(f.q); /* releases drains, not this */
	actor_blocks(&c.actor);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(actor_join(&c.actor), R);
	fixture_close(&f, 0);
}

/* ---- reschedule ------------------------------------------------------------------ */

static void reschedule_moves_whatever_the_policy(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;

	for (enum wq_policy policy = WQ_MIN; policy <= WQ_REMIND; policy++) {
		int64_t now = wq_now(q);
		wq_add_options o = {.after_ns = 50, .policy = policy};

		IS(wq_add_with(q, "k", 1, &o), WQ_DELAYED);
		IS(wq_reschedule(q, "k", 1, now + 90), WQ_MOVED);
		wq_manual_clock_set(f->mc, now + 50);
		line_is(q, "");
		IS(wq_reschedule(q, "k", 1, WQ_NEVER), WQ_MOVED);
		IS(wq_next_deadline(q) >= now + 50, 1);
		wq_manual_clock_set(f->mc, now + 90);
		line_is(q, "");
		IS(wq_reschedule(q, "k", 1, now + 100), WQ_MOVED);
		IS(wq_reschedule(q, "k", 1, now + 100), WQ_MOVED);
		wq_manual_clock_set(f->mc, now + 99);
		line_is(q, "");
		wq_manual_clock_set(f->mc, now + 100);
		line_is(q, "k");
	}
	check_whole(q, 0, 0);
}

static void reschedule_to_the_past_makes_ready(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;
	wq_item it;

	wq_add_after(q, "a", 1, 50);
	wq_add_str(q, "b");
	IS(wq_reschedule(q, "a", 1, 0), WQ_MOVED);
	line_is(q, "ba");
	wq_add_after(q, "a", 1, 50);
	getter_block(&g, q, WQ_NEVER);
	IS(wq_reschedule(q, "a", 1, START_NS), WQ_MOVED);
	IS(getter_join(&g), WQ_OK);
	/* held: it becomes dirty */
	wq_add_after(q, "a", 1, 50);
	IS(wq_reschedule(q, "a", 1, START_NS), WQ_MOVED);
	IS(state_of(q, "a"), RD);
	IS(wq_reschedule(q, "a", 1, START_NS + 1), WQ_ENOTFOUND);
	IS(wq_done(q, &g.item), WQ_QUEUED);
	get_is(q, &it, "a");
	IS(wq_done(q, &it), WQ_OK);
	check_whole(q, 0, 0);
}

/* A sleeper that waits for the next due time sleeps for the new one. */
static void reschedule_wakes_a_get_earlier(void **state)
{
	struct fixture *f = *state;
	struct getter g;

	wq_add_after(f->q, "k", 1, WQ_HOUR);
	getter_block(&g, f->q, WQ_NEVER);
	IS(wq_reschedule(f->q, "k", 1, START_NS + 10), WQ_MOVED);
	wq_manual_clock_advance(f->mc, 9);
	actor_blocks(&g.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(getter_join(&g), WQ_OK);
	IS(g.item.added_ns, START_NS + 10);
	IS(wq_done(f->q, &g.item), WQ_OK);
}

/* On the real clock, where nobody tells the sleeper that time has passed. */
static void reschedule_wakes_a_get_earlier_on_the_real_clock(void **state)
{
	struct getter g;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	wq_add_after(q, "k", 1, WQ_HOUR);
	getter_block(&g, q, WQ_NEVER);
	IS(wq_reschedule(q, "k", 1, wq_now(q) + WQ_MILLISECOND), WQ_MOVED);
	IS(getter_join(&g), WQ_OK);
	IS(wq_done(q, &g.item), WQ_OK);
	wq_add_after(q, "k", 1, WQ_HOUR);
	getter_block(&g, q, WQ_NEVER);
	IS(wq_add_after(q, "k", 1, WQ_MILLISECOND), WQ_MOVED);
	IS(getter_join(&g), WQ_OK);
	IS(wq_done(q, &g.item), WQ_OK);
	IS(wq_free(q), 0);
}

static void bad_arguments(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	static char key[WQ_KEY_MAX + 1];

	IS(cancel_key(NULL, "k", 1), WQ_EINVAL);
	IS(cancel_key(q, NULL, 1), WQ_EINVAL);
	IS(cancel_key(q, key, sizeof key), WQ_ETOOLONG);
	IS(cancel_key(q, NULL, 0), WQ_ENOTFOUND);
	IS(cancel_key_until(NULL, "k", 1, 0), WQ_EINVAL);
	IS(cancel_key_until(q, NULL, 1, 0), WQ_EINVAL);
	IS(cancel_key_until(q, key, sizeof key, 0), WQ_ETOOLONG);
	IS(wq_reschedule(NULL, "k", 1, 0), WQ_EINVAL);
	IS(wq_reschedule(q, NULL, 1, 0), WQ_EINVAL);
	IS(wq_reschedule(q, key, sizeof key, 0), WQ_ETOOLONG);
	IS(wq_add_after(q, NULL, 0, 10), WQ_DELAYED); /* the empty key is a key */
	IS(cancel_key(q, "", 0), W);
	check_whole(q, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(C1_cancel_anywhere_in_line),
	    WITH_FIXTURE(C1_cancel_between_gets),
	    WITH_FIXTURE(C1_cancel_then_add),
	    WITH_FIXTURE(C1_cancel_what_waits),
	    WITH_FIXTURE(C1_cancelled_keys_give_their_memory_back),
	    WITH_FIXTURE(C1_cancel_of_the_last_key_ends_a_drain),
	    WITH_FIXTURE(C1_cancel_ends_waits),
	    cmocka_unit_test(C1_a_dead_time_does_not_end_a_wait),
	    WITH_FIXTURE(C1_cancel_is_seen_by_a_drain),
	    cmocka_unit_test(C1_cancel_of_left_over_keys),
	    WITH_FIXTURE(C1_cancel_for_of_a_left_over_key),
	    WITH_FIXTURE(C1_cancel_until_without_a_hold_does_not_wait),
	    WITH_FIXTURE(C1_cancel_until_waits_for_that_hold_only),
	    WITH_FIXTURE(C1_cancel_until_ends_however_the_hold_ends),
	    WITH_FIXTURE(C1_cancel_until_times_out),
	    cmocka_unit_test(C1_free_is_refused_while_a_cancel_waits),
	    WITH_FIXTURE(reschedule_moves_whatever_the_policy),
	    WITH_FIXTURE(reschedule_to_the_past_makes_ready),
	    WITH_FIXTURE(reschedule_wakes_a_get_earlier),
	    cmocka_unit_test(reschedule_wakes_a_get_earlier_on_the_real_clock),
	    WITH_FIXTURE(bad_arguments),
	    WITH_FIXTURE(C1_cancel_until_ends_when_the_key_is_given_back),
	};

	return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
