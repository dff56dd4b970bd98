/* Cuts a stream of bytes into keys. */
#ifndef CLI_INPUT_SPLIT_H
#define CLI_INPUT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/base/text.h"

struct split {
	char delimiter;
	unsigned extra;   /* a record may be longer than WQ_KEY_MAX by so much */
	bool skipping;    /* the rest of a key that was too long */
	bool fresh;       /* part is to be emptied: it was handed out */
	struct text part; /* the beginning of a key, from bytes that came before */
};

enum split_found {
	SPLIT_NOTHING, /* the bytes are used up */
	SPLIT_KEY,     /* a key */
	SPLIT_LONG,    /* the beginning of one that is too long; the rest is skipped */
	SPLIT_BAD,     /* one with a NUL in it, which no command can be given */
	SPLIT_VALUE,   /* one whose value is too long */
	SPLIT_EMPTY    /* a value without a key */
};

/*
 * The next key of bytes[*at] to bytes[n - 1]; *at moves on. The key is valid until the next call,
 * and as long as bytes are. Empty keys are passed over.
 */
enum split_found split_next(struct split *s, const char *bytes, size_t n, size_t *at,
                            const char **key, size_t *len);

/*
 * --value-after: a record is KEY, this character, VALUE, or KEY alone. *len is that of the record,
 * and then of the key. *value is NULL if there is none.
 */
enum split_found split_value(const char *record, size_t *len, char after, const char **value,
                             size_t *value_len);

/* At the end of the stream: the last key, if no delimiter followed it. */
enum split_found split_end(struct split *s, const char **key, size_t *len);

#endif
