/* --socket PATH: keys and orders from other processes. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/run.h"

/* False, after a message: the socket cannot be had. */
bool control_open(struct run *r);
/* In every turn of the loop: who was held up because the queue was full goes on. */
void control_turn(struct run *r);
/* An attempt at the key is over; dead: it was given up. */
void control_settled(struct run *r, const void *key, size_t len, bool dead);
/* The run is over: who waits is told. */
void control_close(struct run *r);

#endif
