/*
 * The command line of a program that runs its plans on the machine:
 *
 *     test_tso_lock                      all scenarios
 *     test_tso_lock --scenario own --model pso --kernel none --run abca
 *                                        one run, step by step
 *     test_tso_lock --expect-failure     some scenario fails: for seeded bugs
 */
#include "tso/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_RUNS = 30000, QUICK_RUNS = 60000, LONG_RUNS = 500000 };

static const char *const models[] = {"tso", "pso"};
static const char *const kernels[] = {"barriers", "none", "refused"};

/* ---- the command line --------------------------------------------------------------- */

static _Noreturn void usage(void)
{
	fputs("see the top of tests/tso/program.c\n", stderr);
	exit(2);
}

static int index_of(const char *name, const char *const *list, int n)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(list[i], name) == 0)
			return i;
	}
	usage();
}

static int failures;

static void run(const struct tso_plan *plan, uint64_t max)
{
	struct tso_result r;
	bool ok = tso_search(plan, max, &r);
	bool complete = r.complete;
	uint64_t runs = r.runs, states = r.states;

	if (ok && !complete) {
		ok = tso_random(plan, 1, RANDOM_RUNS, &r);
		runs += r.runs;
	}
	printf("%-6s %-14s %-3s %-8s %9llu runs %9llu states%s\n", ok ? "ok" : "FAILED", plan->name,
	       models[tso_model], kernels[tso_kernel], (unsigned long long)runs,
	       (unsigned long long)states,
	       complete ? ", all"
	       : ok     ? ", and by chance"
	                : "");
	if (!ok) {
		printf("       %s\n       again: --scenario %s --model %s --kernel %s --run %s\n",
		       r.what, plan->name, models[tso_model], kernels[tso_kernel], r.run);
		failures++;
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *more = getenv("WQ_LONG"), *again = NULL;
	bool is_long = more && *more && strcmp(more, "0") != 0, expected = false;
	int only = -1, model = -1, kernel = -1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--expect-failure") == 0) {
			expected = true;
			continue;
		}
		if (i + 1 == argc)
			usage();
		if (strcmp(argv[i], "--scenario") == 0) {
			for (only = 0;
			     only < tso_nplans && strcmp(tso_plans[only].name, argv[i + 1]);)
				only++;
			if (only == tso_nplans)
				usage();
		} else if (strcmp(argv[i], "--model") == 0) {
			model = index_of(argv[i + 1], models, 2);
		} else if (strcmp(argv[i], "--kernel") == 0) {
			kernel = index_of(argv[i + 1], kernels, 3);
		} else if (strcmp(argv[i], "--run") == 0) {
			again = argv[i + 1];
		} else {
			usage();
		}
		i++;
	}
	tso_kernel = TSO_BARRIERS;
	tso_begin();
	for (int s = 0; s < tso_nplans; s++) {
		for (int m = 0; m < 2; m++) {
			for (int k = 0; k < 3; k++) {
				if ((only >= 0 && s != only) || (model >= 0 && m != model) ||
				    (kernel >= 0 && k != kernel))
					continue;
				tso_model = (enum tso_model)m;
				tso_kernel = (enum tso_kernel)k;
				if (again)
					return !tso_again(&tso_plans[s], again);
				run(&tso_plans[s], is_long && !expected ? LONG_RUNS : QUICK_RUNS);
				if (expected && failures)
					return 0;
			}
		}
	}
	printf("%d failures\n", failures);
	if (expected)
		puts("the seeded bug was not found");
	return expected || failures;
}
