/* Connections, looked through a few times a second: there are never many. */
#define _GNU_SOURCE
#include "http/visitors.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <wq/clock.h>
#include <wq/status.h>

/* When all places are taken, who is slow makes room. */
static const int64_t crowded_ns = WQ_SECOND;
/* How long a request waits for a walk. */
static const int64_t patience_ns = WQ_SECOND;

int64_t wq__http_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

int wq__visitors_init(struct wq__visitors *vs, uint32_t max, uint32_t timeout_s)
{
	*vs = (struct wq__visitors){.max = max, .timeout_ns = timeout_s * WQ_SECOND};
	vs->at = calloc(max, sizeof *vs->at);
	if (!vs->at)
		return WQ_ENOMEM;
	for (uint32_t i = 0; i < max; i++)
		vs->at[i].fd = -1;
	return WQ_OK;
}

void wq__visitors_release(struct wq__visitors *vs)
{
	free(vs->at);
}

static struct wq__visitor *enter(struct wq__visitors *vs, int fd)
{
	for (uint32_t i = 0; i < vs->max; i++) {
		if (vs->at[i].fd < 0) {
			vs->at[i] = (struct wq__visitor){.fd = fd, .since_ns = wq__http_now()};
			vs->n++;
			return &vs->at[i];
		}
	}
	return NULL;
}

void wq__visitors_notify(void *cls, struct MHD_Connection *c, void **context,
                         enum MHD_ConnectionNotificationCode code)
{
	struct wq__visitors *vs = cls;
	struct wq__visitor *v = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
		    MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

		*context = info ? enter(vs, info->connect_fd) : NULL;
	} else if (v) {
		*v = (struct wq__visitor){.fd = -1};
		vs->n--;
	}
}

static struct wq__visitor *visitor_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void wq__visitors_step(struct MHD_Connection *c, bool taking)
{
	struct wq__visitor *v = visitor_of(c);

	if (v) {
		v->since_ns = wq__http_now();
		v->taking = taking;
		v->asked_ns = 0;
	}
}

struct wq__visitor *wq__visitors_patient(const struct wq__visitors *vs, struct MHD_Connection *c,
                                         int64_t now_ns, int64_t *asked_ns)
{
	struct wq__visitor *v = visitor_of(c);
	uint32_t waiting = 0;

	*asked_ns = v && v->asked_ns != 0 ? v->asked_ns : now_ns;
	if (!v)
		return NULL;
	if (v->asked_ns != 0)
		return now_ns - v->asked_ns < patience_ns ? v : NULL;
	for (uint32_t i = 0; i < vs->max; i++)
		waiting += vs->at[i].asked_ns != 0;
	return waiting < (vs->max + 1) / 2 ? v : NULL;
}

void wq__visitors_wait(struct wq__visitor *v, struct MHD_Connection *c, int64_t asked_ns)
{
	v->asked_ns = asked_ns;
	v->suspended = c;
	MHD_suspend_connection(c);
}

static void resume(struct wq__visitor *v)
{
	struct MHD_Connection *c = v->suspended;

	v->suspended = NULL;
	MHD_resume_connection(c);
}

void wq__visitors_resume(struct wq__visitors *vs)
{
	for (uint32_t i = 0; vs->at && i < vs->max; i++)
		if (vs->at[i].suspended)
			resume(&vs->at[i]);
}

/* libmicrohttpd sees the end of it and closes. */
static void hang_up(const struct wq__visitor *v)
{
	struct linger at_once = {.l_onoff = 1};

	/* What is not taken would stay with the kernel, and the connection with it. */
	if (v->taking)
		(void)setsockopt(v->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	(void)shutdown(v->fd, SHUT_RDWR);
}

void wq__visitors_sweep(struct wq__visitors *vs)
{
	int64_t now = wq__http_now();
	int64_t limit = vs->timeout_ns;

	if (vs->n == vs->max && limit > crowded_ns)
		limit = crowded_ns;
	for (uint32_t i = 0; i < vs->max; i++) {
		struct wq__visitor *v = &vs->at[i];

		if (v->suspended) {
			if (now - v->asked_ns >= patience_ns)
				resume(v);
		} else if (v->fd >= 0 && now - v->since_ns > limit) {
			hang_up(v);
			v->since_ns = now;
		}
	}
}
