package workqueue

import (
	"runtime"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DelayingInterface is TypedDelayingInterface for any value.
//
// Deprecated: use TypedDelayingInterface instead.
type DelayingInterface TypedDelayingInterface[any]

// TypedDelayingInterface is a queue whose items may come later.
type TypedDelayingInterface[T comparable] interface {
	TypedInterface[T]
	// AddAfter adds an item when the time has passed.
	AddAfter(item T, duration time.Duration)
}

// DelayingQueueConfig is TypedDelayingQueueConfig for any value.
//
// Deprecated: use TypedDelayingQueueConfig instead.
type DelayingQueueConfig = TypedDelayingQueueConfig[any]

// TypedDelayingQueueConfig says what kind of queue it is to be.
type TypedDelayingQueueConfig[T comparable] struct {
	// Logger is not used: libwq has nothing to say.
	Logger *klog.Logger
	// Name that the metrics carry; without one there are none.
	Name string
	// MetricsProvider instead of the global one.
	MetricsProvider MetricsProvider
	// Clock instead of the real one.
	Clock clock.WithTicker
	// Queue that items are added to when their time has come, instead of a new one.
	Queue TypedInterface[T]
}

// NewDelayingQueue makes a queue.
//
// Deprecated: use NewTypedDelayingQueue instead.
func NewDelayingQueue() DelayingInterface {
	return NewDelayingQueueWithConfig(DelayingQueueConfig{})
}

// NewTypedDelayingQueue makes a queue.
func NewTypedDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// NewDelayingQueueWithConfig makes a queue.
//
// Deprecated: use NewTypedDelayingQueueWithConfig instead.
func NewDelayingQueueWithConfig(config DelayingQueueConfig) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(config)
}

// TypedNewDelayingQueue makes a queue.
//
// Deprecated: use NewTypedDelayingQueueWithConfig instead.
func TypedNewDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueue[T]()
}

// NewTypedDelayingQueueWithConfig makes a queue.
func NewTypedDelayingQueueWithConfig[T comparable](config TypedDelayingQueueConfig[T]) TypedDelayingInterface[T] {
	if config.Queue != nil {
		return newDelayingOver(config)
	}
	return newDelaying(config, nil)
}

// NewDelayingQueueWithCustomQueue makes a queue.
//
// Deprecated: use NewDelayingQueueWithConfig instead.
func NewDelayingQueueWithCustomQueue(q Interface, name string) DelayingInterface {
	return NewDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Queue: q})
}

// NewNamedDelayingQueue makes a queue.
//
// Deprecated: use NewDelayingQueueWithConfig instead.
func NewNamedDelayingQueue(name string) DelayingInterface {
	return NewDelayingQueueWithConfig(DelayingQueueConfig{Name: name})
}

// NewDelayingQueueWithCustomClock makes a queue.
//
// Deprecated: use NewDelayingQueueWithConfig instead.
func NewDelayingQueueWithCustomClock(clock clock.WithTicker, name string) DelayingInterface {
	return NewDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Clock: clock})
}

// delayingType is a queue of libwq's, in which items may wait.
type delayingType[T comparable] struct {
	*Typed[T]

	// Always empty: an item waits when AddAfter returns. client-go's tests look here, to
	// see whether its other goroutine has taken what AddAfter wrote down.
	waitingForAddCh chan struct{}
}

func newDelaying[T comparable](config TypedDelayingQueueConfig[T], limiter TypedRateLimiter[T]) *delayingType[T] {
	m := newMetrics(config.Name, config.MetricsProvider)
	m.retries = newRetries(config.Name, config.MetricsProvider)
	return &delayingType[T]{Typed: newTyped(setup[T]{
		clock:        config.Clock,
		metrics:      m,
		updatePeriod: defaultUpdatePeriod,
		delays:       true,
		limiter:      limiter,
	})}
}

func (q *delayingType[T]) AddAfter(item T, duration time.Duration) {
	defer runtime.KeepAlive(q.Typed)
	q.core.AddAfter(item, duration)
}

// delayingOver adds to a queue that was given. Items wait in one of libwq's beside it.
type delayingOver[T comparable] struct {
	TypedInterface[T]
	room    *delayingType[T]
	retries CounterMetric
}

func newDelayingOver[T comparable](config TypedDelayingQueueConfig[T]) *delayingOver[T] {
	q := &delayingOver[T]{
		TypedInterface: config.Queue,
		room:           newDelaying(TypedDelayingQueueConfig[T]{Clock: config.Clock}, nil),
		retries:        newRetries(config.Name, config.MetricsProvider),
	}
	go q.move()
	return q
}

func (q *delayingOver[T]) move() {
	for {
		item, shutdown := q.room.Get()
		if shutdown {
			return
		}
		q.Add(item)
		q.room.Done(item)
	}
}

func (q *delayingOver[T]) AddAfter(item T, duration time.Duration) {
	if q.ShuttingDown() {
		return
	}
	if q.retries != nil {
		q.retries.Inc()
	}
	if duration <= 0 {
		q.Add(item)
		return
	}
	q.room.AddAfter(item, duration)
}

func (q *delayingOver[T]) ShutDown() {
	q.room.ShutDown()
	q.TypedInterface.ShutDown()
}

func (q *delayingOver[T]) ShutDownWithDrain() {
	q.room.ShutDown()
	q.TypedInterface.ShutDownWithDrain()
}
