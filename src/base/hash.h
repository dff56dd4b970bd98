/*
 * The hash of a key: 64 secret-dependent bits, of which the table uses 32.
 *
 * Short keys (up to 128 bytes) are hashed by NH: the sum of products
 * (a + k)(b + k') of pairs of words with secret constants, modulo 2^128.
 * Two different keys of one length collide with probability about 2^-64 over
 * the choice of the secrets, whatever the keys: an attacker who does not know
 * the secrets cannot look for collisions. Longer keys chain such blocks
 * through a secret multiplication.
 *
 * Cost: two multiplications per 32 bytes of key, plus two.
 */
#ifndef WQ_BASE_HASH_H
#define WQ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WQ__HASH_BLOCK = 128 };

typedef struct wq__hash_key {
	uint64_t word[WQ__HASH_BLOCK / 8 + 2]; /* NH */
	uint64_t chain[2];                     /* odd */
	uint64_t last[2];                      /* odd */
} wq__hash_key;

/* All constants from one seed. 0 asks the kernel for a random one. */
void wq__hash_init(wq__hash_key *k, uint64_t seed);

/* For keys of more than 32 bytes. */
uint64_t wq__hash_long(const wq__hash_key *k, const unsigned char *p, size_t len);

__extension__ typedef unsigned __int128 wq__u128;

static inline uint64_t wq__load64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint32_t wq__load32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline wq__u128 wq__nh(uint64_t a, uint64_t b, const uint64_t *k)
{
	return (wq__u128)(a + k[0]) * (b + k[1]);
}

/* Both halves of the sum count, and the high bits of the answer are good. */
static inline uint64_t wq__hash_finish(const wq__hash_key *k, wq__u128 sum)
{
	wq__u128 r = (wq__u128)((uint64_t)sum ^ k->last[0]) * ((uint64_t)(sum >> 64) + k->last[1]);

	return (uint64_t)r ^ (uint64_t)(r >> 64);
}

static inline uint64_t wq__hash(const wq__hash_key *k, const void *key, size_t len)
{
	const unsigned char *p = key;
	wq__u128 sum = (wq__u128)(len + 1) * k->chain[0];

	if (len > 32)
		return wq__hash_long(k, p, len);
	if (len >= 16) {
		/* The last 16 bytes may overlap the first: the length tells such keys apart. */
		sum += wq__nh(wq__load64(p), wq__load64(p + 8), k->word);
		sum += wq__nh(wq__load64(p + len - 16), wq__load64(p + len - 8), k->word + 2);
	} else if (len >= 8) {
		sum += wq__nh(wq__load64(p), wq__load64(p + len - 8), k->word);
	} else if (len >= 4) {
		sum += wq__nh(wq__load32(p), wq__load32(p + len - 4), k->word);
	} else if (len > 0) {
		sum += wq__nh((uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1], len,
		              k->word);
	}
	return wq__hash_finish(k, sum);
}

/* What a table sees of it: the better half, and never 0, which is an empty slot there. */
static inline uint32_t wq__hash_fold(uint64_t hash)
{
	uint32_t high = (uint32_t)(hash >> 32);

	return high ? high : 1;
}

#endif
