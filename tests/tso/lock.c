/*
 * The real lock and parker of src/base/sync on a machine with store buffers: all
 * runs of a few threads that take a lock, sleep, and free what it is in.
 *
 * What is looked at: no two threads are inside; each sees what the one before
 * wrote; nobody sleeps for ever; a lock that is freed by the last who held it is
 * not touched any more.
 */
#include "tso/redirect.h"

#include "base/sync.h"
#include "tso/program.h"

static struct {
	wq__lock lock;
	_Atomic uint32_t count, users;
} a;

/* Another lock with the same place in the parking lot. */
static struct {
	_Alignas(64) wq__lock first;
	char between[64 * WQ__LOT_PLACES - sizeof(wq__lock)];
	wq__lock second;
} two;

static wq__parker parker;
static int inside[2];
static int rounds, entered;

static void clear(void)
{
	for (int i = 0; i < WQ__LOT_PLACES; i++)
		atomic_init(&wq__lot[i].place, 0);
	memset(inside, 0, sizeof inside);
	entered = 0;
	rounds = 1;
	atomic_init(&a.count, 0);
	atomic_init(&a.users, 0);
	tso_name(&a.lock.word, "word");
	tso_name(&a.lock.owner, "owner");
	tso_name(&a.lock.inside, "inside");
	tso_name(&a.count, "count");
	tso_name(&a.users, "users");
	tso_name(a.lock.place, "place");
	tso_name(&parker.word, "parker");
}

static void enter(wq__lock *l, int which)
{
	wq__lock_acquire(l);
	if (inside[which]++)
		tso_fail("two threads hold the lock");
	entered++;
}

static void leave(wq__lock *l, int which)
{
	inside[which]--;
	wq__lock_release(l);
}

/* What the lock guards: read and written, and each must see the one before. */
static void count_one(void)
{
	uint32_t n = atomic_load_explicit(&a.count, memory_order_relaxed);

	if (n != (uint32_t)entered - 1)
		tso_fail("a thread inside has not seen what the one before wrote");
	atomic_store_explicit(&a.count, n + 1, memory_order_relaxed);
}

/* ---- scenarios ------------------------------------------------------------------- */

/*
 * The library asks once whether there are barriers, main() sees to it that there
 * are. Where there are none no lock is owned.
 */
static void init(wq__lock *l, bool own)
{
	if (own && tso_kernel != TSO_NO_BARRIERS)
		wq__lock_init_own(l);
	else
		wq__lock_init(l);
	atomic_init(&l->inside, tso_kernel == TSO_NO_BARRIERS ? WQ__NO_BARRIER : WQ__OUT);
}

static void setup_shared(void)
{
	init(&a.lock, false);
	clear();
}

static void setup_shared_twice(void)
{
	setup_shared();
	rounds = 2;
}

static void setup_own(void)
{
	init(&a.lock, true);
	clear();
}

static void setup_own_twice(void)
{
	setup_own();
	rounds = 2;
}

static void takes_turns(int me)
{
	(void)me;
	for (int i = 0; i < rounds; i++) {
		enter(&a.lock, 0);
		count_one();
		leave(&a.lock, 0);
	}
}

/* The first thread comes twice, the others once. */
static void owner_and_others(int me)
{
	for (int i = 0; i < (me == 0 ? 2 : 1); i++) {
		enter(&a.lock, 0);
		count_one();
		leave(&a.lock, 0);
	}
}

/* Long work, that passes the lock: if it is given, somebody has had it before it is taken again. */
static void works_long(void)
{
	enter(&a.lock, 0);
	count_one();
	inside[0]--;

	int before = entered;
	wq__passed passed = wq__lock_pass(&a.lock);

	wq__lock_retake(&a.lock, passed);
	if (inside[0]++)
		tso_fail("two threads hold the lock");
	if (passed.given && entered == before)
		tso_fail("a lock that was given to others was taken by the giver");
	entered++;
	count_one();
	leave(&a.lock, 0);
}

static void one_works_long(int me)
{
	if (me == 0)
		works_long();
	else
		takes_turns(me);
}

static void all_work_long(int me)
{
	(void)me;
	works_long();
}

/* The last of the users frees the lock once it has left it. */
static void frees(int me)
{
	uint32_t left;

	(void)me;
	enter(&a.lock, 0);
	left = atomic_load_explicit(&a.users, memory_order_relaxed) + 1;
	atomic_store_explicit(&a.users, left, memory_order_relaxed);
	leave(&a.lock, 0);
	if (left == 2)
		tso_free(&a, sizeof a);
}

static void setup_two(void)
{
	clear();
	init(&two.first, false);
	init(&two.second, false);
	if (two.first.place != two.second.place)
		tso_fail("the two locks have two places");
	tso_name(&two.first.word, "first word");
	tso_name(&two.second.word, "second word");
	tso_name(two.first.place, "place");
}

static void one_of_two(int me)
{
	wq__lock *l = me == 0 ? &two.first : &two.second;

	if (me == 2) {
		enter(&two.first, 0);
		leave(&two.first, 0);
	}
	enter(l, me != 0);
	leave(l, me != 0);
}

static bool set_parker;

static void setup_parker(void)
{
	setup_shared();
	wq__parker_init(&parker);
	set_parker = false;
}

static void parks(int me)
{
	if (me == 0) {
		if (!wq__parker_sleep(&parker, INT64_MAX))
			tso_fail("a sleep without an end has timed out");
		if (!set_parker)
			tso_fail("a parker woke that nobody has set");
		return;
	}
	wq__lock_acquire(&a.lock);
	set_parker = true;

	bool asleep = wq__parker_set(&parker);

	wq__lock_release(&a.lock);
	if (asleep)
		wq__parker_wake(&parker);
}

const struct tso_plan tso_plans[] = {
    {"shared", 2, setup_shared, takes_turns, NULL},
    {"free-shared", 2, setup_shared, frees, NULL},
    {"own", 2, setup_own, takes_turns, NULL},
    {"free-own", 2, setup_own, frees, NULL},
    {"parker", 2, setup_parker, parks, NULL},
    {"pass", 2, setup_shared, one_works_long, NULL},
    {"pass-own", 2, setup_own, one_works_long, NULL},
    {"pass-all", 2, setup_shared, all_work_long, NULL},
    {"shared-twice", 2, setup_shared_twice, takes_turns, NULL},
    {"own-and-other", 2, setup_own, owner_and_others, NULL},
    {"own-twice", 2, setup_own_twice, takes_turns, NULL},
    {"two-locks", 3, setup_two, one_of_two, NULL},
    {"shared-3", 3, setup_shared, takes_turns, NULL},
    {"own-3", 3, setup_own, takes_turns, NULL},
    {"own-and-others", 3, setup_own, owner_and_others, NULL},
    {"pass-3", 3, setup_shared, one_works_long, NULL},
};
const int tso_nplans = sizeof tso_plans / sizeof *tso_plans;

void tso_begin(void)
{
	wq__lock_init(&a.lock);
}
