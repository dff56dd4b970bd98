/*
 * How the schedule of a run is chosen: by the seed, or by a guide.
 *
 * The guide is for those who go through schedules one after another: nothing is
 * left to chance then, time stands still while somebody can go on, and tasks
 * change places only while they hold no lock.
 */
#ifndef WQ_SIM_STRATEGY_H
#define WQ_SIM_STRATEGY_H

#include "sched.h"

/* A new run begins. */
enum sim_strategy strategy_plan(uint64_t seed);

/* The task with this number is there. */
void strategy_spawned(int task);

/* Who of ready[0..n-1] goes on; last: who did before, or -1. */
int strategy_choose(const int *ready, int n, int last, uint32_t step);

/* How much time this step takes; whether time runs at all while tasks do. */
int64_t strategy_pass_time(void);
bool strategy_time_runs(void);

/* Is some sleeper, by chance, to wake for nothing? */
bool strategy_wakes_falsely(void);

#endif
