/*
 * What calls return. A value >= 0 is a success: WQ_OK, an outcome, or a count. A value < 0 is an
 * error; nothing has changed unless the call's text says otherwise. The numbers never change
 * their meaning.
 *
 *     int rc = wq_add_str(q, "a");
 *     if (rc < 0)
 *         fprintf(stderr, "add: %s\n", wq_strerror(rc));
 */
#ifndef WQ_STATUS_H
#define WQ_STATUS_H

#include <stdint.h>

#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The result of calls that return a count or a time: >= 0 is the number, < 0 a status. It is
 * int64_t; the name tells readers and binding generators that errors are possible.
 */
typedef int64_t wq_number;

/* X(name, number, text): the list behind the enum, wq_strerror() and the man page. */
#define WQ_STATUS_LIST(X)                                                                          \
	X(WQ_OK, 0, "success")                                                                     \
	X(WQ_QUEUED, 1, "the key is queued")                                                       \
	X(WQ_MERGED, 2, "the key was queued or dirty already; the add merged")                     \
	X(WQ_MARKED, 3, "a worker holds the key; it is queued again when the hold ends")           \
	X(WQ_DELAYED, 4, "the key waits for its due time")                                         \
	X(WQ_MOVED, 5, "the key was waiting; its due time was changed")                            \
	X(WQ_KEPT, 6, "the key was waiting; its due time was not changed")                         \
	X(WQ_CANCELLED, 7, "the key was cancelled")                                                \
	X(WQ_LEFT, 8, "the queue is shut down; keys are left over")                                \
	X(WQ_DEAD, 9, "the key is dead: its last attempt failed")                                  \
	X(WQ_EINVAL, -1, "invalid argument")                                                       \
	X(WQ_ENOMEM, -2, "out of memory")                                                          \
	X(WQ_ESHUTDOWN, -3, "shut down or stopped")                                                \
	X(WQ_EFULL, -4, "the queue is full: it has max_keys keys")                                 \
	X(WQ_ETOOLONG, -5, "the key or its value is too long")                                     \
	X(WQ_ETIMEDOUT, -6, "the deadline passed")                                                 \
	X(WQ_EAGAIN, -7, "nothing is ready now")                                                   \
	X(WQ_EINTERRUPTED, -8, "interrupted by wq_interrupt or released by wq_shutdown")           \
	X(WQ_ESTALE, -9, "stale: the hold has ended, or the timer or element is gone")             \
	X(WQ_EOTHERQUEUE, -10, "the item belongs to another queue")                                \
	X(WQ_EBUSY, -11, "in use: held, waited in, not empty, or owned by another")                \
	X(WQ_EDEADLK, -12, "the call would wait for itself")                                       \
	X(WQ_ENOTFOUND, -13, "no such key")                                                        \
	X(WQ_ENOTSUP, -14, "not supported by the engine or the limiter")                           \
	X(WQ_EVERSION, -15, "the engine was built for another version of the interface")           \
	X(WQ_EIO, -16, "storage, network or the system failed: no descriptor, thread or port")     \
	X(WQ_EEXIST, -17, "the registry has a queue of this name")                                 \
	X(WQ_EFORKED, -18, "made before fork(): this process may not use it")

#define WQ_STATUS_ENUM(name, number, text) name = (number),
enum wq_status { WQ_STATUS_LIST(WQ_STATUS_ENUM) };
#undef WQ_STATUS_ENUM

/*
 * Get the text of a status, in English, without a full stop. Any number is accepted.
 *
 * Returns a static string; "unknown status" for an unknown number.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API const char *wq_strerror(int status);

/*
 * Get the name of a status, such as "WQ_EFULL".
 *
 * Returns a static string; "?" for an unknown number.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API const char *wq_status_name(int status);

/* The longest text of wq_last_error(), its NUL included. */
#define WQ_ERROR_MAX 256

/*
 * Get the reason why the last call of this thread failed, such as "spin_ns is 2000000, more than
 * WQ_MILLISECOND". It is one line of English, without a full stop. These calls set it when they
 * fail:
 *
 *   calls that make something       wq_new(), wq_pool_start(), constructors of limiters ...
 *   calls that take options         wq_add_with(), the drains, wq_parallel()
 *   calls that free a shared thing  wq_free(), wq_registry_free(), wq_manual_clock_free()
 *   others with several causes      wq_add_at(), wq_settle(), wq_retry(), wq_settle_next_until(),
 *                                   wq_set_failures(), wq_pool_resize(), wq_manual_clock_set(),
 *                                   wq_manual_clock_advance(), timers that are started
 *
 * For a status with one cause they may leave it unchanged: WQ_ETOOLONG, WQ_EFULL, WQ_ESTALE,
 * WQ_EOTHERQUEUE, WQ_ENOTFOUND, WQ_ETIMEDOUT, WQ_EINTERRUPTED, WQ_EFORKED, and in calls on a queue
 * WQ_ESHUTDOWN and WQ_ENOMEM. The other calls on keys and items (wq_add(), wq_get(), wq_done() and
 * the like) do not set it, except adds for a group that is not a part of its key: their status says
 * it all. The functions wq_options.group and merge may give their reason by wq_fail(). Calls that
 * succeed leave it unchanged, so read it right after a failure.
 *
 * Ownership: the text belongs to the thread. It is valid until the thread's next call that fails,
 * or its end.
 *
 * Returns the text; "" if nothing has failed yet.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API const char *wq_last_error(void);

/*
 * Set this thread's wq_last_error() and return the status. It is for engines and other libraries
 * on top of wq. A NULL reason stands for the text of the status.
 *
 * Returns status.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int wq_fail(int status, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
