/*
 * The timing wheel, promise by promise: options, order, after and every,
 * cancel, reschedule, next deadline. SPEC H3 to H5.
 */
#include "wheel_rig.h"

/* ---- options --------------------------------------------------------------------- */

/* Times of every magnitude, each alone and all together. */
static void fires_exactly(int64_t start)
{
	int n = 0;

	for (int bit = 0; bit < 62; bit += 3) {
		int64_t due = wq_time_add(start, (INT64_C(1) << bit) + bit);

		if (due == WQ_NEVER)
			break;
		wq_timer_id id = add(due, ++n);

		IS(wq_wheel_next_deadline(w), due);
		IS(wq_wheel_advance(w, due - 1), 0);
		IS(wq_wheel_size(w), 1);
		FIRES(due, n);
		IS(fired[nfired - 1].event.due_ns, due);
		IS(fired[nfired - 1].event.skipped, 0);
		assert_true(fired[nfired - 1].event.id == id);
		IS(wq_wheel_size(w), 0);
		IS(wq_wheel_next_deadline(w), WQ_NEVER);
		start = due;
	}
}

/* [H3] Every accepted tick and size, at the limits and beside each power of two. */
static void every_accepted_tick_and_size(void **state)
{
	(void)state;
	for (int k = -1; k <= 40; k++)
		for (int64_t off = -1; off <= 1; off++)
			for (size_t s = 0; s < LENGTH(wheel_sizes); s++) {
				int64_t tick = k < 0 ? 0 : (INT64_C(1) << k) + off;

				if (tick > INT64_C(1) << 40)
					continue;
				wheel_open(0, &(wq_wheel_options){.tick_ns = tick,
				                                  .size = wheel_sizes[s]});
				fires_exactly(0);
				wheel_close(0);
				wheel_open(tick * 7 + 3,
				           &(wq_wheel_options){.tick_ns = tick,
				                               .size = wheel_sizes[s]});
				fires_exactly(tick * 7 + 3);
				wheel_close(0);
			}
}

static void refused_options(wq_wheel_options o)
{
	wq_allocator a = memory_allocator(&mem);
	wq_wheel *none = NULL;

	if (!o.allocator)
		o.allocator = &a;
	IS(wq_wheel_new(&none, 0, &o), WQ_EINVAL);
	assert_null(none);
	memory_balanced(&mem);
}

static void every_rejected_tick_and_size(void **state)
{
	static const int64_t ticks[] = {-1, INT64_MIN, (INT64_C(1) << 40) + 1, INT64_C(1) << 41,
	                                INT64_MAX};

	(void)state;
	memory_init(&mem);
	for (size_t i = 0; i < LENGTH(ticks); i++)
		refused_options((wq_wheel_options){.tick_ns = ticks[i]});
	for (size_t size = 1; size < 300; size++)
		if (size < 2 || size > 64 || (size & (size - 1)) != 0)
			refused_options((wq_wheel_options){.size = size});
	refused_options((wq_wheel_options){.size = SIZE_MAX});
	refused_options((wq_wheel_options){.size = SIZE_MAX / 2 + 1});
}

static void other_bad_options(void **state)
{
	wq_allocator no_alloc, no_free;
	wq_wheel *none = NULL;

	(void)state;
	memory_init(&mem);
	no_alloc = no_free = memory_allocator(&mem);
	no_alloc.alloc = NULL;
	no_free.free = NULL;
	refused_options((wq_wheel_options){.allocator = &no_alloc});
	refused_options((wq_wheel_options){.allocator = &no_free});
	for (size_t i = 0; i < 4; i++) {
		wq_wheel_options o = {0};

		o.reserved[i] = 1;
		refused_options(o);
	}
	IS(wq_wheel_new(NULL, 0, NULL), WQ_EINVAL);
	IS(wq_wheel_new(&none, -1, NULL), WQ_EINVAL);
	IS(wq_wheel_new(&none, INT64_MIN, NULL), WQ_EINVAL);
	assert_null(none);
	/* no options, any time */
	IS(wq_wheel_new(&none, WQ_NEVER, NULL), WQ_OK);
	IS(wq_wheel_free(none), 0);
	IS(wq_wheel_new(&none, 0, &(wq_wheel_options){0}), WQ_OK);
	IS(wq_wheel_free(none), 0);
}

static void bad_arguments(void **state)
{
	wq_timer_id id = 7;

	(void)state;
	wheel_open(100, NULL);
	IS(wq_wheel_free(NULL), 0);
	IS(wq_wheel_add(NULL, 1, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_add(w, 1, NULL, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_add(w, -1, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_add(w, INT64_MIN, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_after(NULL, 1, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_after(w, 1, NULL, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_every(NULL, 1, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_every(w, 1, NULL, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_every(w, 0, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_every(w, -1, note, NULL, &id), WQ_EINVAL);
	IS(wq_wheel_every(w, INT64_MIN, note, NULL, &id), WQ_EINVAL);
	assert_true(id == 7); /* written only on success */
	IS(wq_wheel_cancel(NULL, id), WQ_EINVAL);
	IS(wq_wheel_reschedule(NULL, id, 1), WQ_EINVAL);
	IS(wq_wheel_size(NULL), WQ_EINVAL);
	IS(wq_wheel_next_deadline(NULL), WQ_EINVAL);
	IS(wq_wheel_advance(NULL, 1), WQ_EINVAL);
	IS(wq_wheel_advance(w, -1), WQ_EINVAL);
	IS(wq_wheel_stop(NULL), WQ_EINVAL);
	IS(wq_wheel_size(w), 0);

	wq_timer_id good = add(200, 1);

	IS(wq_wheel_reschedule(w, good, -1), WQ_EINVAL);
	IS(wq_wheel_reschedule(w, good, INT64_MIN), WQ_EINVAL);
	IS(wq_wheel_advance(w, -1), WQ_EINVAL);
	IS(wq_wheel_next_deadline(w), 200);
	FIRES(200, 1);
	wheel_close(0);
}

/* ---- order ------------------------------------------------------------------------ */

/* [H4] The tick sizes buckets and rounds nothing. */
static void nanoseconds_within_a_tick_are_in_order(void **state)
{
	(void)state;
	for (int crowd = 3; crowd <= 303; crowd += 100) {
		wheel_open(5, &(wq_wheel_options){.tick_ns = INT64_C(1) << 40});
		for (int i = crowd; i > 0; i--)
			add(1000 + i, i); /* the last first, all in one tick */
		FIRES_NOTHING(1000);
		for (int i = 1; i <= crowd / 3; i++)
			FIRES(1000 + i, i);
		IS(wq_wheel_advance(w, WQ_HOUR), crowd - crowd / 3);
		for (size_t i = 0; i < nfired; i++)
			IS(fired[i].event.due_ns, 1001 + (int64_t)i);
		wheel_close(0);
	}
}

static void equal_times_fire_in_the_order_they_were_added(void **state)
{
	enum { N = 500 };

	(void)state;
	for (int64_t due = 1; due < WQ_NEVER / 1000; due *= 1000) {
		wheel_open(0, NULL);
		for (int i = 1; i <= N; i++) {
			add(due, i);
			/* from nearer and nearer: they enter on different levels */
			FIRES_NOTHING(due - 1 - (due - 1) / (i + 1));
			IS(wq_wheel_next_deadline(w), due);
		}
		IS(wq_wheel_advance(w, due), N);
		for (int i = 0; i < N; i++)
			IS(fired[i].tag, i + 1);
		wheel_close(0);
	}
}

static void what_has_passed_fires_at_the_next_advance(void **state)
{
	(void)state;
	wheel_open(1000, NULL);
	add(999, 1);
	add(0, 2);
	add(1000, 3);
	add(1001, 4);
	IS(wq_wheel_next_deadline(w), 0);
	FIRES(1000, 2, 1, 3); /* still in the order of their times */
	FIRES(1001, 4);
	wheel_close(0);
}

static void never_never_fires_but_can_be_moved(void **state)
{
	(void)state;
	wheel_open(0, NULL);
	wq_timer_id never = add(WQ_NEVER, 1), never2 = add(WQ_NEVER, 2);

	add(WQ_NEVER - 1, 3);
	IS(wq_wheel_size(w), 3);
	IS(wq_wheel_next_deadline(w), WQ_NEVER - 1);
	FIRES_NOTHING(WQ_NEVER - 2);
	FIRES(WQ_NEVER - 1, 3);
	FIRES_NOTHING(WQ_NEVER);
	IS(wq_wheel_next_deadline(w), WQ_NEVER);
	IS(wq_wheel_reschedule(w, never, 77), WQ_OK);
	FIRES(WQ_NEVER, 1);
	IS(wq_wheel_cancel(w, never2), WQ_OK);
	IS(wq_wheel_cancel(w, never2), WQ_ESTALE);
	wheel_close(0);
}

/* ---- after and every ------------------------------------------------------------------ */

static void after_counts_from_the_last_advance(void **state)
{
	(void)state;
	wheel_open(1000, NULL);
	IS(wq_wheel_after(w, 10, note, tag(1), NULL), WQ_OK);
	IS(wq_wheel_next_deadline(w), 1010);
	FIRES_NOTHING(1009);
	IS(wq_wheel_after(w, 10, note, tag(2), NULL), WQ_OK);
	FIRES(1018, 1);
	FIRES(1019, 2);
	IS(wq_wheel_after(w, 0, note, tag(3), NULL), WQ_OK);
	IS(wq_wheel_after(w, -5, note, tag(4), NULL), WQ_OK);
	IS(wq_wheel_after(w, INT64_MIN, note, tag(5), NULL), WQ_OK);
	FIRES(1019, 3, 4, 5);
	IS(wq_wheel_after(w, WQ_NEVER, note, tag(6), NULL), WQ_OK); /* saturates */
	IS(wq_wheel_next_deadline(w), WQ_NEVER);
	FIRES_NOTHING(WQ_NEVER);
	wheel_close(1);
}

static void every_does_not_drift(void **state)
{
	const int64_t start = 12345, period = 1000;
	int64_t now = start;
	wq_timer_id id = 0;

	(void)state;
	wheel_open(start, NULL);
	IS(wq_wheel_every(w, period, note, tag(1), &id), WQ_OK);
	for (int64_t i = 1; i <= 2000; i++) {
		int64_t due = start + i * period;

		IS(wq_wheel_next_deadline(w), due);
		FIRES_NOTHING(due - 1);
		now = due + i % period; /* always a little late, and never twice the same */
		FIRES(now, 1);
		IS(fired[nfired - 1].event.due_ns, due);
		IS(fired[nfired - 1].event.skipped, 0);
		assert_true(fired[nfired - 1].event.id == id);
		IS(wq_wheel_size(w), 1);
	}
	IS(wq_wheel_cancel(w, id), WQ_OK);
	FIRES_NOTHING(now + 100 * period);
	wheel_close(0);
}

/* [H4] Missed periods are skipped, the phase is kept, and the event tells how many. */
static void every_skips_what_it_missed(void **state)
{
	static const int64_t periods[] = {1, 2, 3, 1000, WQ_SECOND, WQ_HOUR};

	(void)state;
	for (size_t p = 0; p < LENGTH(periods); p++) {
		int64_t period = periods[p], due = 7 + period, now = 7;

		wheel_open(7, NULL);
		IS(wq_wheel_every(w, period, note, tag(1), NULL), WQ_OK);
		for (int64_t missed = 0; missed < 300; missed += 1 + missed / 3) {
			/* at the first and at the last nanosecond of the last period */
			now = due + missed * period + (missed % 2 ? period - 1 : 0);
			FIRES(now, 1);
			IS(fired[nfired - 1].event.due_ns, due);
			IS(fired[nfired - 1].event.skipped, missed);
			due += (missed + 1) * period;
			IS(wq_wheel_next_deadline(w), due);
			FIRES_NOTHING(now);
		}
		wheel_close(1);
	}
}

static void periods_at_the_end_of_time(void **state)
{
	wq_timer_id id, id2;

	(void)state;
	wheel_open(0, NULL);
	IS(wq_wheel_every(w, WQ_NEVER - 1, note, tag(1), &id), WQ_OK);
	IS(wq_wheel_every(w, WQ_NEVER, note, tag(2), &id2), WQ_OK);
	IS(wq_wheel_size(w), 2);
	FIRES(WQ_NEVER - 1, 1);
	IS(wq_wheel_next_deadline(w), WQ_NEVER); /* its next time is beyond all times */
	FIRES_NOTHING(WQ_NEVER);
	IS(wq_wheel_size(w), 2);
	IS(wq_wheel_reschedule(w, id2, 5), WQ_OK);
	FIRES(WQ_NEVER, 2);
	IS(wq_wheel_cancel(w, id), WQ_OK);
	IS(wq_wheel_cancel(w, id2), WQ_OK);
	wheel_close(0);

	wheel_open(0, NULL);
	IS(wq_wheel_every(w, 1, note, tag(1), &id), WQ_OK);
	FIRES(WQ_NEVER, 1); /* 292 years of nanoseconds */
	IS(fired[0].event.skipped, WQ_NEVER - 1);
	wheel_close(1);
}

/* Many of them, whose times never come, take nothing from the others. */
static void periods_that_never_come(void **state)
{
	(void)state;
	for (int n = 1; n < 80; n++) {
		wheel_open(0, NULL);
		for (int i = 1; i <= n; i++)
			add(WQ_SECOND + i * WQ_MICROSECOND, i);
		for (int i = 0; i < 40; i++)
			IS(wq_wheel_every(w, WQ_NEVER, note, tag(1), NULL), WQ_OK);
		IS(wq_wheel_advance(w, 2 * WQ_SECOND), n);
		for (int i = 0; i < n; i++)
			IS(fired[i].tag, i + 1);
		wheel_close(40);
	}
}

/* ---- cancel ------------------------------------------------------------------------------ */

static void cancel_in_time_or_too_late(void **state)
{
	(void)state;
	wheel_open(0, NULL);
	wq_timer_id a = add(10, 1), b = add(10, 2), c = add(10, 3), d = add(WQ_HOUR, 4);

	IS(wq_wheel_cancel(w, b), WQ_OK);
	IS(wq_wheel_size(w), 3);
	IS(wq_wheel_cancel(w, b), WQ_ESTALE); /* twice */
	IS(wq_wheel_reschedule(w, b, 20), WQ_ESTALE);
	FIRES(10, 1, 3);
	IS(wq_wheel_cancel(w, a), WQ_ESTALE); /* too late */
	IS(wq_wheel_cancel(w, c), WQ_ESTALE);
	IS(wq_wheel_reschedule(w, c, 20), WQ_ESTALE);
	IS(wq_wheel_cancel(w, 0), WQ_ESTALE); /* never was */
	IS(wq_wheel_cancel(w, UINT64_MAX), WQ_ESTALE);
	IS(wq_wheel_cancel(w, d ^ 1), WQ_ESTALE);
	for (int bit = 0; bit < 64; bit++) {
		IS(wq_wheel_cancel(w, d ^ UINT64_C(1) << bit), WQ_ESTALE);
		IS(wq_wheel_reschedule(w, d ^ UINT64_C(1) << bit, 5), WQ_ESTALE);
	}
	IS(wq_wheel_size(w), 1);
	FIRES_NOTHING(WQ_HOUR - 1);
	FIRES(WQ_HOUR, 4);
	wheel_close(0);
}

/* [H5] A segment of timers is given back, and made again: its old ids stay stale. */
static void stale_ids_stay_stale(void **state)
{
	enum { N = 2000, ROUNDS = 20 };
	static wq_timer_id ids[ROUNDS][N];

	(void)state;
	wheel_open(0, NULL);
	wq_timer_id kept = add(WQ_HOUR, 1);
	int64_t bytes = mem.bytes;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++)
			ids[round][i] = add(WQ_SECOND, 2);
		for (int i = 0; i < N; i++) {
			int old = round > 0 ? i % round : 0;

			if (round > 0) {
				IS(wq_wheel_cancel(w, ids[old][i]), WQ_ESTALE);
				IS(wq_wheel_reschedule(w, ids[old][i], 1), WQ_ESTALE);
				assert_true(ids[old][i] != ids[round][i]);
			}
		}
		for (int i = 0; i < N; i++) /* in two directions */
			IS(wq_wheel_cancel(w, ids[round][round % 2 ? i : N - 1 - i]), WQ_OK);
		IS(wq_wheel_size(w), 1);
		/* N timers and their references are some 80 KiB and more */
		assert_true(mem.bytes < bytes + (192 << 10));
	}
	FIRES(WQ_HOUR, 1);
	IS(wq_wheel_cancel(w, kept), WQ_ESTALE);
	wheel_close(0);
}

/* What a timer's former times left in the wheel means nothing to who comes to its place. */
static void former_times_of_a_segment_given_back(void **state)
{
	enum { SEGMENT = 512, TIMES = 10 };

	(void)state;
	for (int lives = 1; lives <= 3; lives++) {
		wheel_open(0, NULL);
		for (int i = 0; i < SEGMENT; i++) /* the first segment is full */
			add(WQ_HOUR, 1);
		for (int life = 0; life < lives; life++) {
			wq_timer_id id = add(WQ_SECOND, 2);

			for (int i = 1; i <= TIMES; i++)
				IS(wq_wheel_reschedule(w, id, WQ_SECOND + i), WQ_OK);
			IS(wq_wheel_cancel(w, id), WQ_OK); /* the second one goes back */
		}
		for (int i = 0; i < SEGMENT; i++)
			add(WQ_MINUTE, 3);
		FIRES_NOTHING(WQ_SECOND + TIMES);
		FIRES_NOTHING(WQ_MINUTE - 1);
		IS(wq_wheel_advance(w, WQ_MINUTE), SEGMENT);
		IS(wq_wheel_advance(w, WQ_HOUR), SEGMENT);
		wheel_close(0);
	}
}

/* Simply added, moved, without a time, periodic. */
static wq_timer_id add_of_kind(int kind)
{
	wq_timer_id id = 0;

	if (kind == 3)
		IS(wq_wheel_every(w, WQ_HOUR, note, tag(1), &id), WQ_OK);
	else
		id = add(kind == 2 ? WQ_NEVER : WQ_HOUR, 1);
	if (kind == 1)
		IS(wq_wheel_reschedule(w, id, 2 * WQ_HOUR), WQ_OK);
	return id;
}

/* [H5] Whoever comes to a timer's place, its old id does not mean it: moved, periodic, without a time. */
static void stale_ids_of_every_kind_of_timer(void **state)
{
	(void)state;
	for (int before = 0; before < 4; before++)
		for (int after = 0; after < 4; after++) {
			wq_timer_id ids[2];

			wheel_open(0, NULL);
			ids[0] = add_of_kind(before);
			IS(wq_wheel_cancel(w, ids[0]), WQ_OK);
			/* until one gets its place */
			while (ids[1] = add_of_kind(after), ids[0] >> 32 != ids[1] >> 32)
				IS(wq_wheel_cancel(w, ids[1]), WQ_OK);
			IS(wq_wheel_cancel(w, ids[0]), WQ_ESTALE);
			IS(wq_wheel_reschedule(w, ids[0], 1), WQ_ESTALE);
			for (int bit = 0; bit < 64; bit++) {
				IS(wq_wheel_cancel(w, ids[1] ^ UINT64_C(1) << bit), WQ_ESTALE);
				IS(wq_wheel_reschedule(w, ids[1] ^ UINT64_C(1) << bit, 1),
				   WQ_ESTALE);
			}
			FIRES_NOTHING(WQ_HOUR - 1);
			IS(wq_wheel_cancel(w, ids[1]), WQ_OK);
			wheel_close(0);
		}
}

/* [H5] Many adds and cancels hold no more than one of them needs. */
static void cancelled_timers_take_no_room(void **state)
{
	(void)state;
	wheel_open(0, NULL);
	for (int64_t i = 0; i < 300000; i++) {
		wq_timer_id id = add(WQ_HOUR + i * 1000, 1), id2;

		IS(wq_wheel_every(w, WQ_HOUR + i, note, tag(2), &id2), WQ_OK);
		IS(wq_wheel_cancel(w, id), WQ_OK);
		IS(wq_wheel_cancel(w, id2), WQ_OK);
		IS(wq_wheel_cancel(w, add(WQ_NEVER, 3)), WQ_OK);
		if (i % 1000 == 0)
			FIRES_NOTHING(i);
	}
	assert_true(mem.peak < 512 << 10);
	IS(wq_wheel_size(w), 0);
	FIRES_NOTHING(2 * WQ_HOUR);
	IS(wq_wheel_next_deadline(w), WQ_NEVER);
	wheel_close(0);
}

/* [H5] The same with timers that are moved once in between. */
static void moved_timers_take_no_room(void **state)
{
	enum { N = 2000 };
	static wq_timer_id ids[N];

	(void)state;
	wheel_open(0, NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < N; i++)
			ids[i] = add(WQ_HOUR + i, 1);
		for (int i = 0; i < N; i++)
			IS(wq_wheel_reschedule(w, ids[i], 2 * WQ_HOUR + i), WQ_OK);
		for (int i = 0; i < N; i++)
			IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
	}
	assert_true(mem.peak < 768 << 10);
	FIRES_NOTHING(3 * WQ_HOUR);
	wheel_close(0);
}

/* ---- reschedule ----------------------------------------------------------------------------- */

static void reschedule_earlier_later_same_never(void **state)
{
	(void)state;
	wheel_open(0, NULL);
	wq_timer_id a = add(100, 1), b = add(100, 2), c = add(100, 3), d = add(100, 4);

	add(100, 5);
	IS(wq_wheel_reschedule(w, a, 50), WQ_OK);
	IS(wq_wheel_next_deadline(w), 50);
	IS(wq_wheel_reschedule(w, b, 150), WQ_OK);
	IS(wq_wheel_reschedule(w, c, WQ_NEVER), WQ_OK);
	IS(wq_wheel_reschedule(w, d, 100), WQ_OK); /* the same: the last of its time now */
	IS(wq_wheel_size(w), 5);
	FIRES(50, 1);
	FIRES(100, 5, 4);
	FIRES_NOTHING(149);
	FIRES(150, 2);
	FIRES_NOTHING(WQ_NEVER - 1);
	IS(wq_wheel_size(w), 1);
	IS(wq_wheel_reschedule(w, c, 0), WQ_OK); /* passed: at the next advance */
	FIRES(WQ_NEVER - 1, 3);
	IS(wq_wheel_reschedule(w, c, 0), WQ_ESTALE);
	wheel_close(0);
}

static void reschedule_away_and_back_counts_as_added_last(void **state)
{
	(void)state;
	wheel_open(0, NULL);
	wq_timer_id a = add(100, 1);

	add(100, 2);
	for (int i = 0; i < 500; i++) {
		IS(wq_wheel_reschedule(w, a, 200), WQ_OK);
		IS(wq_wheel_reschedule(w, a, 100), WQ_OK);
	}
	add(100, 3);
	IS(wq_wheel_size(w), 3);
	FIRES(100, 2, 1, 3);
	FIRES_NOTHING(WQ_HOUR);
	wheel_close(0);
}

/* Pushing a timeout away again and again, as one does for a connection. */
static void a_timer_that_is_moved_for_ever(void **state)
{
	int64_t now = 0;

	(void)state;
	wheel_open(0, NULL);
	wq_timer_id id = add(WQ_MINUTE, 1);

	for (int i = 0; i < 200000; i++) {
		now += WQ_MILLISECOND;
		FIRES_NOTHING(now);
		IS(wq_wheel_reschedule(w, id, now + WQ_MINUTE), WQ_OK);
	}
	assert_true(mem.peak < 512 << 10);
	FIRES_NOTHING(now + WQ_MINUTE - 1);
	FIRES(now + WQ_MINUTE, 1);
	wheel_close(0);
}

static void reschedule_of_a_periodic_one_keeps_its_period(void **state)
{
	wq_timer_id id;

	(void)state;
	wheel_open(0, NULL);
	IS(wq_wheel_every(w, 100, note, tag(1), &id), WQ_OK);
	FIRES(100, 1);
	IS(wq_wheel_reschedule(w, id, 130), WQ_OK); /* another phase from here on */
	FIRES(130, 1);
	FIRES_NOTHING(229);
	FIRES(230, 1);
	IS(wq_wheel_reschedule(w, id, WQ_NEVER), WQ_OK); /* a pause */
	FIRES_NOTHING(1000);
	IS(wq_wheel_size(w), 1);
	IS(wq_wheel_reschedule(w, id, 1005), WQ_OK);
	FIRES(1005, 1);
	IS(fired[nfired - 1].event.skipped, 0);
	FIRES(1105, 1);
	IS(wq_wheel_reschedule(w, id, 1100), WQ_OK); /* passed */
	FIRES(1110, 1);
	IS(fired[nfired - 1].event.due_ns, 1100);
	FIRES_NOTHING(1199);
	FIRES(1200, 1);
	IS(wq_wheel_cancel(w, id), WQ_OK);
	wheel_close(0);
}

/* ---- the next deadline ------------------------------------------------------------------------------- */

static void next_deadline_is_exact_without_cancels(void **state)
{
	uint64_t rng = 1;

	(void)state;
	wheel_open(0, NULL);
	for (int i = 0; i < 2000; i++) /* magnitudes from nanoseconds to years */
		add((int64_t)(rng_next(&rng) >> (2 + rng_below(&rng, 60))), 1);
	while (wq_wheel_size(w) > 0) {
		int64_t next = wq_wheel_next_deadline(w);

		if (next > 0)
			FIRES_NOTHING(next - 1);
		assert_true(wq_wheel_advance(w, next) > 0);
		IS(fired[nfired - 1].event.due_ns, next);
	}
	IS((int64_t)nfired, 2000);
	wheel_close(0);
}

/* Too early at most, never too late; and who follows it gets there. */
static void next_deadline_is_never_late(void **state)
{
	enum { N = 1000 };
	static wq_timer_id ids[N];
	static int64_t due[N];
	uint64_t rng = 2;
	int advances = 0;

	(void)state;
	wheel_open(0, NULL);
	for (int i = 0; i < N; i++) {
		due[i] = (int64_t)rng_below(&rng, WQ_SECOND);
		ids[i] = add(due[i], i + 1);
	}
	for (int i = 0; i < N; i++)
		if (i % 10 != 0)
			IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
	for (; wq_wheel_size(w) > 0; advances++) {
		int64_t next = wq_wheel_next_deadline(w), earliest = WQ_NEVER;

		for (int i = 0; i < N; i += 10)
			if (due[i] >= 0 && due[i] < earliest)
				earliest = due[i];
		assert_true(next <= earliest);
		if (wq_wheel_advance(w, next) > 0) {
			IS(next, earliest);
			due[fired[nfired - 1].tag - 1] = -1;
		}
	}
	IS((int64_t)nfired, N / 10);
	assert_true(advances <= N);
	wheel_close(0);
}

static void free_says_how_many_were_left(void **state)
{
	(void)state;
	for (int n = 0; n < 1200; n += 1 + n / 2) {
		wheel_open(0, NULL);
		for (int i = 0; i < n; i++) {
			add(i * WQ_SECOND, 1);
			IS(wq_wheel_every(w, WQ_SECOND + i, note, tag(1), NULL), WQ_OK);
		}
		wheel_close(2 * n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_accepted_tick_and_size),
	    cmocka_unit_test(every_rejected_tick_and_size),
	    cmocka_unit_test(other_bad_options),
	    cmocka_unit_test(bad_arguments),
	    cmocka_unit_test(nanoseconds_within_a_tick_are_in_order),
	    cmocka_unit_test(equal_times_fire_in_the_order_they_were_added),
	    cmocka_unit_test(what_has_passed_fires_at_the_next_advance),
	    cmocka_unit_test(never_never_fires_but_can_be_moved),
	    cmocka_unit_test(after_counts_from_the_last_advance),
	    cmocka_unit_test(every_does_not_drift),
	    cmocka_unit_test(every_skips_what_it_missed),
	    cmocka_unit_test(periods_at_the_end_of_time),
	    cmocka_unit_test(periods_that_never_come),
	    cmocka_unit_test(cancel_in_time_or_too_late),
	    cmocka_unit_test(stale_ids_stay_stale),
	    cmocka_unit_test(former_times_of_a_segment_given_back),
	    cmocka_unit_test(stale_ids_of_every_kind_of_timer),
	    cmocka_unit_test(cancelled_timers_take_no_room),
	    cmocka_unit_test(moved_timers_take_no_room),
	    cmocka_unit_test(reschedule_earlier_later_same_never),
	    cmocka_unit_test(reschedule_away_and_back_counts_as_added_last),
	    cmocka_unit_test(a_timer_that_is_moved_for_ever),
	    cmocka_unit_test(reschedule_of_a_periodic_one_keeps_its_period),
	    cmocka_unit_test(next_deadline_is_exact_without_cancels),
	    cmocka_unit_test(next_deadline_is_never_late),
	    cmocka_unit_test(free_says_how_many_were_left),
	};

	return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
