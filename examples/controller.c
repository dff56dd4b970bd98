/*
 * A controller: whatever happens to an object, its name is added, and a worker makes the object
 * what it should be. What fails is tried again, later and later; what is fine is looked at
 * again after a while. SIGTERM or Ctrl-C ends it once the work in hand is finished.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

static atomic_int unfinished = 3;

/* Stands for the work, which may fail: that on the database does, twice. */
static int bring_up(const char *name, unsigned attempt)
{
	return strcmp(name, "db") == 0 && attempt < 3 ? -1 : 0;
}

/* A key is with one worker at a time, so its object needs no lock. */
static int64_t reconcile(void *ctx, const wq_item *it)
{
	const char *name = it->key;

	(void)ctx;
	if (bring_up(name, it->attempts) != 0) {
		printf("%s: attempt %u failed\n", name, it->attempts);
		return WQ_RETRY; /* in 5 ms, then 10, 20 ... up to 1000 s */
	}
	printf("%s: fine\n", name);
	if (atomic_fetch_sub(&unfinished, 1) == 1)
		kill(getpid(), SIGTERM); /* an example has to end; a controller would go on */
	return 10 * WQ_MINUTE;           /* forget the failures, and look again after that time */
}

int main(void)
{
	wq_pool_options options = {.workers = 2, .handler = reconcile, .name = "controller"};
	wq_report report;
	wq_pool *pool;
	sigset_t stop;
	int sig, rc;
	wq *q;

	/* Blocked before there are threads: the signals wait until sigwait() takes them. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);

	if (wq_new(&q, NULL) < 0)
		return 1;
	/* Events. They may come from any thread, at any time, as often as they like. */
	wq_add_str(q, "web");
	wq_add_str(q, "db");
	wq_add_str(q, "web"); /* in line already: merged */
	wq_add_str(q, "cache");
	if (wq_pool_start(&pool, q, &options) < 0)
		return 1;
	sigwait(&stop, &sig);

	/* No more events. The workers finish what is in line, within 10 seconds. */
	rc = wq_pool_drain_until(pool, wq_time_add(wq_now(q), 10 * WQ_SECOND), NULL, &report);
	printf("stopped: %s, %d were to be looked at later\n", wq_strerror(rc),
	       (int)report.dropped);
	wq_pool_free(pool);
	return wq_free(q) != 0 || rc != WQ_OK;
}
