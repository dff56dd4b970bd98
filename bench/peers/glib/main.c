/*
 * GLib beside the benchmark, behind the contract of bench/peers/README.md:
 *
 *     glib-peer --list | --version | [--quick] ROW...
 */
#include "peer.h"

#include <stdio.h>
#include <string.h>

char peer_over[1];

static const struct peer_groups *const all[] = {&peer_flow, &peer_wake, &peer_timeout};

enum { PARTS = sizeof all / sizeof all[0] };

static bool wanted(const char *name, char **rows, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name, rows[i]) == 0)
			return true;
	return false;
}

static void print_list(void)
{
	for (size_t p = 0; p < PARTS; p++)
		for (size_t g = 0; g < all[p]->n; g++)
			for (int i = 0; i < PEER_ROWS_MAX && all[p]->list[g].names[i]; i++)
				printf("%s\n", all[p]->list[g].names[i]);
}

/* How many of the rows were printed. */
static int run_group(const struct peer_group *g, char **rows, int n)
{
	double values[PEER_ROWS_MAX];
	int found = 0;

	for (int i = 0; i < PEER_ROWS_MAX && g->names[i]; i++)
		found += wanted(g->names[i], rows, n);
	if (!found)
		return 0;
	g->run(g->arg, values);
	for (int i = 0; i < PEER_ROWS_MAX && g->names[i]; i++)
		if (wanted(g->names[i], rows, n))
			printf("{\"row\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", g->names[i],
			       values[i], g->unit);
	fflush(stdout);
	return found;
}

int main(int argc, char **argv)
{
	int at = 1, found = 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		print_list();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("glib %u.%u.%u\n", glib_major_version, glib_minor_version,
		       glib_micro_version);
		return 0;
	}
	if (argc > at && strcmp(argv[at], "--quick") == 0) {
		bench_sizes = bench_quick_sizes;
		at++;
	}
	if (argc == at) {
		fprintf(stderr, "usage: glib-peer --list | --version | [--quick] ROW...\n");
		return 2;
	}
	for (size_t p = 0; p < PARTS; p++)
		for (size_t g = 0; g < all[p]->n; g++)
			found += run_group(&all[p]->list[g], argv + at, argc - at);
	bench_check(found == argc - at, "there is a row that it does not know");
	return 0;
}
