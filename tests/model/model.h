/*
 * The stupid queue: what wq/queue.h promises, in arrays and loops, without
 * threads, memory management or speed. Keys are small numbers here; tape.c
 * knows which bytes they stand for. A hold is the number of the Get that
 * began it, so a double or late done shows by itself.
 */
#ifndef WQ_TEST_MODEL_H
#define WQ_TEST_MODEL_H

#include <wq.h>

#include <stdbool.h>

enum { MODEL_KEYS = 5000 };

/* BUSIEST: the key that was touched most often; among equals the first in line. */
enum model_order { MODEL_FIFO, MODEL_LIFO, MODEL_BUSIEST, MODEL_ORDERS };

/* How a Get may wait: not at all, until a time that has passed, or for long. */
enum model_wait { MODEL_NOWAIT, MODEL_PASSED, MODEL_LONG };

struct model_key {
	unsigned state;     /* WQ_STATE_... bits, 0 if absent */
	unsigned touches;   /* merges while in line, in this life of the key */
	unsigned lives;     /* how often it came from absent to queued */
	uint64_t hold;      /* who holds it, 0 if nobody */
	int64_t added_ns;   /* of the add that the line or the holder has */
	int64_t readded_ns; /* of the add that made it dirty */
};

struct model {
	enum model_order order;
	size_t max_keys; /* 0: no bound */
	struct model_key keys[MODEL_KEYS];
	int line[MODEL_KEYS]; /* the head is line[0] */
	size_t nqueued, nrunning, ndirty;
	uint64_t gets, pushes; /* so far */
	int kept;              /* interrupts that found nobody */
	bool shut;
};

void model_init(struct model *m, enum model_order order, size_t max_keys);

/* Each answers what the call of that name answers. */
int model_add(struct model *m, int key, int64_t now_ns);
int model_get(struct model *m, enum model_wait wait, int *key);
int model_done(struct model *m, int key, uint64_t hold);
int model_requeue(struct model *m, int key, uint64_t hold, enum wq_where where);
int model_held(const struct model *m, int key, uint64_t hold);
int model_interrupt(struct model *m, int n);
bool model_idle(const struct model *m);

/* Would a Get that may wait for long have to? */
bool model_blocks(const struct model *m);

#endif
