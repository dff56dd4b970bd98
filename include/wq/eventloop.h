/*
 * A queue in an event loop, without threads.
 *
 *     struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};
 *
 *     int rc = WQ_EAGAIN;
 *
 *     while (rc == WQ_EAGAIN && poll(&p, 1, -1) > 0)       // until WQ_ESHUTDOWN
 *         while ((rc = wq_try_get(q, &it)) == WQ_OK)
 *             wq_settle(q, &it, work(&it));
 *
 * wq/queue.h includes this header; threads, states and times are described there.
 */
#ifndef WQ_EVENTLOOP_H
#define WQ_EVENTLOOP_H

#include <wq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * [FD] Get a descriptor for poll, select or epoll. It is readable when a key is ready, when a
 * waiting key comes due or a group gets a token (on the real clock), and when the queue is shut
 * down.
 *
 * The first call makes the descriptor; later calls return the same one. It is close-on-exec. It
 * stays readable until a get without waiting (wq_try_get()) finds no key, so it may be readable
 * although another thread took the key. After a shutdown it stays readable, except while all queued
 * keys are blocked: leave the loop at WQ_ESHUTDOWN. It may be readable although no key is ready,
 * after a waiting key was moved or cancelled, or when a group without queued keys gets a token. Do
 * not read from it.
 *
 * EPOLLET may be used, if each event is followed by gets without waiting until one does not answer
 * WQ_OK: that get makes the descriptor ready for the next edge.
 *
 * Ownership: the queue's. wq_free() closes it.
 *
 * Returns the descriptor.
 *
 * Errors: WQ_EINVAL if q is NULL; WQ_EIO if no descriptor could be made.
 *
 * Blocks: no.
 */
WQ_API int wq_fd(wq_queue *q);

/*
 * Tell when the next waiting key comes due, or the next group gets a token (wq_options.group_rate).
 * The answer may be too early: after a cancel, or for a group that has no queued key then. It is
 * for event loops that cannot poll wq_fd(), which becomes readable at that time, or that run on a
 * clock of their own.
 *
 * Returns the time on the queue's clock; WQ_NEVER if no key comes due and no group waits for a
 * token. In a queue that is shut down and leaves waiting keys over, only groups count.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no.
 */
WQ_API wq_number wq_next_deadline(wq_queue *q);

/*
 * Tell the queue that its clock has jumped: every thread that sleeps until some time reads the
 * clock again. Only a custom clock (wq/clock.h) needs it.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if q is NULL.
 *
 * Blocks: no.
 */
WQ_API int wq_clock_changed(wq_queue *q);

#ifdef __cplusplus
}
#endif
#endif
