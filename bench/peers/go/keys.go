package main

import (
	"math"
	"strings"
	"sync"
)

// The keys of bench/keys.c, byte for byte, and its random numbers.

const (
	keyLen    = 20
	keyStride = 32
	seed      = uint64(88172645463325252)
)

func random(state *uint64) uint64 {
	x := *state
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*state = x
	return x * 0x2545F4914F6CDD1D
}

func putDigits(out []byte, value uint64) {
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = byte('0' + value%10)
		value /= 10
	}
}

func putKey(out []byte, i uint64) {
	copy(out, "ns-")
	putDigits(out[3:6], i%1000)
	copy(out[6:], "/pod-")
	putDigits(out[11:20], i%1000000000*387420489%1000000000)
}

// A key of its own, as a program would make it.
func formatKey(i uint64) string {
	var b [keyLen]byte
	putKey(b[:], i)
	return string(b[:])
}

// All keys lie in one piece of memory that holds no pointers: the collector has
// no work with them, which is in the peers' favour.
type keys struct{ bytes string }

func (k keys) count() int { return len(k.bytes) / keyStride }

func (k keys) at(i int) string { return k.bytes[i*keyStride : i*keyStride+keyLen] }

func makeKeys(n int, number func(i int) uint64) keys {
	var b strings.Builder
	var one [keyStride]byte
	b.Grow(n * keyStride)
	for i := range n {
		putKey(one[:], number(i))
		b.Write(one[:])
	}
	return keys{b.String()}
}

func poolSize() int { return 2 * size.keys }

func firstKeys(n int) keys { return makeKeys(n, func(i int) uint64 { return uint64(i) }) }

var pool = sync.OnceValue(func() keys { return firstKeys(poolSize()) })

func randomOrder(n int) []uint32 {
	order := make([]uint32, n)
	state := seed
	for i := range order {
		j := random(&state) % uint64(i+1)
		order[i] = order[j]
		order[j] = uint32(i)
	}
	return order
}

func shuffledKeys(n int) keys {
	order := randomOrder(n)
	return makeKeys(n, func(i int) uint64 { return uint64(order[i]) })
}

func spans(n int, low, high int64) []int64 {
	list := make([]int64, n)
	state := seed
	for i := range list {
		list[i] = low + int64(random(&state)%uint64(high-low))
	}
	return list
}

// n numbers below span, the i-th most frequent with weight 1 / (i + 1)^s.
func zipf(n int, span int, s float64) []uint16 {
	sums := make([]float64, span)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s)
		sums[i] = sum
	}
	draws := make([]uint16, n)
	state := uint64(2463534242)
	for i := range draws {
		at := float64(random(&state)>>11) * 0x1p-53 * sum
		low, high := 0, span-1
		for low < high {
			mid := (low + high) / 2
			if sums[mid] > at {
				high = mid
			} else {
				low = mid + 1
			}
		}
		draws[i] = uint16(low)
	}
	return draws
}
