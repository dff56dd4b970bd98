/*
 * What the tests share: a queue on a manual clock and a counting allocator,
 * threads that can be seen to sleep, and checks that print what was answered.
 *
 * No test sleeps. To have another thread blocked inside a call, a test starts
 * an actor and waits until the kernel says that it is asleep; a test that
 * hangs is ended by CTest's time limit.
 */
#ifndef WQ_TESTS_SUPPORT_H
#define WQ_TESTS_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* barriers, gettid, pipe2; so this header comes first */
#endif

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <wq.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- checks -------------------------------------------------------------- */

void support_is(int64_t actual, int64_t expected, const char *what, const char *file, int line);

/* The call answers this status or number. */
#define IS(call, expected) support_is((call), (expected), #call, __FILE__, __LINE__)

/* The next key, without waiting, is this one; it is held in *item. */
void get_is(wq_queue *q, wq_item *item, const char *key);
/* The same, and it is done: WQ_OK or WQ_QUEUED. */
void take_is(wq_queue *q, const char *key, int done);

/* The ready keys are these single letters, in this order; each is got and done. */
void line_is(wq_queue *q, const char *letters);

int state_of(wq_queue *q, const char *key);

/* The mask is that of a thread with block_signals: it blocks all signals but those of faults. */
void mask_is_the_library_s(const sigset_t *mask);
void masks_are_equal(const sigset_t *a, const sigset_t *b);

/* How many keys a walk shows. */
int64_t count_keys(wq_queue *q);

/*
 * [WHOLE] The queue has `queued` keys in line and `running` ones held, a walk
 * shows just these, and it still works: a new key goes through add, get and
 * done (not if it is shut down). What was in line stands there afterwards as
 * before.
 */
void check_whole(wq_queue *q, int64_t queued, int64_t running);

/* ---- adds ---------------------------------------------------------------- */

int after(wq_queue *q, const char *key, int64_t after_ns, enum wq_policy policy);
int remind(wq_queue *q, const char *key, int64_t after_ns);

/* ---- memory -------------------------------------------------------------- */

/*
 * An allocator that counts, fills what it gives with rubbish, and fails on
 * demand: allocation number fail_at (from 0) and, if fail_on, all later ones.
 */
struct memory {
	_Atomic int64_t live;  /* allocations that are not yet freed */
	_Atomic int64_t bytes; /* their sizes */
	_Atomic int64_t peak;  /* the most bytes there were */
	_Atomic int64_t calls; /* allocations asked for */
	_Atomic int64_t failed;
	_Atomic int misuse; /* a size of 0, or an alignment that is not allowed */
	int64_t fail_at;    /* < 0: never */
	bool fail_on;
	size_t largest; /* larger pieces are refused; 0: none is */
};

void memory_init(struct memory *m);
wq_allocator memory_allocator(struct memory *m);
/* Everything was given back, each piece with the size it was asked for. */
void memory_balanced(struct memory *m);

/*
 * Calls run() with n from 0 up, for the n-th allocation to fail, until it says
 * that there was no n-th; then once more with all later ones failing as well.
 * At least so many fail.
 */
void memory_fail_each(bool (*run)(int64_t n, bool and_later), int64_t least);

/* ---- a queue to test ------------------------------------------------------ */

struct fixture {
	wq_queue *q;
	wq_manual_clock *mc;
	struct memory mem;
};

/* The time at which a fixture's clock starts: not 0, so that ages are not times. */
#define START_NS (1000 * WQ_SECOND)

/* With these options, or NULL; clock and allocator are the fixture's. */
void fixture_open(struct fixture *f, const wq_options *options);
/* Frees the queue, which has `queued` keys in line still. */
void fixture_close(struct fixture *f, int queued);

/* As cmocka's setup and teardown; *state is a struct fixture. Keys may be left in line. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* ---- a clock of one's own --------------------------------------------------- */

struct own_clock {
	_Atomic int64_t now_ns;
	int ons, offs; /* calls of its watch */
	int answer;    /* of its watch */
};

wq_clock own_clock(struct own_clock *own, bool watched);

/* ---- threads -------------------------------------------------------------- */

typedef int64_t (*actor_fn)(void *arg);

struct actor {
	actor_fn fn;
	void *arg;
	int64_t result;
	_Atomic int tid;
	_Atomic bool finished;
	pthread_t thread;
};

void actor_start(struct actor *a, actor_fn fn, void *arg);
/* Waits until the thread sleeps in the kernel: it is blocked in the call that its fn makes. */
void actor_blocks(struct actor *a);
bool actor_finished(struct actor *a);
/* What its fn returned. */
int64_t actor_join(struct actor *a);

/* A thread that waits in one Get. */
struct getter {
	struct actor actor;
	wq_queue *q;
	wq_item item;
	int64_t deadline_ns;
};

void getter_start(struct getter *g, wq_queue *q, int64_t deadline_ns);
/* The same, and it is blocked. */
void getter_block(struct getter *g, wq_queue *q, int64_t deadline_ns);
int getter_join(struct getter *g);

/* A thread that waits in one drain without listing. */
struct drainer {
	struct actor actor;
	wq_queue *q;
	wq_report report;
	int64_t deadline_ns;
};

void drainer_start(struct drainer *d, wq_queue *q, int64_t deadline_ns);
void drainer_block(struct drainer *d, wq_queue *q, int64_t deadline_ns);
int drainer_join(struct drainer *d);

/* ---- chance --------------------------------------------------------------- */

/* The seed of --seed N, or a new one; printed either way. */
uint64_t seed_from(int argc, char **argv);
uint64_t rng_next(uint64_t *rng);
/* Less than n. */
uint64_t rng_below(uint64_t *rng, uint64_t n);

#endif
