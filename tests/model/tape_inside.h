/*
 * What the files behind tape.h share.
 *
 *   tape.c         reading, comparing, the life of the queues, the loop
 *   tape_change.c  operations that change something: add, get, done
 *   tape_later.c   the same with a delay; cancel, reschedule
 *   tape_retry.c   the same by a limiter; retry, settle, dead letters
 *   tape_look.c    operations that wait, stop or look
 *   tape_rich.c    priorities, groups and values: options, what adds bring, what is shown
 */
#ifndef WQ_TEST_TAPE_INSIDE_H
#define WQ_TEST_TAPE_INSIDE_H

#include "keys.h"
#include "model.h"
#include "parts.h"
#include "tape.h"

enum {
	HELD_MAX = 2 * MODEL_KEYS, /* a key is held once per queue */
	KEPT_MAX = 64,             /* copies of items that were handed back */
	BATCH_MAX = 16,
	CHECK_EVERY = 64,     /* steps between two comparisons of everything */
	IDLE_MAX = 5 << 18,   /* bytes that a queue without keys may keep: spare blocks, ghosts */
	GROUPS_MAX = 1 << 20, /* and groups without keys */
};

/* One queue, and what should be the same. */
struct side {
	wq_queue *q;
	struct model m;
	struct books books;
	struct line line;
	int fd;
	struct dying {
		struct tape *t;
		struct side *s;
		const struct held *held; /* whose last attempt is about to fail; NULL: none */
		bool adds;               /* the callback adds the key again */
		int calls;               /* of the callback */
		bool ok;
	} dying;
	bool within; /* adds may give a latest time */
	struct model_rich rich;
	wq_group_settings group; /* of all groups, but for exceptions */
	bool exceptions;
	/*
	 * Aging or rates: order by time. Time goes on with each step, and calls on many keys are
	 * about one, so that no two times are equal: then the order is not promised.
	 */
	bool ticks;
	bool named;           /* it has metrics, and tells them */
	int64_t depth, adds;  /* that it told */
	bool below;           /* the depth was below 0 */
	bool quiet;           /* a Get without waiting has found nothing ... */
	uint64_t quiet_since; /* ... when there had been so many pushes */
};

struct held {
	wq_item item;
	struct side *home;
	int key;
	uint64_t hold;
};

struct tape {
	const uint8_t *bytes;
	size_t n, at;
	size_t step;
	const char *op;
	struct tape_diff *diff;
	wq_manual_clock *mc;
	int64_t now_ns;
	int64_t times; /* that were made to be used once */
	struct side side[2];
	struct held held[HELD_MAX];
	size_t nheld;
	struct held kept[KEPT_MAX];
	size_t nkept, kept_at;
	unsigned shown[MODEL_KEYS];
};

/* The next bytes of the tape. */
unsigned tape_byte(struct tape *t);
unsigned tape_word(struct tape *t);

/* A key by one byte: mostly the awkward ones, so that adds meet. And a plain one by its number. */
int tape_some_key(struct tape *t);
int tape_plain_key(unsigned i);

/* Both note the difference and answer false. */
__attribute__((format(printf, 2, 3))) bool tape_fail(struct tape *t, const char *format, ...);
bool tape_differ(struct tape *t, const char *what, int64_t got, int64_t want);

#define SAME(what, got, want)                                                                      \
	do {                                                                                       \
		int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                            \
		if (got_ != want_)                                                                 \
			return tape_differ(t, what, got_, want_);                                  \
	} while (0)

/* ---- tape_rich.c ---- */

/* The options of a queue that has any of them. */
void tape_enrich(struct tape *t, struct side *s, wq_options *options);

/* What an add of the tape brings; and the call, exact to the byte. */
struct model_load tape_some_load(struct tape *t, const struct side *s);
struct model_load tape_load(const struct side *s, unsigned b);
int tape_add_with(struct side *s, const void *key, size_t len, wq_add_options *o,
                  const struct model_load *with);
bool tape_brings(const struct model_load *with);

bool tape_same_load(struct tape *t, const char *what, int priority, const void *value, size_t len,
                    const struct model_load *want);
bool tape_same_group(struct tape *t, const struct side *s, const wq_key *group, int key);
bool tape_same_riches(struct tape *t, struct side *s, const wq_snapshot *p);

/* The item that a Get filled: is it the key that the model says? */
bool tape_same_item(struct tape *t, struct side *s, const wq_item *it, int key);

/* What a Get that found nothing means for the descriptor. */
void tape_note_answer(struct side *s, int rc);

/* It is held by the tape, or not any more: then a copy is kept. */
void tape_hold(struct tape *t, struct side *s, const wq_item *it, int key);
void tape_handed_back(struct tape *t, const struct held *h);

/*
 * An item to hand back and the queue to hand it to: in most cases a held one
 * and its home, else a copy of one that was handed back, or the wrong queue.
 */
bool tape_pick(struct tape *t, struct held *h, struct side **s);

/* How a Get is to wait. Nobody else is there to end a real wait, so none is begun. */
enum model_wait tape_some_wait(struct tape *t, const struct side *s, int64_t *deadline_ns);

/* Forget a key, in queue and model. */
bool tape_forget(struct tape *t, struct side *s, int key);

/* Time goes on; a little, where equal times are to be avoided. */
bool tape_advance(struct tape *t, int64_t by_ns);
bool tape_tick(struct tape *t);

/* Called for a key that died; ctx is a struct dying. */
void tape_dead_letter(void *ctx, const wq_item *item);

/* Add a key to queue and model. */
bool tape_add(struct tape *t, struct side *s, int key);

/* Show all keys (or the first stop_at, if that is not 0) of a queue that stands still. */
bool tape_walk(struct tape *t, struct side *s, size_t stop_at);

/* X(name): the operation of that number is op_name(). Only append: the corpus knows the numbers. */
/* clang-format off */
#define OPS(X)                                                                                     \
	X(add) X(add_plain) X(add_str) X(add_many) X(add_burst) X(get) X(get_many)                 \
	X(work_off) X(interrupt) X(done) X(done_many) X(next) X(next_many)                         \
	X(requeue) X(extend) X(wait) X(shutdown) X(walk) X(walk_moving)                            \
	X(drain) X(state) X(fd) X(bad) X(clock) X(free)                                            \
	X(later) X(later_burst) X(cancel) X(reschedule) X(deadline)                                \
	X(limited) X(settle)
/* clang-format on */

#define OP(name) bool op_##name(struct tape *t, struct side *s);
OPS(OP)
#undef OP

#endif
