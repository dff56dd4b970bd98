/*
 * Keys that were chosen to collide. Whoever knows the seed can find them; for
 * whoever does not they are keys like any others. And where keys do collide,
 * by chance or because a test gave the seed away, the queue stays right.
 */
#include "../support/support.h"

#include "base/hash.h"
#include "base/table.h"

enum { ATTACK = 300, KNOWN_SEED = 12345 };

static uint64_t seed;
static char attack[ATTACK][20];

/* What the table sees of a key. */
static uint32_t table_hash(const wq__hash_key *k, const void *key, size_t len)
{
	return wq__hash_fold(wq__hash(k, key, len));
}

/* By brute force: keys that share the top 16 bits under the known seed. Some 20 million hashes. */
static int find_attack(void **state)
{
	wq__hash_key k;
	char key[20] = "ns-1/pod-";
	int found = 0;

	(void)state;
	wq__hash_init(&k, KNOWN_SEED);
	for (uint64_t i = 0; found < ATTACK; i++) {
		memcpy(key + 10, &i, sizeof i);
		if (table_hash(&k, key, sizeof key) >> 16 == 0xabcd)
			memcpy(attack[found++], key, sizeof key);
	}
	return 0;
}

/* Pairs of keys with the same top 16 bits: 300 * 299 / 2 / 65536 = 0.7 are expected. */
static void collisions_of_one_seed_are_none_of_another(void **state)
{
	enum { SEEDS = 100 };
	long pairs = 0, most = 0;

	(void)state;
	for (uint64_t s = 0; s < SEEDS; s++) {
		uint32_t hashes[ATTACK];
		wq__hash_key k;
		long here = 0;

		wq__hash_init(&k, seed + s * 7919 + 1);
		for (int i = 0; i < ATTACK; i++) {
			hashes[i] = table_hash(&k, attack[i], sizeof attack[i]) >> 16;
			for (int j = 0; j < i; j++)
				here += hashes[j] == hashes[i];
		}
		pairs += here;
		most = here > most ? here : most;
	}
	print_message("%d keys, %d seeds: %ld pairs collide, at most %ld under one seed\n", ATTACK,
	              SEEDS, pairs, most);
	assert_true(pairs < 2 * SEEDS);
	assert_true(most <= 10);
}

struct shape {
	uint32_t longest; /* buckets from a slot's home to where it is, at most */
	uint32_t moved;   /* slots in one call, at most */
};

/* A table of `others` random hashes and the attack's keys. */
static struct shape shape_of(uint64_t hash_seed, uint32_t others)
{
	struct memory mem;
	wq__slab slab;
	wq__table t;
	wq__hash_key k;
	struct shape shape = {0, 0};
	uint64_t rng = seed;

	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	wq__slab_init(&slab, &a);
	wq__hash_init(&k, hash_seed);
	assert_int_equal(wq__table_init(&t, &slab, &a), 0);
	for (uint32_t i = 0; i < others + ATTACK; i++) {
		uint32_t hash = i < others ? (uint32_t)rng_next(&rng)
		                           : table_hash(&k, attack[i - others], sizeof attack[0]);
		wq__probe p = wq__table_probe(&t, hash);

		while (wq__probe_next(&p) != 0)
			;
		assert_int_equal(wq__table_insert(&t, wq__probe_end(&p),
		                                  (uint64_t)hash << 32 | (i + 1)),
		                 0);
	}
	for (int old = 0; old < 2; old++) {
		const struct wq__array *in = old ? &t.old : &t.now;

		for (uint32_t i = old ? t.moved : 0; i < in->ready; i = wq__bucket_next(in, i))
			for (uint32_t s = 0; s < WQ__BUCKET; s++) {
				uint32_t hash = wq__bucket_at(in, i)->hash[s];
				uint32_t far = hash ? i - wq__home(in, hash) : 0;

				shape.longest = far > shape.longest ? far : shape.longest;
			}
	}
	shape.moved = t.moved_max;
	wq__table_release(&t);
	wq__slab_release(&slab);
	memory_balanced(&mem);
	return shape;
}

static void an_attack_without_the_seed_is_a_load_like_any_other(void **state)
{
	struct shape known = shape_of(KNOWN_SEED, 20000);

	(void)state;
	print_message("with the seed: %u buckets from home, moved %u\n", known.longest,
	              known.moved);
	assert_true(known.longest > 12); /* or this would be no attack */
	for (uint64_t s = 1; s <= 30; s++) {
		struct shape other = shape_of(seed + s, 20000);

		assert_true(other.longest < 12);
		assert_true(other.moved <= 32 * WQ__BUCKET);
	}
}

/* Every call, on keys of which none can be told from the others by its hash. */
struct keys {
	const char *bytes;
	size_t len, n;
	const char *at[1000];
	int seen[1000];
	int wrong;
};

static int see_key(void *ctx, const wq_key_info *info)
{
	struct keys *k = ctx;

	for (size_t i = 0; i < k->n; i++)
		if (info->len == k->len && memcmp(info->key, k->at[i], k->len) == 0) {
			k->seen[i]++;
			return 0;
		}
	k->wrong++;
	return 0;
}

static void seen_once(wq_queue *q, struct keys *k, size_t from)
{
	memset(k->seen, 0, sizeof k->seen);
	IS(wq_walk(q, see_key, k), (int64_t)(k->n - from));
	IS(k->wrong, 0);
	for (size_t i = 0; i < k->n; i++)
		IS(k->seen[i], i >= from);
}

static void stays_right(struct keys *k)
{
	static wq_item items[1000];
	struct fixture f;

	fixture_open(&f, &(wq_options){.seed = KNOWN_SEED});
	f.mem.largest = 64 << 20; /* nobody needs more for this */
	for (size_t i = 0; i < k->n; i++)
		IS(wq_add(f.q, k->at[i], k->len), WQ_QUEUED);
	for (size_t i = 0; i < k->n; i++) {
		IS(wq_add(f.q, k->at[i], k->len), WQ_MERGED);
		IS(wq_state(f.q, k->at[i], k->len), WQ_STATE_QUEUED);
	}
	seen_once(f.q, k, 0);
	for (size_t i = 0; i < k->n; i++) { /* [FIFO] */
		IS(wq_try_get(f.q, &items[i]), WQ_OK);
		assert_memory_equal(items[i].key, k->at[i], k->len);
	}
	for (size_t i = 1; i < k->n; i += 2)
		IS(wq_add(f.q, k->at[i], k->len), WQ_MARKED);
	for (size_t i = 0; i < k->n; i++)
		IS(wq_state(f.q, k->at[i], k->len),
		   i % 2 ? WQ_STATE_RUNNING | WQ_STATE_DIRTY : WQ_STATE_RUNNING);
	seen_once(f.q, k, 0);
	for (size_t i = k->n; i-- > 0;) {
		IS(wq_done(f.q, &items[i]), i % 2 ? WQ_QUEUED : WQ_OK);
		IS(wq_done(f.q, &items[i]), WQ_ESTALE);
	}
	for (size_t i = k->n; i-- > 0;) {
		if (i % 2 == 0)
			continue;
		IS(wq_try_get(f.q, &items[i]), WQ_OK);
		assert_memory_equal(items[i].key, k->at[i], k->len);
		IS(wq_done(f.q, &items[i]), WQ_OK);
	}
	seen_once(f.q, k, k->n);
	check_whole(f.q, 0, 0);
	fixture_close(&f, 0);
}

static void keys_that_share_16_bits(void **state)
{
	static struct keys k;

	(void)state;
	k = (struct keys){.len = sizeof attack[0], .n = ATTACK};
	for (size_t i = 0; i < k.n; i++)
		k.at[i] = attack[i];
	stays_right(&k);
}

/*
 * All 64 bits the same: a word that cancels its secret makes the product 0,
 * whatever the other word is. n above 256, so that a walk cannot copy all of
 * them in one hold of the lock.
 */
static void keys_that_share_everything(void **state)
{
	enum { N = 500, LEN = 12 };
	static char bytes[N][LEN];
	static struct keys k;
	wq__hash_key hash;

	(void)state;
	wq__hash_init(&hash, KNOWN_SEED);
	k = (struct keys){.len = LEN, .n = N};
	for (uint32_t i = 0; i < N; i++) {
		uint64_t first = 0 - hash.word[0];

		memcpy(bytes[i], &first, 8);
		memcpy(bytes[i] + 8, &i, 4);
		k.at[i] = bytes[i];
		assert_true(wq__hash(&hash, bytes[i], LEN) == wq__hash(&hash, bytes[0], LEN));
	}
	stays_right(&k);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(collisions_of_one_seed_are_none_of_another),
	    cmocka_unit_test(an_attack_without_the_seed_is_a_load_like_any_other),
	    cmocka_unit_test(keys_that_share_16_bits),
	    cmocka_unit_test(keys_that_share_everything),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("collide", tests, find_attack, NULL);
}
