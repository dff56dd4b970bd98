/* The smallest whole program: one worker, three adds, two keys. */
#include <pthread.h>
#include <stdio.h>
#include <wq.h>

static void *work(void *q)
{
	wq_item it;

	while (wq_get(q, &it) == WQ_OK) {
		printf("%s\n", (const char *)it.key);
		wq_done(q, &it);
	}
	return NULL;
}

int main(void)
{
	pthread_t worker;
	wq_queue *q;
	int rc;

	if (wq_new(&q, NULL) < 0)
		return 1;
	wq_add_str(q, "default/pod-17");
	wq_add_str(q, "default/pod-18");
	wq_add_str(q, "default/pod-17"); /* queued already: merges */
	if (pthread_create(&worker, NULL, work, q) != 0)
		return 1;
	rc = wq_drain_for(q, 10 * WQ_SECOND, NULL, NULL); /* refuse further adds, finish the rest */
	pthread_join(worker, NULL);
	return wq_free(q) != 0 || rc != WQ_OK; /* not 0: some keys are unfinished */
}
