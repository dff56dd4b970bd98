/* See slab.h. Invariant: a run is in its class's list exactly while it has room for an object. */
#include "base/slab.h"

#include <assert.h>
#include <string.h>

uint32_t wq__slab_class_slow(size_t size)
{
	assert(size > WQ__SLAB_FINE && size <= WQ__SLAB_MAX);

	/* size in (2^k, 2^(k+1)]: eight steps of 2^(k-3) each */
	unsigned k = 63u - (unsigned)__builtin_clzll((unsigned long long)size - 1);
	size_t step = (size_t)1 << (k - 3);

	return (uint32_t)(129 + (k - 10) * 8 + (size - ((size_t)1 << k) + step - 1) / step - 1);
}

static uint32_t class_units(uint32_t class)
{
	if (class <= 128)
		return class;

	uint32_t k = 10 + (class - 129) / 8, i = (class - 129) % 8 + 1;

	return ((1u << k) + i * (1u << (k - 3))) / 8;
}

static enum wq__run_kind class_kind(uint32_t units)
{
	enum { SMALL = WQ__RUN_SMALL_BYTES / 8 };

	return units <= SMALL / 4 && SMALL % units <= SMALL / 8 ? WQ__RUN_SMALL : WQ__RUN_LARGE;
}

void wq__slab_init(wq__slab *s, const wq_allocator *a)
{
	memset(s, 0, sizeof *s);
	wq__runs_init(&s->runs, a);
}

void wq__slab_release(wq__slab *s)
{
	wq__runs_release(&s->runs);
	wq__slab_init(s, s->runs.allocator);
}

void wq__slab_list(wq__slab *s, struct wq__run *d)
{
	struct wq__run *head = s->room[d->class];

	d->prev = 0;
	d->next = head ? head->first : 0;
	if (head)
		head->prev = d->first;
	s->room[d->class] = d;
	d->flags |= WQ__RUN_LISTED;
}

void wq__slab_unlist(wq__slab *s, struct wq__run *d)
{
	struct wq__run *next = d->next ? wq__run_of(&s->runs, d->next) : NULL;

	if (d->prev)
		wq__run_of(&s->runs, d->prev)->next = d->next;
	else
		s->room[d->class] = next;
	if (next)
		next->prev = d->prev;
	d->flags &= (uint8_t)~WQ__RUN_LISTED;
}

static struct wq__run *run_new(wq__slab *s, uint32_t class)
{
	uint32_t unit = class_units(class);
	enum wq__run_kind kind = class_kind(unit);
	uint32_t bytes = kind == WQ__RUN_SMALL ? WQ__RUN_SMALL_BYTES : WQ__RUN_LARGE_BYTES;
	struct wq__run *d = wq__run_take(&s->runs, kind);

	if (!d)
		return NULL;
	d->class = (uint8_t) class;
	d->flags = 0;
	d->live = 0;
	d->unit = (uint16_t)unit;
	d->fresh = 0;
	d->end = (uint16_t)(bytes / 8 / unit * unit);
	d->freed = WQ__RUN_NONE;
	wq__slab_list(s, d);
	return d;
}

/* The class has no freed object at hand: cut a fresh one. */
void *wq__slab_alloc_slow(wq__slab *s, uint32_t class, uint32_t *id)
{
	struct wq__run *d = s->room[class];

	if (!d)
		d = run_new(s, class);
	if (!d)
		return NULL;

	uint32_t at = d->fresh;

	assert(d->freed == WQ__RUN_NONE && at < d->end);
	d->fresh = (uint16_t)(at + d->unit);
	d->live++;
	if (d->fresh == d->end)
		wq__slab_unlist(s, d);
	*id = d->first + at;
	return d->base + (size_t)at * 8;
}

/* Those that are used again are no spares. */
static void forget_used_spares(wq__slab *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nspares; i++) {
		struct wq__run *d = s->spares[i];

		if (d->live == 0)
			s->spares[n++] = d;
		else
			d->flags &= (uint8_t)~WQ__RUN_SPARE;
	}
	s->nspares = n;
}

static void run_give(wq__slab *s, struct wq__run *d)
{
	wq__slab_unlist(s, d);
	wq__run_give(&s->runs, d);
}

/* It becomes a spare, and the oldest of them goes if they are too many. */
void wq__slab_emptied(wq__slab *s, struct wq__run *d)
{
	if (class_kind(d->unit) != WQ__RUN_SMALL) {
		run_give(s, d);
		return;
	}
	if (s->nspares == WQ__SLAB_SPARES)
		forget_used_spares(s);
	if (s->nspares == WQ__SLAB_SPARES) {
		run_give(s, s->spares[0]);
		s->nspares--;
		memmove(s->spares, s->spares + 1, s->nspares * sizeof(struct wq__run *));
	}
	d->flags |= WQ__RUN_SPARE;
	s->spares[s->nspares++] = d;
}
