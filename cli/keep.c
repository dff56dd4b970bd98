/* Dead keys are appended as they die; what is left is written at the end, oldest first, what waits last. */
#include "cli/keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/source.h"

enum { BLOCK = 1 << 16 };

bool keep_open(struct run *r)
{
	if (r->opt->dead) {
		r->dead_fd = append_open(r->opt->dead);
		if (r->dead_fd < 0)
			return false;
	}
	if (r->opt->leftover && !replace_open(&r->leftover, r->opt->leftover)) {
		say("%s: %s", r->opt->leftover, strerror(errno));
		return false;
	}
	return true;
}

void keep_dead(struct run *r, const void *key, size_t len)
{
	struct text line = {0};

	if (r->dead_fd < 0)
		return;
	/* The next key must not become one with it; an empty one is none. */
	if (r->dead_torn)
		text_add(&line, &r->opt->delimiter, 1);
	text_add(&line, key, len);
	text_add(&line, &r->opt->delimiter, 1);
	r->dead_torn = false;
	if (!write_all(r->dead_fd, line.bytes, line.n)) {
		say("%s: %s; this key is not in it: %s", r->opt->dead, append_error(),
		    shown(key, len));
		r->trouble = r->dead_torn = true;
	}
	text_release(&line);
}

static void flush(struct run *r)
{
	if (r->leftover.path)
		replace_write(&r->leftover, r->rest.bytes, r->rest.n);
	r->rest.n = 0;
}

static void keep(struct run *r, const char *key, size_t len)
{
	r->left++;
	text_add(&r->rest, key, len);
	text_add(&r->rest, &r->opt->delimiter, 1);
	if (r->rest.n >= BLOCK)
		flush(r);
}

/* ---- in their order ------------------------------------------------------ */

/* The walk knows no order: keys are gathered first. There are no more than --max-queue. */
struct gathered {
	struct text bytes;
	struct left {
		size_t at, len;
		int64_t when_ns; /* added so long ago; waiting: due then */
		bool waits;
	} * left;
	size_t n, room;
};

static int gather(void *ctx, const wq_key_info *info)
{
	struct gathered *g = ctx;

	/* A key that is only remembered has no state. */
	if (info->state == 0)
		return 0;
	if (g->n == g->room) {
		g->room = g->room * 2 + 64;
		g->left = grow(g->left, g->room * sizeof *g->left);
	}

	bool waits = info->state == WQ_STATE_WAITING;

	g->left[g->n++] = (struct left){
	    .at = g->bytes.n,
	    .len = info->len,
	    .when_ns = waits ? info->due_ns : -info->age_ns,
	    .waits = waits,
	};
	text_add(&g->bytes, info->key, info->len);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->waits != y->waits)
		return x->waits ? 1 : -1;
	return x->when_ns < y->when_ns ? -1 : x->when_ns > y->when_ns;
}

static void keep_queue(struct run *r)
{
	struct gathered g = {.n = 0};

	if (wq_walk(r->q, gather, &g) < 0) {
		say("the keys that are left cannot be listed: out of memory");
		r->trouble = true;
	}
	if (g.n > 0)
		qsort(g.left, g.n, sizeof *g.left, by_time);
	for (size_t i = 0; i < g.n; i++)
		keep(r, g.bytes.bytes + g.left[i].at, g.left[i].len);
	text_release(&g.bytes);
	free(g.left);
}

void keep_rest(struct run *r)
{
	keep_queue(r);
	r->unread = r->left;
	source_rest(r, keep);
	control_rest(r, keep);
	r->unread = r->left - r->unread;
	flush(r);
	if (r->leftover.path && !replace_commit(&r->leftover)) {
		say("%s: %s%s%s", r->opt->leftover, strerror(errno),
		    r->leftover.part ? "; what is left is in " : "",
		    r->leftover.part ? r->leftover.part : "");
		r->trouble = true;
		/* It is all there is of these keys, and stays. */
		free(r->leftover.part);
		r->leftover.part = NULL;
	}
}

void keep_close(struct run *r)
{
	text_release(&r->rest);
	replace_release(&r->leftover);
	if (r->dead_fd >= 0)
		close(r->dead_fd);
	r->dead_fd = -1;
}
