/* Percent-encoding, and the parameters of a listing. */
#include "http/query.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

long wq__unescape(char *to, size_t room, const char *from, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		char c = from[i];

		if (used == room)
			return -1;
		if (c == '%') {
			int high = i + 1 < n ? hex(from[i + 1]) : -1;
			int low = i + 2 < n ? hex(from[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -1;
			c = (char)(high * 16 + low);
			i += 2;
		}
		to[used++] = c;
	}
	return (long)used;
}

static const char *take_state(struct wq__query *q, const char *value)
{
	static const char *const names[WQ__LISTS] = {
	    [WQ__LIST_ALL] = "",
	    [WQ__LIST_QUEUED] = "queued",
	    [WQ__LIST_RUNNING] = "running",
	    [WQ__LIST_WAITING] = "waiting",
	    [WQ__LIST_LEFT] = "left",
	    [WQ__LIST_FAILING] = "failing",
	};

	for (int i = 0; i < WQ__LISTS; i++) {
		if (strcmp(value, names[i]) == 0) {
			q->list = (enum wq__list)i;
			return NULL;
		}
	}
	return "state is queued, running, waiting, left or failing";
}

static const char *take_limit(struct wq__query *q, const char *value)
{
	unsigned limit = 0;

	for (const char *p = value; *p && limit <= WQ__LIMIT_MAX; p++)
		limit =
		    *p >= '0' && *p <= '9' ? limit * 10 + (unsigned)(*p - '0') : WQ__LIMIT_MAX + 1;
	if (limit == 0 || limit > WQ__LIMIT_MAX)
		return "limit is a number from 1 to 1000";
	q->limit = limit;
	return NULL;
}

static const char *take_match(struct wq__query *q, const char *value)
{
	long n = wq__unescape(q->match, sizeof q->match, value, strlen(value));

	if (n < 0)
		return "match is percent-encoded, and at most 256 bytes long";
	q->match_len = (size_t)n;
	return NULL;
}

const char *wq__query_take(struct wq__query *q, const char *name, const char *value)
{
	if (!value)
		value = "";
	if (strcmp(name, "state") == 0)
		return take_state(q, value);
	if (strcmp(name, "limit") == 0)
		return take_limit(q, value);
	if (strcmp(name, "match") == 0)
		return take_match(q, value);
	return "the parameters are state, limit and match";
}
