/*
 * The server is loaded when it is asked for: a web server with its libraries takes as long to
 * start as all else, and most calls of this program add a key and end.
 */
#include "cli/web.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wq/http.h>

#include "cli/parse.h"

#define LIBRARY "libwq-http.so." WQ_SOVERSION

static struct {
	wq_http *server;
	int (*stop)(wq_http *h);
} web;

static int start(struct run *r, const wq_http_options *options)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int (*begin)(wq_http * *out, const wq_http_options *o);
	int (*port)(const wq_http *h);
	const char *host = options->address ? options->address : "127.0.0.1";
	int rc;

	if (!library) {
		say("--http needs %s, which is not there: %s", LIBRARY, dlerror());
		return WQ_EIO;
	}
	/* As POSIX wants it, who knows that ISO C does not allow the cast. */
	*(void **)(&begin) = dlsym(library, "wq_http_start");
	*(void **)(&web.stop) = dlsym(library, "wq_http_stop");
	*(void **)(&port) = dlsym(library, "wq_http_port");
	if (!begin || !web.stop || !port) {
		say("%s is of another version", LIBRARY);
		return WQ_EVERSION;
	}
	errno = 0;
	rc = begin(&web.server, options);
	if (rc != WQ_OK)
		say("--http %s: %s", r->opt->http,
		    rc == WQ_EIO && errno ? strerror(errno)
		    : rc == WQ_EINVAL     ? "an IPv4 or IPv6 address is wanted, not a name"
		                          : wq_strerror(rc));
	else if (!r->opt->quiet)
		say(strchr(host, ':') ? "http://[%s]:%d/ shows this run"
		                      : "http://%s:%d/ shows this run",
		    host, port(web.server));
	return rc;
}

bool web_open(struct run *r)
{
	wq_http_options options = {.registry = r->registry};
	char *host;
	int rc;

	if (!r->opt->http)
		return true;
	if (!parse_address(r->opt->http, &host, &options.port))
		return false;
	options.address = host;
	rc = start(r, &options);
	free(host);
	return rc == WQ_OK;
}

void web_close(void)
{
	if (web.server)
		web.stop(web.server);
	web.server = NULL;
}

bool web_file_open(struct run *r)
{
	if (!r->opt->metrics_file || replace_open(&r->metrics, r->opt->metrics_file))
		return true;
	say("%s: %s", r->opt->metrics_file, strerror(errno));
	return false;
}

static int put(void *ctx, const char *text, size_t n)
{
	replace_write(ctx, text, n);
	return 0;
}

void web_file_write(struct run *r)
{
	if (!r->metrics.path)
		return;
	if (wq_metrics_write(r->registry, WQ_PROMETHEUS, put, &r->metrics) != WQ_OK ||
	    !replace_commit(&r->metrics)) {
		say("%s: %s", r->opt->metrics_file, strerror(errno));
		r->trouble = true;
	}
	replace_release(&r->metrics);
}
