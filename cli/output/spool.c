/* Chunks. What all of them take is counted here, so that those who keep some need not. */
#include "cli/output/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/text.h"

enum {
	MEMORY = 1 << 20, /* bytes in memory, of all chunks: more goes to the shared file */
	FILES = 16,       /* descriptors, of BUDGET_OWN: more files are copied to the shared one */
	SHARED = 1 << 22, /* bytes: the next one begins a new shared file, so that the space of this
	                     one comes back */
	BLOCK = 1 << 16,
};

struct file {
	int fd;
	size_t refs; /* chunks, and that it is the shared one */
	size_t end;
};

static size_t memory;
static unsigned nfile;
static struct file *shared; /* NULL: none yet */

int spool_temporary(void)
{
	const char *dir = getenv("TMPDIR");
	struct text path = {0};
	int fd;

	if (!dir || *dir == '\0')
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system knows files without a name. */
	text_print(&path, "%s/wq-XXXXXX", dir);
	text_add(&path, "", 1);
	fd = mkostemp(path.bytes, O_CLOEXEC);
	if (fd >= 0)
		unlink(path.bytes);
	text_release(&path);
	return fd;
}

/* ---- files --------------------------------------------------------------- */

static struct file *file_new(int fd)
{
	struct file *f = grow(NULL, sizeof *f);

	*f = (struct file){.fd = fd, .refs = 1};
	nfile++;
	return f;
}

static void file_drop(struct file *f)
{
	f->refs--;
	/* Nothing in it is wanted any more. */
	if (f == shared && f->refs == 1 && ftruncate(f->fd, 0) == 0)
		f->end = 0;
	if (f->refs > 0)
		return;
	close(f->fd);
	free(f);
	nfile--;
}

/* The shared file, with room in it; NULL: it cannot be had. */
static struct file *file_shared(void)
{
	if (shared && shared->end >= SHARED && nfile < FILES) {
		struct file *full = shared;

		/* It lives as long as its chunks. */
		shared = NULL;
		file_drop(full);
	}
	if (!shared) {
		int fd = spool_temporary();

		if (fd < 0)
			return NULL;
		shared = file_new(fd);
	}
	return shared;
}

/* ---- chunks -------------------------------------------------------------- */

static void append(struct chunks *c, struct chunk *k)
{
	if (!c->first)
		c->last = &c->first;
	k->next = NULL;
	*c->last = k;
	c->last = &k->next;
}

void chunks_add(struct chunks *c, const void *bytes, size_t n)
{
	struct chunk *k;

	if (n == 0)
		return;
	k = grow(NULL, sizeof *k + n);
	*k = (struct chunk){.n = n};
	memcpy(k->bytes, bytes, n);
	memory += n;
	append(c, k);
}

/* The reference becomes the chunk's. */
static void add_part(struct chunks *c, struct file *f, size_t begin, size_t n)
{
	struct chunk *k = grow(NULL, sizeof *k);

	*k = (struct chunk){.file = f, .begin = begin, .n = n};
	append(c, k);
}

void chunks_add_file(struct chunks *c, int fd, size_t n)
{
	if (n > 0)
		add_part(c, file_new(fd), 0, n);
	else
		close(fd);
}

void chunks_move(struct chunks *to, struct chunks *from)
{
	if (!from->first)
		return;
	if (!to->first)
		to->last = &to->first;
	*to->last = from->first;
	to->last = from->last;
	from->first = NULL;
}

void chunks_pop(struct chunks *c)
{
	struct chunk *k = c->first;

	c->first = k->next;
	if (k->file)
		file_drop(k->file);
	else
		memory -= k->n;
	free(k);
}

long chunks_read(const struct chunks *c, char *to, size_t n)
{
	const struct chunk *k = c->first;

	if (n > k->n - k->at)
		n = k->n - k->at;
	return (long)pread(k->file->fd, to, n, (off_t)(k->begin + k->at));
}

/* ---- for long ------------------------------------------------------------ */

int spool_add(struct chunks *c, const void *bytes, size_t n)
{
	const char *from = bytes;
	struct file *f;
	size_t begin, at = 0;
	int error = 0;

	if (memory + n <= MEMORY) {
		chunks_add(c, bytes, n);
		return 0;
	}
	f = file_shared();
	if (!f)
		return errno;
	begin = f->end;
	while (at < n && error == 0) {
		ssize_t m = pwrite(f->fd, from + at, n - at, (off_t)(begin + at));

		if (m > 0)
			at += (size_t)m;
		else if (m == 0 || errno != EINTR)
			error = m == 0 ? EIO : errno;
	}
	f->end += at;
	if (at > 0) {
		f->refs++;
		add_part(c, f, begin, at);
	}
	return error;
}

int spool_add_file(struct chunks *c, int fd, size_t n)
{
	static char block[BLOCK];
	int error = 0;

	if (nfile < FILES) {
		chunks_add_file(c, fd, n);
		return 0;
	}
	for (size_t at = 0; at < n && error == 0;) {
		ssize_t m = pread(fd, block, n - at < BLOCK ? n - at : BLOCK, (off_t)at);

		if (m > 0) {
			error = spool_add(c, block, (size_t)m);
			at += (size_t)m;
		} else if (m == 0 || errno != EINTR) {
			error = m == 0 ? EIO : errno;
		}
	}
	close(fd);
	return error;
}
