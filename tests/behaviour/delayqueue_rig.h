/*
 * What the tests of the delay queue share: one on a clock of steps and a
 * counting allocator, and threads that wait in a take. Values are pointers to
 * letters: V("a").
 */
#ifndef WQ_TESTS_DELAYQUEUE_RIG_H
#define WQ_TESTS_DELAYQUEUE_RIG_H

#include "../support/support.h"

struct delay {
	wq_delayqueue *dq;
	wq_manual_clock *mc;
	struct memory mem;
};

/* A test that frees the queue itself leaves dq as NULL. */
int delay_setup(void **state);
int delay_teardown(void **state);
#define WITH_DELAY(test) cmocka_unit_test_setup_teardown(test, delay_setup, delay_teardown)

void *V(const char *letter);
void value_is(const void *value, const char *letter);

/* Its time is counted from START_NS. */
void offer(struct delay *f, const char *letter, int64_t after_ns);

void poll_is(struct delay *f, const char *letter);
/* Nothing can be taken; nothing is written either. */
void poll_nothing(struct delay *f, int status);

/* A thread in one take; a deadline of WQ_NEVER is take() itself. */
struct taker {
	struct actor actor;
	wq_delayqueue *dq;
	int64_t deadline_ns;
	void *value;
};

void taker_start(struct taker *t, wq_delayqueue *dq, int64_t deadline_ns);
/* The same, and it is blocked. */
void taker_block(struct taker *t, wq_delayqueue *dq, int64_t deadline_ns);
/* Some of them, without a deadline. */
void takers_block(struct taker *t, int n, wq_delayqueue *dq);
void taker_got(struct taker *t, const char *letter);
void taker_got_nothing(struct taker *t, int status);

#endif
