/*
 * DIR/NAME/stdout, stderr and attempt.json. NAME is the key, with every byte but letters, digits
 * and -_.,@+= as %2F, so that no key leaves DIR; one that is too long for a file name is cut, and a
 * hash of the whole follows.
 */
#include "cli/results.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void path_of(struct run *r, const struct job *j, struct text *t, const char *file)
{
	t->n = 0;
	text_print(t, "%s/", r->opt->results);
	encode(t, j->held[0].key, j->held[0].len);
	if (file)
		text_print(t, "/%s", file);
	text_add(t, "", 1);
}

bool results_make(struct run *r)
{
	struct stat st;

	if (mkdir(r->opt->results, 0777) == 0 ||
	    (errno == EEXIST && stat(r->opt->results, &st) == 0 && S_ISDIR(st.st_mode) &&
	     access(r->opt->results, W_OK | X_OK) == 0))
		return true;
	say("%s: %s", r->opt->results, strerror(errno));
	return false;
}

static int create(struct run *r, const struct job *j, const char *file)
{
	struct text path = {0};
	int fd;

	path_of(r, j, &path, file);
	fd = open(path.bytes, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	text_release(&path);
	return fd;
}

int results_open(struct run *r, struct job *j, int fd[2])
{
	struct text path = {0};
	int rc;

	path_of(r, j, &path, NULL);
	rc = mkdir(path.bytes, 0777) < 0 && errno != EEXIST ? errno : 0;
	text_release(&path);
	if (rc != 0)
		return rc;
	fd[0] = create(r, j, "stdout");
	if (fd[0] < 0)
		return errno;
	fd[1] = create(r, j, "stderr");
	if (fd[1] < 0) {
		rc = errno;
		close(fd[0]);
	}
	return rc;
}

bool results_lack(const struct run *r, int error)
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
		return access(r->opt->results, W_OK | X_OK) < 0;
	}
}

void results_close(struct run *r, const struct job *j, const struct text *line)
{
	int fd = create(r, j, "attempt.json");

	if (fd < 0 || write(fd, line->bytes, line->n) != (ssize_t)line->n) {
		say("%s: its attempt.json cannot be written: %s", job_shown(j), strerror(errno));
		r->trouble = true;
	}
	if (fd >= 0)
		close(fd);
}
