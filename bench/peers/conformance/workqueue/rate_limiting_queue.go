package workqueue

import (
	"runtime"

	"k8s.io/utils/clock"
)

// RateLimitingInterface is TypedRateLimitingInterface for any value.
//
// Deprecated: use TypedRateLimitingInterface instead.
type RateLimitingInterface TypedRateLimitingInterface[any]

// TypedRateLimitingInterface is a queue that knows how long failed items wait.
type TypedRateLimitingInterface[T comparable] interface {
	TypedDelayingInterface[T]
	// AddRateLimited adds an item as long from now as the limiter says.
	AddRateLimited(item T)
	// Forget clears what the limiter remembers of an item; Done is due all the same.
	Forget(item T)
	// NumRequeues says how often the item failed.
	NumRequeues(item T) int
}

// RateLimitingQueueConfig is TypedRateLimitingQueueConfig for any value.
//
// Deprecated: use TypedRateLimitingQueueConfig instead.
type RateLimitingQueueConfig = TypedRateLimitingQueueConfig[any]

// TypedRateLimitingQueueConfig says what kind of queue it is to be.
type TypedRateLimitingQueueConfig[T comparable] struct {
	// Name that the metrics carry; without one there are none.
	Name string
	// MetricsProvider instead of the global one.
	MetricsProvider MetricsProvider
	// Clock instead of the real one.
	Clock clock.WithTicker
	// DelayingQueue that items are added to, instead of a new one.
	DelayingQueue TypedDelayingInterface[T]
}

// NewRateLimitingQueue makes a queue.
//
// Deprecated: use NewTypedRateLimitingQueue instead.
func NewRateLimitingQueue(rateLimiter RateLimiter) RateLimitingInterface {
	return NewRateLimitingQueueWithConfig(rateLimiter, RateLimitingQueueConfig{})
}

// NewTypedRateLimitingQueue makes a queue.
func NewTypedRateLimitingQueue[T comparable](rateLimiter TypedRateLimiter[T]) TypedRateLimitingInterface[T] {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, TypedRateLimitingQueueConfig[T]{})
}

// NewRateLimitingQueueWithConfig makes a queue.
//
// Deprecated: use NewTypedRateLimitingQueueWithConfig instead.
func NewRateLimitingQueueWithConfig(rateLimiter RateLimiter, config RateLimitingQueueConfig) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, config)
}

// NewTypedRateLimitingQueueWithConfig makes a queue.
func NewTypedRateLimitingQueueWithConfig[T comparable](rateLimiter TypedRateLimiter[T], config TypedRateLimitingQueueConfig[T]) TypedRateLimitingInterface[T] {
	if config.DelayingQueue != nil {
		return &limitingOver[T]{config.DelayingQueue, rateLimiter}
	}
	return &rateLimitingType[T]{newDelaying(TypedDelayingQueueConfig[T]{
		Name:            config.Name,
		MetricsProvider: config.MetricsProvider,
		Clock:           config.Clock,
	}, rateLimiter)}
}

// NewNamedRateLimitingQueue makes a queue.
//
// Deprecated: use NewRateLimitingQueueWithConfig instead.
func NewNamedRateLimitingQueue(rateLimiter RateLimiter, name string) RateLimitingInterface {
	return NewRateLimitingQueueWithConfig(rateLimiter, RateLimitingQueueConfig{Name: name})
}

// NewRateLimitingQueueWithDelayingInterface makes a queue.
//
// Deprecated: use NewRateLimitingQueueWithConfig instead.
func NewRateLimitingQueueWithDelayingInterface(di DelayingInterface, rateLimiter RateLimiter) RateLimitingInterface {
	return NewRateLimitingQueueWithConfig(rateLimiter, RateLimitingQueueConfig{DelayingQueue: di})
}

// rateLimitingType is a queue of libwq's that asks Go's limiter.
type rateLimitingType[T comparable] struct {
	*delayingType[T]
}

func (q *rateLimitingType[T]) AddRateLimited(item T) {
	defer runtime.KeepAlive(q.Typed)
	q.core.AddRateLimited(item)
}

func (q *rateLimitingType[T]) Forget(item T) {
	defer runtime.KeepAlive(q.Typed)
	q.core.Forget(item)
}

func (q *rateLimitingType[T]) NumRequeues(item T) int {
	defer runtime.KeepAlive(q.Typed)
	return q.core.NumRequeues(item)
}

// limitingOver adds to a queue that was given.
type limitingOver[T comparable] struct {
	TypedDelayingInterface[T]
	limiter TypedRateLimiter[T]
}

func (q *limitingOver[T]) AddRateLimited(item T)  { q.AddAfter(item, q.limiter.When(item)) }
func (q *limitingOver[T]) Forget(item T)          { q.limiter.Forget(item) }
func (q *limitingOver[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }
