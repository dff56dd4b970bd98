/*
 * The same for the timing wheel: a tape is read as calls on a wheel and on a
 * sorted array of timers. Each answer and each firing is compared: which timer,
 * its id, its due time, the periods it skipped; callbacks add, cancel,
 * reschedule and stop as well.
 *
 *     three bytes of options (tick, size, start), then for each step:
 *     bits 0-4 the operation (the list OPS in wheel_tape.c), bits 5-7 not
 *     used, then its arguments; bytes that are missing read as 0
 */
#ifndef WQ_TEST_WHEEL_TAPE_H
#define WQ_TEST_WHEEL_TAPE_H

#include "tape.h"

enum { WHEEL_TAPE_OPS = 32 };

/* As tape_run(). */
int wheel_tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff);

#endif
