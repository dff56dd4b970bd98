/* The part of a key before its n-th separator: of groups, and of a bucket for each part. */
#ifndef WQ_BASE_PART_H
#define WQ_BASE_PART_H

#include <stdint.h>
#include <string.h>

/* Its length; a key with fewer separators is a part as a whole. */
static inline size_t wq__part_len(const void *key, size_t len, char separator, uint32_t n)
{
	const char *at = key;
	size_t left = len;

	for (uint32_t i = 1; left > 0; i++) {
		const char *found = memchr(at, separator, left);

		if (!found)
			break;
		if (i == n)
			return (size_t)(found - (const char *)key);
		left -= (size_t)(found + 1 - at);
		at = found + 1;
	}
	return len;
}

#endif
