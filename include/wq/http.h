/*
 * A small web server for metrics and a live page, in a library of its own, libwq-http: link with
 * $(pkg-config --cflags --libs wq-http), or find_package(wq COMPONENTS http) and wq::wq_http.
 *
 *     wq_http *h;
 *     wq_http_start(&h, &(wq_http_options){.registry = r, .port = 9321});
 *     ...
 *     wq_http_stop(h);
 *
 *   path                                        | answer
 *   --------------------------------------------+-----------------------------------------------
 *   /                                           | the page
 *   /metrics                                    | metrics; OpenMetrics if Accept prefers it
 *   /healthz                                    | ok
 *   /api/queues                                 | {"queues":[...]}: wq_snapshot_json() of each
 *   /api/queues/NAME/keys?state=S&limit=N&match=M | keys of a queue, see below
 *
 * The server answers GET and HEAD alone. An error is {"error":"..."}. NAME, M: percent-encoded.
 *
 *   S       | keys, and which come first      || {"name":"pods",
 *   --------+---------------------------------||  "now_ns":..,    the queue's time at the walk
 *   (none)  | all; the oldest                 ||  "looked":..,    keys that were walked over
 *   queued  | in line; the oldest             ||  "found":..,     of those, how many S and M fit
 *   running | held; the longest               ||  "keys":[{"key":..,"len":..,"state":["queued"],
 *   waiting | those that come due next        ||    "age_ns":..,"due_ns":..,"running_ns":..,
 *   left    | left over; the next to come due ||    "failures":..}]}
 *   failing | with failures; the most         ||
 *
 * N is 1 to 1000, 100 if left out. M: keys that contain it, at most 256 bytes. A key is shown as in
 * a snapshot, its first 127 bytes; len is of the whole. age_ns is null for a key that only waits,
 * due_ns for one that waits for no time, running_ns for one that is not held. "retrying" stands beside
 * "waiting" or "left" for a key that waits for a retry, not for a delay.
 *
 * It has two threads of its own. Requests are answered from pictures of the queues that are taken
 * at most every so often, however many ask: all requests together hold a queue's lock for
 * less than a hundredth of the time, by the clock. Metrics and queues are at most 100 ms old. A
 * listing of keys is a walk over all of them: it is 1 s old at most where that takes less than
 * 4 ms, else up to 250 times as old as the walk took, which is longer on a busy machine; a
 * listing that nobody has asked for lately may have to wait as long: 503, Retry-After says how
 * many seconds. One queue is walked at a time; who asks for a listing waits a second for it at
 * most, then gets the last one, or a 503. Nobody else waits for a walk: other requests do not, nor
 * adds, gets and dones; only wq_free() of the queue that is walked does.
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
	/* Held until the server is stopped: wq_registry_free() answers WQ_EBUSY. */
	wq_registry *registry;
	/* An IPv4 or IPv6 address; NULL: 127.0.0.1. Who may read keys is who can reach it. */
	const char *address;
	uint16_t port;      /* 0: one that is free, see wq_http_port() */
	uint16_t reserved0; /* must be zero */
	/* 0: 64. Who comes later waits; when all are taken, who is idle or slow for 1 s is dropped. */
	uint32_t max_connections;
	/* A whole request has to arrive, and its answer to be taken, within that; 0: 10. */
	uint32_t timeout_s;
	/*
	 * Names by which browsers reach the server, behind a proxy say; NULL ends them. A request
	 * whose Host is none of them, nor localhost, a loopback address or `address`, with or
	 * without a port, is answered with 421: so no web site that has a name of its own lead here
	 * can read the server through the browser of somebody who can reach it. NULL: no further
	 * names on a loopback address; on any other, Host is not looked at.
	 */
	const char *const *hosts;
	uint64_t reserved[5]; /* must be zero */
} wq_http_options;

/*
 * Start to serve. Returns WQ_OK, WQ_EINVAL (NULL, no registry, not an address, an empty name in
 * hosts, a reserved word not zero), WQ_ENOMEM, or WQ_EIO: the address or port cannot be had, errno
 * says why.
 */
WQ_API int wq_http_start(wq_http **out, const wq_http_options *options);

/* The port it listens on; WQ_EINVAL for NULL. */
WQ_API int wq_http_port(const wq_http *h);

/*
 * Ends the server, connections included, and frees it. Returns WQ_OK, also for NULL. Blocks: until its
 * threads have ended; a walk is cut short.
 */
WQ_API int wq_http_stop(wq_http *h);

#ifdef __cplusplus
}
#endif
#endif
