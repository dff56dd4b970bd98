#include "delayqueue_rig.h"

int delay_setup(void **state)
{
	struct delay *f = calloc(1, sizeof *f);

	assert_non_null(f);
	memory_init(&f->mem);
	IS(wq_manual_clock_new(&f->mc, START_NS), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(f->mc);
	wq_allocator allocator = memory_allocator(&f->mem);
	wq_delayqueue_options o = {.clock = &clock, .allocator = &allocator};

	IS(wq_delayqueue_new(&f->dq, &o), WQ_OK);
	*state = f;
	return 0;
}

int delay_teardown(void **state)
{
	struct delay *f = *state;

	if (f->dq)
		assert_true(wq_delayqueue_free(f->dq) >= 0);
	memory_balanced(&f->mem);
	IS(wq_manual_clock_free(f->mc), WQ_OK);
	free(f);
	return 0;
}

void *V(const char *letter)
{
	return (void *)(uintptr_t)letter;
}

void offer(struct delay *f, const char *letter, int64_t after_ns)
{
	IS(wq_delayqueue_offer(f->dq, V(letter), START_NS + after_ns), WQ_OK);
}

void value_is(const void *value, const char *letter)
{
	assert_non_null(value);
	assert_string_equal(value, letter);
}

void poll_is(struct delay *f, const char *letter)
{
	void *value = NULL;

	IS(wq_delayqueue_poll(f->dq, &value), WQ_OK);
	value_is(value, letter);
}

void poll_nothing(struct delay *f, int status)
{
	void *value = f;

	IS(wq_delayqueue_poll(f->dq, &value), status);
	assert_ptr_equal(value, f);
}

static int64_t taker_main(void *arg)
{
	struct taker *t = arg;

	if (t->deadline_ns == WQ_NEVER)
		return wq_delayqueue_take(t->dq, &t->value);
	return wq_delayqueue_take_until(t->dq, &t->value, t->deadline_ns);
}

void taker_start(struct taker *t, wq_delayqueue *dq, int64_t deadline_ns)
{
	t->dq = dq;
	t->deadline_ns = deadline_ns;
	t->value = NULL;
	actor_start(&t->actor, taker_main, t);
}

void taker_block(struct taker *t, wq_delayqueue *dq, int64_t deadline_ns)
{
	taker_start(t, dq, deadline_ns);
	actor_blocks(&t->actor);
}

void takers_block(struct taker *t, int n, wq_delayqueue *dq)
{
	for (int i = 0; i < n; i++)
		taker_block(&t[i], dq, WQ_NEVER);
}

void taker_got(struct taker *t, const char *letter)
{
	IS(actor_join(&t->actor), WQ_OK);
	value_is(t->value, letter);
}

void taker_got_nothing(struct taker *t, int status)
{
	IS(actor_join(&t->actor), status);
	assert_null(t->value);
}
