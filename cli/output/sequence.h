/*
 * --keep-order: output in the order in which keys were given.
 *
 * Each unit of work (struct counts) has a place in a list, from the time that it is given until it
 * is over and all before it are. Output of the first place is shown as it comes; that of others is
 * kept.
 * A key has two places at most: that of its command, and one for what was given while that runs.
 *
 * What is kept is bounded: bytes by spool.c, places by --max-queue, as no keys are taken meanwhile.
 * Commands are not held up, so the first place is always reached.
 */
#ifndef CLI_OUTPUT_SEQUENCE_H
#define CLI_OUTPUT_SEQUENCE_H

#include "cli/command/job.h"

struct kept {
	struct chunks out, err;
};

/* All of them do nothing without --keep-order. */

/* A key was given that did not merge with one in line. */
void sequence_add(struct run *r, const void *key, size_t len);
/* One that was held is in line again, together with what was given meanwhile. */
void sequence_join(struct run *r, const void *key, size_t len);
/* One that was held is over; or what is in line or waits is cancelled, if `pending`. */
void sequence_end(struct run *r, const void *key, size_t len, bool pending);
/* Where the output of a command is kept, to be shown later; NULL: it is its turn. */
struct kept *sequence_keeps(struct run *r, const struct job *j);
/* Places that are over, but kept. */
size_t sequence_kept(const struct run *r);
/* At the end: show everything, also what is behind keys that are left. */
void sequence_show_all(struct run *r);
void sequence_release(struct run *r);

#endif
