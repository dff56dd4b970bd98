/*
 * What the tests of the timing wheel share: one, beside it a sorted array of
 * what should be in it, and calls that compare the two.
 */
#ifndef WQ_TESTS_TIMING_WHEEL_BENCH_H
#define WQ_TESTS_TIMING_WHEEL_BENCH_H

#include "../support/support.h"

#include "time/timing_wheel.h"

struct want {
	int64_t due_ns;
	uint64_t what;
};

struct bench {
	struct memory mem;
	wq_allocator allocator;
	wq__slab slab;
	wq__timing_wheel tw;
	struct want *line; /* sorted; of equal times the first inserted is the first */
	size_t first, end, cap;
	size_t scan;    /* those from first to here are dead */
	uint64_t whats; /* so far */
	bool *dead;     /* by what */
	size_t dead_cap, live, deaths;
	size_t most_over; /* the most references beyond 2 x live that there were */
};

void bench_open(struct bench *b, int64_t now_ns, uint32_t tick_shift, uint32_t slot_bits);
void bench_close(struct bench *b);
/* Everything comes out, and nothing is left behind; and closes. */
void bench_finish(struct bench *b);

/* References in the array, dead ones included; and when the earliest that is alive is due. */
size_t waiting(const struct bench *b);
int64_t first_live(struct bench *b);

/* Insert into both; its number is then b->whats. False: no memory. */
bool try_insert(struct bench *b, int64_t now_ns, int64_t due_ns);
void insert(struct bench *b, int64_t now_ns, int64_t due_ns);

/* Let a reference die. */
void kill_ref(struct bench *b, uint64_t what);

/* One pop, checked: the answer, what it took off the budget, and what came out. */
enum wq__tw_pop pop(struct bench *b, int64_t now_ns, size_t budget);
/* Until nothing is due, with so large a budget each time. */
void pop_all(struct bench *b, int64_t now_ns, size_t budget);
/* A reference was popped: it is the head of the array. */
void was_popped(struct bench *b, wq__ref ref, int64_t now_ns);

/* Never later than the earliest, and exact if no reference has died so far. */
void check_next(struct bench *b);

/* The same of the first that lives: exact, if so much of it can be looked at. */
void check_first(struct bench *b);

#endif
