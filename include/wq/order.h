/*
 * The order in which ready keys are handed out. The default is first in,
 * first out; a program may bring its own.
 *
 *     wq_order o = {.push = push, .pop = pop, .ctx = &heap, .room = sizeof(struct mine)};
 *     wq_new(&q, &(wq_options){.order = &o});
 *
 * An order holds nodes, never keys: the queue owns the memory, counts the
 * nodes, and tells the order which come and go. All hooks run under the
 * queue's lock. They may not fail, block, or call the queue (but for the
 * wq_node_... functions), and must not throw, longjmp or end the thread.
 */
#ifndef WQ_ORDER_H
#define WQ_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a key enters the line. */
enum wq_where { WQ_TAIL = 0, WQ_HEAD = 1 };

/*
 * One ready key as an order sees it. The links are the order's own from push
 * until pop or remove; they hold nothing of value before and after.
 */
typedef struct wq_node {
	void *link[2];
} wq_node;

/*
 * push:   takes a node in; where is WQ_TAIL for an add, WQ_HEAD for a key
 *         that a worker gave back to the head of the line.
 * pop:    hands out the next node. Called only while the order holds one.
 * touch:  a key that is in line was added again. Optional.
 * remove: takes a node out of the middle. Optional: without it a cancelled
 *         key stays in the order and is skipped when popped.
 * free:   called once, by wq_free() or by a wq_new() that fails, when the
 *         order is used no more (it may still hold nodes). It may not use the
 *         registry that the queue is in, whose lock may be held. Optional.
 * room:   bytes of the order's own beside each key, see wq_node_room(), at
 *         most WQ_ORDER_ROOM_MAX. They are zero when the key becomes live
 *         and keep their value as long as it lives.
 *
 * The struct is copied by wq_new(); `ctx` belongs to one queue.
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

/* The key of a node and, if len is not NULL, its length; a NUL follows it. Only inside hooks. */
WQ_API const void *wq_node_key(const wq_node *node, size_t *len);

/* When the key was added, in the queue's time. Only inside hooks. */
WQ_API int64_t wq_node_added_ns(const wq_node *node);

/* The order's own bytes beside the key, aligned to 8; none if room is 0. Only inside hooks. */
WQ_API void *wq_node_room(wq_node *node);

#ifdef __cplusplus
}
#endif
#endif
