/* Random tapes: the timing wheel against an array (wheel_tape.h, runner.h). */
#include "runner.h"
#include "wheel_tape.h"

#include <stdlib.h>

enum { OPTIONS = 3, BYTES_PER_OP = 5 };

/*
 * Each tape uses its own subset of the operations, and its own magnitudes:
 * times that differ by everything from nanoseconds to years rarely meet.
 */
static size_t make_tape(uint64_t seed, long i, size_t nops, uint8_t **out)
{
	uint64_t random = seed * 0x2545f4914f6cdd1du + (uint64_t)i;
	uint64_t r = runner_random(&random);
	uint32_t allowed = (uint32_t)runner_random(&random);
	unsigned low = (unsigned)(r >> 32) % 56, wide = 1 + (unsigned)(r >> 40) % (r & 4 ? 8 : 56);
	size_t n = OPTIONS + BYTES_PER_OP * (1 + (size_t)(r >> 8) % nops);
	uint8_t *bytes = malloc(n);

	if (!bytes)
		abort();
	if (r & 2)
		allowed = UINT32_MAX;
	allowed |= 1u | 1u << 7 | 1u << 11; /* add, jump, burst: always */
	for (size_t b = 0; b < n; b++) {
		r = runner_random(&random);
		bytes[b] = (uint8_t)r;
		if (b < OPTIONS)
			continue;
		/* An argument may be read as an operation: then this does no harm either. */
		if ((b - OPTIONS) % BYTES_PER_OP != 0) {
			if ((r >> 8) % 2)
				bytes[b] = (uint8_t)(low + (unsigned)(r & 0xff) % wide);
			continue;
		}
		unsigned op = (unsigned)(r >> 8) % WHEEL_TAPE_OPS;

		while (!(allowed >> op & 1))
			op = (op + 1) % WHEEL_TAPE_OPS;
		bytes[b] = (uint8_t)op;
	}
	*out = bytes;
	return n;
}

int main(int argc, char **argv)
{
	return runner_main(argc, argv, &(struct runner){.run = wheel_tape_run, .make = make_tape});
}
