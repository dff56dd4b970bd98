/* Output of commands. */
#include "cli/output/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SPILL = 256 << 10,    /* more than that is put into a file */
	LONG_LINE = 64 << 10, /* a line that is longer is passed on in pieces */
	BLOCK = 64 << 10,
	TURN = 4,  /* blocks that are read before others have their turn */
	LAST = 16, /* at the end: as much as a pipe holds. Somebody may write to it still */
};

/* What is in memory goes to the file. */
static void spill(struct capture *c)
{
	size_t at = 0;

	if (c->spill < 0 && !c->error) {
		c->spill = spool_temporary();
		if (c->spill < 0)
			c->error = errno;
	}
	while (!c->error && at < c->text.n) {
		ssize_t n = write(c->spill, c->text.bytes + at, c->text.n - at);

		if (n < 0 && errno != EINTR)
			c->error = errno;
		else if (n > 0)
			at += (size_t)n;
	}
	c->spilled += at;
	c->text.n = 0;
}

/* Complete lines go out; without an end in sight, everything. */
static void pass_on(struct capture *c)
{
	char *end = memrchr(c->text.bytes, '\n', c->text.n);
	size_t n = end ? (size_t)(end - c->text.bytes) + 1 : 0;

	if (n == 0 && c->text.n >= LONG_LINE)
		n = c->text.n;
	if (n == 0)
		return;
	stream_write(c->to, c->text.bytes, n);
	memmove(c->text.bytes, c->text.bytes + n, c->text.n - n);
	c->text.n -= n;
}

static void take(struct capture *c, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	if (c->tag.n == 0) {
		text_add(&c->text, bytes, n);
		c->inside = end[-1] != '\n';
	}
	while (c->tag.n > 0 && bytes < end) {
		const char *nl = memchr(bytes, '\n', (size_t)(end - bytes));
		const char *to = nl ? nl + 1 : end;

		if (!c->inside)
			text_add(&c->text, c->tag.bytes, c->tag.n);
		text_add(&c->text, bytes, (size_t)(to - bytes));
		c->inside = !nl;
		bytes = to;
	}
	if (c->lines)
		pass_on(c);
	else if (c->text.n >= SPILL)
		spill(c);
}

static void shut(struct capture *c)
{
	loop_forget(c->loop, &c->watch);
	if (c->watch.fd >= 0)
		close(c->watch.fd);
	c->watch.fd = -1;
}

/* Read what there is, at most so many blocks. */
static void pump(struct capture *c, int blocks)
{
	static char block[BLOCK];

	while (blocks-- > 0) {
		ssize_t n = read(c->watch.fd, block, sizeof block);

		if (n == 0)
			shut(c);
		if (n <= 0)
			return;
		take(c, block, (size_t)n);
	}
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct capture *c = (struct capture *)(void *)w;

	(void)events;
	pump(c, TURN);
	capture_choke(c);
}

void capture_choke(struct capture *c)
{
	if (c->watch.fd >= 0)
		loop_watch(c->loop, &c->watch, c->lines && stream_full(c->to) ? 0 : EPOLLIN);
}

int capture_open(struct capture *c, struct loop *l, struct stream *to, bool lines, const void *tag,
                 size_t tag_len)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -1;
	/* Ours alone: the command's end is another open file. */
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	c->watch = (struct watch){.fd = fd[0], .ready = on_ready};
	c->loop = l;
	c->to = to;
	c->lines = lines;
	c->inside = false;
	c->spill = -1;
	c->spilled = 0;
	c->error = 0;
	c->text.n = 0;
	c->tag.n = 0;
	if (tag) {
		text_visible(&c->tag, tag, tag_len, tag_len * 4 + 4);
		text_str(&c->tag, "\t");
	}
	if (!loop_watch(l, &c->watch, EPOLLIN)) {
		int error = errno;

		shut(c);
		close(fd[1]);
		errno = error;
		return -1;
	}
	return fd[1];
}

static void show(struct capture *c)
{
	struct chunks chunks = {NULL, NULL};

	if (c->spill >= 0) {
		chunks_add_file(&chunks, c->spill, c->spilled);
		stream_append(c->to, &chunks);
	} else {
		stream_write(c->to, c->text.bytes, c->text.n);
	}
}

static void keep(struct capture *c, struct chunks *kept)
{
	int error = c->spill >= 0 ? spool_add_file(kept, c->spill, c->spilled)
	                          : spool_add(kept, c->text.bytes, c->text.n);

	if (!c->error)
		c->error = error;
}

void capture_end(struct capture *c, struct chunks *kept)
{
	if (c->watch.fd >= 0)
		pump(c, LAST);
	shut(c);
	/* A line without an end would run into the next one. */
	if (c->inside && (c->lines || c->tag.n > 0))
		text_str(&c->text, "\n");
	if (c->spill >= 0)
		spill(c);
	if (kept)
		keep(c, kept);
	else
		show(c);
	c->spill = -1;
	c->text.n = 0;
}

void capture_drop(struct capture *c)
{
	shut(c);
	if (c->spill >= 0)
		close(c->spill);
	c->spill = -1;
}

void capture_release(struct capture *c)
{
	text_release(&c->text);
	text_release(&c->tag);
}
