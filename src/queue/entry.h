/*
 * Everything about one live key, in one piece of memory: 36 bytes and the key.
 *
 * A key is in line, or held, or neither, never both; so what belongs to the
 * line and what belongs to the hold share their place.
 */
#ifndef WQ_QUEUE_ENTRY_H
#define WQ_QUEUE_ENTRY_H

#include <stddef.h>
#include <stdint.h>
#include <wq/order.h>
#include <wq/queue.h>

#include "base/compiler.h"

struct wq__entry {
	union {
		struct {
			uint32_t next, prev; /* ids; 0: none */
		} line;                      /* QUEUED, FIFO */
		wq_node node;                /* QUEUED, an order of the user's */
		struct {
			uint64_t token;
			int64_t since_ns; /* when the add was made that this hold serves */
		} hold;                   /* RUNNING */
	} u;
	int64_t added_ns; /* QUEUED: when it was added; DIRTY: when it was added again */
	uint32_t hash;
	uint32_t failures;
	uint32_t len_state; /* length << 8 | WQ_STATE_ bits */
	char key[];         /* a NUL follows; then, at a multiple of 8, the order's room */
};

enum { WQ__ENTRY_HEADER = offsetof(struct wq__entry, key), WQ__STATE_MASK = 0xff };

static inline uint32_t wq__entry_len(const struct wq__entry *e)
{
	return e->len_state >> 8;
}

static inline unsigned wq__entry_state(const struct wq__entry *e)
{
	return e->len_state & WQ__STATE_MASK;
}

static inline void wq__entry_set_state(struct wq__entry *e, unsigned state)
{
	e->len_state = (e->len_state & ~(uint32_t)WQ__STATE_MASK) | state;
}

static inline size_t wq__entry_room_offset(size_t len)
{
	return (WQ__ENTRY_HEADER + len + 1 + 7) & ~(size_t)7;
}

/* How much memory a key takes. len is at most WQ_KEY_MAX, room at most WQ_ORDER_ROOM_MAX. */
static inline size_t wq__entry_size(size_t len, size_t room)
{
	return room ? wq__entry_room_offset(len) + room : WQ__ENTRY_HEADER + len + 1;
}

#endif
