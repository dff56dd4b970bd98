/*
 * Runs random tapes against a model:
 *
 *     <program> [--seed N] [--tapes N] [--ops N] [--tape FILE]
 *
 * Tape i of seed N is always the same. The tapes run in a child, so that a
 * crash, an assertion or a hang is caught like a difference; the tape that
 * failed is then shortened by leaving out pieces as long as it still fails,
 * and printed. --tape runs a tape from a file of bytes.
 */
#ifndef WQ_TEST_RUNNER_H
#define WQ_TEST_RUNNER_H

#include "tape.h"

/* One thread only: the thread sanitizer has little to see here, and is slow. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RUNNER_TAPES 150
#elif __has_feature(address_sanitizer)
#define RUNNER_TAPES 500
#endif
#endif
#if !defined(RUNNER_TAPES) && defined(__SANITIZE_THREAD__)
#define RUNNER_TAPES 150
#elif !defined(RUNNER_TAPES) && defined(__SANITIZE_ADDRESS__)
#define RUNNER_TAPES 500
#elif !defined(RUNNER_TAPES)
#define RUNNER_TAPES 900
#endif

struct runner {
	int (*run)(const uint8_t *bytes, size_t n, struct tape_diff *diff);
	/* Tape i of a seed, of up to so many operations; to be freed. Returns its length. */
	size_t (*make)(uint64_t seed, long i, size_t nops, uint8_t **out);
};

int runner_main(int argc, char **argv, const struct runner *r);

/* splitmix64 */
uint64_t runner_random(uint64_t *state);

#endif
