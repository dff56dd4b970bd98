/*
 * An event loop that debounces: a key is handled 30 ms after its last event, and 60 ms after its first at
 * the latest, though events never stop. Exit status 0: it was.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <wq.h>

static const int64_t quiet_ns = 30 * WQ_MILLISECOND, latest_ns = 60 * WQ_MILLISECOND;

static int event(wq_queue *q)
{
	wq_add_options o = {.after_ns = quiet_ns, .policy = WQ_REPLACE, .within_ns = latest_ns};

	return wq_add_with(q, "file", 4, &o);
}

/* Handles what is ready; how many keys that were. */
static int handle(wq_queue *q)
{
	wq_item it;
	int n = 0;

	for (; wq_try_get(q, &it) == WQ_OK; n++)
		wq_settle(q, &it, WQ_DONE);
	return n;
}

int main(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), handled = 0;
	wq_queue *q;

	if (wq_new(&q, &(wq_options){.within = 1}) < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, wq_fd(q), &e) < 0) {
		fprintf(stderr, "debounce: %s\n", wq_last_error());
		return 1;
	}

	/* A burst is one key, and not before it has been quiet; on a slow machine it takes a while. */
	int64_t first = wq_now(q);

	for (int i = 0; i < 50; i++)
		if (event(q) < 0)
			return 1;
	while (handled == 0 && epoll_wait(epoll, &e, 1, -1) >= 0)
		handled = handle(q);
	if (handled != 1 || wq_now(q) - first < quiet_ns)
		return 1;

	/* Events without end: it is handled all the same. */
	for (handled = 0; handled == 0; handled = epoll_wait(epoll, &e, 1, 0) > 0 ? handle(q) : 0)
		if (event(q) < 0)
			return 1;
	close(epoll);
	return wq_free(q) != 0;
}
