/* What the runner (timer.c) needs of the wheel beyond the public calls. */
#ifndef WQ_TIME_WHEEL_H
#define WQ_TIME_WHEEL_H

#include <stdbool.h>
#include <wq/wheel.h>

/* A callback that is due: whoever pops it makes the call. */
struct wq__due {
	wq_timer_fn fn;
	void *ctx;
	wq_timer_event event;
};

/* The next callback that is due at now_ns; false: none is, or the wheel is stopped. */
bool wq__wheel_pop(wq_wheel *w, int64_t now_ns, struct wq__due *out);

/* As wq_wheel_every(), the first time at first_ns. */
int wq__wheel_every_at(wq_wheel *w, int64_t first_ns, int64_t period_ns, wq_timer_fn fn, void *ctx,
                       wq_timer_id *id);

/* Says that there is no wheel, and answers WQ_EINVAL. */
__attribute__((cold)) int wq__wheel_is_null(void);

#endif
