/*
 * References that have died: the search for the first that lives, and sweeping. See
 * wq__agenda_first() and wq__agenda_sweep() in timing_wheel.h.
 */
#include <assert.h>
#include <string.h>

#include "time/timing_wheel_inside.h"

enum {
	SWEEP_CHUNKS = 16,    /* looked at by one step of a sweep */
	FIRST_REFS = 1 << 14, /* read by a search for the first one that lives, at most */
};

/* ---- the first that lives -------------------------------------------------- */

struct search {
	wq__agenda *a;
	wq__keep_fn keep;
	const void *owner;
	int64_t first_ns; /* of those that were seen to live */
	int dead;         /* how many more of them may be looked at */
};

static bool lives(struct search *s, wq__ref ref)
{
	if (s->keep(s->owner, &ref, 1) > 0)
		return true;
	s->dead--;
	return false;
}

/* A dead one was taken out. */
static void buried(wq__agenda *a)
{
	assert(a->ndead > 0);
	a->n--;
	a->ndead--;
}

static void search_run(struct search *s)
{
	wq__agenda *a = s->a;

	for (; a->run_at < a->run_end && s->dead > 0; a->run_at++) {
		if (lives(s, a->run[a->run_at])) {
			s->first_ns = a->run[a->run_at].due_ns;
			return;
		}
		buried(a);
	}
}

static void search_near(struct search *s)
{
	wq__agenda *a = s->a;

	while (a->nnear > 0 && a->near[0].due_ns < s->first_ns && s->dead > 0) {
		wq__ref ref = {.due_ns = a->near[0].due_ns, .what = a->near[0].what};

		if (lives(s, ref)) {
			s->first_ns = ref.due_ns;
			return;
		}
		wq__near_pop(a);
		buried(a);
	}
}

/* The first one in a bucket is not at its front: all of it is read, and left as it is. */
static void search_chunks(struct search *s, const struct wq__bucket *b)
{
	if (b->n > FIRST_REFS && b->head->ref[b->head->first].due_ns != b->min_ns) {
		s->dead = 0;
		return;
	}
	for (const struct wq__chunk *c = b->head; c; c = c->next) {
		for (uint16_t i = c->first; i < c->end; i++) {
			if (s->first_ns == b->min_ns || s->dead <= 0)
				return;
			if (c->ref[i].due_ns < s->first_ns && lives(s, c->ref[i]))
				s->first_ns = c->ref[i].due_ns;
		}
	}
}

/* Of the first bucket in which one lives; all others are later. */
static void search_buckets(struct search *s)
{
	uint32_t l, slot;

	while (wq__first_bucket(s->a, &l, &slot) && s->dead > 0) {
		struct wq__bucket *b = &s->a->level[l]->bucket[slot];

		if (b->min_ns >= s->first_ns)
			return;
		while (b->n > 0 && s->dead > 0) {
			while (b->head->first == b->head->end)
				wq__bucket_drop_head(s->a, b);
			if (lives(s, b->head->ref[b->head->first]))
				break;
			wq__bucket_shift(s->a, b);
			buried(s->a);
		}
		if (b->n > 0) {
			search_chunks(s, b);
			return;
		}
		wq__bucket_done(s->a, l, slot);
	}
}

int64_t wq__agenda_first(wq__agenda *a, wq__keep_fn keep, const void *owner)
{
	struct search s = {
	    .a = a, .keep = keep, .owner = owner, .first_ns = INT64_MAX, .dead = WQ__AGENDA_DEAD};

	/* One that is half open is in no order. */
	if (a->opening)
		return wq__agenda_next(a);
	search_run(&s);
	search_near(&s);
	search_buckets(&s);
	wq__agenda_trim(a);
	return s.dead > 0 ? s.first_ns : wq__agenda_next(a);
}

/* ---- sweeping ------------------------------------------------------------- */

struct sweep {
	wq__agenda *a;
	wq__keep_fn keep;
	const void *owner;
};

static size_t sift(const struct sweep *s, wq__ref *ref, size_t n)
{
	size_t living = s->keep(s->owner, ref, n);

	s->a->n -= n - living;
	s->a->ndead -= n - living;
	return living;
}

static size_t sift_chunk(const struct sweep *s, struct wq__chunk *c)
{
	size_t n = (size_t)(c->end - c->first);

	if (c->first > 0)
		memmove(c->ref, c->ref + c->first, n * sizeof c->ref[0]);
	c->end = (uint16_t)sift(s, c->ref, n);
	c->first = 0;
	return n - c->end;
}

/* Sweeps from chunk c on, at most *chunks of them. Returns where it stopped, NULL: at the end. */
static struct wq__chunk *sweep_bucket(const struct sweep *s, struct wq__bucket *b,
                                      struct wq__chunk *c, int *chunks)
{
	size_t dead = sift_chunk(s, c);
	struct wq__chunk *d;

	while ((d = c->next) != NULL && *chunks > 0) {
		--*chunks;
		if (d->next)
			wq__chunk_fetch(d->next);
		dead += sift_chunk(s, d);
		if (c->end + d->end > WQ__CHUNK_REFS) {
			c = d;
			continue;
		}
		memcpy(c->ref + c->end, d->ref, d->end * sizeof d->ref[0]);
		c->end = (uint16_t)(c->end + d->end);
		c->next = d->next;
		if (b->tail == d)
			b->tail = c;
		wq__chunk_put(s->a, d);
	}
	b->n -= dead;
	return d ? c : NULL;
}

static void sweep_run(const struct sweep *s)
{
	wq__agenda *a = s->a;

	a->run_end = a->run_at + sift(s, a->run + a->run_at, a->run_end - a->run_at);
	a->run_clear = 0;
}

static void sweep_near(const struct sweep *s)
{
	wq__agenda *a = s->a;
	size_t n = a->nnear;

	a->nnear = 0;
	for (size_t i = 0; i < n; i++) {
		wq__ref ref = {.due_ns = a->near[i].due_ns, .what = a->near[i].what};
		struct wq__near it = a->near[i];

		if (sift(s, &ref, 1) > 0)
			wq__near_sift_up(a, it);
	}
}

/* The next bucket to sweep after the cursor; false: a round is complete. */
static bool sweep_advance(wq__agenda *a)
{
	while (a->sweep_level < a->nlevels) {
		struct wq__level *level = a->level[a->sweep_level];
		uint64_t left = level && a->sweep_slot < WQ__AGENDA_SLOTS
		                    ? level->bits & (~UINT64_C(0) << a->sweep_slot)
		                    : 0;

		if (left) {
			uint32_t slot = (uint32_t)__builtin_ctzll(left);

			a->sweeping = &level->bucket[slot];
			a->sweep_at = a->sweeping->head;
			a->sweep_slot = slot + 1;
			return true;
		}
		a->sweep_level++;
		a->sweep_slot = 0;
	}
	a->sweep_level = 0;
	return false;
}

void wq__agenda_sweep(wq__agenda *a, wq__keep_fn keep, const void *owner)
{
	struct sweep s = {.a = a, .keep = keep, .owner = owner};

	assert(a->ndead <= a->n + WQ__AGENDA_AHEAD);
	for (int chunks = SWEEP_CHUNKS; chunks > 0 && wq__agenda_crowded(a);) {
		if (!a->sweeping && !sweep_advance(a)) {
			sweep_run(&s);
			sweep_near(&s);
			break;
		}
		--chunks;

		struct wq__bucket *b = a->sweeping;

		a->sweep_at = sweep_bucket(&s, b, a->sweep_at, &chunks);
		/* Chunks that it had ahead may be left. */
		if (b->n == 0)
			wq__bucket_done(a, a->sweep_level, a->sweep_slot - 1);
		else if (!a->sweep_at)
			a->sweeping = NULL;
	}
	wq__agenda_trim(a);
}
