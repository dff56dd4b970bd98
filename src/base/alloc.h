/* The default allocator, and the one way in which the library asks for memory. */
#ifndef WQ_BASE_ALLOC_H
#define WQ_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/alloc.h>

extern const wq_allocator wq__default_allocator;

/* Is it complete, and of a version that this library knows? */
static inline bool wq__allocator_good(const wq_allocator *a)
{
	return a->alloc && a->free && (a->reserved[0] | a->reserved[1]) == 0;
}

static inline void *wq__alloc(const wq_allocator *a, size_t size, size_t align)
{
	return a->alloc(a->ctx, size, align);
}

static inline void wq__free(const wq_allocator *a, void *p, size_t size)
{
	if (p)
		a->free(a->ctx, p, size);
}

/*
 * Does this allocator take its memory from the kernel? Then who uses it may do the
 * same, and give back single pages.
 */
static inline bool wq__maps(const wq_allocator *a)
{
	return a->alloc == wq__default_allocator.alloc;
}

/* Whole pages, of which each takes memory only when it is touched; or NULL. */
void *wq__map(size_t size);
void wq__unmap(void *p, size_t size);
/*
 * The memory of these pages goes back, unless they are parts of larger ones; they may be touched
 * again, and hold anything then.
 */
void wq__unmap_pages(void *p, size_t size);

#endif
