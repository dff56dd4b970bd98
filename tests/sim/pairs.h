/*
 * Every pair of public calls, beside each other, on every schedule: what the
 * files of this explorer share.
 *
 *   pairs.c        states in which a run begins, tasks, which pairs are run
 *   pairs_calls.c  the table of calls
 *   pairs_judge.c  what must hold at each release of the lock, when everybody
 *                  waits, and in the end
 *
 * A run: the state is made; two or three tasks make one call each; when all have
 * returned or wait, another one finishes the work (ends holds, takes what is
 * ready, shuts down), after which every call must have returned.
 */
#ifndef WQ_SIM_PAIRS_H
#define WQ_SIM_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq.h>
#include <wq/metrics.h>

#include "sched.h"

enum pairs_key {
	NEW1,
	NEW2,
	REMINDED,
	LIMITED,
	WAIT1,
	WAIT2,
	WAIT3,
	NEVER1,
	HELD1,
	HELD2, /* and added meanwhile */
	HELD3, /* and a copy waits */
	LINE1,
	LINE2,
	LINE3,
	PAIRS_KEYS
};

enum { MAX_CALLS = 4 };

enum pairs_kind {
	PASSES, /* never waits */
	GETS,   /* waits for a key */
	AWAITS_IDLE,
	AWAITS_KEY,
	AWAITS_HOLD,
	DRAINS,
	ENDS_POOL
};

enum pairs_flags {
	STOPS = 1, /* refuses adds from some time on */
	WAITS = 2, /* a drain that waits for what waits */
	WANTS_POOL = 4,
	WANTS_REGISTRY = 8,
	RELEASES = 16, /* a shutdown */
	FREES = 32,
	WANTS_HELD = 64,
};

struct call;

struct op {
	const char *name;
	int64_t (*make)(struct call *c);
	const int *answers; /* beside values > 0 if the first is VALUE; ends with LAST */
	int key;
	int64_t arg;
	enum pairs_kind kind;
	unsigned flags;
};

enum { VALUE = 1000, LAST = 1001 };

extern const struct op pairs_ops[];
extern const int pairs_nops;

/* One call of a run. */
struct call {
	const struct op *op;
	int task; /* who makes it */
	bool begun, returned;
	bool shut_before; /* a call that stops had returned before it began */
	uint32_t first, last;
	int64_t rc;
	wq_report report;
};

/* The present run. */
struct pairs {
	wq_queue *q;
	wq_pool *pool;
	wq_registry *registry;
	bool go, finishing;
	int stage;
	struct call call[MAX_CALLS];
	int ncalls;
	wq_item item[PAIRS_KEYS];
	bool holding[PAIRS_KEYS]; /* nobody has begun to end the hold */
	bool pooled[PAIRS_KEYS];  /* it is a handler of the pool that holds it */
	int ending[PAIRS_KEYS];   /* calls that have begun to */
	/* The ledger: times of what happened last, two for each section; 0: never. */
	uint32_t wanted[PAIRS_KEYS]; /* was to be handed out */
	uint32_t waited[PAIRS_KEYS]; /* a copy waited */
	uint32_t retry[PAIRS_KEYS];  /* a copy waited for a retry */
	uint32_t got[PAIRS_KEYS];    /* was handed out */
	uint32_t gone[PAIRS_KEYS];   /* was cancelled */
	uint32_t sure[PAIRS_KEYS];   /* of the other three: no earlier than this */
	uint32_t stopped;            /* the first call that stops began; 0: none has */
	uint32_t cut;                /* the section after which what waits is left over; 0: none */
	int handlers;                /* under way */
};

extern struct pairs run;

const char *pairs_key(int key);
int pairs_key_of(const wq_item *it);

/* The ledger; each call notes what it was answered. */
void pairs_added(int key, int64_t rc, uint32_t section);
void pairs_got(const wq_item *it);
void pairs_ends(int key); /* a call that ends the hold begins */
void pairs_hold_ended(int key, int64_t rc, uint32_t section);
void pairs_retried(int key, int64_t rc, uint32_t section); /* and by a retry */
void pairs_answered(struct call *c);

/* At each point where no lock is held. */
void pairs_look(void);

/* Everybody waits: may they? */
void pairs_judge_waits(void);

/* The work is over; r is the report of a drain that followed. How many keys are left over. */
int pairs_judge_end(const wq_report *r);

#endif
