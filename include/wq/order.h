/*
 * Custom orders: which queued key is handed out next. The default is first in, first out.
 *
 *     wq_order o = {.push = push, .pop = pop, .ctx = &heap, .room = sizeof(struct mine)};
 *     if (wq_new(&q, &(wq_options){.order = &o}) < 0)
 *         return 1;
 *
 * A queue with an order has no priorities and no groups (wq/priority.h, wq/group.h).
 *
 * An order holds nodes, never keys: the queue owns the memory, counts the nodes, and calls the
 * order when one comes or goes. All hooks run under the queue's lock. They may not fail, block, or
 * call the queue (except the wq_node_... functions), and must not throw, longjmp or end the
 * thread.
 */
#ifndef WQ_ORDER_H
#define WQ_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a key is queued. */
enum wq_where { WQ_TAIL = 0, WQ_HEAD = 1 };

/*
 * One queued key, as an order sees it. The order may use the links from push until pop or remove;
 * before and after that their values have no meaning.
 */
typedef struct wq_node {
	void *link[2];
} wq_node;

/*
 * A custom order.
 *
 * push:   take a node; where is WQ_TAIL for an add, WQ_HEAD for a key that wq_requeue() put at
 *         the head.
 * pop:    return the next node. Called only while the order holds one.
 * touch:  a queued key was added again. Optional.
 * remove: take out this node. Optional: without it a cancelled key stays in the order and is
 *         skipped when it is popped.
 * free:   called once, by wq_free() or by a wq_new() that fails, when the order is no longer
 *         used (it may still hold nodes). It may not use the queue's registry, whose lock may be
 *         held. Optional.
 * room:   bytes for the order beside each key, see wq_node_room(), at most WQ_ORDER_ROOM_MAX.
 *         They are zero when the key enters the queue and keep their value until it leaves.
 *
 * wq_new() copies the struct; `ctx` belongs to one queue.
 */
typedef struct wq_order {
	void (*push)(void *ctx, wq_node *node, enum wq_where where);
	wq_node *(*pop)(void *ctx);
	void (*touch)(void *ctx, wq_node *node);
	void (*remove)(void *ctx, wq_node *node);
	void (*free)(void *ctx);
	void *ctx;
	size_t room;
	uint64_t reserved[4]; /* must be zero */
} wq_order;

#define WQ_ORDER_ROOM_MAX 256

/*
 * Get the key of a node. *len, unless len is NULL, receives its length.
 *
 * Returns the bytes of the key; a NUL follows them.
 *
 * Threads: only inside hooks.
 */
WQ_API const void *wq_node_key(const wq_node *node, size_t *len);

/*
 * Get the time at which the key of a node was added.
 *
 * Returns the time on the queue's clock.
 *
 * Threads: only inside hooks.
 */
WQ_API int64_t wq_node_added_ns(const wq_node *node);

/*
 * Get the bytes of the order beside the key of a node.
 *
 * Returns room bytes, aligned to 8; there are none if room is 0.
 *
 * Threads: only inside hooks.
 */
WQ_API void *wq_node_room(wq_node *node);

#ifdef __cplusplus
}
#endif
#endif
