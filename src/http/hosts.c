/* See hosts.h. */
#define _GNU_SOURCE
#include "http/hosts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wq/status.h>

#include "http/port.h"

enum { HOST_MAX = 255 };

int wq__hosts_init(struct wq__hosts *h, const char *address, const char *const *names)
{
	static const char *const none[] = {NULL};
	size_t n = strlen(address) + 2;
	char *to;

	if (!names && !wq__is_loopback(address))
		return WQ_OK;
	if (!names)
		names = none;
	for (size_t i = 0; names[i]; i++) {
		if (!names[i][0])
			return WQ_EINVAL;
		n += strlen(names[i]) + 1;
	}
	h->names = calloc(1, n);
	if (!h->names)
		return WQ_ENOMEM;
	to = stpcpy(h->names, address) + 1;
	for (size_t i = 0; names[i]; i++)
		to = stpcpy(to, names[i]) + 1;
	return WQ_OK;
}

void wq__hosts_release(struct wq__hosts *h)
{
	free(h->names);
}

/* Nothing, or a colon and digits. */
static bool is_port(const char *s)
{
	return *s == '\0' || (*s == ':' && s[1 + strspn(s + 1, "0123456789")] == '\0');
}

bool wq__hosts_has(const struct wq__hosts *h, const char *host)
{
	bool bracket = host[0] == '[';
	const char *begin = host + bracket, *end = begin + strcspn(begin, bracket ? "]" : ":");
	size_t n = (size_t)(end - begin);
	char name[HOST_MAX + 1];

	if (!h->names)
		return true;
	if (n > HOST_MAX || (bracket && *end != ']') || !is_port(end + bracket))
		return false;
	memcpy(name, begin, n);
	name[n] = '\0';
	if (strcasecmp(name, "localhost") == 0 || wq__is_loopback(name))
		return true;
	for (const char *at = h->names; *at; at += strlen(at) + 1)
		if (strcasecmp(name, at) == 0)
			return true;
	return false;
}
