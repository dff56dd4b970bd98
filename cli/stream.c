/*
 * The descriptor is left as it is: it is shared with other programs, and must not become
 * non-blocking for them. Instead poll() is asked before each write, and a pipe that is ready takes
 * PIPE_BUF bytes without blocking.
 */
#include "cli/stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text.h"

enum { FULL = 1 << 20 };

struct chunk {
	struct chunk *next;
	int fd; /* a file; -1: the bytes are here */
	size_t at, n;
	char bytes[];
};

static void on_ready(struct watch *w, uint32_t events);

void stream_open(struct stream *s, struct loop *l, int fd)
{
	struct stat st;

	*s = (struct stream){.watch = {.fd = fd, .ready = on_ready}, .loop = l};
	s->last = &s->first;
	s->file = fstat(fd, &st) < 0 || S_ISREG(st.st_mode);
}

static bool writable(const struct stream *s)
{
	struct pollfd p = {.fd = s->watch.fd, .events = POLLOUT};

	return s->file || (poll(&p, 1, 0) > 0 && p.revents != 0);
}

static void drop_all(struct stream *s)
{
	while (s->first) {
		struct chunk *c = s->first;

		s->first = c->next;
		if (c->fd >= 0)
			close(c->fd);
		free(c);
	}
	s->last = &s->first;
	s->pending = 0;
}

/* How much was written; 0: not now. */
static size_t put(struct stream *s, const char *bytes, size_t n, bool wait)
{
	ssize_t m;

	if (!wait && !writable(s))
		return 0;
	if (!s->file && n > PIPE_BUF)
		n = PIPE_BUF;
	if (s->before)
		s->before();
	do {
		m = write(s->watch.fd, bytes, n);
	} while (m < 0 && errno == EINTR);
	if (m >= 0)
		return (size_t)m;
	if (errno != EAGAIN) {
		s->closed = true;
		s->error = errno;
	} else if (wait) {
		/* Somebody has made it non-blocking. */
		poll(&(struct pollfd){.fd = s->watch.fd, .events = POLLOUT}, 1, -1);
	}
	return 0;
}

static size_t put_file(struct stream *s, const struct chunk *c, bool wait)
{
	char block[65536];
	size_t want = c->n - c->at < sizeof block ? c->n - c->at : sizeof block;
	ssize_t n;

	if (!wait && !writable(s))
		return 0;
	n = pread(c->fd, block, want, (off_t)c->at);
	if (n <= 0) {
		s->closed = true;
		s->error = n < 0 ? errno : EIO;
		return 0;
	}
	return put(s, block, (size_t)n, wait);
}

/* Writes until it would have to wait; with `wait` until nothing is left. */
static void flush(struct stream *s, bool wait)
{
	while (s->first && !s->closed) {
		struct chunk *c = s->first;
		size_t n =
		    c->fd < 0 ? put(s, c->bytes + c->at, c->n - c->at, wait) : put_file(s, c, wait);

		if (n == 0 && !wait)
			break;
		c->at += n;
		if (c->fd < 0)
			s->pending -= n;
		if (c->at < c->n)
			continue;
		s->first = c->next;
		if (!s->first)
			s->last = &s->first;
		if (c->fd >= 0)
			close(c->fd);
		free(c);
	}
	if (s->closed)
		drop_all(s);
	if (!s->file && !loop_watch(s->loop, &s->watch, s->first ? EPOLLOUT : 0))
		s->file = true;
}

static void on_ready(struct watch *w, uint32_t events)
{
	(void)events;
	flush((struct stream *)(void *)w, false);
}

static void append(struct stream *s, struct chunk *c)
{
	c->next = NULL;
	c->at = 0;
	*s->last = c;
	s->last = &c->next;
}

void stream_write(struct stream *s, const void *bytes, size_t n)
{
	const char *from = bytes;
	struct chunk *c;

	while (!s->first && !s->closed && n > 0) {
		size_t m = put(s, from, n, false);

		if (m == 0)
			break;
		from += m;
		n -= m;
	}
	if (n == 0 || s->closed)
		return;
	c = grow(NULL, sizeof *c + n);
	c->fd = -1;
	c->n = n;
	memcpy(c->bytes, from, n);
	append(s, c);
	s->pending += n;
	flush(s, false);
}

void stream_file(struct stream *s, int fd, size_t n)
{
	struct chunk *c;

	if (s->closed || n == 0) {
		close(fd);
		return;
	}
	c = grow(NULL, sizeof *c);
	c->fd = fd;
	c->n = n;
	append(s, c);
	flush(s, false);
}

bool stream_full(const struct stream *s)
{
	return s->pending >= FULL || (s->first && s->first->fd >= 0);
}

bool stream_idle(const struct stream *s)
{
	return !s->first;
}

void stream_finish(struct stream *s)
{
	flush(s, true);
	loop_forget(s->loop, &s->watch);
}
