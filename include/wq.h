/*
 * wq: a deduplicating work queue of keys.
 *
 * Threads add a key any number of times; one worker at a time gets it. An add of a queued key
 * merges with it. An add of a key that a worker holds queues it once more when the hold ends.
 *
 *     wq_queue *q;
 *     if (wq_new(&q, NULL) < 0)
 *         return 1;
 *
 *     wq_add_str(q, "default/pod-17");                // any thread
 *
 *     wq_item it;                                     // a worker
 *     while (wq_get(q, &it) == WQ_OK) {
 *         reconcile(it.key, it.len);
 *         wq_done(q, &it);
 *     }                                               // shut down and empty
 *
 *     if (wq_drain_for(q, 10 * WQ_SECOND, NULL, NULL) != WQ_OK)    // refuses adds, waits
 *         fprintf(stderr, "some keys are unfinished\n");
 *     ...                                             // join the workers
 *     wq_free(q);
 *
 * This header includes all others except wq/http.h; each of them compiles alone. Start with
 * wq/queue.h: it declares the ten calls that most programs need. wq/pool.h runs workers for you.
 */
#ifndef WQ_H
#define WQ_H

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/delay.h>
#include <wq/delayqueue.h>
#include <wq/engine.h>
#include <wq/eventloop.h>
#include <wq/get.h>
#include <wq/group.h>
#include <wq/heap.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/many.h>
#include <wq/metrics.h>
#include <wq/order.h>
#include <wq/parallel.h>
#include <wq/pool.h>
#include <wq/priority.h>
#include <wq/queue.h>
#include <wq/retry.h>
#include <wq/snapshot.h>
#include <wq/status.h>
#include <wq/timer.h>
#include <wq/types.h>
#include <wq/value.h>
#include <wq/version.h>
#include <wq/wait.h>
#include <wq/wheel.h>

#endif
