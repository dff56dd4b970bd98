/*
 * `wq run`: one thread, one loop. Keys come in (source.c, control.c), go through the queue
 * (intake.c), and are worked on by commands (job.c) whose output is passed on (capture.c,
 * stream.c); what becomes of them is counted, logged and kept (report.c, log.c, keep.c).
 *
 *   phase    | keys come in | commands are started for          | ends when
 *   ---------+--------------+-----------------------------------+------------------------------
 *   OPEN     | yes          | keys in line                      | the input ends: ENDING
 *   ENDING   | no           | the same, and retries in time     | nothing is left
 *   DRAINING | no           | the same; what waits comes at once| nothing is in line or running
 *   STOPPING | no           | none                              | nothing is running
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <wq.h>
#include <wq/metrics.h>

#include "cli/base/loop.h"
#include "cli/base/say.h"
#include "cli/command/stall.h"
#include "cli/command/tty.h"
#include "cli/files/append.h"
#include "cli/files/replace.h"
#include "cli/options.h"
#include "cli/output/capture.h"
#include "cli/output/stream.h"
#include "cli/queue/dead.h"

enum phase { OPEN, ENDING, DRAINING, STOPPING };

/*
 * Every key that is given is one unit of work or merges with one:
 *   given = merged + refused + done + dead + cancelled + what is there
 * `wq retry` of a dead key takes its death back: dead is one less, and it is there again.
 */
struct counts {
	uint64_t given;
	uint64_t bytes; /* of those keys */
	uint64_t merged;
	uint64_t refused; /* too long, or with a NUL */
	uint64_t done;
	uint64_t dead;
	uint64_t cancelled;
	uint64_t attempts; /* commands that were started */
	uint64_t failed;   /* of those, that failed */
};

struct job;
struct sequence;
struct keep;
struct record;
struct source;
struct control;
struct notify;

struct run {
	const struct options *opt;
	struct loop loop;
	wq_queue *q;
	wq_registry *registry;
	enum phase phase;
	struct counts count;
	int64_t began_ns;
	int64_t now_ns;  /* renewed for each turn of the loop */
	bool halted;     /* by keys that died: --halt */
	int status;      /* EXIT_NOT_FOUND, EXIT_NOT_EXEC: why it stops */
	bool trouble;    /* something went wrong that keys do not tell: EXIT_TROUBLE */
	uint64_t left;   /* at the end: keys that are left */
	uint64_t saved;  /* of those, that are in the file of --leftover */
	uint64_t unread; /* of those, that were never taken from the input */

	/* job.c */
	struct job **job; /* by worker; NULL: never started */
	uint32_t njob;    /* room in job */
	uint32_t workers; /* wanted */
	uint32_t running; /* commands */
	uint32_t held;    /* keys that they work on */
	size_t args_max;  /* bytes of keys that one command can be given, as far as is known */
	bool paused;
	bool blocked;        /* keys are queued, but of groups that can start none now */
	struct stall stall;  /* no command can be executed for now */
	bool executed;       /* one was */
	wq_limiter *starts;  /* NULL: no rate */
	int64_t start_at_ns; /* with a rate: when the token that was taken is there; 0: none was */
	char *path;          /* of the command; NULL: it depends on the key */
	int null_fd;
	struct rlimit nofile; /* as we found it, for the commands */
	bool raised;          /* ours is higher */

	struct stream out, err;
	struct sequence *sequence; /* of outputs, by --keep-order; NULL: none yet */
	void *tally;               /* intake.c: merged adds of keys that wait for their attempt */
	struct dead dead;

	struct tty tty;

	struct watch signals;
	int nsignals; /* that asked to stop */

	struct append log, dead_file;
	struct keep *keep; /* NULL: not open yet */
	int results_dir;   /* -1: none */

	struct source *source;   /* NULL: none */
	struct control *control; /* NULL: none */
	struct notify *notify;   /* NULL: none */
};

/* ---- run.c ---- */

int run_main(int argc, char **argv);

/* Units of work that are there, in whatever state; see struct counts. */
uint64_t run_units(const struct run *r);

/* ---- intake.c ---- */

/* A key, and what comes with it. */
struct given {
	const void *key;
	size_t len;
	int64_t after_ns; /* no sooner than that; 0: as the options say */
	int32_t priority;
	const void *value; /* NULL: none */
	size_t value_len;
};

/*
 * A key was given. Answers what the queue did; WQ_ESHUTDOWN when no keys are taken any more.
 * Nothing is said.
 */
int intake_add(struct run *r, const struct given *g);
/* Why it was refused. */
const char *intake_error(int rc);
/* A key that an earlier run has left, with its time and its failures. Answers like intake_add(). */
int intake_restore(struct run *r, const struct record *rec);
/* The queue has as many keys as it may: nobody reads any more keys for now. */
bool intake_full(const struct run *r);
/* A key that was given while its command ran comes back for another reason: one attempt. */
void intake_joined(struct run *r, const void *key, size_t len);
/* How many adds have merged with this one; they are not counted twice. */
uint32_t intake_merged(struct run *r, const void *key, size_t len);
/* A dead key is queued again; WQ_ENOTFOUND: it is none, WQ_ESHUTDOWN as above. */
int intake_revive(struct run *r, const void *key, size_t len);
/* Takes a key back: the WQ_STATE_ bits that it had, or WQ_ENOTFOUND. */
int intake_cancel(struct run *r, const void *key, size_t len);
void intake_release(struct run *r);

/* ---- phases.c ---- */

bool phases_watch(struct run *r);
/* The input has ended. */
void phases_ending(struct run *r);
/* As wq drain does: no more input, and everything is finished. */
void phases_drain(struct run *r);
/* As the first signal does. */
void phases_stop(struct run *r);
/* A key has died: --halt may end the run. */
void phases_halt(struct run *r);
/* Signals as they were when the program began, for the commands. */
const sigset_t *phases_child_mask(void);
/* Signals that we ignore, and they get back. */
const sigset_t *phases_child_defaults(void);
bool phases_over(struct run *r);

#endif
