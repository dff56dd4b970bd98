/*
 * What the files of GLib's peer share. The keys, the way of timing and what is declared
 * for them are the benchmark's own (bench.h, keys.c, slices.c), without the library.
 *
 *   main.c     arguments and the lines that are printed
 *   tools.c    those of bench/primitives.c that do not need the library
 *   flow.c     rows of producers and consumers: GAsyncQueue, GThreadPool
 *   wake.c     rows of sleeping workers: GAsyncQueue
 *   timeout.c  rows of timers: GLib's timeout sources
 */
#ifndef WQ_PEERS_GLIB_H
#define WQ_PEERS_GLIB_H

#include "bench.h"

#include <glib.h>

enum { PEER_ROWS_MAX = 3 };

/* Rows that one run measures together. */
struct peer_group {
	const char *names[PEER_ROWS_MAX]; /* NULL: no more */
	const char *unit;
	const void *arg;
	void (*run)(const void *arg, double *values); /* a value for each row */
};

struct peer_groups {
	const struct peer_group *list;
	size_t n;
};

extern const struct peer_groups peer_flow, peer_wake, peer_timeout;

/* What is no key: whoever gets it is finished. */
extern char peer_over[];

/* N of a row NAME@N, in a quick run no more than 100,000; how often so few are measured. */
size_t peer_count(size_t n);
size_t peer_times(size_t n);

/* GLib passes what may be written. */
static inline gpointer peer_key(const struct bench_keys *k, size_t i)
{
	return k->bytes + i * KEY_STRIDE;
}

#endif
