/* All scenarios in one row, and how a failure is told. */
#ifndef WQ_SIM_ALL_H
#define WQ_SIM_ALL_H

#include "world.h"

/* The i-th scenario of all, or NULL. */
const struct scenario *scenario_at(int i);
const struct scenario *scenario_named(const char *name);

/* Milliseconds of processor time. */
double milliseconds(void);

#endif
