/* See explore.h. */
#include "explore.h"

#include <string.h>

enum { MAX_CHOICES = 4096 };

void (*explore_look)(void);

/* The choices of the present run; those with one answer only are none. */
static struct choice {
	uint8_t taken, n;
	bool costs;   /* all but the first are preemptions */
	uint8_t used; /* preemptions before this one */
} path[MAX_CHOICES];
static int length;        /* choices that are given */
static int at;            /* the next one */
static const char *given; /* explore_one(): the choices */

/* Who went on last comes first, the others by their numbers. */
static int nth(const int *ready, int n, int last, int i)
{
	bool first = false;

	for (int j = 0; j < n; j++)
		first |= ready[j] == last;
	if (!first)
		return ready[i];
	if (i == 0)
		return last;
	for (int j = 0; j < n; j++) {
		if (ready[j] != last && --i == 0)
			return ready[j];
	}
	return last;
}

static int used_by(const struct choice *c)
{
	return c->used + (c->costs && c->taken > 0);
}

static int guide(const int *ready, int n, int last)
{
	bool costs = false;

	if (explore_look && !sim_locked()) {
		sim_quiet_begin();
		explore_look();
		sim_quiet_end();
	}
	if (n == 1)
		return ready[0];
	if (at == MAX_CHOICES)
		sim_fail("more than %d choices in one run", MAX_CHOICES);
	for (int i = 0; i < n; i++)
		costs |= ready[i] == last;
	if (given) {
		int i = *given ? *given++ - 'a' : 0;

		return nth(ready, n, last, i < n ? i : 0);
	}

	struct choice *c = &path[at++];

	if (at > length) {
		*c = (struct choice){.n = (uint8_t)n, .costs = costs};
		if (at > 1)
			c->used = (uint8_t)used_by(c - 1);
		length = at;
	} else if (c->n != n || c->costs != costs) {
		sim_fail("the same choices gave another run");
	}
	return nth(ready, n, last, c->taken);
}

/* The next schedule in the order of the search; false: that was the last one. */
static bool advance(int preemptions)
{
	while (length > 0) {
		struct choice *c = &path[length - 1];

		if (c->taken + 1 < c->n && c->used + c->costs <= preemptions) {
			c->taken++;
			return true;
		}
		length--;
	}
	return false;
}

static void tell(char *buf, size_t size)
{
	size_t n = 0, last = 0;

	for (int i = 0; i < at && n + 1 < size; i++) {
		buf[n++] = (char)('a' + path[i].taken);
		if (path[i].taken)
			last = n;
	}
	buf[last] = '\0';
}

bool explore(const struct scenario *s, int preemptions, uint64_t max_runs, struct explored *x)
{
	bool ok = true;

	memset(x, 0, sizeof *x);
	length = 0;
	given = NULL;
	sim_guide = guide;
	do {
		if (x->runs == max_runs) {
			x->cut = true;
			break;
		}
		at = 0;
		x->runs++;
		ok = world_run(s, 0, &x->bad);
		/* A run that failed early has not come to all that were given. */
		length = at;
	} while (ok && advance(preemptions));
	if (!ok)
		tell(x->schedule, sizeof x->schedule);
	sim_guide = NULL;
	return ok;
}

bool explore_one(const struct scenario *s, const char *schedule, struct sim_result *r)
{
	given = schedule;
	at = 0;
	sim_guide = guide;

	bool ok = world_run(s, 0, r);

	sim_guide = NULL;
	given = NULL;
	return ok;
}
