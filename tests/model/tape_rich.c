/* Priorities, groups and values: which ones a queue has, what adds bring, and what is shown. */
#include "tape_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups --------------------------------------------------------------- */

enum group_kind { BY_BYTE, BY_HEAD, BY_SLASH, ALL_ONE, GROUP_KINDS };

/* Some ten groups, with keys of each among any ten plain ones. */
static int by_byte(void *ctx, const void *key, size_t len, wq_key *group)
{
	const char *at = key;

	(void)ctx;
	if (len > 4)
		*group = (wq_key){at + 4, 1};
	else
		*group = (wq_key){at, len > 0};
	return WQ_OK;
}

/* Fifty, each with a hundred plain keys in a row. */
static int by_head(void *ctx, const void *key, size_t len, wq_key *group)
{
	(void)ctx;
	*group = (wq_key){key, len < 3 ? len : 3};
	return WQ_OK;
}

static int all_one(void *ctx, const void *key, size_t len, wq_key *group)
{
	(void)ctx;
	(void)key;
	(void)len;
	*group = (wq_key){NULL, 0};
	return WQ_OK;
}

static const wq_group_fn group_fn[GROUP_KINDS] = {by_byte, by_head, wq_group_before, all_one};
static wq_separator slash = {.byte = '/', .n = 1};

static wq_key group_name(enum group_kind kind, int key)
{
	wq_key name = {NULL, 0};
	size_t len;
	const void *bytes = keys_bytes(key, &len);

	if (group_fn[kind](&slash, bytes, len, &name) != WQ_OK)
		abort();
	return name;
}

static bool same_name(const wq_key *a, const wq_key *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->key, b->key, a->len) == 0);
}

/* A group has the number of its first key. */
static const int *groups_of(enum group_kind kind)
{
	static int group_of[GROUP_KINDS][MODEL_KEYS];
	static bool known[GROUP_KINDS];
	static int first[MODEL_KEYS];
	int n = 0;

	if (known[kind])
		return group_of[kind];
	known[kind] = true;
	for (int key = 0; key < MODEL_KEYS; key++) {
		wq_key name = group_name(kind, key);
		int i = 0;

		for (; i < n; i++) {
			wq_key other = group_name(kind, first[i]);

			if (same_name(&name, &other))
				break;
		}
		if (i == n)
			first[n++] = key;
		group_of[kind][key] = first[i];
	}
	return group_of[kind];
}

/* Exceptions, by the last byte of the name. */
static void setup(void *ctx, const wq_key *name, wq_group_settings *s)
{
	unsigned last = name->len > 0 ? ((const unsigned char *)name->key)[name->len - 1] : 0;

	(void)ctx;
	switch (last % 5) {
	case 0:
		s->weight = 2;
		break;
	case 1:
		s->limit = s->limit > 0 ? s->limit + 1 : 2;
		break;
	case 2:
		s->rate = 0;
		s->weight = 3;
		break;
	case 3:
		s->burst += 2;
		break;
	default:
		s->rate = -1; /* out of range: nothing of it counts */
		s->limit = 1;
		break;
	}
}

static struct model_rules rules_of(const wq_group_settings *s)
{
	return (struct model_rules){
	    .limit = s->limit,
	    .weight = s->weight > 0 ? s->weight : 1,
	    .burst = s->burst > 0 ? s->burst : 1,
	    .token_ns = s->rate > 0 ? (int64_t)(1e9 / s->rate + 0.5) : 0,
	};
}

/* One byte: the kind, the limit, the rate, the burst, exceptions. */
static void make_groups(struct tape *t, struct side *s, wq_options *o)
{
	static struct model_rules rules[2][MODEL_KEYS];
	static const double rates[] = {0, 0, 700, 30};
	unsigned b = tape_byte(t);
	enum group_kind kind = (enum group_kind)(b % GROUP_KINDS);
	struct model_rules *mine = rules[s == &t->side[1]];

	s->group = (wq_group_settings){.limit = b >> 2 & 3,
	                               .rate = rates[b >> 4 & 3],
	                               .burst = b & 0x40 ? 3 : 0};
	s->exceptions = b & 0x80;
	s->rich.group_of = groups_of(kind);
	s->rich.rules = mine;
	for (int key = 0; key < MODEL_KEYS; key++) {
		wq_group_settings own = s->group;
		wq_key name = group_name(kind, key);

		if (s->exceptions)
			setup(NULL, &name, &own);
		mine[key] = rules_of(own.rate < 0 ? &s->group : &own);
	}
	o->group = group_fn[kind];
	o->group_ctx = kind == BY_SLASH ? &slash : NULL;
	o->group_limit = s->group.limit;
	o->group_rate = s->group.rate;
	o->group_burst = s->group.burst;
	o->group_setup = s->exceptions ? setup : NULL;
	s->ticks = s->ticks || s->group.rate > 0;
}

/* ---- the queue ------------------------------------------------------------ */

enum { PRIORITIES = 1, GROUPS = 2, VALUES = 4, AGING = 0x20 };

/* A prime, so that keys of two levels do not come to one level at the same time. */
enum { SPAN_NS = 1000003 };

void tape_enrich(struct tape *t, struct side *s, wq_options *o)
{
	static const wq_merge_fn merges[] = {wq_merge_last, wq_merge_first, wq_merge_append,
	                                     wq_merge_or};
	static const size_t bounds[] = {0, 0, 700, 3};
	unsigned b = tape_byte(t);

	o->max_keys = bounds[b >> 6];
	if (b & VALUES) {
		s->rich.values = true;
		s->rich.merge = (enum model_merge)(b >> 3 & 3);
		s->rich.separator = b & 1 ? "\n" : ", ";
		o->values = 1;
		o->merge = s->rich.merge == MODEL_LAST && b & 1 ? NULL : merges[s->rich.merge];
		if (!(b & 1))
			o->merge_ctx = ", ";
	}
	if (!(b & (PRIORITIES | GROUPS)))
		return;
	o->order = NULL;
	if (b & PRIORITIES) {
		s->rich.priorities = true;
		o->priorities = 1;
	}
	if (b & PRIORITIES && b & AGING) {
		s->rich.aging_ns = o->aging_ns = SPAN_NS;
		o->aging_max = b & VALUES ? 0 : 3;
		s->rich.aging_max = b & VALUES ? WQ_PRIORITY_MAX : 3;
		s->ticks = true;
	}
	if (b & GROUPS)
		make_groups(t, s, o);
}

/* ---- adds ----------------------------------------------------------------- */

/* Few levels meet, many widen the table. Values are told apart by their first bytes. */
struct model_load tape_load(const struct side *s, unsigned b)
{
	static const int priorities[] = {0, 0, 1, 3, 5, -1, WQ_PRIORITY_MIN, WQ_PRIORITY_MAX};
	static const size_t lengths[] = {0, 1, 6, 6, 7, 40, 1000, 40000};
	static char value[WQ_VALUE_MAX];
	static unsigned n;
	struct model_load with = {0};

	if (s->rich.priorities)
		with.priority = b & 0x80 ? (int)(b * 7919 % 4000) - 2000 : priorities[b & 7];
	if (s->rich.values && b & 0x40) {
		with.len = lengths[b >> 3 & 7];
		for (size_t i = 0; i < with.len; i++)
			value[i] = (char)(i < 4 ? n >> 8 * (3 - i) : i * 13 + b);
		with.value = value;
		n++;
	}
	return with;
}

struct model_load tape_some_load(struct tape *t, const struct side *s)
{
	return s->rich.priorities || s->rich.values ? tape_load(s, tape_byte(t)) : model_plain;
}

bool tape_brings(const struct model_load *with)
{
	return with->priority != 0 || with->value;
}

int tape_add_with(struct side *s, const void *key, size_t len, wq_add_options *o,
                  const struct model_load *with)
{
	char *copy = NULL;
	int rc;

	if (with->value) {
		copy = malloc(with->len > 0 ? with->len : 1);
		if (!copy)
			abort();
		memcpy(copy, with->value, with->len);
	}
	o->priority = with->priority;
	o->value = copy;
	o->value_len = with->len;
	rc = wq_add_with(s->q, key, len, o);
	free(copy);
	return rc;
}

/* ---- looking -------------------------------------------------------------- */

bool tape_same_load(struct tape *t, const char *what, int priority, const void *value, size_t len,
                    const struct model_load *want)
{
	if (priority != want->priority)
		return tape_fail(t, "%s: priority %d, the model's %d", what, priority,
		                 want->priority);
	if (!value != !want->value || len != want->len)
		return tape_fail(t, "%s: %s of %zu bytes, the model's %s of %zu", what,
		                 value ? "a value" : "no value", len, want->value ? "one" : "none",
		                 want->len);
	if (value && len > 0 && memcmp(value, want->value, len) != 0)
		return tape_fail(t, "%s: another value than the model's", what);
	if (value && ((const char *)value)[len] != '\0')
		return tape_fail(t, "%s: no NUL after the value", what);
	return true;
}

/* The number of the group of that name, or -1. */
static int find_group(const struct side *s, const wq_key *name)
{
	for (int key = 0; key < MODEL_KEYS; key++) {
		size_t len;
		const void *bytes = keys_bytes(key, &len);
		enum group_kind kind = 0;
		wq_key own;

		while (groups_of(kind) != s->rich.group_of)
			kind++;
		(void)bytes;
		own = group_name(kind, key);
		if (s->rich.group_of[key] == key && same_name(&own, name))
			return key;
	}
	return -1;
}

bool tape_same_group(struct tape *t, const struct side *s, const wq_key *group, int key)
{
	enum group_kind kind = 0;
	wq_key want;

	if (!s->rich.group_of) {
		SAME("group", group->key != NULL || group->len > 0, false);
		return true;
	}
	while (groups_of(kind) != s->rich.group_of)
		kind++;
	want = group_name(kind, key);
	if (!same_name(group, &want) || !group->key)
		return tape_fail(t, "walk: another group of key %d than the model's", key);
	SAME("the byte after the group", ((const char *)group->key)[group->len], 0);
	return true;
}

static bool same_levels(struct tape *t, const struct side *s, const wq_snapshot *p)
{
	uint64_t shown = 0;

	/* None, if no add gave a priority yet; and one that is empty, if one did. */
	for (size_t k = 0; p->nlevels == 0 && k < s->m.nqueued; k++)
		SAME("look: a level of a key", s->m.keys[s->m.line[k]].load.priority, 0);
	if (p->nlevels == 0 || s->m.nqueued == 0) {
		SAME("look: levels of none", p->nlevels > 1, false);
		SAME("look: lower than none", p->queued_lower + p->level[0].queued, 0);
		return true;
	}
	for (uint32_t i = 0; i < p->nlevels; i++) {
		uint64_t queued = 0;

		if (i > 0 && p->level[i].priority >= p->level[i - 1].priority)
			return tape_fail(t, "look: levels are not sorted");
		for (size_t k = 0; k < s->m.nqueued; k++) {
			int priority = s->m.keys[s->m.line[k]].load.priority;

			queued += priority == p->level[i].priority;
			if (i == 0 ? priority > p->level[0].priority
			           : priority > p->level[i].priority &&
			                 priority < p->level[i - 1].priority)
				return tape_fail(t, "look: level %d is missing", priority);
		}
		SAME("look: queued of a level", p->level[i].queued, queued);
		if (queued == 0)
			return tape_fail(t, "look: level %d is empty", p->level[i].priority);
		shown += queued;
	}
	SAME("look: lower", p->queued_lower, s->m.nqueued - shown);
	if (p->queued_lower > 0)
		SAME("look: levels", p->nlevels, WQ_LEVELS);
	return true;
}

static bool same_busiest(struct tape *t, const struct side *s, const wq_snapshot *p)
{
	uint64_t busy = 0, shown = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < p->nbusiest; i++) {
		const wq_group_sample *g = &p->busiest[i];
		size_t len = g->len < WQ_SAMPLE_BYTES ? g->len : WQ_SAMPLE_BYTES - 1;
		int group = g->len == len ? find_group(s, &(wq_key){g->name, g->len}) : -1;

		SAME("the byte after the sample", g->name[len], 0);
		if (g->queued + g->running > least)
			return tape_fail(t, "look: groups are not sorted");
		least = g->queued + g->running;
		/* Names that were cut may be of several. */
		if (g->len != len)
			continue;
		if (group < 0)
			return tape_fail(t, "look: an unknown group");
		SAME("look: queued of a group", g->queued, s->m.groups[group].queued);
		SAME("look: running of a group", g->running, s->m.groups[group].running);
	}
	for (int g = 0; g < MODEL_KEYS; g++) {
		uint64_t keys = s->m.groups[g].queued + s->m.groups[g].running;

		busy += keys > 0;
		shown += keys > least;
	}
	SAME("look: busy groups", p->nbusiest, busy < WQ_BUSIEST ? busy : WQ_BUSIEST);
	if (shown >= WQ_BUSIEST || p->groups < busy)
		return tape_fail(t, "look: busier groups are not shown");
	return true;
}

bool tape_same_riches(struct tape *t, struct side *s, const wq_snapshot *p)
{
	SAME("look: merges that failed", p->merge_failed, s->m.merge_failed);
	SAME("look: blocked", p->blocked, s->m.nqueued - s->m.nready);
	if (model_ranked(&s->m) && !same_levels(t, s, p))
		return false;
	if (!s->rich.group_of) {
		SAME("look: groups", p->groups + p->nbusiest, 0);
		return true;
	}
	return same_busiest(t, s, p);
}
