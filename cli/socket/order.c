/* Orders: one after another for each connection, each on the loop's thread. */
#include "cli/socket/order.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wq/pool.h>

#include "cli/base/parse.h"
#include "cli/budget.h"
#include "cli/command/job.h"
#include "cli/socket/await.h"
#include "cli/socket/frame.h"
#include "cli/socket/listing.h"

#define SO_FAR WQ_SECOND /* between two reports of an add that has to wait */

struct fields {
	const char *at, *end; /* NULL: there are no more */
};

static bool next(struct fields *f, const char **field, size_t *len)
{
	const char *nul;

	if (!f->at)
		return false;
	nul = memchr(f->at, '\0', (size_t)(f->end - f->at));
	*field = f->at;
	*len = (size_t)((nul ? nul : f->end) - f->at);
	f->at = nul ? nul + 1 : NULL;
	return true;
}

/* One with a NUL behind it, cut if it is too long to be any good; "": there is none. */
static char *word(struct fields *f, char *room, size_t size)
{
	const char *field = "";
	size_t len = 0;

	next(f, &field, &len);
	snprintf(room, size, "%.*s", (int)(len < size ? len : size), field);
	return room;
}

/* The key of an order for one; false: it has been answered. */
static bool key_of(struct conn *c, struct fields *f, const char **key, size_t *len)
{
	if (next(f, key, len) && *len > 0 && *len <= WQ_KEY_MAX)
		return true;
	conn_not(c, EXIT_USAGE, "expected a key of 1 to %d bytes", WQ_KEY_MAX);
	return false;
}

/* ---- add ----------------------------------------------------------------- */

/* What comes with the keys of all adds that follow on this connection: a priority, a value. */
static void with(struct conn *c, struct fields *f)
{
	const char *value = NULL;
	char number[16];
	size_t len = 0;
	int32_t priority;

	if (!parse_priority(word(f, number, sizeof number), &priority)) {
		conn_not(c, EXIT_USAGE, "%s: expected a priority from %d to %d",
		         shown(number, strlen(number)), WQ_PRIORITY_MIN, WQ_PRIORITY_MAX);
		return;
	}
	if (next(f, &value, &len) && len > WQ_VALUE_MAX) {
		conn_not(c, EXIT_USAGE, "the value is longer than %d bytes", WQ_VALUE_MAX);
		return;
	}
	c->priority = priority;
	c->valued = value != NULL;
	c->value.n = 0;
	text_add(&c->value, value, len);
	conn_well(c, "");
}

static void add(struct conn *c, struct fields *f)
{
	char after[24];

	c->after_ns = strtoll(word(f, after, sizeof after), NULL, 10);
	if (c->after_ns < 0 || !f->at) {
		conn_not(c, EXIT_USAGE, "add: expected a time from 0, and keys");
		return;
	}
	c->busy = BUSY_ADD;
	c->tracks = false;
	c->add_at = (size_t)(f->at - c->in.bytes);
	c->added = c->merged = 0;
	c->so_far_ns = 0;
}

/*
 * The same, and each unit of work is waited for by the order `wait`: nothing can happen to it
 * between the two.
 */
static void track(struct conn *c, struct fields *f)
{
	add(c, f);
	c->tracks = true;
}

/* How far it has come. */
static void add_so_far(struct conn *c)
{
	char text[48];
	int n = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, c->added, c->merged);

	conn_piece(c, text, (size_t)n);
	c->so_far_ns = c->run->now_ns;
}

void order_add_ends(struct conn *c)
{
	if (c->added > 0)
		add_so_far(c);
}

/* It goes on later: who gave the keys hears so at once, and then now and then. */
static void add_later(struct conn *c)
{
	if (c->so_far_ns == 0 || c->run->now_ns - c->so_far_ns >= SO_FAR)
		add_so_far(c);
}

/* False: it has been answered. */
static bool add_one(struct conn *c, const char *key, size_t len)
{
	struct run *r = c->run;
	uint64_t merged = r->count.merged;
	int rc, was;

	if (len == 0)
		return true;
	/* In a file of keys that are left it would be two. */
	if (memchr(key, r->opt->delimiter, len)) {
		order_add_ends(c);
		conn_not(c, EXIT_TROUBLE,
		         "%s: it has what ends a key in this run; one that was started with -0 "
		         "takes it",
		         shown(key, len));
		return false;
	}
	was = wq_state(r->q, key, len);
	rc = intake_add(r, &(struct given){
			       .key = key,
			       .len = len,
			       .after_ns = c->after_ns,
			       .priority = c->priority,
			       .value = !c->valued       ? NULL
	                                : c->value.n > 0 ? c->value.bytes
	                                                 : "",
			       .value_len = c->value.n,
			   });
	if (rc < 0) {
		order_add_ends(c);
		if (rc == WQ_ESHUTDOWN)
			conn_not(c, EXIT_TROUBLE, "the run ends: it takes no more keys");
		else
			conn_not(c, EXIT_TROUBLE, "%s: %s", shown(key, len), intake_error(rc));
		return false;
	}
	if (c->tracks)
		await_unit(c, key, len, was);
	c->added++;
	c->merged += r->count.merged - merged;
	return true;
}

void order_add_more(struct conn *c)
{
	const char *payload, *key;
	size_t n, len;
	struct fields f;
	char text[48];

	frame_find(c->in.bytes + c->in_at, c->in.n - c->in_at, &payload, &n);
	f = (struct fields){c->in.bytes + c->add_at, payload + n};
	while (f.at) {
		c->add_at = (size_t)(f.at - c->in.bytes);
		if (c->run->phase == OPEN && intake_full(c->run)) {
			add_later(c);
			conn_hold(c);
			return;
		}
		next(&f, &key, &len);
		if (c->run->phase == OPEN && c->tracks && !await_room(c, len)) {
			add_later(c);
			c->starved = true;
			return;
		}
		if (!add_one(c, key, len))
			return;
	}
	snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, c->added, c->merged);
	conn_well(c, text);
}

/* ---- keys ---------------------------------------------------------------- */

static const char *state_name(int state)
{
	if (state <= 0)
		return "not there";
	return state & WQ_STATE_RUNNING ? "running" : "queued";
}

static void retry(struct conn *c, struct fields *f)
{
	struct run *r = c->run;
	const char *key;
	size_t len;
	int rc;

	if (!key_of(c, f, &key, &len))
		return;
	rc = wq_reschedule(r->q, key, len, 0);
	if (rc == WQ_ENOTFOUND)
		rc = intake_revive(r, key, len);
	if (rc == WQ_ESHUTDOWN)
		conn_not(c, EXIT_TROUBLE, "the run ends: it takes no more keys");
	else if (rc == WQ_ENOTFOUND)
		conn_not(c, EXIT_TROUBLE, "%s: not waiting: it is %s", shown(key, len),
		         state_name(wq_state(r->q, key, len)));
	else if (rc < 0)
		conn_not(c, EXIT_TROUBLE, "%s: %s", shown(key, len), wq_strerror(rc));
	else
		conn_well(c, "");
}

static void cancel(struct conn *c, struct fields *f)
{
	struct run *r = c->run;
	struct held *held;
	struct job *j;
	const char *key;
	char how[8];
	size_t len;
	int rc;
	bool kill = strcmp(word(f, how, sizeof how), "kill") == 0;

	if (!key_of(c, f, &key, &len))
		return;
	rc = intake_cancel(r, key, len);
	if (rc < 0) {
		conn_not(c, EXIT_TROUBLE, "%s: %s", shown(key, len),
		         rc == WQ_ENOTFOUND ? "it is not there" : wq_strerror(rc));
		return;
	}
	j = job_of(r, key, len, &held);
	if (j) {
		held->cancelled = true;
		if (kill && j->state == JOB_RUNNING) {
			j->stopped = true;
			job_terminate(r, j, r->opt->kill_after_ns);
		}
	}
	await_cancelled(r, key, len, rc);
	conn_well(c, "");
}

static void forget(struct conn *c, struct fields *f)
{
	const char *key;
	size_t len;

	if (!key_of(c, f, &key, &len))
		return;
	wq_forget(c->run->q, key, len);
	listing_forget(c->run, key, len);
	dead_remove(&c->run->dead, key, len);
	conn_well(c, "");
}

/* ---- the run ------------------------------------------------------------- */

static void pause_starts(struct conn *c, struct fields *f)
{
	(void)f;
	c->run->paused = true;
	conn_well(c, "");
}

static void resume(struct conn *c, struct fields *f)
{
	(void)f;
	c->run->paused = false;
	conn_well(c, "");
}

struct settings {
	uint64_t workers, burst;
	double rate;
	bool limits; /* rate or burst were given */
};

/* False: it has been answered. */
static bool setting(struct conn *c, char *text, struct settings *s)
{
	char *value = strchr(text, '=');
	const char *wanted;
	bool good;

	if (value)
		*value++ = '\0';
	if (value && strcmp(text, "workers") == 0) {
		wanted = "a number from 1 to 4096";
		good = parse_count(value, 1, WQ_WORKERS_MAX, &s->workers);
	} else if (value && strcmp(text, "burst") == 0) {
		wanted = "a number from 1";
		good = parse_count(value, 1, INT_MAX, &s->burst);
		s->limits = true;
	} else if (value && strcmp(text, "rate") == 0) {
		wanted = "a rate like 50/s, 10/m or 3/h, or none";
		good = strcmp(value, "none") == 0 || parse_rate(value, &s->rate);
		if (strcmp(value, "none") == 0)
			s->rate = 0;
		s->limits = true;
	} else {
		conn_not(c, EXIT_USAGE, "%s: expected workers=N, rate=N/s or burst=N",
		         shown(text, strlen(text)));
		return false;
	}
	if (!good)
		conn_not(c, EXIT_USAGE, "%s=%s: expected %s", text, shown(value, strlen(value)),
		         wanted);
	return good;
}

static void set(struct conn *c, struct fields *f)
{
	struct control *ct = c->run->control;
	struct settings s = {c->run->workers, (uint64_t)ct->burst, ct->rate, false};
	char text[64];

	while (f->at)
		if (!setting(c, word(f, text, sizeof text), &s))
			return;
	if (s.limits && s.rate <= 0 && s.burst != (uint64_t)ct->burst) {
		conn_not(c, EXIT_USAGE, "burst=N goes with a rate, and there is none");
		return;
	}
	budget_raise(c->run, (uint32_t)s.workers);
	if (s.workers > c->run->workers && s.workers > budget_workers(c->run)) {
		conn_not(c, EXIT_TROUBLE,
		         "workers=%" PRIu64 ": a limit of %" PRIu64
		         " descriptors has room for %" PRIu32 "; nothing has changed",
		         s.workers, budget_limit(), budget_workers(c->run));
		return;
	}
	if (s.limits && !job_set_rate(c->run, s.rate, (int)s.burst)) {
		conn_not(c, EXIT_TROUBLE, "out of memory: nothing has changed");
		return;
	}
	ct->rate = s.rate;
	ct->burst = (int)s.burst;
	c->run->workers = (uint32_t)s.workers;
	conn_well(c, "");
}

/* ---- waiting ------------------------------------------------------------- */

static void await(struct conn *c, struct fields *f)
{
	const char *key;
	size_t len;

	while (next(f, &key, &len)) {
		if (!await_key(c, key, len)) {
			conn_not(c, EXIT_TROUBLE, "these are too many keys to wait for at once");
			return;
		}
	}
	conn_well(c, "");
}

static void wait_keys(struct conn *c, struct fields *f)
{
	char what[8];

	await_begin(c, strcmp(word(f, what, sizeof what), "all") == 0);
}

static void until_end(struct conn *c, struct fields *f)
{
	char how[8];

	if (strcmp(word(f, how, sizeof how), "go") == 0) {
		conn_well(c, "");
		return;
	}
	c->busy = BUSY_END;
	conn_heard(c);
}

static void drain(struct conn *c, struct fields *f)
{
	phases_drain(c->run);
	until_end(c, f);
}

static void stop(struct conn *c, struct fields *f)
{
	phases_stop(c->run);
	until_end(c, f);
}

static void status(struct conn *c, struct fields *f)
{
	(void)f;
	listing_status(c);
}

static void failing(struct conn *c, struct fields *f)
{
	(void)f;
	listing_failures(c);
}

static void ls(struct conn *c, struct fields *f)
{
	char state[16], limit[24];
	uint64_t n = 0;

	word(f, state, sizeof state);
	if (!parse_count(word(f, limit, sizeof limit), 0, INT64_MAX, &n)) {
		conn_not(c, EXIT_USAGE, "ls: expected a state and a number");
		return;
	}
	listing_keys(c, state, n > 0 ? n : UINT64_MAX);
}

/* Sorted; guests: who may only feed the run may give this one. */
static const struct {
	const char *name;
	void (*fn)(struct conn *c, struct fields *f);
	bool guests;
} orders[] = {
    {"add", add, true},          {"await", await, true},
    {"cancel", cancel, false},   {"drain", drain, false},
    {"failing", failing, false}, {"forget", forget, false},
    {"ls", ls, false},           {"pause", pause_starts, false},
    {"resume", resume, false},   {"retry", retry, false},
    {"set", set, false},         {"status", status, true},
    {"stop", stop, false},       {"track", track, true},
    {"wait", wait_keys, true},   {"with", with, true},
};

void order(struct conn *c, const char *fields, size_t n)
{
	struct fields f = {fields, fields + n};
	char name[16];

	word(&f, name, sizeof name);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		if (strcmp(name, orders[i].name) != 0)
			continue;
		if (c->guest && !orders[i].guests)
			conn_not(
			    c, EXIT_TROUBLE,
			    "%s: only the run's own user and root may do that; user %ld may give "
			    "keys, wait for them, and ask for the status",
			    name, c->user);
		else
			orders[i].fn(c, &f);
		return;
	}
	conn_not(c, EXIT_USAGE, "%s: unknown command; is the run an older wq?",
	         shown(name, strlen(name)));
}
