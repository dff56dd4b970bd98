/* --dead FILE and --leftover FILE: keys that were not done, in a form that can be given again. */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include "cli/run.h"

/* False, after a message: a file cannot be opened. */
bool keep_open(struct run *r);
/* Appended at once. */
void keep_dead(struct run *r, const void *key, size_t len);
/* At the end: what is in the queue, and what was not read of the input. Sets r->left. */
void keep_rest(struct run *r);
void keep_close(struct run *r);

#endif
