/*
 * Shutdown and drain, and threads that wait for something other than a key.
 *
 *   stage   | adds     | waiting keys                       | it ends when
 *   --------+----------+------------------------------------+---------------------------
 *   open    | accepted | come due                           | a shutdown or drain begins
 *   closing | refused  | those due by the cut enter the     | they have
 *           |          | line; a drain that waits: all do   |
 *   shut    | refused  | never come due: they are left over | wq_free()
 *
 * A queue is open without WQ__SHUT. It leaves "open" in the hold of the lock in which the first
 * shutdown or drain begins, which also decides at what time the cut is: now, or at the end of all
 * times. From then on nothing removes waiting keys; they just do not come due any more (cut_ns),
 * and whoever asks is shown them as left over. A drain enters the list of watchers in that same
 * hold, so no later shutdown overlooks it. What is due by the cut may need many holds to enter the
 * line; any number of threads may see to it at once.
 *
 * Watchers wait for the queue to be idle, for a drain, or for one key. They stand in one
 * list and are looked at only when a hold ends or the queue stops. A watcher stays in the
 * list until it has the lock again and takes itself out, so whoever holds the lock may
 * walk the list and wake at the same time.
 */
#include "queue/memory.h"
#include "time/clock.h"

enum watch { FOR_IDLE, FOR_DRAIN, FOR_KEY, FOR_HOLD };

struct wq__watcher {
	struct wq__watcher *next, *prev;
	enum watch what;
	uint32_t id;      /* FOR_KEY, FOR_HOLD: the entry */
	unsigned holds;   /* FOR_KEY: holds that have to end yet; else 1. 0: its wait is over */
	bool interrupted; /* FOR_DRAIN: released by a shutdown, before its wait was over */
	wq__parker parker;
};

static void rouse(struct wq__watcher *w)
{
	if (wq__parker_set(&w->parker))
		wq__parker_wake(&w->parker);
}

static void link_watcher(struct wq__memory *m, struct wq__watcher *w)
{
	wq__parker_init(&w->parker);
	w->prev = NULL;
	w->next = m->watchers;
	if (m->watchers)
		m->watchers->prev = w;
	m->watchers = w;
	m->flags |= WQ__WATCHED;
	m->inside++;
}

static void unlink_watcher(struct wq__memory *m, struct wq__watcher *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		m->watchers = w->next;
	if (w->next)
		w->next->prev = w->prev;
	if (!m->watchers)
		m->flags &= ~(uint32_t)WQ__WATCHED;
	m->inside--;
}

/*
 * The watcher is in the list. Wait until holds is 0 or a shutdown interrupts, and take it
 * out; the lock is held before and after.
 */
static int watch_linked(struct wq__memory *m, struct wq__watcher *w, int64_t deadline_ns)
{
	int rc = WQ_OK;

	while (w->holds > 0 && !w->interrupted) {
		if (deadline_ns != WQ_NEVER && wq__now(m) >= deadline_ns) {
			rc = WQ_ETIMEDOUT;
			break;
		}

		int64_t until = wq__clock_deadline(&m->clock, deadline_ns);

		wq__parker_init(&w->parker);
		wq__whole_unlock(m);
		wq__parker_sleep(&w->parker, until);
		wq__whole_lock(m);
	}
	unlink_watcher(m, w);
	return w->interrupted ? WQ_EINTERRUPTED : rc;
}

static int watch(struct wq__memory *m, struct wq__watcher *w, int64_t deadline_ns)
{
	link_watcher(m, w);
	return watch_linked(m, w, deadline_ns);
}

/*
 * A hold of the key has ended. Handing the key back unfinished folds what was
 * asked of it into the one hold to come.
 */
void(wq__watch_hold_end)(struct wq__memory *m, uint32_t id, enum wq__ending how, bool gone)
{
	bool idle = wq__idle(m), drained = wq__drained(m);

	/* Gets that waited for what waits, or for the last hold, have nothing to wait for. */
	if (m->flags & WQ__PATIENT ? drained : m->flags & WQ__GATED && idle) {
		wq__wake_all_gets(m);
		if (m->flags & WQ__FD)
			wq__fd_signal(m);
	}
	for (struct wq__watcher *w = m->watchers; w; w = w->next) {
		if (w->holds == 0 || w->interrupted)
			continue;
		if (w->what == FOR_KEY) {
			if (w->id == id)
				w->holds = gone ? 0 : how == WQ__ENDED ? w->holds - 1 : 1;
		} else if (w->what == FOR_HOLD) {
			/* A cancel of a held key ends no hold. */
			if (w->id == id && how != WQ__TAKEN_BACK)
				w->holds = 0;
		} else if (w->what == FOR_DRAIN ? drained : idle) {
			w->holds = 0;
		}
		if (w->holds == 0) {
			rouse(w);
			if (WQ__BUG(DRAIN_WAKES_ONE))
				return;
		}
	}
}

int wq__mem_wait_idle(void *state, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	struct wq__watcher w = {.what = FOR_IDLE, .holds = 1};
	int rc = WQ_OK;

	wq__whole_lock(m);
	wq__promote_all(m);
	if (!wq__idle(m))
		rc = watch(m, &w, deadline_ns);
	wq__whole_unlock(m);
	return rc;
}

/* Wait until the hold of a held key has ended; the lock is held before and after. */
int wq__watch_hold(struct wq__memory *m, uint32_t id, int64_t deadline_ns)
{
	struct wq__watcher w = {.what = FOR_HOLD, .id = id, .holds = 1};

	return watch(m, &w, deadline_ns);
}

int wq__mem_wait_key(void *state, const void *key, size_t len, int64_t deadline_ns)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len), id;
	unsigned bits = 0;
	int rc = WQ_OK;

	wq__whole_lock(m);
	wq__promote_all(m);
	id = wq__find(m, hash, key, len);
	if (id)
		bits = wq__entry_at(m, id)->bits;
	if (bits & (WQ_STATE_QUEUED | WQ_STATE_RUNNING)) {
		struct wq__watcher w = {.what = FOR_KEY,
		                        .id = id,
		                        .holds = bits & WQ_STATE_DIRTY ? 2 : 1};

		rc = watch(m, &w, deadline_ns);
	}
	wq__whole_unlock(m);
	return rc;
}

/* Every Get, and whoever polls the descriptor, looks again. */
static void tell_all(struct wq__memory *m)
{
	wq__wake_all_gets(m);
	if (m->flags & WQ__FD)
		wq__fd_signal(m);
}

/*
 * A key has left the line of a shut queue with groups. If it was the last, Gets that waited for it,
 * blocked as it was, have nothing to wait for.
 */
void wq__line_shrinks(struct wq__memory *m)
{
	if (wq__queued(m) == 0 && !(m->flags & WQ__PATIENT) && !WQ__BUG(GROUP_LAST_NO_WAKE))
		tell_all(m);
}

/*
 * From now on no key comes due that is not due yet, or all of them are. A Get that finds
 * nothing in line afterwards is right to leave, however long closing takes.
 */
static void cut(struct wq__memory *m, int64_t at_ns)
{
	m->flags = (m->flags & ~(uint32_t)WQ__PATIENT) | WQ__CUT;
	/* Also if the clock stands at the end of all times: WQ_NEVER is after the cut. */
	m->cut_ns = at_ns < WQ_NEVER ? at_ns : WQ_NEVER - 1;
	if (m->flags & WQ__FD)
		wq__fd_due(m);
	tell_all(m);
}

/* Refuse adds from now on. The first call, true, decides what becomes of keys that wait. */
static bool begin_closing(struct wq__memory *m, enum wq_drain_mode mode)
{
	if (m->flags & WQ__SHUT)
		return false;
	m->flags |= WQ__SHUT;
	switch (mode) {
	case WQ_DRAIN_WAIT:
		m->flags |= WQ__PATIENT;
		tell_all(m);
		break;
	case WQ_DRAIN_RUN:
		m->flags |= WQ__HASTY;
		cut(m, WQ_NEVER);
		break;
	case WQ_DRAIN_LEAVE:
		cut(m, wq__now(m));
		break;
	}
	return true;
}

/* What is due by the cut goes in line. The lock is let go of meanwhile. */
static void finish_closing(struct wq__memory *m)
{
	wq__promote_all(m);
	/* That may have been the last thing that kept the queue from being idle, or drained. */
	if (m->flags & (WQ__WATCHED | WQ__GATED) && wq__idle(m))
		wq__watch_hold_end(m, 0, WQ__ENDED, false);
}

int wq__mem_shutdown(void *state)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);
	begin_closing(m, WQ_DRAIN_LEAVE);
	if (m->flags & WQ__PATIENT)
		cut(m, wq__now(m));
	for (struct wq__watcher *w = m->watchers; w; w = w->next) {
		if (w->what == FOR_DRAIN && w->holds > 0 && !WQ__BUG(SHUTDOWN_KEEPS_DRAIN)) {
			w->interrupted = true;
			rouse(w);
		}
	}
	finish_closing(m);
	wq__whole_unlock(m);
	return WQ_OK;
}

int wq__mem_shutting_down(void *state)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);

	int rc = m->flags & WQ__SHUT ? 1 : 0;

	wq__whole_unlock(m);
	return rc;
}

int wq__mem_drain(void *state, int64_t deadline_ns, const wq_drain_options *options,
                  wq_report *report)
{
	struct wq__memory *m = state;
	struct wq__watcher w = {.what = FOR_DRAIN, .holds = 1};
	int rc;

	wq__whole_lock(m);
	if (!WQ__BUG(DRAIN_ENTERS_LATE))
		link_watcher(m, &w);
	if (begin_closing(m, options ? options->mode : WQ_DRAIN_LEAVE) || !WQ__BUG(DRAIN_PAST_DUE))
		finish_closing(m);
	if (WQ__BUG(DRAIN_ENTERS_LATE))
		link_watcher(m, &w);
	if (wq__drained(m) && !w.interrupted)
		w.holds = 0;
	rc = watch_linked(m, &w, deadline_ns);
	wq__promote_all(m);
	if (rc == WQ_OK && m->nwaiting > 0)
		rc = WQ_LEFT;
	if (report)
		*report = (wq_report){
		    .queued = wq__queued(m),
		    .running = m->nrunning,
		    .dirty = m->ndirty,
		    .retries = m->nretrying,
		    .delayed = m->nwaiting - m->nretrying,
		    .dead = m->ndead,
		};
	if (options && options->left) {
		int64_t shown = wq__walk_locked(m, options->left, options->ctx);

		if (shown < 0)
			rc = (int)shown;
	}
	wq__whole_unlock(m);
	return rc;
}

/* Sleepers with a deadline look at the clock again; it is simplest to wake all. */
int wq__mem_clock_changed(void *state)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);
	wq__wake_all_gets(m);
	for (struct wq__watcher *w = m->watchers; w; w = w->next)
		rouse(w);
	wq__whole_unlock(m);
	return WQ_OK;
}
