/*
 * What a command writes, to one of its two outputs, on its way to ours.
 *
 *   grouped (default)  kept until the command has ended: in memory, from SPILL bytes on in a
 *                      file without a name
 *   by lines           passed on line by line
 *
 * A tag stands before each line.
 */
#ifndef CLI_OUTPUT_CAPTURE_H
#define CLI_OUTPUT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/base/loop.h"
#include "cli/base/text.h"
#include "cli/output/stream.h"

struct capture {
	struct watch watch; /* our end of the pipe */
	struct loop *loop;
	struct stream *to;
	/* Grouped: what there is, or what is not in the file yet; by lines: the line so far. */
	struct text text;
	struct text tag;
	bool lines;
	bool inside; /* of a line: no tag is due */
	int spill;   /* -1: none */
	size_t spilled;
	int error; /* why output was cut; 0: it was not */
};

/*
 * Make the pipe; returns the command's end, to be closed once the command has it, or -1.
 * The tag is copied; NULL: none.
 */
int capture_open(struct capture *c, struct loop *l, struct stream *to, bool lines, const void *tag,
                 size_t tag_len);
/* The reader of what is passed on by lines has caught up, or not: read, or not. */
void capture_choke(struct capture *c);
/*
 * The command has ended: take what is in the pipe, close it, and pass everything on; or keep it, if
 * kept is not NULL.
 */
void capture_end(struct capture *c, struct chunks *kept);
/* The command was never started. */
void capture_drop(struct capture *c);
void capture_release(struct capture *c);

#endif
