/*
 * What may happen at every moment at which a call lets go of the lock.
 * wq_free() answers WQ_EBUSY as long as the call comes back for more, and once
 * it has freed the queue the call touches nothing of it. And a call that moves
 * a burst of due keys in several holds finds what others did meanwhile.
 *
 * No race is waited for. The lock's place in the parking lot is made to look
 * taken, so each release calls wq__lock_wake(), which the linker replaces by
 * the function below (--wrap): the lock is free then, and what another thread
 * could do in this moment is done there.
 */
#include "../support/support.h"

#include "queue/memory.h"

void __real_wq__lock_wake(_Atomic uint64_t *place);
void __wrap_wq__lock_wake(_Atomic uint64_t *place);
void __real_wq__lock_slow(wq__lock *l);
void __wrap_wq__lock_slow(wq__lock *l);

enum { PIECES = 256, GONE = 0x5a };

/* Memory that is given back is kept, to see whether somebody writes to it. */
static struct {
	unsigned char *at;
	size_t size;
	bool gone;
} pieces[PIECES];
static size_t npieces;

static void *piece_alloc(void *ctx, size_t size, size_t align)
{
	void *p = NULL;

	(void)ctx;
	if (npieces == PIECES ||
	    posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
		return NULL;
	pieces[npieces].at = p;
	pieces[npieces].size = size;
	pieces[npieces++].gone = false;
	return p;
}

static void piece_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	memset(p, GONE, size);
	for (size_t i = 0; i < npieces; i++)
		if (pieces[i].at == p)
			pieces[i].gone = true;
}

static void pieces_are_untouched(void)
{
	for (size_t i = 0; i < npieces; i++) {
		assert_true(pieces[i].gone);
		for (size_t j = 0; j < pieces[i].size; j++)
			assert_int_equal(pieces[i].at[j], GONE);
		free(pieces[i].at);
	}
	npieces = 0;
}

/* The queue that is freed at each release, once it is armed. */
static struct {
	wq_queue *q;
	_Atomic uint64_t *place;
	bool armed, freeing, freed;
	int busy;   /* releases at which it was refused */
	int answer; /* of the one at which it was not */
} victim;

/* Called at the next release instead, once. */
static void (*meanwhile)(void);

void __wrap_wq__lock_wake(_Atomic uint64_t *place)
{
	if (meanwhile) {
		void (*now)(void) = meanwhile;

		meanwhile = NULL;
		now();
		return;
	}
	if (!victim.armed) {
		__real_wq__lock_wake(place);
		return;
	}
	if (victim.freeing || victim.freed)
		return;
	victim.freeing = true;

	int rc = wq_free(victim.q);

	victim.freeing = false;
	if (rc == WQ_EBUSY) {
		victim.busy++;
	} else {
		victim.freed = true;
		victim.answer = rc;
	}
}

/* What is gone looks like a lock that is held. */
void __wrap_wq__lock_slow(wq__lock *l)
{
	if (victim.freed && atomic_load(&l->word) == GONE)
		fail_msg("wq_free() answered %d after %d times WQ_EBUSY, and the call went on",
		         victim.answer, victim.busy);
	__real_wq__lock_slow(l);
}

static void victim_open(void)
{
	wq_allocator a = {.alloc = piece_alloc, .free = piece_free};
	wq_item it;

	memset(&victim, 0, sizeof victim);
	npieces = 0;
	IS(wq_new(&victim.q, &(wq_options){.allocator = &a}), WQ_OK);
	IS(wq_add_str(victim.q, "whose"), WQ_QUEUED);
	get_is(victim.q, &it, "whose");
	IS(wq_done(victim.q, &it), WQ_OK);
	victim.place = ((const struct wq__memory *)it.owner)->lock.place;
}

/* From now on each release frees. */
static void victim_arm(void)
{
	atomic_fetch_or(victim.place, WQ__SLEEPERS);
	victim.armed = true;
}

/* It was refused so many times, and then freed with so many keys in line. */
static void victim_fell(int busy, int answer)
{
	victim.armed = false;
	IS(victim.freed, 1);
	IS(victim.busy, busy);
	IS(victim.answer, answer);
	pieces_are_untouched();
}

enum { MOST = 4096 };

static wq_item items[MOST];
static int outcomes[MOST];

static void add_numbers(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		IS(wq_add(victim.q, &i, sizeof i), WQ_QUEUED);
}

/* n items that are held, and `stale` copies of them, which are not once those are done. */
static void hold(size_t n, size_t stale)
{
	add_numbers((uint32_t)n);
	IS(wq_get_many_until(victim.q, items, n, WQ_NOWAIT), (int64_t)n);
	for (size_t i = 0; i < stale; i++)
		items[n + i] = items[i];
}

static const struct {
	size_t held, stale;
	int busy;
} bulks[] = {
    {1, 0, 0},   {255, 0, 0},   {256, 0, 0},   {257, 0, 1},   {512, 0, 1}, {513, 0, 2},
    {256, 1, 1}, {256, 256, 1}, {256, 257, 2}, {512, 512, 3}, {1, 256, 1}, {0, 0, 0},
};

static void done_many_is_inside(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(bulks); i++)
		for (int told = 0; told < 2; told++) {
			size_t n = bulks[i].held + bulks[i].stale;

			if (n == 0)
				continue;
			victim_open();
			hold(bulks[i].held, bulks[i].stale);
			victim_arm();
			IS(wq_done_many(victim.q, items, n, told ? outcomes : NULL),
			   (int64_t)bulks[i].held);
			victim_fell(bulks[i].busy, 0);
		}
}

static void next_many_is_inside(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(bulks); i++) {
		size_t n = bulks[i].held + bulks[i].stale;

		victim_open();
		hold(bulks[i].held > 0 ? bulks[i].held : 1, bulks[i].stale);
		if (bulks[i].held == 0) /* a plain get_many that finds nothing */
			IS(wq_done(victim.q, &items[0]), WQ_OK);
		victim_arm();
		IS(wq_next_many_until(victim.q, items, n, MOST, WQ_NOWAIT),
		   bulks[i].stale > 0 ? WQ_ESTALE : WQ_EAGAIN);
		victim_fell(bulks[i].busy, 0);
	}
}

/* Whoever has got something holds it, so the queue is busy from the first release to the last. */
static void get_many_is_inside(void **state)
{
	(void)state;
	for (int next = 0; next < 2; next++) {
		victim_open();
		add_numbers(600);
		victim_arm();
		IS(next ? wq_next_many_until(victim.q, items, 0, MOST, WQ_NOWAIT)
		        : wq_get_many_until(victim.q, items, MOST, WQ_NOWAIT),
		   600);
		IS(victim.freed, 0);
		IS(victim.busy, 3);
		victim.busy = 0;
		IS(wq_done_many(victim.q, items, 600, NULL), 600);
		victim_fell(2, 0);
	}
}

static void add_many_is_inside(void **state)
{
	static const struct {
		size_t n;
		size_t len;
		int busy;
	} cases[] = {
	    {1, 8, 0},   {256, 8, 0}, {257, 8, 1},
	    {600, 8, 2}, {768, 8, 2}, {4, 40000, 1}, /* the bytes of one hold are bounded, too */
	};
	static char bytes[MOST * 8];
	static char long_bytes[4][40000];
	static wq_key keys[MOST];

	(void)state;
	for (size_t c = 0; c < LENGTH(cases); c++) {
		for (size_t i = 0; i < cases[c].n; i++) {
			char *key = cases[c].len > 8 ? long_bytes[i] : bytes + i * 8;

			memcpy(key, &i, sizeof i);
			keys[i] = (wq_key){.key = key, .len = cases[c].len};
		}
		victim_open();
		victim_arm();
		IS(wq_add_many(victim.q, keys, cases[c].n, outcomes), (int64_t)cases[c].n);
		victim_fell(cases[c].busy, (int)cases[c].n);
	}
}

static int shown, refused;

static int show(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	(void)info;
	shown++;
	victim.freeing = true;
	refused += wq_free(victim.q) == WQ_EBUSY;
	victim.freeing = false;
	return 0;
}

/* Between the end of its wait and the last key of its listing a drain is inside. */
static void listing_is_inside(void **state)
{
	static const int64_t sizes[] = {1, 255, 256, 257, 700};

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (int drain = 0; drain < 2; drain++) {
			wq_drain_options o = {.left = show};
			wq_report r;

			victim_open();
			add_numbers((uint32_t)sizes[i]);
			victim_arm();
			shown = refused = 0;
			if (drain) {
				IS(wq_drain_until(victim.q, 0, &o, &r), WQ_ETIMEDOUT);
				IS((int64_t)r.queued, sizes[i]);
			} else {
				IS(wq_walk(victim.q, show, NULL), sizes[i]);
			}
			IS(shown, sizes[i]);
			IS(refused, sizes[i]);
			assert_true(victim.busy > 0);
			victim_fell(victim.busy, (int)sizes[i]);
		}
}

/* Calls that let go of the lock once: nothing of the queue is touched afterwards. */
static void short_calls_are_out_at_their_release(void **state)
{
	(void)state;
	for (int call = 0; call < 6; call++) {
		wq_item it;

		victim_open();
		hold(1, 0);
		if (call >= 3)
			IS(wq_done(victim.q, &items[0]), WQ_OK);
		victim_arm();
		switch (call) {
		case 0:
			IS(wq_done(victim.q, &items[0]), WQ_OK);
			break;
		case 1:
			IS(wq_next_until(victim.q, &items[0], WQ_NOWAIT), WQ_EAGAIN);
			break;
		case 2:
			IS(wq_requeue(victim.q, &items[0], WQ_TAIL), WQ_QUEUED);
			break;
		case 3:
			IS(wq_add_str(victim.q, "k"), WQ_QUEUED);
			break;
		case 4:
			IS(wq_try_get(victim.q, &it), WQ_EAGAIN);
			break;
		case 5:
			IS(wq_drain_until(victim.q, 0, NULL, NULL), WQ_OK);
			break;
		}
		victim_fell(0, call == 2 || call == 3);
	}
}

/* ---- batches of a walk ---------------------------------------------------- */

enum { SEED = 12345, NUMBERS = 400000, BATCH = 256 };

struct number {
	uint32_t hash, n;
};

static int by_hash(const void *a, const void *b)
{
	uint32_t x = ((const struct number *)a)->hash, y = ((const struct number *)b)->hash;

	return x < y ? -1 : x > y;
}

static int see(void *ctx, const wq_key_info *info)
{
	uint32_t n;

	memcpy(&n, info->key, sizeof n);
	((unsigned char *)ctx)[n]++;
	return 0;
}

/* [WALK] Keys of one hash, wherever the batch ends: before, between or behind them. */
static void a_walk_sees_keys_of_one_hash_once(void **state)
{
	struct number *all = calloc(NUMBERS, sizeof *all);
	unsigned char *seen = calloc(NUMBERS, 1);
	size_t twin = 3 * BATCH;
	wq__hash_key k;
	wq_queue *q;

	(void)state;
	assert_true(all && seen);
	wq__hash_init(&k, SEED);
	for (uint32_t i = 0; i < NUMBERS; i++)
		all[i] = (struct number){(uint32_t)(wq__hash(&k, &i, sizeof i) >> 32), i};
	qsort(all, NUMBERS, sizeof *all, by_hash);
	while (twin + 1 < NUMBERS && all[twin].hash != all[twin + 1].hash)
		twin++;
	assert_true(twin + 1 < NUMBERS); /* some 18 pairs are expected, and this seed has one */
	for (size_t before = BATCH - 3; before < BATCH + 3; before++) {
		IS(wq_new(&q, &(wq_options){.seed = SEED}), WQ_OK);
		for (size_t i = twin - before; i < twin + 2; i++)
			IS(wq_add(q, &all[i].n, sizeof all[i].n), WQ_QUEUED);
		memset(seen, 0, NUMBERS);
		IS(wq_walk(q, see, seen), (int64_t)before + 2);
		for (size_t i = twin - before; i < twin + 2; i++)
			IS(seen[all[i].n], 1);
		IS(wq_free(q), (int64_t)before + 2);
	}
	free(seen);
	free(all);
}

/* ---- a burst that takes several holds ------------------------------------ */

enum { BURST = 3500, A_HOLD = 1000 /* keys that one hold of the lock moves */ };

static struct fixture f;
static wq_item held;
static int answers[2];

/* "key" is held; so many keys come due after it. */
static void burst_open(const wq_options *options)
{
	fixture_open(&f, options);
	IS(wq_add_str(f.q, "key"), WQ_QUEUED);
	get_is(f.q, &held, "key");
	for (uint32_t i = 0; i < BURST; i++)
		IS(wq_add_at(f.q, &i, sizeof i, START_NS + 1 + i), WQ_DELAYED);
}

/* At the next release, that of the call that is made now, this happens. */
static void meanwhile_is(void (*what)(void))
{
	_Atomic uint64_t *place = ((const struct wq__memory *)held.owner)->lock.place;

	meanwhile = what;
	atomic_fetch_or(place, WQ__SLEEPERS);
}

static void burst_close(int left)
{
	assert_true(meanwhile == NULL); /* it has happened */
	fixture_close(&f, left);
}

static void hand_back(void)
{
	answers[0] = wq_done(f.q, &held);
}

/* [STALE] Of two that hand an item back, one does, though both move the burst first. */
static void an_item_is_handed_back_once_amid_a_burst(void **state)
{
	(void)state;
	for (int call = 0; call < 2; call++) {
		burst_open(NULL);
		IS(wq_add_str(f.q, "key"), WQ_MARKED);
		wq_manual_clock_advance(f.mc, BURST);
		meanwhile_is(hand_back);
		answers[1] = call ? wq_requeue(f.q, &held, WQ_TAIL) : wq_done(f.q, &held);
		IS(answers[0], WQ_QUEUED);
		IS(answers[1], WQ_ESTALE);
		check_whole(f.q, BURST + 1, 0);
		burst_close(BURST + 1);
	}
}

static void shut(void)
{
	answers[0] = wq_shutdown(f.q);
}

/* An add to a full queue moves the burst first, which may make room, and finds the queue shut. */
static void an_add_amid_a_burst_sees_a_shutdown(void **state)
{
	(void)state;
	burst_open(&(wq_options){.max_keys = BURST + 1});
	wq_manual_clock_advance(f.mc, BURST);
	meanwhile_is(shut);
	IS(wq_add_str(f.q, "new"), WQ_ESHUTDOWN);
	IS(answers[0], WQ_OK);
	IS(wq_done(f.q, &held), WQ_OK);
	burst_close(BURST);
}

static void come_due(void)
{
	wq_manual_clock_advance(f.mc, BURST);
}

static void work_off(int n)
{
	wq_item it;

	while (n-- > 0) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
	}
}

/*
 * What was not due when a shutdown began is left over, however long that takes. In line it
 * might stand for ever: the workers have been told that nothing comes any more.
 */
static void a_key_that_comes_due_amid_a_shutdown_is_left(void **state)
{
	const uint32_t last = BURST - 1;
	wq_report r;

	(void)state;
	burst_open(NULL);
	IS(wq_done(f.q, &held), WQ_OK);
	wq_manual_clock_advance(f.mc, BURST - 1);
	meanwhile_is(come_due);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(wq_len(f.q), BURST - 1);
	IS(wq_state(f.q, &last, sizeof last), WQ_STATE_LEFT);
	work_off(BURST - 1);
	IS(wq_try_get(f.q, &held), WQ_ESHUTDOWN);
	IS(wq_drain_until(f.q, 0, NULL, &r), WQ_LEFT);
	IS((int64_t)r.delayed, 1);
	IS((int64_t)r.retries, 0);
	IS(wq_wait_idle_until(f.q, 0), WQ_OK);
	burst_close(1);
}

/* Some keys come due, and a worker does what it finds. */
static void drain_too(void)
{
	int64_t n = 0;
	wq_item it;

	wq_manual_clock_advance(f.mc, BURST / 2);
	for (; wq_try_get(f.q, &it) == WQ_OK; n++)
		IS(wq_done(f.q, &it), WQ_OK);
	answers[0] = wq_drain_until(f.q, 0, NULL, NULL);
	IS(n, BURST);
}

/* [DRAIN] A drain that runs what waits is not over between two holds, for nobody. */
static void a_drain_runs_all_that_waits(void **state)
{
	(void)state;
	burst_open(NULL);
	IS(wq_done(f.q, &held), WQ_OK);
	meanwhile_is(drain_too);
	IS(wq_drain_until(f.q, 0, &(wq_drain_options){.mode = WQ_DRAIN_RUN}, NULL), WQ_OK);
	IS(answers[0], WQ_OK);
	burst_close(0);
}

/* [DRAIN] A shutdown releases every drain that has begun, however far it has come. */
static void a_drain_that_lines_up_is_released(void **state)
{
	static const enum wq_drain_mode modes[] = {WQ_DRAIN_LEAVE, WQ_DRAIN_RUN, WQ_DRAIN_WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(modes); i++) {
		wq_drain_options o = {.mode = modes[i]};
		int64_t left = modes[i] == WQ_DRAIN_RUN ? 0 : 1;
		wq_report r;

		burst_open(NULL);
		/* One that does not run all lets go of the lock for what is due. */
		if (modes[i] != WQ_DRAIN_RUN)
			wq_manual_clock_advance(f.mc, BURST - 1);
		meanwhile_is(shut);
		IS(wq_drain_until(f.q, WQ_NEVER, &o, &r), WQ_EINTERRUPTED);
		IS(answers[0], WQ_OK);
		IS((int64_t)r.running, 1);
		IS((int64_t)r.queued, BURST - left);
		IS((int64_t)r.delayed, left);
		IS((int64_t)r.retries, 0);
		IS(wq_done(f.q, &held), WQ_OK);
		burst_close(BURST);
	}
}

static wq_report reported;

/* What is in line by now is taken; nothing is in line or held, but more is due. */
static void work_and_drain(void)
{
	work_off(A_HOLD);
	answers[0] = wq_drain_until(f.q, 0, NULL, &reported);
}

/* [DRAIN] A drain is not over while another thread lines up what is due. */
static void a_drain_beside_a_shutdown_sees_what_is_due(void **state)
{
	(void)state;
	for (int call = 0; call < 2; call++) {
		burst_open(NULL);
		IS(wq_done(f.q, &held), WQ_OK);
		wq_manual_clock_advance(f.mc, BURST - 1);
		meanwhile_is(work_and_drain);
		if (call)
			IS(wq_drain_until(f.q, 0, NULL, NULL), WQ_ETIMEDOUT);
		else
			IS(wq_shutdown(f.q), WQ_OK);
		IS(answers[0], WQ_ETIMEDOUT);
		IS((int64_t)reported.queued, BURST - 1 - A_HOLD);
		IS((int64_t)reported.delayed, 1);
		work_off(BURST - 1 - A_HOLD);
		IS(wq_drain_until(f.q, 0, NULL, NULL), WQ_LEFT);
		burst_close(1);
	}
}

/* A cancel takes back what was left over: the next drain says that nothing is. */
static void cancel_all(void)
{
	for (uint32_t i = 0; i < BURST; i++)
		IS(wq_cancel(f.q, &i, sizeof i, NULL), WQ_CANCELLED);
	answers[0] = wq_drain_until(f.q, 0, NULL, &reported);
}

static int count_shown(void *ctx, const wq_key_info *info)
{
	(void)info;
	++*(int *)ctx;
	return 0;
}

/* [DRAIN] The answer is that of the report, though the list that follows is shorter. */
static void a_drain_says_what_it_has_reported(void **state)
{
	int n = 0;
	wq_drain_options o = {.left = count_shown, .ctx = &n};
	wq_report r;

	(void)state;
	burst_open(NULL);
	IS(wq_done(f.q, &held), WQ_OK);
	meanwhile_is(cancel_all);
	IS(wq_drain_until(f.q, 0, &o, &r), WQ_LEFT);
	IS((int64_t)r.delayed, BURST);
	IS(answers[0], WQ_OK);
	IS((int64_t)(reported.delayed + reported.retries + reported.queued), 0);
	assert_true(n <= 256); /* those of the first hold of the lock */
	burst_close(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_drain_that_lines_up_is_released),
	    cmocka_unit_test(a_drain_beside_a_shutdown_sees_what_is_due),
	    cmocka_unit_test(a_drain_says_what_it_has_reported),
	    cmocka_unit_test(done_many_is_inside),
	    cmocka_unit_test(next_many_is_inside),
	    cmocka_unit_test(get_many_is_inside),
	    cmocka_unit_test(add_many_is_inside),
	    cmocka_unit_test(listing_is_inside),
	    cmocka_unit_test(short_calls_are_out_at_their_release),
	    cmocka_unit_test(a_walk_sees_keys_of_one_hash_once),
	    cmocka_unit_test(an_item_is_handed_back_once_amid_a_burst),
	    cmocka_unit_test(an_add_amid_a_burst_sees_a_shutdown),
	    cmocka_unit_test(a_key_that_comes_due_amid_a_shutdown_is_left),
	    cmocka_unit_test(a_drain_runs_all_that_waits),
	};

	return cmocka_run_group_tests_name("inside", tests, NULL, NULL);
}
