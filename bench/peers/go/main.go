// The Go peers of the benchmark, behind the contract of bench/peers/README.md:
//
//	go-peers PEER --list | --version | [--quick] ROW...
//
// A peer says how its queues are made (peers.go); the rows are written once, for
// whatever can do them. Rows that one run measures together are a group, as in
// wq_bench. The garbage collector is left as it is by default; only before a row
// begins is it run once, so that no row pays for the one before it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
)

// How much is done: the figures of bench/main.c.
type sizes struct {
	keys       int
	slices     int
	sliceParts int // what a slice's operations are divided by
	shortKeys  int
	roundTrips int
	wakes      int
	hotNs      int64
	restNs     int64
	lateBlocks int
}

var size = sizes{1000000, 100, 1, 600000, 20000, 500, 75e6, 1e6, 100}

var quickSize = sizes{10000, 10, 10, 10000, 2000, 40, 20e6, 5e5, 2}

type row struct{ name, unit string }

type group struct {
	rows []row
	can  func(p *peer) bool
	run  func(p *peer) []float64 // a value for each row
}

var groups = slices.Concat(singleGroups, bulkGroups, threadGroups, wakeGroups, memoryGroups,
	delayGroups, lateGroups, wheelGroups, curveGroups)

func check(ok bool, what string) {
	if !ok {
		fmt.Fprintf(os.Stderr, "go-peers: %s\n", what)
		os.Exit(1)
	}
}

func printVersions(p *peer) {
	info, ok := debug.ReadBuildInfo()
	check(ok, "the program does not know its modules")
	for _, dep := range info.Deps {
		if dep.Path == p.module {
			fmt.Printf("%s %s (%s)\n", p.name, dep.Version, runtime.Version())
		}
	}
}

func printList(p *peer) {
	for _, g := range groups {
		if g.can(p) {
			for _, r := range g.rows {
				fmt.Println(r.name)
			}
		}
	}
}

func runRows(p *peer, wanted []string) {
	out := json.NewEncoder(os.Stdout)
	for _, g := range groups {
		if !slices.ContainsFunc(g.rows, func(r row) bool { return slices.Contains(wanted, r.name) }) {
			continue
		}
		check(g.can(p), p.name+" cannot do "+g.rows[0].name)
		runtime.GC()
		values := g.run(p)
		for i, r := range g.rows {
			if slices.Contains(wanted, r.name) {
				check(out.Encode(struct {
					Row   string  `json:"row"`
					Value float64 `json:"value"`
					Unit  string  `json:"unit"`
				}{r.name, values[i], r.unit}) == nil, "a line could not be written")
			}
		}
	}
}

func knownRow(name string) bool {
	return slices.ContainsFunc(groups, func(g group) bool {
		return slices.ContainsFunc(g.rows, func(r row) bool { return r.name == name })
	})
}

func main() {
	args := os.Args[1:]
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-peers PEER --list | --version | [--quick] ROW...")
		os.Exit(2)
	}
	p := findPeer(args[0])
	check(p != nil, "no peer is called "+args[0])
	args = args[1:]
	if args[0] == "--quick" {
		size = quickSize
		args = args[1:]
	}
	for _, name := range args {
		switch name {
		case "--list":
			printList(p)
			return
		case "--version":
			printVersions(p)
			return
		case "--memory-child":
			memoryChild(p)
			return
		}
		check(knownRow(name), "no row is called "+name)
	}
	runRows(p, args)
}
