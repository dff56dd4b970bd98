/*
 * A table of functions that all answer the same: the file that includes this has defined ANSWER,
 * and TABLE, the table's name.
 */
#include "queue/queue.h"

static int open(wq_queue *q, const wq_options *options, void **state)
{
	(void)q, (void)options, (void)state;
	return ANSWER;
}

static int of_state(void *state)
{
	(void)state;
	return ANSWER;
}

static int64_t number_of_state(void *state)
{
	(void)state;
	return ANSWER;
}

static int of_key(void *state, const void *key, size_t len)
{
	(void)state, (void)key, (void)len;
	return ANSWER;
}

static int of_key_until(void *state, const void *key, size_t len, int64_t time_ns)
{
	(void)time_ns;
	return of_key(state, key, len);
}

static int add_with(void *state, const void *key, size_t len, const wq_add_options *options)
{
	(void)options;
	return of_key(state, key, len);
}

static int cancel(void *state, const void *key, size_t len, int64_t deadline_ns, unsigned *was)
{
	(void)deadline_ns, (void)was;
	return of_key(state, key, len);
}

static int add_many(void *state, const wq_key *keys, size_t n, int *outcomes)
{
	(void)state, (void)keys, (void)n, (void)outcomes;
	return ANSWER;
}

static int get(void *state, wq_item *item, int64_t deadline_ns)
{
	(void)state, (void)item, (void)deadline_ns;
	return ANSWER;
}

static int get_many(void *state, wq_item *items, size_t max, int64_t deadline_ns)
{
	(void)max;
	return get(state, items, deadline_ns);
}

static int next_many(void *state, wq_item *items, size_t n, size_t max, int64_t deadline_ns)
{
	(void)n, (void)max;
	return get(state, items, deadline_ns);
}

static int interrupt(void *state, int n)
{
	(void)state, (void)n;
	return ANSWER;
}

static int of_item(void *state, const wq_item *item)
{
	(void)state, (void)item;
	return ANSWER;
}

static int done_many(void *state, const wq_item *items, size_t n, int *outcomes)
{
	(void)n, (void)outcomes;
	return of_item(state, items);
}

static int requeue(void *state, const wq_item *item, enum wq_where where)
{
	(void)where;
	return of_item(state, item);
}

static int extend(void *state, const wq_item *item, int64_t span_ns)
{
	(void)span_ns;
	return of_item(state, item);
}

static int wait_idle(void *state, int64_t deadline_ns)
{
	(void)state, (void)deadline_ns;
	return ANSWER;
}

static int drain(void *state, int64_t deadline_ns, const wq_drain_options *options,
                 wq_report *report)
{
	(void)state, (void)deadline_ns, (void)options, (void)report;
	return ANSWER;
}

static int64_t walk(void *state, wq_walk_fn fn, void *ctx)
{
	(void)state, (void)fn, (void)ctx;
	return ANSWER;
}

static int forget(void *state, const wq_item *item, const void *key, size_t len)
{
	(void)item;
	return of_key(state, key, len);
}

static int64_t failures(void *state, const wq_item *item, const void *key, size_t len)
{
	(void)item;
	return of_key(state, key, len);
}

static int turn(void *state, wq_item *item, wq_turn *t)
{
	(void)state, (void)item;
	return t->settled = ANSWER;
}

static uint32_t gate_change(void *state, wq_gate *gate)
{
	(void)state;
	return ++gate->changes;
}

static int snapshot(void *state, wq_snapshot *out)
{
	(void)state, (void)out;
	return ANSWER;
}

static int set_failures(void *state, const void *key, size_t len, uint32_t n)
{
	(void)n;
	return of_key(state, key, len);
}

const wq_engine TABLE = {
    .version = WQ_ENGINE_VERSION,
    .size = sizeof(wq_engine),
    .open = open,
    .close = of_state,
    .add = of_key,
    .add_with = add_with,
    .reschedule = of_key_until,
    .cancel = cancel,
    .next_deadline = number_of_state,
    .add_many = add_many,
    .get = get,
    .get_many = get_many,
    .interrupt = interrupt,
    .done = of_item,
    .done_many = done_many,
    .next = get,
    .next_many = next_many,
    .requeue = requeue,
    .extend = extend,
    .lost = of_item,
    .wait_idle = wait_idle,
    .wait_key = of_key_until,
    .shutdown = of_state,
    .shutting_down = of_state,
    .drain = drain,
    .len = number_of_state,
    .state = of_key,
    .walk = walk,
    .fd = of_state,
    .clock_changed = of_state,
    .forget = forget,
    .failures = failures,
    .turn = turn,
    .gate_change = gate_change,
    .snapshot = snapshot,
    .set_failures = set_failures,
};

#undef ANSWER
#undef TABLE
