/*
 * The log of attempts. One that cannot be written stops no work: lines wait in memory, and those
 * that are missing at the end are counted. A pipe that is read slowly holds up the next commands,
 * as standard output does.
 */
#include "cli/output/log.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/files/target.h"
#include "cli/output/results.h"

bool log_open(struct run *r)
{
	return append_open(&r->log, &r->loop, r->opt->log, "lines", '\n');
}

void log_close(struct run *r)
{
	uint64_t missing = append_end(&r->log) + r->log.lost;

	if (missing > 0) {
		say("%s: %s: %" PRIu64 " of %" PRIu64 " lines are missing", r->opt->log,
		    target_error(r->log.error != 0 ? r->log.error : EAGAIN), missing,
		    missing + r->log.written);
		r->trouble = true;
	}
	append_close(&r->log);
}

/* As RFC 3339 has it, in UTC. */
static void stamp(struct text *t)
{
	struct timespec now;
	struct tm tm;
	char date[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
	text_print(t, "\"%s.%03ldZ\"", date, now.tv_nsec / 1000000);
}

static void seconds(struct text *t, const char *name, int64_t ns)
{
	text_print(t, ",\"%s\":%" PRId64 ".%06" PRId64, name, ns / WQ_SECOND,
	           ns % WQ_SECOND / 1000);
}

static void describe(struct text *t, const struct job *j, const struct held *h)
{
	text_str(t, "{\"time\":");
	stamp(t);
	text_str(t, ",\"key\":");
	text_json(t, h->key, h->len);
	text_print(t, ",\"attempt\":%u,\"outcome\":\"%s\"", h->item.attempts, h->outcome);
	if (WIFEXITED(j->status))
		text_print(t, ",\"exit\":%d", WEXITSTATUS(j->status));
	else
		text_print(t, ",\"exit\":null,\"signal\":%d", WTERMSIG(j->status));
	if (j->timed_out)
		text_str(t, ",\"timed_out\":true");
	seconds(t, "queue_s", h->queued_ns);
	seconds(t, "run_s", j->ended_ns - j->began_ns);
	text_print(t, ",\"merged\":%u,\"worker\":%u", h->merged, j->worker);
	if (j->nheld > 1)
		text_print(t, ",\"keys\":%u", j->nheld);
	text_str(t, "}\n");
}

void log_attempt(struct run *r, const struct job *j, const struct held *h)
{
	static struct text line;

	if (!r->opt->log && !r->opt->results)
		return;
	line.n = 0;
	describe(&line, j, h);
	append_put(&r->log, r->now_ns, line.bytes, line.n);
	if (r->opt->results)
		results_close(r, j, &line);
}
