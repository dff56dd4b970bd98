/* See ticks.h. */
#include "time/ticks.h"

#include <stdbool.h>

#include "base/sync.h"

#if defined(__x86_64__) && !defined(WQ_SIM)

enum {
	SPAN_NS = 1000000,
	LEARN_NS = 10000000,       /* a look is off by 20 ns at most: then 1 ms is by 2 */
	LEARN_MAX_NS = 1000000000, /* the machine may have slept */
	/*
	 * A look between two readings takes about 100 ticks. One that was interrupted takes
	 * longer; so does every one where the kernel itself does not trust the counter and
	 * has to be called.
	 */
	LOOK_TICKS = 400,
	STRAY = 1024, /* a tick's length changes by less than this part of it */
};

static bool strays(uint64_t scale, uint64_t before)
{
	uint64_t by = scale > before ? scale - before : before - scale;

	return before > 0 && by > before / STRAY;
}

static void learn(struct wq__ticks *t)
{
	int64_t took = t->at_ns - t->since_ns;

	if (t->since != 0 && took < LEARN_NS)
		return;
	if (t->since != 0 && took < LEARN_MAX_NS && t->at > t->since) {
		uint64_t scale = ((uint64_t)took << 32) / (t->at - t->since);

		t->scale = strays(scale, t->scale) ? 0 : scale;
		t->span = t->scale ? ((uint64_t)SPAN_NS << 32) / t->scale : 0;
	}
	t->since = t->at;
	t->since_ns = t->at_ns;
}

int64_t wq__ticks_look(struct wq__ticks *t)
{
	uint64_t before = wq__ticks_read();
	int64_t now = wq__clock_now();
	uint64_t took = wq__ticks_read() - before;

	if (took < LOOK_TICKS) {
		t->at = before + took / 2;
		t->at_ns = now;
		learn(t);
	}
	return now;
}

#else

int64_t wq__ticks_look(struct wq__ticks *t)
{
	(void)t;
	return wq__clock_now();
}

#endif
