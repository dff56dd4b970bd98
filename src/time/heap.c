/*
 * A binary heap of (priority, sequence), whose nodes name slots; a slot knows
 * where its node stands, so any element can be found, moved and taken out.
 *
 * A slot's generation is odd while it is in use and goes up by one when it is
 * taken and when it is given back, so a name fits one life of one slot.
 */
#include <wq/heap.h>

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

enum { FIRST_CAP = 16 };

static const uint32_t NO_SLOT = UINT32_MAX;

struct node {
	int64_t priority;
	uint64_t seq;
	uint32_t slot;
};

struct slot {
	void *value;
	uint32_t at; /* index of its node; while free: the next free slot */
	uint32_t generation;
};

struct wq_heap {
	uint64_t seq;
	struct node *node;
	struct slot *slot;
	uint32_t n;      /* elements */
	uint32_t cap;    /* of both arrays */
	uint32_t nslots; /* slots that were ever used */
	uint32_t free_slot;
	wq_allocator allocator;
};

int wq_heap_new(wq_heap **out, const wq_allocator *allocator)
{
	const wq_allocator *a = allocator ? allocator : &wq__default_allocator;
	wq_heap *h;

	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	if (!wq__allocator_good(a))
		return wq__fail_allocator(a);
	h = wq__alloc(a, sizeof *h, 8);
	if (!h)
		return wq__fail_memory();
	*h = (wq_heap){.free_slot = NO_SLOT, .allocator = *a};
	*out = h;
	return WQ_OK;
}

int64_t wq_heap_free(wq_heap *h)
{
	if (!h)
		return WQ_OK;

	wq_allocator a = h->allocator;
	int64_t left = h->n;

	wq__free(&a, h->node, h->cap * sizeof *h->node);
	wq__free(&a, h->slot, h->cap * sizeof *h->slot);
	wq__free(&a, h, sizeof *h);
	return left;
}

static int grow(wq_heap *h)
{
	uint32_t cap = h->cap ? h->cap * 2 : FIRST_CAP;
	struct node *node;
	struct slot *slot;

	if (cap < h->cap)
		return WQ_ENOMEM;
	node = wq__alloc(&h->allocator, cap * sizeof *node, 8);
	slot = wq__alloc(&h->allocator, cap * sizeof *slot, 8);
	if (!node || !slot) {
		wq__free(&h->allocator, node, cap * sizeof *node);
		wq__free(&h->allocator, slot, cap * sizeof *slot);
		return WQ_ENOMEM;
	}
	if (h->cap > 0) {
		memcpy(node, h->node, h->n * sizeof *node);
		memcpy(slot, h->slot, h->nslots * sizeof *slot);
	}
	wq__free(&h->allocator, h->node, h->cap * sizeof *node);
	wq__free(&h->allocator, h->slot, h->cap * sizeof *slot);
	h->node = node;
	h->slot = slot;
	h->cap = cap;
	return WQ_OK;
}

static int before(const struct node *x, const struct node *y)
{
	return x->priority != y->priority ? x->priority < y->priority : x->seq < y->seq;
}

static void put(wq_heap *h, uint32_t i, struct node it)
{
	h->node[i] = it;
	h->slot[it.slot].at = i;
}

static void sift_up(wq_heap *h, uint32_t i, struct node it)
{
	while (i > 0 && before(&it, &h->node[(i - 1) / 2])) {
		put(h, i, h->node[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(h, i, it);
}

static void sift_down(wq_heap *h, uint32_t i, struct node it)
{
	for (;;) {
		uint64_t down = 2 * (uint64_t)i + 1;

		if (down >= h->n)
			break;
		if (down + 1 < h->n && before(&h->node[down + 1], &h->node[down]))
			down++;
		if (!before(&h->node[down], &it))
			break;
		put(h, i, h->node[down]);
		i = (uint32_t)down;
	}
	put(h, i, it);
}

/* `it` belongs at i or above or below. */
static void settle(wq_heap *h, uint32_t i, struct node it)
{
	if (i > 0 && before(&it, &h->node[(i - 1) / 2]))
		sift_up(h, i, it);
	else
		sift_down(h, i, it);
}

static uint32_t slot_take(wq_heap *h, void *value)
{
	uint32_t s = h->free_slot;

	if (s == NO_SLOT) {
		s = h->nslots++;
		h->slot[s].generation = 0;
	} else {
		h->free_slot = h->slot[s].at;
	}
	h->slot[s].value = value;
	h->slot[s].generation++;
	return s;
}

int wq_heap_add(wq_heap *h, int64_t priority, void *value, wq_heap_elem *elem)
{
	if (!h)
		return WQ_EINVAL;
	if (h->n == h->cap && grow(h) < 0)
		return WQ_ENOMEM;

	uint32_t s = slot_take(h, value);

	sift_up(h, h->n++, (struct node){.priority = priority, .seq = h->seq++, .slot = s});
	if (elem)
		*elem = (wq_heap_elem){.heap = h, .index = s, .generation = h->slot[s].generation};
	return WQ_OK;
}

static void leave(wq_heap *h, uint32_t i, int64_t *priority, void **value)
{
	struct node gone = h->node[i], last = h->node[--h->n];
	struct slot *s = &h->slot[gone.slot];

	if (priority)
		*priority = gone.priority;
	if (value)
		*value = s->value;
	s->generation++;
	s->at = h->free_slot;
	h->free_slot = gone.slot;
	if (i < h->n)
		settle(h, i, last);
}

int wq_heap_peek(const wq_heap *h, int64_t *priority, void **value)
{
	if (!h)
		return WQ_EINVAL;
	if (h->n == 0)
		return WQ_EAGAIN;
	if (priority)
		*priority = h->node[0].priority;
	if (value)
		*value = h->slot[h->node[0].slot].value;
	return WQ_OK;
}

int wq_heap_pop(wq_heap *h, int64_t *priority, void **value)
{
	if (!h)
		return WQ_EINVAL;
	if (h->n == 0)
		return WQ_EAGAIN;
	leave(h, 0, priority, value);
	return WQ_OK;
}

static int check(const wq_heap *h, wq_heap_elem e)
{
	if (!h)
		return WQ_EINVAL;
	if (e.heap != h)
		return WQ_EOTHERQUEUE;
	if (e.index >= h->nslots || h->slot[e.index].generation != e.generation)
		return WQ_ESTALE;
	return WQ_OK;
}

int wq_heap_remove(wq_heap *h, wq_heap_elem elem, void **value)
{
	int rc = check(h, elem);

	if (rc == WQ_OK)
		leave(h, h->slot[elem.index].at, NULL, value);
	return rc;
}

int wq_heap_update(wq_heap *h, wq_heap_elem elem, int64_t priority)
{
	int rc = check(h, elem);

	if (rc == WQ_OK)
		settle(h, h->slot[elem.index].at,
		       (struct node){.priority = priority, .seq = h->seq++, .slot = elem.index});
	return rc;
}

int64_t wq_heap_size(const wq_heap *h)
{
	return h ? (int64_t)h->n : WQ_EINVAL;
}
