/* Nothing can be executed for now. */
#include "cli/command/stall.h"

#include <errno.h>
#include <string.h>

#include "cli/command/find.h"
#include "cli/run.h"

#define FIRST (10 * WQ_MILLISECOND)
#define LAST WQ_SECOND
#define TELL_FIRST (15 * WQ_SECOND) /* then four times as long, each time */
#define TELL_LAST (3600 * WQ_SECOND)

bool stall_is_shortage(int error)
{
	/* ENOSPC: of epoll, for which a user may have so many descriptors. */
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
	       error == ENOSPC;
}

bool stall_holds(const struct run *r)
{
	return r->stall.kind != STALL_NONE && r->now_ns < r->stall.next_ns;
}

/* ---- telling ------------------------------------------------------------- */

static const char *span_text(int64_t ns)
{
	static struct text t;

	t.n = 0;
	text_span(&t, ns);
	text_add(&t, "", 1);
	return t.bytes;
}

/* Others run: the next one comes when one of them has ended, as far as we know. */
static void tell_crowded(struct run *r, int error)
{
	static bool told;

	if (!told)
		say("only %u commands can run at once: %s", r->running, strerror(error));
	told = true;
}

static void tell_first(struct run *r, int error)
{
	switch (r->stall.kind) {
	case STALL_COMMAND:
		say("%s cannot be executed: %s; waiting for it for %s at most (--command-wait)",
		    r->opt->command[0], strerror(error), span_text(r->opt->command_wait_ns));
		break;
	case STALL_RESULTS:
		say("%s: %s; no command is started until results can be kept there",
		    r->opt->results, strerror(error));
		break;
	default:
		say("no command can be started: %s; trying again until one can", strerror(error));
		break;
	}
}

static void tell(struct run *r, int error)
{
	struct stall *s = &r->stall;
	int64_t span = r->now_ns - s->since_ns;

	if (s->kind == STALL_SHORTAGE && r->running > 0) {
		tell_crowded(r, error);
	} else if (s->tell_ns == 0) {
		tell_first(r, error);
		s->tell_ns = r->now_ns + TELL_FIRST;
	} else if (r->now_ns >= s->tell_ns) {
		say("for %s no command could be started: %s", span_text(span), strerror(error));
		s->tell_ns = r->now_ns + (span * 3 < TELL_LAST ? span * 3 : TELL_LAST);
	}
}

/* ---- trying again -------------------------------------------------------- */

/* What never could be executed, and is neither gone nor being written, will not mend. */
static bool is_hopeful(const struct run *r, int error)
{
	return r->executed || error == ETXTBSY || find_judge(r->path) != 0;
}

static void give_up(struct run *r, int error)
{
	say("%s cannot be executed any more: %s", r->opt->command[0], strerror(error));
	r->status = error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXEC;
	/* Not even a drain can go on. */
	r->phase = STOPPING;
}

void stall_begin(struct run *r, enum stall_kind kind, int error)
{
	struct stall *s = &r->stall;

	if (s->kind != kind)
		*s = (struct stall){.kind = kind, .since_ns = r->now_ns, .delay_ns = FIRST / 2};
	if (kind == STALL_COMMAND &&
	    (r->now_ns - s->since_ns >= r->opt->command_wait_ns || !is_hopeful(r, error))) {
		give_up(r, error);
		return;
	}
	s->delay_ns = s->delay_ns * 2 < LAST ? s->delay_ns * 2 : LAST;
	s->next_ns = r->now_ns + s->delay_ns;
	tell(r, error);
}

void stall_end(struct run *r)
{
	r->executed = true;
	if (r->stall.tell_ns > 0 && !r->opt->quiet)
		say("commands are started again, after %s",
		    span_text(r->now_ns - r->stall.since_ns));
	r->stall = (struct stall){0};
}
