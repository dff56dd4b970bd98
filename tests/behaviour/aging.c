/*
 * Aging, to the nanosecond: when a key goes before keys of higher levels, and that nothing else
 * changes the order of two keys. At last a model: an array in which each key has the time at which
 * it would have come to level 0.
 */
#include "rich_rig.h"

#define SPAN (10 * WQ_SECOND)

static uint64_t seed;

static void open_aging(struct fixture *f, int aging_max)
{
	fixture_open(
	    f, &(wq_options){.priorities = 1, .aging_ns = SPAN, .aging_max = aging_max, .seed = 1});
}

/* So many levels are in use that they stand in tables; they are empty again. */
static void widen(wq_queue *q, int levels)
{
	char key[16];

	for (int i = 0; i < levels; i++) {
		snprintf(key, sizeof key, "wide%d", i);
		IS(add_at(q, key, i - levels / 2), WQ_QUEUED);
		IS(wq_cancel(q, key, strlen(key), NULL), WQ_CANCELLED);
	}
}

/* [AGED] [AGING] Which of two goes first: one with priority p, and one n levels higher, later. */
static bool older_goes_first(int levels, int aging_max, int p, int n, int64_t later_ns)
{
	struct fixture f;
	wq_item it;
	bool older;

	open_aging(&f, aging_max);
	widen(f.q, levels);
	add_at(f.q, "old", p);
	IS(wq_manual_clock_advance(f.mc, later_ns), WQ_OK);
	add_at(f.q, "new", p + n);
	IS(wq_try_get(f.q, &it), WQ_OK);
	older = strcmp(it.key, "old") == 0;
	/* The item shows the priority that the key was added with. */
	IS(it.priority, older ? p : p + n);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(wq_try_get(f.q, &it), WQ_OK);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
	return older;
}

static void to_the_nanosecond(void **state)
{
	static const int levels[] = {0, 5, 40, 600};

	(void)state;
	for (size_t i = 0; i < LENGTH(levels); i++)
		for (int n = 0; n < 30; n = n * 2 + 1)
			for (int p = -300; p < 400; p += 150) {
				IS(older_goes_first(levels[i], 0, p, n, n * SPAN + 1), true);
				/* It comes to the tail of that level now; the other one later. */
				IS(older_goes_first(levels[i], 0, p, n, n * SPAN), true);
				if (n > 0)
					IS(older_goes_first(levels[i], 0, p, n, n * SPAN - 1),
					   false);
			}
}

/* [AGING] Higher levels than aging_max are not reached, and do not age. */
static void up_to_a_bound(void **state)
{
	(void)state;
	for (int levels = 0; levels < 100; levels += 33) {
		IS(older_goes_first(levels, 5, 0, 5, 5 * SPAN), true);
		IS(older_goes_first(levels, 5, 0, 5, 5 * SPAN - 1), false);
		IS(older_goes_first(levels, 5, 0, 6, 1000 * SPAN), false);
		IS(older_goes_first(levels, 5, 5, 1, 1000 * SPAN), false);
		IS(older_goes_first(levels, 5, 6, 1, 1000 * SPAN), false);
		IS(older_goes_first(levels, 5, 6, 0, 1), true);
		IS(older_goes_first(levels, -5, -7, 2, 2 * SPAN), true);
		IS(older_goes_first(levels, -5, -7, 3, 1000 * SPAN), false);
		IS(older_goes_first(levels, WQ_PRIORITY_MAX, WQ_PRIORITY_MAX - 1, 1, SPAN), true);
	}
}

/*
 * [AGED] A flood: each second a key of level 12 comes and one goes. The low one goes when those
 * that came before it has risen to level 12 have gone.
 */
static void no_flood_starves(void **state)
{
	struct fixture f;
	char key[16];
	wq_item it;
	int handed_out = -1;

	(void)state;
	open_aging(&f, 0);
	for (int i = 0; i < 7; i++) {
		snprintf(key, sizeof key, "%d", i);
		add_at(f.q, key, 12);
	}
	add_at(f.q, "low", 0);
	for (int i = 7; handed_out < 0; i++) {
		IS(wq_manual_clock_advance(f.mc, WQ_SECOND), WQ_OK);
		snprintf(key, sizeof key, "%d", i);
		add_at(f.q, key, 12);
		IS(wq_try_get(f.q, &it), WQ_OK);
		if (strcmp(it.key, "low") == 0)
			handed_out = i;
		IS(wq_done(f.q, &it), WQ_OK);
		assert_true(i < 1000);
	}
	/* After 120 s it is there: before it go the first 7, and those of 119 seconds. */
	IS(handed_out, 7 + 7 + 119);
	fixture_close(&f, 8);
}

/* [AGED] An add with a higher priority does not move a key back that has risen higher by itself. */
static void raised_less_than_aged(void **state)
{
	struct fixture f;

	(void)state;
	for (int raise = 0; raise < 8; raise++) {
		open_aging(&f, 0);
		add_at(f.q, "a", 0);
		wq_manual_clock_advance(f.mc, 5 * SPAN + 1); /* "a" is on level 5 */
		add_at(f.q, "b", 5);
		IS(add_at(f.q, "a", raise), WQ_MERGED);
		IS(look(f.q, "a").priority, raise);
		out_is(f.q, "a", raise);
		out_is(f.q, "b", 5);
		fixture_close(&f, 0);
	}
	/* It goes to the tail of its new level, if that is higher. */
	open_aging(&f, 0);
	add_at(f.q, "a", 0);
	wq_manual_clock_advance(f.mc, 5 * SPAN);
	add_at(f.q, "b", 6);
	IS(add_at(f.q, "a", 6), WQ_MERGED);
	add_at(f.q, "c", 6);
	keys_are(f.q, "b a c");
	fixture_close(&f, 0);
}

/* Raised above the bound it stands at the tail of a level that does not age. */
static void raised_above_the_bound(void **state)
{
	struct fixture f;

	(void)state;
	open_aging(&f, 3);
	add_at(f.q, "a", 0);
	wq_manual_clock_advance(f.mc, 100 * SPAN);
	add_at(f.q, "b", 4);
	add_at(f.q, "c", 3);
	add_at(f.q, "a", 4);
	add_at(f.q, "d", 4);
	keys_are(f.q, "b a d c");
	fixture_close(&f, 0);
}

/* [AGED] A key ages while it is queued, not while it waits. */
static void what_waits_does_not_age(void **state)
{
	struct fixture f;

	(void)state;
	open_aging(&f, 0);
	add_full(f.q, "added", 0, NULL, 1000 * SPAN);
	add_full(f.q, "due", 0, NULL, 20 * SPAN);
	wq_manual_clock_advance(f.mc, 20 * SPAN - 1);
	add_at(f.q, "added", 0); /* absorbed: queued since now */
	add_at(f.q, "high", 1);
	wq_manual_clock_advance(f.mc, SPAN); /* "added" is on level 1, "due" is so in 1 ns */
	add_at(f.q, "higher", 1);
	keys_are(f.q, "high added higher due");
	fixture_close(&f, 0);
}

/* It counts from the due time, whenever somebody looks. */
static void due_times_count(void **state)
{
	struct fixture f;

	(void)state;
	open_aging(&f, 0);
	add_full(f.q, "due", 0, NULL, SPAN);
	add_full(f.q, "remind", 0, NULL, 2 * SPAN);
	wq_manual_clock_advance(f.mc, 4 * SPAN);
	add_at(f.q, "three", 3); /* "due" has risen to 3 by now, "remind" to 2 */
	keys_are(f.q, "due three remind");
	fixture_close(&f, 0);
}

/* [AGED] Each time it is queued it begins anew: requeued, retried, added while it was held. */
static void each_line_counts_alone(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	for (int how = 0; how < 4; how++) {
		open_aging(&f, 0);
		add_at(f.q, "k", 0);
		wq_manual_clock_advance(f.mc, 7 * SPAN);
		hold_is(f.q, &it, "k", 0, NULL);
		wq_manual_clock_advance(f.mc, 7 * SPAN);
		if (how == 0)
			add_at(f.q, "k", 0);
		IS(how == 0   ? wq_done(f.q, &it)
		   : how == 1 ? wq_requeue(f.q, &it, WQ_TAIL)
		   : how == 2 ? wq_requeue(f.q, &it, WQ_HEAD)
		              : wq_settle(f.q, &it, wq_again_after(0)),
		   WQ_QUEUED);
		wq_manual_clock_advance(f.mc, SPAN - 1);
		add_at(f.q, "high", 1);
		wq_manual_clock_advance(f.mc, 1);
		add_at(f.q, "later", 1);
		keys_are(f.q, "high k later");
		fixture_close(&f, 0);
	}
}

/* The head of a level is before all of it, and as old as its first. */
static void requeued_to_the_head(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_aging(&f, 0);
	add_at(f.q, "a", 0);
	add_at(f.q, "b", 0);
	wq_manual_clock_advance(f.mc, 3 * SPAN);
	hold_is(f.q, &it, "a", 0, NULL);
	add_at(f.q, "two", 2);
	add_at(f.q, "four", 4);
	IS(wq_requeue(f.q, &it, WQ_HEAD), WQ_QUEUED);
	keys_are(f.q, "four a b two");
	fixture_close(&f, 0);
}

/* The longest span, the ends of the range, and a clock at the end of all times. */
static void far_away_times(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.priorities = 1, .aging_ns = WQ_AGING_MAX});
	add_at(f.q, "low", WQ_PRIORITY_MIN);
	add_at(f.q, "high", WQ_PRIORITY_MAX);
	wq_manual_clock_advance(f.mc, 65535 * WQ_AGING_MAX - 1);
	add_at(f.q, "later", WQ_PRIORITY_MAX);
	wq_manual_clock_advance(f.mc, 1);
	add_at(f.q, "last", WQ_PRIORITY_MAX);
	keys_are(f.q, "high later low last");
	IS(wq_manual_clock_set(f.mc, WQ_NEVER), WQ_OK);
	add_at(f.q, "a", WQ_PRIORITY_MIN);
	add_at(f.q, "b", WQ_PRIORITY_MIN);
	add_at(f.q, "c", WQ_PRIORITY_MAX);
	out_is(f.q, "c", WQ_PRIORITY_MAX);
	add_at(f.q, "b", -1);
	add_at(f.q, "b", 1);
	out_is(f.q, "b", 1);
	out_is(f.q, "a", WQ_PRIORITY_MIN);
	fixture_close(&f, 0);

	fixture_open(&f, &(wq_options){.priorities = 1, .aging_ns = 1});
	add_at(f.q, "low", WQ_PRIORITY_MIN);
	wq_manual_clock_advance(f.mc, 65534);
	add_at(f.q, "before", WQ_PRIORITY_MAX);
	wq_manual_clock_advance(f.mc, 1);
	add_at(f.q, "after", WQ_PRIORITY_MAX);
	keys_are(f.q, "before low after");
	fixture_close(&f, 0);
}

/* The same with groups: turns are as far away. */
static void far_away_turns(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.priorities = 1,
	                               .aging_ns = SPAN,
	                               .group = wq_group_before,
	                               .group_ctx = &before_slash});
	IS(wq_manual_clock_set(f.mc, WQ_NEVER - 10), WQ_OK);
	add_at(f.q, "a/1", 0);
	keys_are(f.q, "a/1");
	add_at(f.q, "b/1", 0);
	add_at(f.q, "a/2", 0);
	keys_are(f.q, "b/1 a/2");
	fixture_close(&f, 0);
}

/* In a queue with groups, the time counts from the last turn of the group, if that is later. */
static void groups_age_by_their_turns(void **state)
{
	struct fixture f;
	wq_options o = {.priorities = 1,
	                .aging_ns = SPAN,
	                .group = wq_group_before,
	                .group_ctx = &before_slash};

	(void)state;
	fixture_open(&f, &o);
	add_at(f.q, "g/1", 0);
	add_at(f.q, "g/2", 0);
	wq_manual_clock_advance(f.mc, 2 * SPAN - 1);
	add_at(f.q, "h/1", 2);
	out_is(f.q, "h/1", 2);
	wq_manual_clock_advance(f.mc, 1);
	add_at(f.q, "h/2", 2);
	out_is(f.q, "g/1", 0); /* it has risen to 2: a turn of g, and g/2 counts from now */
	wq_manual_clock_advance(f.mc, 2 * SPAN - 1);
	add_at(f.q, "h/3", 2);
	add_at(f.q, "i/1", 2);
	out_is(f.q, "h/2", 2);
	wq_manual_clock_advance(f.mc, 1);
	add_at(f.q, "j/1", 2);
	keys_are(f.q, "i/1 h/3 g/2 j/1");
	fixture_close(&f, 0);
}

/* A group stands by its first key: the time of one that was cancelled does not count. */
static void groups_stand_by_their_first(void **state)
{
	struct fixture f;
	wq_options o = {.priorities = 1,
	                .aging_ns = SPAN,
	                .group = wq_group_before,
	                .group_ctx = &before_slash};

	(void)state;
	fixture_open(&f, &o);
	add_at(f.q, "g/1", 0);
	wq_manual_clock_advance(f.mc, 10 * SPAN);
	add_at(f.q, "g/2", 0);
	IS(wq_cancel(f.q, "g/1", 3, NULL), WQ_CANCELLED);
	wq_manual_clock_advance(f.mc, SPAN - 1);
	add_at(f.q, "h/1", 1);
	wq_manual_clock_advance(f.mc, 1);
	add_at(f.q, "i/1", 1);
	keys_are(f.q, "h/1 g/2 i/1");
	fixture_close(&f, 0);
}

/* ---- a model ------------------------------------------------------------------------------ */

enum { KEYS = 150 };

struct modelled {
	bool queued;
	int priority;
	int64_t arrival; /* at level 0; of levels that do not age: of its push */
};

struct modelling {
	struct fixture f;
	struct modelled key[KEYS];
	int aging_max;
	uint64_t rng;
};

static bool first_of(const struct modelling *m, const struct modelled *a, const struct modelled *b)
{
	bool a_ages = a->priority <= m->aging_max, b_ages = b->priority <= m->aging_max;

	if (a_ages != b_ages)
		return b_ages;
	if (!a_ages && a->priority != b->priority)
		return a->priority > b->priority;
	return a->arrival < b->arrival;
}

static void add_modelled(struct modelling *m, int i, int priority)
{
	struct modelled *k = &m->key[i];
	bool ages = priority <= m->aging_max;
	int64_t arrival = wq_now(m->f.q) - (ages ? priority * SPAN : 0);
	wq_add_options o = {.priority = priority};

	IS(wq_add_with(m->f.q, &i, sizeof i, &o), k->queued ? WQ_MERGED : WQ_QUEUED);
	if (k->queued && priority <= k->priority)
		return;
	if (k->queued && ages && k->arrival < arrival)
		arrival = k->arrival;
	*k = (struct modelled){.queued = true, .priority = priority, .arrival = arrival};
}

static void get_modelled(struct modelling *m)
{
	int first = -1, key;
	wq_item it;

	for (int i = 0; i < KEYS; i++)
		if (m->key[i].queued && (first < 0 || first_of(m, &m->key[i], &m->key[first])))
			first = i;
	if (first < 0) {
		nothing_is_ready(m->f.q);
		return;
	}
	IS(wq_try_get(m->f.q, &it), WQ_OK);
	memcpy(&key, it.key, sizeof key);
	IS(key, first);
	IS(it.priority, m->key[first].priority);
	m->key[first].queued = false;
	IS(wq_done(m->f.q, &it), WQ_OK);
}

static void like_a_model(int aging_max, int levels)
{
	struct modelling *m = calloc(1, sizeof *m);

	assert_non_null(m);
	m->rng = seed;
	open_aging(&m->f, aging_max);
	m->aging_max = aging_max ? aging_max : WQ_PRIORITY_MAX;
	for (int step = 0; step < 20000; step++) {
		int i = (int)rng_below(&m->rng, KEYS);
		int p = (int)rng_below(&m->rng, (uint64_t)levels) - levels / 2;

		/* no two at the same time, nor one at a whole span from another */
		wq_manual_clock_advance(m->f.mc,
		                        1 + (int64_t)rng_below(&m->rng, (uint64_t)SPAN / 4));
		switch (rng_below(&m->rng, 8)) {
		case 0:
			if (m->key[i].queued) {
				IS(wq_cancel(m->f.q, &i, sizeof i, NULL), WQ_CANCELLED);
				m->key[i].queued = false;
			}
			break;
		case 1:
		case 2:
		case 3:
			get_modelled(m);
			break;
		default:
			add_modelled(m, i, p);
			break;
		}
	}
	for (int i = 0; i < KEYS; i++)
		get_modelled(m);
	fixture_close(&m->f, 0);
	free(m);
}

static void models(void **state)
{
	static const int levels[] = {1, 3, 8, 9, 40, 700};

	(void)state;
	for (size_t i = 0; i < LENGTH(levels); i++) {
		like_a_model(0, levels[i]);
		like_a_model(1, levels[i]);
		like_a_model(-20, levels[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(to_the_nanosecond),
	    cmocka_unit_test(up_to_a_bound),
	    cmocka_unit_test(no_flood_starves),
	    cmocka_unit_test(raised_less_than_aged),
	    cmocka_unit_test(raised_above_the_bound),
	    cmocka_unit_test(what_waits_does_not_age),
	    cmocka_unit_test(due_times_count),
	    cmocka_unit_test(each_line_counts_alone),
	    cmocka_unit_test(requeued_to_the_head),
	    cmocka_unit_test(far_away_times),
	    cmocka_unit_test(far_away_turns),
	    cmocka_unit_test(groups_age_by_their_turns),
	    cmocka_unit_test(groups_stand_by_their_first),
	    cmocka_unit_test(models),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("aging", tests, NULL, NULL);
}
