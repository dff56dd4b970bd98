package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
)

// Rows of bytes: those of bench/memory.c, in a child of their own.
//
//	bytes_per_key, bytes_kept_after  as the process stands at that moment, what the
//	                                 collector has not yet given back included
//	.._freed                         after debug.FreeOSMemory(), which no program calls as
//	                                 it goes: what is left when all garbage is gone

var memoryGroups = []group{
	{[]row{{"bytes_per_key", "bytes"}, {"bytes_kept_after", "%"},
		{"bytes_per_key_freed", "bytes"}, {"bytes_kept_after_freed", "%"}}, canPlain,
		func(p *peer) []float64 {
			plain, freed := memory(p, ""), memory(p, "freed")
			return []float64{plain[0], plain[1], freed[0], freed[1]}
		}},
}

func resident() int64 {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	check(err == nil, "the resident size cannot be read")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			check(err == nil, "the resident size is no number")
			return kb * 1024
		}
	}
	check(false, "no resident size")
	return 0
}

const freedVar = "WQ_PEERS_FREED"

func memoryChild(p *peer) {
	settled := func() int64 {
		if os.Getenv(freedVar) != "" {
			debug.FreeOSMemory()
		}
		return resident()
	}
	resident() // what reading it costs is there before, too
	before := settled()
	q := p.plain()
	for i := range size.keys {
		q.Add(formatKey(uint64(i)))
	}
	check(q.Len() == size.keys, "memory: keys are missing")
	peak := settled()
	for range size.keys {
		key, _ := q.Get()
		q.Done(key)
	}
	after := settled()
	q.ShutDown()
	fmt.Println(before, peak, after)
}

func memory(p *peer, freed string) []float64 {
	args := []string{p.name, "--memory-child"}
	if size == quickSize {
		args = []string{p.name, "--quick", "--memory-child"}
	}
	child := exec.Command(os.Args[0], args...)
	child.Env = append(os.Environ(), freedVar+"="+freed)
	child.Stderr = os.Stderr
	text, err := child.Output()
	var before, peak, after float64
	n, _ := fmt.Sscan(string(text), &before, &peak, &after)
	check(err == nil && n == 3 && peak > before, "the memory rows' child failed")
	return []float64{(peak - before) / float64(size.keys), 100 * max(after-before, 0) / (peak - before)}
}
