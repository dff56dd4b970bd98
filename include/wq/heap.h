/*
 * A priority queue: the element with the smallest priority comes first, and
 * among equal ones the one that was added first.
 *
 *     wq_heap *h;
 *     wq_heap_elem e;
 *     wq_heap_new(&h, NULL);
 *     wq_heap_add(h, 30, job, &e);
 *     wq_heap_update(h, e, 5);                 // more urgent now
 *     while (wq_heap_pop(h, NULL, &job) == WQ_OK)
 *         run(job);
 *     wq_heap_free(h);
 *
 * Threads: none of its own and no lock. The caller serialises all calls on one
 * heap; different heaps are independent. Nothing blocks. All operations are
 * O(log n), peek and size O(1).
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
 * Names one element of one heap, from add until it leaves. May be copied and
 * kept: a name whose element has left, or that belongs to another heap, is
 * detected (names die with their heap). The fields are the heap's own.
 */
typedef struct wq_heap_elem {
	const void *heap;
	uint32_t index;
	uint32_t generation;
} wq_heap_elem;

/*
 * Make an empty heap. allocator may be NULL: malloc. It is copied.
 * Returns WQ_OK, WQ_EINVAL (out is NULL, or an allocator without functions or with a
 * reserved word not zero), WQ_ENOMEM.
 */
WQ_API int wq_heap_new(wq_heap **out, const wq_allocator *allocator);

/* Free the heap; its values are the caller's. Returns how many were left; 0 for NULL. */
WQ_API wq_value wq_heap_free(wq_heap *h);

/*
 * Add a value. elem may be NULL. The heap keeps the pointer, not what it points to.
 * Returns WQ_OK, WQ_EINVAL (h is NULL), or WQ_ENOMEM: nothing was added.
 */
WQ_API int wq_heap_add(wq_heap *h, int64_t priority, void *value, wq_heap_elem *elem);

/*
 * The first element, which stays. Either pointer may be NULL.
 * Returns WQ_OK, WQ_EAGAIN: the heap is empty, or WQ_EINVAL.
 */
WQ_API int wq_heap_peek(const wq_heap *h, int64_t *priority, void **value);

/* The same, and it leaves. */
WQ_API int wq_heap_pop(wq_heap *h, int64_t *priority, void **value);

/*
 * Take one element out, wherever it stands. value may be NULL.
 *
 * Returns WQ_OK, or, with nothing changed:
 *   WQ_EOTHERQUEUE  the element belongs to another heap
 *   WQ_ESTALE       it has left this one
 *   WQ_EINVAL       h is NULL
 */
WQ_API int wq_heap_remove(wq_heap *h, wq_heap_elem elem, void **value);

/*
 * Give an element another priority. Among equal ones it then counts as the
 * one added last. Returns as wq_heap_remove().
 */
WQ_API int wq_heap_update(wq_heap *h, wq_heap_elem elem, int64_t priority);

/* How many elements it holds; WQ_EINVAL for NULL. */
WQ_API wq_value wq_heap_size(const wq_heap *h);

#ifdef __cplusplus
}
#endif
#endif
