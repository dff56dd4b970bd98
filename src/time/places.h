/*
 * The places of timers: a word and a record {fn, ctx} each, by name. The word is a
 * count and two flags; a name is a place and what its word was, so it is stale as
 * soon as the word counts on.
 *
 * Words stand together, 4 bytes a timer, and the word alone says whether its place
 * is free: cancelling, and finding out that a reference is dead, touch the word and
 * its segment's count, and nothing else.
 *
 * Places stand in segments. A shelf takes the free places of one segment for new
 * timers, from front to back, then those of another that has at least ROOM of them.
 * There is one shelf, and with MANY timers one for each bucket of a level of the
 * timing wheel: timers that fire one after another then lie together, in as many cache
 * lines and pages as they fill, wherever else the others are.
 *
 * A segment without timers gives its memory back and leaves behind the number from
 * which its successor counts, and a place whose count is used up is never free
 * again, so no id and no reference is ever valid twice.
 *
 * The caller serialises.
 */
#ifndef WQ_TIME_PLACES_H
#define WQ_TIME_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq/wheel.h>

#include "base/compiler.h"
#include "base/slab.h"
#include "time/timing_wheel.h"

enum { WQ__SHELF = 512 }; /* places in a segment */

/* The word of a place. */
#define WQ__USED UINT32_C(1) /* counted by adding it up */
#define WQ__SPECIAL UINT32_C(2)
#define WQ__FLAGS (WQ__USED | WQ__SPECIAL)
#ifndef WQ__STEP /* tests have other ones, here and below */
#define WQ__STEP UINT32_C(4)
#endif

#define WQ__NOWHERE UINT32_MAX

struct wq__record {
	wq_timer_fn fn;
	void *ctx; /* WQ__SPECIAL: its struct extra */
};

struct wq__segment {
	uint32_t *word; /* NULL: given back */
	struct wq__record *record;
	int16_t used;  /* timers in it; not counted while it is a shelf's */
	int16_t alert; /* wq__places_thinned() looks at it when so few are left */
	uint16_t worn; /* places whose count is used up */
	bool has_room; /* it is in the list of those */
	uint32_t next_room, prev_room;
	uint32_t count;              /* given back: from where the next one counts */
	uint32_t word_id, record_id; /* in the slab; 0: it stands alone */
};

/* Where the places of new timers are taken. */
struct wq__shelf {
	uint32_t *word; /* of its current segment */
	struct wq__record *record;
	uint32_t number; /* of that; or WQ__NOWHERE */
	uint32_t at;     /* the next place in there to look at, or WQ__SHELF */
};

typedef struct wq__places {
	size_t n;                     /* timers */
	struct wq__segment *segments; /* by number */
	uint32_t nsegments, segments_cap;
	uint32_t nholes; /* segments that were given back */
	uint32_t room;   /* the first of the segments with ROOM; or WQ__NOWHERE */
	bool shelves;    /* all of them are in use, not the first alone */
	struct wq__shelf shelf[WQ__TW_SLOTS];
	wq__slab *slab;
	const wq_allocator *allocator;
} wq__places;

void wq__places_init(wq__places *p, wq__slab *slab, const wq_allocator *allocator);
void wq__places_release(wq__places *p);

/* Go on to a free place. False: there is none, and no memory for more. */
bool wq__place_find(wq__places *p, struct wq__shelf *shelf);

/* What wq__place_free() asks for: the segment may go, or have room again. */
void wq__places_thinned(wq__places *p, uint32_t number);

static inline uint32_t wq__segment_of(uint64_t name)
{
	return (uint32_t)(name >> 32) / WQ__SHELF;
}

static inline uint32_t wq__place_of(uint64_t name)
{
	return (uint32_t)(name >> 32) % WQ__SHELF;
}

static inline struct wq__record *wq__record_of(const wq__places *p, uint64_t name)
{
	return &p->segments[wq__segment_of(name)].record[wq__place_of(name)];
}

static inline uint32_t *wq__word_of(const wq__places *p, uint64_t name)
{
	return &p->segments[wq__segment_of(name)].word[wq__place_of(name)];
}

/* Does the id name a timer that has no extra? */
static inline bool wq__place_is_plain(const wq__places *p, wq_timer_id id)
{
	uint32_t number = wq__segment_of(id);

	return number < p->nsegments && p->segments[number].word &&
	       *wq__word_of(p, id) == (uint32_t)id && (id & WQ__FLAGS) == WQ__USED;
}

/* Does the reference count? */
static inline bool wq__place_lives(const wq__places *p, wq__ref ref)
{
	const uint32_t *word = p->segments[wq__segment_of(ref.what)].word;

	return word && word[wq__place_of(ref.what)] == (uint32_t)ref.what;
}

static inline bool wq__place_is_free(uint32_t word)
{
	return (word & WQ__FLAGS) == 0 && word != 0;
}

/* Where the place of a timer in this bucket should be; NULL: it is not known. */
static inline struct wq__shelf *wq__shelf_of(wq__places *p, const struct wq__bucket *b,
                                             int64_t due_ns)
{
	return &p->shelf[p->shelves && b ? wq__bucket_lane(b, due_ns) : 0];
}

/* Is the shelf at a free place? */
static inline bool wq__place_ready(const struct wq__shelf *shelf)
{
	return shelf->at < WQ__SHELF && wq__place_is_free(shelf->word[shelf->at]);
}

/* A name for what stands in the record. The shelf is at a free place. */
static inline wq_timer_id wq__place_take(wq__places *p, struct wq__shelf *shelf,
                                         struct wq__record r, uint32_t flags)
{
	uint32_t at = shelf->at++, word = shelf->word[at] | flags;

	p->n++;
	shelf->record[at] = r;
	shelf->word[at] = word;
	return (uint64_t)(shelf->number * WQ__SHELF + at) << 32 | word;
}

/* Its id and its reference are stale from now on. True: its segment has wq__places_thinned. */
static inline bool wq__place_free(wq__places *p, uint64_t name)
{
	struct wq__segment *s = &p->segments[wq__segment_of(name)];
	uint32_t *word = &s->word[wq__place_of(name)];

	p->n--;
	*word = (*word & ~WQ__FLAGS) + WQ__STEP;
	s->worn = (uint16_t)(s->worn + (*word == 0));
	return wq__unlikely(--s->used <= s->alert);
}

static inline void wq__place_drop(wq__places *p, uint64_t name)
{
	if (wq__place_free(p, name))
		wq__places_thinned(p, wq__segment_of(name));
}

#endif
