package workqueue

// #include "seam.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// What libwq asks of a queue's owner, under the queue's lock: none of it may call the
// queue. Keys are the numbers that keys.go gives out.
type owner interface {
	now() int64
	push(id uint64, node unsafe.Pointer)
	pop() unsafe.Pointer
	touch(id uint64)
	count(metric int, delta int64)
	observe(metric int, ns int64)
}

// The same for a limiter of Go's.
type asked interface {
	when(id uint64) int64
	forget(id uint64)
	numRequeues(id uint64) int
}

func ownerOf(handle C.uintptr_t) owner { return cgo.Handle(handle).Value().(owner) }
func askedOf(handle C.uintptr_t) asked { return cgo.Handle(handle).Value().(asked) }

//export goNow
func goNow(handle C.uintptr_t) C.int64_t { return C.int64_t(ownerOf(handle).now()) }

//export goPush
func goPush(handle C.uintptr_t, id C.uint64_t, node *C.wq_node) {
	ownerOf(handle).push(uint64(id), unsafe.Pointer(node))
}

//export goPop
func goPop(handle C.uintptr_t) *C.wq_node { return (*C.wq_node)(ownerOf(handle).pop()) }

//export goTouch
func goTouch(handle C.uintptr_t, id C.uint64_t) { ownerOf(handle).touch(uint64(id)) }

//export goCount
func goCount(handle C.uintptr_t, metric C.int, delta C.int64_t) {
	ownerOf(handle).count(int(metric), int64(delta))
}

//export goObserve
func goObserve(handle C.uintptr_t, metric C.int, ns C.int64_t) {
	ownerOf(handle).observe(int(metric), int64(ns))
}

//export goWhen
func goWhen(handle C.uintptr_t, id C.uint64_t) C.int64_t {
	return C.int64_t(askedOf(handle).when(uint64(id)))
}

//export goForget
func goForget(handle C.uintptr_t, id C.uint64_t) { askedOf(handle).forget(uint64(id)) }

//export goNumRequeues
func goNumRequeues(handle C.uintptr_t, id C.uint64_t) C.uint32_t {
	return C.uint32_t(askedOf(handle).numRequeues(uint64(id)))
}

//export goLetGo
func goLetGo(handle C.uintptr_t) { cgo.Handle(handle).Delete() }

//export goPiece
func goPiece(handle C.uintptr_t, piece C.size_t) C.int {
	if cgo.Handle(handle).Value().(func(piece int) bool)(int(piece)) {
		return 0
	}
	return 1
}
