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
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- reading ------------------------------------------------------------- */

/* A word that a run has for a state. The run may be another user's: nothing else is shown. */
static void plain(char *word)
{
	for (; *word; word++)
		if (!isalpha((unsigned char)*word))
			*word = '?';
}

static void read_field(struct state *s, const char *name, const char *value)
{
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
	const char *end = at + n;
	size_t len;

	snprintf(e->state, sizeof e->state, "%s", next(&at, end, &len));
	plain(e->state);
	e->ns = strtoll(next(&at, end, &len), NULL, 10);
	e->failures = strtoull(next(&at, end, &len), NULL, 10);
	next(&at, end, &len);
	e->dirty = len > 0;
	at = next(&at, end, &e->len);
	e->key = grow(NULL, e->len + 1);
	memcpy(e->key, at, e->len + 1);
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
	for (size_t i = 0; i < e->n; i++)
		free(e->at[i].key);
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
	text_str(t, "}\n");
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
	text_print(t, "\n%" PRIu64 " running, %" PRIu64 " queued, %" PRIu64 " waiting", s->running,
	           s->queued, s->waiting);
	if (s->next_due_ns >= 0) {
		text_str(t, " (the next in ");
		text_span(t, s->next_due_ns);
		text_str(t, ")");
	}
	text_print(t,
	           "\n%" PRIu64 " given = %" PRIu64 " merged + %" PRIu64 " refused + %" PRIu64
	           " done + %" PRIu64 " dead + %" PRIu64 " cancelled + %" PRIu64 " unfinished\n",
	           s->given, s->merged, s->refused, s->done, s->dead, s->cancelled, s->unfinished);
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
	text_print(t, ",\"failures\":%" PRIu64 ",\"dirty\":%s}\n", e->failures,
	           e->dirty ? "true" : "false");
}

void show_entry(struct text *t, const struct entry *e)
{
	struct text span = {0};

	text_str(&span, strcmp(e->state, "waiting") == 0 ? "in " : "");
	text_span(&span, e->ns);
	text_print(t, "%-8s %8.*s %3" PRIu64 "%c ", e->state, (int)span.n, span.bytes, e->failures,
	           e->dirty ? '+' : ' ');
	text_visible(t, e->key, e->len, 4 * e->len);
	text_str(t, "\n");
	text_release(&span);
}
