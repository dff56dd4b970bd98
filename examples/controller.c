/*
 * A controller: events add the name of an object, and a worker brings the object to its desired
 * state. Failed keys back off exponentially and die after five attempts; all others are checked
 * again every ten minutes. SIGTERM drains the queue; keys that are still failing then are listed,
 * and the exit status is 1.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

static atomic_int unfinished = 3;

/* A key is with one worker at a time, so its object needs no lock. */
static wq_verdict reconcile(void *ctx, const wq_item *it)
{
	const char *name = it->key;
	int failed = strcmp(name, "db") == 0 && it->attempts < 3; /* stands for real work */

	(void)ctx;
	printf("%s: attempt %u %s\n", name, it->attempts, failed ? "failed" : "done");
	if (failed)
		return WQ_RETRY; /* in 5 ms, then 10, 20 ... */
	if (atomic_fetch_sub(&unfinished, 1) == 1)
		kill(getpid(), SIGTERM);       /* an example has to end; a controller would go on */
	return wq_again_after(10 * WQ_MINUTE); /* forget the failures, and check again then */
}

static void died(void *ctx, const wq_item *it)
{
	(void)ctx;
	printf("%s: dead after %u attempts\n", (const char *)it->key, it->attempts);
}

/* A key that the drain did not finish. Those to be checked again later are no loss. */
static int unfinished_key(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	if ((info->state & (WQ_STATE_LEFT | WQ_STATE_RETRYING)) != WQ_STATE_LEFT)
		printf("%s: unfinished after %u failures\n", (const char *)info->key,
		       info->failures);
	return 0;
}

int main(void)
{
	wq_options options = {.max_attempts = 5, .dead_letter = died};
	wq_pool_options workers = {.workers = 2, .handler = reconcile};
	wq_drain_options drain = {.left = unfinished_key};
	wq_report report;
	sigset_t stop;
	wq_pool *pool;
	wq_queue *q;
	int sig, rc;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL); /* before there are threads: sigwait() takes it */
	if (wq_new(&q, &options) < 0) {
		fprintf(stderr, "wq_new: %s\n", wq_last_error());
		return 1;
	}
	wq_add_str(q, "web"); /* events, which may come from any thread, at any time */
	wq_add_str(q, "db");
	wq_add_str(q, "web"); /* queued already: merges */
	wq_add_str(q, "cache");
	if (wq_pool_start(&pool, q, &workers) < 0)
		return 1;
	sigwait(&stop, &sig);
	rc = wq_pool_drain_for(pool, 10 * WQ_SECOND, &drain, &report);
	printf("stopped: %d unfinished, %d failing, %d to be checked later\n",
	       (int)(report.queued + report.running), (int)report.retries, (int)report.delayed);
	wq_pool_free(pool);
	if (wq_free(q) < 0 || rc < 0)
		return 1;
	return report.queued + report.running + report.retries > 0;
}
