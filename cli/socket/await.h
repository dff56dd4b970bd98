/*
 * Connections that wait for keys, each in one of two ways:
 *
 *   a key   until it is not there any more, however often it is given meanwhile, or cancelled
 *   a unit  until what was given is over: the attempt that answers it, and its retries. A key
 *           that is given while its command runs is a unit of its own, behind the running one;
 *           if that one fails, both become one
 */
#ifndef CLI_SOCKET_AWAIT_H
#define CLI_SOCKET_AWAIT_H

#include "cli/socket/conn.h"

/* What became of an attempt's unit of work. */
enum outcome {
	OUTCOME_AGAIN, /* nothing yet: it is there, and one with what was given meanwhile */
	OUTCOME_DONE,
	OUTCOME_DEAD,
	OUTCOME_CANCELLED
};

/* Is there room to wait for one more of this length? */
bool await_room(const struct conn *c, size_t len);
/* This key, too; false: no room. Of one that is not there it is told if it died of late. */
bool await_key(struct conn *c, const char *key, size_t len);
/* What was given just now; before that the key had these WQ_STATE_ bits. There is room. */
void await_unit(struct conn *c, const char *key, size_t len, int was);
/* Answers when all that was named is over; all: when nothing is there. */
void await_begin(struct conn *c, bool all);
/* An attempt is over. */
void await_settled(struct run *r, const void *key, size_t len, enum outcome outcome);
/* A key was taken back that had these WQ_STATE_ bits. */
void await_cancelled(struct run *r, const void *key, size_t len, int was);
/* The run is over. */
void await_over(struct conn *c);
void await_release(struct conn *c);

#endif
