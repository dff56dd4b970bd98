/*
 * The default allocator: malloc for small things, the kernel for large ones.
 *
 * What is large is mapped and unmapped, so that what a burst took goes back to the
 * system whatever else the program keeps on its heap.
 *
 * No huge pages. The first touch of one clears 2 MiB, and may make the kernel
 * compact memory first: 0.1 to 5 ms, under a queue's lock. And a part of one cannot
 * be given back.
 */
#define _GNU_SOURCE
#include "base/alloc.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAP_FROM = 64 << 10, HUGE = 2 << 20 };

void *wq__map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* On systems that give all programs huge pages. A kernel without them refuses. */
	if (size >= HUGE)
		(void)madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

void wq__unmap(void *p, size_t size)
{
	munmap(p, size);
}

void wq__unmap_pages(void *p, size_t size)
{
	/* Were its pages larger, the kernel would round the size up, and clear what follows. */
	if (size % (size_t)sysconf(_SC_PAGESIZE) != 0)
		return;
	/* Refused for memory that is locked: it stays then, and is used again all the same. */
	(void)madvise(p, size, MADV_DONTNEED);
}

static void *default_alloc(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (size >= MAP_FROM)
		return wq__map(size);
	return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) == 0
	           ? p
	           : NULL;
}

static void default_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	if (size >= MAP_FROM)
		wq__unmap(p, size);
	else
		free(p);
}

const wq_allocator wq__default_allocator = {.alloc = default_alloc, .free = default_free};
