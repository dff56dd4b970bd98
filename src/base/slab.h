/*
 * Memory for many small objects of few sizes, with 32-bit names.
 *
 * Objects are cut from blocks, one size class to a block. An object's id is
 * its block's number and its offset in units of 8 bytes, so half a table slot
 * names an object and the other half can hold its hash. Blocks go back to the
 * allocator when they are empty, but for a few small ones, the spares: a queue that
 * is almost empty would otherwise map and unmap a block for every key. One that is
 * used again stays among them until its place is needed.
 *
 *   size of the object | classes           | a block holds
 *   -------------------+-------------------+---------------------------------
 *   up to 1 KiB        | every 8 bytes     | 64 KiB; 2 MiB from the 17th on
 *   up to 72 KiB       | eight a doubling  | 64 KiB or four objects; 2 MiB ...
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

enum {
	WQ__SLAB_FINE = 1024,    /* up to here a class every 8 bytes */
	WQ__SLAB_MAX = 72 << 10, /* the largest object */
	WQ__SLAB_CLASSES = 129 + 50,
	WQ__SLAB_SPARES = 8,       /* empty blocks that are kept */
	WQ__SLAB_OFFSET_BITS = 18, /* 2 MiB in units of 8 */
	WQ__SLAB_BLOCKS_MAX = 1 << (32 - WQ__SLAB_OFFSET_BITS),
};

struct wq__block {
	struct wq__block *next, *prev; /* in its class's list while it has room */
	uint32_t number;
	uint32_t class;
	uint32_t live;   /* objects in use */
	uint32_t fresh;  /* offset / 8 of the part that was never used */
	uint32_t end;    /* offset / 8 where the last object ends */
	uint32_t freed;  /* offset / 8 of the last freed object; 0: none */
	uint32_t unit;   /* size of an object / 8 */
	uint32_t listed; /* is it in the list? */
	uint32_t spare;  /* is it in spares[]? */
	size_t bytes;
};

typedef struct wq__slab {
	struct wq__block **blocks; /* by number; free numbers are chained through free_number */
	struct wq__block *spares[WQ__SLAB_SPARES]; /* were empty; still in their classes' lists */
	uint32_t nspares;
	uint32_t nblocks; /* entries of blocks[] in use, holes included */
	uint32_t blocks_cap;
	uint32_t free_number; /* head of the chain of holes + 1; 0: none */
	uint32_t class_blocks[WQ__SLAB_CLASSES];
	struct wq__block *room[WQ__SLAB_CLASSES]; /* blocks with room */
	const wq_allocator *allocator;
} wq__slab;

void wq__slab_init(wq__slab *s, const wq_allocator *a);

/* Gives every block back, objects in use included. */
void wq__slab_release(wq__slab *s);

/* What the two functions below do when a block is new, used up, full or empty. */
uint32_t wq__slab_class_slow(size_t size);
void *wq__slab_alloc_slow(wq__slab *s, uint32_t class, uint32_t *id);
void wq__slab_list(wq__slab *s, struct wq__block *b);
void wq__slab_unlist(wq__slab *s, struct wq__block *b);
void wq__slab_emptied(wq__slab *s, struct wq__block *b);

/* An object of `size` bytes (1 to WQ__SLAB_MAX), aligned to 8, and its id, never 0; or NULL. */
static inline void *wq__slab_alloc(wq__slab *s, size_t size, uint32_t *id)
{
	uint32_t class = wq__likely(size <= WQ__SLAB_FINE) ? (uint32_t)((size + 7) / 8)
	                                                   : wq__slab_class_slow(size);
	struct wq__block *b = s->room[class];

	if (wq__unlikely(!b || !b->freed))
		return wq__slab_alloc_slow(s, class, id);

	uint32_t at = b->freed;
	char *object = (char *)b + (size_t)at * 8;

	memcpy(&b->freed, object, sizeof b->freed);
	/* The next one may lie in another CPU's cache: whoever freed it wrote to it. */
	wq__prefetch_to_write((char *)b + (size_t)b->freed * 8);
	b->live++;
	if (wq__unlikely(!b->freed && b->fresh == b->end))
		wq__slab_unlist(s, b);
	*id = b->number << WQ__SLAB_OFFSET_BITS | at;
	return object;
}

static inline void *wq__slab_at(const wq__slab *s, uint32_t id)
{
	char *block = (char *)s->blocks[id >> WQ__SLAB_OFFSET_BITS];

	return block + (size_t)(id & ((1u << WQ__SLAB_OFFSET_BITS) - 1)) * 8;
}

static inline void wq__slab_free(wq__slab *s, uint32_t id)
{
	struct wq__block *b = s->blocks[id >> WQ__SLAB_OFFSET_BITS];
	uint32_t at = id & ((1u << WQ__SLAB_OFFSET_BITS) - 1);

	memcpy((char *)b + (size_t)at * 8, &b->freed, sizeof b->freed);
	b->freed = at;
	if (wq__unlikely(!b->listed))
		wq__slab_list(s, b);
	if (--b->live == 0 && wq__unlikely(!b->spare))
		wq__slab_emptied(s, b);
}

#endif
