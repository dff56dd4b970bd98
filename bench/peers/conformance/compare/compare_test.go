// Package compare calls client-go's queue and libwq's with the same names, one after the
// other, and compares what they answer, call by call.
//
// Left out is what differs on purpose (../README.md): equal due times, Done of an item that
// nobody holds, AddRateLimited after a shutdown, how long an item that was late has waited.
package compare

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"wq/bench/peers/conformance/pace"
	wq "wq/bench/peers/conformance/workqueue"
)

var (
	seed = flag.Uint64("seed", 0, "run this sequence alone")
	runs = flag.Uint64("runs", 300, "sequences of each kind")
)

// Sequences by their seeds; one that fails says its own, and -seed repeats it.
func eachSeed(t *testing.T, run func(t *testing.T, r *rand.Rand)) {
	first, last := uint64(1), *runs
	if *seed != 0 {
		first, last = *seed, *seed
	}
	t.Logf("seeds %d to %d", first, last)
	for s := first; s <= last && !t.Failed(); s++ {
		t.Run(fmt.Sprintf("seed=%d", s), func(t *testing.T) { run(t, rand.New(rand.NewPCG(s, 0))) })
	}
}

// Both answer the same, or the sequence so far is shown.
type script struct {
	t     *testing.T
	lines []string
}

func (s *script) same(call string, theirs, ours any) {
	s.t.Helper()
	a, b := fmt.Sprint(theirs), fmt.Sprint(ours)
	s.lines = append(s.lines, call+" -> "+a)
	if a != b {
		s.t.Fatalf("%s\n%s: client-go answers %s, wq %s", strings.Join(s.lines, "\n"), call, a, b)
	}
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not return", what)
	}
}

// ---- limiters alone ----

// A tree of limiters, made twice from the same numbers.
func limiters(r *rand.Rand, depth int) (name string, theirs workqueue.TypedRateLimiter[any], ours wq.TypedRateLimiter[any]) {
	d := func() time.Duration { return time.Duration(r.IntN(5000)) * time.Millisecond }
	kind := r.IntN(4)
	if depth == 0 {
		kind %= 2
	}
	switch kind {
	case 0:
		base, longest := d(), d()
		return fmt.Sprintf("exponential(%v,%v)", base, longest),
			workqueue.NewTypedItemExponentialFailureRateLimiter[any](base, longest),
			wq.NewTypedItemExponentialFailureRateLimiter[any](base, longest)
	case 1:
		fast, slow, n := d(), d(), r.IntN(5)-1
		return fmt.Sprintf("fastslow(%v,%v,%d)", fast, slow, n),
			workqueue.NewTypedItemFastSlowRateLimiter[any](fast, slow, n),
			wq.NewTypedItemFastSlowRateLimiter[any](fast, slow, n)
	case 2:
		longest := d()
		name, a, b := limiters(r, depth-1)
		return fmt.Sprintf("maxwait(%s,%v)", name, longest),
			workqueue.NewTypedWithMaxWaitRateLimiter(a, longest), wq.NewTypedWithMaxWaitRateLimiter(b, longest)
	default:
		var names []string
		var as []workqueue.TypedRateLimiter[any]
		var bs []wq.TypedRateLimiter[any]
		for range r.IntN(4) {
			name, a, b := limiters(r, depth-1)
			names, as, bs = append(names, name), append(as, a), append(bs, b)
		}
		return fmt.Sprintf("maxof(%s)", strings.Join(names, ",")),
			workqueue.NewTypedMaxOfRateLimiter(as...), wq.NewTypedMaxOfRateLimiter(bs...)
	}
}

func key(r *rand.Rand) any {
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n < 4:
		return n
	case n < 7:
		return fmt.Sprint("k", n)
	default:
		return struct{ a, b any }{n, "k"}
	}
}

func TestLimiters(t *testing.T) {
	eachSeed(t, func(t *testing.T, r *rand.Rand) {
		name, theirs, ours := limiters(r, 3)
		s := script{t, []string{name}}
		for range 200 {
			k := key(r)
			switch n := r.IntN(10); {
			case n < 6:
				s.same(fmt.Sprint("when ", k), theirs.When(k), ours.When(k))
			case n < 9:
				s.same(fmt.Sprint("requeues ", k), theirs.NumRequeues(k), ours.NumRequeues(k))
			default:
				theirs.Forget(k)
				ours.Forget(k)
				s.same(fmt.Sprint("forget ", k), theirs.NumRequeues(k), ours.NumRequeues(k))
			}
		}
	})
}

// ---- queues ----

// One of the two queues, and what happens in it.
type side struct {
	q     workqueue.TypedRateLimitingInterface[any]
	clock *pace.Clock
	uniq  func() time.Duration
	delay time.Duration // that the limiter answered last

	mu  sync.Mutex
	log []string // what metrics and orders were told
}

func (s *side) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// In which order several metrics are told of one thing does not matter.
func (s *side) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	slices.Sort(log)
	return log
}

type told struct {
	s    *side
	name string
}

func (m told) Inc()        { m.s.tell("%s up", m.name) }
func (m told) Dec()        { m.s.tell("%s down", m.name) }
func (m told) Set(float64) {} // comes by itself, some time

func (m told) Observe(v float64) {
	if m.name == "latency" {
		v = 0 // client-go counts from when it saw that the time had come, libwq from that time
	}
	m.s.tell("%s %v", m.name, v)
}

type provider struct{ s *side }

func (p provider) NewDepthMetric(string) workqueue.GaugeMetric       { return told{p.s, "depth"} }
func (p provider) NewAddsMetric(string) workqueue.CounterMetric      { return told{p.s, "adds"} }
func (p provider) NewLatencyMetric(string) workqueue.HistogramMetric { return told{p.s, "latency"} }
func (p provider) NewWorkDurationMetric(string) workqueue.HistogramMetric {
	return told{p.s, "work"}
}
func (p provider) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return told{p.s, "unfinished"}
}
func (p provider) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return told{p.s, "longest"}
}
func (p provider) NewRetriesMetric(string) workqueue.CounterMetric { return told{p.s, "retries"} }

// The same provider with the other package's types.
type wqProvider struct{ s *side }

func (p wqProvider) NewDepthMetric(string) wq.GaugeMetric            { return told{p.s, "depth"} }
func (p wqProvider) NewAddsMetric(string) wq.CounterMetric           { return told{p.s, "adds"} }
func (p wqProvider) NewLatencyMetric(string) wq.HistogramMetric      { return told{p.s, "latency"} }
func (p wqProvider) NewWorkDurationMetric(string) wq.HistogramMetric { return told{p.s, "work"} }
func (p wqProvider) NewUnfinishedWorkSecondsMetric(string) wq.SettableGaugeMetric {
	return told{p.s, "unfinished"}
}
func (p wqProvider) NewLongestRunningProcessorSecondsMetric(string) wq.SettableGaugeMetric {
	return told{p.s, "longest"}
}
func (p wqProvider) NewRetriesMetric(string) wq.CounterMetric { return told{p.s, "retries"} }

// The limiter, with some nanoseconds that no other time has: equal times are handed out in
// any order by client-go.
type uneven struct {
	workqueue.TypedRateLimiter[any]
	s *side
}

func (u uneven) When(item any) time.Duration {
	u.s.delay = u.TypedRateLimiter.When(item)
	if u.s.delay > 0 {
		u.s.delay += u.s.uniq()
	}
	return u.s.delay
}

// Nanoseconds that no call before has got; clocks are stepped by whole milliseconds.
func counter() func() time.Duration {
	var n time.Duration
	return func() time.Duration { n++; return n }
}

type two struct {
	script
	r            *rand.Rand
	theirs, ours *side
	held         []any
	shut         bool
}

func newTwo(t *testing.T, r *rand.Rand) *two {
	name, a, b := limiters(r, 2)
	u := &two{script: script{t, []string{name}}, r: r,
		theirs: &side{clock: pace.New(), uniq: counter()},
		ours:   &side{clock: pace.New(), uniq: counter()}}
	u.theirs.q = workqueue.NewTypedRateLimitingQueueWithConfig(uneven{a, u.theirs},
		workqueue.TypedRateLimitingQueueConfig[any]{
			Name: "two", Clock: u.theirs.clock, MetricsProvider: provider{u.theirs}})
	u.ours.q = wq.NewTypedRateLimitingQueueWithConfig(uneven{b, u.ours},
		wq.TypedRateLimitingQueueConfig[any]{
			Name: "two", Clock: u.ours.clock, MetricsProvider: wqProvider{u.ours}})
	for _, s := range []*side{u.theirs, u.ours} {
		pace.Keep(s.clock, s.q, any("never"))
	}
	return u
}

// Does something to both, and compares what has become of them.
func (u *two) call(name string, do func(s *side) any) {
	u.t.Helper()
	answer := func(s *side) string {
		a := do(s)
		return fmt.Sprint(a, " len ", s.q.Len(), " told ", s.told())
	}
	u.same(name, answer(u.theirs), answer(u.ours))
}

func (u *two) after(s *side, k any, d time.Duration) {
	if d > 0 && !u.shut {
		d += s.uniq()
		s.clock.Waits(func() { s.q.AddAfter(k, d) })
	} else {
		s.q.AddAfter(k, d)
	}
}

func (s *side) limited(k any) any {
	mark := s.clock.Mark()
	s.q.AddRateLimited(k)
	if s.delay > 0 {
		s.clock.Set(mark)
	}
	return s.delay
}

func (u *two) get() {
	var got any
	u.call("get", func(s *side) any {
		item, shutdown := s.q.Get()
		got = item
		if shutdown {
			return "shutdown"
		}
		return item
	})
	u.held = append(u.held, got)
}

func (u *two) done() {
	i := u.r.IntN(len(u.held))
	k := u.held[i]
	u.held = slices.Delete(u.held, i, i+1)
	u.call(fmt.Sprint("done ", k), func(s *side) any { s.q.Done(k); return "" })
}

func (u *two) step(d time.Duration) {
	u.call(fmt.Sprint("step ", d), func(s *side) any {
		if u.shut {
			s.clock.FakeClock.Step(d)
		} else {
			s.clock.Step(d)
		}
		return ""
	})
}

func (u *two) any() {
	k := key(u.r)
	d := time.Duration(u.r.IntN(3000)) * time.Millisecond
	switch n := u.r.IntN(100); {
	case n < 20:
		u.call(fmt.Sprint("add ", k), func(s *side) any { s.q.Add(k); return "" })
	case n < 35:
		if u.r.IntN(8) == 0 {
			d = -d
		}
		u.call(fmt.Sprint("after ", k, " ", d), func(s *side) any { u.after(s, k, d); return "" })
	case n < 45 && !u.shut:
		u.call(fmt.Sprint("limited ", k), func(s *side) any { return s.limited(k) })
	case n < 50:
		u.call(fmt.Sprint("requeues ", k), func(s *side) any { return s.q.NumRequeues(k) })
	case n < 54:
		u.call(fmt.Sprint("forget ", k), func(s *side) any { s.q.Forget(k); return "" })
	case n < 70 && u.theirs.q.Len() > 0:
		u.get()
	case n < 84 && len(u.held) > 0:
		u.done()
	case n < 99:
		u.step(d)
	}
}

// Work through what is left, and see the end.
func (u *two) finish() {
	for len(u.held) > 0 || u.theirs.q.Len() > 0 {
		if u.theirs.q.Len() > 0 && (len(u.held) == 0 || u.r.IntN(2) == 0) {
			u.get()
		} else {
			u.done()
		}
	}
	u.get()
}

func TestQueues(t *testing.T) {
	eachSeed(t, func(t *testing.T, r *rand.Rand) {
		u := newTwo(t, r)
		for range 50 + r.IntN(300) {
			u.any()
		}
		u.shut = true
		var drained sync.WaitGroup
		if r.IntN(2) == 0 {
			u.call("shutdown", func(s *side) any { s.q.ShutDown(); return s.q.ShuttingDown() })
		} else {
			u.call("drain", func(s *side) any {
				drained.Go(s.q.ShutDownWithDrain)
				for !s.q.ShuttingDown() {
					time.Sleep(time.Microsecond)
				}
				return ""
			})
		}
		for range r.IntN(50) {
			u.any()
		}
		u.finish()
		done := make(chan struct{})
		go func() {
			drained.Wait()
			u.theirs.q.ShutDown()
			u.ours.q.ShutDown()
			close(done)
		}()
		within(t, "the drain", done)
	})
}

// ---- orders ----

// An order of one's own, that tells what it is told: the most often touched first, then
// the last.
type order struct {
	s     *side
	items []any
	times map[any]int
}

func (o *order) Touch(item any) { o.s.tell("touch %v", item); o.times[item]++ }
func (o *order) Len() int       { return len(o.items) }

func (o *order) Push(item any) {
	o.s.tell("push %v", item)
	o.items = append(o.items, item)
}

func (o *order) Pop() any {
	best := len(o.items) - 1
	for i := best; i >= 0; i-- {
		if o.times[o.items[i]] > o.times[o.items[best]] {
			best = i
		}
	}
	item := o.items[best]
	o.items = slices.Delete(o.items, best, best+1)
	delete(o.times, item)
	o.s.tell("pop %v", item)
	return item
}

// Queues that no item waits in, with an order of one's own.
type plain struct{ workqueue.TypedInterface[any] }

func (plain) AddAfter(any, time.Duration) {}
func (plain) AddRateLimited(any)          {}
func (plain) Forget(any)                  {}
func (plain) NumRequeues(any) int         { return 0 }

func TestOrders(t *testing.T) {
	eachSeed(t, func(t *testing.T, r *rand.Rand) {
		u := &two{script: script{t, nil}, r: r, theirs: &side{clock: pace.New()}, ours: &side{clock: pace.New()}}
		u.theirs.q = plain{workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[any]{
			Name: "two", Clock: u.theirs.clock, MetricsProvider: provider{u.theirs},
			Queue: &order{s: u.theirs, times: map[any]int{}}})}
		u.ours.q = plain{wq.NewTypedWithConfig(wq.TypedQueueConfig[any]{
			Name: "two", Clock: u.ours.clock, MetricsProvider: wqProvider{u.ours},
			Queue: &order{s: u.ours, times: map[any]int{}}})}
		for range 200 {
			k := key(r)
			switch n := r.IntN(10); {
			case n < 5:
				u.call(fmt.Sprint("add ", k), func(s *side) any { s.q.Add(k); return "" })
			case n < 7 && u.theirs.q.Len() > 0:
				u.get()
			case n < 9 && len(u.held) > 0:
				u.done()
			default:
				u.step(time.Duration(r.IntN(100)) * time.Millisecond)
			}
		}
		u.call("shutdown", func(s *side) any { s.q.ShutDown(); return s.q.ShuttingDown() })
		u.finish()
	})
}
