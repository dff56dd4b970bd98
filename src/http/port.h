/* The socket that the server listens on. */
#ifndef WQ_HTTP_PORT_H
#define WQ_HTTP_PORT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns a socket that does not block, and its port; or WQ_EINVAL: not an address, or WQ_EIO:
 * it cannot be had, errno says why.
 */
int wq__listen(const char *address, uint16_t port, int *actual);

/* An address that only this machine has: 127.0.0.0/8 or ::1. */
bool wq__is_loopback(const char *text);

/* The next connection, which does not block; or -1, errno: EAGAIN is nobody. */
int wq__accept(int fd);

#endif
