/*
 * Locks, sleeping and waking: the only place that knows about futexes.
 *
 * A lock that backs off before it sleeps, and a parker: a word on a waiting
 * thread's own stack that others set. With WQ_SIM the functions are supplied
 * by the deterministic scheduler of tests/sim, so that the library's own code
 * runs there unchanged.
 *
 *   what          | where it sleeps      | who wakes it
 *   --------------+----------------------+---------------------------
 *   wq__lock      | in the parking lot   | the release that finds its place taken
 *   wq__parker    | on the parker's word | wq__parker_set, then _wake if it says so
 */
#ifndef WQ_BASE_SYNC_H
#define WQ_BASE_SYNC_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#if defined(__x86_64__) || defined(__i386__)
#define WQ__PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define WQ__PAUSE() __asm__ volatile("isb" ::: "memory")
#else
#define WQ__PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

/*
 * A thread that finds it held does not queue up: it stays away for a while
 * that is long compared with what the holder does (see sync.c). So two busy
 * threads take turns of many operations each, and the cache lines behind the
 * lock move once a turn instead of once an operation.
 *
 * Releasing is a plain store and a look at the lock's place in the parking lot,
 * with no locked instruction between them. That those two are not reordered is
 * seen to by the first thread that goes to sleep, which makes every CPU of the process
 * pass a barrier (membarrier) between taking the place and its last try. Sleeping
 * is rare and takes microseconds anyway.
 *
 * Acquiring is a plain store, too, as long as one thread alone has used the lock:
 * the first one that does owns it, and comes and goes by a word of its own. The
 * second one ends that for good, by the same barrier. So an event loop with a
 * queue of its own does not pay for threads that are elsewhere.
 *
 * Long work passes the lock now and then (wq__lock_pass). Without more, the
 * thread that passes it would take it again before anybody else had noticed. So
 * a passed lock is GIVEN: threads that wait may take it, and the one that gave
 * it may not before one of them has.
 *
 *   word  | meaning                      | who moves it on
 *   ------+------------------------------+--------------------------------------
 *   OWNED | the owner is in if `inside`  | the second thread, to HELD by itself
 *   HELD  |                              | the holder
 *   FREE  |                              | anybody
 *   GIVEN | free for those who wait      | any of them; there is at least one
 *
 *   owner | meaning
 *   ------+---------------------------------------------------------------------
 *   0     | nobody has used it yet
 *   even  | this thread owns it
 *   odd   | it is shared, for good; held by the thread (owner - 1), if not 1
 *
 * A thread that takes a lock that it holds is stopped (abort): it is a hook of a
 * queue that calls this queue, and would corrupt it or wait for itself.
 *
 * Sleepers stand in a parking lot and not in the lock, because a lock may be
 * freed as soon as it is free: whoever releases it must not touch it afterwards. The lock names
 * its place, so that two copies of the library in one process use the same one.
 */
enum wq__lock_word { WQ__FREE, WQ__HELD, WQ__OWNED, WQ__GIVEN };

/* NO_BARRIER: membarrier does not work here. Then releases carry a barrier, and nobody owns it. */
enum wq__lock_inside { WQ__OUT, WQ__IN, WQ__NO_BARRIER };

typedef struct wq__lock {
	_Atomic uint8_t word;    /* A: wq__lock_word */
	_Atomic uint8_t inside;  /* A: wq__lock_inside; written by the owner alone */
	_Atomic uint16_t came;   /* A: how many threads have had to wait for it, modulo 2^16 */
	_Atomic uint32_t went;   /* A: how many of those have got it; written by the holder */
	_Atomic uintptr_t owner; /* A */
	_Atomic uint64_t *place; /* I: in the parking lot */
} wq__lock;

enum wq__owner { WQ__NOBODY, WQ__SHARED };

/* What wq__lock_pass() tells wq__lock_retake(). */
typedef struct wq__passed {
	bool given;
	uint32_t went; /* given: as long as it is so many, nobody has taken it */
} wq__passed;

/*
 * 0 waiting, 1 set, 2 asleep in the kernel. The setter writes 1 while it holds
 * the lock that guards the list the parker stands in; the owner alone moves
 * 0 to 2. Once set, the owner may return and its stack be gone: the setter
 * must not read it again. Waking an address that is gone is harmless.
 */
typedef struct wq__parker {
	_Atomic uint32_t word; /* A */
	int slept_on;          /* the owner's: the CPU on which it went to sleep */
	int set_on;            /* the setter's until it is set: the CPU it ran on */
} wq__parker;

/* Others that want this CPU get it first. */
void wq__yield(void);

/* CPUs that this thread may run on, at least 1. */
int wq__cpus(void);

/*
 * Is polling of no use, because all threads that have asked run on one CPU? Asked for
 * whenever it matters: the thread that makes a queue may be bound to a CPU, and others not.
 */
bool wq__one_cpu(void);

/* How many pauses take about `ns` nanoseconds on this machine, at least 1. Measured once. */
uint32_t wq__pauses_for(int64_t ns);

/* CLOCK_MONOTONIC, and its cheap sibling that ticks every few milliseconds. */
int64_t wq__clock_now(void);
int64_t wq__clock_coarse(void);

/* A pointer of this thread's own, NULL at first. */
void **wq__self(void);

/*
 * A thread of the library's own: it blocks the signals that its creator does (base/signals.h),
 * carries a name (at most 15 bytes), and asks the kernel for exact timers while it sleeps.
 * stack_size 0: the system's default.
 */
typedef struct wq__thread {
	pthread_t id;
} wq__thread;

/* False: there is no such thread. */
bool wq__thread_start(wq__thread *t, void (*run)(void *arg), void *arg, const char *name,
                      size_t stack_size);
void wq__thread_join(wq__thread *t);
bool wq__thread_is_me(const wq__thread *t);

/* For a lock that several threads are going to use. */
void wq__lock_init(wq__lock *l);

/* For one that may well be used by one thread only: the first. */
void wq__lock_init_own(wq__lock *l);

static inline void wq__parker_init(wq__parker *p)
{
	atomic_init(&p->word, 0);
	p->slept_on = -1;
	p->set_on = -2;
}

/* Poll for up to `pauses` pauses. True: it was set. */
bool wq__parker_poll(wq__parker *p, uint32_t pauses);

/* Sleep until it is set, or until CLOCK_MONOTONIC reaches deadline_ns. True: it was set. */
bool wq__parker_sleep(wq__parker *p, int64_t deadline_ns);

/* Is it set? */
static inline bool wq__parker_is_set(wq__parker *p)
{
	return atomic_load_explicit(&p->word, memory_order_acquire) == 1;
}

/* It is set: on the CPU of its owner, which had to go to sleep first? */
static inline bool wq__parker_same_cpu(const wq__parker *p)
{
	return p->set_on == p->slept_on;
}

/* Set it. True: its owner sleeps, and wq__parker_wake() is due. */
bool wq__parker_set(wq__parker *p);
void wq__parker_wake(wq__parker *p);

#ifdef WQ_SIM

/* Another task may run here: between two steps on memory that several threads write. */
void wq__point(void);
/* What the call does has just happened, at this step. */
void wq__effect(void);
/* So often a poll looks, instead of so many pauses; between two looks others may run. */
uint32_t wq__poll_looks(uint32_t pauses);
/* Let go of it: nothing was done under it. */
void wq__lock_back_out(wq__lock *l);
#define wq__lock_end(l) ((void)(l))
#undef WQ__PAUSE
#define WQ__PAUSE() wq__point()
bool wq__lock_is_crowded(const wq__lock *l);
void wq__lock_acquire(wq__lock *l);
void wq__lock_release(wq__lock *l);
wq__passed wq__lock_pass(wq__lock *l);
void wq__lock_retake(wq__lock *l, wq__passed p);

#else

#define wq__point() ((void)0)
#define wq__effect() ((void)0)
#define wq__poll_looks(pauses) (pauses)
#define wq__lock_back_out(l) wq__lock_release(l)
/* Nobody uses it any more; what tools have seen of it goes. */
void wq__lock_end(wq__lock *l);
void wq__lock_slow(wq__lock *l);
void wq__lock_step_back(wq__lock *l);
void wq__lock_wake(_Atomic uint64_t *place);
_Noreturn void wq__lock_taken_by_its_holder(void);

/*
 * Where threads sleep that wait for a lock. A place outlives every lock, and several locks
 * may share one. It is a word; threads sleep on its lower half:
 *
 *   bit     | name          | meaning
 *   --------+---------------+------------------------------------------------------------
 *   0       | WQ__SLEEPERS  | threads may sleep here, and the next release wakes
 *   1       | WQ__BARRIER   | the first of them has made all CPUs pass a barrier, or is at it
 *   2       | WQ__WAKE_ALL  | they do not all wait for one lock that any of them may take
 *   3 .. 18 | WQ__WAKES     | counts wake-ups, so that nobody falls asleep who has missed one
 *   19 ..   | WQ__FOR       | the lock that they wait for, its address; 0: none
 *
 * A wake-up clears the flags and wakes one thread, which wakes the next when it
 * releases the lock in turn; or with WAKE_ALL all of them.
 */
enum { WQ__LOT_PLACES = 64 };

#define WQ__SLEEPERS UINT64_C(1)
#define WQ__BARRIER UINT64_C(2)
#define WQ__WAKE_ALL UINT64_C(4)
#define WQ__WAKE UINT64_C(8)
#define WQ__WAKES (UINT64_C(0xffff) * WQ__WAKE)
#define WQ__FOR (~UINT64_C(0) * (WQ__WAKE << 16))

extern struct wq__lot {
	_Alignas(64) _Atomic uint64_t place; /* A */
} wq__lot[WQ__LOT_PLACES] __attribute__((visibility("hidden")));

/* Pauses in the first back-off, 0 until a lock is made; tests set it. */
extern _Atomic uint16_t wq__lock_pauses __attribute__((visibility("hidden")));

/*
 * This thread, as a number: no other that lives has the same. It is the thread
 * pointer, which takes no variable of the thread's own: those are dear in a shared
 * library, or keep it from being loaded late.
 */
static inline uintptr_t wq__me(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	uintptr_t me;

	__asm__("mov %%fs:0, %0" : "=r"(me));
	return me;
#elif defined(__aarch64__)
	return (uintptr_t)__builtin_thread_pointer();
#else
	return (uintptr_t)pthread_self();
#endif
}

/* The owner comes in: true, or somebody else has put an end to that. */
static inline bool wq__lock_enter(wq__lock *l, uintptr_t me)
{
	/* acquire: a thread that ended may have left its number to this one */
	if (wq__unlikely(atomic_load_explicit(&l->inside, memory_order_acquire) != WQ__OUT))
		wq__lock_taken_by_its_holder();
	atomic_store_explicit(&l->inside, WQ__IN, memory_order_relaxed);
	/* The compiler keeps the order; for the CPU see end_ownership(). */
	atomic_signal_fence(memory_order_seq_cst);
	if (wq__likely(atomic_load_explicit(&l->owner, memory_order_relaxed) == me))
		return true;
	wq__lock_step_back(l);
	return false;
}

static inline void wq__lock_acquire(wq__lock *l)
{
	uint8_t free_word = WQ__FREE;
	uintptr_t me = wq__me();

	/* acquire: pairs with the release below */
	if (atomic_load_explicit(&l->owner, memory_order_relaxed) == me) {
		if (wq__likely(wq__lock_enter(l, me)))
			return;
	} else if (wq__likely(atomic_compare_exchange_strong_explicit(&l->word, &free_word,
	                                                              WQ__HELD,
	                                                              memory_order_acquire,
	                                                              memory_order_relaxed))) {
		atomic_store_explicit(&l->owner, me | WQ__SHARED, memory_order_relaxed);
		return;
	}
	wq__lock_slow(l);
}

/* Do threads have to wait for each other? Then no thread owns it any more, for good. */
static inline bool wq__lock_is_crowded(const wq__lock *l)
{
	enum { SEVERAL = 8 };

#ifdef WQ_LANED /* for tests: every lock is */
	return atomic_load_explicit(&l->word, memory_order_relaxed) != WQ__OWNED;
#else
	return atomic_load_explicit(&l->came, memory_order_relaxed) >= SEVERAL;
#endif
}

/* Does the thread that goes to sleep see to the order of what others do? */
static inline bool wq__lock_barrier(const wq__lock *l)
{
	return atomic_load_explicit(&l->inside, memory_order_relaxed) != WQ__NO_BARRIER;
}

/* Let go of it: `word` is what a lock that is not owned becomes. */
static inline void wq__lock_leave(wq__lock *l, uint8_t word)
{
	_Atomic uint64_t *place = l->place;

	/* release: pairs with the acquire of the next holder, who may free the lock */
	if (atomic_load_explicit(&l->word, memory_order_relaxed) == WQ__OWNED) {
		atomic_store_explicit(&l->inside, WQ__OUT, memory_order_release);
	} else {
		atomic_store_explicit(&l->owner, WQ__SHARED, memory_order_relaxed);
		if (wq__likely(wq__lock_barrier(l)))
			atomic_store_explicit(&l->word, word, memory_order_release);
		else
			atomic_exchange_explicit(&l->word, word, memory_order_seq_cst);
	}
	/* The compiler keeps the order; for the CPU see wait_for(). */
	atomic_signal_fence(memory_order_seq_cst);
	if (wq__unlikely(atomic_load_explicit(place, memory_order_seq_cst) & WQ__SLEEPERS))
		wq__lock_wake(place);
}

static inline void wq__lock_release(wq__lock *l)
{
	wq__lock_leave(l, WQ__FREE);
}

/*
 * Release it in the midst of long work, and take it again: a thread that waits for it
 * meanwhile has it in between. Between the two the caller may do what it likes, but
 * it has to come back.
 */
static inline wq__passed wq__lock_pass(wq__lock *l)
{
	wq__passed p = {.went = atomic_load_explicit(&l->went, memory_order_relaxed)};

	/* Somebody waits: see wait_counted(). */
	p.given = atomic_load_explicit(&l->word, memory_order_relaxed) == WQ__HELD &&
	          atomic_load_explicit(&l->came, memory_order_relaxed) != (uint16_t)p.went;
	wq__lock_leave(l, p.given ? WQ__GIVEN : WQ__FREE);
	return p;
}

void wq__lock_retake(wq__lock *l, wq__passed p);

#endif
#endif
