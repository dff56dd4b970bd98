/* docs/guide.md, chapter 3: failures, backoff, dead letters. */
#include <stdio.h>
#include <string.h>
#include <wq.h>

static wq_verdict work(void *ctx, const wq_item *it)
{
	(void)ctx;
	if (strcmp(it->key, "broken") == 0)
		return WQ_RETRY; /* always fails */
	if (strcmp(it->key, "busy") == 0 && it->attempts == 1)
		return wq_retry_after(20 * WQ_MILLISECOND); /* the server said when */
	if (strcmp(it->key, "gone") == 0)
		return WQ_DROP; /* not worth a retry */
	printf("%s: done, attempt %u\n", (const char *)it->key, it->attempts);
	return WQ_DONE;
}

static void died(void *ctx, const wq_item *it)
{
	(void)ctx;
	printf("%s: dead after %u attempts\n", (const char *)it->key, it->attempts);
}

int main(void)
{
	wq_options options = {
	    .limiter = wq_limiter_jittered(WQ_MILLISECOND, WQ_MINUTE, WQ_JITTER_EQUAL, 0),
	    .max_attempts = 4,
	    .dead_letter = died,
	};
	wq_pool_counts counts;
	wq_pool *pool;
	wq_queue *q;

	if (wq_new(&q, &options) < 0 ||
	    wq_pool_start(&pool, q, &(wq_pool_options){.workers = 1, .handler = work}) < 0)
		return 1;
	wq_add_str(q, "fine");
	wq_add_str(q, "busy");
	wq_add_str(q, "gone");
	wq_add_str(q, "broken");

	/* WAIT: keys that fail during the drain are retried, too. */
	int rc = wq_drain_for(q, WQ_MINUTE, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL);

	wq_pool_count(pool, &counts);
	printf("%d done, %d dropped, %d dead\n", (int)counts.done, (int)counts.dropped,
	       (int)counts.dead);
	wq_pool_free(pool);
	return wq_free(q) != 0 || rc != WQ_OK;
}
