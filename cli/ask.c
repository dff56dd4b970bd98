/* Asking a run. */
#include "cli/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <wq/clock.h>

#include "cli/frame.h"
#include "cli/listen.h"
#include "cli/replace.h"
#include "cli/say.h"

enum { BLOCK = 65536 };

int64_t ask_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * WQ_SECOND + now.tv_nsec;
}

int ask_open(struct ask *a, const char *path)
{
	struct sockaddr_un to;

	*a = (struct ask){.fd = -1};
	if (!path)
		path = getenv("WQ_SOCKET");
	if (!path || *path == '\0') {
		say("which run? --socket PATH names its socket, or WQ_SOCKET in the environment");
		return EXIT_USAGE;
	}
	if (!listen_address(&to, path))
		return EXIT_TROUBLE;
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd < 0 || connect(a->fd, (const struct sockaddr *)&to, sizeof to) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			say("no run listens on %s", path);
		else
			say("%s: %s", path, strerror(errno));
		ask_close(a);
		return EXIT_TROUBLE;
	}
	/* Orders, not keys. A run that does not want us has written why. */
	(void)!send(a->fd, "", 1, MSG_NOSIGNAL);
	return EXIT_OK;
}

void ask_close(struct ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	text_release(&a->order);
	text_release(&a->in);
	text_release(&a->message);
}

/* ---- orders -------------------------------------------------------------- */

void ask_begin(struct ask *a, const char *name)
{
	a->order.n = 0;
	text_str(&a->order, name);
}

void ask_field(struct ask *a, const void *bytes, size_t n)
{
	text_add(&a->order, "", 1);
	text_add(&a->order, bytes, n);
}

void ask_str(struct ask *a, const char *s)
{
	ask_field(a, s, strlen(s));
}

bool ask_send(struct ask *a)
{
	struct text frame = {0};
	size_t at = 0;

	frame_put(&frame, 0, a->order.bytes, a->order.n);
	while (at < frame.n) {
		ssize_t n = send(a->fd, frame.bytes + at, frame.n - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? (size_t)n : 0;
	}
	text_release(&frame);
	return at > 0;
}

/* ---- answers ------------------------------------------------------------- */

static void fail(struct ask *a, int status, const char *bytes, size_t n)
{
	a->status = status;
	a->message.n = 0;
	text_add(&a->message, bytes, n);
	text_add(&a->message, "", 1);
}

static void fail_str(struct ask *a, int status, const char *s)
{
	fail(a, status, s, strlen(s));
}

/* False: there is no more, or not in time. */
static bool fill(struct ask *a)
{
	char block[BLOCK];
	ssize_t n;

	if (a->deadline_ns > 0) {
		struct pollfd p = {.fd = a->fd, .events = POLLIN};
		int64_t ms = (a->deadline_ns - ask_now() + WQ_MILLISECOND - 1) / WQ_MILLISECOND;
		int rc = poll(&p, 1, ms < 0 ? 0 : ms > 1000000 ? 1000000 : (int)ms);

		if (rc == 0 && ms <= 1000000) {
			a->timed_out = true;
			return false;
		}
		if (rc <= 0)
			return true;
	}
	n = recv(a->fd, block, sizeof block, 0);
	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (a->at > 0) {
		memmove(a->in.bytes, a->in.bytes + a->at, a->in.n - a->at);
		a->in.n -= a->at;
		a->at = 0;
	}
	text_add(&a->in, block, (size_t)n);
	return true;
}

/* Something that is no answer: one line that says why we are not wanted. */
static void complaint(struct ask *a)
{
	const char *line = a->in.bytes + a->at;
	size_t n = a->in.n - a->at;
	const char *end = memchr(line, '\n', n);

	if (end)
		n = (size_t)(end - line);
	if (n > 4 && memcmp(line, "wq: ", 4) == 0) {
		line += 4;
		n -= 4;
	}
	fail_str(a, EXIT_TROUBLE, shown(line, n));
}

bool ask_next(struct ask *a, const char **piece, size_t *n)
{
	ssize_t size;
	const char *payload;
	size_t len;

	a->status = EXIT_OK;
	*piece = "";
	*n = 0;
	for (;;) {
		size = frame_find(a->in.bytes + a->at, a->in.n - a->at, &payload, &len);
		if (size != 0)
			break;
		if (!fill(a)) {
			if (a->timed_out)
				fail_str(a, EXIT_LEFT, "the time is over");
			else
				fail_str(a, EXIT_TROUBLE, "the run has ended");
			a->gone = !a->timed_out;
			return false;
		}
	}
	if (size < 0 || len == 0) {
		complaint(a);
		return false;
	}
	a->at += (size_t)size;
	*piece = payload + 1;
	*n = len - 1;
	if (*payload == ANSWER_PIECE)
		return true;
	if (*payload != ANSWER_WELL) {
		const char *at = payload + 1, *end = payload + len;

		for (a->status = 0; at < end && *at >= '0' && *at <= '9' && a->status < 256; at++)
			a->status = a->status * 10 + (*at - '0');
		at += at < end && *at == ' ';
		fail(a, a->status, at, (size_t)(end - at));
	}
	return false;
}

int ask(struct ask *a)
{
	const char *piece;
	size_t n;

	ask_send(a);
	while (ask_next(a, &piece, &n))
		;
	return a->status;
}

int ask_say(struct ask *a)
{
	if (ask(a) != EXIT_OK)
		say("%s", a->message.bytes);
	return a->status;
}
