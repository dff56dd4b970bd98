/*
 * Timers, twice: a wheel with a thread of its own (wq_timer), which calls back when the time has
 * come, and a wheel that is driven by hand (wq_wheel), for programs that have a loop
 * or a time of their own. Adding and cancelling cost the same with ten timers or with ten
 * million.
 */
#include <semaphore.h>
#include <stdio.h>
#include <wq.h>

/* ---- with a thread ------------------------------------------------------- */

struct beats {
	wq_timer *timer;
	int n;
	sem_t over;
};

/* In the timer's thread. A callback may cancel timers, its own too. */
static void beat(void *ctx, const wq_timer_event *event)
{
	struct beats *b = ctx;

	printf("beat %d\n", ++b->n);
	if (b->n == 3) {
		wq_timer_cancel(b->timer, event->id);
		sem_post(&b->over);
	}
}

static void timed_out(void *ctx, const wq_timer_event *event)
{
	(void)event;
	printf("%s: no answer\n", (const char *)ctx);
}

static int with_thread(void)
{
	struct beats b = {.n = 0};
	wq_timer_id timeout = 0;
	int rc;

	if (sem_init(&b.over, 0, 0) != 0 || wq_timer_new(&b.timer, NULL) < 0)
		return -1;
	/* The usual life of a timeout: the answer comes, and it is taken back. */
	rc = wq_timer_after(b.timer, 5 * WQ_SECOND, timed_out, "request 1", &timeout);
	if (rc == WQ_OK)
		rc = wq_timer_every(b.timer, 2 * WQ_MILLISECOND, beat, &b, NULL);
	if (rc == WQ_OK) {
		sem_wait(&b.over);
		if (wq_timer_cancel(b.timer, timeout) == WQ_OK)
			printf("request 1: answered in time\n");
	}
	/* 0: no timer was left. */
	rc = rc < 0 || wq_timer_free(b.timer) != 0 ? -1 : 0;
	sem_destroy(&b.over);
	return rc;
}

/* ---- by hand ------------------------------------------------------------- */

static void show(void *ctx, const wq_timer_event *event)
{
	printf("%d s: %s\n", (int)(event->now_ns / WQ_SECOND), (const char *)ctx);
}

/* No thread, no clock: time is what the program says, here six seconds in no time at all. */
static int by_hand(void)
{
	wq_wheel *w;
	int rc;

	if (wq_wheel_new(&w, 0, NULL) < 0)
		return -1;
	rc = wq_wheel_every(w, 2 * WQ_SECOND, show, "heartbeat", NULL);
	if (rc == WQ_OK)
		rc = wq_wheel_after(w, 3 * WQ_SECOND, show, "lease ends", NULL);
	/* A loop would sleep until the next deadline, in epoll_wait() say. */
	for (int64_t now; rc == WQ_OK && (now = wq_wheel_next_deadline(w)) <= 6 * WQ_SECOND;)
		wq_wheel_advance(w, now);
	/* One was left: the heartbeat goes on until it is cancelled. */
	return rc < 0 || wq_wheel_free(w) != 1 ? -1 : 0;
}

int main(void)
{
	return with_thread() != 0 || by_hand() != 0;
}
