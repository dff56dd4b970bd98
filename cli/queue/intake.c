/*
 * Keys on their way into the queue, and how many adds each attempt answers. Only we add, so what
 * wq_state() says just before an add is what the add meets.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/compare.h"
#include "cli/files/record.h"
#include "cli/output/sequence.h"
#include "cli/run.h"

enum { PENDING = WQ_STATE_QUEUED | WQ_STATE_DIRTY | WQ_STATE_WAITING };

/* ---- how many merged ----------------------------------------------------- */

struct merged {
	uint32_t n;
	uint32_t len;
	const char *key; /* behind it, or the caller's while it is looked for */
	char bytes[];
};

static int compare(const void *a, const void *b)
{
	const struct merged *x = a, *y = b;

	return compare_keys(x->key, x->len, y->key, y->len);
}

/* Only the log tells these numbers. */
static bool is_tallied(const struct run *r)
{
	return r->opt->log || r->opt->results;
}

static void tally(struct run *r, const void *key, size_t len)
{
	struct merged probe = {.len = (uint32_t)len, .key = key};
	struct merged **at = tfind(&probe, &r->tally, compare);

	if (!at) {
		struct merged *m = grow(NULL, sizeof *m + len);

		*m = (struct merged){.len = (uint32_t)len};
		memcpy(m->bytes, key, len);
		m->key = m->bytes;
		at = tsearch(m, &r->tally, compare);
		if (!at) {
			free(m);
			return;
		}
	}
	(*at)->n++;
}

uint32_t intake_merged(struct run *r, const void *key, size_t len)
{
	struct merged probe = {.len = (uint32_t)len, .key = key};
	struct merged **at = r->tally ? tfind(&probe, &r->tally, compare) : NULL;
	struct merged *m;
	uint32_t n;

	if (!at)
		return 0;
	m = *at;
	n = m->n;
	tdelete(m, &r->tally, compare);
	free(m);
	return n;
}

void intake_release(struct run *r)
{
	tdestroy(r->tally, free);
	r->tally = NULL;
}

/* ---- keys ---------------------------------------------------------------- */

bool intake_full(const struct run *r)
{
	return run_units(r) + sequence_kept(r) >= r->opt->max_queue + r->held;
}

static int add(struct run *r, const struct given *g)
{
	const struct options *o = r->opt;
	wq_add_options how = {
	    .policy = WQ_REPLACE,
	    .priority = g->priority,
	    .value = g->value,
	    .value_len = g->value_len,
	};

	if (g->after_ns > 0 && !o->dry_run) {
		how.after_ns = g->after_ns;
	} else if (o->debounce_ns > 0) {
		how.after_ns = o->debounce_ns;
		how.within_ns = o->max_wait_ns;
	} else {
		how.policy = WQ_MIN;
	}
	return wq_add_with(r->q, g->key, g->len, &how);
}

const char *intake_error(int rc)
{
	/* Keys and values are measured before: it is what two values make together. */
	return rc == WQ_ETOOLONG ? "its values are longer than 65536 bytes together"
	                         : wq_strerror(rc);
}

void intake_joined(struct run *r, const void *key, size_t len)
{
	r->count.merged++;
	if (is_tallied(r))
		tally(r, key, len);
}

int intake_add(struct run *r, const struct given *g)
{
	const void *key = g->key;
	size_t len = g->len;
	int was, rc;

	if (r->phase != OPEN)
		return WQ_ESHUTDOWN;
	was = wq_state(r->q, key, len);
	rc = was < 0 ? was : add(r, g);
	r->count.given++;
	r->count.bytes += len + g->value_len;
	if (rc < 0) {
		r->count.refused++;
		return rc;
	}
	/* It is there again, whatever became of it before. */
	dead_remove(&r->dead, key, len);
	if (was & PENDING)
		intake_joined(r, key, len);
	else
		sequence_add(r, key, len);
	return rc;
}

int intake_revive(struct run *r, const void *key, size_t len)
{
	const struct dead_key *k = dead_find(&r->dead, key, len);
	int rc;

	if (!k)
		return WQ_ENOTFOUND;
	if (r->phase != OPEN)
		return WQ_ESHUTDOWN;
	rc = wq_add_with(r->q, key, len,
	                 &(wq_add_options){.priority = k->priority,
	                                   .value = k->value,
	                                   .value_len = k->value_len});
	if (rc < 0)
		return rc;
	dead_remove(&r->dead, key, len);
	r->count.dead--;
	sequence_add(r, key, len);
	return WQ_OK;
}

int intake_restore(struct run *r, const struct record *rec)
{
	int64_t after_ns = rec->due_ns > 0 ? rec->due_ns - record_now() : 0;
	int rc = intake_add(r, &(struct given){.key = rec->key,
	                                       .len = rec->len,
	                                       .after_ns = after_ns > 0 ? after_ns : 0,
	                                       .priority = rec->priority,
	                                       .value = rec->value,
	                                       .value_len = rec->value_len});

	if (rc >= 0 && rec->failures > 0 && wq_failures(r->q, rec->key, rec->len) < rec->failures)
		wq_set_failures(r->q, rec->key, rec->len, rec->failures);
	return rc;
}

int intake_cancel(struct run *r, const void *key, size_t len)
{
	unsigned was = 0;
	int rc = wq_cancel(r->q, key, len, &was);

	if (was & PENDING) {
		r->count.cancelled++;
		intake_merged(r, key, len);
		sequence_end(r, key, len, true);
	}
	return rc == WQ_CANCELLED ? (int)was : rc;
}
