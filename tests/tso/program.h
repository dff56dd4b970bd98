/* A program that runs plans on the machine: it supplies these, program.c the rest. */
#ifndef WQ_TSO_PROGRAM_H
#define WQ_TSO_PROGRAM_H

#include "tso/machine.h"

extern const struct tso_plan tso_plans[];
extern const int tso_nplans;

/* Before the first plan: membarrier works. */
void tso_begin(void);

#endif
