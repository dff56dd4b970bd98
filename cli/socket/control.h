/* --socket PATH: keys and orders from other processes. */
#ifndef CLI_SOCKET_CONTROL_H
#define CLI_SOCKET_CONTROL_H

#include "cli/run.h"

/* False, after a message: the socket cannot be had. */
bool control_open(struct run *r);
/* In every turn of the loop: who was held up because the queue was full goes on. */
void control_turn(struct run *r);
/* When it wants the next turn; WQ_NEVER: not by itself. */
int64_t control_next_ns(const struct run *r);
/* An attempt at the key is over; outcome: as the log names it. */
void control_settled(struct run *r, const void *key, size_t len, const char *outcome);
/* At the end: nobody is let in any more. Shows the keys that were written but never taken. */
void control_rest(struct run *r, void (*fn)(struct run *r, const struct record *rec));
/* The run is over: who waits is told. */
void control_close(struct run *r);

#endif
