/*
 * The same for limiters: a tape is read as a tree of limiters and as calls on
 * it and on its model (limiter_model.h). Each answer is compared; and where the
 * whole is one bucket, all pairs of its grants: no window holds more than
 * burst + rate * time.
 *
 *     the tree, depth first: a byte for the kind, then its numbers and parts
 *     then for each step: bits 0-3 the operation (the list OPS in
 *     limiter_tape.c), bits 4-6 the key, then its arguments; bytes that are
 *     missing read as 0
 */
#ifndef WQ_TEST_LIMITER_TAPE_H
#define WQ_TEST_LIMITER_TAPE_H

#include "tape.h"

enum { LIMITER_TAPE_OPS = 16 };

/* As tape_run(). */
int limiter_tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff);

#endif
