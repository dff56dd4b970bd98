/*
 * The hot paths, once each, for counting instructions: `scripts/bench --check`
 * runs this under callgrind and compares (see check/instructions.py). Run by
 * itself it only checks that the calls answer what they should.
 *
 * The counts are to be the same in every run, on every machine:
 *   - Seeds are fixed, and so is the time, see clock_gettime() below.
 *   - Nothing is counted while two threads use a queue.
 *   - Paths take a multiple of 64 keys: one hold in 64 is timed by the queue.
 *   - They stay below the 2 MiB from which on blocks are aligned by where the kernel puts them.
 *
 * What remains is a kernel without membarrier(2), where no lock is owned by a thread.
 *
 * One thing is not seen: stamps by the CPU's own counter (src/time/ticks.c),
 * which runs on. The path with metrics has a clock of its own instead.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef WQ_BENCH_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT ((void)0)
#define CALLGRIND_DUMP_STATS_AT(name) ((void)(name))
#endif

enum { N = 8192, FEW = 1024, BATCH = 32, STEP_NS = 100 };

struct bench_sizes bench_sizes = {.keys = N};

static wq_item items[N];

/* ---- time and counting ------------------------------------------------------ */

/*
 * Time moves a little with each look at it, but only while something is counted:
 * how often a new queue looks depends on the number of CPUs.
 */
static _Atomic int64_t time_ns, step_ns; /* A, relaxed: one thread at a time uses them */

static int64_t read_time(void *ctx)
{
	int64_t step = atomic_load_explicit(&step_ns, memory_order_relaxed);

	(void)ctx;
	return atomic_fetch_add_explicit(&time_ns, step, memory_order_relaxed);
}

static void move_time(int64_t by_ns)
{
	atomic_fetch_add_explicit(&time_ns, by_ns, memory_order_relaxed);
}

/* In place of the C library's, for the library as well: so default queues can be counted. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t now = read_time(NULL);

	(void)id;
	ts->tv_sec = (time_t)(now / WQ_SECOND);
	ts->tv_nsec = (long)(now % WQ_SECOND);
	return 0;
}

static void begin(void)
{
	atomic_store_explicit(&step_ns, STEP_NS, memory_order_relaxed);
	CALLGRIND_TOGGLE_COLLECT;
}

/*
 * What was done since begin(), as often as `ops` says. Ends the program if it went wrong. The
 * arguments are worked out before counting ends: no calls in them.
 */
static void end(const char *name, size_t ops, bool ok)
{
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT(name);
	atomic_store_explicit(&step_ns, 0, memory_order_relaxed);
	bench_check(ok, name);
	printf("%s %zu\n", name, ops);
}

/* ---- one key at a time ------------------------------------------------------ */

static const char *key(size_t i)
{
	return bench_key(bench_pool(), i);
}

static bool add(wq_queue *q, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= wq_add(q, key(i), KEY_LEN) != WQ_QUEUED;
	return !bad;
}

static wq_queue *full_queue(size_t n)
{
	wq_queue *q = bench_seeded_queue(NULL, NULL);

	bench_check(add(q, n), "a new key was not queued");
	return q;
}

static bool get_done(wq_queue *q, size_t n)
{
	wq_item item;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	return !bad;
}

static bool cycle(wq_queue *q, size_t n)
{
	wq_item item;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_add(q, key(i % FEW), KEY_LEN) != WQ_QUEUED;
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	return !bad;
}

/* The first keys bring the memory. */
static void count_cycle(const char *name, wq_queue *q)
{
	bool ok = cycle(q, FEW);

	begin();
	ok &= cycle(q, N);
	end(name, N, ok);
}

static void cycle_empty(const char *name)
{
	wq_queue *q = full_queue(0);

	count_cycle(name, q);
	bench_queue_free(q, 0);
}

static void *look(void *arg)
{
	bench_check(wq_len(arg) == 0, "the queue is not empty");
	return NULL;
}

/* After two threads have used it, each once: see sync.h. */
static void cycle_shared(const char *name)
{
	wq_queue *q = full_queue(0);
	uint64_t thread;

	look(q);
	bench_thread(&thread, look, q);
	bench_join(thread);
	count_cycle(name, q);
	bench_queue_free(q, 0);
}

static void cycle_waiting(const char *name)
{
	wq_queue *q = full_queue(0);

	bench_check(wq_add_after(q, "far away", 8, WQ_HOUR) == WQ_DELAYED, name);
	count_cycle(name, q);
	bench_queue_free(q, 1);
}

static void cycle_metrics(const char *name)
{
	wq_clock clock = {.now = read_time};
	wq_options options = {.name = "hot", .seed = 1, .clock = &clock};
	wq_queue *q = NULL;

	bench_check(wq_new(&q, &options) == WQ_OK, name);
	count_cycle(name, q);
	bench_queue_free(q, 0);
}

/* ---- priorities, groups, values --------------------------------------------- */

static bool rich_cycle(wq_queue *q, size_t n, uint32_t levels, const char *value)
{
	wq_item item;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		wq_add_options o = {.priority = (int32_t)(i % levels),
		                    .value = value,
		                    .value_len = value ? 64 : 0};

		bad |= wq_add_with(q, key(i % FEW), KEY_LEN, &o) != WQ_QUEUED;
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	return !bad;
}

static void count_rich(const char *name, wq_options o, uint32_t levels, const char *value)
{
	wq_queue *q = NULL;
	bool ok;

	o.seed = 1;
	bench_check(wq_new(&q, &o) == WQ_OK, name);
	ok = rich_cycle(q, FEW, levels, value);
	begin();
	ok &= rich_cycle(q, N, levels, value);
	end(name, N, ok);
	bench_queue_free(q, 0);
}

static void cycle_priority(const char *name)
{
	count_rich(name, (wq_options){.priorities = 1}, 3, NULL);
}

static void cycle_levels(const char *name)
{
	count_rich(name, (wq_options){.priorities = 1}, 1000, NULL);
}

static void cycle_groups(const char *name)
{
	static wq_separator namespace = {.byte = '/', .n = 1};

	count_rich(
	    name, (wq_options){.group = wq_group_before, .group_ctx = &namespace, .group_limit = 2},
	    1, NULL);
}

static void cycle_values(const char *name)
{
	static const char value[64];

	count_rich(name, (wq_options){.values = 1}, 1, value);
}

/* A key that is added while it is held. */
static void cycle_marked(const char *name)
{
	wq_queue *q = full_queue(1);
	wq_item item;
	int bad = 0;

	begin();
	for (size_t i = 0; i < N; i++) {
		bad |= wq_get(q, &item) != WQ_OK;
		bad |= wq_add(q, key(0), KEY_LEN) != WQ_MARKED;
		bad |= wq_done(q, &item) != WQ_QUEUED;
	}
	end(name, N, !bad);
	bench_queue_free(q, 1);
}

static void dup_hot(const char *name)
{
	wq_queue *q = full_queue(FEW);
	int bad = 0;

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_add(q, key(i % FEW), KEY_LEN) != WQ_MERGED;
	end(name, N, !bad);
	bench_queue_free(q, FEW);
}

static void bulk_add(const char *name)
{
	wq_queue *q = full_queue(0);
	bool ok;

	begin();
	ok = add(q, N);
	end(name, N, ok);
	bench_queue_free(q, N);
}

static void bulk_get_done(const char *name)
{
	wq_queue *q = full_queue(N);
	bool ok;

	begin();
	ok = get_done(q, N);
	end(name, N, ok);
	bench_queue_free(q, 0);
}

static void next(const char *name)
{
	wq_queue *q = full_queue(N + 1);
	wq_item item;
	int bad = wq_get(q, &item) != WQ_OK;

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_next(q, &item) != WQ_OK;
	end(name, N, !bad);
	bench_check(wq_done(q, &item) == WQ_OK, name);
	bench_queue_free(q, 0);
}

/* ---- many keys at once ------------------------------------------------------ */

static bool get_all(wq_queue *q)
{
	int bad = 0;

	for (size_t i = 0; i < N; i += BATCH)
		bad |= wq_get_many_until(q, items + i, BATCH, WQ_NOWAIT) != BATCH;
	return !bad;
}

static bool done_all(wq_queue *q)
{
	int bad = 0;

	for (size_t i = 0; i < N; i += BATCH)
		bad |= wq_done_many(q, items + i, BATCH, NULL) != BATCH;
	return !bad;
}

static void add_many(const char *name)
{
	wq_queue *q = full_queue(0);
	wq_key *keys = bench_alloc(N, sizeof *keys);
	int bad = 0;

	for (size_t i = 0; i < N; i++)
		keys[i] = (wq_key){.key = key(i), .len = KEY_LEN};
	begin();
	for (size_t i = 0; i < N; i += BATCH)
		bad |= wq_add_many(q, keys + i, BATCH, NULL) != BATCH;
	end(name, N, !bad);
	free(keys);
	bench_queue_free(q, N);
}

static void get_many(const char *name)
{
	wq_queue *q = full_queue(N);
	bool ok;

	begin();
	ok = get_all(q);
	end(name, N, ok);
	bench_check(done_all(q), name);
	bench_queue_free(q, 0);
}

static void done_many(const char *name)
{
	wq_queue *q = full_queue(N);
	bool ok = get_all(q);

	begin();
	ok &= done_all(q);
	end(name, N, ok);
	bench_queue_free(q, 0);
}

/* ---- keys that wait --------------------------------------------------------- */

/* So many keys, each at a time of its own within a minute. */
static bool add_later(wq_queue *q, size_t n)
{
	uint64_t random = BENCH_SEED;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t span = bench_span(&random, WQ_SECOND, WQ_MINUTE);

		bad |= wq_add_after(q, key(i), KEY_LEN, span) != WQ_DELAYED;
	}
	return !bad;
}

static void add_after(const char *name)
{
	wq_queue *q = full_queue(0);
	bool ok;

	begin();
	ok = add_later(q, N);
	end(name, N, ok);
	bench_queue_free(q, N);
}

static void cancel(const char *name)
{
	wq_queue *q = full_queue(0);
	uint32_t *order = bench_order(N);
	int bad = !add_later(q, N);

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_cancel(q, key(order[i]), KEY_LEN, NULL) != WQ_CANCELLED;
	end(name, N, !bad);
	free(order);
	bench_queue_free(q, 0);
}

static void come_due(const char *name)
{
	wq_queue *q = full_queue(0);
	bool ok = add_later(q, N);

	move_time(WQ_MINUTE);
	begin();
	ok &= get_done(q, N);
	end(name, N, ok);
	bench_queue_free(q, 0);
}

/* All at one instant. */
static void fire_burst(const char *name)
{
	wq_queue *q = full_queue(0);
	int64_t due = wq_now(q) + WQ_MINUTE;
	int bad = 0;

	for (size_t i = 0; i < N; i++)
		bad |= wq_add_at(q, key(i), KEY_LEN, due) != WQ_DELAYED;
	move_time(WQ_MINUTE);
	begin();
	bad |= !get_done(q, N);
	end(name, N, !bad);
	bench_queue_free(q, 0);
}

/* ---- keys that fail, and workers' turns ------------------------------------- */

static void retry(const char *name)
{
	wq_queue *q = full_queue(N);
	int bad = !get_all(q);

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_retry(q, &items[i]) != WQ_DELAYED;
	end(name, N, !bad);
	bench_queue_free(q, N);
}

static bool limit(wq_queue *q, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_add_limited(q, key(i % FEW), KEY_LEN) < 0;
		bad |= wq_failures(q, key(i % FEW), KEY_LEN) != 1;
		bad |= wq_forget(q, key(i % FEW), KEY_LEN) != WQ_OK;
	}
	return !bad;
}

static void limited_cycle(const char *name)
{
	wq_queue *q = full_queue(0);
	bool ok = limit(q, FEW);

	begin();
	ok &= limit(q, N);
	end(name, N, ok);
	bench_queue_free(q, FEW);
}

static void settle_next(const char *name)
{
	wq_queue *q = full_queue(N + 1);
	wq_item item;
	int bad = wq_get(q, &item) != WQ_OK;

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_settle_next_until(q, &item, WQ_DONE, WQ_NEVER, NULL) != WQ_OK;
	end(name, N, !bad);
	bench_check(wq_done(q, &item) == WQ_OK, name);
	bench_queue_free(q, 0);
}

struct crew {
	const char *name;
	size_t handled;
	struct bench_bell go, over;
};

/* Counts from its first key to its last. Meanwhile the main thread sleeps on a bell. */
static wq_verdict handle(void *ctx, const wq_item *item)
{
	struct crew *c = ctx;

	(void)item;
	if (c->handled == 0) {
		bench_bell_wait(&c->go);
		begin();
	}
	if (c->handled++ == N) {
		end(c->name, N, true);
		bench_bell_ring(&c->over);
	}
	return WQ_DONE;
}

static void pool_turn(const char *name)
{
	struct crew crew = {.name = name};
	wq_pool_options options = {.workers = 1, .handler = handle, .ctx = &crew};
	wq_queue *q = full_queue(N + 1);
	wq_pool *pool;

	bench_check(wq_pool_start(&pool, q, &options) == WQ_OK, name);
	bench_bell_ring(&crew.go);
	bench_bell_wait(&crew.over);
	bench_check(wq_wait_idle_until(q, WQ_NEVER) == WQ_OK && wq_pool_free(pool) == WQ_OK, name);
	bench_queue_free(q, 0);
}

static int piece(void *ctx, size_t i)
{
	(void)i;
	++*(size_t *)ctx;
	return 0;
}

/* By one thread: of several, who takes what is a matter of chance. */
static void parallel(const char *name)
{
	wq_parallel_options options = {.workers = 1, .chunk = 1};
	size_t worked = 0;

	begin();
	wq_parallel(N, piece, &worked, &options);
	end(name, N, worked == N);
}

/* ---- timers, the heap, the delay queue -------------------------------------- */

static void fire(void *ctx, const wq_timer_event *event)
{
	(void)event;
	++*(size_t *)ctx;
}

static wq_wheel *new_wheel(void)
{
	wq_wheel *w = NULL;

	bench_check(wq_wheel_new(&w, WQ_SECOND, NULL) == WQ_OK, "no wheel");
	return w;
}

static bool insert(wq_wheel *w, int64_t low, int64_t high, size_t *fired, wq_timer_id *ids)
{
	uint64_t random = BENCH_SEED;
	int bad = 0;

	for (size_t i = 0; i < N; i++)
		bad |= wq_wheel_after(w, bench_span(&random, low, high), fire, fired, &ids[i]);
	return !bad;
}

static wq_timer_id ids[N];

static void wheel_insert(const char *name)
{
	wq_wheel *w = new_wheel();
	size_t fired = 0;
	bool ok;

	begin();
	ok = insert(w, WQ_SECOND, WQ_MINUTE, &fired, ids);
	end(name, N, ok);
	bench_check(wq_wheel_free(w) == N, name);
}

static void wheel_cancel(const char *name)
{
	wq_wheel *w = new_wheel();
	uint32_t *order = bench_order(N);
	size_t fired = 0;
	int bad = !insert(w, WQ_SECOND, WQ_MINUTE, &fired, ids);

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_wheel_cancel(w, ids[order[i]]) != WQ_OK;
	end(name, N, !bad);
	free(order);
	bench_check(wq_wheel_free(w) == 0, name);
}

static void wheel_expire(const char *name)
{
	wq_wheel *w = new_wheel();
	size_t fired = 0;
	bool ok = insert(w, 1, 10 * WQ_MILLISECOND, &fired, ids);

	begin();
	wq_wheel_advance(w, 2 * WQ_SECOND);
	end(name, N, ok && fired == N);
	bench_check(wq_wheel_free(w) == 0, name);
}

/* The first is taken out and comes back at a later place. */
static void heap(const char *name)
{
	uint64_t random = BENCH_SEED;
	int64_t priority;
	wq_heap *h;
	void *value;
	int bad = wq_heap_new(&h, NULL);

	for (size_t i = 0; i < N; i++)
		bad |= wq_heap_add(h, bench_span(&random, 0, WQ_MINUTE), NULL, NULL);
	begin();
	for (size_t i = 0; i < N; i++) {
		bad |= wq_heap_pop(h, &priority, &value);
		bad |= wq_heap_add(h, priority + bench_span(&random, 0, WQ_MINUTE), value, NULL);
	}
	end(name, N, !bad);
	bench_check(wq_heap_free(h) == N, name);
}

static void delayqueue(const char *name)
{
	uint64_t random = BENCH_SEED;
	wq_delayqueue *dq;
	void *value;
	int bad = wq_delayqueue_new(&dq, NULL);
	int64_t now = wq_delayqueue_now(dq);

	begin();
	for (size_t i = 0; i < N; i++)
		bad |= wq_delayqueue_offer(dq, NULL, now + bench_span(&random, 1, WQ_MINUTE));
	move_time(WQ_MINUTE);
	for (size_t i = 0; i < N; i++)
		bad |= wq_delayqueue_poll(dq, &value);
	end(name, N, !bad);
	bench_check(wq_delayqueue_free(dq) == 0, name);
}

/* ---- all of them ------------------------------------------------------------ */

static const struct path {
	const char *name;
	void (*run)(const char *name);
} paths[] = {
    {"cycle_empty", cycle_empty},
    {"cycle_shared", cycle_shared},
    {"cycle_waiting", cycle_waiting},
    {"cycle_metrics", cycle_metrics},
    {"cycle_marked", cycle_marked},
    {"cycle_priority", cycle_priority},
    {"cycle_levels", cycle_levels},
    {"cycle_groups", cycle_groups},
    {"cycle_values", cycle_values},
    {"dup_hot", dup_hot},
    {"bulk_add", bulk_add},
    {"bulk_get_done", bulk_get_done},
    {"next", next},
    {"add_many", add_many},
    {"get_many", get_many},
    {"done_many", done_many},
    {"add_after", add_after},
    {"cancel", cancel},
    {"come_due", come_due},
    {"fire_burst", fire_burst},
    {"retry", retry},
    {"limited_cycle", limited_cycle},
    {"settle_next", settle_next},
    {"pool_turn", pool_turn},
    {"parallel", parallel},
    {"wheel_insert", wheel_insert},
    {"wheel_cancel", wheel_cancel},
    {"wheel_expire", wheel_expire},
    {"heap", heap},
    {"delayqueue", delayqueue},
};

int main(void)
{
	/* As in most programs that use a queue: there are other threads, see primitives.c. */
	bench_threads_begin();
	bench_pool();
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		/* So that no path depends on those before it. */
		atomic_store_explicit(&time_ns, WQ_HOUR, memory_order_relaxed);
		paths[i].run(paths[i].name);
	}
	return 0;
}
