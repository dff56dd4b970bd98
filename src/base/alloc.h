/* The default allocator, and the one way in which the library asks for memory. */
#ifndef WQ_BASE_ALLOC_H
#define WQ_BASE_ALLOC_H

#include <wq/alloc.h>

/* Blocks of this size or more are aligned to it by the default allocator, and get huge pages. */
#define WQ__HUGE ((size_t)2 << 20)

extern const wq_allocator wq__default_allocator;

static inline void *wq__alloc(const wq_allocator *a, size_t size, size_t align)
{
	return a->alloc(a->ctx, size, align);
}

static inline void wq__free(const wq_allocator *a, void *p, size_t size)
{
	if (p)
		a->free(a->ctx, p, size);
}

#endif
