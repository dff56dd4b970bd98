/*
 * Timers by name: the public wheel, over the timing wheel that queues have, too (timing_wheel.h). A
 * timer has a place: a word and a record {fn, ctx}. The word is a count and two flags, and both the
 * timer's id and its reference in the timing wheel are the place and what the word was then.
 * Whoever cancels counts on, so that both are stale at once. One that is moved counts on too, and
 * remembers in an extra what its id says, as does what is periodic or has no reference; the SPECIAL
 * flag says that the record points to an extra.
 */
#include "time/wheel.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "time/places.h"
#include "time/timing_wheel.h"

enum {
	TICK_SHIFT = 18,
	TICK_SHIFT_MAX = 40,
};

/* Of what is not simply added and then fired or cancelled. */
struct extra {
	void *ctx;
	int64_t period_ns; /* 0: it fires once */
	uint32_t word;     /* as its id has it */
	uint32_t id;       /* in the slab */
	bool refers;       /* the timing wheel has a reference to it */
	bool worn;         /* the count has begun again */
};

struct wq_wheel {
	wq__timing_wheel tw;
	wq__slab slab;
	wq__places places;
	int64_t now_ns;
	bool advancing, stopped;
	wq_allocator allocator;
};

/* The extra of the timer that the id names; NULL: it has none, or is not there. */
static struct extra *extra_of(const wq_wheel *w, wq_timer_id id)
{
	uint32_t number = wq__segment_of(id);

	if (number >= w->places.nsegments || !w->places.segments[number].word ||
	    !(*wq__word_of(&w->places, id) & WQ__SPECIAL))
		return NULL;

	struct extra *e = wq__record_of(&w->places, id)->ctx;

	return e->word == (uint32_t)id ? e : NULL;
}

/* Without a branch for the dead: so many look-ups at once are under way as the processor can. */
static size_t keep(const void *wheel, wq__ref *ref, size_t n)
{
	const wq_wheel *w = wheel;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		wq__ref it = ref[i];

		ref[kept] = it;
		kept += wq__place_lives(&w->places, it);
	}
	return kept;
}

/* ---- life ----------------------------------------------------------------- */

static int check_options(const wq_wheel_options *o)
{
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		if (o->reserved[i] != 0)
			return wq__fail(WQ_EINVAL,
			                "a reserved word of wq_wheel_options is not zero");
	if (o->tick_ns < 0)
		return wq__fail(WQ_EINVAL, "tick_ns is negative");
	if (o->tick_ns > (INT64_C(1) << TICK_SHIFT_MAX))
		return wq__fail(WQ_EINVAL, "tick_ns is %" PRId64 ", more than %" PRId64, o->tick_ns,
		                INT64_C(1) << TICK_SHIFT_MAX);
	if (o->size == 1 || o->size > WQ__TW_SLOTS || (o->size & (o->size - 1)) != 0)
		return wq__fail(WQ_EINVAL, "size is %zu, not a power of 2 from 2 to %d", o->size,
		                WQ__TW_SLOTS);
	if (o->allocator && !wq__allocator_good(o->allocator))
		return wq__fail_allocator(o->allocator);
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

	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	if (now_ns < 0)
		return wq__fail(WQ_EINVAL, "now_ns is negative");
	if (check_options(&o) < 0)
		return WQ_EINVAL;
	w = wq__alloc(a, sizeof *w, 64);
	if (!w)
		return wq__fail_memory();
	memset(w, 0, sizeof *w);
	w->allocator = *a;
	w->now_ns = now_ns;
	wq__slab_init(&w->slab, &w->allocator);
	wq__places_init(&w->places, &w->slab, &w->allocator);
	wq__tw_init(&w->tw, &w->slab, &w->allocator, now_ns,
	            o.tick_ns ? log2_up((uint64_t)o.tick_ns) : TICK_SHIFT,
	            o.size ? log2_up(o.size) : 6);
	*out = w;
	return WQ_OK;
}

int64_t wq_wheel_free(wq_wheel *w)
{
	if (!w)
		return WQ_OK;
	if (w->advancing)
		return WQ_EBUSY;

	wq_allocator a = w->allocator;
	int64_t left = (int64_t)w->places.n;

	wq__places_release(&w->places);
	wq__tw_release(&w->tw);
	wq__slab_release(&w->slab);
	wq__free(&a, w, sizeof *w);
	return left;
}

/* ---- timers --------------------------------------------------------------- */

static int make(wq_wheel *w, int64_t due_ns, struct wq__record r, uint32_t flags, wq_timer_id *id)
{
	struct wq__shelf *shelf =
	    wq__shelf_of(&w->places, wq__tw_begun(&w->tw, w->now_ns, due_ns), due_ns);
	wq_timer_id made;

	if (w->stopped)
		return wq__fail(WQ_ESHUTDOWN, "the timing wheel is stopped");
	if (!wq__place_ready(shelf) && !wq__place_find(&w->places, shelf))
		return wq__fail_memory();
	made = wq__place_take(&w->places, shelf, r, flags);
	/* One that never fires needs no reference. */
	if (due_ns != WQ_NEVER &&
	    wq__tw_insert(&w->tw, w->now_ns, (wq__ref){.due_ns = due_ns, .what = made}) < 0) {
		wq__place_drop(&w->places, made);
		return wq__fail_memory();
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
	w->tw.spare -= e->period_ns > 0;
	wq__slab_free(&w->slab, e->id);
}

static int make_special(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, int64_t period_ns,
                        wq_timer_id *id)
{
	struct extra *e = extra_new(w, ctx, period_ns);
	wq_timer_id made;
	int rc;

	if (!e)
		return wq__fail_memory();
	e->refers = due_ns != WQ_NEVER;
	/* What is periodic is referred to again each time it fires, which must not fail. */
	rc = period_ns == 0 || wq__tw_spare(&w->tw)
	         ? make(w, due_ns, (struct wq__record){.fn = fn, .ctx = e}, WQ__FLAGS, &made)
	         : wq__fail_memory();
	if (rc < 0) {
		extra_free(w, e);
		return rc;
	}
	e->word = (uint32_t)made;
	if (id)
		*id = made;
	return WQ_OK;
}

int wq__wheel_is_null(void)
{
	return wq__fail(WQ_EINVAL, "the timing wheel is NULL");
}

/* Whatever has to be seen to. Apart, so that add() saves no registers; likewise below. */
static wq__cold int add_any(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!fn || due_ns < 0)
		return wq__fail(WQ_EINVAL, "%s", fn ? "due_ns is negative" : "fn is NULL");
	if (due_ns == WQ_NEVER)
		return make_special(w, due_ns, fn, ctx, 0, id);
	return make(w, due_ns, (struct wq__record){.fn = fn, .ctx = ctx}, WQ__USED, id);
}

static inline int add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	struct wq__bucket *b = wq__tw_room(&w->tw, w->now_ns, due_ns);
	wq__ref ref = {.due_ns = due_ns};
	struct wq__shelf *shelf;

	if (wq__unlikely(!b || !fn || due_ns == WQ_NEVER || w->stopped))
		return add_any(w, due_ns, fn, ctx, id);
	shelf = wq__shelf_of(&w->places, b, due_ns);
	if (wq__unlikely(!wq__place_ready(shelf)))
		return add_any(w, due_ns, fn, ctx, id);
	ref.what =
	    wq__place_take(&w->places, shelf, (struct wq__record){.fn = fn, .ctx = ctx}, WQ__USED);
	wq__tw_put(&w->tw, b, ref);
	if (id)
		*id = ref.what;
	return WQ_OK;
}

int wq_wheel_add(wq_wheel *w, int64_t due_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	return wq__likely(w) ? add(w, due_ns, fn, ctx, id) : wq__wheel_is_null();
}

int wq_wheel_after(wq_wheel *w, int64_t delay_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	int64_t due_ns;

	if (wq__unlikely(!w))
		return wq__wheel_is_null();
	if (delay_ns < 0)
		delay_ns = 0;
	if (__builtin_add_overflow(w->now_ns, delay_ns, &due_ns))
		due_ns = WQ_NEVER;
	return add(w, due_ns, fn, ctx, id);
}

int wq__wheel_every_at(wq_wheel *w, int64_t first_ns, int64_t period_ns, wq_timer_fn fn, void *ctx,
                       wq_timer_id *id)
{
	if (!fn)
		return wq__fail(WQ_EINVAL, "fn is NULL");
	if (period_ns <= 0)
		return wq__fail(WQ_EINVAL, "period_ns is %" PRId64 ", not above 0", period_ns);
	return make_special(w, first_ns, fn, ctx, period_ns, id);
}

int wq_wheel_every(wq_wheel *w, int64_t period_ns, wq_timer_fn fn, void *ctx, wq_timer_id *id)
{
	if (!w)
		return wq__wheel_is_null();
	return wq__wheel_every_at(w, wq_time_add(w->now_ns, period_ns), period_ns, fn, ctx, id);
}

/* The timer is gone, and so is its extra. */
static void special_free(wq_wheel *w, uint64_t name, struct extra *e)
{
	if (e->worn)
		*wq__word_of(&w->places, name) =
		    0 - WQ__STEP; /* its last count: the place rests from now on */
	extra_free(w, e);
	wq__place_drop(&w->places, name);
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
		wq__tw_died(&w->tw, keep, w);
	return WQ_OK;
}

/* What a cancelled timer has left behind. */
static wq__cold int clean_up(wq_wheel *w, uint32_t number, bool thin)
{
	if (thin)
		wq__places_thinned(&w->places, number);
	if (wq__tw_crowded(&w->tw))
		wq__tw_sweep(&w->tw, keep, w);
	return WQ_OK;
}

int wq_wheel_cancel(wq_wheel *w, wq_timer_id id)
{
	if (wq__unlikely(!w))
		return WQ_EINVAL;
	if (wq__unlikely(!wq__place_is_plain(&w->places, id)))
		return cancel_special(w, id);

	bool thin = wq__place_free(&w->places, id);

	w->tw.ndead++;
	if (wq__unlikely(thin || wq__tw_crowded(&w->tw)))
		return clean_up(w, wq__segment_of(id), thin);
	return WQ_OK;
}

/* Its reference dies, and it gets another, unless it never fires. */
static int move(wq_wheel *w, wq_timer_id id, struct extra *e, int64_t due_ns)
{
	uint32_t *word = wq__word_of(&w->places, id), next = (*word & ~WQ__FLAGS) + WQ__STEP;
	bool dies = e->refers;
	wq__ref ref = {.due_ns = due_ns, .what = (id >> 32 << 32) | next | WQ__FLAGS};

	/* The new reference first: it may fail. */
	if (due_ns != WQ_NEVER && wq__tw_insert(&w->tw, w->now_ns, ref) < 0)
		return WQ_ENOMEM;
	e->worn |= next < *word;
	e->refers = due_ns != WQ_NEVER;
	*word = next | WQ__FLAGS;
	if (dies)
		wq__tw_died(&w->tw, keep, w);
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
	if (!wq__place_is_plain(&w->places, id))
		return WQ_ESTALE;
	e = extra_new(w, wq__record_of(&w->places, id)->ctx, 0);
	if (!e)
		return WQ_ENOMEM;
	e->word = (uint32_t)id;
	e->refers = true;
	rc = move(w, id, e, due_ns);
	if (rc < 0)
		extra_free(w, e);
	else
		wq__record_of(&w->places, id)->ctx = e;
	return rc;
}

int64_t wq_wheel_size(const wq_wheel *w)
{
	return w ? (int64_t)w->places.n : WQ_EINVAL;
}

int64_t wq_wheel_next_deadline(const wq_wheel *w)
{
	return w ? wq__tw_next(&w->tw) : WQ_EINVAL;
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
		wq__tw_reinsert(&w->tw, ref);
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
	const struct wq__segment *s = &w->places.segments[wq__segment_of(ref.what)];

	if (s->word) {
		wq__prefetch_to_write(&s->word[wq__place_of(ref.what)]);
		wq__prefetch(&s->record[wq__place_of(ref.what)]);
	}
}

/* The next reference that is due, not out of the run. False: none is. */
static wq__apart bool next_any(wq_wheel *w, int64_t now_ns, wq__ref *out)
{
	const wq__timing_wheel *tw = &w->tw;
	size_t budget = SIZE_MAX;

	if (wq__tw_pop_any(&w->tw, now_ns, &budget, out) != WQ__TW_POPPED)
		return false;
	for (size_t i = 0; i < wq__tw_soon(tw, WQ__TW_LOOK); i++)
		fetch(w, tw->run[tw->run_at + i]);
	return true;
}

/*
 * The next reference that is due. Timers fire in another order than they were added
 * in: the memory of each is fetched a while before it is used.
 */
static inline bool next(wq_wheel *w, int64_t now_ns, wq__ref *out)
{
	const wq__timing_wheel *tw = &w->tw;

	if (wq__unlikely(!wq__tw_pop_run(&w->tw, now_ns, out)))
		return next_any(w, now_ns, out);
	if (wq__tw_soon(tw, WQ__TW_LOOK) == WQ__TW_LOOK)
		fetch(w, tw->run[tw->run_at + WQ__TW_LOOK - 1]);
	return true;
}

/* The next callback that is due at event->now_ns. Sets the rest of the event; false: none is. */
static wq__forced bool pop(wq_wheel *w, struct wq__record *out, wq_timer_event *event)
{
	wq__ref ref;

	while (!w->stopped && next(w, event->now_ns, &ref)) {
		if (wq__unlikely(!wq__place_lives(&w->places, ref))) {
			wq__tw_buried(&w->tw);
			continue;
		}
		*out = *wq__record_of(&w->places, ref.what);
		event->id = ref.what;
		event->due_ns = ref.due_ns;
		event->skipped = 0;
		if (wq__unlikely(ref.what & WQ__SPECIAL))
			fire_special(w, ref, &out->ctx, event);
		else
			wq__place_drop(&w->places, ref.what);
		return true;
	}
	return false;
}

bool wq__wheel_pop(wq_wheel *w, int64_t now_ns, struct wq__due *out)
{
	struct wq__record r;

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
	struct wq__record r;
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
