/*
 * What the files of GLib's peer share. The keys, the threads, the way of timing and what is
 * declared for them are the benchmark's own, without the library: bench.h and flow.h.
 *
 *   main.c     arguments and the lines that are printed
 *   passing.c  rows of producers and consumers: GAsyncQueue, GThreadPool
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

/* GLib passes what may be written. */
static inline gpointer peer_key(const struct bench_keys *k, size_t i)
{
	return k->bytes + i * KEY_STRIDE;
}

#endif
