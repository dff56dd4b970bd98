/* Stopping: Q8 (shutdown) and Q9 (drain) of the rules. */
#include "../support/support.h"

/* The counts of a report, and that its reserved words are zero. */
static void report_is(const wq_report *r, uint64_t queued, uint64_t running, uint64_t dirty)
{
	IS((int64_t)r->queued, (int64_t)queued);
	IS((int64_t)r->running, (int64_t)running);
	IS((int64_t)r->dirty, (int64_t)dirty);
	IS((int64_t)r->retries, 0);
	IS((int64_t)r->delayed, 0);
	for (size_t i = 0; i < LENGTH(r->reserved); i++)
		IS((int64_t)r->reserved[i], 0);
}

static void Q8_shutdown_is_idempotent(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	wq_add_str(q, "k");
	IS(wq_shutting_down(q), 0);
	for (int i = 0; i < 3; i++) {
		IS(wq_shutdown(q), WQ_OK);
		IS(wq_shutting_down(q), 1);
		IS(wq_len(q), 1);
	}
	take_is(q, "k", WQ_OK);
}

static void Q8_shutdown_wakes_all(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g[5];

	for (size_t i = 0; i < LENGTH(g); i++)
		getter_block(&g[i], q, i % 2 ? WQ_NEVER : START_NS + WQ_HOUR);
	IS(wq_shutdown(q), WQ_OK);
	for (size_t i = 0; i < LENGTH(g); i++)
		IS(getter_join(&g[i]), WQ_ESHUTDOWN);
}

static int64_t next_main(void *arg)
{
	struct getter *g = arg;

	return wq_next(g->q, &g->item);
}

static void Q8_shutdown_wakes_next_and_get_many(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g = {.q = q};

	wq_add_str(q, "k");
	get_is(q, &g.item, "k");
	actor_start(&g.actor, next_main, &g);
	actor_blocks(&g.actor);
	IS(state_of(q, "k"), 0); /* done, though the call has not returned */
	IS(wq_shutdown(q), WQ_OK);
	IS(getter_join(&g), WQ_ESHUTDOWN);
}

static void Q9_drain_of_an_idle_queue_returns_at_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_report r;
	wq_item it;

	memset(&r, 0xee, sizeof r);
	IS(wq_drain_until(q, WQ_NEVER, NULL, &r), WQ_OK);
	report_is(&r, 0, 0, 0);
	IS(wq_shutting_down(q), 1);
	IS(wq_get(q, &it), WQ_ESHUTDOWN);
	IS(wq_drain_until(q, 0, NULL, NULL), WQ_OK); /* and again */
	IS(wq_drain_for(q, WQ_NEVER, NULL, NULL), WQ_OK);
}

static void Q9_drain_waits_for_queued_keys_too(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct drainer d;

	wq_add_str(q, "a");
	wq_add_str(q, "b");
	drainer_block(&d, q, WQ_NEVER); /* nothing is running: client-go would return */
	take_is(q, "a", WQ_OK);
	actor_blocks(&d.actor);
	take_is(q, "b", WQ_OK);
	IS(drainer_join(&d), WQ_OK);
	report_is(&d.report, 0, 0, 0);
}

static void Q9_drain_wakes_getters_when_nothing_is_left(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;
	struct drainer d;
	wq_item it;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	getter_block(&g, q, WQ_NEVER);
	drainer_start(&d, q, WQ_NEVER);
	IS(getter_join(&g), WQ_ESHUTDOWN);
	actor_blocks(&d.actor);
	IS(wq_done(q, &it), WQ_OK);
	IS(drainer_join(&d), WQ_OK);
}

/* [DRAIN] Any number of threads may drain, and all of them return: when nothing is left, ... */
static void Q9_many_drainers_all_return(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct drainer d[6];
	wq_item it;

	wq_add_str(q, "k");
	for (size_t i = 0; i < LENGTH(d); i++)
		drainer_block(&d[i], q, i % 2 ? WQ_NEVER : START_NS + WQ_HOUR);
	get_is(q, &it, "k");
	IS(wq_done(q, &it), WQ_OK);
	for (size_t i = 0; i < LENGTH(d); i++) {
		IS(drainer_join(&d[i]), WQ_OK);
		report_is(&d[i].report, 0, 0, 0);
	}
}

static void Q9_each_way_of_ending_the_last_key_ends_the_drain(void **state)
{
	(void)state;
	for (int way = 0; way < 5; way++) {
		struct fixture f;
		struct drainer d;
		wq_item it;
		int rc = WQ_EINVAL;

		fixture_open(&f, NULL);
		wq_add_str(f.q, "k");
		get_is(f.q, &it, "k");
		drainer_block(&d, f.q, WQ_NEVER);
		switch (way) {
		case 0:
			rc = wq_done(f.q, &it);
			break;
		case 1:
			rc = wq_done_many(f.q, &it, 1, NULL) == 1 ? WQ_OK : WQ_EINVAL;
			break;
		case 2: /* the getter learns that all is over, the drainer too */
			rc = wq_next(f.q, &it) == WQ_ESHUTDOWN ? WQ_OK : WQ_EINVAL;
			break;
		case 3:
			rc = wq_next_many_until(f.q, &it, 1, 1, WQ_NEVER);
			rc = rc == WQ_ESHUTDOWN ? WQ_OK : WQ_EINVAL;
			break;
		case 4: /* requeue alone does not */
			IS(wq_requeue(f.q, &it, WQ_HEAD), WQ_QUEUED);
			actor_blocks(&d.actor);
			get_is(f.q, &it, "k");
			rc = wq_done(f.q, &it);
			break;
		}
		IS(rc, WQ_OK);
		IS(drainer_join(&d), WQ_OK);
		fixture_close(&f, 0);
	}
}

static void Q9_time_out_leaves_keys_gettable(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	struct drainer d[2];
	wq_item it, held;

	wq_add_str(q, "held");
	wq_add_str(q, "a");
	wq_add_str(q, "b");
	get_is(q, &held, "held");
	wq_add_str(q, "held");
	drainer_block(&d[0], q, START_NS + 10 * WQ_SECOND);
	drainer_block(&d[1], q, START_NS + 20 * WQ_SECOND);
	IS(wq_manual_clock_advance(f->mc, 10 * WQ_SECOND - 1), WQ_OK);
	actor_blocks(&d[0].actor); /* never early */
	IS(wq_manual_clock_advance(f->mc, 1), WQ_OK);
	IS(drainer_join(&d[0]), WQ_ETIMEDOUT);
	report_is(&d[0].report, 2, 1, 1);
	actor_blocks(&d[1].actor);
	IS(wq_shutting_down(q), 1); /* it stays shut */
	IS(wq_add_str(q, "new"), WQ_ESHUTDOWN);
	take_is(q, "a", WQ_OK);
	IS(wq_manual_clock_advance(f->mc, 11 * WQ_SECOND), WQ_OK);
	IS(drainer_join(&d[1]), WQ_ETIMEDOUT);
	report_is(&d[1].report, 1, 1, 1);
	IS(wq_done(q, &held), WQ_QUEUED);
	take_is(q, "b", WQ_OK);
	take_is(q, "held", WQ_OK);
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
}

static void Q9_a_deadline_that_has_passed_looks_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_report r;
	wq_item it;

	wq_add_str(q, "k");
	memset(&r, 0xee, sizeof r);
	IS(wq_drain_until(q, 0, NULL, &r), WQ_ETIMEDOUT);
	report_is(&r, 1, 0, 0);
	IS(wq_shutting_down(q), 1);
	get_is(q, &it, "k");
	memset(&r, 0xee, sizeof r);
	IS(wq_drain_for(q, 0, NULL, &r), WQ_ETIMEDOUT);
	report_is(&r, 0, 1, 0);
	IS(wq_drain_for(q, -WQ_HOUR, NULL, NULL), WQ_ETIMEDOUT);
	IS(wq_drain_for(q, INT64_MIN, NULL, NULL), WQ_ETIMEDOUT);
	IS(wq_done(q, &it), WQ_OK);
	memset(&r, 0xee, sizeof r);
	IS(wq_drain_for(q, 0, NULL, &r), WQ_OK);
	report_is(&r, 0, 0, 0);
}

static int64_t drain_for_main(void *arg)
{
	struct drainer *d = arg;

	return wq_drain_for(d->q, d->deadline_ns, NULL, &d->report);
}

static void Q9_drain_for_counts_from_now(void **state)
{
	struct fixture *f = *state;
	struct drainer d = {.q = f->q, .deadline_ns = 3 * WQ_SECOND};

	wq_add_str(f->q, "k");
	actor_start(&d.actor, drain_for_main, &d);
	actor_blocks(&d.actor);
	wq_manual_clock_advance(f->mc, 3 * WQ_SECOND - 1);
	actor_blocks(&d.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(drainer_join(&d), WQ_ETIMEDOUT);
	report_is(&d.report, 1, 0, 0);
}

/* [DRAIN] ... and when a shutdown releases them. */
static void Q9_second_shutdown_releases_all_drains(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct drainer d[3];
	wq_item it;

	wq_add_str(q, "k");
	wq_add_str(q, "l");
	get_is(q, &it, "k");
	wq_shutdown(q); /* a drain after a shutdown waits too */
	for (size_t i = 0; i < LENGTH(d); i++)
		drainer_block(&d[i], q, WQ_NEVER);
	IS(wq_shutdown(q), WQ_OK);
	for (size_t i = 0; i < LENGTH(d); i++) {
		IS(drainer_join(&d[i]), WQ_EINTERRUPTED);
		report_is(&d[i].report, 1, 1, 0);
	}
	drainer_block(&d[0], q,
	              WQ_NEVER); /* a later drain is not released by an earlier shutdown */
	take_is(q, "l", WQ_OK);
	IS(wq_done(q, &it), WQ_OK);
	IS(drainer_join(&d[0]), WQ_OK);
}

/* What a drain listed. */
struct listing {
	wq_queue *q;
	int n;
	int stop_after;
	char keys[8][8];
	unsigned states[8];
	int64_t ages[8];
	int wrong;
};

static int list_key(void *ctx, const wq_key_info *info)
{
	struct listing *l = ctx;

	if (l->n == 8 || info->len >= sizeof l->keys[0]) {
		l->wrong++;
		return 1;
	}
	memcpy(l->keys[l->n], info->key, info->len);
	l->keys[l->n][info->len] = '\0';
	l->states[l->n] = info->state;
	l->ages[l->n] = info->age_ns;
	/* outside the lock: the queue may be used */
	if (wq_state(l->q, info->key, info->len) != (int)info->state || wq_len(l->q) < 0)
		l->wrong++;
	return ++l->n == l->stop_after;
}

static void listed(const struct listing *l, const char *key, unsigned bits, int64_t age_ns)
{
	int found = 0;

	for (int i = 0; i < l->n; i++)
		if (strcmp(l->keys[i], key) == 0) {
			IS(l->states[i], bits);
			IS(l->ages[i], age_ns);
			found++;
		}
	IS(found, 1);
}

static void Q9_what_was_left_is_listed_with_its_age(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	struct listing l = {.q = q};
	wq_drain_options o = {.left = list_key, .ctx = &l};
	wq_report r;
	wq_item held, dirty;

	wq_add_str(q, "held");
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	wq_add_str(q, "dirty");
	get_is(q, &held, "held");
	get_is(q, &dirty, "dirty");
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	wq_add_str(q, "a");
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	wq_add_str(q, "b");
	wq_add_str(q, "a");
	wq_add_str(q, "dirty");
	wq_manual_clock_advance(f->mc, 10 * WQ_SECOND);
	IS(wq_drain_until(q, 1, &o, &r), WQ_ETIMEDOUT);
	report_is(&r, 2, 2, 1);
	IS(l.n, 4);
	IS(l.wrong, 0);
	listed(&l, "held", WQ_STATE_RUNNING, 13 * WQ_SECOND);
	listed(&l, "a", WQ_STATE_QUEUED, 11 * WQ_SECOND); /* not younger for the second add */
	listed(&l, "b", WQ_STATE_QUEUED, 10 * WQ_SECOND);

	/* the callback's answer ends the listing; the counts are whole */
	l.n = 0;
	l.stop_after = 2;
	IS(wq_drain_until(q, 1, &o, &r), WQ_ETIMEDOUT);
	report_is(&r, 2, 2, 1);
	IS(l.n, 2);

	IS(wq_done(q, &held), WQ_OK);
	IS(wq_done(q, &dirty), WQ_QUEUED);
	for (const char *const *k = (const char *const[]){"a", "b", "dirty", NULL}; *k; k++)
		take_is(q, *k, WQ_OK);
	l.n = 0;
	IS(wq_drain_until(q, 1, &o, &r), WQ_OK);
	IS(l.n, 0);
	IS(l.wrong, 0);
}

static int64_t listing_drain(void *arg)
{
	struct listing *l = arg;
	wq_drain_options o = {.left = list_key, .ctx = l};

	return wq_drain_until(l->q, WQ_NEVER, &o, NULL);
}

static void Q9_a_released_drain_lists_too(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct listing l = {.q = q};
	struct actor a;

	wq_add_str(q, "a");
	actor_start(&a, listing_drain, &l);
	actor_blocks(&a);
	IS(l.n, 0);
	wq_shutdown(q);
	IS(actor_join(&a), WQ_EINTERRUPTED);
	IS(l.n, 1);
	IS(l.wrong, 0);
	listed(&l, "a", WQ_STATE_QUEUED, 0);
}

static void drain_with_bad_arguments_does_not_shut(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_report r;

	IS(wq_drain_until(q, -1, NULL, &r), WQ_EINVAL);
	IS(wq_drain_until(q, INT64_MIN, NULL, &r), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(((wq_drain_options *)0)->reserved); i++) {
		wq_drain_options o = {.left = NULL};

		o.reserved[i] = 1;
		IS(wq_drain_until(q, WQ_NEVER, &o, &r), WQ_EINVAL);
	}
	IS(wq_shutting_down(q), 0);
	check_whole(q, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(Q8_shutdown_is_idempotent),
	    WITH_FIXTURE(Q8_shutdown_wakes_all),
	    WITH_FIXTURE(Q8_shutdown_wakes_next_and_get_many),
	    WITH_FIXTURE(Q9_drain_of_an_idle_queue_returns_at_once),
	    WITH_FIXTURE(Q9_drain_waits_for_queued_keys_too),
	    WITH_FIXTURE(Q9_drain_wakes_getters_when_nothing_is_left),
	    WITH_FIXTURE(Q9_many_drainers_all_return),
	    cmocka_unit_test(Q9_each_way_of_ending_the_last_key_ends_the_drain),
	    WITH_FIXTURE(Q9_time_out_leaves_keys_gettable),
	    WITH_FIXTURE(Q9_a_deadline_that_has_passed_looks_once),
	    WITH_FIXTURE(Q9_drain_for_counts_from_now),
	    WITH_FIXTURE(Q9_second_shutdown_releases_all_drains),
	    WITH_FIXTURE(Q9_what_was_left_is_listed_with_its_age),
	    WITH_FIXTURE(Q9_a_released_drain_lists_too),
	    WITH_FIXTURE(drain_with_bad_arguments_does_not_shut),
	};

	return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
