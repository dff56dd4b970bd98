/* The terminal is lent to a command that asks for it. */
#include "cli/command/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command/job.h"
#include "cli/output/report.h"

bool tty_lent(const struct run *r)
{
	return r->tty.holder != NULL;
}

bool tty_lent_fd(const struct run *r, int fd)
{
	return r->tty.holder && isatty(fd);
}

void tty_close(struct run *r)
{
	if (r->tty.fd >= 0)
		close(r->tty.fd);
	r->tty.fd = -1;
}

/* In its background we may still write to it, and take it back. Commands have another mask. */
static void stand_back(struct tty *t)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigaddset(&set, SIGTTIN);
	sigprocmask(SIG_BLOCK, &set, &t->mask);
}

static bool is_foreground(struct tty *t)
{
	if (t->fd < 0)
		t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

static bool lend(struct run *r, struct job *j, int signal)
{
	struct tty *t = &r->tty;

	if (!is_foreground(t))
		return false;
	t->has_modes = tcgetattr(t->fd, &t->modes) == 0;
	/* Who reads has asked its question already, perhaps; who sets modes has not. */
	report_yield(signal == SIGTTOU);
	stand_back(t);
	if (tcsetpgrp(t->fd, j->pid) < 0) {
		sigprocmask(SIG_SETMASK, &t->mask, NULL);
		return false;
	}
	t->holder = j;
	j->wants_tty = 0;
	kill(-j->pid, SIGCONT);
	return true;
}

/* Somebody else may have taken it meanwhile: a shell that stopped us. */
static void take_back(struct run *r, bool restore)
{
	struct tty *t = &r->tty;

	if (tcgetpgrp(t->fd) == t->holder->pid) {
		tcsetpgrp(t->fd, getpgrp());
		if (restore && t->has_modes)
			tcsetattr(t->fd, TCSANOW, &t->modes);
	}
	t->holder = NULL;
	sigprocmask(SIG_SETMASK, &t->mask, NULL);
}

static void refuse(struct run *r, struct job *j)
{
	say("%s: the command wants the terminal, but wq is in the background: it is terminated",
	    job_shown(j));
	j->wants_tty = 0;
	j->no_tty = true;
	job_terminate(r, j, r->opt->kill_after_ns);
}

/* The next who wants it. */
static void serve(struct run *r)
{
	for (uint32_t i = 0; i < r->njob && !r->tty.holder; i++) {
		struct job *j = r->job[i];

		if (j && j->state == JOB_RUNNING && j->wants_tty != 0 && !j->terminated &&
		    !lend(r, j, j->wants_tty))
			refuse(r, j);
	}
}

/* By somebody's kill: it would look as if it hung. */
static void tell_stopped(struct job *j, int signal)
{
	if (!j->told_stop)
		say("%s: the command was stopped by signal %d (%s); it goes on by kill -CONT -%d",
		    job_shown(j), signal, strsignal(signal), (int)j->pid);
	j->told_stop = true;
}

void tty_stopped(struct run *r, struct job *j, int signal)
{
	bool had = r->tty.holder == j;

	if (had)
		take_back(r, false);
	if (signal == SIGTTIN || signal == SIGTTOU) {
		j->wants_tty = signal;
	} else if (signal == SIGTSTP && had) {
		/* Ctrl-Z: all of our group stops, and is continued by a shell's fg. */
		kill(0, SIGTSTP);
		j->wants_tty = signal;
	} else {
		tell_stopped(j, signal);
	}
	serve(r);
}

static bool is_of_keys(int signal)
{
	return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
}

void tty_ended(struct run *r, struct job *j)
{
	j->wants_tty = 0;
	if (r->tty.holder != j)
		return;
	/* One that was killed could not put the modes back: there may be no echo. */
	take_back(r, WIFSIGNALED(j->status));
	/* Whoever pressed Ctrl-C meant the run. */
	if (WIFSIGNALED(j->status) && is_of_keys(WTERMSIG(j->status))) {
		j->stopped = true;
		kill(0, WTERMSIG(j->status));
		return;
	}
	serve(r);
}
