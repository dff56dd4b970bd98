/* See strategy.h. */
#include "strategy.h"

#include <stddef.h>

enum {
	PCT_STEPS = 300, /* change points lie among the first so many steps */
	PCT_POINTS = 3,
};

int (*sim_guide)(const int *ready, int n, int last);

/* How the run is scheduled, all from the seed. */
static uint64_t rng;
static enum sim_strategy strategy;
static uint32_t burst;            /* BURSTS: one in so many steps changes places */
static int victim;                /* STARVE */
static uint32_t drop[PCT_POINTS]; /* PCT: steps at which the running task drops */
static int lowest;                /* PCT: the priority it drops to */
static uint32_t time_pace;        /* 0: time stands still while somebody can go on */
static bool spurious;
static int priority[SIM_MAX_TASKS]; /* PCT */

/* ---- chance ---------------------------------------------------------------- */

static uint32_t random_bits(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng * 0x2545F4914F6CDD1Du) >> 32);
}

uint32_t sim_random(uint32_t n)
{
	if (sim_guide)
		return n - 1;
	return (uint32_t)(((uint64_t)random_bits() * n) >> 32);
}

bool sim_chance(uint32_t n)
{
	return sim_random(n) == 0; /* guided: never, but for n = 1 */
}

const char *sim_strategy_name(enum sim_strategy s)
{
	static const char *const names[] = {"uniform", "pct", "bursts", "starve"};

	return s < SIM_STRATEGIES ? names[s] : "?";
}

enum sim_strategy strategy_plan(uint64_t seed)
{
	rng = (seed + 1) * 0x9E3779B97F4A7C15u;
	rng ^= rng >> 29;
	if (!rng)
		rng = 1;
	for (int i = 0; i < 4; i++)
		random_bits();
	strategy = (enum sim_strategy)sim_random(SIM_STRATEGIES);
	burst = 2u << sim_random(6);
	victim = (int)sim_random(5);
	lowest = 0;
	for (int i = 0; i < PCT_POINTS; i++)
		drop[i] = i > (int)sim_random(PCT_POINTS + 1) ? UINT32_MAX : sim_random(PCT_STEPS);
	time_pace = sim_random(3);
	spurious = sim_chance(4);
	if (sim_guide) {
		time_pace = 0;
		spurious = false;
	}
	return strategy;
}

int64_t strategy_pass_time(void)
{
	if (time_pace == 1)
		return sim_random(100);
	if (time_pace == 2 && sim_chance(16))
		return sim_random(1u << sim_random(16));
	return 0;
}

bool strategy_time_runs(void)
{
	return time_pace > 0;
}

bool strategy_wakes_falsely(void)
{
	return spurious && sim_chance(64);
}

void strategy_spawned(int task)
{
	priority[task] = (int)sim_random(1000) + 1;
}

int strategy_choose(const int *ready, int n, int last, uint32_t step)
{
	int best = ready[0];

	if (sim_guide)
		return sim_guide(ready, n, last);
	switch (strategy) {
	case SIM_PCT:
		for (int i = 0; i < PCT_POINTS; i++) {
			if (drop[i] == step && last >= 0)
				priority[last] = --lowest;
		}
		for (int i = 1; i < n; i++) {
			if (priority[ready[i]] > priority[best])
				best = ready[i];
		}
		return best;
	case SIM_BURSTS:
		for (int i = 0; i < n; i++) {
			if (ready[i] == last && !sim_chance(burst))
				return last;
		}
		break;
	case SIM_STARVE:
		best = ready[sim_random((uint32_t)n)];
		if (best == victim && n > 1 && !sim_chance(16)) {
			do
				best = ready[sim_random((uint32_t)n)];
			while (best == victim);
		}
		return best;
	case SIM_UNIFORM:
	case SIM_STRATEGIES:
		break;
	}
	return ready[sim_random((uint32_t)n)];
}
