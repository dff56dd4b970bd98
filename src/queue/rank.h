/*
 * The line of a queue with priorities or groups (WQ__RANKED).
 *
 * Without groups, `levels` are lines of keys. With groups, they are lines of groups: a group that
 * has a key to start stands in the line of that key's level, in one line only, and its keys stand
 * in lines of its own. A Get takes the first group of the first line, and of that one the first
 * key; then the group goes to the tail: groups take turns.
 *
 *   a group is | it                                        | its keys count as
 *   -----------+-------------------------------------------+-------------------
 *   in line    | may start a key now                       | ready, as many as may be held
 *   full       | has as many holds as its limit            | blocked
 *   asleep     | has no token for a start; `sleepers` wake | blocked
 *              | it                                        |
 *   idle       | has no queued key. Without any key it is  | –
 *              | kept for a while, in a list of its own     |
 *
 * Every change of a group ends in regroup(), which alone knows this table. So nothing looks at
 * blocked keys, and a Get takes the same time however many groups and keys are blocked.
 */
#ifndef WQ_QUEUE_RANK_H
#define WQ_QUEUE_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <wq/heap.h>
#include <wq/snapshot.h>
#include <wq/types.h>

#include "base/table.h"
#include "queue/levels.h"

struct wq__memory;
struct wq__entry;

/* Beside each key. */
struct wq__standing {
	uint32_t group;   /* id; 0: no groups */
	int16_t priority; /* of the copy that is queued, waiting or dirty */
	int16_t held;     /* of the hold */
};

struct wq__keygroup {
	struct wq__link link; /* in line with other groups */
	uint32_t hash;
	uint32_t refs;            /* entries of its keys */
	uint32_t queued, running; /* keys */
	uint32_t ready;           /* of those queued, counted in nready */
	uint32_t limit, weight;
	uint32_t turns; /* keys started in this turn */
	int32_t level;  /* in line: of this line */
	bool in_line;   /* with other groups */
	bool listed;    /* in the list of groups that had no key */
	uint32_t next_listed;
	bool asleep;        /* has no token */
	int64_t turned_ns;  /* with aging: its last turn */
	int64_t token_ns;   /* from one token to the next; 0: no rate */
	int64_t slack_ns;   /* so much earlier may a burst start */
	int64_t full_ns;    /* when its bucket is full */
	wq_heap_elem sleep; /* in sleepers, WQ_NEVER: awake; if there is a rate */
	struct wq__levels levels;
	uint32_t len;
	char name[]; /* a NUL follows */
};

struct wq__rank {
	struct wq__levels_of of;
	struct wq__levels levels;
	bool grouped;
	bool used;        /* an add gave another priority than 0 */
	uint32_t ngroups; /* with keys; others may only have a bucket that is not full */
	uint32_t nlisted; /* see list_idle() */
	uint32_t listed_head, listed_tail;
	wq__table groups;  /* by name */
	wq_heap *sleepers; /* groups by the time at which they wake, or can be forgotten */
	int64_t wake_ns;   /* the first of those; WQ_NEVER: none */
	int64_t places;    /* the last place that was given, without aging */
	int64_t due_ns;    /* while a key comes due: when; else -1 */
	bool keeps_places; /* a waiting key that is added takes the place of its first add */
	bool keep;         /* the key that is pushed has its place already */
	/* Of the options. */
	wq_group_fn group;
	void *group_ctx;
	wq_group_settings settings;
	wq_group_setup_fn setup;
	void *setup_ctx;
};

/* Of starts per second; 0: no limit. */
static inline bool wq__rate_good(double rate)
{
	return rate >= 0 && rate <= 1e9;
}

int wq__rank_open(struct wq__memory *m, const wq_options *o);
void wq__rank_close(struct wq__memory *m);

/*
 * A key may be queued with that priority from now on: there is memory for it. Finds its group, or
 * makes it; *group is its id, or 0. It is used from now on, whoever called this drops it. WQ_OK
 * or WQ_ENOMEM.
 */
int wq__rank_prepare(struct wq__memory *m, const wq_key *name, int priority, uint32_t *group);

/* The same for an entry that is there, of perhaps another group. */
bool wq__rank_reserve(struct wq__memory *m, struct wq__entry *e, uint32_t group, int priority);

/* The id of a group that is there; or 0. */
uint32_t wq__rank_find(const struct wq__memory *m, uint32_t hash, const wq_key *name);

/* A new key of a group, with a line for its priority: one entry more. */
void wq__group_push(struct wq__memory *m, struct wq__keygroup *g, uint32_t group,
                    struct wq__line *line, uint32_t id, struct wq__link *e);

/* The hold of a key ends, and its entry goes. */
void wq__group_done(struct wq__memory *m, uint32_t group);

/* One entry or add more, or less, of that group. Without any it is idle once its bucket is full. */
void wq__group_use(struct wq__memory *m, uint32_t group);
void wq__group_drop(struct wq__memory *m, uint32_t group);

/* Of none: NULL and 0. */
void wq__group_name(const struct wq__memory *m, uint32_t group, wq_key *name);

/* A key enters or leaves the line. They keep nready and nblocked right. */
void wq__rank_push(struct wq__memory *m, struct wq__entry *e, uint32_t id, enum wq_where where);
uint32_t wq__rank_pop(struct wq__memory *m);
void wq__rank_remove(struct wq__memory *m, struct wq__entry *e, uint32_t id);

/* The next key; some key is ready. */
uint32_t wq__rank_first(const struct wq__memory *m);

/* A copy begins to wait: the place that it has if an add makes it queued. */
void wq__rank_place(struct wq__memory *m, struct wq__entry *e);

/* A queued key has a higher priority from now on. */
void wq__rank_raise(struct wq__memory *m, struct wq__entry *e, uint32_t id, int priority);

/* The hold of the key was no start, as it is requeued: its token goes back. */
void wq__rank_give_back(struct wq__memory *m, struct wq__entry *e);

/* A hold of the key begins again (a key that is dead), or ends. */
void wq__rank_hold(struct wq__memory *m, struct wq__entry *e, int by);

/* Groups that have a token by now, and had it before that time, are awake: the next few of them. */
void wq__rank_wake(struct wq__memory *m, int64_t before);

void wq__rank_snapshot(struct wq__memory *m, wq_snapshot *out);

#endif
