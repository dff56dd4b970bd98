/*
 * A controller: whatever happens to an object, its name is added, and a worker makes the object
 * what it should be. What fails is tried again, later and later; what is fine is looked at again
 * after a while. SIGTERM ends it once the work in hand is finished.
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
static int64_t reconcile(void *ctx, const wq_item *it)
{
	const char *name = it->key;
	int failed = strcmp(name, "db") == 0 && it->attempts < 3; /* stands for real work */

	(void)ctx;
	printf("%s: attempt %u %s\n", name, it->attempts, failed ? "failed" : "done");
	if (failed)
		return WQ_RETRY; /* in 5 ms, then 10, 20 ...; all keys together 10 a second */
	if (atomic_fetch_sub(&unfinished, 1) == 1)
		kill(getpid(), SIGTERM); /* an example has to end; a controller would go on */
	return 10 * WQ_MINUTE;           /* forget the failures, and look again after that time */
}

int main(void)
{
	wq_pool_options options = {.workers = 2, .handler = reconcile};
	wq_report report;
	sigset_t stop;
	wq_pool *pool;
	wq *q;
	int sig, rc;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL); /* before there are threads: sigwait() takes it */
	if (wq_new(&q, NULL) < 0)
		return 1;
	wq_add_str(q, "web"); /* events, which may come from any thread, at any time */
	wq_add_str(q, "db");
	wq_add_str(q, "web"); /* in line already: merged */
	wq_add_str(q, "cache");
	if (wq_pool_start(&pool, q, &options) < 0)
		return 1;
	sigwait(&stop, &sig);
	rc = wq_pool_drain_for(pool, 10 * WQ_SECOND, &report);
	printf("stopped: %s, %d left\n", wq_strerror(rc), (int)(report.queued + report.left));
	wq_pool_free(pool);
	return wq_free(q) != 0 || rc != WQ_OK;
}
