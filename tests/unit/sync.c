/* The lock keeps others out; the parker sleeps until it is set, or until its time. */
#include "../support/support.h"

#include "base/sync.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- the kernel, seen from here (--wrap) ------------------------------------ */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/*
 * Called by a thread that is about to sleep on the word if that has the value.
 * False: it is not let.
 */
typedef bool (*doze_fn)(_Atomic uint32_t *word, uint32_t value);
static _Thread_local doze_fn on_doze;
static _Thread_local bool no_barrier; /* a filter forbids this thread membarrier(2) */

static long futex(va_list args)
{
	_Atomic uint32_t *word = va_arg(args, _Atomic uint32_t *);
	int op = va_arg(args, int);
	unsigned value = va_arg(args, unsigned);
	const struct timespec *at = va_arg(args, const struct timespec *);
	void *word2 = va_arg(args, void *);
	unsigned bits = va_arg(args, unsigned);

	if (op == FUTEX_WAIT_BITSET_PRIVATE && on_doze != NULL && !on_doze(word, value)) {
		errno = EAGAIN;
		return -1;
	}
	return __real_syscall(SYS_futex, word, op, value, at, word2, bits);
}

long __wrap_syscall(long number, ...)
{
	va_list args;
	long rc;

	va_start(args, number);
	if (number == SYS_futex) {
		rc = futex(args);
	} else if (number == SYS_membarrier) {
		int command = va_arg(args, int);
		unsigned flags = va_arg(args, unsigned);
		int cpu = va_arg(args, int);

		rc = no_barrier ? -1 : __real_syscall(number, command, flags, cpu);
	} else { /* gettid */
		rc = __real_syscall(number);
	}
	va_end(args);
	return rc;
}

/* ---- the lock --------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 40000 };

struct shared {
	wq__lock lock;
	long counter; /* L */
	int inside;   /* L */
	int wrong;    /* L */
};

static int64_t count(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		wq__lock_acquire(&s->lock);
		s->wrong += s->inside++ != 0;
		s->counter++;
		/* now and then long enough for the others to go to sleep on it */
		if (i % 1000 == 0)
			sched_yield();
		s->inside--;
		wq__lock_release(&s->lock);
	}
	return 0;
}

enum { AS_IT_IS = -1 };

static void contend(void (*init)(wq__lock *l), int pauses, int barrier)
{
	struct shared s = {.counter = 0};
	struct actor a[THREADS];
	uint16_t usual;

	init(&s.lock);
	usual = atomic_load(&wq__lock_pauses);
	if (pauses != AS_IT_IS)
		atomic_store(&wq__lock_pauses, (uint16_t)pauses);
	if (barrier != AS_IT_IS)
		atomic_store(&s.lock.inside, WQ__NO_BARRIER);
	for (int i = 0; i < THREADS; i++)
		actor_start(&a[i], count, &s);
	for (int i = 0; i < THREADS; i++)
		actor_join(&a[i]);
	atomic_store(&wq__lock_pauses, usual);
	IS(s.counter, THREADS * ROUNDS);
	IS(s.wrong, 0);
	IS(atomic_load(&s.lock.word), 0);
}

static void lock_keeps_others_out(void **state)
{
	(void)state;
	contend(wq__lock_init, AS_IT_IS, AS_IT_IS);
	contend(wq__lock_init, 0, AS_IT_IS); /* as on one CPU: everyone sleeps at once */
	contend(wq__lock_init, 1, AS_IT_IS);
	contend(wq__lock_init, 0, 0); /* as on a kernel without membarrier */
	contend(wq__lock_init, 1, 0);
	contend(wq__lock_init_own, AS_IT_IS, AS_IT_IS);
	contend(wq__lock_init_own, 0, AS_IT_IS);
	contend(wq__lock_init_own, 1, AS_IT_IS);
}

static int64_t acquire_and_release(void *arg)
{
	struct shared *s = arg;

	wq__lock_acquire(&s->lock);
	s->counter++;
	wq__lock_release(&s->lock);
	return 0;
}

static void wake_all(void (*init)(wq__lock *l))
{
	struct shared s = {.counter = 0};
	struct actor a[THREADS];

	init(&s.lock);
	wq__lock_acquire(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_start(&a[i], acquire_and_release, &s);
	for (int i = 0; i < THREADS; i++)
		actor_blocks(&a[i]);
	IS(s.counter, 0);
	wq__lock_release(&s.lock);
	for (int i = 0; i < THREADS; i++)
		actor_join(&a[i]);
	IS(s.counter, THREADS);
	IS(atomic_load(&s.lock.word), WQ__FREE);
}

/* Of one that is owned, the second thread sleeps until the owner is out, and others until it is. */
static void lock_wakes_all_who_sleep_on_it(void **state)
{
	(void)state;
	wake_all(wq__lock_init);
	wake_all(wq__lock_init_own);
}

/*
 * Two locks that share a place of the parking lot: as far apart as the lot is
 * long.
 */
enum { LOT = 64 };

static struct {
	_Alignas(64) struct shared s;
} cells[LOT + 1];

static struct shared *const first = &cells[0].s, *const second = &cells[LOT].s;

static void share_a_place(int barrier)
{
	struct shared *const both[] = {first, second};

	for (int i = 0; i < 2; i++) {
		*both[i] = (struct shared){.counter = 0};
		wq__lock_init(&both[i]->lock);
		if (barrier != AS_IT_IS)
			atomic_store(&both[i]->lock.inside, WQ__NO_BARRIER);
	}
	assert_ptr_equal(first->lock.place, second->lock.place);
}

/*
 * The one way to lose a wake-up, step by step. A thread has found the first
 * lock held and is about to sleep. Then the second one is released, which
 * wakes all who sleep there; the first is, which sees nobody; and another
 * thread comes to sleep for the second. The first thread must not sleep: its
 * lock is free and nobody would wake it.
 */
static struct actor late;
static _Atomic bool late_is_here;
static bool overslept;

static bool late_comes(_Atomic uint32_t *word, uint32_t value)
{
	(void)word;
	(void)value;
	atomic_store(&late_is_here, true);
	return true;
}

static int64_t come_late(void *arg)
{
	on_doze = late_comes;
	return acquire_and_release(arg);
}

static bool others_come_and_go(_Atomic uint32_t *word, uint32_t value)
{
	on_doze = NULL;
	wq__lock_release(&second->lock);
	wq__lock_release(&first->lock);
	wq__lock_acquire(&second->lock);
	actor_start(&late, come_late, second);
	while (!atomic_load(&late_is_here))
		sched_yield();
	overslept = atomic_load(word) == value;
	return !overslept; /* a failure that is reported is better than one that hangs */
}

static int64_t go_to_sleep(void *arg)
{
	on_doze = others_come_and_go;
	return acquire_and_release(arg);
}

static void lock_sleeper_is_not_overlooked(void **state)
{
	uint16_t usual = wq__lock_pauses;

	(void)state;
	atomic_store(&wq__lock_pauses, 0);
	for (int barrier = AS_IT_IS; barrier < 1; barrier++) {
		struct actor a;

		share_a_place(barrier);
		atomic_store(&late_is_here, false);
		wq__lock_acquire(&first->lock);
		wq__lock_acquire(&second->lock);
		actor_start(&a, go_to_sleep, first);
		actor_join(&a);
		wq__lock_release(&second->lock);
		actor_join(&late);
		IS(overslept, 0);
		IS(first->counter, 1);
		IS(second->counter, 1);
	}
	atomic_store(&wq__lock_pauses, usual);
}

/*
 * The same by chance. A thread that was forgotten is woken by the next release
 * at its place, so the threads meet after a few of them: who sleeps on is not
 * there, and the test hangs.
 */
enum { MEETINGS = 4000, TURNS = 6 };

static _Atomic int arrived;

static int64_t crowd(void *arg)
{
	struct shared *s = arg;

	for (int round = 1; round <= MEETINGS; round++) {
		for (int i = 0; i < TURNS; i++) {
			wq__lock_acquire(&s->lock);
			s->wrong += s->inside++ != 0;
			s->counter++;
			if (i % 2 == round % 2)
				sched_yield();
			s->inside--;
			wq__lock_release(&s->lock);
		}
		atomic_fetch_add(&arrived, 1);
		while (atomic_load(&arrived) < round * THREADS)
			sched_yield();
	}
	return 0;
}

static void locks_that_share_a_place(void **state)
{
	uint16_t usual = wq__lock_pauses;

	(void)state;
	atomic_store(&wq__lock_pauses, 0);
	for (int barrier = AS_IT_IS; barrier < 1; barrier++) {
		struct actor a[THREADS];

		share_a_place(barrier);
		atomic_store(&arrived, 0);
		for (int i = 0; i < THREADS; i++)
			actor_start(&a[i], crowd, i % 2 ? first : second);
		for (int i = 0; i < THREADS; i++)
			actor_join(&a[i]);
		IS(first->counter + second->counter, (int64_t)THREADS * MEETINGS * TURNS);
		IS(first->wrong + second->wrong, 0);
		IS(atomic_load(&first->lock.word) + atomic_load(&second->lock.word), 0);
	}
	atomic_store(&wq__lock_pauses, usual);
}

/* ---- a lock that one thread owns --------------------------------------------- */

static void lock_is_owned_until_it_is_shared(void **state)
{
	struct shared s = {.counter = 0};
	struct actor a;

	(void)state;
	wq__lock_init_own(&s.lock);
	if (!wq__lock_barrier(&s.lock))
		skip(); /* this kernel has no membarrier: no lock is owned */
	for (int i = 0; i < 3; i++) {
		acquire_and_release(&s);
		IS(atomic_load(&s.lock.word), WQ__OWNED);
		IS(atomic_load(&s.lock.inside), 0);
		assert_true(atomic_load(&s.lock.owner) == wq__me());
	}
	actor_start(&a, acquire_and_release, &s);
	actor_join(&a);
	for (int i = 0; i < 3; i++) {
		assert_true(atomic_load(&s.lock.owner) == WQ__SHARED);
		IS(atomic_load(&s.lock.word), WQ__FREE);
		acquire_and_release(&s);
	}
	IS(s.counter, 7);
}

/* A thread that has ended leaves what it owned to the next one of its number, or to any other. */
static void lock_outlives_its_owner(void **state)
{
	struct shared s = {.counter = 0};

	(void)state;
	wq__lock_init_own(&s.lock);
	for (int i = 0; i < THREADS; i++) {
		struct actor a;

		actor_start(&a, acquire_and_release, &s);
		actor_join(&a);
	}
	acquire_and_release(&s);
	IS(s.counter, THREADS + 1);
	assert_true(!wq__lock_barrier(&s.lock) || atomic_load(&s.lock.owner) == WQ__SHARED);
}

static int64_t acquire_without_barrier(void *arg)
{
	no_barrier = true;
	return acquire_and_release(arg);
}

static void lock_owner_is_waited_for_without_a_barrier(void **state)
{
	struct shared s = {.counter = 0};
	struct actor a;

	(void)state;
	wq__lock_init_own(&s.lock);
	wq__lock_acquire(&s.lock);
	actor_start(&a, acquire_without_barrier, &s);
	actor_blocks(&a);
	IS(s.counter, 0);
	wq__lock_release(&s.lock);
	actor_join(&a);
	IS(s.counter, 1);
}

/*
 * An owner that comes and goes as fast as it can, and a second thread that comes
 * once: for each meeting a lock of its own. Without the barrier both are in at
 * once now and then, and one of them counts for nothing.
 */
enum { OWNED_LOCKS = 20000 };

static struct {
	struct shared s[OWNED_LOCKS];
	long mine[OWNED_LOCKS]; /* how often the owner was in */
	_Atomic int at;         /* which one the owner uses; the second one moves it on */
	char far[64 << 20];     /* see below */
} owned;

static int64_t come_and_go(void *arg)
{
	size_t away = 0;
	int i;

	(void)arg;
	while ((i = atomic_load_explicit(&owned.at, memory_order_relaxed)) < OWNED_LOCKS) {
		struct shared *s = &owned.s[i];

		/* What is stored next waits in the CPU for this line, while loads go on. */
		away = (away + 4096 * 1031 + 64) % sizeof owned.far;
		owned.far[away]++;
		wq__lock_acquire(&s->lock);
		s->counter++;
		wq__lock_release(&s->lock);
		owned.mine[i]++;
	}
	return 0;
}

static void lock_owner_is_not_overlooked(void **state)
{
	struct actor a;

	(void)state;
	for (int i = 0; i < OWNED_LOCKS; i++) {
		owned.s[i] = (struct shared){.counter = 0};
		owned.mine[i] = 0;
		wq__lock_init_own(&owned.s[i].lock);
	}
	atomic_store(&owned.at, 0);
	actor_start(&a, come_and_go, NULL);
	for (int i = 0; i < OWNED_LOCKS; i++) {
		struct shared *s = &owned.s[i];

		while (atomic_load(&s->lock.owner) == WQ__NOBODY)
			sched_yield();
		wq__lock_acquire(&s->lock);
		s->counter++;
		wq__lock_release(&s->lock);
		atomic_store(&owned.at, i + 1);
	}
	actor_join(&a);
	for (int i = 0; i < OWNED_LOCKS; i++)
		IS(owned.s[i].counter, owned.mine[i] + 1);
}

/* ---- the parker ------------------------------------------------------------- */

static void parker_set_before_it_is_looked_at(void **state)
{
	wq__parker p;

	(void)state;
	wq__parker_init(&p);
	assert_false(wq__parker_is_set(&p));
	assert_false(wq__parker_poll(&p, 0));
	assert_false(wq__parker_poll(&p, 100));
	assert_false(wq__parker_set(&p)); /* nobody sleeps: no wake is due */
	assert_true(wq__parker_is_set(&p));
	assert_true(wq__parker_poll(&p, 0));
	assert_true(wq__parker_poll(&p, 100));
	assert_true(wq__parker_sleep(&p, INT64_MAX)); /* at once */
	assert_true(wq__parker_sleep(&p, 0));         /* set counts more than late */
}

static void parker_times_out_not_too_early(void **state)
{
	wq__parker p;

	(void)state;
	wq__parker_init(&p);
	assert_false(wq__parker_sleep(&p, 0)); /* long past */
	for (int64_t span = 1; span < 4 * WQ_MILLISECOND; span *= 50) {
		int64_t deadline = wq__clock_now() + span;

		assert_false(wq__parker_sleep(&p, deadline));
		assert_true(wq__clock_now() >= deadline);
	}
	assert_false(wq__parker_is_set(&p));
	wq__parker_set(&p);
	assert_true(wq__parker_sleep(&p, INT64_MAX));
}

struct sleeper {
	wq__parker parker;
	int64_t deadline_ns;
};

static int64_t sleep_on(void *arg)
{
	struct sleeper *s = arg;

	return wq__parker_sleep(&s->parker, s->deadline_ns);
}

static void parker_is_woken(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct sleeper s = {.deadline_ns =
		                        round % 2 ? INT64_MAX : wq__clock_now() + WQ_HOUR};
		struct actor a;

		wq__parker_init(&s.parker);
		actor_start(&a, sleep_on, &s);
		actor_blocks(&a);
		wq__parker_wake(&s.parker); /* for nothing: it goes on sleeping */
		actor_blocks(&a);
		assert_true(wq__parker_set(&s.parker));
		wq__parker_wake(&s.parker);
		IS(actor_join(&a), 1);
	}
}

/* set races with falling asleep: who is told to wake does, and nobody sleeps through. */
static void parker_is_never_missed(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct sleeper s = {.deadline_ns = INT64_MAX};
		struct actor a;

		wq__parker_init(&s.parker);
		actor_start(&a, sleep_on, &s);
		if (round % 3 == 0)
			sched_yield();
		if (wq__parker_set(&s.parker))
			wq__parker_wake(&s.parker);
		IS(actor_join(&a), 1);
	}
}

static void clocks_and_cpus(void **state)
{
	int64_t before, now;

	(void)state;
	assert_true(wq__cpus() >= 1);
	before = wq__clock_now();
	for (int i = 0; i < 1000; i++) {
		now = wq__clock_now();
		assert_true(now >= before);
		before = now;
	}
	/* the cheap one is behind, by less than a tenth of a second */
	now = wq__clock_coarse();
	assert_true(now <= wq__clock_now());
	assert_true(now > before - WQ_SECOND / 10);
	assert_true(wq__pauses_for(0) >= 1);
	assert_true(wq__pauses_for(1) >= 1);
	assert_true(wq__pauses_for(WQ_SECOND) > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lock_keeps_others_out),
	    cmocka_unit_test(lock_wakes_all_who_sleep_on_it),
	    cmocka_unit_test(lock_sleeper_is_not_overlooked),
	    cmocka_unit_test(locks_that_share_a_place),
	    cmocka_unit_test(lock_is_owned_until_it_is_shared),
	    cmocka_unit_test(lock_outlives_its_owner),
	    cmocka_unit_test(lock_owner_is_waited_for_without_a_barrier),
	    cmocka_unit_test(lock_owner_is_not_overlooked),
	    cmocka_unit_test(parker_set_before_it_is_looked_at),
	    cmocka_unit_test(parker_times_out_not_too_early),
	    cmocka_unit_test(parker_is_woken),
	    cmocka_unit_test(parker_is_never_missed),
	    cmocka_unit_test(clocks_and_cpus),
	};

	return cmocka_run_group_tests_name("sync", tests, NULL, NULL);
}
