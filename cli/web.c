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

#include "cli/base/parse.h"

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
		    : rc == WQ_EINVAL     ? "expected an IPv4 or IPv6 address, not a name"
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

/* Tried, and made again when it is written: a run that is killed leaves nothing behind. */
bool web_file_open(struct run *r)
{
	struct replace file;

	if (!r->opt->metrics_file)
		return true;
	if (!replace_open(&file, r->opt->metrics_file, true)) {
		say("%s: %s", r->opt->metrics_file, target_error(errno));
		return false;
	}
	replace_release(&file);
	return true;
}

static int put(void *ctx, const char *text, size_t n)
{
	replace_write(ctx, text, n);
	return 0;
}

void web_file_write(struct run *r)
{
	struct replace file;
	bool written;

	if (!r->opt->metrics_file)
		return;
	written = replace_open(&file, r->opt->metrics_file, true);
	if (written) {
		int rc;

		file.wait_ns = r->opt->grace_ns;
		rc = wq_metrics_write(r->registry, WQ_PROMETHEUS, put, &file);
		errno = file.error != 0 ? file.error : ENOMEM;
		written = rc == WQ_OK && file.error == 0 && replace_commit(&file);

		int error = errno;

		replace_release(&file);
		errno = error;
	}
	if (!written) {
		say("%s: %s; the metrics are not written", r->opt->metrics_file,
		    target_error(errno));
		r->trouble = true;
	}
}
