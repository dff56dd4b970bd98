/*
 * The rules Q1 to Q7, Q11 and Q12 of the queue, with the promises of
 * wq/queue.h in the names: ONE, KEEP, BACK, FIFO, WHOLE. Q8 and Q9 are in
 * drain.c, Q10 in order.c.
 */
#include "../support/support.h"

enum { R = WQ_STATE_RUNNING, RD = R | WQ_STATE_DIRTY };

/* Q1: the bits a key goes through in its life, in state and in a walk. */
static int bits_of_walk(void *ctx, const wq_key_info *info)
{
	*(unsigned *)ctx = info->state;
	return 0;
}

static void state_is(wq_queue *q, int bits)
{
	unsigned seen = 0;

	IS(state_of(q, "k"), bits);
	IS(wq_walk(q, bits_of_walk, &seen), bits != 0);
	IS(seen, bits);
	IS(wq_len(q), bits == WQ_STATE_QUEUED); /* Q7 */
}

static void Q1_state_is_a_set_of_bits(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	state_is(q, 0);
	wq_add_str(q, "k");
	state_is(q, WQ_STATE_QUEUED);
	get_is(q, &it, "k");
	state_is(q, R);
	wq_add_str(q, "k");
	state_is(q, RD);
	wq_add_str(q, "k");
	state_is(q, RD);
	IS(wq_done(q, &it), WQ_QUEUED);
	state_is(q, WQ_STATE_QUEUED);
	take_is(q, "k", WQ_OK);
	state_is(q, 0);
}

static void Q2_add_refused_once_shut_down(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	wq_add_str(q, "queued");
	wq_add_str(q, "held");
	IS(wq_try_get(q, &it), WQ_OK);
	IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
	get_is(q, &it, "held");
	wq_shutdown(q);
	IS(wq_add_str(q, "new"), WQ_ESHUTDOWN);
	IS(wq_add_str(q, "queued"), WQ_ESHUTDOWN);
	IS(wq_add_str(q, "held"), WQ_ESHUTDOWN);
	IS(state_of(q, "new"), 0);
	IS(state_of(q, "held"), R); /* not marked */
	check_whole(q, 1, 1);
	IS(wq_done(q, &it), WQ_OK);
}

/* [WAKE] Q2: "No ready key is ever left beside a sleeping waiter". */
enum { WORKERS = 12 }; /* more than one call wakes by itself */

/* A worker that, while it holds its key, waits until all the others hold theirs. */
struct meeting {
	wq_queue *q;
	pthread_barrier_t *barrier;
	bool many; /* with wq_get_many_until() */
};

static int64_t meet(void *arg)
{
	struct meeting *m = arg;
	wq_item it;
	int rc = m->many ? wq_get_many_until(m->q, &it, 1, WQ_NEVER) : wq_get(m->q, &it);

	if (rc != (m->many ? 1 : WQ_OK))
		return WQ_EINVAL;
	pthread_barrier_wait(m->barrier);
	return wq_done(m->q, &it);
}

static const char *const names[WORKERS] = {"a", "b", "c", "d", "e", "f",
                                           "g", "h", "i", "j", "k", "l"};

static void add_singly(wq_queue *q)
{
	for (int i = 0; i < WORKERS; i++)
		IS(wq_add_str(q, names[i]), WQ_QUEUED);
}

static void add_at_once(wq_queue *q)
{
	wq_key keys[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		keys[i] = (wq_key){.key = names[i], .len = 1};
	IS(wq_add_many(q, keys, WORKERS, NULL), WORKERS);
}

/* Of held keys. */
static void come_back_by_done(wq_queue *q, wq_item *it)
{
	for (int i = 0; i < WORKERS; i++)
		IS(wq_add_str(q, names[i]), WQ_MARKED);
	IS(wq_done_many(q, it, WORKERS, NULL), WORKERS);
}

static void come_back_by_requeue(wq_queue *q, wq_item *it)
{
	for (int i = 0; i < WORKERS; i++)
		IS(wq_requeue(q, &it[i], i % 2 ? WQ_HEAD : WQ_TAIL), WQ_QUEUED);
}

/*
 * All workers sleep, the keys come, and none of them lets go before each has
 * one: a wake-up too few hangs.
 */
static void sleepers_all_wake(void (*come)(wq_queue *), void (*come_back)(wq_queue *, wq_item *),
                              int64_t spin_ns)
{
	struct fixture f;
	struct actor actors[WORKERS];
	pthread_barrier_t barrier;

	fixture_open(&f, &(wq_options){.spin_ns = spin_ns});
	for (int round = 0; round < 20; round++) {
		struct meeting m = {f.q, &barrier, round % 2};
		wq_item it[WORKERS];

		assert_int_equal(pthread_barrier_init(&barrier, NULL, WORKERS), 0);
		if (come_back != NULL) {
			add_singly(f.q);
			IS(wq_get_many_until(f.q, it, WORKERS, WQ_NOWAIT), WORKERS);
		}
		for (int i = 0; i < WORKERS; i++)
			actor_start(&actors[i], meet, &m);
		for (int i = 0; i < WORKERS; i++)
			actor_blocks(&actors[i]);
		if (come_back != NULL)
			come_back(f.q, it);
		else
			come(f.q);
		for (int i = 0; i < WORKERS; i++)
			IS(actor_join(&actors[i]), WQ_OK);
		pthread_barrier_destroy(&barrier);
	}
	fixture_close(&f, 0);
}

static void Q2_no_ready_key_beside_a_sleeper_add(void **state)
{
	(void)state;
	sleepers_all_wake(add_singly, NULL, WQ_SPIN_NEVER);
	sleepers_all_wake(add_singly, NULL, 0);
}

static void Q2_no_ready_key_beside_a_sleeper_add_many(void **state)
{
	(void)state;
	sleepers_all_wake(add_at_once, NULL, WQ_SPIN_NEVER);
	sleepers_all_wake(add_at_once, NULL, 0);
}

static void Q2_no_ready_key_beside_a_sleeper_done(void **state)
{
	(void)state;
	sleepers_all_wake(NULL, come_back_by_done, WQ_SPIN_NEVER);
	sleepers_all_wake(NULL, come_back_by_done, WQ_MILLISECOND);
}

static void Q2_no_ready_key_beside_a_sleeper_requeue(void **state)
{
	(void)state;
	sleepers_all_wake(NULL, come_back_by_requeue, WQ_SPIN_NEVER);
	sleepers_all_wake(NULL, come_back_by_requeue, 0);
}

static void Q3_get_blocks_until_a_key_is_ready(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;

	getter_block(&g, q, WQ_NEVER);
	wq_add_str(q, "k");
	IS(getter_join(&g), WQ_OK);
	assert_memory_equal(g.item.key, "k", 2);
	IS(state_of(q, "k"), R);
	IS(wq_done(q, &g.item), WQ_OK);
}

static void Q3_get_hands_out_after_shutdown_KEEP(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;
	wq_item it;

	wq_add_str(q, "a");
	wq_add_str(q, "b");
	IS(wq_shutdown(q), WQ_OK);
	IS(wq_get(q, &it), WQ_OK);
	assert_memory_equal(it.key, "a", 2);
	IS(wq_done(q, &it), WQ_OK);
	take_is(q, "b", WQ_OK);
	getter_start(&g, q, WQ_NEVER); /* does not block */
	IS(getter_join(&g), WQ_ESHUTDOWN);
}

static void Q4_done_sends_a_dirty_key_to_the_tail_BACK(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	wq_add_str(q, "k");
	wq_add_str(q, "x");
	get_is(q, &it, "k");
	for (int i = 0; i < 5; i++)
		IS(wq_add_str(q, "k"), i == 0 ? WQ_MARKED : WQ_MERGED);
	wq_add_str(q, "y");
	IS(wq_done(q, &it), WQ_QUEUED);
	take_is(q, "x", WQ_OK);
	take_is(q, "y", WQ_OK);
	take_is(q, "k", WQ_OK); /* once */
	IS(wq_try_get(q, &it), WQ_EAGAIN);
}

static void Q5_dirty_key_comes_back_during_shutdown_BACK(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it, other;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	wq_add_str(q, "k");
	wq_shutdown(q);
	IS(wq_get(q, &other), WQ_ESHUTDOWN);
	IS(wq_done(q, &it), WQ_QUEUED);
	take_is(q, "k", WQ_OK);
	IS(wq_get(q, &other), WQ_ESHUTDOWN);
}

/* [STALE] Of all copies of an item the first that is handed back counts; the rest change nothing. */
static void Q6_done_twice_WHOLE(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it, copy;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	copy = it;
	IS(wq_done(q, &copy), WQ_OK); /* the first of the copies wins */
	IS(wq_done(q, &it), WQ_ESTALE);
	IS(wq_done(q, &copy), WQ_ESTALE);
	check_whole(q, 0, 0);

	/* nor does it end the hold of the worker that has the key now [ONE] */
	wq_add_str(q, "k");
	IS(wq_done(q, &it), WQ_ESTALE);
	get_is(q, &copy, "k");
	assert_true(copy.token != it.token);
	IS(wq_done(q, &it), WQ_ESTALE);
	IS(state_of(q, "k"), R);
	check_whole(q, 0, 1);
	IS(wq_done(q, &copy), WQ_OK);
}

static int64_t done_elsewhere(void *arg)
{
	struct getter *g = arg;

	return wq_done(g->q, &g->item);
}

static void Q6_done_from_another_thread(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g = {.q = q};
	struct actor a;

	wq_add_str(q, "k");
	get_is(q, &g.item, "k");
	actor_start(&a, done_elsewhere, &g);
	IS(actor_join(&a), WQ_OK);
	check_whole(q, 0, 0);
}

/* [STALE] */
static void Q6_first_done_of_many_threads_wins(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (int round = 0; round < 200; round++) {
		struct getter g = {.q = q};
		struct actor a[3];
		int won = 0;

		wq_add_str(q, "k");
		get_is(q, &g.item, "k");
		for (int i = 0; i < 3; i++)
			actor_start(&a[i], done_elsewhere, &g);
		for (int i = 0; i < 3; i++) {
			int64_t rc = actor_join(&a[i]);

			won += rc == WQ_OK;
			assert_true(rc == WQ_OK || rc == WQ_ESTALE);
		}
		IS(won, 1);
	}
	check_whole(q, 0, 0);
}

static void Q7_len_counts_queued_keys_only(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item a, b;

	wq_add_str(q, "a");
	wq_add_str(q, "b");
	wq_add_str(q, "c");
	IS(wq_len(q), 3);
	get_is(q, &a, "a");
	IS(wq_len(q), 2);
	get_is(q, &b, "b");
	wq_add_str(q, "a");
	IS(wq_len(q), 1);
	IS(wq_done(q, &a), WQ_QUEUED);
	IS(wq_len(q), 2);
	IS(wq_done(q, &b), WQ_OK);
	IS(wq_len(q), 2);
}

static void FIFO_keys_come_out_as_they_were_queued(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	enum { N = 5000 };

	for (uint32_t i = 0; i < N; i++)
		IS(wq_add(q, &i, sizeof i), WQ_QUEUED);
	for (uint32_t i = 0; i < N; i += 3) /* merging moves nothing */
		IS(wq_add(q, &i, sizeof i), WQ_MERGED);
	for (uint32_t i = 0; i < N; i++) {
		wq_item it;
		uint32_t key;

		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, sizeof key);
		memcpy(&key, it.key, sizeof key);
		IS(key, i);
		IS(wq_done(q, &it), WQ_OK);
	}
}

static void Q11_equal_keys_are_equal_bytes(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	static const wq_key keys[] = {
	    {NULL, 0},     {"\0", 1},      {"\0\0", 2},   {"a", 1},  {"a\0", 2},
	    {"a\0b", 3},   {"a\0c", 3},    {"\xff", 1},   {"A", 1},  {"aa", 2},
	    {"\xff\0", 2}, {"a\0b\0c", 5}, {"a\0b\0", 4}, {"\n", 1},
	};

	for (size_t i = 0; i < LENGTH(keys); i++) {
		IS(wq_state(q, keys[i].key, keys[i].len), 0);
		IS(wq_add(q, keys[i].key, keys[i].len), WQ_QUEUED);
		IS(wq_add(q, keys[i].key, keys[i].len), WQ_MERGED);
	}
	IS(wq_add(q, "", 0), WQ_MERGED); /* the empty key, however it is spelt */
	IS(wq_add_str(q, ""), WQ_MERGED);
	IS(count_keys(q), (int64_t)LENGTH(keys));
	for (size_t i = 0; i < LENGTH(keys); i++) {
		wq_item it;

		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, (int64_t)keys[i].len);
		assert_non_null(it.key);
		if (it.len > 0)
			assert_memory_equal(it.key, keys[i].key, it.len);
		assert_int_equal(((const char *)it.key)[it.len], 0);
		IS(wq_done(q, &it), WQ_OK);
	}
}

static void Q11_the_key_is_copied(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	char key[] = "key";

	wq_add(q, key, 3);
	memset(key, 'x', 3);
	IS(state_of(q, "xxx"), 0);
	take_is(q, "key", WQ_OK);
}

static void Q11_keys_of_every_length(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	static char key[WQ_KEY_MAX];
	wq_item it;

	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (char)(i * 131 + i / 251);
	for (size_t len = 0; len <= WQ_KEY_MAX; len += len < 2200 ? 1 : 4999) {
		IS(wq_add(q, key, len), WQ_QUEUED);
		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, (int64_t)len);
		if (len > 0)
			assert_memory_equal(it.key, key, len);
		assert_int_equal(((const char *)it.key)[len], 0);
		IS(wq_done(q, &it), WQ_OK);
	}
}

static void Q12_next_of_a_stale_item_gets_nothing_WHOLE(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it, copy;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	IS(wq_done(q, &it), WQ_OK);
	wq_add_str(q, "b");
	copy = it;
	IS(wq_next(q, &it), WQ_ESTALE);
	assert_memory_equal(&it, &copy, sizeof it);
	IS(state_of(q, "b"), WQ_STATE_QUEUED);
	check_whole(q, 1, 0);
}

static void Q12_next_is_done_whatever_get_answers(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
	IS(state_of(q, "a"), 0);

	wq_add_str(q, "b");
	get_is(q, &it, "b");
	IS(wq_next_until(q, &it, wq_now(q)), WQ_ETIMEDOUT);
	IS(state_of(q, "b"), 0);

	wq_add_str(q, "c");
	get_is(q, &it, "c");
	IS(wq_interrupt(q, 1), 0);
	IS(wq_next(q, &it), WQ_EINTERRUPTED);
	IS(state_of(q, "c"), 0);

	/* dirty: what is done comes back in the same step */
	wq_add_str(q, "d");
	get_is(q, &it, "d");
	wq_add_str(q, "d");
	uint64_t token = it.token;

	IS(wq_next(q, &it), WQ_OK);
	assert_memory_equal(it.key, "d", 2);
	assert_true(it.token != token);
	wq_shutdown(q);
	IS(wq_next(q, &it), WQ_ESHUTDOWN);
	IS(state_of(q, "d"), 0);
	IS(count_keys(q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(Q1_state_is_a_set_of_bits),
	    WITH_FIXTURE(Q2_add_refused_once_shut_down),
	    cmocka_unit_test(Q2_no_ready_key_beside_a_sleeper_add),
	    cmocka_unit_test(Q2_no_ready_key_beside_a_sleeper_add_many),
	    cmocka_unit_test(Q2_no_ready_key_beside_a_sleeper_done),
	    cmocka_unit_test(Q2_no_ready_key_beside_a_sleeper_requeue),
	    WITH_FIXTURE(Q3_get_blocks_until_a_key_is_ready),
	    WITH_FIXTURE(Q3_get_hands_out_after_shutdown_KEEP),
	    WITH_FIXTURE(Q4_done_sends_a_dirty_key_to_the_tail_BACK),
	    WITH_FIXTURE(Q5_dirty_key_comes_back_during_shutdown_BACK),
	    WITH_FIXTURE(Q6_done_twice_WHOLE),
	    WITH_FIXTURE(Q6_done_from_another_thread),
	    WITH_FIXTURE(Q6_first_done_of_many_threads_wins),
	    WITH_FIXTURE(Q7_len_counts_queued_keys_only),
	    WITH_FIXTURE(FIFO_keys_come_out_as_they_were_queued),
	    WITH_FIXTURE(Q11_equal_keys_are_equal_bytes),
	    WITH_FIXTURE(Q11_the_key_is_copied),
	    WITH_FIXTURE(Q11_keys_of_every_length),
	    WITH_FIXTURE(Q12_next_of_a_stale_item_gets_nothing_WHOLE),
	    WITH_FIXTURE(Q12_next_is_done_whatever_get_answers),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
