/* Strings in JSON. All of it is here, so that libwq-http and the program can use it too. */
#ifndef WQ_BASE_JSON_ESCAPE_H
#define WQ_BASE_JSON_ESCAPE_H

#include <stddef.h>
#include <string.h>

#include "base/utf8.h"

/* Takes a piece of text. What it answers is not looked at: whoever writes remembers a failure. */
typedef int (*wq__json_put)(void *to, const char *bytes, size_t n);

/*
 * The bytes as a string, with its quotes. What is no UTF-8 becomes U+FFFD, a byte at a time.
 * Quotes and backslashes become \" and \\, control characters \u000a. A piece has no more than 6
 * bytes.
 */
static inline void wq__json_escape(const void *bytes, size_t n, wq__json_put put, void *to)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	put(to, "\"", 1);
	for (size_t len; n > 0; p += len, n -= len) {
		const char c = (char)*p;

		len = wq__utf8(p, n);
		if (len == 0) {
			put(to, "\\ufffd", 6);
			len = 1;
		} else if (c == '"' || c == '\\') {
			put(to, (const char[]){'\\', c}, 2);
		} else if (*p < 0x20 || c == 0x7f) {
			put(to,
			    (const char[]){'\\', 'u', '0', '0', digits[*p >> 4], digits[*p & 15]},
			    6);
		} else {
			put(to, (const char *)p, len);
		}
	}
	put(to, "\"", 1);
}

#endif
