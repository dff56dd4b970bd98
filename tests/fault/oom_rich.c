/*
 * Every allocation fails once, in what priorities, groups and values need: levels in tables, groups
 * and their levels, buckets, values and merged values. As oom.c, with a script of its own: a refusal
 * has changed nothing, and holds end in any case; a merge for which there is no memory then is
 * counted, and what came during the hold stays. [WHOLE] [AGAIN]
 */
#include "../support/support.h"

#include <wq/snapshot.h>

enum { KEYS = 130, GROUPS = 7, LONGEST = 600 };

struct key {
	char name[24];
	unsigned state;
	int priority;
	char value[4 * LONGEST];
	size_t len;
	int holds; /* that have ended */
};

struct script {
	struct fixture f;
	struct key key[KEYS];
	int64_t refused, lost;
};

static wq_separator dash = {.byte = '-', .n = 1};

/* Some groups have rates. */
static void settings(void *ctx, const wq_key *group, wq_group_settings *s)
{
	(void)ctx;
	if (group->len % 2) {
		s->rate = 10;
		s->burst = 2;
	}
}

static int show(void *ctx, const wq_key_info *info)
{
	const struct script *s = ctx;
	const struct key *k = &s->key[atoi(strchr(info->key, '-') + 1)];

	assert_string_equal(info->key, k->name);
	IS(info->state & ~(unsigned)WQ_STATE_RETRYING, k->state);
	IS(info->priority, k->priority);
	assert_int_equal(info->value_len, k->len);
	assert_memory_equal(info->value, k->value, k->len);
	assert_int_equal(info->group.len, strchr(k->name, '-') - k->name);
	return 0;
}

/* Every key is as the model says, and so are the counts. */
static void check_all(struct script *s)
{
	int64_t queued = 0, waiting = 0, all = 0;
	wq_snapshot now;

	for (int i = 0; i < KEYS; i++) {
		queued += s->key[i].state == WQ_STATE_QUEUED;
		waiting += s->key[i].state == WQ_STATE_WAITING;
		all += s->key[i].state != 0;
	}
	IS(wq_walk(s->f.q, show, s), all);
	IS(wq_len(s->f.q), queued);
	IS(wq_snapshot_take(s->f.q, &now), WQ_OK);
	IS((int64_t)now.waiting, waiting);
	IS((int64_t)now.queued, queued);
	assert_true(now.blocked <= now.queued);
	assert_true(now.groups <= GROUPS + 1); /* and that of remembered_key() */
}

/* From now on there is memory. */
static void refused(struct script *s)
{
	assert_true(s->f.mem.failed > 0);
	s->f.mem.fail_at = -1;
	s->refused++;
	check_all(s);
}

static int call_add(struct script *s, int i, int priority, const char *value, size_t len)
{
	const struct key *k = &s->key[i];
	wq_add_options o = {.priority = priority,
	                    .value = value,
	                    .value_len = len,
	                    .limited = i % 4 == 1,
	                    .after_ns = i % 4 == 2 ? WQ_SECOND : 0};

	return wq_add_with(s->f.q, k->name, strlen(k->name), &o);
}

static void add(struct script *s, int i, int priority, size_t len)
{
	struct key *k = &s->key[i];
	char value[LONGEST];
	int rc;

	memset(value, 'a' + i % 26, len);
	rc = call_add(s, i, priority, value, len);
	if (rc == WQ_ENOMEM) {
		refused(s);
		rc = call_add(s, i, priority, value, len);
	}
	if (k->state == 0) {
		k->state = i % 4 == 1 || i % 4 == 2 ? WQ_STATE_WAITING : WQ_STATE_QUEUED;
		k->priority = priority;
		IS(rc, k->state == WQ_STATE_QUEUED ? WQ_QUEUED : WQ_DELAYED);
	} else {
		assert_true(rc == WQ_MERGED || rc == WQ_KEPT || rc == WQ_MOVED);
		k->priority = priority > k->priority ? priority : k->priority;
		k->value[k->len++] = ',';
	}
	memcpy(k->value + k->len, value, len);
	k->len += len;
}

/* A key with failures that are only remembered, of a group that has no other. */
static void remembered_key(struct script *s)
{
	wq_add_options o = {.limited = 1, .policy = WQ_REMIND, .value = "v", .value_len = 1};
	int rc = wq_add_with(s->f.q, "alone-x", 7, &o);

	if (rc == WQ_ENOMEM) {
		s->f.mem.fail_at = -1;
		s->refused++;
		IS(wq_state(s->f.q, "alone-x", 7), 0);
		rc = wq_add_with(s->f.q, "alone-x", 7, &o);
	}
	IS(rc, WQ_DELAYED);
	IS(wq_cancel(s->f.q, "alone-x", 7, NULL), WQ_CANCELLED);
}

static void check_item(const struct script *s, const wq_item *it, const struct key *k)
{
	(void)s;
	assert_string_equal(it->key, k->name);
	IS(it->priority, k->priority);
	assert_int_equal(it->value_len, k->len);
	assert_memory_equal(it->value, k->value, k->len);
}

static uint64_t merges_lost(struct script *s)
{
	wq_snapshot now;

	IS(wq_snapshot_take(s->f.q, &now), WQ_OK);
	return now.merge_failed;
}

/* The first hold: something comes meanwhile, and it is retried. */
static void first_hold(struct script *s, const wq_item *it, struct key *k)
{
	wq_add_options o = {.priority = k->priority + 500, .value = "x", .value_len = 1};
	uint64_t lost = merges_lost(s);
	int rc = wq_add_with(s->f.q, it->key, it->len, &o);

	if (rc == WQ_ENOMEM) {
		s->f.mem.fail_at = -1;
		s->refused++;
		IS(wq_state(s->f.q, it->key, it->len), WQ_STATE_RUNNING);
		rc = wq_add_with(s->f.q, it->key, it->len, &o);
	}
	IS(rc, WQ_MARKED);
	check_item(s, it, k);
	IS(wq_retry(s->f.q, it), WQ_QUEUED);
	k->priority += 500;
	if (merges_lost(s) > lost) {
		assert_true(s->f.mem.failed > 0);
		s->lost++;
		k->len = 0;
	} else {
		k->value[k->len++] = ',';
	}
	k->value[k->len++] = 'x';
	if (s->lost > 0)
		s->f.mem.fail_at = -1;
}

static void work(struct script *s)
{
	int left = KEYS;
	wq_item it;

	for (int round = 0; left > 0; round++) {
		assert_true(round < 1000);
		while (wq_try_get(s->f.q, &it) == WQ_OK) {
			struct key *k = &s->key[atoi(strchr(it.key, '-') + 1)];
			int rc;

			check_item(s, &it, k);
			switch (k->holds++) {
			case 0:
				first_hold(s, &it, k);
				break;
			case 1:
				rc = wq_settle(s->f.q, &it, wq_again_after(WQ_SECOND));
				/* Without memory to wait it is queued at once. */
				assert_true(rc == WQ_DELAYED ||
				            (rc == WQ_QUEUED && s->f.mem.failed > 0));
				break;
			case 2:
				IS(wq_requeue(s->f.q, &it, WQ_HEAD), WQ_QUEUED);
				break;
			default:
				IS(wq_settle(s->f.q, &it, WQ_DONE), WQ_OK);
				left--;
			}
		}
		wq_manual_clock_advance(s->f.mc, WQ_SECOND / 10);
	}
}

static bool aging; /* of the queue that is tested */

static bool run(int64_t n, bool and_later)
{
	wq_options o = {.priorities = 1,
	                .aging_ns = aging ? WQ_SECOND : 0,
	                .values = 1,
	                .merge = wq_merge_append,
	                .merge_ctx = ",",
	                .group = wq_group_before,
	                .group_ctx = &dash,
	                .group_limit = 2,
	                .group_setup = settings,
	                .limiter = wq_limiter_exponential(WQ_SECOND, WQ_SECOND),
	                .seed = 7};
	struct script *s = calloc(1, sizeof *s);
	bool hit;

	assert_non_null(s);
	fixture_open(&s->f, &o);
	s->f.mem.fail_at = s->f.mem.calls + n;
	s->f.mem.fail_on = and_later;
	for (int i = 0; i < KEYS; i++) {
		snprintf(s->key[i].name, sizeof s->key[i].name, "%d-%d", i % GROUPS * 7, i);
		add(s, i, i * 131 % 3000 - 1500, (size_t)(i * 37) % LONGEST);
	}
	remembered_key(s);
	for (int i = 0; i < KEYS; i++)
		add(s, i, i * 373 % 3000 - 1500, (size_t)(i * 11) % LONGEST);
	check_all(s);
	work(s);
	hit = s->f.mem.failed > 0;
	if (hit)
		assert_true(s->refused + s->lost > 0 || n > 0);
	s->f.mem.fail_at = -1;
	IS(wq_len(s->f.q), 0);
	IS(wq_forget(s->f.q, "alone-x", 7), WQ_OK);
	IS(count_keys(s->f.q), 0);
	wq_manual_clock_advance(s->f.mc, WQ_SECOND);
	IS(wq_drain_until(s->f.q, 0, NULL, NULL), WQ_OK);
	fixture_close(&s->f, 0);
	free(s);
	return hit;
}

static void each_allocation(void **state)
{
	(void)state;
	aging = false;
	memory_fail_each(run, 100);
}

static void each_allocation_with_aging(void **state)
{
	(void)state;
	aging = true;
	memory_fail_each(run, 100);
}

/* wq_new() with all of it. */
static bool make(int64_t n, bool and_later)
{
	struct memory mem;
	wq_allocator a;
	wq_options o = {.priorities = 1,
	                .values = 1,
	                .merge = wq_merge_or,
	                .group = wq_group_before,
	                .group_ctx = &dash,
	                .name = "rich",
	                .allocator = &a};
	wq_queue *q = NULL;
	int rc;

	memory_init(&mem);
	a = memory_allocator(&mem);
	mem.fail_at = n;
	mem.fail_on = and_later;
	rc = wq_new(&q, &o);
	if (rc == WQ_OK) {
		assert_true(mem.failed == 0);
		IS(wq_free(q), 0);
	} else {
		IS(rc, WQ_ENOMEM);
		assert_null(q);
	}
	memory_balanced(&mem);
	return rc != WQ_OK;
}

static void each_allocation_of_wq_new(void **state)
{
	(void)state;
	memory_fail_each(make, 5);
}

/* A function that changes its mind, and no memory for the levels of the key's own group. */
static int by_mood(void *ctx, const void *key, size_t len, wq_key *group)
{
	(void)len;
	*group = (wq_key){.key = (const char *)key + *(int *)ctx, .len = 1};
	return WQ_OK;
}

static bool change(int64_t n, bool and_later)
{
	int mood = 0;
	wq_options o = {.priorities = 1, .group = by_mood, .group_ctx = &mood};
	struct fixture f;
	wq_item it;
	bool hit;
	int highest = 0;

	fixture_open(&f, &o);
	for (int i = 0; i < 8; i++) /* as many levels as fit without memory */
		IS(wq_add_with(f.q, "ab", 2, &(wq_add_options){.priority = i}),
		   i ? WQ_MERGED : WQ_QUEUED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	mood = 1;
	/* Its reminder is of another group, which has that level. */
	IS(wq_add_with(
	       f.q, "ab", 2,
	       &(wq_add_options){.priority = 9000, .after_ns = WQ_SECOND, .policy = WQ_REMIND}),
	   WQ_DELAYED);
	f.mem.fail_at = f.mem.calls + n;
	f.mem.fail_on = and_later;
	for (int i = 1; i < 20; i++) {
		int rc = wq_add_with(f.q, "ab", 2, &(wq_add_options){.priority = 100 * i});

		if (rc == WQ_ENOMEM)
			continue;
		assert_true(rc > 0);
		highest = 100 * i;
	}
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	assert_true(wq_settle(f.q, &it, wq_again_after(0)) >= 0);
	hit = f.mem.failed > 0;
	f.mem.fail_at = -1;
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_true(it.priority == 9000 || (hit && it.priority == (highest ? highest : 7)));
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
	return hit;
}

static void no_memory_for_a_changed_mind(void **state)
{
	(void)state;
	memory_fail_each(change, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_allocation),
	    cmocka_unit_test(each_allocation_with_aging),
	    cmocka_unit_test(each_allocation_of_wq_new),
	    cmocka_unit_test(no_memory_for_a_changed_mind),
	};

	return cmocka_run_group_tests_name("oom of riches", tests, NULL, NULL);
}
