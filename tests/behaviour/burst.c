/*
 * D5 of the rules when so many keys come due at once that one hold of the lock
 * does not move them all: they are ready all the same, and their order is kept.
 */
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED };

enum { BURST = 3500 }; /* more than one hold of the lock moves */

static void add_burst(struct fixture *f)
{
	for (uint32_t i = 0; i < BURST; i++) {
		uint32_t key = (i * 7919) % BURST; /* not in the order of their times */

		IS(wq_add_at(f->q, &key, sizeof key, START_NS + 1 + key / 2), WQ_WAITING);
	}
	IS(wq_len(f->q), 0);
}

/* Key i/2 at one time, of equal ones the first added; then `more` keys from BURST on. */
static void burst_in_order(wq *q, uint32_t more)
{
	uint32_t last_pair = 0;

	for (uint32_t i = 0; i < BURST + more; i++) {
		wq_item it;
		uint32_t key = UINT32_MAX;

		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, sizeof key);
		memcpy(&key, it.key, sizeof key);
		if (i < BURST) {
			IS(key / 2, i / 2);
			assert_true(key / 2 >= last_pair);
			last_pair = key / 2;
			IS(it.added_ns, START_NS + 1 + key / 2);
		} else {
			IS(key, i);
		}
		IS(wq_done(q, &it), WQ_OK);
	}
	check_whole(q, 0, 0);
}

static void D5_len_counts_a_whole_burst(void **state)
{
	struct fixture *f = *state;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_len(f->q), BURST);
	burst_in_order(f->q, 0);
}

static void D5_state_sees_the_last_of_a_burst(void **state)
{
	struct fixture *f = *state;
	uint32_t last = BURST - 1;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_state(f->q, &last, sizeof last), Q);
	burst_in_order(f->q, 0);
}

static int is_queued(void *ctx, const wq_key_info *info)
{
	int *wrong = ctx;

	*wrong += info->state != Q || info->due_ns != 0;
	return 0;
}

static void D5_walk_shows_a_burst_as_queued(void **state)
{
	struct fixture *f = *state;
	int wrong = 0;

	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_walk(f->q, is_queued, &wrong), BURST);
	IS(wrong, 0);
	burst_in_order(f->q, 0);
}

/* Adds and Dones that come while the burst enters the line stand behind all of it. */
static void D5_adds_amid_a_burst_stand_behind_it(void **state)
{
	struct fixture *f = *state;
	uint32_t key = BURST;
	wq_key many[2];
	uint32_t many_keys[2];
	wq_item it;

	IS(wq_add(f->q, &key, sizeof key), WQ_QUEUED);
	IS(wq_try_get(f->q, &it), WQ_OK);
	IS(wq_add(f->q, &key, sizeof key), WQ_MARKED);
	add_burst(f);
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	key++;
	IS(wq_add(f->q, &key, sizeof key), WQ_QUEUED);
	for (uint32_t i = 0; i < 2; i++) {
		many_keys[i] = ++key;
		many[i] = (wq_key){&many_keys[i], sizeof many_keys[i]};
	}
	IS(wq_add_many(f->q, many, 2, NULL), 2);
	IS(wq_add(f->q, many_keys, sizeof many_keys[0]), WQ_MERGED);
	burst_in_order(f->q, 4);
}

/* A key whose time has come is ready, for every call, even if it cannot be in line yet. */
static void D5_calls_amid_a_burst_find_a_key_ready(void **state)
{
	uint32_t last = BURST - 1;

	(void)state;
	for (int added = 0; added < 2; added++) /* the last of the burst, or one added behind it */
		for (int call = 0; call < 6; call++) {
			struct fixture f;
			const void *key = added ? (const void *)"key" : &last;
			size_t len = added ? 3 : sizeof last;
			wq_add_options o = {.after_ns = WQ_HOUR, .policy = WQ_REPLACE};

			fixture_open(&f, NULL);
			add_burst(&f);
			wq_manual_clock_advance(f.mc, WQ_SECOND);
			if (added)
				IS(wq_add_str(f.q, "key"), WQ_QUEUED);
			if (call == 0)
				IS(wq_add(f.q, key, len), WQ_MERGED);
			if (call == 1)
				IS(wq_add_after(f.q, key, len, WQ_HOUR), WQ_MERGED);
			if (call == 2)
				IS(wq_add_with(f.q, key, len, &o), WQ_MERGED);
			if (call == 3)
				IS(wq_reschedule(f.q, key, len, START_NS + WQ_HOUR), WQ_ENOTFOUND);
			if (call == 4)
				IS(wq_cancel(f.q, key, len), Q);
			if (call == 5)
				IS(wq_state(f.q, key, len), Q);
			IS(wq_state(f.q, key, len), call == 4 ? 0 : Q);
			IS(wq_len(f.q), BURST + added - (call == 4));
			IS(wq_next_deadline(f.q), WQ_NEVER);
			fixture_close(&f, BURST + added - (call == 4));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(D5_len_counts_a_whole_burst),
	    WITH_FIXTURE(D5_state_sees_the_last_of_a_burst),
	    WITH_FIXTURE(D5_walk_shows_a_burst_as_queued),
	    WITH_FIXTURE(D5_adds_amid_a_burst_stand_behind_it),
	    cmocka_unit_test(D5_calls_amid_a_burst_find_a_key_ready),
	};

	return cmocka_run_group_tests_name("burst", tests, NULL, NULL);
}
