/*
 * The promises of wq/timer.h: when timers fire, and how they are taken back and
 * moved. On a clock of steps; the real one is in timer_clock.c.
 */
#include "timer_rig.h"

static void a_timer_fires_at_its_nanosecond(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1};

	add(f, &job, 1000);
	settle(f);
	step(f, 999);
	fired_is(0, 0);
	IS(wq_timer_size(f->t), 1);
	step(f, 1);
	fired_is(1, 1);
	IS(wq_timer_size(f->t), 0);

	const wq_timer_event *e = &notes.fired[0].event;

	IS((int64_t)e->id, (int64_t)job.id);
	IS(e->due_ns, START_NS + 1000);
	IS(e->now_ns, START_NS + 1000);
	IS(e->skipped, 0);
	for (size_t i = 0; i < LENGTH(e->reserved); i++)
		IS((int64_t)e->reserved[i], 0);
	step(f, WQ_HOUR);
	fired_is(1, 1); /* once */
}

static void timers_fire_in_the_order_of_their_nanoseconds(void **state)
{
	static const int64_t after[] = {30, 10, 20, 10, 0, 30, WQ_SECOND, WQ_SECOND - 1};
	static const int order[] = {4, 1, 3, 2, 0, 5, 7, 6};
	struct timers *f = *state;
	struct job jobs[LENGTH(after)] = {{0}};

	for (size_t i = 0; i < LENGTH(after); i++) {
		jobs[i].who = (int)i;
		add(f, &jobs[i], after[i] + 5);
	}
	step(f, WQ_MINUTE);
	IS(count_of(&notes.n), LENGTH(after));
	for (size_t i = 0; i < LENGTH(after); i++) {
		IS(notes.fired[i].who, order[i]);
		IS(notes.fired[i].event.due_ns, START_NS + 5 + after[order[i]]);
		IS(notes.fired[i].event.now_ns, START_NS + WQ_MINUTE);
	}
}

static void after_counts_from_the_call(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2}, c = {.who = 3}, d = {.who = 4};
	wq_timer_id id = 0;

	/* The thread has not looked at the clock since: nothing was due. */
	IS(wq_manual_clock_advance(f->mc, WQ_SECOND), WQ_OK);
	IS(wq_timer_after(f->t, 10, fire, &a, &id), WQ_OK);
	assert_true(id != 0);
	IS(wq_timer_next_deadline(f->t), START_NS + WQ_SECOND + 10);
	step(f, 9);
	fired_is(0, 0);
	step(f, 1);
	fired_is(1, 1);
	IS(wq_timer_after(f->t, 0, fire, &b, NULL), WQ_OK);
	settle(f);
	fired_is(2, 2);
	IS(notes.fired[1].event.due_ns, START_NS + WQ_SECOND + 10);
	IS(wq_timer_after(f->t, INT64_MIN, fire, &c, NULL), WQ_OK);
	settle(f);
	fired_is(3, 3);
	IS(wq_timer_after(f->t, WQ_NEVER, fire, &d, NULL), WQ_OK);
	IS(wq_timer_next_deadline(f->t), WQ_NEVER);
	IS(wq_timer_size(f->t), 1);
}

static void a_time_that_has_passed_is_due_at_once(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2};

	IS(wq_timer_add(f->t, 0, fire, &a, NULL), WQ_OK);
	wait_for(&notes.n, 1);
	IS(notes.fired[0].event.due_ns, 0);
	IS(notes.fired[0].event.now_ns, START_NS);
	add(f, &b, 0);
	wait_for(&notes.n, 2);
}

static void never_does_not_come(void **state)
{
	struct timers *f = *state;
	struct job never = {.who = 1, .t = f->t}, last = {.who = 2};

	IS(wq_timer_add(f->t, WQ_NEVER, fire, &never, &never.id), WQ_OK);
	IS(wq_timer_add(f->t, WQ_NEVER - 1, fire, &last, NULL), WQ_OK);
	IS(wq_timer_size(f->t), 2);
	IS(wq_timer_next_deadline(f->t), WQ_NEVER - 1);
	IS(wq_manual_clock_set(f->mc, WQ_NEVER), WQ_OK);
	wait_for(&notes.n, 1);
	IS(notes.fired[0].who, 2);
	IS(wq_timer_size(f->t), 1);
	IS(wq_timer_reschedule(f->t, never.id, 0), WQ_OK); /* but it can be given a time */
	wait_for(&notes.n, 2);
	IS(notes.fired[1].who, 1);
}

static void every_keeps_its_phase_and_counts_what_it_skips(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1};

	IS(wq_timer_every(f->t, 10, fire, &job, &job.id), WQ_OK);
	IS(wq_timer_size(f->t), 1);
	step(f, 9);
	fired_is(0, 0);
	step(f, 1);
	fired_is(1, 1);
	step(f, 13); /* 23: the one of 20 is late */
	fired_is(2, 1);
	IS(notes.fired[1].event.due_ns, START_NS + 20);
	IS(notes.fired[1].event.skipped, 0);
	IS(wq_timer_next_deadline(f->t), START_NS + 30);
	step(f, 35); /* 58: 30 is called, 40 and 50 are missed */
	fired_is(3, 1);
	IS(notes.fired[2].event.due_ns, START_NS + 30);
	IS(notes.fired[2].event.now_ns, START_NS + 58);
	IS(notes.fired[2].event.skipped, 2);
	step(f, 2);
	fired_is(4, 1);
	IS(notes.fired[3].event.due_ns, START_NS + 60);
	IS((int64_t)notes.fired[3].event.id, (int64_t)job.id);
	IS(wq_timer_size(f->t), 1);
	IS(wq_timer_cancel(f->t, job.id), WQ_OK);
	IS(wq_timer_cancel(f->t, job.id), WQ_ESTALE);
	IS(wq_timer_size(f->t), 0);
	step(f, 100);
	fired_is(4, 1);
}

/* The wheel's own time lags behind: the period counts from the call all the same. */
static void every_counts_from_the_call(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1};

	IS(wq_manual_clock_advance(f->mc, 7), WQ_OK);
	IS(wq_timer_every(f->t, 10, fire, &job, NULL), WQ_OK);
	IS(wq_timer_next_deadline(f->t), START_NS + 17);
	step(f, 10);
	fired_is(1, 1);
	IS(wq_timer_next_deadline(f->t), START_NS + 27);
}

static void size_next_and_now(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2}, c = {.who = 3};

	IS(wq_timer_size(f->t), 0);
	IS(wq_timer_next_deadline(f->t), WQ_NEVER);
	IS(wq_timer_now(f->t), START_NS);
	add(f, &b, 20);
	add(f, &a, 10);
	add(f, &c, WQ_HOUR);
	IS(wq_timer_size(f->t), 3);
	IS(wq_timer_next_deadline(f->t), START_NS + 10);
	step(f, 15);
	IS(wq_timer_now(f->t), START_NS + 15);
	IS(wq_timer_size(f->t), 2);
	IS(wq_timer_next_deadline(f->t), START_NS + 20);
}

/* Many, with wheels of other shapes too. */
static void many_timers(void **state)
{
	static const struct {
		int64_t tick_ns;
		size_t size;
	} shapes[] = {{0, 0}, {1, 2}, {INT64_C(1) << 40, 64}, {1000, 8}};
	enum { N = 5000 };
	static struct job jobs[N];
	uint64_t rng = *(uint64_t *)*state;

	for (size_t s = 0; s < LENGTH(shapes); s++) {
		struct timers f = {0};

		timers_open(&f, shapes[s].tick_ns, shapes[s].size);
		for (int i = 0; i < N; i++) {
			jobs[i] = (struct job){.who = i};
			add(&f, &jobs[i],
			    1 + (rng_below(&rng, 2) ? 50 * (i % 7) : i * WQ_MILLISECOND));
		}
		IS(wq_timer_size(f.t), N);
		while (wq_timer_size(f.t) > 0)
			step(&f, WQ_SECOND / 2);
		IS(count_of(&notes.n), N);
		for (int i = 1; i < N; i++) {
			const struct fired *x = &notes.fired[i - 1], *y = &notes.fired[i];

			assert_true(x->event.due_ns <= y->event.due_ns);
			assert_true(x->event.due_ns < y->event.due_ns || x->who < y->who);
			assert_true(y->event.now_ns >= y->event.due_ns);
			assert_true(y->event.now_ns - y->event.due_ns <= WQ_SECOND / 2);
		}
		timers_close(&f, 0);
	}
}

/* ---- cancel and reschedule -------------------------------------------------- */

static void cancel_in_time_or_not(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2};

	add(f, &a, 10);
	add(f, &b, 10);
	IS(wq_timer_cancel(f->t, a.id), WQ_OK);
	IS(wq_timer_size(f->t), 1);
	IS(wq_timer_cancel(f->t, a.id), WQ_ESTALE);
	step(f, 10);
	fired_is(1, 2);
	IS(wq_timer_cancel(f->t, b.id), WQ_ESTALE);
	IS(wq_timer_cancel(f->t, 0), WQ_ESTALE);
	IS(wq_timer_cancel(f->t, UINT64_MAX), WQ_ESTALE);
	add(f, &b, 20); /* perhaps in the place of an old one, whose name stays stale */
	IS(wq_timer_cancel(f->t, a.id), WQ_ESTALE);
	IS(wq_timer_size(f->t), 1);
}

static void a_timer_is_moved(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2};

	add(f, &a, 10);
	add(f, &b, 20);
	IS(wq_timer_reschedule(f->t, a.id, START_NS + 30), WQ_OK);
	step(f, 20);
	fired_is(1, 2);
	IS(wq_timer_reschedule(f->t, b.id, START_NS + 30), WQ_ESTALE);
	IS(wq_timer_reschedule(f->t, a.id, WQ_NEVER), WQ_OK);
	step(f, 100);
	fired_is(1, 2);
	IS(wq_timer_size(f->t), 1);
	IS(wq_timer_reschedule(f->t, a.id, START_NS), WQ_OK); /* past: at once */
	wait_for(&notes.n, 2);
	IS(notes.fired[1].event.due_ns, START_NS);
	IS(wq_timer_reschedule(f->t, a.id, START_NS), WQ_ESTALE);
	IS(wq_timer_reschedule(f->t, 0, START_NS), WQ_ESTALE);
}

static void a_periodic_timer_is_moved_and_keeps_its_period(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1};

	IS(wq_timer_every(f->t, 10, fire, &a, &a.id), WQ_OK);
	IS(wq_timer_reschedule(f->t, a.id, START_NS + 3), WQ_OK);
	step(f, 3);
	fired_is(1, 1);
	step(f, 9);
	fired_is(1, 1);
	step(f, 1);
	fired_is(2, 1);
	IS(notes.fired[1].event.due_ns, START_NS + 13);
}

static void an_earlier_timer_wakes_the_thread(void **state)
{
	struct timers *f = *state;
	struct job far = {.who = 1}, near = {.who = 2}, moved = {.who = 3};

	runner_blocks(f); /* without any timer */
	add(f, &near, 0);
	wait_for(&notes.n, 1);
	add(f, &far, WQ_HOUR);
	add(f, &moved, WQ_HOUR);
	runner_blocks(f);
	add(f, &near, 0);
	wait_for(&notes.n, 2);
	runner_blocks(f);
	IS(wq_timer_reschedule(f->t, moved.id, START_NS), WQ_OK);
	wait_for(&notes.n, 3);
	IS(notes.fired[2].who, 3);
	runner_blocks(f);
	IS(wq_timer_clock_changed(f->t), WQ_OK); /* looks, and sleeps again */
	runner_blocks(f);
	fired_is(3, 3);
	IS(wq_timer_size(f->t), 1);
}

static uint64_t seed;

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    WITH_TIMERS(a_timer_fires_at_its_nanosecond),
	    WITH_TIMERS(timers_fire_in_the_order_of_their_nanoseconds),
	    WITH_TIMERS(after_counts_from_the_call),
	    WITH_TIMERS(a_time_that_has_passed_is_due_at_once),
	    WITH_TIMERS(never_does_not_come),
	    WITH_TIMERS(every_keeps_its_phase_and_counts_what_it_skips),
	    WITH_TIMERS(every_counts_from_the_call),
	    WITH_TIMERS(size_next_and_now),
	    cmocka_unit_test_prestate(many_timers, &seed),
	    WITH_TIMERS(cancel_in_time_or_not),
	    WITH_TIMERS(a_timer_is_moved),
	    WITH_TIMERS(a_periodic_timer_is_moved_and_keeps_its_period),
	    WITH_TIMERS(an_earlier_timer_wakes_the_thread),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
