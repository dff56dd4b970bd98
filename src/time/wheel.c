/*
 * Timers by name over the agenda. A timer is a record {fn, ctx} at a place that
 * has a generation and a version. Its id is place and generation, which lasts
 * until it is gone; the reference in the agenda is place and version, which
 * lasts until it is moved. So cancelling and rescheduling make the old
 * reference stale at once.
 *
 * Records stand in segments. A segment without timers gives its memory back
 * and leaves behind the numbers from which its successor counts, so no id and
 * no reference is ever valid twice.
 */
#include "time/wheel.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "time/agenda.h"

enum {
	TICK_SHIFT = 18,
	TICK_SHIFT_MAX = 40,
	SEGMENT = 512, /* records in a segment */
	NONE = SEGMENT,
};

struct record {
	wq_timer_fn fn;
	union {
		void *ctx;           /* in use */
		struct every *every; /* in use, and fn is periodic() */
		uintptr_t next_free;
	} u;
};

/* What a periodic timer needs besides. */
struct every {
	wq_timer_fn fn;
	void *ctx;
	int64_t period_ns;
	uint32_t id; /* in the slab */
};

struct segment {
	struct segment *next_room, *prev_room; /* the list of segments with room */
	uint32_t number;
	uint32_t live;
	uintptr_t free;               /* first free record, or NONE */
	uint32_t generation[SEGMENT]; /* odd: in use */
	uint32_t version[SEGMENT];    /* odd: the agenda has a reference to it */
	struct record record[SEGMENT];
};

struct wq_wheel {
	wq__agenda agenda;
	wq__slab slab;
	int64_t now_ns;
	size_t n;                  /* timers */
	struct segment **segments; /* by number; NULL: given back */
	uint32_t *counts;          /* by number: from where a new segment counts, even */
	uint32_t nsegments, segments_cap;
	struct segment *room;
	bool advancing, stopped;
	wq_allocator allocator;
};

/* Marks a periodic timer; never called. */
static void periodic(void *ctx, const wq_timer_event *event)
{
	(void)ctx;
	(void)event;
}

/* ---- records -------------------------------------------------------------- */

static void room_link(wq_wheel *w, struct segment *s)
{
	s->prev_room = NULL;
	s->next_room = w->room;
	if (w->room)
		w->room->prev_room = s;
	w->room = s;
}

static void room_unlink(wq_wheel *w, struct segment *s)
{
	if (s->prev_room)
		s->prev_room->next_room = s->next_room;
	else
		w->room = s->next_room;
	if (s->next_room)
		s->next_room->prev_room = s->prev_room;
}

static bool numbers_grow(wq_wheel *w)
{
	uint32_t cap = w->segments_cap ? w->segments_cap * 2 : 8;
	struct segment **segments;
	uint32_t *counts; /* by number: from where a new segment counts, even */

	segments = wq__alloc(&w->allocator, cap * sizeof(struct segment *), 8);
	counts = wq__alloc(&w->allocator, cap * sizeof *counts, 8);
	if (!segments || !counts) {
		wq__free(&w->allocator, segments, cap * sizeof(struct segment *));
		wq__free(&w->allocator, counts, cap * sizeof *counts);
		return false;
	}
	memset(segments, 0, cap * sizeof(struct segment *));
	memset(counts, 0, cap * sizeof *counts);
	if (w->segments_cap > 0) {
		memcpy(segments, w->segments, w->nsegments * sizeof(struct segment *));
		memcpy(counts, w->counts, w->nsegments * sizeof *counts);
	}
	wq__free(&w->allocator, w->segments, w->segments_cap * sizeof(struct segment *));
	wq__free(&w->allocator, w->counts, w->segments_cap * sizeof *counts);
	w->segments = segments;
	w->counts = counts;
	w->segments_cap = cap;
	return true;
}

static struct segment *segment_new(wq_wheel *w)
{
	struct segment *s;
	uint32_t number = 0;

	/* One that was given back, or the next. Segments are few: one for 512 timers. */
	while (number < w->nsegments && w->segments[number])
		number++;
	if (number == w->segments_cap && !numbers_grow(w))
		return NULL;
	s = wq__alloc(&w->allocator, sizeof *s, 64);
	if (!s)
		return NULL;
	s->number = number;
	s->live = 0;
	s->free = 0;
	for (uint32_t i = 0; i < SEGMENT; i++) {
		s->generation[i] = s->version[i] = w->counts[number];
		s->record[i].u.next_free = i + 1;
	}
	w->segments[number] = s;
	if (number == w->nsegments)
		w->nsegments++;
	room_link(w, s);
	return s;
}

static void segment_free(wq_wheel *w, struct segment *s)
{
	uint32_t newest = 0;

	for (uint32_t i = 0; i < SEGMENT; i++) {
		if (s->generation[i] > newest)
			newest = s->generation[i];
		if (s->version[i] > newest)
			newest = s->version[i];
	}
	w->counts[s->number] = newest;
	w->segments[s->number] = NULL;
	room_unlink(w, s);
	wq__free(&w->allocator, s, sizeof *s);
}

static wq_timer_id record_new(wq_wheel *w, wq_timer_fn fn, void *ctx)
{
	struct segment *s = w->room ? w->room : segment_new(w);

	if (!s)
		return 0;

	uint32_t i = (uint32_t)s->free;
	struct record *r = &s->record[i];

	s->free = r->u.next_free;
	if (s->free == NONE)
		room_unlink(w, s);
	s->live++;
	*r = (struct record){.fn = fn, .u.ctx = ctx};
	w->n++;
	return (uint64_t)(s->number * SEGMENT + i) << 32 | ++s->generation[i];
}

static struct segment *segment_of(const wq_wheel *w, uint64_t name)
{
	uint32_t number = (uint32_t)(name >> 32) / SEGMENT;

	return number < w->nsegments ? w->segments[number] : NULL;
}

/* Of a name that is known to be good. */
static struct segment *segment_at(const wq_wheel *w, uint64_t name)
{
	return w->segments[(uint32_t)(name >> 32) / SEGMENT];
}

static uint32_t place_of(uint64_t name)
{
	return (uint32_t)(name >> 32) % SEGMENT;
}

/* Does the id name a timer? */
static bool is_timer(const wq_wheel *w, wq_timer_id id)
{
	const struct segment *s = segment_of(w, id);

	return s && (id & 1) && s->generation[place_of(id)] == (uint32_t)id;
}

/* Does the reference count? */
static bool alive(const void *wheel, wq__ref ref)
{
	const struct segment *s = segment_of(wheel, ref.what);

	return s && s->version[place_of(ref.what)] == (uint32_t)ref.what;
}

static size_t keep(const void *wheel, wq__ref *ref, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (alive(wheel, ref[i]))
			ref[kept++] = ref[i];
	return kept;
}

/* It has no reference any more. */
static void record_free(wq_wheel *w, wq_timer_id id)
{
	struct segment *s = segment_at(w, id);
	uint32_t i = place_of(id);

	s->generation[i]++;
	s->record[i].u.next_free = s->free;
	if (s->free == NONE)
		room_link(w, s);
	s->free = i;
	w->n--;
	/* Keep the last one: a wheel with one timer at a time would make and free it over and over. */
	if (--s->live == 0 && w->n > 0)
		segment_free(w, s);
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
	w->slab.small_only = 1;
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
		wq__free(&a, w->segments[i], sizeof *w->segments[i]);
	wq__free(&a, w->segments, w->segments_cap * sizeof(struct segment *));
	wq__free(&a, w->counts, w->segments_cap * sizeof *w->counts);
	wq__agenda_release(&w->agenda);
	wq__slab_release(&w->slab);
	wq__free(&a, w, sizeof *w);
	return left;
}

/* ---- timers --------------------------------------------------------------- */

/* A reference for a timer that has none. One that never fires needs none. */
static int refer(wq_wheel *w, wq_timer_id id, int64_t due_ns)
{
	uint32_t *version = &segment_at(w, id)->version[place_of(id)];
	wq__ref ref = {.due_ns = due_ns, .what = (id >> 32 << 32) | (*version + 1)};

	if (due_ns == WQ_NEVER)
		return 0;
	if (wq__agenda_insert(&w->agenda, w->now_ns, ref) < 0)
		return -1;
	++*version;
	return 0;
}

/* Lets its reference die, if it has one. */
static void unrefer(wq_wheel *w, wq_timer_id id)
{
	uint32_t *version = &segment_at(w, id)->version[place_of(id)];

	if (*version & 1) {
		++*version;
		wq__agenda_died(&w->agenda, keep, w);
	}
}

int wq_wheel_add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	wq_timer_id made;

	if (wq__unlikely(!w || !fn || due_ns < 0))
		return WQ_EINVAL;
	if (w->stopped)
		return WQ_ESHUTDOWN;
	made = record_new(w, fn, ctx);
	if (!made)
		return WQ_ENOMEM;
	if (refer(w, made, due_ns) < 0) {
		record_free(w, made);
		return WQ_ENOMEM;
	}
	if (id)
		*id = made;
	return WQ_OK;
}

int wq_wheel_after(wq_wheel *w, int64_t delay_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!w)
		return WQ_EINVAL;
	return wq_wheel_add(w, delay_ns > 0 ? wq_time_add(w->now_ns, delay_ns) : w->now_ns, fn, ctx,
	                    id);
}

static void every_free(wq_wheel *w, struct every *e)
{
	w->agenda.spare--;
	wq__slab_free(&w->slab, e->id);
}

int wq__wheel_every_at(wq_wheel *w, int64_t first_ns, int64_t period_ns, wq_timer_fn fn, void *ctx,
                       wq_timer_id *id)
{
	struct every *e;
	uint32_t e_id;
	int rc;

	e = wq__slab_alloc(&w->slab, sizeof *e, &e_id);
	if (!e)
		return WQ_ENOMEM;
	*e = (struct every){.fn = fn, .ctx = ctx, .period_ns = period_ns, .id = e_id};
	/* It is referred to again each time it fires, which must not fail. */
	rc = wq__agenda_spare(&w->agenda) ? wq_wheel_add(w, first_ns, periodic, e, id) : WQ_ENOMEM;
	if (rc < 0)
		every_free(w, e);
	return rc;
}

int wq_wheel_every(wq_wheel *w, int64_t period_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!w || !fn || period_ns <= 0)
		return WQ_EINVAL;
	return wq__wheel_every_at(w, wq_time_add(w->now_ns, period_ns), period_ns, fn, ctx, id);
}

int wq_wheel_cancel(wq_wheel *w, wq_timer_id id)
{
	if (!w)
		return WQ_EINVAL;
	if (!is_timer(w, id))
		return WQ_ESTALE;

	struct record *r = &segment_at(w, id)->record[place_of(id)];

	if (r->fn == periodic)
		every_free(w, r->u.every);
	unrefer(w, id);
	record_free(w, id);
	return WQ_OK;
}

int wq_wheel_reschedule(wq_wheel *w, wq_timer_id id, int64_t due_ns)
{
	wq__ref ref = {.due_ns = due_ns, .what = id >> 32 << 32};
	uint32_t *version;

	if (!w || due_ns < 0)
		return WQ_EINVAL;
	if (!is_timer(w, id))
		return WQ_ESTALE;
	version = &segment_at(w, id)->version[place_of(id)];
	if (due_ns == WQ_NEVER) {
		unrefer(w, id);
		return WQ_OK;
	}
	if (!(*version & 1))
		return refer(w, id, due_ns) < 0 ? WQ_ENOMEM : WQ_OK;
	/* The new reference first: it may fail. */
	ref.what |= *version + 2;
	if (wq__agenda_insert(&w->agenda, w->now_ns, ref) < 0)
		return WQ_ENOMEM;
	*version += 2;
	wq__agenda_died(&w->agenda, keep, w);
	return WQ_OK;
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
static void next_period(wq_wheel *w, const struct every *e, wq__ref ref, struct wq__due *out)
{
	uint32_t *version = &segment_at(w, ref.what)->version[place_of(ref.what)];
	int64_t missed = (out->event.now_ns - ref.due_ns) / e->period_ns;

	out->fn = e->fn;
	out->ctx = e->ctx;
	out->event.skipped = missed;
	/* missed * period is at most now - due. */
	ref.due_ns = wq_time_add(ref.due_ns + missed * e->period_ns, e->period_ns);
	if (ref.due_ns == WQ_NEVER) {
		++*version;
		return;
	}
	*version += 2;
	ref.what += 2;
	wq__agenda_reinsert(&w->agenda, ref);
}

bool wq__wheel_pop(wq_wheel *w, int64_t now_ns, struct wq__due *out)
{
	size_t budget = SIZE_MAX;
	wq__ref ref;

	w->now_ns = now_ns;
	while (!w->stopped &&
	       wq__agenda_pop(&w->agenda, now_ns, &budget, &ref) == WQ__AGENDA_POPPED) {
		if (!alive(w, ref)) {
			wq__agenda_buried(&w->agenda);
			continue;
		}

		struct segment *s = segment_at(w, ref.what);
		uint32_t i = place_of(ref.what);
		wq_timer_id id = (ref.what >> 32 << 32) | s->generation[i];

		*out = (struct wq__due){
		    .fn = s->record[i].fn,
		    .ctx = s->record[i].u.ctx,
		    .event = {.id = id, .due_ns = ref.due_ns, .now_ns = now_ns},
		};
		if (out->fn == periodic) {
			next_period(w, s->record[i].u.every, ref, out);
		} else {
			s->version[i]++;
			record_free(w, id);
		}
		return true;
	}
	return false;
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
	for (; wq__wheel_pop(w, now_ns, &due); fired++)
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
