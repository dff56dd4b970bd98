package workqueue

import (
	"math"
	"runtime"
	"sync"
	"time"
	"weak"

	"golang.org/x/time/rate"
)

// RateLimiter is TypedRateLimiter for any value.
//
// Deprecated: use TypedRateLimiter instead.
type RateLimiter TypedRateLimiter[any]

// TypedRateLimiter says how long items have to wait.
type TypedRateLimiter[T comparable] interface {
	// When says how long an item has to wait, and counts.
	When(item T) time.Duration
	// Forget clears what is remembered of an item.
	Forget(item T)
	// NumRequeues says how often When was asked.
	NumRequeues(item T) int
}

// limiter is one of libwq's, given back when nobody can reach it any more.
type limiter[T comparable] struct {
	lib  libLimiter
	keys *keys[T]
}

func newLimiter[T comparable](lib libLimiter, k *keys[T]) *limiter[T] {
	l := &limiter[T]{lib, k}
	runtime.AddCleanup(l, libLimiter.free, lib)
	return l
}

func (l *limiter[T]) with(item T, call func(id uint64)) {
	defer runtime.KeepAlive(l)
	id := l.keys.pin(item)
	defer l.keys.unpin(item, l.lib.knows)
	call(id)
}

func (l *limiter[T]) When(item T) (d time.Duration) {
	l.with(item, func(id uint64) { d = l.lib.when(id) })
	return d
}

func (l *limiter[T]) Forget(item T) { l.with(item, l.lib.forget) }

func (l *limiter[T]) NumRequeues(item T) (n int) {
	l.with(item, func(id uint64) { n = l.lib.numRequeues(id) })
	return n
}

// ask is a limiter of Go's as a part of one of libwq's, or of a queue.
type ask[T comparable] struct {
	keys *keys[T]
	of   TypedRateLimiter[T]
}

func (a ask[T]) when(id uint64) int64      { return int64(a.of.When(a.keys.item(id))) }
func (a ask[T]) forget(id uint64)          { a.of.Forget(a.keys.item(id)) }
func (a ask[T]) numRequeues(id uint64) int { return a.of.NumRequeues(a.keys.item(id)) }

// DefaultControllerRateLimiter is what controllers use.
//
// Deprecated: use DefaultTypedControllerRateLimiter instead.
func DefaultControllerRateLimiter() RateLimiter {
	return DefaultTypedControllerRateLimiter[any]()
}

// DefaultTypedControllerRateLimiter is what controllers use.
func DefaultTypedControllerRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedMaxOfRateLimiter(
		NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, 1000*time.Second),
		&TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(10), 100)},
	)
}

// BucketRateLimiter is TypedBucketRateLimiter for any value.
//
// Deprecated: use TypedBucketRateLimiter instead.
type BucketRateLimiter = TypedBucketRateLimiter[any]

// TypedBucketRateLimiter is a token bucket of libwq's, of the rate and burst that the
// Limiter has.
type TypedBucketRateLimiter[T comparable] struct {
	*rate.Limiter
}

var _ RateLimiter = &BucketRateLimiter{}

// Buckets that have one Limiter are one bucket.
var (
	bucketsMu sync.Mutex
	buckets   = map[weak.Pointer[rate.Limiter]]*bucket{}
)

type bucket struct {
	lib   libLimiter
	limit rate.Limit
	burst int
}

func newBucket(r *rate.Limiter) *bucket {
	b := &bucket{limit: r.Limit(), burst: r.Burst()}
	perSecond := max(0, float64(b.limit))
	if b.limit == rate.Inf {
		perSecond = math.Inf(1)
	}
	b.lib = libBucket(perSecond, max(0, b.burst))
	return b
}

func bucketOf(r *rate.Limiter) *bucket {
	key := weak.Make(r)
	b := buckets[key]
	switch {
	case b == nil:
		b = newBucket(r)
		buckets[key] = b
		runtime.AddCleanup(r, giveBack, key)
	case b.limit != r.Limit() || b.burst != r.Burst():
		b.lib.free()
		*b = *newBucket(r)
	}
	return b
}

func giveBack(key weak.Pointer[rate.Limiter]) {
	bucketsMu.Lock()
	defer bucketsMu.Unlock()
	buckets[key].lib.free()
	delete(buckets, key)
}

// When takes a token and says how long until it is there.
func (r *TypedBucketRateLimiter[T]) When(item T) time.Duration {
	bucketsMu.Lock()
	defer bucketsMu.Unlock()
	defer runtime.KeepAlive(r.Limiter)
	return bucketOf(r.Limiter).lib.when(0) // it does not matter which key
}

// NumRequeues is 0.
func (r *TypedBucketRateLimiter[T]) NumRequeues(item T) int { return 0 }

// Forget does nothing.
func (r *TypedBucketRateLimiter[T]) Forget(item T) {}

// ItemExponentialFailureRateLimiter is TypedItemExponentialFailureRateLimiter for any value.
//
// Deprecated: use TypedItemExponentialFailureRateLimiter instead.
type ItemExponentialFailureRateLimiter = TypedItemExponentialFailureRateLimiter[any]

// TypedItemExponentialFailureRateLimiter doubles the time with each failure.
type TypedItemExponentialFailureRateLimiter[T comparable] struct{ limiter *limiter[T] }

var _ RateLimiter = &ItemExponentialFailureRateLimiter{}

// NewItemExponentialFailureRateLimiter makes a limiter.
//
// Deprecated: use NewTypedItemExponentialFailureRateLimiter instead.
func NewItemExponentialFailureRateLimiter(baseDelay time.Duration, maxDelay time.Duration) RateLimiter {
	return NewTypedItemExponentialFailureRateLimiter[any](baseDelay, maxDelay)
}

// NewTypedItemExponentialFailureRateLimiter makes a limiter. What libwq does not take as an
// exponential one is the same as a constant.
func NewTypedItemExponentialFailureRateLimiter[T comparable](baseDelay time.Duration, maxDelay time.Duration) TypedRateLimiter[T] {
	var l libLimiter
	if baseDelay > 0 && maxDelay >= baseDelay {
		l = libExponential(baseDelay, maxDelay)
	} else {
		constant := max(0, min(baseDelay, maxDelay))
		l = libFastSlow(constant, constant, 0)
	}
	return &TypedItemExponentialFailureRateLimiter[T]{newLimiter(l, newKeys[T]())}
}

// DefaultItemBasedRateLimiter is exponential, from 1 ms to 1000 s.
//
// Deprecated: use DefaultTypedItemBasedRateLimiter instead.
func DefaultItemBasedRateLimiter() RateLimiter { return DefaultTypedItemBasedRateLimiter[any]() }

// DefaultTypedItemBasedRateLimiter is exponential, from 1 ms to 1000 s.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedItemExponentialFailureRateLimiter[T](time.Millisecond, 1000*time.Second)
}

// When says how long the item has to wait.
func (r *TypedItemExponentialFailureRateLimiter[T]) When(item T) time.Duration {
	return r.limiter.When(item)
}

// NumRequeues says how often the item failed.
func (r *TypedItemExponentialFailureRateLimiter[T]) NumRequeues(item T) int {
	return r.limiter.NumRequeues(item)
}

// Forget begins anew with the item.
func (r *TypedItemExponentialFailureRateLimiter[T]) Forget(item T) { r.limiter.Forget(item) }

// ItemFastSlowRateLimiter is TypedItemFastSlowRateLimiter for any value.
//
// Deprecated: use TypedItemFastSlowRateLimiter instead.
type ItemFastSlowRateLimiter = TypedItemFastSlowRateLimiter[any]

// TypedItemFastSlowRateLimiter has a short time for the first failures and a long one then.
type TypedItemFastSlowRateLimiter[T comparable] struct{ limiter *limiter[T] }

var _ RateLimiter = &ItemFastSlowRateLimiter{}

// NewItemFastSlowRateLimiter makes a limiter.
//
// Deprecated: use NewTypedItemFastSlowRateLimiter instead.
func NewItemFastSlowRateLimiter(fastDelay, slowDelay time.Duration, maxFastAttempts int) RateLimiter {
	return NewTypedItemFastSlowRateLimiter[any](fastDelay, slowDelay, maxFastAttempts)
}

// NewTypedItemFastSlowRateLimiter makes a limiter.
func NewTypedItemFastSlowRateLimiter[T comparable](fastDelay, slowDelay time.Duration, maxFastAttempts int) TypedRateLimiter[T] {
	nfast := uint32(min(max(0, maxFastAttempts), math.MaxUint32))
	l := libFastSlow(max(0, fastDelay), max(0, slowDelay), nfast)
	return &TypedItemFastSlowRateLimiter[T]{newLimiter(l, newKeys[T]())}
}

// When says how long the item has to wait.
func (r *TypedItemFastSlowRateLimiter[T]) When(item T) time.Duration { return r.limiter.When(item) }

// NumRequeues says how often the item failed.
func (r *TypedItemFastSlowRateLimiter[T]) NumRequeues(item T) int {
	return r.limiter.NumRequeues(item)
}

// Forget begins anew with the item.
func (r *TypedItemFastSlowRateLimiter[T]) Forget(item T) { r.limiter.Forget(item) }

// MaxOfRateLimiter is TypedMaxOfRateLimiter for any value.
//
// Deprecated: use TypedMaxOfRateLimiter instead.
type MaxOfRateLimiter = TypedMaxOfRateLimiter[any]

// TypedMaxOfRateLimiter asks several, and the longest time counts.
type TypedMaxOfRateLimiter[T comparable] struct{ limiter *limiter[T] }

// NewMaxOfRateLimiter makes a limiter.
//
// Deprecated: use NewTypedMaxOfRateLimiter instead.
func NewMaxOfRateLimiter(limiters ...TypedRateLimiter[any]) RateLimiter {
	return NewTypedMaxOfRateLimiter(limiters...)
}

// NewTypedMaxOfRateLimiter makes a limiter. Of none at all the longest time is 0.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	k := newKeys[T]()
	var parts []libLimiter
	for _, l := range limiters {
		parts = append(parts, libAsk(ask[T]{k, l}))
	}
	if len(parts) == 0 {
		parts = []libLimiter{libBucket(math.Inf(1), 0)}
	}
	return &TypedMaxOfRateLimiter[T]{newLimiter(libMaxOf(parts), k)}
}

// When says how long the item has to wait.
func (r *TypedMaxOfRateLimiter[T]) When(item T) time.Duration { return r.limiter.When(item) }

// NumRequeues says how often the item failed.
func (r *TypedMaxOfRateLimiter[T]) NumRequeues(item T) int { return r.limiter.NumRequeues(item) }

// Forget begins anew with the item.
func (r *TypedMaxOfRateLimiter[T]) Forget(item T) { r.limiter.Forget(item) }

// WithMaxWaitRateLimiter is TypedWithMaxWaitRateLimiter for any value.
//
// Deprecated: use TypedWithMaxWaitRateLimiter instead.
type WithMaxWaitRateLimiter = TypedWithMaxWaitRateLimiter[any]

// TypedWithMaxWaitRateLimiter bounds the time of another.
type TypedWithMaxWaitRateLimiter[T comparable] struct{ limiter *limiter[T] }

// NewWithMaxWaitRateLimiter makes a limiter.
//
// Deprecated: use NewTypedWithMaxWaitRateLimiter instead.
func NewWithMaxWaitRateLimiter(limiter RateLimiter, maxDelay time.Duration) RateLimiter {
	return NewTypedWithMaxWaitRateLimiter(TypedRateLimiter[any](limiter), maxDelay)
}

// NewTypedWithMaxWaitRateLimiter makes a limiter.
func NewTypedWithMaxWaitRateLimiter[T comparable](limiter TypedRateLimiter[T], maxDelay time.Duration) TypedRateLimiter[T] {
	k := newKeys[T]()
	l := libMaxWait(libAsk(ask[T]{k, limiter}), max(0, maxDelay))
	return &TypedWithMaxWaitRateLimiter[T]{newLimiter(l, k)}
}

// When says how long the item has to wait.
func (w TypedWithMaxWaitRateLimiter[T]) When(item T) time.Duration { return w.limiter.When(item) }

// Forget begins anew with the item.
func (w TypedWithMaxWaitRateLimiter[T]) Forget(item T) { w.limiter.Forget(item) }

// NumRequeues says how often the item failed.
func (w TypedWithMaxWaitRateLimiter[T]) NumRequeues(item T) int { return w.limiter.NumRequeues(item) }
