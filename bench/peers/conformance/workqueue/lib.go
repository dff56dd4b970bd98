package workqueue

// #cgo LDFLAGS: -lwq
// #include "seam.h"
import "C"

import (
	"fmt"
	"math"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// libwq as the rest of the package sees it: no other file but callbacks.go knows C.

const never = math.MaxInt64

// Queues and limiters that libwq has not been given back.
var live atomic.Int64

// The metrics of which libwq tells, by its own numbers.
const (
	metricDepth   = C.WQ_METRIC_DEPTH
	metricAdds    = C.WQ_METRIC_ADDS
	metricRetries = C.WQ_METRIC_RETRIES
	metricLatency = C.WQ_METRIC_QUEUE_DURATION
	metricWork    = C.WQ_METRIC_WORK_DURATION
)

// What client-go has no answer for ends the program, with libwq's own words.
func must(what string, rc int64) int64 {
	if rc < 0 {
		panic(fmt.Sprintf("wq: %s: %s", what, C.GoString(C.wq_strerror(C.int(rc)))))
	}
	return rc
}

// What of a queue is Go's.
type parts struct {
	clock, order, metrics bool
	limiter               asked // nil: libwq's default, which nobody asks then
}

// A queue of libwq's. Its methods may be called by any goroutine; get and drain block
// an OS thread.
type lib struct {
	q      *C.wq_queue
	handle cgo.Handle

	mu   sync.Mutex
	held map[uint64]C.wq_item // client-go's Done names the key, libwq's the hold
}

func (l *lib) open(o owner, p parts) {
	var limiter *C.wq_limiter
	var which C.uint

	if p.clock {
		which |= C.SEAM_CLOCK
	}
	if p.order {
		which |= C.SEAM_ORDER
	}
	if p.metrics {
		which |= C.SEAM_METRICS
	}
	if p.limiter != nil {
		limiter = C.seam_limiter(C.uintptr_t(cgo.NewHandle(p.limiter)))
	}
	l.held = map[uint64]C.wq_item{}
	l.handle = cgo.NewHandle(o)
	must("new", int64(C.seam_new(&l.q, C.uintptr_t(l.handle), which, limiter)))
	live.Add(1)
}

// Nobody is inside, or will be.
func (l *lib) free() {
	for _, it := range l.held {
		must("done", int64(C.wq_done(l.q, &it)))
	}
	must("free", int64(C.wq_free(l.q)))
	l.handle.Delete()
	live.Add(-1)
}

const keyLen = 8

func (l *lib) refused(what string, rc C.int) bool {
	if rc == C.WQ_ESHUTDOWN {
		return true
	}
	must(what, int64(rc))
	return false
}

func (l *lib) add(id uint64) { l.refused("add", C.wq_add(l.q, unsafe.Pointer(&id), keyLen)) }

func (l *lib) addAfter(id uint64, d time.Duration) {
	// 0 would be a plain add, which is no retry.
	if d <= 0 {
		d = -1
	}
	l.refused("add_after", C.seam_add_after(l.q, C.uint64_t(id), C.int64_t(d)))
}

func (l *lib) addLimited(id uint64) {
	l.refused("add_limited", C.seam_add_limited(l.q, C.uint64_t(id)))
}

// False: shut down.
func (l *lib) get() (uint64, bool) {
	var it C.wq_item

	if l.refused("get", C.wq_get(l.q, &it)) {
		return 0, false
	}
	id := *(*uint64)(it.key)
	l.mu.Lock()
	l.held[id] = it
	l.mu.Unlock()
	return id, true
}

// A key that nobody holds is left alone.
func (l *lib) done(id uint64) {
	l.mu.Lock()
	it, ok := l.held[id]
	// Before it is done: from then on another get may hold the key.
	delete(l.held, id)
	l.mu.Unlock()
	if ok {
		must("done", int64(C.wq_done(l.q, &it)))
	}
}

func (l *lib) len() int { return int(must("len", int64(C.wq_len(l.q)))) }

// What a shutdown has left over never comes back: nobody asks for it any more.
func (l *lib) knows(id uint64) bool {
	state := must("state", int64(C.wq_state(l.q, unsafe.Pointer(&id), keyLen)))
	return state&^(C.WQ_STATE_LEFT|C.WQ_STATE_RETRYING) != 0
}

func (l *lib) forget(id uint64) {
	must("forget", int64(C.wq_forget(l.q, unsafe.Pointer(&id), keyLen)))
}

func (l *lib) numRequeues(id uint64) int {
	return int(must("failures", int64(C.wq_failures(l.q, unsafe.Pointer(&id), keyLen))))
}

func (l *lib) shutDown() { must("shutdown", int64(C.wq_shutdown(l.q))) }

func (l *lib) drain() {
	if rc := C.wq_drain_until(l.q, never, nil, nil); rc != C.WQ_EINTERRUPTED {
		must("drain", int64(rc))
	}
}

func (l *lib) shuttingDown() bool { return C.wq_shutting_down(l.q) == 1 }

func (l *lib) time() int64    { return int64(C.wq_now(l.q)) }
func (l *lib) nextDue() int64 { return int64(C.wq_next_deadline(l.q)) }

// The clock has moved: who sleeps looks, and what is due enters the line.
func (l *lib) clockChanged() {
	must("clock_changed", int64(C.wq_clock_changed(l.q)))
	l.len()
}

// The sum of the ages of what is held, and the oldest.
func (l *lib) running() (sum, longest time.Duration) {
	var s C.wq_snapshot

	must("snapshot", int64(C.wq_snapshot_take(l.q, &s)))
	return time.Duration(s.unfinished_ns), max(0, time.Duration(s.longest_running.age_ns))
}

// A limiter of libwq's that no queue has. Its parts are its own.
type libLimiter struct{ l *C.wq_limiter }

func limiterOf(what string, l *C.wq_limiter) libLimiter {
	must(what, int64(C.wq_limiter_status(l)))
	live.Add(1)
	return libLimiter{l}
}

func libExponential(base, longest time.Duration) libLimiter {
	return limiterOf("exponential", C.wq_limiter_exponential(C.int64_t(base), C.int64_t(longest)))
}

func libFastSlow(fast, slow time.Duration, nfast uint32) libLimiter {
	return limiterOf("fast_slow", C.wq_limiter_fast_slow(C.int64_t(fast), C.int64_t(slow), C.uint32_t(nfast)))
}

func libBucket(rate float64, burst int) libLimiter {
	return limiterOf("bucket", C.wq_limiter_bucket(C.double(rate), C.int(burst)))
}

func libAsk(a asked) libLimiter {
	return limiterOf("own", C.seam_limiter(C.uintptr_t(cgo.NewHandle(a))))
}

func libMaxWait(part libLimiter, longest time.Duration) libLimiter {
	live.Add(-1)
	return limiterOf("max_wait", C.wq_limiter_max_wait(part.l, C.int64_t(longest)))
}

// libwq takes 8 at a time.
func libMaxOf(of []libLimiter) libLimiter {
	for len(of) > C.WQ_PARTS_MAX {
		of = append(of[C.WQ_PARTS_MAX:], libMaxOf(of[:C.WQ_PARTS_MAX]))
	}
	var c [C.WQ_PARTS_MAX]*C.wq_limiter
	for i := range of {
		c[i] = of[i].l
	}
	live.Add(-int64(len(of)))
	return limiterOf("max_of", C.wq_limiter_max_of(&c[0], C.size_t(len(of))))
}

func (l libLimiter) free() {
	must("limiter_free", int64(C.wq_limiter_free(l.l)))
	live.Add(-1)
}

func (l libLimiter) when(id uint64) time.Duration {
	return time.Duration(must("when", int64(C.wq_limiter_when(l.l, unsafe.Pointer(&id), keyLen, C.wq_clock_monotonic()))))
}

func (l libLimiter) forget(id uint64) {
	must("limiter_forget", int64(C.wq_limiter_forget(l.l, unsafe.Pointer(&id), keyLen)))
}

func (l libLimiter) numRequeues(id uint64) int {
	return int(must("limiter_failures", int64(C.wq_limiter_failures(l.l, unsafe.Pointer(&id), keyLen))))
}

// One that only asks others remembers nothing.
func (l libLimiter) knows(id uint64) bool {
	return must("size", int64(C.wq_limiter_size(l.l))) > 0 && l.numRequeues(id) > 0
}

// piece answers whether to go on. It is called by threads of libwq's.
func libParallel(pieces, workers, chunk int, piece func(piece int) bool) int {
	handle := cgo.NewHandle(piece)
	defer handle.Delete()
	return int(must("parallel", int64(C.seam_parallel(C.size_t(pieces), C.uintptr_t(handle),
		C.uint32_t(workers), C.size_t(chunk)))))
}
