/* Paths, a component at a time. */
#include "cli/files/target.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/base/text.h"

enum { LINKS_MAX = 40, DIRECTORY = O_PATH | O_DIRECTORY | O_CLOEXEC };

struct walk {
	int dir;
	char *rest; /* of the path */
	int links;
	struct target *to;
};

enum step { FAILED, ON, ARRIVED };

static bool trusts(int dir, const struct stat *st)
{
	struct stat d;

	if (fstat(dir, &d) < 0)
		return false;
	return (d.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
	       st->st_uid == geteuid() || st->st_uid == d.st_uid;
}

static bool is_proc(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static enum step enter(struct walk *w, int dir)
{
	if (dir < 0)
		return FAILED;
	close(w->dir);
	w->dir = dir;
	return ON;
}

/* What the link says stands before the rest of the path from now on. */
static enum step follow(struct walk *w, int link)
{
	char target[PATH_MAX];
	struct text path = {0};
	ssize_t n = readlinkat(link, "", target, sizeof target);

	if (n >= (ssize_t)sizeof target || ++w->links > LINKS_MAX) {
		errno = n < 0 ? errno : ELOOP;
		return FAILED;
	}
	if (n <= 0)
		return FAILED;
	text_add(&path, target, (size_t)n);
	text_print(&path, "/%s", w->rest);
	text_add(&path, "", 1);
	free(w->rest);
	w->rest = path.bytes;
	return target[0] == '/' ? enter(w, open("/", DIRECTORY)) : ON;
}

static enum step through_link(struct walk *w, const char *name, int link, const struct stat *st)
{
	if (!trusts(w->dir, st)) {
		errno = TARGET_FOREIGN;
		return FAILED;
	}
	if (!is_proc(w->dir))
		return follow(w, link);
	/* What it says need not be a path: only the kernel can follow it. */
	w->to->magic = *w->rest == '\0';
	return w->to->magic ? ARRIVED : enter(w, openat(w->dir, name, DIRECTORY));
}

static enum step through(struct walk *w, const char *name)
{
	bool last = *w->rest == '\0';
	int fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	enum step step;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT && last ? ARRIVED : FAILED;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		step = through_link(w, name, fd, &st);
	else if (last)
		step = ARRIVED;
	else
		return enter(w, fd);

	int error = errno;

	close(fd);
	errno = error;
	return step;
}

/* Takes the first component off the rest. */
static enum step take(struct walk *w, char name[NAME_MAX + 1])
{
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
	char *rest = w->rest + skip + n;

	if (n > NAME_MAX) {
		errno = ENAMETOOLONG;
		return FAILED;
	}
	memcpy(name, w->rest + skip, n);
	name[n] = '\0';
	if (*rest == '/' && rest[strspn(rest, "/")] == '\0') {
		w->to->slash |= w->links == 0;
		rest += strlen(rest);
	}
	memmove(w->rest, rest, strlen(rest) + 1);
	return ON;
}

bool target_find(struct target *p, int at, const char *path)
{
	char name[NAME_MAX + 1] = ".";
	struct walk w = {.rest = strdup(path), .to = p};
	enum step step = FAILED;
	int error;

	*p = (struct target){.dir = -1};
	errno = ENOENT;
	w.dir = *path == '\0'
	            ? -1
	            : openat(*path == '/' ? AT_FDCWD : at, *path == '/' ? "/" : ".", DIRECTORY);
	if (w.dir >= 0 && w.rest)
		do {
			step = take(&w, name);
			/* Nothing but slashes: the directory itself. */
			if (step == ON && *name == '\0')
				memcpy(name, ".", 2);
			if (step == ON)
				step = through(&w, name);
		} while (step == ON);
	error = errno;
	free(w.rest);
	if (step == ARRIVED) {
		p->dir = w.dir;
		p->name = grow(NULL, strlen(name) + 1);
		memcpy(p->name, name, strlen(name) + 1);
		return true;
	}
	if (w.dir >= 0)
		close(w.dir);
	errno = error;
	return false;
}

bool target_stat(const struct target *p, struct stat *st)
{
	return fstatat(p->dir, p->name, st, p->magic ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
}

bool target_trusts(const struct target *p, const struct stat *st)
{
	return p->magic || trusts(p->dir, st);
}

int target_open(const struct target *p, int flags)
{
	struct stat st;
	int fd;

	if (p->slash && !(flags & O_DIRECTORY)) {
		errno = EISDIR;
		return -1;
	}
	fd = openat(p->dir, p->name, flags | O_CLOEXEC | O_NOCTTY | (p->magic ? 0 : O_NOFOLLOW),
	            0666);
	if (fd < 0 || (fstat(fd, &st) == 0 && target_trusts(p, &st)))
		return fd;
	close(fd);
	errno = TARGET_FOREIGN;
	return -1;
}

void target_release(struct target *p)
{
	if (p->dir >= 0)
		close(p->dir);
	free(p->name);
	*p = (struct target){.dir = -1};
}

const char *target_error(int error)
{
	switch (error) {
	case TARGET_FOREIGN:
		return "refused: a link or a file of another user is in its place";
	case ENXIO:
		return "the pipe has no reader";
	case ENOSPC:
		return "no space left";
	case EWOULDBLOCK:
		return "it is full, and not read fast enough";
	case EBUSY:
		return "another run writes this file";
	default:
		return strerror(error);
	}
}
