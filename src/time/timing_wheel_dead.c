/*
 * References that have died: the search for the first that lives, and sweeping. See
 * wq__tw_first() and wq__tw_sweep() in timing_wheel.h.
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
	wq__timing_wheel *w;
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
static void buried(wq__timing_wheel *w)
{
	assert(w->ndead > 0);
	w->n--;
	w->ndead--;
}

static void search_run(struct search *s)
{
	wq__timing_wheel *w = s->w;

	for (; w->run_at < w->run_end && s->dead > 0; w->run_at++) {
		if (lives(s, w->run[w->run_at])) {
			s->first_ns = w->run[w->run_at].due_ns;
			return;
		}
		buried(w);
	}
}

static void search_near(struct search *s)
{
	wq__timing_wheel *w = s->w;

	while (w->nnear > 0 && w->near[0].due_ns < s->first_ns && s->dead > 0) {
		wq__ref ref = {.due_ns = w->near[0].due_ns, .what = w->near[0].what};

		if (lives(s, ref)) {
			s->first_ns = ref.due_ns;
			return;
		}
		wq__near_pop(w);
		buried(w);
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

	while (wq__first_bucket(s->w, &l, &slot) && s->dead > 0) {
		struct wq__bucket *b = &s->w->level[l]->bucket[slot];

		if (b->min_ns >= s->first_ns)
			return;
		while (b->n > 0 && s->dead > 0) {
			while (b->head->first == b->head->end)
				wq__bucket_drop_head(s->w, b);
			if (lives(s, b->head->ref[b->head->first]))
				break;
			wq__bucket_shift(s->w, b);
			buried(s->w);
		}
		if (b->n > 0) {
			search_chunks(s, b);
			return;
		}
		wq__bucket_done(s->w, l, slot);
	}
}

int64_t wq__tw_first(wq__timing_wheel *w, wq__keep_fn keep, const void *owner)
{
	struct search s = {
	    .w = w, .keep = keep, .owner = owner, .first_ns = INT64_MAX, .dead = WQ__TW_DEAD};

	/* One that is half open is in no order. */
	if (w->opening)
		return wq__tw_next(w);
	search_run(&s);
	search_near(&s);
	search_buckets(&s);
	wq__tw_trim(w);
	return s.dead > 0 ? s.first_ns : wq__tw_next(w);
}

/* ---- sweeping ------------------------------------------------------------- */

struct sweep {
	wq__timing_wheel *w;
	wq__keep_fn keep;
	const void *owner;
};

static size_t sift(const struct sweep *s, wq__ref *ref, size_t n)
{
	size_t living = s->keep(s->owner, ref, n);

	s->w->n -= n - living;
	s->w->ndead -= n - living;
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
		wq__chunk_put(s->w, d);
	}
	b->n -= dead;
	return d ? c : NULL;
}

static void sweep_run(const struct sweep *s)
{
	wq__timing_wheel *w = s->w;

	w->run_end = w->run_at + sift(s, w->run + w->run_at, w->run_end - w->run_at);
	w->run_clear = 0;
}

static void sweep_near(const struct sweep *s)
{
	wq__timing_wheel *w = s->w;
	size_t n = w->nnear;

	w->nnear = 0;
	for (size_t i = 0; i < n; i++) {
		wq__ref ref = {.due_ns = w->near[i].due_ns, .what = w->near[i].what};
		struct wq__near it = w->near[i];

		if (sift(s, &ref, 1) > 0)
			wq__near_sift_up(w, it);
	}
}

/* The next bucket to sweep after the cursor; false: a round is complete. */
static bool sweep_advance(wq__timing_wheel *w)
{
	while (w->sweep_level < w->nlevels) {
		struct wq__level *level = w->level[w->sweep_level];
		uint64_t left = level && w->sweep_slot < WQ__TW_SLOTS
		                    ? level->bits & (~UINT64_C(0) << w->sweep_slot)
		                    : 0;

		if (left) {
			uint32_t slot = (uint32_t)__builtin_ctzll(left);

			w->sweeping = &level->bucket[slot];
			w->sweep_at = w->sweeping->head;
			w->sweep_slot = slot + 1;
			return true;
		}
		w->sweep_level++;
		w->sweep_slot = 0;
	}
	w->sweep_level = 0;
	return false;
}

void wq__tw_sweep(wq__timing_wheel *w, wq__keep_fn keep, const void *owner)
{
	struct sweep s = {.w = w, .keep = keep, .owner = owner};

	assert(w->ndead <= w->n + WQ__TW_AHEAD);
	for (int chunks = SWEEP_CHUNKS; chunks > 0 && wq__tw_crowded(w);) {
		if (!w->sweeping && !sweep_advance(w)) {
			sweep_run(&s);
			sweep_near(&s);
			break;
		}
		--chunks;

		struct wq__bucket *b = w->sweeping;

		w->sweep_at = sweep_bucket(&s, b, w->sweep_at, &chunks);
		/* Chunks that it had ahead may be left. */
		if (b->n == 0)
			wq__bucket_done(w, w->sweep_level, w->sweep_slot - 1);
		else if (!w->sweep_at)
			w->sweeping = NULL;
	}
	wq__tw_trim(w);
}
