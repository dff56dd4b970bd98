/*
 * Where C and Go meet. libwq calls back with a pointer of the caller's; here it
 * carries the number of a Go handle, which is no pointer, so Go never sees it as one.
 */
#ifndef SEAM_H
#define SEAM_H

#include <stdint.h>
#include <wq.h>

/* What of a queue is Go's. */
enum seam_parts { SEAM_CLOCK = 1, SEAM_ORDER = 2, SEAM_METRICS = 4 };

int seam_new(wq_queue **out, uintptr_t handle, unsigned parts, wq_limiter *limiter);

int seam_add_after(wq_queue *q, uint64_t key, int64_t delay_ns);
int seam_add_limited(wq_queue *q, uint64_t key);

/* A limiter that asks Go; the handle is let go of with it. */
wq_limiter *seam_limiter(uintptr_t handle);

int64_t seam_parallel(size_t pieces, uintptr_t handle, uint32_t workers, size_t chunk);

#endif
