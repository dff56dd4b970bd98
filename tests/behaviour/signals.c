/*
 * What a process inherits that a handler, a piece or a timer's callback starts: the program's own
 * signal mask and timer slack, whatever the library's threads do for themselves.
 */
#include "../support/support.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wq/parallel.h>
#include <wq/pool.h>
#include <wq/timer.h>

extern char **environ;

struct child {
	unsigned long long blocked, ignored;
	long slack_ns;
};

/* By posix_spawn, for which no hook of fork runs. */
static struct child spawn(void)
{
	/* No shell: some clear their mask when they start. */
	static char cat[] = "cat", status_of[] = "/proc/self/status",
		    slack_of[] = "/proc/self/timerslack_ns";
	char *argv[] = {cat, status_of, slack_of, NULL};
	posix_spawn_file_actions_t actions;
	struct child c = {.slack_ns = -1};
	char line[256];
	int ends[2], status;
	pid_t pid;
	FILE *f;

	assert_int_equal(pipe(ends), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	assert_int_equal(posix_spawnp(&pid, cat, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, "SigBlk:", 7) == 0)
			c.blocked = strtoull(line + 7, NULL, 16);
		else if (strncmp(line, "SigIgn:", 7) == 0)
			c.ignored = strtoull(line + 7, NULL, 16);
		else if (line[0] >= '0' && line[0] <= '9')
			c.slack_ns = strtol(line, NULL, 10);
	}
	fclose(f);
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(status, 0);
	return c;
}

static unsigned long long bit(int sig)
{
	return 1ULL << (sig - 1);
}

static struct child seen;

static wq_verdict spawn_one(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	seen = spawn();
	return WQ_DONE;
}

/* The pool has slept until a due time before: that is when it asks for exact timers. */
static struct child of_pool(wq_pool_options o)
{
	wq_queue *q;
	wq_pool *p;

	seen = (struct child){0};
	o.handler = spawn_one;
	assert_int_equal(wq_new(&q, NULL), WQ_OK);
	assert_int_equal(wq_pool_start(&p, q, &o), WQ_OK);
	assert_int_equal(wq_add_after(q, "a", 1, 20 * WQ_MILLISECOND), WQ_DELAYED);
	IS(wq_drain_for(q, 20 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL),
	   WQ_OK);
	assert_int_equal(wq_pool_free(p), WQ_OK);
	assert_int_equal(wq_free(q), 0);
	return seen;
}

static void a_handlers_child_is_like_the_programs(void **state)
{
	struct child mine = spawn(), its = of_pool((wq_pool_options){.workers = 1});

	(void)state;
	assert_true(its.blocked == mine.blocked);
	assert_true(its.ignored == mine.ignored);
	assert_int_equal(its.slack_ns, mine.slack_ns);
	assert_true(its.slack_ns > 1);
}

/* A program that waits for SIGTERM itself blocks it before it starts threads; they do, too. */
static void threads_block_what_their_creator_blocks(void **state)
{
	sigset_t usr2, before;
	struct child its;

	(void)state;
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, &before);
	its = of_pool((wq_pool_options){.workers = 1});
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_true(its.blocked & bit(SIGUSR2));
	assert_false(its.blocked & bit(SIGTERM));
}

static void block_signals_blocks_all_but_faults(void **state)
{
	struct child its = of_pool((wq_pool_options){.workers = 1, .block_signals = 1});
	sigset_t now, theirs;

	(void)state;
	sigemptyset(&theirs);
	for (int sig = 1; sig <= 64; sig++)
		if (its.blocked & bit(sig))
			sigaddset(&theirs, sig);
	mask_is_the_library_s(&theirs);
	/* The caller's own mask is as it was. */
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	assert_false(sigismember(&now, SIGTERM));
}

static void what_block_signals_may_be(void **state)
{
	wq_pool_options o = {.workers = 1, .handler = spawn_one, .block_signals = 2};
	wq_queue *q;
	wq_pool *p;

	(void)state;
	assert_int_equal(wq_new(&q, NULL), WQ_OK);
	assert_int_equal(wq_pool_start(&p, q, &o), WQ_EINVAL);
	o = (wq_pool_options){.workers = 1, .handler = spawn_one, .reserved0 = 1};
	assert_int_equal(wq_pool_start(&p, q, &o), WQ_EINVAL);
	assert_int_equal(wq_free(q), 0);
}

static sigset_t masks[2];

static void note_mask(void *ctx, uint32_t worker)
{
	(void)ctx;
	pthread_sigmask(SIG_BLOCK, NULL, &masks[worker]);
}

/* Whoever resizes the pool: its workers are all alike. */
static void workers_that_come_later_block_the_same(void **state)
{
	wq_pool_options o = {.workers = 1, .handler = spawn_one, .on_start = note_mask};
	sigset_t usr2, before;
	wq_queue *q;
	wq_pool *p;

	(void)state;
	assert_int_equal(wq_new(&q, NULL), WQ_OK);
	assert_int_equal(wq_pool_start(&p, q, &o), WQ_OK);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, &before);
	assert_int_equal(wq_pool_resize(p, 2), WQ_OK);
	assert_int_equal(wq_pool_free(p), WQ_OK);
	/* It is the caller's still. */
	pthread_sigmask(SIG_SETMASK, &before, &usr2);
	assert_true(sigismember(&usr2, SIGUSR2));
	assert_false(sigismember(&masks[0], SIGUSR2));
	assert_false(sigismember(&masks[1], SIGUSR2));
	assert_int_equal(wq_free(q), 0);
}

static _Atomic int caught[NSIG];

static void catch (int sig)
{
	caught[sig]++;
}

/* What the caller blocks and is pending stays so, though the pool's threads do not block it. */
static void a_resize_delivers_nothing_to_its_caller(void **state)
{
	struct sigaction on = {.sa_handler = catch}, was;
	wq_pool_options o = {.workers = 1, .handler = spawn_one};
	sigset_t usr2, before;
	wq_queue *q;
	wq_pool *p;

	(void)state;
	caught[SIGUSR2] = 0;
	sigaction(SIGUSR2, &on, &was);
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_pool_start(&p, q, &o), WQ_OK);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, &before);
	pthread_kill(pthread_self(), SIGUSR2);
	IS(wq_pool_resize(p, 3), WQ_OK);
	assert_int_equal(caught[SIGUSR2], 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(caught[SIGUSR2], 1);
	caught[SIGUSR2] = 0;
	IS(wq_pool_free(p), WQ_OK);
	IS(wq_free(q), 0);
	sigaction(SIGUSR2, &was, NULL);
}

static wq_verdict take_a_signal(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	/* To this thread alone, in the midst of a handler. */
	pthread_kill(pthread_self(), SIGUSR1);
	return WQ_DONE;
}

static pthread_t worker;

static void note_worker(void *ctx, uint32_t number)
{
	(void)ctx;
	(void)number;
	worker = pthread_self();
}

/* A signal that comes to a worker, in its handler or asleep, is taken, and the worker goes on. */
static void a_worker_takes_signals(void **state)
{
	struct sigaction on = {.sa_handler = catch}, before[2];
	wq_pool_options o = {.workers = 1, .handler = take_a_signal, .on_start = note_worker};
	wq_queue *q;
	wq_pool *p;

	(void)state;
	sigaction(SIGUSR1, &on, &before[0]);
	sigaction(SIGUSR2, &on, &before[1]);
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_pool_start(&p, q, &o), WQ_OK);
	IS(wq_wait_key_for(q, "a", 1, 10 * WQ_SECOND), WQ_OK);
	for (int i = 1; i <= 20; i++) {
		IS(caught[SIGUSR1], i);
		IS(wq_add_after(q, "a", 1, WQ_MILLISECOND), WQ_DELAYED);
		assert_int_equal(pthread_kill(worker, SIGUSR2), 0);
		while (wq_state(q, "a", 1) != WQ_ENOTFOUND && wq_state(q, "a", 1) != 0)
			sched_yield();
	}
	IS(wq_pool_free(p), WQ_OK);
	assert_true(caught[SIGUSR2] > 0);
	IS(wq_free(q), 0);
	sigaction(SIGUSR1, &before[0], NULL);
	sigaction(SIGUSR2, &before[1], NULL);
}

static int spawn_piece(void *ctx, size_t i)
{
	((struct child *)ctx)[i] = spawn();
	return 0;
}

static void a_pieces_child_is_like_the_programs(void **state)
{
	struct child mine = spawn(), its[4];

	(void)state;
	assert_int_equal(wq_parallel(4, spawn_piece, its, &(wq_parallel_options){.workers = 2}), 4);
	for (int i = 0; i < 4; i++) {
		assert_true(its[i].blocked == mine.blocked);
		assert_int_equal(its[i].slack_ns, mine.slack_ns);
	}
}

static _Atomic bool rung;

static void spawn_by_timer(void *ctx, const wq_timer_event *event)
{
	(void)ctx;
	(void)event;
	seen = spawn();
	rung = true;
}

static void a_timers_child_is_like_the_programs(void **state)
{
	struct child mine = spawn();
	wq_timer *t;

	(void)state;
	assert_int_equal(wq_timer_new(&t, NULL), WQ_OK);
	assert_int_equal(wq_timer_after(t, 10 * WQ_MILLISECOND, spawn_by_timer, NULL, NULL), WQ_OK);
	while (!rung)
		sched_yield();
	assert_int_equal(wq_timer_free(t), 0);
	assert_true(seen.blocked == mine.blocked);
	assert_int_equal(seen.slack_ns, mine.slack_ns);
}

static wq_verdict run_sleep(void *ctx, const wq_item *it)
{
	static char name[] = "sleep", span[] = "60";
	char *argv[] = {name, span, NULL};
	pid_t pid;
	int *status = ctx;

	(void)it;
	if (posix_spawnp(&pid, "sleep", NULL, NULL, argv, environ) != 0)
		return WQ_DONE;
	kill(pid, SIGTERM);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return WQ_DONE;
}

/* What all this is about. */
static void sigterm_ends_what_a_handler_has_started(void **state)
{
	int status = -1;
	wq_queue *q;
	wq_pool *p;

	(void)state;
	assert_int_equal(wq_new(&q, NULL), WQ_OK);
	assert_int_equal(wq_add_str(q, "a"), WQ_QUEUED);
	assert_int_equal(
	    wq_pool_start(&p, q,
	                  &(wq_pool_options){.workers = 1, .handler = run_sleep, .ctx = &status}),
	    WQ_OK);
	assert_int_equal(wq_drain_for(q, 20 * WQ_SECOND, NULL, NULL), WQ_OK);
	assert_int_equal(wq_pool_free(p), WQ_OK);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(wq_free(q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_handlers_child_is_like_the_programs),
	    cmocka_unit_test(threads_block_what_their_creator_blocks),
	    cmocka_unit_test(block_signals_blocks_all_but_faults),
	    cmocka_unit_test(what_block_signals_may_be),
	    cmocka_unit_test(workers_that_come_later_block_the_same),
	    cmocka_unit_test(a_resize_delivers_nothing_to_its_caller),
	    cmocka_unit_test(a_worker_takes_signals),
	    cmocka_unit_test(a_pieces_child_is_like_the_programs),
	    cmocka_unit_test(a_timers_child_is_like_the_programs),
	    cmocka_unit_test(sigterm_ends_what_a_handler_has_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
