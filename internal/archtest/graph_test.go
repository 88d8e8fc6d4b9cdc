package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/perdure/perdure"

// pkg is what "go list" reports about a package.
type pkg struct {
	ImportPath, Name, Dir, Doc, ForTest string

	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string

	Standard bool
	Module   *struct{ Path string }
}

// own reports whether the package belongs to this repository.
func (p *pkg) own() bool { return p.Module != nil && p.Module.Path == module }

// graph has every package that the program and its tests consist of, by import path.
type graph map[string]*pkg

// program is the graph of this repository. It is loaded once.
var program = sync.OnceValues(func() (graph, error) {
	cmd := exec.Command("go", "list", "-deps", "-test",
		"-json=ImportPath,Name,Dir,Doc,ForTest,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Standard,Module", "./...")
	cmd.Dir = "../.."
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, failure.String())
	}
	return readGraph(bytes.NewReader(out))
})

// readGraph reads the output of go list.
func readGraph(r io.Reader) (graph, error) {
	g := graph{}
	for packages := json.NewDecoder(r); ; {
		var p pkg
		err := packages.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		// Variants for tests repeat the imports of their package.
		if p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test") {
			g[p.ImportPath] = &p
		}
	}
}

// load returns the packages of the module, once.
func load(t *testing.T) graph {
	t.Helper()
	g, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// matching returns the packages of this repository that match a pattern, sorted. Test kits, whose
// names end in "test", are left out: they are part of no binary.
func (g graph) matching(pattern string) []string {
	var list []string
	for path, p := range g {
		if p.own() && !testKit(path) && matches(pattern, path) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// testKit reports whether a package is for tests.
func testKit(path string) bool { return strings.HasSuffix(path, "test") }

// matches compares a path with a pattern: "x" matches x, and "x/..." matches x and everything below
// it. Patterns without a dot in their first element mean this repository.
func matches(pattern, path string) bool {
	if first, _, _ := strings.Cut(pattern, "/"); !strings.Contains(first, ".") && !stdlib(pattern) {
		pattern = module + "/" + pattern
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == tree || strings.HasPrefix(path, tree+"/")
	}
	return path == pattern
}

// stdlib returns the packages of the standard library that rules mention.
func stdlib(pattern string) bool {
	return slices.Contains([]string{"net", "net/http", "os", "os/...", "math/rand/...", "crypto/rand", "log/..."}, pattern)
}

// chain returns the chain of imports from a package to a package that matches the pattern, of any
// length; nil = there is none.
func (g graph) chain(from, pattern string) []string {
	cameBy := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && matches(pattern, at) {
			return walkBack(cameBy, at)
		}
		p, ok := g[at]
		if !ok {
			continue
		}
		for _, next := range p.Imports {
			if _, seen := cameBy[next]; !seen {
				cameBy[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// walkBack returns the path to a node.
func walkBack(cameBy map[string]string, at string) []string {
	var path []string
	for ; at != ""; at = cameBy[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}
