/* Random tapes: trees of limiters against their model (limiter_tape.h, runner.h). */
#include "limiter_tape.h"
#include "runner.h"

#include <stdlib.h>

enum { TREE = 24, BYTES_PER_OP = 2 };

/* Each tape uses its own subset of the operations. */
static size_t make_tape(uint64_t seed, long i, size_t nops, uint8_t **out)
{
	uint64_t random = seed * 0x2545f4914f6cdd1du + (uint64_t)i;
	uint64_t r = runner_random(&random);
	uint32_t allowed = (uint32_t)runner_random(&random);
	size_t n = TREE + BYTES_PER_OP * (1 + (size_t)(r >> 8) % nops);
	uint8_t *bytes = malloc(n);

	if (!bytes)
		abort();
	if (r & 2)
		allowed = UINT32_MAX;
	allowed |= 1u | 1u << 6 | 1u << 10; /* when, step near, failures: always */
	for (size_t b = 0; b < n; b++) {
		unsigned op;

		r = runner_random(&random);
		bytes[b] = (uint8_t)r;
		if (b < TREE || (b - TREE) % BYTES_PER_OP != 0)
			continue;
		op = (unsigned)(r >> 8) % LIMITER_TAPE_OPS;
		while (!(allowed >> op & 1))
			op = (op + 1) % LIMITER_TAPE_OPS;
		bytes[b] = (uint8_t)((r & 0x70) | op);
	}
	*out = bytes;
	return n;
}

int main(int argc, char **argv)
{
	return runner_main(argc, argv,
	                   &(struct runner){.run = limiter_tape_run, .make = make_tape});
}
