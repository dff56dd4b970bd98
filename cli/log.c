/* The log of attempts. A log that cannot be written stops no work: it is said once, and at the end. */
#include "cli/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/results.h"

bool log_open(struct run *r)
{
	if (!r->opt->log)
		return true;
	r->log_fd = append_open(r->opt->log);
	return r->log_fd >= 0;
}

void log_close(struct run *r)
{
	if (r->log_fd >= 0 && close(r->log_fd) < 0) {
		say("%s: %s", r->opt->log, strerror(errno));
		r->trouble = true;
	}
	r->log_fd = -1;
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

static void describe(struct text *t, const struct job *j, const char *outcome)
{
	text_str(t, "{\"time\":");
	stamp(t);
	text_str(t, ",\"key\":");
	text_json(t, j->key, j->len);
	text_print(t, ",\"attempt\":%u,\"outcome\":\"%s\"", j->item.attempts, outcome);
	if (WIFEXITED(j->status))
		text_print(t, ",\"exit\":%d", WEXITSTATUS(j->status));
	else
		text_print(t, ",\"exit\":null,\"signal\":%d", WTERMSIG(j->status));
	if (j->timed_out)
		text_str(t, ",\"timed_out\":true");
	seconds(t, "queue_s", j->queued_ns);
	seconds(t, "run_s", j->ended_ns - j->began_ns);
	text_print(t, ",\"merged\":%u,\"worker\":%u}\n", j->merged, j->worker);
}

static void put(struct run *r, const struct text *line)
{
	if (write_all(r->log_fd, line->bytes, line->n))
		return;
	say("%s: %s; there is no log from here on", r->opt->log, append_error());
	r->trouble = true;
	close(r->log_fd);
	r->log_fd = -1;
}

void log_attempt(struct run *r, const struct job *j, const char *outcome)
{
	static struct text line;

	if (r->log_fd < 0 && !r->opt->results)
		return;
	line.n = 0;
	describe(&line, j, outcome);
	if (r->log_fd >= 0)
		put(r, &line);
	if (r->opt->results)
		results_close(r, j, &line);
}
