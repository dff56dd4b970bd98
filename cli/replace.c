/* Writing a file anew. */
#include "cli/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/text.h"

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

/* Nobody waits for the other end of a pipe: signals must be heard. A file does not mind. */
int append_open(const char *path)
{
	int fd =
	    open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);

	if (fd < 0)
		say("%s: %s", path,
		    errno == ENXIO ? "nobody reads from this pipe" : strerror(errno));
	return fd;
}

const char *append_error(void)
{
	return errno == EAGAIN ? "it is full, and not read fast enough" : strerror(errno);
}

bool replace_open(struct replace *f, const char *path)
{
	struct text part = {0};
	struct stat st;
	/* Through a link, so that it stays one. */
	char *real = realpath(path, NULL);

	*f = (struct replace){.path = real ? real : strdup(path), .fd = -1};
	if (f->path && stat(f->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
	} else if (f->path) {
		text_print(&part, "%s.XXXXXX", f->path);
		text_add(&part, "", 1);
		f->part = part.bytes;
		f->fd = mkostemp(f->part, O_CLOEXEC);
	}
	if (f->fd >= 0)
		return true;

	int error = errno;

	free(f->part);
	free(f->path);
	*f = (struct replace){.fd = -1};
	errno = error;
	return false;
}

void replace_write(struct replace *f, const void *bytes, size_t n)
{
	if (!f->error && !write_all(f->fd, bytes, n))
		f->error = errno;
}

bool replace_commit(struct replace *f)
{
	mode_t mask = umask(0), mode = 0666 & ~mask;
	struct stat st;

	umask(mask);
	if (f->error) {
		errno = f->error;
		return false;
	}
	if (!f->part)
		return true;
	/* Who could not read the old one cannot read the new one. */
	if (stat(f->path, &st) == 0)
		mode = st.st_mode & 07777;
	/* To the disk before it is named: after a crash the file is the old one or the new one. */
	if (fchmod(f->fd, mode) < 0 || fsync(f->fd) < 0 || rename(f->part, f->path) < 0)
		return false;
	free(f->part);
	f->part = NULL;
	return true;
}

void replace_release(struct replace *f)
{
	if (!f->path)
		return;
	if (f->part)
		unlink(f->part);
	if (f->fd >= 0)
		close(f->fd);
	free(f->part);
	free(f->path);
	*f = (struct replace){.fd = -1};
}
