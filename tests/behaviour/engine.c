/*
 * The seam: a queue on an engine that only records. Every public call reaches
 * its function with what it was given, answers what that answers, and a bad
 * argument never gets so far.
 */
#include "../support/support.h"

#include "../support/cancel.h"

/* What the last call was, and what the next one will answer. */
static struct record {
	int calls;
	const char *what;
	void *state;
	const void *p1, *p2;
	size_t n1, n2, n3;
	int64_t time_ns;
	int64_t answer;
	wq_queue *opened_for;
	wq_options options;
	wq_clock clock;
	wq_allocator allocator;
	wq_add_options add; /* of add_with */
	wq_turn turn;       /* as it came in */
	int settled;        /* what the next turn says */
	char letters[8];    /* the keys for which dead_letter was called */
} rec;

static char the_state;

static int64_t note(const char *what, void *state, const void *p1, const void *p2, size_t n1,
                    size_t n2, size_t n3, int64_t time_ns)
{
	rec.calls++;
	rec.what = what;
	rec.state = state;
	rec.p1 = p1;
	rec.p2 = p2;
	rec.n1 = n1;
	rec.n2 = n2;
	rec.n3 = n3;
	rec.time_ns = time_ns;
	return rec.answer;
}

static int e_open(wq_queue *q, const wq_options *options, void **state)
{
	rec.opened_for = q;
	rec.options = *options;
	if (options->clock != NULL)
		rec.clock = *options->clock;
	if (options->allocator != NULL)
		rec.allocator = *options->allocator;
	*state = &the_state;
	return (int)note("open", NULL, options->engine_options, NULL, 0, 0, 0, 0);
}

static int e_close(void *s)
{
	return (int)note("close", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_add(void *s, const void *key, size_t len)
{
	return (int)note("add", s, key, NULL, len, 0, 0, 0);
}

static int e_add_with(void *s, const void *key, size_t len, const wq_add_options *options)
{
	rec.add = *options;
	return (int)note("add_with", s, key, NULL, len, 0, 0, 0);
}

static int e_reschedule(void *s, const void *key, size_t len, int64_t due_ns)
{
	return (int)note("reschedule", s, key, NULL, len, 0, 0, due_ns);
}

static int e_cancel(void *s, const void *key, size_t len, int64_t deadline_ns, unsigned *was)
{
	return (int)note("cancel", s, key, was, len, 0, 0, deadline_ns);
}

static int64_t e_next_deadline(void *s)
{
	return note("next_deadline", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_add_many(void *s, const wq_key *keys, size_t n, int *outcomes)
{
	return (int)note("add_many", s, keys, outcomes, n, 0, 0, 0);
}

static int e_get(void *s, wq_item *item, int64_t deadline_ns)
{
	return (int)note("get", s, item, NULL, 0, 0, 0, deadline_ns);
}

static int e_get_many(void *s, wq_item *items, size_t max, int64_t deadline_ns)
{
	return (int)note("get_many", s, items, NULL, 0, 0, max, deadline_ns);
}

static int e_interrupt(void *s, int n)
{
	return (int)note("interrupt", s, NULL, NULL, (size_t)n, 0, 0, 0);
}

static int e_done(void *s, const wq_item *item)
{
	return (int)note("done", s, item, NULL, 0, 0, 0, 0);
}

static int e_done_many(void *s, const wq_item *items, size_t n, int *outcomes)
{
	return (int)note("done_many", s, items, outcomes, 0, n, 0, 0);
}

static int e_next(void *s, wq_item *item, int64_t deadline_ns)
{
	return (int)note("next", s, item, NULL, 0, 0, 0, deadline_ns);
}

static int e_next_many(void *s, wq_item *items, size_t n, size_t max, int64_t deadline_ns)
{
	return (int)note("next_many", s, items, NULL, 0, n, max, deadline_ns);
}

static int e_requeue(void *s, const wq_item *item, enum wq_where where)
{
	return (int)note("requeue", s, item, NULL, (size_t)where, 0, 0, 0);
}

static int e_extend(void *s, const wq_item *item, int64_t span_ns)
{
	return (int)note("extend", s, item, NULL, 0, 0, 0, span_ns);
}

static int e_lost(void *s, const wq_item *item)
{
	return (int)note("lost", s, item, NULL, 0, 0, 0, 0);
}

static int e_wait_idle(void *s, int64_t deadline_ns)
{
	return (int)note("wait_idle", s, NULL, NULL, 0, 0, 0, deadline_ns);
}

static int e_wait_key(void *s, const void *key, size_t len, int64_t deadline_ns)
{
	return (int)note("wait_key", s, key, NULL, len, 0, 0, deadline_ns);
}

static int e_shutdown(void *s)
{
	return (int)note("shutdown", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_shutting_down(void *s)
{
	return (int)note("shutting_down", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_drain(void *s, int64_t deadline_ns, const wq_drain_options *options, wq_report *report)
{
	return (int)note("drain", s, options, report, 0, 0, 0, deadline_ns);
}

static int64_t e_len(void *s)
{
	return note("len", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_state(void *s, const void *key, size_t len)
{
	return (int)note("state", s, key, NULL, len, 0, 0, 0);
}

static int64_t e_walk(void *s, wq_walk_fn fn, void *ctx)
{
	return note("walk", s, ctx, fn != NULL ? &the_state : NULL, 0, 0, 0, 0);
}

static int e_fd(void *s)
{
	return (int)note("fd", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_clock_changed(void *s)
{
	return (int)note("clock_changed", s, NULL, NULL, 0, 0, 0, 0);
}

static int e_forget(void *s, const wq_item *item, const void *key, size_t len)
{
	return (int)note("forget", s, item, key, len, 0, 0, 0);
}

static int e_set_failures(void *s, const void *key, size_t len, uint32_t failures)
{
	return (int)note("set_failures", s, key, NULL, len, failures, 0, 0);
}

static int64_t e_failures(void *s, const wq_item *item, const void *key, size_t len)
{
	return note("failures", s, item, key, len, 0, 0, 0);
}

/* The item is a copy: it is looked at, and renewed or filled as the contract says. */
static int e_turn(void *s, wq_item *item, wq_turn *turn)
{
	rec.turn = *turn;
	note("turn", s, item->key, NULL, item->len, (size_t)item->token, 0, turn->deadline_ns);
	turn->settled = turn->steps & WQ_TURN_BURY ? WQ_DEAD : rec.settled;
	if (turn->settled < 0)
		return turn->settled;
	if (turn->settled == WQ_DEAD && turn->steps & WQ_TURN_SETTLE) {
		item->token++;
		return WQ_OK;
	}
	if (!(turn->steps & WQ_TURN_GET))
		return WQ_OK;
	if (rec.answer == WQ_OK)
		*item = (wq_item){.key = "next", .len = 4, .token = 99};
	return (int)rec.answer;
}

static int e_snapshot(void *s, wq_snapshot *out)
{
	IS(out->now_ns | (int64_t)out->queued, 0); /* zero already */
	out->queued = 5;
	return (int)note("snapshot", s, out, NULL, 0, 0, 0, 0);
}

static uint32_t e_gate_change(void *s, wq_gate *gate)
{
	return (uint32_t)note("gate_change", s, gate, NULL, 0, 0, 0, 0);
}

static const wq_engine recorder = {
    .version = WQ_ENGINE_VERSION,
    .size = sizeof(wq_engine),
    .name = "recorder",
    .open = e_open,
    .close = e_close,
    .add = e_add,
    .add_with = e_add_with,
    .reschedule = e_reschedule,
    .cancel = e_cancel,
    .next_deadline = e_next_deadline,
    .add_many = e_add_many,
    .get = e_get,
    .get_many = e_get_many,
    .interrupt = e_interrupt,
    .done = e_done,
    .done_many = e_done_many,
    .next = e_next,
    .next_many = e_next_many,
    .requeue = e_requeue,
    .extend = e_extend,
    .lost = e_lost,
    .wait_idle = e_wait_idle,
    .wait_key = e_wait_key,
    .shutdown = e_shutdown,
    .shutting_down = e_shutting_down,
    .drain = e_drain,
    .len = e_len,
    .state = e_state,
    .walk = e_walk,
    .fd = e_fd,
    .clock_changed = e_clock_changed,
    .forget = e_forget,
    .failures = e_failures,
    .set_failures = e_set_failures,
    .turn = e_turn,
    .gate_change = e_gate_change,
    .snapshot = e_snapshot,
};

static int64_t fixed_now(void *ctx)
{
	(void)ctx;
	return START_NS;
}

static const wq_clock fixed = {.now = fixed_now};

static wq_queue *open_recorder(void)
{
	wq_queue *q = NULL;

	memset(&rec, 0, sizeof rec);
	IS(wq_new(&q, &(wq_options){.engine = &recorder,
	                            .clock = &fixed,
	                            .engine_options = &rec,
	                            .within = 1}),
	   WQ_OK);
	assert_non_null(q);
	IS(rec.options.within, 1);
	return q;
}

static void close_recorder(wq_queue *q)
{
	rec.answer = 0;
	IS(wq_free(q), 0);
	assert_string_equal(rec.what, "close");
}

/* The call reaches function `name` exactly once, with the engine's state, and its answer comes back. */
#define REACHES(call, name)                                                                        \
	do {                                                                                       \
		int calls_ = rec.calls;                                                            \
		rec.answer = WQ_EIO; /* which the memory engine never answers */                   \
		IS(call, WQ_EIO);                                                                  \
		IS(rec.calls, calls_ + 1);                                                         \
		assert_string_equal(rec.what, name);                                               \
		assert_ptr_equal(rec.state, &the_state);                                           \
		rec.answer = 5;                                                                    \
		IS(call, 5);                                                                       \
	} while (0)

static int ignore(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	(void)info;
	return 0;
}

static void options_arrive_complete(void **state)
{
	wq_queue *q = open_recorder();

	(void)state;
	IS(rec.calls, 1);
	assert_ptr_equal(rec.opened_for, q);
	assert_ptr_equal(rec.p1, &rec); /* engine_options as they are */
	assert_non_null(rec.options.allocator);
	assert_non_null(rec.allocator.alloc);
	assert_non_null(rec.allocator.free);
	assert_true(rec.clock.now == fixed_now);
	close_recorder(q);

	/* no clock given: still one arrives */
	memset(&rec, 0, sizeof rec);
	IS(wq_new(&q, &(wq_options){.engine = &recorder, .max_keys = 7, .seed = 8, .spin_ns = 9}),
	   WQ_OK);
	assert_non_null(rec.options.clock);
	assert_non_null(rec.clock.now);
	IS((int64_t)rec.options.max_keys, 7);
	IS((int64_t)rec.options.seed, 8);
	IS(rec.options.spin_ns, 9);
	close_recorder(q);
}

static int whole_key(void *ctx, const void *key, size_t len, wq_key *group)
{
	(void)ctx;
	*group = (wq_key){key, len};
	return WQ_OK;
}

/* [PRIORITY] [GROUP] [VALUE] What an engine cannot do is refused, and it is not opened. */
static void features(void **state)
{
	static const struct {
		wq_options o;
		uint64_t needs;
		const char *text;
	} cases[] = {
	    {{.priorities = 1}, WQ_FEATURE_PRIORITY, "the engine \"part\" has no priorities"},
	    {{.priorities = 1, .aging_ns = 1},
	     WQ_FEATURE_PRIORITY,
	     "the engine \"part\" has no priorities"},
	    {{.group = whole_key}, WQ_FEATURE_GROUP, "the engine \"part\" has no groups"},
	    {{.values = 1}, WQ_FEATURE_VALUE, "the engine \"part\" has no values"},
	};
	wq_engine e = recorder;
	wq_queue *q = NULL;

	(void)state;
	memset(&rec, 0, sizeof rec);
	e.name = "part";
	for (size_t i = 0; i < LENGTH(cases); i++) {
		wq_options o = cases[i].o;

		o.engine = &e;
		e.features = ~cases[i].needs;
		IS(wq_new(&q, &o), WQ_ENOTSUP);
		assert_string_equal(wq_last_error(), cases[i].text);
		assert_null(q);
		IS(rec.calls, 0);
		e.features = cases[i].needs;
		IS(wq_new(&q, &o), WQ_OK);
		IS((int64_t)rec.options.priorities, cases[i].o.priorities);
		IS((int64_t)rec.options.values, cases[i].o.values);
		assert_true(rec.options.group == cases[i].o.group);
		close_recorder(q);
		memset(&rec, 0, sizeof rec);
		q = NULL;
	}
	e.features = 0;
	e.name = NULL;
	IS(wq_new(&q, &(wq_options){.engine = &e, .values = 1}), WQ_ENOTSUP);
	assert_string_equal(wq_last_error(), "the engine \"\" has no values");
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_OK);
	IS(wq_add_with(q, "a", 1, &(wq_add_options){.priority = 1}), WQ_EINVAL);
	IS(wq_add_with(q, "a", 1, &(wq_add_options){.value = "v", .value_len = 1}), WQ_EINVAL);
	IS(rec.calls, 1);
	close_recorder(q);
}

/* An add with a priority or a value goes to add_with, without a time. */
static void rich_adds_go_through(void **state)
{
	wq_engine e = recorder;
	wq_queue *q = NULL;

	(void)state;
	memset(&rec, 0, sizeof rec);
	e.features = WQ_FEATURE_PRIORITY | WQ_FEATURE_VALUE;
	IS(wq_new(&q, &(wq_options){.engine = &e, .priorities = 1, .values = 1}), WQ_OK);
	REACHES(wq_add_with(q, "a", 1, &(wq_add_options){.priority = -3}), "add_with");
	REACHES(wq_add_with(q, "a", 1, &(wq_add_options){.value = ""}), "add_with");
	REACHES(wq_add_with(q, "a", 1, &(wq_add_options){.value = "v", .value_len = 1}),
	        "add_with");
	REACHES(wq_add_with(q, "a", 1, &(wq_add_options){.priority = 0}), "add");
	close_recorder(q);
}

static void every_call_goes_through(void **state)
{
	wq_queue *q = open_recorder();
	wq_item it[3];
	wq_key keys[2] = {{"a", 1}, {"b", 1}};
	int outcomes[3];
	wq_report report;
	wq_drain_options drain = {.left = ignore};
	wq_snapshot snapshot = {.queued = 7};

	(void)state;
	memset(it, 0, sizeof it);
	REACHES(wq_add(q, "abc", 3), "add");
	IS((int64_t)rec.n1, 3);
	assert_memory_equal(rec.p1, "abc", 3);
	REACHES(wq_add(q, NULL, 0), "add");
	IS((int64_t)rec.n1, 0);
	REACHES(wq_add_str(q, "abcd"), "add");
	IS((int64_t)rec.n1, 4);
	REACHES(wq_add_many(q, keys, 2, outcomes), "add_many");
	assert_ptr_equal(rec.p1, keys);
	assert_ptr_equal(rec.p2, outcomes);
	IS((int64_t)rec.n1, 2);
	REACHES(wq_get(q, it), "get");
	assert_ptr_equal(rec.p1, it);
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_get_until(q, it, 77), "get");
	IS(rec.time_ns, 77);
	REACHES(wq_get_for(q, it, 77), "get");
	IS(rec.time_ns, START_NS + 77);
	REACHES(wq_get_for(q, it, WQ_NEVER), "get");
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_get_for(q, it, WQ_NEVER - 1), "get"); /* saturates */
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_get_for(q, it, INT64_MIN), "get"); /* never WQ_NOWAIT */
	assert_true(rec.time_ns >= 0 && rec.time_ns <= START_NS);
	REACHES(wq_try_get(q, it), "get");
	IS(rec.time_ns, WQ_NOWAIT);
	REACHES(wq_get_many_until(q, it, 3, 99), "get_many");
	assert_ptr_equal(rec.p1, it);
	IS((int64_t)rec.n3, 3);
	IS(rec.time_ns, 99);
	REACHES(wq_get_many_for(q, it, 3, 99), "get_many");
	IS((int64_t)rec.n3, 3);
	IS(rec.time_ns, START_NS + 99);
	REACHES(wq_get_many_for(q, it, 3, -1), "get_many"); /* never WQ_NOWAIT */
	IS(rec.time_ns, START_NS);
	REACHES(wq_interrupt(q, 6), "interrupt");
	IS((int64_t)rec.n1, 6);
	REACHES(wq_done(q, it), "done");
	assert_ptr_equal(rec.p1, it);
	REACHES(wq_done_many(q, it, 3, outcomes), "done_many");
	assert_ptr_equal(rec.p1, it);
	assert_ptr_equal(rec.p2, outcomes);
	IS((int64_t)rec.n2, 3);
	REACHES(wq_next(q, it), "next");
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_next_until(q, it, 44), "next");
	assert_ptr_equal(rec.p1, it);
	IS(rec.time_ns, 44);
	REACHES(wq_next_for(q, it, 44), "next");
	assert_ptr_equal(rec.p1, it);
	IS(rec.time_ns, START_NS + 44);
	REACHES(wq_next_for(q, it, WQ_NEVER), "next");
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_next_many_until(q, it, 2, 3, 55), "next_many");
	IS((int64_t)rec.n2, 2);
	IS((int64_t)rec.n3, 3);
	IS(rec.time_ns, 55);
	REACHES(wq_next_many_for(q, it, 2, 3, 55), "next_many");
	IS((int64_t)rec.n2, 2);
	IS((int64_t)rec.n3, 3);
	IS(rec.time_ns, START_NS + 55);
	REACHES(wq_requeue(q, it, WQ_HEAD), "requeue");
	IS((int64_t)rec.n1, WQ_HEAD);
	REACHES(wq_requeue(q, it, WQ_TAIL), "requeue");
	IS((int64_t)rec.n1, WQ_TAIL);
	REACHES(wq_extend(q, it, 9), "extend");
	IS(rec.time_ns, 9);
	REACHES(wq_lost(q, it), "lost");
	REACHES(wq_wait_idle_until(q, 3), "wait_idle");
	IS(rec.time_ns, 3);
	REACHES(wq_wait_idle_for(q, 3), "wait_idle");
	IS(rec.time_ns, START_NS + 3);
	REACHES(wq_wait_key_until(q, "key", 3, 4), "wait_key");
	IS((int64_t)rec.n1, 3);
	IS(rec.time_ns, 4);
	REACHES(wq_wait_key_for(q, "key", 3, 4), "wait_key");
	IS(rec.time_ns, START_NS + 4);
	REACHES(wq_shutdown(q), "shutdown");
	REACHES(wq_shutting_down(q), "shutting_down");
	REACHES(wq_drain_until(q, 5, &drain, &report), "drain");
	assert_ptr_equal(rec.p1, &drain);
	assert_ptr_equal(rec.p2, &report);
	IS(rec.time_ns, 5);
	REACHES(wq_drain_for(q, 5, NULL, &report), "drain");
	assert_null(rec.p1);
	IS(rec.time_ns, START_NS + 5);
	REACHES(wq_drain_for(q, WQ_NEVER, &drain, NULL), "drain");
	assert_ptr_equal(rec.p1, &drain);
	assert_null(rec.p2);
	IS(rec.time_ns, WQ_NEVER);
	REACHES(wq_len(q), "len");
	REACHES(wq_state(q, "k", 1), "state");
	REACHES(wq_walk(q, ignore, keys), "walk");
	assert_ptr_equal(rec.p1, keys);
	assert_non_null(rec.p2);
	REACHES(wq_snapshot_take(q, &snapshot), "snapshot");
	assert_ptr_equal(rec.p1, &snapshot);
	IS((int64_t)snapshot.queued, 5);
	REACHES(wq_fd(q), "fd");
	REACHES(wq_clock_changed(q), "clock_changed");
	close_recorder(q);
}

static void calls_on_time_and_limits_go_through(void **state)
{
	wq_queue *q = open_recorder();
	wq_add_options o = {.at_ns = 8, .policy = WQ_MAX};
	wq_item it = {.token = 1};
	unsigned was = 0;

	(void)state;
	REACHES(wq_add_with(q, "abc", 3, &o), "add_with");
	IS((int64_t)rec.n1, 3);
	assert_memory_equal(&rec.add, &o, sizeof o);
	REACHES(wq_add_with(q, "abc", 3, NULL), "add");
	REACHES(wq_add_after(q, "abc", 3, 9), "add_with");
	IS(rec.add.after_ns, 9);
	REACHES(wq_add_after(q, "abc", 3, 0), "add_with"); /* counts as a retry */
	REACHES(wq_add_at(q, "abc", 3, 9), "add_with");
	IS(rec.add.at_ns, 9);
	REACHES(wq_add_limited(q, "abc", 3), "add_with");
	IS(rec.add.limited, 1);
	IS(rec.add.policy, WQ_MIN);
	IS(rec.add.after_ns | rec.add.at_ns, 0);
	o = (wq_add_options){.limited = 1, .policy = WQ_REMIND};
	REACHES(wq_add_with(q, "abc", 3, &o), "add_with");
	assert_memory_equal(&rec.add, &o, sizeof o);
	o = (wq_add_options){.after_ns = 5, .within_ns = 6, .policy = WQ_REPLACE};
	REACHES(wq_add_with(q, "abc", 3, &o), "add_with");
	assert_memory_equal(&rec.add, &o, sizeof o);
	REACHES(wq_reschedule(q, "abc", 3, 4), "reschedule");
	IS(rec.time_ns, 4);
	REACHES(cancel_key(q, "abc", 3), "cancel");
	IS(rec.time_ns, WQ_NOWAIT);
	REACHES(cancel_key_until(q, "abc", 3, 4), "cancel");
	IS(rec.time_ns, 4);
	REACHES(wq_cancel_for(q, "abc", 3, 4, &was), "cancel");
	assert_memory_equal(rec.p1, "abc", 3);
	assert_ptr_equal(rec.p2, &was);
	IS(rec.time_ns, START_NS + 4);
	REACHES(wq_cancel_for(q, "abc", 3, -4, NULL), "cancel"); /* never WQ_NOWAIT */
	IS(rec.time_ns, START_NS);
	REACHES(wq_cancel(q, "abc", 3, NULL), "cancel");
	assert_null(rec.p2);
	REACHES(wq_next_deadline(q), "next_deadline");
	REACHES(wq_forget(q, "abc", 3), "forget");
	assert_null(rec.p1);
	assert_memory_equal(rec.p2, "abc", 3);
	IS((int64_t)rec.n1, 3);
	REACHES(wq_forget_item(q, &it), "forget");
	assert_ptr_equal(rec.p1, &it);
	REACHES(wq_failures(q, "abc", 3), "failures");
	assert_null(rec.p1);
	assert_memory_equal(rec.p2, "abc", 3);
	REACHES(wq_failures_item(q, &it), "failures");
	assert_ptr_equal(rec.p1, &it);
	REACHES(wq_set_failures(q, "abc", 3, 7), "set_failures");
	assert_memory_equal(rec.p1, "abc", 3);
	IS((int64_t)rec.n1, 3);
	IS((int64_t)rec.n2, 7);
	close_recorder(q);
}

static void note_letter(void *ctx, const wq_item *item)
{
	struct record *r = ctx;
	size_t n = strlen(r->letters);

	IS((int64_t)item->token, 43); /* renewed */
	assert_true(n + 1 < sizeof r->letters);
	r->letters[n] = *(const char *)item->key;
}

static wq_queue *open_turns(void)
{
	wq_queue *q = NULL;

	memset(&rec, 0, sizeof rec);
	IS(wq_new(&q, &(wq_options){.engine = &recorder,
	                            .clock = &fixed,
	                            .max_attempts = 5,
	                            .dead_letter = note_letter,
	                            .dead_ctx = &rec}),
	   WQ_OK);
	IS(rec.options.max_attempts, 5);
	assert_non_null(rec.options.limiter);
	return q;
}

/* wq_settle(), wq_retry(): a turn without a Get. */
static void a_turn_that_settles(void **state)
{
	static const int answers[] = {WQ_OK,   WQ_QUEUED, WQ_DELAYED,     WQ_CANCELLED,
	                              WQ_LEFT, WQ_ESTALE, WQ_EOTHERQUEUE, WQ_EIO};
	wq_queue *q = open_turns();
	wq_item it = {.key = "k", .len = 1, .token = 42}, before = it;

	(void)state;
	for (size_t i = 0; i < LENGTH(answers); i++) {
		int calls = rec.calls;

		rec.settled = answers[i];
		IS(wq_settle(q, &it, wq_again_after(17)), answers[i]);
		IS(rec.turn.steps, WQ_TURN_SETTLE);
		IS(rec.turn.verdict.kind, WQ_VERDICT_AGAIN);
		IS(rec.turn.verdict.delay_ns, 17);
		assert_null(rec.turn.gate);
		IS((int64_t)rec.n2, 42);
		IS(wq_retry(q, &it), answers[i]);
		IS(rec.turn.verdict.kind, WQ_VERDICT_RETRY);
		IS(rec.turn.verdict.delay_ns, 0);
		IS(rec.calls, calls + 2);
	}
	/* dead: the letter is sent between two turns */
	rec.settled = WQ_DEAD;
	IS(wq_retry(q, &it), WQ_DEAD);
	IS(rec.turn.steps, WQ_TURN_BURY);
	IS((int64_t)rec.n2, 43);
	assert_string_equal(rec.letters, "k");
	assert_memory_equal(&it, &before, sizeof it);
	close_recorder(q);
}

/* wq_settle_next_until(): the same with one. */
static void a_turn_that_gets(void **state)
{
	wq_queue *q = open_turns();
	wq_item it = {.key = "k", .len = 1, .token = 42}, before = it;
	int settled = 77;

	(void)state;
	rec.settled = WQ_ESTALE;
	IS(wq_settle_next_until(q, &it, WQ_DROP, 5, &settled), WQ_ESTALE);
	IS(settled, 77);
	rec.settled = WQ_DELAYED;
	rec.answer = WQ_ETIMEDOUT;
	IS(wq_settle_next_for(q, &it, wq_retry_after(17), 5, &settled), WQ_ETIMEDOUT);
	IS(rec.turn.deadline_ns, START_NS + 5);
	IS(rec.turn.verdict.kind, WQ_VERDICT_RETRY);
	IS(rec.turn.verdict.delay_ns, 17);
	IS(wq_settle_next_for(q, &it, WQ_DONE, WQ_NEVER, NULL), WQ_ETIMEDOUT);
	IS(rec.turn.deadline_ns, WQ_NEVER);
	settled = 77;
	IS(wq_settle_next_until(q, &it, WQ_FATAL, 5, &settled), WQ_ETIMEDOUT);
	IS(rec.turn.steps, WQ_TURN_SETTLE | WQ_TURN_GET);
	IS(rec.turn.verdict.kind, WQ_VERDICT_FATAL);
	IS(rec.turn.deadline_ns, 5);
	IS(settled, WQ_DELAYED);
	assert_memory_equal(&it, &before, sizeof it);
	rec.settled = WQ_DEAD;
	IS(wq_settle_next_until(q, &it, WQ_RETRY, WQ_NOWAIT, &settled), WQ_ETIMEDOUT);
	IS(rec.turn.steps, WQ_TURN_BURY | WQ_TURN_GET);
	IS(rec.turn.deadline_ns, WQ_NOWAIT);
	IS(settled, WQ_DEAD);
	assert_string_equal(rec.letters, "k");
	assert_memory_equal(&it, &before, sizeof it);
	rec.answer = WQ_OK;
	IS(wq_settle_next_until(q, &it, WQ_RETRY, 5, NULL), WQ_OK);
	assert_string_equal(rec.letters, "kk");
	IS((int64_t)it.token, 99);
	rec.settled = WQ_OK;
	IS(wq_settle_next_until(q, &it, WQ_DONE, 5, &settled), WQ_OK);
	IS(settled, WQ_OK);
	close_recorder(q);
}

static void answers_of_64_bits_come_back_whole(void **state)
{
	wq_queue *q = open_recorder();

	(void)state;
	rec.answer = INT64_C(0x123456789ab);
	IS(wq_len(q), INT64_C(0x123456789ab));
	IS(wq_walk(q, ignore, NULL), INT64_C(0x123456789ab));
	IS(wq_next_deadline(q), INT64_C(0x123456789ab));
	IS(wq_failures(q, "a", 1), INT64_C(0x123456789ab));
	IS(wq_now(q), START_NS);
	close_recorder(q);
}

static void bad_arguments_do_not_arrive(void **state)
{
	wq_queue *q = open_recorder();
	wq_item it, bad;
	int calls = rec.calls;

	(void)state;
	memset(&it, 0, sizeof it);
	bad = it;
	bad.reserved[0] = 1;
	IS(wq_add(q, NULL, 1), WQ_EINVAL);
	IS(wq_add(q, "a", WQ_KEY_MAX + 1), WQ_ETOOLONG);
	IS(wq_add_str(q, NULL), WQ_EINVAL);
	IS(wq_add_many(q, NULL, 1, NULL), WQ_EINVAL);
	IS(wq_get(q, NULL), WQ_EINVAL);
	IS(wq_get_until(q, &it, -2), WQ_EINVAL);
	IS(wq_get_for(q, NULL, 1), WQ_EINVAL);
	IS(wq_try_get(q, NULL), WQ_EINVAL);
	IS(wq_get_many_until(q, &it, 0, 0), WQ_EINVAL);
	IS(wq_interrupt(q, -1), WQ_EINVAL);
	IS(wq_done(q, NULL), WQ_EINVAL);
	IS(wq_done(q, &bad), WQ_EINVAL);
	IS(wq_done_many(q, NULL, 1, NULL), WQ_EINVAL);
	IS(wq_next(q, &bad), WQ_EINVAL);
	IS(wq_next_until(q, &it, -2), WQ_EINVAL);
	IS(wq_next_many_until(q, &it, 2, 1, 0), WQ_EINVAL);
	IS(wq_requeue(q, &bad, WQ_HEAD), WQ_EINVAL);
	IS(wq_requeue(q, &it, (enum wq_where)3), WQ_EINVAL);
	IS(wq_extend(q, &it, 0), WQ_EINVAL);
	IS(wq_lost(q, &bad), WQ_EINVAL);
	IS(wq_add_limited(q, NULL, 1), WQ_EINVAL);
	IS(wq_add_with(q, "a", 1, &(wq_add_options){.limited = 1, .after_ns = 1}), WQ_EINVAL);
	IS(wq_forget(q, NULL, 1), WQ_EINVAL);
	IS(wq_forget(q, "a", SIZE_MAX), WQ_ETOOLONG);
	IS(wq_forget_item(q, &bad), WQ_EINVAL);
	IS(wq_failures(q, NULL, 1), WQ_EINVAL);
	IS(wq_failures_item(q, NULL), WQ_EINVAL);
	IS(wq_set_failures(q, "a", 1, 0), WQ_EINVAL);
	IS(wq_retry(q, &bad), WQ_EINVAL);
	IS(wq_settle(q, NULL, WQ_DONE), WQ_EINVAL);
	IS(wq_settle_next_until(q, &bad, WQ_DONE, 0, NULL), WQ_EINVAL);
	IS(wq_settle_next_until(q, &it, WQ_DONE, -2, NULL), WQ_EINVAL);
	IS(wq_settle(q, &it, (wq_verdict){.kind = WQ_VERDICT_FATAL + 1}), WQ_EINVAL);
	IS(wq_settle(q, &it, (wq_verdict){.kind = WQ_VERDICT_AGAIN, .delay_ns = -1}), WQ_EINVAL);
	IS(wq_settle(q, &it, (wq_verdict){.reserved0 = 1}), WQ_EINVAL);
	IS(wq_settle_next_until(q, &it, (wq_verdict){.kind = UINT32_MAX}, 0, NULL), WQ_EINVAL);
	IS(wq_settle_next_for(q, &bad, WQ_DONE, 0, NULL), WQ_EINVAL);
	IS(wq_next_for(q, &bad, 0), WQ_EINVAL);
	IS(wq_get_many_for(q, &it, 0, 0), WQ_EINVAL);
	IS(wq_next_many_for(q, &it, 2, 1, 0), WQ_EINVAL);
	IS(wq_cancel(q, NULL, 1, NULL), WQ_EINVAL);
	IS(wq_cancel_until(q, "a", 1, -1, NULL), WQ_EINVAL);
	IS(wq_cancel_for(q, "a", SIZE_MAX, 0, NULL), WQ_ETOOLONG);
	IS(wq_snapshot_take(q, NULL), WQ_EINVAL);
	IS(wq_wait_idle_until(q, -1), WQ_EINVAL);
	IS(wq_wait_key_until(q, NULL, 1, 0), WQ_EINVAL);
	IS(wq_wait_key_for(q, "a", SIZE_MAX, 0), WQ_ETOOLONG);
	IS(wq_drain_until(q, -1, NULL, NULL), WQ_EINVAL);
	IS(wq_drain_until(q, 0, &(wq_drain_options){.reserved = {1}}, NULL), WQ_EINVAL);
	IS(wq_state(q, NULL, 2), WQ_EINVAL);
	IS(wq_walk(q, NULL, NULL), WQ_EINVAL);
	IS(rec.calls, calls);
	close_recorder(q);
}

static void an_engine_that_does_not_open(void **state)
{
	struct memory mem;
	wq_queue *q = NULL;

	(void)state;
	memory_init(&mem);
	memset(&rec, 0, sizeof rec);
	wq_allocator a = memory_allocator(&mem);

	rec.answer = WQ_EIO;
	IS(wq_new(&q, &(wq_options){.engine = &recorder, .allocator = &a}), WQ_EIO);
	assert_null(q);
	assert_string_equal(rec.what, "open");
	memory_balanced(&mem);
}

static void an_engine_that_does_not_close(void **state)
{
	struct memory mem;
	wq_queue *q = NULL;

	(void)state;
	memory_init(&mem);
	memset(&rec, 0, sizeof rec);
	wq_allocator a = memory_allocator(&mem);

	IS(wq_new(&q, &(wq_options){.engine = &recorder, .allocator = &a}), WQ_OK);
	rec.answer = WQ_EBUSY;
	IS(wq_free(q), WQ_EBUSY);
	rec.answer = 3;
	IS(wq_len(q), 3);  /* it lives */
	IS(wq_free(q), 3); /* and says how many were given up */
	memory_balanced(&mem);
}

static void an_engine_of_another_version(void **state)
{
	wq_engine e = recorder;
	wq_queue *q = NULL;

	(void)state;
	memset(&rec, 0, sizeof rec);
	e.version = WQ_ENGINE_VERSION + 1;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	assert_string_equal(wq_last_error(), "the engine's table has version 4, not 3");
	e.version = WQ_ENGINE_VERSION - 1;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	assert_string_equal(wq_last_error(), "the engine's table has version 2, not 3");
	e.version = 0;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	assert_string_equal(wq_last_error(), "the engine's table has version 0, not 3");
	e.version = WQ_ENGINE_VERSION;
	/* It cannot be made, or not be freed. */
	e.size = (uint32_t)offsetof(wq_engine, add) - 1;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	e.size = 0;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	e = recorder;
	e.open = NULL;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	e = recorder;
	e.close = NULL;
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_EVERSION);
	assert_string_equal(wq_last_error(), "the engine's table has no open or no close");
	e = recorder;
	assert_null(q);
	IS(rec.calls, 0);
	e.size = (uint32_t)sizeof e + 64; /* of a later time, with more functions */
	IS(wq_new(&q, &(wq_options){.engine = &e}), WQ_OK);
	close_recorder(q);
}

/* ---- tables that lack functions ------------------------------------------ */

/* Every call that needs the engine, but for wq_free(), answers that it does not do this. */
static void does_nothing(wq_queue *q)
{
	wq_item it = {.key = "k", .len = 1, .token = 1}, before = it;
	wq_key key = {"a", 1};
	wq_add_options later = {.after_ns = 1};
	wq_snapshot snapshot = {.queued = 9};
	wq_report report = {.queued = 9};
	unsigned was = 77;
	int outcome = 77;

	IS(wq_add(q, "a", 1), WQ_ENOTSUP);
	IS(wq_add_str(q, "a"), WQ_ENOTSUP);
	IS(wq_add_many(q, &key, 1, &outcome), WQ_ENOTSUP);
	IS(wq_add_with(q, "a", 1, NULL), WQ_ENOTSUP);
	IS(wq_add_with(q, "a", 1, &later), WQ_ENOTSUP);
	IS(wq_add_after(q, "a", 1, 1), WQ_ENOTSUP);
	IS(wq_add_at(q, "a", 1, 1), WQ_ENOTSUP);
	IS(wq_add_limited(q, "a", 1), WQ_ENOTSUP);
	IS(wq_reschedule(q, "a", 1, 1), WQ_ENOTSUP);
	IS(wq_cancel(q, "a", 1, &was), WQ_ENOTSUP);
	IS(wq_cancel_until(q, "a", 1, 0, &was), WQ_ENOTSUP);
	IS(wq_cancel_for(q, "a", 1, 0, &was), WQ_ENOTSUP);
	IS(wq_next_deadline(q), WQ_ENOTSUP);
	IS(wq_forget(q, "a", 1), WQ_ENOTSUP);
	IS(wq_forget_item(q, &it), WQ_ENOTSUP);
	IS(wq_failures(q, "a", 1), WQ_ENOTSUP);
	IS(wq_failures_item(q, &it), WQ_ENOTSUP);
	IS(wq_set_failures(q, "a", 1, 1), WQ_ENOTSUP);
	IS(wq_get(q, &it), WQ_ENOTSUP);
	IS(wq_get_until(q, &it, 0), WQ_ENOTSUP);
	IS(wq_get_for(q, &it, 0), WQ_ENOTSUP);
	IS(wq_try_get(q, &it), WQ_ENOTSUP);
	IS(wq_get_many_until(q, &it, 1, 0), WQ_ENOTSUP);
	IS(wq_get_many_for(q, &it, 1, 0), WQ_ENOTSUP);
	IS(wq_interrupt(q, 1), WQ_ENOTSUP);
	IS(wq_done(q, &it), WQ_ENOTSUP);
	IS(wq_done_many(q, &it, 1, &outcome), WQ_ENOTSUP);
	IS(wq_next(q, &it), WQ_ENOTSUP);
	IS(wq_next_until(q, &it, 0), WQ_ENOTSUP);
	IS(wq_next_for(q, &it, 0), WQ_ENOTSUP);
	IS(wq_next_many_until(q, &it, 1, 1, 0), WQ_ENOTSUP);
	IS(wq_next_many_for(q, &it, 1, 1, 0), WQ_ENOTSUP);
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_ENOTSUP);
	IS(wq_retry(q, &it), WQ_ENOTSUP);
	IS(wq_settle(q, &it, WQ_DONE), WQ_ENOTSUP);
	IS(wq_settle_next_until(q, &it, WQ_DONE, 0, &outcome), WQ_ENOTSUP);
	IS(wq_settle_next_for(q, &it, WQ_DONE, 0, &outcome), WQ_ENOTSUP);
	IS(wq_extend(q, &it, 1), WQ_ENOTSUP);
	IS(wq_lost(q, &it), WQ_ENOTSUP);
	IS(wq_wait_idle_until(q, 0), WQ_ENOTSUP);
	IS(wq_wait_idle_for(q, 0), WQ_ENOTSUP);
	IS(wq_wait_key_until(q, "a", 1, 0), WQ_ENOTSUP);
	IS(wq_wait_key_for(q, "a", 1, 0), WQ_ENOTSUP);
	IS(wq_shutdown(q), WQ_ENOTSUP);
	IS(wq_shutting_down(q), WQ_ENOTSUP);
	IS(wq_drain_until(q, 0, NULL, &report), WQ_ENOTSUP);
	IS(wq_drain_for(q, 0, NULL, &report), WQ_ENOTSUP);
	IS(wq_len(q), WQ_ENOTSUP);
	IS(wq_snapshot_take(q, &snapshot), WQ_ENOTSUP);
	IS(wq_state(q, "a", 1), WQ_ENOTSUP);
	IS(wq_walk(q, ignore, NULL), WQ_ENOTSUP);
	IS(wq_fd(q), WQ_ENOTSUP);
	IS(wq_clock_changed(q), WQ_ENOTSUP);
	IS(wq_now(q), START_NS); /* the queue's own */
	assert_memory_equal(&it, &before, sizeof it);
	IS(was, 77);
	IS(outcome, 77);
	IS((int64_t)report.queued, 9);
}

static wq_queue *open_part(const wq_engine *e)
{
	wq_queue *q = NULL;

	memset(&rec, 0, sizeof rec);
	IS(wq_new(&q, &(wq_options){.engine = e, .clock = &fixed}), WQ_OK);
	IS(rec.calls, 1);
	return q;
}

/* Those of an older table that is shorter, and those that are NULL. */
static void what_a_table_lacks_is_not_supported(void **state)
{
	const wq_engine bare = {.version = WQ_ENGINE_VERSION,
	                        .size = sizeof bare,
	                        .name = "bare",
	                        .open = e_open,
	                        .close = e_close};
	wq_engine shorter = recorder;
	wq_queue *q = open_part(&bare);

	(void)state;
	does_nothing(q);
	IS(rec.calls, 1);
	close_recorder(q);

	shorter.size = (uint32_t)offsetof(wq_engine, add);
	q = open_part(&shorter);
	does_nothing(q);
	IS(rec.calls, 1);
	close_recorder(q);
}

/* What the table has is called, whatever is missing beside it; a half function is none. */
static void what_a_table_has_is_called(void **state)
{
	wq_engine e = recorder;
	wq_item it = {.token = 1};
	wq_queue *q;

	(void)state;
	e.size = (uint32_t)offsetof(wq_engine, get) + (uint32_t)sizeof(void *) - 1;
	q = open_part(&e);
	REACHES(wq_add(q, "a", 1), "add");
	REACHES(wq_add_many(q, &(wq_key){"a", 1}, 1, NULL), "add_many");
	IS(wq_get(q, &it), WQ_ENOTSUP);
	IS(wq_done(q, &it), WQ_ENOTSUP);
	IS(wq_set_failures(q, "a", 1, 1), WQ_ENOTSUP);
	close_recorder(q);

	e = recorder;
	e.add = NULL;
	e.turn = NULL;
	e.set_failures = NULL;
	q = open_part(&e);
	e = (wq_engine){0}; /* it was copied */
	IS(wq_add(q, "a", 1), WQ_ENOTSUP);
	IS(wq_retry(q, &it), WQ_ENOTSUP);
	IS(wq_set_failures(q, "a", 1, 1), WQ_ENOTSUP);
	REACHES(wq_add_after(q, "a", 1, 1), "add_with");
	REACHES(wq_done(q, &it), "done");
	REACHES(wq_len(q), "len");
	close_recorder(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(options_arrive_complete),
	    cmocka_unit_test(features),
	    cmocka_unit_test(rich_adds_go_through),
	    cmocka_unit_test(every_call_goes_through),
	    cmocka_unit_test(calls_on_time_and_limits_go_through),
	    cmocka_unit_test(a_turn_that_settles),
	    cmocka_unit_test(a_turn_that_gets),
	    cmocka_unit_test(answers_of_64_bits_come_back_whole),
	    cmocka_unit_test(bad_arguments_do_not_arrive),
	    cmocka_unit_test(an_engine_that_does_not_open),
	    cmocka_unit_test(an_engine_that_does_not_close),
	    cmocka_unit_test(an_engine_of_another_version),
	    cmocka_unit_test(what_a_table_lacks_is_not_supported),
	    cmocka_unit_test(what_a_table_has_is_called),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
