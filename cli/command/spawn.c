/*
 * How a command is executed: no shell, its own process group, nothing on its standard input, and
 * signals and limits as we found them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/find.h"
#include "cli/command/job.h"
#include "cli/command/launch.h"
#include "cli/command/words.h"
#include "cli/output/results.h"

extern char **environ;

/* Pointers to the strings that stand one after another; NULL at the end. */
static size_t point(const struct text *t, char **to)
{
	size_t n = 0;

	for (size_t at = 0; at < t->n; at += strlen(t->bytes + at) + 1)
		to[n++] = t->bytes + at;
	to[n] = NULL;
	return n;
}

void spawn_words(struct run *r, struct job *j)
{
	size_t n;

	j->args.n = 0;
	n = words_expand(&j->args, r->opt->command, j);
	j->argv = grow(j->argv, (n + 1) * sizeof *j->argv);
	point(&j->args, j->argv);
}

/* What the service manager told us is not for them. */
static bool is_private(const char *variable)
{
	static const char *const names[] = {"WQ_KEY=",       "WQ_KEYS=",       "WQ_ATTEMPT=",
	                                    "WQ_WORKER=",    "NOTIFY_SOCKET=", "WATCHDOG_PID=",
	                                    "WATCHDOG_USEC="};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* The first three are this attempt's; the others stay. */
static void environment(const struct run *r, struct job *j)
{
	j->env.n = 0;
	/* One of several would be taken for the only one. */
	if (r->opt->max_args > 1) {
		text_print(&j->env, "WQ_KEYS=%u", j->nheld);
		text_add(&j->env, "", 1);
	} else {
		text_str(&j->env, "WQ_KEY=");
		text_add(&j->env, j->held[0].key, j->held[0].len + 1);
	}
	text_print(&j->env, "WQ_ATTEMPT=%u", j->held[0].item.attempts);
	text_add(&j->env, "", 1);
	text_print(&j->env, "WQ_WORKER=%u", j->worker);
	text_add(&j->env, "", 1);
	if (!j->envp) {
		size_t n = 0, kept = 3;

		while (environ[n])
			n++;
		j->envp = grow(NULL, (n + 4) * sizeof *j->envp);
		for (size_t i = 0; i < n; i++)
			if (!is_private(environ[i]))
				j->envp[kept++] = environ[i];
		j->envp[kept] = NULL;
	}

	char *own[4];

	point(&j->env, own);
	memcpy(j->envp, own, 3 * sizeof own[0]);
}

/* Where the key is part of the command's name, it is looked for anew. */
static int execute(struct run *r, struct job *j, int out, int err)
{
	struct text found = {0};
	struct launch l = {
	    .path = r->path,
	    .argv = j->argv,
	    .envp = j->envp,
	    .fd = {r->null_fd, out, err},
	    .mask = phases_child_mask(),
	    .defaults = phases_child_defaults(),
	    .nofile = r->raised ? &r->nofile : NULL,
	};
	int rc = 0;

	if (!l.path && strchr(j->argv[0], '/')) {
		l.path = j->argv[0];
	} else if (!l.path) {
		rc = find(j->argv[0], &found) != 0 ? errno : 0;
		l.path = found.bytes;
	}
	if (rc == 0)
		rc = launch(&l, &j->pid);
	text_release(&found);
	return rc;
}

/* Two pipes to us; the command's ends in fd. */
static int capture_both(struct run *r, struct job *j, int fd[2])
{
	const char *tag = r->opt->tag ? j->held[0].key : NULL;
	size_t len = j->held[0].len;

	fd[0] = capture_open(&j->out, &r->loop, &r->out, r->opt->line_buffer, tag, len);
	if (fd[0] < 0)
		return errno;
	fd[1] = capture_open(&j->err, &r->loop, &r->err, r->opt->line_buffer, tag, len);
	if (fd[1] < 0) {
		int error = errno;

		close(fd[0]);
		capture_drop(&j->out);
		return error;
	}
	return 0;
}

int spawn(struct run *r, struct job *j)
{
	int fd[2] = {-1, -1}, rc;

	spawn_words(r, j);
	environment(r, j);
	j->captured = !r->opt->results;
	rc = j->captured ? capture_both(r, j, fd) : results_open(r, j, fd);
	j->unkept = rc != 0 && !j->captured;
	if (rc != 0)
		return rc;
	rc = execute(r, j, fd[0], fd[1]);
	close(fd[0]);
	close(fd[1]);
	if (rc != 0 && j->captured) {
		capture_drop(&j->out);
		capture_drop(&j->err);
	}
	return rc;
}
