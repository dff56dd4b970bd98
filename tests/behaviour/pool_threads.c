/*
 * The threads of a pool: hooks, names, signals, timers, stacks; and what happens if
 * there is no thread, no memory, or an argument that makes no sense.
 */
#include "pool_rig.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- threads that there are not ------------------------------------------------ */

/* The linker sends the library's calls here (see CMakeLists.txt). */
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

static _Atomic int threads_left = INT_MAX;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (atomic_load(&threads_left) == 0)
		return EAGAIN;
	atomic_fetch_sub(&threads_left, 1);
	return __real_pthread_create(id, attr, fn, arg);
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	assert_non_null(dir);
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* One that was joined may be seen for a moment longer. */
static void threads_are(int n)
{
	while (count_threads() != n)
		sched_yield();
}

/* ---- what they are like ---------------------------------------------------------- */

static struct {
	char name[16];
	sigset_t mask;
	int slack;
	int tid;
	size_t stack_size;
} seen;

static wq_verdict act_look(struct rig *r, const wq_item *it)
{
	pthread_attr_t attr;

	(void)r;
	(void)it;
	pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
	pthread_sigmask(SIG_BLOCK, NULL, &seen.mask);
	seen.slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
	seen.tid = (int)syscall(SYS_gettid);
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstacksize(&attr, &seen.stack_size);
		pthread_attr_destroy(&attr);
	}
	return WQ_DONE;
}

/* A worker of such a pool has looked at itself. */
static void look(struct rig *r, const wq_pool_options *o)
{
	memset(&seen, 0, sizeof seen);
	rig_open(r, NULL, o);
	r->act = act_look;
	rig_add(r, "act", WQ_QUEUED);
	rig_wait(r, &r->ended, 1);
}

static void threads_have_names(void **state)
{
	static const struct {
		const char *name, *seen;
	} rows[] = {
	    {NULL, "wq-0"},
	    {"", "-0"},
	    {"pods", "pods-0"},
	    {"a-very-long-name-indeed", "a-very-lon-0"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char name[32] = "";
		struct rig r;

		if (rows[i].name)
			strcpy(name, rows[i].name);
		look(&r, &(wq_pool_options){.name = rows[i].name ? name : NULL});
		assert_string_equal(seen.name, rows[i].seen);
		if (i == 2) { /* the name was copied, and the next one has the next number */
			memset(name, 'x', 4);
			rig_gate(&r, true);
			rig_add(&r, "gate+done", WQ_QUEUED);
			rig_wait(&r, &r.at_gate, 1);
			IS(wq_pool_resize(r.p, 2), WQ_OK);
			rig_add(&r, "act", WQ_QUEUED);
			rig_wait(&r, &r.ended, 2);
			assert_string_equal(seen.name, "pods-1");
		}
		rig_close(&r);
	}
}

static void threads_are_like_their_makers(void **state)
{
	struct rig r;
	sigset_t mine;

	(void)state;
	look(&r, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	masks_are_equal(&seen.mask, &mine);
	IS(sigismember(&mine, SIGTERM), 0);
	/* In a handler: exact timers are for sleeps only. */
	IS(seen.slack, prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL));
	assert_true(seen.slack > 1);
	rig_close(&r);
}

static void threads_have_the_stack_that_was_asked_for(void **state)
{
	enum {
		SIZE = 64 << 20
	}; /* more than the system's default; it may give more than is asked for */
	struct rig r;
	wq_pool *p = NULL;

	(void)state;
	look(&r, &(wq_pool_options){.stack_size = SIZE - 1});
	assert_in_range(seen.stack_size, SIZE - 1, SIZE_MAX);
	rig_close(&r);
	look(&r, &(wq_pool_options){.stack_size = 1}); /* as much as the system needs */
	assert_in_range(seen.stack_size, (size_t)sysconf(_SC_THREAD_STACK_MIN), SIZE_MAX);
	rig_close(&r);
	rig_open(&r, NULL, NULL);
	IS(wq_pool_start(
	       &p, r.f.q,
	       &(wq_pool_options){.workers = 2, .handler = rig_handler, .stack_size = SIZE_MAX}),
	   WQ_EIO);
	assert_null(p);
	rig_close(&r);
}

/* ---- hooks ------------------------------------------------------------------------ */

enum { WORKERS = 3 };

static struct {
	_Atomic int tid[WORKERS]; /* of on_start */
	_Atomic int handled[WORKERS];
	_Atomic int mismatch; /* not in that thread, or not in that order */
} hooks;

static int number_of_thread(void)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load(&hooks.tid[i]) == (int)syscall(SYS_gettid))
			return i;
	return -1;
}

static void hook_start(void *ctx, uint32_t worker)
{
	if (worker >= WORKERS || atomic_exchange(&hooks.tid[worker], (int)syscall(SYS_gettid)))
		atomic_fetch_add(&hooks.mismatch, 1);
	rig_on_start(ctx, worker);
}

static wq_verdict hook_handler(void *ctx, const wq_item *it)
{
	int worker = number_of_thread();

	if (worker < 0)
		atomic_fetch_add(&hooks.mismatch, 1);
	else
		atomic_fetch_add(&hooks.handled[worker], 1);
	return rig_handler(ctx, it);
}

static void hook_end(void *ctx, uint32_t worker)
{
	if (number_of_thread() != (int)worker)
		atomic_fetch_add(&hooks.mismatch, 1);
	else
		atomic_store(&hooks.tid[worker], 0);
	rig_on_end(ctx, worker);
}

static void hooks_are_called_first_and_last(void **state)
{
	struct rig r;

	(void)state;
	memset(&hooks, 0, sizeof hooks);
	rig_open(&r, NULL,
	         &(wq_pool_options){.workers = WORKERS,
	                            .handler = hook_handler,
	                            .on_start = hook_start,
	                            .on_end = hook_end});
	rig_wait(&r, &r.started, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		assert_true(hooks.tid[i] != 0 && hooks.tid[i] != (int)syscall(SYS_gettid));
	rig_gate(&r, true);
	for (int i = 0; i < WORKERS; i++) /* one for each of them */
		rig_add(&r, (const char *[]){"gate+done-0", "gate+done-1", "gate+done-2"}[i],
		        WQ_QUEUED);
	rig_wait(&r, &r.at_gate, WORKERS);
	rig_gate(&r, false);
	rig_idle(&r);
	IS(wq_pool_resize(r.p, 1), WQ_OK);
	rig_wait(&r, &r.gone, WORKERS - 1);
	/* Numbers are used again. Who has ended is joined by the next call, or the one after. */
	workers_become(r.p, 1);
	IS(wq_pool_resize(r.p, 1), WQ_OK);
	IS(wq_pool_resize(r.p, WORKERS), WQ_OK);
	rig_wait(&r, &r.started, 2 * WORKERS - 1);
	IS(wq_pool_stop_until(r.p, WQ_NEVER), WQ_OK);
	IS(rig_read(&r, &r.gone), 2 * WORKERS - 1);
	for (int i = 0; i < WORKERS; i++) {
		IS(hooks.handled[i], 1);
		IS(hooks.tid[i], 0);
	}
	IS(hooks.mismatch, 0);
	rig_close(&r);
}

/* ---- how many there are ------------------------------------------------------------ */

static void a_watching_thread_only_with_a_limit(void **state)
{
	int before;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL); /* a sanitizer may start one of its own with the first thread */
	rig_close(&r);
	while (before = count_threads(), sched_yield(), before != count_threads())
		;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3});
	rig_wait(&r, &r.started, 3);
	threads_are(before + 3);
	IS(wq_pool_resize(r.p, 1), WQ_OK);
	rig_wait(&r, &r.gone, 2);
	threads_are(before + 1);
	rig_close(&r);
	threads_are(before);
	rig_open(&r, NULL, &(wq_pool_options){.workers = 3, .slow_ns = WQ_SECOND});
	rig_wait(&r, &r.started, 3);
	threads_are(before + 4);
	rig_close(&r);
	threads_are(before);
}

/* Nothing is left behind: the queue, its memory and its clock are as before. */
static void there_may_be_no_thread(void **state)
{
	(void)state;
	for (int64_t limit = 0; limit < 2; limit++) {
		for (int left = 0; left < 3 + limit; left++) {
			struct rig r;
			wq_pool *p = NULL;

			rig_open(&r, NULL, &(wq_pool_options){.paused = 1});
			rig_add(&r, "done", WQ_QUEUED);

			int64_t live = r.f.mem.live;

			threads_left = left;
			int rc = wq_pool_start(&p, r.f.q,
			                       &(wq_pool_options){.workers = 3,
			                                          .handler = rig_handler,
			                                          .ctx = &r,
			                                          .slow_ns = limit});

			threads_left = INT_MAX;
			IS(rc, WQ_EIO);
			assert_null(p);
			IS(r.f.mem.live, live);
			IS(rig_read(&r, &r.begun), 0); /* those that were there took nothing */
			wq_manual_clock_advance(r.f.mc, 10);
			IS(wq_pool_free(r.p), WQ_OK);
			r.p = NULL;
			IS(wq_len(r.f.q), 1);
			rig_close(&r);
		}
	}
}

static void resize_without_threads(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	for (int left = 0; left < 3; left++) {
		threads_left = left;
		int rc = wq_pool_resize(r.p, 5);

		threads_left = INT_MAX;
		IS(rc, WQ_EIO);
		workers_become(r.p, 2); /* those that had started go again */
		rig_gate(&r, true);
		rig_add(&r, "gate+done-0", WQ_QUEUED);
		rig_add(&r, "gate+done-1", WQ_QUEUED);
		rig_wait(&r, &r.at_gate, 2 * (left + 1));
		rig_gate(&r, false);
		rig_idle(&r);
	}
	IS(wq_pool_resize(r.p, 5), WQ_OK);
	rig_sleeps(&r);
	IS(counts_of(r.p).workers, 5);
	rig_close(&r);
}

/* ---- memory -------------------------------------------------------------------------- */

/* The n-th allocation fails; true if there was an n-th. */
static bool start_without_memory(int64_t n, bool and_later)
{
	struct rig r;
	wq_pool *p = NULL;
	bool failed;

	rig_open(&r, NULL, &(wq_pool_options){.paused = 1});
	rig_add(&r, "done", WQ_QUEUED);

	int64_t live = r.f.mem.live;

	r.f.mem.fail_at = r.f.mem.calls + n;
	r.f.mem.fail_on = and_later;

	int rc = wq_pool_start(&p, r.f.q,
	                       &(wq_pool_options){.workers = 3,
	                                          .handler = rig_handler,
	                                          .ctx = &r,
	                                          .on_start = rig_on_start,
	                                          .on_end = rig_on_end,
	                                          .slow_ns = WQ_SECOND});

	r.f.mem.fail_at = -1;
	failed = rc != WQ_OK;
	if (failed) {
		IS(rc, WQ_ENOMEM);
		assert_null(p);
		IS(r.f.mem.live, live);
		IS(wq_len(r.f.q), 1);
		IS(rig_read(&r, &r.begun), 0);
	} else {
		rig_wait(&r, &r.ended, 1);
		IS(wq_pool_free(p), WQ_OK);
	}
	rig_close(&r);
	return failed;
}

static void each_allocation_of_a_start_fails(void **state)
{
	(void)state;
	memory_fail_each(start_without_memory, 5);
}

static void resize_without_memory(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.workers = 2});
	for (int n = 0; n < 3; n++) {
		r.f.mem.fail_at = r.f.mem.calls + n;
		IS(wq_pool_resize(r.p, 5), WQ_ENOMEM);
		r.f.mem.fail_at = -1;
		workers_become(r.p, 2);
	}
	IS(wq_pool_resize(r.p, 5), WQ_OK);
	IS(counts_of(r.p).workers, 5);
	rig_close(&r);
}

/* ---- bad input ------------------------------------------------------------------------- */

static void bad_options(void **state)
{
	struct rig r;
	wq_pool *p = NULL;
	const wq_pool_options good = {.workers = 1, .handler = rig_handler, .paused = 1};

	(void)state;
	rig_open(&r, NULL, &(wq_pool_options){.paused = 1});
	IS(wq_pool_start(NULL, r.f.q, &good), WQ_EINVAL);
	IS(wq_pool_start(&p, NULL, &good), WQ_EINVAL);
	IS(wq_pool_start(&p, r.f.q, NULL), WQ_EINVAL);
	for (int i = 0; i < 9 + 5; i++) {
		wq_pool_options o = good;

		switch (i) {
		case 0:
			o.workers = 0;
			break;
		case 1:
			o.workers = WQ_WORKERS_MAX + 1;
			break;
		case 2:
			o.workers = UINT32_MAX;
			break;
		case 3:
			o.handler = NULL;
			break;
		case 4:
			o.slow_ns = -1;
			break;
		case 5:
			o.slow_ns = INT64_MIN;
			break;
		case 6:
			o.paused = 2;
			break;
		case 7:
			o.block_signals = 2;
			break;
		case 8:
			o.reserved0 = 1;
			break;
		default:
			o.reserved[i - 9] = 1;
		}
		IS(wq_pool_start(&p, r.f.q, &o), WQ_EINVAL);
		assert_null(p);
	}
	rig_close(&r);
}

/* The clock's answer is passed on, and nothing is left of the pool. */
static void a_clock_that_refuses_to_be_watched(void **state)
{
	struct own_clock own = {.now_ns = 0};
	wq_clock clock = own_clock(&own, true);
	const wq_pool_options o = {.workers = 1, .handler = rig_handler, .paused = 1};
	wq_pool *p = NULL;
	struct memory mem;
	wq_queue *q;

	(void)state;
	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);

	IS(wq_new(&q, &(wq_options){.clock = &clock, .allocator = &a}), WQ_OK);
	own.answer = WQ_EBUSY;
	IS(wq_pool_start(&p, q, &o), WQ_EBUSY);
	assert_null(p);
	IS(own.ons, 2); /* the queue's and the pool's */
	IS(own.offs, 0);
	own.answer = WQ_OK;
	IS(wq_free(q), 0);
	memory_balanced(&mem);
}

static void bad_arguments(void **state)
{
	struct rig r;
	wq_pool_counts c;
	wq_drain_options o = {.reserved0 = 1};
	wq_report report, untouched;

	(void)state;
	memset(&report, 0xee, sizeof report);
	memcpy(&untouched, &report, sizeof report);
	rig_open(&r, NULL, NULL);
	IS(wq_pool_resize(NULL, 1), WQ_EINVAL);
	IS(wq_pool_resize(r.p, 0), WQ_EINVAL);
	IS(wq_pool_resize(r.p, WQ_WORKERS_MAX + 1), WQ_EINVAL);
	IS(wq_pool_pause(NULL), WQ_EINVAL);
	IS(wq_pool_resume(NULL), WQ_EINVAL);
	IS(wq_pool_stop_until(NULL, 0), WQ_EINVAL);
	IS(wq_pool_stop_until(r.p, -1), WQ_EINVAL);
	IS(wq_pool_stop_for(NULL, 0), WQ_EINVAL);
	IS(wq_pool_drain_until(NULL, 0, NULL, NULL), WQ_EINVAL);
	IS(wq_pool_drain_until(r.p, -1, NULL, NULL), WQ_EINVAL);
	IS(wq_pool_drain_until(r.p, 0, &o, NULL), WQ_EINVAL);
	IS(wq_pool_drain_for(NULL, 0, NULL, NULL), WQ_EINVAL);
	IS(wq_pool_drain_for(NULL, WQ_SECOND, NULL, &report), WQ_EINVAL);
	assert_memory_equal(&report, &untouched, sizeof report);
	IS(wq_pool_free(NULL), WQ_OK);
	IS(wq_pool_count(NULL, &c), WQ_EINVAL);
	IS(wq_pool_count(r.p, NULL), WQ_EINVAL);
	rig_add(&r, "done", WQ_QUEUED); /* nothing has changed */
	rig_idle(&r);
	COUNTS_ARE(r.p, .done = 1);
	IS(counts_of(r.p).workers, 1);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(threads_have_names),
	    cmocka_unit_test(threads_are_like_their_makers),
	    cmocka_unit_test(threads_have_the_stack_that_was_asked_for),
	    cmocka_unit_test(hooks_are_called_first_and_last),
	    cmocka_unit_test(a_watching_thread_only_with_a_limit),
	    cmocka_unit_test(there_may_be_no_thread),
	    cmocka_unit_test(resize_without_threads),
	    cmocka_unit_test(each_allocation_of_a_start_fails),
	    cmocka_unit_test(resize_without_memory),
	    cmocka_unit_test(a_clock_that_refuses_to_be_watched),
	    cmocka_unit_test(bad_options),
	    cmocka_unit_test(bad_arguments),
	};

	return cmocka_run_group_tests_name("pool_threads", tests, NULL, NULL);
}
