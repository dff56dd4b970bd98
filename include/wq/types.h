/*
 * The types that the calls on a queue share: options, items, verdicts, states and reports.
 *
 *     wq_options options = {.max_keys = 10000, .max_attempts = 5, .dead_letter = died};
 *     if (wq_new(&q, &options) < 0)
 *         fprintf(stderr, "%s\n", wq_last_error());
 *
 * Every options struct that is all zero asks for the defaults. Reserved words must be zero.
 */
#ifndef WQ_TYPES_H
#define WQ_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/order.h>
#include <wq/status.h>
#include <wq/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wq_queue wq_queue;
typedef struct wq_item wq_item;
typedef struct wq_registry wq_registry;
struct wq_engine;
struct wq_metrics_provider;

/* A key for wq_add_many(); or a part of one. */
typedef struct wq_key {
	const void *key;
	size_t len;
} wq_key;

/* The longest key, in bytes. Calls answer WQ_ETOOLONG for a longer one. */
#define WQ_KEY_MAX 65536

/* The longest value, in bytes. Calls answer WQ_ETOOLONG for a longer one. */
#define WQ_VALUE_MAX 65536

/* Priorities: higher is sooner. */
#define WQ_PRIORITY_MIN (-32768)
#define WQ_PRIORITY_MAX 32767

/* The longest wq_options.aging_ns: 12 hours. */
#define WQ_AGING_MAX (43200 * WQ_SECOND)

/* In place of a deadline: do not wait. A get answers WQ_EAGAIN if no key is ready. */
#define WQ_NOWAIT (-1L)

/* For wq_options.spin_ns: a get with nothing to do sleeps at once. */
#define WQ_SPIN_NEVER (-1L)

/* ---- priorities, groups, values ------------------------------------------ */

/*
 * Finds the group of a key: *group, a part of the key's own bytes, which may be empty. Every add of
 * a queue with groups calls it, outside the lock, so several threads may call it at once. Equal
 * keys must have equal groups; a key that the queue knows stays in its group. A status < 0 refuses
 * the add, which answers that status. wq_group_before() is ready-made, see wq/group.h.
 */
typedef int (*wq_group_fn)(void *ctx, const void *key, size_t len, wq_key *group);

/* What holds for one group. All zero: no limit, weight 1, no rate. */
typedef struct wq_group_settings {
	uint32_t limit;       /* keys that are held at once, at most; 0: no limit */
	uint32_t weight;      /* keys that it starts in one turn; 0: 1 */
	double rate;          /* starts per second, at most 1e9; 0: no limit */
	uint32_t burst;       /* starts at once after a pause; 0: 1 */
	uint32_t reserved0;   /* must be zero */
	uint64_t reserved[2]; /* must be zero */
} wq_group_settings;

/*
 * Changes the settings of one group; *settings has those of wq_options, with weight 0. A hook: it
 * is called under the queue's lock when the first key of a group is added, and perhaps again if the
 * group had no keys meanwhile. If a setting is out of range (rate, a reserved word that is not
 * zero), the group gets the settings of wq_options.
 */
typedef void (*wq_group_setup_fn)(void *ctx, const wq_key *group, wq_group_settings *settings);

/*
 * Merges two values of a key, the older and the newer one, into out, which has room for
 * WQ_VALUE_MAX bytes. A hook: it is called under the queue's lock. Ready-made ones are in
 * wq/value.h.
 *
 * Returns the length of the merged value, or a status < 0, which the add answers: nothing has
 * changed then. A length above WQ_VALUE_MAX counts as WQ_ETOOLONG.
 */
typedef int64_t (*wq_merge_fn)(void *ctx, const void *old, size_t old_len, const void *add,
                               size_t add_len, void *out);

/* ---- the queue ----------------------------------------------------------- */

/*
 * Options of wq_new(). All zero: first in, first out; no bound; no name; memory engine.
 * wq_new() copies strings and structs.
 */
typedef struct wq_options {
	/* The queue's name in metrics, at most 255 bytes. NULL or "": no metrics. */
	const char *name;
	/* NULL: the memory engine, keys live in the memory of this process. */
	const struct wq_engine *engine;
	/* Passed to the engine. The memory engine takes NULL only. */
	const void *engine_options;
	/* NULL: malloc, and mmap for blocks. */
	const wq_allocator *allocator;
	/* NULL: CLOCK_MONOTONIC. */
	const wq_clock *clock;
	/* NULL: first in, first out. */
	const wq_order *order;
	/* Seed of the key hash. 0: random. Tests use a fixed seed. */
	uint64_t seed;
	/*
	 * How long a get with nothing to do polls before it sleeps. 0: adaptive,
	 * up to about 50 µs. WQ_SPIN_NEVER: does not poll. > 0: this long, at most
	 * WQ_MILLISECOND. One thread polls at a time, not past its deadline, and
	 * none polls in a process that may run on one CPU only.
	 */
	int64_t spin_ns;
	/*
	 * [BOUND] How many keys may exist at once, in any state. 0: no bound. A new key
	 * beyond the bound is refused with WQ_EFULL. done, requeue and merges always succeed.
	 */
	size_t max_keys;
	/*
	 * Computes how long failed keys wait. The queue owns it in every case. NULL:
	 * wq_limiter_exponential(5 * WQ_MILLISECOND, 1000 * WQ_SECOND).
	 */
	wq_limiter *limiter;
	/*
	 * [DEAD] A key that fails its last attempt is dead: dead_letter is called, and the key
	 * is forgotten and done. 0: no maximum.
	 */
	uint32_t max_attempts;
	uint32_t within; /* 1: adds may give within_ns; costs 8 bytes per key */
	/*
	 * Called in the thread that calls wq_retry(), outside the lock, while the item is still
	 * held. It may use the queue, but must not end the hold. NULL: dead keys are only
	 * counted.
	 */
	void (*dead_letter)(void *ctx, const wq_item *item);
	void *dead_ctx;
	/*
	 * The registry that lists the queue, see wq/metrics.h. The queue needs a name that is
	 * unique in the registry, in UTF-8. The registry must outlive the queue.
	 */
	wq_registry *registry;
	/* Receives the queue's metrics, see wq/metrics.h. Copied. The queue needs a name. */
	const struct wq_metrics_provider *provider;
	/*
	 * [PRIORITY] 1: adds may give a priority, see wq/priority.h. Costs 8 bytes per key, which
	 * groups share. Not allowed with an order.
	 */
	uint32_t priorities;
	/* [VALUE] 1: adds may give a value, see wq/value.h. Costs 8 bytes per key. */
	uint32_t values;
	/*
	 * [AGING] > 0: a key moves up one level, to its tail, each time it has been queued for so
	 * long; at most WQ_AGING_MAX. 0: no aging. Needs priorities.
	 */
	int64_t aging_ns;
	/*
	 * The highest level that aging reaches; keys above it do not age. 0: WQ_PRIORITY_MAX.
	 * Needs aging_ns.
	 */
	int32_t aging_max;
	/* [GROUP] How many keys of one group may be held at once. 0: no limit. Needs group. */
	uint32_t group_limit;
	/*
	 * Finds the group of a key, see wq/group.h. NULL: no groups. Not allowed with an order.
	 * group_ctx is passed to it.
	 */
	wq_group_fn group;
	void *group_ctx;
	/* How many keys of one group may be started per second, at most 1e9. 0: no limit. */
	double group_rate;
	uint32_t group_burst; /* and how many at once after a pause; 0: 1 */
	uint32_t reserved0;   /* must be zero */
	/* Settings of single groups that differ. NULL: none. setup_ctx is passed to it. */
	wq_group_setup_fn group_setup;
	void *setup_ctx;
	/*
	 * Merges two values of one key, see wq/value.h. NULL: wq_merge_last(), the last one
	 * counts. merge_ctx is passed to it. Needs values.
	 */
	wq_merge_fn merge;
	void *merge_ctx;
	uint64_t reserved[4]; /* must be zero */
} wq_options;

/*
 * A held key. The get calls fill it. Any thread ends the hold: it passes the item, unchanged, to
 * wq_done(), wq_retry(), wq_settle() or wq_requeue(). An item may be copied. The first copy that
 * ends the hold counts; the others are stale, and calls answer WQ_ESTALE for them.
 *
 * Ownership: the queue owns the bytes of the key and of the value. They are valid until the hold
 * ends. A NUL follows each. Sanitizers and valgrind report later reads, see "Tools" in wq/queue.h.
 */
struct wq_item {
	const void *key;
	size_t len;
	uint64_t token; /* number of this hold, unique within the queue */
	/*
	 * When the key was added or came due, on the queue's clock. Without metrics it is read
	 * from the coarse clock and may be some milliseconds early.
	 */
	int64_t added_ns;
	uint32_t attempts; /* 1 + failures that are not forgotten */
	int32_t priority;  /* of this hold, without aging; 0 in a queue without priorities */
	const void *value; /* of this hold; NULL: none */
	size_t value_len;
	const void *owner; /* internal, as is slot */
	uint64_t slot;
	uint64_t reserved[2]; /* must be zero */
};

/* ---- adds ---------------------------------------------------------------- */

/* Which due time counts if a delayed add finds that the key already waits. */
enum wq_policy {
	WQ_MIN = 0,     /* the earlier one */
	WQ_MAX = 1,     /* the later one */
	WQ_REPLACE = 2, /* the new one */
	WQ_KEEP = 3,    /* the old one */
	/*
	 * A reminder: a separate waiting copy that exists beside the key in any state. Other
	 * adds neither absorb nor move it. When it comes due it acts as wq_add(). Two reminders
	 * of a key merge to the earlier time. A reminder counts as a key for max_keys.
	 */
	WQ_REMIND = 4
};

/* Options of wq_add_with(). All zero: add now. */
typedef struct wq_add_options {
	int64_t after_ns;      /* delay from now; < 0: add now, as wq_add_after(); 0: as wq_add() */
	int64_t at_ns;         /* or a due time on the queue's clock; 0: not given. Not both */
	enum wq_policy policy; /* for a delayed add */
	uint32_t limited;      /* 1: the limiter gives the delay; give no time then */
	/*
	 * [WITHIN] > 0: the latest due time, from this add, however later adds move the waiting
	 * copy. If several adds give one, the first counts until the copy stops waiting. With
	 * WQ_REPLACE it bounds a debounce whose events never stop. Needs wq_options.within = 1.
	 * Not allowed with WQ_REMIND or `limited`.
	 */
	int64_t within_ns;
	/*
	 * WQ_PRIORITY_MIN to WQ_PRIORITY_MAX; higher is sooner, see wq/priority.h. A priority
	 * other than 0 needs wq_options.priorities = 1.
	 */
	int32_t priority;
	uint32_t reserved0; /* must be zero */
	/*
	 * A value that travels with the key, see wq/value.h. The queue copies it. NULL: no value.
	 * Needs wq_options.values = 1.
	 */
	const void *value;
	size_t value_len;     /* at most WQ_VALUE_MAX; 0 if value is NULL */
	uint64_t reserved[2]; /* must be zero */
} wq_add_options;

/* ---- verdicts ------------------------------------------------------------ */

/*
 * A verdict says what becomes of a held key. A pool's handler returns one; wq_settle() takes one.
 *
 *   WQ_DONE            success: forget the failures, then done
 *   WQ_RETRY           failed: retry after the limiter's delay, as wq_retry()
 *   wq_retry_after(d)  failed: the same, but after at least d nanoseconds
 *   wq_again_after(d)  success: forget the failures, and add the key again after d nanoseconds
 *   WQ_DROP            not worth a retry: forget, done, and count the key as dropped
 *   WQ_FATAL           [FATAL] failed for good: the key is dead, as after max_attempts, however
 *                      many attempts remain; dead_letter is called, also during a shutdown
 *
 * They are objects, not constants: compare v.kind (v.kind == WQ_VERDICT_RETRY); in a static table
 * store the kind.
 */
enum wq_verdict_kind {
	WQ_VERDICT_DONE = 0,
	WQ_VERDICT_RETRY = 1,
	WQ_VERDICT_AGAIN = 2,
	WQ_VERDICT_DROP = 3,
	WQ_VERDICT_FATAL = 4
};

typedef struct wq_verdict {
	int64_t delay_ns;   /* RETRY: the least delay; AGAIN: the delay; otherwise 0 */
	uint32_t kind;      /* of enum wq_verdict_kind */
	uint32_t reserved0; /* must be zero */
} wq_verdict;

static const wq_verdict WQ_DONE = {0, WQ_VERDICT_DONE, 0};
static const wq_verdict WQ_RETRY = {0, WQ_VERDICT_RETRY, 0};
static const wq_verdict WQ_DROP = {0, WQ_VERDICT_DROP, 0};
static const wq_verdict WQ_FATAL = {0, WQ_VERDICT_FATAL, 0};

/* ---- states and reports -------------------------------------------------- */

/* The state of a key, as bits. 0: the queue does not know the key. */
enum wq_state_bits {
	WQ_STATE_QUEUED = 1,   /* queued, blocked or not (wq/group.h) */
	WQ_STATE_RUNNING = 2,  /* held by a worker */
	WQ_STATE_DIRTY = 4,    /* held, and added again since it was got */
	WQ_STATE_WAITING = 8,  /* waits for its due time, alone or beside the other bits */
	WQ_STATE_LEFT = 16,    /* left over: as WAITING, in a queue that is shut down */
	WQ_STATE_RETRYING = 32 /* beside WAITING or LEFT: waits for a retry or a limited add */
};

/*
 * One key, as wq_walk() and drains show it. The bytes of key, value and group are valid during the
 * callback; a NUL follows each. Of a reminder beside its key, only the due time is shown.
 */
typedef struct wq_key_info {
	const void *key;
	size_t len;
	unsigned state;     /* WQ_STATE_... bits */
	uint32_t failures;  /* that the limiter remembers of it */
	int64_t age_ns;     /* since its add, when the walk began; 0 while it only waits */
	int64_t due_ns;     /* due time of the waiting copy, else of the reminder; 0: none waits */
	int64_t running_ns; /* held: since it was got, if the queue has a name; else 0 */
	int32_t priority; /* of the queued, waiting or dirty copy; if there is none, of the hold */
	uint32_t reserved0;
	const void *value; /* of the same; NULL: none */
	size_t value_len;
	wq_key group; /* its group; NULL and 0 in a queue without groups */
	uint64_t reserved[2];
} wq_key_info;

/* Called for one key, outside the lock; may use the queue. Not 0: stops the walk. */
typedef int (*wq_walk_fn)(void *ctx, const wq_key_info *info);

/*
 * The keys that a drain did not finish, by reason, counted at one instant. All but dead are 0
 * after WQ_OK. A key that is queued or held while a copy of it waits counts in both places.
 */
typedef struct wq_report {
	uint64_t queued;      /* queued, blocked or not */
	uint64_t running;     /* held, dirty or not */
	uint64_t dirty;       /* of those, dirty */
	uint64_t retries;     /* copies that wait or are left over: retries and limited adds */
	uint64_t delayed;     /* the other copies: delayed adds and reminders */
	uint64_t dead;        /* died since wq_new(): max_attempts or WQ_FATAL */
	uint64_t reserved[2]; /* zero */
} wq_report;

/* What a drain does with waiting keys. The first drain or shutdown of a queue decides. */
enum wq_drain_mode {
	WQ_DRAIN_LEAVE = 0, /* leave them over: finish what is queued, report what waits */
	WQ_DRAIN_RUN = 1,   /* queue them all at once, in the order of their due times */
	WQ_DRAIN_WAIT = 2   /* wait until each has come due, except those with WQ_NEVER */
};

/* Options of the drain calls. All zero: mode LEAVE, no callback. */
typedef struct wq_drain_options {
	/*
	 * Called for every unfinished key when the drain is over; the name is short for "left
	 * unfinished". The state says why: QUEUED, RUNNING, WAITING or LEFT (a delayed add), or
	 * one of the last two with RETRYING (a failed key). NULL: no callback, the report counts
	 * the keys.
	 */
	wq_walk_fn left;
	void *ctx;
	enum wq_drain_mode mode;
	uint32_t reserved0;   /* must be zero */
	uint64_t reserved[3]; /* must be zero */
} wq_drain_options;

#ifdef __cplusplus
}
#endif
#endif
