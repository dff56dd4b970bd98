/*
 * Every allocation fails once, in what limited adds and the ends of holds need:
 * as oom.c, with a script of its own. A limited add that is refused has counted
 * nothing. A hold that is settled ends in any case: a key for which there is no
 * memory to let it wait is in line at once, and none is lost. [KEEP]
 */
#include "../support/support.h"

enum { KEYS = 3000 };

/* What becomes of a key's holds, one after the other. */
static const wq_verdict verdicts[] = {
    {.kind = WQ_VERDICT_RETRY}, {.kind = WQ_VERDICT_AGAIN, .delay_ns = 5000},
    {.kind = WQ_VERDICT_RETRY}, {.kind = WQ_VERDICT_RETRY, .delay_ns = 7000},
    {.kind = WQ_VERDICT_DONE},
};

struct script {
	struct fixture f;
	int hold[KEYS];     /* how many have ended */
	int failures[KEYS]; /* that are remembered */
	int64_t refused, at_once;
};

/* Refusals come only from failed allocations; from now on there is memory. */
static void refused(struct script *s)
{
	assert_true(s->f.mem.failed > 0);
	s->f.mem.fail_at = -1;
	s->refused++;
}

static void check_key(struct script *s, int key, int state)
{
	IS(wq_failures(s->f.q, &key, sizeof key), s->failures[key]);
	IS(wq_state(s->f.q, &key, sizeof key), state);
}

static int add_call(struct script *s, int key)
{
	wq_add_options o = {.limited = 1, .policy = WQ_REMIND};

	return key % 3 ? wq_add_limited(s->f.q, &key, sizeof key)
	               : wq_add_with(s->f.q, &key, sizeof key, &o);
}

static void add_all(struct script *s)
{
	for (int key = 0; key < KEYS; key++) {
		int rc = add_call(s, key);

		if (rc == WQ_ENOMEM) {
			check_key(s, key, 0);
			refused(s);
			rc = add_call(s, key);
		}
		IS(rc, WQ_DELAYED);
		s->failures[key]++;
		check_key(s, key, WQ_STATE_WAITING | WQ_STATE_RETRYING);
	}
}

/* The hold of a key has ended with this answer. */
static void ended(struct script *s, int key, int answer, int64_t failed_before)
{
	uint32_t kind = verdicts[s->hold[key]++].kind;

	s->failures[key] = kind == WQ_VERDICT_RETRY ? s->failures[key] + 1 : 0;
	if (kind == WQ_VERDICT_DONE) {
		IS(answer, WQ_OK);
	} else if (answer == WQ_QUEUED) {
		assert_true(s->f.mem.failed > failed_before);
		s->at_once++;
		refused(s);
	} else {
		IS(answer, WQ_DELAYED);
	}
}

static int key_of(const struct script *s, const wq_item *it)
{
	int key;

	assert_int_equal(it->len, sizeof key);
	memcpy(&key, it->key, sizeof key);
	IS(it->attempts, 1 + s->failures[key]);
	return key;
}

/* Works off what is ready, alone or with the next Get in one step. */
static int64_t work(struct script *s, bool in_one_step)
{
	int64_t holds = 0;
	wq_item it;
	int rc = wq_try_get(s->f.q, &it);

	for (; rc == WQ_OK; holds++) {
		int key = key_of(s, &it), answer = WQ_EINVAL;
		wq_verdict verdict = verdicts[s->hold[key]];
		int64_t failed = s->f.mem.failed;

		if (in_one_step)
			rc = wq_settle_next_until(s->f.q, &it, verdict, WQ_NOWAIT, &answer);
		else
			answer = wq_settle(s->f.q, &it, verdict);
		ended(s, key, answer, failed);
		if (!in_one_step)
			rc = wq_try_get(s->f.q, &it);
	}
	IS(rc, WQ_EAGAIN);
	return holds;
}

static wq_limiter *limiter(void)
{
	wq_limiter *parts[] = {
	    wq_limiter_exponential(1000, WQ_SECOND),
	    wq_limiter_bucket_per_key(100, 2),
	};

	return wq_limiter_max_of(parts, 2);
}

/* True: an allocation was refused. */
static bool run(int64_t n, bool on, int64_t *refusals, int64_t *at_once)
{
	struct script *s = calloc(1, sizeof *s);
	int64_t holds = 0;
	bool hit;

	assert_non_null(s);
	fixture_open(&s->f, &(wq_options){.limiter = limiter(), .seed = 5});
	s->f.mem.fail_at = s->f.mem.calls + n;
	s->f.mem.fail_on = on;
	add_all(s);
	for (int round = 0; round < 10; round++) {
		wq_manual_clock_advance(s->f.mc, WQ_SECOND);
		holds += work(s, round % 2);
	}
	IS(holds, KEYS * (int64_t)LENGTH(verdicts));
	for (int key = 0; key < KEYS; key++) {
		IS(s->hold[key], LENGTH(verdicts));
		IS(s->failures[key], 0);
		check_key(s, key, 0);
	}
	hit = s->f.mem.failed > 0;
	*refusals += s->refused;
	*at_once += s->at_once;
	s->f.mem.fail_at = -1;
	check_whole(s->f.q, 0, 0);
	IS(wq_drain_until(s->f.q, 0, NULL, NULL), WQ_OK);
	fixture_close(&s->f, 0);
	free(s);
	return hit;
}

static void fail_each(bool on)
{
	int64_t n = 0, refusals = 0, at_once = 0;

	while (run(n, on, &refusals, &at_once))
		n++;
	print_message(
	    "%lld allocations failed, %lld calls felt it, %lld keys were in line at once\n",
	    (long long)n, (long long)refusals, (long long)at_once);
	assert_true(n > 10);
	assert_true(refusals > 5);
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

/* Never any memory again: holds end all the same, and every key is worked off. */
static void holds_end_without_memory(void **state)
{
	struct script *s = calloc(1, sizeof *s);
	int64_t failed;
	wq_item it;

	(void)state;
	assert_non_null(s);
	fixture_open(&s->f, &(wq_options){.limiter = limiter()});
	for (int key = 0; key < KEYS; key++)
		IS(wq_add(s->f.q, &key, sizeof key), WQ_QUEUED);
	s->f.mem.fail_at = s->f.mem.calls;
	s->f.mem.fail_on = true;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		for (int n = 0; n < KEYS; n++) {
			IS(wq_try_get(s->f.q, &it), WQ_OK);
			assert_true(wq_settle(s->f.q, &it, verdicts[i]) >= 0);
		}
		wq_manual_clock_advance(s->f.mc, WQ_SECOND);
	}
	failed = s->f.mem.failed;
	assert_true(failed > 100);
	IS(wq_try_get(s->f.q, &it), WQ_EAGAIN);
	s->f.mem.fail_at = -1;
	check_whole(s->f.q, 0, 0);
	fixture_close(&s->f, 0);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_allocation_fails_once),
	    cmocka_unit_test(each_allocation_fails_and_all_later_ones),
	    cmocka_unit_test(holds_end_without_memory),
	};

	return cmocka_run_group_tests_name("oom of retries", tests, NULL, NULL);
}
