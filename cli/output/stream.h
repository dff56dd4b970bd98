/*
 * Standard output or error: what is written waits here until the reader takes it, so that a slow
 * reader holds up nothing but those who write.
 */
#ifndef CLI_OUTPUT_STREAM_H
#define CLI_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/base/loop.h"
#include "cli/output/spool.h"

struct stream {
	struct watch watch;
	struct loop *loop;
	bool file;            /* never makes anyone wait */
	bool own;             /* the descriptor is ours alone, and does not block */
	bool closed;          /* nobody reads any more: what is written is dropped */
	int error;            /* why */
	struct chunks chunks; /* that wait */
	size_t pending;       /* bytes in memory */
	void (*before)(void); /* called before something is written; may be NULL */
};

void stream_open(struct stream *s, struct loop *l, int fd);
/* The bytes are copied, if they cannot be written at once. */
void stream_write(struct stream *s, const void *bytes, size_t n);
/* Takes all chunks, and leaves none. */
void stream_append(struct stream *s, struct chunks *chunks);
/* The reader is behind: write no more for now. */
bool stream_full(const struct stream *s);
bool stream_idle(const struct stream *s);
/* At once, or not at all if something waits: true, if a part of it was written. */
bool stream_now(struct stream *s, const void *bytes, size_t n);
/* Nobody takes what is left: it goes. */
void stream_drop(struct stream *s);

#endif
