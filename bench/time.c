/*
 * Rows of time: timers, and keys that wait.
 *
 *   wheel_insert   1M timers, 1 to 60 s away, into a fresh wheel, its memory included
 *   wheel_cancel   then all of them back, in random order
 *   wheel_expire   1M timers within 10 ms, by one advance
 *   libev_.., libuv_..  the same three for the loops of others, if the build has found
 *                  them; their timers are initialised beforehand and only started here
 *   wheel_bytes    what the wheel asks of its allocator for a timer, fn and ctx taken off
 *   add_after      1M keys, 1 to 60 s away, to a fresh queue
 *   bytes_waiting  resident memory for each of them
 *   fire_burst     1M keys due at one instant: until all are got and done, one worker
 *   hold_max       the most keys that enter the line in one hold of the lock meanwhile
 *   hold_p999      how long the holds that move keys last; to compare
 *   get_longest    the longest Get, which may be many holds; to compare
 *   cycle_waiting  cycle_empty while one key waits far away
 *   late           a key every 100 µs: from its time to its Get's return; beside 1M others
 *                  that wait (_1m), and with a timer slack of 1 ns (_1ns)
 *   heap_add_pop, delayqueue_1_1   to compare
 *   add_after_1k .. cancel_10m     what a key costs among so many others that wait
 *
 * Long rows are cut into slices whose bests are summed up, as in bulk.c: with
 * fixed seeds a slice does the same work in every repetition.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef WQ_BENCH_LIBEV
#include <ev.h>
#endif
#ifdef WQ_BENCH_LIBUV
#include <uv.h>
#endif

/* xorshift64: the same times in every run. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* n spans, from `low` to below `high`. */
static int64_t *draw_spans(size_t n, int64_t low, int64_t high)
{
	int64_t *spans = bench_alloc(n, sizeof *spans);
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < n; i++)
		spans[i] = low + (int64_t)(draw(&state) % (uint64_t)(high - low));
	return spans;
}

/* ---- a long row in slices -------------------------------------------------- */

enum { SLICES = 50 };

struct course {
	double best[SLICES]; /* ns; 0: not run yet */
	double sum;          /* of this repetition */
	int64_t start_ns;
	size_t slice;
};

static void course_begin(struct course *c)
{
	c->sum = 0;
	c->slice = 0;
	c->start_ns = bench_now();
}

/* A slice has ended, and the next one begins. */
static void course_lap(struct course *c)
{
	int64_t now = bench_now();
	double took = (double)(now - c->start_ns);

	if (c->best[c->slice] == 0 || took < c->best[c->slice])
		c->best[c->slice] = took;
	c->sum += took;
	c->slice++;
	c->start_ns = now;
}

static double course_best(const struct course *c)
{
	double sum = 0;

	for (size_t s = 0; s < SLICES; s++)
		sum += c->best[s];
	return sum;
}

static size_t slice_at(size_t n, size_t slice)
{
	return n * slice / SLICES;
}

/* ---- timers: the wheel and two others --------------------------------------- */

enum { INSERT, CANCEL, EXPIRE, WAYS };

enum kind_of_timers {
	WHEEL,
#ifdef WQ_BENCH_LIBEV
	LIBEV,
#endif
#ifdef WQ_BENCH_LIBUV
	LIBUV,
#endif
	KINDS
};

static const int64_t soon_ns = 10 * WQ_MILLISECOND;

struct timers {
	size_t n;
	const int64_t *spans; /* those that are used now: one of the next two */
	int64_t *far, *soon;
	uint32_t *order; /* in which they are cancelled */
	struct course courses[KINDS][WAYS];
	struct course *firing;
	size_t fired, next_lap;
	int bad;
	wq_wheel *wheel;
	wq_timer_id *ids, *shuffled;
#ifdef WQ_BENCH_LIBEV
	struct ev_loop *ev;
	ev_timer *evs;
#endif
#ifdef WQ_BENCH_LIBUV
	uv_loop_t uv;
	uv_timer_t *uvs;
#endif
};

struct kind {
	void (*begin)(struct timers *t);
	void (*insert)(struct timers *t, size_t from, size_t to);
	void (*before_cancel)(struct timers *t); /* may be NULL */
	void (*cancel)(struct timers *t, size_t from, size_t to);
	void (*expire)(struct timers *t);
	void (*end)(struct timers *t);
};

static void fired(struct timers *t)
{
	if (++t->fired == t->next_lap) {
		course_lap(t->firing);
		t->next_lap = slice_at(t->n, t->firing->slice + 1);
	}
}

static void wheel_fire(void *ctx, const wq_timer_event *event)
{
	(void)event;
	fired(ctx);
}

static void wheel_begin(struct timers *t)
{
	bench_check(wq_wheel_new(&t->wheel, WQ_SECOND, NULL) == WQ_OK, "no wheel");
}

static void wheel_insert(struct timers *t, size_t from, size_t to)
{
	int bad = 0;

	for (size_t i = from; i < to; i++)
		bad |= wq_wheel_after(t->wheel, t->spans[i], wheel_fire, t, &t->ids[i]);
	t->bad |= bad;
}

/* The names in the order of use: looking them up is the caller's cost, and the others have none. */
static void wheel_before_cancel(struct timers *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->shuffled[i] = t->ids[t->order[i]];
}

static void wheel_cancel(struct timers *t, size_t from, size_t to)
{
	int bad = 0;

	for (size_t i = from; i < to; i++)
		bad |= wq_wheel_cancel(t->wheel, t->shuffled[i]);
	t->bad |= bad;
}

static void wheel_expire(struct timers *t)
{
	course_begin(t->firing);
	wq_wheel_advance(t->wheel, WQ_SECOND + soon_ns);
}

static void wheel_end(struct timers *t)
{
	bench_check(wq_wheel_free(t->wheel) == 0, "the wheel is not empty");
}

#ifdef WQ_BENCH_LIBEV
static void libev_fire(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	fired(w->data);
}

static void libev_begin(struct timers *t)
{
	t->ev = ev_loop_new(EVFLAG_AUTO);
	bench_check(t->ev != NULL, "no libev loop");
	for (size_t i = 0; i < t->n; i++) {
		ev_init(&t->evs[i], libev_fire);
		t->evs[i].data = t;
	}
	ev_now_update(t->ev);
}

static void libev_insert(struct timers *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		ev_timer_set(&t->evs[i], (double)t->spans[i] * 1e-9, 0.);
		ev_timer_start(t->ev, &t->evs[i]);
	}
}

static void libev_cancel(struct timers *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		ev_timer_stop(t->ev, &t->evs[t->order[i]]);
}

static void libev_expire(struct timers *t)
{
	bench_rest(2 * soon_ns); /* it has no clock but the real one */
	course_begin(t->firing);
	ev_run(t->ev, EVRUN_NOWAIT);
}

static void libev_end(struct timers *t)
{
	ev_loop_destroy(t->ev);
}
#endif

#ifdef WQ_BENCH_LIBUV
static void libuv_fire(uv_timer_t *timer)
{
	fired(timer->data);
}

static void libuv_begin(struct timers *t)
{
	bench_check(uv_loop_init(&t->uv) == 0, "no libuv loop");
	for (size_t i = 0; i < t->n; i++) {
		uv_timer_init(&t->uv, &t->uvs[i]);
		t->uvs[i].data = t;
	}
	uv_update_time(&t->uv);
}

/* It knows milliseconds only. */
static void libuv_insert(struct timers *t, size_t from, size_t to)
{
	int bad = 0;

	for (size_t i = from; i < to; i++)
		bad |= uv_timer_start(&t->uvs[i], libuv_fire,
		                      (uint64_t)t->spans[i] / WQ_MILLISECOND + 1, 0);
	t->bad |= bad;
}

static void libuv_cancel(struct timers *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		uv_timer_stop(&t->uvs[t->order[i]]);
}

static void libuv_expire(struct timers *t)
{
	bench_rest(2 * soon_ns);
	course_begin(t->firing);
	uv_run(&t->uv, UV_RUN_NOWAIT);
}

static void libuv_end(struct timers *t)
{
	for (size_t i = 0; i < t->n; i++)
		uv_close((uv_handle_t *)&t->uvs[i], NULL);
	uv_run(&t->uv, UV_RUN_DEFAULT);
	bench_check(uv_loop_close(&t->uv) == 0, "libuv's loop is not empty");
}
#endif

static const struct kind kinds[KINDS] = {
    [WHEEL] = {wheel_begin, wheel_insert, wheel_before_cancel, wheel_cancel, wheel_expire,
               wheel_end},
#ifdef WQ_BENCH_LIBEV
    [LIBEV] = {libev_begin, libev_insert, NULL, libev_cancel, libev_expire, libev_end},
#endif
#ifdef WQ_BENCH_LIBUV
    [LIBUV] = {libuv_begin, libuv_insert, NULL, libuv_cancel, libuv_expire, libuv_end},
#endif
};

static void *timers_setup(const void *arg)
{
	struct timers *t = bench_alloc(1, sizeof *t);
	uint64_t state = 2463534242u;

	(void)arg;
#ifndef WQ_BENCH_LIBEV
	printf("libev (libev-dev) was not there when this was built: its rows are left out\n");
#endif
#ifndef WQ_BENCH_LIBUV
	printf("libuv (libuv1-dev) was not there when this was built: its rows are left out\n");
#endif
	t->n = bench_sizes.keys;
	t->far = draw_spans(t->n, WQ_SECOND, WQ_MINUTE);
	t->soon = draw_spans(t->n, 1, soon_ns);
	t->order = bench_alloc(t->n, sizeof *t->order);
	for (size_t i = 0; i < t->n; i++) {
		size_t j = (size_t)(draw(&state) % (i + 1));

		t->order[i] = t->order[j];
		t->order[j] = (uint32_t)i;
	}
	t->ids = bench_alloc(t->n, sizeof *t->ids);
	t->shuffled = bench_alloc(t->n, sizeof *t->shuffled);
	memset(t->ids, 1, t->n * sizeof *t->ids); /* its pages are there from now on */
#ifdef WQ_BENCH_LIBEV
	t->evs = bench_alloc(t->n, sizeof *t->evs);
#endif
#ifdef WQ_BENCH_LIBUV
	t->uvs = bench_alloc(t->n, sizeof *t->uvs);
#endif
	return t;
}

static void timers_course(struct timers *t, struct course *c,
                          void (*move)(struct timers *t, size_t from, size_t to))
{
	course_begin(c);
	for (size_t s = 0; s < SLICES; s++) {
		move(t, slice_at(t->n, s), slice_at(t->n, s + 1));
		course_lap(c);
	}
}

static void timers_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct timers *t = state;

	(void)arg;
	for (size_t k = 0; k < KINDS; k++) {
		const struct kind *kind = &kinds[k];
		struct course *c = t->courses[k];

		t->spans = t->far;
		kind->begin(t);
		timers_course(t, &c[INSERT], kind->insert);
		if (kind->before_cancel)
			kind->before_cancel(t);
		timers_course(t, &c[CANCEL], kind->cancel);
		kind->end(t);

		t->spans = t->soon;
		t->firing = &c[EXPIRE];
		t->fired = 0;
		t->next_lap = slice_at(t->n, 1);
		kind->begin(t);
		kind->insert(t, 0, t->n);
		kind->expire(t);
		bench_check(t->fired == t->n && !t->bad, "timers: not all fired, or a call failed");
		kind->end(t);
		for (size_t way = 0; way < WAYS; way++) {
			samples[k * WAYS + way].value = c[way].sum / (double)t->n;
			samples[k * WAYS + way].limit =
			    course_best(&t->courses[WHEEL][way]) / (double)t->n;
		}
	}
}

static void timers_combine(const void *state, struct bench_sample *samples)
{
	const struct timers *t = state;

	for (size_t k = 0; k < KINDS; k++)
		for (size_t way = 0; way < WAYS; way++)
			samples[k * WAYS + way].value =
			    course_best(&t->courses[k][way]) / (double)t->n;
}

static void timers_teardown(void *state)
{
	struct timers *t = state;

	free(t->far);
	free(t->soon);
	free(t->order);
	free(t->ids);
	free(t->shuffled);
#ifdef WQ_BENCH_LIBEV
	free(t->evs);
#endif
#ifdef WQ_BENCH_LIBUV
	free(t->uvs);
#endif
	free(t);
}

/* ---- wheel_bytes ----------------------------------------------------------- */

static void *count_alloc(void *ctx, size_t size, size_t align)
{
	void *p = NULL;

	if (posix_memalign(&p, align < sizeof p ? sizeof p : align, size) != 0)
		return NULL;
	*(size_t *)ctx += size;
	return p;
}

static void count_free(void *ctx, void *p, size_t size)
{
	*(size_t *)ctx -= size;
	free(p);
}

static void never_fires(void *ctx, const wq_timer_event *event)
{
	(void)ctx;
	(void)event;
}

static void wheel_bytes_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.keys, bytes = 0;
	wq_allocator allocator = {count_alloc, count_free, &bytes};
	wq_wheel_options options = {.allocator = &allocator};
	int64_t *spans = draw_spans(n, WQ_SECOND, WQ_MINUTE);
	wq_wheel *w;
	int bad = 0;

	(void)arg;
	(void)state;
	bench_check(wq_wheel_new(&w, 0, &options) == WQ_OK, "no wheel");
	for (size_t i = 0; i < n; i++)
		bad |= wq_wheel_after(w, spans[i], never_fires, NULL, NULL);
	bench_check(!bad, "wheel_bytes: a call failed");
	samples[0].value =
	    (double)bytes / (double)n - (double)(sizeof(wq_timer_fn) + sizeof(void *));
	bench_check(wq_wheel_free(w) == (int64_t)n && bytes == 0, "the wheel has lost something");
	free(spans);
}

/* ---- add_after ------------------------------------------------------------- */

struct after {
	int64_t *spans;
	struct course now, later;
};

static wq *seeded_queue(const wq_clock *clock, const wq_order *order)
{
	wq *q = NULL;

	bench_check(wq_new(&q, &(wq_options){.seed = 1, .clock = clock, .order = order}) == WQ_OK,
	            "wq_new failed");
	return q;
}

static void *after_setup(const void *arg)
{
	struct after *a = bench_alloc(1, sizeof *a);

	(void)arg;
	bench_pool();
	a->spans = draw_spans(bench_sizes.keys, WQ_SECOND, WQ_MINUTE);
	return a;
}

/* As bulk_add, which is what it is judged by. */
static void add_now(struct course *c, size_t n)
{
	const struct bench_keys *pool = bench_pool();
	wq *q = seeded_queue(NULL, NULL);
	int bad = 0;

	course_begin(c);
	for (size_t s = 0; s < SLICES; s++) {
		for (size_t i = slice_at(n, s); i < slice_at(n, s + 1); i++)
			bad |= wq_add(q, bench_key(pool, i), KEY_LEN) != WQ_QUEUED;
		course_lap(c);
	}
	bench_check(!bad, "add_after: a key was not queued");
	bench_queue_free(q, n);
}

/* On a slow machine the first come due before the last is added; that is in the figure then. */
static void add_later(struct course *c, size_t n, const int64_t *spans)
{
	const struct bench_keys *pool = bench_pool();
	wq *q = seeded_queue(NULL, NULL);
	int bad = 0;

	course_begin(c);
	for (size_t s = 0; s < SLICES; s++) {
		for (size_t i = slice_at(n, s); i < slice_at(n, s + 1); i++)
			bad |= wq_add_after(q, bench_key(pool, i), KEY_LEN, spans[i]) != WQ_WAITING;
		course_lap(c);
	}
	bench_check(!bad, "add_after: a key does not wait");
	bench_check(wq_free(q) >= 0, "add_after: the queue is busy");
}

static void after_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct after *a = state;
	size_t n = bench_sizes.keys;

	(void)arg;
	add_now(&a->now, n);
	add_later(&a->later, n, a->spans);
	samples[0].value = a->later.sum / (double)n;
	samples[0].limit = course_best(&a->now) / (double)n;
}

static void after_combine(const void *state, struct bench_sample *samples)
{
	const struct after *a = state;

	samples[0].value = course_best(&a->later) / (double)bench_sizes.keys;
}

static void after_teardown(void *state)
{
	struct after *a = state;

	free(a->spans);
	free(a);
}

/* ---- bytes_waiting, in a child of its own ----------------------------------- */

static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	char line[128] = "", *at = line;

	bench_check(f && fgets(line, sizeof line, f), "the resident size cannot be read");
	fclose(f);
	strtol(at, &at, 10);
	return strtol(at, &at, 10) * sysconf(_SC_PAGESIZE);
}

int bench_waiting_child(void)
{
	uint64_t state = 88172645463325252u;
	char key[KEY_LEN + 1];

	resident(); /* what reading it costs is there before, too */

	long before = resident();
	wq *q = bench_queue();

	for (size_t i = 0; i < bench_sizes.keys; i++) {
		int64_t span = WQ_SECOND + (int64_t)(draw(&state) % (uint64_t)(59 * WQ_SECOND));

		bench_key_format(key, i);
		bench_check(wq_add_after(q, key, KEY_LEN, span) == WQ_WAITING,
		            "bytes_waiting: a key does not wait");
	}
	printf("%ld %ld\n", before, resident());
	bench_check(wq_free(q) >= 0, "bytes_waiting: the queue is busy");
	return 0;
}

static void waiting_run(const void *arg, void *state, struct bench_sample *samples)
{
	char line[128], *at = line;

	(void)arg;
	(void)state;
	bench_child("--waiting-child", line, sizeof line);

	long before = strtol(at, &at, 10);
	long with = strtol(at, &at, 10);

	bench_check(before > 0 && with > before, "the child of bytes_waiting failed");
	samples[0].value = (double)(with - before) / (double)bench_sizes.keys;
}

/* ---- a burst --------------------------------------------------------------- */

struct burst {
	wq_manual_clock *manual;
	wq *q;
	size_t n;
	struct course course;
};

/* All keys wait for one instant. */
static void burst_begin(struct burst *b)
{
	const struct bench_keys *pool = bench_pool();
	int bad = 0;

	b->n = bench_sizes.keys;
	bench_check(wq_manual_clock_new(&b->manual, WQ_SECOND) == WQ_OK, "no clock");

	wq_clock clock = wq_manual_clock_clock(b->manual);

	b->q = seeded_queue(&clock, NULL);
	for (size_t i = 0; i < b->n; i++)
		bad |= wq_add_at(b->q, bench_key(pool, i), KEY_LEN, WQ_MINUTE) != WQ_WAITING;
	bench_check(!bad, "burst: a key does not wait");
}

static void burst_end(struct burst *b)
{
	bench_queue_free(b->q, 0);
	bench_check(wq_manual_clock_free(b->manual) == WQ_OK, "the clock is in use");
}

static void *burst_setup(const void *arg)
{
	(void)arg;
	return bench_alloc(1, sizeof(struct burst));
}

static void burst_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct burst *b = state;
	struct course *c = &b->course;
	wq_item item;
	int bad = 0;

	(void)arg;
	burst_begin(b);
	course_begin(c);
	bad |= wq_manual_clock_set(b->manual, WQ_MINUTE) != WQ_OK;
	for (size_t s = 0; s < SLICES; s++) {
		for (size_t i = slice_at(b->n, s); i < slice_at(b->n, s + 1); i++) {
			bad |= wq_try_get(b->q, &item) != WQ_OK;
			bad |= wq_done(b->q, &item) != WQ_OK;
		}
		course_lap(c);
	}
	bench_check(!bad, "burst: a call failed");
	burst_end(b);
	samples[0].value = c->sum / (double)WQ_MILLISECOND;
}

static void burst_combine(const void *state, struct bench_sample *samples)
{
	const struct burst *b = state;

	samples[0].value = course_best(&b->course) / (double)WQ_MILLISECOND;
}

/* ---- how long a hold is ----------------------------------------------------- */

/*
 * Seen from the hooks that run under the lock. Each hold that moves keys reads
 * the clock first: so it lasts, at most, from there to the next reading or to
 * the end of the call. The order counts what enters the line meanwhile.
 */
struct holds {
	wq_node *head, *tail; /* first in, first out */
	int64_t time_ns;      /* the queue's */
	int64_t since_ns;     /* the hold's begin, in real time; 0: none in this call */
	bool counting;
	size_t pushed, most;
	double *took;
	size_t n, room;
};

static void hold_ended(struct holds *h)
{
	int64_t now = bench_now();

	if (h->since_ns == 0)
		return;
	bench_check(h->n < h->room, "hold: too many");
	h->took[h->n++] = (double)(now - h->since_ns);
	if (h->pushed > h->most)
		h->most = h->pushed;
}

static int64_t holds_now(void *ctx)
{
	struct holds *h = ctx;

	if (h->counting) {
		hold_ended(h);
		h->pushed = 0;
		h->since_ns = bench_now();
	}
	return h->time_ns;
}

static void holds_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct holds *h = ctx;

	(void)where; /* no key is given back */
	node->link[0] = NULL;
	if (h->head)
		h->tail->link[0] = node;
	else
		h->head = node;
	h->tail = node;
	h->pushed++;
}

static wq_node *holds_pop(void *ctx)
{
	struct holds *h = ctx;
	wq_node *node = h->head;

	h->head = node->link[0];
	return node;
}

static void hold_run(const void *arg, void *state, struct bench_sample *samples)
{
	const struct bench_keys *pool = bench_pool();
	size_t n = bench_sizes.keys;
	struct holds h = {.time_ns = WQ_SECOND, .room = n};
	wq_clock clock = {.now = holds_now, .ctx = &h};
	wq_order order = {.push = holds_push, .pop = holds_pop, .ctx = &h};
	wq *q = seeded_queue(&clock, &order);
	int64_t longest = 0;
	wq_item item;
	int bad = 0;

	(void)arg;
	(void)state;
	h.took = bench_alloc(h.room, sizeof *h.took);
	for (size_t i = 0; i < n; i++)
		bad |= wq_add_at(q, bench_key(pool, i), KEY_LEN, WQ_MINUTE) != WQ_WAITING;
	h.time_ns = WQ_MINUTE;
	h.counting = true;
	for (size_t i = 0; i < n; i++) {
		int64_t start = bench_now();

		h.since_ns = 0;
		bad |= wq_try_get(q, &item) != WQ_OK;
		hold_ended(&h);
		if (bench_now() - start > longest)
			longest = bench_now() - start;
		bad |= wq_done(q, &item) != WQ_OK;
	}
	bench_check(!bad && h.n > 0, "hold: a call failed");
	bench_queue_free(q, 0);
	samples[0].value = (double)h.most;
	samples[1].value = bench_percentile(h.took, h.n, 0.999);
	samples[1].limit = bench_percentile(h.took, h.n, 0.5);
	samples[2].value = (double)longest;
	samples[2].limit = samples[1].value;
	free(h.took);
}

/* ---- cycle_waiting ---------------------------------------------------------- */

enum { CYCLE_KEYS = 1024 };

struct cycles {
	wq *q;
	size_t next;
	struct bench_work work;
};

static void cycles_slice(void *state, size_t n)
{
	struct cycles *c = state;
	const struct bench_keys *pool = bench_pool();
	wq_item item;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_add(c->q, bench_key(pool, c->next), KEY_LEN) != WQ_QUEUED;
		bad |= wq_get(c->q, &item) != WQ_OK;
		bad |= wq_done(c->q, &item) != WQ_OK;
		c->next = (c->next + 1) % CYCLE_KEYS;
	}
	bench_check(!bad, "cycle_waiting: a call failed");
}

static void cycles_init(struct cycles *c)
{
	*c = (struct cycles){.q = bench_queue(), .work = {cycles_slice, c, 20000}};
}

static void cycle_waiting_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.slices;
	double *waiting = bench_alloc(n, sizeof *waiting), *empty = bench_alloc(n, sizeof *empty);
	double *clock = bench_alloc(n, sizeof *clock);
	struct cycles with, without;

	(void)arg;
	(void)state;
	cycles_init(&with);
	cycles_init(&without);
	bench_check(wq_add_after(with.q, "far away", 8, WQ_HOUR) == WQ_WAITING,
	            "cycle_waiting: the key does not wait");
	for (size_t i = 0; i < n; i++) {
		clock[i] = bench_slice(&bench_clock);
		empty[i] = bench_slice(&without.work);
		waiting[i] = bench_slice(&with.work);
	}
	bench_check(wq_cancel(with.q, "far away", 8) == WQ_STATE_WAITING,
	            "cycle_waiting: the key is gone");
	bench_queue_free(with.q, 0);
	bench_queue_free(without.q, 0);
	samples[0].value = bench_low(waiting, n);
	samples[0].limit = bench_low(empty, n) + 1.2 * bench_low(clock, n);
	free(waiting);
	free(empty);
	free(clock);
}

/* ---- late ------------------------------------------------------------------ */

enum { LATE_BLOCK = 100, LATE_BLOCKS = 100, LATE_BLOCKS_QUICK = 2 };

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
			    late_queue(state, bench_key(pool, bench_sizes.keys + at % CYCLE_KEYS),
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

/* ---- the heap and the delay queue ------------------------------------------ */

struct heap {
	wq_heap *h;
	uint64_t random;
	struct bench_work work;
};

/* The first is taken out and comes back at a later place: the heap stays as large as it is. */
static void heap_slice(void *state, size_t n)
{
	struct heap *h = state;
	int64_t priority;
	void *value;
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		bad |= wq_heap_pop(h->h, &priority, &value);
		priority += (int64_t)(draw(&h->random) % WQ_MINUTE);
		bad |= wq_heap_add(h->h, priority, value, NULL);
	}
	bench_check(!bad, "heap: a call failed");
}

static void *heap_setup(const void *arg)
{
	struct heap *h = bench_alloc(1, sizeof *h);
	int bad = 0;

	(void)arg;
	*h = (struct heap){.random = 88172645463325252u, .work = {heap_slice, h, 2000}};
	bench_check(wq_heap_new(&h->h, NULL) == WQ_OK, "no heap");
	for (size_t i = 0; i < bench_sizes.keys; i++)
		bad |= wq_heap_add(h->h, (int64_t)(draw(&h->random) % WQ_MINUTE), h, NULL);
	bench_check(!bad, "heap: a call failed");
	return h;
}

static void heap_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct heap *h = state;

	(void)arg;
	bench_in_turn(&h->work, &bench_random_access, &samples[0]);
}

static void heap_teardown(void *state)
{
	struct heap *h = state;

	bench_check(wq_heap_free(h->h) == (int64_t)bench_sizes.keys, "the heap has lost something");
	free(h);
}

/* All values are due: what is left is the way from one thread to another. */
static void *offer_all(void *arg)
{
	int bad = 0;

	for (size_t i = 0; i < bench_sizes.short_keys; i++)
		bad |= wq_delayqueue_offer(arg, arg, 1);
	bench_check(!bad, "delayqueue: an offer failed");
	return NULL;
}

static void delayqueue_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.short_keys;
	wq_delayqueue *dq;
	uint64_t thread;
	void *value;
	int bad = 0;

	(void)arg;
	(void)state;
	bench_check(wq_delayqueue_new(&dq, NULL) == WQ_OK, "no delay queue");

	int64_t start = bench_now();

	bench_thread(&thread, offer_all, dq);
	for (size_t i = 0; i < n; i++)
		bad |= wq_delayqueue_take(dq, &value);
	samples[0].value = (double)(bench_now() - start) / (double)n;
	samples[0].limit = bench_alone(&bench_mutex);
	bench_join(thread);
	bench_check(!bad && wq_delayqueue_free(dq) == 0, "delayqueue: a call failed");
}

/* ---- cost against size ------------------------------------------------------ */

enum { BATCH_MAX = 2000, LEAST = 1000 };

struct crowd {
	wq *q;
	size_t n, batch;
	size_t next; /* the next to be moved */
	uint64_t random;
	char keys[BATCH_MAX][KEY_STRIDE];
	int64_t spans[BATCH_MAX];
};

struct crowds {
	struct crowd small, large;
};

static int64_t far_span(struct crowd *c)
{
	return WQ_HOUR + (int64_t)(draw(&c->random) % (uint64_t)(59 * WQ_SECOND));
}

static void crowd_init(struct crowd *c, size_t n)
{
	char key[KEY_LEN + 1];
	int bad = 0;

	*c = (struct crowd){.q = seeded_queue(NULL, NULL), .n = n, .random = 2463534242u};
	c->batch = n / 2 < BATCH_MAX ? n / 2 : BATCH_MAX;
	for (size_t i = 0; i < n; i++) {
		bench_key_format(key, i);
		bad |= wq_add_after(c->q, key, KEY_LEN, far_span(c)) != WQ_WAITING;
	}
	bench_check(!bad, "crowd: a key does not wait");
}

/*
 * Takes some keys back, from all over the crowd, and adds them again; the
 * crowd stays as large as it is. The stride has no divisor in common with n,
 * a power of ten (or half of one).
 */
static void crowd_slice(struct crowd *c, double *add_ns, double *cancel_ns)
{
	int64_t start;
	int bad = 0;

	for (size_t i = 0; i < c->batch; i++) {
		bench_key_format(c->keys[i], c->next);
		c->spans[i] = far_span(c);
		c->next = (c->next + 618033) % c->n;
	}
	start = bench_now();
	for (size_t i = 0; i < c->batch; i++)
		bad |= wq_cancel(c->q, c->keys[i], KEY_LEN) != WQ_STATE_WAITING;
	*cancel_ns = (double)(bench_now() - start) / (double)c->batch;
	start = bench_now();
	for (size_t i = 0; i < c->batch; i++)
		bad |= wq_add_after(c->q, c->keys[i], KEY_LEN, c->spans[i]) != WQ_WAITING;
	*add_ns = (double)(bench_now() - start) / (double)c->batch;
	bench_check(!bad, "crowd: a call failed");
}

static void *crowds_setup(const void *arg)
{
	size_t n = *(const size_t *)arg;
	struct crowds *c = bench_alloc(1, sizeof *c);

	crowd_init(&c->small, LEAST);
	crowd_init(&c->large, bench_sizes.quick && n > (size_t)10 * LEAST ? (size_t)10 * LEAST : n);
	return c;
}

static void crowds_run(const void *arg, void *state, struct bench_sample *samples)
{
	enum { ADD_SMALL, CANCEL_SMALL, ADD, TAKE_BACK, MISS, SERIES };
	struct crowds *c = state;
	size_t n = bench_sizes.slices;
	double *took = bench_alloc(SERIES * n, sizeof *took);

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		took[MISS * n + i] = bench_slice(&bench_random_access);
		/* The last time counts: random access has left cold caches. */
		for (int warm = 0; warm < 8; warm++)
			crowd_slice(&c->small, &took[ADD_SMALL * n + i],
			            &took[CANCEL_SMALL * n + i]);
		for (int warm = 0; warm < 2; warm++)
			crowd_slice(&c->large, &took[ADD * n + i], &took[TAKE_BACK * n + i]);
	}

	double miss = bench_low(took + MISS * n, n);

	samples[0].value = bench_low(took + ADD * n, n);
	samples[0].limit = bench_low(took + ADD_SMALL * n, n) + miss;
	samples[1].value = bench_low(took + TAKE_BACK * n, n);
	samples[1].limit = bench_low(took + CANCEL_SMALL * n, n) + miss;
	free(took);
}

static void crowds_teardown(void *state)
{
	struct crowds *c = state;

	bench_check(wq_free(c->small.q) >= 0 && wq_free(c->large.q) >= 0, "crowd: busy");
	free(c);
}

/* ---- the rows -------------------------------------------------------------- */

static const struct late late_plain = {0}, late_others = {.others = true};
static const struct late late_exact = {.exact = true};
static const struct late late_both = {.others = true, .exact = true};

static const size_t crowd_1k = 1000, crowd_10k = 10000, crowd_100k = 100000, crowd_1m = 1000000,
		    crowd_10m = 10000000;

#define LATE(suffix_, arg_)                                                                        \
	{                                                                                          \
		.rows = {{"late" suffix_ "_p50", "ns", BAR_TIMES, 1.1, "timed_futex_p50"},         \
		         {"late" suffix_ "_p99", "ns", BAR_TIMES, 1.1, "timed_futex_p99"}},        \
		.nrows = 2, .reps = 5, .paired = true, .arg = arg_, .setup = late_setup,           \
		.run = late_run, .teardown = late_teardown,                                        \
	}

#define CROWD(size_)                                                                               \
	{                                                                                          \
		.rows = {{"add_after_" #size_, "ns", BAR_TIMES, 1, "among_1k + random_access"},    \
		         {"cancel_" #size_, "ns", BAR_TIMES, 1, "among_1k + random_access"}},      \
		.nrows = 2, .reps = 5, .arg = &crowd_##size_, .setup = crowds_setup,               \
		.run = crowds_run, .teardown = crowds_teardown,                                    \
	}

#define PEER(name_)                                                                                \
	{name_ "_insert", "ns", BAR_NONE, 0, "wheel_insert"},                                      \
	    {name_ "_cancel", "ns", BAR_NONE, 0, "wheel_cancel"},                                  \
	{                                                                                          \
		name_ "_expire", "ns", BAR_NONE, 0, "wheel_expire"                                 \
	}

static const struct bench_group groups[] = {
    {
	.rows =
	    {
		{"wheel_insert", "ns", BAR_FIXED, 8, "ns"},
		{"wheel_cancel", "ns", BAR_FIXED, 15, "ns"},
		{"wheel_expire", "ns", BAR_FIXED, 25, "ns"},
#ifdef WQ_BENCH_LIBEV
		PEER("libev"),
#endif
#ifdef WQ_BENCH_LIBUV
		PEER("libuv"),
#endif
	    },
	.nrows = (size_t)KINDS * WAYS,
	.reps = 9,
	.setup = timers_setup,
	.run = timers_run,
	.combine = timers_combine,
	.teardown = timers_teardown,
    },
    {
	.rows = {{"wheel_bytes", "bytes", BAR_FIXED, 32, "bytes"}},
	.nrows = 1,
	.reps = 1,
	.run = wheel_bytes_run,
    },
    {
	.rows = {{"add_after", "ns", BAR_TIMES, 2, "bulk_add"}},
	.nrows = 1,
	.reps = 9,
	.setup = after_setup,
	.run = after_run,
	.combine = after_combine,
	.teardown = after_teardown,
    },
    {
	.rows = {{"bytes_waiting", "bytes", BAR_FIXED, 120, "bytes"}},
	.nrows = 1,
	.reps = 3,
	.run = waiting_run,
    },
    {
	.rows = {{"fire_burst", "ms", BAR_FIXED, 120, "ms"}},
	.nrows = 1,
	.reps = 9,
	.setup = burst_setup,
	.run = burst_run,
	.combine = burst_combine,
	.teardown = free,
    },
    {
	.rows = {{"hold_max", "keys", BAR_FIXED, 1024, "keys"},
                 {"hold_p999", "ns", BAR_NONE, 0, "hold_p50"},
                 {"get_longest", "ns", BAR_NONE, 0, "hold_p999"}},
	.nrows = 3,
	.reps = 5,
	.run = hold_run,
    },
    {
	.rows = {{"cycle_waiting", "ns", BAR_TIMES, 1, "cycle_empty + 1.2 x clock"}},
	.nrows = 1,
	.reps = 9,
	.run = cycle_waiting_run,
    },
    LATE("", &late_plain),
    LATE("_1m", &late_others),
    LATE("_1ns", &late_exact),
    LATE("_1m_1ns", &late_both),
    {
	.rows = {{"heap_add_pop", "ns", BAR_NONE, 0, "random_access"}},
	.nrows = 1,
	.reps = 5,
	.setup = heap_setup,
	.run = heap_run,
	.teardown = heap_teardown,
    },
    {
	.rows = {{"delayqueue_1_1", "ns", BAR_NONE, 0, "mutex"}},
	.nrows = 1,
	.reps = 5,
	.threads = true,
	.run = delayqueue_run,
    },
    CROWD(1k),
    CROWD(10k),
    CROWD(100k),
    CROWD(1m),
    CROWD(10m),
};

const struct bench_groups bench_time = {groups, sizeof groups / sizeof groups[0]};
