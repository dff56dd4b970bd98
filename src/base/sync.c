/*
 * The futex side of sync.h.
 *
 * Back-off of the lock, in units of about 0.8 µs: one, then two at a time,
 * until about 100 µs have gone by; then the thread sleeps in the parking lot. Shorter
 * first steps make the throughput of two threads bimodal (they fall into
 * exchanging the lock for every operation); longer ones starve a consumer
 * whose producer keeps a short backlog.
 */
#define _GNU_SOURCE
#include "base/sync.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/tools.h"
#include "base/uncancelled.h"

enum {
	BACKOFF_NS = 800,
	BACKOFF_ROUNDS = 64, /* two units each: about 100 µs */
	NO_BARRIER_NS = 1000000,
	MANY_CPUS = -1,
};

static long futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline_ns)
{
	struct timespec at = {
	    .tv_sec = (time_t)(deadline_ns / 1000000000),
	    .tv_nsec = (long)(deadline_ns % 1000000000),
	};

	return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
	               deadline_ns == INT64_MAX ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void futex_wake(_Atomic uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t wq__clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t wq__clock_coarse(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

void wq__yield(void)
{
	sched_yield();
}

int wq__cpus(void)
{
	cpu_set_t set;

	/* Fails on machines with more than 1,024 CPUs: those have more than one. */
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 2;
	return CPU_COUNT(&set);
}

/* The one CPU that this thread may run on; MANY_CPUS: there are more. */
static int lone_cpu(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1)
		return MANY_CPUS;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return (int)cpu;
	return MANY_CPUS;
}

/* The CPU on which every thread runs that has asked; MANY_CPUS from the first other one on. */
static _Atomic int only_cpu;

bool wq__one_cpu(void)
{
	int only = atomic_load_explicit(&only_cpu, memory_order_relaxed);

	if (wq__likely(only == MANY_CPUS) || only == lone_cpu())
		return only != MANY_CPUS;
	atomic_store_explicit(&only_cpu, MANY_CPUS, memory_order_relaxed);
	return false;
}

/* ---- once in a process --------------------------------------------------- */

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/*
 * When the library is loaded, most programs have one thread, and this takes a
 * microsecond. Later, beside other threads, it can take 15 ms.
 */
static __attribute__((constructor)) void join_barriers(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

/* Every thread of the process passes a barrier. False: the kernel does not do that. */
static bool barrier_for_all(void)
{
	if (wq__likely(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
		return true;
	join_barriers();
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

enum { PAUSES = 32 };

static int64_t pauses_take_ns; /* so many */
static bool has_barrier;
_Atomic uint16_t wq__lock_pauses;

/* A pause takes between 10 and 140 cycles, by model; the best of several is not preempted. */
static int64_t time_pauses(void)
{
	enum { TRIES = 8 };
	int64_t best = INT64_MAX;

	for (int t = 0; t < TRIES; t++) {
		int64_t start = wq__clock_now();

		for (int i = 0; i < PAUSES; i++)
			WQ__PAUSE();
		int64_t took = wq__clock_now() - start;

		if (took < best)
			best = took;
	}
	return best < 1 ? 1 : best;
}

static uint32_t pauses_for(int64_t ns)
{
	int64_t n = ns * PAUSES / pauses_take_ns;

	return n < 1 ? 1 : n > 1000000 ? 1000000 : (uint32_t)n;
}

static void learn(void)
{
	pauses_take_ns = time_pauses();
	atomic_init(&wq__lock_pauses, (uint16_t)pauses_for(BACKOFF_NS));
	atomic_init(&only_cpu, lone_cpu());
	has_barrier = barrier_for_all();
}

static void learn_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, learn);
}

uint32_t wq__pauses_for(int64_t ns)
{
	learn_once();
	return pauses_for(ns);
}

/* ---- the lock ------------------------------------------------------------ */

struct wq__lot wq__lot[WQ__LOT_PLACES];

/*
 * A lock that tools can see: a mutex behind a place that is always taken. The word says for good
 * that another thread owns the lock, and nobody does; so who acquires it comes to wq__lock_slow(),
 * and who releases it to wq__lock_wake(), and what is inline knows nothing of it.
 */
struct seen {
	_Atomic uint64_t place; /* I: SEEN */
	pthread_mutex_t mutex;
};

/* No lock has the address that this would name. */
#define SEEN UINT64_MAX

static bool is_seen(_Atomic uint64_t *place)
{
	return atomic_load_explicit(place, memory_order_relaxed) == SEEN;
}

static struct seen *seen_of(_Atomic uint64_t *place)
{
	return wq__container_of(place, struct seen, place);
}

/* Without memory the lock stays as it is, and tools may report what is no error. */
static void let_be_seen(wq__lock *l)
{
	struct seen *s = malloc(sizeof *s);
	pthread_mutexattr_t attr;

	if (!s)
		return;
	atomic_init(&s->place, SEEN);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&s->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	l->place = &s->place;
	atomic_init(&l->word, WQ__OWNED);
	atomic_init(&l->inside, WQ__OUT);
	atomic_init(&l->owner, WQ__SHARED);
}

void wq__lock_end(wq__lock *l)
{
	if (!is_seen(l->place))
		return;

	struct seen *s = seen_of(l->place);

	pthread_mutex_destroy(&s->mutex);
	free(s);
}

static void init(wq__lock *l)
{
	learn_once();
	*l = (wq__lock){.place = &wq__lot[(uintptr_t)l / 64 % WQ__LOT_PLACES].place};
	atomic_init(&l->word, WQ__FREE);
	atomic_init(&l->inside, has_barrier ? WQ__OUT : WQ__NO_BARRIER);
	atomic_init(&l->owner, WQ__SHARED);
}

void wq__lock_init(wq__lock *l)
{
	init(l);
	if (wq__tools() & WQ__TOOL_THREADS)
		let_be_seen(l);
}

void wq__lock_init_own(wq__lock *l)
{
	init(l);
	if (has_barrier) {
		atomic_init(&l->word, WQ__OWNED);
		atomic_init(&l->owner, WQ__NOBODY);
	}
	if (wq__tools() & WQ__TOOL_THREADS)
		let_be_seen(l);
}

/* In a function of its own, so that a backtrace tells what happened. */
void wq__lock_taken_by_its_holder(void)
{
	abort();
}

/* How a thread waits for a lock. */
struct wait {
	bool heir;              /* has ended its ownership: gets it when the owner is out */
	const wq__passed *gave; /* has given it, and waits for others first */
};

/* May a lock in this state be taken? */
static bool is_free(const wq__lock *l, uint8_t word, const struct wait *how)
{
	if (word != WQ__GIVEN)
		return word == WQ__FREE;
	/* The word was read with acquire: who took our gift has counted itself. */
	return !how->gave ||
	       atomic_load_explicit(&l->went, memory_order_relaxed) != how->gave->went;
}

static bool try_lock(wq__lock *l, const struct wait *how)
{
	uint8_t word;

	if (how->heir) {
		/* acquire: pairs with the owner's release */
		if (atomic_load_explicit(&l->inside, memory_order_acquire) != WQ__OUT)
			return false;
		atomic_store_explicit(&l->word, WQ__HELD, memory_order_relaxed);
	} else {
		word = atomic_load_explicit(&l->word, memory_order_seq_cst);
		if (!is_free(l, word, how) ||
		    !atomic_compare_exchange_strong_explicit(&l->word, &word, WQ__HELD,
		                                             memory_order_acquire,
		                                             memory_order_relaxed))
			return false;
	}
	atomic_store_explicit(&l->owner, wq__me() | WQ__SHARED, memory_order_relaxed);
	return true;
}

/* True: it got the lock. */
static bool back_off(wq__lock *l, const struct wait *how)
{
	uint32_t unit =
	    wq__one_cpu() ? 0 : atomic_load_explicit(&wq__lock_pauses, memory_order_relaxed);
	uint32_t n = unit;

	for (int round = 0; n > 0 && round < BACKOFF_ROUNDS; round++) {
		for (uint32_t i = 0; i < n; i++)
			WQ__PAUSE();
		if (try_lock(l, how))
			return true;
		n = 2 * unit;
	}
	return false;
}

/*
 * The owner writes `inside` and then looks whether it still is the owner; here
 * the owner is changed, and then `inside` is looked at. The barrier between them
 * is passed by every thread: so either the owner sees that it is none any more, or
 * it is seen to be inside, and waited for.
 * True: the caller is the one who has the lock as soon as the owner is out.
 */
static bool end_ownership(wq__lock *l)
{
	uintptr_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

	if (owner & WQ__SHARED ||
	    !atomic_compare_exchange_strong_explicit(&l->owner, &owner, WQ__SHARED,
	                                             memory_order_seq_cst, memory_order_relaxed))
		return false;
	/* If a filter forbids it by now: no CPU keeps what it stored to itself for so long. */
	if (!barrier_for_all())
		for (int64_t until = wq__clock_now() + NO_BARRIER_NS; wq__clock_now() < until;)
			WQ__PAUSE();
	return true;
}

/* Nobody has used it: this thread is the first, owns it, and holds it now. */
static bool become_owner(wq__lock *l)
{
	uintptr_t owner = WQ__NOBODY;

	return atomic_load_explicit(&l->owner, memory_order_relaxed) == WQ__NOBODY &&
	       atomic_compare_exchange_strong_explicit(&l->owner, &owner, wq__me(),
	                                               memory_order_relaxed,
	                                               memory_order_relaxed) &&
	       wq__lock_enter(l, wq__me());
}

/* It went in though it is not the owner any more. */
void wq__lock_step_back(wq__lock *l)
{
	_Atomic uint64_t *place = l->place;

	atomic_store_explicit(&l->inside, WQ__OUT, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	wq__lock_wake(place);
}

/* What a place is told of a lock: its address, but for the bits that are the same for all. */
static uint64_t name_of(const wq__lock *l)
{
	return (uint64_t)((uintptr_t)l / _Alignof(wq__lock)) * (WQ__WAKES + WQ__WAKE);
}

/* The half of a place on which threads sleep. */
static _Atomic uint32_t *futex_of(_Atomic uint64_t *place)
{
	return (_Atomic uint32_t *)place + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* This thread may sleep for the lock from now on. True: it has to see to the barrier. */
static bool announce(wq__lock *l, bool heir, uint64_t *seen)
{
	uint64_t was = atomic_load_explicit(l->place, memory_order_relaxed), name = name_of(l);

	do {
		bool same = (was & WQ__FOR) == 0 || (was & WQ__FOR) == name;

		*seen = was | WQ__SLEEPERS | WQ__BARRIER;
		*seen |= same && !heir ? name : WQ__WAKE_ALL;
	} while (!atomic_compare_exchange_weak_explicit(l->place, &was, *seen, memory_order_seq_cst,
	                                                memory_order_relaxed));
	return !(was & WQ__BARRIER) || *seen & WQ__WAKE_ALL;
}

/*
 * No wake-up is lost. While threads sleep at a place, one of these holds:
 *
 *   - SLEEPERS is set, and the lock is held by a thread that will see that;
 *   - a thread that was woken, or that came to sleep and did not, is on its way. It
 *     gets the lock and then sets SLEEPERS, so that its release wakes the next; or
 *     it goes to sleep and sets SLEEPERS, too.
 *
 * That the holder sees it: the first sleeper sets SLEEPERS, passes the barrier,
 * and looks at the word. A release clears the word and looks at the place. If it
 * saw no SLEEPERS, its look came before the barrier on its CPU, so its store did
 * too, and the sleeper finds the lock free (or held by somebody to whom the same
 * applies). Those who come to sleep after the first one need no barrier: they have the
 * first one's, if it is over, or else the first one looks at the word for them.
 *
 * One who is not asleep yet when a release wakes finds another number at the
 * place and does not fall asleep. If all of 2^16 numbers have gone by meanwhile, it
 * falls asleep at a place that has SLEEPERS set, as it should.
 *
 * A thread that has given the lock may not take it back at once. If it is woken (the kernel
 * wakes by priority) instead of one that may, that one would sleep on beside its gift: so it
 * passes the wake-up on before it sleeps again.
 *
 * All of this is about one lock. If threads wait for two at one place, or if one of them
 * is an heir, for whom alone the owner leaves, the next wake-up is for all.
 */
static void wait_for(wq__lock *l, const struct wait *how)
{
	bool announced = false, refused = false, woken = false;
	uint64_t seen;

	/* After sleeping too: the lock may be gone again by the time a sleeper is awake. */
	while (!back_off(l, how)) {
		announced = true;
		/* A filter that forbids it from now on leaves looking again after a while. */
		if (announce(l, how->heir, &seen) && wq__lock_barrier(l) && !barrier_for_all())
			refused = true;
		if (try_lock(l, how))
			break;
		if (woken && how->gave && atomic_load(&l->word) == WQ__GIVEN)
			futex_wake(futex_of(l->place), INT_MAX);
		woken = true;
		futex_wait(futex_of(l->place), (uint32_t)seen,
		           refused ? wq__clock_now() + NO_BARRIER_NS : INT64_MAX);
	}
	if (announced)
		atomic_fetch_or_explicit(l->place, WQ__SLEEPERS, memory_order_relaxed);
}

/*
 * The same, counted as one that waits. Whoever is counted goes on until it has the lock, and
 * takes one that is given; a thread that has given it itself takes it once its gift has been
 * taken, which the count of those who got it shows. So a lock that is given is taken: its
 * giver holds it, so that the gifts of all others that wait have been taken.
 */
static void wait_counted(wq__lock *l, struct wait how)
{
	uint32_t went;

	atomic_fetch_add_explicit(&l->came, 1, memory_order_relaxed);
	if (!how.gave)
		how.heir = end_ownership(l);
	if (!(how.heir && try_lock(l, &how)))
		wait_for(l, &how);
	went = atomic_load_explicit(&l->went, memory_order_relaxed);
	atomic_store_explicit(&l->went, went + 1, memory_order_relaxed);
}

void wq__lock_slow(wq__lock *l)
{
	if (is_seen(l->place)) {
		if (pthread_mutex_lock(&seen_of(l->place)->mutex) != 0)
			wq__lock_taken_by_its_holder();
		return;
	}
	if (become_owner(l))
		return;
	if (atomic_load_explicit(&l->owner, memory_order_relaxed) == (wq__me() | WQ__SHARED))
		wq__lock_taken_by_its_holder();
	wait_counted(l, (struct wait){.heir = false});
}

/* It is counted from here on, and not since it gave the lock: it may have been elsewhere. */
void wq__lock_retake(wq__lock *l, wq__passed p)
{
	if (p.given)
		wait_counted(l, (struct wait){.gave = &p});
	else
		wq__lock_acquire(l);
}

void wq__lock_wake(_Atomic uint64_t *place)
{
	uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);

	if (seen == SEEN) {
		pthread_mutex_unlock(&seen_of(place)->mutex);
		return;
	}
	while (seen & WQ__SLEEPERS) {
		bool all = seen & WQ__WAKE_ALL;
		uint64_t next = (seen + WQ__WAKE) & WQ__WAKES;

		if (!all)
			next |= seen & WQ__FOR;
		if (atomic_compare_exchange_weak_explicit(place, &seen, next, memory_order_seq_cst,
		                                          memory_order_relaxed)) {
			futex_wake(futex_of(place), all ? INT_MAX : 1);
			return;
		}
	}
}

bool wq__parker_poll(wq__parker *p, uint32_t pauses)
{
	for (uint32_t i = 0; i < pauses; i++) {
		if (wq__parker_is_set(p))
			return true;
		WQ__PAUSE();
	}
	return wq__parker_is_set(p);
}

/* This thread is the library's own: its timed sleeps end in time. */
static _Thread_local bool is_exact;

/*
 * The default slack of 50 µs is what a sleep would be late by. It is asked for around a sleep
 * only: what a callback starts would inherit it, and its own children after it.
 */
static void set_slack(int64_t deadline_ns, unsigned long ns)
{
	if (is_exact && deadline_ns != INT64_MAX)
		prctl(PR_SET_TIMERSLACK, ns, 0UL, 0UL, 0UL);
}

static bool sleep_until(wq__parker *p, int64_t deadline_ns)
{
	for (;;) {
		long rc = futex_wait(&p->word, 2, deadline_ns);

		if (wq__parker_is_set(p))
			return true;
		if (rc != 0 && errno == ETIMEDOUT)
			return false;
	}
}

bool wq__parker_sleep(wq__parker *p, int64_t deadline_ns)
{
	enum { EXACT_NS = 1, DEFAULT = 0 };
	uint32_t waiting = 0;
	bool set;

	p->slept_on = sched_getcpu();
	/* acquire on failure: it was set, pairs with the release in wq__parker_set() */
	if (!atomic_compare_exchange_strong_explicit(&p->word, &waiting, 2, memory_order_acquire,
	                                             memory_order_acquire) &&
	    waiting == 1)
		return true;
	set_slack(deadline_ns, EXACT_NS);
	set = sleep_until(p, deadline_ns);
	set_slack(deadline_ns, DEFAULT);
	return set;
}

bool wq__parker_set(wq__parker *p)
{
	p->set_on = sched_getcpu();
	/* release: pairs with the acquire in poll and sleep */
	return atomic_exchange_explicit(&p->word, 1, memory_order_release) == 2;
}

void wq__parker_wake(wq__parker *p)
{
	futex_wake(&p->word, 1);
}

struct start {
	void (*run)(void *arg);
	void *arg;
	char name[16];
};

static void *begin(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), s.name);
	is_exact = true;
	s.run(s.arg);
	return NULL;
}

void **wq__self(void)
{
	static _Thread_local void *self;

	return &self;
}

/* The system's default, or as much as was asked for, but no less than it allows. */
static int set_stack(pthread_attr_t *attr, size_t size)
{
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size == 0)
		return 0;
	size = size < least ? least : size;
	return pthread_attr_setstacksize(attr, (size + page - 1) / page * page);
}

bool wq__thread_start(wq__thread *t, void (*run)(void *arg), void *arg, const char *name,
                      size_t stack_size)
{
	struct start *s = calloc(1, sizeof *s);
	pthread_attr_t attr;
	int rc;

	if (!s) {
		errno = ENOMEM;
		return false;
	}
	rc = pthread_attr_init(&attr);
	if (rc != 0)
		goto no_attr;
	rc = set_stack(&attr, stack_size);
	if (rc != 0)
		goto no_thread;
	s->run = run;
	s->arg = arg;
	strncpy(s->name, name, sizeof s->name - 1);
	rc = pthread_create(&t->id, &attr, begin, s);
no_thread:
	pthread_attr_destroy(&attr);
no_attr:
	if (rc != 0) {
		free(s);
		errno = rc;
	}
	return rc == 0;
}

void wq__thread_join(wq__thread *t)
{
	int before = wq__uncancelled_begin();

	pthread_join(t->id, NULL);
	wq__uncancelled_end(before);
}

bool wq__thread_is_me(const wq__thread *t)
{
	return pthread_equal(t->id, pthread_self()) != 0;
}
