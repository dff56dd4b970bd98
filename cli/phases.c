/*
 * How a run ends.
 *
 *   signal            | what happens
 *   ------------------+--------------------------------------------------------------------
 *   TERM, INT, HUP    | no more input; running commands finish (--on-term drain: all keys do)
 *   a second one      | commands are terminated, and killed after --grace
 *   a third one, QUIT | they are killed now
 *   USR1, USR2        | one worker more, one fewer
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/budget.h"
#include "cli/command/job.h"
#include "cli/run.h"

static sigset_t mask_before;
static sigset_t ours; /* that only we ignore */

const sigset_t *phases_child_mask(void)
{
	return &mask_before;
}

const sigset_t *phases_child_defaults(void)
{
	return &ours;
}

/* ---- phases -------------------------------------------------------------- */

void phases_ending(struct run *r)
{
	if (r->phase == OPEN && !r->control)
		r->phase = ENDING;
}

static int make_due(void *ctx, const wq_key_info *info)
{
	struct run *r = ctx;

	if (info->state & WQ_STATE_WAITING)
		wq_reschedule(r->q, info->key, info->len, 0);
	return 0;
}

void phases_drain(struct run *r)
{
	if (r->phase < ENDING)
		r->phase = ENDING;
	r->paused = false;
}

void phases_stop(struct run *r)
{
	if (r->phase >= DRAINING)
		return;
	/* By an order, too: a signal after it is the second. */
	if (r->nsignals == 0)
		r->nsignals = 1;
	if (r->opt->drain_on_term) {
		r->phase = DRAINING;
		r->paused = false;
		wq_walk(r->q, make_due, r);
	} else {
		r->phase = STOPPING;
	}
}

/* Too few say nothing about all: the first key that dies would be 100 % of them. */
enum { PERCENT_DEAD = 3 };

void phases_halt(struct run *r)
{
	const struct halt *h = &r->opt->halt;
	uint64_t dead = r->count.dead, over = dead + r->count.done;
	bool halt = h->percent > 0 ? dead >= PERCENT_DEAD && dead * 100 >= h->percent * over
	                           : h->dead > 0 && dead >= h->dead;

	if (!halt || r->phase == STOPPING)
		return;
	r->phase = STOPPING;
	r->halted = true;
	if (!r->opt->quiet)
		say("halting: %" PRIu64 " of %" PRIu64 " %s failed for good%s", dead, over,
		    over == 1 ? "key" : "keys",
		    r->running == 0 ? ""
		    : h->now        ? "; terminating the commands"
		                    : "; running commands finish");
	if (h->now)
		job_terminate_all(r, r->opt->grace_ns);
}

bool phases_over(struct run *r)
{
	if (r->running > 0)
		return false;
	switch (r->phase) {
	case OPEN:
		return false;
	case ENDING:
		return run_units(r) == 0;
	case DRAINING:
		return wq_len(r->q) == 0;
	default:
		return true;
	}
}

/* ---- signals ------------------------------------------------------------- */

static void tell(const struct run *r, const char *what)
{
	if (!r->opt->quiet)
		say("%s", what);
}

static void asked_to_stop(struct run *r)
{
	switch (++r->nsignals) {
	case 1:
		phases_stop(r);
		if (r->running == 0 && r->phase == STOPPING)
			break;
		tell(r, r->phase == DRAINING
		            ? "stopping: no more input, what there is gets done; once more "
		              "terminates the commands"
		            : "stopping: running commands finish; once more terminates them");
		break;
	case 2:
		r->phase = STOPPING;
		if (r->running == 0)
			break;
		tell(r, "terminating the commands; once more kills them");
		job_terminate_all(r, r->opt->grace_ns);
		break;
	default:
		r->phase = STOPPING;
		job_terminate_all(r, 0);
		break;
	}
}

static void workers(struct run *r, bool more)
{
	if (more)
		budget_raise(r, r->workers + 1);
	if (more ? r->workers >= budget_workers(r) : r->workers <= 1)
		return;
	r->workers += more ? 1 : -1u;
	if (!r->opt->quiet)
		say("%" PRIu32 " %s", r->workers, r->workers == 1 ? "worker" : "workers");
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct run *r = (struct run *)(void *)((char *)w - offsetof(struct run, signals));
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->fd, &info, sizeof info) == sizeof info) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			job_reap(r);
			break;
		case SIGUSR1:
			workers(r, true);
			break;
		case SIGUSR2:
			workers(r, false);
			break;
		case SIGQUIT:
			/* Commands must not outlive us: somebody might work on their keys again. */
			r->nsignals = 2;
			asked_to_stop(r);
			break;
		default:
			asked_to_stop(r);
			break;
		}
	}
}

/* Started with nohup, or in the background of a script: that stays so, for the commands too. */
static bool is_ignored(int signal)
{
	struct sigaction old;

	return sigaction(signal, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

static void ignore(int number)
{
	if (is_ignored(number))
		return;
	sigaddset(&ours, number);
	signal(number, SIG_IGN);
}

bool phases_watch(struct run *r)
{
	static const int asks[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	struct sigaction fresh = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
		if (!is_ignored(asks[i]))
			sigaddset(&set, asks[i]);
	/* An ignored SIGCHLD would reap the commands behind our back. */
	sigaction(SIGCHLD, &fresh, NULL);
	sigemptyset(&ours);
	ignore(SIGPIPE);
	/* A file that must not grow any more is an error like others. */
	ignore(SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, &mask_before);
	r->signals = (struct watch){
	    .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
	    .ready = on_signal,
	};
	if (r->signals.fd < 0 || !loop_watch(&r->loop, &r->signals, EPOLLIN)) {
		say("signals: %s", strerror(errno));
		return false;
	}
	return true;
}
