/*
 * A priority queue: the element with the smallest priority comes first; equal priorities keep the
 * order of the adds.
 *
 *     wq_heap *h;
 *     wq_heap_elem e;
 *     if (wq_heap_new(&h, NULL) < 0)
 *         return 1;
 *     wq_heap_add(h, 30, job, &e);
 *     wq_heap_update(h, e, 5);                 // more urgent now
 *     while (wq_heap_pop(h, NULL, &job) == WQ_OK)
 *         run(job);
 *     wq_heap_free(h);
 *
 * Threads: it has no lock. The caller serialises all calls on one heap; different heaps are
 * independent. Nothing blocks. All operations are O(log n), peek and size O(1).
 */
#ifndef WQ_HEAP_H
#define WQ_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <wq/alloc.h>
#include <wq/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_heap wq_heap;

/*
 * A handle of one element of one heap, from add until it leaves. It may be copied and kept: a
 * handle whose element has left, or that belongs to another heap, is detected (handles are invalid
 * once their heap is freed). The fields are internal.
 */
typedef struct wq_heap_elem {
	const void *heap;
	uint32_t index;
	uint32_t generation;
} wq_heap_elem;

/*
 * Make an empty heap. A NULL allocator is malloc; the struct is copied.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if out is NULL or the allocator lacks a function or has a
 * reserved word that is not zero; WQ_ENOMEM.
 */
WQ_API WQ_MUST_CHECK int wq_heap_new(wq_heap **out, const wq_allocator *allocator);

/*
 * Free a heap. NULL is allowed.
 *
 * Ownership: the values are the caller's.
 *
 * Returns how many elements were left.
 */
WQ_API wq_number wq_heap_free(wq_heap *h);

/*
 * Add a value. *elem, unless elem is NULL, receives the handle.
 *
 * Ownership: the heap keeps the pointer, not what it points to.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if h is NULL; WQ_ENOMEM: nothing was added.
 */
WQ_API int wq_heap_add(wq_heap *h, int64_t priority, void *value, wq_heap_elem *elem);

/*
 * Get the first element. wq_heap_peek() leaves it in the heap, wq_heap_pop() removes it. priority
 * and value may be NULL.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EAGAIN if the heap is empty; WQ_EINVAL if h is NULL.
 */
WQ_API int wq_heap_peek(const wq_heap *h, int64_t *priority, void **value);
WQ_API int wq_heap_pop(wq_heap *h, int64_t *priority, void **value);

/*
 * Remove an element or change its priority. wq_heap_remove() removes it; value may be NULL.
 * wq_heap_update() gives it another priority; among equal priorities it then comes last.
 *
 * Returns WQ_OK.
 *
 * Errors (nothing has changed):
 *   WQ_EOTHERQUEUE  the element belongs to another heap
 *   WQ_ESTALE       the element has left this heap
 *   WQ_EINVAL       h is NULL
 */
WQ_API int wq_heap_remove(wq_heap *h, wq_heap_elem elem, void **value);
WQ_API int wq_heap_update(wq_heap *h, wq_heap_elem elem, int64_t priority);

/*
 * Count the elements.
 *
 * Returns the number of elements.
 *
 * Errors: WQ_EINVAL if h is NULL.
 */
WQ_API wq_number wq_heap_size(const wq_heap *h);

#ifdef __cplusplus
}
#endif
#endif
