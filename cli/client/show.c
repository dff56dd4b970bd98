/* Pictures of a run. Fields that we do not know are passed over: a newer run may have them. */
#include "cli/client/show.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

#include "cli/base/say.h"

enum kind { WORD, FLAG, COUNT, REAL, SPAN };

static const struct {
	const char *name;
	const char *json; /* NULL: the same */
	enum kind kind;
	size_t at, size;
} fields[] = {
#define FIELD(name, json, kind)                                                                    \
	{                                                                                          \
#name, json, kind, offsetof(struct state, name),                                   \
		    sizeof(((struct state *)NULL)->name)                                           \
	}
    FIELD(name, NULL, WORD),
    FIELD(pid, NULL, COUNT),
    FIELD(command, NULL, WORD),
    FIELD(phase, NULL, WORD),
    FIELD(paused, NULL, FLAG),
    FIELD(full, NULL, FLAG),
    FIELD(uptime_ns, "uptime_s", SPAN),
    FIELD(workers, NULL, COUNT),
    FIELD(rate, NULL, REAL),
    FIELD(burst, NULL, COUNT),
    FIELD(max_queue, NULL, COUNT),
    FIELD(running, NULL, COUNT),
    FIELD(queued, NULL, COUNT),
    FIELD(waiting, NULL, COUNT),
    FIELD(next_due_ns, "next_due_s", SPAN),
    FIELD(given, NULL, COUNT),
    FIELD(merged, NULL, COUNT),
    FIELD(refused, NULL, COUNT),
    FIELD(done, NULL, COUNT),
    FIELD(dead, NULL, COUNT),
    FIELD(dead_kept, NULL, COUNT),
    FIELD(cancelled, NULL, COUNT),
    FIELD(unfinished, NULL, COUNT),
    FIELD(attempts, NULL, COUNT),
    FIELD(failed, NULL, COUNT),
    FIELD(connections, NULL, COUNT),
    FIELD(waiters, NULL, COUNT),
    FIELD(per_second, NULL, REAL),
    FIELD(blocked, NULL, COUNT),
    FIELD(groups, NULL, COUNT),
    FIELD(merge_failed, NULL, COUNT),
    FIELD(queued_lower, NULL, COUNT),
#undef FIELD
};

enum {
	FIELDS = sizeof fields / sizeof fields[0],
	SHOWN = 60, /* bytes of a value or group, for people */
};

/* ---- reading ------------------------------------------------------------- */

/* A word that a run has for a state. The run may be another user's: nothing else is shown. */
static void plain(char *word)
{
	for (; *word; word++)
		if (!isalpha((unsigned char)*word))
			*word = '?';
}

static void read_level(struct state *s, const char *value)
{
	char *rest;

	if (s->nlevels == LEVELS)
		return;
	s->level[s->nlevels].priority = (int32_t)strtol(value, &rest, 10);
	s->level[s->nlevels++].queued = strtoull(rest, NULL, 10);
}

static void read_busy(struct state *s, const char *value)
{
	struct busy *b = &s->busiest[s->nbusiest];
	char *rest;

	if (s->nbusiest == BUSIEST)
		return;
	b->queued = strtoull(value, &rest, 10);
	b->running = strtoull(rest, &rest, 10);
	snprintf(b->name, sizeof b->name, "%s", *rest == ' ' ? rest + 1 : rest);
	s->nbusiest++;
}

static void read_field(struct state *s, const char *name, const char *value)
{
	if (strcmp(name, "level") == 0)
		read_level(s, value);
	if (strcmp(name, "busiest") == 0)
		read_busy(s, value);
	for (size_t i = 0; i < FIELDS; i++) {
		void *at = (char *)s + fields[i].at;

		if (strcmp(fields[i].name, name) != 0)
			continue;
		switch (fields[i].kind) {
		case WORD:
			snprintf(at, fields[i].size, "%s", value);
			break;
		case FLAG:
			*(bool *)at = strcmp(value, "0") != 0;
			break;
		case COUNT:
			*(uint64_t *)at = strtoull(value, NULL, 10);
			break;
		case REAL:
			*(double *)at = strtod(value, NULL);
			break;
		case SPAN:
			*(int64_t *)at = strtoll(value, NULL, 10);
			break;
		}
	}
}

int show_get_state(struct ask *a, struct state *s)
{
	const char *piece;
	size_t n;

	*s = (struct state){.next_due_ns = -1};
	ask_begin(a, "status");
	ask_send(a);
	while (ask_next(a, &piece, &n)) {
		char *text = grow(NULL, n + 1), *rest = text;

		memcpy(text, piece, n);
		text[n] = '\0';
		for (char *line; (line = strsep(&rest, "\n"));) {
			char *value = strchr(line, '=');

			if (value) {
				*value = '\0';
				read_field(s, line, value + 1);
			}
		}
		free(text);
	}
	plain(s->phase);
	return a->status;
}

/* The next of the fields that each end with a NUL; "": there is none. */
static const char *next(const char **at, const char *end, size_t *len)
{
	const char *field = *at;
	const char *nul = field < end ? memchr(field, '\0', (size_t)(end - field)) : NULL;

	*len = nul ? (size_t)(nul - field) : 0;
	*at = nul ? nul + 1 : end;
	return nul ? field : "";
}

static void read_entry(struct entry *e, const char *at, size_t n)
{
	const char *end = at + n, *key;
	size_t len;

	snprintf(e->state, sizeof e->state, "%s", next(&at, end, &len));
	plain(e->state);
	e->ns = strtoll(next(&at, end, &len), NULL, 10);
	e->failures = strtoull(next(&at, end, &len), NULL, 10);
	next(&at, end, &len);
	e->dirty = len > 0;
	key = next(&at, end, &e->len);
	e->key = grow(NULL, e->len + 1);
	memcpy(e->key, key, e->len + 1);
	/* An older run ends here. */
	e->priority = (int32_t)strtol(next(&at, end, &len), NULL, 10);
	e->group_len = strtoull(next(&at, end, &len), NULL, 10);
	e->grouped = len > 0 && e->group_len <= e->len;
	next(&at, end, &len);
	e->value = NULL;
	if (len > 0) {
		const char *value = next(&at, end, &e->value_len);

		e->value = grow(NULL, e->value_len + 1);
		memcpy(e->value, value, e->value_len + 1);
	}
}

static int rank(const struct entry *e)
{
	static const char *const states[] = {"running", "queued", "waiting"};

	for (int i = 0; i < 3; i++)
		if (strcmp(e->state, states[i]) == 0)
			return i;
	return 3;
}

/* By state; what began first, or comes first, first. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int rx = rank(x), ry = rank(y);

	if (rx != ry)
		return rx < ry ? -1 : 1;
	if (x->ns != y->ns)
		return (x->ns < y->ns) == (rx >= 2) ? -1 : 1;
	return strcmp(x->key, y->key);
}

int show_get_entries(struct ask *a, struct entries *e)
{
	const char *piece;
	size_t n;

	*e = (struct entries){0};
	ask_send(a);
	while (ask_next(a, &piece, &n)) {
		if (e->n == e->room) {
			e->room = e->room * 2 + 64;
			e->at = grow(e->at, e->room * sizeof *e->at);
		}
		read_entry(&e->at[e->n++], piece, n);
	}
	e->more = n > 0 && a->status == EXIT_OK;
	if (e->n > 0)
		qsort(e->at, e->n, sizeof *e->at, compare);
	return a->status;
}

void show_free(struct entries *e)
{
	for (size_t i = 0; i < e->n; i++) {
		free(e->at[i].key);
		free(e->at[i].value);
	}
	free(e->at);
	*e = (struct entries){0};
}

/* ---- state --------------------------------------------------------------- */

static void seconds(struct text *t, int64_t ns)
{
	if (ns < 0)
		text_str(t, "null");
	else
		text_print(t, "%" PRId64 ".%06" PRId64, ns / WQ_SECOND, ns % WQ_SECOND / 1000);
}

static void lists_json(struct text *t, const struct state *s)
{
	text_str(t, ",\"level\":[");
	for (size_t i = 0; i < s->nlevels; i++)
		text_print(t, "%s{\"priority\":%" PRId32 ",\"queued\":%" PRIu64 "}",
		           i > 0 ? "," : "", s->level[i].priority, s->level[i].queued);
	text_str(t, "],\"busiest\":[");
	for (size_t i = 0; i < s->nbusiest; i++) {
		const struct busy *b = &s->busiest[i];

		text_str(t, i > 0 ? ",{\"name\":" : "{\"name\":");
		text_json(t, b->name, strlen(b->name));
		text_print(t, ",\"queued\":%" PRIu64 ",\"running\":%" PRIu64 "}", b->queued,
		           b->running);
	}
	text_str(t, "]");
}

void show_state_json(struct text *t, const struct state *s)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const void *at = (const char *)s + fields[i].at;

		text_print(t, "%s\"%s\":", i == 0 ? "{" : ",",
		           fields[i].json ? fields[i].json : fields[i].name);
		switch (fields[i].kind) {
		case WORD:
			text_json(t, at, strlen(at));
			break;
		case FLAG:
			text_str(t, *(const bool *)at ? "true" : "false");
			break;
		case COUNT:
			text_print(t, "%" PRIu64, *(const uint64_t *)at);
			break;
		case REAL:
			text_print(t, "%.9g", *(const double *)at);
			break;
		case SPAN:
			seconds(t, *(const int64_t *)at);
			break;
		}
	}
	lists_json(t, s);
	text_str(t, "}\n");
}

void show_levels(struct text *t, const struct state *s)
{
	if (s->nlevels == 0 || s->queued == 0)
		return;
	text_str(t, "queued by priority:");
	for (size_t i = 0; i < s->nlevels; i++)
		text_print(t, "%s %" PRId32 ": %" PRIu64, i > 0 ? "," : "", s->level[i].priority,
		           s->level[i].queued);
	if (s->queued_lower > 0)
		text_print(t, ", lower: %" PRIu64, s->queued_lower);
}

void show_groups(struct text *t, const struct state *s)
{
	if (s->groups == 0)
		return;
	text_print(t, "%" PRIu64 " %s", s->groups, s->groups == 1 ? "group" : "groups");
	for (size_t i = 0; i < s->nbusiest; i++) {
		text_str(t, i > 0 ? ", " : "; the busiest: ");
		text_visible(t, s->busiest[i].name, strlen(s->busiest[i].name), 60);
		text_print(t, " (%" PRIu64 " running, %" PRIu64 " queued)", s->busiest[i].running,
		           s->busiest[i].queued);
	}
}

static void line(struct text *t, void (*show)(struct text *t, const struct state *s),
                 const struct state *s)
{
	size_t before = t->n;

	show(t, s);
	if (t->n > before)
		text_str(t, "\n");
}

void show_limits(struct text *t, const struct state *s)
{
	text_print(t, "%" PRIu64 " %s", s->workers, s->workers == 1 ? "worker" : "workers");
	if (s->rate >= 1)
		text_print(t, ", at most %.6g/s", s->rate);
	else if (s->rate > 0)
		text_print(t, ", at most %.6g/h", s->rate * 3600);
	if (s->rate > 0 && s->burst > 1)
		text_print(t, " (burst %" PRIu64 ")", s->burst);
}

void show_state(struct text *t, const struct state *s)
{
	text_visible(t, s->name, strlen(s->name), 200);
	text_str(t, ": ");
	text_visible(t, s->command, strlen(s->command), 200);
	text_print(t, "\n%s%s%s, pid %" PRIu64 ", for ", s->phase, s->paused ? ", paused" : "",
	           s->full ? ", full" : "", s->pid);
	text_span(t, s->uptime_ns);
	text_str(t, "; ");
	show_limits(t, s);
	text_print(t, "\n%" PRIu64 " running, %" PRIu64 " queued", s->running, s->queued);
	if (s->blocked > 0)
		text_print(t, " (%" PRIu64 " blocked)", s->blocked);
	text_print(t, ", %" PRIu64 " waiting", s->waiting);
	if (s->next_due_ns >= 0) {
		text_str(t, " (the next in ");
		text_span(t, s->next_due_ns);
		text_str(t, ")");
	}
	text_print(t,
	           "\n%" PRIu64 " given = %" PRIu64 " merged + %" PRIu64 " refused + %" PRIu64
	           " done + %" PRIu64 " dead + %" PRIu64 " cancelled + %" PRIu64 " unfinished\n",
	           s->given, s->merged, s->refused, s->done, s->dead, s->cancelled, s->unfinished);
	line(t, show_levels, s);
	line(t, show_groups, s);
	if (s->merge_failed > 0)
		text_print(t,
		           "%" PRIu64 " %s lost: too long, or no memory, when a key was retried\n",
		           s->merge_failed, s->merge_failed == 1 ? "value is" : "values are");
	text_print(t, "%" PRIu64 " attempts, %" PRIu64 " failed; %.*f/s recently\n", s->attempts,
	           s->failed, s->per_second < 10 ? 1 : 0, s->per_second);
	if (s->dead_kept > 0)
		text_print(t, "%" PRIu64 " dead %s kept: wq ls --state=dead, wq retry, wq forget\n",
		           s->dead_kept, s->dead_kept == 1 ? "key is" : "keys are");
}

/* ---- keys ---------------------------------------------------------------- */

void show_entry_json(struct text *t, const struct entry *e)
{
	text_str(t, "{\"key\":");
	text_json(t, e->key, e->len);
	text_print(t, ",\"state\":\"%s\",\"%s\":", e->state,
	           strcmp(e->state, "waiting") == 0 ? "due_s" : "since_s");
	seconds(t, e->ns);
	text_print(t, ",\"failures\":%" PRIu64 ",\"dirty\":%s,\"priority\":%" PRId32, e->failures,
	           e->dirty ? "true" : "false", e->priority);
	if (e->grouped) {
		text_str(t, ",\"group\":");
		text_json(t, e->key, e->group_len);
	}
	if (e->value) {
		text_str(t, ",\"value\":");
		text_json(t, e->value, e->value_len);
	}
	text_str(t, "}\n");
}

void show_brought(struct text *t, const struct entry *e)
{
	const char *before = "  [";

	if (e->priority != 0) {
		text_print(t, "%spriority %" PRId32, before, e->priority);
		before = ", ";
	}
	if (e->grouped) {
		text_print(t, "%sgroup ", before);
		text_visible(t, e->key, e->group_len, SHOWN);
		before = ", ";
	}
	if (e->value) {
		text_print(t, "%svalue ", before);
		text_visible(t, e->value, e->value_len, SHOWN);
		before = ", ";
	}
	if (*before == ',')
		text_str(t, "]");
}

void show_entry(struct text *t, const struct entry *e)
{
	struct text span = {0};

	text_str(&span, strcmp(e->state, "waiting") == 0 ? "in " : "");
	text_span(&span, e->ns);
	text_print(t, "%-8s %8.*s %3" PRIu64 "%c ", e->state, (int)span.n, span.bytes, e->failures,
	           e->dirty ? '+' : ' ');
	text_visible(t, e->key, e->len, 4 * e->len);
	show_brought(t, e);
	text_str(t, "\n");
	text_release(&span);
}
