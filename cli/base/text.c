/* Text that grows by doubling. */
#include "cli/base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

#include "base/json_escape.h"
#include "base/utf8.h"
#include "cli/base/say.h"

void no_memory(void)
{
	say_to = NULL;
	say("out of memory");
	exit(EXIT_TROUBLE);
}

void *grow(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		no_memory();
	return p;
}

static void reserve(struct text *t, size_t n)
{
	if (t->room - t->n >= n)
		return;
	t->room = (t->room + n) * 2;
	t->bytes = grow(t->bytes, t->room);
}

void text_add(struct text *t, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	reserve(t, n);
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

void text_str(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

void text_print(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	reserve(t, (size_t)n + 1);
	va_start(args, format);
	vsnprintf(t->bytes + t->n, (size_t)n + 1, format, args);
	va_end(args);
	t->n += (size_t)n;
}

void text_release(struct text *t)
{
	free(t->bytes);
	*t = (struct text){0};
}

static int put(void *to, const char *bytes, size_t n)
{
	text_add(to, bytes, n);
	return 0;
}

void text_json(struct text *t, const void *bytes, size_t n)
{
	wq__json_escape(bytes, n, put, t);
}

/* How many bytes of it a terminal shows as a character; 0: none of that. */
static size_t visible(const unsigned char *p, size_t n)
{
	size_t len = wq__utf8(p, n);

	/* U+0080 to U+009F are control characters, too. */
	return *p < 0x20 || *p == 0x7f || (len > 0 && p[0] == 0xc2 && p[1] < 0xa0) ? 0 : len;
}

void text_visible(struct text *t, const void *bytes, size_t n, size_t max)
{
	const unsigned char *p = bytes;
	size_t end = t->n + max;

	for (size_t len; n > 0; p += len, n -= len) {
		len = visible(p, n);
		if (t->n + (len > 0 ? len : 4) > end) {
			text_str(t, "...");
			return;
		}
		if (len == 0) {
			text_print(t, "\\x%02x", *p);
			len = 1;
		} else {
			text_add(t, p, len);
		}
	}
}

/* $'...', with what cannot be seen in octal: it is of three digits, whatever follows. */
static void quote_invisible(struct text *t, const char *word)
{
	size_t n = strlen(word);

	text_str(t, "$'");
	for (size_t len; n > 0; word += len, n -= len) {
		len = visible((const unsigned char *)word, n);
		if (len == 0) {
			text_print(t, "\\%03o", (unsigned char)*word);
			len = 1;
		} else {
			if (*word == '\'' || *word == '\\')
				text_str(t, "\\");
			text_add(t, word, len);
		}
	}
	text_str(t, "'");
}

static bool is_visible(const char *word)
{
	size_t n = strlen(word), len = 1;

	for (; n > 0 && len > 0; word += len, n -= len)
		len = visible((const unsigned char *)word, n);
	return len > 0;
}

void text_quoted(struct text *t, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=:,./@%";
	/* a=b would be an assignment; --a=b is none. */
	bool assigns = *word != '-' && strchr(word, '=');

	if (*word != '\0' && !assigns && strspn(word, plain) == strlen(word)) {
		text_str(t, word);
		return;
	}
	if (!is_visible(word)) {
		quote_invisible(t, word);
		return;
	}
	text_str(t, "'");
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			text_str(t, "'\\''");
		else
			text_add(t, word, 1);
	}
	text_str(t, "'");
}

void text_span(struct text *t, int64_t ns)
{
	int64_t s = ns / WQ_SECOND;

	if (ns < WQ_SECOND)
		text_print(t, "%" PRId64 "ms", ns / WQ_MILLISECOND);
	else if (s < 10)
		text_print(t, "%.1fs", (double)ns / 1e9);
	else if (s < 60)
		text_print(t, "%" PRId64 "s", s);
	else if (s < 3600)
		text_print(t, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		text_print(t, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	else
		text_print(t, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}
