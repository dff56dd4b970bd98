/*
 * Pools: their workers' threads are tasks, and the handler notes what it is
 * handed. A hold begins in the last section before the handler is called and
 * ends in the first one after it has returned; that is all the judge of
 * history.c needs where every verdict ends the hold for good. Elsewhere each
 * key is accounted for here: it is handled after it was last added, by one
 * worker at a time, and the pool's counts are what the handlers answered.
 */
#include <string.h>

#include "../support/cancel.h"
#include "history.h"
#include "world.h"

enum { KEYS = 4 };

static struct {
	wq_pool *p;
	struct hand {
		bool pending; /* the handler has returned; the end of the hold is not noted yet */
		int key;
		uint64_t token;
	} hand[SIM_MAX_TASKS];
	bool judged;                /* by the history */
	bool watched;               /* nobody pauses: workers count as Gets */
	wq_verdict (*act)(int key); /* NULL: done or dropped */
	int started, gone;
	int called, drops, agains, retries; /* handlers, and what they answered */
	bool shut_off;                      /* no key may be taken that was not before */
	uint32_t shut_off_at;               /* the last section before that */
	struct {
		uint32_t added,
		    taken; /* sections of the last add that was accepted, and of the last hold */
	} key[NKEYS];
} s;

/* ---- the workers ------------------------------------------------------------- */

/* The hold that this worker has ended ended in the first section since. */
static void note_end(struct hand *h)
{
	if (h->pending && s.judged)
		note(DONE_, sim_call_first(), h->key, UNTOLD, h->token);
	h->pending = false;
}

static void hold_begins(const wq_item *it, int key)
{
	if (w.held[key])
		sim_fail("key %d is with two workers", key);
	w.held[key] = true;
	w.nheld++;
	w.holds[key]++;
	s.key[key].taken = sim_call_last();
	if (s.judged)
		note(GOT, sim_call_last(), key, WQ_OK, it->token);
	sim_trace("handles key %d, taken in section %u", key, sim_call_last());
	if (s.shut_off && sim_call_last() > s.shut_off_at)
		sim_fail("key %d was taken in section %u; no key was to be taken after %u", key,
		         sim_call_last(), s.shut_off_at);
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	struct hand *h = &s.hand[sim_self()];
	int key = key_of(it);
	wq_verdict verdict;

	SIM_CHECK(ctx == &s);
	sim_getting(false);
	note_end(h);
	hold_begins(it, key);
	s.called++;
	work(it);
	verdict = s.act ? s.act(key) : sim_chance(4) ? WQ_DROP : WQ_DONE;
	s.drops += verdict.kind == WQ_VERDICT_DROP;
	s.agains += verdict.kind == WQ_VERDICT_AGAIN;
	s.retries += verdict.kind == WQ_VERDICT_RETRY;
	*h = (struct hand){.pending = true, .key = key, .token = it->token};
	w.held[key] = false;
	w.nheld--;
	sim_getting(s.watched);
	sim_call_begin();
	return verdict;
}

static void on_start(void *ctx, uint32_t worker)
{
	SIM_CHECK(ctx == &s);
	sim_trace("is worker %u", worker);
	s.started++;
	sim_getting(s.watched);
}

static void on_end(void *ctx, uint32_t worker)
{
	SIM_CHECK(ctx == &s);
	sim_trace("worker %u ends", worker);
	sim_getting(false);
	note_end(&s.hand[sim_self()]);
	s.gone++;
	world_beside(); /* it leaves nothing to sleepers */
}

static wq_pool *start(wq_pool_options o)
{
	wq_pool *p = NULL;

	o.handler = handle;
	o.ctx = &s;
	o.on_start = on_start;
	o.on_end = on_end;

	int rc = wq_pool_start(&p, w.q, &o);

	if (rc != WQ_OK)
		sim_fail("wq_pool_start: %s", wq_strerror(rc));
	return p;
}

/* From now on no worker takes a key. */
static void shut_off(void)
{
	s.shut_off_at = sim_section();
	s.shut_off = true;
}

/* ---- accounts ---------------------------------------------------------------- */

static uint64_t in_all(const wq_pool_counts *c)
{
	return c->done + c->retried + c->again + c->dropped + c->dead + c->left + c->cancelled +
	       c->stale;
}

/* No handler runs. */
static void check_counts(wq_pool *p, wq_pool_counts *c)
{
	SIM_CHECK(wq_pool_count(p, c) == WQ_OK);
	SIM_CHECK(in_all(c) == (uint64_t)s.called);
	SIM_CHECK(c->stale == 0);
	/* A key that is done or given up is left over if a copy of it waits in a queue that is shut. */
	uint64_t ends = (uint64_t)(s.called - s.drops - s.agains - s.retries);
	uint64_t copies = ends + (uint64_t)s.drops - c->done - c->dropped;

	SIM_CHECK(c->done <= ends && c->dropped <= (uint64_t)s.drops && copies <= c->left);
	SIM_CHECK(c->again <= (uint64_t)s.agains && c->retried + c->dead <= (uint64_t)s.retries);
	/* Neither again nor a retry: left over or cancelled. */
	SIM_CHECK(c->again + c->retried + c->dead + (c->left - copies) + c->cancelled ==
	          (uint64_t)(s.agains + s.retries));
}

static void drain_and_free(void)
{
	wq_pool_counts c;

	SIM_CHECK(do_drain(WQ_NEVER, NULL, NULL) == WQ_OK);
	check_counts(s.p, &c);
	SIM_CHECK(c.busy == 0);
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
	SIM_CHECK(s.gone == s.started);
}

static void begin(bool judged, bool watched)
{
	memset(&s, 0, sizeof s);
	s.judged = judged;
	s.watched = watched;
}

static bool producers_done(void *arg)
{
	(void)arg;
	return w.producers == 0;
}

static void producer(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(6); n > 0; n--) {
		do_add((int)sim_random(KEYS));
		if (sim_chance(3))
			sim_pass(sim_random(2000));
	}
	w.producers--;
}

static void spawn_producers(int n)
{
	w.producers = n;
	for (int i = 0; i < n; i++)
		sim_spawn("producer", producer, NULL);
}

/* ---- through a pool ------------------------------------------------------------ */

static void plain_boss(void *arg)
{
	(void)arg;
	sim_until(producers_done, NULL);
	if (sim_chance(2))
		do_shutdown();
	drain_and_free();
}

/* Perhaps a Get of one's own stands beside the workers. */
static void setup_pool(void)
{
	begin(true, true);
	world_open(NULL);
	s.p = start((wq_pool_options){.workers = 1 + sim_random(3)});
	spawn_producers(2);
	if (sim_chance(2))
		sim_spawn("worker", plain_worker, NULL);
	sim_spawn("boss", plain_boss, NULL);
}

/* ---- resize -------------------------------------------------------------------- */

static void resize_some(void)
{
	uint32_t n = 1 + sim_random(3);

	/* Tasks are not used again. */
	if (n > 1 && sim_tasks() + (int)n > SIM_MAX_TASKS)
		n = 1;
	SIM_CHECK(wq_pool_resize(s.p, n) == WQ_OK);
}

static wq_verdict act_resize(int key)
{
	(void)key;
	if (sim_chance(8))
		resize_some();
	return WQ_DONE;
}

static void resizing_boss(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(4); n > 0; n--) {
		resize_some();
		if (sim_chance(2))
			sim_pass(sim_random(3000));
	}
	sim_until(producers_done, NULL);
	drain_and_free();
}

static void setup_resize(void)
{
	begin(true, true);
	world_open(NULL);
	s.act = act_resize;
	s.p = start((wq_pool_options){.workers = 1 + sim_random(2)});
	spawn_producers(2);
	sim_spawn("boss", resizing_boss, NULL);
}

/* ---- pause --------------------------------------------------------------------- */

/* [PAUSE] What is taken between pause and resume was taken before. */
static void pause_once(void)
{
	SIM_CHECK(wq_pool_pause(s.p) == WQ_OK);
	shut_off();
	if (sim_chance(2))
		sim_pass(sim_random(3000));
	if (sim_chance(4))
		resize_some();
	if (sim_chance(2))
		do_add((int)sim_random(KEYS));
	s.shut_off = false;
}

static void pausing_boss(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(3); n > 0; n--) {
		pause_once();
		/* the last one is resumed by the drain */
		if (n > 1 || sim_chance(2))
			SIM_CHECK(wq_pool_resume(s.p) == WQ_OK);
		if (sim_chance(2))
			sim_pass(sim_random(3000));
	}
	sim_until(producers_done, NULL);
	drain_and_free();
}

static void setup_pause(void)
{
	begin(true, false);
	world_open(NULL);
	s.p = start((wq_pool_options){.workers = 1 + sim_random(3), .paused = sim_random(2)});
	spawn_producers(2);
	sim_spawn("boss", pausing_boss, NULL);
}

/* ---- stop ---------------------------------------------------------------------- */

static void stopper(void *arg)
{
	int64_t deadline = arg ? soon() : WQ_NEVER;
	int rc = wq_pool_stop_until(s.p, deadline);

	shut_off();
	if (rc != WQ_OK && rc != WQ_ETIMEDOUT)
		sim_fail("stop answered %s", wq_status_name(rc));
	if (rc == WQ_ETIMEDOUT && (deadline == WQ_NEVER || world_now() < deadline))
		sim_fail("a stop timed out early");
	if (rc == WQ_OK)
		SIM_CHECK(s.gone == s.started);
	w.b++;
}

static bool stopped(void *arg)
{
	(void)arg;
	return w.b == w.c && w.producers == 0;
}

/* The queue is not shut: what is left is there for others. */
static void stop_boss(void *arg)
{
	wq_pool_counts c;

	(void)arg;
	sim_until(stopped, NULL);
	SIM_CHECK(wq_pool_stop_until(s.p, WQ_NEVER) == WQ_OK);
	check_counts(s.p, &c);
	SIM_CHECK(c.workers == 0 && c.busy == 0);
	SIM_CHECK(wq_pool_resize(s.p, 1) == WQ_ESHUTDOWN);
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
	SIM_CHECK(wq_shutting_down(w.q) == 0);
	if (w.workers) {
		do_wait_idle(WQ_NEVER);
		do_shutdown();
	}
}

static void setup_stop(void)
{
	begin(true, true);
	world_open(NULL);
	s.p = start((wq_pool_options){.workers = 1 + sim_random(3)});
	spawn_producers(1 + (int)sim_random(2));
	w.c = 1 + (int)sim_random(3);
	for (int i = 0; i < w.c; i++)
		sim_spawn("stopper", stopper, sim_chance(2) ? &s : NULL);
	w.workers = (int)sim_random(2);
	if (w.workers)
		sim_spawn("worker", plain_worker, NULL);
	sim_spawn("boss", stop_boss, NULL);
}

/* All stoppers sleep when the last handler returns: each is woken by that. */
static bool stoppers_sleep(void *arg)
{
	int n = w.b;

	(void)arg;
	for (int i = 0; i < w.c; i++)
		n += sim_sleeping(w.a + i);
	return n == w.c;
}

static wq_verdict act_last(int key)
{
	(void)key;
	sim_until(stoppers_sleep, NULL);
	return WQ_DONE;
}

static void setup_stop_last(void)
{
	begin(true, true);
	world_open(NULL);
	sim_quiet_begin();
	do_add(1);
	sim_quiet_end();
	s.act = act_last;
	s.p = start((wq_pool_options){.workers = 1});
	w.a = sim_tasks();
	w.c = 2 + (int)sim_random(2);
	for (int i = 0; i < w.c; i++)
		sim_spawn("stopper", stopper, NULL);
	sim_spawn("boss", stop_boss, NULL);
}

/* ---- two pools ------------------------------------------------------------------- */

static wq_pool *second;

/* The first is freed at some time, and the other one does the rest. */
static void two_boss(void *arg)
{
	(void)arg;
	if (sim_chance(2))
		sim_pass(sim_random(5000));
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
	sim_until(producers_done, NULL);
	SIM_CHECK(do_drain(WQ_NEVER, NULL, NULL) == WQ_OK);
	SIM_CHECK(wq_free(w.q) == WQ_EBUSY);
	SIM_CHECK(wq_pool_free(second) == WQ_OK);
	SIM_CHECK(s.gone == s.started);
}

static void setup_two(void)
{
	begin(true, true);
	world_open(NULL);
	s.p = start((wq_pool_options){.workers = 1 + sim_random(2)});
	second = start((wq_pool_options){.workers = 1 + sim_random(2)});
	spawn_producers(2);
	sim_spawn("boss", two_boss, NULL);
}

/* ---- failures and drains ------------------------------------------------------------ */

static int letters;

static void dead_letter(void *ctx, const wq_item *it)
{
	SIM_CHECK(ctx == &s);
	SIM_CHECK(w.holds[key_of(it)] > 0);
	letters++;
	sim_yield();
}

static wq_verdict act_fail(int key)
{
	(void)key;
	/* so that a drain that waits for what waits comes to an end */
	if (s.called > 40)
		return WQ_DONE;
	switch (sim_random(6)) {
	case 0:
		return WQ_RETRY;
	case 1:
		return wq_retry_after(sim_random(3000));
	case 2:
		return wq_retry_after(0);
	case 3:
		return wq_again_after(sim_chance(4) ? 0 : 1000 + sim_random(2000));
	case 4:
		return WQ_DROP;
	}
	return WQ_DONE;
}

/* Counted by the section in which it was accepted. */
static void add_now(int key)
{
	size_t len;
	const char *bytes = key_bytes(key, &len);

	sim_call_begin();

	int rc = wq_add(w.q, bytes, len);

	if (rc > 0)
		s.key[key].added = sim_call_last();
	else if (rc != WQ_ESHUTDOWN)
		sim_fail("add answered %s", wq_status_name(rc));
}

static void mixed_producer(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(5); n > 0; n--) {
		size_t len;
		int key = (int)sim_random(KEYS);
		const char *bytes = key_bytes(key, &len);

		if (sim_chance(4))
			wq_add_after(w.q, bytes, len, sim_random(3000));
		else if (sim_chance(6))
			wq_add_limited(w.q, bytes, len);
		else
			add_now(key);
		if (sim_chance(4))
			cancel_key(w.q, bytes, len);
		else if (sim_chance(3))
			sim_pass(sim_random(2000));
	}
	w.producers--;
}

/* A cancelled key need not have been handled; without cancels each was. */
static void careful_producer(void *arg)
{
	(void)arg;
	for (uint32_t n = 1 + sim_random(5); n > 0; n--) {
		add_now((int)sim_random(KEYS));
		if (sim_chance(3))
			sim_pass(sim_random(2000));
	}
	w.producers--;
}

static int count_copy(void *ctx, const wq_key_info *info)
{
	++*(uint64_t *)ctx;
	SIM_CHECK(info->state & (WQ_STATE_WAITING | WQ_STATE_LEFT));
	return 0;
}

/* Nothing is left but what waits: a key has one copy here. */
static void check_keys(const wq_report *r, int rc, uint64_t shown)
{
	uint64_t retries = 0, left = 0;

	for (int k = 0; k < KEYS; k++) {
		size_t len;
		const char *bytes = key_bytes(k, &len);
		int state = wq_state(w.q, bytes, len);

		if (state & ~(WQ_STATE_LEFT | WQ_STATE_WAITING | WQ_STATE_RETRYING))
			sim_fail("in the end key %d has the state %d", k, state);
		left += state != 0;
		retries += (state & WQ_STATE_RETRYING) != 0;
		if (w.c == 0 && s.key[k].added > s.key[k].taken)
			sim_fail("key %d was added in section %u and last taken in section %u", k,
			         s.key[k].added, s.key[k].taken);
	}
	/* Those who cancel may have done so since. */
	SIM_CHECK(shown == r->retries + r->delayed || w.c);
	SIM_CHECK(retries == r->retries || (w.c && retries < r->retries));
	SIM_CHECK(left == r->retries + r->delayed || (w.c && left < r->retries + r->delayed));
	SIM_CHECK(rc == (r->retries + r->delayed > 0 ? WQ_LEFT : WQ_OK));
}

static void draining_boss(void *arg)
{
	uint64_t shown = 0;
	wq_drain_options o = {.mode = (enum wq_drain_mode)sim_random(3),
	                      .left = count_copy,
	                      .ctx = &shown};
	wq_pool_counts c;
	wq_report r;
	int rc;

	(void)arg;
	if (sim_chance(2))
		sim_until(producers_done, NULL);
	else
		sim_pass(sim_random(5000));
	/* One that gives up stops the workers: the helper has to do the rest. */
	if (w.a) {
		wq_drain_options hasty = {.mode = o.mode};

		rc = wq_pool_drain_until(s.p, soon(), &hasty, &r);
		SIM_CHECK(rc != WQ_EINVAL);
	}
	rc = wq_pool_drain_until(s.p, WQ_NEVER, &o, &r);
	w.b = 1;
	sim_until(producers_done, NULL);
	SIM_CHECK(r.queued + r.running == 0);
	check_counts(s.p, &c);
	SIM_CHECK(c.workers == 0);
	SIM_CHECK(r.dead == c.dead && c.dead == (uint64_t)letters);
	check_keys(&r, rc, shown);
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
}

/* Takes over if the pool was stopped: also what comes back after a shutdown. */
static void helper(void *arg)
{
	wq_item it;

	(void)arg;
	while (!w.b) {
		if (wq_get(w.q, &it) != WQ_OK) {
			sim_pass(1 + sim_random(200));
			continue;
		}

		int key = key_of(&it);

		if (w.held[key])
			sim_fail("key %d is with two workers", key);
		w.held[key] = true;
		s.key[key].taken = sim_call_last();
		sim_yield();
		w.held[key] = false;
		sim_call_begin();
		SIM_CHECK(wq_done(w.q, &it) >= 0);
		sim_call_begin();
	}
}

static void finish_free(void)
{
	SIM_CHECK(wq_free(w.q) >= 0);
	w.q = NULL;
}

static void setup_fail(void)
{
	const wq_options o = {.limiter = wq_limiter_fast_slow(500, 3000, 1),
	                      .max_attempts = sim_random(4),
	                      .dead_letter = dead_letter,
	                      .dead_ctx = &s};

	begin(false, false);
	letters = 0;
	world_open(&o);
	s.act = act_fail;
	s.p = start((wq_pool_options){.workers = 1 + sim_random(3), .paused = sim_chance(4)});
	w.producers = 2;
	w.c = (int)sim_random(2); /* cancels, too */
	for (int i = 0; i < w.producers; i++)
		sim_spawn("producer", w.c ? mixed_producer : careful_producer, NULL);
	w.a = sim_chance(4);
	if (w.a)
		sim_spawn("helper", helper, NULL);
	sim_spawn("boss", draining_boss, NULL);
}

/* ---- shutdown beside another holder ---------------------------------------------------- */

static wq_item mine;

static bool all_gone(void *arg)
{
	(void)arg;
	return s.gone == w.workers;
}

/* Brings a key back, once the queue is shut or before. */
static void holder(void *arg)
{
	(void)arg;
	sim_yield();
	if (sim_chance(2))
		sim_pass(sim_random(200));
	switch (sim_random(4)) {
	case 0:
		wq_requeue(w.q, &mine, WQ_TAIL);
		break;
	case 1:
		wq_retry(w.q, &mine);
		break;
	default:
		wq_done(w.q, &mine);
	}
}

static void shutter(void *arg)
{
	(void)arg;
	SIM_CHECK(wq_shutdown(w.q) == WQ_OK);
}

static void canceller(void *arg)
{
	size_t len;
	const char *bytes = key_bytes(1, &len);

	(void)arg;
	if (sim_chance(2))
		sim_pass(sim_random(300));
	cancel_key(w.q, bytes, len);
}

/* All workers end by themselves, whoever takes what comes back. */
static void shut_boss(void *arg)
{
	(void)arg;
	sim_until(all_gone, NULL);
	SIM_CHECK(sim_locked() || world_len() == 0);
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
}

static void setup_shut(void)
{
	size_t len;
	const char *bytes = key_bytes(1, &len);

	begin(false, false);
	world_open(NULL);
	sim_quiet_begin();
	wq_add(w.q, bytes, len);
	SIM_CHECK(wq_try_get(w.q, &mine) == WQ_OK);
	if (!sim_chance(4))
		wq_add(w.q, bytes, len);
	sim_quiet_end();
	w.workers = 1 + (int)sim_random(3);
	s.p = start((wq_pool_options){.workers = (uint32_t)w.workers});
	sim_spawn("holder", holder, NULL);
	sim_spawn("shutter", shutter, NULL);
	if (sim_chance(2))
		sim_spawn("canceller", canceller, NULL);
	sim_spawn("boss", shut_boss, NULL);
}

/* ---- slow_handlers ------------------------------------------------------------------------- */

enum { LIMIT = 1000 };

static struct {
	int watcher; /* the task */
	struct {
		int reported, before; /* in all, and by the end of its last handler */
		bool late;            /* that one may yet have been reported when it had returned */
	} key[KEYS];
	int reports;
} o;

static bool watcher_waits(void *arg)
{
	(void)arg;
	return sim_sleeping(o.watcher) && sim_sleeps_until(o.watcher) > sim_now();
}

static wq_verdict act_stay(int key)
{
	int64_t begun_ns = sim_now();

	sim_pass(sim_random(3 * LIMIT));
	/* The watcher has done what it had to do by now. */
	sim_until(watcher_waits, NULL);

	int64_t took_ns = sim_now() - begun_ns;
	int reported = o.key[key].reported - o.key[key].before;

	if ((took_ns >= LIMIT && reported == 0) || reported > 1 + o.key[key].late)
		sim_fail("key %d was held for %lld ns and reported %d times", key,
		         (long long)took_ns, reported);
	o.key[key].before += reported;
	o.key[key].late = reported == 0;
	return WQ_DONE;
}

static void on_slow(void *ctx, const wq_slow_handler *over)
{
	const wq_item fake = {.key = over->key, .len = over->len};
	int key = key_of(&fake);

	SIM_CHECK(ctx == &s);
	SIM_CHECK(over->running_ns >= LIMIT);
	o.reports++;
	o.key[key].reported++;
	SIM_CHECK(o.key[key].reported <= w.holds[key] + 1); /* its handler may be about to begin */
	if (sim_chance(8))
		resize_some();
}

static void slow_boss(void *arg)
{
	wq_pool_counts c;

	(void)arg;
	sim_until(producers_done, NULL);
	SIM_CHECK(do_drain(WQ_NEVER, NULL, NULL) == WQ_OK);
	sim_until(watcher_waits, NULL); /* it may be about to report one that has returned */
	check_counts(s.p, &c);
	SIM_CHECK(c.slow_handlers == (uint64_t)o.reports);
	SIM_CHECK(wq_pool_free(s.p) == WQ_OK);
}

static void setup_slow(void)
{
	begin(false, false);
	memset(&o, 0, sizeof o);
	world_open(NULL);
	s.act = act_stay;
	o.watcher = sim_tasks(); /* it is started first */
	s.p = start(
	    (wq_pool_options){.workers = 1 + sim_random(2), .slow_ns = LIMIT, .on_slow = on_slow});
	w.producers = 2;
	for (int i = 0; i < w.producers; i++)
		sim_spawn("producer", careful_producer, NULL);
	sim_spawn("boss", slow_boss, NULL);
}

const struct scenario scenarios_pool[] = {
    {"pool", "keys go through a pool, perhaps beside a get", 30, setup_pool, NULL, NULL},
    {"pool-resize", "a pool gets more and fewer workers", 40, setup_resize, NULL, NULL},
    {"pool-pause", "a pool is paused and resumed", 40, setup_pause, NULL, NULL},
    {"pool-stop", "stops beside workers; the queue goes on", 40, setup_stop, NULL, NULL},
    {"pool-stop-last", "one handler's end releases all stops", 15, setup_stop_last, NULL, NULL},
    {"pool-two", "two pools on one queue; one is freed", 20, setup_two, NULL, NULL},
    {"pool-fail", "handlers fail, keys die, and all ways to drain", 50, setup_fail, finish_free,
     NULL},
    {"pool-shut", "workers end when the last holder is done", 30, setup_shut, finish_free, NULL},
    {"pool-slow", "handlers that take too long", 20, setup_slow, finish_free, NULL},
    {0},
};
