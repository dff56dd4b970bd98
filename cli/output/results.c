/*
 * DIR/NAME/stdout, stderr and attempt.json. NAME is the key, with every byte but letters, digits
 * and -_.,@+= as %2F, so that no key leaves DIR; one that is too long for a file name is cut, and a
 * hash of the whole follows.
 */
#include "cli/output/results.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files/target.h"

enum { NAME_MAX_ = 255, HASH_CHARS = 17 };

static uint64_t hash_of(const char *key, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
	return h;
}

static void encode(struct text *t, const char *key, size_t len)
{
	size_t from = t->n;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)key[i];

		/* Names that begin with a dot mean something else. */
		if (c < 0x80 && (isalnum(c) || (strchr("-_,@+=", c) && c) || (c == '.' && i > 0)))
			text_add(t, &key[i], 1);
		else
			text_print(t, "%%%02X", c);
	}
	if (t->n - from > NAME_MAX_) {
		t->n = from + NAME_MAX_ - HASH_CHARS;
		text_print(t, "~%016" PRIx64, hash_of(key, len));
	}
}

/* The place of DIR/KEY or, with a file's name, of DIR/KEY/FILE. */
static bool find(struct run *r, const struct job *j, struct target *p, const char *file)
{
	struct text path = {0};
	bool found;

	encode(&path, j->held[0].key, j->held[0].len);
	if (file)
		text_print(&path, "/%s", file);
	text_add(&path, "", 1);
	found = target_find(p, r->results_dir, path.bytes);
	text_release(&path);
	return found;
}

/* Make the directory, if it is not there. -1: errno says why. */
static int enter(const struct target *p)
{
	if (mkdirat(p->dir, p->name, 0777) < 0 && errno != EEXIST)
		return -1;
	return target_open(p, O_RDONLY | O_DIRECTORY);
}

/* DIR itself. -1: errno says why. */
static int enter_all(const struct run *r)
{
	struct target p;
	int fd, error;

	if (!target_find(&p, AT_FDCWD, r->opt->results))
		return -1;
	fd = enter(&p);
	error = errno;
	target_release(&p);
	errno = error;
	return fd;
}

bool results_make(struct run *r)
{
	int error;

	r->results_dir = enter_all(r);
	error = errno;
	if (r->results_dir >= 0 && faccessat(r->results_dir, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return true;
	say("%s: %s", r->opt->results, target_error(r->results_dir >= 0 ? errno : error));
	return false;
}

void results_release(struct run *r)
{
	if (r->results_dir >= 0)
		close(r->results_dir);
	r->results_dir = -1;
}

/* Open a file anew. Nobody waits for the reader of a pipe. */
static int create(struct run *r, const struct job *j, const char *file)
{
	struct target p;
	struct stat st;
	int fd, error;

	if (!find(r, j, &p, file))
		return -1;
	fd = target_open(&p, O_WRONLY | O_CREAT | O_NONBLOCK);
	error = errno;
	target_release(&p);
	errno = error;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && ftruncate(fd, 0) < 0) {
		close(fd);
		return -1;
	}
	/* The command expects one that waits. */
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/* As an errno that strerror() knows. */
static int known(int error)
{
	return error == TARGET_FOREIGN ? EACCES : error;
}

int results_open(struct run *r, struct job *j, int fd[2])
{
	struct target p;
	int folder, rc;

	if (!find(r, j, &p, NULL))
		return known(errno);
	folder = enter(&p);
	rc = errno;
	target_release(&p);
	if (folder < 0)
		return known(rc);
	close(folder);
	fd[0] = create(r, j, "stdout");
	if (fd[0] < 0)
		return known(errno);
	fd[1] = create(r, j, "stderr");
	if (fd[1] >= 0)
		return 0;
	rc = known(errno);
	close(fd[0]);
	return rc;
}

/* Was DIR removed? Then the next try has another one, if it can be made. */
static bool is_removed(struct run *r)
{
	struct stat st;
	int fd;

	if (fstat(r->results_dir, &st) < 0 || st.st_nlink > 0)
		return false;
	fd = enter_all(r);
	if (fd >= 0) {
		results_release(r);
		r->results_dir = fd;
	}
	return true;
}

bool results_lack(struct run *r, int error)
{
	switch (error) {
	case EAGAIN:
	case EDQUOT:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOSPC:
	case EROFS:
		return true;
	default:
		return is_removed(r) || faccessat(r->results_dir, ".", W_OK | X_OK, AT_EACCESS) < 0;
	}
}

void results_close(struct run *r, const struct job *j, const struct text *line)
{
	int fd = create(r, j, "attempt.json");

	if (fd < 0 || !write_all(fd, line->bytes, line->n)) {
		say("%s: its attempt.json cannot be written: %s", job_shown(j),
		    target_error(errno));
		r->trouble = true;
		/* Nothing is better than a part of it. */
		if (fd >= 0 && ftruncate(fd, 0) < 0)
			errno = 0;
	}
	if (fd >= 0)
		close(fd);
}
