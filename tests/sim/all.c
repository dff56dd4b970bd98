#define _POSIX_C_SOURCE 200809L
#include "all.h"

#include <string.h>
#include <time.h>

const struct scenario *scenario_at(int i)
{
	static const struct scenario *const lists[] = {scenarios_work,  scenarios_wait,
	                                               scenarios_stop,  scenarios_look,
	                                               scenarios_delay, scenarios_timer,
	                                               scenarios_later, scenarios_pool,
	                                               scenarios_due,   scenarios_report,
	                                               scenarios_rich};

	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
		for (const struct scenario *s = lists[l]; s->name; s++) {
			if (i-- == 0)
				return s;
		}
	}
	return NULL;
}

const struct scenario *scenario_named(const char *name)
{
	const struct scenario *s;

	for (int i = 0; (s = scenario_at(i)) != NULL; i++) {
		if (strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

double milliseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}
