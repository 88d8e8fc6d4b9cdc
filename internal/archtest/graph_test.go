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

// pkg is what "go list" says of a package.
type pkg struct {
	ImportPath, Name, Dir, Doc, ForTest string

	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string

	Standard bool
	Module   *struct{ Path string }
}

// own reports whether the package is ours.
func (p *pkg) own() bool { return p.Module != nil && p.Module.Path == module }

// graph is every package that the program and its tests are made of, by import path.
type graph map[string]*pkg

// program is the graph of this repository. It is read only once.
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
		// Variants that exist only for tests have the same imports again.
		if p.ForTest == "" && !strings.HasSuffix(p.ImportPath, ".test") {
			g[p.ImportPath] = &p
		}
	}
}

func load(t *testing.T) graph {
	t.Helper()
	g, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// matching returns our packages that a pattern means, sorted. Test kits, whose names end in "test",
// are none of them: they are part of no binary.
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

func testKit(path string) bool { return strings.HasSuffix(path, "test") }

// matches compares a path with a pattern: "x" is x, "x/..." is x and all below. Patterns without a
// dot in their first element are ours.
func matches(pattern, path string) bool {
	if first, _, _ := strings.Cut(pattern, "/"); !strings.Contains(first, ".") && !stdlib(pattern) {
		pattern = module + "/" + pattern
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == tree || strings.HasPrefix(path, tree+"/")
	}
	return path == pattern
}

// stdlib names the packages of the standard library that rules speak of.
func stdlib(pattern string) bool {
	return slices.Contains([]string{"net", "net/http", "os", "os/...", "math/rand/...", "crypto/rand", "log/..."}, pattern)
}

// chain returns how a package comes to import what a pattern means, over any number of packages;
// nil = it does not.
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

func walkBack(cameBy map[string]string, at string) []string {
	var path []string
	for ; at != ""; at = cameBy[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}
