/* wq_add_many(), max_keys, and when a key was added. */
#include "../support/support.h"

static wq_key key_of(const char *s)
{
	return (wq_key){.key = s, .len = strlen(s)};
}

static void add_many_outcomes_one_by_one(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	static char longest[WQ_KEY_MAX + 1];
	wq_item it;

	wq_add_str(q, "held");
	get_is(q, &it, "held");
	wq_add_str(q, "queued");

	const wq_key keys[] = {
	    key_of("a"),    key_of("queued"),
	    key_of("held"), key_of("held"),
	    key_of("a"),    {NULL, 3},
	    {NULL, 0},      {longest, WQ_KEY_MAX + 1},
	    {"", SIZE_MAX}, {longest, WQ_KEY_MAX},
	    key_of(""),     key_of("b"),
	};
	const int expected[] = {
	    WQ_QUEUED, WQ_MERGED,   WQ_MARKED,   WQ_MERGED, WQ_MERGED, WQ_EINVAL,
	    WQ_QUEUED, WQ_ETOOLONG, WQ_ETOOLONG, WQ_QUEUED, WQ_MERGED, WQ_QUEUED,
	};
	int outcomes[LENGTH(keys) + 1];

	memset(outcomes, 0x77, sizeof outcomes);
	IS(wq_add_many(q, keys, LENGTH(keys), outcomes), 9);
	for (size_t i = 0; i < LENGTH(keys); i++)
		IS(outcomes[i], expected[i]);
	IS(outcomes[LENGTH(keys)], 0x77777777);
	IS(wq_len(q), 5);
	take_is(q, "queued", WQ_OK); /* [FIFO] */
	take_is(q, "a", WQ_OK);
	take_is(q, "", WQ_OK);

	wq_item big;

	IS(wq_try_get(q, &big), WQ_OK);
	IS((int64_t)big.len, WQ_KEY_MAX);
	IS(wq_done(q, &big), WQ_OK);
	take_is(q, "b", WQ_OK);
	IS(wq_done(q, &it), WQ_QUEUED);
	take_is(q, "held", WQ_OK);
}

static void add_many_of_more_than_one_lock_round(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	enum { N = 1000 };
	static uint32_t numbers[N];
	static wq_key keys[N];
	static int outcomes[N];
	static wq_item items[N];

	for (uint32_t i = 0; i < N; i++) {
		numbers[i] = i;
		keys[i] = (wq_key){&numbers[i], sizeof numbers[i]};
	}
	IS(wq_add_many(q, keys, N, outcomes), N);
	IS(wq_add_many(q, keys, N, NULL), N);
	for (uint32_t i = 0; i < N; i++)
		IS(outcomes[i], WQ_QUEUED);
	IS(wq_len(q), N);
	IS(wq_get_many_until(q, items, N, WQ_NOWAIT), N);
	for (uint32_t i = 0; i < N; i++)
		assert_memory_equal(items[i].key, &i, sizeof i);
	IS(wq_done_many(q, items, N, outcomes), N);
	for (uint32_t i = 0; i < N; i++)
		IS(outcomes[i], WQ_OK);
	check_whole(q, 0, 0);
}

static void add_many_of_none(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int outcome = 77;

	IS(wq_add_many(q, NULL, 0, NULL), 0);
	IS(wq_add_many(q, NULL, 0, &outcome), 0);
	IS(outcome, 77);
}

static void add_many_when_shut_down(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	const wq_key keys[] = {key_of("a"), {NULL, 1}, key_of("b")};
	int outcomes[3];

	wq_add_str(q, "a");
	wq_shutdown(q);
	IS(wq_add_many(q, keys, 3, outcomes), 0);
	IS(outcomes[0], WQ_ESHUTDOWN);
	IS(outcomes[1], WQ_EINVAL);
	IS(outcomes[2], WQ_ESHUTDOWN);
	check_whole(q, 1, 0);
}

/* [BOUND] A new key beyond the bound is refused; merges, done and requeue always succeed. */
static void max_keys_bounds_living_keys(void **state)
{
	struct fixture f;
	wq_item a, b;

	(void)state;
	fixture_open(&f, &(wq_options){.max_keys = 3});
	IS(wq_add_str(f.q, "a"), WQ_QUEUED);
	IS(wq_add_str(f.q, "b"), WQ_QUEUED);
	IS(wq_add_str(f.q, "c"), WQ_QUEUED);
	IS(wq_add_str(f.q, "d"), WQ_EFULL);
	IS(state_of(f.q, "d"), 0);
	IS(wq_len(f.q), 3);
	IS(wq_add_str(f.q, "a"), WQ_MERGED); /* merges always succeed */
	get_is(f.q, &a, "a");
	IS(wq_add_str(f.q, "d"), WQ_EFULL); /* held keys live too */
	IS(wq_add_str(f.q, "a"), WQ_MARKED);
	IS(wq_add_str(f.q, "a"), WQ_MERGED);
	IS(wq_done(f.q, &a), WQ_QUEUED); /* and so does done of a dirty key */
	get_is(f.q, &b, "b");
	IS(wq_requeue(f.q, &b, WQ_TAIL), WQ_QUEUED);
	IS(wq_add_str(f.q, "d"), WQ_EFULL);

	const wq_key keys[] = {key_of("d"), key_of("a"), key_of("e")};
	int outcomes[3];

	IS(wq_add_many(f.q, keys, 3, outcomes), 1);
	IS(outcomes[0], WQ_EFULL);
	IS(outcomes[1], WQ_MERGED);
	IS(outcomes[2], WQ_EFULL);
	take_is(f.q, "c", WQ_OK);
	IS(wq_add_str(f.q, "d"), WQ_QUEUED); /* there is room again */
	IS(wq_add_str(f.q, "e"), WQ_EFULL);
	wq_shutdown(f.q);
	IS(wq_add_str(f.q, "e"), WQ_ESHUTDOWN);
	fixture_close(&f, 3);
}

static void added_ns_tells_when(void **state)
{
	struct fixture *f = *state;
	wq_item it;

	wq_manual_clock_advance(f->mc, WQ_SECOND);
	wq_add_str(f->q, "k");
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_add_str(f->q, "k"), WQ_MERGED); /* the first add counts */
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	get_is(f->q, &it, "k");
	IS(it.added_ns, START_NS + WQ_SECOND);
	IS(it.attempts, 1);

	IS(wq_requeue(f->q, &it, WQ_TAIL), WQ_QUEUED);
	get_is(f->q, &it, "k");
	IS(it.added_ns, START_NS + WQ_SECOND); /* keeps it */

	wq_manual_clock_advance(f->mc, WQ_SECOND); /* now at START + 4 s */
	wq_add_str(f->q, "k");
	wq_manual_clock_advance(f->mc, WQ_SECOND);
	IS(wq_done(f->q, &it), WQ_QUEUED);
	get_is(f->q, &it, "k");
	IS(it.added_ns, START_NS + 4 * WQ_SECOND); /* of the add that this hold serves */
	IS(it.attempts, 1);

	wq_manual_clock_advance(f->mc, WQ_SECOND);
	wq_add_str(f->q, "k"); /* given back unfinished, the earlier add still waits to be served */
	IS(wq_requeue(f->q, &it, WQ_TAIL), WQ_QUEUED);
	get_is(f->q, &it, "k");
	IS(it.added_ns, START_NS + 4 * WQ_SECOND);
	IS(wq_done(f->q, &it), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(add_many_outcomes_one_by_one),
	    WITH_FIXTURE(add_many_of_more_than_one_lock_round),
	    WITH_FIXTURE(add_many_of_none),
	    WITH_FIXTURE(add_many_when_shut_down),
	    cmocka_unit_test(max_keys_bounds_living_keys),
	    WITH_FIXTURE(added_ns_tells_when),
	};

	return cmocka_run_group_tests_name("add", tests, NULL, NULL);
}
