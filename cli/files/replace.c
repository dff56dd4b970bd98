/* Writing a file anew. */
#include "cli/files/replace.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <wq/clock.h>

#include "cli/base/text.h"

#define SUFFIX ".wq-part"

enum { LOOKS = 200, LOOK_MS = 10 }; /* for a lock: two seconds. A run may have it until it ends */

bool write_all(int fd, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n > 0) {
		ssize_t m = write(fd, from, n);

		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return false;
		from += m;
		n -= (size_t)m;
	}
	return true;
}

/* ---- the part ------------------------------------------------------------ */

static bool is_named(const struct replace *f, const struct stat *st)
{
	struct stat named;

	return fstatat(f->target.dir, f->part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == st->st_dev && named.st_ino == st->st_ino;
}

/* Not every file system has locks: without them two runs do not see each other. */
static bool lock(int fd, bool wait)
{
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return true;
		if (!wait || i == LOOKS) {
			errno = EBUSY;
			return false;
		}
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
	}
	return true;
}

/* 1: it is ours; 0: it went while we looked at it; -1: errno says why. */
static int claim(struct replace *f, bool wait)
{
	struct stat st;

	f->fd = openat(f->target.dir, f->part,
	               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return -1;
	/* Nobody else's, under no second name. */
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1) {
		errno = TARGET_FOREIGN;
		return -1;
	}
	if (!lock(f->fd, wait))
		return -1;
	/* Whoever had it has put it in its place, or removed it. */
	if (!is_named(f, &st))
		return 0;
	return ftruncate(f->fd, 0) < 0 || fchmod(f->fd, 0600) < 0 ? -1 : 1;
}

static void close_keeping_errno(int *fd)
{
	int error = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = error;
}

static bool open_part(struct replace *f, bool wait)
{
	struct text name = {0};
	int rc;

	text_print(&name, "%s" SUFFIX, f->target.name);
	text_add(&name, "", 1);
	f->part = name.bytes;
	while ((rc = claim(f, wait)) <= 0) {
		close_keeping_errno(&f->fd);
		if (rc < 0)
			return false;
	}
	return true;
}

/* ---- calls --------------------------------------------------------------- */

static bool open_target(struct replace *f, bool wait)
{
	struct stat st;
	bool there = target_stat(&f->target, &st);

	if (there && !target_trusts(&f->target, &st)) {
		errno = TARGET_FOREIGN;
		return false;
	}
	/* Nobody waits for the other end of a pipe: signals must be heard. */
	if (f->target.slash || f->target.magic || (there && !S_ISREG(st.st_mode))) {
		f->fd = target_open(&f->target, O_WRONLY | O_APPEND | O_NONBLOCK);
		return f->fd >= 0;
	}
	return open_part(f, wait);
}

static void forget(struct replace *f)
{
	int error = errno;

	free(f->part);
	target_release(&f->target);
	*f = (struct replace){.fd = -1, .target = {.dir = -1}};
	errno = error;
}

bool replace_open(struct replace *f, const char *path, bool wait)
{
	*f = (struct replace){.fd = -1};
	/* Through a link, so that it stays one. */
	if (target_find(&f->target, AT_FDCWD, path) && open_target(f, wait))
		return true;
	forget(f);
	return false;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

/* The pipe is full. False: it has been waited for long enough. */
static bool await(struct replace *f)
{
	struct pollfd p = {.fd = f->fd, .events = POLLOUT};
	int64_t began = now_ns();

	if (f->wait_ns <= 0)
		return false;
	poll(&p, 1, f->wait_ns > WQ_SECOND ? 1000 : (int)(f->wait_ns / WQ_MILLISECOND) + 1);
	f->wait_ns -= now_ns() - began;
	return true;
}

size_t replace_write(struct replace *f, const void *bytes, size_t n)
{
	const char *from = bytes;
	size_t done = 0;

	while (!f->error && done < n) {
		ssize_t m = write(f->fd, from + done, n - done);

		if (m >= 0)
			done += (size_t)m;
		else if (errno != EINTR && (errno != EAGAIN || !await(f)))
			f->error = errno;
	}
	f->size += (off_t)done;
	return done;
}

void replace_cut(struct replace *f, off_t size)
{
	if (f->target.magic || size >= f->size || ftruncate(f->fd, size) < 0)
		return;
	f->size = size;
	/* The next write begins there, whether or not the file is appended to. */
	lseek(f->fd, size, SEEK_SET);
}

int replace_reserve(struct replace *f, off_t size)
{
	struct statvfs fs;
	int rc;

	if (!f->part)
		return EOPNOTSUPP;
	/* A try that fails may take all that there is, which others need. */
	if (fstatvfs(f->fd, &fs) == 0 &&
	    fs.f_bavail < (uint64_t)(size - f->reserved) / fs.f_frsize + 1)
		return ENOSPC;
	do {
		rc = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, size);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return errno;
	f->reserved = size;
	return 0;
}

static mode_t mode_of(const struct replace *f)
{
	mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	/* Who could not read the old one cannot read the new one. */
	if (target_stat(&f->target, &st) && S_ISREG(st.st_mode) && target_trusts(&f->target, &st))
		return st.st_mode & 07777;
	return 0666 & ~mask;
}

bool replace_commit(struct replace *f)
{
	struct stat st;

	if (!f->part)
		return true;
	/* What was reserved and is not needed goes back. */
	if (f->reserved > f->size && ftruncate(f->fd, f->size) < 0)
		return false;
	f->reserved = 0;
	/* To the disk before it is named: after a crash the file is the old one or the new one. */
	if (fchmod(f->fd, mode_of(f)) < 0 || fsync(f->fd) < 0 || fstat(f->fd, &st) < 0)
		return false;
	if (!is_named(f, &st)) {
		errno = ENOENT;
		return false;
	}
	if (renameat(f->target.dir, f->part, f->target.dir, f->target.name) < 0)
		return false;
	free(f->part);
	f->part = NULL;
	return true;
}

void replace_release(struct replace *f)
{
	struct stat st;

	if (f->fd < 0)
		return;
	if (f->part && fstat(f->fd, &st) == 0 && is_named(f, &st))
		unlinkat(f->target.dir, f->part, 0);
	close(f->fd);
	forget(f);
}
