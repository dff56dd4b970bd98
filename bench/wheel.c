/*
 * Rows of timers.
 *
 *   wheel_insert   1M timers, 1 to 60 s away, into a fresh wheel, its memory included
 *   wheel_cancel   then all of them back, in random order
 *   wheel_expire   1M timers within 10 ms, by one advance
 *   libev_.., libuv_..  the same three for the loops of others, if the build has found
 *                  them; their timers are initialised beforehand and only started here
 *   wheel_insert@N, libev_.., libuv_..   wheel_insert with N timers, as a whole
 *   wheel_bytes    what the wheel asks of its allocator for a timer, fn and ctx taken off
 *
 * All but the last two are timed as courses (see slices.c).
 */
#define _GNU_SOURCE /* posix_memalign; what uv.h needs */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WQ_BENCH_LIBEV
#include <ev.h>
#endif
#ifdef WQ_BENCH_LIBUV
#include <uv.h>
#endif

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
	struct bench_course courses[KINDS][WAYS];
	struct bench_course *firing;
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
	void (*end)(struct timers *t, size_t left); /* left: timers that have not fired */
};

static void fired(struct timers *t)
{
	if (++t->fired == t->next_lap) {
		bench_course_lap(t->firing);
		t->next_lap = bench_course_at(t->n, t->firing->slice + 1);
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
	bench_course_begin(t->firing);
	wq_wheel_advance(t->wheel, WQ_SECOND + soon_ns);
}

static void wheel_end(struct timers *t, size_t left)
{
	bench_check(wq_wheel_free(t->wheel) == (int64_t)left, "timers are gone, or left");
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
	bench_course_begin(t->firing);
	ev_run(t->ev, EVRUN_NOWAIT);
}

static void libev_end(struct timers *t, size_t left)
{
	(void)left;
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
	bench_course_begin(t->firing);
	uv_run(&t->uv, UV_RUN_NOWAIT);
}

static void libuv_end(struct timers *t, size_t left)
{
	(void)left;
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

static struct timers *timers_new(size_t n)
{
	struct timers *t = bench_alloc(1, sizeof *t);

	t->n = n;
	t->far = bench_spans(n, WQ_SECOND, WQ_MINUTE);
	t->ids = bench_alloc(n, sizeof *t->ids);
	memset(t->ids, 1, n * sizeof *t->ids); /* its pages are there from now on */
#ifdef WQ_BENCH_LIBEV
	t->evs = bench_alloc(n, sizeof *t->evs);
#endif
#ifdef WQ_BENCH_LIBUV
	t->uvs = bench_alloc(n, sizeof *t->uvs);
#endif
	return t;
}

static void *timers_setup(const void *arg)
{
	struct timers *t = timers_new(bench_sizes.keys);

	(void)arg;
#ifndef WQ_BENCH_LIBEV
	printf("libev (libev-dev) was not there when this was built: its rows are left out\n");
#endif
#ifndef WQ_BENCH_LIBUV
	printf("libuv (libuv1-dev) was not there when this was built: its rows are left out\n");
#endif
	t->soon = bench_spans(t->n, 1, soon_ns);
	t->order = bench_order(t->n);
	t->shuffled = bench_alloc(t->n, sizeof *t->shuffled);
	return t;
}

static void timers_course(struct timers *t, struct bench_course *c,
                          void (*move)(struct timers *t, size_t from, size_t to))
{
	bench_course_begin(c);
	for (size_t s = 0; s < BENCH_SLICES; s++) {
		move(t, bench_course_at(t->n, s), bench_course_at(t->n, s + 1));
		bench_course_lap(c);
	}
}

static void timers_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct timers *t = state;

	(void)arg;
	for (size_t k = 0; k < KINDS; k++) {
		const struct kind *kind = &kinds[k];
		struct bench_course *c = t->courses[k];

		t->spans = t->far;
		kind->begin(t);
		timers_course(t, &c[INSERT], kind->insert);
		if (kind->before_cancel)
			kind->before_cancel(t);
		timers_course(t, &c[CANCEL], kind->cancel);
		kind->end(t, 0);

		t->spans = t->soon;
		t->firing = &c[EXPIRE];
		t->fired = 0;
		t->next_lap = bench_course_at(t->n, 1);
		kind->begin(t);
		kind->insert(t, 0, t->n);
		kind->expire(t);
		bench_check(t->fired == t->n && !t->bad, "timers: not all fired, or a call failed");
		kind->end(t, 0);
		for (size_t way = 0; way < WAYS; way++) {
			samples[k * WAYS + way].value = c[way].sum / (double)t->n;
			samples[k * WAYS + way].limit =
			    bench_course_best(&t->courses[WHEEL][way]) / (double)t->n;
		}
	}
}

static void timers_combine(const void *state, struct bench_sample *samples)
{
	const struct timers *t = state;

	for (size_t k = 0; k < KINDS; k++)
		for (size_t way = 0; way < WAYS; way++)
			samples[k * WAYS + way].value =
			    bench_course_best(&t->courses[k][way]) / (double)t->n;
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

/* ---- wheel_insert@N ---------------------------------------------------------- */

static void *insert_setup(const void *arg)
{
	struct timers *t = timers_new(bench_point(arg));

	t->spans = t->far;
	return t;
}

static void insert_run(const void *arg, void *state, struct bench_sample *samples)
{
	struct timers *t = state;
	size_t times = bench_again(t->n);
	double took[BENCH_AGAIN_MAX];

	(void)arg;
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < times; i++) {
			kinds[k].begin(t);

			int64_t start = bench_now();

			kinds[k].insert(t, 0, t->n);
			took[i] = (double)(bench_now() - start) / (double)t->n;
			bench_check(!t->bad, "wheel_insert: a call failed");
			kinds[k].end(t, t->n);
		}
		samples[k].value = bench_low(took, times);
		samples[k].limit = samples[WHEEL].value;
	}
}

void bench_wheel_versions(void)
{
#ifdef WQ_BENCH_LIBEV
	printf("libev %d.%d\n", ev_version_major(), ev_version_minor());
#endif
#ifdef WQ_BENCH_LIBUV
	printf("libuv %s\n", uv_version_string());
#endif
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
	wq_allocator allocator = {.alloc = count_alloc, .free = count_free, .ctx = &bytes};
	wq_wheel_options options = {.allocator = &allocator};
	int64_t *spans = bench_spans(n, WQ_SECOND, WQ_MINUTE);
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

/* ---- the rows -------------------------------------------------------------- */

#define PEER(name_)                                                                                \
	{name_ "_insert", "ns", BAR_NONE, 0, "wheel_insert"},                                      \
	    {name_ "_cancel", "ns", BAR_NONE, 0, "wheel_cancel"},                                  \
	{                                                                                          \
		name_ "_expire", "ns", BAR_NONE, 0, "wheel_expire"                                 \
	}

#ifdef WQ_BENCH_LIBEV
#define LIBEV_AT(n_) {"libev_insert@" #n_, "ns", BAR_NONE, 0, "wheel_insert"},
#else
#define LIBEV_AT(n_)
#endif
#ifdef WQ_BENCH_LIBUV
#define LIBUV_AT(n_) {"libuv_insert@" #n_, "ns", BAR_NONE, 0, "wheel_insert"},
#else
#define LIBUV_AT(n_)
#endif

#define INSERT_AT(n_)                                                                              \
	{                                                                                          \
		.rows = {{"wheel_insert@" #n_, "ns", BAR_NONE, 0, NULL},                           \
		         LIBEV_AT(n_) LIBUV_AT(n_)},                                               \
		.nrows = KINDS, .reps = 3, .arg = &(const size_t){n_}, .setup = insert_setup,      \
		.run = insert_run, .teardown = timers_teardown,                                    \
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
    INSERT_AT(1000),
    INSERT_AT(10000),
    INSERT_AT(100000),
    INSERT_AT(1000000),
    INSERT_AT(10000000),
};

const struct bench_groups bench_wheel = {groups, sizeof groups / sizeof groups[0]};
