/* The socket of a run: for whom it is, and never two runs on one path. */
#ifndef CLI_SOCKET_LISTEN_H
#define CLI_SOCKET_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/un.h>

/* False, after a message: the path is too long for a socket. */
bool listen_address(struct sockaddr_un *to, const char *path);
/*
 * The descriptor, non-blocking, and what lies at the path now; -1, after a message. Nobody can
 * connect before mode and group (-1: as it comes) are what they should be.
 */
int listen_open(const char *path, unsigned mode, int64_t gid, struct stat *own);
/* Before the descriptor is closed: unlinks the path, if it is still ours. */
void listen_unlink(const char *path, const struct stat *own);
/* What the other side of a connection may do. */
enum right {
	RIGHT_NONE,
	RIGHT_FEED, /* give keys, wait for them, ask for the state: who else the mode lets in */
	RIGHT_ALL   /* everything: our own user, and root */
};

/*
 * By the mode and the group that were asked for, not by those that the file has now. *user is who
 * it is; -1: nobody knows.
 */
enum right listen_right(int fd, unsigned mode, gid_t gid, long *user);

#endif
