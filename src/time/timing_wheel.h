/*
 * References in the order of their time: the hierarchical timing wheel under
 * the queue's delayed adds and under wq_wheel.
 *
 * A reference is a due time and 64 bits that mean something to the owner. It
 * is inserted, and popped when its time has come, in the order of the
 * nanoseconds and, among equal ones, in the order of insertion. It is never
 * removed: who cancels lets it die (pop hands it out all the same, and the
 * owner sees that it means nothing any more) and tells wq__tw_died(), so
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
 * their order. When a bucket's time comes it is opened:
 *
 *   into        | if                                      | cost of a reference
 *   ------------+-----------------------------------------+---------------------
 *   the run     | it spans a tick or less, some hundreds  | sorted once, by radix
 *               | stand in it, and the run is empty       |
 *   the heap    | they are few; also what comes in late   | O(log few)
 *   the levels  | otherwise                               | one copy a level
 *   below       |                                         |
 *
 * References stand in chunks of 15, copied from one to the next: opening a
 * bucket reads memory from front to back and touches nothing that they refer
 * to. All memory that opening may need is reserved when a reference comes in,
 * so pop cannot fail. The caller serialises.
 */
#ifndef WQ_TIME_TIMING_WHEEL_H
#define WQ_TIME_TIMING_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slab.h"
#include "time/sort.h"

enum {
	WQ__CHUNK_REFS = 15,
	WQ__TW_LEVELS = 64,
	WQ__TW_SLOTS = 64,
	WQ__TW_LOOK = 16,           /* how far an owner looks ahead in the run */
	WQ__TW_AHEAD = 16,          /* how many may be popped before the dead of them are told of */
	WQ__TW_SLACK = 64,          /* so many dead ones are never worth a sweep */
	WQ__BUCKET_CROWD = 1 << 16, /* so many timers are more than a cache holds */
	WQ__TW_DEAD = 512,          /* how many dead ones wq__tw_first() looks at, at most */
};

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
	uint8_t slot;        /* I: its number in its level */
	uint8_t shift_below; /* I: log2 of what a bucket of the level below spans */
};

struct wq__level {
	uint64_t bits; /* buckets that are not empty */
	struct wq__bucket bucket[WQ__TW_SLOTS];
};

/* One of the few that are near: in the order of (due_ns, seq). */
struct wq__near {
	int64_t due_ns;
	uint64_t seq;
	uint64_t what;
};

/* Where a time goes whose highest bit that differs from the wheel's is this one. */
struct wq__digit {
	uint8_t level, shift, mask;
};

enum wq__opening { WQ__TO_LEVELS, WQ__TO_HEAP, WQ__TO_RUN };

typedef struct wq__timing_wheel {
	int64_t time_ns;   /* the wheel's: no bucket begins before it */
	int64_t caught_ns; /* the last time to which it was to catch up */
	size_t n;          /* references, dead ones included */
	size_t ndead;
	size_t enough; /* memory is reserved for so many; 0: look, as while a bucket is opened */
	struct wq__bucket *opening; /* is being emptied; or NULL */
	uint64_t level_bits;        /* levels that are not empty */
	wq__ref *run;               /* in order, but for when a bucket is opened into it; or NULL */
	size_t run_at, run_end;     /* what is left of it */
	size_t run_clear;      /* before here in it, nothing else comes in between; see below */
	uint64_t run_below;    /* the levels on which something may come before its end */
	uint64_t run_seq;      /* of equal times those in the heap with a lower seq are first */
	wq__ref *run_other;    /* to sort it */
	struct wq__near *near; /* a binary heap */
	size_t nnear, near_cap;
	size_t spare; /* the owner's: so many places in the heap are kept for reinsertions */
	uint64_t seq;
	struct wq__digit digit[64];             /* I */
	struct wq__level *level[WQ__TW_LEVELS]; /* made when first needed */
	int64_t opening_end_ns;                 /* its last nanosecond */
	uint64_t opening_seq;                   /* of its next reference, if it goes to the heap */
	enum wq__opening opening_to;
	uint32_t opening_level;
	uint32_t nlevels;
	uint32_t tick_shift;          /* I */
	uint8_t shift[WQ__TW_LEVELS]; /* I: log2 of what a bucket of the level spans */
	uint32_t top;                 /* the highest level that was used */
	uint32_t made;                /* all levels below this one are there */
	struct wq__chunk *reserve;
	size_t nreserve;
	struct wq__bucket *sweeping; /* where the last sweep stopped; or NULL */
	struct wq__chunk *sweep_at;
	uint32_t sweep_level, sweep_slot;
	wq__slab *slab;
	const wq_allocator *allocator;
} wq__timing_wheel;

/* tick_shift 0 to 62, slot_bits 1 to 6: log2 of the tick and of the buckets a level. */
void wq__tw_init(wq__timing_wheel *w, wq__slab *slab, const wq_allocator *allocator, int64_t now_ns,
                 uint32_t tick_shift, uint32_t slot_bits);
void wq__tw_release(wq__timing_wheel *w);

/* 0, or -1: out of memory, and nothing changed. now_ns helps to keep the wheel's time close. */
int wq__tw_insert(wq__timing_wheel *w, int64_t now_ns, wq__ref ref);

static inline struct wq__digit wq__digit_of(const wq__timing_wheel *w, int64_t due_ns)
{
	return w->digit[63 - __builtin_clzll((uint64_t)(due_ns ^ w->time_ns) | 1)];
}

static inline uint32_t wq__slot_of(struct wq__digit d, int64_t due_ns)
{
	return (uint32_t)((uint64_t)due_ns >> d.shift) & d.mask;
}

/* To its last chunk, which has room. */
static inline void wq__bucket_put(struct wq__bucket *b, wq__ref ref)
{
	struct wq__chunk *c = b->tail;

	c->ref[c->end++] = ref;
	if (ref.due_ns < b->min_ns)
		b->min_ns = ref.due_ns;
	if (ref.due_ns > b->max_ns)
		b->max_ns = ref.due_ns;
	b->n++;
}

/* The bucket of that time, if it is begun and nothing has to be seen to first; or NULL. */
static inline struct wq__bucket *wq__tw_begun(const wq__timing_wheel *w, int64_t now_ns,
                                              int64_t due_ns)
{
	if (now_ns > w->caught_ns || due_ns < w->time_ns || w->n >= w->enough)
		return NULL;

	struct wq__digit d = wq__digit_of(w, due_ns);
	struct wq__level *level = w->level[d.level];
	struct wq__bucket *b = level ? &level->bucket[wq__slot_of(d, due_ns)] : NULL;

	return b && b->tail ? b : NULL;
}

/*
 * The most common insert in two steps, neither of which fails: is there room for
 * the reference, so that it only has to be put there? NULL: use wq__tw_insert().
 */
static inline struct wq__bucket *wq__tw_room(const wq__timing_wheel *w, int64_t now_ns,
                                             int64_t due_ns)
{
	struct wq__bucket *b = wq__tw_begun(w, now_ns, due_ns);

	return b && b->tail->end < WQ__CHUNK_REFS ? b : NULL;
}

static inline void wq__tw_put(wq__timing_wheel *w, struct wq__bucket *b, wq__ref ref)
{
	wq__bucket_put(b, ref);
	w->n++;
}

/*
 * A number below WQ__TW_SLOTS, the same for references of about the same time: by
 * the bucket or, if that is crowded, by the one below into which it will be opened.
 * What the owner has of them may lie together.
 */
static inline uint32_t wq__bucket_lane(const struct wq__bucket *b, int64_t due_ns)
{
	if (wq__likely(b->n < WQ__BUCKET_CROWD))
		return b->slot;
	return (uint32_t)((uint64_t)due_ns >> b->shift_below) % WQ__TW_SLOTS;
}

/* Keep one more place for reinsertions; the owner takes it off `spare` again. False: no memory. */
bool wq__tw_spare(wq__timing_wheel *w);

/*
 * Insert a reference that was popped just now and counts in `spare`: it cannot
 * fail. Without memory it overtakes others of its nanosecond.
 */
void wq__tw_reinsert(wq__timing_wheel *w, wq__ref ref);

enum wq__tw_pop { WQ__TW_NONE, WQ__TW_POPPED, WQ__TW_AGAIN };

/* Gives back memory for references that are gone. */
void wq__tw_trim(wq__timing_wheel *w);

/*
 * The run's next reference, if it is due at now_ns and nothing else comes before:
 * the most common pop. False: use wq__tw_pop_any().
 *
 * run_clear says so without a look at the heap and the levels. Whatever puts
 * something there that may come before sets it to 0, and wq__tw_pop_any() anew.
 */
static inline bool wq__tw_pop_run(wq__timing_wheel *w, int64_t now_ns, wq__ref *out)
{
	/* run is NULL as long as there never was one. */
	if (wq__unlikely(w->run_at >= w->run_clear || w->run[w->run_at].due_ns > now_ns))
		return false;
	*out = w->run[w->run_at];
	w->run_at++;
	w->n--;
	if (wq__unlikely(w->nreserve >= w->n))
		wq__tw_trim(w);
	return true;
}

/* Those of the run that are next, at most n, for the owner to fetch what they refer to. */
static inline size_t wq__tw_soon(const wq__timing_wheel *w, size_t n)
{
	size_t left = w->run_end - w->run_at;

	return left < n ? left : n;
}

/* What wq__tw_pop() does when it is not simply the run's turn. */
enum wq__tw_pop wq__tw_pop_any(wq__timing_wheel *w, int64_t now_ns, size_t *budget, wq__ref *out);

/*
 * The next reference that is due at now_ns. Moves at most *budget references
 * and takes what it moved off; AGAIN: the budget is used up, and more may be due.
 */
static inline enum wq__tw_pop wq__tw_pop(wq__timing_wheel *w, int64_t now_ns, size_t *budget,
                                         wq__ref *out)
{
	if (wq__unlikely(*budget == 0 || !wq__tw_pop_run(w, now_ns, out)))
		return wq__tw_pop_any(w, now_ns, budget, out);
	--*budget;
	return WQ__TW_POPPED;
}

/* No reference is due before; INT64_MAX: there is none. Exact unless the earliest has died. */
int64_t wq__tw_next(const wq__timing_wheel *w);

/* Moves those of n references that the owner still wants to the front, and counts them. */
typedef size_t (*wq__keep_fn)(const void *owner, wq__ref *ref, size_t n);

/*
 * When the first living reference is due, INT64_MAX: none lives. The dead that it
 * meets at the front are thrown out. It looks at a bounded number; if they are not
 * enough to tell, it answers as wq__tw_next().
 */
int64_t wq__tw_first(wq__timing_wheel *w, wq__keep_fn keep, const void *owner);

/* Throws out some of the dead. */
void wq__tw_sweep(wq__timing_wheel *w, wq__keep_fn keep, const void *owner);

/* Do the dead nearly outnumber the living? */
static inline bool wq__tw_crowded(const wq__timing_wheel *w)
{
	return w->ndead > w->n / 2 - w->n / 64 + WQ__TW_SLACK;
}

/* A reference that is in here has died. Sweeps a little when there are many. */
static inline void wq__tw_died(wq__timing_wheel *w, wq__keep_fn keep, const void *owner)
{
	w->ndead++;
	if (wq__unlikely(wq__tw_crowded(w)))
		wq__tw_sweep(w, keep, owner);
}

/* A reference that was popped turned out to be dead. */
static inline void wq__tw_buried(wq__timing_wheel *w)
{
	w->ndead--;
}

#endif
