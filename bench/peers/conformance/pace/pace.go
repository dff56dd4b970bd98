// Package pace has a stepped clock that knows when a queue has seen a step: client-go
// moves keys that come due in a goroutine of its own, some time after the step, and a test
// that compares answers has to wait for it.
//
// The sign is that the goroutine sets its next timer. It does so after every key that is
// to wait and after every timer that fired, as long as some key waits: Keep sees to that.
package pace

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// Clock is a stepped clock for one delaying queue.
type Clock struct {
	*testingclock.FakeClock

	mu    sync.Mutex
	set   *sync.Cond
	count int       // L: timers that were set
	due   time.Time // L: when the last of them fires
}

// New makes a clock that stands at the beginning of Unix time.
func New() *Clock {
	c := &Clock{FakeClock: testingclock.NewFakeClock(time.Unix(0, 0))}
	c.set = sync.NewCond(&c.mu)
	return c
}

// NewTimer sets a timer, and says so.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.due = c.Now().Add(d)
	c.set.Broadcast()
	return timer
}

const heartbeat = 10 * time.Second

// NewTicker leaves client-go's heartbeat out: it makes the goroutine look at times that
// nobody can foresee.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	if d == heartbeat {
		return still{}
	}
	return c.FakeClock.NewTicker(d)
}

type still struct{}

func (still) C() <-chan time.Time { return nil }
func (still) Stop()               {}

// Mark says how many timers were set so far.
func (c *Clock) Mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Set returns when another timer has been set since the mark.
func (c *Clock) Set(mark int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.count == mark {
		c.set.Wait()
	}
}

// Waits makes a call that lets a key wait, and returns when the queue has taken note.
func (c *Clock) Waits(call func()) {
	mark := c.Mark()
	call()
	c.Set(mark)
}

// Step moves the clock and returns when everything that has come due is in line.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	fires := !c.due.IsZero() && !c.due.After(c.Now().Add(d))
	c.mu.Unlock()
	if fires {
		c.Waits(func() { c.FakeClock.Step(d) })
	} else {
		c.FakeClock.Step(d)
	}
}

// Delaying is the part of a queue that Keep needs.
type Delaying[T any] interface{ AddAfter(item T, d time.Duration) }

// Keep lets an item wait for ever.
func Keep[T any](c *Clock, q Delaying[T], item T) {
	c.Waits(func() { q.AddAfter(item, 1e6*time.Hour) })
}
