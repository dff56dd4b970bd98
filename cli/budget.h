/*
 * Descriptors: one limit, and who may use how many of them.
 *
 *   the run itself    BUDGET_OWN: its files, the loop, signals, kept output, the server for --http
 *   each command      BUDGET_COMMAND: two pipes, two files for long output, and twice that while
 *                     it is started
 *   connections       what is left, but no fewer than BUDGET_RESERVE
 *
 * With a socket there are never more workers than leave the reserve, so a run can be asked and
 * stopped whatever it does. Without one nobody connects, and commands that find no descriptor
 * wait for one that ends.
 */
#ifndef CLI_BUDGET_H
#define CLI_BUDGET_H

#include "cli/run.h"

enum {
	BUDGET_OWN = 64,
	BUDGET_COMMAND = 8,
	BUDGET_RESERVE = 16,
	BUDGET_CONNECTIONS = 4000 /* no more than that in any case */
};

/* Raises the limit as far as so many workers and the socket need it, and may. */
void budget_raise(struct run *r, uint32_t workers);
/* How many workers there is room for, from 1. */
uint32_t budget_workers(const struct run *r);
/* How many connections there may be. */
unsigned budget_connections(const struct run *r);
/* The limit as it is now. */
uint64_t budget_limit(void);

#endif
