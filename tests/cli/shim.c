/*
 * Preloaded into the program by tests: system calls that fail, or go on at a moment that cannot be
 * met otherwise. WQ_SHIM is a list of these, with a space between them:
 *
 *   vfork:ERRNO:FILE       vfork() fails with it as long as FILE exists; each time FILE grows by a byte
 *   pipe2:ERRNO:FILE       likewise, and so epoll_ctl and fsync
 *   getsockopt:ERRNO:FILE  likewise, if it is asked who the other side is
 *   read:ERRNO:FILE        read() of standard input fails with it once, and FILE is removed
 *   torn:ERRNO:FIFO        a record that is appended to a file is cut in half; the other half fails with
 *                          it, but not before FIFO has been written to and closed. Once
 *   plant:0:LINK           LINK is moved to where a file is about to be created
 *   clock:N:FILE           the clock is ahead by a second for each byte of FILE; N above 0: apart from
 *                          that it goes N times slower, so that how long a test takes is no matter
 *   orphan                 the parent is killed before vfork() has returned in the child
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 4000 };

/* Is something wanted of that call? Then also of which file, and with what error. */
static int wants(const char *call, int *error, char file[FILE_MAX])
{
	const char *shim = getenv("WQ_SHIM");
	char name[16];

	for (; shim; shim = strchr(shim, ' ') ? strchr(shim, ' ') + 1 : NULL)
		if (sscanf(shim, "%15[^:]:%d:%3999s", name, error, file) == 3 &&
		    strcmp(name, call) == 0)
			return 1;
	return 0;
}

static int fails(const char *call)
{
	char file[FILE_MAX];
	int error, fd;

	if (!wants(call, &error, file))
		return 0;
	fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return 0;
	dprintf(fd, ".");
	close(fd);
	errno = error;
	return 1;
}

/* fork() will do: whoever uses vfork() must not rely on more. */
pid_t vfork(void)
{
	const char *shim = getenv("WQ_SHIM");
	pid_t parent = getpid(), child;

	if (fails("vfork"))
		return -1;
	child = fork();
	if (child == 0 && shim && strcmp(shim, "orphan") == 0) {
		kill(parent, SIGKILL);
		while (getppid() == parent)
			;
	}
	return child;
}

ssize_t read(int fd, void *bytes, size_t n)
{
	ssize_t (*real)(int, void *, size_t);
	char file[FILE_MAX];
	int error;

	if (fd == STDIN_FILENO && wants("read", &error, file) && unlink(file) == 0) {
		errno = error;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "read");
	return real(fd, bytes, n);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	int (*real)(int, int, int, struct epoll_event *);

	*(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
	return fails("epoll_ctl") ? -1 : real(epoll, op, fd, event);
}

int pipe2(int fd[2], int flags)
{
	int (*real)(int[2], int);

	*(void **)&real = dlsym(RTLD_NEXT, "pipe2");
	return fails("pipe2") ? -1 : real(fd, flags);
}

int fsync(int fd)
{
	int (*real)(int);

	*(void **)&real = dlsym(RTLD_NEXT, "fsync");
	return fails("fsync") ? -1 : real(fd);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	int (*real)(int, int, int, void *, socklen_t *);

	*(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
	return name == SO_PEERCRED && fails("getsockopt") ? -1 : real(fd, level, name, value, size);
}

static int appends(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fcntl(fd, F_GETFL) & O_APPEND;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	static int half;
	ssize_t (*real)(int, const void *, size_t);
	char file[FILE_MAX];
	int error, fifo;

	*(void **)&real = dlsym(RTLD_NEXT, "write");
	if (n < 2 || !wants("torn", &error, file) || access(file, F_OK) != 0 || !appends(fd))
		return real(fd, bytes, n);
	if (!half) {
		half = 1;
		return real(fd, bytes, n / 2);
	}
	fifo = open(file, O_RDONLY | O_CLOEXEC);
	while (read(fifo, file + FILE_MAX - 1, 1) > 0)
		;
	close(fifo);
	unlink(file);
	errno = error;
	return -1;
}

int openat(int dir, const char *name, int flags, ...)
{
	int (*real)(int, const char *, int, ...);
	char file[FILE_MAX];
	mode_t mode = 0;
	int error;

	if (flags & O_CREAT) {
		va_list more;

		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
		if (wants("plant", &error, file))
			renameat(AT_FDCWD, file, dir, name);
	}
	*(void **)&real = dlsym(RTLD_NEXT, "openat");
	return real(dir, name, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	static struct timespec first;
	char file[FILE_MAX];
	struct stat st;
	int slower, rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(clock, now);
	if (rc != 0 || clock != CLOCK_MONOTONIC || !wants("clock", &slower, file))
		return rc;
	if (slower > 0) {
		long long span;

		if (first.tv_sec == 0)
			first = *now;
		span = (now->tv_sec - first.tv_sec) * 1000000000LL + now->tv_nsec - first.tv_nsec;
		span = span / slower + first.tv_nsec;
		now->tv_sec = first.tv_sec + span / 1000000000;
		now->tv_nsec = span % 1000000000;
	}
	if (stat(file, &st) == 0)
		now->tv_sec += st.st_size;
	return rc;
}
