/*
 * Threads that add, move and cancel timers beside the thread that fires them,
 * on the real clock; callbacks add more. Each timer fires exactly once and never
 * early, or was cancelled in time and does not fire. Then several threads stop
 * it at once, and after that nothing is called.
 *
 *     test_stress_timer [--one-cpu] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ROUNDS = 30,
	USERS = 4,
	TIMERS = 1500, /* of each user in a round */
	SPAN_NS = 200000,
	FAR_NS = 1000000000, /* not before the round is over */
};

enum fate { WAITS, FIRED, CANCELLED };

struct timer {
	_Atomic int64_t due_ns; /* the earliest that it was ever given */
	atomic_int fate;
	atomic_bool child; /* the callback adds it again, once */
	wq_timer_id id;
};

static struct stress st;
static wq_timer *t;
static struct timer *timers;
static atomic_long waiting, fired, cancelled, beats, late_cancels;
static atomic_bool stopped;
static atomic_int calling;
static bool wait_for_all;
static pthread_barrier_t end; /* of a round */

static void settle(struct timer *x, enum fate fate)
{
	CHECK_EQ(atomic_exchange(&x->fate, fate), WAITS);
	atomic_fetch_sub(&waiting, 1);
}

static void fire(void *ctx, const wq_timer_event *event)
{
	struct timer *x = ctx;

	CHECK_EQ(atomic_fetch_add(&calling, 1), 0);
	CHECK(!atomic_load(&stopped));
	CHECK(event->now_ns >= event->due_ns);
	CHECK(wq_clock_monotonic() >= event->now_ns);
	CHECK(event->due_ns >= atomic_load(&x->due_ns));
	if (atomic_exchange(&x->child, false)) {
		int rc = wq_timer_after(t, SPAN_NS / 8, fire, x, NULL);

		CHECK(rc == WQ_OK || rc == WQ_ESHUTDOWN);
		if (rc == WQ_ESHUTDOWN)
			settle(x, FIRED);
	} else {
		settle(x, FIRED);
		atomic_fetch_add(&fired, 1);
	}
	CHECK_EQ(atomic_fetch_sub(&calling, 1), 1);
}

static void beat(void *ctx, const wq_timer_event *event)
{
	(void)ctx;
	CHECK(event->now_ns >= event->due_ns);
	CHECK(!atomic_load(&stopped));
	atomic_fetch_add(&beats, 1);
}

static void use(void *ctx)
{
	uintptr_t number = (uintptr_t)ctx;
	uint64_t random = st.seed + number;
	struct timer *mine = timers + number * TIMERS;
	wq_timer_id every = 0;

	for (int i = 0; i < TIMERS; i++) {
		struct timer *x = &mine[i];
		/* Those that are cancelled for certain lie far away. */
		bool far = stress_random(&random) % 4 == 0;
		int64_t due =
		    wq_timer_now(t) + (far ? FAR_NS : (int64_t)(stress_random(&random) % SPAN_NS));

		atomic_store(&x->due_ns, due);
		atomic_store(&x->child, !far && stress_random(&random) % 8 == 0);
		atomic_fetch_add(&waiting, 1);

		int rc = wq_timer_add(t, due, fire, x, &x->id);

		CHECK_EQ(rc, WQ_OK);
		if (i % 512 == 0) {
			if (every)
				CHECK_EQ(wq_timer_cancel(t, every), WQ_OK);
			CHECK_EQ(wq_timer_every(t, SPAN_NS / 4, beat, NULL, &every), WQ_OK);
		}

		struct timer *other = &mine[stress_random(&random) % (uint32_t)(i + 1)];

		switch (stress_random(&random) % 4) {
		case 0:
			rc = wq_timer_cancel(t, other->id);
			CHECK(rc == WQ_OK || rc == WQ_ESTALE);
			if (rc == WQ_OK) {
				settle(other, CANCELLED);
				atomic_fetch_add(&cancelled, 1);
			} else {
				atomic_fetch_add(&late_cancels, 1);
			}
			break;
		case 1:
			due = wq_timer_now(t) + SPAN_NS + stress_random(&random) % SPAN_NS;
			if (due < atomic_load(&other->due_ns))
				atomic_store(&other->due_ns, due);
			rc = wq_timer_reschedule(t, other->id, due);
			CHECK(rc == WQ_OK || rc == WQ_ESTALE);
			break;
		default:
			break;
		}
		if (far && stress_random(&random) % 2)
			sched_yield();
	}
	CHECK_EQ(wq_timer_cancel(t, every), WQ_OK);
	/* What is far away and still waits is fetched, or cancelled. */
	for (int i = 0; i < TIMERS; i++) {
		struct timer *x = &mine[i];

		if (atomic_load(&x->fate) != WAITS)
			continue;
		if (i % 2) {
			atomic_store(&x->due_ns, 0);

			int rc = wq_timer_reschedule(t, x->id, 0);

			CHECK(rc == WQ_OK || rc == WQ_ESTALE);
		} else if (wq_timer_cancel(t, x->id) == WQ_OK) {
			settle(x, CANCELLED);
			atomic_fetch_add(&cancelled, 1);
		}
	}
	while (wait_for_all && atomic_load(&waiting) > 0)
		sched_yield();
	pthread_barrier_wait(&end);
	CHECK_EQ(wq_timer_stop(t), WQ_OK);
	CHECK_EQ(atomic_load(&calling), 0);
	atomic_store(&stopped, true);
	CHECK_EQ(wq_timer_after(t, 0, fire, mine, NULL), WQ_ESHUTDOWN);
}

int main(int argc, char **argv)
{
	static struct crew crew;
	long rounds;

	stress_init(&st, argc, argv, NULL);
	rounds = stress_ops(&st, ROUNDS);
	timers = malloc(USERS * TIMERS * sizeof *timers);
	CHECK(timers != NULL);
	CHECK(pthread_barrier_init(&end, NULL, USERS) == 0);
	for (long r = 0; r < rounds; r++, st.seed++) {
		for (int i = 0; i < USERS * TIMERS; i++)
			timers[i] = (struct timer){0};
		/* In every other round it is stopped, and then freed, with timers that wait. */
		wait_for_all = r % 2 == 0;
		atomic_store(&waiting, 0);
		atomic_store(&stopped, false);
		CHECK_EQ(wq_timer_new(&t, NULL), WQ_OK);
		for (int i = 0; i < USERS; i++)
			crew_add(&crew, use, (void *)(uintptr_t)i);
		crew_start(&crew);
		crew_join(&crew);
		CHECK_EQ(wq_timer_size(t), atomic_load(&waiting));
		CHECK_EQ(wq_timer_free(t), atomic_load(&waiting));
		if (wait_for_all)
			CHECK_EQ(atomic_load(&waiting), 0);
	}
	printf("%ld rounds: %ld fired, %ld cancelled, %ld cancels too late, %ld beats\n", rounds,
	       atomic_load(&fired), atomic_load(&cancelled), atomic_load(&late_cancels),
	       atomic_load(&beats));
	pthread_barrier_destroy(&end);
	free(timers);
	return 0;
}
