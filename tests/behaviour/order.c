/* Q10: the order of ready keys is the user's. */
#include "../support/support.h"

/* Last in, first out; counts every hook. */
struct lifo {
	wq_node *top;
	int pushes, heads, pops, touches, frees;
	size_t longest;
};

static void lifo_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct lifo *l = ctx;
	size_t len;
	const char *key = wq_node_key(node, &len);

	if (key[len] == '\0' && len > l->longest)
		l->longest = len;
	l->pushes++;
	l->heads += where == WQ_HEAD;
	node->link[0] = l->top;
	node->link[1] = l; /* both links are the order's */
	l->top = node;
}

static wq_node *lifo_pop(void *ctx)
{
	struct lifo *l = ctx;
	wq_node *node = l->top;

	if (node == NULL || node->link[1] != l)
		abort(); /* called while it holds none, or the links were written to */
	l->pops++;
	l->top = node->link[0];
	return node;
}

static void lifo_touch(void *ctx, wq_node *node)
{
	struct lifo *l = ctx;

	if (node->link[1] != l)
		abort();
	l->touches++;
}

static void lifo_free(void *ctx)
{
	((struct lifo *)ctx)->frees++;
}

static wq_order lifo_order(struct lifo *l)
{
	memset(l, 0, sizeof *l);
	return (wq_order){
	    .push = lifo_push, .pop = lifo_pop, .touch = lifo_touch, .free = lifo_free, .ctx = l};
}

static void Q10_lifo(void **state)
{
	struct fixture f;
	struct lifo l;
	wq_order order = lifo_order(&l);
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.order = &order});
	memset(&order, 0xee, sizeof order); /* it was copied */
	for (const char *k = "abcd"; *k; k++)
		wq_add(f.q, k, 1);
	IS(wq_len(f.q), 4);
	IS(wq_add_str(f.q, "a"), WQ_MERGED);
	IS(l.touches, 1);
	get_is(f.q, &it, "d");
	IS(wq_add_str(f.q, "d"), WQ_MARKED);
	IS(wq_add_str(f.q, "d"), WQ_MERGED);
	IS(l.touches, 1); /* not in line: not touched */
	IS(l.heads, 0);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	IS(l.heads, 0); /* to the tail, whatever the order makes of it */
	get_is(f.q, &it, "d");
	IS(wq_requeue(f.q, &it, WQ_HEAD), WQ_QUEUED);
	IS(l.heads, 1);
	take_is(f.q, "d", WQ_OK);
	take_is(f.q, "c", WQ_OK);
	take_is(f.q, "b", WQ_OK);
	IS(l.pushes, 6);
	IS(l.pops, 5);
	IS((int64_t)l.longest, 1);
	IS(wq_len(f.q), 1);  /* the count is the queue's own */
	IS(wq_free(f.q), 1); /* "a" is still in the order */
	IS(l.frees, 1);
	memory_balanced(&f.mem);
	IS(wq_manual_clock_free(f.mc), WQ_OK);
}

static void Q10_order_through_the_many_calls(void **state)
{
	struct fixture f;
	struct lifo l;
	wq_order order = lifo_order(&l);
	wq_item items[4];
	wq_key keys[4];

	(void)state;
	fixture_open(&f, &(wq_options){.order = &order});
	for (int i = 0; i < 4; i++)
		keys[i] = (wq_key){&"abcd"[i], 1};
	IS(wq_add_many(f.q, keys, 4, NULL), 4);
	IS(wq_get_many_until(f.q, items, 2, WQ_NOWAIT), 2);
	IS(*(const char *)items[0].key, 'd');
	IS(*(const char *)items[1].key, 'c');
	wq_add_str(f.q, "c");
	IS(wq_next_many_until(f.q, items, 2, 4, WQ_NOWAIT), 3);
	IS(*(const char *)items[0].key, 'c');
	IS(*(const char *)items[1].key, 'b');
	IS(*(const char *)items[2].key, 'a');
	IS(wq_done_many(f.q, items, 3, NULL), 3);
	check_whole(f.q, 0, 0);
	fixture_close(&f, 0);
	IS(l.frees, 1);
}

/*
 * A priority order with its state in the room beside the key: a key's
 * priority is its first digit and goes up by one with each touch.
 */
struct ranked {
	uint64_t rank;
	uint64_t pushes;
	uint64_t rubbish[6];
};

struct priority {
	wq_node *list;
	int wrong;
	int64_t first_added_ns;
};

static void priority_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct priority *p = ctx;
	struct ranked *r = wq_node_room(node);
	const char *key = wq_node_key(node, NULL);

	(void)where;
	if ((uintptr_t)r % 8 != 0)
		p->wrong++;
	if (r->pushes == 0) { /* zero when the key becomes live */
		for (size_t i = 0; i < LENGTH(r->rubbish); i++)
			p->wrong += r->rubbish[i] != 0;
		p->wrong += r->rank != 0;
		r->rank = (uint64_t)(key[0] - '0');
		memset(r->rubbish, 0xff, sizeof r->rubbish);
	} else { /* and keeps its value as long as it lives */
		for (size_t i = 0; i < LENGTH(r->rubbish); i++)
			p->wrong += r->rubbish[i] != UINT64_MAX;
	}
	r->pushes++;
	node->link[0] = p->list;
	p->list = node;
	p->first_added_ns = wq_node_added_ns(node);
}

static wq_node *priority_pop(void *ctx)
{
	struct priority *p = ctx;
	wq_node **best = &p->list;

	for (wq_node **at = &p->list; *at; at = (wq_node **)(void *)&(*at)->link[0])
		if (((struct ranked *)wq_node_room(*at))->rank >
		    ((struct ranked *)wq_node_room(*best))->rank)
			best = at;

	wq_node *node = *best;

	*best = node->link[0];
	return node;
}

static void priority_touch(void *ctx, wq_node *node)
{
	(void)ctx;
	((struct ranked *)wq_node_room(node))->rank++;
}

static void Q10_priority_with_room(void **state)
{
	struct fixture f;
	struct priority p = {.list = NULL};
	wq_order order = {
	    .push = priority_push,
	    .pop = priority_pop,
	    .touch = priority_touch,
	    .ctx = &p,
	    .room = sizeof(struct ranked),
	};
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.order = &order});
	wq_add_str(f.q, "1 low");
	wq_add_str(f.q, "5 high");
	wq_add_str(f.q, "4 rising");
	IS(p.first_added_ns, START_NS);
	wq_add_str(f.q, "4 rising");
	wq_add_str(f.q, "4 rising"); /* now 6 */
	get_is(f.q, &it, "4 rising");
	wq_add_str(f.q, "4 rising");
	IS(wq_done(f.q, &it), WQ_QUEUED); /* it lives on, with its rank */
	get_is(f.q, &it, "4 rising");
	IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
	take_is(f.q, "4 rising", WQ_OK);
	take_is(f.q, "5 high", WQ_OK);
	wq_add_str(f.q, "4 rising"); /* a new life, from zero, in memory that was used */
	take_is(f.q, "4 rising", WQ_OK);
	take_is(f.q, "1 low", WQ_OK);
	IS(p.wrong, 0);
	/* keys of all lengths: the room never overlaps the key */
	for (size_t len = 1; len < 1500; len += len < 100 ? 1 : 37) {
		char key[1500];

		memset(key, '7', len);
		IS(wq_add(f.q, key, len), WQ_QUEUED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_memory_equal(it.key, key, len);
		IS(((const char *)it.key)[len], 0);
		IS(wq_done(f.q, &it), WQ_OK);
		IS(p.wrong, 0);
	}
	fixture_close(&f, 0);
}

static void Q10_hooks_that_may_be_missing(void **state)
{
	struct fixture f;
	struct lifo l;
	wq_order order = lifo_order(&l);

	(void)state;
	order.touch = NULL;
	order.free = NULL;
	order.remove = NULL;
	fixture_open(&f, &(wq_options){.order = &order});
	wq_add_str(f.q, "a");
	wq_add_str(f.q, "b");
	IS(wq_add_str(f.q, "a"), WQ_MERGED);
	take_is(f.q, "b", WQ_OK);
	check_whole(f.q, 1, 0);
	fixture_close(&f, 1);
	IS(l.frees, 0);
}

static void Q10_room_at_its_limit(void **state)
{
	struct fixture f;
	struct priority p = {.list = NULL};
	wq_order order = {.push = priority_push,
	                  .pop = priority_pop,
	                  .ctx = &p,
	                  .room = WQ_ORDER_ROOM_MAX};
	wq_queue *q = NULL;
	static char key[WQ_KEY_MAX];
	wq_item it;

	(void)state;
	memset(key, '3', sizeof key);
	fixture_open(&f, &(wq_options){.order = &order});
	IS(wq_add(f.q, key, sizeof key), WQ_QUEUED); /* the largest entry there can be */
	wq_add_str(f.q, "4");
	take_is(f.q, "4", WQ_OK);
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_memory_equal(it.key, key, sizeof key);
	IS(wq_done(f.q, &it), WQ_OK);
	IS(p.wrong, 0);
	fixture_close(&f, 0);
	order.room = WQ_ORDER_ROOM_MAX + 1;
	IS(wq_new(&q, &(wq_options){.order = &order}), WQ_EINVAL);
	order.room = SIZE_MAX;
	IS(wq_new(&q, &(wq_options){.order = &order}), WQ_EINVAL);
	assert_null(q);
}

/* Whatever makes wq_new() fail, the order is given up once. */
static int watch_fails(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	(void)ctx;
	(void)changed;
	(void)arg;
	return on ? WQ_EIO : WQ_OK;
}

static int64_t now_zero(void *ctx)
{
	(void)ctx;
	return 0;
}

static void free_hook_when_new_fails(void **state)
{
	static const wq_engine wrong = {.version = WQ_ENGINE_VERSION + 1,
	                                .size = sizeof(wq_engine)};
	static char name[300];
	struct lifo l;
	struct memory mem;
	wq_queue *q = NULL;

	(void)state;
	memset(name, 'n', sizeof name - 1);

	wq_clock no_now = {.now = NULL};
	wq_clock fails = {.now = now_zero, .watch = watch_fails};
	wq_allocator no_alloc = {.alloc = NULL};
	const struct {
		wq_options o;
		int status;
	} cases[] = {
	    {{.spin_ns = -2}, WQ_EINVAL},      {{.reserved = {[1] = 1}}, WQ_EINVAL},
	    {{.name = name}, WQ_EINVAL},       {{.clock = &no_now}, WQ_EINVAL},
	    {{.clock = &fails}, WQ_EIO},       {{.allocator = &no_alloc}, WQ_EINVAL},
	    {{.engine = &wrong}, WQ_EVERSION}, {{.engine_options = "?"}, WQ_EINVAL},
	};

	for (size_t i = 0; i < LENGTH(cases); i++) {
		wq_order order = lifo_order(&l);
		wq_options o = cases[i].o;

		o.order = &order;
		IS(wq_new(&q, &o), cases[i].status);
		assert_null(q);
		IS(l.frees, 1);
	}
	wq_order order = lifo_order(&l);

	IS(wq_new(NULL, &(wq_options){.order = &order}), WQ_EINVAL);
	IS(l.frees, 1);

	order = lifo_order(&l); /* the order itself is bad */
	order.pop = NULL;
	IS(wq_new(&q, &(wq_options){.order = &order}), WQ_EINVAL);
	IS(l.frees, 1);
	order = lifo_order(&l);
	order.push = NULL;
	IS(wq_new(&q, &(wq_options){.order = &order}), WQ_EINVAL);
	IS(l.frees, 1);

	order = lifo_order(&l);
	memory_init(&mem);
	mem.fail_at = 0;
	wq_allocator a = memory_allocator(&mem);

	IS(wq_new(&q, &(wq_options){.order = &order, .allocator = &a}), WQ_ENOMEM);
	IS(l.frees, 1);
	memory_balanced(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(Q10_lifo),
	    cmocka_unit_test(Q10_order_through_the_many_calls),
	    cmocka_unit_test(Q10_priority_with_room),
	    cmocka_unit_test(Q10_hooks_that_may_be_missing),
	    cmocka_unit_test(Q10_room_at_its_limit),
	    cmocka_unit_test(free_hook_when_new_fails),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
