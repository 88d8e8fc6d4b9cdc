package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// function is a function or a method, such as "main" or "Server.startRun", in a package's folder.
type function struct{ folder, name string }

// TestCallsAreThoseOfTheArchitecture compares the lists of calls in docs/internals/architecture.md
// with the code: each function exists, and refers to the functions that are indented below it.
func TestCallsAreThoseOfTheArchitecture(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```calls\n")
	if len(blocks) < 5 {
		t.Fatalf("the page has %d lists of calls, want 4", len(blocks)-1)
	}
	read := map[string]map[string]*ast.FuncDecl{}
	for _, block := range blocks[1:] {
		list, _, _ := strings.Cut(block, "```")
		checkCalls(t, strings.Split(strings.TrimSuffix(list, "\n"), "\n"), func(f function) *ast.FuncDecl {
			if read[f.folder] == nil {
				read[f.folder] = functionsOf(t, f.folder)
			}
			return read[f.folder][f.name]
		})
	}
}

// checkCalls checks one list.
func checkCalls(t *testing.T, lines []string, find func(function) *ast.FuncDecl) {
	t.Helper()
	var above []function // by indentation
	for _, line := range lines {
		text, _, _ := strings.Cut(line, "#")
		depth := (len(text) - len(strings.TrimLeft(text, " "))) / 2
		fields := strings.Fields(text)
		if depth > len(above) || len(fields) == 0 || len(fields) > 2 {
			t.Fatalf("the line %q is not part of the list", line)
		}
		above = above[:depth]
		called := function{name: fields[len(fields)-1]}
		switch {
		case len(fields) == 2:
			called.folder = fields[0]
		case depth > 0:
			called.folder = above[depth-1].folder
		}
		if find(called) == nil {
			t.Errorf("%s has no function %s", called.folder, called.name)
		}
		if depth > 0 {
			if caller := find(above[depth-1]); caller != nil && !mentions(caller, called.name) {
				t.Errorf("%s in %s does not call %s", above[depth-1].name, above[depth-1].folder, called.name)
			}
		}
		above = append(above, called)
	}
}

// functionsOf returns the functions of a folder, by name.
func functionsOf(t *testing.T, folder string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no package %q (%v)", folder, err)
	}
	found := map[string]*ast.FuncDecl{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range source.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				found[nameOf(f)] = f
			}
		}
	}
	return found
}

// nameOf returns the name of a function. A method's name includes its type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// mentions reports whether a function refers to another function, regardless of the package and the
// type of the other function.
func mentions(f *ast.FuncDecl, name string) bool {
	_, method, ok := strings.Cut(name, ".")
	if !ok {
		method = name
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == method
		return !found
	})
	return found
}
