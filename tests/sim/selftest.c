/*
 * Can the scheduler find anything at all? A mailbox of thirty lines on the
 * same locks and parkers, right and broken in six ways; and tasks that
 * deadlock, loop and crash. A wrong scheduler would let all the other tests
 * of this folder pass.
 */
#include <stdio.h>
#include <string.h>

#include "base/sync.h"
#include "sched.h"

enum bug {
	NONE,
	NO_WAKE,          /* put does not wake anybody */
	SET_ONLY,         /* put sets the parker and forgets to wake the sleeper */
	NO_LOOP,          /* take believes that whoever was woken has a letter */
	MARK_LATE,        /* put marks the waiter after it let go of the lock */
	TIMEOUT_EATS,     /* a take that times out does not look whether it was woken */
	CHECK_THEN_SLEEP, /* take looks, lets go of the lock, and only then gets in line */
};

struct waiter {
	struct waiter *next;
	wq__parker parker;
};

static struct {
	wq__lock lock;
	int letters;
	struct waiter *waiters;
} box;

static enum bug bug;
static int taken, timeouts;

static void unlink_waiter(struct waiter *w)
{
	struct waiter **at = &box.waiters;

	while (*at && *at != w)
		at = &(*at)->next;
	SIM_CHECK(*at == w);
	*at = w->next;
}

static void put(void)
{
	wq__lock_acquire(&box.lock);
	box.letters++;

	struct waiter *w = bug == NO_WAKE ? NULL : box.waiters;
	bool asleep = false;

	if (w) {
		box.waiters = w->next;
		if (bug != MARK_LATE)
			asleep = wq__parker_set(&w->parker);
	}
	wq__lock_release(&box.lock);
	if (w && bug == MARK_LATE)
		asleep = wq__parker_set(&w->parker);
	if (asleep && bug != SET_ONLY)
		wq__parker_wake(&w->parker);
}

static bool take(int64_t deadline_ns)
{
	struct waiter me;
	bool was_set;

	wq__lock_acquire(&box.lock);
	while (box.letters == 0) {
		if (bug == CHECK_THEN_SLEEP) {
			wq__lock_release(&box.lock);
			wq__lock_acquire(&box.lock);
		}
		wq__parker_init(&me.parker);
		me.next = box.waiters;
		box.waiters = &me;
		wq__lock_release(&box.lock);
		was_set = wq__parker_sleep(&me.parker, deadline_ns);
		wq__lock_acquire(&box.lock);
		if (!was_set && (bug == TIMEOUT_EATS || !wq__parker_is_set(&me.parker))) {
			if (bug != TIMEOUT_EATS || !wq__parker_is_set(&me.parker))
				unlink_waiter(&me);
			wq__lock_release(&box.lock);
			return false;
		}
		if (bug == NO_LOOP)
			break;
	}
	SIM_CHECK(box.letters > 0);
	box.letters--;
	taken++;
	wq__lock_release(&box.lock);
	return true;
}

static void putter(void *arg)
{
	put();
	if (arg)
		put();
}

static void taker(void *arg)
{
	(void)arg;
	take(INT64_MAX);
}

/* Gives its letter back, so that the others get theirs whatever happens here. */
static void timed_taker(void *arg)
{
	(void)arg;
	if (take(sim_now() + 50))
		put();
	else
		timeouts++;
}

static void mailbox(void)
{
	memset(&box, 0, sizeof box);
	wq__lock_init(&box.lock);
	taken = timeouts = 0;
	sim_spawn("putter", putter, NULL);
	sim_spawn("putter", putter, &box);
	sim_spawn("taker", taker, NULL);
	sim_spawn("taker", taker, NULL);
	sim_spawn("taker", taker, NULL);
	sim_spawn("timed", timed_taker, NULL);
}

static void mailbox_finish(void)
{
	SIM_CHECK(taken + timeouts == 4);
	SIM_CHECK(box.letters == 0);
	SIM_CHECK(!box.waiters);
}

/* ---- tasks that misbehave -------------------------------------------------- */

static wq__lock one, two;

static void one_two(void *arg)
{
	wq__lock *first = arg ? &one : &two, *second = arg ? &two : &one;

	wq__lock_acquire(first);
	wq__lock_acquire(second);
	wq__lock_release(second);
	wq__lock_release(first);
}

static void crossed(void)
{
	wq__lock_init(&one);
	wq__lock_init(&two);
	sim_spawn("a", one_two, &one);
	sim_spawn("b", one_two, NULL);
}

static void yield_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		sim_yield();
}

static void livelock(void)
{
	sim_spawn("a", yield_for_ever, NULL);
}

static void spin(void *arg)
{
	volatile int *stop = arg;

	while (!*stop)
		;
}

static void loop(void)
{
	static int stop;

	sim_spawn("a", spin, &stop);
}

static void write_to(void *arg)
{
	*(volatile char *)arg = 1;
}

static void crash(void)
{
	sim_spawn("a", write_to, (void *)8);
}

/* ---- threads --------------------------------------------------------------- */

static wq__thread thread;
static int thread_steps;

static void thread_run(void *arg)
{
	SIM_CHECK(wq__thread_is_me(&thread));
	for (int i = 0; i < 5; i++) {
		sim_yield();
		thread_steps++;
	}
	if (arg)
		wq__thread_join(&thread);
}

static void thread_owner(void *arg)
{
	thread_steps = 0;
	SIM_CHECK(wq__thread_start(&thread, thread_run, arg, "thread", 0));
	SIM_CHECK(!wq__thread_is_me(&thread));
	wq__thread_join(&thread);
	SIM_CHECK(thread_steps == 5);
}

static void threads(void)
{
	sim_spawn("owner", thread_owner, NULL);
}

static void threads_join_themselves(void)
{
	sim_spawn("owner", thread_owner, &thread);
}

/* ---- main ------------------------------------------------------------------ */

static int failures;

static void expect(const char *name, const struct sim_plan *plan, uint64_t seeds, const char *what)
{
	struct sim_result r = {0};
	uint64_t seed = 0;

	while (seed < seeds && sim_run(plan, seed, &r))
		seed++;

	bool ok = what ? r.failed && strstr(r.what, what) : !r.failed;

	if (!ok)
		failures++;
	printf("%-6s %-18s %s", ok ? "ok" : "FAILED", name, r.failed ? "" : "clean");
	if (r.failed)
		printf("seed %llu (%s): %s", (unsigned long long)seed,
		       sim_strategy_name(r.strategy), r.what);
	putchar('\n');
}

/* One seed, one interleaving: the same steps, sections and end each time. */
static void expect_repeatable(void)
{
	const struct sim_plan plan = {.setup = mailbox, .finish = mailbox_finish};
	int distinct = 0;
	uint32_t before = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		struct sim_result a, b;
		int64_t end;

		sim_run(&plan, seed, &a);
		end = sim_now();
		sim_run(&plan, seed, &b);
		if (a.steps != b.steps || end != sim_now())
			failures++;
		distinct += a.steps != before;
		before = a.steps;
	}
	if (distinct < 100)
		failures++;
	printf("%-6s %-18s %d of 200 runs differ in length from the one before\n",
	       failures ? "FAILED" : "ok", "repeatable", distinct);
}

int main(void)
{
	const struct sim_plan box_plan = {.setup = mailbox, .finish = mailbox_finish};

	expect_repeatable();
	expect("right", &box_plan, 20000, NULL);
	bug = NO_WAKE;
	expect("no wake", &box_plan, 1000, "deadlock");
	bug = SET_ONLY;
	expect("set only", &box_plan, 1000, "deadlock");
	bug = NO_LOOP;
	expect("no loop", &box_plan, 1000, "letters");
	bug = MARK_LATE;
	expect("mark late", &box_plan, 1000, "without holding the lock");
	sim_strict = false; /* and by what it leads to */
	expect("mark late, effect", &box_plan, 20000, "");
	sim_strict = true;
	bug = TIMEOUT_EATS;
	expect("time-out eats", &box_plan, 20000, "deadlock");
	bug = CHECK_THEN_SLEEP;
	expect("check then sleep", &box_plan, 20000, "deadlock");
	bug = NONE;
	expect("crossed locks", &(struct sim_plan){.setup = crossed}, 1000, "deadlock");
	expect("livelock", &(struct sim_plan){.setup = livelock}, 1, "livelock");
	expect("endless loop", &(struct sim_plan){.setup = loop}, 1, "endless loop");
	expect("crash", &(struct sim_plan){.setup = crash}, 1, "crash");
	expect("threads", &(struct sim_plan){.setup = threads}, 1000, NULL);
	expect("self-join", &(struct sim_plan){.setup = threads_join_themselves}, 1, "itself");
	return failures != 0;
}
