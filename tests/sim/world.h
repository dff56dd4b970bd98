/*
 * One queue under test, calls of it that keep a history, and the judge of
 * that history.
 *
 * Each do_...() makes one call of the library and notes what it answered and
 * in which section of the lock it took effect. At the end the notes are sorted
 * by section and played through a stupid queue, which must have given the same
 * answers: so every run is checked for keys lost, doubled, from nowhere or out
 * of order, and for wrong statuses, whatever the scenario itself looks for.
 *
 * While it runs: no key is with two workers, no time-out comes early, and
 * nobody sleeps beside a ready key unless somebody who was woken or has not
 * slept yet is on the way to it.
 */
#ifndef WQ_SIM_WORLD_H
#define WQ_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq.h>

#include "sched.h"

enum { NKEYS = 16, MAX_BATCH = 8 };

/* RANKED: by priority, if adds give one; groups, if there are any, take turns. */
enum order { FIFO, LIFO, SMALLEST, RANKED };

enum { NGROUPS = 3, TEXT_MAX = 64 };

struct world {
	wq_queue *q;
	enum order order;
	size_t max_keys;
	wq_manual_clock *manual; /* NULL unless setup made one */
	bool other_clock;        /* than the simulated one */
	int producers;           /* for scenarios: how many are still at work */
	int workers;
	int holds[NKEYS]; /* how often each key was handed out */
	bool held[NKEYS];
	int nheld;
	/* RANKED: set before world_open(). Values are texts, and merge by appending. */
	bool grouped;
	uint32_t limit;        /* of each group; 0: none */
	bool paced;            /* groups have a rate: which keys are ready depends on the time */
	int64_t token_ns;      /* from one start of a group to the next; 0: not known */
	int nheld_of[NGROUPS]; /* held keys of a group */
	int credit;            /* interrupts asked for and neither delivered nor taken back */
	int handled;           /* holds that ended */
	int a, b, c;           /* the scenario's own */
};

extern struct world w;

/*
 * A scenario. setup calls world_open() and spawns; finish looks at what is
 * left before the history is judged and the queue freed; quiet is called when
 * everybody waits. share: how many of 1,000 seeds of a run it gets.
 */
struct scenario {
	const char *name;
	const char *what;
	unsigned share;
	void (*setup)(void);
	void (*finish)(void);
	void (*quiet)(void);
};

extern const struct scenario scenarios_work[], scenarios_wait[], scenarios_stop[], scenarios_look[],
    scenarios_delay[], scenarios_timer[], scenarios_later[], scenarios_pool[], scenarios_due[],
    scenarios_report[], scenarios_rich[];

/* Run one. True: clean. Queues have lanes with every second pair of seeds. */
bool world_run(const struct scenario *s, uint64_t seed, struct sim_result *r);

/*
 * Makes w.q. Fields of *o that are zero are filled in by the seed: spinning or
 * not, one CPU or two, a past of short or of long holds or none. w.order and
 * w.max_keys are to be set before.
 */
void world_open(const wq_options *o);

/*
 * The memory of the run, for scenarios that make no queue of keys: their finish
 * frees what they made, and then everything must have been given back.
 */
const wq_allocator *world_allocator(void);

/* The key with this number: 0 is the empty one, another holds a NUL. */
const char *key_bytes(int key, size_t *len);
int key_of(const wq_item *it);

/* Its group, by its first byte. */
int group_of_key(int key);

int do_add(int key);
int do_add_rich(int key, int priority, const char *text); /* "": no value */
int do_add_many(const int *keys, int n);
int do_get(wq_item *it, int64_t deadline_ns); /* WQ_NEVER, WQ_NOWAIT or a time */
int do_get_many(wq_item *items, int max, int64_t deadline_ns);
int do_done(const wq_item *it);
int do_done_stale(const wq_item *it); /* expects WQ_ESTALE */
int do_done_many(const wq_item *items, int n);
int do_next(wq_item *it, int64_t deadline_ns);
int do_next_many(wq_item *items, int n, int max, int64_t deadline_ns);
int do_requeue(const wq_item *it, enum wq_where where);
int do_interrupt(int n);
int do_shutdown(void);
int do_drain(int64_t deadline_ns, const wq_drain_options *options, wq_report *report);
int do_wait_idle(int64_t deadline_ns);
int do_wait_key(int key, int64_t deadline_ns);
int64_t do_len(void);
int do_state(int key);

/* Fails the run if somebody sleeps beside a ready key and nobody is on the way to it. */
void world_beside(void);

/* The queue's time; looks at it without changing places. */
int64_t world_now(void);
int64_t world_len(void);

/* Keys that a Get would take; between sim_quiet_begin() and _end(). */
int64_t world_ready(void);

/* Work on a held key: some steps, some time. */
void work(const wq_item *it);

/* get, work, done until the queue is shut down: the plainest worker. */
void plain_worker(void *arg);

/* The same, but w.a times by chance the key goes back, or is added again while it is held. */
void busy_worker(void *arg);

/* Adds so many of the first nkeys keys. */
void add_some(int n, int nkeys);

/* The last of w.producers shuts down. */
void producer_ends(void);

/* Adds some keys, and ends. */
void plain_producer(void *arg);

/* A deadline not far away. */
int64_t soon(void);

#endif
