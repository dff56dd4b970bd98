/*
 * Bad input: for every function, each wrong argument alone. Every case is a
 * row of the table: the call, made on a queue with "queued" in line and
 * "held" held, and the documented answer. Afterwards nothing has changed and
 * the queue goes through a full cycle. [WHOLE]
 */
#include "../support/support.h"

struct scene {
	wq_queue *q;
	wq_item held;  /* a hold that is good */
	wq_item stale; /* a hold of "held" that is over */
	wq_item other; /* a hold of another queue */
};

static char long_key[WQ_KEY_MAX + 1];

static int ignore(void *ctx, const wq_key_info *info)
{
	(void)ctx;
	(void)info;
	return 0;
}

/* An item with a reserved word that is not zero; which = 0 or 1. */
static wq_item spoilt(const struct scene *s, int which)
{
	wq_item it = s->held;

	it.reserved[which] = 1;
	return it;
}

static int64_t limited_with(const struct scene *s, wq_add_options o)
{
	return wq_add_with(s->q, "a", 1, &o);
}

static int64_t settle_with(const struct scene *s, wq_verdict verdict)
{
	return wq_settle(s->q, &s->held, verdict);
}

/* Behind the last one. */
static const wq_verdict kind_5 = {.kind = WQ_VERDICT_FATAL + 1};

struct bad {
	const char *name;
	int64_t (*call)(struct scene *s);
	int64_t answer;
};

/* BAD(name, answer, call): the call is an expression of s. */
#define BAD(name, answer, call)                                                                    \
	static int64_t bad_##name(struct scene *s)                                                 \
	{                                                                                          \
		(void)s;                                                                           \
		return (call);                                                                     \
	}
#define ROW(name, answer, call) {#name, bad_##name, answer},

#define CASES(X)                                                                                   \
	X(free_null, 0, wq_free(NULL))                                                             \
	X(free_busy, WQ_EBUSY, wq_free(s->q))                                                      \
	X(now_null, WQ_EINVAL, wq_now(NULL))                                                       \
	X(clock_changed_null, WQ_EINVAL, wq_clock_changed(NULL))                                   \
	X(add_null, WQ_EINVAL, wq_add(NULL, "a", 1))                                               \
	X(add_key_null, WQ_EINVAL, wq_add(s->q, NULL, 1))                                          \
	X(add_key_null_max, WQ_EINVAL, wq_add(s->q, NULL, WQ_KEY_MAX))                             \
	X(add_too_long, WQ_ETOOLONG, wq_add(s->q, long_key, WQ_KEY_MAX + 1))                       \
	X(add_much_too_long, WQ_ETOOLONG, wq_add(s->q, "a", SIZE_MAX))                             \
	X(add_half_of_all_memory, WQ_ETOOLONG, wq_add(s->q, "a", SIZE_MAX / 2 + 1))                \
	X(add_2_to_the_32, WQ_ETOOLONG, wq_add(s->q, "a", (size_t)UINT32_MAX + 2))                 \
	X(add_str_null, WQ_EINVAL, wq_add_str(NULL, "a"))                                          \
	X(add_str_key_null, WQ_EINVAL, wq_add_str(s->q, NULL))                                     \
	X(add_many_null, WQ_EINVAL, wq_add_many(NULL, &(wq_key){"a", 1}, 1, NULL))                 \
	X(add_many_keys_null, WQ_EINVAL, wq_add_many(s->q, NULL, 1, NULL))                         \
	X(add_many_too_many, WQ_EINVAL,                                                            \
	  wq_add_many(s->q, &(wq_key){"a", 1}, (size_t)INT32_MAX + 1, NULL))                       \
	X(add_many_absurd, WQ_EINVAL, wq_add_many(s->q, &(wq_key){"a", 1}, SIZE_MAX, NULL))        \
	X(get_null, WQ_EINVAL, wq_get(NULL, &(wq_item){0}))                                        \
	X(get_item_null, WQ_EINVAL, wq_get(s->q, NULL))                                            \
	X(get_until_null, WQ_EINVAL, wq_get_until(NULL, &(wq_item){0}, 0))                         \
	X(get_until_item_null, WQ_EINVAL, wq_get_until(s->q, NULL, 0))                             \
	X(get_until_negative, WQ_EINVAL, wq_get_until(s->q, &(wq_item){0}, -2))                    \
	X(get_for_null, WQ_EINVAL, wq_get_for(NULL, &(wq_item){0}, 0))                             \
	X(get_for_item_null, WQ_EINVAL, wq_get_for(s->q, NULL, 0))                                 \
	X(try_get_null, WQ_EINVAL, wq_try_get(NULL, &(wq_item){0}))                                \
	X(try_get_item_null, WQ_EINVAL, wq_try_get(s->q, NULL))                                    \
	X(get_many_null, WQ_EINVAL, wq_get_many_until(NULL, &(wq_item){0}, 1, WQ_NOWAIT))          \
	X(get_many_items_null, WQ_EINVAL, wq_get_many_until(s->q, NULL, 1, WQ_NOWAIT))             \
	X(get_many_none, WQ_EINVAL, wq_get_many_until(s->q, &(wq_item){0}, 0, WQ_NOWAIT))          \
	X(get_many_too_many, WQ_EINVAL,                                                            \
	  wq_get_many_until(s->q, &(wq_item){0}, (size_t)INT32_MAX + 1, WQ_NOWAIT))                \
	X(get_many_negative, WQ_EINVAL, wq_get_many_until(s->q, &(wq_item){0}, 1, -2))             \
	X(interrupt_null, WQ_EINVAL, wq_interrupt(NULL, 1))                                        \
	X(interrupt_negative, WQ_EINVAL, wq_interrupt(s->q, -1))                                   \
	X(done_null, WQ_EINVAL, wq_done(NULL, &s->held))                                           \
	X(done_item_null, WQ_EINVAL, wq_done(s->q, NULL))                                          \
	X(done_reserved0, WQ_EINVAL, wq_done(s->q, &(wq_item[]){spoilt(s, 0)}[0]))                 \
	X(done_reserved1, WQ_EINVAL, wq_done(s->q, &(wq_item[]){spoilt(s, 1)}[0]))                 \
	X(done_stale, WQ_ESTALE, wq_done(s->q, &s->stale))                                         \
	X(done_other, WQ_EOTHERQUEUE, wq_done(s->q, &s->other))                                    \
	X(done_many_null, WQ_EINVAL, wq_done_many(NULL, &s->held, 1, NULL))                        \
	X(done_many_items_null, WQ_EINVAL, wq_done_many(s->q, NULL, 1, NULL))                      \
	X(done_many_too_many, WQ_EINVAL,                                                           \
	  wq_done_many(s->q, &s->held, (size_t)INT32_MAX + 1, NULL))                               \
	X(done_many_stale, 0, wq_done_many(s->q, &s->stale, 1, NULL))                              \
	X(done_many_other, 0, wq_done_many(s->q, &s->other, 1, NULL))                              \
	X(next_null, WQ_EINVAL, wq_next(NULL, &s->held))                                           \
	X(next_item_null, WQ_EINVAL, wq_next(s->q, NULL))                                          \
	X(next_reserved, WQ_EINVAL, wq_next(s->q, &(wq_item[]){spoilt(s, 1)}[0]))                  \
	X(next_stale, WQ_ESTALE, wq_next(s->q, &s->stale))                                         \
	X(next_other, WQ_EOTHERQUEUE, wq_next(s->q, &s->other))                                    \
	X(next_until_null, WQ_EINVAL, wq_next_until(NULL, &s->held, 0))                            \
	X(next_until_item_null, WQ_EINVAL, wq_next_until(s->q, NULL, 0))                           \
	X(next_until_negative, WQ_EINVAL, wq_next_until(s->q, &s->held, -2))                       \
	X(next_many_null, WQ_EINVAL, wq_next_many_until(NULL, &s->held, 1, 1, WQ_NOWAIT))          \
	X(next_many_items_null, WQ_EINVAL, wq_next_many_until(s->q, NULL, 1, 1, WQ_NOWAIT))        \
	X(next_many_none, WQ_EINVAL, wq_next_many_until(s->q, &s->held, 0, 0, WQ_NOWAIT))          \
	X(next_many_n_above_max, WQ_EINVAL, wq_next_many_until(s->q, &s->held, 2, 1, WQ_NOWAIT))   \
	X(next_many_too_many, WQ_EINVAL,                                                           \
	  wq_next_many_until(s->q, &s->held, 1, (size_t)INT32_MAX + 1, WQ_NOWAIT))                 \
	X(next_many_negative, WQ_EINVAL, wq_next_many_until(s->q, &s->held, 1, 1, -2))             \
	X(next_many_stale, WQ_ESTALE, wq_next_many_until(s->q, &s->stale, 1, 1, WQ_NOWAIT))        \
	X(next_many_other, WQ_EOTHERQUEUE, wq_next_many_until(s->q, &s->other, 1, 1, WQ_NOWAIT))   \
	X(next_many_reserved, WQ_EINVAL,                                                           \
	  wq_next_many_until(s->q, &(wq_item[]){spoilt(s, 0)}[0], 1, 1, WQ_NOWAIT))                \
	X(requeue_null, WQ_EINVAL, wq_requeue(NULL, &s->held, WQ_TAIL))                            \
	X(requeue_item_null, WQ_EINVAL, wq_requeue(s->q, NULL, WQ_TAIL))                           \
	X(requeue_where, WQ_EINVAL, wq_requeue(s->q, &s->held, (enum wq_where)2))                  \
	X(requeue_reserved, WQ_EINVAL, wq_requeue(s->q, &(wq_item[]){spoilt(s, 0)}[0], WQ_HEAD))   \
	X(requeue_stale, WQ_ESTALE, wq_requeue(s->q, &s->stale, WQ_HEAD))                          \
	X(requeue_other, WQ_EOTHERQUEUE, wq_requeue(s->q, &s->other, WQ_TAIL))                     \
	X(extend_null, WQ_EINVAL, wq_extend(NULL, &s->held, 1))                                    \
	X(extend_item_null, WQ_EINVAL, wq_extend(s->q, NULL, 1))                                   \
	X(extend_zero, WQ_EINVAL, wq_extend(s->q, &s->held, 0))                                    \
	X(extend_negative, WQ_EINVAL, wq_extend(s->q, &s->held, INT64_MIN))                        \
	X(extend_reserved, WQ_EINVAL, wq_extend(s->q, &(wq_item[]){spoilt(s, 1)}[0], 1))           \
	X(extend_stale, WQ_ESTALE, wq_extend(s->q, &s->stale, 1))                                  \
	X(extend_other, WQ_EOTHERQUEUE, wq_extend(s->q, &s->other, 1))                             \
	X(lost_null, WQ_EINVAL, wq_lost(NULL, &s->held))                                           \
	X(lost_item_null, WQ_EINVAL, wq_lost(s->q, NULL))                                          \
	X(lost_reserved, WQ_EINVAL, wq_lost(s->q, &(wq_item[]){spoilt(s, 0)}[0]))                  \
	X(lost_stale, WQ_ESTALE, wq_lost(s->q, &s->stale))                                         \
	X(lost_other, WQ_EOTHERQUEUE, wq_lost(s->q, &s->other))                                    \
	X(add_after_null, WQ_EINVAL, wq_add_after(NULL, "a", 1, 1))                                \
	X(add_after_key_null, WQ_EINVAL, wq_add_after(s->q, NULL, 1, 1))                           \
	X(add_after_too_long, WQ_ETOOLONG, wq_add_after(s->q, long_key, WQ_KEY_MAX + 1, 1))        \
	X(add_at_null, WQ_EINVAL, wq_add_at(NULL, "a", 1, 1))                                      \
	X(add_at_key_null, WQ_EINVAL, wq_add_at(s->q, NULL, 1, 1))                                 \
	X(add_at_too_long, WQ_ETOOLONG, wq_add_at(s->q, long_key, WQ_KEY_MAX + 1, 1))              \
	X(add_at_negative, WQ_EINVAL, wq_add_at(s->q, "a", 1, -1))                                 \
	X(add_at_most_negative, WQ_EINVAL, wq_add_at(s->q, "a", 1, INT64_MIN))                     \
	X(add_limited_null, WQ_EINVAL, wq_add_limited(NULL, "a", 1))                               \
	X(add_limited_key_null, WQ_EINVAL, wq_add_limited(s->q, NULL, 1))                          \
	X(add_limited_too_long, WQ_ETOOLONG, wq_add_limited(s->q, long_key, WQ_KEY_MAX + 1))       \
	X(add_limited_much_too_long, WQ_ETOOLONG, wq_add_limited(s->q, "a", SIZE_MAX))             \
	X(add_with_limited_and_after, WQ_EINVAL,                                                   \
	  limited_with(s, (wq_add_options){.limited = 1, .after_ns = 1}))                          \
	X(add_with_limited_and_before, WQ_EINVAL,                                                  \
	  limited_with(s, (wq_add_options){.limited = 1, .after_ns = -1}))                         \
	X(add_with_limited_and_at, WQ_EINVAL,                                                      \
	  limited_with(s, (wq_add_options){.limited = 1, .at_ns = 1}))                             \
	X(add_with_limited_2, WQ_EINVAL, limited_with(s, (wq_add_options){.limited = 2}))          \
	X(add_with_limited_most, WQ_EINVAL,                                                        \
	  limited_with(s, (wq_add_options){.limited = UINT32_MAX}))                                \
	X(add_with_limited_policy, WQ_EINVAL,                                                      \
	  limited_with(s, (wq_add_options){.limited = 1, .policy = (enum wq_policy)5}))            \
	X(add_with_limited_reserved, WQ_EINVAL,                                                    \
	  limited_with(s, (wq_add_options){.limited = 1, .reserved = {0, 1}}))                     \
	X(forget_null, WQ_EINVAL, wq_forget(NULL, "a", 1))                                         \
	X(forget_key_null, WQ_EINVAL, wq_forget(s->q, NULL, 1))                                    \
	X(forget_too_long, WQ_ETOOLONG, wq_forget(s->q, "a", WQ_KEY_MAX + 1))                      \
	X(forget_item_null, WQ_EINVAL, wq_forget_item(NULL, &s->held))                             \
	X(forget_item_item_null, WQ_EINVAL, wq_forget_item(s->q, NULL))                            \
	X(forget_item_reserved, WQ_EINVAL, wq_forget_item(s->q, &(wq_item[]){spoilt(s, 1)}[0]))    \
	X(forget_item_stale, WQ_ESTALE, wq_forget_item(s->q, &s->stale))                           \
	X(forget_item_other, WQ_EOTHERQUEUE, wq_forget_item(s->q, &s->other))                      \
	X(failures_null, WQ_EINVAL, wq_failures(NULL, "a", 1))                                     \
	X(failures_key_null, WQ_EINVAL, wq_failures(s->q, NULL, 1))                                \
	X(failures_too_long, WQ_ETOOLONG, wq_failures(s->q, "a", SIZE_MAX))                        \
	X(set_failures_null, WQ_EINVAL, wq_set_failures(NULL, "a", 1, 1))                          \
	X(set_failures_key_null, WQ_EINVAL, wq_set_failures(s->q, NULL, 1, 1))                     \
	X(set_failures_too_long, WQ_ETOOLONG, wq_set_failures(s->q, "a", SIZE_MAX, 1))             \
	X(set_failures_none, WQ_EINVAL, wq_set_failures(s->q, "held", 4, 0))                       \
	X(set_failures_too_many, WQ_EINVAL, wq_set_failures(s->q, "held", 4, WQ_FAILURES_MAX + 1)) \
	X(failures_item_null, WQ_EINVAL, wq_failures_item(NULL, &s->held))                         \
	X(failures_item_item_null, WQ_EINVAL, wq_failures_item(s->q, NULL))                        \
	X(failures_item_reserved, WQ_EINVAL,                                                       \
	  wq_failures_item(s->q, &(wq_item[]){spoilt(s, 0)}[0]))                                   \
	X(failures_item_stale, WQ_ESTALE, wq_failures_item(s->q, &s->stale))                       \
	X(failures_item_other, WQ_EOTHERQUEUE, wq_failures_item(s->q, &s->other))                  \
	X(retry_null, WQ_EINVAL, wq_retry(NULL, &s->held))                                         \
	X(retry_item_null, WQ_EINVAL, wq_retry(s->q, NULL))                                        \
	X(retry_reserved, WQ_EINVAL, wq_retry(s->q, &(wq_item[]){spoilt(s, 0)}[0]))                \
	X(retry_stale, WQ_ESTALE, wq_retry(s->q, &s->stale))                                       \
	X(retry_other, WQ_EOTHERQUEUE, wq_retry(s->q, &s->other))                                  \
	X(settle_null, WQ_EINVAL, wq_settle(NULL, &s->held, WQ_DONE))                              \
	X(settle_item_null, WQ_EINVAL, wq_settle(s->q, NULL, WQ_DONE))                             \
	X(settle_reserved, WQ_EINVAL, wq_settle(s->q, &(wq_item[]){spoilt(s, 1)}[0], WQ_DROP))     \
	X(settle_stale, WQ_ESTALE, wq_settle(s->q, &s->stale, WQ_DONE))                            \
	X(settle_stale_again, WQ_ESTALE, wq_settle(s->q, &s->stale, wq_again_after(5000)))         \
	X(settle_other, WQ_EOTHERQUEUE, wq_settle(s->q, &s->other, WQ_DROP))                       \
	X(settle_next_null, WQ_EINVAL, wq_settle_next_until(NULL, &s->held, WQ_DONE, 0, NULL))     \
	X(settle_next_item_null, WQ_EINVAL, wq_settle_next_until(s->q, NULL, WQ_DONE, 0, NULL))    \
	X(settle_next_negative, WQ_EINVAL,                                                         \
	  wq_settle_next_until(s->q, &s->held, WQ_DONE, -2, NULL))                                 \
	X(settle_next_reserved, WQ_EINVAL,                                                         \
	  wq_settle_next_until(s->q, &(wq_item[]){spoilt(s, 0)}[0], WQ_DONE, 0, NULL))             \
	X(settle_next_stale, WQ_ESTALE, wq_settle_next_until(s->q, &s->stale, WQ_RETRY, 0, NULL))  \
	X(settle_next_other, WQ_EOTHERQUEUE,                                                       \
	  wq_settle_next_until(s->q, &s->other, WQ_RETRY, 0, NULL))                                \
	X(settle_kind, WQ_EINVAL, settle_with(s, (wq_verdict){.kind = WQ_VERDICT_FATAL + 1}))      \
	X(settle_kind_most, WQ_EINVAL, settle_with(s, (wq_verdict){.kind = UINT32_MAX}))           \
	X(settle_delay, WQ_EINVAL,                                                                 \
	  settle_with(s, (wq_verdict){.kind = WQ_VERDICT_AGAIN, .delay_ns = -1}))                  \
	X(settle_delay_of_retry, WQ_EINVAL,                                                        \
	  settle_with(s, (wq_verdict){.kind = WQ_VERDICT_RETRY, .delay_ns = INT64_MIN}))           \
	X(settle_verdict_reserved, WQ_EINVAL, settle_with(s, (wq_verdict){.reserved0 = 1}))        \
	X(settle_next_kind, WQ_EINVAL, wq_settle_next_until(s->q, &s->held, kind_5, 0, NULL))      \
	X(settle_next_for_null, WQ_EINVAL, wq_settle_next_for(NULL, &s->held, WQ_DONE, 0, NULL))   \
	X(settle_next_for_item_null, WQ_EINVAL, wq_settle_next_for(s->q, NULL, WQ_DONE, 0, NULL))  \
	X(settle_next_for_kind, WQ_EINVAL, wq_settle_next_for(s->q, &s->held, kind_5, 0, NULL))    \
	X(settle_next_for_stale, WQ_ESTALE, wq_settle_next_for(s->q, &s->stale, WQ_DONE, 0, NULL)) \
	X(get_many_for_null, WQ_EINVAL, wq_get_many_for(NULL, &(wq_item){0}, 1, 0))                \
	X(get_many_for_items_null, WQ_EINVAL, wq_get_many_for(s->q, NULL, 1, 0))                   \
	X(get_many_for_none, WQ_EINVAL, wq_get_many_for(s->q, &(wq_item){0}, 0, 0))                \
	X(next_for_null, WQ_EINVAL, wq_next_for(NULL, &s->held, 0))                                \
	X(next_for_item_null, WQ_EINVAL, wq_next_for(s->q, NULL, 0))                               \
	X(next_for_stale, WQ_ESTALE, wq_next_for(s->q, &s->stale, 0))                              \
	X(next_for_other, WQ_EOTHERQUEUE, wq_next_for(s->q, &s->other, 0))                         \
	X(next_many_for_null, WQ_EINVAL, wq_next_many_for(NULL, &s->held, 1, 1, 0))                \
	X(next_many_for_none, WQ_EINVAL, wq_next_many_for(s->q, &s->held, 0, 0, 0))                \
	X(next_many_for_stale, WQ_ESTALE, wq_next_many_for(s->q, &s->stale, 1, 1, 0))              \
	X(cancel_null, WQ_EINVAL, wq_cancel(NULL, "a", 1, NULL))                                   \
	X(cancel_key_null, WQ_EINVAL, wq_cancel(s->q, NULL, 1, NULL))                              \
	X(cancel_too_long, WQ_ETOOLONG, wq_cancel(s->q, "a", SIZE_MAX, NULL))                      \
	X(cancel_until_negative, WQ_EINVAL, wq_cancel_until(s->q, "held", 4, -1, NULL))            \
	X(cancel_for_null, WQ_EINVAL, wq_cancel_for(NULL, "a", 1, 0, NULL))                        \
	X(cancel_for_key_null, WQ_EINVAL, wq_cancel_for(s->q, NULL, 1, 0, NULL))                   \
	X(cancel_for_too_long, WQ_ETOOLONG, wq_cancel_for(s->q, "a", WQ_KEY_MAX + 1, 0, NULL))     \
	X(cancel_for_absent, WQ_ENOTFOUND, wq_cancel_for(s->q, "a", 1, 0, NULL))                   \
	X(wait_idle_until_null, WQ_EINVAL, wq_wait_idle_until(NULL, 0))                            \
	X(wait_idle_until_negative, WQ_EINVAL, wq_wait_idle_until(s->q, -1))                       \
	X(wait_idle_for_null, WQ_EINVAL, wq_wait_idle_for(NULL, 0))                                \
	X(wait_key_until_null, WQ_EINVAL, wq_wait_key_until(NULL, "a", 1, 0))                      \
	X(wait_key_until_key_null, WQ_EINVAL, wq_wait_key_until(s->q, NULL, 1, 0))                 \
	X(wait_key_until_too_long, WQ_ETOOLONG, wq_wait_key_until(s->q, "a", SIZE_MAX, 0))         \
	X(wait_key_until_negative, WQ_EINVAL, wq_wait_key_until(s->q, "a", 1, -1))                 \
	X(wait_key_for_null, WQ_EINVAL, wq_wait_key_for(NULL, "a", 1, 0))                          \
	X(wait_key_for_key_null, WQ_EINVAL, wq_wait_key_for(s->q, NULL, 1, 0))                     \
	X(wait_key_for_too_long, WQ_ETOOLONG, wq_wait_key_for(s->q, "a", WQ_KEY_MAX + 1, 0))       \
	X(shutdown_null, WQ_EINVAL, wq_shutdown(NULL))                                             \
	X(shutting_down_null, WQ_EINVAL, wq_shutting_down(NULL))                                   \
	X(drain_until_null, WQ_EINVAL, wq_drain_until(NULL, 0, NULL, NULL))                        \
	X(drain_until_negative, WQ_EINVAL, wq_drain_until(s->q, -1, NULL, NULL))                   \
	X(drain_until_reserved, WQ_EINVAL,                                                         \
	  wq_drain_until(s->q, 0, &(wq_drain_options){.reserved = {0, 0, 1}}, NULL))               \
	X(drain_for_null, WQ_EINVAL, wq_drain_for(NULL, 0, NULL, NULL))                            \
	X(drain_for_reserved, WQ_EINVAL,                                                           \
	  wq_drain_for(s->q, 0, &(wq_drain_options){.reserved0 = 1}, NULL))                        \
	X(drain_until_mode, WQ_EINVAL,                                                             \
	  wq_drain_until(s->q, 0, &(wq_drain_options){.mode = (enum wq_drain_mode)3}, NULL))       \
	X(len_null, WQ_EINVAL, wq_len(NULL))                                                       \
	X(state_null, WQ_EINVAL, wq_state(NULL, "a", 1))                                           \
	X(state_key_null, WQ_EINVAL, wq_state(s->q, NULL, 1))                                      \
	X(state_too_long, WQ_ETOOLONG, wq_state(s->q, "a", WQ_KEY_MAX + 1))                        \
	X(state_much_too_long, WQ_ETOOLONG, wq_state(s->q, "a", SIZE_MAX))                         \
	X(walk_null, WQ_EINVAL, wq_walk(NULL, ignore, NULL))                                       \
	X(walk_fn_null, WQ_EINVAL, wq_walk(s->q, NULL, NULL))                                      \
	X(fd_null, WQ_EINVAL, wq_fd(NULL))

CASES(BAD)

static const struct bad cases[] = {CASES(ROW)};

static void check_bad(void **state)
{
	const struct bad *b = *state;
	struct fixture f, g;
	struct scene s;

	fixture_open(&f, NULL);
	fixture_open(&g, NULL);
	s.q = f.q;
	wq_add_str(f.q, "held");
	wq_add_str(f.q, "queued");
	get_is(f.q, &s.stale, "held");
	IS(wq_requeue(f.q, &s.stale, WQ_HEAD), WQ_QUEUED);
	get_is(f.q, &s.held, "held");
	wq_add_str(g.q, "held");
	get_is(g.q, &s.other, "held");

	IS(b->call(&s), b->answer);

	IS(wq_shutting_down(f.q), 0);
	IS(wq_failures(f.q, "held", 4), 0);
	IS(wq_failures(f.q, "a", 1), 0);
	IS(state_of(f.q, "held"), WQ_STATE_RUNNING);
	IS(state_of(f.q, "queued"), WQ_STATE_QUEUED);
	check_whole(f.q, 1, 1);
	check_whole(g.q, 0, 1);
	IS(wq_done(f.q, &s.held), WQ_OK);
	IS(wq_done(g.q, &s.other), WQ_OK);
	take_is(f.q, "queued", WQ_OK);
	IS(wq_interrupt(f.q, 0), 0);
	check_whole(f.q, 0, 0);
	fixture_close(&f, 0);
	fixture_close(&g, 0);
}

/* [STALE] Items that no Get ever filled. */
static void made_up_items(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item held, it;

	wq_add_str(q, "held");
	wq_add_str(q, "queued");
	get_is(q, &held, "held");

	memset(&it, 0, sizeof it);
	assert_true(wq_done(q, &it) < 0);
	it = held; /* the right place, the wrong hold */
	it.token++;
	IS(wq_done(q, &it), WQ_ESTALE);
	it.token -= 2;
	IS(wq_done(q, &it), WQ_ESTALE);
	it = held; /* wild places: detected without being touched */
	for (int bit = 0; bit < 64; bit++) {
		it.slot = held.slot ^ UINT64_C(1) << bit;
		assert_true(wq_done(q, &it) == WQ_ESTALE || wq_done(q, &it) == WQ_EOTHERQUEUE ||
		            wq_done(q, &it) == WQ_EINVAL);
	}
	it.slot = UINT64_MAX;
	assert_true(wq_done(q, &it) < 0);
	IS(state_of(q, "held"), WQ_STATE_RUNNING);
	check_whole(q, 1, 1);
	IS(wq_done(q, &held), WQ_OK);
}

/*
 * [STALE] Slot 0 is what an empty place of the table looks like: an item with the
 * right owner and slot 0 is nobody's, whatever the memory of keys that were
 * there before says.
 */
static void slot_0_is_stale(wq_queue *q, const void *owner, int64_t queued, int64_t running)
{
	static const uint64_t tokens[] = {0, 1, UINT64_MAX};

	for (size_t i = 0; i < LENGTH(tokens); i++) {
		wq_item it = {.owner = owner, .token = tokens[i]}, copy = it;
		int outcome = 0;

		IS(wq_done(q, &it), WQ_ESTALE);
		IS(wq_done_many(q, &it, 1, &outcome), 0);
		IS(outcome, WQ_ESTALE);
		IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_ESTALE);
		IS(wq_next_many_until(q, &it, 1, 1, WQ_NOWAIT), WQ_ESTALE);
		IS(wq_requeue(q, &it, WQ_HEAD), WQ_ESTALE);
		IS(wq_extend(q, &it, 1), WQ_ESTALE);
		IS(wq_lost(q, &it), WQ_ESTALE);
		IS(wq_retry(q, &it), WQ_ESTALE);
		IS(wq_settle(q, &it, wq_again_after(5000)), WQ_ESTALE);
		IS(wq_settle_next_until(q, &it, WQ_DONE, WQ_NOWAIT, NULL), WQ_ESTALE);
		IS(wq_forget_item(q, &it), WQ_ESTALE);
		IS(wq_failures_item(q, &it), WQ_ESTALE);
		assert_memory_equal(&it, &copy, sizeof it);
	}
	check_whole(q, queued, running);
}

static void made_up_slot_0(void **state)
{
	enum { BURST = 150000, KEPT = 100 };
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item held, it;

	wq_add_str(q, "held");
	wq_add_str(q, "queued");
	get_is(q, &held, "held");
	slot_0_is_stale(q, held.owner, 1, 1);
	take_is(q, "queued", WQ_OK);
	IS(wq_done(q, &held), WQ_OK);
	slot_0_is_stale(q, held.owner, 0, 0);

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < BURST; i++)
			IS(wq_add(q, &i, sizeof i), WQ_QUEUED);
		for (uint32_t i = 0; i < BURST - KEPT; i++) {
			IS(wq_try_get(q, &it), WQ_OK);
			IS(wq_done(q, &it), WQ_OK);
		}
		slot_0_is_stale(q, held.owner, KEPT, 0);
		for (uint32_t i = 0; i < KEPT; i++) {
			IS(wq_try_get(q, &it), WQ_OK);
			IS(wq_done(q, &it), WQ_OK);
		}
		slot_0_is_stale(q, held.owner, 0, 0);
	}
}

/* A queue that is gone is another queue, also if a new one has its address. */
static void item_of_a_queue_that_is_gone(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		wq_queue *a, *b;
		wq_item it;

		IS(wq_new(&a, NULL), WQ_OK);
		wq_add_str(a, "k");
		get_is(a, &it, "k");
		IS(wq_done(a, &it), WQ_OK);
		IS(wq_free(a), 0);
		IS(wq_new(&b, NULL), WQ_OK);
		wq_add_str(b, "k");

		int rc = wq_done(b, &it);

		assert_true(rc == WQ_ESTALE || rc == WQ_EOTHERQUEUE);
		check_whole(b, 1, 0);
		IS(wq_free(b), 1);
	}
}

static void use_after_shutdown(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_item it, none;

	wq_add_str(q, "held");
	get_is(q, &it, "held");
	wq_shutdown(q);
	IS(wq_add_str(q, "a"), WQ_ESHUTDOWN);
	IS(wq_add(q, NULL, 0), WQ_ESHUTDOWN);
	IS(wq_add_limited(q, "a", 1), WQ_ESHUTDOWN);
	IS(wq_forget(q, "a", 1), WQ_OK);
	IS(wq_failures(q, "a", 1), 0);
	IS(wq_add(q, NULL, 1), WQ_EINVAL); /* still first */
	IS(wq_get(q, &none), WQ_ESHUTDOWN);
	IS(wq_get_for(q, &none, WQ_NEVER), WQ_ESHUTDOWN);
	IS(wq_try_get(q, &none), WQ_ESHUTDOWN);
	IS(wq_get_many_until(q, &none, 1, WQ_NEVER), WQ_ESHUTDOWN);
	IS(wq_len(q), 0);
	IS(state_of(q, "held"), WQ_STATE_RUNNING);
	IS(count_keys(q), 1);
	IS(wq_extend(q, &it, 1), WQ_OK);
	IS(wq_lost(q, &it), 0);
	IS(wq_wait_idle_until(q, 0), WQ_ETIMEDOUT);
	IS(wq_shutdown(q), WQ_OK);
	assert_true(wq_fd(q) >= 0);
	IS(wq_next(q, &it), WQ_ESHUTDOWN);
	IS(wq_wait_idle_until(q, 0), WQ_OK);
	IS(wq_wait_key_until(q, "held", 4, 0), WQ_OK);
	IS(count_keys(q), 0);
}

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)ctx;
	(void)key;
	(void)len;
	(void)now_ns;
	return 0;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	return 0;
}

static void own_free(void *ctx)
{
	++*(int *)ctx;
}

static wq_limiter *own_limiter(int *freed)
{
	return wq_limiter_custom(&(wq_limiter_functions){.when = own_when,
	                                                 .forget = own_forget,
	                                                 .failures = custom_failures,
	                                                 .free = own_free,
	                                                 .ctx = freed});
}

/* [GIVEN] A limiter that a queue was given is its own, whatever becomes of the queue. */
static void limits_of_a_new_queue(void **state)
{
	wq_limiter *l = wq_limiter_exponential(1, 1);
	wq_queue *q = NULL, *none = NULL;
	int freed = 0;

	(void)state;
	IS(wq_new(&q, &(wq_options){.limiter = l}), WQ_OK);
	IS(wq_new(&none, &(wq_options){.limiter = l}), WQ_EBUSY);
	IS(wq_limiter_when(l, "a", 1, 0), WQ_EBUSY);
	IS(wq_limiter_free(l), WQ_EBUSY);
	IS(wq_add_limited(q, "a", 1), WQ_DELAYED); /* it is as it was */
	IS(wq_free(q), 1);
	IS(wq_new(&none, &(wq_options){.limiter = wq_limiter_exponential(0, 1)}), WQ_EINVAL);
	IS(wq_new(&none, &(wq_options){.limiter = wq_limiter_max_wait(NULL, 1)}), WQ_ENOMEM);

	IS(wq_new(&none, &(wq_options){.limiter = own_limiter(&freed), .within = 2}), WQ_EINVAL);
	IS(freed, 1);
	IS(wq_new(&none, &(wq_options){.limiter = own_limiter(&freed), .reserved = {0, 1}}),
	   WQ_EINVAL);
	IS(freed, 2);
	IS(wq_new(NULL, &(wq_options){.limiter = own_limiter(&freed)}), WQ_EINVAL);
	IS(freed, 3);
	IS(wq_new(&none,
	          &(wq_options){.limiter = own_limiter(&freed), .allocator = &(wq_allocator){0}}),
	   WQ_EINVAL);
	IS(freed, 4);
	assert_null(none);
	IS(wq_new(&q, &(wq_options){.limiter = own_limiter(&freed), .max_attempts = 1}), WQ_OK);
	IS(freed, 4);
	IS(wq_free(q), 0);
	IS(freed, 5);
}

int main(void)
{
	struct CMUnitTest tests[LENGTH(cases) + 5];
	size_t n = 0;

	for (; n < LENGTH(cases); n++)
		tests[n] = (struct CMUnitTest){
		    .name = cases[n].name,
		    .test_func = check_bad,
		    .initial_state = (void *)(uintptr_t)&cases[n],
		};
	tests[n++] = (struct CMUnitTest)WITH_FIXTURE(made_up_items);
	tests[n++] = (struct CMUnitTest)WITH_FIXTURE(made_up_slot_0);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(item_of_a_queue_that_is_gone);
	tests[n++] = (struct CMUnitTest)WITH_FIXTURE(use_after_shutdown);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(limits_of_a_new_queue);
	return _cmocka_run_group_tests("bad input", tests, n, NULL, NULL);
}
