/*
 * A small web server for metrics and a live page, in a library of its own, libwq-http.
 *
 *     wq_http *h;
 *     wq_http_start(&h, &(wq_http_options){.registry = r, .port = 9090});
 *     ...
 *     wq_http_stop(h);
 *
 *   path                                        | answer
 *   --------------------------------------------+-----------------------------------------------
 *   /                                           | the page
 *   /metrics                                    | metrics; OpenMetrics if Accept asks for it
 *   /healthz                                    | ok
 *   /api/queues                                 | {"queues":[...]}: wq_snapshot_json() of each
 *   /api/queues/NAME/keys?state=S&limit=N&match=M | {"name":..,"looked":..,"keys":[{"key":..,"state":[..],"age_ns":..,
 *                                               |  "due_ns":..,"running_ns":..,"failures":..}]}
 *
 * state is queued, running (the longest first), waiting (the next to come due first), left or failing
 * (the most failures first); left out: all. limit is 1 to 1000, 100 if left out. match: keys that contain it.
 * NAME and M are percent-encoded. The server answers GET and HEAD alone.
 *
 * It has a thread of its own. Requests are answered from pictures of the queues that are taken
 * at most every so often, however many ask: all requests together hold a queue's lock for
 * less than a hundredth of the time.
 */
#ifndef WQ_HTTP_H
#define WQ_HTTP_H

#include <stdint.h>

#include <wq/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_http wq_http;

/* The registry has to be given; the rest may be zero. */
typedef struct wq_http_options {
	wq_registry *registry; /* outlives the server */
	/* An IPv4 or IPv6 address; NULL: 127.0.0.1. Who may read keys is who can reach it. */
	const char *address;
	uint16_t port;            /* 0: one that is free, see wq_http_port() */
	uint16_t reserved0;       /* must be zero */
	uint32_t max_connections; /* 0: 64 */
	uint32_t timeout_s;       /* an idle or slow connection is dropped after that; 0: 10 */
	uint64_t reserved[6];     /* must be zero */
} wq_http_options;

/*
 * Start to serve. Returns WQ_OK, WQ_EINVAL (NULL, no registry, no address, a reserved word not zero),
 * WQ_ENOMEM, or WQ_EIO: the address or port cannot be had, errno says why.
 */
WQ_API int wq_http_start(wq_http **out, const wq_http_options *options);

/* The port it listens on; WQ_EINVAL for NULL. */
WQ_API int wq_http_port(const wq_http *h);

/* Ends the server, connections included, and frees it. WQ_OK or WQ_EINVAL. */
WQ_API int wq_http_stop(wq_http *h);

#ifdef __cplusplus
}
#endif
#endif
