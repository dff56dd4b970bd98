/*
 * The timing wheel: callbacks that add, cancel, reschedule and stop, clocks
 * that jump, and the cases of the peers' own tests. SPEC H3 to H6.
 */
#include "wheel_rig.h"

/* ---- callbacks --------------------------------------------------------------------------------- */

/* What a callback is to do; its tag is noted too. */
struct act {
	int tag;
	void (*then)(struct act *act, const wq_timer_event *event);
	wq_timer_id id; /* of another timer */
	int64_t at_ns;
	int times;
};

static void perform(void *ctx, const wq_timer_event *event)
{
	struct act *act = ctx;

	note(tag(act->tag), event);
	act->then(act, event);
}

static wq_timer_id add_act(int64_t due_ns, struct act *act)
{
	wq_timer_id id;

	IS(wq_wheel_add(w, due_ns, perform, act, &id), WQ_OK);
	return id;
}

static void then_add(struct act *act, const wq_timer_event *event)
{
	(void)event;
	if (act->times-- > 0)
		IS(wq_wheel_add(w, act->at_ns, note, tag(act->tag * 10), NULL), WQ_OK);
}

static void a_callback_adds(void **state)
{
	struct act now = {.tag = 1, .then = then_add, .at_ns = 100, .times = 1};
	struct act past = {.tag = 2, .then = then_add, .at_ns = 5, .times = 1};
	struct act later = {.tag = 3, .then = then_add, .at_ns = 101, .times = 1};

	(void)state;
	wheel_open(0, NULL);
	add_act(100, &now);
	add_act(100, &past);
	add_act(100, &later);
	add(100, 4);
	/* What is due too fires in the same advance: by its time, behind its equals. */
	FIRES(100, 1, 2, 20, 3, 4, 10);
	FIRES(101, 30);
	wheel_close(0);
}

static void then_chain(struct act *act, const wq_timer_event *event)
{
	if (--act->times > 0)
		IS(wq_wheel_add(w, event->due_ns + act->at_ns, perform, act, NULL), WQ_OK);
}

static void then_after(struct act *act, const wq_timer_event *event)
{
	(void)event;
	IS(wq_wheel_after(w, act->at_ns, note, tag(act->tag * 10), NULL), WQ_OK);
	IS(wq_wheel_every(w, act->at_ns * 2, note, tag(act->tag * 10 + 1), NULL), WQ_OK);
}

static void a_callback_adds_a_chain(void **state)
{
	struct act chain = {.tag = 1, .then = then_chain, .at_ns = 10, .times = 500};
	struct act after = {.tag = 2, .then = then_after, .at_ns = 7};

	(void)state;
	wheel_open(0, NULL);
	add_act(10, &chain);
	IS(wq_wheel_advance(w, 10000), 500); /* the clock has jumped over all of them */
	for (int i = 0; i < 500; i++)
		IS(fired[i].event.due_ns, 10 + 10 * i);
	/* In a callback the wheel's time is the one that it is advanced to. */
	add_act(10001, &after);
	FIRES(10100, 2);
	FIRES_NOTHING(10106);
	FIRES(10107, 20);
	FIRES(10114, 21);
	wheel_close(1);
}

static void then_cancel(struct act *act, const wq_timer_event *event)
{
	(void)event;
	IS(wq_wheel_cancel(w, act->id), act->times > 0 ? WQ_OK : WQ_ESTALE);
	act->times--;
	IS(wq_wheel_cancel(w, act->id), WQ_ESTALE);
}

/* [H6] */
static void a_callback_cancels_others_and_itself(void **state)
{
	struct act other = {.tag = 1, .then = then_cancel, .times = 1};
	struct act before = {.tag = 2, .then = then_cancel};
	struct act self = {.tag = 3, .then = then_cancel};
	struct act forever = {.tag = 4, .then = then_cancel, .times = 1};

	(void)state;
	wheel_open(0, NULL);
	add_act(100, &other);
	other.id = add(100, 5); /* due in the same advance, and will not fire */
	before.id = add(99, 6); /* has fired by then */
	add_act(100, &before);
	self.id = add_act(100, &self); /* once: it has fired when its callback runs */
	IS(wq_wheel_every(w, 100, perform, &forever, &forever.id), WQ_OK);
	FIRES(100, 6, 1, 2, 3, 4);
	IS(wq_wheel_size(w), 0);
	FIRES_NOTHING(1000);
	wheel_close(0);
}

static void then_reschedule(struct act *act, const wq_timer_event *event)
{
	(void)event;
	if (act->times-- > 0)
		IS(wq_wheel_reschedule(w, act->id, act->at_ns), WQ_OK);
}

static void then_reschedule_is_stale(struct act *act, const wq_timer_event *event)
{
	assert_true(event->id == act->id);
	IS(wq_wheel_reschedule(w, act->id, act->at_ns), WQ_ESTALE);
}

static void a_callback_reschedules_others_and_itself(void **state)
{
	struct act later = {.tag = 1, .then = then_reschedule, .at_ns = 200, .times = 1};
	struct act now = {.tag = 2, .then = then_reschedule, .at_ns = 50, .times = 1};
	struct act once = {.tag = 3, .then = then_reschedule_is_stale, .at_ns = 300};
	struct act forever = {.tag = 4, .then = then_reschedule, .at_ns = 130, .times = 1};

	(void)state;
	wheel_open(0, NULL);
	add_act(100, &later);
	later.id = add(100, 5);
	add_act(100, &now);
	now.id = add(1000, 6);
	once.id = add_act(100, &once);
	IS(wq_wheel_every(w, 100, perform, &forever, &forever.id), WQ_OK);
	FIRES(100, 1, 2, 6, 3, 4);
	FIRES(130, 4); /* it had moved itself */
	FIRES(200, 5);
	FIRES_NOTHING(229);
	FIRES(230, 4); /* and keeps its period from there on */
	/* never, from its own callback */
	forever.at_ns = WQ_NEVER;
	forever.times = 1;
	FIRES(330, 4);
	FIRES_NOTHING(10000);
	/* into the past, from its own callback: once more in the same advance */
	forever.at_ns = 7;
	forever.times = 1;
	IS(wq_wheel_reschedule(w, forever.id, 10000), WQ_OK);
	FIRES(10000, 4, 4);
	IS(fired[nfired - 1].event.due_ns, 7);
	IS(fired[nfired - 1].event.skipped, 99);
	IS(wq_wheel_next_deadline(w), 10007);
	wheel_close(1);
}

static void then_stop(struct act *act, const wq_timer_event *event)
{
	(void)act;
	(void)event;
	IS(wq_wheel_stop(w), WQ_OK);
	IS(wq_wheel_stop(w), WQ_OK);
	IS(wq_wheel_add(w, 1, note, NULL, NULL), WQ_ESHUTDOWN);
}

/* [H6] RussellLuo/timingwheel deadlocks there. */
static void timingwheel_stop_in_a_callback(void **state)
{
	struct act stop = {.tag = 2, .then = then_stop};
	wq_timer_id id;

	(void)state;
	wheel_open(0, NULL);
	add(100, 1);
	add_act(100, &stop);
	wq_timer_id left = add(100, 3);

	IS(wq_wheel_every(w, 100, note, tag(4), &id), WQ_OK);
	FIRES(150, 1, 2); /* the others are due, but it has stopped */
	FIRES_NOTHING(1000);
	IS(wq_wheel_size(w), 2);
	IS(wq_wheel_after(w, 1, note, NULL, NULL), WQ_ESHUTDOWN);
	IS(wq_wheel_every(w, 1, note, NULL, NULL), WQ_ESHUTDOWN);
	IS(wq_wheel_cancel(w, left), WQ_OK);
	IS(wq_wheel_cancel(w, id), WQ_OK);
	IS(wq_wheel_size(w), 0);
	wheel_close(0);
}

static void stop_from_outside(void **state)
{
	wq_timer_id id = 7;

	(void)state;
	wheel_open(0, NULL);
	add(100, 1);
	IS(wq_wheel_stop(w), WQ_OK);
	IS(wq_wheel_add(w, 100, note, NULL, &id), WQ_ESHUTDOWN);
	IS(wq_wheel_add(w, -1, note, NULL, &id), WQ_EINVAL); /* still first */
	assert_true(id == 7);
	FIRES_NOTHING(WQ_HOUR);
	IS(wq_wheel_size(w), 1);
	wheel_close(1);
}

static void then_try_everything(struct act *act, const wq_timer_event *event)
{
	int64_t size = wq_wheel_size(w);

	(void)act;
	IS(wq_wheel_advance(w, event->now_ns + 1000), WQ_EBUSY);
	IS(wq_wheel_advance(w, 0), WQ_EBUSY);
	IS(wq_wheel_free(w), WQ_EBUSY);
	IS(wq_wheel_size(w), size);
	IS(wq_wheel_next_deadline(w), 101);
}

static void a_callback_may_not_advance_or_free(void **state)
{
	struct act act = {.tag = 1, .then = then_try_everything};

	(void)state;
	wheel_open(0, NULL);
	add_act(100, &act);
	add(101, 2);
	FIRES(100, 1);
	IS(wq_wheel_size(w), 1);
	FIRES(101, 2);
	wheel_close(0);
}

/* ---- clocks that jump ------------------------------------------------------------------------------ */

#define YEAR (365 * 24 * WQ_HOUR)

static void years_forward(void **state)
{
	(void)state;
	for (size_t s = 0; s < LENGTH(wheel_sizes); s++) {
		int n = 0;

		wheel_open(3, &(wq_wheel_options){.size = wheel_sizes[s]});
		for (int year = 0; year < 290; year++) /* the last first */
			add(3 + (290 - year) * YEAR, 290 - year);
		IS(wq_wheel_advance(w, 3 + 100 * YEAR + YEAR / 2), 100);
		IS(wq_wheel_next_deadline(w), 3 + 101 * YEAR);
		add(3 + 101 * YEAR, 291);
		FIRES(3 + 101 * YEAR, 101, 291);
		IS(wq_wheel_advance(w, WQ_NEVER), 290 - 101);
		for (size_t i = 0; i < nfired; i++)
			if (fired[i].tag != 291)
				IS(fired[i].tag, ++n);
		wheel_close(0);
	}
}

static void back_fires_nothing_early_and_loses_nothing(void **state)
{
	wq_timer_id id;

	(void)state;
	wheel_open(WQ_HOUR, NULL);
	add(2 * WQ_HOUR, 1);
	add(4 * WQ_HOUR, 2);
	add(10, 3);
	IS(wq_wheel_every(w, WQ_HOUR, note, tag(4), &id), WQ_OK);
	FIRES(3 * WQ_HOUR, 3, 1, 4);
	/* back to where it began, and further */
	FIRES_NOTHING(WQ_HOUR);
	IS(wq_wheel_after(w, 5, note, tag(5), NULL), WQ_OK); /* the wheel's time went back too */
	FIRES_NOTHING(0);
	IS(wq_wheel_size(w), 3);
	add(WQ_HOUR + 3, 6);
	add(3 * WQ_HOUR, 7); /* between then and now */
	add(5 * WQ_HOUR, 8);
	IS(wq_wheel_next_deadline(w), WQ_HOUR + 3);
	FIRES_NOTHING(WQ_HOUR + 2);
	FIRES(WQ_HOUR + 4, 6);
	FIRES(WQ_HOUR + 5, 5);
	FIRES_NOTHING(3 * WQ_HOUR - 1);
	FIRES(3 * WQ_HOUR, 7);
	FIRES_NOTHING(4 * WQ_HOUR - 1);
	FIRES(4 * WQ_HOUR, 2, 4);
	FIRES(5 * WQ_HOUR, 8, 4);
	IS(wq_wheel_cancel(w, id), WQ_OK);
	wheel_close(0);
}

/* To the end of time by mistake, and back: everything that is added then still works. */
static void to_the_end_of_time_and_back(void **state)
{
	enum { N = 3000 };

	(void)state;
	wheel_open(0, NULL);
	add(WQ_NEVER - 1, 1);
	FIRES(WQ_NEVER, 1);
	FIRES_NOTHING(1000);
	for (int i = N; i > 0; i--)
		add(1000 + i, i);
	for (int i = 1; i <= N; i += 2)
		FIRES(1000 + i + 1, i, i + 1);
	wheel_close(0);
}

/* ---- the peers' own cases --------------------------------------------------------------------------------- */

/* Kafka's TimerTest.testAlreadyExpiredTask. */
static void kafka_already_expired_tasks(void **state)
{
	(void)state;
	wheel_open(1000, &(wq_wheel_options){.tick_ns = 1, .size = 2});
	for (int i = -5; i < 0; i++)
		IS(wq_wheel_after(w, i, note, tag(6 + i), NULL), WQ_OK);
	FIRES(1000, 1, 2, 3, 4, 5);
	wheel_close(0);
}

/* Kafka's TimerTest.testTaskExpiration: a tick of 1, 3 (here 4) buckets, several levels of overflow. */
static void kafka_task_expiration(void **state)
{
	int64_t last = 0;
	int n = 0;

	(void)state;
	wheel_open(0, &(wq_wheel_options){.tick_ns = WQ_MILLISECOND, .size = 4});
	for (int i = 0; i < 5; i++, n++)
		add(i * WQ_MILLISECOND, i + 1); /* the first level */
	for (int i = 10; i < 100; i++, n++)
		add(i * WQ_MILLISECOND, i + 1); /* overflows */
	for (int i = 100; i < 500; i++, n++)
		add(i * WQ_MILLISECOND, i + 1); /* and overflows again */
	IS(wq_wheel_size(w), n);
	while (wq_wheel_size(w) > 0)
		assert_true(wq_wheel_advance(w, wq_wheel_next_deadline(w)) > 0);
	IS((int64_t)nfired, n);
	for (size_t i = 0; i < nfired; i++) {
		assert_true(fired[i].event.due_ns >= last);
		last = fired[i].event.due_ns;
		IS(fired[i].event.now_ns, last); /* exactly then */
		IS(fired[i].tag, last / WQ_MILLISECOND + 1);
	}
	wheel_close(0);
}

/* [H4] Kafka rounds an expiry down to its tick, and fires early by up to one. */
static void kafka_does_not_round_down(void **state)
{
	const int64_t tick = WQ_SECOND;

	(void)state;
	wheel_open(0, &(wq_wheel_options){.tick_ns = tick, .size = 32});
	add(tick + tick / 2, 1);
	add(100 * tick + tick - 1, 2);
	FIRES_NOTHING(tick); /* the beginning of its bucket */
	FIRES_NOTHING(tick + tick / 2 - 1);
	FIRES(tick + tick / 2, 1);
	FIRES_NOTHING(100 * tick + tick - 2);
	FIRES(100 * tick + tick - 1, 2);
	wheel_close(0);
}

/* Kafka's TimerTaskListTest: sizes as tasks are added, removed, and added again elsewhere. */
static void kafka_task_list(void **state)
{
	wq_timer_id ids[10];

	(void)state;
	wheel_open(0, NULL);
	for (int i = 0; i < 10; i++) {
		ids[i] = add(1000 + i, i + 1);
		IS(wq_wheel_size(w), i + 1);
	}
	for (int i = 0; i < 10; i++) {
		IS(wq_wheel_reschedule(w, ids[i], WQ_HOUR - i), WQ_OK); /* into another list */
		IS(wq_wheel_size(w), 10);
	}
	for (int i = 0; i < 5; i++) {
		IS(wq_wheel_cancel(w, ids[i]), WQ_OK);
		IS(wq_wheel_size(w), 9 - i);
	}
	FIRES(WQ_HOUR, 10, 9, 8, 7, 6);
	wheel_close(0);
}

/* RussellLuo/timingwheel's TestTimingWheel_AfterFunc: 1 ms to 1 s with a tick of 1 ms and 20 buckets. */
static void timingwheel_after_func(void **state)
{
	static const int ms[] = {1, 5, 10, 50, 100, 500, 1000};

	(void)state;
	wheel_open(5, &(wq_wheel_options){.tick_ns = WQ_MILLISECOND, .size = 16});
	for (size_t i = 0; i < LENGTH(ms); i++) {
		int64_t from = nfired > 0 ? fired[nfired - 1].event.now_ns : 5;

		IS(wq_wheel_after(w, ms[i] * WQ_MILLISECOND, note, tag(1), NULL), WQ_OK);
		FIRES_NOTHING(from + ms[i] * WQ_MILLISECOND - 1);
		FIRES(from + ms[i] * WQ_MILLISECOND, 1); /* not within 5 ms: exactly */
	}
	wheel_close(0);
}

/* RussellLuo/timingwheel's TestTimingWheel_ScheduleFunc: a schedule that ends by itself. */
static void timingwheel_schedule_func(void **state)
{
	struct act act = {.tag = 1, .then = then_chain, .at_ns = 50 * WQ_MILLISECOND, .times = 5};

	(void)state;
	wheel_open(0, NULL);
	add_act(50 * WQ_MILLISECOND, &act);
	for (int64_t t = 0; t <= WQ_SECOND; t += WQ_MILLISECOND)
		wq_wheel_advance(w, t);
	IS((int64_t)nfired, 5);
	for (int i = 0; i < 5; i++)
		IS(fired[i].event.now_ns, (i + 1) * 50 * WQ_MILLISECOND);
	wheel_close(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_callback_adds),
	    cmocka_unit_test(a_callback_adds_a_chain),
	    cmocka_unit_test(a_callback_cancels_others_and_itself),
	    cmocka_unit_test(a_callback_reschedules_others_and_itself),
	    cmocka_unit_test(timingwheel_stop_in_a_callback),
	    cmocka_unit_test(stop_from_outside),
	    cmocka_unit_test(a_callback_may_not_advance_or_free),
	    cmocka_unit_test(years_forward),
	    cmocka_unit_test(back_fires_nothing_early_and_loses_nothing),
	    cmocka_unit_test(to_the_end_of_time_and_back),
	    cmocka_unit_test(kafka_already_expired_tasks),
	    cmocka_unit_test(kafka_task_expiration),
	    cmocka_unit_test(kafka_does_not_round_down),
	    cmocka_unit_test(kafka_task_list),
	    cmocka_unit_test(timingwheel_after_func),
	    cmocka_unit_test(timingwheel_schedule_func),
	};

	return cmocka_run_group_tests_name("wheel callbacks", tests, NULL, NULL);
}
