/* --http ADDR, by libwq-http if it is there; and --metrics-file FILE. */
#ifndef CLI_WEB_H
#define CLI_WEB_H

#include "cli/run.h"

/* False, after a message: it cannot be served. */
bool web_open(struct run *r);
void web_close(void);

/* Can the file be written? False, after a message. */
bool web_file_open(struct run *r);
/* Writes the metrics as they are now. */
void web_file_write(struct run *r);

#endif
