/* --results DIR: what the last attempt of each key wrote, in files. */
#ifndef CLI_OUTPUT_RESULTS_H
#define CLI_OUTPUT_RESULTS_H

#include "cli/command/job.h"

/* Make DIR. False, after a message: it cannot be had. */
bool results_make(struct run *r);
void results_release(struct run *r);
/* Files for the command's outputs in fd: 0 or an errno. */
int results_open(struct run *r, struct job *j, int fd[2]);
/* They cannot be had by this error: is it so for all keys, not this one alone? */
bool results_lack(struct run *r, int error);
/* The attempt, as the log tells it, beside them. */
void results_close(struct run *r, const struct job *j, const struct text *line);

#endif
