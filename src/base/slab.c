/* See slab.h. Invariant: a block is in its class's list exactly while an object can be cut from it. */
#include "base/slab.h"

#include <assert.h>
#include <string.h>

enum {
	BLOCK_SMALL = 64 << 10,
	SMALL_BLOCKS = 16, /* so many of a class before it gets large ones */
	HEADER_UNITS = (sizeof(struct wq__block) + 63) / 64 * 8,
};

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

void wq__slab_init(wq__slab *s, const wq_allocator *a)
{
	memset(s, 0, sizeof *s);
	s->allocator = a;
}

void wq__slab_release(wq__slab *s)
{
	for (uint32_t i = 0; i < s->nblocks; i++)
		/* A hole in the table is an odd number, see number_free(). */
		if (!((uintptr_t)s->blocks[i] & 1))
			wq__free(s->allocator, s->blocks[i], s->blocks[i]->bytes);
	wq__free(s->allocator, s->blocks, s->blocks_cap * sizeof(struct wq__block *));
	wq__slab_init(s, s->allocator);
}

void wq__slab_list(wq__slab *s, struct wq__block *b)
{
	struct wq__block **head = &s->room[b->class];

	b->prev = NULL;
	b->next = *head;
	if (*head)
		(*head)->prev = b;
	*head = b;
	b->listed = 1;
}

void wq__slab_unlist(wq__slab *s, struct wq__block *b)
{
	if (b->prev)
		b->prev->next = b->next;
	else
		s->room[b->class] = b->next;
	if (b->next)
		b->next->prev = b->prev;
	b->listed = 0;
}

/* A hole holds the next hole's number + 1, shifted and made odd, so that it is no pointer. */
static void number_free(wq__slab *s, uint32_t number)
{
	s->blocks[number] = (struct wq__block *)((uintptr_t)s->free_number << 1 | 1);
	s->free_number = number + 1;
}

static int number_grow(wq__slab *s)
{
	uint32_t cap = s->blocks_cap ? s->blocks_cap * 2 : 16;
	struct wq__block **blocks;

	if (cap > WQ__SLAB_BLOCKS_MAX)
		return 0;
	blocks = wq__alloc(s->allocator, cap * sizeof(struct wq__block *), sizeof(void *));
	if (!blocks)
		return 0;
	if (s->blocks) {
		memcpy(blocks, s->blocks, s->nblocks * sizeof(struct wq__block *));
		wq__free(s->allocator, s->blocks, s->blocks_cap * sizeof(struct wq__block *));
	}
	s->blocks = blocks;
	s->blocks_cap = cap;
	return 1;
}

/* The caller has made sure that there is a number left. */
static uint32_t number_take(wq__slab *s)
{
	if (!s->free_number)
		return s->nblocks++;

	uint32_t number = s->free_number - 1;

	s->free_number = (uint32_t)((uintptr_t)s->blocks[number] >> 1);
	return number;
}

static void block_format(wq__slab *s, struct wq__block *b, uint32_t class)
{
	b->class = class;
	b->live = 0;
	b->unit = class_units(class);
	b->fresh = HEADER_UNITS;
	b->end = HEADER_UNITS + ((uint32_t)(b->bytes / 8) - HEADER_UNITS) / b->unit * b->unit;
	b->freed = 0;
	s->class_blocks[class]++;
	wq__slab_list(s, b);
}

static size_t block_bytes(const wq__slab *s, uint32_t class)
{
	size_t four = (HEADER_UNITS + 4 * (size_t)class_units(class)) * 8;

	if (s->class_blocks[class] >= SMALL_BLOCKS)
		return WQ__HUGE;
	return four > BLOCK_SMALL ? four : BLOCK_SMALL;
}

/* Those that are used again are no spares. */
static void forget_used_spares(wq__slab *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nspares; i++) {
		struct wq__block *b = s->spares[i];

		b->spare = b->live == 0;
		if (b->spare)
			s->spares[n++] = b;
	}
	s->nspares = n;
}

/* A spare block, or NULL: there is none. */
static struct wq__block *spare_take(wq__slab *s)
{
	struct wq__block *b;

	forget_used_spares(s);
	if (s->nspares == 0)
		return NULL;
	b = s->spares[--s->nspares];
	b->spare = 0;
	wq__slab_unlist(s, b);
	s->class_blocks[b->class]--;
	return b;
}

static struct wq__block *block_new(wq__slab *s, uint32_t class)
{
	size_t bytes = block_bytes(s, class);
	struct wq__block *b = bytes == BLOCK_SMALL ? spare_take(s) : NULL;

	if (!b) {
		if (!s->free_number && s->nblocks == s->blocks_cap && !number_grow(s))
			return NULL;
		b = wq__alloc(s->allocator, bytes, 64);
		if (!b)
			return NULL;
		b->bytes = bytes;
		b->spare = 0;
		b->number = number_take(s);
		s->blocks[b->number] = b;
	}
	block_format(s, b, class);
	return b;
}

static void block_free(wq__slab *s, struct wq__block *b)
{
	wq__slab_unlist(s, b);
	s->class_blocks[b->class]--;
	number_free(s, b->number);
	wq__free(s->allocator, b, b->bytes);
}

/* The class has no freed object at hand: cut a fresh one. */
void *wq__slab_alloc_slow(wq__slab *s, uint32_t class, uint32_t *id)
{
	struct wq__block *b = s->room[class];

	if (!b)
		b = block_new(s, class);
	if (!b)
		return NULL;

	uint32_t at = b->fresh;

	assert(!b->freed && at < b->end);
	b->fresh += b->unit;
	b->live++;
	if (b->fresh == b->end)
		wq__slab_unlist(s, b);
	*id = b->number << WQ__SLAB_OFFSET_BITS | at;
	return (char *)b + (size_t)at * 8;
}

void wq__slab_emptied(wq__slab *s, struct wq__block *b)
{
	if (s->nspares == WQ__SLAB_SPARES)
		forget_used_spares(s);
	if (s->nspares < WQ__SLAB_SPARES && b->bytes == BLOCK_SMALL) {
		b->spare = 1;
		s->spares[s->nspares++] = b;
	} else {
		block_free(s, b);
	}
}
