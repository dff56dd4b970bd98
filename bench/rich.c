/*
 * Rows of one thread: priorities, groups and values, each beside the same work on a plain queue,
 * slice by slice.
 *
 *   cycle_priority  Add+Get+Done on an empty queue, with 3 priorities in turn
 *   cycle_levels    the same behind 1M other keys, over 1,000 levels
 *   cycle_levels_1  the same, all on one level
 *   cycle_aging     cycle_priority with aging
 *   cycle_groups    Add+Get+Done on an empty queue, with 1,000 groups and a limit
 *   cycle_blocked   the same beside 100,000 groups that are full
 *   cycle_values    with a value of 64 bytes for each key
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { CYCLE_KEYS = 1024, LEVELS = 1000, VALUE = 64, BLOCKED = 100000 };

struct rich {
	wq_queue *q;
	size_t others, range, next;
	uint32_t levels;  /* priorities in turn */
	size_t value_len; /* 0: no values */
	struct bench_work work;
};

static char value[VALUE];

static wq_add_options options_of(const struct rich *r, size_t i)
{
	wq_add_options o = {.priority = r->levels > 0 ? (int32_t)(i % r->levels) : 0};

	if (r->value_len > 0) {
		o.value = value;
		o.value_len = r->value_len;
	}
	return o;
}

static void slice(void *state, size_t n)
{
	struct rich *r = state;
	const struct bench_keys *pool = bench_pool();
	size_t next = r->next;
	int bad = 0;
	wq_item item;

	for (size_t i = 0; i < n; i++) {
		wq_add_options o = options_of(r, next);

		bad |= wq_add_with(r->q, bench_key(pool, next), KEY_LEN, &o) != WQ_QUEUED;
		bad |= wq_get(r->q, &item) != WQ_OK;
		bad |= wq_done(r->q, &item) != WQ_OK;
		if (++next == r->range)
			next = 0;
	}
	bench_check(!bad, "rich: a call failed");
	r->next = next;
}

static struct rich *begin(const wq_options *options, size_t others, uint32_t levels,
                          size_t value_len)
{
	const struct bench_keys *pool = bench_pool();
	struct rich *r = bench_alloc(1, sizeof *r);

	bench_check(wq_new(&r->q, options) == WQ_OK, "rich: no queue");
	r->others = r->next = others;
	r->range = others > 0 ? pool->n : CYCLE_KEYS;
	r->levels = levels;
	r->value_len = value_len;
	r->work = (struct bench_work){slice, r, others > 0 ? 5000 : 20000};
	for (size_t i = 0; i < others; i++) {
		wq_add_options o = options_of(r, i);

		bench_check(wq_add_with(r->q, bench_key(pool, i), KEY_LEN, &o) == WQ_QUEUED,
		            "rich: a new key was not queued");
	}
	return r;
}

static void end(struct rich *r)
{
	bench_queue_free(r->q, r->others);
	free(r);
}

static void compare(struct rich *with, struct rich *without, struct bench_sample *sample)
{
	bench_in_turn(&with->work, &without->work, sample);
	end(with);
	end(without);
}

static wq_separator namespace = {.byte = '/', .n = 1};

static const wq_options plain = {.name = NULL}, priorities = {.priorities = 1},
			aging = {.priorities = 1, .aging_ns = WQ_SECOND}, values = {.values = 1},
			groups_of_2 = {.group = wq_group_before,
                                       .group_ctx = &namespace,
                                       .group_limit = 2};

static void priority_run(const void *arg, void *state, struct bench_sample *samples)
{
	(void)state;
	compare(begin(arg, 0, 3, 0), begin(&plain, 0, 0, 0), &samples[0]);
}

static void levels_run(const void *arg, void *state, struct bench_sample *samples)
{
	size_t n = bench_sizes.keys;

	(void)state;
	compare(begin(&priorities, n, *(const uint32_t *)arg, 0), begin(&plain, n, 0, 0),
	        &samples[0]);
}

static void groups_run(const void *arg, void *state, struct bench_sample *samples)
{
	(void)arg, (void)state;
	compare(begin(&groups_of_2, 0, 0, 0), begin(&plain, 0, 0, 0), &samples[0]);
}

static void values_run(const void *arg, void *state, struct bench_sample *samples)
{
	(void)arg, (void)state;
	compare(begin(&values, 0, 0, VALUE), begin(&plain, 0, 0, 0), &samples[0]);
}

/* Groups of one key that is held and one that is blocked. */
static void blocked_run(const void *arg, void *state, struct bench_sample *samples)
{
	wq_options o = groups_of_2;
	size_t n = bench_sizes.quick ? 1000 : BLOCKED;
	wq_item *held = bench_alloc(n, sizeof *held);
	struct rich *with, *without = begin(&plain, 0, 0, 0);
	char key[32];

	(void)arg, (void)state;
	o.group_limit = 1;
	with = begin(&o, 0, 0, 0);
	for (size_t i = 0; i < n; i++) {
		int len = snprintf(key, sizeof key, "full-%zu/a", i);

		bench_check(wq_add(with->q, key, (size_t)len) == WQ_QUEUED &&
		                wq_get(with->q, &held[i]) == WQ_OK,
		            "cycle_blocked: a key was not held");
		key[len - 1] = 'b';
		bench_check(wq_add(with->q, key, (size_t)len) == WQ_QUEUED,
		            "cycle_blocked: a key is not blocked");
	}
	bench_in_turn(&with->work, &without->work, &samples[0]);
	for (size_t i = 0; i < n; i++)
		bench_check(wq_done(with->q, &held[i]) == WQ_OK, "cycle_blocked: done failed");
	with->others = n;
	end(with);
	end(without);
	free(held);
}

#define RICH(name_, factor_, limit_, reps_, arg_, run_)                                            \
	{                                                                                          \
		.rows = {{name_, "ns", BAR_TIMES, factor_, limit_}}, .nrows = 1, .reps = reps_,    \
		.paired = true, .arg = arg_, .run = run_,                                          \
	}

static const struct bench_group groups[] = {
    RICH("cycle_priority", 1.3, "cycle_empty", 9, &priorities, priority_run),
    RICH("cycle_levels", 1.5, "cycle_1m", 3, &(const uint32_t){LEVELS}, levels_run),
    RICH("cycle_levels_1", 1.5, "cycle_1m", 3, &(const uint32_t){1}, levels_run),
    RICH("cycle_aging", 5, "cycle_empty", 9, &aging, priority_run),
    RICH("cycle_groups", 1.5, "cycle_empty", 9, NULL, groups_run),
    RICH("cycle_blocked", 1.5, "cycle_empty", 3, NULL, blocked_run),
    RICH("cycle_values", 1.2, "cycle_empty", 9, NULL, values_run),
};

const struct bench_groups bench_rich = {groups, sizeof groups / sizeof groups[0]};
