/*
 * A controller with priorities: a resync adds every object at a low priority, events add theirs at
 * priority 0. Events go first, however many keys the resync has added. Events never stop here, and
 * the resync is finished all the same: it ages.
 *
 * One worker, on a clock that the program moves, so that the output is the same each time.
 */
#include <stdio.h>
#include <string.h>
#include <wq.h>

enum { LOW = -5 };

static const char *const objects[] = {"cache", "db", "mail", "web"};

/* Every object is looked at, but nobody waits for it. */
static void resync(wq_queue *q)
{
	for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
		wq_add_with(q, objects[i], strlen(objects[i]), &(wq_add_options){.priority = LOW});
}

/* Has priority 0. An object that the resync has queued is raised: it is worked on once. */
static void event(wq_queue *q, const char *object)
{
	wq_add_str(q, object);
}

/* Stands for 100 ms of work. */
static void reconcile(wq_queue *q, const wq_item *it, wq_manual_clock *mc)
{
	printf("%4d ms: %s, %s\n", (int)(wq_now(q) / WQ_MILLISECOND), (const char *)it->key,
	       it->priority == LOW ? "resync" : "event");
	wq_manual_clock_advance(mc, 100 * WQ_MILLISECOND);
}

int main(void)
{
	char user[24];
	wq_manual_clock *mc;
	wq_queue *q;
	wq_item it;

	if (wq_manual_clock_new(&mc, 0) < 0)
		return 1;

	wq_clock clock = wq_manual_clock_clock(mc);
	wq_options options = {
	    .clock = &clock,
	    .priorities = 1,
	    .aging_ns = 100 * WQ_MILLISECOND, /* a level higher every 100 ms */
	};

	if (wq_new(&q, &options) < 0) {
		fprintf(stderr, "wq_new: %s\n", wq_last_error());
		return 1;
	}
	resync(q);
	event(q, "web");
	for (int i = 1; i <= 10; i++) { /* as many events as one worker can handle */
		snprintf(user, sizeof user, "user-%d", i);
		event(q, user);
		if (wq_get(q, &it) == WQ_OK) {
			reconcile(q, &it, mc);
			wq_done(q, &it);
		}
	}
	printf("%d queued\n", (int)wq_len(q));
	wq_free(q);
	return wq_manual_clock_free(mc) != WQ_OK;
}
