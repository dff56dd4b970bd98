/*
 * For how long a thread may have had a lock that others use, at most, when only the calls around
 * it can be seen. The work is cut into pieces, each of which is charged with the thread's own time:
 * who waits for a lock does not have it. But a thread that the machine stopped in the middle of a
 * piece may have had it all the while: that piece is charged by the clock.
 */
#ifndef WQ_HTTP_BILL_H
#define WQ_HTTP_BILL_H

#include <stdint.h>

struct wq__bill {
	int64_t sum_ns;
	int64_t clock_ns; /* when the piece began */
	int64_t own_ns;
	long stops; /* how often the thread had been stopped then, other than to wait */
};

/* The first piece begins. */
void wq__bill_open(struct wq__bill *b);
/* A piece ends, the next begins, at a moment without the lock. Costs about a microsecond. */
void wq__bill_cut(struct wq__bill *b);

#endif
