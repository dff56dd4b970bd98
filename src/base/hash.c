/* Secrets for the hash, and keys longer than one block. */
#include "base/hash.h"

#include "base/random.h"

void wq__hash_init(wq__hash_key *k, uint64_t seed)
{
	if (seed == 0 && !wq__random_bytes(k, sizeof *k))
		seed = wq__random_seed(0);
	if (seed != 0) {
		for (size_t i = 0; i < sizeof k->word / sizeof k->word[0]; i++)
			k->word[i] = wq__random_next(&seed);
		for (int i = 0; i < 2; i++) {
			k->chain[i] = wq__random_next(&seed);
			k->last[i] = wq__random_next(&seed);
		}
	}
	for (int i = 0; i < 2; i++) {
		k->chain[i] |= 1;
		k->last[i] |= 1;
	}
}

uint64_t wq__hash_long(const wq__hash_key *k, const unsigned char *p, size_t len)
{
	wq__u128 sum = (wq__u128)(len + 1) * k->chain[0];
	const unsigned char *last = p + len - 16;

	for (; last - p >= WQ__HASH_BLOCK; p += WQ__HASH_BLOCK) {
		for (size_t i = 0; i < WQ__HASH_BLOCK; i += 16)
			sum += wq__nh(wq__load64(p + i), wq__load64(p + i + 8), k->word + i / 8);

		wq__u128 r =
		    (wq__u128)((uint64_t)sum ^ k->chain[1]) * ((uint64_t)(sum >> 64) + k->chain[0]);

		sum = (uint64_t)r ^ (uint64_t)(r >> 64);
	}
	size_t i = 0;

	for (; p + i < last; i += 16)
		sum += wq__nh(wq__load64(p + i), wq__load64(p + i + 8), k->word + i / 8);
	/* The last 16 bytes, which may overlap the ones before. */
	sum += wq__nh(wq__load64(last), wq__load64(last + 8), k->word + i / 8);
	return wq__hash_finish(k, sum);
}
