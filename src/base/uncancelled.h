/*
 * No call of the library is a cancellation point: a thread that is cancelled in the midst of one
 * would leave locks held and work half done. Some functions of libc are cancellation points (read,
 * write, close, getrandom, pthread_join ...); what calls them does it between these two.
 */
#ifndef WQ_BASE_UNCANCELLED_H
#define WQ_BASE_UNCANCELLED_H

#include <pthread.h>
#include <stddef.h>

/* This thread is not cancelled from here on. Returns what was so before. */
static inline int wq__uncancelled_begin(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void wq__uncancelled_end(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
