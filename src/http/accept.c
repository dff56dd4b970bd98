/*
 * Accept: media ranges with parameters and a weight, such as
 *
 *     application/openmetrics-text; version="1.0.0"; q=0.5, text/plain;q=0.3
 *
 * For each of the two types that there are, the nearest range counts. A range that asks for another
 * version or charset is of another type; other parameters mean nothing here.
 */
#include "http/accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { WHOLE = 1000, WORD_MAX = 63 };

/* A token or what stands in quotes. One longer than any that we know is cut off: no matter. */
struct word {
	char bytes[WORD_MAX + 1];
	size_t n;
};

struct range {
	struct word type, subtype, version, charset;
	int weight;
};

/* ---- reading ---------------------------------------------------------------- */

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static void word_push(struct word *w, char c)
{
	if (w->n < WORD_MAX)
		w->bytes[w->n++] = c;
	w->bytes[w->n] = '\0';
}

/* Where it ends; NULL: there is none. */
static const char *read_token(const char *p, struct word *w)
{
	*w = (struct word){.n = 0};
	while (*p && !strchr(" \t,;=/\"", *p))
		word_push(w, *p++);
	return w->n > 0 ? p : NULL;
}

static const char *read_value(const char *p, struct word *w)
{
	if (*p != '"')
		return read_token(p, w);
	*w = (struct word){.n = 0};
	for (p++; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		word_push(w, *p);
	}
	return *p ? p + 1 : NULL;
}

/* 0 to 1, with up to three digits, by hand: strtod() would follow the locale. -1: it is none. */
static int read_weight(const char *p)
{
	int weight = *p == '1' ? WHOLE : 0;

	if (*p != '0' && *p != '1')
		return -1;
	if (*++p == '.')
		p++;
	else if (*p)
		return -1;
	for (int unit = WHOLE / 10; *p >= '0' && *p <= '9' && unit > 0; unit /= 10)
		weight += (*p++ - '0') * unit;
	return *p == '\0' && weight <= WHOLE ? weight : -1;
}

/* What follows the q is no part of the type. */
static const char *read_parameters(const char *p, struct range *r)
{
	bool weighed = false;

	for (p = skip_blanks(p); *p == ';'; p = skip_blanks(p)) {
		struct word name, value;

		p = skip_blanks(p + 1);
		/* Nothing between two semicolons is nothing. */
		if (*p == ';' || *p == ',' || *p == '\0')
			continue;
		p = read_token(p, &name);
		if (!p || *p != '=')
			return NULL;
		p = read_value(p + 1, &value);
		if (!p)
			return NULL;
		if (weighed)
			continue;
		weighed = strcasecmp(name.bytes, "q") == 0;
		if (weighed)
			r->weight = read_weight(value.bytes);
		else if (strcasecmp(name.bytes, "version") == 0)
			r->version = value;
		else if (strcasecmp(name.bytes, "charset") == 0)
			r->charset = value;
	}
	return r->weight >= 0 ? p : NULL;
}

/* Where it ends, at a comma or at the end; NULL: it is malformed. */
static const char *read_range(const char *p, struct range *r)
{
	*r = (struct range){.weight = WHOLE};
	p = read_token(p, &r->type);
	if (!p || *p != '/')
		return NULL;
	p = read_token(p + 1, &r->subtype);
	if (p)
		p = read_parameters(p, r);
	return p && (*p == ',' || *p == '\0') ? p : NULL;
}

/* The comma behind a range, or the end. One in quotes is part of the range. */
static const char *skip_range(const char *p)
{
	for (bool quoted = false; *p && (quoted || *p != ','); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (quoted && *p == '\\' && p[1])
			p++;
	}
	return p;
}

/* ---- weighing --------------------------------------------------------------- */

static enum wq__nearness nearness(const struct range *r, const char *type, const char *subtype,
                                  const char *version)
{
	if (strcmp(r->type.bytes, "*") == 0)
		return strcmp(r->subtype.bytes, "*") == 0 ? WQ__ANY_TYPE : WQ__NO_RANGE;
	if (strcasecmp(r->type.bytes, type) != 0)
		return WQ__NO_RANGE;
	if (strcmp(r->subtype.bytes, "*") == 0)
		return WQ__ANY_SUBTYPE;
	if (strcasecmp(r->subtype.bytes, subtype) != 0 ||
	    (r->charset.n > 0 && strcasecmp(r->charset.bytes, "utf-8") != 0))
		return WQ__NO_RANGE;
	if (r->version.n > 0)
		return strcmp(r->version.bytes, version) == 0 ? WQ__THE_VERSION : WQ__NO_RANGE;
	return WQ__THE_TYPE;
}

/* Of two that are as near the more wanted counts. */
static void wish(struct wq__wish *w, enum wq__nearness near, int weight)
{
	if (near > w->nearness ||
	    (near != WQ__NO_RANGE && near == w->nearness && weight > w->weight))
		*w = (struct wq__wish){.nearness = near, .weight = weight};
}

void wq__accept_take(struct wq__accept *a, const char *header)
{
	while (*header) {
		struct range r;

		header += strspn(header, " \t,");
		if (read_range(header, &r)) {
			wish(&a->open, nearness(&r, "application", "openmetrics-text", "1.0.0"),
			     r.weight);
			wish(&a->text, nearness(&r, "text", "plain", "0.0.4"), r.weight);
		}
		header = skip_range(header);
	}
}

bool wq__accept_openmetrics(const struct wq__accept *a)
{
	if (a->open.weight != a->text.weight)
		return a->open.weight > a->text.weight;
	return a->open.weight > 0 && a->open.nearness >= WQ__THE_TYPE;
}
