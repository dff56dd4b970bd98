/*
 * A snapshot of a queue: counts by state, the oldest keys, counters and histograms, in one call.
 *
 *     wq_snapshot s;
 *     wq_snapshot_take(q, &s);
 *     printf("%" PRIu64 " queued, the oldest for %.3f s\n", s.queued,
 *            1e-9 * (double)s.oldest_queued.age_ns);
 *
 * Every queue has the counts by state, dead, dropped and slow_handlers. The other counters, the
 * histograms and the ages of running keys need a queue with a name (wq_options.name), because they
 * read the clock at every step; without a name they are 0.
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

/* Durations, counted by length. */
typedef struct wq_histogram {
	uint64_t count[WQ_BUCKETS]; /* in this bucket alone: above the last bound, up to this one */
	uint64_t sum_ns;            /* stays at its largest value rather than overflow */
} wq_histogram;

/*
 * Get the upper bound of a bucket of wq_histogram.
 *
 * Returns nanoseconds; WQ_NEVER for the last bucket, which has no bound.
 *
 * Threads: any. Blocks: no.
 */
WQ_API int64_t wq_histogram_bound(unsigned bucket);

/* A sample's key is cut to fit into this, with its NUL. */
#define WQ_SAMPLE_BYTES 128

/* One key and its age. */
typedef struct wq_sample {
	char key[WQ_SAMPLE_BYTES]; /* NUL-terminated, cut if it is longer */
	size_t len;                /* of the whole key */
	int64_t age_ns;            /* queued: since its add; running: since its get. -1: no key */
} wq_sample;

/* How many keys are queued with one priority, blocked or not. Aging does not count. */
typedef struct wq_level {
	int32_t priority;
	uint32_t reserved0;
	uint64_t queued;
} wq_level;

/* How many levels a snapshot shows: the highest that have queued keys. */
#define WQ_LEVELS 16

/* One group: how many of its keys are queued and held. */
typedef struct wq_group_sample {
	char name[WQ_SAMPLE_BYTES]; /* NUL-terminated, cut if it is longer */
	size_t len;                 /* of the whole name */
	uint64_t queued;            /* keys queued, blocked or not */
	uint64_t running;           /* held */
} wq_group_sample;

/* How many groups a snapshot shows: those with the most keys queued and held. */
#define WQ_BUSIEST 8

typedef struct wq_snapshot {
	/* At one instant. */
	int64_t now_ns;      /* the queue's time */
	uint64_t queued;     /* keys queued */
	uint64_t running;    /* held */
	uint64_t dirty;      /* of those, dirty */
	uint64_t waiting;    /* copies that wait for their due time */
	uint64_t left;       /* left over: the same, in a queue that is shut down */
	uint64_t remembered; /* keys of which only failures are remembered */
	/*
	 * When the next waiting key comes due; WQ_NEVER: none. After hundreds of cancels or moves
	 * of keys that were due sooner it may be too early.
	 */
	int64_t next_due_ns;
	/*
	 * The key that the next get takes; another queued key may be older: one that was requeued,
	 * has a lower priority, or is of another group. No key if all queued keys are blocked.
	 */
	wq_sample oldest_queued;
	wq_sample longest_running;
	int64_t unfinished_ns; /* the sum of the ages of running keys, at most INT64_MAX */

	/* Since wq_new(). */
	uint64_t adds;          /* adds that did not merge; delayed ones count when they come due */
	uint64_t retries;       /* add_after, add_at, add_limited, retry and the like, accepted */
	uint64_t merged;        /* adds of keys that were queued or dirty */
	uint64_t refused;       /* adds that were refused: shut down, full, no memory */
	uint64_t marked;        /* adds of held keys */
	uint64_t dead;          /* keys that died: after max_attempts, or by WQ_FATAL */
	uint64_t stale;         /* stale items that were passed to done, retry ... */
	uint64_t slow_handlers; /* handlers that took longer than their pool's slow_ns */

	wq_histogram queue; /* from add, or from coming due, to get */
	wq_histogram work;  /* from get to done */
	wq_histogram late;  /* from the due time to being queued */
	uint64_t dropped;   /* keys dropped: verdict WQ_DROP */

	/*
	 * Priorities, groups and values; zero in a queue without them. They are of the same
	 * instant, except for `busiest` if there are more than 1,000 groups: other calls may come
	 * in between then.
	 */
	/*
	 * Queued keys whose group has reached its limit or has no token; of a group with a rate
	 * all but the first.
	 */
	uint64_t blocked;
	uint64_t groups;       /* groups that have keys in any state, or remembered ones */
	uint64_t merge_failed; /* since wq_new(): values that were lost because a merge failed */
	uint32_t nlevels;      /* how many elements of `level` are filled */
	uint32_t nbusiest;     /* how many elements of `busiest` are filled */
	/*
	 * Levels with queued keys, the highest first; if no key is queued, level 0. None until an
	 * add has given a priority other than 0.
	 */
	wq_level level[WQ_LEVELS];
	uint64_t queued_lower;               /* keys that are queued below the last of them */
	wq_group_sample busiest[WQ_BUSIEST]; /* those with the most keys first */
	uint64_t reserved[8];
} wq_snapshot;

/*
 * Take a snapshot of a queue. Keys that are due are queued first, as in wq_len().
 *
 * Returns WQ_OK and fills *out.
 *
 * Errors: WQ_EINVAL if q or out is NULL.
 *
 * Blocks: no. Allocates: no.
 */
WQ_API int wq_snapshot_take(wq_queue *q, wq_snapshot *out);

/* Receives n bytes of text. Not 0: stops, and the caller returns it. */
typedef int (*wq_write_fn)(void *ctx, const char *text, size_t n);

/*
 * Write a snapshot as a JSON object (RFC 8259, UTF-8), without a line feed at the end. Bytes of
 * keys that are not UTF-8 become U+FFFD. The members have the names of the struct's fields:
 *
 *     {"name":"pods","now_ns":..,"queued":..,           numbers; no "name" if name is NULL
 *      "next_due_ns":..,                                null: no key comes due (WQ_NEVER)
 *      "oldest_queued":{"key":"a","len":1,"age_ns":..}, null: no key (age_ns < 0)
 *      "longest_running":{..},                          the same. The key is cut, len is not
 *      "queue":{"count":[..],"sum_ns":..}, "work":{..}, "late":{..}}
 *
 * Returns WQ_OK, or what write returned if that is not 0.
 *
 * Errors: WQ_EINVAL if s or write is NULL.
 */
WQ_API int wq_snapshot_json(const wq_snapshot *s, const char *name, wq_write_fn write, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
