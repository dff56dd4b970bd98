/*
 * The stupid queue: what wq/queue.h promises, in arrays and loops, without
 * threads, memory management or speed. Keys are small numbers here; tape.c
 * knows which bytes they stand for. A hold is the number of the Get that
 * began it, so a double or late done shows by itself.
 *
 * What the limiter remembers is asked of a limiter that stands alone, which has
 * a tape of its own; here the model says when it is asked, and what for.
 */
#ifndef WQ_TEST_MODEL_H
#define WQ_TEST_MODEL_H

#include <wq.h>

#include <stdbool.h>

enum { MODEL_KEYS = 5000 };

/* What becomes of two values of a key. */
enum model_merge { MODEL_LAST, MODEL_FIRST, MODEL_APPEND, MODEL_OR };

/* What an add brings; or what a copy of a key has, or a hold. */
struct model_load {
	int priority;
	char *value; /* NULL: none */
	size_t len;
};

/* BUSIEST: the key that was touched most often; among equals the first in line. */
enum model_order { MODEL_FIFO, MODEL_LIFO, MODEL_BUSIEST, MODEL_ORDERS };

/* How a Get may wait: not at all, until a time that has passed, or for long. */
enum model_wait { MODEL_NOWAIT, MODEL_PASSED, MODEL_LONG };

struct model_key {
	unsigned state; /* WQ_STATE_... bits of the line, the hold and its own wait; 0 if absent */
	unsigned touches;   /* merges while in line, in this life of the key */
	unsigned lives;     /* how often it came from absent to queued or waiting */
	uint64_t hold;      /* who holds it, 0 if nobody */
	int64_t added_ns;   /* of the add that the line or the holder has */
	int64_t readded_ns; /* of the add that made it dirty */
	struct model_wait_for {
		int64_t due_ns;
		uint64_t turn;     /* of equal times the smaller goes first */
		int64_t latest_ns; /* it is moved no further; 0: anywhere */
		bool retry;        /* for a retry, or by a limited add */
	} own, reminder;           /* the copies that wait; due_ns 0: none */
	struct model_load load;    /* of the copy that is queued, waits or is dirty */
	struct model_load held;    /* of the hold */
	struct model_load reminds; /* of the reminder */
	int64_t place;             /* in line, or that it would have if an add made it queued */
	int64_t seq;               /* of equal places the smaller goes first */
	bool stirred;              /* a copy of it was ever moved or taken back */
	bool cancelled;            /* during the hold that it is in */
	bool last_try;             /* the drain that runs what waits retried it */
	int64_t idle_since_ns;     /* when it was absent last */
};

/* How failed keys wait. */
struct model_limits {
	wq_limiter *limiter; /* alone; the model frees it */
	int64_t idle_ns;     /* 0: no bound */
	uint32_t max_attempts;
	bool keeps; /* forget does not clear all of it: a key has a bucket of its own */
	bool exact; /* what was asked in vain can be taken back: nothing of chance or tokens */
};

/* Priorities, groups and values; all zero: none. */
struct model_rich {
	bool priorities, values;
	int64_t aging_ns; /* 0: no aging */
	int aging_max;
	enum model_merge merge;
	const char *separator; /* of MODEL_APPEND */
	const int *group_of;   /* a number for each key, or NULL: no groups */
	const struct model_rules {
		uint32_t limit;   /* 0: none */
		uint32_t weight;  /* from 1 on */
		uint32_t burst;   /* from 1 on */
		int64_t token_ns; /* from one start to the next; 0: no rate */
	} * rules;                /* of each group */
};

struct model_group {
	uint32_t queued, running; /* keys */
	uint32_t ready;           /* of those queued: a Get may take them */
	uint32_t turns;           /* keys started in this turn */
	bool in_line;
	int level;         /* of the line in which it stands */
	int64_t place;     /* there */
	int64_t seq;       /* of equal places the smaller goes first */
	int64_t turned_ns; /* when its last turn was over */
	int64_t spent_ns;  /* of its bucket: full at 0, empty at burst * token_ns */
	int64_t spent_at;  /* then */
};

struct model {
	enum model_order order;
	size_t max_keys; /* 0: no bound */
	struct model_key keys[MODEL_KEYS];
	int line[MODEL_KEYS]; /* the head is line[0] */
	size_t nqueued, nrunning, ndirty;
	uint64_t gets, pushes; /* so far */
	int kept;              /* interrupts that found nobody */
	bool shut;
	bool patient;    /* shut by a drain that waits for what waits; else that is left over */
	int64_t now_ns;  /* everything that is due until then is in line */
	uint64_t turns;  /* so far, of copies that began to wait */
	size_t nwaiting; /* copies */
	size_t nnever;   /* of those, with WQ_NEVER */
	size_t nretries; /* and those that wait for a retry */
	size_t nkeys;    /* copies in whatever state */
	bool stirred;    /* next_deadline may be too early */
	bool hurried;    /* shut by a drain that runs what waits at once */
	struct model_limits limits;
	uint64_t ndead, ndropped;
	bool asked; /* the limiter was, ever */
	struct model_rich rich;
	struct model_group groups[MODEL_KEYS];
	size_t nready;       /* of those queued, all but the blocked ones */
	int64_t moment_ns;   /* while time goes on: where it is */
	int64_t places;      /* so far, given to keys and groups */
	int64_t first_place; /* the last one that was given before all others */
	int64_t seqs;
	uint64_t merge_failed;
	bool overtook; /* an aged key was raised, ever, and went before others of its level */
};

/* An add without options. */
extern const struct model_load model_plain;

void model_init(struct model *m, enum model_order order, size_t max_keys);

/* From now on; before anything else. And what it holds is given back. */
void model_limit(struct model *m, const struct model_limits *limits);
void model_release(struct model *m);

/* Priorities, groups and values, from now on; before anything else. */
void model_enrich(struct model *m, const struct model_rich *rich);

/* Each answers what the call of that name answers. */
int model_add(struct model *m, int key, const struct model_load *with);
int model_add_at(struct model *m, int key, int64_t due_ns, int64_t latest_ns, enum wq_policy policy,
                 const struct model_load *with);
int model_reschedule(struct model *m, int key, int64_t due_ns);
int model_cancel(struct model *m, int key);
int model_get(struct model *m, enum model_wait wait, int *key);
int model_done(struct model *m, int key, uint64_t hold);
int model_requeue(struct model *m, int key, uint64_t hold, enum wq_where where);
int model_held(const struct model *m, int key, uint64_t hold);
int model_interrupt(struct model *m, int n);
int model_add_limited(struct model *m, int key, enum wq_policy policy,
                      const struct model_load *with);
int64_t model_requeues(struct model *m, int key);
void model_forget(struct model *m, int key);

/* WQ_DEAD: it is still held; model_bury() when dead_letter has returned. */
int model_settle(struct model *m, int key, uint64_t hold, wq_verdict verdict);
void model_bury(struct model *m, int key);
bool model_idle(const struct model *m);
bool model_finished(const struct model *m); /* what a drain that waits waits for */
bool model_cut(const struct model *m);      /* it is shut, and nothing comes due any more */
int model_drain(const struct model *m); /* what a drain with a deadline that has passed answers */
unsigned model_state(const struct model *m, int key);
size_t model_live(const struct model *m);          /* keys in whatever state */
int64_t model_due(const struct model *m, int key); /* as walk shows it */
int64_t model_deadline(const struct model *m);     /* the earliest due time */

/*
 * What an add does to a key of any state; and one with a delay. latest_ns 0: no bound.
 * retry: the copy that waits afterwards does so for a retry. with: what it brings; NULL: nothing,
 * not even a priority of 0.
 */
int model_enter(struct model *m, int key, int64_t since_ns, const struct model_load *with);
int model_wait_for(struct model *m, int key, int64_t due_ns, int64_t latest_ns,
                   enum wq_policy policy, bool retry, const struct model_load *with);

/* The hold ends, and the key comes back with its priority and its value. */
void model_keep(struct model *m, int key);

/* It was idle for as long as the limiter allows: it is forgotten. Asked before it comes back. */
void model_expire(struct model *m, int key);

/* It is later now: what comes due enters the line. */
void model_clock(struct model *m, int64_t now_ns);

/* What the first shutdown or drain does; and a shutdown after a drain that waits. */
void model_shut(struct model *m, enum wq_drain_mode mode);
void model_shutdown(struct model *m);

/* Does every Get answer WQ_ESHUTDOWN when nothing is ready? */
bool model_over(const struct model *m);

/* Is what waits left over? */
bool model_leaves(const struct model *m);

/* The key that a Get takes next; some key is ready. What a walk shows of a key; its group or -1. */
int model_first(const struct model *m);
const struct model_load *model_shown(const struct model *m, int key);
int model_group_of(const struct model *m, int key);

/* ---- model_rich.c: the line of a queue with priorities or groups, and values --- */

bool model_ranked(const struct model *m);

/* The key, which has its priority and is in line[], takes its place there, or leaves it. */
void model_rank_push(struct model *m, int key, enum wq_where where, bool keeps_place,
                     int64_t since_ns);
void model_rank_removed(struct model *m, int key);
void model_rank_started(struct model *m, int key);
void model_rank_ended(struct model *m, int key);
int64_t model_new_place(struct model *m, int priority, int64_t since_ns);

/* A queued key is raised: it has been on the new level for some time, by aging, or has not. */
bool model_aged_place(struct model *m, int key, int priority, int64_t since_ns);

/* The next group that gets a token until then; -1: none. It has it from now on. */
int model_next_token(const struct model *m, int64_t until_ns, int64_t *at_ns);
void model_token(struct model *m, int group);
/* The key is requeued: its hold was no start. */
void model_give_back(struct model *m, int key);

/* A copy with that load finds an add. WQ_OK, or why the merge fails: nothing has changed. */
int model_merge_value(const struct model *m, struct model_load *into, const char *value,
                      size_t len);
void model_drop_value(struct model_load *l);

/* Would a Get that may wait for long have to? */
bool model_blocks(const struct model *m);

#endif
