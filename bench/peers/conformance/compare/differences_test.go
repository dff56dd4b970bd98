package compare

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	wq "wq/bench/peers/conformance/workqueue"
)

// What ../README.md says that differs. If client-go changes, this shows it.

type plainQueue = workqueue.TypedInterface[string]

func differ(t *testing.T, what string, do func(q plainQueue) string, theirs, ours string) {
	t.Helper()
	if got := do(workqueue.NewTyped[string]()); got != theirs {
		t.Errorf("%s: client-go answers %q, not %q", what, got, theirs)
	}
	if got := do(wq.NewTyped[string]()); got != ours {
		t.Errorf("%s: wq answers %q, not %q", what, got, ours)
	}
}

func TestDifferences(t *testing.T) {
	differ(t, "Done of an item in line", func(q plainQueue) string {
		q.Add("a")
		q.Done("a")
		return fmt.Sprint(q.Len())
	}, "2", "1")

	differ(t, "a drain with an item in line", func(q plainQueue) string {
		q.Add("a")
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			q.ShutDownWithDrain()
		}()
		select {
		case <-drained:
			return "returns"
		case <-time.After(50 * time.Millisecond):
			q.ShutDown()
			<-drained
			return "waits"
		}
	}, "returns", "waits")

	differ(t, "two drains", func(q plainQueue) string {
		q.Add("a")
		q.Get()
		drained := make(chan struct{}, 2)
		for range cap(drained) {
			go func() {
				q.ShutDownWithDrain()
				drained <- struct{}{}
			}()
		}
		time.Sleep(200 * time.Millisecond) // both wait, as a rule
		q.Done("a")
		<-drained
		select {
		case <-drained:
			return "both return"
		case <-time.After(50 * time.Millisecond):
			q.ShutDown()
			<-drained
			return "one returns"
		}
	}, "one returns", "both return")
}

func TestDifferencesOfLimiters(t *testing.T) {
	same := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	theirs := workqueue.NewTypedItemExponentialFailureRateLimiter[string](1, time.Hour)
	ours := wq.NewTypedItemExponentialFailureRateLimiter[string](1, time.Hour)
	for range 63 {
		same("below 2^63", ours.When("a"), theirs.When("a"))
	}
	same("client-go at 2^63 is below 0", theirs.When("a") < 0, true)
	same("wq at 2^63", ours.When("a"), time.Hour)
	same("beyond", ours.When("a"), theirs.When("a"))

	for _, q := range []workqueue.TypedRateLimitingInterface[string]{
		workqueue.NewTypedRateLimitingQueue(theirs), wq.NewTypedRateLimitingQueue(ours)} {
		q.ShutDown()
		q.AddRateLimited("late")
	}
	same("client-go after the shutdown", theirs.NumRequeues("late"), 1)
	same("wq after the shutdown", ours.NumRequeues("late"), 0)

	same("client-go below 0", workqueue.NewTypedItemFastSlowRateLimiter[string](-1, -1, 0).When("a"), time.Duration(-1))
	same("wq below 0", wq.NewTypedItemFastSlowRateLimiter[string](-1, -1, 0).When("a"), time.Duration(0))
}

// Equal times: client-go's order is that of its heap, libwq's that of the calls.
func TestDifferencesOfTime(t *testing.T) {
	c := testingclock.NewFakeClock(time.Unix(100, 0))
	q := wq.NewTypedDelayingQueueWithConfig(wq.TypedDelayingQueueConfig[int]{Clock: c})
	defer q.ShutDown()
	const n = 100
	for i := range n {
		q.AddAfter(i, time.Second)
	}
	c.SetTime(time.Unix(50, 0)) // stands still
	c.SetTime(time.Unix(101, 0))
	for i := range n {
		if item, _ := q.Get(); item != i {
			t.Fatalf("%d comes in the place of %d", item, i)
		}
	}
}
