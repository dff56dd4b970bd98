/*
 * docs/guide.md, chapter 6: a controller with retries, a periodic check, slow-handler reports,
 * metrics, and a drain on SIGTERM. Exit status 1: some keys are unfinished or dead.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

/* The work. A key is with one worker at a time, so its object needs no lock. */
static wq_verdict reconcile(void *ctx, const wq_item *it)
{
	(void)ctx;
	if (strcmp(it->key, "db") == 0 && it->attempts < 3) {
		fprintf(stderr, "%s: failed, attempt %u\n", (const char *)it->key, it->attempts);
		return WQ_RETRY;
	}
	printf("%s: up to date\n", (const char *)it->key);
	if (strcmp(it->key, "db") == 0)
		kill(getpid(), SIGTERM);       /* an example has to end; a controller would go on */
	return wq_again_after(10 * WQ_MINUTE); /* check again then; an event comes first */
}

static void died(void *ctx, const wq_item *it)
{
	(void)ctx;
	fprintf(stderr, "%s: dead after %u attempts\n", (const char *)it->key, it->attempts);
}

static void slow(void *ctx, const wq_slow_handler *s)
{
	(void)ctx;
	fprintf(stderr, "%s: running for %d s\n", (const char *)s->key,
	        (int)(s->running_ns / WQ_SECOND));
}

/*
 * A key that the drain did not finish. In this program a delayed add is a key that waits for its
 * next check, which is no loss: the check comes after the next start anyway.
 */
static int unfinished(void *ctx, const wq_key_info *info)
{
	int *n = ctx;

	if (info->state != WQ_STATE_LEFT) {
		fprintf(stderr, "%s: unfinished, %u failures\n", (const char *)info->key,
		        info->failures);
		++*n;
	}
	return 0;
}

static int to_file(void *file, const char *text, size_t n)
{
	return fwrite(text, 1, n, file) == n ? 0 : -1;
}

/* Stands for a watch of real objects. */
static void watch(wq_queue *q)
{
	static const char *const events[] = {"web", "db", "web", "cache"};

	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		wq_add_str(q, events[i]);
}

int main(void)
{
	wq_options options = {.name = "objects", .max_attempts = 10, .dead_letter = died};
	wq_pool_options workers = {.workers = 2,
	                           .handler = reconcile,
	                           .slow_ns = 30 * WQ_SECOND,
	                           .on_slow = slow};
	int left = 0, sig, rc;
	wq_drain_options drain = {.mode = WQ_DRAIN_LEAVE, .left = unfinished, .ctx = &left};
	wq_report report;
	wq_pool *pool;
	wq_queue *q;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL); /* before there are threads: sigwait() takes it */

	if (wq_registry_new(&options.registry) < 0 || wq_new(&q, &options) < 0 ||
	    wq_pool_start(&pool, q, &workers) < 0) {
		fprintf(stderr, "controller: %s\n", wq_last_error());
		return 1;
	}
	watch(q);
	sigwait(&stop, &sig);
	rc = wq_pool_drain_for(pool, 10 * WQ_SECOND, &drain, &report);
	if (rc < 0)
		fprintf(stderr, "controller: %s\n", wq_strerror(rc));

	wq_metrics_write(options.registry, WQ_PROMETHEUS, to_file, stdout);
	wq_pool_free(pool);
	wq_free(q);
	wq_registry_free(options.registry);
	return rc < 0 || left > 0 || report.dead > 0;
}
