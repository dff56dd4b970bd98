/* Numbers with units. */
#include "cli/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>
#include <wq/types.h>

#include "cli/base/text.h"

/* Digits, perhaps with a point: what strtod() takes beyond that is no number here. */
static bool number(const char *s, const char **end, double *value)
{
	size_t n = strspn(s, "0123456789.");
	char word[32];
	char *stop;

	if (n == 0 || n >= sizeof word)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	*value = strtod(word, &stop);
	*end = s + n;
	return stop == word + n && stop > word;
}

static bool span(const char *s, size_t n, int64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
	    {"", 1e9},  {"ns", 1},   {"us", 1e3},   {"ms", 1e6},
	    {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9},
	};
	char word[32];
	const char *unit;
	double value;

	if (n >= sizeof word)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	if (!number(word, &unit, &value))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		value *= units[i].ns;
		/* A hundred years: sums of a few of them stay below 2^63. */
		if (value > 100 * 366 * 86400e9)
			return false;
		*ns = (int64_t)(value + 0.5);
		return true;
	}
	return false;
}

bool parse_span(const char *s, int64_t *ns)
{
	return span(s, strlen(s), ns);
}

bool parse_range(const char *s, int64_t *from_ns, int64_t *to_ns)
{
	const char *dots = strstr(s, "..");

	if (!dots) {
		if (!parse_span(s, from_ns))
			return false;
		*to_ns = *from_ns;
		return true;
	}
	return span(s, (size_t)(dots - s), from_ns) && parse_span(dots + 2, to_ns) &&
	       *from_ns <= *to_ns;
}

bool parse_rate(const char *s, double *per_second)
{
	const char *unit;
	double value;

	if (!number(s, &unit, &value) || value <= 0)
		return false;
	if (strcmp(unit, "/m") == 0)
		value /= 60;
	else if (strcmp(unit, "/h") == 0)
		value /= 3600;
	else if (strcmp(unit, "") != 0 && strcmp(unit, "/s") != 0)
		return false;
	/* From one in some years to more than can be started. */
	if (value < 1e-8 || value > 1e9)
		return false;
	*per_second = value;
	return true;
}

bool parse_count(const char *s, uint64_t min, uint64_t max, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;

	uint64_t value = strtoull(s, &end, 10);

	if (*end != '\0' || errno != 0 || value < min || value > max)
		return false;
	*n = value;
	return true;
}

bool parse_priority(const char *s, int32_t *priority)
{
	bool negative = *s == '-';
	uint64_t n;

	if (!parse_count(s + negative, 0, negative ? -(int64_t)WQ_PRIORITY_MIN : WQ_PRIORITY_MAX,
	                 &n))
		return false;
	*priority = negative ? -(int32_t)n : (int32_t)n;
	return true;
}

/* How long the escape sequence is; 0: it is none. */
static size_t escaped(const char *s, char *c)
{
	static const char names[] = "n\nt\tr\r\\\\";
	char digits[3];

	if (s[1] == '0') {
		*c = '\0';
		return 2;
	}
	if (s[1] == 'x' && isxdigit((unsigned char)s[2]) && isxdigit((unsigned char)s[3])) {
		memcpy(digits, s + 2, 2);
		digits[2] = '\0';
		*c = (char)strtoul(digits, NULL, 16);
		return 4;
	}
	for (const char *p = names; *p != '\0'; p += 2) {
		if (s[1] == p[0]) {
			*c = p[1];
			return 2;
		}
	}
	return 0;
}

bool parse_char(const char *s, char *c)
{
	size_t n;

	if (s[0] != '\0' && s[1] == '\0') {
		*c = s[0];
		return true;
	}
	n = s[0] == '\\' ? escaped(s, c) : 0;
	return n > 0 && s[n] == '\0';
}

bool parse_text(const char *s, char *text)
{
	while (*s != '\0') {
		size_t n = 1;

		*text = *s;
		if (*s == '\\')
			n = escaped(s, text);
		if (n == 0 || *text == '\0')
			return false;
		s += n;
		text++;
	}
	*text = '\0';
	return true;
}

bool parse_separator(const char *s, char *c, uint32_t *n)
{
	const char *colon = strrchr(s, ':');
	char word[8];
	uint64_t number;

	*n = 1;
	if (parse_char(s, c))
		return true;
	if (!colon || (size_t)(colon - s) >= sizeof word)
		return false;
	memcpy(word, s, (size_t)(colon - s));
	word[colon - s] = '\0';
	if (!parse_char(word, c) || !parse_count(colon + 1, 1, UINT32_MAX, &number))
		return false;
	*n = (uint32_t)number;
	return true;
}

bool parse_address(const char *s, char **host, uint16_t *port)
{
	const char *colon = strrchr(s, ':');
	size_t len = colon ? (size_t)(colon - s) : 0;
	uint64_t n;

	if (!parse_count(colon ? colon + 1 : s, 0, UINT16_MAX, &n) || (colon && len == 0))
		return false;
	if (len > 1 && s[0] == '[' && colon[-1] == ']') {
		s++;
		len -= 2;
	}
	if (port)
		*port = (uint16_t)n;
	if (!host)
		return true;
	*host = NULL;
	if (len == 0)
		return true;
	if (len == strlen("localhost") && strncmp(s, "localhost", len) == 0)
		s = "127.0.0.1"; /* of the same length */
	*host = grow(NULL, len + 1);
	memcpy(*host, s, len);
	(*host)[len] = '\0';
	return true;
}
