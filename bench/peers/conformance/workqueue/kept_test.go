package workqueue

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/time/rate"
	testingclock "k8s.io/utils/clock/testing"
)

func keeps(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d values are kept, not %d", what, got, want)
	}
}

// A value is kept as long as libwq knows it, and no longer.
func TestKeptOfKeys(t *testing.T) {
	c := testingclock.NewFakeClock(time.Unix(0, 0))
	exponential := NewTypedItemExponentialFailureRateLimiter[any](time.Second, time.Hour)
	longest := NewTypedMaxOfRateLimiter(exponential, NewTypedWithMaxWaitRateLimiter(exponential, time.Hour))
	q := NewTypedRateLimitingQueueWithConfig(longest, TypedRateLimitingQueueConfig[any]{Clock: c})
	inQueue := q.(*rateLimitingType[any]).core.keys
	inLimiter := exponential.(*TypedItemExponentialFailureRateLimiter[any]).limiter.keys
	inLongest := longest.(*TypedMaxOfRateLimiter[any]).limiter.keys

	q.Forget("a")
	q.Done("a")
	keeps(t, "unknown", inQueue.size()+inLimiter.size()+q.NumRequeues("a"), 0)

	q.Add("a")
	q.Get()
	keeps(t, "held", inQueue.size(), 1)
	q.AddRateLimited("a")
	q.Done("a")
	keeps(t, "waiting", inQueue.size(), 1)
	keeps(t, "failed", inLimiter.size(), 1)
	c.Step(2 * time.Second)
	q.Get()
	q.Done("a")
	keeps(t, "done", inQueue.size(), 0)
	keeps(t, "not forgotten", inLimiter.size(), 1)
	q.Forget("a")
	keeps(t, "forgotten", inLimiter.size(), 0)
	keeps(t, "asked", inLongest.size(), 0)

	q.Add("b")
	q.AddAfter("b", time.Hour)
	q.AddAfter("c", time.Hour)
	q.ShutDown()
	keeps(t, "shut down", inQueue.size(), 1)
	q.Add("d")
	q.Get()
	q.Done("b")
	keeps(t, "empty", inQueue.size(), 0)
}

// All that one can make, in the midst of its work.
func useAll(i int) {
	c := testingclock.NewFakeClock(time.Unix(0, 0))
	bucket := &TypedBucketRateLimiter[any]{Limiter: rate.NewLimiter(10, 100)}
	limiter := NewTypedMaxOfRateLimiter(bucket, DefaultTypedItemBasedRateLimiter[any](), DefaultTypedControllerRateLimiter[any]())
	limiter.When(i)
	bucket.SetBurst(50)
	limited := NewTypedRateLimitingQueueWithConfig(limiter, TypedRateLimitingQueueConfig[any]{
		Name: "all", Clock: c, MetricsProvider: quiet{}})
	plain := NewWithConfig(QueueConfig{Name: "all", MetricsProvider: quiet{}, Queue: &backwards{}})
	over := NewDelayingQueueWithConfig(DelayingQueueConfig{Clock: c, Queue: New()})

	limited.AddRateLimited(i)
	for _, q := range []TypedInterface[any]{limited, plain, over} {
		q.Add(1)
		q.Add(2)
		q.Get()
		q.Add(1)
	}
	over.AddAfter(3, time.Second)
	over.ShutDown() // otherwise its goroutine waits for the third, as client-go's does
	if i%2 == 0 {
		limited.ShutDown()
		plain.ShutDown()
	}
}

type backwards struct{ fifo[any] }

type quiet struct{}

func (quiet) Inc()            {}
func (quiet) Dec()            {}
func (quiet) Set(float64)     {}
func (quiet) Observe(float64) {}

func (quiet) NewDepthMetric(string) GaugeMetric                                  { return quiet{} }
func (quiet) NewAddsMetric(string) CounterMetric                                 { return quiet{} }
func (quiet) NewLatencyMetric(string) HistogramMetric                            { return quiet{} }
func (quiet) NewWorkDurationMetric(string) HistogramMetric                       { return quiet{} }
func (quiet) NewUnfinishedWorkSecondsMetric(string) SettableGaugeMetric          { return quiet{} }
func (quiet) NewLongestRunningProcessorSecondsMetric(string) SettableGaugeMetric { return quiet{} }
func (quiet) NewRetriesMetric(string) CounterMetric                              { return quiet{} }

// What nobody can reach is given back, shut down or not.
func TestKeptOfQueues(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	for i := range 50 {
		useAll(i)
	}
	if live.Load() == 0 {
		t.Error("nothing was made")
	}
	for end := time.Now().Add(20 * time.Second); live.Load() > 0 || runtime.NumGoroutine() > goroutines; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d queues and limiters are left, and %d goroutines", live.Load(), runtime.NumGoroutine()-goroutines)
		}
	}
}
