/*
 * One line that is drawn anew ten times a second at most, on standard error, if that is a
 * terminal. Whoever writes to a terminal has it cleared first.
 */
#include "cli/output/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW (WQ_SECOND / 10)
#define SAMPLE (WQ_SECOND / 2)

enum { SAMPLES = 20 }; /* ten seconds */

static struct {
	bool on, color, drawn;
	struct stream *to;
	int64_t next_ns;
	/* Of the last few seconds, for the rate. */
	uint64_t ended[SAMPLES];
	uint64_t over[SAMPLES]; /* keys */
	int64_t at_ns[SAMPLES];
	unsigned nsample;
} progress;

static void clear(void)
{
	if (!progress.drawn)
		return;
	progress.drawn = false;
	stream_now(progress.to, "\r\033[K", 4);
}

static bool is_typed(const struct options *o)
{
	return !o->no_input && (!o->file || strcmp(o->file, "-") == 0) && isatty(STDIN_FILENO);
}

void report_open(struct run *r)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");
	bool seen = !r->opt->quiet && isatty(STDERR_FILENO), typed = is_typed(r->opt);

	/* It would be drawn over what is being typed. */
	progress.on = seen && !typed && r->opt->progress && !r->opt->dry_run &&
	              !(term && strcmp(term, "dumb") == 0);
	if (seen && typed)
		say("reading keys from the terminal; Ctrl-D ends");
	progress.color = !no_color || *no_color == '\0';
	progress.next_ns = r->now_ns;
	progress.to = &r->err;
	if (!progress.on)
		return;
	if (isatty(STDOUT_FILENO))
		r->out.before = clear;
	r->err.before = clear;
}

/* ---- rate ---------------------------------------------------------------- */

static uint64_t ended(const struct run *r)
{
	return r->count.attempts - r->held;
}

/* Keys that will not be tried again. */
static uint64_t over(const struct run *r)
{
	return r->count.done + r->count.dead + r->count.cancelled;
}

static void sample(const struct run *r)
{
	unsigned last = (progress.nsample + SAMPLES - 1) % SAMPLES;

	if (progress.nsample > 0 && r->now_ns - progress.at_ns[last] < SAMPLE)
		return;
	progress.ended[progress.nsample % SAMPLES] = ended(r);
	progress.over[progress.nsample % SAMPLES] = over(r);
	progress.at_ns[progress.nsample % SAMPLES] = r->now_ns;
	progress.nsample++;
}

static const struct run *reported;

/* How much more it is than it was some seconds ago, a second. */
static double rate_of(const uint64_t *samples, uint64_t now)
{
	unsigned first = progress.nsample < SAMPLES ? 0 : progress.nsample % SAMPLES;
	int64_t span;

	if (progress.nsample == 0)
		return 0;
	span = reported->now_ns - progress.at_ns[first];
	if (span < SAMPLE / 5)
		return 0;
	/* A death that was taken back counts the other way. */
	return now > samples[first] ? (double)(now - samples[first]) * 1e9 / (double)span : 0;
}

double report_rate(void)
{
	return reported ? rate_of(progress.ended, ended(reported)) : 0;
}

/* ---- the line ------------------------------------------------------------ */

static void number(struct text *t, const char *name, uint64_t n, const char *color)
{
	if (t->n > 1)
		text_str(t, "  ");
	if (n > 0 && color && progress.color)
		text_print(t, "\033[%sm%" PRIu64 " %s\033[0m", color, n, name);
	else
		text_print(t, "%" PRIu64 " %s", n, name);
}

static size_t width(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1u : 79;
}

/*
 * Of text without characters of more than one byte: the fields that fit, escapes not counted. What
 * is cut would be misread: 1 of 10 running. Two spaces are between two fields.
 */
static size_t fitting(const struct text *t, size_t max)
{
	size_t seen = 0, whole = 1;

	for (size_t i = 0; i < t->n; i++) {
		if (t->bytes[i] == '\033') {
			while (i < t->n && t->bytes[i] != 'm')
				i++;
		} else if (seen++ == max) {
			return whole;
		}
		if (i + 2 < t->n && memcmp(t->bytes + i + 1, "  ", 2) == 0)
			whole = i + 1;
	}
	return t->n;
}

static void draw(const struct run *r)
{
	static struct text t;
	double rate = report_rate(), keys = rate_of(progress.over, over(r));
	wq_snapshot s;

	if (wq_snapshot_take(r->q, &s) != WQ_OK)
		return;
	t.n = 0;
	text_str(&t, "\r");
	number(&t, "done", r->count.done, "32");
	/* What is wanted most comes first: a narrow window has no room for the end. */
	if (r->phase == ENDING && keys > 0) {
		text_str(&t, "  ends in ");
		text_span(&t, (int64_t)((double)run_units(r) / keys * 1e9));
	}
	if (r->paused)
		text_str(&t, "  paused");
	if (r->stall.tell_ns > 0)
		text_str(&t, "  stalled");
	if (r->phase >= DRAINING)
		text_str(&t, r->phase == STOPPING ? "  stopping" : "  draining");
	number(&t, "running", r->held, NULL);
	number(&t, "queued", s.queued, NULL);
	number(&t, "waiting", s.waiting, NULL);
	number(&t, "failed", r->count.failed, "33");
	if (r->count.dead > 0)
		number(&t, "dead", r->count.dead, "31");
	number(&t, "merged", r->count.merged, NULL);
	text_print(&t, "  %.*f/s", rate < 10 ? 1 : 0, rate);

	t.n = fitting(&t, 1 + width());
	text_str(&t, "\033[0m\033[K");
	if (stream_now(progress.to, t.bytes, t.n))
		progress.drawn = true;
}

void report_turn(struct run *r)
{
	reported = r;
	sample(r);
	if (!progress.on || r->now_ns < progress.next_ns)
		return;
	if (!tty_lent(r))
		draw(r);
	progress.next_ns = r->now_ns + DRAW;
}

int64_t report_next_ns(const struct run *r)
{
	(void)r;
	return progress.on ? progress.next_ns : WQ_NEVER;
}

void report_yield(bool cleared)
{
	if (cleared)
		clear();
	progress.drawn = false;
}

void report_close(struct run *r)
{
	clear();
	progress.on = false;
	r->out.before = r->err.before = NULL;
}

/* ---- the summary --------------------------------------------------------- */

void report_summary(const struct run *r)
{
	const struct counts *c = &r->count;
	uint64_t there = r->left - r->unread, work = c->given - c->merged - c->refused;
	struct text t = {0};

	text_print(&t,
	           "%" PRIu64 " given = %" PRIu64 " merged + %" PRIu64 " refused + %" PRIu64
	           " to do",
	           c->given, c->merged, c->refused, work);
	say("%.*s", (int)t.n, t.bytes);
	t.n = 0;
	text_print(&t,
	           "%" PRIu64 " to do = %" PRIu64 " done + %" PRIu64 " dead + %" PRIu64
	           " cancelled + %" PRIu64 " unfinished",
	           work, c->done, c->dead, c->cancelled, there);
	if (r->unread > 0)
		text_print(&t, " (and %" PRIu64 " not read)", r->unread);
	say("%.*s", (int)t.n, t.bytes);
	t.n = 0;
	text_print(&t, "%" PRIu64 " attempts, %" PRIu64 " failed, in ", c->attempts, c->failed);
	text_span(&t, r->now_ns - r->began_ns);
	say("%.*s", (int)t.n, t.bytes);
	text_release(&t);
}
