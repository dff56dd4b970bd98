/*
 * Memory for many small objects of few sizes, with 32-bit names.
 *
 * Objects are cut from runs (runs.h), one size class to a run. An object's id
 * is its place in units of 8 bytes, so half a table slot names an object and the
 * other half can hold its hash.
 *
 *   size of the object | classes           | a run is
 *   -------------------+-------------------+-------------------------------------
 *   up to 1 KiB        | every 8 bytes     | small
 *   up to 4 KiB        | eight a doubling  | small, unless that wastes over an eighth
 *   up to 72 KiB       | eight a doubling  | large
 *
 * A run without objects goes back, so that another class can have it. A few small
 * ones, the spares, stay with their class: a class with one object that comes and
 * goes would otherwise take and give a run each time. One that is used again stays
 * among them until its place is needed.
 *
 * The caller serialises all calls.
 */
#ifndef WQ_BASE_SLAB_H
#define WQ_BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/runs.h"

enum {
	WQ__SLAB_FINE = 1024,    /* up to here a class every 8 bytes */
	WQ__SLAB_MAX = 72 << 10, /* the largest object */
	WQ__SLAB_CLASSES = 129 + 50,
	WQ__SLAB_SPARES = 8,
};

/* Flags of a run. */
enum {
	WQ__RUN_LISTED = 1, /* in its class's list: it has room */
	WQ__RUN_SPARE = 2,  /* in spares[] */
};

typedef struct wq__slab {
	wq__runs runs;
	struct wq__run *spares[WQ__SLAB_SPARES]; /* were empty; still in their classes' lists */
	uint32_t nspares;
	struct wq__run *room[WQ__SLAB_CLASSES]; /* runs with room */
} wq__slab;

void wq__slab_init(wq__slab *s, const wq_allocator *a);

/* Gives all memory back, that of objects in use included. */
void wq__slab_release(wq__slab *s);

/* What the two functions below do when a run is new, used up, full or empty. */
uint32_t wq__slab_class_slow(size_t size);
void *wq__slab_alloc_slow(wq__slab *s, uint32_t class, uint32_t *id);
void wq__slab_list(wq__slab *s, struct wq__run *d);
void wq__slab_unlist(wq__slab *s, struct wq__run *d);
void wq__slab_emptied(wq__slab *s, struct wq__run *d);

/*
 * An object of `size` bytes (1 to WQ__SLAB_MAX), aligned to 8, and its id, never 0;
 * or NULL: no memory, or the slab has reached the limit of runs.h.
 */
static inline void *wq__slab_alloc(wq__slab *s, size_t size, uint32_t *id)
{
	uint32_t class = wq__likely(size <= WQ__SLAB_FINE) ? (uint32_t)((size + 7) / 8)
	                                                   : wq__slab_class_slow(size);
	struct wq__run *d = s->room[class];

	if (wq__unlikely(!d || d->freed == WQ__RUN_NONE))
		return wq__slab_alloc_slow(s, class, id);

	uint32_t at = d->freed;
	char *object = d->base + (size_t)at * 8;

	memcpy(&d->freed, object, sizeof d->freed);
	/* The next one may lie in another CPU's cache: whoever freed it wrote to it. */
	wq__prefetch_to_write(d->base + (size_t)d->freed * 8);
	d->live++;
	if (wq__unlikely(d->freed == WQ__RUN_NONE && d->fresh == d->end))
		wq__slab_unlist(s, d);
	*id = d->first + at;
	return object;
}

static inline void *wq__slab_at(const wq__slab *s, uint32_t id)
{
	return wq__runs_at(&s->runs, id);
}

static inline void wq__slab_free(wq__slab *s, uint32_t id)
{
	struct wq__run *d = wq__run_of(&s->runs, id);
	uint32_t at = id - d->first;

	memcpy(d->base + (size_t)at * 8, &d->freed, sizeof d->freed);
	d->freed = (uint16_t)at;
	if (wq__unlikely(!(d->flags & WQ__RUN_LISTED)))
		wq__slab_list(s, d);
	if (--d->live == 0 && wq__unlikely(!(d->flags & WQ__RUN_SPARE)))
		wq__slab_emptied(s, d);
}

#endif
