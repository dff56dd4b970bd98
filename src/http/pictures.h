/* /metrics and /api/queues: pictures that all requests share, at most ten a second of each. */
#ifndef WQ_HTTP_PICTURES_H
#define WQ_HTTP_PICTURES_H

#include <wq/metrics.h>

#include "http/answer.h"

struct wq__picture {
	struct MHD_Response *r;
	int64_t taken_ns;
};

/* The server's thread alone uses it. All zero is empty. */
struct wq__pictures {
	struct wq__picture metrics[2]; /* by format */
	struct wq__picture queues;
};

struct wq__answer wq__pictures_metrics(struct wq__pictures *ps, wq_registry *r,
                                       enum wq_metrics_format format, int64_t now_ns);
struct wq__answer wq__pictures_queues(struct wq__pictures *ps, wq_registry *r, int64_t now_ns);
void wq__pictures_release(struct wq__pictures *ps);

#endif
