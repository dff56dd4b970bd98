/*
 * Where a queue gets its memory.
 *
 *     static void *my_alloc(void *ctx, size_t size, size_t align);
 *     static void my_free(void *ctx, void *p, size_t size);
 *
 *     wq_allocator a = {.alloc = my_alloc, .free = my_free, .ctx = &arena};
 *     wq_new(&q, &(wq_options){.allocator = &a});
 */
#ifndef WQ_ALLOC_H
#define WQ_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * alloc: `size` bytes (never 0) at a multiple of `align` (a power of two,
 *        at most 64), or NULL. The bytes may hold anything.
 * free:  gives back what alloc gave; `size` is the size that was asked for.
 *
 * Both run under the queue's lock: they may not call the queue, and must not
 * throw, longjmp or end the thread. Several queues may share an allocator;
 * it is then called by several threads at once. The struct is copied by
 * wq_new(); `ctx` must outlive the queue.
 *
 * The queue asks for blocks of 64 KiB (256 KiB or so for very long keys, 2 MiB
 * once it holds megabytes) and cuts them up itself; it gives them back when
 * they are empty, but for eight small ones. Besides, it asks for itself (some
 * kilobytes), for the directory of its table, and for 74 KB during a walk.
 */
typedef struct wq_allocator {
	void *(*alloc)(void *ctx, size_t size, size_t align);
	void (*free)(void *ctx, void *p, size_t size);
	void *ctx;
} wq_allocator;

#ifdef __cplusplus
}
#endif
#endif
