/*
 * The descriptor for event loops: an epoll descriptor with an eventfd behind it
 * for what is ready, and a timerfd for what comes due.
 *
 * All are touched under the lock only: fd_readable says exactly whether the
 * eventfd is readable, and the system calls are made on changes alone. The timer
 * follows CLOCK_MONOTONIC; on another clock only wq_next_deadline() counts.
 */
#define _POSIX_C_SOURCE 200809L
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "queue/memory.h"
#include "time/clock.h"

void(wq__fd_signal)(struct wq__memory *m)
{
	uint64_t one = 1;
	int before;

	if (m->fd_readable || WQ__BUG(FD_NOT_SIGNALLED))
		return;
	before = wq__uncancelled_begin();
	/* Never full: it is read before it is written again. */
	m->fd_readable = write(m->fd_event, &one, sizeof one) == (ssize_t)sizeof one;
	wq__uncancelled_end(before);
}

/* The next due time has changed. Setting the timer also clears it. */
void(wq__fd_due)(struct wq__memory *m)
{
	struct itimerspec at = {.it_value = {0}};

	if (m->clock.now != wq__clock_real.now)
		return;
	if (wq__next_wake(m) != WQ_NEVER) {
		/* 0 would disarm it; that time has passed as well. */
		int64_t due = wq__next_wake(m) > 0 ? wq__next_wake(m) : 1;

		at.it_value.tv_sec = (time_t)(due / WQ_SECOND);
		at.it_value.tv_nsec = (long)(due % WQ_SECOND);
	}
	timerfd_settime(m->fd_timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/*
 * Nothing is ready, and a Get would wait. A timer that has gone off needs no clearing:
 * what was due has been moved, so the next due time has changed, and setting the timer to it
 * has cleared it.
 */
void wq__fd_clear(struct wq__memory *m)
{
	uint64_t count;
	int before;

	if (!m->fd_readable)
		return;
	before = wq__uncancelled_begin();
	if (read(m->fd_event, &count, sizeof count) == (ssize_t)sizeof count)
		m->fd_readable = false;
	wq__uncancelled_end(before);
}

static void close_all(int poll, int event, int timer)
{
	int before = wq__uncancelled_begin();

	if (poll >= 0)
		close(poll);
	if (event >= 0)
		close(event);
	if (timer >= 0)
		close(timer);
	wq__uncancelled_end(before);
}

static int open_all(struct wq__memory *m)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int poll = epoll_create1(EPOLL_CLOEXEC);

	if (event < 0 || timer < 0 || poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, event, &ev) != 0 ||
	    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &ev) != 0) {
		close_all(poll, event, timer);
		return WQ_EIO;
	}
	m->fd_event = event;
	m->fd_timer = timer;
	m->fd_poll = poll;
	m->flags |= WQ__FD;
	wq__fd_due(m);
	if (m->nready > 0 || m->flags & WQ__SHUT)
		wq__fd_signal(m);
	return WQ_OK;
}

int wq__mem_fd(void *state)
{
	struct wq__memory *m = state;
	int rc = WQ_OK;

	wq__whole_lock(m);
	if (!(m->flags & WQ__FD))
		rc = open_all(m);
	if (rc == WQ_OK)
		rc = m->fd_poll;
	wq__whole_unlock(m);
	return rc;
}

void wq__fd_close(struct wq__memory *m)
{
	close_all(m->fd_poll, m->fd_event, m->fd_timer);
}
