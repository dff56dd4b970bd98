/* What a queue knows of its pools, and of the thread that calls it. */
#include <string.h>

#include "queue/queue.h"

void wq__pool_join(wq_queue *q, struct wq__pool_link *link)
{
	wq__lock_acquire(&q->lock);
	link->prev = NULL;
	link->next = q->pools;
	if (q->pools)
		q->pools->prev = link;
	q->pools = link;
	atomic_fetch_add_explicit(&q->npools, 1, memory_order_relaxed);
	wq__lock_release(&q->lock);
}

void wq__pool_leave(wq_queue *q, struct wq__pool_link *link)
{
	wq__lock_acquire(&q->lock);
	if (link->prev)
		link->prev->next = link->next;
	else
		q->pools = link->next;
	if (link->next)
		link->next->prev = link->prev;
	atomic_fetch_sub_explicit(&q->npools, 1, memory_order_relaxed);
	wq__lock_release(&q->lock);
}

/*
 * Without the lock: whoever frees the queue sees to it that no pool comes or goes. And a call
 * that finds none does not let go of anything before it has entered the engine.
 */
bool wq__has_pools(wq_queue *q)
{
	return atomic_load_explicit(&q->npools, memory_order_relaxed) > 0;
}

void wq__resume_pools(wq_queue *q)
{
	if (!wq__has_pools(q))
		return;
	wq__lock_acquire(&q->lock);
	for (struct wq__pool_link *link = q->pools; link; link = link->next)
		link->resume(link);
	wq__lock_release(&q->lock);
}

void wq__tell_pools_the_clock_changed(wq_queue *q)
{
	if (!wq__has_pools(q))
		return;
	wq__lock_acquire(&q->lock);
	for (struct wq__pool_link *link = q->pools; link; link = link->next)
		link->clock_changed(link);
	wq__lock_release(&q->lock);
}

bool wq__handling(const wq_queue *q)
{
	const struct wq__handling *h = *wq__self();

	return h && h->q == q && !q->forked;
}

bool wq__handles(wq_queue *q, const void *key, size_t len)
{
	const struct wq__handling *h = *wq__self();

	/* A handler that has handed its item back holds no key. */
	if (!h || h->q != q || q->engine.lost(q->state, h->item) != 0)
		return false;
	return h->item->len == len && (len == 0 || memcmp(h->item->key, key, len) == 0);
}
