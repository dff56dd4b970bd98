/* What a leftover file says of a key. */
#include "cli/files/record.h"

#include <ctype.h>
#include <inttypes.h>
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

void record_write(struct text *t, const struct record *rec, char delimiter)
{
	size_t from = t->n;
	/* Late is allowed, early is not. */
	int64_t ms = rec->due_ns / WQ_MILLISECOND + (rec->due_ns % WQ_MILLISECOND > 0);

	if (ms > 0)
		text_print(t, "@%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
	else
		text_str(t, "@0");
	text_print(t, "\t%" PRIu32 "\t", rec->failures);
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

/* The next character, if it is this one or, for NULL, a digit; -1: it is not. */
static int next(struct reader *in, const char *wanted)
{
	unsigned char c;

	if (in->at == in->end)
		return -1;
	c = (unsigned char)(*in->at == substitute ? in->delimiter : *in->at);
	if (wanted ? c != (unsigned char)*wanted : !isdigit(c))
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

bool record_read(struct record *rec, const char *bytes, size_t n, char delimiter)
{
	struct reader in = {bytes, bytes + n, delimiter};
	int64_t failures;

	*rec = (struct record){.key = bytes, .len = n};
	if (next(&in, "@") < 0)
		return true;
	if (!due(&in, &rec->due_ns) || next(&in, "\t") < 0 ||
	    !number(&in, WQ_FAILURES_MAX, &failures) || next(&in, "\t") < 0 || in.at == in.end)
		return false;
	rec->failures = (uint32_t)failures;
	rec->key = in.at;
	rec->len = (size_t)(in.end - in.at);
	return true;
}
