/*
 * What a limiter that stands alone remembers of its keys. Keys are in a table,
 * and in a list, the longest idle first. The caller serialises.
 */
#ifndef WQ_LIMIT_MEMO_H
#define WQ_LIMIT_MEMO_H

#include <stddef.h>
#include <stdint.h>
#include <wq/alloc.h>

#include "limit/limiter.h"

typedef struct wq__memo wq__memo;

/* NULL: out of memory. */
wq__memo *wq__memo_new(const wq_allocator *a);
void wq__memo_free(wq__memo *m, const wq_allocator *a);

/*
 * What is remembered of a key, opened to be changed: nothing, if it is not known or has been idle
 * for too long at the latest time that was told.
 */
struct wq__note;
struct wq__note *wq__memo_find(wq__memo *m, wq_limiter *l, const void *key, size_t len);

/* The same, made if it is not there or has been idle for too long. NULL: no memory. */
struct wq__note *wq__memo_open(wq__memo *m, wq_limiter *l, const void *key, size_t len,
                               int64_t now_ns);

/* As the limiter sees it. */
struct wq__subject wq__note_subject(struct wq__note *n, int64_t now_ns);

/* Stores the failures. Drops the note if nothing is left to remember. */
void wq__memo_close(wq__memo *m, struct wq__note *n, const wq_limiter *l,
                    const struct wq__subject *s);

/* A little of what is not worth keeping goes. */
void wq__memo_trim(wq__memo *m, wq_limiter *l, int64_t now_ns);

size_t wq__memo_size(const wq__memo *m);

/* The latest time it was told. */
int64_t wq__memo_now(const wq__memo *m);

#endif
