/*
 * Handlers that take longer than they may, on the manual clock: each is reported
 * once, to the nanosecond. That nothing was reported is known once the
 * thread that watches sleeps again.
 */
#include "../support/cancel.h"
#include "pool_rig.h"

#include <dirent.h>
#include <sched.h>

enum { LIMIT = 100, REPORTS = 16 };

struct report {
	char key[WQ_KEY_MAX + 1];
	wq_slow_handler o;
	pthread_t thread;
};

static struct {
	struct report list[REPORTS];
	int n;
	int64_t answer[4];
	void (*act)(struct rig *r); /* in the callback; or NULL */
} reports;

static void on_slow(void *ctx, const wq_slow_handler *o)
{
	struct rig *r = ctx;
	struct report *at;

	/* Two may be called at once. */
	pthread_mutex_lock(&r->mutex);
	at = &reports.list[reports.n++];
	pthread_mutex_unlock(&r->mutex);
	at->thread = pthread_self();
	if (reports.act)
		reports.act(r);
	/* Whatever has become of the key meanwhile, this copy is valid still. */
	memcpy(at->key, o->key, o->len + 1);
	at->o = *o;
	rig_note(r, &r->noted);
}

static void slow_open(struct rig *r, uint32_t workers)
{
	memset(&reports, 0, sizeof reports);
	rig_open(r, NULL,
	         &(wq_pool_options){.workers = workers, .slow_ns = LIMIT, .on_slow = on_slow});
	rig_gate(r, true);
}

/* How many threads are called like the timer's. */
static int find_timers(int *tid)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	assert_non_null(dir);
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		char path[64], name[32] = "";

		snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", d->d_name);

		FILE *f = fopen(path, "re");

		if (f && fgets(name, sizeof name, f) && strcmp(name, "wq-timer\n") == 0) {
			*tid = atoi(d->d_name);
			n++;
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
	return n;
}

/* One may not have its name yet, and one that was joined be seen for a moment longer. */
static int watcher(void)
{
	int tid = 0;

	while (find_timers(&tid) != 1)
		sched_yield();
	return tid;
}

/* The watcher has looked, and so many were reported in all. */
static void reported_is(struct rig *r, int n)
{
	wq_snapshot s;

	rig_wait(r, &r->noted, n);
	thread_sleeps(watcher());
	IS(rig_read(r, &r->noted), n);
	IS((int64_t)counts_of(r->p).slow_handlers, n);
	IS(wq_snapshot_take(r->f.q, &s), WQ_OK);
	IS((int64_t)s.slow_handlers, n);
}

/* A handler stands at the gate. */
static void begin(struct rig *r, const char *key)
{
	int before = rig_read(r, &r->at_gate);

	rig_add(r, key, WQ_QUEUED);
	rig_wait(r, &r->at_gate, before + 1);
}

static void finish(struct rig *r)
{
	rig_gate(r, false);
	rig_idle(r);
	rig_sleeps(r); /* it is not watched any more */
	rig_gate(r, true);
}

static void step(struct rig *r, int64_t by_ns)
{
	thread_sleeps(watcher());
	wq_manual_clock_advance(r->f.mc, by_ns);
}

static void report_is(int i, const char *key, int64_t running_ns)
{
	const struct report *at = &reports.list[i];

	assert_string_equal(at->key, key);
	IS((int64_t)at->o.len, (int64_t)strlen(key));
	IS(at->o.running_ns, running_ns);
	IS(at->o.attempts, 1);
	for (size_t k = 0; k < LENGTH(at->o.reserved); k++)
		IS((int64_t)at->o.reserved[k], 0);
}

static void reported_once_and_in_time(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 1);
	for (int i = 0; i < 3; i++) {
		step(&r, 37); /* at another phase of the watcher's each time */
		begin(&r, "gate+done");
		step(&r, LIMIT - 1);
		reported_is(&r, i);
		step(&r, 1);
		reported_is(&r, i + 1);
		report_is(i, "gate+done", LIMIT);
		IS(reports.list[i].o.worker, 0);
		step(&r, 10 * LIMIT); /* once */
		reported_is(&r, i + 1);
		finish(&r);
		COUNTS_ARE(r.p, .done = (uint64_t)(i + 1)); /* nothing else happened to it */
	}
	rig_close(&r);
}

static void not_reported_if_in_time(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 1);
	for (int i = 0; i < 3; i++) {
		begin(&r, "gate+done");
		step(&r, LIMIT - 1);
		finish(&r);
		step(&r, i * LIMIT);
		reported_is(&r, 0);
	}
	rig_close(&r);
}

/* The clock jumps: late, and still once. */
static void reported_after_a_jump(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 1);
	begin(&r, "gate+done");
	step(&r, WQ_HOUR);
	reported_is(&r, 1);
	report_is(0, "gate+done", WQ_HOUR);
	finish(&r);
	begin(&r, "gate+again"); /* and the watcher is in time again */
	step(&r, LIMIT);
	reported_is(&r, 2);
	report_is(1, "gate+again", LIMIT);
	rig_close(&r);
}

static void several_workers(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 4);
	begin(&r, "gate+done-1");
	step(&r, 30);
	begin(&r, "gate+done-2");
	step(&r, 30);
	begin(&r, "gate+done-3");
	step(&r, 40);
	reported_is(&r, 1);
	report_is(0, "gate+done-1", LIMIT);
	begin(&r, "gate+done-4");
	step(&r, 30);
	reported_is(&r, 2);
	report_is(1, "gate+done-2", LIMIT);
	step(&r, 70); /* two in one look */
	reported_is(&r, 4);

	bool third_first = strcmp(reports.list[2].key, "gate+done-3") == 0;

	report_is(third_first ? 2 : 3, "gate+done-3", 140);
	report_is(third_first ? 3 : 2, "gate+done-4", LIMIT);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_true(reports.list[i].o.worker != reports.list[k].o.worker);
	rig_close(&r);
}

static void long_handler(struct rig *r)
{
	char other[WQ_KEY_MAX];

	/* The handler returns and its key is gone before the callback has looked at it. */
	rig_gate(r, false);
	reports.answer[0] = wq_wait_idle_until(r->f.q, WQ_NEVER);
	memset(other, 'o', sizeof other);
	reports.answer[1] = wq_add(r->f.q, other, sizeof other);
	reports.answer[2] = cancel_key(r->f.q, other, sizeof other);
}

/* The longest key, which is gone when the callback reads its copy. */
static void the_key_is_a_copy(void **state)
{
	static char key[WQ_KEY_MAX + 1];
	struct rig r;

	(void)state;
	slow_open(&r, 1);
	reports.act = long_handler;
	memset(key, 'k', WQ_KEY_MAX);
	memcpy(key, "gate+done", 9);
	begin(&r, key);
	IS(wq_pool_pause(r.p), WQ_OK); /* for the callback to take back what it adds */
	step(&r, LIMIT);
	reported_is(&r, 1);
	report_is(0, key, LIMIT);
	IS(reports.answer[0], WQ_OK);
	IS(reports.answer[1], WQ_QUEUED);
	IS(reports.answer[2], WQ_STATE_QUEUED);
	rig_close(&r);
}

static wq_verdict wait_at_the_gate(void *ctx, const wq_item *it)
{
	wq_item named = *it;

	named.key = "gate+done"; /* whatever it is */
	return rig_handler(ctx, &named);
}

static void the_empty_key(void **state)
{
	struct rig r;

	(void)state;
	memset(&reports, 0, sizeof reports);
	rig_open(&r, NULL,
	         &(wq_pool_options){.slow_ns = LIMIT,
	                            .handler = wait_at_the_gate,
	                            .on_slow = on_slow});
	rig_gate(&r, true);
	begin(&r, "");
	step(&r, LIMIT);
	reported_is(&r, 1);
	report_is(0, "", LIMIT);
	rig_close(&r);
}

static void more_workers(struct rig *r)
{
	reports.answer[0] = wq_pool_resize(r->p, 2);
	reports.answer[1] = wq_pool_stop_until(r->p, INT64_C(-1));
	reports.answer[2] = wq_pool_free(r->p);
	reports.answer[3] = wq_wait_idle_until(r->f.q, 0); /* it holds nothing: it may wait */
}

/* Another worker in place of the one that is stuck. */
static void the_callback_resizes(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 1);
	reports.act = more_workers;
	begin(&r, "gate+done");
	rig_add(&r, "done", WQ_QUEUED);
	step(&r, LIMIT);
	reported_is(&r, 1);
	IS(reports.answer[0], WQ_OK);
	IS(reports.answer[1], WQ_EINVAL);
	IS(reports.answer[2], WQ_EDEADLK);
	IS(reports.answer[3], WQ_ETIMEDOUT);
	IS(wq_wait_key_until(r.f.q, "done", 4, WQ_NEVER), WQ_OK);
	IS(counts_of(r.p).workers, 2);
	rig_close(&r);
}

static void stop_the_pool(struct rig *r)
{
	reports.answer[0] = wq_pool_stop_until(r->p, WQ_NEVER);
}

static void the_callback_cannot_stop_and_wait(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 2);
	reports.act = stop_the_pool;
	begin(&r, "gate+done");
	step(&r, LIMIT);
	reported_is(&r, 1);
	IS(reports.answer[0], WQ_EDEADLK);
	rig_wait(&r, &r.gone, 1); /* but they end */
	rig_gate(&r, false);
	rig_wait(&r, &r.gone, 2);
	rig_close(&r);
}

static void stay_for_the_first(struct rig *r)
{
	pthread_mutex_lock(&r->mutex);
	if (reports.n == 1)
		while (r->noted == 0)
			pthread_cond_wait(&r->cond, &r->mutex);
	pthread_mutex_unlock(&r->mutex);
}

/* The watcher is busy with another one: who ends after its time reports that himself. */
static void reported_by_the_worker_itself(void **state)
{
	struct rig r;

	(void)state;
	slow_open(&r, 2);
	reports.act = stay_for_the_first;
	begin(&r, "gate+done-1");
	step(&r, LIMIT);
	thread_sleeps(watcher()); /* in the callback */
	begin(&r, "gate+done-2");
	wq_manual_clock_advance(r.f.mc, LIMIT);
	rig_gate(&r, false);
	reported_is(&r, 2);
	report_is(0, "gate+done-1", LIMIT);
	report_is(1, "gate+done-2", LIMIT);
	assert_false(pthread_equal(reports.list[0].thread, reports.list[1].thread));
	rig_close(&r);
}

static void without_a_callback_it_is_counted(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.slow_ns = LIMIT});
	rig_gate(&r, true);
	begin(&r, "gate+done");
	step(&r, LIMIT);
	thread_sleeps(watcher());
	IS((int64_t)counts_of(r.p).slow_handlers, 1);
	rig_close(&r);
}

static int64_t free_main(void *arg)
{
	return wq_pool_free(arg);
}

/* A pool that is being freed waits for a callback, and goes on to watch until then. */
static void reported_while_it_is_freed(void **state)
{
	struct rig r;
	struct actor liberator;

	(void)state;
	slow_open(&r, 1);
	begin(&r, "gate+done");
	actor_start(&liberator, free_main, r.p);
	actor_blocks(&liberator);
	step(&r, LIMIT);
	rig_wait(&r, &r.noted, 1);
	report_is(0, "gate+done", LIMIT);
	rig_gate(&r, false);
	IS(actor_join(&liberator), WQ_OK);
	r.p = NULL;
	rig_close(&r);
}

/* An own clock that jumps, and whose owner says so. */
static void a_clock_of_ones_own(void **state)
{
	struct own_clock own = {.now_ns = START_NS};
	wq_clock clock = own_clock(&own, false);
	struct rig r;
	wq_queue *q;

	(void)state;
	memset(&reports, 0, sizeof reports);
	rig_open(&r, NULL, NULL);
	IS(wq_pool_free(r.p), WQ_OK);
	IS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_OK);

	wq_queue *first = r.f.q;

	r.f.q = q;
	r.p = rig_pool(&r, &(wq_pool_options){.slow_ns = WQ_HOUR, .on_slow = on_slow});
	rig_gate(&r, true);
	begin(&r, "gate+done");
	thread_sleeps(watcher());
	atomic_store(&own.now_ns, START_NS + WQ_HOUR);
	IS(wq_clock_changed(q), WQ_OK);
	rig_wait(&r, &r.noted, 1);
	report_is(0, "gate+done", WQ_HOUR);
	rig_gate(&r, false);
	IS(wq_pool_free(r.p), WQ_OK);
	IS(wq_free(q), 0);
	r.f.q = first;
	r.p = NULL;
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reported_once_and_in_time),
	    cmocka_unit_test(not_reported_if_in_time),
	    cmocka_unit_test(reported_after_a_jump),
	    cmocka_unit_test(several_workers),
	    cmocka_unit_test(the_key_is_a_copy),
	    cmocka_unit_test(the_empty_key),
	    cmocka_unit_test(the_callback_resizes),
	    cmocka_unit_test(the_callback_cannot_stop_and_wait),
	    cmocka_unit_test(reported_by_the_worker_itself),
	    cmocka_unit_test(without_a_callback_it_is_counted),
	    cmocka_unit_test(reported_while_it_is_freed),
	    cmocka_unit_test(a_clock_of_ones_own),
	};

	return cmocka_run_group_tests_name("pool_slow", tests, NULL, NULL);
}
