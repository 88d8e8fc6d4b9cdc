package archtest

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// rowPattern finds a module and its reason in a table row of docs/internals/dependencies.md.
var rowPattern = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S.*) \\|$")

func TestEveryDependencyHasItsReason(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/internals/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, row := range rowPattern.FindAllStringSubmatch(string(page), -1) {
		reasons[row[1]] = row[2]
	}
	direct := load(t).directModules()
	for _, name := range consolePackages(t) {
		direct[name] = "web/package.json"
	}
	for path, importer := range direct {
		if reasons[path] == "" {
			t.Errorf("%s imports from %s, and docs/internals/dependencies.md states no reason", importer, path)
		}
	}
	for path := range reasons {
		if direct[path] == "" {
			t.Errorf("docs/internals/dependencies.md has a reason for %s, which nothing imports", path)
		}
	}
}

// consolePackages returns the npm packages of the console and of its build.
func consolePackages(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("../../web/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Dependencies, DevDependencies map[string]string }
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	return append(slices.Collect(maps.Keys(manifest.Dependencies)), slices.Collect(maps.Keys(manifest.DevDependencies))...)
}

// directModules returns the modules that packages and tests of this repository import, each with
// one importer.
func (g graph) directModules() map[string]string {
	direct := map[string]string{}
	for path, p := range g {
		if !p.own() {
			continue
		}
		for _, list := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
			for _, imported := range list {
				if to, ok := g[imported]; ok && to.Module != nil && !to.own() {
					direct[to.Module.Path] = path
				}
			}
		}
	}
	return direct
}
