/* Listings of keys, kept for all who ask. */
#ifndef WQ_HTTP_LISTINGS_H
#define WQ_HTTP_LISTINGS_H

#include <wq/metrics.h>

#include "http/answer.h"
#include "http/query.h"
#include "http/ration.h"
#include "http/walker.h"

struct wq__listing;

/* The server's thread alone uses it. All zero can be released. */
struct wq__listings {
	struct wq__listing *first; /* the most recently asked for first */
	size_t n;
	size_t bytes;
	struct wq__ration ration;
	struct wq__walker walker;
	struct wq__debt *debt; /* of the queue that is walked; NULL: none is */
	int64_t began_ns;      /* the walk */
	int64_t failed_ns;     /* when a walk last failed for want of memory */
};

/* As wq__walker_init(). */
int wq__listings_init(struct wq__listings *ls, wq_registry *r);
void wq__listings_release(struct wq__listings *ls);

/*
 * Of a request that came at asked_ns. One that is patient may be told to wait: to ask again when
 * a walk has ended. Others get what there is, or a 503.
 */
struct wq__answer wq__listings_ask(struct wq__listings *ls, const char *name,
                                   const struct wq__query *q, int64_t asked_ns, int64_t now_ns,
                                   bool patient);
/* To be called when walker.done_fd is readable. True: a walk has ended. */
bool wq__listings_collect(struct wq__listings *ls, int64_t now_ns);

#endif
