/*
 * Making the socket. What lies at the path:
 *
 *   nothing                     | bound
 *   a socket nobody listens on  | replaced: its run was killed
 *   a socket with a listener    | an error: another run has it
 *   anything else               | an error, and not touched
 *
 * Looking, unlinking and binding are one step for whoever does it likewise: the folder is locked
 * meanwhile, and not let go of before the new socket listens.
 */
#include "cli/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/say.h"
#include "cli/base/text.h"

enum { LOOKS = 500, LOOK_MS = 10 }; /* for a lock: five seconds */

bool listen_address(struct sockaddr_un *to, const char *path)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (*path == '\0') {
		say("--socket: the path is empty");
		return false;
	}
	if (strlen(path) >= sizeof to->sun_path) {
		say("%s: a socket's path has at most %zu bytes; a shorter one, or one from the "
		    "current folder, will do",
		    shown(path, strlen(path)), sizeof to->sun_path - 1);
		return false;
	}
	memcpy(to->sun_path, path, strlen(path) + 1);
	return true;
}

/* Anyone may lock a folder that he can read: nobody makes us wait for ever. */
static bool lock(int dir)
{
	for (int i = 0; i < LOOKS; i++) {
		if (flock(dir, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
	}
	return false;
}

static int lock_folder(const char *path)
{
	struct sockaddr_un copy;
	char *folder;
	int dir;

	if (!listen_address(&copy, path))
		return -1;
	folder = dirname(copy.sun_path);
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !lock(dir)) {
		say("%s: the folder cannot be %s: %s", folder, dir < 0 ? "opened" : "locked",
		    strerror(errno));
		if (dir >= 0)
			close(dir);
		return -1;
	}
	return dir;
}

/* Makes way at the path. False, after a message. */
static bool make_way(const struct sockaddr_un *to)
{
	struct stat st;
	int fd, rc, error;

	if (lstat(to->sun_path, &st) < 0) {
		if (errno == ENOENT)
			return true;
		say("%s: %s", to->sun_path, strerror(errno));
		return false;
	}
	if (!S_ISSOCK(st.st_mode)) {
		say("%s exists and is not a socket", to->sun_path);
		return false;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)to, sizeof *to);
	error = errno;
	if (fd >= 0)
		close(fd);
	/* EAGAIN: so many want to be let in that there is no room for one more. */
	if (rc == 0 || error == EAGAIN) {
		say("%s: another run listens on it", to->sun_path);
		return false;
	}
	if (error != ECONNREFUSED || unlink(to->sun_path) < 0) {
		say("%s: %s", to->sun_path, strerror(error != ECONNREFUSED ? error : errno));
		return false;
	}
	return true;
}

/* The group that it should have. False, after a message. */
static bool give_group(const struct sockaddr_un *to, gid_t gid)
{
	struct stat st;

	if (lstat(to->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	    fchownat(AT_FDCWD, to->sun_path, (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	say("--socket-group: %s cannot be given to group %u: %s; only root gives it to a group "
	    "that he is not in",
	    to->sun_path, (unsigned)gid, strerror(errno));
	return false;
}

/*
 * It is made for its user alone, and gets its group before its mode: the kernel checks the file
 * first and whether somebody listens afterwards: a client that is early would get in.
 */
static int bind_for(const struct sockaddr_un *to, unsigned mode, int64_t gid)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before = umask(0177);
	int rc = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)to, sizeof *to);
	bool bound = rc == 0;

	umask(before);
	if (bound && gid >= 0 && !give_group(to, (gid_t)gid)) {
		unlink(to->sun_path);
		close(fd);
		return -1;
	}
	if (bound && mode != 0600)
		rc = fchmodat(AT_FDCWD, to->sun_path, mode, AT_SYMLINK_NOFOLLOW);
	if (rc == 0)
		rc = listen(fd, SOMAXCONN);
	if (rc == 0)
		return fd;
	say("%s: %s", to->sun_path, strerror(errno));
	if (bound)
		unlink(to->sun_path);
	if (fd >= 0)
		close(fd);
	return -1;
}

int listen_open(const char *path, unsigned mode, int64_t gid, struct stat *own)
{
	struct sockaddr_un to;
	int dir, fd = -1;

	if (!listen_address(&to, path))
		return -1;
	dir = lock_folder(path);
	if (dir < 0)
		return -1;
	if (make_way(&to))
		fd = bind_for(&to, mode, gid);
	if (fd >= 0 && lstat(path, own) < 0)
		*own = (struct stat){0};
	close(dir);
	return fd;
}

void listen_unlink(const char *path, const struct stat *own)
{
	struct stat st;

	/* While we listen no other run puts its own in this place. */
	if (lstat(path, &st) == 0 && st.st_dev == own->st_dev && st.st_ino == own->st_ino)
		unlink(path);
}

/* As it was when it connected, as all that the kernel tells. */
static bool is_in_group(int fd, gid_t own, gid_t gid)
{
	socklen_t size = 0;
	gid_t *groups;
	bool found = own == gid;

	if (found ||
	    (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 && errno != ERANGE))
		return found;
	groups = grow(NULL, size + sizeof *groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
		for (size_t i = 0; i < size / sizeof *groups; i++)
			found |= groups[i] == gid;
	free(groups);
	return found;
}

enum right listen_right(int fd, unsigned mode, gid_t gid, long *user)
{
	struct ucred who;
	socklen_t size = sizeof who;

	*user = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return RIGHT_NONE;
	*user = (long)who.uid;
	if (who.uid == 0 || who.uid == geteuid())
		return RIGHT_ALL;
	if (mode & 0020 && is_in_group(fd, who.gid, gid))
		return RIGHT_FEED;
	/* As the kernel has it: a member of the group is not one of the others. */
	return mode & 0002 && !is_in_group(fd, who.gid, gid) ? RIGHT_FEED : RIGHT_NONE;
}
