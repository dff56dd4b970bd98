/*
 * Timers by name over the agenda. A timer has a place: a word and a record
 * {fn, ctx}. The word is a count and two flags, and both the timer's id and its
 * reference in the agenda are the place and what the word was then. Whoever
 * cancels counts on, so that both are stale at once. One that is moved counts on
 * too, and remembers in an extra what its id says, as does what is periodic or
 * has no reference; the SPECIAL flag says that the record points to an extra.
 *
 * Words stand together, 4 bytes a timer, free places are bits: cancelling, and
 * finding out that a reference is dead, touch nothing else.
 *
 * Places stand in segments. A segment without timers gives its memory back and
 * leaves behind the number from which its successor counts, and a place whose
 * count is used up is never free again, so no id and no reference is ever valid
 * twice.
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
};

/* The word of a place. */
#define USED UINT32_C(1)
#define SPECIAL UINT32_C(2)
#define FLAGS (USED | SPECIAL)
#ifndef STEP /* a test has larger ones */
#define STEP UINT32_C(4)
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

struct places {
	uint32_t word[SEGMENT];
	struct record record[SEGMENT];
};

struct segment {
	struct places *places;         /* NULL: given back */
	uint64_t free[SEGMENT / 64];   /* a bit a place */
	uint32_t rows;                 /* a bit for each of free[] that is not 0 */
	uint32_t next_room, prev_room; /* segments with room, or NOWHERE */
	uint32_t count;                /* given back: from where the next one counts */
	uint32_t id;                   /* in the slab; 0: it stands alone */
};

struct wq_wheel {
	wq__agenda agenda;
	wq__slab slab;
	int64_t now_ns;
	size_t n;                 /* timers */
	struct segment *segments; /* by number */
	uint32_t nsegments, segments_cap;
	uint32_t nholes;   /* segments that were given back */
	uint32_t room;     /* the first segment with room, or NOWHERE */
	uint64_t row_free; /* free places of the row that is taken from; not free in its segment */
	struct places *row_of; /* its segment's */
	uint32_t row_at;       /* its first place in there */
	uint32_t row_name;     /* and in the wheel */
	bool advancing, stopped;
	wq_allocator allocator;
};

/* ---- segments ------------------------------------------------------------- */

static void room_link(wq_wheel *w, uint32_t number)
{
	w->segments[number].prev_room = NOWHERE;
	w->segments[number].next_room = w->room;
	if (w->room != NOWHERE)
		w->segments[w->room].prev_room = number;
	w->room = number;
}

static void room_unlink(wq_wheel *w, uint32_t number)
{
	const struct segment *s = &w->segments[number];

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

	while (number < w->nsegments && w->segments[number].places)
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

static bool segment_new(wq_wheel *w)
{
	uint32_t number = number_new(w), id = 0;
	struct places *p;

	if (number == NOWHERE)
		return false;
	p = number < ALONE ? wq__alloc(&w->allocator, sizeof *p, 64)
	                   : wq__slab_alloc(&w->slab, sizeof *p, &id);
	if (!p)
		return false;

	struct segment *s = &w->segments[number];

	for (uint32_t i = 0; i < SEGMENT; i++)
		p->word[i] = s->count;
	memset(s->free, 0xff, sizeof s->free);
	s->rows = (1u << SEGMENT / 64) - 1;
	s->places = p;
	s->id = id;
	w->nholes--;
	room_link(w, number);
	return true;
}

static void places_free(wq_wheel *w, struct segment *s)
{
	if (s->id == 0)
		wq__free(&w->allocator, s->places, sizeof *s->places);
	else if (s->places)
		wq__slab_free(&w->slab, s->id);
	s->places = NULL;
}

static void segment_free(wq_wheel *w, uint32_t number)
{
	struct segment *s = &w->segments[number];
	uint32_t newest = 0;

	for (uint32_t i = 0; i < SEGMENT; i++)
		newest = s->places->word[i] > newest ? s->places->word[i] : newest;
	s->count = newest;
	if (w->row_of == s->places)
		w->row_free = 0;
	room_unlink(w, number);
	places_free(w, s);
	w->nholes++;
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
	return &w->segments[number_of(name)].places->record[place_of(name)];
}

static inline uint32_t *word_of(const wq_wheel *w, uint64_t name)
{
	return &w->segments[number_of(name)].places->word[place_of(name)];
}

/* Does the id name a timer that has no extra? */
static inline bool is_plain(const wq_wheel *w, wq_timer_id id)
{
	uint32_t number = number_of(id);

	return number < w->nsegments && w->segments[number].places &&
	       *word_of(w, id) == (uint32_t)id && (id & FLAGS) == USED;
}

/* The extra of the timer that the id names; NULL: it has none, or is not there. */
static struct extra *extra_of(const wq_wheel *w, wq_timer_id id)
{
	uint32_t number = number_of(id);

	if (number >= w->nsegments || !w->segments[number].places || !(*word_of(w, id) & SPECIAL))
		return NULL;

	struct extra *e = record_of(w, id)->ctx;

	return e->word == (uint32_t)id ? e : NULL;
}

/* Does the reference count? */
static inline bool alive(const wq_wheel *w, wq__ref ref)
{
	const struct places *p = w->segments[number_of(ref.what)].places;

	return p && p->word[place_of(ref.what)] == (uint32_t)ref.what;
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

/* Take places from another row. False: there is none, and no memory for more. */
static bool row_next(wq_wheel *w)
{
	if (w->room == NOWHERE && !segment_new(w))
		return false;

	uint32_t number = w->room;
	struct segment *s = &w->segments[number];
	uint32_t row = (uint32_t)__builtin_ctz(s->rows);

	w->row_free = s->free[row];
	w->row_of = s->places;
	w->row_at = row * 64;
	w->row_name = number * SEGMENT + row * 64;
	s->free[row] = 0;
	s->rows &= s->rows - 1;
	if (s->rows == 0)
		room_unlink(w, number);
	return true;
}

/* A name for what stands in the record. The row has a free place. */
static inline wq_timer_id place_take(wq_wheel *w, struct record r, uint32_t flags)
{
	uint32_t i = (uint32_t)__builtin_ctzll(w->row_free), at = w->row_at + i;
	uint32_t word = w->row_of->word[at] | flags;

	w->row_free &= w->row_free - 1;
	w->n++;
	w->row_of->record[at] = r;
	w->row_of->word[at] = word;
	return (uint64_t)(w->row_name + i) << 32 | word;
}

/*
 * Has the segment no timers, and could do without it? The last one with room
 * stays: who adds and cancels one timer would make and free it over and over.
 */
static bool is_needless(const wq_wheel *w, uint32_t number)
{
	const struct segment *s = &w->segments[number];
	uint32_t other = w->room == number ? s->next_room : w->room;

	for (uint32_t row = 0; row < SEGMENT / 64; row++) {
		bool taken = number * SEGMENT + row * 64 == w->row_name;

		if ((s->free[row] | (taken ? w->row_free : 0)) != ~UINT64_C(0))
			return false;
	}
	return other != NOWHERE;
}

/* Its id and its reference are stale from now on. True: its segment is needless. */
static inline bool place_free(wq_wheel *w, uint64_t name)
{
	uint32_t number = number_of(name), i = place_of(name), row = i / 64;
	struct segment *s = &w->segments[number];
	uint32_t word = (s->places->word[i] & ~FLAGS) + STEP;

	w->n--;
	s->places->word[i] = word;
	if (wq__unlikely(word == 0))
		return false;
	if (wq__unlikely(s->free[row] == 0)) {
		if (s->rows == 0)
			room_link(w, number);
		s->rows |= 1u << row;
	}
	s->free[row] |= UINT64_C(1) << i % 64;
	return wq__unlikely((s->free[row] | w->row_free) == ~UINT64_C(0)) && is_needless(w, number);
}

static inline void place_drop(wq_wheel *w, uint64_t name)
{
	if (place_free(w, name))
		segment_free(w, number_of(name));
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
	wq_timer_id made;

	if (w->stopped)
		return WQ_ESHUTDOWN;
	if (!w->row_free && !row_next(w))
		return WQ_ENOMEM;
	made = place_take(w, r, flags);
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

	if (wq__unlikely(!b || !fn || due_ns == WQ_NEVER || w->stopped || !w->row_free))
		return add_any(w, due_ns, fn, ctx, id);
	ref.what = place_take(w, (struct record){.fn = fn, .ctx = ctx}, USED);
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
static wq__cold int clean_up(wq_wheel *w, uint32_t number, bool empty)
{
	if (empty)
		segment_free(w, number);
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

	bool empty = place_free(w, id);

	w->agenda.ndead++;
	if (wq__unlikely(empty || wq__agenda_crowded(&w->agenda)))
		return clean_up(w, number_of(id), empty);
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
static void next_period(wq_wheel *w, struct extra *e, wq__ref ref, struct wq__due *out)
{
	int64_t missed = (out->event.now_ns - ref.due_ns) / e->period_ns;

	out->event.skipped = missed;
	/* missed * period is at most now - due. */
	ref.due_ns = wq_time_add(ref.due_ns + missed * e->period_ns, e->period_ns);
	e->refers = ref.due_ns != WQ_NEVER;
	if (e->refers)
		wq__agenda_reinsert(&w->agenda, ref);
}

static void fire_special(wq_wheel *w, wq__ref ref, struct wq__due *out)
{
	struct extra *e = out->ctx;

	out->ctx = e->ctx;
	out->event.id = (ref.what >> 32 << 32) | e->word;
	if (e->period_ns > 0)
		next_period(w, e, ref, out);
	else
		special_free(w, ref.what, e);
}

/* Timers fire in another order than they were added in: their memory comes a while after it is asked for. */
static inline void fetch_ahead(wq_wheel *w)
{
	uint64_t what;

	while ((what = wq__agenda_ahead(&w->agenda)) != 0) {
		const struct places *p = w->segments[number_of(what)].places;

		if (p) {
			wq__prefetch(&p->word[place_of(what)]);
			wq__prefetch(&p->record[place_of(what)]);
		}
	}
}

static inline bool pop(wq_wheel *w, int64_t now_ns, struct wq__due *out)
{
	size_t budget = SIZE_MAX;
	wq__ref ref;

	while (!w->stopped &&
	       wq__agenda_pop(&w->agenda, now_ns, &budget, &ref) == WQ__AGENDA_POPPED) {
		fetch_ahead(w);
		if (!alive(w, ref)) {
			wq__agenda_buried(&w->agenda);
			continue;
		}

		const struct record *r = record_of(w, ref.what);

		*out = (struct wq__due){
		    .fn = r->fn,
		    .ctx = r->ctx,
		    .event = {.id = ref.what, .due_ns = ref.due_ns, .now_ns = now_ns},
		};
		if (wq__unlikely(ref.what & SPECIAL))
			fire_special(w, ref, out);
		else
			place_drop(w, ref.what);
		return true;
	}
	return false;
}

bool wq__wheel_pop(wq_wheel *w, int64_t now_ns, struct wq__due *out)
{
	w->now_ns = now_ns;
	return pop(w, now_ns, out);
}

int64_t wq_wheel_advance(wq_wheel *w, int64_t now_ns)
{
	struct wq__due due;
	int64_t fired = 0;

	if (!w || now_ns < 0)
		return WQ_EINVAL;
	if (w->advancing)
		return WQ_EBUSY;
	w->advancing = true;
	w->now_ns = now_ns;
	for (; pop(w, now_ns, &due); fired++)
		due.fn(due.ctx, &due.event);
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
