/* Who waits for a key has it in a tree of his own; few wait, and seldom for many keys. */
#include "cli/socket/await.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/compare.h"

enum { BYTES = 4 << 20 }; /* of keys that one connection may wait for */

struct waited {
	bool gone; /* until the key is not there */
	bool now;  /* for the unit that ends next, */
	bool next; /* and for the one behind it, which was given while a command runs */
	size_t len;
	const char *key; /* behind it, or the caller's while it is looked for */
	char bytes[];
};

static int compare(const void *a, const void *b)
{
	const struct waited *x = a, *y = b;

	return compare_keys(x->key, x->len, y->key, y->len);
}

static struct waited *find(struct conn *c, const void *key, size_t len)
{
	struct waited probe = {.len = len, .key = key};
	struct waited **at = c->waited ? tfind(&probe, &c->waited, compare) : NULL;

	return at ? *at : NULL;
}

/* ---- naming -------------------------------------------------------------- */

bool await_room(const struct conn *c, size_t len)
{
	return c->waited_bytes + sizeof(struct waited) + len <= BYTES;
}

static struct waited *enter(struct conn *c, const char *key, size_t len)
{
	struct waited *w = find(c, key, len);

	if (w)
		return w;
	w = grow(NULL, sizeof *w + len);
	*w = (struct waited){.len = len, .key = w->bytes};
	memcpy(w->bytes, key, len);
	if (!tsearch(w, &c->waited, compare))
		no_memory();
	if (c->nwaited++ == 0)
		c->run->control->nwaiting++;
	c->waited_bytes += sizeof *w + len;
	return w;
}

/* How it ended is told with the answer: the first that died, else the first cancelled, is named. */
static void note(struct conn *c, enum outcome outcome, const void *key, size_t len)
{
	uint64_t *n = outcome == OUTCOME_DEAD ? &c->died : &c->cancelled;

	if (outcome != OUTCOME_DEAD && outcome != OUTCOME_CANCELLED)
		return;
	if ((*n)++ > 0 || (outcome == OUTCOME_CANCELLED && c->died > 0))
		return;
	c->ill.n = 0;
	text_str(&c->ill, shown(key, len));
}

bool await_key(struct conn *c, const char *key, size_t len)
{
	if (wq_state(c->run->q, key, len) <= 0) {
		if (dead_find(&c->run->dead, key, len))
			note(c, OUTCOME_DEAD, key, len);
		return true;
	}
	if (!await_room(c, len))
		return false;
	enter(c, key, len)->gone = true;
	return true;
}

void await_unit(struct conn *c, const char *key, size_t len, int was)
{
	struct waited *w = enter(c, key, len);

	if (was & WQ_STATE_RUNNING)
		w->next = true;
	else
		w->now = true;
}

/* ---- answering ----------------------------------------------------------- */

static void tell(struct conn *c, int status, uint64_t n, const char *what)
{
	if (n == 1)
		conn_not(c, status, "%.*s: it %s", (int)c->ill.n, c->ill.bytes, what);
	else
		conn_not(c, status, "%" PRIu64 " keys %s, the first is %.*s", n, what,
		         (int)c->ill.n, c->ill.bytes);
}

static void answer(struct conn *c)
{
	if (c->busy == BUSY_ALL)
		c->run->control->nwaiting--;
	if (c->died > 0)
		tell(c, EXIT_FAILED, c->died, "failed for good");
	else if (c->cancelled > 0)
		tell(c, EXIT_CANCELLED, c->cancelled,
		     c->cancelled == 1 ? "was cancelled" : "were cancelled");
	else
		conn_well(c, "");
	c->died = c->cancelled = 0;
}

void await_begin(struct conn *c, bool all)
{
	c->busy = all ? BUSY_ALL : BUSY_KEYS;
	if (all)
		c->run->control->nwaiting++;
	if (all ? run_units(c->run) == 0 : c->nwaited == 0)
		answer(c);
	else
		conn_heard(c);
}

/* Takes it out, if nothing of it is waited for any more. */
static void check(struct conn *c, struct waited *w)
{
	if (w->gone || w->now || w->next)
		return;
	c->waited_bytes -= sizeof *w + w->len;
	tdelete(w, &c->waited, compare);
	free(w);
	if (--c->nwaited == 0)
		c->run->control->nwaiting--;
	if (c->nwaited == 0 && c->busy == BUSY_KEYS)
		answer(c);
	else if (!c->starved || c->waited_bytes > BYTES / 2)
		return;
	c->starved = false;
	conn_wake(c);
}

static void settled(struct conn *c, struct waited *w, enum outcome outcome, bool there)
{
	if (outcome == OUTCOME_AGAIN) {
		w->now |= w->next;
		w->next = false;
		return;
	}
	if (w->now || (w->gone && outcome == OUTCOME_DEAD))
		note(c, outcome, w->key, w->len);
	w->now = w->next;
	w->next = false;
	w->gone &= there;
	check(c, w);
}

static void check_all(struct conn *c)
{
	if (run_units(c->run) == 0) {
		answer(c);
		conn_wake(c);
	}
}

void await_settled(struct run *r, const void *key, size_t len, enum outcome outcome)
{
	bool there;

	if (r->control->nwaiting == 0)
		return;
	there = wq_state(r->q, key, len) > 0;
	for (struct conn *c = r->control->all; c; c = c->next) {
		struct waited *w = find(c, key, len);

		if (w)
			settled(c, w, outcome, there);
		if (c->busy != BUSY_ALL)
			continue;
		if (outcome == OUTCOME_DEAD)
			note(c, outcome, key, len);
		check_all(c);
	}
}

/* A command that runs goes on, and its end is told as ever; what is behind it is gone. */
static void cancelled(struct conn *c, struct waited *w, bool runs)
{
	if (runs ? w->next : w->now)
		note(c, OUTCOME_CANCELLED, w->key, w->len);
	w->next = false;
	if (!runs)
		w->now = w->gone = false;
	check(c, w);
}

void await_cancelled(struct run *r, const void *key, size_t len, int was)
{
	if (r->control->nwaiting == 0)
		return;
	for (struct conn *c = r->control->all; c; c = c->next) {
		struct waited *w = find(c, key, len);

		if (w)
			cancelled(c, w, was & WQ_STATE_RUNNING);
		if (c->busy == BUSY_ALL)
			check_all(c);
	}
}

/* ---- the end ------------------------------------------------------------- */

void await_over(struct conn *c)
{
	if (c->busy == BUSY_END)
		conn_well(c, "");
	else if (c->busy == BUSY_KEYS || c->busy == BUSY_ALL)
		conn_not(c, EXIT_LEFT, "the run ended first");
}

void await_release(struct conn *c)
{
	if (c->nwaited > 0)
		c->run->control->nwaiting--;
	if (c->busy == BUSY_ALL)
		c->run->control->nwaiting--;
	tdestroy(c->waited, free);
	c->waited = NULL;
	c->nwaited = 0;
	text_release(&c->ill);
}
