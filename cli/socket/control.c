/* Connections: who is let in, who goes on, and who is told at the end. */
#include "cli/socket/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/budget.h"
#include "cli/socket/await.h"
#include "cli/socket/conn.h"
#include "cli/socket/listen.h"
#include "cli/socket/listing.h"
#include "cli/socket/place.h"

enum { AT_ONCE = 64 };

#define ACCEPT_AGAIN (100 * WQ_MILLISECOND)
#define IDLE WQ_SECOND /* from then on a connection may have to make room for another */

/* ---- letting in ---------------------------------------------------------- */

/* Of all, or of the guests; NULL: nobody has been idle for long enough. */
static struct conn *longest_idle(const struct run *r, bool guests)
{
	struct conn *idle = NULL;

	for (struct conn *c = r->control->all; c; c = c->next)
		if (conn_is_idle(c) && (c->guest || !guests) &&
		    (!idle || c->active_ns <= idle->active_ns))
			idle = c;
	return idle && r->now_ns - idle->active_ns >= IDLE ? idle : NULL;
}

/*
 * Who goes when there is no room: the one that has been idle for longest; if all are busy and
 * somebody has waited to be accepted for a while, the one that came last of those that wait for the
 * run. NULL: nobody yet.
 */
static struct conn *victim(const struct run *r)
{
	const struct control *ct = r->control;
	struct conn *idle = longest_idle(r, false), *waits = NULL;

	if (idle)
		return idle;
	for (struct conn *c = ct->all; c && !waits; c = c->next)
		if (conn_is_waiting(c))
			waits = c;
	return r->now_ns - ct->wanted_ns >= IDLE ? waits : NULL;
}

static bool evict_guest(struct run *r)
{
	struct conn *c = longest_idle(r, true);

	return c && conn_evict(c);
}

static void let_in(struct run *r, int fd)
{
	struct control *ct = r->control;
	struct conn *c = conn_new(r, fd);
	enum right right = listen_right(fd, r->opt->socket_mode, ct->own.st_gid, &c->user);

	c->guest = right == RIGHT_FEED;
	if (right == RIGHT_NONE) {
		conn_refuse(c, "this run is another user's: it takes nothing from user %ld",
		            c->user);
		if (!r->opt->quiet)
			say("socket: user %ld was refused", c->user);
	}
	/* Others do not take all the room; who is idle makes way for the next of them. */
	ct->nguests += c->guest;
	if (c->guest && ct->nguests > budget_connections(r) / 2 && !evict_guest(r))
		conn_refuse(c, "the run has no room for so many connections of other users: try "
		               "again later");
	conn_go(c);
}

/* Is somebody at the door? */
static bool is_wanted(const struct control *ct)
{
	struct pollfd p = {.fd = ct->listener.fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* There is no room: true if there is now. */
static bool make_room(struct run *r)
{
	struct control *ct = r->control;
	struct conn *c;

	if (!is_wanted(ct)) {
		ct->wanted_ns = 0;
		return false;
	}
	if (ct->wanted_ns == 0)
		ct->wanted_ns = r->now_ns;
	c = victim(r);
	if (c && conn_evict(c))
		return true;
	ct->accept_at_ns = r->now_ns + ACCEPT_AGAIN;
	return false;
}

/* False: nobody is there, or nobody can be let in now. */
static bool accept_one(struct run *r)
{
	struct control *ct = r->control;
	int fd;

	while (ct->n >= budget_connections(r))
		if (!make_room(r))
			return false;
	fd = accept4(ct->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		ct->wanted_ns = 0;
		let_in(r, fd);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EAGAIN) {
		ct->wanted_ns = 0;
		return false;
	}
	/* No descriptor for it: it stays in line, and we look again later. */
	return make_room(r);
}

static void mind_listener(struct run *r)
{
	struct control *ct = r->control;

	if (ct->accept_at_ns > 0 && r->now_ns >= ct->accept_at_ns)
		ct->accept_at_ns = 0;
	if (ct->listener.fd >= 0)
		loop_watch(&r->loop, &ct->listener, ct->accept_at_ns > 0 ? 0 : EPOLLIN);
}

static void on_connect(struct watch *w, uint32_t events)
{
	struct control *ct =
	    (struct control *)(void *)((char *)w - offsetof(struct control, listener));
	int n = 0;

	(void)events;
	while (n++ < AT_ONCE && accept_one(ct->run))
		;
}

/* ---- turns --------------------------------------------------------------- */

bool control_open(struct run *r)
{
	struct control *ct;
	struct stat own;
	int fd;

	if (r->opt->socket_named && !place_make(r->opt->socket))
		return false;
	fd = listen_open(r->opt->socket, r->opt->socket_mode, r->opt->socket_gid, &own);
	if (fd < 0)
		return false;
	ct = grow(NULL, sizeof *ct);
	*ct = (struct control){
	    .run = r,
	    .listener = {.fd = fd, .ready = on_connect},
	    .own = own,
	    .rate = r->opt->rate,
	    .burst = r->opt->burst,
	};
	ct->held_end = &ct->held;
	r->control = ct;
	mind_listener(r);
	if (!r->opt->quiet)
		say("listens on %s", shown(r->opt->socket, strlen(r->opt->socket)));
	return true;
}

static bool can_resume(const struct run *r)
{
	/* When the run ends they are told so, full or not. */
	return r->control->held && (r->phase != OPEN || !intake_full(r));
}

static void resume_held(struct run *r)
{
	struct control *ct = r->control;

	while (can_resume(r)) {
		struct conn *c = ct->held;

		ct->held = c->next_held;
		if (!ct->held)
			ct->held_end = &ct->held;
		c->held = false;
		ct->resumed = c;
		conn_go(c);
		ct->resumed = NULL;
	}
}

static void tell_end(struct run *r)
{
	struct conn *next;

	r->control->told = true;
	for (struct conn *c = r->control->all; c; c = next) {
		next = c->next;
		conn_go(c);
	}
}

void control_turn(struct run *r)
{
	if (!r->control)
		return;
	resume_held(r);
	if (r->phase != OPEN && !r->control->told)
		tell_end(r);
	mind_listener(r);
}

int64_t control_next_ns(const struct run *r)
{
	const struct control *ct = r->control;

	if (ct && can_resume(r))
		return r->now_ns;
	return ct && ct->accept_at_ns > 0 ? ct->accept_at_ns : WQ_NEVER;
}

static enum outcome outcome_of(const char *name)
{
	static const char *const names[] = {"done", "dead", "cancelled"};
	static const enum outcome outcomes[] = {OUTCOME_DONE, OUTCOME_DEAD, OUTCOME_CANCELLED};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return outcomes[i];
	return OUTCOME_AGAIN;
}

void control_settled(struct run *r, const void *key, size_t len, const char *outcome)
{
	enum outcome what = outcome_of(outcome);

	if (!r->control)
		return;
	listing_settled(r, key, len, what == OUTCOME_DEAD);
	await_settled(r, key, len, what);
}

/* ---- the end ------------------------------------------------------------- */

static void shut(struct run *r)
{
	struct control *ct = r->control;

	if (ct->listener.fd < 0)
		return;
	listen_unlink(r->opt->socket, &ct->own);
	loop_forget(&r->loop, &ct->listener);
	close(ct->listener.fd);
	ct->listener.fd = -1;
}

void control_rest(struct run *r, void (*fn)(struct run *r, const struct record *rec))
{
	struct control *ct = r->control;

	if (!ct)
		return;
	/* Who stands in line may have written already. */
	while (accept_one(r))
		;
	shut(r);
	for (struct conn *c = ct->all; c; c = c->next)
		conn_rest(c, fn);
}

void control_close(struct run *r)
{
	struct control *ct = r->control;

	if (!ct)
		return;
	shut(r);
	while (ct->all) {
		struct conn *c = ct->all;

		await_over(c);
		conn_flush(c);
		conn_close(c);
	}
	free(ct);
	r->control = NULL;
}
