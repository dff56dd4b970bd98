/*
 * A file that is written anew: beside it first, and put in its place when it is whole. What is no
 * ordinary file (a pipe, a terminal) is written to directly.
 */
#ifndef CLI_REPLACE_H
#define CLI_REPLACE_H

#include <stdbool.h>
#include <stddef.h>

struct replace {
	char *path; /* NULL: not open */
	char *part; /* NULL: it is no ordinary file */
	int fd;
	int error; /* of the first write that failed */
};

/* False: errno says why. */
bool replace_open(struct replace *f, const char *path);
void replace_write(struct replace *f, const void *bytes, size_t n);
/* False: errno says why; what there is, is in f->part until replace_release(). */
bool replace_commit(struct replace *f);
/* Without a commit nothing has changed. */
void replace_release(struct replace *f);

/* A file that is only appended to; -1 after a message. */
int append_open(const char *path);
/* Why write_all() to it has failed. */
const char *append_error(void);

/* All of it: false, and errno says why. */
bool write_all(int fd, const void *bytes, size_t n);

#endif
