/*
 * [FORK] What was made before a fork is of no use in the child, and says so: no call there waits,
 * crashes, or takes anything from the parent.
 */
#include "../support/support.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq/delayqueue.h>
#include <wq/parallel.h>
#include <wq/pool.h>
#include <wq/timer.h>

enum { PATIENCE_S = 20 };

/* For the thread sanitizer, which does not like threads in children. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* In the child: what is wrong is its exit code, the line. */
#define CHILD_IS(call, expected)                                                                   \
	do {                                                                                       \
		int64_t answer = (call);                                                           \
		if (answer != (expected)) {                                                        \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__,       \
			        #call, (long long)answer, (long long)(expected));                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* 0: this is the child, which is ended if it hangs. */
static pid_t begin(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		alarm(PATIENCE_S);
	return pid;
}

/* An end by a signal: no core, and no word of a test's handler. */
static void die_quietly(void)
{
	struct rlimit none = {0};

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGABRT, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
}

static void end_is(pid_t pid, int code)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child was ended by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

static int see(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	(void)info;
	return 0;
}

static void all_calls(wq_queue *q, wq_item *it)
{
	wq_item items[2] = {*it, *it};
	wq_key keys[1] = {{.key = "k", .len = 1}};
	wq_snapshot snapshot;
	int outcomes[2];

	CHILD_IS(wq_add(q, "k", 1), WQ_EFORKED);
	CHILD_IS(wq_add_str(q, "k"), WQ_EFORKED);
	CHILD_IS(wq_add_many(q, keys, 1, outcomes), WQ_EFORKED);
	CHILD_IS(wq_add_with(q, "k", 1, &(wq_add_options){.after_ns = 1}), WQ_EFORKED);
	CHILD_IS(wq_add_after(q, "k", 1, 1), WQ_EFORKED);
	CHILD_IS(wq_add_at(q, "k", 1, 1), WQ_EFORKED);
	CHILD_IS(wq_add_limited(q, "k", 1), WQ_EFORKED);
	CHILD_IS(wq_reschedule(q, "k", 1, 1), WQ_EFORKED);
	CHILD_IS(wq_cancel(q, "k", 1, NULL), WQ_EFORKED);
	CHILD_IS(wq_cancel_for(q, "held", 4, WQ_SECOND, NULL), WQ_EFORKED);
	CHILD_IS(wq_next_deadline(q), WQ_EFORKED);
	CHILD_IS(wq_get(q, it), WQ_EFORKED);
	CHILD_IS(wq_get_for(q, it, WQ_SECOND), WQ_EFORKED);
	CHILD_IS(wq_try_get(q, it), WQ_EFORKED);
	CHILD_IS(wq_get_many_for(q, items, 2, WQ_SECOND), WQ_EFORKED);
	CHILD_IS(wq_interrupt(q, 1), WQ_EFORKED);
	CHILD_IS(wq_done(q, it), WQ_EFORKED);
	CHILD_IS(wq_done_many(q, items, 1, outcomes), WQ_EFORKED);
	CHILD_IS(wq_next(q, it), WQ_EFORKED);
	CHILD_IS(wq_next_many_for(q, items, 1, 2, WQ_SECOND), WQ_EFORKED);
	CHILD_IS(wq_requeue(q, it, WQ_TAIL), WQ_EFORKED);
	CHILD_IS(wq_retry(q, it), WQ_EFORKED);
	CHILD_IS(wq_settle(q, it, WQ_FATAL), WQ_EFORKED);
	CHILD_IS(wq_settle_next_for(q, it, WQ_DONE, WQ_SECOND, NULL), WQ_EFORKED);
	CHILD_IS(wq_extend(q, it, 1), WQ_EFORKED);
	CHILD_IS(wq_lost(q, it), WQ_EFORKED);
	CHILD_IS(wq_forget(q, "k", 1), WQ_EFORKED);
	CHILD_IS(wq_forget_item(q, it), WQ_EFORKED);
	CHILD_IS(wq_failures(q, "k", 1), WQ_EFORKED);
	CHILD_IS(wq_failures_item(q, it), WQ_EFORKED);
	CHILD_IS(wq_set_failures(q, "k", 1, 1), WQ_EFORKED);
	CHILD_IS(wq_wait_idle_for(q, WQ_NEVER), WQ_EFORKED);
	CHILD_IS(wq_wait_key_for(q, "held", 4, WQ_NEVER), WQ_EFORKED);
	CHILD_IS(wq_shutdown(q), WQ_EFORKED);
	CHILD_IS(wq_shutting_down(q), WQ_EFORKED);
	CHILD_IS(wq_drain_for(q, WQ_NEVER, NULL, NULL), WQ_EFORKED);
	CHILD_IS(wq_len(q), WQ_EFORKED);
	CHILD_IS(wq_state(q, "k", 1), WQ_EFORKED);
	CHILD_IS(wq_snapshot_take(q, &snapshot), WQ_EFORKED);
	CHILD_IS(wq_fd(q), WQ_EFORKED);
	CHILD_IS(wq_clock_changed(q), WQ_EFORKED);
	CHILD_IS(wq_now(q), WQ_EFORKED);
}

static void every_call_on_the_queue_says_so(void **state)
{
	wq_queue *q;
	wq_item it;
	pid_t pid;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_add_str(q, "held"), WQ_QUEUED);
	get_is(q, &it, "held");
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	pid = begin();
	if (pid == 0) {
		all_calls(q, &it);
		CHILD_IS(wq_walk(q, see, NULL), WQ_EFORKED);
		CHILD_IS(strcmp(wq_status_name(WQ_EFORKED), "WQ_EFORKED"), 0);
		/* One is held, but by nobody who is here. */
		CHILD_IS(wq_free(q), WQ_OK);
		_exit(0);
	}
	end_is(pid, 0);
	check_whole(q, 1, 1);
	IS(wq_done(q, &it), WQ_OK);
	take_is(q, "k", WQ_OK);
	IS(wq_free(q), 0);
}

/* ---- beside threads that are busy ----------------------------------------- */

static wq_verdict work(void *ctx, const wq_item *it)
{
	(void)ctx;
	return it->attempts % 3 == 0 ? WQ_DONE : wq_retry_after(1);
}

static _Atomic bool enough;

static void *keep_adding(void *q)
{
	for (unsigned n = 0; !enough; n++) {
		unsigned key = n % 512;

		wq_add(q, &key, sizeof key);
		if (n % 16 == 0)
			wq_add_after(q, &n, sizeof n, WQ_MICROSECOND);
		if (n % 1024 == 0)
			wq_len(q);
	}
	return NULL;
}

/* Whatever lock one of them holds at that moment, nothing waits for it. */
static void no_call_waits_for_threads_that_are_not_there(void **state)
{
	wq_pool_options o = {.workers = 3, .handler = work, .slow_ns = WQ_MILLISECOND};
	pthread_t adders[2];
	wq_queue *q;
	wq_pool *p;

	(void)state;
	enough = false;
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_pool_start(&p, q, &o), WQ_OK);
	for (size_t i = 0; i < LENGTH(adders); i++)
		assert_int_equal(pthread_create(&adders[i], NULL, keep_adding, q), 0);
	for (int i = 0; i < 200; i++) {
		pid_t pid = begin();

		if (pid == 0) {
			wq_pool_counts counts;
			wq_item it;

			CHILD_IS(wq_add_str(q, "k"), WQ_EFORKED);
			CHILD_IS(wq_get(q, &it), WQ_EFORKED);
			CHILD_IS(wq_drain_for(q, WQ_NEVER, NULL, NULL), WQ_EFORKED);
			CHILD_IS(wq_pool_drain_for(p, WQ_NEVER, NULL, NULL), WQ_EFORKED);
			CHILD_IS(wq_pool_stop_for(p, WQ_NEVER), WQ_EFORKED);
			CHILD_IS(wq_pool_resize(p, 5), WQ_EFORKED);
			CHILD_IS(wq_pool_pause(p), WQ_EFORKED);
			CHILD_IS(wq_pool_resume(p), WQ_EFORKED);
			CHILD_IS(wq_pool_count(p, &counts), WQ_EFORKED);
			CHILD_IS(wq_pool_free(p), WQ_OK);
			CHILD_IS(wq_free(q), WQ_OK);
			_exit(0);
		}
		end_is(pid, 0);
	}
	enough = true;
	for (size_t i = 0; i < LENGTH(adders); i++)
		pthread_join(adders[i], NULL);
	IS(wq_drain_for(q, 60 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL),
	   WQ_OK);
	IS(wq_pool_free(p), WQ_OK);
	IS(wq_free(q), 0);
}

static void a_child_starts_no_pool_on_it(void **state)
{
	wq_queue *q;
	wq_pool *p;
	pid_t pid;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	pid = begin();
	if (pid == 0) {
		CHILD_IS(wq_pool_start(&p, q, &(wq_pool_options){.workers = 1, .handler = work}),
		         WQ_EFORKED);
		_exit(0);
	}
	end_is(pid, 0);
	IS(wq_free(q), 0);
}

/* ---- the descriptor ------------------------------------------------------- */

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* A child that gets and frees takes no event from the parent's loop. */
static void the_parents_descriptor_is_left_alone(void **state)
{
	wq_queue *q;
	wq_item it;
	pid_t pid;
	int fd;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	fd = wq_fd(q);
	assert_true(fd >= 0);
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	assert_true(is_readable(fd));
	pid = begin();
	if (pid == 0) {
		CHILD_IS(wq_try_get(q, &it), WQ_EFORKED);
		CHILD_IS(wq_try_get(q, &it), WQ_EFORKED);
		CHILD_IS(is_readable(fd), true);
		CHILD_IS(wq_free(q), WQ_OK);
		/* It is closed here. */
		CHILD_IS(close(fd), -1);
		_exit(0);
	}
	end_is(pid, 0);
	assert_true(is_readable(fd));
	take_is(q, "k", WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	assert_false(is_readable(fd));
	IS(wq_add_str(q, "l"), WQ_QUEUED);
	assert_true(is_readable(fd));
	IS(wq_free(q), 1);
}

/* ---- timers and delay queues ---------------------------------------------- */

static void ring(void *ctx, const wq_timer_event *event)
{
	(void)event;
	++*(_Atomic int *)ctx;
}

static void timers_and_delay_queues_say_so_too(void **state)
{
	_Atomic int rings = 0;
	wq_delayqueue *dq;
	wq_timer_id id;
	wq_timer *t;
	void *value;
	pid_t pid;

	(void)state;
	IS(wq_timer_new(&t, NULL), WQ_OK);
	IS(wq_timer_after(t, WQ_SECOND * 1000, ring, &rings, &id), WQ_OK);
	IS(wq_delayqueue_new(&dq, NULL), WQ_OK);
	IS(wq_delayqueue_offer(dq, &rings, 0), WQ_OK);
	pid = begin();
	if (pid == 0) {
		CHILD_IS(wq_timer_after(t, 1, ring, &rings, NULL), WQ_EFORKED);
		CHILD_IS(wq_timer_add(t, 1, ring, &rings, NULL), WQ_EFORKED);
		CHILD_IS(wq_timer_every(t, 1, ring, &rings, NULL), WQ_EFORKED);
		CHILD_IS(wq_timer_cancel(t, id), WQ_EFORKED);
		CHILD_IS(wq_timer_reschedule(t, id, 1), WQ_EFORKED);
		CHILD_IS(wq_timer_size(t), WQ_EFORKED);
		CHILD_IS(wq_timer_next_deadline(t), WQ_EFORKED);
		CHILD_IS(wq_timer_clock_changed(t), WQ_EFORKED);
		CHILD_IS(wq_timer_now(t), WQ_EFORKED);
		CHILD_IS(wq_timer_stop(t), WQ_EFORKED);
		CHILD_IS(wq_timer_free(t), WQ_OK);
		CHILD_IS(wq_delayqueue_offer(dq, &rings, 0), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_take(dq, &value), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_poll(dq, &value), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_size(dq), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_next(dq), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_clock_changed(dq), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_now(dq), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_close(dq), WQ_EFORKED);
		CHILD_IS(wq_delayqueue_free(dq), WQ_OK);
		_exit(0);
	}
	end_is(pid, 0);
	IS(wq_timer_free(t), 1);
	IS(wq_delayqueue_poll(dq, &value), WQ_OK);
	IS(wq_delayqueue_free(dq), 0);
}

/* ---- clocks ---------------------------------------------------------------- */

static _Atomic bool inside, leave_it;

/* A hook of an order: the queue's lock is held meanwhile. */
static void push_slowly(void *ctx, wq_node *node, enum wq_where where)
{
	(void)where;
	*(wq_node **)ctx = node;
	inside = true;
	while (!leave_it)
		sched_yield();
}

static wq_node *pop_it(void *ctx)
{
	return *(wq_node **)ctx;
}

static void *add_one(void *q)
{
	wq_add_str(q, "k");
	return NULL;
}

/* A manual clock may be used in the child: it tells nobody there who is not there. */
static void a_manual_clock_moves_in_the_child(void **state)
{
	wq_node *node = NULL;
	wq_order order = {.push = push_slowly, .pop = pop_it, .ctx = &node};
	wq_manual_clock *mc;
	wq_clock clock;
	wq_queue *q;
	wq_pool *p;
	pthread_t adder;
	pid_t pid;

	(void)state;
	inside = leave_it = false;
	IS(wq_manual_clock_new(&mc, 0), WQ_OK);
	clock = wq_manual_clock_clock(mc);
	IS(wq_new(&q, &(wq_options){.clock = &clock, .order = &order}), WQ_OK);
	IS(wq_pool_start(&p, q, &(wq_pool_options){.workers = 1, .paused = 1, .handler = work}),
	   WQ_OK);
	assert_int_equal(pthread_create(&adder, NULL, add_one, q), 0);
	while (!inside)
		sched_yield();
	pid = begin();
	if (pid == 0) {
		wq_queue *own;
		wq_item it;

		CHILD_IS(wq_new(&own, &(wq_options){.clock = &clock}), WQ_OK);
		CHILD_IS(wq_add_after(own, "k", 1, 5), WQ_DELAYED);
		CHILD_IS(wq_manual_clock_advance(mc, 5), WQ_OK);
		CHILD_IS(wq_try_get(own, &it), WQ_OK);
		CHILD_IS(wq_done(own, &it), WQ_OK);
		CHILD_IS(wq_free(own), 0);
		_exit(0);
	}
	leave_it = true;
	end_is(pid, 0);
	pthread_join(adder, NULL);
	IS(wq_pool_free(p), WQ_OK);
	IS(wq_free(q), 1);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

/* ---- registries ------------------------------------------------------------ */

struct written {
	char text[1 << 16];
	size_t n;
};

static int write_to(void *ctx, const char *text, size_t n)
{
	struct written *w = ctx;

	memcpy(w->text + w->n, text, n);
	w->n += n;
	w->text[w->n] = '\0';
	return 0;
}

/* Metrics are those of the child's own queues: of the others nothing is known there. */
static void a_registry_shows_the_childs_own_queues(void **state)
{
	wq_registry *r;
	wq_queue *q, *own;
	pid_t pid;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_new(&q, &(wq_options){.name = "parents", .registry = r}), WQ_OK);
	pid = begin();
	if (pid == 0) {
		static struct written w;

		CHILD_IS(wq_new(&own, &(wq_options){.name = "own", .registry = r}), WQ_OK);
		CHILD_IS(wq_metrics_write(r, WQ_PROMETHEUS, write_to, &w), WQ_OK);
		CHILD_IS(strstr(w.text, "workqueue_depth{name=\"own\"} 0") != NULL, true);
		CHILD_IS(strstr(w.text, "parents") == NULL, true);
		CHILD_IS(wq_free(own), 0);
		_exit(0);
	}
	end_is(pid, 0);
	IS(wq_free(q), 0);
	IS(wq_registry_free(r), WQ_OK);
}

/* ---- the child's own ------------------------------------------------------ */

static wq_verdict count(void *ctx, const wq_item *it)
{
	(void)it;
	++*(_Atomic int *)ctx;
	return WQ_DONE;
}

static void use_a_new_one(void)
{
	_Atomic int done = 0;
	wq_pool_options o = {.workers = 2, .handler = count, .ctx = &done};
	char key[16];
	wq_queue *q;
	wq_pool *p;

	CHILD_IS(wq_new(&q, NULL), WQ_OK);
	CHILD_IS(wq_pool_start(&p, q, &o), WQ_OK);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "%d", i);
		CHILD_IS(wq_add_str(q, key), WQ_QUEUED);
	}
	CHILD_IS(wq_drain_for(q, PATIENCE_S * WQ_SECOND, NULL, NULL), WQ_OK);
	CHILD_IS(done, 100);
	CHILD_IS(wq_pool_free(p), WQ_OK);
	CHILD_IS(wq_free(q), 0);
}

static void what_the_child_makes_works(void **state)
{
	wq_queue *q, *freed, *its;
	pid_t pid;

	(void)state;
	IS(wq_new(&freed, NULL), WQ_OK);
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_free(freed), 0);
	pid = begin();
	if (pid == 0) {
		use_a_new_one();
		CHILD_IS(wq_new(&its, NULL), WQ_OK);

		pid_t grandchild = begin();
		int status = -1;

		if (grandchild == 0) {
			CHILD_IS(wq_add_str(q, "k"), WQ_EFORKED);
			CHILD_IS(wq_add_str(its, "k"), WQ_EFORKED);
			use_a_new_one();
			_exit(0);
		}
		waitpid(grandchild, &status, 0);
		CHILD_IS(status, 0);
		CHILD_IS(wq_add_str(q, "k"), WQ_EFORKED);
		CHILD_IS(wq_add_str(its, "k"), WQ_QUEUED);
		CHILD_IS(wq_free(its), 1);
		_exit(0);
	}
	end_is(pid, 0);
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	IS(wq_free(q), 1);
}

/* ---- from inside ---------------------------------------------------------- */

struct from_inside {
	wq_queue *q;
	wq_pool *pool;
	bool comes_back; /* the child returns from where it was forked */
	_Atomic int status;
};

static void await(struct from_inside *f, pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	f->status = status;
}

static void ended_by(int status, int sig)
{
	if (sig == 0)
		assert_int_equal(status, 0);
	else
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

static wq_verdict fork_in_handler(void *ctx, const wq_item *it)
{
	struct from_inside *f = ctx;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PATIENCE_S);
		die_quietly();
		if (f->comes_back)
			return WQ_DONE;
		/* The key is the child's to read, and nothing else. */
		CHILD_IS(memcmp(it->key, "key", 4), 0);
		CHILD_IS(wq_add_str(f->q, "k"), WQ_EFORKED);
		CHILD_IS(wq_done(f->q, it), WQ_EFORKED);
		/* Not WQ_EDEADLK, which would be said in the parent. */
		CHILD_IS(wq_wait_idle_for(f->q, WQ_NEVER), WQ_EFORKED);
		CHILD_IS(wq_drain_for(f->q, WQ_NEVER, NULL, NULL), WQ_EFORKED);
		CHILD_IS(wq_pool_free(f->pool), WQ_OK);
		use_a_new_one();
		_exit(0);
	}
	await(f, pid);
	return WQ_DONE;
}

static void handlers_may_fork(void **state)
{
	(void)state;
	for (int back = 0; back < 2; back++) {
		struct from_inside f = {.comes_back = back, .status = -1};
		wq_pool_options o = {.workers = 2,
		                     .paused = 1,
		                     .handler = fork_in_handler,
		                     .ctx = &f};

		IS(wq_new(&f.q, NULL), WQ_OK);
		IS(wq_add_str(f.q, "key"), WQ_QUEUED);
		IS(wq_pool_start(&f.pool, f.q, &o), WQ_OK);
		IS(wq_drain_for(f.q, 60 * WQ_SECOND, NULL, NULL), WQ_OK);
		/* One that comes back is stopped. */
		ended_by(f.status, back ? SIGABRT : 0);
		IS(wq_pool_free(f.pool), WQ_OK);
		IS(wq_free(f.q), 0);
	}
}

/* The thread that watches handlers takes a lock of each worker's, and may hold it just then. */
static void children_of_watched_handlers_are_stopped_too(void **state)
{
	struct from_inside f = {.comes_back = true};
	wq_pool_options o = {.workers = 1, .handler = fork_in_handler, .ctx = &f, .slow_ns = 1};

	(void)state;
	IS(wq_new(&f.q, NULL), WQ_OK);
	IS(wq_pool_start(&f.pool, f.q, &o), WQ_OK);
	for (int i = 0; i < 300; i++) {
		f.status = -1;
		IS(wq_add_str(f.q, "key"), WQ_QUEUED);
		IS(wq_wait_idle_for(f.q, 60 * WQ_SECOND), WQ_OK);
		ended_by(f.status, SIGABRT);
	}
	IS(wq_pool_free(f.pool), WQ_OK);
	IS(wq_free(f.q), 0);
}

static void fork_by_timer(void *ctx, const wq_timer_event *event)
{
	pid_t pid = fork();

	(void)event;
	if (pid == 0) {
		alarm(PATIENCE_S);
		die_quietly();
		return;
	}
	await(ctx, pid);
}

static void callbacks_of_timers_may_fork(void **state)
{
	struct from_inside f = {.status = -1};
	wq_timer *t;

	(void)state;
	IS(wq_timer_new(&t, NULL), WQ_OK);
	IS(wq_timer_after(t, 1, fork_by_timer, &f, NULL), WQ_OK);
	while (f.status == -1)
		sched_yield();
	ended_by(f.status, SIGABRT);
	IS(wq_timer_free(t), 0);
}

static pid_t parent;

static int fork_in_piece(void *ctx, size_t i)
{
	struct from_inside *f = ctx;
	pid_t pid;

	if (i != 0)
		return 0;
	pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_S);
		die_quietly();
	} else {
		await(f, pid);
	}
	return 0;
}

/* A child of the calling thread's comes back to who called the loop. */
static void pieces_may_fork(void **state)
{
	wq_parallel_options o = {.workers = 3};
	struct from_inside f = {.status = -1};
	int64_t rc;

	(void)state;
	parent = getpid();
	rc = wq_parallel(1000, fork_in_piece, &f, &o);
	if (getpid() != parent) {
		CHILD_IS(rc, WQ_EFORKED);
		_exit(0);
	}
	IS(rc, 1000);
	/* Another thread may have taken over that piece. */
	if (f.status != 0)
		ended_by(f.status, SIGABRT);
}

static __attribute__((noinline)) void use_the_stack(void)
{
	char bytes[8192];

	memset(bytes, 0x5a, sizeof bytes);
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

/* It was on the stack, which is used for other things when the child forks, too. */
static void a_loop_that_a_child_has_left(void **state)
{
	wq_parallel_options o = {.workers = 1};
	struct from_inside f = {.status = -1};
	int64_t rc;

	(void)state;
	parent = getpid();
	rc = wq_parallel(1, fork_in_piece, &f, &o);
	if (getpid() != parent) {
		wq_queue *q;
		int status = -1;
		pid_t pid;

		CHILD_IS(rc, WQ_EFORKED);
		use_the_stack();
		CHILD_IS(wq_new(&q, NULL), WQ_OK);
		pid = begin();
		if (pid == 0) {
			CHILD_IS(wq_add_str(q, "k"), WQ_EFORKED);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		CHILD_IS(status, 0);
		_exit(0);
	}
	IS(rc, 1);
	IS(f.status, 0);
}

static int early_status = -1;

/* Before the constructors of the library, which is part of this program. */
static __attribute__((constructor(101))) void use_it_early(void)
{
	wq_queue *q;
	pid_t pid;

	if (wq_new(&q, NULL) != WQ_OK)
		return;
	pid = fork();
	if (pid == 0) {
		alarm(PATIENCE_S);
		_exit(wq_add_str(q, "k") != WQ_EFORKED);
	}
	waitpid(pid, &early_status, 0);
	wq_free(q);
}

static void forks_before_main_are_noticed(void **state)
{
	(void)state;
	IS(early_status, 0);
}

static bool makes_one;

/* The program's own hook, which it has set up before it has used the library. */
static void after_fork(void)
{
	wq_queue *q;

	if (!makes_one)
		return;
	alarm(PATIENCE_S);
	CHILD_IS(wq_new(&q, NULL), WQ_OK);
	CHILD_IS(wq_free(q), 0);
}

static void hooks_of_fork_may_make_queues(void **state)
{
	pid_t pid;

	(void)state;
	makes_one = true;
	pid = begin();
	if (pid == 0)
		_exit(0);
	makes_one = false;
	end_is(pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_call_on_the_queue_says_so),
	    cmocka_unit_test(no_call_waits_for_threads_that_are_not_there),
	    cmocka_unit_test(a_child_starts_no_pool_on_it),
	    cmocka_unit_test(the_parents_descriptor_is_left_alone),
	    cmocka_unit_test(timers_and_delay_queues_say_so_too),
	    cmocka_unit_test(a_manual_clock_moves_in_the_child),
	    cmocka_unit_test(a_registry_shows_the_childs_own_queues),
	    cmocka_unit_test(what_the_child_makes_works),
	    cmocka_unit_test(handlers_may_fork),
	    cmocka_unit_test(children_of_watched_handlers_are_stopped_too),
	    cmocka_unit_test(callbacks_of_timers_may_fork),
	    cmocka_unit_test(pieces_may_fork),
	    cmocka_unit_test(a_loop_that_a_child_has_left),
	    cmocka_unit_test(forks_before_main_are_noticed),
	    cmocka_unit_test(hooks_of_fork_may_make_queues),
	};

	if (pthread_atfork(NULL, NULL, after_fork) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
