/*
 * How often queues may be walked. A walk costs the queue's lock in proportion to its keys, so each
 * leaves the queue a debt of 250 times as long as it may have had the lock (bill.h); while that is
 * more than half a second away from being paid off, nobody walks. All walks of a queue so hold its
 * lock for at most 0.4 % of the time, whatever is asked for, by how many, and whatever else the
 * machine does.
 */
#ifndef WQ_HTTP_RATION_H
#define WQ_HTTP_RATION_H

#include <stdint.h>

#include "http/query.h"

/* Of one queue. Forgotten when it is paid off. */
struct wq__debt {
	struct wq__debt *next;
	int64_t paid_ns; /* when */
	char name[WQ__NAME_MAX + 1];
};

/* All zero is empty. */
struct wq__ration {
	struct wq__debt *first;
};

/* How long until the queue may be walked; 0: now. */
int64_t wq__ration_wait(struct wq__ration *r, const char *name, int64_t now_ns);
/*
 * The queue's debt, which is the caller's during the walk; NULL: no memory. Asked for before the
 * walk: one that could not be written down must not happen.
 */
struct wq__debt *wq__ration_take(struct wq__ration *r, const char *name, int64_t now_ns);
/* Back, with what the walk cost. */
void wq__ration_charge(struct wq__ration *r, struct wq__debt *d, int64_t held_ns);
void wq__ration_release(struct wq__ration *r);

#endif
