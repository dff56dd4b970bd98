/* What timing_wheel.c and timing_wheel_dead.c share: buckets and the heap. */
#ifndef WQ_TIME_TIMING_WHEEL_INSIDE_H
#define WQ_TIME_TIMING_WHEEL_INSIDE_H

#include "base/compiler.h"
#include "time/timing_wheel.h"

/* The bucket that comes first; false: all are empty. */
static inline bool wq__first_bucket(const wq__timing_wheel *w, uint32_t *l, uint32_t *slot)
{
	if (!w->level_bits)
		return false;
	*l = (uint32_t)__builtin_ctzll(w->level_bits);
	*slot = (uint32_t)__builtin_ctzll(w->level[*l]->bits);
	return true;
}

/* Forced: a function that only prefetches does nothing in gcc's eyes. */
static wq__forced void wq__chunk_fetch(const struct wq__chunk *c)
{
	for (size_t at = 0; at < sizeof *c; at += 64)
		wq__prefetch((const char *)c + at);
}

/* It is not used any more: to the reserve, or back. */
void wq__chunk_put(wq__timing_wheel *w, struct wq__chunk *c);

/* Its first chunk is empty. */
void wq__bucket_drop_head(wq__timing_wheel *w, struct wq__bucket *b);
/* The first reference of a bucket that has one. */
wq__ref wq__bucket_shift(wq__timing_wheel *w, struct wq__bucket *b);
/* Its last reference is gone; chunks that a sweep has emptied may be there still. */
void wq__bucket_done(wq__timing_wheel *w, uint32_t l, uint32_t slot);

/* The heap: there is room for the one, there is one for the other. */
void wq__near_sift_up(wq__timing_wheel *w, struct wq__near it);
wq__ref wq__near_pop(wq__timing_wheel *w);

#endif
