/*
 * A tree of limiters and, beside it, what it should answer: computed node by
 * node from the rules, with the failures, buckets and idle times of a few keys
 * in arrays. Where chance or floating point has a say the answer is a range.
 */
#ifndef WQ_TEST_LIMITER_MODEL_H
#define WQ_TEST_LIMITER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq.h>

enum {
	LM_KEYS = 8,
	LM_NODES = 32,
	LM_PARTS = 3, /* of a max_of */
};

enum lm_kind {
	LM_EXPONENTIAL,
	LM_FULL,
	LM_EQUAL,
	LM_DECORRELATED,
	LM_FAST_SLOW,
	LM_BUCKET,
	LM_BUCKET_PER_KEY,
	LM_MAX_OF,
	LM_MAX_WAIT,
	LM_BOUNDED,
	LM_OWN,
	LM_BUCKET_PER_PART,
	LM_NULL,
	LM_KINDS
};

struct lm_range {
	int64_t low, high;
};

/* A bucket as the time until it is full again. */
struct lm_tokens {
	long double full_in_ns;
	int64_t seen_ns; /* from then on: the latest time */
	int64_t taken;   /* ever; for a rate of 0 */
};

struct lm_node {
	enum lm_kind kind;
	int64_t a, b; /* base and max, fast and slow, the maximum, the bound */
	uint32_t n;   /* of fast_slow, of bucket_per_part */
	char separator;
	double rate;
	int burst;
	bool reserved; /* the last call took a token */
	struct lm_node *part[LM_PARTS];
	int nparts;
	struct lm_tokens tokens[LM_KEYS]; /* [0] for all keys, or one for each, or for each part */
	int64_t last[LM_KEYS];            /* the most that decorrelated jitter can have said */

	/* of one's own */
	int64_t answer;
	uint32_t count[LM_KEYS];  /* the model's */
	uint32_t counts[LM_KEYS]; /* by its functions */
	int whens, frees;
	struct lm *lm;
};

struct lm {
	struct lm_node node[LM_NODES];
	int nnodes;
	struct lm_node *root;
	wq_limiter *limiter;
	int status; /* that it should carry */
	/* of the whole */
	bool counts, per_key;
	int parted; /* nodes with a bucket for each part */
	int64_t idle_ns;
	int64_t calls; /* of when: what floating point may be off by grows with it */
	int64_t latest_ns;
	uint32_t failures[LM_KEYS];
	int64_t used_ns[LM_KEYS];
	bool known[LM_KEYS]; /* was ever asked for */
	/* what a limiter of one's own is asked must be this */
	int key;
	int64_t now_ns;
	bool wrong;
};

/* The bytes of a key. */
const char *lm_key(int key, size_t *len);

/* The part of a key, for a bucket_per_part: each is one of the keys. */
int lm_part(const struct lm_node *n, int key);

/* A new node, for the caller to fill in; NULL: there are too many. */
struct lm_node *lm_node(struct lm *lm, enum lm_kind kind);

/* The tree below root is ready: makes the limiter, and says what status it should have. */
void lm_make(struct lm *lm, struct lm_node *root);

/* Each call changes the model as it should the limiter. */
struct lm_range lm_when(struct lm *lm, int key, int64_t now_ns);
void lm_forget(struct lm *lm, int key);
int64_t lm_failures(struct lm *lm, int key);
void lm_give_back(struct lm *lm, int key);
/* How many keys are remembered: what is not worth it goes by and by. */
struct lm_range lm_size(const struct lm *lm);

/* No answer is above this. */
int64_t lm_cap(const struct lm_node *n);

#endif
