package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesFormNoCycles: the files of one package form layers. If a file uses a type that another
// file declares, that file and the files below it do not use its types. A reader can therefore
// start with the file at the bottom, and read each type before its uses.
func TestFilesFormNoCycles(t *testing.T) {
	t.Parallel()
	for path, p := range load(t) {
		if !p.own() || len(p.GoFiles) == 0 {
			continue
		}
		uses := typeUses(t, p)
		for _, cycle := range cycles(uses) {
			t.Errorf("%s: the types of these files depend on each other; move a type into a separate file:%s", path, describeCycle(cycle, uses))
		}
	}
}

// typeUses returns, for each file of a package and each of the other files, the types of the other
// file that the first one uses.
func typeUses(t *testing.T, p *pkg) map[string]map[string][]string {
	t.Helper()
	files := token.NewFileSet()
	var sources []*ast.File
	for _, name := range p.GoFiles {
		source, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// The types of other packages are missing, so most expressions have errors. The checker
	// resolves names of this package nevertheless.
	checker := types.Config{Importer: noImporter{}, Error: func(error) {}}
	checked, _ := checker.Check(p.ImportPath, files, sources, info)
	file := func(at token.Pos) string { return filepath.Base(files.Position(at).Filename) }
	uses := map[string]map[string][]string{}
	for id, object := range info.Uses {
		from, to := file(id.Pos()), file(object.Pos())
		if _, isType := object.(*types.TypeName); !isType || object.Parent() != checked.Scope() || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string][]string{}
		}
		if !slices.Contains(uses[from][to], id.Name) {
			uses[from][to] = append(uses[from][to], id.Name)
		}
	}
	return uses
}

// noImporter fails every import.
type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// cycles returns the sets of files in which each file depends on every other file.
func cycles(uses map[string]map[string][]string) [][]string {
	reach := map[string]map[string]bool{}
	for from := range uses {
		reach[from] = map[string]bool{}
		follow(uses, from, reach[from])
	}
	var found [][]string
	seen := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		if seen[from] || !reach[from][from] {
			continue
		}
		var cycle []string
		for to := range reach[from] {
			if reach[to][from] {
				cycle = append(cycle, to)
				seen[to] = true
			}
		}
		slices.Sort(cycle)
		found = append(found, cycle)
	}
	return found
}

// follow adds the files that a file depends on.
func follow(uses map[string]map[string][]string, from string, reached map[string]bool) {
	for to := range uses[from] {
		if !reached[to] {
			reached[to] = true
			follow(uses, to, reached)
		}
	}
}

// describeCycle returns a cycle as text.
func describeCycle(cycle []string, uses map[string]map[string][]string) string {
	var b strings.Builder
	for _, from := range cycle {
		for _, to := range cycle {
			if names := uses[from][to]; len(names) > 0 {
				slices.Sort(names)
				fmt.Fprintf(&b, "\n\t%s uses %s of %s", from, strings.Join(names, ", "), to)
			}
		}
	}
	return b.String()
}
