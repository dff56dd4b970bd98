/* Reading and writing of frames. */
#include "cli/socket/frame.h"

void frame_put(struct text *t, char first, const void *bytes, size_t n)
{
	text_print(t, "%zu:", n + (first ? 1 : 0));
	if (first)
		text_add(t, &first, 1);
	text_add(t, bytes, n);
	text_str(t, ",");
}

ssize_t frame_find(const char *bytes, size_t n, const char **payload, size_t *len)
{
	size_t i = 0, size = 0;

	for (; i < n && bytes[i] >= '0' && bytes[i] <= '9'; i++) {
		/* Zeros before a number could go on for ever. */
		if (i > 0 && size == 0)
			return -1;
		size = size * 10 + (size_t)(bytes[i] - '0');
		if (size > FRAME_MAX)
			return -1;
	}
	if (i == n)
		return 0;
	if (i == 0 || bytes[i] != ':')
		return -1;
	i++;
	if (n - i < size + 1)
		return 0;
	if (bytes[i + size] != ',')
		return -1;
	*payload = bytes + i;
	*len = size;
	return (ssize_t)(i + size + 1);
}
