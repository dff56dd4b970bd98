/*
 * Allocators: where a queue gets its memory.
 *
 *     static void *my_alloc(void *ctx, size_t size, size_t align);
 *     static void my_free(void *ctx, void *p, size_t size);
 *
 *     wq_allocator a = {.alloc = my_alloc, .free = my_free, .ctx = &arena};
 *     if (wq_new(&q, &(wq_options){.allocator = &a}) < 0)
 *         return 1;
 */
#ifndef WQ_ALLOC_H
#define WQ_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A custom allocator.
 *
 * alloc: returns `size` bytes (never 0), aligned to `align` (a power of two, at most 64), or
 *        NULL. The bytes need not be zero.
 * free:  takes back what alloc returned; `size` is the size that was asked for.
 *
 * Both run under the queue's lock: they may not call the queue, and must not throw, longjmp or
 * end the thread. Several queues may share an allocator; then several threads call it at once.
 * wq_new() copies the struct; `ctx` must outlive the queue.
 *
 * The queue asks for runs of 16 KiB (128 KiB for keys of over some kilobytes) and divides them
 * itself. A run without keys is idle. The queue keeps up to 24 small and 4 large idle runs and an
 * eighth of those in use, and frees the others, at most two in one call. It also allocates its own
 * struct (some kilobytes), descriptors (4 KiB for 2 MiB of runs), tables that grow with its size,
 * and 74 KB during a walk.
 *
 * The default allocator (malloc, and mmap from 64 KiB on) does the same, but maps 2 MiB of address
 * space at a time once a queue has 256 KiB, and returns the pages of single runs to the kernel. It
 * does not use huge pages: the first touch of one can take milliseconds, under the queue's lock.
 *
 * A queue has at most 32 GiB of runs: 450 million keys of 20 bytes; values and groups count.
 * Beyond that, and when alloc returns NULL, calls answer WQ_ENOMEM and change nothing. [ENOMEM]
 */
typedef struct wq_allocator {
	void *(*alloc)(void *ctx, size_t size, size_t align);
	void (*free)(void *ctx, void *p, size_t size);
	void *ctx;
	uint64_t reserved[2]; /* must be zero */
} wq_allocator;

#ifdef __cplusplus
}
#endif
#endif
