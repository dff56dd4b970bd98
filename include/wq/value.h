/*
 * Values: bytes that travel with a key, for example why it was added.
 *
 *     if (wq_new(&q, &(wq_options){.values = 1, .merge = wq_merge_append, .merge_ctx = ","}) < 0)
 *         return 1;
 *     wq_add_with(q, "pod", 3, &(wq_add_options){.value = "created", .value_len = 7});
 *     wq_add_with(q, "pod", 3, &(wq_add_options){.value = "scaled", .value_len = 6});
 *     wq_get(q, &it);                                     // it.value is "created,scaled"
 *
 * wq/queue.h includes this header.
 *
 * [CARRY] A value belongs to the copy that it came with: queued, waiting or dirty. If an add finds
 * such a copy, their values merge: wq_options.merge decides, by default the last one counts. An add
 * without a value leaves the copy's value. An item shows the value of its hold. What is added
 * meanwhile collects for the next hold.
 *
 * [AGAIN] Retry, requeue and wq_again_after() put the value of the hold back, merged with what came
 * since as if it had come before. If the merge fails there (too long, no memory), what came since
 * stays, and wq_snapshot.merge_failed counts it. Done ends the value.
 *
 * Ownership: the queue copies values. Those of items are valid until the hold ends; a NUL follows
 * them.
 */
#ifndef WQ_VALUE_H
#define WQ_VALUE_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Merge two values, for wq_options.merge. wq_merge_last(): the later one. wq_merge_first(): the
 * earlier one. wq_merge_append(): both, with a separator between them: the string ctx, or a line
 * feed if ctx is NULL. wq_merge_or(): the bits of both; a shorter value counts as filled up with
 * zero bytes.
 *
 * Returns the length of the merged value.
 *
 * Errors: WQ_ETOOLONG if it is longer than WQ_VALUE_MAX (wq_merge_append() only).
 *
 * Threads: any. Blocks: no.
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
