/* A snapshot as JSON. Bytes of keys that are no UTF-8 become U+FFFD. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wq/snapshot.h>

#include "base/json_escape.h"
#include "base/utf8.h"
#include "metrics/json.h"

static void flush(struct wq__json *j)
{
	if (j->rc == WQ_OK && j->n > 0)
		j->rc = j->write(j->ctx, j->text, j->n);
	j->n = 0;
}

void wq__json_print(struct wq__json *j, const char *format, ...)
{
	va_list args;

	if (j->n > sizeof j->text / 2)
		flush(j);
	va_start(args, format);
	j->n += (size_t)vsnprintf(j->text + j->n, sizeof j->text - j->n, format, args);
	va_end(args);
}

static int put(void *to, const char *bytes, size_t n)
{
	wq__json_print(to, "%.*s", (int)n, bytes);
	return WQ_OK;
}

void wq__json_string(struct wq__json *j, const void *bytes, size_t len)
{
	wq__json_escape(bytes, len, put, j);
}

int wq__json_end(struct wq__json *j)
{
	flush(j);
	return j->rc;
}

/* How much of a text is shown: what was cut ends between two characters. */
static size_t shown_len(const char *text, size_t len)
{
	if (len < WQ_SAMPLE_BYTES)
		return len;
	return wq__utf8_cut((const unsigned char *)text, WQ_SAMPLE_BYTES - 1);
}

static void write_sample(struct wq__json *j, const char *name, const wq_sample *s)
{
	if (s->age_ns < 0) {
		wq__json_print(j, ",\"%s\":null", name);
		return;
	}
	wq__json_print(j, ",\"%s\":{\"key\":", name);
	wq__json_string(j, s->key, shown_len(s->key, s->len));
	wq__json_print(j, ",\"len\":%zu,\"age_ns\":%" PRId64 "}", s->len, s->age_ns);
}

static void write_histogram(struct wq__json *j, const char *name, const wq_histogram *h)
{
	wq__json_print(j, ",\"%s\":{\"count\":[", name);
	for (unsigned i = 0; i < WQ_BUCKETS; i++)
		wq__json_print(j, "%s%" PRIu64, i > 0 ? "," : "", h->count[i]);
	wq__json_print(j, "],\"sum_ns\":%" PRIu64 "}", h->sum_ns);
}

/* Priorities, groups and values; a queue without them has none of these members. */
static void write_rich(struct wq__json *j, const wq_snapshot *s)
{
	if (s->nlevels == 0 && s->groups == 0 && s->blocked == 0 && s->merge_failed == 0)
		return;
	wq__json_print(j, ",\"blocked\":%" PRIu64 ",\"groups\":%" PRIu64, s->blocked, s->groups);
	wq__json_print(j, ",\"merge_failed\":%" PRIu64 ",\"level\":[", s->merge_failed);
	for (uint32_t i = 0; i < s->nlevels && i < WQ_LEVELS; i++)
		wq__json_print(j, "%s{\"priority\":%" PRId32 ",\"queued\":%" PRIu64 "}",
		               i > 0 ? "," : "", s->level[i].priority, s->level[i].queued);
	wq__json_print(j, "],\"queued_lower\":%" PRIu64 ",\"busiest\":[", s->queued_lower);
	for (uint32_t i = 0; i < s->nbusiest && i < WQ_BUSIEST; i++) {
		const wq_group_sample *g = &s->busiest[i];

		wq__json_print(j, "%s{\"name\":", i > 0 ? "," : "");
		wq__json_string(j, g->name, shown_len(g->name, g->len));
		wq__json_print(j, ",\"len\":%zu,\"queued\":%" PRIu64 ",\"running\":%" PRIu64 "}",
		               g->len, g->queued, g->running);
	}
	wq__json_print(j, "]");
}

void wq__json_snapshot(struct wq__json *j, const wq_snapshot *s, const char *name)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
	    {"queued", s->queued},   {"running", s->running},
	    {"dirty", s->dirty},     {"waiting", s->waiting},
	    {"left", s->left},       {"remembered", s->remembered},
	    {"adds", s->adds},       {"retries", s->retries},
	    {"merged", s->merged},   {"refused", s->refused},
	    {"marked", s->marked},   {"dead", s->dead},
	    {"stale", s->stale},     {"slow_handlers", s->slow_handlers},
	    {"dropped", s->dropped},
	};

	wq__json_print(j, "{");
	if (name) {
		wq__json_print(j, "\"name\":");
		wq__json_string(j, name, strlen(name));
		wq__json_print(j, ",");
	}
	wq__json_print(j, "\"now_ns\":%" PRId64, s->now_ns);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		wq__json_print(j, ",\"%s\":%" PRIu64, counts[i].name, counts[i].value);
	wq__json_print(j, ",\"unfinished_ns\":%" PRId64, s->unfinished_ns);
	if (s->next_due_ns == WQ_NEVER)
		wq__json_print(j, ",\"next_due_ns\":null");
	else
		wq__json_print(j, ",\"next_due_ns\":%" PRId64, s->next_due_ns);
	write_sample(j, "oldest_queued", &s->oldest_queued);
	write_sample(j, "longest_running", &s->longest_running);
	write_histogram(j, "queue", &s->queue);
	write_histogram(j, "work", &s->work);
	write_histogram(j, "late", &s->late);
	write_rich(j, s);
	wq__json_print(j, "}");
}

int wq_snapshot_json(const wq_snapshot *s, const char *name, wq_write_fn write, void *ctx)
{
	struct wq__json j = {.write = write, .ctx = ctx};

	if (!s || !write)
		return WQ_EINVAL;
	wq__json_snapshot(&j, s, name);
	return wq__json_end(&j);
}
