/*
 * Rows of lateness: a key every 100 µs, from its time to its Get's return.
 *
 *   late_p50, _p99          alone
 *   late_1m_..              beside 1M others that wait
 *   late_1ns_..             with a timer slack of 1 ns
 *   late_1m_1ns_..          both
 *   late_pool_p50, _p99     keys that a pool of 2 handles, until the handler begins; to compare
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

static double late_queue(wq_queue *q, const char *key, int64_t due_ns)
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
	wq_queue *q = bench_queue();
	int bad = 0;

	for (size_t i = 0; l->others && i < bench_sizes.keys; i++)
		bad |= wq_add_after(q, bench_key(pool, i), KEY_LEN,
		                    WQ_HOUR + (int64_t)(i * 7919 % 60000) * WQ_MILLISECOND) !=
		       WQ_DELAYED;
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

/* ---- in a pool -------------------------------------------------------------- */

enum { POOL_WORKERS = 2 };

struct late_pool {
	int64_t due_ns[LATE_BLOCK]; /* of the block's keys; written while none of them is handled */
	double late[LATE_BLOCK];
	_Atomic int early; /* A: relaxed, read when the queue is idle */
};

/* The first digits of a key are its number (see keys.c). */
static size_t number_of(const wq_item *item)
{
	const char *digits = (const char *)item->key + 3;

	return (size_t)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + digits[2] - '0');
}

static wq_verdict note_late(void *ctx, const wq_item *item)
{
	int64_t now = bench_now();
	struct late_pool *p = ctx;
	size_t i = number_of(item);

	p->late[i] = (double)(now - p->due_ns[i]);
	if (now < p->due_ns[i])
		atomic_fetch_add_explicit(&p->early, 1, memory_order_relaxed);
	return WQ_DONE;
}

/* All keys of a block wait before the first of them is due, 1 ms later. */
static void late_pool_block(struct late_pool *p, wq_queue *q)
{
	const struct bench_keys *pool = bench_pool();
	int64_t start = bench_now() + WQ_MILLISECOND;
	int bad = 0;

	for (size_t i = 0; i < LATE_BLOCK; i++)
		p->due_ns[i] = start + (int64_t)i * late_period_ns;
	for (size_t i = 0; i < LATE_BLOCK; i++)
		bad |= wq_add_at(q, bench_key(pool, i), KEY_LEN, p->due_ns[i]) < 0;
	bench_rest(start + LATE_BLOCK * late_period_ns - bench_now());
	bad |= wq_wait_idle_until(q, WQ_NEVER) != WQ_OK;
	bench_check(!bad && !p->early, "late_pool: a call failed, or early");
}

static void late_pool_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t blocks = bench_sizes.quick ? LATE_BLOCKS_QUICK : LATE_BLOCKS, n = 0;
	double *late = bench_alloc(blocks * LATE_BLOCK, sizeof *late);
	double *futex = bench_alloc(blocks * LATE_BLOCK, sizeof *futex);
	struct late_pool p = {.early = 0};
	wq_pool_options o = {.workers = POOL_WORKERS, .handler = note_late, .ctx = &p};
	wq_queue *q = bench_queue();
	wq_pool *pool;

	(void)arg;
	(void)state;
	bench_check(wq_pool_start(&pool, q, &o) == WQ_OK, "no pool");
	for (size_t b = 0; b < blocks; b++) {
		late_pool_block(&p, q);
		for (size_t i = 0; i < LATE_BLOCK; i++)
			late[n + i] = p.late[i];

		int64_t start = bench_now();

		for (int i = 1; i <= LATE_BLOCK; i++)
			futex[n++] = late_futex(start + i * late_period_ns);
	}
	bench_check(wq_pool_free(pool) == WQ_OK, "late_pool: the pool stays");
	bench_queue_free(q, 0);
	samples[0].value = bench_percentile(late, n, 0.5);
	samples[0].limit = bench_percentile(futex, n, 0.5);
	samples[1].value = bench_percentile(late, n, 0.99);
	samples[1].limit = bench_percentile(futex, n, 0.99);
	free(late);
	free(futex);
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
    {
	.rows = {{"late_pool_p50", "ns", BAR_NONE, 0, "timed_futex_p50"},
                 {"late_pool_p99", "ns", BAR_NONE, 0, "timed_futex_p99"}},
	.nrows = 2,
	.reps = 5,
	.run = late_pool_run,
    },
};

const struct bench_groups bench_late = {groups, sizeof groups / sizeof groups[0]};
