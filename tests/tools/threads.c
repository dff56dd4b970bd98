#define _POSIX_C_SOURCE 200809L
/*
 * Hand-overs under a tool that watches threads. Built with a sanitizer or run by valgrind, on the
 * shared library as users have it, which is built for neither.
 *
 *     threads correct    plain memory goes by way of queues, pools, timers ...: no word from the tool
 *     threads racy       two handlers write to the same word: the tool has to say so
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wq.h>

enum { KEYS = 64, ROUNDS = 20, WORKERS = 3 };

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "threads: %s\n", what);
	_exit(3);
}
#define CHECK(x) check(x, #x)

/* Plain memory, of which each word is guarded by its key being with one thread only. */
static struct {
	int input, sum, handled;
} work[KEYS];

static unsigned number_of(const wq_item *it)
{
	unsigned n;

	memcpy(&n, it->key, sizeof n);
	return n % KEYS;
}

static void handle_one(const wq_item *it)
{
	unsigned n = number_of(it);

	work[n].sum += work[n].input;
	work[n].handled++;
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	unsigned n = number_of(it);

	(void)ctx;
	handle_one(it);
	return work[n].handled % 3 == 0 ? wq_retry_after(WQ_MICROSECOND) : WQ_DONE;
}

static void *get_and_done(void *arg)
{
	wq_queue *q = arg;
	wq_item it;
	int rc = wq_get(q, &it);

	while (rc == WQ_OK) {
		handle_one(&it);
		rc = wq_next(q, &it);
	}
	return NULL;
}

/* What is written before an add is read by who gets the key, and what that one writes by the next. */
static void produce(wq_queue *q)
{
	for (unsigned n = 0; n < KEYS; n++) {
		work[n].input = 1;
		CHECK(wq_add(q, &n, sizeof n) > 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		for (unsigned n = 0; n < KEYS; n++)
			CHECK(n % 2 ? wq_add(q, &n, sizeof n) > 0
			            : wq_add_after(q, &n, sizeof n, WQ_MICROSECOND) > 0);
	for (unsigned n = 0; n < KEYS; n += 7) {
		CHECK(wq_wait_key_for(q, &n, sizeof n, 60 * WQ_SECOND) == WQ_OK);
		CHECK(work[n].sum > 0);
	}
	CHECK(wq_wait_idle_for(q, 60 * WQ_SECOND) == WQ_OK);
}

static void *produce_in_thread(void *arg)
{
	wq_queue *q = arg;

	for (unsigned n = 0; n < KEYS; n++)
		CHECK(wq_add(q, &n, sizeof n) > 0);
	return NULL;
}

static void judge(void)
{
	int handled = 0;

	for (unsigned n = 0; n < KEYS; n++) {
		CHECK(work[n].sum == work[n].handled);
		handled += work[n].handled;
	}
	CHECK(handled >= KEYS);
}

static void by_pool(const char *name)
{
	wq_queue *q;
	wq_pool *p;
	wq_registry *r = NULL;
	pthread_t other;
	wq_pool_options o = {.workers = WORKERS, .handler = handle, .slow_ns = WQ_MILLISECOND};

	memset(work, 0, sizeof work);
	if (name)
		CHECK(wq_registry_new(&r) == WQ_OK);
	CHECK(wq_new(&q, &(wq_options){.name = name, .registry = r}) == WQ_OK);
	CHECK(wq_pool_start(&p, q, &o) == WQ_OK);
	for (unsigned n = 0; n < KEYS; n++)
		work[n].input = 0;
	produce(q);
	CHECK(pthread_create(&other, NULL, produce_in_thread, q) == 0);
	CHECK(wq_pool_resize(p, WORKERS + 1) == WQ_OK);
	CHECK(pthread_join(other, NULL) == 0);
	CHECK(wq_drain_for(q, 60 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL) ==
	      WQ_OK);
	judge();
	CHECK(wq_pool_free(p) == WQ_OK);
	CHECK(wq_free(q) == 0);
	if (r)
		CHECK(wq_registry_free(r) == WQ_OK);
}

static void by_get(void)
{
	pthread_t workers[WORKERS];
	wq_queue *q;

	memset(work, 0, sizeof work);
	CHECK(wq_new(&q, NULL) == WQ_OK);
	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&workers[i], NULL, get_and_done, q) == 0);
	produce(q);
	CHECK(wq_drain_for(q, 60 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL) ==
	      WQ_OK);
	judge();
	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_join(workers[i], NULL) == 0);
	CHECK(wq_free(q) == 0);
}

/* ---- timers, delay queues, limiters, loops -------------------------------- */

struct errand {
	int input, output;
};

static void ring(void *ctx, const wq_timer_event *event)
{
	struct errand *e = ctx;

	(void)event;
	e->output += e->input;
}

static void by_timer(void)
{
	struct errand *e = calloc(1, sizeof *e);
	int64_t first;
	wq_timer *t;

	CHECK(e != NULL);
	CHECK(wq_timer_new(&t, NULL) == WQ_OK);
	e->input = 1;
	CHECK(wq_timer_every(t, WQ_MILLISECOND, ring, e, NULL) == WQ_OK);
	/* Until it has rung: the next time is a later one then. */
	first = wq_timer_next_deadline(t);
	while (wq_timer_next_deadline(t) <= first + WQ_MILLISECOND)
		sched_yield();
	CHECK(wq_timer_stop(t) == WQ_OK);
	CHECK(e->output > 0);
	CHECK(wq_timer_free(t) >= 0);
	free(e);
}

static void *take_errands(void *arg)
{
	void *value;

	while (wq_delayqueue_take(arg, &value) == WQ_OK) {
		struct errand *e = value;

		e->output = e->input;
		free(e);
	}
	return NULL;
}

static void by_delayqueue(void)
{
	pthread_t takers[2];
	wq_delayqueue *dq;

	CHECK(wq_delayqueue_new(&dq, NULL) == WQ_OK);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&takers[i], NULL, take_errands, dq) == 0);
	for (int i = 0; i < 100; i++) {
		struct errand *e = calloc(1, sizeof *e);

		CHECK(e != NULL);
		e->input = i;
		CHECK(wq_delayqueue_offer(dq, e, wq_delayqueue_now(dq) + i * WQ_MICROSECOND) ==
		      WQ_OK);
	}
	while (wq_delayqueue_size(dq) > 0)
		sched_yield();
	CHECK(wq_delayqueue_close(dq) == WQ_OK);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(takers[i], NULL) == 0);
	CHECK(wq_delayqueue_free(dq) == 0);
}

static int piece(void *ctx, size_t i)
{
	((int *)ctx)[i] = (int)i;
	return 0;
}

static void by_loop(void)
{
	static int out[1000];

	CHECK(wq_parallel(1000, piece, out, &(wq_parallel_options){.workers = WORKERS}) == 1000);
	for (int i = 0; i < 1000; i++)
		CHECK(out[i] == i);
}

static void *ask(void *l)
{
	for (unsigned i = 0; i < 200; i++) {
		unsigned n = i % 10;

		CHECK(wq_limiter_when(l, &n, sizeof n, i) >= 0);
	}
	return NULL;
}

static void by_limiter(void)
{
	wq_limiter *l = wq_limiter_controller();
	pthread_t askers[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&askers[i], NULL, ask, l) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(askers[i], NULL) == 0);
	CHECK(wq_limiter_failures(l, "\0\0\0", 4) == 40);
	CHECK(wq_limiter_free(l) == WQ_OK);
}

/* ---- a race --------------------------------------------------------------- */

static int unguarded;
static _Atomic int met;

static wq_verdict race(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	/* Both are in their handlers; relaxed: that alone puts nothing in order. */
	atomic_fetch_add_explicit(&met, 1, memory_order_relaxed);
	while (atomic_load_explicit(&met, memory_order_relaxed) < 2)
		sched_yield();
	unguarded++;
	return WQ_DONE;
}

static void two_writers(void)
{
	wq_queue *q;
	wq_pool *p;

	CHECK(wq_new(&q, NULL) == WQ_OK);
	CHECK(wq_add_str(q, "a") == WQ_QUEUED);
	CHECK(wq_add_str(q, "b") == WQ_QUEUED);
	CHECK(wq_pool_start(&p, q, &(wq_pool_options){.workers = 2, .handler = race}) == WQ_OK);
	CHECK(wq_drain_for(q, 60 * WQ_SECOND, NULL, NULL) == WQ_OK);
	CHECK(wq_pool_free(p) == WQ_OK);
	CHECK(wq_free(q) == 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "racy") == 0) {
		two_writers();
		return 0;
	}
	if (argc != 2 || strcmp(argv[1], "correct") != 0)
		return 2;
	by_pool(NULL);
	by_pool("named");
	by_get();
	by_timer();
	by_delayqueue();
	by_loop();
	by_limiter();
	return 0;
}
