/*
 * Lines by level against a simple model: an array that is searched for who goes first. Random
 * pushes, removals and old places, on few levels and on all of them, with aging and without, with
 * memory and without.
 */
#include "../support/support.h"

#include "queue/levels.h"

enum { MOST = 600, NOBODY = 0 };

static uint64_t seed;

struct one {
	struct wq__link link;
	int level;
};

struct model {
	uint32_t id;
	int level;
	int64_t place;
	int64_t turn; /* of its push: the order inside equal places */
};

struct scene {
	struct memory mem;
	wq_allocator allocator;
	wq__slab slab;
	struct wq__levels_of of;
	struct wq__levels levels;
	struct model in[MOST];
	size_t n;
	int64_t turns;
	int64_t now;    /* on levels that age */
	int64_t places; /* on others */
	uint64_t rng;
};

static void open_scene(struct scene *s, int64_t aging_ns, int aging_max)
{
	memset(s, 0, sizeof *s);
	memory_init(&s->mem);
	s->allocator = memory_allocator(&s->mem);
	wq__slab_init(&s->slab, &s->allocator);
	s->of = (struct wq__levels_of){.slab = &s->slab,
	                               .allocator = &s->allocator,
	                               .aging_ns = aging_ns,
	                               .aging_max = aging_max};
	s->now = 1000 * WQ_SECOND;
	s->rng = seed;
}

static void close_scene(struct scene *s)
{
	wq__levels_release(&s->of, &s->levels);
	wq__slab_release(&s->slab);
	memory_balanced(&s->mem);
}

static bool ages(const struct scene *s, int level)
{
	return s->of.aging_ns > 0 && level <= s->of.aging_max;
}

/* Does a go before b, by what the header promises? 0: they are equal but for their turns. */
static int before(const struct scene *s, const struct model *a, const struct model *b)
{
	bool age = ages(s, a->level);

	if (age != ages(s, b->level))
		return age ? -1 : 1;
	if (age) {
		int64_t x = a->place - a->level * s->of.aging_ns;
		int64_t y = b->place - b->level * s->of.aging_ns;

		if (x != y)
			return x < y ? 1 : -1;
		/* The lower one has risen to the level of the other. */
		return (a->level < b->level) - (a->level > b->level);
	}
	if (a->level != b->level)
		return a->level > b->level ? 1 : -1;
	return (a->place < b->place) - (a->place > b->place);
}

static size_t index_of(const struct scene *s, uint32_t id)
{
	size_t i = 0;

	while (i < s->n && s->in[i].id != id)
		i++;
	assert_true(i < s->n);
	return i;
}

static struct one *at(const struct scene *s, uint32_t id)
{
	return wq__slab_at(&s->slab, id);
}

/* Who goes first is one whom nobody goes before; of equal ones in line the first that came. */
static void check_first(const struct scene *s)
{
	int level = -99999;
	uint32_t id = wq__levels_first(&s->of, &s->levels, &level);

	if (s->n == 0) {
		IS(id, NOBODY);
		return;
	}
	assert_int_not_equal(id, NOBODY);

	const struct model *first = &s->in[index_of(s, id)];

	IS(level, first->level);
	IS(at(s, id)->level, level);
	for (size_t i = 0; i < s->n; i++) {
		const struct model *other = &s->in[i];
		bool both_in_line = !((at(s, id)->link.place | at(s, other->id)->link.place) & 1);

		IS(before(s, other, first) > 0, 0);
		if (both_in_line && before(s, other, first) == 0 && other->level == level)
			assert_true(other->turn >= first->turn);
	}
}

/* How many are counted on each level, the highest first. */
static void check_counts(const struct scene *s)
{
	uint32_t seen = 0;
	int below = WQ_PRIORITY_MAX + 1;
	const struct wq__line *line;

	while ((line = wq__levels_below(&s->levels, below)) != NULL) {
		uint32_t n = 0;

		assert_true(line->level < below);
		below = line->level;
		for (size_t i = 0; i < s->n; i++)
			n += s->in[i].level == below;
		IS(line->keys, n);
		seen += n;
	}
	IS(seen, (int64_t)s->n);
}

static void push(struct scene *s, int level, int64_t place, enum wq_where where)
{
	struct model *new = &s->in[s->n];
	uint32_t id;
	struct one *o = wq__slab_alloc(&s->slab, sizeof *o, &id);

	assert_non_null(o);
	o->level = level;
	o->link.place =
	    2 * place + (int64_t)rng_below(&s->rng, 2); /* what was there is of no use */
	wq__levels_push(&s->of, &s->levels, level, id, where);
	wq__levels_count(&s->levels, level, 1);
	*new = (struct model){.id = id, .level = level, .place = place, .turn = ++s->turns};
	if (where == WQ_HEAD) {
		int64_t oldest = place;

		new->place = o->link.place >> 1;
		new->turn = -s->turns;
		for (size_t i = 0; i < s->n; i++)
			if (s->in[i].level == level && s->in[i].place < oldest)
				oldest = s->in[i].place;
		/* Before all of its level; and, but for early ones, no older than it must be. */
		assert_true(new->place <= oldest);
		if (ages(s, level) && s->levels.nearly == 0)
			IS(new->place, oldest);
	}
	s->n++;
}

static void take_out(struct scene *s, size_t i)
{
	struct model gone = s->in[i];

	wq__levels_remove(&s->of, &s->levels, gone.level, gone.id);
	wq__levels_count(&s->levels, gone.level, -1);
	wq__slab_free(&s->slab, gone.id);
	s->in[i] = s->in[--s->n];
}

static void pop(struct scene *s)
{
	int level;

	take_out(s, index_of(s, wq__levels_first(&s->of, &s->levels, &level)));
}

/* The next place, or an older one. */
static int64_t place_for(struct scene *s, int level, bool old)
{
	int64_t *last = ages(s, level) ? &s->now : &s->places;

	*last += ages(s, level) ? (int64_t)rng_below(&s->rng, 3) * WQ_SECOND / 2 : 1;
	if (!old)
		return *last;
	return *last - (int64_t)rng_below(&s->rng, (uint64_t)(*last > 100 ? 100 : *last)) *
	                   (ages(s, level) ? WQ_SECOND / 4 : 1);
}

struct plan {
	const char *name;
	int64_t aging_ns;
	int aging_max;
	int from, levels; /* the levels: so many from `from` on, `apart` from each other */
	int apart;
};

static const struct plan plans[] = {
    {"one level", 0, WQ_PRIORITY_MAX, 0, 1, 1},
    {"few levels", 0, WQ_PRIORITY_MAX, -2, 5, 1},
    {"as many as fit into the array", 0, WQ_PRIORITY_MAX, -4, 8, 1},
    {"one more", 0, WQ_PRIORITY_MAX, -4, 9, 1},
    {"two tables", 0, WQ_PRIORITY_MAX, -5, 10, 1},
    {"300 levels", 0, WQ_PRIORITY_MAX, -150, 300, 1},
    {"levels of many tables", 0, WQ_PRIORITY_MAX, WQ_PRIORITY_MIN, 257, 255},
    {"one level that ages", WQ_SECOND, WQ_PRIORITY_MAX, 0, 1, 1},
    {"few levels that age", WQ_SECOND, WQ_PRIORITY_MAX, -2, 5, 1},
    {"ten levels that age", WQ_SECOND, WQ_PRIORITY_MAX, -5, 10, 1},
    {"300 levels that age", WQ_SECOND, WQ_PRIORITY_MAX, -150, 300, 1},
    {"many tables that age", 3, WQ_PRIORITY_MAX, WQ_PRIORITY_MIN, 257, 255},
    {"the longest span", WQ_AGING_MAX, WQ_PRIORITY_MAX, WQ_PRIORITY_MIN, 257, 255},
    {"few levels, some age", WQ_SECOND, 0, -2, 5, 1},
    {"ten levels, some age", WQ_SECOND, 0, -5, 10, 1},
    {"300 levels, some age", WQ_SECOND, -7, -150, 300, 1},
    {"none ages", WQ_SECOND, -100, -5, 10, 1},
    {"many tables, one level ages", WQ_AGING_MAX, WQ_PRIORITY_MIN, WQ_PRIORITY_MIN, 257, 255},
};

/* Of eight pushes so many have an old place, and so many go to the head. */
static void run(const struct plan *p, unsigned old_of_8, unsigned head_of_8)
{
	struct scene *s = malloc(sizeof *s);
	uint64_t most;

	assert_non_null(s);
	open_scene(s, p->aging_ns, p->aging_max);
	for (int i = 0; i < p->levels; i++)
		assert_true(wq__levels_reserve(&s->of, &s->levels, p->from + i * p->apart));
	most = 1 + rng_below(&s->rng, MOST);
	for (int step = 0; step < 6000; step++) {
		int level = p->from + (int)rng_below(&s->rng, (uint64_t)p->levels) * p->apart;
		uint64_t what = rng_below(&s->rng, 8);

		if (s->n == 0 || (s->n < most && what < 5)) {
			bool old = rng_below(&s->rng, 8) < old_of_8;

			push(s, level, place_for(s, level, old),
			     rng_below(&s->rng, 8) < head_of_8 ? WQ_HEAD : WQ_TAIL);
		} else if (what < 7) {
			pop(s);
		} else {
			take_out(s, (size_t)rng_below(&s->rng, s->n));
		}
		check_first(s);
		if (step % 64 == 0)
			check_counts(s);
		if (rng_below(&s->rng, 500) == 0)
			most = 1 + rng_below(&s->rng, MOST);
	}
	while (s->n > 0) {
		pop(s);
		check_first(s);
	}
	check_counts(s);
	IS(s->levels.nearly, 0);
	close_scene(s);
	free(s);
}

static void like_the_model(void **state)
{
	const struct plan *p = *state;

	run(p, 0, 0);
	run(p, 2, 0);
	run(p, 1, 1);
	run(p, 7, 1);
}

/* Every level there is: each has one, they leave from the highest to the lowest. */
static void all_levels(void **state)
{
	struct scene *s = malloc(sizeof *s);
	uint32_t *id = malloc(65536 * sizeof *id);
	int level = 0;

	(void)state;
	assert_true(s && id);
	for (int aging = 0; aging < 2; aging++) {
		open_scene(s, aging ? WQ_SECOND : 0, WQ_PRIORITY_MAX);
		for (int i = 0; i < 65536; i++) {
			/* in an order that jumps about */
			int l = (int)((unsigned)i * 40503u % 65536u) + WQ_PRIORITY_MIN;
			struct one *o = wq__slab_alloc(&s->slab, sizeof *o, &id[l + 32768]);

			assert_true(wq__levels_reserve(&s->of, &s->levels, l));
			o->link.place = 2 * (aging ? s->now : i + 1);
			wq__levels_push(&s->of, &s->levels, l, id[l + 32768], WQ_TAIL);
			wq__levels_count(&s->levels, l, 1);
		}
		for (int l = WQ_PRIORITY_MAX; l >= WQ_PRIORITY_MIN; l--) {
			const struct wq__line *line = wq__levels_below(&s->levels, l + 1);

			assert_true(line && line->level == l && line->keys == 1);
			IS(wq__levels_first(&s->of, &s->levels, &level), id[l + 32768]);
			IS(level, l);
			wq__levels_remove(&s->of, &s->levels, l, id[l + 32768]);
			wq__levels_count(&s->levels, l, -1);
		}
		IS(wq__levels_first(&s->of, &s->levels, &level), NOBODY);
		assert_null(wq__levels_below(&s->levels, WQ_PRIORITY_MAX + 1));
		close_scene(s);
	}
	free(id);
	free(s);
}

/* Each allocation of a reserve fails once: it says so, and nothing has changed. */
static void no_memory_for_a_level(void **state)
{
	struct scene *s = malloc(sizeof *s);
	int refused = 0;

	(void)state;
	assert_non_null(s);
	for (int64_t n = 0; n < 60; n++) {
		open_scene(s, n % 2 ? WQ_SECOND : 0, WQ_PRIORITY_MAX);
		for (int i = 0; i < 8; i++)
			assert_true(wq__levels_reserve(&s->of, &s->levels, 1000 * i));
		for (int i = 0; i < 8; i++)
			push(s, 1000 * i, place_for(s, 1000 * i, false), WQ_TAIL);
		s->mem.fail_at = s->mem.calls + n / 2;
		for (int i = 8; i < 20; i++) {
			if (!wq__levels_reserve(&s->of, &s->levels, 1000 * i)) {
				refused++;
				check_first(s);
				check_counts(s);
				s->mem.fail_at = -1;
				assert_true(wq__levels_reserve(&s->of, &s->levels, 1000 * i));
			}
			check_first(s);
			check_counts(s);
		}
		/* What is there is not asked for again. */
		s->mem.fail_at = 0;
		s->mem.fail_on = true;
		for (int i = 0; i < 20; i++)
			assert_true(wq__levels_reserve(&s->of, &s->levels, 1000 * i));
		s->mem.fail_at = -1;
		for (int i = 8; i < 20; i++) {
			push(s, 1000 * i, place_for(s, 1000 * i, false), WQ_TAIL);
			check_first(s);
		}
		while (s->n > 0) {
			pop(s);
			check_first(s);
		}
		close_scene(s);
	}
	assert_true(refused > 20);
	free(s);
}

/* Without memory an old place is found all the same, however far from the tail. */
static void no_memory_for_an_old_place(void **state)
{
	struct scene *s = malloc(sizeof *s);

	(void)state;
	assert_non_null(s);
	for (int wide = 0; wide < 2; wide++)
		for (int64_t n = 0; n < 4; n++) {
			open_scene(s, wide ? WQ_SECOND : 0, WQ_PRIORITY_MAX);
			for (int i = 0; i < (wide ? 20 : 1); i++)
				assert_true(wq__levels_reserve(&s->of, &s->levels, i));
			for (int i = 0; i < 200; i++)
				push(s, 0, place_for(s, 0, false), WQ_TAIL);
			for (int i = 0; i < 100; i++) {
				int64_t old = wide ? s->now - 60 * WQ_SECOND : 50;

				s->mem.fail_at = s->mem.calls + n;
				s->mem.fail_on = n < 2;
				push(s, 0, old, WQ_TAIL);
				check_first(s);
			}
			s->mem.fail_at = -1;
			while (s->n > 0) {
				pop(s);
				check_first(s);
			}
			close_scene(s);
		}
	free(s);
}

/* An old place costs a bounded number of steps: what is far from the tail goes into the heap. */
static void far_places_are_early(void **state)
{
	struct scene *s = malloc(sizeof *s);

	(void)state;
	assert_non_null(s);
	open_scene(s, 0, WQ_PRIORITY_MAX);
	assert_true(wq__levels_reserve(&s->of, &s->levels, 3));
	for (int64_t i = 1; i <= 400; i++)
		push(s, 3, 10 * i, WQ_TAIL);
	IS(s->levels.nearly, 0);
	push(s, 3, 4000 - 10 * WQ__NEAR + 5, WQ_TAIL); /* near */
	IS(s->levels.nearly, 0);
	push(s, 3, 5, WQ_TAIL);
	IS(s->levels.nearly, 1);
	push(s, 3, 15, WQ_TAIL);
	IS(s->levels.nearly, 2);
	check_first(s);
	while (s->n > 0) {
		pop(s);
		check_first(s);
	}
	IS(s->levels.nearly, 0);
	close_scene(s);
	free(s);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[LENGTH(plans) + 4];
	size_t n = 0;

	seed = seed_from(argc, argv);
	for (; n < LENGTH(plans); n++)
		tests[n] = (struct CMUnitTest){
		    .name = plans[n].name,
		    .test_func = like_the_model,
		    .initial_state = (void *)(uintptr_t)&plans[n],
		};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(all_levels);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_memory_for_a_level);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_memory_for_an_old_place);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(far_places_are_early);
	return _cmocka_run_group_tests("levels", tests, n, NULL, NULL);
}
