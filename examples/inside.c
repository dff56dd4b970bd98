/*
 * See inside: a queue with a name, in a registry, and a server that shows it.
 *
 *     cc -o inside inside.c $(pkg-config --cflags --libs wq-http)
 *     ./inside 9321        the page is at http://127.0.0.1:9321/, metrics at /metrics
 *
 * It adds keys until its standard input ends. What is shown goes before what shows it: the pool,
 * the queue, the server, the registry.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <wq.h>
#include <wq/http.h>

static wq_verdict work(void *ctx, const wq_item *it)
{
	(void)ctx;
	nanosleep(&(struct timespec){.tv_nsec = 20 * WQ_MILLISECOND}, NULL);
	/* A third fails at first, and is tried again later. */
	return it->attempts <= 1 && ((const char *)it->key)[it->len - 1] % 3 == 0 ? WQ_RETRY
	                                                                          : WQ_DONE;
}

static void add_keys(wq_queue *q)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	char key[32];

	for (int i = 0; poll(&input, 1, 50) == 0; i++) {
		snprintf(key, sizeof key, "default/pod-%d", i % 30);
		wq_add_str(q, key);
	}
}

/* The last look: with the queue its figures go, and what nobody has read by then is lost. */
static int finish(wq_queue *q, wq_pool *pool)
{
	wq_report report;
	wq_snapshot s;

	int rc = wq_pool_drain_for(pool, 10 * WQ_SECOND, NULL, &report);

	if (rc < 0 || wq_snapshot_take(q, &s) < 0)
		return 1;
	printf("%" PRIu64 " added, %" PRIu64 " merged, %" PRIu64 " unfinished\n", s.adds, s.merged,
	       report.queued + report.running + report.retries + report.delayed);
	return rc == WQ_LEFT;
}

int main(int argc, char **argv)
{
	wq_http_options shown = {.port = (uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0)};
	wq_pool *pool;
	wq_http *h;
	wq_queue *q;
	int rc;

	if (wq_registry_new(&shown.registry) < 0 ||
	    wq_new(&q, &(wq_options){.name = "pods", .registry = shown.registry}) < 0)
		return 1;
	rc = wq_http_start(&h, &shown);
	if (rc < 0) {
		fprintf(stderr, "port %u: %s\n", shown.port, wq_strerror(rc));
		return 1;
	}
	printf("http://127.0.0.1:%d/\n", wq_http_port(h));
	fflush(stdout);

	wq_add_str(q, "default/pod-17");
	wq_add_str(q, "default/pod-18");
	wq_add_str(q, "default/pod-17");
	if (wq_pool_start(&pool, q, &(wq_pool_options){.workers = 2, .handler = work}) < 0)
		return 1;
	add_keys(q);

	rc = finish(q, pool);
	wq_pool_free(pool);
	rc |= wq_free(q) < 0;
	rc |= wq_http_stop(h) != WQ_OK;
	return rc | (wq_registry_free(shown.registry) != WQ_OK);
}
