/*
 * Groups and those who wait: limits over many workers, wake-ups by each call that frees a place,
 * shutdowns, drains and descriptors beside blocked keys.
 */
#include "rich_rig.h"

#include <poll.h>

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

/* ---- wake-ups ------------------------------------------------------------------------ */

enum end {
	DONE,
	DONE_MANY,
	SETTLE,
	DROP,
	RETRY,
	AGAIN,
	TAIL,
	FATAL,
	CANCELLED_RETRY,
	NEXT,
	NEXT_MANY,
	SETTLE_NEXT,
	ENDS
};

/* a/1 is held. It ends; if the call gets a key in the same step, that is b/1, and it is done. */
static void end_hold(wq_queue *q, enum end end, wq_item *it)
{
	int settled = 0;

	switch (end) {
	case DONE:
		IS(wq_done(q, it), WQ_OK);
		return;
	case DONE_MANY:
		IS(wq_done_many(q, it, 1, NULL), 1);
		return;
	case SETTLE:
		IS(wq_settle(q, it, WQ_DONE), WQ_OK);
		return;
	case DROP:
		IS(wq_settle(q, it, WQ_DROP), WQ_OK);
		return;
	case RETRY:
		IS(wq_retry(q, it), WQ_DELAYED);
		return;
	case AGAIN:
		IS(wq_settle(q, it, wq_again_after(WQ_SECOND)), WQ_DELAYED);
		return;
	case TAIL:
		IS(wq_requeue(q, it, WQ_TAIL), WQ_QUEUED);
		return;
	case FATAL:
		IS(wq_settle(q, it, WQ_FATAL), WQ_DEAD);
		return;
	case CANCELLED_RETRY:
		IS(wq_cancel(q, "a/1", 3, NULL), WQ_CANCELLED);
		IS(wq_retry(q, it), WQ_CANCELLED);
		return;
	case NEXT:
		IS(wq_next_until(q, it, WQ_NOWAIT), WQ_OK);
		break;
	case NEXT_MANY:
		IS(wq_next_many_until(q, it, 1, 1, WQ_NOWAIT), 1);
		break;
	case SETTLE_NEXT:
		IS(wq_settle_next_until(q, it, WQ_DONE, WQ_NOWAIT, &settled), WQ_OK);
		break;
	case ENDS:
		return;
	}
}

/* [WAKE] [LIMIT] A hold ends in any way, and a get that sleeps beside a blocked key takes it. */
static void each_end_wakes(void **state)
{
	(void)state;
	for (enum end end = DONE; end < ENDS; end++) {
		bool gets = end >= NEXT;
		wq_options o = grouped(gets ? 2 : 1);
		struct fixture f;
		struct getter g;
		wq_item held[3];

		o.spin_ns = WQ_SPIN_NEVER;
		fixture_open(&f, &o);
		add_keys(f.q, "a", gets ? 4 : 2);
		IS(hold_keys(f.q, held, gets ? "a/1 a/2" : "a/1"), gets ? 2 : 1);
		getter_block(&g, f.q, WQ_NEVER);
		if (gets)
			IS(wq_done(f.q, &held[1]), WQ_OK); /* a/3 is for the one that sleeps */
		if (gets) {
			IS(getter_join(&g), WQ_OK);
			assert_string_equal(g.item.key, "a/3");
			IS(wq_requeue(f.q, &g.item, WQ_TAIL), WQ_QUEUED);
			IS(wq_try_get(f.q, &held[1]), WQ_OK);
			getter_block(&g, f.q, WQ_NEVER);
			/* One place is free, and the call takes it itself. */
			end_hold(f.q, end, &held[0]);
			IS(actor_finished(&g.actor), false);
			IS(wq_done(f.q, &held[1]), WQ_OK);
			IS(wq_done(f.q, &held[0]), WQ_OK);
			IS(wq_shutdown(f.q), WQ_OK);
			IS(getter_join(&g), WQ_ESHUTDOWN);
			fixture_close(&f, 0);
			continue;
		}
		end_hold(f.q, end, &held[0]);
		IS(getter_join(&g), WQ_OK);
		assert_string_equal(g.item.key, "a/2");
		IS(wq_done(f.q, &g.item), WQ_OK);
		fixture_close(&f, -1);
	}
}

/* [WAKE] Many places at once wake as many. */
static void done_many_wakes_all(void **state)
{
	enum { N = 12 };
	wq_options o = grouped(N);
	struct fixture f;
	struct getter g[N];
	wq_item held[N];

	(void)state;
	o.spin_ns = WQ_SPIN_NEVER;
	fixture_open(&f, &o);
	add_keys(f.q, "a", 2 * N);
	IS(wq_get_many_until(f.q, held, N, WQ_NOWAIT), N);
	for (int i = 0; i < N; i++)
		getter_block(&g[i], f.q, WQ_NEVER);
	IS(wq_done_many(f.q, held, N, NULL), N);
	for (int i = 0; i < N; i++)
		IS(getter_join(&g[i]), WQ_OK);
	for (int i = 0; i < N; i++)
		IS(wq_done(f.q, &g[i].item), WQ_OK);
	fixture_close(&f, 0);
}

/* next_many takes one of the places that it frees; another get is woken for the other. */
static void next_many_leaves_one(void **state)
{
	wq_options o = grouped(2);
	struct fixture f;
	struct getter g;
	wq_item held[2];

	(void)state;
	o.spin_ns = WQ_SPIN_NEVER;
	fixture_open(&f, &o);
	add_keys(f.q, "a", 4);
	IS(wq_get_many_until(f.q, held, 2, WQ_NOWAIT), 2);
	getter_block(&g, f.q, WQ_NEVER);
	IS(wq_done(f.q, &held[1]), WQ_OK);
	IS(getter_join(&g), WQ_OK);
	IS(wq_next_many_until(f.q, held, 1, 2, WQ_NOWAIT), 1);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(wq_done(f.q, &g.item), WQ_OK);
	fixture_close(&f, 0);
}

/* ---- a limit and many workers ------------------------------------------------------------ */

enum { GROUPS = 8, LIMIT = 2, WORKERS = 4, KEYS = 4000 };

struct crowd {
	wq_queue *q;
	_Atomic int held[GROUPS];
	_Atomic int done;
	_Atomic int broken;
};

static void enter(struct crowd *c, const wq_item *it)
{
	int g = *(const char *)it->key - '0';

	if (atomic_fetch_add(&c->held[g], 1) >= LIMIT)
		atomic_fetch_add(&c->broken, 1);
}

static void leave(struct crowd *c, const wq_item *it)
{
	atomic_fetch_sub(&c->held[*(const char *)it->key - '0'], 1);
	atomic_fetch_add(&c->done, 1);
}

static int64_t work(void *arg)
{
	struct crowd *c = arg;
	uint64_t rng = (uint64_t)(uintptr_t)&rng;
	wq_item it, many[3];
	int rc = wq_get(c->q, &it);

	while (rc == WQ_OK) {
		int n;

		enter(c, &it);
		leave(c, &it);
		switch (rng_below(&rng, 4)) {
		case 0:
			rc = wq_next(c->q, &it);
			break;
		case 1:
			rc = wq_settle_next_until(c->q, &it, WQ_DONE, WQ_NEVER, NULL);
			break;
		case 2:
			IS(wq_done(c->q, &it), WQ_OK);
			rc = wq_get(c->q, &it);
			break;
		default:
			many[0] = it;
			n = wq_next_many_until(c->q, many, 1, 3, WQ_NEVER);
			if (n < 0)
				return n;
			for (int i = 0; i < n; i++)
				enter(c, &many[i]);
			for (int i = 0; i < n; i++)
				leave(c, &many[i]);
			IS(wq_done_many(c->q, many, (size_t)n, NULL), n);
			rc = wq_get(c->q, &it);
			break;
		}
	}
	return rc;
}

/* [LIMIT] Over all workers; every key is handed out, and all workers leave in the end. */
static void over_all_workers(void **state)
{
	struct crowd c = {.broken = 0};
	struct actor a[WORKERS];
	wq_options o = grouped(LIMIT);
	char key[32];
	wq_report report;

	(void)state;
	IS(wq_new(&c.q, &o), WQ_OK);
	for (int i = 0; i < WORKERS; i++)
		actor_start(&a[i], work, &c);
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof key, "%d/%d", i % 16 < 9 ? 0 : i % GROUPS, i);
		IS(wq_add_str(c.q, key), WQ_QUEUED);
	}
	IS(wq_drain_until(c.q, WQ_NEVER, NULL, &report), WQ_OK);
	for (int i = 0; i < WORKERS; i++)
		IS(actor_join(&a[i]), WQ_ESHUTDOWN);
	IS(c.done, KEYS);
	IS(c.broken, 0);
	IS(wq_free(c.q), 0);
}

static wq_verdict handle(void *ctx, const wq_item *item)
{
	struct crowd *c = ctx;

	enter(c, item);
	leave(c, item);
	return item->attempts == 1 && item->len % 2 ? wq_retry_after(1) : WQ_DONE;
}

/* [LIMIT] The workers of a pool, and a drain that lets them finish what is blocked. */
static void over_a_pool(void **state)
{
	struct crowd c = {.broken = 0};
	wq_options o = grouped(LIMIT);
	wq_pool *p = NULL;
	char key[32];

	(void)state;
	o.limiter = wq_limiter_exponential(1, 1);
	IS(wq_new(&c.q, &o), WQ_OK);
	IS(wq_pool_start(&p, c.q,
	                 &(wq_pool_options){.workers = WORKERS, .handler = handle, .ctx = &c}),
	   WQ_OK);
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof key, "%d/%d", i % 16 < 9 ? 0 : i % GROUPS, i);
		IS(wq_add_str(c.q, key), WQ_QUEUED);
	}
	IS(wq_drain_until(c.q, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL), WQ_OK);
	IS(wq_pool_stop_until(p, WQ_NEVER), WQ_OK);
	IS(wq_pool_free(p), WQ_OK);
	assert_true(c.done >= KEYS);
	IS(c.broken, 0);
	IS(wq_free(c.q), 0);
}

/* ---- shutdown, drain, idle ------------------------------------------------------------------ */

/* A get waits for blocked keys instead of answering WQ_ESHUTDOWN; in the end all leave. */
static void shutdown_waits_for_blocked_keys(void **state)
{
	struct fixture f;
	struct getter g[3];
	wq_item held[2], it;
	int got = 0, left = 0;

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 2);
	IS(hold_keys(f.q, held, "a/1"), 1);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(wq_try_get(f.q, &it), WQ_EAGAIN);
	IS(wq_get_until(f.q, &it, START_NS), WQ_ETIMEDOUT);
	for (int i = 0; i < 3; i++)
		getter_block(&g[i], f.q, WQ_NEVER);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	/* One takes it, and the others leave, though it is held. */
	for (int i = 0; i < 3; i++) {
		int rc = getter_join(&g[i]);

		if (rc == WQ_OK)
			got = i;
		left += rc == WQ_ESHUTDOWN;
	}
	IS(left, 2);
	assert_string_equal(g[got].item.key, "a/2");
	IS(wq_done(f.q, &g[got].item), WQ_OK);
	IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
	fixture_close(&f, 0);
}

/* Gets that slept before the shutdown sleep on beside a blocked key. */
static void shutdown_of_sleepers(void **state)
{
	struct fixture f;
	struct getter g[2];
	wq_item held[2];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 2);
	IS(hold_keys(f.q, held, "a/1"), 1);
	getter_block(&g[0], f.q, WQ_NEVER);
	getter_block(&g[1], f.q, WQ_NEVER);
	IS(wq_shutdown(f.q), WQ_OK);
	actor_blocks(&g[0].actor);
	actor_blocks(&g[1].actor);
	/* The last blocked key is cancelled: they leave, though a key is held. */
	IS(wq_cancel(f.q, "a/2", 3, NULL), WQ_CANCELLED);
	IS(getter_join(&g[0]), WQ_ESHUTDOWN);
	IS(getter_join(&g[1]), WQ_ESHUTDOWN);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	fixture_close(&f, 0);
}

/* Another get takes the last blocked key: those that waited for it leave, and event loops too. */
static void taken_by_another(void **state)
{
	(void)state;
	for (enum end end = NEXT; end < ENDS; end++) {
		struct fixture f;
		struct getter g;
		wq_item held[2], it;
		struct pollfd p = {.events = POLLIN};

		open_grouped(&f, 1);
		p.fd = wq_fd(f.q);
		add_keys(f.q, "a", 2);
		IS(hold_keys(f.q, held, "a/1"), 1);
		IS(wq_shutdown(f.q), WQ_OK);
		getter_block(&g, f.q, WQ_NEVER);
		IS(wq_try_get(f.q, &it), WQ_EAGAIN);
		IS(poll(&p, 1, 0), 0);
		end_hold(f.q, end, &held[0]);
		assert_string_equal(held[0].key, "a/2");
		IS(getter_join(&g), WQ_ESHUTDOWN);
		IS(poll(&p, 1, 0), 1);
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		IS(wq_done(f.q, &held[0]), WQ_OK);
		fixture_close(&f, 0);
	}
}

/* [DRAIN] A drain waits for blocked keys; one that has no time reports them. */
static void drains(void **state)
{
	static const enum wq_drain_mode modes[] = {WQ_DRAIN_LEAVE, WQ_DRAIN_RUN, WQ_DRAIN_WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(modes); i++) {
		struct fixture f;
		struct drainer d;
		struct getter g;
		wq_report report;
		wq_item held[2], it;
		wq_drain_options o = {.mode = modes[i]};

		open_grouped(&f, 1);
		add_keys(f.q, "a", 3);
		IS(add_full(f.q, "a/9", 0, NULL, WQ_SECOND), WQ_DELAYED);
		IS(hold_keys(f.q, held, "a/1"), 1);
		IS(wq_drain_until(f.q, 0, &o, &report), WQ_ETIMEDOUT);
		IS((int64_t)report.queued, modes[i] == WQ_DRAIN_RUN ? 3 : 2);
		IS((int64_t)report.running, 1);
		drainer_block(&d, f.q, WQ_NEVER);
		getter_block(&g, f.q, WQ_NEVER);
		IS(wq_done(f.q, &held[0]), WQ_OK);
		IS(getter_join(&g), WQ_OK);
		IS(wq_done(f.q, &g.item), WQ_OK);
		actor_blocks(&d.actor);
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_string_equal(it.key, "a/3");
		IS(wq_done(f.q, &it), WQ_OK);
		if (modes[i] != WQ_DRAIN_LEAVE) {
			wq_manual_clock_advance(f.mc, WQ_SECOND);
			IS(wq_try_get(f.q, &it), WQ_OK);
			assert_string_equal(it.key, "a/9");
			IS(wq_done(f.q, &it), WQ_OK);
		}
		IS(drainer_join(&d), modes[i] == WQ_DRAIN_LEAVE ? WQ_LEFT : WQ_OK);
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		fixture_close(&f, modes[i] == WQ_DRAIN_LEAVE);
	}
}

static int64_t wait_idle(void *arg)
{
	return wq_wait_idle_until(arg, WQ_NEVER);
}

static int64_t wait_a2(void *arg)
{
	return wq_wait_key_until(arg, "a/2", 3, WQ_NEVER);
}

/* Blocked keys are not idle, and a key that is blocked is waited for. */
static void waits(void **state)
{
	struct fixture f;
	struct actor idle, key;
	wq_item held[2];

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 3);
	IS(hold_keys(f.q, held, "a/1"), 1);
	actor_start(&idle, wait_idle, f.q);
	actor_start(&key, wait_a2, f.q);
	actor_blocks(&idle);
	actor_blocks(&key);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(hold_keys(f.q, held, "a/2"), 1);
	actor_blocks(&key);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(actor_join(&key), WQ_OK);
	actor_blocks(&idle);
	IS(wq_cancel(f.q, "a/3", 3, NULL), WQ_CANCELLED);
	IS(actor_join(&idle), WQ_OK);
	fixture_close(&f, 0);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* [FD] Blocked keys do not make it readable; the end of a hold does. */
static void descriptors(void **state)
{
	struct fixture f;
	wq_item held[2], it;
	int fd;

	(void)state;
	open_grouped(&f, 1);
	add_keys(f.q, "a", 1);
	IS(hold_keys(f.q, held, "a/1"), 1);
	fd = wq_fd(f.q);
	assert_true(fd >= 0);
	IS(readable(fd), false);
	IS(wq_add_str(f.q, "a/2"), WQ_QUEUED);
	IS(readable(fd), false);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(readable(fd), true);
	IS(hold_keys(f.q, held, "a/2"), 1);
	IS(readable(fd), false);
	IS(wq_add_str(f.q, "a/3"), WQ_QUEUED);
	IS(readable(fd), false);
	IS(wq_requeue(f.q, &held[0], WQ_TAIL), WQ_QUEUED);
	IS(readable(fd), true);
	IS(hold_keys(f.q, held, "a/3"), 1);
	/* Shut down: not readable for ever, as a get has to wait. */
	IS(wq_shutdown(f.q), WQ_OK);
	IS(readable(fd), true);
	IS(wq_try_get(f.q, &it), WQ_EAGAIN);
	IS(readable(fd), false);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(readable(fd), true);
	IS(wq_try_get(f.q, &it), WQ_OK);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(readable(fd), true);
	IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
	IS(readable(fd), true);
	fixture_close(&f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_end_wakes),
	    cmocka_unit_test(done_many_wakes_all),
	    cmocka_unit_test(next_many_leaves_one),
	    cmocka_unit_test(over_all_workers),
	    cmocka_unit_test(over_a_pool),
	    cmocka_unit_test(shutdown_waits_for_blocked_keys),
	    cmocka_unit_test(shutdown_of_sleepers),
	    cmocka_unit_test(taken_by_another),
	    cmocka_unit_test(drains),
	    cmocka_unit_test(waits),
	    cmocka_unit_test(descriptors),
	};

	return cmocka_run_group_tests_name("group_wait", tests, NULL, NULL);
}
