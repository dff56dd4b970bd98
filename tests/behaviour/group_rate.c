/*
 * Rates of groups, on the manual clock to the nanosecond: tokens, bursts, who is woken by one,
 * deadlines, and buckets that outlive their keys until they are full. At last a model: a bucket
 * that holds time.
 */
#include "rich_rig.h"

#include <poll.h>

static uint64_t seed;

static wq_options rated(double rate, uint32_t burst)
{
	return (wq_options){.group = wq_group_before,
	                    .group_ctx = &before_slash,
	                    .group_rate = rate,
	                    .group_burst = burst,
	                    .spin_ns = WQ_SPIN_NEVER};
}

static void open_rated(struct fixture *f, double rate, uint32_t burst)
{
	wq_options o = rated(rate, burst);

	fixture_open(f, &o);
}

static void add_keys(wq_queue *q, const char *group, int n)
{
	char key[64];

	for (int i = 1; i <= n; i++) {
		snprintf(key, sizeof key, "%s/%d", group, i);
		IS(wq_add_str(q, key), WQ_QUEUED);
	}
}

/* So many can be got and done now. */
static int startable(wq_queue *q)
{
	wq_item it;
	int n = 0;

	while (wq_try_get(q, &it) == WQ_OK) {
		IS(wq_done(q, &it), WQ_OK);
		n++;
	}
	return n;
}

/* ---- tokens ------------------------------------------------------------------ */

/* [TOKENS] A token every 1 / rate seconds, not a nanosecond sooner. */
static void a_token_at_a_time(void **state)
{
	static const struct {
		double rate;
		int64_t token_ns;
	} r[] = {{1, WQ_SECOND}, {2, WQ_SECOND / 2}, {3, 333333333},
	         {1000, MS},     {1e9, 1},           {0.001, 1000 * WQ_SECOND}};

	(void)state;
	for (size_t i = 0; i < LENGTH(r); i++) {
		struct fixture f;

		open_rated(&f, r[i].rate, 0);
		add_keys(f.q, "a", 5);
		IS(startable(f.q), 1);
		for (int n = 0; n < 4; n++) {
			IS(wq_manual_clock_advance(f.mc, r[i].token_ns - 1), WQ_OK);
			IS(startable(f.q), 0);
			IS(wq_len(f.q), 4 - n);
			IS((int64_t)snapshot(f.q).blocked, 4 - n);
			IS(wq_manual_clock_advance(f.mc, 1), WQ_OK);
			IS(startable(f.q), 1);
		}
		fixture_close(&f, 0);
	}
}

/* [TOKENS] After a pause as many as the burst at once. */
static void bursts(void **state)
{
	struct fixture f;

	(void)state;
	open_rated(&f, 2, 3);
	add_keys(f.q, "a", 30);
	IS(startable(f.q), 3);
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2 - 1);
	IS(startable(f.q), 0);
	wq_manual_clock_advance(f.mc, 1);
	IS(startable(f.q), 1);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	IS(startable(f.q), 2);
	wq_manual_clock_advance(f.mc, 3 * WQ_SECOND / 2 - 1);
	IS(startable(f.q), 2);
	wq_manual_clock_advance(f.mc, 1);
	IS(startable(f.q), 1);
	wq_manual_clock_advance(f.mc, 1000 * WQ_SECOND);
	IS(startable(f.q), 3);
	fixture_close(&f, 30 - 12);
}

/* [TOKENS] Each group has a bucket of its own; a get passes by those without a token. */
static void each_group_alone(void **state)
{
	struct fixture f;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 3);
	add_keys(f.q, "b", 2);
	keys_are(f.q, "a/1 b/1");
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	add_keys(f.q, "c", 2);
	keys_are(f.q, "c/1");
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	keys_are(f.q, "a/2 b/2");
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	keys_are(f.q, "c/2");
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	keys_are(f.q, "a/3");
	fixture_close(&f, 0);
}

/* A start takes a token, whatever becomes of the key; a cancel of a queued key takes none. */
static void what_takes_a_token(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 3);
	IS(wq_cancel(f.q, "a/1", 3, NULL), WQ_CANCELLED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_string_equal(it.key, "a/2");
	/* A requeue was no start. */
	IS(wq_requeue(f.q, &it, WQ_HEAD), WQ_QUEUED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_string_equal(it.key, "a/2");
	IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_string_equal(it.key, "a/3");
	IS(wq_requeue(f.q, &it, WQ_HEAD), WQ_QUEUED);
	IS(wq_cancel(f.q, "a/3", 3, NULL), WQ_CANCELLED);
	IS(wq_try_get(f.q, &it), WQ_OK);
	assert_string_equal(it.key, "a/2");
	nothing_is_ready(f.q);
	IS(wq_add_str(f.q, "a/3"), WQ_QUEUED);
	IS(wq_add_str(f.q, "a/2"), WQ_MARKED);
	IS(wq_done(f.q, &it), WQ_QUEUED);
	nothing_is_ready(f.q);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/3");
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/2");
	fixture_close(&f, 0);
}

/* [LIMIT] [TOKENS] Both count. */
static void with_a_limit(void **state)
{
	struct fixture f;
	wq_item held[4];
	wq_options o = rated(1, 2);

	(void)state;
	o.group_limit = 1;
	fixture_open(&f, &o);
	add_keys(f.q, "a", 4);
	IS(hold_keys(f.q, held, "a/1"), 1);
	wq_manual_clock_advance(f.mc, 10 * WQ_SECOND);
	nothing_is_ready(f.q);
	IS(wq_next_deadline(f.q), WQ_NEVER); /* no time makes it ready */
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(hold_keys(f.q, held, "a/2"), 1);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	IS(hold_keys(f.q, held, "a/3"), 1);
	IS(wq_done(f.q, &held[0]), WQ_OK);
	nothing_is_ready(f.q);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/4");
	fixture_close(&f, 0);
}

/* [TURNS] Groups take turns as far as they have tokens; levels go before. */
static void with_turns_and_levels(void **state)
{
	struct fixture f;
	wq_options o = rated(1, 2);

	(void)state;
	o.priorities = 1;
	fixture_open(&f, &o);
	add_at(f.q, "a/1", 0);
	add_at(f.q, "a/2", 5);
	add_at(f.q, "a/3", 5);
	add_at(f.q, "b/1", 0);
	add_at(f.q, "b/2", 0);
	keys_are(f.q, "a/2 a/3 b/1 b/2");
	add_at(f.q, "a/4", 9);
	nothing_is_ready(f.q);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/4");
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/1");
	fixture_close(&f, 0);
}

static void slow_and_fast(void *ctx, const wq_key *group, wq_group_settings *s)
{
	int *calls = ctx;

	++*calls;
	assert_true(s->rate > 0.9 && s->rate < 1.1 && s->burst == 4); /* those of the options */
	if (*(const char *)group->key == 's')
		s->rate = 0.1;
	if (*(const char *)group->key == 'f') {
		s->rate = 0; /* no limit */
		s->burst = 0;
	}
	if (*(const char *)group->key == 'o')
		s->burst = 1;
}

/* [TOKENS] Exceptions by group_setup. */
static void rates_by_name(void **state)
{
	struct fixture f;
	int calls = 0;
	wq_options o = rated(1, 4);

	(void)state;
	o.group_setup = slow_and_fast;
	o.setup_ctx = &calls;
	fixture_open(&f, &o);
	add_keys(f.q, "slow", 9);
	IS(startable(f.q), 4);
	add_keys(f.q, "fast", 9);
	IS(startable(f.q), 9);
	add_keys(f.q, "one", 3);
	IS(startable(f.q), 1);
	add_keys(f.q, "plain", 9);
	IS(startable(f.q), 4);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	IS(startable(f.q), 2); /* one, plain */
	wq_manual_clock_advance(f.mc, 9 * WQ_SECOND);
	IS(startable(f.q), 1 + 1 + 4);
	IS(calls, 4);
	fixture_close(&f, -1);
}

/* Rates so low that a bucket takes longer than all times to fill: the burst, then nothing. */
static void very_low_rates(void **state)
{
	static const double rates[] = {1e-9, 1e-10, 1e-12, 1e-100, 1e-300, 5e-324};
	static const uint32_t each[] = {1, 2, 3, 100};

	(void)state;
	for (size_t r = 0; r < LENGTH(rates); r++)
		for (size_t b = 0; b < LENGTH(each); b++) {
			struct fixture f;

			open_rated(&f, rates[r], each[b]);
			add_keys(f.q, "a", 150);
			IS(startable(f.q), (int)each[b]);
			wq_manual_clock_advance(f.mc, 20000000 * WQ_SECOND); /* 231 days */
			IS(startable(f.q), 0);
			add_keys(f.q, "b", 1);
			IS(startable(f.q), 1);
			fixture_close(&f, 150 - (int)each[b]);
		}
}

static void large_bursts(void **state)
{
	struct fixture f;

	(void)state;
	open_rated(&f, 1, UINT32_MAX);
	add_keys(f.q, "a", 5000);
	IS(startable(f.q), 5000);
	fixture_close(&f, 0);
	/* exact, though the bucket takes a year to fill */
	open_rated(&f, 3, 100000000);
	add_keys(f.q, "a", 100);
	IS(startable(f.q), 100);
	fixture_close(&f, 0);
}

/* ---- time --------------------------------------------------------------------------- */

/* [TOKENS] A get that waits wakes up when a token comes; wq_next_deadline() says when. */
static void a_token_wakes(void **state)
{
	struct fixture f;
	struct getter g[2];

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 3);
	IS(wq_next_deadline(f.q), WQ_NEVER);
	keys_are(f.q, "a/1");
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	getter_block(&g[0], f.q, WQ_NEVER);
	getter_block(&g[1], f.q, WQ_NEVER);
	wq_manual_clock_advance(f.mc, WQ_SECOND - 1);
	actor_blocks(&g[0].actor);
	actor_blocks(&g[1].actor);
	wq_manual_clock_advance(f.mc, 1);
	while (!actor_finished(&g[0].actor) && !actor_finished(&g[1].actor))
		;
	IS(wq_next_deadline(f.q), START_NS + 2 * WQ_SECOND);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	for (int i = 0; i < 2; i++) {
		IS(getter_join(&g[i]), WQ_OK);
		IS(wq_done(f.q, &g[i].item), WQ_OK);
	}
	fixture_close(&f, 0);
}

/* A get with a deadline before the token. */
static void deadlines_before_tokens(void **state)
{
	struct fixture f;
	struct getter g;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 2);
	keys_are(f.q, "a/1");
	getter_block(&g, f.q, START_NS + WQ_SECOND / 2);
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	getter_block(&g, f.q, START_NS + WQ_SECOND);
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	IS(getter_join(&g), WQ_OK); /* with a time that has passed a call tries once */
	IS(wq_done(f.q, &g.item), WQ_OK);
	fixture_close(&f, 0);
}

/* The earlier of a due time and a token. */
static void due_times_and_tokens(void **state)
{
	struct fixture f;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 2);
	keys_are(f.q, "a/1");
	IS(add_full(f.q, "b/1", 0, NULL, 2 * WQ_SECOND), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	IS(add_full(f.q, "b/2", 0, NULL, WQ_SECOND / 2), WQ_DELAYED);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND / 2);
	wq_manual_clock_advance(f.mc, WQ_SECOND / 2);
	keys_are(f.q, "b/2");
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	wq_manual_clock_advance(f.mc, 3 * WQ_SECOND / 2);
	keys_are(f.q, "a/2 b/1");
	fixture_close(&f, 0);
}

/* ---- on the real clock --------------------------------------------------------------- */

/* [TOKENS] The kernel's clock wakes a get, and the descriptor becomes readable. */
static void on_the_real_clock(void **state)
{
	wq_options o = rated(200, 0);
	struct pollfd p = {.events = POLLIN};
	wq_queue *q = NULL;
	wq_item it;
	int64_t first;

	(void)state;
	IS(wq_new(&q, &o), WQ_OK);
	p.fd = wq_fd(q);
	assert_true(p.fd >= 0);
	add_keys(q, "a", 3);
	first = wq_now(q);
	IS(wq_get(q, &it), WQ_OK);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_get(q, &it), WQ_OK);
	assert_true(wq_now(q) >= first + 5 * MS);
	IS(wq_done(q, &it), WQ_OK);
	while (wq_try_get(q, &it) != WQ_OK)
		IS(poll(&p, 1, 60000), 1);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 0);
}

static int64_t get_one(void *arg)
{
	int64_t deadline = wq_now(arg) + 40 * WQ_SECOND;
	wq_item it;
	int rc = wq_get_until(arg, &it, deadline);

	if (rc == WQ_OK)
		IS(wq_done(arg, &it), WQ_OK);
	/* With a time that has passed it would have tried once more. */
	return wq_now(arg) < deadline ? rc : WQ_ETIMEDOUT;
}

/*
 * [WAKE] A get sleeps until a bucket is full, in more than a minute. A key of that group is added,
 * which has its token in less than half a second: the get does not sleep on.
 */
static void an_add_moves_the_leader(void **state)
{
	enum { BURST = 200 };
	wq_options o = rated(2, BURST);
	wq_queue *q = NULL;
	struct actor a;
	int started = 0;
	char key[32];

	(void)state;
	IS(wq_new(&q, &o), WQ_OK);
	/* All tokens are used up, those included that come meanwhile. */
	for (int i = 0; started == i; i++) {
		snprintf(key, sizeof key, "a/%d", i);
		IS(wq_add_str(q, key), WQ_QUEUED);
		started += startable(q);
		if (started == i) {
			IS(wq_cancel(q, key, strlen(key), NULL), WQ_CANCELLED);
			break;
		}
	}
	assert_true(started >= BURST);
	actor_start(&a, get_one, q);
	actor_blocks(&a);
	IS(wq_add_str(q, "a/last"), WQ_QUEUED);
	IS(actor_join(&a), WQ_OK);
	IS(wq_free(q), 0);
}

/* ---- shutdown -------------------------------------------------------------------------- */

/* A get waits for the token of a key in a queue that is shut, and a drain does. */
static void shut_down(void **state)
{
	struct fixture f;
	struct getter g[2];
	struct drainer d;
	int first;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 2);
	keys_are(f.q, "a/1");
	IS(wq_shutdown(f.q), WQ_OK);
	getter_block(&g[0], f.q, WQ_NEVER);
	getter_block(&g[1], f.q, WQ_NEVER);
	drainer_block(&d, f.q, WQ_NEVER);
	IS(wq_next_deadline(f.q), START_NS + WQ_SECOND);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	/* The other one may leave before: nothing is queued any more. */
	for (first = 0; !actor_finished(&g[first].actor) || !g[first].item.key;)
		first = 1 - first;
	IS(getter_join(&g[first]), WQ_OK);
	IS(wq_done(f.q, &g[first].item), WQ_OK);
	IS(getter_join(&g[1 - first]), WQ_ESHUTDOWN);
	IS(drainer_join(&d), WQ_OK);
	fixture_close(&f, 0);
}

/* The last key without a token is cancelled: whoever waits leaves. */
static void cancelled_in_a_shutdown(void **state)
{
	struct fixture f;
	struct getter g;
	struct drainer d;

	(void)state;
	for (int gates = 0; gates < 2; gates++) {
		open_rated(&f, 1, 0);
		add_keys(f.q, "a", 2);
		keys_are(f.q, "a/1");
		if (!gates)
			IS(wq_shutdown(f.q), WQ_OK);
		else
			IS(wq_drain_until(f.q, 0, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL),
			   WQ_ETIMEDOUT);
		getter_block(&g, f.q, WQ_NEVER);
		drainer_block(&d, f.q, WQ_NEVER);
		IS(wq_cancel(f.q, "a/2", 3, NULL), WQ_CANCELLED);
		IS(getter_join(&g), WQ_ESHUTDOWN);
		IS(drainer_join(&d), WQ_OK);
		fixture_close(&f, 0);
	}
}

/* ---- buckets ------------------------------------------------------------------------------ */

/* A group without keys is remembered until its bucket is full, and forgotten then. */
static void buckets_are_forgotten(void **state)
{
	struct fixture f;
	wq_options o = rated(1, 4);
	int calls = 0;
	int64_t kept;

	(void)state;
	o.group_setup = slow_and_fast;
	o.setup_ctx = &calls;
	fixture_open(&f, &o);
	add_keys(f.q, "p", 3);
	IS(startable(f.q), 3);
	IS((int64_t)snapshot(f.q).groups, 0); /* it has no keys */
	IS(snapshot(f.q).nbusiest, 0);
	add_keys(f.q, "p", 3);
	IS(calls, 1);
	IS(startable(f.q), 1); /* the fourth token */
	IS(wq_cancel(f.q, "p/2", 3, NULL), WQ_CANCELLED);
	IS(wq_cancel(f.q, "p/3", 3, NULL), WQ_CANCELLED);
	wq_manual_clock_advance(f.mc, 4 * WQ_SECOND - 1);
	nothing_is_ready(f.q);
	kept = f.mem.calls;
	add_keys(f.q, "p", 1);
	IS(calls, 1);
	IS(f.mem.calls, kept);
	IS(wq_cancel(f.q, "p/1", 3, NULL), WQ_CANCELLED);
	wq_manual_clock_advance(f.mc, 1);
	nothing_is_ready(f.q);
	IS(wq_next_deadline(f.q), WQ_NEVER);
	add_keys(f.q, "p", 6);
	IS(startable(f.q), 4); /* as one that was never seen */
	fixture_close(&f, 2);
}

/* Memory of many buckets comes back. */
static void memory_comes_back(void **state)
{
	struct fixture f;
	char key[32];
	int64_t first = 0, peak = 0;

	(void)state;
	open_rated(&f, 1, 0);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(key, sizeof key, "%d-%d/x", round, i);
			IS(wq_add_str(f.q, key), WQ_QUEUED);
		}
		IS(startable(f.q), 5000);
		peak = f.mem.bytes > peak ? f.mem.bytes : peak;
		wq_manual_clock_advance(f.mc, WQ_SECOND);
		nothing_is_ready(f.q);
		if (round == 0)
			first = f.mem.bytes;
		else
			assert_true(f.mem.bytes <= first + first / 4);
	}
	assert_true(first < peak * 3 / 4);
	fixture_close(&f, 0);
}

/* wq_free() while groups sleep, with keys and without. */
static void freed(void **state)
{
	struct fixture f;

	(void)state;
	open_rated(&f, 1, 0);
	add_keys(f.q, "a", 2);
	add_keys(f.q, "b", 1);
	keys_are(f.q, "a/1 b/1");
	fixture_close(&f, 1);
}

/* A refused add leaves a bucket as it was. */
static void refused_adds(void **state)
{
	struct fixture f;
	wq_options o = rated(1, 0);

	(void)state;
	o.max_keys = 1;
	fixture_open(&f, &o);
	add_keys(f.q, "a", 1);
	keys_are(f.q, "a/1");
	add_keys(f.q, "b", 1);
	for (int i = 0; i < 3; i++)
		IS(wq_add_str(f.q, "a/1"), WQ_EFULL);
	keys_are(f.q, "b/1");
	add_keys(f.q, "a", 1);
	nothing_is_ready(f.q);
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	keys_are(f.q, "a/1");
	fixture_close(&f, 0);
}

/* ---- a model ------------------------------------------------------------------------------- */

enum { GROUPS = 4 };

struct bucket {
	int64_t token_ns, most_ns; /* the bucket holds time */
	int64_t has_ns;
	int queued;
};

static struct bucket buckets[GROUPS] = {
    {.token_ns = 10, .most_ns = 10},
    {.token_ns = 7, .most_ns = 7 * 5},
    {.token_ns = 100, .most_ns = 300},
    {.token_ns = 1, .most_ns = 2},
};

static void by_bucket(void *ctx, const wq_key *group, wq_group_settings *s)
{
	const struct bucket *b = &buckets[*(const char *)group->key - '0'];

	(void)ctx;
	s->rate = 1e9 / (double)b->token_ns;
	s->burst = (uint32_t)(b->most_ns / b->token_ns);
}

static void like_a_model(void **state)
{
	struct fixture f;
	uint64_t rng = seed;
	wq_options o = rated(1, 1);
	unsigned number = 0;

	(void)state;
	o.group_setup = by_bucket;
	fixture_open(&f, &o);
	for (int i = 0; i < GROUPS; i++) {
		buckets[i].has_ns = buckets[i].most_ns;
		buckets[i].queued = 0;
	}
	for (int step = 0; step < 30000; step++) {
		struct bucket *b = &buckets[rng_below(&rng, GROUPS)];
		int64_t later = rng_below(&rng, 3) ? 0 : (int64_t)rng_below(&rng, 30);
		int64_t next = WQ_NEVER;
		int expected = 0;
		char key[32];

		wq_manual_clock_advance(f.mc, later);
		for (int i = 0; i < GROUPS; i++) {
			buckets[i].has_ns += later;
			if (buckets[i].has_ns > buckets[i].most_ns)
				buckets[i].has_ns = buckets[i].most_ns;
		}
		if (rng_below(&rng, 2)) {
			snprintf(key, sizeof key, "%d/%u", (int)(b - buckets), number++);
			IS(wq_add_str(f.q, key), WQ_QUEUED);
			b->queued++;
			continue;
		}
		for (int i = 0; i < GROUPS; i++)
			while (buckets[i].queued > 0 && buckets[i].has_ns >= buckets[i].token_ns) {
				buckets[i].queued--;
				buckets[i].has_ns -= buckets[i].token_ns;
				expected++;
			}
		IS(startable(f.q), expected);
		for (int i = 0; i < GROUPS; i++) {
			int64_t wait = buckets[i].token_ns - buckets[i].has_ns;

			if (buckets[i].queued > 0 && wait < next)
				next = wait;
		}
		if (next != WQ_NEVER)
			assert_true(wq_next_deadline(f.q) <= wq_now(f.q) + next);
		assert_true(wq_next_deadline(f.q) > wq_now(f.q));
	}
	fixture_close(&f, -1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_token_at_a_time),
	    cmocka_unit_test(bursts),
	    cmocka_unit_test(each_group_alone),
	    cmocka_unit_test(what_takes_a_token),
	    cmocka_unit_test(with_a_limit),
	    cmocka_unit_test(with_turns_and_levels),
	    cmocka_unit_test(rates_by_name),
	    cmocka_unit_test(very_low_rates),
	    cmocka_unit_test(large_bursts),
	    cmocka_unit_test(a_token_wakes),
	    cmocka_unit_test(deadlines_before_tokens),
	    cmocka_unit_test(due_times_and_tokens),
	    cmocka_unit_test(on_the_real_clock),
	    cmocka_unit_test(an_add_moves_the_leader),
	    cmocka_unit_test(shut_down),
	    cmocka_unit_test(cancelled_in_a_shutdown),
	    cmocka_unit_test(buckets_are_forgotten),
	    cmocka_unit_test(memory_comes_back),
	    cmocka_unit_test(freed),
	    cmocka_unit_test(refused_adds),
	    cmocka_unit_test(like_a_model),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("group_rate", tests, NULL, NULL);
}
