/* Keys are handed out where they stand; only one that is cut by the end of a block is copied. */
#include "cli/input/split.h"

#include <string.h>
#include <wq/queue.h>

static enum split_found judge(const struct split *s, const char *key, size_t len)
{
	if (len > WQ_KEY_MAX + s->extra)
		return SPLIT_LONG;
	return s->delimiter != '\0' && memchr(key, '\0', len) ? SPLIT_BAD : SPLIT_KEY;
}

static void begin(struct split *s)
{
	if (s->fresh)
		s->part.n = 0;
	s->fresh = false;
}

/* More of a key whose end is not in sight. True: it has become too long just now. */
static bool keep(struct split *s, const char *bytes, size_t n)
{
	if (s->skipping)
		return false;
	text_add(&s->part, bytes, n);
	s->skipping = s->part.n > WQ_KEY_MAX + s->extra;
	return s->skipping;
}

enum split_found split_next(struct split *s, const char *bytes, size_t n, size_t *at,
                            const char **key, size_t *len)
{
	begin(s);
	while (*at < n) {
		const char *from = bytes + *at, *end = memchr(from, s->delimiter, n - *at);

		if (!end) {
			*at = n;
			if (!keep(s, from, (size_t)(bytes + n - from)))
				return SPLIT_NOTHING;
			*key = s->part.bytes;
			*len = s->part.n;
			return SPLIT_LONG;
		}
		*at = (size_t)(end - bytes) + 1;
		if (s->skipping) {
			s->skipping = false;
			s->part.n = 0;
			continue;
		}
		*key = from;
		*len = (size_t)(end - from);
		if (s->part.n > 0) {
			text_add(&s->part, from, *len);
			*key = s->part.bytes;
			*len = s->part.n;
			s->fresh = true;
		}
		if (*len > 0)
			return judge(s, *key, *len);
	}
	return SPLIT_NOTHING;
}

enum split_found split_value(const char *record, size_t *len, char after, const char **value,
                             size_t *value_len)
{
	const char *at = memchr(record, after, *len);

	*value = at ? at + 1 : NULL;
	*value_len = at ? (size_t)(record + *len - at) - 1 : 0;
	*len -= at ? *value_len + 1 : 0;
	if (*len == 0)
		return SPLIT_EMPTY;
	if (*len > WQ_KEY_MAX)
		return SPLIT_LONG;
	return *value_len > WQ_VALUE_MAX ? SPLIT_VALUE : SPLIT_KEY;
}

enum split_found split_end(struct split *s, const char **key, size_t *len)
{
	begin(s);
	if (s->skipping || s->part.n == 0)
		return SPLIT_NOTHING;
	*key = s->part.bytes;
	*len = s->part.n;
	s->fresh = true;
	return judge(s, *key, *len);
}
