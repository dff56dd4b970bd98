/*
 * References in the order of their time: the hierarchical timing wheel under
 * the queue's delayed adds and under wq_wheel.
 *
 * A reference is a due time and 64 bits that mean something to the owner. It
 * is inserted, and popped when its time has come, in the order of the
 * nanoseconds and, among equal ones, in the order of insertion. It is never
 * removed: who cancels lets it die (pop hands it out all the same, and the
 * owner sees that it means nothing any more) and tells wq__agenda_died(), so
 * that dead ones are swept before they outnumber the living.
 *
 *   level | a bucket spans     | the level reaches        with 64 buckets a level and a
 *   ------+--------------------+------------------        tick of 2^18 ns (0.26 ms)
 *   0     | 1 ns               | 64 ns                    finer than a tick: made only
 *   1, 2  | 64 ns, 4.1 µs      | 4.1 µs, 0.26 ms          when a bucket is crowded
 *   3     | 0.26 ms, the tick  | 17 ms
 *   4, 5  | 17 ms, 1.07 s      | 1.07 s, 69 s
 *   ...   |                    | 292 years
 *
 * A reference goes to the level of the highest digit in which its time differs
 * from the wheel's, into the bucket of that digit. So everything on a lower
 * level comes before everything on a higher one, a bitmap a level finds the
 * next bucket, and references of equal time are always in the same bucket, in
 * their order. When a bucket's time comes it is opened: few references go to
 * a small heap, many to the buckets of the levels below.
 *
 * References stand in chunks of 15, copied from one to the next: opening a
 * bucket reads memory from front to back and touches nothing that they refer
 * to. All memory that opening may need is reserved when a reference comes in,
 * so pop cannot fail. The caller serialises.
 */
#ifndef WQ_TIME_AGENDA_H
#define WQ_TIME_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slab.h"

enum {
	WQ__CHUNK_REFS = 15,
	WQ__AGENDA_LEVELS = 64,
	WQ__AGENDA_SLOTS = 64,
};

typedef struct wq__ref {
	int64_t due_ns;
	uint64_t what; /* not 0 */
} wq__ref;

struct wq__chunk {
	struct wq__chunk *next;
	uint32_t id;    /* in the slab */
	uint16_t first; /* ref[first] to ref[end - 1] are filled */
	uint16_t end;
	wq__ref ref[WQ__CHUNK_REFS];
};

struct wq__bucket {
	struct wq__chunk *head, *tail;
	int64_t min_ns; /* no reference in it is due before */
	int64_t max_ns; /* nor after */
	size_t n;
};

struct wq__level {
	uint64_t bits; /* buckets that are not empty */
	struct wq__bucket bucket[WQ__AGENDA_SLOTS];
};

/* One of the few that are near: in the order of (due_ns, seq). */
struct wq__near {
	int64_t due_ns;
	uint64_t seq;
	uint64_t what;
};

typedef struct wq__agenda {
	int64_t time_ns;     /* the wheel's: no bucket begins before it */
	uint64_t level_bits; /* levels that are not empty */
	size_t n;            /* references, dead ones included */
	size_t ndead;
	struct wq__near *near; /* a binary heap */
	size_t nnear, near_cap;
	size_t spare; /* the owner's: so many places in the heap are kept for reinsertions */
	uint64_t seq;
	struct wq__bucket *opening; /* is being emptied into lower levels; or NULL */
	int64_t opening_end_ns;     /* its last nanosecond */
	bool opening_few;           /* into the heap instead */
	uint32_t nlevels;
	uint8_t shift[WQ__AGENDA_LEVELS]; /* I: log2 of what a bucket of the level spans */
	uint8_t level_of_bit[64];         /* I */
	struct wq__level *level[WQ__AGENDA_LEVELS]; /* made when first needed */
	uint32_t top;                               /* the highest level that was used */
	uint32_t made;                              /* all levels below this one are there */
	struct wq__chunk *reserve;
	size_t nreserve;
	struct wq__bucket *sweeping; /* where the last sweep stopped; or NULL */
	struct wq__chunk *sweep_at;
	uint32_t sweep_level, sweep_slot;
	wq__slab *slab;
	const wq_allocator *allocator;
} wq__agenda;

/* tick_shift 0 to 62, slot_bits 1 to 6: log2 of the tick and of the buckets a level. */
void wq__agenda_init(wq__agenda *a, wq__slab *slab, const wq_allocator *allocator, int64_t now_ns,
                     uint32_t tick_shift, uint32_t slot_bits);
void wq__agenda_release(wq__agenda *a);

/* 0, or -1: out of memory, and nothing changed. now_ns helps to keep the wheel's time close. */
int wq__agenda_insert(wq__agenda *a, int64_t now_ns, wq__ref ref);

/* Keep one more place for reinsertions; the owner takes it off `spare` again. False: no memory. */
bool wq__agenda_spare(wq__agenda *a);

/*
 * Insert a reference that was popped just now and counts in `spare`: it cannot
 * fail. Without memory it overtakes others of its nanosecond.
 */
void wq__agenda_reinsert(wq__agenda *a, wq__ref ref);

enum wq__agenda_pop { WQ__AGENDA_NONE, WQ__AGENDA_POPPED, WQ__AGENDA_AGAIN };

/*
 * The next reference that is due at now_ns. Moves at most *budget references
 * and takes what it moved off; AGAIN: the budget is used up, and more may be due.
 */
enum wq__agenda_pop wq__agenda_pop(wq__agenda *a, int64_t now_ns, size_t *budget, wq__ref *out);

/* No reference is due before; INT64_MAX: there is none. Exact unless the earliest has died. */
int64_t wq__agenda_next(const wq__agenda *a);

/* Does the owner still want it? */
typedef bool (*wq__alive_fn)(const void *owner, wq__ref ref);

/* A reference that is in here has died. Sweeps a little when there are many. */
void wq__agenda_died(wq__agenda *a, wq__alive_fn alive, const void *owner);

/* A reference that was popped turned out to be dead. */
static inline void wq__agenda_buried(wq__agenda *a)
{
	a->ndead--;
}

#endif
