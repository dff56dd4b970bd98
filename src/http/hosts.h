/*
 * The names that the server answers to. A web site can have its own name resolve to 127.0.0.1; the
 * browser then lets it read what the server says, but still sends that name along.
 */
#ifndef WQ_HTTP_HOSTS_H
#define WQ_HTTP_HOSTS_H

#include <stdbool.h>

struct wq__hosts {
	char *names; /* each ends with a NUL, the last with two; NULL: any will do */
};

/*
 * Of a server on that address. `names` ends with NULL, or is NULL: then any name will do unless the
 * address is a loopback one. WQ_OK, WQ_EINVAL (an empty name) or WQ_ENOMEM.
 */
int wq__hosts_init(struct wq__hosts *h, const char *address, const char *const *names);
void wq__hosts_release(struct wq__hosts *h);

/* `host` is what a request's Host says: a name, or an IPv6 address in brackets, perhaps a port. */
bool wq__hosts_has(const struct wq__hosts *h, const char *host);

#endif
