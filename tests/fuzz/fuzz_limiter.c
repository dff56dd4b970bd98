/*
 * The limiters' tape (tests/model/limiter_tape.h) as a fuzz target. Built with
 * -fsanitize=fuzzer it is a libFuzzer program; with replay.c it replays the corpus.
 *
 *     fuzz_limiter -max_total_time=60 -max_len=512 found/ tests/fuzz/corpus_limiter
 */
#include "limiter_tape.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tape_diff diff;

	if (limiter_tape_run(data, size, &diff) == 0)
		return 0;
	fprintf(stderr, "step %zu: %s\n", diff.step, diff.text);
	tape_print(stderr, data, size);
	abort();
}
