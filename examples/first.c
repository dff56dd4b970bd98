/* The example of the README: three adds, two keys, four workers, one retry of each key. */
#include <stdio.h>
#include <wq.h>

static wq_verdict work(void *ctx, const wq_item *it)
{
	(void)ctx;
	printf("%s, attempt %u\n", (const char *)it->key, it->attempts);
	return it->attempts == 1 ? WQ_RETRY : WQ_DONE; /* retry after 5 ms, then 10 ms, 20 ms ... */
}

int main(void)
{
	wq_queue *q;
	wq_pool *pool;

	if (wq_new(&q, NULL) < 0 ||
	    wq_pool_start(&pool, q, &(wq_pool_options){.workers = 4, .handler = work}) < 0)
		return 1;
	wq_add_str(q, "default/pod-17");
	wq_add_str(q, "default/pod-18");
	wq_add_str(q, "default/pod-17"); /* queued: merges; held: runs once more afterwards */
	int rc = wq_pool_drain_for(pool, 10 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT},
	                           NULL);

	wq_pool_free(pool);
	wq_free(q);
	return rc != WQ_OK; /* not WQ_OK: some keys are unfinished */
}
