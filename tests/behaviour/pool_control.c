/*
 * What a pool is told to do: have more or fewer workers, pause, stop, drain,
 * be freed; by whom it may be told so, and who would wait for himself.
 */
#include "../support/cancel.h"
#include "pool_rig.h"

static const char *const gated[] = {"gate+done-0", "gate+done-1", "gate+done-2", "gate+done-3"};

/* The gate is shut, and so many handlers stand there. */
static void occupy(struct rig *r, int from, int n)
{
	rig_gate(r, true);
	for (int i = from; i < from + n; i++)
		rig_add(r, gated[i], WQ_QUEUED);
	rig_wait(r, &r->at_gate, from + n);
}

/* ---- resize ----------------------------------------------------------------- */

static void more_workers_start_at_once(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	occupy(&r, 0, 1);
	rig_add(&r, gated[1], WQ_QUEUED);
	rig_add(&r, gated[2], WQ_QUEUED);
	IS(wq_pool_resize(r.p, 3), WQ_OK);
	rig_wait(&r, &r.at_gate, 3);
	IS(counts_of(r.p).workers, 3);
	IS(counts_of(r.p).busy, 3);
	IS(wq_pool_resize(r.p, 3), WQ_OK); /* as it is */
	rig_gate(&r, false);
	rig_idle(&r);
	IS(rig_read(&r, &r.started), 3);
	rig_close(&r);
}

/* Those that have nothing to do end at once, the others with their key. */
static void fewer_workers_end_with_their_keys(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 4});
	occupy(&r, 0, 3);
	IS(wq_pool_resize(r.p, 2), WQ_OK);
	rig_wait(&r, &r.gone, 1);
	IS(counts_of(r.p).busy, 3);
	rig_gate(&r, false);
	rig_wait(&r, &r.gone, 2);
	rig_idle(&r);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.gone), 2);
	IS(counts_of(r.p).workers, 2);
	/* [POOL] what those that are gone have handled was settled, and counts on */
	IS(wq_pool_resize(r.p, 1), WQ_OK);
	rig_wait(&r, &r.gone, 3);
	IS(wq_pool_resize(r.p, 2), WQ_OK);
	rig_wait(&r, &r.started, 5);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	COUNTS_ARE(r.p, .done = 3);
	rig_close(&r);
}

/* Fewer, and before anybody has gone, more: those that were to go may stay. */
static void down_and_up_again(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	occupy(&r, 0, 3);
	IS(wq_pool_resize(r.p, 1), WQ_OK);
	IS(wq_pool_resize(r.p, 3), WQ_OK);
	rig_gate(&r, false);
	rig_idle(&r);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.started), 3);
	IS(rig_read(&r, &r.gone), 0);
	rig_close(&r);
}

static wq_verdict act_resize(struct rig *r, const wq_item *it)
{
	(void)it;
	r->answer[0] = wq_pool_resize(r->p, 4);
	r->answer[1] = wq_pool_resize(r->p, 1);
	r->answer[2] = wq_pool_pause(r->p);
	r->answer[3] = wq_pool_resume(r->p);
	r->answer[4] = wq_pool_count(r->p, &(wq_pool_counts){0});
	return WQ_DONE;
}

static void a_handler_resizes(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	r.act = act_resize;
	for (int i = 1; i <= 20; i++) {
		rig_add(&r, "act", WQ_QUEUED);
		rig_wait(&r, &r.ended, i);
		for (int k = 0; k < 5; k++)
			IS(r.answer[k], WQ_OK);
		rig_wait(&r, &r.gone, 3 * i);
		rig_idle(&r);
	}
	rig_sleeps(&r);
	IS(counts_of(r.p).workers, 1);
	rig_close(&r);
}

/* ---- pause ------------------------------------------------------------------ */

/* [PAUSE] Nothing is taken from the line; what is held is finished. */
static void pause_and_resume(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	for (int round = 0; round < 2; round++) {
		IS(wq_pool_pause(r.p), WQ_OK);
		IS(wq_pool_pause(r.p), WQ_OK); /* once more changes nothing */
		rig_add(&r, "done-1", WQ_QUEUED);
		rig_add(&r, "done-2", WQ_QUEUED);
		rig_sleeps(&r);
		IS(rig_read(&r, &r.begun), 2 * round);
		IS(wq_len(r.f.q), 2);
		IS(wq_pool_resume(r.p), WQ_OK);
		IS(wq_pool_resume(r.p), WQ_OK);
		rig_idle(&r);
		IS(rig_read(&r, &r.begun), 2 * round + 2);
	}
	occupy(&r, 0, 2);
	IS(wq_pool_pause(r.p), WQ_OK);
	rig_add(&r, "done-1", WQ_QUEUED);
	rig_gate(&r, false);
	rig_wait(&r, &r.ended, 6);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.begun), 6);
	IS(wq_len(r.f.q), 1);
	IS(state_of(r.f.q, gated[0]), 0); /* settled */
	COUNTS_ARE(r.p, .done = 6);
	IS(counts_of(r.p).workers, 3);
	IS(counts_of(r.p).busy, 0);
	rig_close(&r);
}

/* The workers of a paused pool do not stand in the way of a Get. */
static void a_paused_pool_leaves_keys_to_others(void **state)
{
	struct rig r;
	struct getter g;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	rig_sleeps(&r);
	getter_block(&g, r.f.q, WQ_NEVER);
	IS(wq_pool_pause(r.p), WQ_OK);
	rig_add(&r, "mine", WQ_QUEUED);
	IS(getter_join(&g), WQ_OK);
	IS(wq_done(r.f.q, &g.item), WQ_OK);
	rig_close(&r);
}

static void start_paused(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .paused = 1});
	rig_add(&r, "done", WQ_QUEUED);
	rig_sleeps(&r);
	IS(wq_pool_resize(r.p, 3), WQ_OK); /* a new one rests as well */
	rig_sleeps(&r);
	IS(rig_read(&r, &r.begun), 0);
	IS(wq_pool_resize(r.p, 1), WQ_OK); /* and those that rest can be sent home */
	rig_wait(&r, &r.gone, 2);
	IS(wq_len(r.f.q), 1);
	IS(wq_pool_resume(r.p), WQ_OK);
	rig_idle(&r);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

/* R9: or it would never end. */
static void a_drain_resumes_paused_pools(void **state)
{
	struct rig r;
	wq_pool *other;
	wq_report report;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.paused = 1});
	other = rig_pool(&r, &(wq_pool_options){.paused = 1});
	for (int i = 0; i < 4; i++)
		rig_add(&r, (const char *[]){"done-1", "done-2", "retry-3", "done-4"}[i],
		        WQ_QUEUED);
	IS(wq_drain_until(r.f.q, WQ_NEVER, NULL, &report), WQ_LEFT);
	/* it may have failed before the queue was shut, and then it waited: a retry all the same */
	IS((int64_t)report.retries, 1);
	IS((int64_t)report.delayed, 0);
	rig_wait(&r, &r.gone, 2);
	IS((int64_t)(counts_of(r.p).done + counts_of(other).done), 3);
	IS(wq_pool_free(other), WQ_OK);
	rig_close(&r);
}

static void a_shutdown_does_not_resume(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .paused = 1});
	rig_add(&r, "done", WQ_QUEUED);
	IS(wq_shutdown(r.f.q), WQ_OK);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.gone), 0);
	IS(wq_len(r.f.q), 1);
	IS(wq_pool_resume(r.p), WQ_OK);
	rig_wait(&r, &r.gone, 2);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

/* ---- stop ------------------------------------------------------------------- */

static void stop_ends_workers_and_not_the_queue(void **state)
{
	struct rig r;

	(void)state;
	for (uint32_t paused = 0; paused < 2; paused++) {
		rig_open(&r, NULL, &(wq_pool_options){.workers = 3, .paused = paused});
		rig_add(&r, "done-1", WQ_QUEUED);
		if (!paused)
			rig_idle(&r);
		IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
		IS(rig_read(&r, &r.gone), 3);
		IS(counts_of(r.p).workers, 0);
		IS(wq_shutting_down(r.f.q), 0);
		rig_add(&r, "done-2", WQ_QUEUED);
		IS(wq_len(r.f.q), 1 + paused); /* nobody takes it */
		IS(wq_pool_stop_until(r.p, 0), WQ_OK);
		IS(wq_pool_stop_for(r.p, -1), WQ_OK);
		IS(wq_pool_resize(r.p, 2), WQ_ESHUTDOWN);
		IS(wq_pool_pause(r.p), WQ_OK);
		IS(wq_pool_resume(r.p), WQ_OK);
		IS(counts_of(r.p).workers, 0);
		COUNTS_ARE(r.p, .done = 1 - paused);
		rig_close(&r);
	}
}

struct stopper {
	struct actor actor;
	struct rig *r;
	int64_t deadline_ns;
};

static int64_t stop_main(void *arg)
{
	struct stopper *s = arg;

	return wq_pool_stop_until(s->r->p, s->deadline_ns);
}

static void stopper_block(struct stopper *s, struct rig *r, int64_t deadline_ns)
{
	*s = (struct stopper){.r = r, .deadline_ns = deadline_ns};
	actor_start(&s->actor, stop_main, s);
	actor_blocks(&s->actor);
}

/* [POOL] A handler that does not return: the others end, and its key is settled some day. */
static void stop_with_a_deadline(void **state)
{
	struct rig r;
	struct stopper hasty, patient[2];

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	occupy(&r, 0, 1);
	stopper_block(&hasty, &r, START_NS + 10);
	rig_wait(&r, &r.gone, 2);
	workers_become(r.p, 1);
	IS(counts_of(r.p).busy, 1);
	rig_add(&r, "done", WQ_QUEUED);
	wq_manual_clock_advance(r.f.mc, 9);
	actor_blocks(&hasty.actor);
	wq_manual_clock_advance(r.f.mc, 1);
	IS(actor_join(&hasty.actor), WQ_ETIMEDOUT);
	IS(wq_pool_stop_until(r.p, START_NS + 10), WQ_ETIMEDOUT);
	IS(wq_pool_stop_for(r.p, 0), WQ_ETIMEDOUT);
	IS(wq_pool_stop_for(r.p, INT64_MIN), WQ_ETIMEDOUT);
	IS(wq_len(r.f.q), 1);
	stopper_block(&patient[0], &r, WQ_NEVER);
	stopper_block(&patient[1], &r, WQ_NEVER);
	rig_gate(&r, false);
	IS(actor_join(&patient[0].actor), WQ_OK);
	IS(actor_join(&patient[1].actor), WQ_OK);
	COUNTS_ARE(r.p, .done = 1);
	IS(state_of(r.f.q, gated[0]), 0);
	IS(wq_len(r.f.q), 1); /* it did not take another one */
	rig_close(&r);
}

/* While one handler never returns, the rest of the pool goes on. */
static void one_that_stays_does_not_stop_the_others(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	occupy(&r, 0, 1);
	for (int i = 0; i < 50; i++) {
		rig_add(&r, "done", WQ_QUEUED);
		IS(wq_wait_key_until(r.f.q, "done", 4, WQ_NEVER), WQ_OK);
	}
	COUNTS_ARE(r.p, .done = 50);
	rig_close(&r);
}

static int64_t free_main(void *arg)
{
	return wq_pool_free(arg);
}

static void free_waits_for_the_handlers(void **state)
{
	struct rig r;
	struct actor liberator;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	occupy(&r, 0, 1);
	actor_start(&liberator, free_main, r.p);
	rig_wait(&r, &r.gone, 1);
	actor_blocks(&liberator);
	wq_manual_clock_advance(r.f.mc, WQ_HOUR); /* however long it takes */
	actor_blocks(&liberator);
	IS(wq_free(r.f.q), WQ_EBUSY);
	rig_gate(&r, false);
	IS(actor_join(&liberator), WQ_OK);
	IS(rig_read(&r, &r.ended), 1);
	r.p = NULL;
	rig_close(&r);
}

/* ---- drain ------------------------------------------------------------------ */

static void drain_of_a_pool(void **state)
{
	struct rig r;
	wq_report report;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .paused = 1});
	rig_add(&r, "done-1", WQ_QUEUED);
	rig_add(&r, "retry-2", WQ_QUEUED);
	IS(wq_add_after(r.f.q, "done-3", 6, WQ_HOUR), WQ_DELAYED);
	IS(wq_pool_drain_until(r.p, WQ_NEVER, NULL, &report), WQ_LEFT);
	IS((int64_t)report.retries, 1);
	IS((int64_t)report.delayed, 1);
	IS((int64_t)(report.queued + report.running), 0);
	IS(rig_read(&r, &r.gone), 2);
	/* the one that fails may do so before the queue is shut, and wait then */
	IS((int64_t)(counts_of(r.p).left + counts_of(r.p).retried), 1);
	COUNTS_ARE(r.p, .done = 1, .left = counts_of(r.p).left, .retried = counts_of(r.p).retried);
	IS(state_of(r.f.q, "retry-2"), WQ_STATE_LEFT | WQ_STATE_RETRYING);
	IS(state_of(r.f.q, "done-3"), WQ_STATE_LEFT);
	IS(wq_shutting_down(r.f.q), 1);
	IS(wq_pool_drain_until(r.p, 0, NULL, NULL), WQ_LEFT); /* nothing is left to do */
	rig_close(&r);
}

/* What waits is run now, each retry once more. */
static void drain_that_runs_what_waits(void **state)
{
	const wq_drain_options run = {.mode = WQ_DRAIN_RUN};
	struct rig r;
	wq_report report;

	(void)state;
	rig_open(&r, NULL, NULL);
	IS(wq_add_after(r.f.q, "done", 4, WQ_HOUR), WQ_DELAYED);
	IS(wq_add_after(r.f.q, "retry", 5, WQ_HOUR), WQ_DELAYED);
	IS(wq_pool_drain_until(r.p, WQ_NEVER, &run, &report), WQ_LEFT);
	COUNTS_ARE(r.p, .done = 1, .retried = 1, .left = 1);
	IS((int64_t)report.retries, 1);
	IS((int64_t)report.delayed, 0);
	rig_close(&r);
}

struct drain {
	struct actor actor;
	struct rig *r;
	wq_report report;
	int64_t deadline_ns;
	enum wq_drain_mode waiting;
};

static int64_t pool_drain_main(void *arg)
{
	struct drain *d = arg;

	return wq_pool_drain_until(d->r->p, d->deadline_ns, &(wq_drain_options){.mode = d->waiting},
	                           &d->report);
}

static void drain_block(struct drain *d, struct rig *r, int64_t deadline_ns,
                        enum wq_drain_mode waiting)
{
	*d = (struct drain){.r = r, .deadline_ns = deadline_ns, .waiting = waiting};
	actor_start(&d->actor, pool_drain_main, d);
	actor_blocks(&d->actor);
}

/* A drain that waits for what waits: the workers stay for it. */
static void drain_that_waits(void **state)
{
	struct rig r;
	struct drain d;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	IS(wq_add_after(r.f.q, "done", 4, 100), WQ_DELAYED);
	drain_block(&d, &r, WQ_NEVER, WQ_DRAIN_WAIT);
	rig_sleeps(&r);
	IS(rig_read(&r, &r.gone), 0);
	wq_manual_clock_advance(r.f.mc, 100);
	IS(actor_join(&d.actor), WQ_OK);
	COUNTS_ARE(r.p, .done = 1);
	IS(rig_read(&r, &r.gone), 2);
	rig_close(&r);
}

static void drain_with_a_deadline(void **state)
{
	struct rig r;
	struct drain d;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 1});
	occupy(&r, 0, 1);
	rig_add(&r, "done", WQ_QUEUED);
	drain_block(&d, &r, START_NS + 10, WQ_DRAIN_LEAVE);
	wq_manual_clock_advance(r.f.mc, 9);
	actor_blocks(&d.actor);
	wq_manual_clock_advance(r.f.mc, 1);
	IS(actor_join(&d.actor), WQ_ETIMEDOUT);
	IS((int64_t)d.report.queued, 1);
	IS((int64_t)d.report.running, 1);
	rig_gate(&r, false);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	COUNTS_ARE(r.p, .done = 1);
	IS(wq_len(r.f.q), 1); /* the workers take no more keys afterwards */
	rig_close(&r);
}

static int64_t pool_drain_for_main(void *arg)
{
	struct drain *d = arg;

	return wq_pool_drain_for(d->r->p, d->deadline_ns, NULL, &d->report);
}

/* A span from now; what waits is left over. */
static void drain_for_a_while(void **state)
{
	struct rig r;
	struct drain d = {.r = &r, .deadline_ns = 10};

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 1});
	occupy(&r, 0, 1);
	rig_add(&r, "done", WQ_QUEUED);
	IS(wq_add_after(r.f.q, "done-later", 10, 5), WQ_DELAYED);
	actor_start(&d.actor, pool_drain_for_main, &d);
	actor_blocks(&d.actor);
	wq_manual_clock_advance(r.f.mc, 9);
	actor_blocks(&d.actor);
	wq_manual_clock_advance(r.f.mc, 1);
	IS(actor_join(&d.actor), WQ_ETIMEDOUT);
	IS((int64_t)d.report.queued, 1);
	IS((int64_t)d.report.running, 1);
	IS((int64_t)d.report.delayed, 1);
	rig_gate(&r, false);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	rig_close(&r);
}

/* A span that is none looks once; one without an end lasts as long as it takes. */
static void drain_for_all_spans(void **state)
{
	static const int64_t none[] = {0, -1, INT64_MIN};
	static const int64_t enough[] = {1, WQ_SECOND, WQ_NEVER};

	(void)state;
	for (size_t i = 0; i < LENGTH(none); i++) {
		struct rig r;
		wq_report report;

		rig_open(&r, NULL, NULL);
		occupy(&r, 0, 1);
		IS(wq_pool_drain_for(r.p, none[i], NULL, &report), WQ_ETIMEDOUT);
		IS((int64_t)report.running, 1);
		rig_gate(&r, false);
		IS(wq_pool_drain_for(r.p, WQ_NEVER, NULL, &report), WQ_OK);
		IS((int64_t)report.running, 0);
		rig_close(&r);
	}
	for (size_t i = 0; i < LENGTH(enough); i++) {
		struct rig r;

		rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .paused = 1});
		rig_add(&r, "done", WQ_QUEUED);
		IS(wq_pool_drain_for(r.p, enough[i], NULL, NULL), WQ_OK);
		COUNTS_ARE(r.p, .done = 1);
		IS(rig_read(&r, &r.gone), 2);
		IS(wq_shutting_down(r.f.q), 1);
		rig_close(&r);
	}
}

/* The drain is over in time, but one that holds nothing has not ended: a hook takes long. */
static void slow_end(void *ctx, uint32_t worker)
{
	struct rig *r = ctx;

	rig_note(r, &r->at_gate);
	pthread_mutex_lock(&r->mutex);
	while (r->shut)
		pthread_cond_wait(&r->cond, &r->mutex);
	pthread_mutex_unlock(&r->mutex);
	rig_on_end(ctx, worker);
}

static void drained_but_not_ended(void **state)
{
	struct rig r;
	struct drain d;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .on_end = slow_end});
	rig_gate(&r, true);
	rig_add(&r, "done", WQ_QUEUED);
	drain_block(&d, &r, START_NS + 10, WQ_DRAIN_LEAVE);
	rig_wait(&r, &r.at_gate, 2);
	wq_manual_clock_advance(r.f.mc, 10);
	IS(actor_join(&d.actor), WQ_ETIMEDOUT);
	IS((int64_t)(d.report.queued + d.report.running), 0);
	IS(counts_of(r.p).workers, 2);
	rig_gate(&r, false);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	rig_close(&r);
}

static void a_shutdown_releases_a_drain_of_a_pool(void **state)
{
	struct rig r;
	struct drain d;

	(void)state;
	rig_open(&r, NULL, NULL);
	occupy(&r, 0, 1);
	drain_block(&d, &r, WQ_NEVER, WQ_DRAIN_LEAVE);
	IS(wq_shutdown(r.f.q), WQ_OK);
	actor_blocks(&d.actor); /* for the handler, still */
	rig_gate(&r, false);
	IS(actor_join(&d.actor), WQ_EINTERRUPTED);
	IS((int64_t)d.report.running, 1);
	rig_close(&r);
}

/* ---- who would wait for himself ------------------------------------------------ */

static struct rig *neighbour; /* another queue with another pool */

static wq_verdict act_wait_for_itself(struct rig *r, const wq_item *it)
{
	wq_queue *q = r->f.q;
	int i = 0;

	r->answer[i++] = wq_drain_until(q, WQ_NEVER, NULL, NULL);
	r->answer[i++] = wq_drain_for(q, 0, NULL, NULL);
	r->answer[i++] = wq_pool_drain_until(r->p, WQ_NEVER, NULL, NULL);
	r->answer[i++] = wq_pool_drain_for(r->p, WQ_SECOND, NULL, NULL);
	r->answer[i++] = wq_wait_idle_until(q, WQ_NEVER);
	r->answer[i++] = wq_wait_idle_for(q, 1);
	r->answer[i++] = wq_wait_key_until(q, it->key, it->len, WQ_NEVER);
	r->answer[i++] = wq_wait_key_for(q, "act-1", 5, WQ_NEVER);
	r->answer[i++] = cancel_key_until(q, "act-1", 5, WQ_NEVER);
	r->answer[i++] = wq_pool_free(r->p);
	r->answer[i++] = wq_shutting_down(q);
	r->answer[i++] = wq_state(q, it->key, it->len);
	r->answer[i++] = wq_pool_stop_until(r->p, WQ_NEVER);
	return WQ_DONE;
}

static void EDEADLK_in_a_handler(void **state)
{
	struct rig r;
	int i = 0;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	r.act = act_wait_for_itself;
	rig_add(&r, "act-1", WQ_QUEUED);
	rig_wait(&r, &r.gone, 2); /* the workers end all the same */
	for (; i < 10; i++)
		IS(r.answer[i], WQ_EDEADLK);
	IS(r.answer[i++], 0);                /* not shut */
	IS(r.answer[i++], WQ_STATE_RUNNING); /* and not cancelled */
	IS(r.answer[i++], WQ_EDEADLK);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	COUNTS_ARE(r.p, .done = 1);
	rig_close(&r);
}

/* The same calls about what others hold. */
static wq_verdict act_wait_for_others(struct rig *r, const wq_item *it)
{
	wq_queue *q = r->f.q, *other = neighbour->f.q;
	int i = 0;

	r->answer[i++] = wq_wait_key_until(q, "done", 4, WQ_NEVER);
	r->answer[i++] = cancel_key_until(q, "absent", 6, WQ_NEVER);
	r->answer[i++] = wq_wait_idle_until(other, WQ_NEVER);
	r->answer[i++] = wq_wait_key_until(other, it->key, it->len, WQ_NEVER);
	r->answer[i++] = cancel_key_until(other, it->key, it->len, WQ_NEVER);
	r->answer[i++] = wq_drain_until(other, WQ_NEVER, NULL, NULL);
	r->answer[i++] = wq_pool_drain_until(neighbour->p, WQ_NEVER, NULL, NULL);
	r->answer[i++] = wq_pool_stop_until(neighbour->p, WQ_NEVER);
	r->answer[i++] = wq_pool_free(neighbour->p);
	return WQ_DONE;
}

static void others_may_be_waited_for_in_a_handler(void **state)
{
	static const int answers[] = {WQ_OK, WQ_ENOTFOUND, WQ_OK, WQ_OK, WQ_ENOTFOUND,
	                              WQ_OK, WQ_OK,        WQ_OK, WQ_OK};
	struct rig r, other;

	(void)state;
	rig_open(&other, NULL, NULL);
	neighbour = &other;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2, .paused = 1});
	r.act = act_wait_for_others;
	rig_add(&r, "act", WQ_QUEUED);
	rig_add(&r, "done", WQ_QUEUED);
	IS(wq_pool_resume(r.p), WQ_OK);
	rig_wait(&r, &r.ended, 2);
	for (size_t i = 0; i < LENGTH(answers); i++)
		IS(r.answer[i], answers[i]);
	other.p = NULL;
	rig_close(&r);
	rig_close(&other);
}

/* A handler of one pool would wait for its own key in a drain, and not in a stop, of another. */
static wq_verdict act_stop_the_other(struct rig *r, const wq_item *it)
{
	wq_pool *other = neighbour->p;

	(void)it;
	r->answer[0] = wq_pool_drain_until(other, WQ_NEVER, NULL, NULL);
	r->answer[1] = wq_pool_stop_until(other, WQ_NEVER);
	r->answer[2] = wq_pool_free(other);
	return WQ_DONE;
}

static void two_pools_of_one_queue_and_a_handler(void **state)
{
	struct rig r, other = {0};

	(void)state;
	rig_open(&r, NULL, NULL);
	other.p = rig_pool(&r, &(wq_pool_options){.paused = 1});
	neighbour = &other;
	r.act = act_stop_the_other;
	rig_add(&r, "act", WQ_QUEUED);
	rig_wait(&r, &r.ended, 1);
	IS(r.answer[0], WQ_EDEADLK);
	IS(r.answer[1], WQ_OK);
	IS(r.answer[2], WQ_OK);
	rig_close(&r);
}

static void hook_stops(struct rig *r, int64_t *answers)
{
	answers[0] = wq_pool_free(r->p);
	answers[1] = wq_pool_stop_until(r->p, WQ_NEVER);
	answers[2] = wq_wait_idle_until(r->f.q, WQ_NEVER); /* it holds nothing */
}

static void start_and_stop(void *ctx, uint32_t worker)
{
	struct rig *r = ctx;

	if (worker == 1)
		hook_stops(r, r->answer);
	rig_on_start(ctx, worker);
}

static void end_and_stop(void *ctx, uint32_t worker)
{
	struct rig *r = ctx;

	if (worker == 1)
		hook_stops(r, r->answer + 3);
	rig_on_end(ctx, worker);
}

static void EDEADLK_in_a_hook(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.on_start = start_and_stop, .on_end = end_and_stop});
	IS(wq_pool_resize(r.p, 2), WQ_OK);
	rig_wait(&r, &r.gone, 2);
	for (int i = 0; i < 6; i++)
		IS(r.answer[i], i % 3 == 2 ? WQ_OK : WQ_EDEADLK);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(more_workers_start_at_once),
	    cmocka_unit_test(fewer_workers_end_with_their_keys),
	    cmocka_unit_test(down_and_up_again),
	    cmocka_unit_test(a_handler_resizes),
	    cmocka_unit_test(pause_and_resume),
	    cmocka_unit_test(a_paused_pool_leaves_keys_to_others),
	    cmocka_unit_test(start_paused),
	    cmocka_unit_test(a_drain_resumes_paused_pools),
	    cmocka_unit_test(a_shutdown_does_not_resume),
	    cmocka_unit_test(stop_ends_workers_and_not_the_queue),
	    cmocka_unit_test(stop_with_a_deadline),
	    cmocka_unit_test(one_that_stays_does_not_stop_the_others),
	    cmocka_unit_test(free_waits_for_the_handlers),
	    cmocka_unit_test(drain_of_a_pool),
	    cmocka_unit_test(drain_that_runs_what_waits),
	    cmocka_unit_test(drain_that_waits),
	    cmocka_unit_test(drain_with_a_deadline),
	    cmocka_unit_test(drain_for_a_while),
	    cmocka_unit_test(drain_for_all_spans),
	    cmocka_unit_test(drained_but_not_ended),
	    cmocka_unit_test(a_shutdown_releases_a_drain_of_a_pool),
	    cmocka_unit_test(EDEADLK_in_a_handler),
	    cmocka_unit_test(others_may_be_waited_for_in_a_handler),
	    cmocka_unit_test(two_pools_of_one_queue_and_a_handler),
	    cmocka_unit_test(EDEADLK_in_a_hook),
	};

	return cmocka_run_group_tests_name("pool_control", tests, NULL, NULL);
}
