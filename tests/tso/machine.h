/*
 * A machine with store buffers, on which files of the library run whose
 * atomic operations were redirected (redirect.h), and a search through its runs.
 *
 * Each thread's stores go into a buffer of its own first and reach the memory
 * later, when the machine likes; a thread sees its own stores at once.
 *
 *   model   | what leaves a buffer first
 *   --------+----------------------------------------------------------------
 *   TSO_TSO | the oldest store: x86
 *   TSO_PSO | the oldest of any address, but a release store only after all
 *           | that are older: part of what ARM does
 *
 * Modifying operations, fences that are seq_cst and system calls empty the
 * thread's buffer; membarrier those of all threads, one after another. Every
 * operation is a step, before which any other thread may take steps and any
 * buffer may let go of a store; but a store into the buffer is none, because
 * nobody can see it.
 *
 * The search is depth first over all runs; states that were seen before are
 * not entered again. What a thread knows is the list of what its operations
 * have answered, so a state is told by these lists, the memory and the buffers.
 */
#ifndef WQ_TSO_MACHINE_H
#define WQ_TSO_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum tso_model { TSO_TSO, TSO_PSO };
enum tso_change { TSO_SET, TSO_ADD, TSO_OR, TSO_AND };

/* What the kernel says to membarrier(). */
enum tso_kernel {
	TSO_BARRIERS,
	TSO_NO_BARRIERS,      /* it has none */
	TSO_BARRIERS_REFUSED, /* it had, when it was asked first */
};

/* What is run. setup runs outside the threads, without a step; finish likewise, in the end. */
struct tso_plan {
	const char *name;
	int threads;
	void (*setup)(void);
	void (*thread)(int number);
	void (*finish)(void);
};

struct tso_result {
	uint64_t runs, states;
	bool complete;  /* no run was left out */
	char what[200]; /* empty: all were right */
	char run[2000]; /* the one that was not: for tso_again() */
};

extern enum tso_model tso_model;
extern enum tso_kernel tso_kernel;

/* All runs, at most max of them. True: all were right. */
bool tso_search(const struct tso_plan *plan, uint64_t max, struct tso_result *r);

/* So many runs by chance. */
bool tso_random(const struct tso_plan *plan, uint64_t seed, uint64_t runs, struct tso_result *r);

/* One run, step by step, printed. */
bool tso_again(const struct tso_plan *plan, const char *run);

_Noreturn void tso_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A name for an address, for what is printed. */
void tso_name(const void *p, const char *name);

/* From now on nobody may touch these bytes. */
void tso_free(const void *p, size_t size);

/* The number of the running thread, counted from 0; -1: none runs. */
int tso_self(void);

/* ---- where the redirected operations go ----------------------------------------- */

void tso_init(void *p, unsigned size, uint64_t value);
uint64_t tso_load(const void *p, unsigned size, int order);
void tso_store(void *p, unsigned size, uint64_t value, int order);
uint64_t tso_modify(void *p, unsigned size, enum tso_change how, uint64_t value);
bool tso_compare(void *p, unsigned size, void *expected, uint64_t value);
void tso_fence(int order);
uintptr_t tso_me(void);
int tso_clock(struct timespec *at);
int tso_affinity(size_t size, void *set);
long tso_syscall(long number, ...);

#endif
