/*
 * Queues in a registry: names, order, coming and going, also while others look; and what the
 * provider is told on random tapes of calls.
 */
#include "../support/cancel.h"
#include "metrics_rig.h"

#include <sched.h>

static wq_queue *named(wq_registry *r, const char *name)
{
	wq_queue *q = NULL;

	IS(wq_new(&q, &(wq_options){.name = name, .registry = r}), WQ_OK);
	return q;
}

static int list(void *ctx, const char *name, wq_queue *q)
{
	char *names = ctx;

	assert_non_null(q);
	strcat(names, name);
	strcat(names, " ");
	return 0;
}

static void names_are(wq_registry *r, const char *expected)
{
	char names[256] = "";

	IS(wq_registry_each(r, list, names), WQ_OK);
	assert_string_equal(names, expected);
}

static void bad_arguments(void **state)
{
	wq_metrics_provider provider = {0};
	wq_queue *q = (wq_queue *)1;
	wq_registry *r;
	wq_snapshot s;

	(void)state;
	IS(wq_registry_new(NULL), WQ_EINVAL);
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_registry_free(NULL), WQ_OK);
	IS(wq_registry_size(NULL), WQ_EINVAL);
	IS(wq_registry_each(NULL, list, NULL), WQ_EINVAL);
	IS(wq_registry_each(r, NULL, NULL), WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.registry = r}), WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.registry = r, .name = ""}), WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.provider = &provider}), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(provider.reserved); i++) {
		provider.reserved[i] = 1;
		IS(wq_new(&q, &(wq_options){.name = "q", .provider = &provider}), WQ_EINVAL);
		provider.reserved[i] = 0;
	}
	assert_ptr_equal(q, (wq_queue *)1);
	IS(wq_registry_size(r), 0);
	IS(wq_snapshot_take(NULL, &s), WQ_EINVAL);
	q = named(r, "q");
	IS(wq_snapshot_take(q, NULL), WQ_EINVAL);
	IS(wq_free(q), 0);
	IS(wq_registry_free(r), WQ_OK);
}

static void queues_stand_by_name(void **state)
{
	wq_queue *a, *b, *c, *q = (wq_queue *)1;
	wq_registry *r;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	names_are(r, "");
	b = named(r, "b");
	c = named(r, "c");
	a = named(r, "a");
	names_are(r, "a b c ");
	IS(wq_registry_size(r), 3);
	IS(wq_new(&q, &(wq_options){.name = "b", .registry = r}), WQ_EEXIST);
	assert_ptr_equal(q, (wq_queue *)1);
	IS(wq_registry_size(r), 3);
	IS(wq_registry_free(r), WQ_EBUSY);
	IS(wq_free(b), 0);
	names_are(r, "a c ");
	b = named(r, "b"); /* the name is free again */
	names_are(r, "a b c ");
	IS(wq_free(a), 0);
	IS(wq_free(c), 0);
	IS(wq_free(b), 0);
	names_are(r, "");
	IS(wq_registry_free(r), WQ_OK);
}

static void order_push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)ctx;
	(void)node;
	(void)where;
}

static wq_node *order_pop(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void order_free(void *ctx)
{
	++*(int *)ctx;
}

/* What was handed over to a wq_new() that failed is freed, once. */
static void a_refused_name_frees_what_came_with_it(void **state)
{
	struct memory mem;
	int order_frees = 0;
	const wq_order order = {.push = order_push,
	                        .pop = order_pop,
	                        .free = order_free,
	                        .ctx = &order_frees};
	wq_registry *r;
	wq_queue *first, *q = NULL;

	(void)state;
	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	IS(wq_registry_new(&r), WQ_OK);
	first = named(r, "q");
	IS(wq_new(&q, &(wq_options){.name = "q",
	                            .registry = r,
	                            .allocator = &a,
	                            .order = &order,
	                            .limiter = wq_limiter_exponential(1, 2)}),
	   WQ_EEXIST);
	IS(order_frees, 1);
	assert_null(q);
	assert_true(mem.calls > 0);
	memory_balanced(&mem);
	IS(wq_free(first), 0);
	IS(wq_registry_free(r), WQ_OK);
}

/* Who shows it to others holds it. */
static void a_held_registry_stays(void **state)
{
	wq_registry *r;
	wq_queue *q;

	(void)state;
	IS(wq_registry_hold(NULL), WQ_EINVAL);
	IS(wq_registry_release(NULL), WQ_EINVAL);
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_registry_release(r), WQ_ESTALE);
	IS(wq_registry_hold(r), WQ_OK);
	IS(wq_registry_hold(r), WQ_OK);
	IS(wq_registry_free(r), WQ_EBUSY);
	IS(wq_registry_release(r), WQ_OK);
	IS(wq_registry_free(r), WQ_EBUSY);
	q = named(r, "q"); /* it can be used as ever */
	IS(wq_registry_release(r), WQ_OK);
	IS(wq_registry_release(r), WQ_ESTALE);
	IS(wq_registry_free(r), WQ_EBUSY);
	IS(wq_free(q), 0);
	IS(wq_registry_free(r), WQ_OK);
}

/* Of others two could look alike in the text, and nobody could ask for either; dots are lost on the way. */
static void names_are_utf8(void **state)
{
	static const char *const good[] = {"ä", "q😀", "\n", "\x7f", "...", ".a", "a."};
	static const char *const bad[] = {"x\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80",
	                                  "\x80q", ".",    ".."};
	wq_registry *r;
	wq_queue *q = NULL;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	for (size_t i = 0; i < LENGTH(good); i++)
		IS(wq_free(named(r, good[i])), 0);
	for (size_t i = 0; i < LENGTH(bad); i++) {
		IS(wq_new(&q, &(wq_options){.name = bad[i], .registry = r}), WQ_EINVAL);
		assert_null(q);
		IS(wq_free(named(NULL, bad[i])), 0);
	}
	IS(wq_registry_free(r), WQ_OK);
}

static void two_registries_and_none(void **state)
{
	wq_registry *r1, *r2;
	wq_queue *q1, *q2, *q3;

	(void)state;
	IS(wq_registry_new(&r1), WQ_OK);
	IS(wq_registry_new(&r2), WQ_OK);
	q1 = named(r1, "q");
	q2 = named(r2, "q");
	q3 = named(NULL, "q");
	IS(wq_registry_size(r1), 1);
	IS(wq_registry_size(r2), 1);
	IS(wq_free(q1), 0);
	IS(wq_registry_size(r2), 1);
	IS(wq_free(q2), 0);
	IS(wq_free(q3), 0);
	IS(wq_registry_free(r1), WQ_OK);
	IS(wq_registry_free(r2), WQ_OK);
}

static void a_busy_queue_stays(void **state)
{
	wq_registry *r;
	wq_item it;
	wq_queue *q;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	q = named(r, "q");
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	IS(wq_free(q), WQ_EBUSY);
	names_are(r, "q ");
	IS((int64_t)look(q).running, 1);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 0);
	names_are(r, "");
	IS(wq_registry_free(r), WQ_OK);
}

static int stop_at_b(void *ctx, const char *name, wq_queue *q)
{
	++*(int *)ctx;
	/* It may use the queue. */
	IS(wq_add_str(q, name), WQ_QUEUED);
	IS(count_keys(q), 1);
	return name[0] == 'b' ? 42 : 0;
}

static void each_stops_when_it_is_told(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	wq_registry *r;
	wq_queue *q[3];
	int n = 0;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	for (int i = 0; i < 3; i++)
		q[i] = named(r, names[i]);
	IS(wq_registry_each(r, stop_at_b, &n), 42);
	IS(n, 2);
	for (int i = 0; i < 3; i++)
		IS(wq_free(q[i]), i < 2);
	IS(wq_registry_free(r), WQ_OK);
}

/* ---- visits ------------------------------------------------------------------- */

struct visit {
	wq_registry *r;
	wq_queue *q;
	struct actor leaver;
	_Atomic bool left;
};

static int answer_42(void *ctx, const char *name, wq_queue *q)
{
	assert_string_equal(name, "q");
	assert_ptr_equal(q, ctx);
	return 42;
}

/* The registry's lock is not held: others come and go, and each other's visits do not wait. */
static int use_the_registry(void *ctx, const char *name, wq_queue *q)
{
	wq_registry *r = ctx;
	wq_queue *other = named(r, "other");

	names_are(r, "other q ");
	IS(wq_registry_visit(r, name, answer_42, q), 42);
	IS(wq_registry_free(r), WQ_EBUSY);
	IS(wq_free(other), 0);
	return WQ_OK;
}

static void a_visit_leaves_the_registry_free(void **state)
{
	wq_registry *r;
	wq_queue *q;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	q = named(r, "q");
	IS(wq_registry_visit(NULL, "q", answer_42, q), WQ_EINVAL);
	IS(wq_registry_visit(r, NULL, answer_42, q), WQ_EINVAL);
	IS(wq_registry_visit(r, "q", NULL, q), WQ_EINVAL);
	IS(wq_registry_visit(r, "p", answer_42, q), WQ_ENOTFOUND);
	IS(wq_registry_visit(r, "q", answer_42, q), 42);
	IS(wq_registry_visit(r, "q", use_the_registry, r), WQ_OK);
	IS(wq_free(q), 0);
	IS(wq_registry_visit(r, "q", answer_42, q), WQ_ENOTFOUND);
	IS(wq_registry_free(r), WQ_OK);
}

static int64_t leave(void *arg)
{
	struct visit *v = arg;
	int rc = wq_free(v->q);

	atomic_store(&v->left, true);
	return rc;
}

static int nothing(void *ctx, const char *name, wq_queue *q)
{
	(void)ctx;
	(void)name;
	(void)q;
	return WQ_OK;
}

/* Whoever frees it waits from the moment that nobody else is let in. */
static int use_what_is_freed(void *ctx, const char *name, wq_queue *q)
{
	struct visit *v = ctx;

	actor_start(&v->leaver, leave, v);
	while (wq_registry_visit(v->r, name, nothing, NULL) == WQ_OK)
		sched_yield();
	assert_false(atomic_load(&v->left));
	names_are(v->r, "q ");
	for (int i = 0; i < 1000; i++) {
		IS(wq_add(q, &i, sizeof i), WQ_QUEUED);
		sched_yield();
	}
	IS(wq_len(q), 1000);
	assert_false(atomic_load(&v->left));
	return WQ_OK;
}

static void a_visited_queue_stays(void **state)
{
	struct visit v = {0};
	wq_item it;

	(void)state;
	IS(wq_registry_new(&v.r), WQ_OK);
	v.q = named(v.r, "q");
	IS(wq_registry_visit(v.r, "q", use_what_is_freed, &v), WQ_OK);
	IS(actor_join(&v.leaver), 1000);
	names_are(v.r, "");

	/* One that is busy stays, and can be visited again. */
	atomic_store(&v.left, false);
	v.q = named(v.r, "q");
	IS(wq_add_str(v.q, "a"), WQ_QUEUED);
	IS(wq_try_get(v.q, &it), WQ_OK);
	IS(wq_registry_visit(v.r, "q", use_what_is_freed, &v), WQ_OK);
	IS(actor_join(&v.leaver), WQ_EBUSY);
	IS(wq_registry_visit(v.r, "q", answer_42, v.q), 42);
	IS(wq_done(v.q, &it), WQ_OK);
	IS(wq_free(v.q), 1000);
	IS(wq_registry_free(v.r), WQ_OK);
}

/* A name of the greatest length. */
static void long_names(void **state)
{
	char name[257];
	wq_registry *r;
	wq_queue *q = NULL;

	(void)state;
	memset(name, '"', sizeof name); /* each is two when it is written */
	name[256] = '\0';
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_new(&q, &(wq_options){.name = name, .registry = r}), WQ_EINVAL);
	name[255] = '\0';
	q = named(r, name);

	struct text t = {0};

	IS(wq_metrics_write(r, WQ_PROMETHEUS, text_write, &t), WQ_OK);
	text_free(&t);
	IS(wq_metrics_write(r, WQ_OPENMETRICS, text_write, &t), WQ_OK);
	text_free(&t);
	IS(wq_free(q), 0);
	IS(wq_registry_free(r), WQ_OK);
}

/* ---- while others look ------------------------------------------------------ */

enum { ROUNDS = 300, MAKERS = 3 };

struct traffic {
	wq_registry *r;
	_Atomic int next, left;
	_Atomic int64_t looks;
};

static int64_t come_and_go(void *arg)
{
	struct traffic *t = arg;
	char name[] = {'q', (char)('0' + atomic_fetch_add(&t->next, 1)), '\0'};

	for (int i = 0; i < ROUNDS; i++) {
		wq_queue *q = NULL, *twin;
		wq_item it;

		if (wq_new(&q, &(wq_options){.name = name, .registry = t->r}) != WQ_OK)
			return 1;
		if (wq_new(&twin, &(wq_options){.name = name, .registry = t->r}) != WQ_EEXIST)
			return 2;
		if (wq_add_str(q, "a") != WQ_QUEUED || wq_try_get(q, &it) != WQ_OK)
			return 3;
		if (wq_free(q) != WQ_EBUSY || wq_done(q, &it) != WQ_OK || wq_free(q) != 0)
			return 4;
	}
	atomic_fetch_sub(&t->left, 1);
	return 0;
}

static int count_bytes(void *ctx, const char *text, size_t n)
{
	(void)text;
	*(size_t *)ctx += n;
	return 0;
}

static int64_t scrape(void *arg)
{
	struct traffic *t = arg;

	while (atomic_load(&t->left) > 0) {
		size_t n = 0;

		if (wq_metrics_write(t->r, WQ_OPENMETRICS, count_bytes, &n) != WQ_OK || n == 0)
			return 1;
		if (wq_registry_size(t->r) > MAKERS)
			return 2;
		atomic_fetch_add(&t->looks, 1);
		sched_yield();
	}
	return 0;
}

static void scrapes_beside_new_and_free(void **state)
{
	struct traffic t = {.left = MAKERS};
	struct actor makers[MAKERS], scraper;

	(void)state;
	IS(wq_registry_new(&t.r), WQ_OK);
	actor_start(&scraper, scrape, &t);
	for (int i = 0; i < MAKERS; i++)
		actor_start(&makers[i], come_and_go, &t);
	for (int i = 0; i < MAKERS; i++)
		IS(actor_join(&makers[i]), 0);
	IS(actor_join(&scraper), 0);
	IS(wq_registry_size(t.r), 0);
	IS(wq_registry_free(t.r), WQ_OK);
}

/* ---- the provider, on random tapes -------------------------------------------- */

static uint64_t seed;

enum { HELD = 8, STEPS = 3000 };

struct tape {
	struct meter_rig r;
	uint64_t rng;
	wq_item held[HELD];
	int nheld;
};

static void random_end(struct tape *t)
{
	wq_item *it;

	if (t->nheld == 0)
		return;
	it = &t->held[rng_below(&t->rng, (uint64_t)t->nheld)];
	switch (rng_below(&t->rng, 6)) {
	case 0:
		wq_retry(t->r.f.q, it);
		break;
	case 1:
		wq_requeue(t->r.f.q, it, rng_below(&t->rng, 2) ? WQ_HEAD : WQ_TAIL);
		break;
	case 2:
		wq_settle(t->r.f.q, it, wq_again_after(1000 + (int64_t)rng_below(&t->rng, 50)));
		break;
	default:
		wq_done(t->r.f.q, it);
		break;
	}
	*it = t->held[--t->nheld];
}

static void random_step(struct tape *t)
{
	static const enum wq_policy policies[] = {WQ_MIN, WQ_MAX, WQ_REPLACE, WQ_KEEP, WQ_REMIND};
	wq_queue *q = t->r.f.q;
	char key[] = {(char)('a' + rng_below(&t->rng, 12)), '\0'};

	switch (rng_below(&t->rng, 10)) {
	case 0:
	case 1:
		wq_add_str(q, key);
		break;
	case 2:
		after(q, key, (int64_t)rng_below(&t->rng, 100), policies[rng_below(&t->rng, 5)]);
		break;
	case 3:
		wq_add_limited(q, key, 1);
		break;
	case 4:
		cancel_key(q, key, 1);
		break;
	case 5:
		wq_reschedule(q, key, 1, wq_now(q) + (int64_t)rng_below(&t->rng, 50));
		break;
	case 6:
		wq_manual_clock_advance(t->r.f.mc, (int64_t)rng_below(&t->rng, 400));
		break;
	case 7:
	case 8:
		if (t->nheld < HELD && wq_try_get(q, &t->held[t->nheld]) == WQ_OK)
			t->nheld++;
		break;
	default:
		random_end(t);
		break;
	}
}

/* The depth is never below 0, and everything agrees with the snapshot. */
static void the_provider_on_random_tapes(void **state)
{
	uint64_t rng = seed;

	(void)state;
	for (int n = 0; n < 20; n++) {
		wq_limiter *l = wq_limiter_exponential(1, 100);
		struct tape t = {.rng = rng_next(&rng)};

		meter_open(&t.r, &(wq_options){.limiter = l,
		                               .max_keys = n % 2 ? 8 : 0,
		                               .max_attempts = n % 3 ? 0 : 4});
		for (int i = 0; i < STEPS; i++) {
			random_step(&t);
			/* Looking moves what is due, so not at each. */
			if (rng_below(&t.rng, 8) == 0)
				told_agrees(&t.r.told, t.r.f.q);
		}
		if (n % 2)
			IS(wq_shutdown(t.r.f.q), WQ_OK);
		while (t.nheld > 0) {
			random_end(&t);
			told_agrees(&t.r.told, t.r.f.q);
		}
		meter_close(&t.r);
	}
}

/* What wq_free() gives up leaves the line. */
static void the_depth_ends_at_0(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	for (char key = 'a'; key <= 'e'; key++)
		IS(wq_add(r.f.q, &key, 1), WQ_QUEUED);
	IS(wq_add_after(r.f.q, "later", 5, WQ_SECOND), WQ_DELAYED);
	IS(wq_try_get(r.f.q, &it), WQ_OK);
	IS(wq_free(r.f.q), WQ_EBUSY);
	IS(r.told.depth, 4); /* nothing was given up */
	IS(wq_done(r.f.q, &it), WQ_OK);
	meter_close(&r);
}

static void a_provider_may_lack_functions(void **state)
{
	wq_metrics_provider nothing = {0};
	wq_item it;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.name = "q", .provider = &nothing}), WQ_OK);
	IS(wq_add_after(q, "a", 1, 0), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	IS(wq_done(q, &it), WQ_OK);
	IS((int64_t)look(q).adds, 1);
	IS(wq_free(q), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bad_arguments),
	    cmocka_unit_test(queues_stand_by_name),
	    cmocka_unit_test(a_refused_name_frees_what_came_with_it),
	    cmocka_unit_test(a_held_registry_stays),
	    cmocka_unit_test(names_are_utf8),
	    cmocka_unit_test(two_registries_and_none),
	    cmocka_unit_test(a_busy_queue_stays),
	    cmocka_unit_test(each_stops_when_it_is_told),
	    cmocka_unit_test(a_visit_leaves_the_registry_free),
	    cmocka_unit_test(a_visited_queue_stays),
	    cmocka_unit_test(long_names),
	    cmocka_unit_test(scrapes_beside_new_and_free),
	    cmocka_unit_test(the_provider_on_random_tapes),
	    cmocka_unit_test(the_depth_ends_at_0),
	    cmocka_unit_test(a_provider_may_lack_functions),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("the registry", tests, NULL, NULL);
}
