/* See levels.h. */
#include "queue/levels.h"

#include <string.h>

#include "base/alloc.h"

/* Of a place of a level that does not age. */
enum { PLACE_BITS = 46 };

/* ---- tournaments ----------------------------------------------------------- */

/*
 * Who of 256 came first: win[i] is the winner below node i, whose children are 2i and 2i + 1; those
 * from 256 on are the players. Equal times: the lower level wins, as its key is older.
 */
struct wq__tournament {
	int64_t time[WQ__WIDTH]; /* INT64_MAX: nobody */
	uint8_t win[WQ__WIDTH];
};

static unsigned winner(const struct wq__tournament *t, unsigned node)
{
	return node >= WQ__WIDTH ? node - WQ__WIDTH : t->win[node];
}

static void enter(struct wq__tournament *t, unsigned player, int64_t time)
{
	t->time[player] = time;
	for (unsigned node = (player + WQ__WIDTH) / 2; node > 0; node /= 2) {
		unsigned a = winner(t, 2 * node), b = winner(t, 2 * node + 1);

		t->win[node] = (uint8_t)(t->time[b] < t->time[a] ? b : a);
	}
}

static void nobody(struct wq__tournament *t)
{
	for (unsigned i = 0; i < WQ__WIDTH; i++)
		t->time[i] = INT64_MAX;
	/* Any winner is right while nobody plays, but it has to stand below the node. */
	t->win[0] = 0;
	for (unsigned node = WQ__WIDTH - 1; node > 0; node--)
		t->win[node] = (uint8_t)winner(t, 2 * node);
}

/* ---- tables of 256 --------------------------------------------------------- */

static void set(uint64_t *bits, unsigned i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static void clear(uint64_t *bits, unsigned i)
{
	bits[i / 64] &= ~(1ull << i % 64);
}

static bool none(const uint64_t *bits)
{
	return (bits[0] | bits[1] | bits[2] | bits[3]) == 0;
}

static void *zeroed(const struct wq__levels_of *of, size_t size)
{
	void *p = wq__alloc(of->allocator, size, 8);

	if (p)
		memset(p, 0, size);
	return p;
}

static struct wq__tournament *new_tournament(const struct wq__levels_of *of)
{
	struct wq__tournament *t = wq__alloc(of->allocator, sizeof *t, 8);

	if (t)
		nobody(t);
	return t;
}

static struct wq__shelf *new_chunk(const struct wq__levels_of *of, int lowest)
{
	struct wq__shelf *c = zeroed(of, sizeof *c);

	if (!c)
		return NULL;
	if (of->aging_ns > 0 && !(c->ages = new_tournament(of))) {
		wq__free(of->allocator, c, sizeof *c);
		return NULL;
	}
	for (int i = 0; i < WQ__WIDTH; i++)
		c->line[i].level = lowest + i;
	return c;
}

static struct wq__levels_wide *new_wide(const struct wq__levels_of *of)
{
	struct wq__levels_wide *w = zeroed(of, sizeof *w);

	if (w && of->aging_ns > 0 && !(w->ages = new_tournament(of))) {
		wq__free(of->allocator, w, sizeof *w);
		return NULL;
	}
	return w;
}

static void free_wide(const struct wq__levels_of *of, struct wq__levels_wide *w)
{
	for (unsigned i = 0; i < WQ__WIDTH; i++) {
		if (!w->chunk[i])
			continue;
		wq__free(of->allocator, w->chunk[i]->ages, sizeof *w->chunk[i]->ages);
		wq__free(of->allocator, w->chunk[i], sizeof *w->chunk[i]);
	}
	wq__free(of->allocator, w->ages, sizeof *w->ages);
	wq__free(of->allocator, w, sizeof *w);
}

static bool reserve_wide(const struct wq__levels_of *of, struct wq__levels_wide *w, int level)
{
	unsigned i = wq__level_index(level);
	struct wq__shelf **c = &w->chunk[i / WQ__WIDTH];

	if (!*c)
		*c = new_chunk(of, level - (int)(i % WQ__WIDTH));
	return *c != NULL;
}

/* ---- lines ----------------------------------------------------------------- */

static int64_t place_of(const struct wq__levels_of *of, uint32_t id)
{
	return wq__link_at(of, id)->place >> 1;
}

/*
 * When one with that place came to its level, had it come to level 0 first. Of levels that do not
 * age: higher ones first, then older places, and all of it before the others. (Theirs are from
 * -2^61 on: 2^15 spans of 12 hours are less.)
 */
static int64_t arrival(const struct wq__levels_of *of, int level, int64_t place)
{
	if (!wq__levels_ages(of, level))
		return INT64_MIN + ((int64_t)(WQ_PRIORITY_MAX - level) << PLACE_BITS) + place;
	return place - level * of->aging_ns;
}

/* The line's first has changed, or is no more. */
void wq__levels_note(const struct wq__levels_of *of, struct wq__levels_wide *w,
                     const struct wq__line *line)
{
	unsigned i = wq__level_index(line->level), high = i / WQ__WIDTH, low = i % WQ__WIDTH;
	struct wq__shelf *c = w->chunk[high];

	if (line->head) {
		set(c->full, low);
		set(w->full, high);
	} else {
		clear(c->full, low);
		if (none(c->full))
			clear(w->full, high);
	}
	if (c->ages) {
		enter(c->ages, low,
		      line->head ? arrival(of, line->level, place_of(of, line->head)) : INT64_MAX);
		enter(w->ages, high, c->ages->time[c->ages->win[1]]);
	}
}

/* The few become many. */
static bool widen(const struct wq__levels_of *of, struct wq__levels *l, int level)
{
	struct wq__levels_wide *w = new_wide(of);
	bool good = w && reserve_wide(of, w, level);

	for (uint32_t i = 0; good && i < l->nfew; i++)
		good = reserve_wide(of, w, l->few[i].level);
	if (!good) {
		if (w)
			free_wide(of, w);
		return false;
	}
	l->wide = w;
	for (uint32_t i = 0; i < l->nfew; i++) {
		struct wq__line *line = wq__levels_line(l, l->few[i].level);

		*line = l->few[i];
		if (line->head)
			wq__levels_note(of, w, line);
	}
	return true;
}

static bool reserve(const struct wq__levels_of *of, struct wq__levels *l, int level)
{
	uint32_t at = l->nfew;

	if (l->wide)
		return reserve_wide(of, l->wide, level);
	if (l->nfew == WQ__FEW)
		return widen(of, l, level);
	for (; at > 0 && l->few[at - 1].level < level; at--)
		l->few[at] = l->few[at - 1];
	l->few[at] = (struct wq__line){.level = level};
	l->nfew++;
	return true;
}

bool wq__levels_reserve(const struct wq__levels_of *of, struct wq__levels *l, int level)
{
	return wq__likely(wq__levels_line(l, level) != NULL) || reserve(of, l, level);
}

/* Between its neighbours, of which each may be 0: none. */
static void link_between(const struct wq__levels_of *of, struct wq__line *line, uint32_t prev,
                         uint32_t id, uint32_t next)
{
	struct wq__link *e = wq__link_at(of, id);

	e->prev = prev;
	e->next = next;
	if (prev)
		wq__link_at(of, prev)->next = id;
	else
		line->head = id;
	if (next)
		wq__link_at(of, next)->prev = id;
	else
		line->tail = id;
	line->n++;
}

static void unlink(const struct wq__levels_of *of, struct wq__line *line, uint32_t id)
{
	const struct wq__link *e = wq__link_at(of, id);
	uint32_t prev = line->head == id ? 0 : e->prev;

	if (prev)
		wq__link_at(of, prev)->next = e->next;
	else
		line->head = e->next;
	if (e->next)
		wq__link_at(of, e->next)->prev = prev;
	else
		line->tail = prev;
	line->n--;
}

/* Who it is, as a value of the heap. */
static void *early_value(uint32_t id, int level)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not an address */
	return (void *)((uintptr_t)id << 16 | wq__level_index(level));
}

static uint32_t early_id(const void *value, int *level)
{
	*level = (int)((uintptr_t)value & 0xffff) + WQ_PRIORITY_MIN;
	return (uint32_t)((uintptr_t)value >> 16);
}

/* Far from the tail. False: no memory. */
static bool push_early(const struct wq__levels_of *of, struct wq__levels *l, int level, uint32_t id)
{
	struct wq__link *e = wq__link_at(of, id);
	wq_heap_elem elem;

	if (!l->early && wq_heap_new(&l->early, of->allocator) < 0)
		return false;
	if (wq_heap_add(l->early, arrival(of, level, e->place >> 1), early_value(id, level),
	                &elem) < 0)
		return false;
	*e = (struct wq__link){.next = elem.index, .prev = elem.generation, .place = e->place | 1};
	l->nearly++;
	return true;
}

static uint32_t before(const struct wq__levels_of *of, const struct wq__line *line, uint32_t id)
{
	return line->head == id ? 0 : wq__link_at(of, id)->prev;
}

/* Before the tail. True: it is early, and not in the line. */
static wq__cold bool push_between(const struct wq__levels_of *of, struct wq__levels *l,
                                  struct wq__line *line, uint32_t id)
{
	int64_t place = place_of(of, id);
	uint32_t next = line->tail, prev = before(of, line, next);

	for (int steps = 1; prev && place_of(of, prev) > place; steps++) {
		/* Without memory all the way. */
		if (steps == WQ__NEAR && push_early(of, l, line->level, id))
			return true;
		next = prev;
		prev = before(of, line, next);
	}
	link_between(of, line, prev, id, next);
	return false;
}

/* As the first of its level: no place is older. */
static void put_first(const struct wq__levels_of *of, const struct wq__levels *l,
                      const struct wq__line *line, struct wq__link *e)
{
	int64_t before = e->place >> 1, time;

	if (line->head && before > place_of(of, line->head))
		before = place_of(of, line->head);
	if (!wq__levels_ages(of, line->level)) {
		before = 0;
	} else if (l->nearly > 0) {
		/* No early one of this level, if there is any, came before the heap's first. */
		wq_heap_peek(l->early, &time, NULL);
		if (time < arrival(of, line->level, before))
			before = time > arrival(of, line->level, 0)
			             ? time + line->level * of->aging_ns
			             : 0;
	}
	e->place = 2 * before;
}

void wq__levels_push(const struct wq__levels_of *of, struct wq__levels *l, int level, uint32_t id,
                     enum wq_where where)
{
	struct wq__line *line = wq__levels_reserved(l, level);
	struct wq__link *e = wq__link_at(of, id);
	uint32_t head = line->head;

	e->place &= ~(int64_t)1;
	if (wq__unlikely(where == WQ_HEAD)) {
		put_first(of, l, line, e);
		link_between(of, line, 0, id, head);
	} else if (wq__likely(!line->tail || place_of(of, line->tail) <= e->place >> 1)) {
		link_between(of, line, line->tail, id, 0);
	} else if (push_between(of, l, line, id)) {
		return;
	}
	if (wq__unlikely(l->wide != NULL) && line->head != head)
		wq__levels_note(of, l->wide, line);
}

static wq__cold void remove_early(struct wq__levels *l, const struct wq__link *e)
{
	wq_heap_elem elem = {.heap = l->early, .index = e->next, .generation = e->prev};

	wq_heap_remove(l->early, elem, NULL);
	l->nearly--;
}

void wq__levels_remove(const struct wq__levels_of *of, struct wq__levels *l, int level, uint32_t id)
{
	struct wq__line *line = wq__levels_reserved(l, level);
	uint32_t head = line->head;

	if (wq__unlikely(wq__link_at(of, id)->place & 1)) {
		remove_early(l, wq__link_at(of, id));
		return;
	}
	unlink(of, line, id);
	if (wq__unlikely(l->wide != NULL) && line->head != head)
		wq__levels_note(of, l->wide, line);
}

static const struct wq__line *first_aged(const struct wq__levels_of *of, const struct wq__levels *l)
{
	const struct wq__line *best = NULL;
	int64_t time, best_time = 0;

	for (uint32_t i = 0; i < l->nfew; i++) {
		const struct wq__line *line = &l->few[i];

		if (line->n == 0)
			continue;
		if (!wq__levels_ages(of, line->level))
			return line;
		/* Equal times: the lower one, which is older. */
		time = arrival(of, line->level, place_of(of, line->head));
		if (!best || time <= best_time) {
			best = line;
			best_time = time;
		}
	}
	return best;
}

static const struct wq__line *first_aged_wide(const struct wq__levels_wide *w)
{
	unsigned high;

	if (none(w->full))
		return NULL;
	high = w->ages->win[1];
	return &w->chunk[high]->line[w->chunk[high]->ages->win[1]];
}

/* The first of the heap, if it goes before that of the line; else 0. */
static wq__cold uint32_t first_early(const struct wq__levels_of *of, const struct wq__levels *l,
                                     const struct wq__line *line, int *level)
{
	int64_t time, line_time;
	uint32_t id;
	void *first;

	wq_heap_peek(l->early, &time, &first);
	id = early_id(first, level);
	if (!line)
		return id;
	line_time = arrival(of, line->level, place_of(of, line->head));
	/* Equal times: as everywhere. */
	return time < line_time || (time == line_time && *level < line->level) ? id : 0;
}

uint32_t wq__levels_first(const struct wq__levels_of *of, const struct wq__levels *l, int *level)
{
	const struct wq__line *line = of->aging_ns == 0 ? wq__levels_top(l)
	                              : l->wide         ? first_aged_wide(l->wide)
	                                                : first_aged(of, l);
	uint32_t id = wq__unlikely(l->nearly > 0) ? first_early(of, l, line, level) : 0;

	if (id || !line)
		return id;
	*level = line->level;
	return line->head;
}

void wq__levels_count(struct wq__levels *l, int level, int by)
{
	wq__levels_reserved(l, level)->keys += (uint32_t)by;
}

const struct wq__line *wq__levels_below(const struct wq__levels *l, int level)
{
	if (!l->wide) {
		for (uint32_t i = 0; i < l->nfew; i++)
			if (l->few[i].level < level && l->few[i].keys > 0)
				return &l->few[i];
		return NULL;
	}
	for (unsigned i = wq__level_index(level); i-- > 0;) {
		const struct wq__shelf *c = l->wide->chunk[i / WQ__WIDTH];

		if (!c)
			i -= i % WQ__WIDTH;
		else if (c->line[i % WQ__WIDTH].keys > 0)
			return &c->line[i % WQ__WIDTH];
	}
	return NULL;
}

void wq__levels_release(const struct wq__levels_of *of, struct wq__levels *l)
{
	if (l->wide)
		free_wide(of, l->wide);
	if (l->early)
		wq_heap_free(l->early);
}
