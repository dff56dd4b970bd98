/*
 * The default allocator: malloc for small things, the kernel for blocks.
 *
 * Blocks are mapped and unmapped, so that what a burst took goes back to the
 * system whatever else the program keeps on its heap. Blocks of 2 MiB are
 * aligned to that and ask for a huge page: a queue of a million keys is then
 * some thirty TLB entries instead of sixteen thousand.
 */
#define _GNU_SOURCE
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAP_FROM = 64 << 10 };

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *map_huge(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size > SIZE_MAX - WQ__HUGE - page)
		return NULL;
	size = (size + page - 1) / page * page;

	char *p = map(size + WQ__HUGE);

	if (!p)
		return NULL;

	size_t before = (WQ__HUGE - (uintptr_t)p % WQ__HUGE) % WQ__HUGE;

	if (before > 0)
		munmap(p, before);
	munmap(p + before + size, WQ__HUGE - before);
	/* Only advice: where it is refused, the block has small pages. */
	(void)madvise(p + before, size, MADV_HUGEPAGE);
	return p + before;
}

static void *default_alloc(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (size >= WQ__HUGE)
		return map_huge(size);
	if (size >= MAP_FROM)
		return map(size);
	return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) == 0
	           ? p
	           : NULL;
}

static void default_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	if (size >= MAP_FROM)
		munmap(p, size);
	else
		free(p);
}

const wq_allocator wq__default_allocator = {.alloc = default_alloc, .free = default_free};
