/* epoll, with callbacks. */
#include "cli/base/loop.h"

#include <stddef.h>
#include <wq/clock.h>

bool loop_open(struct loop *l)
{
	l->n = 0;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll >= 0;
}

bool loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	if (events == w->events)
		return true;
	if (events == 0) {
		loop_forget(l, w);
		return true;
	}
	if (epoll_ctl(l->epoll, w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &e) < 0)
		return false;
	w->events = events;
	return true;
}

void loop_forget(struct loop *l, struct watch *w)
{
	if (w->events)
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->events = 0;
	for (int i = 0; i < l->n; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
}

/* Milliseconds, rounded up: whoever waits until some time must not wake before it. */
static int timeout_of(int64_t span_ns)
{
	if (span_ns <= 0)
		return 0;
	if (span_ns > 3600 * WQ_SECOND)
		return 3600 * 1000;
	return (int)((span_ns + WQ_MILLISECOND - 1) / WQ_MILLISECOND);
}

void loop_wait(struct loop *l, int64_t span_ns)
{
	int n = epoll_wait(l->epoll, l->batch, LOOP_BATCH, timeout_of(span_ns));

	l->n = n;
	for (int i = 0; i < n; i++) {
		struct watch *w = l->batch[i].data.ptr;

		if (w)
			w->ready(w, l->batch[i].events);
	}
	l->n = 0;
}
