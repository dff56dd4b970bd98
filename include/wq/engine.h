/*
 * The seam behind the public calls: where the keys of a queue live. The
 * memory engine is built in; another one is linked to the program and named
 * in wq_options.engine. Programs that only use queues need nothing from here.
 *
 * The public functions check what every engine would have to check (NULL
 * pointers, lengths, reserved words, counts), turn spans into deadlines, and
 * call the function of the table with the engine's state. What the calls
 * answer and promise is said once, in wq/queue.h. In the child of a fork() no function of an
 * engine that was opened before is called, close neither.
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
 * Raised when a function changes; tables of another version are refused. Functions are added at the
 * end only, without raising it: `size` says how many a table has. What a table lacks, because it is
 * older or a function is NULL, is answered with WQ_ENOTSUP; open and close are required.
 */
#define WQ_ENGINE_VERSION 2

/*
 * A gate, through which the Gets of a pool's workers go. Every change makes all
 * that wait behind it, and all that come with what they saw before, answer
 * WQ_EINTERRUPTED; wq_interrupt() does not concern them. The number is
 * the engine's, under its lock.
 */
typedef struct wq_gate {
	uint32_t changes;
} wq_gate;

/* What a turn does, in this order. */
enum wq_turn_steps {
	WQ_TURN_SETTLE = 1, /* end the hold by the verdict */
	WQ_TURN_BURY = 2,   /* end the hold of a key that was answered WQ_DEAD */
	WQ_TURN_GET = 4     /* get the next key */
};

/*
 * One turn of a worker: settle what it holds, and get the next.
 *
 * A retry that finds the last attempt used up answers WQ_DEAD in `settled`: the
 * hold has not ended, nothing was got, and *item is renewed, so that every older copy is
 * stale; another turn buries it. An error in `settled`: nothing has changed, and nothing was
 * got.
 */
typedef struct wq_turn {
	unsigned steps;      /* in: of wq_turn_steps */
	int settled;         /* out: what settling answers */
	wq_verdict verdict;  /* in: see wq_settle(); checked */
	int64_t deadline_ns; /* in: of the get */
	/* in: told what settling answers, as soon as it does, under the engine's lock; or NULL */
	void (*on_settled)(void *arg, int settled);
	void *arg;
	wq_gate *gate; /* in: NULL: a Get like others; with one it waits, in a shutdown, until
	                        nothing is held either */
	uint32_t seen; /* in: the gate's number, as the worker knows it */
} wq_turn;

/*
 * A deadline of WQ_NOWAIT asks not to wait and is answered WQ_EAGAIN; any other
 * deadline that passes is answered WQ_ETIMEDOUT.
 */
typedef struct wq_engine {
	uint32_t version; /* WQ_ENGINE_VERSION */
	uint32_t size;    /* sizeof(wq_engine) as the engine was compiled */
	const char *name;

	/*
	 * Make the state of queue q. The options are checked and hold no NULL clock or allocator.
	 * The limiter is never NULL, and stays the queue's, which frees it after close. On success
	 * the order is the engine's, and close frees it; on failure wq_new() does. An
	 * engine that sleeps by the clock watches it.
	 */
	int (*open)(wq_queue *q, const wq_options *options, void **state);
	/* Free the state, as wq_free(). */
	int (*close)(void *state);

	int (*add)(void *state, const void *key, size_t len);
	/* add_with: the options are checked; their time may have passed. */
	int (*add_with)(void *state, const void *key, size_t len, const wq_add_options *options);
	int (*reschedule)(void *state, const void *key, size_t len, int64_t due_ns);
	/* cancel: a deadline of WQ_NOWAIT does not wait for the hold's end. */
	int (*cancel)(void *state, const void *key, size_t len, int64_t deadline_ns, unsigned *was);
	int64_t (*next_deadline)(void *state);
	int (*add_many)(void *state, const wq_key *keys, size_t n, int *outcomes);

	int (*get)(void *state, wq_item *item, int64_t deadline_ns);
	int (*get_many)(void *state, wq_item *items, size_t max,
	                int64_t deadline_ns);
	int (*interrupt)(void *state, int n);

	int (*done)(void *state, const wq_item *item);
	int (*done_many)(void *state, const wq_item *items, size_t n,
	                 int *outcomes);
	int (*next)(void *state, wq_item *item, int64_t deadline_ns);
	int (*next_many)(void *state, wq_item *items, size_t n, size_t max,
	                 int64_t deadline_ns);
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
	/* turn: what the Get answers, or WQ_OK without one. */
	int (*turn)(void *state, wq_item *item, wq_turn *turn);
	/* gate_change: its new number. */
	uint32_t (*gate_change)(void *state, wq_gate *gate);
	/* snapshot: what the engine knows; the rest is zero already. */
	int (*snapshot)(void *state, wq_snapshot *out);
	/* set_failures: the count is checked. */
	int (*set_failures)(void *state, const void *key, size_t len, uint32_t failures);
} wq_engine;

/*
 * For engines: how long a key has to wait, asked of the limiter in the options,
 * with the failures that the engine keeps of the key; *failures is raised if the
 * limiter counts. The engine serialises. Returns nanoseconds >= 0 or WQ_NEVER;
 * WQ_EINVAL (NULL, or too many failures); the status of a limiter that carries one;
 * WQ_ENOTSUP: the limiter keeps more than that of a key (a bucket for each, decorrelated jitter).
 */
WQ_API wq_value wq_engine_ask(wq_limiter *l, const void *key, size_t len, int64_t now_ns,
                             uint32_t *failures);

#ifdef __cplusplus
}
#endif
#endif
