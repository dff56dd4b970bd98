/* The promises of wq/timer.h: what a callback may do, and what ends them. */
#include "timer_rig.h"

static struct job child = {.who = 9};

static void act_add(struct job *job, const wq_timer_event *event)
{
	child.t = job->t;
	job->answer[0] = wq_timer_add(job->t, event->now_ns, fire, &child, &child.id);
	job->answer[1] = wq_timer_after(job->t, 10, fire, &child, NULL);
	job->answer[2] = wq_timer_every(job->t, 100, fire, &child, NULL);
	job->answer[3] = wq_timer_size(job->t);
}

static void a_callback_adds(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1, .act = act_add};

	add(f, &job, 5);
	step(f, 5);
	IS(job.answer[0], WQ_OK);
	IS(job.answer[1], WQ_OK);
	IS(job.answer[2], WQ_OK);
	assert_true(job.answer[3] >= 3); /* and perhaps the one that we wait for */
	settle(f);
	fired_is(2, 9); /* what it added for now has fired too */
	IS(wq_timer_next_deadline(f->t), START_NS + 15);
	step(f, 10);
	fired_is(3, 9);
	IS(wq_timer_next_deadline(f->t), START_NS + 105);
}

static void act_cancel(struct job *job, const wq_timer_event *event)
{
	job->answer[0] = wq_timer_cancel(job->t, event->id);
	job->answer[1] = wq_timer_cancel(job->t, event->id);
	job->answer[2] = wq_timer_reschedule(job->t, event->id, event->now_ns);
	job->answer[3] = wq_timer_cancel(job->t, job->other);
}

static void a_callback_cancels_itself_and_another(void **state)
{
	struct timers *f = *state;
	struct job once = {.who = 1, .act = act_cancel}, always = {.who = 2, .act = act_cancel},
		   victim = {.who = 3}, victim2 = {.who = 4};

	add(f, &once, 10);
	once.other = add(f, &victim, 10); /* due at the same instant, and behind it */
	step(f, 10);
	fired_is(1, 1);
	IS(once.answer[0], WQ_ESTALE); /* it has fired */
	IS(once.answer[1], WQ_ESTALE);
	IS(once.answer[2], WQ_ESTALE);
	IS(once.answer[3], WQ_OK);

	always.t = f->t;
	always.other = add(f, &victim2, 1000);
	IS(wq_timer_every(f->t, 10, fire, &always, &always.id), WQ_OK);
	step(f, 10);
	fired_is(2, 2);
	IS(always.answer[0], WQ_OK); /* in time for the next */
	IS(always.answer[1], WQ_ESTALE);
	IS(always.answer[2], WQ_ESTALE);
	IS(always.answer[3], WQ_OK);
	IS(wq_timer_size(f->t), 0);
	step(f, WQ_SECOND);
	fired_is(2, 2);
}

static void act_move(struct job *job, const wq_timer_event *event)
{
	job->answer[0] = wq_timer_reschedule(job->t, event->id, event->now_ns + 3);
	job->answer[1] = wq_timer_next_deadline(job->t);
	job->answer[2] = wq_timer_now(job->t);
	job->answer[3] = wq_timer_clock_changed(job->t);
}

static void a_callback_moves_itself(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1, .act = act_move, .t = f->t};

	IS(wq_timer_every(f->t, 10, fire, &job, NULL), WQ_OK);
	for (int i = 0; i < 4; i++) {
		step(f, i == 0 ? 10 : 3);
		fired_is(i + 1, 1);
		IS(job.answer[0], WQ_OK);
		assert_true(job.answer[1] <= wq_manual_clock_now(f->mc) + 3);
		IS(job.answer[2], wq_manual_clock_now(f->mc));
		IS(job.answer[3], WQ_OK);
	}
}

static void act_free(struct job *job, const wq_timer_event *event)
{
	(void)event;
	job->answer[0] = wq_timer_free(job->t);
}

static void a_callback_cannot_free(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1, .act = act_free}, b = {.who = 2};

	add(f, &a, 10);
	add(f, &b, 20);
	step(f, 10);
	IS(a.answer[0], WQ_EDEADLK);
	IS(wq_timer_size(f->t), 1); /* nothing has changed */
	step(f, 10);
	fired_is(2, 2);
}

static void act_stop(struct job *job, const wq_timer_event *event)
{
	(void)event;
	job->answer[0] = wq_timer_stop(job->t);
	job->answer[1] = wq_timer_stop(job->t);
	job->answer[2] = wq_timer_add(job->t, 0, fire, &child, NULL);
	job->answer[3] = wq_timer_size(job->t);
}

static void a_callback_stops(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, stops = {.who = 2, .act = act_stop}, b = {.who = 3};

	add(f, &a, 10);
	add(f, &stops, 10);
	add(f, &b, 10); /* due too, but no more */
	IS(wq_timer_every(f->t, 10, fire, &b, NULL), WQ_OK);
	IS(wq_manual_clock_advance(f->mc, 10), WQ_OK);
	wait_for(&notes.n, 2);
	IS(wq_timer_stop(f->t), WQ_OK); /* from outside: now the callback has returned as well */
	IS(stops.answer[0], WQ_OK);
	IS(stops.answer[1], WQ_OK);
	IS(stops.answer[2], WQ_ESHUTDOWN);
	IS(stops.answer[3], 2);
	IS(wq_timer_free(f->t), 2);
	f->t = NULL;
	fired_is(2, 2);
}

/* It runs outside all locks, in one thread, one callback after another. */
static void nothing_blocks_while_a_callback_runs(void **state)
{
	struct timers *f = *state;
	struct job slow = {.who = 1, .act = at_gate}, next = {.who = 2, .act = at_gate},
		   other = {.who = 3};
	wq_timer_id id;

	gate_set(true);
	add(f, &slow, 10);
	add(f, &next, 10);
	IS(wq_manual_clock_advance(f->mc, 10), WQ_OK);
	wait_for(&notes.at_gate, 1);
	IS(wq_timer_add(f->t, 0, fire, &other, &id), WQ_OK);
	IS(wq_timer_cancel(f->t, id), WQ_OK);
	IS(wq_timer_after(f->t, 5, fire, &other, &id), WQ_OK);
	IS(wq_timer_reschedule(f->t, id, START_NS + 100), WQ_OK);
	IS(wq_timer_every(f->t, 50, fire, &other, NULL), WQ_OK);
	IS(wq_timer_size(f->t), 3);
	assert_true(wq_timer_next_deadline(f->t) <= START_NS + 10);
	IS(wq_timer_now(f->t), START_NS + 10);
	IS(wq_timer_cancel(f->t, slow.id), WQ_ESTALE);
	IS(wq_manual_clock_advance(f->mc, 1), WQ_OK);
	IS(count_of(&notes.at_gate), 1); /* the other one waits for it */
	gate_set(false);
	settle(f);
	fired_is(2, 2);
}

/* ---- stop and free ---------------------------------------------------------- */

static int64_t stop_main(void *t)
{
	return wq_timer_stop(t);
}

static int64_t free_main(void *t)
{
	return wq_timer_free(t);
}

static void stop_ends_everything(void **state)
{
	struct timers *f = *state;
	struct job a = {.who = 1}, b = {.who = 2};
	wq_timer_id id = 77;

	add(f, &a, 10);
	add(f, &b, 20);
	runner_blocks(f);
	IS(wq_timer_stop(f->t), WQ_OK);
	IS(wq_timer_stop(f->t), WQ_OK);
	IS(wq_manual_clock_advance(f->mc, WQ_SECOND), WQ_OK);
	IS(wq_timer_add(f->t, 0, fire, &a, &id), WQ_ESHUTDOWN);
	IS(wq_timer_after(f->t, 0, fire, &a, &id), WQ_ESHUTDOWN);
	IS(wq_timer_every(f->t, 1, fire, &a, &id), WQ_ESHUTDOWN);
	IS((int64_t)id, 77);
	IS(wq_timer_size(f->t), 2);
	IS(wq_timer_cancel(f->t, a.id), WQ_OK);
	IS(wq_timer_size(f->t), 1);
	IS(wq_timer_free(f->t), 1);
	f->t = NULL;
	fired_is(0, 0);
}

static void stop_waits_for_the_callback(void **state)
{
	struct timers *f = *state;
	struct job slow = {.who = 1, .act = at_gate}, late = {.who = 2};
	struct actor stoppers[3];

	gate_set(true);
	add(f, &slow, 10);
	add(f, &late, 10);
	IS(wq_manual_clock_advance(f->mc, 10), WQ_OK);
	wait_for(&notes.at_gate, 1);
	for (int i = 0; i < 3; i++) {
		actor_start(&stoppers[i], stop_main, f->t);
		actor_blocks(&stoppers[i]);
	}
	IS(wq_timer_add(f->t, 0, fire, &late, NULL), WQ_ESHUTDOWN); /* already */
	gate_set(false);
	for (int i = 0; i < 3; i++)
		IS(actor_join(&stoppers[i]), WQ_OK);
	fired_is(1, 1); /* it has returned, and nothing came after it */
	IS(wq_timer_free(f->t), 1);
	f->t = NULL;
	fired_is(1, 1);
}

static void free_waits_for_the_callback(void **state)
{
	struct timers *f = *state;
	struct job slow = {.who = 1, .act = at_gate}, left = {.who = 2};
	struct actor freer;

	gate_set(true);
	add(f, &slow, 10);
	add(f, &left, 10);
	add(f, &left, WQ_HOUR);
	IS(wq_timer_every(f->t, WQ_HOUR, fire, &left, NULL), WQ_OK);
	IS(wq_timer_add(f->t, WQ_NEVER, fire, &left, NULL), WQ_OK);
	IS(wq_manual_clock_free(f->mc), WQ_EBUSY);
	IS(wq_manual_clock_advance(f->mc, 10), WQ_OK);
	wait_for(&notes.at_gate, 1);
	actor_start(&freer, free_main, f->t);
	actor_blocks(&freer);
	gate_set(false);
	IS(actor_join(&freer), 4);
	f->t = NULL;
	fired_is(1, 1);
	IS(count_of(&notes.through_gate), 1);
	memory_balanced(&f->mem);
}

static void free_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct timers f = {0};
		struct job job = {.who = 1};

		timers_open(&f, 0, 0);
		if (i % 2)
			add(&f, &job, WQ_HOUR);
		timers_close(&f, i % 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_TIMERS(a_callback_adds),
	    WITH_TIMERS(a_callback_cancels_itself_and_another),
	    WITH_TIMERS(a_callback_moves_itself),
	    WITH_TIMERS(a_callback_cannot_free),
	    WITH_TIMERS(a_callback_stops),
	    WITH_TIMERS(nothing_blocks_while_a_callback_runs),
	    WITH_TIMERS(stop_ends_everything),
	    WITH_TIMERS(stop_waits_for_the_callback),
	    WITH_TIMERS(free_waits_for_the_callback),
	    cmocka_unit_test(free_at_once),
	};

	return cmocka_run_group_tests_name("timer, callbacks", tests, NULL, NULL);
}
