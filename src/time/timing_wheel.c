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

void wq__agenda_init(wq__agenda *a, wq__slab *slab, const wq_allocator *allocator, int64_t now_ns,
                     uint32_t tick_shift, uint32_t slot_bits)
{
	uint32_t bit = 0, width = tick_shift % slot_bits;

	memset(a, 0, sizeof *a);
	a->slab = slab;
	a->allocator = allocator;
	a->time_ns = a->caught_ns = now_ns;
	a->tick_shift = tick_shift;
	/* The lowest level may be narrower, so that a level begins at the tick. */
	for (uint32_t l = 0; bit < 63; l++) {
		uint32_t w = l == 0 && width > 0 ? width : slot_bits;
		struct wq__digit d = {(uint8_t)l, (uint8_t)bit, (uint8_t)((1u << w) - 1)};

		a->shift[l] = (uint8_t)bit;
		for (uint32_t i = 0; i < w && bit < 64; i++)
			a->digit[bit++] = d;
		a->nlevels = l + 1;
	}
}

static void run_release(wq__agenda *a)
{
	/* Sorting may have swapped the two halves. */
	wq__free(a->allocator, a->run < a->run_other ? a->run : a->run_other, RUN_BYTES);
	a->run = a->run_other = NULL;
	a->run_at = a->run_end = a->run_clear = 0;
}

void wq__agenda_release(wq__agenda *a)
{
	for (uint32_t l = 0; l < a->nlevels; l++)
		wq__free(a->allocator, a->level[l], sizeof *a->level[l]);
	wq__free(a->allocator, a->near, a->near_cap * sizeof *a->near);
	run_release(a);
}

/* The first nanosecond of a bucket: the wheel's time above the digit, the digit, zeros. */
static int64_t bucket_start(const wq__agenda *a, uint32_t l, uint32_t slot)
{
	uint32_t above = l + 1 < a->nlevels ? a->shift[l + 1] : 63;
	uint64_t keep = above < 63 ? ~((UINT64_C(1) << above) - 1) : 0;

	return (int64_t)(((uint64_t)a->time_ns & keep) | (uint64_t)slot << a->shift[l]);
}

/* The wheel's time may go up to now as long as it does not pass the beginning of a bucket. */
static void catch_up(wq__agenda *a, int64_t now_ns)
{
	uint32_t l, slot;

	a->caught_ns = now_ns;
	if (a->opening || now_ns <= a->time_ns)
		return;
	if (wq__first_bucket(a, &l, &slot) && bucket_start(a, l, slot) <= now_ns)
		return;
	a->time_ns = now_ns;
}

/* ---- memory --------------------------------------------------------------- */

/* Opening a bucket may begin a chunk in every bucket of every level below, */
static size_t reserve_most(const wq__agenda *a)
{
	return (size_t)a->top * WQ__AGENDA_SLOTS;
}

/* but only one for each reference, before its own is empty. A few need none. */
static size_t reserve_wanted(const wq__agenda *a, size_t n)
{
	size_t most = reserve_most(a);

	return n <= FEW ? 0 : n < most ? n + 1 : most;
}

static struct wq__chunk *chunk_new(wq__agenda *a)
{
	uint32_t id;
	struct wq__chunk *c = wq__slab_alloc(a->slab, sizeof *c, &id);

	if (c)
		c->id = id;
	return c;
}

static struct wq__chunk *chunk_take(wq__agenda *a)
{
	struct wq__chunk *c = a->reserve;

	assert(c);
	a->reserve = c->next;
	a->nreserve--;
	return c;
}

/* Gives back what is not needed any more, a little at a time. */
void wq__agenda_trim(wq__agenda *a)
{
	size_t keep = a->n > FEW ? reserve_wanted(a, a->n) + AHEAD : 0;
	size_t enough = a->n <= FEW ? FEW : a->n < reserve_most(a) ? a->n + AHEAD : SIZE_MAX;

	if (a->n == 0)
		run_release(a);
	/* One that is half open has to be finished, however many have died meanwhile. */
	if (a->opening)
		return;
	for (int i = 0; i < 64 && a->nreserve > keep; i++) {
		struct wq__chunk *c = a->reserve;

		a->reserve = c->next;
		a->nreserve--;
		wq__slab_free(a->slab, c->id);
	}
	if (enough < a->enough)
		a->enough = enough;
}

void wq__chunk_put(wq__agenda *a, struct wq__chunk *c)
{
	if (a->nreserve >= reserve_most(a) + AHEAD) {
		wq__slab_free(a->slab, c->id);
		return;
	}
	c->next = a->reserve;
	a->reserve = c;
	a->nreserve++;
}

static bool level_make(wq__agenda *a, uint32_t l)
{
	if (a->level[l])
		return true;
	a->level[l] = wq__alloc(a->allocator, sizeof *a->level[l], 64);
	if (!a->level[l])
		return false;
	memset(a->level[l], 0, sizeof *a->level[l]);
	for (uint32_t slot = 0; slot < WQ__AGENDA_SLOTS; slot++) {
		a->level[l]->bucket[slot].slot = (uint8_t)slot;
		a->level[l]->bucket[slot].shift_below = l > 0 ? a->shift[l - 1] : 0;
	}
	return true;
}

static bool near_make(wq__agenda *a, size_t cap)
{
	struct wq__near *near;
	size_t new_cap = a->near_cap ? a->near_cap : 16;

	if (cap <= a->near_cap)
		return true;
	while (new_cap < cap)
		new_cap *= 2;
	near = wq__alloc(a->allocator, new_cap * sizeof *near, 8);
	if (!near)
		return false;
	if (a->near)
		memcpy(near, a->near, a->nnear * sizeof *near);
	wq__free(a->allocator, a->near, a->near_cap * sizeof *near);
	a->near = near;
	a->near_cap = new_cap;
	return true;
}

/*
 * The heap holds what few buckets gave it, what came in for a time that was
 * past, and the spare. A few always find room: they have no other way.
 */
static bool near_reserve(wq__agenda *a, uint32_t top, size_t n)
{
	size_t most = (size_t)FEW * (top + 1);

	return near_make(a, a->nnear + 1 + a->spare + (n < FEW ? FEW : n < most ? n : most));
}

bool wq__agenda_spare(wq__agenda *a)
{
	a->spare++;
	return near_reserve(a, a->top, a->n);
}

static bool run_make(wq__agenda *a)
{
	if (a->run)
		return true;
	a->run = wq__alloc(a->allocator, RUN_BYTES, 64);
	a->run_other = a->run ? a->run + WQ__RUN_MAX : NULL;
	return a->run != NULL;
}

/* Everything that this reference, and AHEAD more, may need from now until they are popped. */
static bool reserve(wq__agenda *a, uint32_t l)
{
	uint32_t top = l > a->top ? l : a->top;
	size_t n = a->n + 1 + AHEAD;

	if (!near_reserve(a, top, n))
		return false;
	/* A lone bucket of a few goes straight to the heap; only crowds need the rest. */
	if (!level_make(a, l) || (n > FEW && !run_make(a)))
		return false;
	a->top = top;
	for (; n > FEW && a->made < top; a->made++)
		if (!level_make(a, a->made))
			return false;
	for (size_t want = reserve_wanted(a, n) + 1; a->nreserve < want;) {
		struct wq__chunk *c = chunk_new(a);

		if (!c)
			return false;
		c->next = a->reserve;
		a->reserve = c;
		a->nreserve++;
	}
	a->enough = a->opening ? 0 : n < reserve_most(a) ? n : SIZE_MAX;
	return true;
}

/* ---- the heap of near ones ------------------------------------------------ */

static bool before(const struct wq__near *x, const struct wq__near *y)
{
	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->seq < y->seq;
}

void wq__near_sift_up(wq__agenda *a, struct wq__near it)
{
	size_t i = a->nnear++;

	a->run_clear = 0;
	assert(a->nnear <= a->near_cap);
	for (size_t up; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!before(&it, &a->near[up]))
			break;
		a->near[i] = a->near[up];
	}
	a->near[i] = it;
}

static void near_push(wq__agenda *a, wq__ref ref, uint64_t seq)
{
	wq__near_sift_up(a, (struct wq__near){.due_ns = ref.due_ns, .seq = seq, .what = ref.what});
}

wq__ref wq__near_pop(wq__agenda *a)
{
	wq__ref top = {.due_ns = a->near[0].due_ns, .what = a->near[0].what};
	struct wq__near last = a->near[--a->nnear];
	size_t i = 0;

	for (;;) {
		size_t down = 2 * i + 1;

		if (down >= a->nnear)
			break;
		if (down + 1 < a->nnear && before(&a->near[down + 1], &a->near[down]))
			down++;
		if (!before(&a->near[down], &last))
			break;
		a->near[i] = a->near[down];
		i = down;
	}
	a->near[i] = last;
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
static bool bucket_grow(wq__agenda *a, struct wq__bucket *b)
{
	struct wq__chunk *last = b->tail;
	size_t more = b->n / SIDE_PART;

	if (!last->next) {
		for (size_t i = 0; i <= more && i < SIDE_BY_SIDE; i++) {
			struct wq__chunk *c = chunk_new(a);

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

static void bucket_append(wq__agenda *a, struct wq__bucket *b, wq__ref ref)
{
	if (b->tail && b->tail->end == WQ__CHUNK_REFS && b->tail->next)
		b->tail = b->tail->next;
	else if (!b->tail || b->tail->end == WQ__CHUNK_REFS)
		bucket_extend(b, chunk_take(a));
	if (b->n == 0)
		b->min_ns = b->max_ns = ref.due_ns;
	wq__bucket_put(b, ref);
}

void wq__bucket_drop_head(wq__agenda *a, struct wq__bucket *b)
{
	struct wq__chunk *c = b->head;

	b->head = c->next;
	if (b->tail == c)
		b->tail = b->head;
	/* A sweep that stopped here goes on behind it, if anything is left. */
	if (a->sweep_at == c)
		a->sweep_at = b->head;
	wq__chunk_put(a, c);
}

wq__ref wq__bucket_shift(wq__agenda *a, struct wq__bucket *b)
{
	/* A sweep may have emptied the first one. */
	while (b->head->first == b->head->end)
		wq__bucket_drop_head(a, b);

	struct wq__chunk *c = b->head;
	wq__ref ref = c->ref[c->first++];

	b->n--;
	if (c->first == c->end)
		wq__bucket_drop_head(a, b);
	return ref;
}

/* To the bucket of that number on level l. */
static inline void file_at(wq__agenda *a, uint32_t l, uint32_t slot, wq__ref ref)
{
	struct wq__level *level = a->level[l];
	struct wq__bucket *b = &level->bucket[slot];

	if (wq__likely(b->tail && b->tail->end < WQ__CHUNK_REFS)) {
		wq__bucket_put(b, ref);
		return;
	}
	bucket_append(a, b, ref);
	level->bits |= UINT64_C(1) << slot;
	a->level_bits |= UINT64_C(1) << l;
	a->run_clear = 0;
}

static void file(wq__agenda *a, wq__ref ref)
{
	struct wq__digit d = wq__digit_of(a, ref.due_ns);

	file_at(a, d.level, wq__slot_of(d, ref.due_ns), ref);
}

/* Out of the bucket that is opened, on level l. The next digit is not 0 for nearly all of them. */
static void file_below(wq__agenda *a, uint32_t l, const wq__ref *ref, size_t n)
{
	struct wq__digit below = a->digit[a->shift[l - 1]];

	for (size_t i = 0; i < n; i++) {
		uint32_t slot = wq__slot_of(below, ref[i].due_ns);

		if (wq__likely(slot != 0))
			file_at(a, l - 1, slot, ref[i]);
		else
			file(a, ref[i]);
	}
}

static void bucket_emptied(wq__agenda *a, uint32_t l, uint32_t slot)
{
	if (a->sweeping == &a->level[l]->bucket[slot])
		a->sweeping = NULL;
	a->level[l]->bits &= ~(UINT64_C(1) << slot);
	if (!a->level[l]->bits)
		a->level_bits &= ~(UINT64_C(1) << l);
}

void wq__bucket_done(wq__agenda *a, uint32_t l, uint32_t slot)
{
	struct wq__bucket *b = &a->level[l]->bucket[slot];

	while (b->head)
		wq__bucket_drop_head(a, b);
	bucket_emptied(a, l, slot);
}

static int insert_slow(wq__agenda *a, wq__ref ref)
{
	bool past = ref.due_ns < a->time_ns;
	bool opening = !past && a->opening && ref.due_ns <= a->opening_end_ns;

	if (!reserve(a, past ? 0 : wq__digit_of(a, ref.due_ns).level))
		return -1;
	a->n++;
	if (past || (opening && a->opening_to != WQ__TO_LEVELS))
		near_push(a, ref, a->seq++);
	else if (opening)
		/* Behind those of equal time that have not been moved yet. */
		bucket_append(a, a->opening, ref);
	else
		file(a, ref);
	return 0;
}

int wq__agenda_insert(wq__agenda *a, int64_t now_ns, wq__ref ref)
{
	struct wq__bucket *b;

	if (now_ns > a->caught_ns)
		catch_up(a, now_ns);
	b = wq__agenda_begun(a, now_ns, ref.due_ns);
	if (!b)
		return insert_slow(a, ref);
	if (b->tail->end == WQ__CHUNK_REFS && !bucket_grow(a, b))
		return -1;
	wq__bucket_put(b, ref);
	a->n++;
	return 0;
}

void wq__agenda_reinsert(wq__agenda *a, wq__ref ref)
{
	if (wq__agenda_insert(a, a->time_ns, ref) == 0)
		return;
	/* The heap takes any time; it is only slower. */
	a->n++;
	near_push(a, ref, a->seq++);
}

/* ---- pop ------------------------------------------------------------------ */

/* The bucket's time has come; the levels below it are empty. */
static void open_bucket(wq__agenda *a, uint32_t l, uint32_t slot)
{
	struct wq__bucket *b = &a->level[l]->bucket[slot];

	a->time_ns = bucket_start(a, l, slot);
	bucket_emptied(a, l, slot);
	a->opening = b;
	a->opening_level = l;
	a->enough = 0;
	a->opening_end_ns = a->time_ns + (int64_t)((UINT64_C(1) << a->shift[l]) - 1);
	/* What comes in from now on is behind those of equal time in here. */
	a->opening_seq = a->seq;
	a->seq += b->n;
	if (a->run && a->run_at == a->run_end && b->n <= WQ__RUN_MAX &&
	    a->shift[l] <= a->tick_shift) {
		a->opening_to = WQ__TO_RUN;
		a->run_at = a->run_end = a->run_clear = 0;
		a->run_seq = a->opening_seq;
		a->run_below = (UINT64_C(1) << l) - 1;
	} else if (b->n <= FEW && a->nnear + b->n + a->spare <= a->near_cap) {
		a->opening_to = WQ__TO_HEAP;
	} else {
		a->opening_to = WQ__TO_LEVELS;
	}
}

static void open_refs(wq__agenda *a, const wq__ref *ref, size_t n)
{
	switch (a->opening_to) {
	case WQ__TO_RUN:
		memcpy(a->run + a->run_end, ref, n * sizeof *ref);
		a->run_end += n;
		break;
	case WQ__TO_HEAP:
		for (size_t i = 0; i < n; i++)
			near_push(a, ref[i], a->opening_seq++);
		break;
	default:
		file_below(a, a->opening_level, ref, n);
	}
}

/* False: the budget is used up. */
static bool open_more(wq__agenda *a, size_t *budget)
{
	struct wq__bucket *b = a->opening;

	for (struct wq__chunk *c; (c = b->head) != NULL;) {
		size_t here = (size_t)(c->end - c->first), n = here < *budget ? here : *budget;

		if (here > 0 && n == 0)
			return false;
		if (c->next)
			wq__chunk_fetch(c->next);
		/* Those side by side may be fetched before they are come to. */
		wq__chunk_fetch((const struct wq__chunk *)((uintptr_t)c + 4 * sizeof *c));
		open_refs(a, c->ref + c->first, n);
		c->first = (uint16_t)(c->first + n);
		b->n -= n;
		*budget -= n;
		if (n == here)
			wq__bucket_drop_head(a, b);
	}
	a->opening = NULL;
	if (a->opening_to == WQ__TO_RUN) {
		wq__ref *sorted = wq__ref_sort(a->run, a->run_other, a->run_end);

		if (sorted != a->run) {
			a->run_other = a->run;
			a->run = sorted;
		}
	}
	return true;
}

enum source { NOTHING, RUN, HEAP, BUCKET };

/* Which of the three comes first, and when that is due. */
static enum source first_source(const wq__agenda *a, const struct wq__bucket *b, int64_t *due_ns)
{
	enum source first = NOTHING;

	*due_ns = INT64_MAX;
	if (a->run_at < a->run_end) {
		first = RUN;
		*due_ns = a->run[a->run_at].due_ns;
	}
	if (a->nnear > 0 && (first == NOTHING || a->near[0].due_ns < *due_ns ||
	                     (a->near[0].due_ns == *due_ns && a->near[0].seq < a->run_seq))) {
		first = HEAP;
		*due_ns = a->near[0].due_ns;
	}
	/* Of equal times those that have left their bucket were there before. */
	if (b && (first == NOTHING || b->min_ns < *due_ns)) {
		first = BUCKET;
		*due_ns = b->min_ns;
	}
	return first;
}

static wq__ref take(wq__agenda *a, enum source from, uint32_t l, uint32_t slot)
{
	if (from == RUN)
		return a->run[a->run_at++];
	if (from == HEAP)
		return wq__near_pop(a);

	struct wq__bucket *b = &a->level[l]->bucket[slot];
	wq__ref ref = wq__bucket_shift(a, b);

	if (b->n == 0)
		wq__bucket_done(a, l, slot);
	return ref;
}

enum wq__agenda_pop wq__agenda_pop_any(wq__agenda *a, int64_t now_ns, size_t *budget, wq__ref *out)
{
	for (;;) {
		uint32_t l = 0, slot = 0;
		struct wq__bucket *b = NULL;
		enum source from;
		int64_t due_ns;

		if (a->opening && !open_more(a, budget))
			return WQ__AGENDA_AGAIN;
		if (wq__first_bucket(a, &l, &slot))
			b = &a->level[l]->bucket[slot];
		from = first_source(a, b, &due_ns);
		if (from == NOTHING || due_ns > now_ns)
			return WQ__AGENDA_NONE;
		/* All of one nanosecond, as on the lowest level, are in their order. */
		if (b && from == BUCKET && b->min_ns != b->max_ns) {
			open_bucket(a, l, slot);
			continue;
		}
		if (*budget == 0)
			return WQ__AGENDA_AGAIN;
		--*budget;
		a->n--;
		*out = take(a, from, l, slot);
		wq__agenda_trim(a);
		a->run_clear = a->nnear > 0 || a->level_bits & a->run_below ? 0 : a->run_end;
		return WQ__AGENDA_POPPED;
	}
}

int64_t wq__agenda_next(const wq__agenda *a)
{
	uint32_t l, slot;
	int64_t next = a->nnear > 0 ? a->near[0].due_ns : INT64_MAX;

	if (a->opening && a->opening->min_ns < next)
		next = a->opening->min_ns;
	/* Not in order yet while it is being filled; then the line above has seen to it. */
	else if (a->run_at < a->run_end && a->run[a->run_at].due_ns < next)
		next = a->run[a->run_at].due_ns;
	if (wq__first_bucket(a, &l, &slot) && a->level[l]->bucket[slot].min_ns < next)
		next = a->level[l]->bucket[slot].min_ns;
	return next;
}
