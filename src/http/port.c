/*
 * Our own, not libmicrohttpd's: version 0.9.75 leaves its socket open, and the port taken, when a
 * start fails for want of a descriptor.
 */
#define _GNU_SOURCE
#include "http/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wq/status.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Its length, or 0: not an address. */
static socklen_t parse(const char *text, uint16_t port, union address *out)
{
	memset(out, 0, sizeof *out);
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		return sizeof out->v4;
	}
	if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons(port);
		return sizeof out->v6;
	}
	return 0;
}

bool wq__is_loopback(const char *text)
{
	union address a;

	if (parse(text, 0, &a) == 0)
		return false;
	if (a.any.sa_family == AF_INET)
		return ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
}

static int port_of(int fd)
{
	union address a = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof a;

	if (getsockname(fd, &a.any, &len) != 0)
		return -1;
	return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

static int bound(int fd, const union address *a, socklen_t len)
{
	int on = 1;

	/* A port with old connections that linger may be had; one that is listened on may not. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
		return -1;
	if (a->any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
		return -1;
	if (bind(fd, &a->any, len) != 0 || listen(fd, SOMAXCONN) != 0)
		return -1;
	return port_of(fd);
}

int wq__listen(const char *address, uint16_t port, int *actual)
{
	union address a;
	socklen_t len = parse(address, port, &a);
	int fd;

	if (len == 0)
		return WQ_EINVAL;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return WQ_EIO;
	*actual = bound(fd, &a, len);
	if (*actual < 0) {
		int why = errno;

		close(fd);
		errno = why;
		return WQ_EIO;
	}
	return fd;
}

int wq__accept(int fd)
{
	int client;

	/* Who has hung up already is nobody's error. */
	do
		client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (client < 0 && (errno == EINTR || errno == ECONNABORTED));
	return client;
}
