/*
 * Runs: the pieces of memory from which the slab cuts objects.
 *
 *   kind  | bytes   | runs in a group | kept while idle
 *   ------+---------+-----------------+------------------------------
 *   small | 16 KiB  | 128             | 16 runs and 1/8 of those in use
 *   large | 128 KiB | 16              | 4 runs and 1/8 of those in use
 *
 * An id is 32 bits: bytes are numbered in units of 8. A group is 2 MiB of ids
 * (2^18), all of one kind, with a descriptor for each run. There are at most
 * 2^14 groups: 32 GiB in one slab.
 *
 * A run is in use, idle (empty, still with its memory) or free (without). A new
 * run is the one that became idle last; the one that has been idle longest is
 * given back, at most two for each that becomes idle. So giving back is never
 * long work, and who takes and gives a few runs in turn makes no system call.
 *
 *   where the memory comes from | taken                | given back
 *   ----------------------------+----------------------+--------------------
 *   the default allocator       | group by group: 2 MiB| run by run: its pages
 *                               | of address space     | go back to the kernel
 *   its first group of a kind,  | run by run           | run by run
 *   any other allocator         |                      |
 *
 * The caller serialises all calls but wq__runs_at().
 */
#ifndef WQ_BASE_RUNS_H
#define WQ_BASE_RUNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

enum wq__run_kind { WQ__RUN_SMALL, WQ__RUN_LARGE, WQ__RUN_KINDS };

enum {
	WQ__RUN_SMALL_BYTES = 16 << 10,
	WQ__RUN_LARGE_BYTES = 128 << 10,
	WQ__UNIT_BITS = 11, /* ids of a small run; where an id is found is kept for each of these */
	WQ__GROUP_BITS = 18, /* ids of a group */
	WQ__GROUPS_MAX = 1 << (32 - WQ__GROUP_BITS),
	WQ__NUMBERS_OLD = 32 - WQ__GROUP_BITS,
	WQ__RUN_NONE = 0xffff, /* no offset */
};

/* Offsets are in units of 8 bytes, from the beginning of the run. */
struct wq__run {
	char *base;
	uint32_t first;      /* id of its offset 0 */
	uint32_t next, prev; /* neighbours in a list, by their `first`; 0: none */
	uint16_t freed;      /* the last freed object; each names the one before; or NONE */
	uint16_t fresh;      /* the part that was never used */
	uint16_t end;        /* where the last object ends */
	uint16_t live;       /* objects in use */
	uint16_t unit;       /* of one object */
	uint8_t class;
	uint8_t flags; /* the slab's */
};

struct wq__group {
	uint32_t number; /* I */
	enum wq__run_kind kind;
	uint32_t nruns;                /* I */
	uint32_t nowned;               /* runs that are not free */
	char *memory;                  /* I: of all its runs; NULL: each has its own */
	uint64_t free[2];              /* a bit for each run */
	struct wq__group *next, *prev; /* of its kind, while a run of it is free */
	_Alignas(32) struct wq__run run[];
};

/* A number that no group has names the next such number + 1, shifted and made odd. */
union wq__group_slot {
	struct wq__group *group;
	uintptr_t hole;
};

struct wq__run_pool {
	struct wq__group *open;  /* groups with a free run */
	uint32_t newest, oldest; /* idle runs */
	uint32_t nidle, nused;
	uint32_t ngroups;
};

typedef struct wq__runs {
	/*
	 * By id >> UNIT_BITS: where those ids begin. A thread that was told an id may look it up
	 * beside the caller; so a table that was replaced stays, in `old`, to the end.
	 */
	_Atomic(char **) base;
	struct wq__run **run; /* in the same piece of memory: whose they are */
	union wq__group_slot *groups;
	uint32_t cap;     /* all have room for so many groups */
	uint32_t ngroups; /* entries of groups[] in use, holes included */
	uint32_t hole;    /* the first hole's number + 1; 0: none */
	uint32_t limit;   /* at most so many groups; WQ__GROUPS_MAX but for tests */
	char **later;     /* follows base (and run), twice as large; or NULL */
	uint32_t ncopied; /* groups that it knows */
	uint32_t nold;
	char **old[WQ__NUMBERS_OLD]; /* of 1, 2, 4 ... groups */
	struct wq__run_pool pool[WQ__RUN_KINDS];
	const wq_allocator *allocator;
} wq__runs;

void wq__runs_init(wq__runs *r, const wq_allocator *a);
void wq__runs_release(wq__runs *r);

/* A run with memory; only base and first are set. NULL: no memory, or no number is left. */
struct wq__run *wq__run_take(wq__runs *r, enum wq__run_kind kind);
/* It is empty, and in no list. */
void wq__run_give(wq__runs *r, struct wq__run *d);

static inline void *wq__runs_at(const wq__runs *r, uint32_t id)
{
	/* acquire: pairs with the release in numbers_grow() */
	char **base = atomic_load_explicit(&r->base, memory_order_acquire);

	return base[id >> WQ__UNIT_BITS] + (size_t)(id & ((1u << WQ__UNIT_BITS) - 1)) * 8;
}

/* The run that an id lies in. */
static inline struct wq__run *wq__run_of(const wq__runs *r, uint32_t id)
{
	return r->run[id >> WQ__UNIT_BITS];
}

#endif
