/*
 * Commands: one for each worker at a time, in a process group of its own.
 *
 *   RUNNING   the command has not ended
 *   LEAVING   it has, but others of its group have not. They have half a second to leave it, by
 *             setsid(2): `setsid COMMAND &` starts a process that is to outlive the command, and
 *             the shell may end before that process has left. Then they are terminated, and the
 *             key is held until they are gone
 */
#ifndef CLI_COMMAND_JOB_H
#define CLI_COMMAND_JOB_H

#include <sys/types.h>
#include <wq/queue.h>

#include "cli/run.h"

enum job_state { JOB_FREE, JOB_RUNNING, JOB_LEAVING };

/* A key that a command works on. */
struct held {
	wq_item item;
	char *key; /* our copy of it, with a NUL */
	size_t len;
	int64_t queued_ns;   /* how long it was in line */
	uint32_t merged;     /* adds that this attempt answers, beside the first */
	bool cancelled;      /* while the command runs */
	const char *outcome; /* of the attempt, once it is over */
};

struct job {
	enum job_state state;
	uint32_t worker;   /* from 1 */
	struct held *held; /* one at least */
	uint32_t nheld, room;
	pid_t pid;  /* and the group */
	int status; /* as waitpid() tells it */
	int64_t began_ns, ended_ns;
	int64_t next_ns; /* when something is to be done about it; WQ_NEVER */
	int64_t term_ns; /* LEAVING: when who is left is terminated */
	int64_t kill_ns; /* LEAVING: when who is left is killed */
	int64_t look_ns; /* LEAVING: between two looks */
	bool terminated; /* SIGTERM was sent */
	bool killed;     /* SIGKILL was sent */
	bool timed_out;
	bool stopped;   /* ended by us because the run stops, or a key was cancelled: no failure */
	int wants_tty;  /* the signal that stopped it, because we have the terminal; 0: none */
	bool no_tty;    /* it was ended because it cannot have it */
	bool told_stop; /* that somebody has stopped it */
	bool captured;
	bool unkept; /* not started, because there is no place for its output: --results */
	struct capture out, err;
	struct text env;  /* "WQ_KEY=..." and so on */
	struct text args; /* all arguments, each with its NUL */
	char **argv, **envp;
	size_t env_at; /* where envp begins */
};

/* Where is the command? 0, or EXIT_NOT_FOUND, EXIT_NOT_EXEC after a message. */
int job_find_command(struct run *r);
/* Start commands while there are keys and workers for them. */
void job_start_all(struct run *r);
/* When that can go on, or something is due with a running one; WQ_NEVER: not by itself. */
int64_t job_next_ns(struct run *r);
/* Children have ended, or were stopped. */
void job_reap(struct run *r);
/* Time-outs. */
void job_due(struct run *r);
/* Ask a command to end; it is killed after that span. */
void job_terminate(struct run *r, struct job *j, int64_t grace_ns);
/* End all commands: they have so long before they are killed. 0: at once. */
void job_terminate_all(struct run *r, int64_t grace_ns);
/* The one that has this key, and where; NULL: none. */
struct job *job_of(struct run *r, const void *key, size_t len, struct held **held);
/* The keys of a command, for messages: the first, and how many more there are. */
const char *job_shown(const struct job *j);
/* Another rate of starts; 0: none. False: no memory. */
bool job_set_rate(struct run *r, double rate, int burst);
void job_release(struct run *r);

/* ---- hold.c ---- */

/* Take keys for one command; false: there are none. */
bool hold_keys(struct run *r, struct job *j);
/* They are too long for one: keep half of them, and take no more than that from now on. */
void hold_fewer(struct run *r, struct job *j);

/* ---- spawn.c ---- */

/* Start the command for the job's key: 0, an errno, or -errno if its results have no place. */
int spawn(struct run *r, struct job *j);
/* The words of the command as they would be executed. */
void spawn_words(struct run *r, struct job *j);

/* ---- settle.c ---- */

/* The attempt is over: what becomes of its key, and who is told. */
void settle(struct run *r, struct job *j);
/* A command was not executed: is that its keys' own fault? It would not be so with others. */
bool settle_is_own(struct run *r, const struct job *j, int error);
/* It is. */
void settle_unstarted(struct run *r, struct job *j, int error);
/* It is not: they go back to the head of the line, in their order, and nothing is counted. */
void settle_back(struct run *r, struct job *j);
/* wq_options.dead_letter */
void settle_dead(void *run, const wq_item *item);

#endif
