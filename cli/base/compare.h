/* The order of keys in a search tree: the shorter one first. */
#ifndef CLI_BASE_COMPARE_H
#define CLI_BASE_COMPARE_H

#include <stddef.h>
#include <string.h>

static inline int compare_keys(const void *a, size_t alen, const void *b, size_t blen)
{
	if (alen != blen)
		return alen < blen ? -1 : 1;
	return memcmp(a, b, alen);
}

#endif
