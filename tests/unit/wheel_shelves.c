/*
 * A wheel with many timers puts those of about the same time together. Here it is
 * compiled so that 2,000 are many: a random tape goes over that number again and
 * again, beside an array; memory goes back; and the places of one bucket are counted.
 */
#include "../support/support.h"

#define WQ__MANY 2000u
#include "time/places.c"
#include "time/wheel.c"

enum { N = 20000 };

struct timer {
	wq_timer_id id;
	int64_t due_ns;
	bool live;
};

static struct timer timers[N];
static int64_t live, last_ns;

static void fire(void *ctx, const wq_timer_event *event)
{
	struct timer *t = ctx;

	assert_true(t->live);
	assert_true(event->id == t->id);
	IS(event->due_ns, t->due_ns);
	assert_true(event->due_ns >= last_ns && event->due_ns <= event->now_ns);
	last_ns = event->due_ns;
	t->live = false;
	live--;
}

static void add_timer(wq_wheel *w, struct timer *t, int64_t due_ns)
{
	t->due_ns = due_ns;
	t->live = true;
	IS(wq_wheel_add(w, due_ns, fire, t, &t->id), WQ_OK);
	live++;
}

static uint32_t segments_of(const wq_wheel *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->places.nsegments; i++)
		n += w->places.segments[i].word != NULL;
	return n;
}

static void is_whole(const wq_wheel *w)
{
	int64_t used = 0;

	IS(wq_wheel_size(w), live);
	for (uint32_t i = 0; i < w->places.nsegments; i++)
		for (uint32_t k = 0; w->places.segments[i].word && k < WQ__SHELF; k++)
			used += w->places.segments[i].word[k] & WQ__USED;
	IS(used, live);
}

/* Up and down through the number from which on there are shelves. */
static void a_random_tape(void **state)
{
	uint64_t rng = 4;
	int64_t now = 0;
	bool opened = false, closed = false;
	wq_wheel *w;

	(void)state;
	live = 0;
	IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
	for (int round = 0; round < 60; round++) {
		uint64_t most = rng_below(&rng, N), span = UINT64_C(1)
		                                           << (10 + rng_below(&rng, 24));

		for (uint64_t i = 0; i < most; i++) {
			struct timer *t = &timers[rng_below(&rng, N)];

			if (t->live && rng_below(&rng, 2) == 0) {
				IS(wq_wheel_cancel(w, t->id), WQ_OK);
				IS(wq_wheel_cancel(w, t->id), WQ_ESTALE);
				t->live = false;
				live--;
			} else if (t->live) {
				t->due_ns = now + (int64_t)rng_below(&rng, span);
				IS(wq_wheel_reschedule(w, t->id, t->due_ns), WQ_OK);
			} else {
				add_timer(w, t, now + (int64_t)rng_below(&rng, span));
			}
		}
		opened |= w->places.shelves;
		now += (int64_t)(span / 2 * rng_below(&rng, 3));
		last_ns = 0;
		wq_wheel_advance(w, now);
		closed |= opened && !w->places.shelves;
		for (int i = 0; i < N; i++)
			assert_true(!timers[i].live || timers[i].due_ns > now);
		is_whole(w);
	}
	assert_true(opened && closed);
	last_ns = 0;
	wq_wheel_advance(w, WQ_NEVER);
	is_whole(w);
	IS(live, 0);
	IS(wq_wheel_free(w), 0);
}

/* What is left of a crowd: the first shelf's segment, and the timing wheel's own. */
static void a_crowd_gives_its_memory_back(void **state)
{
	struct memory mem;
	uint64_t rng = 6;
	wq_wheel *w;

	(void)state;
	memory_init(&mem);

	wq_allocator a = memory_allocator(&mem);

	IS(wq_wheel_new(&w, 0, &(wq_wheel_options){.allocator = &a}), WQ_OK);
	for (int cancels = 0; cancels < 2; cancels++) {
		live = 0;
		for (int i = 0; i < N; i++)
			add_timer(w, &timers[i],
			          cancels * WQ_HOUR + (int64_t)rng_below(&rng, WQ_MINUTE));
		assert_true(w->places.shelves);
		for (int i = 0; cancels && i < N; i++) {
			IS(wq_wheel_cancel(w, timers[i].id), WQ_OK);
			live--;
		}
		last_ns = 0;
		wq_wheel_advance(w, (cancels + 1) * WQ_HOUR);
		IS(live, 0);
		assert_false(w->places.shelves);
		assert_in_range(segments_of(w), 0, 1);
	}
	IS(wq_wheel_free(w), 0);
	memory_balanced(&mem);
}

/* New timers take the places of those that have gone, before there is another segment. */
static void places_are_used_again(void **state)
{
	enum { SEGMENTS = 3, TIMERS = SEGMENTS * WQ__SHELF };
	wq_wheel *w;

	(void)state;
	live = 0;
	IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
	for (int i = 0; i < TIMERS; i++)
		add_timer(w, &timers[i], WQ_SECOND);
	IS(segments_of(w), SEGMENTS);
	for (int i = 0; i < TIMERS; i += 2) {
		IS(wq_wheel_cancel(w, timers[i].id), WQ_OK);
		live--;
	}
	for (int i = 0; i < TIMERS; i += 2)
		add_timer(w, &timers[i], WQ_SECOND);
	IS(segments_of(w), SEGMENTS);
	is_whole(w);
	last_ns = 0;
	IS(wq_wheel_advance(w, WQ_SECOND), TIMERS);
	IS(wq_wheel_free(w), 0);
}

/* Timers of one tick are in few segments: their own, one begun before, and one that is begun. */
static void what_fires_together_lies_together(void **state)
{
	enum { TICKS = 16, EACH = N / TICKS };
	static bool seen[TICKS][N / WQ__SHELF + TICKS + 8];
	uint64_t rng = 8;
	wq_wheel *w;

	(void)state;
	live = 0;
	IS(wq_wheel_new(&w, 0, NULL), WQ_OK);
	for (int i = 0; i < N; i++) {
		uint64_t tick = rng_below(&rng, TICKS);

		add_timer(w, &timers[i],
		          (int64_t)((TICKS + tick) << TICK_SHIFT |
		                    rng_below(&rng, 1 << TICK_SHIFT)));
		if (w->places.shelves && i > N / 4)
			seen[tick][wq__segment_of(timers[i].id)] = true;
	}
	for (size_t tick = 0; tick < TICKS; tick++) {
		int segments = 0;

		for (size_t i = 0; i < LENGTH(seen[tick]); i++)
			segments += seen[tick][i];
		assert_in_range(segments, 1, EACH / WQ__SHELF + 2);
	}
	last_ns = 0;
	IS(wq_wheel_advance(w, WQ_SECOND), N);
	IS(wq_wheel_free(w), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_random_tape),
	    cmocka_unit_test(a_crowd_gives_its_memory_back),
	    cmocka_unit_test(places_are_used_again),
	    cmocka_unit_test(what_fires_together_lies_together),
	};

	return cmocka_run_group_tests_name("wheel shelves", tests, NULL, NULL);
}
