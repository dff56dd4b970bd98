/* The promises of wq/timer.h on bad input, and without memory. */
#include "timer_rig.h"

/* ---- bad input -------------------------------------------------------------- */

static void bad_options(void **state)
{
	static const int64_t ticks[] = {-1, INT64_MIN, (INT64_C(1) << 40) + 1, INT64_MAX};
	static const size_t sizes[] = {1, 3, 63, 65, 128, SIZE_MAX};
	struct memory mem;
	wq_timer *t = NULL;

	(void)state;
	memory_init(&mem);

	wq_allocator good = memory_allocator(&mem), bad = good;
	wq_clock no_now = {.now = NULL};
	wq_timer_options o = {.allocator = &good};

	IS(wq_timer_new(NULL, NULL), WQ_EINVAL);
	IS(wq_timer_new(NULL, &o), WQ_EINVAL);
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		o.reserved[i] = 1;
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
		o.reserved[i] = 0;
	}
	for (size_t i = 0; i < LENGTH(ticks); i++) {
		o.tick_ns = ticks[i];
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
	}
	o.tick_ns = 0;
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		o.size = sizes[i];
		IS(wq_timer_new(&t, &o), WQ_EINVAL);
	}
	o.size = 0;
	o.clock = &no_now;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	o.clock = NULL;
	bad.alloc = NULL;
	o.allocator = &bad;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	bad = good;
	bad.free = NULL;
	IS(wq_timer_new(&t, &o), WQ_EINVAL);
	assert_null(t);
	memory_balanced(&mem);
	o.allocator = NULL;
	IS(wq_timer_new(&t, &o), WQ_OK); /* all zero is a good one */
	IS(wq_timer_free(t), 0);
}

static void bad_arguments(void **state)
{
	struct timers *f = *state;
	struct job job = {.who = 1};
	wq_timer_id id = 77;

	IS(wq_timer_free(NULL), 0);
	IS(wq_timer_add(NULL, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_add(f->t, 0, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_add(f->t, -1, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_after(NULL, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_after(f->t, 0, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(NULL, 1, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, 1, NULL, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, 0, fire, &job, &id), WQ_EINVAL);
	IS(wq_timer_every(f->t, INT64_MIN, fire, &job, &id), WQ_EINVAL);
	IS((int64_t)id, 77);
	IS(wq_timer_size(f->t), 0);
	add(f, &job, 10);
	IS(wq_timer_cancel(NULL, job.id), WQ_EINVAL);
	IS(wq_timer_reschedule(NULL, job.id, 0), WQ_EINVAL);
	IS(wq_timer_reschedule(f->t, job.id, -1), WQ_EINVAL);
	IS(wq_timer_size(NULL), WQ_EINVAL);
	IS(wq_timer_next_deadline(NULL), WQ_EINVAL);
	IS(wq_timer_now(NULL), WQ_EINVAL);
	IS(wq_timer_stop(NULL), WQ_EINVAL);
	IS(wq_timer_clock_changed(NULL), WQ_EINVAL);
	IS(wq_timer_next_deadline(f->t), START_NS + 10); /* as it was */
}

/* ---- memory ----------------------------------------------------------------- */

/* What a timer asks for must not fail a second time; nothing fires meanwhile. */
static int64_t far_due(int i)
{
	return START_NS + WQ_HOUR + i * INT64_C(7919) * WQ_MILLISECOND;
}

/* The n-th allocation fails; true if there was an n-th. */
static bool run_without_memory(int64_t n, bool and_later)
{
	enum { N = 1200 };
	static struct job jobs[N];
	wq_manual_clock *mc;
	struct memory mem;
	wq_timer *t = NULL;

	forget();
	memory_init(&mem);
	mem.fail_at = n;
	mem.fail_on = and_later;
	IS(wq_manual_clock_new(&mc, START_NS), WQ_OK);

	wq_allocator a = memory_allocator(&mem);
	wq_clock clock = wq_manual_clock_clock(mc);
	wq_timer_options o = {.allocator = &a, .clock = &clock};
	int rc = wq_timer_new(&t, &o);

	if (rc != WQ_OK) {
		IS(rc, WQ_ENOMEM);
		assert_null(t);
		memory_balanced(&mem);
		IS(wq_manual_clock_free(mc), WQ_OK);
		return true;
	}
	for (int i = 0; i < N; i++) {
		bool every = i % 10 == 0;
		int64_t due = every ? START_NS + WQ_HOUR : far_due(i);

		jobs[i] = (struct job){.who = i};
		do {
			if (every)
				rc = wq_timer_every(t, WQ_HOUR, fire, &jobs[i], &jobs[i].id);
			else
				rc = wq_timer_add(t, due, fire, &jobs[i], &jobs[i].id);
			if (rc == WQ_OK)
				break;
			IS(rc, WQ_ENOMEM);
			IS(wq_timer_size(t), i);
			IS((int64_t)jobs[i].id, 0);
			mem.fail_at = -1;
		} while (true);
		if (i % 5 == 1) {
			rc = wq_timer_reschedule(t, jobs[i].id, due + 1);
			if (rc == WQ_ENOMEM) {
				mem.fail_at = -1; /* it has kept its time */
				rc = wq_timer_reschedule(t, jobs[i].id, due + 1);
			}
			IS(rc, WQ_OK);
		}
	}
	IS(wq_timer_size(t), N);
	IS(wq_timer_next_deadline(t), START_NS + WQ_HOUR);
	for (int i = 0; i < N; i += 2)
		IS(wq_timer_cancel(t, jobs[i].id), WQ_OK);
	/* The rest fires, each once, and without asking for more. */
	IS(wq_manual_clock_set(mc, far_due(N)), WQ_OK);
	wait_for(&notes.n, N / 2);
	for (int i = 1; i < N / 2; i++)
		assert_true(notes.fired[i - 1].event.due_ns <= notes.fired[i].event.due_ns);
	IS(wq_timer_free(t), 0);

	bool failed = mem.failed > 0;

	memory_balanced(&mem);
	IS(wq_manual_clock_free(mc), WQ_OK);
	return failed;
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	memory_fail_each(run_without_memory, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bad_options),
	    WITH_TIMERS(bad_arguments),
	    cmocka_unit_test(each_allocation_fails_once),
	};

	return cmocka_run_group_tests_name("timer, memory", tests, NULL, NULL);
}
