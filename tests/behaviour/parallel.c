/*
 * wq_parallel(): client-go's ParallelizeUntil, and what was promised beyond it:
 * unequal pieces are shared, and a loop can be stopped.
 */
#include "../support/support.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>

/* ---- threads that there are not ------------------------------------------------ */

/* The linker sends the library's calls here (see CMakeLists.txt). */
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);

static _Atomic int threads_left = INT_MAX;
static bool no_memory;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (atomic_load(&threads_left) == 0)
		return EAGAIN;
	atomic_fetch_sub(&threads_left, 1);
	return __real_pthread_create(id, attr, fn, arg);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	return no_memory ? ENOMEM : __real_posix_memalign(p, align, size);
}

/* ---- pieces ---------------------------------------------------------------------- */

enum { MOST = 5000 };

static struct {
	size_t pieces;
	_Atomic int times[MOST]; /* each was worked on */
	pthread_t by[MOST];
	_Atomic int64_t worked;
	_Atomic int strange; /* pieces that there are not */
	int stop;            /* the flag */
} loop;

static void reset(size_t pieces)
{
	memset(&loop, 0, sizeof loop);
	loop.pieces = pieces;
}

static int piece(void *ctx, size_t i)
{
	if (ctx != &loop || i >= loop.pieces) {
		atomic_fetch_add(&loop.strange, 1);
		return 1;
	}
	atomic_fetch_add(&loop.times[i], 1);
	loop.by[i] = pthread_self();
	atomic_fetch_add(&loop.worked, 1);
	return 0;
}

static void once_each(void)
{
	IS(loop.strange, 0);
	IS(loop.worked, (int64_t)loop.pieces);
	for (size_t i = 0; i < loop.pieces; i++)
		IS(loop.times[i], 1);
}

static void run(size_t pieces, uint32_t workers, size_t chunk)
{
	reset(pieces);
	IS(wq_parallel(pieces, piece, &loop,
	               &(wq_parallel_options){.workers = workers, .chunk = chunk}),
	   (int64_t)pieces);
	once_each();
}

/* [PIECES] The rows of client-go's own test. */
static void ParallelizeUntil(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		run(1000, 10, 1);
		run(1000, 10, 10);
		run(1000, 10, 100);
		run(999, 10, 13);
	}
}

static void pieces_workers_and_chunks_of_all_sizes(void **state)
{
	static const size_t pieces[] = {0, 1, 2, 3, 7, 64, 1001, MOST};
	static const uint32_t workers[] = {1, 2, 3, 16};
	static const size_t chunks[] = {0, 1, 2, 5, 1000, MOST + 1, SIZE_MAX};

	(void)state;
	for (size_t p = 0; p < LENGTH(pieces); p++)
		for (size_t w = 0; w < LENGTH(workers); w++)
			for (size_t c = 0; c < LENGTH(chunks); c++)
				run(pieces[p], workers[w], chunks[c]);
	run(3, 4096, 1); /* more threads than pieces are not started */
}

static void a_chunk_stays_with_one_thread(void **state)
{
	enum { CHUNK = 13 };

	(void)state;
	run(999, 4, CHUNK);
	for (size_t i = 0; i < 999; i++)
		assert_true(pthread_equal(loop.by[i], loop.by[i - i % CHUNK]));
	/* All in one chunk, or one thread: the caller does it. */
	for (int way = 0; way < 2; way++) {
		run(999, way ? 1 : 8, way ? 1 : 999);
		for (size_t i = 0; i < 999; i++)
			assert_true(pthread_equal(loop.by[i], pthread_self()));
	}
}

/* ---- at once -------------------------------------------------------------------- */

static pthread_barrier_t meeting;

static int meet(void *ctx, size_t i)
{
	pthread_barrier_wait(&meeting);
	return piece(ctx, i);
}

/* As many as there are threads run at once, or they would not meet. */
static void pieces_run_at_once(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 8; n++) {
		reset(3 * n);
		pthread_barrier_init(&meeting, NULL, n);
		IS(wq_parallel(3 * n, meet, &loop, &(wq_parallel_options){.workers = n}), 3 * n);
		once_each();
		pthread_barrier_destroy(&meeting);
	}
}

static size_t slow;

/* The slow piece takes until all the others are done, whoever had them at first. */
static int unequal(void *ctx, size_t i)
{
	if (i == slow)
		while (atomic_load(&loop.worked) < (int64_t)loop.pieces - 1)
			sched_yield();
	return piece(ctx, i);
}

/* [PIECES] Without stealing nobody would ever do the rest of the slow one's lane. */
static void what_a_slow_piece_holds_up_is_stolen(void **state)
{
	static const size_t at[] = {0, 1, 249, 250, 499, 500, 750, 998, 999};

	(void)state;
	for (size_t k = 0; k < LENGTH(at); k++) {
		for (uint32_t workers = 2; workers <= 4; workers++) {
			slow = at[k];
			reset(1000);
			IS(wq_parallel(1000, unequal, &loop,
			               &(wq_parallel_options){.workers = workers}),
			   1000);
			once_each();
		}
	}
}

/* ---- stopping -------------------------------------------------------------------- */

static size_t last;

static int stops(void *ctx, size_t i)
{
	piece(ctx, i);
	return i == last ? -1 : 0;
}

static void a_piece_stops_the_loop(void **state)
{
	(void)state;
	for (last = 0; last < 1000; last += 111) {
		reset(1000);
		/* alone: in order, and the one that stopped it is the last */
		IS(wq_parallel(1000, stops, &loop, &(wq_parallel_options){.workers = 1}),
		   (int64_t)last + 1);
		IS(loop.worked, (int64_t)last + 1);
		IS(loop.times[last], 1);
		/* together: what was worked on is what it says, none twice */
		reset(1000);

		int64_t n = wq_parallel(1000, stops, &loop,
		                        &(wq_parallel_options){.workers = 4, .chunk = 7});

		IS(loop.worked, n);
		IS(loop.times[last], 1);
		for (size_t i = 0; i < 1000; i++)
			assert_true(loop.times[i] <= 1);
	}
}

static int flags(void *ctx, size_t i)
{
	piece(ctx, i);
	if (i == last)
		__atomic_store_n(&loop.stop, 1, __ATOMIC_RELAXED);
	return 0;
}

static void a_flag_stops_the_loop(void **state)
{
	wq_parallel_options o = {.workers = 1, .stop = &loop.stop};

	(void)state;
	for (last = 0; last < 1000; last += 333) {
		for (o.chunk = 1; o.chunk < 1000; o.chunk *= 10) { /* amid a chunk, too */
			reset(1000);
			IS(wq_parallel(1000, flags, &loop, &o), (int64_t)last + 1);
			IS(loop.worked, (int64_t)last + 1);
		}
	}
	for (o.workers = 1; o.workers <= 4; o.workers++) { /* before it begins */
		reset(1000);
		loop.stop = 1;
		IS(wq_parallel(1000, flags, &loop, &o), 0);
		IS(loop.worked, 0);
	}
}

static int meets_and_flags(void *ctx, size_t i)
{
	piece(ctx, i);
	pthread_barrier_wait(&meeting);
	__atomic_store_n(&loop.stop, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&meeting);
	return 0;
}

/* [PIECES] Each of four threads is in a piece when it is stopped, and none begins another. */
static void pieces_that_run_are_finished(void **state)
{
	enum { WORKERS = 4 };

	(void)state;
	for (int i = 0; i < 50; i++) {
		reset(1000);
		pthread_barrier_init(&meeting, NULL, WORKERS);
		IS(wq_parallel(1000, meets_and_flags, &loop,
		               &(wq_parallel_options){.workers = WORKERS, .stop = &loop.stop}),
		   WORKERS);
		pthread_barrier_destroy(&meeting);
		IS(loop.worked, WORKERS);
	}
}

static _Atomic int64_t most;

static int only_some(void *ctx, size_t i)
{
	(void)ctx;
	if (i >= (size_t)INT64_MAX)
		atomic_fetch_add(&loop.strange, 1);
	return atomic_fetch_add(&loop.worked, 1) + 1 >= atomic_load(&most);
}

/* More than could ever be worked on; it is stopped after some. */
static void as_many_pieces_as_there_can_be(void **state)
{
	static const size_t chunks[] = {0, 1, 1 << 20, SIZE_MAX};

	(void)state;
	for (uint32_t workers = 1; workers <= 4; workers++) {
		for (size_t c = 0; c < LENGTH(chunks); c++) {
			reset(0);
			atomic_store(&most, 10000);

			int64_t n = wq_parallel(INT64_MAX, only_some, NULL,
			                        &(wq_parallel_options){.workers = workers,
			                                               .chunk = chunks[c]});

			IS(n, loop.worked);
			assert_true(n >= 10000);
			if (workers == 1)
				IS(n, 10000);
			IS(loop.strange, 0);
		}
	}
}

/* ---- inside each other -------------------------------------------------------------- */

static int inner(void *ctx, size_t i)
{
	size_t row = *(const size_t *)ctx;

	atomic_fetch_add(&loop.times[row * 20 + i], 1);
	atomic_fetch_add(&loop.worked, 1);
	return 0;
}

static int outer(void *ctx, size_t row)
{
	(void)ctx;
	return wq_parallel(20, inner, &row, &(wq_parallel_options){.workers = 3}) != 20;
}

static void loops_nest(void **state)
{
	(void)state;
	reset(50 * 20);
	IS(wq_parallel(50, outer, NULL, &(wq_parallel_options){.workers = 3}), 50);
	once_each();
}

/* ---- the threads --------------------------------------------------------------------- */

static sigset_t masks[4];

static int look(void *ctx, size_t i)
{
	pthread_barrier_wait(&meeting); /* each thread has one piece */
	pthread_sigmask(SIG_BLOCK, NULL, &masks[i]);
	return piece(ctx, i);
}

static void threads_block_what_the_caller_blocks(void **state)
{
	sigset_t mine;

	(void)state;
	reset(LENGTH(masks));
	pthread_barrier_init(&meeting, NULL, LENGTH(masks));
	IS(wq_parallel(LENGTH(masks), look, &loop,
	               &(wq_parallel_options){.workers = LENGTH(masks), .chunk = 1}),
	   LENGTH(masks));
	pthread_barrier_destroy(&meeting);
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	IS(sigismember(&mine, SIGTERM), 0);
	for (size_t i = 0; i < LENGTH(masks); i++)
		masks_are_equal(&masks[i], &mine);
}

/* ---- what goes wrong ------------------------------------------------------------------ */

static void fewer_threads_than_asked_for(void **state)
{
	(void)state;
	for (int left = 0; left < 5; left++) {
		reset(1000);
		threads_left = left;
		int64_t n = wq_parallel(1000, piece, &loop,
		                        &(wq_parallel_options){.workers = 5, .chunk = 3});

		threads_left = INT_MAX;
		IS(n, 1000);
		once_each();
	}
	reset(1000); /* a stack that nobody has: no thread but the caller's */
	IS(wq_parallel(1000, piece, &loop,
	               &(wq_parallel_options){.workers = 4, .stack_size = SIZE_MAX}),
	   1000);
	once_each();
}

static size_t least_stack;

static int look_at_stack(void *ctx, size_t i)
{
	pthread_attr_t attr;
	size_t size = SIZE_MAX;

	(void)ctx;
	(void)i;
	pthread_barrier_wait(&meeting); /* two threads */
	if (!pthread_equal(*(pthread_t *)ctx, pthread_self()) &&
	    pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstacksize(&attr, &size);
		pthread_attr_destroy(&attr);
		least_stack = size;
	}
	return 0;
}

static void threads_have_the_stack_that_was_asked_for(void **state)
{
	enum { SIZE = 64 << 20 }; /* more than the system's default */
	pthread_t me = pthread_self();

	(void)state;
	pthread_barrier_init(&meeting, NULL, 2);
	IS(wq_parallel(2, look_at_stack, &me,
	               &(wq_parallel_options){.workers = 2, .stack_size = SIZE}),
	   2);
	pthread_barrier_destroy(&meeting);
	assert_in_range(least_stack, SIZE, SIZE_MAX);
}

static void without_memory_nothing_is_done(void **state)
{
	int64_t n;

	(void)state;
	reset(10);
	no_memory = true;
	n = wq_parallel(10, piece, &loop, &(wq_parallel_options){.workers = 2});
	no_memory = false;
	IS(n, WQ_ENOMEM);
	IS(loop.worked, 0);
}

static void bad_input(void **state)
{
	wq_parallel_options o = {.workers = 1};

	(void)state;
	reset(10);
	IS(wq_parallel(10, NULL, &loop, &o), WQ_EINVAL);
	IS(wq_parallel(10, piece, &loop, NULL), WQ_EINVAL);
	IS(wq_parallel((size_t)INT64_MAX + 1, piece, &loop, &o), WQ_EINVAL);
	IS(wq_parallel(SIZE_MAX, piece, &loop, &o), WQ_EINVAL);
	IS(wq_parallel(0, NULL, &loop, &o), WQ_EINVAL);
	o.workers = 0;
	IS(wq_parallel(10, piece, &loop, &o), WQ_EINVAL);
	o.workers = 4097;
	IS(wq_parallel(10, piece, &loop, &o), WQ_EINVAL);
	o = (wq_parallel_options){.workers = 1, .reserved0 = 1};
	IS(wq_parallel(10, piece, &loop, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o = (wq_parallel_options){.workers = 1};
		o.reserved[i] = 1;
		IS(wq_parallel(10, piece, &loop, &o), WQ_EINVAL);
	}
	IS(loop.worked, 0);
	IS(wq_parallel(0, piece, &loop, &(wq_parallel_options){.workers = 4}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ParallelizeUntil),
	    cmocka_unit_test(pieces_workers_and_chunks_of_all_sizes),
	    cmocka_unit_test(a_chunk_stays_with_one_thread),
	    cmocka_unit_test(pieces_run_at_once),
	    cmocka_unit_test(what_a_slow_piece_holds_up_is_stolen),
	    cmocka_unit_test(a_piece_stops_the_loop),
	    cmocka_unit_test(a_flag_stops_the_loop),
	    cmocka_unit_test(pieces_that_run_are_finished),
	    cmocka_unit_test(as_many_pieces_as_there_can_be),
	    cmocka_unit_test(loops_nest),
	    cmocka_unit_test(threads_block_what_the_caller_blocks),
	    cmocka_unit_test(fewer_threads_than_asked_for),
	    cmocka_unit_test(threads_have_the_stack_that_was_asked_for),
	    cmocka_unit_test(without_memory_nothing_is_done),
	    cmocka_unit_test(bad_input),
	};

	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
