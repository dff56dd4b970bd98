/*
 * Metrics: a registry of queues, and its metrics as Prometheus reads them. Names, types and
 * buckets are those of Kubernetes, so its dashboards and alerts work unchanged; further metrics
 * are named wq_... .
 *
 *     wq_registry *r;
 *     if (wq_registry_new(&r) < 0 || wq_new(&q, &(wq_options){.name = "pods", .registry = r}) < 0)
 *         return 1;
 *     ...
 *     wq_metrics_write(r, WQ_PROMETHEUS, write, file);
 *     ...
 *     wq_free(q);               // removes its metrics
 *     wq_registry_free(r);
 *
 *   name                                        | type      | meaning
 *   --------------------------------------------+-----------+----------------------------------
 *   workqueue_depth                             | gauge     | keys queued or dirty
 *   workqueue_adds_total                        | counter   | adds that did not merge
 *   workqueue_queue_duration_seconds            | histogram | from add to get
 *   workqueue_work_duration_seconds             | histogram | from get to done
 *   workqueue_unfinished_work_seconds           | gauge     | sum of the ages of held keys
 *   workqueue_longest_running_processor_seconds | gauge     | the oldest of them
 *   workqueue_retries_total                     | counter   | delayed and limited adds, retries
 *   wq_waiting                                  | gauge     | keys that wait for their due time
 *   wq_running                                  | gauge     | keys that are held
 *   wq_left                                     | gauge     | keys left over after a shutdown
 *   wq_oldest_queued_seconds                    | gauge     | age of the head of the queue
 *   wq_delay_lateness_seconds                   | histogram | from due time to queued
 *   wq_merged_total                             | counter   | adds that merged
 *   wq_refused_total                            | counter   | adds that were refused
 *   wq_marked_total                             | counter   | adds of held keys
 *   wq_dropped_total                            | counter   | keys dropped: WQ_DROP
 *   wq_dead_total                               | counter   | keys that died
 *   wq_stale_total                              | counter   | stale items passed to done ...
 *   wq_slow_handlers_total                      | counter   | slow handlers
 *
 * All have the label `name`. Gauges that change with time are computed when they are read. With a
 * custom order the head is not known: wq_oldest_queued_seconds is present only while no key is
 * queued.
 */
#ifndef WQ_METRICS_H
#define WQ_METRICS_H

#include <stddef.h>

#include <wq/queue.h>
#include <wq/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make a registry.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if out is NULL; WQ_ENOMEM.
 */
WQ_API WQ_MUST_CHECK int wq_registry_new(wq_registry **out);

/*
 * Free a registry. NULL is allowed.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EBUSY if a queue is in it, or wq_registry_hold() holds it.
 */
WQ_API int wq_registry_free(wq_registry *r);

/*
 * Hold a registry, or release it. A registry that is held cannot be freed. It is for code that
 * shows a registry to others, such as a server (wq/http.h). Each hold needs a release.
 *
 * Returns WQ_OK.
 *
 * Errors: WQ_EINVAL if r is NULL; wq_registry_release() also WQ_ESTALE: it is not held.
 */
WQ_API int wq_registry_hold(wq_registry *r);
WQ_API int wq_registry_release(wq_registry *r);

/*
 * Count the queues of a registry.
 *
 * Returns the number of queues.
 *
 * Errors: WQ_EINVAL if r is NULL.
 */
WQ_API wq_number wq_registry_size(wq_registry *r);

/* Called for a queue of a registry. Not 0: stops. */
typedef int (*wq_registry_fn)(void *ctx, const char *name, wq_queue *q);

/*
 * Show every queue of a registry to fn, in the order of their names. fn runs under the registry's
 * lock, so no queue can leave it meanwhile. It may use the queue, but not wq_new(), wq_free() or
 * the registry.
 *
 * Returns WQ_OK, or what fn returned if that is not 0.
 *
 * Errors: WQ_EINVAL if r or fn is NULL.
 */
WQ_API int wq_registry_each(wq_registry *r, wq_registry_fn fn, void *ctx);

/*
 * Show one queue of a registry to fn, by its name. fn runs outside the registry's lock: it may
 * take long, such as a walk. Other queues come and go meanwhile; wq_free() of this one waits until
 * fn has returned. fn may use the registry, but not wq_free() of this queue.
 *
 * Returns what fn returned.
 *
 * Errors: WQ_EINVAL if an argument is NULL; WQ_ENOTFOUND if there is no such queue, or it is being
 * freed.
 */
WQ_API int wq_registry_visit(wq_registry *r, const char *name, wq_registry_fn fn, void *ctx);

enum wq_metrics_format {
	WQ_PROMETHEUS = 0, /* text format 0.0.4 */
	WQ_OPENMETRICS = 1 /* OpenMetrics 1.0, with # EOF */
};

/*
 * Get the media type of a format, for Content-Type.
 *
 * Returns a static string.
 *
 * Threads: any. Blocks: no.
 */
WQ_API const char *wq_metrics_type(enum wq_metrics_format format);

/*
 * Write the metrics of all queues of a registry. The call takes each queue's lock once, for a
 * short time. The text is made, and write is called, outside all locks. A queue of which
 * wq_snapshot_take() fails, because its engine cannot do it or fails, is left out.
 *
 * Returns WQ_OK, or what write returned if that is not 0.
 *
 * Errors: WQ_EINVAL if r or write is NULL, or the format is unknown; WQ_ENOMEM.
 */
WQ_API int wq_metrics_write(wq_registry *r, enum wq_metrics_format format, wq_write_fn write,
                            void *ctx);

/*
 * The metrics that a provider receives. A provider connects a queue (wq_options.provider) to
 * another metrics library, as client-go's MetricsProvider. Its functions run under the queue's
 * lock: they may not block or call the queue. Any of them may be NULL. The struct is copied.
 *
 * Everything else, including the two gauges of ages, is in wq_snapshot_take(): read it on demand.
 */
enum wq_metric {
	WQ_METRIC_DEPTH = 0,          /* add: +1, -1; wq_free() of n queued keys: -n */
	WQ_METRIC_ADDS = 1,           /* add: +1 */
	WQ_METRIC_RETRIES = 2,        /* add: +1 */
	WQ_METRIC_QUEUE_DURATION = 3, /* observe */
	WQ_METRIC_WORK_DURATION = 4   /* observe */
};

typedef struct wq_metrics_provider {
	void (*add)(void *ctx, enum wq_metric metric, int64_t delta);
	void (*observe)(void *ctx, enum wq_metric metric, int64_t ns);
	void *ctx;
	uint64_t reserved[4]; /* must be zero */
} wq_metrics_provider;

#ifdef __cplusplus
}
#endif
#endif
