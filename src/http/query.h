/* What a request asks for. Everything here comes from strangers. */
#ifndef WQ_HTTP_QUERY_H
#define WQ_HTTP_QUERY_H

#include <stddef.h>

/* The lists of keys, each in an order of its own. */
enum wq__list {
	WQ__LIST_ALL,
	WQ__LIST_QUEUED,
	WQ__LIST_RUNNING,
	WQ__LIST_WAITING,
	WQ__LIST_LEFT,
	WQ__LIST_FAILING,
	WQ__LISTS
};

enum { WQ__NAME_MAX = 255, WQ__MATCH_MAX = 256, WQ__LIMIT_MAX = 1000, WQ__LIMIT_DEFAULT = 100 };

struct wq__query {
	enum wq__list list;
	unsigned limit;
	size_t match_len;
	char match[WQ__MATCH_MAX];
};

/*
 * One parameter, percent-encoded; value may be NULL. Answers NULL, or what is wrong with it.
 * A query begins as {.limit = WQ__LIMIT_DEFAULT}.
 */
const char *wq__query_take(struct wq__query *q, const char *name, const char *value);

/* Percent-encoded bytes. How many, or -1: broken, or more than `room`. */
long wq__unescape(char *to, size_t room, const char *from, size_t n);

#endif
