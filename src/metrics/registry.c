/* Queues by name, in the order of their names. */
#include "metrics/registry.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/sync.h"

struct wq_registry {
	wq__lock lock;             /* taken before a queue's */
	struct wq__listing *first; /* L */
	int64_t n;                 /* L */
	uint64_t holds;            /* L */
};

int wq_registry_new(wq_registry **out)
{
	wq_registry *r;

	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	r = wq__alloc(&wq__default_allocator, sizeof *r, 64);
	if (!r)
		return wq__fail_memory();
	memset(r, 0, sizeof *r);
	wq__lock_init(&r->lock);
	*out = r;
	return WQ_OK;
}

int wq_registry_free(wq_registry *r)
{
	bool lists, held;

	if (!r)
		return WQ_OK;
	wq__lock_acquire(&r->lock);
	lists = r->first != NULL;
	held = r->holds > 0;
	wq__lock_release(&r->lock);
	if (lists || held)
		return wq__fail(WQ_EBUSY, "the registry %s",
		                lists ? "lists a queue" : "is held by wq_registry_hold()");
	wq__lock_end(&r->lock);
	wq__free(&wq__default_allocator, r, sizeof *r);
	return WQ_OK;
}

int wq_registry_hold(wq_registry *r)
{
	if (!r)
		return WQ_EINVAL;
	wq__lock_acquire(&r->lock);
	r->holds++;
	wq__lock_release(&r->lock);
	return WQ_OK;
}

int wq_registry_release(wq_registry *r)
{
	int rc = WQ_ESTALE;

	if (!r)
		return WQ_EINVAL;
	wq__lock_acquire(&r->lock);
	if (r->holds > 0) {
		r->holds--;
		rc = WQ_OK;
	}
	wq__lock_release(&r->lock);
	return rc;
}

int64_t wq_registry_size(wq_registry *r)
{
	int64_t n;

	if (!r)
		return WQ_EINVAL;
	wq__lock_acquire(&r->lock);
	n = r->n;
	wq__lock_release(&r->lock);
	return n;
}

int wq__registry_enter(wq_registry *r, struct wq__listing *l)
{
	struct wq__listing **at = &r->first;
	int rc = WQ_OK;

	wq__lock_acquire(&r->lock);
	while (*at && strcmp((*at)->name, l->name) < 0)
		at = &(*at)->next;
	if (*at && strcmp((*at)->name, l->name) == 0) {
		rc = WQ_EEXIST;
	} else {
		l->next = *at;
		*at = l;
		r->n++;
	}
	wq__lock_release(&r->lock);
	return rc;
}

/* Afterwards nobody is with it as long as the lock is held. */
static void wait_for_visits_locked(wq_registry *r, struct wq__listing *l)
{
	wq__parker p;

	if (l->visits == 0)
		return;
	wq__parker_init(&p);
	l->leaver = &p;
	wq__lock_release(&r->lock);
	wq__parker_sleep(&p, WQ_NEVER);
	wq__lock_acquire(&r->lock);
	l->leaver = NULL;
}

int wq__registry_leave(wq_registry *r, struct wq__listing *l, int (*close)(void *state),
                       void *state)
{
	struct wq__listing **at = &r->first;
	int rc;

	wq__lock_acquire(&r->lock);
	wait_for_visits_locked(r, l);
	rc = close(state);
	if (rc >= 0) {
		while (*at != l)
			at = &(*at)->next;
		*at = l->next;
		r->n--;
	}
	wq__lock_release(&r->lock);
	return rc;
}

int wq_registry_each(wq_registry *r, wq_registry_fn fn, void *ctx)
{
	int rc = WQ_OK;

	if (!r || !fn)
		return WQ_EINVAL;
	wq__lock_acquire(&r->lock);
	for (struct wq__listing *l = r->first; l && rc == WQ_OK; l = l->next)
		rc = fn(ctx, l->name, l->q);
	wq__lock_release(&r->lock);
	return rc;
}

static struct wq__listing *enter_visit(wq_registry *r, const char *name)
{
	struct wq__listing *l;

	wq__lock_acquire(&r->lock);
	l = r->first;
	while (l && strcmp(l->name, name) != 0)
		l = l->next;
	if (l && l->leaver)
		l = NULL;
	if (l)
		l->visits++;
	wq__lock_release(&r->lock);
	return l;
}

static void leave_visit(wq_registry *r, struct wq__listing *l)
{
	wq__parker *leaver = NULL;

	wq__lock_acquire(&r->lock);
	/* Once it is set and the lock let go of, the queue may be gone, and its registry, too. */
	if (--l->visits == 0 && l->leaver && wq__parker_set(l->leaver))
		leaver = l->leaver;
	wq__lock_release(&r->lock);
	if (leaver)
		wq__parker_wake(leaver);
}

int wq_registry_visit(wq_registry *r, const char *name, wq_registry_fn fn, void *ctx)
{
	struct wq__listing *l;
	int rc;

	if (!r || !name || !fn)
		return WQ_EINVAL;
	l = enter_visit(r, name);
	if (!l)
		return WQ_ENOTFOUND;
	rc = fn(ctx, l->name, l->q);
	leave_visit(r, l);
	return rc;
}
