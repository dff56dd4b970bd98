package workqueue

import (
	"runtime"
	"time"

	"k8s.io/utils/clock"
)

// Interface is TypedInterface for any value.
//
// Deprecated: use TypedInterface instead.
type Interface TypedInterface[any]

// TypedInterface is what every queue can do.
type TypedInterface[T comparable] interface {
	Add(item T)
	Len() int
	Get() (item T, shutdown bool)
	Done(item T)
	ShutDown()
	ShutDownWithDrain()
	ShuttingDown() bool
}

// Queue is an order of one's own. It is called under the queue's lock.
type Queue[T comparable] interface {
	// Touch is told that an item was added again.
	Touch(item T)
	// Push adds an item.
	Push(item T)
	// Len says how many there are. libwq counts itself and does not ask.
	Len() int
	// Pop takes out the next item.
	Pop() (item T)
}

// DefaultQueue is first in, first out. A queue that is given it as it is has libwq's own;
// this one is for orders that are built upon it.
func DefaultQueue[T comparable]() Queue[T] {
	return new(fifo[T])
}

type fifo[T comparable] []T

func (f *fifo[T]) Touch(item T) {}
func (f *fifo[T]) Push(item T)  { *f = append(*f, item) }
func (f *fifo[T]) Len() int     { return len(*f) }

func (f *fifo[T]) Pop() (item T) {
	item, (*f)[0] = (*f)[0], item // nothing is kept from the collector
	*f = (*f)[1:]
	return item
}

// QueueConfig is TypedQueueConfig for any value.
//
// Deprecated: use TypedQueueConfig instead.
type QueueConfig = TypedQueueConfig[any]

// TypedQueueConfig says what kind of queue it is to be.
type TypedQueueConfig[T comparable] struct {
	// Name that the metrics carry; without one there are none.
	Name string
	// MetricsProvider instead of the global one.
	MetricsProvider MetricsProvider
	// Clock instead of the real one.
	Clock clock.WithTicker
	// Queue is the order; first in, first out by default.
	Queue Queue[T]
}

// New makes a queue.
//
// Deprecated: use NewTyped instead.
func New() *Type { return NewWithConfig(QueueConfig{}) }

// NewTyped makes a queue.
func NewTyped[T comparable]() *Typed[T] { return NewTypedWithConfig(TypedQueueConfig[T]{}) }

// NewWithConfig makes a queue.
//
// Deprecated: use NewTypedWithConfig instead.
func NewWithConfig(config QueueConfig) *Type { return NewTypedWithConfig(config) }

// NewTypedWithConfig makes a queue.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	return newQueueWithConfig(config, defaultUpdatePeriod)
}

// NewNamed makes a queue with a name.
//
// Deprecated: use NewWithConfig instead.
func NewNamed(name string) *Type { return NewWithConfig(QueueConfig{Name: name}) }

// client-go's tests make queues by this name, too.
func newQueueWithConfig[T comparable](config TypedQueueConfig[T], updatePeriod time.Duration) *Typed[T] {
	return newTyped(setup[T]{
		clock:        config.Clock,
		order:        config.Queue,
		metrics:      newMetrics(config.Name, config.MetricsProvider),
		updatePeriod: updatePeriod,
	})
}

// Type is Typed for any value.
//
// Deprecated: use Typed instead.
type Type = Typed[any]

// Typed is a queue. libwq's memory is given back when nobody can reach it any more; each
// method keeps it alive until it has returned.
type Typed[t comparable] struct {
	core *core[t]
}

func newTyped[T comparable](s setup[T]) *Typed[T] {
	q := &Typed[T]{newCore(s)}
	runtime.AddCleanup(q, func(c *core[T]) { go c.close() }, q.core)
	return q
}

// Add marks an item as needing work.
func (q *Typed[T]) Add(item T) {
	defer runtime.KeepAlive(q)
	q.core.Add(item)
}

// Len counts the items in line.
func (q *Typed[T]) Len() int {
	defer runtime.KeepAlive(q)
	return q.core.len()
}

// Get takes the next item, waiting until there is one or the queue is shut down.
func (q *Typed[T]) Get() (item T, shutdown bool) {
	defer runtime.KeepAlive(q)
	return q.core.Get()
}

// Done ends the work on an item.
func (q *Typed[T]) Done(item T) {
	defer runtime.KeepAlive(q)
	q.core.Done(item)
}

// ShutDown refuses items from now on.
func (q *Typed[T]) ShutDown() {
	defer runtime.KeepAlive(q)
	q.core.ShutDown()
}

// ShutDownWithDrain refuses items and waits until all are done.
func (q *Typed[T]) ShutDownWithDrain() {
	defer runtime.KeepAlive(q)
	q.core.ShutDownWithDrain()
}

// ShuttingDown says whether one of the two was called.
func (q *Typed[T]) ShuttingDown() bool {
	defer runtime.KeepAlive(q)
	return q.core.shuttingDown()
}
