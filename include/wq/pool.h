/*
 * A pool of workers for a queue: the loop of get, work, done or retry, in
 * threads of its own, around one handler.
 *
 *     static wq_verdict reconcile(void *ctx, const wq_item *it)
 *     {
 *         return look_at(it->key, it->len) == 0 ? WQ_DONE : WQ_RETRY;
 *     }
 *
 *     wq_pool *p;
 *     wq_pool_start(&p, q, &(wq_pool_options){.workers = 8, .handler = reconcile});
 *     ...
 *     wq_drain_for(q, 10 * WQ_SECOND, NULL, &report);   // the workers finish what there is
 *     wq_pool_free(p);
 *     wq_free(q);
 *
 * The handler returns a verdict, see wq_settle(): WQ_DONE, WQ_RETRY, wq_retry_after(),
 * wq_again_after(), WQ_DROP or WQ_FATAL. It does not hand the item back itself. (A verdict of an
 * unknown kind, which only a cast can make, counts as WQ_RETRY.)
 *
 * [POOL] A key that a worker has taken is settled by what its handler answers,
 * whatever happens to the pool meanwhile. Stopping a pool never shuts its
 * queue. Several pools may work on one queue.
 *
 * Threads: any function may be called by any thread, handlers included, but where
 * WQ_EDEADLK is said. Handlers must not throw, longjmp or end the thread.
 *
 * Signals: the pool's threads block what the caller of wq_pool_start() blocks. So a process that
 * a handler starts (fork, posix_spawn, system) has the program's own signal mask, and its timer
 * slack. A signal to the program may arrive in a worker, as in any thread: handlers may see EINTR.
 * A program that does not want that blocks the signals it waits for (sigwait, signalfd) before it
 * starts its threads, and unblocks them in the processes that it starts; or gives block_signals.
 *
 * fork: in the child all calls on the pool answer WQ_EFORKED, but wq_pool_free(), which is WQ_OK and
 * gives nothing back. The child of a handler has to exec or _exit: if it returns from the handler, it is
 * stopped by abort().
 */
#ifndef WQ_POOL_H
#define WQ_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <wq/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_pool wq_pool;

#define WQ_WORKERS_MAX 4096

typedef wq_verdict (*wq_handler)(void *ctx, const wq_item *item);

/* A handler that has slow_handlers its time. The key is valid during the callback. */
typedef struct wq_slow_handler {
	const void *key;
	size_t len;
	uint32_t attempts;
	uint32_t worker;
	int64_t running_ns; /* so long by now */
	uint64_t reserved[3];
} wq_slow_handler;

/* Workers and handler have to be given; the rest may be zero. */
typedef struct wq_pool_options {
	uint32_t workers; /* 1 to WQ_WORKERS_MAX */
	uint32_t paused;  /* 1: start paused */
	wq_handler handler;
	void *ctx; /* handed to all callbacks */
	/* Threads are called NAME-0, NAME-1 ...; NULL: "wq". At most 15 bytes are seen. */
	const char *name;
	/* Of each thread, in bytes, at least what the system needs; 0: the system's default. */
	size_t stack_size;
	/* Called in each worker's thread, first and last, with the worker's number. Optional. */
	void (*on_start)(void *ctx, uint32_t worker);
	void (*on_end)(void *ctx, uint32_t worker);
	/*
	 * How long a handler may take with one key; 0: as long as it likes. One that takes
	 * longer is reported once, and counted; nothing else happens to it. A thread
	 * that watches is started only if this is given.
	 */
	int64_t slow_ns;
	/*
	 * Called outside all locks, in the watching thread, or in the worker's own if the
	 * handler ends at that moment; so in several at once. Optional.
	 */
	void (*on_slow)(void *ctx, const wq_slow_handler *o);
	/*
	 * 0: the pool's threads block the signals that the caller of wq_pool_start() blocks, those
	 * that come by wq_pool_resize() too. 1: all but those of faults (SIGSEGV and the like); what
	 * a handler starts as another process then blocks them as well, and ignores SIGTERM.
	 */
	uint32_t block_signals;
	uint32_t reserved0;   /* must be zero */
	uint64_t reserved[5]; /* must be zero */
} wq_pool_options;

/*
 * Start the workers. The options are copied.
 *
 * Returns WQ_OK, or, with no thread left behind:
 *   WQ_EINVAL  a NULL out, queue, options or handler; workers 0 or above
 *              WQ_WORKERS_MAX; slow_ns < 0; paused or block_signals above 1; a reserved word
 *              not zero
 *   WQ_EFORKED the queue was made before a fork, and this is the child
 *   WQ_ENOMEM
 *   WQ_EIO     the system has no thread left
 *
 * A queue that is shut down already: the workers finish what is there, and end.
 */
WQ_API int wq_pool_start(wq_pool **out, wq_queue *q, const wq_pool_options *options);

/*
 * Have n workers. More are started at once; fewer: as many end, each when it is done with
 * the key it has. On a queue that is shut down they end as soon as nothing is left.
 *
 * Returns WQ_OK, or WQ_EINVAL (p is NULL; n is 0 or above WQ_WORKERS_MAX),
 * WQ_ESHUTDOWN (the pool is stopped), WQ_ENOMEM or WQ_EIO (it has as many as before).
 * Blocks: no (it joins workers that have ended).
 */
WQ_API int wq_pool_resize(wq_pool *p, uint32_t n);

/*
 * [PAUSE] No worker takes a key from now on, until wq_pool_resume(). Keys that were taken
 * are finished, also one whose handler is just about to begin. Both may be called again. A
 * drain of the queue resumes its pools.
 *
 * Return WQ_OK, or WQ_EINVAL if p is NULL. Block: no.
 */
WQ_API int wq_pool_pause(wq_pool *p);
WQ_API int wq_pool_resume(wq_pool *p);

/*
 * End all workers, each when it is done with the key it has, and wait for that
 * until the deadline (of the queue's clock). The queue goes on: it is not shut. The pool
 * does not begin again: start another one.
 *
 * Returns WQ_OK, or:
 *   WQ_ETIMEDOUT  some have not ended: their handlers still run, or there was no time to wait for
 *                 the last steps of their threads. It may be called again
 *   WQ_EDEADLK    called by a handler of this pool, or by a callback of it; the workers
 *                 end all the same
 *   WQ_EINVAL     p is NULL, deadline < 0
 */
WQ_API int wq_pool_stop_until(wq_pool *p, int64_t deadline_ns);

/* The same with a span from now. A span <= 0 looks once. */
WQ_API int wq_pool_stop_for(wq_pool *p, int64_t timeout_ns);

/*
 * wq_drain_until() of the queue, and then the end of the workers, within one deadline.
 * Answers like the drain, or, if only the workers' end took too long, WQ_ETIMEDOUT. After WQ_EINVAL
 * and WQ_EDEADLK nothing was begun; after anything else the workers take no more keys.
 */
WQ_API int wq_pool_drain_until(wq_pool *p, int64_t deadline_ns, const wq_drain_options *options,
                               wq_report *report);

/* The same with a timeout from now, as wq_drain_for(). */
WQ_API int wq_pool_drain_for(wq_pool *p, int64_t timeout_ns, const wq_drain_options *options,
                             wq_report *report);

/*
 * Stop the pool, wait for its handlers, however long they take, and free it.
 * WQ_OK (also for NULL), or WQ_EDEADLK: called by a handler or a callback of
 * this pool, and nothing has changed. No other call on the pool may run beside it.
 */
WQ_API int wq_pool_free(wq_pool *p);

/* What a pool did and does. Each key that was handled is in exactly one of the first eight. */
typedef struct wq_pool_counts {
	uint64_t done;       /* WQ_DONE */
	uint64_t retried;    /* waits or is queued for its next attempt */
	uint64_t again;      /* once more after a while */
	uint64_t dropped;    /* WQ_DROP */
	uint64_t dead;       /* failed max_attempts times */
	uint64_t left;       /* to be retried or to come again, but the queue is shut down */
	uint64_t cancelled;  /* to come again, but cancelled meanwhile */
	uint64_t stale;      /* the handler handed the item back itself */
	uint64_t slow_handlers; /* handlers that took longer than slow_ns */
	uint32_t workers;    /* threads that have not ended */
	uint32_t busy;       /* of those, in a handler */
	uint64_t reserved[4];
} wq_pool_counts;

/* Returns WQ_OK and fills *out, or WQ_EINVAL. Blocks: no. */
WQ_API int wq_pool_count(wq_pool *p, wq_pool_counts *out);

#ifdef __cplusplus
}
#endif
#endif
