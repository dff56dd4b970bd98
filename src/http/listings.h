/* Listings of keys, kept for all who ask, and how often they may be taken. */
#ifndef WQ_HTTP_LISTINGS_H
#define WQ_HTTP_LISTINGS_H

#include <wq/metrics.h>

#include "http/answer.h"
#include "http/query.h"

struct wq__listing;
struct wq__debt;

/* The server's thread alone uses it. All zero is empty. */
struct wq__listings {
	struct wq__listing *first; /* the most recently asked for first */
	struct wq__debt *debts;
	size_t n;
	size_t bytes;
};

struct wq__answer wq__listings_ask(struct wq__listings *ls, wq_registry *r, const char *name,
                                   const struct wq__query *q, int64_t now_ns);
void wq__listings_release(struct wq__listings *ls);

#endif
