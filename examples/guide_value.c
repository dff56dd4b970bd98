/* docs/guide.md, chapter 9: values, which travel with keys and merge. */
#include <stdio.h>
#include <string.h>
#include <wq.h>

/* Why the key was added. */
static void add(wq_queue *q, const char *key, const char *why)
{
	wq_add_with(q, key, strlen(key), &(wq_add_options){.value = why, .value_len = strlen(why)});
}

static int show(const wq_item *it)
{
	printf("%s: %s\n", (const char *)it->key, it->value ? (const char *)it->value : "-");
	return strcmp(it->key, "pod") == 0 && it->attempts == 1; /* fails once */
}

int main(void)
{
	wq_queue *q;
	wq_item it;

	if (wq_new(&q, &(wq_options){.values = 1, .merge = wq_merge_append, .merge_ctx = ", "}) < 0)
		return 1;
	add(q, "pod", "created");
	add(q, "pod", "scaled"); /* merges with the value of the queued key */
	wq_add_str(q, "node");   /* no value */

	if (wq_get(q, &it) == WQ_OK) {
		add(q, "pod", "moved"); /* for the next hold */
		wq_settle(q, &it, show(&it) == 0 ? WQ_DONE : WQ_RETRY);
	}
	while (wq_try_get(q, &it) == WQ_OK)
		wq_settle(q, &it, show(&it) == 0 ? WQ_DONE : WQ_RETRY);
	return wq_free(q) != 0;
}
