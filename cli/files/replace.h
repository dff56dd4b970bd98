/*
 * A file that is written anew: as NAME.wq-part beside it first, and put in its place when it is
 * whole. What is no ordinary file (a pipe, a terminal) is written to directly.
 *
 * The part is locked while it is in use: nobody else writes the same file meanwhile, and one that
 * was left behind by a killed process has no lock, and is used again.
 */
#ifndef CLI_FILES_REPLACE_H
#define CLI_FILES_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/files/target.h"

struct replace {
	int fd; /* -1: not open */
	struct target target;
	char *part;      /* its name; NULL: it is no ordinary file, or is in its place */
	off_t size;      /* so much was written */
	off_t reserved;  /* on the disk */
	int error;       /* of the first write that failed */
	int64_t wait_ns; /* how long a pipe is waited for that nobody reads from, in all */
};

/* False: errno says why. EBUSY: another process has it, even after two seconds if `wait`. */
bool replace_open(struct replace *f, const char *path, bool wait);
/* How much was written. Less than n: f->error says why. */
size_t replace_write(struct replace *f, const void *bytes, size_t n);
/* Cut it to that size. */
void replace_cut(struct replace *f, off_t size);
/* Keep that much space for it. 0, or an errno; EOPNOTSUPP: the file system cannot. */
int replace_reserve(struct replace *f, off_t size);
/* Put it in its place. False: errno says why; it can still be read, by f->fd. */
bool replace_commit(struct replace *f);
/* Without a commit nothing has changed. */
void replace_release(struct replace *f);

/* All of it: false, and errno says why. */
bool write_all(int fd, const void *bytes, size_t n);

#endif
