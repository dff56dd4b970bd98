package compare

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	theirs = "k8s.io/client-go/util/workqueue"
	ours   = "wq/bench/peers/conformance/workqueue"
)

// The packages as the compiler has left them for those who import them.
func load(t *testing.T, paths ...string) []*types.Package {
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, line := range strings.Split(string(out), "\n") {
		path, file, _ := strings.Cut(line, " ")
		files[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var pkgs []*types.Package
	for _, path := range paths {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs
}

// A tuple without the names of its variables, which bind nobody.
func nameless(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for i := range t.Len() {
		vars = append(vars, types.NewVar(token.NoPos, nil, "", t.At(i).Type()))
	}
	return types.NewTuple(vars...)
}

func typeParams(list *types.TypeParamList, q types.Qualifier) string {
	var s []string
	for p := range list.TypeParams() {
		s = append(s, p.Obj().Name()+" "+types.TypeString(p.Constraint(), q))
	}
	return fmt.Sprint(s)
}

func signature(f *types.Func, q types.Qualifier) string {
	s := f.Type().(*types.Signature)
	plain := types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	return f.Name() + typeParams(s.TypeParams(), q) + types.TypeString(plain, q)
}

// Everything that a user of the package can name, a line each.
func exports(pkg *types.Package) (lines []string) {
	q := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Path()
	}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range pkg.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Func:
			say("func %s", signature(o, q))
		case *types.TypeName:
			if o.IsAlias() {
				say("type %s = %s", name, types.TypeString(types.Unalias(o.Type()), q))
				continue
			}
			named := o.Type().(*types.Named)
			params := typeParams(named.TypeParams(), q)
			s, isStruct := named.Underlying().(*types.Struct)
			if !isStruct {
				say("type %s%s %s", name, params, types.TypeString(named.Underlying(), q))
			} else {
				say("type %s%s struct", name, params)
				for f := range s.Fields() {
					if f.Exported() {
						say("type %s.%s %s, embedded %v", name, f.Name(), types.TypeString(f.Type(), q), f.Embedded())
					}
				}
			}
			for m := range named.Methods() {
				if m.Exported() {
					say("method (%s) %s", types.TypeString(m.Signature().Recv().Type(), q), signature(m, q))
				}
			}
		default:
			say("%s", types.ObjectString(o, q))
		}
	}
	slices.Sort(lines)
	return lines
}

// What compiles against one package compiles against the other.
func TestExports(t *testing.T) {
	pkgs := load(t, theirs, ours)
	want, got := exports(pkgs[0]), exports(pkgs[1])
	if len(want) < 100 {
		t.Errorf("only %d lines: are they all seen?", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exports (-client-go +wq):\n%s", diff)
	}
}
