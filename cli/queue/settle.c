/*
 * What becomes of a key after an attempt:
 *
 *   the command                              | the key
 *   -----------------------------------------+-------------------------------------------
 *   exit 0                                   | done; once more if it was given meanwhile
 *   exit 100, and it had one key             | dead
 *   any other exit, a signal, a time-out     | again later; dead after the last attempt
 *   ended by us, because the run stops       | back to the head of the line: left over
 *   ended by us, and the key was cancelled   | cancelled
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/command/job.h"
#include "cli/files/keep.h"
#include "cli/output/log.h"
#include "cli/output/results.h"
#include "cli/output/sequence.h"
#include "cli/socket/control.h"

enum { EXIT_PERMANENT = 100 };

/* Work that comes back merges with what was given meanwhile: two units become one. */
static void joins(struct run *r, const struct held *h, int state)
{
	if (state > 0 && state & (WQ_STATE_DIRTY | WQ_STATE_WAITING)) {
		intake_joined(r, h->key, h->len);
		sequence_join(r, h->key, h->len);
	}
}

void settle_dead(void *run, const wq_item *item)
{
	struct run *r = run;

	r->count.dead++;
	keep_dead(r, item->key, item->len);
	/* Only a socket can ask for it. A key that was given meanwhile comes again. */
	if (r->control &&
	    !(wq_state(r->q, item->key, item->len) & (WQ_STATE_DIRTY | WQ_STATE_WAITING)))
		dead_put(&r->dead, item, r->now_ns);
}

static const char *done(struct run *r, struct held *h)
{
	wq_settle(r->q, &h->item, WQ_DONE);
	r->count.done++;
	return "done";
}

static const char *back(struct run *r, struct held *h)
{
	joins(r, h, wq_state(r->q, h->key, h->len));
	wq_requeue(r->q, &h->item, WQ_HEAD);
	return "stopped";
}

static const char *taken_back(struct run *r, struct held *h)
{
	wq_done(r->q, &h->item);
	r->count.cancelled++;
	return "cancelled";
}

/* By WQ_RETRY or WQ_FATAL; settle_dead() is told by the queue if it dies. */
static const char *fail(struct run *r, struct held *h, wq_verdict verdict)
{
	int state = wq_state(r->q, h->key, h->len);
	int rc = wq_settle(r->q, &h->item, verdict);

	switch (rc) {
	case WQ_DEAD:
		return "dead";
	case WQ_CANCELLED:
		r->count.cancelled++;
		return "cancelled";
	default:
		joins(r, h, state);
		return "retry";
	}
}

static const char *why(const struct job *j, char *text, size_t size)
{
	if (j->timed_out)
		snprintf(text, size, "timed out");
	else if (j->no_tty)
		snprintf(text, size, "could not have the terminal");
	else if (WIFSIGNALED(j->status))
		snprintf(text, size, "was ended by signal %d (%s)", WTERMSIG(j->status),
		         strsignal(WTERMSIG(j->status)));
	else
		snprintf(text, size, "exited with %d", WEXITSTATUS(j->status));
	return text;
}

static bool is_dead(const struct held *h)
{
	return strcmp(h->outcome, "dead") == 0;
}

static bool comes_again(const struct held *h)
{
	return strcmp(h->outcome, "retry") == 0 || strcmp(h->outcome, "stopped") == 0;
}

static void failed(struct run *r, const struct job *j, struct held *h, bool for_good)
{
	uint32_t attempt = h->item.attempts;
	char reason[100];

	r->count.failed++;
	h->outcome = fail(r, h, for_good ? WQ_FATAL : WQ_RETRY);
	if (is_dead(h) ? !r->opt->quiet : r->opt->verbose)
		say("%s: %s in attempt %u%s", shown(h->key, h->len), why(j, reason, sizeof reason),
		    attempt, is_dead(h) ? ", and is dead" : "");
}

static void tell_cut(struct run *r, const struct job *j, const struct capture *c)
{
	if (!c->error)
		return;
	say("%s: part of its output is lost: %s", job_shown(j), strerror(c->error));
	r->trouble = true;
}

/* The worker is free again; who waits for the keys is told. */
static void release(struct run *r, struct job *j)
{
	j->state = JOB_FREE;
	r->running--;
	r->held -= j->nheld;
	/* What one more command needs may be there now. */
	r->stall.next_ns = 0;
	for (uint32_t i = 0; i < j->nheld; i++) {
		const struct held *h = &j->held[i];

		if (!comes_again(h))
			sequence_end(r, h->key, h->len, false);
		control_settled(r, h->key, h->len, h->outcome);
		if (is_dead(h))
			phases_halt(r);
	}
}

static void settle_one(struct run *r, const struct job *j, struct held *h, bool success)
{
	/* One of several tells nothing about the others. */
	bool for_good =
	    WIFEXITED(j->status) && WEXITSTATUS(j->status) == EXIT_PERMANENT && j->nheld == 1;

	if (success)
		h->outcome = done(r, h);
	else if (j->stopped)
		h->outcome = h->cancelled ? taken_back(r, h) : back(r, h);
	else
		failed(r, j, h, for_good);
	if (!r->opt->dry_run)
		log_attempt(r, j, h);
}

void settle(struct run *r, struct job *j)
{
	bool success =
	    WIFEXITED(j->status) && WEXITSTATUS(j->status) == 0 && !j->timed_out && !j->no_tty;
	/* Those that go back to the head of the line keep their order. */
	bool last_first = j->stopped && !success;

	for (uint32_t i = 0; i < j->nheld; i++)
		settle_one(r, j, &j->held[last_first ? j->nheld - 1 - i : i], success);
	if (j->captured && !r->opt->dry_run) {
		tell_cut(r, j, &j->out);
		tell_cut(r, j, &j->err);
	}
	release(r, j);
}

bool settle_is_own(struct run *r, const struct job *j, int error)
{
	if (j->unkept)
		return !results_lack(r, error);
	return error == E2BIG || (!r->path && !stall_is_shortage(error));
}

void settle_back(struct run *r, struct job *j)
{
	for (uint32_t i = j->nheld; i-- > 0;)
		back(r, &j->held[i]);
}

/* Where the key is part of its name: which command was that? */
static void name_command(const struct job *j, int error)
{
	if (error == ENOENT)
		say("there is no command %s (no shell is involved: sh -c '...' runs one)",
		    shown(j->argv[0], strlen(j->argv[0])));
}

static void unstarted(struct run *r, struct job *j, const char *what, int error, bool for_good)
{
	say("%s: %s: %s", job_shown(j), what, strerror(error));
	for (uint32_t i = 0; i < j->nheld; i++) {
		struct held *h = &j->held[i];

		r->count.failed++;
		h->outcome = fail(r, h, for_good ? WQ_FATAL : WQ_RETRY);
	}
}

void settle_unstarted(struct run *r, struct job *j, int error)
{
	j->ended_ns = j->began_ns;
	/* As a shell would tell it. */
	j->status = (error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXEC) << 8;
	if (j->unkept) {
		unstarted(r, j, "its results cannot be kept", error, false);
	} else {
		unstarted(r, j, "the command cannot be started", error, error != ETXTBSY);
		if (!r->path)
			name_command(j, error);
	}
	for (uint32_t i = 0; i < j->nheld && !j->unkept; i++)
		log_attempt(r, j, &j->held[i]);
	release(r, j);
}
