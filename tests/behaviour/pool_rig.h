/*
 * A queue with a pool on the manual clock, and a handler whose keys say what it
 * does: the word before the first '-' is the verdict,
 *
 *     done  retry  again  drop  bad     (bad: of an unknown kind)
 *
 * "gate+" before it waits at the gate until the test opens that, and "act" calls
 * the test's own function. What happens is counted under a mutex; tests wait for
 * that on a condition.
 */
#ifndef WQ_TESTS_POOL_RIG_H
#define WQ_TESTS_POOL_RIG_H

#include "../support/support.h"

enum { RIG_LOG = 64, AGAIN_NS = 10000 };

struct rig;
typedef wq_verdict (*rig_act)(struct rig *r, const wq_item *it);

struct rig {
	struct fixture f;
	wq_pool *p;
	rig_act act;
	int64_t answer[16]; /* what act was answered */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	/* M: the mutex */
	bool shut;                  /* M: the gate */
	int begun, at_gate, ended;  /* M: handlers called, those that came to the gate, returned */
	int started, gone;          /* M: threads, by the hooks */
	int tid[RIG_LOG];           /* M: of worker number i, the latest; 0: it is gone */
	uint32_t attempts[RIG_LOG]; /* M: of the i-th handler that was called */
	int noted;                  /* M: for the test's own callbacks */
};

/* options and pool may be NULL; zero fields of pool are filled in: 1 worker, the rig's callbacks. */
void rig_open(struct rig *r, const wq_options *options, const wq_pool_options *pool);
/* Another pool with the rig's callbacks. */
wq_pool *rig_pool(struct rig *r, const wq_pool_options *pool);
/* Frees pool and queue; keys may be left. */
void rig_close(struct rig *r);

wq_verdict rig_handler(void *ctx, const wq_item *it);
void rig_on_start(void *ctx, uint32_t worker);
void rig_on_end(void *ctx, uint32_t worker);

void rig_gate(struct rig *r, bool shut);
/* One more of a count of the rig's. */
void rig_note(struct rig *r, int *count);
/* Waits until it is at least that. */
void rig_wait(struct rig *r, const int *count, int least);
int rig_read(struct rig *r, const int *count);

void rig_add(struct rig *r, const char *key, int outcome);
/* Nothing is queued or held any more. */
void rig_idle(struct rig *r);
/* All workers that have not ended sleep. */
void rig_sleeps(struct rig *r);
/* So many are left: a worker counts until a moment after its hook. */
void workers_become(wq_pool *p, uint32_t n);
/* The thread sleeps. */
void thread_sleeps(int tid);

wq_pool_counts counts_of(wq_pool *p);
void counts_are(wq_pool *p, const wq_pool_counts *expected, const char *file, int line);

/* COUNTS_ARE(p, .done = 3): the other outcomes are 0. */
#define COUNTS_ARE(pool, ...) counts_are((pool), &(wq_pool_counts){__VA_ARGS__}, __FILE__, __LINE__)

#endif
