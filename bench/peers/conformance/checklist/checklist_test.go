// What client-go's own tests ask of a queue, as far as they can be written by its exported
// names alone: they pass on client-go as on libwq, which ../run puts in its place by changing
// the import. The names are those of tests/behaviour/checklist.c and of client-go's tests.
package checklist

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func is[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A call that does not return is a failure, not a hang.
func returns(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not return", what)
	}
}

func receive[T any](t *testing.T, what string, from <-chan T) (value T) {
	t.Helper()
	returns(t, what, func() { value = <-from })
	return value
}

func get[T comparable](t *testing.T, q workqueue.TypedInterface[T], want T) {
	t.Helper()
	var item T
	var shutdown bool
	returns(t, "Get", func() { item, shutdown = q.Get() })
	if shutdown || item != want {
		t.Errorf("Get: got %v, shutdown %v, want %v", item, shutdown, want)
	}
}

func take[T comparable](t *testing.T, q workqueue.TypedInterface[T], want T) {
	t.Helper()
	get(t, q, want)
	q.Done(want)
}
