/*
 * A program with working queues and libwq-http, for Prometheus to scrape. It prints
 * its port, and then obeys lines on standard input:
 *
 *     free     the queue "goes" is freed
 *     work     a hundred keys go through "pods", some of them fail
 *
 * and answers each with a line "ok". It ends with its input.
 */
#include <stdio.h>
#include <string.h>
#include <wq.h>
#include <wq/http.h>

static int failures;

static void must(int ok)
{
	failures += !ok;
}

/* Every counter of the queue goes up, but for those of a shutdown and of a pool. */
static void work(wq_queue *q)
{
	wq_item it;

	for (int i = 0; i < 100; i++) {
		must(wq_add(q, &i, sizeof i) > 0);
		must(wq_add(q, &i, sizeof i) == WQ_MERGED);
		must(wq_get(q, &it) == WQ_OK);
		must(wq_add(q, it.key, it.len) == WQ_MARKED);
		must(wq_done(q, &it) == WQ_QUEUED);
		must(wq_done(q, &it) == WQ_ESTALE);
		must(wq_get(q, &it) == WQ_OK);
		must(wq_retry(q, &it) > 0);
	}
	while (wq_try_get(q, &it) == WQ_OK)
		must(wq_done(q, &it) >= 0);
}

int main(void)
{
	wq_registry *r;
	wq_queue *pods, *goes;
	wq_http *h;
	char line[64];

	if (wq_registry_new(&r) != WQ_OK ||
	    wq_new(&pods, &(wq_options){.name = "pods",
	                                .registry = r,
	                                .max_attempts = 2,
	                                .max_keys = 1000,
	                                .limiter = wq_limiter_exponential(1000, 1000000)}) !=
	        WQ_OK ||
	    wq_new(&goes, &(wq_options){.name = "goes \"\\\n", .registry = r}) != WQ_OK ||
	    wq_http_start(&h, &(wq_http_options){.registry = r}) != WQ_OK)
		return 1;
	printf("%d\n", wq_http_port(h));
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (strcmp(line, "work\n") == 0)
			work(pods);
		if (strcmp(line, "free\n") == 0 && goes) {
			must(wq_free(goes) == 0);
			goes = NULL;
		}
		puts("ok");
		fflush(stdout);
	}
	must(wq_http_stop(h) == WQ_OK);
	must(wq_free(pods) >= 0);
	must(!goes || wq_free(goes) == 0);
	must(wq_registry_free(r) == WQ_OK);
	return failures > 0;
}
