/*
 * Dead keys are appended as they die; what is left is written at the end, oldest first, what waits
 * last. Whatever cannot be written to its file is printed on standard error instead, in the form
 * that it would have in the file.
 *
 * Space for what is left is reserved as keys come in: for each key that is there, the mean length
 * of a key and what stands before it, and something for keys in a pipe that were not read. The
 * unread rest of an input file needs none: it is in that file.
 */
#include "cli/files/keep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/files/record.h"
#include "cli/files/target.h"
#include "cli/input/source.h"
#include "cli/socket/control.h"

enum {
	BLOCK = 1 << 16,
	STEP = 1 << 18,   /* space is reserved by so much */
	STATE = 32,       /* bytes before a key, about */
	UNREAD = 1 << 17, /* bytes of keys that are in a pipe, about */
};

#define RESERVE_AGAIN WQ_SECOND

struct keep {
	struct replace file;
	bool begun, stated; /* the first record was written; there is more to say than keys */
	struct text block;  /* whole records, to be written */
	uint64_t nblock;
	struct text unsaved;   /* whole records that cannot be */
	int64_t reserve_at_ns; /* not before: the last try has failed; WQ_NEVER: it cannot be */
	bool warned;
};

bool keep_open(struct run *r)
{
	if (!append_open(&r->dead_file, &r->loop, r->opt->dead, "dead keys", r->opt->delimiter))
		return false;
	r->keep = grow(NULL, sizeof *r->keep);
	*r->keep = (struct keep){.file = {.fd = -1}};
	if (r->opt->leftover && !replace_open(&r->keep->file, r->opt->leftover, false)) {
		say("%s: %s", r->opt->leftover, target_error(errno));
		return false;
	}
	return true;
}

/* ---- printing ------------------------------------------------------------ */

/* Records as they would be in the file; on a terminal keys do not act. */
static void print(struct run *r, const char *bytes, size_t n)
{
	char delimiter = r->opt->delimiter;
	const char *end = bytes + n;

	if (!isatty(STDERR_FILENO)) {
		stream_write(&r->err, bytes, n);
		return;
	}
	while (bytes < end) {
		const char *next = memchr(bytes, delimiter, (size_t)(end - bytes));
		size_t len = (size_t)((next ? next : end) - bytes);
		struct text line = {0};

		text_visible(&line, bytes, len, 4 * len + 4);
		text_str(&line, "\n");
		stream_write(&r->err, line.bytes, line.n);
		text_release(&line);
		bytes += len + 1;
	}
}

static void tell(struct run *r, const char *path, int error, const char *what, uint64_t saved,
                 uint64_t all)
{
	say("%s: %s: %" PRIu64 " of %" PRIu64 " %s saved, %" PRIu64 " printed below", path,
	    target_error(error), saved, all, what, all - saved);
	r->trouble = true;
}

/* ---- the dead ------------------------------------------------------------ */

void keep_dead(struct run *r, const void *key, size_t len)
{
	struct text line = {0};

	text_add(&line, key, len);
	text_add(&line, &r->opt->delimiter, 1);
	if (!append_put(&r->dead_file, r->now_ns, line.bytes, line.n)) {
		say("%s: %s: this key could not be saved, and is printed below", r->opt->dead,
		    target_error(r->dead_file.error));
		print(r, line.bytes, line.n);
		r->trouble = true;
	}
	text_release(&line);
}

void keep_last(struct run *r)
{
	uint64_t n = append_end(&r->dead_file);

	if (n > 0) {
		tell(r, r->opt->dead, r->dead_file.error != 0 ? r->dead_file.error : EAGAIN,
		     "dead keys", r->dead_file.written, r->dead_file.written + n);
		print(r, r->dead_file.pending.bytes, r->dead_file.pending.n);
	}
	append_close(&r->dead_file);
}

/* ---- space for what is left ---------------------------------------------- */

void keep_turn(struct run *r)
{
	struct keep *k = r->keep;
	uint64_t there = run_units(r), need;
	int rc;

	append_turn(&r->dead_file, r->now_ns);
	if (k->file.fd < 0 || r->now_ns < k->reserve_at_ns || there == 0)
		return;
	need = there * (r->count.bytes / r->count.given + STATE);
	if (need + UNREAD <= (uint64_t)k->file.reserved)
		return;
	rc = replace_reserve(&k->file, (off_t)(((need + UNREAD) / STEP + 1) * STEP));
	if (rc == 0)
		return;
	/* What fits is better than nothing. */
	if (rc == ENOSPC || rc == EDQUOT)
		rc =
		    need <= (uint64_t)k->file.reserved ? 0 : replace_reserve(&k->file, (off_t)need);
	k->reserve_at_ns = rc == EOPNOTSUPP ? WQ_NEVER : r->now_ns + RESERVE_AGAIN;
	if (rc == 0 || rc == EOPNOTSUPP || k->warned)
		return;
	k->warned = true;
	say("%s: %s for the keys that are there: if the run is stopped, those that cannot be "
	    "saved are printed",
	    r->opt->leftover, target_error(rc));
}

/* ---- writing what is left ------------------------------------------------ */

static bool begins_with_head(const struct run *r, const char *bytes, size_t n)
{
	char delimiter = r->opt->delimiter;
	const char *end = n > 0 ? memchr(bytes, delimiter, n) : NULL;

	return end && r->keep->stated && record_is_head(bytes, (size_t)(end - bytes), delimiter);
}

/* How many keys are in whole records. The head, which may be the first of them, is none. */
static uint64_t keys_in(const struct run *r, const char *bytes, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m += bytes[i] == r->opt->delimiter;
	return m - begins_with_head(r, bytes, n);
}

/* How much of it is in the file, as whole records; what is there of the next one is cut off. */
static size_t save(struct run *r, const struct text *t)
{
	struct replace *f = &r->keep->file;
	size_t n = replace_write(f, t->bytes, t->n), torn = 0;

	if (n == t->n)
		return n;
	while (torn < n && t->bytes[n - torn - 1] != r->opt->delimiter)
		torn++;
	replace_cut(f, f->size - (off_t)torn);
	return n - torn;
}

static void flush(struct run *r)
{
	struct keep *k = r->keep;
	size_t n = k->file.fd >= 0 ? save(r, &k->block) : k->block.n;

	if (n < k->block.n) {
		uint64_t unsaved = keys_in(r, k->block.bytes + n, k->block.n - n);

		text_add(&k->unsaved, k->block.bytes + n, k->block.n - n);
		k->nblock -= unsaved;
	}
	r->saved += k->nblock;
	k->block.n = 0;
	k->nblock = 0;
}

static void keep(struct run *r, const struct record *rec)
{
	struct keep *k = r->keep;
	char delimiter = r->opt->delimiter;

	r->left++;
	if (k->file.fd < 0)
		return;
	/* A list of keys must not begin with what is the head of another kind. */
	if (!k->begun)
		k->stated |= record_is_head(rec->key, rec->len, delimiter);
	if (!k->begun && k->stated)
		record_write_head(&k->block, delimiter);
	k->begun = true;
	if (k->stated) {
		record_write(&k->block, rec, delimiter);
	} else {
		text_add(&k->block, rec->key, rec->len);
		text_add(&k->block, &delimiter, 1);
	}
	k->nblock++;
	if (k->block.n >= BLOCK)
		flush(r);
}

/* ---- in their order ------------------------------------------------------ */

/*
 * The walk knows no order: keys are gathered first, in memory that is asked for at once. If there
 * is none, they are written as they come: in no order, but they are there.
 */
struct gathered {
	struct run *run;
	size_t nkeys, nbytes; /* to be gathered */
	char *bytes;
	struct left {
		size_t at, len;
		int64_t when_ns; /* added so long ago; waiting: due then */
		uint32_t failures;
		int32_t priority;
		size_t value_len; /* behind the key */
		bool valued;
		bool waits;
	} * left;
	size_t n, used;
	int64_t now_ns, wall_ns;
	bool stated; /* there is more to say than their keys */
};

/* Neither in line nor held. */
static bool only_waits(const wq_key_info *info)
{
	return !(info->state & (WQ_STATE_QUEUED | WQ_STATE_RUNNING));
}

/* A key that is only remembered has no state. */
static int measure(void *ctx, const wq_key_info *info)
{
	struct gathered *g = ctx;

	if (info->state == 0)
		return 0;
	g->nkeys++;
	g->nbytes += info->len + info->value_len;
	g->stated |=
	    only_waits(info) || info->failures > 0 || info->priority != 0 || info->value != NULL;
	return 0;
}

static struct left left_of(const struct gathered *g, const wq_key_info *info)
{
	bool waits = only_waits(info);

	return (struct left){
	    .at = g->used,
	    .len = info->len,
	    .when_ns = waits ? info->due_ns : -info->age_ns,
	    .failures = info->failures,
	    .priority = info->priority,
	    .value_len = info->value_len,
	    .valued = info->value != NULL,
	    .waits = waits,
	};
}

static int gather(void *ctx, const wq_key_info *info)
{
	struct gathered *g = ctx;

	if (info->state == 0)
		return 0;
	g->left[g->n++] = left_of(g, info);
	memcpy(g->bytes + g->used, info->key, info->len);
	g->used += info->len;
	if (info->value_len > 0)
		memcpy(g->bytes + g->used, info->value, info->value_len);
	g->used += info->value_len;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->waits != y->waits)
		return x->waits ? 1 : -1;
	return x->when_ns < y->when_ns ? -1 : x->when_ns > y->when_ns;
}

/* The queue's clock stops with the machine, and means nothing to the next run. */
static int64_t on_the_wall(const struct left *l, int64_t now_ns, int64_t wall_ns)
{
	int64_t span = l->when_ns - now_ns;

	if (!l->waits || span <= 0)
		return 0;
	return span > WQ_NEVER - wall_ns ? WQ_NEVER : wall_ns + span;
}

static void keep_left(const struct gathered *g, const struct left *l, const char *key,
                      const char *value)
{
	keep(g->run, &(struct record){
			 .key = key,
			 .len = l->len,
			 .due_ns = on_the_wall(l, g->now_ns, g->wall_ns),
			 .failures = l->failures,
			 .priority = l->priority,
			 .value = l->valued ? value : NULL,
			 .value_len = l->value_len,
		     });
}

static int keep_unsorted(void *ctx, const wq_key_info *info)
{
	struct left l = left_of(ctx, info);

	if (info->state != 0)
		keep_left(ctx, &l, info->key, info->value);
	return 0;
}

static void drop(struct gathered *g)
{
	free(g->bytes);
	free(g->left);
	g->bytes = NULL;
	g->left = NULL;
}

static void keep_queue(struct run *r)
{
	struct gathered g = {.run = r, .now_ns = wq_now(r->q), .wall_ns = record_now()};
	bool sorted = wq_walk(r->q, measure, &g) >= 0;

	/* With --value-after a list of keys would be read as one of keys and values. */
	r->keep->stated = g.stated || !sorted || source_stated(r) || r->opt->has_values;
	if (sorted) {
		g.left = malloc(g.nkeys * sizeof *g.left + 1);
		g.bytes = malloc(g.nbytes + 1);
		sorted = g.left && g.bytes;
	}
	/* What there is is needed for writing. */
	if (!sorted)
		drop(&g);
	if (wq_walk(r->q, sorted ? gather : keep_unsorted, &g) < 0) {
		say("the unfinished keys cannot be listed: out of memory");
		r->trouble = true;
	}
	if (g.n > 0)
		qsort(g.left, g.n, sizeof *g.left, by_time);
	for (size_t i = 0; i < g.n; i++)
		keep_left(&g, &g.left[i], g.bytes + g.left[i].at,
		          g.bytes + g.left[i].at + g.left[i].len);
	drop(&g);
}

/* ---- the end ------------------------------------------------------------- */

/* It was written, but has no name: what is in it is printed. */
static void print_file(struct run *r)
{
	static char block[BLOCK + WQ_KEY_MAX + RECORD_MAX]; /* any record fits */
	const struct replace *f = &r->keep->file;
	ssize_t n;

	for (off_t at = 0; (n = pread(f->fd, block, sizeof block, at)) > 0; at += n) {
		const char *end = memrchr(block, r->opt->delimiter, (size_t)n);

		if (end)
			n = end - block + 1;
		print(r, block, (size_t)n);
	}
}

/* The file that was replaced has left some space. */
static void save_more(struct run *r)
{
	struct text *rest = &r->keep->unsaved;
	size_t n;

	r->keep->file.error = 0;
	n = save(r, rest);
	r->saved += keys_in(r, rest->bytes, n);
	memmove(rest->bytes, rest->bytes + n, rest->n - n);
	rest->n -= n;
	fsync(r->keep->file.fd);
}

/* What is printed is a file of its own: a run can read it as it is. */
static void print_head(struct run *r)
{
	struct text head = {0};

	record_write_head(&head, r->opt->delimiter);
	print(r, head.bytes, head.n);
	text_release(&head);
}

static void put_in_place(struct run *r)
{
	struct keep *k = r->keep;
	struct replace *f = &k->file;
	int error = f->error;
	bool part = f->part, named = replace_commit(f);

	if (named && part && error != 0)
		save_more(r);
	if (!named) {
		error = errno;
		r->saved = 0;
	}
	if (named && r->saved == r->left)
		return;
	tell(r, r->opt->leftover, error, "keys", r->saved, r->left);
	if (!named)
		print_file(r);
	else if (k->stated && !begins_with_head(r, k->unsaved.bytes, k->unsaved.n))
		print_head(r);
	print(r, k->unsaved.bytes, k->unsaved.n);
}

void keep_rest(struct run *r)
{
	struct keep *k = r->keep;

	k->file.wait_ns = r->opt->grace_ns;
	keep_queue(r);
	r->unread = r->left;
	source_rest(r, keep);
	control_rest(r, keep);
	r->unread = r->left - r->unread;
	if (k->file.fd < 0)
		return;
	flush(r);
	put_in_place(r);
}

void keep_close(struct run *r)
{
	append_close(&r->dead_file);
	if (!r->keep)
		return;
	text_release(&r->keep->block);
	text_release(&r->keep->unsaved);
	replace_release(&r->keep->file);
	free(r->keep);
	r->keep = NULL;
}
