/*
 * A parallel loop: several threads share the pieces of one loop.
 *
 *     static int piece(void *ctx, size_t i) { work_on(i); return 0; }
 *
 *     wq_parallel(1000, piece, NULL, &(wq_parallel_options){.workers = 8});
 */
#ifndef WQ_PARALLEL_H
#define WQ_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include <wq/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Works on one piece. Not 0: stops the loop. */
typedef int (*wq_piece_fn)(void *ctx, size_t piece);

/* Options of wq_parallel(). workers is required; the rest may be zero. */
typedef struct wq_parallel_options {
	/*
	 * Threads, including the calling one: 1 to 4096. The others exist only during the call,
	 * and block the signals that the calling thread blocks.
	 */
	uint32_t workers;
	uint32_t reserved0; /* must be zero */
	/*
	 * The least number of consecutive pieces for one thread; 0 is 1. Larger chunks keep
	 * neighbours together; they are not needed for speed.
	 */
	size_t chunk;
	/*
	 * The loop stops once this int is not 0. Any thread may set it, with
	 * __atomic_store_n(). NULL: none.
	 */
	const int *stop;
	/* Stack size of each thread, as in wq_pool_options. */
	size_t stack_size;
	uint64_t reserved[4]; /* must be zero */
} wq_parallel_options;

/*
 * Run the pieces of a loop in several threads. Calls fn once for every piece from 0 to pieces - 1,
 * in no particular order, several at once. [PIECES] If nothing stops the loop, every piece has
 * been worked on when it returns; once it is stopped, no further piece begins, and those that run
 * are finished. Pieces may take different times: a thread that has no pieces left takes over half
 * of those of another one. If the system cannot start enough threads, fewer work.
 *
 * Returns how many pieces were worked on, including the one that stopped the loop (fn may store
 * the reason in ctx).
 *
 * Errors:
 *   WQ_EINVAL  fn or options is NULL; workers is 0 or above 4096; more than INT64_MAX pieces; a
 *              reserved word is not zero
 *   WQ_ENOMEM  out of memory; no piece was worked on
 *   WQ_EFORKED fn returned in the child of a fork(), which has no other thread; not all pieces were
 *              worked on. In another thread than the calling one, abort() stops the child instead
 *
 * Threads: any. fn must not throw, longjmp or end the thread; it may call wq_parallel().
 * Blocks: until all threads have finished.
 */
WQ_API wq_number wq_parallel(size_t pieces, wq_piece_fn fn, void *ctx,
                             const wq_parallel_options *options);

#ifdef __cplusplus
}
#endif
#endif
