/* See places.h. */
#include "time/places.h"

#include <string.h>

enum {
	ALONE = 8, /* so many segments before they come in blocks */
	ROOM = 32, /* a segment with fewer free places is not searched for them */
	WORD_BYTES = WQ__SHELF * sizeof(uint32_t),
	RECORD_BYTES = WQ__SHELF * sizeof(struct wq__record),
};

#ifndef WQ__MANY
#define WQ__MANY (1u << 17) /* so many timers before places are chosen by time */
#endif

static const struct wq__shelf no_lane = {.number = WQ__NOWHERE, .at = WQ__SHELF};

static void room_link(wq__places *p, uint32_t number)
{
	struct wq__segment *s = &p->segments[number];

	s->has_room = true;
	s->prev_room = WQ__NOWHERE;
	s->next_room = p->room;
	if (p->room != WQ__NOWHERE)
		p->segments[p->room].prev_room = number;
	p->room = number;
}

static void room_unlink(wq__places *p, uint32_t number)
{
	struct wq__segment *s = &p->segments[number];

	s->has_room = false;
	if (s->prev_room != WQ__NOWHERE)
		p->segments[s->prev_room].next_room = s->next_room;
	else
		p->room = s->next_room;
	if (s->next_room != WQ__NOWHERE)
		p->segments[s->next_room].prev_room = s->prev_room;
}

static bool numbers_grow(wq__places *p)
{
	uint32_t cap = p->segments_cap ? p->segments_cap * 2 : 8;
	struct wq__segment *segments = wq__alloc(p->allocator, cap * sizeof *segments, 64);

	if (!segments)
		return false;
	if (p->nsegments > 0)
		memcpy(segments, p->segments, p->nsegments * sizeof *segments);
	wq__free(p->allocator, p->segments, p->segments_cap * sizeof *segments);
	p->segments = segments;
	p->segments_cap = cap;
	return true;
}

/* The number of one that was given back, or the next. They are few: one for 512 timers. */
static uint32_t number_new(wq__places *p)
{
	uint32_t number = p->nholes > 0 ? 0 : p->nsegments;

	while (number < p->nsegments && p->segments[number].word)
		number++;
	if (number < p->nsegments)
		return number;
	if (number == p->segments_cap && !numbers_grow(p))
		return WQ__NOWHERE;
	p->segments[number] = (struct wq__segment){.count = WQ__STEP};
	p->nsegments++;
	p->nholes++;
	return number;
}

/*
 * Words are apart from the records: who cancels or looks whether a reference lives
 * so has the words of all timers in few pages.
 */
static bool places_new(wq__places *p, uint32_t number)
{
	struct wq__segment *s = &p->segments[number];

	s->word_id = s->record_id = 0;
	if (number < ALONE) {
		s->word = wq__alloc(p->allocator, WORD_BYTES + RECORD_BYTES, 64);
		s->record = s->word ? (struct wq__record *)(s->word + WQ__SHELF) : NULL;
		return s->word;
	}
	s->record = wq__slab_alloc(p->slab, RECORD_BYTES, &s->record_id);
	s->word = s->record ? wq__slab_alloc(p->slab, WORD_BYTES, &s->word_id) : NULL;
	if (s->record && !s->word)
		wq__slab_free(p->slab, s->record_id);
	return s->word;
}

static void places_free(wq__places *p, struct wq__segment *s)
{
	if (s->word && s->word_id == 0) {
		wq__free(p->allocator, s->word, WORD_BYTES + RECORD_BYTES);
	} else if (s->word) {
		wq__slab_free(p->slab, s->word_id);
		wq__slab_free(p->slab, s->record_id);
	}
	s->word = NULL;
}

static bool segment_new(wq__places *p)
{
	uint32_t number = number_new(p);

	if (number == WQ__NOWHERE || !places_new(p, number))
		return false;

	uint32_t *word = p->segments[number].word, count = p->segments[number].count;

	for (uint32_t i = 0; i < WQ__SHELF; i++)
		word[i] = count;
	p->nholes--;
	room_link(p, number);
	return true;
}

/* It has no timers, and no place of it is worn. */
static void segment_free(wq__places *p, uint32_t number)
{
	struct wq__segment *s = &p->segments[number];
	uint32_t newest = 0;

	for (uint32_t i = 0; i < WQ__SHELF; i++)
		newest = s->word[i] > newest ? s->word[i] : newest;
	s->count = newest;
	if (s->has_room)
		room_unlink(p, number);
	places_free(p, s);
	p->nholes++;
}

static int nfree(const struct wq__segment *s)
{
	return WQ__SHELF - s->used - s->worn;
}

/* Of a shelf's segment. */
static void count_used(struct wq__segment *s)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < WQ__SHELF; i++)
		used += s->word[i] & WQ__USED;
	s->used = (int16_t)used;
}

/* When so few timers are left, it has ROOM again. */
static int16_t thin(const struct wq__segment *s)
{
	int few = WQ__SHELF - ROOM - s->worn;

	return (int16_t)(few > 0 ? few : 0);
}

/* What is left of a segment that is no shelf's? */
static void settle(wq__places *p, uint32_t number)
{
	struct wq__segment *s = &p->segments[number];

	s->alert = 0;
	if (s->used == 0 && s->worn == 0)
		segment_free(p, number);
	else if (!s->has_room && nfree(s) >= ROOM)
		room_link(p, number);
	else if (!s->has_room)
		s->alert = thin(s);
}

/*
 * Timers have gone from a segment that is no shelf's. A shelf's stays, or who adds and
 * cancels one timer would make and free it over and over.
 */
wq__cold void wq__places_thinned(wq__places *p, uint32_t number)
{
	settle(p, number);
	if (!p->shelves || p->n >= WQ__MANY / 2)
		return;
	/* Few timers are left: one shelf is enough. */
	p->shelves = false;
	for (struct wq__shelf *shelf = p->shelf + 1; shelf < p->shelf + WQ__TW_SLOTS; shelf++) {
		if (shelf->number == WQ__NOWHERE)
			continue;
		count_used(&p->segments[shelf->number]);
		settle(p, shelf->number);
		*shelf = no_lane;
	}
}

/* At the end of its segment: on to another, or through it again. False: no memory. */
static wq__cold bool lane_next(wq__places *p, struct wq__shelf *shelf)
{
	uint32_t old = shelf->number;
	int here = 0;

	if (old != WQ__NOWHERE) {
		count_used(&p->segments[old]);
		here = nfree(&p->segments[old]);
	}
	shelf->at = 0;
	if (here >= ROOM || (p->room == WQ__NOWHERE && !segment_new(p) && here > 0))
		return true;
	*shelf = no_lane;
	if (p->room != WQ__NOWHERE) {
		struct wq__segment *s = &p->segments[p->room];

		*shelf =
		    (struct wq__shelf){.word = s->word, .record = s->record, .number = p->room};
		s->alert = INT16_MIN;
		room_unlink(p, p->room);
	}
	if (old != WQ__NOWHERE)
		settle(p, old);
	return shelf->number != WQ__NOWHERE;
}

bool wq__place_find(wq__places *p, struct wq__shelf *shelf)
{
	p->shelves |= p->n >= WQ__MANY;
	for (;;) {
		for (; shelf->at < WQ__SHELF; shelf->at++)
			if (wq__place_is_free(shelf->word[shelf->at]))
				return true;
		if (!lane_next(p, shelf))
			return false;
	}
}

void wq__places_init(wq__places *p, wq__slab *slab, const wq_allocator *allocator)
{
	memset(p, 0, sizeof *p);
	p->slab = slab;
	p->allocator = allocator;
	p->room = WQ__NOWHERE;
	for (uint32_t i = 0; i < WQ__TW_SLOTS; i++)
		p->shelf[i] = no_lane;
}

void wq__places_release(wq__places *p)
{
	for (uint32_t i = 0; i < p->nsegments; i++)
		places_free(p, &p->segments[i]);
	wq__free(p->allocator, p->segments, p->segments_cap * sizeof *p->segments);
}
