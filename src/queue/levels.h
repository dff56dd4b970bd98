/*
 * Lines by level: of keys by priority, or of groups by the priority of their first key. The
 * highest level that is not empty goes first; with aging, the one whose first has come to its
 * level before all others (wq/priority.h).
 *
 * What stands in a line begins with a wq__link and has an id of the slab. A few levels stand in a
 * small array. More stand in two tables of 256, by the two bytes of the level, with a bit for each
 * line that is not empty; with aging there is a tournament over each table instead.
 *
 * Inside a line the place counts: a number that grows with time (on a level that ages: the time
 * itself). Most go to the tail, with a greater place than all others. One that comes with an older
 * place is put where it belongs; if that is far from the tail, into a heap beside the lines
 * (`early`).
 *
 * A level has to be reserved before the first push. It stays reserved, so that a push never fails.
 */
#ifndef WQ_QUEUE_LEVELS_H
#define WQ_QUEUE_LEVELS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <wq/heap.h>
#include <wq/order.h>
#include <wq/types.h>

#include "base/compiler.h"
#include "base/slab.h"

/* So far from the tail an old place is looked for; tests make it near. */
#if !defined(WQ__NEAR) && defined(WQ_SIM)
#define WQ__NEAR 1
#elif !defined(WQ__NEAR)
#define WQ__NEAR 16
#endif

enum {
#ifdef WQ_SIM
	WQ__FEW = 2, /* few keys use both forms */
#else
	WQ__FEW = 8,
#endif
	WQ__WIDTH = 256, /* of a table */
};

struct wq__link {
	uint32_t next, prev; /* ids; 0: none; the first one's prev is anything. Early: a handle */
	int64_t place;       /* times 2; + 1: early */
};

struct wq__line {
	uint32_t head, tail; /* ids; 0: none */
	uint32_t n;          /* of what stands in line */
	uint32_t keys;       /* of what is queued: keys, where groups are in line */
	int32_t level;
};

struct wq__tournament;

struct wq__shelf {
	uint64_t full[WQ__WIDTH / 64]; /* lines that are not empty */
	struct wq__tournament *ages;   /* NULL without aging */
	struct wq__line line[WQ__WIDTH];
};

struct wq__levels_wide {
	uint64_t full[WQ__WIDTH / 64]; /* chunks that are not empty */
	struct wq__tournament *ages;
	struct wq__shelf *chunk[WQ__WIDTH]; /* NULL: no level of it is reserved */
};

struct wq__levels {
	uint32_t nfew;                /* levels in few */
	struct wq__line few[WQ__FEW]; /* the highest first */
	struct wq__levels_wide *wide; /* NULL: the few are all there is */
	wq_heap *early;               /* NULL: there was none yet */
	uint32_t nearly;
};

/* What all lines of a queue have in common. */
struct wq__levels_of {
	const wq__slab *slab;
	const wq_allocator *allocator;
	int64_t aging_ns; /* 0: no aging */
	int32_t aging_max;
};

/* Does a key of that level rise with time? Then its place is a time < 2^62; else a number. */
static inline bool wq__levels_ages(const struct wq__levels_of *of, int level)
{
	return of->aging_ns > 0 && level <= of->aging_max;
}

/* False: no memory, nothing has changed. */
bool wq__levels_reserve(const struct wq__levels_of *of, struct wq__levels *l, int level);

/* The level was reserved. WQ_TAIL: by its place, which is mostly the tail; WQ_HEAD: first. */
void wq__levels_push(const struct wq__levels_of *of, struct wq__levels *l, int level, uint32_t id,
                     enum wq_where where);

/* It is in the line of that level. */
void wq__levels_remove(const struct wq__levels_of *of, struct wq__levels *l, int level,
                       uint32_t id);

/* Who goes first, and of which level; 0: nobody is there. */
uint32_t wq__levels_first(const struct wq__levels_of *of, const struct wq__levels *l, int *level);

/* So many more keys are queued on that level, which was reserved, or fewer. */
void wq__levels_count(struct wq__levels *l, int level, int by);

/* The next lower level with queued keys; NULL: none. It looks at every level in between. */
const struct wq__line *wq__levels_below(const struct wq__levels *l, int level);

/* The line's first has changed, or is no more. */
void wq__levels_note(const struct wq__levels_of *of, struct wq__levels_wide *w,
                     const struct wq__line *line);

void wq__levels_release(const struct wq__levels_of *of, struct wq__levels *l);

/* ---- the common case, inline ----------------------------------------------- */

/* A level from 0 on: its chunk is the high byte. */
static inline unsigned wq__level_index(int level)
{
	return (unsigned)(level - WQ_PRIORITY_MIN);
}

static inline struct wq__link *wq__link_at(const struct wq__levels_of *of, uint32_t id)
{
	return wq__slab_at(of->slab, id);
}

/* Some bit is set: the highest. */
static inline unsigned wq__highest(const uint64_t *bits)
{
	unsigned word = WQ__WIDTH / 64 - 1;

	while (bits[word] == 0)
		word--;
	return word * 64 + 63 - (unsigned)__builtin_clzll(bits[word]);
}

/* The line of that level; NULL: it is not reserved. */
static inline struct wq__line *wq__levels_line(struct wq__levels *l, int level)
{
	if (wq__unlikely(l->wide != NULL)) {
		unsigned i = wq__level_index(level);
		struct wq__shelf *c = l->wide->chunk[i / WQ__WIDTH];

		return c ? &c->line[i % WQ__WIDTH] : NULL;
	}
	for (uint32_t i = 0; i < l->nfew; i++)
		if (l->few[i].level == level)
			return &l->few[i];
	return NULL;
}

/* The same of a level that is. */
static inline struct wq__line *wq__levels_reserved(struct wq__levels *l, int level)
{
	struct wq__line *line = wq__levels_line(l, level);

	assert(line);
	return line;
}

/* The highest line that is not empty; NULL: all are. Without aging, and none is early. */
static inline const struct wq__line *wq__levels_top(const struct wq__levels *l)
{
	const struct wq__levels_wide *w = l->wide;

	if (wq__unlikely(w != NULL)) {
		if ((w->full[0] | w->full[1] | w->full[2] | w->full[3]) == 0)
			return NULL;

		const struct wq__shelf *c = w->chunk[wq__highest(w->full)];

		return &c->line[wq__highest(c->full)];
	}
	for (uint32_t i = 0; i < l->nfew; i++)
		if (l->few[i].head)
			return &l->few[i];
	return NULL;
}

/* To the tail, with a place that is greater than all others. */
static inline void wq__line_append(const struct wq__levels_of *of, struct wq__levels *l,
                                   struct wq__line *line, uint32_t id, struct wq__link *e,
                                   int64_t place)
{
	e->next = 0;
	e->prev = line->tail;
	e->place = 2 * place;
	if (line->tail)
		wq__link_at(of, line->tail)->next = id;
	else
		line->head = id;
	line->tail = id;
	line->n++;
	if (wq__unlikely(l->wide != NULL) && line->head == id)
		wq__levels_note(of, l->wide, line);
}

/* The first of the line leaves it. */
static inline void wq__line_shift(const struct wq__levels_of *of, struct wq__levels *l,
                                  struct wq__line *line, const struct wq__link *e)
{
	line->head = e->next;
	if (!e->next)
		line->tail = 0;
	line->n--;
	if (wq__unlikely(l->wide != NULL) && (!e->next || of->aging_ns > 0))
		wq__levels_note(of, l->wide, line);
}

#endif
