/*
 * A pool: worker threads that get keys, call one handler for each, and settle them by its verdict.
 *
 *     static wq_verdict reconcile(void *ctx, const wq_item *it)
 *     {
 *         (void)ctx;
 *         return bring_up_to_date(it->key, it->len) == 0 ? WQ_DONE : WQ_RETRY;
 *     }
 *
 *     wq_pool *p;
 *     if (wq_pool_start(&p, q, &(wq_pool_options){.workers = 8, .handler = reconcile}) < 0)
 *         return 1;
 *     ...
 *     wq_report report;
 *     if (wq_pool_drain_for(p, 10 * WQ_SECOND, NULL, &report) != WQ_OK)   // finishes, stops
 *         fprintf(stderr, "%" PRIu64 " keys have failed\n", report.retries);
 *     wq_pool_free(p);
 *     wq_free(q);
 *
 * The handler returns a verdict (wq/types.h): WQ_DONE, WQ_RETRY, wq_retry_after(),
 * wq_again_after(), WQ_DROP or WQ_FATAL. It does not end the hold itself. A verdict of an unknown
 * kind, which only a cast can make, counts as WQ_RETRY.
 *
 * [POOL] A key that a worker has got is settled by the verdict of its handler, whatever happens to
 * the pool meanwhile. Stopping a pool does not shut its queue down. A queue may have several
 * pools.
 *
 * Threads: any thread may call any function, handlers included, except where WQ_EDEADLK is
 * documented. Handlers must not throw, longjmp or end the thread.
 *
 * Signals: the pool's threads block the signals that the caller of wq_pool_start() blocks. So a
 * process that a handler starts (fork, posix_spawn, system) has the program's own signal mask and
 * timer slack. A signal to the program may be delivered to a worker, as to any thread: handlers
 * may see EINTR. To avoid that, block the signals that the program waits for (sigwait, signalfd)
 * before it starts threads, and unblock them in the processes that it starts; or set
 * block_signals.
 *
 * fork: in the child all calls on the pool answer WQ_EFORKED. wq_pool_free() answers WQ_OK there
 * and frees nothing. The child of a handler must call exec or _exit: if it returns from the
 * handler, abort() stops it.
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

/* Works on one key. The item is valid during the call. */
typedef wq_verdict (*wq_handler)(void *ctx, const wq_item *item);

/* A handler that takes longer than slow_ns. The key is valid during the callback. */
typedef struct wq_slow_handler {
	const void *key;
	size_t len;
	uint32_t attempts;
	uint32_t worker;
	int64_t running_ns; /* how long it has run */
	uint64_t reserved[3];
} wq_slow_handler;

/* Options of wq_pool_start(). workers and handler are required; the rest may be zero. */
typedef struct wq_pool_options {
	uint32_t workers; /* 1 to WQ_WORKERS_MAX */
	uint32_t paused;  /* 1: start paused */
	wq_handler handler;
	void *ctx; /* passed to all callbacks */
	/* Threads are named NAME-0, NAME-1 ...; NULL: "wq". The system shows at most 15 bytes. */
	const char *name;
	/*
	 * Stack size of each thread; 0: the system's default. A smaller size than the system's
	 * minimum is raised to it.
	 */
	size_t stack_size;
	/* Called in each worker's thread, first and last, with the worker's number. Optional. */
	void (*on_start)(void *ctx, uint32_t worker);
	void (*on_end)(void *ctx, uint32_t worker);
	/*
	 * How long a handler may take for one key; 0: no limit. A slow handler is reported once
	 * and counted; it is not stopped. A thread that watches is started only if this is > 0.
	 */
	int64_t slow_ns;
	/*
	 * Called for a slow handler, outside all locks, in the watching thread, or in the
	 * worker's if the handler ends at that moment; so several may run at once. Optional.
	 */
	void (*on_slow)(void *ctx, const wq_slow_handler *slow);
	/*
	 * 0: the pool's threads block the signals that the caller of wq_pool_start() blocks, those
	 * that wq_pool_resize() starts too. 1: all signals except those of faults (SIGSEGV and the
	 * like); a process that a handler starts then blocks them as well, and ignores SIGTERM.
	 */
	uint32_t block_signals;
	uint32_t reserved0;   /* must be zero */
	uint64_t reserved[5]; /* must be zero */
} wq_pool_options;

/*
 * Start a pool of workers. The options are copied. On a queue that is shut down the workers finish
 * what is queued, and end.
 *
 * Returns WQ_OK.
 *
 * Errors (no thread is left behind):
 *   WQ_EINVAL  out, q, options or the handler is NULL; workers is 0 or above WQ_WORKERS_MAX;
 *              slow_ns < 0; paused or block_signals above 1; a reserved word is not zero
 *   WQ_ENOMEM  out of memory
 *   WQ_EIO     the system cannot start a thread
 *   WQ_EFORKED this is the child of a fork(), and the queue was made before it
 */
WQ_API WQ_MUST_CHECK int wq_pool_start(wq_pool **out, wq_queue *q, const wq_pool_options *options);

/*
 * Change the number of workers to n. More workers start at once. Surplus workers end, each when it
 * has settled its key. On a queue that is shut down they end as soon as nothing is left.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL     p is NULL; n is 0 or above WQ_WORKERS_MAX
 *   WQ_ESHUTDOWN  the pool is stopped
 *   WQ_ENOMEM     out of memory; the number is unchanged
 *   WQ_EIO        the system cannot start a thread; the number is unchanged
 *
 * Blocks: no (it joins workers that have ended).
 */
WQ_API int wq_pool_resize(wq_pool *p, uint32_t n);

/*
 * Pause a pool, or resume it. [PAUSE] After wq_pool_pause() no worker gets a key until
 * wq_pool_resume(). Keys that were got before are finished, also one whose handler is about to
 * begin. Both may be called again. A drain of the queue resumes its pools.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if p is NULL.
 *
 * Blocks: no.
 */
WQ_API int wq_pool_pause(wq_pool *p);
WQ_API int wq_pool_resume(wq_pool *p);

/*
 * Stop a pool: end all workers, each when it has settled its key, and wait for that. The queue is
 * not shut down. A stopped pool cannot be started again: start another one. wq_pool_stop_until()
 * takes a deadline on the queue's clock, wq_pool_stop_for() a timeout; a timeout <= 0 tries once.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_ETIMEDOUT  some workers have not ended: their handlers still run, or the time was too
 *                 short for the last steps of their threads. It may be called again
 *   WQ_EDEADLK    called by a handler or callback of this pool; the workers end nevertheless
 *   WQ_EINVAL     p is NULL, or deadline_ns < 0
 *
 * Blocks: until the workers have ended or the time has passed.
 */
WQ_API int wq_pool_stop_until(wq_pool *p, int64_t deadline_ns);
WQ_API int wq_pool_stop_for(wq_pool *p, int64_t timeout_ns);

/*
 * Drain the queue, as wq_drain_until(), and then stop the pool, within one deadline.
 * wq_pool_drain_for() takes a timeout.
 *
 * Returns as wq_drain_until(): WQ_OK, or WQ_LEFT if keys are left over.
 *
 * Errors: those of wq_drain_until(); WQ_ETIMEDOUT also if only the end of the workers took too
 * long. After WQ_EINVAL and WQ_EDEADLK nothing was begun; after anything else the workers get no
 * more keys.
 *
 * Blocks: yes.
 */
WQ_API WQ_MUST_CHECK int wq_pool_drain_until(wq_pool *p, int64_t deadline_ns,
                                             const wq_drain_options *options, wq_report *report);
WQ_API WQ_MUST_CHECK int wq_pool_drain_for(wq_pool *p, int64_t timeout_ns,
                                           const wq_drain_options *options, wq_report *report);

/*
 * Stop a pool, wait for its handlers without a limit, and free it. NULL is allowed.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EDEADLK if called by a handler or a callback of this pool; nothing has changed.
 *
 * Threads: no other call on the pool may run beside it. Blocks: until the handlers have returned.
 */
WQ_API int wq_pool_free(wq_pool *p);

/* What a pool did. Each key that was handled is counted in exactly one of the first eight. */
typedef struct wq_pool_counts {
	uint64_t done;          /* WQ_DONE */
	uint64_t retried;       /* waits or is queued for its next attempt */
	uint64_t again;         /* wq_again_after() */
	uint64_t dropped;       /* WQ_DROP */
	uint64_t dead;          /* its last attempt failed, or WQ_FATAL */
	uint64_t left;          /* to be retried or added again, but the queue is shut down */
	uint64_t cancelled;     /* to be retried or added again, but cancelled meanwhile */
	uint64_t stale;         /* the handler ended the hold itself */
	uint64_t slow_handlers; /* handlers that took longer than slow_ns */
	uint32_t workers;       /* threads that have not ended */
	uint32_t busy;          /* of those, in a handler */
	uint64_t reserved[4];
} wq_pool_counts;

/*
 * Count what a pool did, by outcome.
 *
 * Returns WQ_OK and fills *out.
 *
 * Errors: WQ_EINVAL if p or out is NULL.
 *
 * Blocks: no.
 */
WQ_API int wq_pool_count(wq_pool *p, wq_pool_counts *out);

#ifdef __cplusplus
}
#endif
#endif
