/*
 * Each seeded bug (base/bug.h) is found, and without one nothing is found.
 * `--only NAME` looks for one of them.
 *
 * The rule of base/sync.h that setters hold the lock is not checked here, so
 * that bugs are found by what they lead to.
 */
#include <stdio.h>
#include <string.h>

#include "all.h"
#include "base/bug.h"

/* A run that finds a bug is left where it stands, and what it has made with it. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

enum { SEEDS = 2000, CLEAN_SEEDS = 50 };

static const struct {
	const char *name, *text;
} bugs[] = {
#define BUG(bug, what) {#bug, what},
    {"NONE", "no bug"}, WQ__BUG_LIST(BUG)
#undef BUG
};

struct found {
	const struct scenario *scenario;
	uint64_t seed, runs;
	struct sim_result result;
};

/* One seed in every scenario, then the next. */
static bool search(uint64_t seeds, struct found *f)
{
	f->runs = 0;
	for (f->seed = 0; f->seed < seeds; f->seed++) {
		for (int i = 0; (f->scenario = scenario_at(i)) != NULL; i++) {
			f->runs++;
			if (!world_run(f->scenario, f->seed, &f->result))
				return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *only = argc == 3 && strcmp(argv[1], "--only") == 0 ? argv[2] : NULL;
	int failed = 0;

	sim_strict = false;
	printf("%-21s %6s %6s  %-19s %5s %-8s %s\n", "bug", "runs", "ms", "found by", "seed",
	       "strategy", "as");
	for (int i = 0; i < WQ__BUG_COUNT; i++) {
		struct found f;
		double start = milliseconds();

		if (only && strcmp(only, bugs[i].name) != 0)
			continue;
		wq__bug = i;

		bool found = search(i == WQ__BUG_NONE ? CLEAN_SEEDS : SEEDS, &f);
		bool ok = found == (i != WQ__BUG_NONE);

		printf("%-21s %6llu %6.1f  ", bugs[i].name, (unsigned long long)f.runs,
		       milliseconds() - start);
		if (found)
			printf("%-19s %5llu %-8s %s\n", f.scenario->name,
			       (unsigned long long)f.seed, sim_strategy_name(f.result.strategy),
			       f.result.what);
		else
			printf("nothing found\n");
		if (!ok) {
			printf("FAILED %s (%s)\n", bugs[i].name, bugs[i].text);
			failed++;
		}
		fflush(stdout);
	}
	printf("%d seeded bugs, %d failures\n", WQ__BUG_COUNT - 1, failed);
	return failed != 0;
}
