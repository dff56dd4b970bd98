/*
 * The lane: how plain adds, Gets and dones pass each other in a queue that
 * several threads use. ARCHITECTURE.md has the picture.
 *
 *   lock                 | who takes it alone  | what it guards
 *   ---------------------+---------------------+---------------------------------
 *   the queue's, "front" | add                 | table, slab, tail of the line
 *   the lane's, "back"   | get, done           | head of the line, holds
 *
 * Everything else takes both, back first, and then finds the queue as if there was
 * one lock: the queue is "whole" (wq__whole_lock). Until threads have to wait for each
 * other there is no lane, and the front lock alone makes the queue whole.
 *
 * Three rings connect the two sides:
 *
 *   line   ids of keys that are ready, from adds to Gets. What does not fit stands
 *          behind it, in the queue's own list; `come` says so.
 *   done   finished keys, from dones to adds, which take them out of the table, a
 *          few each time. So the table stays in the cache of who adds.
 *   holds  what is held, so that a done knows an item that is not. A token names its
 *          place here; 0: it has none, and the queue has to be whole for its done.
 *
 * Both sides change a key's bits:
 *
 *   QUEUED -> RUNNING                  a Get
 *   RUNNING -> FINISHED                a done: and a record goes into `done`
 *   RUNNING -> RUNNING | DIRTY         an add
 *   FINISHED -> QUEUED                 an add, before it came to the record
 *   FINISHED -> gone                   an add or a whole call comes to the record
 *
 * A record counts only if the key is still finished by the same hold. Whoever makes
 * the queue whole first sees to all records, so there is no finished key in it.
 *
 * This header is what the two sides do to memory that both may touch; tests/tso
 * runs it on a machine with store buffers. It knows nothing of tables and entries.
 */
#ifndef WQ_QUEUE_LANE_H
#define WQ_QUEUE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <wq/queue.h>

#include "base/bug.h"
#include "base/compiler.h"
#include "base/sync.h"

enum {
#if defined(WQ_SMALL_LANE)
	WQ__LINE = 2, /* for tests: small rings are full soon */
	WQ__DONES = 2,
	WQ__HOLDS = 2,
#elif defined(WQ_SIM)
	WQ__LINE = 4,
	WQ__DONES = 4,
	WQ__HOLDS = 4,
#else
	WQ__LINE = 512,  /* places of the line */
	WQ__DONES = 256, /* records */
	WQ__HOLDS = 256, /* holds; number 0 is none */
#endif
	/* Done, and not yet out of the table. No other key is both. */
	WQ__FINISHED = WQ_STATE_QUEUED | WQ_STATE_RUNNING,
};

struct wq__done {
	uint64_t token;
	uint64_t slot;
};

struct wq__hold {
	uint64_t token; /* 0: free */
	uint32_t id;
	uint32_t next; /* free: the next free one */
};

/* B: guarded by the back lock, F: by the front lock, A: atomic. What one side writes often
 * stands on lines of its own. */
struct wq__lane { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
	_Alignas(128) wq__lock lock; /* the back lock */
	_Atomic uint32_t head;       /* A, written B: Gets have taken so many from the line */
	_Atomic uint32_t taken;      /* A, written B: and so many since the queue was whole */
	uint32_t free_hold;          /* B: 0: none */
	uint32_t done_seen;          /* B: done_head when it was last looked at */
	uint32_t known;              /* B: ids from the head on that are there, and asked for */
	uint32_t inside;             /* B: calls that let go of the back lock and come back */
	bool polls;                  /* B: one of them polls the line */

	_Alignas(128) _Atomic uint32_t done_tail; /* A, written B: so many records were written */

	_Alignas(128) uint32_t tail; /* F: adds have put so many in line */
	uint32_t head_seen;          /* F: head when it was last looked at */
	uint32_t adds;               /* F: paces the looks at done_tail */
	uint32_t done_known;         /* F: records that may be seen to */
	uint32_t done_next;          /* F: and will be soon */
	_Atomic uint32_t done_head;  /* A, written F: so many records were seen to */

	/* A, written F: who polls has to look: keys are ready behind the line, or there is news. */
	_Alignas(128) _Atomic bool come;

	_Alignas(128) _Atomic uint64_t line[WQ__LINE]; /* A: place + 1 << 32 | id */
	_Alignas(128) struct wq__done done[WQ__DONES]; /* written B, read F */
	_Alignas(128) struct wq__hold hold[WQ__HOLDS]; /* B */
	void *memory;                                  /* I: it lies in this */
};

/* ---- the line ------------------------------------------------------------- */

/* F. False: it is full. */
static inline bool wq__line_put(struct wq__lane *l, uint32_t id)
{
	if (wq__unlikely(l->tail - l->head_seen >= WQ__LINE && !WQ__BUG(LANE_PUT_FULL))) {
		/* acquire: who took the id from this place has read it */
		l->head_seen = atomic_load_explicit(&l->head, memory_order_acquire);
		if (l->tail - l->head_seen >= WQ__LINE)
			return false;
	}
	wq__point();
	/* release: the entry is complete */
	atomic_store_explicit(&l->line[l->tail % WQ__LINE], (uint64_t)(l->tail + 1) << 32 | id,
	                      memory_order_release);
	l->tail++;
	return true;
}

/* B. The id at that place, `ahead` of the head; 0: nothing is there yet. */
static inline uint32_t wq__line_at(struct wq__lane *l, uint32_t ahead)
{
	uint32_t place = atomic_load_explicit(&l->head, memory_order_relaxed) + ahead;
	uint64_t word = atomic_load_explicit(&l->line[place % WQ__LINE], memory_order_acquire);

	return (uint32_t)(word >> 32) == place + 1 ? (uint32_t)word : 0;
}

/* B. The head is taken. */
static inline void wq__line_pop(struct wq__lane *l)
{
	uint32_t head = atomic_load_explicit(&l->head, memory_order_relaxed);

	/* release: pairs with the acquire of who needs the place */
	atomic_store_explicit(&l->head, head + 1, memory_order_release);
}

/* ---- a key's bits --------------------------------------------------------- */

/* B. The key at the head is held from now on. What an add wrote before it found the key
 * queued is seen by who holds it: so this is a full barrier, as is the add's lock. */
static inline void wq__bits_take(_Atomic uint8_t *bits, uint8_t held)
{
	wq__point();
	atomic_exchange_explicit(bits, held, memory_order_seq_cst);
}

/* B. The hold ends. False: something has changed the key. */
static inline bool wq__bits_finish(_Atomic uint8_t *bits, uint8_t held, uint8_t finished)
{
	wq__point();
	if (WQ__BUG(LANE_FINISH_STORES)) {
		atomic_store_explicit(bits, finished, memory_order_relaxed);
		return true;
	}
	/* release: what the holder did to the entry comes first; acquire: so does what marked it */
	return atomic_compare_exchange_strong_explicit(bits, &held, finished, memory_order_acq_rel,
	                                               memory_order_acquire);
}

/* F. An add of a held key. False: its hold has ended meanwhile, *bits_now is what it is. */
static inline bool wq__bits_mark(_Atomic uint8_t *bits, uint8_t *bits_now)
{
	wq__point();
	if (WQ__BUG(LANE_MARK_STORES)) {
		atomic_store_explicit(bits, *bits_now | WQ_STATE_DIRTY, memory_order_relaxed);
		return true;
	}
	return atomic_compare_exchange_strong_explicit(bits, bits_now,
	                                               (uint8_t)(*bits_now | WQ_STATE_DIRTY),
	                                               memory_order_acq_rel, memory_order_acquire);
}

/*
 * F. What the bits are, and what the caller wrote before the call is seen by who takes the
 * key if they say that it is queued. The barrier is in the lock on x86, which a thread
 * takes by a locked instruction as soon as there is a lane.
 */
static inline uint8_t wq__bits_look(_Atomic uint8_t *bits)
{
#if !defined(__x86_64__) && !defined(__i386__)
	atomic_thread_fence(memory_order_seq_cst);
#endif
	wq__point();
	return atomic_load_explicit(bits, memory_order_acquire);
}

/* ---- holds ---------------------------------------------------------------- */

/* B. A hold begins: the token with its number, if there is one left. */
static inline uint64_t wq__hold_new(struct wq__lane *l, uint64_t token, uint32_t id)
{
	uint32_t i = l->free_hold;

	if (wq__unlikely(i == 0))
		return token;
	l->free_hold = l->hold[i].next;
	l->hold[i].token = token | i;
	l->hold[i].id = id;
	return token | i;
}

/* B. Is this the hold that the token names? */
static inline bool wq__hold_is(const struct wq__lane *l, uint64_t token, uint32_t id)
{
	const struct wq__hold *h = &l->hold[token % WQ__HOLDS];

	return h->token == token && h->id == id;
}

static inline void wq__hold_free(struct wq__lane *l, uint64_t token)
{
	uint32_t i = token % WQ__HOLDS;

	if (i == 0 || l->hold[i].token != token)
		return;
	l->hold[i].token = 0;
	l->hold[i].next = l->free_hold;
	l->free_hold = i;
}

/* ---- records -------------------------------------------------------------- */

/* B. Is there room for one more record? */
static inline bool wq__dones_have_room(struct wq__lane *l)
{
	uint32_t tail = atomic_load_explicit(&l->done_tail, memory_order_relaxed);

	if (wq__likely(tail - l->done_seen < WQ__DONES) || WQ__BUG(LANE_DONES_FULL))
		return true;
	/* acquire: those that were seen to have been read */
	l->done_seen = atomic_load_explicit(&l->done_head, memory_order_acquire);
	return tail - l->done_seen < WQ__DONES;
}

/* B. There is room. */
static inline void wq__dones_put(struct wq__lane *l, uint64_t token, uint64_t slot)
{
	uint32_t tail = atomic_load_explicit(&l->done_tail, memory_order_relaxed);

	l->done[tail % WQ__DONES] = (struct wq__done){.token = token, .slot = slot};
	wq__point();
	/* release: the record is complete */
	atomic_store_explicit(&l->done_tail, tail + 1, memory_order_release);
}

#endif
