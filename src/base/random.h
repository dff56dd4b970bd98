/* Random numbers that a seed repeats: splitmix64. Every seed gives another sequence. */
#ifndef WQ_BASE_RANDOM_H
#define WQ_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t wq__random_next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Random bytes of the kernel's. False: it has none yet, early at boot. */
bool wq__random_bytes(void *bytes, size_t n);

/* The seed itself, or for 0 one that the kernel draws. */
uint64_t wq__random_seed(uint64_t seed);

#endif
