#define _GNU_SOURCE
#include "base/random.h"

#include <sys/random.h>

#include "base/sync.h"
#include "base/uncancelled.h"

bool wq__random_bytes(void *bytes, size_t n)
{
	int before = wq__uncancelled_begin();
	bool all = getrandom(bytes, n, GRND_NONBLOCK) == (ssize_t)n;

	wq__uncancelled_end(before);
	return all;
}

uint64_t wq__random_seed(uint64_t seed)
{
	/* Without random bytes address and time have to do. */
	if (seed == 0 && !wq__random_bytes(&seed, sizeof seed))
		seed = (uint64_t)(uintptr_t)&seed ^ (uint64_t)wq__clock_now() << 16;
	return seed;
}
