/*
 * A place in the wheel counts its uses, in 30 bits. Here the wheel is compiled
 * with steps so large that 15 uses wear a place out: it must not be used again.
 */
#include "../support/support.h"

#define WQ__STEP UINT32_C(0x10000000)
#include "time/places.c"
#include "time/wheel.c"

enum { USES = 15 };

static int fires;

static void fire(void *ctx, const wq_timer_event *event)
{
	(void)event;
	fires += ctx == &fires;
}

static wq_timer_id add_at(wq_wheel *w, int64_t due_ns)
{
	wq_timer_id id = 0;

	IS(wq_wheel_add(w, due_ns, fire, &fires, &id), WQ_OK);
	return id;
}

static int compare(const void *x, const void *y)
{
	const wq_timer_id a = *(const wq_timer_id *)x, b = *(const wq_timer_id *)y;

	return a < b ? -1 : a > b;
}

/* [H5] One timer at a time, which wears out place after place, segment after segment. */
static void no_id_comes_twice(void **state)
{
	enum { N = 3 * WQ__SHELF * USES };
	wq_timer_id *ids = malloc(N * sizeof *ids);
	wq_wheel *w;

	(void)state;
	assert_non_null(ids);
	for (int rest = 0; rest < 2; rest++) {
		IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
		if (rest) /* with another beside it, empty segments go back */
			add_at(w, WQ_HOUR);
		for (int i = 0; i < N; i++) {
			ids[i] = add_at(w, WQ_SECOND + i);
			IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
			IS(wq_wheel_cancel(w, ids[i / 2]), WQ_ESTALE);
		}
		qsort(ids, N, sizeof *ids, compare);
		for (int i = 1; i < N; i++)
			assert_true(ids[i] != ids[i - 1]);
		fires = 0;
		IS(wq_wheel_advance(w, WQ_HOUR), rest);
		IS(fires, rest);
		IS(wq_wheel_free(w), 0);
	}
	free(ids);
}

/* [H5] A segment that is given back again and again counts on. */
static void segments_wear_out_too(void **state)
{
	static wq_timer_id ids[USES + 3][WQ__SHELF];
	wq_wheel *w;

	(void)state;
	IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
	for (int i = 0; i < WQ__SHELF; i++) /* the first one is full and stays */
		add_at(w, WQ_HOUR);
	for (int round = 0; round < USES + 3; round++) {
		for (int i = 0; i < WQ__SHELF; i++) {
			ids[round][i] = add_at(w, WQ_SECOND);
			for (int old = 0; old < round; old++)
				assert_true(ids[old][i] != ids[round][i]);
		}
		for (int i = 0; i < WQ__SHELF; i++)
			IS(wq_wheel_cancel(w, ids[round][i]), WQ_OK);
		for (int old = 0; old < round; old++)
			IS(wq_wheel_cancel(w, ids[old][round]), WQ_ESTALE);
	}
	IS(wq_wheel_free(w), WQ__SHELF);
}

/* A timer may be moved more often than its place can count: it rests when that timer is gone. */
static void a_timer_that_outlives_its_count(void **state)
{
	enum { MOVES = 5 * USES };
	wq_wheel *w;

	(void)state;
	for (int ends = 0; ends < 2; ends++) {
		int64_t now = 0;
		wq_timer_id id;

		fires = 0;
		IS(wq_wheel_new(&w, now, NULL), WQ_OK);
		add_at(w, WQ_NEVER);
		id = add_at(w, 10);
		for (int i = 0; i < MOVES; i++) {
			/* Its former reference has gone by when the count begins again. */
			IS(wq_wheel_reschedule(w, id, now + 20), WQ_OK);
			now += 10;
			IS(wq_wheel_advance(w, now + 5), 0);
			IS(wq_wheel_next_deadline(w), now + 10);
		}
		if (ends)
			IS(wq_wheel_cancel(w, id), WQ_OK);
		IS(wq_wheel_advance(w, now + 10), !ends);
		IS(wq_wheel_cancel(w, id), WQ_ESTALE);
		IS(wq_wheel_reschedule(w, id, now + 20), WQ_ESTALE);
		for (int i = 0; i < WQ__SHELF; i++)
			assert_true(add_at(w, now + 30) >> 32 != id >> 32);
		IS(wq_wheel_advance(w, now + 30), WQ__SHELF);
		IS(wq_wheel_free(w), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_id_comes_twice),
	    cmocka_unit_test(segments_wear_out_too),
	    cmocka_unit_test(a_timer_that_outlives_its_count),
	};

	return cmocka_run_group_tests_name("wheel wear", tests, NULL, NULL);
}
