/* Text that grows by doubling. */
#include "http/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wq/status.h>

#include "base/json_escape.h"

int wq__buffer_write(void *ctx, const char *bytes, size_t n)
{
	struct wq__buffer *t = ctx;

	if (t->failed)
		return WQ_ENOMEM;
	if (t->room - t->n < n) {
		size_t room = (t->room + n) * 2;
		char *more = realloc(t->bytes, room);

		if (!more) {
			t->failed = true;
			return WQ_ENOMEM;
		}
		t->bytes = more;
		t->room = room;
	}
	if (n > 0)
		memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
	return WQ_OK;
}

void wq__buffer_add(struct wq__buffer *t, const char *s)
{
	wq__buffer_write(t, s, strlen(s));
}

void wq__buffer_print(struct wq__buffer *t, const char *format, ...)
{
	char line[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	wq__buffer_write(t, line, (size_t)n);
}

void wq__buffer_string(struct wq__buffer *t, const void *bytes, size_t n)
{
	wq__json_escape(bytes, n, wq__buffer_write, t);
}

void wq__buffer_release(struct wq__buffer *t)
{
	free(t->bytes);
	*t = (struct wq__buffer){0};
}
