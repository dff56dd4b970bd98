/* Text from strangers: is it UTF-8? All of it is here, so that libwq-http can use it too. */
#ifndef WQ_BASE_UTF8_H
#define WQ_BASE_UTF8_H

#include <stddef.h>

/*
 * How many bytes of a well-formed character stand at p, of n; 0: none. Shortest forms only, no
 * surrogates.
 */
static inline size_t wq__utf8(const unsigned char *p, size_t n)
{
	size_t more = p[0] < 0x80 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;

	if (more >= n || (p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i <= more; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return more + 1;
}

/* How many of the first n bytes of a longer text to show: no character is cut in two. */
static inline size_t wq__utf8_cut(const unsigned char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = p[n - back];
		size_t whole = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		if ((c & 0xc0) != 0x80)
			return back < whole ? n - back : n;
	}
	return n;
}

#endif
