package workqueue

import "sync"

// keys gives every Go value that libwq knows 8 bytes of its own, which are its key there.
// A value that is not equal to itself (NaN) gets new ones each time.
//
// A value is kept as long as a call is about it, or libwq knows it: whoever ends a call
// asks libwq, under mu, so that nobody can begin another one meanwhile.
type keys[T comparable] struct {
	mu   sync.Mutex
	ids  map[T]*pinned // L: mu
	last uint64        // L: mu

	// From id to value. Callbacks read it under locks of libwq's, which are taken
	// while mu is held: they may not wait for mu.
	items sync.Map
}

type pinned struct {
	id   uint64
	pins int // calls that are under way
}

func newKeys[T comparable]() *keys[T] {
	return &keys[T]{ids: map[T]*pinned{}}
}

func (k *keys[T]) pin(item T) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.ids[item]
	if p == nil {
		k.last++
		p = &pinned{id: k.last}
		k.ids[item] = p
		k.items.Store(p.id, item)
	}
	p.pins++
	return p.id
}

func (k *keys[T]) unpin(item T, knows func(id uint64) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.ids[item]
	if p == nil {
		return // not equal to itself
	}
	p.pins--
	k.drop(item, p, knows)
}

func (k *keys[T]) drop(item T, p *pinned, knows func(id uint64) bool) {
	if p.pins == 0 && !knows(p.id) {
		delete(k.ids, item)
		k.items.Delete(p.id)
	}
}

// Keys have gone that no call was about.
func (k *keys[T]) sweep(knows func(id uint64) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for item, p := range k.ids {
		k.drop(item, p, knows)
	}
}

// The value of a key that libwq knows.
func (k *keys[T]) item(id uint64) T {
	item, _ := k.items.Load(id)
	value, _ := item.(T) // a nil interface is no T
	return value
}

func (k *keys[T]) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids)
}

// The race detector does not see libwq's locks. What happened before an earlier call on
// any key happened before what comes after this.
func (k *keys[T]) sync() {
	k.mu.Lock()
	defer k.mu.Unlock()
}
