/*
 * Every allocation fails once. A script of all calls that may allocate runs
 * again and again, with the n-th allocation refused, for n = 0, 1, 2, … until a
 * run needs fewer; in a second round all later ones are refused as well, until
 * memory comes back. A refusal must be WQ_ENOMEM, must have changed nothing,
 * and the same call must succeed afterwards. [WHOLE]
 *
 * Beside the queue runs a model: an array of the states that the keys should have.
 */
#include "../support/support.h"

enum { KEYS = 8000, BATCH = 50, HELD = 10 };

struct script {
	struct memory mem;
	wq_queue *q;
	int64_t n;               /* which allocation fails */
	uint8_t model[KEYS];     /* WQ_STATE_ bits */
	int64_t queued, running; /* of the model */
	int64_t refused;         /* calls that were answered WQ_ENOMEM */
	bool order_freed;
	wq_item held[HELD];
};

/* Key number i. Lengths from a few bytes to some thousand: several size classes, and long ones. */
static wq_key key_of(int i)
{
	static char bytes[5000];
	size_t len = i % 100 == 99 ? 4000 + (size_t)i % 500 : 6 + (size_t)i % 40;

	memset(bytes, 'a' + i % 26, len);
	snprintf(bytes, 6, "%05d", i);
	bytes[5] = '/';
	return (wq_key){bytes, len};
}

/* The number that a key begins with. */
static int number_of(const void *key)
{
	char digits[6] = "";

	memcpy(digits, key, 5);
	return atoi(digits);
}

static int show(void *ctx, const wq_key_info *info)
{
	const struct script *s = ctx;
	int i = number_of(info->key);

	return i < 0 || i >= KEYS || s->model[i] != info->state;
}

/* The counts are the model's, and every state, in a walk and for some keys when asked. */
static void check_model(struct script *s)
{
	int64_t fail_at = s->mem.fail_at;

	s->mem.fail_at = -1; /* the check itself gets its memory */
	IS(wq_len(s->q), s->queued);
	IS(wq_walk(s->q, show, s), s->queued + s->running);
	for (int i = 0; i < KEYS; i += 1 + (int)(s->n % 7)) {
		wq_key k = key_of(i);

		IS(wq_state(s->q, k.key, k.len), s->model[i]);
	}
	s->mem.fail_at = fail_at;
}

/* A call was refused: check that, then let it have its memory. */
static void refused(struct script *s)
{
	s->refused++;
	assert_true(s->mem.failed > 0);
	check_model(s);
	s->mem.fail_at = -1;
}

static void added(struct script *s, int i)
{
	s->model[i] = WQ_STATE_QUEUED;
	s->queued++;
}

static void add_one(struct script *s, int i)
{
	wq_key k = key_of(i);
	int rc = wq_add(s->q, k.key, k.len);

	if (rc == WQ_ENOMEM) {
		refused(s);
		k = key_of(i);
		rc = wq_add(s->q, k.key, k.len);
	}
	IS(rc, WQ_QUEUED);
	added(s, i);
}

/* Each key of the call has its own outcome; those that were refused are added again. */
static void add_batch(struct script *s, int from)
{
	static char bytes[BATCH][5000];
	wq_key keys[BATCH];
	int outcomes[BATCH], accepted = 0;

	for (int i = 0; i < BATCH; i++) {
		wq_key k = key_of(from + i);

		memcpy(bytes[i], k.key, k.len);
		keys[i] = (wq_key){bytes[i], k.len};
	}

	int rc = wq_add_many(s->q, keys, BATCH, outcomes);

	for (int i = 0; i < BATCH; i++) {
		if (outcomes[i] == WQ_QUEUED) {
			added(s, from + i);
			accepted++;
		} else {
			IS(outcomes[i], WQ_ENOMEM);
		}
	}
	IS(rc, accepted);
	if (accepted < BATCH) {
		refused(s);
		for (int i = 0; i < BATCH; i++)
			if (outcomes[i] == WQ_ENOMEM)
				add_one(s, from + i);
	}
}

/* What needs no memory works while there is none: merges, get, done, requeue. */
static void work_without_memory(struct script *s)
{
	int64_t fail_at = s->mem.fail_at, calls = s->mem.calls;
	bool on = s->mem.fail_on;
	wq_item items[20];

	s->mem.fail_at = 0;
	s->mem.fail_on = true;
	IS(wq_get_many_until(s->q, items, 20, WQ_NOWAIT), 20);
	for (int i = 0; i < 20; i++) {
		IS(wq_add(s->q, items[i].key, items[i].len), WQ_MARKED);
		IS(wq_add(s->q, items[i].key, items[i].len), WQ_MERGED);
		IS(i % 2 ? wq_done(s->q, &items[i]) : wq_requeue(s->q, &items[i], WQ_TAIL),
		   WQ_QUEUED);
	}
	IS(s->mem.calls, calls); /* none was even asked for */
	s->mem.fail_at = fail_at;
	s->mem.fail_on = on;
}

static void hold_some(struct script *s)
{
	for (int i = 0; i < HELD; i++) {
		wq_item *it = &s->held[i];
		int dirty = i % 2 ? WQ_STATE_DIRTY : 0;

		IS(wq_try_get(s->q, it), WQ_OK);
		if (dirty)
			IS(wq_add(s->q, it->key, it->len), WQ_MARKED);
		s->model[number_of(it->key)] = (uint8_t)(WQ_STATE_RUNNING | dirty);
		s->queued--;
		s->running++;
	}
}

static void walk_all(struct script *s)
{
	int64_t rc = wq_walk(s->q, show, s);

	if (rc == WQ_ENOMEM) {
		refused(s);
		rc = wq_walk(s->q, show, s);
	}
	IS(rc, s->queued + s->running);
}

static int count(void *ctx, const wq_key_info *info)
{
	(void)info;
	++*(int64_t *)ctx;
	return 0;
}

/* The drain itself is over in any case and its counts are right; only the listing may fail. */
static void drain_and_list(struct script *s)
{
	int64_t listed = 0;
	wq_drain_options o = {.left = count, .ctx = &listed};
	wq_report r;

	memset(&r, 0xee, sizeof r);

	int rc = wq_drain_until(s->q, 0, &o, &r);

	IS((int64_t)r.queued, s->queued);
	IS((int64_t)r.running, s->running);
	IS((int64_t)r.dirty, HELD / 2);
	IS(wq_shutting_down(s->q), 1);
	if (rc == WQ_ENOMEM) {
		refused(s);
		listed = 0;
		rc = wq_drain_until(s->q, 0, &o, &r);
	}
	IS(rc, WQ_ETIMEDOUT);
	IS(listed, s->queued + s->running);
}

static void order_free(void *ctx)
{
	((struct script *)ctx)->order_freed = true;
}

/* A stack in the nodes' own links. */
static wq_node *top;

static void order_push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)ctx;
	(void)where;
	node->link[0] = top;
	top = node;
}

static wq_node *order_pop(void *ctx)
{
	wq_node *node = top;

	(void)ctx;
	top = node->link[0];
	return node;
}

static void open_queue(struct script *s, bool ordered)
{
	wq_allocator a = memory_allocator(&s->mem);
	wq_order order = {
	    .push = order_push, .pop = order_pop, .free = order_free, .ctx = s, .room = 24};
	wq_options o = {.allocator = &a, .order = ordered ? &order : NULL, .name = "oom"};
	int rc = wq_new(&s->q, &o);

	if (rc == WQ_OK)
		return;
	IS(rc, WQ_ENOMEM);
	assert_null(s->q);
	IS(s->order_freed, ordered); /* it was handed over all the same */
	memory_balanced(&s->mem);
	s->refused++;
	s->order_freed = false;
	s->mem.fail_at = -1;
	IS(wq_new(&s->q, &o), WQ_OK);
}

/* Everything that is left is worked off; then there is nothing, not even memory. */
static void finish(struct script *s, bool ordered)
{
	wq_item it;
	int64_t got = 0;

	for (int i = 0; i < HELD; i++)
		IS(wq_done(s->q, &s->held[i]), i % 2 ? WQ_QUEUED : WQ_OK);
	while (wq_try_get(s->q, &it) == WQ_OK) {
		IS(wq_done(s->q, &it), WQ_OK);
		got++;
	}
	IS(got, s->queued + HELD / 2);
	IS(count_keys(s->q), 0);
	IS(wq_drain_until(s->q, 0, NULL, NULL), WQ_OK);
	IS(wq_free(s->q), 0);
	IS(s->order_freed, ordered);
	memory_balanced(&s->mem);
}

/* True: an allocation was refused. */
static bool run(int64_t n, bool on, bool ordered, int64_t *refusals)
{
	struct script *s = calloc(1, sizeof *s);
	bool hit;

	assert_non_null(s);
	memory_init(&s->mem);
	s->n = n;
	s->mem.fail_at = n;
	s->mem.fail_on = on;
	top = NULL;
	open_queue(s, ordered);
	for (int i = 0; i < KEYS / 2; i++)
		add_one(s, i);
	work_without_memory(s);
	for (int i = KEYS / 2; i < KEYS; i += BATCH)
		add_batch(s, i);
	walk_all(s);
	assert_true(wq_fd(s->q) >= 0);
	hold_some(s);
	drain_and_list(s);
	hit = s->mem.failed > 0;
	*refusals += s->refused;
	s->mem.fail_at = -1;
	check_model(s);
	finish(s, ordered);
	free(s);
	return hit;
}

/* The n-th fails, for every n there is. */
static void fail_each(bool on, bool ordered)
{
	int64_t n = 0, refusals = 0;

	while (run(n, on, ordered, &refusals))
		n++;
	print_message("%lld allocations failed, %lld calls were refused\n", (long long)n,
	              (long long)refusals);
	assert_true(n > 20); /* the table and the slab have grown several times */
	assert_true(refusals > 5);
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	fail_each(false, false);
}

static void each_allocation_fails_and_all_later_ones(void **state)
{
	(void)state;
	fail_each(true, false);
}

static void each_allocation_fails_once_with_an_order(void **state)
{
	(void)state;
	fail_each(false, true);
}

static void each_allocation_fails_and_all_later_ones_with_an_order(void **state)
{
	(void)state;
	fail_each(true, true);
}

/* A queue that has no memory for a new key lets its workers go on, and takes keys as they leave. */
static void a_queue_without_memory_lives_on(void **state)
{
	struct fixture f;
	uint32_t key = 0;
	int64_t in = 0, out = 0;
	wq_item it;

	(void)state;
	fixture_open(&f, NULL);
	f.mem.fail_at = 40; /* and never again any */
	f.mem.fail_on = true;
	while (wq_add(f.q, &key, sizeof key) == WQ_QUEUED) {
		key++;
		in++;
	}
	assert_true(in > 100);
	IS(wq_len(f.q), in);
	for (int round = 0; round < 3000; round++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
		out++;
		key++;

		int rc = wq_add(f.q, &key, sizeof key);

		assert_true(rc == WQ_QUEUED || rc == WQ_ENOMEM);
		in += rc == WQ_QUEUED;
		IS(wq_len(f.q), in - out);
	}
	f.mem.fail_at = -1;
	check_whole(f.q, in - out, 0);
	fixture_close(&f, (int)(in - out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_allocation_fails_once),
	    cmocka_unit_test(each_allocation_fails_and_all_later_ones),
	    cmocka_unit_test(each_allocation_fails_once_with_an_order),
	    cmocka_unit_test(each_allocation_fails_and_all_later_ones_with_an_order),
	    cmocka_unit_test(a_queue_without_memory_lives_on),
	};

	return cmocka_run_group_tests_name("oom", tests, NULL, NULL);
}
