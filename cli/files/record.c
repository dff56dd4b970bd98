/* What a leftover file says of a key. */
#include "cli/files/record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wq/clock.h>
#include <wq/limiter.h>

#define HEAD "#wq-leftover-1"

static const char substitute = '_';

int64_t record_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

/* ---- writing ------------------------------------------------------------- */

/* What was written from there on has no delimiter in it. */
static void clear_of(struct text *t, size_t from, char delimiter)
{
	for (; from < t->n; from++)
		if (t->bytes[from] == delimiter)
			t->bytes[from] = substitute;
}

void record_write_head(struct text *t, char delimiter)
{
	size_t from = t->n;

	text_str(t, HEAD);
	clear_of(t, from, delimiter);
	text_add(t, &delimiter, 1);
}

/* As it is, but for what would end the field or hide in it. */
static void write_value(struct text *t, const char *value, size_t n)
{
	for (; n > 0; value++, n--) {
		unsigned char c = (unsigned char)*value;

		if (c < 0x20 || c == 0x7f || c == '%' || c == (unsigned char)substitute)
			text_print(t, "%%%02X", c);
		else
			text_add(t, value, 1);
	}
}

void record_write(struct text *t, const struct record *rec, char delimiter)
{
	size_t from = t->n;
	/* Late is allowed, early is not. */
	int64_t ms = rec->due_ns / WQ_MILLISECOND + (rec->due_ns % WQ_MILLISECOND > 0);

	if (ms > 0)
		text_print(t, "@%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
	else
		text_str(t, "@0");
	text_print(t, "\t%" PRIu32, rec->failures);
	if (rec->priority != 0 || rec->value)
		text_print(t, ":%" PRId32, rec->priority);
	if (rec->value) {
		text_str(t, ":");
		write_value(t, rec->value, rec->value_len);
	}
	text_str(t, "\t");
	clear_of(t, from, delimiter);
	text_add(t, rec->key, rec->len);
	text_add(t, &delimiter, 1);
}

/* ---- reading ------------------------------------------------------------- */

bool record_is_head(const char *bytes, size_t n, char delimiter)
{
	struct text head = {0};
	bool is;

	record_write_head(&head, delimiter);
	is = n == head.n - 1 && memcmp(bytes, head.bytes, n) == 0;
	text_release(&head);
	return is;
}

struct reader {
	const char *at, *end;
	char delimiter;
};

/* -1: there is none. */
static int peek(const struct reader *in)
{
	if (in->at == in->end)
		return -1;
	return (unsigned char)(*in->at == substitute ? in->delimiter : *in->at);
}

/* The next character, if it is this one or, for NULL, a digit; -1: it is not. */
static int next(struct reader *in, const char *wanted)
{
	int c = peek(in);

	if (c < 0 || (wanted ? c != (unsigned char)*wanted : !isdigit(c)))
		return -1;
	in->at++;
	return c;
}

/* At least one digit; a number that is too large is the largest. */
static bool number(struct reader *in, int64_t max, int64_t *n)
{
	int c = next(in, NULL);
	bool any = c >= 0;

	for (*n = 0; c >= 0; c = next(in, NULL))
		*n = *n > (max - (c - '0')) / 10 ? max : *n * 10 + (c - '0');
	return any;
}

/* Decimals beyond the ninth do not matter. */
static bool due(struct reader *in, int64_t *due_ns)
{
	int64_t seconds, ns = 0;

	if (!number(in, WQ_NEVER / WQ_SECOND - 1, &seconds))
		return false;
	if (next(in, ".") >= 0) {
		int64_t unit = WQ_SECOND / 10;
		int c = next(in, NULL);

		if (c < 0)
			return false;
		for (; c >= 0; c = next(in, NULL), unit /= 10)
			ns += (c - '0') * unit;
	}
	*due_ns = seconds * WQ_SECOND + ns;
	return true;
}

static bool priority(struct reader *in, int32_t *p)
{
	bool negative = next(in, "-") >= 0;
	int64_t n;

	if (!number(in, INT32_MAX, &n) || n > (negative ? -WQ_PRIORITY_MIN : WQ_PRIORITY_MAX))
		return false;
	*p = (int32_t)(negative ? -n : n);
	return true;
}

/* What follows a %, which is no NUL; -1: it is not that. */
static int escaped(struct reader *in)
{
	char digits[3] = "";
	int c;

	for (int i = 0; i < 2; i++, in->at++) {
		c = peek(in);
		if (c < 0 || !isxdigit(c))
			return -1;
		digits[i] = (char)c;
	}
	c = (int)strtol(digits, NULL, 16);
	return c > 0 ? c : -1;
}

/* Up to the tab, or to the end, which is an error for the caller. */
static bool value(struct reader *in, struct text *room)
{
	int c;

	room->n = 0;
	while ((c = peek(in)) >= 0 && c != '\t') {
		in->at++;
		if (c == '%')
			c = escaped(in);
		if (c < 0 || room->n == WQ_VALUE_MAX)
			return false;
		text_add(room, &(char){(char)c}, 1);
	}
	return true;
}

/* :PRIORITY:VALUE, both or the first or none. */
static bool more(struct reader *in, struct record *rec, struct text *room)
{
	if (next(in, ":") < 0)
		return true;
	if (!priority(in, &rec->priority))
		return false;
	if (next(in, ":") < 0)
		return true;
	if (!value(in, room))
		return false;
	rec->value = room->n > 0 ? room->bytes : "";
	rec->value_len = room->n;
	return true;
}

bool record_read(struct record *rec, const char *bytes, size_t n, char delimiter, struct text *room)
{
	struct reader in = {bytes, bytes + n, delimiter};
	int64_t failures;

	*rec = (struct record){.key = bytes, .len = n};
	if (next(&in, "@") < 0) {
		rec->plain = true;
		return true;
	}
	if (!due(&in, &rec->due_ns) || next(&in, "\t") < 0 ||
	    !number(&in, WQ_FAILURES_MAX, &failures) || !more(&in, rec, room) ||
	    next(&in, "\t") < 0 || in.at == in.end)
		return false;
	rec->failures = (uint32_t)failures;
	rec->key = in.at;
	rec->len = (size_t)(in.end - in.at);
	return true;
}
