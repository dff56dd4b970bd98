/* wq_cancel() as tests want it: the state bits that it found, or an error. */
#ifndef TESTS_SUPPORT_CANCEL_H
#define TESTS_SUPPORT_CANCEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* as in support.h, whichever of both comes first */
#endif

#include <wq/queue.h>

static inline int cancel_key(wq_queue *q, const void *key, size_t len)
{
	unsigned was = 0;
	int rc = wq_cancel(q, key, len, &was);

	return rc == WQ_CANCELLED ? (int)was : rc;
}

static inline int cancel_key_until(wq_queue *q, const void *key, size_t len, int64_t deadline_ns)
{
	unsigned was = 0;
	int rc = wq_cancel_until(q, key, len, deadline_ns, &was);

	return rc == WQ_CANCELLED ? (int)was : rc;
}

#endif
