/*
 * See runs.h. Invariants: a bit of group.free is set exactly while that run has no
 * memory; a group is in its kind's list exactly while it has such a run; it goes
 * when it has no other.
 */
#include "base/runs.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(struct wq__run) <= 32, "two descriptors to a cache line");

enum {
	GROUP_UNITS = 1 << (WQ__GROUP_BITS - WQ__UNIT_BITS),
	GROUP_BYTES = 8 << WQ__GROUP_BITS,
	/* Larger tables are not copied at once, but two groups of it with each new group. */
	AT_ONCE = 8,
};

static const struct {
	uint32_t bytes, shift;
	uint32_t first; /* runs in the first group, each with memory of its own */
	uint32_t idle;  /* so many idle ones are always kept */
} kinds[WQ__RUN_KINDS] = {
    [WQ__RUN_SMALL] = {WQ__RUN_SMALL_BYTES, WQ__UNIT_BITS, 16, 16},
    [WQ__RUN_LARGE] = {WQ__RUN_LARGE_BYTES, WQ__UNIT_BITS + 3, 4, 4},
};

/* ---- tables by number ------------------------------------------------------- */

/* base and run of so many groups. */
static size_t places_bytes(uint32_t ngroups)
{
	return (size_t)ngroups * GROUP_UNITS * (sizeof(char *) + sizeof(struct wq__run *));
}

static struct wq__run **places_run(char **base, uint32_t ngroups)
{
	return (struct wq__run **)(void *)(base + (size_t)ngroups * GROUP_UNITS);
}

static uint32_t next_cap(const wq__runs *r)
{
	return r->cap ? r->cap * 2 : 1;
}

static void copy_on(wq__runs *r, uint32_t upto)
{
	struct wq__run **later_run = places_run(r->later, next_cap(r));
	size_t from = (size_t)r->ncopied * GROUP_UNITS, n;

	if (upto > r->ngroups)
		upto = r->ngroups;
	if (upto <= r->ncopied)
		return;
	n = (size_t)(upto - r->ncopied) * GROUP_UNITS;
	memcpy(r->later + from, r->base + from, n * sizeof *r->base);
	memcpy(later_run + from, r->run + from, n * sizeof(struct wq__run *));
	r->ncopied = upto;
}

/*
 * Before a number is used for the first time. The tables double, but the large ones not at
 * once: those that follow are there when these are half full, and learn two groups at a time.
 */
static bool numbers_grow(wq__runs *r)
{
	uint32_t cap = next_cap(r);

	if (!r->later && cap <= WQ__GROUPS_MAX &&
	    r->ngroups >= (r->cap > AT_ONCE ? r->cap / 2 : r->cap)) {
		r->later = wq__alloc(r->allocator, places_bytes(cap), 64);
		r->ncopied = 0;
	}
	if (r->later)
		copy_on(r, r->ncopied + 2);
	if (r->ngroups < r->cap)
		return true;
	if (!r->later)
		return false;

	union wq__group_slot *groups =
	    wq__alloc(r->allocator, cap * sizeof(union wq__group_slot), 64);

	if (!groups)
		return false;
	copy_on(r, r->ngroups);
	if (r->cap) {
		memcpy(groups, r->groups, r->ngroups * sizeof(union wq__group_slot));
		wq__free(r->allocator, r->groups, r->cap * sizeof(union wq__group_slot));
		r->old[r->nold++] = r->base;
	}
	r->groups = groups;
	/* release: pairs with the acquire in wq__runs_at() */
	atomic_store_explicit(&r->base, r->later, memory_order_release);
	r->run = places_run(r->later, cap);
	r->later = NULL;
	r->cap = cap;
	return true;
}

static bool number_reserve(wq__runs *r)
{
	return r->hole || (r->ngroups < r->limit && numbers_grow(r));
}

static uint32_t number_take(wq__runs *r)
{
	if (!r->hole)
		return r->ngroups++;

	uint32_t number = r->hole - 1;

	r->hole = (uint32_t)(r->groups[number].hole >> 1);
	return number;
}

static void number_free(wq__runs *r, uint32_t number)
{
	r->groups[number].hole = (uintptr_t)r->hole << 1 | 1;
	r->hole = number + 1;
}

/* Where the ids of a run are found from now on. */
static void run_place(wq__runs *r, struct wq__run *d, char *base, enum wq__run_kind kind)
{
	uint32_t unit = d->first >> WQ__UNIT_BITS;

	d->base = base;
	for (uint32_t at = 0; at < kinds[kind].bytes; at += WQ__RUN_SMALL_BYTES, unit++) {
		r->base[unit] = base + at;
		r->run[unit] = d;
		if (r->later) {
			r->later[unit] = base + at;
			places_run(r->later, next_cap(r))[unit] = d;
		}
	}
}

/* ---- groups ------------------------------------------------------------------ */

static size_t group_bytes(uint32_t nruns)
{
	return sizeof(struct wq__group) + nruns * sizeof(struct wq__run);
}

static void group_open(struct wq__run_pool *p, struct wq__group *g)
{
	g->prev = NULL;
	g->next = p->open;
	if (p->open)
		p->open->prev = g;
	p->open = g;
}

static void group_close(struct wq__run_pool *p, struct wq__group *g)
{
	if (g->prev)
		g->prev->next = g->next;
	else
		p->open = g->next;
	if (g->next)
		g->next->prev = g->prev;
}

static struct wq__group *group_new(wq__runs *r, enum wq__run_kind kind)
{
	struct wq__run_pool *p = &r->pool[kind];
	uint32_t nruns = p->ngroups ? GROUP_BYTES / kinds[kind].bytes : kinds[kind].first;
	bool mapped = p->ngroups && wq__maps(r->allocator);
	struct wq__group *g;

	if (!number_reserve(r))
		return NULL;
	g = wq__alloc(r->allocator, group_bytes(nruns), 64);
	if (!g)
		return NULL;
	*g = (struct wq__group){.kind = kind, .nruns = nruns};
	if (mapped) {
		g->memory = wq__map(GROUP_BYTES);
		if (!g->memory) {
			wq__free(r->allocator, g, group_bytes(nruns));
			return NULL;
		}
	}
	g->number = number_take(r);
	r->groups[g->number].group = g;
	for (uint32_t i = 0; i < nruns; i++) {
		g->run[i].first = g->number << WQ__GROUP_BITS | i << kinds[kind].shift;
		/* 0 is no id: the run that has it stays unused. */
		if (g->run[i].first)
			g->free[i / 64] |= UINT64_C(1) << i % 64;
	}
	group_open(p, g);
	p->ngroups++;
	return g;
}

static void group_free(wq__runs *r, struct wq__group *g)
{
	struct wq__run_pool *p = &r->pool[g->kind];

	group_close(p, g);
	p->ngroups--;
	number_free(r, g->number);
	if (g->memory)
		wq__unmap(g->memory, GROUP_BYTES);
	wq__free(r->allocator, g, group_bytes(g->nruns));
}

/* ---- runs -------------------------------------------------------------------- */

static struct wq__group *group_of(const wq__runs *r, const struct wq__run *d)
{
	return r->groups[d->first >> WQ__GROUP_BITS].group;
}

static void idle_add(wq__runs *r, struct wq__run_pool *p, struct wq__run *d)
{
	d->prev = 0;
	d->next = p->newest;
	if (p->newest)
		wq__run_of(r, p->newest)->prev = d->first;
	else
		p->oldest = d->first;
	p->newest = d->first;
	p->nidle++;
}

static void idle_remove(wq__runs *r, struct wq__run_pool *p, const struct wq__run *d)
{
	if (d->prev)
		wq__run_of(r, d->prev)->next = d->next;
	else
		p->newest = d->next;
	if (d->next)
		wq__run_of(r, d->next)->prev = d->prev;
	else
		p->oldest = d->prev;
	p->nidle--;
}

/* A free run gets memory. */
static struct wq__run *run_new(wq__runs *r, enum wq__run_kind kind)
{
	struct wq__run_pool *p = &r->pool[kind];
	struct wq__group *g = p->open ? p->open : group_new(r, kind);

	if (!g)
		return NULL;

	uint32_t word = g->free[0] ? 0 : 1;
	uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(g->free[word]);
	char *base = g->memory ? g->memory + (size_t)i * kinds[kind].bytes
	                       : wq__alloc(r->allocator, kinds[kind].bytes, 64);

	if (!base) {
		if (g->nowned == 0)
			group_free(r, g);
		return NULL;
	}
	g->free[word] &= g->free[word] - 1;
	g->nowned++;
	if (!g->free[0] && !g->free[1])
		group_close(p, g);
	run_place(r, &g->run[i], base, kind);
	return &g->run[i];
}

/* The memory of an idle run, which is in no list any more, goes back. */
static void run_free(wq__runs *r, struct wq__run *d)
{
	struct wq__group *g = group_of(r, d);
	uint32_t i = (uint32_t)(d - g->run);

	if (g->memory)
		wq__unmap_pages(d->base, kinds[g->kind].bytes);
	else
		wq__free(r->allocator, d->base, kinds[g->kind].bytes);
	if (!g->free[0] && !g->free[1])
		group_open(&r->pool[g->kind], g);
	g->free[i / 64] |= UINT64_C(1) << i % 64;
	if (--g->nowned == 0)
		group_free(r, g);
}

struct wq__run *wq__run_take(wq__runs *r, enum wq__run_kind kind)
{
	struct wq__run_pool *p = &r->pool[kind];
	struct wq__run *d;

	if (p->newest) {
		d = wq__run_of(r, p->newest);
		idle_remove(r, p, d);
	} else {
		d = run_new(r, kind);
	}
	if (d)
		p->nused++;
	return d;
}

/* Two at most go back: one for this run, one because the bound falls with the runs in use. */
void wq__run_give(wq__runs *r, struct wq__run *d)
{
	enum wq__run_kind kind = group_of(r, d)->kind;
	struct wq__run_pool *p = &r->pool[kind];

	assert(d->live == 0 && p->nused > 0);
	p->nused--;
	idle_add(r, p, d);
	for (int i = 0; i < 2 && p->nidle > kinds[kind].idle + p->nused / 8; i++) {
		struct wq__run *old = wq__run_of(r, p->oldest);

		idle_remove(r, p, old);
		run_free(r, old);
	}
}

/* ---- all of it --------------------------------------------------------------- */

void wq__runs_init(wq__runs *r, const wq_allocator *a)
{
	*r = (wq__runs){.limit = WQ__GROUPS_MAX, .allocator = a};
}

static void group_release(wq__runs *r, struct wq__group *g)
{
	for (uint32_t i = 0; i < g->nruns && !g->memory; i++)
		if (g->run[i].first && !(g->free[i / 64] >> i % 64 & 1))
			wq__free(r->allocator, g->run[i].base, kinds[g->kind].bytes);
	if (g->memory)
		wq__unmap(g->memory, GROUP_BYTES);
	wq__free(r->allocator, g, group_bytes(g->nruns));
}

void wq__runs_release(wq__runs *r)
{
	uint32_t cap = r->cap;

	for (uint32_t i = 0; i < r->ngroups; i++)
		if (!(r->groups[i].hole & 1))
			group_release(r, r->groups[i].group);
	wq__free(r->allocator, r->groups, cap * sizeof(union wq__group_slot));
	wq__free(r->allocator, r->base, places_bytes(cap));
	for (uint32_t i = 0; i < r->nold; i++)
		wq__free(r->allocator, r->old[i], places_bytes(1u << i));
	wq__free(r->allocator, r->later, places_bytes(next_cap(r)));
	wq__runs_init(r, r->allocator);
}
