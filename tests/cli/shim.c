/*
 * Preloaded into the program by tests: system calls that fail, or go on at a moment that cannot be
 * met otherwise.
 *
 *   WQ_SHIM=vfork:ERRNO:FILE   vfork() fails with it as long as FILE exists
 *   WQ_SHIM=pipe2:ERRNO:FILE   likewise, and so epoll_ctl
 *   WQ_SHIM=read:ERRNO:FILE    read() of standard input fails with it once, and FILE is removed
 *   WQ_SHIM=orphan             the parent is killed before vfork() has returned in the child
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int fails(const char *call)
{
	const char *shim = getenv("WQ_SHIM");
	char name[16], file[4000];
	int error;

	if (!shim || sscanf(shim, "%15[^:]:%d:%3999s", name, &error, file) != 3 ||
	    strcmp(name, call) != 0 || access(file, F_OK) != 0)
		return 0;
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

	if (fd == STDIN_FILENO && fails("read")) {
		int error = errno;

		unlink(strrchr(getenv("WQ_SHIM"), ':') + 1);
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
