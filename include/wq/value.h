/*
 * Values: bytes that travel with a key, for example why it was added.
 *
 *     if (wq_new(&q, &(wq_options){.values = 1, .merge = wq_merge_append, .merge_ctx = ","}) < 0)
 *         return 1;
 *     wq_add_with(q, "pod", 3, &(wq_add_options){.value = "created", .value_len = 7});
 *     wq_add_with(q, "pod", 3, &(wq_add_options){.value = "scaled", .value_len = 6});
 *     if (wq_get(q, &it) == WQ_OK)
 *         puts(it.value);                                 // "created,scaled"
 *
 * wq/queue.h includes this header.
 *
 * [CARRY] A value belongs to the copy of the key that it was added with: queued, waiting or dirty,
 * or a reminder. If an add finds such a copy, their values merge: wq_options.merge decides, by
 * default the last one counts. An add without a value leaves the copy's value; a value of length 0
 * is a value. An item shows the value of its hold. The values of adds since the get merge for the
 * next hold. When a reminder comes due beside another copy, their values merge, too.
 *
 * [AGAIN] Retry, requeue and wq_again_after() put the value of the hold back: it is merged with the
 * values of adds since the get, as the older one. If that merge fails (too long, no memory), only
 * the newer value stays; if the merge with a reminder fails, only the older one.
 * wq_snapshot.merge_failed counts both. Done ends the value, and so does cancel for the copy that
 * it removes. The dead letter sees the value.
 *
 * Cost: 8 bytes per key, and for each value its bytes and 5 to 12 more; they count among the 32 GiB
 * of wq/alloc.h. A merge function other than wq_merge_last() and wq_merge_first() takes 64 KiB per
 * queue.
 *
 * Ownership: the queue copies values. The value of an item is valid until the hold ends; a NUL
 * follows it.
 */
#ifndef WQ_VALUE_H
#define WQ_VALUE_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Merge two values, for wq_options.merge. Each is a wq_merge_fn.
 *
 *   wq_merge_last()    the newer value
 *   wq_merge_first()   the older value
 *   wq_merge_append()  both, with a separator between them: the string ctx, which must outlive the
 *                      queue, or a line feed if ctx is NULL
 *   wq_merge_or()      the bits of both; a shorter value counts as filled up with zero bytes
 *
 * A merge function of the program may call them. out must have room for WQ_VALUE_MAX bytes; a value
 * of length 0 may be NULL.
 *
 * Returns the length of the merged value.
 *
 * Errors: WQ_ETOOLONG if it is longer than WQ_VALUE_MAX (wq_merge_append() only).
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int64_t wq_merge_last(void *ctx, const void *old, size_t old_len, const void *add,
                             size_t add_len, void *out);
WQ_API int64_t wq_merge_first(void *ctx, const void *old, size_t old_len, const void *add,
                              size_t add_len, void *out);
WQ_API int64_t wq_merge_append(void *ctx, const void *old, size_t old_len, const void *add,
                               size_t add_len, void *out);
WQ_API int64_t wq_merge_or(void *ctx, const void *old, size_t old_len, const void *add,
                           size_t add_len, void *out);

#ifdef __cplusplus
}
#endif
#endif
