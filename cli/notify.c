/*
 * systemd's protocol by hand, as sd_notify(3) proposes: datagrams of NAME=VALUE lines to the socket
 * that $NOTIFY_SOCKET names.
 *
 *   READY=1, STATUS=...        once everything is set up
 *   STATUS=...                 when the counts have changed, once a second at most
 *   WATCHDOG=1                 twice in each $WATCHDOG_USEC: the loop turns
 *   STOPPING=1                 once a signal or an order ends the run; the end of input does not:
 *                              what is left then is work like any other, not a delay of the stop
 *   EXTEND_TIMEOUT_USEC=...    from then on: commands may take longer than the manager's patience
 *
 * Nothing waits for the manager. While it does not read, what is due stays due and is sent later.
 */
#include "cli/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/base/parse.h"

#define AGAIN (WQ_SECOND / 10)
#define STATUS WQ_SECOND
#define EXTEND (5 * WQ_SECOND)
#define EXTEND_BY "15000000"

struct notify {
	int fd;
	socklen_t len;
	struct sockaddr_un to;
	bool ready, stopping;    /* was told */
	int64_t watchdog_ns;     /* 0: nobody watches */
	int64_t alive_ns;        /* when the next sign of life is due, */
	int64_t extend_ns;       /* the next extension; WQ_NEVER: none, */
	int64_t status_ns;       /* the next status, if it has changed */
	int64_t again_ns;        /* nobody reads: no message before; 0: somebody does */
	struct text said, draft; /* the last status, and the one that may follow */
	struct text message;
};

/* ---- who is told --------------------------------------------------------- */

/* A path, or a name in the abstract space, which begins with @. */
static bool address(struct notify *n, const char *socket)
{
	size_t len = strlen(socket);

	if ((socket[0] != '/' && socket[0] != '@') || len < 2 || len >= sizeof n->to.sun_path)
		return false;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, socket, len);
	/* A path ends with NUL, a name with its length. */
	n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (socket[0] == '/'));
	if (socket[0] == '@')
		n->to.sun_path[0] = '\0';
	return true;
}

/* 0: nobody watches, or another process. */
static int64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t n;

	if (pid && (!parse_count(pid, 1, INT32_MAX, &n) || n != (uint64_t)getpid()))
		return 0;
	if (!usec || !parse_count(usec, 1, (uint64_t)(WQ_NEVER / 1000), &n))
		return 0;
	return (int64_t)n * 1000 / 2;
}

void notify_open(struct run *r)
{
	const char *socket_name = getenv("NOTIFY_SOCKET");
	struct notify *n;

	if (!socket_name || *socket_name == '\0')
		return;
	n = grow(NULL, sizeof *n);
	*n = (struct notify){.extend_ns = WQ_NEVER, .watchdog_ns = watchdog_ns()};
	if (!address(n, socket_name)) {
		say("NOTIFY_SOCKET=%s: expected the path of a socket, or @ and a name",
		    shown(socket_name, strlen(socket_name)));
		free(n);
		return;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (n->fd < 0) {
		say("NOTIFY_SOCKET: %s", strerror(errno));
		free(n);
		return;
	}
	r->notify = n;
}

void notify_close(struct run *r)
{
	struct notify *n = r->notify;

	if (!n)
		return;
	close(n->fd);
	text_release(&n->said);
	text_release(&n->draft);
	text_release(&n->message);
	free(n);
	r->notify = NULL;
}

/* ---- what it is told ----------------------------------------------------- */

static const char *doing(const struct run *r)
{
	switch (r->phase) {
	case OPEN:
		return r->paused ? "paused: " : "";
	case ENDING:
		return "finishing: ";
	case DRAINING:
		return "draining: ";
	default:
		return "stopping: ";
	}
}

static void describe(const struct run *r, struct text *t)
{
	wq_snapshot s;

	t->n = 0;
	if (wq_snapshot_take(r->q, &s) != WQ_OK)
		return;
	text_print(t,
	           "STATUS=%s%" PRIu64 " done, %" PRIu32 " running, %" PRIu64 " queued, %" PRIu64
	           " waiting, %" PRIu64 " dead\n",
	           doing(r), r->count.done, r->held, s.queued, s.waiting, r->count.dead);
}

/* Ended by a signal, wq stop or wq drain: with a socket nothing else leaves OPEN. */
static bool is_stopping(const struct run *r)
{
	return r->phase >= DRAINING || (r->phase == ENDING && r->control);
}

static bool is_news(const struct text *a, const struct text *b)
{
	return a->n > 0 && (a->n != b->n || memcmp(a->bytes, b->bytes, a->n) != 0);
}

/* Everything that is due, as one message. */
static void compose(struct notify *n, const struct run *r)
{
	n->message.n = n->draft.n = 0;
	if (!n->ready)
		text_str(&n->message, "READY=1\n");
	if (is_stopping(r) && !n->stopping)
		text_str(&n->message, "STOPPING=1\n");
	if (is_stopping(r) && (!n->stopping || r->now_ns >= n->extend_ns))
		text_str(&n->message, "EXTEND_TIMEOUT_USEC=" EXTEND_BY "\n");
	if (n->watchdog_ns > 0 && r->now_ns >= n->alive_ns)
		text_str(&n->message, "WATCHDOG=1\n");
	if (r->now_ns < n->status_ns && n->stopping == is_stopping(r))
		return;
	describe(r, &n->draft);
	if (is_news(&n->draft, &n->said))
		text_add(&n->message, n->draft.bytes, n->draft.n);
	else
		n->draft.n = 0;
}

/* The message has arrived: what it told is due no more. */
static void note(struct notify *n, const struct run *r)
{
	n->ready = true;
	if (n->watchdog_ns > 0 && r->now_ns >= n->alive_ns)
		n->alive_ns = r->now_ns + n->watchdog_ns;
	if (is_stopping(r) && (!n->stopping || r->now_ns >= n->extend_ns))
		n->extend_ns = r->now_ns + EXTEND;
	n->stopping = is_stopping(r);
	if (n->draft.n > 0) {
		n->said.n = 0;
		text_add(&n->said, n->draft.bytes, n->draft.n);
		n->status_ns = r->now_ns + STATUS;
	}
}

void notify_turn(struct run *r)
{
	struct notify *n = r->notify;

	if (!n || r->now_ns < n->again_ns)
		return;
	n->again_ns = 0;
	compose(n, r);
	if (n->message.n == 0)
		return;
	if (sendto(n->fd, n->message.bytes, n->message.n - 1, MSG_DONTWAIT | MSG_NOSIGNAL,
	           (const struct sockaddr *)&n->to, n->len) >= 0) {
		note(n, r);
	} else if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
		n->again_ns = r->now_ns + AGAIN;
	} else {
		say("NOTIFY_SOCKET: %s; the service manager is told nothing", strerror(errno));
		notify_close(r);
	}
}

void notify_ready(struct run *r)
{
	notify_turn(r);
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t notify_next_ns(const struct run *r)
{
	const struct notify *n = r->notify;
	int64_t next = WQ_NEVER;

	if (!n)
		return WQ_NEVER;
	if (n->again_ns > 0)
		return n->again_ns;
	if (n->watchdog_ns > 0)
		next = n->alive_ns;
	/* Counts change in turns of the loop alone: one look when the second is over will do. */
	if (n->status_ns > r->now_ns)
		next = min(next, n->status_ns);
	return min(next, n->extend_ns);
}
