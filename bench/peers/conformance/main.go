// Conformance runs what was written for client-go's workqueue on libwq, and says what
// passed. The script run builds libwq and calls it.
//
//	conformance [-norace | -asan] [-long] [FILE...]
//
//	client-go's own tests   on libwq: those that compile by changing the import
//	the checklist           on libwq, and on client-go
//	side by side            random calls and exports of both packages; what is kept of keys
//
// Or only those test files that are named, on libwq.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	theirs  = "k8s.io/client-go/util/workqueue"
	module  = "wq/bench/peers/conformance"
	ours    = module + "/workqueue"
	timeout = "-timeout=20m"
)

var (
	in     = flag.String("in", ".", "where this module is")
	noRace = flag.Bool("norace", false, "without the race detector")
	asan   = flag.Bool("asan", false, "with the address sanitizer instead; libwq must have been built so")
	long   = flag.Bool("long", false, "more random calls")
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func goList(args ...string) string {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(err)
	return strings.TrimSpace(string(out))
}

// ---- running tests ----

type result struct {
	passed []string
	failed []string
	skip   []string
	output map[string]string // of each test; "": of no test
}

type event struct{ Action, Test, Output string }

// Runs the tests of a package; overlay maps files of it to what is to be compiled instead.
func test(pkg string, overlay map[string]string, args ...string) *result {
	all := []string{"test", "-json", "-count=1", timeout}
	if len(overlay) > 0 {
		file := filepath.Join(temp, "overlay.json")
		text, err := json.Marshal(map[string]any{"Replace": overlay})
		check(err)
		check(os.WriteFile(file, text, 0o666))
		all = append(all, "-overlay="+file)
	}
	switch {
	case *asan:
		all = append(all, "-asan")
	case !*noRace:
		all = append(all, "-race")
	}
	cmd := exec.Command("go", append(append(all, pkg), args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	r := &result{output: map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var e event
		if d.Decode(&e) != nil {
			break
		}
		r.take(e)
	}
	if err != nil && len(r.failed) == 0 {
		r.failed = append(r.failed, "the build, or the program")
		r.output["the build, or the program"] = errs.String() + r.output[""]
	}
	return r
}

func (r *result) take(e event) {
	top, _, sub := strings.Cut(e.Test, "/")
	if e.Action == "output" || e.Action == "build-output" {
		r.output[top] += e.Output
	}
	if top == "" || sub {
		return
	}
	switch e.Action {
	case "pass":
		r.passed = append(r.passed, top)
	case "fail":
		r.failed = append(r.failed, top)
	case "skip":
		r.skip = append(r.skip, top)
	}
}

var ok = true

func (r *result) print(what string, leftOut map[string]string) {
	fmt.Printf("%s: %d passed, %d failed", what, len(r.passed), len(r.failed)+len(r.skip))
	if leftOut != nil {
		fmt.Printf(", %d left out", len(leftOut))
	}
	fmt.Println()
	for _, name := range r.passed {
		fmt.Println("  passed  ", name)
	}
	for _, name := range slices.Concat(r.failed, r.skip) {
		fmt.Printf("  FAILED   %s\n%s", name, r.output[name])
		ok = false
	}
	for _, name := range slices.Sorted(maps.Keys(leftOut)) {
		fmt.Printf("  left out %s: %s\n", name, leftOut[name])
	}
	if len(r.passed) == 0 {
		fmt.Println("  FAILED   nothing was tested")
		ok = false
	}
}

// ---- the three parts ----

// What reaches into client-go's package further than its exported names. A test that
// does, and is not here, is a failure: it could run.
var insiders = map[string]string{
	"TestMetricShutdown":    "gives newQueue metrics of its own by an unexported interface that is told items; TestMetricShutdown of the checklist is about the same",
	"TestRateLimitingQueue": "puts together a delayingType by its fields, and reads the channel that AddAfter writes to; TestRateLimitingQueue of the checklist is about the same",
}

func clientGoTests() {
	overlay, tests, leftOut := clientGoFiles()
	for name, why := range leftOut {
		if insiders[name] == "" {
			fmt.Printf("  FAILED   %s does not compile: %s\n", name, why)
			ok = false
		} else {
			leftOut[name] = insiders[name] + " (" + why + ")"
		}
	}
	r := test(ours, overlay, "-run=^("+strings.Join(tests, "|")+")$")
	r.print("client-go's own tests, on libwq", leftOut)
	if len(r.passed)+len(r.failed) != len(tests) {
		fmt.Printf("  FAILED   of %d tests not all were run\n", len(tests))
		ok = false
	}
}

func checklist() {
	dir := goList("-f", "{{.Dir}}", module+"/checklist")
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	check(err)
	test(module+"/checklist", changed(files, dir)).print("The checklist, on libwq", nil)
	test(module+"/checklist", nil).print("The checklist, on client-go", nil)
}

// Files with the import changed, in place of those of the same names in a folder.
func changed(files []string, dir string) (overlay map[string]string) {
	overlay = map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		to := filepath.Join(temp, filepath.Base(file))
		check(os.WriteFile(to, changeImport(text), 0o666))
		overlay[filepath.Join(dir, filepath.Base(file))] = to
	}
	return overlay
}

// Test files that somebody has written for client-go, all of one package: in a module of
// their own, that has what this one has.
func given(files []string) {
	mod, err := os.ReadFile("go.mod")
	check(err)
	sum, err := os.ReadFile("go.sum")
	check(err)
	_, rest, _ := strings.Cut(string(mod), "\n")
	dir, err := os.Getwd()
	check(err)
	lines := fmt.Sprintf("module given\n%s\nrequire %s v0.0.0\nreplace %[2]s => %s\n", rest, module, dir)
	check(os.WriteFile(filepath.Join(temp, "go.mod"), []byte(lines), 0o666))
	check(os.WriteFile(filepath.Join(temp, "go.sum"), sum, 0o666))
	changed(files, "")
	check(os.Chdir(temp))
	test(".", nil).print("On libwq", nil)
}

func sideBySide() {
	var args []string
	if *long {
		args = []string{"-args", "-runs=5000"}
	}
	test(module+"/compare", nil, args...).print("Side by side", nil)
	test(ours, nil).print("What is kept", nil)
}

var importPath = regexp.MustCompile(`(?m)^(\s*(?:import )?(?:\w+ )?)"` + regexp.QuoteMeta(theirs) + `"`)

func changeImport(text []byte) []byte {
	return importPath.ReplaceAll(text, []byte(`${1}"`+ours+`"`))
}

var temp string

func main() {
	flag.Parse()
	var files []string
	for _, file := range flag.Args() {
		path, err := filepath.Abs(file)
		check(err)
		files = append(files, path)
	}
	check(os.Chdir(*in))
	var err error
	temp, err = os.MkdirTemp("", "conformance")
	check(err)
	defer os.RemoveAll(temp)
	fmt.Println(goList("-m", "-f", "{{.Path}} {{.Version}}", "k8s.io/client-go"))
	if len(files) > 0 {
		given(files)
	} else {
		clientGoTests()
		checklist()
		sideBySide()
	}
	if !ok {
		os.RemoveAll(temp)
		os.Exit(1)
	}
}
