/*
 * R8 of the rules: what the limiter reserved for a key that did not need it is
 * given back; the count stays. And a refused add counts nothing.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { R = WQ_STATE_RUNNING, W = WQ_STATE_WAITING };

static int limited(wq_queue *q, const char *key)
{
	return wq_add_limited(q, key, strlen(key));
}

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

/* A limiter of one's own, that says what it is told to and counts what it is asked. */
struct own {
	int64_t delay_ns;
	int asked, given_back, forgotten, freed;
	uint32_t failures;
};

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	struct own *o = ctx;

	assert_int_equal(len, 1);
	assert_memory_equal(key, "a", 1);
	assert_true(now_ns >= START_NS);
	o->asked++;
	o->failures++;
	return o->delay_ns;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	struct own *o = ctx;

	assert_int_equal(len, 1);
	assert_memory_equal(key, "a", 1);
	o->forgotten++;
	o->failures = 0;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	const struct own *o = ctx;

	(void)len;
	return *(const char *)key == 'a' ? o->failures : 0;
}

static void own_give_back(void *ctx, const void *key, size_t len)
{
	struct own *o = ctx;

	assert_int_equal(len, 1);
	assert_memory_equal(key, "a", 1);
	o->given_back++;
}

static void own_free(void *ctx)
{
	((struct own *)ctx)->freed++;
}

static wq_limiter *own_limiter(struct own *o)
{
	*o = (struct own){.delay_ns = 0};
	return wq_limiter_custom(&(wq_limiter_functions){
	    .when = own_when,
	    .forget = own_forget,
	    .failures = custom_failures,
	    .give_back = own_give_back,
	    .free = own_free,
	    .ctx = o,
	});
}

/* ---- merged and kept ---------------------------------------------------------- */

/* Tokens are counted by when the next key comes. */
static void R8_tokens_of_a_bucket(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_bucket(1, 3)});
	IS(limited(f.q, "a"), WQ_QUEUED);
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_MERGED); /* each gives back */
	get_is(f.q, &it, "a");
	IS(limited(f.q, "a"), WQ_MARKED); /* the second token */
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_MERGED);
	IS(limited(f.q, "b"), WQ_QUEUED);  /* the third */
	IS(limited(f.q, "c"), WQ_DELAYED); /* in 1 s */
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "c"), WQ_KEPT);
	IS(limited(f.q, "d"), WQ_DELAYED); /* in 2 s */
	wq_manual_clock_advance(f.mc, 2 * WQ_SECOND - 1);
	IS(wq_state(f.q, "c", 1), WQ_STATE_QUEUED);
	IS(wq_state(f.q, "d", 1), W | WQ_STATE_RETRYING);
	wq_manual_clock_advance(f.mc, 1);
	IS(wq_state(f.q, "d", 1), WQ_STATE_QUEUED);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	fixture_close(&f, 4);
}

static void R8_tokens_of_a_key(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_bucket_per_key(1, 1)});
	IS(limited(f.q, "a"), WQ_QUEUED);
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_MERGED);
	take_is(f.q, "a", WQ_OK);
	IS(limited(f.q, "b"), WQ_QUEUED); /* has its own */
	IS(limited(f.q, "a"), WQ_DELAYED);
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_KEPT);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	take_is(f.q, "b", WQ_OK);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	take_is(f.q, "a", WQ_OK);
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + 2 * WQ_SECOND);
	fixture_close(&f, 1);
}

/* Every outcome: is it given back? The user's own limiter is told, and keeps its count. */
static void R8_every_outcome(void **state)
{
	struct fixture f;
	struct own o;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = own_limiter(&o)});
	o.delay_ns = 50;
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(o.given_back, 0);
	o.delay_ns = 20;
	IS(limited(f.q, "a"), WQ_MOVED);
	IS(o.given_back, 0);
	o.delay_ns = 30;
	IS(limited(f.q, "a"), WQ_KEPT);
	IS(o.given_back, 1);
	o.delay_ns = -5; /* counts as 0 */
	IS(limited(f.q, "a"), WQ_QUEUED);
	IS(o.given_back, 1);
	IS(limited(f.q, "a"), WQ_MERGED);
	IS(o.given_back, 2);
	o.delay_ns = 30;
	IS(limited(f.q, "a"), WQ_MERGED);
	IS(o.given_back, 3);
	get_is(f.q, &it, "a");
	IS(it.attempts, 7);
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(o.given_back, 3);
	o.delay_ns = 0;
	IS(limited(f.q, "a"), WQ_MARKED);
	IS(o.given_back, 3);
	IS(limited(f.q, "a"), WQ_MERGED);
	IS(o.given_back, 4);
	IS(o.asked, 9);
	IS(requeues(f.q, "a"), 9);
	IS(wq_failures_item(f.q, &it), 9);
	IS(requeues(f.q, "b"), 0);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	take_is(f.q, "a", WQ_OK);
	IS(requeues(f.q, "a"), 9); /* of a key that the queue does not know */
	IS(o.forgotten, 0);
	IS(wq_forget(f.q, "a", 1), WQ_OK);
	IS(o.forgotten, 1);
	IS(requeues(f.q, "a"), 0);
	fixture_close(&f, 0);
	IS(o.freed, 1);
}

/* A retry that finds the key in line again, or waiting for an earlier time. */
static void R8_retry_gives_back(void **state)
{
	static const int64_t delays[] = {0, 30};

	(void)state;
	for (size_t i = 0; i < LENGTH(delays); i++) {
		struct fixture f;
		struct own o;
		wq_item it;

		fixture_open(&f, &(wq_options){.limiter = own_limiter(&o)});
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		o.delay_ns = delays[i];
		IS(wq_retry(f.q, &it), delays[i] > 0 ? WQ_DELAYED : WQ_QUEUED);
		IS(o.given_back, 0);
		wq_manual_clock_advance(f.mc, delays[i]);
		get_is(f.q, &it, "a");
		wq_add_str(f.q, "a");
		IS(wq_retry(f.q, &it), WQ_QUEUED); /* dirty */
		IS(o.given_back, 1);
		get_is(f.q, &it, "a");
		wq_add_after(f.q, "a", 1, 10);
		IS(wq_retry(f.q, &it), delays[i] > 0 ? WQ_DELAYED : WQ_QUEUED);
		IS(o.given_back, delays[i] > 0 ? 2 : 1);
		IS(o.asked, 3);
		fixture_close(&f, 1);
	}
}

/* ---- refused --------------------------------------------------------------------- */

static void R1_refused_in_a_shutdown(void **state)
{
	struct fixture f;
	struct own o;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = own_limiter(&o)});
	wq_shutdown(f.q);
	IS(limited(f.q, "a"), WQ_ESHUTDOWN);
	IS(o.asked, 0);
	IS(requeues(f.q, "a"), 0);
	fixture_close(&f, 0);
}

static void R1_refused_by_a_full_queue(void **state)
{
	struct fixture f;
	struct own o;
	wq_limiter *parts[2];

	(void)state;
	parts[0] = wq_limiter_fast_slow(0, 1000, 3);
	parts[1] = wq_limiter_bucket(1, 2);
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_max_of(parts, 2), .max_keys = 1});
	IS(limited(f.q, "a"), WQ_QUEUED);
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "b"), WQ_EFULL);
	IS(requeues(f.q, "b"), 0);
	take_is(f.q, "a", WQ_OK);
	IS(limited(f.q, "b"), WQ_QUEUED); /* the token was there all the time */
	IS(requeues(f.q, "b"), 1);
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_EFULL); /* a key that is remembered */
	IS(requeues(f.q, "a"), 1);
	take_is(f.q, "b", WQ_OK);
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	fixture_close(&f, 1);

	/* one's own limiter may be asked, but then it gets back what it reserved */
	fixture_open(&f, &(wq_options){.limiter = own_limiter(&o), .max_keys = 1});
	wq_add_str(f.q, "x");
	IS(limited(f.q, "a"), WQ_EFULL);
	IS(o.given_back, o.asked);
	fixture_close(&f, 1);
}

/* Without memory for the key, and without memory for the delay of a key that is there. */
static void R1_refused_without_memory(void **state)
{
	struct fixture f;
	wq_limiter *parts[2];
	int refused = 0, rc;
	int n = 0;

	(void)state;
	parts[0] = wq_limiter_exponential(1000, 1000);
	parts[1] = wq_limiter_bucket(1, 1000000);
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_max_of(parts, 2)});
	for (; refused < 10; n++) {
		f.mem.fail_at = f.mem.calls;
		f.mem.fail_on = true;
		rc = wq_add_limited(f.q, &n, sizeof n);
		f.mem.fail_at = -1;
		if (rc == WQ_ENOMEM) {
			refused++;
			IS(wq_failures(f.q, &n, sizeof n), 0);
			IS(wq_state(f.q, &n, sizeof n), 0);
			rc = wq_add_limited(f.q, &n, sizeof n);
		}
		IS(rc, WQ_DELAYED);
		IS(wq_failures(f.q, &n, sizeof n), 1);
	}
	/* so many tokens were taken, and not one more */
	for (int i = n; i < 1000000; i++)
		if (wq_add_limited(f.q, "x", 1) < 0 || cancel_key(f.q, "x", 1) != W)
			fail();
	IS(wq_forget(f.q, "x", 1), WQ_OK);
	IS(wq_add_limited(f.q, "x", 1), WQ_DELAYED);
	wq_manual_clock_advance(f.mc, WQ_SECOND - 1);
	IS(wq_len(f.q), n);
	wq_manual_clock_advance(f.mc, 1);
	IS(wq_len(f.q), n + 1);
	fixture_close(&f, n + 1);
}

/* Of a key that is alive already: the state that its own part keeps is as before, too. */
static void R1_refused_keeps_a_keys_bucket(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, &(wq_options){.limiter = wq_limiter_bucket_per_key(1, 1)});
	IS(limited(f.q, "a"), WQ_QUEUED);
	take_is(f.q, "a", WQ_OK); /* remembered: the bucket is empty */
	f.mem.fail_at = f.mem.calls;
	f.mem.fail_on = true;
	for (int i = 0; i < 10; i++)
		IS(limited(f.q, "a"), WQ_ENOMEM); /* there is none for a due time */
	f.mem.fail_at = -1;
	IS(limited(f.q, "a"), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	fixture_close(&f, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(R8_tokens_of_a_bucket),
	    cmocka_unit_test(R8_tokens_of_a_key),
	    cmocka_unit_test(R8_every_outcome),
	    cmocka_unit_test(R8_retry_gives_back),
	    cmocka_unit_test(R1_refused_in_a_shutdown),
	    cmocka_unit_test(R1_refused_by_a_full_queue),
	    cmocka_unit_test(R1_refused_without_memory),
	    cmocka_unit_test(R1_refused_keeps_a_keys_bucket),
	};

	return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
