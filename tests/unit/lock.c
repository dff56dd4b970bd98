/*
 * How the lock is passed on, what stops a thread that takes it twice, and what is done once
 * in a process.
 */
#include "../support/support.h"

#include "base/sync.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq.h>

/* ---- the kernel, seen from here (--wrap) ------------------------------------ */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static _Atomic int nregistered, nbarriers; /* calls of membarrier(2) */
static _Atomic int nasleep;                /* calls that go to sleep */
static _Atomic int nwoken, most_woken;     /* by futex wake-ups; by one of them */
static _Thread_local bool woken_instead;   /* this thread's next sleep ends at once */

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_membarrier) {
		atomic_fetch_add(&nbarriers, 1);
		if ((int)arg[0] == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
			atomic_fetch_add(&nregistered, 1);
	}
	if (number == SYS_futex && (int)arg[1] == FUTEX_WAIT_BITSET_PRIVATE && woken_instead) {
		woken_instead = false;
		return 0;
	}

	if (number == SYS_futex && (int)arg[1] == FUTEX_WAIT_BITSET_PRIVATE)
		atomic_fetch_add(&nasleep, 1);

	long rc = __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);

	if (number == SYS_futex && (int)arg[1] == FUTEX_WAKE_PRIVATE && rc > 0) {
		atomic_fetch_add(&nwoken, (int)rc);
		if (rc > atomic_load(&most_woken))
			atomic_store(&most_woken, (int)rc);
	}
	return rc;
}

enum { THREADS = 4, ROUNDS = 20000, AS_IT_IS = -1 };

struct shared {
	wq__lock lock;
	long counter; /* L */
	int inside;   /* L */
	int wrong;    /* L */
};

static int64_t acquire_and_release(void *arg)
{
	struct shared *s = arg;

	wq__lock_acquire(&s->lock);
	s->wrong += s->inside++ != 0;
	s->counter++;
	s->inside--;
	wq__lock_release(&s->lock);
	return 0;
}

static int64_t count(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		acquire_and_release(arg);
	return 0;
}

/* ---- a lock that is passed in the midst of long work ------------------------- */

static void await_waiters(const wq__lock *l, unsigned n)
{
	while ((uint16_t)(atomic_load(&l->came) - atomic_load(&l->went)) < n)
		sched_yield();
}

/* Whoever waits has had it when it is taken again: one each time, and in the end all. */
static void pass_to_each(int pauses, int barrier)
{
	struct shared s = {.counter = 0};
	struct actor a[THREADS];
	uint16_t usual;

	wq__lock_init(&s.lock);
	usual = atomic_load(&wq__lock_pauses);
	if (pauses != AS_IT_IS)
		atomic_store(&wq__lock_pauses, (uint16_t)pauses);
	if (barrier != AS_IT_IS)
		atomic_store(&s.lock.inside, WQ__NO_BARRIER);
	wq__lock_acquire(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_start(&a[i], acquire_and_release, &s);
	await_waiters(&s.lock, THREADS);
	if (pauses == 0)
		for (int i = 0; i < THREADS; i++)
			actor_blocks(&a[i]);
	for (int i = 0; i < THREADS; i++) {
		wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
		assert_true(s.counter > i);
	}
	/* Nobody waits: it is free for anybody, its last holder included. */
	wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
	wq__lock_release(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_join(&a[i]);
	IS(s.counter, THREADS);
	IS(atomic_load(&s.lock.word), WQ__FREE);
	atomic_store(&wq__lock_pauses, usual);
}

static void lock_is_passed_to_whoever_waits(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		pass_to_each(AS_IT_IS, AS_IT_IS);
		pass_to_each(0, AS_IT_IS);
		pass_to_each(AS_IT_IS, 0);
		pass_to_each(0, 0);
	}
}

/* Who passes it waits for others only, and two of them not for each other. */
static int64_t count_and_pass(void *arg)
{
	struct shared *s = arg;

	wq__lock_acquire(&s->lock);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t went = atomic_load(&s->lock.went);
		bool waited = atomic_load(&s->lock.came) != (uint16_t)went;
		wq__passed passed;

		s->wrong += s->inside++ != 0;
		s->counter++;
		s->inside--;
		passed = wq__lock_pass(&s->lock);
		wq__lock_retake(&s->lock, passed);
		s->wrong += waited && !passed.given;
		s->wrong += passed.given && atomic_load(&s->lock.went) == went;
	}
	wq__lock_release(&s->lock);
	return 0;
}

static void lock_is_passed_around(void **state)
{
	(void)state;
	for (int barrier = AS_IT_IS; barrier < 1; barrier++) {
		struct shared s = {.counter = 0};
		struct actor a[THREADS];

		wq__lock_init(&s.lock);
		if (barrier != AS_IT_IS)
			atomic_store(&s.lock.inside, WQ__NO_BARRIER);
		for (int i = 0; i < THREADS; i++)
			actor_start(&a[i], i % 2 ? count : count_and_pass, &s);
		for (int i = 0; i < THREADS; i++)
			actor_join(&a[i]);
		IS(s.counter, THREADS * ROUNDS);
		IS(s.wrong, 0);
		IS(atomic_load(&s.lock.word), WQ__FREE);
	}
}

/* Who takes it again waits like anybody else: two that are at long work take turns. */
static int64_t pass_back(void *arg)
{
	struct shared *s = arg;
	wq__passed passed;

	wq__lock_acquire(&s->lock);
	await_waiters(&s->lock, 1);
	passed = wq__lock_pass(&s->lock);
	s->wrong += !passed.given;
	wq__lock_retake(&s->lock, passed);
	s->wrong += s->counter != 1; /* the other one was in */
	wq__lock_release(&s->lock);
	return 0;
}

static void two_that_pass_it_take_turns(void **state)
{
	struct shared s = {.counter = 0};
	struct actor a;

	(void)state;
	wq__lock_init(&s.lock);
	wq__lock_acquire(&s.lock);
	actor_start(&a, pass_back, &s);
	await_waiters(&s.lock, 1);
	wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
	s.counter++;
	wq__lock_release(&s.lock);
	actor_join(&a);
	IS(s.wrong, 0);
}

/*
 * Between giving it and taking it again, a walk calls functions of the user's. Who is there
 * does not wait: others pass the lock without it.
 */
static int64_t pass_once(void *arg)
{
	struct shared *s = arg;

	wq__lock_acquire(&s->lock);
	s->counter++;
	wq__lock_retake(&s->lock, wq__lock_pass(&s->lock));
	s->counter++;
	wq__lock_release(&s->lock);
	return 0;
}

static void who_has_passed_it_is_not_waited_for(void **state)
{
	struct shared s = {.counter = 0};
	struct actor a, b;
	wq__passed passed;

	(void)state;
	wq__lock_init(&s.lock);
	wq__lock_acquire(&s.lock);
	actor_start(&a, acquire_and_release, &s);
	await_waiters(&s.lock, 1);
	passed = wq__lock_pass(&s.lock);
	assert_true(passed.given);
	actor_join(&a);
	/* Now others come, and this thread is still elsewhere. */
	actor_start(&b, pass_once, &s);
	actor_join(&b);
	acquire_and_release(&s);
	wq__lock_retake(&s.lock, passed);
	IS(s.counter, 4);
	wq__lock_release(&s.lock);
}

struct absent {
	struct shared *s;
	wq__passed passed;
};

static int64_t come_back(void *arg)
{
	struct absent *a = arg;

	wq__lock_retake(&a->s->lock, a->passed);
	a->s->counter++;
	wq__lock_release(&a->s->lock);
	return 0;
}

/* However many others have waited for it meanwhile, 2^16 for one: the gift was taken. */
static void who_has_passed_it_may_stay_away_for_long(void **state)
{
	struct shared s = {.counter = 0};
	struct absent absent = {.s = &s};
	struct actor a;

	(void)state;
	wq__lock_init(&s.lock);
	wq__lock_acquire(&s.lock);
	actor_start(&a, acquire_and_release, &s);
	await_waiters(&s.lock, 1);
	absent.passed = wq__lock_pass(&s.lock);
	assert_true(absent.passed.given);
	actor_join(&a);
	for (int i = 0; i < UINT16_MAX; i++) {
		wq__lock_slow(&s.lock); /* as one that has to wait */
		wq__lock_release(&s.lock);
	}
	wq__lock_acquire(&s.lock);
	actor_start(&a, come_back, &absent);
	await_waiters(&s.lock, 1);
	wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
	IS(s.counter, 2);
	wq__lock_release(&s.lock);
	actor_join(&a);
}

static int64_t come_back_woken_instead(void *arg)
{
	woken_instead = true;
	come_back(arg);
	return woken_instead;
}

/*
 * A release has cleared SLEEPERS and is about to wake one. Meanwhile the lock is taken, and
 * given; and who gave it sleeps, has the higher priority, and is woken instead of the one
 * that may take it. It passes the wake-up on.
 */
static void who_has_passed_it_passes_a_wake_up_on(void **state)
{
	struct shared s = {.counter = 0};
	struct absent absent = {.s = &s};
	struct actor a, b;

	(void)state;
	wq__lock_init(&s.lock);
	wq__lock_acquire(&s.lock);
	actor_start(&a, acquire_and_release, &s);
	actor_blocks(&a);
	atomic_fetch_and(s.lock.place, ~(WQ__SLEEPERS | WQ__BARRIER));
	absent.passed = wq__lock_pass(&s.lock);
	assert_true(absent.passed.given);
	alarm(60); /* in case nobody wakes anybody */
	actor_start(&b, come_back_woken_instead, &absent);
	IS(actor_join(&b), 0);
	actor_join(&a);
	alarm(0);
	IS(s.counter, 2);
}

/* One that is owned is passed by ending that. */
static void lock_of_an_owner_is_passed(void **state)
{
	struct shared s = {.counter = 0};
	struct actor a;

	(void)state;
	wq__lock_init_own(&s.lock);
	wq__lock_acquire(&s.lock);
	wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
	actor_start(&a, acquire_and_release, &s);
	await_waiters(&s.lock, 1);
	while (wq__lock_barrier(&s.lock) && !(atomic_load(&s.lock.owner) & WQ__SHARED))
		sched_yield();
	wq__lock_retake(&s.lock, wq__lock_pass(&s.lock));
	IS(s.counter, 1);
	wq__lock_release(&s.lock);
	actor_join(&a);
}

/* ---- many that sleep --------------------------------------------------------- */

enum { SLEEPERS = 16 };

/* They all wait for a lock that is held. What that costs, in barriers and in wake-ups. */
static void sleep_and_wake(struct shared *s, int barriers)
{
	struct actor a[SLEEPERS];
	int before = atomic_load(&nbarriers);

	wq__lock_acquire(&s->lock);
	/* A lock that is gone may have left its name at the place: then the first wake-up is for all. */
	atomic_fetch_and(s->lock.place, WQ__WAKES);
	atomic_store(&nwoken, 0);
	atomic_store(&most_woken, 0);
	atomic_store(&nasleep, 0);
	for (int i = 0; i < SLEEPERS; i++)
		actor_start(&a[i], acquire_and_release, s);
	/* A sanitizer's runtime may let a thread sleep before it comes to the lock. */
	while (atomic_load(&nasleep) < SLEEPERS)
		sched_yield();
	for (int i = 0; i < SLEEPERS; i++)
		actor_blocks(&a[i]);
	IS(atomic_load(&nbarriers) - before, barriers);
	wq__lock_release(&s->lock);
	for (int i = 0; i < SLEEPERS; i++)
		actor_join(&a[i]);
	/* Whoever has slept wakes the next one when it leaves, and nobody sleeps again. */
	IS(atomic_load(&nbarriers) - before, barriers);
	IS(atomic_load(&nwoken), SLEEPERS);
	IS(atomic_load(&most_woken), 1);
	IS(s->counter, SLEEPERS);
}

static void one_barrier_for_all_sleepers(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		struct shared s = {.counter = 0};

		wq__lock_init(&s.lock);
		sleep_and_wake(&s, wq__lock_barrier(&s.lock) ? 1 : 0);
		s.counter = 0;
		atomic_store(&s.lock.inside, WQ__NO_BARRIER);
		sleep_and_wake(&s, 0);
	}
}

/* Threads wait for two locks at one place: nobody is left asleep beside a lock that is free. */
static void locks_at_one_place_wake_each_other(void **state)
{
	static _Alignas(64) struct {
		struct shared s;
		char rest[64 * WQ__LOT_PLACES - sizeof(struct shared)];
	} two[2];
	struct actor a[SLEEPERS];

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 2; i++) {
			two[i].s = (struct shared){.counter = 0};
			wq__lock_init(&two[i].s.lock);
			wq__lock_acquire(&two[i].s.lock);
		}
		assert_ptr_equal(two[0].s.lock.place, two[1].s.lock.place);
		for (int i = 0; i < SLEEPERS; i++)
			actor_start(&a[i], acquire_and_release, &two[i % 2].s);
		for (int i = 0; i < SLEEPERS; i++)
			actor_blocks(&a[i]);
		/* The second one stays held: its sleepers do not take the wake-up of the first. */
		wq__lock_release(&two[0].s.lock);
		for (int i = 0; i < SLEEPERS; i += 2)
			actor_join(&a[i]);
		IS(two[1].s.counter, 0);
		wq__lock_release(&two[1].s.lock);
		for (int i = 1; i < SLEEPERS; i += 2)
			actor_join(&a[i]);
		IS(two[0].s.counter + two[1].s.counter, SLEEPERS);
	}
}

/* ---- misuse, and what happens once in a process ------------------------------ */

static int take_twice(void (*init)(wq__lock *l))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct shared s = {.counter = 0};

		signal(SIGABRT, SIG_DFL);
		init(&s.lock);
		acquire_and_release(&s);
		wq__lock_acquire(&s.lock);
		alarm(10); /* in case it waits for itself */
		wq__lock_acquire(&s.lock);
		_exit(0);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* [REENTER] A hook that calls its own queue is stopped: in every build. */
static void lock_is_not_taken_twice(void **state)
{
	(void)state;
	IS(take_twice(wq__lock_init), SIGABRT);
	IS(take_twice(wq__lock_init_own), SIGABRT);
}

/* Of two copies of the library, one may use a lock that the other made: the lot is the lock's. */
static void lock_sleeps_in_its_own_lot(void **state)
{
	static _Atomic uint64_t other_lot;
	struct shared s = {.counter = 0};
	struct actor a[THREADS];
	uint64_t before[WQ__LOT_PLACES];

	(void)state;
	wq__lock_init(&s.lock);
	s.lock.place = &other_lot;
	for (int i = 0; i < WQ__LOT_PLACES; i++)
		before[i] = atomic_load(&wq__lot[i].place);
	wq__lock_acquire(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_start(&a[i], acquire_and_release, &s);
	for (int i = 0; i < THREADS; i++)
		actor_blocks(&a[i]);
	wq__lock_release(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_join(&a[i]);
	for (int i = 0; i < WQ__LOT_PLACES; i++)
		assert_true(atomic_load(&wq__lot[i].place) == before[i]);
	assert_true((atomic_load(&other_lot) & WQ__WAKES) != 0);
}

static int64_t make_queues(void *arg)
{
	int64_t before = atomic_load(&nbarriers);

	(void)arg;
	for (int i = 0; i < 3; i++) {
		wq_queue *q;

		IS(wq_new(&q, NULL), WQ_OK);
		IS(wq_free(q), 0);
	}
	return atomic_load(&nbarriers) - before;
}

/* To register beside other threads takes milliseconds: it is done when the library is loaded. */
static void a_queue_is_made_without_the_kernel(void **state)
{
	struct actor a;

	(void)state;
	IS(atomic_load(&nregistered), 1);
	actor_start(&a, make_queues, NULL);
	actor_join(&a);
	actor_start(&a, make_queues, NULL);
	IS(actor_join(&a), 0);
	IS(atomic_load(&nregistered), 1);
}

static int64_t is_there_one_cpu(void *arg)
{
	if (arg && sched_setaffinity(0, sizeof(cpu_set_t), arg) != 0)
		return -1;
	return wq__one_cpu();
}

static int64_t ask_about_cpus(cpu_set_t *set)
{
	struct actor a;

	actor_start(&a, is_there_one_cpu, set);
	return actor_join(&a);
}

/* In a process of its own, in which a thread bound to one CPU makes the first lock. */
static int bound_to_one_cpu(void)
{
	cpu_set_t all, last_cpu;
	wq__lock l;

	if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
		return 77;
	CPU_ZERO(&last_cpu);
	/* Not the first, whose number is what a variable is that nobody has set. */
	for (size_t cpu = CPU_SETSIZE; cpu-- > 0 && CPU_COUNT(&last_cpu) == 0;)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &last_cpu);
	if (is_there_one_cpu(&last_cpu) < 0)
		return 77;
	wq__lock_init(&l);
	if (is_there_one_cpu(NULL) != 1 || ask_about_cpus(&last_cpu) != 1)
		return 1; /* polling would keep the others from running */
	if (ask_about_cpus(&all) != 0)
		return 2; /* that one may run beside them */
	return is_there_one_cpu(NULL) == 0 ? 0 : 3;
}

static void a_bound_creator_binds_nobody_else(void **state)
{
	char *argv[] = {(char *)(uintptr_t) "bound", NULL};
	char *envp[] = {(char *)(uintptr_t) "WQ_TEST_BOUND=1", NULL};
	int status = -1;
	pid_t child;

	(void)state;
	IS(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, envp), 0);
	assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	IS(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_queue_is_made_without_the_kernel),
	    cmocka_unit_test(lock_is_passed_to_whoever_waits),
	    cmocka_unit_test(lock_is_passed_around),
	    cmocka_unit_test(two_that_pass_it_take_turns),
	    cmocka_unit_test(who_has_passed_it_is_not_waited_for),
	    cmocka_unit_test(who_has_passed_it_may_stay_away_for_long),
	    cmocka_unit_test(who_has_passed_it_passes_a_wake_up_on),
	    cmocka_unit_test(lock_of_an_owner_is_passed),
	    cmocka_unit_test(one_barrier_for_all_sleepers),
	    cmocka_unit_test(locks_at_one_place_wake_each_other),
	    cmocka_unit_test(lock_is_not_taken_twice),
	    cmocka_unit_test(lock_sleeps_in_its_own_lot),
	    cmocka_unit_test(a_bound_creator_binds_nobody_else),
	};

	if (getenv("WQ_TEST_BOUND"))
		return bound_to_one_cpu();
	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
