/*
 * [WALK] Every key that lives throughout is shown exactly once, whatever
 * happens to the others meanwhile; the callback may use the queue.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { STABLE = 3000, GUESTS = 20000 };

/* Keys are numbers: below STABLE they stay, above they come and go. */
struct view {
	struct fixture *f;
	uint64_t rng;
	unsigned seen[STABLE];
	unsigned guest_seen[GUESTS];
	unsigned guest_lives[GUESTS];
	unsigned shown;
	unsigned churn; /* changes that a shown key causes; or: when the burst comes */
	unsigned wrong;
	bool shrink; /* the guests go in a burst instead of coming */
};

static int add_number(wq_queue *q, uint32_t n)
{
	return wq_add(q, &n, sizeof n);
}

static int see(struct view *v, const wq_key_info *info)
{
	uint32_t n;

	v->shown++;
	if (info->len != sizeof n) {
		v->wrong++;
		return 0;
	}
	memcpy(&n, info->key, sizeof n);
	if (n < STABLE)
		v->seen[n]++;
	else if (n < STABLE + GUESTS)
		v->guest_seen[n - STABLE]++;
	else
		v->wrong++;
	return 0;
}

/*
 * Adds and ends guests from inside the callback. The stable keys are held, so
 * that the line consists of guests alone.
 */
static int churn(void *ctx, const wq_key_info *info)
{
	struct view *v = ctx;
	wq_item it;

	see(v, info);
	for (unsigned i = 0; i < v->churn; i++) {
		uint32_t g = (uint32_t)rng_below(&v->rng, GUESTS);

		if (rng_below(&v->rng, 2)) {
			if (add_number(v->f->q, STABLE + g) == WQ_QUEUED)
				v->guest_lives[g]++;
		} else if (wq_try_get(v->f->q, &it) == WQ_OK) {
			wq_done(v->f->q, &it);
		}
	}
	return 0;
}

static struct view *view_new(struct fixture *f, uint64_t seed)
{
	struct view *v = calloc(1, sizeof *v);

	assert_non_null(v);
	v->f = f;
	v->rng = seed;
	return v;
}

static void hold_stable(wq_queue *q, wq_item *items)
{
	for (uint32_t i = 0; i < STABLE; i++)
		IS(add_number(q, i), WQ_QUEUED);
	IS(wq_get_many_until(q, items, STABLE, WQ_NOWAIT), STABLE);
}

static void seen_once(struct view *v)
{
	IS(v->wrong, 0);
	for (int i = 0; i < STABLE; i++)
		IS(v->seen[i], 1);
	for (int i = 0; i < GUESTS; i++)
		assert_true(v->guest_seen[i] <= v->guest_lives[i]);
}

static wq_item items[STABLE];
static uint64_t seed;

static void walk_sees_each_once_while_keys_come_and_go(void **state)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 6; round++) {
		struct view *v = view_new(f, seed + round);

		hold_stable(f->q, items);
		v->churn = round;
		int64_t n = wq_walk(f->q, churn, v);

		IS(n, v->shown);
		seen_once(v);
		IS(wq_done_many(f->q, items, STABLE, NULL), STABLE);
		wq_item it;

		while (wq_try_get(f->q, &it) == WQ_OK)
			IS(wq_done(f->q, &it), WQ_OK);
		free(v);
	}
}

/* After the k-th shown key all guests come, or all go: the table grows and shrinks under the walk. */
static int burst(void *ctx, const wq_key_info *info)
{
	struct view *v = ctx;
	wq_item it;

	see(v, info);
	if (v->shown != v->churn)
		return 0;
	if (v->shrink) {
		while (wq_try_get(v->f->q, &it) == WQ_OK)
			wq_done(v->f->q, &it);
		return 0;
	}
	for (uint32_t g = 0; g < GUESTS; g++) {
		add_number(v->f->q, STABLE + g);
		v->guest_lives[g] = 1;
	}
	return 0;
}

static void walk_sees_each_once_while_the_table_grows_and_shrinks(void **state)
{
	struct fixture *f = *state;
	static const unsigned moments[] = {1, 255, 256, 257, 700, 1500, 2999};
	wq_item it;

	for (size_t i = 0; i < LENGTH(moments); i++)
		for (int shrink = 0; shrink < 2; shrink++) {
			struct view *v = view_new(f, seed);

			hold_stable(f->q, items);
			v->churn = moments[i];
			v->shrink = shrink;
			for (uint32_t g = 0; shrink && g < GUESTS; g++) {
				IS(add_number(f->q, STABLE + g), WQ_QUEUED);
				v->guest_lives[g] = 1;
			}
			int64_t n = wq_walk(f->q, burst, v);

			IS(n, v->shown);
			seen_once(v);
			IS(wq_done_many(f->q, items, STABLE, NULL), STABLE);
			while (wq_try_get(f->q, &it) == WQ_OK)
				IS(wq_done(f->q, &it), WQ_OK);
			free(v);
		}
}

/* The same with another thread, so that changes fall between copying and showing too. */
struct mover {
	struct actor actor;
	wq_queue *q;
	_Atomic bool stop;
};

static int64_t move(void *arg)
{
	struct mover *m = arg;
	uint64_t rng = seed;
	wq_item it;

	while (!atomic_load(&m->stop)) {
		for (int i = 0; i < 1000; i++)
			add_number(m->q, STABLE + (uint32_t)rng_below(&rng, GUESTS));
		for (int i = 0; i < 900; i++)
			if (wq_try_get(m->q, &it) == WQ_OK)
				wq_done(m->q, &it);
	}
	return 0;
}

static int just_see(void *ctx, const wq_key_info *info)
{
	return see(ctx, info);
}

static void walk_sees_each_once_beside_another_thread(void **state)
{
	struct fixture *f = *state;
	struct mover m = {.q = f->q};

	hold_stable(f->q, items);
	actor_start(&m.actor, move, &m);
	for (int round = 0; round < 10; round++) {
		struct view *v = view_new(f, seed);

		int64_t n = wq_walk(f->q, just_see, v);

		IS(n, v->shown);
		IS(v->wrong, 0);
		for (int i = 0; i < STABLE; i++)
			IS(v->seen[i], 1);
		free(v);
	}
	atomic_store(&m.stop, true);
	actor_join(&m.actor);
	IS(wq_done_many(f->q, items, STABLE, NULL), STABLE);
}

/* How often each key was shown as it should be. */
struct infos {
	int held, dirty, queued, wrong;
};

static int check_info(void *ctx, const wq_key_info *info)
{
	struct infos *n = ctx;

	if (info->reserved[0] || info->reserved[1])
		n->wrong++;
	if (info->len == 1 && memcmp(info->key, "a", 1) == 0)
		n->held += info->state == WQ_STATE_RUNNING && info->age_ns == 3 * WQ_SECOND;
	else if (info->len == 2 && memcmp(info->key, "b\0", 2) == 0)
		n->dirty += info->state == (WQ_STATE_RUNNING | WQ_STATE_DIRTY) && info->age_ns >= 0;
	else if (info->len == 0)
		n->queued += info->state == WQ_STATE_QUEUED && info->age_ns == WQ_SECOND;
	else
		n->wrong++;
	return 0;
}

static void walk_tells_state_and_age(void **state)
{
	struct fixture *f = *state;
	struct infos n = {0, 0, 0, 0};
	wq_item held[2];

	wq_add(f->q, "a", 1);
	wq_add(f->q, "b\0", 2);
	IS(wq_get_many_until(f->q, held, 2, WQ_NOWAIT), 2);
	wq_manual_clock_advance(f->mc, 2 * WQ_SECOND);
	wq_add(f->q, "b\0", 2);
	wq_add(f->q, NULL, 0);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_walk(f->q, check_info, &n), 3);
	IS(n.held, 1);
	IS(n.dirty, 1);
	IS(n.queued, 1);
	IS(n.wrong, 0);
	IS(wq_done_many(f->q, held, 2, NULL), 2);
}

static int stop_at(void *ctx, const wq_key_info *info)
{
	int *left = ctx;

	(void)info;
	return --*left == 0 ? -7 : 0;
}

static void walk_stops_when_told_to(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (uint32_t i = 0; i < 1000; i++)
		add_number(q, i);
	for (int at = 1; at <= 1000; at += 111) {
		int left = at;

		IS(wq_walk(q, stop_at, &left), at); /* the one that stopped it is counted */
		IS(left, 0);
	}
	check_whole(q, 1000, 0);
}

/* A key's bytes are valid during the callback though the key itself has gone. */
static int end_and_compare(void *ctx, const wq_key_info *info)
{
	static char copy[WQ_KEY_MAX];
	struct fixture *f = ctx;
	size_t len = info->len;
	wq_item it;

	memcpy(copy, info->key, len);
	while (wq_try_get(f->q, &it) == WQ_OK)
		wq_done(f->q, &it);
	wq_add(f->q, "x", 1);
	return memcmp(copy, info->key, len) == 0 && info->len == len ? 0 : 1;
}

static void walk_lends_bytes_that_stay(void **state)
{
	struct fixture *f = *state;
	static char key[WQ_KEY_MAX];

	for (size_t len = 1; len <= WQ_KEY_MAX; len *= 4) {
		memset(key, 'k', len);
		IS(wq_add(f->q, key, len), WQ_QUEUED);
	}
	/* all are copied in the first hold of the lock, or not seen any more */
	assert_true(wq_walk(f->q, end_and_compare, f) >= 1);
}

/* 300 keys of 64 KiB do not fit into any modest buffer. */
static int count_long(void *ctx, const wq_key_info *info)
{
	*(int *)ctx += info->len == WQ_KEY_MAX;
	return 0;
}

static void walk_over_long_keys(void **state)
{
	struct fixture *f = *state;
	static char key[WQ_KEY_MAX];
	int n = 0;

	for (int i = 0; i < 300; i++) {
		memcpy(key, &i, sizeof i);
		IS(wq_add(f->q, key, sizeof key), WQ_QUEUED);
	}
	IS(wq_walk(f->q, count_long, &n), 300);
	IS(n, 300);
}

/*
 * A key and its reminder are two entries but one key. Between two batches the
 * key goes and leaves the reminder, or comes back beside it.
 */
enum { PAIRS = 1000 };

struct pairs {
	wq_queue *q;
	unsigned shown, seen[PAIRS];
	bool come; /* the keys come, instead of going */
};

static void remind_key(wq_queue *q, uint32_t n)
{
	wq_add_options o = {.after_ns = WQ_HOUR, .policy = WQ_REMIND};

	IS(wq_add_with(q, &n, sizeof n, &o), WQ_DELAYED);
}

static void end_all(wq_queue *q)
{
	wq_item it;

	while (wq_try_get(q, &it) == WQ_OK)
		IS(wq_done(q, &it), WQ_OK);
}

static int see_pair(void *ctx, const wq_key_info *info)
{
	struct pairs *p = ctx;
	uint32_t n;

	memcpy(&n, info->key, sizeof n);
	p->seen[n]++;
	if (++p->shown % 256 != 0)
		return 0;
	for (uint32_t i = 0; p->come && i < PAIRS; i++)
		add_number(p->q, i);
	if (!p->come)
		end_all(p->q);
	p->come = !p->come;
	return 0;
}

static void pairs_are_seen_once(wq_queue *q, bool come)
{
	struct pairs p = {.q = q, .come = come};

	IS(wq_walk(q, see_pair, &p), PAIRS);
	for (uint32_t i = 0; i < PAIRS; i++)
		IS(p.seen[i], 1);
}

static void walk_sees_a_key_and_its_reminder_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	/* Reminders get the lower slots, then the higher ones; keys that come take what is free. */
	for (int last = 0; last < 2; last++) {
		for (uint32_t i = 0; i < PAIRS; i++) {
			if (!last)
				remind_key(q, i);
			IS(add_number(q, i), WQ_QUEUED);
			if (last)
				remind_key(q, i);
		}
		pairs_are_seen_once(q, false);
		end_all(q);
		pairs_are_seen_once(q, true);
		end_all(q);
		for (uint32_t i = 0; i < PAIRS; i++)
			IS(cancel_key(q, &i, sizeof i), WQ_STATE_WAITING);
	}
}

static int walk_again(void *ctx, const wq_key_info *info)
{
	(void)info;
	return count_keys(ctx) == 600 ? 0 : 1;
}

static void walk_inside_a_walk(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (uint32_t i = 0; i < 600; i++)
		add_number(q, i);
	IS(wq_walk(q, walk_again, q), 600);
}

static int count_any(void *ctx, const wq_key_info *info)
{
	(void)info;
	++*(int *)ctx;
	return 0;
}

/* All keys are shown though there is no memory for it; but for one that is very long. */
static void walk_without_memory(void **state)
{
	struct fixture *f = *state;
	static char key[WQ_KEY_MAX];
	int shown = 0;

	for (uint32_t i = 0; i < 1000; i++)
		IS(add_number(f->q, i), WQ_QUEUED);
	f->mem.largest = 1;
	IS(wq_walk(f->q, count_any, &shown), 1000);
	IS(shown, 1000);
	f->mem.largest = 0;
	IS(wq_add(f->q, key, sizeof key), WQ_QUEUED);
	f->mem.largest = 1;
	IS(wq_walk(f->q, count_any, &shown), WQ_ENOMEM);
	f->mem.largest = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(walk_sees_each_once_while_keys_come_and_go),
	    WITH_FIXTURE(walk_sees_each_once_while_the_table_grows_and_shrinks),
	    WITH_FIXTURE(walk_sees_each_once_beside_another_thread),
	    WITH_FIXTURE(walk_tells_state_and_age),
	    WITH_FIXTURE(walk_stops_when_told_to),
	    WITH_FIXTURE(walk_lends_bytes_that_stay),
	    WITH_FIXTURE(walk_over_long_keys),
	    WITH_FIXTURE(walk_sees_a_key_and_its_reminder_once),
	    WITH_FIXTURE(walk_inside_a_walk),
	    WITH_FIXTURE(walk_without_memory),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
