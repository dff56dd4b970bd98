/*
 * wq_bench: measures the queue and holds every figure beside its bar.
 *
 * Each row is repeated. Its value is the best repetition, which is what the
 * code can do when the machine lets it; the median and the worst stand beside
 * it. What it is judged by is measured in the same repetition, in turn with
 * it, and its value is its best as well. (slices.c says how rows of one thread
 * are timed, and how repetitions of a course are combined.)
 *
 * Rows of several threads depend on how far apart the CPUs are, and a virtual
 * machine's may move while it runs. So the trip of a cache line is taken
 * before and after each repetition, and only repetitions of one class are
 * compared with each other:
 *
 *   class    trip, one way           floor of a throughput
 *   near     both <= 40 ns           × 1
 *   far      both >= 150 ns          × 0.35
 *   between  anything else           between the two, by the mean trip
 *
 * The exit status tells whether the run was in order, not whether it was fast.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef WQ_BENCH_BUILD
#define WQ_BENCH_BUILD "unknown"
#endif

static const struct bench_groups *const all[] = {
    &bench_single, &bench_bulk,  &bench_threads,  &bench_wake,  &bench_memory, &bench_wheel,
    &bench_delay,  &bench_burst, &bench_late,     &bench_parts, &bench_limit,  &bench_workers,
    &bench_scrape, &bench_sweep, &bench_resident, &bench_rich,
};

enum { REPS_QUICK = 2, REPS_MAX = 100, ROWS_MAX = 160 };

struct options {
	int reps; /* 0: as each group has them */
	bool quick;
	const char *rows; /* NULL: all but the points of curves */
	bool curves;      /* those, too */
	bool on_request;  /* and what needs very much memory and time */
	const char *json; /* NULL: none */
	bool lines;       /* a JSON line for each row instead of the table */
};

/* ---- what was measured ----------------------------------------------------- */

enum class { NEAR, BETWEEN, FAR, CLASSES };

static const char *const class_names[] = {"near", "between", "far"};

static const double near_ns = 40, far_ns = 150, far_factor = 0.35;

struct repetition {
	struct bench_sample samples[BENCH_ROWS_MAX];
	double trip_before, trip_after; /* 0: not taken */
	enum class class;
};

struct series {
	struct repetition reps[2 * REPS_MAX];
	int n;
	enum class class; /* the one that counts */
	struct bench_sample combined[BENCH_ROWS_MAX];
};

struct verdict {
	const struct bench_row *row;
	double best, best_rep, median, worst, low, high;
	double limit;
	double bar;
	char limit_name[64];
	char judged_by[96];
	bool met;
};

struct results {
	struct verdict list[ROWS_MAX];
	size_t n;
	char machine[512];
};

static double mean_trip(const struct repetition *r)
{
	return (r->trip_before + r->trip_after) / 2;
}

static enum class classify(const struct repetition *r) {
	if (r->trip_before <= near_ns && r->trip_after <= near_ns) return NEAR;
	if (r->trip_before >= far_ns && r->trip_after >= far_ns) return FAR;
	return BETWEEN;
}

static double placement_factor(double trip_ns)
{
	if (trip_ns <= near_ns)
		return 1;
	if (trip_ns >= far_ns)
		return far_factor;
	return 1 - (1 - far_factor) * (trip_ns - near_ns) / (far_ns - near_ns);
}

/* The class with the most repetitions; the nearer one of two that have as many. */
static enum class common_class(const struct series *s, int *count) {
	int counts[CLASSES] = {0}; enum class best = NEAR;

	for (int i = 0; i < s->n; i++) counts[s->reps[i].class]++;
	for (enum class c = NEAR; c < CLASSES; c++) if (counts[c] > counts[best]) best = c;
	*count = counts[best];
	return best;
}

/* ---- judging --------------------------------------------------------------- */

static void format_value(char *out, size_t size, const char *unit, double v)
{
	if (strcmp(unit, "ns") == 0)
		snprintf(out, size, v < 10000 ? "%.1f ns" : "%.1f us", v < 10000 ? v : v / 1000);
	else if (strchr(unit, '/'))
		snprintf(out, size, "%.2f M/s", v * 1e-6);
	else
		snprintf(out, size, "%.2f %s", v, unit);
}

static bool more_is_better(const struct bench_row *row)
{
	return strchr(row->unit, '/') != NULL;
}

static void judge_bar(struct verdict *v, double trip_ns, enum class class)
{
	const struct bench_row *row = v->row;
	char limit[32];

	if (!row->limit_name)
		return;
	format_value(limit, sizeof limit, row->unit, v->limit);
	snprintf(v->limit_name, sizeof v->limit_name, "%s", row->limit_name);
	switch (row->bar) {
	case BAR_TIMES:
		v->bar = row->factor * v->limit;
		snprintf(v->judged_by, sizeof v->judged_by, "%.4g x %s (%s)", row->factor,
		         row->limit_name, limit);
		break;
	case BAR_PLUS:
		v->bar = v->limit + row->factor;
		snprintf(v->judged_by, sizeof v->judged_by, "%s (%s) + %.4g us", row->limit_name,
		         limit, row->factor / 1000);
		break;
	case BAR_FLOOR:
		v->limit = v->bar = row->factor * placement_factor(trip_ns);
		snprintf(v->limit_name, sizeof v->limit_name, "floor_%s", class_names[class]);
		snprintf(v->judged_by, sizeof v->judged_by, "%.4g M/s x %.2f (%s)",
		         row->factor * 1e-6, placement_factor(trip_ns), class_names[class]);
		break;
	case BAR_SHARE:
		v->bar = row->factor * v->limit;
		snprintf(v->judged_by, sizeof v->judged_by, "%.4g %% of %s (%s)", row->factor * 100,
		         row->limit_name, limit);
		break;
	case BAR_FIXED:
		v->limit = v->bar = row->factor;
		snprintf(v->judged_by, sizeof v->judged_by, "%s", row->limit_name);
		break;
	case BAR_NONE:
		snprintf(v->judged_by, sizeof v->judged_by, "beside %s (%s)", row->limit_name,
		         limit);
		break;
	}
	v->met = more_is_better(row) ? v->best >= v->bar : v->best <= v->bar;
}

/*
 * Only repetitions of the series' class count; low and high are theirs. The
 * limit is the primitive's best, as the value is the row's; where the two are
 * paired, it is that of the best repetition, because a line's trip has several
 * speeds and a repetition has but one of them.
 */
static void judge(struct verdict *v, const struct bench_group *g, size_t at, const struct series *s)
{
	const struct bench_row *row = &g->rows[at];
	double values[2 * REPS_MAX];
	bool more = more_is_better(row);
	double limit = more ? 0 : INFINITY, trip = 0;
	size_t n = 0;

	v->row = row;
	for (int i = 0; i < s->n; i++) {
		const struct repetition *r = &s->reps[i];
		double value = r->samples[at].value;

		if (r->class != s->class)
			continue;
		if (n == 0 || (more ? value > v->best : value < v->best)) {
			v->best = value;
			trip = mean_trip(r);
			if (g->paired)
				limit = r->samples[at].limit;
		}
		if (!g->paired &&
		    (more ? r->samples[at].limit > limit : r->samples[at].limit < limit))
			limit = r->samples[at].limit;
		values[n++] = value;
	}
	v->limit = limit;
	v->median = bench_percentile(values, n, 0.5);
	v->low = values[0];
	v->high = values[n - 1];
	v->worst = more ? v->low : v->high;
	v->best_rep = v->best;
	if (g->combine) {
		v->best = s->combined[at].value;
		v->low = v->best < v->low ? v->best : v->low;
	}
	judge_bar(v, trip, s->class);
}

/* ---- measuring ------------------------------------------------------------- */

static bool selected(const struct options *o, const struct bench_group *g, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = o->rows; at; at = strchr(at, ',')) {
		if (*at == ',')
			at++;
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return !o->rows && (o->curves || !strchr(name, '@')) && (o->on_request || !g->on_request);
}

static void progress(const struct bench_group *g, int rep, int reps)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (g)
		fprintf(stderr, "\r\033[K%s: %d of %d", g->rows[0].name, rep, reps);
	else
		fprintf(stderr, "\r\033[K");
}

static void measure(const struct bench_group *g, const struct options *o, struct series *s)
{
	void *state = g->setup ? g->setup(g->arg) : NULL;
	int count = 0, reps = o->reps ? o->reps : g->reps;

	/* Repetitions in other classes are added to, up to twice as many. */
	for (s->n = 0; count < reps && s->n < 2 * reps;
	     s->n++, s->class = common_class(s, &count)) {
		struct repetition *r = &s->reps[s->n];

		progress(g, count + 1, reps);
		*r = (struct repetition){.class = NEAR};
		if (g->threads)
			r->trip_before = bench_line_trip();
		g->run(g->arg, state, r->samples);
		if (g->threads) {
			r->trip_after = bench_line_trip();
			r->class = classify(r);
		}
	}
	progress(NULL, 0, 0);
	if (g->combine)
		g->combine(state, s->combined);
	if (g->teardown)
		g->teardown(state);
}

static void print_verdict(const struct verdict *v, bool quick)
{
	char best[32], median[32], worst[32], bar[32];
	const char *unit = v->row->unit;

	format_value(best, sizeof best, unit, v->best);
	format_value(median, sizeof median, unit, v->median);
	format_value(worst, sizeof worst, unit, v->worst);
	format_value(bar, sizeof bar, unit, v->bar);
	if (v->row->bar == BAR_NONE) {
		printf("%-18s %12s %12s %12s   %-15s %-6s  %s\n", v->row->name, best, median, worst,
		       "none", "-", v->judged_by);
		return;
	}
	printf("%-18s %12s %12s %12s   %s %-12s %-6s  %s\n", v->row->name, best, median, worst,
	       more_is_better(v->row) ? ">=" : "<=", bar,
	       quick    ? "-"
	       : v->met ? "ok"
	                : "MISSED",
	       v->judged_by);
	if (v->best != v->best_rep) {
		format_value(best, sizeof best, unit, v->best_rep);
		printf("%-18s %12s as a whole, best repetition; above: the sum of each slice's "
		       "best\n",
		       "", best);
	}
}

/* As bench/peers/README.md has it: every row, the judged ones and those that are only compared. */
static void print_line(const struct verdict *v)
{
	printf("{\"row\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}\n", v->row->name, v->best,
	       v->row->unit);
}

static bool row_has_limit(const struct bench_row *row)
{
	return row->limit_name && row->bar != BAR_FLOOR && row->bar != BAR_FIXED;
}

/* Rows of threads vary, and so do their primitives: each pair is shown. */
static void print_pairs(const struct series *s, const char *unit, size_t at)
{
	char value[32], limit[32];

	printf("%-18s each repetition / its limit:", "");
	for (int i = 0; i < s->n; i++) {
		format_value(value, sizeof value, unit, s->reps[i].samples[at].value);
		format_value(limit, sizeof limit, unit, s->reps[i].samples[at].limit);
		printf("%s %s / %s", i ? "," : "", value, limit);
	}
	printf("\n");
}

static void print_trips(const struct series *s)
{
	bool others = false;

	printf("%-18s trips in ns, before-after:", "");
	for (int i = 0; i < s->n; i++) {
		bool other = s->reps[i].class != s->class;

		printf(" %.0f-%.0f%s", s->reps[i].trip_before, s->reps[i].trip_after,
		       other ? "*" : "");
		others |= other;
	}
	printf(" (%s%s)\n", class_names[s->class], others ? "; * another class, left out" : "");
}

static void run_group(const struct bench_group *g, const struct options *o, struct results *out)
{
	static struct series s;
	bool any = false;

	for (size_t i = 0; i < g->nrows; i++)
		any |= selected(o, g, g->rows[i].name);
	if (!any)
		return;
	measure(g, o, &s);
	for (size_t i = 0; i < g->nrows; i++) {
		if (!selected(o, g, g->rows[i].name))
			continue;

		struct verdict *v = &out->list[out->n++];

		judge(v, g, i, &s);
		if (o->lines) {
			print_line(v);
			continue;
		}
		print_verdict(v, o->quick);
		if (g->threads && row_has_limit(&g->rows[i]))
			print_pairs(&s, v->row->unit, i);
	}
	if (g->threads && !o->lines)
		print_trips(&s);
}

/* ---- the machine ----------------------------------------------------------- */

static void cpu_model(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(out, size, "unknown CPU");
	while (f && fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, size, "%s", colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

/* The primitives once, at the beginning: what kind of machine this is. */
static void describe_machine(struct results *out)
{
	char model[128];
	struct utsname system;
	double idle50, idle99, busy50, busy99, trip = bench_line_trip();
	double mutex = bench_alone(&bench_mutex), clock = bench_alone(&bench_clock);
	double random_access = bench_alone(&bench_random_access);
	cpu_set_t set;

	cpu_model(model, sizeof model);
	uname(&system);
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof set, &set);
	bench_futex_wake(false, bench_sizes.wakes / 2, &idle50, &idle99);
	bench_futex_wake(true, bench_sizes.wakes / 2, &busy50, &busy99);
	snprintf(out->machine, sizeof out->machine,
	         "%s, %d CPUs, %s %s %s, wq %s (%s); mutex %.1f ns, random access %.0f ns, "
	         "line trip %.0f ns, clock %.0f ns, futex wake p50/p99 idle %.1f/%.1f us, busy "
	         "%.1f/%.1f us",
	         model, CPU_COUNT(&set), system.sysname, system.release, system.machine,
	         wq_version_string(), WQ_BENCH_BUILD, mutex, random_access, trip, clock,
	         idle50 / 1000, idle99 / 1000, busy50 / 1000, busy99 / 1000);
}

/* Other work takes CPUs away: most of all the rows of threads are worthless then. */
static void warn_if_busy(void)
{
	double load;

	if (getloadavg(&load, 1) == 1 && load > 0.5)
		printf("The machine was busy before this run (load %.1f): expect worse figures.\n",
		       load);
}

/* ---- JSON ------------------------------------------------------------------ */

static void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if ((unsigned char)*s >= ' ')
			fputc(*s, f);
	}
	fputc('"', f);
}

static void json_number(FILE *f, double v)
{
	fprintf(f, v < 1000 ? "%.3f" : "%.0f", isfinite(v) ? v : 0.0);
}

static bool write_rows(FILE *f, const struct results *results)
{
	bool any = false;

	fprintf(f, "{\"machine\": ");
	json_string(f, results->machine);
	fprintf(f, ", \"rows\": [");
	for (size_t i = 0; i < results->n; i++) {
		const struct verdict *v = &results->list[i];

		if (v->row->bar == BAR_NONE)
			continue;
		fprintf(f, "%s\n{\"name\": ", any ? "," : "");
		any = true;
		json_string(f, v->row->name);
		fprintf(f, ", \"value\": ");
		json_number(f, v->best);
		fprintf(f, ", \"unit\": ");
		json_string(f, v->row->unit);
		fprintf(f, ", \"spread\": [");
		json_number(f, v->low);
		fprintf(f, ", ");
		json_number(f, v->high);
		fprintf(f, "], \"limit\": ");
		json_number(f, v->limit);
		fprintf(f, ", \"limit_name\": ");
		json_string(f, v->limit_name);
		fprintf(f, "}");
	}
	fprintf(f, "\n]}\n");
	return fflush(f) == 0 && !ferror(f) && fsync(fileno(f)) == 0;
}

/* Written beside its place and moved there: a reader sees all of it or the old one. */
static bool write_json(const char *path, const struct results *results)
{
	char temporary[4096];
	int len = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());

	if (len < 0 || (size_t)len >= sizeof temporary) {
		errno = ENAMETOOLONG;
		return false;
	}

	FILE *f = fopen(temporary, "we");

	if (!f)
		return false;

	bool written = write_rows(f, results);

	written &= fclose(f) == 0;
	if (written && rename(temporary, path) == 0)
		return true;
	unlink(temporary);
	return false;
}

/* ---- arguments ------------------------------------------------------------- */

static const char usage[] =
    "usage: wq_bench [options]\n"
    "  --rows A,B,..  only these rows\n"
    "  --curves       also how the cost grows: the rows NAME@X, which take long\n"
    "  --long         also hold_100m, which needs 9 GiB of memory and some minutes\n"
    "  --reps N       repetitions of each row, 1 to 100 (default: 5 to 25)\n"
    "  --quick        tiny sizes, to see that everything runs; judges nothing\n"
    "  --json FILE    also write the figures there\n"
    "  --lines        print a JSON line for each row, and nothing else\n"
    "  --list         print the names of the rows\n"
    "  --version      print what is measured, and its version\n"
    "  --help         print this\n";

static int list_rows(void)
{
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (size_t g = 0; g < all[i]->n; g++)
			for (size_t r = 0; r < all[i]->list[g].nrows; r++)
				printf("%s\n", all[i]->list[g].rows[r].name);
	return 0;
}

static int print_versions(void)
{
	printf("wq %s (%s)\n", wq_version_string(), WQ_BENCH_BUILD);
	bench_wheel_versions();
	return 0;
}

static bool known_row(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (size_t g = 0; g < all[i]->n; g++)
			for (size_t r = 0; r < all[i]->list[g].nrows; r++) {
				const char *row = all[i]->list[g].rows[r].name;

				if (strlen(row) == len && strncmp(row, name, len) == 0)
					return true;
			}
	return false;
}

static bool rows_known(const char *rows)
{
	for (const char *at = rows;; at++) {
		size_t len = strcspn(at, ",");

		if (!known_row(at, len)) {
			fprintf(stderr, "wq_bench: no row is called '%.*s'; --list names them\n",
			        (int)len, at);
			return false;
		}
		at += len;
		if (!*at)
			return true;
	}
}

static long number(const char *text, long low, long high)
{
	char *end = NULL;
	long n;

	errno = 0;
	n = text ? strtol(text, &end, 10) : -1;
	return end && end != text && !*end && !errno && n >= low && n <= high ? n : -1;
}

/* Returns -1 to go on, or an exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = argv[i + 1]; /* the last is NULL */

		if (strcmp(name, "--help") == 0) {
			fputs(usage, stdout);
			return 0;
		}
		if (strcmp(name, "--list") == 0)
			return list_rows();
		if (strcmp(name, "--version") == 0)
			return print_versions();
		if (strcmp(name, "--lines") == 0) {
			o->lines = true;
			continue;
		}
		if (strcmp(name, "--curves") == 0) {
			o->curves = true;
			continue;
		}
		if (strcmp(name, "--long") == 0) {
			o->on_request = true;
			continue;
		}
		if (strcmp(name, "--quick") == 0) {
			o->quick = true;
			bench_sizes = bench_quick_sizes;
			continue;
		}
		if (strcmp(name, "--memory-child") == 0)
			return bench_memory_child();
		if (strcmp(name, "--waiting-child") == 0)
			return bench_waiting_child();
		if (strcmp(name, "--few-child") == 0)
			return bench_few_child();
		if (strcmp(name, "--reps") == 0 && number(value, 1, REPS_MAX) > 0)
			o->reps = (int)number(value, 1, REPS_MAX);
		else if (strcmp(name, "--rows") == 0 && value)
			o->rows = value;
		else if (strcmp(name, "--json") == 0 && value)
			o->json = value;
		else {
			fprintf(stderr, "wq_bench: bad argument '%s'\n%s", name, usage);
			return 2;
		}
		i++;
	}
	return o->rows && !rows_known(o->rows) ? 2 : -1;
}

static void print_head(const struct results *results)
{
	printf("%s\n\n%-18s %12s %12s %12s   %-15s %-6s  %s\n", results->machine, "row", "best",
	       "median", "worst", "bar", "", "judged by");
}

static void print_summary(const struct results *results, const struct options *o, double seconds)
{
	size_t judged = 0, missed = 0;

	if (o->quick) {
		printf("%zu rows ran in %.0f s; too small to be judged\n", results->n, seconds);
		return;
	}
	for (size_t i = 0; i < results->n; i++) {
		judged += results->list[i].row->bar != BAR_NONE;
		missed += results->list[i].row->bar != BAR_NONE && !results->list[i].met;
	}
	printf("%zu rows in %.0f s: %zu ok, %zu MISSED\n", results->n, seconds, judged - missed,
	       missed);
}

int main(int argc, char **argv)
{
	static struct results results;
	struct options o = {0};
	int status = parse(argc, argv, &o);

	if (status >= 0)
		return status;
	if (o.quick && !o.reps)
		o.reps = REPS_QUICK;

	int64_t start = bench_now();

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!o.lines)
		warn_if_busy();
	bench_threads_begin();
	if (!o.lines || o.json)
		describe_machine(&results);
	if (!o.lines)
		print_head(&results);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (size_t g = 0; g < all[i]->n; g++)
			run_group(&all[i]->list[g], &o, &results);
	if (!o.lines)
		print_summary(&results, &o, (double)(bench_now() - start) * 1e-9);
	if (o.json && !write_json(o.json, &results)) {
		fprintf(stderr, "wq_bench: %s: %s\n", o.json, strerror(errno));
		return 1;
	}
	return 0;
}
