/* --log FILE: one JSON object a line for each attempt. */
#ifndef CLI_OUTPUT_LOG_H
#define CLI_OUTPUT_LOG_H

#include "cli/command/job.h"

/* False, after a message: the file cannot be opened. */
bool log_open(struct run *r);
/* Of one key of the job. */
void log_attempt(struct run *r, const struct job *j, const struct held *h);
void log_close(struct run *r);

#endif
