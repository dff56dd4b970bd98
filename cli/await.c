/* Who waits for a key has it in a tree of his own; few wait, and seldom for many keys. */
#include "cli/await.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20 }; /* of keys that one connection may wait for */

struct waited {
	size_t len;
	const char *key; /* behind it, or the caller's while it is looked for */
	char bytes[];
};

static int compare(const void *a, const void *b)
{
	const struct waited *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->key, y->key, x->len);
}

bool await_key(struct conn *c, const char *key, size_t len)
{
	struct waited *w, **at;

	if (wq_state(c->run->q, key, len) <= 0)
		return true;
	if (c->waited_bytes + sizeof *w + len > BYTES)
		return false;
	w = grow(NULL, sizeof *w + len);
	w->len = len;
	w->key = w->bytes;
	memcpy(w->bytes, key, len);
	at = tsearch(w, &c->waited, compare);
	if (!at || *at != w) {
		free(w);
		return at != NULL;
	}
	if (c->nwaited++ == 0)
		c->run->control->nwaiting++;
	c->waited_bytes += sizeof *w + len;
	return true;
}

static void answer(struct conn *c)
{
	if (c->busy == BUSY_ALL) {
		c->run->control->nwaiting--;
		c->died = c->run->count.dead > c->dead;
	}
	if (c->died)
		conn_not(c, EXIT_FAILED, "%s",
		         c->busy == BUSY_ALL ? "some keys failed for good"
		                             : "one of the keys failed for good");
	else
		conn_well(c, "");
	c->died = false;
}

void await_begin(struct conn *c, bool all)
{
	c->busy = all ? BUSY_ALL : BUSY_KEYS;
	if (all) {
		c->dead = c->run->count.dead;
		c->run->control->nwaiting++;
	}
	if (all ? run_units(c->run) == 0 : c->nwaited == 0)
		answer(c);
}

static void gone(struct conn *c, struct waited **at)
{
	struct waited *w = *at;

	c->waited_bytes -= sizeof *w + w->len;
	tdelete(w, &c->waited, compare);
	free(w);
	if (--c->nwaited > 0)
		return;
	c->run->control->nwaiting--;
	if (c->busy == BUSY_KEYS) {
		answer(c);
		conn_wake(c);
	}
}

static void settled(struct conn *c, const struct waited *probe, bool dead, bool there)
{
	struct waited **at = c->waited ? tfind(probe, &c->waited, compare) : NULL;

	if (!at)
		return;
	c->died = c->died || dead;
	if (!there)
		gone(c, at);
}

void await_settled(struct run *r, const void *key, size_t len, bool dead)
{
	struct waited probe = {.len = len, .key = key};
	bool there;

	if (r->control->nwaiting == 0)
		return;
	there = wq_state(r->q, key, len) > 0;
	for (struct conn *c = r->control->all; c; c = c->next) {
		settled(c, &probe, dead, there);
		if (c->busy == BUSY_ALL && run_units(r) == 0) {
			answer(c);
			conn_wake(c);
		}
	}
}

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
}
