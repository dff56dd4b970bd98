/*
 * A small web server for metrics and a live page, in a separate library, libwq-http: link with
 * $(pkg-config --cflags --libs wq-http), or find_package(wq COMPONENTS http) and wq::wq_http.
 *
 *     wq_http *h;
 *     if (wq_http_start(&h, &(wq_http_options){.registry = r, .port = 9321}) < 0)
 *         fprintf(stderr, "%s\n", wq_last_error());
 *     ...
 *     wq_http_stop(h);
 *
 *   path                                          | answer
 *   ----------------------------------------------+---------------------------------------------
 *   /                                             | the page
 *   /metrics                                      | metrics; OpenMetrics if Accept prefers it
 *   /healthz                                      | ok
 *   /api/queues                                   | {"queues":[...]}: wq_snapshot_json() of each
 *   /api/queues/NAME/keys?state=S&limit=N&match=M | keys of a queue, see below
 *
 * The server answers GET and HEAD only. An error is {"error":"..."}. NAME, M: percent-encoded.
 *
 *   S       | keys, and which come first      || {"name":"pods",
 *   --------+---------------------------------||  "now_ns":..,    the queue's time at the walk
 *   (none)  | all; the oldest                 ||  "looked":..,    keys that were walked over
 *   queued  | queued; the oldest              ||  "found":..,     of those, how many match S and M
 *   running | held; the longest               ||  "keys":[{"key":..,"len":..,"state":["queued"],
 *   waiting | those that come due next        ||    "age_ns":..,"due_ns":..,"running_ns":..,
 *   left    | left over; the next to come due ||    "failures":..}]}
 *   failing | with failures; the most         ||
 *
 * N is 1 to 1000, by default 100. M selects keys that contain it, at most 256 bytes. A key is
 * shown as in a snapshot, its first 127 bytes; len is that of the whole key. age_ns is null for a
 * key that only waits, due_ns for one that does not wait for a time, running_ns if it is not held.
 * The state of a key that waits for a retry has "retrying", beside "waiting" or "left".
 *
 * The server has two threads. It caches its answers, so that all requests together, however many,
 * hold a queue's lock for less than 1 % of the time. Metrics and queues are at most 100 ms old. A
 * listing of keys walks over all keys: it is at most 1 s old if the walk takes less than 4 ms,
 * otherwise up to 250 times as old as the walk took, which is longer on a busy machine. A listing
 * that was not asked for recently may have to wait as long: the answer is 503, and Retry-After
 * says how many seconds. The server walks one queue at a time. A request for a listing waits at
 * most a second for it, then gets the last one, or a 503. Nothing else waits for a walk, neither
 * other requests nor adds, gets and dones; only wq_free() of the queue that is walked does.
 */
#ifndef WQ_HTTP_H
#define WQ_HTTP_H

#include <stdint.h>

#include <wq/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_http wq_http;

/* Options of wq_http_start(). The registry is required; the rest may be zero. */
typedef struct wq_http_options {
	/* Held until the server stops: wq_registry_free() answers WQ_EBUSY. */
	wq_registry *registry;
	/* An IPv4 or IPv6 address; NULL: 127.0.0.1. Everyone who can reach it can read keys. */
	const char *address;
	uint16_t port;      /* 0: any free port, see wq_http_port() */
	uint16_t reserved0; /* must be zero */
	/*
	 * The most connections at once; 0: 64. Further ones wait; when all are in use,
	 * connections that are idle or slow are closed after 1 s.
	 */
	uint32_t max_connections;
	/* Seconds in which a whole request must arrive, and its answer be read; 0: 10. */
	uint32_t timeout_s;
	/*
	 * Host names of the server, for example behind a proxy; NULL ends the list. A request
	 * whose Host is none of them, nor localhost, a loopback address or `address`, with or
	 * without a port, is answered with 421. This keeps web sites whose DNS name resolves to
	 * this server from reading it through a browser that can reach it (DNS rebinding). NULL:
	 * no further names on a loopback address; on any other, Host is not checked.
	 */
	const char *const *hosts;
	uint64_t reserved[5]; /* must be zero */
} wq_http_options;

/*
 * Start a web server that shows the queues of a registry.
 *
 * Returns WQ_OK.
 *
 * Errors:
 *   WQ_EINVAL  out, options or the registry is NULL; not an address; an empty name in hosts; a
 *              reserved word is not zero
 *   WQ_ENOMEM  out of memory
 *   WQ_EIO     the address or port is not available; errno says why
 */
WQ_API WQ_MUST_CHECK int wq_http_start(wq_http **out, const wq_http_options *options);

/*
 * Get the port that a server listens on.
 *
 * Returns the port.
 *
 * Errors: WQ_EINVAL if h is NULL.
 */
WQ_API int wq_http_port(const wq_http *h);

/*
 * Stop a server, close its connections, and free it. NULL is allowed. In the child of a fork() it
 * does nothing: the server is the parent's.
 *
 * Returns WQ_OK.
 *
 * Blocks: until its threads have ended; a walk is cut short.
 */
WQ_API int wq_http_stop(wq_http *h);

#ifdef __cplusplus
}
#endif
#endif
