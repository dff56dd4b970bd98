/* The queue from inside: what is above the engines, for pools. */
#ifndef WQ_QUEUE_INSIDE_H
#define WQ_QUEUE_INSIDE_H

#include <stdbool.h>
#include <wq/engine.h>

#include "base/fork.h"
#include "base/sync.h"
#include "metrics/registry.h"

/* A pool of the queue, in its list. */
struct wq__pool_link {
	struct wq__pool_link *next, *prev;
	/* Called under the queue's own lock. */
	void (*resume)(struct wq__pool_link *link);
	void (*clock_changed)(struct wq__pool_link *link);
};

struct wq_queue {
	wq_engine engine;       /* I: complete, see stubs.c; in the child of a fork, see forked.c */
	void *state;            /* I: the engine's */
	wq_clock clock;         /* I */
	wq_allocator allocator; /* I */
	wq_limiter *limiter;    /* I: the engine asks it */
	void (*dead_letter)(void *ctx, const wq_item *item); /* I */
	void *dead_ctx;                                      /* I */
	bool within;                                         /* I: adds may give within_ns */
	bool priorities;                                     /* I: a priority */
	bool values;                                         /* I: a value */
	wq__lock lock;                                       /* held before a pool's */
	struct wq__pool_link *pools;                         /* L */
	_Atomic uint32_t npools;        /* A: how many they are; changed under the lock */
	wq_registry *registry;          /* I: NULL: none */
	struct wq__listing listing;     /* the registry's */
	_Atomic uint64_t slow_handlers; /* A, relaxed: handlers of its pools */
	struct wq__fork_link fork;      /* the process's */
	bool forked;                    /* I: this is a child, and the queue its parent's */
};

extern const wq_engine wq__engine_stubs;
extern const wq_engine wq__engine_forked;

void wq__pool_join(wq_queue *q, struct wq__pool_link *link);
void wq__pool_leave(wq_queue *q, struct wq__pool_link *link);
bool wq__has_pools(wq_queue *q);
void wq__resume_pools(wq_queue *q);
void wq__tell_pools_the_clock_changed(wq_queue *q);

/*
 * A worker's turn. *item is written if a key was got; if the verdict was a retry of the last
 * attempt, the dead letter is sent, too.
 */
int wq__settle_next(wq_queue *q, wq_item *item, wq_turn *t);

static inline bool wq__verdict_ok(wq_verdict v)
{
	return v.kind <= WQ_VERDICT_FATAL && v.delay_ns >= 0 && v.reserved0 == 0;
}

/* By this verdict the key is to be handled once more. */
static inline bool wq__verdict_comes_back(wq_verdict v)
{
	return v.kind == WQ_VERDICT_RETRY || v.kind == WQ_VERDICT_AGAIN;
}

static inline bool wq__verdict_fails(wq_verdict v)
{
	return v.kind == WQ_VERDICT_RETRY || v.kind == WQ_VERDICT_FATAL;
}

/* What a pool's thread is at; wq__self() of base/sync.h points to it. */
struct wq__handling {
	wq_queue *q; /* whose key it holds; NULL: none, it is in another callback of the pool */
	const wq_item *item;
	const void *pool;
};

/* Is this thread inside a handler of a pool of this queue? */
bool wq__handling(const wq_queue *q);

/* The same, and is this the key that it handles? */
bool wq__handles(wq_queue *q, const void *key, size_t len);

#endif
