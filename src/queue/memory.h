/*
 * The memory engine: its one struct, and what its files share.
 *
 *   add.c       add, add_many                 wait.c   sleeping and waking
 *   get.c       get, done, next, requeue      stop.c   shutdown, drain, waiting for idle or a key
 *   many.c      get, done and next of many    lane.c   add, get and done with one of two locks
 *   delay.c     add_with, what comes due      cancel.c cancel, reschedule
 *   remember.c  what the limiter remembers    turn.c   retry, and the other ends of a hold
 *   inspect.c   len, state, walk              fd.c     the descriptor for event loops
 *   memory.c    open, close, functions        whole.c  both locks
 *   rank.c      priorities and groups         rich.c   the calls of queues that have these, or
 *   bring.c     what an add brings along               values
 *
 * Nearly all code runs while the queue is whole: everything is locked and consistent.
 * That takes one lock, or two if there is a lane (lane.h). No callback but clock,
 * allocator, order and limiter runs under them.
 *
 * Wake-ups. A Get with nothing to do stands in `gets` with a parker on its own
 * stack. Whoever changes the queue calls wq__pick() before it unlocks, which
 * takes one waiter off the list, marks it, and counts it in `inflight` until
 * it holds the lock again. The invariant, at every unlock:
 *
 *     ready keys and waiting Gets  =>  inflight >= 1
 *     keys with a due time and waiting Gets  =>  a leader that sleeps no longer
 *                                                than until then, or inflight >= 1
 *
 * so no ready key is left beside sleepers unless one of them is on its way, and
 * somebody wakes when a key comes due.
 */
#ifndef WQ_QUEUE_MEMORY_H
#define WQ_QUEUE_MEMORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <wq/engine.h>

#include "base/bug.h"
#include "base/compiler.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/slab.h"
#include "base/sync.h"
#include "base/table.h"
#include "limit/limiter.h"
#include "queue/bring.h"
#include "queue/entry.h"
#include "queue/lane.h"
#include "queue/meter.h"
#include "queue/rank.h"
#include "time/timing_wheel.h"

enum {
	/* Calls on many keys let go of each lock at least this often. */
	WQ__HOLD_MAX = 256,
	/* How many waiters one call wakes itself; each of them wakes the next. */
	WQ__WAKE_MAX = 8,
	/* One hold in so many is timed, to learn how long handlers take. */
	WQ__SAMPLE = 64,
};

/*
 * How many of n steps one hold of the lock may take, of whatever work: all of
 * them, but in the schedule tests, where long work has to let go of the lock
 * after a few keys.
 */
#ifdef WQ_SIM
extern size_t wq__hold_limit; /* 0: none; defined by tests/sim */

static inline size_t wq__per_hold(size_t n)
{
	return wq__hold_limit && wq__hold_limit < n ? wq__hold_limit : n;
}
#else
#define wq__per_hold(n) ((size_t)(n))
#endif

/* A thread inside a blocking Get. On its stack; guarded by the lock but for the parker. */
struct wq__waiter {
	struct wq__waiter *next, *prev;
	const wq_gate *gate; /* of a pool; NULL: a Get like others */
	bool interrupted;    /* taken off the list to look again, and not in inflight */
	wq__parker parker;
};

/* A thread that waits for something other than a key: in stop.c. */
struct wq__watcher;

enum wq__flags {
	WQ__SHUT = 1,        /* no more adds */
	WQ__WATCHED = 2,     /* somebody waits for idleness, a drain, or one key */
	WQ__FD = 4,          /* there is a descriptor */
	WQ__ORDERED = 8,     /* the order is the user's */
	WQ__EXACT = 16,      /* stamps are taken from the queue's clock, not from the coarse one */
	WQ__TIMED = 32,      /* some key has a due time: look at the clock */
	WQ__PATIENT = 64,    /* shut by a drain that waits for what waits */
	WQ__HASTY = 128,     /* shut by a drain that runs what waits */
	WQ__GATED = 256,     /* shut, and a Get of a pool waits for the last hold to end */
	WQ__ASKS = 512,      /* attempts are the user's own limiter's to say */
	WQ__METERED = 1024,  /* it has a name: count and time */
	WQ__TICKING = 2048,  /* and does so on the real clock */
	WQ__WITHIN = 4096,   /* copies that wait may have a latest time */
	WQ__KEEPS = 8192,    /* this hold of the lock asks for the time once, as it is metered */
	WQ__EXTRA = 16384,   /* keys have room behind them, or there is a bound to their number */
	WQ__NEVER = 32768,   /* some copy waits for WQ_NEVER; TIMED knows nothing of it */
	WQ__CUT = 65536,     /* shut, and no key comes due after cut_ns: those that wait are left */
	WQ__LANES = 131072,  /* it may have a lane */
	WQ__LANED = 262144,  /* it has one: `lane` is not NULL */
	WQ__COPIES = 524288, /* a tool watches memory: items get copies of their keys */
	WQ__RANKED = 1 << 20, /* the line is by priority or by groups: `rank` is not NULL */
	WQ__VALUED = 1 << 21, /* keys may have values */
	WQ__RICH = 1 << 22,   /* one of these two */
	WQ__PACED = 1 << 23,  /* some group sleeps until it has a token */
	WQ__HEAVY = 1 << 24,  /* riches, and other room behind the keys, or a bound, or aging */

	/* A queue with riches and nothing else that is special: see wq__light(). */
	WQ__LIGHT = WQ__EXACT | WQ__RANKED | WQ__VALUED | WQ__RICH | WQ__EXTRA,
};

/*
 * L: guarded by the front lock; B: by the back lock, if there is a lane. Whoever holds
 * both may touch everything. What one side writes often stands on lines of its own.
 */
struct wq__memory { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
	/* What every add touches: one cache line. */
	_Alignas(64) wq__lock lock; /* the front lock */
	uint32_t nready;     /* L: keys in line, but for those that the lane has taken since */
	uint32_t head, tail; /* L: FIFO, ids: the line, or what stands behind the lane's */
	uint32_t ndirty;     /* L: keys that are held and will come back */
	_Atomic uint32_t inflight; /* A, written L: Gets under way that do not hold the lock yet */

	/* What adds and Gets look at and seldom write. */
	_Alignas(64) uint32_t flags;       /* both to write: wq__flags */
	_Atomic uint32_t width;            /* A: how many woken Gets may be under way */
	_Atomic(struct wq__waiter *) gets; /* A, written L: waiting Gets, the latest first */
	_Atomic(struct wq__lane *) lane;   /* A, written L: NULL: one lock is all there is */

	/* What Gets and dones touch. */
	_Alignas(64) uint32_t nrunning; /* B: keys that are held */
	uint64_t token;                 /* B: the last one given, without a hold's number */
	uint64_t sample;                /* B: the token that is being timed */
	int64_t sample_start_ns;        /* B */
	int64_t hold_mean_ns;           /* B: of the timed holds */

	_Alignas(64) wq__table table; /* L */
	uint32_t scout;               /* L: a key ahead in the FIFO, whose memory was asked for */
	uint32_t scout_ahead;         /* L: how many keys behind the head it stands */
	wq__slab slab;                /* L */
	uint32_t interrupts;          /* L: kept for Gets that would block */
	uint32_t inside;              /* L: threads that wait or walk */
	uint32_t spin_pauses;         /* L: how long the next Get polls; 0: not at all */
	uint32_t spin_max;            /* I: at most so long; 0: never */
	uint32_t spin_min;            /* I: 0, or spin_max: always so long */
	uint32_t pauses_per_us;       /* I */
	_Atomic(struct wq__waiter *) spinner; /* A, relaxed: at most one Get polls; a hint only */
	wq__timing_wheel tw;                  /* L: slots of keys that wait, by due time */
	int64_t next_due_ns;                  /* L: no key comes due before; WQ_NEVER: none does */
	int64_t cut_ns;                       /* L: with CUT: no key comes due after it */
	bool due_left;                        /* L: more are due than one hold may move */
	uint32_t nwaiting;                    /* L: copies that wait */
	uint32_t nnever;                      /* L: of those, with WQ_NEVER */
	uint32_t nretrying;                   /* L: and those that wait for a retry */
	uint32_t npairs;                      /* L: keys with a reminder beside them */
	uint32_t nghosts;          /* L: cancelled keys that the user's order has yet to pop */
	uint32_t nblocked;         /* L: queued keys that are not ready: of groups, see rank.h */
	struct wq__rank *rank;     /* L: NULL: first in, first out, or an order of the user's */
	struct wq__bring *bring;   /* L: of the add under way; NULL: none, or it brings nothing */
	uint64_t merge_failed;     /* L: values that were dropped, as their merge failed */
	struct wq__waiter *leader; /* L: the waiting Get that sleeps until the next due time */
	int64_t leader_until_ns;   /* L */
	struct wq__watcher *watchers;    /* L */
	uint32_t memo_first, memo_last;  /* L: keys that are only remembered, ids */
	uint32_t nmemo;                  /* L */
	uint64_t ndead;                  /* L: keys that had their last attempt */
	uint64_t ndropped;               /* L: keys that were given up by verdict */
	int fd_poll, fd_event, fd_timer; /* L: -1 until asked for */
	bool fd_readable;                /* L */

	uint64_t max_keys;         /* I: 0: no bound */
	size_t room;               /* I: bytes behind each key; the order's are the first */
	size_t limit_at;           /* I: of those, where the limiter's begin, behind the order's */
	size_t limit_room;         /* I: and how many they are */
	size_t meter_at;           /* I: where a key's stint is, behind those */
	size_t latest_at;          /* I: and where its latest time is */
	size_t copy_at;            /* I: and where its holder's copy of the key is named */
	size_t standing_at;        /* I: its priority and group */
	size_t carried_at;         /* I: its values */
	wq_merge_fn merge;         /* I: of two values */
	void *merge_ctx;           /* I */
	char *merge_out;           /* L: room for a merged value, or NULL */
	struct wq__meter *meter;   /* L: NULL without a name */
	uint32_t max_attempts;     /* I: 0: no maximum */
	wq_limiter *limiter;       /* I; what is in it, L */
	wq_order order;            /* I */
	wq_clock clock;            /* I */
	wq_allocator allocator;    /* I */
	wq__hash_key hash_key;     /* I */
	struct wq__fork_link fork; /* the process's, if the clock is watched */
	bool forked;               /* I: this is a child, and the queue its parent's */
};

/* What is to be woken once the lock is released. */
struct wq__wakes {
	uint32_t n;
	struct wq__waiter *list[WQ__WAKE_MAX];
};

/* An add that is to wait. */
struct wq__later {
	int64_t now_ns;
	int64_t due_ns;
	int64_t within_ns; /* and no later than so long from now; 0: no bound */
	enum wq_policy policy;
	bool retry; /* it is a retry, or a limited add */
};

/* memory.c */
extern const wq_engine wq__memory_engine;
int wq__mem_abandon(void *state);

/* whole.c */
struct wq__whole_passed {
	bool laned;
	wq__passed front, back;
};
void wq__whole_lock_slow(struct wq__memory *m);
void wq__lane_consider(struct wq__memory *m);
void wq__whole_anew(struct wq__memory *m);
void wq__make_whole(struct wq__memory *m, struct wq__lane *l);
void wq__see_to_done(struct wq__memory *m, const struct wq__done *d);
struct wq__whole_passed wq__whole_pass(struct wq__memory *m);
void wq__whole_retake(struct wq__memory *m, struct wq__whole_passed p);
void wq__lane_free(struct wq__memory *m);
void wq__line_move(struct wq__memory *m, struct wq__lane *l);
void wq__line_refill(struct wq__memory *m, struct wq__lane *l);
void wq__line_put_first(struct wq__memory *m, struct wq__lane *l, uint32_t id);
bool wq__line_remove(struct wq__memory *m, uint32_t id);

/* lane.c */
enum { WQ__WHOLE = -1000 }; /* no outcome: the queue is whole now, go on so */
int wq__lane_add(struct wq__memory *m, struct wq__lane *l, uint32_t hash, const void *key,
                 size_t len);
int wq__lane_add_one(struct wq__memory *m, uint32_t hash, const void *key, size_t len);
void wq__lane_sweep(struct wq__memory *m, struct wq__lane *l);
bool wq__lane_take(struct wq__memory *m, struct wq__lane *l, wq_item *item);
bool wq__lane_done(struct wq__memory *m, struct wq__lane *l, const wq_item *item);
void wq__lane_await(struct wq__memory *m, struct wq__lane *l, int64_t deadline_ns, bool *whole);
void wq__lane_leave(struct wq__memory *m, struct wq__lane *l, bool whole);
void wq__lane_give_up(struct wq__memory *m, struct wq__lane *l, bool whole);
int wq__lane_get(struct wq__memory *m, struct wq__lane *l, wq_item *item, int64_t deadline_ns,
                 const wq_gate *gate, uint32_t seen);

/* add.c */
int wq__mem_add(void *state, const void *key, size_t len);
int wq__mem_add_many(void *state, const wq_key *keys, size_t n, int *outcomes);

int wq__light_add(struct wq__memory *m, const void *key, size_t len, const wq_add_options *options,
                  const wq_key *group);
int wq__add_at(struct wq__memory *m, uint32_t hash, const void *key, size_t len, int64_t now);
int wq__add_known_at(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now);

/* remember.c */
int wq__mem_forget(void *state, const wq_item *item, const void *key, size_t len);
int64_t wq__mem_failures(void *state, const wq_item *item, const void *key, size_t len);
int wq__mem_set_failures(void *state, const void *key, size_t len, uint32_t failures);
void wq__inherit(struct wq__memory *m, struct wq__entry *e, uint32_t beside);
void wq__vanish(struct wq__memory *m, struct wq__entry *e, uint64_t slot);
void wq__vanish_ghost(struct wq__memory *m, struct wq__entry *e, uint64_t slot);
void wq__revive(struct wq__memory *m, struct wq__entry *e);
void wq__remember(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now);
struct wq__entry *wq__bearer(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                             uint32_t *id);
uint32_t wq__requeues_of(const struct wq__memory *m, struct wq__entry *e);
void wq__forget_failures(struct wq__memory *m, struct wq__entry *e);

/* turn.c */
int wq__mem_turn(void *state, wq_item *item, wq_turn *turn);

/* delay.c */
int wq__rich_add_later(struct wq__memory *m, const void *key, size_t len,
                       const wq_add_options *options, const wq_key *group);
int wq__mem_add_with(void *state, const void *key, size_t len, const wq_add_options *options);
int64_t wq__mem_next_deadline(void *state);
int64_t wq__next_due(struct wq__memory *m);
void wq__promote(struct wq__memory *m, int64_t until);
void wq__promote_all(struct wq__memory *m);
bool wq__ready(struct wq__memory *m);
void wq__merge_reminder(struct wq__memory *m, struct wq__entry *e);
void wq__unwait(struct wq__memory *m, struct wq__entry *e);
int wq__rewait(struct wq__memory *m, struct wq__entry *e, uint64_t slot, int64_t due_ns,
               int64_t now);
void wq__lift_bound(const struct wq__memory *m, struct wq__entry *e);
int wq__add_later_known(struct wq__memory *m, struct wq__entry *e, uint64_t slot,
                        const struct wq__later *l);
void wq__line_up(struct wq__memory *m, struct wq__entry *e, uint32_t id, int64_t now);

/* cancel.c */
int wq__mem_cancel(void *state, const void *key, size_t len, int64_t deadline_ns, unsigned *was);
int wq__mem_reschedule(void *state, const void *key, size_t len, int64_t due_ns);
void wq__pair(struct wq__memory *m, struct wq__entry *e, struct wq__entry *other);
void wq__forget_key(struct wq__memory *m, struct wq__entry *e, uint64_t slot);

/* get.c */
struct wq__entry *wq__held(struct wq__memory *m, const wq_item *item, int *why);
int wq__end_hold(struct wq__memory *m, const wq_item *item, struct wq__entry *e);
int wq__done(struct wq__memory *m, const wq_item *item);
int wq__done_well(struct wq__memory *m, const wq_item *item);
void wq__take(struct wq__memory *m, wq_item *item);
bool wq__ready_now(struct wq__memory *m);
int wq__mem_get(void *state, wq_item *item, int64_t deadline_ns);
int wq__mem_get_many(void *state, wq_item *items, size_t max, int64_t deadline_ns);
int wq__mem_done(void *state, const wq_item *item);
int wq__mem_done_many(void *state, const wq_item *items, size_t n, int *outcomes);
int wq__mem_next(void *state, wq_item *item, int64_t deadline_ns);
int wq__mem_next_many(void *state, wq_item *items, size_t n, size_t max, int64_t deadline_ns);
int wq__mem_requeue(void *state, const wq_item *item, enum wq_where where);
int wq__light_get(void *state, wq_item *item, int64_t deadline_ns);
int wq__light_done(void *state, const wq_item *item);
int wq__light_next(void *state, wq_item *item, int64_t deadline_ns);
int wq__mem_extend(void *state, const wq_item *item, int64_t span_ns);
int wq__mem_lost(void *state, const wq_item *item);

/* rich.c */
wq_engine wq__rich(wq_engine memory_engine);
bool wq__asks_rich(const wq_options *o);
int wq__rich_add(struct wq__memory *m, uint32_t hash, const void *key, size_t len,
                 const wq_add_options *options, const wq_key *group);
int wq__rich_get(struct wq__memory *m, wq_item *item, int64_t deadline_ns);
int wq__rich_done(struct wq__memory *m, const wq_item *item);
int wq__rich_next(struct wq__memory *m, wq_item *item, int64_t deadline_ns);

/* wait.c */
struct wq__waiter *wq__pick_slow(struct wq__memory *m);
int wq__await_ready(struct wq__memory *m, int64_t deadline_ns, const wq_gate *gate, uint32_t seen);
uint32_t wq__mem_gate_change(void *state, wq_gate *gate);
void wq__wake_all_gets(struct wq__memory *m);
struct wq__waiter *wq__rouse_leader(struct wq__memory *m);
int wq__mem_interrupt(void *state, int n);
uint32_t wq__spin_budget(const struct wq__memory *m, int64_t deadline_ns);
void wq__spin_paid(struct wq__memory *m);
void wq__sample_begin(struct wq__memory *m, uint64_t token);
void wq__sample_end(struct wq__memory *m);
void wq__breathe(struct wq__memory *m);

/* stop.c */
enum wq__ending { WQ__ENDED, WQ__GIVEN_BACK, WQ__TAKEN_BACK };
void wq__watch_hold_end(struct wq__memory *m, uint32_t id, enum wq__ending how, bool gone);
int wq__watch_hold(struct wq__memory *m, uint32_t id, int64_t deadline_ns);
int wq__mem_wait_idle(void *state, int64_t deadline_ns);
int wq__mem_wait_key(void *state, const void *key, size_t len, int64_t deadline_ns);
int wq__mem_shutdown(void *state);
int wq__mem_shutting_down(void *state);
int wq__mem_drain(void *state, int64_t deadline_ns, const wq_drain_options *options,
                  wq_report *report);
int wq__mem_clock_changed(void *state);
void wq__line_shrinks(struct wq__memory *m);

/* inspect.c */
int64_t wq__mem_len(void *state);
int wq__mem_state(void *state, const void *key, size_t len);
int64_t wq__mem_walk(void *state, wq_walk_fn fn, void *ctx);
int64_t wq__walk_locked(struct wq__memory *m, wq_walk_fn fn, void *ctx);

/* fd.c */
int wq__mem_fd(void *state);
void wq__fd_signal(struct wq__memory *m);
void wq__fd_clear(struct wq__memory *m);
void wq__fd_close(struct wq__memory *m);
void wq__fd_due(struct wq__memory *m);

/* ---- the locks ------------------------------------------------------------ */

/* The lane, or NULL; one of the locks is held. */
static inline struct wq__lane *wq__lane_of(const struct wq__memory *m)
{
	return wq__unlikely(m->flags & WQ__LANED)
	           ? atomic_load_explicit(&m->lane, memory_order_relaxed)
	           : NULL;
}

/*
 * The front lock is held, of a queue that had no lane a moment ago: lock everything. Another thread
 * may have made a lane meanwhile. (Whether the lock is crowded says nothing, as that count wraps.)
 */
static wq__forced void wq__whole_from_front(struct wq__memory *m)
{
	if (wq__unlikely(m->flags & WQ__LANED && !WQ__BUG(LANE_MISSED)) ||
	    (wq__unlikely(wq__lock_is_crowded(&m->lock)) && m->flags & WQ__LANES)) {
		wq__lock_back_out(&m->lock);
		wq__whole_lock_slow(m);
	}
}

/* Lock everything. Once threads wait for each other there, the queue gets a lane. */
static inline void wq__whole_lock(struct wq__memory *m)
{
	if (wq__unlikely(atomic_load_explicit(&m->lane, memory_order_relaxed) != NULL)) {
		wq__whole_lock_slow(m);
		return;
	}
	wq__lock_acquire(&m->lock);
	wq__whole_from_front(m);
}

/* The same for who holds the back lock. */
static inline void wq__whole_up(struct wq__memory *m, struct wq__lane *l)
{
	wq__lock_acquire(&m->lock);
	wq__make_whole(m, l);
}

static wq__forced void wq__whole_unlock(struct wq__memory *m)
{
	struct wq__lane *l = wq__lane_of(m);

	/* Nobody can free the queue before the back lock is free, too. */
	wq__lock_release(&m->lock);
	if (l)
		wq__lock_release(&l->lock);
}

/* ---- small things that several files need, lock held --------------------- */

/*
 * Most queues have no name, no order of their own and no bound, and most of the time
 * nothing waits: none of these flags is set. The calls that matter most look at the
 * flags once.
 */
static inline bool wq__special(const struct wq__memory *m)
{
	return wq__unlikely(m->flags & ~(uint32_t)(WQ__EXACT | WQ__LANES));
}

static inline int64_t wq__now(const struct wq__memory *m)
{
	if (wq__unlikely(m->flags & WQ__KEEPS))
		return wq__meter_now(m, true);
	return m->clock.now(m->clock.ctx);
}

/* When something was added: cheap unless somebody wants it exact. */
static inline int64_t wq__stamp(const struct wq__memory *m)
{
	if (wq__likely(!(m->flags & WQ__EXACT)))
		return wq__clock_coarse();
	if (wq__likely((m->flags & (WQ__TICKING | WQ__KEEPS)) == WQ__TICKING))
		return wq__ticks_now(&m->meter->ticks);
	return m->flags & WQ__KEEPS ? wq__meter_now(m, false) : m->clock.now(m->clock.ctx);
}

/* What this hold of the lock does, in several steps, it does at one time. */
static inline void wq__keep_time(struct wq__memory *m)
{
	if (wq__unlikely(m->flags & WQ__METERED)) {
		m->flags |= WQ__KEEPS;
		m->meter->now_ns = -1;
	}
}

/* Before the lock is let go of. True: it was kept. */
static inline bool wq__let_time_go(struct wq__memory *m)
{
	if (wq__likely(!(m->flags & WQ__KEEPS)))
		return false;
	m->flags &= ~(uint32_t)WQ__KEEPS;
	return true;
}

static inline struct wq__entry *wq__entry_at(const struct wq__memory *m, uint32_t id)
{
	return wq__slab_at(&m->slab, id);
}

static inline uint32_t wq__hash_of(const struct wq__memory *m, const void *key, size_t len)
{
	return wq__hash_fold(wq__hash(&m->hash_key, key, len));
}

/* The id of a key, or with `apart` of WQ__REMINDER of its reminder; or 0. */
static inline uint32_t wq__find_copy(const struct wq__memory *m, uint32_t hash, const void *key,
                                     size_t len, unsigned apart)
{
	wq__probe p = wq__table_probe(&m->table, hash);
	uint32_t id;

	while ((id = wq__probe_next(&p)) != 0) {
		const struct wq__entry *e = wq__entry_at(m, id);

		if ((e->bits & WQ__REMINDER) == apart && !wq__entry_is_ghost(e) &&
		    wq__entry_is(e, key, len))
			return id;
	}
	return 0;
}

static inline uint32_t wq__find(const struct wq__memory *m, uint32_t hash, const void *key,
                                size_t len)
{
	return wq__find_copy(m, hash, key, len, 0);
}

/* A new entry in the table, with so many bytes behind its key; NULL: no memory, nothing changed. */
static wq__forced struct wq__entry *wq__new_entry(struct wq__memory *m, wq__place at, uint32_t hash,
                                                  const void *key, size_t len, size_t room,
                                                  unsigned state, uint32_t *id)
{
	struct wq__entry *e = wq__slab_alloc(&m->slab, wq__entry_size(len, room), id);

	if (wq__unlikely(!e))
		return NULL;
	if (wq__unlikely(wq__table_insert(&m->table, at, (uint64_t)hash << 32 | *id) < 0)) {
		wq__slab_free(&m->slab, *id);
		return NULL;
	}
	wq__entry_init(e, hash, key, len, state);
	return e;
}

static inline struct wq__standing *wq__standing_of(const struct wq__memory *m, struct wq__entry *e)
{
	return (struct wq__standing *)(void *)((char *)e + wq__entry_room_offset(wq__entry_len(e)) +
	                                       m->standing_at);
}

static inline struct wq__carried *wq__carried_by(const struct wq__memory *m, struct wq__entry *e)
{
	return (struct wq__carried *)(void *)((char *)e + wq__entry_room_offset(wq__entry_len(e)) +
	                                      m->carried_at);
}

static inline struct wq__value *wq__value_inline(const struct wq__memory *m,
                                                 const struct wq__entry *e, size_t len)
{
	return (struct wq__value *)(void *)((char *)e + wq__entry_room_offset(len) + m->room);
}

/* The value of that id, which the key e has. */
static inline struct wq__value *wq__value_at(const struct wq__memory *m, const struct wq__entry *e,
                                             uint32_t id)
{
	return id == (uint32_t)WQ__INLINE ? wq__value_inline(m, e, wq__entry_len(e))
	                                  : wq__slab_at(&m->slab, id);
}

static inline void wq__value_free(struct wq__memory *m, uint32_t *id)
{
	if (*id && *id != (uint32_t)WQ__INLINE)
		wq__slab_free(&m->slab, *id);
	*id = 0;
}

/* The key is held from now on: the item shows its priority and value. */
static inline void wq__hold_rich(struct wq__memory *m, struct wq__entry *e, wq_item *item)
{
	if (m->flags & WQ__RANKED) {
		struct wq__standing *s = wq__standing_of(m, e);

		s->held = s->priority;
		item->priority = s->held;
	}
	if (m->flags & WQ__VALUED) {
		struct wq__carried *c = wq__carried_by(m, e);

		c->held = c->value;
		c->value = 0;
		if (c->held) {
			const struct wq__value *v = wq__value_at(m, e, c->held);

			item->value = v->bytes;
			item->value_len = v->len;
		}
	}
}

/*
 * Does the queue have riches, and nothing else that is special? Then its common calls have a
 * short way, as those of plain queues have. Its keys have no other room.
 */
static inline bool wq__light(const struct wq__memory *m)
{
	return wq__likely((m->flags & ~(uint32_t)WQ__LIGHT) == 0);
}

/* Keys with a time up to this one are due. */
static inline int64_t wq__due_until(const struct wq__memory *m)
{
	return wq__unlikely(m->flags & WQ__CUT && !WQ__BUG(CUT_IGNORED)) ? m->cut_ns : wq__now(m);
}

/* Promote what has come due, if anything may have; the time if it was asked for, or -1. */
static inline int64_t wq__tick(struct wq__memory *m)
{
	int64_t until;

	if (wq__likely(!(m->flags & WQ__TIMED)))
		return -1;
	until = wq__due_until(m);
	if (until >= m->next_due_ns)
		wq__promote(m, until);
	return until;
}

/* May there be something that the limiter remembers of the key, or a copy of it? */
static inline bool wq__bears(const struct wq__memory *m, const struct wq__entry *e)
{
	return e->failures_low || e->failures_high || m->limit_room > 0 ||
	       m->flags & (WQ__ASKS | WQ__COPIES);
}

/* Is there no room for one more key? Those that are only remembered do not count. */
static inline bool wq__full(const struct wq__memory *m)
{
	return wq__unlikely(m->max_keys > 0) && m->table.n - m->nghosts - m->nmemo >= m->max_keys;
}

/* An add has answered this. */
static inline int wq__metered(struct wq__memory *m, int outcome)
{
	if (wq__unlikely(m->flags & WQ__METERED))
		wq__meter_added(m, outcome);
	return outcome;
}

/* How many keys are queued, ready or not. */
static inline uint32_t wq__queued(const struct wq__memory *m)
{
	return m->nready + m->nblocked;
}

/* When a sleeping Get has to look: a key comes due, or a group has a token. */
static inline int64_t wq__next_wake(const struct wq__memory *m)
{
	int64_t due = m->flags & WQ__CUT ? WQ_NEVER : m->next_due_ns;

	return wq__unlikely(m->flags & WQ__PACED) && m->rank->wake_ns < due ? m->rank->wake_ns
	                                                                    : due;
}

static inline bool wq__idle(const struct wq__memory *m)
{
	return wq__queued(m) == 0 && m->nrunning == 0 && !m->due_left;
}

/*
 * Has everything been done that a drain waits for? The queue is shut: once this is so,
 * it stays so.
 */
static inline bool wq__drained(const struct wq__memory *m)
{
	if (WQ__BUG(DRAIN_ONLY_RUNNING))
		return m->nrunning == 0;
	if (wq__queued(m) > 0 || m->nrunning > 0)
		return false;
	if (m->flags & WQ__PATIENT)
		return m->nwaiting == m->nnever;
	/* What is due by the cut enters the line in several holds of the lock. */
	return m->next_due_ns > m->cut_ns || WQ__BUG(DRAIN_PAST_DUE);
}

/*
 * Is what waits left over? It never comes due: after the cut, or when a drain that waits is over,
 * which has left only what waits for WQ_NEVER.
 */
static inline bool wq__leaves(const struct wq__memory *m)
{
	return m->flags & WQ__CUT || (m->flags & WQ__PATIENT && wq__drained(m));
}

/* The line of a queue without a lane; else what is ready behind the lane's. */
static inline void wq__list_push(struct wq__memory *m, struct wq__entry *e, uint32_t id,
                                 enum wq_where where)
{
	if (where == WQ_TAIL) {
		e->u.line.next = 0;
		e->u.line.prev = m->tail;
		if (m->tail)
			wq__entry_at(m, m->tail)->u.line.next = id;
		else
			m->head = id;
		m->tail = id;
	} else {
		e->u.line.prev = 0;
		e->u.line.next = m->head;
		m->scout_ahead += m->scout_ahead > 0;
		if (m->head)
			wq__entry_at(m, m->head)->u.line.prev = id;
		else
			m->tail = id;
		m->head = id;
	}
}

/* Front lock held. The key goes into the lane's line; false: into the list behind it. */
static inline bool wq__lane_takes(struct wq__memory *m, struct wq__lane *l, uint32_t id,
                                  enum wq_where where)
{
	if (wq__unlikely(where == WQ_HEAD)) {
		wq__line_put_first(m, l, id);
		return true;
	}
	if (wq__likely(m->head == 0 || WQ__BUG(LANE_OVERTAKES)) && wq__line_put(l, id))
		return true;
	if (m->head == 0)
		atomic_store_explicit(&l->come, true, memory_order_relaxed);
	return false;
}

/*
 * Put a key in line. It counts as ready from now on; whoever calls this calls
 * wq__pick() before it unlocks.
 */
static wq__forced void wq__ready_push(struct wq__memory *m, struct wq__entry *e, uint32_t id,
                                      enum wq_where where)
{
	if (WQ__BUG(PUSH_TO_HEAD))
		where = WQ_HEAD;
	wq__entry_set_state(e, WQ_STATE_QUEUED | (e->bits & WQ__BESIDE));
	if (wq__unlikely(m->flags & (WQ__ORDERED | WQ__FD | WQ__RANKED))) {
		if (m->flags & WQ__RANKED)
			wq__rank_push(m, e, id, where);
		else
			m->nready++;
		if (m->flags & WQ__FD && m->nready > 0)
			wq__fd_signal(m);
		if (m->flags & WQ__ORDERED)
			m->order.push(m->order.ctx, &e->u.node, where);
		if (m->flags & (WQ__ORDERED | WQ__RANKED))
			return;
	} else {
		m->nready++;
	}

	struct wq__lane *l = wq__lane_of(m);

	if (wq__unlikely(l != NULL) && wq__lane_takes(m, l, id, where))
		return;
	wq__list_push(m, e, id, where);
}

/* Does the line belong to a lane, which polls by itself? */
static inline bool wq__laned(const struct wq__memory *m)
{
	return m->flags & WQ__LANED;
}

/* How many keys are ready. Beside Gets of the lane, some of those may be taken by now. */
static inline uint32_t wq__about_ready(const struct wq__memory *m)
{
	const struct wq__lane *l = wq__lane_of(m);

	return m->nready - (l ? atomic_load_explicit(&l->taken, memory_order_relaxed) : 0);
}

/* A hold ends, in whatever way. */
static inline void wq__hold_over(struct wq__memory *m, const wq_item *item)
{
	struct wq__lane *l = wq__lane_of(m);

	m->nrunning--;
	if (wq__unlikely(m->flags & WQ__RANKED))
		wq__rank_hold(m, wq__entry_at(m, (uint32_t)item->slot), -1);
	if (wq__unlikely(l != NULL) && !WQ__BUG(LANE_HOLD_KEPT))
		wq__hold_free(l, item->token);
}

/* A key is held from now on: the token, which names its place among the lane's holds. */
static inline uint64_t wq__new_token(struct wq__memory *m, uint32_t id)
{
	struct wq__lane *l = wq__lane_of(m);

	m->token += WQ__HOLDS;
	return wq__unlikely(l != NULL) ? wq__hold_new(l, m->token, id) : m->token;
}

/* The item of a key with these bits. Field by field, as a whole it would be cleared first. */
static wq__forced void wq__item_fill(struct wq__memory *m, const struct wq__entry *e, uint32_t id,
                                     unsigned bits, uint64_t token, int64_t added_ns, wq_item *item)
{
	item->key = e->key;
	item->len = (bits & WQ__LEN_HIGH) << 9 | e->len_low;
	item->token = token;
	item->added_ns = added_ns;
	item->attempts = wq__entry_failures(e) + 1;
	item->priority = 0;
	item->value = NULL;
	item->value_len = 0;
	item->owner = m;
	item->slot = (uint64_t)e->hash << 32 | id;
	item->reserved[0] = item->reserved[1] = 0;
}

/* Some key is ready, and the order is the queue's own: the first. */
static inline uint32_t wq__first_ready(const struct wq__memory *m)
{
	struct wq__lane *l = wq__lane_of(m);

	if (m->rank)
		return wq__rank_first(m);

	uint32_t id = l ? wq__line_at(l, 0) : 0;

	return id ? id : m->head;
}

/* A Get that polls the line looks around. */
static inline void wq__call_poller(struct wq__memory *m)
{
	struct wq__lane *l = wq__lane_of(m);

	if (l)
		atomic_store_explicit(&l->come, true, memory_order_relaxed);
}

static inline bool wq__some_wait(const struct wq__memory *m)
{
	return atomic_load_explicit(&m->gets, memory_order_relaxed) != NULL;
}

/* A waiter that has to be woken after unlocking, or NULL. */
static inline struct wq__waiter *wq__pick(struct wq__memory *m)
{
	return wq__likely(!wq__some_wait(m)) ? NULL : wq__pick_slow(m);
}

/* The lock is released; the waiter may be gone already, only its address counts. */
static inline void wq__wake(struct wq__waiter *w)
{
	if (wq__unlikely(w != NULL)) {
		if (WQ__BUG(MARK_AFTER_UNLOCK))
			wq__parker_set(&w->parker);
		wq__parker_wake(&w->parker);
	}
}

/* As many as there is work for. */
static inline void wq__pick_many(struct wq__memory *m, struct wq__wakes *wakes)
{
	struct wq__waiter *w;

	wakes->n = 0;
	if (wq__likely(!wq__some_wait(m)))
		return;
	for (int i = 0; i < WQ__WAKE_MAX && wq__some_wait(m); i++) {
		uint32_t before = m->inflight;

		w = wq__pick_slow(m);
		if (m->inflight == before)
			break;
		if (w)
			wakes->list[wakes->n++] = w;
	}
}

static inline void wq__wake_many(const struct wq__wakes *wakes)
{
	for (uint32_t i = 0; i < wakes->n; i++)
		wq__wake(wakes->list[i]);
}

#ifdef WQ_SIM
static inline void wq__wake_if(bool really, struct wq__waiter *w)
{
	if (really)
		wq__wake(w);
}

/* See WQ__LOST(). The functions' own definitions have their names in parentheses. */
#define wq__pick(m) (WQ__LOST("pick") ? NULL : (wq__pick)(m))
#define wq__pick_many(m, wakes)                                                                    \
	(WQ__LOST("pick_many") ? (void)((wakes)->n = 0) : (wq__pick_many)(m, wakes))
#define wq__wake(w) wq__wake_if(!WQ__LOST("wake"), w)
#define wq__wake_many(wakes) (WQ__LOST("wake_many") ? (void)(wakes) : (wq__wake_many)(wakes))
#define wq__rouse_leader(m) (WQ__LOST("rouse_leader") ? NULL : (wq__rouse_leader)(m))
#define wq__wake_all_gets(m) (WQ__LOST("wake_all_gets") ? (void)0 : (wq__wake_all_gets)(m))
#define wq__watch_hold_end(m, id, how, gone)                                                       \
	(WQ__LOST("watch_hold_end") ? (void)0 : (wq__watch_hold_end)(m, id, how, gone))
#define wq__fd_signal(m) (WQ__LOST("fd_signal") ? (void)0 : (wq__fd_signal)(m))
#define wq__fd_due(m) (WQ__LOST("fd_due") ? (void)0 : (wq__fd_due)(m))
#endif

#endif
