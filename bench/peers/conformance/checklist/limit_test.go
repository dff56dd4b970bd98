package checklist

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"wq/bench/peers/conformance/pace"
)

const ms = time.Millisecond

func when[T comparable](t *testing.T, l workqueue.TypedRateLimiter[T], item T, want ...time.Duration) {
	t.Helper()
	for i, d := range want {
		is(t, fmt.Sprintf("When(%v), no. %d", item, i), l.When(item), d)
	}
}

// Two items, the second of which does not mind the first, and the first once more.
func limits(t *testing.T, l workqueue.RateLimiter, want ...time.Duration) {
	t.Helper()
	when(t, l, any("one"), want...)
	is(t, "NumRequeues(one)", l.NumRequeues("one"), len(want))
	when(t, l, any("two"), want[:2]...)
	is(t, "NumRequeues(two)", l.NumRequeues("two"), 2)
	l.Forget("one")
	is(t, "NumRequeues(one)", l.NumRequeues("one"), 0)
	when(t, l, any("one"), want[0])
	is(t, "NumRequeues(two)", l.NumRequeues("two"), 2)
}

func TestItemExponentialFailureRateLimiter(t *testing.T) {
	limits(t, workqueue.NewItemExponentialFailureRateLimiter(ms, time.Second), ms, 2*ms, 4*ms, 8*ms, 16*ms)
	limits(t, workqueue.DefaultItemBasedRateLimiter(), ms, 2*ms, 4*ms)
	limits(t, workqueue.NewItemExponentialFailureRateLimiter(0, 0), 0, 0, 0)
	limits(t, workqueue.NewItemExponentialFailureRateLimiter(4*ms, 3*ms), 3*ms, 3*ms, 3*ms)
}

func TestItemExponentialFailureRateLimiterOverFlow(t *testing.T) {
	for _, longest := range []time.Duration{1000 * time.Second, 1000 * time.Hour} {
		l := workqueue.NewItemExponentialFailureRateLimiter(time.Minute, longest)
		for range 1000 {
			l.When("overflow")
		}
		when(t, l, any("overflow"), longest)
	}
}

func TestItemFastSlowRateLimiter(t *testing.T) {
	limits(t, workqueue.NewItemFastSlowRateLimiter(5*ms, 10*time.Second, 3),
		5*ms, 5*ms, 5*ms, 10*time.Second, 10*time.Second)
	limits(t, workqueue.NewItemFastSlowRateLimiter(5*ms, 10*ms, 0), 10*ms, 10*ms)
}

func TestMaxOfRateLimiter(t *testing.T) {
	limits(t, workqueue.NewMaxOfRateLimiter(
		workqueue.NewItemFastSlowRateLimiter(5*ms, 3*time.Second, 3),
		workqueue.NewItemExponentialFailureRateLimiter(ms, time.Second),
	), 5*ms, 5*ms, 5*ms, 3*time.Second, 3*time.Second)
	limits(t, workqueue.DefaultControllerRateLimiter(), 5*ms, 10*ms, 20*ms)
	when(t, workqueue.NewMaxOfRateLimiter(), any("none"), 0, 0)

	var many []workqueue.TypedRateLimiter[any]
	for i := range 20 {
		many = append(many, workqueue.NewTypedItemFastSlowRateLimiter[any](
			ms, time.Duration(i)*ms, i))
	}
	limits(t, workqueue.NewMaxOfRateLimiter(many...), ms, ms, 2*ms, 3*ms, 4*ms)
}

// One's own, of which the first calls are short.
type steps struct{ count int }

func (s *steps) When(any) time.Duration {
	if s.count++; s.count <= 100 {
		return 5 * ms
	}
	return 1000 * time.Second
}
func (s *steps) NumRequeues(any) int { return 7 }
func (s *steps) Forget(any)          { s.count = 0 }

func TestWithMaxWaitRateLimiter(t *testing.T) {
	l := workqueue.NewWithMaxWaitRateLimiter(&steps{}, 500*time.Second)
	for i := range 200 {
		want := 5 * ms
		if i >= 100 {
			want = 500 * time.Second
		}
		when(t, l, any(i), want)
	}
	is(t, "NumRequeues", l.NumRequeues(1), 7)
	l.Forget(1)
	when(t, l, any(1), 5*ms)
}

func TestBucketRateLimiter(t *testing.T) {
	limiter := rate.NewLimiter(rate.Every(time.Hour), 2)
	l := &workqueue.BucketRateLimiter{Limiter: limiter}
	other := &workqueue.BucketRateLimiter{Limiter: limiter}
	when(t, l, any("a"), 0)
	when(t, other, any("b"), 0)
	if d := l.When("a"); d > time.Hour || d < 59*time.Minute {
		t.Errorf("a token comes in %v, not in an hour", d)
	}
	is(t, "NumRequeues", l.NumRequeues("a"), 0)
	l.Forget("a")
	when(t, &workqueue.BucketRateLimiter{Limiter: rate.NewLimiter(rate.Inf, 0)}, any("a"), 0, 0)
	when(t, &workqueue.BucketRateLimiter{Limiter: rate.NewLimiter(1, 0)}, any("a"), rate.InfDuration)
}

// How long an item waits is how far the clock has to be stepped.
func TestRateLimitingQueue(t *testing.T) {
	c := pace.New()
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](ms, time.Second),
		workqueue.TypedRateLimitingQueueConfig[string]{Clock: c})
	defer q.ShutDown()
	pace.Keep(c, q, "never")
	readyIn := func(item string, want time.Duration) {
		t.Helper()
		c.Waits(func() { q.AddRateLimited(item) })
		c.Step(want - 1)
		is(t, "Len", q.Len(), 0)
		c.Step(1)
		take(t, q, item)
	}
	readyIn("one", ms)
	readyIn("one", 2*ms)
	is(t, "NumRequeues(one)", q.NumRequeues("one"), 2)
	readyIn("two", ms)
	readyIn("two", 2*ms)
	q.Forget("one")
	is(t, "NumRequeues(one)", q.NumRequeues("one"), 0)
	readyIn("one", ms)
	is(t, "NumRequeues(two)", q.NumRequeues("two"), 2)
}

// The delaying queue is somebody else's.
func TestRateLimitingQueueWithDelayingInterface(t *testing.T) {
	c, d := newDelaying(t)
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemFastSlowRateLimiter[string](ms, time.Second, 1),
		workqueue.TypedRateLimitingQueueConfig[string]{DelayingQueue: d})
	c.Waits(func() { q.AddRateLimited("foo") })
	lenAfter(t, c, d, 1, 1)
	take(t, q, "foo")
	c.Waits(func() { q.AddRateLimited("foo") })
	lenAfter(t, c, d, 999, 0)
	lenAfter(t, c, d, 1, 1)
	is(t, "NumRequeues", q.NumRequeues("foo"), 2)
	q.Forget("foo")
	is(t, "NumRequeues", q.NumRequeues("foo"), 0)
}
