/*
 * A picture of a queue, in one call: how many keys in which state, the oldest,
 * what happened so far, and how long things took.
 *
 *     wq_snapshot s;
 *     wq_snapshot_take(q, &s);
 *     printf("%" PRIu64 " queued, the oldest for %.3f s\n", s.queued, 1e-9 * (double)s.oldest_queued.age_ns);
 *
 * Counts by state are there for every queue, and so are dead, dropped and slow_handlers. The
 * other counters, histograms and ages of running keys need a queue with a name (wq_options.name):
 * without one nobody asked for them, and they cost a look at the clock for every step. They are 0
 * then.
 */
#ifndef WQ_SNAPSHOT_H
#define WQ_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <wq/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Upper bounds: 10 ns, 100 ns, 1 µs ... 1000 s; the last bucket has none. */
#define WQ_BUCKETS 13

/* Durations, by how long they took. */
typedef struct wq_histogram {
	uint64_t count[WQ_BUCKETS]; /* in this bucket alone: above the last bound, up to this one */
	uint64_t sum_ns;            /* stays at its largest value rather than begin anew */
} wq_histogram;

/* The upper bound of a bucket in nanoseconds; WQ_NEVER: it has none. */
WQ_API int64_t wq_histogram_bound(unsigned bucket);

/* A key, cut off if it is longer than this. */
#define WQ_SAMPLE_BYTES 128

typedef struct wq_sample {
	char key[WQ_SAMPLE_BYTES]; /* a NUL follows what there is of it */
	size_t len;                /* of the whole key */
	int64_t
	    age_ns; /* queued: since it was added; running: since it was got. -1: there is none */
} wq_sample;

typedef struct wq_snapshot {
	/* One consistent cut. */
	int64_t now_ns;      /* the queue's time */
	uint64_t queued;     /* keys in line */
	uint64_t running;    /* held */
	uint64_t dirty;      /* of those, to come back */
	uint64_t waiting;    /* copies that wait for their due time */
	uint64_t left;       /* the same in a queue that is shut down: left over */
	uint64_t remembered; /* keys of which only failures are remembered */
	/*
	 * When the next waiting key comes due; WQ_NEVER: none. If hundreds of keys that
	 * were to come sooner were cancelled or moved: none comes due before.
	 */
	int64_t next_due_ns;
	wq_sample
	    oldest_queued; /* the head of the line; one behind it that was given back may be older */
	wq_sample longest_running;
	int64_t unfinished_ns; /* the sum of the ages of running keys, INT64_MAX at most */

	/* Since wq_new(). */
	uint64_t adds; /* that were not merged; of delayed ones when they come due */
	uint64_t
	    retries; /* add_after, add_at, add_limited, retry and the like, that were accepted */
	uint64_t merged;     /* adds of keys that were in line, or to come back, already */
	uint64_t refused;    /* adds that were not accepted: shut down, full, no memory */
	uint64_t marked;   /* adds of keys that were held: they come back */
	uint64_t dead;       /* keys that died: after max_attempts, or by WQ_FATAL */
	uint64_t stale;      /* items that were handed back though they were not held */
	uint64_t slow_handlers; /* handlers that took longer than their pool allows */

	wq_histogram queue; /* from add, or from coming due, to get */
	wq_histogram work;  /* from get to done */
	wq_histogram late;  /* from the due time to entering the line */
	uint64_t dropped;  /* keys that a verdict of WQ_DROP gave up */
	uint64_t reserved[8];
} wq_snapshot;

/*
 * Fill *out. What is due is promoted first, as in wq_len().
 * Returns WQ_OK or WQ_EINVAL. Blocks: no. Allocates: no.
 */
WQ_API int wq_snapshot_take(wq_queue *q, wq_snapshot *out);

/* Takes n bytes of text. 0 goes on; any other value stops, and is what the caller answers. */
typedef int (*wq_write_fn)(void *ctx, const char *text, size_t n);

/*
 * The snapshot as one JSON object (RFC 8259, UTF-8; bytes of keys that are no
 * UTF-8 become U+FFFD), without a line feed at the end. Its members are named as those of the struct:
 *
 *     {"name":"pods","now_ns":..,"queued":..,  and so on, numbers; "name" is left out if name is NULL
 *      "next_due_ns":..,                       null: no key waits for a time (WQ_NEVER)
 *      "oldest_queued":{"key":"a","len":1,"age_ns":..},   null: there is none (age_ns < 0);
 *      "longest_running":{..},                            so with this. The key is cut off, len is not
 *      "queue":{"count":[..],"sum_ns":..}, "work":{..}, "late":{..}}
 *
 * Returns WQ_OK, WQ_EINVAL, or what write answered.
 */
WQ_API int wq_snapshot_json(const wq_snapshot *s, const char *name, wq_write_fn write, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
