/*
 * What calls answer. A value >= 0 is a success: WQ_OK, an outcome, or a
 * count. A value < 0 is an error, and nothing has changed unless the call
 * says otherwise. The numbers are fixed: they never change their meaning.
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
 * What calls answer that count or tell a time: >= 0 is the number, < 0 a status. The same as int64_t;
 * the name tells readers and binding generators that errors come the same way.
 */
typedef int64_t wq_value;

/* X(name, number, text): the one list behind the enum, wq_strerror() and the man page. */
#define WQ_STATUS_LIST(X)                                                                          \
	X(WQ_OK, 0, "success")                                                                     \
	X(WQ_QUEUED, 1, "the key was put in line")                                                 \
	X(WQ_MERGED, 2, "the key was in line already; this add merged with that one")              \
	X(WQ_MARKED, 3, "a worker holds the key; it comes back when that worker is done")          \
	X(WQ_DELAYED, 4, "the key waits for its due time")                                         \
	X(WQ_MOVED, 5, "the key was waiting; its time was changed")                                \
	X(WQ_KEPT, 6, "the key was waiting; it kept its time")                                     \
	X(WQ_CANCELLED, 7, "the key was cancelled")                                                \
	X(WQ_LEFT, 8, "the queue is shut down; keys were left over")                               \
	X(WQ_DEAD, 9, "the key has failed as often as max_attempts allows, and was given up")      \
	X(WQ_EINVAL, -1, "invalid argument")                                                       \
	X(WQ_ENOMEM, -2, "out of memory")                                                          \
	X(WQ_ESHUTDOWN, -3, "shut down or stopped")                                                \
	X(WQ_EFULL, -4, "the queue holds as many keys as max_keys allows")                         \
	X(WQ_ETOOLONG, -5, "the key is longer than WQ_KEY_MAX")                                    \
	X(WQ_ETIMEDOUT, -6, "the deadline passed")                                                 \
	X(WQ_EAGAIN, -7, "nothing is ready now")                                                   \
	X(WQ_EINTERRUPTED, -8, "interrupted by wq_interrupt or released by wq_shutdown")           \
	X(WQ_ESTALE, -9, "no longer valid: handed back, fired or gone already")                    \
	X(WQ_EOTHERQUEUE, -10, "the item belongs to another queue")                                \
	X(WQ_EBUSY, -11, "in use: held, waited in, worked on, not empty, or owned by another")     \
	X(WQ_EDEADLK, -12, "the call would wait for itself")                                       \
	X(WQ_ENOTFOUND, -13, "no such key")                                                        \
	X(WQ_ENOTSUP, -14, "the engine does not do this")                                          \
	X(WQ_EVERSION, -15, "the engine was built for another version of the interface")           \
	X(WQ_EIO, -16, "storage, network or the system failed: no descriptor, thread or port")     \
	X(WQ_EEXIST, -17, "the registry has a queue of this name")                                 \
	X(WQ_EFORKED, -18, "made before fork(): this process may not use it")

#define WQ_STATUS_ENUM(name, number, text) name = (number),
enum wq_status { WQ_STATUS_LIST(WQ_STATUS_ENUM) };
#undef WQ_STATUS_ENUM

/*
 * The text of a status, in English, without a full stop. Any number is
 * accepted; an unknown one gets "unknown status". The string is static.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API const char *wq_strerror(int status);

/* The name of a status, "WQ_EFULL"; "?" for an unknown one. Threads: any. */
WQ_API const char *wq_status_name(int status);

/* The longest text of wq_last_error(), its NUL included. */
#define WQ_ERROR_MAX 256

/*
 * Why the last call of this thread failed, where a status has more than one cause: every call that
 * takes options, makes something or talks to another system, as "spin_ns is 2000000, more than
 * WQ_MILLISECOND". Calls that succeed, and those whose status says it all, leave it as it is; so
 * ask right after a failure. "" if nothing has failed yet. One line of English, without a full stop.
 *
 * The text belongs to the thread and is valid until its next call that fails, or its end.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API const char *wq_last_error(void);

/*
 * For engines and other libraries on top of wq: make `reason` this thread's wq_last_error(), and
 * return the status. NULL: the status's own text.
 */
WQ_API int wq_fail(int status, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
