/*
 * What the files of the benchmark share.
 *
 *   main.c        arguments, repetitions, bars, the table, the JSON
 *   sizes.c       how much is done
 *   tools.c       threads, memory, time, samples: what does not need the library
 *   primitives.c  what the rows are judged by: mutex, random access, cache
 *                 line, bare futex, clock
 *   slices.c      how work of one thread is timed
 *   keys.c        the keys, the orders in which they are used, and their times
 *   single.c      rows of one thread: cycles and duplicates
 *   rich.c        rows of one thread: priorities, groups, values
 *   bulk.c        rows of one thread: 1M keys in, 1M keys out
 *   sweep.c       rows of one thread: the worst cycle, of all numbers of keys and of all lengths
 *   flow.[ch]     producers and consumers: their threads and their time
 *   threads.c     rows of producers and consumers
 *   wake.c        rows of sleeping workers
 *   resident.c    rows of one thread: the longest call while a queue grows to 10M and 100M keys
 *   memory.c      rows of bytes
 *   wheel.c       rows of timers, beside those of libev and libuv
 *   delay.c       rows of keys that wait: adding them, taking them back
 *   burst.c       rows of many keys that are due at one instant
 *   late.c        rows of how late a key is
 *   parts.c       rows of the heap and the delay queue
 *   limit.c       rows of limited adds
 *   workers.c     rows of the pool and of the parallel loop
 *   scrape.c      rows of reading the metrics of a queue in use
 *   machine.c     no rows but a program of its own: the primitives, for docs/performance.md
 *   hot.c         no rows but a program of its own: the paths whose instructions are counted
 *
 * A group is a few rows that one repetition measures together. It knows its
 * rows, fills in a value and, where the row is judged by a primitive, that
 * primitive as measured close to it; main.c does the rest. The queue is used
 * through its public header alone.
 *
 * A row NAME@X is a point of a curve: how the cost of NAME grows with X. These
 * stand in the file of their row, and run only when they are asked for.
 */
#ifndef WQ_BENCH_H
#define WQ_BENCH_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq.h>

/* Two lines: neighbours are fetched in pairs. */
enum { BENCH_LINE = 128 };

/* How much is done. Set once by main(), before anything is measured. */
struct bench_sizes {
	bool quick;
	size_t keys;   /* queued in the bulk and 1m rows; the pool of keys holds twice as many */
	size_t slices; /* of about 1 ms, in a repetition of a single-thread row */
	size_t short_keys;   /* that the short rows pass through */
	size_t round_trips;  /* pingpong */
	size_t wakes;        /* samples of a wake-up row, for each repetition */
	int64_t hot_ns;      /* how long the hot rows run */
	int64_t rest_ns;     /* between two wake-ups: all must be asleep by then */
	size_t random_lines; /* random access: lines of 64 bytes, a power of two */
	size_t trip_chunks;  /* line trip: how many times it is timed */
};

extern struct bench_sizes bench_sizes;
extern const struct bench_sizes bench_quick_sizes; /* sizes.c */

/* ---- rows ---------------------------------------------------------------- */

enum bench_bar {
	BAR_TIMES, /* value <= factor × limit */
	BAR_PLUS,  /* value <= limit + factor */
	BAR_FLOOR, /* value >= factor, as far as the placement of the CPUs allows */
	BAR_SHARE, /* value >= factor × limit */
	BAR_FIXED, /* value <= factor */
	BAR_NONE,  /* printed beside its limit, for comparison; neither judged nor in the JSON */
};

struct bench_row {
	const char *name;
	const char *unit;
	enum bench_bar bar;
	double factor;
	const char *limit_name; /* BAR_NONE: NULL if it stands beside nothing */
};

enum { BENCH_ROWS_MAX = 9 };

struct bench_sample {
	double value;
	double limit; /* BAR_TIMES, BAR_PLUS, BAR_SHARE, BAR_NONE: the primitive */
};

struct bench_group {
	struct bench_row rows[BENCH_ROWS_MAX];
	size_t nrows;
	int reps;        /* repetitions, unless the caller says otherwise */
	bool threads;    /* its values depend on the way between the CPUs */
	bool on_request; /* it takes very much: only with --long, or if it is named */
	bool paired;     /* value and limit are measured so closely that they belong together */
	const void *arg;
	void *(*setup)(const void *arg); /* may be NULL: state is NULL then */
	void (*run)(const void *arg, void *state,
	            struct bench_sample *samples); /* one repetition */
	/* May be NULL. What all repetitions together say, instead of the best of them. */
	void (*combine)(const void *state, struct bench_sample *samples);
	void (*teardown)(void *state); /* may be NULL */
};

struct bench_groups {
	const struct bench_group *list;
	size_t n;
};

extern const struct bench_groups bench_single, bench_bulk, bench_threads, bench_wake, bench_memory,
    bench_wheel, bench_delay, bench_burst, bench_late, bench_parts, bench_limit, bench_workers,
    bench_scrape, bench_sweep, bench_resident, bench_rich;

/* What runs in a child of its own, of memory.c. Return an exit status. */
int bench_memory_child(void);
int bench_waiting_child(void);
int bench_few_child(void);

/* Prints the versions of the loops whose timers are compared, a line each (wheel.c). */
void bench_wheel_versions(void);

/* ---- tools (tools.c) ------------------------------------------------------- */

int64_t bench_now(void);

/* Ends the program, with a message, unless `ok`: a figure of broken work is worth nothing. */
void bench_check(bool ok, const char *what);
void *bench_alloc(size_t n, size_t size);
void *bench_alloc_lines(size_t size); /* on lines of its own; size: a multiple of BENCH_LINE */
void bench_thread(uint64_t *thread, void *(*fn)(void *), void *arg);
void bench_join(uint64_t thread);

/* Sleeps in the kernel; keeps the CPU busy. */
void bench_rest(int64_t ns);
void bench_spin(int64_t ns);

/* Keeps this thread on the nth of the CPUs that it may run on; one of them if there are fewer. */
void bench_pin(int nth);

/* Sorts the samples; the value below which the part p of them lies. */
double bench_percentile(double *samples, size_t n, double p);

/* A chain of n multiplications; how many of them take 1 µs, as of now. */
void bench_steps(size_t n);
size_t bench_count_steps(void);

/* ---- more of them, with the library (primitives.c) ------------------------ */

/* Runs this program once more with `option`, in the same sizes; the line that it prints. */
void bench_child(const char *option, char *line, size_t size);

/* A new default queue; a queue whose keys are all gone, or not (left: how many). */
wq_queue *bench_queue(void);
/* A queue that does the same in every run; either may be NULL. */
wq_queue *bench_seeded_queue(const wq_clock *clock, const wq_order *order);
/* A queue with priorities. */
wq_queue *bench_ranked_queue(void);
/* A queue with metrics; r may be NULL. */
wq_queue *bench_named_queue(wq_registry *r);
void bench_queue_free(wq_queue *q, size_t left);

/* A word to sleep on, and nothing else: the least that waking a thread costs. */
struct bench_bell {
	_Atomic uint32_t word;
};

void bench_bell_wait(struct bench_bell *bell);
void bench_bell_ring(struct bench_bell *bell);

/* ---- work in slices, in nanoseconds for each operation (slices.c) -------- */

struct bench_work {
	void (*run)(void *state, size_t n); /* n operations */
	void *state;
	size_t slice_ops; /* operations that take about 1 ms */
};

size_t bench_slice_ops(const struct bench_work *w);
double bench_slice(const struct bench_work *w);

/* What the fastest slices need. Sorts them. */
double bench_low(double *slices, size_t n);

/* One repetition of a row and of its primitive; of something alone. */
void bench_in_turn(const struct bench_work *row, const struct bench_work *primitive,
                   struct bench_sample *sample);
double bench_alone(const struct bench_work *w);

/* ---- points of a curve (slices.c) ---------------------------------------- */

enum { BENCH_AGAIN_MAX = 100 };

/* The X of a row NAME@X, which --quick bounds. */
size_t bench_point(const void *x);
/*
 * How often one repetition does work on n things that begins anew each time: what
 * takes some microseconds once is a matter of luck. The value is bench_low() of them.
 */
size_t bench_again(size_t n);

/* ---- a course: long work whose slices differ (slices.c) ------------------- */

enum { BENCH_SLICES = 50 };

/* All zero at first; kept from one repetition to the next. */
struct bench_course {
	double best[BENCH_SLICES]; /* ns; 0: not run yet */
	double sum;                /* of this repetition */
	int64_t start_ns;
	size_t slice;
};

void bench_course_begin(struct bench_course *c);
/* A slice has ended, and the next one begins. */
void bench_course_lap(struct bench_course *c);
/* What was done since the last lap does not count. */
void bench_course_resume(struct bench_course *c);
/* The sum of each slice's best. */
double bench_course_best(const struct bench_course *c);
/* Where a slice of n things begins. */
size_t bench_course_at(size_t n, size_t slice);

/* ---- primitives (primitives.c, the last in wake.c) ----------------------- */

extern const struct bench_work bench_mutex, bench_random_access, bench_clock;

/* From now on this is a process of several threads. */
void bench_threads_begin(void);

/* One way between two CPUs, the threads pinned; 0 if there is one CPU only. */
double bench_line_trip(void);

/* Wakes a thread by a bell, from a thread that then sleeps, or goes on (busy). */
void bench_futex_wake(bool busy, size_t n, double *p50, double *p99);

/* ---- keys (keys.c) ------------------------------------------------------- */

enum {
	KEY_LEN = 20,
	KEY_STRIDE = 32, /* as malloc would place them; none lies across two cache lines */
};

struct bench_keys {
	char *bytes;
	size_t n;
};

static inline const char *bench_key(const struct bench_keys *k, size_t i)
{
	return k->bytes + i * KEY_STRIDE;
}

/* The i-th key, "ns-123/pod-456789012", with a NUL. Distinct for i < 10^9. */
void bench_key_format(char out[KEY_LEN + 1], uint64_t i);

/* The pool that all rows share: 2 × bench_sizes.keys keys. */
const struct bench_keys *bench_pool(void);

/* The first n keys, in memory of their own: for rows that need more of them. */
struct bench_keys bench_keys_make(size_t n);

/*
 * The first n keys of the pool, copied in random order: read one after
 * another, they are used in random order and cost the caller no cache miss.
 */
struct bench_keys bench_shuffled(size_t n);
void bench_keys_release(struct bench_keys *k);

/* The same numbers in every run: *state is BENCH_SEED at first. */
#define BENCH_SEED UINT64_C(88172645463325252)
uint64_t bench_random(uint64_t *state);

/* 0 to n - 1 in random order. */
uint32_t *bench_order(size_t n);

/* A span, and n of them, from `low` to below `high`. */
int64_t bench_span(uint64_t *state, int64_t low, int64_t high);
int64_t *bench_spans(size_t n, int64_t low, int64_t high);

/* n numbers below `range`, the i-th most frequent with weight 1 / (i + 1)^s. */
uint16_t *bench_zipf(size_t n, uint16_t range, double s);

#endif
