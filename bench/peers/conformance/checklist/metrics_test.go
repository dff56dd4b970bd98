package checklist

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"wq/bench/peers/conformance/pace"
)

type metric struct {
	mu    sync.Mutex
	value float64 // of a gauge or counter, or the last one observed
	count int
	set   chan float64
}

func (m *metric) to(value func(float64) float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = value(m.value)
	m.count++
}

func (m *metric) Inc()              { m.to(func(v float64) float64 { return v + 1 }) }
func (m *metric) Dec()              { m.to(func(v float64) float64 { return v - 1 }) }
func (m *metric) Observe(v float64) { m.to(func(float64) float64 { return v }) }

func (m *metric) Set(v float64) {
	if m.set != nil {
		m.set <- v
	}
}

func (m *metric) is(t *testing.T, what string, value float64, count int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	is(t, what, m.value, value)
	if count > 0 {
		is(t, what+": how many", m.count, count)
	}
}

type provider struct {
	depth, adds, latency, work, unfinished, longest, retries metric
	names                                                    []string
}

func newProvider() *provider {
	p := &provider{}
	p.unfinished.set, p.longest.set = make(chan float64), make(chan float64)
	return p
}

func (p *provider) metric(m *metric, name string) *metric {
	p.names = append(p.names, name)
	return m
}

func (p *provider) NewDepthMetric(n string) workqueue.GaugeMetric { return p.metric(&p.depth, n) }
func (p *provider) NewAddsMetric(n string) workqueue.CounterMetric {
	return p.metric(&p.adds, n)
}
func (p *provider) NewLatencyMetric(n string) workqueue.HistogramMetric {
	return p.metric(&p.latency, n)
}
func (p *provider) NewWorkDurationMetric(n string) workqueue.HistogramMetric {
	return p.metric(&p.work, n)
}
func (p *provider) NewUnfinishedWorkSecondsMetric(n string) workqueue.SettableGaugeMetric {
	return p.metric(&p.unfinished, n)
}
func (p *provider) NewLongestRunningProcessorSecondsMetric(n string) workqueue.SettableGaugeMetric {
	return p.metric(&p.longest, n)
}
func (p *provider) NewRetriesMetric(n string) workqueue.CounterMetric {
	return p.metric(&p.retries, n)
}

func (p *provider) ages(t *testing.T, unfinished, longest float64) {
	t.Helper()
	is(t, "unfinished", receive(t, "Set", p.unfinished.set), unfinished)
	is(t, "longest", receive(t, "Set", p.longest.set), longest)
}

func TestMetrics(t *testing.T) {
	p := newProvider()
	c := testingclock.NewFakeClock(time.Unix(0, 0))
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
		Name: "test", Clock: c, MetricsProvider: p})
	defer q.ShutDown()
	returns(t, "NewTicker", func() {
		for !c.HasWaiters() {
			runtime.Gosched()
		}
	})
	if diff := cmp.Diff([]string{"test", "test", "test", "test", "test", "test"}, p.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}

	q.Add("foo")
	p.adds.is(t, "adds", 1, 1)
	p.depth.is(t, "depth", 1, 0)
	c.Step(50 * time.Microsecond)
	get(t, q, "foo")
	p.depth.is(t, "depth", 0, 0)
	p.latency.is(t, "latency", 5e-05, 1)
	for range 5 {
		q.Add("foo")
	}
	p.adds.is(t, "adds", 2, 2)
	p.depth.is(t, "depth", 1, 0)
	c.Step(25 * time.Microsecond)
	q.Done("foo")
	p.work.is(t, "work", 2.5e-05, 1)
	p.depth.is(t, "depth", 1, 0)
	c.Step(10 * time.Microsecond)
	get(t, q, "foo")
	p.latency.is(t, "latency", 3.5e-05, 2)

	q.Add("bar")
	c.Step(100 * time.Millisecond)
	get(t, q, "bar")
	p.latency.is(t, "latency", 0.1, 3)
	c.Step(time.Second)
	p.ages(t, 2.1, 1.1)
	q.Done("foo")
	p.work.is(t, "work", 1.1, 2)
	c.Step(time.Second)
	p.ages(t, 2, 2)
}

// No ages after a shutdown.
func TestMetricShutdown(t *testing.T) {
	p := newProvider()
	c := testingclock.NewFakeClock(time.Unix(0, 0))
	q := workqueue.NewWithConfig(workqueue.QueueConfig{Name: "test", Clock: c, MetricsProvider: p})
	returns(t, "NewTicker", func() {
		for !c.HasWaiters() {
			runtime.Gosched()
		}
	})
	c.Step(time.Second)
	p.ages(t, 0, 0)
	returns(t, "ShutDown", q.ShutDown)
	c.Step(time.Hour)
	select {
	case <-p.unfinished.set:
		t.Error("the ages are told after the shutdown")
	default:
	}
}

// A key that waits counts when it has come due; every AddAfter is a retry.
func TestMetricsOfDelays(t *testing.T) {
	p := newProvider()
	c := pace.New()
	q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
		Name: "test", Clock: c, MetricsProvider: p})
	pace.Keep(c, q, "never")
	addAfter(c, q, "foo", 50)
	p.retries.is(t, "retries", 2, 2)
	p.depth.is(t, "depth", 0, 0)
	q.AddAfter("bar", 0)
	p.retries.is(t, "retries", 3, 3)
	p.adds.is(t, "adds", 1, 1)
	c.Step(50 * ms)
	p.depth.is(t, "depth", 2, 0)
	p.adds.is(t, "adds", 2, 2)
	c.Step(10 * ms)
	take(t, q, "bar")
	p.latency.is(t, "latency", 0.06, 1)
	take(t, q, "foo")
	p.latency.is(t, "latency", 0.01, 2)
	q.ShutDown()
	q.AddAfter("late", time.Second)
	p.retries.is(t, "retries", 3, 3)
}
