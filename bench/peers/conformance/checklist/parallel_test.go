package checklist

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
)

func TestParallelizeUntil(t *testing.T) {
	for _, c := range []struct{ pieces, workers, chunk int }{
		{1000, 10, 1}, {1000, 10, 10}, {1000, 10, 100}, {999, 10, 13}, {3, 10, 0}, {0, 3, 1}, {7, 1, 50},
	} {
		seen, want := make([]int, c.pieces), make([]int, c.pieces)
		for i := range want {
			want[i] = 1
		}
		workqueue.ParallelizeUntil(context.Background(), c.workers, c.pieces,
			func(piece int) { seen[piece]++ }, workqueue.WithChunkSize(c.chunk))
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%+v: how often (-want +got):\n%s", c, diff)
		}
	}
	workqueue.ParallelizeUntil(context.Background(), 0, 5, func(int) { t.Error("nobody should work") })
}

func TestParallelizeUntilCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var n, late atomic.Int32
	var cancelled atomic.Bool
	const workers, pieces = 4, 1000000
	workqueue.ParallelizeUntil(ctx, workers, pieces, func(int) {
		if cancelled.Load() {
			late.Add(1)
		}
		if n.Add(1) == 100 {
			cancel()
			cancelled.Store(true)
		}
	})
	if late.Load() >= workers {
		t.Errorf("%d pieces were begun after the context had ended", late.Load())
	}
	if n.Load() < 100 || n.Load() == pieces {
		t.Errorf("%d pieces were worked on", n.Load())
	}
	workqueue.ParallelizeUntil(ctx, 4, 10, func(int) { t.Error("the context has ended") })
	workqueue.ParallelizeUntil(nil, 4, 10, func(int) { n.Add(1) })
}
