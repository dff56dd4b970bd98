/*
 * Making a queue with a lane whole: both locks, no finished key in the table, and
 * counts that are exact. See lane.h.
 */
#include "queue/memory.h"

#include <string.h>

/* An allocator aligns to no more than this, a lane wants twice as much. */
enum { ALIGN = 64, LANE_BYTES = sizeof(struct wq__lane) + ALIGN };

static struct wq__lane *lane_new(struct wq__memory *m)
{
	char *memory = wq__alloc(&m->allocator, LANE_BYTES, ALIGN);
	struct wq__lane *l;

	if (!memory)
		return NULL;
	l = (struct wq__lane *)(void *)(memory + (uintptr_t)memory % _Alignof(struct wq__lane));
	memset(l, 0, sizeof *l);
	l->memory = memory;
	wq__lock_init_own(&l->lock);
	for (uint32_t i = WQ__HOLDS - 1; i > 0; i--) {
		l->hold[i].next = l->free_hold;
		l->free_hold = i;
	}
	l->hold[0].token = 1; /* no item's: a token that names place 0 is a multiple of WQ__HOLDS */
	atomic_init(&l->come, m->head != 0);
	return l;
}

void wq__lane_free(struct wq__memory *m)
{
	struct wq__lane *l = m->lane;

	if (l)
		wq__free(&m->allocator, l->memory, LANE_BYTES);
}

/* A record: the key goes, unless it has come back since that hold. */
void wq__see_to_done(struct wq__memory *m, const struct wq__done *d)
{
	struct wq__entry *e = wq__entry_at(m, (uint32_t)d->slot);
	/* acquire: pairs with the release in wq__bits_finish() */
	unsigned bits = atomic_load_explicit(&e->bits, memory_order_acquire);

	if ((bits & ~(unsigned)WQ__LEN_HIGH) != WQ__FINISHED ||
	    (e->u.hold.token != d->token && !WQ__BUG(LANE_OLD_RECORD)))
		return;
	wq__table_remove(&m->table, d->slot);
	wq__slab_free(&m->slab, (uint32_t)d->slot);
}

/* Both locks are held. */
void wq__make_whole(struct wq__memory *m, struct wq__lane *l)
{
	uint32_t at = atomic_load_explicit(&l->done_head, memory_order_relaxed);
	uint32_t end = atomic_load_explicit(&l->done_tail, memory_order_relaxed);

	if (!WQ__BUG(LANE_TAKEN_KEPT))
		m->nready -= atomic_load_explicit(&l->taken, memory_order_relaxed);
	atomic_store_explicit(&l->taken, 0, memory_order_relaxed);
	l->head_seen = atomic_load_explicit(&l->head, memory_order_relaxed);
	if (at == end || WQ__BUG(LANE_NOT_SETTLED))
		return;
	for (; at != end; at++)
		wq__see_to_done(m, &l->done[at % WQ__DONES]);
	atomic_store_explicit(&l->done_head, end, memory_order_relaxed);
	l->done_known = l->done_next = l->done_seen = end;
}

/* The front lock is held, and there is no lane. False: there is none for this queue. */
static bool lane_make(struct wq__memory *m)
{
	/* Another thread may have found no memory for it, and gone on. */
	struct wq__lane *l = m->flags & WQ__LANES ? lane_new(m) : NULL;

	if (!l) {
		/* One lock has to do, from now on. */
		m->flags &= ~(uint32_t)WQ__LANES;
		return false;
	}
	m->flags |= WQ__LANED;
	/* release: pairs with the acquire of who takes the back lock */
	atomic_store_explicit(&m->lane, l, memory_order_release);
	return true;
}

/* The front lock is held, and the queue is whole without a lane: is it time to make one? */
void wq__lane_consider(struct wq__memory *m)
{
	if ((m->flags & (WQ__LANES | WQ__LANED)) == WQ__LANES && wq__lock_is_crowded(&m->lock))
		lane_make(m);
}

/* There is a lane, or threads wait for each other and it is time to make one. */
void wq__whole_lock_slow(struct wq__memory *m)
{
	/* acquire: pairs with the release in lane_make() */
	struct wq__lane *l = atomic_load_explicit(&m->lane, memory_order_acquire);

	while (!l) {
		wq__lock_acquire(&m->lock);
		l = atomic_load_explicit(&m->lane, memory_order_relaxed);
		if (!l && !lane_make(m))
			return;
		wq__lock_back_out(&m->lock);
	}
	wq__lock_acquire(&l->lock);
	wq__lock_acquire(&m->lock);
	wq__make_whole(m, l);
}

/* The front lock is held, keys may have been added: let go of it, and make the queue whole. */
void wq__whole_anew(struct wq__memory *m)
{
	struct wq__wakes wakes;

	m->inside++;
	wakes.n = 0;
	if (!WQ__BUG(LANE_BATCH_SLEEPS))
		wq__pick_many(m, &wakes);
	wq__lock_back_out(&m->lock);
	wq__wake_many(&wakes);
	wq__whole_lock(m);
	m->inside--;
}

/* Let go of it in the midst of long work, as wq__lock_pass() does. */
struct wq__whole_passed wq__whole_pass(struct wq__memory *m)
{
	struct wq__lane *l = wq__lane_of(m);
	struct wq__whole_passed p = {.laned = l != NULL};

	p.front = wq__lock_pass(&m->lock);
	if (l)
		p.back = wq__lock_pass(&l->lock);
	return p;
}

void wq__whole_retake(struct wq__memory *m, struct wq__whole_passed p)
{
	struct wq__lane *l;

	if (!p.laned) {
		wq__lock_retake(&m->lock, p.front);
		if (!wq__laned(m))
			return;
		wq__lock_back_out(&m->lock);
		wq__whole_lock(m);
		return;
	}
	l = atomic_load_explicit(&m->lane, memory_order_relaxed);
	wq__lock_retake(&l->lock, p.back);
	wq__lock_retake(&m->lock, p.front);
	if (!WQ__BUG(LANE_RETAKEN))
		wq__make_whole(m, l);
}

/* ---- the line ------------------------------------------------------------- */

/* The front lock is held, the line has room: the first of those behind it moves up. */
void wq__line_move(struct wq__memory *m, struct wq__lane *l)
{
	uint32_t id = m->head;

	m->head = wq__entry_at(m, id)->u.line.next;
	if (m->head) {
		wq__prefetch(wq__entry_at(m, m->head));
	} else {
		m->tail = 0;
		atomic_store_explicit(&l->come, false, memory_order_relaxed);
	}
	m->scout_ahead = 0;
	wq__line_put(l, id);
}

/* The line is empty: what stands behind it moves up, so much of it as half the line. */
void wq__line_refill(struct wq__memory *m, struct wq__lane *l)
{
	if (WQ__BUG(LANE_REFILL_TURNS) && m->head && m->head != m->tail) {
		uint32_t first = m->head;

		m->head = wq__entry_at(m, first)->u.line.next;
		wq__list_push(m, wq__entry_at(m, first), first, WQ_TAIL);
	}
	for (int n = 0; n < WQ__LINE / 2 && m->head; n++)
		wq__line_move(m, l);
}

static void set_place(struct wq__lane *l, uint32_t place, uint32_t id)
{
	atomic_store_explicit(&l->line[place % WQ__LINE], id ? (uint64_t)(place + 1) << 32 | id : 0,
	                      memory_order_relaxed);
}

static uint32_t place_id(const struct wq__lane *l, uint32_t place)
{
	return (uint32_t)atomic_load_explicit(&l->line[place % WQ__LINE], memory_order_relaxed);
}

/* Before all others. A full line gives its last one to the list. */
void wq__line_put_first(struct wq__memory *m, struct wq__lane *l, uint32_t id)
{
	uint32_t head = atomic_load_explicit(&l->head, memory_order_relaxed);

	if (l->tail == head) {
		wq__line_put(l, id);
		return;
	}
	if (l->tail - head == WQ__LINE) {
		uint32_t last = place_id(l, --l->tail);

		if (!WQ__BUG(LANE_FIRST_LOST))
			wq__list_push(m, wq__entry_at(m, last), last,
			              WQ__BUG(LANE_FIRST_LAST) ? WQ_TAIL : WQ_HEAD);
		atomic_store_explicit(&l->come, true, memory_order_relaxed);
	}
	set_place(l, --head, id);
	atomic_store_explicit(&l->head, head, memory_order_relaxed);
	l->head_seen = head;
	l->known = 0;
}

/* A key leaves the line. False: it is not there, but in the list. */
bool wq__line_remove(struct wq__memory *m, uint32_t id)
{
	struct wq__lane *l = wq__lane_of(m);
	uint32_t at;

	if (!l)
		return false;
	at = atomic_load_explicit(&l->head, memory_order_relaxed);
	while (at != l->tail && place_id(l, at) != id)
		at++;
	if (at == l->tail)
		return false;
	if (WQ__BUG(LANE_REMOVE_HOLE)) {
		set_place(l, at, 0);
		return true;
	}
	for (; at + 1 != l->tail; at++)
		set_place(l, at, place_id(l, at + 1));
	set_place(l, at, 0);
	l->tail = at;
	if (!WQ__BUG(LANE_REMOVE_KNOWN))
		l->known = 0;
	return true;
}
