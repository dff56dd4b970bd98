/* Responses of libmicrohttpd, with the headers that all of them carry. */
#include "http/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <wq/clock.h>

static struct MHD_Response *with_headers(struct MHD_Response *r, const char *type)
{
	if (!r)
		return NULL;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
	    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
	    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff"))
		return r;
	MHD_destroy_response(r);
	return NULL;
}

struct MHD_Response *wq__response_of(struct wq__buffer *t, const char *type)
{
	struct MHD_Response *r = NULL;

	if (!t->failed)
		r = MHD_create_response_from_buffer(t->n, t->bytes, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		wq__buffer_release(t);
		return NULL;
	}
	*t = (struct wq__buffer){0};
	return with_headers(r, type);
}

struct MHD_Response *wq__response_static(const void *bytes, size_t n, const char *type)
{
	/* It is not written to: the parameter lacks a const. */
	return with_headers(MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes,
	                                                    MHD_RESPMEM_PERSISTENT),
	                    type);
}

struct wq__answer wq__answer_error(unsigned code, const char *what)
{
	struct wq__buffer t = {0};

	wq__buffer_add(&t, "{\"error\":");
	wq__buffer_string(&t, what, strlen(what));
	wq__buffer_add(&t, "}\n");
	return (
	    struct wq__answer){.code = code, .r = wq__response_of(&t, WQ__TYPE_JSON), .once = true};
}

struct wq__answer wq__answer_later(const char *what, int64_t wait_ns)
{
	struct wq__answer a = wq__answer_error(MHD_HTTP_SERVICE_UNAVAILABLE, what);
	char seconds[32];

	snprintf(seconds, sizeof seconds, "%" PRId64, wait_ns / WQ_SECOND + 1);
	/* Without it the answer is as good. */
	if (a.r)
		(void)MHD_add_response_header(a.r, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	return a;
}
