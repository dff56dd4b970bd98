/* See bill.h. */
#define _GNU_SOURCE
#include "http/bill.h"

#include <sys/resource.h>
#include <time.h>
#include <wq/clock.h>

static int64_t own_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

static long stops(void)
{
	struct rusage u = {0};

	(void)getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw;
}

static struct wq__bill reading(int64_t sum_ns)
{
	return (struct wq__bill){sum_ns, wq_clock_monotonic(), own_time(), stops()};
}

void wq__bill_open(struct wq__bill *b)
{
	*b = reading(0);
}

void wq__bill_cut(struct wq__bill *b)
{
	struct wq__bill then = *b;

	*b = reading(then.sum_ns);
	b->sum_ns += b->stops == then.stops ? b->own_ns - then.own_ns : b->clock_ns - then.clock_ns;
}
