/* The pool from inside. */
#ifndef WQ_POOL_INSIDE_H
#define WQ_POOL_INSIDE_H

#include <stdatomic.h>
#include <wq/pool.h>
#include <wq/timer.h>

#include "base/compiler.h"
#include "base/signals.h"
#include "queue/queue.h"

/* W: its own thread's; L: the pool's lock; O: its own lock; I: set at the start */
struct wq__worker {
	wq_pool *pool;                /* I */
	uint32_t number;              /* I */
	wq__thread thread;            /* I */
	struct wq__handling handling; /* I */
	wq_item item;                 /* W */
	bool holds;                   /* W: the item is to be settled */
	wq_verdict verdict;           /* W: of the handler, on this item */
	/* A, relaxed: written by its own thread alone. */
	_Atomic uint64_t done, retried, again, dropped, dead, left, cancelled, stale;
	_Atomic bool busy;
	struct wq__worker *next; /* L */
	bool resting;            /* L: it sleeps on its parker */
	bool ended;              /* L: its thread is about to return */
	wq__parker parker;
	wq__lock lock;      /* for what the watcher looks at */
	bool watched;       /* O: a handler runs */
	bool reported;      /* O */
	int64_t started_ns; /* O */
	char *key;          /* O: a copy, because the watcher looks at it at any time */
	size_t key_cap;     /* W */
};

/* A thread that waits for the workers to end, on its stack. */
struct wq__pool_stopper {
	struct wq__pool_stopper *next, *prev;
	wq__parker parker;
};

struct wq_pool {
	wq__lock lock;
	wq_queue *q;                       /* I */
	struct wq__worker *workers;        /* L */
	uint32_t nworkers;                 /* L: that have not been told to go */
	uint32_t nthreads;                 /* L: that have not ended */
	uint32_t wanted;                   /* L */
	bool paused, stopped;              /* L */
	wq_gate gate;                      /* the engine's */
	uint32_t seen;                     /* L: the gate's number after the last change */
	wq_pool_counts past;               /* L: of workers that are gone */
	struct wq__pool_stopper *stoppers; /* L */
	struct wq__pool_link link;         /* the queue's */
	struct wq__fork_link fork;         /* the process's */
	bool forked;                       /* I: this is a child, and the pool its parent's */
	wq_handler handler;                /* I, as the rest */
	void *ctx;
	void (*on_start)(void *ctx, uint32_t worker);
	void (*on_end)(void *ctx, uint32_t worker);
	void (*on_slow)(void *ctx, const wq_slow_handler *o);
	int64_t slow_ns;
	size_t stack_size;
	wq__signals signals; /* that its threads block */
	wq_allocator allocator;
	bool clock_watched;
	wq_timer *timer;                /* NULL: no limit */
	char *key;                      /* the watcher's copy of a key; its thread's own */
	_Atomic uint64_t slow_handlers; /* A, relaxed */
	char name[16];
};

/* pool.c; the lock is held */
void wq__pool_changed(wq_pool *p);
void wq__pool_reap(wq_pool *p);

/* ending.c */
void wq__pool_release_stoppers(wq_pool *p); /* the lock is held */
int wq__pool_watch_clock(wq_pool *p);
void wq__pool_clock_changed(struct wq__pool_link *link);

/* slow.c */
int wq__slow_start(wq_pool *p);
void wq__slow_stop(wq_pool *p);
void wq__slow_begin(struct wq__worker *w);
void wq__slow_end(struct wq__worker *w);
void wq__slow_release(struct wq__worker *w);

#endif
