/*
 * The server: one thread, which waits for all connections at once and answers from memory.
 * It alone touches the pictures, the listings and the visitors, so they need no lock. Walks over
 * the keys of a queue are another thread's (walker.h): who did not ask for one does not wait.
 *
 * libmicrohttpd reads and writes; its loop is driven from here, because its own thread
 * would leave no place to look for connections that are too slow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <wq/http.h>

#include "http/accept.h"
#include "http/answer.h"
#include "http/hosts.h"
#include "http/listings.h"
#include "http/page.h"
#include "http/pictures.h"
#include "http/port.h"
#include "http/query.h"
#include "http/thread.h"
#include "http/visitors.h"

enum {
	CONNECTIONS = 64,
	TIMEOUT_S = 10,
	CONNECTION_BYTES = 16 << 10, /* a request with all its headers, and the answer's */
	SWEEP_MS = 250
};

struct wq_http {
	wq_registry *registry;       /* I: set at init */
	struct MHD_Daemon *daemon;   /* I */
	struct MHD_Response *page;   /* I */
	struct MHD_Response *health; /* I */
	struct wq__hosts hosts;      /* I */
	pthread_t thread;            /* I */
	int stop_fd;                 /* I; an eventfd, readable: end */
	int listen_fd;               /* I */
	int epoll_fd;                /* I; the daemon's */
	int port;                    /* I */
	pid_t pid;                   /* I; whose threads serve */
	/* Of the thread alone. */
	struct wq__visitors visitors;
	struct wq__pictures pictures;
	struct wq__listings listings;
};

/* ---- paths ------------------------------------------------------------------ */

struct parameters {
	struct wq__query q;
	const char *wrong;
};

static enum MHD_Result take_parameter(void *cls, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
	struct parameters *p = cls;

	(void)kind;
	p->wrong = wq__query_take(&p->q, name, value);
	return p->wrong ? MHD_NO : MHD_YES;
}

static struct wq__answer ask_for_keys(wq_http *h, struct MHD_Connection *c, const char *name,
                                      const struct wq__query *q)
{
	int64_t now = wq__http_now(), asked;
	struct wq__visitor *v = wq__visitors_patient(&h->visitors, c, now, &asked);
	struct wq__answer a = wq__listings_ask(&h->listings, name, q, asked, now, v != NULL);

	if (v && a.wait)
		wq__visitors_wait(v, c, asked);
	return a;
}

/* `name` is percent-encoded, of n bytes. */
static struct wq__answer answer_keys(wq_http *h, struct MHD_Connection *c, const char *name,
                                     size_t n)
{
	struct parameters p = {.q = {.limit = WQ__LIMIT_DEFAULT}};
	char plain[3 * WQ__NAME_MAX + 1];
	long len = wq__unescape(plain, sizeof plain - 1, name, n);

	if (len < 0)
		return wq__answer_error(MHD_HTTP_BAD_REQUEST,
		                        "the name of the queue is not percent-encoded");
	plain[len] = '\0';
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, take_parameter, &p);
	if (p.wrong)
		return wq__answer_error(MHD_HTTP_BAD_REQUEST, p.wrong);
	if (len == 0 || len > WQ__NAME_MAX || strlen(plain) != (size_t)len)
		return wq__answer_error(MHD_HTTP_NOT_FOUND, "no such queue");
	return ask_for_keys(h, c, plain, &p.q);
}

static enum MHD_Result take_accept(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
	(void)kind;
	if (value && strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) == 0)
		wq__accept_take(cls, value);
	return MHD_YES;
}

static struct wq__answer answer_metrics(wq_http *h, struct MHD_Connection *c)
{
	struct wq__accept a = {0};

	MHD_get_connection_values(c, MHD_HEADER_KIND, take_accept, &a);
	return wq__pictures_metrics(&h->pictures, h->registry,
	                            wq__accept_openmetrics(&a) ? WQ_OPENMETRICS : WQ_PROMETHEUS,
	                            wq__http_now());
}

static struct wq__answer answer(wq_http *h, struct MHD_Connection *c, const char *path)
{
	static const char before[] = "/api/queues/", after[] = "/keys";
	size_t nbefore = sizeof before - 1, nafter = sizeof after - 1, n = strlen(path);

	if (strcmp(path, "/") == 0)
		return (struct wq__answer){.code = MHD_HTTP_OK, .r = h->page};
	if (strcmp(path, "/healthz") == 0)
		return (struct wq__answer){.code = MHD_HTTP_OK, .r = h->health};
	if (strcmp(path, "/metrics") == 0)
		return answer_metrics(h, c);
	if (strcmp(path, "/api/queues") == 0)
		return wq__pictures_queues(&h->pictures, h->registry, wq__http_now());
	if (n > nbefore + nafter && memcmp(path, before, nbefore) == 0 &&
	    strcmp(path + n - nafter, after) == 0)
		return answer_keys(h, c, path + nbefore, n - nbefore - nafter);
	return wq__answer_error(MHD_HTTP_NOT_FOUND, "no such path");
}

static struct wq__answer refuse_method(void)
{
	struct wq__answer a =
	    wq__answer_error(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered");

	if (a.r)
		(void)MHD_add_response_header(a.r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return a;
}

struct asked {
	const struct wq__hosts *hosts;
	bool by_another_name;
};

static enum MHD_Result look_at_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
	struct asked *a = cls;

	(void)kind;
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
		a->by_another_name |= !wq__hosts_has(a->hosts, value ? value : "");
	return MHD_YES;
}

/* A request without a Host comes from no browser. */
static bool is_for_us(const wq_http *h, struct MHD_Connection *c)
{
	struct asked a = {.hosts = &h->hosts};

	MHD_get_connection_values(c, MHD_HEADER_KIND, look_at_header, &a);
	return !a.by_another_name;
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct wq__answer a)
{
	enum MHD_Result rc;

	if (a.wait)
		return MHD_YES;
	if (!a.r)
		return MHD_NO;
	rc = MHD_queue_response(c, a.code, a.r);
	if (a.once)
		MHD_destroy_response(a.r);
	wq__visitors_step(c, true);
	return rc;
}

/* ---- what libmicrohttpd calls ----------------------------------------------- */

static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_len, void **seen)
{
	static const char mark;

	(void)version;
	(void)body;
	/* Before the body is read: nobody wants it. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return send_answer(c, refuse_method());
	/* The first call is only for the headers; who answers then closes the connection. */
	if (!*seen) {
		*seen = (void *)(uintptr_t)&mark;
		return MHD_YES;
	}
	if (*body_len > 0)
		return MHD_NO;
	if (!is_for_us(cls, c))
		return send_answer(c, wq__answer_error(MHD_HTTP_MISDIRECTED_REQUEST,
		                                       "the server does not have that name"));
	return send_answer(c, answer(cls, c, path));
}

static void completed(void *cls, struct MHD_Connection *c, void **seen,
                      enum MHD_RequestTerminationCode code)
{
	(void)cls;
	(void)code;
	*seen = NULL;
	wq__visitors_step(c, false);
}

/* Leaves percent-encoding as it is: decoded once, "%2F" and "/" would look alike. */
static size_t keep_escaped(void *cls, struct MHD_Connection *c, char *s)
{
	(void)cls;
	(void)c;
	return strlen(s);
}

/* ---- the thread ------------------------------------------------------------- */

/* False: someone is there whom the machine has no room for. */
static bool let_in(wq_http *h)
{
	while (h->visitors.n < h->visitors.max) {
		int fd = wq__accept(h->listen_fd);

		if (fd < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		/* What fails is closed. */
		(void)MHD_add_connection(h->daemon, fd, NULL, 0);
	}
	return true;
}

/* Milliseconds; -1: for ever. Connections are looked through a few times a second. */
static int wait_for(wq_http *h, bool room)
{
	int wait_ms = h->visitors.n > 0 || !room ? SWEEP_MS : -1;
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(h->daemon, &ms) && (wait_ms < 0 || ms < (unsigned)wait_ms))
		wait_ms = ms < SWEEP_MS ? (int)ms : SWEEP_MS;
	return wait_ms;
}

static void *serve(void *arg)
{
	enum { STOP, LISTEN, CLIENTS, WALK, FDS };
	wq_http *h = arg;
	struct pollfd fds[FDS] = {
	    [STOP] = {.fd = h->stop_fd, .events = POLLIN},
	    [LISTEN] = {.events = POLLIN},
	    [CLIENTS] = {.fd = h->epoll_fd, .events = POLLIN},
	    [WALK] = {.fd = h->listings.walker.done_fd, .events = POLLIN},
	};
	bool room = true;

	while (!fds[STOP].revents) {
		/* Who cannot be let in waits outside: a descriptor below 0 is not looked at. */
		fds[LISTEN].fd = room && h->visitors.n < h->visitors.max ? h->listen_fd : -1;
		if (poll(fds, FDS, wait_for(h, room)) < 0)
			continue;
		room = !fds[LISTEN].revents || let_in(h);
		if (fds[WALK].revents && wq__listings_collect(&h->listings, wq__http_now()))
			wq__visitors_resume(&h->visitors);
		wq__visitors_sweep(&h->visitors);
		MHD_run(h->daemon);
	}
	return NULL;
}

/* ---- start and stop --------------------------------------------------------- */

/* Says why; returns the status. errno survives. */
__attribute__((format(printf, 2, 3))) static int fail(int status, const char *format, ...)
{
	char reason[WQ_ERROR_MAX];
	int saved = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	errno = saved;
	return wq_fail(status, reason);
}

static int start_daemon(wq_http *h)
{
	const union MHD_DaemonInfo *info;

	errno = 0;
	h->daemon =
	    MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
	                     NULL, NULL, handle, h, MHD_OPTION_CONNECTION_LIMIT,
	                     (unsigned)h->visitors.max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	                     (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
	                     MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_UNESCAPE_CALLBACK,
	                     keep_escaped, NULL, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
	                     MHD_OPTION_NOTIFY_CONNECTION, wq__visitors_notify, &h->visitors,
	                     MHD_OPTION_END);
	if (!h->daemon && (errno == EMFILE || errno == ENFILE))
		return fail(WQ_EIO, "libmicrohttpd cannot be started: %s", strerror(errno));
	if (!h->daemon)
		return WQ_ENOMEM;
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	h->epoll_fd = info ? info->epoll_fd : -1;
	return h->epoll_fd >= 0 ? WQ_OK : fail(WQ_EIO, "libmicrohttpd does not use epoll");
}

static int make_pages(wq_http *h)
{
	h->page = wq__response_static(wq__http_page, wq__http_page_len, WQ__TYPE_HTML);
	h->health = wq__response_static("ok\n", 3, WQ__TYPE_TEXT);
	/* The page is one file and asks nobody but this server. */
	if (h->page && h->health &&
	    MHD_add_response_header(h->page, "Content-Security-Policy",
	                            "default-src 'none'; script-src 'unsafe-inline'; "
	                            "style-src 'unsafe-inline'; connect-src 'self'; "
	                            "img-src data:; base-uri 'none'; form-action 'none'; "
	                            "frame-ancestors 'none'") &&
	    MHD_add_response_header(h->page, "Referrer-Policy", "no-referrer"))
		return WQ_OK;
	return WQ_ENOMEM;
}

/* errno survives. */
static void release(wq_http *h)
{
	int saved = errno;

	/* It does not end while one is suspended. */
	wq__visitors_resume(&h->visitors);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	if (h->page)
		MHD_destroy_response(h->page);
	if (h->health)
		MHD_destroy_response(h->health);
	if (h->stop_fd >= 0)
		close(h->stop_fd);
	if (h->listen_fd >= 0)
		close(h->listen_fd);
	wq__hosts_release(&h->hosts);
	wq__pictures_release(&h->pictures);
	wq__listings_release(&h->listings);
	wq__visitors_release(&h->visitors);
	(void)wq_registry_release(h->registry);
	free(h);
	errno = saved;
}

static int check(const wq_http_options *o)
{
	uint64_t reserved;

	if (!o)
		return fail(WQ_EINVAL, "the options are NULL");
	if (!o->registry)
		return fail(WQ_EINVAL, "there is no registry");
	reserved = o->reserved0;
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		reserved |= o->reserved[i];
	if (reserved != 0)
		return fail(WQ_EINVAL, "a reserved word of wq_http_options is not zero");
	return WQ_OK;
}

static int prepare(wq_http *h, const wq_http_options *o)
{
	const char *address = o->address ? o->address : "127.0.0.1";
	int rc = wq__hosts_init(&h->hosts, address, o->hosts);

	if (rc == WQ_EINVAL)
		return fail(rc, "a name in hosts is empty");
	if (rc != WQ_OK)
		return rc;
	h->listen_fd = wq__listen(address, o->port, &h->port);
	if (h->listen_fd == WQ_EINVAL)
		return fail(WQ_EINVAL, "\"%s\" is no IPv4 or IPv6 address", address);
	if (h->listen_fd < 0)
		return fail(WQ_EIO, "cannot listen on %s, port %u: %s", address, (unsigned)o->port,
		            strerror(errno));
	h->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->stop_fd < 0)
		return fail(WQ_EIO, "no event descriptor: %s", strerror(errno));
	rc = wq__visitors_init(&h->visitors, o->max_connections ? o->max_connections : CONNECTIONS,
	                       o->timeout_s ? o->timeout_s : TIMEOUT_S);
	if (rc == WQ_OK)
		rc = make_pages(h);
	if (rc == WQ_OK)
		rc = start_daemon(h);
	if (rc != WQ_OK)
		return rc;
	rc = wq__listings_init(&h->listings, h->registry);
	return rc == WQ_EIO ? fail(rc, "no event descriptor: %s", strerror(errno)) : rc;
}

static int start(wq_http **out, const wq_http_options *options)
{
	wq_http *h;
	int rc;

	if (!out)
		return fail(WQ_EINVAL, "out is NULL");
	if (check(options) != WQ_OK)
		return WQ_EINVAL;
	h = calloc(1, sizeof *h);
	if (!h)
		return wq_fail(WQ_ENOMEM, NULL);
	h->registry = options->registry;
	(void)wq_registry_hold(h->registry);
	h->listen_fd = h->stop_fd = -1;
	h->pid = getpid();
	rc = prepare(h, options);
	if (rc == WQ_OK)
		rc = wq__http_thread(&h->thread, serve, h, "wq-http");
	if (rc == WQ_ENOMEM)
		wq_fail(rc, NULL);
	if (rc != WQ_OK) {
		release(h);
		return rc;
	}
	*out = h;
	return WQ_OK;
}

/* No call is a cancellation point, but much of what this one calls is. */
int wq_http_start(wq_http **out, const wq_http_options *options)
{
	int before, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	rc = start(out, options);
	pthread_setcancelstate(before, NULL);
	return rc;
}

int wq_http_port(const wq_http *h)
{
	return h ? h->port : WQ_EINVAL;
}

/*
 * The child of a fork. Its threads are not here, and its eventfd and its epoll set are the parent's,
 * too: whatever is done to them is done to the parent's server.
 */
static void abandon(wq_http *h)
{
	if (h->stop_fd >= 0)
		close(h->stop_fd);
	if (h->listen_fd >= 0)
		close(h->listen_fd);
	h->stop_fd = h->listen_fd = -1;
}

static void end(wq_http *h)
{
	uint64_t one = 1;

	while (write(h->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	pthread_join(h->thread, NULL);
	release(h);
}

int wq_http_stop(wq_http *h)
{
	int before;

	if (!h)
		return WQ_OK;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (h->pid == getpid())
		end(h);
	else
		abandon(h);
	pthread_setcancelstate(before, NULL);
	return WQ_OK;
}
