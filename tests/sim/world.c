/* A world: its memory, keys and orders, how it is opened, watched and closed. See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "queue/lane.h"

enum {
	ARENA_SIZE = 16 << 20,
	MAX_BLOCKS = 512,
	POISON = 0xDD,
	FRESH = 0xA5,
};

struct world w;

/* ---- memory ---------------------------------------------------------------- */

/*
 * Nothing is used twice in a run: what was freed keeps a pattern that is
 * looked at in the end, and a pointer read from there crashes.
 */
static struct {
	char *base;
	size_t used;
	int nblocks;
	int live;
	struct {
		unsigned char *p;
		size_t size;
		bool freed;
	} block[MAX_BLOCKS];
} arena;

static void *arena_alloc(void *ctx, size_t size, size_t align)
{
	size_t at = (arena.used + align - 1) & ~(align - 1);

	(void)ctx;
	if (size == sizeof(struct wq__lane) && sim_chance(8))
		return NULL; /* then one lock has to do */
	if (at + size > ARENA_SIZE || arena.nblocks == MAX_BLOCKS)
		sim_fail("the arena of the test is too small");
	arena.used = at + size;
	arena.block[arena.nblocks].p = (unsigned char *)arena.base + at;
	arena.block[arena.nblocks].size = size;
	arena.block[arena.nblocks++].freed = false;
	arena.live++;
	return memset(arena.base + at, FRESH, size);
}

static void arena_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	for (int i = 0; i < arena.nblocks; i++) {
		if (arena.block[i].p != p)
			continue;
		if (arena.block[i].freed)
			sim_fail("memory freed twice");
		if (arena.block[i].size != size)
			sim_fail("memory freed with another size than it was asked for with");
		arena.block[i].freed = true;
		arena.live--;
		memset(p, POISON, size);
		return;
	}
	sim_fail("memory freed that was never given");
}

const wq_allocator *world_allocator(void)
{
	static const wq_allocator a = {.alloc = arena_alloc, .free = arena_free};

	return &a;
}

static void arena_reset(void)
{
	if (!arena.base)
		arena.base = aligned_alloc(65536, ARENA_SIZE);
	arena.used = 0;
	arena.nblocks = 0;
	arena.live = 0;
}

static void arena_check(void)
{
	if (arena.live)
		sim_fail("%d pieces of memory are left in the end", arena.live);
	for (int i = 0; i < arena.nblocks; i++) {
		const unsigned char *p = arena.block[i].p;
		size_t n = arena.block[i].size;

		if (p[0] != POISON || memcmp(p, p + 1, n - 1) != 0)
			sim_fail("memory was written after it was freed");
	}
}

/* ---- keys ------------------------------------------------------------------ */

const char *key_bytes(int key, size_t *len)
{
	static const char names[NKEYS][3] = {"",   "a\0", "a2", "b3", "a4", "b5", "a6", "b7",
	                                     "a8", "b9",  "aa", "bb", "ac", "bd", "ae", "bf"};

	*len = key == 0 ? 0 : 2;
	return names[key];
}

static int key_number(const void *bytes, size_t len)
{
	for (int k = 0; k < NKEYS; k++) {
		size_t l;
		const char *b = key_bytes(k, &l);

		if (l == len && memcmp(b, bytes, len) == 0)
			return k;
	}
	sim_fail("a key from nowhere, %zu bytes long", len);
}

int key_of(const wq_item *it)
{
	if (((const char *)it->key)[it->len] != '\0')
		sim_fail("no NUL follows the key");
	return key_number(it->key, it->len);
}

int group_of_key(int key)
{
	size_t len;
	const char *bytes = key_bytes(key, &len);

	return len == 0 ? 0 : bytes[0] == 'a' ? 1 : 2;
}

static int find_group(void *ctx, const void *key, size_t len, wq_key *group)
{
	(void)ctx;
	*group = (wq_key){key, len > 0};
	return WQ_OK;
}

/* ---- orders of our own ----------------------------------------------------- */

/* A list through link[0], next; the first is handed out. */
static wq_node *line_head;
static int touches;

static void lifo_push(void *ctx, wq_node *n, enum wq_where where)
{
	(void)ctx;
	(void)where;
	n->link[0] = line_head;
	line_head = n;
}

static int node_key(const wq_node *n)
{
	size_t len;
	const void *key = wq_node_key(n, &len);

	return key_number(key, len);
}

static void smallest_push(void *ctx, wq_node *n, enum wq_where where)
{
	void *head = line_head;
	void **at = &head;

	(void)ctx;
	(void)where;
	while (*at && node_key(*at) < node_key(n))
		at = &((wq_node *)*at)->link[0];
	n->link[0] = *at;
	*at = n;
	line_head = head;
}

static wq_node *list_pop(void *ctx)
{
	wq_node *n = line_head;

	(void)ctx;
	if (!n)
		sim_fail("pop from an order that holds nothing");
	line_head = n->link[0];
	return n;
}

static void count_touch(void *ctx, wq_node *n)
{
	(void)ctx;
	(void)node_key(n);
	touches++;
}

/* ---- opening --------------------------------------------------------------- */

/* Work that is over before the run begins, so that the queue has measured how long holds last. */
static void live_through(int64_t hold_ns)
{
	sim_quiet_begin();
	for (int i = 0; i < 200; i++) {
		wq_item it;

		if (wq_add_str(w.q, "past") != WQ_QUEUED || wq_try_get(w.q, &it) != WQ_OK)
			sim_fail("the past went wrong");
		sim_advance(hold_ns);
		if (wq_done(w.q, &it) != WQ_OK)
			sim_fail("the past went wrong");
	}
	sim_quiet_end();
	touches = 0;
}

void world_open(const wq_options *o)
{
	static const int64_t spins[] = {0, 0, WQ_SPIN_NEVER, 5000};
	const wq_order own = {.push = w.order == LIFO ? lifo_push : smallest_push,
	                      .pop = list_pop,
	                      .touch = count_touch};
	wq_options opt = o ? *o : (wq_options){0};

	sim_set_cpus(1 + (int)sim_random(2));
	w.other_clock = opt.clock != NULL;
	opt.allocator = world_allocator();
	opt.seed = 1 + sim_random(1000);
	opt.max_keys = w.max_keys;
	if (!opt.spin_ns)
		opt.spin_ns = spins[sim_random(4)];
	if (w.order == RANKED) {
		opt.priorities = opt.values = 1;
		opt.merge = wq_merge_append;
		opt.merge_ctx = "";
		opt.group = w.grouped ? find_group : NULL;
		opt.group_limit = w.limit;
		if (w.token_ns > 0)
			opt.group_rate = 1e9 / (double)w.token_ns;
		w.paced = opt.group_rate > 0;
	} else if (w.order != FIFO) {
		opt.order = &own;
	}
	line_head = NULL;
	touches = 0;

	int rc = wq_new(&w.q, &opt);

	if (rc != WQ_OK)
		sim_fail("wq_new: %s", wq_strerror(rc));
	/* A past in which the group of that key had to wait would take long. */
	switch (w.paced ? 3 : sim_random(4)) {
	case 0:
		live_through(100);
		break;
	case 1:
		live_through(WQ_MILLISECOND);
		break;
	}
}

/* ---- while it runs --------------------------------------------------------- */

int64_t world_ready(void)
{
	wq_snapshot s;

	if (w.order != RANKED)
		return wq_len(w.q);
	if (wq_snapshot_take(w.q, &s) != WQ_OK)
		sim_fail("no snapshot");
	return (int64_t)(s.queued - s.blocked);
}

void world_beside(void)
{
	int asleep, under_way;

	if (!w.q || sim_locked() || w.paced)
		return;
	sim_sleepers(&asleep, &under_way);
	if (!asleep || under_way)
		return;
	sim_quiet_begin();

	int64_t n = world_ready();

	sim_quiet_end();
	if (n > 0)
		sim_fail("%lld keys are ready, %d workers sleep and nobody is under way",
		         (long long)n, asleep);
}

int64_t world_now(void)
{
	sim_quiet_begin();

	int64_t t = wq_now(w.q);

	sim_quiet_end();
	return t;
}

int64_t world_len(void)
{
	sim_quiet_begin();

	int64_t n = wq_len(w.q);

	sim_quiet_end();
	return n;
}

static const struct scenario *running;

static void world_setup(void)
{
	memset(&w, 0, sizeof w);
	history_reset();
	arena_reset();
	running->setup();
}

static void world_quiet(void)
{
	world_beside();
	if (running->quiet)
		running->quiet();
}

static void world_finish(void)
{
	if (running->finish)
		running->finish();
	if (!w.q) {
		arena_check(); /* the scenario has freed it */
		return;
	}
	if (w.nheld)
		sim_fail("%d items are still held", w.nheld);

	int left = history_judge(touches);
	int rc = wq_free(w.q);

	if (rc != left)
		sim_fail("wq_free answered %d, expected %d", rc, left);
	w.q = NULL;
	arena_check();
	if (w.manual && wq_manual_clock_free(w.manual) != WQ_OK)
		sim_fail("the manual clock is not free");
	w.manual = NULL;
}

bool world_run(const struct scenario *s, uint64_t seed, struct sim_result *r)
{
	static const struct sim_plan plan = {.setup = world_setup,
	                                     .quiet = world_quiet,
	                                     .sleeps = world_beside,
	                                     .finish = world_finish};

	size_t limit = wq__hold_limit; /* which a scenario may change for itself */
	bool clean;

	running = s;
	/* Two seeds without, two with: so has each half of them, if two processes share them. */
	if (!sim_guide)
		sim_lanes = seed / 2 % 2 == 1;
	clean = sim_run(&plan, seed, r);
	wq__hold_limit = limit;
	return clean;
}

/* ---- parts of scenarios ---------------------------------------------------- */

void work(const wq_item *it)
{
	uint32_t steps = sim_random(3);

	(void)it;
	while (steps--)
		sim_yield();
	if (sim_chance(4))
		sim_advance(sim_random(40000));
}

void plain_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		work(&it);
		do_done(&it);
	}
}

void busy_worker(void *arg)
{
	wq_item it;

	(void)arg;
	while (do_get(&it, WQ_NEVER) == WQ_OK) {
		work(&it);
		if (w.a > 0 && sim_chance(2)) {
			w.a--;
			if (sim_chance(2)) {
				do_requeue(&it, sim_chance(2) ? WQ_HEAD : WQ_TAIL);
				continue;
			}
			do_add(key_of(&it));
		}
		do_done(&it);
	}
}

void add_some(int n, int nkeys)
{
	for (int i = 0; i < n; i++)
		do_add((int)sim_random((uint32_t)nkeys));
}

void producer_ends(void)
{
	if (--w.producers == 0)
		do_shutdown();
}

void plain_producer(void *arg)
{
	(void)arg;
	add_some(4, 3);
	producer_ends();
}

int64_t soon(void)
{
	return sim_now() + 1 + sim_random(1u << sim_random(16));
}
