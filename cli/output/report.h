/* Progress on a terminal, and the summary at the end. */
#ifndef CLI_OUTPUT_REPORT_H
#define CLI_OUTPUT_REPORT_H

#include "cli/run.h"

void report_open(struct run *r);
/* In every turn of the loop. */
void report_turn(struct run *r);
/* When it wants the next turn; WQ_NEVER: it shows nothing. */
int64_t report_next_ns(const struct run *r);
/* The line of progress goes for good. */
void report_close(struct run *r);
/* Says what became of all keys. */
void report_summary(const struct run *r);
/* The line of the terminal is another's now; first it is cleared, or it stays as it is. */
void report_yield(bool cleared);
/* Attempts that ended, a second, recently. */
double report_rate(void);

#endif
