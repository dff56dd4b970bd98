/*
 * The scheduler of sched.h and the functions of base/sync.h on top of it.
 *
 *   state  | what ends it
 *   -------+------------------------------------------------------------------
 *   READY  | being chosen
 *   LOCK   | the release of that lock: then READY, and it tries again
 *   SLEEP  | wq__parker_wake() of that parker, its time, rarely nothing at all
 *   COND   | its condition
 *   DONE   | –
 *
 * A sleeper wakes through wq__parker_wake(), not through wq__parker_set():
 * a library that sets and forgets to wake is found out. As in a kernel, there
 * is a gap between the moment a sleeper announces itself and the moment it
 * sleeps, and between the moment its time has come and the moment it runs.
 */
#define _GNU_SOURCE
#include "sched.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "base/bug.h"
#include "base/sync.h"
#include "strategy.h"
#include "switch.h"

enum {
	STACK_SIZE = 128 * 1024,
	GUARD_SIZE = 4096,
	MAX_SECTIONS = 64,
	MAIN = -1,
};

enum state { READY, LOCK, SLEEP, COND, DONE };

struct task {
	sim_context context;
	char *stack; /* the lowest usable byte */
	char name[16];
	void (*fn)(void *arg);
	void *arg;
	bool (*cond)(void *arg);
	void *cond_arg;
	const void *on; /* the lock or parker it waits for */
	int64_t deadline_ns;
	enum state state;
	int depth; /* locks held */
	bool woken;
	bool getting;
	void *self;                   /* for wq__self() */
	uint32_t first, second, last; /* sections of the present call */
	uint32_t open;                /* the latest, if nothing has happened in it yet */
	struct section {
		uint32_t number;
		bool effect;
	} call[MAX_SECTIONS]; /* all of them */
	int nsections;
	int64_t last_ns; /* when that began */
};

bool sim_lanes;
bool sim_tracing;
bool sim_strict = true;
int wq__bug;
size_t wq__hold_limit;
const struct wq__call *wq__lost_call;

static struct task tasks[SIM_MAX_TASKS];
static char *stacks;
static int ntasks;
static int cur = MAIN;
static int quiet;
static int main_depth;
static sim_context main_context;
static jmp_buf main_jump;
static struct sim_result *result;
static const struct sim_plan *now_running;

static int64_t now_ns;
static int cpus;
static uint32_t sections;
static int locks_held;

/* The watchdog compares these two: no progress between two ticks is a loop. */
static volatile uint64_t progress;
static uint64_t progress_seen;

/* ---- telling --------------------------------------------------------------- */

const char *sim_self_name(void)
{
	return cur == MAIN ? "main" : tasks[cur].name;
}

void sim_trace(const char *fmt, ...)
{
	va_list ap;

	if (!sim_tracing || quiet)
		return;
	printf("%5u %8lld ns  %-12s %*s", result ? result->steps : 0, (long long)now_ns,
	       sim_self_name(), main_depth + (cur == MAIN ? 0 : 2 * tasks[cur].depth), "");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Leave the run. From a task: to the scheduler, which will not come back to it. */
static _Noreturn void leave(void)
{
	if (cur == MAIN)
		_longjmp(main_jump, 1);
	sim_context_switch(&tasks[cur].context, &main_context);
	abort();
}

_Noreturn void sim_fail(const char *fmt, ...)
{
	va_list ap;

	if (!result) {
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
		abort();
	}
	va_start(ap, fmt);
	vsnprintf(result->what, sizeof result->what, fmt, ap);
	va_end(ap);
	result->failed = true;
	quiet = 0;
	sim_trace("FAILED: %s", result->what);
	leave();
}

/* The library's assertions end up here instead of in the C library. */
void __assert_fail(const char *expr, const char *file, unsigned line, const char *function)
{
	sim_fail("assertion %s (%s:%u, %s)", expr, file, line, function);
}

static void on_crash(int sig)
{
	sim_fail("crash: %s in task %s", strsignal(sig), sim_self_name());
}

static void on_tick(int sig)
{
	(void)sig;
	if (!result || result->failed)
		return;
	if (progress == progress_seen)
		sim_fail("endless loop in task %s", sim_self_name());
	progress_seen = progress;
}

static void catch_signals(void)
{
	static char alternative[64 * 1024];
	stack_t ss = {.ss_sp = alternative, .ss_size = sizeof alternative};
	struct sigaction sa = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
	struct itimerval every = {{0, 200000}, {0, 200000}};

	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
	sa.sa_handler = on_tick;
	sa.sa_flags = SA_NODEFER | SA_RESTART;
	sigaction(SIGVTALRM, &sa, NULL);
	setitimer(ITIMER_VIRTUAL, &every, NULL);
}

/* ---- choosing -------------------------------------------------------------- */

static bool runnable(const struct task *t)
{
	switch (t->state) {
	case READY:
		return true;
	case SLEEP:
		return t->woken || t->deadline_ns <= now_ns;
	case COND:
		return t->deadline_ns <= now_ns && (!t->cond || t->cond(t->cond_arg));
	case LOCK:
	case DONE:
		break;
	}
	return false;
}

/* Who waits for what, for the message of a deadlock. */
static void describe(char *buf, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < ntasks && n < size; i++) {
		const char *how = tasks[i].state == LOCK    ? "waits for a lock"
		                  : tasks[i].state == SLEEP ? "sleeps"
		                  : tasks[i].state == COND  ? "waits for the others"
		                                            : NULL;

		if (how)
			n += (size_t)snprintf(buf + n, size - n, "%s%s %s", n ? ", " : "",
			                      tasks[i].name, how);
	}
}

/* Nobody can go on: look at what they sleep beside, then move time to the first time-out. */
static bool jump(void)
{
	int64_t next = INT64_MAX;
	bool alive = false;

	for (int i = 0; i < ntasks; i++) {
		if (tasks[i].state == DONE)
			continue;
		alive = true;
		if ((tasks[i].state == SLEEP || tasks[i].state == COND) &&
		    tasks[i].deadline_ns > now_ns && tasks[i].deadline_ns < next)
			next = tasks[i].deadline_ns;
	}
	if (!alive)
		return false;
	if (now_running->quiet) {
		quiet++;
		now_running->quiet();
		quiet--;
	}
	for (int i = 0; i < ntasks; i++) {
		if (runnable(&tasks[i]))
			return true; /* what it looked at has changed a condition */
	}
	if (next == INT64_MAX) {
		char who[200];

		describe(who, sizeof who);
		sim_fail("deadlock: %s", who);
	}
	now_ns = next;
	sim_trace("time jumps");
	return true;
}

static void schedule(void)
{
	int last = MAIN;

	for (;;) {
		int ready[SIM_MAX_TASKS];
		int n = 0;

		progress++;
		now_ns += strategy_pass_time();
		if (strategy_wakes_falsely()) {
			struct task *t = &tasks[sim_random((uint32_t)ntasks)];

			if (t->state == SLEEP)
				t->woken = true;
		}
		for (int i = 0; i < ntasks; i++) {
			if (runnable(&tasks[i]))
				ready[n++] = i;
		}
		if (n == 0) {
			if (!jump())
				return;
			continue;
		}
		if (++result->steps > SIM_MAX_STEPS)
			sim_fail("livelock: not finished after %d steps", SIM_MAX_STEPS);
		last = strategy_choose(ready, n, last, result->steps);
		cur = last;
		sim_context_switch(&main_context, &tasks[cur].context);
		cur = MAIN;
		if (result->failed)
			return;
	}
}

/* ---- tasks ----------------------------------------------------------------- */

static void point(void)
{
	if (cur == MAIN || quiet || (sim_guide && tasks[cur].depth > 0 && !sim_lanes))
		return;
	sim_context_switch(&tasks[cur].context, &main_context);
}

static void entry(void)
{
	struct task *t = &tasks[cur];

	t->fn(t->arg);
	if (t->depth)
		sim_fail("task %s returned and holds a lock", t->name);
	sim_trace("returns");
	t->state = DONE;
	for (;;)
		point();
}

void sim_spawn(const char *name, void (*fn)(void *arg), void *arg)
{
	if (ntasks == SIM_MAX_TASKS)
		sim_fail("too many tasks");

	struct task *t = &tasks[ntasks];

	*t =
	    (struct task){.stack = stacks + (size_t)ntasks * (STACK_SIZE + GUARD_SIZE) + GUARD_SIZE,
	                  .fn = fn,
	                  .arg = arg,
	                  .deadline_ns = INT64_MAX};
	strategy_spawned(ntasks);
	strncpy(t->name, name, sizeof t->name - 1);
	sim_context_init(&t->context, t->stack, STACK_SIZE, entry);
	ntasks++;
}

void sim_yield(void)
{
	point();
}

static void wait_until(bool (*cond)(void *arg), void *arg, int64_t deadline_ns)
{
	struct task *t = &tasks[cur];

	if (cur == MAIN)
		sim_fail("main waits");
	if (t->depth)
		sim_fail("task %s waits for the others and holds a lock", t->name);
	t->cond = cond;
	t->cond_arg = arg;
	t->deadline_ns = deadline_ns;
	t->state = COND;
	point();
	t->state = READY;
	t->cond = NULL;
}

void sim_until(bool (*cond)(void *arg), void *arg)
{
	sim_trace("waits for the others");
	wait_until(cond, arg, INT64_MIN);
}

void sim_pass(int64_t ns)
{
	wait_until(NULL, NULL, now_ns + ns);
}

int sim_self(void)
{
	return cur;
}

int sim_tasks(void)
{
	return ntasks;
}

int64_t sim_now(void)
{
	return now_ns;
}

void sim_advance(int64_t ns)
{
	now_ns += ns;
}

void sim_set_cpus(int n)
{
	cpus = n;
}

void sim_quiet_begin(void)
{
	quiet++;
}

void sim_quiet_end(void)
{
	quiet--;
}

bool sim_locked(void)
{
	return locks_held > 0;
}

void sim_call_begin(void)
{
	if (cur != MAIN) {
		tasks[cur].first = tasks[cur].second = tasks[cur].last = tasks[cur].open = 0;
		tasks[cur].nsections = 0;
	}
}

uint32_t sim_effect(int i)
{
	const struct task *t = cur == MAIN ? NULL : &tasks[cur];

	for (int j = 0; t && j < t->nsections; j++) {
		if (t->call[j].effect && i-- == 0)
			return t->call[j].number;
	}
	return 0;
}

uint32_t sim_call_whole(void)
{
	for (int i = 0; cur != MAIN && i < tasks[cur].nsections; i++) {
		if (!tasks[cur].call[i].effect)
			return tasks[cur].call[i].number;
	}
	return 0;
}

uint32_t sim_call_first(void)
{
	return cur == MAIN ? 0 : tasks[cur].first;
}

uint32_t sim_call_second(void)
{
	return cur == MAIN ? 0 : tasks[cur].second;
}

uint32_t sim_section_of(int task, int n)
{
	return n == 1 ? tasks[task].first : tasks[task].second;
}

uint32_t sim_call_last(void)
{
	return cur == MAIN ? 0 : tasks[cur].last;
}

int64_t sim_call_last_ns(void)
{
	return cur == MAIN ? now_ns : tasks[cur].last_ns;
}

uint32_t sim_section(void)
{
	return sections;
}

void sim_getting(bool on)
{
	if (cur != MAIN)
		tasks[cur].getting = on;
}

static bool is_set(const wq__parker *p)
{
	return atomic_load_explicit(&p->word, memory_order_relaxed) == 1;
}

bool sim_sleeping(int task)
{
	return tasks[task].state == SLEEP && !is_set(tasks[task].on);
}

bool sim_dozing(int task)
{
	return tasks[task].state == SLEEP;
}

int64_t sim_sleeps_until(int task)
{
	return tasks[task].deadline_ns;
}

void sim_sleepers(int *asleep, int *under_way)
{
	*asleep = *under_way = 0;
	for (int i = 0; i < ntasks; i++) {
		if (!tasks[i].getting || tasks[i].state == DONE)
			continue;
		if (sim_sleeping(i))
			++*asleep;
		else
			++*under_way;
	}
}

bool sim_run(const struct sim_plan *plan, uint64_t seed, struct sim_result *r)
{
	if (!stacks) {
		size_t each = STACK_SIZE + GUARD_SIZE;

		stacks = mmap(NULL, SIM_MAX_TASKS * each, PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stacks == MAP_FAILED)
			abort();
		for (size_t i = 0; i < SIM_MAX_TASKS; i++)
			mprotect(stacks + i * each, GUARD_SIZE, PROT_NONE);
		catch_signals();
	}
	*r = (struct sim_result){0};
	result = r;
	now_running = plan;
	ntasks = 0;
	quiet = 0;
	cur = MAIN;
	main_depth = 0;
	now_ns = 1000000;
	cpus = 2;
	sections = 0;
	locks_held = 0;
	r->strategy = strategy_plan(seed);
	if (_setjmp(main_jump) == 0) {
		plan->setup();
		schedule();
		if (!r->failed && plan->finish)
			plan->finish();
	}
	cur = MAIN;
	result = NULL;
	return !r->failed;
}

/* ---- base/sync.h ----------------------------------------------------------- */

/* The word of a lock: 0, or 1 + the number of its holder; main is SIM_MAX_TASKS. */
static uint8_t holder_word(void)
{
	return (uint8_t)(1 + (cur == MAIN ? SIM_MAX_TASKS : cur));
}

static int *depth(void)
{
	return cur == MAIN ? &main_depth : &tasks[cur].depth;
}

void wq__yield(void)
{
}

int wq__cpus(void)
{
	return cpus;
}

bool wq__one_cpu(void)
{
	return cpus == 1;
}

uint32_t wq__pauses_for(int64_t ns)
{
	int64_t n = ns / 100;

	return n < 1 ? 1 : n > 1000000 ? 1000000 : (uint32_t)n;
}

int64_t wq__clock_now(void)
{
	return now_ns;
}

int64_t wq__clock_coarse(void)
{
	return now_ns - now_ns % 4096;
}

void wq__lock_init(wq__lock *l)
{
	atomic_init(&l->word, 0);
}

void wq__lock_init_own(wq__lock *l)
{
	wq__lock_init(l);
}

bool wq__lock_is_crowded(const wq__lock *l)
{
	(void)l;
	/* By chance: how many have waited is a count that wraps. */
	return sim_lanes && (sim_guide || sim_chance(2));
}

void wq__point(void)
{
	point();
}

/* A section begins; if nothing has happened in the one before yet, it takes its place. */
static void section_begins(bool effect)
{
	struct task *t;

	if (quiet)
		return;
	sections++;
	if (cur == MAIN)
		return;
	t = &tasks[cur];
	if (t->open)
		t->nsections--;
	if (t->nsections < MAX_SECTIONS)
		t->call[t->nsections++] = (struct section){sections, effect};
	t->last = sections;
	t->last_ns = now_ns;
	t->first = t->call[0].number;
	t->second = t->nsections > 1 ? t->call[1].number : 0;
	t->open = effect ? 0 : sections;
	sim_trace("%s (section %u)", effect ? "effect" : "lock", sections);
}

static struct task *must_wait(const char *how)
{
	if (cur == MAIN || quiet)
		sim_fail("%s while nobody else can run", how);
	if (tasks[cur].depth)
		sim_fail("task %s %s and holds a lock", tasks[cur].name, how);
	return &tasks[cur];
}

void wq__lock_acquire(wq__lock *l)
{
	/* Guided, the release before it was a point, and nothing that others see lies between. */
	if (!sim_guide || (sim_lanes && *depth() > 0))
		point();
	while (atomic_load_explicit(&l->word, memory_order_relaxed) != 0) {
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == holder_word())
			sim_fail("task %s takes a lock that it holds", sim_self_name());
		if (cur == MAIN || quiet)
			sim_fail("a lock is held while nobody runs, or is garbage");
		tasks[cur].on = l;
		tasks[cur].state = LOCK;
		sim_trace("waits for the lock");
		point();
	}
	atomic_store_explicit(&l->word, holder_word(), memory_order_relaxed);
	locks_held++;
	if ((*depth())++ == 0 || sim_lanes)
		section_begins(false);
}

/* Nothing happened in it, and it does not count. */
void wq__lock_back_out(wq__lock *l)
{
	struct task *t = cur == MAIN ? NULL : &tasks[cur];

	if (t && !quiet && t->open) {
		t->nsections--;
		t->last = t->nsections > 0 ? t->call[t->nsections - 1].number : 0;
		t->first = t->nsections > 0 ? t->call[0].number : 0;
		t->second = t->nsections > 1 ? t->call[1].number : 0;
		t->open = 0;
	}
	wq__lock_release(l);
}

void wq__effect(void)
{
	section_begins(true);
}

uint32_t wq__poll_looks(uint32_t pauses)
{
	must_wait("polls");
	if (strategy_time_runs())
		now_ns += pauses / 4;
	return sim_random(4);
}

void wq__lock_release(wq__lock *l)
{
	if (atomic_load_explicit(&l->word, memory_order_relaxed) != holder_word())
		sim_fail("task %s releases a lock that it does not hold", sim_self_name());
	atomic_store_explicit(&l->word, 0, memory_order_relaxed);
	locks_held--;
	if (--*depth() == 0 && cur != MAIN && !quiet)
		tasks[cur].open = 0;
	sim_trace("unlock");
	for (int i = 0; i < ntasks; i++) {
		if (tasks[i].state == LOCK && tasks[i].on == l)
			tasks[i].state = READY;
	}
	point();
}

/* Whoever waits may go first, in every order: that is what schedules are for. */
wq__passed wq__lock_pass(wq__lock *l)
{
	wq__lock_release(l);
	return (wq__passed){.given = false};
}

void wq__lock_retake(wq__lock *l, wq__passed p)
{
	(void)p;
	wq__lock_acquire(l);
}

bool wq__parker_poll(wq__parker *p, uint32_t pauses)
{
	uint32_t looks = sim_random(4);

	must_wait("polls");
	sim_trace("polls, at most %u times", looks);
	for (uint32_t i = 0; i < looks && !is_set(p); i++) {
		if (strategy_time_runs())
			now_ns += pauses / 4;
		point();
	}
	return is_set(p);
}

bool wq__parker_sleep(wq__parker *p, int64_t deadline_ns)
{
	struct task *t = must_wait("sleeps");

	point();
	if (is_set(p))
		return true;
	atomic_store_explicit(&p->word, 2, memory_order_relaxed);
	if (sim_chance(4)) {
		point(); /* announced, but not asleep yet */
		if (is_set(p))
			return true;
	}
	sim_trace("sleeps");
	if (now_running->sleeps) {
		t->on = p;
		t->state = SLEEP;
		t->woken = false;
		quiet++;
		now_running->sleeps();
		quiet--;
	}
	do {
		t->on = p;
		t->woken = false;
		t->deadline_ns = deadline_ns;
		t->state = SLEEP;
		point();
		t->state = READY;
	} while (!is_set(p) && deadline_ns > now_ns);
	sim_trace(is_set(p) ? "woken" : "time-out");
	return is_set(p);
}

/* Setting a parker that lies on a stack frame which is gone would be found out much later. */
static void check_alive(const wq__parker *p)
{
	for (int i = 0; i < ntasks; i++) {
		const struct task *t = &tasks[i];
		const char *at = (const char *)p;

		if (at < t->stack || at >= t->stack + STACK_SIZE)
			continue;
		if (t->state == DONE)
			sim_fail("%s sets the parker of %s, which has returned", sim_self_name(),
			         t->name);
#ifndef SIM_USES_UCONTEXT
		if (i != cur && at < (const char *)t->context.sp)
			sim_fail("%s sets a parker of %s that is gone", sim_self_name(), t->name);
#endif
	}
}

bool wq__parker_set(wq__parker *p)
{
	if (sim_strict && !quiet && *depth() == 0)
		sim_fail("%s sets a parker without holding the lock", sim_self_name());
	if (cur != MAIN && sim_chance(8))
		point(); /* with the lock held: lets others queue up for it */
	check_alive(p);
	sim_trace("sets a waiter");
	return atomic_exchange_explicit(&p->word, 1, memory_order_relaxed) == 2;
}

void wq__parker_wake(wq__parker *p)
{
	point();
	for (int i = 0; i < ntasks; i++) {
		if (tasks[i].state == SLEEP && tasks[i].on == p) {
			sim_trace("wakes %s", tasks[i].name);
			tasks[i].woken = true;
			break;
		}
	}
	point();
}

/* A thread is a task; its id is the task's number. */
void **wq__self(void)
{
	static void *of_main;

	return cur == MAIN ? &of_main : &tasks[cur].self;
}

bool wq__thread_start(wq__thread *t, void (*run)(void *arg), void *arg, const char *name,
                      size_t stack_size)
{
	(void)stack_size;
	t->id = (pthread_t)ntasks;
	sim_spawn(name, run, arg);
	point();
	return true;
}

static bool has_returned(void *arg)
{
	return tasks[((const wq__thread *)arg)->id].state == DONE;
}

void wq__thread_join(wq__thread *t)
{
	if (wq__thread_is_me(t))
		sim_fail("task %s joins itself", sim_self_name());
	if (cur != MAIN)
		sim_until(has_returned, t);
	else if (!has_returned(t))
		sim_fail("main joins a thread that runs");
}

bool wq__thread_is_me(const wq__thread *t)
{
	return cur != MAIN && t->id == (pthread_t)cur;
}
