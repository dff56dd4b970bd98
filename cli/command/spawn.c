/*
 * How a command is executed: no shell, its own process group, nothing on its standard input, and
 * signals and limits as we found them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wq/group.h>

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
	static const char *const names[] = {
	    "WQ_KEY=",   "WQ_KEYS=",  "WQ_ATTEMPT=",    "WQ_WORKER=",    "WQ_PRIORITY=",
	    "WQ_VALUE=", "WQ_GROUP=", "NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC="};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

enum { OWN = 6 };

static void variable(struct text *t, const char *name, const void *bytes, size_t n)
{
	text_print(t, "%s=", name);
	text_add(t, bytes, n);
	text_add(t, "", 1);
}

static void number(struct text *t, const char *name, int64_t n)
{
	text_print(t, "%s=%" PRId64, name, n);
	text_add(t, "", 1);
}

/* What only a command with one key has: one of several would be taken for the only one. */
static void own_of_key(const struct run *r, struct text *t, const struct held *h)
{
	const wq_item *item = &h->item;
	wq_separator by = r->opt->group_by;
	wq_key group;

	variable(t, "WQ_KEY", h->key, h->len);
	number(t, "WQ_PRIORITY", item->priority);
	if (item->value)
		variable(t, "WQ_VALUE", item->value, item->value_len);
	if (by.n > 0 && wq_group_before(&by, h->key, h->len, &group) == WQ_OK)
		variable(t, "WQ_GROUP", group.key, group.len);
}

/* At most OWN are this attempt's, and stand before the others, which stay. */
static void environment(const struct run *r, struct job *j)
{
	char *own[OWN + 1];
	size_t nown;

	j->env.n = 0;
	if (r->opt->max_args > 1)
		number(&j->env, "WQ_KEYS", j->nheld);
	else
		own_of_key(r, &j->env, &j->held[0]);
	number(&j->env, "WQ_ATTEMPT", j->held[0].item.attempts);
	number(&j->env, "WQ_WORKER", j->worker);
	if (!j->envp) {
		size_t n = 0, kept = OWN;

		while (environ[n])
			n++;
		j->envp = grow(NULL, (n + OWN + 1) * sizeof *j->envp);
		for (size_t i = 0; i < n; i++)
			if (!is_private(environ[i]))
				j->envp[kept++] = environ[i];
		j->envp[kept] = NULL;
	}
	nown = point(&j->env, own);
	j->env_at = OWN - nown;
	memcpy(j->envp + j->env_at, own, nown * sizeof own[0]);
}

/* Where the key is part of the command's name, it is looked for anew. */
static int execute(struct run *r, struct job *j, int out, int err)
{
	struct text found = {0};
	struct launch l = {
	    .path = r->path,
	    .argv = j->argv,
	    .envp = j->envp + j->env_at,
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
