/* --dead FILE and --leftover FILE: keys that were not done, in a form that can be given again. */
#ifndef CLI_FILES_KEEP_H
#define CLI_FILES_KEEP_H

#include "cli/run.h"

/* False, after a message: a file cannot be opened. */
bool keep_open(struct run *r);
/* Appended at once. */
void keep_dead(struct run *r, const void *key, size_t len);
/* In every turn: space for what would be left now, while there is some. */
void keep_turn(struct run *r);
/* At the end: what is in the queue, and what was not read of the input. Sets r->left, r->saved. */
void keep_rest(struct run *r);
/* When pipes have been waited for: dead keys that could not be written are printed. */
void keep_last(struct run *r);
void keep_close(struct run *r);

#endif
