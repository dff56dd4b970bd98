/* What wq_new() accepts and refuses, and that nothing is lost when it refuses. */
#include "../support/support.h"

#include <sched.h>

static void works(wq_queue *q)
{
	check_whole(q, 0, 0);
	IS(wq_free(q), 0);
}

static void no_options_at_all(void **state)
{
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, NULL), WQ_OK);
	works(q);
	IS(wq_new(&q, &(wq_options){0}), WQ_OK);
	works(q);
	IS(wq_new(NULL, NULL), WQ_EINVAL);
}

static void out_is_untouched_on_an_error(void **state)
{
	int here;
	wq_queue *q = (wq_queue *)(void *)&here;

	(void)state;
	IS(wq_new(&q, &(wq_options){.spin_ns = -5}), WQ_EINVAL);
	assert_ptr_equal(q, &here);
}

static void reserved_words_must_be_zero(void **state)
{
	wq_queue *q = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(((wq_options *)0)->reserved); i++)
		for (int bit = 0; bit < 64; bit += 63) {
			wq_options o = {0};

			o.reserved[i] = UINT64_C(1) << bit;
			IS(wq_new(&q, &o), WQ_EINVAL);
			assert_null(q);
		}
}

static void name_is_copied_and_bounded(void **state)
{
	char name[300];
	wq_queue *q = NULL;

	(void)state;
	memset(name, 'n', sizeof name);
	name[255] = '\0';
	IS(wq_new(&q, &(wq_options){.name = name}), WQ_OK);
	memset(name, 'x', sizeof name);
	works(q);
	q = NULL;
	name[256] = '\0';
	IS(wq_new(&q, &(wq_options){.name = name}), WQ_EINVAL);
	assert_null(q);
	IS(wq_new(&q, &(wq_options){.name = ""}), WQ_OK);
	works(q);
}

static void spin_in_range(void **state)
{
	static const int64_t good[] = {WQ_SPIN_NEVER, 0, 1, 1000, WQ_MILLISECOND};
	static const int64_t bad[] = {-2, INT64_MIN, WQ_MILLISECOND + 1, INT64_MAX};
	wq_queue *q = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		IS(wq_new(&q, &(wq_options){.spin_ns = bad[i]}), WQ_EINVAL);
		assert_null(q);
	}
	for (size_t i = 0; i < LENGTH(good); i++) {
		IS(wq_new(&q, &(wq_options){.spin_ns = good[i]}), WQ_OK);
		works(q);
	}
}

/* A Get that spins and one that sleeps must both be found by an add and by a shutdown. */
static void spinning_gets_are_found(void **state)
{
	static const int64_t spins[] = {WQ_SPIN_NEVER, 0, WQ_MICROSECOND, WQ_MILLISECOND};

	(void)state;
	for (size_t i = 0; i < LENGTH(spins); i++)
		for (int round = 0; round < 50; round++) {
			struct getter a, b;
			wq_queue *q;

			IS(wq_new(&q, &(wq_options){.spin_ns = spins[i]}), WQ_OK);
			getter_start(&a, q, WQ_NEVER);
			getter_start(&b, q, wq_now(q) + WQ_HOUR);
			IS(wq_add_str(q, "k"), WQ_QUEUED);
			while (!actor_finished(&a.actor) && !actor_finished(&b.actor))
				sched_yield();
			IS(wq_shutdown(q), WQ_OK);

			int ra = getter_join(&a), rb = getter_join(&b);

			assert_true((ra == WQ_OK && rb == WQ_ESHUTDOWN) ||
			            (ra == WQ_ESHUTDOWN && rb == WQ_OK));
			IS(wq_done(q, ra == WQ_OK ? &a.item : &b.item), WQ_OK);
			IS(wq_free(q), 0);
		}
}

/*
 * A short deadline is not missed by the length of the spin. How late a thread
 * is on a busy machine says nothing: the best of some tries counts.
 */
static void spinning_ends_at_the_deadline(void **state)
{
	enum { TRIES = 40 };
	int64_t best = INT64_MAX;
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.spin_ns = WQ_MILLISECOND}), WQ_OK);
	for (int i = 0; i < TRIES; i++) {
		int64_t start = wq_clock_monotonic();
		wq_item it;

		IS(i % 2 ? wq_get_for(q, &it, 50 * WQ_MICROSECOND)
		         : wq_get_until(q, &it, start + 50 * WQ_MICROSECOND),
		   WQ_ETIMEDOUT);

		int64_t took = wq_clock_monotonic() - start;

		assert_true(took >= 50 * WQ_MICROSECOND);
		best = took < best ? took : best;
	}
	print_message("50 us: %lld us at best\n", (long long)(best / WQ_MICROSECOND));
	assert_true(best < 800 * WQ_MICROSECOND);
	IS(wq_free(q), 0);
}

static void callbacks_must_be_there(void **state)
{
	struct memory mem;
	wq_queue *q = NULL;

	(void)state;
	memory_init(&mem);
	wq_allocator good = memory_allocator(&mem), a = good;

	a.alloc = NULL;
	IS(wq_new(&q, &(wq_options){.allocator = &a}), WQ_EINVAL);
	a = good;
	a.free = NULL;
	IS(wq_new(&q, &(wq_options){.allocator = &a}), WQ_EINVAL);
	wq_clock clock = {.now = NULL};

	IS(wq_new(&q, &(wq_options){.clock = &clock}), WQ_EINVAL);
	wq_order order = {.push = NULL};

	IS(wq_new(&q, &(wq_options){.order = &order}), WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.engine_options = &mem}), WQ_EINVAL);
	assert_null(q);
	IS(mem.calls, 0);
}

static void seeds_of_every_kind(void **state)
{
	static const uint64_t seeds[] = {0, 1, 2, UINT64_MAX, UINT64_C(1) << 63};
	wq_queue *q;

	(void)state;
	for (size_t i = 0; i < LENGTH(seeds); i++) {
		IS(wq_new(&q, &(wq_options){.seed = seeds[i]}), WQ_OK);
		for (uint32_t k = 0; k < 3000; k++)
			IS(wq_add(q, &k, sizeof k), WQ_QUEUED);
		check_whole(q, 3000, 0);
		IS(wq_free(q), 3000); /* given up, and the answer says how many */
	}
}

static void key_fails(struct fixture *f, uint32_t key, int64_t delay_ns)
{
	wq_item it;

	IS(wq_add(f->q, &key, sizeof key), WQ_QUEUED);
	IS(wq_try_get(f->q, &it), WQ_OK);
	IS(wq_retry(f->q, &it), WQ_DELAYED);
	IS(wq_state(f->q, &key, sizeof key), WQ_STATE_WAITING | WQ_STATE_RETRYING);
	/* It alone waits. */
	IS(wq_next_deadline(f->q), wq_now(f->q) + delay_ns);
	wq_manual_clock_advance(f->mc, delay_ns);
	IS(wq_try_get(f->q, &it), WQ_OK);
	IS(wq_done(f->q, &it), WQ_OK);
}

/*
 * Without a limiter each key backs off alone, from 5 ms to 1000 s: others that fail, however many,
 * do not make it wait longer.
 */
static void without_a_limiter_each_key_backs_off_alone(void **state)
{
	enum { KEYS = 1000 };
	struct fixture f;
	int64_t delay = 5 * WQ_MILLISECOND;

	(void)state;
	fixture_open(&f, NULL);
	for (uint32_t key = 0; key < KEYS; key++) {
		wq_item it;

		IS(wq_add(f.q, &key, sizeof key), WQ_QUEUED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_retry(f.q, &it), WQ_DELAYED);
	}
	wq_manual_clock_advance(f.mc, delay - 1);
	IS(wq_len(f.q), 0);
	wq_manual_clock_advance(f.mc, 1);
	IS(wq_len(f.q), KEYS);
	for (int i = 0; i < KEYS; i++) {
		wq_item it;

		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_settle(f.q, &it, WQ_DONE), WQ_OK);
	}
	for (uint32_t n = 0; n < 25; n++) {
		key_fails(&f, KEYS, delay);
		IS(wq_failures(f.q, &(uint32_t){KEYS}, sizeof(uint32_t)), n + 1);
		delay = delay <= 500 * WQ_SECOND ? 2 * delay : 1000 * WQ_SECOND;
	}
	key_fails(&f, KEYS + 1, 5 * WQ_MILLISECOND); /* another starts anew */
	fixture_close(&f, 0);
}

/* [BOUND] */
static void max_keys_extremes(void **state)
{
	wq_queue *q;

	(void)state;
	IS(wq_new(&q, &(wq_options){.max_keys = 1}), WQ_OK);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_add_str(q, "b"), WQ_EFULL);
	IS(wq_add_str(q, "a"), WQ_MERGED);
	take_is(q, "a", WQ_OK);
	works(q);
	IS(wq_new(&q, &(wq_options){.max_keys = SIZE_MAX}), WQ_OK);
	works(q);
}

static void allocator_is_copied_and_alone_asked(void **state)
{
	struct memory mem;
	wq_queue *q;

	(void)state;
	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	IS(wq_new(&q, &(wq_options){.allocator = &a}), WQ_OK);
	memset(&a, 0, sizeof a);
	assert_true(mem.live > 0);
	for (uint32_t k = 0; k < 20000; k++)
		IS(wq_add(q, &k, sizeof k), WQ_QUEUED);
	assert_true(mem.bytes > 20000 * (int64_t)sizeof(uint32_t));
	check_whole(q, 20000, 0);
	IS(wq_free(q), 20000);
	memory_balanced(&mem);
}

static void versions_agree(void **state)
{
	char text[32];

	(void)state;
	IS(wq_version(), WQ_VERSION_NUMBER);
	snprintf(text, sizeof text, "%d.%d.%d", WQ_VERSION_MAJOR, WQ_VERSION_MINOR,
	         WQ_VERSION_PATCH);
	assert_string_equal(wq_version_string(), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_options_at_all),
	    cmocka_unit_test(out_is_untouched_on_an_error),
	    cmocka_unit_test(reserved_words_must_be_zero),
	    cmocka_unit_test(name_is_copied_and_bounded),
	    cmocka_unit_test(spin_in_range),
	    cmocka_unit_test(spinning_gets_are_found),
	    cmocka_unit_test(spinning_ends_at_the_deadline),
	    cmocka_unit_test(callbacks_must_be_there),
	    cmocka_unit_test(seeds_of_every_kind),
	    cmocka_unit_test(without_a_limiter_each_key_backs_off_alone),
	    cmocka_unit_test(max_keys_extremes),
	    cmocka_unit_test(allocator_is_copied_and_alone_asked),
	    cmocka_unit_test(versions_agree),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
