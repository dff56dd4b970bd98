/*
 * How long things took, to the nanosecond: histograms, the ages of held keys, the oldest,
 * and what a walk says of each key.
 */
#include "../support/cancel.h"
#include "metrics_rig.h"

static void forward(struct meter_rig *r, int64_t ns)
{
	IS(wq_manual_clock_advance(r->f.mc, ns), WQ_OK);
}

/* ---- histograms ------------------------------------------------------------ */

static void the_bounds_are_those_of_kubernetes(void **state)
{
	int64_t bound = 10;

	(void)state;
	for (unsigned i = 0; i < WQ_BUCKETS - 1; i++, bound *= 10)
		IS(wq_histogram_bound(i), bound);
	IS(wq_histogram_bound(11), 1000 * WQ_SECOND);
	IS(wq_histogram_bound(WQ_BUCKETS - 1), WQ_NEVER);
	IS(wq_histogram_bound(UINT32_MAX), WQ_NEVER);
}

/* What took so long is in this bucket, and in no other. */
static void lands_in(int64_t took_ns, unsigned bucket)
{
	struct meter_rig r;
	wq_snapshot s;
	wq_item it;

	meter_open(&r, NULL);
	IS(wq_add_after(r.f.q, "a", 1, 1), WQ_DELAYED);
	forward(&r, 1 + took_ns);
	IS(wq_len(r.f.q), 1); /* so late it comes into line */
	get_is(r.f.q, &it, "a");
	forward(&r, took_ns);
	IS(wq_done(r.f.q, &it), WQ_OK);
	s = look(r.f.q);
	for (unsigned i = 0; i < WQ_BUCKETS; i++) {
		IS((int64_t)s.queue.count[i], i == bucket);
		IS((int64_t)s.work.count[i], i == bucket);
		IS((int64_t)s.late.count[i], i == bucket);
	}
	IS((int64_t)s.queue.sum_ns, took_ns);
	IS((int64_t)s.work.sum_ns, took_ns);
	IS((int64_t)s.late.sum_ns, took_ns);
	meter_close(&r);
}

static void a_bound_belongs_to_its_bucket(void **state)
{
	(void)state;
	lands_in(0, 0);
	for (unsigned i = 0; i < WQ_BUCKETS - 1; i++) {
		lands_in(wq_histogram_bound(i) - 1, i);
		lands_in(wq_histogram_bound(i), i);
		lands_in(wq_histogram_bound(i) + 1, i + 1);
	}
	lands_in(INT64_MAX / 4, WQ_BUCKETS - 1);
}

/* A key that came due stands in line from its due time, not from when somebody looked. */
static void the_queue_time_counts_from_the_due_time(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_after(r.f.q, "a", 1, 100), WQ_DELAYED);
	forward(&r, 130);
	IS(wq_len(r.f.q), 1);
	IS((int64_t)look(r.f.q).late.sum_ns, 30);
	IS(look(r.f.q).oldest_queued.age_ns, 30);
	forward(&r, 7);
	get_is(r.f.q, &it, "a");
	IS((int64_t)look(r.f.q).queue.sum_ns, 37);
	/* While it is held, it comes back from its due time on. */
	IS(wq_add_after(r.f.q, "a", 1, 10), WQ_DELAYED);
	forward(&r, 15);
	IS(wq_done(r.f.q, &it), WQ_QUEUED);
	IS((int64_t)look(r.f.q).work.sum_ns, 15);
	get_is(r.f.q, &it, "a");
	IS((int64_t)look(r.f.q).queue.sum_ns, 37 + 5);
	IS(wq_done(r.f.q, &it), WQ_OK);
	meter_close(&r);
}

/* A key that was given back was not worked on, and has been in line since its add. */
static void what_is_given_back_took_no_work(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	forward(&r, 5);
	get_is(r.f.q, &it, "a");
	forward(&r, 7);
	IS(wq_requeue(r.f.q, &it, WQ_TAIL), WQ_QUEUED);
	IS((int64_t)total(look(r.f.q).work), 0);
	IS(look(r.f.q).unfinished_ns, 0);
	get_is(r.f.q, &it, "a");
	IS((int64_t)look(r.f.q).queue.sum_ns, 5 + 12);
	IS((int64_t)total(look(r.f.q).queue), 2);
	IS(wq_done(r.f.q, &it), WQ_OK);
	meter_close(&r);
}

/* Every way to get and to end a hold is timed. */
static void calls_of_many_and_of_two_steps(void **state)
{
	wq_item it, items[3];
	struct meter_rig r;
	int settled;

	(void)state;
	meter_open(&r, NULL);
	for (int i = 0; i < 8; i++)
		IS(wq_add(r.f.q, &i, sizeof i), WQ_QUEUED);
	forward(&r, 10);
	IS(wq_get_many_until(r.f.q, items, 3, WQ_NOWAIT), 3);
	IS((int64_t)look(r.f.q).queue.sum_ns, 30);
	forward(&r, 1);
	IS(wq_next_many_until(r.f.q, items, 3, 3, WQ_NOWAIT), 3);
	IS((int64_t)look(r.f.q).work.sum_ns, 3);
	IS((int64_t)look(r.f.q).queue.sum_ns, 30 + 33);
	it = items[0];
	forward(&r, 100);
	IS(wq_done_many(r.f.q, items + 1, 2, NULL), 2);
	IS((int64_t)look(r.f.q).work.sum_ns, 3 + 200);
	IS(wq_next_until(r.f.q, &it, WQ_NOWAIT), WQ_OK);
	IS((int64_t)look(r.f.q).work.sum_ns, 3 + 300);
	IS((int64_t)look(r.f.q).queue.sum_ns, 30 + 33 + 111);
	forward(&r, 1000);
	IS(wq_settle_next_until(r.f.q, &it, WQ_DONE, WQ_NOWAIT, &settled), WQ_OK);
	IS((int64_t)look(r.f.q).work.sum_ns, 3 + 300 + 1000);
	IS((int64_t)look(r.f.q).queue.sum_ns, 30 + 33 + 111 + 1111);
	forward(&r, 10000);
	IS(wq_settle_next_until(r.f.q, &it, WQ_DONE, WQ_NOWAIT, &settled), WQ_EAGAIN);
	IS((int64_t)look(r.f.q).work.sum_ns, 3 + 300 + 1000 + 10000);
	IS((int64_t)total(look(r.f.q).work), 8);
	meter_close(&r);
}

static int64_t next_waits(void *arg)
{
	struct getter *g = arg;

	return wq_next_until(g->q, &g->item, WQ_NEVER);
}

/* The time of a call that slept is the time when it woke. */
static void a_next_that_waited(void **state)
{
	struct getter g;
	struct meter_rig r;

	(void)state;
	meter_open(&r, &(wq_options){.spin_ns = WQ_SPIN_NEVER});
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	g.q = r.f.q;
	get_is(r.f.q, &g.item, "a");
	forward(&r, 3);
	actor_start(&g.actor, next_waits, &g);
	actor_blocks(&g.actor);
	IS((int64_t)look(r.f.q).work.sum_ns, 3);
	forward(&r, 1000);
	IS(wq_add_str(r.f.q, "b"), WQ_QUEUED);
	IS(actor_join(&g.actor), WQ_OK);
	IS((int64_t)look(r.f.q).queue.sum_ns, 3 - 3);
	forward(&r, 20);
	IS(look(r.f.q).longest_running.age_ns, 20);
	IS(wq_done(r.f.q, &g.item), WQ_OK);
	IS((int64_t)look(r.f.q).work.sum_ns, 3 + 20);
	meter_close(&r);
}

/* ---- ages ------------------------------------------------------------------ */

enum { HOLDERS = 300 };

/* Every holder began a nanosecond after the one before; they end in another order. */
static void ages_of_many_holders(void **state)
{
	wq_item items[HOLDERS];
	bool held[HOLDERS];
	struct meter_rig r;

	(void)state;
	meter_open(&r, NULL);
	for (int i = 0; i < HOLDERS; i++)
		IS(wq_add(r.f.q, &i, sizeof i), WQ_QUEUED);
	for (int i = 0; i < HOLDERS; i++) {
		IS(wq_try_get(r.f.q, &items[i]), WQ_OK);
		held[i] = true;
		forward(&r, 1);
	}
	for (int n = 0; n < HOLDERS; n++) {
		wq_snapshot s = look(r.f.q);
		int64_t sum = 0, oldest = -1;
		int first = -1, i = n * 7 % HOLDERS;

		for (int j = 0; j < HOLDERS; j++) {
			if (!held[j])
				continue;
			sum += HOLDERS - j + n;
			if (first < 0) {
				first = j;
				oldest = HOLDERS - j + n;
			}
		}
		IS(s.unfinished_ns, sum);
		IS(s.longest_running.age_ns, oldest);
		IS((int64_t)s.longest_running.len, sizeof first);
		assert_memory_equal(s.longest_running.key, &first, sizeof first);
		IS(n % 3 ? wq_done(r.f.q, &items[i]) : wq_retry(r.f.q, &items[i]),
		   n % 3 ? WQ_OK : WQ_DELAYED);
		held[i] = false;
		forward(&r, 1);
	}
	IS(look(r.f.q).unfinished_ns, 0);
	IS(look(r.f.q).longest_running.age_ns, -1);
	meter_close(&r);
}

static void what_is_left_over_is_not_running(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, NULL);
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	get_is(r.f.q, &it, "a");
	forward(&r, 9);
	IS(wq_shutdown(r.f.q), WQ_OK);
	IS(look(r.f.q).unfinished_ns, 9);
	IS(wq_retry(r.f.q, &it), WQ_LEFT);
	forward(&r, 9);
	IS(look(r.f.q).unfinished_ns, 0);
	IS((int64_t)look(r.f.q).work.sum_ns, 9);
	meter_close(&r);
}

/* A long key is cut, and says how long it was. */
static void samples_of_long_keys(void **state)
{
	static const size_t lengths[] = {0, 1, WQ_SAMPLE_BYTES - 1, WQ_SAMPLE_BYTES, WQ_KEY_MAX};
	static char key[WQ_KEY_MAX];
	struct meter_rig r;
	wq_item it;

	(void)state;
	memset(key, 'k', sizeof key);
	meter_open(&r, NULL);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		size_t n = lengths[i] < WQ_SAMPLE_BYTES ? lengths[i] : WQ_SAMPLE_BYTES - 1;
		wq_sample s;

		IS(wq_add(r.f.q, key, lengths[i]), WQ_QUEUED);
		s = look(r.f.q).oldest_queued;
		IS((int64_t)s.len, (int64_t)lengths[i]);
		IS((int64_t)strlen(s.key), (int64_t)n);
		IS(wq_try_get(r.f.q, &it), WQ_OK);
		s = look(r.f.q).longest_running;
		IS((int64_t)s.len, (int64_t)lengths[i]);
		IS((int64_t)strlen(s.key), (int64_t)n);
		IS(look(r.f.q).oldest_queued.age_ns, -1);
		IS(wq_done(r.f.q, &it), WQ_OK);
	}
	meter_close(&r);
}

static void the_next_to_come_due(void **state)
{
	struct meter_rig r;

	(void)state;
	meter_open(&r, NULL);
	IS(look(r.f.q).next_due_ns, WQ_NEVER);
	IS(wq_add_after(r.f.q, "never", 5, WQ_NEVER), WQ_DELAYED);
	IS(look(r.f.q).next_due_ns, WQ_NEVER);
	IS(wq_add_after(r.f.q, "b", 1, 20), WQ_DELAYED);
	IS(wq_add_after(r.f.q, "a", 1, 10), WQ_DELAYED);
	IS(look(r.f.q).next_due_ns, START_NS + 10);
	IS((int64_t)look(r.f.q).waiting, 3);
	forward(&r, 10);
	IS(look(r.f.q).next_due_ns, START_NS + 20);
	IS((int64_t)look(r.f.q).waiting, 2);
	meter_close(&r);
}

static void failures_that_are_remembered(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1)});
	IS(wq_add_limited(r.f.q, "a", 1), WQ_QUEUED);
	IS((int64_t)look(r.f.q).remembered, 0);
	get_is(r.f.q, &it, "a");
	IS(wq_done(r.f.q, &it), WQ_OK);
	IS((int64_t)look(r.f.q).remembered, 1);
	IS(wq_forget(r.f.q, "a", 1), WQ_OK);
	IS((int64_t)look(r.f.q).remembered, 0);
	meter_close(&r);
}

/* Of an order of one's own only it knows who is the oldest. */
static void push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)where;
	node->link[0] = *(wq_node **)ctx;
	*(wq_node **)ctx = node;
}

static wq_node *pop(void *ctx)
{
	wq_node *top = *(wq_node **)ctx;

	*(wq_node **)ctx = top->link[0];
	return top;
}

static void an_order_of_ones_own(void **state)
{
	wq_node *top = NULL;
	wq_order order = {.push = push, .pop = pop, .ctx = &top};
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.order = &order});
	IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
	forward(&r, 10);
	IS(wq_add_str(r.f.q, "b"), WQ_QUEUED);
	IS(look(r.f.q).oldest_queued.age_ns, -1);
	/* The rest is as ever, also for a key that was cancelled and is still in the order. */
	IS(cancel_key(r.f.q, "b", 1), WQ_STATE_QUEUED);
	get_is(r.f.q, &it, "a");
	IS((int64_t)look(r.f.q).queue.sum_ns, 10);
	forward(&r, 5);
	IS(look(r.f.q).longest_running.age_ns, 5);
	IS(wq_done(r.f.q, &it), WQ_OK);
	meter_close(&r);
}

/* Nothing took less than no time. */
static void a_clock_that_goes_back(void **state)
{
	struct own_clock own = {.now_ns = 1000};
	wq_clock clock = own_clock(&own, false);
	struct told told;
	wq_metrics_provider provider = told_provider(&told);
	wq_snapshot s;
	wq_item it;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.name = "q", .clock = &clock, .provider = &provider}), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	atomic_store(&own.now_ns, 900);
	IS(look(q).oldest_queued.age_ns, 0);
	get_is(q, &it, "a");
	atomic_store(&own.now_ns, 800);
	s = look(q);
	IS((int64_t)s.queue.sum_ns, 0);
	IS(s.longest_running.age_ns, 0);
	IS(s.unfinished_ns, 0);
	IS(wq_done(q, &it), WQ_OK);
	IS((int64_t)look(q).work.sum_ns, 0);
	IS((int64_t)look(q).work.count[0], 1);
	told_agrees(&told, q);
	IS(wq_free(q), 0);
}

/* ---- walk ------------------------------------------------------------------ */

static int find(void *ctx, const wq_key_info *info)
{
	wq_key_info *wanted = ctx;

	if (info->len != wanted->len || memcmp(info->key, wanted->key, info->len) != 0)
		return 0;
	*wanted = *info;
	return 1;
}

static wq_key_info shown(wq_queue *q, const char *key)
{
	wq_key_info info = {.key = key, .len = strlen(key)};

	assert_true(wq_walk(q, find, &info) > 0);
	assert_true(info.state != 0);
	return info;
}

static void a_walk_shows_failures_and_how_long_it_runs(void **state)
{
	struct meter_rig r;
	wq_item it;

	(void)state;
	meter_open(&r, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1)});
	for (int failures = 0; failures < 3; failures++) {
		if (failures == 0)
			IS(wq_add_str(r.f.q, "a"), WQ_QUEUED);
		IS(shown(r.f.q, "a").failures, failures);
		IS(shown(r.f.q, "a").running_ns, 0);
		forward(&r, 10);
		IS(shown(r.f.q, "a").running_ns, 0);
		get_is(r.f.q, &it, "a");
		forward(&r, 5);
		IS(shown(r.f.q, "a").running_ns, 5);
		IS(shown(r.f.q, "a").age_ns, 15);
		IS(wq_retry(r.f.q, &it), WQ_QUEUED);
	}
	meter_close(&r);
}

static void a_walk_without_a_name(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	IS(wq_add_str(f->q, "a"), WQ_QUEUED);
	get_is(f->q, &it, "a");
	IS(wq_manual_clock_advance(f->mc, 5), WQ_OK);
	IS(shown(f->q, "a").running_ns, 0);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(shown(f->q, "a").failures, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_bounds_are_those_of_kubernetes),
	    cmocka_unit_test(a_bound_belongs_to_its_bucket),
	    cmocka_unit_test(the_queue_time_counts_from_the_due_time),
	    cmocka_unit_test(what_is_given_back_took_no_work),
	    cmocka_unit_test(calls_of_many_and_of_two_steps),
	    cmocka_unit_test(a_next_that_waited),
	    cmocka_unit_test(ages_of_many_holders),
	    cmocka_unit_test(what_is_left_over_is_not_running),
	    cmocka_unit_test(samples_of_long_keys),
	    cmocka_unit_test(the_next_to_come_due),
	    cmocka_unit_test(failures_that_are_remembered),
	    cmocka_unit_test(an_order_of_ones_own),
	    cmocka_unit_test(a_clock_that_goes_back),
	    cmocka_unit_test(a_walk_shows_failures_and_how_long_it_runs),
	    WITH_FIXTURE(a_walk_without_a_name),
	};

	return cmocka_run_group_tests_name("how long things took", tests, NULL, NULL);
}
