/* See timing_wheel.h. */
#include "time/timing_wheel.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "time/timing_wheel_inside.h"

enum {
	FEW = 32,          /* a bucket with so many goes to the heap instead of to lower levels */
	AHEAD = 15,        /* memory is reserved for so many more: most inserts need not look */
	SIDE_BY_SIDE = 64, /* chunks that a crowded bucket takes at once, at most, */
	SIDE_PART = 120,   /* and one for so many of its references: an eighth of its chunks */
};

#define RUN_BYTES (2 * sizeof(wq__ref) * WQ__RUN_MAX)

/* ---- levels --------------------------------------------------------------- */

void wq__tw_init(wq__timing_wheel *w, wq__slab *slab, const wq_allocator *allocator, int64_t now_ns,
                 uint32_t tick_shift, uint32_t slot_bits)
{
	uint32_t bit = 0, width = tick_shift % slot_bits;

	memset(w, 0, sizeof *w);
	w->slab = slab;
	w->allocator = allocator;
	w->time_ns = w->caught_ns = now_ns;
	w->tick_shift = tick_shift;
	/* The lowest level may be narrower, so that a level begins at the tick. */
	for (uint32_t l = 0; bit < 63; l++) {
		uint32_t wide = l == 0 && width > 0 ? width : slot_bits;
		struct wq__digit d = {(uint8_t)l, (uint8_t)bit, (uint8_t)((1u << wide) - 1)};

		w->shift[l] = (uint8_t)bit;
		for (uint32_t i = 0; i < wide && bit < 64; i++)
			w->digit[bit++] = d;
		w->nlevels = l + 1;
	}
}

static void run_release(wq__timing_wheel *w)
{
	/* Sorting may have swapped the two halves. */
	wq__free(w->allocator, w->run < w->run_other ? w->run : w->run_other, RUN_BYTES);
	w->run = w->run_other = NULL;
	w->run_at = w->run_end = w->run_clear = 0;
}

void wq__tw_release(wq__timing_wheel *w)
{
	for (uint32_t l = 0; l < w->nlevels; l++)
		wq__free(w->allocator, w->level[l], sizeof *w->level[l]);
	wq__free(w->allocator, w->near, w->near_cap * sizeof *w->near);
	run_release(w);
}

/* The first nanosecond of a bucket: the wheel's time above the digit, the digit, zeros. */
static int64_t bucket_start(const wq__timing_wheel *w, uint32_t l, uint32_t slot)
{
	uint32_t above = l + 1 < w->nlevels ? w->shift[l + 1] : 63;
	uint64_t keep = above < 63 ? ~((UINT64_C(1) << above) - 1) : 0;

	return (int64_t)(((uint64_t)w->time_ns & keep) | (uint64_t)slot << w->shift[l]);
}

/* The wheel's time may go up to now as long as it does not pass the beginning of a bucket. */
static void catch_up(wq__timing_wheel *w, int64_t now_ns)
{
	uint32_t l, slot;

	w->caught_ns = now_ns;
	if (w->opening || now_ns <= w->time_ns)
		return;
	if (wq__first_bucket(w, &l, &slot) && bucket_start(w, l, slot) <= now_ns)
		return;
	w->time_ns = now_ns;
}

/* ---- memory --------------------------------------------------------------- */

/* Opening a bucket may begin a chunk in every bucket of every level below, */
static size_t reserve_most(const wq__timing_wheel *w)
{
	return (size_t)w->top * WQ__TW_SLOTS;
}

/* but only one for each reference, before its own is empty. A few need none. */
static size_t reserve_wanted(const wq__timing_wheel *w, size_t n)
{
	size_t most = reserve_most(w);

	return n <= FEW ? 0 : n < most ? n + 1 : most;
}

static struct wq__chunk *chunk_new(wq__timing_wheel *w)
{
	uint32_t id;
	struct wq__chunk *c = wq__slab_alloc(w->slab, sizeof *c, &id);

	if (c)
		c->id = id;
	return c;
}

static struct wq__chunk *chunk_take(wq__timing_wheel *w)
{
	struct wq__chunk *c = w->reserve;

	assert(c);
	w->reserve = c->next;
	w->nreserve--;
	return c;
}

/* Gives back what is not needed any more, a little at a time. */
void wq__tw_trim(wq__timing_wheel *w)
{
	size_t keep = w->n > FEW ? reserve_wanted(w, w->n) + AHEAD : 0;
	size_t enough = w->n <= FEW ? FEW : w->n < reserve_most(w) ? w->n + AHEAD : SIZE_MAX;

	if (w->n == 0)
		run_release(w);
	/* One that is half open has to be finished, however many have died meanwhile. */
	if (w->opening)
		return;
	for (int i = 0; i < 64 && w->nreserve > keep; i++) {
		struct wq__chunk *c = w->reserve;

		w->reserve = c->next;
		w->nreserve--;
		wq__slab_free(w->slab, c->id);
	}
	if (enough < w->enough)
		w->enough = enough;
}

void wq__chunk_put(wq__timing_wheel *w, struct wq__chunk *c)
{
	if (w->nreserve >= reserve_most(w) + AHEAD) {
		wq__slab_free(w->slab, c->id);
		return;
	}
	c->next = w->reserve;
	w->reserve = c;
	w->nreserve++;
}

static bool level_make(wq__timing_wheel *w, uint32_t l)
{
	if (w->level[l])
		return true;
	w->level[l] = wq__alloc(w->allocator, sizeof *w->level[l], 64);
	if (!w->level[l])
		return false;
	memset(w->level[l], 0, sizeof *w->level[l]);
	for (uint32_t slot = 0; slot < WQ__TW_SLOTS; slot++) {
		w->level[l]->bucket[slot].slot = (uint8_t)slot;
		w->level[l]->bucket[slot].shift_below = l > 0 ? w->shift[l - 1] : 0;
	}
	return true;
}

static bool near_make(wq__timing_wheel *w, size_t cap)
{
	struct wq__near *near;
	size_t new_cap = w->near_cap ? w->near_cap : 16;

	if (cap <= w->near_cap)
		return true;
	while (new_cap < cap)
		new_cap *= 2;
	near = wq__alloc(w->allocator, new_cap * sizeof *near, 8);
	if (!near)
		return false;
	if (w->near)
		memcpy(near, w->near, w->nnear * sizeof *near);
	wq__free(w->allocator, w->near, w->near_cap * sizeof *near);
	w->near = near;
	w->near_cap = new_cap;
	return true;
}

/*
 * The heap holds what few buckets gave it, what came in for a time that was
 * past, and the spare. A few always find room: they have no other way.
 */
static bool near_reserve(wq__timing_wheel *w, uint32_t top, size_t n)
{
	size_t most = (size_t)FEW * (top + 1);

	return near_make(w, w->nnear + 1 + w->spare + (n < FEW ? FEW : n < most ? n : most));
}

bool wq__tw_spare(wq__timing_wheel *w)
{
	w->spare++;
	return near_reserve(w, w->top, w->n);
}

static bool run_make(wq__timing_wheel *w)
{
	if (w->run)
		return true;
	w->run = wq__alloc(w->allocator, RUN_BYTES, 64);
	w->run_other = w->run ? w->run + WQ__RUN_MAX : NULL;
	return w->run != NULL;
}

/* Everything that this reference, and AHEAD more, may need from now until they are popped. */
static bool reserve(wq__timing_wheel *w, uint32_t l)
{
	uint32_t top = l > w->top ? l : w->top;
	size_t n = w->n + 1 + AHEAD;

	if (!near_reserve(w, top, n))
		return false;
	/* A lone bucket of a few goes straight to the heap; only crowds need the rest. */
	if (!level_make(w, l) || (n > FEW && !run_make(w)))
		return false;
	w->top = top;
	for (; n > FEW && w->made < top; w->made++)
		if (!level_make(w, w->made))
			return false;
	for (size_t want = reserve_wanted(w, n) + 1; w->nreserve < want;) {
		struct wq__chunk *c = chunk_new(w);

		if (!c)
			return false;
		c->next = w->reserve;
		w->reserve = c;
		w->nreserve++;
	}
	w->enough = w->opening ? 0 : n < reserve_most(w) ? n : SIZE_MAX;
	return true;
}

/* ---- the heap of near ones ------------------------------------------------ */

static bool before(const struct wq__near *x, const struct wq__near *y)
{
	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->seq < y->seq;
}

void wq__near_sift_up(wq__timing_wheel *w, struct wq__near it)
{
	size_t i = w->nnear++;

	w->run_clear = 0;
	assert(w->nnear <= w->near_cap);
	for (size_t up; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!before(&it, &w->near[up]))
			break;
		w->near[i] = w->near[up];
	}
	w->near[i] = it;
}

static void near_push(wq__timing_wheel *w, wq__ref ref, uint64_t seq)
{
	wq__near_sift_up(w, (struct wq__near){.due_ns = ref.due_ns, .seq = seq, .what = ref.what});
}

wq__ref wq__near_pop(wq__timing_wheel *w)
{
	wq__ref top = {.due_ns = w->near[0].due_ns, .what = w->near[0].what};
	struct wq__near last = w->near[--w->nnear];
	size_t i = 0;

	for (;;) {
		size_t down = 2 * i + 1;

		if (down >= w->nnear)
			break;
		if (down + 1 < w->nnear && before(&w->near[down + 1], &w->near[down]))
			down++;
		if (!before(&w->near[down], &last))
			break;
		w->near[i] = w->near[down];
		i = down;
	}
	w->near[i] = last;
	return top;
}

/* ---- buckets -------------------------------------------------------------- */

/* It begins with this chunk, or goes on with it behind its last one. */
static void bucket_extend(struct wq__bucket *b, struct wq__chunk *c)
{
	c->next = NULL;
	c->first = c->end = 0;
	if (b->tail)
		b->tail->next = c;
	else
		b->head = c;
	b->tail = c;
}

/*
 * Its last chunk is full: on to the next one. Crowded buckets take several at a
 * time, which then lie side by side: read one after another when it is opened,
 * chunks of their own pages would each be waited for.
 */
static bool bucket_grow(wq__timing_wheel *w, struct wq__bucket *b)
{
	struct wq__chunk *last = b->tail;
	size_t more = b->n / SIDE_PART;

	if (!last->next) {
		for (size_t i = 0; i <= more && i < SIDE_BY_SIDE; i++) {
			struct wq__chunk *c = chunk_new(w);

			if (!c)
				break;
			bucket_extend(b, c);
		}
		b->tail = last;
	}
	if (!last->next)
		return false;
	b->tail = last->next;
	return true;
}

static void bucket_append(wq__timing_wheel *w, struct wq__bucket *b, wq__ref ref)
{
	if (b->tail && b->tail->end == WQ__CHUNK_REFS && b->tail->next)
		b->tail = b->tail->next;
	else if (!b->tail || b->tail->end == WQ__CHUNK_REFS)
		bucket_extend(b, chunk_take(w));
	if (b->n == 0)
		b->min_ns = b->max_ns = ref.due_ns;
	wq__bucket_put(b, ref);
}

void wq__bucket_drop_head(wq__timing_wheel *w, struct wq__bucket *b)
{
	struct wq__chunk *c = b->head;

	b->head = c->next;
	if (b->tail == c)
		b->tail = b->head;
	/* A sweep that stopped here goes on behind it, if anything is left. */
	if (w->sweep_at == c)
		w->sweep_at = b->head;
	wq__chunk_put(w, c);
}

wq__ref wq__bucket_shift(wq__timing_wheel *w, struct wq__bucket *b)
{
	/* A sweep may have emptied the first one. */
	while (b->head->first == b->head->end)
		wq__bucket_drop_head(w, b);

	struct wq__chunk *c = b->head;
	wq__ref ref = c->ref[c->first++];

	b->n--;
	if (c->first == c->end)
		wq__bucket_drop_head(w, b);
	return ref;
}

/* To the bucket of that number on level l. */
static inline void file_at(wq__timing_wheel *w, uint32_t l, uint32_t slot, wq__ref ref)
{
	struct wq__level *level = w->level[l];
	struct wq__bucket *b = &level->bucket[slot];

	if (wq__likely(b->tail && b->tail->end < WQ__CHUNK_REFS)) {
		wq__bucket_put(b, ref);
		return;
	}
	bucket_append(w, b, ref);
	level->bits |= UINT64_C(1) << slot;
	w->level_bits |= UINT64_C(1) << l;
	w->run_clear = 0;
}

static void file(wq__timing_wheel *w, wq__ref ref)
{
	struct wq__digit d = wq__digit_of(w, ref.due_ns);

	file_at(w, d.level, wq__slot_of(d, ref.due_ns), ref);
}

/* Out of the bucket that is opened, on level l. The next digit is not 0 for nearly all of them. */
static void file_below(wq__timing_wheel *w, uint32_t l, const wq__ref *ref, size_t n)
{
	struct wq__digit below = w->digit[w->shift[l - 1]];

	for (size_t i = 0; i < n; i++) {
		uint32_t slot = wq__slot_of(below, ref[i].due_ns);

		if (wq__likely(slot != 0))
			file_at(w, l - 1, slot, ref[i]);
		else
			file(w, ref[i]);
	}
}

static void bucket_emptied(wq__timing_wheel *w, uint32_t l, uint32_t slot)
{
	if (w->sweeping == &w->level[l]->bucket[slot])
		w->sweeping = NULL;
	w->level[l]->bits &= ~(UINT64_C(1) << slot);
	if (!w->level[l]->bits)
		w->level_bits &= ~(UINT64_C(1) << l);
}

void wq__bucket_done(wq__timing_wheel *w, uint32_t l, uint32_t slot)
{
	struct wq__bucket *b = &w->level[l]->bucket[slot];

	while (b->head)
		wq__bucket_drop_head(w, b);
	bucket_emptied(w, l, slot);
}

static int insert_slow(wq__timing_wheel *w, wq__ref ref)
{
	bool past = ref.due_ns < w->time_ns;
	bool opening = !past && w->opening && ref.due_ns <= w->opening_end_ns;

	if (!reserve(w, past ? 0 : wq__digit_of(w, ref.due_ns).level))
		return -1;
	w->n++;
	if (past || (opening && w->opening_to != WQ__TO_LEVELS))
		near_push(w, ref, w->seq++);
	else if (opening)
		/* Behind those of equal time that have not been moved yet. */
		bucket_append(w, w->opening, ref);
	else
		file(w, ref);
	return 0;
}

int wq__tw_insert(wq__timing_wheel *w, int64_t now_ns, wq__ref ref)
{
	struct wq__bucket *b;

	if (now_ns > w->caught_ns)
		catch_up(w, now_ns);
	b = wq__tw_begun(w, now_ns, ref.due_ns);
	if (!b)
		return insert_slow(w, ref);
	if (b->tail->end == WQ__CHUNK_REFS && !bucket_grow(w, b))
		return -1;
	wq__bucket_put(b, ref);
	w->n++;
	return 0;
}

void wq__tw_reinsert(wq__timing_wheel *w, wq__ref ref)
{
	if (wq__tw_insert(w, w->time_ns, ref) == 0)
		return;
	/* The heap takes any time; it is only slower. */
	w->n++;
	near_push(w, ref, w->seq++);
}

/* ---- pop ------------------------------------------------------------------ */

/* The bucket's time has come; the levels below it are empty. */
static void open_bucket(wq__timing_wheel *w, uint32_t l, uint32_t slot)
{
	struct wq__bucket *b = &w->level[l]->bucket[slot];

	w->time_ns = bucket_start(w, l, slot);
	bucket_emptied(w, l, slot);
	w->opening = b;
	w->opening_level = l;
	w->enough = 0;
	w->opening_end_ns = w->time_ns + (int64_t)((UINT64_C(1) << w->shift[l]) - 1);
	/* What comes in from now on is behind those of equal time in here. */
	w->opening_seq = w->seq;
	w->seq += b->n;
	if (w->run && w->run_at == w->run_end && b->n <= WQ__RUN_MAX &&
	    w->shift[l] <= w->tick_shift) {
		w->opening_to = WQ__TO_RUN;
		w->run_at = w->run_end = w->run_clear = 0;
		w->run_seq = w->opening_seq;
		w->run_below = (UINT64_C(1) << l) - 1;
	} else if (b->n <= FEW && w->nnear + b->n + w->spare <= w->near_cap) {
		w->opening_to = WQ__TO_HEAP;
	} else {
		w->opening_to = WQ__TO_LEVELS;
	}
}

static void open_refs(wq__timing_wheel *w, const wq__ref *ref, size_t n)
{
	switch (w->opening_to) {
	case WQ__TO_RUN:
		memcpy(w->run + w->run_end, ref, n * sizeof *ref);
		w->run_end += n;
		break;
	case WQ__TO_HEAP:
		for (size_t i = 0; i < n; i++)
			near_push(w, ref[i], w->opening_seq++);
		break;
	default:
		file_below(w, w->opening_level, ref, n);
	}
}

/* False: the budget is used up. */
static bool open_more(wq__timing_wheel *w, size_t *budget)
{
	struct wq__bucket *b = w->opening;

	for (struct wq__chunk *c; (c = b->head) != NULL;) {
		size_t here = (size_t)(c->end - c->first), n = here < *budget ? here : *budget;

		if (here > 0 && n == 0)
			return false;
		if (c->next)
			wq__chunk_fetch(c->next);
		/* Those side by side may be fetched before they are come to. */
		wq__chunk_fetch((const struct wq__chunk *)((uintptr_t)c + 4 * sizeof *c));
		open_refs(w, c->ref + c->first, n);
		c->first = (uint16_t)(c->first + n);
		b->n -= n;
		*budget -= n;
		if (n == here)
			wq__bucket_drop_head(w, b);
	}
	w->opening = NULL;
	if (w->opening_to == WQ__TO_RUN) {
		wq__ref *sorted = wq__ref_sort(w->run, w->run_other, w->run_end);

		if (sorted != w->run) {
			w->run_other = w->run;
			w->run = sorted;
		}
	}
	return true;
}

enum source { NOTHING, RUN, HEAP, BUCKET };

/* Which of the three comes first, and when that is due. */
static enum source first_source(const wq__timing_wheel *w, const struct wq__bucket *b,
                                int64_t *due_ns)
{
	enum source first = NOTHING;

	*due_ns = INT64_MAX;
	if (w->run_at < w->run_end) {
		first = RUN;
		*due_ns = w->run[w->run_at].due_ns;
	}
	if (w->nnear > 0 && (first == NOTHING || w->near[0].due_ns < *due_ns ||
	                     (w->near[0].due_ns == *due_ns && w->near[0].seq < w->run_seq))) {
		first = HEAP;
		*due_ns = w->near[0].due_ns;
	}
	/* Of equal times those that have left their bucket were there before. */
	if (b && (first == NOTHING || b->min_ns < *due_ns)) {
		first = BUCKET;
		*due_ns = b->min_ns;
	}
	return first;
}

static wq__ref take(wq__timing_wheel *w, enum source from, uint32_t l, uint32_t slot)
{
	if (from == RUN)
		return w->run[w->run_at++];
	if (from == HEAP)
		return wq__near_pop(w);

	struct wq__bucket *b = &w->level[l]->bucket[slot];
	wq__ref ref = wq__bucket_shift(w, b);

	if (b->n == 0)
		wq__bucket_done(w, l, slot);
	return ref;
}

enum wq__tw_pop wq__tw_pop_any(wq__timing_wheel *w, int64_t now_ns, size_t *budget, wq__ref *out)
{
	for (;;) {
		uint32_t l = 0, slot = 0;
		struct wq__bucket *b = NULL;
		enum source from;
		int64_t due_ns;

		if (w->opening && !open_more(w, budget))
			return WQ__TW_AGAIN;
		if (wq__first_bucket(w, &l, &slot))
			b = &w->level[l]->bucket[slot];
		from = first_source(w, b, &due_ns);
		if (from == NOTHING || due_ns > now_ns)
			return WQ__TW_NONE;
		/* All of one nanosecond, as on the lowest level, are in their order. */
		if (b && from == BUCKET && b->min_ns != b->max_ns) {
			open_bucket(w, l, slot);
			continue;
		}
		if (*budget == 0)
			return WQ__TW_AGAIN;
		--*budget;
		w->n--;
		*out = take(w, from, l, slot);
		wq__tw_trim(w);
		w->run_clear = w->nnear > 0 || w->level_bits & w->run_below ? 0 : w->run_end;
		return WQ__TW_POPPED;
	}
}

int64_t wq__tw_next(const wq__timing_wheel *w)
{
	uint32_t l, slot;
	int64_t next = w->nnear > 0 ? w->near[0].due_ns : INT64_MAX;

	if (w->opening && w->opening->min_ns < next)
		next = w->opening->min_ns;
	/* Not in order yet while it is being filled; then the line above has seen to it. */
	else if (w->run_at < w->run_end && w->run[w->run_at].due_ns < next)
		next = w->run[w->run_at].due_ns;
	if (wq__first_bucket(w, &l, &slot) && w->level[l]->bucket[slot].min_ns < next)
		next = w->level[l]->bucket[slot].min_ns;
	return next;
}
