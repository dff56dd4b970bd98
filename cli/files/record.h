/*
 * The file of --leftover: a list of keys, or, where some have failed or wait for their time, a head
 * and a record for each:
 *
 *   #wq-leftover-1
 *   @DUE<tab>FAILURES<tab>KEY
 *   @DUE<tab>FAILURES:PRIORITY<tab>KEY
 *   @DUE<tab>FAILURES:PRIORITY:VALUE<tab>KEY
 *
 * DUE is in seconds since 1970 with three decimals, as `date -d @DUE` takes it, 0: now. A line
 * without the @ is one of the input, due now, which has not failed: keys can be added by hand. A
 * key with priority 0 and without a value has the first form, which older versions read. In VALUE,
 * control characters, % and _ are written as %0A. The
 * delimiter is the run's; where it is a character of the head or of what stands before KEY, '_'
 * stands for it there.
 */
#ifndef CLI_FILES_RECORD_H
#define CLI_FILES_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq/types.h>

#include "cli/base/text.h"

/* So many bytes may stand before the key, beside the value, and with it. */
enum { RECORD_HEAD_MAX = 64, RECORD_MAX = RECORD_HEAD_MAX + 3 * WQ_VALUE_MAX };

struct record {
	const char *key;
	size_t len;
	int64_t due_ns; /* of CLOCK_REALTIME; 0: now */
	uint32_t failures;
	int32_t priority;
	const char *value; /* NULL: none */
	size_t value_len;
	bool plain; /* it was a line without the @ */
};

/* CLOCK_REALTIME. */
int64_t record_now(void);

bool record_is_head(const char *bytes, size_t n, char delimiter);
/*
 * The key points into the bytes, the value into the room. False: it begins with @ and is no such
 * record.
 */
bool record_read(struct record *rec, const char *bytes, size_t n, char delimiter,
                 struct text *room);

void record_write_head(struct text *t, char delimiter);
void record_write(struct text *t, const struct record *rec, char delimiter);

#endif
