/*
 * A deterministic scheduler: the queue's own code, one seed = one interleaving.
 *
 * Tasks are coroutines on one thread. They change places only where threads
 * could take notice of each other: at the functions of base/sync.h, which this
 * scheduler supplies (the library is compiled with WQ_SIM), and where a test
 * says sim_yield(). At each such point the seed decides who goes on. Time is a
 * variable; when everybody waits, it jumps to the next time-out.
 *
 *     static void worker(void *arg) { ... wq_get(q, &it) ... }
 *     static void setup(void) { sim_spawn("worker", worker, NULL); }
 *
 *     struct sim_result r;
 *     if (!sim_run(&(struct sim_plan){.setup = setup}, 42, &r))
 *         puts(r.what);
 *
 * A run fails if somebody calls sim_fail(), an assertion of the library does
 * not hold, it crashes or loops, the rules of base/sync.h are broken, nobody
 * can go on (deadlock), or it does not end (livelock).
 */
#ifndef WQ_SIM_SCHED_H
#define WQ_SIM_SCHED_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_MAX_TASKS = 12,
	SIM_MAX_STEPS = 20000,
};

/* Who goes on at a choice point. Each finds bugs that the others hardly meet. */
enum sim_strategy {
	SIM_UNIFORM, /* anybody */
	SIM_PCT, /* the one of the highest priority; few points at which it drops to the lowest */
	SIM_BURSTS, /* the same one, for a random number of steps or until it blocks */
	SIM_STARVE, /* anybody but one, who is let in rarely or when nobody else can go on */
	SIM_STRATEGIES
};

struct sim_plan {
	void (*setup)(void); /* makes the tasks; runs outside them, and does not change places */
	/* Everybody waits, before time jumps; may be NULL. It may change a condition. */
	void (*quiet)(void);
	void (*sleeps)(void); /* a task is about to fall asleep; may be NULL */
	void (*finish)(void); /* all tasks have returned; may be NULL */
};

struct sim_result {
	bool failed;
	enum sim_strategy strategy;
	uint32_t steps;
	char what[320];
};

/*
 * If it is set, it chooses who of ready[0..n-1] goes on after `last` (-1: nobody),
 * and nothing is left to chance: see explore.h.
 */
extern int (*sim_guide)(const int *ready, int n, int last);

/* Of queue/memory.h: how many steps of long work one hold of the lock takes; 0: as ever. */
extern size_t wq__hold_limit;

/*
 * Queues have lanes: two locks each, and tasks change places also inside their holds, where
 * the library says so (wq__point).
 */
extern bool sim_lanes;

extern bool sim_tracing; /* print every step */
extern bool sim_strict;  /* check also that setters hold a lock, as base/sync.h says */

const char *sim_strategy_name(enum sim_strategy s);

/* One run. True if it was clean. */
bool sim_run(const struct sim_plan *plan, uint64_t seed, struct sim_result *r);

/* A new task; from setup or from a task. */
void sim_spawn(const char *name, void (*fn)(void *arg), void *arg);

/* Let others go on. */
void sim_yield(void);

/* Wait until cond(arg); it is asked often and must not change anything. */
void sim_until(bool (*cond)(void *arg), void *arg);

/* The same as a sleep of a length of simulated time. */
void sim_pass(int64_t ns);

/* A number below n, from the seed. */
uint32_t sim_random(uint32_t n);

/* One time in n. */
bool sim_chance(uint32_t n);

int64_t sim_now(void);
void sim_advance(int64_t ns);

/* How many CPUs wq__cpus() claims in this run; 2 unless setup says otherwise. */
void sim_set_cpus(int n);

_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define SIM_CHECK(x) ((x) ? (void)0 : sim_fail("%s:%d: %s", __FILE__, __LINE__, #x))

/*
 * Between sim_quiet_begin() and _end() the calls of the library do not change
 * places, and do not count as lock sections: for looking at the queue.
 */
void sim_quiet_begin(void);
void sim_quiet_end(void);

/* Does any task hold a lock? */
bool sim_locked(void);

/*
 * The order of events. Each outermost hold of a lock is a section; sections
 * are numbered from 1 in the order in which they happened. A call that takes
 * the lock took effect in one of its sections: this is what makes the history
 * of a run exact.
 *
 * Beside a lane that is not so: two calls that hold one lock each happen at the same time. There
 * the library says at which step a call takes effect (wq__effect), and that is a section, which
 * takes the place of that in which it happened. Who takes a second lock begins anew, too.
 */
void sim_call_begin(void);
uint32_t sim_call_first(void); /* the first section of the task since sim_call_begin(); 0: none */
uint32_t sim_call_second(void);
uint32_t sim_call_last(void);
uint32_t sim_section(void);    /* the latest section of all */
uint32_t sim_effect(int i);    /* the i-th of the call, from 0 on; 0: it had not so many */
uint32_t sim_call_whole(void); /* the first section that is no effect; 0: none */
/* The same of another task's present call; n = 1: the first, 2: the second. */
uint32_t sim_section_of(int task, int n);
/* When the task's last section began: what a clock read first thing under the lock has said. */
int64_t sim_call_last_ns(void);

/* Marks the task as one that waits in a Get, for sim_sleepers(). */
void sim_getting(bool on);

/* Tasks that are inside a Get: asleep with nobody having set their parker; all others. */
void sim_sleepers(int *asleep, int *under_way);

/* Is that task asleep, with nobody having set its parker? */
bool sim_sleeping(int task);

/* Is it asleep, whether or not somebody has set its parker? */
bool sim_dozing(int task);

/* Until when that task sleeps; INT64_MAX: until it is woken. */
int64_t sim_sleeps_until(int task);

/*
 * The task's number in the order of sim_spawn(), or -1 outside the tasks.
 * A thread that the library starts is a task as well, and counts.
 */
int sim_self(void);
int sim_tasks(void); /* how many there are, and the next one's number */
const char *sim_self_name(void);

#endif
