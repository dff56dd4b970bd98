/* See rank.h. */
#include "queue/rank.h"

#include <string.h>

#include "base/fail.h"
#include "queue/memory.h"

static struct wq__keygroup *group_at(const struct wq__memory *m, uint32_t id)
{
	return wq__slab_at(&m->slab, id);
}

enum { IDLE_MAX = 1024 }; /* groups without keys, kept because they may come again */

/* ---- groups --------------------------------------------------------------- */

/*
 * From one token to the next. A bucket that takes more than 73 years to fill does so in 73: times
 * stay far from the end of all times.
 */
static int64_t token_ns(double rate, uint32_t burst)
{
	int64_t longest = INT64_MAX / 4 / burst;
	double ns = 1e9 / rate + 0.5;

	return ns < (double)longest ? (int64_t)ns : longest;
}

static void set_settings(struct wq__keygroup *g, const wq_group_settings *s)
{
	uint32_t burst = s->burst > 0 ? s->burst : 1;

	g->limit = s->limit;
	g->weight = s->weight > 0 ? s->weight : 1;
	g->token_ns = s->rate > 0 ? token_ns(s->rate, burst) : 0;
	g->slack_ns = g->token_ns * (burst - 1);
}

static bool settings_good(const wq_group_settings *s)
{
	return wq__rate_good(s->rate) && s->reserved0 == 0 &&
	       (s->reserved[0] | s->reserved[1]) == 0;
}

static wq__forced uint32_t find_group(const struct wq__memory *m, uint32_t hash, const wq_key *name,
                                      wq__place *at)
{
	wq__probe p = wq__table_probe(&m->rank->groups, hash);
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		const struct wq__keygroup *g = group_at(m, id);

		if (g->len == name->len && (g->len == 0 || memcmp(g->name, name->key, g->len) == 0))
			return id;
	}
	*at = wq__probe_end(&p);
	return 0;
}

/* When the first sleeper wakes has changed, perhaps. */
static void look_ahead(struct wq__memory *m)
{
	int64_t wake = WQ_NEVER;

	wq_heap_peek(m->rank->sleepers, &wake, NULL);
	if (wake == m->rank->wake_ns)
		return;
	m->rank->wake_ns = wake;
	if (wake == WQ_NEVER)
		m->flags &= ~(uint32_t)WQ__PACED;
	else
		m->flags |= WQ__PACED;
	if (m->flags & WQ__FD)
		wq__fd_due(m);
}

static void sleep_until(struct wq__memory *m, struct wq__keygroup *g, int64_t time)
{
	wq_heap_update(m->rank->sleepers, g->sleep, time);
	look_ahead(m);
}

static uint32_t new_group(struct wq__memory *m, uint32_t hash, const wq_key *name, wq__place at)
{
	struct wq__rank *r = m->rank;
	wq_group_settings s = r->settings;
	struct wq__keygroup *g;
	uint32_t id;

	g = wq__slab_alloc(&m->slab, offsetof(struct wq__keygroup, name) + name->len + 1, &id);
	if (!g)
		return 0;
	memset(g, 0, offsetof(struct wq__keygroup, name));
	g->hash = hash;
	g->len = (uint32_t)name->len;
	if (name->len > 0)
		memcpy(g->name, name->key, name->len);
	g->name[name->len] = '\0';
	if (r->setup) {
		r->setup(r->setup_ctx, &(wq_key){.key = g->name, .len = g->len}, &s);
		if (!settings_good(&s))
			s = r->settings;
	}
	set_settings(g, &s);
	if (wq__table_insert(&r->groups, at, (uint64_t)hash << 32 | id) < 0)
		goto no_place;
	if (g->token_ns > 0 && wq_heap_add(r->sleepers, WQ_NEVER, g, &g->sleep) < 0)
		goto no_sleep;
	return id;
no_sleep:
	wq__table_remove(&r->groups, (uint64_t)hash << 32 | id);
no_place:
	wq__slab_free(&m->slab, id);
	return 0;
}

static void free_group(struct wq__memory *m, struct wq__keygroup *g, uint32_t id)
{
	if (g->token_ns > 0) {
		wq_heap_remove(m->rank->sleepers, g->sleep, NULL);
		look_ahead(m);
	}
	wq__levels_release(&m->rank->of, &g->levels);
	wq__table_remove(&m->rank->groups, (uint64_t)g->hash << 32 | id);
	wq__slab_free(&m->slab, id);
}

/* Has it a token? If not, it sleeps until it has. */
static void pace(struct wq__memory *m, struct wq__keygroup *g, int64_t now)
{
	int64_t start = g->full_ns - g->slack_ns;

	g->asleep = now < start && !WQ__BUG(GROUP_NO_PACE);
	sleep_until(m, g, g->asleep ? start : WQ_NEVER);
}

/* As a place: one bit is not the time's. Times from the year 146 of the clock on are equal. */
static int64_t time_as_place(int64_t time)
{
	return time < INT64_MAX / 2 ? time : INT64_MAX / 2;
}

/*
 * Places grow. On a level that ages they are times, and then the order inside equal ones is that
 * of pushes.
 */
static int64_t next_place(struct wq__memory *m, int level)
{
	struct wq__rank *r = m->rank;

	if (wq__likely(!wq__levels_ages(&r->of, level)))
		return ++r->places;
	return time_as_place(r->due_ns >= 0 ? r->due_ns : wq__now(m));
}

/* Of a group, whose first key is of that level. */
static int64_t place_of_group(struct wq__memory *m, const struct wq__keygroup *g, uint32_t first,
                              int level)
{
	int64_t since;

	if (!wq__levels_ages(&m->rank->of, level))
		return next_place(m, level);
	since = wq__entry_at(m, first)->u.line.place >> 1;
	return since > g->turned_ns ? since : g->turned_ns;
}

/* Does it stand where it belongs? On a level that ages that may change with its first key. */
static bool in_place(struct wq__memory *m, const struct wq__keygroup *g, uint32_t first, int level)
{
	return level == g->level && (!wq__levels_ages(&m->rank->of, level) || g->turns > 0 ||
	                             g->link.place >> 1 == place_of_group(m, g, first, level));
}

/*
 * How many keys of the group may start, and its place among the others. turn_over: it has had its
 * turn, and goes behind those of its level.
 */
static void regroup(struct wq__memory *m, struct wq__keygroup *g, uint32_t id, bool turn_over)
{
	struct wq__rank *r = m->rank;
	uint32_t limit = g->limit == 0 ? UINT32_MAX : g->limit + WQ__BUG(GROUP_TOO_MANY);
	uint32_t places = limit > g->running ? limit - g->running : 0;
	uint32_t ready = g->asleep ? 0 : g->queued < places ? g->queued : places;
	uint32_t first = 0;
	int level = 0;

	/* One token may be all that there is. */
	if (g->token_ns > 0 && ready > 1)
		ready = 1;
	m->nready += ready - g->ready;
	m->nblocked -= ready - g->ready;
	g->ready = ready;
	if (ready > 0)
		first = wq__levels_first(&r->of, &g->levels, &level);
	if (g->in_line && first && in_place(m, g, first, level) && !turn_over)
		return;
	if (g->in_line)
		wq__levels_remove(&r->of, &r->levels, g->level, id);
	g->in_line = first != 0;
	g->turns = 0;
	if (!first)
		return;
	g->level = level;
	g->link.place = 2 * place_of_group(m, g, first, level);
	wq__levels_push(&r->of, &r->levels, g->level, id, WQ_TAIL);
}

/* ---- groups without keys --------------------------------------------------- */

/*
 * A group that loses its last key is listed, and stays in the list when it has keys again. Of more
 * than a thousand the first leaves the list, and is gone if it has no keys.
 */
static void list_idle(struct wq__memory *m, struct wq__keygroup *g, uint32_t id)
{
	struct wq__rank *r = m->rank;

	g->listed = true;
	g->next_listed = 0;
	if (r->listed_tail)
		group_at(m, r->listed_tail)->next_listed = id;
	else
		r->listed_head = id;
	r->listed_tail = id;
	if (++r->nlisted <= IDLE_MAX)
		return;

	uint32_t oldest = r->listed_head;
	struct wq__keygroup *o = group_at(m, oldest);

	r->listed_head = o->next_listed;
	r->nlisted--;
	o->listed = false;
	/* One whose bucket is not full sleeps until it is. */
	if (o->refs == 0 && (o->token_ns == 0 || wq__now(m) >= o->full_ns))
		free_group(m, o, oldest);
}

void wq__group_use(struct wq__memory *m, uint32_t group)
{
	if (group && group_at(m, group)->refs++ == 0)
		m->rank->ngroups++;
}

void wq__group_drop(struct wq__memory *m, uint32_t group)
{
	struct wq__keygroup *g;

	if (!group)
		return;
	g = group_at(m, group);
	if (--g->refs > 0)
		return;
	m->rank->ngroups--;
	/* All lines are empty: tables of many levels are made again when they are needed. */
	if (g->levels.wide || g->levels.early) {
		wq__levels_release(&m->rank->of, &g->levels);
		g->levels = (struct wq__levels){.nfew = 0};
	}
	/* A bucket that is not full is not forgotten. */
	if (g->token_ns > 0 && wq__now(m) < g->full_ns)
		sleep_until(m, g, g->full_ns);
	else if (!g->listed)
		list_idle(m, g, group);
}

void wq__group_done(struct wq__memory *m, uint32_t group)
{
	struct wq__keygroup *g = group_at(m, group);

	g->running--;
	if (g->queued > 0 && !WQ__BUG(GROUP_STAYS_FULL))
		regroup(m, g, group, false);
	wq__group_drop(m, group);
}

void wq__group_name(const struct wq__memory *m, uint32_t group, wq_key *name)
{
	*name = (wq_key){0};
	if (group)
		*name = (wq_key){.key = group_at(m, group)->name, .len = group_at(m, group)->len};
}

/* ---- life ----------------------------------------------------------------- */

int wq__rank_open(struct wq__memory *m, const wq_options *o)
{
	struct wq__rank *r = wq__alloc(&m->allocator, sizeof *r, 8);

	if (!r)
		return wq__fail_memory();
	*r = (struct wq__rank){
	    .of = {.slab = &m->slab,
	           .allocator = &m->allocator,
	           .aging_ns = o->aging_ns,
	           .aging_max = o->aging_max ? o->aging_max : WQ_PRIORITY_MAX},
	    .grouped = o->group != NULL,
	    /* With aging a place is a time, and what waits does not age. */
	    .keeps_places = o->priorities && o->aging_ns == 0,
	    .wake_ns = WQ_NEVER,
	    .due_ns = -1,
	    .group = o->group,
	    .group_ctx = o->group_ctx,
	    .settings = {.limit = o->group_limit, .rate = o->group_rate, .burst = o->group_burst},
	    .setup = o->group_setup,
	    .setup_ctx = o->setup_ctx,
	};
	m->rank = r;
	m->flags |= WQ__RANKED;
	/* Level 0 is of the few: no memory is needed. */
	wq__levels_reserve(&r->of, &r->levels, 0);
	if (!r->grouped)
		return WQ_OK;
	if (wq__table_init(&r->groups, &m->slab, &m->allocator) < 0)
		goto no_table;
	if (wq_heap_new(&r->sleepers, &m->allocator) < 0)
		goto no_heap;
	return WQ_OK;
no_heap:
	wq__table_release(&r->groups);
no_table:
	wq__free(&m->allocator, r, sizeof *r);
	m->rank = NULL;
	return wq__fail_memory();
}

void wq__rank_close(struct wq__memory *m)
{
	struct wq__rank *r = m->rank;
	uint64_t slot;

	if (!r)
		return;
	if (r->grouped) {
		wq__iter it = wq__table_iter(&r->groups, 0);

		while ((slot = wq__iter_next(&it)) != 0)
			wq__levels_release(&r->of, &group_at(m, (uint32_t)slot)->levels);
		wq_heap_free(r->sleepers);
		wq__table_release(&r->groups);
	}
	wq__levels_release(&r->of, &r->levels);
	wq__free(&m->allocator, r, sizeof *r);
}

int wq__rank_prepare(struct wq__memory *m, const wq_key *name, int priority, uint32_t *group)
{
	struct wq__rank *r = m->rank;
	struct wq__keygroup *g;
	wq__place at;
	uint32_t hash;

	*group = 0;
	if (!wq__levels_reserve(&r->of, &r->levels, priority))
		return WQ_ENOMEM;
	r->used |= priority != 0;
	if (!r->grouped)
		return WQ_OK;
	hash = wq__hash_of(m, name->key, name->len);
	*group = find_group(m, hash, name, &at);
	if (!*group)
		*group = new_group(m, hash, name, at);
	if (!*group)
		return WQ_ENOMEM;
	g = group_at(m, *group);
	/* It may only have waited for its bucket to be full. */
	if (g->refs == 0 && g->token_ns > 0)
		pace(m, g, wq__now(m));
	wq__group_use(m, *group);
	if (!wq__levels_reserve(&r->of, &g->levels, priority)) {
		wq__group_drop(m, *group);
		return WQ_ENOMEM;
	}
	return WQ_OK;
}

uint32_t wq__rank_find(const struct wq__memory *m, uint32_t hash, const wq_key *name)
{
	wq__place at;

	return find_group(m, hash, name, &at);
}

void wq__group_push(struct wq__memory *m, struct wq__keygroup *g, uint32_t group,
                    struct wq__line *line, uint32_t id, struct wq__link *e)
{
	struct wq__rank *r = m->rank;

	r->ngroups += g->refs++ == 0;
	wq__line_append(&r->of, &g->levels, line, id, e, ++r->places);
	g->queued++;
	if (g->queued > 1 || g->token_ns > 0 || (g->limit > 0 && g->running >= g->limit)) {
		m->nblocked++;
		regroup(m, g, group, false);
		return;
	}
	/* Its only key, which may start. */
	m->nready++;
	g->ready = 1;
	g->in_line = true;
	g->turns = 0;
	g->level = line->level;
	wq__line_append(&r->of, &r->levels, wq__levels_line(&r->levels, line->level), group,
	                &g->link, ++r->places);
}

bool wq__rank_reserve(struct wq__memory *m, struct wq__entry *e, uint32_t group, int priority)
{
	uint32_t own = wq__standing_of(m, e)->group;

	return wq__likely(own == group) ||
	       wq__levels_reserve(&m->rank->of, &group_at(m, own)->levels, priority);
}

/* ---- the line ------------------------------------------------------------- */

void wq__rank_place(struct wq__memory *m, struct wq__entry *e)
{
	e->u.line.place = 2 * next_place(m, wq__standing_of(m, e)->priority);
}

void wq__rank_push(struct wq__memory *m, struct wq__entry *e, uint32_t id, enum wq_where where)
{
	struct wq__rank *r = m->rank;
	const struct wq__standing *s = wq__standing_of(m, e);

	if (!r->keep)
		e->u.line.place = 2 * next_place(m, s->priority);
	wq__levels_count(&r->levels, s->priority, 1);
	if (!r->grouped) {
		m->nready++;
		wq__levels_push(&r->of, &r->levels, s->priority, id, where);
		return;
	}

	struct wq__keygroup *g = group_at(m, s->group);

	wq__levels_push(&r->of, &g->levels, s->priority, id, where);
	g->queued++;
	m->nblocked++;
	regroup(m, g, s->group, false);
}

void wq__rank_remove(struct wq__memory *m, struct wq__entry *e, uint32_t id)
{
	struct wq__rank *r = m->rank;
	const struct wq__standing *s = wq__standing_of(m, e);

	wq__levels_count(&r->levels, s->priority, -1);
	if (!r->grouped) {
		m->nready--;
		wq__levels_remove(&r->of, &r->levels, s->priority, id);
		return;
	}

	struct wq__keygroup *g = group_at(m, s->group);

	wq__levels_remove(&r->of, &g->levels, s->priority, id);
	g->queued--;
	m->nblocked--;
	regroup(m, g, s->group, false);
	if (wq__unlikely(m->flags & WQ__SHUT))
		wq__line_shrinks(m);
}

/*
 * It may have risen so high by itself that its place on the new level is before the tail, as if
 * it had come there by aging: nobody who was behind it goes before it.
 */
static bool aged_place(struct wq__memory *m, struct wq__entry *e, int priority)
{
	const struct wq__levels_of *of = &m->rank->of;
	int64_t higher = priority - wq__standing_of(m, e)->priority;
	int64_t since = e->u.line.place >> 1;

	if (!wq__levels_ages(of, priority))
		return false;
	since += higher * of->aging_ns;
	if (since >= next_place(m, priority))
		return false;
	e->u.line.place = 2 * since;
	return true;
}

void wq__rank_raise(struct wq__memory *m, struct wq__entry *e, uint32_t id, int priority)
{
	wq__rank_remove(m, e, id);
	if (WQ__BUG(RAISE_DROPS))
		return;
	m->rank->keep = aged_place(m, e, priority);
	wq__standing_of(m, e)->priority = (int16_t)priority;
	wq__rank_push(m, e, id, WQ_TAIL);
	m->rank->keep = false;
}

/* Who goes first, and the line that it may stand in. */
static inline uint32_t first_of(const struct wq__rank *r, struct wq__levels *l,
                                struct wq__line **line)
{
	int level;
	uint32_t id;

	if (wq__likely(r->of.aging_ns == 0 && l->nearly == 0)) {
		*line = (struct wq__line *)wq__levels_top(l);
		assert(*line);
		return (*line)->head;
	}
	id = wq__levels_first(&r->of, l, &level);
	*line = wq__levels_reserved(l, level);
	return id;
}

static inline void leave_line(const struct wq__rank *r, struct wq__levels *l, struct wq__line *line,
                              uint32_t id)
{
	if (wq__likely(line->head == id))
		wq__line_shift(&r->of, l, line, wq__link_at(&r->of, id));
	else
		wq__levels_remove(&r->of, l, line->level, id);
}

/* The first key of the group, which stands first in `others`, is held from now on. */
static uint32_t start_one(struct wq__memory *m, uint32_t group, struct wq__line *others)
{
	struct wq__rank *r = m->rank;
	struct wq__keygroup *g = group_at(m, group);
	bool turn_over = ++g->turns >= g->weight;
	struct wq__line *line;
	uint32_t id = first_of(r, &g->levels, &line);

	if (wq__likely(line->level == others->level))
		others->keys--;
	else
		wq__levels_count(&r->levels, line->level, -1);
	leave_line(r, &g->levels, line, id);
	g->queued--;
	g->running++;
	if (g->queued == 0 && g->token_ns == 0) {
		m->nready -= g->ready;
		g->ready = 0;
		g->in_line = false;
		leave_line(r, &r->levels, others, group);
		if (r->of.aging_ns > 0)
			g->turned_ns = time_as_place(wq__now(m));
		return id;
	}
	m->nblocked--;
	if (g->token_ns > 0) {
		int64_t now = wq__now(m);

		g->full_ns = wq_time_add(g->full_ns > now ? g->full_ns : now, g->token_ns);
		pace(m, g, now);
	}
	if (r->of.aging_ns > 0 && turn_over)
		g->turned_ns = time_as_place(wq__now(m));
	regroup(m, g, group, turn_over && !WQ__BUG(GROUP_NO_TURNS));
	return id;
}

uint32_t wq__rank_pop(struct wq__memory *m)
{
	struct wq__rank *r = m->rank;
	struct wq__line *line;
	uint32_t id = first_of(r, &r->levels, &line);

	if (r->grouped) {
		id = start_one(m, id, line);
		if (wq__unlikely(m->flags & WQ__SHUT))
			wq__line_shrinks(m);
		return id;
	}
	m->nready--;
	line->keys--;
	leave_line(r, &r->levels, line, id);
	return id;
}

uint32_t wq__rank_first(const struct wq__memory *m)
{
	const struct wq__rank *r = m->rank;
	int level;
	uint32_t id = wq__levels_first(&r->of, &r->levels, &level);

	return r->grouped ? wq__levels_first(&r->of, &group_at(m, id)->levels, &level) : id;
}

void wq__rank_hold(struct wq__memory *m, struct wq__entry *e, int by)
{
	uint32_t group = wq__standing_of(m, e)->group;

	if (!group)
		return;
	group_at(m, group)->running += (uint32_t)by;
	if (!WQ__BUG(GROUP_STAYS_FULL))
		regroup(m, group_at(m, group), group, false);
	if (m->nready > 0 && m->flags & WQ__FD)
		wq__fd_signal(m);
}

void wq__rank_give_back(struct wq__memory *m, struct wq__entry *e)
{
	uint32_t group = wq__standing_of(m, e)->group;
	struct wq__keygroup *g = group ? group_at(m, group) : NULL;

	if (!g || g->token_ns == 0)
		return;
	g->full_ns -= g->token_ns;
	pace(m, g, wq__now(m));
}

void wq__rank_wake(struct wq__memory *m, int64_t before)
{
	struct wq__rank *r = m->rank;
	size_t most = wq__per_hold(WQ__HOLD_MAX);
	int64_t now = wq__now(m);

	for (size_t i = 0; i < most && r->wake_ns <= now && r->wake_ns < before; i++) {
		struct wq__keygroup *g;
		void *first;
		wq__place at;

		wq_heap_peek(r->sleepers, NULL, &first);
		g = first;

		uint32_t id = find_group(m, g->hash, &(wq_key){.key = g->name, .len = g->len}, &at);

		if (g->refs == 0) {
			sleep_until(m, g, WQ_NEVER);
			if (!g->listed)
				list_idle(m, g, id);
			continue;
		}
		pace(m, g, now);
		if (!WQ__BUG(GROUP_TOKEN_LOST))
			regroup(m, g, id, false);
	}
	if (m->nready > 0 && m->flags & WQ__FD)
		wq__fd_signal(m);
}

/* ---- looking -------------------------------------------------------------- */

static uint64_t weight_of(const wq_group_sample *s)
{
	return s->queued + s->running;
}

/* Among the busiest, if it is one. */
static void compare_group(const struct wq__keygroup *g, wq_snapshot *out)
{
	wq_group_sample s = {.len = g->len, .queued = g->queued, .running = g->running};
	size_t n = g->len < sizeof s.name ? g->len : sizeof s.name - 1;
	uint32_t at = out->nbusiest;

	if (weight_of(&s) == 0)
		return;
	if (at == WQ_BUSIEST && weight_of(&out->busiest[at - 1]) >= weight_of(&s))
		return;
	memcpy(s.name, g->name, n);
	out->nbusiest += at < WQ_BUSIEST;
	at = out->nbusiest - 1;
	for (; at > 0 && weight_of(&out->busiest[at - 1]) < weight_of(&s); at--)
		out->busiest[at] = out->busiest[at - 1];
	out->busiest[at] = s;
}

/* The lock is let go of now and then: there may be very many. */
static void find_busiest(struct wq__memory *m, wq_snapshot *out)
{
	uint64_t slot = 0;

	do {
		wq__iter it = wq__table_iter(&m->rank->groups, slot);
		size_t n = 0;

		while ((slot = wq__iter_next(&it)) != 0 && n++ < wq__per_hold(1000))
			compare_group(group_at(m, (uint32_t)slot), out);
		if (slot)
			wq__breathe(m);
	} while (slot);
}

static void find_levels(const struct wq__memory *m, wq_snapshot *out)
{
	const struct wq__levels *l = &m->rank->levels;
	const struct wq__line *line;
	uint64_t shown = 0;

	for (int below = WQ_PRIORITY_MAX + 1;
	     out->nlevels < WQ_LEVELS && (line = wq__levels_below(l, below)) != NULL;
	     below = line->level) {
		out->level[out->nlevels++] =
		    (wq_level){.priority = line->level, .queued = line->keys};
		shown += line->keys;
	}
	/* Who reads metrics sees that there are priorities also while nothing is queued. */
	if (out->nlevels == 0)
		out->nlevels = 1;
	out->queued_lower = out->queued - shown;
}

void wq__rank_snapshot(struct wq__memory *m, wq_snapshot *out)
{
	out->blocked = m->nblocked;
	if (m->rank->used)
		find_levels(m, out);
	if (!m->rank->grouped)
		return;
	out->groups = m->rank->ngroups;
	find_busiest(m, out);
}
