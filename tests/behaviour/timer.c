/*
 * The promises of wq/timer.h, on a clock of steps and on the real one.
 *
 * A callback notes that it was made, under a mutex, and tests wait for that on
 * a condition. To know that something has not fired, a test adds a timer that
 * is due now and waits for it: everything that was due before fires before.
 */
#include "../support/support.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 20000, SETTLED = -1 };

struct fired {
	int who;
	wq_timer_event event;
	int64_t at_ns; /* on the real clock */
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct fired fired[MOST];
	int n;
	int settled;
	bool shut;        /* a callback that waits at the gate is let through once this is false */
	int at_gate;      /* callbacks that have come there */
	int through_gate; /* and that have left */
	int runner;       /* the thread that calls; 0: none has yet */
} notes = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* What a timer's ctx points to. */
struct job {
	wq_timer *t;
	int who;
	void (*act)(struct job *job, const wq_timer_event *event); /* or NULL */
	wq_timer_id id, other;
	int64_t answer[4];
};

struct timers {
	wq_timer *t;
	wq_manual_clock *mc;
	struct memory mem;
};

/* ---- callbacks -------------------------------------------------------------- */

static void fire(void *ctx, const wq_timer_event *event)
{
	struct job *job = ctx;
	int64_t now = wq_clock_monotonic();

	if (job->act)
		job->act(job, event);
	pthread_mutex_lock(&notes.mutex);
	if (job->who == SETTLED) {
		notes.settled++;
	} else {
		assert_true(notes.n < MOST);
		notes.fired[notes.n++] = (struct fired){job->who, *event, now};
	}
	notes.runner = (int)syscall(SYS_gettid);
	pthread_cond_broadcast(&notes.cond);
	pthread_mutex_unlock(&notes.mutex);
}

/* Waits in the callback until the test opens the gate. */
static void at_gate(struct job *job, const wq_timer_event *event)
{
	(void)job;
	(void)event;
	pthread_mutex_lock(&notes.mutex);
	notes.at_gate++;
	pthread_cond_broadcast(&notes.cond);
	while (notes.shut)
		pthread_cond_wait(&notes.cond, &notes.mutex);
	notes.through_gate++;
	pthread_mutex_unlock(&notes.mutex);
}

static void gate_set(bool shut)
{
	pthread_mutex_lock(&notes.mutex);
	notes.shut = shut;
	pthread_cond_broadcast(&notes.cond);
	pthread_mutex_unlock(&notes.mutex);
}

static void wait_for(const int *count, int least)
{
	pthread_mutex_lock(&notes.mutex);
	while (*count < least)
		pthread_cond_wait(&notes.cond, &notes.mutex);
	pthread_mutex_unlock(&notes.mutex);
}

static int count_of(const int *count)
{
	pthread_mutex_lock(&notes.mutex);

	int n = *count;

	pthread_mutex_unlock(&notes.mutex);
	return n;
}

static void forget(void)
{
	pthread_mutex_lock(&notes.mutex);
	notes.n = notes.settled = notes.at_gate = notes.through_gate = notes.runner = 0;
	notes.shut = false;
	pthread_mutex_unlock(&notes.mutex);
}

/* ---- fixture ---------------------------------------------------------------- */

static void timers_open(struct timers *f, int64_t tick_ns, size_t size)
{
	memory_init(&f->mem);
	IS(wq_manual_clock_new(&f->mc, START_NS), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(f->mc);
	wq_allocator allocator = memory_allocator(&f->mem);
	wq_timer_options o = {.clock = &clock,
	                      .allocator = &allocator,
	                      .tick_ns = tick_ns,
	                      .size = size};

	IS(wq_timer_new(&f->t, &o), WQ_OK);
	forget();
}

/* left < 0: any number. A test that frees the timer itself leaves t as NULL. */
static void timers_close(struct timers *f, int64_t left)
{
	if (f->t && left >= 0)
		IS(wq_timer_free(f->t), left);
	else if (f->t)
		assert_true(wq_timer_free(f->t) >= 0);
	memory_balanced(&f->mem);
	IS(wq_manual_clock_free(f->mc), WQ_OK);
}

static int setup(void **state)
{
	struct timers *f = calloc(1, sizeof *f);

	assert_non_null(f);
	timers_open(f, 0, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	timers_close(*state, -1);
	free(*state);
	return 0;
}

#define WITH_TIMERS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* ---- helpers ---------------------------------------------------------------- */

/* Everything that is due has been called, and returned. */
static void settle(struct timers *f)
{
	static struct job job = {.who = SETTLED};
	int before = count_of(&notes.settled);

	IS(wq_timer_add(f->t, wq_manual_clock_now(f->mc), fire, &job, NULL), WQ_OK);
	wait_for(&notes.settled, before + 1);
}

static void step(struct timers *f, int64_t by_ns)
{
	IS(wq_manual_clock_advance(f->mc, by_ns), WQ_OK);
	settle(f);
}

static wq_timer_id add(struct timers *f, struct job *job, int64_t after_ns)
{
	job->t = f->t;
	IS(wq_timer_add(f->t, START_NS + after_ns, fire, job, &job->id), WQ_OK);
	assert_true(job->id != 0);
	return job->id;
}

/* So many have fired, and the last one was this. */
static void fired_is(int n, int who)
{
	IS(count_of(&notes.n), n);
	if (n > 0)
		IS(notes.fired[n - 1].who, who);
}

/* The thread sleeps; its number is known once it has called something. */
static void runner_blocks(struct timers *f)
{
	struct actor runner = {0};

	settle(f);
	atomic_init(&runner.tid, count_of(&notes.runner));
	atomic_init(&runner.finished, false);
	actor_blocks(&runner);
}

static int64_t stop_main(void *t)
{
	return wq_timer_stop(t);
}

static int64_t free_main(void *t)
{
	return wq_timer_free(t);
}

/* ---- times ------------------------------------------------------------------ */

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

/* ---- callbacks -------------------------------------------------------------- */

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

/* ---- the thread ------------------------------------------------------------- */

static struct {
	char name[16];
	sigset_t mask;
	int slack;
	pthread_t self;
} seen;

static void act_look(struct job *job, const wq_timer_event *event)
{
	(void)job;
	(void)event;
	pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
	pthread_sigmask(SIG_BLOCK, NULL, &seen.mask);
	seen.slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
	seen.self = pthread_self();
}

static void the_thread_has_a_name_and_blocks_signals(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1, .act = act_look};
	sigset_t mine;

	add(f, &job, 0);
	settle(f);
	assert_string_equal(seen.name, "wq-timer");
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			IS(sigismember(&seen.mask, sig), 1);
	IS(sigismember(&seen.mask, SIGRTMIN), 1);
	IS(sigismember(&seen.mask, SIGRTMAX), 1);
	IS(seen.slack, 1);
	assert_false(pthread_equal(seen.self, pthread_self()));
	/* The maker's own mask is as it was. */
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	IS(sigismember(&mine, SIGUSR1), 0);
	IS(sigismember(&mine, SIGTERM), 0);
}

/*
 * The linker sends the library's calls of these here (see CMakeLists.txt), so
 * that there can be no thread.
 */
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

static bool no_threads, no_calloc;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(id, attr, fn, arg);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_calloc ? NULL : __real_calloc(n, size);
}

static void there_may_be_no_thread(void **state)
{
	struct timers *f = *state;
	struct memory mem;
	wq_timer *t = NULL;

	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);
	wq_clock clock = wq_manual_clock_clock(f->mc);
	wq_timer_options o = {.allocator = &a, .clock = &clock};
	sigset_t mine;

	for (int i = 0; i < 2; i++) {
		no_threads = i == 0;
		no_calloc = i == 1;

		int rc = wq_timer_new(&t, &o);

		no_threads = no_calloc = false;
		IS(rc, WQ_EIO);
		assert_null(t);
		memory_balanced(&mem);
	}
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	IS(sigismember(&mine, SIGUSR1), 0);
	/* The clock is not watched by what is not there. */
	step(f, 10);
	IS(wq_timer_new(&t, &o), WQ_OK);
	IS(wq_timer_free(t), 0);
	memory_balanced(&mem);
}

/* ---- clocks ----------------------------------------------------------------- */

static void on_the_real_clock_nothing_is_early(void **state)
{
	enum { N = 100 };
	static struct job jobs[N];
	uint64_t rng = *(uint64_t *)*state;
	wq_timer *t;

	forget();
	IS(wq_timer_new(&t, NULL), WQ_OK);

	int64_t start = wq_clock_monotonic();

	assert_true(wq_timer_now(t) >= start);
	for (int i = 0; i < N; i++) {
		int64_t due = start + (int64_t)rng_below(&rng, 20 * WQ_MILLISECOND);

		jobs[i] = (struct job){.who = i, .t = t};
		IS(wq_timer_add(t, due, fire, &jobs[i], NULL), WQ_OK);
	}
	wait_for(&notes.n, N);
	for (int i = 0; i < N; i++) {
		const struct fired *x = &notes.fired[i];

		assert_true(x->at_ns >= x->event.due_ns);
		assert_true(x->event.now_ns >= x->event.due_ns);
		assert_true(x->event.now_ns <= x->at_ns);
	}
	IS(wq_timer_free(t), 0);
}

static void on_the_real_clock_an_earlier_timer_wakes_the_thread(void **state)
{
	struct timers f = {0};
	struct job far = {.who = 1}, near = {.who = 2};
	struct actor runner = {0};

	(void)state;
	forget();
	IS(wq_timer_new(&f.t, NULL), WQ_OK);
	IS(wq_timer_after(f.t, WQ_HOUR, fire, &far, NULL), WQ_OK);
	IS(wq_timer_after(f.t, 0, fire, &near, NULL), WQ_OK);
	wait_for(&notes.n, 1);
	atomic_init(&runner.tid, count_of(&notes.runner));
	actor_blocks(&runner);

	int64_t before = wq_clock_monotonic();

	IS(wq_timer_after(f.t, 2 * WQ_MILLISECOND, fire, &near, NULL), WQ_OK);
	wait_for(&notes.n, 2);
	assert_true(notes.fired[1].at_ns >= before + 2 * WQ_MILLISECOND);
	IS(wq_timer_free(f.t), 1);
}

static void on_the_real_clock_every_does_not_drift(void **state)
{
	struct job job = {.who = 1};
	wq_timer *t;
	int64_t due;

	(void)state;
	forget();
	IS(wq_timer_new(&t, NULL), WQ_OK);

	int64_t before = wq_clock_monotonic();

	IS(wq_timer_every(t, WQ_MILLISECOND, fire, &job, NULL), WQ_OK);
	wait_for(&notes.n, 10);
	IS(wq_timer_stop(t), WQ_OK);
	due = notes.fired[0].event.due_ns;
	assert_true(due >= before + WQ_MILLISECOND);
	for (int i = 0; i < notes.n; i++) {
		const struct fired *x = &notes.fired[i];

		IS(x->event.due_ns, due);
		assert_true(x->at_ns >= due);
		due += (1 + x->event.skipped) * WQ_MILLISECOND;
	}
	IS(wq_timer_free(t), 1);
}

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
	wq_timer_options o = {.clock = &clock};
	struct job job = {.who = 1};
	wq_timer *t;

	(void)state;
	forget();
	IS(wq_timer_new(&t, &o), WQ_OK);
	IS(wq_timer_add(t, 1000 + WQ_HOUR, fire, &job, NULL), WQ_OK);
	atomic_store(&own.now_ns, 2000 + WQ_HOUR);
	IS(wq_timer_clock_changed(t), WQ_OK);
	wait_for(&notes.n, 1);
	IS(notes.fired[0].event.now_ns, 2000 + WQ_HOUR);
	IS(wq_timer_free(t), 0);
}

static void a_clock_is_watched_from_new_to_free(void **state)
{
	struct own own = {.now_ns = 5};
	wq_clock clock = {.now = own_now, .watch = own_watch, .ctx = &own};
	wq_timer_options o = {.clock = &clock};
	wq_timer *t = NULL;
	struct memory mem;

	(void)state;
	IS(wq_timer_new(&t, &o), WQ_OK);
	IS(own.ons, 1);
	IS(wq_timer_stop(t), WQ_OK);
	IS(own.offs, 0);
	IS(wq_timer_free(t), 0);
	IS(own.ons, 1);
	IS(own.offs, 1);

	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);

	own.answer = WQ_EBUSY;
	o.allocator = &a;
	t = NULL;
	IS(wq_timer_new(&t, &o), WQ_EBUSY); /* its answer is passed on */
	assert_null(t);
	memory_balanced(&mem);
}

/* ---- bad input -------------------------------------------------------------- */

static void bad_options(void **state)
{
	static const int64_t ticks[] = {-1, INT64_MIN, (INT64_C(1) << 40) + 1, INT64_MAX};
	static const size_t sizes[] = {1, 3, 63, 65, 128, SIZE_MAX};
	struct memory mem;
	wq_timer *t = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator good = memory_allocator(&mem), bad = good;
	wq_clock no_now = {.now = NULL};
	wq_timer_options o = {.allocator = &good};

	IS(wq_timer_new(NULL, NULL), WQ_EINVAL);
	IS(wq_timer_new(NULL, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o.reserved[i] = 1;
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
		o.reserved[i] = 0;
	}
	for (size_t i = 0; i < LENGTH(ticks); i++) {
		o.tick_ns = ticks[i];
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
	}
	o.tick_ns = 0;
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		o.size = sizes[i];
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
	}
	o.size = 0;
	o.clock = &no_now;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	o.clock = NULL;
	bad.alloc = NULL;
	o.allocator = &bad;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	bad = good;
	bad.free = NULL;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	assert_null(t);
	memory_balanced(&mem);
	o.allocator = NULL;
	IS(wq_timer_new(&t, &o), WQ_OK); /* all zero is a good one */
	IS(wq_timer_free(t), 0);
}

static void bad_arguments(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1};
	wq_timer_id id = 77;

	IS(wq_timer_free(NULL), WQ_EINVAL);
	IS(wq_timer_add(NULL, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_add(f->t, 0, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_add(f->t, -1, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_after(NULL, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_after(f->t, 0, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(NULL, 1, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, 1, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, INT64_MIN, fire, &job, &id), WQ_EINVAL);
	IS((int64_t)id, 77);
	IS(wq_timer_size(f->t), 0);
	add(f, &job, 10);
	IS(wq_timer_cancel(NULL, job.id), WQ_EINVAL);
	IS(wq_timer_reschedule(NULL, job.id, 0), WQ_EINVAL);
	IS(wq_timer_reschedule(f->t, job.id, -1), WQ_EINVAL);
	IS(wq_timer_size(NULL), WQ_EINVAL);
	IS(wq_timer_next_deadline(NULL), WQ_EINVAL);
	IS(wq_timer_now(NULL), WQ_EINVAL);
	IS(wq_timer_stop(NULL), WQ_EINVAL);
	IS(wq_timer_clock_changed(NULL), WQ_EINVAL);
	IS(wq_timer_next_deadline(f->t), START_NS + 10); /* as it was */
}

/* ---- memory ----------------------------------------------------------------- */

/* What a timer asks for must not fail a second time; nothing fires meanwhile. */
static int64_t far_due(int i)
{
	return START_NS + WQ_HOUR + i * INT64_C(7919) * WQ_MILLISECOND;
}

/* The n-th allocation fails; true if there was an n-th. */
static bool run_without_memory(int64_t n, bool and_later)
{
	enum { N = 1200 };
	static struct job jobs[N];
	wq_manual_clock *mc;
	struct memory mem;
	wq_timer *t = NULL;

	forget();
	memory_init(&mem);
	mem.fail_at = n;
	mem.fail_on = and_later;
	IS(wq_manual_clock_new(&mc, START_NS), WQ_OK);

	wq_allocator a = memory_allocator(&mem);
	wq_clock clock = wq_manual_clock_clock(mc);
	wq_timer_options o = {.allocator = &a, .clock = &clock};
	int rc = wq_timer_new(&t, &o);

	if (rc != WQ_OK) {
		IS(rc, WQ_ENOMEM);
		assert_null(t);
		memory_balanced(&mem);
		IS(wq_manual_clock_free(mc), WQ_OK);
		return true;
	}
	for (int i = 0; i < N; i++) {
		bool every = i % 10 == 0;
		int64_t due = every ? START_NS + WQ_HOUR : far_due(i);

		jobs[i] = (struct job){.who = i};
		do {
			if (every)
				rc = wq_timer_every(t, WQ_HOUR, fire, &jobs[i], &jobs[i].id);
			else
				rc = wq_timer_add(t, due, fire, &jobs[i], &jobs[i].id);
			if (rc == WQ_OK)
				break;
			IS(rc, WQ_ENOMEM);
			IS(wq_timer_size(t), i);
			IS((int64_t)jobs[i].id, 0);
			mem.fail_at = -1;
		} while (true);
		if (i % 5 == 1) {
			rc = wq_timer_reschedule(t, jobs[i].id, due + 1);
			if (rc == WQ_ENOMEM) {
				mem.fail_at = -1; /* it has kept its time */
				rc = wq_timer_reschedule(t, jobs[i].id, due + 1);
			}
			IS(rc, WQ_OK);
		}
	}
	IS(wq_timer_size(t), N);
	IS(wq_timer_next_deadline(t), START_NS + WQ_HOUR);
	for (int i = 0; i < N; i += 2)
		IS(wq_timer_cancel(t, jobs[i].id), WQ_OK);
	/* The rest fires, each once, and without asking for more. */
	IS(wq_manual_clock_set(mc, far_due(N)), WQ_OK);
	wait_for(&notes.n, N / 2);
	for (int i = 1; i < N / 2; i++)
		assert_true(notes.fired[i - 1].event.due_ns <= notes.fired[i].event.due_ns);
	IS(wq_timer_free(t), 0);

	bool failed = mem.failed > 0;

	memory_balanced(&mem);
	IS(wq_manual_clock_free(mc), WQ_OK);
	return failed;
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	for (int and_later = 0; and_later < 2; and_later++) {
		int64_t n = 0;

		while (run_without_memory(n, and_later))
			n++;
		print_message("%lld allocations failed\n", (long long)n);
		assert_true(n > 8);
	}
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
	    WITH_TIMERS(the_thread_has_a_name_and_blocks_signals),
	    WITH_TIMERS(there_may_be_no_thread),
	    cmocka_unit_test_prestate(on_the_real_clock_nothing_is_early, &seed),
	    cmocka_unit_test(on_the_real_clock_an_earlier_timer_wakes_the_thread),
	    cmocka_unit_test(on_the_real_clock_every_does_not_drift),
	    cmocka_unit_test(a_clock_that_jumps),
	    cmocka_unit_test(a_clock_is_watched_from_new_to_free),
	    cmocka_unit_test(bad_options),
	    WITH_TIMERS(bad_arguments),
	    cmocka_unit_test(each_allocation_fails_once),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
