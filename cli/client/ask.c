/* Asking a run. */
#include "cli/client/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <wq/clock.h>

#include "cli/base/say.h"
#include "cli/files/replace.h"
#include "cli/socket/frame.h"
#include "cli/socket/listen.h"
#include "cli/socket/place.h"

enum { BLOCK = 65536 };

#define PATIENCE (10 * WQ_SECOND)

int64_t ask_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * WQ_SECOND + now.tv_nsec;
}

/* ---- time ---------------------------------------------------------------- */

/* When it has taken too long; 0: never. */
static int64_t end_of(const struct ask *a)
{
	int64_t silence =
	    a->patience_ns > 0 && !(a->waits && a->heard) ? a->sign_ns + a->patience_ns : 0;

	if (a->deadline_ns == 0 || silence == 0)
		return a->deadline_ns + silence;
	return a->deadline_ns < silence ? a->deadline_ns : silence;
}

/* Until that can be done with the socket; false: it takes too long. */
static bool ready(struct ask *a, short events)
{
	for (;;) {
		struct pollfd p = {.fd = a->fd, .events = events};
		int64_t end = end_of(a), left = end - ask_now();
		int64_t ms = end == 0 ? -1 : left < 0 ? 0 : left / WQ_MILLISECOND + 1;
		int rc = poll(&p, 1, ms > 1000000 ? 1000000 : (int)ms);

		if (rc > 0 || (rc < 0 && errno != EINTR))
			return true;
		if (end != 0 && ask_now() >= end)
			break;
	}
	a->timed_out = true;
	return false;
}

/* What to say when it does. */
static void too_long(const struct ask *a, struct text *t)
{
	struct text span = {0};

	text_span(&span, a->timeout_ns > 0 ? a->timeout_ns : a->patience_ns);
	if (a->heard)
		text_print(t, "timed out after %.*s", (int)span.n, span.bytes);
	else
		text_print(t,
		           "the run at %s does not answer after %.*s: it is stopped or overloaded",
		           shown(a->path, strlen(a->path)), (int)span.n, span.bytes);
	text_release(&span);
}

/* ---- connecting ---------------------------------------------------------- */

/* connect() waits while the run's backlog is full, and minds the time to send for that. */
static bool reach(struct ask *a, const struct sockaddr_un *to)
{
	int64_t end = end_of(a), left = end - ask_now();
	struct timeval tv = {
	    .tv_sec = left / WQ_SECOND,
	    .tv_usec = left > 0 ? left % WQ_SECOND / 1000 + 1 : 1,
	};

	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd < 0)
		return false;
	if (end != 0)
		setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
	return connect(a->fd, (const struct sockaddr *)to, sizeof *to) == 0;
}

static int unreachable(struct ask *a)
{
	struct text t = {0};
	int status = EXIT_TROUBLE;

	if (errno == EAGAIN) {
		too_long(a, &t);
		status = EXIT_LEFT;
	} else if (a->by_default && (errno == ENOENT || errno == ECONNREFUSED)) {
		text_print(&t,
		           "no run listens on %s; name another by --socket=NAME or PATH, or by "
		           "WQ_SOCKET",
		           a->path);
	} else if (errno == ENOENT || errno == ECONNREFUSED) {
		text_print(&t, "no run listens on %s", a->path);
	} else {
		text_print(&t, "%s: %s", a->path, strerror(errno));
	}
	say("%.*s", (int)t.n, t.bytes);
	text_release(&t);
	return status;
}

/* Which run is it? EXIT_OK, or an exit status after a message. */
static int find_run(struct ask *a, const char *given)
{
	struct text path = {0};

	/* An empty --socket is a mistake, and not the default. */
	bool empty = given && *given == '\0';

	if (!given)
		given = getenv("WQ_SOCKET");
	a->by_default = !given || *given == '\0';
	if (empty || (a->by_default && !place_exists())) {
		say("no run is named: use --socket=NAME or PATH, or WQ_SOCKET");
		return EXIT_USAGE;
	}
	if (!place_path(a->by_default ? PLACE_DEFAULT : given, &path)) {
		text_release(&path);
		return EXIT_USAGE;
	}
	a->path = path.bytes;
	return EXIT_OK;
}

int ask_open(struct ask *a, const char *given, int64_t timeout_ns)
{
	struct sockaddr_un to;
	int status;

	*a = (struct ask){.fd = -1, .sign_ns = ask_now()};
	if (timeout_ns > 0) {
		a->timeout_ns = timeout_ns;
		a->deadline_ns = a->sign_ns + timeout_ns;
	}
	a->patience_ns = timeout_ns < 0 ? PATIENCE : 0;
	status = find_run(a, given);
	if (status != EXIT_OK)
		return status;
	if (!listen_address(&to, a->path)) {
		ask_close(a);
		return EXIT_TROUBLE;
	}
	if (!reach(a, &to)) {
		status = unreachable(a);
		ask_close(a);
		return status;
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
	free(a->path);
	a->path = NULL;
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

	a->heard = false;
	a->sign_ns = ask_now();
	frame_put(&frame, 0, a->order.bytes, a->order.n);
	while (at < frame.n && ready(a, POLLOUT)) {
		ssize_t n =
		    send(a->fd, frame.bytes + at, frame.n - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			break;
		if (n > 0)
			a->sign_ns = ask_now();
		at += n > 0 ? (size_t)n : 0;
	}
	text_release(&frame);
	return at > 0;
}

/* ---- answers ------------------------------------------------------------- */

/* The message is a run's, perhaps, and that another user's: a terminal must not obey it. */
static void fail(struct ask *a, int status, const char *bytes, size_t n)
{
	a->status = status;
	a->message.n = 0;
	text_visible(&a->message, bytes, n, 4 * n);
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

	if (a->timed_out || !ready(a, POLLIN))
		return false;
	n = recv(a->fd, block, sizeof block, MSG_DONTWAIT);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	a->sign_ns = ask_now();
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

/* There is no answer. */
static void silent(struct ask *a)
{
	struct text t = {0};

	a->gone = !a->timed_out;
	if (a->timed_out)
		too_long(a, &t);
	else
		text_str(&t, "the run has ended");
	fail(a, a->timed_out ? EXIT_LEFT : EXIT_TROUBLE, t.bytes, t.n);
	text_release(&t);
}

/* An exit status, a space, a message. Whatever else it is, it is no success. */
static void refused(struct ask *a, const char *at, const char *end)
{
	int status = 0;

	for (; at < end && *at >= '0' && *at <= '9' && status < 256; at++)
		status = status * 10 + (*at - '0');
	at += at < end && *at == ' ';
	if (at == end)
		fail_str(a, EXIT_TROUBLE, "the run's answer makes no sense");
	else
		fail(a, status > 0 && status < 256 ? status : EXIT_TROUBLE, at, (size_t)(end - at));
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
			silent(a);
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
	a->heard = true;
	if (*payload == ANSWER_PIECE)
		return true;
	if (*payload != ANSWER_WELL)
		refused(a, payload + 1, payload + len);
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
