/*
 * A file that records are appended to: each is in it as a whole, or not at all.
 *
 * What cannot be written stays in memory, and is tried again each second and at the end: once a
 * full disk has space again, or a pipe a reader, nothing is missing. At most APPEND_KEPT bytes are
 * kept; a record beyond that is lost, which the caller reports. A file that was deleted is made
 * anew.
 */
#ifndef CLI_FILES_APPEND_H
#define CLI_FILES_APPEND_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/base/loop.h"
#include "cli/base/text.h"

enum { APPEND_KEPT = 1 << 20 };

struct append {
	struct watch watch; /* a pipe that is full; its fd -1: not open */
	struct loop *loop;
	const char *path; /* NULL: there is none */
	const char *what; /* the records are: "dead keys" */
	char delimiter;   /* ends a record */
	bool regular;
	bool torn;           /* a pipe has a part of a record, which its reader did not wait for */
	int error;           /* why records wait; 0: none does, or only for a slow reader */
	int64_t again_ns;    /* when they are tried again */
	struct text pending; /* records, whole ones */
	size_t whole, at;    /* of pending: up to there whole records, and bytes, are written */
	uint64_t written;    /* records */
	uint64_t lost;       /* records that found no room in memory */
};

/* path NULL: nothing is ever written. False, after a message: it cannot be opened. */
bool append_open(struct append *a, struct loop *l, const char *path, const char *what,
                 char delimiter);
/* A record, with its delimiter. False: it is lost, because too many wait. */
bool append_put(struct append *a, int64_t now_ns, const void *record, size_t n);
/* Tries again, if it is time to. */
void append_turn(struct append *a, int64_t now_ns);
int64_t append_next_ns(const struct append *a);
/* The reader of a pipe is behind: there is something to wait for. */
bool append_waits(const struct append *a);
/* And so far that there should be no more for now. */
bool append_full(const struct append *a);
/* The last try. How many records wait still: pending.bytes has them, until append_close(). */
uint64_t append_end(struct append *a);
void append_close(struct append *a);

#endif
