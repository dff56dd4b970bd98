/*
 * C3 of the rules: a maximum of attempts, and the dead letter. [DEAD] The Nth
 * failure gives the key up: the callback runs outside the lock while the key is
 * held, then the key is forgotten and done.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum { Q = WQ_STATE_QUEUED, R = WQ_STATE_RUNNING, RD = R | WQ_STATE_DIRTY };

/* What the callback saw, and what it is to do. */
struct post {
	struct fixture f;
	int letters;
	wq_item item;     /* as the callback got it */
	wq_item original; /* as the worker has it */
	void (*act)(struct post *p, const wq_item *item);
};

static int64_t requeues(wq_queue *q, const char *key)
{
	return wq_failures(q, key, strlen(key));
}

static void letter(void *ctx, const wq_item *item)
{
	struct post *p = ctx;

	p->letters++;
	p->item = *item;
	IS((int64_t)item->len, 1);
	assert_memory_equal(item->key, "a", 2);
	if (p->act)
		p->act(p, item);
}

static void open_post(struct post *p, uint32_t max_attempts, wq_limiter *l)
{
	*p = (struct post){.letters = 0};
	fixture_open(&p->f, &(wq_options){
				.limiter = l,
				.max_attempts = max_attempts,
				.dead_letter = letter,
				.dead_ctx = p,
			    });
}

static int64_t ndead(wq_queue *q)
{
	wq_report r;

	assert_true(wq_drain_until(q, 0, NULL, &r) != WQ_EINVAL);
	return (int64_t)r.dead;
}

/* Add it and get it as often as it takes to be at the last attempt. */
static void get_last(struct post *p, uint32_t max_attempts)
{
	wq_add_str(p->f.q, "a");
	for (uint32_t i = 1;; i++) {
		get_is(p->f.q, &p->original, "a");
		IS(p->original.attempts, i);
		if (i == max_attempts)
			return;
		IS(wq_retry(p->f.q, &p->original), WQ_DELAYED);
		wq_manual_clock_advance(p->f.mc, WQ_SECOND);
	}
}

static void C3_the_nth_failure(void **state)
{
	static const uint32_t most[] = {1, 2, 3, 10};

	(void)state;
	for (size_t i = 0; i < LENGTH(most); i++) {
		struct post p;
		wq_item it;

		open_post(&p, most[i], wq_limiter_exponential(10, 1000));
		get_last(&p, most[i]);
		IS(p.letters, 0);
		it = p.original;
		IS(wq_retry(p.f.q, &it), WQ_DEAD);
		IS(p.letters, 1);
		assert_memory_equal(&it, &p.original, sizeof it);
		IS(p.item.attempts, most[i]);
		IS(state_of(p.f.q, "a"), 0);
		IS(requeues(p.f.q, "a"), 0); /* forgotten */
		IS(count_keys(p.f.q), 0);
		IS(wq_next_deadline(p.f.q), WQ_NEVER);
		IS(wq_retry(p.f.q, &it), WQ_ESTALE);
		IS(wq_retry(p.f.q, &p.item), WQ_ESTALE);
		IS(p.letters, 1);
		/* and it may live again */
		get_last(&p, most[i]);
		IS(wq_retry(p.f.q, &p.original), WQ_DEAD);
		IS(p.letters, 2);
		IS(ndead(p.f.q), 2);
		fixture_close(&p.f, 0);
	}
}

/* Failures of limited adds count like those of retries. */
static void C3_limited_adds_count(void **state)
{
	struct post p;
	wq_item it;

	(void)state;
	open_post(&p, 3, wq_limiter_fast_slow(0, 0, 1));
	IS(wq_add_limited(p.f.q, "a", 1), WQ_QUEUED);
	IS(wq_add_limited(p.f.q, "a", 1), WQ_MERGED);
	IS(wq_add_limited(p.f.q, "a", 1), WQ_MERGED);
	IS(wq_add_limited(p.f.q, "a", 1), WQ_MERGED); /* adds are never refused for that */
	get_is(p.f.q, &it, "a");
	IS(it.attempts, 5);
	IS(p.letters, 0);
	IS(wq_forget_item(p.f.q, &it), WQ_OK);
	IS(wq_retry(p.f.q, &it), WQ_QUEUED); /* the first failure again */
	get_is(p.f.q, &it, "a");
	IS(wq_add_limited(p.f.q, "a", 1), WQ_MARKED);
	IS(wq_retry(p.f.q, &it), WQ_DEAD); /* 2 failures before this one */
	IS(p.letters, 1);
	IS(state_of(p.f.q, "a"), Q);
	IS(requeues(p.f.q, "a"), 0);
	fixture_close(&p.f, 1);
}

/* [FATAL] At the first attempt, and without a maximum; also in a shutdown. */
static void C3_for_good(void **state)
{
	static const uint32_t most[] = {0, 1, 3};

	(void)state;
	for (size_t i = 0; i < LENGTH(most) * 2; i++) {
		struct post p;

		open_post(&p, most[i / 2], wq_limiter_exponential(10, 1000));
		wq_add_str(p.f.q, "a");
		get_is(p.f.q, &p.original, "a");
		if (i % 2 == 1)
			wq_shutdown(p.f.q);
		IS(wq_settle(p.f.q, &p.original, WQ_FATAL), WQ_DEAD);
		IS(p.letters, 1);
		IS(p.item.attempts, 1);
		IS(state_of(p.f.q, "a"), 0);
		IS(requeues(p.f.q, "a"), 0);
		IS(ndead(p.f.q), 1);
		IS(wq_settle(p.f.q, &p.original, WQ_FATAL), WQ_ESTALE);
		IS(p.letters, 1);
		fixture_close(&p.f, 0);
	}
}

/* [FATAL] One that was cancelled does not die; one that was added meanwhile lives on afresh. */
static void C3_for_good_meanwhile(void **state)
{
	struct post p;

	(void)state;
	open_post(&p, 3, wq_limiter_exponential(10, 1000));
	wq_add_str(p.f.q, "a");
	get_is(p.f.q, &p.original, "a");
	IS(cancel_key(p.f.q, "a", 1), R);
	IS(wq_settle(p.f.q, &p.original, WQ_FATAL), WQ_CANCELLED);
	IS(p.letters, 0);
	wq_add_str(p.f.q, "a");
	get_is(p.f.q, &p.original, "a");
	IS(wq_add_str(p.f.q, "a"), WQ_MARKED);
	IS(wq_settle(p.f.q, &p.original, WQ_FATAL), WQ_DEAD);
	IS(p.letters, 1);
	IS(state_of(p.f.q, "a"), Q);
	fixture_close(&p.f, 1);
}

/* No callback: it is counted. No maximum: for ever. */
static void C3_without_a_callback(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f,
	             &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1), .max_attempts = 1});
	wq_add_str(f.q, "a");
	get_is(f.q, &it, "a");
	IS(wq_retry(f.q, &it), WQ_DEAD);
	IS(state_of(f.q, "a"), 0);
	IS(ndead(f.q), 1);
	fixture_close(&f, 0);

	fixture_open(&f, &(wq_options){.limiter = wq_limiter_fast_slow(0, 0, 1)});
	wq_add_str(f.q, "a");
	for (uint32_t i = 1; i <= 1000; i++) {
		get_is(f.q, &it, "a");
		IS(it.attempts, i);
		IS(wq_retry(f.q, &it), WQ_QUEUED);
	}
	IS(ndead(f.q), 0);
	fixture_close(&f, 1);
}

/* ---- in the callback -------------------------------------------------------------------- */

/* The key is held by the callback's item alone. */
static void look_around(struct post *p, const wq_item *item)
{
	wq_queue *q = p->f.q;
	int settled = 77;
	wq_item copy = p->original;

	IS(state_of(q, "a"), R);
	IS(count_keys(q), 1);
	IS(wq_lost(q, item), 0);
	IS(wq_failures_item(q, item), 2);
	IS(wq_done(q, &p->original), WQ_ESTALE);
	IS(wq_retry(q, &p->original), WQ_ESTALE);
	IS(wq_settle(q, &p->original, WQ_DONE), WQ_ESTALE);
	IS(wq_settle_next_until(q, &copy, WQ_RETRY, WQ_NOWAIT, &settled), WQ_ESTALE);
	IS(settled, 77);
	IS(wq_requeue(q, &p->original, WQ_HEAD), WQ_ESTALE);
	IS(wq_forget_item(q, &p->original), WQ_ESTALE);
	IS(wq_extend(q, &p->original, 1), WQ_ESTALE);
	IS(p->letters, 1);
	/* another key goes its way */
	IS(wq_add_str(q, "b"), WQ_QUEUED);
	take_is(q, "b", WQ_OK);
	IS(wq_free(q), WQ_EBUSY);
}

static void C3_the_callback_may_use_the_queue(void **state)
{
	struct post p;

	(void)state;
	open_post(&p, 3, wq_limiter_exponential(10, 1000));
	get_last(&p, 3);
	p.act = look_around;
	IS(wq_retry(p.f.q, &p.original), WQ_DEAD);
	IS(p.letters, 1);
	IS(state_of(p.f.q, "a"), 0);
	fixture_close(&p.f, 0);
}

static void add_again(struct post *p, const wq_item *item)
{
	IS(wq_add(p->f.q, item->key, item->len), WQ_MARKED);
}

static void add_limited_again(struct post *p, const wq_item *item)
{
	assert_true(wq_add_limited(p->f.q, item->key, item->len) > 0);
}

static void add_after_again(struct post *p, const wq_item *item)
{
	IS(wq_add_after(p->f.q, item->key, item->len, 5), WQ_DELAYED);
}

static void cancel_it(struct post *p, const wq_item *item)
{
	IS(cancel_key(p->f.q, item->key, item->len), R);
}

/* What is added in the callback comes back afresh; what is cancelled is gone. */
static void C3_added_in_the_callback(void **state)
{
	static void (*const acts[])(struct post *, const wq_item *) = {add_again, add_limited_again,
	                                                               add_after_again, cancel_it};

	(void)state;
	for (size_t i = 0; i < LENGTH(acts); i++) {
		struct post p;
		wq_item it;

		open_post(&p, 2, wq_limiter_fast_slow(10, 10, 1));
		get_last(&p, 2);
		p.act = acts[i];
		IS(wq_retry(p.f.q, &p.original), WQ_DEAD);
		IS(requeues(p.f.q, "a"), 0);
		wq_manual_clock_advance(p.f.mc, 10);
		if (acts[i] == cancel_it) {
			IS(wq_len(p.f.q), 0);
		} else {
			get_is(p.f.q, &it, "a");
			IS(it.attempts, 1);
			IS(wq_done(p.f.q, &it), WQ_OK);
		}
		fixture_close(&p.f, 0);
	}
}

/* Added before the last failure: in line afresh, at the tail. */
static void C3_dirty(void **state)
{
	struct post p;
	wq_item it;

	(void)state;
	open_post(&p, 2, wq_limiter_exponential(10, 1000));
	get_last(&p, 2);
	wq_add_str(p.f.q, "a");
	wq_add_str(p.f.q, "b");
	IS(state_of(p.f.q, "a"), RD);
	IS(wq_retry(p.f.q, &p.original), WQ_DEAD);
	IS(p.letters, 1);
	take_is(p.f.q, "b", WQ_OK);
	get_is(p.f.q, &it, "a");
	IS(it.attempts, 1);
	IS(wq_retry(p.f.q, &it), WQ_DELAYED);
	IS(requeues(p.f.q, "a"), 1);
	fixture_close(&p.f, 1);
}

/* A cancelled hold does not die. */
static void C3_cancelled(void **state)
{
	struct post p;

	(void)state;
	open_post(&p, 2, wq_limiter_exponential(10, 1000));
	get_last(&p, 2);
	IS(cancel_key(p.f.q, "a", 1), R);
	IS(wq_retry(p.f.q, &p.original), WQ_CANCELLED);
	IS(p.letters, 0);
	IS(requeues(p.f.q, "a"), 1);
	IS(ndead(p.f.q), 0);
	fixture_close(&p.f, 0);
}

/* Dead rather than left over, whatever stops the queue; and dirty ones come back. */
static void C3_in_a_shutdown(void **state)
{
	(void)state;
	for (int dirty = 0; dirty < 2; dirty++) {
		struct post p;
		wq_report r;

		open_post(&p, 2, wq_limiter_exponential(10, 1000));
		get_last(&p, 2);
		if (dirty)
			wq_add_str(p.f.q, "a");
		wq_shutdown(p.f.q);
		IS(wq_retry(p.f.q, &p.original), WQ_DEAD);
		IS(p.letters, 1);
		IS(wq_drain_until(p.f.q, 0, NULL, &r), dirty ? WQ_ETIMEDOUT : WQ_OK);
		IS((int64_t)r.dead, 1);
		IS((int64_t)(r.retries + r.delayed), 0);
		IS((int64_t)r.queued, dirty);
		fixture_close(&p.f, dirty);
	}
}

/* The drain waits for the callback, and counts the key. */
struct pause {
	wq_queue *q;
	wq_item item;
	pthread_barrier_t in, out;
};

static void pause_letter(void *ctx, const wq_item *item)
{
	struct pause *p = ctx;

	(void)item;
	pthread_barrier_wait(&p->in);
	pthread_barrier_wait(&p->out);
}

static int64_t retry_main(void *arg)
{
	struct pause *p = arg;

	return wq_retry(p->q, &p->item);
}

static void C3_outside_the_lock(void **state)
{
	struct pause p;
	struct fixture f;
	struct actor worker;
	struct drainer d;

	(void)state;
	pthread_barrier_init(&p.in, NULL, 2);
	pthread_barrier_init(&p.out, NULL, 2);
	fixture_open(&f,
	             &(wq_options){.max_attempts = 1, .dead_letter = pause_letter, .dead_ctx = &p});
	p.q = f.q;
	wq_add_str(f.q, "a");
	get_is(f.q, &p.item, "a");
	actor_start(&worker, retry_main, &p);
	pthread_barrier_wait(&p.in);
	/* another thread uses the queue meanwhile; the key is held */
	IS(state_of(f.q, "a"), R);
	wq_add_str(f.q, "b");
	take_is(f.q, "b", WQ_OK);
	IS(wq_done(f.q, &p.item), WQ_ESTALE);
	drainer_block(&d, f.q, WQ_NEVER);
	pthread_barrier_wait(&p.out);
	IS(actor_join(&worker), WQ_DEAD);
	IS(drainer_join(&d), WQ_OK);
	IS((int64_t)d.report.dead, 1);
	pthread_barrier_destroy(&p.in);
	pthread_barrier_destroy(&p.out);
	fixture_close(&f, 0);
}

/* The other verdicts end no life: again and done forget. */
static void C3_other_verdicts(void **state)
{
	const wq_verdict verdicts[] = {WQ_DONE, WQ_DROP, wq_again_after(5000)};

	(void)state;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		struct post p;

		open_post(&p, 2, wq_limiter_exponential(10, 1000));
		get_last(&p, 2);
		IS(wq_settle(p.f.q, &p.original, verdicts[i]),
		   verdicts[i].kind == WQ_VERDICT_AGAIN ? WQ_DELAYED : WQ_OK);
		IS(p.letters, 0);
		IS(requeues(p.f.q, "a"), 0);
		IS(ndead(p.f.q), 0);
		fixture_close(&p.f, verdicts[i].kind == WQ_VERDICT_AGAIN);
	}
}

/* ---- the options ---------------------------------------------------------------------------- */

static void C3_a_limiter_that_counts(void **state)
{
	wq_limiter *parts[2];
	wq_queue *q = NULL;

	(void)state;
	IS(wq_new(&q, &(wq_options){.max_attempts = 1, .limiter = wq_limiter_bucket(1, 1)}),
	   WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.max_attempts = 1, .limiter = wq_limiter_bucket_per_key(1, 1)}),
	   WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.max_attempts = 2,
	                            .limiter = wq_limiter_max_wait(wq_limiter_bucket(1, 1), 1)}),
	   WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.max_attempts = WQ_FAILURES_MAX + 1}), WQ_EINVAL);
	IS(wq_new(&q, &(wq_options){.max_attempts = UINT32_MAX}), WQ_EINVAL);
	parts[0] = wq_limiter_bucket(1, 1);
	parts[1] = wq_limiter_bounded(wq_limiter_bucket_per_key(1, 1), 5);
	IS(wq_new(&q, &(wq_options){.max_attempts = 1, .limiter = wq_limiter_max_of(parts, 2)}),
	   WQ_EINVAL);
	assert_null(q);
	/* one part that counts is enough; and the default does */
	parts[0] = wq_limiter_bucket(1, 1);
	parts[1] = wq_limiter_fast_slow(0, 0, 0);
	IS(wq_new(&q, &(wq_options){.max_attempts = 1, .limiter = wq_limiter_max_of(parts, 2)}),
	   WQ_OK);
	IS(wq_free(q), 0);
	IS(wq_new(&q, &(wq_options){.max_attempts = WQ_FAILURES_MAX}), WQ_OK);
	IS(wq_free(q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(C3_the_nth_failure),
	    cmocka_unit_test(C3_limited_adds_count),
	    cmocka_unit_test(C3_for_good),
	    cmocka_unit_test(C3_for_good_meanwhile),
	    cmocka_unit_test(C3_without_a_callback),
	    cmocka_unit_test(C3_the_callback_may_use_the_queue),
	    cmocka_unit_test(C3_added_in_the_callback),
	    cmocka_unit_test(C3_dirty),
	    cmocka_unit_test(C3_cancelled),
	    cmocka_unit_test(C3_in_a_shutdown),
	    cmocka_unit_test(C3_outside_the_lock),
	    cmocka_unit_test(C3_other_verdicts),
	    cmocka_unit_test(C3_a_limiter_that_counts),
	};

	return cmocka_run_group_tests_name("dead letters", tests, NULL, NULL);
}
