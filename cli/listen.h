/* The socket of a run: for its user alone, and never two runs on one path. */
#ifndef CLI_LISTEN_H
#define CLI_LISTEN_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

/* False, after a message: the path is too long for a socket. */
bool listen_address(struct sockaddr_un *to, const char *path);
/* The descriptor, non-blocking, and what lies at the path now; -1, after a message. */
int listen_open(const char *path, struct stat *own);
/* Before the descriptor is closed: unlinks the path, if it is still ours. */
void listen_unlink(const char *path, const struct stat *own);
/* Is this our own user, or root? Otherwise *user is who it is, -1: nobody knows. */
bool listen_friend(int fd, long *user);

#endif
