/* The input: a file or standard input, read as fast as the queue takes it. */
#ifndef CLI_INPUT_SOURCE_H
#define CLI_INPUT_SOURCE_H

#include "cli/files/record.h"
#include "cli/run.h"

/* False, after a message: it cannot be opened. */
bool source_open(struct run *r);
/* Reads what there is room for. Called in every turn of the loop. */
void source_pump(struct run *r);
/* Watches for more, if there is room. At the end of every turn, when commands have made some. */
void source_watch(struct run *r);
/* There is something to read that makes nobody wait. */
bool source_eager(const struct run *r);
/* The input is a leftover file that says more than keys. */
bool source_stated(const struct run *r);
/* Shows what was not taken: what has been read, and what can be read without waiting. */
void source_rest(struct run *r, void (*fn)(struct run *r, const struct record *rec));
void source_close(struct run *r);

#endif
