/*
 * Tenants that share a queue: each has at most two jobs running at once, and they take turns. One
 * has paid for twice the share, one may start two jobs per second only. The tenant of a job is the
 * part of its key before the slash.
 *
 * Four jobs at once, 100 ms each, on a clock that the program moves, so that the output is the same
 * each time. Workers or a pool would do the same: the limits belong to the queue.
 */
#include <stdio.h>
#include <string.h>
#include <wq.h>

enum { PLACES = 4 };

static int is(const wq_key *group, const char *name)
{
	return group->len == strlen(name) && memcmp(group->key, name, group->len) == 0;
}

/* A hook: called under the queue's lock when a tenant's first job comes. */
static void setup(void *ctx, const wq_key *tenant, wq_group_settings *settings)
{
	(void)ctx;
	if (is(tenant, "gold"))
		settings->weight = 2;
	if (is(tenant, "trial"))
		settings->rate = 2;
}

static void add_jobs(wq_queue *q, const char *tenant, int n)
{
	char key[32];

	for (int i = 1; i <= n; i++) {
		snprintf(key, sizeof key, "%s/%d", tenant, i);
		wq_add_str(q, key);
	}
}

/* Starts what may be started, and lets 100 ms pass. */
static void run(wq_queue *q, wq_manual_clock *mc)
{
	wq_item jobs[PLACES];
	int n = wq_get_many_for(q, jobs, PLACES, 0);

	if (n > 0)
		printf("%4d ms:", (int)(wq_now(q) / WQ_MILLISECOND));
	for (int i = 0; i < n; i++)
		printf(" %s", (const char *)jobs[i].key);
	wq_manual_clock_advance(mc, 100 * WQ_MILLISECOND);
	if (n > 0) {
		printf("\n");
		wq_done_many(q, jobs, (size_t)n, NULL);
	}
}

int main(void)
{
	static wq_separator slash = {.byte = '/', .n = 1};
	wq_manual_clock *mc;
	wq_queue *q;

	if (wq_manual_clock_new(&mc, 0) < 0)
		return 1;

	wq_clock clock = wq_manual_clock_clock(mc);
	wq_options options = {
	    .clock = &clock,
	    .group = wq_group_before,
	    .group_ctx = &slash,
	    .group_limit = 2,
	    .group_setup = setup,
	};

	if (wq_new(&q, &options) < 0) {
		fprintf(stderr, "wq_new: %s\n", wq_last_error());
		return 1;
	}
	add_jobs(q, "big", 9); /* first, and the most: the others do not wait for it */
	add_jobs(q, "gold", 6);
	add_jobs(q, "small", 2);
	add_jobs(q, "trial", 2);
	while (wq_len(q) > 0)
		run(q, mc);
	wq_free(q);
	return wq_manual_clock_free(mc) != WQ_OK;
}
