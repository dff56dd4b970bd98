package workqueue

import (
	"context"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// DoWorkPieceFunc works on one piece.
type DoWorkPieceFunc func(piece int)

type options struct {
	chunkSize int
}

// Options of ParallelizeUntil.
type Options func(*options)

// WithChunkSize gives so many pieces in a row to one worker.
func WithChunkSize(c int) func(*options) {
	return func(o *options) { o.chunkSize = c }
}

// libwq's limit.
const maxWorkers = 4096

// ParallelizeUntil works on all pieces, until the context ends.
func ParallelizeUntil(ctx context.Context, workers, pieces int, doWorkPiece DoWorkPieceFunc, opts ...Options) {
	if pieces == 0 || workers == 0 {
		return
	}
	o := options{}
	for _, opt := range opts {
		opt(&o)
	}
	var stop <-chan struct{}
	if ctx != nil {
		stop = ctx.Done()
	}
	var done atomic.Int64 // also for the race detector, which does not see libwq's threads end
	libParallel(pieces, min(workers, pieces, maxWorkers), max(0, o.chunkSize), func(piece int) bool {
		defer utilruntime.HandleCrashWithContext(ctx)
		defer done.Add(1)
		select {
		case <-stop:
			return false
		default:
			doWorkPiece(piece)
			return true
		}
	})
	done.Load()
}
