/*
 * Checks the form of what `wq_bench --json` wrote, to the letter:
 *
 *   {"machine": "...", "rows": [{"name": "...", "value": 1, "unit": "...",
 *    "spread": [1, 2], "limit": 1, "limit_name": "..."}, ...]}
 *
 * with these members in this order, every row of the list below once and no
 * other. Whoever reads the file later may rely on that.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct expected {
	const char *name, *unit;
} expected[] = {
    {"cycle_empty", "ns"},
    {"cycle_1m", "ns"},
    {"dup_hot", "ns"},
    {"dup_1m", "ns"},
    {"bulk_add", "ns"},
    {"bulk_get_done", "ns"},
    {"bulk_add_many", "ns"},
    {"bulk_get_done_many", "ns"},
    {"pc_1_1", "keys/s"},
    {"pc_4_4", "keys/s"},
    {"pc_next_1_1", "keys/s"},
    {"pc_next_4_4", "keys/s"},
    {"pc_many_1_1", "keys/s"},
    {"short_1_1", "keys/s"},
    {"short_2_2", "keys/s"},
    {"short_4_4", "keys/s"},
    {"hot_1_1", "ops/s"},
    {"hot_4_4", "ops/s"},
    {"pingpong", "ns"},
    {"second_start", "ns"},
    {"wake_idle_p50", "ns"},
    {"wake_idle_p99", "ns"},
    {"wake_busy_p50", "ns"},
    {"wake_busy_p99", "ns"},
    {"bytes_per_key", "bytes"},
    {"bytes_kept_after", "%"},
    {"wheel_insert", "ns"},
    {"wheel_cancel", "ns"},
    {"wheel_expire", "ns"},
    {"wheel_bytes", "bytes"},
    {"add_after", "ns"},
    {"bytes_waiting", "bytes"},
    {"fire_burst", "ms"},
    {"hold_max", "keys"},
    {"cycle_waiting", "ns"},
    {"late_p50", "ns"},
    {"late_p99", "ns"},
    {"late_1m_p50", "ns"},
    {"late_1m_p99", "ns"},
    {"late_1ns_p50", "ns"},
    {"late_1ns_p99", "ns"},
    {"late_1m_1ns_p50", "ns"},
    {"late_1m_1ns_p99", "ns"},
    {"add_after_1k", "ns"},
    {"cancel_1k", "ns"},
    {"add_after_10k", "ns"},
    {"cancel_10k", "ns"},
    {"add_after_100k", "ns"},
    {"cancel_100k", "ns"},
    {"add_after_1m", "ns"},
    {"cancel_1m", "ns"},
    {"add_after_10m", "ns"},
    {"cancel_10m", "ns"},
    {"limited_cycle", "ns"},
    {"pool_1us", "keys/s"},
    {"parallel", "ns"},
    {"parallel_16", "ns"},
    {"parallel_256", "ns"},
    {"parallel_4096", "ns"},
    {"cycle_metrics", "ns"},
    {"scrape_1m", "ns"},
    {"scrape_held", "ns"},
    {"cycle_shared", "ns"},
    {"cycle_any_keys", "ns"},
    {"cycle_any_length", "ns"},
    {"cycle_1k", "ns"},
    {"cycle_100k", "ns"},
    {"cycle_any_10m", "ns"},
    {"bytes_kept_few", "%"},
    {"cycle_priority", "ns"},
    {"cycle_levels", "ns"},
    {"cycle_levels_1", "ns"},
    {"cycle_aging", "ns"},
    {"cycle_groups", "ns"},
    {"cycle_blocked", "ns"},
    {"cycle_values", "ns"},
    {"bulk_add_priority", "ns"},
    {"bulk_get_done_priority", "ns"},
    {"pc_priority_1_1", "keys/s"},
};

enum { EXPECTED = sizeof expected / sizeof expected[0] };

static char text[1 << 20];
static const char *at = text;

static void fail(const char *where, const char *what)
{
	fprintf(stderr, "%s: %s\nat: %.60s\n", where, what, at);
	exit(1);
}

static void skip_space(void)
{
	at += strspn(at, " \t\r\n");
}

static bool next_is(char c)
{
	skip_space();
	if (*at != c)
		return false;
	at++;
	return true;
}

static void want(char c)
{
	if (!next_is(c))
		fail((char[]){c, '\0'}, "was expected");
}

static void read_string(char *out, size_t size)
{
	size_t n = 0;

	want('"');
	for (; *at != '"'; at++) {
		if (*at == '\\')
			at++;
		if ((unsigned char)*at < ' ')
			fail("string", "does not end");
		if (n + 1 < size)
			out[n++] = *at;
	}
	at++;
	out[n] = '\0';
	if (n == 0)
		fail("string", "is empty");
}

/* JSON's numbers, not strtod's: no sign +, no leading dot, no nan. */
static double read_number(void)
{
	char *end;

	skip_space();
	if (strspn(at, "-0123456789.eE+") == 0 || *at == '+' || *at == '.')
		fail("number", "was expected");

	double v = strtod(at, &end);

	if (end == at || !isfinite(v))
		fail("number", "was expected");
	at = end;
	return v;
}

static void want_member(const char *name)
{
	char found[64];

	read_string(found, sizeof found);
	if (strcmp(found, name) != 0)
		fail(name, "this member was expected");
	want(':');
}

static void read_row(bool *seen)
{
	char name[64], unit[64], limit_name[64];
	size_t i = 0;

	want('{');
	want_member("name");
	read_string(name, sizeof name);
	want(',');
	want_member("value");

	double value = read_number();

	want(',');
	want_member("unit");
	read_string(unit, sizeof unit);
	want(',');
	want_member("spread");
	want('[');

	double low = read_number();

	want(',');

	double high = read_number();

	want(']');
	want(',');
	want_member("limit");

	double limit = read_number();

	want(',');
	want_member("limit_name");
	read_string(limit_name, sizeof limit_name);
	want('}');

	while (i < EXPECTED && strcmp(expected[i].name, name) != 0)
		i++;
	if (i == EXPECTED || seen[i])
		fail(name, "unknown row, or there twice");
	seen[i] = true;
	if (strcmp(expected[i].unit, unit) != 0)
		fail(name, "has another unit");
	if (low > value || value > high || low < 0 || limit < 0)
		fail(name, "the figures do not fit together");
	/* All may be given back in the end; nothing else costs nothing. */
	if (value <= 0 && strcmp(name, "bytes_kept_after") != 0)
		fail(name, "no value");
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	bool seen[EXPECTED] = {false};
	char machine[1024];

	if (!f) {
		fprintf(stderr, "usage: wq_bench_check FILE (which must exist)\n");
		return 2;
	}
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);

	want('{');
	want_member("machine");
	read_string(machine, sizeof machine);
	want(',');
	want_member("rows");
	want('[');
	do
		read_row(seen);
	while (next_is(','));
	want(']');
	want('}');
	skip_space();
	if (*at)
		fail("end", "something follows");
	for (size_t i = 0; i < EXPECTED; i++)
		if (!seen[i])
			fail(expected[i].name, "the row is missing");
	printf("%d rows\n", (int)EXPECTED);
	return 0;
}
