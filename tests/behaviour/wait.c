/* Waiting for idleness and for one key, and freeing a queue that is in use. */
#include "../support/support.h"

#include <sched.h>

/* A thread that waits until the queue is idle, or, with a key, until that key is finished. */
struct waiter {
	struct actor actor;
	wq_queue *q;
	const char *key;
	int64_t deadline_ns;
	bool span;
};

static int64_t wait_main(void *arg)
{
	struct waiter *w = arg;

	if (w->key == NULL)
		return w->span ? wq_wait_idle_for(w->q, w->deadline_ns)
		               : wq_wait_idle_until(w->q, w->deadline_ns);
	return w->span ? wq_wait_key_for(w->q, w->key, strlen(w->key), w->deadline_ns)
	               : wq_wait_key_until(w->q, w->key, strlen(w->key), w->deadline_ns);
}

static void waiter_block(struct waiter *w, wq_queue *q, const char *key)
{
	*w = (struct waiter){.q = q, .key = key, .deadline_ns = WQ_NEVER};
	actor_start(&w->actor, wait_main, w);
	actor_blocks(&w->actor);
}

static void wait_idle_returns_at_once_if_idle(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	IS(wq_wait_idle_until(q, WQ_NEVER), WQ_OK);
	IS(wq_wait_idle_until(q, 0), WQ_OK);
	IS(wq_wait_idle_for(q, 0), WQ_OK);
	IS(wq_wait_idle_for(q, WQ_NEVER), WQ_OK);
	IS(wq_shutting_down(q), 0);
	check_whole(q, 0, 0);
}

static void wait_idle_waits_for_queued_and_held(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w[3];
	wq_item it;

	wq_add_str(q, "a");
	wq_add_str(q, "b");
	for (size_t i = 0; i < LENGTH(w); i++)
		waiter_block(&w[i], q, NULL);
	take_is(q, "a", WQ_OK);
	get_is(q, &it, "b");
	actor_blocks(&w[0].actor);
	wq_add_str(q, "b"); /* it goes on taking keys */
	IS(wq_done(q, &it), WQ_QUEUED);
	actor_blocks(&w[0].actor);
	take_is(q, "b", WQ_OK);
	for (size_t i = 0; i < LENGTH(w); i++) /* all of them */
		IS(actor_join(&w[i].actor), WQ_OK);
	check_whole(q, 0, 0);
}

static void wait_idle_ends_by_next_too(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w;
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	waiter_block(&w, q, NULL);
	IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
	IS(actor_join(&w.actor), WQ_OK);
}

static void wait_idle_times_out(void **state)
{
	struct fixture *f = *state;
	struct waiter w = {.q = f->q, .deadline_ns = START_NS + 10};
	struct waiter s = {.q = f->q, .deadline_ns = 20, .span = true};

	wq_add_str(f->q, "a");
	IS(wq_wait_idle_until(f->q, 0), WQ_ETIMEDOUT);
	IS(wq_wait_idle_until(f->q, START_NS), WQ_ETIMEDOUT);
	IS(wq_wait_idle_for(f->q, 0), WQ_ETIMEDOUT);
	IS(wq_wait_idle_for(f->q, -1), WQ_ETIMEDOUT);
	actor_start(&w.actor, wait_main, &w);
	actor_start(&s.actor, wait_main, &s);
	actor_blocks(&w.actor);
	actor_blocks(&s.actor);
	wq_manual_clock_advance(f->mc, 9);
	actor_blocks(&w.actor);
	wq_manual_clock_advance(f->mc, 1);
	IS(actor_join(&w.actor), WQ_ETIMEDOUT);
	actor_blocks(&s.actor);
	wq_manual_clock_advance(f->mc, 10);
	IS(actor_join(&s.actor), WQ_ETIMEDOUT);
	IS(wq_wait_idle_until(f->q, -1), WQ_EINVAL);
	check_whole(f->q, 1, 0);
}

static void wait_key_absent_returns_at_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	wq_add_str(q, "other");
	IS(wq_wait_key_until(q, "k", 1, WQ_NEVER), WQ_OK);
	IS(wq_wait_key_until(q, NULL, 0, WQ_NEVER), WQ_OK);
	IS(wq_wait_key_for(q, "k", 1, WQ_NEVER), WQ_OK);
	IS(wq_wait_key_for(q, NULL, 0, WQ_NEVER), WQ_OK);
}

/* [KEYWAIT] A wait ends with what had been asked before it; what comes later does not prolong it. */
static void wait_key_queued_until_held_and_done(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w;
	wq_item it;

	wq_add_str(q, "k");
	wq_add_str(q, "other");
	waiter_block(&w, q, "k");
	get_is(q, &it, "k");
	actor_blocks(&w.actor);
	wq_add_str(q, "k"); /* later adds do not prolong the wait */
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(actor_join(&w.actor), WQ_OK);
	IS(state_of(q, "k"), WQ_STATE_QUEUED);
}

static void wait_key_held_until_that_hold_is_done(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w;
	wq_item it;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	waiter_block(&w, q, "k");
	wq_add_str(q, "k");
	actor_blocks(&w.actor);
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(actor_join(&w.actor), WQ_OK);
}

static void wait_key_dirty_until_its_next_hold_is_done(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w, queued;
	wq_item it;

	wq_add_str(q, "k");
	get_is(q, &it, "k");
	wq_add_str(q, "k");
	waiter_block(&w, q, "k");
	IS(wq_done(q, &it), WQ_QUEUED);
	actor_blocks(&w.actor); /* the hold that was is done, but not the add that came meanwhile */
	waiter_block(&queued, q, "k");
	get_is(q, &it, "k");
	actor_blocks(&w.actor);
	wq_add_str(q, "k");
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(actor_join(&w.actor), WQ_OK);
	IS(actor_join(&queued.actor), WQ_OK);
}

/* A key that comes back while it is waited for is not the work that was asked for before. */
static void wait_key_is_over_though_the_key_lives_on(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w;
	wq_item it;

	wq_add_str(q, "k");
	waiter_block(&w, q, "k");
	IS(wq_add_str(q, "k"), WQ_MERGED);
	take_is(q, "k", WQ_OK);
	IS(wq_add_str(q, "k"), WQ_QUEUED);
	IS(actor_join(&w.actor), WQ_OK);
	get_is(q, &it, "k");
	IS(wq_done(q, &it), WQ_OK);
}

static void wait_key_goes_on_when_it_is_given_back_unfinished(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	for (int dirty = 0; dirty < 2; dirty++) {
		struct waiter w;
		wq_item it;

		wq_add_str(q, "k");
		get_is(q, &it, "k");
		if (dirty)
			wq_add_str(q, "k");
		waiter_block(&w, q, "k");
		IS(wq_requeue(q, &it, WQ_TAIL), WQ_QUEUED);
		actor_blocks(&w.actor);
		get_is(q, &it, "k");
		actor_blocks(&w.actor);
		IS(wq_done(q, &it), WQ_OK);
		IS(actor_join(&w.actor), WQ_OK);
	}
}

static void wait_key_is_not_woken_by_others(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter k, l;
	wq_item items[2];

	wq_add_str(q, "k");
	wq_add_str(q, "l");
	waiter_block(&k, q, "k");
	waiter_block(&l, q, "l");
	IS(wq_get_many_until(q, items, 2, WQ_NOWAIT), 2);
	IS(wq_done(q, &items[1]), WQ_OK);
	IS(actor_join(&l.actor), WQ_OK);
	actor_blocks(&k.actor);
	IS(wq_next_until(q, &items[0], WQ_NOWAIT), WQ_EAGAIN);
	IS(actor_join(&k.actor), WQ_OK);
}

static void wait_key_done_many_ends_all_waits(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct waiter w[4];
	wq_item items[2];

	wq_add_str(q, "k");
	wq_add_str(q, "l");
	for (size_t i = 0; i < LENGTH(w); i++)
		waiter_block(&w[i], q, i % 2 ? "k" : "l");
	IS(wq_get_many_until(q, items, 2, WQ_NOWAIT), 2);
	IS(wq_done_many(q, items, 2, NULL), 2);
	for (size_t i = 0; i < LENGTH(w); i++)
		IS(actor_join(&w[i].actor), WQ_OK);
}

static void wait_key_times_out(void **state)
{
	struct fixture *f = *state;
	struct waiter w = {.q = f->q, .key = "k", .deadline_ns = START_NS + 10};
	struct waiter s = {.q = f->q, .key = "k", .deadline_ns = 10, .span = true};
	static char key[WQ_KEY_MAX + 1];

	wq_add_str(f->q, "k");
	IS(wq_wait_key_until(f->q, "k", 1, 0), WQ_ETIMEDOUT);
	IS(wq_wait_key_for(f->q, "k", 1, -3), WQ_ETIMEDOUT);
	actor_start(&w.actor, wait_main, &w);
	actor_start(&s.actor, wait_main, &s);
	actor_blocks(&w.actor);
	actor_blocks(&s.actor);
	wq_manual_clock_advance(f->mc, 10);
	IS(actor_join(&w.actor), WQ_ETIMEDOUT);
	IS(actor_join(&s.actor), WQ_ETIMEDOUT);
	IS(wq_wait_key_until(f->q, "k", 1, -1), WQ_EINVAL);
	IS(wq_wait_key_until(f->q, NULL, 1, WQ_NEVER), WQ_EINVAL);
	IS(wq_wait_key_until(f->q, key, sizeof key, WQ_NEVER), WQ_ETOOLONG);
	check_whole(f->q, 1, 0);
}

static void free_is_refused_while_an_item_is_held(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, NULL);
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	get_is(f.q, &it, "a");
	IS(wq_free(f.q), WQ_EBUSY);
	check_whole(f.q, 1, 1);
	wq_shutdown(f.q);
	IS(wq_free(f.q), WQ_EBUSY);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 1); /* and says how many were given up */
}

static void free_is_refused_while_threads_wait(void **state)
{
	struct fixture f;
	struct getter g;
	struct drainer d;
	struct waiter idle, key;

	(void)state;
	fixture_open(&f, NULL);
	getter_block(&g, f.q, WQ_NEVER);
	IS(wq_free(f.q), WQ_EBUSY);
	IS(wq_interrupt(f.q, 1), 0);
	IS(getter_join(&g), WQ_EINTERRUPTED);

	wq_add_str(f.q, "k");
	waiter_block(&idle, f.q, NULL);
	IS(wq_free(f.q), WQ_EBUSY);
	take_is(f.q, "k", WQ_OK);
	IS(actor_join(&idle.actor), WQ_OK);

	wq_add_str(f.q, "k");
	waiter_block(&key, f.q, "k");
	IS(wq_free(f.q), WQ_EBUSY);
	take_is(f.q, "k", WQ_OK);
	IS(actor_join(&key.actor), WQ_OK);
	check_whole(f.q, 0, 0);

	wq_add_str(f.q, "k");
	drainer_block(&d, f.q, WQ_NEVER);
	IS(wq_free(f.q), WQ_EBUSY);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(drainer_join(&d), WQ_EINTERRUPTED);
	fixture_close(&f, 1);
}

/*
 * The call that ends the last hold may still be on its way out of the queue
 * when a drain has returned and the queue is freed: it began before, so it
 * must not touch the queue's memory once it has let go of it.
 */
enum { MOST = 1024 };

/* A thread that ends all holds with one call. */
struct finisher {
	struct actor actor;
	wq_queue *q;
	size_t held, stale; /* stale ones are copies of the first */
	bool next;
	wq_item items[MOST];
};

static int64_t finish(void *arg)
{
	struct finisher *f = arg;
	size_t n = f->held + f->stale;

	if (f->next)
		return wq_next_many_until(f->q, f->items, n, MOST, WQ_NOWAIT);
	if (n == 1)
		return wq_done(f->q, &f->items[0]) == WQ_OK;
	return wq_done_many(f->q, f->items, n, NULL);
}

/* Busy as long as the call is inside, and then free. */
static void free_as_soon_as_it_is_allowed(wq_queue *q, int queued)
{
	int rc;

	while ((rc = wq_free(q)) == WQ_EBUSY)
		sched_yield();
	IS(rc, queued);
}

static void finish_and_free(size_t held, size_t stale, bool next, int rounds)
{
	static struct finisher f;

	for (int round = 0; round < rounds; round++) {
		struct memory mem;

		memory_init(&mem);
		wq_allocator a = memory_allocator(&mem);

		f.held = held;
		f.stale = stale;
		f.next = next;
		IS(wq_new(&f.q, &(wq_options){.allocator = &a}), WQ_OK);
		for (uint32_t i = 0; i < held; i++)
			IS(wq_add(f.q, &i, sizeof i), WQ_QUEUED);
		IS(wq_get_many_until(f.q, f.items, MOST, WQ_NOWAIT), (int64_t)held);
		for (size_t i = 0; i < stale; i++)
			f.items[held + i] = f.items[i];
		actor_start(&f.actor, finish, &f);
		if (round % 3 == 0)
			IS(wq_drain_until(f.q, WQ_NEVER, NULL, NULL), WQ_OK);
		else if (round % 3 == 1)
			IS(wq_wait_idle_until(f.q, WQ_NEVER), WQ_OK);
		else /* looks again and again, and so comes between two holds of the lock */
			while (wq_wait_idle_until(f.q, 0) == WQ_ETIMEDOUT)
				;
		if (stale == 0) /* with the last hold the call is over, too */
			IS(wq_free(f.q), 0);
		else
			free_as_soon_as_it_is_allowed(f.q, 0);

		int64_t rc = actor_join(&f.actor);

		if (!next)
			IS(rc, (int64_t)held);
		else if (stale > 0)
			IS(rc, WQ_ESTALE);
		else
			assert_true(rc == WQ_EAGAIN || rc == WQ_ESHUTDOWN);
		memory_balanced(&mem);
	}
}

static void free_right_after_the_last_done(void **state)
{
	(void)state;
	finish_and_free(1, 0, false, 300);
	for (int next = 0; next < 2; next++) {
		finish_and_free(256, 0, next, 100);
		finish_and_free(512, 0, next, 50);
		finish_and_free(256, 256, next, 50);
		finish_and_free(256, 768, next, 50);
	}
}

/* A call that lets go of the lock between its keys is inside until the last of them. */
struct adder {
	struct actor actor;
	wq_queue *q;
	size_t n;
	wq_key keys[MOST];
};

static int64_t add_all(void *arg)
{
	struct adder *a = arg;

	return wq_add_many(a->q, a->keys, a->n, NULL);
}

static void free_beside_add_many(void **state)
{
	static struct adder a;
	static uint32_t numbers[MOST];

	(void)state;
	for (uint32_t i = 0; i < MOST; i++) {
		numbers[i] = i;
		a.keys[i] = (wq_key){.key = &numbers[i], .len = sizeof numbers[i]};
	}
	for (int round = 0; round < 200; round++) {
		struct memory mem;

		memory_init(&mem);
		wq_allocator allocator = memory_allocator(&mem);

		IS(wq_new(&a.q, &(wq_options){.allocator = &allocator}), WQ_OK);
		a.n = round % 2 ? 300 : MOST;
		actor_start(&a.actor, add_all, &a);
		while (wq_len(a.q) == 0) /* until the call has begun */
			;
		free_as_soon_as_it_is_allowed(a.q, (int)a.n);
		IS(actor_join(&a.actor), (int64_t)a.n);
		memory_balanced(&mem);
	}
}

static int free_inside(void *ctx, const wq_key_info *info)
{
	(void)info;
	return wq_free(ctx) == WQ_EBUSY ? 0 : 1;
}

static void free_is_refused_while_a_thread_walks(void **state)
{
	struct fixture f;
	wq_drain_options o;

	(void)state;
	fixture_open(&f, NULL);
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	IS(wq_walk(f.q, free_inside, f.q), 2);
	o = (wq_drain_options){.left = free_inside, .ctx = f.q};
	IS(wq_drain_until(f.q, 0, &o, NULL), WQ_ETIMEDOUT);
	fixture_close(&f, 2);
}

/* A drain whose time was up lists what is left, and stays inside until it has. */
struct lister {
	struct actor actor;
	wq_queue *q;
	int shown;
	pthread_barrier_t *hold_up; /* NULL: it goes on at once */
};

static int list_one(void *ctx, const wq_key_info *info)
{
	struct lister *l = ctx;

	(void)info;
	l->shown++;
	if (l->hold_up != NULL) {
		pthread_barrier_wait(l->hold_up);
		pthread_barrier_wait(l->hold_up);
	}
	return 0;
}

static int64_t list_left(void *arg)
{
	struct lister *l = arg;
	wq_drain_options o = {.left = list_one, .ctx = l};

	return wq_drain_until(l->q, 0, &o, NULL);
}

static void free_is_refused_while_a_drain_lists(void **state)
{
	enum { KEYS = 3 };
	struct fixture f;
	pthread_barrier_t hold_up;
	struct lister l = {.hold_up = &hold_up};

	(void)state;
	fixture_open(&f, NULL);
	l.q = f.q;
	for (uint32_t i = 0; i < KEYS; i++)
		wq_add(f.q, &i, sizeof i);
	assert_int_equal(pthread_barrier_init(&hold_up, NULL, 2), 0);
	actor_start(&l.actor, list_left, &l);
	for (int i = 0; i < KEYS; i++) {
		pthread_barrier_wait(&hold_up);
		IS(wq_free(f.q), WQ_EBUSY);
		pthread_barrier_wait(&hold_up);
	}
	IS(actor_join(&l.actor), WQ_ETIMEDOUT);
	IS(l.shown, KEYS);
	pthread_barrier_destroy(&hold_up);
	fixture_close(&f, KEYS);
}

static void free_beside_a_drain_that_lists(void **state)
{
	enum { KEYS = 300 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct lister l = {.shown = 0};
		struct memory mem;

		memory_init(&mem);
		wq_allocator a = memory_allocator(&mem);

		IS(wq_new(&l.q, &(wq_options){.allocator = &a}), WQ_OK);
		for (uint32_t i = 0; i < KEYS; i++)
			wq_add(l.q, &i, sizeof i);
		actor_start(&l.actor, list_left, &l);
		while (!wq_shutting_down(l.q)) /* until the call has begun */
			;
		free_as_soon_as_it_is_allowed(l.q, KEYS);
		IS(actor_join(&l.actor), WQ_ETIMEDOUT);
		IS(l.shown, KEYS);
		memory_balanced(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(wait_idle_returns_at_once_if_idle),
	    WITH_FIXTURE(wait_idle_waits_for_queued_and_held),
	    WITH_FIXTURE(wait_idle_ends_by_next_too),
	    WITH_FIXTURE(wait_idle_times_out),
	    WITH_FIXTURE(wait_key_absent_returns_at_once),
	    WITH_FIXTURE(wait_key_queued_until_held_and_done),
	    WITH_FIXTURE(wait_key_held_until_that_hold_is_done),
	    WITH_FIXTURE(wait_key_dirty_until_its_next_hold_is_done),
	    WITH_FIXTURE(wait_key_is_over_though_the_key_lives_on),
	    WITH_FIXTURE(wait_key_goes_on_when_it_is_given_back_unfinished),
	    WITH_FIXTURE(wait_key_is_not_woken_by_others),
	    WITH_FIXTURE(wait_key_done_many_ends_all_waits),
	    WITH_FIXTURE(wait_key_times_out),
	    cmocka_unit_test(free_is_refused_while_an_item_is_held),
	    cmocka_unit_test(free_is_refused_while_threads_wait),
	    cmocka_unit_test(free_right_after_the_last_done),
	    cmocka_unit_test(free_beside_add_many),
	    cmocka_unit_test(free_is_refused_while_a_thread_walks),
	    cmocka_unit_test(free_is_refused_while_a_drain_lists),
	    cmocka_unit_test(free_beside_a_drain_that_lists),
	};

	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
