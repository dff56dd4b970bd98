/* Connections that wait until keys are gone. */
#ifndef CLI_AWAIT_H
#define CLI_AWAIT_H

#include "cli/conn.h"

/* This key, too; false: they are too many. One that is not there is not waited for. */
bool await_key(struct conn *c, const char *key, size_t len);
/* Answers when these keys are gone; if none was ever named, when nothing is there. */
void await_begin(struct conn *c, bool all);
/* The key may be gone, and be the last; dead: it failed for good. */
void await_settled(struct run *r, const void *key, size_t len, bool dead);
/* The run is over. */
void await_over(struct conn *c);
void await_release(struct conn *c);

#endif
