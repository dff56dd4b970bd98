/* A thread that walks over queues for listings, one at a time: the server does not wait for it. */
#ifndef WQ_HTTP_WALKER_H
#define WQ_HTTP_WALKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <wq/metrics.h>

#include "http/buffer.h"
#include "http/query.h"

/* The server's between two walks, the thread's during one. */
struct wq__walk {
	char name[WQ__NAME_MAX + 1];
	struct wq__query q;
	/* What came of it, as from wq__keys_take(). */
	struct wq__buffer text[WQ__LISTS];
	int64_t held_ns;
	int rc;
};

struct wq__walker {
	wq_registry *registry; /* I: set at init */
	pthread_t thread;      /* I */
	sem_t go;
	int done_fd;        /* I; an eventfd, readable: a walk has ended */
	atomic_bool ending; /* A: relaxed, nothing else hangs on it */
	struct wq__walk walk;
};

/* WQ_OK, WQ_ENOMEM or WQ_EIO: errno says why. */
int wq__walker_init(struct wq__walker *w, wq_registry *r);
/* Ends a walk that is under way. */
void wq__walker_release(struct wq__walker *w);

/* Not before the last has been collected. */
void wq__walker_begin(struct wq__walker *w, const char *name, const struct wq__query *q);
/* The walk that has ended, valid until the next begins; NULL: none has. */
struct wq__walk *wq__walker_collect(struct wq__walker *w);

#endif
