/*
 * Growing, splitting and merging of pages; see table.h.
 *
 * A page doubles until it has PAGE_MAX slots and splits then, into halves with
 * a size of their own between two powers of two: slots take 10 to 16 bytes a key
 * where doubling alone would take up to 21.
 *
 * Pages merge with their buddy (the other half of the prefix that is one bit
 * shorter) when both together would fill less than a quarter of one of them. That
 * needs no memory, so it can be done while a key is removed.
 */
#include "base/table.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

enum {
	PAGE_MAX = 508, /* a page that would need more slots splits */
	DEPTH_MAX = 24,
	HEADER_WORDS = sizeof(struct wq__page) / 8,
};

static uint32_t page_home(const struct wq__page *p, uint32_t hash)
{
	return wq__home(p->cap, p->depth, hash);
}

static struct wq__page *page_of(const wq__table *t, uint32_t hash)
{
	return wq__table_dirent(t, hash)->page;
}

static size_t page_bytes(uint32_t total)
{
	return sizeof(struct wq__page) + ((size_t)total + 1) * 8;
}

/* How many slots a page should have that is to hold n and some more. */
static uint32_t page_total(uint32_t n)
{
	static const uint16_t sizes[] = {16, 32, 64, 128, 256, 320, 512};
	uint32_t want = n + n / 4 + 4, words = 0;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && words < want; i++)
		words = sizes[i];
	/* Only where hashes agree in so many bits that the page cannot split. */
	while (words < want)
		words *= 2;
	return words - HEADER_WORDS - 1;
}

static struct wq__page *page_new(wq__table *t, uint32_t total, uint32_t depth)
{
	uint32_t id;
	struct wq__page *p;

	if (page_bytes(total) > WQ__SLAB_MAX)
		return NULL;
	p = wq__slab_alloc(t->slab, page_bytes(total), &id);
	if (!p)
		return NULL;
	p->n = 0;
	p->total = total;
	p->cap = total - total / 16 - 3;
	p->limit = p->cap - p->cap / 8;
	p->id = id;
	p->depth = (uint16_t)depth;
	p->floor = (uint16_t)(total / 8);
	memset(p->slot, 0, ((size_t)total + 1) * 8);
	return p;
}

/*
 * Puts a slot behind those that are there; they come in the order of their
 * hashes, and *next is where the last one ended. 0: they crowd at the page's end.
 */
static int page_append(struct wq__page *p, uint32_t *next, uint64_t slot)
{
	uint32_t home = page_home(p, (uint32_t)(slot >> 32));

	if (*next < home)
		*next = home;
	if (*next >= p->total)
		return 0;
	p->slot[(*next)++] = slot;
	p->n++;
	return 1;
}

/*
 * All slots below `end` from *from on go into another page, which is empty. What is
 * an empty slot and what is not is as good as random: so an empty one is written as well,
 * where the next one will be. 0: they crowd at the page's end.
 */
static int page_pour(const struct wq__page *p, uint32_t *from, uint64_t end, struct wq__page *to)
{
	uint32_t cap = to->cap, depth = to->depth, total = to->total, next = 0, n = 0, i;

	for (i = *from; i < p->total && p->slot[i] < end; i++) {
		uint64_t slot = p->slot[i];
		uint32_t home = wq__home(cap, depth, (uint32_t)(slot >> 32));
		uint32_t at = next < home ? home : next;

		if (wq__unlikely(at >= total)) {
			if (slot)
				return 0;
			continue;
		}
		to->slot[at] = slot;
		next = slot ? at + 1 : next;
		n += slot != 0;
	}
	to->n = n;
	*from = i;
	return 1;
}

static uint32_t page_collect(const struct wq__page *p, uint64_t *out)
{
	uint32_t n = 0;

	/* Without a branch, as above: an empty slot is overwritten by the next one. */
	for (uint32_t i = 0; n < p->n; i++) {
		out[n] = p->slot[i];
		n += p->slot[i] != 0;
	}
	return n;
}

/* Every directory entry of the prefix that hash and depth name points to p. */
static void dir_set(wq__table *t, uint32_t hash, uint32_t depth, struct wq__page *p)
{
	size_t first = (size_t)((uint64_t)hash >> (32 - depth)) << (t->depth - depth);
	size_t count = (size_t)1 << (t->depth - depth);

	for (size_t i = 0; i < count; i++)
		t->dir[first + i] =
		    (struct wq__dirent){.page = p, .cap = p->cap, .depth = p->depth};
}

static void page_attach(wq__table *t, uint32_t hash, struct wq__page *p)
{
	dir_set(t, hash, p->depth, p);
	t->at_depth[p->depth]++;
	t->npages++;
}

static void page_free(wq__table *t, struct wq__page *p)
{
	t->at_depth[p->depth]--;
	t->npages--;
	if (p != t->first)
		wq__slab_free(t->slab, p->id);
}

static void note_moved(wq__table *t, uint32_t n)
{
	if (n > t->moved_max)
		t->moved_max = n;
}

int wq__table_init(wq__table *t, wq__slab *slab, const wq_allocator *a)
{
	struct wq__page *p;

	memset(t, 0, sizeof *t);
	t->slab = slab;
	t->allocator = a;
	t->dir = wq__alloc(a, sizeof(struct wq__dirent), 64);
	if (!t->dir)
		return -1;
	p = page_new(t, page_total(0), 0);
	if (!p) {
		wq__free(a, t->dir, sizeof(struct wq__dirent));
		return -1;
	}
	p->floor = 0;
	t->first = p;
	page_attach(t, 0, p);
	return 0;
}

/* The pages go with the slab. */
void wq__table_release(wq__table *t)
{
	wq__free(t->allocator, t->dir, sizeof(struct wq__dirent) << t->dir_depth);
	t->dir = NULL;
}

/* Give the directory exactly 2^depth entries, depth >= t->depth. */
static int dir_resize(wq__table *t, uint32_t depth)
{
	struct wq__dirent *dir =
	    wq__alloc(t->allocator, sizeof(struct wq__dirent) << depth, sizeof(void *));
	uint32_t up = depth - t->depth;

	if (!dir)
		return -1;
	for (size_t i = 0; i < (size_t)1 << depth; i++)
		dir[i] = t->dir[i >> up];
	wq__free(t->allocator, t->dir, sizeof(struct wq__dirent) << t->dir_depth);
	t->dir = dir;
	t->depth = t->dir_depth = depth;
	return 0;
}

/* In place: the memory goes back when the directory is next resized. */
static void dir_halve(wq__table *t)
{
	t->depth--;
	for (size_t i = 0; i < (size_t)1 << t->depth; i++)
		t->dir[i] = t->dir[2 * i];
}

/*
 * Hashes that agree in many bits would make the directory as large as they
 * like. It is allowed eight entries a page; beyond that the page grows.
 */
static int may_split(const wq__table *t, const struct wq__page *p)
{
	if (p->depth < t->depth)
		return 1;
	return t->depth < DEPTH_MAX && (t->npages + 2) * 8 > (size_t)1 << (t->depth + 1);
}

/*
 * Moves all slots of p to one page of total[0] slots, or to two that cover half
 * of its prefix each.
 */
static int page_move(wq__table *t, uint32_t hash, struct wq__page *p, const uint32_t *total,
                     int halves)
{
	struct wq__page *to[2] = {NULL, NULL};
	uint32_t bit = 31 - p->depth, from = 0;
	/* Where the upper half begins. */
	uint64_t end = (uint64_t)(hash >> bit | 1) << bit << 32;

	for (int i = 0; i < 1 + halves; i++) {
		to[i] = page_new(t, total[i], p->depth + (uint32_t)halves);
		if (!to[i])
			goto fail;
	}
	if (halves && !page_pour(p, &from, end, to[0]))
		goto fail;
	if (!page_pour(p, &from, UINT64_MAX, to[halves]))
		goto fail;
	note_moved(t, p->n);
	page_free(t, p);
	for (int i = 0; i < 1 + halves; i++)
		page_attach(t, halves ? (hash & ~(1u << bit)) | (uint32_t)i << bit : hash, to[i]);
	return 0;
fail:
	for (int i = 0; i < 1 + halves; i++)
		if (to[i])
			wq__slab_free(t->slab, to[i]->id);
	return -1;
}

static int page_split(wq__table *t, uint32_t hash, struct wq__page *p)
{
	if (!may_split(t, p))
		return -1;
	if (p->depth == t->depth && dir_resize(t, t->depth + 1) < 0)
		return -1;

	uint32_t high = 0, bit = 31 - p->depth;

	for (uint32_t i = 0; i < p->total; i++)
		high += (uint32_t)(p->slot[i] >> 32) >> bit & 1;

	uint32_t total[2] = {page_total(p->n - high), page_total(high)};

	return page_move(t, hash, p, total, 1);
}

/* Room for one more, and for the hashes to spread; where they crowd, more and more. */
static int page_grow(wq__table *t, uint32_t hash, struct wq__page *p)
{
	uint32_t total = page_total(p->n);

	if (total <= p->total)
		total = page_total(p->total);
	return page_move(t, hash, p, &total, 0);
}

/* Shifts those behind it by one. False: there is no gap up to the end of the page. */
static bool page_insert(struct wq__page *p, uint64_t slot)
{
	uint64_t *here = p->slot + page_home(p, (uint32_t)(slot >> 32)), *gap;

	while (*here != 0 && *here < slot)
		here++;
	for (gap = here; *gap;)
		gap++;
	if (gap == p->slot + p->total)
		return false;
	memmove(here + 1, here, (size_t)((char *)gap - (char *)here));
	*here = slot;
	p->n++;
	return true;
}

static wq__cold int insert_slow(wq__table *t, uint64_t slot)
{
	uint32_t hash = (uint32_t)(slot >> 32);

	for (;;) {
		struct wq__page *p = page_of(t, hash);

		if (p->n < p->limit && page_insert(p, slot))
			break;
		if ((p->total >= PAGE_MAX || page_total(p->n) > PAGE_MAX) &&
		    page_split(t, hash, p) == 0)
			continue;
		if (page_grow(t, hash, p) == 0)
			continue;
		/* A page that is fuller than it should be is still a page. */
		if (p->n < p->cap && page_insert(p, slot))
			break;
		return -1;
	}
	t->n++;
	return 0;
}

/* The place is taken: those behind it move on by one, as far as the next gap. */
int wq__table_push_in(wq__table *t, wq__place at, uint64_t slot)
{
	struct wq__page *p = at.page;
	uint64_t *here = &p->slot[at.index], *gap = here;

	/* Slots of one hash are in the order of their ids, which whoever looked did not know. */
	if (p->n >= p->limit || (at.index > 0 && here[-1] > slot) || (*here && *here < slot))
		return insert_slow(t, slot);
	while (*gap)
		gap++;
	if (gap == &p->slot[p->total])
		return insert_slow(t, slot);
	for (; gap > here; gap--)
		*gap = gap[-1];
	*here = slot;
	p->n++;
	t->n++;
	return 0;
}

/* Would these slots fit? They might crowd at the page's end. */
static int page_fits(const struct wq__page *p, const uint64_t *sorted, uint32_t n)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t home = page_home(p, (uint32_t)(sorted[i] >> 32));

		next = (next < home ? home : next) + 1;
	}
	return next <= p->total;
}

/* Both pages' slots into the one with more room; NULL: they do not fit, and nothing changed. */
static struct wq__page *page_merge(wq__table *t, struct wq__page *low, struct wq__page *high)
{
	uint64_t sorted[PAGE_MAX];
	uint32_t n = page_collect(low, sorted), next = 0;
	/* The larger one, unless it has outgrown the size at which pages split. */
	struct wq__page *to =
	    (low->total >= high->total) == (low->total <= PAGE_MAX && high->total <= PAGE_MAX)
		? low
		: high;

	n += page_collect(high, sorted + n);
	to->depth--;
	if (!page_fits(to, sorted, n)) {
		to->depth++;
		return NULL;
	}
	note_moved(t, n);
	t->at_depth[to->depth + 1]--;
	t->npages--;
	to->n = 0;
	memset(to->slot, 0, (size_t)to->total * 8);
	for (uint32_t i = 0; i < n; i++)
		page_append(to, &next, sorted[i]);
	page_free(t, to == low ? high : low);
	return to;
}

static wq__cold void try_merge(wq__table *t, uint32_t hash, struct wq__page *p)
{
	while (p->depth > 0) {
		uint32_t bit = 1u << (32 - p->depth);
		struct wq__page *buddy = page_of(t, hash ^ bit);
		uint32_t total = p->total > buddy->total ? p->total : buddy->total;

		/* One that has outgrown it gives way; two merge as well, or they would hold all above. */
		if (total > PAGE_MAX)
			total = p->total < buddy->total ? p->total : buddy->total;
		if (total > PAGE_MAX)
			total = PAGE_MAX;
		if (buddy->depth != p->depth || (p->n + buddy->n) * 4 > total)
			return;
		p = hash & bit ? page_merge(t, buddy, p) : page_merge(t, p, buddy);
		if (!p)
			return;
		page_attach(t, hash, p);
		while (t->depth > 0 && t->at_depth[t->depth] == 0)
			dir_halve(t);
	}
}

/* Empty: back to the first page, so that the last one does not hold a block of memory. */
static wq__cold void start_again(wq__table *t)
{
	struct wq__page *p = t->dir[0].page;

	if (p == t->first)
		return;
	page_free(t, p);
	t->first->n = 0;
	t->first->depth = 0;
	memset(t->first->slot, 0, (size_t)t->first->total * 8);
	page_attach(t, 0, t->first);
}

/* Those behind it move up, but none before its home. */
void wq__table_close_gap(struct wq__page *p, uint32_t gap)
{
	while (p->slot[gap + 1] && page_home(p, (uint32_t)(p->slot[gap + 1] >> 32)) <= gap) {
		p->slot[gap] = p->slot[gap + 1];
		gap++;
	}
	p->slot[gap] = 0;
}

void wq__table_shrink(wq__table *t, uint32_t hash, struct wq__page *p)
{
	if (p->depth > 0)
		try_merge(t, hash, p);
	if (t->n == 0 && t->npages == 1)
		start_again(t);
}

wq__iter wq__table_iter(const wq__table *t, uint64_t from)
{
	wq__place at = wq__table_seek(t, from);
	uint32_t shift = 32 - at.page->depth;

	return (wq__iter){
	    .table = t,
	    .page = at.page,
	    .index = at.index,
	    .end = ((from >> 32 >> shift) + 1) << shift,
	};
}

uint64_t wq__iter_next(wq__iter *it)
{
	for (;;) {
		while (it->index < it->page->total) {
			uint64_t slot = it->page->slot[it->index++];

			if (slot)
				return slot;
		}
		if (it->end >> 32)
			return 0;
		*it = wq__table_iter(it->table, it->end << 32);
	}
}
