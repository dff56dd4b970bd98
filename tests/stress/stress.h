/*
 * What the stress programs share: arguments, threads that start together, a
 * cheap random number, and a check that ends the program.
 *
 * They run real threads for a fixed number of operations, under the thread
 * and address sanitizers too. What goes wrong shows as a failed check, as a
 * report of the sanitizer, or as a hang, which a time limit ends.
 */
#ifndef WQ_TEST_STRESS_H
#define WQ_TEST_STRESS_H

#include <wq.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { STRESS_HANG_S = 100 };

struct stress {
	uint64_t seed;
	int64_t spin_ns; /* for wq_options */
	double scale;    /* times the usual number of operations */
};

/*
 * Arguments that all of them know: --seed N, --scale X, --spin
 * never|adaptive|fixed, --one-cpu (exits with 77 where that is refused), and
 * words, which are given to word() (NULL: there are none). WQ_LONG=1 is four
 * times the operations; sanitizers get fewer. Prints the seed.
 */
void stress_init(struct stress *st, int argc, char **argv, bool (*word)(const char *));

/* n operations by the scale, at least 1. */
long stress_ops(const struct stress *st, long n);

/* A queue on the real clock. */
wq_queue *stress_queue(const struct stress *st, const wq_options *options);

uint32_t stress_random(uint64_t *state);

/* A crew of threads: add them, start them all at once, join them. */
enum { CREW_MAX = 64 };

struct crew {
	pthread_t thread[CREW_MAX];
	int n;
	pthread_barrier_t start;
	struct crew_job {
		struct crew *crew;
		void (*run)(void *);
		void *ctx;
	} job[CREW_MAX];
};

void crew_add(struct crew *c, void (*run)(void *), void *ctx);
void crew_start(struct crew *c);
void crew_join(struct crew *c);

__attribute__((format(printf, 3, 4), noreturn)) void stress_fail(const char *file, int line,
                                                                 const char *format, ...);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			stress_fail(__FILE__, __LINE__, "%s", #condition);                         \
	} while (0)

/* Two numbers that must be the same. */
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_)                                                                      \
			stress_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #a, a_, #b, b_); \
	} while (0)

#endif
