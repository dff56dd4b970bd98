/*
 * Timers by name over the agenda. A timer has a place: a word and a record
 * {fn, ctx}. The word is a count and two flags, and both the timer's id and its
 * reference in the agenda are the place and what the word was then. Whoever
 * cancels counts on, so that both are stale at once. One that is moved counts on
 * too, and remembers in an extra what its id says, as does what is periodic or
 * has no reference; the SPECIAL flag says that the record points to an extra.
 *
 * Words stand together, 4 bytes a timer, and the word alone says whether its place
 * is free: cancelling, and finding out that a reference is dead, touch the word and
 * its segment's count, and nothing else.
 *
 * Places stand in segments. A lane takes the free places of one segment for new
 * timers, from front to back, then those of another that has at least ROOM of them.
 * There is one lane, and with MANY timers one for each bucket of a level of the
 * agenda: timers that fire one after another then lie together, in as many cache
 * lines and pages as they fill, wherever else the others are.
 *
 * A segment without timers gives its memory back and leaves behind the number from
 * which its successor counts, and a place whose count is used up is never free
 * again, so no id and no reference is ever valid twice.
 */
#include "time/wheel.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "time/agenda.h"

enum {
	TICK_SHIFT = 18,
	TICK_SHIFT_MAX = 40,
	SEGMENT = 512, /* places in a segment */
	ALONE = 8,     /* so many segments before they come in blocks */
	ROOM = 32,     /* a segment with fewer free places is not searched for them */
};

/* The word of a place. */
#define USED UINT32_C(1) /* counted by adding it up */
#define SPECIAL UINT32_C(2)
#define FLAGS (USED | SPECIAL)
#ifndef STEP /* tests have other ones, here and below */
#define STEP UINT32_C(4)
#endif

#ifndef MANY
#define MANY (1u << 17) /* so many timers before places are chosen by time */
#endif

#define NOWHERE UINT32_MAX

struct record {
	wq_timer_fn fn;
	void *ctx; /* SPECIAL: its struct extra */
};

/* Of what is not simply added and then fired or cancelled. */
struct extra {
	void *ctx;
	int64_t period_ns; /* 0: it fires once */
	uint32_t word;     /* as its id has it */
	uint32_t id;       /* in the slab */
	bool refers;       /* the agenda has a reference to it */
	bool worn;         /* the count has begun again */
};

enum {
	WORD_BYTES = SEGMENT * sizeof(uint32_t),
	RECORD_BYTES = SEGMENT * sizeof(struct record),
};

struct segment {
	uint32_t *word; /* NULL: given back */
	struct record *record;
	int16_t used;  /* timers in it; not counted while it is a lane's */
	int16_t alert; /* thinned() looks at it when so few are left */
	uint16_t worn; /* places whose count is used up */
	bool has_room; /* it is in the list of those */
	uint32_t next_room, prev_room;
	uint32_t count;              /* given back: from where the next one counts */
	uint32_t word_id, record_id; /* in the slab; 0: it stands alone */
};

/* Where the places of new timers are taken. */
struct lane {
	uint32_t *word; /* of its current segment */
	struct record *record;
	uint32_t number; /* of that; or NOWHERE */
	uint32_t at;     /* the next place in there to look at, or SEGMENT */
};

static const struct lane no_lane = {.number = NOWHERE, .at = SEGMENT};

struct wq_wheel {
	wq__agenda agenda;
	wq__slab slab;
	int64_t now_ns;
	size_t n;                 /* timers */
	struct segment *segments; /* by number */
	uint32_t nsegments, segments_cap;
	uint32_t nholes; /* segments that were given back */
	uint32_t room;   /* the first of the segments with ROOM; or NOWHERE */
	bool lanes;      /* all of them are in use, not the first alone */
	struct lane lane[WQ__AGENDA_SLOTS];
	bool advancing, stopped;
	wq_allocator allocator;
};

/* ---- segments ------------------------------------------------------------- */

static void room_link(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];

	s->has_room = true;
	s->prev_room = NOWHERE;
	s->next_room = w->room;
	if (w->room != NOWHERE)
		w->segments[w->room].prev_room = number;
	w->room = number;
}

static void room_unlink(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];

	s->has_room = false;
	if (s->prev_room != NOWHERE)
		w->segments[s->prev_room].next_room = s->next_room;
	else
		w->room = s->next_room;
	if (s->next_room != NOWHERE)
		w->segments[s->next_room].prev_room = s->prev_room;
}

static bool numbers_grow(wq_wheel *w)
{
	uint32_t cap = w->segments_cap ? w->segments_cap * 2 : 8;
	struct segment *segments = wq__alloc(&w->allocator, cap * sizeof *segments, 64);

	if (!segments)
		return false;
	if (w->nsegments > 0)
		memcpy(segments, w->segments, w->nsegments * sizeof *segments);
	wq__free(&w->allocator, w->segments, w->segments_cap * sizeof *segments);
	w->segments = segments;
	w->segments_cap = cap;
	return true;
}

/* The number of one that was given back, or the next. They are few: one for 512 timers. */
static uint32_t number_new(wq_wheel *w)
{
	uint32_t number = w->nholes > 0 ? 0 : w->nsegments;

	while (number < w->nsegments && w->segments[number].word)
		number++;
	if (number < w->nsegments)
		return number;
	if (number == w->segments_cap && !numbers_grow(w))
		return NOWHERE;
	w->segments[number] = (struct segment){.count = STEP};
	w->nsegments++;
	w->nholes++;
	return number;
}

/*
 * Words are apart from the records: who cancels or looks whether a reference lives
 * so has the words of all timers in few pages.
 */
static bool places_new(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];

	s->word_id = s->record_id = 0;
	if (number < ALONE) {
		s->word = wq__alloc(&w->allocator, WORD_BYTES + RECORD_BYTES, 64);
		s->record = s->word ? (struct record *)(s->word + SEGMENT) : NULL;
		return s->word;
	}
	s->record = wq__slab_alloc(&w->slab, RECORD_BYTES, &s->record_id);
	s->word = s->record ? wq__slab_alloc(&w->slab, WORD_BYTES, &s->word_id) : NULL;
	if (s->record && !s->word)
		wq__slab_free(&w->slab, s->record_id);
	return s->word;
}

static void places_free(wq_wheel *w, struct segment *s)
{
	if (s->word && s->word_id == 0) {
		wq__free(&w->allocator, s->word, WORD_BYTES + RECORD_BYTES);
	} else if (s->word) {
		wq__slab_free(&w->slab, s->word_id);
		wq__slab_free(&w->slab, s->record_id);
	}
	s->word = NULL;
}

static bool segment_new(wq_wheel *w)
{
	uint32_t number = number_new(w);

	if (number == NOWHERE || !places_new(w, number))
		return false;

	uint32_t *word = w->segments[number].word, count = w->segments[number].count;

	for (uint32_t i = 0; i < SEGMENT; i++)
		word[i] = count;
	w->nholes--;
	room_link(w, number);
	return true;
}

/* It has no timers, and no place of it is worn. */
static void segment_free(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];
	uint32_t newest = 0;

	for (uint32_t i = 0; i < SEGMENT; i++)
		newest = s->word[i] > newest ? s->word[i] : newest;
	s->count = newest;
	if (s->has_room)
		room_unlink(w, number);
	places_free(w, s);
	w->nholes++;
}

static int nfree(const struct segment *s)
{
	return SEGMENT - s->used - s->worn;
}

/* Of a lane's segment. */
static void count_used(struct segment *s)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < SEGMENT; i++)
		used += s->word[i] & USED;
	s->used = (int16_t)used;
}

/* When so few timers are left, it has ROOM again. */
static int16_t thin(const struct segment *s)
{
	int few = SEGMENT - ROOM - s->worn;

	return (int16_t)(few > 0 ? few : 0);
}

/* What is left of a segment that is no lane's? */
static void settle(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];

	s->alert = 0;
	if (s->used == 0 && s->worn == 0)
		segment_free(w, number);
	else if (!s->has_room && nfree(s) >= ROOM)
		room_link(w, number);
	else if (!s->has_room)
		s->alert = thin(s);
}

/*
 * Timers have gone from a segment that is no lane's. A lane's stays, or who adds and
 * cancels one timer would make and free it over and over.
 */
static wq__cold void thinned(wq_wheel *w, uint32_t number)
{
	settle(w, number);
	if (!w->lanes || w->n >= MANY / 2)
		return;
	/* Few timers are left: one lane is enough. */
	w->lanes = false;
	for (struct lane *lane = w->lane + 1; lane < w->lane + WQ__AGENDA_SLOTS; lane++) {
		if (lane->number == NOWHERE)
			continue;
		count_used(&w->segments[lane->number]);
		settle(w, lane->number);
		*lane = no_lane;
	}
}

/* The lane has come to the end of its segment: on to another, or through it again. False: no memory. */
static wq__cold bool lane_next(wq_wheel *w, struct lane *lane)
{
	uint32_t old = lane->number;
	int here = 0;

	if (old != NOWHERE) {
		count_used(&w->segments[old]);
		here = nfree(&w->segments[old]);
	}
	lane->at = 0;
	if (here >= ROOM || (w->room == NOWHERE && !segment_new(w) && here > 0))
		return true;
	*lane = no_lane;
	if (w->room != NOWHERE) {
		struct segment *s = &w->segments[w->room];

		*lane = (struct lane){.word = s->word, .record = s->record, .number = w->room};
		s->alert = INT16_MIN;
		room_unlink(w, w->room);
	}
	if (old != NOWHERE)
		settle(w, old);
	return lane->number != NOWHERE;
}

/* ---- places --------------------------------------------------------------- */

static inline uint32_t number_of(uint64_t name)
{
	return (uint32_t)(name >> 32) / SEGMENT;
}

static inline uint32_t place_of(uint64_t name)
{
	return (uint32_t)(name >> 32) % SEGMENT;
}

static inline struct record *record_of(const wq_wheel *w, uint64_t name)
{
	return &w->segments[number_of(name)].record[place_of(name)];
}

static inline uint32_t *word_of(const wq_wheel *w, uint64_t name)
{
	return &w->segments[number_of(name)].word[place_of(name)];
}

/* Does the id name a timer that has no extra? */
static inline bool is_plain(const wq_wheel *w, wq_timer_id id)
{
	uint32_t number = number_of(id);

	return number < w->nsegments && w->segments[number].word &&
	       *word_of(w, id) == (uint32_t)id && (id & FLAGS) == USED;
}

/* The extra of the timer that the id names; NULL: it has none, or is not there. */
static struct extra *extra_of(const wq_wheel *w, wq_timer_id id)
{
	uint32_t number = number_of(id);

	if (number >= w->nsegments || !w->segments[number].word || !(*word_of(w, id) & SPECIAL))
		return NULL;

	struct extra *e = record_of(w, id)->ctx;

	return e->word == (uint32_t)id ? e : NULL;
}

/* Does the reference count? */
static inline bool alive(const wq_wheel *w, wq__ref ref)
{
	const uint32_t *word = w->segments[number_of(ref.what)].word;

	return word && word[place_of(ref.what)] == (uint32_t)ref.what;
}

/* Without a branch for the dead: so many look-ups at once are under way as the processor can. */
static size_t keep(const void *wheel, wq__ref *ref, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		wq__ref it = ref[i];

		ref[kept] = it;
		kept += alive(wheel, it);
	}
	return kept;
}

static inline bool is_free(uint32_t word)
{
	return (word & FLAGS) == 0 && word != 0;
}

/* Where the place of a timer in this bucket should be; NULL: it is not known. */
static inline struct lane *lane_of(wq_wheel *w, const struct wq__bucket *b, int64_t due_ns)
{
	return &w->lane[w->lanes && b ? wq__bucket_lane(b, due_ns) : 0];
}

/* Is the lane at a free place? */
static inline bool place_ready(const struct lane *lane)
{
	return lane->at < SEGMENT && is_free(lane->word[lane->at]);
}

/* Go on to one. False: there is none, and no memory for more. */
static bool place_find(wq_wheel *w, struct lane *lane)
{
	w->lanes |= w->n >= MANY;
	for (;;) {
		for (; lane->at < SEGMENT; lane->at++)
			if (is_free(lane->word[lane->at]))
				return true;
		if (!lane_next(w, lane))
			return false;
	}
}

/* A name for what stands in the record. The lane is at a free place. */
static inline wq_timer_id place_take(wq_wheel *w, struct lane *lane, struct record r,
                                     uint32_t flags)
{
	uint32_t at = lane->at++, word = lane->word[at] | flags;

	w->n++;
	lane->record[at] = r;
	lane->word[at] = word;
	return (uint64_t)(lane->number * SEGMENT + at) << 32 | word;
}

/* Its id and its reference are stale from now on. True: its segment has thinned. */
static inline bool place_free(wq_wheel *w, uint64_t name)
{
	struct segment *s = &w->segments[number_of(name)];
	uint32_t *word = &s->word[place_of(name)];

	w->n--;
	*word = (*word & ~FLAGS) + STEP;
	s->worn = (uint16_t)(s->worn + (*word == 0));
	return wq__unlikely(--s->used <= s->alert);
}

static inline void place_drop(wq_wheel *w, uint64_t name)
{
	if (place_free(w, name))
		thinned(w, number_of(name));
}

/* ---- life ----------------------------------------------------------------- */

static int check_options(const wq_wheel_options *o)
{
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		if (o->reserved[i] != 0)
			return WQ_EINVAL;
	if (o->tick_ns < 0 || o->tick_ns > (INT64_C(1) << TICK_SHIFT_MAX))
		return WQ_EINVAL;
	if (o->size == 1 || o->size > WQ__AGENDA_SLOTS || (o->size & (o->size - 1)) != 0)
		return WQ_EINVAL;
	if (o->allocator && (!o->allocator->alloc || !o->allocator->free))
		return WQ_EINVAL;
	return WQ_OK;
}

static uint32_t log2_up(uint64_t x)
{
	return x <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(x - 1);
}

int wq_wheel_new(wq_wheel **out, int64_t now_ns, const wq_wheel_options *options)
{
	wq_wheel_options o = options ? *options : (wq_wheel_options){0};
	const wq_allocator *a = o.allocator ? o.allocator : &wq__default_allocator;
	wq_wheel *w;

	if (!out || now_ns < 0 || check_options(&o) < 0)
		return WQ_EINVAL;
	w = wq__alloc(a, sizeof *w, 64);
	if (!w)
		return WQ_ENOMEM;
	memset(w, 0, sizeof *w);
	w->allocator = *a;
	w->now_ns = now_ns;
	wq__slab_init(&w->slab, &w->allocator);
	w->room = NOWHERE;
	for (uint32_t i = 0; i < WQ__AGENDA_SLOTS; i++)
		w->lane[i] = no_lane;
	wq__agenda_init(&w->agenda, &w->slab, &w->allocator, now_ns,
	                o.tick_ns ? log2_up((uint64_t)o.tick_ns) : TICK_SHIFT,
	                o.size ? log2_up(o.size) : 6);
	*out = w;
	return WQ_OK;
}

int64_t wq_wheel_free(wq_wheel *w)
{
	if (!w)
		return WQ_EINVAL;
	if (w->advancing)
		return WQ_EBUSY;

	wq_allocator a = w->allocator;
	int64_t left = (int64_t)w->n;

	for (uint32_t i = 0; i < w->nsegments; i++)
		places_free(w, &w->segments[i]);
	wq__free(&a, w->segments, w->segments_cap * sizeof *w->segments);
	wq__agenda_release(&w->agenda);
	wq__slab_release(&w->slab);
	wq__free(&a, w, sizeof *w);
	return left;
}

/* ---- timers --------------------------------------------------------------- */

static int make(wq_wheel *w, int64_t due_ns, struct record r, uint32_t flags, wq_timer_id *id)
{
	struct lane *lane = lane_of(w, wq__agenda_begun(&w->agenda, w->now_ns, due_ns), due_ns);
	wq_timer_id made;

	if (w->stopped)
		return WQ_ESHUTDOWN;
	if (!place_ready(lane) && !place_find(w, lane))
		return WQ_ENOMEM;
	made = place_take(w, lane, r, flags);
	/* One that never fires needs no reference. */
	if (due_ns != WQ_NEVER &&
	    wq__agenda_insert(&w->agenda, w->now_ns, (wq__ref){.due_ns = due_ns, .what = made}) <
	        0) {
		place_drop(w, made);
		return WQ_ENOMEM;
	}
	if (id)
		*id = made;
	return WQ_OK;
}

static struct extra *extra_new(wq_wheel *w, void *ctx, int64_t period_ns)
{
	uint32_t id;
	struct extra *e = wq__slab_alloc(&w->slab, sizeof *e, &id);

	if (e)
		*e = (struct extra){.ctx = ctx, .period_ns = period_ns, .id = id};
	return e;
}

static void extra_free(wq_wheel *w, struct extra *e)
{
	w->agenda.spare -= e->period_ns > 0;
	wq__slab_free(&w->slab, e->id);
}

static int make_special(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, int64_t period_ns,
                        wq_timer_id *id)
{
	struct extra *e = extra_new(w, ctx, period_ns);
	wq_timer_id made;
	int rc;

	if (!e)
		return WQ_ENOMEM;
	e->refers = due_ns != WQ_NEVER;
	/* What is periodic is referred to again each time it fires, which must not fail. */
	rc = period_ns == 0 || wq__agenda_spare(&w->agenda)
	         ? make(w, due_ns, (struct record){.fn = fn, .ctx = e}, FLAGS, &made)
	         : WQ_ENOMEM;
	if (rc < 0) {
		extra_free(w, e);
		return rc;
	}
	e->word = (uint32_t)made;
	if (id)
		*id = made;
	return WQ_OK;
}

/* Whatever has to be seen to. Apart, so that add() saves no registers; likewise below. */
static wq__cold int add_any(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!fn || due_ns < 0)
		return WQ_EINVAL;
	if (due_ns == WQ_NEVER)
		return make_special(w, due_ns, fn, ctx, 0, id);
	return make(w, due_ns, (struct record){.fn = fn, .ctx = ctx}, USED, id);
}

static inline int add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	struct wq__bucket *b = wq__agenda_room(&w->agenda, w->now_ns, due_ns);
	wq__ref ref = {.due_ns = due_ns};
	struct lane *lane;

	if (wq__unlikely(!b || !fn || due_ns == WQ_NEVER || w->stopped))
		return add_any(w, due_ns, fn, ctx, id);
	lane = lane_of(w, b, due_ns);
	if (wq__unlikely(!place_ready(lane)))
		return add_any(w, due_ns, fn, ctx, id);
	ref.what = place_take(w, lane, (struct record){.fn = fn, .ctx = ctx}, USED);
	wq__agenda_put(&w->agenda, b, ref);
	if (id)
		*id = ref.what;
	return WQ_OK;
}

int wq_wheel_add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	return w ? add(w, due_ns, fn, ctx, id) : WQ_EINVAL;
}

int wq_wheel_after(wq_wheel *w, int64_t delay_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	int64_t due_ns;

	if (!w)
		return WQ_EINVAL;
	if (delay_ns < 0)
		delay_ns = 0;
	if (__builtin_add_overflow(w->now_ns, delay_ns, &due_ns))
		due_ns = WQ_NEVER;
	return add(w, due_ns, fn, ctx, id);
}

int wq__wheel_every_at(wq_wheel *w, int64_t first_ns, int64_t period_ns, wq_timer_fn fn, void *ctx,
                       wq_timer_id *id)
{
	return make_special(w, first_ns, fn, ctx, period_ns, id);
}

int wq_wheel_every(wq_wheel *w, int64_t period_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!w || !fn || period_ns <= 0)
		return WQ_EINVAL;
	return wq__wheel_every_at(w, wq_time_add(w->now_ns, period_ns), period_ns, fn, ctx, id);
}

/* The timer is gone, and so is its extra. */
static void special_free(wq_wheel *w, uint64_t name, struct extra *e)
{
	if (e->worn)
		*word_of(w, name) = 0 - STEP; /* its last count: the place rests from now on */
	extra_free(w, e);
	place_drop(w, name);
}

static wq__cold int cancel_special(wq_wheel *w, wq_timer_id id)
{
	struct extra *e = extra_of(w, id);
	bool refers;

	if (!e)
		return WQ_ESTALE;
	refers = e->refers;
	special_free(w, id, e);
	if (refers)
		wq__agenda_died(&w->agenda, keep, w);
	return WQ_OK;
}

/* What a cancelled timer has left behind. */
static wq__cold int clean_up(wq_wheel *w, uint32_t number, bool thin)
{
	if (thin)
		thinned(w, number);
	if (wq__agenda_crowded(&w->agenda))
		wq__agenda_sweep(&w->agenda, keep, w);
	return WQ_OK;
}

int wq_wheel_cancel(wq_wheel *w, wq_timer_id id)
{
	if (wq__unlikely(!w))
		return WQ_EINVAL;
	if (wq__unlikely(!is_plain(w, id)))
		return cancel_special(w, id);

	bool thin = place_free(w, id);

	w->agenda.ndead++;
	if (wq__unlikely(thin || wq__agenda_crowded(&w->agenda)))
		return clean_up(w, number_of(id), thin);
	return WQ_OK;
}

/* Its reference dies, and it gets another, unless it never fires. */
static int move(wq_wheel *w, wq_timer_id id, struct extra *e, int64_t due_ns)
{
	uint32_t *word = word_of(w, id), next = (*word & ~FLAGS) + STEP;
	bool dies = e->refers;
	wq__ref ref = {.due_ns = due_ns, .what = (id >> 32 << 32) | next | FLAGS};

	/* The new reference first: it may fail. */
	if (due_ns != WQ_NEVER && wq__agenda_insert(&w->agenda, w->now_ns, ref) < 0)
		return WQ_ENOMEM;
	e->worn |= next < *word;
	e->refers = due_ns != WQ_NEVER;
	*word = next | FLAGS;
	if (dies)
		wq__agenda_died(&w->agenda, keep, w);
	return WQ_OK;
}

int wq_wheel_reschedule(wq_wheel *w, wq_timer_id id, int64_t due_ns)
{
	struct extra *e;
	int rc;

	if (!w || due_ns < 0)
		return WQ_EINVAL;
	e = extra_of(w, id);
	if (e)
		return move(w, id, e, due_ns);
	if (!is_plain(w, id))
		return WQ_ESTALE;
	e = extra_new(w, record_of(w, id)->ctx, 0);
	if (!e)
		return WQ_ENOMEM;
	e->word = (uint32_t)id;
	e->refers = true;
	rc = move(w, id, e, due_ns);
	if (rc < 0)
		extra_free(w, e);
	else
		record_of(w, id)->ctx = e;
	return rc;
}

int64_t wq_wheel_size(const wq_wheel *w)
{
	return w ? (int64_t)w->n : WQ_EINVAL;
}

int64_t wq_wheel_next_deadline(const wq_wheel *w)
{
	return w ? wq__agenda_next(&w->agenda) : WQ_EINVAL;
}

/* ---- firing --------------------------------------------------------------- */

/* A periodic timer fires: on to the first of its times that lies after now. */
static void next_period(wq_wheel *w, struct extra *e, wq__ref ref, wq_timer_event *event)
{
	int64_t missed = (event->now_ns - ref.due_ns) / e->period_ns;

	event->skipped = missed;
	/* missed * period is at most now - due. */
	ref.due_ns = wq_time_add(ref.due_ns + missed * e->period_ns, e->period_ns);
	e->refers = ref.due_ns != WQ_NEVER;
	if (e->refers)
		wq__agenda_reinsert(&w->agenda, ref);
}

static wq__cold void fire_special(wq_wheel *w, wq__ref ref, void **ctx, wq_timer_event *event)
{
	struct extra *e = *ctx;

	*ctx = e->ctx;
	event->id = (ref.what >> 32 << 32) | e->word;
	if (e->period_ns > 0)
		next_period(w, e, ref, event);
	else
		special_free(w, ref.what, e);
}

/* Forced: a function that only prefetches does nothing in gcc's eyes. */
static wq__forced void fetch(const wq_wheel *w, wq__ref ref)
{
	const struct segment *s = &w->segments[number_of(ref.what)];

	if (s->word) {
		wq__prefetch_to_write(&s->word[place_of(ref.what)]);
		wq__prefetch(&s->record[place_of(ref.what)]);
	}
}

/* The next reference that is due, not out of the run. False: none is. */
static wq__apart bool next_any(wq_wheel *w, int64_t now_ns, wq__ref *out)
{
	const wq__agenda *a = &w->agenda;
	size_t budget = SIZE_MAX;

	if (wq__agenda_pop_any(&w->agenda, now_ns, &budget, out) != WQ__AGENDA_POPPED)
		return false;
	for (size_t i = 0; i < wq__agenda_soon(a, WQ__AGENDA_LOOK); i++)
		fetch(w, a->run[a->run_at + i]);
	return true;
}

/*
 * The next reference that is due. Timers fire in another order than they were added
 * in: the memory of each is fetched a while before it is used.
 */
static inline bool next(wq_wheel *w, int64_t now_ns, wq__ref *out)
{
	const wq__agenda *a = &w->agenda;

	if (wq__unlikely(!wq__agenda_pop_run(&w->agenda, now_ns, out)))
		return next_any(w, now_ns, out);
	if (wq__agenda_soon(a, WQ__AGENDA_LOOK) == WQ__AGENDA_LOOK)
		fetch(w, a->run[a->run_at + WQ__AGENDA_LOOK - 1]);
	return true;
}

/* The next callback that is due at event->now_ns. Sets the rest of the event; false: none is. */
static wq__forced bool pop(wq_wheel *w, struct record *out, wq_timer_event *event)
{
	wq__ref ref;

	while (!w->stopped && next(w, event->now_ns, &ref)) {
		if (wq__unlikely(!alive(w, ref))) {
			wq__agenda_buried(&w->agenda);
			continue;
		}
		*out = *record_of(w, ref.what);
		event->id = ref.what;
		event->due_ns = ref.due_ns;
		event->skipped = 0;
		if (wq__unlikely(ref.what & SPECIAL))
			fire_special(w, ref, &out->ctx, event);
		else
			place_drop(w, ref.what);
		return true;
	}
	return false;
}

bool wq__wheel_pop(wq_wheel *w, int64_t now_ns, struct wq__due *out)
{
	struct record r;

	w->now_ns = now_ns;
	out->event = (wq_timer_event){.now_ns = now_ns};
	if (!pop(w, &r, &out->event))
		return false;
	out->fn = r.fn;
	out->ctx = r.ctx;
	return true;
}

int64_t wq_wheel_advance(wq_wheel *w, int64_t now_ns)
{
	wq_timer_event event = {.now_ns = now_ns};
	struct record r;
	int64_t fired = 0;

	if (!w || now_ns < 0)
		return WQ_EINVAL;
	if (w->advancing)
		return WQ_EBUSY;
	w->advancing = true;
	w->now_ns = now_ns;
	for (; pop(w, &r, &event); fired++)
		r.fn(r.ctx, &event);
	w->advancing = false;
	return fired;
}

int wq_wheel_stop(wq_wheel *w)
{
	if (!w)
		return WQ_EINVAL;
	w->stopped = true;
	return WQ_OK;
}
