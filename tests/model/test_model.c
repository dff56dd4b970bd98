/* Random tapes: the queue against the model (tape.h, runner.h). */
#include "runner.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BYTES_PER_OP = 3, OTHER_LIMITER = 0x80, LATEST_TIMES = 3, BOUND = 0x1c, RICH = 0x10 };

/* Of a tape about limits: what fails, waits and comes again, and little else. */
static const uint8_t retries[] = {5, 5, 5, 9, 23, 23, 27, 30, 30, 30, 31, 31, 31, 31};

/* Of one about latest times: what begins, moves and ends a wait. */
static const uint8_t waits[] = {0, 5, 9, 13, 23, 25, 25, 25, 25, 25, 27, 28, 31};

/*
 * Each tape uses its own subset of the operations: tapes that do a little of
 * everything never fill the table, never stay shut, never hold much. Every fourth
 * is about limits, every eighth about latest times. In half of them the first queue has
 * priorities, groups or values.
 */
static size_t make_tape(uint64_t seed, long i, size_t nops, uint8_t **out)
{
	uint64_t random = seed * 0x2545f4914f6cdd1du + (uint64_t)i;
	uint64_t r = runner_random(&random);
	uint32_t allowed = (uint32_t)runner_random(&random);
	bool two_queues = r & 1, limits = (r & 12) == 0, latest = (r & 28) == 4, rich = r & 32;
	size_t n = 2 + BYTES_PER_OP * (1 + (size_t)(r >> 8) % nops);
	uint8_t *bytes = malloc(n);

	if (!bytes)
		abort();
	if (r & 2)
		allowed = UINT32_MAX;
	allowed |= 1u | 1u << 5 | 1u << 9; /* add, get and done: always */
	for (size_t b = 0; b < n; b++) {
		r = runner_random(&random);
		bytes[b] = (uint8_t)r;
		/* An argument may be read as an operation: then the mask does no harm either. */
		if (b < 2 || b % BYTES_PER_OP != 2)
			continue;
		unsigned op = (unsigned)(r >> 8) % TAPE_OPS;

		while (!(allowed >> op & 1))
			op = (op + 1) % TAPE_OPS;
		if (limits && r >> 32 & 3)
			op = retries[(r >> 34) % sizeof retries];
		if (latest && r >> 32 & 7)
			op = waits[(r >> 35) % sizeof waits];
		bytes[b] = (uint8_t)(op | (two_queues ? (r >> 16 & 7) << TAPE_QUEUE_SHIFT : 0));
	}
	if (limits)
		bytes[0] |= OTHER_LIMITER;
	if (latest)
		bytes[0] |= LATEST_TIMES;
	if (rich)
		bytes[0] = (uint8_t)((bytes[0] & ~BOUND) | RICH);
	*out = bytes;
	return n;
}

int main(int argc, char **argv)
{
	return runner_main(argc, argv, &(struct runner){.run = tape_run, .make = make_tape});
}
