/*
 * Priorities and values against a model: for each key what its copy, its hold and its reminder
 * have. Random adds, reminders, cancels, ends of holds and steps of time; after each, a walk shows
 * what the model says, and an item has the priority and the value of its hold.
 */
#include "rich_rig.h"

enum { KEYS = 7, HELD = 4, LONGEST = 24, DELAY = 10 };

static uint64_t seed;

struct copy {
	bool there;
	bool waits;
	int64_t due_ns;
	int priority;
	bool valued;
	char value[LONGEST + 1];
};

struct key {
	struct copy main, hold, reminder;
	bool cancelled; /* the hold */
	wq_item item;
};

struct scene {
	struct fixture f;
	struct key key[KEYS];
	uint64_t rng;
	uint64_t merge_failed;
	int nheld;
};

/* Joined by commas; too long fails. */
static int64_t join(void *ctx, const void *old, size_t old_len, const void *add, size_t add_len,
                    void *out)
{
	(void)ctx;
	if (old_len + 1 + add_len > LONGEST)
		return WQ_ETOOLONG;
	return wq_merge_append(",", old, old_len, add, add_len, out);
}

/* The value of `to`, followed by that of `add`. False: too long, and nothing has changed. */
static bool merge_value(struct copy *to, const struct copy *add)
{
	size_t len = strlen(to->value);

	if (!add->valued)
		return true;
	if (!to->valued) {
		to->valued = true;
		strcpy(to->value, add->value);
		return true;
	}
	if (len + 1 + strlen(add->value) > LONGEST)
		return false;
	to->value[len] = ',';
	strcpy(to->value + len + 1, add->value);
	return true;
}

static int higher(int a, int b)
{
	return a > b ? a : b;
}

static int64_t now(const struct scene *s)
{
	return wq_now(s->f.q);
}

/* ---- what time does ----------------------------------------------------------- */

static void reminder_due(struct scene *s, struct key *k)
{
	struct copy r = k->reminder;

	k->reminder = (struct copy){.there = false};
	if (k->hold.there)
		r.priority = higher(r.priority, k->hold.priority);
	r.waits = false;
	if (!k->main.there) {
		k->main = r;
		return;
	}
	s->merge_failed += !merge_value(&k->main, &r);
	k->main.priority = higher(k->main.priority, r.priority);
	k->main.waits = false;
}

static void come_due(struct scene *s)
{
	for (int i = 0; i < KEYS; i++) {
		struct key *k = &s->key[i];

		if (k->main.there && k->main.waits && k->main.due_ns <= now(s))
			k->main.waits = false;
		if (k->reminder.there && k->reminder.due_ns <= now(s))
			reminder_due(s, k);
	}
}

/* ---- calls ----------------------------------------------------------------------- */

static struct copy random_copy(struct scene *s)
{
	struct copy c = {.there = true, .priority = (int)rng_below(&s->rng, 14) - 7};

	c.valued = rng_below(&s->rng, 3) > 0;
	if (c.valued)
		snprintf(c.value, sizeof c.value, "%d", (int)rng_below(&s->rng, 1000));
	return c;
}

static void add(struct scene *s, int i)
{
	struct key *k = &s->key[i];
	struct copy c = random_copy(s), before;
	bool limited = rng_below(&s->rng, 4) == 0;
	int64_t after = limited ? DELAY : (int64_t)rng_below(&s->rng, 3) * 8;
	bool remind = after > 0 && !limited && rng_below(&s->rng, 3) == 0;
	struct copy *to = remind ? &k->reminder : &k->main;
	wq_add_options o = {.priority = c.priority,
	                    .value = c.valued ? c.value : NULL,
	                    .value_len = strlen(c.value),
	                    .after_ns = limited ? 0 : after,
	                    .limited = limited,
	                    .policy = remind ? WQ_REMIND : WQ_MIN};
	int rc = wq_add_with(s->f.q, (char[]){(char)('a' + i), '\0'}, 1, &o);

	c.waits = after > 0;
	c.due_ns = now(s) + after;
	before = *to;
	if (!before.there) {
		*to = c;
		IS(rc, after > 0 ? WQ_DELAYED : k->hold.there ? WQ_MARKED : WQ_QUEUED);
		return;
	}
	if (!merge_value(to, &c)) {
		IS(rc, WQ_ETOOLONG);
		*to = before;
		return;
	}
	assert_true(rc > 0);
	to->priority = higher(before.priority, c.priority);
	if (!c.waits)
		to->waits = false;
	if (to->waits && c.due_ns < to->due_ns)
		to->due_ns = c.due_ns;
}

static void cancel(struct scene *s, int i)
{
	struct key *k = &s->key[i];
	bool any = k->main.there || k->hold.there || k->reminder.there;

	IS(wq_cancel(s->f.q, (char[]){(char)('a' + i), '\0'}, 1, NULL),
	   any ? WQ_CANCELLED : WQ_ENOTFOUND);
	k->main.there = k->reminder.there = false;
	k->cancelled = k->hold.there;
}

static bool is_queued(const struct key *k)
{
	return k->main.there && !k->main.waits && !k->hold.there;
}

static void get(struct scene *s)
{
	struct key *k;
	wq_item it;
	bool any = false;

	for (int i = 0; i < KEYS; i++)
		any |= is_queued(&s->key[i]);
	if (!any) {
		nothing_is_ready(s->f.q);
		return;
	}
	IS(wq_try_get(s->f.q, &it), WQ_OK);
	k = &s->key[*(const char *)it.key - 'a'];
	assert_true(is_queued(k));
	for (int i = 0; i < KEYS; i++)
		if (is_queued(&s->key[i]))
			assert_true(s->key[i].main.priority <= k->main.priority);
	k->hold = k->main;
	k->main.there = false;
	k->cancelled = false;
	k->item = it;
	s->nheld++;
}

/* [KEPT] [AGAIN] The hold's priority and value, and what came since. */
static void put_back(struct scene *s, struct key *k, int64_t due_ns)
{
	struct copy back = k->hold;

	back.waits = due_ns > now(s);
	back.due_ns = due_ns;
	if (k->main.there) {
		back.priority = higher(back.priority, k->main.priority);
		if (!merge_value(&back, &k->main)) {
			s->merge_failed++;
			strcpy(back.value, k->main.value);
		}
		back.waits &= k->main.waits;
		if (k->main.waits && k->main.due_ns < due_ns)
			back.due_ns = k->main.due_ns;
	}
	k->main = back;
}

static void end(struct scene *s, struct key *k)
{
	int64_t after = (int64_t)rng_below(&s->rng, 2) * 6;

	if (!k->hold.there)
		return;
	if (k->hold.valued)
		assert_string_equal(k->item.value, k->hold.value);
	else
		assert_null(k->item.value);
	IS(k->item.priority, k->hold.priority);
	switch (rng_below(&s->rng, 5)) {
	case 0:
		assert_true(wq_done(s->f.q, &k->item) >= 0);
		break;
	case 1:
		IS(wq_requeue(s->f.q, &k->item, rng_below(&s->rng, 2) ? WQ_HEAD : WQ_TAIL),
		   WQ_QUEUED);
		put_back(s, k, now(s));
		break;
	case 2:
		assert_true(wq_retry(s->f.q, &k->item) >= 0);
		if (!k->cancelled)
			put_back(s, k, now(s) + DELAY);
		break;
	case 3:
		assert_true(wq_settle(s->f.q, &k->item, wq_again_after(after)) >= 0);
		if (!k->cancelled)
			put_back(s, k, now(s) + after);
		break;
	default:
		IS(wq_settle(s->f.q, &k->item, WQ_FATAL) >= 0, 1);
		break;
	}
	k->hold.there = false;
	s->nheld--;
}

/* ---- looking ---------------------------------------------------------------------- */

static unsigned state_of_key(const struct key *k)
{
	unsigned state = k->hold.there ? R : 0;

	if (k->main.there)
		state |= k->main.waits ? W : k->hold.there ? RD : Q;
	return k->reminder.there ? state | W : state;
}

/* A walk shows this key. */
static int check_key(void *ctx, const wq_key_info *info)
{
	const struct key *k = &((struct scene *)ctx)->key[*(const char *)info->key - 'a'];
	const struct copy *c = k->main.there ? &k->main : k->hold.there ? &k->hold : &k->reminder;

	IS(info->state & ~(unsigned)WQ_STATE_RETRYING, state_of_key(k));
	IS(info->priority, c->priority);
	if (c->valued)
		assert_string_equal(info->value, c->value);
	else
		assert_null(info->value);
	IS((int64_t)info->value_len, c->valued ? (int64_t)strlen(c->value) : 0);
	return 0;
}

static void check(struct scene *s)
{
	int there = 0;

	for (int i = 0; i < KEYS; i++)
		there += state_of_key(&s->key[i]) != 0;
	IS(wq_walk(s->f.q, check_key, s), there);
	IS((int64_t)snapshot(s->f.q).merge_failed, (int64_t)s->merge_failed);
}

static void run(wq_options o)
{
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	s->rng = seed;
	o.priorities = 1;
	o.values = 1;
	o.merge = join;
	o.limiter = wq_limiter_exponential(DELAY, DELAY);
	fixture_open(&s->f, &o);
	for (int step = 0; step < 5000; step++) {
		int i = (int)rng_below(&s->rng, KEYS);

		switch (rng_below(&s->rng, 16)) {
		case 0:
			cancel(s, i);
			break;
		case 1:
		case 2:
		case 3:
			wq_manual_clock_advance(s->f.mc, (int64_t)rng_below(&s->rng, 8));
			come_due(s);
			break;
		case 4:
		case 5:
		case 6:
			if (s->nheld < HELD)
				get(s);
			break;
		case 7:
		case 8:
		case 9:
			end(s, &s->key[i]);
			break;
		default:
			add(s, i);
			break;
		}
		check(s);
	}
	assert_true(s->merge_failed > 10);
	for (int i = 0; i < KEYS; i++)
		end(s, &s->key[i]);
	fixture_close(&s->f, -1);
	free(s);
}

static void keys(void **state)
{
	(void)state;
	run((wq_options){.seed = 1});
}

static void keys_with_a_bound(void **state)
{
	(void)state;
	run((wq_options){.seed = 1, .within = 1, .name = "model"});
}

static void keys_in_groups(void **state)
{
	(void)state;
	run((wq_options){.seed = 1, .group = wq_group_before, .group_ctx = &before_slash});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys),
	    cmocka_unit_test(keys_with_a_bound),
	    cmocka_unit_test(keys_in_groups),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("rich model", tests, NULL, NULL);
}
