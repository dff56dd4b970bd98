/* Groups and merges of values for those who do not write their own. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <string.h>
#include <wq/group.h>
#include <wq/value.h>

#include "base/part.h"

int wq_group_before(void *ctx, const void *key, size_t len, wq_key *group)
{
	const wq_separator *s = ctx;

	if (!s || s->n == 0 || !group || (!key && len > 0))
		return WQ_EINVAL;
	*group = (wq_key){.key = key, .len = wq__part_len(key, len, s->byte, s->n)};
	return WQ_OK;
}

static int64_t copy(void *out, const void *value, size_t len)
{
	if (len > 0)
		memcpy(out, value, len);
	return (int64_t)len;
}

int64_t wq_merge_last(void *ctx, const void *old, size_t old_len, const void *add, size_t add_len,
                      void *out)
{
	(void)ctx, (void)old, (void)old_len;
	return copy(out, add, add_len);
}

int64_t wq_merge_first(void *ctx, const void *old, size_t old_len, const void *add, size_t add_len,
                       void *out)
{
	(void)ctx, (void)add, (void)add_len;
	return copy(out, old, old_len);
}

int64_t wq_merge_append(void *ctx, const void *old, size_t old_len, const void *add, size_t add_len,
                        void *out)
{
	const char *separator = ctx ? ctx : "\n";
	size_t between = strnlen(separator, WQ_VALUE_MAX + 1);
	char *to = out;

	if (between > WQ_VALUE_MAX || old_len + between + add_len > WQ_VALUE_MAX)
		return WQ_ETOOLONG;
	to += copy(to, old, old_len);
	to += copy(to, separator, between);
	to += copy(to, add, add_len);
	return to - (char *)out;
}

int64_t wq_merge_or(void *ctx, const void *old, size_t old_len, const void *add, size_t add_len,
                    void *out)
{
	bool old_longer = old_len > add_len;
	size_t len = old_longer ? old_len : add_len, shorter = old_longer ? add_len : old_len;
	const unsigned char *a = old, *b = add;
	unsigned char *to = out;

	(void)ctx;
	for (size_t i = 0; i < shorter; i++)
		to[i] = a[i] | b[i];
	copy(to + shorter, (old_longer ? a : b) + shorter, len - shorter);
	return (int64_t)len;
}
