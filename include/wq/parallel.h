/*
 * A loop whose pieces are shared by several threads.
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

/* Works on one piece. 0 goes on; any other value stops the loop. */
typedef int (*wq_piece_fn)(void *ctx, size_t piece);

typedef struct wq_parallel_options {
	/*
	 * Threads, the calling one included: 1 to 4096. The others exist only during the call, and
	 * block the signals that the calling one blocks.
	 */
	uint32_t workers;
	uint32_t reserved0; /* must be zero */
	/*
	 * So many pieces in a row go to one thread, at least; 0 is 1. Larger chunks keep
	 * neighbours together; they are not needed for speed.
	 */
	size_t chunk;
	/*
	 * The loop stops once this int is not 0. Whoever likes writes it, with
	 * __atomic_store_n(). NULL: none.
	 */
	const int *stop;
	/* Of each thread, as in wq_pool_options. */
	size_t stack_size;
	uint64_t reserved[4]; /* must be zero */
} wq_parallel_options;

/*
 * Call fn for every piece from 0 to pieces - 1, once each, in no particular order,
 * by several threads at once. [PIECES] If nothing stops it, every piece was worked on when
 * it returns; once it is stopped, no further piece begins, and those that run are
 * finished. Pieces may be as unequal as they like: a thread that has nothing
 * left takes over half of what another one has.
 *
 * If the system has fewer threads than asked for, fewer work.
 *
 * Returns how many pieces were worked on, the one that stopped it included (why it stopped fn
 * leaves in ctx), or
 *   WQ_EINVAL  fn or options is NULL; workers 0 or above 4096; more than INT64_MAX
 *              pieces; a reserved word not zero
 *   WQ_ENOMEM  nothing was done
 *   WQ_EFORKED fn has returned in the child of a fork(), which has no other thread: not all pieces
 *              were worked on. (In another thread than the calling one, the child is stopped by
 *              abort() instead.)
 *
 * Threads: any. fn must not throw, longjmp or end the thread; it may call
 * wq_parallel(). Blocks: until all threads are done.
 */
WQ_API wq_value wq_parallel(size_t pieces, wq_piece_fn fn, void *ctx,
                           const wq_parallel_options *options);

#ifdef __cplusplus
}
#endif
#endif
