/*
 * Listings of keys. One walk fills all lists, because whoever asks for one asks for others:
 * the page shows three. Each list keeps its best in a heap whose root is the worst of them,
 * so a walk over n keys needs memory for the answer alone.
 */
#define _GNU_SOURCE
#include "http/keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "http/bill.h"

enum {
	SHOWN_BYTES = WQ_SAMPLE_BYTES - 1,
	SHOWN_MORE = 63, /* of a group or a value */
	PIECE = 256
};

struct item {
	int64_t rank; /* the greater, the nearer to the top */
	int64_t age_ns;
	int64_t due_ns;
	int64_t running_ns;
	size_t len; /* of the whole key */
	unsigned state;
	uint32_t failures;
	int32_t priority;
	bool grouped, valued;
	size_t group_len, value_len; /* of the whole */
	char key[SHOWN_BYTES + 1];
	char group[SHOWN_MORE];
	char value[SHOWN_MORE];
};

struct heap {
	struct item *at;
	unsigned n;
	unsigned room;
	uint64_t found; /* those that did not fit as well */
};

struct walk {
	const char *name;
	const struct wq__query *q;
	struct heap list[WQ__LISTS];
	int64_t now_ns;
	int64_t looked; /* or an error */
	const atomic_bool *ending;
	struct wq__bill bill;
	unsigned seen;
};

/* ---- the best of each list -------------------------------------------------- */

/* Equal ranks go by the key, so that a list does not jump about. */
static bool is_better(const struct item *a, const struct item *b)
{
	size_t n = a->len < b->len ? a->len : b->len;
	int order;

	if (a->rank != b->rank)
		return a->rank > b->rank;
	order = memcmp(a->key, b->key, n < SHOWN_BYTES ? n : SHOWN_BYTES);
	return order != 0 ? order < 0 : a->len < b->len;
}

static void swap(struct item *a, struct item *b)
{
	struct item t = *a;

	*a = *b;
	*b = t;
}

static void sift_down(struct item *at, unsigned n)
{
	for (unsigned i = 0;;) {
		unsigned worst = i;

		for (unsigned child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
			if (is_better(&at[worst], &at[child]))
				worst = child;
		if (worst == i)
			return;
		swap(&at[i], &at[worst]);
		i = worst;
	}
}

static void sift_up(struct item *at, unsigned i)
{
	while (i > 0 && is_better(&at[(i - 1) / 2], &at[i])) {
		swap(&at[(i - 1) / 2], &at[i]);
		i = (i - 1) / 2;
	}
}

static void copy(char *to, const void *from, size_t len)
{
	size_t n = len < SHOWN_MORE ? len : SHOWN_MORE;

	if (from)
		memcpy(to, from, n);
}

static void fill(struct item *it, const wq_key_info *info, int64_t rank)
{
	size_t n = info->len < SHOWN_BYTES ? info->len : SHOWN_BYTES;

	it->rank = rank;
	it->age_ns = info->age_ns;
	it->due_ns = info->due_ns;
	it->running_ns = info->running_ns;
	it->len = info->len;
	it->state = info->state;
	it->failures = info->failures;
	memcpy(it->key, info->key, n);
	it->key[n] = '\0';
	it->priority = info->priority;
	it->grouped = info->group.key != NULL;
	it->group_len = info->group.len;
	copy(it->group, info->group.key, info->group.len);
	it->valued = info->value != NULL;
	it->value_len = info->value_len;
	copy(it->value, info->value, info->value_len);
}

static void offer(struct heap *h, const wq_key_info *info, int64_t rank)
{
	struct item it;

	h->found++;
	if (h->n < h->room) {
		fill(&h->at[h->n], info, rank);
		sift_up(h->at, h->n++);
	} else if (rank >= h->at[0].rank) {
		fill(&it, info, rank);
		if (is_better(&it, &h->at[0])) {
			h->at[0] = it;
			sift_down(h->at, h->n);
		}
	}
}

/* The worst goes to the end, again and again. */
static void sort(struct heap *h)
{
	for (unsigned n = h->n; n > 1; n--) {
		swap(&h->at[0], &h->at[n - 1]);
		sift_down(h->at, n - 1);
	}
}

/* ---- walking ---------------------------------------------------------------- */

static bool is_ending(const struct walk *w)
{
	return atomic_load_explicit(w->ending, memory_order_relaxed);
}

static int see(void *ctx, const wq_key_info *info)
{
	struct walk *w = ctx;
	const struct wq__query *q = w->q;

	if (is_ending(w))
		return 1;
	if (++w->seen % PIECE == 0)
		wq__bill_cut(&w->bill);
	if (q->match_len > 0 && !memmem(info->key, info->len, q->match, q->match_len))
		return 0;
	offer(&w->list[WQ__LIST_ALL], info, info->age_ns);
	if (info->state & WQ_STATE_QUEUED)
		offer(&w->list[WQ__LIST_QUEUED], info, info->age_ns);
	if (info->state & WQ_STATE_RUNNING)
		offer(&w->list[WQ__LIST_RUNNING], info, info->running_ns);
	if (info->state & WQ_STATE_WAITING)
		offer(&w->list[WQ__LIST_WAITING], info, -info->due_ns);
	if (info->state & WQ_STATE_LEFT)
		offer(&w->list[WQ__LIST_LEFT], info, -info->due_ns);
	if (info->failures > 0)
		offer(&w->list[WQ__LIST_FAILING], info, info->failures);
	return 0;
}

static int visit(void *ctx, const char *name, wq_queue *q)
{
	struct walk *w = ctx;

	(void)name;
	w->now_ns = wq_now(q);
	wq__bill_open(&w->bill);
	w->looked = wq_walk(q, see, w);
	wq__bill_cut(&w->bill);
	return w->looked < 0 ? (int)w->looked : WQ_OK;
}

/* ---- writing ---------------------------------------------------------------- */

static void write_states(struct wq__buffer *t, unsigned state)
{
	static const char *const names[] = {"queued",  "running", "dirty",
	                                    "waiting", "left",    "retrying"};
	const char *before = "";

	wq__buffer_add(t, ",\"state\":[");
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (state & 1u << i) {
			wq__buffer_print(t, "%s\"%s\"", before, names[i]);
			before = ",";
		}
	}
	wq__buffer_add(t, "]");
}

/* null: there is none. */
static void write_time(struct wq__buffer *t, const char *name, bool is, int64_t ns)
{
	if (is)
		wq__buffer_print(t, ",\"%s\":%" PRId64, name, ns);
	else
		wq__buffer_print(t, ",\"%s\":null", name);
}

static size_t shown_len(const struct item *it)
{
	return it->len <= SHOWN_BYTES ? it->len
	                              : wq__utf8_cut((const unsigned char *)it->key, SHOWN_BYTES);
}

static void write_more(struct wq__buffer *t, const char *name, const char *bytes, size_t len)
{
	size_t n = len <= SHOWN_MORE ? len : wq__utf8_cut((const unsigned char *)bytes, SHOWN_MORE);

	wq__buffer_print(t, ",\"%s\":", name);
	wq__buffer_string(t, bytes, n);
	wq__buffer_print(t, ",\"%s_len\":%zu", name, len);
}

/* What a key brings along: a key that brings nothing has none of these members. */
static void write_brought(struct wq__buffer *t, const struct item *it)
{
	if (it->priority != 0)
		wq__buffer_print(t, ",\"priority\":%" PRId32, it->priority);
	if (it->grouped)
		write_more(t, "group", it->group, it->group_len);
	if (it->valued)
		write_more(t, "value", it->value, it->value_len);
}

static void write_item(struct wq__buffer *t, const struct item *it)
{
	bool waits = it->state & (WQ_STATE_WAITING | WQ_STATE_LEFT);

	wq__buffer_add(t, "{\"key\":");
	wq__buffer_string(t, it->key, shown_len(it));
	wq__buffer_print(t, ",\"len\":%zu", it->len);
	write_states(t, it->state);
	write_time(t, "age_ns", !waits || it->state & (WQ_STATE_QUEUED | WQ_STATE_RUNNING),
	           it->age_ns);
	write_time(t, "due_ns", waits && it->due_ns != WQ_NEVER, it->due_ns);
	write_time(t, "running_ns", it->state & WQ_STATE_RUNNING, it->running_ns);
	wq__buffer_print(t, ",\"failures\":%" PRIu32, it->failures);
	write_brought(t, it);
	wq__buffer_add(t, "}");
}

static void write_list(struct wq__buffer *t, const struct walk *w, const struct heap *h)
{
	wq__buffer_add(t, "{\"name\":");
	wq__buffer_string(t, w->name, strlen(w->name));
	wq__buffer_print(t, ",\"now_ns\":%" PRId64, w->now_ns);
	wq__buffer_print(t, ",\"looked\":%" PRId64 ",\"found\":%" PRIu64, w->looked, h->found);
	wq__buffer_add(t, ",\"keys\":[");
	for (unsigned i = 0; i < h->n; i++) {
		if (i > 0)
			wq__buffer_add(t, ",\n");
		write_item(t, &h->at[i]);
	}
	wq__buffer_add(t, "]}\n");
}

static int write_lists(struct walk *w, struct wq__buffer out[WQ__LISTS])
{
	bool failed = false;

	for (int i = 0; i < WQ__LISTS; i++) {
		out[i] = (struct wq__buffer){0};
		sort(&w->list[i]);
		write_list(&out[i], w, &w->list[i]);
		failed |= out[i].failed;
	}
	for (int i = 0; i < WQ__LISTS && failed; i++)
		wq__buffer_release(&out[i]);
	return failed ? WQ_ENOMEM : WQ_OK;
}

int wq__keys_take(wq_registry *r, const char *name, const struct wq__query *q,
                  const atomic_bool *ending, struct wq__buffer out[WQ__LISTS], int64_t *held_ns)
{
	struct walk w = {.name = name, .q = q, .ending = ending};
	/* Pages that no list reaches are never touched. */
	struct item *items = malloc(sizeof *items * q->limit * WQ__LISTS);
	int rc;

	if (!items)
		return WQ_ENOMEM;
	for (unsigned i = 0; i < WQ__LISTS; i++)
		w.list[i] = (struct heap){.at = items + (size_t)i * q->limit, .room = q->limit};
	rc = wq_registry_visit(r, name, visit, &w);
	if (rc == WQ_OK)
		rc = is_ending(&w) ? WQ_ESHUTDOWN : write_lists(&w, out);
	*held_ns = w.bill.sum_ns;
	free(items);
	return rc;
}
