/*
 * What the tests of the wheel share: one wheel on a counting allocator, a
 * callback that notes its firing, and a check of what an advance fires.
 */
#ifndef WQ_TESTS_WHEEL_RIG_H
#define WQ_TESTS_WHEEL_RIG_H

#include "../support/support.h"

#include <wq/wheel.h>

enum { FIRED_MAX = 4096 };

struct fired {
	int tag;
	wq_timer_event event;
};

extern struct fired fired[FIRED_MAX];
extern size_t nfired;
extern wq_wheel *w;
extern struct memory mem;

/* With these options, or NULL; the allocator is mem. */
void wheel_open(int64_t now_ns, const wq_wheel_options *options);
/* Frees the wheel, which has so many timers left. */
void wheel_close(int64_t left);

/* The context of a timer is its tag. */
void *tag(int t);
void note(void *ctx, const wq_timer_event *event);

/* A timer that is noted. */
wq_timer_id add(int64_t due_ns, int t);

/* Advances, and these and no others fire, in this order; a tag of 0 ends them. */
void advance_fires(int64_t now_ns, const int *tags);

#define FIRES(now_ns, ...) advance_fires((now_ns), (const int[]){__VA_ARGS__, 0})
#define FIRES_NOTHING(now_ns) advance_fires((now_ns), (const int[]){0})

/* Every accepted size. */
extern const size_t wheel_sizes[7];

#endif
