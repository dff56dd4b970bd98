/* The promises of wq/timer.h about its thread, and about clocks other than one of steps. */
#include "timer_rig.h"

#include <errno.h>
#include <sys/prctl.h>

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

static void the_thread_has_a_name_and_is_like_its_maker(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1, .act = act_look};
	sigset_t mine;

	add(f, &job, 0);
	settle(f);
	assert_string_equal(seen.name, "wq-timer");
	assert_false(pthread_equal(seen.self, pthread_self()));
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	masks_are_equal(&seen.mask, &mine);
	/* In a callback: exact timers are for sleeps only. */
	IS(seen.slack, prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL));
	assert_true(seen.slack > 1);
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

static void a_clock_that_jumps(void **state)
{
	struct own_clock own = {.now_ns = 1000};
	wq_clock clock = own_clock(&own, false);
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
	struct own_clock own = {.now_ns = 5};
	wq_clock clock = own_clock(&own, true);
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

static uint64_t seed;

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    WITH_TIMERS(the_thread_has_a_name_and_is_like_its_maker),
	    WITH_TIMERS(there_may_be_no_thread),
	    cmocka_unit_test_prestate(on_the_real_clock_nothing_is_early, &seed),
	    cmocka_unit_test(on_the_real_clock_an_earlier_timer_wakes_the_thread),
	    cmocka_unit_test(on_the_real_clock_every_does_not_drift),
	    cmocka_unit_test(a_clock_that_jumps),
	    cmocka_unit_test(a_clock_is_watched_from_new_to_free),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("timer, clocks", tests, NULL, NULL);
}
