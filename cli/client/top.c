/*
 * `wq top`: a picture of a run, drawn anew every second. The terminal is as it was on every way
 * out: signals are read like keys, and end the loop.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>
#include <wq/clock.h>

#include "base/utf8.h"
#include "cli/base/say.h"
#include "cli/client/client.h"
#include "cli/client/show.h"
#include "cli/files/replace.h"

#define PATIENCE (3 * WQ_SECOND) /* with a run that does not answer */

struct screen {
	struct client *c;
	bool live, color;
	struct termios before;
	int signals;
	size_t rows, columns;
	size_t row; /* that is written next */
	struct text t;
	struct text line;
	struct state state;
};

/* ---- the terminal -------------------------------------------------------- */

static void enter(struct screen *s)
{
	static const char on[] = "\033[?1049h\033[?25l";
	struct termios raw = s->before;

	/* Ctrl-C stays a signal. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	(void)!write(STDOUT_FILENO, on, sizeof on - 1);
}

static void leave(const struct screen *s)
{
	static const char off[] = "\033[0m\033[?25h\033[?1049l";

	(void)!write(STDOUT_FILENO, off, sizeof off - 1);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

static void measure(struct screen *s)
{
	struct winsize w;

	s->rows = 24;
	s->columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
		s->rows = w.ws_row;
		s->columns = w.ws_col;
	}
}

/* ---- lines --------------------------------------------------------------- */

/*
 * How many bytes of the line fit. A character beyond ASCII counts as two columns: some are that
 * wide, and a line that is too long would spoil the next.
 */
static size_t fitting(const struct text *t, size_t columns)
{
	size_t i = 0, seen = 0;

	while (i < t->n) {
		size_t n = wq__utf8((const unsigned char *)t->bytes + i, t->n - i);

		seen += n > 1 ? 2 : 1;
		if (seen > columns)
			break;
		i += n > 0 ? n : 1;
	}
	return i;
}

/*
 * What is in s->line becomes a line. The last row is the foot's, and the last column nobody's: a
 * terminal that has written there is about to begin the next line.
 */
static void put_line(struct screen *s, const char *color)
{
	if (s->live && s->row + 1 >= s->rows) {
		s->line.n = 0;
		return;
	}
	if (color && s->color)
		text_print(&s->t, "\033[%sm", color);
	text_add(&s->t, s->line.bytes, s->live ? fitting(&s->line, s->columns - 1) : s->line.n);
	if (color && s->color)
		text_str(&s->t, "\033[0m");
	text_str(&s->t, s->live ? "\033[K\r\n" : "\n");
	s->line.n = 0;
	s->row++;
}

static void head(struct screen *s)
{
	const struct state *st = &s->state;

	text_visible(&s->line, st->name, strlen(st->name), 60);
	text_print(&s->line, "  %s%s%s, for ", st->phase, st->paused ? ", paused" : "",
	           st->full ? ", full" : "");
	text_span(&s->line, st->uptime_ns);
	text_str(&s->line, "  ");
	show_limits(&s->line, st);
	put_line(s, st->paused || strcmp(st->phase, "open") != 0 ? "1;33" : "1");
	text_visible(&s->line, st->command, strlen(st->command), 300);
	put_line(s, NULL);
	put_line(s, NULL);
	text_print(&s->line, "%" PRIu64 " running  %" PRIu64 " queued", st->running, st->queued);
	if (st->blocked > 0)
		text_print(&s->line, " (%" PRIu64 " blocked)", st->blocked);
	text_print(&s->line, "  %" PRIu64 " waiting", st->waiting);
	if (st->next_due_ns >= 0) {
		text_str(&s->line, " (the next in ");
		text_span(&s->line, st->next_due_ns);
		text_str(&s->line, ")");
	}
	text_print(&s->line, "  %.*f/s", st->per_second < 10 ? 1 : 0, st->per_second);
	put_line(s, NULL);
	text_print(&s->line,
	           "%" PRIu64 " done  %" PRIu64 " failed  %" PRIu64 " dead  %" PRIu64
	           " cancelled  %" PRIu64 " merged  of %" PRIu64 " given",
	           st->done, st->failed, st->dead, st->cancelled, st->merged, st->given);
	put_line(s, NULL);
	show_levels(&s->line, st);
	if (s->line.n > 0)
		put_line(s, NULL);
	show_groups(&s->line, st);
	if (s->line.n > 0)
		put_line(s, NULL);
}

static void list(struct screen *s, const char *title, const struct entries *e, size_t most,
                 const char *color)
{
	if (e->n == 0)
		return;
	put_line(s, NULL);
	text_str(&s->line, title);
	put_line(s, "1");
	for (size_t i = 0; i < e->n && i < most; i++) {
		const struct entry *x = &e->at[i];
		struct text span = {0};

		text_span(&span, x->ns);
		text_print(&s->line, "%-8s %7.*s %3" PRIu64 "%c ", x->state, (int)span.n,
		           span.bytes, x->failures, x->dirty ? '+' : ' ');
		text_visible(&s->line, x->key, x->len, s->columns * 4);
		show_brought(&s->line, x);
		text_release(&span);
		put_line(s, strcmp(x->state, "dead") == 0 ? "31" : color);
	}
}

static void foot(struct screen *s)
{
	text_print(&s->line, "q: quit  p: %s", s->state.paused ? "resume" : "pause");
	text_print(&s->t, "\033[%zu;1H", s->rows);
	text_add(&s->t, s->line.bytes, fitting(&s->line, s->columns - 1));
	s->line.n = 0;
}

/* ---- pictures ------------------------------------------------------------ */

/* False: the run is not there any more, or does not answer as it should. */
static bool draw(struct screen *s)
{
	struct ask *a = &s->c->ask;
	struct entries running = {0}, failing = {0};
	size_t body;
	bool well;

	measure(s);
	s->t.n = s->row = 0;
	well = show_get_state(a, &s->state) == EXIT_OK;
	if (well) {
		ask_begin(a, "ls");
		ask_str(a, "running");
		ask_str(a, "200");
		well = show_get_entries(a, &running) == EXIT_OK;
	}
	if (well) {
		ask_begin(a, "failing");
		well = show_get_entries(a, &failing) == EXIT_OK;
	}
	if (well) {
		text_str(&s->t, s->live ? "\033[H" : "");
		head(s);
		/* Both lists get their share of what is left: more than half is this one's. */
		body = s->rows > s->row + 5 ? s->rows - s->row - 5 : 1;
		if (failing.n > 0 && s->live)
			body = body > failing.n + body / 2 ? body - failing.n : body / 2 + 1;
		list(s, "running  for      failures  key", &running, s->live ? body : 200, NULL);
		list(s, "failed   ago      failures  key", &failing, 200, "33");
		text_str(&s->t, s->live ? "\033[J" : "");
		if (s->live)
			foot(s);
		well = write_all(STDOUT_FILENO, s->t.bytes, s->t.n);
	}
	show_free(&running);
	show_free(&failing);
	return well;
}

/* ---- the loop ------------------------------------------------------------ */

/* False: it is time to go. */
static bool on_signal(struct screen *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGWINCH)
		return true;
	if (info.ssi_signo != SIGTSTP)
		return false;
	leave(s);
	raise(SIGSTOP);
	enter(s);
	return true;
}

static bool on_key(struct screen *s)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')
		return false;
	if (key == 'p') {
		ask_begin(&s->c->ask, s->state.paused ? "resume" : "pause");
		return ask(&s->c->ask) == EXIT_OK;
	}
	return true;
}

/* Until a key or a signal ends it: true; the run has gone: false. */
static bool live(struct screen *s)
{
	while (draw(s)) {
		int64_t until = ask_now() + s->c->interval_ns, left;
		bool again = false;

		while (!again && (left = until - ask_now()) > 0) {
			struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			                      {.fd = s->signals, .events = POLLIN}};
			int64_t ms = (left + WQ_MILLISECOND - 1) / WQ_MILLISECOND;

			if (poll(p, 2, ms > 1000000 ? 1000000 : (int)ms) < 0 && errno != EINTR)
				return true;
			if (p[1].revents && !on_signal(s))
				return true;
			if (p[0].revents && !on_key(s))
				return s->c->ask.status == EXIT_OK; /* or p went wrong */
			again = p[0].revents || p[1].revents;
		}
	}
	return false;
}

int top(struct client *c)
{
	const char *no_color = getenv("NO_COLOR");
	struct screen s = {.c = c, .signals = -1};
	int rc = EXIT_OK;

	/* Keys and signals are not handled meanwhile: a stopped run must not hold us long. */
	c->ask.patience_ns = c->timeout_ns < 0 ? PATIENCE : c->timeout_ns;
	c->ask.timeout_ns = c->ask.deadline_ns = 0;
	s.live = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	         tcgetattr(STDIN_FILENO, &s.before) == 0;
	s.color = s.live && (!no_color || *no_color == '\0');
	if (s.live) {
		static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
		sigset_t set;

		sigemptyset(&set);
		for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
			sigaddset(&set, ends[i]);
		sigprocmask(SIG_BLOCK, &set, NULL);
		s.signals = signalfd(-1, &set, SFD_CLOEXEC);
		enter(&s);
		if (!live(&s))
			rc = EXIT_TROUBLE;
		leave(&s);
		close(s.signals);
	} else if (!draw(&s)) {
		rc = EXIT_TROUBLE;
	}
	if (rc != EXIT_OK)
		say("%s", c->ask.message.bytes ? c->ask.message.bytes : strerror(errno));
	if (rc != EXIT_OK && c->ask.timed_out)
		rc = EXIT_LEFT;
	/* To see it end is nothing that went wrong. */
	if (s.live && c->ask.gone)
		rc = EXIT_OK;
	text_release(&s.t);
	text_release(&s.line);
	return rc;
}
