/*
 * Groups: turns, weights, limits, which group a key has, what a get costs, groups that vanish,
 * and what snapshots show. Who waits is in group_wait.c, rates are in group_rate.c.
 */
#include "rich_rig.h"

#include <math.h>

#include "queue/levels.h"

static wq_options grouped(uint32_t limit)
{
	return (wq_options){.group = wq_group_before,
	                    .group_ctx = &before_slash,
	                    .group_limit = limit,
	                    .max_attempts = 0};
}

static void open_grouped(struct fixture *f, uint32_t limit)
{
	wq_options o = grouped(limit);

	fixture_open(f, &o);
}

/* Keys g/1 to g/n. */
static void add_keys(wq_queue *q, const char *group, int n)
{
	char key[64];

	for (int i = 1; i <= n; i++) {
		snprintf(key, sizeof key, "%s/%d", group, i);
		IS(wq_add_str(q, key), WQ_QUEUED);
	}
}

/* ---- turns ------------------------------------------------------------------ */

/* [TURNS] [GROUP] */
static void groups_take_turns(void **state)
{
	struct fixture f;

	(void)state;
	open_grouped(&f, 0);
	add_keys(f.q, "a", 4);
	add_keys(f.q, "b", 2);
	add_keys(f.q, "c", 3);
	keys_are(f.q, "a/1 b/1 c/1 a/2 b/2 c/2 a/3 c/3 a/4");
	/* one that comes anew stands behind those that are there */
	add_keys(f.q, "a", 3);
	add_keys(f.q, "b", 3);
	take_is(f.q, "a/1", WQ_OK);
	wq_add_str(f.q, "c/1");
	keys_are(f.q, "b/1 a/2 c/1 b/2 a/3 b/3");
	fixture_close(&f, 0);
}

/* [TURNS] A million keys of one group do not delay ten of another. */
static void a_million_and_ten(void **state)
{
	struct fixture f;
	wq_item it;
	int small = 0;
	char key[32];

	(void)state;
	open_grouped(&f, 0);
	for (int i = 0; i < 1000000; i++) {
		snprintf(key, sizeof key, "big/%d", i);
		wq_add(f.q, key, strlen(key));
	}
	add_keys(f.q, "small", 10);
	IS(wq_len(f.q), 1000010);
	for (int i = 0; i < 20; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		small += *(const char *)it.key == 's';
		IS(wq_done(f.q, &it), WQ_OK);
	}
	IS(small, 10);
	fixture_close(&f, 1000010 - 20);
}

static void settings_by_name(void *ctx, const wq_key *group, wq_group_settings *s)
{
	int *calls = ctx;

	++*calls;
	assert_int_equal(((const char *)group->key)[group->len], '\0');
	/* "w3..." has weight 3, "l2..." limit 2 */
	if (group->len > 1 && *(const char *)group->key == 'w')
		s->weight = (uint32_t)(((const char *)group->key)[1] - '0');
	if (group->len > 1 && *(const char *)group->key == 'l')
		s->limit = (uint32_t)(((const char *)group->key)[1] - '0');
}

/* [TURNS] A group starts as many keys in a turn as its weight. */
static void weights(void **state)
{
	struct fixture f;
	int calls = 0;
	wq_options o = grouped(0);

	(void)state;
	o.group_setup = settings_by_name;
	o.setup_ctx = &calls;
	fixture_open(&f, &o);
	add_keys(f.q, "w3", 5);
	add_keys(f.q, "a", 3);
	add_keys(f.q, "w2", 3);
	add_keys(f.q, "w0", 2); /* 0: 1 */
	IS(calls, 4);
	keys_are(f.q, "w3/1 w3/2 w3/3 a/1 w2/1 w2/2 w0/1 w3/4 w3/5 a/2 w2/3 w0/2 a/3");
	/* a turn that was begun goes on with keys that come */
	add_keys(f.q, "w3", 1);
	add_keys(f.q, "a", 1);
	take_is(f.q, "w3/1", WQ_OK);
	fixture_close(&f, 1);
}

/* [LEVEL] [TURNS] Levels before turns; inside a level turns. */
static void levels_and_turns(void **state)
{
	struct fixture f;
	wq_options o = grouped(0);

	(void)state;
	o.priorities = 1;
	fixture_open(&f, &o);
	add_at(f.q, "a/1", 0);
	add_at(f.q, "a/2", 5);
	add_at(f.q, "b/1", 0);
	add_at(f.q, "a/3", 0);
	add_at(f.q, "c/1", 5);
	add_at(f.q, "a/4", 5);
	keys_are(f.q, "a/2 c/1 a/4 b/1 a/1 a/3");
	add_at(f.q, "a/1", 0);
	add_at(f.q, "b/1", 0);
	add_at(f.q, "b/2", 0);
	IS(add_at(f.q, "b/2", 3), WQ_MERGED); /* b goes up with it, and is behind a then */
	keys_are(f.q, "b/2 a/1 b/1");
	fixture_close(&f, 0);
}

/* More levels than a group has at first, of which each has several keys. */
static void many_levels_in_groups(void **state)
{
	struct fixture f;
	wq_options o = grouped(0);
	char key[32];
	int last = 1000;
	wq_item it;

	(void)state;
	o.priorities = 1;
	fixture_open(&f, &o);
	for (int i = 0; i < 3000; i++) {
		snprintf(key, sizeof key, "%d/%d", i % 7, i);
		IS(add_at(f.q, key, i % 500 - 250), WQ_QUEUED);
	}
	for (int i = 0; i < 3000; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_true(it.priority <= last);
		last = it.priority;
		IS(wq_done(f.q, &it), WQ_OK);
	}
	IS(wq_len(f.q), 0);
	IS((int64_t)snapshot(f.q).groups, 0);
	fixture_close(&f, 0);
}

/* ---- limits ------------------------------------------------------------------- */

/* [LIMIT] At most so many are held; the others are queued, and no get sees them. */
static void at_most_so_many(void **state)
{
	struct fixture f;
	wq_item held[8];
	wq_snapshot s;

	(void)state;
	open_grouped(&f, 2);
	add_keys(f.q, "a", 5);
	add_keys(f.q, "b", 1);
	IS(hold_keys(f.q, held, "a/1 b/1 a/2"), 3);
	IS(wq_len(f.q), 3);
	IS(state_of(f.q, "a/3"), Q);
	IS(look(f.q, "a/3").state, Q);
	assert_string_equal(look(f.q, "a/3").group, "a");
	s = snapshot(f.q);
	IS((int64_t)s.queued, 3);
	IS((int64_t)s.blocked, 3);
	IS((int64_t)s.running, 3);
	IS((int64_t)s.groups, 2);
	IS(s.oldest_queued.age_ns, -1); /* nothing is at the head */
	IS(wq_done(f.q, &held[1]), WQ_OK);
	nothing_is_ready(f.q);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS((int64_t)snapshot(f.q).blocked, 2);
	IS(hold_keys(f.q, held, "a/3"), 1);
	IS((int64_t)snapshot(f.q).blocked, 2);
	IS(wq_done(f.q, &held[2]), WQ_OK);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS((int64_t)snapshot(f.q).blocked, 0);
	keys_are(f.q, "a/4 a/5");
	IS((int64_t)snapshot(f.q).groups, 0);
	fixture_close(&f, 0);
}

/* [LIMIT] Exceptions by group_setup. */
static void limits_by_name(void **state)
{
	struct fixture f;
	wq_item held[16];
	int calls = 0;
	wq_options o = grouped(1);

	(void)state;
	o.group_setup = settings_by_name;
	o.setup_ctx = &calls;
	fixture_open(&f, &o);
	add_keys(f.q, "l3", 5);
	add_keys(f.q, "a", 3);
	add_keys(f.q, "l0", 4); /* 0: no limit */
	IS(hold_keys(f.q, held, "l3/1 a/1 l0/1 l3/2 l0/2 l3/3 l0/3 l0/4"), 8);
	IS(wq_done_many(f.q, held, 8, NULL), 8);
	keys_are(f.q, "l3/4 a/2 l3/5 a/3");
	fixture_close(&f, 0);
}

static wq_group_settings odd;

static void odd_settings(void *ctx, const wq_key *group, wq_group_settings *s)
{
	(void)ctx, (void)group;
	*s = odd;
}

/* Settings out of range count as those of the options. */
static void settings_out_of_range(void **state)
{
	const wq_group_settings bad[] = {
	    {.limit = 5, .rate = -1},          {.limit = 5, .rate = -0.0001},
	    {.limit = 5, .rate = (double)NAN}, {.limit = 5, .rate = (double)INFINITY},
	    {.limit = 5, .rate = 1e9 + 1},     {.limit = 5, .rate = 1e300},
	    {.limit = 5, .reserved0 = 1},      {.limit = 5, .reserved = {1, 0}},
	    {.limit = 5, .reserved = {0, 1}},
	};
	wq_options o = grouped(2);
	struct fixture f;
	wq_item held[8];

	(void)state;
	o.group_setup = odd_settings;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		odd = bad[i];
		fixture_open(&f, &o);
		add_keys(f.q, "a", 5);
		IS(hold_keys(f.q, held, "a/1 a/2"), 2);
		IS(wq_done_many(f.q, held, 2, NULL), 2);
		fixture_close(&f, 3);
	}
	odd =
	    (wq_group_settings){.limit = 3, .weight = UINT32_MAX, .rate = 1e9, .burst = UINT32_MAX};
	fixture_open(&f, &o);
	add_keys(f.q, "a", 5);
	IS(hold_keys(f.q, held, "a/1 a/2 a/3"), 3);
	IS(wq_done_many(f.q, held, 3, NULL), 3);
	fixture_close(&f, 2);
}

/* [LIMIT] A key that is held and added again has no second place, and comes back behind others. */
static void dirty_keys(void **state)
{
	struct fixture f;
	wq_item held[4];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 3);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_add_str(f.q, "a/1"), WQ_MARKED);
	IS((int64_t)snapshot(f.q).blocked, 2);
	IS(wq_done(f.q, &held[0]), WQ_QUEUED);
	keys_are(f.q, "a/2 a/3 a/1");
	fixture_close(&f, 0);
}

/* Head and tail are those of the group. */
static void requeued(void **state)
{
	struct fixture f;
	wq_item held[4];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 3);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_requeue(f.q, &held[0], WQ_TAIL), WQ_QUEUED);
	IS(hold_keys(f.q, held, "a/2"), 1);
	IS(wq_requeue(f.q, &held[0], WQ_HEAD), WQ_QUEUED);
	keys_are(f.q, "a/2 a/3 a/1");
	fixture_close(&f, 0);
}

static void dead_letter(void *ctx, const wq_item *item)
{
	wq_queue *q = *(wq_queue **)ctx;

	(void)item;
	/* it is held still: its place is not free */
	nothing_is_ready(q);
	IS((int64_t)snapshot(q).blocked, 1);
	IS((int64_t)snapshot(q).running, 1);
}

/* A key that is dead gives its place back when it is buried. */
static void dead_keys(void **state)
{
	struct fixture f;
	wq_item held[4];
	wq_options o = grouped(1);

	(void)state;
	o.max_attempts = 1;
	o.dead_letter = dead_letter;
	o.dead_ctx = &f.q;
	for (int how = 0; how < 2; how++) {
		fixture_open(&f, &o);
		add_keys(f.q, "a", 2);
		IS(hold_keys(f.q, held, "a/1"), 1);
		IS(how ? wq_retry(f.q, &held[0]) : wq_settle(f.q, &held[0], WQ_FATAL), WQ_DEAD);
		keys_are(f.q, "a/2");
		fixture_close(&f, 0);
	}
}

/* [BOUND] Blocked keys count. */
static void blocked_keys_and_max_keys(void **state)
{
	struct fixture f;
	wq_item held[2];
	wq_options o = grouped(1);

	(void)state;
	o.max_keys = 2;
	fixture_open(&f, &o);
	add_keys(f.q, "a", 2);
	IS(wq_add_str(f.q, "b/1"), WQ_EFULL);
	IS((int64_t)snapshot(f.q).groups, 1);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_add_str(f.q, "b/1"), WQ_EFULL);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(wq_add_str(f.q, "b/1"), WQ_QUEUED);
	keys_are(f.q, "a/2 b/1");
	fixture_close(&f, 0);
}

/* Blocked keys are cancelled like all that are queued. */
static void cancelled(void **state)
{
	struct fixture f;
	wq_item held[2];
	unsigned was = 0;

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 4);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_cancel(f.q, "a/3", 3, &was), WQ_CANCELLED);
	IS(was, Q);
	IS(wq_len(f.q), 2);
	IS((int64_t)snapshot(f.q).blocked, 2);
	IS(wq_cancel(f.q, "a/2", 3, &was), WQ_CANCELLED);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS((int64_t)snapshot(f.q).blocked, 0);
	keys_are(f.q, "a/4");
	IS((int64_t)snapshot(f.q).groups, 0);
	fixture_close(&f, 0);
}

/* wq_free() counts them; memory comes back. */
static void freed(void **state)
{
	struct fixture f;
	wq_item held[2];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 4);
	add_keys(f.q, "b", 1);
	IS(hold_keys(f.q, held, "a/1 b/1"), 2);
	IS(wq_free(f.q), WQ_EBUSY);
	IS(wq_done_many(f.q, held, 2, NULL), 2);
	IS(hold_keys(f.q, held, "a/2"), 1);
	IS(wq_requeue(f.q, &held[0], WQ_TAIL), WQ_QUEUED);
	fixture_close(&f, 3);
}

/* ---- what a get costs ------------------------------------------------------------- */

uint32_t __real_wq__levels_first(const struct wq__levels_of *of, const struct wq__levels *l,
                                 int *level);
uint32_t __wrap_wq__levels_first(const struct wq__levels_of *of, const struct wq__levels *l,
                                 int *level);
void __real_wq__levels_remove(const struct wq__levels_of *of, struct wq__levels *l, int level,
                              uint32_t id);
void __wrap_wq__levels_remove(const struct wq__levels_of *of, struct wq__levels *l, int level,
                              uint32_t id);
void __real_wq__levels_push(const struct wq__levels_of *of, struct wq__levels *l, int level,
                            uint32_t id, enum wq_where where);
void __wrap_wq__levels_push(const struct wq__levels_of *of, struct wq__levels *l, int level,
                            uint32_t id, enum wq_where where);

static _Atomic int64_t looks;

uint32_t __wrap_wq__levels_first(const struct wq__levels_of *of, const struct wq__levels *l,
                                 int *level)
{
	looks++;
	return __real_wq__levels_first(of, l, level);
}

void __wrap_wq__levels_remove(const struct wq__levels_of *of, struct wq__levels *l, int level,
                              uint32_t id)
{
	looks++;
	__real_wq__levels_remove(of, l, level, id);
}

void __wrap_wq__levels_push(const struct wq__levels_of *of, struct wq__levels *l, int level,
                            uint32_t id, enum wq_where where)
{
	looks++;
	__real_wq__levels_push(of, l, level, id, where);
}

/* [LIMIT] Gets and dones look at as many groups and keys as ever, whatever is blocked. */
static void a_hundred_thousand_full_groups(void **state)
{
	enum { GROUPS = 100000 };
	struct fixture f;
	wq_item *held = malloc(GROUPS * sizeof *held), it;
	int64_t most = 0;
	char key[32];

	(void)state;
	assert_non_null(held);
	open_grouped(&f, 1);
	for (int i = 0; i < GROUPS; i++)
		for (int k = 0; k < 2; k++) {
			snprintf(key, sizeof key, "%d/%d", i, k);
			IS(wq_add_str(f.q, key), WQ_QUEUED);
		}
	for (int i = 0; i < GROUPS; i++)
		IS(wq_try_get(f.q, &held[i]), WQ_OK);
	nothing_is_ready(f.q);
	IS((int64_t)snapshot(f.q).blocked, GROUPS);
	add_keys(f.q, "free", 3);
	for (int i = 0; i < 3; i++) {
		looks = 0;
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
		most = looks > most ? looks : most;
	}
	nothing_is_ready(f.q);
	for (int i = 0; i < GROUPS; i++) {
		looks = 0;
		IS(wq_done(f.q, &held[i]), WQ_OK);
		IS(wq_try_get(f.q, &it), WQ_OK);
		most = looks > most ? looks : most;
		IS(wq_done(f.q, &it), WQ_OK);
	}
	print_message("at most %d steps\n", (int)most);
	assert_true(most <= 10);
	fixture_close(&f, 0);
	free(held);
}

/* ---- which group --------------------------------------------------------------------------- */

static void before_a_separator(void **state)
{
	static const struct {
		const char *key;
		char byte;
		uint32_t n;
		const char *group;
	} c[] = {
	    {"a/b/c", '/', 1, "a"},     {"a/b/c", '/', 2, "a/b"},
	    {"a/b/c", '/', 3, "a/b/c"}, {"a/b/c", '/', 99, "a/b/c"},
	    {"/a", '/', 1, ""},         {"//", '/', 2, "/"},
	    {"", '/', 1, ""},           {"abc", '/', 1, "abc"},
	    {"a:b", ':', 1, "a"},       {"a/", '/', 1, "a"},
	    {"a/", '/', 2, "a/"},
	};
	wq_key g;

	(void)state;
	for (size_t i = 0; i < LENGTH(c); i++) {
		wq_separator s = {.byte = c[i].byte, .n = c[i].n};

		g = (wq_key){"x", 99};
		IS(wq_group_before(&s, c[i].key, strlen(c[i].key), &g), WQ_OK);
		assert_int_equal(g.len, strlen(c[i].group));
		assert_ptr_equal(g.key, c[i].key);
	}
	IS(wq_group_before(&before_slash, NULL, 0, &g), WQ_OK);
	IS((int64_t)g.len, 0);
	IS(wq_group_before(NULL, "a", 1, &g), WQ_EINVAL);
	IS(wq_group_before(&before_slash, NULL, 1, &g), WQ_EINVAL);
	IS(wq_group_before(&before_slash, "a", 1, NULL), WQ_EINVAL);
	IS(wq_group_before(&(wq_separator){.byte = '/'}, "a", 1, &g), WQ_EINVAL);
	IS(wq_group_before(&(wq_separator){.byte = '\0', .n = 1}, "a\0b", 3, &g), WQ_OK);
	IS((int64_t)g.len, 1);
}

/* Empty keys, empty groups, and groups with any bytes. */
static void any_bytes(void **state)
{
	struct fixture f;
	wq_item it[4];

	(void)state;
	open_grouped(&f, 1);
	IS(wq_add(f.q, NULL, 0), WQ_QUEUED);
	IS(wq_add(f.q, "/x", 2), WQ_QUEUED); /* the empty group, too */
	IS(wq_add(f.q, "\0/1", 3), WQ_QUEUED);
	IS(wq_add(f.q, "\0\0/1", 4), WQ_QUEUED);
	IS(wq_add(f.q, "\0/2", 3), WQ_QUEUED);
	IS(wq_get_many_until(f.q, it, 4, WQ_NOWAIT), 3);
	IS((int64_t)it[0].len, 0);
	IS((int64_t)it[1].len, 3);
	IS((int64_t)it[2].len, 4);
	IS((int64_t)snapshot(f.q).blocked, 2);
	IS(wq_done_many(f.q, it, 3, NULL), 3);
	IS(wq_get_many_until(f.q, it, 4, WQ_NOWAIT), 2);
	IS(wq_done_many(f.q, it, 2, NULL), 2);
	fixture_close(&f, 0);
}

struct chooser {
	int answer;
	size_t from, len;
	bool outside;
};

static int choose(void *ctx, const void *key, size_t len, wq_key *group)
{
	const struct chooser *c = ctx;

	(void)len;
	*group = (wq_key){.key = c->outside ? (const char *)c : (const char *)key + c->from,
	                  .len = c->len};
	return c->answer;
}

/* A function that fails refuses the add; a group has to be a part of the key. */
static void functions_that_fail(void **state)
{
	struct chooser c = {.answer = WQ_EINTERRUPTED};
	wq_options o = {.group = choose, .group_ctx = &c};
	wq_key many[] = {{"a", 1}, {NULL, 1}, {"b", 1}};
	int outcomes[3];
	struct fixture f;

	(void)state;
	fixture_open(&f, &o);
	IS(wq_add_str(f.q, "abc"), WQ_EINTERRUPTED);
	IS(wq_add_after(f.q, "abc", 3, 1), WQ_EINTERRUPTED);
	IS(wq_add_limited(f.q, "abc", 3), WQ_EINTERRUPTED);
	IS(wq_add_many(f.q, many, 3, outcomes), 0);
	IS(outcomes[0], WQ_EINTERRUPTED);
	IS(outcomes[1], WQ_EINVAL);
	c = (struct chooser){.from = 1, .len = 3};
	IS(wq_add_str(f.q, "abc"), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "the group is not a part of the key");
	c = (struct chooser){.outside = true, .len = 1};
	IS(wq_add_str(f.q, "abc"), WQ_EINVAL);
	c = (struct chooser){.from = 4, .len = 1};
	IS(wq_add_str(f.q, "abc"), WQ_EINVAL);
	c = (struct chooser){.len = SIZE_MAX};
	IS(wq_add_str(f.q, "abc"), WQ_EINVAL);
	c = (struct chooser){.from = 1, .len = SIZE_MAX};
	IS(wq_add_str(f.q, "abc"), WQ_EINVAL);
	IS(count_keys(f.q), 0);
	IS((int64_t)snapshot(f.q).groups, 0);
	c = (struct chooser){.from = 1, .len = 2};
	IS(wq_add_str(f.q, "abc"), WQ_QUEUED);
	assert_string_equal(look(f.q, "abc").group, "bc");
	c = (struct chooser){.from = 3, .len = 0};
	IS(wq_add_str(f.q, "xyz"), WQ_QUEUED);
	assert_string_equal(look(f.q, "xyz").group, "");
	fixture_close(&f, 2);
}

/* A function that changes its mind: the group of the first add counts while the key is there. */
static void functions_that_change_their_mind(void **state)
{
	struct chooser c = {.len = 1};
	wq_options o = {.group = choose, .group_ctx = &c, .group_limit = 1, .priorities = 1};
	struct fixture f;
	wq_item held[4];

	(void)state;
	fixture_open(&f, &o);
	add_at(f.q, "ax", 0);
	add_at(f.q, "ay", 0);
	c.from = 1; /* groups "x" and "y" from now on */
	for (int p = 1; p < 20; p++)
		IS(add_at(f.q, "ay", p), WQ_MERGED);
	assert_string_equal(look(f.q, "ay").group, "a");
	IS((int64_t)snapshot(f.q).groups, 1);
	IS(hold_keys(f.q, held, "ay"), 1);
	IS(add_at(f.q, "ay", 300), WQ_MARKED);
	IS(add_remind(f.q, "ay", 301, NULL, MS), WQ_DELAYED);
	IS((int64_t)snapshot(f.q).groups, 2);
	wq_manual_clock_advance(f.mc, MS);
	IS(look(f.q, "ay").priority, 301);
	IS((int64_t)snapshot(f.q).groups, 1);
	IS(wq_done(f.q, &held[0]), WQ_QUEUED);
	keys_are(f.q, "ay ax");
	IS((int64_t)snapshot(f.q).groups, 0);
	add_at(f.q, "ay", 0);
	assert_string_equal(look(f.q, "ay").group, "y");
	fixture_close(&f, 1);
}

/* ---- groups that vanish --------------------------------------------------------------------- */

/* Memory of groups and of their levels comes back. */
static void memory_comes_back(void **state)
{
	wq_options o = grouped(1);
	struct fixture f;
	int64_t first = 0, peak = 0;
	char key[64];
	wq_item it;

	(void)state;
	o.priorities = 1;
	fixture_open(&f, &o);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 3000; i++) {
			snprintf(key, sizeof key, "%d-%d/x", round, i);
			IS(add_at(f.q, key, 0), WQ_QUEUED);
		}
		/* one with many levels */
		for (int i = 0; i < 300; i++) {
			snprintf(key, sizeof key, "%d/%d", round, i);
			IS(add_at(f.q, key, i), WQ_QUEUED);
		}
		IS((int64_t)snapshot(f.q).groups, 3001);
		peak = f.mem.bytes > peak ? f.mem.bytes : peak;
		while (wq_try_get(f.q, &it) == WQ_OK)
			IS(wq_done(f.q, &it), WQ_OK);
		IS(wq_len(f.q), 0);
		IS((int64_t)snapshot(f.q).groups, 0);
		/* Some groups without keys are kept, and some runs of the slab. */
		if (round == 0)
			first = f.mem.bytes;
		else
			assert_true(f.mem.bytes <= first + first / 4);
	}
	assert_true(first < peak * 3 / 4);
	fixture_close(&f, 0);
}

/* Groups that are kept for their next key have no tables of many levels. */
static void kept_groups_are_small(void **state)
{
	enum { GROUPS = 200, LEVELS = 20, TABLES = 7000 };
	wq_options o = grouped(0);
	struct fixture f;
	int64_t used;
	char key[64];
	wq_item it;

	(void)state;
	o.priorities = 1;
	fixture_open(&f, &o);
	for (int i = 0; i < GROUPS * LEVELS; i++) {
		snprintf(key, sizeof key, "%d/%d", i % GROUPS, i / GROUPS);
		IS(add_at(f.q, key, i / GROUPS), WQ_QUEUED);
	}
	used = f.mem.bytes;
	while (wq_try_get(f.q, &it) == WQ_OK)
		IS(wq_done(f.q, &it), WQ_OK);
	assert_true(used - f.mem.bytes >= (int64_t)GROUPS * TABLES);
	IS(add_at(f.q, "0/1", 3), WQ_QUEUED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	IS(it.priority, 3);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

/* A group lives as long as something is remembered of a key, and its limit counts on. */
static void remembered_keys_keep_their_group(void **state)
{
	struct fixture f;
	wq_item held[2];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 1);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_retry(f.q, &held[0]), WQ_DELAYED);
	IS(wq_cancel(f.q, "a/1", 3, NULL), WQ_CANCELLED);
	IS((int64_t)snapshot(f.q).groups, 1);
	IS(wq_forget(f.q, "a/1", 3), WQ_OK);
	IS((int64_t)snapshot(f.q).groups, 0);
	fixture_close(&f, 0);
}

/* ---- looking --------------------------------------------------------------- */

static void the_busiest(void **state)
{
	struct fixture f;
	wq_snapshot s;
	char name[300];
	wq_item held[4];

	(void)state;
	open_grouped(&f, 1);
	s = snapshot(f.q);
	IS((int64_t)s.groups, 0);
	IS(s.nbusiest, 0);
	for (int i = 1; i <= 20; i++) {
		snprintf(name, sizeof name, "g%d", i);
		add_keys(f.q, name, i);
	}
	s = snapshot(f.q);
	IS((int64_t)s.groups, 20);
	IS((int64_t)s.blocked, 210 - 20);
	IS(s.nbusiest, WQ_BUSIEST);
	for (int i = 0; i < WQ_BUSIEST; i++) {
		snprintf(name, sizeof name, "g%d", 20 - i);
		assert_string_equal(s.busiest[i].name, name);
		IS((int64_t)s.busiest[i].len, (int64_t)strlen(name));
		IS((int64_t)s.busiest[i].queued, 20 - i);
		IS((int64_t)s.busiest[i].running, 0);
	}
	IS(wq_get_many_until(f.q, held, 4, WQ_NOWAIT), 4);
	s = snapshot(f.q);
	IS((int64_t)s.busiest[7].queued, 13);
	IS(wq_done_many(f.q, held, 4, NULL), 4);
	memset(name, 'n', sizeof name);
	strcpy(name + 200, "/");
	for (int i = 0; i < 30; i++) {
		snprintf(name + 201, 20, "%d", i);
		IS(wq_add_str(f.q, name), WQ_QUEUED);
	}
	s = snapshot(f.q);
	IS((int64_t)s.busiest[0].len, 200);
	IS((int64_t)strlen(s.busiest[0].name), WQ_SAMPLE_BYTES - 1);
	IS((int64_t)s.busiest[0].queued, 30);
	IS(s.nlevels, 0); /* there are no priorities */
	fixture_close(&f, -1);
}

/* Several thousand groups are looked at in several holds of the lock. */
static void the_busiest_of_many(void **state)
{
	struct fixture f;
	wq_snapshot s;
	char key[32];

	(void)state;
	open_grouped(&f, 1);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "%d/1", i);
		wq_add_str(f.q, key);
	}
	wq_add_str(f.q, "4711/2");
	s = snapshot(f.q);
	IS((int64_t)s.groups, 5000);
	IS(s.nbusiest, WQ_BUSIEST);
	assert_string_equal(s.busiest[0].name, "4711");
	IS((int64_t)s.busiest[0].queued, 2);
	fixture_close(&f, 5001);
}

/* ---- random steps ---------------------------------------------------------- */

static uint64_t seed;

/* Limits hold, and what is counted as blocked is what no get sees. */
static void random_steps(void **state)
{
	enum { PARTS = 5, EACH = 6, HELD = 12 };
	struct fixture f;
	wq_item held[HELD];
	int running[PARTS] = {0};
	size_t nheld = 0;
	uint64_t rng = seed;
	wq_options o = grouped(2);

	(void)state;
	o.priorities = 1;
	o.limiter = wq_limiter_exponential(1, 5);
	fixture_open(&f, &o);
	for (int step = 0; step < 20000; step++) {
		char key[16];
		size_t h = nheld > 0 ? (size_t)rng_below(&rng, nheld) : 0;
		int group = nheld > 0 ? *(const char *)held[h].key - '0' : 0;
		wq_add_options add = {.priority = (int)rng_below(&rng, 12),
		                      .after_ns =
		                          rng_below(&rng, 3) ? 0 : (int64_t)rng_below(&rng, 9),
		                      .policy = (enum wq_policy)rng_below(&rng, 5)};
		wq_snapshot s;
		uint64_t blocked = 0, queued[PARTS] = {0};

		snprintf(key, sizeof key, "%d/%d", (int)rng_below(&rng, PARTS),
		         (int)rng_below(&rng, EACH));
		wq_manual_clock_advance(f.mc, (int64_t)rng_below(&rng, 3));
		switch (rng_below(&rng, 12)) {
		case 0:
		case 1:
		case 2:
			assert_true(wq_add_with(f.q, key, strlen(key), &add) > 0);
			break;
		case 3:
			wq_cancel(f.q, key, strlen(key), NULL);
			break;
		case 4:
		case 5:
		case 6:
		case 7:
			if (nheld < HELD && wq_try_get(f.q, &held[nheld]) == WQ_OK)
				running[*(const char *)held[nheld++].key - '0']++;
			break;
		default:
			if (nheld == 0)
				break;
			switch (rng_below(&rng, 5)) {
			case 0:
				assert_true(wq_retry(f.q, &held[h]) >= 0);
				break;
			case 1:
				assert_true(wq_requeue(f.q, &held[h], WQ_HEAD) >= 0);
				break;
			case 2:
				assert_true(wq_requeue(f.q, &held[h], WQ_TAIL) >= 0);
				break;
			case 3:
				assert_true(wq_settle(f.q, &held[h], WQ_FATAL) >= 0);
				break;
			default:
				assert_true(wq_done(f.q, &held[h]) >= 0);
				break;
			}
			running[group]--;
			held[h] = held[--nheld];
		}
		s = snapshot(f.q);
		IS((int64_t)s.running, (int64_t)nheld);
		for (uint32_t i = 0; i < s.nbusiest; i++) {
			int g = *s.busiest[i].name - '0';

			queued[g] = s.busiest[i].queued;
			IS((int64_t)s.busiest[i].running, running[g]);
		}
		for (int g = 0; g < PARTS; g++) {
			uint64_t places = (uint64_t)(2 - running[g]);

			assert_true(running[g] <= 2);
			blocked += queued[g] > places ? queued[g] - places : 0;
		}
		IS((int64_t)s.blocked, (int64_t)blocked);
		IS(s.oldest_queued.age_ns >= 0, s.queued > s.blocked);
	}
	while (nheld > 0)
		assert_true(wq_settle(f.q, &held[--nheld], WQ_DONE) >= 0);
	fixture_close(&f, -1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(groups_take_turns),
	    cmocka_unit_test(a_million_and_ten),
	    cmocka_unit_test(weights),
	    cmocka_unit_test(levels_and_turns),
	    cmocka_unit_test(many_levels_in_groups),
	    cmocka_unit_test(at_most_so_many),
	    cmocka_unit_test(limits_by_name),
	    cmocka_unit_test(settings_out_of_range),
	    cmocka_unit_test(dirty_keys),
	    cmocka_unit_test(requeued),
	    cmocka_unit_test(dead_keys),
	    cmocka_unit_test(blocked_keys_and_max_keys),
	    cmocka_unit_test(cancelled),
	    cmocka_unit_test(freed),
	    cmocka_unit_test(a_hundred_thousand_full_groups),
	    cmocka_unit_test(before_a_separator),
	    cmocka_unit_test(any_bytes),
	    cmocka_unit_test(functions_that_fail),
	    cmocka_unit_test(functions_that_change_their_mind),
	    cmocka_unit_test(memory_comes_back),
	    cmocka_unit_test(kept_groups_are_small),
	    cmocka_unit_test(remembered_keys_keep_their_group),
	    cmocka_unit_test(the_busiest),
	    cmocka_unit_test(the_busiest_of_many),
	    cmocka_unit_test(random_steps),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
