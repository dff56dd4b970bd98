/*
 * Output that waits to be written, in chunks: in memory, or in files without a name, which are
 * closed with their last chunk.
 */
#ifndef CLI_OUTPUT_SPOOL_H
#define CLI_OUTPUT_SPOOL_H

#include <stddef.h>

struct file;

struct chunk {
	struct chunk *next;
	struct file *file; /* NULL: the bytes are here */
	size_t begin;      /* in the file */
	size_t at, n;      /* of the chunk [at, n) has not been written yet */
	char bytes[];
};

/* All zero: empty. */
struct chunks {
	struct chunk *first, **last;
};

/* The bytes are copied. */
void chunks_add(struct chunks *c, const void *bytes, size_t n);
/* The first n bytes of a file, which becomes ours. */
void chunks_add_file(struct chunks *c, int fd, size_t n);
void chunks_move(struct chunks *to, struct chunks *from);
/* The first one goes. */
void chunks_pop(struct chunks *c);
/* Of the first one, what comes next: so many bytes, or -1. */
long chunks_read(const struct chunks *c, char *to, size_t n);

/*
 * The same for what may wait for long, and be much: in memory as long as all chunks together take
 * little of it, else in a file that many share, and in few descriptors. 0, or an errno: what could
 * not be kept is lost.
 */
int spool_add(struct chunks *c, const void *bytes, size_t n);
int spool_add_file(struct chunks *c, int fd, size_t n);

/* A file without a name, in $TMPDIR: a descriptor, or -1. */
int spool_temporary(void);

#endif
