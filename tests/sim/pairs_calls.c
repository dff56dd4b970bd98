/* The table of calls, see pairs.h. Every public call on a queue stands in it. */
#include "../support/cancel.h"
#include "pairs.h"

#include <string.h>

enum { MANY = 3 };

static const int ok[] = {WQ_OK, LAST};
static const int value[] = {VALUE, WQ_OK, LAST};
static const int adds[] = {WQ_QUEUED, WQ_MERGED, WQ_MARKED, WQ_ESHUTDOWN, LAST};
static const int laters[] = {WQ_QUEUED, WQ_MERGED, WQ_MARKED,    WQ_DELAYED,
                             WQ_MOVED,  WQ_KEPT,   WQ_ESHUTDOWN, LAST};
static const int gets[] = {WQ_OK, WQ_ESHUTDOWN, WQ_EINTERRUPTED, LAST};
static const int gets_until[] = {WQ_OK, WQ_ESHUTDOWN, WQ_EINTERRUPTED, WQ_ETIMEDOUT, LAST};
static const int gets_now[] = {WQ_OK, WQ_ESHUTDOWN, WQ_EAGAIN, LAST};
static const int many[] = {VALUE, WQ_ESHUTDOWN, WQ_EINTERRUPTED, WQ_EAGAIN, WQ_ESTALE, LAST};
static const int nexts[] = {WQ_OK, WQ_ESHUTDOWN, WQ_EINTERRUPTED, WQ_ESTALE, LAST};
static const int dones[] = {WQ_OK, WQ_QUEUED, WQ_DELAYED, WQ_LEFT, WQ_ESTALE, LAST};
static const int retries[] = {WQ_QUEUED, WQ_DELAYED, WQ_LEFT, WQ_CANCELLED, WQ_ESTALE, LAST};
static const int settles[] = {WQ_OK, WQ_QUEUED, WQ_DELAYED, WQ_LEFT, WQ_CANCELLED, WQ_ESTALE, LAST};
static const int held[] = {VALUE, WQ_OK, WQ_ESTALE, LAST};
static const int found[] = {VALUE, WQ_ENOTFOUND, LAST};
static const int found_until[] = {VALUE, WQ_ENOTFOUND, WQ_ETIMEDOUT, LAST};
static const int moves[] = {WQ_MOVED, WQ_ENOTFOUND, WQ_ESHUTDOWN, LAST};
static const int ok_until[] = {WQ_OK, WQ_ETIMEDOUT, LAST};
static const int drains[] = {WQ_OK, WQ_LEFT, WQ_EINTERRUPTED, LAST};
static const int drains_until[] = {WQ_OK, WQ_LEFT, WQ_EINTERRUPTED, WQ_ETIMEDOUT, LAST};
static const int frees[] = {VALUE, WQ_EBUSY, LAST};
static const int pools[] = {WQ_OK, WQ_ESHUTDOWN, LAST};

#define KEY(c) pairs_key((c)->op->key), strlen(pairs_key((c)->op->key))

/* ---- add ----------------------------------------------------------------------- */

static int64_t added(struct call *c, int rc)
{
	pairs_added(c->op->key, rc, sim_call_last());
	return rc;
}

static int64_t add(struct call *c)
{
	return added(c, wq_add(run.q, KEY(c)));
}

static int64_t add_many(struct call *c)
{
	static const int keys[] = {NEW1, WAIT1, HELD1, NEW2, LINE1};
	enum { N = sizeof keys / sizeof *keys };
	wq_key k[N];
	int outcomes[N];

	for (int i = 0; i < N; i++)
		k[i] = (wq_key){pairs_key(keys[i]), strlen(pairs_key(keys[i]))};
	sim_call_begin();

	int rc = wq_add_many(run.q, k, N, outcomes);

	(void)c;
	for (int i = 0; i < N; i++)
		pairs_added(keys[i], outcomes[i], sim_call_first());
	return rc;
}

static int64_t add_after(struct call *c)
{
	return added(c, wq_add_after(run.q, KEY(c), c->op->arg));
}

static int64_t add_at(struct call *c)
{
	return added(c, wq_add_at(run.q, KEY(c), c->op->arg));
}

static int64_t add_replace(struct call *c)
{
	wq_add_options o = {.after_ns = c->op->arg, .policy = WQ_REPLACE};

	return added(c, wq_add_with(run.q, KEY(c), &o));
}

static int64_t add_remind(struct call *c)
{
	wq_add_options o = {.after_ns = c->op->arg, .policy = WQ_REMIND};

	return added(c, wq_add_with(run.q, KEY(c), &o));
}

static int64_t add_limited(struct call *c)
{
	int rc = wq_add_limited(run.q, KEY(c));

	pairs_retried(c->op->key, rc, sim_call_last());
	return added(c, rc);
}

static int64_t reschedule(struct call *c)
{
	int rc = wq_reschedule(run.q, KEY(c), (int64_t)c->op->arg);

	if (rc == WQ_MOVED)
		pairs_added(c->op->key, rc, sim_call_last());
	return rc;
}

/* ---- cancel, forget ------------------------------------------------------------ */

/* It took effect in one of its sections; the last is the cautious guess. */
static int64_t cancelled(struct call *c, int rc)
{
	if (rc > 0 || rc == WQ_ETIMEDOUT) {
		run.gone[c->op->key] = 2 * sim_call_last() + 1;
		run.sure[c->op->key] = 2 * sim_call_first() + 1;
	}
	return rc;
}

static int64_t take_back(struct call *c)
{
	return cancelled(c, cancel_key(run.q, KEY(c)));
}

static int64_t cancel_sync(struct call *c)
{
	return cancelled(c, cancel_key_until(run.q, KEY(c), c->op->arg));
}

static int64_t forget(struct call *c)
{
	return wq_forget(run.q, KEY(c));
}

static int64_t forget_item(struct call *c)
{
	return wq_forget_item(run.q, &run.item[c->op->key]);
}

static int64_t failures(struct call *c)
{
	return wq_failures(run.q, KEY(c));
}

static int64_t failures_item(struct call *c)
{
	return wq_failures_item(run.q, &run.item[c->op->key]);
}

/* ---- get ----------------------------------------------------------------------- */

static int64_t get(struct call *c)
{
	wq_item it;
	int rc = c->op->arg == WQ_NOWAIT  ? wq_try_get(run.q, &it)
	         : c->op->arg == WQ_NEVER ? wq_get(run.q, &it)
	                                  : wq_get_until(run.q, &it, c->op->arg);

	if (rc == WQ_OK)
		pairs_got(&it);
	return rc;
}

static int64_t get_many(struct call *c)
{
	wq_item it[4];
	int rc = wq_get_many_until(run.q, it, 4, c->op->arg);

	for (int i = 0; i < rc; i++)
		pairs_got(&it[i]);
	return rc;
}

static int64_t interrupt(struct call *c)
{
	return wq_interrupt(run.q, (int)c->op->arg);
}

/* ---- done ---------------------------------------------------------------------- */

static int64_t done(struct call *c)
{
	wq_item it = run.item[c->op->key];

	pairs_ends(c->op->key);

	int rc = wq_done(run.q, &it);

	pairs_hold_ended(c->op->key, rc, sim_call_last());
	return rc;
}

static int64_t done_many(struct call *c)
{
	wq_item it[MANY];
	int outcomes[MANY];

	(void)c;
	for (int i = 0; i < MANY; i++) {
		it[i] = run.item[HELD1 + i];
		pairs_ends(HELD1 + i);
	}

	int rc = wq_done_many(run.q, it, MANY, outcomes);

	for (int i = 0; i < MANY; i++)
		pairs_hold_ended(HELD1 + i, outcomes[i], sim_call_first());
	return rc;
}

static int64_t next(struct call *c)
{
	wq_item it = run.item[c->op->key];

	pairs_ends(c->op->key);

	int rc = wq_next_until(run.q, &it, c->op->arg);

	if (rc != WQ_ESTALE)
		pairs_hold_ended(c->op->key, WQ_OK, sim_call_last());
	if (rc == WQ_OK)
		pairs_got(&it);
	return rc;
}

static int64_t next_many(struct call *c)
{
	wq_item it[4];

	(void)c;
	for (int i = 0; i < MANY; i++) {
		it[i] = run.item[HELD1 + i];
		pairs_ends(HELD1 + i);
	}

	int rc = wq_next_many_until(run.q, it, MANY, 4, WQ_NEVER);

	for (int i = 0; i < rc; i++)
		pairs_got(&it[i]);
	return rc;
}

static int64_t requeue(struct call *c)
{
	wq_item it = run.item[c->op->key];

	pairs_ends(c->op->key);

	int rc = wq_requeue(run.q, &it, (enum wq_where)c->op->arg);

	pairs_hold_ended(c->op->key, rc, sim_call_last());
	return rc;
}

static int64_t retry(struct call *c)
{
	wq_item it = run.item[c->op->key];

	pairs_ends(c->op->key);

	int rc = wq_retry(run.q, &it);

	pairs_retried(c->op->key, rc, sim_call_last());
	pairs_hold_ended(c->op->key, rc, sim_call_last());
	return rc;
}

static int64_t settle(struct call *c, wq_verdict verdict)
{
	wq_item it = run.item[c->op->key];

	pairs_ends(c->op->key);

	int rc = wq_settle(run.q, &it, verdict);

	if (verdict.kind == WQ_VERDICT_RETRY)
		pairs_retried(c->op->key, rc, sim_call_last());
	pairs_hold_ended(c->op->key, rc, sim_call_last());
	return rc;
}

static int64_t settle_again(struct call *c)
{
	return settle(c, wq_again_after(c->op->arg));
}

static int64_t settle_retry(struct call *c)
{
	return settle(c, wq_retry_after(c->op->arg));
}

static int64_t settle_drop(struct call *c)
{
	return settle(c, WQ_DROP);
}

static int64_t settle_next(struct call *c)
{
	wq_item it = run.item[c->op->key];
	int settled = WQ_ESTALE;

	pairs_ends(c->op->key);

	int rc = wq_settle_next_until(run.q, &it, WQ_RETRY, WQ_NEVER, &settled);

	pairs_retried(c->op->key, settled, sim_call_first());
	pairs_hold_ended(c->op->key, settled, sim_call_first());
	if (rc == WQ_OK)
		pairs_got(&it);
	return rc;
}

static int64_t extend(struct call *c)
{
	return wq_extend(run.q, &run.item[c->op->key], 1000);
}

static int64_t lost(struct call *c)
{
	return wq_lost(run.q, &run.item[c->op->key]);
}

/* ---- wait, stop ---------------------------------------------------------------- */

static int64_t wait_idle(struct call *c)
{
	return wq_wait_idle_until(run.q, c->op->arg);
}

static int64_t wait_key(struct call *c)
{
	return wq_wait_key_until(run.q, KEY(c), c->op->arg);
}

static int64_t stop(struct call *c)
{
	(void)c;
	return wq_shutdown(run.q);
}

static int64_t shutting_down(struct call *c)
{
	(void)c;
	return wq_shutting_down(run.q);
}

static int count_left(void *ctx, const wq_key_info *info)
{
	(void)info;
	++*(uint64_t *)ctx;
	return 0;
}

static int64_t drain_as(struct call *c, enum wq_drain_mode mode)
{
	wq_drain_options o = {.mode = mode};

	return wq_drain_until(run.q, c->op->arg, &o, &c->report);
}

static int64_t drain_leave(struct call *c)
{
	return drain_as(c, WQ_DRAIN_LEAVE);
}

static int64_t drain_run(struct call *c)
{
	return drain_as(c, WQ_DRAIN_RUN);
}

static int64_t drain_wait(struct call *c)
{
	return drain_as(c, WQ_DRAIN_WAIT);
}

static int64_t drain_list(struct call *c)
{
	uint64_t n = 0;
	wq_drain_options o = {.left = count_left, .ctx = &n};

	return wq_drain_until(run.q, c->op->arg, &o, &c->report);
}

/* ---- look ---------------------------------------------------------------------- */

static int64_t len(struct call *c)
{
	(void)c;
	return wq_len(run.q);
}

static int64_t state(struct call *c)
{
	return wq_state(run.q, KEY(c));
}

static int64_t walk(struct call *c)
{
	uint64_t n = 0;

	(void)c;
	return wq_walk(run.q, count_left, &n);
}

static int64_t fd(struct call *c)
{
	(void)c;
	return wq_fd(run.q);
}

static int64_t now(struct call *c)
{
	(void)c;
	return wq_now(run.q);
}

static int64_t next_deadline(struct call *c)
{
	(void)c;
	return wq_next_deadline(run.q);
}

static int64_t clock_changed(struct call *c)
{
	(void)c;
	return wq_clock_changed(run.q);
}

static int64_t snapshot(struct call *c)
{
	wq_snapshot s;

	(void)c;
	return wq_snapshot_take(run.q, &s);
}

static int swallow(void *ctx, const char *text, size_t n)
{
	(void)ctx;
	(void)text;
	(void)n;
	return 0;
}

static int64_t metrics(struct call *c)
{
	(void)c;
	return wq_metrics_write(run.registry, WQ_PROMETHEUS, swallow, NULL);
}

static int walk_it(void *ctx, const char *name, wq_queue *q)
{
	uint64_t n = 0;

	(void)ctx;
	(void)name;
	return wq_walk(q, count_left, &n) < 0;
}

static int64_t visit(struct call *c)
{
	(void)c;
	return wq_registry_visit(run.registry, "pairs", walk_it, NULL);
}

/* ---- pools, free --------------------------------------------------------------- */

static int64_t pool_resize(struct call *c)
{
	return wq_pool_resize(run.pool, (uint32_t)c->op->arg);
}

static int64_t pool_pause(struct call *c)
{
	(void)c;
	return wq_pool_pause(run.pool);
}

static int64_t pool_resume(struct call *c)
{
	(void)c;
	return wq_pool_resume(run.pool);
}

static int64_t pool_count(struct call *c)
{
	wq_pool_counts n;

	(void)c;
	return wq_pool_count(run.pool, &n);
}

static int64_t pool_stop(struct call *c)
{
	return wq_pool_stop_until(run.pool, c->op->arg);
}

static int64_t pool_drain(struct call *c)
{
	return wq_pool_drain_until(run.pool, c->op->arg, NULL, &c->report);
}

static int64_t free_it(struct call *c)
{
	(void)c;
	return wq_free(run.q);
}

/* ---- the table ----------------------------------------------------------------- */

/* A run begins at 1 ms; keys that wait come due 10 to 30 µs later. */
enum { SOON = 1005000, BETWEEN = 1015000, LATE = 1100000 };

#define NEVER WQ_NEVER

const struct op pairs_ops[] = {
    /* name, call, answers, key, argument, kind, flags */
    {"shutdown", stop, ok, 0, 0, PASSES, STOPS | RELEASES},
    {"drain-leave", drain_leave, drains, 0, NEVER, DRAINS, STOPS},
    {"drain-run", drain_run, drains, 0, NEVER, DRAINS, STOPS},
    {"drain-wait", drain_wait, drains, 0, NEVER, DRAINS, STOPS | WAITS},
    {"drain-list", drain_list, drains, 0, NEVER, DRAINS, STOPS},
    {"drain-until", drain_leave, drains_until, 0, SOON, DRAINS, STOPS},
    {"drain-wait-until", drain_wait, drains_until, 0, BETWEEN, DRAINS, STOPS | WAITS},
    {"add-new", add, adds, NEW1, 0, PASSES, 0},
    {"add-waiting", add, adds, WAIT1, 0, PASSES, 0},
    {"add-held", add, adds, HELD1, 0, PASSES, 0},
    {"add-queued", add, adds, LINE1, 0, PASSES, 0},
    {"add-many", add_many, value, 0, 0, PASSES, 0},
    {"add-after", add_after, laters, NEW1, 8000, PASSES, 0},
    {"add-after-waiting", add_after, laters, WAIT2, 2000, PASSES, 0},
    {"add-after-held", add_after, laters, HELD1, 2000, PASSES, 0},
    {"add-at-never", add_at, laters, NEW2, NEVER, PASSES, 0},
    {"add-replace", add_replace, laters, WAIT1, 90000, PASSES, 0},
    {"add-remind", add_remind, laters, REMINDED, 7000, PASSES, 0},
    {"add-limited", add_limited, laters, LIMITED, 0, PASSES, 0},
    {"reschedule", reschedule, moves, WAIT1, LATE, PASSES, 0},
    {"reschedule-now", reschedule, moves, WAIT3, 1, PASSES, 0},
    {"cancel-waiting", take_back, found, WAIT1, 0, PASSES, 0},
    {"cancel-never", take_back, found, NEVER1, 0, PASSES, 0},
    {"cancel-queued", take_back, found, LINE1, 0, PASSES, 0},
    {"cancel-held", take_back, found, HELD2, 0, PASSES, 0},
    {"cancel-sync", cancel_sync, found, HELD1, NEVER, AWAITS_HOLD, 0},
    {"cancel-sync-until", cancel_sync, found_until, HELD3, SOON, AWAITS_HOLD, 0},
    {"forget", forget, ok, HELD1, 0, PASSES, 0},
    {"forget-item", forget_item, held, HELD1, 0, PASSES, WANTS_HELD},
    {"failures", failures, value, HELD1, 0, PASSES, 0},
    {"failures-item", failures_item, held, HELD1, 0, PASSES, WANTS_HELD},
    {"get", get, gets, 0, NEVER, GETS, 0},
    {"get-until", get, gets_until, 0, SOON, GETS, 0},
    {"try-get", get, gets_now, 0, WQ_NOWAIT, PASSES, 0},
    {"get-many", get_many, many, 0, NEVER, GETS, 0},
    {"get-many-now", get_many, many, 0, WQ_NOWAIT, PASSES, 0},
    {"interrupt", interrupt, value, 0, 1, PASSES, 0},
    {"interrupt-none", interrupt, value, 0, 0, PASSES, 0},
    {"done", done, dones, HELD1, 0, PASSES, WANTS_HELD},
    {"done-dirty", done, dones, HELD2, 0, PASSES, WANTS_HELD},
    {"done-waiting", done, dones, HELD3, 0, PASSES, WANTS_HELD},
    {"done-many", done_many, value, 0, 0, PASSES, WANTS_HELD},
    {"next", next, nexts, HELD1, NEVER, GETS, WANTS_HELD},
    {"next-many", next_many, many, 0, NEVER, GETS, WANTS_HELD},
    {"requeue", requeue, dones, HELD1, WQ_TAIL, PASSES, WANTS_HELD},
    {"requeue-head", requeue, dones, HELD3, WQ_HEAD, PASSES, WANTS_HELD},
    {"retry", retry, retries, HELD1, 0, PASSES, WANTS_HELD},
    {"retry-dirty", retry, retries, HELD2, 0, PASSES, WANTS_HELD},
    {"retry-waiting", retry, retries, HELD3, 0, PASSES, WANTS_HELD},
    {"retry-after", settle_retry, retries, HELD1, 6000000, PASSES, WANTS_HELD},
    {"settle-again", settle_again, settles, HELD1, 9000, PASSES, WANTS_HELD},
    {"settle-again-now", settle_again, settles, HELD3, 0, PASSES, WANTS_HELD},
    {"settle-drop", settle_drop, settles, HELD3, 0, PASSES, WANTS_HELD},
    {"settle-next", settle_next, nexts, HELD1, 0, GETS, WANTS_HELD},
    {"extend", extend, held, HELD1, 0, PASSES, WANTS_HELD},
    {"lost", lost, held, HELD1, 0, PASSES, WANTS_HELD},
    {"wait-idle", wait_idle, ok, 0, NEVER, AWAITS_IDLE, 0},
    {"wait-idle-until", wait_idle, ok_until, 0, SOON, AWAITS_IDLE, 0},
    {"wait-key-queued", wait_key, ok, LINE1, NEVER, AWAITS_KEY, 0},
    {"wait-key-held", wait_key, ok, HELD1, NEVER, AWAITS_KEY, 0},
    {"wait-key-dirty", wait_key, ok, HELD2, NEVER, AWAITS_KEY, 0},
    {"wait-key-waiting", wait_key, ok, WAIT1, NEVER, AWAITS_KEY, 0},
    {"shutting-down", shutting_down, value, 0, 0, PASSES, 0},
    {"len", len, value, 0, 0, PASSES, 0},
    {"state", state, value, WAIT1, 0, PASSES, 0},
    {"walk", walk, value, 0, 0, PASSES, 0},
    {"fd", fd, value, 0, 0, PASSES, 0},
    {"now", now, value, 0, 0, PASSES, 0},
    {"next-deadline", next_deadline, value, 0, 0, PASSES, 0},
    {"clock-changed", clock_changed, ok, 0, 0, PASSES, 0},
    {"snapshot", snapshot, ok, 0, 0, PASSES, 0},
    {"metrics", metrics, ok, 0, 0, PASSES, WANTS_REGISTRY},
    {"registry-visit", visit, ok, 0, 0, PASSES, WANTS_REGISTRY},
    {"pool-resize", pool_resize, pools, 0, 2, PASSES, WANTS_POOL},
    {"pool-pause", pool_pause, ok, 0, 0, PASSES, WANTS_POOL},
    {"pool-resume", pool_resume, ok, 0, 0, PASSES, WANTS_POOL},
    {"pool-count", pool_count, ok, 0, 0, PASSES, WANTS_POOL},
    {"pool-stop", pool_stop, ok, 0, NEVER, ENDS_POOL, WANTS_POOL},
    {"pool-stop-until", pool_stop, ok_until, 0, SOON, ENDS_POOL, WANTS_POOL},
    {"free", free_it, frees, 0, 0, PASSES, FREES},
    {"pool-drain", pool_drain, drains, 0, NEVER, ENDS_POOL, STOPS | WANTS_POOL},
};
const int pairs_nops = sizeof pairs_ops / sizeof *pairs_ops;
