package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

type queue = workqueue.TypedInterface[string]
type delaying = workqueue.TypedDelayingInterface[string]
type limiting = workqueue.TypedRateLimitingInterface[string]
type ranking = priorityqueue.PriorityQueue[string]

// What a peer has; what is nil it has not, and the rows that need it are left out.
type peer struct {
	name, module string
	plain        func() queue
	named        func() queue // with metrics
	delayed      func() delaying
	clocked      func(c clock.WithTicker) delaying // on a clock that the caller moves
	limited      func() limiting
	ranked       func() ranking // with priorities
	wheel        bool

	// Adds are only written down, and another goroutine carries them out; Len() waits
	// for that. Where the row is what Adds cost, it ends with it.
	defers bool
	// What is in line at ShutDown is not given out any more.
	cuts bool
}

var peers = []*peer{
	{
		name:   "client-go",
		module: "k8s.io/client-go",
		plain:  func() queue { return workqueue.NewTyped[string]() },
		named: func() queue {
			return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
				Name: "bench", MetricsProvider: provider{},
			})
		},
		delayed: workqueue.NewTypedDelayingQueue[string],
		clocked: func(c clock.WithTicker) delaying {
			return workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[string]{Clock: c})
		},
		limited: func() limiting {
			return workqueue.NewTypedRateLimitingQueue(
				workqueue.DefaultTypedControllerRateLimiter[string]())
		},
	},
	{
		// Its limiter is asked by the other goroutine, so that NumRequeues right after
		// AddRateLimited has no answer yet: it has no limited_cycle. Its clock cannot be
		// given from outside.
		name:    "controller-runtime",
		module:  "sigs.k8s.io/controller-runtime",
		plain:   func() queue { return priorityqueue.New[string]("") },
		named:   func() queue { return priorityqueue.New[string]("bench") },
		delayed: func() delaying { return priorityqueue.New[string]("") },
		ranked:  func() ranking { return priorityqueue.New[string]("") },
		defers:  true,
		cuts:    true,
	},
	{
		name:   "timingwheel",
		module: "github.com/RussellLuo/timingwheel",
		wheel:  true,
	},
}

func findPeer(name string) *peer {
	for _, p := range peers {
		if p.name == name {
			return p
		}
	}
	return nil
}

func canPlain(p *peer) bool   { return p.plain != nil }
func canNamed(p *peer) bool   { return p.named != nil }
func canDelay(p *peer) bool   { return p.delayed != nil }
func canLimited(p *peer) bool { return p.limited != nil }
func canRank(p *peer) bool    { return p.ranked != nil }
func canWheel(p *peer) bool   { return p.wheel }

func settle(p *peer, q queue) {
	if p.defers {
		q.Len()
	}
}

// Prometheus' own metrics, with the buckets that Kubernetes' components have. They
// are not registered anywhere: what is counted costs the same.
type provider struct{}

func histogram(name string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
	})
}

func gauge(name string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
}

func counter(name string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name})
}

func (provider) NewDepthMetric(string) workqueue.GaugeMetric  { return gauge("depth") }
func (provider) NewAddsMetric(string) workqueue.CounterMetric { return counter("adds_total") }
func (provider) NewLatencyMetric(string) workqueue.HistogramMetric {
	return histogram("queue_duration_seconds")
}
func (provider) NewWorkDurationMetric(string) workqueue.HistogramMetric {
	return histogram("work_duration_seconds")
}
func (provider) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return gauge("unfinished_work_seconds")
}
func (provider) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return gauge("longest_running_processor_seconds")
}
func (provider) NewRetriesMetric(string) workqueue.CounterMetric { return counter("retries_total") }
