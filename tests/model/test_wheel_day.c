/*
 * A day of simulated time with a million timers, in seconds of real time. Each
 * firing is checked: that it is the timer's own nanosecond, in order, the
 * first time it could be, and the only time.
 *
 *     test_wheel_day [--seed N]
 */
#include "../support/support.h"

#include <wq/wheel.h>

enum {
	TIMERS = 1000000,
	BEATS = 500, /* periodic ones */
};

#define DAY (24 * WQ_HOUR)
#define BEGIN (20 * 365 * DAY) /* not at 0: some years after the machine was started */

static uint64_t seed;

struct timer {
	int64_t due_ns;
	uint64_t seq; /* of the last add or reschedule: among equal times the order */
	wq_timer_id id;
};

/* What is known of the firings so far. */
static struct day {
	wq_wheel *w;
	struct timer *timers;
	uint64_t seq;
	int64_t before_ns;    /* the time of the last advance */
	int64_t last_due_ns;  /* of the last firing */
	uint64_t last_seq;    /* and its place among its equals */
	int64_t fired, beats; /* firings of timers, and of periodic ones */
	bool exact;           /* each advance goes to the next deadline */
} day;

/* In order, not early, not late. */
static void check_firing(const wq_timer_event *ev, int64_t due_ns, uint64_t seq)
{
	assert_int_equal(ev->due_ns, due_ns);
	assert_true(ev->due_ns <= ev->now_ns);
	assert_true(ev->due_ns > day.before_ns); /* or the last advance should have fired it */
	assert_true(!day.exact || ev->due_ns == ev->now_ns);
	assert_true(due_ns > day.last_due_ns || (due_ns == day.last_due_ns && seq > day.last_seq));
	day.last_due_ns = due_ns;
	day.last_seq = seq;
}

static void fire(void *ctx, const wq_timer_event *ev)
{
	struct timer *t = ctx;

	assert_true(ev->id == t->id);
	assert_int_equal(ev->skipped, 0);
	check_firing(ev, t->due_ns, t->seq);
	t->due_ns = -1; /* once */
	day.fired++;
}

struct beat {
	struct timer timer;
	int64_t period_ns;
	int64_t times; /* fired or skipped */
};

static void beat(void *ctx, const wq_timer_event *ev)
{
	struct beat *b = ctx;

	assert_true(ev->id == b->timer.id);
	check_firing(ev, BEGIN + (b->times + 1) * b->period_ns, b->timer.seq);
	assert_int_equal(ev->skipped, (ev->now_ns - ev->due_ns) / b->period_ns);
	b->times += 1 + ev->skipped;
	b->timer.seq = day.seq++;
	day.beats++;
}

static void day_open(bool exact)
{
	day = (struct day){.exact = exact, .before_ns = BEGIN, .last_due_ns = BEGIN};
	day.timers = calloc(TIMERS, sizeof *day.timers);
	assert_non_null(day.timers);
	IS(wq_wheel_new(&day.w, BEGIN, NULL), WQ_OK);
}

static void add(struct timer *t, int64_t due_ns)
{
	t->due_ns = due_ns;
	t->seq = day.seq++;
	assert_int_equal(wq_wheel_add(day.w, due_ns, fire, t, &t->id), WQ_OK);
}

static void advance(int64_t now_ns)
{
	assert_true(wq_wheel_advance(day.w, now_ns) >= 0);
	day.before_ns = now_ns;
}

/* Driven as an event loop does: one sleep for each deadline. */
static void exactly(void **state)
{
	static struct beat beats[BEATS];
	uint64_t rng = seed;
	int64_t rounds = 0, expected = 0;

	(void)state;
	day_open(true);
	for (int i = 0; i < BEATS; i++) {
		struct beat *b = &beats[i];

		*b = (struct beat){.period_ns = WQ_MINUTE + i * WQ_MILLISECOND / 7};
		b->timer.seq = day.seq++;
		assert_int_equal(wq_wheel_every(day.w, b->period_ns, beat, b, &b->timer.id), WQ_OK);
		expected += DAY / b->period_ns;
	}
	for (int i = 0; i < TIMERS; i++) {
		/* a tenth in whole seconds, where they meet the others */
		int64_t in = 1 + (int64_t)rng_below(&rng, DAY);

		add(&day.timers[i], BEGIN + (i % 10 ? in : (in / WQ_SECOND + 1) * WQ_SECOND));
	}
	for (int64_t next; (next = wq_wheel_next_deadline(day.w)) <= BEGIN + DAY; rounds++)
		advance(next);
	advance(BEGIN + DAY);
	IS(day.fired, TIMERS);
	IS(day.beats, expected);
	IS(wq_wheel_size(day.w), BEATS);
	assert_true(rounds <= TIMERS + expected);
	IS(wq_wheel_free(day.w), BEATS);
	free(day.timers);
}

/*
 * Driven in steps of any length, with timers that are pushed away or cancelled
 * before their time, as timeouts are: a timer fires in the first step that
 * reaches it.
 */
static void in_steps(void **state)
{
	static struct beat beats[BEATS];
	uint64_t rng = seed + 1;
	int64_t now = BEGIN, cancelled = 0;

	(void)state;
	day_open(false);
	for (int i = 0; i < BEATS; i++) {
		struct beat *b = &beats[i];

		*b = (struct beat){.period_ns = WQ_SECOND + i * WQ_MILLISECOND};
		b->timer.seq = day.seq++;
		assert_int_equal(wq_wheel_every(day.w, b->period_ns, beat, b, &b->timer.id), WQ_OK);
	}
	for (int i = 0; i < TIMERS;) {
		/* They come all day long, for the next minute or hour. */
		for (int n = 0; n < 200 && i < TIMERS; n++)
			add(&day.timers[i++],
			    now + 1 + (int64_t)rng_below(&rng, n % 4 ? WQ_MINUTE : WQ_HOUR));
		for (int n = 0; n < 100; n++) {
			struct timer *t = &day.timers[rng_below(&rng, (uint64_t)i)];

			if (t->due_ns < 0) {
				assert_int_equal(wq_wheel_cancel(day.w, t->id), WQ_ESTALE);
			} else if (n % 2) {
				assert_int_equal(wq_wheel_cancel(day.w, t->id), WQ_OK);
				t->due_ns = -1;
				cancelled++;
			} else {
				t->due_ns = now + 1 + (int64_t)rng_below(&rng, WQ_HOUR);
				t->seq = day.seq++;
				assert_int_equal(wq_wheel_reschedule(day.w, t->id, t->due_ns),
				                 WQ_OK);
			}
		}
		/* 5000 of these: in the mean 17 s, from a nanosecond on */
		now +=
		    1 + (int64_t)rng_below(&rng, rng_below(&rng, 8) ? 39 * WQ_SECOND : WQ_SECOND);
		advance(now);
	}
	assert_true(now > BEGIN + 20 * WQ_HOUR);
	advance(now + WQ_HOUR);
	IS(day.fired + cancelled, TIMERS);
	IS(wq_wheel_size(day.w), BEATS);
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(day.timers[i].due_ns, -1);
	for (int i = 0; i < BEATS; i++)
		IS(beats[i].times, (now + WQ_HOUR - BEGIN) / beats[i].period_ns);
	IS(wq_wheel_free(day.w), BEATS);
	free(day.timers);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exactly),
	    cmocka_unit_test(in_steps),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("a day", tests, NULL, NULL);
}
