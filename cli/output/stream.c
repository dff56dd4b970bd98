/*
 * The descriptor is left as it is: it is shared with other programs, and must not become
 * non-blocking for them. A pipe or a terminal is opened once more, for us alone. Where that cannot
 * be done poll() is asked before each write, and a pipe that is ready takes PIPE_BUF bytes without
 * blocking.
 */
#include "cli/output/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/text.h"

enum {
	FULL = 1 << 20,
	TURN = 64, /* writes before others have their turn */
};

static void on_ready(struct watch *w, uint32_t events);

static void open_again(struct stream *s)
{
	char path[32];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", s->watch.fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	s->watch.fd = fd;
	s->own = true;
}

void stream_open(struct stream *s, struct loop *l, int fd)
{
	struct stat st;

	*s = (struct stream){.watch = {.fd = fd, .ready = on_ready}, .loop = l};
	s->file = fstat(fd, &st) < 0 || S_ISREG(st.st_mode);
	if (!s->file && (S_ISFIFO(st.st_mode) || isatty(fd)))
		open_again(s);
}

static bool writable(const struct stream *s)
{
	struct pollfd p = {.fd = s->watch.fd, .events = POLLOUT};

	return s->file || s->own || (poll(&p, 1, 0) > 0 && p.revents != 0);
}

static void drop_all(struct stream *s)
{
	while (s->chunks.first)
		chunks_pop(&s->chunks);
	s->pending = 0;
}

/* How much was written; 0: not now. */
static size_t put(struct stream *s, const char *bytes, size_t n)
{
	ssize_t m;

	if (!writable(s))
		return 0;
	if (!s->file && !s->own && n > PIPE_BUF)
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
	}
	return 0;
}

static size_t put_file(struct stream *s)
{
	char block[65536];
	long n;

	if (!writable(s))
		return 0;
	n = chunks_read(&s->chunks, block,
	                s->file ? sizeof block : PIPE_BUF); /* put() takes no more */
	if (n <= 0) {
		s->closed = true;
		s->error = n < 0 ? errno : EIO;
		return 0;
	}
	return put(s, block, (size_t)n);
}

/* Writes until it would have to wait, or others have waited long enough. */
static void flush(struct stream *s)
{
	struct chunk *c;

	for (int turn = 0; (c = s->chunks.first) && !s->closed && (s->file || turn < TURN);
	     turn++) {
		size_t n = c->file ? put_file(s) : put(s, c->bytes + c->at, c->n - c->at);

		if (n == 0)
			break;
		c->at += n;
		if (!c->file)
			s->pending -= n;
		if (c->at == c->n)
			chunks_pop(&s->chunks);
	}
	if (s->closed)
		drop_all(s);
	if (!s->file && !loop_watch(s->loop, &s->watch, s->chunks.first ? EPOLLOUT : 0))
		s->file = true;
}

static void on_ready(struct watch *w, uint32_t events)
{
	(void)events;
	flush((struct stream *)(void *)w);
}

void stream_write(struct stream *s, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (!s->chunks.first && !s->closed && n > 0) {
		size_t m = put(s, from, n);

		if (m == 0)
			break;
		from += m;
		n -= m;
	}
	if (n == 0 || s->closed)
		return;
	chunks_add(&s->chunks, from, n);
	s->pending += n;
	flush(s);
}

void stream_append(struct stream *s, struct chunks *chunks)
{
	for (const struct chunk *c = chunks->first; c; c = c->next)
		s->pending += c->file ? 0 : c->n;
	chunks_move(&s->chunks, chunks);
	flush(s);
}

bool stream_now(struct stream *s, const void *bytes, size_t n)
{
	return !s->chunks.first && !s->closed && writable(s) && write(s->watch.fd, bytes, n) > 0;
}

bool stream_full(const struct stream *s)
{
	return s->pending >= FULL || (s->chunks.first && s->chunks.first->file);
}

bool stream_idle(const struct stream *s)
{
	return !s->chunks.first;
}

void stream_drop(struct stream *s)
{
	drop_all(s);
	loop_forget(s->loop, &s->watch);
}
