/* Secrets for the hash, and keys longer than one block. */
#define _GNU_SOURCE
#include "base/hash.h"

#include <sys/random.h>

#include "base/sync.h"

/* splitmix64: every seed gives another sequence. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

void wq__hash_init(wq__hash_key *k, uint64_t seed)
{
	/* Early at boot the kernel may have no random bytes; then address and time have to do. */
	if (seed == 0 && getrandom(k, sizeof *k, GRND_NONBLOCK) != (ssize_t)sizeof *k)
		seed = (uint64_t)(uintptr_t)k ^ (uint64_t)wq__clock_now() << 16;
	if (seed != 0) {
		for (size_t i = 0; i < sizeof k->word / sizeof k->word[0]; i++)
			k->word[i] = draw(&seed);
		for (int i = 0; i < 2; i++) {
			k->chain[i] = draw(&seed);
			k->last[i] = draw(&seed);
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
