package workqueue

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
)

// What a queue is made of.
type setup[T comparable] struct {
	clock        clock.WithTicker
	order        Queue[T] // nil: libwq's own
	metrics      metrics
	updatePeriod time.Duration // of the metrics that libwq only has when it is asked
	delays       bool
	limiter      TypedRateLimiter[T]
}

// core is a queue without its name, to which handles and goroutines may point without
// keeping Typed alive.
type core[T comparable] struct {
	lib
	keys *keys[T]

	clock clock.WithTicker
	start time.Time
	last  atomic.Int64 // no time was later

	// Held in callbacks, beside libwq's lock, for the race detector: it does not see
	// that one. Whoever holds it calls nothing of libwq's.
	inside  sync.Mutex
	order   Queue[T]
	nodes   map[T]unsafe.Pointer // what the order holds
	metrics metrics

	counting atomic.Int32 // NumRequeues that are under way

	look     chan chan struct{} // nil: nobody sleeps by Go's clock
	stop     chan struct{}
	stopOnce sync.Once
	wg       sync.WaitGroup
}

func newCore[T comparable](s setup[T]) *core[T] {
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	// The default order is libwq's, by whichever name it is asked for.
	if _, ok := s.order.(*fifo[T]); ok {
		s.order = nil
	}
	_, real := s.clock.(clock.RealClock)
	c := &core[T]{
		keys:    newKeys[T](),
		clock:   s.clock,
		start:   s.clock.Now(),
		order:   s.order,
		nodes:   map[T]unsafe.Pointer{},
		metrics: s.metrics,
		stop:    make(chan struct{}),
	}
	p := parts{clock: !real, order: s.order != nil, metrics: s.metrics != metrics{}}
	if s.limiter != nil {
		p.limiter = askInside[T]{ask[T]{c.keys, s.limiter}, c}
	}
	c.open(c, p)
	if s.metrics.unfinished != nil {
		c.wg.Go(func() { c.updateUnfinishedWork(s.updatePeriod) })
	}
	// On the real clock libwq needs nobody; but it tells metrics what has come due only
	// when somebody comes to look.
	if s.delays && (!real || p.metrics) {
		c.look = make(chan chan struct{})
		c.wg.Go(c.sleep)
	}
	return c
}

// ---- calls ----

func (c *core[T]) with(item T, call func(id uint64)) {
	id := c.keys.pin(item)
	defer c.keys.unpin(item, c.knows)
	call(id)
}

func (c *core[T]) Add(item T) { c.with(item, c.add) }

func (c *core[T]) AddAfter(item T, d time.Duration) {
	c.with(item, func(id uint64) { c.addAfter(id, d) })
	c.armed()
}

func (c *core[T]) AddRateLimited(item T) {
	c.with(item, c.addLimited)
	c.armed()
}

func (c *core[T]) Get() (item T, shutdown bool) {
	id, ok := c.get()
	c.keys.sync()
	if !ok {
		return item, true
	}
	return c.keys.item(id), false
}

func (c *core[T]) Done(item T)   { c.with(item, c.done) }
func (c *core[T]) Forget(item T) { c.with(item, c.forget) }

func (c *core[T]) NumRequeues(item T) (n int) {
	c.counting.Add(1)
	defer c.counting.Add(-1)
	c.with(item, func(id uint64) { n = c.numRequeues(id) })
	return n
}

func (c *core[T]) ShutDown() {
	c.halt()
	c.shutDown()
	c.keys.sweep(c.knows)
	c.wg.Wait()
}

func (c *core[T]) ShutDownWithDrain() {
	c.halt()
	c.drain()
	c.keys.sweep(c.knows)
	c.wg.Wait()
}

func (c *core[T]) halt() { c.stopOnce.Do(func() { close(c.stop) }) }

// Nobody can call the queue any more.
func (c *core[T]) close() {
	c.halt()
	c.wg.Wait()
	c.inside.Lock()
	c.metrics = metrics{} // what is given up now was not worked on
	c.inside.Unlock()
	c.free()
}

// ---- the clock ----

// libwq's time begins with the queue and never goes back.
func (c *core[T]) now() int64 {
	now := int64(c.clock.Since(c.start))
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// sleep tells libwq when its next key has come due by Go's clock. A clock that is stepped
// tells only those of a step who have set a timer.
func (c *core[T]) sleep() {
	var seen chan struct{}
	for {
		timer := c.arm()
		if seen != nil {
			close(seen)
			seen = nil
		}
		select {
		case <-timer.C():
		case seen = <-c.look:
		case <-c.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (c *core[T]) arm() clock.Timer {
	for tries := 0; ; {
		due, now := c.nextDue(), c.time()
		if due <= now {
			c.clockChanged()
			continue
		}
		timer := c.clock.NewTimer(time.Duration(due - now))
		// A step in between makes the timer late by as much. A clock that runs by itself has
		// always moved, but by little.
		if tries++; c.time() == now || tries == 10 {
			return timer
		}
		timer.Stop()
	}
}

// armed returns when the sleeper has seen what waits now: a step after that is not missed.
func (c *core[T]) armed() {
	if c.look == nil {
		return
	}
	seen := make(chan struct{})
	select {
	case c.look <- seen:
		<-seen
	case <-c.stop:
	}
}

// ---- the limiter ----

type askInside[T comparable] struct {
	ask[T]
	c *core[T]
}

func (a askInside[T]) when(id uint64) int64 {
	a.c.inside.Lock()
	defer a.c.inside.Unlock()
	return a.ask.when(id)
}

func (a askInside[T]) forget(id uint64) {
	a.c.inside.Lock()
	defer a.c.inside.Unlock()
	a.ask.forget(id)
}

// libwq's Get asks, too, for a number that client-go's items do not have.
func (a askInside[T]) numRequeues(id uint64) int {
	if a.c.counting.Load() == 0 {
		return 0
	}
	a.c.inside.Lock()
	defer a.c.inside.Unlock()
	return a.ask.numRequeues(id)
}

// ---- the order ----

func (c *core[T]) push(id uint64, node unsafe.Pointer) {
	c.inside.Lock()
	defer c.inside.Unlock()
	item := c.keys.item(id)
	c.nodes[item] = node
	c.order.Push(item)
}

func (c *core[T]) pop() unsafe.Pointer {
	c.inside.Lock()
	defer c.inside.Unlock()
	item := c.order.Pop()
	node := c.nodes[item]
	if node == nil {
		panic("wq: Pop of the queue's order answered what was not pushed")
	}
	delete(c.nodes, item)
	return node
}

func (c *core[T]) touch(id uint64) {
	c.inside.Lock()
	defer c.inside.Unlock()
	c.order.Touch(c.keys.item(id))
}
