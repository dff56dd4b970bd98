/*
 * The descriptor for event loops: an eventfd behind an epoll descriptor, so
 * that a timer can stand beside it one day without the descriptor changing.
 *
 * Both are touched under the lock only: fd_readable says exactly whether the
 * eventfd is readable, and the system calls are made on its changes alone.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "queue/memory.h"

void wq__fd_signal(struct wq__memory *m)
{
	uint64_t one = 1;

	if (m->fd_readable || WQ__BUG(FD_NOT_SIGNALLED))
		return;
	/* Never full: it is read before it is written again. */
	m->fd_readable = write(m->fd_event, &one, sizeof one) == (ssize_t)sizeof one;
}

/* Nothing is ready, and the queue is not shut. */
void wq__fd_clear(struct wq__memory *m)
{
	uint64_t count;

	if (m->fd_readable && read(m->fd_event, &count, sizeof count) == (ssize_t)sizeof count)
		m->fd_readable = false;
}

static int open_both(struct wq__memory *m)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int poll = epoll_create1(EPOLL_CLOEXEC);

	if (event < 0 || poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, event, &ev) != 0) {
		if (event >= 0)
			close(event);
		if (poll >= 0)
			close(poll);
		return WQ_EIO;
	}
	m->fd_event = event;
	m->fd_poll = poll;
	m->flags |= WQ__FD;
	if (m->nready > 0 || m->flags & WQ__SHUT)
		wq__fd_signal(m);
	return WQ_OK;
}

int wq__mem_fd(void *state)
{
	struct wq__memory *m = state;
	int rc = WQ_OK;

	wq__lock_acquire(&m->lock);
	if (!(m->flags & WQ__FD))
		rc = open_both(m);
	if (rc == WQ_OK)
		rc = m->fd_poll;
	wq__lock_release(&m->lock);
	return rc;
}

void wq__fd_close(struct wq__memory *m)
{
	if (!(m->flags & WQ__FD))
		return;
	close(m->fd_poll);
	close(m->fd_event);
}
