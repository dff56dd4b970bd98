/* Opening and closing the memory engine, its table of functions, and what orders may ask. */
#include "queue/memory.h"

#include <string.h>

#include "base/fail.h"
#include "base/tools.h"
#include "time/clock.h"

/* The wheel's: 2^18 ns is a quarter of a millisecond; 2^6 buckets a level. */
enum { TW_TICK = 18, TW_BITS = 6 };

/* How long a Get polls before it sleeps, if that is left to the queue. */
static const int64_t spin_start_ns = 30 * WQ_MICROSECOND;
static const int64_t spin_max_ns = 50 * WQ_MICROSECOND;

static void spin_init(struct wq__memory *m, int64_t spin_ns)
{
	if (spin_ns == WQ_SPIN_NEVER)
		return;
	m->pauses_per_us = wq__pauses_for(WQ_MICROSECOND);
	if (spin_ns > 0) {
		m->spin_pauses = m->spin_min = m->spin_max = wq__pauses_for(spin_ns);
		return;
	}
	m->spin_max = wq__pauses_for(spin_max_ns);
	m->spin_pauses = (uint32_t)(m->spin_max * spin_start_ns / spin_max_ns);
}

/* The clock may be used in the child of a fork, where nobody sleeps in here. */
static void clock_moved(void *state)
{
	const struct wq__memory *m = state;

	if (!m->forked)
		wq__mem_clock_changed(state);
}

static void forked(struct wq__fork_link *link)
{
	wq__container_of(link, struct wq__memory, fork)->forked = true;
}

static int watch_clock(struct wq__memory *m)
{
	int rc;

	if (!m->clock.watch)
		return WQ_OK;
	wq__fork_join(&m->fork, forked);
	rc = m->clock.watch(m->clock.ctx, clock_moved, m, 1);
	if (rc < 0) {
		wq__fork_leave(&m->fork);
		wq__fail_text("the clock cannot be watched: %s", wq_strerror(rc));
	}
	return rc;
}

static void unwatch_clock(struct wq__memory *m)
{
	if (!m->clock.watch)
		return;
	m->clock.watch(m->clock.ctx, clock_moved, m, 0);
	wq__fork_leave(&m->fork);
}

static bool meter_new(struct wq__memory *m, const wq_metrics_provider *provider)
{
	m->meter = wq__alloc(&m->allocator, sizeof *m->meter, 16);
	if (!m->meter)
		return false;
	*m->meter = (struct wq__meter){0};
	if (provider)
		m->meter->provider = *provider;
	m->flags |= WQ__METERED;
	if (m->clock.now == wq__clock_real.now)
		m->flags |= WQ__TICKING;
	return true;
}

static void meter_free(struct wq__memory *m)
{
	wq__free(&m->allocator, m->meter, sizeof *m->meter);
}

/*
 * A plain queue, without hooks of the user's own: one that calls its queue finds the lock held and
 * is stopped, but two locks may let it in. The tests' own clocks and allocators do no such thing.
 */
static bool may_have_lane(const struct wq__memory *m)
{
#if !defined(WQ_LANED) && !defined(WQ_SIM)
	if (m->clock.now != wq__clock_real.now || m->allocator.alloc != wq__default_allocator.alloc)
		return false;
#endif
	return !(m->flags & ~(uint32_t)WQ__EXACT);
}

/*
 * Not where a tool that watches memory would keep the tests of the lane from it: such queues have
 * none, as their dones free what their Gets have made.
 */
static bool wants_copies(void)
{
#if defined(WQ_LANED) || defined(WQ_SIM)
	return false;
#else
	return wq__tools() & WQ__TOOL_MEMORY;
#endif
}

/* Priorities, groups and values: what they need beside the keys. */
static int rich_open(struct wq__memory *m, const wq_options *o)
{
	int rc = WQ_OK;

	m->flags |= WQ__RICH | (o->values ? WQ__VALUED : 0u);
	if (m->standing_at > 0 || m->max_keys > 0 || o->aging_ns > 0)
		m->flags |= WQ__HEAVY;
	m->merge = o->merge ? o->merge : wq_merge_last;
	m->merge_ctx = o->merge_ctx;
	if (o->values && m->merge != wq_merge_last && m->merge != wq_merge_first) {
		m->merge_out = wq__alloc(&m->allocator, WQ_VALUE_MAX, 8);
		if (!m->merge_out)
			return wq__fail_memory();
	}
	if (o->priorities || o->group)
		rc = wq__rank_open(m, o);
	if (rc < 0)
		wq__free(&m->allocator, m->merge_out, WQ_VALUE_MAX);
	return rc;
}

static void rich_close(struct wq__memory *m)
{
	wq__rank_close(m);
	wq__free(&m->allocator, m->merge_out, WQ_VALUE_MAX);
}

static int mem_open(wq_queue *q, const wq_options *o, void **state)
{
	struct wq__memory *m = wq__alloc(o->allocator, sizeof *m, 64);
	int rc;

	(void)q;
	if (!m)
		return wq__fail_memory();
	memset(m, 0, sizeof *m);
#ifdef WQ_LANED
	wq__lock_init(&m->lock); /* for tests: every queue that may have a lane gets one at once */
#else
	wq__lock_init_own(&m->lock);
#endif
	m->allocator = *o->allocator;
	m->clock = *o->clock;
	if (m->clock.now != wq__clock_real.now || o->name)
		m->flags |= WQ__EXACT;
	if (o->order) {
		m->order = *o->order;
		m->room = o->order->room;
		m->flags |= WQ__ORDERED;
	}
	m->limiter = o->limiter;
	m->limit_at = (m->room + 7) / 8 * 8;
	m->limit_room = wq__limiter_room(o->limiter);
	m->meter_at = m->limit_at + m->limit_room;
	m->latest_at = m->meter_at + (o->name ? sizeof(struct wq__stint) : 0);
	m->copy_at = m->latest_at + (o->within ? sizeof(int64_t) : 0);
	if (wants_copies())
		m->flags |= WQ__COPIES;
	m->standing_at =
	    m->copy_at + (m->flags & WQ__COPIES ? sizeof(char *) * (o->values ? 2 : 1) : 0);
	m->carried_at =
	    m->standing_at + (o->priorities || o->group ? sizeof(struct wq__standing) : 0);
	m->room = m->carried_at + (o->values ? sizeof(uint64_t) : 0);
	if (o->within)
		m->flags |= WQ__WITHIN;
	if (o->limiter->asks)
		m->flags |= WQ__ASKS;
	m->max_attempts = o->max_attempts;
	m->max_keys = o->max_keys;
	if (m->room > 0 || m->max_keys > 0)
		m->flags |= WQ__EXTRA;
	if (o->aging_ns > 0)
		m->flags |= WQ__EXACT;
	if (may_have_lane(m))
		m->flags |= WQ__LANES;
	m->width = UINT32_MAX;
	/* Later than every token of an older queue that may have stood at the same address. */
	m->token = (uint64_t)wq__clock_now() * WQ__HOLDS;
	m->fd_poll = m->fd_event = m->fd_timer = -1;
	m->next_due_ns = WQ_NEVER;
	spin_init(m, o->spin_ns);
	wq__hash_init(&m->hash_key, o->seed);
	wq__slab_init(&m->slab, &m->allocator);
	wq__tw_init(&m->tw, &m->slab, &m->allocator, wq__now(m), TW_TICK, TW_BITS);
	if (o->name && !meter_new(m, o->provider)) {
		rc = wq__fail_memory();
		goto no_meter;
	}
	if (wq__table_init(&m->table, &m->slab, &m->allocator) < 0) {
		rc = wq__fail_memory();
		goto no_table;
	}
	rc = wq__asks_rich(o) ? rich_open(m, o) : WQ_OK;
	if (rc < 0)
		goto no_riches;
	/* Last: from here on the clock may call. */
	rc = watch_clock(m);
	if (rc < 0)
		goto no_watch;
	*state = m;
	return WQ_OK;
no_watch:
	rich_close(m);
no_riches:
	wq__table_release(&m->table);
no_table:
	meter_free(m);
no_meter:
	wq__slab_release(&m->slab);
	wq__lock_end(&m->lock);
	wq__free(o->allocator, m, sizeof *m);
	return rc;
}

static int mem_close(void *state)
{
	struct wq__memory *m = state;
	wq_allocator a = m->allocator;

	wq__whole_lock(m);

	struct wq__lane *l = m->lane;
	uint32_t held = m->nrunning;
	bool busy = held > 0 || m->inside > 0 || (l && l->inside > 0);
	size_t n = m->table.n - m->nghosts - m->nmemo - m->npairs;
	int left = n > INT_MAX ? INT_MAX : (int)n;

	/* Nobody comes after us to take them from the line. */
	if (!busy && wq__queued(m) > 0 && m->flags & WQ__METERED)
		wq__meter_depth(m, -(int64_t)wq__queued(m));
	wq__whole_unlock(m);
	if (held > 0)
		return wq__fail(WQ_EBUSY, "%u key%s held", held, held == 1 ? " is" : "s are");
	if (busy)
		return wq__fail(WQ_EBUSY, "a thread waits in the queue or walks over it");
	unwatch_clock(m);
	wq__fd_close(m);
	if (m->order.free)
		m->order.free(m->order.ctx);
	wq__lane_free(m);
	rich_close(m);
	wq__tw_release(&m->tw);
	wq__table_release(&m->table);
	meter_free(m);
	wq__slab_release(&m->slab);
	wq__lock_end(&m->lock);
	wq__free(&a, m, sizeof *m);
	return left;
}

/* In the child of a fork: the descriptors are this process's own, nothing else is. */
int wq__mem_abandon(void *state)
{
	struct wq__memory *m = state;

	wq__fd_close(m);
	m->fd_poll = m->fd_event = m->fd_timer = -1;
	return WQ_OK;
}

const wq_engine wq__memory_engine = {
    .version = WQ_ENGINE_VERSION,
    .size = sizeof(wq_engine),
    .name = "memory",
    .features = WQ_FEATURE_PRIORITY | WQ_FEATURE_GROUP | WQ_FEATURE_VALUE,
    .open = mem_open,
    .close = mem_close,
    .add = wq__mem_add,
    .add_with = wq__mem_add_with,
    .reschedule = wq__mem_reschedule,
    .cancel = wq__mem_cancel,
    .next_deadline = wq__mem_next_deadline,
    .add_many = wq__mem_add_many,
    .get = wq__mem_get,
    .get_many = wq__mem_get_many,
    .interrupt = wq__mem_interrupt,
    .done = wq__mem_done,
    .done_many = wq__mem_done_many,
    .next = wq__mem_next,
    .next_many = wq__mem_next_many,
    .requeue = wq__mem_requeue,
    .extend = wq__mem_extend,
    .lost = wq__mem_lost,
    .wait_idle = wq__mem_wait_idle,
    .wait_key = wq__mem_wait_key,
    .shutdown = wq__mem_shutdown,
    .shutting_down = wq__mem_shutting_down,
    .drain = wq__mem_drain,
    .len = wq__mem_len,
    .state = wq__mem_state,
    .walk = wq__mem_walk,
    .fd = wq__mem_fd,
    .clock_changed = wq__mem_clock_changed,
    .forget = wq__mem_forget,
    .failures = wq__mem_failures,
    .turn = wq__mem_turn,
    .gate_change = wq__mem_gate_change,
    .snapshot = wq__mem_snapshot,
    .set_failures = wq__mem_set_failures,
};

static const struct wq__entry *entry_of(const wq_node *node)
{
	return (const struct wq__entry *)(const void *)((const char *)node -
	                                                offsetof(struct wq__entry, u.node));
}

const void *wq_node_key(const wq_node *node, size_t *len)
{
	const struct wq__entry *e = entry_of(node);

	if (len)
		*len = wq__entry_len(e);
	return e->key;
}

int64_t wq_node_added_ns(const wq_node *node)
{
	return entry_of(node)->added_ns;
}

void *wq_node_room(wq_node *node)
{
	struct wq__entry *e = wq__container_of(node, struct wq__entry, u.node);

	return (char *)e + wq__entry_room_offset(wq__entry_len(e));
}
