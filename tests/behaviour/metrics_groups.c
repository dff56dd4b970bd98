/*
 * Metrics of queues with priorities, groups and values: what is blocked is queued, and whatever is
 * done, a provider is told what the snapshot says; in the end the depth is 0.
 */
#include "metrics_rig.h"

static uint64_t seed;
static wq_separator slash = {.byte = '/', .n = 1};

static void slow_groups(void *ctx, const wq_key *group, wq_group_settings *s)
{
	(void)ctx;
	if (*(const char *)group->key == '0') {
		s->rate = 1e8; /* a token in 10 ns */
		s->burst = 2;
	}
}

static wq_options rich(uint32_t limit)
{
	return (wq_options){.priorities = 1,
	                    .values = 1,
	                    .merge = wq_merge_append,
	                    .group = wq_group_before,
	                    .group_ctx = &slash,
	                    .group_limit = limit,
	                    .group_setup = slow_groups};
}

/* Step by step, beside a group that is full. */
static void blocked_keys_are_queued(void **state)
{
	struct meter_rig r;
	wq_options o = rich(1);
	wq_item it;

	(void)state;
	meter_open(&r, &o);
	STEP(&r, wq_add_str(r.f.q, "a/1"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, wq_add_str(r.f.q, "a/2"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, wq_try_get(r.f.q, &it), WQ_OK, .depth = -1);
	STEP(&r, wq_add_str(r.f.q, "a/3"), WQ_QUEUED, .adds = 1, .depth = 1);
	STEP(&r, wq_add_with(r.f.q, "a/3", 3, &(wq_add_options){.priority = 4}), WQ_MERGED,
	     .merged = 1);
	STEP(&r, wq_cancel(r.f.q, "a/2", 3, NULL), WQ_CANCELLED, .depth = -1);
	STEP(&r, wq_add_str(r.f.q, "a/1"), WQ_MARKED, .adds = 1, .marked = 1, .depth = 1);
	STEP(&r, wq_requeue(r.f.q, &it, WQ_TAIL), WQ_QUEUED, .depth = 0);
	STEP(&r, wq_try_get(r.f.q, &it), WQ_OK, .depth = -1);
	STEP(&r, wq_settle(r.f.q, &it, WQ_DROP), WQ_OK, .dropped = 1);
	/* a/1 is left in line */
	meter_close(&r);
}

/* Of wq_free() with keys that are blocked. */
static void freed_with_blocked_keys(void **state)
{
	struct meter_rig r;
	wq_options o = rich(1);
	wq_item it;

	(void)state;
	meter_open(&r, &o);
	for (int i = 0; i < 5; i++)
		IS(wq_add(r.f.q, (char[]){'0', '/', (char)('0' + i)}, 3), WQ_QUEUED);
	IS(wq_try_get(r.f.q, &it), WQ_OK);
	IS(wq_done(r.f.q, &it), WQ_OK);
	told_agrees(&r.told, r.f.q);
	meter_close(&r);
}

static void random_steps(void **state)
{
	enum { HELD = 10 };
	struct meter_rig r;
	wq_options o = rich(2);
	wq_item held[HELD];
	size_t nheld = 0;
	uint64_t rng = seed;

	(void)state;
	o.limiter = wq_limiter_exponential(1, 20);
	o.max_keys = 25;
	o.max_attempts = 3;
	meter_open(&r, &o);
	for (int step = 0; step < 20000; step++) {
		char key[8];
		wq_item *it = &held[nheld > 0 ? rng_below(&rng, nheld) : 0];
		wq_add_options a = {.priority = (int)rng_below(&rng, 12),
		                    .value = rng_below(&rng, 2) ? "v" : NULL,
		                    .policy = (enum wq_policy)rng_below(&rng, 5)};
		static const wq_verdict verdicts[] = {
		    {.kind = WQ_VERDICT_DONE},  {.kind = WQ_VERDICT_RETRY},
		    {.kind = WQ_VERDICT_AGAIN}, {.kind = WQ_VERDICT_AGAIN, .delay_ns = 5},
		    {.kind = WQ_VERDICT_DROP},  {.kind = WQ_VERDICT_FATAL},
		};

		a.value_len = a.value ? 1 : 0;
		switch (rng_below(&rng, 4)) {
		case 0:
			a.after_ns = (int64_t)rng_below(&rng, 20) - 2;
			break;
		case 1:
			a.limited = 1;
			break;
		default:
			break;
		}
		snprintf(key, sizeof key, "%d/%d", (int)rng_below(&rng, 4),
		         (int)rng_below(&rng, 8));
		wq_manual_clock_advance(r.f.mc, (int64_t)rng_below(&rng, 5));
		switch (rng_below(&rng, 10)) {
		case 0:
		case 1:
		case 2:
			wq_add_with(r.f.q, key, strlen(key), &a);
			break;
		case 3:
			wq_cancel(r.f.q, key, strlen(key), NULL);
			break;
		case 4:
		case 5:
		case 6:
			if (nheld < HELD && wq_try_get(r.f.q, &held[nheld]) == WQ_OK)
				nheld++;
			break;
		case 7:
			if (nheld == 0)
				break;
			IS(wq_requeue(r.f.q, it, rng_below(&rng, 2) ? WQ_HEAD : WQ_TAIL),
			   WQ_QUEUED);
			*it = held[--nheld];
			break;
		default:
			if (nheld == 0)
				break;
			assert_true(
			    wq_settle(r.f.q, it, verdicts[rng_below(&rng, LENGTH(verdicts))]) >= 0);
			*it = held[--nheld];
		}
		told_agrees(&r.told, r.f.q);
	}
	while (nheld > 0)
		assert_true(wq_done(r.f.q, &held[--nheld]) >= 0);
	told_agrees(&r.told, r.f.q);
	meter_close(&r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(blocked_keys_are_queued),
	    cmocka_unit_test(freed_with_blocked_keys),
	    cmocka_unit_test(random_steps),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("metrics of groups", tests, NULL, NULL);
}
