/*
 * wq: a keyed work queue.
 *
 * A key is added any number of times and handed to one worker at a time.
 * What is added while it is queued merges; what is added while a worker
 * holds it comes back once, after that worker is done.
 *
 *     wq_queue *q;
 *     if (wq_new(&q, NULL) < 0) ...
 *
 *     wq_add_str(q, "default/pod-17");            // any thread
 *
 *     wq_item it;                                 // a worker
 *     while (wq_get(q, &it) == WQ_OK) {
 *         reconcile(it.key, it.len);
 *         wq_done(q, &it);
 *     }                                           // shut down and empty
 *
 *     wq_drain_for(q, 10 * WQ_SECOND, NULL, NULL);      // stop taking, finish, stop
 *     ...                                         // join the workers
 *     wq_free(q);
 *
 * This header includes all others; each of them compiles alone.
 */
#ifndef WQ_H
#define WQ_H

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/delayqueue.h>
#include <wq/engine.h>
#include <wq/heap.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/order.h>
#include <wq/parallel.h>
#include <wq/pool.h>
#include <wq/queue.h>
#include <wq/snapshot.h>
#include <wq/status.h>
#include <wq/timer.h>
#include <wq/version.h>
#include <wq/wheel.h>

#endif
