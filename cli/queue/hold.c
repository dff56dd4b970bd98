/*
 * Which keys one command gets (--max-args): what is in line now, as nobody waits for more to come.
 * A key that has failed before gets a command of its own, so that it cannot make others fail again.
 */
#include <string.h>

#include "cli/command/job.h"

static void add(struct run *r, struct job *j, const wq_item *item)
{
	struct held *h;

	if (j->nheld == j->room) {
		j->room = j->room * 2 + 1;
		j->held = grow(j->held, j->room * sizeof *j->held);
		memset(j->held + j->nheld, 0, (j->room - j->nheld) * sizeof *j->held);
	}
	h = &j->held[j->nheld++];
	h->item = *item;
	h->key = grow(h->key, item->len + 1);
	memcpy(h->key, item->key, item->len + 1);
	h->len = item->len;
	h->queued_ns = r->now_ns > item->added_ns ? r->now_ns - item->added_ns : 0;
	h->cancelled = false;
}

/* The last ones go back to where they were. */
static void keep(struct run *r, struct job *j, uint32_t n)
{
	while (j->nheld > n)
		wq_requeue(r->q, &j->held[--j->nheld].item, WQ_HEAD);
}

bool hold_keys(struct run *r, struct job *j)
{
	size_t bytes = 0;
	wq_item item;

	j->nheld = 0;
	while (j->nheld < r->opt->max_args && wq_try_get(r->q, &item) == WQ_OK) {
		bool alone = item.attempts > 1;

		add(r, j, &item);
		bytes += item.len + item.value_len;
		if (j->nheld > 1 && (alone || bytes > r->args_max))
			keep(r, j, j->nheld - 1);
		else if (!alone)
			continue;
		break;
	}
	return j->nheld > 0;
}

/* Of its words, about. */
static size_t size_of(const struct held *h)
{
	return h->len + h->item.value_len;
}

void hold_fewer(struct run *r, struct job *j)
{
	size_t bytes = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->nheld; i++)
		bytes += size_of(&j->held[i]);
	r->args_max = bytes / 2;
	for (bytes = 0; bytes + size_of(&j->held[n]) <= r->args_max; n++)
		bytes += size_of(&j->held[n]);
	keep(r, j, n > 0 ? n : 1);
}
