/* See agenda.h. */
#include "time/agenda.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"

enum {
	FEW = 32,          /* a bucket with so many goes to the heap instead of to lower levels */
	SWEEP_CHUNKS = 16, /* looked at by one step of a sweep */
	SWEEP_SLACK = 64,  /* so many dead ones are never worth a sweep */
};

/* ---- levels --------------------------------------------------------------- */

void wq__agenda_init(wq__agenda *a, wq__slab *slab, const wq_allocator *allocator, int64_t now_ns,
                     uint32_t tick_shift, uint32_t slot_bits)
{
	uint32_t bit = 0, width = tick_shift % slot_bits;

	memset(a, 0, sizeof *a);
	a->slab = slab;
	a->allocator = allocator;
	a->time_ns = now_ns;
	/* The lowest level may be narrower, so that a level begins at the tick. */
	for (uint32_t l = 0; bit < 63; l++) {
		uint32_t w = l == 0 && width > 0 ? width : slot_bits;

		a->shift[l] = (uint8_t)bit;
		for (uint32_t i = 0; i < w && bit < 64; i++)
			a->level_of_bit[bit++] = (uint8_t)l;
		a->nlevels = l + 1;
	}
	a->level_of_bit[63] = (uint8_t)(a->nlevels - 1);
}

void wq__agenda_release(wq__agenda *a)
{
	for (uint32_t l = 0; l < a->nlevels; l++)
		wq__free(a->allocator, a->level[l], sizeof *a->level[l]);
	wq__free(a->allocator, a->near, a->near_cap * sizeof *a->near);
}

static uint32_t level_of(const wq__agenda *a, int64_t due_ns)
{
	uint64_t differ = (uint64_t)(due_ns ^ a->time_ns) | 1;

	return a->level_of_bit[63 - __builtin_clzll(differ)];
}

static uint32_t slot_of(const wq__agenda *a, uint32_t l, int64_t due_ns)
{
	uint32_t width = (uint32_t)(l + 1 < a->nlevels ? a->shift[l + 1] : 64) - a->shift[l];

	return (uint32_t)((uint64_t)due_ns >> a->shift[l]) & ((1u << width) - 1);
}

/* The first nanosecond of a bucket: the wheel's time above the digit, the digit, zeros. */
static int64_t bucket_start(const wq__agenda *a, uint32_t l, uint32_t slot)
{
	uint32_t above = l + 1 < a->nlevels ? a->shift[l + 1] : 63;
	uint64_t keep = above < 63 ? ~((UINT64_C(1) << above) - 1) : 0;

	return (int64_t)(((uint64_t)a->time_ns & keep) | (uint64_t)slot << a->shift[l]);
}

/* The bucket that comes first; false: all are empty. */
static bool first_bucket(const wq__agenda *a, uint32_t *l, uint32_t *slot)
{
	if (!a->level_bits)
		return false;
	*l = (uint32_t)__builtin_ctzll(a->level_bits);
	*slot = (uint32_t)__builtin_ctzll(a->level[*l]->bits);
	return true;
}

/* The wheel's time may go up to now as long as it does not pass the beginning of a bucket. */
static void catch_up(wq__agenda *a, int64_t now_ns)
{
	uint32_t l, slot;

	if (now_ns <= a->time_ns || a->opening)
		return;
	if (first_bucket(a, &l, &slot) && bucket_start(a, l, slot) <= now_ns)
		return;
	a->time_ns = now_ns;
}

/* ---- memory --------------------------------------------------------------- */

/*
 * Opening a bucket may begin a chunk in every bucket of every level below, but
 * never more chunks than there are references. A bucket of a few needs none.
 */
static size_t reserve_wanted(const wq__agenda *a, size_t n)
{
	size_t most = (size_t)a->top * WQ__AGENDA_SLOTS;

	return n <= FEW ? 0 : n < most ? n : most;
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
	c->next = NULL;
	c->first = c->end = 0;
	return c;
}

/* Gives back what is not needed any more, a little at a time. */
static void reserve_trim(wq__agenda *a)
{
	size_t wanted = reserve_wanted(a, a->n);

	/* One that is half open has to be finished, however many have died meanwhile. */
	if (a->opening)
		return;

	for (int i = 0; i < 8 && a->nreserve > wanted; i++) {
		struct wq__chunk *c = a->reserve;

		a->reserve = c->next;
		a->nreserve--;
		wq__slab_free(a->slab, c->id);
	}
}

static void chunk_put(wq__agenda *a, struct wq__chunk *c)
{
	c->next = a->reserve;
	a->reserve = c;
	a->nreserve++;
	reserve_trim(a);
}

static bool level_make(wq__agenda *a, uint32_t l)
{
	if (a->level[l])
		return true;
	a->level[l] = wq__alloc(a->allocator, sizeof *a->level[l], 64);
	if (a->level[l])
		memset(a->level[l], 0, sizeof *a->level[l]);
	return a->level[l] != NULL;
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

/* The heap holds what few buckets gave it, what came in for a time that was past, and the spare. */
static bool near_reserve(wq__agenda *a, uint32_t top, size_t n)
{
	size_t most = (size_t)FEW * (top + 1);

	return near_make(a, a->nnear + 1 + a->spare + (n < most ? n : most));
}

bool wq__agenda_spare(wq__agenda *a)
{
	a->spare++;
	return near_reserve(a, a->top, a->n);
}

/* Everything that this reference may need from now until it is popped. */
static bool reserve(wq__agenda *a, uint32_t l)
{
	uint32_t top = l > a->top ? l : a->top;
	size_t n = a->n + 1;

	if (!near_reserve(a, top, n))
		return false;
	/* A lone bucket of a few goes straight to the heap; only crowds need the levels below. */
	if (!level_make(a, l))
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
	return true;
}

/* ---- the heap of near ones ------------------------------------------------ */

static bool before(const struct wq__near *x, const struct wq__near *y)
{
	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->seq < y->seq;
}

static void near_sift_up(wq__agenda *a, struct wq__near it)
{
	size_t i = a->nnear++;

	assert(a->nnear <= a->near_cap);
	for (size_t up; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!before(&it, &a->near[up]))
			break;
		a->near[i] = a->near[up];
	}
	a->near[i] = it;
}

static void near_push(wq__agenda *a, wq__ref ref)
{
	near_sift_up(a, (struct wq__near){.due_ns = ref.due_ns, .seq = a->seq++, .what = ref.what});
}

static wq__ref near_pop(wq__agenda *a)
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

static void bucket_append(wq__agenda *a, struct wq__bucket *b, wq__ref ref)
{
	struct wq__chunk *c = b->tail;

	if (!c || c->end == WQ__CHUNK_REFS) {
		c = chunk_take(a);
		if (b->tail)
			b->tail->next = c;
		else
			b->head = c;
		b->tail = c;
	}
	c->ref[c->end++] = ref;
	if (b->n == 0 || ref.due_ns < b->min_ns)
		b->min_ns = ref.due_ns;
	if (b->n == 0 || ref.due_ns > b->max_ns)
		b->max_ns = ref.due_ns;
	b->n++;
}

/* The first reference of a bucket that has one. */
static wq__ref bucket_shift(wq__agenda *a, struct wq__bucket *b)
{
	struct wq__chunk *c = b->head;
	wq__ref ref;

	/* A sweep may have emptied the first one. */
	while (c->first == c->end) {
		b->head = c->next;
		if (a->sweep_at == c)
			a->sweep_at = b->head;
		chunk_put(a, c);
		c = b->head;
	}
	ref = c->ref[c->first++];
	b->n--;
	if (c->first == c->end) {
		b->head = c->next;
		if (!b->head)
			b->tail = NULL;
		else
			wq__prefetch(b->head->next);
		/* A sweep that stopped here goes on behind it, if anything is left. */
		if (a->sweep_at == c)
			a->sweep_at = b->head;
		chunk_put(a, c);
	}
	return ref;
}

static void file(wq__agenda *a, wq__ref ref)
{
	uint32_t l = level_of(a, ref.due_ns), slot = slot_of(a, l, ref.due_ns);

	bucket_append(a, &a->level[l]->bucket[slot], ref);
	a->level[l]->bits |= UINT64_C(1) << slot;
	a->level_bits |= UINT64_C(1) << l;
}

static void bucket_emptied(wq__agenda *a, uint32_t l, uint32_t slot)
{
	if (a->sweeping == &a->level[l]->bucket[slot])
		a->sweeping = NULL;
	a->level[l]->bits &= ~(UINT64_C(1) << slot);
	if (!a->level[l]->bits)
		a->level_bits &= ~(UINT64_C(1) << l);
}

int wq__agenda_insert(wq__agenda *a, int64_t now_ns, wq__ref ref)
{
	catch_up(a, now_ns);

	uint32_t l = ref.due_ns < a->time_ns ? 0 : level_of(a, ref.due_ns);

	if (!reserve(a, l))
		return -1;
	a->n++;
	if (a->opening && ref.due_ns >= a->time_ns && ref.due_ns <= a->opening_end_ns)
		/* Behind those of equal time that have not been moved yet. */
		bucket_append(a, a->opening, ref);
	else if (ref.due_ns < a->time_ns)
		near_push(a, ref);
	else
		file(a, ref);
	return 0;
}

void wq__agenda_reinsert(wq__agenda *a, wq__ref ref)
{
	if (wq__agenda_insert(a, a->time_ns, ref) == 0)
		return;
	/* The heap takes any time; it is only slower. */
	a->n++;
	near_push(a, ref);
}

/* ---- pop ------------------------------------------------------------------ */

/*
 * The bucket's time has come. A few references go to the heap; more are spread
 * over the levels below, which are empty.
 */
static void open_bucket(wq__agenda *a, uint32_t l, uint32_t slot)
{
	struct wq__bucket *b = &a->level[l]->bucket[slot];

	a->time_ns = bucket_start(a, l, slot);
	bucket_emptied(a, l, slot);
	a->opening = b;
	a->opening_few = b->n <= FEW && a->nnear + b->n + a->spare <= a->near_cap;
	a->opening_end_ns = a->time_ns + (int64_t)((UINT64_C(1) << a->shift[l]) - 1);
}

/* False: the budget is used up. */
static bool open_more(wq__agenda *a, size_t *budget)
{
	struct wq__bucket *b = a->opening;

	for (; b->n > 0; --*budget) {
		if (*budget == 0)
			return false;
		if (a->opening_few)
			near_push(a, bucket_shift(a, b));
		else
			file(a, bucket_shift(a, b));
	}
	a->opening = NULL;
	return true;
}

/* What comes first of the heap and the buckets, unless it is due after now_ns. */
enum wq__agenda_pop wq__agenda_pop(wq__agenda *a, int64_t now_ns, size_t *budget, wq__ref *out)
{
	for (;;) {
		uint32_t l, slot;
		struct wq__bucket *b = NULL;

		if (a->opening && !open_more(a, budget))
			return WQ__AGENDA_AGAIN;
		if (first_bucket(a, &l, &slot))
			b = &a->level[l]->bucket[slot];
		/* Of equal times those in the heap were there before. */
		bool near = a->nnear > 0 && (!b || a->near[0].due_ns <= b->min_ns);

		if (!near && !b)
			return WQ__AGENDA_NONE;
		if ((near ? a->near[0].due_ns : b->min_ns) > now_ns)
			return WQ__AGENDA_NONE;
		if (!near && b->min_ns != b->max_ns) {
			open_bucket(a, l, slot);
			continue;
		}
		if (*budget == 0)
			return WQ__AGENDA_AGAIN;
		--*budget;
		a->n--;
		reserve_trim(a);
		if (near) {
			*out = near_pop(a);
			return WQ__AGENDA_POPPED;
		}
		/* All of one nanosecond, as on the lowest level: they are in their order. */
		*out = bucket_shift(a, b);
		if (b->n == 0)
			bucket_emptied(a, l, slot);
		return WQ__AGENDA_POPPED;
	}
}

int64_t wq__agenda_next(const wq__agenda *a)
{
	uint32_t l, slot;
	int64_t next = a->nnear > 0 ? a->near[0].due_ns : INT64_MAX;

	if (a->opening && a->opening->min_ns < next)
		next = a->opening->min_ns;
	if (first_bucket(a, &l, &slot) && a->level[l]->bucket[slot].min_ns < next)
		next = a->level[l]->bucket[slot].min_ns;
	return next;
}

/* ---- sweeping ------------------------------------------------------------- */

struct sweep {
	wq__agenda *a;
	wq__alive_fn alive;
	const void *owner;
};

/* Moves the living of `from` behind those of `to`, which may be the same chunk, emptied. */
static size_t sift(const struct sweep *s, struct wq__chunk *to, struct wq__chunk *from)
{
	uint16_t first = from->first, end = from->end;
	size_t dead = 0;

	from->first = from->end = 0;
	for (uint16_t i = first; i < end; i++) {
		if (s->alive(s->owner, from->ref[i]))
			to->ref[to->end++] = from->ref[i];
		else
			dead++;
	}
	return dead;
}

/* Sweeps from chunk c on, at most *chunks of them. Returns where it stopped, NULL: at the end. */
static struct wq__chunk *sweep_bucket(const struct sweep *s, struct wq__bucket *b,
                                      struct wq__chunk *c, int *chunks)
{
	size_t dead = sift(s, c, c);
	struct wq__chunk *d;

	while ((d = c->next) != NULL && *chunks > 0) {
		--*chunks;
		dead += sift(s, d, d);
		if (c->end + d->end > WQ__CHUNK_REFS) {
			c = d;
			continue;
		}
		memcpy(c->ref + c->end, d->ref, d->end * sizeof d->ref[0]);
		c->end = (uint16_t)(c->end + d->end);
		c->next = d->next;
		if (b->tail == d)
			b->tail = c;
		chunk_put(s->a, d);
	}
	b->n -= dead;
	s->a->n -= dead;
	s->a->ndead -= dead;
	return d ? c : NULL;
}

static void sweep_near(const struct sweep *s)
{
	wq__agenda *a = s->a;
	size_t n = a->nnear;

	a->nnear = 0;
	for (size_t i = 0; i < n; i++) {
		wq__ref ref = {.due_ns = a->near[i].due_ns, .what = a->near[i].what};
		struct wq__near it = a->near[i];

		if (!s->alive(s->owner, ref)) {
			a->n--;
			a->ndead--;
			continue;
		}
		near_sift_up(a, it);
	}
}

/* The next bucket to sweep after the cursor; false: a round is complete. */
static bool sweep_advance(wq__agenda *a)
{
	while (a->sweep_level < a->nlevels) {
		struct wq__level *level = a->level[a->sweep_level];
		uint64_t left = level && a->sweep_slot < WQ__AGENDA_SLOTS
		                    ? level->bits & (~UINT64_C(0) << a->sweep_slot)
		                    : 0;

		if (left) {
			uint32_t slot = (uint32_t)__builtin_ctzll(left);

			a->sweeping = &level->bucket[slot];
			a->sweep_at = a->sweeping->head;
			a->sweep_slot = slot + 1;
			return true;
		}
		a->sweep_level++;
		a->sweep_slot = 0;
	}
	a->sweep_level = 0;
	return false;
}

void wq__agenda_died(wq__agenda *a, wq__alive_fn alive, const void *owner)
{
	struct sweep s = {.a = a, .alive = alive, .owner = owner};

	a->ndead++;
	reserve_trim(a);
	for (int chunks = SWEEP_CHUNKS;
	     chunks > 0 && a->ndead > a->n / 2 - a->n / 64 + SWEEP_SLACK;) {
		if (!a->sweeping && !sweep_advance(a)) {
			sweep_near(&s);
			return;
		}
		--chunks;

		struct wq__bucket *b = a->sweeping;

		a->sweep_at = sweep_bucket(&s, b, a->sweep_at, &chunks);
		if (a->sweep_at)
			continue;
		a->sweeping = NULL;
		if (b->n == 0) {
			chunk_put(a, b->head);
			b->head = b->tail = NULL;
			bucket_emptied(a, a->sweep_level, a->sweep_slot - 1);
		}
	}
}
