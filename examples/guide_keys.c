/* docs/guide.md, chapter 1: what becomes of a key. One thread, no worker. */
#include <stdio.h>
#include <wq.h>

static void show(const char *what, int rc)
{
	printf("%-12s %s\n", what, wq_status_name(rc));
}

int main(void)
{
	wq_queue *q;
	wq_item it;

	if (wq_new(&q, NULL) < 0) {
		fprintf(stderr, "wq_new: %s\n", wq_last_error());
		return 1;
	}
	show("add a", wq_add_str(q, "a"));
	show("add b", wq_add_str(q, "b"));
	show("add a", wq_add_str(q, "a")); /* queued already */

	show("get", wq_get(q, &it));       /* a: it was added first */
	show("add a", wq_add_str(q, "a")); /* held */
	show("done a", wq_done(q, &it));   /* dirty: back to the tail */
	show("done a", wq_done(q, &it));   /* the hold has ended */

	for (int rc = wq_get(q, &it); rc == WQ_OK; rc = wq_next_for(q, &it, 0))
		printf("working on %s\n", (const char *)it.key);
	return wq_free(q); /* the number of keys that are discarded: 0 */
}
