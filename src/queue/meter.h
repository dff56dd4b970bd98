/*
 * What a queue with a name counts and times, under the lock that each step holds
 * anyway. Beside each key stands a stint: when it was got, and its neighbours
 * among the running keys in the order of that, so that their oldest is known,
 * and so is the sum of their ages: by the sum of the beginnings.
 */
#ifndef WQ_QUEUE_METER_H
#define WQ_QUEUE_METER_H

#include <stdbool.h>
#include <wq/metrics.h>

#include "base/hash.h"
#include "time/ticks.h"

struct wq__stint {
	int64_t started_ns;
	uint32_t prev, next; /* ids; 0: none */
};

struct wq__meter {
	uint64_t adds, retries, merged, refused, marked, stale;
	wq_histogram queue, work, late;
	wq__u128 started_sum;         /* of the running keys */
	uint32_t oldest, newest;      /* running keys, ids */
	wq_metrics_provider provider; /* I: told of it all; without functions: nobody */
	bool parked; /* the add was put off behind a burst: it counts when it comes due */
	bool exact;  /* now_ns is the clock's own, not counted in ticks */
	struct wq__ticks ticks;
	int64_t now_ns; /* of this hold of the lock, if that is kept; -1: not asked for yet */
};

struct wq__memory;
struct wq__entry;

/* The time of this hold of the lock, which is kept: asked for once; the exact one if it must be. */
int64_t wq__meter_now(const struct wq__memory *m, bool exact);

/* What an add answered. */
void wq__meter_added(struct wq__memory *m, int outcome);

/* An add that counts as a retry was accepted. */
void wq__meter_retried(struct wq__memory *m);

/* A key that was queued, or to come back, was cancelled: -1; one was given back: +1; all go: -n. */
void wq__meter_depth(struct wq__memory *m, int64_t by);

/* A copy begins to wait; parked: it is an add that was put off behind a burst, and never late. */
void wq__meter_park(struct wq__memory *m, struct wq__entry *e, bool parked);

/* A waiting copy came due so late. */
void wq__meter_due(struct wq__memory *m, struct wq__entry *e, int64_t late_ns);

void wq__meter_start(struct wq__memory *m, struct wq__entry *e, uint32_t id);

/* done: the hold counts as work. */
void wq__meter_end(struct wq__memory *m, struct wq__entry *e, int done);

/* How long it has been held by now; 0: it is not, or nobody knows. */
int64_t wq__meter_running(const struct wq__memory *m, struct wq__entry *e, int64_t now);

int wq__mem_snapshot(void *state, wq_snapshot *out);

#endif
