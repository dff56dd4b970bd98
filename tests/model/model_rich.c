/*
 * Priorities, groups and values: who is first, and what two values make.
 *
 * line[] has the queued keys in any order. Which of them is first is found by comparing all of
 * them; with groups, by comparing the groups in line and then the keys of one.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

void model_enrich(struct model *m, const struct model_rich *rich)
{
	m->rich = *rich;
}

bool model_ranked(const struct model *m)
{
	return m->rich.priorities || m->rich.group_of;
}

int model_group_of(const struct model *m, int key)
{
	return m->rich.group_of ? m->rich.group_of[key] : -1;
}

/* ---- who is first --------------------------------------------------------- */

static bool ages(const struct model *m, int priority)
{
	return m->rich.aging_ns > 0 && priority <= m->rich.aging_max;
}

/* Where a key or group stands by now. */
struct standing {
	int level, priority;
	int64_t since; /* when it came to that level, or its place there */
	int64_t seq;
};

static struct standing standing(const struct model *m, int priority, int64_t place, int64_t seq)
{
	struct standing s = {priority, priority, place, seq};

	if (ages(m, priority)) {
		int64_t up = (m->now_ns - place) / m->rich.aging_ns;

		if (up > m->rich.aging_max - priority)
			up = m->rich.aging_max - priority;
		s.level += (int)up;
		s.since += up * m->rich.aging_ns;
	}
	return s;
}

static bool before(const struct standing *a, const struct standing *b)
{
	if (a->level != b->level)
		return a->level > b->level;
	if (a->since != b->since)
		return a->since < b->since;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->seq < b->seq;
}

/* The first key, of that group or of all (-1); or -1. */
static int first_key(const struct model *m, int group)
{
	struct standing best, s;
	int first = -1;

	for (size_t i = 0; i < m->nqueued; i++) {
		const struct model_key *k = &m->keys[m->line[i]];

		if (group >= 0 && model_group_of(m, m->line[i]) != group)
			continue;
		s = standing(m, k->load.priority, k->place, k->seq);
		if (first < 0 || before(&s, &best)) {
			first = m->line[i];
			best = s;
		}
	}
	return first;
}

int model_first(const struct model *m)
{
	struct standing best, s;
	int first = -1;

	if (!m->rich.group_of)
		return first_key(m, -1);
	for (size_t i = 0; i < m->nqueued; i++) {
		int group = model_group_of(m, m->line[i]);
		const struct model_group *g = &m->groups[group];

		s = standing(m, g->level, g->place, g->seq);
		if (g->in_line && (first < 0 || before(&s, &best))) {
			first = group;
			best = s;
		}
	}
	return first_key(m, first);
}

int64_t model_new_place(struct model *m, int priority, int64_t since_ns)
{
	return ages(m, priority) ? since_ns : ++m->places;
}

bool model_aged_place(struct model *m, int key, int priority, int64_t since_ns)
{
	struct model_key *k = &m->keys[key];
	int64_t came = k->place + (priority - k->load.priority) * m->rich.aging_ns;

	if (!ages(m, priority) || came >= since_ns)
		return false;
	k->place = came;
	m->overtook = true;
	return true;
}

/* ---- groups --------------------------------------------------------------- */

static const struct model_rules *rules_of(const struct model *m, int group)
{
	return &m->rich.rules[group];
}

/* What is spent of its bucket at that time. */
static int64_t spent(const struct model *m, int group, int64_t now_ns)
{
	const struct model_group *g = &m->groups[group];
	int64_t left = g->spent_ns - (now_ns - g->spent_at);

	(void)m;
	return left > 0 ? left : 0;
}

/* How much it has to get back before it has a whole token. */
static int64_t lacks(const struct model *m, int group, int64_t now_ns)
{
	const struct model_rules *r = rules_of(m, group);

	return spent(m, group, now_ns) - (r->burst - 1) * r->token_ns;
}

static uint32_t may_start(const struct model *m, int group)
{
	const struct model_rules *r = rules_of(m, group);
	const struct model_group *g = &m->groups[group];
	uint32_t n = g->queued;

	if (r->token_ns > 0 && lacks(m, group, m->moment_ns) > 0)
		return 0;
	if (r->token_ns > 0 && n > 1)
		n = 1; /* so many are known to have a token */
	if (r->limit > 0 && g->running >= r->limit)
		return 0;
	if (r->limit > 0 && n > r->limit - g->running)
		n = r->limit - g->running;
	return n;
}

/* Something of the group has changed: may it start a key, and where does it stand? */
static void regroup(struct model *m, int group, bool turn_over)
{
	struct model_group *g = &m->groups[group];
	const struct model_key *first;
	uint32_t ready = may_start(m, group);
	int64_t place;
	int level;

	m->pushes += ready > g->ready;
	m->nready = m->nready + ready - g->ready;
	g->ready = ready;
	if (ready == 0) {
		g->in_line = false;
		g->turns = 0;
		return;
	}
	first = &m->keys[first_key(m, group)];
	level = first->load.priority;
	place = first->place > g->turned_ns ? first->place : g->turned_ns;
	if (g->in_line && level == g->level && !turn_over &&
	    (!ages(m, level) || g->turns > 0 || place == g->place))
		return;
	g->in_line = true;
	g->turns = 0;
	g->level = level;
	g->place = ages(m, level) ? place : ++m->places;
	g->seq = ++m->seqs;
}

int model_next_token(const struct model *m, int64_t until_ns, int64_t *at_ns)
{
	int next = -1;

	for (size_t i = 0; m->rich.group_of && i < m->nqueued; i++) {
		int group = model_group_of(m, m->line[i]);
		int64_t at = m->moment_ns;

		if (rules_of(m, group)->token_ns == 0)
			continue;
		at += lacks(m, group, m->moment_ns);
		if (at <= m->moment_ns || at > until_ns || (next >= 0 && at >= *at_ns))
			continue;
		next = group;
		*at_ns = at;
	}
	return next;
}

void model_give_back(struct model *m, int key)
{
	int group = model_group_of(m, key);
	int64_t token_ns;

	if (group < 0 || (token_ns = rules_of(m, group)->token_ns) == 0)
		return;
	m->groups[group].spent_ns = spent(m, group, m->moment_ns) - token_ns;
	m->groups[group].spent_at = m->moment_ns;
	if (m->groups[group].spent_ns < 0)
		m->groups[group].spent_ns = 0;
}

void model_token(struct model *m, int group)
{
	regroup(m, group, false);
}

/* ---- the line ------------------------------------------------------------- */

/* Before all others of its level, where that is: of its group. */
static int64_t place_before(struct model *m, int key, int64_t now_ns)
{
	int64_t place = now_ns;

	if (!ages(m, m->keys[key].load.priority))
		return --m->first_place;
	for (size_t i = 0; i < m->nqueued; i++) {
		const struct model_key *k = &m->keys[m->line[i]];

		if (m->line[i] != key && k->load.priority == m->keys[key].load.priority &&
		    model_group_of(m, m->line[i]) == model_group_of(m, key) && k->place < place)
			place = k->place;
	}
	return place;
}

void model_rank_push(struct model *m, int key, enum wq_where where, bool keeps_place,
                     int64_t since_ns)
{
	struct model_key *k = &m->keys[key];
	int group = model_group_of(m, key);

	if (where == WQ_HEAD)
		k->place = place_before(m, key, since_ns);
	else if (!keeps_place)
		k->place = model_new_place(m, k->load.priority, since_ns);
	m->seqs++;
	k->seq = where == WQ_HEAD ? -m->seqs : m->seqs;
	if (group < 0) {
		m->nready++;
		return;
	}
	m->groups[group].queued++;
	regroup(m, group, false);
}

void model_rank_removed(struct model *m, int key)
{
	int group = model_group_of(m, key);

	if (group < 0) {
		m->nready--;
		return;
	}
	m->groups[group].queued--;
	regroup(m, group, false);
}

void model_rank_started(struct model *m, int key)
{
	int group = model_group_of(m, key);
	struct model_group *g = &m->groups[group < 0 ? 0 : group];
	bool turn_over;

	if (group < 0) {
		m->nready--;
		return;
	}
	g->queued--;
	g->running++;
	if (rules_of(m, group)->token_ns > 0) {
		g->spent_ns = spent(m, group, m->now_ns) + rules_of(m, group)->token_ns;
		g->spent_at = m->now_ns;
	}
	turn_over = ++g->turns >= rules_of(m, group)->weight;
	if (turn_over)
		g->turned_ns = m->now_ns;
	regroup(m, group, turn_over);
}

void model_rank_ended(struct model *m, int key)
{
	int group = model_group_of(m, key);

	if (group < 0)
		return;
	m->groups[group].running--;
	regroup(m, group, false);
}

/* ---- values --------------------------------------------------------------- */

void model_drop_value(struct model_load *l)
{
	free(l->value);
	l->value = NULL;
	l->len = 0;
}

static void set_value(struct model_load *l, const char *a, size_t a_len, const char *b,
                      size_t b_len, const char *c, size_t c_len)
{
	char *value = malloc(a_len + b_len + c_len + 1);

	if (!value)
		abort();
	if (a_len > 0)
		memcpy(value, a, a_len);
	if (b_len > 0)
		memcpy(value + a_len, b, b_len);
	if (c_len > 0)
		memcpy(value + a_len + b_len, c, c_len);
	free(l->value);
	l->value = value;
	l->len = a_len + b_len + c_len;
}

int model_merge_value(const struct model *m, struct model_load *into, const char *value, size_t len)
{
	size_t nsep = m->rich.separator ? strlen(m->rich.separator) : 0;

	if (!value)
		return WQ_OK;
	if (!into->value || m->rich.merge == MODEL_LAST) {
		set_value(into, value, len, NULL, 0, NULL, 0);
		return WQ_OK;
	}
	if (m->rich.merge == MODEL_FIRST)
		return WQ_OK;
	if (m->rich.merge == MODEL_APPEND) {
		if (into->len + nsep + len > WQ_VALUE_MAX)
			return WQ_ETOOLONG;
		set_value(into, into->value, into->len, m->rich.separator, nsep, value, len);
		return WQ_OK;
	}
	if (into->len < len)
		set_value(into, into->value, into->len, value + into->len, len - into->len, NULL,
		          0);
	for (size_t i = 0; i < len; i++)
		into->value[i] |= value[i];
	return WQ_OK;
}
