/* docs/guide.md, chapter 4: delays, on a clock that the program moves. It is also how to test. */
#include <assert.h>
#include <stdio.h>
#include <wq.h>

/* Runs what is ready, and says when. */
static void run(wq_queue *q)
{
	wq_item it;

	while (wq_try_get(q, &it) == WQ_OK) {
		printf("%4d ms: %s\n", (int)(wq_now(q) / WQ_MILLISECOND), (const char *)it.key);
		wq_done(q, &it);
	}
}

int main(void)
{
	wq_manual_clock *mc;
	wq_queue *q;

	if (wq_manual_clock_new(&mc, 0) < 0)
		return 1;

	wq_clock clock = wq_manual_clock_clock(mc);

	if (wq_new(&q, &(wq_options){.clock = &clock, .within = 1}) < 0)
		return 1;

	/* The earlier time counts, unless a policy says otherwise. */
	wq_add_after(q, "early", 5, 50 * WQ_MILLISECOND);
	wq_add_after(q, "early", 5, 90 * WQ_MILLISECOND);

	/* A debounce: 100 ms after the last event, at the latest 250 ms after the first. */
	wq_add_options debounce = {.after_ns = 100 * WQ_MILLISECOND,
	                           .policy = WQ_REPLACE,
	                           .within_ns = 250 * WQ_MILLISECOND};

	for (int i = 0; i < 8; i++) {
		wq_add_with(q, "file", 4, &debounce);
		wq_manual_clock_advance(mc, 50 * WQ_MILLISECOND);
		run(q);
	}

	/* A key that waits can be moved or cancelled. */
	unsigned was;

	wq_add_after(q, "later", 5, WQ_HOUR);
	assert(wq_state(q, "later", 5) == WQ_STATE_WAITING);
	wq_reschedule(q, "later", 5, wq_now(q));
	run(q);
	if (wq_cancel(q, "file", 4, &was) == WQ_CANCELLED && (was & WQ_STATE_WAITING))
		printf("cancelled: file\n");
	wq_free(q);
	return wq_manual_clock_free(mc) != WQ_OK;
}
