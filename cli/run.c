/* `wq run`: everything is set up, the loop turns, everything is told and taken down. */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/budget.h"
#include "cli/command/job.h"
#include "cli/command/launch.h"
#include "cli/files/keep.h"
#include "cli/help.h"
#include "cli/input/source.h"
#include "cli/notify.h"
#include "cli/output/log.h"
#include "cli/output/report.h"
#include "cli/output/results.h"
#include "cli/output/sequence.h"
#include "cli/socket/control.h"
#include "cli/web.h"

uint64_t run_units(const struct run *r)
{
	const struct counts *c = &r->count;

	return c->given - c->merged - c->refused - c->done - c->dead - c->cancelled;
}

/* ---- set up -------------------------------------------------------------- */

/* Descriptors for all that is asked for. */
static void allow_descriptors(struct run *r)
{
	uint32_t room;

	budget_raise(r, r->workers);
	room = budget_workers(r);
	if (r->workers <= room)
		return;
	say("--jobs %" PRIu32 ": a limit of %" PRIu64 " descriptors has room for %" PRIu32
	    " commands beside the socket: that is how many run "
	    "at once",
	    r->workers, budget_limit(), room);
	r->workers = room;
}

static bool make_queue(struct run *r)
{
	const struct options *o = r->opt;
	int rc = wq_registry_new(&r->registry);

	if (rc == WQ_OK)
		rc = wq_new(&r->q,
		            &(wq_options){
				.name = o->name,
				.registry = r->registry,
				.limiter = wq_limiter_jittered(o->backoff_ns, o->backoff_max_ns,
		                                               o->jitter, 0),
				.max_attempts = o->max_attempts,
				.dead_letter = settle_dead,
				.dead_ctx = r,
				.within = o->max_wait_ns > 0,
				.priorities = 1,
				.aging_ns = o->aging_ns,
				.values = 1,
				.merge = o->merge,
				/* Only wq_merge_append() looks at it, and does not write. */
				.merge_ctx = (void *)(uintptr_t)o->merge_with,
				.group = o->group_by.n > 0 ? wq_group_before : NULL,
				.group_ctx =
				    o->group_by.n > 0 ? (void *)(uintptr_t)&o->group_by : NULL,
				.group_limit = o->group_jobs,
				.group_rate = o->group_rate,
			    });
	if (rc != WQ_OK) {
		say("the queue cannot be made: %s", wq_strerror(rc));
		return false;
	}
	r->began_ns = r->now_ns = wq_now(r->q);
	return true;
}

static struct stream *messages;

static void put_message(const char *line, size_t n)
{
	stream_write(messages, line, n);
}

static bool basics(struct run *r)
{
	r->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (r->null_fd < 0 || !loop_open(&r->loop) || !launch_open()) {
		say("%s", strerror(errno));
		return false;
	}
	/* What a command leaves behind becomes our child, so that its end is told. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	allow_descriptors(r);
	stream_open(&r->out, &r->loop, STDOUT_FILENO);
	stream_open(&r->err, &r->loop, STDERR_FILENO);
	messages = &r->err;
	say_to = put_message;
	return make_queue(r);
}

/* Everything that can fail, before the first key is taken. 0 or an exit status. */
static int set_up(struct run *r)
{
	const struct options *o = r->opt;
	int rc = job_find_command(r);

	if (rc != 0)
		return rc;
	/* Signals first: threads that are started later leave them to us. */
	if (!basics(r) || !phases_watch(r) || !log_open(r) || !keep_open(r) || !web_file_open(r) ||
	    (o->results && !results_make(r)) || (!o->no_input && !source_open(r)) ||
	    (o->socket && !control_open(r)) || !web_open(r))
		return EXIT_TROUBLE;
	if (o->rate > 0 && !job_set_rate(r, o->rate, o->burst)) {
		say("--rate: out of memory");
		return EXIT_TROUBLE;
	}
	report_open(r);
	notify_open(r);
	notify_ready(r);
	return 0;
}

/* ---- the loop ------------------------------------------------------------ */

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long nothing can happen by itself. */
static int64_t idle_span(struct run *r)
{
	int64_t next =
	    min(job_next_ns(r), min(report_next_ns(r), min(notify_next_ns(r), control_next_ns(r))));

	next = min(next, min(append_next_ns(&r->log), append_next_ns(&r->dead_file)));
	if (source_eager(r) || phases_over(r))
		return 0;
	return next == WQ_NEVER ? WQ_NEVER : next - wq_now(r->q);
}

/* Nobody reads what we write: as if we were asked to stop. */
static void mind_output(struct run *r)
{
	static bool told;

	if (!r->out.closed || told)
		return;
	told = true;
	say("standard output: %s; stopping", strerror(r->out.error));
	r->trouble = true;
	r->phase = r->phase < STOPPING ? STOPPING : r->phase;
}

static void unchoke(struct run *r)
{
	if (!r->opt->line_buffer)
		return;
	for (uint32_t i = 0; i < r->njob; i++) {
		struct job *j = r->job[i];

		if (j && j->state != JOB_FREE && j->captured) {
			capture_choke(&j->out);
			capture_choke(&j->err);
		}
	}
}

static void turn(struct run *r)
{
	r->now_ns = wq_now(r->q);
	job_due(r);
	mind_output(r);
	source_pump(r);
	control_turn(r);
	job_start_all(r);
	source_watch(r);
	append_turn(&r->log, r->now_ns);
	keep_turn(r);
	unchoke(r);
	report_turn(r);
	notify_turn(r);
}

static void work(struct run *r)
{
	while (turn(r), !phases_over(r)) {
		loop_wait(&r->loop, idle_span(r));
		r->now_ns = wq_now(r->q);
	}
}

/* ---- take down ----------------------------------------------------------- */

static int verdict(const struct run *r)
{
	if (r->status != 0)
		return r->status;
	/* That keys are left then is because of those that died. */
	if (r->halted)
		return EXIT_FAILED;
	if (r->left > 0)
		return EXIT_LEFT;
	if (r->count.dead > 0)
		return EXIT_FAILED;
	return r->trouble ? EXIT_TROUBLE : EXIT_OK;
}

/* Waits for readers; after a request to stop for --grace only, after a second one not at all. */
static void last_output(struct run *r, int64_t since, int begin)
{
	while (!stream_idle(&r->out) || !stream_idle(&r->err) || append_waits(&r->log) ||
	       append_waits(&r->dead_file)) {
		int64_t end = r->nsignals > 0 ? since + r->opt->grace_ns : WQ_NEVER;

		r->now_ns = wq_now(r->q);
		if (r->nsignals > 1 && r->nsignals > begin)
			end = 0;
		/* Of what files have not taken, log.c and keep.c tell. */
		if (r->now_ns >= end && stream_idle(&r->out) && stream_idle(&r->err))
			return;
		if (r->now_ns >= end) {
			stream_drop(&r->out);
			stream_drop(&r->err);
			say("standard output has no reader: the rest of the output is lost");
			stream_drop(&r->err);
			r->trouble = true;
			return;
		}
		notify_turn(r);
		end = min(end, notify_next_ns(r));
		loop_wait(&r->loop, end == WQ_NEVER ? WQ_NEVER : end - r->now_ns);
	}
}

static void tell_left(const struct run *r)
{
	const char *keys = r->left == 1 ? "key" : "keys", *file = r->opt->leftover;

	if (r->left == 0 || r->opt->quiet)
		return;
	if (!file)
		say("stopped with %" PRIu64 " %s unfinished%s", r->left, keys,
		    r->opt->dry_run ? "" : " (--leftover FILE would keep them)");
	else if (r->saved == r->left)
		say("stopped with %" PRIu64 " %s unfinished: %s", r->left, keys, file);
	else
		say("stopped with %" PRIu64 " %s unfinished: %" PRIu64 " in %s, %" PRIu64
		    " printed above",
		    r->left, keys, r->saved, file, r->left - r->saved);
}

static void tell(struct run *r)
{
	int begin = r->nsignals;

	r->now_ns = wq_now(r->q);
	report_close(r);
	sequence_show_all(r);
	/* Before anything that may take long: it is all there is of these keys. */
	keep_rest(r);
	web_file_write(r);
	last_output(r, wq_now(r->q), begin);
	log_close(r);
	keep_last(r);
	mind_output(r);
	r->trouble |= r->err.closed;
	tell_left(r);
	if (r->opt->summary)
		report_summary(r);
	last_output(r, wq_now(r->q), begin);
}

static void take_down(struct run *r)
{
	say_to = NULL;
	control_close(r);
	notify_close(r);
	web_close();
	source_close(r);
	keep_close(r);
	results_release(r);
	job_release(r);
	tty_close(r);
	intake_release(r);
	sequence_release(r);
	dead_release(&r->dead);
	if (r->q)
		wq_free(r->q);
	if (r->registry)
		wq_registry_free(r->registry);
}

int run_main(int argc, char **argv)
{
	struct options options;
	struct run run = {
	    .opt = &options,
	    .args_max = SIZE_MAX,
	    .results_dir = -1,
	    .tty = {.fd = -1},
	};
	int rc = options_parse(&options, argc, argv);

	if (rc < 0)
		return help("run");
	if (rc > 0)
		return rc;
	run.workers = options.jobs;
	rc = set_up(&run);
	if (rc == 0) {
		work(&run);
		tell(&run);
		rc = verdict(&run);
	}
	take_down(&run);
	return rc;
}
