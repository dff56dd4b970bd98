/*
 * The bytes behind the model's key numbers: a few awkward keys (empty, NULs,
 * one a prefix of another, around the sizes where the queue stores keys in
 * another way, as long as is allowed) and thousands of plain ones, so that
 * the table grows and shrinks.
 */
#ifndef WQ_TEST_KEYS_H
#define WQ_TEST_KEYS_H

#include <stddef.h>

/* Numbers below this are the awkward keys. */
enum { KEYS_SMALL = 20 };

void keys_init(void);
const void *keys_bytes(int key, size_t *len);

/* The number of these bytes, or -1. */
int keys_find(const void *bytes, size_t len);

#endif
