/* Netstrings, in which orders and answers travel: LEN:payload, */
#ifndef CLI_SOCKET_FRAME_H
#define CLI_SOCKET_FRAME_H

#include <sys/types.h>
#include <wq/queue.h>

#include "cli/base/text.h"

/* The longest payload: an answer with the longest key and the longest value. */
enum { FRAME_MAX = WQ_KEY_MAX + WQ_VALUE_MAX + 1024, FRAME_ROOM = FRAME_MAX + 16 };

/* What the first byte of an answer tells. */
enum answer {
	ANSWER_PIECE = ':', /* a part of it, more follows; at once, if the end is long in coming */
	ANSWER_WELL = '.',  /* its end */
	ANSWER_NOT = '!'    /* its end: an exit status, a space, a message */
};

/* One with these two parts in a row; the first is a byte, 0: none. */
void frame_put(struct text *t, char first, const void *bytes, size_t n);

/*
 * The frame at the beginning of these bytes. How long it is in all; 0: there is only a part of
 * it; -1: it is none.
 */
ssize_t frame_find(const char *bytes, size_t n, const char **payload, size_t *len);

#endif
