/*
 * Rows of lateness: a key every 100 µs, from its time to its Get's return.
 *
 *   late_p50, _p99          alone
 *   late_1m_..              beside 1M others that wait
 *   late_1ns_..             with a timer slack of 1 ns
 *   late_1m_1ns_..          both
 */
#define _GNU_SOURCE
#include "bench.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LATE_BLOCK = 100, LATE_BLOCKS = 100, LATE_BLOCKS_QUICK = 2, LATE_KEYS = 1024 };

static const int64_t late_period_ns = 100 * WQ_MICROSECOND;

struct late {
	bool others; /* 1M keys wait as well */
	bool exact;  /* a timer slack of 1 ns */
};

static double late_queue(wq *q, const char *key, int64_t due_ns)
{
	wq_item item;
	/* If the last one was very late this one has come due already. */
	bool ok = wq_add_at(q, key, KEY_LEN, due_ns) >= 0 && wq_get(q, &item) == WQ_OK;
	int64_t late = bench_now() - due_ns;

	bench_check(ok && late >= 0 && wq_done(q, &item) == WQ_OK, "late: a call failed, or early");
	return (double)late;
}

/* The least that it costs: nobody ever changes the word. */
static double late_futex(int64_t due_ns)
{
	static _Atomic uint32_t word;
	struct timespec due = {.tv_sec = (time_t)(due_ns / WQ_SECOND),
	                       .tv_nsec = (long)(due_ns % WQ_SECOND)};

	do
		syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &due, NULL,
		        FUTEX_BITSET_MATCH_ANY);
	while (bench_now() < due_ns);
	return (double)(bench_now() - due_ns);
}

static void *late_setup(const void *arg)
{
	const struct late *l = arg;
	const struct bench_keys *pool = bench_pool();
	wq *q = bench_queue();
	int bad = 0;

	for (size_t i = 0; l->others && i < bench_sizes.keys; i++)
		bad |= wq_add_after(q, bench_key(pool, i), KEY_LEN,
		                    WQ_HOUR + (int64_t)(i * 7919 % 60000) * WQ_MILLISECOND) !=
		       WQ_WAITING;
	bench_check(!bad, "late: a key does not wait");
	return q;
}

/*
 * A block of keys and a block of bare sleeps in turn, 10 ms each and one time
 * every 100 µs. One thread: it adds the next key when it is done with the last.
 */
static void late_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct late *l = arg;
	const struct bench_keys *pool = bench_pool();
	size_t blocks = bench_sizes.quick ? LATE_BLOCKS_QUICK : LATE_BLOCKS;
	size_t n = blocks * LATE_BLOCK, at = 0;
	double *queue = bench_alloc(n, sizeof *queue), *futex = bench_alloc(n, sizeof *futex);

	if (l->exact)
		bench_check(prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0, "no timer slack");
	for (size_t b = 0; b < blocks; b++) {
		int64_t start = bench_now();

		for (int i = 1; i <= LATE_BLOCK; i++)
			futex[at + (size_t)i - 1] = late_futex(start + i * late_period_ns);
		start = bench_now();
		for (int i = 1; i <= LATE_BLOCK; i++, at++)
			queue[at] =
			    late_queue(state, bench_key(pool, bench_sizes.keys + at % LATE_KEYS),
			               start + i * late_period_ns);
	}
	prctl(PR_SET_TIMERSLACK, 0UL, 0, 0, 0); /* as it was */
	samples[0].value = bench_percentile(queue, n, 0.5);
	samples[0].limit = bench_percentile(futex, n, 0.5);
	samples[1].value = bench_percentile(queue, n, 0.99);
	samples[1].limit = bench_percentile(futex, n, 0.99);
	free(queue);
	free(futex);
}

static void late_teardown(void *state)
{
	bench_check(wq_free(state) >= 0, "late: the queue is busy");
}

/* ---- the rows -------------------------------------------------------------- */

static const struct late late_plain = {0}, late_others = {.others = true};
static const struct late late_exact = {.exact = true};
static const struct late late_both = {.others = true, .exact = true};

#define LATE(suffix_, arg_)                                                                        \
	{                                                                                          \
		.rows = {{"late" suffix_ "_p50", "ns", BAR_TIMES, 1.1, "timed_futex_p50"},         \
		         {"late" suffix_ "_p99", "ns", BAR_TIMES, 1.1, "timed_futex_p99"}},        \
		.nrows = 2, .reps = 5, .paired = true, .arg = arg_, .setup = late_setup,           \
		.run = late_run, .teardown = late_teardown,                                        \
	}

static const struct bench_group groups[] = {
    LATE("", &late_plain),
    LATE("_1m", &late_others),
    LATE("_1ns", &late_exact),
    LATE("_1m_1ns", &late_both),
};

const struct bench_groups bench_late = {groups, sizeof groups / sizeof groups[0]};
