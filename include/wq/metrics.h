/*
 * Metrics: a registry of queues, and what Prometheus reads of them. The names,
 * types and buckets are those of Kubernetes, so that its dashboards and alerts
 * work unchanged; what goes beyond them is called wq_... .
 *
 *     wq_registry *r;
 *     wq_registry_new(&r);
 *     wq_new(&q, &(wq_options){.name = "pods", .registry = r});
 *     ...
 *     wq_metrics_write(r, WQ_PROMETHEUS, write, file);
 *     ...
 *     wq_free(q);               // its series are gone
 *     wq_registry_free(r);
 *
 *   name                                          | type      | what
 *   ----------------------------------------------+-----------+------------------------------------
 *   workqueue_depth                               | gauge     | keys queued, or held and to come back
 *   workqueue_adds_total                          | counter   | adds that were not merged
 *   workqueue_queue_duration_seconds              | histogram | from add to get
 *   workqueue_work_duration_seconds               | histogram | from get to done
 *   workqueue_unfinished_work_seconds             | gauge     | sum of the ages of held keys
 *   workqueue_longest_running_processor_seconds   | gauge     | the oldest of them
 *   workqueue_retries_total                       | counter   | delayed and limited adds, retries
 *   wq_waiting                                    | gauge     | keys that wait for their time
 *   wq_running                                    | gauge     | keys that are held
 *   wq_left                                       | gauge     | waiting keys that a shutdown left over
 *   wq_oldest_queued_seconds                      | gauge     | how long the head of the line has been there
 *   wq_delay_lateness_seconds                     | histogram | from the due time to the line
 *   wq_merged_total                               | counter   | adds that were merged
 *   wq_refused_total                              | counter   | adds that were refused
 *   wq_marked_total                             | counter   | adds of keys that were held
 *   wq_dropped_total                             | counter   | keys given up by their handlers: WQ_DROP
 *   wq_dead_total                                 | counter   | keys that failed for good
 *   wq_stale_total                                | counter   | items handed back that were not held
 *   wq_slow_handlers_total                           | counter   | handlers that took longer than allowed
 *
 * All carry the label `name`. Gauges that change with time are computed when they
 * are read; no thread ticks. With an order of one's own nobody knows the head of the
 * line: wq_oldest_queued_seconds is there only while the line is empty.
 */
#ifndef WQ_METRICS_H
#define WQ_METRICS_H

#include <stddef.h>

#include <wq/queue.h>
#include <wq/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns WQ_OK, WQ_EINVAL (NULL) or WQ_ENOMEM. */
WQ_API int wq_registry_new(wq_registry **out);

/* Returns WQ_OK (also for NULL), or WQ_EBUSY: a queue is in it, or somebody holds it. */
WQ_API int wq_registry_free(wq_registry *r);

/*
 * For whoever shows a registry to others, as a server does (wq/http.h): while it is held it cannot be freed.
 * Each hold ends with a release. Both return WQ_OK or WQ_EINVAL (NULL), wq_registry_release() also
 * WQ_ESTALE: nobody holds it.
 */
WQ_API int wq_registry_hold(wq_registry *r);
WQ_API int wq_registry_release(wq_registry *r);

/* How many queues are in it; WQ_EINVAL for NULL. */
WQ_API wq_value wq_registry_size(wq_registry *r);

/*
 * Called for a queue of the registry, under the registry's lock: no queue can leave it
 * meanwhile. It may use the queue, but not wq_new(), wq_free() or the registry.
 * 0 goes on; any other value stops.
 */
typedef int (*wq_registry_fn)(void *ctx, const char *name, wq_queue *q);

/* Shows every queue, in the order of their names. WQ_OK, WQ_EINVAL, or what fn answered. */
WQ_API int wq_registry_each(wq_registry *r, wq_registry_fn fn, void *ctx);

/*
 * For what takes long, a walk say: calls fn for the queue of that name, outside the registry's
 * lock. Other queues come and go meanwhile; wq_free() of this one waits until fn has returned.
 * fn may use the registry, but not wq_free() of this queue.
 *
 * Returns what fn answered, WQ_EINVAL (NULL), or WQ_ENOTFOUND: there is none, or it is being freed.
 */
WQ_API int wq_registry_visit(wq_registry *r, const char *name, wq_registry_fn fn, void *ctx);

enum wq_metrics_format {
	WQ_PROMETHEUS = 0, /* text format 0.0.4 */
	WQ_OPENMETRICS = 1 /* OpenMetrics 1.0, with # EOF */
};

/* The media type of a format, for Content-Type. */
WQ_API const char *wq_metrics_type(enum wq_metrics_format format);

/*
 * Writes all metrics of all queues. Each queue is looked at once, in one short
 * hold of its lock; the text is made outside all locks, and `write` is called outside
 * them too.
 *
 * Returns WQ_OK, WQ_EINVAL (r or write is NULL, an unknown format), WQ_ENOMEM, or
 * what write answered.
 */
WQ_API int wq_metrics_write(wq_registry *r, enum wq_metrics_format format, wq_write_fn write,
                            void *ctx);

/*
 * For programs with a metrics library of their own, as client-go's MetricsProvider: told of the five
 * metrics below, of the queue that it is given to (wq_options.provider), under the queue's lock. The
 * functions may not block or call the queue. Any of them may be NULL. The struct is copied.
 *
 * Everything else, the two gauges of ages among it, is in wq_snapshot_take(): read it when it is asked for.
 */
enum wq_metric {
	WQ_METRIC_DEPTH = 0, /* add: +1, -1; -n at wq_free(), which gives up n keys: 0 in the end */
	WQ_METRIC_ADDS = 1,  /* add: +1 */
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
