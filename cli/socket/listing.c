/* Listings. The keys of failures are remembered here: to find them in the queue takes a walk. */
#include "cli/socket/listing.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/job.h"
#include "cli/command/words.h"
#include "cli/output/report.h"

/* ---- status -------------------------------------------------------------- */

static void number(struct text *t, const char *name, uint64_t n)
{
	text_print(t, "%s=%" PRIu64 "\n", name, n);
}

static void command(struct text *t, const struct run *r)
{
	struct text words = {0};

	for (char **word = r->opt->command; *word; word++) {
		text_str(&words, word == r->opt->command ? "" : " ");
		text_quoted(&words, *word);
	}
	/* The key is the last argument then. */
	if (!words_have_key(r->opt->command))
		text_str(&words, " '{}'");
	text_str(t, "command=");
	/* One line, whatever there is in it. */
	text_visible(t, words.bytes, words.n, 1000);
	text_str(t, "\n");
	text_release(&words);
}

/* Priorities and groups: a line for each of the first. */
static void riches(struct text *t, const wq_snapshot *s)
{
	number(t, "blocked", s->blocked);
	number(t, "groups", s->groups);
	number(t, "merge_failed", s->merge_failed);
	for (uint32_t i = 0; i < s->nlevels; i++)
		text_print(t, "level=%" PRId32 " %" PRIu64 "\n", s->level[i].priority,
		           s->level[i].queued);
	number(t, "queued_lower", s->queued_lower);
	for (uint32_t i = 0; i < s->nbusiest; i++) {
		const wq_group_sample *g = &s->busiest[i];

		text_print(t, "busiest=%" PRIu64 " %" PRIu64 " ", g->queued, g->running);
		/* One line, whatever there is in it. */
		text_visible(t, g->name, strlen(g->name), 4 * sizeof g->name);
		text_str(t, g->len >= sizeof g->name ? "...\n" : "\n");
	}
}

void listing_status(struct conn *c)
{
	static const char *const phases[] = {"open", "ending", "draining", "stopping"};
	const struct run *r = c->run;
	const struct counts *n = &r->count;
	struct text t = {0};
	wq_snapshot s;

	if (wq_snapshot_take(r->q, &s) != WQ_OK)
		s = (wq_snapshot){.next_due_ns = WQ_NEVER};
	text_print(&t, "name=%s\n", r->opt->name);
	number(&t, "pid", (uint64_t)getpid());
	command(&t, r);
	text_print(&t, "phase=%s\n", phases[r->phase]);
	number(&t, "paused", r->paused);
	number(&t, "full", intake_full(r));
	number(&t, "uptime_ns", (uint64_t)(r->now_ns - r->began_ns));
	number(&t, "workers", r->workers);
	text_print(&t, "rate=%.9g\n", r->control->rate);
	number(&t, "burst", (uint64_t)r->control->burst);
	number(&t, "max_queue", r->opt->max_queue);
	number(&t, "running", r->held);
	number(&t, "queued", s.queued);
	number(&t, "waiting", s.waiting);
	if (s.next_due_ns != WQ_NEVER)
		number(&t, "next_due_ns",
		       s.next_due_ns > s.now_ns ? (uint64_t)(s.next_due_ns - s.now_ns) : 0);
	number(&t, "given", n->given);
	number(&t, "merged", n->merged);
	number(&t, "refused", n->refused);
	number(&t, "done", n->done);
	number(&t, "dead", n->dead);
	number(&t, "dead_kept", r->dead.n);
	number(&t, "cancelled", n->cancelled);
	number(&t, "unfinished", run_units(r));
	number(&t, "attempts", n->attempts);
	number(&t, "failed", n->failed);
	number(&t, "connections", r->control->n);
	number(&t, "waiters", r->control->nwaiting);
	text_print(&t, "per_second=%.3f\n", report_rate());
	riches(&t, &s);
	conn_piece(c, t.bytes, t.n);
	conn_well(c, "");
	text_release(&t);
}

/* ---- keys ---------------------------------------------------------------- */

/* Of a key, in the order of listing.h. */
struct row {
	const char *state;
	int64_t ns;
	uint64_t failures;
	bool dirty;
	const void *key;
	size_t len;
	int32_t priority;
	const void *value; /* NULL: none */
	size_t value_len;
};

static void put(struct conn *c, const struct row *x)
{
	static struct text t;
	wq_separator by = c->run->opt->group_by;
	wq_key group;

	t.n = 0;
	text_print(&t, "%s%c%" PRId64 "%c%" PRIu64 "%c%s%c", x->state, 0, x->ns < 0 ? 0 : x->ns, 0,
	           x->failures, 0, x->dirty ? "dirty" : "", 0);
	text_add(&t, x->key, x->len);
	text_print(&t, "%c%" PRId32 "%c", 0, x->priority, 0);
	if (by.n > 0 && wq_group_before(&by, x->key, x->len, &group) == WQ_OK)
		text_print(&t, "%zu", group.len);
	text_print(&t, "%c%s%c", 0, x->value ? "=" : "", 0);
	/* Both are without NUL; the order of these two fields leaves no doubt. */
	text_add(&t, x->value, x->value_len);
	text_add(&t, "", 1);
	conn_piece(c, t.bytes, t.n);
}

static bool is_dirty(unsigned state)
{
	return state & WQ_STATE_RUNNING && state & (WQ_STATE_DIRTY | WQ_STATE_WAITING);
}

struct walk {
	struct conn *c;
	const char *state;
	uint64_t limit, n;
};

static int show(void *ctx, const wq_key_info *info)
{
	struct walk *w = ctx;
	const char *state = "waiting";
	int64_t ns = info->due_ns - w->c->run->now_ns;

	if (info->state == 0)
		return 0;
	if (info->state & WQ_STATE_RUNNING) {
		state = "running";
		ns = info->running_ns;
	} else if (info->state & WQ_STATE_QUEUED) {
		state = "queued";
		ns = info->age_ns;
	}
	if (*w->state != '\0' && strcmp(w->state, state) != 0)
		return 0;
	if (w->n++ == w->limit)
		return 1;
	put(w->c, &(struct row){
		      .state = state,
		      .ns = ns,
		      .failures = info->failures,
		      .dirty = is_dirty(info->state),
		      .key = info->key,
		      .len = info->len,
		      .priority = info->priority,
		      .value = info->value,
		      .value_len = info->value_len,
		  });
	return 0;
}

/* Without a walk: there may be a million others. */
static void show_running(struct walk *w)
{
	struct run *r = w->c->run;

	for (uint32_t i = 0; i < r->njob && r->running > 0; i++) {
		const struct job *j = r->job[i];

		for (uint32_t k = 0; j && j->state != JOB_FREE && k < j->nheld; k++) {
			const struct held *h = &j->held[k];
			int state = wq_state(r->q, h->key, h->len);

			if (w->n++ == w->limit)
				return;
			put(w->c, &(struct row){
				      .state = "running",
				      .ns = r->now_ns - j->began_ns,
				      .failures = h->item.attempts - 1,
				      .dirty = state > 0 && is_dirty((unsigned)state),
				      .key = h->key,
				      .len = h->len,
				      .priority = h->item.priority,
				      .value = h->item.value,
				      .value_len = h->item.value_len,
				  });
		}
	}
}

/* The newest first: they are what a limit leaves. */
static void show_dead(struct walk *w)
{
	const struct run *r = w->c->run;

	for (const struct dead_key *k = r->dead.newest; k; k = k->older) {
		if (w->n++ == w->limit)
			return;
		put(w->c, &(struct row){
			      .state = "dead",
			      .ns = r->now_ns - k->at_ns,
			      .failures = k->failures,
			      .key = k->key,
			      .len = k->len,
			      .priority = k->priority,
			      .value = k->value,
			      .value_len = k->value_len,
			  });
	}
}

void listing_keys(struct conn *c, const char *state, uint64_t limit)
{
	struct walk w = {.c = c, .state = state, .limit = limit};

	if (*state != '\0' && strcmp(state, "queued") != 0 && strcmp(state, "waiting") != 0 &&
	    strcmp(state, "running") != 0 && strcmp(state, "dead") != 0) {
		conn_not(c, EXIT_USAGE, "%s: expected queued, running, waiting or dead",
		         shown(state, strlen(state)));
		return;
	}
	if (strcmp(state, "running") == 0)
		show_running(&w);
	else if (strcmp(state, "dead") == 0)
		show_dead(&w);
	else if (wq_walk(c->run->q, show, &w) < 0) {
		conn_not(c, EXIT_TROUBLE, "the keys cannot be listed: out of memory");
		return;
	}
	conn_well(c, w.n > w.limit ? "more" : "");
}

/* ---- failures ------------------------------------------------------------ */

static struct failure *find(struct run *r, const void *key, size_t len)
{
	size_t n = len < FAILURE_BYTES ? len : FAILURE_BYTES;

	for (int i = 0; i < FAILURES; i++) {
		struct failure *f = &r->control->failure[i];

		if (f->len == len && memcmp(f->key, key, n) == 0)
			return f;
	}
	return NULL;
}

static struct failure *oldest(struct run *r)
{
	struct failure *old = r->control->failure;

	for (int i = 0; i < FAILURES; i++) {
		struct failure *f = &r->control->failure[i];

		if (f->len == 0)
			return f;
		if (f->at_ns < old->at_ns)
			old = f;
	}
	return old;
}

void listing_settled(struct run *r, const void *key, size_t len, bool dead)
{
	int64_t n = wq_failures(r->q, key, len);
	struct failure *f = find(r, key, len);

	if (n <= 0 && !dead) {
		if (f)
			f->len = 0;
		return;
	}
	if (!f) {
		f = oldest(r);
		f->n = 0;
		f->len = len;
		memcpy(f->key, key, len < FAILURE_BYTES ? len : FAILURE_BYTES);
	}
	/* One that is dead is forgotten by the queue. */
	f->n = n > 0 ? (uint32_t)n : f->n + 1;
	f->dead = dead;
	f->at_ns = r->now_ns;
}

void listing_forget(struct run *r, const void *key, size_t len)
{
	struct failure *f = find(r, key, len);

	if (f)
		f->len = 0;
}

void listing_failures(struct conn *c)
{
	struct run *r = c->run;

	for (int i = 0; i < FAILURES; i++) {
		const struct failure *f = &r->control->failure[i];
		size_t n = f->len < FAILURE_BYTES ? f->len : FAILURE_BYTES;
		int state = f->len > FAILURE_BYTES ? 0 : wq_state(r->q, f->key, f->len);

		if (f->len == 0)
			continue;
		put(c, &(struct row){
			   .state = state & WQ_STATE_RUNNING   ? "running"
		                    : state & WQ_STATE_QUEUED  ? "queued"
		                    : state & WQ_STATE_WAITING ? "waiting"
		                    : f->dead                  ? "dead"
		                                               : "",
			   .ns = r->now_ns - f->at_ns,
			   .failures = f->n,
			   .key = f->key,
			   .len = n,
		       });
	}
	conn_well(c, "");
}
