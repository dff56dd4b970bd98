// Package workqueue has the names of k8s.io/client-go/util/workqueue, and libwq behind
// them: what was written against client-go's package compiles against this one by changing
// the import, and so shows whether libwq does what client-go does. See ../README.md for
// what differs.
//
// It translates and does nothing itself: values to keys (keys.go), Go's clocks, orders,
// limiters and metrics to libwq's callbacks (callbacks.go, seam.c), client-go's calls to
// libwq's (lib.go). It is a harness: blocked calls take an OS thread each.
package workqueue
