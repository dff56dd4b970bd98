package checklist

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"wq/bench/peers/conformance/pace"
)

type delaying = workqueue.TypedDelayingInterface[string]

func newDelaying(t *testing.T) (*pace.Clock, delaying) {
	c := pace.New()
	q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: c})
	t.Cleanup(q.ShutDown)
	pace.Keep(c, q, "never")
	return c, q
}

func addAfter(c *pace.Clock, q delaying, item string, ms time.Duration) {
	c.Waits(func() { q.AddAfter(item, ms*time.Millisecond) })
}

func lenAfter(t *testing.T, c *pace.Clock, q delaying, ms time.Duration, want int) {
	t.Helper()
	c.Step(ms * time.Millisecond)
	is(t, fmt.Sprintf("Len after %d ms", ms), q.Len(), want)
}

func TestSimpleQueue(t *testing.T) {
	c, q := newDelaying(t)
	addAfter(c, q, "foo", 50)
	lenAfter(t, c, q, 49, 0)
	lenAfter(t, c, q, 11, 1)
	take(t, q, "foo")
	lenAfter(t, c, q, 10000, 0)
}

func TestDeduping(t *testing.T) {
	c, q := newDelaying(t)
	addAfter(c, q, "foo", 50)
	addAfter(c, q, "foo", 70)
	lenAfter(t, c, q, 60, 1)
	take(t, q, "foo")
	lenAfter(t, c, q, 20, 0)

	addAfter(c, q, "foo", 50)
	addAfter(c, q, "foo", 30)
	lenAfter(t, c, q, 40, 1)
	take(t, q, "foo")
	lenAfter(t, c, q, 20, 0)
	lenAfter(t, c, q, 10000, 0)
}

func TestAddTwoFireEarly(t *testing.T) {
	c, q := newDelaying(t)
	addAfter(c, q, "foo", 1000)
	addAfter(c, q, "bar", 50)
	lenAfter(t, c, q, 60, 1)
	get(t, q, "bar")
	addAfter(c, q, "baz", 2000)
	lenAfter(t, c, q, 1000, 1)
	get(t, q, "foo")
	lenAfter(t, c, q, 2000, 1)
	get(t, q, "baz")
}

func TestCopyShifting(t *testing.T) {
	c, q := newDelaying(t)
	addAfter(c, q, "foo", 1000)
	addAfter(c, q, "bar", 500)
	addAfter(c, q, "baz", 250)
	lenAfter(t, c, q, 2000, 3)
	take(t, q, "baz")
	take(t, q, "bar")
	take(t, q, "foo")
}

// A Get that waits is woken by a step, and nothing but the step wakes it. Whether it waits
// already nobody can see: it is given some time, in which it does as a rule.
func TestStepWakesGet(t *testing.T) {
	c, q := newDelaying(t)
	for range 20 {
		addAfter(c, q, "foo", 50)
		got := make(chan string)
		go func() {
			item, _ := q.Get()
			got <- item
		}()
		lenAfter(t, c, q, 49, 0)
		select {
		case item := <-got:
			t.Errorf("%v came too early", item)
		case <-time.After(time.Millisecond):
		}
		c.Step(time.Millisecond)
		is(t, "item", receive(t, "Get", got), "foo")
		q.Done("foo")
	}
}

// What waits is dropped by a shutdown, and an add comes beside what waits.
func TestWaitingAndShutDown(t *testing.T) {
	c, q := newDelaying(t)
	addAfter(c, q, "foo", 50)
	q.Add("foo")
	take(t, q, "foo")
	lenAfter(t, c, q, 50, 1)
	take(t, q, "foo")
	addAfter(c, q, "foo", 50)
	q.AddAfter("bar", 0)
	q.AddAfter("baz", -1)
	is(t, "Len", q.Len(), 2)
	q.ShutDown()
	q.AddAfter("late", 0)
	q.AddAfter("late", time.Millisecond)
	c.FakeClock.Step(time.Hour)
	take(t, q, "bar")
	take(t, q, "baz")
	_, shutdown := q.Get()
	is(t, "shutdown", shutdown, true)
}

// A queue of somebody else's, to which items are added when they are due.
type given struct {
	workqueue.TypedInterface[string]
	added chan string
}

func (g *given) Add(item string) {
	g.TypedInterface.Add(item)
	g.added <- item
}

func TestCustomQueue(t *testing.T) {
	c := pace.New()
	g := &given{workqueue.NewTyped[string](), make(chan string, 10)}
	q := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[string]{Clock: c, Queue: g})
	pace.Keep(c, q, "never")
	added := func(want string) {
		t.Helper()
		is(t, "item", receive(t, "Add", g.added), want)
	}
	addAfter(c, q, "foo", 50)
	addAfter(c, q, "bar", 30)
	q.AddAfter("baz", 0)
	added("baz")
	is(t, "Len", g.Len(), 1)
	c.Step(60 * time.Millisecond)
	added("bar")
	added("foo")
	for _, item := range []string{"baz", "bar", "foo"} {
		take(t, q, item)
	}
	addAfter(c, q, "foo", 50)
	q.ShutDown()
	is(t, "ShuttingDown", g.ShuttingDown(), true)
}

// A clock that runs by itself, as the real one does, but is another.
type running struct {
	clock.RealClock
	timers atomic.Int32
}

func (r *running) NewTimer(d time.Duration) clock.Timer {
	r.timers.Add(1)
	return r.RealClock.NewTimer(d)
}

// Nobody steps these clocks.
func TestRunningClocks(t *testing.T) {
	own := &running{}
	for _, c := range []clock.WithTicker{nil, clock.RealClock{}, own} {
		p := &provider{}
		q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
			Name: "test", Clock: c, MetricsProvider: p})
		q.AddAfter("never", time.Hour)
		before := time.Now()
		q.AddAfter("foo", 5*ms)
		take(t, q, "foo")
		if d := time.Since(before); d < 5*ms {
			t.Errorf("%v too early", 5*ms-d)
		}
		p.depth.is(t, "depth", 0, 2)
		q.ShutDown()
	}
	if n := own.timers.Load(); n == 0 || n > 100 {
		t.Errorf("%d timers for two keys", n)
	}
}

// Many at once; every item is added once, and comes once.
func TestCrowdOfDelays(t *testing.T) {
	const producers, consumers, each = 20, 5, 50
	q := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[int](ms, ms))
	var times [producers * each]atomic.Int32
	var left sync.WaitGroup
	left.Add(len(times))
	for range consumers {
		go func() {
			for {
				item, shutdown := q.Get()
				if shutdown {
					return
				}
				if times[item].Add(1) == 1 {
					q.Forget(item)
					left.Done()
				}
				q.Done(item)
			}
		}()
	}
	for p := range producers {
		go func() {
			for i := range each {
				item := p*each + i
				switch i % 3 {
				case 0:
					q.AddRateLimited(item)
				case 1:
					q.AddAfter(item, time.Duration(item)*time.Microsecond)
				default:
					q.AddAfter(item, 0)
				}
			}
		}()
	}
	returns(t, "the last item", left.Wait)
	is(t, "Len", q.Len(), 0)
	q.ShutDown()
	for i := range times {
		is(t, fmt.Sprintf("how often %d came", i), times[i].Load(), 1)
	}
}

// A Get that sleeps until some time, on the real clock, is woken for an earlier one.
func TestEarlierWakesGet(t *testing.T) {
	q := workqueue.NewTypedDelayingQueue[string]()
	defer q.ShutDown()
	q.AddAfter("never", time.Hour)
	for range 5 {
		got := make(chan string)
		go func() {
			item, _ := q.Get()
			got <- item
		}()
		select {
		case item := <-got:
			t.Errorf("%v came too early", item)
		case <-time.After(5 * ms): // it sleeps, as a rule
		}
		q.AddAfter("foo", ms)
		is(t, "item", receive(t, "Get", got), "foo")
		q.Done("foo")
	}
}
