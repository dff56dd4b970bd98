/* What a request is answered with. */
#ifndef WQ_HTTP_ANSWER_H
#define WQ_HTTP_ANSWER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/buffer.h"

#define WQ__TYPE_TEXT "text/plain; charset=utf-8"
#define WQ__TYPE_JSON "application/json"
#define WQ__TYPE_HTML "text/html; charset=utf-8"

struct wq__answer {
	unsigned code;
	struct MHD_Response *r; /* NULL: out of memory, the connection is dropped */
	bool once;              /* not kept for the next request */
	bool wait;              /* there is none yet: ask again when a walk has ended */
};

/* A response takes the memory of the text, also when it fails: NULL then. */
struct MHD_Response *wq__response_of(struct wq__buffer *t, const char *type);
/* Of bytes that outlive it. */
struct MHD_Response *wq__response_static(const void *bytes, size_t n, const char *type);
/* {"error":"..."} */
struct wq__answer wq__answer_error(unsigned code, const char *what);
/* 503, with Retry-After. */
struct wq__answer wq__answer_later(const char *what, int64_t wait_ns);

#endif
