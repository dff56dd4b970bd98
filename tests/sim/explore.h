/*
 * Going through the schedules of a few tasks one after another, instead of by
 * chance: depth first, all schedules with at most so many preemptions.
 *
 * A task goes on until it waits or ends; taking another one although it could
 * go on is a preemption. Whom to take when the last one waits is free. Most
 * bugs of concurrency need one or two preemptions at the right place.
 */
#ifndef WQ_SIM_EXPLORE_H
#define WQ_SIM_EXPLORE_H

#include "world.h"

struct explored {
	uint64_t runs;
	bool cut;              /* there are more schedules than max_runs */
	char schedule[512];    /* the last one: for explore_one() */
	struct sim_result bad; /* failed: of that schedule */
};

/* Called at every point where a task may change places, when no lock is held; may be NULL. */
extern void (*explore_look)(void);

/* Runs the scenario on all schedules with so many preemptions. True: all were clean. */
bool explore(const struct scenario *s, int preemptions, uint64_t max_runs, struct explored *x);

/* Runs it on one schedule, as explored.schedule has it: the choices, one letter each. */
bool explore_one(const struct scenario *s, const char *schedule, struct sim_result *r);

#endif
