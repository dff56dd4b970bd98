/*
 * client-go's own tests of its queue, by their names. Two of them run with both
 * ways to stop.
 */
#include "../support/cancel.h"
#include "../support/support.h"

#include <sched.h>

enum { PRODUCERS = 50, ADDS = 50, CONSUMERS = 10 };

typedef void (*stop_fn)(wq_queue *q);

static void stop_by_shutdown(wq_queue *q)
{
	IS(wq_shutdown(q), WQ_OK);
}

static void stop_by_drain(wq_queue *q)
{
	wq_report left;

	memset(&left, 0xee, sizeof left);
	IS(wq_drain_until(q, WQ_NEVER, NULL, &left), WQ_OK);
	IS((int64_t)(left.queued + left.running + left.dirty), 0);
}

struct crowd {
	wq_queue *q;
	int adds;
	bool readd;                     /* a consumer adds each key once more while it holds it */
	_Atomic int next;               /* the number of the next producer */
	_Atomic int holders[PRODUCERS]; /* who holds the key now */
	_Atomic int times[PRODUCERS];   /* how often it was handed out */
	_Atomic int errors;
};

static int64_t produce(void *arg)
{
	struct crowd *c = arg;
	int key = atomic_fetch_add(&c->next, 1);

	for (int i = 0; i < c->adds; i++) {
		if (wq_add(c->q, &key, sizeof key) < 0)
			atomic_fetch_add(&c->errors, 1);
		sched_yield();
	}
	return 0;
}

static int64_t consume(void *arg)
{
	struct crowd *c = arg;
	int seen[PRODUCERS] = {0};
	wq_item it;
	int rc;

	while ((rc = wq_get(c->q, &it)) == WQ_OK) {
		int key = -1;

		if (it.len == sizeof key)
			memcpy(&key, it.key, sizeof key);
		if (key < 0 || key >= PRODUCERS) { /* "added after shutdown" */
			atomic_fetch_add(&c->errors, 1);
			wq_done(c->q, &it);
			continue;
		}
		if (atomic_fetch_add(&c->holders[key], 1) != 0) /* [ONE] */
			atomic_fetch_add(&c->errors, 1);
		atomic_fetch_add(&c->times[key], 1);
		if (c->readd && ++seen[key] < 2) {
			int added = wq_add(c->q, &key, sizeof key);

			if (added != WQ_MARKED && added != WQ_MERGED && added != WQ_ESHUTDOWN)
				atomic_fetch_add(&c->errors, 1);
		}
		sched_yield();
		atomic_fetch_sub(&c->holders[key], 1);
		if (wq_done(c->q, &it) < 0)
			atomic_fetch_add(&c->errors, 1);
	}
	return rc;
}

static void run_crowd(int adds, bool readd, stop_fn stop)
{
	struct fixture f;
	struct crowd *c = calloc(1, sizeof *c);
	struct actor producers[PRODUCERS], consumers[CONSUMERS];

	assert_non_null(c);
	fixture_open(&f, NULL);
	c->q = f.q;
	c->adds = adds;
	c->readd = readd;
	for (int i = 0; i < CONSUMERS; i++)
		actor_start(&consumers[i], consume, c);
	for (int i = 0; i < PRODUCERS; i++)
		actor_start(&producers[i], produce, c);
	for (int i = 0; i < PRODUCERS; i++)
		actor_join(&producers[i]);
	stop(f.q);
	IS(wq_add_str(f.q, "added after shutdown"), WQ_ESHUTDOWN);
	for (int i = 0; i < CONSUMERS; i++)
		IS(actor_join(&consumers[i]), WQ_ESHUTDOWN);
	IS(atomic_load(&c->errors), 0);
	IS(wq_len(f.q), 0);
	for (int i = 0; i < PRODUCERS; i++) /* [KEEP] */
		assert_true(atomic_load(&c->times[i]) >= 1);
	check_whole(f.q, 0, 0);
	fixture_close(&f, 0);
	free(c);
}

static void Basic_ShutDown(void **state)
{
	(void)state;
	run_crowd(ADDS, false, stop_by_shutdown);
}

static void Basic_ShutDownWithDrain(void **state)
{
	(void)state;
	run_crowd(ADDS, false, stop_by_drain);
}

static void AddWhileProcessing_ShutDown(void **state)
{
	(void)state;
	run_crowd(1, true, stop_by_shutdown);
}

static void AddWhileProcessing_ShutDownWithDrain(void **state)
{
	(void)state;
	run_crowd(1, true, stop_by_drain);
}

static void Len(void **state)
{
	struct fixture *f = *state;

	wq_add_str(f->q, "foo");
	IS(wq_len(f->q), 1);
	wq_add_str(f->q, "bar");
	IS(wq_len(f->q), 2);
	wq_add_str(f->q, "foo");
	IS(wq_len(f->q), 2);
}

static void Reinsert(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	IS(wq_add_str(f->q, "foo"), WQ_QUEUED);
	get_is(f->q, &it, "foo");
	IS(wq_add_str(f->q, "foo"), WQ_MARKED);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	get_is(f->q, &it, "foo");
	IS(wq_done(f->q, &it), WQ_OK);
	IS(wq_len(f->q), 0);
}

/* A FIFO of one's own that counts its touches. */
struct touched {
	wq_node *head;
	wq_node **tail;
	int touches;
	int freed;
};

static void touched_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct touched *t = ctx;

	(void)where;
	node->link[0] = NULL;
	if (t->tail == NULL)
		t->tail = &t->head;
	*t->tail = node;
	t->tail = (wq_node **)(void *)&node->link[0];
}

static wq_node *touched_pop(void *ctx)
{
	struct touched *t = ctx;
	wq_node *node = t->head;

	t->head = node->link[0];
	if (t->head == NULL)
		t->tail = &t->head;
	return node;
}

static void touched_touch(void *ctx, wq_node *node)
{
	struct touched *t = ctx;

	(void)node;
	t->touches++;
}

static void touched_free(void *ctx)
{
	((struct touched *)ctx)->freed++;
}

static void open_touched(struct fixture *f, struct touched *t)
{
	wq_order order = {
	    .push = touched_push,
	    .pop = touched_pop,
	    .touch = touched_touch,
	    .free = touched_free,
	    .ctx = t,
	};

	memset(t, 0, sizeof *t);
	fixture_open(f, &(wq_options){.order = &order});
}

static void Collapse(void **state)
{
	struct fixture f;
	struct touched t;

	(void)state;
	open_touched(&f, &t);
	IS(wq_add_str(f.q, "bar"), WQ_QUEUED);
	IS(wq_add_str(f.q, "bar"), WQ_MERGED);
	IS(t.touches, 1);
	take_is(f.q, "bar", WQ_OK);
	IS(wq_len(f.q), 0);
	fixture_close(&f, 0);
	IS(t.freed, 1);
}

static void CollapseWhileProcessing(void **state)
{
	struct fixture f;
	struct touched t;
	struct getter second;
	wq_item first;

	(void)state;
	open_touched(&f, &t);
	wq_add_str(f.q, "foo");
	get_is(f.q, &first, "foo");
	IS(wq_add_str(f.q, "foo"), WQ_MARKED);
	IS(wq_add_str(f.q, "foo"), WQ_MERGED);
	/* [ONE] the second worker gets nothing while the first holds the key */
	getter_block(&second, f.q, WQ_NEVER);
	IS(wq_len(f.q), 0);
	IS(wq_done(f.q, &first), WQ_QUEUED);
	IS(getter_join(&second), WQ_OK);
	IS((int64_t)second.item.len, 3);
	assert_memory_equal(second.item.key, "foo", 4);
	IS(wq_done(f.q, &second.item), WQ_OK);
	IS(wq_len(f.q), 0);
	IS(t.touches, 0);
	fixture_close(&f, 0);
}

static void QueueDrainageUsingShutDownWithDrain(void **state)
{
	struct fixture *f = *state;
	struct drainer d;
	wq_item foo, bar;

	wq_add_str(f->q, "foo");
	wq_add_str(f->q, "bar");
	get_is(f->q, &foo, "foo");
	get_is(f->q, &bar, "bar");
	drainer_block(&d, f->q, WQ_NEVER);
	IS(wq_shutting_down(f->q), 1);
	IS(wq_add_str(f->q, "baz"), WQ_ESHUTDOWN);
	IS(wq_done(f->q, &foo), WQ_OK);
	actor_blocks(&d.actor); /* one is still held */
	IS(wq_done(f->q, &bar), WQ_OK);
	IS(drainer_join(&d), WQ_OK);
	IS((int64_t)(d.report.queued + d.report.running + d.report.dirty), 0);
}

static void NoQueueDrainageUsingShutDown(void **state)
{
	struct fixture *f = *state;
	wq_item foo, bar;

	wq_add_str(f->q, "foo");
	wq_add_str(f->q, "bar");
	get_is(f->q, &foo, "foo");
	get_is(f->q, &bar, "bar");
	IS(wq_shutdown(f->q), WQ_OK); /* in this thread: a wait would be a hang */
	IS(wq_done(f->q, &foo), WQ_OK);
	IS(wq_done(f->q, &bar), WQ_OK);
}

static void ForceQueueShutdownUsingShutDown(void **state)
{
	struct fixture *f = *state;
	struct drainer d;
	wq_item foo, bar;

	wq_add_str(f->q, "foo");
	wq_add_str(f->q, "bar");
	get_is(f->q, &foo, "foo");
	get_is(f->q, &bar, "bar");
	drainer_block(&d, f->q, WQ_NEVER);
	IS(wq_shutdown(f->q), WQ_OK);
	IS(drainer_join(&d), WQ_EINTERRUPTED);
	IS((int64_t)d.report.queued, 0);
	IS((int64_t)d.report.running, 2);
	IS((int64_t)d.report.dirty, 0);
	IS(wq_done(f->q, &foo), WQ_OK);
	IS(wq_done(f->q, &bar), WQ_OK);
}

static void QueueDrainageUsingShutDownWithDrainWithDirtyItem(void **state)
{
	struct fixture *f = *state;
	struct drainer d;
	wq_item it;

	wq_add_str(f->q, "foo");
	get_is(f->q, &it, "foo");
	wq_add_str(f->q, "foo");
	drainer_block(&d, f->q, WQ_NEVER);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	actor_blocks(&d.actor);
	get_is(f->q, &it, "foo");
	actor_blocks(&d.actor);
	IS(wq_done(f->q, &it), WQ_OK);
	IS(drainer_join(&d), WQ_OK);
	IS(wq_try_get(f->q, &it), WQ_ESHUTDOWN);
}

static void GarbageCollection(void **state)
{
	struct fixture *f = *state;
	enum { SIZE = 60000, KEYS = 100, KEPT = 600 << 10 };
	static char key[SIZE];
	wq_item it;

	/* A short key first: what it allocates (a run, a page of the table) may stay. */
	wq_add_str(f->q, "foo");
	take_is(f->q, "foo", WQ_OK);
	IS(state_of(f->q, "foo"), 0);

	int64_t bytes = f->mem.bytes;

	/* What long ones took must not, but for a few idle runs. */
	for (int i = 0; i < KEYS; i++) {
		memset(key, 'a' + i, SIZE);
		IS(wq_add(f->q, key, SIZE), WQ_QUEUED);
	}
	assert_true(f->mem.bytes >= bytes + (int64_t)KEYS * SIZE);
	for (int i = 0; i < KEYS; i++) {
		IS(wq_try_get(f->q, &it), WQ_OK);
		IS(wq_done(f->q, &it), WQ_OK);
	}
	IS(wq_state(f->q, key, SIZE), 0);
	assert_true(f->mem.bytes <= bytes + KEPT);
	IS(count_keys(f->q), 0);
}

/* ---- Delaying ---------------------------------------------------------------- */

static void step(struct fixture *f, int64_t ms)
{
	IS(wq_manual_clock_advance(f->mc, ms * WQ_MILLISECOND), WQ_OK);
}

static int add_after(struct fixture *f, const char *key, int64_t ms)
{
	return wq_add_after(f->q, key, strlen(key), ms * WQ_MILLISECOND);
}

/* Nothing is ready, and nothing more appears. */
static void nothing_more(struct fixture *f)
{
	IS(wq_len(f->q), 0);
	step(f, 10000);
	IS(wq_len(f->q), 0);
	IS(wq_next_deadline(f->q), WQ_NEVER);
	IS(count_keys(f->q), 0);
}

static void SimpleQueue(void **state)
{
	struct fixture *f = *state;

	IS(add_after(f, "foo", 50), WQ_DELAYED);
	IS(wq_len(f->q), 0);
	step(f, 60);
	IS(wq_len(f->q), 1);
	take_is(f->q, "foo", WQ_OK);
	nothing_more(f);
}

static void Deduping(void **state)
{
	struct fixture *f = *state;

	IS(add_after(f, "foo", 50), WQ_DELAYED);
	IS(add_after(f, "foo", 70), WQ_KEPT);
	IS(wq_len(f->q), 0);
	step(f, 60);
	IS(wq_len(f->q), 1);
	take_is(f->q, "foo", WQ_OK);
	step(f, 20); /* the later of the two does not show up */
	nothing_more(f);

	IS(add_after(f, "foo", 50), WQ_DELAYED);
	IS(add_after(f, "foo", 30), WQ_MOVED);
	IS(wq_len(f->q), 0);
	step(f, 40);
	IS(wq_len(f->q), 1);
	take_is(f->q, "foo", WQ_OK);
	step(f, 20);
	nothing_more(f);
}

static void AddTwoFireEarly(void **state)
{
	struct fixture *f = *state;

	IS(add_after(f, "foo", 1000), WQ_DELAYED);
	IS(add_after(f, "bar", 50), WQ_DELAYED);
	IS(wq_len(f->q), 0);
	step(f, 60);
	IS(wq_len(f->q), 1);
	take_is(f->q, "bar", WQ_OK);
	IS(add_after(f, "baz", 2000), WQ_DELAYED);
	step(f, 1000);
	IS(wq_len(f->q), 1);
	take_is(f->q, "foo", WQ_OK);
	step(f, 2000);
	IS(wq_len(f->q), 1);
	take_is(f->q, "baz", WQ_OK);
	nothing_more(f);
}

static void CopyShifting(void **state)
{
	struct fixture *f = *state;

	IS(add_after(f, "foo", 1000), WQ_DELAYED);
	IS(add_after(f, "bar", 500), WQ_DELAYED);
	IS(add_after(f, "baz", 250), WQ_DELAYED);
	IS(wq_len(f->q), 0);
	step(f, 2000);
	IS(wq_len(f->q), 3);
	take_is(f->q, "baz", WQ_OK);
	take_is(f->q, "bar", WQ_OK);
	take_is(f->q, "foo", WQ_OK);
	nothing_more(f);
}

/* ---- limited ----------------------------------------------------------------- */

static int find_one(void *ctx, const wq_key_info *info)
{
	wq_key_info *wanted = ctx;

	if (info->len != wanted->len || memcmp(info->key, wanted->key, info->len) != 0)
		return 0;
	wanted->due_ns = info->due_ns;
	return 1;
}

/* AddRateLimited, and how long the key would wait; only the failures stay. */
static int64_t ready_in(struct fixture *f, const char *key)
{
	wq_key_info info = {.key = key, .len = strlen(key)};

	IS(wq_add_limited(f->q, key, strlen(key)), WQ_DELAYED);
	assert_true(wq_walk(f->q, find_one, &info) > 0);
	IS(cancel_key(f->q, key, strlen(key)), WQ_STATE_WAITING);
	return info.due_ns - wq_now(f->q);
}

static void RateLimitingQueue(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f,
	             &(wq_options){.limiter = wq_limiter_exponential(WQ_MILLISECOND, WQ_SECOND)});
	IS(ready_in(&f, "one"), WQ_MILLISECOND);
	IS(ready_in(&f, "one"), 2 * WQ_MILLISECOND);
	IS(wq_failures(f.q, "one", 3), 2);
	IS(ready_in(&f, "two"), WQ_MILLISECOND);
	IS(ready_in(&f, "two"), 2 * WQ_MILLISECOND);
	IS(wq_forget(f.q, "one", 3), WQ_OK);
	IS(wq_failures(f.q, "one", 3), 0);
	IS(ready_in(&f, "one"), WQ_MILLISECOND);
	IS(wq_failures(f.q, "two", 3), 2);
	fixture_close(&f, 0);
}

static wq_snapshot look(wq_queue *q)
{
	wq_snapshot s;

	IS(wq_snapshot_take(q, &s), WQ_OK);
	return s;
}

static void depth_and_adds_are(wq_queue *q, int64_t depth, int64_t adds)
{
	wq_snapshot s = look(q);

	IS((int64_t)(s.queued + s.dirty), depth);
	IS((int64_t)s.adds, adds);
}

static void Metrics(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.name = "test"});
	IS(wq_add_str(f.q, "foo"), WQ_QUEUED);
	depth_and_adds_are(f.q, 1, 1);
	wq_manual_clock_advance(f.mc, 50 * WQ_MICROSECOND);

	get_is(f.q, &it, "foo");
	IS((int64_t)look(f.q).queue.sum_ns, 50 * WQ_MICROSECOND);
	IS((int64_t)look(f.q).queue.count[4], 1);
	depth_and_adds_are(f.q, 0, 1);

	for (int i = 0; i < 5; i++)
		IS(wq_add_str(f.q, "foo"), i == 0 ? WQ_MARKED : WQ_MERGED);
	depth_and_adds_are(f.q, 1, 2);
	wq_manual_clock_advance(f.mc, 25 * WQ_MICROSECOND);

	IS(wq_done(f.q, &it), WQ_QUEUED);
	IS((int64_t)look(f.q).work.sum_ns, 25 * WQ_MICROSECOND);
	IS((int64_t)look(f.q).work.count[4], 1);
	depth_and_adds_are(f.q, 1, 2);

	/* The second time it was in line from the add while it ran. */
	wq_manual_clock_advance(f.mc, 10 * WQ_MICROSECOND);
	get_is(f.q, &it, "foo");
	IS((int64_t)look(f.q).queue.sum_ns, (50 + 35) * WQ_MICROSECOND);
	depth_and_adds_are(f.q, 0, 2);

	wq_manual_clock_advance(f.mc, WQ_MILLISECOND);
	IS(look(f.q).unfinished_ns, WQ_MILLISECOND);
	IS(look(f.q).longest_running.age_ns, WQ_MILLISECOND);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(look(f.q).unfinished_ns, 0);
	IS(look(f.q).longest_running.age_ns, -1);
	fixture_close(&f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(Basic_ShutDown),
	    cmocka_unit_test(Basic_ShutDownWithDrain),
	    cmocka_unit_test(AddWhileProcessing_ShutDown),
	    cmocka_unit_test(AddWhileProcessing_ShutDownWithDrain),
	    WITH_FIXTURE(Len),
	    WITH_FIXTURE(Reinsert),
	    cmocka_unit_test(Collapse),
	    cmocka_unit_test(CollapseWhileProcessing),
	    WITH_FIXTURE(QueueDrainageUsingShutDownWithDrain),
	    WITH_FIXTURE(NoQueueDrainageUsingShutDown),
	    WITH_FIXTURE(ForceQueueShutdownUsingShutDown),
	    WITH_FIXTURE(QueueDrainageUsingShutDownWithDrainWithDirtyItem),
	    WITH_FIXTURE(GarbageCollection),
	    WITH_FIXTURE(SimpleQueue),
	    WITH_FIXTURE(Deduping),
	    WITH_FIXTURE(AddTwoFireEarly),
	    WITH_FIXTURE(CopyShifting),
	    cmocka_unit_test(RateLimitingQueue),
	    cmocka_unit_test(Metrics),
	};

	return cmocka_run_group_tests_name("client-go's checklist", tests, NULL, NULL);
}
