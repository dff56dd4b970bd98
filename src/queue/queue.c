/*
 * The public calls: check the arguments, turn spans into deadlines, and go
 * through the engine's table. What every engine would have to check is checked
 * here, once.
 */
#define _POSIX_C_SOURCE 200809L
#include <wq/queue.h>

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <wq/engine.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "limit/limiter.h"
#include "metrics/registry.h"
#include "queue/memory.h"
#include "queue/queue.h"
#include "time/clock.h"

enum { NAME_MAX_BYTES = 255 };

/* ---- life ---------------------------------------------------------------- */

#define ALL_ZERO(words) all_zero(words, sizeof(words) / sizeof *(words))

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

static int check_name(const wq_options *o)
{
	if (!o->name)
		return o->registry || o->provider
		           ? wq__fail(WQ_EINVAL,
		                      "a queue with a registry or a provider needs a name")
		           : WQ_OK;
	if (strnlen(o->name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
		return wq__fail(WQ_EINVAL, "the name is longer than %d bytes", NAME_MAX_BYTES);
	if (o->registry && !is_utf8(o->name))
		return wq__fail(WQ_EINVAL, "the name is not UTF-8");
	if (o->registry && is_dots(o->name))
		return wq__fail(WQ_EINVAL, "the name is \"%s\", which no URL can have as a part",
		                o->name);
	return WQ_OK;
}

static int check_hooks(const wq_options *o)
{
	if (!wq__clock_good(o->clock))
		return wq__fail_clock(o->clock);
	if (o->order && !ALL_ZERO(o->order->reserved))
		return wq__fail(WQ_EINVAL, "a reserved word of the order is not zero");
	if (o->order && (!o->order->push || !o->order->pop))
		return wq__fail(WQ_EINVAL, "the order has no function push or pop");
	if (o->order && o->order->room > WQ_ORDER_ROOM_MAX)
		return wq__fail(WQ_EINVAL, "the order's room is %zu bytes, more than %d",
		                o->order->room, WQ_ORDER_ROOM_MAX);
	if (o->provider && !ALL_ZERO(o->provider->reserved))
		return wq__fail(WQ_EINVAL, "a reserved word of the provider is not zero");
	return WQ_OK;
}

static int check_engine(const wq_options *o)
{
	if (!o->engine)
		return o->engine_options
		           ? wq__fail(WQ_EINVAL, "engine_options are given without an engine")
		           : WQ_OK;
	if (o->engine->version != WQ_ENGINE_VERSION)
		return wq__fail(WQ_EVERSION, "the engine's table has version %u, not %d",
		                o->engine->version, WQ_ENGINE_VERSION);
	if (o->engine->size < offsetof(wq_engine, add) || !o->engine->open || !o->engine->close)
		return wq__fail(WQ_EVERSION, "the engine's table has no open or no close");
	return WQ_OK;
}

/* Priorities, groups and values. */
static int check_riches(const wq_options *o)
{
	uint64_t asked = (o->priorities ? WQ_FEATURE_PRIORITY : 0u) |
	                 (o->group ? WQ_FEATURE_GROUP : 0u) | (o->values ? WQ_FEATURE_VALUE : 0u);

	if (o->priorities > 1)
		return wq__fail(WQ_EINVAL, "priorities is %u, neither 0 nor 1", o->priorities);
	if (o->values > 1)
		return wq__fail(WQ_EINVAL, "values is %u, neither 0 nor 1", o->values);
	if (o->order && (o->priorities || o->group))
		return wq__fail(WQ_EINVAL, "an order is given with priorities or groups");
	if (o->aging_ns < 0 || o->aging_ns > WQ_AGING_MAX)
		return wq__fail(WQ_EINVAL, "aging_ns is %" PRId64 ", not 0 to WQ_AGING_MAX",
		                o->aging_ns);
	if (o->aging_max < WQ_PRIORITY_MIN || o->aging_max > WQ_PRIORITY_MAX)
		return wq__fail(WQ_EINVAL, "aging_max is %" PRId32 ", which is no priority",
		                o->aging_max);
	if ((o->aging_ns > 0 && !o->priorities) || (o->aging_max != 0 && o->aging_ns == 0))
		return wq__fail(WQ_EINVAL, "aging needs priorities = 1 and aging_ns");
	if (!o->group && (o->group_ctx || o->group_limit || o->group_rate != 0 || o->group_burst ||
	                  o->group_setup || o->setup_ctx))
		return wq__fail(WQ_EINVAL, "settings of groups are given without group");
	if (!wq__rate_good(o->group_rate))
		return wq__fail(WQ_EINVAL, "group_rate is %g, not 0 to 1e9", o->group_rate);
	if (!o->values && (o->merge || o->merge_ctx))
		return wq__fail(WQ_EINVAL, "merge is given, but values is 0");
	if (o->reserved0 != 0)
		return wq__fail(WQ_EINVAL, "a reserved word of wq_options is not zero");
	if (o->engine && asked & ~o->engine->features)
		return wq__fail(WQ_ENOTSUP, "the engine \"%s\" has no %s",
		                o->engine->name ? o->engine->name : "",
		                asked & ~o->engine->features & WQ_FEATURE_PRIORITY ? "priorities"
		                : asked & ~o->engine->features & WQ_FEATURE_GROUP  ? "groups"
		                                                                   : "values");
	return WQ_OK;
}

static int check_options(const wq_options *o)
{
	int rc;

	if (!ALL_ZERO(o->reserved))
		return wq__fail(WQ_EINVAL, "a reserved word of wq_options is not zero");
	if (o->within > 1)
		return wq__fail(WQ_EINVAL, "within is %u, neither 0 nor 1", o->within);
	if (o->spin_ns < WQ_SPIN_NEVER)
		return wq__fail(WQ_EINVAL, "spin_ns is negative, and not WQ_SPIN_NEVER");
	if (o->spin_ns > WQ_MILLISECOND)
		return wq__fail(WQ_EINVAL, "spin_ns is %" PRId64 ", more than WQ_MILLISECOND",
		                o->spin_ns);
	if (o->max_attempts > WQ_FAILURES_MAX)
		return wq__fail(WQ_EINVAL, "max_attempts is %u, more than WQ_FAILURES_MAX",
		                o->max_attempts);
	if (o->max_attempts > 0 && !wq__limiter_numbers(o->limiter))
		return wq__fail(WQ_EINVAL, "max_attempts needs a limiter that counts failures");
	rc = check_name(o);
	if (rc == WQ_OK)
		rc = check_hooks(o);
	if (rc == WQ_OK)
		rc = check_engine(o);
	return rc == WQ_OK ? check_riches(o) : rc;
}

/* The engine's table, with WQ_ENOTSUP for what it has not: it may be older, and shorter. */
static wq_engine complete(const wq_engine *given)
{
	wq_engine all = wq__engine_stubs;
	size_t size = given->size < sizeof all ? given->size : sizeof all;
	size_t n = (size - offsetof(wq_engine, open)) / sizeof(void (*)(void));

	for (size_t i = 0; i < n; i++) {
		void (*function)(void);

		memcpy(&function, (const char *)&given->open + i * sizeof function,
		       sizeof function);
		if (function)
			memcpy((char *)&all.open + i * sizeof function, &function, sizeof function);
	}
	all.name = given->name;
	return all;
}

/* The child of a fork. What other threads guarded or were about to change is not touched. */
static void forked(struct wq__fork_link *link)
{
	wq_queue *q = wq__container_of(link, wq_queue, fork);
	bool in_memory = q->engine.close == wq__memory_engine.close;

	q->engine = wq__engine_forked;
	if (in_memory)
		q->engine.close = wq__mem_abandon;
	q->forked = true;
	q->pools = NULL;
	atomic_store_explicit(&q->npools, 0, memory_order_relaxed);
}

static int make(wq_queue **out, const wq_options *o, bool *order_gone)
{
	wq_queue *q = wq__alloc(o->allocator, sizeof *q, 64);
	int rc;

	if (!q)
		return wq__fail_memory();
	*q = (wq_queue){
	    .engine = complete(o->engine ? o->engine : &wq__memory_engine),
	    .clock = *o->clock,
	    .allocator = *o->allocator,
	    .limiter = o->limiter,
	    .dead_letter = o->dead_letter,
	    .dead_ctx = o->dead_ctx,
	    .within = o->within,
	    .priorities = o->priorities,
	    .values = o->values,
	};
	if (!o->engine && wq__asks_rich(o))
		q->engine = wq__rich(q->engine);
	wq__lock_init(&q->lock);
	rc = q->engine.open(q, o, &q->state);
	if (rc < 0)
		goto no_engine;
	if (o->registry) {
		q->registry = o->registry;
		q->listing.q = q;
		memcpy(q->listing.name, o->name, strlen(o->name) + 1); /* 255 at most: checked */
		/* Last: from here on others see it. */
		rc = wq__registry_enter(q->registry, &q->listing);
		if (rc == WQ_EEXIST)
			wq__fail_text("the registry has a queue of the name \"%s\"", o->name);
		if (rc == WQ_ENOMEM)
			wq__fail_text("out of memory");
		if (rc < 0)
			goto no_entry;
	}
	wq__fork_join(&q->fork, forked);
	*out = q;
	return WQ_OK;
no_entry:
	/* With it goes the order, of which wq_new() must not speak again. */
	*order_gone = true;
	q->engine.close(q->state);
no_engine:
	wq__lock_end(&q->lock);
	wq__free(o->allocator, q, sizeof *q);
	return rc;
}

/* What even a limiter cannot be made without. */
static int check_ground(wq_queue **out, const wq_allocator *a)
{
	if (!out)
		return wq__fail(WQ_EINVAL, "out is NULL");
	return wq__allocator_good(a) ? WQ_OK : wq__fail_allocator(a);
}

int wq_new(wq_queue **out, const wq_options *options)
{
	wq_options o = options ? *options : (wq_options){0};
	bool ours, order_gone = false;
	int rc, taken;

	if (!o.allocator)
		o.allocator = &wq__default_allocator;
	if (!o.clock)
		o.clock = &wq__clock_real;
	/* No name is no metrics. */
	if (o.name && o.name[0] == '\0')
		o.name = NULL;
	if (!o.limiter && out && wq__allocator_good(o.allocator))
		o.limiter = wq__limiter_default(o.allocator);
	taken = o.limiter ? wq__limiter_take(o.limiter) : WQ_OK;
	ours = o.limiter && taken == WQ_OK;
	rc = check_ground(out, o.allocator);
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

int wq_free(wq_queue *q)
{
	int rc;

	if (!q)
		return WQ_OK;

	wq_allocator a = q->allocator;

	if (q->forked) {
		/* Its memory stays: a thread that is not here may have been changing it. */
		(void)q->engine.close(q->state);
		return WQ_OK;
	}
	if (wq__has_pools(q))
		return wq__fail(WQ_EBUSY, "the queue has a pool");
	rc = q->registry ? wq__registry_leave(q->registry, &q->listing, q->engine.close, q->state)
	                 : q->engine.close(q->state);
	if (rc < 0)
		return rc;
	wq__fork_leave(&q->fork);
	wq__limiter_release(q->limiter);
	wq__lock_end(&q->lock);
	wq__free(&a, q, sizeof *q);
	return rc;
}

int64_t wq_now(wq_queue *q)
{
	if (!q)
		return WQ_EINVAL;
	/* The clock may be one whose lock a thread holds that is not here. */
	return wq__unlikely(q->forked) ? WQ_EFORKED : q->clock.now(q->clock.ctx);
}

int wq_clock_changed(wq_queue *q)
{
	if (!q)
		return WQ_EINVAL;
	wq__tell_pools_the_clock_changed(q);
	return q->engine.clock_changed(q->state);
}

/* ---- add ----------------------------------------------------------------- */

static inline int check_key(const wq_queue *q, const void *key, size_t len)
{
	if (wq__unlikely(!q || (!key && len > 0)))
		return WQ_EINVAL;
	return wq__unlikely(len > WQ_KEY_MAX) ? WQ_ETOOLONG : WQ_OK;
}

/* Which of them it was, for calls that have other causes, too. */
static wq__cold int refuse_key(const wq_queue *q, int rc)
{
	if (rc == WQ_EINVAL)
		wq__fail_text(q ? "key is NULL, and len is not 0" : "the queue is NULL");
	return rc;
}

static int64_t deadline_of(wq_queue *q, int64_t timeout_ns)
{
	return wq__deadline_after(wq_now(q), timeout_ns);
}

int wq_add(wq_queue *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return wq__likely(rc == WQ_OK) ? q->engine.add(q->state, key, len) : rc;
}

int wq_add_str(wq_queue *q, const char *key)
{
	/* Not strlen: a string without end must not be read to its end. */
	return key ? wq_add(q, key, strnlen(key, WQ_KEY_MAX + 1)) : WQ_EINVAL;
}

int wq_add_many(wq_queue *q, const wq_key *keys, size_t n, int *outcomes)
{
	if (!q || (!keys && n > 0) || n > INT_MAX)
		return WQ_EINVAL;
	return q->engine.add_many(q->state, keys, n, outcomes);
}

static inline bool riches_ok(const wq_queue *q, const wq_add_options *o)
{
	/* The lowest one as 0. */
	uint32_t level = (uint32_t)o->priority - (uint32_t)WQ_PRIORITY_MIN;

	if (wq__unlikely(level > (uint32_t)(WQ_PRIORITY_MAX - WQ_PRIORITY_MIN) ||
	                 (o->priority != 0 && !q->priorities)))
		return false;
	if (o->value)
		return q->values && o->value_len <= WQ_VALUE_MAX;
	return o->value_len == 0;
}

/* Is there no time, policy or reserved word? */
static inline bool is_simple(const wq_add_options *o)
{
	return ((uint64_t)o->after_ns | (uint64_t)o->at_ns | (uint64_t)o->within_ns | o->limited |
	        (uint64_t)o->policy | o->reserved0 | o->reserved[0] | o->reserved[1]) == 0;
}

static wq__cold int refuse_riches(const wq_queue *q, const wq_add_options *o)
{
	if (o->priority < WQ_PRIORITY_MIN || o->priority > WQ_PRIORITY_MAX)
		return wq__fail(WQ_EINVAL, "priority is %" PRId32 ", not %d to %d", o->priority,
		                WQ_PRIORITY_MIN, WQ_PRIORITY_MAX);
	if (o->priority != 0 && !q->priorities)
		return wq__fail(WQ_EINVAL, "a priority is given, but wq_options.priorities is 0: "
		                           "set it to 1 in wq_new()");
	if (!o->value)
		return wq__fail(WQ_EINVAL, "value is NULL, and value_len is not 0");
	if (!q->values)
		return wq__fail(WQ_EINVAL, "a value is given, but wq_options.values is 0: set it "
		                           "to 1 in wq_new()");
	return wq__fail(WQ_ETOOLONG, "the value has %zu bytes, more than %d", o->value_len,
	                WQ_VALUE_MAX);
}

static bool add_options_ok(const wq_queue *q, const wq_add_options *o)
{
	if (o->limited > 1 || o->reserved0 != 0 || !ALL_ZERO(o->reserved))
		return false;
	if (o->at_ns < 0 || (o->at_ns > 0) + (o->after_ns != 0) + (o->limited != 0) > 1)
		return false;
	if (o->within_ns != 0 &&
	    (o->within_ns < 0 || !q->within || o->limited || o->policy == WQ_REMIND))
		return false;
	return (unsigned)o->policy <= WQ_REMIND;
}

/* Which of them it was. */
static wq__cold int refuse_add_options(const wq_queue *q, const wq_add_options *o)
{
	if (o->reserved0 != 0 || !ALL_ZERO(o->reserved))
		return wq__fail(WQ_EINVAL, "a reserved word of wq_add_options is not zero");
	if (o->limited > 1)
		return wq__fail(WQ_EINVAL, "limited is %u, neither 0 nor 1", o->limited);
	if ((unsigned)o->policy > WQ_REMIND)
		return wq__fail(WQ_EINVAL, "policy is %u: there is no such policy",
		                (unsigned)o->policy);
	if (o->at_ns < 0)
		return wq__fail(WQ_EINVAL, "at_ns is negative");
	if (o->at_ns > 0 && o->after_ns != 0)
		return wq__fail(WQ_EINVAL, "after_ns and at_ns are both given");
	if (o->limited && (o->at_ns > 0 || o->after_ns != 0))
		return wq__fail(WQ_EINVAL, "%s is given, and limited is 1",
		                o->at_ns > 0 ? "at_ns" : "after_ns");
	if (o->within_ns < 0)
		return wq__fail(WQ_EINVAL, "within_ns is negative");
	if (!q->within)
		return wq__fail(WQ_EINVAL, "within_ns is given, but wq_options.within is 0: set "
		                           "it to 1 in wq_new()");
	return wq__fail(WQ_EINVAL, "within_ns is given with %s",
	                o->limited ? "limited" : "WQ_REMIND");
}

int wq_add_with(wq_queue *q, const void *key, size_t len, const wq_add_options *options)
{
	int rc = check_key(q, key, len);

	if (wq__unlikely(rc != WQ_OK))
		return refuse_key(q, rc);
	if (!options)
		return q->engine.add(q->state, key, len);
	if (!is_simple(options) && !add_options_ok(q, options))
		return refuse_add_options(q, options);
	if (wq__unlikely(!riches_ok(q, options)))
		return refuse_riches(q, options);
	if (options->at_ns == 0 && options->after_ns == 0 && !options->limited &&
	    options->priority == 0 && !options->value)
		return q->engine.add(q->state, key, len);
	return q->engine.add_with(q->state, key, len, options);
}

/* With any delay it counts as a retry, unlike an add: no way around the engine's add_with. */
int wq_add_after(wq_queue *q, const void *key, size_t len, int64_t delay_ns)
{
	wq_add_options o = {.after_ns = delay_ns ? delay_ns : -1};
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.add_with(q->state, key, len, &o) : rc;
}

int wq_add_at(wq_queue *q, const void *key, size_t len, int64_t due_ns)
{
	/* Time 0 has passed on every clock. */
	wq_add_options o = {.at_ns = due_ns, .after_ns = due_ns == 0 ? -1 : 0};
	int rc = check_key(q, key, len);

	if (wq__unlikely(rc != WQ_OK))
		return refuse_key(q, rc);
	if (wq__unlikely(due_ns < 0))
		return wq__fail(WQ_EINVAL, "due_ns is negative");
	return q->engine.add_with(q->state, key, len, &o);
}

int wq_add_limited(wq_queue *q, const void *key, size_t len)
{
	static const wq_add_options limited = {.limited = 1};
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.add_with(q->state, key, len, &limited) : rc;
}

int wq_forget(wq_queue *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.forget(q->state, NULL, key, len) : rc;
}

int64_t wq_failures(wq_queue *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.failures(q->state, NULL, key, len) : rc;
}

int wq_set_failures(wq_queue *q, const void *key, size_t len, uint32_t failures)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return refuse_key(q, rc);
	if (failures == 0)
		return wq__fail(WQ_EINVAL, "failures is 0: use wq_forget()");
	if (failures > WQ_FAILURES_MAX)
		return wq__fail(WQ_EINVAL, "failures is %u, more than WQ_FAILURES_MAX", failures);
	return q->engine.set_failures(q->state, key, len, failures);
}

int wq_reschedule(wq_queue *q, const void *key, size_t len, int64_t due_ns)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return rc;
	return due_ns >= 0 ? q->engine.reschedule(q->state, key, len, due_ns) : WQ_EINVAL;
}

int wq_cancel(wq_queue *q, const void *key, size_t len, unsigned *was)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.cancel(q->state, key, len, WQ_NOWAIT, was) : rc;
}

/* May this thread wait for the end of the key? Its handler would wait for itself. */
static int check_wait(wq_queue *q, const void *key, size_t len, int64_t deadline_ns)
{
	int rc = check_key(q, key, len);

	if (rc != WQ_OK)
		return rc;
	if (deadline_ns < 0)
		return WQ_EINVAL;
	return wq__handles(q, key, len) ? WQ_EDEADLK : WQ_OK;
}

int wq_cancel_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns, unsigned *was)
{
	int rc = check_wait(q, key, len, deadline_ns);

	return rc == WQ_OK ? q->engine.cancel(q->state, key, len, deadline_ns, was) : rc;
}

int wq_cancel_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns, unsigned *was)
{
	return q ? wq_cancel_until(q, key, len, deadline_of(q, timeout_ns), was) : WQ_EINVAL;
}

int64_t wq_next_deadline(wq_queue *q)
{
	return q ? q->engine.next_deadline(q->state) : WQ_EINVAL;
}

/* ---- get ----------------------------------------------------------------- */

static bool items_ok(const wq_item *items, size_t n)
{
	return (items || n == 0) && n <= INT_MAX;
}

static bool item_ok(const wq_item *it)
{
	return (it->reserved[0] | it->reserved[1]) == 0;
}

static bool all_ok(const wq_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!item_ok(&items[i]))
			return false;
	return true;
}

int wq_get(wq_queue *q, wq_item *item)
{
	return wq__likely(q && item) ? q->engine.get(q->state, item, WQ_NEVER) : WQ_EINVAL;
}

int wq_get_until(wq_queue *q, wq_item *item, int64_t deadline_ns)
{
	if (!q || !item || deadline_ns < WQ_NOWAIT)
		return WQ_EINVAL;
	return q->engine.get(q->state, item, deadline_ns);
}

int wq_get_for(wq_queue *q, wq_item *item, int64_t timeout_ns)
{
	return q && item ? q->engine.get(q->state, item, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_try_get(wq_queue *q, wq_item *item)
{
	return wq__likely(q && item) ? q->engine.get(q->state, item, WQ_NOWAIT) : WQ_EINVAL;
}

int wq_get_many_until(wq_queue *q, wq_item *items, size_t max, int64_t deadline_ns)
{
	if (!q || max == 0 || !items_ok(items, max) || deadline_ns < WQ_NOWAIT)
		return WQ_EINVAL;
	return q->engine.get_many(q->state, items, max, deadline_ns);
}

int wq_get_many_for(wq_queue *q, wq_item *items, size_t max, int64_t timeout_ns)
{
	return q ? wq_get_many_until(q, items, max, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_interrupt(wq_queue *q, int n)
{
	return q && n >= 0 ? q->engine.interrupt(q->state, n) : WQ_EINVAL;
}

/* ---- done ---------------------------------------------------------------- */

int wq_done(wq_queue *q, const wq_item *item)
{
	return wq__likely(q && item && item_ok(item)) ? q->engine.done(q->state, item) : WQ_EINVAL;
}

int wq_done_many(wq_queue *q, const wq_item *items, size_t n, int *outcomes)
{
	if (!q || !items_ok(items, n) || !all_ok(items, n))
		return WQ_EINVAL;
	return q->engine.done_many(q->state, items, n, outcomes);
}

int wq_next(wq_queue *q, wq_item *item)
{
	return wq_next_until(q, item, WQ_NEVER);
}

int wq_next_for(wq_queue *q, wq_item *item, int64_t timeout_ns)
{
	return q ? wq_next_until(q, item, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_next_until(wq_queue *q, wq_item *item, int64_t deadline_ns)
{
	if (wq__unlikely(!q || !item || !item_ok(item) || deadline_ns < WQ_NOWAIT))
		return WQ_EINVAL;
	return q->engine.next(q->state, item, deadline_ns);
}

int wq_next_many_until(wq_queue *q, wq_item *items, size_t n, size_t max, int64_t deadline_ns)
{
	if (!q || max == 0 || n > max || !items_ok(items, max) || deadline_ns < WQ_NOWAIT ||
	    !all_ok(items, n))
		return WQ_EINVAL;
	return q->engine.next_many(q->state, items, n, max, deadline_ns);
}

int wq_next_many_for(wq_queue *q, wq_item *items, size_t n, size_t max, int64_t timeout_ns)
{
	return q ? wq_next_many_until(q, items, n, max, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_requeue(wq_queue *q, const wq_item *item, enum wq_where where)
{
	if (!q || !item || !item_ok(item) || (where != WQ_TAIL && where != WQ_HEAD))
		return WQ_EINVAL;
	return q->engine.requeue(q->state, item, where);
}

static int settle(wq_queue *q, wq_item *item, wq_turn *t)
{
	int rc = q->engine.turn(q->state, item, t);

	if (wq__likely(t->settled != WQ_DEAD))
		return rc;
	/* It is held still, and *item alone can end that. */
	if (q->dead_letter)
		q->dead_letter(q->dead_ctx, item);
	t->steps = WQ_TURN_BURY | (t->steps & WQ_TURN_GET);
	return q->engine.turn(q->state, item, t);
}

wq_verdict wq_again_after(int64_t delay_ns)
{
	return (wq_verdict){.kind = WQ_VERDICT_AGAIN, .delay_ns = delay_ns > 0 ? delay_ns : 0};
}

wq_verdict wq_retry_after(int64_t delay_ns)
{
	return (wq_verdict){.kind = WQ_VERDICT_RETRY, .delay_ns = delay_ns > 0 ? delay_ns : 0};
}

/* Which of them it was. */
static wq__cold int refuse_verdict(const wq_queue *q, const wq_item *item, wq_verdict v)
{
	if (!q || !item)
		return wq__fail(WQ_EINVAL, "the %s is NULL", q ? "item" : "queue");
	if (!item_ok(item))
		return wq__fail(WQ_EINVAL, "a reserved word of wq_item is not zero");
	if (v.kind > WQ_VERDICT_FATAL)
		return wq__fail(WQ_EINVAL, "kind is %u: there is no such verdict", v.kind);
	if (v.delay_ns < 0)
		return wq__fail(WQ_EINVAL, "delay_ns of the verdict is negative");
	if (v.reserved0 != 0)
		return wq__fail(WQ_EINVAL, "a reserved word of wq_verdict is not zero");
	return wq__fail(WQ_EINVAL, "the deadline is negative, and not WQ_NOWAIT");
}

int wq_settle(wq_queue *q, const wq_item *item, wq_verdict verdict)
{
	wq_turn t = {.steps = WQ_TURN_SETTLE, .verdict = verdict};
	wq_item mine;

	if (wq__unlikely(!q || !item || !item_ok(item) || !wq__verdict_ok(verdict)))
		return refuse_verdict(q, item, verdict);
	mine = *item;
	settle(q, &mine, &t);
	return t.settled;
}

int wq_retry(wq_queue *q, const wq_item *item)
{
	return wq_settle(q, item, WQ_RETRY);
}

int wq__settle_next(wq_queue *q, wq_item *item, wq_turn *t)
{
	return settle(q, item, t);
}

int wq_settle_next_until(wq_queue *q, wq_item *item, wq_verdict verdict, int64_t deadline_ns,
                         int *settled)
{
	wq_turn t = {.steps = WQ_TURN_SETTLE | WQ_TURN_GET,
	             .verdict = verdict,
	             .deadline_ns = deadline_ns};
	int rc;

	if (wq__unlikely(!q || !item || !item_ok(item) || !wq__verdict_ok(verdict) ||
	                 deadline_ns < WQ_NOWAIT))
		return refuse_verdict(q, item, verdict);

	wq_item mine = *item;

	rc = settle(q, &mine, &t);
	if (rc == WQ_OK)
		*item = mine;
	if (settled && t.settled >= 0)
		*settled = t.settled;
	return rc;
}

int wq_settle_next_for(wq_queue *q, wq_item *item, wq_verdict verdict, int64_t timeout_ns,
                       int *settled)
{
	return wq_settle_next_until(q, item, verdict, q ? deadline_of(q, timeout_ns) : 0, settled);
}

int wq_forget_item(wq_queue *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine.forget(q->state, item, NULL, 0) : WQ_EINVAL;
}

int64_t wq_failures_item(wq_queue *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine.failures(q->state, item, NULL, 0) : WQ_EINVAL;
}

int wq_extend(wq_queue *q, const wq_item *item, int64_t span_ns)
{
	if (!q || !item || !item_ok(item) || span_ns <= 0)
		return WQ_EINVAL;
	return q->engine.extend(q->state, item, span_ns);
}

int wq_lost(wq_queue *q, const wq_item *item)
{
	return q && item && item_ok(item) ? q->engine.lost(q->state, item) : WQ_EINVAL;
}

/* ---- wait and stop ------------------------------------------------------- */

int wq_wait_idle_until(wq_queue *q, int64_t deadline_ns)
{
	if (!q || deadline_ns < 0)
		return WQ_EINVAL;
	return wq__handling(q) ? WQ_EDEADLK : q->engine.wait_idle(q->state, deadline_ns);
}

int wq_wait_idle_for(wq_queue *q, int64_t timeout_ns)
{
	return q ? wq_wait_idle_until(q, deadline_of(q, timeout_ns)) : WQ_EINVAL;
}

int wq_wait_key_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns)
{
	int rc = check_wait(q, key, len, deadline_ns);

	return rc == WQ_OK ? q->engine.wait_key(q->state, key, len, deadline_ns) : rc;
}

int wq_wait_key_for(wq_queue *q, const void *key, size_t len, int64_t timeout_ns)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? wq_wait_key_until(q, key, len, deadline_of(q, timeout_ns)) : rc;
}

int wq_shutdown(wq_queue *q)
{
	return q ? q->engine.shutdown(q->state) : WQ_EINVAL;
}

int wq_shutting_down(wq_queue *q)
{
	return q ? q->engine.shutting_down(q->state) : WQ_EINVAL;
}

int wq_drain_until(wq_queue *q, int64_t deadline_ns, const wq_drain_options *options,
                   wq_report *report)
{
	if (!q)
		return wq__fail(WQ_EINVAL, "the queue is NULL");
	if (deadline_ns < 0)
		return wq__fail(WQ_EINVAL, "the deadline is negative");
	if (options && (options->reserved0 != 0 || !ALL_ZERO(options->reserved)))
		return wq__fail(WQ_EINVAL, "a reserved word of wq_drain_options is not zero");
	if (options && (unsigned)options->mode > WQ_DRAIN_WAIT)
		return wq__fail(WQ_EINVAL, "mode is %u: there is no such mode",
		                (unsigned)options->mode);
	if (wq__handling(q))
		return wq__fail(WQ_EDEADLK,
		                "a handler of a pool of this queue would wait for itself");
	wq__resume_pools(q);
	return q->engine.drain(q->state, deadline_ns, options, report);
}

int wq_drain_for(wq_queue *q, int64_t timeout_ns, const wq_drain_options *options,
                 wq_report *report)
{
	return wq_drain_until(q, q ? deadline_of(q, timeout_ns) : 0, options, report);
}

/* ---- look ---------------------------------------------------------------- */

int64_t wq_len(wq_queue *q)
{
	return q ? q->engine.len(q->state) : WQ_EINVAL;
}

int wq_snapshot_take(wq_queue *q, wq_snapshot *out)
{
	int rc;

	if (!q || !out)
		return WQ_EINVAL;
	*out = (wq_snapshot){0};
	rc = q->engine.snapshot(q->state, out);
	out->slow_handlers = atomic_load_explicit(&q->slow_handlers, memory_order_relaxed);
	return rc;
}

int wq_state(wq_queue *q, const void *key, size_t len)
{
	int rc = check_key(q, key, len);

	return rc == WQ_OK ? q->engine.state(q->state, key, len) : rc;
}

int64_t wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx)
{
	return q && fn ? q->engine.walk(q->state, fn, ctx) : WQ_EINVAL;
}

int wq_fd(wq_queue *q)
{
	return q ? q->engine.fd(q->state) : WQ_EINVAL;
}
