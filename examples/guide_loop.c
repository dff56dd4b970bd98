/* docs/from-client-go.md: a worker's loop, as it is written with client-go. */
#include <stdio.h>
#include <wq.h>

static int reconcile(const wq_item *it)
{
	printf("%s, attempt %u\n", (const char *)it->key, it->attempts);
	return it->attempts < 2 ? -1 : 0;
}

int main(void)
{
	wq_queue *q;
	wq_item it;

	if (wq_new(&q, NULL) < 0)
		return 1;
	wq_add_str(q, "default/pod-17");
	/* This thread is the only worker: it begins the drain, and does not wait for it. */
	if (wq_drain_for(q, 0, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL) != WQ_ETIMEDOUT)
		return 1;

	while (wq_get(q, &it) == WQ_OK) /* WQ_ESHUTDOWN: shut down, and nothing is queued */
		wq_settle(q, &it, reconcile(&it) == 0 ? WQ_DONE : WQ_RETRY);
	return wq_free(q);
}
