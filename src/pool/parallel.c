/*
 * Pieces are numbered in chunks. Each thread has a lane, a range of chunks, of
 * which it takes the first; one that has none left takes the upper half of the
 * lane that has most. A lane is one word, changed by compare-and-swap, so
 * threads meet only when they steal: with one shared counter they would at
 * every chunk. No chunk is ever in two lanes, so no range comes back and a
 * word that has not changed is the same range.
 */
#include <wq/parallel.h>

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/sync.h"

enum { WORKERS_MAX = 4096, LINE = 64 };

/* So many chunks at most; there are more pieces in each if need be. */
static const uint64_t chunks_max = UINT64_C(1) << 31;

struct loop;

struct lane {
	_Alignas(LINE) _Atomic uint64_t range; /* A: first chunk, and from bit 32 on the end */
	struct loop *loop;                     /* I */
	int64_t worked;                        /* its thread's own until that is joined */
	wq__thread thread;                     /* I */
};

struct loop {
	size_t pieces, chunk; /* I */
	wq_piece_fn fn;       /* I */
	void *ctx;            /* I */
	const int *stop;      /* I */
	_Atomic int stopped;  /* A, relaxed: it only has to be seen soon */
	/* A: thefts begun and ended. Between them chunks are in no lane. */
	_Atomic uint64_t begun, ended;
	uint32_t nlanes;           /* I */
	struct lane *lane;         /* I */
	struct wq__fork_link fork; /* the process's */
	bool forked;               /* I: this is a child, in the midst of its parent's loop */
};

static void forked(struct wq__fork_link *link)
{
	struct loop *p = wq__container_of(link, struct loop, fork);

	p->forked = true;
	atomic_store_explicit(&p->stopped, 1, memory_order_relaxed);
}

static uint64_t range_of(uint64_t first, uint64_t end)
{
	return end << 32 | first;
}

static uint64_t first_of(uint64_t range)
{
	return range & UINT32_MAX;
}

static uint64_t count_of(uint64_t range)
{
	return (range >> 32) - first_of(range);
}

/*
 * All relaxed: the ranges say who works on what, and carry nothing else. What
 * the pieces wrote is seen by the caller because it joins the threads.
 */
static bool replace(struct lane *l, uint64_t *seen, uint64_t with)
{
	return atomic_compare_exchange_weak_explicit(&l->range, seen, with, memory_order_relaxed,
	                                             memory_order_relaxed);
}

/* The first chunk of one's own lane; false: it is empty. */
static bool take(struct lane *l, uint64_t *chunk)
{
	uint64_t range = atomic_load_explicit(&l->range, memory_order_relaxed);

	do {
		if (count_of(range) == 0)
			return false;
		*chunk = first_of(range);
	} while (!replace(l, &range, range + 1));
	return true;
}

static struct lane *fullest(struct loop *p, uint64_t *range)
{
	struct lane *lane = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->nlanes; i++) {
		uint64_t r = atomic_load_explicit(&p->lane[i].range, memory_order_relaxed);

		if (count_of(r) > most) {
			most = count_of(r);
			*range = r;
			lane = &p->lane[i];
		}
	}
	return lane;
}

/* The upper half of what another lane has; false: it has changed meanwhile. */
static bool take_half(struct lane *mine, struct lane *from, uint64_t range)
{
	struct loop *p = mine->loop;
	uint64_t end = range >> 32, cut = end - (count_of(range) + 1) / 2;
	bool taken;

	/* seq_cst, here and in steal(): who sees no theft begun sees what the last one stored */
	atomic_fetch_add(&p->begun, 1);
	taken = replace(from, &range, range_of(first_of(range), cut));
	if (taken)
		atomic_store_explicit(&mine->range, range_of(cut, end), memory_order_relaxed);
	atomic_fetch_add(&p->ended, 1);
	return taken;
}

static bool is_stopped(struct loop *p)
{
	return atomic_load_explicit(&p->stopped, memory_order_relaxed) ||
	       (p->stop && __atomic_load_n(p->stop, __ATOMIC_RELAXED));
}

/*
 * From the fullest lane; false: all are empty, and nobody is about to fill one; or the loop is
 * stopped. In the child of a fork who was about to do that is not there, and never will.
 */
static bool steal(struct lane *mine)
{
	struct loop *p = mine->loop;

	while (!is_stopped(p)) {
		uint64_t range, ended = atomic_load(&p->ended), begun = atomic_load(&p->begun);
		struct lane *from = fullest(p, &range);

		if (from && take_half(mine, from, range))
			return true;
		if (!from && ended == begun && begun == atomic_load(&p->begun))
			return false;
		WQ__PAUSE();
	}
	return false;
}

/* False: the loop is stopped. */
static bool work_on(struct loop *p, uint64_t chunk, int64_t *worked)
{
	size_t from = (size_t)chunk * p->chunk;
	size_t to = p->pieces - from < p->chunk ? p->pieces : from + p->chunk;

	for (size_t i = from; i < to; i++) {
		if (is_stopped(p))
			return false;
		++*worked;
		if (p->fn(p->ctx, i) != 0)
			atomic_store_explicit(&p->stopped, 1, memory_order_relaxed);
	}
	return true;
}

static void run(void *arg)
{
	struct lane *l = arg;
	int64_t worked =
	    0; /* not in the lane: a store beside the locked word would slow that down */
	uint64_t chunk;
	bool go_on = true;

	do {
		while (go_on && take(l, &chunk))
			go_on = work_on(l->loop, chunk, &worked);
	} while (go_on && steal(l));
	l->worked = worked;
}

static int check(size_t pieces, wq_piece_fn fn, const wq_parallel_options *o)
{
	uint64_t reserved;

	if (!fn)
		return wq__fail(WQ_EINVAL, "fn is NULL");
	if (!o)
		return wq__fail(WQ_EINVAL, "the options are NULL");
	reserved = o->reserved0;
	for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
		reserved |= o->reserved[i];
	if (reserved != 0)
		return wq__fail(WQ_EINVAL, "a reserved word of wq_parallel_options is not zero");
	if (o->workers == 0 || o->workers > WORKERS_MAX)
		return wq__fail(WQ_EINVAL, "workers is %u, not from 1 to %d", o->workers,
		                WORKERS_MAX);
	if (pieces > INT64_MAX)
		return wq__fail(WQ_EINVAL, "there are more pieces than INT64_MAX");
	return WQ_OK;
}

static void run_thread(void *arg)
{
	struct lane *l = arg;

	run(l);
	if (l->loop->forked)
		wq__fork_came_back();
}

/* The caller works on lane 0; lanes without a thread are emptied by the others. */
static int64_t run_all(struct loop *p, size_t stack_size)
{
	uint32_t started = 1;
	int64_t worked = 0;

	wq__fork_join(&p->fork, forked);

	while (started < p->nlanes &&
	       wq__thread_start(&p->lane[started].thread, run_thread, &p->lane[started],
	                        "wq-parallel", stack_size))
		started++;
	run(&p->lane[0]);
	/* A piece has returned in the child of a fork: the other threads are not here. */
	if (p->forked)
		return WQ_EFORKED;
	for (uint32_t i = 1; i < started; i++)
		wq__thread_join(&p->lane[i].thread);
	wq__fork_leave(&p->fork);
	for (uint32_t i = 0; i < started; i++)
		worked += p->lane[i].worked;
	return worked;
}

int64_t wq_parallel(size_t pieces, wq_piece_fn fn, void *ctx, const wq_parallel_options *o)
{
	const wq_allocator *a = &wq__default_allocator;
	struct loop p = {.pieces = pieces, .fn = fn, .ctx = ctx};
	size_t nchunks;
	int64_t worked;

	if (check(pieces, fn, o) < 0)
		return WQ_EINVAL;
	if (pieces == 0)
		return 0;
	p.stop = o->stop;
	p.chunk = o->chunk > 0 ? o->chunk : 1;
	if ((pieces - 1) / p.chunk >= chunks_max)
		p.chunk = (pieces - 1) / chunks_max + 1;
	nchunks = (pieces - 1) / p.chunk + 1;
	p.nlanes = nchunks < o->workers ? (uint32_t)nchunks : o->workers;
	p.lane = wq__alloc(a, p.nlanes * sizeof *p.lane, LINE);
	if (!p.lane)
		return wq__fail_memory();
	for (uint64_t i = 0; i < p.nlanes; i++) {
		struct lane *l = &p.lane[i];

		atomic_init(&l->range,
		            range_of(nchunks * i / p.nlanes, nchunks * (i + 1) / p.nlanes));
		l->loop = &p;
		l->worked = 0;
	}
	worked = run_all(&p, o->stack_size);
	wq__free(a, p.lane, p.nlanes * sizeof *p.lane);
	return worked;
}
