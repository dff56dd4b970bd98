package workqueue

import (
	"sync"
	"time"
)

// GaugeMetric is a number that goes up and down.
type GaugeMetric interface {
	Inc()
	Dec()
}

// SettableGaugeMetric is a number that is set.
type SettableGaugeMetric interface {
	Set(float64)
}

// CounterMetric is a number that goes up.
type CounterMetric interface {
	Inc()
}

// SummaryMetric takes single observations.
type SummaryMetric interface {
	Observe(float64)
}

// HistogramMetric takes single observations.
type HistogramMetric interface {
	Observe(float64)
}

// MetricsProvider makes the metrics of a queue.
type MetricsProvider interface {
	NewDepthMetric(name string) GaugeMetric
	NewAddsMetric(name string) CounterMetric
	NewLatencyMetric(name string) HistogramMetric
	NewWorkDurationMetric(name string) HistogramMetric
	NewUnfinishedWorkSecondsMetric(name string) SettableGaugeMetric
	NewLongestRunningProcessorSecondsMetric(name string) SettableGaugeMetric
	NewRetriesMetric(name string) CounterMetric
}

var (
	globalProvider     MetricsProvider
	globalProviderOnce sync.Once
)

// SetProvider sets the provider of all queues that are made from now on and name none.
// Only the first call counts.
func SetProvider(metricsProvider MetricsProvider) {
	globalProviderOnce.Do(func() { globalProvider = metricsProvider })
}

func providerFor(name string, given MetricsProvider) MetricsProvider {
	if name == "" {
		return nil
	}
	if given != nil {
		return given
	}
	return globalProvider
}

// What a queue has of a provider's; nil: it is not told.
type metrics struct {
	depth               GaugeMetric
	adds, retries       CounterMetric
	latency, work       HistogramMetric
	unfinished, longest SettableGaugeMetric
}

func newMetrics(name string, given MetricsProvider) metrics {
	p := providerFor(name, given)
	if p == nil {
		return metrics{}
	}
	return metrics{
		depth:      p.NewDepthMetric(name),
		adds:       p.NewAddsMetric(name),
		latency:    p.NewLatencyMetric(name),
		work:       p.NewWorkDurationMetric(name),
		unfinished: p.NewUnfinishedWorkSecondsMetric(name),
		longest:    p.NewLongestRunningProcessorSecondsMetric(name),
	}
}

func newRetries(name string, given MetricsProvider) CounterMetric {
	p := providerFor(name, given)
	if p == nil {
		return nil
	}
	return p.NewRetriesMetric(name)
}

func (c *core[T]) count(metric int, delta int64) {
	c.inside.Lock()
	defer c.inside.Unlock()
	m := c.metrics
	switch {
	case metric == metricDepth && m.depth != nil:
		for ; delta > 0; delta-- {
			m.depth.Inc()
		}
		for ; delta < 0; delta++ {
			m.depth.Dec()
		}
	case metric == metricAdds && m.adds != nil:
		m.adds.Inc()
	case metric == metricRetries && m.retries != nil:
		m.retries.Inc()
	}
}

func (c *core[T]) observe(metric int, ns int64) {
	c.inside.Lock()
	defer c.inside.Unlock()
	seconds := time.Duration(ns).Seconds()
	switch {
	case metric == metricLatency && c.metrics.latency != nil:
		c.metrics.latency.Observe(seconds)
	case metric == metricWork && c.metrics.work != nil:
		c.metrics.work.Observe(seconds)
	}
}

const defaultUpdatePeriod = 500 * time.Millisecond

// Ages are there when somebody asks libwq. client-go asks twice a second.
func (c *core[T]) updateUnfinishedWork(period time.Duration) {
	unfinished, longest := c.metrics.unfinished, c.metrics.longest
	t := c.clock.NewTicker(period)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			sum, oldest := c.running()
			unfinished.Set(sum.Seconds())
			longest.Set(oldest.Seconds())
		case <-c.stop:
			return
		}
	}
}
