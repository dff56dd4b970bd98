/*
 * A tape is a string of bytes that is read as calls on two queues and on
 * their two models; every answer, every item and every so often the whole
 * state are compared. Any bytes are a tape. The random test and the fuzzer
 * both feed it.
 *
 *     options of queue 0, options of queue 1, then for each step:
 *     bits 0-4 the operation (the list OPS in tape.c), bits 5-7 the queue
 *     (7: queue 1), then its arguments; bytes that are missing read as 0
 *
 * Bits 2-4 of the options, if they are 4: priorities, groups or values follow
 * (tape_rich.c), and each add reads a byte more, for what it brings.
 */
#ifndef WQ_TEST_TAPE_H
#define WQ_TEST_TAPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TAPE_OPS = 32, TAPE_QUEUE_SHIFT = 5, TAPE_QUEUE_1 = 7 };

/* Where queue and model first disagree. */
struct tape_diff {
	size_t step;
	char text[256];
};

/*
 * Runs a tape. 0: they agree throughout. -1: they do not, *diff says where;
 * the queues are left as they are, for the process is to end.
 */
int tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff);

/* The name of an operation; and the tape in hex. */
const char *tape_op_name(unsigned op);
void tape_print(FILE *out, const uint8_t *bytes, size_t n);

#endif
