/*
 * Producers and consumers, whatever is between them: their threads, their start, the end and the
 * time that it took. threads.c has wq between them, peers/glib a queue of GLib's.
 */
#ifndef WQ_BENCH_FLOW_H
#define WQ_BENCH_FLOW_H

#include "bench.h"

enum { SIDE_MAX = 32, CLAIM = 128 };

/* A thread of a row; each on lines of its own. */
struct side {
	alignas(BENCH_LINE) struct flow *flow;
	int index;
	uint64_t thread;
	int64_t start_ns;
	int64_t end_ns;
	uint64_t count;
	int bad;
	alignas(BENCH_LINE) _Atomic uint64_t seen; /* A: consumers' progress, for short_ */
};

struct shape {
	int producers;
	int consumers; /* that the row starts; those of a pool start by themselves */
	void (*produce)(struct side *self);
	void (*consume)(struct side *self);
	/* By the last producer, when all keys are there: consumers end when they have them. */
	void (*finish)(struct side *self);
	bool hot;
	bool work;
	bool ranked; /* keys have priorities */
};

/* Padded on purpose: each of these is written by other threads than its neighbours. */
struct flow { /* NOLINT(clang-analyzer-optin.performance.Padding): see above */
	const struct shape *shape;
	void *q;                                 /* what the keys go through */
	size_t nkeys;                            /* pc_, short_: the first ones of the pool */
	const uint16_t *draws;                   /* hot_ */
	size_t steps;                            /* work_: that take 1 µs */
	alignas(BENCH_LINE) _Atomic int waiting; /* A: threads that have yet to come to the start */
	alignas(BENCH_LINE) _Atomic int adding;  /* A: producers that are not finished */
	alignas(BENCH_LINE) _Atomic bool stop;   /* A: hot_, time is up */
	alignas(BENCH_LINE) _Atomic uint64_t claimed; /* A: short_, keys added or about to be */
	struct side producers[SIDE_MAX];
	struct side consumers[SIDE_MAX];
};

struct flow_result {
	uint64_t added, got;
	double seconds; /* from the first thread's start to the last one's end */
};

/* To be freed; that many of the pool's keys go through it. */
struct flow *flow_new(const struct shape *shape, size_t nkeys);
/* All threads, from their start to their end. */
struct flow_result flow_go(struct flow *f);

/* A producer's part of the keys. */
void flow_part(const struct side *self, size_t *from, size_t *to);
/*
 * The right to add a few keys, such that what is claimed and not consumed
 * stays under the bound. Consumers count on lines of their own, and those are
 * read once for every claim: the counting must not be what is measured.
 */
void flow_claim(struct flow *f, uint64_t n);

#endif
