/*
 * The interface between the public calls and an engine, which stores the keys of a queue. The
 * memory engine is built in; another engine is linked to the program:
 *
 *     if (wq_new(&q, &(wq_options){.engine = &my_engine, .engine_options = &mine}) < 0)
 *         return 1;
 *
 * Programs that only use queues need nothing from this header.
 *
 * The public functions check what every engine would have to check (NULL pointers, lengths,
 * reserved words, counts), turn timeouts into deadlines, and call the function of the table with
 * the engine's state. What the calls answer and promise is documented once, in wq/queue.h and the
 * headers that it includes. In the child of a fork() no function of an engine that was opened
 * before it is called, not even close.
 */
#ifndef WQ_ENGINE_H
#define WQ_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/queue.h>
#include <wq/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of the table. It changes when a function changes; tables of another version are
 * refused. New functions are added at the end, without a new version: `size` says how many a table
 * has. A function that is missing, because the table is older or it is NULL, answers WQ_ENOTSUP.
 * open and close are required.
 */
#define WQ_ENGINE_VERSION 3

/*
 * What an engine supports beyond plain keys, for wq_engine.features. wq_new() answers WQ_ENOTSUP if
 * the options ask for something else.
 */
enum wq_engine_features {
	WQ_FEATURE_PRIORITY = 1, /* wq_options.priorities, aging_ns and aging_max */
	WQ_FEATURE_GROUP = 2,    /* wq_options.group, and what belongs to it */
	WQ_FEATURE_VALUE = 4     /* wq_options.values and merge */
};

/*
 * A gate, through which the gets of a pool's workers go. Every change of the gate makes all gets
 * that wait behind it, and all that come with an older number, answer WQ_EINTERRUPTED.
 * wq_interrupt() does not affect them. The engine's lock protects the number.
 */
typedef struct wq_gate {
	uint32_t changes;
} wq_gate;

/* The steps of a turn, in this order. */
enum wq_turn_steps {
	WQ_TURN_SETTLE = 1, /* end the hold by the verdict */
	WQ_TURN_BURY = 2,   /* end the hold of a key that is dead (WQ_DEAD) */
	WQ_TURN_GET = 4     /* get the next key */
};

/*
 * One turn of a worker: settle the key it holds, and get the next.
 *
 * A retry after the last attempt answers WQ_DEAD in `settled`: the hold has not ended, no key was
 * got, and *item has a new token, so that every older copy is stale; another turn with
 * WQ_TURN_BURY ends the hold. If `settled` is an error, nothing has changed, and no key was got.
 */
typedef struct wq_turn {
	unsigned steps;      /* in: of wq_turn_steps */
	int settled;         /* out: the answer of wq_settle() */
	wq_verdict verdict;  /* in: see wq_settle(); checked */
	int64_t deadline_ns; /* in: of the get */
	/* in: called with `settled` as soon as it is known, under the engine's lock; or NULL */
	void (*on_settled)(void *arg, int settled);
	void *arg;
	/* in: NULL: an ordinary get. With a gate, it waits in a shutdown until no key is held */
	wq_gate *gate;
	uint32_t seen; /* in: the gate's number that the worker has seen */
} wq_turn;

/*
 * The functions of an engine. With the deadline WQ_NOWAIT they do not wait and answer WQ_EAGAIN;
 * with any other deadline that passes they answer WQ_ETIMEDOUT.
 */
typedef struct wq_engine {
	uint32_t version; /* WQ_ENGINE_VERSION */
	uint32_t size;    /* sizeof(wq_engine) as the engine was compiled */
	const char *name;
	uint64_t features; /* bits of wq_engine_features */

	/*
	 * Make the state of queue q. The options are checked; clock, allocator and limiter are not
	 * NULL. The queue owns the limiter and frees it after close. On success the engine owns
	 * the order, and close frees it; on failure wq_new() does. An engine that sleeps by the
	 * clock watches it.
	 */
	int (*open)(wq_queue *q, const wq_options *options, void **state);
	/* Free the state, as wq_free(). */
	int (*close)(void *state);

	int (*add)(void *state, const void *key, size_t len);
	/*
	 * add_with: the options are checked; their time may have passed. Without a time it is an
	 * add with a priority or a value; after_ns = -1 is a delayed add that is due. The engine
	 * calls wq_options.group and merge itself.
	 */
	int (*add_with)(void *state, const void *key, size_t len, const wq_add_options *options);
	int (*reschedule)(void *state, const void *key, size_t len, int64_t due_ns);
	/* cancel: with WQ_NOWAIT it does not wait for the end of the hold. */
	int (*cancel)(void *state, const void *key, size_t len, int64_t deadline_ns, unsigned *was);
	int64_t (*next_deadline)(void *state);
	int (*add_many)(void *state, const wq_key *keys, size_t n, int *outcomes);

	int (*get)(void *state, wq_item *item, int64_t deadline_ns);
	int (*get_many)(void *state, wq_item *items, size_t max, int64_t deadline_ns);
	int (*interrupt)(void *state, int n);

	int (*done)(void *state, const wq_item *item);
	int (*done_many)(void *state, const wq_item *items, size_t n, int *outcomes);
	int (*next)(void *state, wq_item *item, int64_t deadline_ns);
	int (*next_many)(void *state, wq_item *items, size_t n, size_t max, int64_t deadline_ns);
	int (*requeue)(void *state, const wq_item *item, enum wq_where where);
	int (*extend)(void *state, const wq_item *item, int64_t span_ns);
	int (*lost)(void *state, const wq_item *item);

	int (*wait_idle)(void *state, int64_t deadline_ns);
	int (*wait_key)(void *state, const void *key, size_t len, int64_t deadline_ns);

	int (*shutdown)(void *state);
	int (*shutting_down)(void *state);
	int (*drain)(void *state, int64_t deadline_ns, const wq_drain_options *options,
	             wq_report *report);

	int64_t (*len)(void *state);
	int (*state)(void *state, const void *key, size_t len);
	int64_t (*walk)(void *state, wq_walk_fn fn, void *ctx);

	int (*fd)(void *state);
	int (*clock_changed)(void *state);

	/* forget, failures: by the item if it is not NULL, else by the key. */
	int (*forget)(void *state, const wq_item *item, const void *key, size_t len);
	int64_t (*failures)(void *state, const wq_item *item, const void *key, size_t len);
	/* turn: returns what the get answers, or WQ_OK without one. */
	int (*turn)(void *state, wq_item *item, wq_turn *turn);
	/* gate_change: returns the new number. */
	uint32_t (*gate_change)(void *state, wq_gate *gate);
	/* snapshot: fill in what the engine knows; the rest is zero already. */
	int (*snapshot)(void *state, wq_snapshot *out);
	/* set_failures: the count is checked. */
	int (*set_failures)(void *state, const void *key, size_t len, uint32_t failures);
} wq_engine;

/*
 * Ask the limiter of the options how long a key waits. It is for engines, which keep the failures
 * of the key in *failures; it is raised if the limiter counts. The engine serialises the calls.
 *
 * Returns nanoseconds >= 0, or WQ_NEVER.
 *
 * Errors:
 *   WQ_EINVAL   an argument is NULL, or there are too many failures
 *   WQ_ENOTSUP  the limiter remembers more of a key than failures (a bucket for each key,
 *               decorrelated jitter)
 *   others      the status of a limiter whose constructor failed
 */
WQ_API wq_number wq_engine_ask(wq_limiter *l, const void *key, size_t len, int64_t now_ns,
                               uint32_t *failures);

#ifdef __cplusplus
}
#endif
#endif
