/*
 * The public calls: check the arguments, turn spans into deadlines, and go
 * through the engine's table. What every engine would have to check is checked
 * here, once.
 */
#define _POSIX_C_SOURCE 200809L
#include <wq/queue.h>

#include <limits.h>
#include <string.h>
#include <wq/engine.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/utf8.h"
#include "limit/limiter.h"
#include "metrics/registry.h"
#include "queue/memory.h"
#include "queue/queue.h"
#include "time/clock.h"

enum { NAME_MAX_BYTES = 255 };

/* ---- life ---------------------------------------------------------------- */

static bool all_zero(const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] != 0)
			return false;
	return true;
}

static bool is_utf8(const char *text)
{
	size_t len = strlen(text), n = 1;

	for (; len > 0 && n > 0; text += n, len -= n)
		n = wq__utf8((const unsigned char *)text, len);
	return n > 0;
}

/* In a path they mean other paths: browsers take them out before they ask. */
static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int check_options(const wq_options *o)
{
	if (o->within > 1 || !all_zero(o->reserved, sizeof o->reserved / sizeof o->reserved[0]))
		return WQ_EINVAL;
	if (o->name && strnlen(o->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
		return WQ_EINVAL;
	if (o->engine_options && !o->engine)
		return WQ_EINVAL;
	if (o->spin_ns < WQ_SPIN_NEVER || o->spin_ns > WQ_MILLISECOND)
		return WQ_EINVAL;
	if (!o->clock->now)
		return WQ_EINVAL;
	if (o->order && (!o->order->push || !o->order->pop || o->order->room > WQ_ORDER_ROOM_MAX))
		return WQ_EINVAL;
	if (!o->name && (o->registry || o->provider))
		return WQ_EINVAL;
	if (o->registry && (!is_utf8(o->name) || is_dots(o->name)))
		return WQ_EINVAL;
	if (o->provider && !all_zero(o->provider->reserved, sizeof o->provider->reserved /
	                                                        sizeof o->provider->reserved[0]))
		return WQ_EINVAL;
	if (o->max_attempts > WQ_FAILURES_MAX)
		return WQ_EINVAL;
	if (o->max_attempts > 0 && !wq__limiter_numbers(o->limiter))
		return WQ_EINVAL;
	if (o->engine &&
	    (o->engine->version != WQ_ENGINE_VERSION || o->engine->size < sizeof(wq_engine)))
		return WQ_EVERSION;
	return WQ_OK;
}

static int make(wq **out, const wq_options *o, bool *order_gone)
{
	wq *q = wq__alloc(o->allocator, sizeof *q, 64);
	int rc;

	if (!q)
		return WQ_ENOMEM;
	*q = (wq){
	    .engine = o->engine ? o->engine : &wq__memory_engine,
	    .clock = *o->clock,
	    .allocator = *o->allocator,
	    .limiter = o->limiter,
	    .dead_letter = o->dead_letter,
	    .dead_ctx = o->dead_ctx,
	    .within = o->within,
	};
	wq__lock_init(&q->lock);
	rc = q->engine->open(q, o, &q->state);
	if (rc < 0)
		goto no_engine;
	if (o->registry) {
		q->registry = o->registry;
		q->listing.q = q;
		memcpy(q->listing.name, o->name, strlen(o->name) + 1); /* 255 at most: checked */
		/* Last: from here on others see it. */
		rc = wq__registry_enter(q->registry, &q->listing);
		if (rc < 0)
			goto no_entry;
	}
	*out = q;
	return WQ_OK;
no_entry:
	/* With it goes the order, of which wq_new() must not speak again. */
	*order_gone = true;
	q->engine->close(q->state);
no_engine:
	wq__free(o->allocator, q, sizeof *q);
	return rc;
}

int wq_new(wq **out, const wq_options *options)
{
	wq_options o = options ? *options : (wq_options){0};
	bool ours, order_gone = false;
	int rc;

	if (!o.allocator)
		o.allocator = &wq__default_allocator;
	if (!o.clock)
		o.clock = &wq__clock_real;
	/* No name is no metrics. */
	if (o.name && o.name[0] == '\0')
		o.name = NULL;
	rc = out && o.allocator->alloc && o.allocator->free ? WQ_OK : WQ_EINVAL;
	if (!o.limiter && rc == WQ_OK)
		o.limiter = wq__limiter_default(o.allocator);

	int taken = o.limiter ? wq__limiter_take(o.limiter) : WQ_OK;

	ours = o.limiter && taken == WQ_OK;
	if (rc == WQ_OK)
		rc = taken;
	if (rc == WQ_OK)
		rc = check_options(&o);
	if (rc == WQ_OK)
		rc = make(out, &o, &order_gone);
	/* What was handed over is ours even if there is no queue to own it. */
	if (rc != WQ_OK && o.order && o.order->free && !order_gone)
		o.order->free(o.order->ctx);
	if (rc != WQ_OK && ours)
		wq__limiter_release(o.limiter);
	return rc;
}

int wq_free(wq *q)
{
	int rc;

	if (!q)
		return WQ_EINVAL;

	wq_allocator a = q->allocator;

	if (wq__has_pools(q))
		return WQ_EBUSY;
	rc = q->registry ? wq__registry_leave(q->registry, &q->listing, q->engine->close, q->state)
	                 : q->engine->close(q->state);
	if (rc < 0)
		return rc;
	wq__limiter_release(q->limiter);
	wq__free(&a, q, sizeof *q);
	return rc;
}

int64_t wq_now(wq *q)
{
	return q ? q->clock.now(q->clock.ctx) : WQ_EINVAL;
}

int wq_clock_changed(wq *q)
{
	if (!q)
		return WQ_EINVAL;
	wq__tell_pools_the_clock_changed(q);
	return q->engine->clock_changed(q->state);
}

/* ---- add ----------------------------------------------------------------- */

static inline int check_key(const wq *q, const void *key, size_t len)
{
	if (wq__unlikely(!q || (!key && len > 0)))
		return WQ_EINVAL;
	return wq__unlikely(len > WQ_KEY_MAX) ? WQ_ETOOLONG : WQ_OK;
}

int wq_add(wq *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return wq__likely(rc == WQ_OK) ? q->engine->add(q->state, key, len) : rc;
}

int wq_add_str(wq *q, const char *key)
{
	/* Not strlen: a string without end must not be read to its end. */
	return key ? wq_add(q, key, strnlen(key, WQ_KEY_MAX + 1)) : WQ_EINVAL;
}

int wq_add_many(wq *q, const wq_key *keys, size_t n, int *outcomes)
{
	if (!q || (!keys && n > 0) || n > INT_MAX)
		return WQ_EINVAL;
	return q->engine->add_many(q->state, keys, n, outcomes);
}

static bool add_options_ok(const wq *q, const wq_add_options *o)
{
	if (o->limited > 1 || !all_zero(o->reserved, sizeof o->reserved / sizeof o->reserved[0]))
		return false;
	if (o->at_ns < 0 || (o->at_ns > 0) + (o->after_ns != 0) + (o->limited != 0) > 1)
		return false;
	if (o->within_ns != 0 &&
	    (o->within_ns < 0 || !q->within || o->limited || o->policy == WQ_REMIND))
		return false;
	return (unsigned)o->policy <= WQ_REMIND;
}

int wq_add_with(wq *q, const void *key, size_t len, const wq_add_options *options)
{
	int rc = check_key(q, key, len);

	if (rc == WQ_OK && options && !add_options_ok(q, options))
		rc = WQ_EINVAL;
	if (rc != WQ_OK)
		return rc;
	if (!options || (options->at_ns == 0 && options->after_ns == 0 && !options->limited))
		return q->engine->add(q->state, key, len);
	return q->engine->add_with(q->state, key, len, options);
}

/* With any delay it counts as a retry, which an add does not: no way around the engine's add_with. */
int wq_add_after(wq *q, const void *key, size_t len, int64_t delay_ns)
{
	wq_add_options o = {.after_ns = delay_ns};
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->add_with(q->state, key, len, &o) : rc;
}

int wq_add_at(wq *q, const void *key, size_t len, int64_t due_ns)
{
	/* Time 0 has passed on every clock. */
	wq_add_options o = {.at_ns = due_ns};
	int rc = check_key(q, key, len);

	if (rc == WQ_OK && due_ns < 0)
		rc = WQ_EINVAL;
	return rc == WQ_OK ? q->engine->add_with(q->state, key, len, &o) : rc;
}

int wq_add_limited(wq *q, const void *key, size_t len)
{
	static const wq_add_options limited = {.limited = 1};
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->add_with(q->state, key, len, &limited) : rc;
}

int wq_forget(wq *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->forget(q->state, NULL, key, len) : rc;
}

int64_t wq_num_requeues(wq *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->num_requeues(q->state, NULL, key, len) : rc;
}

int wq_set_failures(wq *q, const void *key, size_t len, uint32_t failures)
{
	int rc = check_key(q, key, len);

	if (rc == WQ_OK && (failures == 0 || failures > WQ_FAILURES_MAX))
		rc = WQ_EINVAL;
	if (rc == WQ_OK && !q->engine->set_failures)
		rc = WQ_ENOTSUP;
	return rc == WQ_OK ? q->engine->set_failures(q->state, key, len, failures) : rc;
}

int wq_reschedule(wq *q, const void *key, size_t len, int64_t due_ns)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return rc;
	return due_ns >= 0 ? q->engine->reschedule(q->state, key, len, due_ns) : WQ_EINVAL;
}

int wq_cancel(wq *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->cancel(q->state, key, len, WQ_NOWAIT) : rc;
}

int wq_cancel_sync_until(wq *q, const void *key, size_t len, int64_t deadline_ns)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return rc;
	if (deadline_ns < 0)
		return WQ_EINVAL;
	if (wq__handles(q, key, len))
		return WQ_EDEADLK;
	return q->engine->cancel(q->state, key, len, deadline_ns);
}

int64_t wq_next_deadline(wq *q)
{
	return q ? q->engine->next_deadline(q->state) : WQ_EINVAL;
}

/* ---- get ----------------------------------------------------------------- */

static int64_t deadline_of(wq *q, int64_t timeout_ns)
{
	return timeout_ns == WQ_NEVER ? WQ_NEVER
	                              : wq_time_add(wq_now(q), timeout_ns > 0 ? timeout_ns : 0);
}

/* Items of a later version may be longer; they stay aligned. */
static bool items_ok(const wq_item *items, size_t item_size, size_t n)
{
	if (item_size < sizeof(wq_item) || item_size % 8 != 0 || n > INT_MAX)
		return false;
	return (items || n == 0) && n <= SIZE_MAX / item_size;
}

static bool item_ok(const wq_item *it)
{
	return it->reserved0 == 0 && (it->reserved[0] | it->reserved[1]) == 0;
}

static bool all_ok(const wq_item *items, size_t item_size, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!item_ok((const wq_item *)(const void *)((const char *)items + i * item_size)))
			return false;
	return true;
}

int wq_get(wq *q, wq_item *item)
{
	return wq__likely(q && item) ? q->engine->get(q->state, item, WQ_NEVER) : WQ_EINVAL;
}

int wq_get_until(wq *q, wq_item *item, int64_t deadline_ns)
{
	if (!q || !item || deadline_ns < WQ_NOWAIT)
		return WQ_EINVAL;
	return q->engine->get(q->state, item, deadline_ns);
}

int wq_get_for(wq *q, wq_item *item, int64_t timeout_ns)
{
	return q && item ? q->engine->get(q->state, item, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_try_get(wq *q, wq_item *item)
{
	return wq__likely(q && item) ? q->engine->get(q->state, item, WQ_NOWAIT) : WQ_EINVAL;
}

int wq_get_many(wq *q, wq_item *items, size_t item_size, size_t max, int64_t deadline_ns)
{
	if (!q || max == 0 || !items_ok(items, item_size, max) || deadline_ns < WQ_NOWAIT)
		return WQ_EINVAL;
	return q->engine->get_many(q->state, items, item_size, max, deadline_ns);
}

int wq_interrupt(wq *q, int n)
{
	return q && n >= 0 ? q->engine->interrupt(q->state, n) : WQ_EINVAL;
}

/* ---- done ---------------------------------------------------------------- */

int wq_done(wq *q, const wq_item *item)
{
	return wq__likely(q && item && item_ok(item)) ? q->engine->done(q->state, item) : WQ_EINVAL;
}

int wq_done_many(wq *q, const wq_item *items, size_t item_size, size_t n, int *outcomes)
{
	if (!q || !items_ok(items, item_size, n) || !all_ok(items, item_size, n))
		return WQ_EINVAL;
	return q->engine->done_many(q->state, items, item_size, n, outcomes);
}

int wq_next(wq *q, wq_item *item)
{
	return wq_next_until(q, item, WQ_NEVER);
}

int wq_next_until(wq *q, wq_item *item, int64_t deadline_ns)
{
	if (wq__unlikely(!q || !item || !item_ok(item) || deadline_ns < WQ_NOWAIT))
		return WQ_EINVAL;
	return q->engine->next(q->state, item, deadline_ns);
}

int wq_next_many(wq *q, wq_item *items, size_t item_size, size_t n, size_t max, int64_t deadline_ns)
{
	if (!q || max == 0 || n > max || !items_ok(items, item_size, max) ||
	    deadline_ns < WQ_NOWAIT || !all_ok(items, item_size, n))
		return WQ_EINVAL;
	return q->engine->next_many(q->state, items, item_size, n, max, deadline_ns);
}

int wq_requeue(wq *q, const wq_item *item, enum wq_where where)
{
	if (!q || !item || !item_ok(item) || (where != WQ_TAIL && where != WQ_HEAD))
		return WQ_EINVAL;
	return q->engine->requeue(q->state, item, where);
}

static int settle(wq *q, wq_item *item, wq_turn *t)
{
	int rc = q->engine->turn(q->state, item, t);

	if (wq__likely(t->settled != WQ_DEAD))
		return rc;
	/* It is held still, and *item alone can end that. */
	if (q->dead_letter)
		q->dead_letter(q->dead_ctx, item);
	t->steps = WQ_TURN_BURY | (t->steps & WQ_TURN_GET);
	return q->engine->turn(q->state, item, t);
}

int wq_settle(wq *q, const wq_item *item, int64_t verdict)
{
	wq_turn t = {.steps = WQ_TURN_SETTLE, .verdict = verdict};
	wq_item mine;

	if (!q || !item || !item_ok(item))
		return WQ_EINVAL;
	mine = *item;
	settle(q, &mine, &t);
	return t.settled;
}

int wq_retry(wq *q, const wq_item *item)
{
	return wq_settle(q, item, WQ_RETRY);
}

int wq__settle_next(wq *q, wq_item *item, wq_turn *t)
{
	return settle(q, item, t);
}

int wq_settle_next(wq *q, wq_item *item, int64_t verdict, int64_t deadline_ns, int *settled)
{
	wq_turn t = {.steps = WQ_TURN_SETTLE | WQ_TURN_GET,
	             .verdict = verdict,
	             .deadline_ns = deadline_ns};
	int rc;

	if (!q || !item || !item_ok(item) || deadline_ns < WQ_NOWAIT)
		return WQ_EINVAL;

	wq_item mine = *item;

	rc = settle(q, &mine, &t);
	if (rc == WQ_OK)
		*item = mine;
	if (settled && t.settled >= 0)
		*settled = t.settled;
	return rc;
}

int wq_forget_item(wq *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine->forget(q->state, item, NULL, 0) : WQ_EINVAL;
}

int64_t wq_num_requeues_item(wq *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine->num_requeues(q->state, item, NULL, 0)
	                                  : WQ_EINVAL;
}

int wq_extend(wq *q, const wq_item *item, int64_t span_ns)
{
	if (!q || !item || !item_ok(item) || span_ns <= 0)
		return WQ_EINVAL;
	return q->engine->extend(q->state, item, span_ns);
}

int wq_lost(wq *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine->lost(q->state, item) : WQ_EINVAL;
}

/* ---- wait and stop ------------------------------------------------------- */

int wq_wait_idle_until(wq *q, int64_t deadline_ns)
{
	if (!q || deadline_ns < 0)
		return WQ_EINVAL;
	return wq__handling(q) ? WQ_EDEADLK : q->engine->wait_idle(q->state, deadline_ns);
}

int wq_wait_idle_for(wq *q, int64_t timeout_ns)
{
	return q ? wq_wait_idle_until(q, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_wait_key_until(wq *q, const void *key, size_t len, int64_t deadline_ns)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return rc;
	if (deadline_ns < 0)
		return WQ_EINVAL;
	if (wq__handles(q, key, len))
		return WQ_EDEADLK;
	return q->engine->wait_key(q->state, key, len, deadline_ns);
}

int wq_wait_key_for(wq *q, const void *key, size_t len, int64_t timeout_ns)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? wq_wait_key_until(q, key, len, deadline_of(q, timeout_ns)) : rc;
}

int wq_shutdown(wq *q)
{
	return q ? q->engine->shutdown(q->state) : WQ_EINVAL;
}

int wq_shutting_down(wq *q)
{
	return q ? q->engine->shutting_down(q->state) : WQ_EINVAL;
}

int wq_drain_until(wq *q, int64_t deadline_ns, const wq_drain_options *options, wq_report *report)
{
	if (!q || deadline_ns < 0)
		return WQ_EINVAL;
	if (options &&
	    (options->reserved0 != 0 || (unsigned)options->waiting > WQ_WAITING_WAIT ||
	     !all_zero(options->reserved, sizeof options->reserved / sizeof options->reserved[0])))
		return WQ_EINVAL;
	if (wq__handling(q))
		return WQ_EDEADLK;
	wq__resume_pools(q);
	return q->engine->drain(q->state, deadline_ns, options, report);
}

int wq_drain_for(wq *q, int64_t timeout_ns, wq_report *report)
{
	return q ? wq_drain_until(q, deadline_of(q, timeout_ns), NULL, report) : WQ_EINVAL;
}

/* ---- look ---------------------------------------------------------------- */

int64_t wq_len(wq *q)
{
	return q ? q->engine->len(q->state) : WQ_EINVAL;
}

int wq_look(wq *q, wq_snapshot *out)
{
	int rc;

	if (!q || !out)
		return WQ_EINVAL;
	*out = (wq_snapshot){0};
	rc = q->engine->look(q->state, out);
	out->overstayed = atomic_load_explicit(&q->overstayed, memory_order_relaxed);
	return rc;
}

int wq_state(wq *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine->state(q->state, key, len) : rc;
}

int64_t wq_walk(wq *q, wq_walk_fn fn, void *ctx)
{
	return q && fn ? q->engine->walk(q->state, fn, ctx) : WQ_EINVAL;
}

int wq_fd(wq *q)
{
	return q ? q->engine->fd(q->state) : WQ_EINVAL;
}
