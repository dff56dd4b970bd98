package checklist

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"wq/bench/peers/conformance/pace"
)

type stop func(workqueue.TypedInterface[int])

func runCrowd(t *testing.T, adds int, readd bool, stop stop) {
	const producers, consumers, late = 50, 10, -1
	q := workqueue.NewTyped[int]()
	var holders, times [producers]atomic.Int32
	var producing, consuming sync.WaitGroup

	for range consumers {
		consuming.Go(func() {
			seen := map[int]int{}
			for {
				item, shutdown := q.Get()
				if shutdown {
					return
				}
				if item == late {
					t.Error("an item that was added after the shutdown was handed out")
					q.Done(item)
					continue
				}
				if holders[item].Add(1) != 1 {
					t.Errorf("%d is with two workers", item)
				}
				times[item].Add(1)
				if seen[item]++; readd && seen[item] < 2 {
					q.Add(item)
				}
				runtime.Gosched()
				holders[item].Add(-1)
				q.Done(item)
			}
		})
	}
	for i := range producers {
		producing.Go(func() {
			for range adds {
				q.Add(i)
				runtime.Gosched()
			}
		})
	}
	producing.Wait()
	returns(t, "stop", func() { stop(q) })
	q.Add(late)
	returns(t, "Get after the stop", consuming.Wait)
	is(t, "Len", q.Len(), 0)
	for i := range times {
		if times[i].Load() < 1 {
			t.Errorf("%d was lost", i)
		}
	}
}

func shutDown(q workqueue.TypedInterface[int])          { q.ShutDown() }
func shutDownWithDrain(q workqueue.TypedInterface[int]) { q.ShutDownWithDrain() }

func TestBasic_ShutDown(t *testing.T)              { runCrowd(t, 50, false, shutDown) }
func TestBasic_ShutDownWithDrain(t *testing.T)     { runCrowd(t, 50, false, shutDownWithDrain) }
func TestAddWhileProcessing_ShutDown(t *testing.T) { runCrowd(t, 1, true, shutDown) }
func TestAddWhileProcessing_ShutDownWithDrain(t *testing.T) {
	runCrowd(t, 1, true, shutDownWithDrain)
}

func TestLen(t *testing.T) {
	q := workqueue.NewTyped[string]()
	for _, step := range []struct {
		item string
		len  int
	}{{"foo", 1}, {"bar", 2}, {"foo", 2}} {
		q.Add(step.item)
		is(t, "Len", q.Len(), step.len)
	}
}

func TestReinsert(t *testing.T) {
	q := workqueue.NewTyped[string]()
	q.Add("foo")
	get(t, q, "foo")
	q.Add("foo")
	is(t, "Len", q.Len(), 0)
	q.Done("foo")
	take(t, q, "foo")
	is(t, "Len", q.Len(), 0)
}

// An order of one's own: the last comes first; and it counts.
type stack[T comparable] struct {
	items  []T
	pushed []T
	popped []T
	touch  []T
}

func (s *stack[T]) Touch(item T) { s.touch = append(s.touch, item) }
func (s *stack[T]) Len() int     { return len(s.items) }

func (s *stack[T]) Push(item T) {
	s.pushed = append(s.pushed, item)
	s.items = append(s.items, item)
}

func (s *stack[T]) Pop() T {
	last := len(s.items) - 1
	item := s.items[last]
	s.items = s.items[:last]
	s.popped = append(s.popped, item)
	return item
}

func (s *stack[T]) saw(t *testing.T, pushed, popped, touched []T) {
	t.Helper()
	got := [][]T{s.pushed, s.popped, s.touch}
	if diff := cmp.Diff([][]T{pushed, popped, touched}, got); diff != "" {
		t.Errorf("pushed, popped, touched (-want +got):\n%s", diff)
	}
}

func TestCollapse(t *testing.T) {
	order := &stack[string]{}
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: order})
	q.Add("bar")
	q.Add("bar")
	take(t, q, "bar")
	is(t, "Len", q.Len(), 0)
	order.saw(t, []string{"bar"}, []string{"bar"}, []string{"bar"})
}

func TestCollapseWhileProcessing(t *testing.T) {
	order := &stack[string]{}
	q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: order})
	q.Add("foo")
	get(t, q, "foo")
	q.Add("foo")
	q.Add("foo")
	var isDone atomic.Bool
	second := make(chan struct{})
	go func() {
		defer close(second)
		item, _ := q.Get()
		is(t, "item", item, "foo")
		is(t, "the first is done", isDone.Load(), true)
		q.Done(item)
	}()
	isDone.Store(true)
	q.Done("foo")
	returns(t, "the second worker", func() { <-second })
	is(t, "Len", q.Len(), 0)
	order.saw(t, []string{"foo", "foo"}, []string{"foo", "foo"}, nil)
}

func TestOrder(t *testing.T) {
	order := &stack[any]{}
	q := workqueue.NewWithConfig(workqueue.QueueConfig{Queue: order})
	q.Add("a")
	q.Add(2)
	q.Add(nil)
	q.Add("a")
	is(t, "Len", q.Len(), 3)
	get[any](t, q, nil)
	q.Add(nil)
	q.Add(3.5)
	q.Done(nil)
	for _, item := range []any{nil, 3.5, 2, "a"} {
		take[any](t, q, item)
	}
	order.saw(t, []any{"a", 2, nil, 3.5, nil}, []any{nil, nil, 3.5, 2, "a"}, []any{"a"})
}

func drainBlocks(t *testing.T, q workqueue.TypedInterface[string]) (drained chan struct{}) {
	t.Helper()
	drained = make(chan struct{})
	go func() {
		defer close(drained)
		q.ShutDownWithDrain()
	}()
	returns(t, "the begin of the drain", func() {
		for shutdown := false; !shutdown; {
			_, shutdown = q.Get()
		}
	})
	q.Add("late")
	is(t, "ShuttingDown", q.ShuttingDown(), true)
	is(t, "Len", q.Len(), 0)
	return drained
}

func twoHeld(t *testing.T) workqueue.TypedInterface[string] {
	q := workqueue.NewTyped[string]()
	q.Add("foo")
	q.Add("bar")
	get(t, q, "foo")
	get(t, q, "bar")
	return q
}

func TestQueueDrainageUsingShutDownWithDrain(t *testing.T) {
	q := twoHeld(t)
	drained := drainBlocks(t, q)
	q.Done("foo")
	select {
	case <-drained:
		t.Error("the drain does not wait for the second item")
	default:
	}
	q.Done("bar")
	returns(t, "the drain", func() { <-drained })
}

func TestNoQueueDrainageUsingShutDown(t *testing.T) {
	q := twoHeld(t)
	is(t, "ShuttingDown", q.ShuttingDown(), false)
	returns(t, "ShutDown", q.ShutDown)
	is(t, "ShuttingDown", q.ShuttingDown(), true)
	q.Done("foo")
	q.Done("bar")
}

func TestForceQueueShutdownUsingShutDown(t *testing.T) {
	q := twoHeld(t)
	drained := drainBlocks(t, q)
	q.ShutDown()
	returns(t, "the drain", func() { <-drained })
}

func TestQueueDrainageUsingShutDownWithDrainWithDirtyItem(t *testing.T) {
	q := workqueue.NewTyped[string]()
	q.Add("foo")
	get(t, q, "foo")
	q.Add("foo")
	drained := drainBlocks(t, q)
	q.Done("foo")
	take(t, q, "foo") // client-go's drain may have ended by then: nothing was held for a moment
	returns(t, "the drain", func() { <-drained })
	_, shutdown := q.Get()
	is(t, "shutdown", shutdown, true)
}

// What is in line at a shutdown is still handed out.
func TestGetAfterShutDown(t *testing.T) {
	q := workqueue.NewTyped[string]()
	q.Add("foo")
	q.ShutDown()
	q.ShutDown()
	take(t, q, "foo")
	item, shutdown := q.Get()
	is(t, "item", item, "")
	is(t, "shutdown", shutdown, true)
}

func collected(t *testing.T, what string, use func(item *[]byte)) {
	var gone atomic.Bool
	item := &[]byte{1, 2, 3}
	runtime.AddCleanup(item, func(int) { gone.Store(true) }, 0)
	use(item)
	item = nil
	for end := time.Now().Add(20 * time.Second); !gone.Load(); runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%s: something is kept of an item that is done", what)
		}
	}
}

func TestGarbageCollection(t *testing.T) {
	q := workqueue.New()
	defer runtime.KeepAlive(q)
	collected(t, "queue", func(item *[]byte) {
		q.Add(item)
		got, _ := q.Get()
		is(t, "item", got, any(item))
		q.Add(item)
		q.Done(item)
		q.Get()
		q.Done(item)
	})

	clock := pace.New()
	limiter := workqueue.NewTypedMaxOfRateLimiter(workqueue.DefaultTypedItemBasedRateLimiter[any](),
		workqueue.NewTypedWithMaxWaitRateLimiter(
			workqueue.NewTypedItemFastSlowRateLimiter[any](time.Second, time.Second, 1), time.Hour))
	limited := workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[any]{Clock: clock})
	defer limited.ShutDown()
	pace.Keep(clock, limited, any("never"))
	collected(t, "limited", func(item *[]byte) {
		clock.Waits(func() { limited.AddRateLimited(item) })
		clock.Step(time.Minute)
		is(t, "NumRequeues", limited.NumRequeues(item), 1)
		got, _ := limited.Get()
		is(t, "item", got, any(item))
		limited.Done(item)
		limited.Forget(item)
		// client-go keeps the last that came due until another one waits.
		clock.Waits(func() { limited.AddAfter("other", time.Hour) })
	})
	defer runtime.KeepAlive(limiter)
}

type pair struct {
	a any
	b int
}

// Whatever can be compared is a key, and comes back as it went in.
func TestKeys(t *testing.T) {
	n := 5
	items := []any{
		nil, 0, int64(0), uint8(0), "", "foo", 'f', 3.5, complex(1, 2), true, &n, new(int),
		[3]int{1, 2, 3}, [0]int{}, struct{}{}, pair{"x", 1}, pair{nil, 1}, pair{1, 1}, &pair{},
		make(chan int), time.Unix(1, 2), fmt.Errorf("an error"), any(nil), (*int)(nil), (*pair)(nil),
	}
	q := workqueue.New()
	for range 2 {
		for _, item := range items {
			q.Add(item)
		}
	}
	is(t, "Len", q.Len(), len(items)-1) // nil is there twice
	seen := map[any]bool{}
	for _, want := range items {
		if seen[want] {
			continue
		}
		seen[want] = true
		item, _ := q.Get()
		is(t, "item", item, want)
		q.Add(item)
	}
	is(t, "Len", q.Len(), 0)
	for item := range seen {
		q.Done(item)
	}
	is(t, "Len", q.Len(), len(seen))
}

// What is not equal to itself never merges.
func TestNaN(t *testing.T) {
	q := workqueue.NewTyped[float64]()
	zero := 0.0
	nan := zero / zero
	q.Add(nan)
	q.Add(nan)
	q.Add(1)
	is(t, "Len", q.Len(), 3)
	for range 2 {
		item, _ := q.Get()
		is(t, "is NaN", item != item, true)
		q.Done(item)
	}
	take(t, q, 1)
	is(t, "Len", q.Len(), 0)
}

// An interface may hold what cannot be compared; that is no key.
func TestNoKey(t *testing.T) {
	q := workqueue.New()
	defer func() {
		if recover() == nil {
			t.Error("a slice is accepted as a key")
		}
	}()
	q.Add([]int{1})
}
