#define _GNU_SOURCE
#include "base/random.h"

#include <sys/random.h>

#include "base/sync.h"

uint64_t wq__random_seed(uint64_t seed)
{
	/* Early at boot the kernel may have no random bytes; then address and time have to do. */
	if (seed == 0 && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
		seed = (uint64_t)(uintptr_t)&seed ^ (uint64_t)wq__clock_now() << 16;
	return seed;
}
