/* The life of commands, from the key that is taken to the last process of their group. */
#include "cli/command/job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command/find.h"
#include "cli/command/words.h"
#include "cli/output/sequence.h"

/* At a group of which nobody tells us: at first so soon, then each time twice as long. */
#define LOOK_FIRST WQ_MILLISECOND
#define LOOK_LAST (20 * WQ_MILLISECOND)
#define LEAVE (500 * WQ_MILLISECOND) /* so long have those who want to leave the group */
#define GIVE_UP WQ_SECOND            /* on what does not go even when killed */

/* ---- the command --------------------------------------------------------- */

int job_find_command(struct run *r)
{
	const char *name = r->opt->command[0];
	struct text path = {0};
	int rc;

	/* It is known only with the key. */
	if (words_vary(name))
		return 0;
	rc = find(name, &path);
	if (rc == 0) {
		r->path = path.bytes;
		return 0;
	}
	if (rc == EXIT_NOT_FOUND)
		say("%s: command not found%s", name,
		    strchr(name, ' ') ? " (its words are given one by one, or run it by sh -c)"
		                      : "");
	else
		say("%s cannot be executed: %s", name, strerror(errno));
	text_release(&path);
	return rc;
}

/* ---- starting ------------------------------------------------------------ */

static struct job *free_worker(struct run *r)
{
	if (r->workers > r->njob) {
		r->job = grow(r->job, r->workers * sizeof(struct job *));
		memset(r->job + r->njob, 0, (r->workers - r->njob) * sizeof(struct job *));
		r->njob = r->workers;
	}
	for (uint32_t i = 0; i < r->workers; i++) {
		if (!r->job[i]) {
			r->job[i] = grow(NULL, sizeof(struct job));
			memset(r->job[i], 0, sizeof(struct job));
			r->job[i]->worker = i + 1;
		}
		if (r->job[i]->state == JOB_FREE)
			return r->job[i];
	}
	return NULL;
}

/* Could one be started, if there is a key for it? */
static bool may_start(const struct run *r)
{
	return r->phase != STOPPING && !r->paused && r->running < r->workers &&
	       !stream_full(&r->out) && !stream_full(&r->err) && !append_full(&r->log);
}

/* With a rate: has the next start's time come? A token is taken once for each. */
static bool token(struct run *r)
{
	if (!r->starts)
		return true;
	if (r->start_at_ns == 0) {
		int64_t wait = wq_limiter_when(r->starts, NULL, 0, r->now_ns);

		r->start_at_ns = wait > WQ_NEVER - r->now_ns ? WQ_NEVER : r->now_ns + wait;
	}
	return r->start_at_ns <= r->now_ns;
}

static void print_words(struct run *r, struct job *j)
{
	struct text line = {0};

	spawn_words(r, j);
	for (char **word = j->argv; *word; word++) {
		text_str(&line, word == j->argv ? "" : " ");
		text_quoted(&line, *word);
	}
	text_str(&line, "\n");
	stream_write(&r->out, line.bytes, line.n);
	text_release(&line);
}

/* An attempt begins. */
static void count(struct run *r, struct job *j)
{
	j->state = JOB_RUNNING;
	r->running++;
	r->held += j->nheld;
	r->count.attempts += j->nheld;
	for (uint32_t i = 0; i < j->nheld; i++)
		j->held[i].merged = intake_merged(r, j->held[i].key, j->held[i].len);
}

/* Nothing was executed, and it is not the keys' fault: as if nothing had been tried. */
static void postpone(struct run *r, struct job *j, int error)
{
	settle_back(r, j);
	/* The token of --rate is still there. */
	if (r->starts)
		r->start_at_ns = r->now_ns;
	stall_begin(r,
	            j->unkept                  ? STALL_RESULTS
	            : stall_is_shortage(error) ? STALL_SHORTAGE
	                                       : STALL_COMMAND,
	            error);
}

static void start(struct run *r, struct job *j)
{
	int error;

	j->status = 0;
	j->ended_ns = 0;
	j->terminated = j->killed = j->timed_out = j->stopped = false;
	j->wants_tty = 0;
	j->no_tty = j->told_stop = false;
	j->began_ns = r->now_ns;
	j->next_ns = r->opt->timeout_ns > 0 ? r->now_ns + r->opt->timeout_ns : WQ_NEVER;
	error = r->opt->dry_run ? 0 : spawn(r, j);
	for (; error == E2BIG && j->nheld > 1; error = spawn(r, j))
		hold_fewer(r, j);
	/* One key is too long, then, and says nothing about others. */
	if (error == E2BIG)
		r->args_max = SIZE_MAX;
	if (error != 0 && !settle_is_own(r, j, error)) {
		postpone(r, j, error);
		return;
	}
	count(r, j);
	if (r->opt->dry_run) {
		print_words(r, j);
		settle(r, j);
	} else if (error != 0) {
		settle_unstarted(r, j, error);
	} else {
		stall_end(r);
	}
}

void job_start_all(struct run *r)
{
	r->blocked = false;
	/* Without a key there is nothing to try. */
	if (wq_len(r->q) == 0)
		r->stall = (struct stall){0};
	while (may_start(r) && !stall_holds(r) && wq_len(r->q) > 0 && token(r)) {
		struct job *j = free_worker(r);

		/* A token of --rate that was taken is kept. */
		if (!j || !hold_keys(r, j)) {
			r->blocked = j != NULL;
			return;
		}
		r->start_at_ns = 0;
		start(r, j);
	}
}

bool job_set_rate(struct run *r, double rate, int burst)
{
	wq_limiter *l = rate > 0 ? wq_limiter_bucket(rate, burst) : NULL;

	if (l && wq_limiter_status(l) != WQ_OK) {
		wq_limiter_free(l);
		return false;
	}
	if (r->starts)
		wq_limiter_free(r->starts);
	r->starts = l;
	r->start_at_ns = 0;
	return true;
}

int64_t job_next_ns(struct run *r)
{
	int64_t next = WQ_NEVER;

	for (uint32_t i = 0; i < r->njob && r->running > 0; i++)
		if (r->job[i] && r->job[i]->state != JOB_FREE && r->job[i]->next_ns < next)
			next = r->job[i]->next_ns;
	if (may_start(r)) {
		int64_t due = wq_next_deadline(r->q);

		/* The deadline is also when the next group may start a key. */
		if (wq_len(r->q) > 0 && !r->blocked)
			due = stall_holds(r) ? r->stall.next_ns
			      : r->starts    ? r->start_at_ns
			                     : r->now_ns;
		if (due < next)
			next = due;
	}
	return next;
}

/* ---- ending -------------------------------------------------------------- */

static void signal_group(const struct job *j, int signal)
{
	kill(-j->pid, signal);
	/* One that is stopped does not hear it otherwise. */
	if (signal == SIGTERM)
		kill(-j->pid, SIGCONT);
}

/* What is left of a group has no more time than that. */
static void hurry(struct run *r, struct job *j, int64_t grace_ns)
{
	if (r->now_ns + grace_ns < j->kill_ns)
		j->kill_ns = r->now_ns + grace_ns;
	if (!j->terminated)
		j->term_ns = r->now_ns;
	j->next_ns = r->now_ns;
}

void job_terminate(struct run *r, struct job *j, int64_t grace_ns)
{
	int64_t next = r->now_ns + grace_ns;

	if (j->state == JOB_LEAVING) {
		hurry(r, j, grace_ns);
		return;
	}
	if (grace_ns <= 0) {
		signal_group(j, SIGKILL);
		j->terminated = j->killed = true;
		j->next_ns = r->now_ns + GIVE_UP;
		return;
	}
	if (!j->terminated)
		signal_group(j, SIGTERM);
	if (!j->terminated || next < j->next_ns)
		j->next_ns = next;
	j->terminated = true;
}

void job_terminate_all(struct run *r, int64_t grace_ns)
{
	for (uint32_t i = 0; i < r->njob; i++) {
		struct job *j = r->job[i];

		if (!j || j->state == JOB_FREE)
			continue;
		if (j->state == JOB_RUNNING)
			j->stopped = true;
		if (!j->killed)
			job_terminate(r, j, grace_ns);
	}
}

struct job *job_of(struct run *r, const void *key, size_t len, struct held **held)
{
	for (uint32_t i = 0; i < r->njob; i++) {
		struct job *j = r->job[i];

		for (uint32_t k = 0; j && j->state != JOB_FREE && k < j->nheld; k++) {
			*held = &j->held[k];
			if ((*held)->len == len && memcmp((*held)->key, key, len) == 0)
				return j;
		}
	}
	return NULL;
}

const char *job_shown(const struct job *j)
{
	static struct text t;

	if (j->nheld == 1)
		return shown(j->held[0].key, j->held[0].len);
	t.n = 0;
	text_print(&t, "%s and %u more", shown(j->held[0].key, j->held[0].len), j->nheld - 1);
	text_add(&t, "", 1);
	return t.bytes;
}

static void finish(struct run *r, struct job *j)
{
	if (j->captured) {
		struct kept *kept = sequence_keeps(r, j);

		capture_end(&j->out, kept ? &kept->out : NULL);
		capture_end(&j->err, kept ? &kept->err : NULL);
	}
	settle(r, j);
}

/* The command has ended; is anyone of its group left? */
static void look_at_group(struct run *r, struct job *j)
{
	/* Orphans of the group are our children now. */
	while (waitpid(-j->pid, NULL, WNOHANG) > 0)
		;
	if (kill(-j->pid, 0) < 0 && errno == ESRCH)
		finish(r, j);
}

static void command_ended(struct run *r, struct job *j)
{
	j->ended_ns = wq_now(r->q);
	/* By us: then nobody of its group has reason to stay. While it is not waited for, no other
	 * group can have its number; afterwards, as long as somebody is in it. */
	if (j->terminated)
		signal_group(j, SIGTERM);
	if (waitpid(j->pid, &j->status, 0) < 0)
		j->status = 0;
	tty_ended(r, j);
	j->state = JOB_LEAVING;
	j->killed = false;
	j->term_ns = j->ended_ns + (j->terminated ? 0 : LEAVE);
	j->kill_ns = j->term_ns + r->opt->kill_after_ns;
	/* Ended by us: the rest of its group has no more time than it had. */
	if (j->stopped && j->next_ns < j->kill_ns)
		j->kill_ns = j->next_ns;
	j->look_ns = LOOK_FIRST;
	j->next_ns = r->now_ns + j->look_ns;
	look_at_group(r, j);
}

static struct job *by_pid(const struct run *r, pid_t pid)
{
	for (uint32_t i = 0; i < r->njob; i++)
		if (r->job[i] && r->job[i]->state == JOB_RUNNING && r->job[i]->pid == pid)
			return r->job[i];
	return NULL;
}

/* Of stops we are told as of ends, once each. */
static void look_at_stops(struct run *r)
{
	for (;;) {
		siginfo_t info = {.si_pid = 0};
		struct job *j;

		if (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
			return;
		j = by_pid(r, info.si_pid);
		if (j)
			tty_stopped(r, j, info.si_status);
	}
}

void job_reap(struct run *r)
{
	look_at_stops(r);
	for (;;) {
		siginfo_t info = {.si_pid = 0};
		struct job *j;

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			break;
		j = by_pid(r, info.si_pid);
		if (j)
			command_ended(r, j);
		else
			waitpid(info.si_pid, NULL, WNOHANG);
	}
	for (uint32_t i = 0; i < r->njob; i++)
		if (r->job[i] && r->job[i]->state == JOB_LEAVING)
			look_at_group(r, r->job[i]);
}

/*
 * The group of a command that has ended is waited for, asked to go, killed, and given up, in this
 * order. We may be late ourselves: each span begins when the step before it was taken.
 */
static void leaving_due(struct run *r, struct job *j)
{
	if (r->now_ns >= j->term_ns && !j->terminated) {
		signal_group(j, SIGTERM);
		j->terminated = true;
		j->kill_ns += r->now_ns - j->term_ns;
	}
	if (r->now_ns >= j->kill_ns && !j->killed) {
		if (!r->opt->quiet)
			say("%s: what the command left behind is killed", job_shown(j));
		signal_group(j, SIGKILL);
		j->killed = true;
		j->kill_ns = r->now_ns;
	}
	j->look_ns = j->look_ns * 2 < LOOK_LAST ? j->look_ns * 2 : LOOK_LAST;
	j->next_ns = r->now_ns + j->look_ns;
	look_at_group(r, j);
	if (j->state != JOB_LEAVING || !j->killed || r->now_ns < j->kill_ns + GIVE_UP)
		return;
	say("%s: a process of the command's group %d cannot be ended; it is left alone",
	    job_shown(j), (int)j->pid);
	finish(r, j);
}

static void running_due(struct run *r, struct job *j)
{
	if (!j->terminated) {
		j->timed_out = true;
		job_terminate(r, j, r->opt->kill_after_ns);
	} else {
		signal_group(j, SIGKILL);
		j->killed = true;
		j->next_ns = WQ_NEVER;
	}
}

void job_due(struct run *r)
{
	for (uint32_t i = 0; i < r->njob && r->running > 0; i++) {
		struct job *j = r->job[i];

		if (!j || j->state == JOB_FREE || j->next_ns > r->now_ns)
			continue;
		if (j->state == JOB_LEAVING)
			leaving_due(r, j);
		else
			running_due(r, j);
	}
}

void job_release(struct run *r)
{
	for (uint32_t i = 0; i < r->njob; i++) {
		struct job *j = r->job[i];

		if (!j)
			continue;
		capture_release(&j->out);
		capture_release(&j->err);
		text_release(&j->env);
		text_release(&j->args);
		free(j->argv);
		free(j->envp);
		for (uint32_t k = 0; k < j->room; k++)
			free(j->held[k].key);
		free(j->held);
		free(j);
	}
	free(r->job);
	free(r->path);
	if (r->starts)
		wq_limiter_free(r->starts);
}
