/* See clocks.h. */
#include "clocks.h"

#include <string.h>

#include "sched.h"

static struct {
	enum clock_kind kind;
	wq_manual_clock *manual;
	wq_clock inner; /* the manual one's */
	wq_clock clock;
	void (*changed)(void);
	bool moves;
	int64_t offset_ns;                  /* JUMPS: from the simulated time */
	int64_t said_ns[SIM_MAX_TASKS + 1]; /* by task; main comes last */
} c;

static int asker(void)
{
	return sim_self() < 0 ? SIM_MAX_TASKS : sim_self();
}

static int64_t say(void *ctx)
{
	(void)ctx;
	return c.said_ns[asker()] = clock_now();
}

static int watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	(void)ctx;
	return c.inner.watch(c.inner.ctx, changed, arg, on);
}

const wq_clock *clock_open(enum clock_kind kind, void (*changed)(void))
{
	memset(&c, 0, sizeof c);
	c.kind = kind;
	c.changed = changed;
	c.offset_ns = 12345;
	c.clock.now = say;
	if (kind == STEPPED_CLOCK) {
		SIM_CHECK(wq_manual_clock_new(&c.manual, 5) == WQ_OK);
		c.inner = wq_manual_clock_clock(c.manual);
		c.clock.watch = watch;
	}
	return kind == REAL_CLOCK ? NULL : &c.clock;
}

void clock_close(void)
{
	if (c.manual && wq_manual_clock_free(c.manual) != WQ_OK)
		sim_fail("the manual clock is still watched");
	c.manual = NULL;
}

int64_t clock_now(void)
{
	switch (c.kind) {
	case STEPPED_CLOCK:
		return wq_manual_clock_now(c.manual);
	case JUMPING_CLOCK:
		return sim_now() + c.offset_ns;
	default:
		return sim_now();
	}
}

int64_t clock_said(void)
{
	return c.kind == REAL_CLOCK ? sim_call_last_ns() : c.said_ns[asker()];
}

int64_t clock_sleeps_until(int task)
{
	int64_t until = sim_sleeps_until(task);

	return until == WQ_NEVER || c.kind == REAL_CLOCK ? until : until + c.offset_ns;
}

bool clock_runs(void)
{
	return c.kind != STEPPED_CLOCK;
}

int64_t clock_span(void)
{
	return 1 + sim_random(1u << sim_random(16));
}

int64_t clock_soon(void)
{
	return clock_now() + clock_span();
}

static void mover(void *arg)
{
	const bool *over = arg;

	for (int jumps = 4; c.kind == STEPPED_CLOCK || jumps > 0; jumps--) {
		sim_pass(clock_span());
		if (*over)
			break;
		if (c.kind == STEPPED_CLOCK) {
			SIM_CHECK(wq_manual_clock_advance(c.manual, clock_span() - 1) == WQ_OK);
		} else {
			c.offset_ns += clock_span();
			c.changed();
		}
	}
	c.moves = false;
}

void clock_spawn(const bool *over)
{
	if (c.kind == REAL_CLOCK)
		return;
	c.moves = true;
	sim_spawn("clock", mover, (void *)(uintptr_t)over);
}

bool clock_is_still(void *arg)
{
	(void)arg;
	return !c.moves;
}
