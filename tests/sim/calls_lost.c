/*
 * Each call that wakes somebody is needed: the schedules find out if it does
 * nothing (WQ__LOST() of base/bug.h). `--only FILE:LINE` looks for one of them.
 *
 * A call that can be lost without harm is deleted, or stands in `elsewhere` with
 * the reason, as one does that another test looks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all.h"
#include "base/bug.h"

/* A run that finds a bug is left where it stands, and what it has made with it. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

enum { SEEDS = 4000, FEW_SEEDS = 200 };

extern const struct wq__call __start_wq__calls[], __stop_wq__calls[];

#define TIMER "a timer of the kernel, which knows no simulated time: behaviour_delay"

static const struct {
	const char *function, *what, *why;
} elsewhere[] = {
    {"wq__breathe", "pick_many",
     "what has come due wakes the leader by itself, and the caller picks the others when it ends"},
    {"hand_out", "pass_on",
     "a key beside a sleeper has another Get under way to it; this one wakes more of them sooner"},
    {"finish_closing", "watch_hold_end",
     "nothing comes due once a queue is closing, so whoever ends the last hold sees that it is "
     "idle"},
    {"look_ahead", "fd_due", TIMER},
    {"wq__rank_wake", "fd_signal", "a timer of the kernel, too: model, on a manual clock"},
    {"open_all", "fd_due", TIMER},
    {"cut", "fd_due", TIMER},
    {"wq__watch_hold_end", "fd_signal", "behaviour_fd"},
    {"wq__mem_shutdown", "fd_signal", "behaviour_fd"},
};

static const char *why_not(const struct wq__call *c)
{
	for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
		if (strcmp(elsewhere[i].function, c->function) == 0 &&
		    strcmp(elsewhere[i].what, c->what) == 0)
			return elsewhere[i].why;
	return NULL;
}

/* Whether it may be judged where calls on many keys take several holds of the lock. */
static bool is_divisible(const struct scenario *s)
{
	static const char *const names[] = {"later", "pool-fail", "due-pool", "idle-dead",
	                                    "drop-due"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i], s->name) == 0)
			return true;
	return false;
}

/* One seed in every scenario, then the next. By turns one hold of the lock does little or a lot. */
static const struct scenario *search(uint64_t seeds, uint64_t *seed, struct sim_result *r)
{
	const struct scenario *s;

	for (*seed = 0; *seed < seeds; ++*seed) {
		for (int i = 0; (s = scenario_at(i)) != NULL; i++) {
			wq__hold_limit = *seed % 2 && is_divisible(s) ? 1 : 0;
			if (!world_run(s, *seed, r))
				return s;
		}
	}
	return NULL;
}

static bool look_for(const struct wq__call *c)
{
	const char *why = why_not(c);
	struct sim_result r;
	uint64_t seed;
	double start = milliseconds();

	wq__lost_call = c;

	const struct scenario *s = search(why ? FEW_SEEDS : SEEDS, &seed, &r);
	char place[80];

	wq__lost_call = NULL;
	snprintf(place, sizeof place, "%s:%d %s", strrchr(c->file, '/') + 1, c->line, c->function);
	printf("%-40s %-14s %6.0f ms  ", place, c->what, milliseconds() - start);
	if (s)
		printf("%s, seed %llu: %s\n", s->name, (unsigned long long)seed, r.what);
	else
		printf("nothing found%s%s\n", why ? ": " : "", why ? why : "");
	if (s && why)
		printf("FAILED: it need not stand in the list\n");
	else if (!s && !why)
		printf("FAILED: no schedule needs it\n");
	fflush(stdout);
	return (s != NULL) == (why == NULL);
}

int main(int argc, char **argv)
{
	const char *only = argc == 3 && strcmp(argv[1], "--only") == 0 ? argv[2] : NULL;
	int calls = 0, failed = 0;

	sim_strict = false;
	for (const struct wq__call *c = __start_wq__calls; c < __stop_wq__calls; c++) {
		char place[80];

		snprintf(place, sizeof place, "%s:%d", strrchr(c->file, '/') + 1, c->line);
		if (only && strcmp(only, place) != 0)
			continue;
		calls++;
		failed += !look_for(c);
	}
	printf("%d calls that wake, %d failures\n", calls, failed);
	return failed != 0 || calls == 0;
}
