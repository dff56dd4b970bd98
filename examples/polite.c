/*
 * A crawler that is polite: pages in any order, but to each host no more than one request a second.
 * The limiter knows hosts as the parts of keys before the first slash; a page that fails waits for
 * its host like all others. A longer backoff beside the bucket would let several pages of a host
 * come due at one moment: see [RATE] in wq/limiter.h.
 *
 *     polite [<seconds between two requests to a host>]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wq.h>

static int64_t pause_ns = WQ_SECOND;
static int64_t start_ns;

/* One request; in turns of a pause, so that the output is the same each time. */
static wq_verdict fetch(void *q, const wq_item *page)
{
	static int flaky;
	int64_t turn = (wq_now(q) - start_ns + pause_ns / 4) / pause_ns;
	int fails = strcmp(page->key, "b.org/flaky") == 0 && flaky++ == 0;

	printf("%d: %s%s\n", (int)turn, (const char *)page->key, fails ? " failed" : "");
	return fails ? WQ_RETRY : WQ_DONE;
}

int main(int argc, char **argv)
{
	static const char *const pages[] = {"a.org/1", "a.org/2",     "a.org/3",
	                                    "b.org/1", "b.org/flaky", "c.org"};
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	wq_limiter *polite = wq_limiter_bucket_per_part(1 / seconds, 1, '/', 1);
	wq_drain_options all = {.mode = WQ_DRAIN_WAIT};
	wq_pool *p;
	wq_queue *q;
	int rc;

	pause_ns = (int64_t)(seconds * WQ_SECOND);
	/* The limiter belongs to the queue, and its errors come out here. */
	if (wq_new(&q, &(wq_options){.limiter = polite}) < 0)
		return 1;
	start_ns = wq_now(q);
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
		if (wq_add_limited(q, pages[i], strlen(pages[i])) < 0)
			return 1;
	if (wq_pool_start(&p, q, &(wq_pool_options){.workers = 1, .handler = fetch, .ctx = q}) < 0)
		return 1;
	rc = wq_drain_for(q, WQ_MINUTE, &all, NULL); /* waits for what waits, too */
	wq_pool_free(p);
	return wq_free(q) != 0 || rc != WQ_OK;
}
