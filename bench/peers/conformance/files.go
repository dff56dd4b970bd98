package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A test file of client-go's.
type testFile struct {
	path string // as it would be in our package
	ast  *ast.File
}

// client-go's test files, with the import changed and without the functions that do not
// compile then; the tests that are in them; those that are not, with the compiler's reason.
func clientGoFiles() (overlay map[string]string, tests []string, leftOut map[string]string) {
	fset := token.NewFileSet()
	dir, into := goList("-f", "{{.Dir}}", theirs), goList("-f", "{{.Dir}}", ours)
	sources, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	check(err)
	var files []*testFile
	for _, source := range sources {
		text, err := os.ReadFile(source)
		check(err)
		path := filepath.Join(into, "clientgo_"+filepath.Base(source))
		f, err := parser.ParseFile(fset, path, changeImport(text), parser.ParseComments)
		check(err)
		files = append(files, &testFile{path, f})
	}
	leftOut = map[string]string{}
	for cut := true; cut; {
		cut = false
		for _, e := range compile(fset, files, into) {
			if name := remove(fset, files, e.Pos); name != "" {
				cut = true
				if strings.HasPrefix(name, "Test") && leftOut[name] == "" {
					leftOut[name] = e.Msg
				}
			}
		}
	}
	overlay = map[string]string{}
	for _, f := range files {
		name := filepath.Join(temp, filepath.Base(f.path))
		out, err := os.Create(name)
		check(err)
		check(printer.Fprint(out, fset, f.ast))
		check(out.Close())
		overlay[f.path] = name
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				tests = append(tests, fn.Name.Name)
			}
		}
	}
	return overlay, tests, leftOut
}

// Does what the compiler would do with our package and these tests, and lists all errors.
func compile(fset *token.FileSet, files []*testFile, into string) (errs []types.Error) {
	var inside, outside []*ast.File
	for _, f := range files {
		if strings.HasSuffix(f.ast.Name.Name, "_test") {
			outside = append(outside, f.ast)
		} else {
			inside = append(inside, f.ast)
		}
	}
	for name := range strings.FieldsSeq(goList("-f", `{{join .GoFiles " "}} {{join .CgoFiles " "}}`, ours)) {
		f, err := parser.ParseFile(fset, filepath.Join(into, name), nil, 0)
		check(err)
		inside = append(inside, f)
	}
	conf := types.Config{
		Importer:    exported(fset),
		FakeImportC: true,
		Error:       func(err error) { errs = append(errs, err.(types.Error)) },
	}
	conf.Check(ours, fset, inside, nil)
	conf.Check(ours+"_test", fset, outside, nil)
	return errs
}

var exportFiles map[string]string

func exported(fset *token.FileSet) types.Importer {
	if exportFiles == nil {
		exportFiles = map[string]string{}
		imports := goList("-f", `{{join .TestImports " "}} {{join .XTestImports " "}}`, theirs)
		args := append([]string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ours}, strings.Fields(imports)...)
		for line := range strings.Lines(goList(args...)) {
			path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
			exportFiles[path] = file
		}
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file := exportFiles[path]
		if file == "" {
			return nil, fmt.Errorf("%s is not among what is imported", path)
		}
		return os.Open(file)
	})
}

// Cuts out the declaration, or the import, in which the error is, and says its name.
func remove(fset *token.FileSet, files []*testFile, at token.Pos) (name string) {
	for _, f := range files {
		for i, d := range f.ast.Decls {
			if at < d.Pos() || at >= d.End() {
				continue
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				return removeImport(f.ast, g, at)
			}
			f.ast.Decls = slices.Delete(f.ast.Decls, i, i+1)
			f.ast.Comments = slices.DeleteFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
				return c.Pos() >= d.Pos() && c.End() <= d.End()
			})
			if fn, ok := d.(*ast.FuncDecl); ok {
				return fn.Name.Name
			}
			return fset.Position(at).String()
		}
	}
	return ""
}

func removeImport(f *ast.File, g *ast.GenDecl, at token.Pos) string {
	for i, s := range g.Specs {
		if at >= s.Pos() && at < s.End() {
			g.Specs = slices.Delete(g.Specs, i, i+1)
			return s.(*ast.ImportSpec).Path.Value
		}
	}
	return ""
}
