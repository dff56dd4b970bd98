/* Giving items back: many at once, done and get in one step, requeue, extend, lost. */
#include "../support/support.h"

static void add_letters(wq_queue *q, const char *letters)
{
	for (; *letters; letters++)
		IS(wq_add(q, letters, 1), WQ_QUEUED);
}

/* Holds every key that is ready. */
static void hold(wq_queue *q, wq_item *items, int n)
{
	IS(wq_get_many_until(q, items, (size_t)n, WQ_NOWAIT), n);
}

static void done_many_outcomes_one_by_one(void **state)
{
	struct fixture *f = *state;
	struct fixture other;
	wq_item items[5];
	int outcomes[5];

	fixture_open(&other, NULL);
	add_letters(f->q, "abc");
	hold(f->q, items, 3);
	add_letters(other.q, "z");
	get_is(other.q, &items[3], "z");
	items[4] = items[0]; /* twice in one call */
	wq_add_str(f->q, "b");
	IS(wq_done_many(f->q, items, 5, outcomes), 3);
	IS(outcomes[0], WQ_OK);
	IS(outcomes[1], WQ_QUEUED);
	IS(outcomes[2], WQ_OK);
	IS(outcomes[3], WQ_EOTHERQUEUE);
	IS(outcomes[4], WQ_ESTALE);
	IS(wq_done_many(f->q, items, 5, NULL), 0);
	check_whole(f->q, 1, 0);
	take_is(f->q, "b", WQ_OK);
	IS(wq_done(other.q, &items[3]), WQ_OK);
	fixture_close(&other, 0);
}

static void done_many_refuses_reserved_words_WHOLE(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item items[2];
	int outcomes[2] = {77, 77};

	add_letters(q, "ab");
	hold(q, items, 2);
	items[1].reserved[1] = 1;
	IS(wq_done_many(q, items, 2, outcomes), WQ_EINVAL);
	IS(outcomes[0], 77);
	IS(outcomes[1], 77);
	IS(state_of(q, "a"), WQ_STATE_RUNNING);
	items[1].reserved[1] = 0;
	IS(wq_done_many(q, items, 2, outcomes), 2);
}

static void done_many_of_none(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	IS(wq_done_many(q, NULL, 0, NULL), 0);
	check_whole(q, 0, 0);
}

static void next_works_through_the_line(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;
	int rc;

	add_letters(q, "abcd");
	wq_shutdown(q);

	char seen[8] = "";
	size_t n = 0;

	for (rc = wq_get(q, &it); rc == WQ_OK && n < 6; rc = wq_next(q, &it)) {
		seen[n++] = *(const char *)it.key;
		IS(wq_state(q, it.key, it.len), WQ_STATE_RUNNING);
		IS(count_keys(q), 5 - (int64_t)n); /* [ONE] the one before is done */
	}
	IS(rc, WQ_ESHUTDOWN);
	assert_string_equal(seen, "abcd");
}

static int64_t next_main(void *arg)
{
	struct getter *g = arg;

	return wq_next_until(g->q, &g->item, g->deadline_ns);
}

static void next_blocks_and_times_out(void **state)
{
	struct fixture *f = *state;
	struct getter g = {.q = f->q, .deadline_ns = START_NS + 5};

	add_letters(f->q, "a");
	get_is(f->q, &g.item, "a");
	actor_start(&g.actor, next_main, &g);
	actor_blocks(&g.actor);
	IS(state_of(f->q, "a"), 0);
	wq_manual_clock_advance(f->mc, 5);
	IS(actor_join(&g.actor), WQ_ETIMEDOUT);

	add_letters(f->q, "b");
	get_is(f->q, &g.item, "b");
	g.deadline_ns = WQ_NEVER;
	actor_start(&g.actor, next_main, &g);
	actor_blocks(&g.actor);
	add_letters(f->q, "c");
	IS(actor_join(&g.actor), WQ_OK);
	IS(*(const char *)g.item.key, 'c');
	IS(wq_interrupt(f->q, 0), 0);
	actor_start(&g.actor, next_main, &g);
	actor_blocks(&g.actor);
	IS(wq_interrupt(f->q, 1), 0);
	IS(actor_join(&g.actor), WQ_EINTERRUPTED);
	check_whole(f->q, 0, 0);
}

static void next_until_refuses_negative_times(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	add_letters(q, "ab");
	get_is(q, &it, "a");
	IS(wq_next_until(q, &it, -2), WQ_EINVAL); /* and the item is not done */
	IS(state_of(q, "a"), WQ_STATE_RUNNING);
	IS(wq_next_many_until(q, &it, 1, 1, -2), WQ_EINVAL);
	IS(state_of(q, "a"), WQ_STATE_RUNNING);
	IS(wq_done(q, &it), WQ_OK);
}

static void next_many_is_done_many_and_get_many(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item items[8];

	add_letters(q, "abcdefg");
	IS(wq_next_many_until(q, items, 0, 3, WQ_NEVER), 3);
	IS(*(const char *)items[2].key, 'c');
	wq_add_str(q, "b");
	IS(wq_next_many_until(q, items, 3, 8, WQ_NEVER), 5); /* d e f g b */
	IS(*(const char *)items[0].key, 'd');
	IS(*(const char *)items[4].key, 'b'); /* [BACK], and at the tail */
	IS(state_of(q, "a"), 0);
	IS(state_of(q, "c"), 0);
	/* only some of them: the others stay held */
	IS(wq_next_many_until(q, items, 4, 4, WQ_NOWAIT), WQ_EAGAIN);
	IS(count_keys(q), 1);
	IS(state_of(q, "b"), WQ_STATE_RUNNING);
	IS(wq_done(q, &items[4]), WQ_OK);
	IS(wq_next_many_until(q, items, 0, 4, 0), WQ_ETIMEDOUT);
	add_letters(q, "x");
	IS(wq_next_many_until(q, items, 0, 4, WQ_NEVER), 1);
	wq_shutdown(q);
	IS(wq_next_many_until(q, items, 1, 4, WQ_NEVER), WQ_ESHUTDOWN);
	check_whole(q, 0, 0);
}

static void next_many_of_more_than_one_lock_round(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	enum { N = 700 };
	static wq_item items[N];

	for (uint32_t i = 0; i < 2 * N; i++)
		IS(wq_add(q, &i, sizeof i), WQ_QUEUED);
	IS(wq_next_many_until(q, items, 0, N, WQ_NEVER), N);
	IS(wq_next_many_until(q, items, N, N, WQ_NEVER), N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t expected = N + i;

		assert_memory_equal(items[i].key, &expected, sizeof expected);
	}
	IS(wq_next_many_until(q, items, N, N, WQ_NOWAIT), WQ_EAGAIN);
	check_whole(q, 0, 0);
}

static void next_many_with_a_stale_item_gets_nothing(void **state)
{
	struct fixture *f = *state;
	struct fixture other;
	wq_item items[4], z;

	fixture_open(&other, NULL);
	add_letters(other.q, "z");
	get_is(other.q, &z, "z");
	add_letters(f->q, "abcdx");
	IS(wq_get_many_until(f->q, items, 4, WQ_NOWAIT), 4);
	IS(wq_done(f->q, &items[1]), WQ_OK);
	IS(wq_next_many_until(f->q, items, 3, 4, WQ_NEVER), WQ_ESTALE);
	IS(count_keys(f->q), 2); /* a and c are done, d is held, x in line */
	IS(state_of(f->q, "x"), WQ_STATE_QUEUED);
	items[0] = items[3];
	items[1] = z;
	IS(wq_next_many_until(f->q, items, 2, 4, WQ_NEVER), WQ_EOTHERQUEUE);
	IS(count_keys(f->q), 1);
	check_whole(f->q, 1, 0);
	IS(wq_done(other.q, &z), WQ_OK);
	fixture_close(&other, 0);
}

static void requeue_to_head_and_tail(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	add_letters(q, "abc");
	get_is(q, &it, "a");
	IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
	get_is(q, &it, "b");
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_ESTALE);
	IS(wq_done(q, &it), WQ_ESTALE);
	get_is(q, &it, "b");
	IS(it.attempts, 1); /* no failure is counted */
	wq_add_str(q, "b"); /* merges with the requeue */
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
	IS(state_of(q, "b"), WQ_STATE_QUEUED);
	take_is(q, "b", WQ_OK); /* once */
	take_is(q, "c", WQ_OK);
	take_is(q, "a", WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	add_letters(q, "x"); /* to the head of an empty line */
	get_is(q, &it, "x");
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
	add_letters(q, "y");
	take_is(q, "x", WQ_OK);
	take_is(q, "y", WQ_OK);
}

static void requeue_during_a_shutdown(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g;
	wq_item it;

	add_letters(q, "a");
	get_is(q, &it, "a");
	wq_shutdown(q);
	getter_start(&g, q, WQ_NEVER);
	IS(getter_join(&g), WQ_ESHUTDOWN);
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
	take_is(q, "a", WQ_OK); /* [KEEP] */
}

static void requeue_where_else(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	add_letters(q, "a");
	get_is(q, &it, "a");
	IS(wq_requeue(q, &it, (enum wq_where)2), WQ_EINVAL);
	IS(wq_requeue(q, &it, (enum wq_where)77), WQ_EINVAL);
	IS(state_of(q, "a"), WQ_STATE_RUNNING);
	IS(wq_done(q, &it), WQ_OK);
}

static void extend_and_lost(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it;

	add_letters(q, "a");
	get_is(q, &it, "a");
	IS(wq_extend(q, &it, 1), WQ_OK);
	IS(wq_extend(q, &it, WQ_NEVER), WQ_OK);
	IS(wq_extend(q, &it, 0), WQ_EINVAL);
	IS(wq_extend(q, &it, -1), WQ_EINVAL);
	IS(wq_lost(q, &it), 0);
	IS(state_of(q, "a"), WQ_STATE_RUNNING);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_extend(q, &it, 1), WQ_ESTALE);
	IS(wq_lost(q, &it), WQ_ESTALE);
	add_letters(q, "a");
	IS(wq_lost(q, &it), WQ_ESTALE);
	get_is(q, &it, "a");
	IS(wq_lost(q, &it), 0);
	IS(wq_done(q, &it), WQ_OK);
}

/* Memory is short: what a done gives back, the next add has. */
static void a_done_makes_room_for_an_add(void **state)
{
	struct fixture *f = *state;
	wq_item it;
	uint32_t n = 0;
	int rc;

	IS(wq_len(f->q), 0); /* what the queue takes once, it takes now */
	do {
		if (n == 100) {
			f->mem.fail_on = true;
			f->mem.fail_at = f->mem.calls;
		}
		n++;
	} while ((rc = wq_add(f->q, &n, sizeof n)) == WQ_QUEUED);
	IS(rc, WQ_ENOMEM);
	for (int i = 0; i < 600; i++, n++) {
		IS(wq_try_get(f->q, &it), WQ_OK);
		IS(wq_done(f->q, &it), WQ_OK);
		IS(wq_add(f->q, &n, sizeof n), WQ_QUEUED);
	}
	for (int i = 0; i < 100; i++, n += 2) {
		wq_item two[2];
		wq_key keys[2] = {{&(uint32_t){n}, sizeof n}, {&(uint32_t){n + 1}, sizeof n}};

		IS(wq_get_many_until(f->q, two, 2, WQ_NOWAIT), 2);
		IS(wq_done_many(f->q, two, 2, NULL), 2);
		IS(wq_add_many(f->q, keys, 2, NULL), 2);
	}
	f->mem.fail_on = false;
	f->mem.fail_at = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(a_done_makes_room_for_an_add),
	    WITH_FIXTURE(done_many_outcomes_one_by_one),
	    WITH_FIXTURE(done_many_refuses_reserved_words_WHOLE),
	    WITH_FIXTURE(done_many_of_none),
	    WITH_FIXTURE(next_works_through_the_line),
	    WITH_FIXTURE(next_blocks_and_times_out),
	    WITH_FIXTURE(next_until_refuses_negative_times),
	    WITH_FIXTURE(next_many_is_done_many_and_get_many),
	    WITH_FIXTURE(next_many_of_more_than_one_lock_round),
	    WITH_FIXTURE(next_many_with_a_stale_item_gets_nothing),
	    WITH_FIXTURE(requeue_to_head_and_tail),
	    WITH_FIXTURE(requeue_during_a_shutdown),
	    WITH_FIXTURE(requeue_where_else),
	    WITH_FIXTURE(extend_and_lost),
	};

	return cmocka_run_group_tests_name("done", tests, NULL, NULL);
}
