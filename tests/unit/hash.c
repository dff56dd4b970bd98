/* The key hash: every byte and the length count, every seed is another hash, and it spreads. */
#include "../support/support.h"

#include "base/hash.h"

enum { LONGEST = 300 };

static uint64_t seed;

/* The hash of a copy that has nothing around it: the sanitizer sees whoever reads beyond it. */
static uint64_t hash_exact(const wq__hash_key *k, const unsigned char *key, size_t len)
{
	unsigned char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, key, len);

	uint64_t h = wq__hash(k, copy, len);

	free(copy);
	return h;
}

static void same_bytes_same_hash(void **state)
{
	unsigned char buffer[LONGEST + 16], key[LONGEST];
	wq__hash_key k, again;
	uint64_t rng = seed;

	(void)state;
	wq__hash_init(&k, 42);
	wq__hash_init(&again, 42);
	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (unsigned char)rng_next(&rng);
	for (size_t len = 0; len <= LONGEST; len++) {
		uint64_t h = hash_exact(&k, key, len);

		assert_true(h == wq__hash(&again, key, len));
		for (size_t at = 0; at < 9; at++) { /* unaligned, with other things around it */
			memset(buffer, (int)(17 * at + len), sizeof buffer);
			memcpy(buffer + at, key, len);
			assert_true(h == wq__hash(&k, buffer + at, len));
		}
	}
	assert_true(wq__hash(&k, NULL, 0) == wq__hash(&k, key, 0));
}

static void every_byte_counts(void **state)
{
	static unsigned char key[70000];
	static const size_t long_ones[] = {511, 512, 513, 1000, 4096, 65535, 65536};
	wq__hash_key k;
	uint64_t rng = seed;

	(void)state;
	wq__hash_init(&k, seed | 1);
	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (unsigned char)rng_next(&rng);
	for (size_t len = 1; len <= LONGEST; len++) {
		uint64_t h = hash_exact(&k, key, len);

		for (size_t i = 0; i < len; i++)
			for (int bit = 0; bit < 8; bit++) {
				key[i] ^= (unsigned char)(1 << bit);
				assert_true(wq__hash(&k, key, len) != h);
				key[i] ^= (unsigned char)(1 << bit);
			}
	}
	for (size_t l = 0; l < LENGTH(long_ones); l++) {
		size_t len = long_ones[l];
		uint64_t h = hash_exact(&k, key, len);

		for (size_t i = 0; i < len; i += i < 300 || i > len - 300 ? 1 : 97) {
			key[i] ^= 0x80;
			assert_true(wq__hash(&k, key, len) != h);
			key[i] ^= 0x80;
		}
	}
}

/* Two bytes that change places, wherever they stand. */
static void places_count(void **state)
{
	wq__hash_key k;

	(void)state;
	wq__hash_init(&k, seed | 1);
	for (size_t len = 2; len <= LONGEST; len++) {
		unsigned char key[LONGEST] = {0};
		uint64_t seen[LONGEST];

		for (size_t i = 0; i < len; i++) {
			key[i] = 1;
			seen[i] = wq__hash(&k, key, len);
			key[i] = 0;
			for (size_t j = 0; j < i; j++)
				assert_true(seen[j] != seen[i]);
		}
	}
}

static void the_length_counts(void **state)
{
	static const unsigned char zeros[LONGEST + 1];
	uint64_t seen[LONGEST + 1];
	wq__hash_key k;

	(void)state;
	wq__hash_init(&k, seed | 1);
	for (size_t len = 0; len <= LONGEST; len++) {
		seen[len] = wq__hash(&k, zeros, len);
		for (size_t other = 0; other < len; other++)
			assert_true(seen[other] != seen[len]);
	}
}

static void every_seed_is_another_hash(void **state)
{
	enum { SEEDS = 1000 };
	static uint64_t seen[SEEDS];
	static const size_t lengths[] = {0, 1, 3, 4, 7, 8, 15, 16, 20, 33, 128, 129, 300};
	unsigned char key[LONGEST];

	(void)state;
	memset(key, 'k', sizeof key);
	for (size_t l = 0; l < LENGTH(lengths); l++)
		for (size_t s = 0; s < SEEDS; s++) {
			wq__hash_key k;

			wq__hash_init(&k, s + 1);
			seen[s] = wq__hash(&k, key, lengths[l]);
			for (size_t t = 0; t < s; t++)
				assert_true(seen[t] != seen[s]);
		}
}

static void seed_0_is_random(void **state)
{
	wq__hash_key a, b;

	(void)state;
	wq__hash_init(&a, 0);
	wq__hash_init(&b, 0);
	assert_true(wq__hash(&a, "key", 3) != wq__hash(&b, "key", 3));
	assert_memory_not_equal(&a, &b, sizeof a);
}

/* 0 is an empty slot of the table: no key has it. */
static void the_table_sees_no_0(void **state)
{
	(void)state;
	assert_int_equal(wq__hash_fold(0), 1);
	assert_int_equal(wq__hash_fold(UINT32_MAX), 1);
	assert_int_equal(wq__hash_fold(UINT64_C(1) << 32), 1);
	assert_int_equal(wq__hash_fold(UINT64_C(0x1234567890abcdef)), 0x12345678);
}

/* ---- spread -------------------------------------------------------------- */

typedef size_t (*family_fn)(uint32_t i, unsigned char *key);

static size_t numbers(uint32_t i, unsigned char *key)
{
	memcpy(key, &i, 4);
	return 4;
}

static size_t wide_numbers(uint32_t i, unsigned char *key)
{
	uint64_t wide = i;

	memcpy(key, &wide, 8);
	return 8;
}

static size_t high_numbers(uint32_t i, unsigned char *key)
{
	uint64_t wide = (uint64_t)i << 40;

	memcpy(key, &wide, 8);
	return 8;
}

static size_t pods(uint32_t i, unsigned char *key)
{
	return (size_t)snprintf((char *)key, LONGEST, "ns-%u/pod-%05u", i % 100, i);
}

static size_t paths(uint32_t i, unsigned char *key)
{
	return (size_t)snprintf((char *)key, LONGEST,
	                        "/srv/a-rather-long-folder/and-another-one/in/file-%u.csv", i);
}

/* Only the middle of a long key differs. */
static size_t long_ones(uint32_t i, unsigned char *key)
{
	memset(key, 'x', 280);
	memcpy(key + 130, &i, 4);
	return 280;
}

static size_t two_words(uint32_t i, unsigned char *key)
{
	uint64_t w[2] = {i % 256, i / 256};

	memcpy(key, w, 16);
	return 16;
}

static size_t three_bytes(uint32_t i, unsigned char *key)
{
	memcpy(key, &i, 4);
	return 3;
}

/*
 * Chi-square over 1,024 cells: 1,023 expected, with a standard deviation of
 * 45. Seven deviations above do not happen by chance.
 */
static double chi_square(const wq__hash_key *k, family_fn family, int shift)
{
	enum { N = 1 << 16, CELLS = 1024 };
	static unsigned cells[CELLS];
	double expected = (double)N / CELLS, sum = 0;
	unsigned char key[LONGEST];

	memset(cells, 0, sizeof cells);
	for (uint32_t i = 0; i < N; i++) {
		memset(key, 0, 16);
		cells[wq__hash(k, key, family(i, key)) >> shift & (CELLS - 1)]++;
	}
	for (int i = 0; i < CELLS; i++)
		sum += (cells[i] - expected) * (cells[i] - expected) / expected;
	return sum;
}

static void the_bits_that_the_table_uses_are_even(void **state)
{
	static const struct {
		const char *name;
		family_fn fn;
	} families[] = {
	    {"numbers", numbers},
	    {"wide numbers", wide_numbers},
	    {"high numbers", high_numbers},
	    {"pods", pods},
	    {"paths", paths},
	    {"long ones", long_ones},
	    {"two words", two_words},
	    {"three bytes", three_bytes},
	};

	(void)state;
	for (size_t f = 0; f < LENGTH(families); f++)
		for (uint64_t s = 1; s <= 5; s++) {
			wq__hash_key k;

			wq__hash_init(&k, seed + s);
			/* the directory's bits, those of a place in a page, and the last ones */
			for (int shift = 54; shift >= 32; shift -= 11) {
				double chi = chi_square(&k, families[f].fn, shift);

				if (chi > 1023 + 7 * 45)
					fail_msg("%s, seed %llu, bits from %d: chi-square %.0f",
					         families[f].name, (unsigned long long)(seed + s),
					         shift, chi);
			}
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(same_bytes_same_hash),
	    cmocka_unit_test(every_byte_counts),
	    cmocka_unit_test(places_count),
	    cmocka_unit_test(the_length_counts),
	    cmocka_unit_test(every_seed_is_another_hash),
	    cmocka_unit_test(seed_0_is_random),
	    cmocka_unit_test(the_table_sees_no_0),
	    cmocka_unit_test(the_bits_that_the_table_uses_are_even),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
