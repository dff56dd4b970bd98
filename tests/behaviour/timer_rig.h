/*
 * What the tests of timers share: one timer on a clock of steps and a counting
 * allocator, and callbacks that note their firing.
 *
 * A callback notes that it was made, under a mutex, and tests wait for that on
 * a condition. To know that something has not fired, a test adds a timer that
 * is due now and waits for it: everything that was due before fires before.
 */
#ifndef WQ_TESTS_TIMER_RIG_H
#define WQ_TESTS_TIMER_RIG_H

#include "../support/support.h"

enum { FIRED_MAX = 20000 };

struct fired {
	int who;
	wq_timer_event event;
	int64_t at_ns; /* on the real clock */
};

struct notes {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct fired fired[FIRED_MAX];
	int n;
	int settled;
	bool shut;        /* a callback that waits at the gate is let through once this is false */
	int at_gate;      /* callbacks that have come there */
	int through_gate; /* and that have left */
	int runner;       /* the thread that calls; 0: none has yet */
};

extern struct notes notes;

/* What a timer's ctx points to. */
struct job {
	wq_timer *t;
	int who;
	void (*act)(struct job *job, const wq_timer_event *event); /* or NULL */
	wq_timer_id id, other;
	int64_t answer[4];
};

/* The callback of all timers: acts, and notes it. */
void fire(void *ctx, const wq_timer_event *event);

/* An act: waits in the callback until the test opens the gate. */
void at_gate(struct job *job, const wq_timer_event *event);
void gate_set(bool shut);

/* Of the counters of notes. */
void wait_for(const int *count, int least);
int count_of(const int *count);
void forget(void);

/* ---- fixture ---------------------------------------------------------------- */

struct timers {
	wq_timer *t;
	wq_manual_clock *mc;
	struct memory mem;
};

void timers_open(struct timers *f, int64_t tick_ns, size_t size);
/* left < 0: any number. A test that frees the timer itself leaves t as NULL. */
void timers_close(struct timers *f, int64_t left);

int timers_setup(void **state);
int timers_teardown(void **state);
#define WITH_TIMERS(test) cmocka_unit_test_setup_teardown(test, timers_setup, timers_teardown)

/* Everything that is due has been called, and returned. */
void settle(struct timers *f);
/* Lets time pass, and settles. */
void step(struct timers *f, int64_t by_ns);

/* The times of these are counted from START_NS. */
wq_timer_id add(struct timers *f, struct job *job, int64_t after_ns);

/* So many have fired, and the last one was this. */
void fired_is(int n, int who);

/* The thread sleeps; its number is known once it has called something. */
void runner_blocks(struct timers *f);

#endif
