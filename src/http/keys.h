/* The keys of a queue, the first of each list, by one walk. */
#ifndef WQ_HTTP_KEYS_H
#define WQ_HTTP_KEYS_H

#include <stdatomic.h>
#include <wq/metrics.h>

#include "http/buffer.h"
#include "http/query.h"

/*
 * Walks the queue once and writes every list as JSON, of at most q->limit of the keys
 * that contain q->match. Returns WQ_OK, WQ_ENOTFOUND (no such queue), WQ_ENOMEM, or WQ_ESHUTDOWN:
 * *ending became true. The texts are the caller's only on WQ_OK. *held_ns is how long the walk may
 * have had the queue's lock, if it took place.
 */
int wq__keys_take(wq_registry *r, const char *name, const struct wq__query *q,
                  const atomic_bool *ending, struct wq__buffer out[WQ__LISTS], int64_t *held_ns);

#endif
