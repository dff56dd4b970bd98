/*
 * Everything at once: producers that add one key or many, workers of every
 * style that re-add and requeue, walkers, readers, interrupts, waiters for
 * one key and for idleness; at the end several drains.
 *
 *     test_stress_mix hot|many [requeue] [--spin ...] [--one-cpu] [--seed N] [--scale X]
 *
 * Checked:
 *   [ONE]   a flag in each key that its worker holds
 *   [KEEP]  each key has a version, raised before each add and read by the
 *           worker once it has the key: the last version read is not below
 *           the last one added
 *   [BACK]  runs = adds that were queued or marked, exactly; with requeues,
 *           which merge with a mark, at most one more for each
 *   wait_key returns after the version that was added before it has been done;
 *   interrupts = Gets that were interrupted + those that were kept; everyone
 *   returns; nothing is left.
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	HOT = 8,
	MANY = 20000,
	BATCH = 32,
	PRODUCERS = 3,
	DRAINS = 3,
	OPS = 600000, /* adds of each producer */
	WAITS = 20000,
	WALKS = 1000,
};

struct key {
	_Atomic int busy;
	_Atomic uint64_t added, seen, finished; /* versions */
};

static struct key keys[MANY];
static uint32_t nkeys;
static bool requeues_too;
static struct stress st;
static wq_queue *q;

static atomic_long adds, runs, requeues, readds_left, interrupts, interrupted;
static atomic_bool draining;

/* Long ones too, for other ways to store them. */
static size_t key_bytes(uint32_t i, char *buf)
{
	size_t len = (size_t)sprintf(buf, "ns-%u/pod-%u", i % 7, i);

	if (i % 64 == 5) {
		memset(buf + len, '.', 1500);
		len += 1500;
	}
	return len;
}

enum { KEY_SIZE = 1600 };

static uint32_t key_number(const void *bytes, size_t len)
{
	const char *s = memchr(bytes, '/', len);
	uint32_t i = 0;
	char buf[KEY_SIZE];

	CHECK(s != NULL);
	for (s += 5; *s >= '0' && *s <= '9'; s++)
		i = i * 10 + (uint32_t)(*s - '0');
	CHECK(i < nkeys);
	CHECK_EQ(key_bytes(i, buf), len);
	CHECK(memcmp(buf, bytes, len) == 0);
	return i;
}

static void raise_to(_Atomic uint64_t *at, uint64_t version)
{
	uint64_t old = atomic_load(at);

	while (old < version && !atomic_compare_exchange_weak(at, &old, version))
		;
}

/* ---- adding ---------------------------------------------------------------- */

static void count_add(uint32_t i, int rc)
{
	if (rc == WQ_ESHUTDOWN) {
		CHECK(atomic_load(&draining));
		atomic_fetch_sub(&keys[i].added, 1);
		return;
	}
	CHECK(rc == WQ_QUEUED || rc == WQ_MERGED || rc == WQ_MARKED);
	if (rc != WQ_MERGED)
		atomic_fetch_add(&adds, 1);
}

static uint64_t add(uint32_t i)
{
	char buf[KEY_SIZE];
	size_t len = key_bytes(i, buf);
	uint64_t version = atomic_fetch_add(&keys[i].added, 1) + 1;

	count_add(i, wq_add(q, buf, len));
	return version;
}

static void add_many(uint64_t *random)
{
	static _Thread_local char buf[BATCH][KEY_SIZE];
	wq_key k[BATCH];
	uint32_t number[BATCH];
	int outcomes[BATCH], accepted = 0;
	size_t n = 1 + stress_random(random) % BATCH;

	for (size_t j = 0; j < n; j++) {
		number[j] = stress_random(random) % nkeys;
		k[j] = (wq_key){buf[j], key_bytes(number[j], buf[j])};
		atomic_fetch_add(&keys[number[j]].added, 1);
	}
	int rc = wq_add_many(q, k, n, outcomes);

	for (size_t j = 0; j < n; j++) {
		count_add(number[j], outcomes[j]);
		accepted += outcomes[j] >= 0;
	}
	CHECK_EQ(rc, accepted);
}

static void produce(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	long n = stress_ops(&st, OPS);

	while (n > 0) {
		if (stress_random(&random) % 4 == 0) {
			add_many(&random);
			n -= BATCH / 2;
		} else {
			add(stress_random(&random) % nkeys);
			n--;
		}
	}
}

/* Adds a key and waits for it: then that add must have been served. */
static void add_and_wait(void *ctx)
{
	uint64_t random = st.seed + 77 + (uint64_t)(uintptr_t)ctx;

	for (long n = stress_ops(&st, WAITS); n > 0; n--) {
		uint32_t i = stress_random(&random) % nkeys;
		char buf[KEY_SIZE];
		size_t len = key_bytes(i, buf);
		uint64_t version = add(i);

		if (n % 8 == 0) {
			int rc = wq_wait_key_for(q, buf, len, stress_random(&random) % 20000);

			CHECK(rc == WQ_OK || rc == WQ_ETIMEDOUT);
			rc = wq_wait_idle_for(q, stress_random(&random) % 20000);
			CHECK(rc == WQ_OK || rc == WQ_ETIMEDOUT);
			continue;
		}
		CHECK_EQ(wq_wait_key_until(q, buf, len, WQ_NEVER), WQ_OK);
		CHECK(atomic_load(&keys[i].finished) >= version);
	}
}

/* ---- working --------------------------------------------------------------- */

/* True: to be given back by requeue instead of done. */
static bool work(const wq_item *it, uint64_t *random)
{
	uint32_t i = key_number(it->key, it->len), r = stress_random(random) % 64;
	struct key *k = &keys[i];

	CHECK_EQ(atomic_exchange(&k->busy, 1), 0);
	uint64_t version = atomic_load(&k->added);

	atomic_fetch_add(&runs, 1);
	raise_to(&k->seen, version);
	CHECK(((const char *)it->key)[it->len] == '\0');
	CHECK_EQ(it->attempts, 1);
	if (r < 8 && atomic_fetch_sub(&readds_left, 1) > 0)
		add(r < 4 ? i : stress_random(random) % nkeys);

	bool again = requeues_too && r == 63;

	if (!again)
		raise_to(&k->finished, version);
	atomic_store(&k->busy, 0);
	return again;
}

static void requeue(const wq_item *it, uint64_t *random)
{
	atomic_fetch_add(&requeues, 1);
	CHECK_EQ(wq_requeue(q, it, stress_random(random) & 1 ? WQ_HEAD : WQ_TAIL), WQ_QUEUED);
}

/* Goes on after an interrupt. */
static bool going(int rc)
{
	if (rc >= 0)
		return true;
	if (rc == WQ_EINTERRUPTED) {
		atomic_fetch_add(&interrupted, 1);
		return true;
	}
	CHECK(rc == WQ_ESHUTDOWN);
	return false;
}

static void with_get(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	wq_item it;
	int rc;

	while (going(rc = wq_get(q, &it))) {
		if (rc != WQ_OK)
			continue;
		wq_item copy = it;

		if (work(&it, &random)) {
			requeue(&it, &random);
		} else {
			CHECK(wq_done(q, &it) >= 0);
		}
		CHECK_EQ(wq_done(q, &copy), WQ_ESTALE);
	}
}

static void with_next(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	wq_item it;
	int rc = wq_get(q, &it);

	while (going(rc)) {
		if (rc != WQ_OK) {
			rc = wq_get(q, &it);
		} else if (work(&it, &random)) {
			requeue(&it, &random);
			rc = wq_get(q, &it);
		} else {
			rc = wq_next(q, &it);
		}
	}
}

/* The items that are done stand in front; the others were requeued. */
static size_t work_many(wq_item *items, size_t n, uint64_t *random)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		if (work(&items[i], random))
			requeue(&items[i], random);
		else
			items[done++] = items[i];
	}
	return done;
}

static void with_get_many(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	wq_item items[BATCH];
	int rc;

	while (going(rc = wq_get_many_until(q, items, BATCH, WQ_NEVER))) {
		if (rc < 0)
			continue;
		CHECK(rc >= 1 && rc <= BATCH);
		size_t n = work_many(items, (size_t)rc, &random);

		CHECK_EQ(wq_done_many(q, items, n, NULL), n);
	}
}

static void with_next_many(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	wq_item items[BATCH];
	size_t n = 0;
	int rc;

	while (going(rc = wq_next_many_until(q, items, n, BATCH, WQ_NEVER)))
		n = rc < 0 ? 0 : work_many(items, (size_t)rc, &random);
}

/* An event loop; others take keys too, so readable may mean nothing. */
static void with_poll(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;
	struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};
	int rc = WQ_OK;

	CHECK(p.fd >= 0);
	while (rc != WQ_ESHUTDOWN) {
		wq_item it;

		CHECK_EQ(poll(&p, 1, -1), 1);
		while ((rc = wq_try_get(q, &it)) == WQ_OK) {
			if (work(&it, &random))
				requeue(&it, &random);
			else
				CHECK(wq_done(q, &it) >= 0);
		}
		CHECK(rc == WQ_EAGAIN || rc == WQ_ESHUTDOWN);
	}
}

/* ---- looking, disturbing --------------------------------------------------- */

static int show(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	key_number(info->key, info->len);
	CHECK(info->state == WQ_STATE_QUEUED || info->state == WQ_STATE_RUNNING ||
	      info->state == (WQ_STATE_RUNNING | WQ_STATE_DIRTY));
	CHECK(info->age_ns >= 0);
	return 0;
}

static void walk(void *ctx)
{
	(void)ctx;
	for (long n = stress_ops(&st, WALKS); n > 0; n--) {
		int64_t shown = wq_walk(q, show, NULL);

		/* A key may be shown for each of its lives; hot ones live often. */
		CHECK(shown >= 0);
		sched_yield();
	}
}

static void look_and_disturb(void *ctx)
{
	uint64_t random = st.seed + (uint64_t)(uintptr_t)ctx;

	for (long n = stress_ops(&st, OPS / 8); n > 0; n--) {
		char buf[KEY_SIZE];
		size_t len = key_bytes(stress_random(&random) % nkeys, buf);
		int64_t length = wq_len(q);
		int state = wq_state(q, buf, len);

		CHECK(length >= 0 && length <= nkeys);
		CHECK(state == 0 || state == WQ_STATE_QUEUED || state == WQ_STATE_RUNNING ||
		      state == (WQ_STATE_RUNNING | WQ_STATE_DIRTY));
		CHECK_EQ(wq_shutting_down(q), 0);
		if (n % 64 == 0) {
			int k = (int)(stress_random(&random) % 4);
			int before = wq_interrupt(q, k);

			/* 0 takes back what was kept. */
			CHECK(before >= 0);
			atomic_fetch_add(&interrupts, k == 0 ? -before : k);
		}
	}
}

static void drain(void *ctx)
{
	wq_report r;

	(void)ctx;
	CHECK_EQ(wq_drain_until(q, WQ_NEVER, NULL, &r), WQ_OK);
	CHECK_EQ(r.queued + r.running + r.dirty, 0);
}

/* ---- the program ----------------------------------------------------------- */

static bool kind(const char *word)
{
	if (strcmp(word, "hot") == 0)
		nkeys = HOT;
	else if (strcmp(word, "many") == 0)
		nkeys = MANY;
	else if (strcmp(word, "requeue") == 0)
		requeues_too = true;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct crew workers, others, drains;
	static void (*const styles[])(void *) = {with_get,       with_next, with_get_many,
	                                         with_next_many, with_poll, with_get,
	                                         with_poll};

	nkeys = HOT;
	stress_init(&st, argc, argv, kind);
	q = stress_queue(&st, NULL);
	atomic_store(&readds_left, stress_ops(&st, OPS));

	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		crew_add(&workers, styles[i], (void *)(uintptr_t)(1000 + i));
	for (size_t i = 0; i < PRODUCERS; i++)
		crew_add(&others, produce, (void *)(uintptr_t)(2000 + i));
	crew_add(&others, add_and_wait, (void *)(uintptr_t)1);
	crew_add(&others, add_and_wait, (void *)(uintptr_t)2);
	crew_add(&others, walk, NULL);
	crew_add(&others, look_and_disturb, (void *)(uintptr_t)3000);
	for (size_t i = 0; i < DRAINS; i++)
		crew_add(&drains, drain, NULL);

	crew_start(&workers);
	crew_start(&others);
	crew_join(&others);
	atomic_store(&draining, true);
	crew_start(&drains);
	crew_join(&drains);
	crew_join(&workers);

	for (uint32_t i = 0; i < nkeys; i++)
		if (atomic_load(&keys[i].seen) < atomic_load(&keys[i].added))
			stress_fail(__FILE__, __LINE__, "key %u: version %llu added, %llu seen", i,
			            (unsigned long long)keys[i].added,
			            (unsigned long long)keys[i].seen);
	CHECK(atomic_load(&runs) >= atomic_load(&adds));
	CHECK(atomic_load(&runs) <= atomic_load(&adds) + atomic_load(&requeues));
	CHECK_EQ(atomic_load(&interrupts), atomic_load(&interrupted) + wq_interrupt(q, 0));
	CHECK_EQ(wq_len(q), 0);
	printf("%ld runs, %ld requeues, %ld interrupted\n", atomic_load(&runs),
	       atomic_load(&requeues), atomic_load(&interrupted));
	CHECK_EQ(wq_free(q), 0);
	return 0;
}
