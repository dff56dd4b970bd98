/*
 * Runs the scenarios on many schedules.
 *
 *     test_sim                                all scenarios, 400,000 seeds in all
 *     test_sim --part 1/2                     every second seed, from the first on
 *     test_sim --scenario fd --seeds 5000     one scenario
 *     test_sim --scenario fd --seed 17 --trace    one schedule, step by step
 *     test_sim --list                         what there is
 *
 * --from N begins with another seed than 0, --bug NAME switches a seeded bug
 * on, --hold N lets one hold of the lock take no more than N steps of long work.
 * WQ_LONG=1 in the environment: four times as many seeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all.h"
#include "base/bug.h"

static struct {
	uint64_t seeds, from;
	int64_t seed;
	unsigned part, parts;
	const struct scenario *only;
} opt = {.seeds = 400000, .seed = -1, .part = 1, .parts = 1};

static _Noreturn void usage(const char *why)
{
	fprintf(stderr, "%s; see the top of tests/sim/sim.c\n", why);
	exit(2);
}

static int bug_named(const char *name)
{
#define NAME(bug, text) #bug,
	static const char *const names[] = {"NONE", WQ__BUG_LIST(NAME)};
#undef NAME

	for (int i = 0; i < WQ__BUG_COUNT; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	usage("no such bug");
}

static void list(void)
{
	const struct scenario *s;

	for (int i = 0; (s = scenario_at(i)) != NULL; i++)
		printf("%-20s %s\n", s->name, s->what);
	exit(0);
}

static void parse(int argc, char **argv)
{
	const char *more = getenv("WQ_LONG");

	if (more && strcmp(more, "0") != 0 && *more)
		opt.seeds *= 4;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0) {
			sim_tracing = true;
			continue;
		}
		if (strcmp(argv[i], "--list") == 0)
			list();
		if (i + 1 == argc)
			usage("an option without its value, or none that is known");

		const char *name = argv[i], *value = argv[++i];

		if (strcmp(name, "--seeds") == 0)
			opt.seeds = strtoull(value, NULL, 10);
		else if (strcmp(name, "--from") == 0)
			opt.from = strtoull(value, NULL, 10);
		else if (strcmp(name, "--seed") == 0)
			opt.seed = strtoll(value, NULL, 10);
		else if (strcmp(name, "--bug") == 0)
			wq__bug = bug_named(value);
		else if (strcmp(name, "--hold") == 0)
			wq__hold_limit = strtoull(value, NULL, 10);
		else if (strcmp(name, "--part") == 0) {
			if (sscanf(value, "%u/%u", &opt.part, &opt.parts) != 2 || opt.part < 1 ||
			    opt.part > opt.parts)
				usage("--part wants 1/2 or the like");
		} else if (strcmp(name, "--scenario") == 0) {
			opt.only = scenario_named(value);
			if (!opt.only)
				usage("no such scenario");
		} else {
			usage("an option that is not known");
		}
	}
	if (opt.seed >= 0 && !opt.only)
		usage("--seed wants --scenario");
}

/* The same seed must always give the same run, or a failure could not be looked at again. */
static void repeat(const struct scenario *s, uint64_t seed, struct sim_result *r)
{
	struct sim_result again;
	int64_t end = sim_now();

	world_run(s, seed, &again);
	if (!again.failed && again.steps == r->steps && sim_now() == end)
		return;
	r->failed = true;
	snprintf(r->what, sizeof r->what, "the same seed gave another run");
}

static bool run_one(const struct scenario *s, uint64_t seed, uint64_t *steps)
{
	struct sim_result r;

	if (world_run(s, seed, &r) && seed % 64 == 0 && !sim_tracing)
		repeat(s, seed, &r);

	bool ok = !r.failed;

	*steps += r.steps;
	if (!ok)
		printf("FAILED scenario %s, seed %llu (%s, step %u): %s\n"
		       "       again: test_sim --scenario %s --seed %llu --trace\n",
		       s->name, (unsigned long long)seed, sim_strategy_name(r.strategy), r.steps,
		       r.what, s->name, (unsigned long long)seed);
	return ok;
}

/* Of each scenario only the first failure is told: the others are mostly the same. */
static bool run_many(const struct scenario *s, uint64_t n, uint64_t *ran)
{
	double start = milliseconds();
	uint64_t steps = 0, did = 0;
	bool ok = true;

	for (uint64_t i = opt.part - 1; i < n && ok; i += opt.parts, did++)
		ok = run_one(s, opt.from + i, &steps);

	double ms = milliseconds() - start;

	printf("%-6s %-20s %7llu seeds %6.0f ms %8.0f seeds/s %5.0f steps each\n",
	       ok ? "ok" : "FAILED", s->name, (unsigned long long)did, ms,
	       ms > 0 ? (double)did * 1000 / ms : 0, did ? (double)steps / (double)did : 0);
	*ran += did;
	return ok;
}

int main(int argc, char **argv)
{
	const struct scenario *s;
	uint64_t ran = 0;
	unsigned shares = 0;
	int failed = 0;
	double start = milliseconds();

	parse(argc, argv);
	if (opt.seed >= 0) {
		bool ok = run_one(opt.only, (uint64_t)opt.seed, &ran);

		puts(ok ? "clean" : "failed");
		return !ok;
	}
	for (int i = 0; (s = scenario_at(i)) != NULL; i++)
		shares += s->share;
	for (int i = 0; (s = scenario_at(i)) != NULL; i++) {
		/* Rounded up, so that all of them together are no less than was asked for. */
		if (!opt.only)
			failed += !run_many(s, (opt.seeds * s->share + shares - 1) / shares, &ran);
		else if (s == opt.only)
			failed += !run_many(s, opt.seeds, &ran);
	}

	double ms = milliseconds() - start;

	printf(
	    "%llu seeds from %llu on, part %u of %u, %.1f s, %.0f seeds/s, %d scenarios failed\n",
	    (unsigned long long)ran, (unsigned long long)opt.from, opt.part, opt.parts, ms / 1000,
	    ms > 0 ? (double)ran * 1000 / ms : 0, failed);
	return failed != 0;
}
