#include "timer_rig.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { SETTLED = -1 }; /* who: the timer of settle() */

struct notes notes = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

void fire(void *ctx, const wq_timer_event *event)
{
	struct job *job = ctx;
	int64_t now = wq_clock_monotonic();

	if (job->act)
		job->act(job, event);
	pthread_mutex_lock(&notes.mutex);
	if (job->who == SETTLED) {
		notes.settled++;
	} else {
		assert_true(notes.n < FIRED_MAX);
		notes.fired[notes.n++] = (struct fired){job->who, *event, now};
	}
	notes.runner = (int)syscall(SYS_gettid);
	pthread_cond_broadcast(&notes.cond);
	pthread_mutex_unlock(&notes.mutex);
}

void at_gate(struct job *job, const wq_timer_event *event)
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

void gate_set(bool shut)
{
	pthread_mutex_lock(&notes.mutex);
	notes.shut = shut;
	pthread_cond_broadcast(&notes.cond);
	pthread_mutex_unlock(&notes.mutex);
}

void wait_for(const int *count, int least)
{
	pthread_mutex_lock(&notes.mutex);
	while (*count < least)
		pthread_cond_wait(&notes.cond, &notes.mutex);
	pthread_mutex_unlock(&notes.mutex);
}

int count_of(const int *count)
{
	pthread_mutex_lock(&notes.mutex);

	int n = *count;

	pthread_mutex_unlock(&notes.mutex);
	return n;
}

void forget(void)
{
	pthread_mutex_lock(&notes.mutex);
	notes.n = notes.settled = notes.at_gate = notes.through_gate = notes.runner = 0;
	notes.shut = false;
	pthread_mutex_unlock(&notes.mutex);
}

void timers_open(struct timers *f, int64_t tick_ns, size_t size)
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

void timers_close(struct timers *f, int64_t left)
{
	if (f->t && left >= 0)
		IS(wq_timer_free(f->t), left);
	else if (f->t)
		assert_true(wq_timer_free(f->t) >= 0);
	memory_balanced(&f->mem);
	IS(wq_manual_clock_free(f->mc), WQ_OK);
}

int timers_setup(void **state)
{
	struct timers *f = calloc(1, sizeof *f);

	assert_non_null(f);
	timers_open(f, 0, 0);
	*state = f;
	return 0;
}

int timers_teardown(void **state)
{
	timers_close(*state, -1);
	free(*state);
	return 0;
}

void settle(struct timers *f)
{
	static struct job job = {.who = SETTLED};
	int before = count_of(&notes.settled);

	IS(wq_timer_add(f->t, wq_manual_clock_now(f->mc), fire, &job, NULL), WQ_OK);
	wait_for(&notes.settled, before + 1);
}

void step(struct timers *f, int64_t by_ns)
{
	IS(wq_manual_clock_advance(f->mc, by_ns), WQ_OK);
	settle(f);
}

wq_timer_id add(struct timers *f, struct job *job, int64_t after_ns)
{
	job->t = f->t;
	IS(wq_timer_add(f->t, START_NS + after_ns, fire, job, &job->id), WQ_OK);
	assert_true(job->id != 0);
	return job->id;
}

void fired_is(int n, int who)
{
	IS(count_of(&notes.n), n);
	if (n > 0)
		IS(notes.fired[n - 1].who, who);
}

void runner_blocks(struct timers *f)
{
	struct actor runner = {0};

	settle(f);
	atomic_init(&runner.tid, count_of(&notes.runner));
	atomic_init(&runner.finished, false);
	actor_blocks(&runner);
}
