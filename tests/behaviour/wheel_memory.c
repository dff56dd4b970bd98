/*
 * The timing wheel when memory runs out. Every allocation fails once, and in a
 * second round all later ones too: the call that needed it answers WQ_ENOMEM
 * and has changed nothing, what fires still fires, and periodic timers go on.
 */
#include "wheel_rig.h"

/* ---- a script of all calls, beside a list of what should be there ------------------ */

enum { TIMERS = 3000 };

struct timer {
	wq_timer_id id;
	int64_t due_ns;    /* of the next firing */
	int64_t period_ns; /* 0: once */
	bool live;
};

static struct timer timers[TIMERS];
static int64_t nlive, refusals, fires;

static void expect(void *ctx, const wq_timer_event *event)
{
	struct timer *t = ctx;

	assert_true(t->live);
	assert_true(event->id == t->id);
	IS(event->due_ns, t->due_ns);
	fires++;
	if (t->period_ns == 0) {
		t->live = false;
		nlive--;
		return;
	}

	int64_t missed = (event->now_ns - t->due_ns) / t->period_ns;

	IS(event->skipped, missed);
	t->due_ns += (missed + 1) * t->period_ns;
}

/* A call was refused: nothing has changed. Then memory is there again. */
static void was_refused(int rc, int64_t next)
{
	IS(rc, WQ_ENOMEM);
	assert_true(mem.failed > 0);
	IS(wq_wheel_size(w), nlive);
	IS(wq_wheel_next_deadline(w), next);
	refusals++;
	mem.fail_at = -1;
}

static void add_timer(struct timer *t, int64_t now_ns, int64_t delay_ns, bool every)
{
	int64_t next = wq_wheel_next_deadline(w);

	for (int rc = -1; rc != WQ_OK;) {
		t->id = 0;
		if (every)
			rc = wq_wheel_every(w, delay_ns, expect, t, &t->id);
		else
			rc = wq_wheel_add(w, now_ns + delay_ns, expect, t, &t->id);
		if (rc != WQ_OK) {
			assert_true(t->id == 0);
			was_refused(rc, next);
		}
	}
	t->due_ns = now_ns + delay_ns;
	t->period_ns = every ? delay_ns : 0;
	t->live = true;
	nlive++;
}

static void move_timer(struct timer *t, int64_t due_ns)
{
	int64_t next = wq_wheel_next_deadline(w);

	for (int rc = -1; rc != WQ_OK;) {
		rc = wq_wheel_reschedule(w, t->id, due_ns);
		if (rc != WQ_OK)
			was_refused(rc, next);
	}
	t->due_ns = due_ns;
}

/* True: an allocation was refused. */
static bool run_script(int64_t fail_at, bool on)
{
	uint64_t rng = 5;
	int64_t now = 0;
	bool hit;

	nlive = 0;
	memory_init(&mem);
	mem.fail_at = fail_at;
	mem.fail_on = on;

	wq_allocator a = memory_allocator(&mem);

	w = NULL;
	if (wq_wheel_new(&w, 0, &(wq_wheel_options){.allocator = &a}) != WQ_OK) {
		assert_null(w);
		memory_balanced(&mem);
		mem.fail_at = -1;
		refusals++;
		IS(wq_wheel_new(&w, 0, &(wq_wheel_options){.allocator = &a}), WQ_OK);
	}
	for (int i = 0; i < TIMERS; i++) {
		struct timer *t = &timers[i];
		int64_t delay = (int64_t)(1 + (rng_next(&rng) >> (24 + rng_below(&rng, 39))));

		add_timer(t, now, delay, i % 5 == 0);
		t = &timers[rng_below(&rng, (uint64_t)i + 1)];
		if (t->live && i % 3 == 0)
			move_timer(t, now + delay / 2);
		t = &timers[rng_below(&rng, (uint64_t)i + 1)];
		if (t->live && i % 7 == 0) {
			IS(wq_wheel_cancel(w, t->id), WQ_OK);
			t->live = false;
			nlive--;
		}
		if (i % 16 == 0) {
			now += (int64_t)rng_below(&rng, WQ_MILLISECOND);
			wq_wheel_advance(w, now);
		}
		IS(wq_wheel_size(w), nlive);
	}
	/* Everything fires, and what is periodic is cancelled. */
	wq_wheel_advance(w, now + WQ_HOUR);
	hit = mem.failed > 0;
	mem.fail_at = -1;
	for (int i = 0; i < TIMERS; i++)
		if (timers[i].live) {
			assert_true(timers[i].due_ns > now + WQ_HOUR);
			IS(wq_wheel_cancel(w, timers[i].id), WQ_OK);
			nlive--;
		}
	IS(nlive, 0);
	wheel_close(0);
	return hit;
}

static void fail_each(bool on)
{
	int64_t n = 0;

	refusals = 0;
	while (run_script(n, on))
		n++;
	print_message("%lld allocations failed, %lld calls were refused\n", (long long)n,
	              (long long)refusals);
	assert_true(n > 20);
	assert_true(refusals > 15);
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	fail_each(false);
}

static void each_allocation_fails_and_all_later_ones(void **state)
{
	(void)state;
	fail_each(true);
}

/* The first calls on a new wheel, one by one: each needs several allocations. */
static void first_call_of_each_kind(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (int64_t n = 0, hit = 1; hit; n++) {
			wq_timer_id id = 0, never = 0;
			int rc;

			wheel_open(0, NULL);
			IS(wq_wheel_add(w, WQ_NEVER, note, tag(1), &never), WQ_OK);
			mem.fail_at = mem.calls + n;
			mem.fail_on = true;
			switch (kind) {
			case 0:
				rc = wq_wheel_add(w, WQ_HOUR, note, tag(2), &id);
				break;
			case 1:
				rc = wq_wheel_after(w, WQ_HOUR, note, tag(2), &id);
				break;
			case 2:
				rc = wq_wheel_every(w, WQ_HOUR, note, tag(2), &id);
				break;
			default:
				rc = wq_wheel_reschedule(w, never, WQ_HOUR);
			}
			hit = mem.failed > 0;
			IS(rc, hit ? WQ_ENOMEM : WQ_OK);
			IS(wq_wheel_size(w), 1 + (rc == WQ_OK && kind < 3));
			IS(wq_wheel_next_deadline(w), hit ? WQ_NEVER : WQ_HOUR);
			assert_true((id != 0) == (rc == WQ_OK && kind < 3));
			IS(wq_wheel_advance(w, WQ_HOUR), rc == WQ_OK);
			mem.fail_at = -1;
			/* What failed left nothing behind that the next ones trip over. */
			for (int i = 0; i < 40; i++)
				IS(wq_wheel_every(w, 1 + i, note, tag(i + 1), NULL), WQ_OK);
			IS(wq_wheel_advance(w, WQ_HOUR + 20), 20);
			wheel_close(wq_wheel_size(w));
		}
}

/* ---- no memory from now on ------------------------------------------------------------ */

static void no_memory(void)
{
	mem.fail_at = mem.calls;
	mem.fail_on = true;
}

static int64_t periodic_fires[400];

static void count(void *ctx, const wq_timer_event *event)
{
	assert_true(event->due_ns <= event->now_ns);
	++*(int64_t *)ctx;
}

/* Each fires at each of its times, whatever else is in the wheel. */
static void periodic_timers_survive(void **state)
{
	uint64_t rng = 3;

	(void)state;
	for (size_t n = 1; n <= LENGTH(periodic_fires); n += n / 2 + 1)
		for (int others = 0; others <= 2000; others += 400) {
			wheel_open(0, NULL);
			memset(periodic_fires, 0, sizeof periodic_fires);
			for (int i = 0; i < others; i++)
				add(1 + (int64_t)rng_below(&rng, 3 * WQ_SECOND), 1);
			for (size_t i = 0; i < n; i++)
				IS(wq_wheel_every(w, WQ_MILLISECOND + (int64_t)i, count,
				                  &periodic_fires[i], NULL),
				   WQ_OK);
			no_memory();
			for (int64_t now = 0; now <= WQ_SECOND; now += WQ_MILLISECOND / 2)
				assert_true(wq_wheel_advance(w, now) >= 0);
			for (size_t i = 0; i < n; i++)
				IS(periodic_fires[i], WQ_SECOND / (WQ_MILLISECOND + (int64_t)i));

			int64_t left = (int64_t)n + others - (int64_t)nfired;

			IS(wq_wheel_advance(w, 4 * WQ_SECOND), left);
			IS(wq_wheel_size(w), (int64_t)n);
			wheel_close((int64_t)n);
		}
}

/* What needs none works: firing in order, cancelling, looking. */
static void firing_and_cancelling_need_no_memory(void **state)
{
	enum { N = 4000 };
	static wq_timer_id ids[N];
	int64_t last = 0;

	(void)state;
	for (uint64_t shift = 2; shift < 55; shift += 4) {
		uint64_t rng = shift;
		int64_t live = 0;

		wheel_open(0, NULL);
		for (int i = 0; i < N; i++)
			ids[i] = add((int64_t)(rng_next(&rng) >> (1 + shift)), 1);
		no_memory();

		int64_t calls = mem.calls;

		for (int i = 0; i < N; i++)
			if (i % 4 != 0)
				IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
			else
				live++;
		IS(wq_wheel_size(w), live);
		IS(wq_wheel_advance(w, WQ_NEVER), live);
		for (size_t i = 0; i < nfired; i++) {
			assert_true(i == 0 || fired[i].event.due_ns >= last);
			last = fired[i].event.due_ns;
		}
		IS(mem.calls, calls);
		wheel_close(0);
	}
}

/* A burst goes back: segments, blocks of references; a rest stays. */
static void a_burst_gives_its_memory_back(void **state)
{
	enum { N = 100000 };
	static wq_timer_id ids[N];

	(void)state;
	wheel_open(0, NULL);
	add(WQ_NEVER - 1, 1);
	for (int round = 0; round < 4; round++) {
		int64_t now = round * WQ_HOUR;
		uint64_t rng = 9;

		fires = 0;
		for (int i = 0; i < N; i++)
			IS(wq_wheel_add(w, now + (int64_t)rng_below(&rng, WQ_MINUTE), count, &fires,
			                &ids[i]),
			   WQ_OK);
		assert_true(mem.bytes > N * 32);
		if (round % 2 == 0) {
			IS(wq_wheel_advance(w, now + WQ_MINUTE), N);
			IS(fires, N);
		} else {
			for (int i = 0; i < N; i++)
				IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
		}
		IS(wq_wheel_size(w), 1);
		/* of what came in blocks of 2 MiB, one at most */
		assert_true(mem.bytes < 3 << 20);
	}
	wheel_close(1);
}

/* Beside others that fill their segments exactly, or nearly. */
static void one_timer_to_and_fro_asks_for_little(void **state)
{
	static const int beside[] = {0, 1, 511, 512, 513, 1024, 6000, 6144};

	(void)state;
	for (size_t i = 0; i < LENGTH(beside); i++) {
		int64_t calls = 0;

		wheel_open(0, NULL);
		for (int n = 0; n < beside[i]; n++)
			add(WQ_HOUR, 1);
		for (int n = 0; n < 20000; n++) {
			if (n == 10000)
				calls = mem.calls;
			IS(wq_wheel_cancel(w, add(WQ_MINUTE, 2)), WQ_OK);
		}
		/* now and then a sweep leaves nothing, and some memory goes back */
		assert_in_range(mem.calls - calls, 0, 10000 / 64);
		wheel_close(beside[i]);
	}
}

/* What is kept ready for the next firing of a periodic timer goes with it. */
static void periodic_timers_to_and_fro(void **state)
{
	static const int64_t periods[] = {1, WQ_SECOND};

	(void)state;
	for (size_t i = 0; i < LENGTH(periods); i++) {
		int64_t bytes = 0;

		wheel_open(0, NULL);
		for (int n = 0; n < 20000; n++) {
			wq_timer_id id;

			IS(wq_wheel_every(w, periods[i], note, tag(1), &id), WQ_OK);
			IS(wq_wheel_cancel(w, id), WQ_OK);
			if (n == 10000)
				bytes = mem.peak;
		}
		IS(mem.peak, bytes);
		wheel_close(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_allocation_fails_once),
	    cmocka_unit_test(each_allocation_fails_and_all_later_ones),
	    cmocka_unit_test(first_call_of_each_kind),
	    cmocka_unit_test(periodic_timers_survive),
	    cmocka_unit_test(firing_and_cancelling_need_no_memory),
	    cmocka_unit_test(a_burst_gives_its_memory_back),
	    cmocka_unit_test(one_timer_to_and_fro_asks_for_little),
	    cmocka_unit_test(periodic_timers_to_and_fro),
	};

	return cmocka_run_group_tests_name("wheel memory", tests, NULL, NULL);
}
