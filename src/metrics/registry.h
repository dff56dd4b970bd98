/* The registry from inside: a queue enters it when it is made, and leaves before it goes. */
#ifndef WQ_METRICS_REGISTRY_H
#define WQ_METRICS_REGISTRY_H

#include <wq/metrics.h>

#include "base/sync.h"

/* A queue in it. */
struct wq__listing {
	struct wq__listing *next;
	wq_queue *q;
	uint64_t visits;    /* by wq_registry_visit(), under way */
	wq__parker *leaver; /* wq_free() waits for their end; nobody new is let in */
	char name[256];
};

/* WQ_OK, or WQ_EEXIST: the name is taken. The listing is the queue's memory. */
int wq__registry_enter(wq_registry *r, struct wq__listing *l);

/*
 * It leaves if close(state) answers >= 0, and nobody looks at it meanwhile: waits for those who
 * do. What close answered.
 */
int wq__registry_leave(wq_registry *r, struct wq__listing *l, int (*close)(void *state),
                       void *state);

#endif
